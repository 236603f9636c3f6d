"""Views of tidy frames: the tables and figures of papers and studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Plot

from knownminds.environments.record.text_table import counted
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.scores import Interval, Score

from . import figures as draw

WHO = "participant"
KNOWN = "known_agent"  # a column: whether a participant is a known agent
MODELS, AGENTS = "models", "known agents"
PEOPLE_COLOUR = "#CC79A7"
NAMES = (WHO, "model", "of", "who")  # columns whose values are written as they are
MOST_PANELS = 24
SIZES = ("subjects", "sessions", "trials")
LEAST_WIDE = 5.5  # inches
LONG = 30  # letters of a line of a name beside panels
LETTERS = 84  # of a line of titles of the panels that stand side by side
KEY = 90  # letters in a row of a figure's key
MANY = 100  # points of a line from which on they are pixels, not vectors
Cell = str | Callable[[Mapping[Any, Any]], Any]  # the name of a column, or what is made of a row


def ends(value: str = "value", low: str = "low", high: str = "high") -> Cell:
    """Return a cell: a value with its interval, or the status where there is none."""

    def write(row: Mapping[Any, Any]) -> Any:
        status = row.get("status", "ok")
        if status not in ("ok", "") and not np.isfinite(row[value]):
            return status
        return Interval(float(row[value]), float(row[low]), float(row[high]))

    return write


VALUE = ends()


def size_text(size: Mapping[Any, Any], designs: pd.DataFrame) -> str:
    """Return how large a design is, by what the designs differ in: "20 subjects x 48 trials"."""
    names = [name for name in SIZES if designs[name].nunique() > 1] or SIZES
    return " x ".join(counted(int(size[name]), name.removesuffix("s")) for name in names)


def worded(column: str, value: Any) -> str:
    """Return a value as a page has it: names of conditions without underscores."""
    text = str(value)
    return text if column in NAMES else text.replace("_", " ")


@dataclass(frozen=True)
class View:
    """Some rows of a part's frame.

    Parameters
    ----------
    title : Of the table; of a figure its caption.
    where : By column, the value or values that rows have.
    by : A column: each of its values has a table or figure of its own, whose title names the value
        at {by}, or at the end.
    of : A frame instead of the part's.
    """

    title: str
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    by: str = field(default="", kw_only=True)
    of: pd.DataFrame | None = field(default=None, kw_only=True)

    def pieces(self, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield titles and rows."""
        rows = frame if self.of is None else self.of
        for name, wanted in self.where.items():
            if name in rows:
                several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
                rows = rows[rows[name].isin(list(several))]
        if not len(rows):
            return
        if not self.by:
            yield self.title, rows
            return
        for value, part in rows.groupby(self.by, sort=False):
            name = worded(self.by, value)
            title = self.title.replace("{by}", name)
            yield title if "{by}" in self.title else f"{self.title}: {name}", part


