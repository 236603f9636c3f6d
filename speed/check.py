"""Hold what is fast against stored ratios; `python speed/check.py`, with `--store` to set them.

Each time is divided by that of a fixed piece of code that does such work the usual way, so that
the ratio is the same on a slow machine and beside other processes. Times are seconds of CPU, the
least of many rounds that go through all ways in turn. A ratio more than 1.3 times the stored one
is an error, and so is a missing one.
"""

import json
import sys
import time
from pathlib import Path

import point_and_kernel as told  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np
from baselines import numpy_log_likelihood, scalar_log_likelihood

from knownminds.agents import play, simulate
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Session
from knownminds.inference import ModelData, maximum_a_posteriori

STORED, WORSE, ROUNDS = Path(__file__).with_name("ratios.json"), 1.3, 25
COMPILED, PYTHON = "plain numba, log-likelihood", "NumPy trial loop, log-likelihood"


def ways():
    """Return by name: what is called, how many trials it goes through, and what it is held to."""
    theta = told.PARAMETERS.draw(np.random.default_rng(1), told.N)
    trials = simulate(told.MODEL, theta, told.ENVIRONMENT, 5)
    data = ModelData.read(told.MODEL, trials)
    designs, packed = told.packed_sessions()
    kernel, _ = told.MODEL.simulation(told.ENVIRONMENT)
    frame, every = trials.frame, told.N * told.T
    columns = [frame[name].to_numpy(dtype=np.int64) for name in ("context", "action")]
    columns.append(frame["reward"].to_numpy(dtype=float))
    offsets, one = np.arange(0, every + 1, told.T), [column[: told.T] for column in columns]
    agent, place = told.MODEL.from_theta(theta[0]), told.ENVIRONMENT

    def session_alone():
        session = Session(place, designs[0])
        for _ in session:
            session.take(1)

    return {
        COMPILED: (lambda: scalar_log_likelihood(theta, *columns, offsets), every, None),
        PYTHON: (lambda: numpy_log_likelihood(theta[0], *one), told.T, None),
        "log-likelihood with gradient": (lambda: data.log_likelihood(theta), every, COMPILED),
        "simulation kernel": (lambda: kernel(theta, None, 2, *packed), every, COMPILED),
        "simulate_sessions": (
            lambda: simulate_sessions(told.MODEL, theta, place, 5), every, COMPILED,
        ),
        "simulate": (lambda: simulate(told.MODEL, theta, place, 5), every, COMPILED),
        "maximum_a_posteriori": (
            lambda: maximum_a_posteriori(told.MODEL, data, workers=1), every, COMPILED,
        ),
        "session": (session_alone, told.T, PYTHON),
        "step loop": (lambda: told.step_loop(agent, designs[0], 0), told.T, PYTHON),
        "play": (lambda: play(agent, place, 5, 0), told.T, PYTHON),
    }  # fmt: skip


def seconds_per_trial(every):
    """Return the least seconds of CPU per trial of each way."""
    least = dict.fromkeys(every, np.inf)
    for _ in range(ROUNDS + 1):  # the first round compiles
        for name, (way, trials, _) in every.items():
            begin, calls = time.process_time(), 0
            while time.process_time() - begin < 0.01:
                way()
                calls += 1
            least[name] = min(least[name], (time.process_time() - begin) / calls / trials)
    return least


def main():
    every = ways()
    seconds = seconds_per_trial(every)
    ratios = {name: seconds[name] / seconds[to] for name, (*_, to) in every.items() if to}
    if "--store" in sys.argv:
        STORED.write_text(json.dumps({n: float(f"{r:.3g}") for n, r in ratios.items()}, indent=1))
    stored = json.loads(STORED.read_text())
    print(f"{'':32}{'us a trial':>12}{'ratio':>10}{'stored':>10}")
    slower = sorted(stored.keys() ^ ratios.keys())
    for name, taken in seconds.items():
        ratio, before = ratios.get(name), stored.get(name)
        tell = "" if ratio is None or before is None else f"{ratio:10.3g}{before:10.3g}"
        if tell and ratio > WORSE * before:
            slower.append(name)
            tell += "   SLOWER"
        print(f"{name:32}{taken * 1e6:12.4f}{tell}")
    if slower:
        sys.exit(
            f"No ratio may be more than {WORSE} times the stored one; got {', '.join(slower)}. "
            "Find what became slow, or store ratios anew (--store) and say why."
        )


if __name__ == "__main__":
    main()
