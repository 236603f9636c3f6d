"""Gates: what every model and measure has to pass at its recommended design before a release."""

from __future__ import annotations

import datetime
import importlib.resources
import os
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.environments import Environment, make, unknown
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import writable, write_text
from knownminds.inference import MEASURES
from knownminds.validation.engine.arguments import resolve_environment, resolve_model
from knownminds.validation.engine.question import command_line
from knownminds.validation.engine.result import Result, flat
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import CLEAR, WEAK_R

KINDS = ("recovery", "shuffled", "calibration", "audit")  # the last of measures
# Units by kind and form: subjects of a recovery and of its control, replicates of the others.
LARGE = {"recovery": 300, "shuffled": 100, "calibration": 200, "audit": 400}
SMALL = {"recovery": 30, "shuffled": 30, "calibration": 20, "audit": 20}
SEED = 1
# A shuffle takes something away where Fisher's z falls by so many of its standard errors, and
# nothing where it falls by less than so many; what lies between is open.
CLEAR_FALL, NO_FALL = 3.5, 2.0
# What contradicts that a design gives a parameter back; words in between contradict nothing.
NOT_BACK = ("weak", "not identified", "between weak and not identified")
GONE = ("lost", "less", "between lost and less")
GATES, CONTRADICTIONS, RUNS = "Gates", "Contradictions", "Runs"  # titles of tables
ROW = ["gate", "name", "quantity"]  # what names a row
SCORES = ("r", "bias", "rmse", "coverage", "r_shuffled", "mean_rank", "spread", "p", "rejected")
COUNTS, RUN = ("attempted", "failed"), ("seconds", "command")
NOTES = (
    "Quantities are parameters; of a calibration also the log-likelihood, of an audit true "
    "effects. r, bias, rmse, coverage: of estimates against truths, and of 90% intervals (of an "
    "audit, of 95% intervals). r shuffled: the same r from sessions with shuffled answers, the "
    "negative control. mean rank, spread, p: of the ranks of a calibration. rejected: share of "
    "the data sets in which a test rejects at 5%. Monte-Carlo standard errors in parentheses.",
    f"Shuffled: lost, r falls clearly and is clearly below {WEAK_R}; less, it falls and is clearly "
    f"above; kept, Fisher's z falls by less than {NO_FALL:g} standard errors.",
)

# What can go wrong with the numbers of one gate; the others go on.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Recommendation:
    """The design that is recommended for a model, as `recommended.toml` has it.

    Parameters
    ----------
    environment, settings, trials, sessions
        The experiment, settings that differ from its own, trials per session (None: its own
        number), sessions per subject.
    open
        Parameters that the design does not give back, each with the reason.
    kept
        Parameters that are not lost when answers are shuffled within a session, with the reason.
    control
        Why the model has no shuffled control; empty if it has one.
    uncalibrated
        Why its definition rules out calibrated posteriors; empty if they are claimed.
    note
        What else is to be known, a sentence or more.
    pending
        Why its recovery at full size is not stored yet; empty if it is.
    """

    model: str
    environment: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    trials: int | None = None
    sessions: int = 1
    open: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    uncalibrated: str = ""
    note: str = ""
    pending: str = ""

    @property
    def agent(self) -> type[Agent]:
        """The model."""
        return AGENTS[self.model]

    def make(self) -> Environment:
        """Build the experiment."""
        return resolve_environment(make(self.environment, **self.settings), self.trials)

    def kinds(self) -> tuple[str, ...]:
        """Which gates the model has: none without parameters."""
        if not len(self.agent.parameters):
            return ()
        return tuple(kind for kind in KINDS[:3] if kind != "shuffled" or not self.control)


@cache
def recommendations() -> Mapping[str, Recommendation]:
    """Read the recommended designs, by model."""
    file = importlib.resources.files("knownminds.validation.gates") / "recommended.toml"
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: Recommendation(name, **entry) for name, entry in content.items()}


def recommendation(model: type[Agent] | str) -> Recommendation:
    """Return the recommended design of a model; ValueError if it has none."""
    name = resolve_model(model).name
    if name not in recommendations():
        raise ValueError(f"{name} has no recommended design; add one to recommended.toml.")
    return recommendations()[name]


