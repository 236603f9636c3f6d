"""Measure samplers of group models by their effective draws per second of CPU."""

import time
from dataclasses import replace

import arviz as az
import numpy as np
import xarray as xr
from side_by_side import goal

from knownminds.inference.posteriors.sampling import Settings, dataset_of, run_nutpie, run_pymc

CHAINS, DRAWS, TUNE = 4, 1000, 1000
REPEATS = 2


def least_ess(means, spreads):
    """Smallest bulk effective sample size; both [chains, draws, K]."""
    draws = xr.Dataset(
        {"m": (("chain", "draw", "k"), means), "s": (("chain", "draw", "k"), spreads)}
    )
    ess = az.ess(draws, method="bulk")
    return float(min(ess["m"].min(), ess["s"].min())), np.concatenate([means, spreads], axis=2)


def ours(model, data, seed, sampler="compiled"):
    """Sample our group model; one core for all ways, so that CPU time is counted alike."""
    settings = Settings(CHAINS, DRAWS, TUNE, seed=seed, cores=1)
    begin, wall = time.process_time(), time.perf_counter()
    if sampler == "compiled":
        trace = model.density(data).sample(replace(settings, tune=500))
    elif sampler == "nutpie":
        trace = run_nutpie(model.compile(data), settings)
    else:
        trace = run_pymc(model.pymc_model, model.inputs(data), settings)
    cpu, wall = time.process_time() - begin, time.perf_counter() - wall
    posterior = dataset_of(trace, "posterior")
    ess, draws = least_ess(
        posterior["group_mean"].to_numpy(), np.abs(posterior["signed_sd"].to_numpy())
    )
    return ess, cpu, wall, int(dataset_of(trace, "sample_stats")["diverging"].sum()), draws


def numpyro_nuts(model, chains=CHAINS):
    """Return a function that runs NumPyro's NUTS on a model with group_mean and group_sd."""
    import jax
    from numpyro.infer import MCMC, NUTS

    mcmc = MCMC(
        NUTS(model),
        num_warmup=TUNE,
        num_samples=DRAWS,
        num_chains=chains,
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


def compare(ways, asked):
    """Run `ways` {name: function of a seed} in turn; the first is ours, `asked` {name: ratio}."""
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
    for name, bound in asked.items():
        ratios = np.array(rates[first]) / np.array(rates[name])
        print(f"{name}: {ratios.min():.1f} to {ratios.max():.1f} times slower per effective draw")
        goal(f"ours / {name}", float(np.median(ratios)), bound)
        gap = np.abs(all_draws[first].mean((0, 1)) - all_draws[name].mean((0, 1)))
        widest = (gap / all_draws[name].std((0, 1))).max()
        print(f"  posterior means differ by at most {widest:.3f} sd")
