"""Trials prepared for a decider's likelihood: statements in order, decisions counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents.model import Integers
from knownminds.agents.parameters import Array

YES, DEFER, NO = 0, 1, 2
BELIEF, DECISION, PART, CONDITIONAL, DEALT = 0, 1, 2, 3, 4  # what a trial asks for
PLAIN = 0  # the elicitation whose answer goes with the decision

EDGE = 1e-9  # least distance of a probability from 0 and 1 before its log odds are taken
FAR = 1e9  # log odds at the outer ends of the outermost cells; nothing lies beyond
NOTHING_LEFT = 1e-6  # if nothing is left, further states have at most this
RUN = 16  # so many different decisions are one sequence

# Stated probabilities are multiples of .01. A number stated as k / 100 lies in cell k. A cell has
# ends in log odds, and the logarithm of its width as a probability.
_ENDS = np.concatenate([[0.0], (np.arange(100) + 0.5) / 100.0, [1.0]])
LOW, HIGH = (np.clip(logit(ends), -FAR, FAR) for ends in (_ENDS[:-1], _ENDS[1:]))
LOG_WIDTH = np.log(np.diff(_ENDS))

# A place has the number of times an answer was given and its kind (BELIEF, PART or DECISION). A
# statement has the log odds of the state, the log odds that are added, and how far the dial moves
# them (for a part: its probability if the state were certain, and if it were excluded). It also has
# the ends of its cell in log odds, what is added to the log odds of the state before a part, and
# the inverse of the number of units over which a lapse spreads. A decision has the number stated,
# the action and the state.
STATEMENTS = ("odds", "more", "moved", "low", "high", "plus", "per")
DECISIONS = ("stated", "chosen", "state")


def log_odds(p: Any) -> Any:
    """Return the log odds of a probability, held away from 0 and 1."""
    inside = np.clip(p, EDGE, 1.0 - EDGE)
    return np.log(inside / (1.0 - inside))


def given(posterior: Any, marginal: Any, conditional: Any) -> tuple[Any, Any]:
    """Return the probability of a part given the state, and given its absence.

    An agent that knows P(part | state) and believes in the state with probability b expects the
    part with probability P(part) (b q / m + (1 - b) (1 - q) / (1 - m)). Here m is the true
    probability of the state, and q is that given the part.
    """
    m, q = np.clip(marginal, EDGE, 1.0 - EDGE), np.clip(conditional, EDGE, 1.0 - EDGE)
    present, absent = posterior * q / m, posterior * (1.0 - q) / (1.0 - m)
    return np.where(q == m, posterior, present), np.where(q == m, posterior, absent)


def places_of(
    subject: Integers,
    sequence: Integers,
    columns: Mapping[str, Array],
    moves: Callable[[Any, Any], Any],
    by_state: bool,
) -> tuple[Integers, Integers, dict[str, Array]]:
    """Bring trials into the form that the likelihood reads: statements in order, decisions counted.

    Equal decisions of a subject (with the same plainly stated number, the same action and, with
    `by_state`, the same state) become one row with a count, wherever they stood. Returns subject
    and sequence of each row, and its columns. A state of a distribution counts as a part of what is
    not yet dealt out, in the hundredths that are left.
    """
    stated, statements = _statements(sequence, columns, moves)
    whose, decisions = _decisions(subject, sequence, columns, by_state)
    # Sequences are short, so that those of one subject stand side by side in lanes.
    within = np.arange(len(whose)) - np.searchsorted(whose, whose)
    run = int(sequence.max(initial=-1)) + 1 + within // RUN
    gone = {name: np.zeros(len(stated)) for name in DECISIONS}
    absent = {name: np.zeros(len(whose)) for name in STATEMENTS}
    parts = (statements | gone, decisions | absent)
    return (
        np.concatenate([subject[stated], whose]),
        np.concatenate([sequence[stated], run]),
        {name: np.concatenate([part[name] for part in parts]).astype(float) for name in parts[0]},
    )


def _statements(
    sequence: Integers, columns: Mapping[str, Array], moves: Callable[[Any, Any], Any]
) -> tuple[Integers, dict[str, Array]]:
    """Return which trials state something that depends on the belief, and their columns."""
    response, question_codes = columns["response"], columns["question"]
    hundredths, *left = _dealt(sequence, columns)
    stated = (
        (response >= 0.0)
        & (question_codes >= 0.0)
        & (question_codes != DECISION)
        & (hundredths > 0)
    )
    stating = np.flatnonzero(stated)
    rows = {name: column[stating] for name, column in columns.items()}
    whole, question, odds = hundredths[stating], rows["question"], log_odds(rows["marginal"])
    cell = np.clip(np.floor(100.0 * rows["response"] + 0.5), 0, whole).astype(np.int64)
    shared = question == DEALT
    parted = shared | (question == PART)
    more = np.where(question == CONDITIONAL, log_odds(rows["posterior"]) - odds, 0.0)
    sides = given(rows["posterior"], rows["marginal"], rows["conditional"])
    rest = [np.maximum(side[stating], EDGE) for side in left]
    present, absent = (
        np.where(shared, np.minimum(p / most, 1.0), p) for p, most in zip(sides, rest, strict=True)
    )
    return stating, {
        "response": np.ones(len(stating)),
        "kind": np.where(parted, PART, BELIEF),
        "odds": odds,
        "more": np.where(parted, present, more),
        "moved": np.where(parted, absent, moves(question, rows["elicitation"])),
        "low": np.where(shared, end_of(cell - 0.5, whole), LOW[cell]),
        "high": np.where(shared, end_of(cell + 0.5, whole), HIGH[cell]),
        "plus": np.where(shared, np.log(rest[0] / rest[1]), 0.0),
        "per": 100.0 / whole,
    }


def _decisions(
    subject: Integers, sequence: Integers, columns: Mapping[str, Array], by_state: bool
) -> tuple[Integers, dict[str, Array]]:
    """Return the subject of each group of equal decisions, and the columns of the groups.

    The number that belongs to a decision is the last one stated plainly in its repetition.
    """
    repetition, question = columns["repetition"], columns["question"]
    plain = (columns["response"] >= 0.0) & (question == BELIEF) & (columns["elicitation"] == PLAIN)
    acts = (question == DECISION) & (columns["action"] >= 0.0)
    key = sequence * (int(repetition.max(initial=0.0)) + 2) + repetition
    plain, acts = (np.flatnonzero(rows & (repetition >= 0.0)) for rows in (plain, acts))
    plain = plain[np.argsort(key[plain], kind="stable")]
    last = np.searchsorted(key[plain], key[acts], side="right") - 1
    goes = last >= 0
    goes[goes] = key[plain[last[goes]]] == key[acts[goes]]
    acts, last = acts[goes], last[goes]
    p, chosen = columns["response"][plain[last]], np.minimum(columns["action"][acts], NO)
    state = columns["state"][acts] if by_state else np.zeros(len(acts))
    rows = np.stack([subject[acts].astype(float), p, chosen, state])
    (whose, p, chosen, state), count = np.unique(rows, axis=1, return_counts=True)
    return whose.astype(np.int64), {
        "response": count,
        "kind": np.full(len(p), DECISION),
        "stated": p,
        "chosen": chosen,
        "state": state,
    }


def _dealt(
    sequence: Integers, columns: Mapping[str, Array]
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return how much of a distribution is left before each trial, three arrays of [trials].

    They are the hundredths left, and the probability of the states that are left, given the state
    and given its absence. A trial outside any distribution has 100, 1 and 1. No hundredths are left
    for a state whose answer tells nothing: the last state, and a state after a missing number.
    """
    question, part, repetition = columns["question"], columns["part"], columns["repetition"]
    hundredths = np.full(len(question), 100, dtype=np.int64)
    present, absent = np.ones((2, len(question)))
    rows = np.flatnonzero(question == DEALT)
    if not len(rows):
        return hundredths, present, absent
    order = rows[np.lexsort((part[rows], repetition[rows], sequence[rows]))]
    same = (np.diff(sequence[order]) == 0) & (np.diff(repetition[order]) == 0)
    begins = np.concatenate([[True], ~same])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - first
    shares = np.floor(100.0 * columns["response"][order] + 0.5)
    shares = np.where(shares >= 0, shares, np.nan)
    exact = (columns[name][order] for name in ("posterior", "marginal", "conditional"))
    of_present, of_absent = given(*exact)

    def before(values: Array) -> Array:
        """Return the sum over the earlier states of the same distribution."""
        sums = np.zeros(len(values))
        for k in range(1, int(rank.max()) + 1):
            later = np.flatnonzero(rank == k)
            sums[later] = sums[later - 1] + values[later - 1]
        return sums

    present[order], absent[order] = 1.0 - before(of_present), 1.0 - before(of_absent)
    left = 100.0 - before(shares)
    # The earlier states are known only if all of them have a number.
    known = np.isfinite(left) & (part[order] == rank)
    rest = np.maximum(present[order] - of_present, absent[order] - of_absent)
    held = known & (rest > NOTHING_LEFT)
    hundredths[order] = np.where(held, np.maximum(np.nan_to_num(left), 0.0), 0.0).astype(np.int64)
    return hundredths, present, absent


def end_of(hundredths: NDArray[np.floating[Any]], whole: NDArray[np.int64]) -> Array:
    """Return the end of a cell of so many hundredths, out of those that were left, in log odds."""
    return np.asarray(np.clip(logit(np.clip(hundredths / whole, 0.0, 1.0)), -FAR, FAR))
