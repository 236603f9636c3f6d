"""Generated kernels against those written by hand; `python benchmarks/written_once.py`.

Counted is CPU time, both sides in turn in one process, so that other work on a machine hits both.
First the dual-rate learner against the kernel by hand that the tests keep
(`tests/hand_written_learner.py`). With `--table`, every model that is written once (or those that
are named), as a row of Markdown: lines, nanoseconds a trial, microseconds a step. What was written
by hand before stands before it: that is the last commit at which all models were (`BEFORE`), taken
from the history of this repository under a package name of its own. With `--compile`, what a first
fit of these models costs, in processes of their own with empty caches.
"""

import importlib
import inspect
import os
import re
import subprocess
import sys
import tarfile
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
BEFORE = "162d5a9"  # the last commit at which every model was written by hand
FLOORS = ("environments", "agents", "inference", "llm_adapters", "validation", "knownminds")
PEOPLE = 300
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


def earlier(commit, folder):
    """Return agents, environments and inference of an earlier commit, as another package."""
    root = Path(__file__).parent.parent
    archive = Path(folder) / "earlier.tar"
    command = ["git", "-C", str(root), "archive", "--output", str(archive), commit, *FLOORS]
    subprocess.run(command, check=True)
    package = Path(folder) / "knownminds_before"
    with tarfile.open(archive) as packed:
        packed.extractall(package, filter="data")
    (package / "knownminds" / "__init__.py").rename(package / "__init__.py")
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"\bknownminds\b", package.name, text), encoding="utf-8")
    sys.path.insert(0, str(folder))
    names = ("agents", "environments", "inference")
    return [importlib.import_module(f"{package.name}.{name}") for name in names]


