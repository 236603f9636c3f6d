"""Power from a pilot: groups are draws of its posterior, and what is no pilot is refused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from knownminds.agents import RescorlaWagner, RescorlaWagnerDual, simulate
from knownminds.agents.play import AgentInSession, simulate_sessions
from knownminds.environments import InstrumentalLearning, Session, session_stream
from knownminds.inference import MEASURES, maximum_a_posteriori
from knownminds.validation.data.fit import FitTask, fit
from knownminds.validation.data.questions import AskFit
from knownminds.validation.engine.population import draw_subjects
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.power.operating_characteristics import conditions_lived
from knownminds.validation.power.pilot import read_pilot
from knownminds.validation.power.power import power
from knownminds.validation.power.power_study import effect_search, notes_of
from knownminds.validation.power.questions import Power

PLACE = InstrumentalLearning(n_visits=6)
EFFECT = {"optimism_bias": "pilot"}


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot")
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(4), 12)
    trials = simulate(RescorlaWagnerDual, theta, PLACE, 4)
    found = fit(trials, "rescorla_wagner_dual", method="hierarchical", workers=1)
    assert found.verdicts["sampling"].word == "converged"
    found.save(folder / "people")
    return folder / "people"


def drawn(folder):
    """Return the posterior's means [S, P] from the file itself."""
    return pooled(folder)[0]


def pooled(folder):
    """Return the posterior's means and spreads, [S, P] each, from the file itself."""
    whole = xr.open_dataset(folder / "posterior.nc", group="posterior", engine="h5netcdf")
    names = list(RescorlaWagnerDual.parameters.names)
    some = whole.sel(parameter=names).stack(all=("chain", "draw"))
    return tuple(
        some[name].transpose("all", "parameter").to_numpy() for name in ("group_mean", "group_sd")
    )


def rows_of(folder):
    """Return a study's data sets, from its files."""
    return pd.concat(map(pd.read_parquet, (folder / "parts").glob("*.parquet")))


@pytest.mark.long
def test_an_effect_of_the_pilot_is_that_of_groups_of_its_posterior(pilot):
    found = read_pilot(pilot, "instrumental_learning", RescorlaWagnerDual)
    mean = drawn(pilot)
    # every draw of the pilot is one of the file, and they lie where all lie
    for own in found.mean:
        assert np.isclose(mean, own).all(axis=1).any()
    error = mean.std(axis=0) / len(found.mean) ** 0.5
    assert (np.abs(found.mean.mean(axis=0) - mean.mean(axis=0)) < 4 * error).all()
    # a group's effect, by drawing its people one by one
    rng, sizes = np.random.default_rng(1), found.sizes(MEASURES["optimism_bias"])
    for k in range(0, len(sizes), 40):
        z = rng.normal(found.mean[k], found.sd[k], (40_000, found.mean.shape[1]))
        people = RescorlaWagnerDual.parameters.constrain(z)
        bias = people[:, 0] - people[:, 1]
        assert abs(sizes[k] - bias.mean()) < 4 * bias.std() / 200 + 1e-4


@pytest.mark.long
def test_power_is_averaged_over_what_the_pilot_leaves_open(pilot, tmp_path):
    asked = {"model": "rescorla_wagner_dual", "replicates": 150, "seed": 2, "workers": 1}
    found = power(PLACE, EFFECT, pilot=pilot, subjects=[12], **asked, out=tmp_path / "power")
    (design,) = found["Designs"].to_dict("records")
    sizes = read_pilot(pilot, "instrumental_learning", RescorlaWagnerDual).sizes(
        MEASURES["optimism_bias"]
    )
    rows = rows_of(tmp_path / "power")
    # 150 draws of 200 with equal chances: their mean and spread within 4 standard errors
    assert abs(rows["effect"].mean() - sizes.mean()) < 4 * sizes.std() / 150**0.5
    assert abs(rows["effect"].std() / sizes.std() - 1) < 4 / (2 * 149) ** 0.5
    assert design["assurance"].value == pytest.approx((rows["p_value"] < 0.05).mean())
    # one group that is known takes no part: the truth is the same in every data set
    asked |= {"replicates": 20, "out": tmp_path / "known"}
    power(PLACE, {"optimism_bias": 0.1}, subjects=[12], **asked)
    assert rows_of(tmp_path / "known")["effect"].nunique() == 1


