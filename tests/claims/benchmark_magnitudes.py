"""Sentences of the page of magnitudes.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report

BOOTSTRAPS = (
    " Intervals hold the middle {mass} of {rounds} bootstraps that keep the sessions, as published."
)


def _published(facts, words):
    assert (words["mass"], words["rounds"]) == ("68%", "30")


def _task(facts, words):
    assert words["task"].replace(" ", "_") in set(facts.frames["noise"]["task"])


def _few(facts, words):
    assert int(words["there"]) < int(words["least"])


def _not_told_apart(facts, words):
    assert not facts.frames["steering"][["bias", "variance"]].notna().to_numpy().any()


def _with_intervals(*told):
    return [Claim(one + BOOTSTRAPS, "as published: 68% and 30", _published) for one in told]


REPORT = Report(
    "benchmark magnitudes",
    ("validation/benchmarks/magnitudes.py", "validation/benchmarks/magnitude_figures.py"),
    (
        Explanation(
            "Four tasks, of which three are shown as text, as picture and as both. Answers that "
            "could not be read are left out and counted; a model that sees no pictures has only "
            "texts, and whatever needs pictures has no value."
        ),
        *_with_intervals(
            "1 - slope of the answers on the stimuli within windows: 0 is none, 1 complete, below "
            "0 answers are spread too far. The arrows go from the mean of the lowest and of the "
            "highest third of the stimuli of each window to the mean answer to them.",
            "The weight of the text in the answers to both (linear: fitted to them; by Bayes: what "
            "the spread of the answers, or of their errors, asks for), and the efficiency RRE: "
            "error of such a combination over that of the answers; above 1 the answers are better.",
            "What steering does: bias and variance are the parts of the squared NRMSE; the "
            "evidence for a sequential observer is between 0 and 1.",
            "The weight of the picture in answers to both, fitted to them. Noise blurs pictures "
            "alone: where texts were not asked for again, those of the base condition serve.",
            "NRMSE: error in units of that of a constant answer at the middle of each window. "
            "Evidence for each factor of an observer, between 0 and 1, from the AICs of all "
            "variants.",
            "S is the mean of accuracy A (1 - NRMSE / 2 over tasks), efficiency E (mean of the two "
            "published references) and consistency C (the score, from 0 to 1). A part that lacks a "
            "task, a modality or a condition has no value, and so has S.",
        ),
        Explanation("Noise: what weight do blurred pictures have?"),
        Explanation("regression to the mean: {where}"),
        Explanation("weight of the text: {where}"),
        Explanation("Which features of models go with the composite?"),
        Explanation(
            "How often the prior weight grows where it should, less how often it does not: 5 "
            "comparisons a task, -15 to 15 in all. It cannot be read alone: an observer without "
            "any error earns the maximum, one that never adapts 0 on average with a wide spread, "
            "which is why known minds with the model's own noise stand beside it. A task that "
            "lacks a condition has no score. It counts signs, which turn easily where weights "
            "hardly differ, so that an interval of bootstraps need not hold the score."
        ),
        Claim(
            "Bias and variance are told apart where stimuli were shown several times; none were.",
            "the file: not one of them is known",
            _not_told_apart,
        ),
        Explanation(
            "AIC of each variant of the observers in the base condition, less that of the best; "
            "the file has the parameters of each."
        ),
        Explanation(
            "How much larger the squared error of a random forest is, as a share of the variance "
            "of the composite, when a feature of a model that it has not seen is exchanged for "
            "another model's; with Student's 95% intervals over models. So few models tell little."
        ),
        Explanation(
            "No features of models were given: give a table with the column participant and a "
            "column per feature, and what they tell of the composite stands here."
        ),
        Claim(
            "Importances take {least} models at least with features and a composite; there are "
            "{there}.",
            "both numbers",
            _few,
        ),
        Explanation(
            "Error in the base condition against the evidence for a Bayesian observer, the "
            "efficiency of combining cues and the consistency score; means over tasks."
        ),
        Claim(
            "Weight of the text against blur, {task}: fitted (joined) and deserved (hollow).",
            "the numbers behind it: such a task",
            _task,
        ),
        Explanation(
            "The score (black) among those of known minds with the model's own noise: mean and 2 "
            "standard deviations."
        ),
        Explanation("The composite and its parts; what is missing is not drawn."),
        Explanation(
            "Regression to the mean in the base condition, with all that a task shows: from the "
            "mean of low and of high stimuli to the mean answer, a colour per window."
        ),
        Explanation(
            "Weight of the text in combined answers, by task: fitted, and as references have it."
        ),
        Explanation("Efficiency RRE by task and reference; above the line the answers are better."),
        Explanation(
            "NRMSE in the base condition by task and modality, with bootstrap intervals; grey "
            "line: a constant answer at the middle of each window."
        ),
        Explanation("Bias (squared, a part of the squared NRMSE) under steering, by task."),
        Explanation("Variance (the other part) under steering, by task."),
        Explanation("Evidence for a sequential observer under steering, by task."),
    ),
)
