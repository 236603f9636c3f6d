"""A benchmark in its folder: what was planned, what each cell has come to, and all trials."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import ParquetFile

from knownminds.environments import ANSWERED, Outcome, Trials
from knownminds.environments.conditions import AS_SET, SHARED_DESIGN, conditions_of
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.tabled_result import plain
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.ledger import Ledger, has_run
from knownminds.llm_adapters.runs.prices import NANO
from knownminds.llm_adapters.runs.runner import TRIALS, read_run
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.data.trials_of_runs import (
    BY,
    load,
    named_runs,
    put_together,
    runs_in,
    with_columns,
)
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.views import KNOWN, WHO

from .known import live
from .paper import CELL, SCORES, VARIANT, About
from .plan import BASE, Cell, Plan, read_plan
from .public_files import CROWD, PublicFiles, is_checkout, public_files, said
from .registry import PAPERS, plan_of

FILE = "benchmark.json"
PLAN = "plan.toml"
RUNS = "runs"
KNOWN_FOLDER = "known"
PUBLISHED_SCORES = "published.parquet"
# Of trials, what no page needs and takes most of the room.
_LEFT_OUT = ["raw_text", "prompt_hash", "note"]
_ENTRIES = {"benchmark", "models", "published", "people", "own", "options", "blocked", "versions"}
FINISHED, UNFINISHED, NOT_BEGUN = "finished", "unfinished", "not begun"
UNREAD = "no readable answer"
NOT_THERE = "not in the files"  # of a participant whose answers were taken in, and who is not asked
OVER = (FINISHED, UNREAD, NOT_THERE)
NO_TEMPERATURE = "none"
LOGGED = "inspect:"  # precedes the name of a model in a log
LOGS = (".eval", ".json")


@dataclass(frozen=True, eq=False)
class Played:
    """What models and known agents have done in the cells of a benchmark.

    Parameters
    ----------
    folder : Where it is kept.
    plan : What was planned.
    models : What they are called, "provider:model" for instance, in the order in which they were
        named.
    own : Of each, the settings that make it a participant of its own.
    cells : One row per model and cell: sessions and how many ended, trials, readable, each outcome,
        calls, tokens, dollars (at most; NaN without a price), status, and why it is not finished.
    trials : All trials of everybody, with their conditions.
    options : How the page is made: small, features, people, seed.
    published, people : Who of the models are of a paper's own files, and who are people.
    taken : Whose answers were all taken from files, of these or others.
    scores : Scores that were published without trials, with the columns `SCORES`.
    """

    folder: Path
    plan: Plan
    models: tuple[str, ...]
    own: Mapping[str, Sequence[str]]
    cells: pd.DataFrame
    trials: pd.DataFrame
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    published: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    scores: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=SCORES))

    @property
    def complete(self) -> bool:
        """Whether every cell was played to its end."""
        return bool(self.cells["status"].isin(OVER).all())

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
        shipped = plan_of(plan.benchmark).with_name(f"{plan.benchmark}_features.csv")
        if features is None and self.published and shipped.is_file():
            features = shipped
        return About(
            environments=plan.environments,
            participants=(*self.models, *plan.known),
            known=tuple(plan.known),
            crowd=self.people,
            own=self.own,
            truth=truth,
            paraphrases=int(self.options.get("paraphrases") or 1)
            + bool(self.options.get("templates")),
            seed=plan.seed,
            kept=self.folder / KNOWN_FOLDER,
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
    published: Sequence[str] = (),
    people: Sequence[str] = (),
) -> None:
    """Write down what is planned, before the first call; a folder of another plan is refused.

    Parameters
    ----------
    blocked : By model and cell, why it cannot be played.
    own : By model, the settings that make it a participant of its own.
    published, people : Who of the models are of a paper's own files, and who are people.
    """
    requested, models = set(models), list(models)
    kept = dict(options)
    if (folder / FILE).is_file():
        stored = _kept(folder)
        before = (folder / PLAN).read_text(encoding="utf-8")
        same = {name: kept.get(name) for name in ("small", "seed", "paraphrases", "templates")}
        usual = {name: stored["options"].get(name) for name in same}
        if before != plan.text or usual != same:
            raise ValueError(
                f"A folder holds one plan; that in {folder} is another than this one "
                "(or --small, --seed, --paraphrases or --templates differs). Name another folder."
            )
        models = list(dict.fromkeys([*stored["models"], *models]))
        own = stored["own"] | own
        kept = stored["options"] | {k: v for k, v in kept.items() if v is not None}
        reasons = {(one["model"], one["cell"]): one["reason"] for one in stored["blocked"]}
        blocked = {k: why for k, why in reasons.items() if k[0] not in requested} | dict(blocked)
        published, people = (
            list(dict.fromkeys([*stored[name], *some]))
            for name, some in (("published", published), ("people", people))
        )
    content = {
        "benchmark": plan.benchmark,
        "models": models,
        "published": list(published),
        "people": list(people),
        "own": own,
        "options": kept,
        "blocked": [{"model": m, "cell": c, "reason": why} for (m, c), why in blocked.items()],
        "versions": versions(),
    }
    with writable(folder) as path:
        write_text(path / PLAN, plan.text)
        write_text(path / FILE, json.dumps(plain(content), indent=1))
        (path / KNOWN_FOLDER).mkdir(exist_ok=True)
    _let_agents_play(folder, plan)


def read_benchmark(folder: str | Path) -> Played:
    """Read a benchmark from its folder: what there is, finished or not, without a call.

    Raises
    ------
    ValueError : If the folder holds none, or is damaged.
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
        templates=options.get("templates"),
    )
    blocked = {(one["model"], one["cell"]): one["reason"] for one in stored["blocked"]}
    rows: list[dict[str, Any]] = []
    parts: dict[str, pd.DataFrame] = {}
    of_files = []
    for model in stored["models"]:
        runs = [folder_of_cell(path, model, cell) for cell in plan.cells]
        taken = any((r / TRIALS).is_file() for r in runs) and not any(map(has_run, runs))
        of_files += [model] * taken
        for cell, run in zip(plan.cells, runs, strict=True):
            row, frame = _cell_of(run, model, cell, blocked.get((model, cell.key), ""))
            if taken and row["status"] == NOT_BEGUN:
                row["status"] = NOT_THERE
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
        published=tuple(stored["published"]),
        people=tuple(stored["people"]),
        taken=tuple(of_files),
        scores=_published_scores(path),
    )


