"""Posteriors as ArviZ's own objects, saved and read with either generation of it."""

import json

import arviz as az
import numpy as np
import pytest
import xarray as xr

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import (
    ModelData,
    Unknowns,
    arviz_object,
    posterior,
    read_posterior,
    save_posterior,
)
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.group_model import HierarchicalFit
from knownminds.inference.groups.sampling import Settings
from knownminds.inference.posteriors.convergence import check_convergence

pytest.importorskip("h5netcdf", reason="netCDF files need h5netcdf")

CHAINS, DRAWS, N = 4, 150, 5


@pytest.fixture(scope="module")
def trials():
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(0), N)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(4), 1).to_frame()
    frame["subject"] = "s" + frame["subject"]
    frame.loc[7, ["action", "reward"]] = None
    frame.loc[7, "outcome"] = "malformed"
    return Trials.from_frame(frame)


@pytest.fixture(scope="module")
def data(trials):
    return ModelData.read(RescorlaWagner, trials)


@pytest.fixture(scope="module")
def fit(data):
    """A group fit with draws that are made up; sampling is not what is tested here."""
    rng = np.random.default_rng(4)
    names = list(RescorlaWagner.parameters.names)
    dims, shape = ("chain", "draw"), (CHAINS, DRAWS)
    draws = xr.Dataset(
        {
            "group_mean": ((*dims, "parameter"), rng.normal(size=(*shape, len(names)))),
            "group_sd": ((*dims, "parameter"), abs(rng.normal(size=(*shape, len(names))))),
            "z": ((*dims, "subject", "parameter"), rng.normal(size=(*shape, N, len(names)))),
        },
        coords={
            "chain": range(CHAINS),
            "draw": range(DRAWS),
            "subject": list(data.subjects),
            "parameter": names,
        },
    )
    return HierarchicalFit(
        model="rescorla_wagner",
        subjects=data.subjects,
        parameters=RescorlaWagner.parameters,
        posterior=draws,
        convergence=check_convergence(draws, (), 2),
        settings=Settings(CHAINS, DRAWS, 100, seed=17),
        data=data,
        unknowns=Unknowns.of(RescorlaWagner),
        design=GroupDesign.plain(RescorlaWagner.parameters, data.subjects),
    )


def group(found, name):
    """Return a group as a Dataset, of an InferenceData or a DataTree."""
    return found[name].to_dataset() if hasattr(found[name], "to_dataset") else found[name]


def test_it_holds_draws_observations_and_where_they_come_from(fit):
    found = arviz_object(fit)
    draws = group(found, "posterior")
    np.testing.assert_array_equal(draws["z"], fit.posterior["z"])
    natural = draws["theta"].transpose("chain", "draw", "subject", "parameter").to_numpy()
    np.testing.assert_array_equal(natural.reshape(-1, N, len(fit.names)), fit.draws)
    assert draws["subject"].to_numpy().tolist() == [f"s{i}" for i in range(N)]
    assert draws["parameter"].to_numpy().tolist() == list(fit.names)
    assert found.attrs["model"] == "rescorla_wagner"
    assert (found.attrs["seed"], found.attrs["divergences"]) == (17, 2)
    assert found.attrs["verdict"] == "not converged"
    assert json.loads(found.attrs["settings"])["tune"] == 100
    assert {"knownminds", "arviz", "pymc"} <= set(json.loads(found.attrs["versions"]))
    assert group(found, "constant_data")["n_trials"].to_numpy().tolist() == [15, 16, 16, 16, 16]


def test_a_saved_posterior_is_read_back_the_same(fit, tmp_path):
    save_posterior(fit, tmp_path / "p.nc")
    assert [p.name for p in tmp_path.iterdir()] == ["p.nc"]
    made = arviz_object(fit)
    for found in (read_posterior(tmp_path / "p.nc"), az.from_netcdf(str(tmp_path / "p.nc"))):
        for name in ("posterior", "observed_data", "constant_data"):
            xr.testing.assert_identical(
                group(found, name).drop_attrs(), group(made, name).drop_attrs()
            )
    # What one generation of ArviZ writes, the other reads: both are groups of plain netCDF.
    with xr.open_datatree(tmp_path / "p.nc", engine="h5netcdf") as tree:
        assert set(tree.children) == {
            "posterior",
            "observed_data",
            "constant_data",
            "log_likelihood",
            "prior",
        }
        assert tree.attrs["model"] == "rescorla_wagner"
    assert read_posterior(tmp_path / "p.nc").attrs == made.attrs


def test_posteriors_of_single_subjects_say_how_far_to_trust_them(data, tmp_path):
    single = posterior(RescorlaWagner, data, draws=64, nuts=False)
    save_posterior(single, tmp_path / "p.nc", data)
    found = read_posterior(tmp_path / "p.nc")
    np.testing.assert_array_equal(group(found, "posterior")["theta"][0], single.draws)
    about = group(found, "constant_data")
    np.testing.assert_array_equal(about["pareto_k"], single.pareto_k)
    assert about["status"].to_numpy().tolist() == list(single.status)
    assert group(found, "observed_data").sizes["row"] == N * 16
    assert found.attrs["model"] == "rescorla_wagner"
    with pytest.raises(KeyError):
        arviz_object(single)["observed_data"]  # it does not keep its data


def test_the_likelihood_of_each_trial_is_that_of_a_step_loop(fit, trials):
    made = arviz_object(fit)
    found, seen_by = group(made, "log_likelihood"), group(made, "observed_data")
    whole = seen_by["subject_of_row"].to_numpy()
    kept = found.isel(chain=2, draw=3)
    theta = fit.posterior["z"].sel(chain=found["chain"][2], draw=found["draw"][3])
    theta = fit.parameters.constrain(theta.transpose("subject", "parameter").to_numpy())
    for k, (_, own) in enumerate(trials.frame.groupby("subject", sort=False)):
        agent = RescorlaWagner.from_theta(theta[k], actions=2)
        slow = []
        for row in own.itertuples():
            seen, value = {"context": row.context, "trial": row.trial}, 0.0
            if row.outcome == "ok":
                value = np.log(agent.probabilities(seen)[int(row.action)])
                agent.learn(seen, int(row.action), float(row.reward))
            slow.append((row.context, value))
        # rows of a sequence follow each other; of a context each is in order of time
        mine = kept["trial"].to_numpy()[whole == f"s{k}"]
        by_context = {}
        for context, value in slow:
            by_context.setdefault(context, []).append(value)
        for values in by_context.values():
            at = [np.allclose(mine[i : i + len(values)], values, atol=1e-5)
                  for i in range(len(mine) - len(values) + 1)]  # fmt: skip
            assert any(at)
        assert mine.sum() == pytest.approx(sum(value for _, value in slow), abs=1e-4)
