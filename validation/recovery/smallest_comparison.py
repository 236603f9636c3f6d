"""How large a design has to be to name the true one of several models: `confuse --find`.

The chance that the best-fitting model is the true one falls with the number of rivals (Piray 2025),
so the search is read for the first two models, the first three, and so on: the same data sets serve
all of them. A design is large enough if each of its models wins its data sets with a share that
reaches the target.

Groups whose subjects may follow different models are compared by exceedance probabilities
(Stephan et al. 2009). Their usual limit of .95 has no known error rate. The limit that keeps an
error of 5% is the quantile of the largest exceedance probability in groups in which all models are
equally frequent, which are drawn from the subjects of the fresh run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import make, session_stream
from knownminds.inference.posteriors.model_weights import protected_exceedance
from knownminds.validation.engine.arguments import one_of, resolve_environment, several
from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.result import Drawing, Result
from knownminds.validation.engine.scores import Interval, Score, share
from knownminds.validation.engine.study import Rows, Study, read_study, versions
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.pages import figures as draw
from knownminds.validation.power.bisection import ABOUT, Bisection, Curve, check_target

from .model_recovery import CRITERIA, SIZES, confusion_study, score_batch, winners
from .questions import Confuse

SPREAD = 1.0  # of the start of a curve: criteria may prefer one model in small designs
ERROR = 0.05  # of the largest exceedance probability, if all models are equally frequent
USUAL = 0.95  # the limit of exceedance probabilities that is in use
FREQUENCY = 0.7  # of the most frequent model in groups that should be decided
GROUPS = (10, 20, 40)  # subjects
N_GROUPS = 400  # of each kind: the error of a share of .05 is .011
POINTS = 201  # of the integral of an exceedance probability: its error is below 1e-3
ANSWERS, TRIED = "Smallest design by number of models", "Designs that were tried"
EXCEEDANCE = "Exceedance probabilities of groups"
CAPTION = (
    "The lowest share of all models with 2 standard errors, against the size of the design. "
    "Dashed: the target."
)
NOTES = (
    "A model's share: data sets simulated from it that it fits best, by the criterion. The lowest "
    "share of all models has to reach the target. Models are added in the order of --model.",
    *ABOUT,
    f"Exceedance probabilities: {N_GROUPS} groups each, drawn from the subjects of the last run. "
    f"limit: the {1 - ERROR:.0%} quantile of the largest one where all models are equally frequent "
    f"(with a 95% interval); error of {USUAL}: share of these groups in which one lies above "
    f"{USUAL}; power: share of groups in which the model of a frequency of {FREQUENCY} lies above "
    "the limit.",
)


def search(question: Confuse) -> Result:
    """Answer `confuse --find`."""
    check_target(question.target)
    one_of("size to find", str(question.find), SIZES)
    if len(question.criteria) > 1:
        question = replace(question, criteria=("bic",))
    sizes = {name: several(getattr(question, name))[0] for name in SIZES}
    question = replace(question, **sizes)
    start = _study(question, 1, question.replicates, "start")
    check_step_loop(start)
    return _follow(question, start, computed_steps(start, score_batch, question))


def read_search(folder: str | Path) -> Result:
    """Return what the search in a folder says, as far as it went."""
    start, _ = read_study(folder)
    options, cell = dict(start.question), start.cells[0]
    named = {
        "models": options["model"],
        "criteria": options["criterion"],
        "environment": make(cell.environment, **cell.settings),
        "truth": {k: v for k, v in options["set"].items() if k not in cell.settings},
        "pilot": None,
    }
    same = {field.name: options[field.name] for field in fields(Confuse) if field.name in options}
    question = Confuse(**{k: v for k, v in {**same, **named}.items() if v is not None})
    return _follow(question, start, stored_steps(Path(folder)))


def _study(question: Confuse, size: int, data_sets: int, name: str) -> Study:
    """Return the study of one size; its data sets belong to the step of this name alone."""
    sized: dict[str, Any] = {str(question.find): size, "replicates": data_sets}
    study = confusion_study(replace(question, **sized))
    cells = tuple(replace(c, law={**c.law, "part_of_search": name}) for c in study.cells)
    content = dict(question.option_values())
    content[str(question.find)] = None
    return replace(study, cells=cells, question=content)


def _follow(question: Confuse, start: Study, rows_of: Step) -> Result:
    """Go the way of the search; `rows_of` computes or reads the study of a name."""
    way = _Way(question, list(start.cells[0].options["rivals"]), rows_of)
    bisection = way.bisection.follow(way.measure)
    if not way.steps:
        return Result(_title(question, way.names), missing=1, options=start.options)
    find, table = str(question.find), pd.DataFrame(way.tried)
    lowest = table.loc[[
        group["share"].map(float).idxmin()
        for _, group in table.groupby(["step", "models"], sort=False)
    ]]  # fmt: skip
    answers = way.answers()
    score, size = lowest["share"].iloc[-1], answers[-1][find]
    held = reason("lowest share", score.value, score.error, question.target)
    sized = () if size is None else (f"{size} {find}",)
    drawn = lowest.assign(target=question.target)
    return Result(
        _title(question, way.names),
        verdicts={"the smallest design": Verdict(bisection.outcome, (*sized, held))},
        tables={
            ANSWERS: pd.DataFrame(answers).astype(object).set_index("models"),
            TRIED: table.drop(columns="step").set_index(["part", find, "models", "model"]),
            EXCEEDANCE: exceedance_limits(way.steps[-1], way.names, question.seed),
        },
        figures={CAPTION: Drawing(drawn, draw_shares)},
        notes=NOTES,
        attempted=sum(rows.study.replicates * len(rows.study.cells) for rows in way.steps),
        failed=sum(int((rows.frame["status"] == "failed").sum()) for rows in way.steps),
        missing=int(bisection.outcome == "not finished"),
        options=start.options,
        command=start.command_line(),
        seconds=float(sum(rows.frame["seconds"].sum() for rows in way.steps)),
        versions=versions(),
    )


class _Way:
    """What a search has tried, and what it says of each model among the first k of them."""

    def __init__(self, question: Confuse, names: list[str], rows_of: Step):
        self.question, self.names, self.rows_of = question, names, rows_of
        sizes, target = _sizes(question), question.target
        self.curves = {
            (k, i): Curve(sizes, target, -scipy.stats.norm.ppf(1 / k), SPREAD)
            for k in range(2, len(names) + 1)
            for i in range(k)
        }
        self.tried: list[dict[str, Any]] = []
        self.steps: list[Rows] = []
        whole = [self.curves[len(names), i] for i in range(len(names))]
        self.bisection = Bisection(sizes, target, question.replicates, whole)

    def measure(self, size: int, data_sets: int, name: str) -> list[tuple[Score, int]] | None:
        """Return the share of each model among all of them, and take in all shares."""
        rows = self.rows_of(_study(self.question, size, data_sets, name), name)
        if rows is None:
            return None
        self.steps.append(rows)
        part = "fresh run" if name.startswith("confirmation") else "search"
        shares, every = _shares(rows, self.names), len(self.names)
        for (k, i), (score, n) in shares.items():
            row = {"part": part, "step": name, str(self.question.find): size}
            row |= {"models": k, "model": self.names[i], "share": score, "data sets": n}
            self.tried.append(row)
            if k < every and part == "search":
                self.curves[k, i].add(size, score.value * n, n)
        return [shares[every, i] for i in range(every)]

    def answers(self) -> list[dict[str, Any]]:
        """Return the size for the first two models, the first three, and so on."""
        rows = []
        for k in range(2, len(self.names) + 1):
            ends = [self.curves[k, i].interval for i in range(k)]
            low, middle, high = (max(end) for end in zip(*ends, strict=True))
            within = middle <= self.bisection.sizes[-1]
            size = self.bisection.at_least(middle) if within else None
            row = {"models": k, "with": self.names[k - 1], str(self.question.find): size}
            rows.append(row | self.bisection.answer((low, middle, high)))
        return rows


def _title(question: Confuse, names: Sequence[str]) -> str:
    return f"How many {question.find} tell {', '.join(names[:-1])} and {names[-1]} apart?"


def _sizes(question: Confuse) -> list[int]:
    """Return the sizes that are considered, ascending."""
    sizes = list(range(1, question.most + 1))
    if question.find == "trials":
        sizes = [n for n in sizes if _possible(question, n)]
    if not sizes:
        raise ValueError(f"No number of {question.find} up to {question.most} can be played.")
    return sizes


def _possible(question: Confuse, trials: int) -> bool:
    try:
        resolve_environment(question.environment, trials)
    except ValueError:
        return False
    return True


def _shares(rows: Rows, names: Sequence[str]) -> dict[tuple[int, int], tuple[Score, int]]:
    """Return the share and number of data sets of model i among the first k, by (k, i)."""
    (criterion,) = rows.study.cells[0].options["criteria"]
    tables = [rows.of(i) for i in range(len(names))]
    shares = {}
    for k in range(2, len(names) + 1):
        won = winners(tables[:k], criterion, names[:k])
        for i in range(k):
            n = int(won.n[i])
            shares[k, i] = (share(int(won.counts[i, i]), n), n)
    return shares


def exceedance_limits(rows: Rows, names: Sequence[str], seed: int) -> pd.DataFrame:
    """Return limits of exceedance probabilities and their power, a row for each size of group.

    Empty where the scores are those of whole data sets of several subjects.
    """
    cell = rows.study.cells[0]
    (criterion,) = cell.options["criteria"]
    sign = 1.0 if CRITERIA[criterion][1] else -0.5
    columns = [f"{criterion}_{name}" for name in names]
    pools = [sign * rows.of(i)[columns].dropna().to_numpy(dtype=float) for i in range(len(names))]
    if cell.subjects > 1 or min(map(len, pools)) == 0:
        return pd.DataFrame()
    rng, m, table = session_stream(seed, 2), len(names), []
    frequencies = np.full((m, m), (1 - FREQUENCY) / (m - 1))
    np.fill_diagonal(frequencies, FREQUENCY)
    for size in GROUPS:
        equal = [_group(pools, rng.integers(m, size=size), rng).max() for _ in range(N_GROUPS)]
        limit = float(np.quantile(equal, 1 - ERROR))
        ranks = scipy.stats.binom.ppf([0.025, 0.975], N_GROUPS, 1 - ERROR).astype(int)
        low, high = np.sort(equal)[np.clip(ranks, 0, N_GROUPS - 1)]
        above = 0
        for group in range(N_GROUPS):
            most = group % m
            members = rng.choice(m, size, p=frequencies[most])
            above += int(_group(pools, members, rng)[most] > limit)
        usual = int((np.array(equal) > USUAL).sum())
        row = {"subjects": size, "limit": Interval(limit, float(low), float(high))}
        row |= {f"error of {USUAL}": share(usual, N_GROUPS), "power": share(above, N_GROUPS)}
        table.append(row)
    return pd.DataFrame(table).set_index("subjects")


def _group(pools: Sequence[Array], members: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Return the exceedance probabilities of a group whose members follow these models."""
    evidence = np.stack([pools[model][rng.integers(len(pools[model]))] for model in members])
    return protected_exceedance(evidence, points=POINTS).exceedance


def draw_shares(lowest: pd.DataFrame) -> Figure:
    """Draw the lowest share against the size, a curve for each number of models."""
    figure, (axis,) = draw.panels(1)
    find = lowest.columns[2]
    numbers = list(dict.fromkeys(lowest["models"]))
    for number, style in zip(numbers, draw.styles(len(numbers)), strict=True):
        rows = lowest[lowest["models"] == number].sort_values(find)
        draw.curve(axis, list(rows[find]), list(rows["share"]), style, f"{number} models")
    draw.limit(axis, lowest["target"].iloc[0])
    draw.scale(axis, list(lowest[find]))
    axis.set(xlabel=find, ylabel="lowest share", ylim=(0, 1.02))
    draw.key(figure, axis)
    return figure
