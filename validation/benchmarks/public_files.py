"""A paper's own public files, in the folder that its authors published: trials, scores, features.

A user fetches the folder; nothing of it ships. Every file is read by its columns, see `import`.
What is no table of trials is passed over and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Trials
from knownminds.environments.record.text_table import counted
from knownminds.validation.data.questions import AskImport
from knownminds.validation.data.score_scale import PERFORMANCE
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.data.trials_of_runs import BY
from knownminds.validation.imports.account import LEFT_OUT
from knownminds.validation.imports.importing import import_tables
from knownminds.validation.pages.views import WHO

from .paper import CELL, SCORES

CROWD = "people"  # what people are called who have no other name
ENDINGS = {"_cot": "chain_of_thought", "_sb": "step_back"}  # of engines that think before
NOT_PEOPLE = "synthetic"  # trials that a formula made and that are called human
COPIES = (None, {"control": False}, {"control": True})  # settings that a file may have both of
# CogBench's names of the scores of its engines, and ours. Names of rewards are those of the task.
SCORED = {
    "prior weighting": "prior_weighting", "likelihood weighting": "likelihood_weighting",
    "Directed Exploration": "directed_exploration", "Random Exploration": "random_exploration",
    "adjusted qsr": "meta_cognition", "learning_rate": "learning_rate",
    "optimism_bias": "optimism_bias", "interaction effect": "model_basedness",
    "temporal discounting score": "temporal_discounting", "Risk": "risk",
}  # fmt: skip
PLAYED = {
    "ProbabilisticReasoning": "probabilistic_reasoning", "HorizonTask": "horizon",
    "RestlessBandit": "restless_bandit", "InstrumentalLearning": "instrumental_learning",
    "TwoStepTask": "two_step", "BART": "balloon_risk",
}  # fmt: skip
SCORE, FIRST = "behaviour_score", "performance_score1"
# Published human scores that are a formula without noise, or money in the place of pumps.
NO_REFERENCE = ("prior_weighting", "likelihood_weighting", "risk")


@dataclass(frozen=True, eq=False)
class PublicFiles:
    """What a folder holds.

    Parameters
    ----------
    trials : By name of the file, its trials; the column `model` says who answered.
    people : Names of participants who are people.
    scores : Scores that were published without trials, with the columns `SCORES`.
    passed : By reason, the names of files that were passed over.
    left_out : By reason, the rows of files that are no trials, each with the name of its file.
    """

    trials: list[tuple[str, Trials]] = field(default_factory=list)
    people: set[str] = field(default_factory=set)
    scores: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=SCORES))
    passed: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    @property
    def unused(self) -> list[str]:
        """What was passed over or left out, a line for each reason."""
        lines = [said("passed over", why, names) for why, names in self.passed.items()]
        for why, rows in self.left_out.items():
            total = counted(sum(n for n, _ in rows), "row")
            lines.append(said(f"{total} left out", why, [name for _, name in rows]))
        return lines


def said(what: str, why: str, names: Sequence[str]) -> str:
    """Return what became of some files, why, how many they are, and the first three."""
    return f"{what}, {why}: {len(names)} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"


def is_checkout(folder: Path) -> bool:
    """Say whether a folder is one of tables of others, at any depth."""
    return folder.is_dir() and any(file.suffix == ".csv" for file in folder.rglob("*.csv"))


def public_files(folder: Path) -> PublicFiles:
    """Read all tables of a folder that a known format explains.

    Of files with the same bytes the one with the shortest name is read: the others are copies, and
    no participants of their own.

    Raises
    ------
    ValueError : If there is none.
    """
    found, scores = PublicFiles(), []
    files = sorted(file for file in folder.rglob("*.csv") if file.is_file())
    first: dict[bytes, Path] = {}
    for file in sorted(files, key=lambda file: len(file.name)):
        first.setdefault(sha256(file.read_bytes()).digest(), file)
    for file in files:
        if file.stat().st_size and file not in first.values():
            found.passed.setdefault("a file is a copy of another one", []).append(file.name)
            continue
        try:
            if _has_scores(file):
                scores.append(_scores(file))
                continue
            for name, trials in _trials(file, found.left_out):
                found.trials.append((name, trials))
                if _are_people(file):
                    found.people.add(str(trials.frame[BY].iloc[0]))
        except ValueError as error:
            found.passed.setdefault(_reason(error, file), []).append(file.name)
    if not found.trials and not any(len(part) for part in scores):
        why = f" ({'; '.join(found.unused)})" if found.unused else ""
        raise ValueError(
            f"A folder of public files has tables of trials in a format that is known; {folder} "
            f"has none{why}. Import its files one by one (knownminds import FILE --map ...)."
        )
    known = [part for part in scores if len(part)]
    return replace(found, scores=pd.concat(known, ignore_index=True)) if known else found


def _has_scores(file: Path) -> bool:
    """Say whether a file is a table of scores; of one that is no table `import` says why."""
    try:
        head = pd.read_csv(file, nrows=0, encoding_errors="replace")
    except (pd.errors.EmptyDataError, pd.errors.ParserError):
        return False
    return {"engine", FIRST} <= set(head.columns)


def _reason(error: ValueError, file: Path) -> str:
    """Return what was found in a file, without the rule and the remedy."""
    text = str(error).replace(file.name, "a file").replace(file.stem, "a file")
    rule, _, finding = text.partition("; ")
    finding = (finding or rule).partition(". ")[0].rstrip(".")
    return shorten(finding.partition(": it has the columns")[0], 100, placeholder=" ...")


def _are_people(file: Path) -> bool:
    return file.stem == "human" or "human" in file.parts[:-1]


def _trials(file: Path, left_out: dict[str, list[tuple[int, str]]]) -> Iterator[tuple[str, Trials]]:
    """Yield the trials of a file; of one with two halves that differ in a setting, each."""
    whole = None
    for settings in COPIES:
        try:
            read = import_tables([file], AskImport([file], settings=settings))
        except ValueError as error:
            if settings is None and "Import one at a time" in str(error):
                continue
            if whole is None and settings != {"control": True}:
                raise
            return
        for entry in read.account.entries if read.account else ():
            if entry.kind == LEFT_OUT and entry.rows:
                left_out.setdefault(entry.what, []).append((entry.rows, file.name))
        whole = _named(read.trials, file)
        if whole is not None:
            half = "" if settings is None else f"+{'filler' if settings['control'] else 'plain'}"
            yield f"{file.stem}{half}", whole
        if settings is None:
            return


def _named(trials: Trials, file: Path) -> Trials | None:
    """Return trials with their participant, and with thoughts that the name of an engine tells."""
    frame = trials.frame
    if _are_people(file):
        if BY in frame and (frame[BY] == NOT_PEOPLE).any():
            return None
        named = frame.assign(**{BY: CROWD})
    elif BY not in frame:
        named = frame.assign(**{BY: frame["subject"].astype(str)})
    else:
        engine = str(frame[BY].iloc[0])
        ending = next((e for e in ENDINGS if engine.partition(" ")[0].endswith(e)), "")
        thought = {"reasoning": ENDINGS[ending]} if ending else {}
        named = frame.assign(**{BY: engine.replace(ending, "") if ending else engine, **thought})
    named.attrs = dict(frame.attrs)
    return Trials(named)


def _scores(file: Path) -> pd.DataFrame:
    """Read the scores of engines that stand beside the trials of a task."""
    table = pd.read_csv(file)
    task = PLAYED.get(file.parent.name, "")
    rows = []
    for column in [name for name in table if f"{name}_name" in table]:
        named = table[f"{column}_name"].dropna()
        metric = SCORED.get(str(named.iloc[0])) if len(named) else None
        if str(column) == FIRST and metric is None and task:
            metric = task + PERFORMANCE
        if metric is None:
            continue
        half = table.get(f"{column}_CI", pd.Series(np.nan, table.index))
        numbers = {"value": table[column], "half": half}
        whole = table.assign(
            **{name: pd.to_numeric(one, errors="coerce") for name, one in numbers.items()}
        )
        for engine, runs in whole.groupby("engine", sort=False):
            value = runs["value"].dropna()
            if not len(value):
                continue
            n, error = len(value), float(runs["half"].iloc[0]) / 1.959964
            error = float(value.std(ddof=1) / np.sqrt(n)) if n > 1 else error
            ending = next((e for e in ENDINGS if str(engine).endswith(e)), "")
            score = f"{metric}, {ENDINGS[ending]}" if ending else metric
            rows.append({
                WHO: str(engine).removesuffix(ending) if ending else str(engine), "score": score,
                CELL: task, "value": float(value.mean()), "standard_error": error,
                "freedom": n - 1.0 if n > 1 else np.nan, INFLUENCE: {},
            })  # fmt: skip
    return pd.DataFrame(rows, columns=SCORES)


def with_summaries(scores: pd.DataFrame, who: Mapping[str, Any] | set[str]) -> pd.DataFrame:
    """Return published scores with two summaries of each engine among `who`.

    The average performance is the mean of the performances that an engine has, each standardised
    over engines. The distance to people is the root mean square, over the metrics of behaviour
    that have a human value, of (value - random) / (human - random) less 1.
    """
    table = scores.pivot_table("value", WHO, "score", sort=False)
    engines = table[table.index.isin(list(who))]
    played = engines[[name for name in table if str(name).endswith(PERFORMANCE)]]
    average = ((played - played.mean()) / played.std()).mean(axis=1)
    summaries: dict[str, pd.Series[float]] = {"average performance": average}
    if {"human", "random"} <= set(table.index):
        names = [n for n in SCORED.values() if n in table and n not in NO_REFERENCE]
        random, human = table.loc["random", names], table.loc["human", names]
        names = list((human - random).dropna().index)
        unlike = (engines[names] - human[names]) / (human - random)[names]
        summaries["distance to people"] = (unlike**2).mean(axis=1, skipna=False) ** 0.5
    summed = pd.concat([
        pd.DataFrame({WHO: one.index, "score": name, "value": one.to_numpy(dtype=float)})
        for name, one in summaries.items()
    ])  # fmt: skip
    more = summed.assign(standard_error=np.nan, freedom=np.nan).reindex(columns=SCORES)
    return pd.concat([scores, more.dropna(subset="value")], ignore_index=True)