def test_a_lost_answer_brings_nothing_and_teaches_nothing():
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), 40)
    some = simulate_sessions(RescorlaWagnerDual, theta, PLACE, 9, lost=0.3)
    n = 40 * PLACE.n_trials
    assert abs(len(some.trial) - 0.7 * n) < 4 * (0.21 * n) ** 0.5
    for who in range(3):  # step by step, nothing being given on these trials
        rng = session_stream(9, who)
        session = Session(PLACE, PLACE.draw(rng))
        player = AgentInSession(RescorlaWagnerDual.from_theta(theta[who], actions=2), rng)
        mine = some.subject == who
        given = {}
        for seen in session:
            if seen["trial"] not in some.trial[mine]:
                session.take(None)
                continue
            turn = session.take(player.choose(seen))
            player.learn(turn)
            given[seen["trial"]] = (turn.action, turn.reward)
        columns = zip(some.columns["action"][mine], some.columns["reward"][mine], strict=True)
        assert list(given.values()) == list(columns)


@pytest.mark.long
def test_a_pilot_that_did_not_converge_is_refused_until_that_is_wished(pilot, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(pilot, other)
    content = json.loads((other / "result.json").read_text())
    content["verdicts"]["sampling"]["verdict"] = "not converged"
    content["tables"]["counts"] = [{"of": "divergent draws", "number": 7}]
    (other / "result.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"R-hat of 1\.\d+, .*7 divergent draws.*--unconverged"):
        power(PLACE, EFFECT, pilot=other, subjects=[12], replicates=2)
    found = power(
        PLACE, EFFECT, pilot=other, unconverged=True, subjects=[12], replicates=2, workers=1
    )
    assert len(found["Designs"]) == 1


def test_a_study_from_a_pilot_has_its_model_and_its_settings_unless_others_are_named(tmp_path):
    trials = simulate(
        RescorlaWagner, RescorlaWagner.parameters.draw(np.random.default_rng(4), 2), PLACE, 4
    )
    trials.save(tmp_path / "people.parquet")
    options = FitTask.of(
        AskFit(str(tmp_path / "people.parquet"), model="rescorla_wagner")
    ).option_values()
    assert options["played"] == {"n_visits": 6}
    stored = {"command": "knownminds fit people.parquet", "options": options}
    (tmp_path / "result.json").write_text(json.dumps(stored, default=str))
    question = Power("instrumental_learning", {"alpha": 0.1}, pilot=tmp_path, comparison="paired")
    assert (question.model, question.environment.settings["n_visits"]) == ("rescorla_wagner", 6)
    assert replace(question, environment=PLACE).environment is PLACE
    typed = {name: None for name in Power.options()} | {"environment": "instrumental_learning"}
    typed |= {"model": Power.model, "pilot": str(tmp_path), "effect": "alpha=.1"}
    for truth, visits in ((None, 6), (["n_visits=8"], 8)):
        given = Power.of_typed({**typed, "truth": truth})
        assert given.model == "rescorla_wagner"
        assert given.environment.settings["n_visits"] == visits


def stored_fit(folder, formula, terms, low="control", high="patient"):
    """Write what a hierarchical fit with a formula leaves, with draws that are known."""
    names = list(RescorlaWagner.parameters.names)
    rng = np.random.default_rng(2)
    draws = {
        "group_mean": (("chain", "draw", "parameter"), rng.normal([-0.5, 1.5, 0], 0.1, (2, 50, 3))),
        "group_sd": (("chain", "draw", "parameter"), np.full((2, 50, 3), 0.5)),
        "effect": (("chain", "draw", "term"), rng.normal(1.0, 0.1, (2, 50, len(terms)))),
    }
    posterior = xr.Dataset(draws, {"parameter": names, "term": terms})
    posterior.to_netcdf(folder / "posterior.nc", group="posterior", engine="h5netcdf")
    contrast = {"kind": "between", "low_value": low, "high_value": high}
    content = {
        "command": "knownminds fit people.csv",
        "options": {
            "environment": "instrumental_learning", "model": "rescorla_wagner",
            "method": "hierarchical", "formula": formula, "played": {"n_visits": 6},
        },
        "attempted": 24,
        "verdicts": {"sampling": {"verdict": "converged"}},
        "tables": {"contrasts_on_the_natural_scale": [contrast] * len(terms)},
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(content))
    return posterior


def test_a_pilot_with_a_formula_is_one_of_two_groups(tmp_path):
    stored = stored_fit(tmp_path, ["alpha ~ group"], ["alpha ~ group[T.patient]"])
    question = Power("instrumental_learning", {"alpha": "pilot"}, pilot=tmp_path)
    sought = effect_search(replace(question, comparison="between"))
    (cell,) = sought.cells([4], [1], [None])
    assert "fitted with alpha ~ group, of group control and group patient" in notes_of(cell)[1]
    assert cell.make().n_trials == 24
    study = Study("power", (cell,), 60, 3, "replicate", {})
    effects, (first, second) = conditions_lived(study, Batch(0, 0, 60), sought.measure)
    assert len(first.trial) == len(second.trial) == 60 * 4 * 24
    mean = stored["group_mean"].sel(parameter="alpha").to_numpy().ravel()
    moved = stored["effect"].to_numpy().ravel()
    people = np.random.default_rng(1).normal(0.0, 0.5, 20_000)
    support = RescorlaWagner.parameters["alpha"].support
    apart = [
        (support.constrain(m + e + people) - support.constrain(m + people)).mean()
        for m, e in zip(mean, moved, strict=True)
    ]
    # 60 draws of 100, and what 20,000 people leave open.
    error = np.hypot(np.std(apart) / 60**0.5, 0.01 / 20_000**0.5)
    assert abs(effects.mean() - np.mean(apart)) < 4 * error
    assert effects.std() > 0.5 * np.std(apart)
    # People of the second group learn faster, as far as 240 of each tell.
    fits = [
        maximum_a_posteriori(RescorlaWagner, one.data(RescorlaWagner)) for one in (first, second)
    ]
    gaps = fits[1].estimate[:, 0] - fits[0].estimate[:, 0]
    assert gaps.mean() > 3.5 * gaps.std() / 240**0.5
    # All 100 draws; 1,024 points of a group are good for .001.
    assert abs(sought.size - np.mean(apart)) < 0.005
    # A difference that is stated is from the first group, not from the pilot's second one.
    stated = effect_search(replace(question, effect={"alpha": 0.05}, comparison="between"))
    (cell,) = stated.cells([4], [1], [None])
    both = (cell, replace(cell, population=replace(cell.population, condition="second")))
    study = Study("power", both, 60, 3, "replicate", {})
    lived = [draw_subjects(study, Batch(number, 0, 60)) for number in range(2)]
    assert np.array_equal(lived[0].group_mean, lived[1].group_mean)


@pytest.mark.parametrize(
    ("terms", "comparison", "told"),
    [
        (["alpha ~ group[T.patient]"], "one", "--comparison between"),
        (["alpha ~ group[T.b]", "alpha ~ group[T.c]"], "between", "tells two groups"),
        (["alpha ~ age"], "between", "tells two groups"),
    ],
)
def test_pilots_whose_formula_is_not_of_two_groups_are_refused(tmp_path, terms, comparison, told):
    stored_fit(tmp_path, ["alpha ~ group"], terms)
    with pytest.raises(ValueError, match=told):
        power(
            PLACE, {"alpha": "pilot"}, model="rescorla_wagner", pilot=tmp_path,
            comparison=comparison, subjects=[4], replicates=2,
        )  # fmt: skip
