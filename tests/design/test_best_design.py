"""Designs are searched: information by quadrature, a search recomputed from its rows, bad input."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import ENVIRONMENTS, make
from knownminds.environments.search_ranges import ranges_of
from knownminds.inference import posterior
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.evidence import evidence_given
from knownminds.validation.costs.budget import budget
from knownminds.validation.design.best_design import best_design
from knownminds.validation.engine.population import draw_subjects
from knownminds.validation.engine.study import Batch, read_study

DAY = date(2026, 11, 21)
PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
SMALL = {"model": MODEL, "designs": 6, "replicates": 64, "fresh": 60, "seed": 4}


@pytest.fixture(scope="module")
def lived():
    """Twelve learners with two sessions each, and their true values."""
    model, place, n = AGENTS[MODEL], make(PLACE), 12
    theta = model.parameters.draw(np.random.default_rng(3), n)
    run = simulate_sessions(model, np.repeat(theta, 2, axis=0), place, 8)
    separate = [run.subject % 2, run.columns["context"].astype(np.int64)]
    names = [str(i) for i in range(n)]
    return theta, ModelData.of_columns(model, names, run.subject // 2, separate, run.columns, 2)


def on_a_grid(data, unknowns, mean, sd, held=None):
    """Evidence, mean and sd of the last free parameter by sums over a grid, [N] each."""
    axes = [np.linspace(m - 6 * s, m + 6 * s, 121) for m, s in zip(mean, sd, strict=True)]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    step = np.prod([axis[1] - axis[0] for axis in axes])
    prior = -0.5 * (((mesh - mean) / sd) ** 2).sum(axis=1) - np.log(sd * (2 * np.pi) ** 0.5).sum()
    found = []
    for i in range(len(data)):
        z = mesh if held is None else np.column_stack([np.full(len(mesh), held[i]), mesh])
        rows = data.repeat(np.full(len(z), i))
        log = unknowns.log_likelihood(rows, unknowns.parameters.constrain(z))[0] + prior
        top = log.max()
        weight = np.exp(log - top)
        total = weight.sum()
        centre = (weight @ mesh[:, -1]) / total
        spread = ((weight @ (mesh[:, -1] - centre) ** 2) / total) ** 0.5
        found.append((top + np.log(total * step), centre, spread))
    return np.array(found).T


def test_evidence_and_moments_are_those_of_sums_over_a_grid(lived):
    _, data = lived
    unknowns = Unknowns.of(AGENTS[MODEL], {"kappa": 0.0})
    parameters = unknowns.parameters
    log, mean, sd = on_a_grid(data, unknowns, parameters.mean, parameters.sd)
    found = posterior(AGENTS[MODEL], data, fixed={"kappa": 0.0}, draws=256)
    # 512 points, worth 100 or more: the evidence is off by less than 4 / 100 ** .5 / 10.
    assert np.abs(found.log_evidence - log).max() < 0.1
    assert np.abs(found.log_evidence - log).mean() < 0.03
    assert np.abs(found.z_mean[:, 1] - mean).max() < 0.15 * parameters.sd[1]
    assert np.allclose(found.z_covariance[:, 1, 1] ** 0.5, sd, rtol=0.2)
    assert "failed" not in found.status


def test_information_about_one_parameter_integrates_over_the_others(lived):
    theta, data = lived
    unknowns = Unknowns.of(AGENTS[MODEL], {"kappa": 0.0})
    parameters = unknowns.parameters
    z = parameters.unconstrain(theta[:, :2])
    about = posterior(AGENTS[MODEL], data, fixed={"kappa": 0.0}, draws=256)
    log, _, _ = on_a_grid(data, unknowns, parameters.mean[1:], parameters.sd[1:], z[:, 0])
    found = evidence_given(data, unknowns, [0], z[:, [0]], about)
    assert np.abs(found - log).max() < 0.1
    everything = evidence_given(data, unknowns, [0, 1], z, about)
    assert np.allclose(everything, unknowns.log_likelihood(data, parameters.constrain(z))[0])


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    folder = tmp_path_factory.mktemp("design") / "search"
    return folder, best_design(PLACE, budget={"trials": 192}, workers=1, out=folder, **SMALL)


def rows_of(folder, name, cell):
    """All rows of a cell of a step, read from its files."""
    study, _ = read_study(folder / name)
    parts = [study.part_name(b) for b in study.batches() if b.cell == cell]
    return pd.concat([pd.read_parquet(folder / name / "parts" / part) for part in parts])


def test_the_best_design_is_the_one_whose_rows_have_the_smallest_mean(search):
    folder, found = search
    last, _ = read_study(folder / "round-0")
    means = [rows_of(folder, "round-0", c)["score"].mean() for c in range(len(last.cells))]
    # As few designs as there are finalists: no halving.
    (rounds,) = found["Rounds"].to_dict("records")
    assert (rounds["designs"], rounds["data sets"]) == (6, 64)
    best = found["Search"].iloc[0]
    assert best["spread"].value == pytest.approx(min(means))
    winner = found["Best design"].loc["best", "settings"]
    assert winner == best["settings"]
    visits = last.cells[int(np.argmin(means))].settings["n_visits"]
    assert (winner == "as shipped") == (visits == 24)
    assert f"n_visits={visits}" in winner or visits == 24


def test_the_recovery_in_the_fresh_run_is_that_of_its_rows(search):
    folder, found = search
    fresh, _ = read_study(folder / "fresh")
    own = [c for c, cell in enumerate(fresh.cells) if cell.settings == fresh.cells[0].settings]
    rows = rows_of(folder, "fresh", own[-1])
    for parameter, row in (
        found["Recovery in the fresh run"].xs("best").set_index("parameter").iterrows()
    ):
        assert row["spread"].value == pytest.approx(rows[f"spread_{parameter}"].mean())
        assert row["90% covers"].value == pytest.approx(rows[f"covered_{parameter}"].mean())


def test_designs_share_their_minds_within_a_step_and_not_between_steps(search):
    folder, _ = search
    first, fresh = (read_study(folder / name)[0] for name in ("round-0", "fresh"))
    minds = [draw_subjects(first, Batch(c, 0, 20)).theta for c in (0, 1, 5)]
    assert all(np.array_equal(minds[0], other) for other in minds)
    assert not np.isin(minds[0], draw_subjects(fresh, Batch(0, 0, 20)).theta).any()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_all_that_an_experiment_declares_searchable_can_be_set(name):
    grid = {"design": "grid"} if name == "temporal_discounting" else {}
    place = make(name, **grid)
    for setting, how in ranges_of(place).items():
        for share in (0.0, 0.37, 0.999):
            value = how.at([share] * len(how.parts))
            repeats = {"n_repeats": 1} if setting == "design" else {}
            made = make(name, **{**place.settings, **repeats, setting: value})
            assert made.settings[setting] is not None
            json.dumps(value)
    paper = make(name, **{**place.settings, **place.published})
    assert paper.name == name


def test_money_is_what_budget_reckons_with(tmp_path):
    found = best_design(
        PLACE, "beta", budget={"dollars": 0.012}, llm="openai:gpt-4o-mini", date=DAY,
        search=["n_visits=4:6"], model=MODEL, designs=3, replicates=4, fresh=4, workers=1,
    )  # fmt: skip
    best = found["Search"].loc["searched"].iloc[0]
    place = make(PLACE, n_visits=int(best["settings"].removeprefix("n_visits=")))
    costs = [
        budget(place, "openai:gpt-4o-mini", model=MODEL, sessions=int(best["sessions"]) + more,
               date=DAY)["Cost"]["dollars high"].iloc[0]
        for more in (0, 1)
    ]  # fmt: skip
    assert float(costs[0]) == pytest.approx(best["cost in dollars"])
    assert float(costs[0]) <= 0.012 < float(costs[1])
