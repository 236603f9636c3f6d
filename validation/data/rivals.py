"""Rival models of the same rows: which predicts subjects better, and whether that can be told.

Each model is taken as a group whose subjects differ (`predict_left_out`): its subjects' parameters
are integrated out, and each subject is predicted from the others. That is the same for all methods
of fitting. Formulas and correlations of the fit are those of its rivals as well, as far as they
have these parameters; crossed factors are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, session_stream, unknown
from knownminds.environments.record.result import Result
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.groups.formulas import GroupDesign, moved_by
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K
from knownminds.inference.posteriors.left_out_subjects import PredictedSubjects, predict_left_out
from knownminds.inference.posteriors.model_weights import protected_exceedance, stacking_weights

from .support import Relived

MINDS = 100  # of each model, that live the rows again
DATA_SETS = 1000  # put together from these minds, each as large as the data
CLEAR_ERRORS, CLEAR_DIFFERENCE = 2.0, 4.0
_KEY = 72  # of the stream of simulated minds


@dataclass(frozen=True)
class Rival:
    """How well one of several models predicts subjects that were left out.

    Parameters
    ----------
    parameters
        How many are estimated.
    elpd, error
        Sum over subjects of log p(subject | the others), and its standard error.
    difference, difference_error
        To the best model, 0 or negative, and its standard error from paired differences.
    weight
        In the mixture that predicts best (stacking).
    frequency, exceedance
        Expected share of subjects whose model it is; protected exceedance probability.
    refitted, unreliable
        Subjects predicted by a posterior drawn without them, as their Pareto k was above 0.7;
        those of which the k is above it all the same.
    aic, bic, best_for
        At the maximum likelihoods, summed over subjects; subjects it is best for by BIC.
    """

    name: str
    parameters: int
    elpd: float
    error: float
    difference: float
    difference_error: float
    weight: float
    frequency: float
    exceedance: float
    refitted: int
    unreliable: int
    aic: float
    bic: float
    best_for: int


@dataclass(frozen=True)
class Told:
    """For what the simulated minds of one model are taken: shares by BIC, by the rivals' names.

    Parameters
    ----------
    single
        Of single subjects.
    together
        Of data sets with as many subjects as the data.
    """

    name: str
    single: Mapping[str, float]
    together: Mapping[str, float]


@dataclass(frozen=True)
class Comparison(Result):
    """Several models of the same rows.

    Parameters
    ----------
    subjects
        How many were predicted; those without an answer are not.
    rivals
        In order of elpd, the best one first.
    omnibus
        Probability that all models are equally frequent among subjects.
    apart
        What simulated minds of each model are taken for.
    minds
        How many of each there were.
    left_out
        Why a model was left out, by its name.
    without
        What the fit on the same page has and the groups compared have not: "crossed"; in earlier
        versions also "formula" and "correlated".
    formulas
        Formulas of the groups.
    lacking
        By model, the formulas of parameters that it has not, and without which it was compared.
    correlated
        Whether parameters of the groups may go together over subjects.
    """

    subjects: int
    rivals: tuple[Rival, ...]
    omnibus: float
    apart: tuple[Told, ...]
    minds: int
    left_out: Mapping[str, str]
    by_subject: pd.DataFrame = field(repr=False, compare=False)
    without: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    correlated: bool = False

    @property
    def clear(self) -> bool:
        """Whether the best model is ahead of the next by 2 standard errors, and by 4."""
        if len(self.rivals) < 2:
            return False
        ahead = -self.rivals[1].difference
        return ahead > max(CLEAR_ERRORS * self.rivals[1].difference_error, CLEAR_DIFFERENCE)

    def to_frame(self) -> pd.DataFrame:
        """One row per model."""
        return pd.DataFrame([vars(rival) for rival in self.rivals])

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Comparison:
        """Make a comparison of what its JSON holds."""
        told: list[dict[str, Any]] = [
            {k: np.nan if v is None else v for k, v in r.items()} for r in found["rivals"]
        ]
        rivals = [Rival(**each) for each in told]
        own = {k: found[k] for k in ("subjects", "omnibus", "minds", "left_out")}
        return cls(
            **own,
            rivals=tuple(rivals),
            apart=tuple(Told(**each) for each in found["apart"]),
            by_subject=pd.DataFrame(found["by_subject"]),
            without=tuple(found.get("without", ())),
            formulas=tuple(found.get("formulas", ())),
            lacking={name: tuple(own) for name, own in found.get("lacking", {}).items()},
            correlated=found.get("correlated", False),
        )


@dataclass(frozen=True)
class Groups:
    """What the groups that are compared are made of.

    Parameters
    ----------
    fixed
        Parameters held at values, of the first model alone.
    fit_lapse, all_trials
        As in `fit`, of all models.
    formulas, unit, correlated
        As in `fit`, of the groups of all models that have these parameters.
    """

    fixed: Mapping[str, float] | None = None
    fit_lapse: bool = False
    all_trials: bool = False
    formulas: tuple[str, ...] = ()
    unit: tuple[str, ...] = ("subject",)
    correlated: bool = False


def chosen_rivals(
    agent: type[Agent], environment: Environment, against: Sequence[str], every: bool
) -> tuple[list[type[Agent]], dict[str, str]]:
    """Return the models to compare, the fitted one first, and why others are left out.

    Parameters
    ----------
    against
        Names of rivals; one that cannot play the experiment is left out.
    every
        Whether all models of the experiment are rivals.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    names = list(against)
    if every:
        names += [name for name, model in AGENTS.items() if model.plays(environment)]
    chosen, left_out = [agent], {}
    for name in dict.fromkeys(names):
        if name not in AGENTS:
            raise ValueError(unknown("model", name, AGENTS))
        if name == agent.name:
            continue
        try:
            AGENTS[name].check_plays(environment)
        except ValueError as error:
            left_out[name] = str(error)
        else:
            chosen.append(AGENTS[name])
    return chosen, left_out


