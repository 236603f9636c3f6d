"""What to buy next: more sessions or more wordings, projected from a run in a few wordings.

A score of one language model with wording j in design i varies as y = mu + W_j + D_i + E_ij, since
sessions of one number have the same design in all wordings. Its mean over w wordings with s
sessions each has the variance W/w + D/s + E/(w s). More sessions shrink the second and third part;
the first one shrinks with more wordings alone. Components are those of the two-way table without
replication (Searle, Casella and McCulloch 1992, chapter 4).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import ANSWERED, Environment, Trials
from knownminds.inference import Estimate, Measure
from knownminds.llm_adapters.runs.ledger import has_run
from knownminds.validation.costs.wordings import wordings_of
from knownminds.validation.data.trials_of_runs import read_one, runs_in
from knownminds.validation.engine.arguments import (
    changed_settings,
    check_count,
    check_dollars,
    check_seed,
    resolve_environment,
    several,
)
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import Verdict

from .dials import resolve_measure
from .pilot import WORDS
from .questions import Power

DRAWS = 400  # of the components' generalised intervals
NEAR = 0.02  # designs whose power differs by less are as good: three errors of a power
TESTS = 8000  # of a design: the error of a power is .006 at most
INSIDE = (0.1, 0.9)  # of them, on either side of a projected power
ALIKE = 1e-20  # of the largest mean square
LEAST = 20  # pairs of which a share is said
SAME = 0.99  # of repeated prompts answered alike: further sessions of them tell next to nothing
NOTES = (
    "A design has so many wordings, each with so many sessions; sessions of one number have the "
    "same design in all wordings. power: of the test over wordings and sessions at 5%, which "
    "speaks of wordings like these, at the components' estimates; low, high: the middle 80% over "
    "the components that the pilot leaves possible. errs: in which share the test rejects where "
    "the mean over wordings has no effect. With a single wording the test is over sessions and "
    "speaks of this wording alone, so that it errs often. best: no design of several wordings has "
    "more power (without an effect: less width) for as much or less.",
    "Variance: of a score with one wording in one session. wording: more sessions do not shrink "
    "it; session: shared by all wordings of a design; rest: what is left.",
)


@dataclass(frozen=True)
class Components:
    """Variances of a score: between wordings, between sessions, and what is left; [draws] or [].

    Parameters
    ----------
    wording, session, rest : Squared units of the measure, 0 or more.
    """

    wording: Array
    session: Array
    rest: Array

    def error(self, w: int, s: int) -> Array:
        """Return the standard error of the mean of w wordings with s sessions each."""
        parts = self.wording / w + self.session / s + self.rest / (w * s)
        return np.asarray(np.sqrt(parts))

    def expected_squares(self, w: int, s: int) -> tuple[Array, Array, Array]:
        """Return the expected mean squares of wordings, sessions and the rest."""
        return s * self.wording + self.rest, w * self.session + self.rest, self.rest


@dataclass(frozen=True)
class WordingPilot:
    """A measure in a few wordings of the same sessions.

    Parameters
    ----------
    names : Of the wordings.
    scores : What each session says of the measure, [wordings, sessions]: its mean over sessions is
        the measure's value in a wording, and its error is the measure's.
    left_out : Sessions that lack a wording.
    repeats, alike : Prompts that were given twice in a wording, in pairs of sessions, and how many
        of these pairs have the same answer.
    """

    names: tuple[str, ...]
    scores: Array
    left_out: int
    repeats: int
    alike: int

    @classmethod
    def read(
        cls, folder: str | os.PathLike[str], measure: Measure, environment: Environment
    ) -> WordingPilot:
        """Read the measure off a run in several wordings.

        Raises
        ------
        ValueError : If the run is of another experiment, of several subjects, has one wording or a
            single session, or the measure has no value in a wording.
        """
        return cls.of(read_one(os.fspath(folder), None)[1], measure, environment, str(folder))

    @classmethod
    def of(
        cls, trials: Trials, measure: Measure, environment: Environment, folder: str
    ) -> WordingPilot:
        """Read the measure off trials in several wordings, from a folder; see `read`."""
        frame = trials.frame
        rule = (
            "A pilot of wordings is a run of one language model with --paraphrases 2 or more and "
            f"two sessions of each; {folder} has"
        )
        named = set(frame["environment"].unique()) if "environment" in frame else set()
        if named and named != {environment.name}:
            raise ValueError(f"{rule} {' and '.join(sorted(map(str, named)))}, and the study "
                             f"{environment.name}.")  # fmt: skip
        _check_settings(trials, environment, folder)
        if frame["subject"].nunique() != 1:
            raise ValueError(f"{rule} {frame['subject'].nunique()} subjects.")
        names = tuple(map(str, frame["template"].unique())) if "template" in frame else ()
        if len(names) < 2:
            raise ValueError(f"{rule} {max(len(names), 1)} wording.")
        scores = {}
        for name in names:
            part = frame[frame["template"].astype(str) == name].reset_index(drop=True)
            (estimate,) = measure.of_each(Trials(part))
            scores[name] = _scores(estimate, name, rule)
        table = pd.DataFrame(scores)
        whole = table.dropna()
        if len(whole) < 2:
            raise ValueError(f"{rule} {len(whole)} that all wordings share.")
        pairs, alike = _repeats(frame)
        left = len(table) - len(whole)
        return cls(names, whole.to_numpy(dtype=float).T, left, pairs, alike)

    def components(self, seed: int = 0) -> Components:
        """Return the components, [1 + draws]: first the estimates, then draws of what is open."""
        squares, freedom = mean_squares(self.scores)
        w, s = self.scores.shape
        # What is left of equal numbers in all wordings is the error of their sums.
        of_wording, of_session, rest = (
            one if one > ALIKE * max(squares) else 0.0 for one in squares
        )
        rng = np.random.default_rng(seed)
        drawn = [
            np.append(value, value * df / rng.chisquare(df, DRAWS))
            for value, df in zip((of_wording, of_session, rest), freedom, strict=True)
        ]
        return Components(
            np.maximum(drawn[0] - drawn[2], 0.0) / s, np.maximum(drawn[1] - drawn[2], 0.0) / w,
            drawn[2],
        )  # fmt: skip


def _check_settings(trials: Trials, environment: Environment, folder: str) -> None:
    """Raise ValueError if a pilot's sessions have other settings than those of the study."""
    known, asked = trials.settings.get(environment.name, {}), environment.settings
    for name, value in known.items():
        if name != WORDS and name in asked and asked[name] != value:
            raise ValueError(
                "A pilot of wordings speaks of sessions that are like its own; those in "
                f"{folder} have {name}={json.dumps(value)}, and the study "
                f"{json.dumps(asked[name])}. Leave --set {name} out, or run another pilot."
            )


