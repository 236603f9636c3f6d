"""Compiled likelihoods behind one signature, so that their callers are compiled only once."""

from __future__ import annotations

from functools import cache
from inspect import CO_VARARGS
from typing import Any

import numpy as np
from numba import carray, njit, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from knownminds.agents.compiled import read_only

Columns = tuple[NDArray[Any], ...]


class Address(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function that others call without being compiled for it."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], kinds: tuple[Any, ...] = ()):
        argument_types = (*map(typeof, arguments), *kinds)
        function.compile(argument_types)
        self.overload = function.overloads[argument_types]  # keeps the code in memory
        name = self.overload.fndesc.llvm_cfunc_wrapper_name
        self.address = self.overload.library.get_pointer_to_function(name)

    def __wrapper_address__(self) -> int:
        """Return the address of the function."""
        return int(self.address)

    def signature(self) -> Any:
        """Return the types of arguments and result."""
        return self.overload.signature


@intrinsic  # type: ignore[untyped-decorator]
def pointer_to(typing: Any, address: Any) -> Any:
    """Turn a number into the pointer with this address."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate


def views(
    kinds: tuple[Any, ...], source: str, at: int = 0
) -> tuple[list[str], dict[str, Any], int]:
    """Return code that makes arrays from the numbers of `addresses_of`, and the names it needs.

    The numbers stand in `source` from a position on; the last thing returned is where they end.
    """
    arrays: list[str] = []
    known: dict[str, Any] = {"carray": carray, "pointer": pointer_to}
    for number, kind in enumerate(kinds):
        known[f"kind_{number}"] = kind.dtype
        sizes = "".join(f"{source}[{at + 1 + axis}], " for axis in range(kind.ndim))
        arrays.append(f"carray(pointer({source}[{at}]), ({sizes}), kind_{number})")
        at += 1 + kind.ndim
    return arrays, known, at


@cache
def likelihood_address(kernel: Any, n_actions: int, lapse: bool, kinds: tuple[Any, ...]) -> Address:
    """Return a model's likelihood in a form with the same signature for all models.

    It takes parameters, lapses (an empty array if there are none), the number of actions, and the
    addresses and lengths of the arrays of the trials, which are of these kinds (`addresses_of`).
    """
    theta, rates = np.zeros((1, 1)), np.zeros(1)
    lapses = read_only(rates) if lapse else None
    arrays, known, end = views(kinds, "addresses")
    known["kernel"] = kernel
    if not kernel.py_func.__code__.co_flags & CO_VARARGS:  # called by its address, not linked in
        known["kernel"] = Address(kernel, (read_only(theta), lapses, n_actions), kinds)
    exec(
        f"def call(theta, lapse, n_actions, addresses):\n"
        f"    return kernel(theta, {'lapse' if lapse else None}, n_actions, {', '.join(arrays)})",
        known,
    )
    call = njit(nogil=True, error_model="numpy")(known["call"])
    return Address(call, (theta, rates, n_actions, np.zeros(end, dtype=np.int64)))


def addresses_of(arrays: Columns) -> NDArray[np.int64]:
    """Return the address and the shape of each array; the caller must keep the arrays alive."""
    return np.array([n for each in arrays for n in (each.ctypes.data, *each.shape)], dtype=np.int64)
