"""The observer of all magnitudes over 34 cells: `python speed/cells.py`."""

import time

from side_by_side import goal, side_by_side  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np

from knownminds.agents import AGENTS
from knownminds.inference import maximum_a_posteriori
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.magnitudes.observer_audit import over_cells, played

MODEL, N = AGENTS["bayesian_observer"], 100
STATIC = AGENTS["static_bayes_observer"]


def likelihood(data, theta, per_cell):
    """One participant and many, against the static observer's kernel over the same trials."""
    one, starts, own = (
        data.repeat([0]),
        data.repeat([0] * 5),
        STATIC.parameters.draw(np.random.default_rng(2), N),
    )
    many, few = int(data.n_trials.sum()), int(one.n_trials.sum())
    repeat = range(many // few)
    side_by_side(
        f"log-likelihood with exact gradient over 34 cells, {few:,} trials each",
        {
            f"{N} participants at once": lambda: data.log_likelihood(theta),
            "one participant at 5 points, as in a fit": lambda: [
                starts.log_likelihood(theta[:5]) for _ in range(many // few // 5)
            ],
            "one participant at one point": lambda: [one.log_likelihood(theta[:1]) for _ in repeat],
            "static observer, 5 parameters, at once": lambda: per_cell.log_likelihood(own),
        },
        unit=many,
        per="trial",
    )
    seconds = []
    for _ in range(200):
        begin = time.process_time()
        starts.log_likelihood(theta[:5])
        seconds.append(time.process_time() - begin)
    goal("in a fit, ns per trial", min(seconds) / few / 5 * 1e9, 15, at_most=True)


if __name__ == "__main__":
    theta = MODEL.parameters.draw(np.random.default_rng(1), N)
    cells = read_plan("magnitudes").cells
    sessions = played(MODEL, theta, cells, 1, np.arange(N)[:, None])
    data, static = over_cells(MODEL, sessions, N), over_cells(STATIC, sessions, N)
    assert data.laid_out()
    likelihood(data, theta, static)
    side_by_side(
        f"MAP of {N} participants over 34 cells x 99 trials, 5 starts each",
        {"maximum_a_posteriori": lambda: maximum_a_posteriori(MODEL, data, workers=1)},
        rounds=2,
    )
