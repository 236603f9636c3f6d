"""Rounds of sampling: what is tried after what, for how long, and what is told of it."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import GroupModel, ModelData, Unknowns
from knownminds.inference.posteriors.sampling import OutOfTimeError, Settings
from knownminds.inference.posteriors.subject_coordinates import SubjectCoordinates
from knownminds.validation.data.group_fit import _warning


@dataclass
class Found:
    """What stands in for the fit of a round."""

    settings: Settings
    divergences: int
    short: bool
    z_draws: np.ndarray
    tried: tuple = ()

    @property
    def convergence(self):
        return SimpleNamespace(short=self.short)

    @property
    def reasons(self):
        told = ["too few draws"] if self.short else []
        return tuple(told + [f"{self.divergences} divergent draws"] * (self.divergences > 0))

    @property
    def verdict(self):
        return "not converged" if self.reasons else "converged"


@pytest.fixture(scope="module")
def built():
    trials = simulate(RescorlaWagner, np.tile([0.4, 5.0, 0.0], (6, 1)), InstrumentalLearning(8), 1)
    data = ModelData.read(RescorlaWagner, trials)
    return data, GroupModel.build(data)


@pytest.fixture
def rounds(built, monkeypatch):
    """Sample with rounds that end as they are told to: (divergences, short) each."""
    data, model = built
    asked = SimpleNamespace(settings=[], coordinates=[])

    def sample(ends, **more):
        left = iter(ends)
        z = np.random.default_rng(0).normal(3.0, 0.1, (50, 6, 3))

        def run(settings, seconds, tell):
            asked.settings.append(settings)

        def finish(self, data, trace, settings, chosen):
            asked.coordinates.append(chosen)
            return Found(settings, *next(left), z)

        density = SimpleNamespace(sample=run)
        monkeypatch.setattr(GroupModel, "density", lambda *given: density)
        monkeypatch.setattr(GroupModel, "_finish", finish)
        return model.sample(data, **more), asked

    return sample


def test_divergences_bring_smaller_steps_and_no_more_draws(rounds):
    fit, asked = rounds([(5, False), (2, False), (0, False)])
    assert [s.target_accept for s in asked.settings] == pytest.approx([0.8, 0.9, 0.95])
    assert {s.draws for s in asked.settings} == {1000}
    assert fit.verdict == "converged"
    assert [line.split(": ")[1] for line in fit.tried] == [
        "5 divergent draws",
        "2 divergent draws",
        "converged",
    ]


def test_too_few_draws_bring_more_of_them(rounds):
    _, asked = rounds([(0, True), (1, True), (0, False)], target_accept=0.6)
    assert [s.draws for s in asked.settings] == [1000, 2000, 4000]
    assert [s.target_accept for s in asked.settings] == pytest.approx([0.6, 0.6, 0.8])


def test_rounds_are_capped_and_the_last_one_counts(rounds):
    fit, _ = rounds([(3, False), (2, False)], rounds=2)
    assert fit.verdict == "not converged"
    assert len(fit.tried) == 2
    assert fit.settings.target_accept == pytest.approx(0.9)


def test_later_rounds_go_by_the_group_as_it_was_found(built, rounds):
    data, _ = built
    _, asked = rounds([(1, False), (0, False)])
    unknowns = Unknowns.of(RescorlaWagner)
    own, first = unknowns.parameters, SubjectCoordinates.of(data, unknowns)
    assert np.allclose(asked.coordinates[0].information, first.information)
    # All draws lie at 3 +- .1, closer together than a fifth of the prior's spread.
    there = SubjectCoordinates.of(data, unknowns.around(np.full(3, 3.0), 0.2 * own.sd))
    assert np.allclose(asked.coordinates[1].information, there.information, rtol=0.05, atol=0.05)
    assert not np.allclose(first.information, there.information, rtol=0.05, atol=0.05)


def test_no_round_is_begun_that_would_end_too_late(rounds):
    heard = []
    fit, asked = rounds([(1, False)], seconds=1e-9, tell=heard.append)
    assert len(asked.settings) == 1
    assert "not begun" in fit.tried[-1]
    assert heard[0].startswith("round 1 of 5 at most: 4 chains of 1000 draws")
    assert heard[1].endswith("1 divergent draws")


def test_a_first_round_that_is_not_done_in_time_says_what_to_do(built, monkeypatch):
    data, model = built

    def late(*given):
        raise OutOfTimeError

    monkeypatch.setattr(GroupModel, "density", lambda *given: SimpleNamespace(sample=late))
    with pytest.raises(ValueError, match=r"first round .* did not end.*--most-minutes"):
        model.sample(data, seconds=60.0)


def test_a_first_round_that_is_not_done_in_time_leaves_its_draws(built, monkeypatch):
    """It raised, and all that had been sampled in a quarter of an hour was lost."""
    data, model = built
    density = model.density(data)
    trace = density.sample(Settings(chains=2, draws=30, tune=20, cores=1))

    def late(*given):
        raise OutOfTimeError(trace)

    given = SimpleNamespace(sample=late, rows=density.rows)
    monkeypatch.setattr(GroupModel, "density", lambda *more: given)
    heard = []
    fit = model.sample(data, seconds=60.0, tell=heard.append)
    assert fit.z_draws.shape == (60, 6, 3)
    assert np.array_equal(fit.z_draws, density.rows(trace["posterior"]))
    assert fit.verdict == "not converged"
    assert fit.tried[-1].endswith("broken off at the limit of 60 s")
    assert heard[-1] == "out of time; what was sampled is kept"


def test_what_a_fit_prints_of_it_is_what_was_tried(rounds):
    fit, asked = rounds([(5, False), (2, False)], rounds=2)
    told = _warning(fit)
    assert told[0].endswith("do not use these numbers: 2 divergent draws.")
    for settings in asked.settings:
        assert f"target_accept {settings.target_accept:g}" in told[1]
    assert f"--target-accept above {asked.settings[-1].target_accept:g}" in told[2]
    # Where nothing diverged, smaller steps are no advice.
    assert len(_warning(replace(fit, divergences=0, short=True))) == 2
