"""Kernel, simulation and MAP against the usual ways; `python speed/point_and_kernel.py`."""

import time

from side_by_side import goal, side_by_side  # before NumPy: it limits BLAS threads

# isort: split
import numpy as np
from baselines import numpy_log_likelihood, scalar_log_likelihood
from scipy.optimize import minimize

from knownminds.agents import RescorlaWagnerDual, play, simulate
from knownminds.agents.play import simulate_sessions
from knownminds.agents.sequences import Sequences
from knownminds.environments import InstrumentalLearning, Session, session_stream
from knownminds.inference import ModelData, maximum_a_posteriori

MODEL, ENVIRONMENT = RescorlaWagnerDual, InstrumentalLearning()
PARAMETERS = MODEL.parameters
N, T = 1000, ENVIRONMENT.n_trials


def kernel(theta, trials, data):
    """Ours against plain numba and NumPy."""
    frame = trials.frame
    context = frame["context"].to_numpy(dtype=np.int64)
    action = frame["action"].to_numpy(dtype=np.int64)
    reward = frame["reward"].to_numpy(dtype=float)
    offsets = np.arange(0, N * T + 1, T)
    one = slice(0, T)
    arrays = (context[one], action[one], reward[one])
    total = data.log_likelihood(theta)[0]
    assert np.allclose(total, scalar_log_likelihood(theta, context, action, reward, offsets))
    assert np.isclose(total[0], numpy_log_likelihood(theta[0], *arrays))

    whole = side_by_side(
        "Log-likelihood of 1,000 dual-rate learners x 96 trials, one thread",
        {
            "log-likelihood and exact gradient": lambda: data.log_likelihood(theta),
            "plain numba, log-likelihood alone": lambda: scalar_log_likelihood(
                theta, context, action, reward, offsets
            ),
            "NumPy trial loop, 1 learner x 1,000": lambda: [
                numpy_log_likelihood(theta[0], *arrays) for _ in range(10)
            ],
        },
        unit=N * T,
        per="trial (the last: per 100 trials)",
    )
    loop = whole["NumPy trial loop, 1 learner x 1,000"] * N / 10
    goal("NumPy trial loop / ours", loop, 300)


def packed_sessions():
    """Return designs, and what the simulation kernel takes after theta, lapses and actions."""
    rngs = [session_stream(5, i) for i in range(N)]
    designs = [ENVIRONMENT.draw(rng) for rng in rngs]
    uniforms = np.concatenate([rng.random(T) for rng in rngs])
    context = np.concatenate([d.table["context"] for d in designs])
    payoffs = np.concatenate([d.table["payoffs"] for d in designs])
    sequences = Sequences.group(np.repeat(np.arange(N), T), [context], N)
    packed = sequences.pack(uniforms), sequences.pack(payoffs)
    return designs, (sequences.row, sequences.start, *packed)


def simulation(theta):
    """The compiled kernel and the whole function against the step loop."""
    designs, packed = packed_sessions()
    kernel, _ = MODEL.simulation(ENVIRONMENT)
    ratios = side_by_side(
        "Simulation of dual-rate learners in instrumental_learning, one thread",
        {
            "fused kernel": lambda: kernel(theta, None, 2, *packed),
            WHOLE: lambda: simulate_sessions(MODEL, theta, ENVIRONMENT, 5),
            "with the checked record (simulate)": lambda: simulate(MODEL, theta, ENVIRONMENT, 5),
            "step loop: choose, step, learn; 10 learners x 100": lambda: [
                step_loop(MODEL.from_theta(theta[i]), designs[i], i) for i in range(10)
            ],
            "step loop with the checked record (play); 10 x 100": lambda: [
                play(MODEL.from_theta(theta[i]), ENVIRONMENT, 5, i) for i in range(10)
            ],
        },
        unit=N * T,
        per="trial (last two: per 100 trials)",
    )
    loop = ratios["step loop: choose, step, learn; 10 learners x 100"] * 100
    goal("step loop / fused kernel", loop, 300)
    print(f"  -> step loop / simulate_sessions: {loop / ratios[WHOLE]:.0f}")


WHOLE = "with the designs drawn (simulate_sessions)"


def step_loop(agent, design, i):
    """Live one session trial by trial."""
    rng = session_stream(5, i)
    session = Session(ENVIRONMENT, design)
    for seen in session:
        turn = session.take(agent.choose(seen, rng))
        agent.learn(seen, turn.action, turn.reward)


def objective(data):
    """Negative log posterior of one learner for SciPy, with its gradient."""

    def exact(z):
        theta = PARAMETERS.constrain(z[None])
        total, gradient = data.log_likelihood(theta)
        prior, slope = PARAMETERS.log_prior(z[None])
        return -(total + prior)[0], -(gradient * PARAMETERS.slope(theta) + slope)[0]

    return exact


def starts(rng):
    return [PARAMETERS.mean, *rng.normal(PARAMETERS.mean, PARAMETERS.sd, (4, 4))]


def map_fits(data):
    """1,000 learners x 96 trials x 5 starts, against SciPy one learner at a time."""
    rng = np.random.default_rng(0)
    few = 40
    alone = [data.repeat([i]) for i in range(few)]
    for one in alone:
        assert one.laid_out()  # the layout is made once, outside the timing
    points = [starts(rng) for _ in range(few)]

    def scipy_exact():
        return [
            min(
                minimize(objective(alone[i]), p, jac=True, method="L-BFGS-B").fun for p in points[i]
            )
            for i in range(few)
        ]

    ratios = side_by_side(
        f"MAP of {N} dual-rate learners x 96 trials x 5 starts, two cores",
        {
            "maximum_a_posteriori, 1,000 learners": lambda: maximum_a_posteriori(MODEL, data),
            "the same on one thread": lambda: maximum_a_posteriori(MODEL, data, workers=1),
            f"SciPy L-BFGS-B over our kernel and gradient, {few}": scipy_exact,
        },
        rounds=5,
        clock=time.perf_counter,
    )
    exact = ratios[f"SciPy L-BFGS-B over our kernel and gradient, {few}"] * N / few
    goal("SciPy over our kernel / ours, per learner", exact, 10)


if __name__ == "__main__":
    theta = PARAMETERS.draw(np.random.default_rng(1), N)
    trials = simulate(MODEL, theta, ENVIRONMENT, 5)
    data = ModelData.read(MODEL, trials)
    assert data.laid_out()
    kernel(theta, trials, data)
    simulation(theta)
    map_fits(data)
