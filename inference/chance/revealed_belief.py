"""Revealed beliefs: the probabilities with which a participant goes on with each outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Outcome, Trials
from knownminds.environments.chance.outcome_grid import MARKS, BrokenOff
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Source = Literal["exact", "top-k", "sampled"]
SOURCES: tuple[str, ...] = get_args(Source)

LITTLE_MASS = 0.5  # below it, the outcomes together are less probable than anything else
CONFIDENCE = 0.95  # of the intervals of sampled shares
ROUNDING = 1e-6  # by which told probabilities may exceed 1 together
NOTHING = 1e-12  # probability that is left by rounding alone
NOT_COUNTED = -1
# Columns of a table that is kept.
_TEXTS = ("scenario", "context", "outcome", "source", "previous", "marks", "unplaced")
_NUMBERS = ("probability", "low", "high", "count", "truth", "draws", "threshold")
# Fields of a table with an entry per context, and per outcome in a context.
_OF_CONTEXT = ("contexts", "sources", "scenarios", "previous", "draws")
_OF_ROW = ("outcome", "probability", "low", "high", "count", "truth", "marks")
FIRST, MIDDLE, ROUND, REPEAT, HEADS, LEFT = map(MARKS.index, MARKS)

# Tells whether more text makes the last word or number of a text longer; None: it may.
Extends = Callable[[str, str], bool | None]


class ContinuationProbabilities(Protocol):
    """What `RevealedBeliefs.exact` reads; `llm_adapters.outcome_probabilities` gives it."""

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def log_probabilities(self) -> Array:
        """Before normalising, [prompts, outcomes]."""

    @property
    def left_out(self) -> Array:
        """Logarithm of the most that was not looked at, [prompts, outcomes]."""


class ListedToken(Protocol):
    """A token of a reply with its alternatives; `llm_adapters.TokenLogProbability` is one."""

    @property
    def token(self) -> str:
        """Its text."""

    @property
    def log_probability(self) -> float:
        """Natural logarithm of its probability."""

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """What could have stood there, with log-probabilities."""


class SetUp(NamedTuple):
    """What a context is about.

    Parameters
    ----------
    name : of the context
    outcomes : what may come, as it is said
    truth : the exact probability of each; None if it is not known
    scenario : to what it belongs, such as "dice"
    previous : the outcome before, as it is said; empty if there was none
    marks : as in `marks_of`, [outcomes, 6]; None for those that follow from the rest
    """

    name: str
    outcomes: tuple[str, ...]
    truth: Sequence[float] | Array | None = None
    scenario: str = ""
    previous: str = ""
    marks: Booleans | None = None


def set_ups_of(environment: Environment) -> tuple[SetUp, ...]:
    """Return what the contexts of an experiment are about, in the order of its grid.

    Raises
    ------
    ValueError
        If the experiment does not ask for outcomes of a known probability.
    """
    if not isinstance(environment, BrokenOff):
        raise ValueError(
            "Beliefs are revealed where an outcome has to be told, whose probability is known; "
            f"{environment.name} asks for none. Use coins, dice, choice, preference, "
            "counts or linked_coins."
        )
    if environment.form == "stated":
        raise ValueError(
            "Beliefs are revealed by the outcomes that are told; these questions ask for their "
            "probability. Their errors are those of distribution_distance.stated_errors."
        )
    result = []
    for context in environment.contexts:
        observation = dict(zip(environment.own, context.values, strict=True))
        truth = context.chance.probabilities
        said = tuple(environment.say(k, observation) for k in range(len(truth)))
        before = ""
        if context.previous is not None:
            position = [n for n, number in enumerate(context.chance.outcomes)
                     if number == context.previous]  # fmt: skip
            # The result before may be none that the sum of both can have.
            before = said[position[0]] if position else str(context.previous)
        name = context_name(environment.own, context.values)
        result.append(SetUp(name, said, truth, context.scenario, before, context.marks))
    return tuple(result)


def marks_of(outcomes: Sequence[str], truth: Array | None = None, previous: str = "") -> Booleans:
    """Return what may draw an agent to each outcome, [outcomes, 6] as in `broken_off.MARKS`.

    The first of the outcomes that can come, and the middle one, floor((least + largest) / 2), if
    there are more than two (by number, or else by position); a multiple of ten, but not 0; the
    outcome before; called heads; called left. Where the truth is not known, all can come.
    """
    number = pd.to_numeric(pd.Series(list(outcomes)), errors="coerce").to_numpy(dtype=float)
    numeric = bool(np.isfinite(number).all())
    position = number if numeric else np.arange(len(outcomes), dtype=float)
    possible = position if truth is None else position[~(truth <= 0)]
    mask = np.zeros((len(outcomes), len(MARKS)), dtype=bool)
    if len(possible):
        mask[:, FIRST] = position == possible[0]
    if len(possible) > 2:  # of two there is no middle
        mask[:, MIDDLE] = position == (possible[0] + possible[-1]) // 2
    if numeric:
        mask[:, ROUND] = (number % 10 == 0) & (number != 0)
    if previous:
        mask[:, REPEAT] = [name == previous for name in outcomes]
    for mark, called in ((HEADS, "heads"), (LEFT, "left")):
        mask[:, mark] = [name.casefold() == called for name in outcomes]
    return mask


class Unplaced(NamedTuple):
    """Probability of which only is known on which outcomes it can lie, if on any.

    Parameters
    ----------
    mass : how much
    rows : the outcomes, as rows of the table; what lies on none of them is something else
    """

    mass: float
    rows: tuple[int, ...]


@dataclass(frozen=True)
class RevealedBeliefs(Result):
    """Probabilities of all outcomes in C contexts, one of R rows per context and outcome.

    Probabilities are those before normalising: what is missing to 1 in a context has gone to
    something that is no outcome. Where they are not known exactly, `low` and `high` hold them.

    Parameters
    ----------
    contexts : Their names, [C].
    sources : "exact": token log-probabilities of all outcomes; "top-k": those of the most probable
        tokens alone, with bounds; "sampled": counts of continuations, [C].
    scenarios : To what each context belongs, such as "dice single"; empty if that was not said,
        [C].
    previous : The outcome before, as text; empty if there was none, [C].
    draws : Continuations that were sampled, outcomes and others, [C]; 0 where none were.
    context : Number of the context, which goes up from 0, [R].
    outcome : What the rows stand for, in the order in which a context names them, [R].
    probability : Before normalising, [R]; NaN if it is not known. From top-k tables: what certainly
        lies on the outcome.
    low, high : Bounds of it, or ends of the 95% interval where it was sampled (Wilson 1927), [R].
    count : How often it was sampled, [R]; -1 where nothing was.
    truth : The exact probabilities of the set-up, [R]; NaN if they are not known.
    marks : What may draw an agent to each outcome, whatever its probability, [R, 6]; see
        `marks_of`.
    unplaced : By context, the probability that could not be placed; empty where all was.
    threshold : Least retained mass of a context that is not flagged.
    """

    contexts: tuple[str, ...]
    sources: tuple[str, ...]
    scenarios: tuple[str, ...]
    previous: tuple[str, ...]
    draws: Integers
    context: Integers
    outcome: tuple[str, ...]
    probability: Array
    low: Array
    high: Array
    count: Integers
    truth: Array
    marks: Booleans
    unplaced: tuple[tuple[Unplaced, ...], ...]
    threshold: float = LITTLE_MASS

    def __post_init__(self) -> None:
        """Check that rows belong to contexts, and probabilities can be some."""
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is a share from 0 to 1; got {self.threshold!r}.")
        c, r = len(self.contexts), len(self.outcome)
        per_context = (self.sources, self.scenarios, self.previous, self.draws, self.unplaced)
        per_row = (
            self.context, self.probability, self.low, self.high, self.count, self.truth, self.marks
        )  # fmt: skip
        if any(len(v) != c for v in per_context) or any(len(v) != r for v in per_row):
            raise ValueError(
                f"There is one entry per context ({c}) and one per outcome in it ({r}); got "
                f"{[len(v) for v in per_context]} and {[len(v) for v in per_row]}."
            )
        if not np.array_equal(np.unique(self.context), np.arange(c)) or (
            r and (np.diff(self.context) < 0).any()
        ):
            raise ValueError("Rows stand in the order of their contexts, which have one at least.")
        for k, (name, total) in enumerate(zip(self.contexts, self._sum(self.low), strict=True)):
            if total > 1 + ROUNDING:
                raise ValueError(
                    f"Probabilities of a context sum to 1 at most; in {name!r} they sum to "
                    f"{total:.6g}. Give natural logarithms of probabilities, or counts of draws."
                )
            own = self.outcome[self.rows(k)]
            if len(set(own)) < len(own):
                raise ValueError(f"The outcomes of a context differ; {name!r} has {own}.")

    @classmethod
    def exact(
        cls,
        found: ContinuationProbabilities,
        *,
        set_ups: Sequence[SetUp] | None = None,
        threshold: float = LITTLE_MASS,
    ) -> RevealedBeliefs:
        """Read the probabilities of whole outcomes under a local model.

        Outcomes whose log-probability is NaN stay unknown, and their context is flagged. What was
        left out counts from 1e-6 on; less is among the rounding of a model in float32.

        Parameters
        ----------
        found
            As `llm_adapters.outcome_probabilities` gives it: one prompt per context.
        set_ups
            What the prompts are about, such as `set_ups_of` an experiment; None for nothing known.
            Contexts of other outcomes are read on their own and joined by `join`.
        """
        logs = np.asarray(found.log_probabilities, dtype=float)
        more = np.exp(np.asarray(found.left_out, dtype=float))
        n = len(logs)
        p = np.exp(logs)
        return _table(
            _set_ups(set_ups, tuple(found.outcomes), n),
            sources=("exact",) * n,
            probability=p,
            unplaced=[
                tuple(Unplaced(m, (i,)) for i, m in enumerate(row) if m > ROUNDING)
                for row in more.tolist()
            ],
            threshold=threshold,
        )

    @classmethod
    def top_k(
        cls,
        replies: Sequence[Iterable[Sequence[ListedToken] | None]],
        outcomes: Sequence[str],
        *,
        extends: Extends | None = None,
        nothing_longer: bool = False,
        set_ups: Sequence[SetUp] | None = None,
        threshold: float = LITTLE_MASS,
    ) -> RevealedBeliefs:
        """Read what the most probable tokens of replies tell, and bound the rest.

        The tables of all replies to a context are put together as a tree, as far as they were
        seen. What a table does not list, and what goes on where no table was seen, is unplaced:
        it may lie on any outcome that can still be said from there, or on none.

        Parameters
        ----------
        replies
            By context, the `log_probabilities` of one or more replies.
        extends
            The rule that tells when an outcome is over: whether more text makes the last word or
            number of a text longer, as `llm_adapters.outcome_tree.extends` does. None: an outcome
            that was said is taken to be over, unless the same token goes on with a letter or
            digit; this is allowed only where no outcome begins another.
        nothing_longer
            Whether to assume that what was said is over where no table shows how it goes on,
            unless it begins another outcome. Interfaces do not tell how probable the end of a
            reply was: without the assumption a reply that ends behind 7 leaves open 73.

        Raises
        ------
        ValueError
            If a reply has no log-probabilities, or an outcome begins another one without a rule.
        """
        if isinstance(outcomes, str) or not outcomes or len(set(outcomes)) < len(outcomes):
            raise ValueError(f"Outcomes are a list of different strings; got {outcomes!r}.")
        # Said with a space before it and without.
        written = [(text, k) for k, name in enumerate(outcomes) for text in (f" {name}", name)]
        if extends is None:
            _check_prefixes(written, outcomes)
        probability, unplaced = [], []
        told = _set_ups(set_ups, tuple(outcomes), len(replies))
        for set_up, several in zip(told, replies, strict=True):
            certain, open_masses = _place(
                _tables(several, set_up.name),
                written,
                len(outcomes),
                extends,
                nothing_longer,
            )
            probability.append(certain)
            unplaced.append(open_masses)
        return _table(
            told,
            sources=("top-k",) * len(told),
            probability=probability,
            unplaced=unplaced,
            threshold=threshold,
        )

    @classmethod
    def sampled(
        cls,
        counts: Sequence[Sequence[int]],
        others: Sequence[int],
        outcomes: Sequence[str],
        *,
        set_ups: Sequence[SetUp] | None = None,
        threshold: float = LITTLE_MASS,
    ) -> RevealedBeliefs:
        """Read counts of continuations.

        Parameters
        ----------
        counts
            How often each outcome came, [contexts, outcomes].
        others
            How often something else came, [contexts].
        """
        table = np.asarray(counts)
        other = np.asarray(others)
        if table.ndim != 2 or table.shape != (len(other), len(outcomes)):
            raise ValueError(
                "Counts are by context and outcome, and others by context; got shapes "
                f"{table.shape} and {other.shape} for {len(outcomes)} outcomes."
            )
        return _counted(
            _set_ups(set_ups, tuple(outcomes), len(table)),
            [row.astype(np.int64) for row in table],
            other.astype(np.int64),
            threshold=threshold,
        )

    @classmethod
    def of_trials(
        cls,
        trials: Trials | pd.DataFrame,
        environment: Environment,
        *,
        threshold: float = LITTLE_MASS,
    ) -> RevealedBeliefs:
        """Count the answers to each context of an experiment over all sessions.

        Answers that name no outcome (malformed, refused, empty, cut off) count as something else,
        which is what retained mass is about; calls that failed do not count at all. Contexts
        stand in the order in which they first appear.
        """
        frame = trials.frame if isinstance(trials, Trials) else trials
        known = {set_up.name: set_up for set_up in set_ups_of(environment)}
        asked = frame
        if "outcome" in frame:
            asked = frame[frame["outcome"] != Outcome.ERROR.value]
        columns = list(_columns(environment))
        told, counts, others = [], [], []
        for values, group in asked.groupby(columns, sort=False):
            cells = values if isinstance(values, tuple) else (values,)
            name = context_name(columns, cells)
            if name not in known:
                raise ValueError(
                    f"Trials are of the grid of {environment!r}; {name} is no context of it. Use "
                    "the settings they were asked with."
                )
            said = known[name].outcomes
            action = pd.to_numeric(group["action"], errors="coerce").to_numpy(dtype=float)
            answered = np.isfinite(action) & (action >= 0)
            told.append(known[name])
            counts.append(np.bincount(action[answered].astype(np.int64), minlength=len(said)))
            others.append(int((~answered).sum()))
        return _counted(told, counts, np.array(others, dtype=np.int64), threshold=threshold)

    @classmethod
    def join(cls, *parts: RevealedBeliefs) -> RevealedBeliefs:
        """Put tables one below the other; the first one's threshold holds."""
        if not parts:
            raise ValueError("At least one table is joined; got none.")
        contexts = np.cumsum([0, *(len(part.contexts) for part in parts)]).tolist()
        rows = np.cumsum([0, *(len(part.outcome) for part in parts)]).tolist()

        def put(name: str) -> Any:
            several = [getattr(part, name) for part in parts]
            if isinstance(several[0], np.ndarray):
                return np.concatenate(several)
            return tuple(chain.from_iterable(several))

        shifted = [part.context + c for part, c in zip(parts, contexts, strict=False)]
        return cls(
            **{name: put(name) for name in (*_OF_CONTEXT, *_OF_ROW)},
            context=np.concatenate(shifted),
            unplaced=tuple(
                _moved(own, lambda i, r=r: i + r)  # type: ignore[misc]
                for part, r in zip(parts, rows, strict=False)
                for own in part.unplaced
            ),
            threshold=parts[0].threshold,
        )

    def part(self, kept: Booleans) -> RevealedBeliefs:
        """Return some of the contexts, kept[C]."""
        row = kept[self.context]
        position = (np.cumsum(row) - 1).tolist()

        def some(name: str, chosen: Booleans) -> Any:
            several = getattr(self, name)
            if isinstance(several, np.ndarray):
                return several[chosen]
            return tuple(compress(several, chosen))

        unplaced = some("unplaced", kept)
        return RevealedBeliefs(
            **{name: some(name, kept) for name in _OF_CONTEXT},
            **{name: some(name, row) for name in _OF_ROW},
            context=(np.cumsum(kept) - 1)[self.context[row]],
            unplaced=tuple(_moved(own, lambda i: position[i]) for own in unplaced),
            threshold=self.threshold,
        )

    def __len__(self) -> int:
        """Count the contexts."""
        return len(self.contexts)

    def rows(self, context: int) -> slice:
        """Return where a context's outcomes stand."""
        return slice(int(self._edges[context]), int(self._edges[context + 1]))

    def outcomes_of(self, context: int) -> tuple[str, ...]:
        """Return the outcomes of a context."""
        return self.outcome[self.rows(context)]

    @property
    def retained(self) -> Array:
        """Probability of all outcomes of a context together, [C]; NaN if one is unknown."""
        return self._sum(self.probability)

    @property
    def retained_low(self) -> Array:
        """Least retained mass, or the lower end of its interval where it was sampled, [C]."""
        return self._retained[0]

    @property
    def retained_high(self) -> Array:
        """Largest retained mass, or the upper end of its interval where it was sampled, [C]."""
        return self._retained[1]

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Why a context should not be trusted; empty where it may be, [C]."""
        unknown = self._sum(np.isnan(self.probability).astype(float))
        told = []
        for k, mass in enumerate(self.retained.tolist()):
            if unknown[k]:
                which = [
                    name
                    for name, p in zip(
                        self.outcomes_of(k), self.probability[self.rows(k)], strict=True
                    )
                    if np.isnan(p)
                ]
                told.append(f"no probability of {', '.join(which[:3])}")
            elif self.sources[k] == "sampled" and self.draws[k] == 0:
                told.append("no draws")
            elif mass < self.threshold:
                told.append(f"retained mass {mass:.3g} below {self.threshold:g}")
            elif mass <= 0:
                told.append("no outcome is possible")
            else:
                told.append("")
        return tuple(told)

    @property
    def flagged(self) -> Booleans:
        """Whether a context should not be trusted, [C]."""
        return np.array([bool(flag) for flag in self.flags])

    @property
    def normalised(self) -> Array:
        """Share of each outcome in the retained mass of its context, [R]."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Array = self.probability / self.retained[self.context]
        return share

    def to_frame(self) -> pd.DataFrame:
        """One row per context and outcome."""
        at = self.context

        of_context = {
            "scenario": self.scenarios, "context": self.contexts, "source": self.sources,
            "retained": self.retained, "retained_low": self.retained_low,
            "retained_high": self.retained_high, "draws": self.draws, "previous": self.previous,
            "flag": self.flags,
        }  # fmt: skip
        names = ("outcome", "probability", "low", "high", "count", "normalised", "truth")
        table = pd.DataFrame({name: getattr(self, name) for name in names})
        table = table.join(pd.DataFrame(of_context).iloc[at].reset_index(drop=True))
        order = ("scenario", "context", "outcome", "source", *names[1:], *list(of_context)[3:])
        return table[list(order)]

    def stored(self) -> pd.DataFrame:
        """Return all that is known as a table: `to_frame` with marks, unplaced and threshold.

        `of_frame` reads it, also from a file of it.
        """
        unplaced = []
        for k, several in enumerate(self.unplaced):
            begin = self.rows(k).start
            listed = [[u.mass, [i - begin for i in u.rows]] for u in several]
            unplaced.append(json.dumps(listed) if listed else "")
        marks = ["".join("1" if m else "0" for m in row) for row in self.marks.tolist()]
        return self.to_frame().assign(
            marks=marks,
            unplaced=[unplaced[k] for k in self.context.tolist()],
            threshold=self.threshold,
        )

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> RevealedBeliefs:
        """Read a table as `stored` gives it; contexts stand in the order in which they appear."""
        lacking = [name for name in (*_TEXTS, *_NUMBERS) if name not in frame]
        if lacking:
            raise ValueError(
                f"Beliefs have the columns {', '.join((*_TEXTS, *_NUMBERS))}; {lacking[0]} is "
                "missing. Give a table of RevealedBeliefs.stored."
            )
        if frame.empty:
            raise ValueError("Beliefs have one row at least; the table has none.")
        begins = ~frame.duplicated(["scenario", "context"])
        number = np.cumsum(begins.to_numpy()) - 1
        first = frame[begins]

        def each(name: str) -> tuple[str, ...]:
            return tuple(map(str, first[name]))

        def column(name: str) -> Array:
            return frame[name].to_numpy(dtype=float)

        edges = np.flatnonzero(begins.to_numpy())
        unplaced = tuple(
            tuple(Unplaced(mass, tuple(begin + i for i in rows)) for mass, rows in json.loads(told))
            if told
            else ()
            for told, begin in zip(each("unplaced"), edges.tolist(), strict=True)
        )
        marks = np.array([[sign == "1" for sign in row] for row in frame["marks"].astype(str)])
        return cls(
            contexts=each("context"),
            sources=each("source"),
            scenarios=each("scenario"),
            previous=each("previous"),
            draws=first["draws"].to_numpy(dtype=np.int64),
            context=number.astype(np.int64),
            outcome=tuple(map(str, frame["outcome"])),
            probability=column("probability"),
            low=column("low"),
            high=column("high"),
            count=frame["count"].to_numpy(dtype=np.int64),
            truth=column("truth"),
            marks=marks.reshape(len(frame), len(MARKS)),
            unplaced=unplaced,
            threshold=float(first["threshold"].iloc[0]),
        )

    @cached_property
    def _edges(self) -> Integers:
        return np.searchsorted(self.context, np.arange(len(self.contexts) + 1))

    def _sum(self, values: Array) -> Array:
        return np.bincount(self.context, values, len(self.contexts)).astype(np.float64)

    @cached_property
    def _retained(self) -> tuple[Array, Array]:
        low = self._sum(self.low)
        high = self._sum(self.probability) + np.array(
            [sum(unplaced.mass for unplaced in own) for own in self.unplaced]
        )
        sampled = self.draws > 0
        share = self._sum(self.probability)
        low[sampled], high[sampled] = wilson(
            share[sampled] * self.draws[sampled], self.draws[sampled].astype(float)
        )
        return low, np.minimum(high, 1.0)


