"""Generated kernels against one written by hand, side by side; `python benchmarks/written_once.py`.

Counted is CPU time. The kernel written by hand is the one that the tests hold generated ones
against (`tests/hand_written_learner.py`). What a first fit of a new model costs is measured in a
process of its own with empty caches; with `--compile` for all models.
"""

import inspect
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
# Models as they were written by hand: lines of the file that they share; ns per trial of the
# likelihood with gradient, with lapses, and of the simulation. The confident learners were measured
# on 22 Nov 2026 in one run with their old file, `git show 28f5c37^:agents/bandits/
# confident_learners.py`, as `in_turn` and `played` do; their definitions took 11.44, 16.91, 26.93
# and 6.56, 11.29, 22.51 in it. The others were measured on the same day beside the prototype of the
# compiler, which took 1.02, 0.75, 0.68, 0.27, 0.24, 0.24 and 0.49 times as long. None: not then.
BY_HAND = {
    "rescorla_wagner": (297, None, None, None),
    "rescorla_wagner_dual": (297, 4.68, None, None),
    "two_step_hybrid": (539, 13.3, None, None),
    "two_step_reduced": (539, 13.7, None, None),
    "hyperbolic_discounter": (380, 23.9, None, None),
    "weighted_bayes": (173, 39.1, None, None),
    "perseverator": (132, 12.5, None, None),
    "win_stay_lose_shift": (124, None, None, None),
    "horizon_explorer": (337, 20.6, None, None),
    "change_point_observer": (567, 54.34, 123.37, 30.50),
    "rescorla_wagner_confidence": (567, 35.14, 96.52, 49.16),
}
FIRST_FIT = """
import sys
import time
import numpy as np
from numba import njit
from knownminds.agents import AGENTS, simulate
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import maximum_a_posteriori
model = AGENTS[sys.argv[1]]
place = next(p for p in map(make, ENVIRONMENTS) if model.plays(p))
njit(lambda x: x + 1)(1.0)  # numba itself starts up at the first compilation of a process
begin = time.process_time()
model.kernel_source()
printed = time.process_time()
theta = model.parameters.draw(np.random.default_rng(0), 20)
maximum_a_posteriori(model, simulate(model, theta, place, 1), workers=1)
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


def told(value):
    return f"{'-' if value is None else format(value, '.2f'):>8}"


def all_models():
    """Print lines and time per trial of every model that is written once, in its first experiment.

    What it was when written by hand stands before it, where it was.
    """
    print("\nlines of the file, and ns per trial: by hand, and now")
    heads = ("likelihood+gradient", "with lapses", "simulation")
    print(f"{'':<32}{'lines':>12}" + "".join(f"{head:>20}" for head in heads))
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
        lines = len(Path(inspect.getfile(model)).read_text(encoding="utf-8").splitlines())
        before, *hand = BY_HAND.get(name, (None,) * 4)
        now = [seconds / len(trials.frame) * 1e9 for seconds in (plain, lapses, simulation)]
        print(f"{name:<32}{before or '-':>6}{lines:>6}", end="")
        print("".join(f"{told(a):>12}{told(b)}" for a, b in zip(hand, now, strict=True)))


def first_fit(name):
    """Return CPU seconds of tracing and printing, of a first fit, and of one in a later process."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": folder, "KNOWNMINDS_CACHE": folder}
        found = []
        for _ in range(2):
            out = subprocess.run(
                [sys.executable, "-c", FIRST_FIT, name], env=os.environ | caches,
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            found.append(list(map(float, out.split())))
    (printed, first), (_, later) = found
    return printed, first, later


def first_fits(names):
    print(f"\n{'CPU seconds; caches empty at first':<32}{'printed':>9}{'first fit':>11}{'next':>7}")
    for name in names:
        printed, first, later = first_fit(name)
        print(f"{name:<32}{printed:>9.3f}{first:>11.1f}{later:>7.1f}")
        goal(f"CPU seconds of the first fit of {name}", first, 6.0, at_most=True)


if __name__ == "__main__":
    if "--compile" in sys.argv:  # every model in a process of its own: some minutes
        first_fits([name for name, model in AGENTS.items() if issubclass(model, Model)])
    else:
        against_hand_written()
        all_models()
        first_fits(["rescorla_wagner_dual"])
