"""What a model predicts that its rivals do not: panels of behaviour, simulated from both.

Subjects of the model take the experiment. A rival's posterior given a subject's session yields one
draw, with which the rival takes the session again. Where the rival is the model itself, draw and
truth are exchangeable given the data, so that a subject's means in both sessions have the same
distribution: differences have mean 0 whatever the design, which paired t tests use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy
from statsmodels.stats.multitest import multipletests

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.data.panels import PanelRows, panel_means
from knownminds.validation.engine.cells import Cell, CellAnalysis
from knownminds.validation.engine.population import draw_subjects, live
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.verdicts import Verdict, reason

LEVEL = 0.05  # of the tests of all panels of a rival together
SHOWN = 10  # rows of the table for each rival
_KEY = 74  # of the streams of the rivals' sessions


def prediction_study(
    environment: Environment, model: str, rivals: Sequence[str], subjects: int, seed: int
) -> Study:
    """Return the study: a subject of the model is a unit, all in one batch."""
    analysis = CellAnalysis(rivals=list(rivals))
    cell = Cell(environment.name, environment.settings, model, subjects=subjects, analysis=analysis,
                batch=subjects)  # fmt: skip
    return Study("predict", (cell,), 1, seed, "subject")


def predict_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Return a row for each subject: its means in all panels, and those of each rival.

    Columns of means are named by a JSON list: who, title of the panel, series, x.
    """
    cell, n = study.cells[batch.cell], len(batch)
    played = live(study, batch, draw_subjects(study, batch))
    environment = played.environment
    shown = PanelRows(environment, played.columns, played.subject)
    sessions = {cell.model: shown}
    failed = np.zeros(n, dtype=bool)
    for number, name in enumerate(cell.analysis.rivals):
        rival = AGENTS[name]
        sample = posterior(rival, played.data(rival), seed=study.seed, workers=threads)
        chosen = session_stream(study.seed, _KEY, number).integers(len(sample.draws), size=n)
        theta = sample.draws[chosen, np.arange(n)]
        lost = np.array(sample.status) == "failed"
        theta[lost] = rival.parameters.constrain(rival.parameters.mean)
        failed |= lost
        again = simulate_sessions(
            rival, theta, environment, study.seed, address=(_KEY, number, cell.data_key)
        )
        sessions[name] = PanelRows(environment, again.columns, again.subject, shown)
    columns: dict[str, Array] = {}
    for name, rows in sessions.items():
        for panel, series, x, mean in panel_means(environment, shown, rows, n):
            columns[json.dumps([name, panel.title, series, x])] = mean
    status = np.where(failed, "failed", "ok")
    message = np.where(failed, "no trustworthy draws of a rival's posterior", "")
    return pd.DataFrame({"status": status, "message": message, **columns})


def predicted(rows: Rows) -> Result:
    """Compare the means of each rival with those of the model, subject by subject."""
    cell, frame = rows.study.cells[0], rows.frame
    whole = frame[frame["status"] == "ok"]
    named = {str(c): json.loads(str(c)) for c in frame if str(c).startswith("[")}
    model_columns = {
        tuple(name[1:]): column for column, name in named.items() if name[0] == cell.model
    }
    tables, verdicts = [], {}
    for rival in cell.analysis.rivals:
        theirs = {tuple(name[1:]): column for column, name in named.items() if name[0] == rival}
        compared = [
            row for key, column in model_columns.items()
            if key in theirs and (row := _row(key, whole[column], whole[theirs[key]]))
        ]  # fmt: skip
        verdicts[rival] = _verdict(compared)
        tables.append(pd.DataFrame(compared).assign(rival=rival))
    table = pd.concat(tables, ignore_index=True)
    if len(table):
        table = table.sort_values(["rival", "p"]).groupby("rival").head(SHOWN)
        table = table.set_index(["rival", "panel", "series", "x"])
    title = f"What does {cell.model} predict that its rivals do not?"
    return rows.result(title, verdicts=verdicts, tables={"Predictions": table}, command="")


def _row(key: tuple[object, ...], model: pd.Series, rival: pd.Series) -> dict[str, object]:
    """Return means and their paired difference; nothing where fewer than 3 subjects have both."""
    difference = (model - rival).dropna()
    if len(difference) < 3 or not difference.std():
        return {}
    test = scipy.stats.ttest_1samp(difference, 0.0)
    error = float(difference.std() / np.sqrt(len(difference)))
    return {
        **dict(zip(("panel", "series", "x"), key, strict=True)),
        "model": float(model.mean()),
        "rival's": float(rival.mean()),
        "difference": Score(float(difference.mean()), error),
        "p": float(test.pvalue),
    }


def _verdict(compared: Sequence[dict[str, object]]) -> Verdict:
    """Say whether the panels differ, by Holm's test of all of them; adjust their p-values."""
    if not compared:
        return Verdict("not judged", ("no panel has means of both",))
    adjusted = multipletests([row["p"] for row in compared], LEVEL, "holm")[1]
    for row, p in zip(compared, adjusted, strict=True):
        row["p"] = float(p)
    least = min(compared, key=lambda row: float(str(row["p"])))
    word = "differs" if float(str(least["p"])) <= LEVEL else "predicts the same"
    return Verdict(word, (reason(f"{least['panel']}, p", float(str(least["p"])), np.nan, LEVEL),))
