"""What the observer of all magnitudes tells of known observers, and what the score says of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.agents.play import Sessions, simulate_sessions
from knownminds.environments import CONDITIONS, MODALITIES, session_stream
from knownminds.environments.magnitudes.magnitude import Magnitude
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.nested_tests import nested_tests
from knownminds.inference.magnitudes.consistency_score import COMPARISONS, shift_scores
from knownminds.inference.magnitudes.magnitude_answers import BASE
from knownminds.inference.magnitudes.observer_misfit import cell_misfit
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.benchmarks.plan import Cell as PlannedCell
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.calibration.rank_uniformity import judge, rank_of
from knownminds.validation.engine.arguments import several
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import agreement, mean, share_of
from knownminds.validation.engine.study import Batch, Rows, Study

from .consistency_audit import regressed

if TYPE_CHECKING:
    from knownminds.validation.power.questions import Audit

OBSERVER = AGENTS["bayesian_observer"]
NESTED = ("static", "equal", "unsteered", "flat")
SIZES = {99: False, 12: True}  # trials of each cell, by whether the plan's small size is taken
AT_ONCE = 50  # participants simulated and fitted at a time, which bounds the memory
MASS, LEVEL = 0.95, 0.05  # of intervals and tests
N_RANKS = 99  # draws of the posterior among which the truth has a rank
THRESHOLD = 5  # a score that looks like adaptation
ADAPTS = {
    "noise_text": 0.03, "noise_image": 0.06, "blur_slope": 0.01, "prior_precision": 100.0,
    "adaptation": 0.1, "steering_gain": 2.0, "told_weight": 0.5, "cue_optimality": 0.9,
    "report_noise": 0.01,
}  # fmt: skip
# Observers whose score is known in advance, by how they differ from the one that adapts. The last
# has no observer's parameters: a static one whose weight of the prior is .3 in all conditions.
SETTINGS: dict[str, dict[str, float] | None] = {
    "adapts": {},
    "adapts, hardly any noise": {"noise_text": 0.003, "noise_image": 0.006, "blur_slope": 0.0005},
    "adapts, weak prior": {"prior_precision": 5.0},
    "adapts, strong prior": {"prior_precision": 2000.0},
    "adapts, prior follows answers": {"adaptation": 0.9},
    "adapts to noise alone": {"steering_gain": 1.0, "told_weight": 0.0},
    "trusts the prior less when told": {"steering_gain": 0.5},
    "no prior": {"prior_precision": 1e-9},
    "never adapts": None,
}
NEVER = {"w_prior": 0.3, "mu_short": 0.3, "mu_medium": 0.5, "mu_long": 0.7, "sigma": 0.06}
OPTIONS = ("trials",)  # of `audit` that this one takes besides replicates and seed
NOTES = (
    "Participants play all cells of the benchmark of magnitudes. Recovery: parameters are drawn "
    "from the priors; estimates are posterior means, r is that on the unconstrained scale, "
    f"intervals hold {MASS:.0%}. Posterior: whether ranks of the truth among {N_RANKS} draws are "
    f"uniform, with the level of {LEVEL:.0%} shared by all parameters. Tests at {LEVEL:.0%}: share "
    "in which one observer does not describe the cells (misfit), and in which it does and the "
    "nested observer is rejected. That is a false alarm where the nested one is true, and power "
    "where parameters are drawn from all priors; the last is an observer of another kind, that "
    "never adapts. Confusion: share of participants of a kind for whom an observer has the least "
    "AIC.",
    "Score: the Bayesian consistency score, -15 to 15, with Monte-Carlo errors. By its weights: "
    "what it would be if each prior weight were known.",
)
_P, _LOW, _HIGH, _TRUE, _AIC, _RANK = "p_", "low_", "high_", "true_", "aic_", "rank_"


def study(question: Audit) -> Study:
    """Let known observers play the benchmark: those of the priors, nested ones, and settings.

    Parameters
    ----------
    question : Its trials are those of each cell, 99 or 12 (`--small`); its replicates are
        participants of each kind; it has no settings.

    Raises
    ------
    ValueError : If a number does not fit.
    """
    if question.settings:
        raise ValueError("The audit of the observer has no settings. Leave --set out.")
    if question.replicates < 2:
        raise ValueError(f"An audit needs at least 2 participants; got {question.replicates}.")
    trials = list(SIZES) if question.trials is None else several(question.trials)
    for n in trials:
        if n not in SIZES:
            raise ValueError(f"Cells of the benchmark have 99 trials, or 12 in small; got {n}.")
    kinds = ["any", *NESTED, *SETTINGS]
    cells = tuple(
        Cell("marker_location", {}, OBSERVER.name, batch=AT_ONCE,
             population=Population(observer=kind, trials=n, number=k))
        for k, kind in enumerate(kinds)
        for n in trials
    )  # fmt: skip
    options = question.option_values() | {"trials": trials}
    return Study("audit", cells, question.replicates, question.seed, "replicate", options)


def participants(kind: str, numbers: Sequence[int], seed: int) -> tuple[type[Model], Array]:
    """Return the model of a kind and the parameters of participants, [N, P]."""
    if kind in SETTINGS:
        changed = SETTINGS[kind]
        model = OBSERVER if changed is not None else AGENTS["static_bayes_observer"]
        values = NEVER if changed is None else {**ADAPTS, **changed}
        theta = np.array([values[name] for name in model.parameters.names])
        return model, np.tile(theta, (len(numbers), 1))
    model = OBSERVER if kind == "any" else AGENTS[f"{OBSERVER.name}_{kind}"]
    drawn = [model.parameters.draw(session_stream(seed, 41, i), 1)[0] for i in numbers]
    return model, np.array(drawn)


def played(
    model: type[Model], theta: Array, cells: Sequence[PlannedCell], seed: int,
    addresses: NDArray[np.int64],
) -> list[Sessions]:  # fmt: skip
    """Let participants theta[N, P] play one session of each cell, at (*addresses[i], cell)."""
    at = [np.column_stack([addresses, np.full(len(theta), c)]) for c in range(len(cells))]
    return [
        simulate_sessions(model, theta, cell.environment, seed, addresses=a)
        for cell, a in zip(cells, at, strict=True)
    ]


def over_cells(model: type[Model], sessions: Sequence[Sessions], n: int) -> ModelData:
    """Return the trials of n participants in all cells, as a model reads them."""
    flat = {
        name: np.concatenate([one.columns[name].astype(float) for one in sessions])
        for name in model.columns
    }
    subject = np.concatenate([one.subject for one in sessions])
    cell = np.repeat(np.arange(len(sessions)), [len(one.subject) for one in sessions])
    order = np.argsort(subject, kind="stable")  # trials of a session stay in order of time
    codes = [cell, *(np.unique(flat[name], return_inverse=True)[1] for name in model.separate)]
    apart = [np.asarray(code, dtype=np.int64)[order] for code in codes]
    names = list(map(str, range(n)))
    whole = {name: column[order] for name, column in flat.items()}
    return ModelData.of_columns(model, names, subject[order], apart, whole, 0)


def work(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let participants play all cells; score them, and fit those of the priors: a row each."""
    law = study.cells[batch.cell].population
    kind, trials, numbers = (
        str(law.observer),
        int(law.trials or 0),
        np.arange(batch.first, batch.last),
    )
    model, theta = participants(kind, numbers.tolist(), study.seed)
    cells = read_plan("magnitudes", small=SIZES[trials]).cells
    address = np.column_stack([np.tile((law.number, trials), (len(batch), 1)), numbers])
    sessions = played(model, theta, cells, study.seed, address)
    rows = pd.DataFrame({"status": "ok", "message": ""}, index=range(len(batch)))
    rows["score"] = _scores(cells, [regressed(one, len(batch)) for one in sessions])
    if kind in SETTINGS:
        rows["by_weights"] = 0.0 if model is not OBSERVER else _by_weights(cells, theta)
    if kind in SETTINGS and model is OBSERVER:
        return rows
    data = over_cells(OBSERVER, sessions, len(batch))
    rows["misfit"] = cell_misfit(OBSERVER, data, workers=1)["misfit_p"]
    tests = nested_tests(OBSERVER, data, workers=1)
    for name in NESTED:
        mine = tests[tests["without"] == f"{OBSERVER.name}_{name}"]
        rows[_P + name], rows[_AIC + name] = mine["p_value"].array, mine["aic"].array
    if kind == "any":
        fit = posterior(OBSERVER, data, workers=1, nuts=False, seed=study.seed)
        ends = (fit.estimate, *fit.interval(MASS), theta)
        for k, name in enumerate(OBSERVER.parameters.names):
            for prefix, values in zip(("", _LOW, _HIGH, _TRUE), ends, strict=True):
                rows[prefix + name] = values[:, k]
            rows[_RANK + name] = -1
        for i, number in enumerate(numbers):
            # All participants' draws rest on one set of points; ranks need draws of their own.
            rng = session_stream(study.seed, 42, trials, int(number))
            own = fit.draws[rng.choice(len(fit.draws), N_RANKS, replace=False), i]
            ranks = rank_of(theta[i], own, N_RANKS, rng)
            rows.loc[i, [_RANK + name for name in OBSERVER.parameters.names]] = ranks
        rows["status"] = list(fit.status)
    return rows


