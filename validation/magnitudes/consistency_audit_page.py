"""The page of an audit of the consistency score: what known minds earn over trials."""

from __future__ import annotations

from knownminds.inference.magnitudes.consistency_score import COMPARISONS, MOST
from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import ERRORS, Page, numbers, shown, table

from .consistency_audit import ConsistencyAudit


def consistency_audit_page(audit: ConsistencyAudit) -> Page:
    """Return the page of an audit of the consistency score."""
    study = audit.study
    return Page(
        title="What does the consistency score give to known minds?",
        asked=[
            ("score", f"{len(COMPARISONS)} comparisons, from {-MOST} to {MOST}"),
            ("prior weight", f"{audit.prior_weight:g}"),
            ("shift where a mind adapts", f"{audit.shift:g}"),
            ("noise", f"{audit.sigma:g}"),
            ("trials per condition", numbers(trials for _, trials in audit.score)),
            ("participants", f"{study.replicates:,}"),
            ("seed", str(study.seed)),
        ],
        findings=[],
        sentences=[],
        notes=[ERRORS],
        tables=[
            table(
                "Scores of known minds",
                audit.to_frame(),
                ("observer", "{observer}"),
                ("trials", "{trials}"),
                ("expected", lambda row: shown(Score(row["expected"], row["expected_error"]))),
                ("sd", "{sd:.2f}"),
                ("5%", "{low:+.0f}"),
                ("95%", "{high:+.0f}"),
                (
                    f"score >= {audit.threshold}",
                    lambda row: shown(Score(row["reaching"], row["reaching_error"])),
                ),
            )
        ],
        figures=[("Expected score over trials per condition", _figure(audit))],
        command=study.command_line(),
        versions=audit.versions,
    )


def _figure(audit: ConsistencyAudit) -> str:
    observers = list(dict.fromkeys(observer for observer, _ in audit.score))
    figure, (axis,) = draw.panels(1)
    for observer, style in zip(observers, draw.styles(len(observers)), strict=True):
        trials = sorted(n for name, n in audit.score if name == observer)
        draw.curve(axis, trials, [audit.expected(observer, n) for n in trials], style, observer)
    draw.scale(axis, [n for _, n in audit.score])
    draw.limit(axis, 0)
    axis.set_xlabel("trials per condition")
    axis.set_ylabel("score")
    draw.key(figure, axis, columns=2)
    return draw.svg(figure)
