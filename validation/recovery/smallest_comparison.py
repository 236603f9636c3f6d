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
    names = list(start.cells[0].options["rivals"])
    find = str(question.find)
    numbers = [(k, i) for k in range(2, len(names) + 1) for i in range(k)]
    sizes = _sizes(question)
    starts = {k: -scipy.stats.norm.ppf(1 / k) for k, _ in numbers}
    curves = {n: Curve(sizes, question.target, starts[n[0]], SPREAD) for n in numbers}
    tried: list[dict[str, Any]] = []
    steps: list[Rows] = []

    def measure(size: int, data_sets: int, name: str) -> list[tuple[Score, int]] | None:
        rows = rows_of(_study(question, size, data_sets, name), name)
        if rows is None:
            return None
        steps.append(rows)
        part = "fresh run" if name.startswith("confirmation") else "search"
        shares = _shares(rows, names)
        for (k, i), (score, n) in shares.items():
            row = {"part": part, "step": name, find: size, "models": k, "model": names[i]}
            tried.append({**row, "share": score, "data sets": n})
            if k < len(names) and part == "search":
                curves[k, i].add(size, score.value * n, n)
        return [shares[len(names), i] for i in range(len(names))]

    whole = [curves[len(names), i] for i in range(len(names))]
    bisection = Bisection(sizes, question.target, question.replicates, whole).follow(measure)
    if not steps:
        return Result(_title(question, names), missing=1, options=start.options)
    table = pd.DataFrame(tried)
    lowest = table.loc[table.groupby(["step", "models"], sort=False)["share"].apply(
        lambda scores: scores.map(float).idxmin()
    )]  # fmt: skip
    answers = []
    for k in range(2, len(names) + 1):
        ends = [curves[k, i].interval for i in range(k)]
        low, middle, high = (max(end) for end in zip(*ends, strict=True))
        answers.append(
            {
                "models": k,
                "with": names[k - 1],
                find: bisection.at_least(middle) if middle <= sizes[-1] else None,
                **bisection.answer((low, middle, high)),
            }
        )
    score = lowest["share"].iloc[-1]
    held = reason("lowest share", score.value, score.error, question.target)
    size = answers[-1][find]
    sized = () if size is None else (f"{size} {question.find}",)
    word = Verdict(bisection.outcome, (*sized, held))
    exceedance = _exceedance(steps[-1], names, question)
    drawn = lowest.assign(target=question.target)
    return Result(
        _title(question, names),
        verdicts={"the smallest design": word},
        tables={
            "Smallest design by number of models": pd.DataFrame(answers)
            .astype(object)
            .set_index("models"),
            "Designs that were tried": table.drop(columns="step").set_index(
                ["part", find, "models", "model"]
            ),
            "Exceedance probabilities of groups": exceedance,
        },
        figures={
            "The lowest share of all models with 2 standard errors, against the size of the "
            "design. Dashed: the target.": Drawing(drawn, draw_shares)
        },
        notes=NOTES,
        attempted=sum(rows.study.replicates * len(rows.study.cells) for rows in steps),
        failed=sum(int((rows.frame["status"] == "failed").sum()) for rows in steps),
        missing=int(bisection.outcome == "not finished"),
        options=start.options,
        command=start.command_line(),
        seconds=float(sum(rows.frame["seconds"].sum() for rows in steps)),
        versions=versions(),
    )


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


def _exceedance(rows: Rows, names: Sequence[str], question: Confuse) -> pd.DataFrame:
    """Return limits of exceedance probabilities and their power, a row for each size of group."""
    cell = rows.study.cells[0]
    if cell.subjects > 1:
        return pd.DataFrame()  # scores are those of whole data sets
    (criterion,) = cell.options["criteria"]
    sign = 1.0 if CRITERIA[criterion][1] else -0.5
    columns = [f"{criterion}_{name}" for name in names]
    pools = [sign * rows.of(i)[columns].dropna().to_numpy(dtype=float) for i in range(len(names))]
    if min(map(len, pools)) == 0:
        return pd.DataFrame()
    rng = session_stream(question.seed, 2)
    table = []
    for size in GROUPS:
        even = np.array([_group(pools, _equal(rng, size, len(names)), rng).max()
                         for _ in range(N_GROUPS)])  # fmt: skip
        ranks = scipy.stats.binom.ppf([0.025, 0.975], N_GROUPS, 1 - ERROR).astype(int)
        low, high = np.sort(even)[np.clip(ranks, 0, N_GROUPS - 1)]
        limit = float(np.quantile(even, 1 - ERROR))
        above = 0
        for group in range(N_GROUPS):
            most = group % len(names)
            probabilities = np.full(len(names), (1 - FREQUENCY) / (len(names) - 1))
            probabilities[most] = FREQUENCY
            members = rng.choice(len(names), size, p=probabilities)
            above += _group(pools, members, rng)[most] > limit
        table.append(
            {
                "subjects": size,
                "limit": Interval(limit, float(low), float(high)),
                f"error of {USUAL}": share(int((even > USUAL).sum()), N_GROUPS),
                "power": share(int(above), N_GROUPS),
            }
        )
    return pd.DataFrame(table).set_index("subjects")


def _equal(rng: np.random.Generator, size: int, models: int) -> NDArray[np.int64]:
    return rng.integers(models, size=size)


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
