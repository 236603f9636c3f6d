"""The smallest design that reaches a power, found by stochastic bisection."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import make
from knownminds.environments.record.folders import writable
from knownminds.validation.engine.arguments import one_of, resolve_environment
from knownminds.validation.engine.engine import Running, claim, read, run
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import NotFinished, Study, versions

from .aims import Aim
from .model_power import ModelPower, read_model_power
from .operating_characteristics import Characteristics, test_batch
from .pilot import Pilot
from .power_study import (
    Power,
    Sought,
    about_design,
    about_effect,
    about_reading,
    about_unit,
    can_be_read,
    read_power,
    sought_in,
    summarise,
)
from .questions import AskSmallest
from .sequential import Sequential, read_sequential

FIND = ("sessions", "subjects", "trials")
DATA_SETS = 100  # of a step: Monte-Carlo error of power .04 at most, so steps stay cheap
STEPS = 30  # at most
FIRST = 8  # the first size that is tried
FASTEST = 4  # the next size is at most so many times the largest so far
LEAST_TARGET, MOST_TARGET = 0.06, 0.99
PRECISE = 0.1  # a search ends when the 90% interval is this narrow, relative to its middle
MASS = 0.9  # of the interval of the smallest size
ATTEMPTS = 3  # confirmations before the search gives up


@dataclass(frozen=True)
class SmallestDesign(Reported):
    """The smallest size of a design that reaches a power, and how sure that is.

    Parameters
    ----------
    find, target
        What was varied, and the power that is asked for.
    size
        The smallest size; None if even `most` does not reach the target.
    low, high
        90% interval of the size from the search; above `most` where that is not excluded.
    steps
        Every design that was tried, in order.
    confirmation
        A run at `size` with fresh data sets; it does not enter the search.
    message
        Why there is no size, or why it is not confirmed; empty otherwise.
    """

    question: Mapping[str, Any]
    find: str
    target: float
    most: int
    size: int | None
    low: float
    high: float
    steps: tuple[Characteristics, ...]
    confirmation: Power | None
    message: str
    versions: Mapping[str, str]

    @property
    def design(self) -> Characteristics | None:
        """The confirmed design."""
        return self.confirmation.designs[0] if self.confirmation else None

    @property
    def name(self) -> str:
        """What the share of the data sets is called."""
        return Aim.of(self.steps[0].cell.options).name(0.0)

    @property
    def confirmed(self) -> bool:
        """Whether the fresh run reaches the target within two Monte-Carlo errors."""
        design = self.design
        return design is not None and _reaches(design, self.target)

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        last = self.confirmation.seconds if self.confirmation else 0.0
        return sum(step.seconds for step in self.steps) + last

    def to_frame(self) -> pd.DataFrame:
        """One row per design that was tried, the confirmation last."""
        tried = [*self.steps, *([self.design] if self.design else [])]
        frame = pd.DataFrame([design.to_dict() for design in tried])
        return frame.rename(columns={"rejected": "power", "rejected_error": "power_error"})

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        design = self.design
        found = None
        if design is not None and self.confirmation is not None:
            found = self.confirmation.to_dict()["designs"][0]
        return {
            "question": dict(self.question),
            "find": self.find,
            "target": self.target,
            "smallest": {
                self.find: self.size,
                "low": self.low,
                "high": self.high,
                "mass": MASS,
            },
            "confirmed": self.confirmed,
            "confirmation": found,
            "message": self.message,
            "steps": self.to_frame().iloc[: len(self.steps)].to_dict("records"),
            "sampling_unit": about_unit(self.steps[0]),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """Return the answer in words, then every design that was tried."""
        lines = [about_answer(self)]
        for step in self.steps:
            lines.append(
                f"  {size_of(step, self.find):>6} {self.find}: {self.name} {step.rejected}"
            )
        lines += about_design(self.steps[0].cell)
        if self.design is not None and not can_be_read(self.design):
            lines.append(about_reading(self.design))
        lines.append(about_unit(self.steps[0]))
        return "\n".join(lines)


def about_answer(found: SmallestDesign) -> str:
    """Give the answer in a sentence or two."""
    if found.size is None or found.confirmation is None:
        return found.message
    power = found.confirmation.designs[0].rejected
    verb = "are" if found.confirmed else "were tried last as"
    told = (
        f"{found.size} {found.find} {verb} the smallest number for {found.target:.0%} {found.name} "
        f"({MASS:.0%} interval {found.low:.0f} to {found.high:.0f}): "
        f"{about_effect(found.confirmation)}. A fresh run of "
        f"{found.confirmation.designs[0].attempted} data sets has {found.name} {power}."
    )
    return f"{told} {found.message}".strip()


def size_of(design: Characteristics, find: str) -> int:
    """Return the size of a design in what was varied."""
    sizes = {
        "subjects": design.cell.subjects,
        "sessions": design.cell.sessions,
        "trials": design.trials,
    }
    return sizes[find]


smallest_design = verb(AskSmallest, __name__)


def compute(question: AskSmallest) -> SmallestDesign:
    """Answer what `smallest_design` is asked."""
    one_of("size to find", question.find, FIND)
    sought, target = sought_in(question), question.target
    if not LEAST_TARGET <= target <= MOST_TARGET:
        raise ValueError(
            f"The target power lies in [{LEAST_TARGET}, {MOST_TARGET}]; got {target:g}."
        )
    if question.share is not None:
        raise ValueError("A search goes step by step and has no shares; use workers or dask.")
    content = question.asked() | {"effect": sought.effect}
    del content[question.find]
    search = _Search(sought, question, content)
    sought.check_identified([None if question.find == "trials" else question.trials])
    start = search.study(search.sizes[0], question.replicates, "start")
    check_step_loop(start)
    running = question.running
    out = running.pop("out", None)
    if out is None:
        return search.follow(lambda study, _: run(study, test_batch, summarise, **running))
    with writable(out) as folder:
        claim(start, folder)

    def step(study: Study, name: str) -> Power:
        there: Running = {**running, "out": folder / name}
        return run(study, test_batch, summarise, **there)

    return search.follow(step)


def read_smallest_design(folder: str | os.PathLike[str]) -> SmallestDesign:
    """Read a finished search from its folder; nothing is computed anew."""
    place = Path(folder)
    study, identity = Study.read(place)
    search = _Search.of(study)

    def step(_: Study, name: str) -> Power:
        if not (place / name / "study.json").is_file():
            raise NotFinished(
                f"The search in {place} is not finished: {name} is missing. Run the same command "
                "again; it goes on from here."
            )
        return read(place / name, "power", summarise)

    found = search.follow(step)
    return replace(found, versions=identity["versions"])


def read_power_or_search(
    folder: str | os.PathLike[str],
) -> Power | SmallestDesign | Sequential | ModelPower:
    """Read what `power` left: a study, of a rule, of models, or a search with its steps."""
    study, _ = Study.read(folder)
    if "rivals" in study.cells[0].options:
        return read_model_power(folder)
    if "rule" in study.cells[0].options:
        return read_sequential(folder)
    # The cell that names a search's own folder; those of its steps are named after the step.
    if study.cells[0].law.get("part_of_search") == "start":
        return read_smallest_design(folder)
    return read_power(folder)


@dataclass(frozen=True)
class _Search:
    """What is searched; the path is a function of the results, so that it can be gone again."""

    question: Sought
    asked: AskSmallest
    content: Mapping[str, Any]

    @classmethod
    def of(cls, study: Study) -> _Search:
        """Rebuild the search from the study of its folder."""
        told, cell = study.question, study.cells[0]
        names = {own.name for own in fields(AskSmallest)} & set(told)
        asked: dict[str, Any] = {name: told[name] for name in names}
        asked["environment"] = make(cell.environment, **cell.settings)
        asked["truth"] = {k: v for k, v in told["set"].items() if k not in cell.settings}
        asked["effect_sd"] = told["effect_sd"] or 0.0
        asked["pilot"] = Pilot.of(cell)
        asked |= {"unconverged": False, "run": None}
        question = AskSmallest(**asked)
        return cls(sought_in(question), question, told)

    @property
    def find(self) -> str:
        """What is varied."""
        return self.asked.find

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
            resolve_environment(self.question.environment, trials)
        except ValueError:
            return False
        return True

    def study(self, size: int, data_sets: int, name: str) -> Study:
        """Return the study of one size; its data sets belong to this name alone."""
        sizes = {name: getattr(self.asked, name) for name in FIND} | {self.find: size}
        cells = self.question.cells(
            [sizes["subjects"]],
            [sizes["sessions"]],
            [sizes["trials"]],
            self.asked.effect_sd,
            {"part_of_search": name},
        )
        return Study("power", cells, data_sets, self.asked.seed, "replicate", dict(self.content))

    def follow(self, result_of: Callable[[Study, str], Power]) -> SmallestDesign:
        """Go the way of the search; `result_of` computes or reads the study of a name."""
        target = self.asked.target
        curve = _Curve(self.sizes, target)
        steps: list[Characteristics] = []
        confirmation: Power | None = None
        message, confirmations = "", 0
        size = self._at_least(FIRST)
        while len(steps) < STEPS:
            name = f"step-{len(steps):02d}"
            steps.append(result_of(self.study(size, DATA_SETS, name), name).designs[0])
            curve.add(size, steps[-1].rejected.value * steps[-1].attempted, steps[-1].attempted)
            low, middle, high = curve.quantiles((1 - MASS) / 2, 0.5, (1 + MASS) / 2)
            if low > self.asked.most and size == self.sizes[-1]:
                power, what = steps[-1].rejected, self.question.aim.name(0.0)
                message = (
                    f"Even {self.sizes[-1]} {self.find} do not reach {target:.0%} {what}: "
                    f"there it is {power}. Raise --most, or change another size of the design."
                )
                confirmation = None
                break
            last = len(steps) == STEPS
            if high - low <= max(PRECISE * middle, self._spacing) or last:
                if confirmations == ATTEMPTS:
                    message = f"Not confirmed in {ATTEMPTS} fresh runs; the last is shown."
                    break
                size = self._at_least(middle)
                name = f"confirmation-{confirmations}"
                confirmation = result_of(self.study(size, self.asked.replicates, name), name)
                confirmations += 1
                fresh = confirmation.designs[0]
                if _reaches(fresh, target):
                    break
                curve.add(size, fresh.rejected.value * fresh.attempted, fresh.attempted)
                low, middle, high = curve.quantiles((1 - MASS) / 2, 0.5, (1 + MASS) / 2)
                message = "" if not last else "The search ended before a size was confirmed."
            size = self._at_least(min(middle, FASTEST * max(size_of(s, self.find) for s in steps)))
        low, middle, high = curve.quantiles((1 - MASS) / 2, 0.5, (1 + MASS) / 2)
        found = None if confirmation is None else size_of(confirmation.designs[0], self.find)
        return SmallestDesign(
            question=self.content,
            find=self.find,
            target=target,
            most=self.asked.most,
            size=found,
            low=low if low > self.asked.most else self._at_least(low),
            high=high if high > self.asked.most else self._at_least(high),
            steps=tuple(steps),
            confirmation=confirmation,
            message=message,
            versions=versions(),
        )

    @property
    def _spacing(self) -> float:
        return float(np.diff(self.sizes).min()) if len(self.sizes) > 1 else 1.0

    def _at_least(self, size: float) -> int:
        position = int(np.searchsorted(self.sizes, size - 1e-9))
        return self.sizes[min(position, len(self.sizes) - 1)]


def _reaches(design: Characteristics, target: float) -> bool:
    return design.rejected.value + 2 * design.rejected.error >= target


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

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return quantiles of the size."""
        density = np.exp(self.log_density - self.log_density.max()).sum(axis=1)
        cumulative = np.cumsum(density) / density.sum()
        log_size = np.log(self.size[:, 0])
        return tuple(float(np.exp(np.interp(share, cumulative, log_size))) for share in shares)
