"""Coins whose tosses hang on each other: exact joint laws, and correlations that coins can have."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

from knownminds.environments.chance.chance import chained
from knownminds_more.counts.linked_coins import LinkedCoins


def odds(text, face):
    """Return the probability of a face by itself, from the words."""
    found = re.search(r"(\d+) times as often", text)
    k = int(found.group(1)) if found else 1
    return k / (k + 1)


def reference(text):
    """Enumerate all rows of coins with what a text tells of each toss."""
    n = int(re.search(r"tosses (\d+) coins", text).group(1))
    face = re.search(r"number of (\w+) in", text).group(1)
    hits, of_hits, misses, of_misses = map(
        int, re.search(r"in (\d+) of (\d+) cases;.*in (\d+) of (\d+) cases", text).groups()
    )
    first = re.search(r"first coin shows (\w+)", text)
    p = odds(text, face)
    shares = [0.0] * (n + 1)
    for row in itertools.product((True, False), repeat=n):
        if first and row[0] != (first.group(1) == face):
            continue
        weight = p if row[0] else 1 - p
        for before, now in itertools.pairwise(row):
            again = hits / of_hits if before else misses / of_misses
            weight *= again if now else 1 - again
        shares[sum(row)] += weight
    return [share / sum(shares) for share in shares]


@pytest.mark.parametrize("n_coins", [2, 3, 4])
def test_each_text_has_the_law_that_it_tells(n_coins):
    place = LinkedCoins(n_coins, form="continuation", correlations=(-0.5, 0.0, 0.37, 1.0))
    for context in place.contexts:
        np.testing.assert_allclose(
            context.chance.probabilities, reference(place._text(context.values)), atol=1e-15
        )


def test_coins_have_the_correlation_that_was_set():
    # Of all pairs: r between neighbours, r^2 two apart; each comes up with p.
    p, r = Fraction(2, 3), Fraction(-2, 5)
    after = {1: p + r * (1 - p), 0: p * (1 - r)}
    joint = {}
    for row in itertools.product((0, 1), repeat=3):
        weight = p if row[0] else 1 - p
        for before, now in itertools.pairwise(row):
            weight *= after[before] if now else 1 - after[before]
        joint[row] = weight
    for i, j, wanted in ((0, 1, r), (1, 2, r), (0, 2, r * r)):
        means = [sum(w * row[k] for row, w in joint.items()) for k in (i, j)]
        both = sum(w * row[i] * row[j] for row, w in joint.items())
        assert means == [p, p]
        assert (both - p * p) / (p * (1 - p)) == wanted
    summed = [sum((w for row, w in joint.items() if sum(row) == k), Fraction(0)) for k in range(4)]
    assert list(chained(3, p, r).shares) == summed
    known = [w / p for row, w in joint.items() if row[0]]
    assert sum(known) == 1
    assert chained(3, p, r, True).shares[3] == joint[1, 1, 1] / p
