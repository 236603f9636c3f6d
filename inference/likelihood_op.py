"""An agent's kernel as a PyTensor operation with gradient, in Python and in compiled graphs."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic as numba_dispatch

from knownminds.agents import Agent


class LogLikelihood(Op):  # type: ignore[misc]
    """Log-likelihood [N] of theta [N, P], and its gradient [N, P], from an agent's kernel.

    The inputs are theta (the lapse rate as last column if `with_lapse`), then row, start and the
    packed columns of `ModelData`. Only theta is differentiable, and only through the first
    output; the second is that derivative, so a graph that asks for both calls the kernel once.
    """

    __props__ = ("model", "n_actions", "with_lapse")

    def __init__(self, model: type[Agent], n_actions: int, with_lapse: bool):
        self.model = model
        self.n_actions = n_actions
        self.with_lapse = with_lapse

    def make_node(self, theta: Any, *data: Any) -> Apply[Any, Any]:
        """Check nothing but the types: the data were checked where they were read."""
        theta = pt.as_tensor_variable(theta, dtype="float64")
        inputs = [theta, *(pt.as_tensor_variable(d) for d in data)]
        return Apply(self, inputs, [pt.dvector(), pt.dmatrix()])

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        """Call the kernel."""
        theta, *data = inputs
        own, lapse = (theta[:, :-1], theta[:, -1].copy()) if self.with_lapse else (theta, None)
        total, gradient = self.model.log_likelihood(
            np.ascontiguousarray(own), lapse, self.n_actions, *data
        )
        output_storage[0][0] = total
        output_storage[1][0] = gradient

    def infer_shape(self, fgraph: Any, node: Any, shapes: Any) -> list[Any]:
        """One number per row of theta, one slope per entry."""
        return [(shapes[0][0],), shapes[0]]

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        """Connect theta to the first output and nothing else."""
        return [[k == 0, False] for k in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Scale the kernel's own gradient by the cotangent of the log-likelihood."""
        rest = [DisconnectedType()() for _ in inputs[1:]]
        if isinstance(cotangents[0].type, DisconnectedType):
            return [DisconnectedType()(), *rest]
        return [outputs[1] * cotangents[0][:, None], *rest]

    L_op = pullback  # the name before PyTensor 3


@numba_dispatch.register_funcify_and_cache_key(LogLikelihood)  # type: ignore[untyped-decorator]
def _compile(op: LogLikelihood, **_: Any) -> tuple[Any, str]:
    """Hand the kernel to PyTensor's numba backend; the key changes with the kernel's source."""
    kernel, n_actions = op.model.log_likelihood, op.n_actions

    if op.with_lapse:

        @numba_dispatch.numba_njit
        def call(theta, *data):  # type: ignore[no-untyped-def]
            last = theta.shape[1] - 1
            own = np.ascontiguousarray(theta[:, :last])
            return kernel(own, theta[:, last].copy(), n_actions, *data)
    else:

        @numba_dispatch.numba_njit
        def call(theta, *data):  # type: ignore[no-untyped-def]
            return kernel(np.ascontiguousarray(theta), None, n_actions, *data)

    written: Any = kernel  # a numba dispatcher, which keeps the function it was made from
    source = Path(inspect.getfile(written.py_func)).read_bytes()
    name = f"{op.model.__module__}.{op.model.__qualname__}"
    key = f"knownminds {name} {n_actions} {op.with_lapse} {hashlib.sha256(source).hexdigest()}"
    return call, key
