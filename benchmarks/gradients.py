"""Gradient evaluations per CPU second: ours, NumPyro's, PyMC's; `python benchmarks/gradients.py`.

The same models are written for JAX (a scan over trials, vmap over subjects: what a NumPyro model
evaluates) and for PyTensor (a scan over trials, all subjects in each step: what a PyMC model
evaluates). An evaluation gives the log-likelihood of every subject and its slopes in the
parameters, without the prior. All are in double precision; they have to agree to 1e-8 at the
points where they are timed. PyTensor compiles by C or by numba, and the faster one counts. CPU
time of all threads is counted, the ways in turn in one process, compilation apart.

Needs JAX beside the test dependencies; without it, that row is left out and said so. A number is
that of the subjects (100); `--jax` leaves PyTensor out, which takes long to compile.
"""

import sys
import time
import warnings
from statistics import median, quantiles

from side_by_side import goal  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np
from baselines import days_of, hybrid_in_jax, learner_in_jax

from knownminds.agents import RescorlaWagnerDual, TwoStepHybrid, simulate
from knownminds.environments import InstrumentalLearning, TwoStep
from knownminds.inference import ModelData

warnings.filterwarnings("ignore")

N = next((int(word) for word in sys.argv[1:] if word.isdigit()), 100)
DAYS, POINTS, ROUNDS, LEAST = 200, 3, 7, 0.2
CLOSE, BAR = 1e-8, 20


def by_jax(one, arrays):
    """Return a function of theta [N, P]: log-likelihoods [N] and slopes [N, P]."""
    import jax

    jax.config.update("jax_enable_x64", True)
    of_all = jax.jit(jax.vmap(jax.value_and_grad(one)))
    given = tuple(map(jax.numpy.asarray, arrays))
    return lambda theta: jax.block_until_ready(of_all(theta, *given))


def by_pytensor(scanned, arrays, mode):
    """Do the same with a function of theta and arrays [T, N] that scans with PyTensor."""
    import pymc as pm
    import pytensor.tensor as pt

    theta = pt.matrix("theta")
    total = scanned(theta, *(pt.as_tensor(np.ascontiguousarray(x.T)) for x in arrays))
    return pm.pytensorf.compile([theta], [total, pt.grad(total.sum(), theta)], mode=mode)


def learner_in_pytensor(theta, contexts, actions, rewards):
    import pytensor.tensor as pt

    each = np.arange(N)

    def step(c, a, r, values, last, theta):
        alpha_positive, alpha_negative, beta, kappa = (
            theta[:, 0],
            theta[:, 1],
            theta[:, 2],
            theta[:, 3],
        )
        x = beta * (values[each, c, 1] - values[each, c, 0]) + kappa * last[each, c]
        side = 2.0 * a - 1.0
        surprise = r - values[each, c, a]
        rate = pt.switch(surprise > 0, alpha_positive, alpha_negative)
        values = values[each, c, a].inc(rate * surprise)
        last = last[each, c].set(side)
        return values, last, -pt.softplus(-side * x)

    # NumPy's own numbers: PyTensor would take 0.5 for single precision.
    start = [np.full((N, 4, 2), 0.5), np.zeros((N, 4)), None]
    return _scanned(step, [contexts, actions, rewards], start, theta)


def hybrid_in_pytensor(theta, shuttles, planets, aliens, rewards):
    import pytensor.tensor as pt

    each = np.arange(N)

    def step(a, s, b, r, values, cached, last, theta):
        alpha_1, alpha_2, trace, beta_1, beta_2, w, pi = (theta[:, k] for k in range(7))
        # `values.max(axis=2)` would count the slopes of both where both are the same: 2 for 1.
        best = pt.switch(values[..., 0] > values[..., 1], values[..., 0], values[..., 1])
        plan = 0.4 * (best[:, 1] - best[:, 0])
        x = beta_1 * (w * plan + (1 - w) * (cached[:, 1] - cached[:, 0])) + pi * last
        y = beta_2 * (values[each, s, 1] - values[each, s, 0])
        side, turn = 2.0 * a - 1.0, 2.0 * b - 1.0
        told = -pt.softplus(-side * x) - pt.softplus(-turn * y)
        value = values[each, s, b]
        surprise = r - value
        cached = cached[each, a].inc(alpha_1 * (value - cached[each, a] + trace * surprise))
        values = values[each, s, b].inc(alpha_2 * surprise)
        return values, cached, side, told

    start = [np.full((N, 2, 2), 0.5), np.full((N, 2), 0.5), np.zeros(N), None]
    return _scanned(step, [shuttles, planets, aliens, rewards], start, theta)


