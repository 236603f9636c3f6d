"""What `channel` is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from knownminds.validation.engine.question import (
    ExperimentQuestion,
    argument,
    frozen_question,
    named,
    positional,
)

if TYPE_CHECKING:
    from knownminds.agents import Agent, Contaminants
    from knownminds.environments import Environment
    from knownminds.validation.engine.result import Result


@frozen_question
class Channel(ExperimentQuestion["Result"]):
    """Ask whether known minds come through words as they are, and bounds hold what is lost.

    Each subject takes its sessions twice: directly, and in words, from the prompt through a text
    that may be contaminated to the parser. Both must be the same, trial by trial, but for what was
    not read. Each trial must say what became of its answer, as often as the dials do, and the
    bounds over what the missing answers could have been must hold the true parameters. The same
    subjects with the same random numbers answer with each set of contaminants.

    Parameters
    ----------
    environment
        The experiment.
    model
        Who answers; the experiment's usual model if not given.
    contaminants
        Rates of one set, "refusal=0.05,malformed=0.05"; or "none". Several sets are compared; those
        of `CONTAMINANTS` if none is given. Lapses are given by `lapse`, since they are part of the
        decision.
    subjects
        How many, the same with each set.
    sessions
        Sessions of each subject.
    trials
        Trials per session, where the experiment lets one choose.
    method
        map or mle. Intervals are those of the normal approximation.
    seed
        Everything random follows from it.
    truth
        NAME=VALUE: a true parameter, the same for all subjects, or a setting of the experiment.
    fixed
        NAME=VALUE: a parameter held at a value in the fit.
    lapse
        Lapse rate of the simulated subjects.
    fit_lapse
        Estimate a lapse rate.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """

    command: ClassVar[str] = "channel"
    verb: ClassVar[str] = "channel"

    environment: Environment | str = argument(kw_only=False)
    model: type[Agent] | str = positional(kw_only=False)
    contaminants: Sequence[Contaminants | str] | None = named("--contaminate", default=None)
    subjects: int = 40
    sessions: int = 1
    trials: int | None = None
    method: Literal["map", "mle"] = "map"
    seed: int = 0
    truth: Mapping[str, float] | None = named("--set", default=None)
    fixed: Mapping[str, float] | None = named("--fix", default=None)
    lapse: float = 0.0
    fit_lapse: bool = False

    def asked(self) -> dict[str, Any]:
        """What was asked; a rate of zero is not named."""
        return super().asked() | {"lapse": self.lapse or None, "fix": dict(self.fixed or {})}

    def answer(self) -> Result:
        """Compute the study."""
        from .channel_study import compute

        return compute(self)
