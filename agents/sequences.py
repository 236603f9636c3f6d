"""How trials lie in memory when kernels read them: side by side in vector lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Sequences that a kernel plays side by side. 32 doubles fill several vector registers, which
# hides the latency of the exponential. Kernels repeat the number in their own file, because
# numba's cache does not see edits elsewhere; a test compares them.
LANES = 32

FEW = 2**16  # codes below it are sorted digit by digit, which takes NumPy a tenth of the time
MISSING = -1.0  # the packed value of an action that was not given, and of unused places

Integers = NDArray[np.int64]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sequences:
    """Trials grouped into sequences, each the stretch over which a learner's state runs.

    A sequence holds the trials of one session, and within it of one value of each column
    the model keeps separate (for instance the context). Sequences are sorted by length and set
    side by side in blocks of `LANES`; trial t of lane i of block b is found in the flat arrays
    at `index[start[b] + t, i]`.

    Parameters
    ----------
    order : positions of the flat trial arrays, sequence after sequence
    begin, length : where each sequence lies in `order`; sorted from long to short
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
        """Group trials, given in order of time, by subject code and further integer codes."""
        code = subject
        for column in separate:
            code = code * (int(column.max(initial=0)) + 1) + column
        few = code.min(initial=0) >= 0 and code.max(initial=0) < FEW
        order = np.argsort(code.astype(np.uint16) if few else code, kind="stable")
        ordered = code[order]
        begin = np.flatnonzero(np.diff(ordered, prepend=-1))
        length = np.diff(begin, append=len(code))
        count = int(subject.max(initial=-1)) + 1 if n_subjects is None else n_subjects
        return cls._sorted(order, begin, length, subject[order[begin]], count)

    @classmethod
    def _sorted(
        cls, order: Integers, begin: Integers, length: Integers, subject: Integers, count: int
    ) -> Sequences:
        longest_first = np.argsort(-length, kind="stable")
        return cls(
            order, begin[longest_first], length[longest_first], subject[longest_first], count
        )

    def in_order(self) -> tuple[Integers, Integers, Integers]:
        """Return the trials of all sequences, one sequence after the other.

        Of each: the number of its sequence, how many come before it there, and its position in the
        flat arrays.
        """
        sequence = np.repeat(np.arange(len(self.length)), self.length)
        within = np.arange(len(sequence)) - (np.cumsum(self.length) - self.length)[sequence]
        return sequence, within, self.order[self.begin[sequence] + within]

    def repeat(self, subjects: Integers) -> Sequences:
        """Return the sequences of `subjects`, numbered anew: row k of theta is `subjects[k]`.

        A subject may be named several times (one row for each start of an optimiser) or not
        at all; positions in the flat arrays stay what they were.
        """
        by_subject = np.argsort(self.subject, kind="stable")
        bounds = np.searchsorted(self.subject[by_subject], np.arange(self.n_subjects + 1))
        count = np.diff(bounds)[subjects]
        row = np.repeat(np.arange(len(subjects)), count)
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        chosen = by_subject[bounds[:-1][subjects][row] + within]
        return self._sorted(self.order, self.begin[chosen], self.length[chosen], row, len(subjects))

    @cached_property
    def _n_blocks(self) -> int:
        return -(-len(self.begin) // LANES)

    def _by_lane(self, values: Integers) -> Integers:
        spare = self._n_blocks * LANES - len(values)
        return np.pad(values, (0, spare)).reshape(self._n_blocks, LANES)

    @cached_property
    def row(self) -> Integers:
        """Row of theta of each lane, [blocks, LANES]; unused lanes name row 0 and no trial."""
        return self._by_lane(self.subject)

    @cached_property
    def start(self) -> Integers:
        """Where each block begins in the packed columns, [blocks + 1]."""
        longest = self._by_lane(self.length).max(axis=1, initial=0)
        return np.concatenate([[0], np.cumsum(longest)])

    @cached_property
    def index(self) -> Integers:
        """Position of each place in the flat arrays, [places, LANES]; -1 where no trial is."""
        block = np.repeat(np.arange(self._n_blocks), np.diff(self.start))
        trial = (np.arange(self.start[-1]) - self.start[block])[:, None]
        held = trial < self._by_lane(self.length)[block]
        place = np.where(held, self._by_lane(self.begin)[block] + trial, 0)
        return np.where(held, self.order[place], -1) if len(self.order) else place

    @cached_property
    def _held_index(self) -> Integers:
        return np.maximum(self.index, 0)

    @cached_property
    def _empty(self) -> tuple[Integers, ...]:
        return np.nonzero(self.index < 0)

    def pack(self, column: Array, unused: float = MISSING) -> Array:
        """Lay a flat column [trials, ...] out as [places, ..., LANES], lanes last."""
        values = np.asarray(column, dtype=float)
        packed = np.empty((len(self.index), *values.shape[1:], LANES))
        for inner in np.ndindex(values.shape[1:]):
            part = np.take(values[:, *inner], self._held_index)
            part[self._empty] = unused
            packed[:, *inner] = part
        return packed

    def unpack(self, packed: Array, n_trials: int) -> Array:
        """Bring a packed column [places, LANES] back to the flat order of trials."""
        flat = np.full(n_trials, np.nan)
        held = self.index >= 0
        flat[self.index[held]] = packed[held]
        return flat
