"""A kernel is held against its definition before it is used: draws, likelihood, gradient.

The definition runs on numbers and its slopes are differences; the kernel's text runs as plain
Python. Neither knows of the other, and nothing has to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log, prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.special import ndtri

from knownminds.agents.parameters import Array
from knownminds.agents.sequences import MISSING, Sequences
from knownminds.environments.world import World, by_column

from . import expressions as ex
from .answers import form_of
from .cache import IMPORTS
from .definition import SMALLEST, Law, log_mixed, probabilities, shares
from .program import Program, Shapes, Through, told_by_line, trace
from .reading import suspect

if TYPE_CHECKING:
    from .model import Model

N_TRIALS, N_SUBJECTS = 20, 5
LAPSE = 0.1
GAPS = 0.15  # share of trials without an answer
ENDS, NEAR = 0.3, 1e-3  # share of responses at the ends of cases, and how near to them
RANGES = ((0.05, 0.95), (1.0, 9.0), (-1.0, 1.0))  # of columns that are just numbers
CLOSE = 1e-9  # of values, relative to 1 + their size: sums are in another order
STEP = 1e-4  # of differences, relative to the parameter
AS_DIFFERENCES = 1e-5  # of slopes; differences are off by about STEP**2 and rounding / STEP
KINK = 1e-4  # differences of two steps that are further apart stand on both sides of a kink


@dataclass(frozen=True)
class Trials:
    """Random trials of a few subjects: columns and tables [N, T, ...] that a definition reads."""

    theta: Array
    columns: Mapping[str, Array]
    tables: Mapping[str, Array]
    uniforms: Array


def check_kernels(model: type[Model], text: str, actions: int) -> None:
    """Raise ValueError if likelihood and step agent do not do what the definition says."""
    with ex.new_graph():
        program = trace(model, actions)
        hints = hints_of(program)
    kernels = _as_python(text)
    with np.errstate(all="ignore"):
        for span, bounded in product(RANGES, (True, False)):
            trials = random_trials(model, program, hints, span, bounded)
            with told_by_line(model):
                plain = [
                    plain_log_likelihood(model, program, trials, lapse) for lapse in (None, LAPSE)
                ]
            if np.isfinite(plain).all():
                break
        else:
            _refuse_as_never_finite(model, "likelihood")
        _compare_steps(model, program, kernels, trials, plain[0])
        for lapse, expected in zip((None, LAPSE), plain, strict=True):
            _compare_likelihood(model, program, kernels, trials, lapse, expected)


def check_simulation(
    model: type[Model], text: str, actions: int, world: type[World], shapes: Shapes
) -> None:
    """Raise ValueError if a simulation does not play what definition and world do."""
    with ex.new_graph():
        program = trace(model, actions, world, shapes)
        hints = hints_of(program)
    kernels = _as_python(text)
    with np.errstate(all="ignore"):
        for span, bounded in product(RANGES, (True, False)):
            trials = random_trials(model, program, hints, span, bounded, (world, shapes))
            with told_by_line(model, world):
                lived = [
                    plain_sessions(model, program, trials, lapse, world) for lapse in (0.0, LAPSE)
                ]
            if not np.isnan(lived).any():
                break
        else:
            _refuse_as_never_finite(model, f"simulation in {world.__name__}")
        for lapse, expected in zip((None, LAPSE), lived, strict=True):
            _compare_draws(model, program, kernels, trials, lapse, expected)


def _refuse_as_never_finite(model: type[Model], what: str) -> NoReturn:
    raise ValueError(
        f"{model.__name__} gives no finite {what} on any of {2 * len(RANGES)} sets of random "
        "trials; keep what stands under logarithms, roots and fractions in range (np.clip)."
    )


def _as_python(text: str) -> SimpleNamespace:
    """Run a text without numba."""
    plain = text.replace(IMPORTS, "compiled = njit = lambda **_: lambda function: function\n")
    names: dict[str, Any] = {}
    exec(compile(plain, "kernels", "exec"), names)
    return SimpleNamespace(**names)


@dataclass(frozen=True)
class Hints:
    """What a definition tells of the values of columns and tables, by name.

    `values` are those it compares them with or indexes by, `bounds` where it sets cases apart.
    """

    values: Mapping[str, Sequence[float]]
    bounds: Mapping[str, Sequence[float]]


def hints_of(program: Program) -> Hints:
    """Read the comparisons and indices of a program, in the graph in which it was traced."""
    roots = [x for k in program.kinds for live in (False, True) for x in k.roots(live)]
    roots += [x for k in program.kinds for x in form_of(k, program.actions).heads]
    roots += program.start.values()
    values: dict[str, set[float]] = {}
    bounds: dict[str, set[float]] = {}
    on = (ex.DATA, ex.SEQUENCE)
    for x in ex.within(roots):
        if x.op not in ("equal", "greater"):
            continue
        constant, column = sorted(x.args, key=lambda a: a.op != "number")
        if constant.op == "number" and column.op == "symbol" and column.on in on:
            found = values if x.op == "equal" else bounds
            found.setdefault(column.value, set()).add(constant.value)
    known = {name: [*sorted(v), max(v) + 1.0] for name, v in values.items()}
    for column, size in ex.index_sizes().items():
        if column.op == "symbol":
            known[column.value] = list(map(float, range(size)))
    return Hints(known, {name: sorted(v) for name, v in bounds.items()})


def random_trials(
    model: type[Model],
    program: Program,
    hints: Hints,
    span: tuple[float, float],
    bounded: bool,
    played: tuple[type[World], Shapes] | None = None,
) -> Trials:
    """Draw trials; numbers lie in a span, on both sides of bounds if `bounded`.

    With the tables of a world, if it is to be `played`.
    """
    rng = np.random.default_rng(7)
    shape = (N_SUBJECTS, N_TRIALS)

    def numbers(name: str) -> Array:
        found = anyhow(name)
        return np.repeat(found[:, :1], N_TRIALS, axis=1) if name in model.separate else found

    def anyhow(name: str) -> Array:
        if name == program.kind_column:
            assert model.kinds is not None
            return rng.choice(model.kinds[1], shape).astype(float)
        if name in hints.values:
            return rng.choice(hints.values[name], shape)
        if bounded and name in hints.bounds:
            return rng.choice(hints.bounds[name], shape) + rng.uniform(-0.5, 0.5, shape)
        return rng.uniform(*span, shape)

    columns = {name: numbers(name) for name in program.columns}
    given = rng.random(shape) >= GAPS
    if program.given != "action":
        response = rng.uniform(0.02, 0.98, shape)
        ends = hints.bounds.get("response", ())
        if ends:  # some responses at the ends of cases, and near them
            near = rng.choice(ends, shape) + rng.choice([-NEAR, 0.0, NEAR], shape)
            response = np.where(rng.random(shape) < ENDS, near, response)
        columns["response"] = np.where(given, response, -np.inf)
    if not program.law:
        columns["action"] = np.where(given, rng.integers(0, program.actions, shape), MISSING)
    world, shapes = played or (None, {})
    tables = {
        name: np.stack([numbers(f"{name}_{k}") for k in range(prod(size))], -1).reshape(
            *shape, *size
        )
        if size
        else columns.get(name, numbers(name))
        for name, size in {**dict.fromkeys(program.design, ()), **shapes}.items()
    }
    if world is not None and world.span is not None:
        runs = np.arange(N_TRIALS) // (N_TRIALS if world.span in model.separate else 3)
        tables[world.span] = np.broadcast_to(runs.astype(float), shape)
    uniforms = rng.random(shape) if program.given == "action" else rng.random((*shape, 2))
    theta = model.parameters.draw(rng, N_SUBJECTS)
    return Trials(theta, columns, tables, uniforms)


def plain_log_likelihood(
    model: type[Model], program: Program, trials: Trials, lapse: float | None,
    theta: Array | None = None,
) -> Array:  # fmt: skip
    """Run the definition on numbers; return the log-likelihood of each subject."""
    total = np.zeros(N_SUBJECTS)
    for n, values in enumerate(trials.theta if theta is None else theta):
        named = dict(zip(program.parameters, values.tolist(), strict=True))
        mind = model.mind(named, program.actions, _Trial(**_first(trials, n)))
        for t in range(N_TRIALS):
            row = {name: column[n, t].item() for name, column in trials.columns.items()}
            trial = _as_trial(row, program)
            if trial is None:
                continue
            outcome, own, each = mind.respond(trial), 0.0, 1.0
            if not isinstance(outcome, Law):
                p = probabilities(outcome)[trial.action]
                own, each = log(p) if p > 0 else -np.inf, 1.0 / program.actions
                outcome = mind.report(trial) if model.reports() else None
            if isinstance(outcome, Law):
                own += float(outcome.log_density(row["response"]))
                each *= float(outcome.lapse_density(row["response"]))
            total[n] += own if lapse is None else log_mixed(own, each, lapse)
            mind.update(trial)
    return total


def _first(trials: Trials, n: int) -> dict[str, int | float]:
    """Return the columns of a subject's first trial, whole numbers as such."""
    return {name: _whole(column[n, 0].item()) for name, column in trials.columns.items()}