def _moved(unplaced: Iterable[Unplaced], move: Callable[[int], int]) -> tuple[Unplaced, ...]:
    """Return what could not be placed, with other numbers of the rows."""
    return tuple(Unplaced(mass, tuple(move(i) for i in rows)) for mass, rows in unplaced)


def wilson(count: Array, n: Array, mass: float = CONFIDENCE) -> tuple[Array, Array]:
    """Return the interval of a share (Wilson 1927), elementwise; 0 to 1 without draws."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, np.maximum(n, 1.0), 1.0 - mass, method="wilson")
    # But for rounding none of all, and all of them, reach the end.
    return np.where(count <= 0, 0.0, low), np.where(count >= n, 1.0, high)


def _table(
    set_ups: Sequence[SetUp],
    *,
    sources: tuple[str, ...],
    probability: Sequence[Array] | Array,
    unplaced: Sequence[tuple[Unplaced, ...]],
    threshold: float,
) -> RevealedBeliefs:
    """Lay out contexts; the rows of `unplaced` count within their context."""
    edges = np.cumsum([0, *(len(set_up.outcomes) for set_up in set_ups)])
    p = np.concatenate([np.zeros(0), *(np.asarray(row, dtype=float) for row in probability)])
    high = p.copy()
    placed = []
    for own, begin in zip(unplaced, edges.tolist(), strict=False):
        placed.append(_moved(own, lambda i, begin=begin: begin + i))  # type: ignore[misc]
        for mass, rows in placed[-1]:
            high[list(rows)] += mass
    return RevealedBeliefs(
        sources=sources,
        draws=np.zeros(len(set_ups), dtype=np.int64),
        probability=p,
        low=np.where(np.isnan(p), 0.0, p),
        high=np.where(np.isnan(p), 1.0, np.minimum(high, 1.0)),
        count=np.full(len(p), NOT_COUNTED),
        unplaced=tuple(placed),
        threshold=threshold,
        **_facts(set_ups),
    )


def _counted(
    set_ups: Sequence[SetUp], counts: Sequence[Integers], others: Integers, *, threshold: float
) -> RevealedBeliefs:
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *counts])
    if (flat < 0).any() or (others < 0).any():
        raise ValueError("Counts are whole numbers from 0 on; got one below 0.")
    draws = np.array([own.sum() for own in counts], dtype=np.int64) + others
    facts = _facts(set_ups)
    n = draws[facts["context"]].astype(float)
    with np.errstate(invalid="ignore"):
        probability = flat / np.where(n > 0, n, np.nan)
    low, high = wilson(flat.astype(float), n)
    return RevealedBeliefs(
        sources=("sampled",) * len(set_ups),
        draws=draws,
        probability=probability,
        low=low,
        high=high,
        count=flat,
        unplaced=((),) * len(set_ups),
        threshold=threshold,
        **facts,
    )


def _facts(set_ups: Sequence[SetUp]) -> dict[str, Any]:
    """Return what is known of contexts beforehand, as fields of the table."""
    truths, marks = [np.zeros(0)], [np.zeros((0, len(MARKS)), dtype=bool)]
    for name, outcomes, told, _, previous, marked in set_ups:
        truth = None if told is None else np.asarray(told, dtype=float)
        if truth is not None and (
            truth.shape != (len(outcomes),)
            or not (truth >= 0).all()
            or abs(truth.sum() - 1) > ROUNDING
        ):
            raise ValueError(
                "The truth has a probability for each outcome, together 1; that of "
                f"{name!r} has {truth.size} for {len(outcomes)}, with a sum of {truth.sum():.6g}."
            )
        own = marks_of(outcomes, truth, previous) if marked is None else marked
        truths.append(np.full(len(outcomes), np.nan) if truth is None else truth)
        marks.append(np.asarray(own, dtype=bool))
    return {
        "contexts": tuple(set_up.name for set_up in set_ups),
        "scenarios": tuple(set_up.scenario for set_up in set_ups),
        "previous": tuple(set_up.previous for set_up in set_ups),
        "context": np.repeat(np.arange(len(set_ups)), [len(s.outcomes) for s in set_ups]),
        "outcome": tuple(name for set_up in set_ups for name in set_up.outcomes),
        "truth": np.concatenate(truths),
        "marks": np.concatenate(marks),
    }


def _set_ups(given: Sequence[SetUp] | None, outcomes: tuple[str, ...], n: int) -> tuple[SetUp, ...]:
    set_ups = tuple(given or (SetUp(f"context {k + 1}", outcomes) for k in range(n)))
    if len(set_ups) != n:
        raise ValueError(f"Each context has a set-up; got {len(set_ups)} for {n} contexts.")
    for set_up in set_ups:
        if set_up.outcomes != outcomes:
            raise ValueError(
                f"The outcomes that are read are those of the context; {set_up.name!r} has "
                f"{set_up.outcomes}, and {outcomes} were asked. Read contexts of different "
                "outcomes on their own and join them."
            )
    return set_ups


def _columns(environment: Environment) -> tuple[str, ...]:
    """Return the columns that say which context it is."""
    named = environment.own if isinstance(environment, BrokenOff) else environment.fields.stimulus
    return tuple(named)


def context_name(columns: Iterable[str], values: Sequence[Any]) -> str:
    """Return the name of a context, which its columns make."""
    return ", ".join(f"{name} {int(value)}" for name, value in zip(columns, values, strict=True))


def _check_prefixes(written: Sequence[tuple[str, int]], outcomes: Sequence[str]) -> None:
    for text, k in written:
        for other, j in written:
            if j != k and other.startswith(text):
                raise ValueError(
                    "Where an outcome begins another one, a rule has to tell when it is over; "
                    f"{outcomes[k]!r} begins {outcomes[j]!r}. Give extends=outcome_tree.extends, "
                    "and replies that go on behind the outcome."
                )


Tables = dict[tuple[str, ...], dict[str, float]]


def _tables(replies: Iterable[Sequence[ListedToken] | None], name: str) -> Tables:
    """Return the probabilities that were told, by the tokens before."""
    tables: Tables = {}
    for reply in replies:
        if reply is None:
            raise ValueError(
                "Beliefs are read from log-probabilities of tokens; a reply to "
                f"{name!r} has none. Ask for them (top_log_probabilities), or sample and count."
            )
        path: tuple[str, ...] = ()
        for told in reply:
            table = tables.setdefault(path, {})
            for token, value in ((told.token, told.log_probability), *told.alternatives):
                table.setdefault(token, float(np.exp(value)))
            path = (*path, told.token)
    if not tables:
        raise ValueError(f"Beliefs are read from at least one token; no reply to {name!r} has any.")
    for path, table in tables.items():
        total = sum(table.values())
        if not total <= 1 + 1e-3:  # interfaces round
            raise ValueError(
                f"Probabilities of tokens sum to 1 at most; behind {''.join(path)!r} in {name!r} "
                f"they sum to {total:.6g}. Give natural logarithms."
            )
    return tables


def _place(
    tables: Tables,
    written: Sequence[tuple[str, int]],
    n: int,
    extends: Extends | None,
    nothing_longer: bool,
) -> tuple[Array, tuple[Unplaced, ...]]:
    """Return what certainly lies on each of n outcomes, and what may lie on some."""
    certain = np.zeros(n)
    open_masses: dict[tuple[int, ...], float] = {}

    def leave(mass: float, among: Iterable[int]) -> None:
        rows = tuple(sorted(set(among)))
        if mass > NOTHING and rows:
            open_masses[rows] = open_masses.get(rows, 0.0) + mass

    waiting: list[tuple[tuple[str, ...], str, float]] = [((), "", 1.0)]
    while waiting:
        path, said, reached = waiting.pop()
        table = tables[path]
        unlisted = max(0.0, 1.0 - sum(table.values()))
        possible = _possible(said, written, extends)[1]
        leave(reached * unlisted, possible)
        for token, p in table.items():
            outcome, possible = _possible(said + token, written, extends)
            if outcome is not None:
                certain[outcome] += reached * p
            elif possible:
                over = nothing_longer and len(possible) == 1 and _said(said + token, written)
                if (*path, token) in tables:
                    waiting.append(((*path, token), said + token, reached * p))
                elif over:
                    certain[possible.pop()] += reached * p
                else:
                    leave(reached * p, possible)
    return certain, tuple(Unplaced(mass, rows) for rows, mass in open_masses.items())


def _said(text: str, written: Sequence[tuple[str, int]]) -> bool:
    """Tell whether a text has a whole spelling in it."""
    return any(text.startswith(spelling) for spelling, _ in written)


def _possible(
    said: str, written: Sequence[tuple[str, int]], extends: Extends | None
) -> tuple[int | None, set[int]]:
    """Return the outcome that a text has certainly said, if any, and else those it still may."""
    begun = {k for text, k in written if text.startswith(said) and text != said}
    settled: tuple[int, int] | None = None
    undecided: set[int] = set()
    for text, k in written:
        if not said.startswith(text):
            continue
        more = said[len(text) :]
        if extends is None:
            longer: bool | None = more[:1].isalnum()
        else:
            longer = extends(text, more) if more else None
        if longer is None:
            undecided.add(k)
        elif not longer and (settled is None or len(text) > settled[0]):
            settled = len(text), k
    if settled is not None and not begun and not undecided:
        return settled[1], set()
    return None, begun | undecided | (set() if settled is None else {settled[1]})
