"""The two-step task: kernels, and the group model against NumPyro; `python benchmarks/two_step.py`.

A trial is a day of two choices. The group model has 50 subjects x 200 days x 7 parameters; counted
is the smallest effective sample size over group means and spreads, per second of CPU spent sampling
(compilation is listed apart). Needs NumPyro and JAX beside the test dependencies; `--kernels`
leaves the group model out.
"""

import sys
import time
import warnings

from side_by_side import goal

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from baselines import days_of, hybrid_in_jax  # noqa: E402

from knownminds.agents import TwoStepHybrid, play, simulate  # noqa: E402
from knownminds.agents.play import simulate_sessions  # noqa: E402
from knownminds.agents.sequences import Sequences  # noqa: E402
from knownminds.environments import TwoStep  # noqa: E402
from knownminds.environments.streams import session_uniforms  # noqa: E402
from knownminds.inference import ModelData  # noqa: E402

MODEL, N, DAYS = TwoStepHybrid, 50, 200
PARAMETERS = MODEL.parameters
MINUTES = 2.0  # within which a group is to be fitted, compilation included


def minds(n, seed):
    """Draw n subjects from a group with moderate spreads."""
    rng = np.random.default_rng(seed)
    spread = np.array([0.6, 0.6, 0.6, 0.4, 0.4, 0.7, 0.3])
    return PARAMETERS.constrain(PARAMETERS.mean + spread * rng.normal(size=(n, 7)))


def data_set(seed):
    return simulate(MODEL, minds(N, seed), TwoStep(DAYS), seed)


def plain_log_likelihood(theta, stage, transition, state, action, reward):
    """Plain Python over lists, one subject, without gradient."""
    agent, total = MODEL.from_theta(theta), 0.0
    for g, p, s, a, r in zip(stage, transition, state, action, reward, strict=True):
        seen = {"stage": g, "transition": p, "state": s}
        total += np.log(agent.action_probabilities(seen)[a])
        agent.learn(seen, a, r)
    return total


def kernels():
    """Time simulation and likelihood; per trial is per day."""
    n, environment = 2048, TwoStep(DAYS)
    theta = minds(n, 0)
    drawn = session_uniforms(1, [(i,) for i in range(n)], environment.n_draws + 2 * DAYS)
    tables = environment.tables(drawn[:, : environment.n_draws])
    flat = {k: v.reshape(n * 2 * DAYS, *v.shape[2:]) for k, v in tables.items()}
    sequences = Sequences.group(np.repeat(np.arange(n), 2 * DAYS), (), n)
    packed = [sequences.pack(drawn[:, environment.n_draws :].ravel())]
    played, design = MODEL.simulation(environment)
    packed += [sequences.pack(flat[name]) for name in design]

    def kernel():
        played(theta, None, 2, sequences.row, sequences.start, *packed)

    agent, few = MODEL.from_theta(theta[0]), 500
    print(f"\nSimulation, sessions of {DAYS} days")
    ways = {
        "the kernel, random numbers drawn before": (n, kernel),
        "simulate_sessions(), random numbers included": (
            few,
            lambda: simulate_sessions(MODEL, theta[:few], environment, 1),
        ),
        "simulate(), the checked record included": (
            few,
            lambda: simulate(MODEL, theta[:few], environment, 1),
        ),
        "the same agent in the step loop": (1, lambda: play(agent, environment, 1)),
    }
    speed = {}
    for name, (sessions, way) in ways.items():
        way()
        seconds = []
        for _ in range(7):
            begin = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - begin)
        speed[name] = sessions * DAYS / np.median(seconds) / 1e6
        print(f"  {name:<48}{speed[name]:10.4f} million days per second")
    fastest, loop = (speed[name] for name in (next(iter(ways)), list(ways)[-1]))
    goal("million days per second of the kernel", fastest, 6.5)
    goal("kernel / step loop", fastest / loop, 300)

    for size in (64, N):
        data = ModelData.read(MODEL, simulate(MODEL, theta[:size], environment, 2))
        columns = [c[: 2 * DAYS] for c in data.flat]
        lists = [columns[0], columns[1], columns[2], columns[3].astype(int), columns[4]]
        lists = [column.tolist() for column in lists]
        data.log_likelihood(theta[:size])
        count = 200
        begin = time.perf_counter()
        for _ in range(count):
            data.log_likelihood(theta[:size])
        nanoseconds = (time.perf_counter() - begin) / (count * size * DAYS) * 1e9
        print(f"\nLog-likelihood with gradient, {size} subjects: {nanoseconds:.1f} ns per day")
        goal("ns per day", nanoseconds, 50, at_most=True)
    begin = time.perf_counter()
    plain_log_likelihood(theta[0], *lists)
    plain = (time.perf_counter() - begin) / DAYS * 1e9
    print(f"Plain Python, without gradient: {plain:.0f} ns per day")


def numpyro_sampler(trials):
    """Return a function that runs NumPyro's NUTS: scan over days, vmap over subjects."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from samplers import numpyro_nuts

    numpyro.enable_x64()
    days = tuple(map(jnp.asarray, days_of(trials, N, DAYS)))
    group_sd = np.array([p.group_sd for p in PARAMETERS])

    def model():
        mean = numpyro.sample("group_mean", dist.Normal(PARAMETERS.mean, PARAMETERS.sd).to_event(1))
        sd = numpyro.sample("group_sd", dist.HalfNormal(group_sd).to_event(1))
        with numpyro.plate("subjects", N):
            eta = numpyro.sample("eta", dist.Normal(jnp.zeros(7), 1.0).to_event(1))
        z = mean + sd * eta
        share, positive = jax.nn.sigmoid, jnp.exp
        maps = (share, share, share, positive, positive, share, lambda x: x)
        theta = jnp.stack([f(z[:, k]) for k, f in enumerate(maps)], axis=1)
        numpyro.factor("log_likelihood", jax.vmap(hybrid_in_jax)(theta, *days).sum())

    return numpyro_nuts(model)


def group():
    """Fit 50 subjects, ours and NumPyro's way, and compare effective draws per CPU second."""
    from samplers import compare, ours

    from knownminds.inference import GroupModel, hierarchical

    trials = data_set(3)
    begin = time.perf_counter()
    fit = hierarchical(MODEL, trials, seed=1)
    whole = time.perf_counter() - begin
    print(f"\nhierarchical(), compilation included, on all cores: {whole:.0f} s")
    print(fit)
    goal("minutes for a verdict", whole / 60, MINUTES, at_most=True)
    data = ModelData.read(MODEL, trials)
    model = GroupModel.build(data)
    model.compile(data)
    run = numpyro_sampler(trials)
    ways = {
        "knownminds (nutpie, lanes)": lambda s: ours(model, data, s),
        "NumPyro (scan, vmap)": run,
    }
    compare(ways, {"NumPyro (scan, vmap)": 10})


if __name__ == "__main__":
    kernels()
    if "--kernels" not in sys.argv:
        group()
