"""Trials in and out: tables, Psych-101 texts, Psych-DS folders, and the logs of Inspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from knownminds.environments import ENVIRONMENTS, Environment, Trials, environment_of, make
from knownminds.environments.formats.psych_101 import read_psych_101, write_psych_101
from knownminds.environments.formats.psych_201 import write_psych_201
from knownminds.environments.formats.psych_ds import DESCRIPTION, read_psych_ds, write_psych_ds
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import check_writable, writable, write_text
from knownminds.environments.record.trials import COLUMNS
from knownminds.inference.groups.crossed_levels import BETWEEN
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.engine.arguments import one_of, set_to
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.screen import width_of_screen
from knownminds.validation.imports.account import Account, Tally, account_of, account_of_texts
from knownminds.validation.imports.exports import (
    begun_once,
    experiment_of,
    hbayesdm_table,
    hssm_table,
    tab_separated,
)
from knownminds.validation.imports.importing import Imported, import_tables, name_of
from knownminds.validation.imports.mapping import ColumnMap, read_map
from knownminds.validation.imports.tables import ending_of, head_of, own_trials, read_table
from knownminds.validation.people.reading import PAGE, is_of_page, read_sessions

from .questions import AskExport, AskImport
from .trials_of_runs import lacking_trials, load

BOTH = ("csv", "parquet", "psych-101", "psych-ds")
WRITTEN = (*BOTH, "psych-201", "hbayesdm", "hssm")
OURS = (*BOTH, "inspect", PAGE)
THEIRS = ("cogbench", "causalign", "horizon", "hbayesdm", "hssm", "jspsych")
READ = (*OURS, *THEIRS)
TEXTS = {"psych-101", "inspect"}  # read from words, of which an account is given
# What a table of somebody else's may end with, packed or not.
TEXTUAL = (".csv", ".tsv", ".txt", ".dat", ".tab", "")
TABLES = (*TEXTUAL, ".json", ".parquet")
OWN = {"subject", "trial"}  # what trials of ours have in any case, beside an answer
_SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".jsonl": "psych-101",
    ".eval": "inspect",
    ".json": "inspect",
}


import_trials = verb(AskImport, __name__)
export_trials = verb(AskExport, __name__)


@dataclass(frozen=True)
class Exchanged:
    """Trials that came in or went out, as a command tells of them.

    Parameters
    ----------
    answered : The trials.
    out : Where they were written; None if nowhere.
    account : What became of every row that came in; None of files in a form of ours.
    warning : What a reader of the file may not expect.
    """

    answered: Trials
    out: str | Path | None
    account: Account | None = None
    warning: str = ""

    def __str__(self) -> str:
        written = f"{self.answered}\nNothing was written; --out trials.parquet writes it."
        if self.out is not None:
            written = f"{self.answered}, written to {self.out}"
        told = "" if self.account is None else str(self.account)
        lines = "\n".join(filter(None, (told, written, self.warning))).splitlines()
        return "\n".join(line for text in lines for line in _wrapped(text))

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, statuses of the answers, and the account."""
        trials = self.answered
        return {
            "out": None if self.out is None else str(self.out),
            "subjects": trials.n_subjects,
            "sessions": trials.n_sessions,
            "trials": len(trials),
            "outcomes": trials.frame["outcome"].value_counts().to_dict(),
            "account": None if self.account is None else self.account.to_dict(),
            "warning": self.warning,
        }


