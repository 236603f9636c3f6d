"""Results as one self-contained page, drawn from a study folder or a fit folder alone."""

from __future__ import annotations

import base64
import importlib.resources
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from .figures import recovery_coverage, recovery_residuals, recovery_scatter, subject_forest
from .fit import Fit, read_fit
from .parameter_recovery import Recovery, Score, read_recovery
from .study import writable, write_text
from .verdicts import HIGHEST_COVERAGE, LOWEST_COVERAGE, RECOVERABLE_R, WEAK_R

STATUSES = (
    "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data ask for "
    "an infinite value; failed, no trustworthy estimate."
)


def report(folder: str | Path) -> Path:
    """Draw the page of a folder again, from what it holds; return the page's path.

    Raises
    ------
    ValueError
        If the folder holds neither a finished study nor a fit.
    """
    place = Path(folder)
    if (place / "study.json").is_file():
        return write_report(read_recovery(place), place)
    if (place / "fit.json").is_file():
        return write_report(read_fit(place), place)
    raise ValueError(
        f"A report is drawn from a folder with a study.json or a fit.json; {place} has neither."
    )


def write_report(result: Recovery | Fit, folder: str | Path) -> Path:
    """Write report.html into the folder and return its path."""
    page = recovery_page(result) if isinstance(result, Recovery) else fit_page(result)
    with writable(folder) as place:
        write_text(place / "report.html", page)
    return Path(folder) / "report.html"


def recovery_page(recovery: Recovery) -> str:
    """Return the page of a recovery study as HTML."""
    cell, study = recovery.cell, recovery.study
    words = {
        "recoverable": "can be recovered",
        "weak": "can be recovered only weakly",
        "not identified": "cannot be recovered",
        "not judged": "is not judged",
    }
    sentences = [
        {"name": s.name, "word": s.verdict.word, "text": words[s.verdict.word], "why": why}
        for s in recovery.parameters
        for why in [" ".join(s.verdict.reasons)]
    ]
    head = ["parameter", "bias", "RMSE", "r", "concordance", "shrinkage"]
    scores = [
        [s.name, *map(_shown, (s.bias, s.rmse, s.r, s.concordance, s.shrinkage))]
        for s in recovery.parameters
    ]
    masses = list(recovery.parameters[0].coverage)
    cover_head = ["parameter", *(f"{m}% covers" for m in masses), "mean width of 90%"]
    cover = [
        [s.name, *(_shown(s.coverage[m]) for m in masses), _shown(s.width["90"])]
        for s in recovery.parameters
    ]
    asked = [
        ("experiment", cell.environment),
        ("settings", _pairs(cell.settings)),
        ("model", cell.model),
        ("true values", _truth(recovery)),
        ("fitted by", _pairs({"method": cell.method} | dict(cell.options))),
        (
            "subjects",
            f"{study.subjects}, in each of {study.replicates} replicates"
            if study.replicates > 1
            else str(study.subjects),
        ),
        ("sessions per subject", str(cell.sessions)),
        ("seed", str(study.seed)),
        ("computing time", f"{recovery.seconds:.1f} s, summed over processes"),
    ]
    figures: list[tuple[str, str]] = []
    if recovery.failed < recovery.attempted:
        figures = [
            ("Estimate against truth, with 90% intervals.", recovery_scatter(recovery)),
            ("Error against truth.", recovery_residuals(recovery)),
            (
                "Coverage of the intervals minus their nominal mass, with 2 standard errors.",
                recovery_coverage(recovery),
            ),
        ]
    return _render(
        title=f"Can {cell.model} be recovered from {cell.environment}?",
        asked=asked,
        verdicts=sentences,
        sentences=[],
        notes=[
            *recovery.notes,
            "Monte-Carlo standard errors in parentheses. Failed fits are left out of the scores "
            "and counted above; flat and boundary estimates are kept.",
            STATUSES,
            f"Recoverable: r at least {RECOVERABLE_R} and 90% intervals that cover "
            f"{LOWEST_COVERAGE:.0%} to {HIGHEST_COVERAGE:.0%}; weak: r at least {WEAK_R}.",
        ],
        tables=[
            ("Estimates", head, scores),
            ("Intervals", cover_head, cover),
            _status_table(recovery.statuses, recovery.attempted),
        ],
        figures=figures,
        command=recovery_command(recovery),
        versions=recovery.versions,
    )


