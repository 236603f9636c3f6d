"""Every environment as a task of Inspect's, and the trial record out of its logs.

``inspect eval knownminds/instrumental_learning --model ...`` evaluates one; its arguments
(``-T NAME=VALUE``) are those of `TASKS` and the environment's settings. Inspect asks, repeats and
keeps the log; what a session is and how it is recorded is that of every other run.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any, get_args
from zipfile import BadZipFile

import numpy as np

from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    Environment,
    Outcome,
    Prompt,
    Trials,
    make,
    session_stream,
)
from knownminds.llm_adapters.adapter import Effort, Reply, Sampling, Usage
from knownminds.llm_adapters.providers.openai import in_base64

from .participant import RUN, Asked, Judge, LivedSession, Row, check_served, live, record
from .runner import without_waiting

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
        GenerateConfig,
        get_model,
    )
    from inspect_ai.scorer import Score, mean, scorer, stderr
    from inspect_ai.solver import solver
    from inspect_ai.util import span
except ImportError:
    raise ImportError(
        'Inspect\'s tasks and logs need the inspect-ai package: pip install "knownminds[inspect]"'
    ) from None

REPLIES = "replies"  # where a sample's store has what came for each trial
_NOT_TAKEN = ("content_filter", "model_length")
_REASONS = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}
_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


def session_task(
    environment: Environment,
    sessions: int = 20,
    seed: int = 0,
    session_seed: bool = True,
    *,
    address: Sequence[int] = (),
) -> Any:
    """Make a task of the sessions of an environment; session i has the address (*address, i).

    Each sample is one session, lived from its first trial to its last.

    Parameters
    ----------
    environment
        One of the library's, since a log can name no other.
    sessions
        How many there are.
    seed
        Of the study whose sessions are played, as for `run_sessions`.
    session_seed
        Whether the session's number is sent as the sampling seed. Inspect drops a seed, with a
        warning, where the provider has none.

    Raises
    ------
    ValueError
        If there is no session, or the environment is none of the library's.
    """
    if sessions < 1:
        raise ValueError(f"A task has at least 1 session; got {sessions}.")
    if ENVIRONMENTS.get(environment.name) is not type(environment):
        raise ValueError(
            "A task is made of an environment that is listed in ENVIRONMENTS; got "
            f"{environment!r}. List it there."
        )
    place = {"environment": environment.name, "settings": environment.settings, "seed": seed}
    samples = []
    for i in range(sessions):
        design = environment.draw(session_stream(seed, *address, i))
        shown, _ = environment.reset(options={"design": design})
        samples.append(
            Sample(
                id=i,
                input=chat_messages(environment.render(shown, [])),
                metadata={**place, "address": [*address, i], "session_seed": session_seed},
            )
        )
    return Task(dataset=samples, solver=session(), scorer=outcomes())


def read_inspect_log(
    path: str | os.PathLike[str], environment: Environment | None = None
) -> Trials:
    """Read the trials of an evaluation from Inspect's log of it.

    They are those that a run of ours would have recorded. Sessions that were stopped have the
    trials that they came to; an epoch is a session of the same subject. `attempt` counts what
    Inspect sent for the answer and is missing if the log does not tell.

    Parameters
    ----------
    environment
        The experiment with its settings; None for what the log says.

    Raises
    ------
    ValueError
        If the file is no log of such a task, holds no trial, or is of another wording.
    Failed
        If not all answers are of the same model.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"A log of Inspect's is read from a file; there is none at {file}.")
    try:
        log = read_eval_log(str(file), resolve_attachments=True)
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ValueError(
            f"{file.name} is no log of Inspect's, or is damaged ({type(error).__name__})."
        ) from None
    samples = [s for s in log.samples or [] if "address" in s.metadata and REPLIES in s.store]
    rows: list[Row] = []
    found, served = environment, ""
    for sample in sorted(samples, key=lambda sample: (sample.metadata["address"], sample.epoch)):
        place = sample.metadata
        if environment is None:
            found = make(place["environment"], **place["settings"])
        assert found is not None
        replies = sample.store[REPLIES]
        again = without_waiting(_lived_again(found, place, log.eval.model, replies))
        lived = again.rows
        attempts = _attempts(sample.events, again.questions)
        for row, attempt in zip(lived, attempts, strict=True):
            row |= {"session": str(sample.epoch - 1), "attempt": attempt}
            if row["model_served"] is not None:
                served = served or row["model_served"]
                check_served(log.eval.model, served, row["model_served"])
        rows += lived
    if found is None or not rows:
        raise ValueError(
            f"{file.name} holds no trials of an environment: its task is {log.eval.task}, and "
            f"{len(samples)} of its samples are sessions. Use the log of a task of knownminds."
        )
    return record(rows, found, _sampled(log.plan.config))