def run_export(question: AskExport) -> Exchanged:
    """Answer `export`."""
    if not str(question.out):
        raise ValueError("An export is written to a file or folder; name it: --out trials.csv.")
    path = Path(question.out)
    kind = question.format or _SUFFIXES.get(path.suffix, "")
    if not kind:
        raise ValueError(
            f"The end of a file's name tells its format, .csv, .parquet or .jsonl; {path.name!r} "
            f"has none of these. Name the format with --format: {', '.join(WRITTEN)}."
        )
    one_of("format", kind, WRITTEN)
    check_writable(path)
    trials = _load(question.data, question.columns)
    experiment = _experiment(question.environment, question.settings, trials)
    if experiment is not None:
        trials = Trials.from_frame(trials.frame, environment=experiment)
    with writable(path.parent):
        if kind == "psych-ds":
            write_psych_ds(
                trials,
                path,
                name=question.name or path.absolute().name,
                description=question.description,
                authors=question.authors,
                licence=question.licence,
                environment=experiment,
            )
        elif kind == "psych-101":
            write_psych_101(trials, path, experiment, seed=question.seed)
        elif kind == "psych-201":
            write_psych_201(trials, path, experiment, seed=question.seed)
        elif kind == "hbayesdm":
            experiment = experiment_of(trials, experiment)
            trials = begun_once(trials, experiment)
            table = hbayesdm_table(trials, experiment)
            write_text(path, tab_separated(table))
        elif kind == "hssm":
            write_text(path, csv_text(hssm_table(trials, experiment_of(trials, experiment))))
        else:
            trials.save(path)
    first, warning = str(trials.frame["subject"].iloc[0]), ""
    if kind == "hbayesdm" and BETWEEN in first:
        warning = (
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )
    return Exchanged(trials, path, warning=warning)


def run_import(question: AskImport) -> Exchanged:
    """Answer `import`, with what was understood."""
    if question.format is not None:
        one_of("format", question.format, READ)
    given = question.mapping
    mapping = given if given is None or isinstance(given, ColumnMap) else read_map(given)
    if mapping is not None:
        mapping = mapping.merged(ColumnMap(missing=tuple(question.missing)))
    imported = _imported(question, [Path(source) for source in question.sources], mapping)
    if question.out is not None:
        file = Path(question.out)
        check_writable(file)
        with writable(file.parent):
            imported.trials.save(file)
    if question.save_map is not None and imported.mapping is not None:
        told = ColumnMap(name_of(question.environment) or "", settings=question.settings or {})
        imported.mapping.merged(told).save(question.save_map)
    lacking = _lacking(imported.trials)
    return Exchanged(imported.trials, question.out, imported.account, "\n".join(lacking))


def _lacking(trials: Trials) -> list[str]:
    """Return a sentence for each experiment of which sessions lack trials."""
    frame = trials.frame
    named = frame.groupby("environment") if "environment" in frame else ()
    known = [(make(str(name)), Trials(rows)) for name, rows in named if name in ENVIRONMENTS]
    return [text for one in known for text in lacking_trials(*one)]


def _wrapped(line: str) -> list[str]:
    """Return a line as the screen has room for it; what goes on stands under its words."""
    under = " " * 14 if line.startswith("  ") else ""
    whole: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}
    return wrap(line, width_of_screen(), subsequent_indent=under, **whole)


def _imported(question: AskImport, paths: Sequence[Path], mapping: ColumnMap | None) -> Imported:
    """Read trials from files or folders, and say what was understood."""
    format = question.format
    if format == PAGE or (format is None and mapping is None and any(map(is_of_page, paths))):
        return Imported(*read_sessions(_session_files(paths)))
    for path in paths:
        if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
            raise ValueError(f"A table is text; {path.name} is a workbook. Save its sheet as CSV.")
    if mapping is None and format in (None, "csv"):
        mapping = _map_of_ours(paths, question)
    if mapping is not None or (
        format in (None, *THEIRS) and _of_others(paths, format, question.columns, question.encoding)
    ):
        return import_tables(paths, question, mapping)
    for given, option in (
        (question.missing, "--missing"),
        (question.where, "--where"),
        (question.subject_from_file, "--subject-from-file"),
    ):
        if given:
            raise ValueError(f"{option} is for tables as text; these are none. Leave it out.")
    experiment = _experiment(question.environment, question.settings)
    files = [file for path in paths for file in _files(path, format)]
    if (
        format in (None, "csv")
        and not question.columns
        and any(_is_unlike(file, question.encoding) for file in files)
    ):
        return _own_tables(files, question)
    kinds = [format or _kind(file) for file in files]
    told = experiment if set(kinds) & TEXTS else None  # tables tell what they can themselves
    parts = [_read(*pair, question.columns, told) for pair in zip(files, kinds, strict=True)]
    trials = parts[0] if len(parts) == 1 else Trials.concatenate(parts)
    if not set(kinds) <= TEXTS:
        return Imported(_as_of(trials, question))
    names = [file.name for file in files]
    return Imported(trials, account_of_texts(" and ".join(sorted(set(kinds))), names, trials))


