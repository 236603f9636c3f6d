"""The best design for the money: a search by successive halving, and a fresh run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.environments import Environment
from knownminds.environments.record.folders import writable
from knownminds.environments.record.text_table import text_table
from knownminds.validation.costs.observed import about_run
from knownminds.validation.engine.arguments import (
    check_truth,
    resolve_environment,
    resolve_model,
    settings_asked,
)
from knownminds.validation.engine.engine import Running, claim, run
from knownminds.validation.engine.engine import read as read_rows
from knownminds.validation.engine.monte_carlo import NOTHING, Score
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import command_line, verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Cell, NotFinished, Rows, Study, versions
from knownminds.validation.power.pilot import Pilot, check_not_stated, model_of, read_pilot
from knownminds.validation.power.power_study import sought_in
from knownminds.validation.power.questions import AskPower

from .candidates import PUBLISHED, SHIPPED, Candidate, Costs, Shares, Space, candidates
from .goals import JUDGED_BY, MORE_IS_BETTER, Goal, judge_batch
from .measured import Measured, difference, gather
from .questions import AskDesign

FEWEST = 16  # data sets of a design in the first round of halving
FINALISTS = 8  # designs that stay to the end, at least
TRIALS_PER_BATCH = 1_000_000
MOST_PER_BATCH = 128  # data sets
DRAWS = 64  # of a pilot's posterior, which each design's law holds
START, FRESH = "start", "fresh"


@dataclass(frozen=True)
class Tried:
    """A design and what it is worth.

    Parameters
    ----------
    role
        "shipped", "published" or "searched".
    settings
        All of the experiment's settings.
    trials
        Of each session.
    cost
        Trials or dollars, all in all.
    """

    role: str
    settings: Mapping[str, Any]
    subjects: int
    sessions: int
    trials: int
    cost: float
    measured: Measured

    @property
    def score(self) -> Score:
        """What designs are judged by."""
        return self.measured["score"]

    @property
    def information(self) -> Score:
        """What a data set says, in bits."""
        return self.measured["information"]


@dataclass(frozen=True)
class Gain:
    """By how much the best design is above another one at the whole budget, in the fresh run.

    Parameters
    ----------
    over
        The role of the other one.
    score, information
        Differences on the same minds.
    """

    over: str
    score: Score
    information: Score

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the difference in score."""
        half = 1.959964 * self.score.error
        return self.score.value - half, self.score.value + half


