"""The trials of several runs and files, as one table in which each trial has its conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import (
    ANSWERED,
    ENVIRONMENTS,
    Environment,
    Trials,
    environment_of,
    make,
)
from knownminds.environments.conditions import SHARED_DESIGN
from knownminds.environments.record.trials import SETTINGS
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.studies import RESULT

BY = "model"  # the column in which a run says who answered
SUFFIXES = (".parquet", ".csv")
ALONE = "participant"  # the name of the only one, where trials name none
# What stands beside each trial of a joined table; empty where an experiment has no such condition.
CONDITIONS = (
    "model", "served_model", "experiment", "reasoning", "history", "content", "names", "overload",
    "modality", "noise", "temperature", "effort", "template", "template_hash", "session",
)  # fmt: skip
_WORDS = ("template", "template_hash", "session")
_ALSO = {"served_model": "model_served", "experiment": "environment"}  # as the record calls them
# Files may name the same participant in sessions that these tell apart.
_ADDRESS = (BY, "environment", "condition", "modality", "subject", "session")

Data = Trials | str | Path | Sequence[str | Path]


def runs_in(paths: Sequence[str | Path]) -> list[Path]:
    """Return the runs and trial files among the paths and directly in their folders.

    Raises
    ------
    ValueError : If a path is not there, or a folder holds no trials.
    """
    runs: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir() and not (path / TRIALS).is_file():
            inside = [
                entry
                for entry in sorted(path.iterdir())
                if (entry / TRIALS).is_file() or entry.suffix in SUFFIXES
            ]
            if not inside:
                raise ValueError(
                    f"A folder of runs holds folders with a {TRIALS}, or .csv and .parquet files "
                    f"of trials; {path} has none. Name the folder that `run --out` was given."
                )
            runs += inside
        elif path.exists():
            runs.append(path)
        else:
            raise ValueError(f"Trials are read from a file or a run's folder; there is no {path}.")
    return runs


def read_one(data: Data, columns: Mapping[str, str] | None) -> tuple[str, Trials]:
    """Return trials, or those of a file or runs, and what they are called; see `joined`.

    Subjects are in the order of their names: draws of estimators and resamples go by the position,
    so that rows in another order would give other digits.

    Raises
    ------
    ValueError : If there is no file or run, or a control has changed some sessions.
    """
    if isinstance(data, Trials):
        return "trials", _by_name(data)
    paths = [data] if isinstance(data, str | Path) else list(data)
    if not paths:
        raise ValueError("Trials are read from one file or run at least; got none.")
    runs = runs_in(paths)
    if len(runs) == 1:
        source, trials = runs[0].name, load(runs[0], columns)
    else:
        source, trials = " ".join(map(str, paths)), joined(runs, columns)
    if "changed_by" in trials.frame:
        control = trials.frame["changed_by"].dropna().iloc[0]
        raise ValueError(
            f"Measures and fits are of sessions as they are; some in {source} are changed by the "
            f"control {control}. Name the run that the control belongs to: its controls are "
            "reported with it."
        )
    return source, _by_name(trials)


def _by_name(trials: Trials) -> Trials:
    """Return the trials of each experiment with subjects by name, 2 before 10."""
    frame = trials.frame
    place = frame["environment"] if "environment" in frame else frame["outcome"].isna()
    whole, names = pd.factorize(frame["subject"].astype(str))
    parts = [re.split(r"(\d+)", name) for name in names]
    keys = [[(part.isdigit(), part.zfill(20)) for part in one] for one in parts]
    rank = np.empty(len(names), int)
    rank[sorted(range(len(names)), key=lambda k: keys[k])] = np.arange(len(names))
    order = np.lexsort((rank[whole], pd.factorize(place)[0]))
    if (np.diff(order) == 1).all():
        return trials
    ordered = frame.iloc[order].reset_index(drop=True)
    ordered.attrs = dict(frame.attrs)
    return Trials(ordered)


def rows_where(trials: Trials, where: Mapping[str, str] | None) -> tuple[Trials, list[str]]:
    """Return the trials whose columns have some values, and a sentence on how many these are.

    Cells are compared as numbers where both are numbers, else as texts; "" is an empty cell.

    Raises
    ------
    ValueError : If there is no such column, or no trial has the value.
    """
    if not where:
        return trials, []
    frame = trials.frame
    kept = np.ones(len(frame), dtype=bool)
    for name, value in where.items():
        column = also_called(name, frame)
        if column not in frame:
            raise ValueError(
                f"--where names a column of the trials; there is no {name!r} among "
                f"{', '.join(map(str, frame.columns))}."
            )
        cells = frame[column]
        text = cells.astype(object).where(cells.notna(), "").astype(str).str.strip()
        alike = text == value.strip()
        number = pd.to_numeric(pd.Series([value]), errors="coerce").iloc[0]
        if pd.notna(number) and not pd.api.types.is_bool_dtype(cells):
            alike |= pd.to_numeric(text, errors="coerce") == number
        kept &= alike.to_numpy(dtype=bool)
        if not kept.any():
            some = list(dict.fromkeys(text))
            more = f" and {len(some) - 10} more" if len(some) > 10 else ""
            raise ValueError(
                f"--where keeps the trials with {name}={value}; there is none. {name} has "
                f"{', '.join(map(repr, some[:10]))}{more}."
            )
    chosen = frame[kept].reset_index(drop=True)
    chosen.attrs = dict(frame.attrs)
    what = " and ".join(f"{name}={value}" for name, value in where.items())
    return Trials(chosen), [f"Only trials with {what}: {kept.sum():,} of {len(frame):,}."]


def of_several_servers(data: Data) -> list[str]:
    """Return a sentence for each model whose runs had several addresses or settings, or models.

    Trials alone name neither.
    """
    if isinstance(data, Trials):
        return []
    addresses: dict[str, dict[str, None]] = {}
    behind: dict[str, dict[str, None]] = {}
    samplings: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs_in([data] if isinstance(data, str | Path) else data):
        file = run / RESULT
        if file.is_file():
            options = json.loads(file.read_text(encoding="utf-8"))["options"]
            _, _, model = options["language model"].partition(":")
            addresses.setdefault(model, {})[options["address"]] = None
            named = options.get("model behind the name", options["language model"])
            behind.setdefault(model, {})[named.partition("?")[0]] = None
            sampling = options["sampling"]
            key = (model, options["experiment"])
            samplings.setdefault(key, []).append(sampling if isinstance(sampling, dict) else {})
    differing = [
        f"Runs of {model} differ in {name} ({' and '.join(values)}); they count as one "
        "participant. Read them one by one, or give each a name (--llm MODEL?SETTING=VALUE)."
        for (model, _), every in samplings.items()
        for name in dict.fromkeys(name for sampling in every for name in sampling)
        if len(values := dict.fromkeys(str(s.get(name, "the provider's")) for s in every)) > 1
    ]
    return [
        *differing,
        *(
            f"Behind the name {model} are {' and '.join(several)}; they count as one participant. "
            "Read them one by one."
            for model, several in behind.items()
            if len(several) > 1
        ),
        *(
            f"Runs of {model} were sent to {' and '.join(several)}; they count as one participant. "
            "Read them one by one if these are different models."
            for model, several in addresses.items()
            if len(several) > 1
        ),
    ]


def copied_sessions(environment: Environment, trials: Trials) -> list[str]:
    """Return a sentence on sessions with the stimuli and answers of another one, if there are any.

    Sessions of one design in several wordings are counted once.
    """
    names = (*(field.name for field in environment.fields), "action", "response", "reward")
    frame = trials.frame
    if "design_number" in frame:
        first = frame.groupby(["subject", "design_number"])["session"].transform("first")
        frame = frame[frame["session"] == first]
    shown = frame[[name for name in names if name in frame]]
    row = pd.util.hash_pandas_object(shown, index=False)
    sessions = row.groupby([frame["subject"], frame["session"]], sort=False).agg(tuple)
    copies = int(sessions.duplicated().sum())
    if not copies:
        return []
    return [
        f"{copies} of {len(sessions)} sessions of {environment.name} have the stimuli and answers "
        "of another one: an export that is doubled, or a player whose answers do not vary. They "
        "count as sessions, and say nothing new."
    ]


def lacking_trials(environment: Environment, trials: Trials) -> list[str]:
    """Return a sentence on sessions that begin late or have gaps, if what they lack was learned.

    Numbers begin at 0 or 1, or go on from the subject's session before. Trials that fall away, as
    after a missing answer, are no gap.
    """
    if not environment.feedback:
        return []
    frame = trials.frame
    trial = frame["trial"].astype(int)
    step = trial.groupby(frame["subject"], sort=False).diff()
    new = ~frame.duplicated(["subject", "session"])
    late = new & (step != 1) & (trial > min(trial[new].min(), 1))
    answered = frame["outcome"].isin(ANSWERED).shift(fill_value=False)
    gaps = ~new & answered & (step > 1)
    if environment.ends_early or "present" in environment.drawn:
        gaps &= False
    each = pd.DataFrame({"late": late, "gaps": gaps}).groupby(new.cumsum()).any()
    lacking = int(each.any(axis=1).sum())
    if not lacking:
        return []
    return [
        f"{lacking} of {len(each)} sessions of {environment.name} lack trials "
        f"({each['late'].sum()} begin late, {each['gaps'].sum()} have gaps): what learners know "
        "there is not right. Keep all trials."
    ]


def load(path: str | Path, columns: Mapping[str, str] | None = None) -> Trials:
    """Return the trials of a file or of a run's folder."""
    folder = Path(path)
    return Trials.load(folder / TRIALS if folder.is_dir() else folder, columns=columns)


