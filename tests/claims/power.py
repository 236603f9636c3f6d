"""Sentences of `power` and of searches for the smallest design.

Facts: a `SimpleNamespace` with `content` (the JSON), `rows` (one table of data sets per design, in
the order of the JSON's designs) and, of a search, `fresh` (the rows of its last fresh run).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np

from claims import Claim, Explanation, Report

LEVEL, USUAL = 0.05, 0.8


def _counts(row):
    """Whether a data set counts; tests note beside each row what is counted but rejections."""
    if "narrower" in row:
        return row["high"] - row["low"] < row["narrower"]
    if "within" in row:
        return max(abs(row["inner_low"]), abs(row["inner_high"])) < row["within"]
    return row["p_value"] < LEVEL


def rejected(rows):
    """Share of all data sets that count, and its error by Agresti and Coull, by plain counting."""
    n = len(rows)
    hits = sum(1 for row in rows.to_dict("records") if _counts(row))
    shrunk = (hits + 2) / (n + 4)
    return hits / n, (shrunk * (1 - shrunk) / (n + 4)) ** 0.5


def _same(told, rows):
    value, error = map(float, re.fullmatch(r"([\d.]+) \(([\d.]+)\)", told).groups())
    share, own = rejected(rows)
    assert abs(value - share) < 6e-4
    assert abs(error - own) < 6e-4


def _sizes(design):
    return tuple(design[name] for name in ("subjects", "sessions", "trials"))


def _name(content):
    if "find" in content:
        content = {**content["question"], "effect_sd": 0}
    named = {"width": "precision", "rope": "equivalence"}
    found = [name for key, name in named.items() if content.get(key)]
    return found[0] if found else "assurance" if content["effect_sd"] else "power"


def _means(key):
    def proof(facts, words):
        content = facts.content.get("question", facts.content)
        assert words["size"] == f"{content[key]:g}"
        assert words.get("null", "0") == "0"  # the null value of the measures in the tests

    return proof


def _pilot(facts, words):
    """The pilot's own file says who took part; the study's data sets have no other groups."""
    told = json.loads((Path(words["folder"]) / "fit.json").read_text(encoding="utf-8"))
    assert int(words["subjects"]) == len(told["sessions"])
    for rows in facts.rows:
        assert "effect" not in rows or rows["effect"].nunique() <= int(words["draws"])


def _taken(facts, words):
    """The run's ledger, added up by SQLite itself."""
    with sqlite3.connect(Path(words["folder"]) / "ledger.sqlite") as ledger:
        ((sent, received, nano, sessions),) = ledger.execute(
            "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost), COUNT(DISTINCT session) "
            "FROM attempt JOIN call ON call.id = attempt.call"
        ).fetchall()
    told = [int(words[name].replace(",", "")) for name in ("sent", "received", "sessions")]
    assert told == [sent, received, sessions]
    assert words["dollars"] == f"{nano / 1e9:.6f}"


def _lost_answers(facts, words):
    count, of = int(words["lost"]), int(words["of"])
    assert words["share"] == f"{count / of:.1%}"
    outcomes = facts.pilot["outcomes"]
    assert of == sum(outcomes.values())
    assert count == of - outcomes["ok"] - outcomes.get("repaired", 0)


def _headed(facts, words):
    content = facts.content
    effect, n = f"{words['effect']}, {words['n']}".rsplit(", ", 1)  # there are commas in the effect
    assert words["name"] == _name(content)
    assert all(len(rows) == int(n) == content["replicates"] for rows in facts.rows)
    _looked_for(content, effect)


def _looked_for(content, told):
    size = f"{content['effect']:g}"
    if content["effect_sd"]:
        size += f" (drawn with sd {content['effect_sd']:g})"
    start = {
        "one": f"{content['measure']} = {size}, ",
        "between": f"a difference in {content['measure']} of {size} between two groups, ",
        "paired": f"a difference in {content['measure']} of {size} between two conditions, ",
    }[content["comparison"]]
    assert told.startswith(start)
    assert f"{content['model']} in {content['environment']}" in told
    assert told.endswith(f"{content['estimator'].replace('_', '-')} test")


def _unit(of_one_mind, only):
    def proof(facts, words):
        minds = [
            design["subjects"]
            for design in facts.content["designs" if "designs" in facts.content else "steps"]
        ]
        mine = [n for n in minds if (n == 1) == of_one_mind]
        assert mine
        assert not only or len(mine) == len(minds)

    return proof


