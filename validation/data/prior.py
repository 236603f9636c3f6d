"""Prior predictive check: what agents drawn from a model's priors do in an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import session_stream
from knownminds.validation.engine.arguments import check_truth, resolve_environment
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Batch, Rows, Study

from .fit_figures import draw_panels
from .panels import Panel, PanelRows, panel_means, panels_of
from .predictive import MASS
from .questions import Simulate

MOST_SUBJECTS = 100_000  # all are simulated at once
QUANTILES = {"low": 0.5 - MASS / 2, "median": 0.5, "high": 0.5 + MASS / 2}
NOTES = (
    "Each agent is drawn from the model's priors, and takes one session. Numbers are over agents: "
    f"mean and median of their means, and from low to high those of {MASS:.0%} of them.",
)
CAPTION = (
    "What single agents from the prior do: lines are medians over agents, shaded is what "
    f"{MASS:.0%} of them do."
)
_KEY = 73  # of the stream of agents


def compute(question: Simulate) -> Result:
    """Answer `simulate --report`."""
    if not 2 <= question.subjects <= MOST_SUBJECTS:
        raise ValueError(
            f"Subjects are compared, from 2 to {MOST_SUBJECTS:,}; got {question.subjects:,} "
            "(--subjects)."
        )
    for name in ("sessions", "lapse", "questions", "adaptive"):
        if getattr(question, name) != Simulate.__dataclass_fields__[name].default:
            raise ValueError(
                "A prior predictive check is of one session of each subject, as the model has it; "
                f"got --{name}. Leave it out."
            )
    agent = question.agent
    environment = resolve_environment(question.environment, question.trials)
    agent.check_plays(environment)
    cell = Cell(
        environment.name,
        environment.settings,
        agent.name,
        check_truth(agent.parameters, question.truth),
        subjects=question.subjects,
        batch=question.subjects,
    )
    options = question.option_values() | {"trials": environment.n_trials}
    study = Study("simulate", (cell,), 1, question.seed, "subject", options)
    return run(study, behave_batch, say, question)


def behave_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let agents from the prior take a session each: a row per agent, with its means by panel.

    Columns of means are named by a JSON list: title of the panel, series, position. The latter two
    are null for the mean over all points.
    """
    cell = study.cells[batch.cell]
    agent, environment, n = AGENTS[cell.model], cell.make(), cell.subjects
    theta = agent.parameters.draw(session_stream(study.seed, _KEY), n)
    for name, value in cell.truth.items():
        theta[:, agent.parameters.index(name)] = value
    sessions = simulate_sessions(agent, theta, environment, study.seed, address=(_KEY,))
    rows = PanelRows(environment, sessions.columns, sessions.subject)
    columns = {f"true_{name}": theta[:, k] for k, name in enumerate(agent.parameters.names)}
    for panel, series, x, mean in panel_means(environment, rows, rows, n):
        whole = json.dumps([panel.title, None, None])
        if whole not in columns:
            columns[whole] = _over_all_points(panel, rows, n)
        columns[json.dumps([panel.title, series, x])] = mean
    table = pd.DataFrame({"status": "ok", "message": "", **columns})
    return table.iloc[batch.first : batch.last]


def _over_all_points(panel: Panel, rows: PanelRows, n: int) -> Array:
    """Return each agent's mean over all points of a panel, [agents]; NaN where it has none."""
    points = panel.look(rows)
    usable = np.isfinite(points.x) & np.isfinite(points.y) & (points.series >= 0)
    session = rows.session[points.row[usable]]
    count = np.bincount(session, minlength=n)
    total = np.bincount(session, points.y[usable], minlength=n)
    mean: Array = np.divide(total, count, out=np.full(n, np.nan), where=count > 0)
    return mean


def say(rows: Rows) -> Result:
    """Summarise behaviour under the priors over the agents of a study."""
    cell, frame = rows.study.cells[0], rows.frame
    panels = {panel.title: panel for panel in panels_of(cell.make())}
    table = []
    for column in (str(name) for name in frame if str(name).startswith("[")):
        title, series, x = json.loads(column)
        values = frame[column].dropna()
        row = {"panel": title, "mean of": panels[title].y, "along": panels[title].x}
        row |= {"series": series, "x": x, "mean": values.mean()}
        table.append(row | {name: values.quantile(q) for name, q in QUANTILES.items()})
    tables: dict[str, pd.DataFrame] = {}
    figures: Mapping[str, Drawing] = {}
    if table:
        whole = pd.DataFrame(table)
        over_all = whole["series"].isna()
        by_position = whole[~over_all].reset_index(drop=True)
        tables = {
            "Means over all trials": whole[over_all]
            .set_index("panel")
            .drop(columns=["along", "series", "x"]),
            "Means by position": by_position.drop(columns=["along", "mean of"]).set_index(
                ["panel", "series"]
            ),
        }
        figures = {CAPTION: Drawing(by_position, draw_prior)}
    return rows.result(
        f"What do agents from the prior of {cell.model} do in {cell.environment}?",
        tables=tables,
        figures=figures,
        notes=NOTES,
    )


def draw_prior(positions: pd.DataFrame) -> Figure:
    """Draw the median over agents and what 90% of them do, a panel for each panel."""
    return draw_panels(positions.rename(columns={"mean of": "mean_of", "median": "middle"}))
