"""The contract of every experiment as one callable check, for ours and for anybody's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.words.answer import Outcome
from knownminds.environments.words.prompt import Prompt

from .design import Design, session_stream
from .environment import Choice, Environment, Given, Observation, Turn
from .streams import session_uniforms
from .world import follow_world


def check_environment(environment: Environment, seed: int = 0) -> None:
    """Raise AssertionError, with the rule that is broken, unless the environment keeps them all.

    A session is drawn up front and depends on nothing but its design and the actions; rendering
    and parsing invert each other, if it has words; the session ends when it says and starts only
    by `reset`.
    """
    rng = np.random.default_rng(seed)
    n = environment.n_trials
    ones, others = ([_any_choice(environment, rng) for _ in range(n)] for _ in range(2))

    environment.reset(seed=seed)
    design = environment.design
    first = _live(environment, design, ones)
    again = _live(environment, design, ones)
    _rule(first == again, "The same design and actions make the same session.")
    environment.reset(seed=seed)
    _rule(_same(design, environment.design), "The same seed draws the same design.")
    environment.reset(seed=seed + 1)
    _rule(not _same(design, environment.design), "Another seed draws another design.")

    other = {turn.observation["trial"]: turn for turn in _live(environment, design, others)}
    for a in first:
        b = other.get(a.observation["trial"])
        if b is None:
            continue
        drawn = [
            {k: v for k, v in turn.observation.items() if k not in environment.fields.dependent}
            for turn in (a, b)
        ]
        _rule(
            drawn[0] == drawn[1],
            "What is shown was drawn up front, but for the dependent fields.",
        )
        if a.action == b.action and a.observation == b.observation and not environment.depletes:
            _rule(
                a.reward == b.reward,
                "What an action pays on a trial was drawn up front; on trial "
                f"{a.observation['trial']} action {a.action} paid {a.reward} and then {b.reward}.",
            )
    gaps = [None if rng.random() < 0.2 else choice for choice in ones]
    for choices in (ones, others, gaps):
        _check_follows(environment, design, choices)
    _check_many(environment, seed, _actions(environment, design, ones))
    _check_ends(environment, design)
    if environment.has_words():
        _check_words(environment, design, first, seed)
    rebuilt = type(environment)(**environment.settings)
    _rule(rebuilt.settings == environment.settings, "The settings rebuild the environment.")
    rebuilt.reset(seed=seed)
    _rule(_same(design, rebuilt.design), "A rebuilt environment draws the same sessions.")


def _any_choice(
    environment: Environment, rng: np.random.Generator, given: Given | None = None
) -> Choice:
    """Give anything that a trial may be given; where trials differ, one of either."""
    action = int(rng.integers(max(environment.n_actions, 1)))
    low, high = environment.response_range
    response = round(float(rng.uniform(low, high)), 2)
    choices: dict[str, Choice] = {"action": action, "response": response}
    return choices.get(given or environment.given, (action, response))


def _asked(environment: Environment, choice: Choice, observation: Observation) -> Choice:
    """Of a choice for either, return what the trial asks for."""
    if environment.given != "either" or not isinstance(choice, tuple):
        return choice
    return choice[0] if environment.asks(observation) == "action" else choice[1]


def _actions(
    environment: Environment, design: Design, choices: Sequence[Choice]
) -> NDArray[np.int64]:
    """Return the actions among what is given, -1 where there is none."""
    if environment.given == "either":
        taken = np.array([choice[0] for choice in choices if isinstance(choice, tuple)])
        return np.where(environment.asks(design.table) == "action", taken, -1)
    split = [environment.split(choice)[0] for choice in choices]
    return np.array([-1 if action is None else action for action in split])


def _check_follows(environment: Environment, design: Design, choices: Sequence[Choice]) -> None:
    """What `follow_world` tells of a whole session is what `step` does."""
    turns = _live(environment, design, choices)
    played = np.array([int(turn.observation["trial"]) for turn in turns])
    actions = np.full(environment.n_trials, -1)
    actions[played] = [-1 if turn.action is None else turn.action for turn in turns]
    brought = follow_world(environment.world, design.table, actions)
    present = np.flatnonzero(brought.get("present", np.ones(environment.n_trials, dtype=bool)))
    _rule(np.array_equal(present, played), "`follow_world` tells which trials take place.")
    answered = np.array([turn.action is not None or turn.response is not None for turn in turns])
    paid = np.array([turn.reward for turn in turns], dtype=float)  # NaN where there is none
    followed = np.where(answered, brought["reward"][played], np.nan)
    _rule(
        np.array_equal(followed, paid, equal_nan=True),
        "`follow_world` tells the rewards that `step` pays.",
    )
    for name in environment.fields.feedback:
        got = np.array([turn.brought.get(name, np.nan) for turn in turns])
        followed = np.where(answered, brought[name][played], np.nan)
        _rule(
            np.array_equal(followed, got, equal_nan=True),
            f"`follow_world` tells {name} as `step` brings it.",
        )
    for name in [n for n in environment.fields.shown if n in environment.fields.dependent]:
        shown = [turn.observation[name] for turn in turns]
        _rule(
            np.array_equal(brought[name][played], shown),
            f"`follow_world` tells {name} as it is shown.",
        )


def _live(environment: Environment, design: Design, choices: Sequence[Choice]) -> list[Turn]:
    """Live a session; the choice of each trial stands at its number."""
    observation, _ = environment.reset(options={"design": design})
    bounds = environment.fields.bounds(environment)
    turns: list[Turn] = []
    over, before = False, -1
    while not over:
        trial = int(observation["trial"])
        _rule(before < trial < environment.n_trials, "Trials are numbered in order, from 0.")
        _rule(
            all(low <= observation[name] <= high for name, (low, high) in bounds.items())
            and observation.keys() == {"trial", *bounds},
            f"An observation is the trial and the fields that are shown; got {observation}.",
        )
        choice = _asked(environment, choices[trial], observation)
        following, reward, terminated, truncated, info = environment.step(choice)
        missing = choice is None
        _rule(missing == bool(info.get("missing", False)), "A missing answer is marked in info.")
        _rule(
            reward is None or not (missing or not environment.feedback),
            "A missing answer has no reward; without feedback, none has.",
        )
        over = terminated or truncated
        replies = environment.replies
        shared = len(replies.together(observation)) > 1 or replies.continues(observation)
        silent = missing or shared or not environment.has_words()
        text = "?" if silent else environment.say(choice, observation)
        action, response = environment.split(choice, environment.asks(observation))
        turns.append(Turn(observation, action, reward, text, response, info.get("brought", {})))
        _rule((following is None) == over, "Before the end, and only then, a step shows a trial.")
        observation, before = following or observation, trial
    return turns


def _check_many(environment: Environment, seed: int, actions: NDArray[np.int64]) -> None:
    """Sessions that are made side by side are those that are drawn alone."""
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


def _check_ends(environment: Environment, design: Design) -> None:
    _live(environment, design, [None] * environment.n_trials)
    for over in (environment, type(environment)(**environment.settings)):
        try:
            over.step(_any_choice(environment, np.random.default_rng(0), "action"))
        except RuntimeError:
            continue
        raise AssertionError("Stepping after the end or before reset raises RuntimeError.")
    observation, _ = environment.reset(options={"design": design})
    low, high = environment.response_range
    wrong: dict[str, list[Choice]] = {
        "action": [-1, environment.n_actions],
        "response": [low - 0.1, high + 0.1],
        "both": [(-1, low), (environment.n_actions, low), (0, high + 0.1), 0],
    }
    for choice in wrong[environment.asks(observation)]:
        try:
            environment.step(choice)
        except ValueError:
            continue
        raise AssertionError(f"What is outside the design raises ValueError; {choice} did not.")


def _check_words(
    environment: Environment, design: Design, turns: Sequence[Turn], seed: int
) -> None:
    environment.reset(options={"design": design})
    other = environment.draw(session_stream(seed + 1))
    elsewhere = Design(other.table, design.labels)
    # A trial in the middle goes unanswered, so that the history has a gap to tell.
    with_gap = list(turns)
    gap = len(with_gap) // 2
    with_gap[gap] = Turn(with_gap[gap].observation, None, None, "?")
    if environment.fields.dependent:
        with_gap = with_gap[: gap + 1]  # what comes after a gap is not what came after an action
    rng = np.random.default_rng(seed)
    _check_shared(environment, turns, rng)
    for t in sorted({0, 1 % len(with_gap), gap, len(with_gap) - 1}):
        while environment.replies.continues(with_gap[t].observation):
            t -= 1
        observation = with_gap[t].observation
        prompt = environment.render(observation, with_gap[:t])
        _rule(bool(prompt.messages), "A prompt has messages.")
        _rule(
            prompt.hash == environment.render(observation, with_gap[:t]).hash,
            "Rendering depends on nothing but its arguments.",
        )
        environment.reset(options={"design": elsewhere})
        _rule(
            prompt.hash == environment.render(observation, with_gap[:t]).hash,
            "A prompt says nothing of what was not seen: of the design it uses the labels alone.",
        )
        environment.reset(options={"design": design})
        choices: list[Choice] = list(range(environment.n_actions))
        given = environment.asks(observation)
        if given != "action":
            choices = [_any_choice(environment, rng, given) for _ in range(5)]
        for choice in choices if len(environment.replies.together(observation)) == 1 else []:
            answer = environment.parse(environment.say(choice, observation), observation)
            _rule(
                answer.outcome is Outcome.OK and answer.choice == choice,
                f"What `say` says, `parse` reads; {choice} came back as {answer}.",
            )
            _check_replies(environment, environment.say(choice, observation), prompt, observation)
        before = list(environment.recalled(with_gap[:t], observation))
        _rule(
            prompt.hash == environment.render(observation, before).hash,
            "A prompt that tells nothing of earlier trials does not depend on them.",
        )
        past, seen = environment.read(prompt.messages)
        _rule(seen == observation, f"`read` inverts `render`; {observation} came back as {seen}.")
        _rule(
            [(turn.action, turn.response, turn.reward, turn.brought) for turn in past]
            == [(turn.action, turn.response, turn.reward, turn.brought) for turn in before],
            "`read` gives back the actions, responses and outcomes of the history.",
        )
        for a, b in zip(past, before, strict=True):
            shared = {name: b.observation[name] for name in a.observation}
            _rule(dict(a.observation) == shared, "`read` gives back what was shown.")
    empty = environment.parse("", with_gap[0].observation)
    _rule(
        empty.outcome is Outcome.EMPTY and empty.choice is None,
        "An empty answer has the outcome empty and no action.",
    )
    cut = environment.replies.cut("", with_gap[0].observation)
    _rule(
        cut.outcome is Outcome.TRUNCATED and cut.choice is None,
        "An answer cut off before its first word has the outcome truncated and no action.",
    )


def _check_shared(
    environment: Environment, turns: Sequence[Turn], rng: np.random.Generator
) -> None:
    """Trials that share a reply share a prompt; numbers that sum to 1 are said and read in one."""
    alone = 0
    for turn in turns:
        shared = environment.replies.together(turn.observation)
        if environment.replies.continues(turn.observation):
            continue
        alone += 1
        if len(shared) == 1:
            continue
        _rule(environment.past == "none", "Trials share a reply only where nothing is retold.")
        prompt = environment.render(turn.observation, [])
        numbers = tuple(
            (rng.multinomial(100, np.full(len(shared), 1 / len(shared))) / 100).tolist()
        )
        text = environment.say(numbers, turn.observation)
        for observation, number in zip(shared, numbers, strict=True):
            _rule(
                prompt.hash == environment.render(observation, []).hash,
                "Trials that share a reply share a prompt.",
            )
            answer = environment.parse(text, observation)
            _rule(
                answer.outcome is Outcome.OK and answer.choice == number,
                f"Of a shared reply each trial reads its number; {number} came back as {answer}.",
            )
        _, seen = environment.read(prompt.messages)
        _rule(seen == turn.observation, "`read` takes a shared prompt back to its first trial.")
    _rule(alone <= environment.replies.n_prompts, "A session asks no more than `n_prompts`.")


def _check_replies(
    environment: Environment, said: str, prompt: Prompt, observation: Observation
) -> None:
    """An answer of several replies is requested until it is whole, and each prompt is read."""
    replies = environment.replies.spoken(said)
    text, question = "", prompt
    for k, reply in enumerate(replies):
        _rule(
            environment.replies.n_given(question.messages) == k
            and environment.read(question.messages)[1] == observation,
            "A question that follows a reply in the same trial tells of it, and is read.",
        )
        text = environment.replies.joined(text, reply) if k else reply
        more = environment.replies.further(question, environment.parse(text, observation))
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
