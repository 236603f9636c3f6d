"""Ambiguity: urns, the equations of who bets on them, and what is refused."""

import numpy as np

from knownminds.environments import check_environment
from knownminds_more.decisions.ambiguity import Ambiguity


def test_urns_keep_the_contract_and_one_of_a_pair_is_known():
    place = Ambiguity(repeats=2)
    check_environment(place)
    table = place.draw(np.random.default_rng(1)).table
    width = {side: table[f"{side}_most"] - table[f"{side}_least"] for side in "ab"}
    assert ((width["a"] == 0) != (width["b"] == 0)).all()
    assert 0.3 < (width["a"] == 0).mean() < 0.7  # 142 sides are drawn: 4 errors are .17
