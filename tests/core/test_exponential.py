import numpy as np
from numba import njit

from knownminds.agents.exponential import exp_of_negative


@njit
def each(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = exp_of_negative(x[i])
    return out


def test_the_exponential_is_right_to_fourteen_digits():
    x = -np.concatenate([np.linspace(0, 40, 200_001), np.geomspace(1e-300, 699, 50_001)])
    assert np.max(np.abs(each(x) / np.exp(x) - 1)) < 1e-14
    assert each(np.array([-1e6]))[0] == each(np.array([-700.0]))[0] > 0
