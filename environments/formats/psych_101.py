"""Sessions as one text each, with the choices marked, as in Psych-101; and read back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from knownminds.environments.design import Design, session_stream
from knownminds.environments.environment import Environment
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.folders import write_text
from knownminds.environments.record.recording import answer_columns
from knownminds.environments.record.trials import Trials
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import ANSWERED, Answer
from knownminds.environments.words.prompt import Message
from knownminds.members import unknown

OPEN, CLOSE = "<<", ">>"
OWN = "knownminds"  # the field of a record that holds what its text does not show


def psych_101_records(
    trials: Trials, environment: Environment | None = None, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Write each session in the words of its experiment's prompts.

    A record has the fields of Psych-101 (Binz et al. 2025): `text`, in which the participant's
    answers stand between << and >>, `experiment` and `participant`. A field of ours, `knownminds`,
    keeps what the text does not show: settings, session, names, rewards that were not shown,
    outcomes that cannot be read from the answer, and columns that were not shown. Answers are
    written in the form that the experiment asks for, without the reasoning before them. Columns
    that the experiment does not have are left out.

    Parameters
    ----------
    environment : The experiment with its settings; None to read them from the trials, where missing
        as shipped.
    seed : Draws the names of sessions whose trials have no `labels`.

    Raises
    ------
    ValueError : At the first session that cannot be shown: it has a picture, lacks what its words
        need, has the marks in its words, or would be read back differently.
    """
    frame = trials.frame
    named = environment.name if environment else None
    names = frame["environment"] if "environment" in frame else pd.Series(named, frame.index)
    names = names if named is None else names.fillna(named)
    if names.isna().any():
        raise ValueError(
            "Trials are written in the words of their experiment; these do not name it. "
            "Name it with --environment."
        )
    records = []
    for name in names.unique():
        rows_of_experiment = frame[names == name].dropna(axis=1, how="all")
        experiment = _worded(
            _place(name, rows_of_experiment) if environment is None else environment
        )
        if experiment.name != name:
            raise ValueError(
                f"The trials are of {name}, not of {experiment.name}. Name the right one."
            )
        for i, (keys, rows) in enumerate(
            rows_of_experiment.groupby(["subject", "session"], sort=False)
        ):
            labels = _labels(experiment, rows, seed, i)
            details = {"settings": experiment.settings, "session": keys[1], "labels": labels}
            text, untold = _told(experiment, labels, rows.reset_index(drop=True), *keys)
            records.append(
                {"text": text, "experiment": name, "participant": keys[0], OWN: details | untold}
            )
    return records


