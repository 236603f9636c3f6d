import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from knownminds.environments import session_stream
from knownminds.environments.streams import session_uniforms

parts = st.integers(0, 2**62)
edges = st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**62])


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**64 - 1) | edges, address=st.lists(parts | edges, max_size=7))
def test_the_numbers_are_numpys_own(seed, address):
    # One session is looked at between two others, which must not matter.
    others = [[part // 2 + 1 for part in address], [part // 3 for part in address]]
    drawn = session_uniforms(seed, [others[0], address, others[1]], 40)
    assert np.array_equal(drawn[1], session_stream(seed, *address).random(40))
    assert np.array_equal(drawn[0], session_stream(seed, *others[0]).random(40))


def test_an_array_of_addresses_is_as_good_as_a_list():
    places = np.column_stack([np.full(5, 10**15), np.arange(5)])
    listed = session_uniforms(3, [tuple(map(int, row)) for row in places], 7)
    assert np.array_equal(session_uniforms(3, places, 7), listed)
    assert len(np.unique(listed)) == 35
