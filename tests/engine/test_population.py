import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.population import HYPERPRIOR, check_step_loop, draw_subjects, live
from knownminds.validation.engine.study import Batch, Study

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner_dual"
PARAMETERS = AGENTS[MODEL].parameters
NAMED = Population(
    group_mean={"alpha_positive": -0.5, "alpha_negative": -1.5, "beta": 1.0, "kappa": 0.2},
    group_sd={"alpha_positive": 0.3, "alpha_negative": 0.6, "beta": 0.2, "kappa": 0.1},
)
POPULATIONS = [Population(), HYPERPRIOR, NAMED]


def a_study(subjects=4, replicates=3, seed=0, unit="subject", model=MODEL, **fields):
    cell = Cell(PLACE, {"n_visits": 2}, model, subjects=subjects, **fields)
    return Study("t", (cell,), replicates, seed, unit)


def everyone(study):
    return draw_subjects(study, Batch(0, 0, study.units(0)))


def moments_agree(z, mean, sd):
    """Mean and standard deviation of normal numbers z, [n, P], within 4 standard errors."""
    n = len(z)
    assert (abs(z.mean(axis=0) - mean) < 4 * sd / np.sqrt(n)).all()
    assert (abs(z.std(axis=0, ddof=1) - sd) < 4 * sd / np.sqrt(2 * n)).all()


# Populations


def test_subjects_of_no_group_come_from_the_priors():
    drawn = everyone(a_study(50, 80))
    moments_agree(PARAMETERS.unconstrain(drawn.theta), PARAMETERS.mean, PARAMETERS.sd)
    assert np.array_equal(drawn.group_mean, np.tile(PARAMETERS.mean, (80, 1)))
    assert np.array_equal(drawn.group_sd, np.tile(PARAMETERS.sd, (80, 1)))
    # Independent between subjects: nothing is shared within a replicate. The mean of 50 varies
    # between 80 replicates with variance 1 / 50, known to sqrt(2 / 80) = 16%; bound 4 times this.
    z = (PARAMETERS.unconstrain(drawn.theta) - PARAMETERS.mean) / PARAMETERS.sd
    between = z.reshape(80, 50, -1).mean(axis=1).var(axis=0, ddof=1) * 50
    assert (abs(between - 1) < 0.64).all()


def test_groups_are_drawn_from_the_hyperpriors_and_subjects_from_their_group():
    drawn = everyone(a_study(4, 2000, population=HYPERPRIOR))
    moments_agree(drawn.group_mean, PARAMETERS.mean, PARAMETERS.sd)
    scale = np.array([p.group_sd for p in PARAMETERS])
    assert (drawn.group_sd > 0).all()
    # Half-normal: mean square scale**2, whose relative standard error is sqrt(2 / 2000).
    square = (drawn.group_sd**2).mean(axis=0) / scale**2
    assert (abs(square - 1) < 4 * np.sqrt(2 / 2000)).all()
    z = PARAMETERS.unconstrain(drawn.theta)
    standard = (z - drawn.group_mean[drawn.replicate]) / drawn.group_sd[drawn.replicate]
    moments_agree(standard, np.zeros(4), np.ones(4))


@pytest.mark.parametrize("population", POPULATIONS)
def test_a_held_parameter_is_held_and_shifts_no_other(population):
    free = a_study(population=population)
    held = a_study(population=population, truth={"beta": 3.5})
    k = PARAMETERS.index("beta")
    assert (everyone(held).theta[:, k] == 3.5).all()
    assert len(np.unique(everyone(free).theta[:, k])) == 12
    # Another truth is another design with draws of its own.
    assert not np.isin(everyone(held).theta, everyone(free).theta).any()


# Addresses


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("unit", ["subject", "replicate"])
def test_batches_hold_the_subjects_of_the_whole_study(population, unit):
    study = a_study(5, 4, unit=unit, population=population)
    whole = everyone(study)
    assert whole.replicate.tolist() == np.repeat(range(4), 5).tolist()
    assert whole.number.tolist() == list(range(5)) * 4
    span = 3 if unit == "subject" else 1
    at = 0
    for first in range(0, study.units(0), span):
        part = draw_subjects(study, Batch(0, first, min(first + span, study.units(0))))
        here = slice(at, at + len(part.theta))
        assert np.array_equal(part.theta, whole.theta[here])
        rows = np.unique(part.replicate)
        assert np.array_equal(part.group_mean, whole.group_mean[rows])
        assert np.array_equal(part.group_sd, whole.group_sd[rows])
        at += len(part.theta)
    assert at == 20


# Their sessions


def test_sessions_are_those_of_the_public_simulation():
    study = a_study(5, 2, sessions=3, lapse=0.2)
    subjects = everyone(study)
    lived = live(study, Batch(0, 0, 10), subjects)
    key = study.cells[0].data_key
    for replicate in range(2):
        for session in range(3):
            mine = subjects.replicate == replicate
            trials = simulate(
                AGENTS[MODEL],
                subjects.theta[mine],
                study.cells[0].make(),
                study.seed,
                address=(key, replicate, session),
                lapse=0.2,
            ).frame
            here = mine[lived.subject] & (lived.session == session)
            for name in ("context", "action", "reward"):
                assert np.array_equal(lived.columns[name][here], trials[name]), name


# The step loop as a check of the compiled one


@pytest.mark.parametrize("method", ["learn", "choose"])
def test_a_broken_agent_is_found(monkeypatch, method):
    broken = {
        "learn": lambda self, observation, action, reward: None,
        "choose": lambda self, observation, rng: int(rng.random() < 0.5),
    }
    # A mind that learns much and chooses by it: chance hardly plays the same 96 trials.
    cell = Cell(PLACE, {}, MODEL, {"alpha_positive": 0.5, "alpha_negative": 0.5, "beta": 8.0})
    study = Study("t", (cell,))
    check_step_loop(study)
    monkeypatch.setattr(AGENTS[MODEL], method, broken[method])
    with pytest.raises(RuntimeError, match="column action"):
        check_step_loop(study)
