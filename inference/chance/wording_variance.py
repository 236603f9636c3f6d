"""How much of what beliefs differ by is due to the question, to its wording, and to sampling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result, records
from knownminds.inference.measure import t_tests

from .revealed_belief import CONFIDENCE, RevealedBeliefs

PARTS = ("questions", "wordings", "sampling")
FEWEST_QUESTIONS = 5  # for an interval
REPLICATES = 2000
WORDING = re.compile(r", wording (\d+)$")
STREAM = 29


class Part(NamedTuple):
    """A component of variance with the ends of its interval; NaN where there is none."""

    variance: float
    low: float
    high: float


@dataclass(frozen=True)
class VarianceSplit(Result):
    """The variance of a number split into that of questions, of their wordings, and of sampling.

    Parameters
    ----------
    questions : Variance between the true means of questions over wordings.
    wordings : Variance between the wordings of a question.
    sampling : Mean variance by which a value would differ if it were sampled again.
    n_questions, n_values : Questions with two wordings at least, and their values.
    mass : Of the intervals.
    """

    questions: Part
    wordings: Part
    sampling: Part
    n_questions: int
    n_values: int
    mass: float

    def to_frame(self) -> pd.DataFrame:
        """One row per part."""
        rows = [{"part": name, **getattr(self, name)._asdict()} for name in PARTS]
        return pd.DataFrame(rows).assign(questions=self.n_questions)

    def content(self) -> Any:
        """What `to_json` holds."""
        return {
            "mass": self.mass,
            "questions": self.n_questions,
            "values": self.n_values,
            "parts": records(self.to_frame(), digits=15),
        }

    def __str__(self) -> str:
        """Each part with its interval."""
        told = (
            f"{name} {part.variance:.5f} ({part.low:.5f} to {part.high:.5f})"
            for name, part in ((name, getattr(self, name)) for name in PARTS)
        )
        return f"variance between {', '.join(told)}; {self.n_questions} questions"


def split_variance(
    value: Array,
    sampling: Array,
    *,
    mass: float = CONFIDENCE,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> VarianceSplit:
    """Split the variance of values by question and wording, whose sampling variance is known.

    With y = m + question + wording + error, the variance within a question over its W wordings has
    the mean var(wording) + the mean sampling variance s, and the mean of a question has the
    variance var(question) + (var(wording) + s) / W. Both are solved for the components, which is
    the analysis of variance of a nested design (Searle, Casella and McCulloch 1992, chapter 4) with
    a known error. Nothing is cut off at 0, which would make small components too large on average.

    Each component is a mean over questions, and its interval the studentised bootstrap of these
    (Efron and Tibshirani 1993, chapter 12): wordings count as drawn anew for each question, and
    what the wordings at hand have in common in all questions is part of theirs.

    Parameters
    ----------
    value
        [questions, wordings]; NaN where there is none. Questions with fewer than two are left out.
    sampling
        Of each value, the variance by which it would differ if it were sampled again, [questions,
        wordings]; 0 where it is exact.
    mass
        Of the intervals; there are none for fewer than 5 questions.

    Raises
    ------
    ValueError
        If the shapes differ, a variance is below 0, or `mass` is no share.
    """
    y, error = np.asarray(value, dtype=float), np.asarray(sampling, dtype=float)
    if y.ndim != 2 or y.shape != error.shape:
        raise ValueError(
            "Values and their sampling variances are by question and wording, [questions, "
            f"wordings]; got shapes {y.shape} and {error.shape}."
        )
    if not 0 < mass < 1:
        raise ValueError(f"mass is between 0 and 1; got {mass!r}.")
    if (error < 0).any():
        raise ValueError(f"Sampling variances are 0 or more; got {np.nanmin(error):g}.")
    held = np.isfinite(y) & np.isfinite(error)
    kept = held.sum(axis=1) >= 2
    y = np.where(held, y, np.nan)[kept]
    error = np.where(held, error, np.nan)[kept]
    n, many = len(y), held[kept].sum(axis=1)
    if n < 2:
        nothing = Part(*(float("nan"),) * 3)
        return VarianceSplit(nothing, nothing, nothing, n, int(many.sum()), mass)
    means, within, sampled = y.mean(axis=1, where=held[kept]), np.nanvar(y, axis=1, ddof=1), error
    noise = np.nanmean(sampled, axis=1)
    between = (means - means.mean()) ** 2 * n / (n - 1)
    asked, worded, drawn = (
        _part(term, mass, replicates, seed)
        for term in (between - within / many, within - noise, noise)
    )
    return VarianceSplit(asked, worded, drawn, n, int(many.sum()), mass)


def _part(term: Array, mass: float, replicates: int, seed: int) -> Part:
    """Return the mean of a term over questions, and its interval by the studentised bootstrap."""
    n, mean = len(term), float(term.mean())
    if n < FEWEST_QUESTIONS:
        return Part(mean, float("nan"), float("nan"))
    error = float(term.std(ddof=1) / np.sqrt(n))
    if not error > 0:
        return Part(mean, mean, mean)
    drawn = term[session_stream(seed, STREAM, n).integers(0, n, (replicates, n))]
    errors = drawn.std(axis=1, ddof=1) / np.sqrt(n)
    usable = errors > 0
    off = (drawn.mean(axis=1)[usable] - mean) / errors[usable]
    low, high = np.quantile(off, [(1 - mass) / 2, (1 + mass) / 2])
    return Part(mean, mean - float(high) * error, mean - float(low) * error)


@dataclass(frozen=True)
class WordingSplit(Result):
    """What wordings do to beliefs that were asked for in several.

    Parameters
    ----------
    parts : One row per scenario, value and part ("questions", "wordings", "sampling"): variance,
        low, high, questions. Values are "likeliest outcome", the share of the outcome that is
        likeliest in truth minus its truth; and "retained mass".
    effects : One row per scenario, value and wording: how much larger the value is in this wording
        than in the mean of all, with its t interval over questions.
    mass : Of the intervals.
    """

    parts: pd.DataFrame
    effects: pd.DataFrame
    mass: float

    def to_frame(self) -> pd.DataFrame:
        """One row per scenario, value and part."""
        return self.parts

    def content(self) -> Any:
        """What `to_json` holds."""
        return {
            "mass": self.mass,
            "parts": records(self.parts, digits=15),
            "effects": records(self.effects, digits=15),
        }

    def __str__(self) -> str:
        """Each part with its interval."""
        lines = [f"{'scenario':<14}{'value':<20}{'part':<12}{'variance':>34}{'questions':>11}"]
        for row in self.parts.to_dict("records"):
            cell = f"{row['variance']:.5f} ({row['low']:.5f} to {row['high']:.5f})"
            lines.append(
                f"{row['scenario']:<14}{row['value']:<20}{row['part']:<12}{cell:>34}"
                f"{row['questions']:>11}"
            )
        return "\n".join(lines)


def joined_wordings(several: Sequence[RevealedBeliefs]) -> RevealedBeliefs:
    """Join beliefs about the same contexts in several wordings, the first as it was shipped.

    From the second on, the names of contexts end in ", wording 2" and so on.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    if len(several) < 2:
        raise ValueError(f"Wordings are compared by two or more; got {len(several)}.")
    parts = [
        replace(own, contexts=tuple(f"{name}, wording {k}" for name in own.contexts))
        if k > 1
        else own
        for k, own in enumerate(several, start=1)
    ]
    return RevealedBeliefs.join(*parts)


