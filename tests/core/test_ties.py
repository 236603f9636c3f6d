"""Ranks do not hang on how sums were rounded."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from knownminds.inference.causes.alignment import alignment
from knownminds.inference.causes.domain_differences import domain_differences
from knownminds.inference.measure import t_tests

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
