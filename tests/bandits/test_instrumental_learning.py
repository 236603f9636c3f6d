import numpy as np

from knownminds.environments import InstrumentalLearning, session_stream


def designs(environment, n, seed=0):
    return [environment.draw(session_stream(seed, i)) for i in range(n)]


def test_a_session_has_its_visits_in_mixed_order():
    environment = InstrumentalLearning()
    assert environment.n_trials == 96
    orders = [design.table["context"] for design in designs(environment, 2)]
    for order in orders:
        assert np.bincount(order).tolist() == [24] * 4
    assert not np.array_equal(*orders)


def test_machines_pay_at_their_rates_independently_of_each_other():
    rates = ((0.0, 1.0), (0.2, 0.7), (0.5, 0.5))
    environment = InstrumentalLearning(200, rates)
    tables = [design.table for design in designs(environment, 50)]
    context = np.concatenate([table["context"] for table in tables])
    payoffs = np.concatenate([table["payoffs"] for table in tables])
    first = np.concatenate([table["first"] for table in tables])
    n = 200 * 50
    for c, pair in enumerate(rates):
        for a, rate in enumerate(pair):
            share = payoffs[context == c, a].mean()
            assert abs(share - rate) <= 4 * np.sqrt(rate * (1 - rate) / n)
        if min(pair) > 0:
            assert abs(np.corrcoef(payoffs[context == c].T)[0, 1]) < 4 / np.sqrt(n)
    assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(3 * n)
    assert abs(np.corrcoef(first, payoffs[:, 0])[0, 1]) < 4 / np.sqrt(3 * n)


def test_what_is_mentioned_first_is_the_action_that_the_design_says():
    for history in ("prompt", "chat"):
        environment = InstrumentalLearning(2, history=history)
        labels = environment.draw(session_stream(3)).labels
        for first in (0, 1):
            letters = labels["machines"][1]
            prompt = environment.render(labels, {"trial": 0, "context": 1, "first": first}, [])
            text = prompt.messages[-1].content
            assert f"machine {letters[first]} and machine {letters[1 - first]}" in text
