"""The layout of trials in memory when kernels read them: side by side in vector lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled

# A kernel plays so many sequences side by side. 32 doubles fill several vector registers, which
# hides the latency of the exponential. Kernels repeat the number in their file, because numba's
# cache does not see edits elsewhere; a test compares them.
LANES = 32

MISSING = -1.0  # the packed value of a missing action, and of unused places

Integers = NDArray[np.int64]
Array = NDArray[np.float64]


def numbered(length: Integers) -> tuple[Integers, Integers]:
    """Return the run of each entry and its number in it, for consecutive runs of these lengths."""
    run = np.repeat(np.arange(len(length)), length)
    return run, np.arange(len(run)) - (np.cumsum(length) - length)[run]


@dataclass(frozen=True)
class Sequences:
    """Trials grouped into sequences; a learner's state runs over one sequence.

    A sequence holds the trials of one session with one value of each column that the model keeps
    separate (for instance the context). Sequences are sorted by length and set side by side in
    blocks of `LANES`. Trial t of lane i of block b is at `[start[b] + t, i]` of packed columns.

    Parameters
    ----------
    order : positions of the flat trial arrays, sequence after sequence
    begin, length : first position in `order` and length of each sequence; sorted from long to short
    subject : the row of theta of each sequence
    n_subjects : how many rows theta has
    """

    order: Integers
    begin: Integers
    length: Integers
    subject: Integers
    n_subjects: int

    @classmethod
    def group(
        cls, subject: Integers, separate: Sequence[Integers] = (), n_subjects: int | None = None
    ) -> Sequences:
        """Group trials, given in order of time, by subject code and further codes from 0.

        Raises
        ------
        ValueError : If a code is negative, as `pandas.factorize` makes it of an empty cell.
        """
        code = subject
        for column in separate:
            if column.min(initial=0) < 0:
                raise ValueError(
                    "Codes that separate sequences count from 0; one is "
                    f"{int(column.min())}. Fill in the empty cells of that column."
                )
            code = code * (int(column.max(initial=0)) + 1) + column
        if (code[1:] >= code[:-1]).all():
            begin = np.append(0, np.flatnonzero(code[1:] != code[:-1]) + 1)[: len(code)]
            order, length = np.arange(len(code)), np.diff(begin, append=len(code))
        else:
            low, high = int(code.min()), int(code.max())
            if low < 0 or high > 4 * len(code):
                code = np.unique(code, return_inverse=True)[1].reshape(-1)
            order, length = _counted(code.astype(np.int64, copy=False), int(code.max()) + 1)
            length = length[length > 0]
            begin = np.cumsum(length) - length
        count = int(subject.max(initial=-1)) + 1 if n_subjects is None else n_subjects
        return cls._sorted(order, begin, length, subject[order[begin]], count)

    @classmethod
    def _sorted(
        cls, order: Integers, begin: Integers, length: Integers, subject: Integers, count: int
    ) -> Sequences:
        if len(length) and length.min() == length.max():
            return cls(order, begin, length, subject, count)
        longest_first = np.argsort(-length, kind="stable")
        return cls(
            order, begin[longest_first], length[longest_first], subject[longest_first], count
        )

    def in_order(self) -> tuple[Integers, Integers, Integers]:
        """Return the trials of all sequences, one sequence after the other.

        For each trial: the number of its sequence, how many trials come before it there, and its
        position in the flat arrays.
        """
        sequence, within = numbered(self.length)
        return sequence, within, self.order[self.begin[sequence] + within]

    def repeat(self, subjects: Integers) -> Sequences:
        """Return the sequences of `subjects`, numbered anew: row k of theta is `subjects[k]`.

        A subject may be named several times (one row for each start of an optimiser) or not at all;
        positions in the flat arrays do not change.
        """
        by_subject = np.argsort(self.subject, kind="stable")
        bounds = np.searchsorted(self.subject[by_subject], np.arange(self.n_subjects + 1))
        row, within = numbered(np.diff(bounds)[subjects])
        chosen = by_subject[bounds[:-1][subjects][row] + within]
        return self._sorted(self.order, self.begin[chosen], self.length[chosen], row, len(subjects))

    def sorted_by(self, columns: Sequence[Array]) -> Sequences:
        """Return the sequences with their trials ordered by flat columns, the last column first."""
        if not columns:
            return self
        sequence, _, position = self.in_order()
        by = np.lexsort([*(column[position] for column in columns), sequence])
        return replace(self, order=position[by], begin=np.cumsum(self.length) - self.length)

    @cached_property
    def _n_blocks(self) -> int:
        return -(-len(self.begin) // LANES)

    def _by_lane(self, values: Integers) -> Integers:
        spare = self._n_blocks * LANES - len(values)
        return np.pad(values, (0, spare)).reshape(self._n_blocks, LANES)

    @cached_property
    def row(self) -> Integers:
        """Row of theta of each lane, [blocks, LANES]; unused lanes name row 0 and have no trial."""
        return self._by_lane(self.subject)

    @cached_property
    def start(self) -> Integers:
        """The position in the packed columns where each block begins, [blocks + 1]."""
        longest = self._by_lane(self.length).max(axis=1, initial=0)
        return np.concatenate([[0], np.cumsum(longest)])

    def pack(self, column: Array, unused: float = MISSING) -> Array:
        """Lay a flat column [trials, ...] out as [places, ..., LANES], lanes last."""
        values = np.ascontiguousarray(column, dtype=float)
        inner = values.shape[1:]
        packed = np.empty((self.start[-1], int(np.prod(inner)), LANES))
        flat = values.reshape(len(values), packed.shape[1])
        _lay_out(flat, self.order, self.begin, self.length, self.start, unused, packed)
        return packed.reshape(self.start[-1], *inner, LANES)

    def unpack(self, packed: Array, n_trials: int) -> Array:
        """Bring a packed column [places, LANES] back to the flat order of trials."""
        flat = np.full(n_trials, np.nan)
        _bring_back(packed, self.order, self.begin, self.length, self.start, flat)
        return flat


@compiled()
def _counted(code, n):  # type: ignore[no-untyped-def]
    """Return the positions of codes from 0 to n - 1 in order, and the count of each code."""
    count = np.zeros(n, np.int64)
    for c in code:
        count[c] += 1
    at = np.zeros(n, np.int64)
    for c in range(1, n):
        at[c] = at[c - 1] + count[c - 1]
    order = np.empty(len(code), np.int64)
    for k in range(len(code)):
        c = code[k]
        order[at[c]] = k
        at[c] += 1
    return order, count


@compiled()
def _lay_out(values, order, begin, length, start, unused, packed):  # type: ignore[no-untyped-def]
    """Copy values[trials, K] to packed[places, K, LANES]; places without a trial get `unused`."""
    for block in range(len(start) - 1):
        first, lanes = block * LANES, min(LANES, len(length) - block * LANES)
        for t in range(start[block + 1] - start[block]):
            row = packed[start[block] + t]
            for lane in range(LANES):
                if lane < lanes and t < length[first + lane]:
                    trial = order[begin[first + lane] + t]
                    for k in range(values.shape[1]):
                        row[k, lane] = values[trial, k]
                else:
                    for k in range(values.shape[1]):
                        row[k, lane] = unused


@compiled()
def _bring_back(packed, order, begin, length, start, flat):  # type: ignore[no-untyped-def]
    """Copy packed[places, LANES] to the trials that lie there."""
    for sequence in range(len(length)):
        first = start[sequence // LANES]
        for t in range(length[sequence]):
            flat[order[begin[sequence] + t]] = packed[first + t, sequence % LANES]
