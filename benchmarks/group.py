"""The group model against NumPyro and PyMC's own NUTS; `python benchmarks/group.py`.

Smallest effective sample size over group means and spreads, per second of CPU spent sampling
(compilation is listed apart). Needs NumPyro and JAX beside the test dependencies.
"""

import time
import warnings

from side_by_side import goal

warnings.filterwarnings("ignore")

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402
from baselines import numpyro_model  # noqa: E402

from knownminds.agents import RescorlaWagnerDual, simulate  # noqa: E402
from knownminds.environments import InstrumentalLearning  # noqa: E402
from knownminds.inference import GroupModel, ModelData  # noqa: E402
from knownminds.inference.sampling import (  # noqa: E402
    Settings,
    dataset_of,
    run_nutpie,
    run_pymc,
)

MODEL, N, T = RescorlaWagnerDual, 50, 96
PARAMETERS = MODEL.parameters
CHAINS, DRAWS, TUNE = 4, 1000, 1000
REPEATS = 2


def data_set(seed):
    """50 learners from a group with moderate spreads."""
    rng = np.random.default_rng(seed)
    z = np.array([-0.3, -0.8, 1.1, 0.1]) + np.array([0.7, 0.7, 0.4, 0.3]) * rng.normal(size=(N, 4))
    return simulate(MODEL, PARAMETERS.constrain(z), InstrumentalLearning(), seed)


def least_ess(means, spreads):
    """Smallest bulk effective sample size; both [chains, draws, 4]."""
    draws = xr.Dataset(
        {"m": (("chain", "draw", "k"), means), "s": (("chain", "draw", "k"), spreads)}
    )
    ess = az.ess(draws, method="bulk")
    return float(min(ess["m"].min(), ess["s"].min())), np.concatenate([means, spreads], axis=2)


def ours(model, data, seed, sampler):
    """Sample our PyMC model; one core for all ways, so that CPU time is counted alike."""
    settings = Settings(CHAINS, DRAWS, TUNE, seed=seed, cores=1)
    begin, wall = time.process_time(), time.perf_counter()
    if sampler == "nutpie":
        trace = run_nutpie(model.compile(data), settings)
    else:
        trace = run_pymc(model.pymc_model, model.inputs(data), settings)
    cpu, wall = time.process_time() - begin, time.perf_counter() - wall
    posterior = dataset_of(trace, "posterior")
    ess, draws = least_ess(
        posterior["group_mean"].to_numpy(), np.abs(posterior["signed_sd"].to_numpy())
    )
    return ess, cpu, wall, int(dataset_of(trace, "sample_stats")["diverging"].sum()), draws


def numpyro_sampler(trials):
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    frame = trials.frame
    arrays = [
        jnp.asarray(frame[name].to_numpy(dtype=kind).reshape(N, T))
        for name, kind in (("context", int), ("action", int), ("reward", float))
    ]
    group_sd = np.array([p.group_sd for p in PARAMETERS])
    model = numpyro_model(N, PARAMETERS.mean, PARAMETERS.sd, group_sd, *arrays)
    mcmc = MCMC(
        NUTS(model),
        num_warmup=TUNE,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )

    def run(seed):
        begin, wall = time.process_time(), time.perf_counter()
        mcmc.run(jax.random.PRNGKey(seed))
        samples = mcmc.get_samples(group_by_chain=True)
        means, spreads = (np.asarray(samples[name]) for name in ("group_mean", "group_sd"))
        cpu, wall = time.process_time() - begin, time.perf_counter() - wall
        diverging = int(np.asarray(mcmc.get_extra_fields(True).get("diverging", 0)).sum())
        ess, draws = least_ess(means, spreads)
        return ess, cpu, wall, diverging, draws

    return run


def main():
    trials = data_set(3)
    data = ModelData.read(MODEL, trials)
    model = GroupModel.build(data)
    begin = time.perf_counter()
    model.compile(data)
    print(f"compiling the group model: {time.perf_counter() - begin:.1f} s (numba caches may help)")
    other = ModelData.read(MODEL, data_set(4))
    begin = time.perf_counter()
    model.compile(other)
    print(f"giving it a second data set: {time.perf_counter() - begin:.4f} s")
    run = numpyro_sampler(trials)
    begin = time.perf_counter()
    run(0)
    print(f"NumPyro's first run, compilation included: {time.perf_counter() - begin:.1f} s")
    ways = {
        "knownminds (nutpie, lanes)": lambda s: ours(model, data, s, "nutpie"),
        "NumPyro (scan, vmap)": run,
        "PyMC's own NUTS, the same Op": lambda s: ours(model, data, s, "pymc"),
    }
    rates, all_draws = {name: [] for name in ways}, {}
    for repeat in range(REPEATS):
        for name, way in ways.items():
            ess, cpu, wall, diverging, draws = way(repeat + 1)
            rates[name].append(ess / cpu)
            all_draws[name] = draws
            print(
                f"  {name:<32} least ESS {ess:7.0f}, CPU {cpu:7.1f} s, wall {wall:7.1f} s, "
                f"{ess / cpu:8.2f} per CPU second, {diverging} divergent",
                flush=True,
            )
    first = next(iter(ways))
    for name, asked in (("NumPyro (scan, vmap)", 10), ("PyMC's own NUTS, the same Op", 5)):
        ratios = np.array(rates[first]) / np.array(rates[name])
        print(f"{name}: {ratios.min():.1f} to {ratios.max():.1f} times slower per effective draw")
        goal(f"ours / {name}", float(np.median(ratios)), asked)
        gap = np.abs(all_draws[first].mean((0, 1)) - all_draws[name].mean((0, 1)))
        widest = (gap / all_draws[name].std((0, 1))).max()
        print(f"  posterior means differ by at most {widest:.3f} sd")


if __name__ == "__main__":
    main()
