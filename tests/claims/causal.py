"""Sentences of the causal profile: answers about a collider, by agent and condition.

Facts: a `SimpleNamespace` with `content` (what the JSON holds), `rows` (plain rows with unit, task,
answer, c2, domain and sense), and `reference` (such rows, or None).
"""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np
import pandas as pd
from plain_colliders import ASKED, fitted, left_out
from scipy.stats import friedmanchisquare, kruskal, spearmanr, wilcoxon

from claims import Claim, Explanation, Report

HALF = 5.01e-4  # of the last digit that is told


def _told(word, value, error=HALF):
    if word == "-":
        assert value is None or not np.isfinite(value)
    else:
        assert abs(float(word) - value) <= error


def _unit(facts, name):
    (row,) = [row for row in facts.content["units"] if row["unit"] == name]
    return row


def _read(facts, unit):
    """Rows of a unit as they are to be read, without those that lack an answer."""
    own = facts.rows[facts.rows["unit"] == unit]
    if facts.content["released"] and own["subject"].nunique() > 1:
        means = own.groupby(["domain", "sense", "task"])["answer"].transform("mean")
        own = own.assign(answer=means)
        own = own.drop_duplicates(["domain", "sense", "query", "first", "second", "third"])
    return own


def _held(facts, unit):
    own = _read(facts, unit).dropna(subset="answer")
    second = own["c2"].to_numpy() & (facts.content["scoring"] == "by_cause")
    return own["task"].to_numpy(), own["answer"].to_numpy(), second


def _fit(facts, words):
    tasks, answers, second = _held(facts, words["unit"])
    size = int(words["parameters"])
    best = fitted(tasks, answers, size, second, starts=6)
    names = {3: ("p", "b", "m1"), 4: ("p", "b", "m1", "m2")}[size]
    for name, value in zip(names, best.x, strict=True):
        if words[name] != "-":  # the answers may leave a parameter open
            _told(words[name], value, 2e-3)
    if size == 3:
        assert words["m1"] == words["m2"]
    off = best.fun
    _told(words["mae"], np.abs(off).mean(), 2e-3)
    _told(words["rmse"], np.sqrt((off**2).mean()))
    _told(words["r2"], 1 - (off**2).sum() / ((answers - answers.mean()) ** 2).sum(), 1e-3)
    found = {k: left_out(tasks, answers, k, second, starts=4)[0] for k in (3, 4)}
    assert found[size] >= max(found.values()) - 1e-3
    _told(words["consistency"], found[size], 2e-3)
    if words["determinacy"] != "-":
        strengths = (float(words["m1"]) + float(words["m2"])) / 2
        _told(words["determinacy"], strengths - float(words["b"]), 2 * HALF + HALF)


def _no_fit(facts, words):
    tasks, answers, _ = _held(facts, words["unit"])
    means = [answers[tasks == task].mean() for task in ASKED if task in tasks]
    why = words["note"]
    if why.startswith("answers to"):
        assert int(why.split(" ")[2]) == len(means) < 3
    elif why.startswith("the same mean answer to all tasks"):
        assert np.ptp(means) == 0
    else:
        assert why.startswith("some task cannot be predicted from the others")
        assert len(means) >= 3
    assert _unit(facts, words["unit"])["reasoning_consistency"] is None


def _difference(facts, unit, plus, minus):
    own = _read(facts, unit)
    cell = ["domain", "sense", "c2"]
    if facts.content["released"]:
        own = own.assign(c2=False)
    cells = own.groupby([*cell, "task"])["answer"].mean().unstack("task")
    if not {plus, minus} <= set(cells):
        return np.nan
    return (cells[plus] - cells[minus]).mean()


def _measures(facts, words):
    unit = words["unit"]
    own = facts.rows[facts.rows["unit"] == unit]
    assert int(words["answers"]) == own["answer"].notna().sum()
    assert int(words["missing"]) == own["answer"].isna().sum()
    _told(words["text"], _difference(facts, unit, "VII", "VI"))
    _told(words["numbers"], _difference(facts, unit, "VIII", "VI"))
    violation = _difference(facts, unit, "IV", "V")
    _told(words["violation"], violation)
    expected = "not known" if np.isnan(violation) else "complies"
    if abs(violation) > 0.05:
        expected = "violates"
    assert words["word"] == expected


