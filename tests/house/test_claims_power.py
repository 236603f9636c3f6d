"""What reports of power, of searches and of audits say is recomputed from their rows."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import audit as audit_claims
from claims import check
from claims import power as power_claims

from knownminds.validation.power import audit as audit_module
from knownminds.validation.power import power_study as power_module
from knownminds.validation.power import smallest_design as smallest_module
from knownminds.validation.power.audit import audit
from knownminds.validation.power.audit_page import audit_page
from knownminds.validation.power.power_page import power_page, smallest_design_page
from knownminds.validation.power.power_study import power
from knownminds.validation.power.smallest_design import smallest_design

PLACE = "instrumental_learning"


class Rows:
    """Stands in for simulation and tests: rows of known rejections, failures and doubts."""

    def __init__(self, share=0.5, failing=(), doubtful=(), off=0.0):
        self.share, self.failing, self.doubtful, self.off = share, failing, doubtful, off
        self.kept = {}

    def __call__(self, study, batch, threads):
        cell = study.cells[batch.cell]
        n, size = len(batch), cell.subjects * cell.sessions
        share = self.share(size) if callable(self.share) else self.share
        rng = np.random.default_rng([size, batch.first, len(self.kept)])
        effect = float(cell.law.get("effect", 0.0))
        off = self.off(size) if callable(self.off) else self.off
        rows = pd.DataFrame({"estimate": effect + off + 0.1 * rng.standard_normal(n)})
        rows["standard_error"] = 0.1
        rows["low"], rows["high"] = rows["estimate"] - 0.2, rows["estimate"] + 0.2
        rows["p_value"] = np.where(rng.random(n) < share, 0.01, 0.5)
        if "width" in cell.options:
            rows["narrower"] = cell.options["width"]
            rows["high"] += np.where(rng.random(n) < share, 0.0, 1.0)
        if "rope" in cell.options:
            rows["within"] = cell.options["rope"]
            rows["inner_low"], rows["inner_high"] = rows["low"], rows["high"]
        rows["n"], rows["excluded"], rows["effect"] = cell.subjects, 0, effect
        rows["status"], rows["message"] = "ok", ""
        place = np.arange(batch.first, batch.last)
        for why, which in enumerate(self.failing):
            gone = np.isin(place, which)
            rows.loc[gone, ["status", "message"]] = ["failed", f"reason {why}"]
            rows.loc[gone, ["estimate", "p_value", "low", "high"]] = np.nan
        for why, which in enumerate(self.doubtful):
            rows.loc[np.isin(place, which), ["status", "message"]] = ["not converged", f"d {why}"]
        key = (cell.content_key, study.replicates)
        self.kept.setdefault(key, {})[batch.first] = rows
        return rows

    def of(self, study, cell):
        parts = self.kept[(cell.content_key, study.replicates)]
        return pd.concat([parts[first] for first in sorted(parts)], ignore_index=True)


def told_by_power(found):
    page = power_page(found)
    lines = [line for line in str(found).splitlines() if "  " not in line]  # those of the table
    return [*lines[:-1], page.title, *page.sentences, *page.notes] + [
        caption for caption, _ in page.figures
    ]


@pytest.mark.parametrize(
    ("subjects", "share", "more", "lost"),
    [
        ([1, 6], lambda n: 0.5 if n < 6 else 0.95, {}, {"failing": ([0, 3], [5])}),
        ([4], 0.6, {"comparison": "between"}, {"doubtful": ([1], [2, 3])}),
        ([1], 0.3, {"effect_sd": 0.02}, {"failing": ([1],), "doubtful": ([2],)}),
        ([3, 5], 0.2, {"comparison": "paired"}, {}),
        ([2], 0.2, {}, {"failing": (range(24),)}),
        ([3, 6], 0.99, {}, {"off": lambda n: -0.4 if n < 20 else 0.0}),
        ([3, 6], 0.99, {}, {"off": -0.4}),
        ([1, 6], lambda n: 0.5 if n < 6 else 0.95, {"width": 0.5}, {}),
        ([4], 0.5, {"rope": 0.35, "comparison": "between"}, {"failing": ([1],)}),
    ],
)
def test_power(monkeypatch, subjects, share, more, lost):
    rows = Rows(share, **lost)
    monkeypatch.setattr(power_module, "test_batch", rows)
    given = {"subjects": subjects, "sessions": 4, "replicates": 24, "workers": 1}
    found = power(PLACE, {"optimism_bias": 0.1}, **given, **more)
    own = [rows.of(found.study, cell) for cell in found.study.cells]
    facts = SimpleNamespace(content=found.to_dict(), rows=own)
    check(power_claims.REPORT, told_by_power(found), facts)
    reasons = {m for part in own for m in part.loc[part["status"] == "failed", "message"]}
    assert all(any(reason in line for line in told_by_power(found)) for reason in reasons)


@pytest.mark.parametrize(
    "share", [lambda n: min(0.95, 0.1 * n), 0.2, lambda n: 0.95 if n > 12 else 0.1]
)
def test_smallest_design(monkeypatch, share):
    rows = Rows(share)
    monkeypatch.setattr(smallest_module, "test_batch", rows)
    given = {"most": 30, "replicates": 120, "workers": 1}
    found = smallest_design(PLACE, {"optimism_bias": 0.1}, **given)
    steps = [pd.DataFrame({"p_value": _p_values(step)}) for step in found.steps]
    fresh = None if found.design is None else pd.DataFrame({"p_value": _p_values(found.design)})
    facts = SimpleNamespace(content=found.to_dict(), rows=steps, fresh=fresh)
    page = smallest_design_page(found)
    lines = str(found).splitlines()
    findings = [f"{f.name}: {f.word}. {f.why}" for f in page.findings if found.size is None]
    check(
        power_claims.REPORT,
        [lines[0], lines[-1], page.title, *findings, *page.sentences, *page.notes],
        facts,
    )


def _p_values(design):
    """P-values with the counts of a step, whose rows the search does not keep."""
    hits = round(design.rejected.value * design.attempted)
    return [0.01] * hits + [0.5] * (design.attempted - hits)


@pytest.mark.parametrize(
    ("share", "replicates", "lost"),
    [
        (0.05, 120, {}),
        (0.5, 120, {"failing": ([0, 7],)}),
        (0.0, 200, {}),
        (0.05, 30, {}),
        (0.05, 120, {"failing": (range(60),)}),
    ],
)
def test_audit(monkeypatch, share, replicates, lost):
    rows = Rows(share, **lost)
    monkeypatch.setattr(audit_module, "test_batch", rows)
    found = audit("optimism_bias", subjects=4, sessions=1, replicates=replicates, workers=1)
    own = [rows.of(found.study, cell) for cell in found.study.cells]
    facts = SimpleNamespace(content=found.to_dict(), rows=own)
    page = audit_page(found)
    head = str(found).splitlines()[0]
    findings = [f"{f.name}: {f.word}. {f.why}" for f in page.findings]
    captions = [caption for caption, _ in page.figures]
    told = [head, page.title, *findings, *page.sentences, *page.notes, *captions]
    check(audit_claims.REPORT, told, facts)
