"""Questions of `recover` and `confuse`: arguments and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from knownminds.validation.engine.question import ExperimentQuestion, asked_by, option

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string


@asked_by(
    "recover",
    "recovery.parameter_recovery",
    rare="lapse fit_lapse all_trials correlation questions adaptive",
)
class Recover(ExperimentQuestion["Result"]):
    """Ask whether a design gives a model's parameters back; several sizes give a grid.

    Subjects are drawn from the model's priors, take the experiment, and are fitted. One of them
    also takes it trial by trial, which must give the same session.

    Parameters
    ----------
    subjects : How many.
    replicates : Independent repetitions.
    method : map, mle, marginal or hierarchical. "map" and "mle" fit each subject alone,
        "hierarchical" all of a replicate together. "marginal" is map with the means and spreads of
        each replicate's group by its marginal likelihood.
    truth : NAME=VALUE: a true parameter, the same for all subjects, or a setting of the experiment.
    intervals : Intervals for --method map: posterior or laplace. Each subject's posterior is right,
        and ten times slower than Laplace's normal approximation, which covers too little with few
        trials; "mle" has only the latter.
    population : prior, group or correlated. "prior" draws each subject from the model's priors,
        just as "map" assumes. "group" draws the subjects of each replicate from a group of its own,
        whose mean and spread come from the hyperpriors and are not known to the fit: what people
        are like. "correlated" is such a group whose parameters go together, with correlations from
        what a correlated fit takes for granted; "hierarchical" then estimates them.
    """

    model: type[Model] | str | None = option(default=None, kw_only=False)
    subjects: int | Sequence[int] = 100
    replicates: int = 1
    sessions: int | Sequence[int] = 1
    trials: int | Sequence[int] | None = None
    method: Literal["map", "mle", "marginal", "hierarchical"] = "map"
    fixed: Mapping[str, float] | None = None
    lapse: float = 0.0
    fit_lapse: bool = False
    all_trials: bool = False
    intervals: Literal["posterior", "laplace"] = "posterior"
    population: Literal["prior", "group", "correlated"] = "prior"
    correlation: Mapping[str, float] | None = None
    questions: int | None = None
    adaptive: str | None = None

    def option_values(self) -> dict[str, Any]:
        """The options; kinds of intervals are those of "map"."""
        return super().option_values() | ({} if self.method == "map" else {"intervals": None})


@asked_by(
    "confuse",
    "recovery.confusion",
    rare="lapse fit_lapse all_trials pilot",
    only_with={"target": "find", "most": "find"},
)
class Confuse(ExperimentQuestion["Result"]):
    """Ask whether a design tells rival models apart: confusion and inversion matrices.

    Each model in turn generates data sets, its subjects drawn from its priors; all of them are
    fitted to each, every subject alone; the criterion names the best. One subject of each model
    also takes it trial by trial, which must give the same session.

    Parameters
    ----------
    models : A rival; at least two. All that can play if none.
    criteria : aic, bic, cv or loo; several are compared. "aic", "bic": from the maximum of the
        likelihood. "cv", "loo": how well sequences are predicted from the subject's others, by the
        MAP estimate or by PSIS from the posterior; a sequence is a session or, within one, a value
        of each column that all rivals keep separate.
    subjects : Subjects per data set, whose scores are summed.
    replicates : Data sets per model.
    truth : NAME=VALUE: a true parameter of every model that has it, or a setting of the experiment.
    fit_lapse : Estimate a lapse rate, in all rivals in which it changes anything.
    all_trials : Fit all trials. Otherwise all rivals are fitted to those to which one of them is
        fitted alone (first free choices of `horizon_explorer`), if none goes by the trials between.
    pilot : A hierarchical fit of one of the models (its folder). The groups of its data sets are
        draws of the posterior, and as many answers are lost, at random, as the pilot lacks.
    find : sessions, subjects or trials: find the smallest number at which every model is named for
        what it is, by one criterion (BIC unless another one is named).
    target : With --find: the share of data sets that each model has to win.
    """

    models: Sequence[type[Model] | str] = option("--model", default=(), kw_only=False)
    criteria: Sequence[str] = option("--criterion", default=("aic", "bic"))
    subjects: int | Sequence[int] = 1
    replicates: int = 200
    sessions: int | Sequence[int] = 1
    trials: int | Sequence[int] | None = None
    lapse: float = 0.0
    fit_lapse: bool = False
    all_trials: bool = False
    pilot: str | Path | None = None
    unconverged: bool = False
    find: Literal["sessions", "subjects", "trials"] | None = None
    target: float = 0.8
    most: int = 200

    def __post_init__(self) -> None:
        """Take all models that can play where none is named; check that all goes together."""
        if not len(self.models):
            object.__setattr__(self, "models", _players(self.environment))
        super().__post_init__()
        if self.find is None:
            return
        if self.pilot is not None:
            raise ValueError("A search draws agents from the priors; leave --from or --find out.")
        self.check_single("--find")


def _players(environment: Environment | str) -> list[str]:
    """Names of all models that can play an experiment."""
    from knownminds.agents import AGENTS
    from knownminds.validation.engine.arguments import resolve_environment

    played = resolve_environment(environment)
    return [name for name, model in AGENTS.items() if model.plays(played)]