def question_of(context: str) -> tuple[str, int]:
    """Return the name of a context without its wording, and the number of the wording."""
    found = WORDING.search(context)
    return (context[: found.start()], int(found[1])) if found else (context, 1)


def split_wordings(
    beliefs: RevealedBeliefs, *, mass: float = CONFIDENCE, seed: int = 0
) -> WordingSplit:
    """Split the variance of beliefs that were asked for in several wordings, by scenario.

    The sampling variance of a share is p (1 - p) / (n - 1), which has the right mean for n draws;
    exact beliefs have none. Flagged contexts have no share, and top-k tables take no part, since
    what they leave open is no sampling error.
    """
    rows = []
    for k, context in enumerate(beliefs.contexts):
        if beliefs.sources[k] == "top-k":
            continue
        here = beliefs.rows(k)
        p, total = beliefs.truth[here], float(beliefs.retained[k])
        question, wording = question_of(context)
        about = {"scenario": beliefs.scenarios[k], "question": question, "wording": wording}
        draws = int(beliefs.draws[k])
        rows.append({**about, "value": "retained mass", **_sampled(total, 0.0, draws)})
        if not beliefs.flagged[k] and np.isfinite(p).all():
            place = int(np.argmax(p))
            share = float(beliefs.probability[here][place] / total)
            told = _sampled(share, float(p[place]), round(draws * total))
            rows.append({**about, "value": "likeliest outcome", **told})
    table = pd.DataFrame(rows, columns=["scenario", "question", "wording", "value", "y", "error"])
    parts, effects = [], []
    for (scenario, name), own in table.groupby(["scenario", "value"], sort=False):
        wide = own.pivot(index="question", columns="wording", values=["y", "error"])
        y, error = (wide[part].to_numpy(dtype=float) for part in ("y", "error"))
        about = {"scenario": scenario, "value": name}
        if len(wide["y"].columns) < 2:
            continue
        split = split_variance(y, error, mass=mass, seed=seed)
        parts += [{**about, **row} for row in split.to_frame().to_dict("records")]
        off = y - y.mean(axis=1, keepdims=True)
        tests = t_tests(off[np.isfinite(off).all(axis=1)].T, mass=mass)
        for place, wording in enumerate(wide["y"].columns):
            ends = (float(each[place]) for each in (tests.mean, tests.low, tests.high))
            effects.append({**about, "wording": wording, **dict(zip(_EFFECT, ends, strict=True))})
    return WordingSplit(
        pd.DataFrame(parts, columns=["scenario", "value", "part", *Part._fields, "questions"]),
        pd.DataFrame(effects, columns=["scenario", "value", "wording", *_EFFECT]),
        mass,
    )


_EFFECT = ("effect", "low", "high")


def _sampled(share: float, truth: float, draws: int) -> dict[str, float]:
    """Return the value of a share, and its sampling variance; NaN for fewer than two draws."""
    if not draws:
        return {"y": share - truth, "error": 0.0}
    # A sum of shares may be above 1 by rounding.
    error = max(share * (1 - share), 0.0) / (draws - 1) if draws > 1 else float("nan")
    return {"y": share - truth, "error": error}
