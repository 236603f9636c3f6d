"""The group model against NumPyro and PyMC's own NUTS; `python benchmarks/group.py`.

Smallest effective sample size over group means and spreads, per second of CPU spent sampling
(compilation is listed apart). Needs NumPyro and JAX beside the test dependencies.
"""

import time
import warnings

import side_by_side  # noqa: F401  (limits the threads of BLAS, before NumPy)

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from baselines import numpyro_model  # noqa: E402
from samplers import compare, numpyro_nuts, ours  # noqa: E402

from knownminds.agents import RescorlaWagnerDual, simulate  # noqa: E402
from knownminds.environments import InstrumentalLearning  # noqa: E402
from knownminds.inference import GroupModel, ModelData  # noqa: E402
from knownminds.inference.posteriors.sampling import Settings  # noqa: E402

MODEL, N, T = RescorlaWagnerDual, 50, 96
PARAMETERS = MODEL.parameters


def data_set(seed):
    """50 learners from a group with moderate spreads."""
    rng = np.random.default_rng(seed)
    z = np.array([-0.3, -0.8, 1.1, 0.1]) + np.array([0.7, 0.7, 0.4, 0.3]) * rng.normal(size=(N, 4))
    return simulate(MODEL, PARAMETERS.constrain(z), InstrumentalLearning(), seed)


def numpyro_sampler(trials):
    import jax.numpy as jnp
    import numpyro

    numpyro.enable_x64()
    frame = trials.frame
    arrays = [
        jnp.asarray(frame[name].to_numpy(dtype=kind).reshape(N, T))
        for name, kind in (("context", int), ("action", int), ("reward", float))
    ]
    group_sd = np.array([p.group_sd for p in PARAMETERS])
    model = numpyro_model(N, PARAMETERS.mean, PARAMETERS.sd, group_sd, *arrays)
    return numpyro_nuts(model)


def main():
    trials = data_set(3)
    data = ModelData.read(MODEL, trials)
    model = GroupModel.build(data)
    begin = time.perf_counter()
    model.density(data).sample(Settings(draws=1, tune=1, cores=1))
    print(f"compiling or loading the group model: {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    model.compile(data)
    print(f"compiling PyMC's graph of it: {time.perf_counter() - begin:.1f} s")
    run = numpyro_sampler(trials)
    begin = time.perf_counter()
    run(0)
    print(f"NumPyro's first run, compilation included: {time.perf_counter() - begin:.1f} s")
    ways = {
        "knownminds": lambda s: ours(model, data, s),
        "nutpie, PyMC's graph": lambda s: ours(model, data, s, "nutpie"),
        "NumPyro (scan, vmap)": run,
        "PyMC's own NUTS, the same Op": lambda s: ours(model, data, s, "pymc"),
    }
    compare(ways, {"NumPyro (scan, vmap)": 100, "PyMC's own NUTS, the same Op": 5})


if __name__ == "__main__":
    main()