def gates(
    names: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    small: bool = False,
    seed: int = SEED,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Put models through their gates at the recommended designs, and measures through audits.

    Parameters
    ----------
    names
        Of models and measures; all if None.
    kinds
        Any of recovery, shuffled, calibration and audit; all if None.
    small
        A tenth of the size (30 instead of 300 subjects): to see that it works.
    workers
        Processes; as many as there are cores if None.
    progress
        Called with (gates done, gates in all).

    Returns
    -------
    Table "Gates", a row per gate and quantity; "Contradictions" of what is claimed of the designs,
    at full size; "Without a result", gates that failed; "Runs", time and command of each gate.

    Raises
    ------
    ValueError
        For unknown names or kinds.
    """
    known = [*recommendations(), *MEASURES]
    for what, given, members in (("gate", kinds, KINDS), ("model or measure", names, known)):
        for name in given or ():
            if name not in members:
                raise ValueError(unknown(what, name, members))
    if workers is not None and workers < 1:
        raise ValueError(f"The number of workers is at least 1; got {workers}.")
    if seed < 0:
        raise ValueError(f"Seeds are whole numbers from 0 on; got {seed}.")
    units = SMALL if small else LARGE
    tasks = [
        (kind, name, units[kind], seed)
        for kind, name in _in_order(names or known)
        if kinds is None or kind in kinds
    ]
    outcomes: dict[tuple[str, str], pd.DataFrame | str] = {}
    for done, (task, outcome) in enumerate(_compute(tasks, workers), start=1):
        outcomes[task[:2]] = outcome
        if progress is not None:
            progress(done, len(tasks))
    in_order = [(task[:2], outcomes[task[:2]]) for task in tasks]
    tables = [table for _, table in in_order if isinstance(table, pd.DataFrame)]
    reasons = [(*key, reason) for key, reason in in_order if isinstance(reason, str)]
    empty = pd.DataFrame(columns=[*ROW, "verdict", *COUNTS, *RUN])
    whole = pd.concat(tables, ignore_index=True) if tables else empty
    columns = [name for name in ("verdict", *SCORES, *COUNTS) if name in whole]
    runs = whole.drop_duplicates(ROW[:2]).set_index(ROW[:2])
    asked = {"gate": kinds, "small": small, "seed": seed}
    return Result(
        "Do recommended designs give models back, and do tests keep their size?",
        tables={
            GATES: whole.set_index(ROW)[columns],
            CONTRADICTIONS: contradictions(whole),
            "Without a result": pd.DataFrame(reasons, columns=[*ROW[:2], "reason"]),
            RUNS: runs[list(RUN)],
        },
        notes=NOTES,
        attempted=int(runs["attempted"].sum()),
        failed=int(runs["failed"].sum()),
        asked={"names": names, **asked},
        command=command_line("gates", *(names or ()), **asked),
        seconds=float(runs["seconds"].sum()),
        versions=versions(),
    )


def write_gates(result: Result, file: str | os.PathLike[str]) -> None:
    """Write the table of gates as CSV, with today's date and the version; four digits of each."""
    table = result[GATES].join(result[RUNS])
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    stamp = {"date": date, "version": result.versions["knownminds"]}
    with writable(Path(file).parent):
        rows = flat(table).dropna(axis="columns", how="all").assign(**stamp)
        text = csv_text(rows, float_format="%.4g")
        write_text(Path(file), text)


def _in_order(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return kind and name of all gates, kind by kind and those of short sessions first."""
    designs = [recommendations()[name] for name in names if name in recommendations()]
    designs.sort(key=lambda design: design.make().n_trials * design.sessions)
    of_models = [(kind, one.model) for kind in KINDS for one in designs if kind in one.kinds()]
    return [*of_models, *(("audit", name) for name in names if name in MEASURES)]


Task = tuple[str, str, int, int]


def _compute(
    tasks: Sequence[Task], workers: int | None
) -> Generator[tuple[Task, pd.DataFrame | str], None, None]:
    processes = min(workers or os.cpu_count() or 1, max(len(tasks), 1))
    if processes == 1:
        yield from (_attempt(task) for task in tasks)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_attempt)(task) for task in tasks)


def _attempt(task: Task) -> tuple[Task, pd.DataFrame | str]:
    """Return the rows of a gate, or why it has none."""
    kind, name, units, seed = task
    began = perf_counter()
    try:
        table = _WORK[kind](name, units, seed)
    except FAILURES as error:
        return task, " ".join(str(error).split())
    table = table.rename_axis("quantity").reset_index()
    table.insert(0, "gate", kind)
    table.insert(1, "name", name)
    return task, table.assign(seconds=round(perf_counter() - began, 1))


def _counts(study: Result) -> dict[str, Any]:
    return {"attempted": study.attempted, "failed": study.failed, "command": study.command}


def _recovery(name: str, units: int, seed: int) -> pd.DataFrame:
    from knownminds.validation.recovery.parameter_recovery import recover

    design = recommendations()[name]
    study = recover(
        design.make(), name, subjects=units, sessions=design.sessions, seed=seed, workers=1
    )
    table = study["Estimates"][["verdict", "r", "bias", "rmse"]]
    return table.assign(coverage=study["Intervals"]["90% covers"], **_counts(study))


def _calibration(name: str, units: int, seed: int) -> pd.DataFrame:
    from knownminds.validation.calibration.calibration import calibrate

    design = recommendations()[name]
    study = calibrate(
        design.make(), name, replicates=units, sessions=design.sessions, seed=seed, workers=1
    )
    table = study["Ranks"][["verdict", "mean", "spread", "p"]].rename(columns={"mean": "mean_rank"})
    return table.assign(**_counts(study))


def _audit(name: str, units: int, seed: int) -> pd.DataFrame:
    from knownminds.validation.power.audit import audit

    study = audit(name, replicates=units, seed=seed, workers=1)
    verdicts = [verdict.word for verdict in study.verdicts.values()]  # of minds without an effect
    table = study["Operating characteristics"].reset_index()
    effects = [f"effect {effect:.3g}" for effect in table["effect"][len(verdicts) :]]
    table.index = pd.Index(["no effect"] * len(verdicts) + effects)
    table["verdict"] = verdicts + [""] * len(effects)
    table = table.rename(columns={"95% covers": "coverage"})
    return table[["verdict", "rejected", "bias", "coverage"]].assign(**_counts(study))


def _shuffled(name: str, units: int, seed: int) -> pd.DataFrame:
    """Correlate truth and most probable parameters, of sessions as they are and shuffled."""
    from knownminds.inference import maximum_a_posteriori
    from knownminds.validation.engine.simulated_data import simulated_data
    from knownminds.validation.recovery.parameter_recovery import shuffled

    design = recommendations()[name]
    model = design.agent
    names = list(model.parameters.names)
    trials = simulated_data(
        model, design.make(), subjects=units, sessions=design.sessions, seed=seed
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
    small = units == SMALL["shuffled"]
    command = command_line("gates", name, gate="shuffled", seed=seed, small=small)
    return table.assign(attempted=units, failed=failed, command=command)


_WORK = {
    "recovery": _recovery,
    "shuffled": _shuffled,
    "calibration": _calibration,
    "audit": _audit,
}


def judge_fall(r: float, r_shuffled: float, *, n: int) -> str:
    """Judge whether what a parameter says is gone when answers are shuffled within sessions.

    "lost" where the correlation with the truth falls clearly and is clearly below 0.5; "less" where
    it falls clearly and is clearly above; "kept" where it does not fall by 2 standard errors;
    "between" two of them elsewhere.

    Parameters
    ----------
    r, r_shuffled
        Correlation of truth and estimate as sessions were, and shuffled.
    n
        Subjects.
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
    table
        gate, name, quantity, verdict and attempted of each row.

    Returns
    -------
    The rows' gate, name, quantity and verdict, with `claimed`: the word that is claimed.
    """
    rows = []
    for row in table.to_dict("records"):
        design = recommendations().get(row["name"])
        if design is None or row["attempted"] < LARGE[row["gate"]]:
            continue
        claimed = _contradicted(row["gate"], row["quantity"], row["verdict"], design)
        if claimed:
            rows.append({name: row[name] for name in (*ROW, "verdict")} | {"claimed": claimed})
    return pd.DataFrame(rows, columns=[*ROW, "verdict", "claimed"])


def _contradicted(gate: str, quantity: str, word: str, design: Recommendation) -> str:
    """Return what is claimed of a quantity where a verdict contradicts it; "" elsewhere."""
    is_open, is_kept = quantity in design.open, quantity in design.kept
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
