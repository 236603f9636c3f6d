"""Whether trials ask for parameters that a nested model does without: likelihood-ratio tests."""

from __future__ import annotations

import numpy as np
import scipy

from knownminds.agents import Model
from knownminds.agents.nesting import Nesting, nestings_of
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd

from .model_data import ModelData
from .point import STARTS, maximum_likelihood


def nested_tests(
    model: type[Model],
    trials: Trials | ModelData,
    *,
    starts: int = STARTS,
    workers: int | None = None,
) -> pd.DataFrame:
    """Test each model that lies within this one against it, for each subject.

    The statistic is twice the difference of the maximal log-likelihoods. If one of the parameters
    that the inner model holds lies at an end of its support there, p is that of the even mixture of
    chi-squared laws with one degree of freedom less and with all (Self and Liang 1987, case 6).
    Otherwise, and where several do, it is that of all degrees of freedom, which then rejects too
    rarely. If a held parameter takes the meaning of others away (there is no step of a prior
    without a prior), neither law is exact.

    Returns
    -------
    DataFrame : One row per subject and inner model: subject, without (its name), statistic, freedom
        (how many parameters it holds), aic (that of the inner model less that of the outer),
        p_value. The last three are NaN where one of both fits failed.
    """
    data = trials if isinstance(trials, ModelData) else ModelData.read(model, trials)
    nestings = nestings_of(model)
    inner = {
        one.inner.name: maximum_likelihood(
            one.inner, data.read_by(one.inner), starts=starts, workers=workers
        )
        for one in nestings
    }
    whole = maximum_likelihood(model, data, starts=starts, workers=workers, inner=inner)
    parts = []
    for one in nestings:
        fit = inner[one.inner.name]
        failed = np.array([a == "failed" or b == "failed" for a, b in _both(fit, whole)])
        gain = np.where(failed, np.nan, 2.0 * (whole.log_likelihood - fit.log_likelihood))
        ends, freedom = _held(one)
        parts.append(
            pd.DataFrame(
                {
                    "subject": whole.subjects, "without": one.inner.name,
                    "statistic": np.maximum(gain, 0.0), "freedom": freedom,
                    "aic": gain - 2.0 * freedom, "p_value": _tail(gain, freedom, ends == 1),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _both(one: object, other: object) -> zip[tuple[str, str]]:
    return zip(one.status, other.status, strict=True)  # type: ignore[attr-defined]


def _held(nesting: Nesting) -> tuple[int, int]:
    """Return how many parameters are held at an end of their support, and how many are held."""
    outer, names = nesting.outer.parameters, nesting.inner.parameters.names
    values = nesting.embed(nesting.inner.parameters.constrain(nesting.inner.parameters.mean)[None])
    held = [(p, v) for p, v in zip(outer, values[0], strict=True) if p.name not in names]
    return sum(v in (p.support.lower, p.support.upper) for p, v in held), len(held)


def _tail(statistic: Array, freedom: int, at_an_end: bool) -> Array:
    x = np.maximum(statistic, 0.0)
    p = np.asarray(scipy.stats.chi2.sf(x, freedom))
    if at_an_end:
        less = scipy.stats.chi2.sf(x, freedom - 1) if freedom > 1 else (x <= 0.0) * 1.0
        p = 0.5 * (p + less)
    return np.where(np.isnan(statistic), np.nan, p)
