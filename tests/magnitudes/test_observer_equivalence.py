"""Which observers are the same model: claims that are checked, and fail where they are false."""

import sys
from dataclasses import replace

import pytest

from knownminds.environments import MarkerLocation, MazeDistance
from knownminds.inference import observer_equivalence

module = sys.modules["knownminds.inference.magnitudes.observer_equivalence"]


@pytest.mark.long
@pytest.mark.parametrize("environment", [MarkerLocation(), MazeDistance(repeats=1)])
def test_all_claims_are_confirmed(environment):
    report = observer_equivalence(environment, ["static_bayes_observer_gain"], subjects=12)
    assert len(report.equivalences) == 10
    for claim in report.equivalences:
        assert claim.holds, str(claim)
        assert claim.tried >= 3
        assert claim.control > 1e3 * claim.difference
    assert "w_prior" in report.information["static_bayes_observer_gain"].sentences[0]
    assert any("cannot all be told" in sentence for sentence in report.sentences)
    assert "NOT CONFIRMED" not in str(report)
    assert report.to_frame()["holds"].all()
    assert "static_bayes_observer_gain" in report.to_json()


def test_a_false_claim_is_not_confirmed():
    def untrue(theta):
        rows = module._linear_to_static(theta)
        rows[:, 1] += 1e-4
        return rows

    claim = replace(module._claims()[0], translate=untrue)
    found = module._checked(claim, MarkerLocation(repeats=1), 8, 0)
    assert not found.holds
    assert found.difference > found.bound
