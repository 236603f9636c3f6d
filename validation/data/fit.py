"""A user's data, fitted, and how much these data can say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS, Agent, Selection
from knownminds.agents.parameters import Array
from knownminds.environments import (
    ANSWERED,
    ENVIRONMENTS,
    Environment,
    Rate,
    Trials,
    environment_of,
    make,
    outcome_rates,
    unknown,
    unread_rate,
)
from knownminds.environments.record.folders import writable
from knownminds.inference.fits.missing_answers import missing_answer_bounds
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.posteriors.crossed_levels import units_of
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.engine.arguments import one_of, resolve_model, selection_of, set_to
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.sample import usual_model
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import about_reliability
from knownminds.validation.pages.page import counted
from knownminds.validation.recovery.parameter_recovery import METHODS

from .group_fit import (
    CLEAR_FACTOR,
    MOST_FACTOR,
    GroupFound,
    GroupValue,
    group_fit,
    rows_of,
)
from .predictive import (
    LEVEL,
    MOST_ROWS,
    PredictedAnswers,
    Predictive,
    check_fit,
    replicated_from,
)
from .questions import AskFit
from .rivals import Comparison, Groups, chosen_rivals, compare_rivals
from .rivals_page import about_rivals
from .sampling_page import traces_of
from .support import (
    LEAST_FOR_GROUP,
    MASS,
    Relived,
    Simulated,
    Support,
    reliability,
    support_of,
    unreadable_of,
)
from .trials_of_runs import read_one, several_of

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

POSTERIOR = "posterior.nc"
MOST_PREDICTED = 20_000_000  # simulated answers that are kept in it
RIVALS = ("rescorla_wagner", "random_responder")


@dataclass(frozen=True)
class Fit(Reported):
    """A fitted data set with group values, statuses, model comparison and honest limits.

    Parameters
    ----------
    subjects
        One row per subject: `NAME`, `NAME_low`, `NAME_high` (90% intervals) and `status`.
    group
        Group values on the natural scale, by parameter.
    effects
        Regression weights on the unconstrained scale, by "parameter ~ regressor".
    contrasts
        What columns of formulas do to parameters, on the natural scale: rows with estimate, 90%
        interval (low, high), direction, rope (half its width), the share inside, and a verdict.
    comparison
        One entry per model: aic and bic summed over subjects, and for how many it is best by BIC.
    support
        What these rows support, by parameter; empty if no subject could be fitted.
    simulated
        How the subjects behind `support` were made; None if there is none.
    predictive
        Whether sessions simulated from the fit look like the data; None if nobody could be fitted.
    rivals
        How rival models predict subjects that are left out; None if none were asked for.
    traces
        Of a hierarchical fit, by group term: some "draws" of each chain, and counts of "ranks".
    verdict, sampling, divergences
        Of a hierarchical fit: "converged" or "not converged"; r_hat, ess_bulk and ess_tail by
        term; the number of divergent draws.
    outcomes
        How often each outcome of an answer occurred; empty if all answers could be read.
    bounds
        One row per subject with answers missing: `n_missing`, `NAME_lowest` and `NAME_highest`,
        between which its own estimate lies whatever these answers would have been.
    used
        Which trials were fitted: "trials" ("all", or what the model's selection calls them), "n"
        "of" how many, and the subjects "without" any, who are left out.
    sentences
        The findings in words.
    posterior
        Of a hierarchical fit, its draws; None where the fit was read from a folder, in which they
        are posterior.nc (see `read_posterior`).
    predicted
        Of a hierarchical fit, simulated answers by name, [replicates, rows of the data].
    """

    file: ClassVar[str] = "fit.json"

    source: str
    environment: str
    model: str
    method: str
    n_subjects: int
    n_trials: int
    options: Mapping[str, Any]
    parameters: tuple[str, ...]
    subjects: pd.DataFrame
    group: Mapping[str, GroupValue]
    effects: Mapping[str, GroupValue]
    comparison: Mapping[str, Mapping[str, float]]
    support: Mapping[str, Support]
    statuses: Mapping[str, int]
    verdict: str
    sampling: Mapping[str, Mapping[str, float]]
    divergences: int
    outcomes: tuple[Rate, ...]
    bounds: pd.DataFrame
    used: Mapping[str, Any]
    sentences: tuple[str, ...]
    versions: Mapping[str, str]
    simulated: Simulated | None = None
    predictive: Predictive | None = None
    rivals: Comparison | None = None
    contrasts: tuple[Mapping[str, Any], ...] = ()
    traces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    posterior: HierarchicalFit | None = field(default=None, repr=False, compare=False)
    predicted: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per subject."""
        return self.subjects.copy()

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        sessions = []
        for row in self.subjects.to_dict("records"):
            sessions.append(
                {
                    "session": row["subject"],
                    "estimates": {name: row[name] for name in self.parameters},
                    "intervals": {
                        name: [row[f"{name}_low"], row[f"{name}_high"]] for name in self.parameters
                    },
                    "status": row["status"],
                    "message": row["message"],
                    "trials": row["n_trials"],
                }
            )
        return {
            "source": self.source,
            "environment": self.environment,
            "model": self.model,
            "method": self.method,
            "options": dict(self.options),
            "sessions": sessions,
            "group": {name: _value(v) for name, v in self.group.items()},
            "effects": {name: _value(v) for name, v in self.effects.items()},
            "contrasts": [dict(row) for row in self.contrasts],
            "comparison": {name: dict(v) for name, v in self.comparison.items()},
            "support": {name: asdict(v) for name, v in self.support.items()},
            "simulated": None if self.simulated is None else asdict(self.simulated),
            "predictive": None if self.predictive is None else asdict(self.predictive),
            "rivals": None if self.rivals is None else asdict(self.rivals),
            "traces": dict(self.traces),
            "statuses": dict(self.statuses),
            "verdict": self.verdict,
            "sampling": {name: dict(v) for name, v in self.sampling.items()},
            "divergences": self.divergences,
            "outcomes": {rate.outcome: rate.count for rate in self.outcomes},
            "bounds": self.bounds.to_dict("records"),
            "used": dict(self.used),
            "sentences": list(self.sentences),
            "versions": dict(self.versions),
        }

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The estimates."""
        return {"estimates": self.subjects}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write estimates.csv and fit.json; `read_fit` gives the same back.

        The draws of a hierarchical fit become posterior.nc, for ArviZ.
        """
        super().save(folder)
        with writable(folder) as path:
            if self.posterior is not None:
                from knownminds.inference.posteriors.arviz_objects import (
                    save_posterior,  # xarray is slow
                )

                save_posterior(self.posterior, path / POSTERIOR, predicted=self.predicted)
            elif self.method != "hierarchical":
                (path / POSTERIOR).unlink(missing_ok=True)  # of an earlier fit

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Fit:
        """Make a fit of what `to_dict` gave; it lacks the draws."""
        names = tuple(found["group"])
        rows = []
        for session in found["sessions"]:
            row = {"subject": session["session"], "n_trials": session["trials"]}
            for name in names:
                low, high = session["intervals"][name]
                row[name] = session["estimates"][name]
                row |= {f"{name}_low": low, f"{name}_high": high}
            rows.append(row | {"status": session["status"], "message": session["message"]})
        frame = pd.DataFrame(rows)
        numbers = [str(c) for c in frame if c not in ("subject", "status", "message")]
        frame[numbers] = frame[numbers].apply(pd.to_numeric)
        return cls(
            source=found["source"],
            environment=found["environment"],
            model=found["model"],
            method=found["method"],
            n_subjects=len(frame),
            n_trials=int(frame["n_trials"].sum()),
            options=found["options"],
            parameters=names,
            subjects=frame,
            group={n: _group_value(v) for n, v in found["group"].items()},
            effects={n: _group_value(v) for n, v in found["effects"].items()},
            comparison=found["comparison"],
            support={
                n: Support(**_numbers({"mean": None, "sd": None} | v))
                for n, v in found["support"].items()
            },
            statuses=found["statuses"],
            verdict=found["verdict"],
            sampling={n: _numbers(v) for n, v in found["sampling"].items()},
            divergences=found["divergences"],
            outcomes=outcome_rates(found["outcomes"]) if found["outcomes"] else (),
            bounds=_bounds_frame(found["bounds"]),
            used=found.get("used", {}),
            sentences=tuple(found["sentences"]),
            versions=found["versions"],
            simulated=Simulated(**found["simulated"]) if found.get("simulated") else None,
            predictive=Predictive.from_dict(kept) if (kept := found.get("predictive")) else None,
            rivals=Comparison.from_dict(kept) if (kept := found.get("rivals")) else None,
            contrasts=tuple(found.get("contrasts", ())),
            traces=found.get("traces", {}),
        )

    def __str__(self) -> str:
        """Group values, then the sentences."""
        lines = [
            f"{self.model}, {self.method}: {self.n_subjects} {noun(self.options)}s of {self.source}"
        ]
        for name, v in {**self.group, **self.effects}.items():
            lines.append(f"{name:<24}{v.estimate:>9.3f}  [{v.low:.3f}, {v.high:.3f}]  {v.meaning}")
        return "\n".join([*lines, *self.sentences])


def _value(value: GroupValue) -> dict[str, Any]:
    interval = [value.low, value.high]
    told = {"estimate": value.estimate, "interval": interval, "meaning": value.meaning}
    if value.bayes_factor is not None:
        told["bayes_factor"] = value.bayes_factor
    return told


read_fit = Fit.read


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.nan if value is None else value for key, value in found.items()}


