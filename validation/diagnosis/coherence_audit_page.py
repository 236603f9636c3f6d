"""The page of an audit of the tests of coherence: who they accuse, as a table and figures."""

from __future__ import annotations

from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import ERRORS, Page, Table, about_experiment, shown

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
    own = audit.rows[audit.rows["test"] == test]
    rows = []
    for row in own.to_dict("records"):
        at = (row["mind"], row["dial"], test)
        found = (audit.rejected(*at), audit.published(*at), audit.percentile(*at))
        rows.append([row["mind"], f"{row['dial']:g}", str(row["replicates"]), *map(shown, found)])
    head = ["decider", "dial", "data sets", "rejected", "published finding", "percentile above 0"]
    return test, head, rows


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
