"""Rival models of the same rows: which predicts subjects better, and whether that can be told.

Each model is taken as a group whose subjects differ (`predict_left_out`): its subjects' parameters
are integrated out, and each subject is predicted from the others. That is the same for all methods
of fitting. Formulas and correlations of the fit are those of its rivals as well, as far as they
have these parameters; crossed factors are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, session_stream, unknown
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.groups.formulas import GroupDesign, moved_by
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K
from knownminds.inference.posteriors.left_out_subjects import PredictedSubjects, predict_left_out
from knownminds.inference.posteriors.model_weights import protected_exceedance, stacking_weights
from knownminds.validation.engine.result import Drawing, Result
from knownminds.validation.engine.verdicts import Verdict, reason

from .fit_figures import draw_rivals, draw_taken_for
from .support import Relived

MINDS = 100  # of each model, that live the rows again
DATA_SETS = 1000  # put together from these minds, each as large as the data
CLEAR_ERRORS, CLEAR_DIFFERENCE = 2.0, 4.0
_KEY = 72  # of the stream of simulated minds


MODELS = "Models by how they predict left-out subjects"
TAKEN_FOR = "What these rows can tell apart"
DIFFERENCES = "Differences in elpd to the best model, with 2 standard errors."
CONFUSIONS = "What simulated minds of each model (rows), who take these rows, are taken for."
ABOUT_ELPD = (
    "Models are compared by how they predict subjects that are left out. elpd: sum over subjects "
    "of the log probability of a subject's answers given the other subjects, with its parameters "
    "integrated out; error: its standard error. Weight: in the mixture of models that predicts "
    "best (stacking). Frequency: expected share of subjects whose model it is; exceedance: "
    "protected probability of being the most frequent one. Refitted: subjects predicted by a "
    "posterior drawn without them, as their Pareto k was above .7; unreliable: those of which it "
    "is above it all the same. AIC, BIC, best_for: at maximum likelihood, by single subjects. Of "
    "few subjects, and of differences below 4, standard errors say too little: a difference is "
    "clear from 4 and 2 standard errors on.",
    "Each model is a group of its own whose parameters differ over subjects; with the formulas and "
    "correlations that were asked for, as far as it has these parameters, and without crossed "
    "factors.",
    f"What these rows can tell apart: {MINDS} simulated minds of each model take these rows, and "
    "BIC names a model for one of them, and for as many as the data have subjects.",
)


@dataclass(frozen=True)
class Comparison:
    """Several models of the same rows.

    Parameters
    ----------
    models
        One row per model, the best one first: see `ABOUT_ELPD`.
    omnibus
        Probability that all models are equally frequent among subjects.
    taken_for
        Shares of simulated minds of each model, "simulated", that BIC names each model for,
        "taken_for": "one" alone, and "all", data sets of as many subjects as the data have.
    by_subject
        elpd of each subject by each model.
    left_out
        Why a model was left out, or of which formulas it has not the parameter, by its name.
    """

    models: pd.DataFrame
    omnibus: float
    taken_for: pd.DataFrame
    by_subject: pd.DataFrame
    left_out: Mapping[str, str]

    @property
    def verdict(self) -> Verdict:
        """Whether the best model is ahead of the next by 2 standard errors, and by 4."""
        if len(self.models) < 2:
            return Verdict("not judged", ("nothing is left to compare with",))
        best, second = (self.models.iloc[k] for k in (0, 1))
        ahead, error = -second["difference"], second["difference_error"]
        clear = ahead > max(CLEAR_ERRORS * error, CLEAR_DIFFERENCE)
        told = reason(f"elpd of {best['model']} above {second['model']}", ahead, error,
                      CLEAR_DIFFERENCE)  # fmt: skip
        return Verdict("a clear difference" if clear else "no clear difference", (told,))


def rivals_result(compared: Comparison) -> Result:
    """Return the tables and figures of a comparison."""
    left = pd.DataFrame(list(compared.left_out.items()), columns=["model", "why"])
    differences = compared.models[["model", "difference", "difference_error"]]
    figures = {DIFFERENCES: Drawing(differences, draw_rivals)}
    if len(compared.taken_for):
        figures[CONFUSIONS] = Drawing(compared.taken_for, draw_taken_for)
    return Result(
        "",
        verdicts={"models": compared.verdict},
        tables={
            MODELS: compared.models,
            TAKEN_FOR: compared.taken_for,
            "Left out of the comparison": left,
            "elpd of each subject": compared.by_subject,
        },
        figures=figures,
        notes=ABOUT_ELPD,
        asked={"subjects compared": len(compared.by_subject)},
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
    for model in models:
        if tell is not None:
            tell(f"comparing: {model.name}")
        held = made_of.fixed if model is agent else None
        parameters = Unknowns.of(model, held, fit_lapse).parameters
        having = [text for text in formulas if moved_by(text) in parameters.names]
        together = made_of.correlated and len(parameters) > 1
        design = None
        try:
            model_data = ModelData.read(model, trials, environment.n_actions, all_trials=whole)
            if having:
                design = GroupDesign.of(
                    having,
                    trials.frame,
                    model,
                    parameters,
                    unit=made_of.unit,
                    correlated=together,
                )
            if data and not np.array_equal(model_data.n_trials, data[0].n_trials):
                raise ValueError(f"{model.name} answers for other trials than {agent.name}.")
        except ValueError as error:
            left_out[model.name] = str(error)
            continue
        data.append(model_data)
        kept.append((model, held))
        if len(having) < len(formulas):
            lacking = [text for text in formulas if text not in having]
            left_out[model.name] = f"only {'; '.join(lacking)}: it has no such parameter"
        rows = model_data
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
    ranked, omnibus, by_subject = _ranked(kept, groups, scores)
    taken_for = _taken_for(kept, groups, relived, environment, fit_lapse, seed, workers)
    return Comparison(ranked, omnibus, taken_for, by_subject, left_out)


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
) -> tuple[pd.DataFrame, float, pd.DataFrame]:
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

    names = [model.name for model, _ in kept]
    models = pd.DataFrame({
        "model": names,
        "parameters": [len(group.unknowns.parameters) for group in groups],
        "elpd": elpd.sum(axis=0), "error": [error(own) for own in elpd.T],
        "difference": away.sum(axis=0), "difference_error": [error(own) for own in away.T],
        "weight": weights, "frequency": frequent.frequency, "exceedance": frequent.protected,
        "refitted": [int(each.refitted.sum()) for each in loo],
        "unreliable": [int((each.pareto_k[there] > LARGEST_PARETO_K).sum()) for each in loo],
        "aic": scores.aic[usable].sum(axis=0), "bic": scores.bic[usable].sum(axis=0),
        "best_for": np.bincount(winner, minlength=len(names)),
    })  # fmt: skip
    table = pd.DataFrame(elpd, columns=names)
    table.insert(0, "subject", [s for s, t in zip(loo[0].subjects, there, strict=True) if t])
    models = models.sort_values("elpd", ascending=False, kind="stable", ignore_index=True)
    return models, frequent.omnibus, table


def _taken_for(
    kept: Sequence[tuple[type[Agent], Mapping[str, float] | None]],
    groups: Sequence[PredictedSubjects],
    relived: Relived,
    environment: Environment,
    fit_lapse: bool,
    seed: int,
    workers: int | None,
) -> pd.DataFrame:
    """Let minds of each model take the rows, fit all models, and see which BIC names."""
    names = [model.name for model, _ in kept]
    if len(names) < 2:
        return pd.DataFrame()
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
        found.append(
            pd.DataFrame({"simulated": model.name, "taken_for": names, "one": single,
                          "all": together})
        )  # fmt: skip
    return pd.concat(found, ignore_index=True)


def _minds(group: PredictedSubjects, rng: np.random.Generator) -> tuple[Array, Array | None]:
    """Draw minds [MINDS, P] from the group that the data show, and their lapse rates."""
    unknowns = group.unknowns
    drawn = group.draw(rng, MINDS)
    theta = np.tile(unknowns.full, (MINDS, 1))
    theta[:, unknowns.columns] = drawn[:, :-1] if unknowns.lapse else drawn
    return theta, drawn[:, -1].copy() if unknowns.lapse else None
