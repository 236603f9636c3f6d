"""What a page has to know of a session: the design's tables, and all that can be shown."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from math import isfinite, isnan
from typing import Any

import numpy as np

from knownminds.agents.compiler.javascript import Script, Way, key_of
from knownminds.environments import (
    Design,
    Environment,
    Observation,
    Session,
    Turn,
    answer_columns,
    session_stream,
)
from knownminds.environments.fields import jsonable
from knownminds.environments.words.answer import decimal

VERSION = 1  # of a page and its files
_STATED = 0.4321098765  # where in the range a response lies that stands for any
_LIVED = 3  # sessions played at random, by which a page is tried


def session_data(
    environment: Environment, seed: int, subject: int, script: Script | None = None
) -> dict[str, Any]:
    """Return, JSON-able, all that a page needs for a session: that at `subject` of the seed.

    Raises
    ------
    ValueError : If the experiment, or these settings of it, cannot be shown to people.
    """
    script = script or script_of(environment)
    design = environment.draw(session_stream(seed, subject))
    return _Gathering(environment, design, script).data | {
        "knownminds_page": VERSION,
        "environment": environment.name,
        "settings": environment.settings,
        "seed": seed,
        "subject": subject,
        "design": fingerprint(environment, seed, subject, design),
    }


def script_of(environment: Environment) -> Script:
    """Return an experiment's world for pages, with the columns that its texts hang on.

    Raises
    ------
    ValueError : If the experiment, or these settings of it, cannot be shown to people.
    """
    read: set[str] = set()
    sessions: dict[int, Session] = {}
    design = environment.draw(session_stream(0, 0))
    for session, seen, choice in _lived_at_random(environment, design):
        sessions[id(session)] = session
        watched = _Watched(seen, read)
        screen = environment.screen(design.labels, watched)
        if not environment.replies.continues(seen):
            together = len(environment.replies.together(design, seen))
            if together != max(len(screen.numbers), 1):
                raise ValueError(
                    f"A page asks for one answer at a time; one to {environment.name} holds "
                    f"{together}. Let its screen name the numbers, or ask apart."
                )
        turn = session.take(choice)
        paid = Turn(watched, turn.action, turn.reward, "", turn.response, turn.brought)
        environment.feedback_text(design.labels, paid)
    script = Script(environment, read & set(environment.fields.dependent))
    for session in sessions.values():
        _check_follows(script, design, session)
    return script


def _check_follows(script: Script, design: Design, session: Session) -> None:
    """Raise ValueError unless a page would live a session as the experiment has."""
    taken = {row["trial"]: row.get("action") for row in session.rows}
    followed = script.follow(design, {t: a for t, a in taken.items() if a is not None})
    same = list(followed) == list(taken)
    for row in session.rows if same else ():
        shown = followed[row["trial"]]
        for name in shown.keys() & row.keys():
            same = same and (row[name] is None or row[name] == shown[name] or isnan(row[name]))
    if not same:
        raise ValueError(
            f"A page plays what the experiment plays; the world of {script.environment.name} run "
            "on symbols is not what it is on numbers. Write it so that both agree: numpy.where "
            "instead of if, and no state outside of it."
        )


def fingerprint(environment: Environment, seed: int, subject: int, design: Design) -> str:
    """Return a short hash of a session's design, by which a file is known to belong to it."""
    digest = hashlib.sha256(repr((environment.name, seed, subject)).encode())
    for name in sorted(design.table):
        digest.update(name.encode() + np.ascontiguousarray(design.table[name]).tobytes())
    digest.update(json.dumps(jsonable(design.labels)).encode())
    return digest.hexdigest()[:16]


class _Watched(Mapping[str, Any]):
    """An observation that notes what is read of it."""

    def __init__(self, seen: Observation, read: set[str]) -> None:
        self._seen, self._read = seen, read

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._seen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