def _published_scores(folder: Path) -> pd.DataFrame:
    """Return the scores that came without trials; a table without rows where none did."""
    file = folder / PUBLISHED_SCORES
    if not file.is_file():
        return pd.DataFrame(columns=SCORES)
    return pd.read_parquet(file.absolute()).reindex(columns=SCORES)


@dataclass(frozen=True, eq=False)
class _Taken:
    """Answers of one participant in a cell, from files.

    Parameters
    ----------
    parts : By name of the file, its trials.
    differs : What of the design is another than the plan's.
    """

    parts: dict[str, pd.DataFrame] = field(default_factory=dict)
    differs: dict[str, None] = field(default_factory=dict)


def take_answers(
    folder: Path,
    plan: Plan,
    sources: Sequence[str | Path],
    options: Mapping[str, Any],
    people: Sequence[str | Path] = (),
) -> list[str]:
    """Take answers that there are into a benchmark, each into the cell that it was asked in.

    Sources are files of trials, folders of runs, logs of Inspect's, and folders of a paper's own
    public files. A participant is a value of the column `model`, else the file. A cell is that of
    the experiment and its conditions; what else of the design differs is said. The model of a log
    is called as Inspect calls it.

    Parameters
    ----------
    people : Files of trials of people, who are one participant together.

    Returns a line for each participant and cell.

    Raises
    ------
    ValueError : If a source cannot be read, or is of no cell of the plan or of a cell that was run.
    """
    taken: dict[tuple[str, Cell], _Taken] = {}
    public = [public_files(path) for path in map(Path, sources) if _is_public(path)]
    own_files = [path for path in map(Path, sources) if not _is_public(path)]
    for name, trials, prefix in _sources(own_files):
        for model, part in _by_participant(name, trials, prefix):
            _take(taken, folder, plan, name, model, part, single=bool(prefix))
    for name, trials, _ in _sources(people):
        for _, part in _by_participant(name, trials):
            _take(taken, folder, plan, name, CROWD, part, single=False)
    passed, theirs = _take_public(taken, folder, plan, public)
    if not taken:
        raise ValueError(_nothing(plan, public))
    own = {m: [*Participant.read(m).sampling] if m.startswith(LOGGED) else [] for m, _ in taken}
    reasons = {
        (model, cell.key): f"other design: {', '.join(one.differs)}"
        for (model, cell), one in taken.items()
        if one.differs
    }
    crowd = {name for found in public for name in found.people} | ({CROWD} if people else set())
    there = {model for model, _ in taken}
    begin(
        folder, plan, list(own), options, reasons, own,
        [m for m in own if m in theirs], [m for m in own if m in crowd & there],
    )  # fmt: skip
    lines = []
    for (model, cell), one in taken.items():
        with writable(folder_of_cell(folder, model, cell)) as run:
            whole = put_together(one.parts)
            Trials.from_frame(whole).save(run / TRIALS)
        line = f"{', '.join(one.parts)}: {model} in {cell.name}, {len(whole)} trials"
        lines.append(f"{line}; other design: {', '.join(one.differs)}" if one.differs else line)
    scores = [found.scores.drop(columns=INFLUENCE) for found in public if len(found.scores)]
    if scores:
        whole = pd.concat(scores, ignore_index=True)
        whole.to_parquet((folder / PUBLISHED_SCORES).absolute())
        lines.append(f"published scores of {whole[WHO].nunique()} engines, {len(whole)} in all")
    return [*lines, *passed]


