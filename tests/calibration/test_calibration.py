import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from knownminds.agents import AGENTS
from knownminds.environments import session_stream
from knownminds.inference import posterior
from knownminds.validation.calibration import calibration
from knownminds.validation.calibration.calibration import LOG_LIKELIHOOD, calibrate

PLACE = "instrumental_learning"
ONE_RATE = AGENTS["rescorla_wagner"]

# A study's own level is 5% for all quantities together; with fixed seeds one in twenty right
# posteriors would fail here for ever. Right ones are held to a level of one in a thousand.
LEVEL = 0.001


# Wrong posteriors are flagged, in the right words


def moved(shift=0.0, width=1.0):
    """Posteriors shifted by so many of their sds, and made so many times as wide."""

    def wrong(model, data, **given):
        own = posterior(model, data, **given)
        centre, sd = own.z_draws.mean(axis=0), own.z_draws.std(axis=0)
        z = centre + shift * sd + width * (own.z_draws - centre)
        return dataclasses.replace(own, z_draws=z)

    return wrong


def that_ignore_the_data(model, data, **given):
    """The prior, for a posterior."""
    own = posterior(model, data, **given)
    parameters = model.parameters
    z = session_stream(77).normal(parameters.mean, parameters.sd, own.z_draws.shape)
    return dataclasses.replace(own, z_draws=z)


def study(monkeypatch, wrong, **given):
    monkeypatch.setattr(calibration, "posterior", wrong)
    return calibrate(PLACE, ONE_RATE, **{"replicates": 200, "trials": 24, "workers": 1} | given)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [(moved(shift=0.7), "biased high"), (moved(width=0.5), "over-confident")],
    ids=["shifted up", "too narrow"],
)
def test_posteriors_made_wrong_on_purpose_are_flagged_in_the_right_words(monkeypatch, wrong, word):
    ranks = study(monkeypatch, wrong)["Ranks"].loc[list(ONE_RATE.parameters.names)]
    assert (ranks["verdict"] == word).all()
    assert (ranks["p"] <= 0.05 / 4).all()


def test_posteriors_that_ignore_the_data_are_seen_by_the_log_likelihood_alone(monkeypatch):
    ranks = study(monkeypatch, that_ignore_the_data)["Ranks"]
    assert (ranks.loc[list(ONE_RATE.parameters.names), "p"] > LEVEL / 4).all()
    # Data like the truth better.
    assert ranks.loc[LOG_LIKELIHOOD, "verdict"].startswith("biased low")


# Failures


def failing(every):
    """Posteriors of which each so many-th of a batch has no trustworthy draws."""

    def wrong(model, data, **given):
        own = posterior(model, data, **given)
        k = own.pareto_k.copy()
        k[::every] = np.inf
        return dataclasses.replace(own, pareto_k=k)

    return wrong


def test_failed_posteriors_are_counted_and_the_ranks_of_the_others_stay(monkeypatch):
    whole = calibrate(PLACE, ONE_RATE, replicates=200, trials=24, workers=1)
    result = study(monkeypatch, failing(26))  # of 128 five, of 72 three
    lost = result.rows["status"] == "failed"
    assert np.flatnonzero(lost).tolist() == [*range(0, 128, 26), *range(128, 200, 26)]
    ranks = [name for name in whole.rows if name.startswith("rank ")]
    assert result.rows.loc[lost, ranks].isna().all(axis=None)
    pd.testing.assert_frame_equal(
        whole.rows.loc[~lost, ranks], result.rows.loc[~lost, ranks], check_dtype=False
    )
    assert (result.attempted, result.failed) == (200, 8)
    assert result["Status of the replicates"]["replicates"].to_dict() == {"ok": 192, "failed": 8}
    assert result["Messages"].loc["no trustworthy draws of the posterior", "replicates"] == 8
    assert (result["Ranks"]["n"] == 192).all()
    # 4% are no reason to doubt the others.
    assert result["Ranks"]["verdict"].equals(whole["Ranks"]["verdict"])


