"""The standing audit: what tests, intervals and verdicts do to players whose truth is known.

    python docs/conclusions.py                # all rows that are missing: hours, a row at a time
    python docs/conclusions.py optimism_bias --replicates 40 --out FILE.csv
    python docs/conclusions.py --check        # exit code 1 if a row fails that is not declared

Each task has one conclusion at one size: a measure of one agent with so many sessions or of so many
participants, a stopping rule, a verdict of `calibrate`, the tests of a paper's page. Its rows are
players without the effect and with it. They go to a CSV with date, version and command, from which
`score` and the pages say how often a test errs and what it finds. Rows that are there are kept;
`--again` computes them anew.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import knownminds
from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference import MEASURES, Analysis, StoppingRule
from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.magnitudes.cue_combination import CuePairs
from knownminds.inference.magnitudes.magnitude_answers import TaskAnswers
from knownminds.validation.benchmarks import magnitude_frames
from knownminds.validation.benchmarks.claims import (
    ABOVE,
    BELOW,
    FAILS,
    HOLDS,
    NONE,
    UNTOLD,
    Claim,
    effect_of,
    verdict_of,
)
from knownminds.validation.benchmarks.comparison import WHICH
from knownminds.validation.benchmarks.magnitudes import prepare
from knownminds.validation.benchmarks.measures import measures
from knownminds.validation.benchmarks.paper import About, Answers, scores_in
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import plan_of
from knownminds.validation.calibration.rank_uniformity import is_clear, judge, looks
from knownminds.validation.data.audited import STORED
from knownminds.validation.diagnosis.coherence_tests import (
    GAIN,
    INDEPENDENCE,
    coherence_tests,
    findings,
)
from knownminds.validation.engine.arguments import set_to
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.members import register
from knownminds.validation.engine.parts import flat
from knownminds.validation.engine.question import Running
from knownminds.validation.engine.scores import mean, share
from knownminds.validation.magnitudes.combiners import BETTER, FOREST, LINE, compare_combiners
from knownminds.validation.power.audit import usual_effects
from knownminds.validation.power.sequential import stopped
from knownminds.validation.power.wordings import limit_over_wordings
from knownminds.validation.referee.predictions import predict_batch, predicted, prediction_study

SESSIONS = (5, 10, 20, 40)  # of one agent
PARTICIPANTS = (10, 30, 100)  # with a session each
LOOKS = (30, 60)  # the last look of a stopping rule
REPLICATES = 400
MOST_ALARMS, LEAST_COVERAGE, ERRORS = 0.07, 0.90, 3.0  # what fails, beyond so many errors
# All sizes and effects of a conclusion together are known better: an interval that is 15% too
# narrow covers .904 for ever, and its rows alone never fail.
POOLED_ALARMS, POOLED_COVERAGE = 0.06, 0.93
CONTEXTS = {20: 2, 40: 2, 60: 2, 200: 5}  # of `diagnosis`, with the rounds of questions
# Deciders who peek at the state by so much, and who report and decide with more noise.
DELTAS, NOISY = (0.0, 0.2, 0.4, 0.8), {"s_between": 0.6, "s_report": 0.15}
PEEKER = {
    "u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0, "d": 1.0,
    "s_between": 0.2, "s_report": 0.05,
}  # fmt: skip
# Observers who weigh priors by so much more than likelihoods, and models whose score rises by so
# many standard deviations with a feature; half of the largest is the smallest that counts.
CLAIMED = {"participant": (0.0, 0.1, 0.2, 0.4), "model": (0.0, 0.23, 0.46)}
OBSERVERS, SPREAD, PROBLEMS = (1, 3, 10), 0.2, 50  # participants, their sd, sessions of each
GROWING = "calibrate --clear 0.85"
PLAYERS = ("inverse variances", "line", "the larger", "by turns")  # who answer to both
WIDTHS = (1.0, 0.85, 0.7)  # of a posterior, relative to the right one
RANKS = 99
KEY = ["conclusion", "unit", "units"]
# What can go wrong with the numbers of one task; the others go on.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Task = tuple[str, str, int]  # conclusion, unit and units, as in KEY


def tasks(names: Sequence[str]) -> Iterator[Task]:
    """Go through all tasks, or through those of some conclusions, the small sizes first."""
    every = [
        *((name, unit, n) for unit, sizes in (("session", SESSIONS), ("subject", PARTICIPANTS))
          for n in sizes for name, measure in MEASURES.items()
          if unit == "subject" or np.isfinite(measure.null)),
        *((f"stopping rule: {kind}", "subject", n) for n in LOOKS for kind in RULES),
        *(("calibrate", "replicate", n) for n in (100, 200)),
        (GROWING, "replicate", 50),
        *(("diagnosis", "context", n) for n in CONTEXTS),
        *(("verdict of referee: predictions", "subject", n) for n in (20, 100)),
        *(("verdict of score: which differs", "session", n) for n in (5, 20)),
        ("verdict of fit: rivals", "subject", 10),
        ("verdict of confuse: recovery", "replicate", 200),
        ("verdict of fit: checks", "subject", 12),
        *(("claims", "participant", n) for n in OBSERVERS),
        ("claims", "model", 35),
        ("claims of one participant: magnitudes", "item", 99),
        *(("combiners", "item", n) for n in (99, 297)),
        *(("power: test over wordings", "wording", n) for n in (2, 4, 20)),
        *(("observer over cells", "trial", n) for n in (12, 99)),
    ]  # fmt: skip
    return (task for task in every if not names or task[0] in names)


def computed(task: Task, replicates: int, seed: int) -> pd.DataFrame:
    """Return the rows of a task; one row with the reason if there are none."""
    began = perf_counter()
    conclusion, unit, units = task
    of_unit = {"replicate": _of_ranks, "context": _of_coherence, "participant": _of_claims,
               "model": _of_claims, "item": _of_combiners,
               "wording": _of_wordings, "trial": _of_observer}  # fmt: skip
    work = VERDICTS.get(conclusion) or of_unit.get(
        unit, _of_rule if ":" in conclusion else _of_measure
    )
    try:
        rows = work(conclusion, unit, units, replicates, seed)
    except FAILURES as error:
        rows = pd.DataFrame({"players": ["none"], "reason": [" ".join(str(error).split())]})
    for name, value in zip(reversed(KEY), reversed(task), strict=True):
        rows.insert(0, name, value)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    command = f"python docs/conclusions.py '{conclusion}' --replicates {replicates} --seed {seed}"
    seconds = round(perf_counter() - began, 1)
    return flat(rows).assign(
        data_sets=replicates, seconds=seconds, command=command, date=date,
        version=knownminds.__version__,
    )  # fmt: skip


def _of_measure(name: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Audit a measure in its usual experiment: of participants, or of one agent's sessions."""
    asked: dict[str, Any] = {"replicates": replicates, "seed": seed, "workers": 1}
    if unit == "subject":
        study = knownminds.audit(name, subjects=units, **asked)
        tables, failed = [study["Operating characteristics"].reset_index()], study.failed
    else:
        measure = MEASURES[name]
        place = set_to(make(measure.environments[0]), measure.settings)
        sizes = [size for size in (measure.null, *usual_effects(measure)) if np.isfinite(size)]
        studies = [
            knownminds.power(
                place, {name: size}, model=measure.violator, subjects=[1], sessions=[units], **asked
            )
            for size in sizes
        ]
        tables = [study["Designs"].reset_index() for study in studies]
        failed = sum(study.failed for study in studies)
    table = pd.concat(tables, ignore_index=True)
    null = MEASURES[name].null
    table["effect"] = table["effect"].astype(float).fillna(null)
    share_of = "rejected" if "rejected" in table else "power"
    rows = table[["effect", "trials", "bias"]].assign(
        players=np.where(table["effect"] == null, "without", "with"), failed=failed,
        rejected=table[share_of], coverage=table["95% covers"],
    )  # fmt: skip
    return rows.assign(kind=table["subjects"]) if unit == "subject" else rows


