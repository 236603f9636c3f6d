"""What the rows of a data set support: simulated subjects live them again and are fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents import Model, Parameters
from knownminds.agents.parameters import Array
from knownminds.agents.play import play_tables
from knownminds.environments import ANSWERED, Environment, session_stream
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.fitted_population import FittedPopulation, fitted_population
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.recovery.parameter_recovery import fit_known
from knownminds.validation.recovery.recovery_tables import Recovered, recovered

from .resampling import Recorded, positions, room_of

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

SIMULATED = 400  # subjects
MASS = 0.9
LEAST_FOR_GROUP = 5  # usable subjects; fewer hardly show how far subjects spread
MOST_FOR_GROUP = 200  # subjects whose posteriors are drawn to find the group
TRIALS_AT_ONCE = 2_000_000  # sessions x places: bounds the memory

Law = Literal["fitted", "prior"]


def unreadable_there(
    scored: Recovered, parameters: Parameters, subjects: pd.DataFrame
) -> pd.DataFrame:
    """Return where a parameter cannot be read, and which of the estimates lie there, if any do.

    Columns parameter, low and high (infinite at the end of the support), relative_width of 90%
    intervals there, estimates that lie there, of how many, and the first five subjects.
    """
    table, rows = scored.tables["Unreadable values"], []
    for row in table.to_dict("records") if len(table) else ():
        support = parameters[row["parameter"]].support
        low = -np.inf if row["low"] == support.lower else row["low"]
        high = np.inf if row["high"] == support.upper else row["high"]
        there = subjects[row["parameter"]].between(low, high)
        if there.any():
            names = ", ".join(subjects.loc[there, "subject"].astype(str)[:5])
            count = {"estimates": int(there.sum()), "of": len(subjects), "subjects": names}
            ends = {"low": low, "high": high, "relative_width": row["relative_width"]}
            rows.append({"parameter": row["parameter"], **ends, **count})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Relived:
    """The sessions of a data set laid out, and whose they are.

    Parameters
    ----------
    recorded : All sessions; a session of which several units have trials stands once for each.
    unit : The unit of each session.
    n_units : How many units there are.
    session, slot : Of each row of the data, the session and its row there, [rows].
    """

    recorded: Recorded
    unit: NDArray[np.int64]
    n_units: int
    session: NDArray[np.int64]
    slot: NDArray[np.int64]

    @classmethod
    def of(cls, frame: pd.DataFrame, environment: Environment, unit: pd.Series[Any]) -> Relived:
        """Lay out checked trials; `unit` names what each trial's parameters belong to."""
        codes = pd.factorize(unit)[0].astype(np.int64)
        name = pd.factorize(pd.MultiIndex.from_frame(frame[["subject", "session"]]))[0]
        session, first = pd.factorize(pd.Series(list(zip(codes, name, strict=True))))
        slot = positions(environment, frame, session)
        room = room_of(environment)
        shape = (len(first), (int(slot.max()) // room + 1) * room)
        there, answered = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        there[session, slot] = True
        answered[session, slot] = frame["outcome"].isin(ANSWERED)
        row = np.full(shape, -1)
        row[session, slot] = np.arange(len(frame))
        before = np.maximum.accumulate(np.where(there, np.arange(shape[1]), -1), axis=1)
        nearest = np.where(before < 0, there.argmax(axis=1)[:, None], before)
        row = np.take_along_axis(row, nearest, axis=1)
        columns = {}
        for column in (
            *environment.fields.stimulus,
            *environment.fields.hidden,
            "action",
            "reward",
        ):
            if column in frame:
                values = as_numbers(frame[column])
                columns[column] = values[row]
        owner = np.array([pair[0] for pair in first])
        recorded = Recorded(columns, there, answered)
        return cls(recorded, owner, int(codes.max()) + 1, session.astype(np.int64), slot)

    def live(
        self,
        model: type[Model],
        environment: Environment,
        theta: Array,
        lapse: Array | None,
        seed: int,
        read_by: type[Model] | None = None,
    ) -> ModelData:
        """Let subjects theta[N, P] live the sessions of one unit each, in turn; return their data.

        Of more units than subjects, every so-many-th is simulated. Data are those that `read_by`
        reads, the model itself if None.
        """
        answering = np.unique(self.unit[self.recorded.answered.any(axis=1)])
        n = len(theta)
        turn = np.arange(n) % len(answering)
        if len(answering) > n:
            turn = np.arange(n) * len(answering) // n
        by_unit = [np.flatnonzero(self.unit == unit) for unit in answering]
        sessions = np.concatenate([by_unit[k] for k in turn])
        owner = np.repeat(np.arange(n), [len(by_unit[k]) for k in turn])
        rng = session_stream(seed, n)
        whole = self.rows(model, environment, theta[owner], None if lapse is None else lapse[owner],
                          sessions, rng)  # fmt: skip
        subject = owner[whole["session"]]
        separate = [whole["session"]]
        model = read_by or model
        separate += [whole[name].astype(np.int64) for name in model.separate if name in whole]
        names = list(map(str, range(n)))
        return ModelData.of_columns(model, names, subject, separate, whole, environment.n_actions)

    def rows(
        self,
        model: type[Model],
        environment: Environment,
        theta: Array,
        lapse: Array | None,
        sessions: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> dict[str, NDArray[Any]]:
        """Let subjects theta[M, P] live one session each, sessions[M]; return flat columns.

        Rows that the recorded sessions have answered, in order of time. Beside what is recorded
        with a trial "session", a position in `sessions`, and "slot", the row's number in it.
        """
        count = max(TRIALS_AT_ONCE // self.recorded.there.shape[1], 1)
        parts: list[dict[str, NDArray[Any]]] = []
        for begin in range(0, len(sessions), count):
            some = slice(begin, begin + count)
            tables = self.recorded.tables(environment, sessions[some], rng)
            shape = tables["kept"].shape
            uniforms = rng.random((shape[0], shape[1] * model.n_uniforms))
            rates = None if lapse is None else lapse[some]
            played = play_tables(model, theta[some], environment, tables, uniforms, rates)
            kept = tables["kept"][played.subject, played.trial]
            part = {name: column[kept] for name, column in played.columns.items()}
            part["session"] = begin + played.subject[kept]
            part["slot"] = played.trial[kept]
            parts.append(part)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def support_of(
    relived: Relived,
    environment: Environment,
    data: ModelData,
    method: str,
    fit: Posterior | HierarchicalFit | None,
    *,
    fixed: Mapping[str, float] | None,
    fit_lapse: bool,
    seed: int,
) -> tuple[Recovered, FittedPopulation, Law]:
    """Let subjects from the group that the data show live their rows again, and fit them.

    For "mle" and "map" each is fitted as the data were. A hierarchical fit of as many would take
    hours, so each subject is fitted alone there. Its prior is the mean and spread that the
    hierarchical fit estimated for the group, which is what such a fit comes to where the group is
    known.

    Parameters
    ----------
    data : What was fitted.
    fit : Posteriors of the data under the model's prior, or their hierarchical fit; None where
        there are none yet.

    Returns
    -------
    The scores of each parameter; the group; and whether it is that which the estimates show
    ("fitted") or, as fewer than 5 are usable, the model's priors ("prior").
    """
    model = data.model
    unknowns = Unknowns.of(model, fixed, fit_lapse)
    group, population = _group(data, fit, unknowns, fixed, fit_lapse, seed)
    true = group.draw(session_stream(seed), SIMULATED)
    theta = np.tile(unknowns.full, (SIMULATED, 1))
    true_theta = true[:, :-1] if fit_lapse else true
    theta[:, unknowns.columns] = true_theta
    lapse = true[:, -1].copy() if fit_lapse else None
    sessions = relived.live(_with_prior(model, group) if method == "hierarchical" else model,
                         environment, theta, lapse, seed)  # fmt: skip
    way: Literal["mle", "posterior"] = "mle" if method == "mle" else "posterior"
    rows = fit_known(sessions, true, way, fixed, fit_lapse, seed, 1)
    scores = recovered(rows, unknowns.parameters, unit="simulated agent")
    return scores, group, population


def _group(
    data: ModelData,
    fit: Posterior | HierarchicalFit | None,
    unknowns: Unknowns,
    fixed: Mapping[str, float] | None,
    fit_lapse: bool,
    seed: int,
) -> tuple[FittedPopulation, Law]:
    """Return the group that the data show; the prior where they are too few to show one."""
    if fit is not None and not isinstance(fit, Posterior):
        expected = fit.expected_z.mean(axis=0)  # of each unit, with regressors and levels
        spread = fit.posterior["group_sd"].mean(("chain", "draw")).to_numpy()
        if fit.slopes:
            spread = fit.design.deviations.spread_of_rows(fit.covariance_roots)
        sd = np.sqrt(spread**2 + expected.var(axis=0))
        return FittedPopulation(unknowns.parameters, expected.mean(axis=0), sd), "fitted"
    if fit is None:
        few = np.unique(np.linspace(0, len(data) - 1, MOST_FOR_GROUP).round().astype(np.int64))
        fit = posterior(
            data.model,
            data.repeat(few),
            fixed=fixed,
            lapse=fit_lapse,
            seed=seed,
            workers=1,
            nuts=False,
        )
    if sum(status != "failed" for status in fit.status) < LEAST_FOR_GROUP:
        parameters = unknowns.parameters
        return FittedPopulation(parameters, parameters.mean, parameters.sd), "prior"
    return fitted_population(fit), "fitted"


def _with_prior(model: type[Model], group: FittedPopulation) -> type[Model]:
    """Return the model with a group's mean and spread as its prior."""
    at = {name: k for k, name in enumerate(group.parameters.names)}
    parameters = [
        replace(p, mean=float(group.mean[at[p.name]]), sd=float(group.sd[at[p.name]]))
        if p.name in at
        else p
        for p in model.parameters
    ]
    attributes = {
        "parameters": Parameters(*parameters),
        "__module__": model.__module__,
    }  # whose kernels
    return type(model.__name__, (model,), attributes)


def reliability(
    frame: pd.DataFrame, name: str, agent: type[Model], fit_lapse: bool, method: str
) -> float:
    """Share of the variance between estimates that is not error, on the unconstrained scale.

    Standard errors come from the widths of the 90% intervals. Maximum-likelihood estimates spread
    more than the truth: (variance - error variance) / variance, at least 0. The others are
    shrunk and spread less: variance / (variance + error variance).
    """
    support = Unknowns.of(agent, None, fit_lapse).parameters[name].support
    usable = frame[frame["status"] != "failed"]
    with np.errstate(all="ignore"):
        z, low, high = (
            support.unconstrain(usable[c].to_numpy(dtype=float))
            for c in (name, f"{name}_low", f"{name}_high")
        )
        error = (high - low) / (2 * scipy.stats.norm.ppf(0.5 + MASS / 2))
        known = np.isfinite(z) & np.isfinite(error)
    if known.sum() < 3:
        return np.nan
    between, noise = z[known].var(ddof=1), (error[known] ** 2).mean()
    if between == 0:
        return 0.0
    if method == "mle":
        return max(float(1 - noise / between), 0.0)
    return float(between / (between + noise))


def as_numbers(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a column as numbers: whole ones if all are, names by their order of appearance."""
    if not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return pd.factorize(column)[0].astype(np.int64)
    values = column.to_numpy(dtype=float, na_value=np.nan)
    whole = np.isfinite(values).all() and (values == np.round(values)).all()
    return values.astype(np.int64) if whole else values
