from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from knownminds.environments import Chance
from knownminds.environments.chance import binomial, share_of


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("weight", [1, 2, 3, 5])
def test_a_binomial_is_what_counting_equally_likely_cases_gives(n, weight):
    # A coin with weight k to 1 is a fair die with k sides of one kind and one of the other.
    die = [1] * weight + [0]
    counts = [0] * (n + 1)
    for throw in product(die, repeat=n):
        counts[sum(throw)] += 1
    chance = binomial(n, share_of(weight))
    assert chance.outcomes == tuple(range(n + 1))
    assert chance.shares == tuple(Fraction(count, len(die) ** n) for count in counts)


@pytest.mark.parametrize(("share", "outcome"), [(Fraction(0), 0), (Fraction(1), 3)])
def test_what_is_certain_has_all_the_probability(share, outcome):
    assert binomial(3, share).shares[outcome] == 1


def test_a_known_number_moves_the_outcomes_and_no_probability():
    toss = binomial(2, share_of(3))
    both = toss.shifted(2)
    assert both.outcomes == (2, 3, 4)
    assert both.shares == toss.shares == (Fraction(1, 16), Fraction(6, 16), Fraction(9, 16))
    assert toss.outcomes == (0, 1, 2)


def test_probabilities_are_the_nearest_numbers_of_double_precision():
    chance = binomial(3, share_of(5))
    assert chance.probabilities.dtype == np.float64
    assert chance.probabilities.tolist() == [1 / 216, 15 / 216, 75 / 216, 125 / 216]


@pytest.mark.parametrize(
    ("outcomes", "shares", "rule"),
    [
        ((1, 0), (Fraction(1, 2),) * 2, "go up"),
        ((1, 1), (Fraction(1, 2),) * 2, "go up"),
        ((0, 1), (Fraction(1),), "Each outcome has a probability"),
        ((0, 1), (Fraction(-1, 2), Fraction(3, 2)), "from 0 on"),
        ((0, 1), (Fraction(1, 2), Fraction(1, 3)), "sum of 5/6"),
        ((), (), "Each outcome has a probability"),
    ],
)
def test_what_is_no_distribution_is_refused(outcomes, shares, rule):
    with pytest.raises(ValueError, match=rule):
        Chance(outcomes, shares)