RULES: dict[str, dict[str, Any]] = {
    "e_process": {},
    "obrien_fleming": {"kind": "alpha_spending", "spending": "obrien_fleming"},
    "pocock": {"kind": "alpha_spending", "spending": "pocock"},
}


def _of_rule(name: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Look at normal values, an e-process after each from the fifth on, the others four times."""
    kind = name.partition(": ")[2]
    quarters = tuple(round(units * k / 4) for k in (1, 2, 3, 4))
    looks = tuple(range(5, units + 1)) if kind == "e_process" else quarters
    rule = StoppingRule(**{"kind": "e_process", "looks": looks, **RULES[kind]})
    analysis = Analysis(MEASURES["optimism_bias"], "each", unit, "paired", stop=rule)
    rows = []
    for size in (0.0, 0.5, 0.8):  # in standard deviations of a unit
        rng = np.random.default_rng((seed, units))
        # Scaled, for the bounds of the measure; a paired difference has none of these.
        values = size + rng.standard_normal((10 * replicates, units))
        still = np.zeros_like(values)

        def tests_of(n: int, values: Any = values, still: Any = still) -> Any:
            return analysis.tests([still[:, :n], values[:, :n]])

        frame = stopped(analysis, tests_of, np.full(len(values), size))
        held = (frame["low"] <= size) & (size <= frame["high"])
        rows.append(
            {
                "players": "with" if size else "without", "effect": size,
                "rejected": share(int((frame["found"] == 1).sum()), len(frame)),
                "bias": mean(frame["estimate"] - size),
                "coverage": share(int(held.sum()), len(held)),
                "average_units": mean(frame["units"]),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _of_ranks(name: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Judge ranks of normal posteriors of the right width, too narrow and too wide.

    Those of a study that goes on until it is clear are looked at again and again.
    """
    seen = tuple(looks(units, 1600)) if name == GROWING else ((units, 1.0),)
    rows = []
    for width in (*WIDTHS, *(1 / one for one in WIDTHS[1:])):
        rng = np.random.default_rng((seed, units))
        found, took = 0, np.zeros(replicates)
        for j in range(replicates):
            draws = width * rng.standard_normal((RANKS, seen[-1][0]))
            ranks = (draws < rng.standard_normal(seen[-1][0])).sum(axis=0)
            for n, part in seen:
                level = 0.05 * part
                word = judge(ranks[:n], RANKS, level).verdict.word
                if is_clear([word], n, RANKS, level, 0.85):
                    break
            found += word not in ("calibrated", "not judged")
            took[j] = n
        rows.append(
            {
                "players": "without" if width == 1 else "with", "effect": width,
                "rejected": share(found, replicates), "average_units": mean(took),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _of_coherence(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Test deciders for coherence whose decisions know of the state what they do not say.

    Beyond peeking nothing is wrong with them, so that the other tests err where they reject.
    """
    place = make("diagnosis", network="heart", n_contexts=units, repeats=CONTEXTS[units])
    model = AGENTS["outcome_peeker"]
    rows = []
    for delta, more in (*((delta, {}) for delta in DELTAS), (0.0, NOISY)):
        theta = {**PEEKER, **more, "delta": delta}
        each = [[theta[name] for name in model.parameters.names]] * replicates
        trials = simulate(model, each, place, seed=seed).frame
        read = BeliefDecisions.read(trials.assign(participant=trials["subject"]), by="participant")
        found = pd.concat(
            [
                findings(coherence_tests(one, "gradient_boosting", 200, 200, seed).assign(who=who),
                         ["who"])
                for who, one in read.with_evidence(place).each()
            ]
        )  # fmt: skip
        for test, some in found.groupby("test", sort=False):
            peeks = delta > 0 and test in (INDEPENDENCE, GAIN)
            rows.append(
                {
                    "players": "with" if peeks else "without", "effect": delta, "kind": test,
                    "noise": "more" if more else "", "trials": CONTEXTS[units],
                    "rejected": share(int(some["rejects"].sum()), len(some)),
                    "failed": replicates - len(some),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def _share_of(players: str, effect: float, found: Sequence[bool | None]) -> dict[str, Any]:
    """Return a row: how often a verdict was given, where there was one."""
    told = [one for one in found if one is not None]
    return {"players": players, "effect": effect, "failed": len(found) - len(told),
            "rejected": share(sum(told), len(told))}  # fmt: skip


def _of_predictions(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Ask the referee what a model predicts that a copy of it does not, and that no learner does.

    The effect is 0 for the copy, and 1 for the responder.
    """
    place, rows = make("instrumental_learning"), []
    for effect, rival in ((0.0, _copy("rescorla_wagner")), (1.0, "random_responder")):
        words = []
        for k in range(replicates):
            study = prediction_study(place, "rescorla_wagner", [rival], units, 1000 * seed + k)
            result = run(study, predict_batch, predicted, Running(workers=1))
            word = result.verdicts[rival].word
            words.append(None if word == "not judged" else word == "differs")
        rows.append(_share_of("with" if effect else "without", effect, words))
    return pd.DataFrame(rows)


def _copy(name: str) -> str:
    """Register a model anew, under the name "copy_of_..."; return that."""
    other = f"copy_of_{name}"
    if other not in AGENTS:
        register(type(other.title().replace("_", ""), (AGENTS[name],), {"name": other}))
    return other


def _of_differences(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Ask `score` which of two observers is above the other on any of its scores.

    The second one weighs likelihoods more by the effect. Holm's correction is over all scores.
    """
    place, model, rows = (
        make("probabilistic_reasoning", n_problems=20),
        AGENTS["weighted_bayes"],
        [],
    )
    names = list(model.parameters.names)
    for effect in (0.0, 0.1, 0.3):
        found = []
        for k in range(replicates):
            frames = []
            for j, more in enumerate((0.0, effect)):
                values = {"b_prior": 0.8, "b_likelihood": 0.8 + more, "sigma": 0.3}
                theta = [[values.get(name, 0.0) for name in names]] * units
                frame = simulate(model, theta, place, seed=seed + 2 * k, address=(j,)).frame
                frames.append(frame.assign(session=frame["subject"], subject=f"observer {j}"))
            table = _which(knownminds.score(pd.concat(frames, ignore_index=True), by="subject"))
            above = [] if table is None else list(table["who is above"])
            found.append(None if not above else any(one.startswith("observer") for one in above))
        rows.append(_share_of("with" if effect else "without", effect, found))
    return pd.DataFrame(rows)


def _which(result: Any) -> pd.DataFrame | None:
    """Return the table of a score that says who is above whom."""
    return next((one for name, one in result.tables.items() if name.startswith(WHICH)), None)


def _of_rivals(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Ask `fit --against` which of two models is clearly ahead, of subjects of the simpler one.

    Without an effect: how often the richer, wrong one is. Twenty data sets, since each takes long.
    """
    true, rich = "rescorla_wagner", "rescorla_wagner_dual"
    model, words = AGENTS[true], []
    for k in range(min(replicates, 20)):
        rng = np.random.default_rng((seed, k))
        z = model.parameters.mean + model.parameters.sd * rng.standard_normal(
            (units, len(model.parameters))
        )
        trials = simulate(model, model.parameters.constrain(z), make("instrumental_learning"),
                          seed=seed + k)  # fmt: skip
        fitted = knownminds.fit(trials, model=true, against=[rich], seed=seed, workers=1)
        word, why = fitted.verdicts["models"].word, " ".join(fitted.verdicts["models"].reasons)
        words.append(word if word != "a clear difference" else
                     rich if f"elpd of {rich} " in why else true)  # fmt: skip
    return pd.DataFrame([_share_of("without", 0.0, [word == rich for word in words]),
                         _share_of("with", 1.0, [word == true for word in words])])  # fmt: skip


def _of_recovery(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Ask `confuse` whether models are told apart: of a copy, and of a responder (effect 1)."""
    rows, true = [], "rescorla_wagner"
    for effect, rival in ((0.0, _copy(true)), (1.0, "random_responder")):
        found = []
        for k in range(min(replicates, 50)):
            study = knownminds.confuse(
                "instrumental_learning", [true, rival], replicates=units, criteria=["bic"],
                seed=1000 * seed + k, workers=1,
            )  # fmt: skip
            found.append(all(verdict.tone == "good" for verdict in study.verdicts.values()))
        rows.append(_share_of("with" if effect else "without", effect, found))
    return pd.DataFrame(rows)


# Observers by variant of a cell: those who are the same in all, and one whose effects are large.
ESTIMATORS: dict[str, dict[str, tuple[str, dict[str, float]]]] = {
    "line": {"*": ("linear_observer", {"w": 0.9, "b": 0.05, "sigma": 0.05})},
    "static": {"*": ("static_bayes_observer", {"w_prior": 0.4, "sigma": 0.05})},
    "Kalman": {"*": ("kalman_observer", {"q_over_r": 0.1, "p0_over_r": 0.5, "sigma": 0.05})},
    "effects": {
        "text": ("linear_observer", {"w": 1.0, "b": 0.0, "sigma": 0.1}),
        "image": ("static_bayes_observer", {"w_prior": 0.5, "sigma": 0.05}),
        "base": ("kalman_observer", {"q_over_r": 0.3, "p0_over_r": 0.5, "sigma": 0.05}),
        "numeric": ("linear_observer", {"w": 1.0, "b": 0.0, "sigma": 0.05}),
        "numeric_biased": ("linear_observer", {"w": 0.9, "b": 0.15, "sigma": 0.05}),
    },
}  # fmt: skip
WINDOW_MEANS = {"mu_short": 0.3, "mu_medium": 0.5, "mu_long": 0.7}


def _of_magnitudes(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Judge claims on estimates of one participant, each replicate one, with errors of its own.

    The effect is 0 of those who are the same in all cells, where "holds" errs, and the mean over
    replicates of the one who has effects; where it is beyond the smallest that counts, "does not
    hold" errs.
    """
    plan = read_plan("magnitudes")
    claims = [c for c in plan.claims if "mean" in c.of and c.minus]
    cells = [c for c in plan.cells if c.variant in ESTIMATORS["effects"] and c.name != "duration"]
    rows = []
    for player, plays in ESTIMATORS.items():
        parts = []
        for number, cell in enumerate(cells):
            name, values = plays.get(cell.variant) or plays["*"]
            theta = [(values | WINDOW_MEANS)[p] for p in AGENTS[name].parameters.names]
            frame = simulate(AGENTS[name], [theta] * replicates, cell.environment, seed=seed,
                             address=(number,)).frame  # fmt: skip
            named = {"participant": frame["subject"].astype(str), "cell": cell.name}
            parts.append(frame.assign(**named))
        trials = pd.concat(parts, ignore_index=True)
        about = About({}, tuple(trials["participant"].unique()))
        scores = scores_in([magnitude_frames.means(Answers(prepare(trials, about), about))])
        for claim in claims:
            told = [effect_of(claim, scores, [who]) for who in about.participants]
            words = [verdict_of(claim, one) for one in told]
            known = [one for one in told if np.isfinite(one.low)]
            truth = 0.0 if "*" in plays else float(np.mean([one.value for one in told]))
            held = sum(one.low <= truth <= one.high for one in known)
            counts = truth * (-1 if claim.direction == BELOW else 1) >= claim.least
            for word in (HOLDS, FAILS, UNTOLD):
                errs = word == FAILS if counts else word == HOLDS and not truth
                rows.append({
                    "players": "without" if errs else "with", "effect": round(truth, 3),
                    "kind": f"{player}, {claim.name}: {word}",
                    "rejected": share(words.count(word), len(words)), "failed": words.count(""),
                    **({"coverage": share(held, len(known))} if word == HOLDS else {}),
                })  # fmt: skip
    return pd.DataFrame(rows)


def _of_checks(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Ask whether a fit of `rescorla_wagner` reproduces what people do, in any panel.

    Without an effect they are such learners; with it they forget half of what they do not choose.
    """
    place, rows = make("instrumental_learning"), []
    for effect, name in ((0.0, "rescorla_wagner"), (0.5, "forgetting_learner")):
        names = list((model := AGENTS[name]).parameters.names)
        found = []
        for k in range(replicates):
            theta = model.parameters.draw(np.random.default_rng((seed, k)), units)
            if effect:
                theta[:, names.index("phi")] = effect
            trials = simulate(model, theta, place, seed=1000 * seed + k)
            fit = knownminds.fit(trials, "rescorla_wagner", workers=1)
            found.append("not reproduced" in {one.word for one in fit.verdicts.values()})
        rows.append(_share_of("with" if effect else "without", effect, found))
    return pd.DataFrame(rows)


VERDICTS = {
    "verdict of referee: predictions": _of_predictions,
    "verdict of score: which differs": _of_differences,
    "verdict of fit: rivals": _of_rivals,
    "verdict of confuse: recovery": _of_recovery,
    "verdict of fit: checks": _of_checks,
    "claims of one participant: magnitudes": _of_magnitudes,
}


def _of_claims(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Judge claims of scores whose truth is known: a mean over participants, and a coefficient.

    "holds" errs where there is no effect; "does not hold" errs from the smallest effect that counts
    on (the claim of none the other way round). "cannot be told" errs never and finds nothing.
    """
    rows = []
    features = pd.read_csv(plan_of("cogbench").with_name("cogbench_features.csv"))
    effects = CLAIMED[unit]
    least = effects[-1] / 2
    for effect in effects:
        rng = np.random.default_rng((seed, units, int(100 * effect)))
        if unit == "participant":
            scores = _weights(effect, units, replicates, rng)
            more: dict[str, Any] = {"minus": "likelihood_weighting"}
        else:
            scores = pd.concat([_featured(effect, features, rng, k) for k in range(replicates)])
            more = {"on": "rlhf"}
        for direction in (ABOVE, NONE):
            claim = Claim("c", "", HOLDS, "", "prior_weighting", direction, least=least, **more)
            words = []
            for _, some in scores.groupby("data_set"):
                known = features if unit == "model" else None
                who = list(some["participant"].unique())
                words.append(verdict_of(claim, effect_of(claim, some, who, (), known)))
            true = effect == 0 if direction == NONE else effect >= least
            false = effect >= least if direction == NONE else effect == 0
            for word, errs in ((HOLDS, false), (FAILS, true), (UNTOLD, False)):
                rows.append({
                    "players": "without" if errs else "with", "effect": effect,
                    "kind": f"{direction}: {word}",
                    "rejected": share(words.count(word), len(words)), "failed": words.count(""),
                })  # fmt: skip
    return pd.DataFrame(rows)


def _of_combiners(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Compare combiners of players who combine in a line, by a rule of their own, or by turns.

    That a forest foretells better errs of who combines in a line, and against Bayes of who has the
    weights of inverse variances.
    """
    rows, n = [], units // 3
    value = np.tile(np.linspace(0.1, 0.9, n), 3)
    for player in PLAYERS:
        words: dict[tuple[str, str], list[str]] = {}
        for k in range(replicates):
            rng = np.random.default_rng((seed, units, PLAYERS.index(player), k))
            text, image = (value + s * rng.standard_normal(3 * n) for s in (0.03, 0.06))
            said = {
                "inverse variances": 0.5 * text + 0.5 * image,  # of the answers, not their errors
                "line": 0.9 * text + 0.1 * image,
                "the larger": np.maximum(text, image),
                "by turns": np.where(value < 0.5, text, image),
            }[player] + 0.01 * rng.standard_normal(3 * n)
            zero, one = np.zeros(3 * n), np.ones(3 * n)
            answers = TaskAnswers(value, said, 0.5 * one, zero.astype(int), zero.astype(int),
                                  np.arange(3 * n), np.arange(3 * n), zero, 1.0, 1.0,
                                  np.ones((1, 3 * n)))  # fmt: skip
            found = compare_combiners(CuePairs(answers, text, image, "items", 0), k)
            for row in found.to_dict("records"):
                words.setdefault((row["one"], row["other"]), []).append(row["verdict"])
        for (first, second), said_ in words.items():
            for word in (f"{first} {BETTER}", f"{second} {BETTER}"):
                of_line = player in PLAYERS[:2]
                beaten = player == PLAYERS[0] or second == LINE  # Bayes has other weights there
                errs = word.startswith(FOREST) and of_line and beaten
                rows.append({
                    "players": "without" if errs else "with", "effect": float(not of_line),
                    "kind": f"{player}: {first} and {second}, {word}",
                    "rejected": share(said_.count(word), len(said_)),
                })  # fmt: skip
    return pd.DataFrame(rows)


def _of_wordings(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Test the mean of normal tables of wordings and sessions, with 40 scores in all.

    The effect is in standard errors of the mean; kinds are deviations of wording, session and rest.
    """
    rows, s = [], 40 // units
    for k, parts in enumerate(((0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 0.1), (0.3, 0.3, 1))):
        error = float(np.sqrt(parts[0] ** 2 / units + parts[1] ** 2 / s + parts[2] ** 2 / 40))
        for effect in (0.0, 4.0):
            rng, found, held = np.random.default_rng((seed, units, k, int(effect))), 0, 0
            for _ in range(10 * replicates):
                sizes = (units, 1), (1, s), (units, s)
                scores = sum(one * rng.standard_normal(size)
                             for one, size in zip(parts, sizes, strict=True))  # fmt: skip
                mean_of, limit = float(np.mean(scores)), limit_over_wordings(np.asarray(scores))
                found += abs(mean_of + effect * error) > limit
                held += abs(mean_of) <= limit
            rows.append({
                "players": "with" if effect else "without", "effect": effect,
                "kind": ", ".join(map(str, parts)), "rejected": share(found, 10 * replicates),
                "coverage": share(held, 10 * replicates),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _of_observer(_: str, unit: str, units: int, replicates: int, seed: int) -> pd.DataFrame:
    """Let observers play all cells of the benchmark, and ask whether one observer describes them.

    Without an effect are those of the family for its misfit, and those of a nested observer for the
    test of that; with one, an observer that never adapts, and one with all parameters free.
    """
    result = knownminds.audit("observer", trials=units, replicates=replicates, seed=seed, workers=1)
    rows = []
    for row in result["Tests of nested observers"].reset_index().to_dict("records"):
        of = row["observer"]
        told = {"misfit": row["misfit"]} if of == "never adapts" else {
            kind: row[kind] for kind in row
            if kind == "misfit" or (kind not in ("observer", "trials") and of in (kind, "any"))
        }  # fmt: skip
        for kind, rejected in told.items():
            effect = of == "never adapts" or (of == "any" and kind != "misfit")
            rows.append({"players": "with" if effect else "without", "effect": float(effect),
                         "kind": f"{of}: {kind}", "rejected": rejected})  # fmt: skip
    return pd.DataFrame(rows)


def _weights(effect: float, n: int, replicates: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the weights of priors and likelihoods that are measured of observers who play."""
    place, model = make("probabilistic_reasoning"), AGENTS["weighted_bayes"]
    names, spread = list(model.parameters.names), 0.0 if n == 1 else SPREAD
    each = np.zeros((n * replicates, len(names)))
    gap = rng.normal(effect, spread, n * replicates)
    for name, value in (("b_prior", 0.8 + gap / 2), ("b_likelihood", 0.8 - gap / 2),
                        ("sigma", 0.3)):  # fmt: skip
        each[:, names.index(name)] = value
    whole = np.repeat(each, PROBLEMS, axis=0)
    trials = simulate(model, whole, place, seed=int(rng.integers(2**31))).frame
    number = trials["subject"].astype(int) // PROBLEMS
    trials = trials.assign(participant=number.astype(str), session=trials["subject"],
                           subject="0", cell=place.name, variant="base")  # fmt: skip
    who = tuple(trials["participant"].unique())
    about = About({place.name: place}, who)
    rows = measures(Answers(trials, about), "prior_weighting", "likelihood_weighting")
    return rows.assign(data_set=rows["participant"].astype(int) // n)


def _featured(
    effect: float, features: pd.DataFrame, rng: np.random.Generator, number: int
) -> pd.DataFrame:
    """Return normal scores of the 35 models that rise with one feature and share base models."""
    rise = effect * features["rlhf"] / features["rlhf"].std()
    base, index = np.unique(features["base_model"], return_inverse=True)
    left = np.sqrt(1 - effect**2)
    noise = left * (0.5 * rng.standard_normal(len(base))[index]
                    + np.sqrt(0.75) * rng.standard_normal(len(features)))  # fmt: skip
    none = {"standard_error": np.nan, "freedom": np.nan, "influence": None}
    return pd.DataFrame({"participant": features["participant"], "score": "prior_weighting",
                         "value": rise + noise, "data_set": number, **none})  # fmt: skip


def failing(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that err more often than a page may say without a declaration.

    The last ones are of a conclusion as a whole: all of its sizes and effects together.
    """
    rows = table.reindex(columns=[*table, *({"coverage", "coverage_error"} - {*table})])
    groups = rows.groupby([*KEY[:2], "players"], sort=False)
    whole = pd.DataFrame([{**dict(zip([*KEY[:2], "players"], key, strict=True)), "kind": "all",
                           **_pooled(some)} for key, some in groups])  # fmt: skip
    wrong = [
        _wrong(rows, MOST_ALARMS, LEAST_COVERAGE), _wrong(whole, POOLED_ALARMS, POOLED_COVERAGE),
    ]  # fmt: skip
    found = pd.concat([one for one in wrong if len(one)] or [rows[:0]], ignore_index=True)
    return found[~found["conclusion"].isin(list(DECLARED))]


def _wrong(rows: pd.DataFrame, alarms: float, coverage: float) -> pd.DataFrame:
    """Return the rows beyond the limits by more than their errors."""
    false = rows["rejected"] - ERRORS * rows["rejected_error"] > alarms
    short = rows["coverage"] + ERRORS * rows["coverage_error"] < coverage
    return rows[(rows["players"].eq("without") & false) | short]


def _pooled(rows: pd.DataFrame) -> dict[str, float]:
    """Return the shares of several rows, with the errors of their mean.

    False alarms of one task may be of the same data, as those of several tests are. So their errors
    are added as if they went together: where they do, and are taken as independent, the audit fires
    in .087 of faultless tables.
    """
    pooled = {}
    for name in ("rejected", "coverage"):
        known = rows[rows[name].notna()]
        errors = known[f"{name}_error"].astype(float)
        if name == "rejected":
            errors = errors.groupby(known["units"]).sum()
        pooled[name] = float(known[name].astype(float).mean()) if len(known) else np.nan
        pooled[f"{name}_error"] = float(np.sqrt((errors**2).sum()) / max(len(known), 1))
    return pooled


# Conclusions that err more often, each with the sentence that the page of it has.
DECLARED: dict[str, str] = {}


def main() -> int:
    """Compute what is missing, write it row by row, and say what fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="conclusions; all if none")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--minutes", type=float, default=240.0, help="after which none is begun")
    parser.add_argument("--again", action="store_true", help="compute rows that are there as well")
    parser.add_argument("--check", action="store_true", help="compute nothing")
    parser.add_argument("--out", type=Path, default=STORED, help="the CSV file")
    given = parser.parse_args()
    table = pd.read_csv(given.out) if given.out.is_file() else pd.DataFrame(columns=KEY)
    there = set() if given.again else set(table[KEY].itertuples(index=False, name=None))
    todo = [task for task in tasks(given.names) if task not in there and not given.check]
    began = perf_counter()

    def begun() -> Iterator[Any]:
        for task in todo:
            if perf_counter() - began > 60 * given.minutes:
                return
            yield delayed(computed)(task, given.replicates, given.seed)

    parallel = Parallel(n_jobs=given.workers, batch_size=1, return_as="generator_unordered",
                        pre_dispatch="n_jobs")  # fmt: skip
    for rows in parallel(begun()) if todo else ():
        task = tuple(rows[KEY].iloc[0])
        others = [tuple(row) != task for row in table[KEY].itertuples(index=False)]
        table = pd.concat([table[others], rows], ignore_index=True)
        table.to_csv(given.out, index=False, float_format="%.4g", lineterminator="\n")
        print(*task, f"{rows['seconds'].iloc[0]:.0f} s", flush=True)
    wrong = failing(table) if len(table) else table
    told = [*KEY, "players", "effect", "kind", "rejected", "coverage"]
    print(wrong.reindex(columns=told).to_string() if len(wrong) else "as said")
    return int(len(wrong) > 0)


if __name__ == "__main__":
    sys.exit(main())
