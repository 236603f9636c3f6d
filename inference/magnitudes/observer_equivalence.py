"""Which observers of magnitudes are the same model, and what of them can be known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Agent
from knownminds.agents.magnitudes.observers import KalmanObserver, MagnitudeObserver
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result, records
from knownminds.inference.fits.identifiability import Identifiability, identifiability
from knownminds.inference.fits.model_data import ModelData

from .observer_fits import OBSERVERS

SUBJECTS = 64
EQUAL = 1e-8  # log-likelihoods of a session that agree to this relative precision are the same
LIMIT = 1e-6  # the same for a model that is reached as a limit
FAST = 1e9  # q/r at which the Kalman observer follows each stimulus entirely
SCALES = (0.1, 3.0, 40.0)  # by which q, P0 and r are multiplied together


@dataclass(frozen=True)
class Equivalence:
    """A claim that two models say the same, and the largest difference found.

    Parameters
    ----------
    first, second : The models; parameters of the first are translated to the second.
    sentence : The claim.
    difference : Largest relative difference of log-likelihoods over the sessions tried; NaN if none
        could be.
    tried : How many sessions had parameters for which the claim is made.
    bound : Below which they count as equal.
    control : Smallest difference where the condition of the claim does not hold, or with one
        parameter changed by 10%: what is not the same must differ.
    """

    first: str
    second: str
    sentence: str
    difference: float
    tried: int
    bound: float
    control: float

    @property
    def holds(self) -> bool:
        """Whether it was seen to hold, and whether the control differs."""
        return self.tried > 0 and self.difference < self.bound < self.control


@dataclass(frozen=True)
class ObserverEquivalence(Result):
    """What can be known of the observers of magnitudes in an experiment.

    Parameters
    ----------
    environment
        Its name.
    information
        Expected information of a session, by model.
    equivalences
        Which models are the same, checked by their log-likelihoods of simulated sessions.
    """

    environment: str
    information: Mapping[str, Identifiability]
    equivalences: tuple[Equivalence, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that cannot be known, in words."""
        told = [e.sentence for e in self.equivalences if e.holds]
        told += [
            f"not confirmed: {e.sentence} (difference {e.difference:.1e})"
            for e in self.equivalences
            if not e.holds
        ]
        for name, one in self.information.items():
            told += [f"{name}: {sentence}" for sentence in one.sentences]
        return tuple(told)

    def to_frame(self) -> pd.DataFrame:
        """One row per claim."""
        return pd.DataFrame(
            {
                "first": [e.first for e in self.equivalences],
                "second": [e.second for e in self.equivalences],
                "sentence": [e.sentence for e in self.equivalences],
                "difference": [e.difference for e in self.equivalences],
                "tried": [e.tried for e in self.equivalences],
                "control": [e.control for e in self.equivalences],
                "holds": [e.holds for e in self.equivalences],
            }
        )

    def content(self) -> Any:
        """What `to_json` holds."""
        return {
            "environment": self.environment,
            "equivalences": records(self.to_frame()),
            "information": self.information,
        }

    def __str__(self) -> str:
        """Claims with what was found, then what a session leaves open in each model."""
        lines = [f"what can be known of observers in {self.environment}", "", "the same model:"]
        for e in self.equivalences:
            found = f"largest difference {e.difference:.0e} in {e.tried} sessions"
            verdict = "confirmed" if e.holds else "NOT CONFIRMED"
            lines.append(f"- {e.sentence}. {verdict}: {found}; otherwise at least {e.control:.0e}")
        lines += ["", "what a session leaves open (expected information):"]
        for name, one in self.information.items():
            told = one.sentences or ("tells every parameter apart from the others",)
            lines += [f"- {name}: {sentence}" for sentence in told]
        return "\n".join(lines)


