from fractions import Fraction
from itertools import product

import pytest

from knownminds.environments.chance.chance import binomial, share_of, uniform_sum


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


def test_a_known_number_moves_the_outcomes_and_no_probability():
    toss = binomial(2, share_of(3))
    both = toss.shifted(2)
    assert both.outcomes == (2, 3, 4)
    assert both.shares == toss.shares == (Fraction(1, 16), Fraction(6, 16), Fraction(9, 16))
    assert toss.outcomes == (0, 1, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("faces", [1, 2, 4, 7, 12])
def test_a_sum_of_dice_is_what_counting_all_throws_gives(n, faces):
    if faces**n > 3000:
        return
    throws = [sum(throw) for throw in product(range(1, faces + 1), repeat=n)]
    chance = uniform_sum(n, faces)
    assert chance.outcomes == tuple(range(n, n * faces + 1))
    assert chance.shares == tuple(
        Fraction(throws.count(outcome), faces**n) for outcome in chance.outcomes
    )


def test_what_is_known_leaves_the_odds_of_the_rest():
    throw = uniform_sum(2, 6)
    even = throw.given(lambda number: number % 2 == 0)
    assert even.outcomes == throw.outcomes
    assert even.shares[0] == Fraction(1, 18)
    assert even.shares[1] == 0
    # To learn two things one after the other is to learn both.
    both = even.given(lambda number: number < 5)
    assert both == throw.given(lambda number: number in (2, 4))
    assert both.shares[:3] == (Fraction(1, 4), Fraction(0), Fraction(3, 4))
    assert throw.given(lambda number: True) == throw
    with pytest.raises(ValueError, match="it holds of none that can come"):
        even.given(lambda number: number == 3)
