"""What `fit`, `score` and `prior` are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from knownminds.validation.completion import completes
from knownminds.validation.engine.question import (
    ExperimentQuestion,
    Question,
    argument,
    asks,
    frozen_question,
    named,
    option,
    positional,
)
from knownminds.validation.options import (
    AllTrials,
    ExperimentOption,
    FitLapse,
    FittedModel,
    Fixed,
    Method,
    Seed,
    Workers,
)
from knownminds.validation.reading import read_mapping, read_numbers, read_settings

if TYPE_CHECKING:
    from knownminds.agents import Agent
    from knownminds.environments import Environment, Trials
    from knownminds.validation.engine.result import Result

    from .fit import Fit

Settings = Annotated[
    list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
]
Rope = Annotated[
    list[str] | None,
    typer.Option("--rope", help="NAME=HALF: a contrast this small is no difference."),
]
Columns = Annotated[
    str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
]


def _names(text: str) -> list[str] | None:
    return text.split(",") if text else None


@frozen_question
class AskFit(Question["Fit"]):
    """Fit a data set and say what it supports.

    Parameters
    ----------
    data
        A .csv or .parquet file, the folder of a run, several of these, or trials.
    model
        None for the usual one of the experiment that the data, or `environment`, name.
    environment
        The experiment; None takes it from the data, or from the model if only one fits it.
    columns
        Our column names -> the file's.
    settings
        Of the experiment, where the data do not tell them.
    formula
        Regressors of group means, "alpha_positive ~ condition", and of columns within subjects
        "alpha ~ drug + (drug | subject)"; for "hierarchical" only.
    rope
        Of contrasts, by parameter: half the width, on the natural scale, of the region around 0
        that counts as no difference; a tenth of the prior's spread unless told.
    unit
        Columns that together tell apart what has parameters of its own, such as ("subject",
        "condition"); the subject alone by default.
    crossed
        Columns whose levels deviate from the group besides the units; for "hierarchical" only.
    correlated
        Whether parameters may go together over subjects; for "hierarchical" only.
    all_trials
        Fit all trials with a model that has a `selection` of its own, such as the first free
        choices of `horizon_explorer`.
    target_accept
        Of "hierarchical": the acceptance rate at which sampling begins, see `hierarchical`.
    most_minutes
        Of "hierarchical": for how long it is sampled at most; what has not converged by then is
        called so.
    tell
        Of "hierarchical": called with a line on what is going on.
    against
        Names of models that are compared with this one by how they predict subjects left out.
    rivals
        Whether all models of the experiment are.
    pooled
        Whether all sessions are taken for those of one mind, as those of a language model with
        the same settings may be.
    """

    command: ClassVar[str] = "fit"
    verb: ClassVar[str] = "fit"
    help: ClassVar[str] = "Fit people's or models' choices, and say what so many trials support."

    data: Trials | str | Path | Sequence[str | Path] = asks(
        Annotated[
            list[Path], typer.Argument(help=".csv or .parquet files, or folders of runs, joined.")
        ],
        kw_only=False,
    )
    model: type[Agent] | str | None = asks(FittedModel, default=None, kw_only=False)
    environment: str | None = asks(ExperimentOption, default=None)
    columns: Mapping[str, str] | None = asks(Columns, default=None, read=read_mapping)
    settings: Mapping[str, Any] | None = asks(Settings, default=None, read=read_settings)
    method: Literal["map", "mle", "hierarchical"] = asks(Method, default="map")
    formula: Sequence[str] | None = option(
        list[str] | None,
        '"alpha ~ condition" or "alpha ~ drug + (drug | subject)" (hierarchical).',
        default=None,
    )
    rope: Mapping[str, float] | None = asks(
        Rope, default=None, read=partial(read_numbers, "--rope")
    )
    unit: Sequence[str] | None = option(
        str | None,
        "Columns that name what has its own parameters: subject,domain",
        default=None,
        read=_names,
    )
    crossed: Sequence[str] | None = option(
        str | None,
        "Columns whose levels deviate as well (hierarchical).",
        default=None,
        read=_names,
    )
    correlated: bool = option(
        bool,
        "Parameters may go together over subjects (hierarchical).",
        default=False,
        flag="--correlated",
    )
    fixed: Mapping[str, float] | None = asks(
        Fixed, default=None, read=partial(read_numbers, "--fix")
    )
    fit_lapse: bool = asks(FitLapse, default=False)
    all_trials: bool = asks(AllTrials, default=False)
    target_accept: float = option(
        float, "Acceptance rate at which sampling begins (hierarchical).", default=0.8
    )
    most_minutes: float = option(
        float, "For how long to sample at most (hierarchical).", default=15.0
    )
    against: Sequence[str] | None = option(
        list[str] | None,
        "A model to compare with, by how they predict left-out subjects.",
        default=None,
        completion=completes("models"),
    )
    rivals: bool = option(
        bool, "Compare with all models of the experiment.", default=False, flag="--rivals"
    )
    pooled: bool = option(
        bool, "Take all sessions for those of one mind.", default=False, flag="--pooled"
    )
    seed: int = asks(Seed, default=0)
    workers: int | None = asks(Workers, default=None)
    tell: Callable[[str], None] | None = None

    def answer(self) -> Fit:
        """Fit."""
        from .fit import compute

        return compute(self)


@frozen_question
class AskScore(Question[Any]):
    """What is read off trial files: measures, or the tables of a set of runs, or of beliefs."""

    command: ClassVar[str] = "score"
    help: ClassVar[str] = (
        "Read every measure off a trial file, or the whole table off a set of runs, with intervals."
    )

    data: list[Path] = asks(
        Annotated[
            list[Path],
            typer.Argument(
                help=".csv or .parquet files, folders of runs, or a folder that has them."
            ),
        ]
    )
    measure: list[str] | None = option(
        list[str] | None,
        "Which; all that the experiments have by default.",
        default=None,
        completion=completes("measures"),
    )
    environment: str | None = asks(ExperimentOption, default=None)
    columns: Mapping[str, str] | None = asks(Columns, default=None, read=read_mapping)
    settings: Mapping[str, Any] | None = asks(Settings, default=None, read=read_settings)
    by: str | None = option(
        str | None, "A column whose values are samples of their own.", default=None
    )
    released: bool = option(
        bool, "Define measures as their published code does.", default=False, flag="--released"
    )
    over: list[str] | None = option(
        list[str] | None, "Of a collider: a column of conditions that are compared.", default=None
    )
    reference: Path | None = option(
        Path | None,
        "Of a collider: judgements to align with, trials or a table of means.",
        default=None,
    )
    scoring: Any = option(
        str | None,
        "Of a collider: by_cause, the default, fits m1 and m2 to the causes they "
        "belong to; pooled, the default with --released, answers for C2 by the formula "
        "of C1.",
        default=None,
    )
    network: str | None = option(
        str | None, "Of diagnosis: the network, for tests that use the evidence.", default=None
    )
    learner: Any = option(
        str | None, "Of diagnosis: gradient_boosting, unless given, catboost or tree.", default=None
    )
    permutations: int | None = option(
        int | None, "Of diagnosis: how many its tests rest on; 1000 unless given.", default=None
    )
    bootstraps: int | None = option(
        int | None,
        "Rounds that intervals rest on: 30 of a set of runs, 500 of diagnosis.",
        default=None,
    )
    mass: float = option(float, "Of a set of runs: mass of its intervals.", default=0.68)
    seed: int = asks(Seed, default=0)


@frozen_question
class Prior(ExperimentQuestion["Result"]):
    """Prior predictive check: let minds of a model's priors take an experiment.

    Parameters
    ----------
    environment
        The experiment.
    model
        Whose priors; the experiment's usual model if not given.
    minds
        How many, with a session each.
    trials
        Trials per session, where the experiment lets one choose.
    seed
        Everything random follows from it.
    truth
        NAME=VALUE: a parameter held at a value, or a setting of the experiment.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If the model cannot play the experiment, or a value lies outside its support.
    """

    command: ClassVar[str] = "prior"
    verb: ClassVar[str] = "prior"

    environment: Environment | str = argument(kw_only=False)
    model: type[Agent] | str = positional(kw_only=False)
    minds: int = 500
    trials: int | None = None
    seed: int = 0
    truth: Mapping[str, float] | None = named("--set", default=None)

    def answer(self) -> Result:
        """Compute the study."""
        from .prior import compute

        return compute(self)
