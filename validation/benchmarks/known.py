"""Known agents of a plan: how they live its cells, and whether their parameters are recovered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, CueCombiner, Model
from knownminds.agents.parameters import Array
from knownminds.agents.play import play_tables, simulate_sessions
from knownminds.environments import Environment, Trials, make
from knownminds.environments.magnitudes.magnitude import BLUR, CONDITIONS, MODALITIES, Magnitude
from knownminds.environments.streams import session_uniforms
from knownminds.inference import maximum_a_posteriori
from knownminds.llm_adapters.runs.participant import RUN, conditions
from knownminds.validation.engine.parts import Part
from knownminds.validation.pages.views import WHO, Rows, ends
from knownminds.validation.pages.views import Cell as Written

from .paper import CELL, About, part_of, readable
from .plan import Cell, Plan, stream_of, theta_of

LEVEL = 0.95  # of the intervals
STARTS = 2


def live(plan: Plan, name: str, cell: Cell) -> Trials | None:
    """Let a known agent play a cell's sessions, which models play too; None if it plays none.

    What is shown follows from the seed and the session alone, and so is the same in every cell.
    What the agent answers by comes from a stream of its own in the cell.
    """
    agent = plan.known_agent(name, cell)
    if agent is None:
        return None
    model, environment = AGENTS[agent["model"]], cell.environment
    theta = np.tile(theta_of(agent, environment), (cell.sessions, 1))
    if issubclass(model, CueCombiner) and isinstance(environment, Magnitude):
        frame = _combined(model, theta, environment, plan.seed, name)
    else:
        sessions = simulate_sessions(
            model, theta, environment, plan.seed, address=RUN, stream=cell.stream(name)
        )
        frame = sessions.to_trials().frame
    labels = {"model": name, "model_served": agent["model"], **conditions(environment, None)}
    new = {column: value for column, value in labels.items() if column not in frame}
    frame = frame.assign(session=frame["subject"], subject=name)
    return Trials.from_frame(frame.assign(**new), environment=environment)


def _combined(
    model: type[Model], theta: Array, environment: Magnitude, seed: int, name: str
) -> pd.DataFrame:
    """Let an agent that combines its answers to words and to pictures take a cell of one modality.

    It answers to words, pictures and both in one session, of which the cell's part is kept. Each
    part has its stream, the same in every cell. So what it combines is what it answers in the cells
    of words and of pictures. Words are never blurred, and other conditions change none.
    """
    whole = make(environment.name, **{**environment.settings, "modality": "all"})
    addresses = [(*RUN, i) for i in range(len(theta))]
    tables = whole.tables(session_uniforms(seed, addresses, whole.n_draws))
    drawn = np.empty((len(theta), whole.n_trials, model.n_uniforms))
    blurred = environment.condition if environment.condition in BLUR else CONDITIONS[0]
    whose = (CONDITIONS[0], blurred, environment.condition)
    for k, (modality, condition) in enumerate(zip(MODALITIES, whose, strict=True)):
        mine = tables["modality"][0] == k
        stream = stream_of(f"{environment.name}, {modality}, {condition}: {name}")
        n = int(mine.sum()) * model.n_uniforms
        numbers = session_uniforms(seed, [(*one, stream) for one in addresses], n)
        drawn[:, mine] = numbers.reshape(len(theta), -1, model.n_uniforms)
    uniforms = drawn.reshape(len(theta), -1)
    frame = play_tables(model, theta, whole, tables, uniforms, None).to_trials().frame
    kept = frame[frame["modality"] == MODALITIES.index(environment.modality)]
    return kept.assign(trial=kept.groupby("subject", sort=False).cumcount())


# Whether they are recovered -----------------------------------------------------------------------

TITLE = "Known agents: what was put in, and what comes back"
TEXT = (
    "Each known agent's model, fitted to its answers in all cells of an experiment in which it "
    "has the same parameters: most probable values under the model's priors with 95% intervals, "
    "beside the truth. Where answers say little, estimates lie near the prior."
)


def recovery(trials: pd.DataFrame, about: About) -> Part:
    """Return the part that sets known agents' parameters beside what is fitted to them."""
    rows = recovered_parameters(trials, about)
    columns: Mapping[str, Written] = {
        "model": lambda row: row["model"].replace("_", " "),
        "truth": "truth",
        "estimate": ends(),
        "within": "within",
        "trials": "trials",
        "remark": "remark",
    }
    lines = (WHO, "experiment", "parameter")
    return part_of(
        "known_agents", TITLE, TEXT, (rows, Rows("Parameters of known agents", columns, lines))
    )


