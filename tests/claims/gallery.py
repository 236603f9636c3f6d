"""Sentences of the gallery.

Facts: those of `gates`, with `place` (an experiment), `model` or `measure` where one is shown.
"""

from __future__ import annotations

import re

from claims import Claim, Explanation, Report, check
from claims.contradictions import REPORT as CONTRADICTIONS
from knownminds.environments import make


def gate_of(facts, kind):
    return next(g for g in facts.gates if (g["kind"], g["name"]) == (kind, facts.name))


def verdicts(facts):
    return {k: v["verdict"] for k, v in gate_of(facts, "recovery")["quantities"].items()}


def _asked(facts, words):
    place = make(facts.name)
    assert int(words["n"].replace(",", "")) == place.n_trials
    seen, _ = place.reset(seed=3)
    what = place.asks(seen)
    kinds = {"action": f"one of {place.n_actions} actions", "response": "a number from"}
    told = words["what"]
    if place.given in kinds:
        assert told.startswith(kinds[place.given])
        assert what == place.given
    if place.given == "response":
        low, high = map(float, re.findall(r"-?[\d.]+", told))
        assert (low, high) == tuple(map(float, place.response_range))
    choice = {"action": 0, "response": place.response_range[0]}.get(
        what, (0, place.response_range[0])
    )
    _, reward, *_ = place.step(choice)
    assert words["paid"] == ("rewards are paid" if place.feedback else "nothing is paid")
    assert place.feedback or reward is None or reward != reward
    alone = words["told"] == "each trial stands alone"
    assert alone or words["told"] == "earlier trials are retold"
    if facts.retold is not None:
        assert alone is not facts.retold


def _partly(facts, words):
    """The good, those left open by a word between two, and the others, if there are any."""
    found = verdicts(facts)
    good, *parts = words["told"].split("; ")
    told = {"open whether": "", "no design found for": ""}
    for part in parts:
        head = next(head for head in told if part.startswith(head))
        told[head] = part.removeprefix(head).strip()
    back = {name for name, word in found.items() if word == "recoverable"}
    unsure = {name for name, word in found.items() if word == "between recoverable and weak"}
    unsure |= {n for n, word in found.items() if word == "between recoverable and not identified"}
    assert good == (", ".join(n for n in found if n in back) or "none for certain")
    assert set(filter(None, told["open whether"].split(", "))) == unsure
    assert set(filter(None, told["no design found for"].split(", "))) == set(found) - back - unsure
    assert back != set(found)


def _all(facts, words):
    assert set(verdicts(facts).values()) == {"recoverable"}


def _none(facts, words):
    assert not any("recoverable" in word for word in verdicts(facts).values())


def _not_stored(facts, words):
    assert not any(g["name"] == facts.name and g["kind"] == "recovery" for g in facts.gates)
    pending = facts.designs[facts.name].get("pending", "")
    assert words["why"] == (f" ({pending})" if pending else "")


def _nothing_to_recover(facts, words):
    assert not any(g["name"] == facts.name for g in facts.gates)


def _computed(kind):
    def proof(facts, words):
        gate = gate_of(facts, kind)
        assert (int(words["n"]), int(words["failed"])) == (gate["units"], gate["failed"])
        assert words["command"] == gate["command"]
        assert f"--seed {gate['seed']}" in words["command"]
        assert gate["versions"]["knownminds"] in words["where"]
        assert gate["date"] in words["where"]

    return proof


def _older(facts, words):
    gate = gate_of(facts, words["kind"])
    now = facts.hashes
    told = [f"the {name}'s code" for name, one in now.items() if gate["sources"].get(name) != one]
    assert words["what"] == " and ".join(told) != ""


def _another(facts, words):
    gate = gate_of(facts, words["kind"])
    design = facts.designs[facts.name]
    trials = design.get("trials") or facts.trials
    same = (
        gate["environment"] == design["environment"],
        gate["settings"] == design.get("settings", {}),
        gate["trials"] == trials,
        gate["sessions"] == design.get("sessions", 1),
    )
    assert not all(same)