def joined(paths: Sequence[str | Path], columns: Mapping[str, str] | None = None) -> Trials:
    """Return the trials of several runs and files, with `CONDITIONS`, in one table.

    Subjects that bear the same name in several files of an experiment become MODEL/RUN/NAME, and
    models in several runs MODEL/RUN. A file that does not say who answered, as files of people do
    not, is a participant of the file's name beside files that say so. Sessions may have different
    lengths.

    Raises
    ------
    ValueError : If runs of an experiment have different designs: settings that are no conditions.
    """
    runs = runs_in(paths)
    if not runs:
        raise ValueError("Trials are read from one file or run at least; got none.")
    parts = {name: load(run, columns) for name, run in named_runs(runs).items()}
    settings = agreed_design({name: part.settings for name, part in parts.items()})
    whole = named_by_file(put_together(frames := _completed(parts)), frames)
    for name, rows in whole.groupby(_experiment(whole), sort=False):
        if name in settings and name in ENVIRONMENTS:
            agreed = make(str(name), **settings[str(name)]).long_enough(rows)
            settings[str(name)] |= {k: agreed.settings[k] for k in [agreed.size] if k}
    whole.attrs[SETTINGS] = settings
    return Trials.from_frame(with_columns(whole))


def _completed(parts: Mapping[str, Trials]) -> dict[str, pd.DataFrame]:
    """Return the tables of files, each with the columns that follow from others in that file.

    In one table with files that have such a column, it would be taken for empty cells.
    """
    frames = {}
    for name, trials in parts.items():
        known = _experiment(trials.frame).unique()
        alone = len(known) == 1 and known[0] in ENVIRONMENTS
        complete = environment_of(trials, known[0]).complete if alone else None
        frames[name] = trials.frame if complete is None else complete(trials)
    return frames


