"""The contract of every experiment as one check, for our experiments and for those of others."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.words.answer import Outcome
from knownminds.environments.words.prompt import Prompt

from .design import Design, session_stream
from .environment import Environment
from .session import Session
from .streams import session_uniforms
from .turn import Choice, Given, Observation, Turn
from .world import follow_world


def check_environment(environment: Environment, seed: int = 0) -> None:
    """Raise AssertionError with the broken rule unless the environment keeps the whole contract.

    A session must be drawn up front and depend on nothing but its design and the actions. If the
    experiment has words, rendering and parsing must invert each other. A method that fails breaks
    it too; the error names the line.
    """
    try:
        _check(environment, seed)
    except (AssertionError, RecursionError, MemoryError):
        raise
    except Exception as error:  # an author's code may raise anything
        file = inspect.getfile(type(environment))
        said = f"{type(error).__name__}: {error}".removeprefix("ValueError: ")
        raise AssertionError(place_of(error, {file}) or said) from error


def place_of(error: BaseException, files: Collection[str]) -> str:
    """Say which function of an author's files has failed, in which line; "" if none has."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    if not frames:
        return ""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    last = frames[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}: `{last.line}`"
    return f"`{last.name}` fails ({where}): {kind}{str(error).rstrip('.')}."


def _check(environment: Environment, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = environment.n_trials
    ones, others = ([_any_choice(environment, rng) for _ in range(n)] for _ in range(2))

    design, again, another = (
        environment.draw(session_stream(number)) for number in (seed, seed, seed + 1)
    )
    _rule(_same(design, again), "The same seed draws the same design.")
    _rule(not _same(design, another), "Another seed draws another design.")
    first = _live(environment, design, ones)
    again_lived = _live(environment, design, ones)
    _rule(first == again_lived, "The same design and actions make the same session.")

    other = {turn.observation["trial"]: turn for turn in _live(environment, design, others)}
    for a in first:
        b = other.get(a.observation["trial"])
        if b is None:
            continue
        if a.action == b.action and a.observation == b.observation and not environment.depletes:
            _rule(
                a.reward == b.reward,
                "What an action pays on a trial was drawn up front; on trial "
                f"{a.observation['trial']} action {a.action} paid {a.reward} and then {b.reward}.",
            )
    gaps = [None if rng.random() < 0.2 else choice for choice in ones]
    for choices in (ones, others, gaps, [None] * n):
        _check_follows(environment, design, choices)
    _check_many(environment, seed, _actions(environment, design, ones))
    if environment.has_words():
        _check_words(environment, design, first, seed)
    rebuilt = type(environment)(**environment.settings)
    _rule(rebuilt.settings == environment.settings, "The settings rebuild the environment.")
    redrawn = rebuilt.draw(session_stream(seed))
    _rule(_same(design, redrawn), "A rebuilt environment draws the same sessions.")


def _any_choice(
    environment: Environment, rng: np.random.Generator, given: Given | None = None
) -> Choice:
    """Return an answer that some trial accepts; where trials differ, one of either kind."""
    action = int(rng.integers(max(environment.n_actions, 1)))
    low, high = environment.response_range
    response = round(float(rng.uniform(low, high)), 2)
    choices: dict[str, Choice] = {"action": action, "response": response}
    return choices.get(given or environment.given, (action, response))


def _asked(environment: Environment, choice: Choice, observation: Observation) -> Choice:
    """Return the part of a choice that a trial asks for."""
    if environment.given != "either" or not isinstance(choice, tuple):
        return choice
    return choice[0] if environment.asks(observation) == "action" else choice[1]


def _actions(
    environment: Environment, design: Design, choices: Sequence[Choice]
) -> NDArray[np.int64]:
    """Return the actions among the choices, -1 where there is none."""
    if environment.given == "either":
        taken = np.array([choice[0] for choice in choices if isinstance(choice, tuple)])
        return np.where(environment.asks(design.table) == "action", taken, -1)
    split = [environment.split(choice)[0] for choice in choices]
    return np.array([-1 if action is None else action for action in split])


def _check_follows(environment: Environment, design: Design, choices: Sequence[Choice]) -> None:
    """Check that `follow_world` gives the same trials as a session that is played."""
    turns = _live(environment, design, choices)
    played = np.array([int(turn.observation["trial"]) for turn in turns])
    actions = np.full(environment.n_trials, -1)
    actions[played] = [-1 if turn.action is None else turn.action for turn in turns]
    brought = follow_world(environment.world, design.table, actions)
    present = np.flatnonzero(brought.get("present", np.ones(environment.n_trials, dtype=bool)))
    _rule(np.array_equal(present, played), "`follow_world` tells which trials take place.")
    answered = np.array([turn.action is not None or turn.response is not None for turn in turns])
    paid = np.array([turn.reward for turn in turns], dtype=float)  # NaN where nothing is paid
    followed = np.where(answered, brought["reward"][played], np.nan)
    _rule(
        np.array_equal(followed, paid, equal_nan=True),
        "`follow_world` tells the rewards that a session pays.",
    )
    for name in environment.fields.feedback:
        got = np.array([turn.brought.get(name, np.nan) for turn in turns])
        followed = np.where(answered, brought[name][played], np.nan)
        _rule(
            np.array_equal(followed, got, equal_nan=True),
            f"`follow_world` tells {name} as a session brings it.",
        )
    for name in [n for n in environment.fields.shown if n in environment.fields.dependent]:
        shown = [turn.observation[name] for turn in turns]
        _rule(
            np.array_equal(brought[name][played], shown),
            f"`follow_world` tells {name} as it is shown.",
        )


def _live(environment: Environment, design: Design, choices: Sequence[Choice]) -> list[Turn]:
    """Play a session; the choice for each trial stands at the trial's number."""
    session = Session(environment, design)
    bounds, replies = environment.fields.bounds(environment), environment.replies
    for observation in session:
        _rule(
            all(low <= observation[name] <= high for name, (low, high) in bounds.items()),
            f"What is shown lies within the ranges of its fields; got {observation}.",
        )
        choice = _asked(environment, choices[int(observation["trial"])], observation)
        shared = len(replies.together(design, observation)) > 1 or replies.continues(observation)
        silent = choice is None or shared or not environment.has_words()
        turn = session.take(choice, "?" if silent else session.say(choice))
        _rule(turn.reward is None or environment.feedback, "Without feedback, there is no reward.")
    return session.turns


def _check_many(environment: Environment, seed: int, actions: NDArray[np.int64]) -> None:
    """Check that sessions made together equal those that are drawn one by one."""
    uniforms = session_uniforms(seed, [(0,), (1,)], environment.n_draws)
    tables = environment.tables(uniforms)
    brought = follow_world(environment.world, tables, np.stack([actions, actions]))
    for i in range(2):
        alone = environment.draw(session_stream(seed, i))
        beside = Design({name: table[i] for name, table in tables.items()}, alone.labels)
        _rule(_same(alone, beside), "A session's tables do not depend on the sessions beside it.")
        for name, column in follow_world(environment.world, alone.table, actions).items():
            _rule(
                np.array_equal(column, brought[name][i], equal_nan=column.dtype.kind == "f"),
                f"What follows ({name}) does not depend on the sessions beside.",
            )


def _check_words(
    environment: Environment, design: Design, turns: Sequence[Turn], seed: int
) -> None:
    labels = design.labels
    # A trial in the middle stays unanswered, so that the history has a gap.
    with_gap = list(turns)
    gap = len(with_gap) // 2
    with_gap[gap] = Turn(with_gap[gap].observation, None, None, "?")
    if environment.fields.dependent:
        with_gap = with_gap[: gap + 1]  # after a gap, later trials may differ
    rng = np.random.default_rng(seed)
    _check_shared(environment, design, turns, rng)
    for t in sorted({0, 1 % len(with_gap), gap, len(with_gap) - 1}):
        while environment.replies.continues(with_gap[t].observation):
            t -= 1
        observation = with_gap[t].observation
        prompt = environment.render(labels, observation, with_gap[:t])
        _rule(bool(prompt.messages), "A prompt has messages.")
        environment.draw(rng)  # meanwhile another session begins
        _rule(
            prompt.hash == environment.render(labels, observation, with_gap[:t]).hash,
            "Rendering depends on nothing but its arguments.",
        )
        past, seen = _read(environment, design, prompt)
        _rule(seen == observation, f"`read` inverts `render`; {_differing(observation, seen)}.")
        choices: list[Choice] = list(range(environment.n_actions))
        given = environment.asks(observation)
        if given != "action":
            choices = [_any_choice(environment, rng, given) for _ in range(5)]
        alone = len(environment.replies.together(design, observation)) == 1
        for choice in choices if alone else []:
            said = environment.say(labels, choice, observation)
            answer = environment.parse(labels, said, observation)
            _rule(
                answer.outcome is Outcome.OK and answer.choice == choice,
                f"What `say` says, `parse` reads; {choice} came back as {answer}.",
            )
            _check_replies(environment, design, said, prompt, observation)
        before = list(environment.recalled(with_gap[:t], observation))
        _rule(
            prompt.hash == environment.render(labels, observation, before).hash,
            "A prompt that tells nothing of earlier trials does not depend on them.",
        )
        _rule(
            [(turn.action, turn.response, turn.reward, turn.brought) for turn in past]
            == [(turn.action, turn.response, turn.reward, turn.brought) for turn in before],
            "`read` gives back the actions, responses and outcomes of the history.",
        )
        for a, b in zip(past, before, strict=True):
            shared = {name: b.observation[name] for name in a.observation}
            _rule(dict(a.observation) == shared, "`read` gives back what was shown.")
    empty = environment.parse(labels, "", with_gap[0].observation)
    _rule(
        empty.outcome is Outcome.EMPTY and empty.choice is None,
        "An empty answer has the outcome empty and no action.",
    )
    cut = environment.replies.cut("", with_gap[0].observation)
    _rule(
        cut.outcome is Outcome.TRUNCATED and cut.choice is None,
        "An answer cut off before its first word has the outcome truncated and no action.",
    )


def _read(
    environment: Environment, design: Design, prompt: Prompt
) -> tuple[Sequence[Turn], Observation]:
    """Return what `read` makes of a prompt."""
    found = environment.read(design, prompt.messages)
    both = isinstance(found, tuple) and len(found) == 2
    _rule(
        both and isinstance(found[0], Sequence) and isinstance(found[1], Mapping),
        "`read` returns two things: a list of the earlier turns that the prompt tells, and what it "
        f"shows, by name of the field; got {found!r}.",
    )
    return found


def _differing(shown: Observation, seen: Observation) -> str:
    """Say what of a trial came back as something else."""
    names = [n for n in {**shown, **seen} if n not in shown or shown.get(n) != seen.get(n)]
    names += [n for n in shown if n not in seen and n not in names]
    return ", ".join(
        f"{n} was {shown.get(n, 'not there')} and came back as {seen.get(n, 'nothing')}"
        for n in names
    )


def _check_shared(
    environment: Environment, design: Design, turns: Sequence[Turn], rng: np.random.Generator
) -> None:
    """Check trials that share a reply: they share a prompt, and their numbers are read in one."""
    labels, alone = design.labels, 0
    for turn in turns:
        shared = environment.replies.together(design, turn.observation)
        if environment.replies.continues(turn.observation):
            continue
        alone += 1
        if len(shared) == 1:
            continue
        _rule(environment.past == "none", "Trials share a reply only where nothing is retold.")
        prompt = environment.render(labels, turn.observation, [])
        numbers = tuple(
            (rng.multinomial(100, np.full(len(shared), 1 / len(shared))) / 100).tolist()
        )
        text = environment.say(labels, numbers, turn.observation)
        for observation, number in zip(shared, numbers, strict=True):
            _rule(
                prompt.hash == environment.render(labels, observation, []).hash,
                "Trials that share a reply share a prompt.",
            )
            answer = environment.parse(labels, text, observation)
            _rule(
                answer.outcome is Outcome.OK and answer.choice == number,
                f"Of a shared reply each trial reads its number; {number} came back as {answer}.",
            )
        _, seen = _read(environment, design, prompt)
        _rule(seen == turn.observation, "`read` takes a shared prompt back to its first trial.")
    _rule(alone <= environment.replies.n_prompts, "A session asks no more than `n_prompts`.")


def _check_replies(
    environment: Environment, design: Design, said: str, prompt: Prompt, observation: Observation
) -> None:
    """Check that an answer of several replies is requested until it is whole, and is read."""
    replies = environment.replies.spoken(said)
    text, question = "", prompt
    for k, reply in enumerate(replies):
        _rule(
            environment.replies.n_given(question.messages) == k
            and _read(environment, design, question)[1] == observation,
            "A question that follows a reply in the same trial tells of it, and is read.",
        )
        text = environment.replies.joined(text, reply) if k else reply
        answer = environment.parse(design.labels, text, observation)
        more = environment.replies.further(question, answer)
        _rule(
            (more is None) == (k == len(replies) - 1),
            "As many questions are posed in a trial as replies make up its answer.",
        )
        question = more or question
    _rule(text == said, "Joined, the replies are the answer.")


def _same(a: Design, b: Design) -> bool:
    return (
        a.labels == b.labels
        and a.table.keys() == b.table.keys()
        and all(np.array_equal(a.table[name], b.table[name]) for name in a.table)
    )


def _rule(kept: bool, sentence: str) -> None:
    if not kept:
        raise AssertionError(sentence)
