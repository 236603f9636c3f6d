"""What the consistency score gives to known agents."""

from knownminds import audit
from knownminds.inference.magnitudes.consistency_score import MOST


def test_a_mind_that_adapts_earns_much_one_that_does_not_nothing_and_one_that_never_errs_all():
    result = audit("consistency", trials=99, replicates=40, seed=1, workers=1)
    table = result["Scores of known agents"].droplevel("trials")
    none, adapting, exact = table["expected"][["non-adapting", "adapting", "perfect, exact"]]
    assert abs(none.value) < 3.5 * none.error
    assert adapting.value > none.value + 3.5 * (none.error + adapting.error)
    # What the score cannot tell: without noise the weight of the prior is 0 everywhere.
    assert exact.value == MOST
    assert table["score >= 5"]["adapting"].value > table["score >= 5"]["non-adapting"].value
