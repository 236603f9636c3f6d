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

import pandas as pd
import scipy

from knownminds.agents import Model
from knownminds.environments import Environment
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import NANO, Dollars, Price, Range
from knownminds.llm_adapters.runs.runner import called, environment_of_run

from .dry_runs import LEVEL, DryRuns, dry_runs_of

PICTURE = Range(0, 0)  # pictures are in the tokens that were observed


@dataclass(frozen=True)
class Observed:
    """What the sessions of a run took.

    Parameters
    ----------
    folder, llm : Of the run, and who answered ("provider:model").
    environment, seed : The experiment that was run, and the seed of its dry runs.
    price : With which the run was reckoned; None without one.
    tokens : Of each session, hidden reasoning and calls that were made again among them: the
        columns input_tokens and output_tokens.
    dollars, listed : What was paid for all of them, and what these tokens cost without a cache.
    """

    folder: str
    llm: str
    environment: Environment
    seed: int
    price: Price | None
    tokens: pd.DataFrame
    dollars: Decimal
    listed: Decimal

    @classmethod
    def read(cls, folder: str | os.PathLike[str], seed: int) -> Observed:
        """Read the ledger of a run.

        Raises
        ------
        ValueError : If there is none, or none of its answers tells its tokens.
        """
        with Ledger.read(folder) as ledger:
            kept, price = ledger.configuration, ledger.price
            replies = [
                (one.key[0], one.reply.usage, one.used(price).money)
                for one in ledger.counted()
                if one.reply is not None
            ]
        columns = ["session", "input_tokens", "output_tokens", "nano_dollars"]
        rows = [(n, usage.input_tokens, usage.output_tokens, nano) for n, usage, nano in replies]
        calls = pd.DataFrame(rows, columns=columns).dropna().astype(int)
        if not len(calls):
            raise ValueError(
                f"What sessions take is read from answers that tell their tokens; the run in "
                f"{Path(folder)} has none. Leave --run out, and give --llm."
            )
        pairs = zip(calls["input_tokens"].tolist(), calls["output_tokens"].tolist(), strict=True)
        listed = (
            Decimal(0) if price is None else sum((price.cost(*pair) for pair in pairs), Decimal(0))
        )
        return cls(
            str(folder),
            f"{kept['provider']}:{called(kept)}",
            environment_of_run(kept),
            seed,
            price,
            calls.groupby("session")[columns[1:3]].sum(),
            Decimal(int(calls["nano_dollars"].sum()) if price else 0) / NANO,
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

    def planned(self, environment: Environment, model: type[Model], n: int) -> ObservedRuns:
        """Return what sessions of a design take, by dry runs of it and of the run's design.

        Tokens go by the bytes of the prompts and the number of answers: as many for each as in the
        run, whose sessions differ.
        """
        dry = partial(
            dry_runs_of, model=model, n=n, seed=self.seed, reasoning=Range(0, 0), looking=PICTURE
        )
        of_run, runs = dry(self.environment), dry(environment)
        of_each = of_run.plain.groupby("run")["prompt_bytes"]
        sent, calls = float(of_each.sum().mean()), float(of_each.size().mean())
        factor = self.dollars / self.listed if self.listed else Decimal(1)
        return ObservedRuns(
            **{name: getattr(runs, name) for name in runs.__dataclass_fields__},
            sent=_ends(self.tokens["input_tokens"].tolist(), sent),
            received=_ends(self.tokens["output_tokens"].tolist(), calls),
            factor=factor,
        )

    def as_dict(self) -> dict[str, Any]:
        """What a study keeps of it, to be said with its costs."""
        return {
            "folder": self.folder,
            "llm": self.llm,
            "sessions": len(self.tokens),
            **{str(name): int(total) for name, total in self.tokens.sum().items()},
            "dollars": float(self.dollars),
        }

    def dollars_of(
        self, environment: Environment, model: type[Model], n: int, dry: int = 4
    ) -> Dollars:
        """Return what n sessions of a design cost."""
        return self.planned(environment, model, dry).dollars(self.priced(), n)


@dataclass(frozen=True)
class ObservedRuns(DryRuns):
    """Dry runs whose tokens are those that a run took.

    Parameters
    ----------
    sent, received : Input tokens for each byte of a prompt, output tokens for each answer: lowest
        and highest.
    factor : What was paid for each dollar of the list's price.
    """

    sent: tuple[float, float] = (0.0, 0.0)
    received: tuple[float, float] = (0.0, 0.0)
    factor: Decimal = Decimal(1)

    def calls(self, high: bool) -> pd.DataFrame:
        """Return tokens of each call at one end of the range: run, sent, kept (cached) and said."""
        sent = (self.sent[high] * self.plain["prompt_bytes"]).round().astype(int)
        return self.plain[["run"]].assign(sent=sent, kept=0, said=round(self.received[high]))

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