class _Trial(SimpleNamespace):
    """A trial; what a definition asks for although no answer hangs on it is any number."""

    def __getattr__(self, name: str) -> float:
        return 1.0


def _as_trial(row: Mapping[str, float], program: Program) -> _Trial | None:
    """Return a trial as definitions see it, whole numbers as such; None without an answer."""
    whole = {n: _whole(v) for n, v in row.items()}
    answer = row["response" if program.law else "action"]
    return None if answer < -1e300 or (not program.law and answer < 0) else _Trial(**whole)


def _compare_steps(
    model: type[Model], program: Program, kernels: Any, trials: Trials, expected: Array
) -> None:
    """Follow the trials with the functions of the step agent."""
    total, answer, number = np.zeros(N_SUBJECTS), program.kinds[0].outcome, program.kinds[0].number
    for n, theta in enumerate(trials.theta.tolist()):
        state = kernels.begin(theta, *([_first(trials, n)] if program.begun_by else []))
        for t in range(N_TRIALS):
            row = {name: column[n, t].item() for name, column in trials.columns.items()}
            trial = _as_trial(row, program)
            if trial is None:
                continue
            seen = vars(trial)
            parts = kernels.respond(theta, state, seen)
            action = seen.get("action", -1)
            if answer.law is None:
                p = (parts if answer.stated else shares(parts))[action]
                total[n] += log(p) if p > 0 else -np.inf
                parts = kernels.report(theta, state, seen, action) if number else ()
            if number is not None and number.law is not None:
                total[n] += float(number.law(*parts).log_density(row["response"]))
            brought = seen.pop("action", -1), seen.pop("reward", np.nan)
            kernels.update(theta, state, seen, *brought)
    if not np.allclose(total, expected, rtol=CLOSE, atol=CLOSE):
        _refuse(model, "log-likelihood, step by step,", total, expected)


