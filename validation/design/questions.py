"""What `design` is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from knownminds.validation.engine.question import (
    ExperimentQuestion,
    asks,
    frozen_question,
    option,
)
from knownminds.validation.options import Experiment, Model, NTrials, Seed, Values
from knownminds.validation.reading import read_numbers

if TYPE_CHECKING:
    from knownminds.agents import Agent
    from knownminds.environments import Environment

    from .best_design import BestDesign


@frozen_question
class AskDesign(ExperimentQuestion["BestDesign"]):
    """Search an experiment's settings for the design that serves best for the money.

    Designs are drawn from what the experiment declares searchable (a scrambled Halton sequence),
    each with as many sessions as the budget affords, the shipped design and the paper's among them.
    All are judged on the same minds and random numbers. Successive halving gives each of them a few
    data sets, then twice as many to the better half, and so on. The best one, the shipped and the
    paper's are then measured in fresh data sets, at the whole budget and at parts of it.

    Parameters
    ----------
    goal
        "parameters", or names of some ("alpha,beta"): the smallest expected posterior standard
        deviation on the unconstrained scale, in prior standard deviations, mean over those named.
        Names of models ("a,b"): the chance that the most probable one, given the data, is the true
        one, each equally probable beforehand. A measure or parameter and its size
        ("optimism_bias=0.2"): the power of `power`'s test at 5%.
    budget
        {"trials": 500} or {"dollars": 20}: what everything together may cost.
    llm, date, reasoning
        With dollars: the language model, the day of its prices, and the lowest and highest number
        of tokens that it thinks before an answer ("0-800").
    search
        Settings to search; all that are declared if None. "NAME=LOW:HIGH" and "NAME=[..., ...]"
        try other values than those declared. "trials" is the number of trials per session, and
        "sessions" that of each participant, for an effect.
    subjects
        Minds that share the budget; 1 is a single one, whose sessions an effect is tested over.
    sessions
        For an effect: of each participant, the budget being spent on participants; None for one
        mind.
    comparison, estimator
        For an effect, see `power`.
    designs
        How many are tried.
    replicates
        Data sets of the designs that stay in the search to its end.
    thorough
        Whether every design gets so many, without halving.
    fresh
        Data sets of the fresh run.
    pilot
        The folder of a hierarchical fit. Minds are then draws of groups of its posterior in place
        of the model's priors, with which their data are still analysed; as many answers are lost,
        at random, as the pilot lacks. Of models, those of the one that was fitted are. An effect
        ("optimism_bias=pilot") may be the pilot's own.
    unconverged
        Go on with a pilot that did not converge.
    run
        With dollars, the folder of a run with a language model: sessions are priced by the tokens
        and the money that its ledger holds.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`; every step is a folder within `out`.

    Raises
    ------
    ValueError
        If an argument does not fit, a setting cannot be searched (those that can are named), or the
        budget is below the smallest design.
    """

    command: ClassVar[str] = "design"
    verb: ClassVar[str] = "best_design"
    help: ClassVar[str] = "Search an experiment's settings for the best design for the money."

    environment: Environment | str = asks(Experiment, kw_only=False)
    goal: str = option(
        str,
        "parameters, or some: a,b; models: m,n; or an effect: NAME=SIZE.",
        default="parameters",
        flag="--for",
        kw_only=False,
    )
    budget: Mapping[str, float] = option(
        str,
        "trials=500 or dollars=20.",
        flag="--budget",
        read=lambda text: read_numbers("--budget", [text]),
    )
    model: type[Agent] | str = asks(Model, default="rescorla_wagner_dual", untyped=None)
    llm: str | None = option(
        str | None, "PROVIDER:MODEL, whose prices turn prompts into dollars.", default=None
    )
    date: str | None = option(str | None, "YYYY-MM-DD: the day of the prices.", default=None)
    reasoning: str = option(str, "LOW-HIGH: tokens of thought before each answer.", default="0-0")
    search: Sequence[str] | None = option(
        list[str] | None,
        "NAME, NAME=LOW:HIGH or NAME=[..., ...] of a setting; all that can be if none.",
        default=None,
    )
    subjects: int = option(int, "Minds that share the budget; 1 is a single one.", default=1)
    sessions: int | None = option(
        int | None, "For an effect: of each participant; one mind if none.", default=None
    )
    trials: int | None = asks(NTrials, default=None)
    comparison: Literal["one", "between", "paired"] = option(
        str, "For an effect: one, between or paired.", default="one"
    )
    estimator: Literal["two_stage", "hierarchical"] = option(
        str, "For an effect: two_stage or hierarchical.", default="two_stage"
    )
    designs: int = option(int, "How many designs are tried.", default=100)
    replicates: int = option(int, "Data sets of those that stay to the end.", default=200)
    thorough: bool = option(
        bool, "All designs get so many data sets.", default=False, flag="--thorough"
    )
    fresh: int = option(int, "Data sets of the fresh run.", default=1000)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    pilot: str | Path | None = option(
        Path | None,
        "A hierarchical fit (its folder): minds are drawn from its posterior.",
        default=None,
        flag="--from",
    )
    unconverged: bool = option(
        bool,
        "With --from: go on with a posterior that did not converge.",
        default=False,
        flag="--unconverged",
    )
    run: str | Path | None = option(
        Path | None,
        "With dollars, in place of --llm: a run's folder, by which sessions are priced.",
        default=None,
        flag="--run",
    )
    seed: int = asks(Seed, default=0)

    @classmethod
    def named(cls, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the models that were typed: rivals, or the one model."""
        from .goals import rivals_in

        return rivals_in(found.get("goal", "parameters")) or [found["model"]]

    def asked(self) -> dict[str, Any]:
        """What was asked; usual ways are not named."""
        told = super().asked()
        usual = {"comparison": "one", "estimator": "two_stage", "reasoning": "0-0"}
        told |= {k: None for k, value in usual.items() if told[k] == value}
        (budget,) = self.budget.items()
        return told | {
            "budget": f"{budget[0]}={budget[1]:.12g}",
            "search": list(self.search or ()),
            "from": None if self.pilot is None else str(self.pilot),
            "run": None if self.run is None else str(self.run),
            "thorough": self.thorough or None,
        }

    def answer(self) -> BestDesign:
        """Search."""
        from .best_design import compute

        return compute(self)
