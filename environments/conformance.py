"""The contract of every experiment as one callable check, for ours and for anybody's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .answer import Outcome
from .design import Design, session_stream
from .environment import Environment, Turn
from .streams import session_uniforms


def check_environment(environment: Environment, seed: int = 0) -> None:
    """Raise AssertionError, with the rule that is broken, unless the environment keeps them all.

    A session is drawn up front and depends on nothing but its design and the actions; rendering
    and parsing invert each other; the session ends when it says and starts only by `reset`.
    """
    rng = np.random.default_rng(seed)
    n, k = environment.n_trials, environment.n_actions
    ones, others = rng.integers(k, size=n), rng.integers(k, size=n)

    environment.reset(seed=seed)
    design = environment.design
    first = _live(environment, design, ones.tolist())
    again = _live(environment, design, ones.tolist())
    _rule(first == again, "The same design and actions make the same session.")
    environment.reset(seed=seed)
    _rule(_same(design, environment.design), "The same seed draws the same design.")
    environment.reset(seed=seed + 1)
    _rule(not _same(design, environment.design), "Another seed draws another design.")

    other = _live(environment, design, others.tolist())
    stimuli = [turn.observation for turn in first]
    _rule(
        stimuli == [turn.observation for turn in other],
        "What is shown was drawn up front: it does not depend on the actions.",
    )
    for a, b in zip(first, other, strict=True):
        if a.action == b.action:
            _rule(
                a.reward == b.reward,
                "What an action pays on a trial was drawn up front; on trial "
                f"{a.observation['trial']} action {a.action} paid {a.reward} and then {b.reward}.",
            )
    for turns, actions in ((first, ones), (other, others)):
        paid = np.array([turn.reward for turn in turns], dtype=float)  # NaN where there is none
        _rule(
            np.array_equal(environment.rewards(design, actions), paid, equal_nan=True),
            "`rewards` of a whole session are those that `step` pays.",
        )
    _check_many(environment, seed, ones)
    _check_ends(environment, design)
    _check_words(environment, design, first, seed)
    rebuilt = type(environment)(**environment.settings)
    _rule(rebuilt.settings == environment.settings, "The settings rebuild the environment.")
    rebuilt.reset(seed=seed)
    _rule(_same(design, rebuilt.design), "A rebuilt environment draws the same sessions.")


def _live(environment: Environment, design: Design, actions: Sequence[int | None]) -> list[Turn]:
    observation, _ = environment.reset(options={"design": design})
    turns: list[Turn] = []
    for t, action in enumerate(actions):
        _rule(observation["trial"] == t, "Trials are numbered from 0.")
        _rule(
            all(
                low <= observation[name] <= high for name, (low, high) in environment.bounds.items()
            )
            and observation.keys() == {"trial", *environment.bounds},
            f"An observation is the trial and the fields of `bounds`; got {observation}.",
        )
        following, reward, terminated, truncated, info = environment.step(action)
        missing = action is None
        _rule(missing == bool(info.get("missing", False)), "A missing action is marked in info.")
        _rule(
            (reward is None) == (missing or not environment.feedback),
            "A given action has a reward and a missing one has none; without feedback, none has.",
        )
        over = t == len(actions) - 1
        _rule((terminated or truncated) == over, "The session ends after n_trials trials.")
        text = "?" if action is None else environment.say(action, observation)
        turns.append(Turn(observation, action, reward, text))
        if not over:
            _rule(following is not None, "Before the end a step shows the next trial.")
            observation = following  # type: ignore[assignment]
    return turns


def _check_many(environment: Environment, seed: int, actions: NDArray[np.int64]) -> None:
    """Sessions that are made side by side are those that are drawn alone."""
    uniforms = session_uniforms(seed, [(0,), (1,)], environment.n_draws)
    tables = environment.tables(uniforms)
    rewards = environment.rewards(Design(tables), np.stack([actions, actions]))
    for i in range(2):
        alone = environment.draw(session_stream(seed, i))
        beside = Design({name: table[i] for name, table in tables.items()}, alone.labels)
        _rule(_same(alone, beside), "A session's tables do not depend on the sessions beside it.")
        _rule(
            np.array_equal(environment.rewards(alone, actions), rewards[i], equal_nan=True),
            "Rewards do not depend on the sessions beside.",
        )


def _check_ends(environment: Environment, design: Design) -> None:
    _live(environment, design, [None] * environment.n_trials)
    for over in (environment, type(environment)(**environment.settings)):
        try:
            over.step(0)
        except RuntimeError:
            continue
        raise AssertionError("Stepping after the end or before reset raises RuntimeError.")
    environment.reset(options={"design": design})
    for action in (-1, environment.n_actions):
        try:
            environment.step(action)
        except ValueError:
            continue
        raise AssertionError(f"An action outside the design raises ValueError; {action} did not.")


def _check_words(
    environment: Environment, design: Design, turns: Sequence[Turn], seed: int
) -> None:
    environment.reset(options={"design": design})
    other = environment.draw(session_stream(seed + 1))
    elsewhere = Design(other.table, design.labels)
    # A trial in the middle goes unanswered, so that the history has a gap to tell.
    told = list(turns)
    gap = len(told) // 2
    told[gap] = Turn(told[gap].observation, None, None, "?")
    for t in sorted({0, 1 % len(told), gap, len(told) - 1}):
        observation = told[t].observation
        prompt = environment.render(observation, told[:t])
        _rule(bool(prompt.messages), "A prompt has messages.")
        _rule(
            prompt.hash == environment.render(observation, told[:t]).hash,
            "Rendering depends on nothing but its arguments.",
        )
        environment.reset(options={"design": elsewhere})
        _rule(
            prompt.hash == environment.render(observation, told[:t]).hash,
            "A prompt says nothing of what was not seen: of the design it uses the labels alone.",
        )
        environment.reset(options={"design": design})
        for action in range(environment.n_actions):
            answer = environment.parse(environment.say(action, observation), observation)
            _rule(
                answer.outcome is Outcome.OK and answer.action == action,
                f"What `say` says, `parse` reads; action {action} came back as {answer}.",
            )
        before = told[:t] if environment.retold else []
        _rule(
            prompt.hash == environment.render(observation, before).hash,
            "A prompt that tells nothing of earlier trials does not depend on them.",
        )
        past, seen = environment.read(prompt.messages)
        _rule(seen == observation, f"`read` inverts `render`; {observation} came back as {seen}.")
        _rule(
            [(turn.action, turn.reward) for turn in past]
            == [(turn.action, turn.reward) for turn in before],
            "`read` gives back the actions and rewards of the history.",
        )
        for a, b in zip(past, before, strict=True):
            shared = {name: b.observation[name] for name in a.observation}
            _rule(dict(a.observation) == shared, "`read` gives back what was shown.")
    empty = environment.parse("", told[0].observation)
    _rule(
        empty.outcome is Outcome.EMPTY and empty.action is None,
        "An empty answer has the outcome empty and no action.",
    )
    cut = environment.parse_cut("", told[0].observation)
    _rule(
        cut.outcome is Outcome.TRUNCATED and cut.action is None,
        "An answer cut off before its first word has the outcome truncated and no action.",
    )


def _same(a: Design, b: Design) -> bool:
    return (
        a.labels == b.labels
        and a.table.keys() == b.table.keys()
        and all(np.array_equal(a.table[name], b.table[name]) for name in a.table)
    )


def _rule(kept: bool, sentence: str) -> None:
    if not kept:
        raise AssertionError(sentence)