def _scores(cells: Sequence[PlannedCell], weights: Sequence[Array]) -> Array:
    """Return the score of each participant, given the prior weights in each cell, [N] each."""
    by_cell = {_address(cell): weight for cell, weight in zip(cells, weights, strict=True)}
    scores = [
        shift_scores(by_cell[c.task, BASE, c.modality], by_cell[c.task, c.ablation, c.modality])
        for c in COMPARISONS
    ]
    total: Array = np.sum(scores, axis=0)
    return total


def _address(cell: PlannedCell) -> tuple[str, str, str]:
    environment = cell.environment
    assert isinstance(environment, Magnitude)
    return environment.name, environment.condition, environment.modality


def _by_weights(cells: Sequence[PlannedCell], theta: Array) -> Array:
    """Return the score by the signs of the shifts of the true prior weight, 0 where it stays."""
    values = dict(zip(OBSERVER.parameters.names, theta.T, strict=True))
    weight: dict[tuple[str, str, str], Any] = {}
    for cell in cells:
        place: Any = cell.environment
        blur = np.linspace(0.0, place.blur, place.n_items)
        blur = blur if place.condition == "gradual_noise" else np.full(place.n_items, place.blur)
        at = []
        for pixels in blur:
            trial = SimpleNamespace(
                blur=pixels, modality=MODALITIES.index(place.modality), window=1, unit=place.unit,
                condition=CONDITIONS.index(place.condition),
            )  # fmt: skip
            one: Any = OBSERVER.with_values(values, 0, trial)
            weighted = one.variance(trial) * one.precision
            at.append(weighted / (1.0 + weighted))
        weight[_address(cell)] = np.mean(at, axis=0)
    shift = [
        weight[c.task, c.ablation, c.modality] - weight[c.task, BASE, c.modality]
        for c in COMPARISONS
    ]
    total: Array = np.sum(np.sign(np.round(shift, 9)), axis=0)
    return total


