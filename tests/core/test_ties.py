"""Ranks do not hang on how sums were rounded: wherever they are taken, `tied` comes first."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from knownminds.inference.causes.alignment import alignment
from knownminds.inference.causes.domain_differences import domain_differences
from knownminds.inference.measure import t_tests
from knownminds.inference.ties import tied


def means_of(rows):
    """Means of whole answers from 0 to 100 as shares of 1, in floats and exactly."""
    floats = np.array([np.mean([answer / 100 for answer in row]) for row in rows])
    return floats, [Fraction(sum(row), 100 * len(row)) for row in rows]


def test_means_are_equal_where_they_are_equal_as_fractions_and_only_there():
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 101, rng.integers(1, 40)).tolist() for _ in range(4000)]
    floats, exact = means_of(rows)
    assert len(np.unique(floats)) > len(set(exact))  # rounding parts some
    joined = tied(floats)[0]
    assert len(np.unique(joined)) == len(set(exact))
    order = np.argsort(joined, kind="stable")
    assert all(exact[i] <= exact[j] for i, j in pairwise(order))


# Of the same answers, in another order: .1 + .2 + .3 is not .3 + .2 + .1 in floats.
ORDERS = ([10, 20, 30], [30, 20, 10])


def judged(agents):
    """Answers of agents to four items: by agent, a list of answers to each."""
    return pd.DataFrame(
        {
            "subject": agent,
            "domain": domain,
            "sense": "ppp",
            "direction": "C1",
            "task": f"T{item}",
            "answer": answer / 100,
        }
        for agent, domains in agents.items()
        for domain, items in domains.items()
        for item, answers in enumerate(items)
        for answer in answers
    )


@pytest.mark.parametrize("turn", [1, -1])
def test_an_agent_whose_answers_come_in_another_order_is_aligned_as_much(turn):
    first, second = ORDERS[::turn]
    trials = judged({"one": {"weather": [first, second, [50], [70]]}})
    reference = judged({"people": {"weather": [[20], [20], [60], [80]]}})
    found = alignment(trials, reference, resamples=1)["rho"][0]
    exact = spearmanr([20, 20, 50, 70], [20, 20, 60, 80]).statistic
    assert found == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("turn", [1, -1])
def test_domains_that_are_answered_in_another_order_do_not_differ(turn):
    first, second = ORDERS[::turn]
    answers = {"a": [first, first, [40]], "b": [second, second, [40]], "c": [first, second, [40]]}
    found = domain_differences(judged({"one": answers}), matched=True)
    assert set(found["status"]) == {"all answers are the same"}


def test_differences_of_one_size_have_no_spread_and_no_test():
    tests = t_tests(np.array([[0.8 - 0.7, 0.3 - 0.2, 0.9 - 0.8, 0.6 - 0.5]]))
    assert tests.mean[0] == pytest.approx(0.1)
    assert np.isnan([tests.standard_error[0], tests.p_value[0]]).all()
