"""Rival models of the same rows: which predicts subjects better, and whether that is clear.

Each model is taken as a group whose subjects differ (`predict_left_out`): its subjects' parameters
are integrated out, and each subject is predicted from the others. That is the same for all methods
of fitting. Formulas and correlations of the fit are those of its rivals as well, as far as they
have these parameters; crossed factors are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, session_stream, unknown
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.groups.formulas import GroupDesign, moved_by
from knownminds.inference.groups.left_out_subjects import PredictedSubjects, predict_left_out
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K
from knownminds.inference.posteriors.model_weights import protected_exceedance, stacking_weights
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import Verdict, reason

from .fit_figures import draw_rivals, draw_taken_for
from .support import Relived

if TYPE_CHECKING:
    from .questions import AskFit

KNOWN = 100  # agents of each model, which live the rows again
DATA_SETS = 1000  # put together from these agents, each as large as the data
CLEAR_ERRORS, CLEAR_DIFFERENCE = 2.0, 4.0
_KEY = 72  # of the stream of simulated agents


MODELS = "Models by how they predict left-out subjects"
TAKEN_FOR = "What these rows can tell apart"
DIFFERENCES = "Differences in elpd to the best model, with 2 standard errors."
CONFUSIONS = "What simulated agents of each model (rows), who take these rows, are taken for."
ABOUT_ELPD = (
    "Models are compared by how they predict subjects that are left out. elpd: sum over subjects "
    "of the log probability of a subject's answers given the other subjects, with its parameters "
    "integrated out; error: its standard error. Weight: in the mixture of models that predicts "
    "best (stacking). Frequency: expected share of subjects whose model it is; exceedance: "
    "protected probability of being the most frequent one. Refitted: subjects predicted by a "
    "posterior drawn without them, as their Pareto k was above .7; unreliable: those of which it "
    "is above it all the same. A group counts as sampled by its own means and spreads, since "
    "subjects are integrated out. AIC, BIC, best_for: at maximum likelihood, by single subjects. "
    "Of few subjects, and of differences below 4, standard errors say too little: a difference is "
    "clear from 4 and 2 standard errors on.",
    "Each model is a group of its own whose parameters differ over subjects; with the formulas and "
    "correlations that were requested, as far as it has these parameters, and without crossed "
    "factors.",
    f"What these rows can tell apart: {KNOWN} simulated agents of each model take these rows, and "
    "BIC names a model for one of them, and for as many as the data have subjects.",
)


def verdict_of(models: pd.DataFrame) -> Verdict:
    """Say whether the best model is ahead of the next by 2 standard errors, and by 4."""
    if len(models) < 2:
        return Verdict("not judged", ("nothing is left to compare with",))
    best, second = (models.iloc[k] for k in (0, 1))
    ahead, error = -second["difference"], second["difference_error"]
    clear = ahead > max(CLEAR_ERRORS * error, CLEAR_DIFFERENCE)
    text = reason(f"elpd of {best['model']} above {second['model']}", ahead, error,
                  CLEAR_DIFFERENCE)  # fmt: skip
    return Verdict("a clear difference" if clear else "no clear difference", (text,))


def chosen_rivals(
    agent: type[Model], environment: Environment, against: Sequence[str], every: bool
) -> tuple[list[type[Model]], dict[str, str]]:
    """Return the models to compare, the fitted one first, and why others are left out.

    Parameters
    ----------
    against : Names of rivals; one that cannot play the experiment is left out.
    every : Whether all models of the experiment are rivals.

    Raises
    ------
    ValueError : If there is no such model.
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
    agent: type[Model], trials: Trials, relived: Relived, environment: Environment, question: AskFit
) -> Result:
    """Compare a model with rivals on the same trials, which have a subject for each unit.

    Tables: the models, the best one first (see `ABOUT_ELPD`); shares of simulated agents of each
    model, "simulated", that BIC names each model for, "taken_for": "one" alone, and "all", data
    sets of as many subjects as the data have; why a model was left out, or of which formulas it has
    not the parameter; and the elpd of each subject by each model.
    """
    rivals = question.against or ()
    models, left_out = chosen_rivals(agent, environment, rivals, question.rivals)
    fit_lapse, formulas = question.fit_lapse, tuple(question.formula or ())
    seed, workers = question.seed, question.workers
    whole = question.all_trials or agent.selection is None  # all are fitted to the same trials
    data: list[Any] = []
    groups: list[Any] = []
    kept: list[Any] = []
    for model in models:
        if question.tell is not None:
            question.tell(f"comparing: {model.name}")
        held = question.fixed if model is agent else None
        parameters = Unknowns.of(model, held, fit_lapse).parameters
        having = [text for text in formulas if moved_by(text) in parameters.names]
        together = question.correlated and len(parameters) > 1
        design = None
        try:
            model_data = ModelData.read(model, trials, environment.n_actions, all_trials=whole)
            if having:
                design = GroupDesign.of(
                    having,
                    trials.frame,
                    model,
                    parameters,
                    unit=tuple(question.unit or ("subject",)),
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
    criteria = _criteria(kept, data, fit_lapse, workers)
    ranked, by_subject = _ranked(kept, groups, *criteria)
    taken_for = _taken_for(kept, groups, relived, environment, fit_lapse, seed, workers)
    differences = ranked[["model", "difference", "difference_error"]]
    figures = {DIFFERENCES: Drawing(differences, draw_rivals)}
    if len(taken_for):
        figures[CONFUSIONS] = Drawing(taken_for, draw_taken_for)
    return Result(
        "",
        verdicts={"models": verdict_of(ranked)},
        tables={
            MODELS: ranked,
            TAKEN_FOR: taken_for,
            "Left out of the comparison": pd.DataFrame(
                list(left_out.items()), columns=["model", "why"]
            ),
            "elpd of each subject": by_subject,
        },
        figures=figures,
        notes=ABOUT_ELPD,
        options={"subjects compared": len(by_subject)},
    )


def _criteria(
    kept: Sequence[tuple[type[Model], Mapping[str, float] | None]],
    data: Sequence[ModelData],
    fit_lapse: bool,
    workers: int | None,
) -> list[Array]:
    """Return AIC and BIC of each subject by each model, [N, M]; NaN where a fit failed."""
    fits = [
        maximum_likelihood(model, read, fixed=held, lapse=fit_lapse, workers=workers)
        for (model, held), read in zip(kept, data, strict=True)
    ]
    failed = np.array([[status == "failed" for status in fit.status] for fit in fits]).T
    criteria = (np.column_stack([getattr(fit, name) for fit in fits]) for name in ("aic", "bic"))
    return [np.where(failed, np.nan, values) for values in criteria]


def _ranked(
    kept: Sequence[tuple[type[Model], Mapping[str, float] | None]],
    groups: Sequence[PredictedSubjects],
    aic: Array,
    bic: Array,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    there = groups[0].there
    loo = [group.left_out for group in groups]
    elpd = np.column_stack([each.elpd for each in loo])[there]
    n = len(elpd)
    best = int(elpd.sum(axis=0).argmax())
    away = elpd - elpd[:, [best]]
    weights = stacking_weights(elpd)
    frequent = protected_exceedance(elpd)
    usable = np.isfinite(bic).all(axis=1)
    winner = bic[usable].argmin(axis=1)

    def error(values: Array) -> float:
        return float(np.sqrt(n) * values.std(ddof=1)) if n > 1 else np.nan

    names = [model.name for model, _ in kept]
    models = pd.DataFrame({
        "model": names,
        "parameters": [len(group.unknowns.parameters) for group in groups],
        "elpd": elpd.sum(axis=0), "error": [error(column) for column in elpd.T],
        "difference": away.sum(axis=0), "difference_error": [error(column) for column in away.T],
        "weight": weights, "frequency": frequent.frequency, "exceedance": frequent.protected,
        "refitted": [int(each.refitted.sum()) for each in loo],
        "unreliable": [int((each.pareto_k[there] > LARGEST_PARETO_K).sum()) for each in loo],
        "aic": aic[usable].sum(axis=0), "bic": bic[usable].sum(axis=0),
        "best_for": np.bincount(winner, minlength=len(names)),
    })  # fmt: skip
    table = pd.DataFrame(elpd, columns=names)
    table.insert(0, "subject", [s for s, t in zip(loo[0].subjects, there, strict=True) if t])
    models = models.sort_values("elpd", ascending=False, kind="stable", ignore_index=True)
    return models, table


def _taken_for(
    kept: Sequence[tuple[type[Model], Mapping[str, float] | None]],
    groups: Sequence[PredictedSubjects],
    relived: Relived,
    environment: Environment,
    fit_lapse: bool,
    seed: int,
    workers: int | None,
) -> pd.DataFrame:
    """Let known agents of each model take the rows, fit all models, and see which BIC names."""
    names = [model.name for model, _ in kept]
    if len(names) < 2:
        return pd.DataFrame()
    n = int(groups[0].there.sum())
    pairs = []
    for m, (model, _) in enumerate(kept):
        rng = session_stream(seed, _KEY, m)
        theta, lapse = _known_agents(groups[m], rng)
        bic = np.column_stack(
            [
                maximum_likelihood(
                    rival, relived.live(model, environment, theta, lapse, seed, rival),
                    fixed=scores, lapse=fit_lapse, workers=workers,
                ).bic
                for rival, scores in kept
            ]
        )  # fmt: skip
        usable = bic[np.isfinite(bic).all(axis=1)]
        single = np.bincount(usable.argmin(axis=1), minlength=len(names)) / max(len(usable), 1)
        chosen = rng.integers(len(usable), size=(DATA_SETS, n))
        best = usable[chosen].sum(axis=1).argmin(axis=1)
        together = np.bincount(best, minlength=len(names)) / DATA_SETS
        pairs.append(
            pd.DataFrame({"simulated": model.name, "taken_for": names, "one": single,
                          "all": together})
        )  # fmt: skip
    return pd.concat(pairs, ignore_index=True)


def _known_agents(group: PredictedSubjects, rng: np.random.Generator) -> tuple[Array, Array | None]:
    """Draw known agents [KNOWN, P] from the group that the data show, and their lapse rates."""
    unknowns = group.unknowns
    drawn = group.draw(rng, KNOWN)
    theta = np.tile(unknowns.full, (KNOWN, 1))
    theta[:, unknowns.columns] = drawn[:, :-1] if unknowns.lapse else drawn
    return theta, drawn[:, -1].copy() if unknowns.lapse else None
