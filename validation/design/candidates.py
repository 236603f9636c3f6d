"""Designs that a search goes through, and how many sessions of each the budget affords."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import ceil
from typing import Any, NoReturn

import scipy

from knownminds.agents import Model
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, make, session_stream
from knownminds.environments.search_ranges import Among, Searched, Span, ranges_of
from knownminds.llm_adapters.runs.prices import Price, Range, price_of
from knownminds.validation.costs.dry_runs import DryRuns, dry_runs_of
from knownminds.validation.costs.observed import Observed
from knownminds.validation.engine.arguments import MOST_TRIALS

DRY_RUNS = 4
SIMULATED = 64  # sessions, where trials may fall away
IMAGE_TOKENS = Range(85, 8500)
SHORTEST_OF = 32  # draws, among which the smallest design is looked for
SURELY = 2.0  # times the budget: designs that seem to cost more are not priced
ATTEMPTS = 20  # draws for each design that is wanted: some are impossible, or too dear
PARTS = (0.125, 0.25, 0.5, 1.0)  # of the budget, at which the fresh run measures
SHIPPED, PUBLISHED, SEARCHED = "shipped", "published", "searched"


@dataclass(frozen=True)
class Size:
    """How often a design is run, and what that costs.

    Parameters
    ----------
    cost : In the budget's unit, all subjects, sessions and conditions together.
    """

    subjects: int
    sessions: int
    cost: float


@dataclass(frozen=True)
class Candidate:
    """A design: an experiment with its settings, and its size at each of `PARTS` of the budget.

    Parameters
    ----------
    role : "shipped", "published" (the paper's, where it is another one) or "searched".
    sizes : From the smallest part of the budget that affords it to the whole.
    """

    role: str
    environment: Environment
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class BudgetShares:
    """How a budget is shared out.

    Parameters
    ----------
    subjects : How many, or None where as many as the budget affords.
    sessions : Of each, or None where as many as the budget affords.
    conditions : How often all of that is run: 2 for two groups or two conditions.
    least : Units (subjects, or sessions of one agent) that an analysis needs.
    """

    subjects: int | None
    sessions: int | None
    conditions: int = 1
    least: int = 1

    def of(self, afforded: int, sessions: int | None = None) -> tuple[int, int] | None:
        """Return subjects and sessions of each, of so many sessions in all; None if too few."""
        each = afforded // self.conditions
        fixed = sessions or self.sessions
        if self.subjects is None:
            assert fixed is not None
            return (each // fixed, fixed) if each // fixed >= self.least else None
        shares = each // self.subjects
        enough = shares >= (self.least if self.subjects == 1 else 1)
        return (self.subjects, shares) if enough else None

    @property
    def fewest(self) -> int:
        """Sessions in all of the smallest design."""
        if self.subjects is None:
            return self.conditions * self.least * (self.sessions or 1)
        return self.conditions * self.subjects * (self.least if self.subjects == 1 else 1)


@dataclass(frozen=True)
class Costs:
    """What sessions cost, in trials or in dollars of a dry run through the real prompts."""

    unit: str
    budget: float
    model: type[Model]
    price: Price | None = None
    reasoning: Range = field(default_factory=lambda: Range(0, 0))
    seed: int = 0
    observed: Observed | None = None

    @classmethod
    def of(cls, question: Any, model: type[Model]) -> Costs:
        """Check budget and trials."""
        if len(question.budget) != 1 or not {"trials", "dollars"} & set(question.budget):
            raise ValueError(
                "A budget is a number of trials or of dollars, trials=500 or dollars=20; got "
                f"{dict(question.budget)}."
            )
        ((unit, most),) = question.budget.items()
        if not 0 < most < float("inf"):
            raise ValueError(f"A budget is a number above 0; got {unit}={most:g}.")
        if unit == "trials":
            if question.llm is not None:
                raise ValueError(
                    f"A budget in trials has no prices; got --llm {question.llm}. Give dollars=."
                )
            if question.run is not None:
                raise ValueError(
                    f"A budget in trials has no prices; got --run {question.run}. Give dollars=."
                )
            return cls(unit, float(int(most)), model, seed=question.seed)
        if question.run is not None:
            if question.llm is not None:
                raise ValueError(
                    f"A run tells its language model and its prices; got --llm {question.llm} and "
                    "--run. Leave one of them out."
                )
            observed = Observed.read(question.run, question.seed)
            price = observed.priced()
            return cls(unit, float(most), model, price, seed=question.seed, observed=observed)
        if question.llm is None:
            raise ValueError(
                "A budget in dollars needs a language model, --llm PROVIDER:MODEL, or a run that "
                "tells what one took, --run FOLDER."
            )
        day = question.date
        return cls(
            unit,
            float(most),
            model,
            price_of(question.llm, day),
            Range(*question.reasoning),
            question.seed,
        )

    def sessions_in(self, environment: Environment) -> PricedSessions:
        """Return what so many sessions of an experiment cost, and how many are afforded."""
        if self.price is None:
            return PricedSessions(self.lived_in(environment), None, None)
        if self.observed is not None:
            planned = self.observed.planned(environment, self.model, DRY_RUNS)
            return PricedSessions(environment.n_trials, self.price, planned)
        runs = dry_runs_of(
            environment, self.model, DRY_RUNS, self.seed, self.reasoning, IMAGE_TOKENS
        )
        return PricedSessions(environment.n_trials, self.price, runs)

    def lived_in(self, environment: Environment) -> float:
        """Return how many trials a session has: a mean, where some may fall away."""
        if not environment.ends_early and "present" not in environment.drawn:
            return environment.n_trials
        theta = self.model.parameters.draw(session_stream(self.seed), SIMULATED)
        simulated = simulate_sessions(self.model, theta, environment, self.seed)
        return len(simulated.trial) / SIMULATED


@dataclass(frozen=True)
class PricedSessions:
    """Sessions of one experiment and what they cost."""

    trials: float
    price: Price | None
    runs: DryRuns | None

    def afforded(self, budget: float) -> int:
        """Return how many a budget affords."""
        if self.runs is None or self.price is None:
            return int(budget / self.trials + 1e-9)
        return self.runs.affordable(self.price, Decimal(repr(budget)))

    def cost(self, n: int) -> float:
        """Return what n cost: trials, or dollars at the upper end of the range."""
        if self.runs is None or self.price is None:
            return round(n * self.trials, 1)
        return float(self.runs.dollars(self.price, n).high)


@dataclass(frozen=True)
class Space:
    """What is searched: each setting with the values that are tried."""

    experiment: Environment
    searched: Mapping[str, Searched]

    @classmethod
    def of(
        cls, environment: Environment, names: Sequence[str], fixed: Sequence[str], sessions: bool
    ) -> Space:
        """Read what `--search` says; ValueError at a setting that cannot be searched.

        Parameters
        ----------
        fixed : Settings that were given, which are searched only if they are named.
        sessions : Whether sessions of a participant can be searched.
        """
        declared = ranges_of(environment)
        known = declared | ({"sessions": Searched((Span(1, 16),))} if sessions else {})
        searched: dict[str, Searched] = {}
        for text in names:
            name, equals, values = text.partition("=")
            name = environment.size if name == "trials" and environment.size else name
            if name not in known:
                raise ValueError(
                    f"A search goes through settings of {environment.name} that have a range: "
                    f"{', '.join(known) or 'none'}; got {name!r}."
                )
            searched[name] = (
                _read(text, values, environment.settings.get(name, 1)) if equals else known[name]
            )
        if not names:
            searched = {name: how for name, how in declared.items() if name not in fixed}
        if not searched:
            raise ValueError(
                f"{environment.name} has no setting with a range to search that is not given; "
                f"its settings are {', '.join(environment.settings) or 'none'}."
            )
        return cls(environment, searched)

    @property
    def ends_of_size(self) -> tuple[float, float]:
        """The smallest and the largest size of a session that is searched."""
        (only,) = self.searched[str(self.experiment.size)].parts
        if isinstance(only, Span):
            return only.least, only.most
        return min(only.values), max(only.values)

    @cached_property
    def _ends(self) -> list[int]:
        ends = [0]
        for how in self.searched.values():
            ends.append(ends[-1] + len(how.parts))
        return ends

    def draws(self, n: int, seed: int) -> Iterator[dict[str, Any]]:
        """Go through n combinations of settings that fill the space evenly."""
        shares = scipy.stats.qmc.Halton(self._ends[-1], scramble=True, rng=seed).random(n)
        for row in shares:
            yield {
                name: how.at(row[self._ends[k] : self._ends[k + 1]].tolist())
                for k, (name, how) in enumerate(self.searched.items())
            }


def candidates(
    space: Space, costs: Costs, shares: BudgetShares, n: int, possible: Callable[[Environment], Any]
) -> list[Candidate]:
    """Return the shipped design, the paper's and designs of the space, n in all or fewer.

    Parameters
    ----------
    possible : Raises ValueError for an experiment in which the goal cannot be pursued.

    Raises
    ------
    ValueError : If the budget affords none of them.
    """
    experiment = space.experiment
    designs: list[Candidate] = []
    seen: set[str] = set()
    cheapest = float("inf")
    trials, per_trial = None, 0.0
    if costs.price is not None:
        per_trial = _dollars_per_trial(space, costs, shares)
    if costs.unit == "trials" and shares.subjects is not None:
        trials = int(costs.budget) // (shares.conditions * shares.subjects)
    fixed_designs = [(SHIPPED, experiment, None)]
    paper = {**experiment.settings, **experiment.published}
    if paper != experiment.settings:
        fixed_designs.append((PUBLISHED, make(experiment.name, **paper), None))
    for role, environment, each in (*fixed_designs, *_built(space, costs, n, trials)):
        if len(designs) >= n:
            break
        key = json.dumps([environment.settings, each], sort_keys=True, default=str)
        if key in seen or environment.n_trials > MOST_TRIALS:
            continue
        seen.add(key)
        try:
            costs.model.check_plays(environment)
            possible(environment)
        except ValueError:
            if role == SHIPPED:
                raise
            continue
        if role == SEARCHED and _dear(per_trial * environment.n_trials, costs):
            continue
        priced = costs.sessions_in(environment)
        cheapest = min(cheapest, priced.cost(shares.fewest))
        sizes = _sizes(priced, costs.budget, shares, each)
        if sizes:
            designs.append(Candidate(role, environment, sizes))
    if not any(one.role == SEARCHED for one in designs):
        _refuse(costs, cheapest)
    return designs


def _refuse(costs: Costs, cheapest: float) -> NoReturn:
    what = f"${cheapest:.2g}" if costs.unit == "dollars" else f"{cheapest:g} trials"
    raise ValueError(
        f"The budget affords no design that is searched: the smallest costs {what}; got "
        f"{costs.unit}={costs.budget:g}. Raise it, or search smaller ones with --search."
    )


def _dear(dollars: float, costs: Costs) -> bool:
    """Say whether a guess is so far above the budget that a design need not be priced."""
    return dollars > SURELY * costs.budget


def _dollars_per_trial(space: Space, costs: Costs, shares: BudgetShares) -> float:
    """Return what a trial costs in the shortest session, for as few sessions as are needed.

    Prompts that tell of earlier trials grow, so longer sessions cost more for each trial.

    Raises
    ------
    ValueError : If the budget is clearly below the smallest design: no dry run of others is needed.
    """
    experiment, size = space.experiment, space.experiment.size
    shortest = [experiment]
    for drawn in space.draws(SHORTEST_OF, costs.seed):
        drawn.pop("sessions", None)
        if size in drawn:
            drawn[str(size)] = space.ends_of_size[0]
        try:
            environment = make(experiment.name, **{**experiment.settings, **drawn})
            costs.model.check_plays(environment)
        except ValueError:
            continue
        shortest.append(environment)
    least = min(shortest, key=lambda environment: environment.n_trials)
    dollars = costs.sessions_in(least).cost(shares.fewest)
    if _dear(dollars, costs):
        _refuse(costs, dollars)
    return dollars / least.n_trials


def _filled(
    environment: Environment, trials: int, ends: tuple[float, float], costs: Costs
) -> Environment:
    """Return the experiment with sessions of a length that leaves hardly any trials over."""
    size = str(environment.size)
    per_unit = costs.lived_in(environment) / environment.settings[size]
    shortest, longest = ends
    wanted = trials / per_unit  # units in all
    sessions = max(1, round(wanted / environment.settings[size]), ceil(wanted / longest))
    longer = int(wanted / sessions + 1e-9)
    if longer < shortest:
        return environment
    return make(environment.name, **{**environment.settings, size: longer})


def _built(
    space: Space, costs: Costs, n: int, trials: int | None
) -> Iterator[tuple[str, Environment, int | None]]:
    """Make experiments of the space's settings, as far as they go together.

    With a budget of so many trials for each agent, the lengths that are drawn say how many sessions
    there are; sessions are as long as the budget then affords.
    """
    size = space.experiment.size
    for drawn in space.draws(ATTEMPTS * n, costs.seed):
        sessions = drawn.pop("sessions", None)
        try:
            environment = make(space.experiment.name, **{**space.experiment.settings, **drawn})
            if trials and size in drawn and environment.size == size:
                environment = _filled(environment, trials, space.ends_of_size, costs)
        except ValueError:
            continue
        yield SEARCHED, environment, sessions


def _sizes(
    priced: PricedSessions, budget: float, shares: BudgetShares, each: int | None
) -> tuple[Size, ...]:
    """Return the sizes that the parts of a budget afford, each once, the whole budget's last."""
    sizes: dict[tuple[int, int], Size] = {}
    for part in PARTS:
        size = shares.of(priced.afforded(part * budget), each)
        if size is not None:
            cost = priced.cost(shares.conditions * size[0] * size[1])
            sizes[size] = Size(*size, cost)
    return tuple(sizes.values())


def _read(text: str, values: str, present: Any) -> Searched:
    """Read LOW:HIGH or a list of values."""
    low, colon, high = values.partition(":")
    try:
        if colon and not values.startswith("["):
            whole = isinstance(present, int) and not isinstance(present, bool)
            least, most = (int(end) if whole else float(end) for end in (low, high))
            if not least < most:
                raise ValueError
            step = 1.0 if whole else (most - least) / 1000.0
            return Searched((Span(least, most, step),))
        listed = json.loads(values)
        if not isinstance(listed, list) or not listed:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"--search takes NAME, NAME=LOW:HIGH or NAME=[..., ...]; got {text!r}."
        ) from None
    return Searched((Among(tuple(listed)),))
