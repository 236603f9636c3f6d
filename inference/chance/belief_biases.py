"""How much more probable marked outcomes, such as the first, are believed to be than they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents import Agent, BeliefSampler
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, make, unknown
from knownminds.environments.chance.outcome_grid import MARKS, BrokenOff, Context
from knownminds.environments.chance.scenarios import context_of
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result, records
from knownminds.inference.measure import Dial, Measure, SubjectMeasure, Values, t_tests

from .belief_sampler_fit import (
    FitOfBelief,
    SamplerAt,
    Usable,
    fit_belief,
    fit_table,
    nearest_belief,
    spread_of,
    told_by,
    usable,
)
from .distribution_distance import set_bounds, units_of
from .open_beliefs import Read
from .revealed_belief import Booleans, RevealedBeliefs, wilson

Ends = tuple[float, float, float]  # a value and the ends of its interval

EVEN = 1e-9  # by which probabilities may differ that count as the same
FEWEST = 2  # contexts that an interval over contexts needs


class Bias(NamedTuple):
    """The bias towards the outcomes with a mark, in one scenario.

    Parameters
    ----------
    scenario, mark : where, and towards what
    value, low, high : mean over contexts of what the marked outcomes are believed to have more
        than with an unbiased agent, and its interval; NaN where there is none
    log_odds, log_odds_low, log_odds_high : the same as a parameter: the bias of the belief
        sampler that is nearest in this scenario
    least, most : ends of `value` over all beliefs that are possible; they differ from it for
        top-k tables alone
    marginal, marginal_low, marginal_high, marginal_least, marginal_most : the published reading,
        against the truth instead of the unbiased agent, so that temperature and other biases
        count as well
    marginal_odds, marginal_odds_low, marginal_odds_high : the same on the scale of log-odds, mean
        over contexts
    temperature : of the unbiased agent; 1 where none can be told, since it changes nothing
    contexts : how many have outcomes with the mark and without
    without_odds : how many of these have no log-odds of their own, since a share is 0 or 1
    reason : why there is no `value`; empty where there is
    freedom : degrees of freedom of the intervals of `value` and `log_odds`; 0 where there are none
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
    marginal: float
    marginal_low: float
    marginal_high: float
    marginal_least: float
    marginal_most: float
    marginal_odds: float
    marginal_odds_low: float
    marginal_odds_high: float
    temperature: float
    contexts: int
    without_odds: int
    reason: str
    freedom: int


