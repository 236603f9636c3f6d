"""The random numbers of many sessions at once, bit for bit those of their `session_stream`s.

To make a NumPy generator takes some 30 microseconds, longer than simulating a session. The kernel
below does the same as SeedSequence and PCG64 (O'Neill 2014; NumPy promises that both stay as they
are) for many addresses at once. Tests compare its numbers with those of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from .design import session_stream

_POOL = 4  # words in the pool of SeedSequence
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIER = (2549297995355413924 << 64) | 4865540595714422341  # multiplier of PCG64


def session_uniforms(
    seed: int, addresses: Sequence[Sequence[int]] | NDArray[np.int64], n: int
) -> NDArray[np.float64]:
    """Return the first n numbers of ``session_stream(seed, *address).random()`` for N sessions.

    Parameters
    ----------
    addresses : Addresses of the sessions, [N, A], whole numbers from 0 on.
    n : How many numbers each session gets.

    Raises
    ------
    ValueError : If the seed or a part of an address is negative.
    """
    places = np.asarray(addresses)
    if places.ndim != 2 or seed >= 2**64 or places.dtype.kind not in "iu":
        return np.stack([session_stream(seed, *map(int, a)).random(n) for a in addresses])
    if seed < 0 or (places.size and places.min() < 0):
        raise ValueError(
            f"Seeds and addresses are whole numbers from 0 on; got {(seed, int(places.min()))}."
        )
    uniforms = np.empty((len(places), n))
    _fill(np.uint64(seed), places.astype(np.uint64), uniforms)
    return uniforms


@intrinsic
def _step(typing, high, low, inc_high, inc_low):  # type: ignore[no-untyped-def]
    """Go to the next state: times PCG's multiplier plus the stream's increment, modulo 2**128.

    The step uses LLVM's whole numbers of 128 bits, which take half the time of pieces of 32 bits.
    """
    half, whole = ir.IntType(64), ir.IntType(128)
    up = ir.Constant(whole, 64)

    def joined(builder, a, b):  # type: ignore[no-untyped-def]
        return builder.or_(builder.shl(builder.zext(a, whole), up), builder.zext(b, whole))

    def written(context, builder, signature, given):  # type: ignore[no-untyped-def]
        state, increment = (
            joined(builder, *part)  # type: ignore[no-untyped-call]
            for part in (given[:2], given[2:])
        )
        after = builder.add(builder.mul(state, ir.Constant(whole, _MULTIPLIER)), increment)
        halves = builder.trunc(builder.lshr(after, up), half), builder.trunc(after, half)
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(*[types.uint64] * 4), written


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(seed, addresses, uniforms):  # type: ignore[no-untyped-def]
    """Seed a PCG64 for each address and draw a row of uniforms."""
    words = np.empty(_POOL + 2 * addresses.shape[1] + 2, np.uint32)
    state = np.empty(8, np.uint32)
    for i in range(len(addresses)):
        _seed(_words(seed, addresses[i], words), words, state)
        # The four 64-bit words are the initial state (high, low) and the stream (high, low).
        start_high, start_low = _join(state, 0), _join(state, 2)
        stream_high, stream_low = _join(state, 4), _join(state, 6)
        one = np.uint64(1)
        inc_high = (stream_high << one) | (stream_low >> np.uint64(63))
        inc_low = (stream_low << one) | one
        high, low = _add(inc_high, inc_low, start_high, start_low)
        high, low = _step(high, low, inc_high, inc_low)
        row = uniforms[i]
        for t in range(len(row)):
            high, low = _step(high, low, inc_high, inc_low)
            mixed, turn = high ^ low, high >> np.uint64(58)
            drawn = (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))
            row[t] = (drawn >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _words(seed, address, words):  # type: ignore[no-untyped-def]
    """Write seed and address as SeedSequence's 32-bit words; return how many there are."""
    words[0], n = seed & _LOW, 1
    if seed >> _32:
        words[1], n = seed >> _32, 2
    if len(address):
        while n < _POOL:  # an address begins after a full pool
            words[n] = 0
            n += 1
    for part in address:
        words[n] = part & _LOW
        n += 1
        if part >> _32:
            words[n] = part >> _32
            n += 1
    return n


@njit(cache=True, nogil=True)
def _seed(n, words, state):  # type: ignore[no-untyped-def]
    """Mix the words into the pool and read eight words of state from it."""
    pool = np.empty(_POOL, np.uint32)
    constant = np.uint32(0x43B0D7E5)
    for k in range(_POOL):
        pool[k], constant = _hash(words[k] if k < n else np.uint32(0), constant)
    for source in range(_POOL):
        for k in range(_POOL):
            if source != k:
                hashed, constant = _hash(pool[source], constant)
                pool[k] = _mix(pool[k], hashed)
    for source in range(_POOL, n):
        for k in range(_POOL):
            hashed, constant = _hash(words[source], constant)
            pool[k] = _mix(pool[k], hashed)
    constant = np.uint32(0x8B51F9DD)
    for k in range(len(state)):
        value = np.uint32(pool[k % _POOL] ^ constant)
        constant = np.uint32(constant * np.uint32(0x58F38DED))
        value = np.uint32(value * constant)
        state[k] = np.uint32(value ^ (value >> np.uint32(16)))


@njit(cache=True, nogil=True)
def _hash(value, constant):  # type: ignore[no-untyped-def]
    value = np.uint32(value ^ constant)
    constant = np.uint32(constant * np.uint32(0x931E8875))
    value = np.uint32(value * constant)
    return np.uint32(value ^ (value >> np.uint32(16))), constant


@njit(cache=True, nogil=True)
def _mix(x, y):  # type: ignore[no-untyped-def]
    left, right = np.uint32(np.uint32(0xCA01F9DD) * x), np.uint32(np.uint32(0x4973F715) * y)
    value = np.uint32(left - right)
    return np.uint32(value ^ (value >> np.uint32(16)))


@njit(cache=True, nogil=True)
def _join(state, k):  # type: ignore[no-untyped-def]
    return np.uint64(state[k]) | (np.uint64(state[k + 1]) << _32)


@njit(cache=True, nogil=True)
def _add(a_high, a_low, b_high, b_low):  # type: ignore[no-untyped-def]
    """Add two numbers of 128 bits."""
    low = a_low + b_low
    carry = np.uint64(1) if low < a_low else np.uint64(0)
    return a_high + b_high + carry, low
