"""The page of an audit of the tests of coherence: who they accuse, as a table and figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import ERRORS, Page, Table, about_experiment, shown, table

from .coherence_audit import LEVEL, RATIONAL, TESTS, CoherenceAudit


def coherence_audit_page(audit: CoherenceAudit) -> Page:
    """Return the page of an audit of the tests of coherence."""
    study = audit.study
    told = [test for test in TESTS if (audit.rows["test"] == test).any()]
    return Page(
        title="What do the tests of coherence do to known deciders?",
        asked=[
            *about_experiment(study.cells[0]),
            ("deciders", ", ".join(dict.fromkeys(cell.model for cell in study.cells))),
            ("data sets", f"{study.replicates:,} for each decider and value of its dial"),
            ("seed", str(study.seed)),
        ],
        findings=[],
        sentences=[
            f"Shares of data sets in which a test rejects at {LEVEL:g}. {RATIONAL} is rational and "
            "reports what it acts on: of it, every rejection is a false alarm."
        ],
        notes=[ERRORS],
        tables=[_shares(audit, test) for test in told],
        figures=[(f"Share rejected, {test}", _figure(audit, test)) for test in told],
        command=study.command_line(),
        versions=audit.versions,
    )


def _shares(audit: CoherenceAudit, test: str) -> Table:
    def share(name: str) -> Callable[[Any], str]:
        find = getattr(audit, name)
        return lambda row: shown(find(row["mind"], row["dial"], test))

    return table(
        test,
        audit.rows[audit.rows["test"] == test],
        ("decider", "{mind}"),
        ("dial", "{dial:g}"),
        ("data sets", "{replicates}"),
        ("rejected", share("rejected")),
        ("published finding", share("published")),
        ("percentile above 0", share("percentile")),
    )


def _figure(audit: CoherenceAudit, test: str) -> str:
    own = audit.rows[audit.rows["test"] == test]
    minds = list(dict.fromkeys(own["mind"]))
    figure, (axis,) = draw.panels(1)
    for mind, style in zip(minds, draw.styles(len(minds)), strict=True):
        dials = sorted(own.loc[own["mind"] == mind, "dial"])
        scores: list[Score] = [audit.rejected(mind, dial, test) for dial in dials]
        draw.curve(axis, dials, scores, style, mind)
    draw.limit(axis, LEVEL)
    axis.set_xlabel("dial")
    axis.set_ylabel("share rejected")
    draw.key(figure, axis, columns=2)
    return draw.svg(figure)