def recovered_parameters(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Fit to each known agent's answers its model.

    Returns
    -------
    DataFrame : One row per known agent, experiment and parameter: participant, experiment, cells,
        model, parameter, truth, value, low, high (95%), within (whether the interval holds the
        truth; None without one), trials, remark (why there is no value, or what is wrong with it).
    """
    groups = _groups(about)
    rows: list[dict[str, Any]] = []
    for (model, _), several in groups.items():
        parts = {name: _answers_of(trials, *one) for name, one in several.items()}
        there = {name: part for name, part in parts.items() if len(part)}
        if there:
            rows += _fitted(AGENTS[model], there, several, about)
    order = {who: k for k, who in enumerate(about.known)}
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    position = table[WHO].map(order).to_numpy()
    return table.iloc[np.argsort(position, kind="stable")].reset_index(drop=True)


_Kind = tuple[str, tuple[Any, ...]]  # name of a model, and what kernels and ranges hang on
_Mind = tuple[str, tuple[str, ...]]  # known agent, and the cells in which it is the same


def _groups(about: About) -> dict[_Kind, dict[str, _Mind]]:
    """Return agents that can be fitted together, each with the cells in which it is the same."""
    groups: dict[_Kind, dict[str, _Mind]] = {}
    for who in about.known:
        for cell, agent in about.truth.get(who, {}).items():
            environment = about.environments[cell]
            kind = (environment.name, environment.n_actions, tuple(environment.response_range))
            values = ", ".join(f"{k}={v}" for k, v in sorted(agent.items()))
            several = groups.setdefault((agent["model"], kind), {})
            _, before = several.get(f"{who}: {values}", (who, ()))
            several[f"{who}: {values}"] = who, (*before, cell)
    return groups


def _answers_of(trials: pd.DataFrame, who: str, cells: Sequence[str]) -> pd.DataFrame:
    answers = trials[(trials[WHO] == who) & trials[CELL].isin(cells)]
    return answers[readable(answers).to_numpy()]


def _fitted(
    agent: type[Model],
    parts: Mapping[str, pd.DataFrame],
    several: Mapping[str, _Mind],
    about: About,
) -> list[dict[str, Any]]:
    """Fit a model to several agents at once, and return a row per agent and parameter."""
    frames = [_one_subject(agent, part, name) for name, part in parts.items()]
    whole = pd.concat(frames, ignore_index=True).dropna(axis="columns", how="all")
    environment: Environment = about.environments[several[next(iter(parts))][1][0]]
    names, reason = agent.parameters.names, ""
    values = low = high = np.full((len(parts), len(names)), np.nan)
    remarks, subjects = [""] * len(parts), list(parts)
    try:
        fit = maximum_a_posteriori(agent, Trials.from_frame(whole), starts=STARTS, workers=1)
        values, (low, high) = fit.estimate, fit.interval(LEVEL)
        remarks, subjects = list(fit.message), list(fit.subjects)
    except ValueError as error:
        reason = str(error)
    rows = []
    for i, subject in enumerate(subjects):
        who, cells = several[subject]
        truth = theta_of(about.truth[who][cells[0]], environment)
        labels = {
            WHO: who, "experiment": _together(cells), "cells": ", ".join(cells),
            "model": agent.name, "trials": len(parts[subject]),
        }  # fmt: skip
        remark = reason or remarks[i] if names else "it has no parameters"
        numbers = (truth, values[i], low[i], high[i]) if names else [[np.nan]] * 4
        for name, *each in zip(names or ("none",), *numbers, strict=True):
            row = dict(zip(("truth", "value", "low", "high"), map(float, each), strict=True))
            known = np.isfinite([row["low"], row["high"]]).all()
            within = row["low"] <= row["truth"] <= row["high"] if known else None
            rows.append({**labels, "parameter": name, **row, "within": within, "remark": remark})
    return rows


def _one_subject(agent: type[Model], part: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return an agent's trials as those of one subject, with the sessions of all its cells."""
    session = part[CELL].astype(str) + "/" + part["session"].astype(str)
    if not issubclass(agent, CueCombiner):
        return part.assign(session=session, subject=name)
    # What it answers to both hangs on its answers in the cells of words and of pictures.
    condition = part["condition"].astype(float).astype(int)
    blurred = condition.isin([CONDITIONS.index(one) for one in BLUR])
    last = part["session"].astype(str).str.rpartition("/")[2]
    session = condition.where(blurred, 0).astype(str) + "/" + last
    order = ["session", "modality", CELL, "trial"]
    kept = part.assign(session=session, subject=name).sort_values(order, kind="stable")
    return kept.assign(trial=kept.groupby("session", sort=False).cumcount())


def _together(cells: Sequence[str]) -> str:
    """Name the experiment of some cells, and the cell if there is but one."""
    names = list(dict.fromkeys(cell.partition("/")[0] for cell in cells))
    if len(cells) == 1:
        return cells[0]
    more = f" ({len(cells)} cells)" if len(names) == 1 else f" and {len(cells) - 1} more"
    return f"{names[0]}{more}"