def _bounds_frame(found: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(found))
    numbers = [str(c) for c in frame if c != "subject"]
    frame[numbers] = frame[numbers].apply(pd.to_numeric)
    return frame


def _group_value(found: Mapping[str, Any]) -> GroupValue:
    low, high = (np.nan if v is None else v for v in found["interval"])
    estimate = np.nan if found["estimate"] is None else found["estimate"]
    return GroupValue(estimate, low, high, found["meaning"], found.get("bayes_factor"))


fit = verb(AskFit, __name__)


def compute(question: AskFit) -> Fit:
    """Answer what `fit` is asked."""
    method, formula, unit, crossed = (
        question.method,
        question.formula,
        question.unit,
        question.crossed,
    )
    fixed, fit_lapse, all_trials = question.fixed, question.fit_lapse, question.all_trials
    seed, workers = question.seed, question.workers
    if method not in METHODS:
        raise ValueError(unknown("method", method, METHODS))
    if formula and method != "hierarchical":
        raise ValueError(f"A formula needs --method hierarchical; got {method}.")
    most_minutes = question.most_minutes
    if not most_minutes > 0:
        raise ValueError(f"Sampling takes some time: most_minutes is above 0; got {most_minutes}.")
    if crossed and method != "hierarchical":
        raise ValueError(f"Crossed factors need --method hierarchical; got {method}.")
    if question.correlated and method != "hierarchical":
        raise ValueError(f"Correlated parameters need --method hierarchical; got {method}.")
    source, trials = read_one(question.data, question.columns)
    agent = resolve_model(question.model or usual_model(_named(trials, question.environment)))
    selection = selection_of(agent, all_trials)
    environment = set_to(_environment_of(trials, question.environment, agent), question.settings)
    chosen_rivals(agent, environment, question.against or (), False)  # a wrong name is told at once
    frame = _one_mind(trials.frame) if question.pooled else trials.frame
    used, frame = _used(frame, agent, selection)
    told = trials = Trials.from_frame(frame, environment=environment)
    if question.rope and not formula:
        raise ValueError(
            "A region of practical equivalence (--rope) is of a contrast; add --formula."
        )
    unknowns = Unknowns.of(agent, fixed, fit_lapse)
    rows, within = rows_of(agent, told, formula, unit, unknowns, question.correlated)
    if unit or within:
        trials = Trials.from_frame(frame.assign(subject=rows), environment=environment)
    read = ModelData.read(agent, trials, environment.n_actions, all_trials=all_trials)
    if not read.n_trials.any():
        counts = frame["outcome"].value_counts().items()
        raise ValueError(
            f"A fit needs answers; {source} has {len(frame)} trials and no readable one "
            f"({', '.join(f'{n} {outcome}' for outcome, n in counts)}). Check how it was imported."
        )
    options: dict[str, Any] = {
        "fixed": dict(fixed or {}),
        "fit_lapse": fit_lapse,
        "formula": list(formula or ()),
        "columns": dict(question.columns or {}),
        **({"settings": dict(question.settings)} if question.settings else {}),
        "seed": seed,
        "pooled": question.pooled,
        "unit": list(unit or ()),
        "within": list(within),
        **({"rope": dict(question.rope)} if question.rope else {}),
        "crossed": list(crossed or ()),
        "correlated": question.correlated,
        "all_trials": all_trials,
        "against": list(question.against or ()),
        "rivals": question.rivals,
        **several_of(question.data),
    }
    own: Posterior | HierarchicalFit | None
    if method == "hierarchical":
        target_accept = question.target_accept
        options |= {"target_accept": target_accept, "most_minutes": most_minutes}
        levels = {"formula": formula, "unit": unit, "crossed": crossed}
        sampling: dict[str, Any] = {
            "all_trials": all_trials,
            "correlated": question.correlated,
            "target_accept": target_accept,
            "seed": seed,
            "cores": workers,
            "seconds": 60.0 * most_minutes,
            "tell": question.tell,
        }
        found = group_fit(agent, told, levels, fixed, fit_lapse, question.rope, sampling)
        result, own = _of_group(found), found.fitted
    else:
        result, own = _point_fit(agent, read, method, options, workers)
    result = replace(
        result, source=source, environment=environment.name, options=options, used=used
    )
    comparison = _compare(agent, trials, environment, fixed, fit_lapse, all_trials, workers)
    result = replace(result, comparison=comparison)
    relived = Relived.of(told.frame, environment, rows)
    result = _support(relived, environment, result, read, own, seed)
    result = _predictive(told.frame, relived, environment, result, own)
    result = _rivals(question, agent, told, relived, environment, result)
    missing = (~trials.frame["outcome"].isin(ANSWERED)).any()
    if missing and agent.given != "action":
        result = replace(result, outcomes=outcome_rates(trials))
    elif missing:
        gaps = _gaps(agent, trials, environment, method, fixed, fit_lapse, workers)
        result = replace(result, outcomes=outcome_rates(trials), bounds=gaps)
    return replace(result, sentences=(*result.sentences, *_sentences(result)))


