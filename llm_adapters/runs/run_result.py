"""Sessions of a language model: what came of them, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from knownminds.environments import ANSWERED, Outcome, Rate, Trials, outcome_rates
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult

from .admission import CAPPED, SILENT
from .ledger import RunCost, Start
from .prices import NANO, Price

# What is put down for an answer that nothing bounds. Not a bound, so no cap relies on it.
ASSUMED_ANSWER = 4_096
# What an account counts, in words.
COUNTED = {
    "re_asked": "put again after a malformed answer",
    "input_tokens": "tokens sent",
    "cached_tokens": "of these read from a cache",
    "written_tokens": "of these written to a cache",
    "output_tokens": "tokens received",
    "reasoning_tokens": "of these hidden reasoning",
    "answers_without_tokens": (
        "answers without their number of tokens, which count at their most in dollars and caps"
    ),
    "impossible_counts": "numbers of tokens that cannot be, which count as not said",
    "cut_prompts": "prompts of which the server counts a part only, and may have cut the rest",
    "answers_beyond_what_was_foreseen": "answers with more tokens than could be foreseen",
}


@dataclass(frozen=True, eq=False)
class Run(TabledResult):
    """Sessions of a language model: what came of them, and what they cost.

    Parameters
    ----------
    folder : where the ledger is
    environment : name of the experiment
    llm : "provider:model"
    base_url : where; empty if nowhere
    model_served : what the provider said it served; empty if it did not
    n_sessions : how many sessions there are
    trials : all trials that were played, also those of unfinished sessions; None if there is none
    unfinished : the sessions without all of their trials: "session", its number, "trials", how
        many were played, and "reason", why it stopped
    stopped : why the run ended early; empty if it did not
    starts : all its starts, the last one last
    account : calls, tokens and nano-dollars
    price : the price, as it was first known; None if it never was
    configuration : the experiment's settings, sampling, seed
    looks : what a stopping rule shows, look by look; empty where there was none
    left_out : what the server said of the sampling seed, which was sent no more then; else empty
    """

    folder: Path
    environment: str
    llm: str
    base_url: str
    model_served: str
    n_sessions: int
    trials: Trials | None
    unfinished: tuple[Mapping[str, Any], ...]
    stopped: str
    starts: tuple[Start, ...]
    account: RunCost
    price: Price | None
    configuration: Mapping[str, Any]
    looks: tuple[Mapping[str, Any], ...] = ()
    left_out: str = ""

    @property
    def ended(self) -> int:
        """How many sessions were played to their end, whatever came back."""
        return self.n_sessions - len(self.unfinished)

    @property
    def n_trials(self) -> int:
        """How many trials were played."""
        return 0 if self.trials is None else len(self.trials)

    @property
    def readable(self) -> int:
        """How many trials have a readable answer."""
        return sum(rate.count for rate in self.outcomes if rate.outcome in ANSWERED)

    @property
    def silent(self) -> int:
        """How many sessions came to their end without one readable answer."""
        if self.trials is None:
            return 0
        read = self.trials.frame["outcome"].isin(ANSWERED)
        begun = read.groupby(self.trials.frame["session"]).any()
        going = {str(session["session"]) for session in self.unfinished}
        return sum(not any_read for name, any_read in begun.items() if str(name) not in going)

    @property
    def complete(self) -> bool:
        """Whether all sessions were played to their end, and an answer could be read at all."""
        return not self.unfinished and self.readable > 0

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why sessions stopped before their end, and how many for each reason."""
        return Counter(session["reason"] for session in self.unfinished)

    @property
    def exit_code(self) -> int:
        """What a command ends with: 3 if no answer could be read, 1 if sessions are left, or 0."""
        if self.nothing_read or self.gave_out:
            return 3
        return 1 if self.unfinished else 0

    @property
    def errors(self) -> int:
        """How many trials brought no text."""
        return sum(rate.count for rate in self.outcomes if rate.outcome == Outcome.ERROR.value)

    @property
    def gave_out(self) -> bool:
        """Whether it stopped because too many questions in a row had no answer."""
        return SILENT in self.stopped

    @property
    def remedy(self) -> str:
        """What the same command would do, where sessions are left; else empty."""
        if not self.unfinished:
            return "The same command asks nothing again." if self.nothing_read else ""
        if all(reason.startswith(CAPPED) for reason in self.reasons):
            return "With larger caps the same command goes on from here."
        first = "Once the model takes the questions, the" if self.gave_out else "The"
        return f"{first} same command goes on from here."

    @property
    def unanswered(self) -> str:
        """A sentence if trials brought no text, on how to get them; otherwise empty."""
        if not self.errors:
            return ""
        return (
            f"With --retry-errors trials that brought no answer are asked again: {self.errors:,}."
        )

    @property
    def nothing_read(self) -> str:
        """A sentence if there are trials and not one answer could be read; otherwise empty."""
        if not self.n_trials or self.readable:
            return ""
        what = ", ".join(f"{rate.count:,} {rate.outcome}" for rate in self.outcomes if rate.count)
        notes = [] if self.trials is None else self.trials.frame["note"].dropna().tolist()
        why = f" The first: {notes[0]}" if notes else ""
        return f"No answer could be read: {what}.{why}"

    @property
    def calls(self) -> int:
        """Requests sent, whatever became of them."""
        return sum(self.account.calls.values())

    @property
    def tokens(self) -> int:
        """Tokens of all answers, sent and received."""
        return self.account.input_tokens + self.account.output_tokens

    @property
    def dollars(self) -> Decimal | None:
        """What the run has cost at most: answers, and what may have been paid without one."""
        return self._money(self.account.paid + self.account.reserved)

    @property
    def dollars_paid(self) -> Decimal | None:
        """What the answers have cost whose tokens are known."""
        return self._money(self.account.paid)

    @cached_property
    def outcomes(self) -> tuple[Rate, ...]:
        """How often each outcome occurred, all of them, in their order."""
        return outcome_rates({} if self.trials is None else self.trials)

    def to_frame(self) -> pd.DataFrame:
        """One row per outcome."""
        return pd.DataFrame([asdict(rate) for rate in self.outcomes])

    def content(self) -> dict[str, Any]:
        """Return everything but the trials, fit for JSON; money in whole nano-dollars."""
        account, known = self.account, self.price is not None
        return {
            "folder": str(self.folder),
            "environment": self.environment,
            "llm": self.llm,
            "base_url": self.base_url,
            "model_served": self.model_served,
            "sessions": self.n_sessions,
            "sessions_ended": self.ended,
            "sessions_without_readable_answer": self.silent,
            "complete": self.complete,
            "stopped": self.stopped,
            "starts": len(self.starts),
            "unfinished": [dict(session) for session in self.unfinished],
            "trials": self.n_trials,
            "readable": self.readable,
            "outcomes": {
                rate.outcome: {
                    "count": rate.count,
                    "share": rate.share if rate.of else None,
                    "interval": [rate.low, rate.high] if rate.of else None,
                }
                for rate in self.outcomes
            },
            **{k: v for k, v in asdict(account).items() if k not in ("paid", "reserved")},
            "nano_dollars_paid": account.paid if known else None,
            "nano_dollars_at_most": account.paid + account.reserved if known else None,
            "price": str(self.price) if known else None,
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"looks": [dict(look) for look in self.looks]} if self.looks else {}),
        }

    def _money(self, amount: int) -> Decimal | None:
        return None if self.price is None else Decimal(amount) / NANO
