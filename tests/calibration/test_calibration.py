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
from knownminds.validation.calibration.calibration import (
    LOG_LIKELIHOOD,
    calibrate,
)
from knownminds.validation.engine.study import Rows, Study

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
    [
        (moved(shift=0.7), "biased high"),
        (moved(width=0.5), "over-confident"),
    ],
    ids=["shifted up", "too narrow"],
)
def test_posteriors_made_wrong_on_purpose_are_flagged_in_the_right_words(monkeypatch, wrong, word):
    found = study(monkeypatch, wrong)
    assert not found.calibrated
    for name in ONE_RATE.parameters.names:
        assert found[name].word == word
        assert not found[name].inside_band
    assert word in str(found)


def test_posteriors_that_ignore_the_data_are_seen_by_the_log_likelihood_alone(monkeypatch):
    found = study(monkeypatch, that_ignore_the_data)
    for name in ONE_RATE.parameters.names:
        assert found[name].p_value > LEVEL / 4
    assert found[LOG_LIKELIHOOD].word.startswith("biased low")  # data like the truth better
    assert not found.calibrated


# Failures


def failing(every):
    """Posteriors of which each so many-th of a batch has no trustworthy draws."""

    def wrong(model, data, **given):
        own = posterior(model, data, **given)
        k = own.pareto_k.copy()
        k[::every] = np.inf
        return dataclasses.replace(own, pareto_k=k)

    return wrong


def rows_of(folder):
    read, identity = Study.read(folder)
    return Rows(read, folder, identity["versions"]).frame()


def test_failed_posteriors_are_counted_and_the_ranks_of_the_others_stay(monkeypatch, tmp_path):
    whole = calibrate(PLACE, ONE_RATE, replicates=200, trials=24, workers=1, out=tmp_path / "a")
    found = study(monkeypatch, failing(26), out=tmp_path / "b")  # of 128 five, of 72 three
    sound, broken = rows_of(tmp_path / "a"), rows_of(tmp_path / "b")
    lost = broken["status"] == "failed"
    assert np.flatnonzero(lost).tolist() == [*range(0, 128, 26), *range(128, 200, 26)]
    ranks = [name for name in sound if name.startswith("rank ")]
    assert broken.loc[lost, ranks].isna().all(axis=None)
    pd.testing.assert_frame_equal(
        sound.loc[~lost, ranks], broken.loc[~lost, ranks], check_dtype=False
    )
    assert (found.attempted, found.failed, found.statuses) == (200, 8, {"ok": 192, "failed": 8})
    assert all(quantity.n == 192 for quantity in found.quantities.values())
    assert found.calibrated == whole.calibrated  # 4% are no reason to doubt the others
    assert "192 ok, 8 failed" in str(found)
    assert found.notes == ("8 of 200: no trustworthy draws of the posterior",)


# Groups, with posteriors that stand in for the sampled ones


def groups(monkeypatch, draw, replicates=100, verdict="converged", reasons=(), out=None):
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
            draws=ONE_RATE.parameters.constrain(z),
            verdict=verdict,
            reasons=reasons,
        )

    monkeypatch.setattr(calibration, "sample_group", sampled)
    given = {"method": "hierarchical", "subjects": 4, "trials": 12, "workers": 1}
    return calibrate(PLACE, ONE_RATE, replicates=replicates, out=out, **given)


def hyperprior(rng, s, n, widen=1.0):
    """Draws of a group from the group model's prior (`inference.hierarchical` says which)."""
    own = ONE_RATE.parameters
    scale = np.array([p.group_sd for p in own]) * widen
    mean = rng.normal(own.mean, own.sd, (s, len(own)))
    sd = np.abs(rng.normal(0.0, scale, (s, len(own))))
    return mean, sd, mean[:, None] + sd[:, None] * rng.standard_normal((s, n, len(own)))


def test_groups_are_drawn_from_the_priors_of_the_group_model(monkeypatch):
    # Its prior, for a posterior: uniform ranks of all but the log-likelihood.
    found = groups(monkeypatch, hyperprior)
    names = ONE_RATE.parameters.names
    told = [*names, *(f"sd({n})" for n in names), *(f"subject {n}" for n in names)]
    assert list(found.quantities) == [*told, LOG_LIKELIHOOD]
    for name in told:
        assert found[name].p_value > LEVEL / len(told)
    assert found[LOG_LIKELIHOOD].word.startswith("biased low")
    assert found.cell.subjects == 4


def test_groups_that_did_not_converge_are_counted_and_ranked(monkeypatch):
    found = groups(monkeypatch, hyperprior, 20, "not converged", ("R-hat 1.2",))
    assert found.statuses == {"not converged": 20}
    assert found.failed == 0
    assert not found.calibrated
    assert all(quantity.n == 20 for quantity in found.quantities.values())
    assert "20 of 20 posteriors failed or did not converge" in found.notes[0]
    assert found.notes[1] == "20 of 20: R-hat 1.2"


# Refusals and folders