class _Gathering:
    """The texts and pictures of a session, each kept once."""

    def __init__(self, environment: Environment, design: Design, script: Script) -> None:
        self.environment, self.design, self.script = environment, design, script
        self._texts: dict[str, int] = {}
        self._images: dict[bytes, int] = {}
        self._introductions: set[str] = set()
        fields = environment.fields
        names = [name for name in (*fields.shown, *fields.hidden) if name not in fields.dependent]
        low, high = environment.response_range
        self._stated = low + _STATED * ((high if isfinite(high) else low + 1.0) - low)
        trials = [self._trial(t, shown) for t, shown in enumerate(script.ways(design))]
        there = design.table.get("present")
        tables = dict.fromkeys((*names, *script.tables))
        self.data: dict[str, Any] = {
            "n_trials": environment.n_trials,
            "fields": [*fields.shown, *fields.hidden],
            "answers": list(answer_columns(environment)),
            "range": [low, high if isfinite(high) else None],
            "ends_early": environment.ends_early,
            "start": script.start,
            "shown": list(script.shown),
            "paid": [name for name in script.paid if environment.feedback or name != "reward"],
            "present": None if there is None else there.astype(int).tolist(),
            "table": {name: _numbers(design.table[name]) for name in tables},
            "trials": trials,
            "stays": len(self._introductions) <= 1,
            "texts": list(self._texts),
            "images": [
                "data:image/png;base64," + base64.b64encode(image).decode()
                for image in self._images
            ],
        }

    def _trial(self, t: int, shown: Mapping[int, set[Way]]) -> dict[str, Any] | None:
        """Return the screens of a trial by what it shows, and what follows on each answer."""
        if not shown:
            return None
        screens: dict[str, Any] = {}
        columns: dict[str, int] = {}
        n = len(self.script.shown)
        for action, ways in shown.items():
            for way in ways:
                seen = self._seen(t, way[:n])
                key = key_of(way[:n])
                if key not in screens:
                    screens[key] = self._screen(seen)
                for who, text in self._told(seen, action, way[n:], screens[key]["asks"]):
                    columns[f"{who}:{self._key(way)}"] = self._text(text)
        return {"screens": screens, "replies": columns}

    def _key(self, way: Way) -> str:
        """Return what the page joins: what is shown, and what is paid where anything is."""
        names = (*self.script.shown, *self.script.paid)
        kept = [
            x
            for name, x in zip(names, way, strict=True)
            if name != "reward" or self.environment.feedback
        ]
        return key_of(kept)

    def _seen(self, t: int, shown: Way) -> dict[str, int | float]:
        fields = self.environment.fields
        drawn = [name for name in fields.shown if name not in fields.dependent]
        seen: dict[str, int | float] = {"trial": t, **self.design.at(t, drawn)}
        return seen | {
            name: int(x) if x == int(x) else x
            for name, x in zip(self.script.shown, shown, strict=True)
        }

    def _screen(self, seen: Observation) -> dict[str, Any]:
        screen = self.environment.screen(self.design.labels, seen)
        self._introductions.add(screen.introduction)
        return {
            "introduction": self._text(screen.introduction),
            "question": self._text(screen.question),
            "options": [self._text(option) for option in screen.options],
            "order": list(screen.order),
            "images": [self._images.setdefault(i, len(self._images)) for i in screen.images],
            "asks": screen.asks,
            "numbers": list(screen.numbers),
        }

    def _told(
        self, seen: Observation, action: int, paid: Way, asks: str
    ) -> Iterator[tuple[str, str]]:
        """Yield what follows on an answer, by its kind: an action, a "number", "nothing"."""
        environment, labels = self.environment, self.design.labels
        if action < 0:
            yield "nothing", environment.feedback_text(labels, Turn(seen, None, None))
        if (action >= 0) == (asks == "response"):
            return
        brought = dict(zip(self.script.paid, paid, strict=True))
        reward = brought.pop("reward", np.nan)
        response = None if asks == "action" else self._stated
        chosen = None if asks == "response" else action
        turn = Turn(seen, chosen, None if isnan(reward) else reward, "", response, brought)
        text = environment.feedback_text(labels, turn)
        if response is not None:
            text = text.replace(decimal(response), "{response}")
        yield "number" if chosen is None else str(chosen), text

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _numbers(table: Any) -> Any:
    return (table.astype(int) if table.dtype == bool else table).tolist()


def _lived_at_random(
    environment: Environment, design: Design
) -> Iterator[tuple[Session, Observation, Any]]:
    """Live some sessions, trial by trial; whoever asks takes what is offered as a choice."""
    rng = np.random.default_rng(0)
    low, high = environment.response_range
    for _ in range(_LIVED):
        session = Session(environment, design)
        for seen in session:
            is_asked = environment.asks(seen)
            action = int(rng.integers(environment.n_actions)) if is_asked != "response" else 0
            response = low + float(rng.random()) * ((high if isfinite(high) else 1.0) - low)
            choices = {"action": action, "response": response, "both": (action, response)}
            yield session, seen, choices[is_asked] if rng.random() < 0.9 else None
