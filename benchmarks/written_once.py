"""Generated kernels against one written by hand, side by side; `python benchmarks/written_once.py`.

Counted is CPU time. The kernel written by hand is the one that the tests hold generated ones
against (`tests/hand_written_learner.py`). What a first fit of a new model costs is measured in a
process of its own with empty caches.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from side_by_side import goal  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import hand_written_learner

from knownminds.agents import AGENTS, Model, RescorlaWagnerDual, play, simulate
from knownminds.agents.sequences import Sequences
from knownminds.environments import ENVIRONMENTS, InstrumentalLearning, make
from knownminds.environments.streams import session_uniforms
from knownminds.inference import ModelData

N, ROUNDS, LEAST = 1000, 9, 0.04
OURS, THEIRS = RescorlaWagnerDual, hand_written_learner.RescorlaWagnerDual
FIRST_FIT = """
import time
import numpy as np
from numba import njit
from knownminds.agents import RescorlaWagnerDual as model, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import maximum_a_posteriori
njit(lambda x: x + 1)(1.0)  # numba itself starts up at the first compilation of a process
begin = time.process_time()
model.kernel_source()
printed = time.process_time()
theta = model.parameters.draw(np.random.default_rng(0), 20)
maximum_a_posteriori(model, simulate(model, theta, InstrumentalLearning(), 1), workers=1)
print(printed - begin, time.process_time() - begin)
"""


def in_turn(ways):
    """Return CPU seconds per call of each way, and the median ratio of the second to the first."""
    counts = {}
    for name, way in ways.items():
        way()
        begin = time.process_time()
        way()
        counts[name] = max(1, int(LEAST / max(time.process_time() - begin, 1e-9)))
    seconds = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.process_time()
            for _ in range(counts[name]):
                way()
            seconds[name].append((time.process_time() - begin) / counts[name])
    first, second = seconds.values()
    ratio = median(b / a for a, b in zip(first, second, strict=True))
    return median(first), median(second), ratio


def played(model, theta, environment, rates):
    """Return the simulation kernel alone, its tables drawn and packed beforehand."""
    n, n_trials = len(theta), environment.n_trials
    length = environment.n_draws + model.n_uniforms * n_trials
    drawn = session_uniforms(5, [(i,) for i in range(n)], length)
    tables = environment.tables(drawn[:, : environment.n_draws])
    flat = {name: t.reshape(n * n_trials, *t.shape[2:]) for name, t in tables.items()}
    there = np.flatnonzero(flat["present"]) if "present" in flat else np.arange(n * n_trials)
    separate = [flat[name][there] for name in model.separate if name in flat]
    sequences = Sequences.group(there // n_trials, separate, n)
    uniforms = drawn[:, environment.n_draws :].reshape(n * n_trials, -1)
    own = sequences.pack((uniforms if model.n_uniforms > 1 else uniforms[:, 0])[there])
    kernel, design = model.simulation(environment)
    packed = [own, *(sequences.pack(flat[name][there]) for name in design)]
    actions = environment.n_actions
    return lambda: kernel(theta, rates, actions, sequences.row, sequences.start, *packed)


def against_hand_written():
    place = InstrumentalLearning()
    theta = OURS.parameters.draw(np.random.default_rng(1), N)
    trials = simulate(THEIRS, theta, place, 3)
    unit = len(trials.frame) * 1e-9
    print(f"{'dual-rate learner, ns per trial':<40}{'by hand':>9}{'generated':>11}{'ratio':>7}")
    for rates, told in ((None, ""), (np.full(N, 0.1), ", with lapses")):
        data = {m: ModelData.read(m, trials) for m in (THEIRS, OURS)}
        likelihood = {m: lambda d=d, r=rates: d.log_likelihood(theta, r) for m, d in data.items()}
        simulation = {m: played(m, theta, place, rates) for m in data}
        for what, ways, bound in (
            ("likelihood and gradient", likelihood, 1.15),
            ("simulation", simulation, 1.3),
        ):
            a, b, ratio = in_turn(ways)
            print(f"{what + told:<40}{a / unit:>9.2f}{b / unit:>11.2f}{ratio:>7.2f}")
            goal(f"{what}{told}, generated / by hand", ratio, bound, at_most=True)
        left, right = (d.log_likelihood(theta, rates) for d in data.values())
        apart = max(
            np.max(np.abs(x - y) / (1 + np.abs(x))) for x, y in zip(left, right, strict=True)
        )
        goal("values and slopes apart by, relative to 1 + size", apart * 1e13, 1.0, at_most=True)
    few = theta[:5]
    loops = {
        m: lambda m=m: [play(m.from_theta(t), place, 5, i) for i, t in enumerate(few)]
        for m in (THEIRS, OURS)
    }
    a, b, ratio = in_turn(loops)
    count = len(few) * place.n_trials
    a, b = a / count * 1e6, b / count * 1e6
    print(f"{'step loop with record, us per trial':<40}{a:>9.1f}{b:>11.1f}{ratio:>7.2f}")
    goal("step loop, generated / by hand", ratio, 3.0, at_most=True)


def all_models():
    """Print the time per trial of every model that is written once, in its first experiment."""
    heads = ("lines of kernel", "likelihood", "with lapses", "simulation")
    print(f"\n{'model; ns per trial, gradient included':<40}{heads[0]:>16}", end="")
    print("".join(f"{head:>13}" for head in heads[1:]))
    for name, model in AGENTS.items():
        if not issubclass(model, Model):
            continue
        place = make(next(p for p in ENVIRONMENTS if model.plays(make(p))))
        theta = model.parameters.draw(np.random.default_rng(1), 300)
        trials = simulate(model, theta, place, 3)
        data = ModelData.read(model, trials, place.n_actions or None, all_trials=True)
        ways = {rates: lambda d=data, t=theta, r=rates: d.log_likelihood(t, r and np.full(300, r))
                for rates in (None, 0.1)}  # fmt: skip
        plain, lapses, _ = in_turn(ways)
        simulation = in_turn({k: played(model, theta, place, None) for k in range(2)})[0]
        lines = len(model.kernel_source(place.n_actions or 2).splitlines())
        each = (seconds / len(trials.frame) * 1e9 for seconds in (plain, lapses, simulation))
        print(f"{name:<40}{lines:>16}" + "".join(f"{ns:>13.2f}" for ns in each))


def first_fit():
    with tempfile.TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": folder, "KNOWNMINDS_CACHE": folder}
        for told in ("with empty caches", "in the next process"):
            out = subprocess.run(
                [sys.executable, "-c", FIRST_FIT], env=os.environ | caches, capture_output=True,
                text=True, check=True,
            ).stdout  # fmt: skip
            printed, whole = map(float, out.split())
            print(f"\ntraced and printed in {printed * 1e3:.0f} ms; simulated and fitted {told}: "
                  f"{whole:.1f} s of CPU")  # fmt: skip
            if told == "with empty caches":
                goal("CPU seconds of the first fit", whole, 6.0, at_most=True)


if __name__ == "__main__":
    against_hand_written()
    all_models()
    first_fit()
