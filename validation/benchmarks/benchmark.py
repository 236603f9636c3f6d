"""A benchmark in its folder: what was planned, what each cell has come to, and all trials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import ParquetFile

from knownminds.environments import ANSWERED, Outcome, Trials
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.result import plain
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.ledger import Ledger, has_run
from knownminds.llm_adapters.runs.prices import NANO
from knownminds.llm_adapters.runs.runner import TRIALS, read_run
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.data.trials_of_runs import BY, put_together, with_columns
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.views import WHO

from .known import live
from .paper import CELL, KNOWN, VARIANT, About
from .plan import Cell, Plan, read_plan

FILE = "benchmark.json"
PLAN = "plan.toml"
RUNS = "runs"
MINDS = "known"
# Of trials, what no page needs and takes most of the room.
_LEFT_OUT = ["raw_text", "prompt_hash", "note"]
FINISHED, UNFINISHED, NOT_BEGUN = "finished", "unfinished", "not begun"
UNREAD = "no readable answer"
NO_TEMPERATURE = "none"


@dataclass(frozen=True, eq=False)
class Played:
    """What models and known agents have done in the cells of a benchmark.

    Parameters
    ----------
    folder
        Where it is kept.
    plan
        What was planned.
    models
        What they are called, "provider:model" for instance, in the order in which they were named.
    own
        Of each, the settings that make it a participant of its own.
    cells
        One row per model and cell: sessions and how many ended, trials, readable, each outcome,
        calls, tokens, dollars (at most; NaN without a price), status, and why it is not finished.
    trials
        All trials of everybody, with their conditions.
    options
        How the page is made: small, features, people, seed.
    """

    folder: Path
    plan: Plan
    models: tuple[str, ...]
    own: Mapping[str, Sequence[str]]
    cells: pd.DataFrame
    trials: pd.DataFrame
    options: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every cell was played to its end."""
        return bool(self.cells["status"].isin([FINISHED, UNREAD]).all())

    @property
    def about(self) -> About:
        """What its page can be made of besides the trials."""
        plan = self.plan
        truth = {
            name: {
                c.name: dict(settings)
                for c in plan.cells
                if (settings := plan.known_agent(name, c)) is not None
            }
            for name in plan.known
        }
        paths = (self.options.get(name) for name in ("features", "people"))
        features, people = (None if path is None else Path(path) for path in paths)
        return About(
            environments=plan.environments,
            participants=(*self.models, *plan.known),
            known=tuple(plan.known),
            own=self.own,
            truth=truth,
            paraphrases=int(self.options.get("paraphrases") or 1),
            seed=plan.seed,
            kept=self.folder / MINDS,
            features=features,
            people=people,
        )


def folder_of_model(folder: Path, model: str) -> Path:
    """Return where the runs of a model are kept; each has a folder of its own."""
    plainly = re.sub(r"[^\w.=-]+", "-", model).strip("-")
    return folder / RUNS / f"{plainly}-{sha256(model.encode()).hexdigest()[:6]}"


def folder_of_cell(folder: Path, model: str, cell: Cell) -> Path:
    """Return where the run of a model in a cell is kept."""
    return folder_of_model(folder, model) / cell.key.replace("/", "+")


def begin(
    folder: Path,
    plan: Plan,
    models: Sequence[str],
    options: Mapping[str, Any],
    blocked: Mapping[tuple[str, str], str],
    own: Mapping[str, Sequence[str]],
) -> None:
    """Write down what is planned, before the first call; a folder of another plan is refused.

    Parameters
    ----------
    blocked
        By model and cell, why it cannot be played.
    own
        By model, the settings that make it a participant of its own.
    """
    requested, models = set(models), list(models)
    kept = dict(options)
    if (folder / FILE).is_file():
        stored = _kept(folder)
        before = (folder / PLAN).read_text(encoding="utf-8")
        same = {name: kept.get(name) for name in ("small", "seed", "paraphrases")}
        usual = {name: stored["options"].get(name) for name in same}
        if before != plan.text or usual != same:
            raise ValueError(
                f"A folder holds one plan; that in {folder} is another than this one "
                "(or --small, --seed or --paraphrases differs). Name another folder."
            )
        models = list(dict.fromkeys([*stored["models"], *models]))
        own = stored["own"] | own
        kept = stored["options"] | {k: v for k, v in kept.items() if v is not None}
        reasons = {(one["model"], one["cell"]): one["reason"] for one in stored["blocked"]}
        blocked = {k: why for k, why in reasons.items() if k[0] not in requested} | dict(blocked)
    content = {
        "benchmark": plan.benchmark,
        "models": models,
        "own": own,
        "options": kept,
        "blocked": [{"model": m, "cell": c, "reason": why} for (m, c), why in blocked.items()],
        "versions": versions(),
    }
    with writable(folder) as path:
        write_text(path / PLAN, plan.text)
        write_text(path / FILE, json.dumps(plain(content), indent=1))
        (path / MINDS).mkdir(exist_ok=True)
    _let_agents_play(folder, plan)


