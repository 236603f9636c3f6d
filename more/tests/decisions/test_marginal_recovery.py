"""The law of a group of deciders, without the pull of the prior."""

import pytest

from knownminds import recover
from knownminds.agents import AGENTS


@pytest.mark.long
def test_the_law_of_a_group_comes_back_by_its_marginal_likelihood():
    """Biases are within 4 standard errors, of spreads on the scale on which these are drawn."""
    result = recover("risky_choice", "prospect_theory", method="marginal", population="group",
                     subjects=20, replicates=6, seed=3, workers=1)  # fmt: skip
    table = result["Groups, on the unconstrained scale"].set_index("of")
    names = AGENTS["prospect_theory"].parameters.names
    assert list(table.index) == [f"{what}({name})" for name in names for what in ("mean", "sd")]
    assert (table["n"] + table["without"] == 6).all()
    for _, row in table.iterrows():
        assert abs(row["bias"].value) < 4 * row["bias"].error
