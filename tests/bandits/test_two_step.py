import numpy as np
import pandas as pd

from knownminds.environments import Session, Trials, TwoStep, session_stream, stages_of_days
from knownminds.environments.streams import session_uniforms


def tables(environment, n, seed=0):
    uniforms = session_uniforms(seed, [(i,) for i in range(n)], environment.n_draws)
    return environment.tables(uniforms)


def test_a_day_is_a_flight_that_pays_nothing_and_a_deal_where_it_ended():
    environment = TwoStep(10, transition=1.0)
    session = Session(environment, environment.draw(session_stream(3)))
    for action in [1, 0, 0, 1] * 5:
        session.take(action)
    for flight, deal in zip(session.turns[::2], session.turns[1::2], strict=True):
        assert (flight.observation["stage"], flight.observation["state"]) == (0, -1)
        assert flight.reward is None
        assert (deal.observation["stage"], deal.observation["state"]) == (1, flight.action)
        assert deal.reward in (0.0, 1.0)


def test_shuttles_reach_their_planets_as_often_as_told():
    for transition in (0.5, 0.7, 1.0):
        arrives = tables(TwoStep(50, transition=transition), 400)["arrives"]
        assert np.array_equal(arrives[:, ::2], arrives[:, 1::2])
        # Four standard errors.
        error = np.sqrt(transition * (1 - transition) / 20_000)
        assert abs(arrives.mean() - transition) <= 4 * error
    telling = TwoStep(3, transition=0.65, tell_transition=True)
    session = Session(telling, telling.draw(session_stream(3)))
    assert "in 65 of 100 flights" in session.render().text


def test_aliens_pay_with_their_chances_independently_of_each_other():
    table = tables(TwoStep(50, drift=0.0, rates=(0.2, 0.2)), 400)
    gems = table["gems"][:, ::2].reshape(-1, 4)
    n = len(gems)
    assert np.all(np.abs(gems.mean(axis=0) - 0.2) < 4 * np.sqrt(0.2 * 0.8 / n))
    correlation = np.corrcoef(gems.T)[np.triu_indices(4, 1)]
    assert np.all(np.abs(correlation) < 4 / np.sqrt(n))
    table = tables(TwoStep(50), 400)
    residual = (table["gems"] - table["chances"])[:, ::2]
    assert abs(residual.mean()) < 4 * 0.5 / np.sqrt(residual.size)
    # What is paid leans on the chance with slope 1.
    chances = table["chances"][:, ::2] - 0.5
    slope = (table["gems"][:, ::2] * chances).sum() / (chances**2).sum()
    assert abs(slope - 1.0) < 4 * 0.5 / np.sqrt((chances**2).sum())


def test_chances_drift_by_the_step_and_are_reflected_or_in_the_released_code_clipped():
    n, days = 2000, 200
    low, high = 0.25, 0.75
    walks = {
        released: tables(TwoStep(days, released=released), n)["chances"][:, ::2]
        for released in (False, True)
    }
    for released, walk in walks.items():
        assert walk.min() >= low
        assert walk.max() <= high
        # Away from the ends every change is a Normal(0, .025) step.
        inside = np.abs(walk[:, :-1] - 0.5) < 0.1
        steps = np.diff(walk, axis=1)[inside]
        assert abs(steps.std() / 0.025 - 1) < 4 / np.sqrt(2 * len(steps))
        # A reflected walk stays uniform; a clipped one is heaped up at its ends.
        at_end = np.mean((walk[:, -1] == low) | (walk[:, -1] == high))
        assert (at_end > 0.03) == released
    last = walks[False][:, -1].ravel()
    expected = len(last) / 10
    counts = np.histogram(last, bins=10, range=(low, high))[0]
    # Chi-square with 9 degrees of freedom: mean 9, four standard deviations of sqrt(18).
    assert ((counts - expected) ** 2 / expected).sum() < 9 + 4 * np.sqrt(18)
    first = np.histogram(walks[True][:, -1].ravel(), bins=10, range=(low, high))[0]
    assert ((first - expected) ** 2 / expected).sum() > 9 + 4 * np.sqrt(18)


def test_a_reflected_walk_moves_as_one_that_is_turned_back_at_each_step():
    """Folding a free walk afterwards has the same law: compare the correlation of days."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.25, 0.75, 40_000)
    begin = x.copy()
    for _ in range(30):
        x = x + 0.05 * rng.normal(size=len(x))
        x = np.where(x < 0.25, 0.5 - x, np.where(x > 0.75, 1.5 - x, x))
    walk = tables(TwoStep(31, drift=0.05), 10_000)["chances"][:, ::2]
    ours = np.corrcoef(walk[:, 0].ravel(), walk[:, -1].ravel())[0, 1]
    # Fisher's z of either of 40,000 pairs; four standard errors of the difference.
    gap = np.arctanh(ours) - np.arctanh(np.corrcoef(begin, x)[0, 1])
    assert abs(gap) < 4 * np.sqrt(2 / 40_000)


def days(**changes):
    table = pd.DataFrame(
        {
            "subject": ["a", "a", "a", "b"],
            "trial": [0, 1, 2, 0],
            "action1": ["X", "Y", None, "Y"],
            "state": ["X", "X", None, "Y"],
            "action2": ["D", "F", "1", ""],
            "reward": [1, 0, 0, 0],
        }
    )
    for column, (row, value) in changes.items():
        table.loc[row, column] = value
    return table


NAMES = {"shuttles": "XY", "planets": "XY", "aliens": ("DF", "JK")}


def test_a_table_of_days_becomes_one_of_stages():
    trials = Trials.from_frame(stages_of_days(days(), **NAMES), environment=TwoStep(3))
    frame = trials.frame
    assert frame["trial"].tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert frame["stage"].tolist() == [0, 1, 0, 1, 0, 0, 1]
    assert frame["state"].tolist() == [-1, 0, -1, 0, -1, -1, 1]
    assert frame["action"].tolist() == [0, 0, 1, 1, pd.NA, 1, pd.NA]
    assert frame["reward"].fillna(9).tolist() == [9, 1, 9, 0, 9, 9, 9]
    assert (frame["transition"] == 0.7).all()
    assert frame["outcome"].tolist() == ["ok"] * 4 + ["malformed", "ok", "malformed"]
