"""The compiled density of a group is that of PyMC's graph, and its own NUTS samples it."""

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import GroupModel, ModelData, Unknowns
from knownminds.inference.groups import group_density
from knownminds.inference.posteriors.crossed_levels import Levels
from knownminds.inference.posteriors.regressors import Regressors
from knownminds.inference.posteriors.sampling import OutOfTimeError, Settings, StoppedError

N = 6


@pytest.fixture(scope="module")
def trials():
    z = np.array([-0.3, 1.1, 0.2]) + 0.6 * np.random.default_rng(3).normal(size=(N, 3))
    theta = RescorlaWagner.parameters.constrain(z)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(8), 3).to_frame()
    number = frame["subject"].astype(int)
    return Trials.from_frame(frame.assign(age=number * 0.3, place=number % 2, drug=number // 2))


def kinds(trials):
    """Every kind of group model: what is handed to `GroupModel.build`."""
    unknowns = Unknowns.of(RescorlaWagner)
    formula = ["alpha ~ age", "beta ~ C(place)"]
    subjects = trials.subject_frame()
    return {
        "plain": {},
        "held and lapse": {"fixed": {"beta": 2.0}, "lapse": True},
        "regressors": {"regressors": Regressors.of(formula, subjects, unknowns.parameters)},
        "crossed": {"levels": Levels.of(["place", "drug"], trials, trials.frame["subject"])},
    }


def agrees_with_the_graph(model, data):
    graph, density = model.pymc_model, model.density(data)
    function = graph.compile_fn(
        [graph.logp(), graph.dlogp()],
        inputs=graph.value_vars,
        point_fn=False,
        mode="FAST_COMPILE",  # in Python: nothing is compiled for it
    )
    rng, found = np.random.default_rng(1), []
    for _ in range(4):
        point = rng.standard_normal(density.size)
        parts = [density.parts[one.name] for one in graph.value_vars]
        given = [point[place].reshape(shape) for place, shape in parts]
        # The graph orders its own parts; ours stand where `parts` says.
        ours, own_slope = density.at(point)
        value, slope = function(*given)
        by_graph = np.split(slope, np.cumsum([np.prod(s) for _, s in parts], dtype=int))
        for (place, _), theirs in zip(parts, by_graph, strict=False):
            np.testing.assert_allclose(own_slope[place], theirs, rtol=1e-10, atol=1e-10)
        found.append(ours - float(value))
    # Equal up to a constant, on the scale of the values themselves.
    np.testing.assert_allclose(found, found[0], atol=1e-10 * max(1.0, abs(ours)))


@pytest.mark.parametrize("kind", ["plain", "held and lapse", "regressors", "crossed"])
def test_the_compiled_density_and_slope_are_those_of_the_graph(trials, kind):
    data = ModelData.read(RescorlaWagner, trials)
    agrees_with_the_graph(GroupModel.build(data, **kinds(trials)[kind]), data)


def test_sampling_ends_at_its_time_and_an_interrupt_keeps_the_draws_so_far(trials, monkeypatch):
    data = ModelData.read(RescorlaWagner, trials)
    density = GroupModel.build(data).density(data)
    settings = Settings(chains=2, draws=100_000, tune=20, cores=1)
    with pytest.raises(OutOfTimeError):
        density.sample(settings, seconds=0.0)
    monkeypatch.setattr(group_density, "FIRST_WORD", 0.2)
    heard = []

    def tell(line):
        heard.append(line)
        if "chain 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(StoppedError) as stopped:
        density.sample(settings, tell=tell)
    assert heard[0].startswith("chain 1: ")
    assert "of 100020 draws" in heard[0]
    kept = stopped.value.trace["posterior"]  # the second chain had not begun
    assert kept["eta"].notnull().all()
    assert 20 <= kept.sizes["draw"] < 100_000