def write_psych_101(
    trials: Trials,
    path: str | os.PathLike[str],
    environment: Environment | None = None,
    *,
    seed: int = 0,
) -> None:
    """Write sessions as lines of JSON, whole or not at all; see `psych_101_records`."""
    records = psych_101_records(trials, environment, seed=seed)
    write_text(Path(path), "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))


def trials_of_psych_101(
    records: Iterable[Mapping[str, Any]], environment: Environment | None = None
) -> Trials:
    """Read sessions back from the words of their experiment's prompts.

    Our records give exactly the same actions back. If `knownminds` is absent, settings are those of
    `environment`, and names are read from the text. Actions are then numbered as `labels_in` of
    `Environment` says, and rewards that are not shown are missing; so is the reward of the last
    trial of a session.

    Parameters
    ----------
    environment : The experiment with its settings; None for what the records say.

    Raises
    ------
    ValueError : If a line is of an unknown experiment or not in its words. The error names the
        line.
    """
    frames: list[pd.DataFrame] = []
    sessions: dict[tuple[str, str], int] = {}
    places: dict[str, Environment] = {}
    for n, record in enumerate(records, start=1):
        try:
            details = record.get(OWN) or {}
            name, participant = str(record["experiment"]), str(record["participant"])
            at = sessions[name, participant] = sessions.get((name, participant), -1) + 1
            experiment = environment
            if experiment is None:
                key = json.dumps([name, details.get("settings")])
                experiment = places.setdefault(key, _made(name, details.get("settings") or {}))
            rows = _read(_worded(experiment), str(record["text"]), details)
        except KeyError as error:
            raise ValueError(
                f"A record has text, experiment and participant; line {n} has no {error}."
            ) from None
        except ValueError as error:
            raise ValueError(f"Line {n} cannot be read: {error}") from None
        session = str(details.get("session", at))
        frames.append(
            rows.assign(environment=experiment.name, subject=participant, session=session)
        )
    if not frames:
        raise ValueError("Sessions are read from lines of JSON; there is none.")
    return Trials.from_frame(pd.concat(frames, ignore_index=True))


def read_psych_101(path: str | os.PathLike[str], environment: Environment | None = None) -> Trials:
    """Read a file of sessions; see `trials_of_psych_101`."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"Sessions are read from a file; there is none at {file}.")
    return trials_of_psych_101(_lines(file), environment)


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        for n, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise ValueError(
                    f"Each line is an object of JSON; line {n} of {file.name} begins {line[:40]!r}."
                )
            yield record


def _made(name: str, settings: Mapping[str, Any]) -> Environment:
    from knownminds.environments import ENVIRONMENTS, make

    if name not in ENVIRONMENTS:
        raise ValueError(f"{unknown('environment', name, ENVIRONMENTS)} Texts are read by their "
                         "experiment's words.")  # fmt: skip
    return make(name, **settings)


def _place(name: str, rows: pd.DataFrame) -> Environment:
    """Return the experiment with the settings that trials show, and with their number of trials."""
    from knownminds.environments import environment_of

    environment = environment_of(Trials(rows), _made(name, {}).name)
    if environment.size is None:
        return environment
    per_unit = environment.n_trials // environment.settings[environment.size]
    trials = int(rows["trial"].max()) - min(int(rows["trial"].min()), 1) + 1
    units = -(-trials // per_unit)
    return type(environment)(**{**environment.settings, environment.size: units})


def _worded(environment: Environment) -> Environment:
    """Return the experiment as a conversation with plain answers, if it has such settings."""
    wanted = {"history": "chat", "reasoning": "none", "confidence": "together"}
    settings = environment.settings
    changed = {k: v for k, v in wanted.items() if settings.get(k, v) != v}
    return type(environment)(**settings | changed)


def _labels(environment: Environment, rows: pd.DataFrame, seed: int, session: int) -> Any:
    if "labels" in rows and pd.notna(rows["labels"].iloc[0]):
        return json.loads(rows["labels"].iloc[0])
    return environment.draw(session_stream(seed, session)).labels


def _told(
    environment: Environment, labels: Any, rows: pd.DataFrame, subject: str, session: str
) -> tuple[str, dict[str, Any]]:
    """Return the text of a session, and everything that the text does not show."""
    turns: list[Turn] = []
    replies: list[str] = []
    observations = _observations(environment, rows)
    if any(environment.replies.continues(observation) for observation in observations):
        raise ValueError(
            f"Trials of {environment.name} cannot be told in a text that tells them back: one "
            "reply answers several. Keep them as .csv or .parquet."
        )
    for observation, row in zip(observations, rows.to_dict("records"), strict=True):
        given = Answer(
            row["outcome"],
            None if pd.isna(row.get("action")) else int(row["action"]),
            None if pd.isna(row.get("response")) else float(row["response"]),
        )
        if given.choice is not None:
            reply = environment.say(labels, given.choice, observation)
        else:
            reply = "" if pd.isna(row.get("raw_text")) else str(row["raw_text"])
        reward = None if pd.isna(row.get("reward")) else float(row["reward"])
        text = "" if given.choice is not None else reply
        brought = {n: row[n] for n in environment.fields.feedback if given.choice is not None}
        turns.append(Turn(observation, given.action, reward, text, given.response, brought))
        replies.append(reply)
    questions = _questions(environment, labels, turns)
    for turn, *words in zip(turns, questions, replies, strict=True):
        if any(mark in text for mark in (OPEN, CLOSE) for text in words):
            raise ValueError(
                f"A text marks choices with {OPEN} and {CLOSE}; trial {turn.observation['trial']} "
                f'of session "{session}" of subject "{subject}" has them in its words. '
                "Leave that session out."
            )
    parts = [f"{q}\n{OPEN}{reply}{CLOSE}" for q, reply in zip(questions, replies, strict=True)]
    text = "\n\n".join(parts)
    try:
        back = _read(environment, text, {"labels": labels})
    except ValueError as error:
        raise ValueError(
            f"Trials of {environment.name} cannot be told in a text that tells them back: {error} "
            "Keep them as .csv or .parquet."
        ) from None
    if not all(_same(back, rows, column) for column in answer_columns(environment)):
        raise ValueError(
            f'Session "{session}" of subject "{subject}" cannot be told: its text would be read '
            "with other answers. Keep it as .csv or .parquet."
        )
    untold: dict[str, Any] = {}
    lost = (back["outcome"] != rows["outcome"]) & ~rows["outcome"].isin(ANSWERED)
    if lost.any():
        untold["outcomes"] = {str(t): rows["outcome"][t] for t in np.flatnonzero(lost).tolist()}
    if "reward" in rows:
        silent = np.flatnonzero(rows["reward"].notna() & back["reward"].isna()).tolist()
        if silent:
            untold["rewards"] = {str(t): float(rows["reward"][t]) for t in silent}
    recorded = (
        "trial",
        *environment.fields.shown,
        *environment.fields.hidden,
        *environment.fields.feedback,
    )
    columns = [c for c in recorded if c in rows]
    rest = {c: rows[c].tolist() for c in columns if not _same(back, rows, c)}
    return text, untold | ({"columns": rest} if rest else {})


def _same(there: pd.DataFrame, here: pd.DataFrame, column: str) -> bool:
    """Say whether a column holds the same numbers in both tables."""
    if column not in there or column not in here:
        return column not in there and column not in here
    a, b = (table[column].to_numpy(dtype=float, na_value=np.nan) for table in (there, here))
    return np.array_equal(a, b, equal_nan=True)


def _observations(environment: Environment, rows: pd.DataFrame) -> list[Observation]:
    fields = environment.fields.shown
    for name in fields:
        if name not in rows or rows[name].isna().any():
            raise ValueError(
                f"The words of {environment.name} tell of {name!r}, which these trials lack. "
                "Tell of trials that were simulated or run here, or add the column."
            )
    bounds = environment.fields.bounds(environment)
    whole = {k for k in fields if isinstance(bounds.get(k, (0.0, 0.0))[0], int)}
    trial = rows["trial"].astype(int)
    columns: dict[str, list[Any]] = {"trial": (trial - (trial.min() == 1)).tolist()}  # from 0
    for name in fields:
        values = rows[name].tolist()
        columns[name] = list(map(int, values)) if name in whole else values
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _questions(environment: Environment, labels: Any, turns: Sequence[Turn]) -> list[str]:
    """Return what was said between each answer and the answer before it."""
    kept = [len(environment.recalled(turns[:t], turn.observation)) for t, turn in enumerate(turns)]
    begins = [t for t, n in enumerate(kept) if n == 0]  # prompts without a past
    questions: list[str] = []
    for begin, end in zip(begins, [*begins[1:], len(turns)], strict=True):
        if kept[end - 1] == end - 1 - begin:  # the last prompt holds everything
            prompt = environment.render(labels, turns[end - 1].observation, turns[: end - 1])
            questions += [_words(message) for message in prompt.messages[::2]]
            continue
        for t in range(begin, end):
            prompt = environment.render(labels, turns[t].observation, turns[:t])
            questions.append(_words(prompt.messages[-1]))
    return questions


def _words(message: Message) -> str:
    if message.images:
        raise ValueError("A text cannot show pictures; keep such trials as .csv or .parquet.")
    return message.content


def answers_in(text: str) -> list[tuple[int, int]]:
    """Return where each answer of a text stands, its marks included: first place, and end.

    Raises
    ------
    ValueError : If marks do not take turns: an answer is opened twice, or closed twice, or not
        closed.
    """
    marks = [(mark[0], mark.start()) for mark in re.finditer(f"{OPEN}|{CLOSE}", text)]
    for k, (mark, at) in enumerate([*marks, *([("", 0)] if len(marks) % 2 else [])]):
        if mark == (OPEN, CLOSE)[k % 2]:
            continue
        found, missing = (OPEN, CLOSE) if k % 2 else (CLOSE, OPEN)
        at = marks[k - 1][1] if k % 2 else at
        raise ValueError(
            f"Every {OPEN} has a {CLOSE}, with one answer in between; answer {k // 2 + 1} has "
            f"{found} and no {missing}: {text[max(at - 20, 0) : at + 30]!r}. Correct it, or leave "
            "the line out."
        )
    ends = [at + len(CLOSE) for _, at in marks[1::2]]
    return list(zip((at for _, at in marks[::2]), ends, strict=True))


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return questions and replies."""
    places = answers_in(text)
    ends = [0, *(end for _, end in places)]
    questions = [text[end:begin] for end, (begin, _) in zip(ends, places, strict=False)]
    replies = [text[begin + len(OPEN) : end - len(CLOSE)] for begin, end in places]
    rest = text[ends[-1] :]
    if not replies:
        raise ValueError(f"Choices stand between {OPEN} and {CLOSE}; the text has none.")
    if rest.strip():
        raise ValueError(f"A text ends with a choice; this one goes on with {rest.strip()[:40]!r}.")
    return [q.removeprefix("\n\n").removesuffix("\n") for q in questions], replies


def _conversations(
    environment: Environment, design: Design, questions: Sequence[str], replies: Sequence[str]
) -> list[list[Message]]:
    """Divide questions and replies into conversations; a question without a past begins one."""
    talks: list[list[Message]] = []
    for question, reply in zip(questions, replies, strict=True):
        pair = [Message("user", question), Message("assistant", reply)]
        if talks and environment.past != "none" and not _opens(environment, design, pair[0]):
            talks[-1] += pair
        else:
            talks.append(pair)
    return talks


def _opens(environment: Environment, design: Design, question: Message) -> bool:
    try:
        environment.read(design, [question])
    except ValueError:
        return False
    return True


def _read(environment: Environment, text: str, details: Mapping[str, Any]) -> pd.DataFrame:
    """Return the trials of a session, one row each."""
    questions, replies = _split(text)
    if "labels" in details:
        labels = details["labels"] or ()
        frame = pd.DataFrame(_rows(environment, labels, questions, replies))
    else:
        labels = _names(environment, questions, replies)
        frame = pd.DataFrame(_rows(environment, labels, questions, replies))
        # A column that differs with another design was not read from the text.
        other = pd.DataFrame(_rows(environment, labels, questions, replies, seed=1))
        shown = [c for c in environment.fields.shown if c in frame]
        frame = frame.drop(columns=[c for c in shown if not frame[c].equals(other[c])])
    if "action" in frame:
        frame["action"] = frame["action"].astype("Int64")
    for t, outcome in (details.get("outcomes") or {}).items():
        frame.loc[int(t), "outcome"] = outcome
    frame["reward"] = frame["reward"].astype("float64")
    for t, reward in (details.get("rewards") or {}).items():
        frame.loc[int(t), "reward"] = reward
    for column, values in (details.get("columns") or {}).items():
        frame[column] = values
    if labels:
        frame["labels"] = json.dumps(labels)
    if "trial" not in frame or not frame["trial"].is_monotonic_increasing:
        frame["trial"] = np.arange(len(frame))
    return frame


def _names(environment: Environment, questions: Sequence[str], replies: Sequence[str]) -> Any:
    """Return labels by which the text of an unknown session can be read."""
    messages = [Message("user", questions[0])]
    for question, reply in zip(questions[1:], replies, strict=False):
        messages += [Message("assistant", reply), Message("user", question)]
    try:
        return environment.labels_in(messages if environment.past != "none" else messages[:1])
    except NotImplementedError as error:
        raise ValueError(str(error)) from None


def _rows(
    environment: Environment,
    labels: Any,
    questions: Sequence[str],
    replies: Sequence[str],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Read each trial; nothing that the text shows may depend on the design drawn from the seed."""
    design = replace(environment.draw(session_stream(seed)), labels=labels)
    rows: list[dict[str, Any]] = []
    for talk in _conversations(environment, design, questions, replies):
        turns, last = environment.read(design, talk[:-1])
        seen = [*turns, Turn(last, None, None)]
        for turn, reply in zip(seen, talk[1::2], strict=True):
            answer = environment.parse(labels, reply.content, turn.observation)
            given = {name: getattr(answer, name) for name in answer_columns(environment)}
            unread = None if answer.choice is not None else reply.content
            row = {**turn.known, **given, "reward": turn.reward}
            rows.append(row | {"outcome": answer.outcome.value, "raw_text": unread})
    return rows