def _failures(rows, told, failed, n):
    lost = rows[rows["status"] == "failed"]
    assert int(failed) == len(lost) > 0
    assert int(n) == len(rows)
    assert not (lost["p_value"] < LEVEL).any()  # misses
    causes = Counter(lost["message"])
    assert Counter(dict(_times(part) for part in told.split("; "))) == causes


def _times(part):
    n, message = part.split(" x ", 1)
    return message, int(n)


def _of_design(facts, words):
    """The rows of the design that a sentence names by its sizes."""
    size = tuple(int(words[name]) for name in ("subjects", "sessions", "trials"))
    (k,) = [k for k, d in enumerate(facts.content["designs"]) if _sizes(d) == size]
    return facts.rows[k]


def _lost(facts, words):
    _failures(_of_design(facts, words), words["why"], words["failed"], words["n"])


def _doubted(facts, words):
    rows = _of_design(facts, words)
    doubtful = rows[(rows["status"] != "failed") & (rows["status"] != "ok")]
    assert int(words["n"]) == (doubtful["message"] == words["message"]).sum() > 0
    assert int(words["of"]) == len(rows)


def _only(facts, words):
    assert len(facts.rows) == 1
    assert words["name"] == _name(facts.content)
    _same(f"{words['power']} ({words['error']})", facts.rows[0])


def _fewest(facts, words):
    assert words["name"] == _name(facts.content)
    assert words["usual"] == f"{USUAL:.0%}"
    good = [
        (np.prod(_sizes(design)), _sizes(design), rows)
        for design, rows in zip(facts.content["designs"], facts.rows, strict=True)
        if rejected(rows)[0] >= USUAL and not _clearly_below(rows)
    ]
    _, size, rows = min(good, key=lambda each: each[:2])
    told = [int(re.match(r"[\d,]+", part)[0].replace(",", "")) for part in words["d"].split(" x ")]
    assert tuple(told) == size
    _same(words["power"], rows)


def held(rows):
    """Share of the usable data sets whose interval holds the truth, and its error, by counting."""
    usable = [row for row in rows.to_dict("records") if row["status"] != "failed"]
    hits = sum(1 for row in usable if row["low"] <= row["effect"] <= row["high"])
    n = len(usable)
    shrunk = (hits + 2) / (n + 4)
    return (hits / n if n else np.nan), (shrunk * (1 - shrunk) / (n + 4)) ** 0.5


def _clearly_below(rows):
    if "low" not in rows:  # of a search, whose rows are not kept
        return False
    share, error = held(rows)
    return share + 2 * error < 0.9


def _unread(facts, words):
    size = tuple(int(words[name]) for name in ("subjects", "sessions", "trials"))
    known = dict(zip(map(_sizes, facts.content["designs"]), facts.rows, strict=True))
    rows = known[size]
    share, error = held(rows)
    assert share + 2 * error < 0.9
    assert words["coverage"] == f"{share:.3f} ({error:.3f})"
    usable = rows[rows["status"] != "failed"]
    off = usable["estimate"] - usable["effect"]
    assert abs(float(words["bias"].split()[0]) - off.mean()) < 6e-4


def _all_unread(facts, words):
    good = [rows for rows in facts.rows if rejected(rows)[0] >= USUAL]
    assert len(good) == int(words["n"]) > 0
    assert all(_clearly_below(rows) for rows in good)
    assert (words["name"], words["usual"]) == (_name(facts.content), f"{USUAL:.0%}")


def _none(facts, words):
    assert words["name"] == _name(facts.content)
    assert all(rejected(rows)[0] < USUAL for rows in facts.rows)


def _effect(facts, words):
    """The title's effect is that of the JSON."""
    content = facts.content
    question = content.get("question", {})
    size = content["effect"] if "effect" in content else next(iter(question["effect"].values()))
    measure = content.get("measure") or next(iter(question["effect"]))
    comparison = content.get("comparison") or question["comparison"]
    if words["effect"] == f"the pilot's {measure}":  # each data set has an effect of its own
        assert content["effect_sd"] > 0
    else:
        told = f"{measure} = {size:g}"
        assert words["effect"] == (told if comparison == "one" else f"a difference of {told}")
    asked = question or content
    for name in ("width", "rope"):
        assert words.get(name, "") == (f"{asked[name]:g}" if asked.get(name) else "")
    if "find" in words:
        assert words["find"] == content["find"]


