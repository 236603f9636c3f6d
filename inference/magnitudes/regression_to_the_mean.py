"""How far answers are drawn from the stimuli towards the middle of a window."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import DeclaredMeasure

from .magnitude_answers import TASKS


def prior_weight(measure: DeclaredMeasure, model: type[Model], theta: Array) -> Array:
    """Return the prior weight of agents with parameters theta[n, P]; 1 - w for linear ones."""
    names = model.parameters.names
    if "w_prior" in names and "gain" not in names and not model.name.endswith("_log"):
        weight: Array = theta[:, names.index("w_prior")]
        return weight
    if model.name == "linear_observer":
        return np.asarray(1.0 - theta[:, names.index("w")])
    raise ValueError(
        f"The true {measure.name} is known of static_bayes_observer and linear_observer; got "
        f"{model.name}. Choose one of these."
    )


def regression_to_the_mean(measure: DeclaredMeasure, trials: Trials) -> Values:
    """Return 1 - slope of each subject's answers on stimuli within windows, by least squares.

    0 means none, 1 complete. It is the prior weight of a static Bayesian observer, but not held in
    [0, 1], so that noise does not bias it. Answers that are cut off at an end of the scale do bias
    it.
    """
    frame = with_columns(trials, measure.name, ("window", "value", "response"))
    subject, names = pd.factorize(frame["subject"])
    group = frame.groupby(["subject", "window"], sort=False).ngroup().to_numpy()
    x, y = (trials.numbers(name) for name in ("value", "response"))
    held = np.isfinite(y)
    subject, group, x, y = subject[held], group[held], x[held], y[held]
    count = np.bincount(group)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx, dy = (z - (np.bincount(group, z) / count)[group] for z in (x, y))
        top, below = (np.bincount(subject, dx * d, len(names)) for d in (dy, dx))
        value = 1.0 - top / below
    return Values.of(np.where(np.isfinite(value), value, np.nan), "too few answers")


REGRESSION_TO_THE_MEAN = DeclaredMeasure(
    read=regression_to_the_mean,
    of_parameters=prior_weight,
    name="regression_to_the_mean",
    summary="how far answers are drawn towards the middle of a window, 1 - slope",
    source="Hollingworth 1910; Petzschner, Glasauer and Stephan 2015",
    environments=TASKS,
    violator="static_bayes_observer",
    dial=Dial({"w_prior": 1.0}, reach=6.0, steps=241),
)
