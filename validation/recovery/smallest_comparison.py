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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.inference.posteriors.model_weights import protected_exceedance
from knownminds.validation.engine.arguments import resolve_environment, several
from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Interval, Score, share
from knownminds.validation.engine.study import Rows, Study, question_of, read_study
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.pages.views import Curves
from knownminds.validation.power.bisection import (
    ABOUT,
    Bisection,
    Curve,
    check_target,
    followed,
    sizes_to_try,
)

from .model_recovery import SIZES, ModelChoice, confusion_study, score_batch, winners
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
    return _follow(question_of(start, Confuse, pilot=None), start, stored_steps(Path(folder)))


def _study(question: Confuse, size: int, data_sets: int, name: str) -> Study:
    """Return the study of one size; its data sets belong to the step of this name alone."""
    sized: dict[str, Any] = {str(question.find): size, "replicates": data_sets}
    study = confusion_study(replace(question, **sized))
    cells = tuple(replace(c, step=name) for c in study.cells)
    content = dict(question.option_values())
    content[str(question.find)] = None
    return replace(study, cells=cells, question=content)


def _follow(question: Confuse, start: Study, rows_of: Step) -> Result:
    """Go the way of the search, and return its result, as far as it went."""
    names, find, target = (
        list(start.cells[0].analysis.rivals),
        str(question.find),
        question.target,
    )
    environment = resolve_environment(question.environment)
    sizes, every = sizes_to_try(environment, find, question.most), len(names)
    curves = {
        (k, i): Curve(sizes, target, -scipy.stats.norm.ppf(1 / k), SPREAD)
        for k in range(2, every + 1)
        for i in range(k)
    }
    whole = [curves[every, i] for i in range(every)]
    bisection = Bisection(sizes, target, question.replicates, whole)
    steps = followed(
        bisection,
        lambda *step: _study(question, *step),
        rows_of,
        lambda rows: [_shares(rows, names)[every, i] for i in range(every)],
    )
    title = f"How many {find} tell {', '.join(names[:-1])} and {names[-1]} apart?"
    if not steps:
        return Result(title, missing=1, options=start.options)
    tried = []
    for number, (part, size, rows) in enumerate(steps):
        for (k, i), (score, n) in _shares(rows, names).items():
            row = {"part": part, "step": number, find: size, "models": k, "model": names[i]}
            tried.append(row | {"share": score, "data sets": n})
            if k < every and part == "search":
                curves[k, i].add(size, score.value * n, n)
    table = pd.DataFrame(tried)
    values = table["share"].map(float)
    lowest = table.loc[values.groupby([table["step"], table["models"]], sort=False).idxmin()]
    answers = []
    for k in range(2, every + 1):
        ends = [curves[k, i].interval for i in range(k)]
        low, middle, high = (max(end) for end in zip(*ends, strict=True))
        least = bisection.at_least(middle) if middle <= sizes[-1] else None
        answer: dict[str, Any] = {"models": k, "with": names[k - 1], find: least}
        answers.append(answer | bisection.answer((low, middle, high)))
    score = lowest["share"].iloc[-1]
    held = reason("lowest share", score.value, score.error, target)
    sized = () if least is None else (f"{least} {find}",)
    drawn = Curves(
        CAPTION, (find, "lowest share"), find, "share", series=("models",), limits=(target,),
        ticks=True, shares=("",),
    )  # fmt: skip
    all_rows = [rows for *_, rows in steps]
    return start.result(
        title,
        all_rows,
        verdicts={"the smallest design": Verdict(bisection.verdict, (*sized, held))},
        tables={
            ANSWERS: pd.DataFrame(answers).astype(object).set_index("models"),
            TRIED: table.drop(columns="step").set_index(["part", find, "models", "model"]),
            EXCEEDANCE: exceedance_limits(all_rows[-1], names, question.seed),
        },
        figures=drawn.drawings(lowest.sort_values(find)),
        notes=NOTES,
        attempted=sum(rows.study.replicates * len(rows.study.cells) for rows in all_rows),
        missing=int(bisection.verdict == "not finished"),
        options={
            **start.options,
            "analysis": [str(ModelChoice(one)) for one in start.cells[0].analysis.criteria],
        },
    )


def _shares(rows: Rows, names: Sequence[str]) -> dict[tuple[int, int], tuple[Score, int]]:
    """Return the share and number of data sets of model i among the first k, by (k, i)."""
    (criterion,) = rows.study.cells[0].analysis.criteria
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
    (criterion,) = cell.analysis.criteria
    sign = 1.0 if ModelChoice(criterion).larger else -0.5
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