class TableView(View):
    """A view that is written."""

    def tables(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return the tables by title."""
        return {title: self.table(rows) for title, rows in self.pieces(frame)}

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the table of rows, its lines named by its index."""
        raise NotImplementedError


@dataclass(frozen=True)
class Rows(TableView):
    """A line from each row.

    Parameters
    ----------
    columns : By head, the column or what is made of a row.
    lines : Columns that name the line.
    """

    columns: Mapping[str, Cell]
    lines: Sequence[str] = (WHO,)

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Write a line from each row."""
        records = rows.to_dict("records")
        written = {
            head: [row[cell] if isinstance(cell, str) else cell(row) for row in records]
            for head, cell in self.columns.items()
        }
        names = {name: [worded(name, row[name]) for row in records] for name in self.lines}
        if twice := names.keys() & written:
            raise ValueError(f"A column of {self.title!r} has the head of another: {sorted(twice)}")
        table = pd.DataFrame({**names, **written})
        return table.set_index(list(names)) if names else table


@dataclass(frozen=True)
class Grid(TableView):
    """Lines by columns, a cell from each row.

    Parameters
    ----------
    columns : The column whose values head the table.
    lines : Columns that name the line.
    """

    columns: str
    lines: Sequence[str] = (WHO,)
    cell: Cell = VALUE

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Write the cells; a pair that has no row has none."""
        written: dict[tuple[str, ...], dict[str, Any]] = {}
        heads: dict[str, None] = {}
        for row in rows.to_dict("records"):
            head = worded(self.columns, row[self.columns])
            heads[head] = None
            key = tuple(worded(name, row[name]) for name in self.lines)
            cell = row[self.cell] if isinstance(self.cell, str) else self.cell(row)
            written.setdefault(key, {})[head] = cell
        index = pd.MultiIndex.from_tuples(list(written), names=list(self.lines))
        cells = [[line.get(head) for head in heads] for line in written.values()]
        return pd.DataFrame(cells, index=index, columns=list(heads), dtype=object)


class Figure(View):
    """A view that is drawn; its title is the caption."""

    def drawings(self, frame: pd.DataFrame) -> dict[str, Drawing]:
        """Return the drawings by caption."""
        drawings = {}
        for caption, rows in self.pieces(frame):
            drawing = self.drawing(rows.reset_index(drop=True))
            if drawing is not None:
                drawings[caption] = drawing
        return drawings

    def drawing(self, rows: pd.DataFrame) -> Drawing | None:
        """Return what draws the rows; None if there is nothing to draw."""
        raise NotImplementedError


@dataclass(frozen=True)
class Draw(Figure):
    """A figure of another kind.

    Parameters
    ----------
    draw : Returns a Matplotlib figure of the rows.
    """

    draw: Callable[[pd.DataFrame], Plot]

    def drawing(self, rows: pd.DataFrame) -> Drawing | None:
        """Draw the rows with the function."""
        return Drawing(rows, self.draw)


@dataclass(frozen=True)
class Dots(Figure):
    """Values with intervals: participants down, a panel and a colour for each condition.

    Parameters
    ----------
    label : What the values are.
    panel, series : Columns of what stands in panels and in colours; "" for one of it.
    along : The column of what stands down the side.
    value, low, high : Columns.
    null : Where a line is drawn, or the column of what is crossed beside each value; None for none.
    zone : Ends of a shaded range.
    people : Value, low and high of people: a line and a band.
    free : Whether each panel has limits of its own.
    within : Limits that no axis goes beyond; what lies further out has an arrow.
    """

    label: str
    panel: str = ""
    series: str = ""
    along: str = WHO
    value: str = "value"
    low: str = "low"
    high: str = "high"
    null: float | str | None = None
    zone: tuple[float, float] | None = None
    people: Mapping[str, float] | None = None
    free: bool = False
    within: tuple[float, float] = (-np.inf, np.inf)

    def drawing(self, rows: pd.DataFrame) -> Drawing | None:
        """Draw the rows that have a value."""
        # What is 0 but for rounding is drawn at 0.
        shown = {n: rows[getattr(self, n)].astype(float).round(9) for n in ("value", "low", "high")}
        rows = rows.assign(**shown)
        rows = rows[np.isfinite(rows["value"])]
        names = [self.along, self.panel, self.series, "value", "low", "high"]
        names += [self.null] if isinstance(self.null, str) else []
        names += [KNOWN] if KNOWN in rows and self.along == WHO else []
        kept = rows[[name for name in dict.fromkeys(names) if name]].reset_index(drop=True)
        return Drawing(kept, partial(draw_dots, view=self)) if len(kept) else None


def draw_dots(rows: pd.DataFrame, view: Dots) -> Plot:
    """Draw the dots of a view."""
    names, panels, kinds = (
        list(dict.fromkeys(_labels(rows, column)))
        for column in (view.along, view.panel, view.series)
    )
    known = set(rows[view.along][rows[KNOWN]]) if KNOWN in rows else set()
    if known and kinds == [""] and len(known) < len(names):  # models beside known agents
        rows = rows.assign(**{KNOWN: np.where(rows[KNOWN], AGENTS, MODELS)})
        view, kinds = replace(view, series=KNOWN), [MODELS, AGENTS]
    looks = looks_of(kinds)
    left = len(panels) - MOST_PANELS
    side = view.series != KNOWN  # whether what is of one name stands side by side
    height = 0.24 * len(names) * max(1.0, 0.35 * len(kinds) + 0.5 if side else 1.0) + 0.9
    shown_names = [draw.in_lines(name, min(LONG, draw.letters(2 * LONG))) for name in names]
    figure, axes = wide_panels(min(len(panels), MOST_PANELS), height=height)
    position = {name: k for k, name in enumerate(names)}
    people = view.people if view.people and np.isfinite(view.people["value"]) else None
    reach = _reach(rows, view, people)
    for axis, title in zip(axes, panels, strict=left <= 0):
        shown = rows[np.array(_labels(rows, view.panel)) == title]
        if view.zone is not None:
            axis.axvspan(*view.zone, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        if isinstance(view.null, int | float):
            axis.axvline(view.null, color=draw.GREY, linewidth=1, zorder=0)
        if people is not None:
            mark_people(axis, people)
        drawn = []
        for j, kind in enumerate(kinds):
            some = shown[np.array(_labels(shown, view.series)) == kind]
            shift = min(0.22, 0.8 / len(kinds)) * (j - (len(kinds) - 1) / 2) if side else 0.0
            at = np.array([position[name] for name in _labels(some, view.along)]) + shift
            drawn.append((kind, at, some))
            colour, marker, _ = looks[kind]
            axis.hlines(at, some["low"], some["high"], color=colour, linewidth=1.3)
            label = kind if len(kinds) > 1 else None
            axis.plot(
                some["value"], at, linestyle="none", marker=marker, color=colour, markersize=4,
                label=label,
            )  # fmt: skip
            if isinstance(view.null, str):
                axis.plot(some[view.null], at, "x", color="black", markersize=4)
        axis.set_yticks(
            range(len(names)), shown_names if draw.leftmost(axis) else [""] * len(names)
        )
        for tick, name in zip(axis.get_yticklabels(), names, strict=True):
            if name in known:
                tick.set(style="italic", color=draw.GREY)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(*(_reach(shown, view, people) if view.free else reach))
        for kind, at, some in drawn:
            low, high = (some[[end, "value"]].agg(least, axis=1).to_numpy(dtype=float)
                         for end, least in (("low", "min"), ("high", "max")))  # fmt: skip
            draw.arrows(axis, low, high, at, looks[kind][0])
        entitle(axis, title, max(map(len, "\n".join(shown_names).split("\n"))))
    figure.supxlabel(view.label, fontsize=draw.SMALL)
    key(figure, axes[0])
    return figure


def _reach(
    rows: pd.DataFrame, view: Dots, people: Mapping[str, float] | None
) -> tuple[float, float]:
    """Return limits that show nearly all values, the line and people."""
    more = [] if people is None else [people["value"], people.get("low"), people.get("high")]
    more += [view.null] if isinstance(view.null, int | float) else []
    columns = [rows[end].to_numpy(dtype=float) for end in ("value", "low", "high")]
    if isinstance(view.null, str):
        columns.append(rows[view.null].to_numpy(dtype=float))
    left, right = draw.limits(*columns, np.array([x for x in more if x is not None], dtype=float))
    return max(left, view.within[0]), min(right, view.within[1])


def quantiles(
    rows: pd.DataFrame, keys: Sequence[str], column: str, *, mean_of: str = ""
) -> pd.DataFrame:
    """Return median (value), 10% (low) and 90% (high) of a column by keys, as `Dots` draws them.

    Parameters
    ----------
    mean_of : A column whose mean stands beside, as mean; "" for none.
    """
    groups = rows[np.isfinite(rows[column].astype(float))].groupby(list(keys), sort=False)
    table = groups[column].agg(
        low=lambda values: values.quantile(0.1),
        value="median",
        high=lambda values: values.quantile(0.9),
    )
    if mean_of:
        table["mean"] = groups[mean_of].mean()
    return table.reset_index()


@dataclass(frozen=True)
class Curves(Figure):
    """Lines or points over x, a panel and a colour for each condition.

    Intervals are drawn where there are columns: low and high of y, x_low and x_high of x; of
    scores, 2 standard errors.

    Parameters
    ----------
    labels : Names of x and y.
    x : A column. Texts and dates are an axis as well.
    y : A column, or several, each of which has a panel.
    panel, series : Columns that together name a panel, and a line.
    joined : Whether the points of a line are joined.
    diagonal : Whether y = x is drawn.
    hollow : Column of further points, not joined; "" for none.
    steps : Whether y stays until the next x.
    unit : Whether x and y are between 0 and 1.
    named : Column that is written beside each point; "" for none.
    zone : Ends of a shaded range of y.
    limits : Lines across, of all panels or by panel.
    ticks : Whether x is logarithmic, with ticks at its values.
    shares : Panels, by their titles, in which y is between 0 and 1; "" for a single panel.
    people : Value, low and high of people by axis, "x" and "y": a line and a band.
    """

    labels: tuple[str, str]
    x: str
    y: str | Sequence[str]
    panel: Sequence[str] = ()
    series: Sequence[str] = (WHO,)
    joined: bool = True
    diagonal: bool = False
    hollow: str = ""
    steps: bool = False
    unit: bool = False
    named: str = ""
    zone: tuple[float, float] | None = None
    limits: Sequence[float] | Mapping[str, Sequence[float]] = ()
    ticks: bool = False
    shares: Sequence[str] = ()
    people: Mapping[str, Mapping[str, float] | None] = field(default_factory=dict)

    def drawing(self, rows: pd.DataFrame) -> Drawing | None:
        """Draw the rows; of many panels the first."""
        return Drawing(rows, partial(draw_curves, view=self)) if len(rows) else None


def against_size(rows: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Return the size of designs that has most values, and rows in which `design` has the others.

    Sizes are numbers of subjects, sessions and trials.
    """
    varied = {size: rows[size].nunique() for size in SIZES}
    across = max(SIZES, key=lambda size: (varied[size], SIZES.index(size)))
    others = [size for size in SIZES if size != across and varied[size] > 1]
    names = [
        ", ".join(counted(row[size], size[:-1]) for size in others)
        for row in rows.to_dict("records")
    ]
    return across, rows.assign(design=names).sort_values(across, kind="stable")


def draw_curves(rows: pd.DataFrame, view: Curves) -> Plot:
    """Draw the curves of a view."""
    several = [view.y] if isinstance(view.y, str) else [y for y in view.y if y in rows]
    panels = [
        (_named_by(view.panel, values) if isinstance(view.y, str) else y, y, part)
        for y in several
        for values, part in rows.groupby(list(view.panel) or np.zeros(len(rows)), sort=False)
    ][:MOST_PANELS]
    names = rows[list(view.series)].astype(str).agg(", ".join, axis=1) if view.series else None
    looks = looks_of([""] if names is None else list(dict.fromkeys(names)))
    if KNOWN in rows and names is not None:
        alone = rows[KNOWN].astype(bool).groupby(names, sort=False).all()  # not beside models
        looks |= _grey([str(name) for name in alone.index[alone]])
    figure, axes = wide_panels(len(panels), height=2.6)
    for axis, (title, y, part) in zip(axes, panels, strict=True):
        _draw_background(axis, title, part, view)
        groups = [("", part)] if names is None else part.groupby(names[part.index], sort=False)
        for name, line in groups:
            _draw_line(axis, line, view, y, looks[str(name)], str(name))
        entitle(axis, title)
        axis.set_xlabel(view.labels[0], fontsize=draw.SMALL)
        if view.ticks:
            draw.scale(axis, part[view.x].tolist())
        if view.unit:
            axis.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.03))
        if title in view.shares:
            axis.set_ylim(0, 1.02)
        if pd.api.types.is_datetime64_any_dtype(rows[view.x]):
            axis.tick_params(axis="x", labelrotation=30)
    axes[0].set_ylabel(view.labels[1], fontsize=draw.SMALL)
    key(figure, axes[0])
    return figure


def _named_by(columns: Sequence[str], values: Any) -> str:
    """Return the title of a panel: its values of some columns."""
    several = values if isinstance(values, tuple) else (values,)
    return ", ".join(worded(column, value) for column, value in zip(columns, several, strict=False))


def _draw_background(axis: Axes, title: str, rows: pd.DataFrame, view: Curves) -> None:
    """Draw what lies behind the curves of a panel."""
    if view.diagonal:
        span = (0, 1) if view.unit else draw.limits(rows[view.x].to_numpy(dtype=float))
        axis.plot(span, span, "--", color=draw.GREY, linewidth=1)
    if view.zone is not None:
        axis.axhspan(*view.zone, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
    limits = view.limits.get(title, ()) if isinstance(view.limits, Mapping) else view.limits
    for value in limits:
        draw.limit(axis, value)
    for end, people in view.people.items():
        if people is not None:
            mark_people(axis, people, across=end == "y")


def _draw_line(
    axis: Axes, line: pd.DataFrame, view: Curves, column: str, look: draw.Style, name: str
) -> None:
    """Draw one line of a panel with its intervals."""
    colour, marker, dash = look
    if not view.joined and len(line) > MANY:
        draw.dots(axis, line, view.x, column, look, name)
        return
    x, y = line[view.x].to_list(), line[column].astype(float).to_list()
    if view.steps:
        axis.step(x, y, where="post", color=colour, linestyle=dash, label=name)
        return
    draw.line(axis, x, y, look if view.joined else (colour, marker, "none"), name, 3)
    if isinstance(line[column].iloc[0], Score):
        errors = draw.ERRORS * line[column].map(lambda score: score.error).astype(float)
        line = line.assign(low=np.array(y) - errors, high=np.array(y) + errors)
    if {"low", "high"} <= set(line):
        axis.vlines(x, line["low"], line["high"], color=colour, linewidth=0.8)
    if {"x_low", "x_high"} <= set(line):
        axis.hlines(y, line["x_low"], line["x_high"], color=colour, linewidth=0.8)
    if view.hollow:
        draw.line(axis, x, line[view.hollow].tolist(), (colour, marker, "none"), "", 4, True)
    if view.named:
        for at, text in zip(zip(x, y, strict=True), line[view.named], strict=True):
            axis.annotate(
                str(text), at, (3, 3), textcoords="offset points", fontsize=draw.SMALL - 1
            )


def _labels(rows: pd.DataFrame, column: str) -> list[str]:
    """Return what rows are called by a column; "" where there is none."""
    return [worded(column, value) for value in rows[column]] if column else [""] * len(rows)


def looks_of(names: Sequence[str]) -> dict[str, draw.Style]:
    """Return a look for each name."""
    return dict(zip(names, draw.styles(len(names)), strict=True))


def _grey(names: Sequence[str]) -> dict[str, draw.Style]:
    """Return looks of known agents: grey, with shapes and dashes of their own."""
    looks = zip(names, draw.styles(len(names)), strict=True)
    return {name: (draw.GREY, marker, dash) for name, (_, marker, dash) in looks}


def entitle(axis: Axes, text: str, beside: int = 0) -> None:
    """Write a title above a panel, in lines that fit it; letters stand beside all panels."""
    position = axis.get_subplotspec()
    across = position.get_gridspec().ncols if position else 1
    draw.entitle(axis, draw.in_lines(text, max(12, (draw.letters(LETTERS) - beside) // across)))


def key(figure: Plot, axis: Axes) -> None:
    """Put the names of an axis's curves above the panels, as many in a row as have room."""
    longest = max(map(len, axis.get_legend_handles_labels()[1]), default=1)
    draw.key(figure, axis, columns=max(1, min(4, draw.letters(KEY) // (longest + 6))))


def wide_panels(n: int, *, height: float, columns: int = 3) -> tuple[Plot, list[Axes]]:
    """Return a figure of n panels that has room for the names at its side."""
    figure, axes = draw.panels(max(n, 1), height=height, columns=columns)
    draw.widened(figure, LEAST_WIDE)
    return figure, axes


def mark_people(axis: Axes, people: Mapping[str, float], *, across: bool = False) -> None:
    """Draw the value of people as a line, with a band where it has an interval.

    Parameters
    ----------
    across : Whether it is a value of y instead of x.
    """
    low, high = people.get("low", np.nan), people.get("high", np.nan)
    span, line = (axis.axhspan, axis.axhline) if across else (axis.axvspan, axis.axvline)
    if np.isfinite(low) and np.isfinite(high):
        span(low, high, color=PEOPLE_COLOUR, alpha=0.25, zorder=0, linewidth=0)
    if np.isfinite(people["value"]):
        line(people["value"], color=PEOPLE_COLOUR, linewidth=1.4, zorder=0.5)
