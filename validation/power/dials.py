"""Agents in which a measure has a given size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, unknown
from knownminds.inference import MEASURES, Measure, parameter_measure

POINTS = 1024  # of the group over which a measure is averaged, a power of two
GROUPS = 512  # that are known at a time: a pilot has some hundreds, and every batch asks for them


def resolve_measure(
    name: str, model: type[Model], environment: Environment | None = None
) -> Measure:
    """Return the measure of this name, or the model's parameter of this name as a measure.

    With an experiment it is the measure as it is there.
    """
    if name in MEASURES:
        measure = MEASURES[name]
        return measure if environment is None else measure.in_place(environment)
    if name in model.parameters.names:
        return _parameter(model, name)
    kind = f"measure, or parameter of {model.name},"
    raise ValueError(unknown(kind, name, [*MEASURES, *model.parameters.names]))


_parameter = lru_cache(maxsize=None)(parameter_measure)  # one object each, known to _curve


@dataclass(frozen=True)
class GroupDial:
    """A measure's dial on a group of agents: turned by s, everyone's z grows by s x dial.

    Parameters
    ----------
    group_mean, group_sd : Of the group on the unconstrained scale, [P].
    """

    measure: Measure
    model: type[Model]
    group_mean: Array
    group_sd: Array

    @property
    def direction(self) -> Array:
        """The dial as a vector over the model's parameters, [P]."""
        return self.measure.dial.along(self.model.parameters.names)

    @property
    def curve(self) -> tuple[Array, Array]:
        """Turns of the dial, and the group's mean of the measure at each."""
        group = (tuple(self.group_mean.tolist()), tuple(self.group_sd.tolist()))
        return _curve(self.measure, self.model, *group)

    @property
    def rest(self) -> float:
        """The group's mean of the measure before the dial is turned."""
        group = (tuple(self.group_mean.tolist()), tuple(self.group_sd.tolist()))
        return _level(self.measure, self.model, *group)

    def turn_to(self, size: Array) -> Array:
        """Return how far to turn so that the group's mean of the measure has these sizes.

        Raises
        ------
        ValueError : If no turn reaches a size, or the dial does not move the measure.
        """
        turns, values = self.curve
        name, model = self.measure.name, self.model.name
        if not np.all(np.diff(values) >= 0) or values[-1] - values[0] < 1e-9:
            raise ValueError(f"No dial of {model} moves {name} steadily; choose another model.")
        wanted = np.asarray(size, dtype=float)
        beyond = (wanted <= values[0]) | (wanted >= values[-1])
        if beyond.any():
            raise ValueError(
                f"In {model} the group's mean of {name} lies between {values[0]:.3g} and "
                f"{values[-1]:.3g}; got {wanted[beyond].flat[0]:.3g}. Choose a smaller effect."
            )
        return np.asarray(np.interp(wanted, values, turns), dtype=float)


@lru_cache(maxsize=8)
def _points(parameters: int) -> Array:
    """Normal numbers that fill a space evenly, [POINTS, parameters]."""
    # The second half of the sequence is as even as the first, and has no point at 0.
    points = scipy.stats.qmc.Sobol(parameters, scramble=False).random(2 * POINTS)[POINTS:]
    return np.asarray(scipy.stats.norm.ppf(points), dtype=float)


@lru_cache(maxsize=GROUPS)
def _level(
    measure: Measure, model: type[Model], group_mean: tuple[float, ...], group_sd: tuple[float, ...]
) -> float:
    z = np.array(group_mean) + np.array(group_sd) * _points(len(group_mean))
    return float(measure.group_truth(model, model.parameters.constrain(z)))


@lru_cache(maxsize=GROUPS)
def _curve(
    measure: Measure, model: type[Model], group_mean: tuple[float, ...], group_sd: tuple[float, ...]
) -> tuple[Array, Array]:
    parameters = model.parameters
    z = np.array(group_mean) + np.array(group_sd) * _points(len(parameters))
    turns, direction = measure.dial.turns, measure.dial.along(parameters.names)
    values = [measure.group_truth(model, parameters.constrain(z + s * direction)) for s in turns]
    return turns, np.array(values)