def read_benchmark(folder: str | Path) -> Played:
    """Read a benchmark from its folder: what there is, finished or not, without a call.

    Raises
    ------
    ValueError
        If the folder holds none, or is damaged.
    """
    path = Path(folder)
    stored = _kept(path)
    options = stored["options"]
    plan = read_plan(
        stored["benchmark"],
        path / PLAN,
        small=bool(options.get("small")),
        seed=options.get("seed"),
        paraphrases=int(options.get("paraphrases") or 1),
    )
    blocked = {(one["model"], one["cell"]): one["reason"] for one in stored["blocked"]}
    rows: list[dict[str, Any]] = []
    parts: dict[str, pd.DataFrame] = {}
    for model in stored["models"]:
        for cell in plan.cells:
            run = folder_of_cell(path, model, cell)
            row, frame = _cell_of(run, model, cell, blocked.get((model, cell.key), ""))
            rows.append(row)
            if frame is not None:
                parts[f"{model}/{cell.key}"] = _named(frame, model, cell, known=False)
    for name in plan.known:
        for cell in plan.cells:
            file = _agent_file(path, name, cell)
            if file.is_file() and cell.wording == SHIPPED:
                parts[f"{name}/{cell.name}"] = _named(_read(file), name, cell, known=True)
    return Played(
        folder=path,
        plan=plan,
        models=tuple(stored["models"]),
        own=stored["own"],
        cells=pd.DataFrame(rows),
        trials=with_columns(put_together(parts)) if parts else pd.DataFrame(),
        options=options,
        versions=stored["versions"],
    )


def take_inspect_logs(
    folder: Path, plan: Plan, logs: Sequence[str | Path], options: Mapping[str, Any]
) -> list[str]:
    """Take the trials of Inspect's logs into a benchmark, each into the cell it was made of.

    Returns a line for each log. The model of a log is called as Inspect calls it.

    Raises
    ------
    ValueError
        If a file is no log of such a task, of no cell of the plan, or of a cell that is there.
    """
    from knownminds.llm_adapters.runs.inspect_tasks import read_inspect_log

    files = [file for path in map(Path, logs) for file in _logs_in(path)]
    taken: dict[tuple[str, str], tuple[Path, Trials, Cell]] = {}
    for file in files:
        trials = read_inspect_log(file)
        cell = _cell_of_trials(trials, plan, file)
        model = f"inspect:{trials.frame['model'].iloc[0]}"
        run = folder_of_cell(folder, model, cell)
        if (model, cell.name) in taken or has_run(run):
            raise ValueError(
                f"A model has one log of each cell; {model} has several of {cell.name}, the last "
                f"in {file.name}. Leave one."
            )
        taken[model, cell.name] = file, trials, cell
    own = {model: [*Participant.read(model).sampling] for model, _ in taken}
    begin(folder, plan, list(own), options, {}, own)
    for (model, _), (_, trials, cell) in taken.items():
        run = folder_of_cell(folder, model, cell)
        with writable(run):
            trials.save(run / TRIALS)
    return [
        f"{file.name}: {model} in {name}, {len(trials)} trials"
        for (model, name), (file, trials, _) in taken.items()
    ]


def _logs_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    logs = sorted(file for file in path.rglob("*") if file.suffix in (".eval", ".json"))
    if not logs:
        raise ValueError(
            f"A folder of logs of Inspect's holds .eval or .json files; {path} has none."
        )
    return logs


def _cell_of_trials(trials: Trials, plan: Plan, file: Path) -> Cell:
    """Return the cell whose experiment and settings trials have."""
    for cell in plan.cells:
        recorded = trials.settings.get(cell.environment.name)
        expected = plain(cell.environment.settings)
        if recorded is not None and all(
            expected.get(name) == value for name, value in recorded.items()
        ):
            return cell
    name = trials.frame["environment"].iloc[0]
    raise ValueError(
        f"A log is of a cell of the plan; that of {name} in {file.name} has other settings than "
        f"any. Cells: {', '.join(cell.name for cell in plan.cells)}."
    )


def finished(run: Path, cell: Cell) -> bool:
    """Say whether a run has come to the end of all of a cell's sessions."""
    if not ((run / TRIALS).is_file() and has_run(run)):
        return False
    with Ledger.read(run) as ledger:
        last = ledger.starts[-1]
        done = last.ended is not None and not last.reason and not last.sessions
        return done and ledger.sessions == cell.sessions


