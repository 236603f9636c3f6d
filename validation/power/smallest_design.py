"""The smallest design that reaches a power, found by stochastic bisection."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure

from knownminds.agents.parameters import Array
from knownminds.environments import make
from knownminds.validation.engine.arguments import one_of, resolve_environment
from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.result import Drawing, Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Rows, Study, read_study, versions
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.pages import figures as draw

from .operating_characteristics import test_batch
from .pilot import Pilot
from .power_study import (
    NOTES,
    Sought,
    notes_of,
    readings,
    say,
    sought_in,
    title_of,
    with_single_sizes,
)
from .questions import SIZES, Power

DATA_SETS = 100  # of a step: Monte-Carlo error of power .04 at most, so steps stay cheap
REPLICATES = 1000  # of the confirmation
STEPS = 30  # at most
FIRST = 8  # the first size that is tried
FASTEST = 4  # the next size is at most so many times the largest so far
LEAST_TARGET, MOST_TARGET = 0.06, 0.99
PRECISE = 0.1  # a search ends when the 90% interval is this narrow, relative to its middle
MASS = 0.9  # of the interval of the smallest size
ATTEMPTS = 3  # confirmations before the search gives up
ABOUT = (
    "In the search the share is taken to rise as Phi(a + b sqrt(size)). The answer is confirmed if "
    "the share in a fresh run, which does not enter the search, reaches the target within two of "
    f"its Monte-Carlo errors. low and high: {MASS:.0%} interval of the answer; a size above --most "
    "is not excluded where high is empty.",
)


def search(question: Power) -> Result:
    """Answer what `power --find` is asked."""
    replicates = question.replicates or REPLICATES
    question = replace(with_single_sizes(question), replicates=replicates)
    one_of("size to find", str(question.find), SIZES)
    if not LEAST_TARGET <= question.target <= MOST_TARGET:
        raise ValueError(
            f"The target power lies in [{LEAST_TARGET}, {MOST_TARGET}]; got {question.target:g}."
        )
    sought = sought_in(question)
    content = question.asked() | {"effect": sought.effect}
    del content[str(question.find)]
    wanted = _Search(sought, question, content)
    sought.check_identified([None if question.find == "trials" else question.trials])
    start = wanted.study(wanted.sizes[0], REPLICATES, "start")
    check_step_loop(start)
    return wanted.follow(computed_steps(start, test_batch, question))


def read_search(folder: Path) -> Result:
    """Return what the search in a folder says, as far as it went."""
    return _Search.of(read_study(folder)[0]).follow(stored_steps(folder))


@dataclass
class _Way:
    """What a search has tried so far, and what it says of the answer."""

    curve: _Curve
    tried: list[dict[str, Any]] = field(default_factory=list)
    size: int | None = None
    outcome: str = "not finished"
    seconds: float = 0.0

    def add(self, part: str, size: int, rows: Rows, *, counts: bool = True) -> Score:
        """Take in the study of a size; return the share that reaches the aim."""
        result = say(rows)
        row: dict[str, Any] = result["Designs"].reset_index().to_dict("records")[0]  # type: ignore[assignment]
        self.tried.append({"part": part, **row})
        self.seconds += result.seconds
        share: Score = row[share_name(pd.DataFrame([row]))]
        if counts:
            self.curve.add(size, share.value * row["data sets"], row["data sets"])
        return share


def share_name(designs: pd.DataFrame) -> str:
    """Return what the share that reaches the aim is called: the column after "data sets"."""
    columns = list(designs.columns)
    return str(columns[columns.index("data sets") + 1])


@dataclass(frozen=True)
class _Search:
    """What is searched; the path is a function of the results, so that it can be gone again."""

    sought: Sought
    asked: Power
    content: dict[str, Any]

    @classmethod
    def of(cls, study: Study) -> _Search:
        """Return the search of the study in its folder."""
        told, cell = dict(study.question), study.cells[0]
        names = {own.name for own in fields(Power)} & set(told)
        asked: dict[str, Any] = {name: told[name] for name in names if told[name] is not None}
        asked["environment"] = make(cell.environment, **cell.settings)
        asked["truth"] = {k: v for k, v in told["set"].items() if k not in cell.settings}
        asked |= {"pilot": Pilot.of(cell), "unconverged": False, "run": None}
        question = Power(**asked)
        return cls(sought_in(question), question, told)

    @property
    def find(self) -> str:
        """What is varied."""
        return str(self.asked.find)

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes that are considered, ascending."""
        if self.find == "trials":
            sizes = [n for n in range(1, self.asked.most + 1) if self._possible(n)]
        else:
            alone = self.find == "subjects" or self.asked.subjects == 1  # a test needs 2 units
            sizes = list(range(2 if alone else 1, self.asked.most + 1))
        if not sizes:
            raise ValueError(f"No number of {self.find} up to {self.asked.most} can be tested.")
        return sizes

    def _possible(self, trials: int) -> bool:
        try:
            resolve_environment(self.sought.environment, trials)
        except ValueError:
            return False
        return True

    def study(self, size: int, data_sets: int, name: str) -> Study:
        """Return the study of one size; its data sets belong to this name alone."""
        sizes = {name: getattr(self.asked, name) for name in SIZES} | {self.find: size}
        subjects, sessions, trials = ([sizes[one]] for one in SIZES)
        law = {"part_of_search": name}
        cells = self.sought.cells(subjects, sessions, trials, law)
        return Study("power", cells, data_sets, self.asked.seed, "replicate", self.content)

    def follow(self, rows_of: Step) -> Result:
        """Go the way of the search; `rows_of` computes or reads the study of a name."""
        target, most = self.asked.target, self.sizes[-1]
        way = _Way(_Curve(self.sizes, target))
        size, confirmations = self._at_least(FIRST), 0
        for step in range(STEPS):
            name = f"step-{step:02d}"
            rows = rows_of(self.study(size, DATA_SETS, name), name)
            if rows is None:
                break
            way.add("search", size, rows)
            low, middle, high = way.curve.interval
            if low > self.asked.most and size == most:
                way.outcome = "not reached"
                break
            last = step == STEPS - 1
            if high - low <= max(PRECISE * middle, self._spacing) or last:
                way.size, name = self._at_least(middle), f"confirmation-{confirmations}"
                fresh = rows_of(self.study(way.size, self.asked.replicates or 1, name), name)
                if fresh is None:
                    break
                confirmations += 1
                share = way.add("fresh run", way.size, fresh, counts=False)
                if share.value + 2 * share.error >= target:
                    way.outcome = "confirmed"
                    break
                if confirmations == ATTEMPTS or last:
                    way.outcome = "not confirmed"
                    break
                n = way.tried[-1]["data sets"]
                way.curve.add(way.size, share.value * n, n)
                _, middle, _ = way.curve.interval
            largest = max(row[self.find] for row in way.tried)
            size = self._at_least(min(middle, FASTEST * largest))
        return self._answer(way)

    def _answer(self, way: _Way) -> Result:
        """Return the result of a search, as far as it went."""
        title = title_of(self.content, self.find)
        if not way.tried:
            return Result(title, missing=1, asked=self.content)
        tried = pd.DataFrame(way.tried)
        name = share_name(tried)
        low, _, high = way.curve.interval
        found = None if way.outcome == "not reached" else way.size
        answer = {
            self.find: found,
            "low": self._at_least(low) if low <= self.asked.most else None,
            "high": self._at_least(high) if high <= self.asked.most else None,
            "target": self.asked.target,
            name: tried[name].iloc[-1],
        }
        share: Score = tried[name].iloc[-1]
        word = Verdict(way.outcome, (reason(name, share.value, share.error, self.asked.target),))
        start = self.study(self.sizes[0], 1, "start")
        fresh = tried[tried["part"] == "fresh run"]
        searched = tried.assign(low=low, high=high, target=self.asked.target, find=self.find)
        return Result(
            title,
            verdicts={"the smallest design": word, **readings(fresh.iloc[-1:])},
            tables={
                "Smallest design": pd.DataFrame([answer]).astype(object),
                "Designs that were tried": tried.set_index(["part", *SIZES]),
            },
            figures={
                "Left: share of each design that was tried and of the fresh run, with 2 standard "
                "errors; dashed, the target. Right: the way of the search. Shaded: the interval of "
                "the answer.": Drawing(searched, draw_search)
            },
            notes=[*notes_of(start.cells[0]), *ABOUT, *NOTES],
            attempted=int(tried["data sets"].sum()),
            failed=int(tried["failed"].sum()),
            missing=int(way.outcome == "not finished"),
            asked=start.asked,
            command=start.command_line(),
            seconds=way.seconds,
            versions=versions(),
        )

    @property
    def _spacing(self) -> float:
        return float(np.diff(self.sizes).min()) if len(self.sizes) > 1 else 1.0

    def _at_least(self, size: float) -> int:
        position = int(np.searchsorted(self.sizes, size - 1e-9))
        return self.sizes[min(position, len(self.sizes) - 1)]


