"""What `channel` is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from knownminds.validation.engine.question import ExperimentQuestion, asks, frozen_question, option
from knownminds.validation.options import (
    Experiment,
    FitLapse,
    Fixed,
    Lapse,
    Model,
    NTrials,
    Seed,
    Sessions,
    Subjects,
    Values,
)
from knownminds.validation.reading import read_numbers

if TYPE_CHECKING:
    from knownminds.agents import Agent, Contaminants
    from knownminds.environments import Environment

    from .channel_study import Channel


@frozen_question
class AskChannel(ExperimentQuestion["Channel"]):
    """Ask whether known minds come through words as they are.

    Each subject lives its sessions twice: directly, and in words, from the prompt through a text
    that may be contaminated to the parser. Both must be the same, trial by trial, but for
    what was not read. Each trial must say what became of its answer, as often as the dials do, and
    the bounds over what the missing answers could have been must hold the true parameters. The same
    subjects with the same luck answer with each set of contaminants.

    Parameters
    ----------
    contaminants
        Sets of rates, or texts as `parse_contaminants` reads them; `CONTAMINANTS` if None. Lapses
        are given by `lapse`, since they are part of the decision.
    method
        "map" or "mle"; intervals are those of the normal approximation.
    trials, truth, lapse, fixed, fit_lapse
        As in `recover`.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """

    command: ClassVar[str] = "channel"
    verb: ClassVar[str] = "channel"
    help: ClassVar[str] = (
        "Ask whether known minds come through words as they are, and bounds hold what is lost."
    )

    environment: Environment | str = asks(Experiment, kw_only=False)
    model: type[Agent] | str = asks(
        Model, default="rescorla_wagner_dual", untyped=None, kw_only=False
    )
    contaminants: Sequence[Contaminants | str] | None = option(
        list[str] | None,
        'Rates of one set, "refusal=0.05,malformed=0.05"; or "none".',
        default=None,
        name="contaminate",
    )
    subjects: int = asks(Subjects, default=40)
    sessions: int = asks(Sessions, default=1)
    trials: int | None = asks(NTrials, default=None)
    method: str = option(str, "map or mle.", default="map")
    seed: int = asks(Seed, default=0)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    fixed: Mapping[str, float] | None = asks(
        Fixed, default=None, read=partial(read_numbers, "--fix")
    )
    lapse: float = asks(Lapse, default=0.0)
    fit_lapse: bool = asks(FitLapse, default=False)

    def answer(self) -> Channel:
        """Compute the study."""
        from .channel_study import compute

        return compute(self)