@dataclass(frozen=True)
class BeliefBiases(Result):
    """Biases by scenario and mark, and their values context by context.

    Parameters
    ----------
    beliefs : Of which they are.
    biases : One entry per scenario and mark, for those marks that its contexts have.
    by_context : One row per mark and context: belief, truth and their difference (`marginal`) with
        its own interval (Wilson's for sampled beliefs, all that is possible for top-k tables),
        difference of log-odds; what an unbiased agent has (`unbiased`), and the difference from it
        (`value`).
    flagged : Contexts that were left out.
    mass : Of the intervals.
    """

    beliefs: RevealedBeliefs
    biases: tuple[Bias, ...]
    by_context: pd.DataFrame
    flagged: int
    mass: float

    def to_frame(self) -> pd.DataFrame:
        """One row per scenario and mark."""
        return pd.DataFrame(self.biases, columns=list(Bias._fields))

    def content(self) -> Any:
        """What `to_json` holds."""
        biases = records(self.to_frame(), digits=15)
        return {"mass": self.mass, "flagged": self.flagged, "biases": biases}

    def __str__(self) -> str:
        """Difference and log-odds of each bias with their intervals, and the marginal reading."""
        lines = [
            f"{'scenario':<14}{'towards':<9}{'bias':>30}{'log-odds':>30}{'marginal':>30}"
            f"{'contexts':>10}"
        ]
        for b in self.biases:
            cells = (
                f"{value:.3f} ({low:.3f} to {high:.3f})"
                for value, low, high in (
                    (b.value, b.low, b.high),
                    (b.log_odds, b.log_odds_low, b.log_odds_high),
                    (b.marginal, b.marginal_low, b.marginal_high),
                )
            )
            lines.append(
                f"{b.scenario:<14}{b.mark:<9}{''.join(f'{cell:>30}' for cell in cells)}"
                f"{b.contexts:>10}"
            )
        if self.flagged:
            lines.append(
                f"{self.flagged} of {len(self.beliefs)} contexts are flagged and left out."
            )
        lines.append(
            "Bias: against a mind with the same temperature and other biases, but without this "
            "one. Marginal: against the truth, as published."
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
    """Compute how much more the marked outcomes are believed to have than without a bias.

    In each context in which some of the outcomes that can come have the mark and some have not,
    their share in the belief minus their share under an unbiased agent: the belief sampler that is
    nearest to all beliefs of the scenario (temperature and all biases together), but without the
    bias in question. An unbiased agent of any temperature has 0, and so has an agent with other
    biases. The marginal reading sets the belief against the truth instead.

    Intervals are over contexts, with what the fit hangs on them: the sum of squared influences of
    the contexts, times C / (C - K) for C contexts and K parameters, with Student's t for C - K
    degrees of freedom, or one less than there are contexts with the mark if these are fewer. For
    top-k tables their ends are those of the least and of the largest values that are possible, so
    that they hold both kinds of ignorance.

    Parameters
    ----------
    even
        Whether only contexts count in which all outcomes are equally probable: there temperature
        has no effect.
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
    rows: list[dict[str, Any]] = []
    kept = np.zeros(len(beliefs), dtype=bool)
    flat = np.zeros(len(beliefs), dtype=bool)
    for k in range(len(beliefs)):
        here = beliefs.rows(k)
        q, p = beliefs.probability[here], beliefs.truth[here]
        unknown_mass = np.isnan(q).any() or q[p > 0].sum() <= 0
        kept[k] = not (unknown_mass or (beliefs.flagged[k] and not keep_flagged))
        flat[k] = np.ptp(p) <= EVEN
        if kept[k] and (flat[k] or not even):
            rows += _marginal_rows(beliefs, k, mass)
    table = pd.DataFrame(rows, columns=_COLUMNS)
    biases: list[Bias] = []
    used = kept & flat if even else kept
    for scenario in dict.fromkeys(beliefs.scenarios):
        own = used & np.array([name == scenario for name in beliefs.scenarios])
        told = (table["scenario"] == scenario).to_numpy()
        if not told.any():
            continue
        unbiased = _Unbiased.of(beliefs.part(own))
        for mark in MARKS:
            at = told & (table["mark"] == mark).to_numpy()
            if at.any():
                found, values, shares = unbiased.bias(mark, mass)
                table.loc[at, ["value", "unbiased"]] = np.column_stack([values, shares])
                biases.append(_bias(scenario, mark, table[at], found, mass))
    return BeliefBiases(beliefs, tuple(biases), table, int((~kept).sum()), mass)


_COLUMNS = [
    "scenario", "mark", "context", "source", "belief", "truth", "unbiased", "value", "marginal",
    "low", "high", "least", "most", "log_odds", "log_odds_least", "log_odds_most",
]  # fmt: skip


def _marginal_rows(beliefs: RevealedBeliefs, k: int, mass: float) -> list[dict[str, Any]]:
    """Return the differences from the truth in a context, one row per mark."""
    here = beliefs.rows(k)
    q, p = beliefs.probability[here], beliefs.truth[here]
    marks = beliefs.marks[here]
    asked = [m for m in range(len(MARKS)) if _splits(marks[:, m], p)]
    if not asked:
        return []
    sets = marks[:, asked].T.astype(float)
    believed = sets @ q / q.sum()
    if beliefs.draws[k]:
        counts = beliefs.count[here].astype(float)
        low, high = wilson(sets @ counts, np.full(len(asked), counts.sum()), mass)
        least = most = believed
    else:
        low, high = least, most = set_bounds(q, units_of(beliefs, k), sets)
    rows = []
    for i, m in enumerate(asked):
        share = float(sets[i] @ p)
        ends = np.array([believed[i], least[i], most[i]])
        with np.errstate(divide="ignore"):
            odds = logit(ends) - logit(share)
        rows.append(
            {
                "scenario": beliefs.scenarios[k],
                "mark": MARKS[m],
                "context": beliefs.contexts[k],
                "source": beliefs.sources[k],
                "belief": believed[i],
                "truth": share,
                "unbiased": np.nan,
                "value": np.nan,
                "marginal": believed[i] - share,
                "low": low[i] - share,
                "high": high[i] - share,
                "least": least[i] - share,
                "most": most[i] - share,
                "log_odds": odds[0],
                "log_odds_least": odds[1],
                "log_odds_most": odds[2],
            }
        )
    return rows


class _Against(NamedTuple):
    """A bias against the unbiased agent: each value with the ends of its interval."""

    value: Ends
    log_odds: Ends
    least: float
    most: float
    temperature: float
    reason: str = ""
    freedom: int = 0


@dataclass(frozen=True, eq=False)
class _Unbiased:
    """The belief sampler that is nearest to the beliefs of one scenario.

    Parameters
    ----------
    used, free : the contexts, and what they tell of a sampler, see `belief_sampler_fit`
    belief : what is taken to be believed, normalised over what can come, [R]
    fit : to this belief
    """

    used: Usable
    free: NDArray[np.int64]
    belief: Array
    fit: FitOfBelief

    @classmethod
    def of(cls, beliefs: RevealedBeliefs) -> _Unbiased:
        """Fit it."""
        used = usable("", beliefs, keep_flagged=True)
        free = told_by(None, [used])
        z = fit_table(used.table, free, workers=1)[0][0]
        belief = nearest_belief(used.table, free, z)
        return cls(used, free, belief, fit_belief(used.table, free, belief))

    def bias(self, mark: str, mass: float) -> tuple[_Against, Array, Array]:
        """Return the bias towards a mark, its values by context, and the unbiased shares."""
        table, at = self.used.table, 1 + MARKS.index(mark)
        marked = table.marks[:, at - 1]
        edges, sizes = table.edges[:-1], np.diff(table.edges)
        n_marked = np.add.reduceat(marked, edges)
        split = (n_marked > 0) & (n_marked < sizes)
        apart = self._told_apart(at)
        if not apart:
            nothing = np.full(int(split.sum()), np.nan)
            none = (float("nan"),) * 3
            reason = "in these contexts it cannot be told from temperature and other biases"
            lacking = _Against(none, none, none[0], none[0], none[0], reason)
            return lacking, nothing, nothing
        found = self._read(self.belief, at, marked, split)
        value, odds = self._ends(found, mass)
        least, most = found.value, found.value
        if self.used.allowed.is_open:

            def value_of(belief: Array) -> Read:
                own = self._read(belief, at, marked, split)
                return Read(own.value, own.slopes)

            def bias_of(belief: Array) -> Read:
                own = self._read(belief, at, marked, split)
                return Read(own.bias, own.bias_slopes)

            for belief in self.used.allowed.extremes(value_of, self.belief):
                own = self._read(belief, at, marked, split)
                least, most = min(least, own.value), max(most, own.value)
                value = _joined(value, self._ends(own, mass)[0])
            for belief in self.used.allowed.extremes(bias_of, self.belief):
                own = self._read(belief, at, marked, split)
                odds = _joined(odds, self._ends(own, mass)[1])
        temperature = float(np.exp(found.z[0])) if 0 in self.free else 1.0
        return (
            _Against(value, odds, least, most, temperature, freedom=self._freedom(split)),
            found.differences[split],
            found.shares[split],
        )

    def _told_apart(self, at: int) -> bool:
        """Tell whether a bias shows in these contexts other than as temperature or other ones."""
        spread = spread_of(self.used.table)
        rest = np.delete(np.arange(len(spread)), at)
        ranks = (
            np.linalg.matrix_rank(part, tol=1e-8) for part in (spread, spread[np.ix_(rest, rest)])
        )
        return bool(np.subtract(*ranks) > 0)

    def _read(self, belief: Array, at: int, marked: Array, split: Booleans) -> _Reading:
        table, edges = self.used.table, self.used.table.edges[:-1]
        fit = self.fit if belief is self.belief else fit_belief(table, self.free, belief)
        place = int(np.flatnonzero(self.free == at)[0])
        without = fit.z.copy()
        without[place] = 0.0
        mind = SamplerAt.of(table, self.free, without)
        shares = np.add.reduceat(mind.shares * marked, edges)
        differences = np.add.reduceat(belief * marked, edges) - shares
        # How the mean share of the unbiased agent goes with the parameters it keeps.
        moved = np.add.reduceat((mind.shares * marked)[:, None] * mind.centred(table), edges)
        mean_moved = moved[split].mean(axis=0)
        mean_moved[place] = 0.0
        own = np.repeat(split, np.diff(table.edges)) * marked / split.sum()
        # The scores of the contexts move the parameters.
        gap = np.add.reduceat(fit.slopes * (belief - fit.sampler.shares), edges, axis=1)
        value = float(differences[split].mean())
        influence = np.where(split, (differences - value) / split.sum(), 0.0) - mean_moved @ gap
        return _Reading(
            z=fit.z,
            value=value,
            bias=float(fit.z[place]),
            split=split,
            differences=differences,
            shares=shares,
            slopes=own - mean_moved @ fit.slopes,
            bias_slopes=fit.slopes[place],
            influence=influence,
            bias_influence=gap[place],
        )

    def _freedom(self, split: Booleans) -> int:
        """Return the degrees of freedom; a mark that few contexts have is told of by these."""
        contexts = len(self.used.table.edges) - 1
        return min(contexts - len(self.free), int(split.sum()) - 1)

    def _ends(self, found: _Reading, mass: float) -> tuple[Ends, Ends]:
        """Return the value and the bias with their intervals over contexts."""
        told = []
        contexts, k = len(self.used.table.edges) - 1, len(self.free)
        freedom = self._freedom(found.split)
        for value, influence in (
            (found.value, found.influence),
            (found.bias, found.bias_influence),
        ):
            if freedom < 1:
                told.append((value, float("nan"), float("nan")))
                continue
            error = float(np.sqrt((influence**2).sum() * contexts / (contexts - k)))
            half = float(scipy.stats.t.ppf(0.5 + mass / 2, freedom)) * error
            half = 0.0 if half <= EVEN else half
            told.append((value, value - half, value + half))
        return told[0], told[1]


class _Reading(NamedTuple):
    """What a belief says of one bias, by context and together.

    Parameters
    ----------
    z : the nearest sampler, [K]
    value, bias : mean difference from the unbiased agent, and the bias of the sampler
    split : which contexts have outcomes with the mark and without, [C]
    differences, shares : by context, of belief and unbiased agent, and what the latter has, [C]
    slopes, bias_slopes : derivatives of value and bias by the belief, [R]
    influence, bias_influence : what each context adds to value and bias, [C]
    """

    z: Array
    value: float
    bias: float
    split: Booleans
    differences: Array
    shares: Array
    slopes: Array
    bias_slopes: Array
    influence: Array
    bias_influence: Array


def _joined(one: Ends, other: Ends) -> Ends:
    """Return the first value with an interval that holds both."""
    return one[0], min(one[1], other[1]), max(one[2], other[2])


def _splits(marked: Array | np.ndarray, truth: Array) -> bool:
    """Tell whether some outcomes that can come have the mark and some have not."""
    possible = truth > 0
    return bool(marked[possible].any() and not marked[possible].all())


def _bias(scenario: str, mark: str, own: pd.DataFrame, found: _Against, mass: float) -> Bias:
    samples = own[["marginal", "least", "most"]].to_numpy(dtype=float).T
    odds = own[["log_odds", "log_odds_least", "log_odds_most"]].to_numpy(dtype=float).T
    # Where a share is 0 or 1 there are no log-odds; where one may be, they have no bound.
    odds = odds[:, np.isfinite(odds[0])]
    open_ends = np.isinf(odds).any(axis=1)
    low, high = _ends(samples, mass)
    odds_low, odds_high = _ends(np.where(np.isinf(odds), np.nan, odds), mass)
    value, log_odds = found.value, found.log_odds
    return Bias(
        scenario=scenario,
        mark=mark,
        value=value[0],
        low=value[1],
        high=value[2],
        log_odds=log_odds[0],
        log_odds_low=log_odds[1],
        log_odds_high=log_odds[2],
        least=found.least,
        most=found.most,
        marginal=float(samples[0].mean()),
        marginal_low=low,
        marginal_high=high,
        marginal_least=float(samples[1].mean()),
        marginal_most=float(samples[2].mean()),
        marginal_odds=float(odds[0].mean()) if odds.shape[1] else float("nan"),
        marginal_odds_low=float("-inf") if open_ends[1] else odds_low,
        marginal_odds_high=float("inf") if open_ends[2] else odds_high,
        temperature=found.temperature,
        contexts=len(own),
        without_odds=len(own) - odds.shape[1],
        reason=found.reason,
        freedom=found.freedom,
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
        self.dial = Dial({f"bias_{mark}": 1.0})

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
            environment = make(self.environments[0], **self.settings)
            assert isinstance(environment, BrokenOff)
            contexts: Iterable[Context] = environment.contexts
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
