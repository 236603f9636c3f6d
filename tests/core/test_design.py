import numpy as np
import pytest

from knownminds.environments import session_stream


def test_a_session_has_one_stream_that_its_address_finds_again():
    one = session_stream(11, 3, 17).random(5)
    assert np.array_equal(one, session_stream(11, 3, 17).random(5))
    # NumPy's own way to the same numbers, so that the address means what it says.
    sequence = np.random.SeedSequence(entropy=11, spawn_key=(3, 17))
    assert np.array_equal(one, np.random.Generator(np.random.PCG64(sequence)).random(5))


def test_neighbouring_seeds_and_addresses_have_unrelated_streams():
    places = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (2**40, 2**40)]
    draws = np.array([session_stream(*place).random(2000) for place in places])
    correlation = np.corrcoef(draws)[np.triu_indices(len(places), 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize("place", [(-1,), (0, -1)])
def test_negative_seeds_and_addresses_are_told(place):
    with pytest.raises(ValueError, match="from 0 on; got"):
        session_stream(*place)
