"""What is special to explorers of uncertainty: their beliefs, and what Thompson sampling is."""

import pytest

from knownminds.agents import (
    HorizonBlind,
    UncertaintyExplorer,
)
from knownminds.environments import Horizon


def test_machines_that_scatter_otherwise_are_refused():
    assert UncertaintyExplorer.plays(Horizon())
    with pytest.raises(ValueError, match=r"knows machines that pay Normal\(mean, 8\)"):
        UncertaintyExplorer.check_plays(Horizon(sd=4.0))
    assert HorizonBlind.plays(Horizon(sd=4.0))
