"""The best design for the money: a search by successive halving, and a fresh run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import Environment, make
from knownminds.validation.engine.arguments import (
    changed_settings,
    check_truth,
    resolve_environment,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import command_line, verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import NOTHING, Score
from knownminds.validation.engine.study import Rows, Study, read_study
from knownminds.validation.engine.verdicts import (
    CONFIRMED,
    JudgedNumber,
    Verdict,
    judge,
    not_judged,
)
from knownminds.validation.pages.views import Curves
from knownminds.validation.power.pilot import Pilot, pilot_of
from knownminds.validation.power.power_study import effect_search, notes_of
from knownminds.validation.power.questions import Power

from .candidates import PUBLISHED, SHIPPED, BudgetShares, Candidate, Costs, Space, candidates
from .goals import JUDGED_BY, MORE_IS_BETTER, Goal, judge_batch
from .measured import Measured, difference, gather
from .questions import AskDesign

FEWEST = 16  # data sets of a design in the first round of halving
FINALISTS = 8  # designs that stay to the end, at least
TRIALS_PER_BATCH = 1_000_000
MOST_PER_BATCH = 128  # data sets
DRAWS = 64  # of a pilot's posterior, which each design's population holds
START, FRESH = "start", "fresh"
NAMES = {SHIPPED: "shipped", PUBLISHED: "the paper's"}
NOTES = (
    "Monte-Carlo standard errors in parentheses. All designs of a round have the same agents and "
    "random numbers. After each round but the last the worse half is left out; the shipped design "
    "and the paper's stay. The fresh run draws numbers of its own and does not enter the search; "
    "gains are differences in it at the whole budget, on the same agents. Data sets that could not "
    "be judged are left out of the means and counted. settings: those that differ from the "
    "experiment as shipped.",
    "spread: the posterior standard deviation on the unconstrained scale, in standard deviations "
    "of the prior, mean over the named parameters and over agents. chance: how often the most "
    "probable model, given the data, is the true one, each being equally probable beforehand. "
    "power: share of data sets whose test rejects at 5%. bits: the expected information (mutual "
    "information with the data), by nested Monte Carlo with importance sampling around each data "
    "set's mode (Ryan, Drovandi, McGree and Pettitt 2016).",
)

best_design = verb(AskDesign, __name__)


def compute(question: AskDesign) -> Result:
    """Answer `design`."""
    search = _Search(_start(question))
    check_step_loop(replace(search.start, cells=search.start.cells[: search.strata]))
    return search.follow(computed_steps(search.start, judge_batch, question))


def read(folder: str | Path) -> Result:
    """Return what the search in a folder says, as far as it went."""
    path = Path(folder)
    study, _ = read_study(path)
    if study.cells[0].step != START:
        raise ValueError(
            f"{path} holds one step of a search, which is read as a whole; got its folder. Name "
            "the folder above it."
        )

    return _Search(study).follow(stored_steps(path))


def _start(question: AskDesign) -> Study:
    """Check the options, and write down every design that is to be tried."""
    for name, least in (("designs", 2), ("replicates", 2), ("fresh", 2), ("subjects", 1)):
        if getattr(question, name) < least:
            raise ValueError(
                f"The number of {name} is at least {least}; got {getattr(question, name)}."
            )
    environment = resolve_environment(question.environment, question.trials)
    model = question.agent
    goal = Goal.of(question.goal, model)
    rivals = [AGENTS[name] for name in goal.names] if goal.kind == "models" else [model]
    for one in rivals:
        one.check_plays(environment)
    stated = {"--set": question.truth}
    pilot = pilot_of(question.pilot, question.unconverged, environment.name, rivals, stated, DRAWS)
    truth: dict[str, float] = {}
    for one in rivals:
        true_values = {k: v for k, v in (question.truth or {}).items() if k in one.parameters.names}
        truth |= check_truth(one.parameters, true_values)
    costs = Costs.of(question, rivals[0])
    run = costs.observed.as_dict() if costs.observed else None
    if costs.observed and costs.observed.environment.name != environment.name:
        raise ValueError(
            f"Sessions are priced by a run of the same experiment; {question.run} is of "
            f"{costs.observed.environment.name}, and the search of {environment.name}."
        )
    shares = _shares(question, goal)
    fixed = [
        *changed_settings(environment),
        *([environment.size] if question.trials and environment.size else []),
    ]
    space = Space.of(environment, list(question.search or ()), fixed, shares.subjects is None)

    def possible(environment: Environment) -> None:
        for one in rivals:
            one.check_plays(environment)
        if goal.kind == "effect":
            _sought(question, goal, environment, pilot).check_identified([None])

    several_designs = candidates(space, costs, shares, question.designs, possible)
    cells = [
        cell for one in several_designs for cell in _cells(question, goal, one, truth, pilot, run)
    ]
    batch = _batch(several_designs, goal, question.estimator)
    cells = [replace(cell, batch=batch) for cell in cells]
    trials = None if question.trials is None else environment.n_trials
    options = question.option_values() | {"trials": trials, "for": question.goal}
    return Study("design", tuple(cells), question.replicates, question.seed, "replicate", options)


def _shares(question: AskDesign, goal: Goal) -> BudgetShares:
    """Say how the budget is shared out."""
    if goal.kind != "effect":
        if question.sessions is not None:
            raise ValueError(
                "Sessions of each participant are given for an effect; got "
                f"--sessions {question.sessions} --for {question.goal}. Leave them out."
            )
        return BudgetShares(question.subjects, None)
    conditions = 1 if question.comparison == "one" else 2
    allocated = any(text.split("=")[0] == "sessions" for text in question.search or ())
    if question.sessions is None and not allocated:
        return BudgetShares(question.subjects, None, conditions, 2)
    if question.subjects != 1:
        raise ValueError(
            "With sessions given, the budget is spent on participants; got both "
            f"--subjects {question.subjects} and --sessions. Leave one out."
        )
    return BudgetShares(None, question.sessions or 1, conditions, 2)


def _sought(question: AskDesign, goal: Goal, environment: Environment, pilot: Pilot | None) -> Any:
    """Write down the effect that is looked for in an experiment, as `power` does."""
    return effect_search(
        Power(
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
    about: dict[str, Any] = {
        "goal": goal.kind,
        "role": one.role,
        "sizes": [[s.subjects, s.sessions, s.cost] for s in one.sizes],
        **({"run": run} if run else {}),
    }
    environment = one.environment
    if goal.kind == "effect":
        sought = _sought(question, goal, environment, pilot)
        (cell,) = sought.cells([size.subjects], [size.sessions], [None], step=START, common=0)
        return [replace(cell, analysis=replace(cell.analysis, **about))]
    plain = Cell(
        environment.name, environment.settings, "", step=START, common=0, sessions=size.sessions
    )
    if goal.kind == "parameters":
        more: dict[str, Any] = {"named": list(goal.names)}
        names = [question.agent.name]
    else:
        more, names = {"rivals": list(goal.names)}, list(goal.names)
    return [
        replace(
            plain,
            model=name,
            population=pilot.population if pilot and pilot.model == name else Population(),
            truth={k: v for k, v in truth.items() if k in AGENTS[name].parameters.names},
            analysis=CellAnalysis(**about, **more),
        )
        for name in names
    ]


def _batch(designs: Sequence[Candidate], goal: Goal, estimator: str) -> int:
    """Return how many data sets make a batch: as many of each design, so that they pair."""
    if estimator == "hierarchical" and goal.kind == "effect":
        return 1
    most = max(
        one.environment.n_trials
        * one.sizes[-1].sessions
        * (one.sizes[-1].subjects if goal.kind == "effect" else 1)
        for one in designs
    )
    return max(1, min(MOST_PER_BATCH, TRIALS_PER_BATCH // most))


@dataclass(frozen=True)
class _Search:
    """What is searched; the path is a function of the results, so that it can be gone again.

    Parameters
    ----------
    start : The study of the search's folder: all designs at the whole budget.
    """

    start: Study

    @cached_property
    def goal(self) -> Goal:
        """For what."""
        return Goal.of(self.start.question["for"], AGENTS[self.start.cells[0].model])

    @property
    def strata(self) -> int:
        """Cells of each design."""
        return len(self.goal.names) if self.goal.kind == "models" else 1

    def cells_of(self, design: int) -> tuple[Cell, ...]:
        """Return the cells of a design."""
        return self.start.cells[design * self.strata : (design + 1) * self.strata]

    def role_of(self, design: int) -> str:
        """Return whether a design is the shipped one, the paper's or a searched one."""
        return str(self.cells_of(design)[0].analysis.role)

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
        cells = tuple(replace(c, step=name, common=number) for cells in members for c in cells)
        each = ceil(data_sets / self.strata)
        question = dict(self.start.question)
        return Study("design", cells, each, self.start.seed, "replicate", question)

    def follow(self, rows_of: Step) -> Result:
        """Go the way of the search; `rows_of` computes or reads the study of a name."""
        n = len(self.start.cells) // self.strata
        left, before = list(range(n)), 0
        steps: list[Rows] = []
        measured: dict[int, Measured] = {}
        stays = {d for d in range(n) if self.role_of(d) in NAMES}
        rounds: list[dict[str, Any]] = []
        for number, (share, data_sets) in enumerate(self.plan):
            loss = partial(self._loss, measured)
            order = sorted(left, key=loss) if measured else left
            best = order[: max(ceil(share * n), min(FINALISTS, n))]
            left = sorted({*best, *stays})
            name = f"round-{number}"
            study = self.study(name, [self.cells_of(d) for d in left], data_sets - before)
            rows = rows_of(study, name)
            if rows is None:
                return self._answer(measured, rounds, None, steps)
            steps.append(rows)
            for d, new in zip(left, gather(rows, len(left)), strict=True):
                measured[d] = measured[d].together(new) if d in measured else new
            rounds.append({"round": number, "designs": len(left), "data sets": data_sets})
            before = data_sets
        best_one = min(left, key=partial(self._loss, measured))
        fresh = _Fresh.of(self, best_one, sorted(stays - {best_one}))
        return self._answer(measured, rounds, (fresh, rows_of(fresh.study, FRESH)), steps)

    def _loss(self, measured: Mapping[int, Measured], design: int) -> float:
        """Return what is to be small; of designs without any usable data set it is infinite."""
        value = measured[design]["score"].value
        if not np.isfinite(value):
            return float("inf")
        return -value if MORE_IS_BETTER[self.goal.kind] else value

    @cached_property
    def shipped_settings(self) -> Mapping[str, Any]:
        """Settings of the experiment as shipped, with those that were given."""
        options, name = self.start.question, self.start.cells[0].environment
        parameters = {n for c in self.start.cells for n in AGENTS[c.model].parameters.names}
        given = {k: v for k, v in options["set"].items() if k not in parameters}
        base = resolve_environment(name)
        changed = type(base)(**base.settings | given)
        return resolve_environment(changed, options.get("trials")).settings

    @property
    def cost(self) -> str:
        """The column of what a design costs."""
        return f"cost in {next(iter(self.start.question['budget']))}"

    def row(self, name: str, cell: Cell, part: int, measured: Measured) -> dict[str, Any]:
        """Return a design at a part of the budget as a row of a table."""
        subjects, sessions, cost = cell.analysis.sizes[part]
        shipped = self.shipped_settings
        changed = {k: v for k, v in cell.settings.items() if v != shipped.get(k)}
        return {
            "design": name,
            "subjects": subjects,
            "sessions": sessions,
            "trials": cell.make().n_trials,
            self.cost: cost,
            "data sets": measured.attempted,
            "failed": measured.failed,
            JUDGED_BY[self.goal.kind]: measured["score"],
            "bits": measured["information"],
            "settings": "; ".join(f"{k}={v}" for k, v in changed.items()) or "as shipped",
        }

    def _answer(
        self,
        measured: Mapping[int, Measured],
        rounds: Sequence[Mapping[str, Any]],
        last: tuple[_Fresh, Rows | None] | None,
        steps: Sequence[Rows],
    ) -> Result:
        """Return the result of a search, as far as it went."""
        order = sorted(measured, key=partial(self._loss, measured))
        order.sort(key=lambda d: -measured[d].attempted)
        searched = [
            self.row(NAMES.get(self.role_of(d), "searched"), self.cells_of(d)[0], -1, measured[d])
            for d in order
        ]
        tables = {"Rounds": pd.DataFrame(rounds), "Search": pd.DataFrame(searched)}
        frame = tables["Search"].assign(run="searched")
        verdicts: dict[str, Verdict] = {}
        rows = None if last is None else last[1]
        if last is not None and rows is not None:
            fresh, steps = last[0], [*steps, rows]
            score_tables, verdicts = fresh.tables(rows)
            tables = {**score_tables, **tables}
            frame = pd.concat(
                [frame, score_tables["Fresh run"].assign(run=score_tables["Fresh run"]["design"])]
            )
        judged = (JUDGED_BY[self.goal.kind], *(() if self.goal.kind == "effect" else ("bits",)))
        curves = Curves(
            "Against cost, with 2 standard errors.", (self.cost, ""), self.cost, judged,
            series=("run",), joined=False, ticks=True,
        )  # fmt: skip
        return self.start.result(
            f"Which design serves best for {self.goal}?",
            steps,
            verdicts=verdicts,
            tables={k: t.set_index(t.columns[0]) for k, t in tables.items() if len(t)},
            figures=curves.drawings(frame) if searched else {},
            notes=[*notes_of(self.start.cells[0]), *NOTES],
            attempted=sum(m.attempted for m in measured.values()),
            failed=sum(m.failed for m in measured.values()),
            missing=int(rows is None),
        )


