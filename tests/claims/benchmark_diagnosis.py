"""Sentences of the page of diagnosis.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report

INDEPENDENCE = (
    "I(action; state | belief) in nats by nearest neighbours; null and p from states exchanged "
    "between contexts of nearly the same belief, which is a valid test. The published interval is "
    "symmetric about the estimate (Wald), and the percentile interval of the same row bootstrap "
    "lies above zero for many rational deciders: neither is a test. The gain is the percentage by "
    "which the log-loss of decisions is smaller when the state is known, with and without the "
    "evidence, above what exchanged states give. "
)
ODDS = (
    "Share of the bolder action among two by stated belief, in five bins of it: lines of whoever "
    "maximises expected utility with noise only rise or only fall."
)


def _left(facts, words):
    rows = facts.frames["monotone"]
    assert len(rows[["data_set", "participant"]].drop_duplicates()) >= int(words["left"]) > 0


REPORT = Report(
    "benchmark diagnosis",
    ("validation/benchmarks/diagnosis.py", "validation/benchmarks/diagnosis_figures.py"),
    (
        Explanation(
            "Contexts are drawn from networks that are known, so that the exact probability of the "
            "state is known too. Beliefs, decisions and the parts of an iterated expectation are "
            "asked for apart from each other. Answers that could not be read are left out and "
            "counted."
        ),
        Explanation(
            "Conditional independence: do decisions tell of the state what beliefs do not?"
        ),
        Explanation(INDEPENDENCE + "It is learnt by gradient boosting."),
        Explanation(
            INDEPENDENCE
            + "So many models and data sets are learnt by a decision tree each, which is quick."
        ),
        Explanation(
            "Conditional mutual information by data set and model, with our 95% intervals; "
            "crosses: the value under the hypothesis."
        ),
        Explanation(
            "Of all pairs of five bins of belief, the share in which the first action becomes "
            "rarer against the second although the belief rises, by Fisher's one-sided test at .05 "
            "as published, and corrected by Holm. Pairs of bins in which neither was chosen are "
            "dropped."
        ),
        Explanation(
            "Predictive gain of the state by data set and model, beyond the belief and beyond "
            "belief and evidence, with 95% intervals over contexts."
        ),
        Explanation(
            "Share of pairs of belief bins that fall, corrected by Holm, by data set and model, "
            "with 95% intervals over contexts."
        ),
        Explanation(ODDS),
        Claim(ODDS + " {left} more are in the file.", "the rows of the file", _left),
        Explanation(
            "How far p(x) is from the sum of p(x, z) p(z | x): the median of the distance over "
            "p(x), as published, with its bootstrap interval over contexts, beside that of a "
            "random forest that was trained on exact beliefs; and the mean of the signed "
            "difference with its t test."
        ),
        Explanation(
            "Median ratio of the distance by data set and model, with 95% bootstrap intervals; "
            "grey line: a random forest trained on exact beliefs."
        ),
        Explanation(
            "Standard deviation of plain beliefs within contexts, and root mean square distances "
            "of means over repetitions from the plain ones when a squared or an absolute loss is "
            "told, or to reason by Bayes' rule; intervals are bootstrapped over contexts, p from "
            "answers exchanged within contexts."
        ),
        Explanation(
            "Distance from plain beliefs by data set and model, with 95% intervals over contexts; "
            "a colour per elicitation."
        ),
        Explanation(
            "Root mean square of stated less exact probability, over contexts of equal weight; "
            "intervals are Student's of the mean square, over contexts."
        ),
        Explanation(
            "Mean plain belief by exact probability, in ten bins of it; on the dashed line beliefs "
            "are right."
        ),
        Explanation(
            "The same estimate after stated beliefs were calibrated by isotonic regression of the "
            "state, as in the paper's appendix."
        ),
        Explanation(
            "Utilities (over that of No, in units of choice noise) and the exponent of the weight "
            "of probabilities, fitted to plain beliefs and decisions under the models' own priors, "
            "with 90% intervals. The evidence is Laplace's; above 0 the last but one column speaks "
            "for prospect theory, and beyond 3 strongly. Even 200 contexts x 5 tell the exponent "
            "weakly."
        ),
    ),
)
