"""What trials become before a decider's likelihood: statements in order, decisions counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents.agent import Integers, Prepared
from knownminds.agents.parameters import Array

from .belief_kernels import (
    BELIEF,
    CONDITIONAL,
    DEALT,
    DECISION,
    EDGE,
    FAR,
    FRAMED,
    FRAMES,
    HIGH,
    INCOHERENT,
    LOW,
    MISREPORTS,
    NO,
    NOTHING_LEFT,
    PART,
    PEEKS,
    PLAIN,
)  # fmt: skip

RUN = 16  # so many decisions that differ are one sequence


def places_of(
    subject: Integers, sequence: Integers, columns: tuple[Array, ...], violation: int
) -> Prepared:
    """Bring trials into the form that the kernel reads: statements in order, decisions counted.

    Decisions of a subject that were alike (the number stated plainly, the action and, for who
    peeks, the state) are one place with a count, wherever they stood. Returns subject and sequence
    of each place, and eight columns:

    - of what is stated: the kind (BELIEF or PART), the log odds of the state, the log odds that a
      part adds and how far the dial moves them (of a part: P(part) if the state were certain, and
      if it were excluded), the ends of the cell in log odds, what is added to the log odds of the
      state before a part, and over how many units an answer that is a lapse spreads, inverted;
    - of decisions: the kind, the number stated, the action, the count, the state, log(-log p).

    A state of a distribution is a part of those not yet dealt out, in hundredths that are left.
    """
    action, response, repetition, asked, elicitation, part, *exact = columns
    posterior, marginal, conditional, state = exact
    stated = (response >= 0.0) & (asked >= 0.0) & (asked != DECISION)
    dealt = _dealt(sequence, repetition, asked, part, response, posterior, marginal, conditional)
    hundredths, of_all, of_none = dealt
    told = np.flatnonzero(stated & (hundredths > 0))
    whole = hundredths[told]
    cell = np.clip(np.floor(100.0 * response[told] + 0.5), 0, whole).astype(np.int64)
    m, q = (np.clip(column[told], EDGE, 1.0 - EDGE) for column in (marginal, conditional))
    joint, odds, question = posterior[told], logit(m), asked[told]
    shared = question == DEALT
    parted = shared | (question == PART)
    more = np.where(question == CONDITIONAL, logit(np.clip(joint, EDGE, 1.0 - EDGE)) - odds, 0.0)
    form = np.where(question == BELIEF, elicitation[told], 0.0)
    moved = np.zeros(len(told))
    if violation == MISREPORTS:
        moved = np.where(question == BELIEF, 1.0, 0.0)
    elif violation == INCOHERENT:
        moved = np.where(question == CONDITIONAL, 1.0, 0.0)
    elif violation == FRAMED:
        known = (question == BELIEF) & (form >= 0.0) & (form < len(FRAMES))
        moved = np.where(known, FRAMES[np.where(known, form, 0.0).astype(np.int64)], 0.0)
    present = np.where(q == m, joint, joint * q / m)
    absent = np.where(q == m, joint, joint * (1.0 - q) / (1.0 - m))
    left_present, left_absent = (np.maximum(side[told], EDGE) for side in (of_all, of_none))
    present = np.where(shared, np.minimum(present / left_present, 1.0), present)
    absent = np.where(shared, np.minimum(absent / left_absent, 1.0), absent)
    beliefs = (
        np.where(parted, float(PART), float(BELIEF)),
        odds,
        np.where(parted, present, more),
        np.where(parted, absent, moved),
        np.where(shared, end_of(cell - 0.5, whole), LOW[cell]),
        np.where(shared, end_of(cell + 0.5, whole), HIGH[cell]),
        np.where(shared, np.log(left_present / left_absent), 0.0),
        100.0 / whole,
    )

    # The number that goes with a decision: the last one stated plainly in its repetition.
    round_ = np.where(repetition >= 0.0, repetition, -1.0).astype(np.int64)
    place = sequence * (int(round_.max(initial=0)) + 2) + round_ + 1
    plain = np.flatnonzero(
        stated & (asked == BELIEF) & (elicitation == PLAIN) & (repetition >= 0.0)
    )
    plain = plain[np.argsort(place[plain], kind="stable")]
    decided = np.flatnonzero((asked == DECISION) & (action >= 0.0) & (repetition >= 0.0))
    last = np.searchsorted(place[plain], place[decided], side="right") - 1
    if len(plain):
        goes = (last >= 0) & (place[plain[last]] == place[decided])
        decided, last = decided[goes], last[goes]
    else:
        decided, last = decided[:0], last[:0]
    p = response[plain[last]]
    values, of_p = np.unique(p, return_inverse=True)
    at = state[decided] if violation == PEEKS else np.zeros(len(decided))
    states, of_state = np.unique(at, return_inverse=True)
    chosen = action[decided].astype(np.int64)
    code = (subject[decided] * len(values) + of_p) * 3 + np.minimum(chosen, NO)
    code = code * len(states) + of_state
    alike, count = np.unique(code, return_counts=True)
    rest, of_state = np.divmod(alike, max(len(states), 1))
    rest, chosen = np.divmod(rest, 3)
    whose, of_p = np.divmod(rest, max(len(values), 1))
    p = values[of_p]
    with np.errstate(divide="ignore"):
        rarity = np.clip(np.log(-np.log(np.minimum(p, 1.0))), -FAR, FAR)
    decisions = (
        np.full(len(p), float(DECISION)), p, chosen, count, states[of_state], rarity,
        np.zeros(len(p)), np.ones(len(p)),
    )  # fmt: skip
    # Short sequences, so that those of one subject stand side by side in lanes.
    within = np.arange(len(whose)) - np.searchsorted(whose, whose)
    run = int(sequence.max(initial=-1)) + 1 + within // RUN
    return (
        np.concatenate([subject[told], whose]),
        np.concatenate([sequence[told], run]),
        tuple(
            np.concatenate([b, d]).astype(float) for b, d in zip(beliefs, decisions, strict=True)
        ),
    )


def _dealt(
    sequence: NDArray[np.int64],
    repetition: Array,
    asked: Array,
    part: Array,
    response: Array,
    posterior: Array,
    marginal: Array,
    conditional: Array,
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return what of a distribution is left before each trial, [trials] each.

    In hundredths, and as the probability that the states left have given the state, and given its
    absence; 100, 1 and 1 for what is of no distribution. No hundredths are left for a state of
    which nothing can be learnt: the last, and one before which a number is missing.
    """
    hundredths = np.full(len(asked), 100, dtype=np.int64)
    present, absent = np.ones((2, len(asked)))
    rows = np.flatnonzero(asked == DEALT)
    if not len(rows):
        return hundredths, present, absent
    order = rows[np.lexsort((part[rows], repetition[rows], sequence[rows]))]
    same = (np.diff(sequence[order]) == 0) & (np.diff(repetition[order]) == 0)
    begins = np.concatenate([[True], ~same])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - first
    told = np.floor(100.0 * response[order] + 0.5)
    told = np.where(told >= 0, told, np.nan)
    m, q = (np.clip(column[order], EDGE, 1.0 - EDGE) for column in (marginal, conditional))
    own = np.where(q == m, 1.0, q / m), np.where(q == m, 1.0, (1.0 - q) / (1.0 - m))
    of_present, of_absent = (posterior[order] * factor for factor in own)

    def before(values: Array) -> Array:
        """Return the sum over the states before, in the same distribution."""
        found = np.zeros(len(values))
        for k in range(1, int(rank.max()) + 1):
            later = np.flatnonzero(rank == k)
            found[later] = found[later - 1] + values[later - 1]
        return found

    present[order], absent[order] = 1.0 - before(of_present), 1.0 - before(of_absent)
    left = 100.0 - before(told)
    # Which states come before is known by their numbers alone.
    known = np.isfinite(left) & (part[order] == rank)
    rest = np.maximum(present[order] - of_present, absent[order] - of_absent)
    held = known & (rest > NOTHING_LEFT)
    hundredths[order] = np.where(held, np.maximum(np.nan_to_num(left), 0.0), 0.0).astype(np.int64)
    return hundredths, present, absent


def end_of(hundredths: NDArray[np.floating[Any]], whole: NDArray[np.int64]) -> Array:
    """Return the end of a cell of so many hundredths, of what was left, in log odds."""
    return np.asarray(np.clip(logit(np.clip(hundredths / whole, 0.0, 1.0)), -FAR, FAR))
