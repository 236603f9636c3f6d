"""A folder of models, one a file: which recover, which are copies, which can be told from the rest.

Systems that write models by the hundred leave such folders. Each file is tried in a process of its
own, with a limit of time, before it is compared. One that cannot be run, does not end, holds no
model or several, or cannot play the experiment is a row that says so; the others go on.

Two models are copies of each other if they reach the same greatest likelihood of the same data,
whichever of both made them: then each can say whatever the other says. One is told apart if BIC
names it, of all that are no copies of it, in more than half of the data sets that it made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from functools import partial
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.environments.record.outcome_rates import wilson
from knownminds.inference import maximum_likelihood
from knownminds.inference.fits.point import PointFit
from knownminds.validation.engine.arguments import (
    changed_settings,
    resolve_environment,
    resolve_model,
    set_to,
)
from knownminds.validation.engine.question import command_line
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score, share
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import Verdict, reason

from .alone import FAULTS, STREAM, Tried, try_alone
from .judged import model_of
from .questions import Referee
from .truth import PEEKS, leaks_of

SAME = 0.05  # nats of a data set, up to which greatest likelihoods are the same
COPIES = 12  # data sets of each of both models, by which copies are found
TOLD = 0.5  # share of its own data sets in which a model is named
BROKEN, ENDLESS = "broken", "did not end"
ORDER = (BROKEN, ENDLESS, PEEKS, "copy", "not identified", "not told apart", "open", "stands")
NOTES = (
    "Each file is tried in a process of its own, which has --limit seconds. peeks: an answer's "
    "probability changes with what nobody is told (rewards to come, hidden fields). contract: "
    "`check_agent`. copy: the same greatest likelihood, up to 0.05 nats, of each of 12 data sets "
    "of both models (of those that ask for no infinite value, half at least). recovery: the worst "
    "verdict of its parameters. told apart: BIC names the model, among all that are no copies, in "
    "more than half of the data sets that it made (95% interval). What breaks the contract, or is "
    "a copy, is asked nothing further.",
)


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A file of a folder.

    Parameters
    ----------
    file : Its name.
    model : Its model; None where it has none that can be judged.
    tried : What was seen of it in a process of its own.
    """

    file: str
    model: type[Model] | None
    tried: Tried


def judge_folder(question: Referee) -> Result:
    """Judge each model of a folder in an experiment, against the others and the shipped ones.

    Raises
    ------
    ValueError : If the folder has no Python file, or a rival cannot play the experiment.
    """
    began = perf_counter()
    folder = Path(str(question.candidate))
    usual = {field.name: field.default for field in fields(Referee)}
    for name in ("simulator", "target", "most"):
        if getattr(question, name) != usual[name]:
            raise ValueError(
                f"--{name} is asked of one model; {folder} is a folder of models. Leave it out, or "
                "name a file."
            )
    if not question.limit > 0:
        raise ValueError(f"--limit is a number of seconds above 0; got {question.limit:g}.")
    environment = set_to(resolve_environment(question.environment, question.trials),
                         question.settings)  # fmt: skip
    files = sorted(folder.glob("*.py"))
    if not files:
        raise ValueError(
            f"A folder of models has a Python file for each; {folder} has none. Name another one."
        )
    shipped = [name for name, model in AGENTS.items() if model.plays(environment)]
    rivals = [resolve_model(name).name for name in question.against] or shipped
    candidates = _candidates(files, environment, question)
    sound = {c.file: c.model for c in candidates if c.model is not None}
    # What is registered comes first: of several that say the same it is the original.
    models = {model.name: model for model in (*(AGENTS[n] for n in rivals), *sound.values())}
    field = _Field(environment, models, question.seed, question.workers)
    rows, copies = [], dict[str, str]()
    for number, candidate in enumerate(candidates):
        row = _row(candidate, field, question, copies)
        rows.append({"file": candidate.file, **row})
        if row["copy"]:
            copies[row["model"]] = row["copy"]
        if question.progress is not None:
            question.progress(len(files) + number + 1, 2 * len(files))
    table = pd.DataFrame(rows)
    order = [ORDER.index(word) for word in table["verdict"]]
    table = table.iloc[np.argsort(order, kind="stable")[::-1]].reset_index(drop=True)
    verdicts = {str(r["file"]): Verdict(r["verdict"], (r["why"],) if r["why"] else ())
                for r in table.to_dict("records")}  # fmt: skip
    if leaks := leaks_of(environment, question.seed):
        verdicts = {f"prompts of {environment.name}": Verdict("leaks", tuple(leaks)), **verdicts}
    options = question.option_values() | {"environment": environment.name,
                                          "set": changed_settings(environment)}  # fmt: skip
    counts = table["verdict"].value_counts().reindex(ORDER[::-1], fill_value=0)
    return Result(
        f"Which of {len(files)} models stand in {environment.name}?",
        verdicts=verdicts,
        tables={
            "Models": table.drop(columns="why").set_index("file"),
            "How many": counts.rename("files").to_frame().T,
        },
        notes=NOTES,
        attempted=len(files),
        failed=int(table["verdict"].isin((BROKEN, ENDLESS)).sum()),
        rows=table,
        options={**options, "rivals": rivals},
        command=command_line("referee", str(folder), **options),
        seconds=perf_counter() - began,
        versions=versions(),
    )


