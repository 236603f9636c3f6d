"""What trials become before a decider's likelihood: statements in order, decisions counted."""

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

EDGE = 1e-9  # probabilities are this far from 0 and 1 where their log odds are taken
FAR = 1e9  # log odds beyond which nothing lies: the ends of the outermost cells
NOTHING_LEFT = 1e-6  # what further states of a distribution can have, at most, where none is left
RUN = 16  # so many decisions that differ are one sequence

# Stated probabilities are multiples of .01. Those stated as k / 100 lie in cell k: its ends in log
# odds, and the logarithm of its width as a probability.
_ENDS = np.concatenate([[0.0], (np.arange(100) + 0.5) / 100.0, [1.0]])
LOW, HIGH = (np.clip(logit(ends), -FAR, FAR) for ends in (_ENDS[:-1], _ENDS[1:]))
LOG_WIDTH = np.log(np.diff(_ENDS))

# Columns of places: how often an answer was given, the kind (BELIEF, PART or DECISION); of what is
# stated the log odds of the state, the log odds that are added and how far the dial moves them (of
# a part: its probability if the state were certain, and if it were excluded), the ends of the cell
# in log odds, what is added to the log odds of the state before a part, and over how many units an
# answer that is a lapse spreads, inverted; of decisions the number stated, the action, the state.
STATEMENTS = ("odds", "more", "moved", "low", "high", "plus", "per")
DECISIONS = ("stated", "chosen", "state")


def log_odds(p: Any) -> Any:
    """Return the log odds of a probability, held away from 0 and 1."""
    inside = np.clip(p, EDGE, 1.0 - EDGE)
    return np.log(inside / (1.0 - inside))


def given(posterior: Any, marginal: Any, conditional: Any) -> tuple[Any, Any]:
    """Return the probability of a part given the state, and given its absence.

    Who knows P(part | state) and believes the state with some probability expects the part with
    P(part) (believed q / m + (1 - believed) (1 - q) / (1 - m)): m is the true probability of the
    state, q that given the part.
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

    Decisions of a subject that were alike (the number stated plainly, the action and, with
    `by_state`, the state) are one row with a count, wherever they stood. Returns subject and
    sequence of each row, and its columns. A state of a distribution is a part of those not yet
    dealt out, in hundredths that are left.
    """
    stated, statements = _statements(sequence, columns, moves)
    whose, decisions = _decisions(subject, sequence, columns, by_state)
    # Short sequences, so that those of one subject stand side by side in lanes.
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
    """Return which trials state something that tells of the belief, and their columns."""
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
    """Return whose decisions that are alike are, and their columns.

    The number that goes with a decision is the last one stated plainly in its repetition.
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
    """Return what of a distribution is left before each trial, [trials] each.

    In hundredths, and as the probability that the states left have given the state, and given its
    absence; 100, 1 and 1 for what is of no distribution. No hundredths are left for a state of
    which nothing can be learnt: the last, and one before which a number is missing.
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
        """Return the sum over the states before, in the same distribution."""
        sums = np.zeros(len(values))
        for k in range(1, int(rank.max()) + 1):
            later = np.flatnonzero(rank == k)
            sums[later] = sums[later - 1] + values[later - 1]
        return sums

    present[order], absent[order] = 1.0 - before(of_present), 1.0 - before(of_absent)
    left = 100.0 - before(shares)
    # Which states come before is known by their numbers alone.
    known = np.isfinite(left) & (part[order] == rank)
    rest = np.maximum(present[order] - of_present, absent[order] - of_absent)
    held = known & (rest > NOTHING_LEFT)
    hundredths[order] = np.where(held, np.maximum(np.nan_to_num(left), 0.0), 0.0).astype(np.int64)
    return hundredths, present, absent


def end_of(hundredths: NDArray[np.floating[Any]], whole: NDArray[np.int64]) -> Array:
    """Return the end of a cell of so many hundredths, of what was left, in log odds."""
    return np.asarray(np.clip(logit(np.clip(hundredths / whole, 0.0, 1.0)), -FAR, FAR))
