"""Questions of `design`: arguments and options."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from knownminds.validation.engine.question import ExperimentQuestion, asked_by, option

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string


@asked_by(
    "design",
    "design.best_design",
    verb="best_design",
    rare="date reasoning comparison estimator thorough pilot run",
    quiet="reasoning comparison estimator",
)
class AskDesign(ExperimentQuestion["Result"]):
    """Search an experiment's settings for the best design for the money.

    Designs are drawn from what the experiment declares searchable, each with as many sessions as
    the budget affords. Successive halving gives each a few data sets, then twice as many to the
    better half, and so on. The best, the shipped and the paper's are then measured in fresh data
    sets, at the whole budget and at parts of it. Every step is a folder within `out`.

    Parameters
    ----------
    goal : parameters, or some: a,b; models: m,n; or an effect: NAME=SIZE. Parameters: the smallest
        expected posterior standard deviation on the unconstrained scale, in prior standard
        deviations, mean over those named. Models: the chance that the most probable one, given the
        data, is the true one, each equally probable beforehand. A measure or parameter and its size
        ("optimism_bias=0.2"): the power of `power`'s test at 5%.
    budget : trials=500 or dollars=20. What everything together may cost, {"trials": 500} in Python.
    llm : PROVIDER:MODEL, whose prices turn prompts into dollars.
    search : NAME, NAME=LOW:HIGH or NAME=[..., ...] of a setting; all that can be if none. "trials"
        is the number of trials per session, and "sessions" that of each participant, for an effect.
    subjects : Agents that share the budget; 1 is a single one. Its sessions are what an effect is
        tested over.
    sessions : For an effect: of each participant, on whom the budget is spent; one agent if none.
    comparison : For an effect: one, between or paired.
    estimator : For an effect: marginal or hierarchical; see `power`.
    designs : How many designs are tried.
    replicates : Data sets of those that stay to the end.
    thorough : All designs get so many data sets.
    fresh : Data sets of the fresh run.
    pilot : A hierarchical fit (its folder): agents are drawn from its posterior, and analysed with
        the model's priors. As many answers are lost, at random, as the pilot lacks. An effect
        ("optimism_bias=pilot") may be the pilot's.
    run : With dollars, instead of --llm: a run's folder, by which sessions are priced.
    """

    goal: str = option("--for", default="parameters", kw_only=False)
    budget: Mapping[str, float] = option(kw_only=True)
    model: type[Model] | str | None = None
    llm: str | None = None
    date: datetime.date | None = None
    reasoning: tuple[int, int] = (0, 0)
    search: Sequence[str] | None = None
    subjects: int = 1
    sessions: int | None = None
    trials: int | None = None
    comparison: Literal["one", "between", "paired"] = "one"
    estimator: Literal["marginal", "hierarchical"] = "marginal"
    designs: int = 100
    replicates: int = 200
    thorough: bool = False
    fresh: int = 1000
    pilot: str | Path | None = None
    unconverged: bool = False
    run: str | Path | None = None

    @property
    def playing(self) -> Sequence[Any]:
        """The rivals, or the one model."""
        from .goals import rivals_in

        return rivals_in(self.goal) or [self.model]
