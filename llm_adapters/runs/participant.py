"""A session of a language model: render, ask, parse, step, until the session is over."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from knownminds.calling import Sampling
from knownminds.environments import (
    Answer,
    Design,
    Environment,
    Observation,
    Outcome,
    Prompt,
    Session,
    Trials,
    session_stream,
)
from knownminds.environments.conditions import conditions_of
from knownminds.environments.later import pandas as pd
from knownminds.llm_adapters.adapter import Adapter, Failed, Reply, refused

# Address of the study whose sessions `knownminds run`, `serve` and the tasks of Inspect have. Those
# of `knownminds simulate`, first session per subject, lie there too: with the same seed it is the
# direct path of a run with a known agent.
RUN = (0,)

Row = dict[str, Any]
Judge = Callable[[Reply], Answer]

_WHOLE = ("stop", "")  # how a whole answer ends; some servers do not say
_REFUSALS = ("refusal", "content_filter")


@dataclass(frozen=True)
class Asked:
    """What came of a question.

    Parameters
    ----------
    answer : what could be read, with the outcome "error" if nothing arrived
    reply : what it was read from, if anything arrived
    attempt : how often the question was put
    cost : nano-dollars of the answer; None if no price is known
    """

    answer: Answer
    reply: Reply | None
    attempt: int | None = 1
    cost: int | None = None


Ask = Callable[[int, Prompt, Judge], Awaitable[Asked | None]]
Open = Callable[[Environment, Design], Session]


async def live(
    environment: Environment,
    seed: int,
    address: Sequence[int],
    model: str,
    ask: Ask,
    system: str | None = None,
    opened: Open = Session,
    rows: list[Row] | None = None,
    answer_prefix: str | None = None,
) -> Session:
    """Play the session at this address, one row for each trial, as far as answers come.

    Parameters
    ----------
    model : Who answers, for the record.
    ask : Takes the number of the question, its prompt and how a reply is judged. Returns what came
        of it; None if the session is to stop there. Trials that share a reply are one question:
        what was sent, received and paid stands with the first of them.
    system : What a system message says before every prompt; None for none.
    opened : Begins the session with its design; by default all its trials come in order.
    rows : A list that the rows are put into as they come.
    answer_prefix : What each answer begins with; None for nothing.
    """
    design = environment.draw(session_stream(seed, *address))
    session = opened(environment, design)
    session.rows = session.rows if rows is None else rows
    names = json.dumps(design.labels)
    every: list[tuple[Prompt, Asked]] = []
    number = errors = 0
    for observation in session:
        shared = bool(every) and environment.replies.continues(observation)
        if shared:
            prompt, last = every[-1]
            if last.reply is not None:
                last = replace(last, answer=_judge(session, observation, "", last.reply))
            every = [(prompt, last)]
        else:
            prompt = session.render().behind(system).begun(answer_prefix)
            every = await _ask_on(session, prompt, ask, number) or []
            number += len(every)
        if not every:
            break
        prompt, last = every[-1]
        counted = [] if shared else [one for _, one in every]
        costs = [one.cost for one in counted if one.cost is not None]
        attempts = [one.attempt for _, one in every]
        session.take(last.answer.choice, last.answer.text)
        session.rows[-1].update(
            {
                "outcome": last.answer.outcome.value,
                "raw_text": last.answer.text,
                "note": last.answer.note,
                "labels": names,
                "attempt": None if None in attempts else sum(filter(None, attempts)),
                "errors_before": errors,
                "input_tokens": _tokens(counted, "input_tokens") if last.reply else None,
                "output_tokens": _tokens(counted, "output_tokens") if last.reply else None,
                "money": sum(costs) if costs else None,
                "prompt_hash": prompt.hash,
                "model": model,
                "model_served": last.reply.model_served if last.reply else None,
                "subject": model,
                "session": str(address[-1]) if address else "0",
            }
        )
        errors += last.answer.outcome is Outcome.ERROR
    return session


async def _ask_on(
    session: Session, prompt: Prompt, ask: Ask, number: int
) -> list[tuple[Prompt, Asked]] | None:
    """Ask until the answer to a trial is whole; return each question and what came of it."""
    every: list[tuple[Prompt, Asked]] = []
    before = ""
    more: Prompt | None = prompt
    while more is not None:
        judge = partial(_judge, session, session.seen, before)
        asked = await ask(number + len(every), more, judge)
        if asked is None:
            return None
        if asked.reply is None and before:  # what was said before is on record all the same
            asked = replace(asked, answer=replace(asked.answer, text=before))
        every.append((more, asked))
        before = asked.answer.text
        more = session.environment.replies.further(more, asked.answer)
    return every


def _tokens(every: Sequence[Asked], kind: str) -> int | None:
    """Add up the tokens of all replies; None if there are none or some are not known."""
    used = [getattr(one.reply.usage, kind) for one in every if one.reply is not None]
    return None if not used or None in used else sum(used)


def conditions(environment: Environment, settings: Sampling | None) -> dict[str, Any]:
    """Return the columns that stand beside every trial: conditions of experiment and sampling.

    "temperature" and "effort" (of reasoning) are empty where they are the provider's. There
    are "verbosity", "system" (the message before every prompt), "answer_prefix" and "changed_by" (a
    control) only where they were set.
    """
    sampling = settings or Sampling()
    of_sampling = {"temperature": sampling.temperature, "effort": sampling.reasoning_effort}
    columns = conditions_of(environment) | {
        k: np.nan if v is None else v for k, v in of_sampling.items()
    }
    if environment.changed_by:
        columns["changed_by"] = environment.changed_by
    if sampling.verbosity is not None:
        columns["verbosity"] = sampling.verbosity
    for name in ("system", "answer_prefix"):
        if getattr(sampling, name) is not None:
            columns[name] = getattr(sampling, name)
    return columns


def record(
    rows: Sequence[Row], environment: Environment, settings: Sampling | None = None
) -> Trials:
    """Make trials of the rows of any number of sessions, each with its conditions."""
    frame = pd.DataFrame(rows).assign(**conditions(environment, settings))
    if "action" in frame:
        frame["action"] = frame["action"].astype("Int64")
    # A model is served as one only, so the trials without a reply are that one's, too.
    served = frame.groupby("model", sort=False)["model_served"].first()
    frame["model_served"] = frame["model"].map(served)
    if not frame["errors_before"].any():
        frame = frame.drop(columns="errors_before")
    if frame["money"].isna().all():
        frame = frame.drop(columns="money")
    else:
        frame["money"] = frame["money"].astype("float64") / 1e9
    return Trials.from_frame(frame, environment=environment)


def session_settings(settings: Sampling, session: int, seeded: bool) -> Sampling:
    """Return the settings of a session, whose number is the sampling seed if it is `seeded`."""
    if settings.seed is not None:
        raise ValueError(
            "The sampling seed of a session is the last part of its address; got "
            f"seed={settings.seed} in the settings. Leave it out."
        )
    # What the system says, and what the answer begins with, stand in the prompt.
    plain = replace(settings, system=None, answer_prefix=None)
    return replace(plain, seed=session if seeded else None)


def check_prefix(adapter: Adapter, environment: Environment, settings: Sampling) -> None:
    """Raise `Failed` if an answer prefix is set, and answers cannot begin with it."""
    if settings.answer_prefix is None:
        return
    if "answer_prefix" not in adapter.heeds:
        raise refused(
            f"{adapter.model} is to go on from an answer prefix, which a local model can; its "
            "adapter cannot. Leave answer_prefix out."
        )
    thoughts = conditions_of(environment).get("reasoning", "none")
    if thoughts not in ("none", "numeric") or getattr(environment, "form", "") == "continuation":
        raise refused(
            f"An answer prefix begins an answer that is said at once; {environment.name} asks "
            f"for {thoughts if thoughts != 'none' else 'a continuation'} here. Leave it out."
        )


def settings_of(configuration: Mapping[str, Any], session: int) -> Sampling:
    """Return the settings of a session of the run with this configuration."""
    sampling = Sampling(**configuration["sampling"])
    return session_settings(sampling, session, configuration["session_seed"])


def check_served(model: str, before: str, now: str) -> None:
    """Raise `Failed` if another model answers than before."""
    if now != before:
        message = (
            f"{model} was served as {before!r} and then as {now!r}. These are two participants; "
            "start the run again."
        )
        raise Failed(message, "stop", "changed", charged=True)


def _judge(session: Session, seen: Observation, before: str, reply: Reply) -> Answer:
    """Read a reply to a trial that the session may have passed: some are asked together."""
    replies = session.environment.replies
    text = replies.joined(before, reply.text) if before else reply.text
    if reply.finish_reason == "length":
        return replies.cut(text, seen)
    if reply.finish_reason in _REFUSALS:
        return Answer(Outcome.REFUSED, text=text, note=reply.finish_reason)
    if reply.finish_reason not in _WHOLE:
        note = f"not whole: it ended with the word {reply.finish_reason!r}"
        return Answer(Outcome.TRUNCATED, text=text, note=note)
    return session.environment.parse(session.design.labels, text, seen)