def _nothing(plan: Plan, public: Sequence[PublicFiles]) -> str:
    """Return the sentence on folders without an answer to a question of the plan."""
    there = {str(t.frame["environment"].iloc[0]) for found in public for _, t in found.trials}
    asked = {name: {e.name for e in read_plan(name).environments.values()} for name in PAPERS}
    theirs = " or ".join(name for name, experiments in asked.items() if there & experiments)
    remedy = f"Ask for the benchmark {theirs}." if theirs else "Name another folder."
    return (
        f"Answers are of a cell of the plan; those of the folder are of "
        f"{', '.join(sorted(there)) or 'no experiment'}, under conditions that no cell of "
        f"{plan.benchmark} has. {remedy}"
    )


def _is_public(path: Path) -> bool:
    """Say whether a source is a folder of tables of others, not of runs or logs."""
    return is_checkout(path) and not any(
        file.suffix == ".eval" or file.name == TRIALS for file in path.rglob("*")
    )


def _by_participant(
    name: str, trials: Trials, prefix: str = ""
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each participant and condition of a source."""
    frame = trials.frame
    if "environment" not in frame:
        raise ValueError(
            f"Answers are those to an experiment; {name} names none. Import it, or add a "
            "column 'environment'."
        )
    who = frame[BY] if BY in frame else pd.Series(np.nan, frame.index)
    keys: list[Any] = [prefix + who.astype(object).where(who.notna(), name).astype(str)]
    keys += [frame[column] for column in ("environment", *AS_SET) if column in frame]
    for key, rows in frame.groupby(keys, sort=False, dropna=False):
        part = rows.reset_index(drop=True)
        part.attrs = dict(frame.attrs)
        yield str(key[0]), part


def _take(
    taken: dict[tuple[str, Cell], _Taken], folder: Path, plan: Plan, name: str, model: str,
    part: pd.DataFrame, single: bool,
) -> None:  # fmt: skip
    """Add rows of a participant to what is taken; ValueError if they are of no cell."""
    cell, differs = _cell_of_trials(Trials(part), plan, name)
    one = taken.setdefault((model, cell), _Taken())
    if has_run(folder_of_cell(folder, model, cell)) or (single and one.parts):
        raise ValueError(
            f"A participant has a run or a log of a cell, or files; {model} has several "
            f"of {cell.name}, the last in {name}. Leave one."
        )
    label = name if name not in one.parts else f"{name}+{len(one.parts)}"
    part.attrs = {}
    one.parts[label] = part
    one.differs.update(dict.fromkeys(differs))


def _take_public(
    taken: dict[tuple[str, Cell], _Taken], folder: Path, plan: Plan, public: Sequence[PublicFiles]
) -> tuple[list[str], set[str]]:
    """Take a paper's own files; what is of no cell of the plan is passed over and said.

    Of several versions of the same questions the last one is taken, and of answers at several
    temperatures those at the plan's. Returns what was passed over, and who is in the files.
    """
    passed: dict[str, list[str]] = {}
    theirs: set[str] = set()
    experiments = {cell.environment.name for cell in plan.cells}
    for found in public:
        parts = [
            (name, model, part)
            for name, trials in found.trials
            for model, part in _by_participant(name, trials)
        ]
        last: dict[tuple[Any, ...], float] = {}
        for _, model, part in parts:
            key = _asked(model, part)
            last[key] = max(last.get(key, -1.0), _version(part))
        for name, model, part in parts:
            warm = _number_in(part, "temperature")
            cell_warm = {c.sampling.temperature for c in plan.cells} - {None}
            experiment = str(part["environment"].iloc[0])
            if experiment not in experiments:
                passed.setdefault(f"{experiment} is not in the plan", []).append(name)
            elif _version(part) < last[_asked(model, part)]:
                passed.setdefault("an earlier version of the prompts", []).append(name)
            elif not _asked_for(part, plan):
                passed.setdefault("asked in a way that no cell has", []).append(name)
            elif warm is not None and cell_warm and warm not in cell_warm:
                passed.setdefault("a temperature that is not the plan's", []).append(name)
            else:
                try:
                    _take(taken, folder, plan, name, model, part, single=False)
                except ValueError as error:
                    finding = str(error).partition("; ")[2].partition(". ")[0]
                    reason = finding.replace(f"{name} has some of ", "") or str(error)
                    passed.setdefault(reason, []).append(name)
                    continue
                theirs.add(model)
        theirs |= set(found.scores[WHO])
    lines = [line for found in public for line in found.unused]
    return [*lines, *(said("passed over", why, names) for why, names in passed.items())], theirs


def _asked(model: str, part: pd.DataFrame) -> tuple[Any, ...]:
    """Return by what the answers of two versions of prompts are the same questions."""
    names = [name for name in ("environment", *AS_SET, "temperature") if name in part]
    return (model, *(str(part[name].iloc[0]) for name in names))


def _asked_for(part: pd.DataFrame, plan: Plan) -> bool:
    """Say whether some cell asks for the same kind of answer."""
    if "reasoning" not in part:
        return True
    kinds = {str(conditions_of(cell.environment).get("reasoning", "none")) for cell in plan.cells}
    return str(part["reasoning"].iloc[0]) in kinds


def _version(part: pd.DataFrame) -> float:
    """Return the number of the version of the prompts; 0 where they have none."""
    return _number_in(part, "template") or 0.0


def _number_in(part: pd.DataFrame, column: str) -> float | None:
    """Return the number that stands first in a column; None where there is none."""
    if column not in part:
        return None
    value = float(pd.to_numeric(part[column].iloc[:1], errors="coerce").iloc[0])
    return value if np.isfinite(value) else None


def _sources(paths: Sequence[str | Path]) -> Iterator[tuple[str, Trials, str]]:
    """Read the sources: what each is called, its trials, and what precedes its models' names."""
    for path in map(Path, paths):
        logs = [path] if path.suffix in LOGS else []
        if path.is_dir() and not (path / TRIALS).is_file():
            logs = sorted(file for file in path.rglob("*") if file.suffix == ".eval")
            if not logs and not any((p / TRIALS).is_file() for p in path.iterdir()):
                logs = sorted(path.glob("*.json"))
        if logs:
            from knownminds.llm_adapters.runs.inspect_tasks import read_inspect_log

            for file in logs:
                yield file.name, read_inspect_log(file), LOGGED
        else:
            for name, run in named_runs(runs_in([path])).items():
                yield name, load(run), ""


def _cell_of_trials(trials: Trials, plan: Plan, name: str) -> tuple[Cell, list[str]]:
    """Return the cell that trials are of, and the settings of their design that differ from it."""
    frame = trials.frame
    experiment = str(frame["environment"].iloc[0])
    known = trials.settings.get(experiment, {})
    recorded = {**known, **{
        column: frame[column].iloc[0]
        for column in AS_SET
        if column in frame and pd.notna(frame[column].iloc[0])
    }}  # fmt: skip
    found: list[tuple[int, Cell, list[str]]] = []
    for cell in plan.cells:
        expected = plain(cell.environment.settings)
        other = [n for n, value in recorded.items() if n in expected and expected[n] != value]
        if cell.environment.name == experiment and SHARED_DESIGN.isdisjoint(other):
            differs = [f"{n} {recorded[n]}, not {expected[n]}" for n in other]
            unsaid = sum(n not in recorded for n in AS_SET) * (cell.variant != BASE)
            found.append((len(differs) + unsaid, cell, differs))
    if found:
        _, cell, differs = min(found, key=lambda one: one[0])
        return cell, differs
    how = {n: recorded[n] for n in SHARED_DESIGN if n in recorded}
    conditions = ", ".join(f"{n}={value}" for n, value in sorted(how.items()))
    raise ValueError(
        f"Answers are of a cell of the plan; {name} has some of {experiment}"
        f"{f' with {conditions}' if conditions else ''}, which is in none. "
        f"Cells: {', '.join(cell.name for cell in plan.cells)}."
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
        if not {*content} >= _ENTRIES:
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
        logged = _read(run / TRIALS)  # from files, which have all that there is, or a log
        ended = len(logged[["subject", "session"]].drop_duplicates())
        row["sessions"] = cell.sessions if model.startswith(LOGGED) else ended
        return row | _counts(logged, ended, row["sessions"]), logged
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
    return folder / KNOWN_FOLDER / f"{plainly}+{cell.name.replace('/', '+')}.parquet"


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
