"""Posteriors as ArviZ's own objects, saved and read with either generation of it."""

import json
from dataclasses import replace

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
from knownminds.inference.posteriors.convergence import check_convergence
from knownminds.inference.posteriors.group_model import HierarchicalFit
from knownminds.inference.posteriors.sampling import Settings
from knownminds.validation.data.fit import fit as run_fit
from knownminds.validation.data.fit import read_fit

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
        effects=(),
        convergence=check_convergence(draws, (), 2),
        settings=Settings(CHAINS, DRAWS, 100, seed=17),
        data=data,
        unknowns=Unknowns.of(RescorlaWagner),
    )


def group(found, name):
    """Return a group as a Dataset, of an InferenceData or a DataTree."""
    return found[name].to_dataset() if hasattr(found[name], "to_dataset") else found[name]


def test_the_object_is_that_of_the_installed_arviz(fit):
    expected = "InferenceData" if az.__version__.startswith("0.") else "DataTree"
    assert type(arviz_object(fit)).__name__ == expected
    # and ArviZ can work with it
    found = az.rhat(arviz_object(fit))["group_mean"].to_numpy()
    same = fit.convergence.table["r_hat"][list(fit.names)].to_numpy()
    np.testing.assert_allclose(found, same)
    assert len(az.summary(arviz_object(fit), var_names=["group_mean"])) == len(fit.names)


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


def test_every_trial_is_among_the_observations_and_a_gap_stays_one(fit, data):
    seen = group(arviz_object(fit), "observed_data")
    assert seen.sizes["row"] == N * 16
    action = seen["action"].to_numpy()
    assert np.isnan(action).sum() == 1
    assert seen["subject_of_row"].to_numpy()[np.isnan(action)].tolist() == ["s0"]
    columns = dict(zip(data.model.columns, data.flat, strict=True))
    for k in range(N):
        own = seen.where(seen["subject_of_row"] == f"s{k}", drop=True)
        flat = columns["action"][k * 16 : (k + 1) * 16]
        assert np.nansum(own["action"]) == flat[flat >= 0].sum()


def test_what_the_sampler_told_of_each_draw_is_kept(fit, tmp_path):
    flags = np.zeros((CHAINS, DRAWS), dtype=bool)
    flags[1, 3] = True
    before = getattr(fit, "sample_stats", None)
    object.__setattr__(fit, "sample_stats", xr.Dataset({"diverging": (("chain", "draw"), flags)}))
    try:
        save_posterior(fit, tmp_path / "p.nc")
        for found in (arviz_object(fit), read_posterior(tmp_path / "p.nc")):
            np.testing.assert_array_equal(group(found, "sample_stats")["diverging"], flags)
    finally:
        object.__setattr__(fit, "sample_stats", before)


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
        assert set(tree.children) == {"posterior", "observed_data", "constant_data"}
        assert tree.attrs["model"] == "rescorla_wagner"
    assert read_posterior(tmp_path / "p.nc").attrs == made.attrs


def test_a_fit_of_a_group_leaves_its_draws_beside_its_tables(fit, trials, tmp_path):
    result = run_fit(trials, "rescorla_wagner", environment="instrumental_learning")
    replace(result, method="hierarchical", posterior=fit).save(tmp_path)
    files = {"estimates.csv", "fit.json", "posterior.nc"}
    assert {p.name for p in tmp_path.iterdir()} == files
    kept = group(read_posterior(tmp_path / "posterior.nc"), "posterior")
    np.testing.assert_array_equal(kept["group_mean"], fit.posterior["group_mean"])
    read_fit(tmp_path).save(tmp_path)  # which has no draws to write, and none to take away
    assert {p.name for p in tmp_path.iterdir()} == files
    result.save(tmp_path)  # another fit in the same folder
    assert {p.name for p in tmp_path.iterdir()} == files - {"posterior.nc"}


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
        single.to_arviz()["observed_data"]  # it does not keep its data


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is none at"):
        read_posterior(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not netCDF")
    with pytest.raises(ValueError, match=r"text\.nc cannot be read as netCDF"):
        read_posterior(tmp_path / "text.nc")
