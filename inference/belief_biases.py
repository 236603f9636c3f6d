"""How much more probable marked outcomes, such as the first, are believed to be than they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents import Agent, BeliefSampler
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, make, unknown
from knownminds.environments.broken_off import MARKS, BrokenOff, Context
from knownminds.environments.scenarios import context_of

from .distribution_distance import set_bounds, units_of
from .measures import Measure, SubjectMeasure, Values, t_tests
from .revealed_belief import RevealedBeliefs, wilson

EVEN = 1e-9  # by which probabilities may differ that count as the same
FEWEST = 2  # contexts that an interval over contexts needs


class Bias(NamedTuple):
    """The bias towards the outcomes with a mark, in one scenario.

    Parameters
    ----------
    scenario, mark : where, and towards what
    value, low, high : mean over contexts of what the marked outcomes are believed to have more
        than they have, and its interval; NaN where there is none
    log_odds, log_odds_low, log_odds_high : the same on the scale of log-odds, where it is the
        bias of a belief sampler that has no other and a temperature of 1
    least, most : mean of the least and of the largest value that is possible; they differ from
        `value` for top-k tables alone
    contexts : how many have outcomes with the mark and without
    without_odds : how many of these have no log-odds, since a share is 0 or 1
    """

    scenario: str
    mark: str
    value: float
    low: float
    high: float
    log_odds: float
    log_odds_low: float
    log_odds_high: float
    least: float
    most: float
    contexts: int
    without_odds: int


@dataclass(frozen=True)
class BeliefBiases:
    """Biases by scenario and mark, and their values context by context.

    Parameters
    ----------
    beliefs
        Of which they are.
    biases
        One entry per scenario and mark, for those marks that its contexts have.
    by_context
        One row per mark and context: belief, truth, difference with its own interval (Wilson's
        for sampled beliefs, all that is possible for top-k tables), difference of log-odds.
    flagged
        Contexts that were left out.
    mass
        Of the intervals.
    """

    beliefs: RevealedBeliefs
    biases: tuple[Bias, ...]
    by_context: pd.DataFrame
    flagged: int
    mass: float

    def to_frame(self) -> pd.DataFrame:
        """One row per scenario and mark."""
        return pd.DataFrame(self.biases, columns=list(Bias._fields))

    def to_json(self) -> str:
        """Return the rows, and how many contexts were left out."""
        records = json.loads(self.to_frame().to_json(orient="records", double_precision=15))
        return json.dumps({"mass": self.mass, "flagged": self.flagged, "biases": records})

    def __str__(self) -> str:
        """Difference and log-odds of each bias with their intervals."""
        lines = [
            f"{'scenario':<14}{'towards':<9}{'difference':>30}{'log-odds':>30}{'contexts':>10}"
        ]
        for b in self.biases:
            plain = f"{b.value:.3f} ({b.low:.3f} to {b.high:.3f})"
            odds = f"{b.log_odds:.3f} ({b.log_odds_low:.3f} to {b.log_odds_high:.3f})"
            lines.append(f"{b.scenario:<14}{b.mark:<9}{plain:>30}{odds:>30}{b.contexts:>10}")
        if self.flagged:
            lines.append(
                f"{self.flagged} of {len(self.beliefs)} contexts are flagged and left out."
            )
        lines.append(f"Means over contexts with {self.mass:.0%} t intervals over contexts.")
        return "\n".join(lines)


def belief_biases(
    beliefs: RevealedBeliefs,
    *,
    even: bool = False,
    mass: float = 0.95,
    keep_flagged: bool = False,
) -> BeliefBiases:
    """Compute how much more the marked outcomes are believed to have than they have.

    In each context in which some of the outcomes that can come have the mark and some have not,
    their share in the belief minus their share in the truth. The interval is over contexts
    (Student's t). For top-k tables its ends are those of the least and of the largest values that
    are possible, so that it holds both kinds of ignorance.

    Parameters
    ----------
    even
        Whether only contexts count in which all outcomes are equally probable: there temperature
        has no effect, and a difference is due to biases alone.
    mass
        Of the intervals.
    keep_flagged
        Whether contexts flagged for their small mass take part.
    """
    if np.isnan(beliefs.truth).any():
        raise ValueError(
            "A bias is a difference from the truth, which some contexts lack. Give set_ups when "
            "reading the beliefs."
        )
    left_out = 0
    rows: list[dict[str, Any]] = []
    for k, name in enumerate(beliefs.contexts):
        here = beliefs.rows(k)
        q, p = beliefs.probability[here], beliefs.truth[here]
        unknown_mass = np.isnan(q).any() or q.sum() <= 0
        if unknown_mass or (beliefs.flagged[k] and not keep_flagged):
            left_out += 1
            continue
        if even and np.ptp(p) > EVEN:
            continue
        marks = beliefs.marks[here]
        asked = [m for m in range(len(MARKS)) if _splits(marks[:, m], p)]
        if not asked:
            continue
        sets = marks[:, asked].T.astype(float)
        believed = sets @ q / q.sum()
        if beliefs.draws[k]:
            counts = beliefs.count[here].astype(float)
            low, high = wilson(sets @ counts, np.full(len(asked), counts.sum()), mass)
            least = most = believed
        else:
            low, high = least, most = set_bounds(q, units_of(beliefs, k), sets)
        for i, m in enumerate(asked):
            share = float(sets[i] @ p)
            ends = np.array([believed[i], least[i], most[i]])
            with np.errstate(divide="ignore"):
                odds = logit(ends) - logit(share)
            rows.append(
                {
                    "scenario": beliefs.scenarios[k],
                    "mark": MARKS[m],
                    "context": name,
                    "source": beliefs.sources[k],
                    "belief": believed[i],
                    "truth": share,
                    "value": believed[i] - share,
                    "low": low[i] - share,
                    "high": high[i] - share,
                    "least": least[i] - share,
                    "most": most[i] - share,
                    "log_odds": odds[0],
                    "log_odds_least": odds[1],
                    "log_odds_most": odds[2],
                }
            )
    table = pd.DataFrame(rows, columns=_COLUMNS)
    scenarios = dict.fromkeys(beliefs.scenarios)
    biases = [
        _bias(scenario, mark, own, mass)
        for scenario in scenarios
        for mark in MARKS
        if len(own := table[(table["scenario"] == scenario) & (table["mark"] == mark)])
    ]
    return BeliefBiases(beliefs, tuple(biases), table, left_out, mass)


_COLUMNS = [
    "scenario", "mark", "context", "source", "belief", "truth", "value", "low", "high", "least",
    "most", "log_odds", "log_odds_least", "log_odds_most",
]  # fmt: skip


def _splits(marked: Array | np.ndarray, truth: Array) -> bool:
    """Tell whether some outcomes that can come have the mark and some have not."""
    possible = truth > 0
    return bool(marked[possible].any() and not marked[possible].all())


def _bias(scenario: str, mark: str, own: pd.DataFrame, mass: float) -> Bias:
    samples = own[["value", "least", "most"]].to_numpy(dtype=float).T
    odds = own[["log_odds", "log_odds_least", "log_odds_most"]].to_numpy(dtype=float).T
    # Where a share is 0 or 1 there are no log-odds; where one may be, they have no bound.
    odds = odds[:, np.isfinite(odds[0])]
    open_ends = np.isinf(odds).any(axis=1)
    low, high = _ends(samples, mass)
    odds_low, odds_high = _ends(np.where(np.isinf(odds), np.nan, odds), mass)
    return Bias(
        scenario=scenario,
        mark=mark,
        value=float(samples[0].mean()),
        low=low,
        high=high,
        log_odds=float(odds[0].mean()) if odds.shape[1] else float("nan"),
        log_odds_low=float("-inf") if open_ends[1] else odds_low,
        log_odds_high=float("inf") if open_ends[2] else odds_high,
        least=float(samples[1].mean()),
        most=float(samples[2].mean()),
        contexts=len(own),
        without_odds=len(own) - odds.shape[1],
    )


def _ends(samples: Array, mass: float) -> tuple[float, float]:
    """Return the lower end for the least and the upper end for the largest values."""
    tests = t_tests(samples, mass=mass)
    if samples.shape[1] < FEWEST:
        return float("nan"), float("nan")
    # Values that do not differ have an interval without width.
    flat = np.nanmax(samples, axis=1) - np.nanmin(samples, axis=1) <= EVEN
    low = tests.mean[1] if flat[1] else tests.low[1]
    high = tests.mean[2] if flat[2] else tests.high[2]
    return float(low), float(high)


class BeliefBias(SubjectMeasure):
    """How much more often the outcomes with a mark are said than they come, as a share.

    Over the trials in which all outcomes are equally probable and some have the mark, the share of
    those in which a marked one was said minus the share they should have. Who says each outcome
    as often as it comes has none, and temperature makes none.

    How large it is in a sampler with a given bias hangs on how many outcomes there are, so its
    truth is that of an experiment: by default the first of `environments`, with `settings`.

    Its t test counts on some answers per subject: of 20 subjects with 7 answers each of which 1 in
    12 should be marked, it rejects 6.8% without a bias; with 28 answers each, 5.2%.

    Parameters
    ----------
    mark
        One of `MARKS`.
    cells
        Numbers of the contexts that the truth is a mean over; None for those of the default.
    """

    bounds = (-1.0, 1.0)
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, results 2 and 3"
    rational = "random_responder"
    violator = "belief_sampler"

    def __init__(self, mark: str, cells: tuple[int, ...] | None = None):
        if mark not in MARKS:
            raise ValueError(unknown("mark", mark, MARKS))
        self.mark, self.cells = mark, cells
        self.name = f"{mark}_outcome_bias"
        self.summary = f"how much more often {_TOLD[mark]} is said than it comes"
        self.environments = _SPLIT_IN[mark]
        self.settings: Mapping[str, Any] = _SETTINGS.get(mark, {})
        self.dial: Mapping[str, float] = {f"bias_{mark}": 1.0}

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure whose truth is that over the contexts of the experiment.

        Raises
        ------
        ValueError
            If it has no context that tells the outcomes with the mark from others.
        """
        if not isinstance(environment, BrokenOff) or environment.form == "stated":
            raise ValueError(
                f"{self.name} is read off what is said in {', '.join(self.environments)}; got "
                f"{environment!r}. It knows nothing of stated probabilities."
            )
        values = np.array([context.values for context in environment.contexts])
        found = _placed(self.mark, tuple(environment.cells(values).tolist()))
        if not found._contexts:
            raise ValueError(
                f"{self.name} needs contexts in which all outcomes are equally probable and some, "
                f"but not all, are {_TOLD[self.mark]}; {environment!r} has none. Change its "
                f"settings, or use one of {', '.join(self.environments)}."
            )
        return found

    def values(self, trials: Trials) -> Values:
        """Return each subject's share of marked outcomes minus the share they should have."""
        frame = trials.frame
        if "cell" not in frame:
            raise ValueError(
                f"{self.name} is read off trials with the number of their context, the column "
                "cell; these have none. Use trials of dice, coins, choice or preference."
            )
        subject, names = pd.factorize(frame["subject"])
        action = pd.to_numeric(frame["action"], errors="coerce").to_numpy(dtype=float)
        cell = frame["cell"].to_numpy(dtype=np.int64)
        stated = np.zeros(len(frame), dtype=bool)
        if "correct" in frame:
            stated = frame["correct"].to_numpy(dtype=float) >= 0
        total, n = np.zeros(len(names)), np.zeros(len(names))
        for number in np.unique(cell):
            context = context_of(int(number))
            marked = self._marked(context)
            if marked is None:
                continue
            own = (cell == number) & ~stated & np.isfinite(action) & (action >= 0)
            said = marked[action[own].astype(np.int64)] - marked.mean()
            total += np.bincount(subject[own], said, len(names))
            n += np.bincount(subject[own], minlength=len(names))
        with np.errstate(invalid="ignore"):
            value = total / n
        reason = f"no answer where {self.mark} could be told apart"
        return Values(value, tuple("" if k else reason for k in n))

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials are in contexts where the mark could be told apart, [rows]."""
        frame = trials.frame
        cell = frame["cell"].to_numpy(dtype=np.int64)
        counting = [c for c in np.unique(cell) if self._marked(context_of(int(c))) is not None]
        stated = "correct" in frame and frame["correct"].to_numpy(dtype=float) >= 0
        return np.asarray(np.isin(cell, counting) & ~np.asarray(stated), dtype=bool)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the mean over the contexts of the experiment, [n]."""
        if model.name == self.rational:
            return np.zeros(len(theta))
        if not issubclass(model, BeliefSampler):
            raise ValueError(
                f"{self.name} is known of belief samplers and random responders; got {model.name}."
            )
        temperature, biases = theta[:, :1], theta[:, 1 : 1 + len(MARKS)]
        found = np.zeros((len(self._contexts), len(theta)))
        for row, (context, marked) in zip(found, self._contexts, strict=True):
            height = np.log(context.chance.probabilities) / temperature
            height = height + biases @ context.marks.T.astype(float)
            weight = np.exp(height - height.max(axis=1, keepdims=True))
            row += (weight @ marked) / weight.sum(axis=1) - marked.mean()
        mean: Array = found.mean(axis=0)
        return mean

    @cached_property
    def _contexts(self) -> Sequence[tuple[Context, Array]]:
        if self.cells is None:
            place = make(self.environments[0], **self.settings)
            assert isinstance(place, BrokenOff)
            contexts: Iterable[Context] = place.contexts
        else:
            contexts = map(context_of, self.cells)
        found = [(context, self._marked(context)) for context in contexts]
        return [(context, marked) for context, marked in found if marked is not None]

    def _marked(self, context: Context) -> Array | None:
        """Return which outcomes have the mark; None where the context does not count."""
        p = context.chance.probabilities
        marked = context.marks[:, MARKS.index(self.mark)]
        if np.ptp(p) > EVEN or not _splits(marked, p):
            return None
        return np.asarray(marked, dtype=float)


_TOLD = {
    "first": "the first outcome",
    "middle": "the outcome in the middle",
    "round": "a multiple of ten",
    "repeat": "the outcome that came before",
    "heads": "heads",
    "left": "left",
}
# Where all outcomes can be equally probable and some of them have the mark.
_SPLIT_IN = {
    "first": ("dice", "choice", "preference"),
    "middle": ("dice", "choice"),
    "round": ("dice",),
    "repeat": ("dice", "choice", "preference"),
    "heads": ("preference",),
    "left": ("preference",),
}
_SETTINGS: dict[str, Mapping[str, Any]] = {"round": {"n_faces": 12}}

# One object each: curves over the dial are kept by measure.
_placed = lru_cache(maxsize=None)(BeliefBias)
