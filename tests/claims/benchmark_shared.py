"""Sentences that the pages of all benchmarks share.

Facts: the section in which the sentence stands; of findings and of lines, the result.
"""

from __future__ import annotations

import numpy as np

from claims import Claim, Explanation, Report


def _counted(facts, words):
    rows = facts.frames["differences"]
    corrected = rows["corrected"].to_numpy(dtype=float)
    untold = ~np.isfinite(corrected)
    apart = corrected < 0.05
    assert int(words["all"]) == len(rows)
    assert int(words["apart"]) == apart.sum()
    assert int(words["alike"]) == (~apart & ~untold).sum()
    assert int(words["untold"]) == untold.sum()
    assert int(words["shown"]) == len(facts.tables[0][2])


def _moved(facts, words):
    rows = facts.frames["stability"].set_index("score")
    assert rows.loc[words["score"], "excess_low"] > 0


def _none_moved(facts, words):
    assert not (facts.frames["stability"].get("excess_low", np.array([])) > 0).any()


def _lived(facts, words):
    shares = {
        (int(rows["status"].isin(["finished", "no readable answer"]).sum()), len(rows))
        for _, rows in facts.cells.groupby("model")
    }
    assert (int(words["done"]), int(words["all"])) in shares


REPORT = Report(
    "benchmarks",
    (
        "validation/benchmarks/comparison.py",
        "validation/benchmarks/stability.py",
        "validation/benchmarks/page.py",
        "validation/benchmarks/shown.py",
    ),
    (
        Explanation(
            "Every score of every two models: the difference with its 95% interval, and a verdict "
            "by the p-value after Holm's correction over all differences on this page. Models that "
            "did not play a cell under the same conditions are not compared in it."
        ),
        Claim(
            "Of {all} comparisons {apart} show a difference, {alike} show none and {untold} could "
            "not be made; the table has the first {shown}, by their p-values, the CSV file all.",
            "the corrected p-values of the file, and the rows of the table",
            _counted,
        ),
        Explanation("{model} has not played {cell}"),
        Explanation("There are no two models to compare."),
        Explanation("How stable are the scores?"),
        Explanation(
            "No cell was played in several wordings, so nothing can be said of how much wording "
            "moves: --paraphrases 3 asks with three."
        ),
        Explanation(
            "Shares of the variance of a score: between models, between wordings for all models "
            "alike, what a wording does to one model and not another, and the error of the score, "
            "which is that of its sessions and trials. Of the performance in a trial sessions and "
            "trials are told apart. Test-retest is the correlation over models of two measurements "
            "in the same wording, reworded that of two in different ones, with 95% intervals. The "
            "last column says what moves a score more, wording (the second and third share "
            "together) or the model, and whether that is beyond the interval."
        ),
        Explanation("{what}, not for certain"),
        Claim(
            "The wording moves {score} more than the choice of the model does, beyond its "
            "interval.",
            "the file: the interval of what wording moves more lies above 0",
            _moved,
        ),
        Claim(
            "No score is moved more by the wording than by the model for certain.",
            "the file: no such interval lies above 0",
            _none_moved,
        ),
        Explanation("knownminds score {folder}/*/{cell} --by model"),
        Claim("has lived {done} of {all} cells", "the rows of the model", _lived),
        Explanation(
            "Known minds live the sessions that models live, as simulated agents whose parameters "
            "stand in the plan. Trials without a readable answer are left out and counted."
        ),
    ),
)
