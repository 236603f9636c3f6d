"""A session of a language model: render, ask, parse, step, until the session is over."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

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
from knownminds.llm_adapters.adapter import (
    Adapter,
    Failed,
    Reply,
    Sampling,
)

# Address of the study whose sessions `knownminds run`, `serve` and the tasks of Inspect live. Those
# of `knownminds simulate`, first session per subject, lie there too: with the same seed it is the
# direct path of a run with a known agent.
RUN = (0,)

Row = dict[str, Any]
Judge = Callable[[Reply], Answer]

_REFUSALS = ("refusal", "content_filter")


@dataclass(frozen=True)
class Asked:
    """What came of a question.

    Parameters
    ----------
    answer : what could be read, with the outcome "error" if nothing arrived
    reply : what it was read from, if anything arrived
    attempt : how often it was asked
    cost : nano-dollars of the answer; None if no price is known
    again : whether the reply answered an earlier trial too, with which it was counted
    """

    answer: Answer
    reply: Reply | None
    attempt: int
    cost: int | None = None
    again: bool = False

    @property
    def input_tokens(self) -> int | None:
        """Tokens sent; none for a reply that was counted with an earlier trial."""
        return self.reply.usage.input_tokens if self.reply and not self.again else None

    @property
    def output_tokens(self) -> int | None:
        """Tokens received; none for a reply that was counted with an earlier trial."""
        return self.reply.usage.output_tokens if self.reply and not self.again else None


@dataclass(frozen=True)
class LivedSession:
    """What was played of a session.

    Parameters
    ----------
    rows : its trials
    over : whether it came to its end
    questions : how many were asked on each trial; none where it shares the reply before
    """

    rows: list[Row]
    over: bool
    questions: list[int] = field(default_factory=list)


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
) -> LivedSession:
    """Live the session at this address and return its trials, one row each.

    Parameters
    ----------
    model
        Who is asked, for the record.
    ask
        Given the number of the question, its prompt and how a reply is judged, returns what came
        of it; None if the session is to stop there. Trials that share a reply are one question:
        what was sent, received and paid stands with the first of them.
    system
        What a system message says before every prompt; None for none.
    opened
        Begins the session with its design; by default all its trials come in order.
    """

    async def behind(number: int, prompt: Prompt, judge: Judge) -> Asked | None:
        return await ask(number, prompt.behind(system), judge)

    design = environment.draw(session_stream(seed, *address))
    session = opened(environment, design)
    environment = session.environment
    names = json.dumps(design.labels)
    subject = str(address[-1]) if address else "0"
    errors = 0
    every: list[tuple[Prompt, Asked]] | None = []
    questions: list[int] = []
    for observation in session:
        if every and environment.replies.continues(observation):
            prompt, outcome = every[-1]
            every, n = [(prompt, _again(outcome, environment, observation))], 0
        else:
            prompt = environment.render(observation, session.turns)
            every = await _ask_on(environment, observation, prompt, behind, sum(questions))
            n = len(every or ())
        if every is None:
            break
        questions.append(n)
        prompt, last = every[-1]
        answer, reply = last.answer, last.reply
        costs = [outcome.cost for _, outcome in every if outcome.cost is not None]
        session.take(answer.choice, answer.text)
        session.rows[-1].update(
            {
                "outcome": answer.outcome.value,
                "raw_text": answer.text,
                "note": answer.note,
                "labels": names,
                "attempt": sum(outcome.attempt for _, outcome in every),
                "errors_before": errors,
                "input_tokens": _tokens(every, "input_tokens") if reply else None,
                "output_tokens": _tokens(every, "output_tokens") if reply else None,
                "money": sum(costs) if costs else None,
                "prompt_hash": prompt.behind(system).hash,
                "model": model,
                "model_served": reply.model_served if reply else None,
                "subject": subject,
            }
        )
        errors += answer.outcome is Outcome.ERROR
    return LivedSession(session.rows, session.over, questions)


async def _ask_on(
    environment: Environment, observation: Observation, prompt: Prompt, ask: Ask, number: int
) -> list[tuple[Prompt, Asked]] | None:
    """Ask until the answer to a trial is whole; return each question and what came of it."""
    every: list[tuple[Prompt, Asked]] = []
    before = ""
    more: Prompt | None = prompt
    while more is not None:
        judge = partial(_judge, environment, observation, before)
        outcome = await ask(number + len(every), more, judge)
        if outcome is None:
            return None
        if outcome.reply is None and before:  # what was said before is on record all the same
            outcome = replace(outcome, answer=replace(outcome.answer, text=before))
        every.append((more, outcome))
        before = outcome.answer.text
        more = environment.replies.further(more, outcome.answer)
    return every


def _tokens(every: Sequence[tuple[Prompt, Asked]], kind: str) -> int | None:
    """Add up the tokens of all replies; None if some are not known."""
    used = [getattr(outcome, kind) for _, outcome in every if outcome.reply is not None]
    return None if any(n is None for n in used) else sum(used)


def conditions(environment: Environment, settings: Sampling | None) -> dict[str, Any]:
    """Return the columns that stand beside every trial: conditions of experiment and sampling.

    "temperature" and "effort" (of reasoning) are empty where they are the provider's own. There
    are "verbosity" and "system" (the message before every prompt) only where they were set.
    """
    sampling = settings or Sampling()
    of_sampling = {"temperature": sampling.temperature, "effort": sampling.reasoning}
    columns = conditions_of(environment) | {
        k: np.nan if v is None else v for k, v in of_sampling.items()
    }
    if sampling.verbosity is not None:
        columns["verbosity"] = sampling.verbosity
    if sampling.system is not None:
        columns["system"] = sampling.system
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


def session_settings(adapter: Adapter, settings: Sampling, session: int) -> Sampling:
    """Return the settings of one session, whose number is the sampling seed where there is one."""
    if settings.seed is not None:
        raise ValueError(
            "The sampling seed of a session is the last part of its address; got "
            f"seed={settings.seed} in the settings. Leave it out."
        )
    sampling = replace(settings, system=None)  # which stands in the prompt
    return replace(sampling, seed=session) if "seed" in adapter.heeds else sampling


def check_served(model: str, before: str, now: str) -> None:
    """Raise `Failed` if another model answers than before."""
    if now != before:
        message = (
            f"{model} was served as {before!r} and then as {now!r}. These are two participants; "
            "start the run again."
        )
        raise Failed(message, "stop", "changed", charged=True)


def _again(outcome: Asked, environment: Environment, observation: Observation) -> Asked:
    """Return what the reply to the trial before says on this one, which was asked with it."""
    reply = outcome.reply
    answer = outcome.answer if reply is None else _judge(environment, observation, "", reply)
    return replace(outcome, answer=answer, cost=None, again=True)


def _judge(environment: Environment, observation: Observation, before: str, reply: Reply) -> Answer:
    text = environment.replies.joined(before, reply.text) if before else reply.text
    if reply.finish_reason == "length":
        return environment.replies.cut(text, observation)
    if reply.finish_reason in _REFUSALS:
        return Answer(Outcome.REFUSED, text=text, note=reply.finish_reason)
    return environment.parse(text, observation)