def _scanned(step, sequences, start, theta):
    """Return the sum over trials of what a step returns last, [N]."""
    import pytensor

    found = pytensor.scan(
        step, sequences=sequences, outputs_info=start, non_sequences=[theta], return_updates=False
    )
    return found[-1].sum(axis=0)


def learners():
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), N)
    trials = simulate(RescorlaWagnerDual, theta, InstrumentalLearning(), 3)
    kinds = (("context", int), ("action", int), ("reward", float))
    arrays = [trials.frame[name].to_numpy(dtype=kind).reshape(N, -1) for name, kind in kinds]
    return trials, arrays


def hybrids():
    theta = TwoStepHybrid.parameters.draw(np.random.default_rng(1), N)
    trials = simulate(TwoStepHybrid, theta, TwoStep(DAYS), 3)
    return trials, days_of(trials, N, DAYS)


def apart(ours, theirs, points):
    """Return by how much two ways differ at most, relative to 1 + size, in value and slope."""
    worst = [0.0, 0.0]
    for theta in points:
        for k, (a, b) in enumerate(zip(ours(theta), theirs(theta), strict=True)):
            worst[k] = max(worst[k], float(np.max(np.abs(a - b) / (1 + np.abs(a)))))
    return worst


def cpu_seconds(ways, theta):
    """Return CPU seconds per evaluation of each way in each round, the ways in turn."""
    counts = {}
    for name, way in ways.items():
        begin = time.process_time()
        way(theta)
        counts[name] = max(1, int(LEAST / max(time.process_time() - begin, 1e-9)))
    seconds = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.process_time()
            for _ in range(counts[name]):
                way(theta)
            seconds[name].append((time.process_time() - begin) / counts[name])
    return seconds


def compared(title, model, data_set, in_jax, in_pytensor):
    """Compare one model's ways, the slowest to be compiled first."""
    trials, arrays = data_set()
    data = ModelData.read(model, trials)
    made = {
        "knownminds (generated kernel)": lambda: data.log_likelihood,
        "NumPyro (JAX scan, vmap)": lambda: by_jax(in_jax, arrays),
        "PyMC (PyTensor scan, C)": lambda: by_pytensor(in_pytensor, arrays, None),
        "PyMC (PyTensor scan, numba)": lambda: by_pytensor(in_pytensor, arrays, "NUMBA"),
    }
    if "--jax" in sys.argv:
        made = {name: make for name, make in made.items() if "PyTensor" not in name}
    rng = np.random.default_rng(2)
    points = [model.parameters.draw(rng, N) for _ in range(POINTS)]
    ways, compiled = {}, {}
    for name, make in made.items():
        begin = time.process_time()
        try:
            way = make()
        except ImportError as error:
            print(f"{name}: left out, {error}")
            continue
        way(points[0])
        ways[name], compiled[name] = way, time.process_time() - begin
    ours = next(iter(ways))
    print(f"\n{title}: value and slopes of {N} subjects, {len(trials.frame) // N} trials each")
    for name in list(ways)[1:]:
        value, slope = apart(ways[ours], ways[name], points)
        print(f"  {name}: apart by {value:.1e} in value, {slope:.1e} in slope")
        goal("relative to 1 + size", max(value, slope), CLOSE, at_most=True)
        if max(value, slope) > CLOSE:
            raise SystemExit(f"{name} is another model; nothing is timed.")
    seconds = cpu_seconds(ways, points[0])
    print(f"  {'':<34}{'per CPU second':>15}{'ours / theirs':>15}  quartiles    CPU s to the first")
    ratios = {}
    for name, own in seconds.items():
        each = [b / a for a, b in zip(seconds[ours], own, strict=True)]
        low, _, high = quantiles(each, n=4)
        ratios[name] = median(each)
        told = "" if name == ours else f"{ratios[name]:>15.1f}  {low:.1f} to {high:.1f}"
        print(f"  {name:<34}{1 / median(own):>15.1f}{told:<30}{compiled[name]:>10.1f}")
    for framework in ("NumPyro", "PyMC"):
        found = [ratio for name, ratio in ratios.items() if name.startswith(framework)]
        if found:
            goal(f"{title}, ours / {framework}", min(found), BAR)


def main():
    compared("dual-rate learner", RescorlaWagnerDual, learners, learner_in_jax, learner_in_pytensor)
    compared("two-step hybrid", TwoStepHybrid, hybrids, hybrid_in_jax, hybrid_in_pytensor)


if __name__ == "__main__":
    main()
