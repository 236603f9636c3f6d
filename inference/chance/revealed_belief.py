"""Revealed beliefs: the probabilities with which a participant continues with each outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Outcome, Trials
from knownminds.environments.chance.context_grid import MARKS, ContextGrid
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.outcome_rates import CONFIDENCE, wilson

from .open_beliefs import set_bounds

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Source = Literal["exact", "top-k", "sampled"]
SOURCES: tuple[str, ...] = get_args(Source)

LITTLE_MASS = 0.5  # below this, the outcomes together are less probable than anything else
ROUNDING = 1e-6  # the sum of reported probabilities may exceed 1 by this
NOTHING = 1e-12  # probability that rounding alone may leave
NOT_COUNTED = -1
# The columns of a table that `of_frame` reads.
COLUMNS = ("scenario", "context", "outcome", "source", "previous", "marks", "unplaced",
           "probability", "count", "truth", "draws", "threshold")  # fmt: skip

# Says whether more text makes the last word or number of a text longer; None if it may.
Extends = Callable[[str, str], bool | None]


class ListedToken(Protocol):
    """A token of a reply with its alternatives; `llm_adapters.TokenLogProbability` is one."""

    @property
    def token(self) -> str:
        """The text of the token."""

    @property
    def log_probability(self) -> float:
        """Natural logarithm of its probability."""

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The tokens that could have stood there, with log-probabilities."""


class DescribedContext(NamedTuple):
    """The description of a context.

    Parameters
    ----------
    name : name of the context
    outcomes : the possible outcomes, in words
    truth : the exact probability of each; None if it is unknown
    scenario : the scenario it belongs to, such as "dice"
    previous : the outcome before, in words; empty if there was none
    marks : features that may draw an agent to each, [outcomes, 6], see `context_grid.MARKS`
    """

    name: str
    outcomes: tuple[str, ...]
    truth: Sequence[float] | Array | None = None
    scenario: str = ""
    previous: str = ""
    marks: Booleans | None = None


def set_ups_of(environment: Environment) -> tuple[DescribedContext, ...]:
    """Return the descriptions of an experiment's contexts, in the order of its grid.

    Raises
    ------
    ValueError : If the experiment does not ask for outcomes of a known probability.
    """
    if not isinstance(environment, ContextGrid):
        raise ValueError(
            "Beliefs are revealed where an outcome has to be stated, whose probability is known; "
            f"{environment.name} asks for none. Use coins, dice, choice, preference, "
            "counts or linked_coins."
        )
    if environment.form == "stated":
        raise ValueError(
            "Beliefs are revealed by the outcomes that are stated; these questions ask for their "
            "probability. Their errors are those of distribution_distance.stated_errors."
        )
    result = []
    for context in environment.contexts:
        observation = dict(zip(environment.factors, context.values, strict=True))
        truth = context.chance.probabilities
        said = tuple(environment.say((), k, observation) for k in range(len(truth)))
        before = ""
        if context.previous is not None:
            position = [n for n, number in enumerate(context.chance.outcomes)
                     if number == context.previous]  # fmt: skip
            # The earlier result may be impossible as the sum of both.
            before = said[position[0]] if position else str(context.previous)
        name = context_name(environment.factors, context.values)
        result.append(DescribedContext(name, said, truth, context.scenario, before, context.marks))
    return tuple(result)


