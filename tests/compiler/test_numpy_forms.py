"""Forms of NumPy's functions: kernels do what NumPy does, or refuse it."""

import numpy as np
import pytest

from knownminds.agents.compiler.symbols import (
    STATE,
    Symbols,
    UntraceableError,
    evaluated,
    merged,
    new_graph,
    symbol,
)

Q = np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.4]])
ROW, MASK = 1, np.array([True, False, True])


def changed(change):
    """Return a form that changes a row, or a part of one, and gives the whole array."""

    def form(q, row):
        change(q[row])
        return q

    return form


KNOWN = {
    "reduce": lambda q, row: np.maximum.reduce(q),
    "max": lambda q, row: np.max(q),
    "max of rows": lambda q, row: q.max(axis=-1),
    "sum of columns": lambda q, row: np.sum(q, axis=0),
    "mean": lambda q, row: np.mean(q, axis=1),
    "any": lambda q, row: 1.0 * np.any(q > 0.8, axis=1),
    "argmax": lambda q, row: np.argmax(q[row]),
    "argmax of axis": lambda q, row: q[0].argmax(axis=0),
    "argmax of all": lambda q, row: np.argmax(q),
    "cumsum": lambda q, row: np.cumsum(q, axis=0),
    "argmin": lambda q, row: np.argmin(q[row]),
    "sort": lambda q, row: np.sort(q[row]),
    "matmul": lambda q, row: q @ q[row],
    "clip": lambda q, row: np.clip(q, 0.3, 0.6),
    "clip by name": lambda q, row: np.clip(q, a_min=0.3, a_max=None),
    "clip from above": lambda q, row: q.clip(max=0.6),
    "where": lambda q, row: np.where(q > 0.5, q, 0.0),
    "out": lambda q, row: np.add(q, 1.0, out=q),
    "fill": changed(lambda row: row.fill(0.3)),
    "part": changed(lambda row: row[:2].__setitem__(0, 0.3)),
    "copyto": changed(lambda row: np.copyto(row, 0.3, where=MASK)),
    "putmask": changed(lambda row: np.putmask(row, MASK, [0.1, 0.2, 0.3])),
    "sort in place": changed(lambda row: row.sort()),
}
REFUSED = {
    "initial": lambda q, row: np.max(q, initial=0.95),
    "where": lambda q, row: np.sum(q, axis=1, where=MASK),
    "where of elements": lambda q, row: np.multiply(q, 2.0, where=MASK, out=q),
    "where of a mean": lambda q, row: np.mean(q, where=MASK),
    "dtype": lambda q, row: np.sum(q, dtype=int),
    "dtype of elements": lambda q, row: np.add(q, 0.6, dtype=np.float32),
    "keepdims": lambda q, row: q - q.max(axis=1, keepdims=True),
    "several axes": lambda q, row: np.sum(q, axis=(0, 1)),
    "argmax of columns": lambda q, row: q.argmax(axis=0),
    "argmax that keeps dimensions": lambda q, row: q[row].argmax(keepdims=True),
    "clip with out": lambda q, row: np.clip(q, 0.3, 0.6, out=q),
    "clip with where": lambda q, row: q.clip(0.3, 0.6, where=MASK),
    "matmul of stacks": lambda q, row: np.matmul(q[None], q.T[None]),
    "outer": lambda q, row: np.add.outer(q[0], q[row]),
    "at": lambda q, row: np.add.at(q, 0, 1.0),
    "nansum": lambda q, row: np.nansum(q),
}


def by_symbols(form):
    """Return what a form gives when it is run on symbols, at the values of `Q`."""
    with new_graph():
        places = list(np.ndindex(Q.shape))

        def run():
            q = np.empty(Q.shape, dtype=object)
            for n, (i, k) in enumerate(places):
                q[i, k] = symbol(f"q{n}", STATE)
            made = form(q.view(Symbols), symbol("row", STATE))
            return {str(n): x for n, x in enumerate(np.ravel(np.asarray(made, dtype=object)))}

        values = {f"q{n}": Q[place] for n, place in enumerate(places)} | {"row": float(ROW)}
        return np.array(evaluated(merged(run).values(), values), dtype=float)


@pytest.mark.parametrize("name", KNOWN)
def test_a_form_that_is_known_does_what_numpy_does(name):
    expected = np.ravel(KNOWN[name](Q.copy(), ROW))
    assert by_symbols(KNOWN[name]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_kernels_do_not_know_is_refused(name):
    with pytest.raises(UntraceableError, match=r"write|name one"):
        by_symbols(REFUSED[name])
