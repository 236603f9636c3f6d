"""How often a fit says that no difference between subjects can be seen, where there are some.

    python benchmarks/alike.py [replicates] [model]

Models are rescorla_wagner (96 choices each between machines) and noisy_or (240 answers each about
colliders). Groups of 10 and of 40 subjects are simulated with the spread 0 in all parameters
(subjects are copies of each other, as language models at temperature 0 are), and with spreads of a
quarter, a half and the whole of what the prior of spreads has as its scale. The group means are
drawn from the priors. Told is, for each parameter, in how many fits the sentence stands: where the
spread is 0 that is its power, elsewhere it is a false alarm.
"""

import sys
import time

import side_by_side  # noqa: F401  (limits the threads of BLAS, before NumPy)

# isort: split
import numpy as np

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Collider, InstrumentalLearning, session_stream
from knownminds.inference import GroupModel, ModelData
from knownminds.validation.data.group_fit import CLEAR_FACTOR

PLACES = {"rescorla_wagner": InstrumentalLearning(), "noisy_or": Collider()}
SUBJECTS, SPREADS = (10, 40), (0.0, 0.25, 0.5, 1.0)
SAMPLING = {"chains": 4, "draws": 500, "tune": 300, "rounds": 1, "cores": 1}


def told(model, n, share, replicates):
    """Return whether each fit calls subjects alike, [replicates, K], and how many converged."""
    parameters = model.parameters
    spread = share * np.array([p.group_sd for p in parameters])
    alike, group, converged = [], None, 0
    for k in range(replicates):
        rng = session_stream(n, int(100 * share), k)
        mean = parameters.mean + parameters.sd * rng.standard_normal(len(parameters))
        z = mean + spread * rng.standard_normal((n, len(parameters)))
        trials = simulate(model, parameters.constrain(z), PLACES[model.name], k, address=(n,))
        data = ModelData.read(model, trials)
        group = group or GroupModel.build(data)
        fit = group.sample(data, seed=k, **SAMPLING)
        converged += not fit.divergences
        alike.append([1.0 / fit.subjects_differ(name) >= CLEAR_FACTOR for name in fit.names])
    return np.array(alike), converged


def main():
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    model = AGENTS[sys.argv[2] if len(sys.argv) > 2 else "rescorla_wagner"]
    print(f"{model.name}, {replicates} fits each: how many say that no difference can be seen")
    head = "".join(f"{name:>12}" for name in model.parameters.names)
    print(f"{'subjects':>9}{'spread / prior scale':>22}{head}   without divergences")
    for n in SUBJECTS:
        for share in SPREADS:
            begin = time.process_time()
            alike, calm = told(model, n, share, replicates)
            row = "".join(f"{count:>12d}" for count in alike.sum(axis=0))
            seconds = time.process_time() - begin
            print(f"{n:>9d}{share:>22g}{row}   {calm} ({seconds:.0f} s of CPU)", flush=True)


if __name__ == "__main__":
    main()