def _compare_likelihood(
    model: type[Model], program: Program, kernels: Any, trials: Trials, lapse: float | None,
    expected: Array,
) -> None:  # fmt: skip
    sequences = Sequences.group(np.repeat(np.arange(N_SUBJECTS), N_TRIALS), (), N_SUBJECTS)
    flat = [trials.columns[name].ravel() for name in program.columns]
    missing = [-np.inf if name == "response" else MISSING for name in program.columns]
    if hasattr(kernels, "prepared"):
        flat = list(kernels.prepared(*flat))
        missing = [MISSING] * len(flat)
    packed = [sequences.pack(c, gone) for c, gone in zip(flat, missing, strict=True)]
    rates = None if lapse is None else np.full(N_SUBJECTS, lapse)
    total, gradient = kernels.log_likelihood(
        trials.theta, rates, program.actions, sequences.row, sequences.start, *packed
    )
    told = "" if lapse is None else ", with lapses"
    if not np.allclose(total, expected, rtol=CLOSE, atol=CLOSE):
        _refuse(model, f"log-likelihood{told}", total, expected)

    def at(theta: Array, share: float | None = lapse) -> Array:
        return plain_log_likelihood(model, program, trials, share, theta)

    for k, name in enumerate(program.parameters):
        slopes = []
        for size in (STEP, STEP / 2):
            h = np.zeros_like(trials.theta)
            h[:, k] = size * np.minimum(1.0, np.abs(trials.theta[:, k]))
            slopes.append((at(trials.theta + h) - at(trials.theta - h)) / (2 * h[:, k]))
        apart = np.abs(slopes[0] - slopes[1])  # three times what the second is off by
        smooth = apart < KINK * (1 + np.abs(slopes[1]))
        bound = AS_DIFFERENCES * (1 + np.abs(expected)) + apart
        off = np.abs(gradient[:, k] - slopes[1]) > bound
        if (smooth & off).any():
            _refuse(model, f"slope in {name}{told}", gradient[:, k], slopes[1])
    if lapse is not None:
        slope = (at(trials.theta, lapse + STEP) - at(trials.theta, lapse - STEP)) / (2 * STEP)
        if not np.allclose(gradient[:, -1], slope, rtol=1e-4, atol=1e-4):
            _refuse(model, "slope in the lapse rate", gradient[:, -1], slope)


