"""Gates: recovery, its shuffled control and calibration of every model.

    python docs/gates.py                         # all of them, before a release: two CPU hours
    python docs/gates.py rescorla_wagner --small # one, a tenth of the size: to see that it works

A model is put through its gates in its recommended design (`recommended`). The
table is written as CSV with date and version; `docs/gallery.py` shows it. Measures have the
standing audit, `docs/conclusions.py`.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

import knownminds
from knownminds.agents import AGENTS, Model
from knownminds.agents.recommended_design import RecommendedDesign
from knownminds.environments import Environment, make, unknown
from knownminds.inference import maximum_a_posteriori
from knownminds.validation.engine.arguments import resolve_environment
from knownminds.validation.engine.parts import flat
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.verdicts import CLEAR, WEAK_R
from knownminds.validation.recovery.parameter_recovery import shuffled

STORED = Path(__file__).resolve().parent / "data" / "gates.csv"
KINDS = ("recovery", "shuffled", "calibration")
# Units by kind: subjects of a recovery and of its control, replicates of the others.
LARGE = {"recovery": 300, "shuffled": 100, "calibration": 200}
SMALL = {"recovery": 30, "shuffled": 30, "calibration": 20}
# A shuffle takes something away where Fisher's z falls by so many of its standard errors, and
# nothing where it falls by less than so many; what lies between is open.
CLEAR_FALL, NO_FALL = 3.5, 2.0
# What contradicts that a design gives a parameter back; words in between contradict nothing.
NOT_BACK = ("weak", "not identified", "between weak and not identified")
GONE = ("lost", "less", "between lost and less")
ROW = ["gate", "name", "quantity"]  # what names a row
# What can go wrong with the numbers of one gate; the others go on.
FAILURES = (ArithmeticError, ValueError, RuntimeError)


def design_of(model: type[Model]) -> RecommendedDesign:
    """Return the recommended design of a model; ValueError if it has none."""
    if model.recommended is None:
        raise ValueError(
            f"{model.name} has no recommended design; add one to the recommended.toml beside it."
        )
    return model.recommended


def environment_of(design: RecommendedDesign) -> Environment:
    """Build the experiment of a design."""
    return resolve_environment(make(design.environment, **design.settings), design.trials)


def kinds_of(model: type[Model]) -> tuple[str, ...]:
    """Return which gates a model has: none without parameters."""
    if not len(model.parameters):
        return ()
    return tuple(k for k in KINDS if k != "shuffled" or not design_of(model).control)


def gates(
    names: Sequence[str], *, small: bool = False, seed: int = 1, workers: int | None = None
) -> pd.DataFrame:
    """Put models through their gates; return a row per quantity.

    Parameters
    ----------
    names : Of models; all if none.
    small : A tenth of the size (30 instead of 300 subjects).
    workers : Processes; as many as there are cores if None.
    """
    for name in names:
        if name not in AGENTS:
            raise ValueError(unknown("model", name, AGENTS))
    models = [AGENTS[name] for name in names or AGENTS]
    models.sort(key=lambda one: environment_of(design_of(one)).n_trials * design_of(one).sessions)
    tasks = [(kind, one.name) for kind in KINDS for one in models if kind in kinds_of(one)]
    units = SMALL if small else LARGE
    with parallel_config("loky", n_jobs=workers or os.cpu_count(), inner_max_num_threads=1):
        parallel = Parallel(batch_size=1, verbose=5)
        tables = parallel(delayed(_attempt)(*task, units[task[0]], seed) for task in tasks)
    return pd.concat([table for table in tables if table is not None], ignore_index=True)


def _attempt(kind: str, name: str, units: int, seed: int) -> pd.DataFrame | None:
    """Return the rows of a gate; None, and a line on stderr, if it has none."""
    began = perf_counter()
    try:
        table = {"recovery": _recovery, "shuffled": _shuffled, "calibration": _calibration}[kind](
            name, units, seed
        )
    except FAILURES as error:
        print(f"{kind} of {name} has no result: {error}", file=sys.stderr)
        return None
    table = table.rename_axis("quantity").reset_index()
    table.insert(0, "gate", kind)
    table.insert(1, "name", name)
    return table.assign(seconds=round(perf_counter() - began, 1))


def _counts(study: Result) -> dict[str, Any]:
    return {"attempted": study.attempted, "failed": study.failed, "command": study.command}


def _recovery(name: str, units: int, seed: int) -> pd.DataFrame:
    design = design_of(AGENTS[name])
    study = knownminds.recover(
        environment_of(design), name, subjects=units, sessions=design.sessions, seed=seed, workers=1
    )
    table = study["Estimates"][["verdict", "r", "bias", "rmse"]]
    return table.assign(coverage=study["Intervals"]["90% covers"], **_counts(study))


def _calibration(name: str, units: int, seed: int) -> pd.DataFrame:
    design = design_of(AGENTS[name])
    study = knownminds.calibrate(
        environment_of(design), name, replicates=units, sessions=design.sessions, seed=seed,
        workers=1,
    )  # fmt: skip
    table = study["Ranks"][["verdict", "mean", "spread", "p"]].rename(columns={"mean": "mean_rank"})
    return table.assign(**_counts(study))


def _shuffled(name: str, units: int, seed: int) -> pd.DataFrame:
    """Correlate truth and most probable parameters, of sessions as they are and shuffled."""
    model = AGENTS[name]
    design, names = design_of(model), list(model.parameters.names)
    trials = knownminds.simulate(
        environment_of(design), name, subjects=units, sessions=design.sessions, seed=seed
    )
    truth = trials.frame.drop_duplicates("subject").set_index("subject")
    truth = truth[[f"true_{name}" for name in names]]
    correlations, failed = {}, 0
    for column, data in (("r", trials), ("r_shuffled", shuffled(trials, seed))):
        fit = maximum_a_posteriori(model, data, workers=1)
        usable = np.array([status != "failed" for status in fit.status])
        failed = max(failed, int((~usable).sum()))
        z = model.parameters.unconstrain(truth.loc[list(fit.subjects)].to_numpy(dtype=float))
        correlations[column] = [
            Score(_correlation(z[usable, k], fit.z[usable, k])) for k in range(len(names))
        ]
    table = pd.DataFrame(correlations, index=names)
    falls = zip(table["r"].map(float), table["r_shuffled"].map(float), strict=True)
    table["verdict"] = [judge_fall(*both, n=units - failed) for both in falls]
    return table.assign(attempted=units, failed=failed, command=f"python docs/gates.py {name}")


def judge_fall(r: float, r_shuffled: float, *, n: int) -> str:
    """Judge whether what a parameter says is gone when answers are shuffled within sessions.

    "lost" where the correlation with the truth falls clearly and is clearly below 0.5; "less" where
    it falls clearly and is clearly above; "kept" where it does not fall by 2 standard errors;
    "between" two of them elsewhere.

    Parameters
    ----------
    r, r_shuffled : Correlation of truth and estimate as sessions were, and shuffled.
    n : Subjects.
    """
    if n < 10:
        return "not judged"
    most = 1 - 1e-9  # Fisher's z of a perfect correlation is infinite
    here, there = (np.arctanh(np.clip(x, -most, most)) for x in (r, r_shuffled))
    fall = (here - there) / np.sqrt(2 / (n - 3))
    above = (abs(there) - np.arctanh(WEAK_R)) * np.sqrt(n - 3)
    if fall < NO_FALL:
        return "kept"
    if abs(above) < CLEAR:
        return "between lost and less" if fall >= CLEAR_FALL else "between lost and kept"
    word = "lost" if above < 0 else "less"
    return word if fall >= CLEAR_FALL else f"between {word} and kept"


def _correlation(truth: np.ndarray[Any, Any], z: np.ndarray[Any, Any]) -> float:
    """Pearson's r; 0 where the estimates do not vary, which tells nothing of the truth."""
    if len(z) < 3 or np.ptp(z) < 1e-9:
        return 0.0
    return float(np.corrcoef(truth, z)[0, 1])


