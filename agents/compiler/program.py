"""A definition as expressions: what is answered and remembered on each kind of trial."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from knownminds.environments.environment import Given
from knownminds.environments.world import World, by_column

from . import expressions as ex
from .definition import Law, Probabilities
from .expressions import ACTION, Expr, UntraceableError
from .reading import refused_by_text
from .tracing import Seen, Steady, flat, merged, shaped, with_symbols

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class Outcome:
    """What `respond` returned: utilities, log odds, probabilities, or the fields of a law."""

    law: type[Law] | None
    stated: bool  # whether the parts are probabilities
    parts: dict[str, Expr]

    @property
    def as_law(self) -> Law:
        """Return the law; there must be one."""
        assert self.law is not None
        return self.law(**self.parts)


@dataclass(frozen=True)
class Kind:
    """One kind of trial.

    Parameters
    ----------
    value : of the column that tells kinds apart
    outcome, report, after : what is answered, which number is given with an action, and what is
        remembered afterwards, by the columns of a trial
    shown, reported, played : the same by what was drawn for the session; `played` with the state of
        the world, as far as answers hang on it. Without a world they are as in a fit.
    present : whether the trial takes place
    """

    value: int | None
    outcome: Outcome
    report: Outcome | None
    after: dict[str, Expr]
    shown: Outcome
    reported: Outcome | None
    played: dict[str, Expr]
    present: Expr

    @property
    def number(self) -> Outcome | None:
        """Return the law of the number that is given, if one is."""
        return self.outcome if self.outcome.law is not None else self.report

    def roots(self, live: bool = False) -> list[Expr]:
        """Return all expressions of a fit, or with `live` of a session."""
        answers = (self.shown, self.reported) if live else (self.outcome, self.report)
        after = [*self.played.values(), self.present] if live else list(self.after.values())
        return [x for answer in answers if answer for x in answer.parts.values()] + after


@dataclass(frozen=True)
class Program:
    """A definition, run on symbols.

    Parameters
    ----------
    name, world, actions, parameters : of the model, and what its world is called
    kind_column : the column that tells kinds of trials apart; None if there is one kind
    start, world_start : what is remembered before the first trial, by flat names
    arrays : shapes of the tables that hold several numbers a trial
    fixed : whether the model has so many actions always
    """

    name: str
    world: str
    actions: int
    parameters: tuple[str, ...]
    kind_column: str | None
    start: dict[str, Expr]
    world_start: dict[str, Expr]
    kinds: tuple[Kind, ...]
    arrays: dict[str, tuple[int, ...]]
    fixed: bool

    @cached_property
    def world_goes_on(self) -> bool:
        """Whether answers hang on what the world remembers."""
        return any(name in kind.played for kind in self.kinds for name in self.world_start)

    @property
    def law(self) -> bool:
        """Whether a number alone is given."""
        return self.kinds[0].outcome.law is not None

    @property
    def given(self) -> Given:
        """What is given on a trial."""
        if self.kinds[0].report is not None:
            return "both"
        return "response" if self.law else "action"

    @property
    def remembers(self) -> bool:
        """Whether a trial changes what is remembered."""
        after = (pair for kind in self.kinds for pair in kind.after.items())
        return any(x is not ex.symbol(name, ex.STATE) for name, x in after)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the likelihood reads: the answer first."""
        roots = [x for k in self.kinds for x in (*k.roots(), *_of_lapses(k))]
        roots += self.start.values()
        on = (ex.DATA, ex.SEQUENCE)
        read = [x.value for x in ex.within(roots) if x.op == "symbol" and x.on in on]
        first = ["action", "response"] if self.given == "both" else [self.given]
        # In which order they are met may hang on the number of actions; this order does not.
        ordered = (
            sorted(read, key=_rank) if self.fixed else sorted(read, key=lambda n: (_rank(n), n))
        )
        return tuple(dict.fromkeys([*first, *self._kind_columns, *ordered]))

    @cached_property
    def design(self) -> tuple[str, ...]:
        """Tables of the design that the simulation reads."""
        roots = [x for k in self.kinds for x in k.roots(live=True)]
        read = [x.value for x in ex.within(roots) if x.op == "symbol" and x.on == ex.DATA]
        whole = tables_by_entry(self.arrays)
        names = [whole.get(n, n) for n in read if n not in ("action", "response")]
        return tuple(dict.fromkeys([*self._kind_columns, *self.begun_by, *names]))

    @property
    def begun_by(self) -> tuple[str, ...]:
        """Columns, the same in all of a sequence, by which it begins."""
        on = ex.within(self.start.values())
        return tuple(x.value for x in on if x.op == "symbol" and x.on == ex.SEQUENCE)

    @property
    def _kind_columns(self) -> list[str]:
        return [self.kind_column] if self.kind_column else []