def _unconfirmed(facts, words):
    check(CONTRADICTIONS, [words["sentence"]], facts)


def _kept(facts, words):
    assert words["why"] in facts.designs[facts.name]["kept"].values()


def _audited(facts, words):
    gate = gate_of(facts, "audit")
    values = next(v for k, v in gate["quantities"].items() if k == words["effect"])
    told = [float(n) for n in re.findall(r"-?\d+\.\d+", words["found"])]
    names = ("bias", "bias_error", "coverage", "coverage_error")
    if values.get("rejected") is not None:
        assert words["found"].startswith("the test rejects in ")
        names = ("rejected", "rejected_error", *names)
    for number, name in zip(told, [n for n in names if values.get(n) is not None], strict=True):
        assert abs(number - values[name]) <= 0.005 + 1e-9
    assert values["verdict"] == "-" or f"({values['verdict']})" in words["found"]


def _drawn(facts, words):
    found = gate_of(facts, "recovery")["quantities"]
    told = {p.split(" ", 1)[0]: p.split(" ", 1)[1] for p in words["said"].split("; ")}
    assert set(told) == set(found)
    for name, text in told.items():
        r, verdict = re.fullmatch(r"(\S+) \((.*)\)", text).groups()
        assert verdict == found[name]["verdict"]
        assert found[name]["r"] is None or abs(float(r) - found[name]["r"]) <= 0.005 + 1e-9


STORE = "stored_results.json, as it is"
WHERE = "{command} ({where})"
REPORT = Report(
    "gallery",
    sources=("validation/gates/gallery.py",),
    sentences=(
        Claim(
            "At most {n} trials; asks for {what}; {paid}; {told}",
            "a session that is begun, and its step",
            _asked,
        ),
        Explanation("one of {n} actions"),
        Explanation("one of {n} actions and a number"),
        Explanation("one of {n} actions on some trials, a number on the others"),
        Explanation("Picture shown on the first trial of {name} ({stimuli})"),
        Explanation("{n} sessions of each subject"),
        Claim("gives back {told}", STORE, _partly),
        Explanation("; open whether {names}"),
        Explanation("; no design found for {names}"),
        Claim("gives every parameter back", STORE, _all),
        Claim("no design found that gives a parameter back", STORE, _none),
        Claim("no stored result yet{why}", f"{STORE}, and recommended.toml", _not_stored),
        Claim("no parameters, nothing to recover", STORE, _nothing_to_recover),
        Claim(
            f"Recovery of {{n}} subjects, {{failed}} failed: {WHERE}", STORE, _computed("recovery")
        ),
        Claim(
            f"Negative control, {{n}} subjects with shuffled sessions, {{failed}} failed: {WHERE}",
            STORE,
            _computed("shuffled"),
        ),
        Claim(
            f"Calibration of {{n}} single posteriors, {{failed}} failed: {WHERE}",
            STORE,
            _computed("calibration"),
        ),
        Claim(
            f"Audit with {{n}} data sets per design, {{failed}} failed: {WHERE}",
            STORE,
            _computed("audit"),
        ),
        Claim("The stored {kind} is older than {what}.", "hashes of the code", _older),
        Claim(
            "The stored {kind} is that of another design than the recommended one.",
            f"{STORE}, and recommended.toml",
            _another,
        ),
        Claim("Claim not confirmed: {sentence}", "that of the sentence", _unconfirmed),
        Claim("Shuffling keeps it: {why}", "recommended.toml", _kept),
        Claim("Audited with {effect}: {found}.", STORE, _audited),
        Explanation("the test rejects in {share}"),
        Explanation("95% intervals hold the truth in {share}"),
        Claim(
            "Correlation of estimate and truth by parameter of {name}: {said}", STORE, _drawn
        ),
    ),
)  # fmt: skip
