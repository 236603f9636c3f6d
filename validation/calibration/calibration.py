"""Simulation-based calibration: whether posteriors are as wide, and where, they ought to be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import session_stream
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.engine.arguments import (
    check_count,
    check_truth,
    chosen_options,
    resolve_environment,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.drawn_groups import COLUMN, design_of_sessions
from knownminds.validation.engine.engine import Step, computed_steps, run, stored_steps
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.population import (
    CHOSEN_PER_BATCH,
    HYPERPRIOR,
    Subjects,
    check_step_loop,
    design_of,
    draw_subjects,
    live,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Batch, Rows, Study, read_study
from knownminds.validation.engine.verdicts import HALF_WIDTH, MOST_FAILURES, NOTICED
from knownminds.validation.pages.views import Curves

from .around import around_options, truths_around, with_observed
from .questions import Calibrate
from .rank_uniformity import (
    Uniformity,
    is_clear,
    judge,
    least_replicates,
    looks,
    noticeable,
    rank_of,
)
from .simulator import live_in_simulator, simulator_options

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

N_RANKS = 99  # draws the truth is ranked among: 100 equally likely ranks
LEVEL = 0.05  # of the whole family of quantities
REPLICATES_PER_BATCH = 128
MOST = 3200  # replicates of a study that goes on until its verdict is clear
LOG_LIKELIHOOD = "log_likelihood"
_TIES = 2**31  # last part of the address of the numbers that break ties
_RANK = "rank "  # what the columns of ranks begin with
Quantities = dict[str, tuple[float, Array]]  # truth, and draws [N_RANKS], of each by its name

# Where true values come from.
FROM_PRIOR = "True values are drawn from the model's priors."
FROM_HYPERPRIORS = (
    "Groups are drawn from the hyperpriors. NAME is the group's mean of a parameter, sd(NAME) its "
    "spread, subject NAME the first subject's; seen: of the subjects' parameters."
)
FROM_DATA = (
    "True values are drawn from the posteriors given the data set, and ranked among draws of the "
    "posterior given it and the simulated sessions."
)
FROM_SIMULATOR = (
    "Sessions are played by {file}, not by the model: ranks that are not uniform say that one of "
    "both has another equation, or that the posterior is wrong."
)
LOOKS = "The ranks were looked at {looks} times; a level of {level:.2g} was left to the last look."
NOTES = (
    f"The truth is ranked among {N_RANKS} draws of its posterior. If that is right, ranks are "
    "uniform: as a share of their range they have a mean of 0.5, and a spread (their variance over "
    "that of a posterior of the right width) of 1. A mean below 0.5: draws lie above the truth, "
    "biased high. A spread above 1: the posterior is too narrow, over-confident. Monte-Carlo "
    f"standard errors in parentheses. p decides at a level of {LEVEL} shared among the quantities. "
    "It is twice the smaller p-value of two tests: of gamma, the smallest tail probability of the "
    "ranks' ECDF (Säilynoja, Bürkner and Vehtari 2022), and of the sum of the ranks' squared "
    "normal scores, which sees a wrong width earlier (Cook, Gelman and Rubin 2006).",
    f"Failed replicates have no ranks. Where more than {MOST_FAILURES} failed or did not converge, "
    "the others do not speak for all.",
    f"What is noticed with a chance of {NOTICED}, by the ranks of one quantity alone: a posterior "
    "so many times as wide as it should be (narrow, wide), or shifted by so many standard "
    f"deviations. Fewer ranks than needed do not notice a width of {HALF_WIDTH}, and are not "
    "judged.",
)
ECDF = Curves(
    "Share of the ranks below a value minus that value, and the ends between which all of it lies "
    f"if the posterior is right (simultaneous over ranks and quantities, {1 - LEVEL:.0%}).",
    ("rank / 100", "ECDF - uniform"), "z", "value", ("quantity",), ("of",), steps=True,
    limits=(0.0,),
)  # fmt: skip

calibrate = verb(Calibrate, __name__)


def compute(question: Calibrate) -> Result:
    """Answer `calibrate`."""
    cell = calibration_cell(question)
    options = question.option_values() | {
        "subjects": cell.subjects if cell.method == "hierarchical" else None,
        "trials": cell.make().n_trials,
    }
    study = Study("calibrate", (cell,), question.replicates, question.seed, "replicate", options)
    check_step_loop(study)
    if question.clear is None:
        if question.most != MOST:
            raise ValueError("--most is said of rounds that go on; add --clear 0.85.")
        return run(study, rank_batch, say, question)
    _check_rounds(question)
    return _follow(study, computed_steps(study, rank_batch, question))


def read(folder: str | Path) -> Result:
    """Return what the calibration in a folder says, as far as it went."""
    study, _ = read_study(folder)
    if study.question.get("clear") is not None:
        return _follow(study, stored_steps(Path(folder)))
    return say(Rows.read(folder))


def _check_rounds(question: Calibrate) -> None:
    """Raise ValueError if rounds cannot end, or no verdict could be reached in the first."""
    assert question.clear is not None
    if not 0 < question.clear < 1:
        raise ValueError(
            "A verdict is clear once a posterior would be noticed that is so many times as wide as "
            f"it should be, between 0 and 1 (0.85); got {question.clear}."
        )
    check_count("most", question.most)
    if question.most < question.replicates:
        raise ValueError(
            f"--most is at least the first number of replicates, {question.replicates}; got "
            f"{question.most}."
        )


def _follow(study: Study, rows_of: Step) -> Result:
    """Go round after round until the verdict is clear; each doubles the replicates."""
    clear, most = study.question["clear"], study.question["most"]
    cell, level = study.cells[0], LEVEL
    rounds: list[Rows] = []
    for number, (n, share) in enumerate(looks(study.replicates, most), start=1):
        name = f"round {number}"
        step = name if rounds else ""
        more = n - sum(one.study.replicates for one in rounds)
        rows = rows_of(replace(study, cells=(replace(cell, step=step),), replicates=more), name)
        if rows is None:
            break
        rounds.append(rows)
        level = LEVEL * share
        judged, ranked = _judged([one.frame for one in rounds], level)
        words = [one.verdict.word for one in judged.values()]
        if is_clear(words, len(ranked), N_RANKS, level / max(len(words), 1), clear):
            break
    if not rounds:
        return Result(_title(cell), missing=1, options=study.options)
    frame = pd.concat([one.frame for one in rounds], ignore_index=True)
    whole = replace(study, replicates=len(frame))
    used = tuple({json.dumps(dict(u)): u for one in rounds for u in one.versions}.values())
    return say(Rows(whole, frame, used), level, len(rounds))


def calibration_cell(question: Calibrate) -> Cell:
    """Check the options, and write down the design."""
    environment = resolve_environment(question.environment, question.trials)
    agent, method = question.agent, question.method
    agent.check_plays(environment)
    if question.truth:
        raise ValueError(
            f"Calibration draws the truth from the prior; got --set {next(iter(question.truth))}. "
            "Hold a parameter in truth and fit with --fix."
        )
    fixed = check_truth(agent.parameters, question.fixed)
    if len(Unknowns.of(agent, fixed).parameters) == 0:
        raise ValueError(
            f"Calibration needs a parameter to estimate; {agent.name} has none left. Name "
            "another with --model, or hold fewer values."
        )
    grouped = method == "hierarchical"
    size = (20 if grouped else 1) if question.subjects is None else question.subjects
    _check_method(question, size)
    chosen = chosen_options(environment, question.questions, question.adaptive)
    around = around_options(question.around, environment, agent)
    further: dict[str, Any] = simulator_options(question.simulator, environment, agent)
    if question.quantities:
        _check_quantities(question.quantities, Unknowns.of(agent, fixed).parameters)
        further["quantities"] = list(question.quantities)
    return Cell(
        environment.name,
        environment.settings,
        agent.name,
        fixed,
        population=_population(question, fixed, size) if grouped else Population(),
        sessions=question.sessions,
        subjects=size,
        method=method,
        analysis=CellAnalysis(fixed=fixed, **chosen, **around, **further),
        batch=1 if grouped else CHOSEN_PER_BATCH if chosen else REPLICATES_PER_BATCH,
    )


def _check_method(question: Calibrate, size: int) -> None:
    """Raise ValueError if the method lacks what an option needs."""
    grouped = question.method == "hierarchical"
    if grouped and size < 2:
        raise ValueError(f"A hierarchical fit needs at least 2 subjects; got {size}.")
    if not grouped and size != 1:
        raise ValueError(
            f"Single posteriors have 1 subject each; got {size}. Raise --replicates, or use "
            "--method hierarchical."
        )
    if not grouped and (question.correlated or question.formula):
        raise ValueError(
            f"What goes together is that of a group: --method hierarchical; got {question.method}."
        )
    for name, what in (("around", "Around a data set"), ("simulator", "With another simulator")):
        if getattr(question, name) is not None and (grouped or question.questions is not None):
            raise ValueError(
                f"{what} single posteriors are calibrated, from whole sessions; got "
                f"{'the method hierarchical' if grouped else '--questions'}. Leave it out."
            )


def _check_quantities(expressions: Sequence[str], parameters: Parameters) -> None:
    """Raise ValueError if a further quantity is no number for parameters of the model."""
    draws = parameters.constrain(
        parameters.mean + parameters.sd * np.random.default_rng(0).standard_normal((8, 1)) / 2
    )
    known = [LOG_LIKELIHOOD, *parameters.names]
    for place, text in enumerate(expressions):
        if text.strip() in (*known, *(one.strip() for one in expressions[:place])):
            raise ValueError(
                "Each quantity is ranked once, and parameters and the log-likelihood are in any "
                f"case; got {text!r} besides. Leave it out."
            )
        rule = (
            f"A quantity is an expression of {', '.join(parameters.names)}, "
            f'"2 * {parameters.names[0]}" for instance'
        )
        try:
            values = quantity(text, parameters.names, draws)
        except (ValueError, SyntaxError, TypeError, NameError, AttributeError, KeyError) as error:
            raise ValueError(f"{rule}; got {text!r} ({error}).") from None
        if not np.isfinite(values).all() or np.ptp(values) == 0:
            raise ValueError(f"{rule}, which differs between subjects; got {text!r}.")


def quantity(text: str, names: Sequence[str], draws: Array) -> Array:
    """Return an expression of parameters, [...], given draws [..., P] on the natural scale.

    Raises
    ------
    ValueError : If the expression is no column of numbers, and what `pandas.DataFrame.eval` raises.
    """
    if "@" in text or "=" in text.replace("==", "").replace("<=", "").replace(">=", ""):
        raise ValueError("it assigns nothing and has no @")
    columns = dict(zip(names, draws.reshape(-1, len(names)).T, strict=True))
    values = np.asarray(pd.DataFrame(columns).eval(text), dtype=float)
    if values.shape != (draws[..., 0].size,):
        raise ValueError("it has no value for each subject")
    return values.reshape(draws.shape[:-1])


def _population(question: Calibrate, fixed: Mapping[str, float], size: int) -> Population:
    """Check and return the population that groups are drawn from."""
    agent = question.agent
    parameters = Unknowns.of(agent, fixed).parameters
    if question.correlated and len(parameters) < 2 and not question.formula:
        raise ValueError(
            f"Correlations are between two parameters or more; {parameters.names[0]} alone is "
            "free. Leave --correlated out."
        )
    if question.formula:
        if question.questions is not None:
            raise ValueError("Questions are chosen for parameters that stay; leave --formula out.")
        design_of_sessions(
            question.formula, agent, parameters, size, question.sessions, question.correlated
        )
    formula = list(question.formula or ())
    return replace(HYPERPRIOR, correlated=question.correlated, formula=formula)


def rank_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Rank the truth among posterior draws: one row per replicate, a column per quantity."""
    if study.cells[batch.cell].method != "hierarchical":
        return _rank_singles(study, batch, threads)
    replicates = range(batch.first, batch.last)
    return pd.DataFrame(
        [_rank_group(study, Batch(batch.cell, j, j + 1), threads) for j in replicates]
    )