@dataclass(frozen=True)
class _Fresh:
    """The best design and those it is compared with, on fresh data sets.

    Parameters
    ----------
    designs : Position of each cell group's design, and its part of the budget.
    """

    search: _Search
    best: int
    others: Sequence[int]
    designs: Sequence[tuple[int, int]]
    study: Study

    @classmethod
    def of(cls, search: _Search, best: int, others: Sequence[int]) -> _Fresh:
        """Write down the fresh run, at all parts of the budget."""
        members, designs = [], []
        for design in (best, *others):
            cells = search.cells_of(design)
            for part, (subjects, sessions, _) in enumerate(cells[0].analysis.sizes):
                size = {"sessions": sessions}
                if search.goal.kind == "effect":
                    size["subjects"] = subjects
                members.append(tuple(replace(cell, **size) for cell in cells))
                designs.append((design, part))
        study = search.study(FRESH, members, int(search.start.question["fresh"]))
        return cls(search, best, others, designs, study)

    def tables(self, rows: Rows) -> tuple[dict[str, pd.DataFrame], dict[str, Verdict]]:
        """Return the tables of the fresh run, and verdicts on its gains."""
        search, strata = self.search, self.search.strata
        measured = gather(rows, len(self.designs))
        table, recovery = [], []
        for (design, part), score in zip(self.designs, measured, strict=True):
            cell = search.cells_of(design)[0]
            name = "best" if design == self.best else NAMES[search.role_of(design)]
            table.append(search.row(name, cell, part, score))
            if part == len(cell.analysis.sizes) - 1 and search.goal.kind == "parameters":
                recovery += [
                    {
                        "design": name,
                        "parameter": parameter,
                        "spread": score[f"spread_{parameter}"],
                        "rmse": _root(score[f"squared_error_{parameter}"]),
                        "90% covers": score[f"covered_{parameter}"],
                    }
                    for parameter in AGENTS[cell.model].parameters.names
                ]
        fresh = pd.DataFrame(table)
        last = {design: i for i, (design, _) in enumerate(self.designs)}
        verdicts, gains = {}, []
        for other in self.others:
            first, second = (
                [last[d] * strata + m for m in range(strata)] for d in (self.best, other)
            )
            gain = difference(rows, first, second, "score")
            known = search.goal.kind != "effect"
            bits = difference(rows, first, second, "information") if known else NOTHING
            name = NAMES[search.role_of(other)]
            verdict = self._verdict(gain)
            verdicts[f"gain over {name}"] = verdict
            half = 1.959964 * gain.error
            row = {"over": name, "gain": gain, "low": gain.value - half}
            gains.append({**row, "high": gain.value + half, "bits": bits, "verdict": verdict.word})
        winner = fresh[fresh["design"] == "best"].iloc[-1:].assign(recovery=self._command())
        tables = {"Best design": winner, "Gains in the fresh run": pd.DataFrame(gains)}
        tables |= {"Fresh run": fresh, "Recovery in the fresh run": pd.DataFrame(recovery)}
        return tables, verdicts

    def _verdict(self, gain: Score) -> Verdict:
        """Judge whether the best design is better, by the 95% interval of the difference."""
        sign = 1.0 if MORE_IS_BETTER[self.search.goal.kind] else -1.0
        half = 1.959964 * gain.error
        text = f"difference {gain}, limit 0"
        if not np.isfinite(half):
            return not_judged(text)
        loss = -sign * gain.value
        n = int(self.search.start.question["fresh"])
        held = JudgedNumber((0.0,), loss, loss - half, loss + half, text)
        return judge(CONFIRMED, [held], n, unit="data set")

    def _command(self) -> str:
        """Return the command that recovers a model's parameters from the best design."""
        cell = self.search.cells_of(self.best)[0]
        sessions = cell.analysis.sizes[-1][1]
        changed = changed_settings(cell.make())
        size = cell.make().size
        if size is not None and cell.settings[size] != make(cell.environment).settings[size]:
            changed[size] = cell.settings[size]
        return command_line(
            "recover",
            cell.environment,
            model=cell.model,
            subjects=500,
            sessions=sessions if sessions > 1 else None,
            set=changed,
            seed=self.search.start.seed + 1,
        )


def _root(square: Score) -> Score:
    """Return the root of a mean square, by the delta method."""
    root = square.value**0.5
    return Score(root, square.error / (2 * root) if root > 0 else 0.0)
