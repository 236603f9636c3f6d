"""Groups to simulate from whose parameters go together, or change from session to session.

What a hierarchical fit with correlations and with a formula takes for granted, drawn: means and
spreads from the hyperpriors, correlations as Lewandowski, Kurowicka and Joe (2009) draw them,
weights Normal(0, prior sd) and the spreads of subjects' effects half-normal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import session_stream
from knownminds.inference.groups.deviations import Deviations
from knownminds.inference.groups.formulas import GroupDesign

_KEY = 73  # of the stream of correlations, weights and effects
COLUMN = "session"  # what formulas of simulated sessions may name


def checked_correlations(
    model: type[Model], given: Mapping[str, float] | None, held: Mapping[str, float]
) -> dict[str, float]:
    """Return correlations by pairs in the model's order, "alpha, beta".

    Raises
    ------
    ValueError : If a pair is none of the model's parameters that vary, or no subjects have these
        correlations together.
    """
    names = model.parameters.names
    correlations: dict[str, float] = {}
    for text, value in (given or {}).items():
        pair = [name.strip() for name in text.split(",")]
        places = sorted({model.parameters.index(name) for name in pair})
        if len(pair) != 2 or len(places) != 2:
            raise ValueError(
                "A correlation is between two parameters, such as "
                f"{','.join(names[:2])}=0.5; got {text!r}."
            )
        if lost := [names[k] for k in places if names[k] in held]:
            raise ValueError(
                f"Correlations are of parameters that vary; {lost[0]} is held at {held[lost[0]]:g}."
            )
        if not -1.0 < value < 1.0:
            raise ValueError(f"A correlation lies between -1 and 1; got {text}={value:g}.")
        correlations[", ".join(names[k] for k in places)] = float(value)
    if correlations and np.linalg.eigvalsh(correlation_matrix(names, correlations)).min() <= 1e-9:
        raise ValueError(
            "No subjects have all of these correlations together: "
            f"{'; '.join(f'{pair} {r:g}' for pair, r in correlations.items())}. Make them smaller."
        )
    return correlations


def correlation_matrix(names: Sequence[str], correlation: Mapping[str, float]) -> Array:
    """Return the correlations of all parameters [P, P], 0 where none is given."""
    whole = np.eye(len(names))
    for pair, r in correlation.items():
        i, j = (list(names).index(name) for name in pair.split(", "))
        whole[i, j] = whole[j, i] = r
    return whole


@dataclass(frozen=True)
class DrawnGroup:
    """A group and its subjects.

    Parameters
    ----------
    z : of each session and subject, [sessions, n, K], on the unconstrained scale
    terms : what was drawn besides means and spreads, by name: "cor(alpha, beta)"
    """

    z: Array
    terms: Mapping[str, float]


def design_of_sessions(
    formula: Sequence[str],
    model: type[Model],
    parameters: Parameters,
    subjects: int,
    sessions: int,
    correlated: bool,
) -> GroupDesign:
    """Return the design of simulated sessions, all first sessions first.

    Raises
    ------
    ValueError : If the formula names anything but the session, or there is only one.
    """
    if sessions < 2:
        raise ValueError(
            f"A formula of simulated sessions is about the column {COLUMN!r}, of which there is "
            f"one; got {sessions}. Ask for more (--sessions 2)."
        )
    frame = pd.DataFrame(
        {
            "subject": np.tile(np.arange(subjects), sessions).astype(str),
            COLUMN: np.repeat(np.arange(sessions), subjects).astype(str),
            "trial": 0,
        }
    )
    return GroupDesign.of(list(formula), frame, model, parameters, correlated=correlated)


def draw_group(
    parameters: Parameters,
    mean: Array,
    spread: Array,
    standard: Array,
    *,
    sessions: int,
    design: GroupDesign | None,
    address: Sequence[int],
) -> DrawnGroup:
    """Draw a group and the parameters of its subjects.

    Parameters
    ----------
    mean, spread : Of the parameters, [K].
    standard : Standard normal numbers, a row for each subject, [n, K].
    design : Of a formula, for as many subjects; None for parameters that go together and nothing
        else.
    address : Seed and address of the stream that the rest is drawn from.
    """
    n, k = standard.shape
    deviations = Deviations.plain(parameters, n, True) if design is None else design.deviations
    rng = session_stream(*address, _KEY)
    exponents = deviations.exponents
    partial = 2.0 * rng.beta(exponents, exponents) - 1.0 if len(exponents) else np.zeros(0)
    turn = np.arctanh(partial)[None]
    q = len(deviations.names)
    prior = deviations.prior_scale(parameters)
    sds = np.append(spread, prior[k:] * np.abs(rng.standard_normal(q - k)))
    terms = {f"sd({name})": float(sd) for name, sd in zip(deviations.slopes, sds[k:], strict=True)}
    correlation = deviations.correlations(turn, np.ones((1, q)))[0]
    terms |= {
        f"cor({p})": float(r) for p, r in zip(deviations.pair_names, correlation, strict=True)
    }
    root = sds[:, None] * deviations.roots(turn)[0]
    expected = np.tile(mean, (len(deviations.subject), 1))
    if design is not None and design.regressors is not None:
        moved = design.regressors.parameter
        effect = design.regressors.prior_sd(parameters) * rng.standard_normal(len(moved))
        expected += (design.regressors.by_subject * effect) @ np.eye(k)[moved]
        terms |= dict(zip(design.regressors.names, effect.tolist(), strict=True))
    # Last, subject after subject: more subjects begin with the same ones.
    numbers = np.concatenate([standard, rng.standard_normal((n, q - k))], axis=1) @ root.T
    z = expected + deviations.enter(numbers)
    rows = z.reshape(-1, n, k)  # a single row of each subject stands for all sessions
    return DrawnGroup(np.broadcast_to(rows, (sessions, n, k)).copy(), terms)
