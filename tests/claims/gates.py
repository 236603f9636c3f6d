"""Sentences of `gates`, which the gallery repeats.

Facts: a `SimpleNamespace` with `gates` (the entries of the store, as its JSON has them), `designs`
(recommended.toml, as it is) and `computed` and `problems` (of the JSON that the command prints).
"""

from __future__ import annotations

import math

from claims import Claim, Explanation, Report, check
from claims.contradictions import REPORT as CONTRADICTIONS


def fall(r, shuffled, n):
    """The verdict on a negative control, from Fisher's z and its standard error, .5 and 3.5."""
    if n < 10:
        return "not judged"
    z = [math.atanh(max(-1 + 1e-9, min(1 - 1e-9, x))) for x in (r, shuffled)]
    if z[0] - z[1] < 3.5 * math.sqrt(2 / (n - 3)):
        return "kept"
    return "lost" if abs(shuffled) < 0.5 else "less"


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
    sources=("validation/gates.py",),
    sentences=(
        Claim("contradicts the recommendation: {sentence}", "that of the sentence", _contradicts),
        Claim(
            "{n} gates, {computed} computed now, {stored} from store",
            "a count over the store",
            _counted,
        ),
        Claim("no result: {name}: {why}", "the JSON's problems and gates", _no_result),
        Explanation("knownminds gates {model} --gate shuffled --seed {seed}"),
    ),
)  # fmt: skip
