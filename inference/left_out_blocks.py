"""Blocks of a subject's trials that are left out in turn, and the jackknife over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array

from .resampling import jackknife

MOST_GROUPS = 50  # of blocks that are left out in turn
ROWS = 2**20  # of trials that are copied at a time

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LeftOutBlocks:
    """The groups of blocks that are left out of each subject's trials in turn.

    Each block is a group of its own, unless a subject has more than 50.

    Parameters
    ----------
    subject : Position of each trial's subject, [rows].
    group : Group of each trial within its subject, from 0; -1 in no group, [rows].
    groups : How many groups each subject has; 0 where fewer than two blocks have a value,
        [subjects].
    n : How many blocks of each subject have a value, [subjects].
    """

    subject: Integers
    group: Integers
    groups: Integers
    n: Integers

    @classmethod
    def of(
        cls, subject: Integers, block: Integers, owner: Integers, read: NDArray[np.bool_],
        valued: NDArray[np.bool_],
    ) -> LeftOutBlocks:  # fmt: skip
        """Group the blocks of each subject.

        Parameters
        ----------
        subject, block : Of each trial; block -1 is none, [rows].
        owner, read : The subject of each block, and whether it has a value, [blocks].
        valued : Whether each subject has a value, [subjects].
        """
        n = np.where(valued, np.bincount(owner, read, len(valued)), 0).astype(np.int64)
        groups = np.where(n > 1, np.minimum(n, MOST_GROUPS), 0)
        order = np.argsort(owner, kind="stable")
        counted = np.cumsum(read[order])
        begin = np.concatenate([[0], counted])[np.searchsorted(owner[order], owner[order])]
        rank = np.empty(len(owner), dtype=np.int64)
        rank[order] = counted - begin - 1
        usable = read & (groups[owner] > 0)
        of_block = np.where(usable, rank * groups[owner] // np.maximum(n[owner], 1), -1)
        group = (
            np.where(block < 0, -1, of_block[block]) if len(of_block) else np.full(len(block), -1)
        )
        return cls(subject, group, groups, n)

    def copies(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield the rows of copies of subjects, and which copy each row is part of.

        Copy s * G + k are the trials of subject s without its group k; G is the largest number of
        groups. Rows of a copy lie together and keep their order.
        """
        order = np.argsort(self.subject, kind="stable")
        ends = np.searchsorted(self.subject[order], np.arange(len(self.groups) + 1))
        rows: list[Integers] = []
        labels: list[Integers] = []
        held = 0
        for s in np.flatnonzero(self.groups):
            mine = order[ends[s] : ends[s + 1]]
            for k in range(self.groups[s]):
                rows.append(mine[self.group[mine] != k])
                labels.append(np.full(len(rows[-1]), s * self.most + k))
                held += len(rows[-1])
                if held > ROWS:
                    yield np.concatenate(rows), np.concatenate(labels)
                    rows, labels, held = [], [], 0
        if rows:
            yield np.concatenate(rows), np.concatenate(labels)

    @property
    def most(self) -> int:
        """The largest number of groups."""
        return int(self.groups.max(initial=0))

    def errors(self, whole: Array, without: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Return the jackknife's error and degrees of freedom of each subject, [subjects].

        The third are the influences of groups, [subjects, G].

        Parameters
        ----------
        whole : Value of each subject, [subjects].
        without : Value of each copy, in the order of their numbers, [subjects * G].
        weights : How much each trial weighs in its subject's value, [rows].
        """
        some = self.group >= 0
        place = self.subject[some] * self.most + self.group[some]
        sizes = np.bincount(place, weights[some], len(self.groups) * self.most).astype(float)
        found = np.full((2, len(self.groups)), np.nan)
        influence = np.zeros((len(self.groups), self.most))
        for s in np.flatnonzero(self.groups):
            mine = slice(s * self.most, s * self.most + self.groups[s])
            *found[:, s], moved = jackknife(float(whole[s]), without[mine], sizes[mine])
            influence[s, : len(moved)] = moved
        return found[0], found[1], influence