def played_before(model, sequences_of, theta, environment, rates):
    """Return the simulation kernel of an earlier model alone, as `played` does."""
    n, n_trials, k = len(theta), environment.n_trials, model.n_uniforms
    drawn = session_uniforms(5, [(i,) for i in range(n)], environment.n_draws + k * n_trials)
    tables = environment.tables(drawn[:, : environment.n_draws])
    flat = {name: t.reshape(n * n_trials, *t.shape[2:]) for name, t in tables.items()}
    there = np.flatnonzero(flat["present"]) if "present" in flat else np.arange(n * n_trials)
    separate = [flat[name][there] for name in model.separate if name in flat]
    sequences = sequences_of.group(there // n_trials, separate, n)
    uniforms = drawn[:, environment.n_draws :].reshape(n * n_trials, -1)
    own = sequences.pack((uniforms if k > 1 else uniforms[:, 0])[there])
    packed = [own, *(sequences.pack(flat[name][there]) for name in model.design)]
    actions = environment.n_actions
    return lambda: model.simulate(theta, rates, actions, sequences.row, sequences.start, *packed)


class Sides:
    """One model as it is now, and as it was written by hand where it was."""

    def __init__(self, name, past):
        self.model = AGENTS[name]
        place = next(p for p in ENVIRONMENTS if self.model.plays(make(p)))
        self.place = make(place)
        self.theta = self.model.parameters.draw(np.random.default_rng(1), PEOPLE)
        trials = simulate(self.model, self.theta, self.place, 3)
        self.n = len(trials.frame)
        self.data = {"now": self._read(ModelData, self.model, trials)}
        agents, environments, inference = past or (None, None, None)
        self.old = agents.AGENTS.get(name) if past else None
        if self.old is not None:
            self.old_agents, self.old_place = agents, environments.make(place)
            self.sequences = importlib.import_module("knownminds_before.agents.sequences").Sequences
            theirs = environments.Trials.from_frame(trials.to_frame())
            before = self._read(inference.ModelData, self.old, theirs)
            self.data = {"before": before, **self.data}

    def _read(self, kind, model, trials):
        return kind.read(model, trials, self.place.n_actions or None, all_trials=True)

    def apart(self):
        """Return by how much values and slopes differ at most, relative to 1 + size."""
        both = [d.log_likelihood(self.theta) for d in self.data.values()]
        return max(np.max(np.abs(x - y) / (1 + np.abs(x))) for x, y in zip(*both, strict=True))

    def likelihood(self, rate):
        """Return ways to compute all log-likelihoods with their slopes."""
        rates = None if rate is None else np.full(PEOPLE, rate)
        return {
            side: lambda d=data: d.log_likelihood(self.theta, rates)
            for side, data in self.data.items()
        }

    def simulation(self):
        """Return ways to simulate all sessions, kernels alone."""
        ways = {}
        if self.old is not None:
            ways["before"] = played_before(
                self.old, self.sequences, self.theta, self.old_place, None
            )
        return {**ways, "now": played(self.model, self.theta, self.place, None)}

    def steps(self):
        """Return ways to live three sessions step by step, keeping nothing."""
        pairs = {"now": (self.model, self.place)}
        if self.old is not None:
            pairs = {"before": (self.old, self.old_place), **pairs}
        actions = self.place.n_actions or None
        ways = {}
        for side, (model, place) in pairs.items():
            minds = [model.from_theta(theta, actions=actions) for theta in self.theta[:3]]
            design = place.draw(np.random.default_rng(7))
            ways[side] = lambda m=minds, p=place, d=design: [step_by_step(a, p, d) for a in m]
        return ways


def step_by_step(agent, place, design):
    """Live a session through the step interface, as `play` does, without its record."""
    rng, over = np.random.default_rng(0), False
    seen, _ = place.reset(options={"design": design})
    agent.reset()
    while not over:
        choice = agent.choose(seen, rng)
        following, reward, over, _, info = place.step(choice)
        action = choice[0] if isinstance(choice, tuple) else choice
        known = {**seen, **info["brought"]} if "brought" in info else seen
        agent.learn(known, action if isinstance(action, int) else -1, reward)
        seen = following


def timed(ways, unit):
    """Return the cell of a table, and the ratio now / before where there was a before."""
    if len(ways) == 1:
        return f"{in_turn({**ways, 'again': ways['now']})[0] / unit:.1f}", None
    before, now, ratio = in_turn(ways)
    return f"{before / unit:.1f} → {now / unit:.1f} ({ratio:.2f})", ratio


def lines_of(kind):
    return len(Path(inspect.getfile(kind)).read_text(encoding="utf-8").splitlines())


def all_models(names, past):
    """Print a row of Markdown for every model, then what the ratios come to."""
    heads = ["model", "lines of its file; of the model", "likelihood with gradient, ns",
             "with lapses, ns", "simulation, ns", "step, us"]  # fmt: skip
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    ratios = {"likelihood": [], "likelihood with lapses": [], "simulation": [], "step": []}
    worst = 0.0
    for name in names:
        sides = Sides(name, past)
        unit, steps = sides.n * 1e-9, 3e-6 * sides.n / PEOPLE
        ways = (sides.likelihood(None), sides.likelihood(0.1), sides.simulation(), sides.steps())
        cells = []
        for found, way, scale in zip(ratios.values(), ways, (*[unit] * 3, steps), strict=True):
            cell, ratio = timed(way, scale)
            cells.append(cell)
            if ratio is not None:
                found.append((ratio, name))
        lines = f"{lines_of(sides.model)}; {len(inspect.getsource(sides.model).splitlines())}"
        if sides.old is not None:
            worst = max(worst, sides.apart())
            lines = f"{lines_of(sides.old)} → {lines}"
        print(f"| `{name}` | {lines} | {' | '.join(cells)} |", flush=True)
    if not ratios["likelihood"]:
        return  # none of these was written by hand before
    print(f"\nvalues and slopes apart by at most {worst:.1e}, relative to 1 + size")
    bars = {"likelihood": 1.15, "likelihood with lapses": 1.15, "simulation": 1.3, "step": 3.0}
    for what, found in ratios.items():
        most, name = max(found)
        told = f"{what}, now / before: of {len(found)} models the median is "
        print(f"{told}{median(r for r, _ in found):.2f}, the largest that of {name}")
        goal(f"{what}, the largest", most, bars[what], at_most=True)
        if what.startswith("likelihood"):
            goal(f"{what}, the median", median(r for r, _ in found), 0.5, at_most=True)


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
    """Print a row of Markdown for every model: what its first fit costs, and the next."""
    print(
        "| model | traced and printed, s | first fit, s | next, s |\n|---|---|---|---|", flush=True
    )
    worst = 0.0
    for name in names:
        printed, first, later = first_fit(name)
        worst = max(worst, first)
        print(f"| `{name}` | {printed:.3f} | {first:.1f} | {later:.2f} |", flush=True)
    goal("CPU seconds of a first fit, the longest", worst, 6.0, at_most=True)


def main():
    written = [name for name, model in AGENTS.items() if issubclass(model, Model)]
    written = [name for name in written if name in sys.argv[1:]] or written
    if "--compile" in sys.argv:
        first_fits(written)
    elif "--table" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            all_models(written, earlier(BEFORE, folder))
    else:
        against_hand_written()
        first_fits([OURS.name])


if __name__ == "__main__":
    main()