def _map_of_ours(paths: Sequence[Path], question: AskImport) -> ColumnMap | None:
    """Return what maps tables in our columns to themselves, where these need a mapping.

    They do if codes stand for no answer, only some rows are trials, or answers are missing and no
    column says why.
    """
    if question.columns or not all(p.is_file() and ending_of(p) in TEXTUAL for p in paths):
        return None
    read = [read_table(p, Tally(), encoding=question.encoding) for p in paths if p.stat().st_size]
    tables = [table.cells for table in read]
    if not tables or not all(_small(map(str, table)) >= OWN for table in tables):
        return None
    answers = [table[name] for table in tables for name in table if name in ("action", "response")]
    told = question.missing or question.where or question.subject_from_file
    if not told and (
        not any(one.isna().any() for one in answers) or all("outcome" in one for one in tables)
    ):
        return None
    ours = {column.name for column in COLUMNS} - {"environment"}
    named = {name for table in tables for name in table.get("environment", [])}
    return ColumnMap(
        environment=str(*named) if len(named) == 1 and named <= {*ENVIRONMENTS} else "",
        columns={name: name for table in tables for name in table if name in ours},
        missing=tuple(question.missing),
    )


def _is_unlike(file: Path, encoding: str | None) -> bool:
    """Whether a table of ours is written in another way than we write it."""
    if not file.is_file() or ending_of(file) not in TEXTUAL:
        return False
    if file.suffix == ".csv":
        with file.open(encoding="utf-8-sig", errors="replace") as opened:
            names = {name.strip('"') for name in opened.readline().strip().split(",")}
        if names >= OWN:
            return False
    return bool(file.stat().st_size) and _small(head_of(file, encoding)) >= OWN


def _as_of(trials: Trials, question: AskImport) -> Trials:
    """Return trials as those of the experiment that is named, with settings that they show."""
    name = question.environment
    if name is None and "environment" in trials.frame:
        names = list(trials.frame["environment"].dropna().unique())
        name = str(names[0]) if len(names) == 1 and names[0] in ENVIRONMENTS else None
    if name is None:
        return trials
    experiment = _experiment(name, question.settings, trials)
    return Trials.from_frame(trials.frame, environment=experiment)


def _own_tables(files: Sequence[Path], question: AskImport) -> Imported:
    """Read tables of ours that are packed, or have other delimiters, endings or capitals."""
    tally = Tally()
    tables = [read_table(file, tally, encoding=question.encoding) for file in files]
    parts = [Trials.from_frame(own_trials(table)) for table in tables]
    trials = _as_of(parts[0] if len(parts) == 1 else Trials.concatenate(parts), question)
    names = trials.frame["environment"].dropna().unique() if "environment" in trials.frame else ()
    return Imported(
        trials, account_of("csv", ", ".join(map(str, names)), tables, tally, trials.frame)
    )


def _small(names: Iterable[str]) -> set[str]:
    return {str(name).lower() for name in names}


