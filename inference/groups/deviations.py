"""Deviations of a group's subjects from the group, and which of them are correlated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array, Parameters

ALONE = -1
CONCENTRATION = 2.0  # eta of the law of Lewandowski, Kurowicka and Joe (2009); 1 is uniform


@dataclass(frozen=True)
class Deviations:
    """The Q deviations that each of N subjects has, and how they enter its M rows of parameters.

    A subject has a row of parameters for each of its cells (such as sessions with and without a
    drug), or a single row. The first deviations, one of each parameter, enter all rows alike.
    Deviations of terms within subjects enter with the term's value.

    Parameters
    ----------
    names : names of the deviations, [Q]: "alpha", "alpha ~ drug[T.on]"
    moved : the parameter that each deviation moves, [Q]
    subject : the subject of each row, [M]
    weight : the weight of a deviation in a row, [M, Q]
    block : deviations with the same number are correlated, [Q]; -1 for one that is alone
    unit : how far the values spread with which a deviation enters, [Q]: 1 but for numbers
    """

    names: tuple[str, ...]
    moved: NDArray[np.int64]
    subject: NDArray[np.int64]
    weight: Array
    block: NDArray[np.int64]
    unit: Array

    def prior_scale(self, parameters: Parameters) -> Array:
        """Return the scales of the half-normal priors of spreads, per raw unit, [Q]."""
        scale = np.array([parameter.group_sd for parameter in parameters])[self.moved]
        return np.asarray(scale / self.unit)

    @classmethod
    def plain(cls, parameters: Parameters, n_subjects: int, correlated: bool) -> Deviations:
        """Return the deviations of subjects that have one row each."""
        k = len(parameters)
        return cls(
            parameters.names,
            np.arange(k),
            np.arange(n_subjects),
            np.ones((n_subjects, k)),
            np.full(k, 0 if correlated else ALONE),
            np.ones(k),
        )

    @cached_property
    def n_subjects(self) -> int:
        """How many subjects there are."""
        return int(self.subject.max()) + 1

    @property
    def simple(self) -> bool:
        """Whether each subject is one row and deviates in each parameter alone."""
        return self.weight.shape[0] == self.n_subjects and len(self.names) == self.n_parameters

    @property
    def n_parameters(self) -> int:
        """How many parameters there are: the first deviations are one of each."""
        return int(self.moved.max()) + 1

    @property
    def slopes(self) -> tuple[str, ...]:
        """Names of the deviations besides one of each parameter: "alpha ~ drug[T.on]"."""
        return self.names[self.n_parameters :]

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Deviations that are correlated, (later, earlier), in order of the later one, [P, 2]."""
        q = len(self.names)
        result = [
            (i, j)
            for i in range(q)
            for j in range(i)
            if self.block[i] == self.block[j] and self.block[i] != ALONE
        ]
        return np.array(result, dtype=np.int64).reshape(-1, 2)

    @property
    def pair_names(self) -> tuple[str, ...]:
        """Names of the pairs: "alpha, beta", the earlier first."""
        return tuple(f"{self.names[j]}, {self.names[i]}" for i, j in self.pairs)

    def correlations(self, turn: Array, spread: Array) -> Array:
        """Return the correlation of each pair, [S, P], from `turn` [S, P] and spreads [S, Q].

        The sign of a spread has no meaning for the group, so it is moved to the correlations.
        """
        root = self.roots(turn) * np.sign(spread)[:, :, None]
        whole = root @ np.swapaxes(root, 1, 2)
        return whole[:, self.pairs[:, 0], self.pairs[:, 1]]

    @cached_property
    def exponents(self) -> Array:
        """Exponents of 1 - r**2 in the density of each pair's partial correlation r = tanh(x), [P].

        The law of correlations is that of Lewandowski, Kurowicka and Joe (2009, eq. 8). Given all
        earlier deviations of a block of n, the partial correlation with its j-th one (from 0) has a
        symmetric beta law with the parameter eta + (n - 2 - j) / 2.
        """
        result = []
        for i, j in self.pairs:
            block = self.block == self.block[i]
            earlier = int(block[:j].sum())
            result.append(CONCENTRATION + (int(block.sum()) - 2 - earlier) / 2)
        return np.array(result)

    def roots(self, turn: Array) -> Array:
        """Return the Cholesky roots [S, Q, Q] of the correlations, from x of each pair [S, P]."""
        q = len(self.names)
        root = np.zeros((len(turn), q, q))
        rest = np.ones((len(turn), q))
        for p, (i, j) in enumerate(self.pairs):
            root[:, i, j] = np.tanh(turn[:, p]) * rest[:, i]
            rest[:, i] /= np.cosh(turn[:, p])
        root[:, np.arange(q), np.arange(q)] = rest
        return root

    def enter(self, values: Array) -> Array:
        """Return what deviations [..., N, Q] add to all rows of parameters, [..., M, K]."""
        added: Array = (self.weight * values[..., self.subject, :]) @ np.eye(self.n_parameters)[
            self.moved
        ]
        return added

    def spread_of_rows(self, roots: Array) -> Array:
        """Return how far deviations spread rows of parameters, [K], over all draws and rows.

        `roots` are the Cholesky roots of the deviations' covariance, [S, Q, Q].
        """
        covariance = (roots @ np.swapaxes(roots, 1, 2)).mean(axis=0)
        onto = np.eye(self.n_parameters)[self.moved]  # [Q, K]
        entered = self.weight[:, :, None] * onto
        variance = np.einsum("mqk,qp,mpk->mk", entered, covariance, entered).mean(axis=0)
        spread: Array = np.sqrt(variance)
        return spread

    def summed(self, rows: Array) -> Array:
        """Return the sums over each subject's rows, [..., N], of values of rows [..., M]."""
        total = np.zeros((self.n_subjects, *rows.shape[:-1]))
        np.add.at(total, self.subject, np.moveaxis(rows, -1, 0))
        return np.moveaxis(total, 0, -1)

    def gathered(
        self, information: Array, score: Array, spread: Array
    ) -> tuple[Array, Array, Array]:
        """Turn what trials say about rows of parameters into what they say about deviations.

        A deviation b has the information L [N, Q]. Its score is h minus the sum over a subject's
        rows of `onto` m, where m [M, K] is what the group expects of the rows. Both belong to the
        approximation that `SubjectCoordinates` describes. Other deviations, with the spreads [Q],
        are averaged out.

        Parameters
        ----------
        information, score : information and score of the rows, [M, K]
        spread : spreads of the deviations, [Q]

        Returns
        -------
        L [N, Q], h [N, Q] and onto [M, Q, K].
        """
        enters = self.weight[:, :, None] * np.eye(self.n_parameters)[self.moved]
        pulls = enters * information[:, None, :]
        prior = np.diag(spread**-2.0)
        whole = np.zeros((self.n_subjects, *prior.shape))
        np.add.at(whole, self.subject, pulls @ np.swapaxes(enters, 1, 2))
        covariance = np.linalg.inv(whole + prior)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        share = covariance / variance[:, :, None]
        total = np.zeros(variance.shape)
        np.add.at(total, self.subject, (enters * score[:, None, :]).sum(axis=2))
        gathered_score = (share @ total[:, :, None])[:, :, 0]
        return 1.0 / variance - spread**-2.0, gathered_score, share[self.subject] @ pulls
