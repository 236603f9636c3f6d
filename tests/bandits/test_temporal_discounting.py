"""Temporal discounting: the branches of the questionnaire, the grid, words and data."""

import numpy as np
import pytest

from knownminds.environments import Session, TemporalDiscounting, session_stream
from knownminds.environments.bandits.temporal_discounting import DAYS


def answer(environment, choose, seed=3):
    """Live a session in which `choose` maps an observation to an action."""
    session = Session(environment, environment.draw(session_stream(seed)))
    for seen in session:
        assert session.take(choose(seen)).reward is None
    return session.turns


def asked(turns, *fields):
    return [tuple(turn.observation[name] for name in fields) for turn in turns]


def patient(limit):
    """Wait where the later sum is at least so many times the sooner one."""
    return lambda seen: int(seen["later_amount"] >= limit * seen["sooner_amount"])


@pytest.mark.parametrize(
    ("path", "sums"),
    [
        ((1, 1, 1), (550, 510, 505)),
        ((1, 1, 0), (550, 510, 505)),
        ((1, 0), (550, 510)),
        ((0, 1), (550, 600)),
        ((0, 0, 1), (550, 600, 750)),
        ((0, 0, 0), (550, 600, 750)),
    ],
)
def test_a_baseline_climbs_towards_the_switch(path, sums):
    for item, times in ((0, 1), (1, 10), (2, -1)):
        actions = iter([*([0, 1] * item), *path, *[0] * 13])
        turns = answer(TemporalDiscounting(), lambda seen, actions=actions: next(actions))
        own = [turn for turn in turns if turn.observation["item"] == item]
        expected = [(times * 500, 0, times * later, 12) for later in sums]
        fields = ("sooner_amount", "sooner_delay", "later_amount", "later_delay")
        assert asked(own, *fields) == expected
        assert [turn.observation["trial"] for turn in own] == [
            3 * item + k for k in range(len(own))
        ]


@pytest.mark.parametrize(
    ("path", "factor"),
    [
        ((1, 1, 1), 1.01), ((1, 1, 0), 1.02), ((1, 0), 1.1), ((0, 1), 1.2), ((0, 0, 1), 1.5),
        ((0, 0, 0), 1.5),
    ],
)  # fmt: skip
def test_four_items_build_on_the_factor_that_made_the_participant_wait(path, factor):
    actions = iter([*path, *[0] * 13])
    turns = answer(TemporalDiscounting(), lambda seen: next(actions))
    fields = ("item", "sooner_amount", "sooner_delay", "later_amount", "later_delay")
    premium = round(500 * (factor - 1))
    assert asked(turns[-4:], *fields) == [
        (3, 500, 12, 500 + premium, 24),
        (4, 500, 0, 500 + 2 * premium, 24),
        (5, 500, 0, 500 + premium, 12),
        (6, 500, 0, 500 + premium, 12),
    ]


def test_sums_are_rounded_and_not_cut_off():
    # 500 x (1.2 - 1) is 99.99999999999999 in floating point.
    turns = answer(TemporalDiscounting(), patient(1.2))
    environment = TemporalDiscounting()
    text = environment.render((), turns[-2].observation, []).text
    assert "and 100 dollars are added to them" in text
    text = environment.render((), turns[-1].observation, []).text
    assert "You give up 100 of the 600 dollars and have the rest today." in text
    assert "You let 12 months go by and then get 600 dollars." in text


def test_the_grid_asks_every_cell_as_often_as_said():
    environment = TemporalDiscounting(
        "grid", amount=100, shares=(0.25, 0.5), delays=(1, 6, 24), n_repeats=3
    )
    drawn = environment.tables(np.random.default_rng(0).random((5, environment.n_draws)))
    for s in range(5):
        cells = np.column_stack(
            [drawn["sooner_amount"][s], drawn["later_amounts"][s, :, 0], drawn["later_delay"][s]]
        )
        kinds, counts = np.unique(cells, axis=0, return_counts=True)
        assert (counts == 3).all()
        signs = ((25, 100), (50, 100), (-25, -100), (-50, -100))
        assert sorted(map(tuple, kinds)) == sorted((*c, d) for c in signs for d in (1, 6, 24))
    assert not np.array_equal(drawn["later_delay"][0], drawn["later_delay"][1])
    gains = TemporalDiscounting("grid", losses=False)
    assert gains.n_trials * 2 == TemporalDiscounting("grid").n_trials
    assert TemporalDiscounting("grid", n_repeats=2).n_trials == gains.n_trials * 4


@pytest.mark.parametrize("unit", ["day", "days", "months"])
def test_delays_that_are_no_whole_months_are_said_in_days_and_read_back(unit):
    delays = {
        "day": (1 / DAYS, 1 / DAYS + 0.5), "days": (7 / DAYS, 180 / DAYS), "months": (1.0, 6.0)
    }[unit]  # fmt: skip
    pairs = [[30.0, 0.0, 55.0, delays[0]], [30.0, delays[0], 60.0, delays[1]]]
    place = TemporalDiscounting(design="pairs", pairs=pairs)
    session = Session(place, place.draw(session_stream(3)))
    told = []
    for seen in session:
        messages = session.render().messages
        assert place.read(session.design, messages)[1]["later_delay"] == seen["later_delay"]
        told.append(messages[-1].content)
        session.take(0)
    first, second = {"day": (1, None), "days": (7, 180), "months": (1, 6)}[unit]
    later = [f"60 dollars {second}"] if second else []
    for part in (f"55 dollars {first}", f"30 dollars {first}", *later):
        assert f"{part} {unit} from today." in " ".join(told)