def _compare_draws(
    model: type[Model],
    program: Program,
    kernels: Any,
    trials: Trials,
    lapse: float | None,
    expected: Array,
) -> None:
    sequences = Sequences.group(np.repeat(np.arange(N_SUBJECTS), N_TRIALS), (), N_SUBJECTS)

    def packed(table: Array) -> Array:
        return sequences.pack(table.reshape(N_SUBJECTS * N_TRIALS, *table.shape[2:]))

    design = [packed(trials.tables[name]) for name in program.design]
    if program.given != "action":
        design.insert(0, packed(ndtri(trials.uniforms[..., 1])))
    rates = None if lapse is None else np.full(N_SUBJECTS, lapse)
    drawn = kernels.simulate(
        trials.theta, rates, program.actions, sequences.row, sequences.start,
        packed(trials.uniforms), *design,
    )  # fmt: skip
    parts, n = (drawn if program.given == "both" else (drawn,)), N_SUBJECTS * N_TRIALS
    got = np.stack([sequences.unpack(p, n).reshape(N_SUBJECTS, N_TRIALS) for p in parts], axis=-1)
    if not np.allclose(got, expected, rtol=CLOSE, atol=CLOSE):
        _refuse(model, "draws", got, expected)


def plain_sessions(
    model: type[Model], program: Program, trials: Trials, lapse: float, world: type[World]
) -> Array:
    """Let definition and world live sessions among the tables, on numbers; return the answers.

    One that has no number is NaN.
    """
    answers = np.full((N_SUBJECTS, N_TRIALS, 2 if program.given == "both" else 1), MISSING)
    for n, theta in enumerate(trials.theta.tolist()):
        named = dict(zip(program.parameters, theta, strict=True))
        first = {name: _entry(table[n, 0]) for name, table in trials.tables.items()}
        mind = model.mind(named, program.actions, SimpleNamespace(**first))
        place, begun = world(), None
        place.begin()
        for t in range(N_TRIALS):
            row = {name: _entry(table[n, t]) for name, table in trials.tables.items()}
            if world.span is not None and row[world.span] != begun:
                begun = row[world.span]
                place.begin()
            drawn = SimpleNamespace(**row)
            shown = place.show(drawn)
            if not shown.pop("present", True):
                continue
            shown = {name: _whole(value) for name, value in shown.items()}
            u, action = np.ravel(trials.uniforms[n, t]), -1
            outcome = mind.respond(Through(drawn, shown))
            if not isinstance(outcome, Law):
                answers[n, t, 0] = found = _chosen(probabilities(outcome), u, lapse)
                action = -1 if np.isnan(found) else int(found)
                if len(u) > 1:
                    outcome = mind.report(Through(drawn, {**shown, "action": action}))
            if isinstance(outcome, Law):
                noise = float(ndtri(max(u[1], SMALLEST)))
                lapses = u[0] < lapse
                answers[n, t, -1] = outcome.lapse_at(u[1]) if lapses else outcome.at(noise)
            paid = {n: _whole(v) for n, v in by_column(place.pay(drawn, action)).items()}
            mind.update(Through(drawn, {**shown, "action": action, **paid}))
    return answers


def _chosen(shares: list[float], u: Array, lapse: float) -> float:
    """Return the action at a uniform number, which with a second also decides on a lapse."""
    p = np.array(shares)
    own, any_of = np.cumsum(p), np.arange(1, len(p) + 1) / len(p)
    bounds = (1 - lapse) * own + lapse * any_of
    if len(u) > 1:
        bounds = lapse * any_of if u[0] < lapse else lapse + (1 - lapse) * own
    return float(np.nan if np.isnan(p).any() else (bounds[:-1] <= u[0]).sum())


def _entry(value: Any) -> Any:
    """Return what a table holds for a trial, as the step interface has it."""
    return _whole(value.item()) if value.ndim == 0 else value


def _whole(x: Any) -> Any:
    return int(x) if np.isfinite(x) and float(x) == int(x) else float(x)


def _refuse(model: type[Model], what: str, got: Array, expected: Array) -> None:
    k = int(np.argmax(np.nan_to_num(np.abs(got - expected), nan=np.inf).ravel()))
    found = suspect(model)
    why = (
        "Either the definition gives different numbers when it is run twice, or this is a mistake "
        "of the compiler: please report it with the definition."
    )
    if found is not None:
        why = f"What may be the reason ({found.place}): {found.why}."
    raise ValueError(
        f"The kernel of {model.__name__} gives another {what} than the definition on the same "
        f"random trials, {got.ravel()[k]:.10g} against {expected.ravel()[k]:.10g}. {why}"
    )
