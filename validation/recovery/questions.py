"""What `recover` and `confuse` are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from knownminds.validation.completion import completes
from knownminds.validation.engine.question import (
    ExperimentQuestion,
    R,
    asks,
    frozen_question,
    option,
)
from knownminds.validation.options import (
    Adaptive,
    AllTrials,
    Correlation,
    Experiment,
    FitLapse,
    Fixed,
    Lapse,
    Method,
    Model,
    NTrials,
    Questions,
    Seed,
    Sessions,
    SeveralSessions,
    SeveralTrials,
    Values,
)
from knownminds.validation.reading import read_numbers

if TYPE_CHECKING:
    from knownminds.agents import Agent
    from knownminds.environments import Environment

    from .model_recovery import Criterion, ModelRecovery
    from .parameter_recovery import Recovery
    from .recovery_surface import RecoverySurface


@frozen_question
class RecoveryQuestion(ExperimentQuestion[R]):
    """Whether designs give a model's parameters back; see `Recover`."""

    command: ClassVar[str] = "recover"
    help: ClassVar[str] = (
        "Ask whether a design gives a model's parameters back; several sizes give a surface."
    )

    environment: Environment | str = asks(Experiment, kw_only=False)
    model: type[Agent] | str = asks(Model, untyped=None, kw_only=False)
    subjects: Any = option(list[int] | None, "How many; several give a surface.", default=None)
    replicates: int = option(int, "Independent repetitions.", default=1)
    sessions: Any = asks(SeveralSessions, default=None)
    trials: Any = asks(SeveralTrials, default=None)
    method: Literal["map", "mle", "hierarchical"] = asks(Method, default="map")
    seed: int = asks(Seed, default=0)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    fixed: Mapping[str, float] | None = asks(
        Fixed, default=None, read=partial(read_numbers, "--fix")
    )
    lapse: float = asks(Lapse, default=0.0)
    fit_lapse: bool = asks(FitLapse, default=False)
    all_trials: bool = asks(AllTrials, default=False)
    intervals: Literal["posterior", "laplace"] = option(
        str, "Of map: posterior, or laplace.", default="posterior"
    )
    population: Literal["prior", "group", "correlated"] = option(
        str,
        "prior: subjects from the model's; group: each replicate its own; correlated: one whose "
        "parameters go together.",
        default="prior",
    )
    correlation: Mapping[str, float] | None = asks(
        Correlation, default=None, read=partial(read_numbers, "--correlation")
    )
    questions: int | None = asks(Questions, default=None)
    adaptive: str | None = asks(Adaptive, default=None)

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> RecoveryQuestion[Any]:
        """Ask for a surface if there are several sizes, else for a single recovery."""
        asked = cls.read(given)
        sizes = [name for name in ("subjects", "sessions", "trials") if name in asked]
        if any(len(asked[name]) > 1 for name in sizes):
            return RecoverOverSizes(**asked)
        return Recover(**asked | {name: asked[name][0] for name in sizes})

    def asked(self) -> dict[str, Any]:
        """What was asked; usual ways are not named."""
        laplace = self.method == "map" and self.intervals == "laplace"
        return super().asked() | {
            "lapse": self.lapse or None,
            "fix": dict(self.fixed or {}),
            "intervals": "laplace" if laplace else None,
            "population": None if self.population == "prior" else self.population,
            "correlation": dict(self.correlation or {}) or None,
        }


@frozen_question
class Recover(RecoveryQuestion["Recovery"]):
    """Ask whether a design gives a model's parameters back.

    Subjects are drawn from the model's priors, live the experiment, and are fitted. One of them
    is lived again through the step interface, which must give the same session.

    Parameters
    ----------
    trials
        Trials per session, where the experiment lets one choose; its own number if None.
    method
        "map" and "mle" fit each subject alone, "hierarchical" all of a replicate together.
    truth
        Parameters that are the same for all subjects; the others are drawn.
    lapse, fit_lapse
        Lapse rate of the subjects; whether the fit estimates one.
    fixed
        Parameters held at a value in the fit.
    all_trials
        Fit all trials with a model that has a `selection` of its own.
    intervals
        Of "map": from each subject's own posterior (right, and ten times slower) or Laplace's
        normal approximation, which covers too little with few trials; "mle" has only the latter.
    population
        "prior" draws each subject from the model's priors, the very law that "map" assumes.
        "group" draws the subjects of a replicate from a group of their own, whose mean and spread
        come from the hyperpriors and are not known to the fit: what people are like.
        "correlated" is such a group whose parameters go together, with correlations from the law
        that a correlated fit takes for granted.
    correlation
        Correlations over subjects on the unconstrained scale, {"alpha,beta": 0.5}. With these, or
        a correlated population, "hierarchical" estimates correlations as well, and says how they
        came back.
    questions, adaptive
        How many questions of a session are asked, where trials are questions: those that come
        first or, by the name of a model, each time the one that is expected to tell most about
        its parameters (`inference.ChosenQuestions`).
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """

    verb: ClassVar[str] = "recover"

    subjects: int = 100
    sessions: int = 1
    trials: int | None = None

    def answer(self) -> Recovery:
        """Compute the study."""
        from .parameter_recovery import compute

        return compute(self)