def _candidates(
    files: Sequence[Path], environment: Environment, question: Referee
) -> list[ModelFile]:
    """Try each file alone, and load those whose models can be judged."""
    how = {"subjects": question.subjects, "sessions": question.sessions, "seed": question.seed,
           "fits": max(COPIES, question.replicates)}  # fmt: skip
    alone = partial(try_alone, environment=environment, limit=question.limit, how=how)
    candidates = []
    with ThreadPoolExecutor(min(question.workers or os.cpu_count() or 1, len(files))) as threads:
        for file, tried in zip(files, threads.map(alone, files), strict=True):
            model = None
            if not tried.problem:
                try:
                    with redirect_stdout(StringIO()):
                        model = model_of(str(file))
                except FAULTS as error:  # two files may have models of one name
                    tried = Tried(" ".join(str(error).split()))
            candidates.append(ModelFile(file.name, model, tried))
            if question.progress is not None:
                question.progress(len(candidates), 2 * len(files))
    return candidates


class _Field:
    """All models that are compared, the data sets that each made, and what has been fitted."""

    def __init__(
        self,
        environment: Environment,
        models: Mapping[str, type[Model]],
        seed: int,
        threads: int | None,
    ) -> None:
        self.environment, self.models = environment, models
        self.seed, self.threads = seed, threads
        self._made: dict[tuple[str, int], Any] = {}
        self._fits: dict[tuple[str, str, int], PointFit] = {}

    def made(self, name: str, n: int) -> Any:
        """Return n data sets of a model with parameters from its prior, a subject each."""
        if (name, n) not in self._made:
            model = self.models[name]
            rng = session_stream(self.seed, STREAM, list(self.models).index(name))
            theta = model.parameters.draw(rng, n)
            played = simulate_sessions(model, theta, self.environment, self.seed)
            self._made[name, n] = played.to_trials()
        return self._made[name, n]

    def fit(self, name: str, of: str, n: int) -> PointFit:
        """Return a model's most likely parameters for the data sets of a model."""
        key = name, of, n
        if key not in self._fits:
            self._fits[key] = maximum_likelihood(
                self.models[name], self.made(of, n), workers=self.threads
            )
        return self._fits[key]

    def likelihood(self, name: str, of: str, n: int) -> Array:
        """Return a model's greatest log-likelihood of each data set; NaN where a fit failed."""
        fit = self.fit(name, of, n)
        failed = np.array(fit.status) == "failed"
        values: Array = np.where(failed, np.nan, fit.log_likelihood)
        return values

    def bic(self, name: str, of: str, n: int) -> Array:
        """Return BIC of a model for each data set, the smaller the better."""
        fit = self.fit(name, of, n)
        penalty = len(fit.names) * np.log(fit.n_trials)
        values: Array = penalty - 2.0 * self.likelihood(name, of, n)
        return values

    def copies(self, name: str) -> list[str]:
        """Return the models that say the same as this one, in their data sets and in its own."""
        return [
            other
            for other in self.models
            if other != name and all(self._same(name, other, of) for of in (name, other))
        ]

    def _same(self, one: str, other: str, of: str) -> bool:
        """Say whether two models reach the same likelihood of what a model made.

        Data that ask one of them for an infinite value do not count: how far a search runs there
        hangs on how the parameter is written. Half of the data sets must be left.
        """
        fits = [self.fit(name, of, COPIES) for name in (one, other)]
        ended = np.array([[s in ("ok", "flat") for s in fit.status] for fit in fits]).all(axis=0)
        gap = np.abs(fits[0].log_likelihood - fits[1].log_likelihood)
        return bool(ended.sum() >= COPIES // 2 and (gap[ended] <= SAME).all())


def _row(
    candidate: ModelFile, field: _Field, question: Referee, copies: Mapping[str, str]
) -> dict[str, Any]:
    """Return what becomes of a file: model, recovery, copy, told apart, verdict, and why."""
    began = perf_counter()
    model = candidate.model
    row: dict[str, Any] = {"model": "", "recovery": "", "copy": "", "named": None,
                           "rival": "", "seconds": 0.0, "verdict": "", "why": ""}  # fmt: skip
    if model is None:
        tried = candidate.tried
        word = PEEKS if tried.peeks else BROKEN if tried.ended else ENDLESS
        why = f"goes by {tried.problem}, which nobody is told" if tried.peeks else tried.problem
        return row | {"verdict": word, "why": why}
    row["model"] = model.name
    same = field.copies(model.name)
    original = [name for name in same if name not in copies]
    if original:
        row |= {"copy": original[0], "verdict": "copy", "why": f"says what {original[0]} says"}
        return row | {"seconds": perf_counter() - began}
    named, rival = _told(field, model.name, [*same, model.name], question.replicates)
    recovery, reasons = candidate.tried.recovery
    row |= {"recovery": recovery, "named": named, "rival": rival}
    weak = recovery.endswith("not identified") and "between" not in recovery
    if candidate.tried.null or weak:
        why = "; ".join([*candidate.tried.null, *reasons][:1])
        word = "not identified"
    else:
        n = question.replicates
        low, high = wilson(round(named.value * n), n)
        word = "stands" if low > TOLD else "not told apart" if high < TOLD else "open"
        why = reason("named in", named.value, named.error, TOLD)
        why += f"; most often beside it {rival}" if rival else ""
    return row | {"verdict": word, "why": why, "seconds": perf_counter() - began}


def _told(field: _Field, name: str, alike: Sequence[str], n: int) -> tuple[Score, str]:
    """Return the share of a model's data sets in which BIC names it, and its strongest rival."""
    others = [other for other in field.models if other not in alike]
    own = field.bic(name, name, n)
    table = np.array([field.bic(other, name, n) for other in others])
    lost = np.isnan(own)
    if not len(others):
        return share(int((~lost).sum()), n), ""
    best = np.nanmin(np.where(np.isnan(table), np.inf, table), axis=0)
    wins = (own < best) & ~lost  # a fit that failed names nothing
    first = pd.Series(np.nanargmin(np.where(np.isnan(table), np.inf, table), axis=0)[~wins])
    rival = others[int(first.mode().iloc[0])] if len(first) else ""
    return share(int(wins.sum()), n), rival