def _read(
    file: Path, kind: str, columns: Mapping[str, str] | None, experiment: Environment | None
) -> Trials:
    """Read a file or folder in a form of ours."""
    if kind == "inspect":
        from knownminds.llm_adapters.runs.inspect_tasks import read_inspect_log

        return read_inspect_log(file, experiment)
    if kind == "psych-101":
        return read_psych_101(file, experiment)
    if kind == "psych-ds":
        return read_psych_ds(file)
    return Trials.load(file, columns=columns, environment=experiment)


def _session_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files of sessions among these; a folder stands for those in it."""
    files = [each for p in paths for each in (sorted(p.iterdir()) if p.is_dir() else [p])]
    pages = [file for file in files if is_of_page(file)]
    other = [path.name for path in paths if not path.is_dir() and path not in pages]
    if other or not pages:
        what = f"{other[0]} is none" if other else "there is none"
        raise ValueError(
            f"Files of a page are JSON that it saved or sent; {what}. Import others apart."
        )
    return pages


def _of_others(
    paths: Sequence[Path],
    format: str | None,
    columns: Mapping[str, str] | None,
    encoding: str | None,
) -> bool:
    """Whether files are tables of somebody else's, which have other columns than ours."""
    if format == "jspsych":
        raise ValueError(
            "What the fields of a browser experiment are stands in none of them; say it: "
            "--map subject=id,action=response."
        )
    if format is not None:
        return True
    if columns or any(not path.is_file() or ending_of(path) not in TABLES for path in paths):
        return False
    if any(ending_of(path) == ".json" for path in paths):
        return False
    heads = [_small(head_of(path, encoding)) for path in paths if path.stat().st_size]
    return bool(heads) and not all(head >= OWN and head & {"action", "response"} for head in heads)


def _load(data: Trials | str | Path, columns: Mapping[str, str] | None) -> Trials:
    """Return trials, or those of a file, a run or a Psych-DS data set."""
    if isinstance(data, Trials):
        return data
    return read_psych_ds(data) if (Path(data) / DESCRIPTION).is_file() else load(data, columns)


def _experiment(
    environment: Environment | str | None,
    settings: Mapping[str, Any] | None,
    trials: Trials | None = None,
) -> Environment | None:
    """Return the experiment that is named; its settings are those given, else those of the data.

    One that only the trials name is taken where they have its settings, or some are given.
    """
    if isinstance(environment, Environment):
        return environment
    name = environment
    if name is None and trials is not None and "environment" in trials.frame:
        names = list(trials.frame["environment"].dropna().unique())
        if len(names) == 1 and (settings or names[0] in trials.settings):
            name = str(names[0])
    if name is None:
        if settings:
            raise ValueError("Settings are those of an experiment; name it with --environment.")
        return None
    one_of("environment", name, ENVIRONMENTS)
    return set_to(make(name) if trials is None else environment_of(trials, name), settings)


def _kind(file: Path) -> str:
    if file.is_dir():
        return "psych-ds" if (file / DESCRIPTION).is_file() else "parquet"
    if file.suffix not in _SUFFIXES:
        raise ValueError(
            f"Trials are read from {', '.join(_SUFFIXES)} files and folders; got {file.name!r}. "
            f"Name its format with --format ({', '.join(READ)})."
        )
    return _SUFFIXES[file.suffix]


def _files(source: Path, format: str | None) -> list[Path]:
    """Return what is to be read of a source: itself, or what the folder holds."""
    if not source.exists():
        raise ValueError(f"Trials are read from a file or folder; there is none at {source}.")
    if not source.is_dir() or (source / DESCRIPTION).is_file():
        return [source]
    if format in (None, "parquet") and (source / TRIALS).is_file():
        return [source / TRIALS]
    logs = sorted(f for f in source.iterdir() if f.suffix in (".eval", ".json"))
    if format not in (None, "inspect") or not logs:
        raise ValueError(
            f"A folder holds a run, a Psych-DS data set or logs of Inspect; {source} has none "
            f"of these{f' as {format}' if format else ''}."
        )
    return logs