def chat_messages(prompt: Prompt) -> list[Any]:
    """Return a prompt as messages of Inspect's."""
    messages: list[Any] = []
    for m in prompt.messages:
        shown = [
            ContentImage(image=f"data:image/png;base64,{in_base64(image)}") for image in m.images
        ]
        content = [*shown, ContentText(text=m.content)] if shown else m.content
        messages.append(_MESSAGES[m.role](content=content))
    return messages


def reply_of(output: Any) -> Reply:
    """Return an output of Inspect's as a reply; LookupError if it holds no choice."""
    choice, usage = output.choices[0], output.usage
    content = choice.message.content
    parts = [] if isinstance(content, str) else [part for part in content if part.type == "text"]
    refused = any(part.refusal for part in parts)
    reason = _REASONS.get(choice.stop_reason, choice.stop_reason)
    used = Usage()
    if usage is not None:
        cached = usage.input_tokens_cache_read
        # Inspect counts apart what was read from a cache and what was written into it.
        sent = usage.input_tokens + (cached or 0) + (usage.input_tokens_cache_write or 0)
        used = Usage(sent, usage.output_tokens, usage.reasoning_tokens, cached)
    return Reply(
        content if isinstance(content, str) else "".join(part.text for part in parts),
        "refusal" if refused else reason,
        used,
        output.model or "",
    )


def _sampled(config: Any) -> Sampling:
    """Return the conditions that Inspect was shown, as far as a run of ours has them."""
    effort = config.reasoning_effort if config.reasoning_effort in get_args(Effort) else None
    return Sampling(temperature=config.temperature, reasoning=effort)


async def _lived_again(
    environment: Environment, where: Mapping[str, Any], model: str, replies: Sequence[Any]
) -> LivedSession:
    """Live a session with the replies that were kept of it."""

    async def ask(trial: int, prompt: Prompt, judge: Judge) -> Asked | None:
        if trial == len(replies):
            return None
        kept = replies[trial]
        if kept["prompt_hash"] != prompt.hash:
            raise ValueError(
                f"The log has another question on trial {trial} of session {where['address'][-1]} "
                "than is asked now: the wording or the parsing has changed. Read it with the "
                "version and templates it was made with."
            )
        return _asked(kept, judge)

    return await live(environment, where["seed"], where["address"], model, ask)


def _asked(kept: Mapping[str, Any], judge: Judge) -> Asked:
    """Return what came of a question from what is kept of it."""
    if "error" in kept:
        return Asked(Answer(Outcome.ERROR, note=kept["error"]), None, 1)
    reply = Reply(
        text=kept["text"],
        finish_reason=kept["finish_reason"],
        usage=Usage(**kept["usage"]),
        model_served=kept["model_served"],
    )
    return Asked(judge(reply), reply, 1)


def _kept(output: Any, prompt: Prompt) -> dict[str, Any]:
    """Return what is kept of an output."""
    reply = reply_of(output)
    if output.usage is None and output.stop_reason in _NOT_TAKEN:
        # A prompt that the provider did not take; Inspect makes an answer of its complaint.
        return {"prompt_hash": prompt.hash, "error": f"{output.stop_reason}: {reply.text}"}
    return {
        "prompt_hash": prompt.hash,
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "usage": asdict(reply.usage),
        "model_served": reply.model_served,
    }