def compare_rivals(
    agent: type[Agent],
    trials: Trials,
    relived: Relived,
    environment: Environment,
    *,
    against: Sequence[str] = (),
    every: bool = False,
    made_of: Groups,
    seed: int = 0,
    workers: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare a model with rivals on the same trials, which have a subject for each unit."""
    models, left_out = chosen_rivals(agent, environment, against, every)
    fit_lapse, formulas = made_of.fit_lapse, made_of.formulas
    whole = (
        made_of.all_trials or agent.selection is None
    )  # so that all are fitted to the same trials
    data: list[Any] = []
    groups: list[Any] = []
    kept: list[Any] = []
    lacking: dict[str, tuple[str, ...]] = {}
    for model in models:
        if tell is not None:
            tell(f"comparing: {model.name}")
        held = made_of.fixed if model is agent else None
        parameters = Unknowns.of(model, held, fit_lapse).parameters
        having = [text for text in formulas if moved_by(text) in parameters.names]
        together = made_of.correlated and len(parameters) > 1
        design = None
        try:
            own = ModelData.read(model, trials, environment.n_actions, all_trials=whole)
            if having:
                design = GroupDesign.of(
                    having,
                    trials.frame,
                    model,
                    parameters,
                    unit=made_of.unit,
                    correlated=together,
                )
            if data and not np.array_equal(own.n_trials, data[0].n_trials):
                raise ValueError(f"{model.name} answers for other trials than {agent.name}.")
        except ValueError as error:
            left_out[model.name] = str(error)
            continue
        data.append(own)
        kept.append((model, held))
        if len(having) < len(formulas):
            lacking[model.name] = tuple(text for text in formulas if text not in having)
        rows = own
        if design is not None and design.within:
            rows = ModelData.read(
                model, trials, environment.n_actions, all_trials=whole, rows=design.of_trial
            )
        groups.append(
            predict_left_out(
                rows, design=design, correlated=together, fixed=held, lapse=fit_lapse, seed=seed,
                workers=workers,
            )
        )  # fmt: skip
    scores = _Scores.of(kept, data, fit_lapse, workers)
    rivals, omnibus, by_subject = _ranked(kept, groups, scores)
    apart = _apart(kept, groups, relived, environment, fit_lapse, seed, workers)
    n = int(groups[0].there.sum())
    return Comparison(
        n, rivals, omnibus, apart, MINDS, left_out, by_subject,
        formulas=formulas, lacking=lacking, correlated=made_of.correlated,
    )  # fmt: skip


@dataclass(frozen=True)
class _Scores:
    """AIC and BIC of each subject by each model, [N, M]; NaN where a fit failed."""

    aic: Array
    bic: Array

    @classmethod
    def of(
        cls,
        kept: Sequence[tuple[type[Agent], Mapping[str, float] | None]],
        data: Sequence[ModelData],
        fit_lapse: bool,
        workers: int | None,
    ) -> _Scores:
        fits = [
            maximum_likelihood(model, own, fixed=held, lapse=fit_lapse, workers=workers)
            for (model, held), own in zip(kept, data, strict=True)
        ]
        failed = np.array([[status == "failed" for status in fit.status] for fit in fits]).T
        aic, bic = (
            np.column_stack([getattr(fit, name) for fit in fits]) for name in ("aic", "bic")
        )
        return cls(np.where(failed, np.nan, aic), np.where(failed, np.nan, bic))


def _ranked(
    kept: Sequence[tuple[type[Agent], Mapping[str, float] | None]],
    groups: Sequence[PredictedSubjects],
    scores: _Scores,
) -> tuple[tuple[Rival, ...], float, pd.DataFrame]:
    there = groups[0].there
    loo = [group.left_out for group in groups]
    elpd = np.column_stack([each.elpd for each in loo])[there]
    n = len(elpd)
    best = int(elpd.sum(axis=0).argmax())
    away = elpd - elpd[:, [best]]
    weights = stacking_weights(elpd)
    frequent = protected_exceedance(elpd)
    usable = np.isfinite(scores.bic).all(axis=1)
    winner = scores.bic[usable].argmin(axis=1)

    def error(values: Array) -> float:
        return float(np.sqrt(n) * values.std(ddof=1)) if n > 1 else np.nan

    rivals = [
        Rival(
            model.name,
            len(groups[m].unknowns.parameters),
            float(elpd[:, m].sum()),
            error(elpd[:, m]),
            float(away[:, m].sum()),
            error(away[:, m]),
            float(weights[m]),
            float(frequent.frequency[m]),
            float(frequent.protected[m]),
            int(loo[m].refitted.sum()),
            int((loo[m].pareto_k[there] > LARGEST_PARETO_K).sum()),
            float(scores.aic[usable, m].sum()),
            float(scores.bic[usable, m].sum()),
            int((winner == m).sum()),
        )
        for m, (model, _) in enumerate(kept)
    ]
    names = [model.name for model, _ in kept]
    table = pd.DataFrame(elpd, columns=names)
    table.insert(0, "subject", [s for s, t in zip(loo[0].subjects, there, strict=True) if t])
    ordered = sorted(rivals, key=lambda rival: -rival.elpd)
    return tuple(ordered), frequent.omnibus, table


def _apart(
    kept: Sequence[tuple[type[Agent], Mapping[str, float] | None]],
    groups: Sequence[PredictedSubjects],
    relived: Relived,
    environment: Environment,
    fit_lapse: bool,
    seed: int,
    workers: int | None,
) -> tuple[Told, ...]:
    """Let minds of each model live the rows again, fit all models, and see which BIC names."""
    names = [model.name for model, _ in kept]
    if len(names) < 2:
        return ()
    n = int(groups[0].there.sum())
    found = []
    for m, (model, _) in enumerate(kept):
        rng = session_stream(seed, _KEY, m)
        theta, lapse = _minds(groups[m], rng)
        bic = np.column_stack(
            [
                maximum_likelihood(
                    rival, relived.live(model, environment, theta, lapse, seed, rival),
                    fixed=own, lapse=fit_lapse, workers=workers,
                ).bic
                for rival, own in kept
            ]
        )  # fmt: skip
        usable = bic[np.isfinite(bic).all(axis=1)]
        single = np.bincount(usable.argmin(axis=1), minlength=len(names)) / max(len(usable), 1)
        chosen = rng.integers(len(usable), size=(DATA_SETS, n))
        best = usable[chosen].sum(axis=1).argmin(axis=1)
        together = np.bincount(best, minlength=len(names)) / DATA_SETS
        shares = [dict(zip(names, share.tolist(), strict=True)) for share in (single, together)]
        found.append(Told(model.name, *shares))
    return tuple(found)


def _minds(group: PredictedSubjects, rng: np.random.Generator) -> tuple[Array, Array | None]:
    """Draw minds [MINDS, P] from the group that the data show, and their lapse rates."""
    unknowns = group.unknowns
    drawn = group.draw(rng, MINDS)
    theta = np.tile(unknowns.full, (MINDS, 1))
    theta[:, unknowns.columns] = drawn[:, :-1] if unknowns.lapse else drawn
    return theta, drawn[:, -1].copy() if unknowns.lapse else None