def tables_by_entry(arrays: Shapes) -> dict[str, str]:
    """Return the table of each symbol that stands for one of its several numbers."""
    return {f"{n}_{k}": n for n, s in arrays.items() for k in range(int(np.prod(s)))}


def _of_lapses(kind: Kind) -> list[Expr]:
    if kind.number is None:
        return []
    law = kind.number.as_law
    return list(merged(lambda: {"": law.lapse_density(ex.RESPONSE)}).values())


def _rank(name: str) -> bool:
    return name != "reward"  # which comes right after the answer, as elsewhere


Shapes = Mapping[str, tuple[int, ...]]  # of what tables hold for a trial
TAKEN = "action that was taken"  # its symbol in a world by itself; -1 where there is none


@dataclass(frozen=True)
class Passage:
    """A trial of a world by itself, run on symbols.

    Parameters
    ----------
    start : what the world remembers before the first trial
    columns : what it shows and pays
    present : whether the trial takes place
    after : what it remembers afterwards
    tables : the tables of the design that it reads
    """

    start: dict[str, Expr]
    columns: dict[str, Expr]
    present: Expr
    after: dict[str, Expr]
    tables: tuple[str, ...]


def trace_world(model: type[Model], world: type[World], shapes: Shapes) -> Passage:
    """Run a world on symbols, by itself; see `trace` for what is raised. Any model will do."""
    with told_by_line(model, world):
        return _Run(model, 2, world, shapes).passage()


def trace(
    model: type[Model], actions: int, world: type[World] | None = None, shapes: Shapes | None = None
) -> Program:
    """Run the definition on symbols; within `new_graph`.

    Parameters
    ----------
    world, shapes
        What happens between trials, which simulation alone needs, and the tables it reads.

    Raises
    ------
    ValueError
        Naming model, line, and what to write instead.
    """
    found = refused_by_text(model)
    if found is not None:
        raise ValueError(
            f"{model.__name__} cannot be turned into a kernel ({found.place}): {found.why}."
        )
    with told_by_line(model, world):
        return _Run(model, actions, world, shapes or {}).program()


