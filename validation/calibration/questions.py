"""Questions of `calibrate`: arguments and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from knownminds.validation.engine.question import ExperimentQuestion, asked_by, option

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string


@asked_by(
    "calibrate",
    "calibration.calibration",
    rare="correlated formula around quantities simulator clear most questions adaptive",
    only_with={"most": "clear"},
)
class Calibrate(ExperimentQuestion["Result"]):
    """Ask whether posteriors are right: simulation-based calibration.

    Each replicate draws parameters from the model's priors (for groups from the hyperpriors),
    simulates, samples the posterior and ranks the truth among 99 of its draws, for every parameter
    and for the log-likelihood, which sees errors that parameters alone do not (Talts et al. 2018;
    Modrák et al. 2023). Right posteriors give uniform ranks, which are judged at 5% over all
    quantities by a simultaneous band (Säilynoja, Bürkner and Vehtari 2022) and by the sum of their
    squared normal scores, which sees a wrong width earlier.

    Parameters
    ----------
    replicates : Posteriors; fewer than some 12 to 20 are not judged. Fewer do not notice, with a
        chance of 80%, a posterior that is half as wide as it should be.
    subjects : Subjects of a group (hierarchical); 20 if not given. Single posteriors have one.
    method : map (single posteriors) or hierarchical.
    correlated : Parameters go together (hierarchical), and the fit estimates how.
    formula : "alpha ~ session + (session | subject)" (hierarchical). By it parameters change from
        one of a subject's sessions to the next.
    truth : NAME=VALUE: a setting of the experiment. Parameters are drawn, or held by `fixed`.
    fixed : NAME=VALUE: a parameter held at a value, in the truth and in the fit.
    around : Trials, or the folder of a run: calibrate around these data. True values are then drawn
        from the posteriors of the data's subjects, one after the other, and ranked given these
        trials and the simulated ones. For single posteriors.
    quantities : Further quantities that are ranked: expressions of parameters, "alpha * beta". Of a
        group the mean over its subjects.
    simulator : A Python file of the model's author with a function simulate(parameters, session,
        rng), which plays in the place of the model: ``for seen in session: session.take(choice)``.
    clear : Go on until the verdict is clear, with twice as many replicates each time: a quantity is
        not calibrated, or a posterior would be noticed with a chance of 80% that is so many times
        as wide as it should be (0.85). `replicates` is the first number. The level of 5% is shared
        among the looks, half of what is left to each.
    most : The largest number of replicates, with `clear`.
    """

    model: type[Model] | str | None = option(default=None, kw_only=False)
    replicates: int = 200
    subjects: int | None = None
    sessions: int = 1
    trials: int | None = None
    method: Literal["map", "hierarchical"] = "map"
    correlated: bool = False
    formula: Sequence[str] | None = None
    fixed: Mapping[str, float] | None = None
    around: str | os.PathLike[str] | None = None
    quantities: Sequence[str] = option("--quantity", default=())
    simulator: str | os.PathLike[str] | None = None
    clear: float | None = None
    most: int = 3200
    questions: int | None = None
    adaptive: str | None = None