def test_where_many_posteriors_failed_the_others_do_not_speak_for_all(monkeypatch):
    ranks = study(monkeypatch, failing(10))["Ranks"]
    assert (ranks["n"] == 179).all()  # of 128 thirteen, of 72 eight
    assert (ranks["p"] > LEVEL / 4).all()
    assert (ranks["verdict"] == "not judged").all()


def test_where_all_posteriors_failed_nothing_is_ranked(monkeypatch):
    result = study(monkeypatch, failing(1), replicates=20)
    assert (result.attempted, result.failed) == (20, 20)
    assert not result.verdicts
    assert "Ranks" not in result.tables


# Groups, with posteriors that stand in for the sampled ones


def groups(monkeypatch, draw, replicates=100, verdict="converged", reasons=(), **given):
    """Calibrate groups whose posterior is drawn by `draw`(rng, S, N): mean, sd and z."""

    def sampled(data, fixed, fit_lapse, seed, *address, **running):
        mean, sd, z = draw(session_stream(seed, *address, 5), 400, len(data))
        dims, names = ("chain", "draw", "parameter"), list(ONE_RATE.parameters.names)
        return SimpleNamespace(
            names=ONE_RATE.parameters.names,
            posterior=xr.Dataset(
                {
                    "group_mean": (dims, mean.reshape(4, 100, -1)),
                    "group_sd": (dims, sd.reshape(4, 100, -1)),
                },
                coords={"parameter": names},
            ),
            z_draws=z,
            draws=ONE_RATE.parameters.constrain(z),
            verdict=verdict,
            reasons=reasons,
            terms=list,
        )

    monkeypatch.setattr(calibration, "sample_group", sampled)
    given = {"method": "hierarchical", "subjects": 4, "trials": 12, "workers": 1} | given
    return calibrate(PLACE, ONE_RATE, replicates=replicates, **given)


def hyperprior(rng, s, n, widen=1.0):
    """Draws of a group from the group model's prior (`inference.hierarchical` says which)."""
    own = ONE_RATE.parameters
    scale = np.array([p.group_sd for p in own]) * widen
    mean = rng.normal(own.mean, own.sd, (s, len(own)))
    sd = np.abs(rng.normal(0.0, scale, (s, len(own))))
    return mean, sd, mean[:, None] + sd[:, None] * rng.standard_normal((s, n, len(own)))


def test_groups_are_drawn_from_the_priors_of_the_group_model(monkeypatch):
    # Its prior, for a posterior: uniform ranks of all but the log-likelihood.
    ranks = groups(monkeypatch, hyperprior)["Ranks"]
    names = ONE_RATE.parameters.names
    quantities = [*names, *(f"sd({n})" for n in names), *(f"subject {n}" for n in names)]
    assert list(ranks.index) == [*quantities, LOG_LIKELIHOOD]
    assert (ranks.loc[quantities, "p"] > LEVEL / len(quantities)).all()
    assert ranks.loc[LOG_LIKELIHOOD, "verdict"].startswith("biased low")


@pytest.mark.long
def test_a_fit_that_leaves_out_what_goes_together_is_noticed(monkeypatch):
    """Draws of independent parameters, for subjects whose parameters are correlated.

    Correlations are drawn from the LKJ law with a standard deviation of about .4, those of 20
    independent subjects have one of 1 / sqrt(19) = .23: the truth is spread out twice as far.
    """
    ranks = groups(monkeypatch, hyperprior, subjects=20, correlated=True)["Ranks"]
    seen = ranks.index.str.startswith("seen cor(")
    assert seen.sum() == 3
    assert (ranks.loc[seen, "verdict"] == "over-confident").all()
    names = list(ONE_RATE.parameters.names)
    assert (ranks.loc[[*names, *(f"subject {n}" for n in names)], "p"] > LEVEL / 6).all()


def test_groups_that_did_not_converge_are_counted_and_ranked(monkeypatch):
    result = groups(monkeypatch, hyperprior, 60, "not converged", ("R-hat 1.2",))
    assert result["Status of the replicates"]["replicates"].to_dict() == {"not converged": 60}
    assert result["Messages"].loc["R-hat 1.2", "replicates"] == 60
    assert result.failed == 0
    assert (result["Ranks"]["n"] == 60).all()
    assert "calibrated" not in set(result["Ranks"]["verdict"])