def _scores(estimate: Estimate, name: str, rule: str) -> dict[str, float]:
    """Return what each session says of an estimate: numbers with its mean and its error."""
    moved = estimate.influence
    if len(moved) < 2 or not np.isfinite(estimate.value):
        raise ValueError(
            f"{rule} no value of {estimate.measure} with an error over sessions in the wording "
            f"{name}."
        )
    scale = np.sqrt(len(moved) * (len(moved) - 1))
    return {session: estimate.value + scale * one for session, one in moved.items()}


def _repeats(frame: pd.DataFrame) -> tuple[int, int]:
    """Count pairs of equal prompts in two sessions of a wording, and those with equal answers."""
    if "prompt_hash" not in frame:
        return 0, 0
    read = frame[frame["outcome"].isin(ANSWERED) & frame["prompt_hash"].notna()]
    given = [name for name in ("action", "response") if name in read]
    prompt = [read["template"].astype(str), read["prompt_hash"]]
    of_prompt = read.groupby(prompt).size()
    of_answer = read.groupby([*prompt, *(read[name].astype(str) for name in given)]).size()
    return tuple(int((n * (n - 1) // 2).sum()) for n in (of_prompt, of_answer))  # type: ignore[return-value]


def mean_squares(scores: Array) -> tuple[tuple[float, float, float], tuple[int, int, int]]:
    """Return mean squares of wordings, sessions and the rest of a table [wordings, sessions]."""
    w, s = scores.shape
    of_wording, of_session = scores.mean(axis=1), scores.mean(axis=0)
    rest = scores - of_wording[:, None] - of_session + scores.mean()
    freedom = (w - 1, s - 1, (w - 1) * (s - 1))
    sums = s * of_wording.var() * w, w * of_session.var() * s, (rest**2).sum()
    return (
        tuple(float(one / df) if df else np.nan for one, df in zip(sums, freedom, strict=True)),
        freedom,
    )  # type: ignore[return-value]


def limit_over_wordings(scores: Array) -> float:
    """Return half the 95% interval of the mean over wordings and sessions of a table.

    A null value farther from the mean is rejected at 5%. Of a single wording the interval is over
    its sessions.

    Parameters
    ----------
    scores : [wordings, sessions].
    """
    w, s = scores.shape
    squares, freedom = mean_squares(scores)
    return float(_limit(squares, freedom, w * s))


def _limit(squares: Sequence[Any], freedom: Sequence[int], n: int) -> Array:
    """Return half the 95% interval of a mean over n scores, from mean squares and their freedom.

    The variance of the mean is (M_w + M_s - M_e) / n. Each square is multiplied by the square of
    its own t limit, so that two wordings, whose mean square is known badly, do not pass for the
    many sessions (Banerjee 1960). What the rest takes off leaves the larger one of both at least.
    Errors are at most .053 in tables of 2 x 3 to 20 x 2 with all mixes of the components, where
    Satterthwaite's degrees of freedom err in up to .12.
    """
    of_wording, of_session, rest = (np.asarray(one, dtype=float) for one in squares)
    if not freedom[0]:
        return np.asarray(_squared_t(freedom[1]) ** 0.5 * np.sqrt(of_session / n))
    t_wording, t_session = map(_squared_t, freedom[:2])
    parts = t_wording * of_wording, t_session * of_session
    whole = parts[0] + parts[1] - min(t_wording, t_session) * rest
    return np.asarray(np.sqrt(np.maximum(whole, np.maximum(*parts)) / n))


def _squared_t(freedom: int) -> float:
    return float(scipy.stats.t.ppf(0.975, freedom)) ** 2


def project(
    pilot: WordingPilot, effect: float | None, sizes: Sequence[tuple[int, int]], seed: int = 0
) -> pd.DataFrame:
    """Project power and width of designs of w wordings with s sessions each.

    Mean squares of a design are drawn from their laws given the pilot's components, and tested by
    `limit_over_wordings`.

    Parameters
    ----------
    effect : How far the mean lies from the null value; None where no power is asked for.
    sizes : Pairs of wordings and sessions of each.
    """
    drawn = pilot.components(seed)
    estimate = Components(*(one[:1] for one in vars(drawn).values()))
    rng = np.random.default_rng((seed, 1))
    rows = []
    for w, s in sizes:
        mean, limit = _tested(estimate, w, s, TESTS, rng)
        row = {"wordings": w, "sessions": s, "width": float(2 * np.median(limit))}
        row["errs"] = float((np.abs(mean) > limit).mean())
        if effect is not None:
            row["power"] = float((np.abs(mean + effect) > limit).mean())
            mean, limit = _tested(drawn, w, s, TESTS // DRAWS * 10, rng)
            shares = (np.abs(mean + effect) > limit).mean(axis=1)
            low, high = np.quantile(shares, INSIDE)
            row |= {"low": float(low), "high": float(high)}
        rows.append(row)
    return pd.DataFrame(rows)


def _tested(
    parts: Components, w: int, s: int, tests: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw means without an effect, and how far from the null value each is rejected, [K, tests].

    Mean squares are independent of the mean, and chi-square over their degrees of freedom.
    """
    mean = parts.error(w, s)[:, None] * rng.standard_normal((len(parts.rest), tests))
    freedom = (w - 1, s - 1, (w - 1) * (s - 1))
    squares = [
        expected[:, None] * (rng.chisquare(df, mean.shape) / df if df else np.nan)
        for expected, df in zip(parts.expected_squares(w, s), freedom, strict=True)
    ]
    return mean, _limit(squares, freedom, w * s)


def best_splits(table: pd.DataFrame, cost: str) -> pd.Series[Any]:
    """Say of each design whether no other has more power, or less width, for as much or less.

    A design of one wording, whose test does not speak of others, is never among them.
    """
    gain = table["power"] if "power" in table else -table["width"]
    near = NEAR if "power" in table else NEAR * table["width"].min()
    several = table["wordings"] > 1
    best = [
        bool(several[k] and not (several & (table[cost] <= table[cost][k])
                                 & (gain > gain[k] + near)).any())
        for k in table.index
    ]  # fmt: skip
    return pd.Series(best, index=table.index)


def variances(pilot: WordingPilot, seed: int = 0) -> pd.DataFrame:
    """Return each source of variance with its 95% interval and its share of a single score."""
    parts = pilot.components(seed)
    each = {"wording": parts.wording, "session": parts.session, "rest": parts.rest}
    total = sum(float(one[0]) for one in each.values())
    rows = []
    for source, values in each.items():
        low, high = np.quantile(values[1:], (0.025, 0.975))
        share = float(values[0]) / total if total > 0 else np.nan
        rows.append({"source": source, "variance": float(values[0]), "low": float(low),
                     "high": float(high), "share": share})  # fmt: skip
    return pd.DataFrame(rows).set_index("source")


def agreement(pilot: WordingPilot) -> str:
    """Say how often equal prompts had equal answers in two sessions, and what that means."""
    if not pilot.repeats:
        return "No prompt was given in two sessions: how often answers repeat cannot be said."
    share = pilot.alike / pilot.repeats
    if pilot.repeats < LEAST:
        return f"Only {pilot.repeats} pairs of sessions have the same prompt."
    text = (
        f"Of {pilot.repeats:,} pairs of sessions with the same prompt {share:.0%} have the same "
        "answer."
    )
    if share >= SAME:
        text += " Further sessions of the same prompts tell next to nothing; wordings do."
    return text


def planned(question: Power) -> Result:
    """Answer `power` with a run in several wordings as the pilot."""
    allowed = ("environment", "model", "effect", "pilot", "sessions", "wordings", "dollars", "seed",
               "tell", *vars(question.running))  # fmt: skip
    for option in fields(Power):
        given = getattr(question, option.name)
        if option.name not in allowed and given and given != option.default:
            raise ValueError(
                "From a run in several wordings designs of wordings and sessions are projected; "
                f"got --{option.name.replace('_', '-')}. Leave it out."
            )
    environment = resolve_environment(question.environment)
    check_seed(question.seed)
    ((name, size),) = (question.effect or {}).items()
    measure = resolve_measure(name, question.agent, environment)
    size = _number(name, size)
    away = size - measure.null if np.isfinite(measure.null) else None
    folder = str(question.pilot)
    pilot = WordingPilot.read(folder, measure, environment)
    paid = _dollars_of_a_session(folder)
    counts = question.wordings or range(1, len(wordings_of(environment)) + 1)
    sessions = several(question.sessions)
    for size_of, typed in (("wordings", counts), ("sessions", sessions)):
        for count in typed:
            check_count(size_of, count)
    if question.dollars is not None:
        check_dollars(question.dollars)
        if question.sessions != 1:
            raise ValueError(
                "Dollars say how many sessions there are; got --sessions as well. Leave one out."
            )
    if question.dollars is None:
        each = _usual(pilot) if question.sessions == 1 else sessions
        sizes = [(w, s) for w in counts for s in each]
    elif not paid:
        raise ValueError(
            f"What a session costs is what the run has paid; nothing was charged in {folder}. "
            "Say --sessions, and leave --dollars out."
        )
    else:
        sizes = [(w, int(question.dollars / (w * paid))) for w in counts]
    sizes = [(w, s) for w, s in sizes if s >= 2]
    if not sizes:
        raise ValueError(
            "Each wording has two sessions at least, and there are too few for that. Raise "
            "--sessions or --dollars."
        )
    table = project(pilot, away, sizes, question.seed)
    table.insert(2, "in all", table["wordings"] * table["sessions"])
    if paid:
        table.insert(3, "dollars", table["in all"] * paid)
    table["best"] = best_splits(table, "in all")
    among = table[table["best"]]
    if len(among):  # of designs that are as good the one with more wordings
        gain = among["power"] if away is not None else -among["width"] / among["width"].min()
        among = among[gain >= gain.max() - NEAR].sort_values(["in all", "wordings"])
    best = among.iloc[0] if len(among) else None
    verdicts = {}
    if best is not None:
        text = f"width of the 95% interval {best['width']:.3g}"
        if away is not None:
            text = f"power {best['power']:.2f} ({best['low']:.2f} to {best['high']:.2f}), {text}"
        split = f"{best['wordings']:.0f} wordings x {best['sessions']:.0f} sessions"
        verdicts["the best split"] = Verdict(split, (text,))
    w, s = pilot.scores.shape
    equal = np.allclose(pilot.scores, pilot.scores[0], rtol=1e-9)
    warnings = ["All wordings have the same scores in each session: no wording moves an answer, or "
                "the answers are copies."] if equal else []  # fmt: skip
    shipped = len(wordings_of(environment))
    more = f" {shipped} wordings ship; others are yours to write." * (max(counts) > shipped)
    left = f" {pilot.left_out} sessions lack a wording and are left out." if pilot.left_out else ""
    return Result(
        f"How should {environment.name} be split into wordings and sessions?",
        verdicts=verdicts,
        tables={
            "Designs": table.set_index(["wordings", "sessions"]),
            "Variance": variances(pilot, question.seed),
        },
        warnings=warnings,
        shows=("in all", "dollars", "width", "errs", "power", "low", "high", "best"),
        notes=[
            f"The pilot in {folder} has {w} wordings with {s} sessions of each.{left}{more}",
            *([] if away is not None else [f"{name} has no null value: a width, and no power."]),
            agreement(pilot), *NOTES,
        ],
        options={
            "experiment": environment.name, "wordings_from": folder, "far": {name: size},
            "seed": question.seed, "set": changed_settings(environment),
        },
        command=question.command_line(),
        versions=versions(),
    )  # fmt: skip


def _number(name: str, size: float | str) -> float:
    if isinstance(size, str):
        raise ValueError(f"An effect of wordings and sessions is a number; got {name}={size}.")
    if not np.isfinite(size):
        raise ValueError(f"The size of an effect is a number; got {name} = {size}.")
    return size


def split(
    folder: str,
    name: str,
    size: float,
    environment: Environment,
    model: type[Model],
    bought: Mapping[str, int],
    seed: int,
) -> pd.DataFrame:
    """Split the sessions that each language model's money buys into wordings and sessions.

    Parameters
    ----------
    folder : Of the pilot.
    name, size : The measure, and its size.
    bought : Sessions by language model.

    Raises
    ------
    ValueError : If the run is no pilot of wordings, or the money buys too few sessions.
    """  # fmt: skip
    size = _number(name, size)
    measure = resolve_measure(name, model, environment)
    pilot = WordingPilot.read(folder, measure, environment)
    away = size - measure.null if np.isfinite(measure.null) else None
    tables = {}
    for llm, n in bought.items():
        sizes = [(w, n // w) for w in range(1, len(wordings_of(environment)) + 1) if n // w >= 2]
        if not sizes:
            raise ValueError(f"Two sessions at least are split; the money buys {n} of {llm}.")
        table = project(pilot, away, sizes, seed)
        tables[llm] = table.assign(best=best_splits(table.assign(all=n), "all"))
    return (
        pd.concat(tables, names=["llm"])
        .droplevel(1)
        .set_index(["wordings", "sessions"], append=True)
    )


def _usual(pilot: WordingPilot) -> list[int]:
    """Return numbers of sessions around those of the pilot."""
    s = pilot.scores.shape[1]
    return [s, 2 * s, 4 * s]


def _dollars_of_a_session(folder: str) -> float:
    """Return what a session of a run has cost on average; 0 where nothing was charged."""
    from knownminds.validation.costs.observed import Observed

    runs = runs_in([folder])
    read = [Observed.read(run, 0) for run in runs if run.is_dir() and has_run(run)]
    sessions = sum(len(one.tokens) for one in read)
    return float(sum(one.dollars for one in read)) / sessions if sessions else 0.0
