"""What a counter shows: Poisson and geometric laws, several earlier counts, and idle facts."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from knownminds.environments.chance.chance import mixed, poisson_up_to, uniform
from knownminds_more.counts.counts import Counts


def law_of(name, mean):
    """Enumerate the law in plain floats, the tail term by term."""
    if name == "poisson":
        terms = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(400)]
    else:
        terms = [(mean / (1 + mean)) ** k / (1 + mean) for k in range(4000)]
    return [*terms[:9], math.fsum(terms[9:])]


def reference(text):
    """Read a text as a person would, and enumerate what it says."""
    name = "poisson" if "gate" in text else "geometric"
    numbers = [float(n) for n in re.findall(r"(\d+(?:\.\d+)?) (?:people|throws miss)", text)]
    two = re.search(r"(\d+) chances in 100", text)
    if not two:
        (mean,) = numbers
        return law_of(name, mean)
    low = numbers[0]
    high = float(re.search(r"the other (\d+(?:\.\d+)?)\.", text).group(1))
    told = re.search(r"(?:showed|counter to) ([\d, and]+)\.", text).group(1)
    earlier = [int(n) for n in re.findall(r"\d+", told)]
    weights = []
    for prior, mean in ((float(two.group(1)) / 100, low), (1 - float(two.group(1)) / 100, high)):
        law = law_of(name, mean)
        weights.append(prior * math.prod(law[k] for k in earlier))
    laws = [law_of(name, mean) for mean in (low, high)]
    return [
        sum(w * law[k] for w, law in zip(weights, laws, strict=True)) / sum(weights)
        for k in range(10)
    ]


@pytest.mark.parametrize(
    "settings",
    [{}, {"means": (0.3, 6.5), "candidates": (0.8, 7.0), "prior": (0.2, 0.8), "n_earlier": 4}],
)
def test_each_text_has_the_law_that_it_tells(settings):
    place = Counts(form="continuation", **settings)
    seen = set()
    for context in place.contexts:
        text = place._text(context.values)
        # The tail is what is missing to 1 here, and a sum of its own there.
        np.testing.assert_allclose(
            context.chance.probabilities, reference(text), rtol=1e-9, atol=1e-13
        )
        seen.add(context.values[4])
    assert seen == {0, 1, 2, 3}


def test_the_predictive_law_is_the_share_among_simulated_worlds():
    place = Counts(kinds="learned", laws="geometric", prior=(0.3, 0.7), n_earlier=2)
    context = place.contexts[0]
    earlier = [count for count in context.values[5:9] if count >= 0]
    rng = np.random.default_rng(0)
    mean = np.where(rng.random(400_000) < 0.3, 1.0, 6.0)
    drawn = rng.geometric(1 / (1 + mean[:, None]), (400_000, 3)) - 1
    same = (drawn[:, :2] == earlier).all(axis=1)
    assert same.sum() > 2000
    shown = np.bincount(np.minimum(drawn[same, 2], 9), minlength=10) / same.sum()
    p = context.chance.probabilities
    error = np.sqrt(p * (1 - p) / same.sum())
    assert np.all(np.abs(shown - p) < 4 * error)  # 10 shares: p = .0006 that one is farther off


def test_evidence_without_influence_leaves_the_truth_as_it_is():
    truths = {}
    for context in Counts().contexts:
        law, mean, _, _, kind, *_ = context.values
        if kind != 2:
            truths.setdefault((law, mean), set()).add(context.chance.shares)
    assert len(truths) == 4
    assert all(len(shares) == 1 for shares in truths.values())


def test_the_tail_is_exact():
    chance = poisson_up_to(Fraction(1, 10), 9)
    by_series = math.fsum(math.exp(-0.1) * 0.1**k / math.factorial(k) for k in range(9, 30))
    assert chance.probabilities[9] == pytest.approx(by_series, rel=1e-12)  # 1e-15 of the whole
    half = mixed((uniform(2), uniform(2)), (Fraction(2), Fraction(1)))
    assert half.shares == (Fraction(1, 2), Fraction(1, 2))