def _answered(facts, words):
    content, found = facts.content, facts.content["smallest"]
    assert content["confirmed"] == (words["verb"] == "are")
    assert words["target"] == f"{content['target']:.0%}"
    assert words["name"] == words["what"] == _name(content)
    assert words["find"] == content["find"]
    assert int(words["size"]) == found[content["find"]]
    assert (words["low"], words["high"]) == (f"{found['low']:.0f}", f"{found['high']:.0f}")
    assert words["mass"] == "90%"
    assert int(words["n"]) == len(facts.fresh)
    # A number has a point of its own, so the two texts are taken apart here.
    power, rest = re.fullmatch(
        r"(\S+ \(\S+\))\.(.*)", words["power"] + "." + words["rest"]
    ).groups()
    _same(power, facts.fresh)
    share, error = rejected(facts.fresh)
    assert content["confirmed"] == (share + 2 * error >= content["target"] - 1e-12)
    runs_out = "Not confirmed in 3 fresh runs; the last is shown."
    assert rest in ("", f" {runs_out}", " The search ended before a size was confirmed.")
    assert content["confirmed"] or rest


def _even(facts, words):
    content, last = facts.content, facts.rows[-1]
    assert content["smallest"][content["find"]] is None
    assert int(words["most"]) == content["steps"][-1][content["find"]]
    assert words["name"] == _name(content)
    assert words["target"] == f"{content['target']:.0%}"
    _same(words["power"], last)
    share, error = rejected(last)
    assert share < content["target"]
    assert share - error < content["target"]


def _refused(facts, words):
    content = facts.content
    assert words["target"] == f"{content['target']:.0%}"
    assert content["smallest"][content["find"]] is None


# What a study takes from a pilot and from a run; `design` says the same.
TAKEN = (
    Claim(
        "The group of each data set is one of {draws} draws from the posterior of the pilot "
        "in {folder}, of {subjects} subjects: what is told is averaged over what the pilot "
        "leaves open.",
        "the pilot's fit.json, and how many effects the rows have",
        _pilot,
    ),
    Claim(
        "Dollars go by what the run in {folder} took with {llm}: {sent} tokens sent and "
        "{received} received in {sessions} sessions, ${dollars} paid.",
        "sums over the run's ledger",
        _taken,
    ),
    Claim(
        "Answers are lost at random as often as in the pilot, {share} ({lost} of {of}).",
        "the outcomes in the pilot's fit.json, counted",
        _lost_answers,
    ),
)

