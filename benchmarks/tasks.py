"""Every task: simulation against the step loop, kernel costs, group fits.

`python benchmarks/tasks.py [TASK ...]`; group fits take a minute each and come with --groups.
"""

from side_by_side import goal, side_by_side  # before NumPy: it limits BLAS threads

# isort: split
import sys
import time
import warnings

import numpy as np

from knownminds.agents import AGENTS, simulate
from knownminds.agents.play import simulate_sessions
from knownminds.environments import make, session_stream
from knownminds.inference import ModelData, hierarchical

# Model, and settings of a design that the README recommends.
TASKS = {
    "instrumental_learning": ("rescorla_wagner_dual", {}),
    "probabilistic_reasoning": ("weighted_bayes", {"n_problems": 20}),
    "horizon": ("horizon_explorer", {}),
    "restless_bandit": ("change_point_observer", {}),
    "two_step": ("two_step_hybrid", {"n_days": 200}),
    "temporal_discounting": ("hyperbolic_discounter", {"design": "grid"}),
    "balloon_risk": ("balloon_pumper", {}),
}
N, FEW = 1000, 10


def arguments_of_kernel(model, theta, environment):
    """Return what `simulate_sessions` hands to the model's kernel, call by call."""
    kept, (kernel, design) = [], model.simulation(environment)

    def listen(*given):
        kept.append(given)
        return kernel(*given)

    model.simulation = classmethod(lambda *_: (listen, design))
    try:
        sessions = simulate_sessions(model, theta, environment, 5)
    finally:
        del model.simulation
    return kept, len(sessions.trial)


def step_loop(agent, environment, design, rng):
    """Live one session through the step interface and keep nothing."""
    observation, _ = environment.reset(options={"design": design})
    agent.reset()
    over = False
    while not over:
        choice = agent.choose(observation, rng)
        following, reward, over, _, _ = environment.step(choice)
        action, _ = environment.split(choice)
        agent.learn(
            observation, -1 if action is None else action, np.nan if reward is None else reward
        )
        observation = following


def task(name):
    """Time one task; trials are those that take place."""
    model, environment = AGENTS[TASKS[name][0]], make(name, **TASKS[name][1])
    theta = model.parameters.draw(np.random.default_rng(1), N)
    given, n_trials = arguments_of_kernel(model, theta, environment)
    kernel, _ = model.simulation(environment)
    designs = [environment.draw(session_stream(5, i)) for i in range(FEW)]
    agents = [model.from_theta(theta[i], actions=environment.n_actions) for i in range(FEW)]
    rngs = [np.random.default_rng(i) for i in range(FEW)]
    few = len(simulate_sessions(model, theta[:FEW], environment, 5).trial)
    data = ModelData.read(model, simulate(model, theta, environment, 5), environment.n_actions)
    assert data.packed
    ratios = side_by_side(
        f"{name}, {model.name}: {N} subjects, {n_trials} trials, one thread",
        {
            "fused kernel": lambda: [kernel(*each) for each in given],
            "with designs drawn (simulate_sessions)": lambda: simulate_sessions(
                model, theta, environment, 5
            ),
            "log-likelihood and exact gradient": lambda: data.log_likelihood(theta),
            f"step loop, {FEW} subjects": lambda: [
                step_loop(*each)
                for each in zip(agents, [environment] * FEW, designs, rngs, strict=True)
            ],
        },
        rounds=5,
        unit=n_trials,
        per=f"trial (last: per {n_trials / few:.0f} trials)",
    )
    goal("step loop / fused kernel", ratios[f"step loop, {FEW} subjects"] * n_trials / few, 300)


def group(name):
    """Fit 50 subjects hierarchically, compilation included."""
    model, environment = AGENTS[TASKS[name][0]], make(name, **TASKS[name][1])
    parameters = model.parameters
    rng = np.random.default_rng(3)
    z = parameters.mean + 0.5 * rng.normal(size=(50, len(parameters)))
    trials = simulate(model, parameters.constrain(z), environment, 3)
    begin = time.perf_counter()
    fit = hierarchical(model, trials, seed=1)
    seconds = time.perf_counter() - begin
    table = fit.convergence.table
    print(f"\n{name}, {model.name}: 50 subjects, {len(trials.frame)} trials, group fit")
    goal("seconds, compilation included", seconds, 120, at_most=True)
    goal("largest R-hat of group means and spreads", table["r_hat"].max(), 1.01, at_most=True)
    goal("smallest bulk ESS of them", table["ess_bulk"].min(), 400)
    print(f"  {fit.verdict}; {fit.divergences} divergences; {fit.settings}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or list(TASKS)
    for name in chosen:
        task(name)
    if "--groups" in sys.argv:
        for name in chosen:
            group(name)
