"""The Kalman observer's kernel against the step loop: `python benchmarks/magnitude.py`."""

from side_by_side import goal, side_by_side  # before NumPy: it limits BLAS threads

# isort: split
import warnings

import numpy as np
from tasks import arguments_of_kernel, step_loop

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import make, session_stream
from knownminds.inference.fits.model_data import ModelData

N = 1000


def kalman():
    """Simulate with the kernel and with the step loop; evaluate likelihoods."""
    model, environment = AGENTS["kalman_observer"], make("marker_location")
    theta = model.parameters.draw(np.random.default_rng(1), N)
    given, n_trials = arguments_of_kernel(model, theta, environment)
    designs = [environment.draw(session_stream(5, i)) for i in range(5)]
    agents = [model.from_theta(theta[i]) for i in range(5)]
    rngs = [np.random.default_rng(i) for i in range(5)]
    data = ModelData.read(model, simulate_sessions(model, theta, environment, 5).to_trials())
    data.log_likelihood(theta)
    ratios = side_by_side(
        f"kalman_observer: {N} subjects, {n_trials} trials, one thread",
        {
            "fused kernel": lambda: model.simulation(environment)[0](*given),
            "with designs drawn (simulate_sessions)": lambda: simulate_sessions(
                model, theta, environment, 5
            ),
            "log-likelihood and exact gradient": lambda: data.log_likelihood(theta),
            "step loop, 5 subjects": lambda: [
                step_loop(*each)
                for each in zip(agents, [environment] * 5, designs, rngs, strict=True)
            ],
        },
        rounds=5,
        unit=n_trials,
        per=f"trial (last: per {N // 5} trials)",
    )
    goal("step loop / fused kernel", ratios["step loop, 5 subjects"] * N / 5, 300)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    kalman()