def _gap(facts, words):
    """Cells are named as "VIII in weather ppp C1"; three of them, and how many more there are."""
    named = re.fullmatch(r"(.*?)(?: and (\d+) more)?", words["cells"] + words["more"])
    own = _read(facts, facts.unit)
    told = named[1].split(", ")
    for cell in told:
        task, _, place = cell.partition(" in ")
        domain, sense, *asked = place.split(" ")
        there = own[(own["task"] == task) & (own["domain"] == domain) & (own["sense"] == sense)]
        if asked:
            there = there[there["c2"] == (asked[0] == "C2")]
        assert there["answer"].notna().sum() == 0
    more = int(named[2] or 0)
    assert len(told) + more == _unit(facts, facts.unit)["incomplete"]
    assert (len(told) == 3) == (len(told) + more >= 3)


def _aligned(facts, words):
    own = _read(facts, words["unit"])
    wanted = ["domain", "sense", "task"] + ([] if facts.content["released"] else ["c2"])
    theirs = facts.reference.groupby(wanted)["answer"].mean().round(12)
    if not facts.content["released"]:
        own = own.groupby(wanted, as_index=False)["answer"].mean()
    both = own.join(theirs.rename("theirs"), on=wanted).dropna(subset=["answer", "theirs"])
    assert int(words["items"]) == len(both)
    rho = spearmanr(both["answer"].round(12), both["theirs"]).statistic
    _told(words["rho"], rho)
    assert float(words["low"]) <= float(words["rho"]) <= float(words["high"])
    assert words["reference"] == facts.content["reference"]


def _p_values(facts, words):
    """By what is tested, the p values of plain tests, adjusted by a walk from the largest."""
    what = re.fullmatch(r"(.*?)(?: \((.*)\))?(, question by question)?", words["what"])
    family, condition, matched = what.groups()
    agent = facts.content["agent"]
    rows = facts.rows
    rows = pd.concat([_read(facts, unit) for unit in rows["unit"].unique()])
    if condition:
        where = rows[facts.content["conditions"]].astype(str).agg(", ".join, axis=1)
        rows = rows[where == condition]
    of, across = ("domain", agent) if family == "agents within a domain" else (agent, "domain")
    found = {}
    for name, part in rows.dropna(subset="answer").groupby(of):
        items = ["domain", "sense", "c2", "task", agent]
        items.remove(across)
        wide = part.groupby([*items, across])["answer"].mean().unstack(across)
        samples = [part.loc[part[across] == g, "answer"] for g in part[across].unique()]
        if matched:
            samples = [wide.dropna()[g] for g in wide]
        if len(samples) < 2 or not len(samples[0]):
            continue
        if np.ptp(np.concatenate(samples)) == 0 or (
            matched and all(np.array_equal(s, samples[0]) for s in samples)
        ):
            continue
        if matched and len(samples) == 2:
            ways = {"zero_method": "pratt", "method": "asymptotic"}
            found[str(name)] = wilcoxon(*samples, **ways).pvalue
        else:
            found[str(name)] = (friedmanchisquare if matched else kruskal)(*samples).pvalue
    ordered = sorted(found, key=found.get, reverse=True)
    adjusted, least = {}, 1.0
    for place, name in enumerate(ordered):
        least = min(least, found[name] * len(found) / (len(found) - place))
        adjusted[name] = least
    return adjusted


def _rejected(facts, words):
    adjusted = _p_values(facts, words)
    hit = [name for name, p in adjusted.items() if p < 0.05]
    assert (int(words["hit"]), int(words["made"])) == (len(hit), len(adjusted))
    if "which" in words:
        assert sorted(words["which"].split(", ")) == sorted(hit)
    else:
        assert len(hit) == 0 or len(hit) > 6


def _none_made(facts, words):
    assert not _p_values(facts, words)


def _ends(facts, words):
    """Sizes anew: mean absolute differences of paired units by the spread over all units."""
    agent, factor = facts.content["agent"], words["factor"]
    others = [name for name in facts.content["conditions"] if name != factor]
    units = facts.content["units"]
    quantities = ["p", "b", "m1", "m2", "r2", "reasoning_consistency", "determinacy"]
    quantities += ["explaining_away", "explaining_away_released", "markov_violation"]
    levels = list(dict.fromkeys(row[factor] for row in units))
    sizes = []  # quantity, agent, pair of levels, size
    for quantity in quantities:
        known = [row[quantity] for row in units if row[quantity] is not None]
        spread = np.std(known, ddof=1) if len(known) > 1 else np.nan
        for i, first in enumerate(levels):
            for second in levels[i + 1 :]:
                for who in dict.fromkeys(row[agent] for row in units):
                    pairs = []
                    mine = [row for row in units if row[agent] == who]
                    for key in {tuple(row[o] for o in others) for row in mine}:
                        at = {
                            row[factor]: row[quantity]
                            for row in mine
                            if tuple(row[o] for o in others) == key
                        }
                        if at.get(first) is not None and at.get(second) is not None:
                            pairs.append(at[second] - at[first])
                    if pairs:
                        size = abs(np.mean(pairs)) / spread if spread > 0 else 0.0
                        sizes.append((quantity, who, (first, second), size))
    for k in (0, 1):
        by = {}
        for key, some in groupby(sorted(sizes, key=lambda s: s[k]), key=lambda s: s[k]):
            rows = list(some)
            if k == 0:
                pairs = {p for *_, p, _ in rows}
                by[key] = np.mean([np.mean([r[3] for r in rows if r[2] == p]) for p in pairs])
            else:
                named = {q for q, *_ in rows}
                by[key] = np.mean([np.mean([r[3] for r in rows if r[0] == q]) for q in named])
        if words["most"] in by:
            assert by[words["most"]] == max(by.values())
            assert by[words["least"]] == min(by.values()) < max(by.values())
            return
    raise AssertionError(f"neither a quantity nor an agent is called {words['most']}")