REPORT = Report(
    "power",
    sources=(
        "validation/power/power_study.py",
        "validation/power/power_page.py",
        "validation/power/smallest_design.py",
        "validation/power/operating_characteristics.py",
        "validation/power/aims.py",
        "validation/power/pilot.py",
        "validation/costs/observed.py",
    ),
    sentences=(
        Claim("{name} for {effect}, {n} data sets per design", "a count of the rows", _headed),
        Claim(
            "The sampling unit is a repeat: sessions of one mind. The test speaks about that mind "
            "(one language model at one temperature), not about others.",
            "the subjects of all designs",
            _unit(True, only=True),
        ),
        Claim(
            "The sampling unit is a participant; its sessions are repeats and are fitted together. "
            "Seeds of one language model are repeats, not participants.",
            "the subjects of all designs",
            _unit(False, only=True),
        ),
        Claim(
            "Designs of one mind: The sampling unit is a repeat: sessions of one mind. The test "
            "speaks about that mind (one language model at one temperature), not about others.",
            "the subjects of all designs",
            _unit(True, only=False),
        ),
        Claim(
            "Designs of several subjects: The sampling unit is a participant; its sessions are "
            "repeats and are fitted together. Seeds of one language model are repeats, not "
            "participants.",
            "the subjects of all designs",
            _unit(False, only=False),
        ),
        Claim(
            "{subjects} x {sessions} x {trials} (subjects, sessions, trials): {failed} of {n} data "
            "sets failed and count as misses: {why}",
            "counts over the rows of that design, by reason",
            _lost,
        ),
        Claim(
            "{subjects} x {sessions} x {trials} (subjects, sessions, trials): {n} of {of} data "
            "sets: {message}",
            "a count over the rows of that design that did not fail",
            _doubted,
        ),
        Claim("The {name} is {power} ({error}).", "p-values below .05, counted", _only),
        Claim(
            "Of the designs with at least {usual} {name} from which the size of the effect can be "
            "read, {d} has the fewest trials: {power}.",
            "p-values below .05 and intervals that hold the truth, counted for each design",
            _fewest,
        ),
        Claim(
            "Designs with at least {usual} {name}: {n}, but the size of the effect cannot be read "
            "from any of them.",
            "the same",
            _all_unread,
        ),
        Claim(
            "{subjects} x {sessions} x {trials} (subjects, sessions, trials): 95% intervals hold "
            "the true effect in {coverage} of the data sets, and the estimate is off by {bias}. A "
            "test that rejects says here that there is something, not how large it is.",
            "intervals that hold the truth, and mean errors, over the rows of that design",
            _unread,
        ),
        Claim("None of these designs has {usual} {name}.", "the same", _none),
        Claim("How often is {effect} detected?", "the question in the JSON", _effect),
        Claim("How many {find} detect {effect}?", "the question in the JSON", _effect),
        Claim(
            "How often is the 95% interval of {effect} narrower than {width}?",
            "the question in the JSON",
            _effect,
        ),
        Claim(
            "How many {find} make the 95% interval of {effect} narrower than {width}?",
            "the question in the JSON",
            _effect,
        ),
        Claim(
            "How often is shown {effect} to lie within {rope} of the null value?",
            "the question in the JSON",
            _effect,
        ),
        Claim(
            "How many {find} show {effect} to lie within {rope} of the null value?",
            "the question in the JSON",
            _effect,
        ),
        Claim(
            "Precision is the share of data sets whose 95% interval is narrower than {size}.",
            "the JSON, by which rows are counted",
            _means("width"),
        ),
        Claim(
            "Equivalence is the share of data sets whose 90% interval lies within {size} of "
            "{null}: two one-sided tests at 5% (Schuirmann 1987).",
            "the JSON, by which rows are counted",
            _means("rope"),
        ),
        Claim(
            "{size} {find} {verb} the smallest number for {target} {name} ({mass} interval {low} "
            "to {high}): {effect}. A fresh run of {n} data sets has {what} {power}.{rest}",
            "p-values of the fresh run, counted; the JSON",
            _answered,
        ),
        Claim(
            "Even {most} {find} do not reach {target} {name}: there it is {power}. Raise --most, "
            "or change another size of the design.",
            "p-values of the last step, counted",
            _even,
        ),
        Claim(
            "No number of {find} up to {most}: reaches {target} {name}. {message}",
            "the JSON, which has no size",
            _refused,
        ),
        *TAKEN,
        Explanation(
            "To sample a data set of {subjects} subjects takes {seconds} s of CPU: {n} data sets, "
            "some {minutes} minutes, shared by the workers."
        ),
        # Parts that are joined into the sentences above, and labels.
        Explanation("a difference in {measure} of {size} between two groups"),
        Explanation("a difference in {measure} of {size} between two conditions"),
        Explanation("{size} (drawn with sd {sd})"),
        Explanation("{effect}, drawn with sd {sd}"),
        Explanation("a difference of {effect}"),
        Explanation(
            "an R-hat of {worst}, an effective sample size of {least} and {n} divergent draws"
        ),
        Explanation("those of the priors{but}"),
        Explanation("the smallest number of {find} with {target} {name}"),
        Explanation("{n} per step, {replicates} to confirm"),
        Explanation("Not confirmed in {n} fresh runs; the last is shown."),
        Explanation("The search ended before a size was confirmed."),
        Explanation(
            "One step ({step}) of a search for the smallest design; the command is that of all."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Wrong sign and exaggeration (mean "
            "estimated size over true size) are those of the data sets that reject at {level} "
            "(Gelman and Carlin 2014). Data sets that failed count as misses."
        ),
        Explanation(
            "Confirmed: the {name} of the fresh run reaches {target} within two of its Monte-Carlo "
            "errors. In the search {what} is taken to rise as Phi(a + b sqrt(size))."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Data sets that failed count as misses."
        ),
        Explanation(
            "{name} and mean width of the 95% intervals, with 2 standard errors. Dashed: {usual}."
        ),
        Explanation(
            "Share of data sets that reject ({name}), mean width of the 95% intervals, and "
            "exaggeration of the effects that are found, with 2 standard errors. Dashed: {usual}, "
            "and no exaggeration."
        ),
        Explanation(
            "Left: {name} of the designs that were tried, those of one size taken together "
            "(circles), and of the fresh run (square), with 2 standard errors; dashed, the target. "
            "Right: the way of the search. Shaded: the {mass} interval of the answer."
        ),
    ),
)
