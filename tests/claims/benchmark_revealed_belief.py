"""Sentences of the page of revealed belief.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

import re

from claims import Claim, Explanation, Report

OVER = (
    "Means over contexts, with Student's 95% intervals over them. Contexts in which too few "
    "answers named an outcome are flagged and left out."
)
BOXES = "quartiles, 10% and 90%, median in orange"
FIRST = " The first {drawn} of {all}."


def _first(facts, words):
    (numbers, *_) = facts.frames.values()
    keys = ["participant", *(["form"] if "form" in numbers else [])]
    assert int(words["all"]) == len(numbers[keys].drop_duplicates()) > int(words["drawn"])


def _guess(facts, words):
    assert float(words["guess"]) == 1 - 1 / 5


def _drawn(facts, words):
    numbers = facts.frames["contexts"]
    assert words["context"] in set(numbers["words"])
    worst = numbers.dropna(subset="manhattan").nlargest(20, "manhattan")
    told = facts.tables[0][2]
    assert [row[4].split(" ")[0] for row in told[: len(worst)]] == [
        f"{m:.3f}" for m in worst["manhattan"]
    ]
    for row in told[: len(worst)]:
        _, low, high = (float(n) for n in re.findall(r"[\d.]+", row[4]))
        assert 0 <= low <= high <= 2  # what chance adds is taken off: the value may lie above


def _shares(facts, words):
    assert len(facts.frames["belief_shares"])


def _what(facts, words):
    assert words["what"] in set(facts.frames["increase"]["what"])


REPORT = Report(
    "benchmark revealed_belief",
    ("validation/benchmarks/revealed_belief.py", "validation/benchmarks/revealed_figures.py"),
    (
        Explanation(
            "A revealed belief is how often each outcome was said behind a text that breaks off "
            "before it, or in reply to a question for it, over all sessions; a stated answer is "
            "the choice among five probabilities. What names no outcome counts against the "
            "retained mass, and a context with too little of it is flagged. Intervals of the "
            "retained mass are Student's 95% over contexts."
        ),
        Explanation(
            "Largest difference from the true probability (Chebyshev), sum of differences "
            "(Manhattan), and Kullback-Leibler divergences in both directions (nats, 1e-6 added to "
            "each share). Shares of few draws are away from the truth by chance alone: the last "
            f"table says how far. {OVER}"
        ),
        *(
            one
            for told in (
                f"Chebyshev distance of the contexts of each part: {BOXES}. Crosses: what as many "
                "draws of the truth show on average.",
                "The same outcome asked both ways: revealed and stated probability against the "
                "true one; on the dashed line they are right.",
            )
            for one in (
                Explanation(told),
                Claim(told + FIRST, "the numbers behind it: so many", _first),
            )
        ),
        *(
            Claim(
                f"Increase over the baseline, {{what}} errors: {BOXES}; 0 is none." + more,
                "the numbers behind it",
                proof,
            )
            for more, proof in (("", _what), (FIRST, _first))
        ),
        Claim(
            "The stated error is the share of questions about a context that were answered by "
            f"another letter than the right one; guessing among five letters has {{guess}}. {OVER}",
            "four of five letters",
            _guess,
        ),
        Claim(
            "Stated error and revealed distance by scenario, with 95% intervals over contexts; "
            "grey line: stated error by guessing ({guess}).",
            "four of five letters",
            _guess,
        ),
        Explanation("No question about a probability was answered, so that nothing is stated."),
        Explanation(
            "What marked outcomes are believed to have more than with a mind of the same "
            "temperature and the other biases, but not this one; an unbiased mind of any "
            "temperature has 0. The marginal reading, which is the published one, is against the "
            "truth, so that temperature and the other biases count as well. Intervals are of 95%, "
            "over contexts."
        ),
        Explanation(
            "Biases: what marked outcomes are believed to have more than an unbiased mind gives "
            "them, with 95% intervals over contexts; 0 is none."
        ),
        Explanation(
            "The error of each context (Chebyshev of revealed beliefs, wrong letters of stated "
            "answers) minus that of the same dice, coins or options when nothing went before and "
            "nothing is known. An independent earlier result should change nothing. " + OVER
        ),
        Explanation(
            "Where something is known of the sum of the dice, some outcomes cannot come: the share "
            f"of the belief that is on them nevertheless. {OVER}"
        ),
        Explanation(
            "Share of the belief on outcomes that cannot come, with 95% intervals over contexts."
        ),
        Explanation(
            "Two options that are equally probable, named in either order: a preference for a name "
            "stays when the order is turned, a preference for what is named first turns with it. "
            "Intervals are Wilson's 95% of the draws."
        ),
        Explanation(
            "Share of heads and of left among equally probable options, by which is named first; "
            "grey line: one half."
        ),
        Explanation(
            "The probability of an outcome as it was stated (mean of the options chosen) and as it "
            "was revealed (share of the draws), against the truth; rank correlations (Spearman) "
            "over the outcomes that were asked about, with 95% bootstrap intervals over contexts, "
            "and mean absolute errors with Student's 95% intervals."
        ),
        Explanation("No answer named an outcome."),
        Claim(
            "Below, {context}: what each model reveals, beside the truth. The table has the "
            "contexts whose beliefs are farthest from the truth, with 95% intervals of their "
            "draws; the file has all, and belief_shares.csv every outcome of each.",
            "the numbers behind it: such a context, and the largest distances",
            _drawn,
        ),
        Claim("{context}: shares of the outcomes.", "the numbers behind it", _shares),
    ),
)
