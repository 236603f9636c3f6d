"""Why sessions of a run stop: parts of the sentences of `run`, with its facts."""

from __future__ import annotations

from decimal import Decimal

from claims import Claim, Report


def _cap(facts, words, session):
    """The cap was kept, and one call more, somewhat longer than those before, is not in it."""
    text = words["cap"]
    unit = "dollars" if text[0] == "$" else text.split()[1]
    cap = float(Decimal(text.lstrip("$").split()[0].replace(",", "")))
    table = facts.attempts.assign(
        calls=1, one=1, dollars=facts.attempts["cost"] / 1e9, most=facts.attempts["reserved"] / 1e9
    )
    if not len(table):
        return
    used = table.groupby("session")[unit].sum().max() if session else table[unit].sum()
    most = {"calls": "one", "tokens": "reserved_tokens", "dollars": "most"}[unit]
    assert used <= cap < used + 1.2 * table[most].max()


def _in_a_row(facts, words):
    last = facts.attempts["message"].iloc[-int(words["n"]) :]
    assert len(last) == int(words["n"])
    assert last.notna().all()
    assert last.iloc[-1].rstrip(".") == words["why"]


def _wait(facts, words):
    assert float(words["seconds"]) == facts.server["wait"]


def _died(facts, words):
    assert facts.server["reason"] == "died"


def _interrupted(facts, words):
    assert facts.server["reason"] == "interrupted"


def _no_key(facts, words):
    assert facts.server["reason"] == "no key"


def _broken(facts, words):
    assert facts.server["reason"] == words["what"]


ATTEMPTS = "sums over the attempts in the ledger"
REPORT = Report(
    "why a run stops",
    sources=("llm_adapters/runs/runner.py", "llm_adapters/runs/admission.py"),
    sentences=(
        Claim("the cap of {cap} is reached", ATTEMPTS, lambda f, w: _cap(f, w, False)),
        Claim("the session's cap of {cap} is reached", ATTEMPTS, lambda f, w: _cap(f, w, True)),
        Claim("the provider asks to wait for {seconds} seconds", "what the server said", _wait),
        Claim(
            "{n} questions in a row had no answer: {why}",
            "the last errors in the ledger",
            _in_a_row,
        ),
        Claim("the run is still under way, or its process has died", "how it was ended", _died),
        Claim("interrupted", "how it was ended", _interrupted),
        Claim("no key", "the error that was raised", _no_key),
        Claim("ZeroDivisionError: {what}", "the error that was raised", _broken),
    ),
)
