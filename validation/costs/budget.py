"""What a study with language models will cost, from a dry run through the real prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from datetime import date as Date  # noqa: N812 - fields and arguments are called date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import takewhile
from math import ceil, floor, inf
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t

from knownminds.agents import Agent
from knownminds.agents.play import Player
from knownminds.environments import Environment, Prompt, Session, session_stream, unknown
from knownminds.environments.environment import Choice
from knownminds.environments.record.folders import writable, write_text
from knownminds.llm_adapters.runs.prices import (
    MOST_PER_100_BYTES,
    Dollars,
    Overrides,
    Price,
    Range,
    Rates,
    price_of,
    tokens_of,
    tokens_of_answer,
    tokens_of_text,
)
from knownminds.validation.engine.arguments import resolve_environment, resolve_model
from knownminds.validation.power.power_study import Power
from knownminds.validation.power.smallest_design import SmallestDesign

FILE = "budget.json"
FORMAT = 2
# A picture of 512 x 512 counts 85 tokens with OpenAI's models at low detail, 255 with gpt-4o, 258
# with Google's, 350 with Anthropic's, and 8,500 with gpt-4o-mini.
IMAGE_TOKENS = (85, 8500)
LEVEL = 0.95  # of the interval for the total of all sessions

# Stands for reasoning in the answer, where it is only as long as it should be.
_THOUGHT = b"so it goes on "


@dataclass(frozen=True)
class DryRun:
    """What one session sends and gets back, trial by trial, in exact bytes of UTF-8.

    Parameters
    ----------
    prompt_bytes : all messages of the trial's prompt, [calls]
    repeated_bytes : how many of them, from the start, the previous prompt had too, [calls]
    messages : messages of the prompt, [calls]
    answer_bytes : the answer, [calls]
    images, repeated_images : pictures in the prompt, and in its repeated beginning, [calls]
    """

    prompt_bytes: NDArray[np.int64]
    repeated_bytes: NDArray[np.int64]
    messages: NDArray[np.int64]
    answer_bytes: NDArray[np.int64]
    images: NDArray[np.int64]
    repeated_images: NDArray[np.int64]


@dataclass(frozen=True)
class TrialSize:
    """Bytes of one call, `trial` from 0, over the dry runs: mean, lowest and highest."""

    trial: int
    prompt_bytes: float
    prompt_bytes_low: int
    prompt_bytes_high: int
    repeated_bytes: float
    answer_bytes: float
    answer_bytes_low: int
    answer_bytes_high: int


@dataclass(frozen=True)
class Usage:
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


@dataclass(frozen=True)
class Cost:
    """What one language model charges for the whole design.

    Parameters
    ----------
    dollars : without any cache
    dollars_cached : if each repeated beginning is read from the provider's cache, and nothing
        else put into it, which is the most that a cache can save; None where that price is unknown
    """

    price: Price
    dollars: Dollars
    dollars_cached: Dollars | None


@dataclass(frozen=True)
class DesignPower:
    """A design and the power that a study found for it.

    Parameters
    ----------
    subjects, sessions, trials : subjects, sessions of each, trials of each session
    power, power_error : share of the replicates that found the effect, its Monte-Carlo error
    """

    subjects: int
    sessions: int
    trials: int
    power: float
    power_error: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("subjects", "sessions", "trials"):
            _check_count(name, getattr(self, name))
        if not 0 <= self.power <= 1:
            raise ValueError(f"The power of a design goes from 0 to 1; got {self.power!r}.")
        if not 0 <= self.power_error < inf:
            raise ValueError(
                f"The Monte-Carlo error of a power is a number from 0 on; got {self.power_error!r}."
            )


@dataclass(frozen=True)
class PricedDesign:
    """What a design costs with one language model, and whether a better bargain was offered.

    Parameters
    ----------
    on_frontier : no other design has at least this power for less, or more power for as much
    """

    llm: str
    design: DesignPower
    calls: int
    dollars: Dollars
    on_frontier: bool

    @property
    def power_per_dollar(self) -> float:
        """Power by the upper end of the cost; infinite where nothing is charged."""
        return self.design.power / float(self.dollars.high) if self.dollars.high else inf


@dataclass(frozen=True)
class Budget:
    """Calls, tokens and money of a design, and the dated prices that they were reckoned with.

    Parameters
    ----------
    environment, settings : the experiment; `make(environment, **settings)` rebuilds it
    model, dry_runs, seed : the synthetic agent that went through the prompts, how often
    subjects, sessions, trials : subjects, sessions of each, trials of each session
    reasoning_tokens, image_tokens : lowest and highest number for one answer and one picture
    sizes : bytes, trial by trial
    usage : bytes and tokens of the whole design
    costs : money, one entry for each language model
    designs : one entry for each design and language model, if designs were given
    notes : what the figures leave out
    """

    environment: str
    settings: Mapping[str, Any]
    model: str
    dry_runs: int
    seed: int
    subjects: int
    sessions: int
    trials: int
    reasoning_tokens: Range
    image_tokens: Range
    date: Date
    sizes: tuple[TrialSize, ...]
    usage: Usage
    costs: tuple[Cost, ...]
    designs: tuple[PricedDesign, ...]
    notes: tuple[str, ...]

    @property
    def ends_early(self) -> bool:
        """Whether sessions of the dry runs had fewer than all trials."""
        return self.usage.calls != self.subjects * self.sessions * self.trials

    def __getitem__(self, llm: str) -> Cost:
        """Return the cost with this language model."""
        for cost in self.costs:
            if cost.price.llm == llm:
                return cost
        raise ValueError(
            unknown("language model", llm, [c.price.llm for c in self.costs], " in this budget")
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per language model: calls, bytes, tokens, money and the price behind it."""
        usage = self.usage
        rows = []
        for cost in self.costs:
            cached = cost.dollars_cached
            rows.append(
                {
                    "llm": cost.price.llm,
                    "calls": usage.calls,
                    "input_bytes_low": usage.input_bytes.low,
                    "input_bytes_high": usage.input_bytes.high,
                    "cacheable": usage.cacheable,
                    "input_tokens_low": usage.input_tokens.low,
                    "input_tokens_high": usage.input_tokens.high,
                    "output_tokens_low": usage.output_tokens.low,
                    "output_tokens_high": usage.output_tokens.high,
                    "dollars_low": float(cost.dollars.low),
                    "dollars_high": float(cost.dollars.high),
                    "dollars_cached_low": float(cached.low) if cached else np.nan,
                    "dollars_cached_high": float(cached.high) if cached else np.nan,
                    "price_input": float(cost.price.input),
                    "price_output": float(cost.price.output),
                    "price_cached_input": float(cost.price.cached_input)
                    if cost.price.cached_input is not None
                    else np.nan,
                    "priced_as": f"{cost.price.provider}:{cost.price.model}",
                    "price_source": cost.price.source,
                    "price_date": cost.price.date.isoformat(),
                    "price_since": cost.price.since.isoformat() if cost.price.since else None,
                }
            )
        return pd.DataFrame(rows)

    def sizes_to_frame(self) -> pd.DataFrame:
        """One row per trial: bytes of prompt and answer, mean and range over the dry runs."""
        return pd.DataFrame([asdict(size) for size in self.sizes])

    def designs_to_frame(self) -> pd.DataFrame:
        """One row per design and language model, from cheap to dear."""
        rows = [
            {
                "llm": row.llm,
                **asdict(row.design),
                "calls": row.calls,
                "dollars_low": float(row.dollars.low),
                "dollars_high": float(row.dollars.high),
                "power_per_dollar": row.power_per_dollar,
                "on_frontier": row.on_frontier,
            }
            for row in self.designs
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-able values; ranges are {"low": ..., "high": ...}."""
        found: dict[str, Any] = _jsonable(asdict(self))
        return found

    def to_json(self) -> str:
        """All of it as JSON; money as numbers, in dollars."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def save(self, folder: str | Path) -> Path:
        """Write the budget into a folder, whole or not at all, and return the file.

        The folder is made if it is not there; a budget that it holds is replaced.
        """
        content = self.to_dict()
        whole = {
            "knownminds": "budget",
            "format": FORMAT,
            "sha256": _digest(content),
            "budget": content,
        }
        with writable(folder) as place:
            write_text(place / FILE, json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return place / FILE

    def __str__(self) -> str:
        """Design, sizes, and a line for each language model."""
        usage = self.usage
        who = "1 subject" if self.subjects == 1 else f"{self.subjects} subjects"
        each = f" x {self.sessions} sessions" if self.sessions > 1 else ""
        spread = "" if usage.bytes_error is None else f" (se {usage.bytes_error:,.0f})"
        design = f"Budget of {self.environment}: {who}{each}"
        lines = [
            f"{design} x at most {self.trials} trials, about {usage.calls:,} calls"
            if self.ends_early
            else f"{design} x {self.trials} trials = {usage.calls:,} calls",
            f"  dry run       {self.dry_runs} sessions of {self.model}, seed {self.seed}; "
            f"{usage.bytes_per_session:,.0f} bytes of input per session{spread}",
            f"  input         {usage.input_bytes} bytes, {usage.input_tokens} tokens; "
            f"{usage.cacheable:.0%} of it begins as the previous prompt did",
            f"  output        {usage.output_tokens} tokens, with {self.reasoning_tokens} of "
            "reasoning per answer",
            "",
            _table(
                ["llm", "dollars", "at best from cache"],
                [
                    [cost.price.llm, str(cost.dollars), str(cost.dollars_cached or "unknown")]
                    for cost in self.costs
                ],
            ),
        ]
        if self.designs:
            head = ["llm", "subjects", "sessions", "trials", "power", "dollars", "power/$", ""]
            cells = [
                [
                    row.llm,
                    str(row.design.subjects),
                    str(row.design.sessions),
                    str(row.design.trials),
                    f"{row.design.power:.3f} ({row.design.power_error:.3f})",
                    str(row.dollars),
                    f"{row.power_per_dollar:.3g}",
                    "frontier" if row.on_frontier else "",
                ]
                for row in self.designs
            ]
            lines += ["", _table(head, cells)]
        rows = [f"  {cost.price}" for cost in self.costs]
        return "\n".join([*lines, "", *rows, "", *self.notes])


def designs_of(result: object, environment: Environment) -> list[DesignPower]:
    """Return the designs of a power study; of a search the confirmed one comes last.

    Two groups have twice the subjects (of single minds: twice the sessions), two conditions of the
    same subjects twice the sessions.
    """
    if isinstance(result, SmallestDesign):
        comparison = result.question["comparison"]
        tried = [*result.steps, *([result.design] if result.design else [])]
    elif isinstance(result, Power):
        comparison, tried = result.comparison, list(result.designs)
    else:
        raise ValueError(
            f"Designs to be priced come from a power study; got a {type(result).__name__}."
        )
    if tried[0].cell.environment != environment.name:
        raise ValueError(
            f"The power study is of {tried[0].cell.environment}; got {environment.name} to price."
        )
    designs = []
    for one in tried:
        subjects, sessions = one.cell.subjects, one.cell.sessions
        if comparison == "between" and subjects > 1:
            subjects *= 2
        elif comparison != "one":
            sessions *= 2
        power = one.rejected
        designs.append(DesignPower(subjects, sessions, one.trials, power.value, power.error))
    return designs


def budget(
    environment: Environment | str,
    llms: Sequence[str | Price] | str,
    *,
    model: type[Agent] | str = "rescorla_wagner_dual",
    subjects: int = 1,
    sessions: int = 1,
    trials: int | None = None,
    reasoning_tokens: tuple[int, int] = (0, 0),
    image_tokens: tuple[int, int] = IMAGE_TOKENS,
    prices: Overrides | None = None,
    date: Date | None = None,
    dry_runs: int = 4,
    seed: int = 0,
    designs: Sequence[DesignPower] = (),
) -> Budget:
    """Reckon what a design costs before the first call is paid.

    A synthetic agent lives `dry_runs` sessions through the real prompts, answers as asked, and is
    read by the real parser; bytes are counted exactly, with all growth of the history. Tokens are
    bracketed from them (see `llm_adapters.prices`). The ends of a range are those of the 95%
    prediction interval (Student's t) for the total of all sessions, so that they hold both the
    standard error of the dry runs' mean and the variation from session to session. Dry run i
    lives the session at the address (i,), with parameters drawn from the priors at (i, 0).

    Parameters
    ----------
    environment
        The experiment with its wording, or its name.
    llms
        Language models, each "provider:model", or the price of one.
    model
        The synthetic agent's model.
    subjects, sessions, trials
        The design: subjects, sessions of each, trials of each session (None for as many as the
        environment has). Each session begins with an empty history.
    reasoning_tokens
        Lowest and highest number of tokens that a language model thinks before one answer. They
        are charged as output. Where the answer may hold thoughts, the upper end takes them as
        part of it, so that they are sent again in each later prompt that repeats the answer.
    image_tokens
        Lowest and highest number of tokens that a picture counts. Providers reckon it from the
        size in ways of their own: what is the default holds for all models that we know of.
    prices
        Prices that go before the table's: a file or a mapping (see `price_of`).
    date
        The day for which prices are looked up; None for today.
    designs
        Designs with their power, to be set against their cost.

    Raises
    ------
    ValueError
        For a count below 1, a reversed range, no language model, or one without a known price.
    """
    names = list(dict.fromkeys([llms] if isinstance(llms, str) else llms))
    if not names:
        raise ValueError('A budget is for at least one language model, "provider:model"; got none.')
    for name, count in (("subjects", subjects), ("sessions", sessions), ("dry_runs", dry_runs)):
        _check_count(name, count)
    thinking = _range("reasoning_tokens", "answer", reasoning_tokens)
    looking = _range("image_tokens", "picture", image_tokens)
    agent = resolve_model(model)
    place = resolve_environment(environment, trials)
    agent.check_plays(place)
    day = date or datetime.now(UTC).date()
    charged = [n if isinstance(n, Price) else price_of(n, day, prices) for n in names]

    runs = {place.n_trials: _dry_runs(place, agent, dry_runs, seed, thinking, looking)}
    own = runs[place.n_trials]
    offered = tuple(designs)
    rows: list[PricedDesign] = []
    for design in offered:
        if design.trials not in runs:
            other = resolve_environment(place, design.trials)
            runs[design.trials] = _dry_runs(other, agent, dry_runs, seed, thinking, looking)
    for price in charged:
        rows += _frontier(price, offered, runs)

    n = int(subjects) * int(sessions)
    return Budget(
        environment=place.name,
        settings=place.settings,
        model=agent.name,
        dry_runs=dry_runs,
        seed=seed,
        subjects=subjects,
        sessions=sessions,
        trials=place.n_trials,
        reasoning_tokens=thinking,
        image_tokens=looking,
        date=charged[0].date,
        sizes=own.sizes(),
        usage=own.usage(n),
        costs=tuple(Cost(p, own.dollars(p, n), own.dollars_cached(p, n)) for p in charged),
        designs=tuple(rows),
        notes=own.notes(),
    )


def dry_run(
    agent: Agent, environment: Environment, seed: int, *address: int, thoughts: int = 0
) -> DryRun:
    """Let an agent live the session at this address in words, and count the bytes.

    It is the session of ``play(agent, environment, seed, *address)``: rendered, answered, parsed.

    Parameters
    ----------
    thoughts
        Bytes of filler put before each answer, for prompts that ask to think first.
    """
    agent.check_plays(environment)
    rng = session_stream(seed, *address)
    session = Session(environment, environment.draw(rng))
    environment, player = session.environment, Player(agent, rng)
    aloud = _think(thoughts)
    before: Prompt | None = None
    counts: list[tuple[int, ...]] = []
    text = ""
    for observation in session:
        prompt = environment.render(observation, session.turns)
        if counts and environment.replies.continues(observation):
            answer = environment.parse(text, observation)
        else:
            choices = tuple(
                player.choose(each) for each in environment.replies.together(observation)
            )
            whole = environment.say(choices[0] if len(choices) == 1 else choices, observation)
            for part, reply in enumerate(environment.replies.spoken(whole)):
                text = environment.replies.joined(text, aloud + reply) if part else aloud + reply
                answer = environment.parse(text, observation)
                sent = sum(len(message.content.encode()) for message in prompt.messages)
                same, same_images = (0, 0) if before is None else repeated(before, prompt)
                said_bytes, images = len((aloud + reply).encode()), len(prompt.images)
                counts.append((sent, same, len(prompt.messages), said_bytes, images, same_images))
                before, prompt = prompt, environment.replies.further(prompt, answer) or prompt
        player.learn(session.take(answer.choice, answer.text))
    return DryRun(*np.array(counts, dtype=np.int64).T)


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


def read_budget(folder: str | Path) -> Budget:
    """Read the budget that `Budget.save` wrote into a folder.

    Raises
    ------
    ValueError
        If there is none, or its file is damaged or of another kind or format.
    """
    file = Path(folder) / FILE
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(whole, dict) or whole.get("knownminds") != "budget":
            raise ValueError("it holds something else")
        if whole["format"] != FORMAT:
            raise ValueError(f"it has the format {whole['format']!r}")
        if whole["sha256"] != _digest(whole["budget"]):
            raise ValueError("its content does not have the checksum it was written with")
        return _budget(whole["budget"])
    except FileNotFoundError:
        raise ValueError(f"A folder with a budget holds {FILE}; {folder} does not.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not a budget of format {FORMAT}, or damaged: {error}. "
            "Compute the budget again."
        ) from None


def on_frontier(dollars: Sequence[Decimal], power: Sequence[float]) -> list[bool]:
    """Say for each design whether no other has its power for less, or more power for as much."""
    offers = list(zip(dollars, power, strict=True))
    return [
        not any(
            (cost < own_cost and other >= own) or (cost == own_cost and other > own)
            for cost, other in offers
        )
        for own_cost, own in offers
    ]


@dataclass(frozen=True)
class _DryRuns:
    """The dry runs of one design: answers as the environment says them, and with thoughts."""

    plain: tuple[DryRun, ...]
    aloud: tuple[DryRun, ...]
    reasoning: Range
    looking: Range
    thoughts_fit: bool

    def calls(self, high: bool) -> list[list[tuple[int, int, int]]]:
        """Input, cached and answer tokens of each call of each session, at one end of the range."""
        end = "high" if high else "low"
        each = getattr(self.looking, end)
        found = []
        for plain, run in zip(self.plain, self.aloud if high else self.plain, strict=True):
            counted = zip(
                run.prompt_bytes.tolist(),
                run.messages.tolist(),
                run.repeated_bytes.tolist(),
                plain.answer_bytes.tolist(),
                run.images.tolist(),
                run.repeated_images.tolist(),
                strict=True,
            )
            found.append(
                [
                    (
                        getattr(tokens_of(sent, messages), end) + each * images,
                        getattr(tokens_of_text(repeated), end) + each * same_images,
                        getattr(tokens_of_answer(said), end),
                    )
                    for sent, messages, repeated, said, images, same_images in counted
                ]
            )
        return found

    def usage(self, n: int) -> Usage:
        """Everything but the money of n sessions."""
        low, high = self.calls(False), self.calls(True)
        sent = [int(run.prompt_bytes.sum()) for run in self.plain]
        repeated = [int(run.repeated_bytes.sum()) for run in self.plain]
        calls = [len(run.prompt_bytes) for run in self.plain]
        error = stdev(sent) / len(sent) ** 0.5 if len(sent) > 1 else None
        return Usage(
            calls=ceil(n * mean(calls)),
            input_bytes=_whole(sent, sent, n),
            cacheable=sum(repeated) / sum(sent),
            input_tokens=_whole(
                [sum(call[0] for call in session) for session in low],
                [sum(call[0] for call in session) for session in high],
                n,
            ),
            output_tokens=_whole(
                [sum(call[2] + self.reasoning.low for call in session) for session in low],
                [sum(call[2] + self.reasoning.high for call in session) for session in high],
                n,
            ),
            bytes_per_session=sum(sent) / len(sent),
            bytes_error=error,
        )

    def dollars(self, price: Price, n: int, cached: bool = False) -> Dollars:
        """What n sessions cost; each call is priced by its own length."""
        low, high = _total(self._bills(price, False, cached), self._bills(price, True, cached), n)
        return Dollars(_rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING))

    def _bills(self, price: Price, high: bool, cached: bool) -> list[Decimal]:
        """Exact dollars of each dry run, at one end of the range."""
        thinking = self.reasoning.high if high else self.reasoning.low
        bills = []
        for session in self.calls(high):
            dollars = Decimal(0)
            following = [kept for _, kept, _ in session[1:]] + [0]
            for (sent, kept, said), later in zip(session, following, strict=True):
                # Only what the next prompt repeats is worth being put into the cache.
                cache = {
                    "cached_tokens": kept,
                    "written_tokens": min(max(later - kept, 0), sent - kept),
                }
                dollars += price.cost(
                    sent, said, reasoning_tokens=thinking, **(cache if cached else {})
                )
            bills.append(dollars)
        return bills

    def dollars_cached(self, price: Price, n: int) -> Dollars | None:
        """The same with a cache, or None if the price of that is not known."""
        if any(rates.cached_input is None for rates in price.rates):
            return None
        return self.dollars(price, n, cached=True)

    def sizes(self) -> tuple[TrialSize, ...]:
        """Mean and range over the dry runs that come so far, call by call."""
        found = []
        for i in range(max(len(run.prompt_bytes) for run in self.plain)):
            runs = [run for run in self.plain if len(run.prompt_bytes) > i]
            sent, repeated, said = (
                np.array([getattr(run, name)[i] for run in runs])
                for name in ("prompt_bytes", "repeated_bytes", "answer_bytes")
            )
            found.append(
                TrialSize(
                    trial=i,
                    prompt_bytes=float(sent.mean()),
                    prompt_bytes_low=int(sent.min()),
                    prompt_bytes_high=int(sent.max()),
                    repeated_bytes=float(repeated.mean()),
                    answer_bytes=float(said.mean()),
                    answer_bytes_low=int(said.min()),
                    answer_bytes_high=int(said.max()),
                )
            )
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        """What the figures leave out."""
        notes = [
            "Calls that fail and are made again are not included. The sum at best from cache is "
            "the least that a cache leaves to pay: caches have a shortest length, and they expire."
        ]
        if any(run.images.any() for run in self.plain):
            notes.append(
                f"A picture counts {self.looking} tokens. Models differ widely; give image_tokens "
                "for yours."
            )
        if len(self.plain) == 1:
            notes.append(
                "One dry run cannot show how sessions differ: the ranges do not hold that."
            )
        if self.thoughts_fit and self.reasoning.high == 0:
            notes.append(
                "The prompts ask for thoughts before the answer, and the synthetic agent has next "
                "to none: give reasoning_tokens."
            )
        if any(
            not np.array_equal(plain.prompt_bytes, run.prompt_bytes)
            for plain, run in zip(self.plain, self.aloud, strict=True)
        ):
            notes.append(
                "The upper end has the thoughts within the answers, which later prompts repeat."
            )
        return tuple(notes)


def _dry_runs(
    environment: Environment,
    model: type[Agent],
    n: int,
    seed: int,
    reasoning: Range,
    looking: Range,
) -> _DryRuns:
    """Live n sessions with parameters from the priors; with thoughts too, where they fit."""
    plain, aloud = [], []
    # As many bytes as make, at the upper rate, the most tokens of reasoning.
    thoughts = reasoning.high * 100 // MOST_PER_100_BYTES
    fit = _reads_thoughts(environment, seed)
    for i in range(n):
        theta = model.parameters.draw(session_stream(seed, i, 0), 1)[0]
        agent = model.from_theta(theta, actions=environment.n_actions)
        plain.append(dry_run(agent, environment, seed, i))
        think = fit and thoughts
        aloud.append(
            dry_run(agent, environment, seed, i, thoughts=thoughts) if think else plain[-1]
        )
    return _DryRuns(tuple(plain), tuple(aloud), reasoning, looking, fit)


def _reads_thoughts(environment: Environment, seed: int) -> bool:
    """Say whether the parser takes an answer that comes after thoughts."""
    environment = copy(environment)
    observation, _ = environment.reset(seed=seed)
    low = environment.response_range[0]
    choices: dict[str, Choice] = {"action": 0, "response": low, "both": (0, low)}
    choice = choices[environment.asks(observation)]
    rest = len(environment.replies.together(observation)) - 1
    said = environment.say((choice, *[1.0] * rest) if rest else choice, observation)
    return environment.parse(_think(len(_THOUGHT)) + said, observation).choice == choice


def _think(n_bytes: int) -> str:
    """Return filler of so many bytes that ends its line."""
    if n_bytes < 1:
        return ""
    return (_THOUGHT * (n_bytes // len(_THOUGHT) + 1))[: n_bytes - 1].decode() + "\n"


def _frontier(
    price: Price, designs: Sequence[DesignPower], runs: Mapping[int, _DryRuns]
) -> list[PricedDesign]:
    """Price each design with one language model, from cheap to dear."""
    sizes = [int(d.subjects) * int(d.sessions) for d in designs]
    dollars = [runs[d.trials].dollars(price, n) for d, n in zip(designs, sizes, strict=True)]
    calls = [runs[d.trials].usage(n).calls for d, n in zip(designs, sizes, strict=True)]
    best = on_frontier([cost.high for cost in dollars], [design.power for design in designs])
    rows = [
        PricedDesign(price.llm, d, sent, cost, flag)
        for d, sent, cost, flag in zip(designs, calls, dollars, best, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.dollars.high, -row.design.power))


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
            quantile = Decimal(f"{t.ppf((1 + LEVEL) / 2, d - 1):.6f}")
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


def _range(name: str, unit: str, given: tuple[int, int]) -> Range:
    rule = f"{name} are the lowest and the highest number per {unit}, from 0 on"
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(f"{rule}; got {given!r}.") from None
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise ValueError(f"{rule}; got {given!r}.")
    if low > high:
        raise ValueError(f"{rule}; got {low} and {high}. Give the lower one first.")
    return Range(int(low), int(high))


def _check_count(name: str, count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on; got {count!r}.")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay cells out in columns, the first to the left and the numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    last = len(head) - 1
    lines = []
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if k in (0, last) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(entry) for entry in value]
    if isinstance(value, Decimal):
        return float(value)  # exact: no Decimal here has more than 15 digits
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, Date) else value


def _digest(content: Mapping[str, Any]) -> str:
    written = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(written.encode()).hexdigest()


def _budget(found: Mapping[str, Any]) -> Budget:
    """Rebuild what `to_dict` took apart."""
    usage = found["usage"]
    ranges = {k: Range(**usage[k]) for k in ("input_bytes", "input_tokens", "output_tokens")}
    changed = {
        "reasoning_tokens": Range(**found["reasoning_tokens"]),
        "image_tokens": Range(**found["image_tokens"]),
        "date": Date.fromisoformat(found["date"]),
        "sizes": tuple(TrialSize(**size) for size in found["sizes"]),
        "usage": Usage(**{**usage, **ranges}),
        "costs": tuple(
            Cost(
                _price(cost["price"]),
                _dollars(cost["dollars"]),
                _dollars(cost["dollars_cached"]) if cost["dollars_cached"] else None,
            )
            for cost in found["costs"]
        ),
        "designs": tuple(
            PricedDesign(
                **{
                    **row,
                    "design": DesignPower(**row["design"]),
                    "dollars": _dollars(row["dollars"]),
                }
            )
            for row in found["designs"]
        ),
        "notes": tuple(found["notes"]),
    }
    return Budget(**{**found, **changed})


def _dollars(found: Mapping[str, float]) -> Dollars:
    return Dollars(_exact(found["low"]), _exact(found["high"]))


def _price(found: Mapping[str, Any]) -> Price:
    rates = tuple(
        Rates(**{**{k: _exact(v) for k, v in row.items()}, "above": row["above"]})
        for row in found["rates"]
    )
    changed = {
        "rates": rates,
        "date": Date.fromisoformat(found["date"]),
        "since": Date.fromisoformat(found["since"]) if found["since"] else None,
        "per_call": _exact(found["per_call"]),
    }
    return Price(**{**found, **changed})


def _exact(number: float | None) -> Any:
    return None if number is None else Decimal(repr(number))
