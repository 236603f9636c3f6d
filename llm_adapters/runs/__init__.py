"""Many sessions of a language model: participant, runner, ledger, caps, prices.

Imported by validation; itself imports the contract.
"""