def contradictions(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of gates of full size that contradict what is claimed of their designs.

    Parameters
    ----------
    table : gate, name, quantity, verdict and attempted of each row.

    Returns
    -------
    The rows' gate, name, quantity and verdict, with `claimed`: the word that is claimed.
    """
    rows = [
        {name: row[name] for name in (*ROW, "verdict")} | {"claimed": claimed}
        for row in table.to_dict("records")
        if row["name"] in AGENTS and row["attempted"] >= LARGE[row["gate"]]
        if (claimed := _contradicted(row, design_of(AGENTS[row["name"]])))
    ]
    return pd.DataFrame(rows, columns=[*ROW, "verdict", "claimed"])


def _contradicted(row: Mapping[Any, Any], design: RecommendedDesign) -> str:
    """Return what is claimed of a quantity where a verdict contradicts it; "" elsewhere."""
    gate, word = row["gate"], row["verdict"]
    is_open, is_kept = row["quantity"] in design.open, row["quantity"] in design.kept
    cases = {
        "given back": gate == "recovery" and word in NOT_BACK and not is_open,
        "not given back": gate == "recovery" and word == "recoverable" and is_open,
        "kept": gate == "shuffled" and word in GONE and is_kept and not is_open,
        "lost": gate == "shuffled" and word == "kept" and not is_kept and not is_open,
        "calibrated": gate == "calibration"
        and word not in ("calibrated", "not judged")
        and not design.uncalibrated,
    }
    return next((claimed for claimed, contradicted in cases.items() if contradicted), "")


def write_gates(table: pd.DataFrame, file: Path) -> None:
    """Write the rows of gates as CSV, with today's date and the version; four digits of each."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = flat(table).assign(date=date, version=knownminds.__version__)
    rows.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="models; all if none")
    parser.add_argument("--small", action="store_true", help="a tenth of the size")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, default=STORED, help="the CSV file")
    given = parser.parse_args()
    table = gates(given.names, small=given.small, seed=given.seed, workers=given.workers)
    write_gates(table, given.out)
    print(contradictions(table).to_string() if len(contradictions(table)) else "as claimed")
