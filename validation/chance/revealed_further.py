"""Tables and figures of a reveal beyond the paper: further laws, idle evidence, wordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from knownminds.environments.chance import counts, linked_coins
from knownminds.environments.chance.scenarios import FURTHER
from knownminds.inference.chance.belief_contexts import kind_of, values_of_context
from knownminds.inference.chance.wording_variance import OF_MODELS, SOURCES, VALUES
from knownminds.inference.measure import t_tests
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Column, Table, number, table, written

from .revealed import Revealed
from .revealed_sentences import EVIDENCE, whole_of
from .stated_answers import shares_of

BOUNDS = {  # between which a mean and its interval lie
    "manhattan": (0.0, 2.0),
    "kl_sum": (0.0, np.inf),
    "likeliest": (-1.0, 1.0),
    "retained": (0.0, 1.0),
}
Name = Callable[[Mapping[Any, Any]], str]
IDLE_TITLE = (
    "Evidence that should not matter: what an outcome is believed to have more once it is named"
)
WORDING_TITLE = "What moves beliefs: variances, with 95% intervals, and their shares"


def law_table(revealed: Revealed, model: Name) -> list[Table]:
    """Return the table of the laws that the paper has not, if any was asked."""
    wide = revealed.by_context()
    wide = wide[wide["scenario"].isin(FURTHER)]
    if not len(wide):
        return []
    pairs = list(zip(wide["scenario"], wide["context"], strict=True))
    wide = wide.assign(part=[part_of(*pair) for pair in pairs], likeliest=_likeliest(revealed))
    rows = []
    for (name, scenario, part), own in wide.groupby(["model", "scenario", "part"], sort=False):
        row = {"model": name, "scenario": scenario, "part": part, "contexts": len(own)}
        for value, bounds in BOUNDS.items():
            row[value] = told_mean(own[value].to_numpy(dtype=float), bounds)
        rows.append(row)
    return [
        table(
            "Laws beyond the paper: means over contexts, with 95% intervals",
            rows,
            ("model", model),
            ("scenario", "{scenario}"),
            ("law", "{part}"),
            ("contexts", "{contexts}"),
            ("Manhattan", "{manhattan}"),
            ("KL, both ways", "{kl_sum}"),
            ("likeliest outcome", "{likeliest}"),
            ("retained mass", "{retained}"),
        )
    ]


def part_of(scenario: str, context: str) -> str:
    """Return the law of a context of counts or linked coins, and what is told beside it."""
    told, kind = values_of_context(context), kind_of(scenario, context)
    if scenario == "counts":
        return f"{counts.LAWS[told['law']]}, {kind}"
    return f"r = {told['correlation'] / linked_coins.PERCENT:g}, {kind}"


def told_mean(values: Any, bounds: tuple[float, float]) -> str:
    """Write down a mean with its t interval; a mean of equal values has itself."""
    tests = t_tests(values[None], bounds=bounds)
    mean, low, high = (float(column[0]) for column in (tests.mean, tests.low, tests.high))
    if tests.n[0] > 1 and not np.isfinite(low):
        low = high = mean
    return f"{number(mean)} ({number(low)} to {number(high)})"


def _likeliest(revealed: Revealed) -> list[float]:
    """Return by context of a further law how much too much the likeliest outcome has."""
    found = []
    for own in revealed.beliefs.values():
        for k, scenario in enumerate(own.scenarios):
            if scenario in FURTHER:
                truth = own.truth[own.rows(k)]
                place = int(np.argmax(truth))
                share = float("nan") if own.flagged[k] else float(shares_of(own, k)[0][place])
                found.append(share - float(truth[place]))
    return found


def idle_table(revealed: Revealed, model: Name) -> Table:
    """Return the table of shifts by evidence that should not matter."""
    return table(
        IDLE_TITLE,
        revealed.shifts,
        ("model", model),
        ("scenario", "{scenario}"),
        ("evidence", lambda row: EVIDENCE[row["evidence"]]),
        ("shift", "{value:+.3f} ({low:+.3f} to {high:+.3f})"),
        ("contexts", "{contexts}"),
        ("without it", "{baselines}"),
    )


def wording_tables(revealed: Revealed, named: Mapping[str, str]) -> list[Table]:
    """Return the tables of variances, and of how much higher each wording is."""
    if not revealed.reworded:
        return []
    parts, effects = revealed.wording_parts, revealed.wording_effects
    rows = [
        {"model": model, "scenario": scenario, "value": value, **_cells(own)}
        for (model, scenario, value), own in parts.groupby(
            ["model", "scenario", "value"], sort=False
        )
    ]

    def model_of(row: Mapping[Any, Any]) -> str:
        return named[row["model"]]

    found = [
        table(
            WORDING_TITLE,
            rows,
            ("model", model_of),
            ("scenario", "{scenario}"),
            ("belief", "{value}"),
            ("contexts", "{n}"),
            ("left out", "{left_out}"),
            *_columns(SOURCES),
        )
    ]
    if len(effects):
        found.append(
            table(
                "Each wording against the mean of all, with 95% intervals over contexts",
                effects,
                ("model", model_of),
                ("scenario", "{scenario}"),
                ("belief", "{value}"),
                ("wording", "{wording}"),
                ("more than the mean", "{effect:+.4f} ({low:+.4f} to {high:+.4f})"),
                ("contexts", "{contexts}"),
            )
        )
    models = revealed.wordings_and_models
    if len(models):
        both = [
            {"scenario": scenario, "value": value, "models": own["models"].iloc[0], **_cells(own)}
            for (scenario, value), own in models.groupby(["scenario", "value"], sort=False)
        ]
        found.append(
            table(
                "What moves the mean belief, the model or the wording: variances, with 95% "
                "intervals, and their shares",
                both,
                ("scenario", "{scenario}"),
                ("belief", "{value}"),
                ("models", "{models}"),
                ("contexts", "{n}"),
                *_columns(OF_MODELS),
            )
        )
    return found


def _cells(own: pd.DataFrame) -> dict[str, Any]:
    """Return what the row of one split says, by part."""
    found: dict[str, Any] = {"n": int(own["contexts"].iloc[0])}
    if "left_out" in own:
        found["left_out"] = int(own["left_out"].iloc[0])
    for row in own.to_dict("records"):
        found[row["part"]] = written(
            "{variance:z.5f} ({low:z.5f} to {high:z.5f}), {share:.1%}", row
        )
    return found


def _columns(parts: Mapping[str, Any]) -> list[Column]:
    return [(name, f"{{{name}}}") for name in parts]


def further_notes(revealed: Revealed) -> list[str]:
    """Explain what stands in these tables."""
    told = []
    if len(revealed.shifts):
        told.append(
            "Evidence that should not matter is an earlier outcome that has no influence, or a "
            "fact that names a number. The shift is the share of the named outcome with it minus "
            "that in the same context without it: above 0 towards what is named, 0 for a mind that "
            "is not moved, whatever else it believes. Intervals are Student's 95% over the "
            "contexts without it, each with all that is added to it."
        )
    if set(revealed.options.get("scenarios", [])) & set(FURTHER):
        told.append(
            "Likeliest outcome: the share of the outcome that is likeliest in truth minus its "
            "truth; above 0 it is believed in too much. Intervals of means in its table stay "
            "between the least and the largest value that there can be."
        )
    if revealed.reworded:
        told.append(
            "Wordings: all else on this page is of the first one. The variance of what differs "
            "between contexts and wordings is split as that of a score between models and "
            "wordings (crossed design, expected mean squares, generalised 95% intervals that begin "
            "at 0); with few wordings the intervals are wide. Shares count what is estimated below "
            "0 as 0. Contexts without a belief in every wording are left out, and counted."
        )
    return told


def further_figures(revealed: Revealed, named: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the figures of shifts by idle evidence, and of wordings."""
    found = []
    if len(revealed.shifts):
        found.append(
            (
                "Evidence that should not matter: what an outcome is believed to have more once it "
                "is named, with 95% intervals; 0 is none.",
                shifts(revealed, named),
            )
        )
    if len(revealed.wording_effects):
        found.append(
            (
                "Each wording against the mean of all, over all contexts, with 95% intervals; 0 is "
                "none.",
                wordings(revealed, named),
            )
        )
    return found


