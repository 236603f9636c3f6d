"""Sentences of `recover` with several designs.

Facts: a `SimpleNamespace` with `content` (what the JSON holds) and `designs` (facts of
`claims.recovery` for each design, in its order).
"""

from __future__ import annotations

from itertools import product

from claims import Claim, Explanation, Report, recovery

SIZES = ("subjects", "sessions", "trials")


def sizes(f):
    return [(d.content["subjects"], d.content["sessions"], d.place.n_trials) for d in f.designs]


def from_on(f, name, refuted):
    """Return the designs from which on no verdict is refuting, by going through all pairs."""
    designs = zip(sizes(f), f.designs, strict=True)
    words = {size: d.content["parameters"][name]["verdict"] for size, d in designs}
    bad = {
        small
        for small, large in product(words, words)
        if all(a <= b for a, b in zip(small, large, strict=True)) and refuted(words[large])
    }
    good = [s for s in words if s not in bad]
    return min(good, key=lambda s: (s[0] * s[1] * s[2], s)) if good else None


def certain(f, name):
    return from_on(f, name, lambda word: word != "recoverable")


def possible(f, name):
    no = ("weak", "not identified", "between weak and not identified")
    return from_on(f, name, lambda word: word in no)


def written(size):
    if size is None:
        return None
    return " x ".join(
        f"{n} {what if n == 1 else what + 's'}"
        for n, what in zip(size, ("subject", "session", "trial"), strict=True)
    )


def _yes(f, words):
    assert words["design"] == written(certain(f, words["parameter"]))
    assert certain(f, words["parameter"]) == possible(f, words["parameter"])


def _yes_and_open(f, words):
    assert words["design"] == written(certain(f, words["parameter"]))
    assert words["smaller"] == written(possible(f, words["parameter"]))
    assert words["design"] != words["smaller"]


def _perhaps(f, words):
    assert certain(f, words["parameter"]) is None
    assert words["design"] == written(possible(f, words["parameter"]))


def _no(f, words):
    assert possible(f, words["parameter"]) is None


def _largest(f, words):
    size = max(sizes(f))
    assert all(a >= b for other in sizes(f) for a, b in zip(size, other, strict=True))
    content = f.designs[sizes(f).index(size)].content
    told = [s for s in content["parameters"].values() if s["verdict"] == words["word"]]
    assert any(" ".join(s["reasons"]) == words["reasons"] for s in told)


def _note(f, words):
    size = tuple(int(n) for n in words["size"].split(" x "))
    design = f.designs[sizes(f).index(size)]
    n, _, rest = words["note"].partition(" of ")
    attempted, _, message = rest.partition(": ")
    recovery._note(design, {"n": n, "attempted": attempted, "message": message})


def _session(f, words):
    lengths = {size[2]: d for size, d in zip(sizes(f), f.designs, strict=True)}
    assert words["sentence"] in lengths[int(words["trials"])].content["identifiability"]


def _named(f, words):
    assert words["model"] == f.content["model"]
    assert words["place"] == f.content["environment"]
    assert words.get("method", f.content["method"]) == f.content["method"]


def _limits(*expected):
    def proof(f, words):
        assert tuple(words.values()) == expected

    return proof


REPORT = Report(
    "recovery surface",
    sources=(
        "validation/recovery/recovery_surface.py",
        "validation/recovery/recovery_surface_page.py",
    ),
    sentences=(
        Claim("From which design on can {model} be recovered from {place}?", "the design", _named),
        Claim("recovery surface of {model} in {place}, {method}", "the design", _named),
        Claim(
            "{parameter}: to be interpreted from {design} on.",
            "all pairs of designs and their words",
            _yes,
        ),
        Claim(
            "{parameter}: to be interpreted from {design} on and whether from {smaller} on is "
            "open.",
            "all pairs of designs and their words",
            _yes_and_open,
        ),
        Claim(
            "{parameter}: perhaps to be interpreted from {design} on.",
            "all pairs of designs and their words",
            _perhaps,
        ),
        Claim(
            "{parameter}: not to be interpreted in any of these designs.",
            "all pairs of designs and their words",
            _no,
        ),
        Claim(
            "In the largest design {word}: {reasons}",
            "the JSON of the design that is largest in all sizes; the reasons as in verdicts",
            _largest,
        ),
        Claim("{size} (subjects, sessions, trials): {note}", "a count of the messages", _note),
        Claim("One session of {trials} trials: {sentence}.", "see identifiability", _session),
        Claim(
            "Correlation of estimate and truth, with 2 standard errors. Dashed: the limits {good} "
            "(recoverable) and {weak} (weak).",
            "the limits that the proofs of verdicts use",
            _limits("0.8", "0.5"),
        ),
        Claim(
            "Share of the 90% intervals that hold the truth, with 2 standard errors. Dashed: the "
            "{low} and {high} it may lie between.",
            "the limits that the proofs of verdicts use",
            _limits("85%", "95%"),
        ),
        Claim(
            "Width of the 90% intervals over that of the prior's own, by region of true values "
            "(rows) and design (subjects x sessions x trials): recoverable up to {good}, weak up "
            "to {weak}.",
            "the limits that the proofs of verdicts use",
            _limits("0.6", "0.87"),
        ),
        Explanation(
            "To be interpreted from a design on: there, and in every design of the grid that is at "
            "least as large in all sizes, the parameter is recoverable. Perhaps: there and in all "
            "of those no clear verdict says that it is not."
        ),
        Explanation(
            "{errors} Failed fits are left out of the scores and counted; flat and boundary "
            "estimates are kept."
        ),
    ),
)
