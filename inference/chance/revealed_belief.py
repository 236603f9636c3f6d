"""Revealed beliefs: the probabilities with which a participant goes on with each outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Outcome, Trials
from knownminds.environments.chance.outcome_grid import MARKS, BrokenOff
from knownminds.environments.later import pandas as pd

from .open_beliefs import set_bounds

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Source = Literal["exact", "top-k", "sampled"]
SOURCES: tuple[str, ...] = get_args(Source)

LITTLE_MASS = 0.5  # below it, the outcomes together are less probable than anything else
CONFIDENCE = 0.95  # of the intervals of sampled shares
ROUNDING = 1e-6  # by which told probabilities may exceed 1 together
NOTHING = 1e-12  # probability that is left by rounding alone
NOT_COUNTED = -1
# Columns of a table that `of_frame` reads.
COLUMNS = ("scenario", "context", "outcome", "source", "previous", "marks", "unplaced",
           "probability", "count", "truth", "draws", "threshold")  # fmt: skip
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
    rows : positions of the outcomes; what lies on none of them is something else
    """

    mass: float
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Belief:
    """Probabilities of the R outcomes of a context.

    They are those before normalising: what is missing to 1 is on something that is no outcome.

    Parameters
    ----------
    name, outcomes, scenario, previous : As in `SetUp`.
    truth : The exact probabilities of the set-up, [R]; NaN if they are not known.
    marks : What may draw an agent to each outcome, whatever its probability, [R, 6].
    source : "exact": token log-probabilities of all outcomes; "top-k": those of the most probable
        tokens alone, with bounds; "sampled": counts of continuations.
    probability : Before normalising, [R]; NaN if it is not known. From top-k tables: what certainly
        lies on the outcome.
    unplaced : The probability that could not be placed; empty where all was.
    count : How often each outcome was sampled, [R]; -1 where nothing was.
    draws : Continuations that were sampled, outcomes and others; 0 where none were.
    threshold : Least retained mass of a context that is not flagged.
    """

    name: str
    outcomes: tuple[str, ...]
    scenario: str
    previous: str
    truth: Array
    marks: Booleans
    source: str
    probability: Array
    unplaced: tuple[Unplaced, ...]
    count: Integers
    draws: int
    threshold: float = LITTLE_MASS

    def __post_init__(self) -> None:
        """Check that the numbers can be probabilities of different outcomes."""
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is a share from 0 to 1; got {self.threshold!r}.")
        total = float(np.nansum(self.probability))
        if total > 1 + ROUNDING:
            raise ValueError(
                f"Probabilities of a context sum to 1 at most; in {self.name!r} they sum to "
                f"{total:.6g}. Give natural logarithms of probabilities, or counts of draws."
            )
        if len(set(self.outcomes)) < len(self.outcomes):
            raise ValueError(
                f"The outcomes of a context differ; {self.name!r} has {self.outcomes}."
            )

    @classmethod
    def of(
        cls,
        set_up: SetUp,
        source: Source,
        probability: Array,
        threshold: float,
        *,
        unplaced: Iterable[Unplaced] = (),
        count: Integers | None = None,
        draws: int = 0,
    ) -> Belief:
        """Join probabilities to what is known of a context beforehand."""
        name, outcomes, known, scenario, previous, marks = set_up
        truth = None if known is None else np.asarray(known, dtype=float)
        if truth is not None and (
            truth.shape != (len(outcomes),)
            or not (truth >= 0).all()
            or abs(truth.sum() - 1) > ROUNDING
        ):
            raise ValueError(
                "The truth has a probability for each outcome, together 1; that of "
                f"{name!r} has {truth.size} for {len(outcomes)}, with a sum of {truth.sum():.6g}."
            )
        if marks is None:
            marks = marks_of(outcomes, truth, previous)
        return cls(
            name=name,
            outcomes=outcomes,
            scenario=scenario,
            previous=previous,
            truth=np.full(len(outcomes), np.nan) if truth is None else truth,
            marks=np.asarray(marks, dtype=bool),
            source=source,
            probability=np.asarray(probability, dtype=float),
            unplaced=tuple(unplaced),
            count=np.full(len(outcomes), NOT_COUNTED) if count is None else count,
            draws=draws,
            threshold=threshold,
        )

    @classmethod
    def counted(cls, set_up: SetUp, count: Integers, others: int, threshold: float) -> Belief:
        """Read how often each outcome came, [R], and how often something else."""
        if (count < 0).any() or others < 0:
            raise ValueError("Counts are whole numbers from 0 on; got one below 0.")
        draws = int(count.sum()) + int(others)
        with np.errstate(invalid="ignore"):
            probability = count / (draws or np.nan)
        return cls.of(set_up, "sampled", probability, threshold, count=count, draws=draws)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Bounds of the probabilities, or their 95% interval where sampled (Wilson 1927), [R]."""
        if self.source == "sampled":
            n = np.full(len(self.count), float(self.draws))
            return wilson(self.count.astype(float), n)
        high = np.nan_to_num(self.probability, nan=1.0)
        for mass, rows in self.unplaced:
            high[list(rows)] += mass
        return np.nan_to_num(self.probability), np.minimum(high, 1.0)

    @property
    def retained(self) -> float:
        """Probability of all outcomes together; NaN if one is unknown."""
        return float(self.probability.sum())

    @property
    def retained_ends(self) -> tuple[float, float]:
        """Least and largest retained mass, or its 95% interval where it was sampled."""
        if self.draws:
            draws = float(self.draws)
            low, high = wilson(np.array([self.retained * draws]), np.array([draws]))
            return float(low[0]), float(high[0])
        high = self.retained + sum(mass for mass, _ in self.unplaced)
        return float(self.ends[0].sum()), min(high, 1.0)

    @property
    def normalised(self) -> Array:
        """Share of each outcome in the retained mass, [R]; NaN where that is 0 or unknown."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Array = self.probability / self.retained
        return share

    @cached_property
    def flag(self) -> str:
        """Why the context should not be trusted; empty where it may be."""
        unknown = [self.outcomes[k] for k in np.flatnonzero(np.isnan(self.probability))]
        if unknown:
            return f"no probability of {', '.join(unknown[:3])}"
        if self.retained < self.threshold:
            return f"retained mass {self.retained:.3g} below {self.threshold:g}"
        return "" if self.retained > 0 else "no outcome is possible"

    def interval(self, sets: Array, mass: float = CONFIDENCE) -> tuple[Array, Array]:
        """Return the ends of the normalised probability of sets of outcomes, [sets] each.

        Those of Wilson's interval of counts, or the least and the largest that is possible.

        Parameters
        ----------
        sets
            1 for members, 0 for others, [sets, R].
        """
        if not self.draws:
            return set_bounds(self.probability, self.unplaced, sets)
        counts = self.count.astype(float)
        return wilson(sets @ counts, np.full(len(sets), counts.sum()), mass)