@dataclass(frozen=True)
class BestDesign(Reported):
    """The outcome of a search.

    Parameters
    ----------
    question
        What was asked.
    goal
        For what.
    unit, budget
        "trials" or "dollars", and how many there are.
    place
        The experiment as shipped, with the settings that were given.
    tried
        Every design, at the whole budget, with all its data sets of the search.
    best
        Position of the best one among them.
    fresh
        The best design, the shipped and the paper's in data sets of their own, at parts of the
        budget.
    gains
        Over the shipped design and the paper's.
    rounds
        Of the search: designs and data sets of each.
    """

    question: Mapping[str, Any]
    goal: Goal
    unit: str
    budget: float
    place: Environment
    tried: tuple[Tried, ...]
    best: int
    fresh: tuple[Tried, ...]
    gains: tuple[Gain, ...]
    rounds: tuple[tuple[int, int], ...]
    seconds: float
    versions: Mapping[str, str]
    cell: Cell

    @property
    def winner(self) -> Tried:
        """The best design as the search saw it."""
        return self.tried[self.best]

    @property
    def confirmed(self) -> Tried:
        """The best design in the fresh run, at the whole budget."""
        return self.fresh_of(self.winner)[-1]

    def fresh_of(self, design: Tried) -> list[Tried]:
        """Return what the fresh run says of a design, from the smallest part of the budget on."""
        return [one for one in self.fresh if one.settings == design.settings]

    def of_role(self, role: str) -> Tried | None:
        """Return the shipped design or the paper's, if the budget affords it."""
        return next((one for one in self.tried if one.role == role), None)

    @property
    def judged_by(self) -> str:
        """What the score is: spread, chance or power."""
        return JUDGED_BY[self.goal.kind]

    def differences(self, design: Tried) -> dict[str, Any]:
        """Return the settings in which a design differs from the experiment as shipped."""
        own = self.place.settings
        return {name: value for name, value in design.settings.items() if value != own.get(name)}

    def recovery_command(self, design: Tried, subjects: int = 500) -> str:
        """Return the command that recovers a model's parameters from a design."""
        given = settings_asked(self.place) | self.differences(design)
        return command_line(
            "recover",
            self.place.name,
            model=self.cell.model,
            subjects=subjects,
            sessions=design.sessions if design.sessions > 1 else None,
            set=given,
            seed=self.question["seed"] + 1,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per design and run: "search", then "fresh"."""
        rows = []
        for stage, designs in (("search", self.tried), ("fresh", self.fresh)):
            for design in designs:
                row: dict[str, Any] = {
                    "run": stage,
                    "role": design.role,
                    "subjects": design.subjects,
                    "sessions": design.sessions,
                    "trials": design.trials,
                    "cost": design.cost,
                    "data_sets": design.measured.attempted,
                    "failed": design.measured.failed,
                }
                for name, score in design.measured.scores.items():
                    row[name], row[f"{name}_error"] = score.value, score.error
                rows.append(row | {"settings": self.differences(design)})
        return pd.DataFrame(rows)

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The designs."""
        return {"designs": self.to_frame()}

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "question": dict(self.question),
            "environment": self.place.name,
            "goal": {"kind": self.goal.kind, "names": self.goal.names, "size": self.goal.size},
            "judged_by": self.judged_by,
            "unit": self.unit,
            "budget": self.budget,
            "best": {
                **self.differences(self.winner),
                "subjects": self.winner.subjects,
                "sessions": self.winner.sessions,
                "trials": self.winner.trials,
                "cost": self.winner.cost,
                "score": self.confirmed.score,
                "information": self.confirmed.information,
                "recovery": self.recovery_command(self.winner),
            },
            "gains": [
                {
                    "over": gain.over,
                    "score": gain.score,
                    "interval": gain.interval,
                    "information": gain.information,
                }
                for gain in self.gains
            ],
            "rounds": [{"designs": n, "data_sets": k} for n, k in self.rounds],
            "designs": self.to_frame(),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """Return the answer in sentences, then the best designs and the fresh run."""
        lines = [*about_answer(self), ""]
        head = ("subjects x sessions x trials", self.unit, self.judged_by, "bits", "settings")
        for title, designs in (
            ("search, the best ten", self.ranked[:10]),
            ("fresh run", self.fresh),
        ):
            rows = [
                (
                    self.role_told(d),
                    f"{d.subjects} x {d.sessions} x {d.trials}",
                    f"{d.cost:.6g}",
                    d.score,
                    d.information if np.isfinite(d.information.value) else "-",
                    settings_told(self.differences(d)),
                )
                for d in designs
            ]
            lines += text_table((title, *head), rows, words=True)
        return "\n".join([*lines, "(Monte-Carlo errors)"])

    @property
    def ranked(self) -> list[Tried]:
        """The designs of the search that had all data sets, the best first."""
        most = max(one.measured.attempted for one in self.tried)
        last = [one for one in self.tried if one.measured.attempted == most]
        return sorted(last, key=lambda one: _loss(one.measured, self.goal))

    def role_told(self, design: Tried) -> str:
        """Name a design: the best, shipped, the paper's, or searched."""
        if design.settings == self.winner.settings:
            return "best"
        return {SHIPPED: "shipped", PUBLISHED: "the paper's"}.get(design.role, "searched")


def settings_told(settings: Mapping[str, Any]) -> str:
    """Write settings down; "as shipped" where there is nothing to tell."""
    return "; ".join(f"{k}={v}" for k, v in settings.items()) or "as shipped"


def about_answer(found: BestDesign) -> list[str]:
    """Give the answer in sentences."""
    best = found.winner
    size = f"{best.subjects} x {best.sessions} sessions of {best.trials} trials"
    cost = money(best.cost, found.unit)
    lines = [
        f"The best of {len(found.tried)} designs for {found.goal}: "
        f"{settings_told(found.differences(best))}, {size}, {cost}. In fresh data sets its "
        f"{found.judged_by} is {found.confirmed.score}."
    ]
    for gain in found.gains:
        other = found.of_role(gain.over)
        assert other is not None
        low, high = gain.interval
        name = {SHIPPED: "shipped design", PUBLISHED: "paper's design"}[gain.over]
        fresh = found.fresh_of(other)[-1]
        lines.append(
            f"The {name} has {fresh.score} for {money(fresh.cost, found.unit)}: the best one's "
            f"{found.judged_by} is {gain.score.value:+.3f} (95% interval {low:+.3f} to "
            f"{high:+.3f})."
        )
    if found.of_role(SHIPPED) is None:
        lines.append("The budget does not afford the shipped design.")
    pilot = Pilot.of(found.cell)
    run = found.cell.options.get("run")
    return [*lines, *(pilot.sentences if pilot else []), *([about_run(run)] if run else [])]


def money(cost: float, unit: str) -> str:
    """Write a cost down, in dollars or trials."""
    if unit == "trials":
        return f"{cost:,.10g} trials"
    return f"${cost:,.3g}" if cost < 1 else f"${cost:,.2f}"


best_design = verb(AskDesign, __name__)


def compute(question: AskDesign) -> BestDesign:
    """Answer what `best_design` is asked."""
    search = _Search(_start(question))
    check_step_loop(replace(search.start, cells=search.start.cells[: search.strata]))
    running = question.running
    if question.share is not None:
        raise ValueError("A search goes step by step and has no shares; use workers or dask.")
    out = running.pop("out", None)
    if out is None:
        return search.follow(lambda study, _, found: run(study, judge_batch, found, **running))
    with writable(out) as folder:
        claim(search.start, folder)

    def step(study: Study, name: str, found: Callable[[Rows], Any]) -> Any:
        there: Running = {**running, "out": folder / name}
        return run(study, judge_batch, found, **there)

    return search.follow(step)


def read_best_design(folder: str | os.PathLike[str]) -> BestDesign:
    """Read a finished search from its folder; nothing is computed anew."""
    place = Path(folder)
    study, identity = Study.read(place)
    if study.cells[0].law.get("part_of_search") != START:
        raise ValueError(
            f"{place} holds one step of a search, which is read as a whole; got its folder. Name "
            "the folder above it."
        )

    def step(_: Study, name: str, found: Callable[[Rows], Any]) -> Any:
        if not (place / name / "study.json").is_file():
            raise NotFinished(
                f"The search in {place} is not finished: {name} is missing. Run the same command "
                "again; it goes on from here."
            )
        return read_rows(place / name, "design", found)

    return replace(_Search(study).follow(step), versions=identity["versions"])


def _start(question: AskDesign) -> Study:
    """Check what is asked, and write down every design that is to be tried."""
    for name, least in (("designs", 2), ("replicates", 2), ("fresh", 2), ("subjects", 1)):
        if getattr(question, name) < least:
            raise ValueError(
                f"The number of {name} is at least {least}; got {getattr(question, name)}."
            )
    place = resolve_environment(question.environment, question.trials)
    model = resolve_model(question.model)
    goal = Goal.of(question.goal, model)
    rivals = [AGENTS[name] for name in goal.names] if goal.kind == "models" else [model]
    for one in rivals:
        one.check_plays(place)
    pilot = _pilot(question, place, rivals)
    truth: dict[str, float] = {}
    for one in rivals:
        own = {k: v for k, v in (question.truth or {}).items() if k in one.parameters.names}
        truth |= check_truth(one.parameters, own)
    costs = Costs.of(question, rivals[0])
    run = costs.observed.told() if costs.observed else None
    if costs.observed and costs.observed.place.name != place.name:
        raise ValueError(
            f"Sessions are priced by a run of the same experiment; {question.run} is of "
            f"{costs.observed.place.name}, and the search of {place.name}."
        )
    shares = _shares(question, goal)
    fixed = [*settings_asked(place), *([place.size] if question.trials and place.size else [])]
    space = Space.of(place, list(question.search or ()), fixed, shares.subjects is None)

    def possible(environment: Environment) -> None:
        for one in rivals:
            one.check_plays(environment)
        if goal.kind == "effect":
            _sought(question, goal, environment, pilot).check_identified([None])

    found = candidates(space, costs, shares, question.designs, possible)
    cells = [cell for one in found for cell in _cells(question, goal, one, truth, pilot, run)]
    batch = _batch(found, goal, question.estimator)
    cells = [replace(cell, batch=batch) for cell in cells]
    trials = None if question.trials is None else place.n_trials
    asked = question.asked() | {"trials": trials, "for": question.goal}
    return Study("design", tuple(cells), question.replicates, question.seed, "replicate", asked)


def _shares(question: AskDesign, goal: Goal) -> Shares:
    """Say how the budget is shared out."""
    if goal.kind != "effect":
        if question.sessions is not None:
            raise ValueError(
                "Sessions of each participant are given for an effect; got "
                f"--sessions {question.sessions} --for {question.goal}. Leave them out."
            )
        return Shares(question.subjects, None)
    conditions = 1 if question.comparison == "one" else 2
    allocated = any(text.split("=")[0] == "sessions" for text in question.search or ())
    if question.sessions is None and not allocated:
        return Shares(question.subjects, None, conditions, 2)
    if question.subjects != 1:
        raise ValueError(
            "With sessions given, the budget is spent on participants; got both "
            f"--subjects {question.subjects} and --sessions. Leave one out."
        )
    return Shares(None, question.sessions or 1, conditions, 2)


def _pilot(
    question: AskDesign, environment: Environment, models: Sequence[type[Agent]]
) -> Pilot | None:
    """Read the pilot of a search, if it has one: a fit of the model, or of one of the rivals."""
    if question.pilot is None:
        if question.unconverged:
            raise ValueError("--unconverged is said of a pilot; add --from FIT.")
        return None
    check_not_stated({"--set": question.truth})
    fitted = model_of(question.pilot)
    model = next((one for one in models if one.name == fitted), models[0])
    return read_pilot(question.pilot, environment.name, model, question.unconverged, DRAWS)


def _sought(question: AskDesign, goal: Goal, environment: Environment, pilot: Pilot | None) -> Any:
    """Write down the effect that is looked for in an experiment, as `power` does."""
    return sought_in(
        AskPower(
            environment,
            {goal.names[0]: goal.size},
            model=question.model,
            comparison=question.comparison,
            estimator=question.estimator,
            truth=question.truth,
            pilot=pilot,
        )
    )


def _cells(
    question: AskDesign,
    goal: Goal,
    one: Candidate,
    truth: Mapping[str, float],
    pilot: Pilot | None,
    run: Mapping[str, Any] | None,
) -> list[Cell]:
    """Write down a design at the whole budget: a cell, or one for each rival."""
    size = one.sizes[-1]
    options = {
        "goal": goal.kind,
        "role": one.role,
        "sizes": [[s.subjects, s.sessions, s.cost] for s in one.sizes],
        **({"run": run} if run else {}),
    }
    law = {"part_of_search": START, "common": 0}
    environment = one.environment
    if goal.kind == "effect":
        sought = _sought(question, goal, environment, pilot)
        (cell,) = sought.cells([size.subjects], [size.sessions], [None], mark=law)
        return [replace(cell, options={**cell.options, **options})]
    plain = Cell(environment.name, environment.settings, "", law=law, sessions=size.sessions)
    if goal.kind == "parameters":
        more: dict[str, Any] = {"named": list(goal.names)}
        names = [resolve_model(question.model).name]
    else:
        more, names = {"rivals": list(goal.names)}, list(goal.names)
    return [
        replace(
            plain,
            model=name,
            law=law | (pilot.law() if pilot and pilot.model == name else {}),
            truth={k: v for k, v in truth.items() if k in AGENTS[name].parameters.names},
            options={**options, **more},
        )
        for name in names
    ]


def _batch(found: Sequence[Candidate], goal: Goal, estimator: str) -> int:
    """Return how many data sets make a batch: as many of each design, so that they pair."""
    if estimator == "hierarchical" and goal.kind == "effect":
        return 1
    most = max(
        one.environment.n_trials
        * one.sizes[-1].sessions
        * (one.sizes[-1].subjects if goal.kind == "effect" else 1)
        for one in found
    )
    return max(1, min(MOST_PER_BATCH, TRIALS_PER_BATCH // most))


@dataclass(frozen=True)
class _Search:
    """What is searched; the path is a function of the results, so that it can be gone again.

    Parameters
    ----------
    start
        The study of the search's own folder: all designs at the whole budget.
    """

    start: Study

    @cached_property
    def goal(self) -> Goal:
        """For what."""
        cell, told = self.start.cells[0], self.start.question
        return Goal.of(told["for"], AGENTS[cell.model])

    @property
    def strata(self) -> int:
        """Cells of each design."""
        return len(self.goal.names) if self.goal.kind == "models" else 1

    def cells_of(self, design: int) -> tuple[Cell, ...]:
        """Return the cells of a design."""
        return self.start.cells[design * self.strata : (design + 1) * self.strata]

    @property
    def plan(self) -> list[tuple[float, int]]:
        """Of each round, which share of the designs is left, and data sets in all so far."""
        n, replicates = len(self.start.cells) // self.strata, self.start.replicates
        rounds = 1
        if not self.start.question.get("thorough"):
            rounds += max(0, floor(log2(max(1.0, min(n / FINALISTS, replicates / FEWEST)))))
        return [(0.5**k, ceil(replicates / 2 ** (rounds - 1 - k))) for k in range(rounds)]

    def study(self, name: str, members: Sequence[tuple[Cell, ...]], data_sets: int) -> Study:
        """Return the study of one step; its data sets belong to this name alone."""
        # Rounds are numbered from 1 on; the fresh run shares no number with any of them.
        number = 0 if name == FRESH else 1 + int(name.rpartition("-")[2])
        law = {"part_of_search": name, "common": number}
        cells = tuple(replace(c, law={**c.law, **law}) for cells in members for c in cells)
        each = ceil(data_sets / self.strata)
        question = dict(self.start.question)
        return Study("design", cells, each, self.start.seed, "replicate", question)

    def follow(self, result_of: Callable[[Study, str, Callable[[Rows], Any]], Any]) -> BestDesign:
        """Go the way of the search; `result_of` computes or reads the study of a name."""
        n = len(self.start.cells) // self.strata
        alive, had = list(range(n)), 0
        found: dict[int, Measured] = {}
        kept = {d for d in range(n) if self.cells_of(d)[0].options["role"] != "searched"}
        rounds = []
        for k, (left, data_sets) in enumerate(self.plan):
            order = sorted(alive, key=lambda d: _loss(found[d], self.goal)) if found else alive
            least = max(ceil(left * n), min(FINALISTS, n))
            alive = sorted({*order[:least], *kept})
            members = [self.cells_of(d) for d in alive]
            name = f"round-{k}"
            study = self.study(name, members, data_sets - had)
            news = result_of(study, name, partial(gather, members=[self.strata] * len(alive)))
            for d, new in zip(alive, news, strict=True):
                found[d] = found[d].together(new) if d in found else new
            rounds.append((len(alive), data_sets))
            had = data_sets
        best = min(alive, key=lambda d: _loss(found[d], self.goal))
        tried = tuple(self._tried(self.cells_of(d), -1, found[d]) for d in range(n))
        fresh, gains = self._fresh(result_of, best, sorted(kept - {best}))
        unit, budget = str(self.start.question["budget"]).split("=")
        seconds = sum(one.measured.seconds for one in (*tried, *fresh))
        own = self.cells_of(0)
        cell = next((one for one in own if "pilot" in one.law), own[0])
        return BestDesign(
            question=dict(self.start.question),
            goal=self.goal,
            unit=unit,
            budget=float(budget),
            place=self.place,
            tried=tried,
            best=best,
            fresh=tuple(fresh),
            gains=tuple(gains),
            rounds=tuple(rounds),
            seconds=seconds,
            versions=versions(),
            cell=cell,
        )

    @property
    def place(self) -> Environment:
        """The experiment as shipped, with the settings that were given."""
        told, name = self.start.question, self.start.cells[0].environment
        parameters = {n for c in self.start.cells for n in AGENTS[c.model].parameters.names}
        given = {k: v for k, v in told["set"].items() if k not in parameters}
        base = resolve_environment(name)
        changed = type(base)(**base.settings | given)
        return resolve_environment(changed, told.get("trials"))

    def _fresh(
        self, result_of: Callable[..., Any], best: int, others: Sequence[int]
    ) -> tuple[list[Tried], list[Gain]]:
        """Measure the best design and those it is held against in data sets of their own."""
        members, sizes = [], []
        for design in (best, *others):
            cells = self.cells_of(design)
            for k, (subjects, sessions, _) in enumerate(cells[0].options["sizes"]):
                members.append(
                    tuple(replace(c, subjects=subjects, sessions=sessions) for c in cells)
                    if self.goal.kind == "effect"
                    else tuple(replace(c, sessions=sessions) for c in cells)
                )
                sizes.append((design, k))
        last = {design: i for i, (design, _) in enumerate(sizes)}
        study = self.study(FRESH, members, int(self.start.question["fresh"]))

        def cells_at(position: int) -> list[int]:
            return [position * self.strata + m for m in range(self.strata)]

        def summarise(rows: Rows) -> tuple[list[Measured], list[Gain]]:
            found = gather(rows, [self.strata] * len(members))
            gains = []
            for other in others:
                pair = cells_at(last[best]), cells_at(last[other])
                role = self.cells_of(other)[0].options["role"]
                score = difference(rows, *pair, "score")
                told = self.goal.kind != "effect"
                information = difference(rows, *pair, "information") if told else NOTHING
                gains.append(Gain(role, score, information))
            return found, gains

        found, gains = result_of(study, FRESH, summarise)
        fresh = [
            self._tried(cells, k, measured)
            for cells, (_, k), measured in zip(members, sizes, found, strict=True)
        ]
        return fresh, gains

    def _tried(self, cells: Sequence[Cell], size: int, measured: Measured) -> Tried:
        cell = cells[0]
        subjects, sessions, cost = cell.options["sizes"][size]
        return Tried(
            cell.options["role"],
            cell.settings,
            subjects,
            sessions,
            cell.make().n_trials,
            cost,
            measured,
        )


def _loss(measured: Measured, goal: Goal) -> float:
    """Return what is to be small; of designs without any usable data set it is infinite."""
    value = measured["score"].value
    if not np.isfinite(value):
        return float("inf")
    return -value if MORE_IS_BETTER[goal.kind] else value
