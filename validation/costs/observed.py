"""What the sessions of a run took, tokens and money, and what planned ones would take by that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import scipy

from knownminds.agents import Agent
from knownminds.environments import Environment, make
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import NANO, Dollars, Price, Range

from .dry_runs import LEVEL, DryRuns, dry_runs_of

PICTURE = Range(0, 0)  # pictures are in the tokens that were observed


@dataclass(frozen=True)
class Observed:
    """What the sessions of a run took.

    Parameters
    ----------
    folder, llm
        Of the run, and who answered ("provider:model").
    environment, seed
        The experiment that was run, and the seed of its dry runs.
    price
        With which the run was reckoned; None without one.
    input_tokens, output_tokens
        Of each session, hidden reasoning and calls that were made again among them.
    dollars, listed
        What was paid for all of them, and what these tokens cost without a cache.
    """

    folder: str
    llm: str
    environment: Environment
    seed: int
    price: Price | None
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    dollars: Decimal
    listed: Decimal

    @classmethod
    def read(cls, folder: str | os.PathLike[str], seed: int) -> Observed:
        """Read the ledger of a run.

        Raises
        ------
        ValueError
            If there is none, or none of its answers tells its tokens.
        """
        with Ledger.read(folder) as ledger:
            kept, price = ledger.configuration, ledger.price
            counted = list(ledger.attempts())
        rows = [
            (one.key[0], one.reply.usage, one.used(price).money)
            for one in counted
            if one.reply is not None
            and one.reply.usage.input_tokens is not None
            and one.reply.usage.output_tokens is not None
        ]
        if not rows:
            raise ValueError(
                f"What sessions take is read from answers that tell their tokens; the run in "
                f"{Path(folder)} has none. Leave --run out, and give --llm."
            )
        tokens: dict[int, list[int]] = {}
        dollars = listed = Decimal(0)
        for session, usage, cost in rows:
            sent, received = usage.input_tokens or 0, usage.output_tokens or 0
            of_session = tokens.setdefault(session, [0, 0])
            of_session[0] += sent
            of_session[1] += received
            if price is not None:
                dollars += Decimal(cost) / NANO
                listed += price.cost(sent, received)
        each = [tokens[session] for session in sorted(tokens)]
        return cls(
            str(folder),
            f"{kept['provider']}:{kept['model']}",
            make(kept["environment"], **kept["settings"]),
            seed,
            price,
            tuple(sent for sent, _ in each),
            tuple(received for _, received in each),
            dollars,
            listed,
        )

    def priced(self) -> Price:
        """Return its price; ValueError if it has none."""
        if self.price is None or not self.listed:
            raise ValueError(
                f"Sessions are priced by what a run has paid; nothing was charged in "
                f"{self.folder}. Give a budget in trials, or leave --run out."
            )
        return self.price

    def planned(self, environment: Environment, model: type[Agent], n: int) -> ObservedRuns:
        """Return what sessions of a design take, by dry runs of it and of the run's design.

        Tokens go by the bytes of the prompts and the number of answers: as many for each as in the
        run, whose sessions differ.
        """
        dry = partial(
            dry_runs_of, model=model, n=n, seed=self.seed, reasoning=Range(0, 0), looking=PICTURE
        )
        of_run, runs = dry(self.environment), dry(environment)
        sent = mean(int(run["prompt_bytes"].sum()) for run in of_run.plain)
        calls = mean(len(run) for run in of_run.plain)
        factor = self.dollars / self.listed if self.listed else Decimal(1)
        return ObservedRuns(
            **{name: getattr(runs, name) for name in runs.__dataclass_fields__},
            sent=_ends(self.input_tokens, sent),
            received=_ends(self.output_tokens, calls),
            factor=factor,
        )

    def told(self) -> dict[str, Any]:
        """What a study keeps of it, to be said with its costs."""
        return {
            "folder": self.folder,
            "llm": self.llm,
            "sessions": len(self.input_tokens),
            "input_tokens": sum(self.input_tokens),
            "output_tokens": sum(self.output_tokens),
            "dollars": float(self.dollars),
        }

    def dollars_of(
        self, environment: Environment, model: type[Agent], n: int, dry: int = 4
    ) -> Dollars:
        """Return what n sessions of a design cost."""
        return self.planned(environment, model, dry).dollars(self.priced(), n)


@dataclass(frozen=True)
class ObservedRuns(DryRuns):
    """Dry runs whose tokens are those that a run took.

    Parameters
    ----------
    sent, received
        Input tokens for each byte of a prompt, output tokens for each answer: lowest and highest.
    factor
        What was paid for each dollar of the list's price.
    """

    sent: tuple[float, float] = (0.0, 0.0)
    received: tuple[float, float] = (0.0, 0.0)
    factor: Decimal = Decimal(1)

    def calls(self, high: bool) -> list[list[tuple[int, int, int]]]:
        """Input, cached and answer tokens of each call of each session, at one end of the range."""
        return [
            [
                (round(self.sent[high] * sent), 0, round(self.received[high]))
                for sent in run["prompt_bytes"].tolist()
            ]
            for run in self.plain
        ]

    def _bills(self, price: Price, high: bool, cached: bool) -> list[Decimal]:
        """Exact dollars of each dry run, at one end of the range."""
        return [bill * self.factor for bill in super()._bills(price, high, cached)]


def _ends(tokens: Sequence[int], per: float) -> tuple[float, float]:
    """Return the ends of the 95% interval of mean tokens (Student's t), each for so many units."""
    n, middle = len(tokens), mean(tokens)
    margin = 0.0
    if n > 1:
        margin = float(scipy.stats.t.ppf((1 + LEVEL) / 2, n - 1)) * stdev(tokens) / n**0.5
    return max(0.0, middle - margin) / per, (middle + margin) / per
