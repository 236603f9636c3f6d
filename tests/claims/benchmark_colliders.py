"""Sentences of the collider benchmark's page.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report

STORIES = "Intervals are of 95%, by leaving out each story (domain and sense) in turn."
CELLS = "Intervals are Student's of 95%, over cells (domain, sense, direction)."
PURPLE = " People are in purple."
DRAWN = (
    "Consistency of models by setting and prompt: quartiles and whiskers to 1.5 times their "
    "distance, and each model.",
    "Consistency of each model.",
    "Determinacy of each model.",
    "Huber loss of the fits by setting.",
    "RMSE of the fits by setting.",
    "Explaining away, VIII - VI, of each model.",
    "Markov violation, IV - V, of each model.",
    "Scores against release dates: a mark per setting, a colour per prompt.",
)
SCATTER = (
    "Explaining away (VIII - VI) against Markov violations, a panel per setting, a number per "
    "model as in the table; bars are 95% intervals. Grey: violations of up to {size} to either "
    "side, which pass for none."
)
PREDICTIONS = (
    "Answers to the eleven tasks ({setting}): means with 95% intervals, joined; dashed, the "
    "noisy-OR fitted to them."
)
PARAMETERS = (
    "The noisy-OR with 3 parameters (m1 = m2) or 4, whichever foretells left-out tasks better, "
    "best fit first. "
)


def _setting(facts, words):
    (numbers,) = facts.frames.values()
    assert words["setting"] in set(numbers["setting"])


def _first(facts, words):
    _setting(facts, words)
    (numbers,) = facts.frames.values()
    own = numbers[numbers["setting"] == words["setting"]]
    assert int(words["models"]) == own["participant"].nunique() > int(words["drawn"])


def _factor(facts, words):
    assert words["factor"] in set(facts.frames["contrasts"]["factor"])


def _zone(facts, words):
    assert float(words["size"]) == 0.05


def _distribution(facts, words):
    _setting(facts, words)


def _dated(facts, words):
    (numbers,) = facts.frames.values()
    assert numbers["release_date"].notna().all()
    assert int(words["left"]) > 0


REPORT = Report(
    "benchmark colliders",
    ("validation/benchmarks/colliders.py", "validation/benchmarks/collider_figures.py"),
    (
        Explanation(
            "A setting is what the questions are about (stories, or names that mean nothing) and "
            "what was added to them; a prompt asks for a number alone, or for thoughts before it. "
            "Answers that could not be read are counted and left out; nothing is put in their "
            "place."
        ),
        Explanation("Domains: do judgements depend on what the story is about?"),
        Explanation(
            "Tests of Kruskal and Wallis over all answers, as published, adjusted by Benjamini and "
            "Hochberg within a condition. They take the spread between tasks for noise, and so "
            "reject too seldom; the matched p compares the same questions (Friedman; of two groups "
            "Wilcoxon). Of abstract settings the kind of names is the domain. Pairs of models are "
            "in domain_pairs.csv."
        ),
        Explanation(
            "No judgements of people were given, and none ship: give them as a table of trials or "
            "of means, and each model's rank correlation with them stands here, by domain."
        ),
        Explanation(
            "Spearman's rank correlation of a model's answers with the mean answers of people to "
            "the same questions, pooled and by domain, with 95% percentile intervals of 2000 "
            "bootstrap resamples over items. Only stories are shared with people."
        ),
        Explanation(
            "Rank correlation with people, pooled and by domain, with 95% bootstrap intervals; "
            "models in the order of the highest."
        ),
        Explanation(
            "Both directions of a task are averaged and written as that about C1. A slope from IV "
            "to V is a Markov violation; a rise from VI to VIII is explaining away."
        ),
        Claim(PREDICTIONS, "the numbers behind it: such a setting", _setting),
        Claim(
            PREDICTIONS + " The first {drawn} of {models} models.",
            "the numbers behind it: such a setting, so many models",
            _first,
        ),
        Explanation(
            "How far the answers are from the leaky noisy-OR that is nearest to them, on a scale "
            f"from 0 to 1 (loss: half the squared error). {STORIES}"
        ),
        Explanation(
            "R2 of the mean answers to the eleven tasks, each foretold by the noisy-OR that is "
            "fitted to the other ten; with 3 parameters or 4, whichever foretells better. It falls "
            f"with noise as well as with inconsistency. {STORIES}"
        ),
        Explanation(
            "The text of the paper defines explaining away as VII - VI, its numbers are VIII - VI: "
            "both are here. The Markov violation is IV - V with its sign. All from raw answers as "
            f"shares of 1, averaged over cells of equal weight. {CELLS}"
        ),
        Explanation(
            "Mean causal strength minus leak of the fitted noisy-OR, from -1 to 1, against "
            "consistency, explaining away and Markov violations in all settings. " + STORIES
        ),
        Explanation(
            "Determinacy against consistency, explaining away (VIII - VI) and Markov violations: a "
            "mark per setting, a colour per prompt; points of one model are joined, so that a "
            "small figure is a robust model."
        ),
        *(Explanation(told + more) for told in DRAWN for more in ("", PURPLE)),
        *(
            Claim(SCATTER + more, "what passes for no violation, 0.05", _zone)
            for more in ("", PURPLE)
        ),
        Explanation(
            "Shares of answers at or below each point of the scale, by domain; answers heap at the "
            "ends and in the middle, for which the loss is Huber's."
        ),
        Claim(
            "Distribution functions of the answers ({setting}), a panel per domain and prompt, a "
            "line per model.",
            "the numbers behind it: such a setting",
            _distribution,
        ),
        Explanation(
            "No release date of these models was given: give a table of features with the columns "
            "participant and release_date, and their scores are drawn against it."
        ),
        Explanation("Each score against the date on which the model was released."),
        Claim(
            "Each score against the date on which the model was released. {left} without a date "
            "are left out.",
            "the numbers behind it: none is without a date",
            _dated,
        ),
        Explanation(
            "Differences between settings (averaged over prompts) and between prompts (averaged "
            "over settings), within models; intervals are Student's over models, p adjusted by "
            "Benjamini and Hochberg over all rows. Size: mean absolute difference in standard "
            "deviations."
        ),
        Claim(
            "Parameters and measures by {factor}: a line per model, averaged over the other "
            "condition; in black the mean of models with a value everywhere.",
            "the numbers behind it: such a factor",
            _factor,
        ),
        Explanation(
            "First condition minus second, for each parameter of the fits; the models that change "
            "most and least. The file has 95% intervals, for which stories that both conditions "
            "share are left out of both together."
        ),
        Explanation(
            PARAMETERS + "The strengths m1 and m2 are those of the causes C1 and C2. The file also "
            f"has the one with 5. {STORIES}"
        ),
        Explanation(
            PARAMETERS + "Questions about C2 are answered by the formula of C1, as published: "
            "strengths that differ tell that effects and causes are judged differently. The file "
            f"also has the one with 5. {STORIES}"
        ),
    ),
)
