"""Contexts of evidence whose exact posteriors spread evenly from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream

from .belief_network import UNTOLD, BeliefNetwork
from .network_files import NetworkWords

Array = NDArray[np.float64]

MOST_PER_BIN = 60
_CASES = 40_000  # so many cases are drawn from the network
_PATTERNS = 48  # contexts show so many different sets of nodes
_PER_PATTERN = 400
_SEED = 20_260_801  # seed of the contexts, which are the same in every session
_POSSIBLE = 1e-12  # a part of the auxiliary with less probability counts as impossible


@dataclass(frozen=True, eq=False)
class EvidenceContexts:
    """Contexts that a network can bring, with the exact answers to all questions about them.

    They stand in order of the posterior. Their evidence is drawn from the network. Which draws are
    kept depends on the posterior alone, so the law of theta given the evidence is unchanged.

    Parameters
    ----------
    evidence : states of the nodes, -1 where a node is not shown, [contexts, nodes]
    posterior : P(theta = 1 | x), [contexts]
    part : P(z in B_j | x), [contexts, parts]; the parts are the states of the auxiliary
    within : P(theta = 1 | x, z in B_j), [contexts, parts]
    bins : how many equal bins [0, 1] is cut into
    """

    evidence: NDArray[np.int64]
    posterior: Array
    part: Array
    within: Array
    bins: int

    def __len__(self) -> int:
        return len(self.posterior)

    @property
    def bin(self) -> NDArray[np.int64]:
        """The bin of each context's posterior, [contexts]."""
        return bin_of(self.posterior, self.bins)

    def blocks(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cut the contexts into n runs of neighbours, equally many in each bin.

        Returns first and end of each run, [n]. Bins that no context reaches have no run. Runs share
        no context if a bin has at least as many contexts as runs.
        """
        reached, first, count = np.unique(self.bin, return_index=True, return_counts=True)
        bin_of_run = np.arange(n) * len(reached) // n
        runs = np.bincount(bin_of_run, minlength=len(reached))[bin_of_run]
        position = np.arange(n) - np.searchsorted(bin_of_run, bin_of_run)
        size = count[bin_of_run]
        low = position * size // runs
        high = np.maximum((position + 1) * size // runs, low + 1)
        return first[bin_of_run] + low, first[bin_of_run] + high


def bin_of(posterior: Array, bins: int) -> NDArray[np.int64]:
    """Return which of so many equal bins of [0, 1] holds each probability; 1 is in the last."""
    return np.minimum((posterior * bins).astype(np.int64), bins - 1)


@lru_cache(maxsize=16)
def spread_contexts(
    network: BeliefNetwork, words: NetworkWords, bins: int = 20
) -> EvidenceContexts:
    """Draw contexts from a network so that each bin of the posterior holds up to 60.

    Half of the cases have the condition and half do not, since bins are filled evenly anyway. Each
    case shows some nodes, as many as the network's words say. It never shows the target, the
    auxiliary, or a node without words. The same network always brings the same contexts.

    Raises
    ------
    ValueError : If every context makes a part of the auxiliary impossible, or the network is too
        large; see `BeliefNetwork.posterior`.
    """
    rng = session_stream(_SEED)
    cases = network.sample(rng.random((_CASES, len(network.nodes))))
    target = network.position(words.target)
    with_it = cases[:, target] == words.present
    tellable = np.array(
        [network.position(n) for n in words.says if n not in (words.target, words.auxiliary)]
    )
    drawn = []
    for _ in range(_PATTERNS):
        n = int(rng.integers(words.fewest, words.most + 1))
        seen = rng.permutation(tellable)[:n]
        for kind in (with_it, ~with_it):
            those = np.flatnonzero(kind)
            if len(those):
                part = np.full((_PER_PATTERN // 2, cases.shape[1]), UNTOLD)
                part[:, seen] = cases[rng.choice(those, _PER_PATTERN // 2)][:, seen]
                drawn.append(part)
    evidence = np.unique(np.concatenate(drawn), axis=0)
    posterior = network.posterior((words.target,), evidence)[:, words.present]
    mixed = rng.permutation(len(evidence))
    position = np.empty(len(mixed), dtype=np.int64)
    where = bin_of(posterior[mixed], bins)
    for k in range(bins):  # this is the number of each context within its bin
        members = np.flatnonzero(where == k)
        position[mixed[members]] = np.arange(len(members))
    kept = np.flatnonzero(position < MOST_PER_BIN)
    evidence = evidence[kept]
    joint = network.posterior((words.target, words.auxiliary), evidence)
    part = joint.sum(axis=1)
    possible = (part > _POSSIBLE).all(axis=1)
    if not possible.any():
        raise ValueError(
            f"Expectations are iterated over what is possible; some state of {words.auxiliary} is "
            "impossible in every context. Choose another auxiliary."
        )
    posterior = joint[:, words.present].sum(axis=1)
    order = np.argsort(posterior, kind="stable")
    order = order[possible[order]]
    within = joint[order, words.present] / part[order]
    return EvidenceContexts(evidence[order], posterior[order], part[order], within, bins)