def _rivals(
    question: AskFit,
    agent: type[Agent],
    trials: Trials,
    relived: Relived,
    environment: Environment,
    result: Fit,
) -> Fit:
    """Add how rivals predict subjects that are left out, if any were asked for."""
    if not (question.against or question.rivals) or not (result.subjects["n_trials"] > 0).any():
        return result
    if question.unit or result.options["within"]:
        names = units_of(trials, question.unit or ("subject",))
        relived = Relived.of(trials.frame, environment, names)
        trials = Trials.from_frame(trials.frame.assign(subject=names), environment=environment)
    compared = compare_rivals(
        agent,
        trials,
        relived,
        environment,
        against=question.against or (),
        every=question.rivals,
        made_of=Groups(
            question.fixed,
            question.fit_lapse,
            question.all_trials,
            tuple(question.formula or ()),
            tuple(question.unit or ("subject",)),
            question.correlated,
        ),
        seed=question.seed,
        workers=question.workers,
        tell=question.tell,
    )
    apart = ("crossed",) if result.options["crossed"] else ()
    return replace(result, rivals=replace(compared, without=apart))


def _used(
    frame: pd.DataFrame, agent: type[Agent], selection: Selection | None
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return what is to be said of the trials that are fitted, and their rows.

    Raises
    ------
    ValueError
        If there are none.
    """
    used: dict[str, Any] = {"trials": "all", "n": len(frame), "of": len(frame), "without": []}
    if selection is None:
        return used, frame
    kept = frame[selection.of(frame, agent.name)].reset_index(drop=True)
    if kept.empty:
        raise ValueError(
            f"{agent.name} is fitted to {selection.trials}, trials whose {selection.column!r} is "
            f"{selection.value:g}; got {len(frame)} trials and none of these. Fit all trials "
            "(--all-trials), or check the column."
        )
    without = [str(s) for s in frame["subject"].unique() if s not in set(kept["subject"])]
    return used | {"trials": selection.trials, "n": len(kept), "without": without}, kept


def _gaps(
    agent: type[Agent],
    trials: Trials,
    environment: Environment,
    method: str,
    fixed: Mapping[str, float] | None,
    fit_lapse: bool,
    workers: int | None,
) -> pd.DataFrame:
    """Return how far the answers that are missing could move each subject's own estimates."""
    found = missing_answer_bounds(
        agent,
        trials,
        method="mle" if method == "mle" else "map",
        fixed=fixed,
        lapse=fit_lapse,
        n_actions=environment.n_actions,
        workers=workers,
    ).to_frame(MASS)
    ends = [str(c) for c in found if str(c).endswith(("_lowest", "_highest"))]
    return found.loc[found["n_missing"] > 0, ["subject", "n_missing", *ends]].reset_index(drop=True)


def _one_mind(frame: pd.DataFrame) -> pd.DataFrame:
    """Return trials as those of one subject, whose sessions are all that there are."""
    session = frame["subject"].astype(str) + "/" + frame["session"].astype(str)
    return frame.assign(session=session, subject="all")


def _environment_of(trials: Trials, name: str | None, model: type[Agent]) -> Environment:
    name = _named(trials, name)
    if name is None:
        name = _only_experiment(trials, model)
    one_of("environment", name, ENVIRONMENTS)
    environment = environment_of(trials, name)
    model.check_plays(environment)
    return environment


def _named(trials: Trials, name: str | None) -> str | None:
    """Return the experiment that is named, or else the one that the data name; None if none."""
    if name is not None or "environment" not in trials.frame:
        return name
    names = trials.frame["environment"].dropna().unique()
    if len(names) > 1:
        raise ValueError(
            f"A fit takes one experiment; the data hold {', '.join(names)}. Split the file."
        )
    return str(names[0]) if len(names) else None


def _only_experiment(trials: Trials, model: type[Agent]) -> str:
    """Return the only experiment that a model plays, or the one that most columns speak for.

    An experiment that needs no columns is not taken for want of another.
    """
    able = {name: make(name) for name in ENVIRONMENTS}
    able = {name: place for name, place in able.items() if model.plays(place)}
    shown = {name: set(place.fields.stimulus) for name, place in able.items()}
    fitting = [name for name in able if shown[name] <= set(trials.frame)]
    most = max((len(shown[name]) for name in fitting), default=0)
    names = [name for name in fitting if 0 < len(shown[name]) == most] or list(able)
    if len(names) != 1:
        raise ValueError(
            f"The data do not name their experiment, and {model.name} plays "
            f"{', '.join(names) or 'none'}. Name it with --environment."
        )
    return names[0]


def _statuses(status: Sequence[str]) -> dict[str, int]:
    return {str(k): int(n) for k, n in pd.Series(list(status)).value_counts().items()}


def _empty(agent: type[Agent], method: str, frame: pd.DataFrame, **given: Any) -> Fit:
    blank: dict[str, Any] = {
        "source": "",
        "environment": "",
        "options": {},
        "effects": {},
        "comparison": {},
        "support": {},
        "sampling": {},
        "divergences": 0,
        "outcomes": (),
        "bounds": pd.DataFrame(),
        "used": {},
        "sentences": (),
    }
    return Fit(
        model=agent.name,
        method=method,
        n_subjects=len(frame),
        n_trials=int(frame["n_trials"].sum()),
        subjects=frame,
        statuses=_statuses(frame["status"].tolist()),
        versions=versions(),
        **blank | given,
    )


def _of_group(found: GroupFound) -> Fit:
    """Return what was found of a group as a fit."""
    fitted = found.fitted
    return _empty(
        AGENTS[fitted.model],
        "hierarchical",
        fitted.to_frame(MASS).assign(message="; ".join(fitted.reasons)),
        parameters=fitted.names,
        group=found.group,
        effects=found.effects,
        contrasts=found.contrasts,
        verdict=fitted.verdict,
        sampling=fitted.convergence.table.to_dict(orient="index"),
        divergences=fitted.divergences,
        sentences=found.sentences,
        traces=traces_of(fitted),
        posterior=fitted,
    )


def _point_fit(
    agent: type[Agent],
    data: ModelData,
    method: str,
    options: Mapping[str, Any],
    workers: int | None,
) -> tuple[Fit, Posterior | None]:
    fixed, fit_lapse, seed = (options[name] for name in ("fixed", "fit_lapse", "seed"))
    own = None
    if method == "mle":
        point = maximum_likelihood(agent, data, fixed=fixed, lapse=fit_lapse, workers=workers)
        frame = point.to_frame(MASS)
    else:
        own = posterior(agent, data, fixed=fixed, lapse=fit_lapse, seed=seed, workers=workers)
        point = own.fit
        frame = point.to_frame(MASS)
        for k, name in enumerate(point.names):
            frame[f"{name}_low"], frame[f"{name}_high"] = (end[:, k] for end in own.interval(MASS))
    group = {}
    usable = frame["status"] != "failed"
    for name in point.names:
        own_values = frame.loc[usable, [name, f"{name}_low", f"{name}_high"]].to_numpy(dtype=float)
        group[name] = _group_of(own_values, noun(options))
    fitted = _empty(
        agent, method, frame, parameters=point.names, group=group, verdict="not applicable"
    )
    return fitted, own


def noun(options: Mapping[str, Any]) -> str:
    """Say what has parameters of its own: a subject, or a unit made by other columns."""
    several = list(options["unit"]) not in ([], ["subject"]) or options.get("within")
    return "unit" if several else "subject"


def _group_of(estimates: Array, whose: str) -> GroupValue:
    """Median with its distribution-free 90% interval, from order statistics.

    Of estimates[n, 3] with the ends of their intervals; one subject has its own interval.
    """
    n = len(estimates)
    if n == 0:
        return GroupValue(np.nan, np.nan, np.nan, f"no usable {whose}")
    if n == 1:
        estimate, low, high = estimates[0].tolist()
        return GroupValue(estimate, low, high, f"the one {whose}")
    values = estimates[:, 0]
    ordered = np.sort(values)
    rank = max(int(scipy.stats.binom.ppf((1 - MASS) / 2, n, 0.5)), 1)
    low, high = ordered[rank - 1], ordered[n - rank]
    return GroupValue(float(np.median(values)), float(low), float(high), f"median {whose}")


def _compare(
    agent: type[Agent],
    trials: Trials,
    environment: Environment,
    fixed: Mapping[str, float] | None,
    fit_lapse: bool,
    all_trials: bool,
    workers: int | None,
) -> dict[str, dict[str, float]]:
    """AIC and BIC of the model and its rivals at their maximum likelihoods."""
    names = [agent.name, *(name for name in RIVALS if name != agent.name)]
    bic, table = {}, {}
    for name in names:
        rival = AGENTS[name]
        if not rival.plays(environment):
            continue
        held = fixed if name == agent.name else None
        data = ModelData.read(rival, trials, environment.n_actions, all_trials=all_trials)
        best = maximum_likelihood(rival, data, fixed=held, lapse=fit_lapse, workers=workers)
        bic[name] = best.bic
        table[name] = {
            "parameters": float(len(best.names)),
            "log_likelihood": float(best.log_likelihood.sum()),
            "aic": float(best.aic.sum()),
            "bic": float(best.bic.sum()),
        }
    winner = np.argmin(np.column_stack(list(bic.values())), axis=1)
    for k, name in enumerate(bic):
        table[name]["best_for"] = float((winner == k).sum())
    return table


def _support(
    relived: Relived,
    environment: Environment,
    result: Fit,
    data: ModelData,
    own: Posterior | HierarchicalFit | None,
    seed: int,
) -> Fit:
    """Add what the rows support: see `support_of`."""
    agent, fixed, fit_lapse = data.model, result.options["fixed"], result.options["fit_lapse"]
    usable = (result.subjects["status"] != "failed").any()
    if not result.parameters or not usable:
        return result
    scores, group, simulated = support_of(
        relived,
        environment,
        data,
        result.method,
        own,
        fixed=fixed,
        fit_lapse=fit_lapse,
        seed=seed,
    )
    estimates = scores.tables["Estimates"].set_index("parameter")
    intervals = scores.tables["Intervals"].set_index("parameter")
    parameters = Unknowns.of(agent, fixed, fit_lapse).parameters
    support = {
        name: Support(
            r=estimates["r"][name].value,
            coverage=intervals["90% covers"][name].value,
            verdict=scores.verdicts[name].word,
            reliability=reliability(result.subjects, name, agent, fit_lapse, result.method),
            mean=float(group.mean[k]),
            sd=float(group.sd[k]),
            unreadable=unreadable_of(scores, parameters[name]),
        )
        for k, name in enumerate(result.parameters)
    }
    return replace(result, support=support, simulated=simulated)


def _predictive(
    frame: pd.DataFrame,
    relived: Relived,
    environment: Environment,
    result: Fit,
    own: Posterior | HierarchicalFit | None,
) -> Fit:
    """Add whether sessions simulated from the fit look like the data."""
    agent = AGENTS[result.model]
    options = result.options
    unknowns = Unknowns.of(agent, options["fixed"], options["fit_lapse"])
    if own is None:
        draws = result.subjects[list(result.parameters)].to_numpy(dtype=float)[None]
    else:
        draws = own.draws
    usable = np.isfinite(draws).all(axis=(0, 2))
    if result.method != "hierarchical":
        usable &= (result.subjects["status"] != "failed").to_numpy()
    chosen = replicated_from(relived, environment, unknowns, agent, draws, usable, options["seed"])
    told = "estimates" if own is None else "posterior"
    gathered = None
    if result.posterior is not None and len(frame) * len(chosen.theta) <= MOST_PREDICTED:
        gathered = PredictedAnswers(chosen, len(frame))
    checked = check_fit(frame, chosen, told, gathered)
    predicted = None if gathered is None else gathered.found
    return replace(result, predictive=checked, predicted=predicted)


def _sentences(result: Fit) -> list[str]:
    told = [_about_subjects(result), *_about_trials(result)]
    for name, v in result.group.items():
        if np.isfinite(v.estimate):
            told.append(
                f"{name}: {v.meaning} {v.estimate:.2f} (90% interval {v.low:.2f} to {v.high:.2f})."
            )
        else:
            told.append(f"{name}: {v.meaning}.")
    for name, v in result.effects.items():
        told.append(_about_effect(name, v))
    told.extend(_about_gaps(result))
    told.extend(_about_models(result))
    told.extend(_about_support(result))
    told.extend(_about_predictive(result))
    whose = noun({**result.options, "within": ()})  # rivals are compared by whole subjects
    told.extend(about_rivals(result.rivals, whose))
    return told


def _about_subjects(result: Fit) -> str:
    counts = ", ".join(f"{n} {status}" for status, n in result.statuses.items())
    n = result.n_subjects
    told = [*(result.options["unit"] or ["subject"]), *result.options.get("within", ())]
    columns = " and ".join(told)
    if noun(result.options) == "unit":
        return f"Units are told apart by {columns}; {n} were fitted: {counts}."
    if result.options.get("pooled"):
        return f"All sessions were fitted as those of one mind: {counts}."
    if n == 1:
        return f"One subject was fitted: {counts}."
    return f"{n} subjects were fitted: {counts}."


def _about_effect(name: str, value: GroupValue) -> str:
    estimate, low, high = value.estimate, value.low, value.high
    if value.bayes_factor is None:
        clear = "excludes" if low > 0 or high < 0 else "includes"
        return f"{name}: {estimate:.2f} (90% interval {low:.2f} to {high:.2f}, which {clear} 0)."
    factor = value.bayes_factor
    who = "levels" if " | " in name else "subjects"
    if factor >= CLEAR_FACTOR:
        verdict = "the levels differ"
    elif factor <= 1 / CLEAR_FACTOR:
        verdict = "the levels are alike"
    else:
        verdict = "whether the levels differ stays open"
    size = f"over {MOST_FACTOR:g}" if factor >= MOST_FACTOR else f"{factor:.2g}"
    verdict = verdict.replace("levels", who)
    return (
        f"{name}: {estimate:.2f} (90% interval {low:.2f} to {high:.2f}; a spread is never below "
        f"0). Bayes factor for {who} that differ against {who} alike {size}: {verdict}."
    )


def _about_trials(result: Fit) -> list[str]:
    selection, used = AGENTS[result.model].selection, result.used
    if selection is None:
        return []
    told = [f"{used['n']} of {used['of']} trials were fitted."]
    told.append(selection.told(used["trials"] == "all"))
    if used["without"]:
        told.append(f"Left out for want of such trials: {', '.join(used['without'])}.")
    return told


def _about_gaps(result: Fit) -> list[str]:
    if not result.outcomes:
        return []
    lost = {r.outcome: r.count for r in result.outcomes if r.count and r.outcome not in ANSWERED}
    each = ", ".join(f"{n} {outcome}" for outcome, n in lost.items())
    missing = unread_rate(result.outcomes)
    told = [
        f"{missing.count} of {missing.of} trials have no readable answer ({missing.share:.1%}, 95% "
        f"interval {missing.low:.1%} to {missing.high:.1%}; {each}). They are left out, which is "
        "right if what is missing does not depend on what would have been said."
    ]
    silent = _silent(result)
    if len(silent):
        some = ", ".join(silent[:5]) + (f" and {len(silent) - 5} more" if silent[5:] else "")
        whose = counted(len(silent), noun(result.options))
        if result.method == "hierarchical":
            told.append(
                f"Without a single readable answer: {some}. What stands for {whose} is what others "
                "tell of the group, and has no bounds."
            )
        else:
            told.append(
                f"Without a single readable answer: {some}. Nothing is estimated of {whose}."
            )
    bounds = result.bounds
    if len(bounds):
        bounds = bounds[~bounds["subject"].astype(str).isin(silent)]
    n = len(bounds)
    whose = noun(result.options) + ("s" if n > 1 else "")
    ends = [
        f"{name} {bounds[f'{name}_lowest'].median():.2f} to "
        f"{bounds[f'{name}_highest'].median():.2f}"
        for name in result.parameters
        if n and f"{name}_lowest" in bounds
    ]
    if AGENTS[result.model].given != "action":
        told.append("How far the missing numbers could move an estimate is not computed.")
    if ends:
        told.append(
            f"Whatever the missing answers of {n} {whose} would have been, the median "
            f"estimate of these lies in: {', '.join(ends)}."
        )
    return told


def _silent(result: Fit) -> list[str]:
    """Name who has no answer that was fitted."""
    return [str(s) for s in result.subjects.loc[result.subjects["n_trials"] == 0, "subject"]]


def _about_models(result: Fit) -> list[str]:
    table = result.comparison
    if len(table) < 2:
        return []
    best = {key: min(table, key=lambda name: table[name][key]) for key in ("aic", "bic")}
    names = ", ".join(table)
    if best["aic"] == best["bic"]:
        told = [f"Of {names}, AIC and BIC both prefer {best['aic']}."]
    else:
        told = [
            f"Of {names}, AIC prefers {best['aic']} and BIC, which charges more for parameters, "
            f"{best['bic']}."
        ]
    if "random_responder" in table:
        n = int(table["random_responder"]["best_for"])
        told.append(
            f"For {n} of {result.n_subjects} {noun(result.options)}s pure chance is best by BIC."
        )
    return told


def _about_predictive(result: Fit) -> list[str]:
    """Say whether sessions simulated from the fit look like the data."""
    found = result.predictive
    if found is None:
        return []
    n, k = found.replicates, len(found.panels)
    if found.missed:
        each = ", ".join(f"{panel.title} (p {panel.p:.3f})" for panel in found.missed)
        told = [
            f"Simulated {n} times from this fit, the sessions do not look like the data in {each}; "
            f"{k} panels were looked at, each with a limit of {LEVEL:g}."
        ]
    else:
        least = min(panel.p for panel in found.panels)
        told = [
            f"Simulated {n} times from this fit, the sessions look like the data in what was "
            f"looked at, {k} panels (least predictive p {least:.3f})."
        ]
    if found.drawn_from == "estimates":
        told.append("They were simulated from the estimates alone, as if these had no errors.")
    if found.subjects < found.of:
        told.append(f"Looked at were {found.subjects} of {found.of} {noun(result.options)}s.")
        silent = len(_silent(result))
        failed = int((result.subjects["status"] == "failed").sum()) - silent
        failed = max(failed, 0) if result.method != "hierarchical" else 0
        if silent:
            told.append(f"Passed over were {silent} without an answer.")
        if failed:
            told.append(f"Passed over were {failed} without a fit.")
        if found.subjects < found.of - silent - failed:
            told.append(f"Passed over, evenly from all, were those beyond {MOST_ROWS:,} rows.")
    return told


def _about_support(result: Fit) -> list[str]:
    """Say what the rows support; any word of a verdict but "recoverable" is one of caution."""
    if result.simulated is None:
        return []
    one = noun(result.options)
    told = _about_simulated(result, result.simulated)
    words = {name: s.verdict for name, s in result.support.items()}
    unjudged = [name for name, word in words.items() if word == "not judged"]
    # Such as "between recoverable and weak".
    unsettled = [n for n, word in words.items() if "recoverable" in word and word != "recoverable"]
    known = {*unjudged, *unsettled}
    unfit = [n for n, word in words.items() if word != "recoverable" and n not in known]
    told += _about_unread(result)
    if result.n_subjects == 1:
        return told
    if unfit:
        told.append(
            f"So differences between single {one}s in {', '.join(unfit)} should not be read off "
            "these estimates."
        )
    if unsettled:
        told.append(
            f"{result.simulated.minds} minds do not settle whether differences between single "
            f"{one}s in {', '.join(unsettled)} can be read."
        )
    if unjudged:
        told.append(f"Nothing is judged of {', '.join(unjudged)}.")
    if not unfit and not known:
        told.append(f"So differences between single {one}s can be read in all parameters.")
    if result.method == "map":
        told.append(
            "Estimates from few or uninformative trials lie near the prior, so do their medians: "
            "take group values from --method hierarchical."
        )
    judged = [(n, s.reliability) for n, s in result.support.items()]
    each = ", ".join(f"{n} {r:.2f} ({about_reliability(r)})" for n, r in judged)
    told.append(f"Reliability of these {one}s' estimates, from their standard errors: {each}.")
    return told


def _about_unread(result: Fit) -> list[str]:
    """Say which estimates lie where these rows do not let the parameter be read."""
    told = []
    for name, support in result.support.items():
        estimates = result.subjects[name].to_numpy(dtype=float)
        for stretch, there in support.unread(estimates):
            names = [str(one) for one in result.subjects.loc[there, "subject"]]
            some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
            told.append(
                f"{stretch['told']} cannot be read from these rows: 90% intervals of simulated "
                f"minds are {stretch['relative_width']:.0%} as wide there as the prior's. Of the "
                f"estimates, {len(names)} of {len(estimates)} lie there: {some}."
            )
    return told


def _about_simulated(result: Fit, simulated: Simulated) -> list[str]:
    """Say what was simulated, and how it came back."""
    one = noun(result.options)
    each = ", ".join(f"{name} r = {s.r:.2f} ({s.verdict})" for name, s in result.support.items())
    fewest, most = (int(n) for n in result.subjects["n_trials"].agg(["min", "max"]))
    trials = f"{most}" if fewest == most else f"{fewest} to {most}"
    told = [
        f"What {trials} trials per {one} support: {simulated.minds} simulated minds came back "
        f"with {each}."
    ]
    if simulated.law == "fitted":
        told.append("They were drawn from the group that these estimates show.")
    else:
        told.append(
            f"They were drawn from the model's priors, as fewer than {LEAST_FOR_GROUP} usable "
            f"{one}s show no group."
        )
    if ENVIRONMENTS[result.environment]().ends_early:
        told.append("They lived these sessions again, as far as their own choices led.")
    else:
        told.append("They lived exactly these rows again.")
    if result.method == "hierarchical":
        told.append("Each was fitted alone with that group as its prior, not all hierarchically.")
    else:
        told.append(f"Each was fitted as these {one}s were ({result.method}).")
    return [*told, simulated.drawn_anew] if simulated.drawn_anew else told
