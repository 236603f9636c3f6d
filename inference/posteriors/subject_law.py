"""Law of a group's subjects and of their trials, in the coordinates that are sampled."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import njit
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply

from knownminds.agents import Agent
from knownminds.inference.fits.model_data import Unknowns

from .likelihood_op import LogLikelihood


class SubjectLaw(LogLikelihood):
    """Log density [N] of coordinates u [N, K] and trials, given the group, with its gradient.

    Inputs are u, what the group expects of each subject [N, K], the spreads [K], the information
    [N, K, K] and score [N, K] of `SubjectCoordinates`, and the kernel's data. Outputs are the
    density, up to a constant, and its derivatives by u [N, K], by what is expected [N, K] and by
    the spreads [N, K]. With z = mu + D w the density of z is that of w, and the volume of the map
    from u is |D| / |G|, so that the law is log p(trials | z) - w'w / 2 - sum log G_kk.
    """

    def __init__(self, model: type[Agent], n_actions: int, unknowns: Unknowns):
        super().__init__(model, n_actions, unknowns)
        self.call = _with_law(self.call)

    def make_node(self, *inputs: Any) -> Any:
        """Check nothing but the types: the data were checked where they were read."""
        group = [pt.as_tensor_variable(x, dtype="float64") for x in inputs[:5]]
        data = [pt.as_tensor_variable(x) for x in inputs[5:]]
        outputs = [pt.dvector(), pt.dmatrix(), pt.dmatrix(), pt.dmatrix()]
        return Apply(self, [*group, *data], outputs)

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        """Call the kernel."""
        for storage, value in zip(output_storage, self.call(*inputs), strict=True):
            storage[0] = value

    def infer_shape(self, *arguments: Any) -> list[Any]:
        """One number per subject, one slope per subject and parameter."""
        shape = arguments[-1][0]
        return [(shape[0],), shape, shape, shape]

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """Connect u, what is expected and the spreads to the first output and nothing else."""
        return [[k < 3, False, False, False] for k in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Scale the kernel's own gradient by the cotangent of the density."""
        rest = [DisconnectedType()() for _ in inputs[3:]]
        if isinstance(cotangents[0].type, DisconnectedType):
            return [*(DisconnectedType()() for _ in range(3)), *rest]
        by_u, by_mean, by_sd = (slope * cotangents[0][:, None] for slope in outputs[1:])
        return [by_u, by_mean, by_sd.sum(axis=0), *rest]

    L_op = pullback  # the name before PyTensor 3


def _with_law(call: Any) -> Any:
    """Compile (u, mean, sd, information, score, *data) -> density and derivatives."""

    @njit
    def with_law(u, mean, sd, information, score, *data):  # type: ignore[no-untyped-def]
        n_subjects, k = u.shape
        z, w, t = np.empty((n_subjects, k)), np.empty((n_subjects, k)), np.empty((n_subjects, k))
        root, pull = np.zeros((n_subjects, k, k)), np.empty((n_subjects, k))
        law = np.zeros(n_subjects)
        for n in range(n_subjects):
            g = root[n]
            for i in range(k):
                pull[n, i] = score[n, i]
                for j in range(k):
                    pull[n, i] -= information[n, i, j] * mean[n, j]
                # Cholesky's decomposition of I + D L D, and t = G^-1 D pull, row by row.
                t[n, i] = sd[i] * pull[n, i]
                for j in range(i + 1):
                    left = sd[i] * information[n, i, j] * sd[j] + (1.0 if i == j else 0.0)
                    for c in range(j):
                        left -= g[i, c] * g[j, c]
                    if i == j:
                        g[i, i] = sqrt(left)
                    else:
                        g[i, j] = left / g[j, j]
                        t[n, i] -= g[i, j] * t[n, j]
                t[n, i] /= g[i, i]
            for i in range(k - 1, -1, -1):  # w = G^-T (t + u)
                left = t[n, i] + u[n, i]
                for j in range(i + 1, k):
                    left -= g[j, i] * w[n, j]
                w[n, i] = left / g[i, i]
                z[n, i] = mean[n, i] + sd[i] * w[n, i]
                law[n] -= 0.5 * w[n, i] * w[n, i] + log(g[i, i])

        total, by_z = call(z, *data)
        by_u, by_mean, by_sd = np.empty((n_subjects, k)), by_z.copy(), np.empty((n_subjects, k))
        by_t, by_root, half = np.empty(k), np.empty((k, k)), np.empty((k, k))
        for n in range(n_subjects):
            g = root[n]
            for i in range(k):  # backwards through w = G^-T q, with q = t + u
                by_sd[n, i] = by_z[n, i] * w[n, i]
                left = sd[i] * by_z[n, i] - w[n, i]
                for j in range(i):
                    left -= g[i, j] * by_u[n, j]
                by_u[n, i] = left / g[i, i]
            for i in range(k - 1, -1, -1):  # and through t = G^-1 D pull
                left = by_u[n, i]
                for j in range(i + 1, k):
                    left -= g[j, i] * by_t[j]
                by_t[i] = left / g[i, i]
            for i in range(k):
                by_sd[n, i] += by_t[i] * pull[n, i]
                for j in range(k):
                    by_mean[n, i] -= information[n, i, j] * sd[j] * by_t[j]
                for j in range(i + 1):
                    by_root[i, j] = -w[n, i] * by_u[n, j] - by_t[i] * t[n, j]
                by_root[i, i] -= 1.0 / g[i, i]
            # Backwards through Cholesky's decomposition: G^-T phi(G' by_root) G^-1, made symmetric.
            for i in range(k):
                for j in range(k):
                    half[i, j] = 0.0
                    if j <= i:
                        for c in range(i, k):
                            half[i, j] += g[c, i] * by_root[c, j]
                        if i == j:
                            half[i, j] *= 0.5
            for j in range(k):  # columns: G^-T from the left
                for i in range(k - 1, -1, -1):
                    for c in range(i + 1, k):
                        half[i, j] -= g[c, i] * half[c, j]
                    half[i, j] /= g[i, i]
            for i in range(k):  # rows: G^-1 from the right
                for j in range(k - 1, -1, -1):
                    for c in range(j + 1, k):
                        half[i, j] -= half[i, c] * g[c, j]
                    half[i, j] /= g[j, j]
            for i in range(k):
                for j in range(k):
                    by_sd[n, i] += (half[i, j] + half[j, i]) * information[n, i, j] * sd[j]
        return total + law, by_u, by_mean, by_sd

    return with_law
