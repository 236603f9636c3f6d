"""Every environment as a task of Inspect's, and the trial record out of its logs.

``inspect eval knownminds/instrumental_learning --model ...`` evaluates one; its arguments
(``-T NAME=VALUE``) are those of `TASKS` and the environment's settings. Inspect asks, repeats and
keeps the log, which holds the trials as every other run records them.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any, get_args
from zipfile import BadZipFile

from knownminds.calling import Effort, Sampling, Verbosity
from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    Environment,
    Outcome,
    Prompt,
    Session,
    Trials,
    make,
    session_stream,
)
from knownminds.llm_adapters.adapter import Reply, Usage
from knownminds.llm_adapters.configuration import named
from knownminds.llm_adapters.providers.http import in_base64, usage_of

from .participant import RUN, Asked, Judge, Row, check_served, live, record

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

ROWS, OVER = "trials", "over"  # where a sample's store has its rows, and whether it is over
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

    Each sample is one session, played from its first trial to its last.

    Parameters
    ----------
    environment : One of the library's, since a log can name no other.
    sessions : How many there are.
    seed : Of the study whose sessions are played, as for `run_sessions`.
    session_seed : Whether the session's number is sent as the sampling seed. Inspect drops a seed,
        with a warning, where the provider has none.

    Raises
    ------
    ValueError : If there is no session, or the environment is none of the library's.
    """
    if sessions < 1:
        raise ValueError(f"A task has at least 1 session; got {sessions}.")
    if ENVIRONMENTS.get(environment.name) is not type(environment):
        raise ValueError(
            "A task is made of an environment that is listed in ENVIRONMENTS; got "
            f"{environment!r}. List it there."
        )
    where = {"environment": environment.name, "settings": environment.settings, "seed": seed}
    samples = []
    for i in range(sessions):
        design = environment.draw(session_stream(seed, *address, i))
        samples.append(
            Sample(
                id=i,
                input=chat_messages(Session(environment, design).render()),
                metadata={**where, "address": [*address, i], "session_seed": session_seed},
            )
        )
    return Task(dataset=samples, solver=session(), scorer=outcomes())


def read_inspect_log(
    path: str | os.PathLike[str], environment: Environment | None = None
) -> Trials:
    """Read the trials of an evaluation from Inspect's log of it.

    They are those that a run of ours would have recorded, but `attempt`, which is missing. A model
    that was evaluated with an effort or a verbosity bears it in its name, see `named`. Sessions
    that were stopped have the trials that they came to; an epoch is a session of the same subject.

    Parameters
    ----------
    environment : The experiment with its settings; None for what the log says.

    Raises
    ------
    ValueError : If the file is no log of such a task, or holds no trial.
    Failed : If not all answers are of the same model.
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
    samples = [s for s in log.samples or [] if "address" in s.metadata and ROWS in s.store]
    samples.sort(key=lambda sample: (sample.metadata["address"], sample.epoch))
    sampled = _sampled(log.plan.config)
    own = {"reasoning_effort": sampled.reasoning_effort, "verbosity": sampled.verbosity}
    rows: list[Row] = []
    for sample in samples:
        again = f"/{sample.epoch}" if sample.epoch > 1 else ""
        for row in sample.store[ROWS]:
            model = named(row["model"], **own)
            rows.append(row | {"model": model, "subject": model, "session": row["session"] + again})
    if not rows:
        raise ValueError(
            f"{file.name} holds no trials of an environment: its task is {log.eval.task}, and "
            f"{len(samples)} of its samples are sessions. Use the log of a task of knownminds."
        )
    served = [row["model_served"] for row in rows if row["model_served"] is not None]
    for other in served:
        check_served(log.eval.model, served[0], other)
    if environment is None:
        where = samples[-1].metadata
        environment = make(where["environment"], **where["settings"])
    return record(rows, environment, sampled)


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
        thought, total = usage.reasoning_tokens, usage.total_tokens
        used = usage_of(sent, usage.output_tokens, thought, cached, total=total)
    return Reply(
        content if isinstance(content, str) else "".join(part.text for part in parts),
        "refusal" if refused else reason,
        used,
        output.model or "",
    )


def _sampled(config: Any) -> Sampling:
    """Return the conditions that Inspect was shown, as far as a run of ours has them."""
    effort = config.reasoning_effort if config.reasoning_effort in get_args(Effort) else None
    verbosity = config.verbosity if config.verbosity in get_args(Verbosity) else None
    return Sampling(temperature=config.temperature, reasoning_effort=effort, verbosity=verbosity)


def _asked(output: Any, judge: Judge) -> Asked:
    """Return what came of a question from Inspect's output."""
    reply = reply_of(output)
    if output.usage is None and output.stop_reason in _NOT_TAKEN:
        # A prompt that the provider did not take; Inspect makes an answer of its complaint.
        note = f"{output.stop_reason}: {reply.text}"
        return Asked(Answer(Outcome.ERROR, note=note), None, None)
    return Asked(judge(reply), reply, None)


def _session() -> Any:
    """Play the session of a sample, one call of the model for each trial."""

    async def solve(state: Any, generate: Any) -> Any:
        where = state.metadata
        environment = make(where["environment"], **where["settings"])
        model = get_model()
        config = GenerateConfig(seed=where["address"][-1] if where["session_seed"] else None)
        rows: list[Row] = []
        state.store.set(ROWS, rows)
        state.messages = []
        served: list[str] = []

        async def ask(trial: int, prompt: Prompt, judge: Judge) -> Asked:
            messages = chat_messages(prompt)
            async with span(f"trial {trial + 1}"):
                output = await model.generate(messages, config=config, cache=False)
            asked = _asked(output, judge)
            if asked.reply is not None:
                served.append(asked.reply.model_served)
                check_served(str(model), served[0], served[-1])
            # Where the past is retold, each turn's last message holds all of it.
            state.messages += [*(messages[-1:] if trial else messages), output.message]
            state.output = output
            return asked

        session = await live(
            environment, where["seed"], where["address"], str(model), ask, rows=rows
        )
        state.store.set(OVER, session.over)
        return state

    return solve


def _outcomes() -> Any:
    """Score a session by the share of each outcome, the mean reward, and how far it came.

    A trial without a readable answer has no reward and is left out of the mean.
    """

    async def score(state: Any, target: Any) -> Any:
        where, rows = state.metadata, state.store.get(ROWS, [])
        environment = make(where["environment"], **where["settings"])
        counts = Counter(row["outcome"] for row in rows)
        value = {o.value: counts[o.value] / len(rows) if rows else nan for o in Outcome}
        if environment.feedback:
            rewards = [row["reward"] for row in rows if row["reward"] is not None]
            value["reward"] = sum(rewards) / len(rewards) if rewards else nan
        over = state.store.get(OVER, False)
        value["lived"] = 1.0 if over else len(rows) / environment.n_trials
        return Score(value=value)

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