def named_by_file(whole: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Name who answered after the file, in files that do not say it beside files that do.

    Parameters
    ----------
    whole : The rows of the parts, one after the other.
    """
    file = np.repeat(np.array(list(parts), dtype=object), [len(part) for part in parts.values()])
    for column in (ALONE, BY):
        if column in whole:
            silent = whole[column].isna().groupby(file, sort=False).transform("all")
            whole[column] = whole[column].astype(object).mask(silent, file)
    return whole


def put_together(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return tables of trials as one, by name; whoever bears the same name is separated.

    But runs of a participant that differ in the wording alone are its own: their sessions become
    SESSION@WORDING, and sessions of one number have one `design_number`.
    """
    kept, names = _worded([part.copy(deep=False) for part in parts.values()], list(parts))
    for part in kept:
        part.attrs = {}  # that pandas need not compare them
    whole = pd.concat(kept, ignore_index=True)
    lengths = [len(part) for part in kept]
    bearer = pd.DataFrame(
        {
            "part": np.repeat(np.array(names, dtype=object), lengths),
            "experiment": _experiment(whole),
            "subject": whole["subject"].astype(str),
        }
    )
    borne = bearer.drop_duplicates()
    shared = set(borne.loc[borne.duplicated(["experiment", "subject"]), "experiment"])
    collides = bearer["experiment"].isin(shared)
    if collides.any():
        before = [
            part[BY].astype(str) + f"/{name}" if BY in part else pd.Series(name, part.index)
            for name, part in zip(names, kept, strict=True)
        ]
        longer = pd.concat(before, ignore_index=True)
        own = "/" + bearer["subject"]
        longer += (
            own if BY not in whole else own.where(whole[BY].astype(str) != bearer["subject"], "")
        )
        bearer["subject"] = bearer["subject"].where(~collides, longer)
    return whole.assign(subject=bearer["subject"])


def _worded(parts: list[pd.DataFrame], names: list[str]) -> tuple[list[pd.DataFrame], list[str]]:
    """Mark the sessions of tables that differ in the wording alone; these tables share a name."""
    families: dict[Any, list[int]] = {}
    for k, part in enumerate(parts):
        if "template" in part and part["template"].nunique() == 1:
            same = [c for c in ("subject", "cell", *CONDITIONS) if c in part and c not in _WORDS]
            key = tuple((c, *part[c].astype(str).unique()) for c in same)
            families.setdefault(key, []).append(k)
    for several in families.values():
        words = [str(parts[k]["template"].iloc[0]) for k in several]
        if len(set(words)) == len(several) > 1:
            for k, word in zip(several, words, strict=True):
                session = parts[k]["session"].astype(str)
                parts[k] = parts[k].assign(session=session + f"@{word}", design_number=session)
                names[k] = names[several[0]]
    return parts, names


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return trials with all `CONDITIONS`, empty where nothing is known of one."""
    new: dict[str, Any] = {}
    for name in CONDITIONS:
        if name not in frame and name != BY:
            also = _ALSO.get(name)
            new[name] = frame.get(also, np.nan)
    return frame.assign(**new)


def agreed_design(
    by_run: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """Return the settings of each experiment that all runs of it share, by experiment.

    Of different lengths, the longest counts.

    Parameters
    ----------
    by_run : By name of the run, the settings of its experiments; a run may tell none.

    Raises
    ------
    ValueError : If they differ in more than conditions and lengths.
    """
    agreed: dict[str, dict[str, Any]] = {}
    first: dict[str, str] = {}
    for run, places in by_run.items():
        for name, settings in places.items():
            size = (ENVIRONMENTS[name].size if name in ENVIRONMENTS else None) or ""
            design = {k: v for k, v in settings.items() if k not in SHARED_DESIGN}
            if name not in agreed:
                agreed[name], first[name] = dict(settings), run
                continue
            before = {k: v for k, v in agreed[name].items() if k not in SHARED_DESIGN}
            every = [k for k in {**before, **design} if k != size]
            differs = [k for k in every if before.get(k) != design.get(k)]
            if differs:
                one, other = before.get(differs[0]), design.get(differs[0])
                raise ValueError(
                    f"Runs in one table have the same design; of {name} {first[name]} has "
                    f"{differs[0]}={one!r} and {run} has {other!r}. Read them one by one."
                )
            same = {k for k, v in settings.items() if agreed[name].get(k) == v}
            lengths = [each[size] for each in (agreed[name], settings) if size in each]
            agreed[name] = {k: v for k, v in agreed[name].items() if k in same}
            agreed[name] |= {size: max(lengths)} if lengths else {}
    return agreed


def read_all(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> pd.DataFrame:
    """Return the trials of several runs and files, in one table, as `joined` does.

    Sessions of different files stay apart where they would have the same address.
    """
    files = {name: load(path, columns) for name, path in named_runs(runs_in(paths)).items()}
    agreed_design({name: trials.settings for name, trials in files.items()})
    parts = {name: part.assign(file=name) for name, part in _completed(files).items()}
    for part in parts.values():
        part.attrs = {}
    frame = named_by_file(pd.concat(list(parts.values()), ignore_index=True), parts)
    address = [name for name in _ADDRESS if name in frame]
    copy = frame.groupby(address, sort=False, dropna=False)["file"].transform(
        lambda files: pd.factorize(files)[0]
    )
    again = copy.to_numpy() > 0
    if again.any():
        session = frame["session"].astype("str").to_numpy(dtype=object)
        session[again] = session[again] + "+" + copy[again].astype(str).to_numpy(dtype=object)
        frame["session"] = session
    return frame.drop(columns="file")


def also_called(name: str, frame: pd.DataFrame) -> str:
    """Return the column of a condition, which a record may have by another name."""
    return _ALSO.get(name, name) if name not in frame else name


def _experiment(part: pd.DataFrame) -> pd.Series[str]:
    """Return the experiment of each row; "" where it is not recorded."""
    if "environment" not in part:
        return pd.Series("", index=part.index)
    return part["environment"].fillna("").astype(str)


def named_runs(runs: Sequence[Path]) -> dict[str, Path]:
    """Name runs and files by their last part; by the whole path where two share it."""
    last = [run.stem if run.suffix in SUFFIXES else run.name for run in runs]
    return {
        name if last.count(name) == 1 else str(run): run
        for name, run in zip(last, runs, strict=True)
    }
