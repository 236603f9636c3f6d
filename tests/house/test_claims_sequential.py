"""What a study of a stopping rule says is recomputed from its rows."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest
from claims import check
from claims.sequential import REPORT

from knownminds.inference import StoppingRule
from knownminds.validation.power import sequential as module
from knownminds.validation.power.sequential import sequential_design
from knownminds.validation.power.sequential_page import sequential_page


@pytest.mark.parametrize(
    "rule",
    [
        StoppingRule("alpha_spending", (4, 8)),
        StoppingRule("bayes_factor", (4, 8), evidence=3.0),
    ],
)
def test_what_a_study_of_a_rule_says_is_so(monkeypatch, rule):
    kept = {}
    own = module.stop_batch

    def keeping(study, batch, threads):
        rows = own(study, batch, threads)
        if batch.cell == 1 and batch.first == 0:  # a data set that had no test at a look
            rows.loc[0, ["status", "message"]] = ["failed", "no test at some look"]
        kept.setdefault(batch.cell, {})[batch.first] = rows
        return rows

    monkeypatch.setattr(module, "stop_batch", keeping)
    found = sequential_design(
        "instrumental_learning", {"optimism_bias": 0.4}, stop=rule, trials=24, replicates=30,
        seed=2, backend="threads", workers=1,
    )  # fmt: skip
    null, effect = (
        pd.concat([parts[first] for first in sorted(parts)]) for _, parts in sorted(kept.items())
    )
    facts = SimpleNamespace(content=json.loads(found.to_json()), null=null, effect=effect)
    page = sequential_page(found)
    check(REPORT, page.sentences, facts)
    check(REPORT, [str(found).splitlines()[0]], facts)
    assert any("had no test" in text for text in page.sentences)
