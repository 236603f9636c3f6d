"""What the audits of tests print holds: sentences, and every share of their tables."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.belief_battery import PAIRS, UNIT, _fisher, _gaps
from claims.coherence_audit import REPORT, hold_share
from scipy import stats

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Diagnosis
from knownminds.inference.magnitudes.consistency_score import COMPARISONS
from knownminds.validation.diagnosis.coherence_audit import coherence_audit, minds
from knownminds.validation.magnitudes.consistency_audit import consistency_audit

DIALS = {"random_utility": (0.0,), "incoherent_believer": (0.02, 0.3)}
TESTS = ("monotone choice", "iterated expectation", "elicitation consistency")
SIZE = {"network": "fever", "contexts": 20, "repeats": 2}


@pytest.mark.parametrize("parts", ["distribution", "separate"])
def test_shares_of_the_coherence_audit_are_counts_of_raw_sessions(parts):
    n = 8
    audit = coherence_audit(DIALS, tests=TESTS, replicates=n, parts=parts, **SIZE)
    content = json.loads(audit.to_json())
    assert content["parts"] == parts
    page = audit.page()
    asked = dict(page.asked)
    assert asked["deciders"] == ", ".join(DIALS)
    facts = SimpleNamespace(content=content)
    check(REPORT, [page.title, asked["data sets"], *page.sentences], facts)
    head, names, *rows, last = str(audit).splitlines()
    check(REPORT, [head, last], SimpleNamespace(content=content))
    place = Diagnosis("fever", n_contexts=20, repeats=2, parts=parts)
    cells = [(model, dial) for model, dials in DIALS.items() for dial in dials]
    assert len(rows) == len(cells)
    for line, (model, dial) in zip(rows, cells, strict=True):
        theta = minds(model, dial, 0, n, 0)
        rejected = falls = 0
        for i in range(n):
            lived = simulate_sessions(AGENTS[model], theta[i], place, 0, addresses=[(41, 0, i)])
            facts = SimpleNamespace(trials=lived.to_trials().frame)
            gap = _gaps(facts, parts == "separate").groupby(UNIT)["gap"].mean()
            rejected += stats.ttest_1samp(gap, 0.0).pvalue <= 0.05
            falls += any((_fisher(facts, pair)[0] <= 0.05).any() for pair in PAIRS)
        told = line[len(f"{'':<22}{'':>7}{'':>6}") :]
        cells_told = [told[k : k + 26].strip() for k in range(0, len(told), 26)]
        assert line.split()[:3] == [model, f"{dial:g}", str(n)]
        monotone, elicited, iterated = (cell.split(" / ") for cell in cells_told)
        assert [name for name in TESTS if name in names] == list(TESTS)
        assert monotone[1] == f"{falls / n:.3f}"
        hold_share(iterated[0], rejected, n)
        assert iterated[1] == elicited[1] == "-"


def test_what_percentiles_bring_is_told_apart_from_the_published_reading():
    audit = coherence_audit(
        {"random_utility": (0.0,)}, tests=("conditional independence",), replicates=4,
        permutations=19, bootstraps=40, **SIZE,
    )  # fmt: skip
    lines = str(audit).splitlines()
    sentences = [line for line in lines if "no reading:" in line or line.startswith("(")]
    check(REPORT, [lines[0], *sentences], SimpleNamespace(content=json.loads(audit.to_json())))
    (row,) = json.loads(audit.to_json())["rows"]
    assert lines[-1].split()[0] == "random_utility"
    hold_share(lines[-1].split("independence")[1], round(row["percentile"] * 4), 4)


def test_sentences_and_shares_of_the_consistency_audit_hold():
    audit = consistency_audit(trials=(33,), participants=40, threshold=3)
    content = json.loads(audit.to_json())
    facts = SimpleNamespace(
        content=content, comparisons=[(c.task, c.ablation) for c in COMPARISONS]
    )
    first, second, head, *rows, last = str(audit).splitlines()
    page = audit.page()
    check(REPORT, [first, second, last, page.title, dict(page.asked)["score"]], facts)
    assert "score >= 3" in head
    for line, ((observer, trials), scores) in zip(rows, audit.score.items(), strict=True):
        told = line.removeprefix(observer).split()
        assert told[0] == str(trials)
        values = pd.Series(scores)
        assert float(told[1]) == pytest.approx(values.mean(), abs=0.006)
        assert float(told[2].strip("()")) == pytest.approx(values.sem(), abs=0.006)
        assert float(told[3]) == pytest.approx(values.std(), abs=0.006)
        ends = [float(told[4]), float(told[6])]
        assert np.allclose(ends, values.quantile([0.05, 0.95]), atol=0.51)
        share = float(told[7]), float(told[8].strip("()"))
        hold_share(share, int((values >= 3).sum()), len(values))