def _attempts(events: Sequence[Any], questions: Sequence[int]) -> list[int | None]:
    """Return how often Inspect has sent those of each trial; None if its events do not tell.

    `questions` are how many each trial has.
    """
    counts: list[int] = []
    sent = 0
    for event in events:
        if event.event == "model":
            sent += 1 + (event.retries or 0)
            if event.error is None:
                counts.append(sent)
                sent = 0
    # A session that was stopped within a trial has asked for more than its rows tell.
    if len(counts) < sum(questions):
        return [None] * len(questions)
    ends = np.cumsum(questions).tolist()
    # A trial that shares the reply before it has that one's.
    return [sum(counts[end - max(n, 1) : end]) for n, end in zip(questions, ends, strict=True)]


def _session() -> Any:
    """Live the session of a sample, one call of the model for each trial."""

    async def solve(state: Any, generate: Any) -> Any:
        where = state.metadata
        environment = make(where["environment"], **where["settings"])
        model = get_model()
        number = where["address"][-1] if where["session_seed"] else None
        config = GenerateConfig(seed=number)
        replies: list[dict[str, Any]] = []
        state.store.set(REPLIES, replies)
        state.messages = []

        async def ask(trial: int, prompt: Prompt, judge: Judge) -> Asked:
            messages = chat_messages(prompt)
            async with span(f"trial {trial + 1}"):
                output = await model.generate(messages, config=config, cache=False)
            kept = _kept(output, prompt)
            before = next((r["model_served"] for r in replies if "error" not in r), None)
            if before is not None and "error" not in kept:
                check_served(str(model), before, kept["model_served"])
            replies.append(kept)
            # Where the past is retold, each turn's last message holds all of it.
            state.messages += [*(messages[-1:] if trial else messages), output.message]
            state.output = output
            return _asked(kept, judge)

        await live(environment, where["seed"], where["address"], str(model), ask)
        return state

    return solve


def _outcomes() -> Any:
    """Score a session by the share of each outcome, the mean reward, and how far it came.

    A trial without a readable answer has no reward and is left out of the mean. The trials are in
    the score's metadata.
    """

    async def score(state: Any, target: Any) -> Any:
        where = state.metadata
        environment = make(where["environment"], **where["settings"])
        replies = state.store.get(REPLIES, [])
        played = await _lived_again(environment, where, str(state.model), replies)
        rows, n = played.rows, len(played.rows)
        outcomes = [row["outcome"] for row in rows]
        value = {o.value: outcomes.count(o.value) / n if n else nan for o in Outcome}
        if environment.feedback:
            rewards = [row["reward"] for row in rows if row["reward"] is not None]
            value["reward"] = sum(rewards) / len(rewards) if rewards else nan
        value["lived"] = 1.0 if played.over else n / environment.n_trials
        return Score(value=value, metadata={"trials": rows})

    return score


session: Callable[[], Any] = solver(name="session")(_session)
outcomes: Callable[[], Any] = scorer(metrics={"*": [mean(), stderr()]}, name="outcomes")(_outcomes)


def _task_of(name: str, kind: type[Environment]) -> Callable[..., Any]:
    """Register the task of one environment, whose arguments are sessions, seeds and settings.

    Its sessions are those that `knownminds run` lives with the same seed.
    """

    def build(sessions: int = 20, seed: int = 0, session_seed: bool = True, **settings: Any) -> Any:
        return session_task(kind(**settings), sessions, seed, session_seed, address=RUN)

    parameters = list(inspect.signature(build).parameters.values())[:-1]
    theirs = list(inspect.signature(kind).parameters.values())
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{kind.summary} ({kind.source})."
    build.__signature__ = inspect.Signature([*parameters, *theirs])  # type: ignore[attr-defined]
    registered: Callable[..., Any] = task(name=name)(build)
    return registered


TASKS: dict[str, Callable[..., Any]] = {
    name: _task_of(name, kind) for name, kind in ENVIRONMENTS.items()
}
