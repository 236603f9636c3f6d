"""Causal reasoners: kernels, least squares against SciPy, and the group model against NumPyro.

`python benchmarks/collider.py`. The least-squares fits are those of 1,000 agents with 240 answers
each: 3 and 4 parameters, 10 starts, all tasks and each task left out. SciPy's L-BFGS-B minimises
the same sums with numeric gradients, for a few of the agents; both run on one core. The group model
has 50 agents x 240 answers x 5 parameters; counted is the smallest effective sample size over group
means and spreads, per second of CPU spent sampling (compilation is listed apart). Needs NumPyro and
JAX beside the test dependencies; `--fits` leaves the group model out.
"""

import sys
import time
import warnings
from statistics import median

from side_by_side import goal

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402

from knownminds.agents import MutationSampler, NoisyOr, simulate  # noqa: E402
from knownminds.environments import Collider  # noqa: E402
from knownminds.environments.causes.causal_graph import direction_of, task_of  # noqa: E402
from knownminds.inference import ModelData, leave_one_task_out  # noqa: E402

MODEL, N, ANSWERS = NoisyOr, 50, 240
PARAMETERS = MODEL.parameters
AGENTS, SUBSET, STARTS = 1000, 3, 10
BOX = 1e-6
TASKS = 11


def data_set(n, seed, model=MODEL):
    """n agents from a group with moderate spreads."""
    rng = np.random.default_rng(seed)
    spread = np.array([0.6] * (len(model.parameters) - 1) + [0.4])
    z = model.parameters.mean + spread * rng.normal(size=(n, len(spread)))
    return simulate(model, model.parameters.constrain(z), Collider(), seed)


def kernels():
    """Time the likelihood with its gradient."""
    print(f"\nLog-likelihood with gradient, {ANSWERS} answers of each agent")
    for model in (NoisyOr, MutationSampler):
        data = ModelData.read(model, data_set(256, 1, model))
        theta = np.tile(model.parameters.constrain(model.parameters.mean), (256, 1))
        data.log_likelihood(theta)
        seconds = []
        for _ in range(20):
            begin = time.process_time()
            for _ in range(10):
                data.log_likelihood(theta)
            seconds.append((time.process_time() - begin) / 10)
        each = median(seconds) / 256
        per_answer = each / ANSWERS * 1e9
        print(f"  {model.name:<20}{each * 1e6:7.2f} us per agent, {per_answer:6.1f} ns per answer")


def tasks(p, b, m1, m2):
    """The answers to the eleven tasks in direction 0, in plain numbers."""
    keep = 1.0 - b
    e10, e01 = 1.0 - keep * (1.0 - m1), 1.0 - keep * (1.0 - m2)
    e11 = 1.0 - keep * (1.0 - m1) * (1.0 - m2)

    def share(u, v):
        return p * u / (p * u + (1.0 - p) * v)

    with_1, with_0 = p * e11 + (1.0 - p) * e10, p * e01 + (1.0 - p) * b
    return (
        b, e01, e11, p, p,
        share(e11, e01), share(with_1, with_0), share(e10, b),
        share(1.0 - e11, 1.0 - e01), share(1.0 - with_1, 1.0 - with_0), share(1.0 - e10, keep),
    )  # fmt: skip


def by_scipy(place, weight, value, size, starts):
    """Fit one agent and refit it without each task: the sums that are left, [12]."""
    ends = []
    for left_out in range(-1, TASKS):
        kept = np.flatnonzero(place % TASKS != left_out)
        at, n, y = place[kept], weight[kept], value[kept]

        def loss(theta):
            p, b, m1 = theta[:3]
            m2 = theta[-1]
            table = np.array(tasks(p, b, m1, m2) + tasks(p, b, m2, m1))
            off = table[at] - y  # noqa: B023
            return 0.5 * (n * off * off).sum()  # noqa: B023

        found = [
            minimize(loss, start, method="L-BFGS-B", bounds=[(BOX, 1 - BOX)] * size).fun
            for start in starts
        ]
        ends.append(min(found))
    return np.array(ends)


def least_squares():
    """Fit everybody our way, and a few by SciPy: on single answers, and on the means of cells."""
    trials = data_set(AGENTS, 2)
    frame = trials.frame
    leave_one_task_out(frame[frame["subject"].isin(["0", "1"])])
    begin = time.perf_counter()
    ours = leave_one_task_out(trials, starts=STARTS, workers=1)
    each = (time.perf_counter() - begin) / AGENTS
    begin = time.perf_counter()
    leave_one_task_out(trials, starts=STARTS)
    both = time.perf_counter() - begin
    fits = 2 * (1 + TASKS)
    print(f"\nLeast squares: {AGENTS} agents x {ANSWERS} answers, {fits} fits of {STARTS} starts")
    print(f"  {'knownminds, one core':<60}{each * 1e3:9.2f} ms per agent")
    print(f"  {'knownminds, everybody, all cores':<60}{both:9.2f} s")
    rng, seconds = np.random.default_rng(3), {"single answers": [], "means of cells": []}
    worst = -np.inf
    for k in range(SUBSET):
        own = frame[frame["subject"] == str(k)]
        question = [own[name].to_numpy() for name in ("query", "first", "second", "third")]
        place, value = task_of(*question) + TASKS * direction_of(*question), own["response"] / 100
        cells, where, count = np.unique(place, return_inverse=True, return_counts=True)
        means = np.bincount(where, value) / count
        sums = {
            "single answers": (place, np.ones(len(place)), value.to_numpy()),
            "means of cells": (cells, count.astype(float), means),
        }
        for name, columns in sums.items():
            begin = time.perf_counter()
            for size in (3, 4):
                starts = rng.uniform(0.02, 0.98, (STARTS, size))
                ends = by_scipy(*columns, size, starts)
                if name == "single answers":
                    loss = ours.fits[size - 3].loss[k] * len(own)
                    worst = max(worst, loss - ends[0])
            seconds[name].append(time.perf_counter() - begin)
    for name, times in seconds.items():
        way = f"SciPy L-BFGS-B, numeric gradients, {name}"
        print(f"  {way:<60}{median(times) * 1e3:9.2f} ms per agent")
    print(f"  our sum of squares is at most {worst:.1e} larger")
    goal("SciPy on single answers / ours", median(seconds["single answers"]) / each, 100)
    goal("SciPy on means of cells / ours", median(seconds["means of cells"]) / each, 100)


