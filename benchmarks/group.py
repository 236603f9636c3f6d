"""Group models side by side: ours, NumPyro, PyMC's NUTS, Stan; `python benchmarks/group.py`.

Names of cases (learner, two-step, noisy-OR, discounter) choose some of them. Each way runs in a
process of its own, on one core. Told are the smallest effective sample size over group means and
spreads per second of CPU spent sampling, and the CPU seconds of a whole process, its start
included, until there are 1,000 effective draws. These are what starting and compiling took, and
what sampling would have, had there been as many draws after tuning as make 1,000 effective. Cold
means that nothing was compiled before. Warm, ours finds its own caches; the others are given all
that they compile for nothing.

Needs NumPyro and JAX beside the test dependencies, and pystan for Stan; what is not installed is
left out and said so. Another Python that has one of them is named as WAY=PYTHON, such as
stan=/path/to/python.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from side_by_side import goal  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np
from group_cases import CASES, N, stan_code

warnings.filterwarnings("ignore")

WAYS = ("knownminds", "NumPyro", "PyMC", "Stan")
TUNE, DRAWS, WANTED, CLOSE = 500, 1000, 1000, 1e-8
BARS = {"NumPyro": 100, "PyMC": 5}
END_TO_END, WARM = 5, 15


def cpu():
    """Return CPU seconds of this process and of those that it started."""
    own = os.times()
    seconds = own.user + own.system + own.children_user + own.children_system
    try:
        import psutil
    except ImportError:
        return seconds
    for child in psutil.Process().children(recursive=True):
        used = child.cpu_times()
        seconds += used.user + used.system
    return seconds


def by_ours(case, trials, sampler="compiled"):
    """Return draws of means and spreads, chains, tuning draws, and the seconds of both parts."""
    from knownminds.inference import GroupModel, ModelData
    from knownminds.inference.posteriors.sampling import Settings, dataset_of, run_pymc

    data = ModelData.read(case.model, trials)
    model = GroupModel.build(data)
    chains = 4 if sampler == "compiled" else 2

    def sample(tune, draws):
        settings = Settings(chains, draws, tune, seed=1, cores=1)
        if sampler == "compiled":
            return model.density(data).sample(settings)
        return run_pymc(model.pymc_model, model.inputs(data), settings)

    sample(1, 1)
    compiled = cpu()
    if sampler == "pymc":  # which compiles in each call
        sample(1, 1)
        compiled, again = cpu(), cpu() - compiled
    else:
        again = 0.0
    trace = dataset_of(sample(TUNE, DRAWS), "posterior")
    spreads = np.abs(trace["signed_sd"].to_numpy())
    sampling = cpu() - compiled - again
    return trace["group_mean"].to_numpy(), spreads, compiled - again, sampling


def by_numpyro(case, trials):
    """Do the same with NumPyro: vmap over subjects, a scan over trials where there is memory."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    from knownminds.inference import ModelData

    numpyro.enable_x64()
    arrays = tuple(map(jnp.asarray, case.read(trials)))
    parameters = case.model.parameters
    k, group_sd = len(parameters), np.array([p.group_sd for p in parameters])
    maps = {"identity": lambda x: x, "log": jnp.exp, "logit": jax.nn.sigmoid}
    maps = [maps[p.support.kind] for p in parameters]
    of_all = jax.vmap(case.in_jax)

    theta = parameters.draw(np.random.default_rng(2), N)
    own = ModelData.read(case.model, trials).log_likelihood(theta)[0]
    apart = np.max(np.abs(own - np.asarray(of_all(jnp.asarray(theta), *arrays))) / (1 + abs(own)))
    if apart > CLOSE:
        raise SystemExit(f"NumPyro's is another model, apart by {apart:.1e}; nothing is timed.")

    def model():
        mean = numpyro.sample("mean", dist.Normal(parameters.mean, parameters.sd).to_event(1))
        sd = numpyro.sample("sd", dist.HalfNormal(group_sd).to_event(1))
        law = dist.Normal(mean, sd) if case.centred else dist.Normal(jnp.zeros(k), 1.0)
        with numpyro.plate("subjects", N):
            z = numpyro.sample("z", law.to_event(1))
        z = z if case.centred else mean + sd * z
        theta = jnp.stack([f(z[:, j]) for j, f in enumerate(maps)], axis=1)
        numpyro.factor("log_likelihood", of_all(theta, *arrays).sum())

    # One chain after another, of which the first compiles; both have as many draws as tuning.
    mcmc = MCMC(NUTS(model), num_warmup=TUNE, num_samples=TUNE, progress_bar=False)
    begun, draws, seconds = cpu(), [], []
    for seed in range(2):
        before = cpu()
        mcmc.run(jax.random.PRNGKey(seed))
        draws.append({name: np.asarray(x) for name, x in mcmc.get_samples().items()})
        seconds.append(cpu() - before)
    compiling = max(seconds[0] - seconds[1], 0.0)
    means, spreads = (np.stack([d[name] for d in draws]) for name in ("mean", "sd"))
    return means, spreads, begun + compiling, 2 * seconds[1]


