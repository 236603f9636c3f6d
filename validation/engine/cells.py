"""The cells of a study: a design, the population that is in it, and how it is analysed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from knownminds.environments import Environment, make

# Settings that leave the streams of draws as they are where they have no value.
WITHOUT_DRAWS = ("thought_words", "stimuli")


class Stored:
    """A dataclass that is stored by the fields that say something."""

    def content(self) -> dict[str, Any]:
        """Return the fields whose values are not those that they have by default."""
        usual = type(self)()
        return {name: value for name, value in vars(self).items() if value != getattr(usual, name)}


@dataclass(frozen=True)
class Population(Stored):
    """How the parameters of subjects are drawn: by default each from the model's priors.

    Parameters
    ----------
    group : "hyperprior": mean and spread of each replicate's group are drawn from the hyperpriors.
    group_mean, group_sd : Mean and spread of the group by parameter, on the unconstrained scale.
    group_draws : Draws of a pilot's posterior, of which each replicate has one: "mean" and "sd",
        each [draws, parameters], and of two groups the "second" mean.
    pilot, lost : What the draws come from; how many answers it lacks, and of how many.
    correlation, correlated : Correlations by pair, "alpha, beta"; whether they are drawn.
    formula : Of sessions, with weights that are drawn.
    effect, effect_sd : What the group has of the measure, and its spread over data sets.
    own_effect : Whether the effect is the pilot's own.
    condition : "second" for the other group or condition of a comparison.
    dial, observer : Of an audit's known agents: the position of their dial, or their kind.
    number, trials : Of an audit: what the addresses of its draws begin with.
    """

    group: Literal["hyperprior"] | None = None
    group_mean: Mapping[str, float] = field(default_factory=dict)
    group_sd: Mapping[str, float] = field(default_factory=dict)
    group_draws: Mapping[str, Any] = field(default_factory=dict)
    pilot: Mapping[str, Any] = field(default_factory=dict)
    lost: Sequence[int] = ()
    correlation: Mapping[str, float] = field(default_factory=dict)
    correlated: bool = False
    formula: Sequence[str] = ()
    effect: float | None = None
    effect_sd: float | None = None
    own_effect: bool = False
    condition: Literal["second"] | None = None
    dial: float = 0.0
    observer: str = ""
    number: int = 0
    trials: int = 0


@dataclass(frozen=True)
class CellAnalysis(Stored):
    """How the data of a cell are made and analysed, beside the method. No seed depends on it.

    Parameters
    ----------
    fixed, fit_lapse, all_trials : Of a fit: what is held, whether a lapse rate is estimated, and
        whether all trials are read.
    intervals : Of point estimates: "laplace" or "posterior".
    questions, adaptive : How many questions are chosen one by one, and for which model's
        parameters.
    rivals, criteria, lapse_in, separate : Models that are compared, by which criteria, which of
        them have a lapse rate, and the columns that sequences are left out by.
    measure, comparison : What is tested, and whether in one condition, between groups or in pairs.
    width, rope : What is counted instead of rejections: narrow intervals, or equivalence.
    rule, unit : Of a study that stops: the rule, and whether it counts subjects or sessions.
    run, dollars : What a run took, and the lowest and highest price of the whole design by it.
    goal, role, sizes, named : Of a search for a design: what it is for, what the design is in it,
        subjects, sessions and cost at each part of the budget, and the parameters that count.
    quantities, around, simulator : Of calibration: further quantities, the data set that truths are
        drawn around, and the file that plays the sessions.
    contaminants : What happens to answers in words.
    tests, permutations, bootstraps : Of the audit of coherence.
    tasks, prior_weight, shift, sigma, threshold : Of the audit of the consistency score.
    """

    fixed: Mapping[str, float] = field(default_factory=dict)
    fit_lapse: bool = False
    all_trials: bool = False
    intervals: Literal["laplace", "posterior"] = "laplace"
    questions: int | None = None
    adaptive: str | None = None
    rivals: Sequence[str] = ()
    criteria: Sequence[str] = ()
    lapse_in: Sequence[str] = ()
    separate: Sequence[str] | None = None
    measure: str = ""
    comparison: Literal["one", "between", "paired"] = "one"
    width: float | None = None
    rope: float | None = None
    rule: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)
    dollars: Sequence[float] = ()
    goal: str = ""
    role: str = ""
    sizes: Sequence[Sequence[Any]] = ()
    named: Sequence[str] = ()
    quantities: Sequence[str] = ()
    around: Mapping[str, str] = field(default_factory=dict)
    simulator: Mapping[str, str] = field(default_factory=dict)
    contaminants: Mapping[str, Any] = field(default_factory=dict)
    tests: Sequence[str] = ()
    permutations: int = 0
    bootstraps: int = 0
    tasks: Sequence[str] = ()
    prior_weight: float = 0.0
    shift: float = 0.0
    sigma: float = 0.0
    threshold: float = 0.0


@dataclass(frozen=True)
class Cell:
    """One combination of design, truth and method.

    Parameters
    ----------
    environment, settings : Name and constructor arguments of the experiment.
    model : Name of the model that generates the behaviour.
    truth : Parameters held at a value; the others are drawn.
    lapse : Lapse rate of the simulated subjects.
    population : How the other parameters are drawn.
    common : Designs with the same number share their random numbers.
    step : Of a search, the name of the step that it is a part of.
    sessions, subjects : Sessions each subject lives; subjects in a replicate.
    method, analysis : How it is analysed; these do not enter the data's seeds.
    batch : Units per batch; no result depends on it.
    """

    environment: str
    settings: Mapping[str, Any]
    model: str
    truth: Mapping[str, float] = field(default_factory=dict)
    lapse: float = 0.0
    population: Population = Population()
    common: int | None = None
    step: str = ""
    sessions: int = 1
    subjects: int = 1
    method: str = "map"
    analysis: CellAnalysis = CellAnalysis()
    batch: int = 512

    @cached_property
    def data_key(self) -> int:
        """A number for everything that shapes the data: equal for all methods of a design.

        Numbers of sessions and subjects are left out, so that a larger study begins with the
        same sessions.
        """
        if self.common is not None:
            return self.common
        settings = {
            name: value
            for name, value in self.settings.items()
            if value is not None or name not in WITHOUT_DRAWS
        }
        content = [self.environment, settings, self.model, self.truth, self.lapse]
        drawn = self.population.content() | ({"part_of_search": self.step} if self.step else {})
        return int(hash_of([*content, drawn] if drawn else content)[:15], 16)

    @cached_property
    def content_key(self) -> str:
        """A hash of everything that determines the numbers, given the seed."""
        return hash_of({k: v for k, v in self.content().items() if k != "batch"})

    def content(self) -> dict[str, Any]:
        """The fields, JSON-able."""
        parts = {"population": self.population.content(), "analysis": self.analysis.content()}
        return {one.name: getattr(self, one.name) for one in fields(self)} | parts

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Cell:
        """Return the cell of a content."""
        parts = Population(**content["population"]), CellAnalysis(**content["analysis"])
        return cls(**{**content, "population": parts[0], "analysis": parts[1]})

    def make(self) -> Environment:
        """Build the environment."""
        return make(self.environment, **self.settings)


def hash_of(content: Any) -> str:
    """Return the SHA-256 of a content as JSON."""
    text = json.dumps(content, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()