def observer_equivalence(
    environment: Environment,
    models: Sequence[str] = OBSERVERS,
    *,
    subjects: int = SUBJECTS,
    seed: int = 0,
) -> ObserverEquivalence:
    """Say which observers are the same model in an experiment, and check it numerically.

    Sessions of each first model are simulated at draws from its priors; its parameters are
    translated to the second model, and the two log-likelihoods set against each other.

    Parameters
    ----------
    models
        Whose expected information is reported.
    subjects
        Sessions of each claim; half as many theta for the information.
    """
    equivalences = [_checked(claim, environment, subjects, seed) for claim in _claims()]
    equivalences.append(_only_ratios(environment, subjects, seed))
    information = {
        name: identifiability(AGENTS[name], environment, subjects=max(subjects // 2, 1), seed=seed)
        for name in models
    }
    return ObserverEquivalence(environment.name, information, tuple(equivalences))


@dataclass(frozen=True)
class _Claim:
    """Translate theta of the first model to the second; NaN rows where nothing is claimed."""

    first: str
    second: str
    sentence: str
    translate: Callable[[Array], Array]
    limit: bool = False


def _claims() -> tuple[_Claim, ...]:
    scales = (("", ""), ("_log", " (log scale)"))
    claims: list[_Claim] = []
    for scale, told in scales:
        claims += [
            _Claim(
                f"linear_observer{scale}",
                f"static_bayes_observer_shared{scale}",
                "linear_observer is static_bayes_observer with one prior mean in all windows, as "
                f"long as its slope lies between 0 and 1: w_prior = 1 - w, mu_prior = b / (1 - w)"
                f"{told}",
                _linear_to_static,
            ),
            _Claim(
                f"static_bayes_observer_gain{scale}",
                f"static_bayes_observer{scale}",
                "static_bayes_observer with a gain is the one without, as long as gain (1 - "
                f"w_prior) is below 1: the gain is not identified{told}",
                lambda theta: _to_plain(theta, 0.0),
            ),
            _Claim(
                f"static_bayes_observer_affine{scale}",
                f"static_bayes_observer{scale}",
                "static_bayes_observer with gain and offset is the one without, as long as gain "
                f"(1 - w_prior) is below 1: neither is identified{told}",
                lambda theta: _to_plain(np.delete(theta, 5, axis=1), theta[:, 5:6]),
            ),
            _Claim(
                f"linear_observer{scale}",
                f"kalman_observer_affine{scale}",
                "linear_observer with a positive slope is the limit of kalman_observer with gain "
                f"and offset in which q/r is infinite, so that each stimulus is followed{told}",
                _linear_to_kalman,
                limit=True,
            ),
        ]
    claims.append(
        _Claim(
            "noisy_bayes_observer",
            "static_bayes_observer",
            "noise of the measurement is absorbed by sigma: noisy_bayes_observer is "
            "static_bayes_observer with sigma**2 + (1 - w_prior)**2 sigma_measure**2 in place of "
            "sigma**2, and of both precisions only w_prior is left",
            _noisy_to_static,
        )
    )
    return tuple(claims)


def _linear_to_static(theta: Array) -> Array:
    w, b, sigma = theta.T
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.column_stack([1.0 - w, b / (1.0 - w), sigma])
    rows[(w <= 0.0) | (w >= 1.0)] = np.nan
    return rows


def _to_plain(theta: Array, offset: Array | float) -> Array:
    """Count a gain (column 4) and an offset into w_prior and the means."""
    w, mu, gain, sigma = theta[:, 0], theta[:, 1:4], theta[:, 4], theta[:, -1]
    own = 1.0 - gain * (1.0 - w)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = ((gain * w)[:, None] * mu + offset) / own[:, None]
    rows = np.column_stack([own, means, sigma])
    rows[own <= 0.0] = np.nan
    return rows


def _linear_to_kalman(theta: Array) -> Array:
    w, b, sigma = theta.T
    n = len(theta)
    rows = np.column_stack([np.full(n, FAST), np.ones(n), *np.full((3, n), 0.5), w, b, sigma])
    rows[w <= 0.0] = np.nan
    return rows


def _noisy_to_static(theta: Array) -> Array:
    measure, prior, mu, sigma = theta[:, 0], theta[:, 1], theta[:, 2:5], theta[:, 5]
    w = measure**2 / (measure**2 + prior**2)
    return np.column_stack([w, mu, np.sqrt(sigma**2 + (1.0 - w) ** 2 * measure**2)])


def _checked(claim: _Claim, environment: Environment, subjects: int, seed: int) -> Equivalence:
    first, second = AGENTS[claim.first], AGENTS[claim.second]
    theta = first.parameters.draw(session_stream(seed), subjects)
    columns, subject = _lived(first, theta, environment, seed)
    own = _data(first, columns, subject, subjects).log_likelihood(theta)[0]
    other = claim.translate(theta)
    usable: NDArray[np.bool_] = np.asarray(np.isfinite(other).all(axis=1))
    data = _data(second, columns, subject, subjects)
    filled = np.where(usable[:, None], other, second.parameters.constrain(second.parameters.mean))
    apart = _apart(own, data.log_likelihood(filled)[0])
    # The last parameter of all these models is sigma; changing it changes the model.
    changed = filled.copy()
    changed[:, -1] *= 1.1
    control = _apart(own, data.log_likelihood(changed)[0])
    return Equivalence(
        first=claim.first,
        second=claim.second,
        sentence=claim.sentence,
        difference=float(apart[usable].max(initial=0.0)) if usable.any() else np.nan,
        tried=int(usable.sum()),
        bound=LIMIT if claim.limit else EQUAL,
        control=float(np.concatenate([apart[~usable], control]).min()),
    )


def _only_ratios(environment: Environment, subjects: int, seed: int) -> Equivalence:
    """Check against a recursion of its own that q, P0 and r matter through two ratios only."""
    model = KalmanObserver
    theta = model.parameters.draw(session_stream(seed), subjects)
    columns, subject = _lived(model, theta, environment, seed)
    own = _data(model, columns, subject, subjects).log_likelihood(theta)[0]
    apart = [_apart(own, _written_out(theta, columns, subject, r=r, model=model)) for r in SCALES]
    changed = theta.copy()
    changed[:, 0] *= 1.1  # q but neither P0 nor r
    control = _apart(own, _written_out(changed, columns, subject, r=1.0, model=model))
    return Equivalence(
        first=model.name,
        second=model.name,
        sentence="kalman_observer is the same for (q, P0, r) and any multiple of the three: only "
        "q/r and P0/r exist",
        difference=float(np.max(apart)),
        tried=subjects,
        bound=EQUAL,
        control=float(control.min()),
    )


def _written_out(
    theta: Array,
    columns: Mapping[str, Array],
    subject: NDArray[np.int64],
    *,
    r: float,
    model: type[MagnitudeObserver],
) -> Array:
    """Log-likelihood with measurement variance r, q = r q/r and P0 = r P0/r, trial by trial."""
    total = np.zeros(len(theta))
    for s, (q, p0, *mu, sigma) in enumerate(theta.tolist()):
        place, m, p = -1, 0.0, 0.0
        for t in np.flatnonzero(subject == s):
            row = {name: float(column[t]) for name, column in columns.items()}
            if int(row["window"]) != place:
                place = int(row["window"])
                m, p = mu[place], r * p0
            p += r * q
            gain = p / (p + r)
            m += gain * (row["value"] / row["unit"] - m)
            p *= 1.0 - gain
            # A line through m with slope 0 has the likelihood of an answer around m.
            flat = AGENTS["linear_observer"](w=0.0, b=m, sigma=sigma)
            total[s] += flat.log_density(row, row["response"])
    return total


def _lived(
    model: type[Agent], theta: Array, environment: Environment, seed: int
) -> tuple[Mapping[str, Array], NDArray[np.int64]]:
    lived = simulate_sessions(model, theta, environment, seed, address=(1,))
    return lived.columns, lived.subject


def _data(
    model: type[Agent], columns: Mapping[str, Array], subject: NDArray[np.int64], n: int
) -> ModelData:
    separate = [columns[name].astype(np.int64) for name in model.separate if name in columns]
    names = [str(i) for i in range(n)]
    return ModelData.of_columns(model, names, subject, separate, columns, 0)


def _apart(first: Array, second: Array) -> Array:
    return np.asarray(np.abs(first - second) / (1.0 + np.abs(first)))
