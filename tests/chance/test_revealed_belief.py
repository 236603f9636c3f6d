import numpy as np
import pytest

from knownminds.environments.record.outcome_rates import wilson
from knownminds.inference.chance.revealed_belief import Belief, DescribedContext
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.continuations.continuation_tree import extends

LETTERS = DescribedContext("letters", ("A", "B", "C"))


def told(*alternatives):
    """One reply of one token, with what else could have stood there."""
    pairs = tuple((token, float(np.log(p))) for token, p in alternatives)
    return [TokenLogProbability(*pairs[0], pairs)]


def test_exact_probabilities_keep_the_mass_that_went_elsewhere():
    much, little = (
        Belief.of(LETTERS, "exact", np.array(p)) for p in ([0.5, 0.2, 0.1], [0.1, 0.1, 0.1])
    )
    assert (much.retained, little.retained) == pytest.approx((0.8, 0.3))
    np.testing.assert_allclose(much.normalised, [0.625, 0.25, 0.125])
    np.testing.assert_allclose(*much.ends)
    assert (much.flag, little.flag) == ("", "retained mass 0.3 below 0.5")
    assert Belief.of(LETTERS, "exact", np.full(3, 0.1), 0.2).flag == ""


def test_an_outcome_without_log_probability_is_flagged_and_nothing_is_put_in_its_place():
    belief = Belief.of(LETTERS, "exact", np.array([0.5, 0.3, np.nan]))
    assert belief.flag == "no probability of C"
    assert np.isnan(belief.normalised).all()
    assert np.isnan(belief.retained)
    assert [end[2] for end in belief.ends] == [0.0, 1.0]


def test_top_k_tables_bound_what_they_do_not_list():
    reply = told(("A.", 0.6), (" B\n", 0.2), ("D ", 0.1))
    belief = Belief.top_k(LETTERS, [reply], extends)
    # What is not listed, a tenth, may lie on any of them; D is known to be elsewhere.
    np.testing.assert_allclose(belief.ends, [[0.6, 0.2, 0.0], [0.7, 0.3, 0.1]])
    assert belief.retained_ends == pytest.approx((0.8, 0.9))


def test_counts_have_wilson_intervals_and_others_lower_the_mass():
    belief, nothing = Belief.counted(LETTERS, [6, 3, 0], 1), Belief.counted(LETTERS, [0, 0, 0], 0)
    np.testing.assert_allclose(belief.probability, [0.6, 0.3, 0.0])
    assert belief.retained == pytest.approx(0.9)
    low, high = belief.ends
    # Wilson's interval of 6 in 10: 0.3127 to 0.8318
    assert low[0] == pytest.approx(0.3127, abs=1e-4)
    assert high[0] == pytest.approx(0.8318, abs=1e-4)
    assert low[2] == 0.0
    assert [belief.flag, nothing.flag] == ["", "no probability of A, B, C"]
    for counts in ([6, -3, 0], [6, 3]):
        with pytest.raises(ValueError, match="Counts are whole numbers from 0 on, one for each"):
            Belief.counted(LETTERS, counts, 1)


def test_wilson_intervals_of_none_and_all_end_at_0_and_1():
    low, high = wilson(np.array([0.0, 10.0, 0.0]), np.array([10.0, 10.0, 0.0]))
    assert (low[0], high[1], low[2], high[2]) == (0.0, 1.0, 0.0, 1.0)