def by_stan(case, trials):
    """Do the same with Stan, by pystan."""
    import stan

    code, data = stan_code(case, case.read(trials))
    model = stan.build(code, data=data, random_seed=1)
    compiled = cpu()
    fit = model.sample(num_chains=2, num_warmup=TUNE, num_samples=DRAWS)
    sampling = cpu() - compiled

    def chains(name):
        flat = fit[name]  # [K, draws x chains], chains side by side
        return np.moveaxis(flat.reshape(len(flat), -1, 2), (2, 1, 0), (0, 1, 2))

    return chains("mu"), chains("sd"), compiled, sampling


RUN = {
    "knownminds": by_ours,
    "PyMC": lambda case, trials: by_ours(case, trials, "pymc"),
    "NumPyro": by_numpyro,
    "Stan": by_stan,
}


def child(way, name, place):
    """Sample one case one way, and print what it took."""
    from knownminds.environments import Trials
    from knownminds.inference.posteriors.arviz_scores import ess

    means, spreads, start, sampling = RUN[way](CASES[name], Trials.load(place))
    draws = np.concatenate([means, spreads], axis=2)
    found = {
        "ess": float(ess(draws).min()),
        "start": start,
        "sampling": sampling,
        "draws": int(draws.shape[0] * draws.shape[1]),
        "tune": TUNE * draws.shape[0],
        "mean": draws.mean((0, 1)).tolist(),
        "sd": draws.std((0, 1)).tolist(),
    }
    print("FOUND", json.dumps(found))


def measured(way, name, place, python, caches):
    """Return what a child found; None, with the reason told, if it did not get there."""
    kept = {"NUMBA_CACHE_DIR": caches, "PYTENSOR_FLAGS": f"base_compiledir={caches}"}
    kept |= {"XDG_CACHE_HOME": caches}  # in which Stan's programs are kept
    done = subprocess.run(
        [python, __file__, "--way", way, name, place],
        env=os.environ | kept, capture_output=True, text=True,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith("FOUND "):
            return json.loads(line.removeprefix("FOUND "))
    print(f"  {way}: left out, {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return None


def whole(found, start=None):
    """Return the CPU seconds until 1,000 draws are effective."""
    wanted = found["draws"] * WANTED / found["ess"]
    share = (found["tune"] + wanted) / (found["tune"] + found["draws"])
    return (found["start"] if start is None else start) + found["sampling"] * share


def compared(name, ways, pythons, folder):
    """Run one case all ways and print the table."""
    place = str(Path(folder) / f"{name}.csv")
    trials = CASES[name].trials()
    trials.frame.to_csv(place, index=False)
    print(f"\n{name}: {N} subjects, {len(trials.frame) // N} trials each", flush=True)
    rows, ours = {}, None
    for way in ways:
        caches = tempfile.mkdtemp(dir=folder)
        python = pythons.get(way.lower(), sys.executable)
        cold = measured(way, name, place, python, caches)
        if cold is None:
            continue
        best = cold
        if way == "knownminds":
            best = measured(way, name, place, python, caches)
        warm = whole(best) if way == "knownminds" else whole(cold, start=1.0)
        rows[way] = best["ess"] / best["sampling"], whole(cold), warm
        told = (
            f"  {way:<12}least ESS {best['ess']:6.0f}, sampling {best['sampling']:7.1f} s, "
            f"{rows[way][0]:8.2f} per CPU second; 1,000 effective draws cold {rows[way][1]:7.1f} s,"
            f" warm {rows[way][2]:7.1f} s"
        )
        if way == "knownminds":
            ours = best
        elif ours is not None:
            gap = np.abs(np.subtract(best["mean"], ours["mean"])) / np.array(ours["sd"])
            told += f"; means differ by at most {gap.max():.2f} sd"
        print(told, flush=True)
    others = [way for way in rows if way != "knownminds"]
    if "knownminds" not in rows or not others:
        return
    rate, cold, warm = rows["knownminds"]
    for way in others:
        if way in BARS:
            goal(f"effective draws per CPU second, ours / {way}", rate / rows[way][0], BARS[way])
    goal("cold, the best of them / ours", min(rows[w][1] for w in others) / cold, END_TO_END)
    goal("warm, the best of them / ours", min(rows[w][2] for w in others) / warm, WARM)


def main():
    words = sys.argv[1:]
    if "--way" in words:
        child(*words[1:])
        return
    pythons = dict(word.split("=", 1) for word in words if "=" in word)
    names = [word for word in words if word in CASES] or list(CASES)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            compared(name, WAYS, pythons, folder)
    print(f"\nall of it: {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