class _Run:
    """One run of a definition on symbols, kind by kind."""

    def __init__(self, model: type[Model], actions: int, world: type[World] | None, shapes: Shapes):
        self.model, self.actions, self.world = model, actions, world
        # What is separate is the same in all of a sequence.
        self.steady = {n: ex.symbol(n, ex.SEQUENCE) for n in model.separate}
        self.parameters = {n: ex.symbol(n, ex.PARAMETER) for n in model.parameters.names}
        self._first: Model
        self.begun = self._begun()
        place = (world or World)()
        place.begin()
        self.world_begun = dict(vars(place))
        self.arrays = {name: shape for name, shape in shapes.items() if shape}

    def _begun(self) -> dict[str, Any]:
        """Return what is remembered before the first trial."""
        told = Steady(self.steady)

        def begin() -> dict[str, Any]:
            self._first = self.model.mind(self.parameters, self.actions, told)
            return {n: ex.as_number(v) for n, v in flat(self._first.remembered()).items()}

        values = merged(begin)
        _check_apart(self._first.remembered(), "begin")
        return shaped(self._first.remembered(), lambda name: values[name])

    def _mind(self, remembered: Mapping[str, Any]) -> Model:
        """Make a mind that has begun, and remembers this."""
        made = self.model.__new__(self.model)
        made.__dict__.update({**self._first.__dict__, **remembered})
        return made

    def program(self) -> Program:
        """Run kind by kind; what is never negative is then known in a second run."""
        found = self._program()
        if self.world is None:
            return found
        with ex.not_negative(_never_negative(found)):
            return _as_far_as_needed(self._program())

    def _program(self) -> Program:
        kinds = self.model.kinds
        values = kinds[1] if kinds else (None,)
        found = tuple(self._kind(kinds[0] if kinds else "", value) for value in values)
        if len({(k.outcome.law, k.outcome.stated, k.number and k.number.law) for k in found}) > 1:
            raise UntraceableError("respond() returns different kinds of answers; return one kind")
        return Program(
            self.model.name,
            self.world.__name__ if self.world is not None else "no world",
            self.actions,
            tuple(self.parameters),
            kinds[0] if kinds else None,
            {n: ex.as_number(v) for n, v in flat(self.begun).items()},
            {of_world(n): ex.as_number(v) for n, v in self._world_start().items()},
            found,
            self.arrays,
            inspect.getattr_static(self.model, "n_actions") is not None,
        )

    def _kind(self, column: str, value: int | None) -> Kind:
        told: dict[str, Any] = {} if value is None else {column: value}
        known = {**self.steady, **told}
        symbols = with_symbols(self.begun)
        outcome = self._outcome("respond", lambda: Seen(known))
        report = self._report(lambda: Seen({**known, "action": ACTION}))
        after = self._after(lambda: Seen({**known, "action": ACTION}))
        if self.world is None:
            return Kind(value, outcome, report, after, outcome, report, after, ex.TRUE)

        tables = Seen(told, self.arrays)
        shown, present, went = self._show(self.world(), tables)
        seen = self._outcome("respond", lambda: Through(tables, {**told, **shown}))
        reported = self._report(lambda: Through(tables, {**told, **shown, "action": ACTION}))
        action = ex.number(-1.0) if outcome.law else ACTION  # where numbers are given there is none
        brought, world = self._pay(self.world(), tables, went, action)
        paid = {**told, **shown, "action": ACTION, **brought}
        played = self._after(lambda: Through(tables, paid))
        before = {n: ex.as_number(v) for n, v in flat(symbols).items()}
        for name, value_after in played.items():
            played[name] = ex.select(present, value_after, before[name])
        played = {**world(present), **played}
        return Kind(value, outcome, report, after, seen, reported, played, present)

    def passage(self) -> Passage:
        """Run the world alone."""
        assert self.world is not None
        tables = Seen({}, self.arrays)
        shown, present, went = self._show(self.world(), tables)
        paid, after = self._pay(self.world(), tables, went, ex.symbol(TAKEN, ex.DATA))
        columns = {n: ex.as_number(x) for n, x in {**shown, **paid}.items()}
        start = {of_world(n): ex.as_number(v) for n, v in self._world_start().items()}
        later = after(present)
        read = ex.within([*columns.values(), present, *later.values()])
        names = [x.value for x in read if x.op == "symbol" and x.on == ex.DATA and x.value != TAKEN]
        whole = tables_by_entry(self.arrays)
        return Passage(
            start, columns, present, later, tuple(dict.fromkeys(whole.get(n, n) for n in names))
        )

    def _report(self, trial: Callable[[], Any]) -> Outcome | None:
        if not self.model.reports():
            return None
        found = self._outcome("report", trial)
        if found.law is None:
            raise UntraceableError("report() returns no law; return one, such as Normal(mean, sd)")
        return found

    def _outcome(self, method: str, trial: Callable[[], Any]) -> Outcome:
        found: dict[str, Any] = {}

        def run() -> dict[str, Any]:
            mind = self._mind(with_symbols(self.begun))
            out = getattr(mind, method)(trial())
            self._check_unchanged(mind, method)
            law = type(out) if isinstance(out, Law) else None
            stated = isinstance(out, Probabilities)
            if found.setdefault("form", (law, stated)) != (law, stated):
                raise UntraceableError(
                    f"{method}() returns different kinds of answers; return one kind"
                )
            if isinstance(out, Law):
                return {f.name: getattr(out, f.name) for f in fields(out)}  # type: ignore[arg-type]
            values = out.values if isinstance(out, Probabilities) else out
            if out is None:
                raise UntraceableError(f"{method}() returns nothing; return utilities or log odds")
            parts = np.ravel(np.asarray(values, dtype=object))
            return {str(k): ex.as_number(x) for k, x in enumerate(parts)}

        parts = merged(run)
        law, stated = found["form"]
        if method == "report":
            return Outcome(law, stated, parts)
        wanted = (self.actions, 1) if self.actions == 2 and not stated else (self.actions,)
        if law is None and len(parts) not in wanted:
            raise UntraceableError(
                f"respond() returns {len(parts)} numbers for {self.actions} actions; return one "
                "for each"
            )
        return Outcome(law, stated, parts)

    def _after(self, trial: Callable[[], Any]) -> dict[str, Expr]:
        def run() -> dict[str, Any]:
            made = self._mind(with_symbols(self.begun))
            made.update(trial())
            self._check_parameters(made, "update")
            remembered = made.remembered()
            check_remembered(self.begun, remembered)
            return {n: ex.as_number(v) for n, v in flat(remembered).items()}

        return merged(run)

    def _check_parameters(self, mind: Model, method: str) -> None:
        """Refuse a definition that changes a parameter, which is one number for all trials."""
        for name in self.parameters:
            if mind.__dict__.get(name) is not self._first.__dict__.get(name):
                raise UntraceableError(
                    f"{method}() changes self.{name}, a parameter; remember a number of its own, "
                    f"set to self.{name} in begin(), and change that"
                )

    def _check_unchanged(self, mind: Model, method: str) -> None:
        """Refuse an answer that changes what is remembered: who looks must not learn by it."""
        self._check_parameters(mind, method)
        after, before = mind.remembered(), flat(with_symbols(self.begun))
        odd = sorted(set(after) ^ set(self.begun))
        if not odd:
            now = flat(after)
            moved = (n for n, x in before.items() if ex.as_expr(now.get(n, ex.ZERO)) is not x)
            odd = [next((n for n in after if m.startswith(n)), m) for m in moved]
        if odd:
            raise UntraceableError(
                f"{method}() changes self.{odd[0]}; what a trial changes is changed in update()"
            )

    def _world_start(self) -> dict[str, Any]:
        start = flat(self.world_begun)
        if self.world is not None and self._begins_within:
            start[SPAN] = -1.0  # of no trial; a world that has begun may begin again
        return start

    @property
    def _begins_within(self) -> bool:
        """Whether the world begins anew within what a kernel plays as one sequence."""
        span = self.world.span if self.world is not None else None
        return bool(self.world_begun) and span is not None and span not in self.model.separate

    def _entered(self, tables: Seen) -> tuple[dict[str, Any], dict[str, Expr]]:
        """Return what the world remembers where a trial begins, and of which span it is."""
        assert self.world is not None
        if not self._begins_within:
            return shaped(self.world_begun, lambda n: ex.symbol(of_world(n), ex.STATE)), {}
        span = ex.as_number(getattr(tables, str(self.world.span)))
        goes_on = ex.equal(span, ex.symbol(of_world(SPAN), ex.STATE))
        start = {n: ex.as_number(v) for n, v in flat(self.world_begun).items()}

        def entering(n: str) -> Expr:
            return ex.select(goes_on, ex.symbol(of_world(n), ex.STATE), start[n])

        return shaped(self.world_begun, entering), {SPAN: span}

    def _show(
        self, place: World, tables: Seen
    ) -> tuple[dict[str, Any], Expr, Callable[[str], Expr]]:
        """Run what the world shows; return columns, whether the trial is there, and its state."""
        entered, span = self._entered(tables)
        values = flat(entered)

        def run() -> dict[str, Any]:
            vars(place).update(shaped(entered, lambda n: values[n]))
            shown = place.show(tables)
            state = {f"world {n}": ex.as_number(v) for n, v in flat(vars(place)).items()}
            return {**{f"shown {n}": v for n, v in shown.items()}, **state}

        found = merged(run)
        found |= {f"world {n}": x for n, x in span.items()}
        shown: dict[str, Any] = {
            n.removeprefix("shown "): v for n, v in found.items() if n.startswith("shown ")
        }
        present = shown.pop("present", ex.TRUE)
        return shown, present, lambda name: found[f"world {name}"]

    def _pay(
        self, place: World, tables: Seen, shown: Callable[[str], Expr], action: Expr
    ) -> tuple[dict[str, Expr], Callable[[Expr], dict[str, Expr]]]:
        """Run what the world pays; return it by column, and its state if a trial takes place."""

        def run() -> dict[str, Any]:
            vars(place).update(shaped(self.world_begun, shown))
            paid = {f"paid {n}": v for n, v in by_column(place.pay(tables, action)).items()}
            return {**paid, **{n: ex.as_number(v) for n, v in flat(vars(place)).items()}}

        found = merged(run)
        paid = {n.removeprefix("paid "): x for n, x in found.items() if n.startswith("paid ")}
        state = {n: x for n, x in found.items() if not n.startswith("paid ")}
        if self._begins_within:
            state[SPAN] = shown(SPAN)
        return paid, lambda present: {
            of_world(n): ex.select(present, x, shown(n)) for n, x in state.items()
        }


