"""`score`: the parts of a paper of answers to its experiment, and measures of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Trials,
    answer_columns,
    environment_of,
)
from knownminds.inference.magnitudes.equal_blur import EqualBlur, equal_blur
from knownminds.inference.magnitudes.magnitude_answers import TASKS
from knownminds.validation.data.questions import AskScore
from knownminds.validation.data.scores_of_trials import scores_of
from knownminds.validation.data.trials_of_runs import (
    ALONE,
    BY,
    of_several_servers,
    read_all,
    read_one,
    rows_where,
)
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.question import command_line, in_one, verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.views import WHO

from .comparison import comparison, first_which_differ
from .magnitude_frames import LINES
from .paper import CELL, About
from .registry import paper_of
from .seen import seen

# Experiments whose answers are scored by all parts of their paper.
PAPER_OF: Mapping[str, str] = {
    "diagnosis": "diagnosis",
    "collider": "colliders",
    **dict.fromkeys(TASKS, "magnitudes"),
}
# Options that each paper takes.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "diagnosis": ("network", "learner", "permutations", "bootstraps"),
    "colliders": ("over", "reference", "scoring", "released"),
    "magnitudes": ("bootstraps", "mass"),
}
OF_MEASURES = ("released", "scoring", "reference")
# Options where none is given: more rounds than a benchmark of many participants takes.
USUAL: Mapping[str, Mapping[str, Any]] = {
    "diagnosis": {"learner": "gradient_boosting", "permutations": 1000, "bootstraps": 500},
    "magnitudes": {"lines": LINES},
}
NOTES = ("Trials without a readable answer are left out and counted.",)
MOST_COMPARED = 12  # participants, of whom every two are compared
EQUAL_BLUR = "equal_blur"  # of all trials together, where measures are of subjects

score = verb(AskScore, __name__)


def compute(question: AskScore) -> Result | EqualBlur:
    """Answer `score`."""
    if question.mass is not None and not 0 < question.mass < 1:
        raise ValueError(f"The mass of an interval lies between 0 and 1; got {question.mass:g}.")
    if EQUAL_BLUR in (question.measures or ()):
        return _equal_blur(question)
    return score_of_paper(question) or _of_measures(question)


def _of_measures(question: AskScore) -> Result:
    """Return the measures; of several participants, which of two is above comes first."""
    result, scores, trials = scores_of(question)
    participants = tuple(filter(None, dict.fromkeys(scores[WHO])))
    if not 1 < len(participants) <= MOST_COMPARED:
        return result
    several = scores["experiment"].nunique() > 1
    names = scores["experiment"] + ": " + scores["measure"] if several else scores["measure"]
    own = dict.fromkeys(participants, (question.by,) if question.by else ())
    part = comparison(
        scores.assign(score=names, cell=scores["experiment"]),
        trials.assign(cell=trials["environment"]),
        About({}, participants, own=own),
    )
    return first_which_differ(result.about(parts=[part]), part)


def _equal_blur(question: AskScore) -> EqualBlur:
    """Return the blur at which pictures tell as much as words, of the trials of one agent."""
    taken = ("data", "measures", "columns", "seed")
    for one in fields(question):
        if one.name not in taken and getattr(question, one.name) != one.default:
            raise ValueError(
                f"{EQUAL_BLUR} is of all trials together; --{one.name} has no meaning for it. "
                "Leave it out."
            )
    if list(question.measures or ()) != [EQUAL_BLUR]:
        raise ValueError(
            f"{EQUAL_BLUR} is of all trials together, where measures are of subjects; got it "
            "beside others. Ask for it alone."
        )
    return equal_blur(read_one(question.data, question.columns)[1], seed=question.seed)


def score_of_paper(question: AskScore) -> Result | None:
    """Return the parts of the paper whose experiments all trials are of; None if there is none.

    The rows of the result are the trials.

    Raises
    ------
    ValueError : If trials or columns are missing, or an option is none of the paper's.
    """
    sources: Any = question.data
    if isinstance(sources, str | Path):
        sources = [sources]
    frame = sources.frame if isinstance(sources, Trials) else read_all(sources, question.columns)
    chosen, texts = rows_where(Trials(frame), question.where)
    frame, paper = chosen.frame, None
    if not (question.measures or question.settings or question.features):
        paper = _paper_for(frame, question.environment)
    if question.reference is not None and paper is not None and "reference" not in OPTIONS[paper]:
        paper = None  # the scale from random answers to a reference is one of measures
    _check_options(question, paper)
    if paper is None:
        return None
    trials, by = _answers(frame, paper, question)
    return _result(paper, trials, by, question, texts)


def _paper_for(frame: pd.DataFrame, environment: str | None) -> str | None:
    """Name the paper whose experiments all trials are of; None if there is none."""
    if environment is not None:
        return PAPER_OF.get(environment)
    names = frame["environment"].fillna("").unique() if "environment" in frame else ()
    papers = {PAPER_OF.get(str(name)) for name in names}
    return papers.pop() if len(papers) == 1 else None


def _check_options(question: AskScore, paper: str | None) -> None:
    """Raise ValueError at an option of another paper."""
    allowed = OF_MEASURES if paper is None else OPTIONS[paper]
    for name in dict.fromkeys(one for options in OPTIONS.values() for one in options):
        if getattr(question, name) and name not in allowed:
            papers = [other for other, options in OPTIONS.items() if name in options]
            raise ValueError(
                f"--{name} is an option of {' and '.join(papers)}; it has no meaning for "
                f"{paper or 'measures'}. Leave it out."
            )


def _answers(
    frame: pd.DataFrame, paper: str, question: AskScore
) -> tuple[pd.DataFrame, str | None]:
    """Return the trials with participant, environment and cell, and who tells participants apart.

    That is the column `by`, or else the first that there is of "agent", "model" and, of several
    subjects, "subject"; None for a single participant.
    """
    if question.environment is not None or "environment" not in frame:
        name = question.environment or next(
            e for e, name_of in PAPER_OF.items() if name_of == paper
        )
        frame = frame.assign(environment=name)
    frame = _completed(frame.dropna(axis="columns", how="all"))
    for column in _answers_of(frame):
        frame[column] = frame.get(column)
    by = question.by or _participants(frame)
    if by is not None and by not in frame:
        raise ValueError(
            f"Participants are separated by a column of the trials; there is no {by!r} among "
            f"{', '.join(map(str, frame.columns))}."
        )
    who = ALONE if by is None else frame[by].astype(str)
    cell = frame[CELL] if CELL in frame else frame["environment"]
    return frame.assign(**{WHO: who, CELL: cell}).reset_index(drop=True), by


def _result(
    paper: str, trials: pd.DataFrame, by: str | None, question: AskScore, texts: Sequence[str]
) -> Result:
    """Compute the parts of a paper, and compare participants two at a time."""
    options = {name: value for name in OPTIONS[paper] if (value := getattr(question, name))}
    environments = {
        str(cell): _environment(str(rows["environment"].iloc[0]), rows, options)
        for cell, rows in trials.groupby(CELL, sort=False)
    }
    people = options.get("reference")
    about = About(
        environments={cell: one for cell, one in environments.items() if one is not None},
        participants=tuple(dict.fromkeys(trials[WHO])),
        people=None if people is None else Path(people),
        seed=question.seed,
        options={**USUAL.get(paper, {}), **options},
    )
    the_paper = paper_of(paper)
    parts, scores, _ = the_paper.parts(trials, about)
    compared = Part("", "")
    if len(scores) and len(about.participants) > 1:
        compared = comparison(scores, trials, about)
        parts.append(compared)
    if len(scores):
        parts.append(seen(scores, about))
    outcomes = trials.get("outcome", pd.Series("ok", trials.index)).fillna("ok")
    counts = pd.crosstab(trials[WHO], outcomes).reindex(list(about.participants))
    data: Any = question.data
    whole = isinstance(data, str | Path | Trials)
    sources = ["trials" if isinstance(data, Trials) else str(data)] if whole else [*map(str, data)]
    given = {"data": sources, "participants": about.participants, "by": by}
    result = Result(
        the_paper.title,
        tables={"Outcomes": counts.rename_axis(WHO)},
        parts=parts,
        warnings=of_several_servers(question.data),
        notes=[*NOTES, *texts],
        attempted=len(trials),
        rows=trials,
        options={**given, "seed": question.seed, **options},
        command=command_line(
            "score", *sources, by=by if by != BY else None,
            columns=in_one(dict(question.columns or {})), where=question.where,
            seed=question.seed or None, **options,
        ),
        versions=versions(),
    )  # fmt: skip
    return first_which_differ(result, compared)


def _completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return trials with the columns that their experiments work out from others."""
    parts = [
        environment_of(Trials(part), str(name)).complete(Trials(part))
        for name, part in frame.reset_index(drop=True).groupby("environment", sort=False)
    ]
    return pd.concat(parts).sort_index()


def _participants(frame: pd.DataFrame) -> str | None:
    """Return the column that tells participants apart; None for a single one."""
    if "agent" in frame:
        return "agent"
    if BY in frame:
        if frame[BY].isna().any():
            raise ValueError(
                f"Every trial names its participant in the column {BY!r}; some do not. "
                "Fill it in, or name another column with --by."
            )
        return BY
    return "subject" if "subject" in frame and frame["subject"].nunique() > 1 else None


def _answers_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of answers that trials of these experiments have."""
    names = frame["environment"].unique()
    played = [ENVIRONMENTS[name].as_played(frame[frame["environment"] == name]) for name in names]
    return list(
        dict.fromkeys(name for environment in played for name in answer_columns(environment))
    )


def _environment(name: str, rows: pd.DataFrame, options: Mapping[str, Any]) -> Environment | None:
    """Return the experiment of some trials; of contexts from an unknown network there is none."""
    if name == "diagnosis":
        network = options.get("network")
        return None if network is None else ENVIRONMENTS[name](network=network)
    return ENVIRONMENTS[name].as_played(rows)