def _rank_singles(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    cell = study.cells[batch.cell]
    model, fixed = AGENTS[cell.model], cell.analysis.fixed
    unknowns = Unknowns.of(model, fixed)
    subjects = draw_subjects(study, batch)
    around, observed_status = bool(cell.analysis.around), [""] * len(batch)
    if around:
        subjects, observed_status = truths_around(study, batch, subjects)
    playing = live_in_simulator if cell.analysis.simulator else live
    sessions = playing(study, batch, subjects)
    data = with_observed(study, batch, sessions) if around else sessions.data(model)
    sample = posterior(model, data, fixed=fixed, seed=study.seed, workers=threads)
    true = subjects.theta[:, unknowns.columns]
    free, further = unknowns.parameters.names, cell.analysis.quantities
    names = [*free, LOG_LIKELIHOOD, *further]
    rngs = [_stream(study, cell, j) for j in range(batch.first, batch.last)]
    # All subjects' draws rest on one low-discrepancy set; ranks need draws of their own.
    chosen = np.stack([rng.choice(len(sample.z_draws), N_RANKS, replace=False) for rng in rngs], 1)
    draws = sample.draws[chosen, np.arange(len(rngs))]
    likely = np.stack([unknowns.log_likelihood(data, theta)[0] for theta in draws])
    likely_true, _ = unknowns.log_likelihood(data, true)
    drawn = np.stack([likely, *(quantity(text, free, draws) for text in further)], axis=-1)
    drawn_true = np.column_stack([likely_true, *(quantity(text, free, true) for text in further)])
    rows = []
    for i, rng in enumerate(rngs):
        row: dict[str, Any] = {"status": "ok", "message": ""}
        if "failed" in (sample.status[i], observed_status[i]):
            row = {"status": "failed", "message": "no trustworthy draws of the posterior"}
        else:
            truth = np.append(true[i], drawn_true[i])
            row |= _ranks(names, truth, np.column_stack([draws[:, i], drawn[:, i]]), rng)
        rows.append(row)
    return pd.DataFrame(rows)


def _rank_group(study: Study, batch: Batch, threads: int | None) -> dict[str, Any]:
    cell = study.cells[batch.cell]
    model, fixed = AGENTS[cell.model], cell.analysis.fixed
    unknowns = Unknowns.of(model, fixed)
    subjects = draw_subjects(study, batch)
    data = live(study, batch, subjects).data(model, apart=bool(cell.population.formula))
    fit = sample_group(
        data,
        fixed,
        False,
        study.seed,
        cell.data_key,
        batch.first,
        threads=threads,
        correlated=cell.population.correlated,
        design=design_of(cell, unknowns.parameters, cell.subjects),
    )
    columns = unknowns.columns
    true = subjects.theta[:, columns]
    if subjects.of_session is not None:
        true = subjects.of_session[:, :, columns].reshape(-1, len(columns))
    thin = ((np.arange(N_RANKS) + 0.5) * len(fit.draws) / N_RANKS).astype(int)
    quantities: Quantities = {}
    for text, truth, draws in (
        ("{}", subjects.group_mean[0, columns], _group_draws(fit, "group_mean")[thin]),
        ("sd({})", subjects.group_sd[0, columns], _group_draws(fit, "group_sd")[thin]),
        ("subject {}", true[0], fit.draws[thin, 0]),
    ):
        quantities |= {
            text.format(name): (float(truth[k]), draws[:, k]) for k, name in enumerate(fit.names)
        }
    likely = np.array([unknowns.log_likelihood(data, fit.draws[s])[0].sum() for s in thin])
    quantities[LOG_LIKELIHOOD] = float(unknowns.log_likelihood(data, true)[0].sum()), likely
    for text in cell.analysis.quantities:
        first = true[: cell.subjects]
        values = quantity(text, fit.names, fit.draws[thin][:, : cell.subjects])
        quantities[text] = float(quantity(text, fit.names, first).mean()), values.mean(axis=1)
    quantities |= _together(fit, thin, subjects, unknowns, cell)
    truths = np.array([value for value, _ in quantities.values()])
    all_draws = np.column_stack([draws for _, draws in quantities.values()])
    ranks = _ranks(list(quantities), truths, all_draws, _stream(study, cell, batch.first))
    status = "ok" if fit.verdict == "converged" else "not converged"
    return {"status": status, "message": "; ".join(fit.reasons), **ranks}


def _together(
    fit: HierarchicalFit, thin: Array, subjects: Subjects, unknowns: Unknowns, cell: Cell
) -> Quantities:
    """Return truth and draws of what goes together: terms of the fit, and what is seen of it.

    What is seen of a correlation is that between the subjects' parameters, of the first
    session; and of how far effects spread, the spread of the subjects' changes from first to
    last session. A fit without these terms has them as well.
    """
    draws = {name: values for name, values, _ in fit.terms()} if subjects.terms else {}
    quantities: Quantities = {
        name: (float(value[0]), draws[name][thin])
        for name, value in subjects.terms.items()
        if name in draws
    }
    n, z, unconstrain = cell.subjects, fit.z_draws[thin], unknowns.parameters.unconstrain
    if subjects.of_session is not None:
        sessions = unconstrain(subjects.of_session[:, :, unknowns.columns])
        true_changes, changes = sessions[-1] - sessions[0], z[:, -n:] - z[:, :n]
        for k, name in enumerate(fit.names):
            if np.ptp(true_changes[:, k]) > 0:
                spread = float(true_changes[:, k].std()), changes[:, :, k].std(axis=1)
                quantities[f"seen sd({name} ~ {COLUMN})"] = spread
    if cell.population.correlated:
        true = unconstrain(subjects.theta[:, unknowns.columns])
        for a, b in combinations(range(len(fit.names)), 2):
            r = np.array([np.corrcoef(draws_of[:n, a], draws_of[:n, b])[0, 1] for draws_of in z])
            pair = f"seen cor({fit.names[a]}, {fit.names[b]})"
            quantities[pair] = float(np.corrcoef(true[:, a], true[:, b])[0, 1]), r
    return quantities


def _group_draws(fit: HierarchicalFit, name: str) -> Array:
    draws = fit.posterior[name].transpose("chain", "draw", "parameter").to_numpy()
    return np.asarray(draws.reshape(-1, draws.shape[-1]))


def _stream(study: Study, cell: Cell, replicate: int) -> np.random.Generator:
    """Return the random numbers of a replicate that choose draws and break ties."""
    return session_stream(study.seed, cell.data_key, replicate, _TIES)


def _ranks(
    names: list[str], truth: Array, draws: Array, rng: np.random.Generator
) -> dict[str, int]:
    ranks = rank_of(truth, draws, N_RANKS, rng)
    return {f"{_RANK}{name}": int(rank) for name, rank in zip(names, ranks, strict=True)}


def say(rows: Rows, level: float = LEVEL, rounds: int = 1) -> Result:
    """Judge the ranks of a study, at a level shared by its quantities, on the last look."""
    cell, frame = rows.study.cells[0], rows.frame
    judged, ranked = _judged([frame], level)
    ecdfs = {name: one.ecdf for name, one in judged.items() if len(one.ecdf)}
    figures = {}
    if ecdfs:
        ecdf = pd.concat(ecdfs, names=["quantity"]).reset_index("quantity")
        figures = ECDF.drawings(ecdf.melt(["quantity", "z"], var_name="of"))
    sources = [FROM_HYPERPRIORS if cell.method == "hierarchical" else FROM_PRIOR]
    if cell.analysis.around:
        sources = [FROM_DATA]
    if cell.analysis.simulator:
        sources.append(FROM_SIMULATOR.format(file=cell.analysis.simulator["file"]))
    if rounds > 1:
        sources.append(LOOKS.format(looks=rounds, level=level))
    return rows.result(
        _title(cell),
        verdicts={name: one.verdict for name, one in judged.items()},
        tables={
            "Ranks": _rank_table(judged),
            "Noticed": _noticed_table(len(ranked), level / max(len(judged), 1)),
        },
        options={**rows.study.options, "replicates": len(frame)},
        of="replicates",
        shows=("mean", "spread", "p", "n", "gamma"),
        figures=figures,
        notes=[*sources, *NOTES],
    )


def _title(cell: Cell) -> str:
    return f"Are the posteriors of {cell.model} in {cell.environment} calibrated?"


def _judged(
    frames: Sequence[pd.DataFrame], level: float
) -> tuple[dict[str, Uniformity], pd.DataFrame]:
    """Judge the ranks of each quantity, at a level shared among them; return them as well."""
    frame = pd.concat(frames, ignore_index=True)
    ranked = frame[frame["status"] != "failed"]
    unsound = float((frame["status"] != "ok").mean()) if len(frame) else 0.0
    columns = [str(name) for name in ranked if str(name).startswith(_RANK)]
    each = level / max(len(columns), 1)
    judged = {
        column.removeprefix(_RANK): judge(
            ranked[column].to_numpy(dtype=int), N_RANKS, each, failed=unsound
        )
        for column in columns
    }
    return judged, ranked


def _rank_table(judged: Mapping[str, Uniformity]) -> pd.DataFrame:
    columns = ["n", "mean", "spread", "p_ecdf", "p_squares", "p", "verdict"]
    rows = [{**vars(one), "verdict": one.verdict.word} for one in judged.values()]
    return pd.DataFrame(rows, index=pd.Index(list(judged), name="quantity"), columns=columns)


def _noticed_table(n: int, level: float) -> pd.DataFrame:
    """Return a row that says what so many ranks notice; none without ranks."""
    if n == 0:
        return pd.DataFrame()
    narrow, wide, shift = noticeable(n, N_RANKS, level)
    row = {"needed": least_replicates(N_RANKS, level), "level": level}
    row |= {"narrow": narrow, "wide": wide, "shift": shift}
    return pd.DataFrame([row], index=pd.Index([n], name="ranks"))
