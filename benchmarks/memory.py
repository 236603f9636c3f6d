"""Peak memory of simulating and fitting 10,000 learners; `python benchmarks/memory.py`."""

import resource

import numpy as np

from knownminds.agents import RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import maximum_a_posteriori

if __name__ == "__main__":
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), 10_000)
    trials = simulate(RescorlaWagnerDual, theta, InstrumentalLearning(), 5)
    fit = maximum_a_posteriori(RescorlaWagnerDual, trials)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(fit)
    print(f"peak memory of the whole process: {peak:.2f} GB, asked under 1: ", end="")
    print("reached" if peak < 1 else "MISSED")
