"""An adapter in the participant's chair: render, ask, parse, step, until the session is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pandas as pd

from knownminds.environments import (
    Answer,
    Environment,
    Observation,
    Outcome,
    Prompt,
    Trials,
    Turn,
    session_stream,
)

from .adapter import (
    Adapter,
    ModelChanged,
    NoReply,
    Reply,
    Sampling,
    TryAgain,
    check_capable,
)

_REFUSALS = ("refusal", "content_filter")


async def run_session(
    adapter: Adapter,
    environment: Environment,
    seed: int,
    *address: int,
    settings: Sampling | None = None,
    attempts: int = 3,
    pause: float = 0.5,
) -> Trials:
    """Let a language model live the session at this address of a study.

    It is the session of `session_stream(seed, *address)`, as for simulated agents, and the subject
    is named by the address's last part, which is also sent as the sampling seed. A trial without
    a readable answer is used up and keeps its outcome; nothing is filled in, and a malformed
    answer is not asked for again.

    Parameters
    ----------
    settings
        Sampling settings but the seed.
    attempts
        How often a call is made that fails in a way that may pass (`TryAgain`).
    pause
        Seconds before the second attempt, doubled before each further one, unless the provider
        says how long to wait.

    Raises
    ------
    Unusable
        If the whole run is in vain: no key, no such model, a setting that is not heeded, or a
        model that changed on the way. Other failures are trials with the outcome "error".
    """
    return await _live(
        adapter, environment, seed, address, settings or Sampling(), attempts, pause, {}
    )


async def run_sessions(
    adapter: Adapter | Sequence[Adapter],
    environment: Environment,
    n: int,
    seed: int,
    *,
    address: Sequence[int] = (),
    settings: Sampling | None = None,
    concurrency: int = 8,
    attempts: int = 3,
    pause: float = 0.5,
) -> Trials:
    """Let n sessions be lived, several at a time; session i has the address (*address, i).

    `adapter` is one for all sessions or one for each. If the run turns out to be in vain
    (`Unusable`) or is interrupted, the sessions under way are stopped. For the rest see
    `run_session`.
    """
    chairs = list(adapter) if isinstance(adapter, Sequence) else [adapter] * n
    if len(chairs) != n:
        raise ValueError(
            f"There is one adapter for each session or one for all; got {len(chairs)}."
        )
    if n < 1 or concurrency < 1 or attempts < 1:
        raise ValueError(
            "Sessions, concurrency and attempts are at least 1; "
            f"got {n}, {concurrency} and {attempts}."
        )
    gate, sampling = asyncio.Semaphore(concurrency), settings or Sampling()

    served: dict[str, str] = {}

    async def one(i: int) -> Trials:
        async with gate:
            place = (*address, i)
            return await _live(
                chairs[i], environment, seed, place, sampling, attempts, pause, served
            )

    tasks = [asyncio.create_task(one(i)) for i in range(n)]
    try:
        return Trials.concatenate(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _live(
    adapter: Adapter,
    environment: Environment,
    seed: int,
    address: Sequence[int],
    settings: Sampling,
    attempts: int,
    pause: float,
    served: dict[str, str],
) -> Trials:
    """Live one session; `served` remembers, for the whole run, which model stood for which."""
    sampling = _session_settings(adapter, settings, address)
    check_capable(adapter, sampling)
    environment = copy(environment)  # sessions share one environment and not its state
    design = environment.draw(session_stream(seed, *address))
    shown, _ = environment.reset(options={"design": design})
    observation: Observation | None = shown
    names = json.dumps(design.labels)
    turns: list[Turn] = []
    rows: list[dict[str, Any]] = []
    while observation is not None:
        prompt = environment.render(observation, turns)
        reply, attempt, trouble = await _ask(adapter, prompt, sampling, attempts, pause)
        if reply is None:
            answer = Answer(Outcome.ERROR, note=trouble)
        else:
            answer = _judge(environment, reply, observation)
            before = served.setdefault(adapter.model, reply.model_served)
            if reply.model_served != before:
                raise ModelChanged(
                    f"{adapter.model} was served as {before!r} and then as "
                    f"{reply.model_served!r}. These are two participants; start the run again."
                )
        following, reward, _, _, _ = environment.step(answer.action)
        rows.append(
            {
                **observation,
                "action": answer.action,
                "reward": reward,
                "outcome": answer.outcome.value,
                "raw_text": answer.text,
                "note": answer.note,
                "labels": names,
                "attempt": attempt,
                "input_tokens": reply.usage.input_tokens if reply else None,
                "output_tokens": reply.usage.output_tokens if reply else None,
                "prompt_hash": prompt.hash,
                "model": adapter.model,
                "model_served": served.get(adapter.model),
            }
        )
        turns.append(Turn(observation, answer.action, reward, answer.text))
        observation = following
    frame = pd.DataFrame(rows)
    frame["action"] = frame["action"].astype("Int64")
    frame["subject"] = str(address[-1]) if address else "0"
    return Trials.from_frame(frame, environment=environment)


def _session_settings(adapter: Adapter, settings: Sampling, address: Sequence[int]) -> Sampling:
    if settings.seed is not None:
        raise ValueError(
            "The sampling seed of a session is the last part of its address; got "
            f"seed={settings.seed} in the settings. Leave it out."
        )
    if not adapter.capabilities.seed:
        return settings
    return replace(settings, seed=address[-1] if address else 0)


async def _ask(
    adapter: Adapter, prompt: Prompt, settings: Sampling, attempts: int, pause: float
) -> tuple[Reply | None, int, str]:
    """Return the reply if there is one, the number of attempts, and what went wrong."""
    trouble = ""
    for attempt in range(1, attempts + 1):
        try:
            return await adapter.complete(prompt, settings=settings), attempt, ""
        except TryAgain as error:
            trouble = str(error)
            if attempt < attempts:
                wait = error.retry_after
                await asyncio.sleep(pause * 2 ** (attempt - 1) if wait is None else wait)
        except NoReply as error:
            return None, attempt, str(error)
    return None, attempts, trouble


def _judge(environment: Environment, reply: Reply, observation: Observation) -> Answer:
    if reply.finish_reason == "length":
        return Answer(Outcome.TRUNCATED, text=reply.text, note="cut off at the limit of tokens")
    if reply.finish_reason in _REFUSALS:
        return Answer(Outcome.REFUSED, text=reply.text, note=reply.finish_reason)
    return environment.parse(reply.text, observation)
