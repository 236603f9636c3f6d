"""Sentences of `design`.

Facts: a `SimpleNamespace` with `content` (the JSON), `rows` (a frame of the fresh run for each of
its designs, in their order; of models one frame per true model, put together), and `costs` (what
each of them costs, reckoned by the test).
"""

from __future__ import annotations

import re

import numpy as np

from claims import Claim, Explanation, Report
from claims.power import TAKEN

NUMBER = r"[-+]?[\d.]+"


def _money(text):
    return float(re.search(r"[\d,.]+\d|\d", text)[0].replace(",", ""))


def _fresh(facts, role):
    """Return the rows and the cost of a design at the whole budget."""
    designs = [d for d in facts.content["designs"] if d["run"] == "fresh"]
    assert len(designs) == len(facts.rows) == len(facts.costs)
    places = [i for i, d in enumerate(designs) if d["role"] == role]
    assert places, role
    return facts.rows[places[-1]], facts.costs[places[-1]]


def _mean(told, rows):
    value, error = map(float, re.fullmatch(r"([\d.]+) \(([\d.]+)\)", told).groups())
    usable = rows.loc[rows["status"] != "failed", "score"]
    assert abs(value - usable.mean()) < 6e-4
    assert abs(error - usable.std() / len(usable) ** 0.5) < 6e-4


def _best(facts, words):
    best = facts.content["best"]
    searched = [d for d in facts.content["designs"] if d["run"] == "search"]
    assert int(words["n"]) == len(searched)
    assert words["judged"] == facts.content["judged_by"]
    told = f"{best['subjects']} x {best['sessions']} sessions of {best['trials']} trials"
    assert told in f"{words['settings']}, {words['size']}, {words['cost']}"
    _mean(words["score"], _fresh(facts, facts.winner)[0])


def _gain(facts, words):
    role = {"shipped design": "shipped", "paper's design": "published"}[words["whose"]]
    rows, cost = _fresh(facts, role)
    mine, _ = _fresh(facts, facts.winner)
    _mean(words["score"], rows)
    assert abs(_money(words["cost"]) - cost) <= 0.006 * cost + 1e-9
    apart = (mine["score"].to_numpy() - rows["score"].to_numpy())[
        ((mine["status"] != "failed") & (rows["status"] != "failed")).to_numpy()
    ]
    half = 1.959964 * apart.std(ddof=1) / len(apart) ** 0.5
    told = [float(words[name]) for name in ("gain", "low", "high")]
    assert np.allclose(told, [apart.mean(), apart.mean() - half, apart.mean() + half], atol=6e-4)


def _found(facts, words):
    gains = [g for g in facts.content["gains"]]
    assert any(f"{gain['score']['value']:+.3f}" == words["gain"] for gain in gains)
    low, high = float(words["low"]), float(words["high"])
    better = low > 0 if facts.content["judged_by"] != "spread" else high < 0
    worse = high < 0 if facts.content["judged_by"] != "spread" else low > 0
    expected = "confirmed" if better else "not confirmed" if worse else "no clear gain"
    assert words["word"] == expected


def _failed(facts, words):
    total = sum(design["failed"] for design in facts.content["designs"])
    assert int(words["n"].replace(",", "")) == total


REPORT = Report(
    "design",
    sources=(
        "validation/design/best_design.py",
        "validation/design/candidates.py",
        "validation/design/design_page.py",
        "validation/design/goals.py",
        "validation/design/measured.py",
    ),
    sentences=(
        Claim(
            "The best of {n} designs for {goal}: {settings}, {size}, {cost}. In fresh data sets "
            "its {judged} is {score}.",
            "means over the rows of the fresh run",
            _best,
        ),
        Claim(
            "The {whose} has {score} for {cost}: the best one's {judged} is {gain} (95% "
            "interval {low} to {high}).",
            "differences of the rows of the fresh run, pair by pair; the cost reckoned anew",
            _gain,
        ),
        Claim(
            "The gain over {whose} is: {word}. In the fresh run its {judged} is {gain} (95% "
            "interval {low} to {high}).",
            "the differences of the sentence before, and on which side of 0 the interval lies",
            _found,
        ),
        Claim(
            "{n} data sets could not be judged and are left out of the means.",
            "the counts of all designs",
            _failed,
        ),
        *TAKEN,
        Explanation("by what the run in {folder} took"),
        Explanation("The budget does not afford the shipped design."),
        Explanation("Which design serves best for {goal}?"),
        Explanation("the smallest expected posterior spread of {names}"),
        Explanation("the largest chance of telling {names} apart"),
        Explanation("the largest power for {effect}"),
        Explanation("{n} designs, {k} data sets each"),
        Explanation("{n} data sets for each design and cost"),
        Explanation("{subjects} x {sessions} sessions of {trials} trials"),
        Explanation("search, the best ten"),
        Explanation("the posterior could not be integrated: its weights are worth too few points"),
        Explanation("The same by recovery: {command}"),
        Explanation(
            "All designs of a round have the same minds and random numbers. After each round but "
            "the last the worse half is left out; the shipped design and the paper's stay. The "
            "fresh run has numbers of its own, and does not enter the search."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Spread: the posterior standard deviation "
            "on the unconstrained scale, in standard deviations of the prior, mean over the named "
            "parameters and over minds. Bits: the expected information about them (mutual "
            "information with the data), by nested Monte Carlo: both integrals by importance "
            "sampling around each data set's mode."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Chance: how often the most probable "
            "model, given the data, is the true one, each being equally probable beforehand. Bits: "
            "the expected information about which one it is."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Power: the share of data sets whose test "
            "rejects at 5%."
        ),
        Explanation(
            "{left}{what} against cost: designs of the search (dots) and, joined, those of the "
            "fresh run, with 2 standard errors. {panels}"
        ),
        Explanation("Right: the expected information."),
    ),
)