@dataclass(frozen=True, eq=False)
class RevealedBeliefs:
    """Probabilities of all outcomes in C contexts, one of R rows per context and outcome."""

    beliefs: tuple[Belief, ...]

    @classmethod
    def exact(
        cls,
        probabilities: ContinuationProbabilities,
        *,
        set_ups: Sequence[SetUp] | None = None,
        threshold: float = LITTLE_MASS,
    ) -> RevealedBeliefs:
        """Read the probabilities of whole outcomes under a local model.

        Outcomes whose log-probability is NaN stay unknown, and their context is flagged.

        Parameters
        ----------
        probabilities
            As `llm_adapters.outcome_probabilities` gives it: one prompt per context.
        set_ups
            What the prompts are about, such as `set_ups_of` an experiment; None for nothing known.
            Contexts of other outcomes are read separately and joined by `join`.
        """
        p = np.exp(np.asarray(probabilities.log_probabilities, dtype=float))
        known = _set_ups(set_ups, tuple(probabilities.outcomes), len(p))
        pairs = zip(known, p, strict=True)
        return cls(tuple(Belief.of(set_up, "exact", row, threshold) for set_up, row in pairs))

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
        beliefs = []
        known = _set_ups(set_ups, tuple(outcomes), len(replies))
        for set_up, several in zip(known, replies, strict=True):
            tables = _tables(several, set_up.name)
            certain, unplaced = _place(tables, written, len(outcomes), extends, nothing_longer)
            beliefs.append(Belief.of(set_up, "top-k", certain, threshold, unplaced=unplaced))
        return cls(tuple(beliefs))

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
        rows = zip(_set_ups(set_ups, tuple(outcomes), len(table)), table, other, strict=True)
        return cls(tuple(Belief.counted(*row, threshold) for row in rows))

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
        assert isinstance(environment, BrokenOff)
        if "outcome" in frame:
            frame = frame[frame["outcome"] != Outcome.ERROR.value]
        beliefs = []
        for values, group in frame.groupby(list(environment.own), sort=False):
            name = context_name(environment.own, values)
            if name not in known:
                raise ValueError(
                    f"Trials are of the grid of {environment!r}; {name} is no context of it. Use "
                    "the settings of the experiment that they are of."
                )
            action = pd.to_numeric(group["action"], errors="coerce").to_numpy(dtype=float)
            answer = action[np.isfinite(action) & (action >= 0)].astype(np.int64)
            count = np.bincount(answer, minlength=len(known[name].outcomes))
            others = len(action) - len(answer)
            beliefs.append(Belief.counted(known[name], count, others, threshold))
        return cls(tuple(beliefs))

    @classmethod
    def join(cls, *parts: RevealedBeliefs) -> RevealedBeliefs:
        """Put tables one below the other."""
        return cls(tuple(belief for part in parts for belief in part))

    def __len__(self) -> int:
        """Count the contexts."""
        return len(self.beliefs)

    def __iter__(self) -> Iterator[Belief]:
        """Go through the contexts."""
        return iter(self.beliefs)

    def __getitem__(self, context: int) -> Belief:
        """Return the belief in a context, by position."""
        return self.beliefs[context]

    @property
    def context(self) -> Integers:
        """Position of the context of each row, [R]."""
        return np.repeat(np.arange(len(self)), [len(belief.outcomes) for belief in self])

    @property
    def normalised(self) -> Array:
        """Share of each outcome in the retained mass of its context, [R]."""
        return np.concatenate([np.zeros(0), *(belief.normalised for belief in self)])

    @property
    def flagged(self) -> Booleans:
        """Whether a context should not be trusted, [C]."""
        return np.array([bool(belief.flag) for belief in self])

    def to_frame(self) -> pd.DataFrame:
        """One row per context and outcome, with all that `of_frame` reads."""
        parts = []
        for belief in self:
            low, high = belief.ends
            least, most = belief.retained_ends
            placed = [[mass, list(rows)] for mass, rows in belief.unplaced]
            columns = {
                "scenario": belief.scenario, "context": belief.name, "outcome": belief.outcomes,
                "source": belief.source, "probability": belief.probability, "low": low,
                "high": high, "count": belief.count, "normalised": belief.normalised,
                "truth": belief.truth, "retained": belief.retained, "retained_low": least,
                "retained_high": most, "draws": belief.draws, "previous": belief.previous,
                "flag": belief.flag,
                "marks": ["".join("1" if m else "0" for m in row) for row in belief.marks.tolist()],
                "unplaced": json.dumps(placed) if placed else "", "threshold": belief.threshold,
            }  # fmt: skip
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> RevealedBeliefs:
        """Read a table as `to_frame` gives it; contexts stand in the order of their appearance."""
        lacking = [name for name in COLUMNS if name not in frame]
        if lacking:
            raise ValueError(
                f"Beliefs have the columns {', '.join(COLUMNS)}; {lacking[0]} is missing. Give a "
                "table of RevealedBeliefs.to_frame."
            )
        if frame.empty:
            raise ValueError("Beliefs have one row at least; the table has none.")
        beliefs = []
        for _, rows in frame.groupby(["scenario", "context"], sort=False):
            first = rows.iloc[0]
            unplaced = json.loads(first["unplaced"] or "[]")
            belief = Belief(
                name=str(first["context"]),
                outcomes=tuple(map(str, rows["outcome"])),
                scenario=str(first["scenario"]),
                previous=str(first["previous"]),
                truth=rows["truth"].to_numpy(dtype=float),
                marks=np.array(
                    [[sign == "1" for sign in row] for row in rows["marks"].astype(str)]
                ),
                source=str(first["source"]),
                probability=rows["probability"].to_numpy(dtype=float),
                unplaced=tuple(Unplaced(mass, tuple(positions)) for mass, positions in unplaced),
                count=rows["count"].to_numpy(dtype=np.int64),
                draws=int(first["draws"]),
                threshold=float(first["threshold"]),
            )
            beliefs.append(belief)
        return cls(tuple(beliefs))


def wilson(count: Array, n: Array, mass: float = CONFIDENCE) -> tuple[Array, Array]:
    """Return the interval of a share (Wilson 1927), elementwise; 0 to 1 without draws."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, np.maximum(n, 1.0), 1.0 - mass, method="wilson")
    # But for rounding none of all, and all of them, reach the end.
    return np.where(count <= 0, 0.0, low), np.where(count >= n, 1.0, high)


def _set_ups(given: Sequence[SetUp] | None, outcomes: tuple[str, ...], n: int) -> tuple[SetUp, ...]:
    set_ups = tuple(given or (SetUp(f"context {k + 1}", outcomes) for k in range(n)))
    if len(set_ups) != n:
        raise ValueError(f"Each context has a set-up; got {len(set_ups)} for {n} contexts.")
    for set_up in set_ups:
        if set_up.outcomes != outcomes:
            raise ValueError(
                f"The outcomes that are read are those of the context; {set_up.name!r} has "
                f"{set_up.outcomes}, and {outcomes} are read. Read contexts of different "
                "outcomes separately and join them."
            )
    return set_ups


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