SPAN = "span"


def of_world(name: str) -> str:
    """Return the name in a kernel of what a world remembers; a model may call its own so."""
    return f"{name}_of_world"


def _never_negative(program: Program) -> set[Expr]:
    """Return what the world remembers that is 0 or more on every trial."""
    found = {n for n, x in program.world_start.items() if ex.never_negative(x)}
    while True:
        symbols = {ex.symbol(n, ex.STATE) for n in found}
        with ex.not_negative(symbols):
            kept = {n for n in found if all(ex.never_negative(k.played[n]) for k in program.kinds)}
        if kept == found:
            return symbols
        found = kept


def _as_far_as_needed(program: Program) -> Program:
    """Leave out what is remembered that no answer hangs on."""
    answers = [x for k in program.kinds for x in (k.shown, k.reported) if x is not None]
    roots = [*(x for answer in answers for x in answer.parts.values())]
    roots += [k.present for k in program.kinds]
    needed: set[str] = set()
    while True:
        read = {x.value for x in ex.within(roots) if x.op == "symbol" and x.on == ex.STATE}
        if read == needed:
            break
        needed = read
        roots += [k.played[name] for k in program.kinds for name in sorted(needed)]
    kinds = tuple(
        replace(k, played={n: x for n, x in k.played.items() if n in needed}) for k in program.kinds
    )
    return replace(program, kinds=kinds)


