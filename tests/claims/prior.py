"""Sentences of `prior`.

Facts: a `SimpleNamespace` with `content` (what prior.json holds) and `means` (by panel, the mean of
each mind over the points of the panel, counted by the test).
"""

from __future__ import annotations

import numpy as np

from claims import Claim, Explanation, Report


def _size(facts, words):
    assert int(words["n"]) == facts.content["minds"]
    assert (words["model"], words["place"]) == (
        facts.content["model"],
        facts.content["environment"],
    )


def _range(facts, words):
    title = words["title"]
    if title not in facts.means:  # of these the test counts some
        return
    low, middle, high = np.quantile(facts.means[title], [0.05, 0.5, 0.95])
    for name, value in (("low", low), ("middle", middle), ("high", high)):
        assert abs(float(words[name]) - value) < 0.0051


REPORT = Report(
    "prior",
    sources=("validation/data/prior.py", "validation/data/prior_page.py"),
    sentences=(
        Claim(
            "{n} minds were drawn from the priors of {model}, and each lived a session of {place}.",
            "the JSON",
            _size,
        ),
        Claim(
            "{title} ({what}): half of the minds have a mean below {middle}, and 90% one from "
            "{low} to {high}.",
            "means of each mind over the simulated trials, by pandas",
            _range,
        ),
        Explanation("The priors of {model} in {place}"),
        Explanation(
            "What single minds of the prior do: lines are medians over minds, shaded is what 90% "
            "of them do."
        ),
    ),
)
