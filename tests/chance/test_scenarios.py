import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Choice, Coins, Dice, Preference, Trials
from knownminds.inference.performance import performance

PLAYED = (
    Dice(2, 4),
    Dice(1, 12, kinds=("independent", "observation")),
    Coins(3, weights=(1, 7)),
    Coins(2, faces="tails", kinds="single"),
    Choice(2),
    Preference(pairs="left_right"),
    Dice(1, 6, form="stated"),
    Coins(2, form="stated", distractors="plausible"),
)
STATES = AGENTS["belief_sampler_stated"]


def lived(place, n=3, known=0.7):
    theta = np.tile(STATES.parameters.constrain(np.zeros(len(STATES.parameters))), (n, 1))
    theta[:, STATES.parameters.index("known")] = known
    return simulate(STATES, theta, place, 1)


@pytest.mark.parametrize("place", PLAYED, ids=repr)
def test_an_experiment_is_made_anew_from_its_trials(place):
    trials = lived(place)
    found = type(place).as_played(trials.frame)
    changed = {"distractors": place.distractors}  # trials do not tell them
    assert found.settings | changed == place.settings
    # Its checks let them pass, as those of the standard experiment do not.
    Trials.from_frame(trials.to_frame(), environment=found)
    assert type(place).as_played(trials.frame[["subject", "action"]]).settings == (
        type(place)().settings
    )


def test_performance_is_the_share_of_right_letters_and_nothing_where_outcomes_are_told():
    n, known = 200, 0.7
    found = performance(lived(place := Dice(1, 6, form="stated"), n, known), place)
    # All other letters are as probable as the right one.
    assert abs(found.value - (known + (1 - known) / 5)) < 4 * found.standard_error
    assert place.performance_bounds is not None
    assert Dice(1, 6).performance_bounds is None
    assert np.isnan(Dice(1, 6).performance(lived(Dice(1, 6)))).all()
