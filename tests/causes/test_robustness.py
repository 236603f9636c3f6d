import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from knownminds.inference.causes.robustness import robustness

RNG = np.random.default_rng(0)
AGENTS = [f"agent {k}" for k in range(8)]


def units(effect=0.3, prompts=("numeric", "thought"), contents=("meaning", "letters")):
    rows = [
        {"agent": agent, "prompt": prompt, "content": content, "depth": RNG.normal(), "b": 0.2}
        for agent in AGENTS
        for prompt in prompts
        for content in contents
    ]
    table = pd.DataFrame(rows)
    table["depth"] = 0.1 * table["depth"] + effect * (table["prompt"] == "thought")
    return table


def test_a_difference_is_the_paired_test_over_agents_with_all_else_equal():
    table = units()
    found = robustness(table, ["depth"], ["prompt", "content"]).set_index("factor")
    mean = table.groupby(["agent", "prompt"])["depth"].mean().unstack()
    expected = ttest_rel(mean["thought"], mean["numeric"])
    row = found.loc["prompt"]
    assert (row["first"], row["second"], row["n"]) == ("numeric", "thought", 8)
    assert row["mean"] == pytest.approx((mean["thought"] - mean["numeric"]).mean())
    assert row["p_value"] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["p_value"] < 0.001 < found.loc["content", "p_value"]


def test_units_are_paired_within_the_other_factors():
    # Prompts differ by .3 in either content; somebody was only asked one content per prompt.
    table = units(effect=0.3)
    table["depth"] = table["depth"].round(0) * 0 + 0.3 * (table["prompt"] == "thought")
    table["depth"] += 5.0 * (table["content"] == "letters")
    crossed = (table["agent"] == "agent 0") & (
        (table["prompt"] == "numeric") == (table["content"] == "meaning")
    )
    found = robustness(table[~crossed], ["depth"], ["prompt", "content"])
    row = found.set_index("factor").loc["prompt"]
    assert row["mean"] == pytest.approx(0.3)
    assert (row["n"], row["missing"]) == (7, 1)


def test_all_pairs_of_levels_are_compared_and_adjusted_together():
    table = units(prompts=("numeric", "thought", "plan"), contents=("meaning",))
    found = robustness(table, ["depth", "b"], ["prompt", "content"])
    assert len(found) == 6
    depth = found[found["quantity"] == "depth"]
    assert (depth["p_adjusted"] >= depth["p_value"]).all()
    assert found[found["quantity"] == "b"]["p_value"].isna().all()


def test_missing_values_are_counted_and_never_filled_in():
    table = units()
    table.loc[(table["agent"] == "agent 2") & (table["prompt"] == "thought"), "depth"] = np.nan
    row = robustness(table, ["depth"], ["prompt", "content"]).iloc[0]
    assert (row["n"], row["missing"]) == (7, 1)
    nobody = table.assign(depth=table["depth"].where(table["prompt"] == "numeric"))
    found = robustness(nobody, ["depth"], ["prompt", "content"])
    assert found.iloc[0]["n"] == 0
    assert np.isnan(found.iloc[0]["mean"])
