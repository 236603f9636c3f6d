"""Expressions: built once, simplified without changing their value."""

import numpy as np
import pytest

from knownminds.agents.compiler import expressions as ex
from knownminds.agents.compiler.slopes import Sensitivities, derivative, factored, lowered


@pytest.fixture(autouse=True)
def graph():
    with ex.new_graph():
        yield


def of(name, on=ex.STATE):
    return ex.symbol(name, on)


def value(x, given):
    """Reckon an expression by its definition."""
    if x.op == "number":
        return x.value
    if x.op == "symbol":
        return given[x.value]
    a = [value(y, given) for y in x.args]
    simple = {
        "greater": lambda: a[0] > a[1],
        "equal": lambda: a[0] == a[1],
        "and": lambda: a[0] and a[1],
        "not": lambda: not a[0],
        "max": lambda: max(a),
        "min": lambda: min(a),
        "select": lambda: a[1] if a[0] else a[2],
        "add": lambda: sum(c * y for c, y in zip(x.value, a, strict=True)),
        "multiply": lambda: float(np.prod(a)),
    }
    return simple[x.op]() if x.op in simple else ex.FUNCTIONS[x.op](a[0])


def test_what_was_built_before_is_found_again():
    a, b = of("a"), of("b")
    assert a * b + 1 is 1 + b * a
    assert a - b is -(b - a)
    assert (a > b) is (b < a)
    assert a - a is ex.ZERO
    assert a * b / a is b
    assert ~(a >= b) is (b > a)


def test_arms_of_a_selection_share_what_they_have_in_common():
    c, a, r, s, x = (of(n) for n in "carsx")
    both = ex.select(c > 0, a + r * x, a + s * x)
    assert both is a + ex.select(c > 0, r, s) * x
    assert ex.select(a > r, a, r).op == "max"
    assert ex.select(c > 0, np.exp(a), np.exp(r)) is np.exp(ex.select(c > 0, a, r))
    assert ex.select(c > 0, ex.select(c > 0, a, r), s) is ex.select(c > 0, a, s)


def test_conditions_count_as_one_and_zero_where_one_reckons_with_them():
    a = of("a")
    twice = 2 * (a > 0) + (a == 1)
    assert [value(twice, {"a": v}) for v in (-1.0, 0.5, 1.0)] == [0.0, 2.0, 3.0]


def test_an_expression_has_no_truth_and_no_number_outside_of_tracing():
    a = of("a")
    with pytest.raises(TypeError, match="no truth"):
        bool(a > 0)
    with pytest.raises(ex.UntraceableError, match=r"write np\.exp"):
        float(a)
    with pytest.raises(ex.UntraceableError, match=r"np\.where"):
        int(a)
    with pytest.raises(ex.UntraceableError, match="NumPy array"):
        [1, 2][a]


def random_expression(rng, depth, leaves):
    if depth == 0:
        return leaves[rng.integers(len(leaves))]
    a, b, c = (random_expression(rng, depth - 1, leaves) for _ in range(3))
    return [
        lambda: a + 2 * b - c,
        lambda: a * b,
        lambda: a / (1 + b * b),
        lambda: np.exp(-abs(a)),
        lambda: np.log(1 + a * a),
        lambda: np.sqrt(1 + b * b),
        lambda: ex.select(ex.greater(a, b), a * c, b * c),
        lambda: ex.select(ex.greater(a, c), a, c),
        lambda: (a - b) ** 2,
    ][rng.integers(9)]()


def test_slopes_are_those_of_differences_and_rewriting_changes_no_value():
    rng = np.random.default_rng(0)
    leaves = [of("p", ex.PARAMETER), of("s"), of("d", ex.DATA), ex.number(0.5)]
    slopes = {leaves[0]: ex.ONE, leaves[1]: of("s_by_p")}
    for _ in range(200):
        x = random_expression(rng, 3, leaves)
        given = dict(zip(["p", "s", "d", "s_by_p"], rng.normal(size=4), strict=True))
        d = derivative(x, slopes, {})
        known = value(d, given)

        def at(h, x=x, given=given):
            return value(x, given | {"p": given["p"] + h, "s": given["s"] + h * given["s_by_p"]})

        # Central differences are off by h**2 and by rounding over h.
        numeric = (at(1e-5) - at(-1e-5)) / 2e-5
        assert known == pytest.approx(numeric, rel=1e-6, abs=1e-6 * (1 + abs(at(0.0))))
        for again in (factored(d), lowered(d, {})):
            assert value(again, given) == pytest.approx(known, rel=1e-9, abs=1e-9)


def test_only_slopes_that_are_not_always_zero_are_carried():
    """Two rates, two values: each value hangs on each rate, the last choice on nothing."""
    a, reward = ex.ACTION, of("reward", ex.DATA)
    start, after = {}, {}
    for k in range(2):
        v, last = of(f"v_{k}"), of(f"last_{k}")
        step = reward - v
        rate = ex.select(step > 0, of("up", ex.PARAMETER), of("down", ex.PARAMETER))
        start |= {f"v_{k}": ex.number(0.5), f"last_{k}": ex.ZERO}
        after[f"v_{k}"] = ex.select(ex.equal(a, k), v + rate * step, v)
        after[f"last_{k}"] = ex.select(ex.equal(a, k), ex.ONE, 0.0 * last)
    found = Sensitivities(("up", "down", "beta"), start, [after])
    assert set(found.symbols) == {(f"v_{k}", p) for k in range(2) for p in ("up", "down")}
    assert all(x is ex.ZERO for x in found.start.values())