def numpyro_sampler(trials, merged, centred):
    """Return a function that runs NumPyro's NUTS: on single answers, or on the sums we use."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.stats import norm
    from samplers import numpyro_nuts

    numpyro.enable_x64()
    frame = trials.frame
    question = [frame[name].to_numpy() for name in ("query", "first", "second", "third")]
    place = jnp.asarray((task_of(*question) + TASKS * direction_of(*question)).reshape(N, ANSWERS))
    answer = jnp.asarray(frame["response"].to_numpy(dtype=float).reshape(N, ANSWERS) / 100)
    group_sd = np.array([p.group_sd for p in PARAMETERS])

    def predictions(p, b, m1, m2):
        return jnp.stack(tasks(p, b, m1, m2) + tasks(p, b, m2, m1))

    def of_answers(theta, place, y):
        mean, sigma = predictions(*theta[:4])[place], theta[4]
        inside = norm.logpdf(y, mean, sigma) - jnp.log(100.0)
        low, high = norm.logcdf(-mean / sigma), norm.logcdf((mean - 1) / sigma)
        return jnp.where(y <= 0, low, jnp.where(y >= 1, high, inside)).sum()

    def of_cells(theta, count, mean, spread, at_0, at_100):
        off, sigma = mean - predictions(*theta[:4]), theta[4]
        total = -0.5 * (count * off**2 + spread).sum() / sigma**2
        total -= count.sum() * jnp.log(100.0 * sigma * jnp.sqrt(2 * jnp.pi))
        predicted = predictions(*theta[:4])
        total += jnp.where(at_0 > 0, at_0 * norm.logcdf(-predicted / sigma), 0.0).sum()
        return (
            total + jnp.where(at_100 > 0, at_100 * norm.logcdf((predicted - 1) / sigma), 0.0).sum()
        )

    if merged:
        cell = np.asarray(place) + 2 * TASKS * np.arange(N)[:, None]
        y = np.asarray(answer)

        def added(values):
            return np.bincount(cell.ravel(), values.ravel(), 2 * TASKS * N).reshape(N, 2 * TASKS)

        inside = ((y > 0) & (y < 1)).astype(float)
        count = added(inside)
        mean = added(inside * y) / np.maximum(count, 1)
        spread = added(inside * (y - mean.ravel()[cell]) ** 2)
        columns = (count, mean, spread, added(y <= 0), added(y >= 1))
        one, columns = of_cells, tuple(map(jnp.asarray, columns))
    else:
        one, columns = of_answers, (place, answer)

    def model():
        mean = numpyro.sample("group_mean", dist.Normal(PARAMETERS.mean, PARAMETERS.sd).to_event(1))
        sd = numpyro.sample("group_sd", dist.HalfNormal(group_sd).to_event(1))
        law = dist.Normal(mean, sd) if centred else dist.Normal(jnp.zeros(5), 1.0)
        with numpyro.plate("subjects", N):
            z = numpyro.sample("z", law.to_event(1))
        z = z if centred else mean + sd * z
        theta = jnp.concatenate([jax.nn.sigmoid(z[:, :4]), jnp.exp(z[:, 4:])], axis=1)
        numpyro.factor("log_likelihood", jax.vmap(one)(theta, *columns).sum())

    # One chain, as long as each of ours; four would take a quarter of an hour.
    return numpyro_nuts(model, chains=1)


def group():
    """Fit 50 agents, ours and NumPyro's way, and compare effective draws per CPU second."""
    from samplers import compare, ours

    from knownminds.inference import GroupModel, hierarchical

    trials = data_set(N, 4)
    begin = time.perf_counter()
    fit = hierarchical(MODEL, trials, seed=1)
    print(
        f"\nhierarchical(), compilation included, on all cores: {time.perf_counter() - begin:.0f} s"
    )
    print(fit)
    data = ModelData.read(MODEL, trials)
    model = GroupModel.build(data)
    model.compile(data)
    ways = {
        "knownminds (nutpie)": lambda s: ours(model, data, s),
        "NumPyro, our sums, centred": numpyro_sampler(trials, merged=True, centred=True),
        "NumPyro, our sums": numpyro_sampler(trials, merged=True, centred=False),
        "NumPyro, answers, centred": numpyro_sampler(trials, merged=False, centred=True),
    }
    compare(ways, dict.fromkeys(list(ways)[1:], 10))


if __name__ == "__main__":
    kernels()
    least_squares()
    if "--fits" not in sys.argv:
        group()
