"""Posteriors of single subjects by NUTS: of the class that is asked for, in a file or in none."""

import numpy as np
import xarray as xr

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData, posterior
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.posteriors import single_posterior_nuts
from knownminds.inference.posteriors.likelihood_op import LogLikelihood, _funcify

CELL = """
from knownminds.agents import RescorlaWagner
class Learner(RescorlaWagner):
    def respond(self, trial):
        return {} * self.beta * self.values
"""


def written_in_a_notebook(factor):
    """Return a model that lies in no file."""
    names = {"__name__": "cell_of_a_notebook"}
    exec(CELL.format(factor), names)
    return names["Learner"]


class Compiled:
    """What nutpie compiles a density to."""

    def with_data(self, **inputs):
        return self


def test_a_class_of_the_same_name_is_sampled_by_its_own_density(monkeypatch):
    made, (first, second) = [], map(written_in_a_notebook, (1.0, 3.0))
    draws = xr.Dataset({"standard": (("chain", "draw", "one", "k"), np.zeros((4, 500, 1, 3)))})
    replaced = {
        "_single": lambda data, unknowns: made.append(data.model),
        "compile_for_nutpie": lambda density: Compiled(),
        "run_nutpie": lambda compiled, settings: None,
        "dataset_of": lambda trace, group: draws,
    }
    for name, function in replaced.items():
        monkeypatch.setattr(single_posterior_nuts, name, function)
    monkeypatch.setattr(single_posterior_nuts, "_COMPILED", {})
    trials = simulate(first, [[0.3, 4.0, 0.0]], InstrumentalLearning(4), 1)
    for model in (first, first, second):
        unknowns = Unknowns.of(model, None, False)
        single_posterior_nuts.sample_separately(ModelData.read(model, trials), unknowns, 8, 1)
    assert made == [first, second]


def test_a_likelihood_in_a_graph_is_known_by_its_text_and_needs_no_file():
    keys = []
    for factor in (1.0, 3.0, 1.0):
        model = written_in_a_notebook(factor)
        keys.append(_funcify(LogLikelihood(model, 2, Unknowns.of(model, None, False)))[1])
    assert keys[0] == keys[2] != keys[1]


def test_an_interval_holds_its_mass_of_the_draws_and_as_much_lies_below_as_above():
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(2), 3)
    trials = simulate(RescorlaWagner, theta, InstrumentalLearning(), 2)
    found = posterior(RescorlaWagner, trials, draws=400, nuts=False)
    assert np.allclose(found.estimate, found.draws.mean(axis=0))
    assert np.allclose(found.draws, RescorlaWagner.parameters.constrain(found.z_draws))
    low, high = found.interval(0.8)
    # Draws are resampled, so that some are equal; each weighs 1 / 400.
    assert np.allclose((found.draws < low).mean(axis=0), 0.1, atol=0.02)
    assert np.allclose((found.draws > high).mean(axis=0), 0.1, atol=0.02)
