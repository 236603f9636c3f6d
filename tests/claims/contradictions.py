"""What gates say that contradicts a recommended design; the gallery repeats it.

Facts: those of `gates`.
"""

from __future__ import annotations

from claims import Claim, Report


def expected(facts):
    """Where a verdict of full size is not what the recommendation says, one sentence each."""
    found = []
    for gate in facts.gates:
        full = {"recovery": 300, "shuffled": 100, "calibration": 200, "audit": 400}[gate["kind"]]
        design = facts.designs.get(gate["name"])
        if design is None or gate["units"] < full:
            continue
        for name, values in gate["quantities"].items():
            lost = name in design.get("open", {})
            claims = {
                "recovery": ("not given back" if lost else "given back", "recoverable"),
                "shuffled": ("kept" if name in design.get("kept", {}) else "lost", "kept"),
                "calibration": ("calibrated", "calibrated"),
            }
            claim, word = claims[gate["kind"]]
            if gate["kind"] == "shuffled" and lost:
                continue
            verdict = values["verdict"]
            # A word between two of them contradicts a claim only if both of them would.
            both = verdict.removeprefix("between ").split(" and ")
            against = {"given back": {"weak", "not identified"}, "kept": {"lost", "less"}}
            if claim == "calibrated":
                denied = verdict not in ("calibrated", "not judged")
            else:
                denied = set(both) <= against[claim] if claim in against else verdict == word
            if denied:
                found.append(
                    f"{gate['kind']} of {gate['name']}: {name} is {values['verdict']!r}, and said "
                    f"to be {claim}."
                )
    return found


def _claimed(facts, words):
    told = "{kind} of {name}: {quantity} is {word}, and said to be {claim}.".format(**words)
    assert told in expected(facts)


REPORT = Report(
    "contradictions",
    sources=("validation/gates/gates.py",),
    sentences=(
        Claim(
            "{kind} of {name}: {quantity} is {word}, and said to be {claim}.",
            "the verdicts in the store, beside recommended.toml",
            _claimed,
        ),
    ),
)
