"""What the tests of a page see at the size that was run."""

import numpy as np
import pandas as pd
import pytest
import scipy

from knownminds.validation.benchmarks.page import read_result
from knownminds.validation.benchmarks.seen import smallest_effects

PLAN = """
benchmark = "cogbench"
[experiments]
instrumental_learning = { sessions = 3 }
"""


def row(error, freedom, value=0.0):
    return {"participant": "m", "score": "s", "cell": "c", "value": value,
            "standard_error": error, "freedom": freedom}  # fmt: skip


@pytest.mark.parametrize("sessions", [3, 10, 40])
def test_an_effect_of_this_size_is_found_in_80_percent(sessions):
    rng, n = np.random.default_rng(4), 4000
    error = 2.0 / np.sqrt(sessions)
    (told,) = smallest_effects(pd.DataFrame([row(error, sessions - 1)])).to_dict("records")
    margin = 3 * np.sqrt(0.8 * 0.2 / n)  # three errors of a share of .8
    values = told["alone"] + 2.0 * rng.standard_normal((n, sessions))
    found = scipy.stats.ttest_1samp(values, 0.0, axis=1).pvalue < 0.05
    assert abs(found.mean() - 0.8) <= margin
    others = 2.0 * rng.standard_normal((n, sessions))
    values = told["of_two"] + 2.0 * rng.standard_normal((n, sessions))
    found = scipy.stats.ttest_ind(values, others, axis=1).pvalue < 0.05
    assert abs(found.mean() - 0.8) <= margin


def test_what_has_no_error_has_no_smallest_effect():
    rows = [row(np.nan, 3.0), row(0.0, 3.0), row(1e-14, 3.0, 1.0), row(0.1, np.nan)]
    (told,) = smallest_effects(pd.DataFrame(rows)).to_dict("records")
    assert told["alone"] == pytest.approx(0.1 * (1.959964 + 0.841621))


def test_a_known_player_without_an_effect_is_named_on_the_page(tmp_path, knownminds):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    llms = [f"--llm=synthetic:{name}" for name in ("rescorla_wagner_dual", "rescorla_wagner")]
    code, _, err = knownminds("benchmark", "cogbench", "--plan", plan, *llms, "--out",
                              tmp_path / "page")  # fmt: skip
    assert code == 0, err
    part = next(one for one in read_result(tmp_path / "page").parts if one.name == "seen")
    # Both rates of the dual learner are the prior's centre; a learner with one has no such dial.
    assert "synthetic:rescorla_wagner_dual does not have the effect of optimism_bias" in part.text
    assert "synthetic:rescorla_wagner does" not in part.text
    assert len(part.rows)
    assert (part.rows["alone"] > part.rows["standard_error"]).all()