def _flag(name, value):
    def proof(facts, words):
        assert facts.content[name] == value

    return proof


def _both(*proofs):
    def proof(facts, words):
        for one in proofs:
            one(facts, words)

    return proof


def _agents(facts, words):
    named = {row[facts.content["agent"]] for row in facts.content["units"]}
    assert int(words["shown"]) == 10 < len(named) == int(words["agents"])


def _many(facts, words):
    named = {row[facts.content["agent"]] for row in facts.content["units"]}
    assert len(named) > int(words["n"]) == 30


def _factor(facts, words):
    assert words["factor"] in facts.content["conditions"]
    assert len({row[words["factor"]] for row in facts.content["units"]}) > 1
    least = min(
        (abs(r["markov_violation"]) for r in facts.content["units"] if r["complies"] is False),
        default=np.inf,
    )
    most = max(
        (abs(r["markov_violation"]) for r in facts.content["units"] if r["complies"]), default=0.0
    )
    assert most <= float(words["compliant"]) < least


def _correlated(domains):
    def proof(facts, words):
        table = facts.content["alignment"]
        assert words["reference"] == facts.content["reference"]
        told = {row["domain"] for row in table}
        assert (len(told) > 1) == domains == (facts.rows["domain"].nunique() > 1)

    return proof


def _first(facts, words):
    rows = max(len(table) for table in facts.content.values() if isinstance(table, list))
    assert int(words["shown"]) == 60 < int(words["all"].replace(",", "")) <= rows


def _cells(facts, words):
    released = facts.content["released"]
    assert words["cells"] == ("domain, sense" if released else "domain, sense, direction")
    for row in facts.content["units"]:
        own = _read(facts, row["unit"])
        own = own.assign(c2=False) if released else own
        lost = set()
        for plus, minus in (("VII", "VI"), ("VIII", "VI"), ("IV", "V")):
            asked = own[own["task"].isin([plus, minus])]
            cells = asked.groupby(["domain", "sense", "c2"])
            for name, part in cells:
                for task in (plus, minus):
                    if part.loc[part["task"] == task, "answer"].notna().sum() == 0:
                        lost.add((name, task))
        assert row["incomplete"] == len(lost)


DRAWN = (
    "Answers (means, joined; where there are several with 95% intervals) against the noisy-OR "
    "fitted to them (dashed), by task. Both directions of a task are averaged and written as that "
    "about C1. A slope from IV to V is a Markov violation; a rise from VI to VIII is explaining "
    "away."
)
RANKED = "Rank correlation with {reference}, with 95% bootstrap intervals over items."

