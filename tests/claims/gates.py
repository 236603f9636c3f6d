"""Sentences of `gates`, which the gallery repeats.

Facts: a `SimpleNamespace` with `gates` (the entries of the store, as its JSON has them), `designs`
(recommended.toml, as it is) and `computed` and `problems` (of the JSON that the command prints).
"""

from __future__ import annotations

import math

from claims import Claim, Explanation, Report, check
from claims.contradictions import REPORT as CONTRADICTIONS


def fall(r, shuffled, n):
    """The verdict on a negative control: Fisher's z, falls of 2 and 3.5 errors, 2 errors to .5."""
    if n < 10:
        return "not judged"
    z = [math.atanh(max(-1 + 1e-9, min(1 - 1e-9, x))) for x in (r, shuffled)]
    errors = (z[0] - z[1]) / math.sqrt(2 / (n - 3))
    if errors < 2.0:
        return "kept"
    beyond = (abs(z[1]) - math.atanh(0.5)) * math.sqrt(n - 3)
    words = {"lost"} if beyond <= -2.0 else {"less"} if beyond >= 2.0 else {"lost", "less"}
    if errors < 3.5:
        words = {"lost" if "lost" in words else "less", "kept"}
    order = [word for word in ("lost", "less", "kept") if word in words]
    return order[0] if len(order) == 1 else f"between {order[0]} and {order[1]}"


def _contradicts(facts, words):
    check(CONTRADICTIONS, [words["sentence"]], facts)


def _counted(facts, words):
    n, computed, stored = (int(words[name]) for name in ("n", "computed", "stored"))
    assert n == len(facts.gates) == computed + stored
    assert computed == facts.computed


def _no_result(facts, words):
    assert facts.problems[words["name"]] == words["why"]
    kind, _, model = words["name"].partition(" of ")
    assert (kind, model) not in {(gate["kind"], gate["name"]) for gate in facts.gates}


REPORT = Report(
    "gates",
    sources=("validation/gates/gates.py",),
    sentences=(
        Claim("contradicts the recommendation: {sentence}", "that of the sentence", _contradicts),
        Claim(
            "{n} gates, {computed} computed now, {stored} from store",
            "a count over the store",
            _counted,
        ),
        Claim("no result: {name}: {why}", "the JSON's problems and gates", _no_result),
        Explanation("knownminds gates {model} --gate shuffled --seed {seed}"),
        Explanation("between {word} and kept"),
    ),
)  # fmt: skip