def shifts(revealed: Revealed, named: Mapping[str, str]) -> str:
    """Draw the shifts by idle evidence, a row per scenario and evidence, a colour per model."""
    rows = revealed.shifts
    at = rows["scenario"] + ", " + rows["evidence"].map(EVIDENCE)
    places = list(dict.fromkeys(at))
    height = 1.1 + 0.3 * len(places) * max(1.0, len(named) / 3)
    figure, (axis,) = draw.panels(1, height=height)
    figure.set_size_inches(4.4, height)
    intervals(axis, rows.set_index(at), places, "value", named)
    axis.set_xlabel("shift of the belief towards what is named")
    if len(named) > 1:
        draw.key(figure, axis)
    return draw.svg(figure)


def wordings(revealed: Revealed, named: Mapping[str, str]) -> str:
    """Draw how much higher each wording is, a panel per value, a colour per model."""
    effects = revealed.wording_effects
    values = [value for value in VALUES if (effects["value"] == value).any()]
    figure, axes = draw.panels(len(values), height=2.4)
    for axis, value in zip(axes, values, strict=True):
        parts = [whole_of(effects, model, value) for model in named]
        own = pd.concat([part for part in parts if len(part)])
        own = own.assign(at="wording " + own["wording"].astype(str)).set_index("at")
        intervals(axis, own, list(dict.fromkeys(own.index)), "effect", named)
        draw.entitle(axis, value)
    if len(named) > 1:
        draw.key(figure, axes[0])
    return draw.svg(figure)


def intervals(
    axis: Axes,
    table: pd.DataFrame,
    rows: Sequence[str],
    value: str,
    models: Mapping[str, str],
) -> None:
    """Draw a value with its interval in each row of an index, a colour for each model."""
    at = -np.arange(len(rows))
    looks = draw.styles(len(models))
    for m, (model, (colour, marker, _)) in enumerate(zip(models, looks, strict=True)):
        own = table[table["model"] == model].reindex(list(rows))
        y = at - (m - (len(models) - 1) / 2) * 0.6 / len(models)
        low, high, middle = (own[name].to_numpy(dtype=float) for name in ("low", "high", value))
        axis.hlines(y, low, high, color=colour, linewidth=1.5)
        axis.plot(middle, y, marker, color=colour, markersize=4, label=models[model])
    axis.axvline(0, color=draw.GREY, linestyle="--", linewidth=1)
    axis.set_yticks(at, rows)
    axis.set_ylim(-len(rows) + 0.4, 0.6)