class Through:
    """A trial in simulation: what the world shows, and otherwise what was drawn."""

    def __init__(self, tables: Any, shown: Mapping[str, Any]):
        self.__dict__.update(shown)
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_tables"], name)


def check_remembered(begun: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Refuse what would mean one thing on numbers and another in kernels."""
    odd = ", ".join(f"self.{name}" for name in sorted(set(after) ^ set(begun)))
    if odd:
        raise UntraceableError(
            f"update() sets or drops {odd}; set all that is remembered in begin()"
        )
    for n, v in after.items():
        if np.shape(v) != np.shape(begun[n]):
            raise UntraceableError(f"self.{n} changes its shape in update(); keep that of begin()")
    _check_apart(after, "update")


def _check_apart(remembered: Mapping[str, Any], method: str) -> None:
    """Refuse two names of one array."""
    arrays = {n: v for n, v in remembered.items() if isinstance(v, np.ndarray)}
    for n, v in arrays.items():
        for m, w in arrays.items():
            if m < n and np.shares_memory(v, w):
                raise UntraceableError(
                    f"self.{m} and self.{n} are one array after {method}(), and what changes one "
                    f"would change the other; assign a copy, self.{m}.copy()"
                )


@contextmanager
def told_by_line(model: type[Model], world: type[World] | None = None) -> Iterator[None]:
    """Turn what goes wrong in a definition into a sentence with its line."""
    try:
        yield
    except (RecursionError, MemoryError):
        raise
    except Exception as error:  # whatever an author's code raises
        raise ValueError(refusal(model, error, world)) from error


def refusal(model: type[Model], error: Exception, world: type[World] | None = None) -> str:
    """Say which line of which model or world cannot be traced, and what to write instead."""
    bases = (*model.__mro__, *(world.__mro__ if world is not None else ()))
    own = {inspect.getfile(base) for base in bases if _written_by_an_author(base)}
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file in own:
            text = linecache.getline(file, line).strip()
            name = file.replace("\\", "/").rpartition("/")[2]
            place = f" ({name}, line {line}: `{text}`)" if text else f" (line {line})"
    why = str(error) if isinstance(error, UntraceableError) else _reason(error)
    return f"{model.__name__} cannot be turned into a kernel{place}: {why}."


def _written_by_an_author(base: type) -> bool:
    if base.__module__ in ("builtins", "abc"):
        return False
    try:
        return "/agents/compiler/" not in inspect.getfile(base).replace("\\", "/")
    except (OSError, TypeError):
        return False


_NO_WHOLE = (
    "{} of what is only known in the trial is not among the operations of definitions; let the "
    "experiment show the whole number as a column, or count in what is remembered"
)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], Expr):
        return (
            "a dictionary is asked for something that is only known in the trial; "
            "use a NumPy array and index it"
        )
    if isinstance(error, IndexError) and "arrays used as indices" in str(error):
        return "an array is indexed by conditions; write np.where(condition, new, old)"
    if isinstance(error, TypeError) and "unsupported operand type(s) for //" in str(error):
        return _NO_WHOLE.format("//")
    if isinstance(error, TypeError) and "unsupported operand type(s) for %" in str(error):
        return _NO_WHOLE.format("%")
    if isinstance(error, TypeError) and "__round__" in str(error):
        return _NO_WHOLE.format("round()")
    if isinstance(error, TypeError) and "ufunc" in str(error):
        return (
            "a function of NumPy or SciPy does not know symbols; write it with the functions of "
            "definitions (np.exp, np.log, np.where, ...), and arrays of your own as Table(values)"
        )
    if isinstance(error, AssertionError):
        return "symbols go through all courses, those that fail too; leave checks of data out"
    if isinstance(error, IndexError) and "only integers" in str(error):
        return (
            "an array of your own is indexed by something that is only known in the trial; "
            "write Table(values)[index], and fill np.zeros_like(self.values)"
        )
    if isinstance(error, TypeError) and "not callable" in str(error):
        return f"{error}; a trial's columns are attributes, such as trial.reward"
    return f"{type(error).__name__}: {error}"
