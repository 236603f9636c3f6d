"""Sessions that an agent plays through the real prompts, and what they let one reckon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import takewhile
from math import ceil, floor
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS, Model
from knownminds.environments import Answer, Environment, Prompt, Session, session_stream
from knownminds.environments.turn import Choice
from knownminds.llm_adapters import Reply, Sampling, Synthetic
from knownminds.llm_adapters.runs.participant import RUN, Asked, Judge, live
from knownminds.llm_adapters.runs.prices import (
    MOST_PER_100_BYTES,
    Dollars,
    Price,
    Range,
    tokens_of,
    tokens_of_answer,
    tokens_of_text,
)
from knownminds.llm_adapters.runs.runner import without_waiting
from knownminds.validation.engine.usual_models import usual_model

from .questions import IMAGE_TOKENS

LEVEL = 0.95  # of the interval for the total of all sessions

NONE, PICTURE = Range(0, 0), Range(*IMAGE_TOKENS)
# Stands for reasoning in the answer, where it is only as long as it should be.
_THOUGHT = b"so it goes on "


# What a dry run counts of each call, in bytes of UTF-8 but for messages and images.
COUNTS = ("prompt_bytes", "repeated_bytes", "messages", "answer_bytes", "images", "repeated_images")


@dataclass(frozen=True)
class DesignUsage:
    """What all sessions together send and get back, whoever answers.

    Parameters
    ----------
    calls : prompts, if none has to be sent again
    input_bytes : of all prompts; a range only where sessions differ in length
    cacheable : share of the input bytes that the previous prompt of the session began with
    input_tokens, output_tokens : see `budget`
    bytes_per_session, bytes_error : mean of the dry runs and its standard error, None from one
    """

    calls: int
    input_bytes: Range
    cacheable: float
    input_tokens: Range
    output_tokens: Range
    bytes_per_session: float
    bytes_error: float | None


def dry_run(
    agent: Model,
    environment: Environment,
    seed: int,
    *address: int,
    thoughts: int = 0,
    system: str | None = None,
) -> pd.DataFrame:
    """Let an agent play the session at this address in words, and count the bytes.

    It is a run with a known agent, at the session of ``play(agent, environment, seed, *address)``.

    Parameters
    ----------
    thoughts : Bytes of filler put before each answer, for prompts that ask to think first.
    system : What a system message says before every prompt; None for none.

    Returns
    -------
    One row for each call, with the columns `COUNTS`; what is repeated, the previous prompt began
    with too.
    """
    *study, number = address
    speaker, settings = Synthetic(agent, environment, seed, *study), Sampling(seed=number)
    aloud = _think(thoughts)
    prompts: list[Prompt] = []
    counts: list[tuple[int, ...]] = []

    async def ask(turn: int, prompt: Prompt, judge: Judge) -> Asked:
        reply = Reply(aloud + speaker.answer(prompt, settings).text)
        sent = sum(len(message.content.encode()) for message in prompt.messages)
        same, same_images = repeated(prompts[-1], prompt) if prompts else (0, 0)
        said, images = len(reply.text.encode()), len(prompt.images)
        counts.append((sent, same, len(prompt.messages), said, images, same_images))
        prompts.append(prompt)
        return Asked(judge(reply), reply)

    without_waiting(live(environment, seed, address, agent.name, ask, system))
    return pd.DataFrame(counts, columns=COUNTS)


def prompt_text(prompt: Prompt, pictures: Sequence[str] = ()) -> str:
    """Return a prompt as it is read: who says what, with the names of pictures that were kept."""
    names = iter(pictures)
    return "\n\n".join(
        "\n".join(
            [f"{said.role}:", *(f"({next(names, 'a picture')})" for _ in said.images), said.content]
        )
        for said in prompt.messages
    )


def first_prompts(environment: Environment, n: int, seed: int, system: str | None) -> list[Prompt]:
    """Return the first n prompts of a run's first session, as a known agent comes to them.

    The first is the very one that a run with this seed sends; later ones may tell of the agent's
    answers. A session may have fewer.

    Parameters
    ----------
    system : What a system message says before every prompt; None for none.
    """
    agent = AGENTS[usual_model(environment)]
    return [prompt for prompt, _ in exchanges(environment, agent, n, seed, system)]


def exchanges(
    environment: Environment, agent: type[Model], n: int, seed: int, system: str | None = None
) -> list[tuple[Prompt, Answer]]:
    """Return the first n prompts of a run's first session, and what an agent answers to each.

    The agent has the parameters at the centre of its priors.
    """
    parameters = agent.parameters
    player = agent.from_theta(parameters.constrain(parameters.mean), actions=environment.n_actions)
    speaker = Synthetic(player, environment, seed, *RUN)
    found: list[tuple[Prompt, Answer]] = []

    async def ask(turn: int, prompt: Prompt, judge: Judge) -> Asked | None:
        if len(found) == n:
            return None
        reply = Reply(speaker.answer(prompt, Sampling(seed=0)).text)
        answer = judge(reply)
        found.append((prompt, answer))
        return Asked(answer, reply)

    without_waiting(live(environment, seed, (*RUN, 0), agent.name, ask, system))
    return found


def repeated(before: Prompt, now: Prompt) -> tuple[int, int]:
    """Count bytes and images with which a prompt begins as the one before: a cache serves them."""
    same, images = 0, 0
    for old, new in zip(before.messages, now.messages, strict=False):
        if old.role != new.role:
            break
        pairs = zip(old.images, new.images, strict=False)
        alike = list(takewhile(lambda pair: pair[0] == pair[1], pairs))
        images += len(alike)
        if not len(alike) == len(old.images) == len(new.images):
            break  # images come before the words of their message
        if old.content == new.content:
            same += len(new.content.encode())
            continue
        a = np.frombuffer(old.content.encode(), dtype=np.uint8)
        b = np.frombuffer(new.content.encode(), dtype=np.uint8)
        length = min(len(a), len(b))
        differ = np.flatnonzero(a[:length] != b[:length])
        same += int(differ[0]) if len(differ) else length
        break
    return same, images


@dataclass(frozen=True)
class DryRuns:
    """The dry runs of one design: answers as the environment says them, and with thoughts.

    Parameters
    ----------
    plain, aloud : Rows of `dry_run`, with the number of the run as "run"; the latter with thoughts
        before the answers, where they fit.
    reasoning, looking : Tokens of hidden reasoning before an answer, and of a picture.
    thoughts_fit : Whether an answer may hold thoughts.
    """

    plain: pd.DataFrame
    aloud: pd.DataFrame
    reasoning: Range
    looking: Range
    thoughts_fit: bool

    def calls(self, high: bool) -> pd.DataFrame:
        """Return tokens of each call at one end of the range: run, sent, kept (cached) and said."""
        end, rows = ("high", self.aloud) if high else ("low", self.plain)
        each = getattr(self.looking, end)
        pairs: Any = zip(rows.itertuples(), self.plain["answer_bytes"], strict=True)
        tokens = [
            (
                call.run,
                getattr(tokens_of(call.prompt_bytes, call.messages), end) + each * call.images,
                getattr(tokens_of_text(call.repeated_bytes), end) + each * call.repeated_images,
                getattr(tokens_of_answer(answer), end),
            )
            for call, answer in pairs
        ]
        return pd.DataFrame(tokens, columns=["run", "sent", "kept", "said"])

    def usage(self, n: int) -> DesignUsage:
        """Everything but the money of n sessions."""
        runs = self.plain.groupby("run")
        sent, calls = runs["prompt_bytes"].sum().tolist(), runs.size()
        low, high = (self.calls(end).groupby("run").sum() for end in (False, True))
        said = [
            (ends["said"] + calls * thinking).tolist()
            for ends, thinking in ((low, self.reasoning.low), (high, self.reasoning.high))
        ]
        return DesignUsage(
            calls=ceil(n * mean(calls.tolist())),
            input_bytes=_whole(sent, sent, n),
            cacheable=int(self.plain["repeated_bytes"].sum()) / sum(sent),
            input_tokens=_whole(low["sent"].tolist(), high["sent"].tolist(), n),
            output_tokens=_whole(said[0], said[1], n),
            bytes_per_session=sum(sent) / len(sent),
            bytes_error=stdev(sent) / len(sent) ** 0.5 if len(sent) > 1 else None,
        )

    def dollars(self, price: Price, n: int, cached: bool = False) -> Dollars:
        """What n sessions cost; each call is priced by its length."""
        low, high = _total(self._bills(price, False, cached), self._bills(price, True, cached), n)
        return Dollars(_rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING))

    def affordable(self, price: Price, dollars: Decimal) -> int:
        """Return how many sessions cost at most so much, at the upper end."""
        lows, highs = self._bills(price, False, False), self._bills(price, True, False)

        def cost(n: int) -> Decimal:
            return _rounded(_total(lows, highs, n)[1], ROUND_CEILING)

        if not any(highs):
            raise ValueError(f"Nothing is charged for {price.llm}: give a budget in trials.")
        above = 1
        while cost(above) <= dollars:
            above *= 2
        below = above // 2
        while above - below > 1:
            middle = (above + below) // 2
            below, above = (middle, above) if cost(middle) <= dollars else (below, middle)
        return below

    def _bills(self, price: Price, high: bool, cached: bool) -> list[Decimal]:
        """Exact dollars of each dry run, at one end of the range."""
        thinking = self.reasoning.high if high else self.reasoning.low
        bills = []
        for _, session in self.calls(high).groupby("run"):
            dollars = Decimal(0)
            later = [*session["kept"][1:], 0]
            rows = zip(session["sent"], session["kept"], session["said"], later, strict=True)
            for sent, kept, said, following in rows:
                # Only what the next prompt repeats is worth being put into the cache.
                written = min(max(following - kept, 0), sent - kept)
                cache = {"cached_tokens": kept, "written_tokens": written} if cached else {}
                dollars += price.cost(sent, said, reasoning_tokens=thinking, **cache)
            bills.append(dollars)
        return bills

    def dollars_cached(self, price: Price, n: int) -> Dollars | None:
        """The same with a cache, or None if the price of that is not known."""
        if price.cached_input is None:
            return None
        return self.dollars(price, n, cached=True)

    def warnings(self) -> tuple[str, ...]:
        """What makes the figures too low."""
        warnings = []
        if self.plain["run"].nunique() == 1:
            warnings.append(
                "One dry run cannot show how sessions differ: the ranges do not hold that."
            )
        if self.thoughts_fit and self.reasoning.high == 0:
            warnings.append(
                "The prompts ask for thoughts before the answer, and the synthetic agent has next "
                "to none: say with --reasoning LOW-HIGH how many tokens they take."
            )
        return tuple(warnings)

    def notes(self) -> tuple[str, ...]:
        """What the figures leave out."""
        notes = [
            "Calls that fail and are made again are not included. Caches have a shortest length, "
            "and they expire: less than that may be saved."
        ]
        if self.plain["images"].any():
            notes.append(
                f"A picture counts {self.looking} tokens. Models differ widely; give "
                "--image-tokens for yours."
            )
        if not self.plain["prompt_bytes"].equals(self.aloud["prompt_bytes"]):
            notes.append(
                "The upper end has the thoughts within the answers, which later prompts repeat."
            )
        return tuple(notes)


def dry_runs_of(
    environment: Environment,
    model: type[Model],
    n: int,
    seed: int,
    reasoning: Range = NONE,
    looking: Range = PICTURE,
    system: str | None = None,
) -> DryRuns:
    """Play n sessions with parameters from the priors; with thoughts too, where they fit."""
    # As many bytes as make, at the upper rate, the most tokens of reasoning.
    thoughts = reasoning.high * 100 // MOST_PER_100_BYTES
    fit = _reads_thoughts(environment, seed)
    plain: list[pd.DataFrame] = []
    aloud: list[pd.DataFrame] = []
    for i in range(n):
        theta = model.parameters.draw(session_stream(seed, i, 0), 1)[0]
        agent = model.from_theta(theta, actions=environment.n_actions)
        plain.append(dry_run(agent, environment, seed, i, system=system).assign(run=i))
        aloud.append(plain[-1])
        if fit and thoughts:
            run = dry_run(agent, environment, seed, i, thoughts=thoughts, system=system)
            aloud[-1] = run.assign(run=i)
    whole = [pd.concat(runs, ignore_index=True) for runs in (plain, aloud)]
    return DryRuns(whole[0], whole[1], reasoning, looking, fit)


def _reads_thoughts(environment: Environment, seed: int) -> bool:
    """Say whether the parser takes an answer that comes after thoughts."""
    session = Session(environment, environment.draw(session_stream(seed)))
    low = environment.response_range[0]
    choices: dict[str, Choice] = {"action": 0, "response": low, "both": (0, low)}
    choice = choices[environment.asks(session.seen)]
    rest = len(environment.replies.together(session.design, session.seen)) - 1
    said = session.say((choice, *[1.0] * rest) if rest else choice)
    return session.parse(_think(len(_THOUGHT)) + said).choice == choice


def _think(n_bytes: int) -> str:
    """Return filler of so many bytes that ends its line."""
    if n_bytes < 1:
        return ""
    return (_THOUGHT * (n_bytes // len(_THOUGHT) + 1))[: n_bytes - 1].decode() + "\n"


def _total(
    lows: Sequence[int] | Sequence[Decimal], highs: Sequence[int] | Sequence[Decimal], n: int
) -> tuple[Decimal, Decimal]:
    """Return the ends of the prediction interval for the sum of n new sessions.

    Var(sum - n mean) = s^2 (n + n^2 / d): n sessions that vary, and the error of a mean of d.
    """
    d = len(lows)
    ends = []
    for values, sign in ((lows, -1), (highs, 1)):
        exact = [Decimal(value) for value in values]
        margin = Decimal(0)
        if d > 1:
            quantile = Decimal(f"{scipy.stats.t.ppf((1 + LEVEL) / 2, d - 1):.6f}")
            margin = quantile * stdev(exact) * (n + Decimal(n * n) / d).sqrt()
        ends.append(max(Decimal(0), n * mean(exact) + sign * margin))
    return min(ends), max(ends)


def _whole(lows: Sequence[int], highs: Sequence[int], n: int) -> Range:
    low, high = _total(lows, highs, n)
    return Range(floor(low), ceil(high))


def _rounded(dollars: Decimal, direction: str) -> Decimal:
    """Round to nano-dollars, and to 15 digits, which survive being written as a JSON number."""
    short = Context(prec=15, rounding=direction).plus(dollars)
    return short.quantize(Decimal("1e-9"), direction)