@frozen_question
class RecoverOverSizes(RecoveryQuestion["RecoverySurface"]):
    """Recover a model's parameters in every combination of sizes; the rest is as in `recover`.

    Raises
    ------
    ValueError
        As for `recover`, or if a grid is empty.
    """

    verb: ClassVar[str] = "recovery_surface"

    subjects: Sequence[int] = (100,)
    sessions: Sequence[int] = (1,)
    trials: Sequence[int | None] = (None,)

    def answer(self) -> RecoverySurface:
        """Compute the study."""
        from .recovery_surface import compute

        return compute(self)


@frozen_question
class Confuse(ExperimentQuestion["ModelRecovery"]):
    """Ask whether a design tells rival models apart.

    Each model in turn generates data sets, its subjects drawn from its priors; all of them are
    fitted to each, every subject alone; the criterion names the best. One subject of each model
    is lived again through the step interface, which must give the same session.

    Parameters
    ----------
    models
        The rivals, at least two.
    subjects
        Subjects in a data set, whose scores are summed; 1 asks for the model of each single one.
    replicates
        Data sets of each model.
    trials
        Trials per session, where the experiment lets one choose; its own number if None.
    criteria
        "aic", "bic": from the maximum of the likelihood. "cv", "loo": how well sequences are
        predicted from the subject's others, by the MAP estimate or by PSIS from the posterior; a
        sequence is a session or, within one, a value of each column that all rivals keep separate.
    truth
        Parameters that are the same for all subjects of every model that has them; the others are
        drawn.
    lapse, fit_lapse
        Lapse rate of the subjects; whether it is estimated, in all rivals in which it changes
        anything.
    all_trials
        Fit all trials. Otherwise all rivals are fitted to those to which one of them is fitted
        alone (first free choices of `horizon_explorer`), if none goes by the trials between.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """

    command: ClassVar[str] = "confuse"
    verb: ClassVar[str] = "confuse"
    help: ClassVar[str] = (
        "Ask whether a design tells rival models apart: confusion and inversion matrices."
    )

    environment: Environment | str = asks(Experiment, kw_only=False)
    models: Sequence[type[Agent] | str] = option(
        list[str] | None,
        "A rival; at least two. All that can play if none.",
        completion=completes("models"),
        untyped=None,
        name="model",
        kw_only=False,
    )
    criteria: Sequence[Criterion] = option(
        list[str] | None,
        "aic, bic, cv or loo; several are compared.",
        default=("aic", "bic"),
        untyped=None,
        name="criterion",
    )
    subjects: int = option(int, "Subjects per data set.", default=1)
    replicates: int = option(int, "Data sets per model.", default=200)
    sessions: int = asks(Sessions, default=1)
    trials: int | None = asks(NTrials, default=None)
    seed: int = asks(Seed, default=0)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    lapse: float = asks(Lapse, default=0.0)
    fit_lapse: bool = asks(FitLapse, default=False)
    all_trials: bool = asks(AllTrials, default=False)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed; without rivals, all models that can play."""
        models = given["model"] or _players(given["environment"])
        return super().read({**given, "model": models})

    def asked(self) -> dict[str, Any]:
        """What was asked; a rate of zero is not named."""
        return super().asked() | {"criterion": list(self.criteria), "lapse": self.lapse or None}

    def answer(self) -> ModelRecovery:
        """Compute the study."""
        from .model_recovery import compute

        return compute(self)


def _players(environment: str) -> list[str]:
    """Names of all models that can play an experiment."""
    from knownminds.agents import AGENTS
    from knownminds.environments import make

    place = make(environment)
    return [name for name, model in AGENTS.items() if model.plays(place)]
