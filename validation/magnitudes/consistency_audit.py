"""The Bayesian consistency score of agents that adapt, that do not, and that never err."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import Sessions, simulate_sessions
from knownminds.environments import WINDOWS, Environment, make
from knownminds.environments.magnitudes.magnitude import Magnitude
from knownminds.inference.magnitudes.consistency_score import (
    ABLATIONS,
    COMPARISONS,
    KNOWN_OBSERVERS,
    MOST,
    NOISE,
    shift_scores,
)
from knownminds.inference.magnitudes.magnitude_answers import BASE, BOTH, IMAGE, MULTIMODAL
from knownminds.validation.engine.arguments import check_settings, several
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import mean, share_of
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.pages.views import Curves

if TYPE_CHECKING:
    from knownminds.validation.power.questions import Audit

MODEL = "static_bayes_observer"
EXACT = "perfect, exact"  # without noise
AT_ONCE = 250  # participants simulated at a time, which bounds the memory
TRIALS = (33, 99, 297, 990)
# Of the agents: prior weight in the base condition (0 in the perfect ones), by how much it grows in
# each ablation where the agent adapts, noise in fractions of the unit; and a score whose share of
# participants is named, as it looks like adaptation.
SETTINGS = {"prior_weight": 0.3, "shift": 0.1, "sigma": 0.06, "threshold": 5}
OPTIONS = ("trials",)  # of `audit` that this one takes besides settings, replicates and seed
NOTES = (
    f"Scores of {len(COMPARISONS)} comparisons, from {-MOST} to {MOST}, with Monte-Carlo errors. "
    "5% and 95%: quantiles of the participants. Trials are those of each task, condition and "
    "modality.",
)


def study(question: Audit) -> Study:
    """Let known agents play all conditions of the three tasks, and score them.

    The agents are static Bayesian observers: one whose prior weight grows in every ablation, one
    whose weight stays as it is, one with weight 0 and the same noise, and one without any noise.

    Parameters
    ----------
    question : Its trials are those of each task, condition and modality, multiples of 33; its
        settings are `SETTINGS`; its replicates are participants of each kind of agent and number of
        trials.

    Raises
    ------
    ValueError : If a setting is unknown (the nearest are named), or a number does not fit.
    """
    given = dict(question.settings or {})
    check_settings(given, SETTINGS)
    settings = SETTINGS | given
    weight, shift, sigma = (float(settings[name]) for name in ("prior_weight", "shift", "sigma"))
    if not 0 < weight < 1 or not 0 <= shift <= 1 - weight or not sigma > 0:
        raise ValueError(
            "The prior weight lies between 0 and 1, also after the shift, and noise is above 0; "
            f"got {weight:g}, {shift:g} and {sigma:g}."
        )
    if question.replicates < 2:
        raise ValueError(f"An audit needs at least 2 participants; got {question.replicates}.")
    trials = list(TRIALS) if question.trials is None else several(question.trials)
    each = len(WINDOWS) * 11
    for n in trials:
        if n < each or n % each:
            raise ValueError(f"Conditions have a multiple of {each} trials; got {n}.")
    cells = tuple(
        Cell(
            MULTIMODAL[0],
            {"repeats": n // each},
            MODEL,
            population=Population(observer=observer, trials=n, number=k),
            analysis=CellAnalysis(**settings, tasks=list(MULTIMODAL)),
            batch=AT_ONCE,
        )
        for k, observer in enumerate((*KNOWN_OBSERVERS, EXACT))
        for n in trials
    )
    options = question.option_values() | {"trials": trials, "set": settings}
    return Study("audit", cells, question.replicates, question.seed, "replicate", options)


def work(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let known agents play all conditions of the tasks, and score them: one row each."""
    cell = study.cells[batch.cell]
    observer, how = cell.population.observer, cell.analysis
    aim = 0.0 if observer.startswith("perfect") else how.prior_weight
    noise = 0.0 if observer == EXACT else how.sigma
    grow = how.shift if observer == "adapting" else 0.0
    address = (cell.population.number, cell.population.trials)
    weights = {
        (task, condition, modality): _weights(
            make(task, condition=condition, modality=modality, **cell.settings),
            {"w_prior": aim + grow * (condition != BASE), "sigma": noise},
            np.arange(batch.first, batch.last),
            study.seed,
            (*address, i, j, m),
        )
        for i, task in enumerate(MULTIMODAL)
        for j, condition in enumerate((BASE, *ABLATIONS))
        for m, modality in enumerate((BOTH, IMAGE))
        if condition == BASE or (modality == IMAGE) == (condition in NOISE)
    }
    score = np.zeros(len(batch))
    for c in COMPARISONS:
        base = weights[c.task, BASE, c.modality]
        score += shift_scores(base, weights[c.task, c.ablation, c.modality])
    return pd.DataFrame({"score": score, "status": "ok", "message": ""})


def say(rows: Rows) -> Result:
    """Score each kind of agent and number of trials by itself."""
    cells = rows.study.cells
    threshold = cells[0].analysis.threshold
    table = []
    for number, cell in enumerate(cells):
        cell_rows = rows.of(number)
        scores = cell_rows.loc[cell_rows["status"] == "ok", "score"].to_numpy(dtype=float)
        if len(scores) < 2:
            continue
        low, high = np.quantile(scores, [0.05, 0.95])
        table.append(
            {
                "observer": cell.population.observer,
                "trials": cell.population.trials,
                "expected": mean(scores),
                "sd": float(scores.std(ddof=1)),
                "5%": float(low),
                "95%": float(high),
                f"score >= {threshold}": share_of(scores >= threshold),
                "participants": len(scores),
            }
        )
    frame = pd.DataFrame(table)
    curves = Curves(
        "Expected score over trials per condition.", ("trials per condition", "score"), "trials",
        "expected", series=("observer",), limits=(0.0,), ticks=True,
    )  # fmt: skip
    return rows.result(
        "What does the consistency score give to known agents?",
        tables={"Scores of known agents": frame.set_index(["observer", "trials"])} if table else {},
        figures=curves.drawings(frame.sort_values("trials")) if table else {},
        notes=NOTES,
    )


def _weights(
    environment: Environment,
    weight: Mapping[str, float],
    participants: NDArray[np.int64],
    seed: int,
    address: tuple[int, ...],
) -> Array:
    """Let static observers play one condition; return the prior weights fitted to them, [R]."""
    assert isinstance(environment, Magnitude)
    middles = {f"mu_{k}": sum(environment.ranges[k]) / 2 / environment.unit for k in WINDOWS}
    parameters = {**weight, **middles}
    theta = [parameters[name] for name in AGENTS[MODEL].parameters.names]
    addresses = np.column_stack([np.tile(address, (len(participants), 1)), participants])
    every = np.tile(theta, (len(participants), 1))
    sessions = simulate_sessions(AGENTS[MODEL], every, environment, seed, addresses=addresses)
    return regressed(sessions, len(participants))


def regressed(sessions: Sessions, n: int) -> Array:
    """Return 1 - slope of answers on stimuli within windows, of each session."""
    x, y = (sessions.columns[name].astype(float) for name in ("value", "response"))
    group = sessions.subject * len(WINDOWS) + sessions.columns["window"].astype(np.int64)
    count = np.bincount(group)
    dx, dy = (z - (np.bincount(group, z) / count)[group] for z in (x, y))
    slope = np.bincount(sessions.subject, dx * dy, n) / np.bincount(sessions.subject, dx * dx, n)
    return 1.0 - slope