class _Curve:
    """Posterior of the size at which power reaches the target.

    power(n) = Phi(-c + (c + z) sqrt(n / size)), z the target's normal quantile; log size is
    uniform, and c, which is 1.96 for a normal two-sided test at 5%, Normal(1.96, 0.4).
    """

    def __init__(self, sizes: list[int], target: float):
        self.size = np.geomspace(sizes[0] / 2, 16 * sizes[-1], 1500)[:, None]
        self.c = np.linspace(0.8, 3.2, 25)[None, :]
        self.z = scipy.stats.norm.ppf(target)
        self.log_density: Array = scipy.stats.norm.logpdf(self.c, 1.96, 0.4) + 0 * self.size

    def add(self, size: int, successes: float, n: int) -> None:
        """Take in that so many of n data sets of this size were rejected."""
        eta = -self.c + (self.c + self.z) * np.sqrt(size / self.size)
        self.log_density = (
            self.log_density
            + successes * scipy.stats.norm.logcdf(eta)
            + (n - successes) * scipy.stats.norm.logsf(eta)
        )

    @property
    def interval(self) -> tuple[float, float, float]:
        """Ends and middle of the interval of the size: low, middle, high."""
        low, middle, high = self.quantiles((1 - MASS) / 2, 0.5, (1 + MASS) / 2)
        return low, middle, high

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return quantiles of the size."""
        density = np.exp(self.log_density - self.log_density.max()).sum(axis=1)
        cumulative = np.cumsum(density) / density.sum()
        log_size = np.log(self.size[:, 0])
        return tuple(float(np.exp(np.interp(share, cumulative, log_size))) for share in shares)


def draw_search(tried: pd.DataFrame) -> Figure:
    """Draw a search: share against size, and size against step."""
    figure, (left, right) = draw.panels(2)
    figure.set_size_inches(7.2, 3.2)
    find, name = tried["find"].iloc[0], share_name(tried)
    sizes = list(tried[find])
    for (part, own), style in zip(tried.groupby("part", sort=False), draw.styles(2), strict=False):
        look = (*style[:2], "none")
        draw.curve(left, list(own[find]), list(own[name]), look, str(part))
        draw.line(right, list(own.index + 1), list(own[find]), look)
    low, high = max(tried["low"].iloc[0], 1.0), min(tried["high"].iloc[0], 1.5 * max(sizes))
    if low < high:
        left.axvspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
        right.axhspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
    draw.limit(left, tried["target"].iloc[0])
    draw.scale(left, sizes)
    left.set(xlabel=find, ylabel=name, ylim=(0, 1.02))
    right.set(xlabel="step", ylabel=find)
    draw.key(figure, left)
    return figure
