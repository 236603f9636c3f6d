"""Group models side by side: ours and PyMC's NUTS; `python speed/group.py`.

Fifty dual-rate learners of 96 trials, and fifty discounters of 288. Each way runs in a
separate process on one core. Reported are the smallest effective sample size over group
means and spreads per second of CPU spent sampling, once everything is compiled, and the CPU
seconds of the whole process. What is not installed is
left out.
"""

import json
import os
import subprocess
import sys
import tempfile

from side_by_side import goal  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np

from knownminds.agents import HyperbolicDiscounter, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, TemporalDiscounting
from knownminds.inference import hierarchical

N, TUNE, DRAWS = 50, 500, 1000
BARS = {"PyMC": 2}


# Of each case: model, experiment, spreads around the priors' means.
CASES = {
    "learner": (RescorlaWagnerDual, InstrumentalLearning(), (0.7, 0.7, 0.4, 0.3)),
    "discounter": (HyperbolicDiscounter, TemporalDiscounting(design="grid"), (0.8, 0.4, 0.4)),
}


def cpu():
    """Return CPU seconds of this process and of those that it started and that ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def people(name):
    """Let a group play."""
    model, environment, spread = CASES[name]
    z = np.random.default_rng(3).normal(size=(N, len(spread)))
    parameters = model.parameters
    return simulate(
        model, parameters.constrain(parameters.mean + np.array(spread) * z), environment, 3
    )


def by_ours(name, trials):
    """Return draws [chains, draws, terms], and CPU seconds of sampling once all is compiled."""
    hierarchical(CASES[name][0], trials, cores=1)
    begun = cpu()
    fit = hierarchical(CASES[name][0], trials, cores=1)
    draws = [fit.posterior[n].transpose("chain", "draw", ...).to_numpy()
             for n in ("group_mean", "group_sd")]  # fmt: skip
    return np.concatenate(draws, axis=2), cpu() - begun


def by_pymc(name, trials):
    """Sample our density with PyMC's NUTS."""
    import pymc as pm

    from knownminds.inference import pymc_model

    def sample(tune, draws):
        with pymc_model(CASES[name][0], trials):
            return pm.sample(draws, tune=tune, chains=2, cores=1, progressbar=False, random_seed=1)

    sample(1, 1)
    begun = cpu()
    sample(1, 1)
    compiling = cpu() - begun
    begun = cpu()
    posterior = sample(TUNE, DRAWS).posterior
    draws = [np.abs(posterior[n].to_numpy()) if "sd" in n else posterior[n].to_numpy()
             for n in posterior if n in ("group_mean", "group_sd", "signed_sd")]  # fmt: skip
    return np.concatenate(draws, axis=2), cpu() - begun - compiling


WAYS = {"ours": by_ours, "PyMC": by_pymc}


def child(way, name):
    """Sample one case one way, and print what it took."""
    from knownminds.inference.posteriors.arviz_scores import ess

    draws, seconds = WAYS[way](name, people(name))
    print("FOUND", json.dumps([float(ess(draws).min()) / seconds, cpu()]))


def compared(name, folder):
    """Run one case all ways and print what each took."""
    print(f"\n{name}: {N} subjects", flush=True)
    rates = {}
    for way in WAYS:
        kept = {"NUMBA_CACHE_DIR": folder, "PYTENSOR_FLAGS": f"base_compiledir={folder}"}
        words = [sys.executable, __file__, "--way", way, name]
        done = subprocess.run(words, env=os.environ | kept, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        if not lines:
            print(f"  {way}: left out, {(done.stderr or done.stdout).strip().splitlines()[-1]}")
            continue
        rates[way], seconds = json.loads(lines[0].removeprefix("FOUND "))
        print(f"  {way:<8}{rates[way]:8.2f} effective draws per CPU second; {seconds:.1f} s of CPU "
              "from the start, compilation included", flush=True)  # fmt: skip
    for way in rates.keys() & BARS.keys():
        goal(f"effective draws per CPU second, ours / {way}", rates["ours"] / rates[way], BARS[way])


if __name__ == "__main__":
    if "--way" in sys.argv:
        child(*sys.argv[sys.argv.index("--way") + 1 :])
    else:
        with tempfile.TemporaryDirectory() as folder:
            for case in sys.argv[1:] or CASES:
                compared(case, folder)