REPORT = Report(
    "causal profile",
    sources=("validation/causes/causal_profile.py", "validation/causes/causal_page.py"),
    sentences=(
        Claim(
            "{unit}: {parameters} parameters, p {p}, b {b}, m1 {m1}, m2 {m2}, MAE {mae}, RMSE "
            "{rmse}, R2 {r2}; consistency {consistency}, determinacy {determinacy}",
            "SciPy's least squares on the rows, with and without each task, of 3 and 4 parameters",
            _fit,
        ),
        Claim("{unit}: no noisy-OR is told, {note}", "the tasks that the rows answer", _no_fit),
        Claim(
            "{unit}: explaining away {text} (VIII - VI: {numbers}), Markov violation {violation} "
            "({word}); {answers} answers, {missing} missing",
            "means of the rows by cell, and counts of rows",
            _measures,
        ),
        Claim(
            "no answer to {cells}{more}",
            "rows of the cells that are named",
            _gap,
        ),
        Claim(
            "alignment with {reference} ({unit}): rho {rho} (95% {low} to {high}), {items} items",
            "SciPy's rank correlation of the rows with means of the reference's rows",
            _aligned,
        ),
        Claim(
            "{what}: {hit} of {made} tests reject at 5% after adjustment",
            "SciPy's tests of the rows, adjusted by hand",
            _rejected,
        ),
        Claim(
            "{what}: {hit} of {made} tests reject at 5% after adjustment: {which}",
            "SciPy's tests of the rows, adjusted by hand",
            _rejected,
        ),
        Claim("{what}: no test could be made", "SciPy's tests of the rows", _none_made),
        Claim(
            "{factor}: {most} changes most, {least} least",
            "differences of the units in the JSON, paired by hand",
            _ends,
        ),
        Claim(
            "As in Dettki (2025): an agent's answers together, of several subjects the means of "
            "each domain, sense and task.",
            "the options in the JSON; the fits above are of such means",
            _flag("released", True),
        ),
        Claim(
            "Questions about C2 are answered by the formula of C1.",
            "the options in the JSON; the fits above are by that formula",
            _flag("scoring", "pooled"),
        ),
        Explanation(DRAWN),
        Claim(
            DRAWN + " The first {shown} of {agents} agents.",
            "a count over the units of the JSON",
            _agents,
        ),
        Claim(
            "Parameters and measures over {factor}: a line per agent, averaged over other "
            "conditions; in black, of several agents, the mean of those with a value everywhere. "
            "Grey: no explaining away (line), and violations of up to {compliant} to either side, "
            "which pass for none (band).",
            "levels and violations of the units in the JSON",
            _factor,
        ),
        Claim(RANKED, "domains of the rows", _correlated(False)),
        Claim(
            RANKED + " Filled: all domains; hollow: each domain.",
            "domains of the rows",
            _correlated(True),
        ),
        Claim(
            RANKED + " The first {shown} of {all} agents and conditions.",
            "a count over the units of the JSON",
            _both(_correlated(False), _first),
        ),
        Claim(
            RANKED + " Filled: all domains; hollow: each domain. The first {shown} of {all} agents "
            "and conditions.",
            "a count over the units of the JSON",
            _both(_correlated(True), _first),
        ),
        Claim("{title} (the first {shown} of {all})", "a count over the table", _first),
        Claim(
            "A unit is an agent in a condition: all its answers are fitted and measured together. "
            "The noisy-OR with 3 parameters (one strength) or 4 is told, whichever predicts "
            "left-out tasks better. Cells ({cells}) weigh the same in explaining away and Markov "
            "violation; those that lack an answer are left out and counted.",
            "a count of the rows by cell and task",
            _cells,
        ),
        Claim(
            "Questions about C2 are answered by the formula of C1: strengths m1 and m2 that differ "
            "tell that effects and causes are judged differently, not that causes differ.",
            "the options in the JSON",
            _flag("scoring", "pooled"),
        ),
        Claim(
            "The strengths m1 and m2 are those of the causes C1 and C2.",
            "the options in the JSON; the fits above are by cause",
            _flag("scoring", "by_cause"),
        ),
        Claim(
            "As in Dettki (2025): an agent that is several subjects has the mean of each domain, "
            "sense and task, whichever cause was asked about, in place of single answers; what is "
            "said of answers by task, and how many there are, is of single ones.",
            "the options in the JSON; the fits above are of such means",
            _flag("released", True),
        ),
        Explanation(
            "Consistency falls with noise as well as with inconsistency, and rises with the number "
            "of answers: compare it between units that answered as many questions."
        ),
        Claim(
            "An item of the alignment is a single answer, set against the reference mean of its "
            "domain, sense and task.",
            "the options in the JSON; the items above are counted so",
            _flag("released", True),
        ),
        Claim(
            "An item of the alignment is a question; repeated answers to it are averaged.",
            "the options in the JSON; the items above are counted so",
            _flag("released", False),
        ),
        Explanation(
            "Differences: Kruskal-Wallis over all answers, as published; p adjusted by Benjamini "
            "and Hochberg over the tests of the same kind and condition. It takes the spread "
            "between tasks for noise, and so rejects too seldom where tasks are far apart; the "
            "matched test compares the same questions (Friedman; of two groups Wilcoxon). Pairs "
            "are adjusted among those of the same agent or domain."
        ),
        Claim(
            "Pairs were compared only in conditions of up to {n} agents.",
            "a count over the units of the JSON",
            _many,
        ),
        Explanation(
            "Changes: p adjusted by Benjamini and Hochberg over all rows. Size: mean absolute "
            "difference in standard deviations of the quantity over all units, so that quantities "
            "can be compared."
        ),
    ),
)