def fit_page(fit: Fit) -> str:
    """Return the page of a fit as HTML."""
    asked = [
        ("data", f"{fit.source}: {fit.n_subjects} subjects, {fit.n_trials} trials"),
        ("experiment", fit.environment),
        ("model", fit.model),
        ("fitted by", _pairs({"method": fit.method} | dict(fit.options))),
    ]
    if fit.method == "hierarchical":
        asked.append(("sampling", f"{fit.verdict}; {fit.divergences} divergent draws"))
    group = [
        [name, f"{v.estimate:.3f}", f"{v.low:.3f} to {v.high:.3f}", v.meaning]
        for name, v in {**fit.group, **fit.effects}.items()
    ]
    limits = [
        [name, f"{s.r:.2f}", f"{s.coverage:.0%}", f"{s.reliability:.2f}", s.verdict]
        for name, s in fit.support.items()
    ]
    models = [
        [
            name,
            f"{v['parameters']:.0f}",
            f"{v['log_likelihood']:.1f}",
            f"{v['aic']:.1f}",
            f"{v['bic']:.1f}",
            f"{v['best_for']:.0f}",
        ]
        for name, v in fit.comparison.items()
    ]
    sampling = [
        [name, f"{v['r_hat']:.3f}", f"{v['ess_bulk']:.0f}", f"{v['ess_tail']:.0f}"]
        for name, v in fit.sampling.items()
    ]
    people = [
        [
            row["subject"],
            str(row["n_trials"]),
            *(
                f"{row[name]:.2f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"
                for name in fit.parameters
            ),
            row["status"],
        ]
        for row in fit.subjects.to_dict("records")
    ]
    model_head = ["model", "parameters", "log-likelihood", "AIC", "BIC", "best for (BIC)"]
    limit_head = ["parameter", "r", "90% covers", "reliability here", "verdict"]
    tables = [
        ("Group", ["parameter", "estimate", "90% interval", "meaning"], group),
        ("What so many trials support", limit_head, limits),
        ("Models (maximum likelihood, summed over subjects)", model_head, models),
        _status_table(fit.statuses, fit.n_subjects),
        ("Sampling", ["term", "R-hat", "bulk ESS", "tail ESS"], sampling),
        ("Subjects", ["subject", "trials", *fit.parameters, "status"], people),
    ]
    caption = "Each subject's estimate and 90% interval; the group value and its interval behind."
    return _render(
        title=f"{fit.model} fitted to {fit.source}",
        asked=asked,
        verdicts=[],
        sentences=list(fit.sentences),
        notes=["Estimates on the natural scale; 90% intervals in parentheses.", STATUSES],
        tables=[table for table in tables if table[2]],
        figures=[(caption, subject_forest(fit))] if fit.parameters else [],
        command=fit_command(fit),
        versions=fit.versions,
    )


def recovery_command(recovery: Recovery) -> str:
    """Return the command line that computes the study again."""
    cell, study = recovery.cell, recovery.study
    words = ["knownminds", "recover", cell.environment, "--model", cell.model]
    words += ["--subjects", str(study.subjects), "--method", cell.method]
    words += ["--trials", str(cell.make().n_trials), "--seed", str(study.seed)]
    extra = {"replicates": study.replicates, "sessions": cell.sessions}
    for name, count in extra.items():
        words += [f"--{name}", str(count)] if count > 1 else []
    for name, value in cell.truth.items():
        words += ["--set", f"{name}={value:g}"]
    for name, value in cell.options["fixed"].items():
        words += ["--fix", f"{name}={value:g}"]
    if cell.options.get("intervals") == "laplace":
        words += ["--intervals", "laplace"]
    words += ["--lapse", f"{cell.lapse:g}"] if cell.lapse else []
    words += ["--fit-lapse"] if cell.options["fit_lapse"] else []
    return shlex.join(words)


def fit_command(fit: Fit) -> str:
    """Return the command line that fits the data again."""
    words = ["knownminds", "fit", fit.source, "--model", fit.model, "--method", fit.method]
    words += ["--environment", fit.environment, "--seed", str(fit.options["seed"])]
    columns = ",".join(f"{ours}={theirs}" for ours, theirs in fit.options["columns"].items())
    words += ["--columns", columns] if columns else []
    for formula in fit.options["formula"]:
        words += ["--formula", formula]
    for name, value in fit.options["fixed"].items():
        words += ["--fix", f"{name}={value:g}"]
    words += ["--fit-lapse"] if fit.options["fit_lapse"] else []
    return shlex.join(words)


def _render(**content: Any) -> str:
    source = importlib.resources.files("knownminds.validation") / "report.html"
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    pages.filters["picture"] = _picture
    return pages.from_string(source.read_text(encoding="utf-8")).render(**content)


def _picture(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _shown(score: Score) -> str:
    return "-" if score.value != score.value else f"{score.value:.3f} ({score.error:.3f})"


def _status_table(statuses: Any, attempted: int) -> tuple[str, list[str], list[list[str]]]:
    rows = [[s, str(n), f"{n / attempted:.1%}"] for s, n in statuses.items()]
    return "Status of the fits", ["status", "subjects", "share"], rows


def _truth(recovery: Recovery) -> str:
    cell = recovery.cell
    held = _pairs(cell.truth)
    told = f"drawn from the priors{', but ' + held if held else ''}"
    return f"{told}; lapse rate {cell.lapse:g}" if cell.lapse else told


def _pairs(values: Any) -> str:
    def told(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{k}={v}" for k, v in value.items())
        return str(value)

    kept = {k: v for k, v in dict(values).items() if v is not None and v is not False}
    return "; ".join(f"{k}: {told(v)}" for k, v in kept.items() if v not in ({}, []))