def say(rows: Rows) -> Result:
    """Make the tables: recovery, tests, confusion, and scores."""
    tables: dict[str, list[dict[str, Any]]] = {
        "Recovery": [], "Tests of nested observers": [], "Confusion": [], "Scores": [],
    }  # fmt: skip
    for number, cell in enumerate(rows.study.cells):
        mine = rows.of(number)
        mine = mine[mine["status"] != "failed"]
        kind, n = cell.population.observer, cell.population.trials
        about = {"observer": kind, "trials": n}
        if len(mine) < 2:
            continue
        if kind == "any":
            tables["Recovery"] += [{"trials": n, **row} for row in _recovery(mine)]
        if kind in SETTINGS:
            tables["Scores"].append(about | _scored(mine))
        if "misfit" not in mine or mine["misfit"].isna().all():
            continue
        fits = (mine["misfit"] > LEVEL).to_numpy()
        shares = {"misfit": share_of(~fits)}
        shares |= {n: share_of((mine[_P + n] <= LEVEL).to_numpy() & fits) for n in NESTED}
        tables["Tests of nested observers"].append(about | shares)
        if kind in SETTINGS:
            continue
        least = mine[[_AIC + name for name in NESTED]].assign(aic_any=0.0).to_numpy().argmin(axis=1)
        named = [*NESTED, "any"]
        best = {name: share_of(least == k) for k, name in enumerate(named)}
        tables["Confusion"].append(about | best)
    index = {"Recovery": ["trials", "parameter"]}
    return rows.result(
        "What does a fit over all cells find in known observers, and what does the score say?",
        tables={
            name: pd.DataFrame(table).set_index(index.get(name, ["observer", "trials"]))
            for name, table in tables.items()
            if table
        },
        notes=NOTES,
    )


def _recovery(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Say of each parameter how near the estimates are, and whether its posterior is calibrated."""
    table, level = [], LEVEL / len(OBSERVER.parameters.names)
    for parameter in OBSERVER.parameters:
        name, z = parameter.name, parameter.support.unconstrain
        true, value = rows[_TRUE + name].to_numpy(), rows[name].to_numpy()
        inside = rows[_LOW + name].to_numpy() <= true
        inside &= true <= rows[_HIGH + name].to_numpy()
        ranks = judge(rows[_RANK + name].to_numpy(dtype=int), N_RANKS, level)
        table.append(
            {"parameter": name, "r": agreement(z(true), z(value)).r,
             "bias (z)": mean(z(value) - z(true)), f"{MASS:.0%} covers": share_of(inside),
             "rank mean": ranks.mean, "rank spread": ranks.spread, "p of ranks": ranks.p,
             "posterior": ranks.verdict.word, "participants": len(rows)}
        )  # fmt: skip
    return table


def _scored(rows: pd.DataFrame) -> dict[str, Any]:
    scores = rows["score"].to_numpy(dtype=float)
    low, high = np.quantile(scores, [0.05, 0.95])
    return {
        "by its weights": float(rows["by_weights"].iloc[0]), "expected": mean(scores),
        "sd": float(scores.std(ddof=1)), "5%": float(low), "95%": float(high),
        f"score >= {THRESHOLD}": share_of(scores >= THRESHOLD), "participants": len(rows),
    }  # fmt: skip
