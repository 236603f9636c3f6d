"""Results as one self-contained page, drawn from the folder that holds them alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from knownminds.environments import unknown
from knownminds.environments.record.folders import writable, write_bytes, write_text
from knownminds.llm_adapters.runs.ledger import FILE as LEDGER
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import read_run
from knownminds.validation.calibration.calibration import Calibration, read_calibration
from knownminds.validation.calibration.calibration_page import calibration_page
from knownminds.validation.chance.revealed import FILE as REVEALED
from knownminds.validation.chance.revealed import Revealed, read_revealed
from knownminds.validation.chance.revealed_page import revealed_page
from knownminds.validation.channel.channel_page import channel_page
from knownminds.validation.channel.channel_study import Channel, read_channel
from knownminds.validation.costs.budget import Budget, read_budget
from knownminds.validation.costs.budget_page import budget_page
from knownminds.validation.costs.run_page import run_page
from knownminds.validation.data.fit import Fit, read_fit
from knownminds.validation.data.fit_page import fit_page
from knownminds.validation.data.measured_page import measured_page
from knownminds.validation.data.scores_of_trials import Measured, read_measured
from knownminds.validation.diagnosis.belief_battery import FILE as BELIEFS
from knownminds.validation.diagnosis.belief_battery import BeliefBattery, read_battery
from knownminds.validation.diagnosis.belief_battery_page import battery_page
from knownminds.validation.engine.study import NotFinished, Study
from knownminds.validation.magnitudes.magnitude_page import magnitude_page
from knownminds.validation.magnitudes.magnitude_table import FILE as MAGNITUDE
from knownminds.validation.magnitudes.magnitude_table import MagnitudeTable, read_magnitude
from knownminds.validation.magnitudes.magnitude_task_page import task_pages
from knownminds.validation.pages.figures import Picture
from knownminds.validation.pages.html import fill
from knownminds.validation.pages.page import Page
from knownminds.validation.power.audit import Audit, read_audit
from knownminds.validation.power.audit_page import audit_page
from knownminds.validation.power.power_page import power_page, smallest_design_page
from knownminds.validation.power.power_study import Power, read_power
from knownminds.validation.power.smallest_design import SmallestDesign, read_smallest_design
from knownminds.validation.recovery.model_recovery import ModelRecovery, read_confusion
from knownminds.validation.recovery.model_recovery_page import model_recovery_page
from knownminds.validation.recovery.parameter_recovery import Recovery
from knownminds.validation.recovery.recovery_page import recovery_page
from knownminds.validation.recovery.recovery_surface import (
    RecoverySurface,
    read_recovery_or_surface,
)
from knownminds.validation.recovery.recovery_surface_page import surface_page

from .unfinished_page import Unfinished, read_unfinished, unfinished_page


def read_power_or_search(folder: str | Path) -> Power | SmallestDesign:
    """Read what `power` left in a folder: a study, or a search, whose steps are studies within."""
    study, _ = Study.read(folder)
    # The cell that names a search's own folder; those of its steps are named after the step.
    if study.cells[0].law.get("part_of_search") == "start":
        return read_smallest_design(folder)
    return read_power(folder)


# What each command leaves in its folder, and the page of each kind of result.
READERS: dict[str, Callable[[Path], Any]] = {
    "recover": read_recovery_or_surface,
    "confuse": read_confusion,
    "calibrate": read_calibration,
    "power": read_power_or_search,
    "audit": read_audit,
    "channel": read_channel,
}
FILES: dict[str, Callable[[Path], Any]] = {
    "fit.json": read_fit,
    "budget.json": read_budget,
    "measures.json": read_measured,
    MAGNITUDE: read_magnitude,
    BELIEFS: read_battery,
    REVEALED: read_revealed,
    LEDGER: read_run,
}
PAGES: dict[type, Callable[[Any], Page]] = {
    Recovery: recovery_page,
    RecoverySurface: surface_page,
    ModelRecovery: model_recovery_page,
    Calibration: calibration_page,
    Power: power_page,
    SmallestDesign: smallest_design_page,
    Audit: audit_page,
    Channel: channel_page,
    Budget: budget_page,
    Fit: fit_page,
    Measured: measured_page,
    MagnitudeTable: magnitude_page,
    BeliefBattery: battery_page,
    Revealed: revealed_page,
    Run: run_page,
}
# Further pages of a kind of result, by the name of their file.
MORE: dict[type, Callable[[Any], Mapping[str, Page]]] = {MagnitudeTable: task_pages}


def report(folder: str | Path) -> Path:
    """Draw the page of a folder again, from what it holds; return the page's path.

    Of a study that is not finished, the page shows what there is, and says what is missing.

    Raises
    ------
    ValueError
        If the folder holds no study, fit, budget, scores or run.
    """
    return write_report(read_what_is_there(folder), folder)


def read_what_is_there(folder: str | Path) -> Any:
    """Read the result a folder holds, or what there is of a study that is not finished."""
    try:
        return read_result(folder)
    except NotFinished:
        return read_unfinished(folder)


def read_result(folder: str | Path) -> Any:
    """Read the result a folder holds, whatever command made it; nothing is computed anew."""
    place = Path(folder)
    names = ("study.json", *FILES)
    found = [name for name in names if (place / name).is_file()]
    rule = f"A report is drawn from a folder with a {', a '.join(names[:-1])} or a {names[-1]}"
    if not found:
        raise ValueError(f"{rule}; {place} has none of them.")
    if len(found) > 1:
        raise ValueError(
            f"{rule}; {place} has {' and '.join(found)}. Each result needs a folder of its own."
        )
    if found[0] in FILES:
        return FILES[found[0]](place)
    study, _ = Study.read(place)
    if study.command not in READERS:
        raise ValueError(unknown("kind of study", study.command, READERS))
    return READERS[study.command](place)


def page_of(result: Any) -> Page:
    """Return the page of a result."""
    if isinstance(result, Unfinished):
        return unfinished_page(result, None if result.result is None else page_of(result.result))
    return PAGES[type(result)](result)


def write_report(result: Any, folder: str | Path) -> Path:
    """Write report.html into the folder, further pages beside it, and all figures; return its path.

    Each figure is in the folder's `figures` as SVG, as PNG and, the numbers that it shows, as CSV.
    """
    pages = {"report": with_source(page_of(result), folder)}
    if type(result) in MORE:
        pages |= MORE[type(result)](result)
    texts = {name: render(page) for name, page in pages.items()}
    with writable(folder) as place:
        for name, page in pages.items():
            _write_figures(page, place / "figures", "" if name == "report" else f"{name}-")
        for name, text in texts.items():
            write_text(place / f"{name}.html", text)
    return Path(folder) / "report.html"


def with_source(page: Page, folder: str | Path) -> Page:
    """Return the page of a study with the hash of the code that computed it."""
    if not (Path(folder) / "study.json").is_file():
        return page
    source = str(Study.read(folder)[1].get("source", ""))[:12]
    return replace(page, versions={**page.versions, "source": source}) if source else page


def render(page: Page) -> str:
    """Return a page as HTML that needs nothing else."""
    return fill("report.html", page=page)


def _write_figures(page: Page, folder: Path, prefix: str) -> None:
    for k, (caption, svg) in enumerate(page.figures, start=1):
        if not isinstance(svg, Picture):
            continue
        folder.mkdir(exist_ok=True)
        name = f"{prefix}{k}-{_slug(caption)}"
        write_text(folder / f"{name}.svg", svg)
        write_bytes(folder / f"{name}.png", svg.png())
        write_text(folder / f"{name}.csv", svg.data().to_csv(index=False, float_format="%.10g"))


def _slug(caption: str) -> str:
    """Name a figure by the beginning of its caption."""
    first = re.split(r"[.,;:(]", caption.lower().replace("'", ""), maxsplit=1)[0]
    words = re.findall(r"[a-z0-9]+", first)
    return "-".join(words[:6])
