"""An agent's kernel as a PyTensor operation with gradient, in Python and in compiled graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import njit
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic as numba_dispatch

from knownminds.agents import Model
from knownminds.agents.compiled import stamp_of
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.groups.group_kernels import KINDS, natural, placed_in


class LogLikelihood(Op):  # type: ignore[misc]
    """Log-likelihood [N] of z [N, K], and its gradient [N, K], from an agent's kernel.

    z holds the estimated parameters on the unconstrained scale. Further inputs are row, start and
    the packed columns of `ModelData`. Only z is differentiable, and only through the first output.
    The second output is that derivative, so a graph that uses both calls the kernel once.
    """

    __props__ = ("model", "n_actions", "fixed", "with_lapse")

    def __init__(self, model: type[Model], n_actions: int, unknowns: Unknowns):
        held = np.flatnonzero(~np.isnan(unknowns.full))
        self.model = model
        self.n_actions = n_actions
        self.fixed = tuple((int(k), float(unknowns.full[k])) for k in held)
        self.with_lapse = unknowns.lapse
        self.unknowns = unknowns
        self.call = _compiled(model, n_actions, unknowns)

    def make_node(self, z: Any, *data: Any) -> Any:
        """Check only the types: the data were checked when they were read."""
        z = pt.as_tensor_variable(z, dtype="float64")
        inputs = [z, *(pt.as_tensor_variable(d) for d in data)]
        return Apply(self, inputs, [pt.dvector(), pt.dmatrix()])

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        """Call the kernel."""
        z, *data = inputs
        total, gradient = self.call(np.ascontiguousarray(z), *data)
        output_storage[0][0] = total
        output_storage[1][0] = gradient

    def infer_shape(self, *arguments: Any) -> list[Any]:
        """Return the shapes: one number per row of z, one slope per entry."""
        shapes = arguments[-1]
        return [(shapes[0][0],), shapes[0]]

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """Connect z to the first output and nothing else."""
        return [[k == 0, False] for k in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Scale the kernel's gradient by the cotangent of the log-likelihood."""
        rest = [DisconnectedType()() for _ in inputs[1:]]
        if isinstance(cotangents[0].type, DisconnectedType):
            return [DisconnectedType()(), *rest]
        return [outputs[1] * cotangents[0][:, None], *rest]

    L_op = pullback  # the name before PyTensor 3


def _compiled(model: type[Model], n_actions: int, unknowns: Unknowns) -> Any:
    """Compile (z, *data) -> total, gradient: the kernel after the map to the natural scale."""
    supports = [p.support for p in unknowns.parameters]
    kind = np.array([KINDS[s.kind] for s in supports])
    lower = np.array([s.lower for s in supports])
    upper = np.array([s.upper for s in supports])
    full, places = np.nan_to_num(unknowns.full), unknowns.places
    kernel: Any = model.kernel(n_actions, unknowns.lapse)

    @njit
    def estimated(theta):  # type: ignore[no-untyped-def]
        return theta[:, len(places) - 1].copy()

    @njit
    def none(theta):  # type: ignore[no-untyped-def]
        return None

    lapse_of = estimated if unknowns.lapse else none

    @njit
    def call(z, *data):  # type: ignore[no-untyped-def]
        theta, slope = natural(z, kind, lower, upper)
        whole = placed_in(theta, full, places)
        total, gradient = kernel(whole, lapse_of(theta), n_actions, *data)
        for n in range(len(z)):
            for k in range(len(places)):
                slope[n, k] *= gradient[n, places[k]]
        return total, slope

    return call


@numba_dispatch.register_funcify_and_cache_key(LogLikelihood)  # type: ignore[untyped-decorator]
def _funcify(op: LogLikelihood, **_: Any) -> tuple[Any, str]:
    """Pass the call to PyTensor's numba backend; the key changes with everything it depends on."""
    inner = op.call

    @numba_dispatch.numba_njit
    def call(z, *rest):  # type: ignore[no-untyped-def]
        return inner(np.ascontiguousarray(z), *rest)

    kernel: Any = op.model.kernel(op.n_actions, op.unknowns.lapse)
    supports = [(p.name, str(p.support)) for p in op.unknowns.parameters]
    stamps = [stamp_of(f) for f in (kernel.py_func, natural.py_func, _compiled)]
    made_from = repr((stamps, op.n_actions, op.fixed, op.with_lapse, supports))
    return call, f"knownminds_{hashlib.sha256(made_from.encode()).hexdigest()}"