class Unplaced(NamedTuple):
    """A probability of which only the possible outcomes are known, if any.

    Parameters
    ----------
    mass : how much
    rows : positions of the outcomes; the rest lies on something else
    """

    mass: float
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Belief:
    """Probabilities of the R outcomes of a context.

    Probabilities are those before normalising: the rest up to 1 lies on something that is no
    outcome.

    Parameters
    ----------
    name, outcomes, scenario, previous : As in `DescribedContext`.
    truth : The exact probabilities of the set-up, [R]; NaN if they are unknown.
    marks : Features that may draw an agent to each outcome, whatever its probability, [R, 6].
    source : "exact": token log-probabilities of all outcomes; "top-k": those of the most probable
        tokens alone, with bounds; "sampled": counts of continuations.
    probability : Before normalising, [R]; NaN if unknown. From top-k tables: the part that
        certainly lies on the outcome.
    unplaced : The probability that could not be placed; empty if all was placed.
    count : How often each outcome was sampled, [R]; -1 without sampling.
    draws : How many continuations were sampled, outcomes and others; 0 without sampling.
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
        set_up: DescribedContext,
        source: Source,
        probability: Array,
        threshold: float = LITTLE_MASS,
        *,
        unplaced: Iterable[Unplaced] = (),
        count: Integers | None = None,
        draws: int = 0,
    ) -> Belief:
        """Join probabilities to the description of a context."""
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
            marks = np.zeros((len(outcomes), len(MARKS)), dtype=bool)
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
    def top_k(
        cls,
        set_up: DescribedContext,
        replies: Iterable[Sequence[ListedToken] | None],
        extends: Extends,
        threshold: float = LITTLE_MASS,
    ) -> Belief:
        """Read the most probable tokens of replies to a context, and bound the rest.

        The tables of all replies are put together as a tree, as far as they were seen. The
        probability that a table does not list is unplaced, and so is that of texts beyond the
        tables: it may lie on any outcome that is still possible from there, or on none. A reply
        that ends after an outcome counts as that outcome, unless the outcome begins another one.
        Then no table tells how probable the end was: a full stop after 7, for instance, leaves 7.5
        open.

        Parameters
        ----------
        replies : The `log_probabilities` of one or more replies.
        extends : The rule for when an outcome is complete: it says whether more text makes the last
            word or number of a text longer, as `continuation_tree.extends` of the language models
            does.

        Raises
        ------
        ValueError : If a reply has no log-probabilities, or they are not valid.
        """
        # An outcome may be said with a space before it or without.
        written = [(s + name, k) for k, name in enumerate(set_up.outcomes) for s in (" ", "")]
        tables = _tables(replies, set_up.name)
        certain, unplaced = _place(tables, written, len(set_up.outcomes), extends)
        return cls.of(set_up, "top-k", certain, threshold, unplaced=unplaced)

    @classmethod
    def counted(
        cls,
        set_up: DescribedContext,
        counts: ArrayLike,
        others: int,
        threshold: float = LITTLE_MASS,
    ) -> Belief:
        """Return a belief, given how often each outcome came, [R], and how often something else."""
        count = np.asarray(counts)
        if count.shape != (len(set_up.outcomes),) or (count < 0).any() or others < 0:
            raise ValueError(
                "Counts are whole numbers from 0 on, one for each outcome and one for the rest; "
                f"got {count.tolist()} and {others} for {len(set_up.outcomes)} outcomes."
            )
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
        most = self.retained + sum(mass for mass, _ in self.unplaced)
        return float(self.ends[0].sum()), min(most, 1.0)

    @property
    def normalised(self) -> Array:
        """Share of each outcome in the retained mass, [R]; NaN where that is 0 or unknown."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Array = self.probability / self.retained
        return share

    @cached_property
    def flag(self) -> str:
        """Why the context should not be trusted; empty if it may be."""
        unknown = [self.outcomes[k] for k in np.flatnonzero(np.isnan(self.probability))]
        if unknown:
            return f"no probability of {', '.join(unknown[:3])}"
        if self.retained < self.threshold:
            return f"retained mass {self.retained:.3g} below {self.threshold:g}"
        return "" if self.retained > 0 else "no outcome is possible"

    def interval(self, sets: Array, mass: float = CONFIDENCE) -> tuple[Array, Array]:
        """Return the ends of the normalised probability of sets of outcomes, [sets] each.

        For counts they are those of Wilson's interval; otherwise the least and the largest possible
        value.

        Parameters
        ----------
        sets : 1 for members, 0 for others, [sets, R].
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
    def of_trials(cls, trials: Trials | pd.DataFrame, environment: Environment) -> RevealedBeliefs:
        """Count the answers to each context of an experiment over all sessions.

        Answers that name no outcome (malformed, refused, empty, cut off) count as something else,
        which lowers the retained mass. Calls that failed do not count at all. Contexts stand in the
        order of their first appearance.
        """
        frame = trials.frame if isinstance(trials, Trials) else trials
        known = {set_up.name: set_up for set_up in set_ups_of(environment)}
        assert isinstance(environment, ContextGrid)
        if "outcome" in frame:
            frame = frame[frame["outcome"] != Outcome.ERROR.value]
        beliefs = []
        for values, group in frame.groupby(list(environment.factors), sort=False):
            name = context_name(environment.factors, values)
            if name not in known:
                raise ValueError(
                    f"Trials must be of the grid of {environment!r}; {name} is not a context "
                    "of it. Use the settings of the experiment that they are of."
                )
            action = pd.to_numeric(group["action"], errors="coerce").to_numpy(dtype=float)
            answer = action[np.isfinite(action) & (action >= 0)].astype(np.int64)
            count = np.bincount(answer, minlength=len(known[name].outcomes))
            others = len(action) - len(answer)
            beliefs.append(Belief.counted(known[name], count, others))
        return cls(tuple(beliefs))

    @classmethod
    def join(cls, *parts: RevealedBeliefs) -> RevealedBeliefs:
        """Return one table with the rows of all parts, one part after the other."""
        return cls(tuple(belief for part in parts for belief in part))

    def __len__(self) -> int:
        return len(self.beliefs)

    def __iter__(self) -> Iterator[Belief]:
        return iter(self.beliefs)

    def __getitem__(self, context: int) -> Belief:
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


def context_name(columns: Iterable[str], values: Sequence[Any]) -> str:
    """Return the name of a context, made from its columns."""
    return ", ".join(f"{name} {int(value)}" for name, value in zip(columns, values, strict=True))


Tables = dict[tuple[str, ...], dict[str, float]]


def _tables(replies: Iterable[Sequence[ListedToken] | None], name: str) -> Tables:
    """Return the probabilities that were reported, by the tokens before."""
    tables: Tables = {}
    for reply in replies:
        if reply is None:
            raise ValueError(
                "Beliefs are read from log-probabilities of tokens; a reply to "
                f"{name!r} has none. Ask for them (top_log_probabilities), or sample and count."
            )
        path: tuple[str, ...] = ()
        for entry in reply:
            table = tables.setdefault(path, {})
            for token, value in ((entry.token, entry.log_probability), *entry.alternatives):
                table.setdefault(token, float(np.exp(value)))
            path = (*path, entry.token)
    if not tables:
        raise ValueError(f"Beliefs are read from at least one token; no reply to {name!r} has any.")
    for path, table in tables.items():
        total = sum(table.values())
        if not total <= 1 + 1e-3:  # interfaces round their numbers
            raise ValueError(
                f"Probabilities of tokens sum to 1 at most; behind {''.join(path)!r} in {name!r} "
                f"they sum to {total:.6g}. Give natural logarithms."
            )
    return tables


def _place(
    tables: Tables, written: Sequence[tuple[str, int]], n: int, extends: Extends
) -> tuple[Array, tuple[Unplaced, ...]]:
    """Return the certain mass of each of n outcomes, and the masses that may lie on some."""
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
                over = len(possible) == 1 and any((said + token).startswith(s) for s, _ in written)
                if (*path, token) in tables:
                    waiting.append(((*path, token), said + token, reached * p))
                elif over:
                    certain[possible.pop()] += reached * p
                else:
                    leave(reached * p, possible)
    return certain, tuple(Unplaced(mass, rows) for rows, mass in open_masses.items())


def _possible(
    said: str, written: Sequence[tuple[str, int]], extends: Extends
) -> tuple[int | None, set[int]]:
    """Return the outcome that a text has certainly said, if any, and those still possible."""
    begun = {k for text, k in written if text.startswith(said) and text != said}
    settled: tuple[int, int] | None = None
    undecided: set[int] = set()
    for text, k in written:
        if not said.startswith(text):
            continue
        more = said[len(text) :]
        longer = extends(text, more) if more else None
        if longer is None:
            undecided.add(k)
        elif not longer and (settled is None or len(text) > settled[0]):
            settled = len(text), k
    if settled is not None and not begun and not undecided:
        return settled[1], set()
    return None, begun | undecided | (set() if settled is None else {settled[1]})
