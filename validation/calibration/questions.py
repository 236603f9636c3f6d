"""What `calibrate` is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from knownminds.validation.engine.question import (
    ExperimentQuestion,
    Typed,
    asks,
    frozen_question,
    option,
)
from knownminds.validation.options import (
    Adaptive,
    Experiment,
    Fixed,
    Model,
    NTrials,
    Questions,
    Seed,
    Sessions,
    Values,
)
from knownminds.validation.reading import read_numbers

if TYPE_CHECKING:
    from knownminds.agents import Agent
    from knownminds.environments import Environment

    from .calibration import Calibration


@frozen_question
class Calibrate(ExperimentQuestion["Calibration"]):
    """Ask whether posteriors are right: drawn from the prior, the truth must have uniform ranks.

    Each replicate draws parameters from the model's priors (for groups from the hyperpriors),
    simulates, samples the posterior and ranks the truth among 99 of its draws, for every parameter
    and for the log-likelihood, which sees errors that parameters alone do not (Talts et al. 2018;
    Modrák et al. 2023). Ranks are judged by a 95% band (Säilynoja, Bürkner and Vehtari 2022) that
    is simultaneous over the ranks and over the quantities.

    Parameters
    ----------
    replicates
        Posteriors. Fewer than would notice, with a chance of 80%, one half as wide as it should be
        (25 to 45 or so, more for more quantities) are not judged.
    subjects
        Of a group (20 if None); single posteriors have one.
    method
        "map" for each subject's own posterior, as `recover --method map` uses it, or
        "hierarchical".
    fixed
        Parameters held at a value, in the truth and in the fit.
    correlated
        Of a group: its parameters go together, with correlations from the law that the fit takes
        for granted, and so does the fit.
    formula
        Of a group: "alpha ~ session + (session | subject)", by which parameters change from one of
        a subject's sessions to the next.
    control
        Fit as if nothing went together and all subjects were moved alike, though they are not: a
        negative control, which should not be called calibrated.
    around
        Trials of the experiment (a file, or the folder of a run): truths are then drawn from the
        posteriors of their subjects, one after the other, and ranked given these trials and the
        simulated ones. Of single posteriors.
    questions, adaptive
        How many questions of a session are asked, and the model by whose expected information they
        are chosen, as in `recover`.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """

    command: ClassVar[str] = "calibrate"
    verb: ClassVar[str] = "calibrate"
    help: ClassVar[str] = "Ask whether posteriors are right: simulation-based calibration."

    environment: Environment | str = asks(Experiment, kw_only=False)
    model: type[Agent] | str = asks(Model, untyped=None, kw_only=False)
    replicates: int = option(
        int, "Posteriors; fewer than some 25 to 45 are not judged.", default=200
    )
    subjects: int | None = option(
        int | None, "Subjects of a group (hierarchical); 20 if not given.", default=None
    )
    sessions: int = asks(Sessions, default=1)
    trials: int | None = asks(NTrials, default=None)
    method: Literal["map", "hierarchical"] = option(
        str, "map (single posteriors) or hierarchical.", default="map"
    )
    correlated: bool = option(
        bool, "Parameters go together (hierarchical).", default=False, flag="--correlated"
    )
    formula: Sequence[str] | None = option(
        list[str] | None, '"alpha ~ session + (session | subject)" (hierarchical).', default=None
    )
    control: bool = option(
        bool, "Fit without both of these on purpose.", default=False, flag="--control"
    )
    seed: int = asks(Seed, default=0)
    truth: ClassVar[None] = None
    fixed: Mapping[str, float] | None = asks(
        Fixed, default=None, read=partial(read_numbers, "--fix")
    )
    around: str | os.PathLike[str] | None = option(
        str | None, "Trials, or a run: calibrate around what they say.", default=None
    )
    questions: int | None = asks(Questions, default=None)
    adaptive: str | None = asks(Adaptive, default=None)

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """Its own fields, and settings of the experiment before those that are held."""
        found = super().typed()
        later = {name: found.pop(name) for name in ("fixed", "around", "questions", "adaptive")}
        return {**found, "truth": Typed(Values, None, "values"), **later}

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed; the truth is drawn."""
        found = super().read(given)
        truth = found.pop("truth")
        if truth:
            raise ValueError(
                f"Calibration draws the truth from the prior; got --set {next(iter(truth))}. "
                "Hold a parameter in truth and fit with --fix."
            )
        return found

    def answer(self) -> Calibration:
        """Compute the study."""
        from .calibration import compute

        return compute(self)