def _kept(folder: Path) -> dict[str, Any]:
    file = folder / FILE
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if not {"benchmark", "models", "own", "options", "blocked", "versions"} <= {*content}:
            raise ValueError("entries are missing")
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged or not of knownminds ({error}).") from None
    return content


def _cell_of(
    run: Path, model: str, cell: Cell, blocked: str
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Return what a cell has come to, and its trials, if there are any."""
    row: dict[str, Any] = {
        "model": model, "cell": cell.name, "wording": cell.wording, "sessions": cell.sessions,
        "ended": 0, "trials": 0, "readable": 0, **{outcome.value: 0 for outcome in Outcome},
        "calls": 0, "tokens": 0,
        "dollars": np.nan, "status": NOT_BEGUN, "reason": blocked,
    }  # fmt: skip
    if not has_run(run):
        if not (run / TRIALS).is_file():
            return row, None
        logged = _read(run / TRIALS)  # from a log of Inspect's
        ended = len(logged[["subject", "session"]].drop_duplicates())
        return row | _counts(logged, ended, cell.sessions), logged
    with Ledger.read(run) as ledger:
        account, price, sessions = ledger.account(), ledger.price, ledger.sessions
    frame: pd.DataFrame | None
    if finished(run, cell):
        frame, left, stopped = _read(run / TRIALS), 0, ""
    else:
        run_so_far = read_run(run, cell.environment)
        frame = None if run_so_far.trials is None else run_so_far.trials.frame
        left, stopped = len(run_so_far.unfinished), run_so_far.stopped
    ended = sessions - left
    row |= {"calls": sum(account.calls.values()), "ended": ended}
    row["tokens"] = account.input_tokens + account.output_tokens
    if price is not None:
        row["dollars"] = float(Decimal(account.paid + account.reserved) / NANO)
    row |= _counts(frame, ended, cell.sessions)
    over = row["status"] != UNFINISHED
    row["reason"] = "" if over else stopped or blocked
    return row, frame


def _read(file: Path) -> pd.DataFrame:
    """Read trials that were checked when knownminds wrote them."""
    try:
        with ParquetFile(file.absolute()) as whole:
            names = [name for name in whole.schema_arrow.names if name not in _LEFT_OUT]
            table = whole.read(columns=names, use_threads=False)
        frame: pd.DataFrame = table.to_pandas(use_threads=False)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file} cannot be read as trials: {error}") from None
    return frame


def _counts(frame: pd.DataFrame | None, ended: int, sessions: int) -> dict[str, Any]:
    """Count the trials of a cell, and say whether it is finished and can be read."""
    row: dict[str, Any] = {"ended": ended, "trials": 0, "readable": 0}
    if frame is not None:
        outcomes = frame["outcome"].value_counts()
        row |= {str(name): int(n) for name, n in outcomes.items()}
        read = frame["outcome"].isin(ANSWERED)
        row |= {"trials": len(frame), "readable": int(read.sum())}
    over = ended >= sessions
    unread = over and row["trials"] and not row["readable"]
    return row | {"status": UNREAD if unread else FINISHED if over else UNFINISHED}


def _named(frame: pd.DataFrame, who: str, cell: Cell, *, known: bool) -> pd.DataFrame:
    """Return trials with who answered in which cell; `model` is the name that the user knows.

    An agent without a temperature has none: "none" stands in its column, where that of
    a language model is empty if it is the provider's.
    """
    kept = frame.drop(columns=_LEFT_OUT, errors="ignore")
    if known or who.startswith("synthetic:"):
        temperature = (
            kept["temperature"] if "temperature" in kept else pd.Series(np.nan, kept.index)
        )
        kept["temperature"] = temperature.astype(object).where(temperature.notna(), NO_TEMPERATURE)
    names: dict[str, Any] = {BY: who, WHO: who, CELL: cell.name}
    names |= {VARIANT: cell.variant, KNOWN: known}
    return kept.assign(**names)


def _agent_file(folder: Path, name: str, cell: Cell) -> Path:
    plainly = re.sub(r"[^\w.=-]+", "-", name)
    return folder / MINDS / f"{plainly}+{cell.name.replace('/', '+')}.parquet"


def _let_agents_play(folder: Path, plan: Plan) -> None:
    """Let known agents play the sessions that models play, and keep their trials."""
    for name in plan.known:
        for cell in plan.cells:
            file = _agent_file(folder, name, cell)
            if file.is_file() or cell.wording != SHIPPED:  # words are nothing to it
                continue
            trials = live(plan, name, cell)
            if trials is not None:
                trials.save(file)
