import re

import numpy as np
import pytest

from knownminds.agents import AGENTS
from knownminds.environments import session_stream
from knownminds.inference import MEASURES, Dial, parameter_measure
from knownminds.validation.power.dials import GroupDial, resolve_measure

DUAL = AGENTS["rescorla_wagner_dual"]
BIAS = MEASURES["optimism_bias"]


def dial(measure=BIAS, model=DUAL, sd=None, mean=None):
    parameters = model.parameters
    mean = parameters.mean if mean is None else np.array(mean)
    return GroupDial(measure, model, mean, parameters.sd if sd is None else np.full(len(mean), sd))


@pytest.mark.parametrize("sd", [0.3, 1.0])
@pytest.mark.parametrize("size", [-0.4, 0.1])
def test_a_turned_group_has_the_asked_mean(size, sd):
    # So many minds; 4 standard errors are passed by chance in 6 of 100,000 groups.
    turned = dial(sd=sd, mean=[-0.2, -0.9, 1.0, 0.0])
    (turn,) = turned.turn_to(np.array([size]))
    z = session_stream(1).normal(turned.group_mean + turn * turned.direction, sd, (400_000, 4))
    found = BIAS.truth(DUAL, DUAL.parameters.constrain(z))
    assert abs(found.mean() - size) < 4 * found.std() / 400_000**0.5
    assert (
        abs(found.mean() - size - 0.01) > 4 * found.std() / 400_000**0.5
    )  # an error of .01 would show


def test_the_mean_of_a_skewed_parameter_is_not_that_of_its_middle():
    # exp(z) of a group with mean m and sd s has the mean exp(m + s^2 / 2).
    measure = parameter_measure(DUAL, "beta")
    turned = dial(measure, sd=0.7)
    assert turned.rest == pytest.approx(np.exp(1.0 + 0.7**2 / 2), rel=2e-3)
    (turn,) = turned.turn_to(np.array([6.0]))
    assert np.exp(1.0 + turn + 0.7**2 / 2) == pytest.approx(6.0, rel=2e-3)


def test_several_sizes_are_turned_to_at_once():
    turned = dial()
    sizes = np.array([-0.2, 0.0, 0.3])
    one_by_one = [turned.turn_to(np.array([size]))[0] for size in sizes]
    assert turned.turn_to(sizes).tolist() == one_by_one
    assert np.all(np.diff(one_by_one) > 0)


@pytest.mark.parametrize("size", [-1.0, 1.0, 1.2])
def test_a_size_that_no_group_can_have_is_refused(size):
    sentence = (
        "In rescorla_wagner_dual the group's mean of optimism_bias lies between -1 and 1; "
        f"got {size:.3g}. Choose a smaller effect."
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        dial().turn_to(np.array([0.1, size]))


@pytest.mark.parametrize("model", ["rescorla_wagner", "random_responder", "win_stay_lose_shift"])
def test_a_model_that_the_dial_does_not_move_is_refused(model):
    with pytest.raises(ValueError, match=f"No dial of {model} moves optimism_bias steadily"):
        dial(model=AGENTS[model]).turn_to(np.array([0.1]))


def test_measures_come_first_and_parameters_of_the_model_second():
    assert resolve_measure("optimism_bias", DUAL) is BIAS
    beta = resolve_measure("beta", DUAL)
    assert beta.contrast == {"beta": 1.0}
    assert (beta.name, beta.model, beta.dial) == ("beta", DUAL, Dial({"beta": 1.0}))
    assert resolve_measure("beta", AGENTS["rescorla_wagner"]).model is AGENTS["rescorla_wagner"]
