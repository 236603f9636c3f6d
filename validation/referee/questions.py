"""Questions of `referee`: arguments and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knownminds.validation.engine.question import StudyQuestion, asked_by, option

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string


@asked_by("referee", "referee.referee", holds="referee.json")
class Referee(StudyQuestion["Result"]):
    """Test a model before its fits are believed: one verdict for each of eight questions.

    Does it go by what nobody is told? Does it keep the contract of models? Are there directions of
    its parameters about which the design says nothing? Are its parameters recovered, and where? Are
    its posteriors calibrated? Is it distinguished from its rivals, and from which size of the
    design on? What does it predict that they do not? A model that breaks the contract is tested no
    further. Each part is a folder within `out`.

    Parameters
    ----------
    candidate : A Python file with one model, or the name of a registered one; or a folder of such
        files, of each of which is said whether it recovers, is a copy and can be told from the
        rest.
    against : A rival; if none is named, the experiment's usual model, and beside a folder all
        models of the experiment.
    subjects : Subjects whose parameters are recovered, and whose behaviour is predicted.
    replicates : Posteriors that are calibrated, and data sets of each model that are compared.
    target : The share of its data sets that each model has to win in the smallest design.
    most : Sessions of the largest design that is considered.
    limit : Seconds that each file of a folder has to load, keep the contract, be fitted and be
        recovered, in a process of its own; one that needs more did not end.
    simulator : A Python file of the model's author with a function simulate(parameters, session,
        rng), see `calibrate`. A ninth question is whether the model says what it does.
    """

    candidate: type[Model] | str = option(argument=True, kw_only=False)
    environment: Environment | str
    against: Sequence[str] = ()
    subjects: int = 100
    replicates: int = 100
    sessions: int = 1
    trials: int | None = None
    settings: Mapping[str, Any] | None = None
    target: float = 0.8
    most: int = 64
    limit: float = 60.0
    simulator: str | os.PathLike[str] | None = None
    seed: int = 0
