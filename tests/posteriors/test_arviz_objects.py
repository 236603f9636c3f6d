"""Posteriors as ArviZ's own objects, saved and read with either generation of it."""

import json
from dataclasses import replace

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.special import logsumexp

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
from knownminds.inference.posteriors.pareto_smoothing import smooth_weights
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
        assert set(tree.children) == {
            "posterior",
            "observed_data",
            "constant_data",
            "log_likelihood",
            "prior",
        }
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


def test_a_model_whose_trials_hang_together_has_no_likelihoods_of_trials(fit, data, monkeypatch):
    from knownminds.inference.posteriors.arviz_groups import trial_log_likelihood

    monkeypatch.setattr(RescorlaWagner, "remembers", False)  # as if trials stood alone
    assert trial_log_likelihood(data, fit.unknowns, fit.draws[:1]) is None


@pytest.mark.filterwarnings("ignore")  # ArviZ's own, of the Matplotlib it meets
def test_arviz_plots_and_compares_what_was_saved(fit, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    rng = np.random.default_rng(1)
    shape = (("chain", "draw"), rng.normal(size=(CHAINS, DRAWS)))
    told = xr.Dataset({"energy": shape, "diverging": (shape[0], shape[1] > 3)})
    told = told.assign_coords(chain=range(CHAINS), draw=range(DRAWS))
    whole = replace(fit, sample_stats=told)
    n_rows = len(fit.data.flat[0])
    simulated = rng.integers(2, size=(50, n_rows)).astype(np.float32)
    save_posterior(whole, tmp_path / "p.nc", predicted={"action": simulated})
    found = read_posterior(tmp_path / "p.nc")
    again = group(found, "posterior_predictive")["action"]
    assert again.sizes["row"] == group(found, "observed_data").sizes["row"]
    assert float(again.mean()) == pytest.approx(simulated.mean(), abs=1e-6)
    az.plot_trace(found, var_names=["group_mean"])
    az.plot_energy(found)
    az.plot_forest(found, var_names=["group_mean", "group_sd"])
    az.plot_rank(found, var_names=["group_mean"])
    if hasattr(az, "plot_ppc"):
        az.plot_ppc(found, var_names=["action"], num_pp_samples=5)
    else:
        az.plot_ppc_dist(found, var_names=["action"], num_samples=5)
    left_out = az.loo(found, var_name="subject")
    values = group(found, "log_likelihood")["subject"].stack(sample=("chain", "draw"))
    values = values.transpose("subject_name", "sample").to_numpy()
    log_weights, _ = smooth_weights(-values)
    ours = logsumexp(log_weights + values, axis=1).sum()
    assert float(getattr(left_out, "elpd_loo", getattr(left_out, "elpd", None))) == pytest.approx(
        ours, rel=0.02
    )
    ranked = az.compare({"one": found, "other": found}, var_name="subject")
    assert set(ranked.index) == {"one", "other"}
    mpl.pyplot.close("all")
