"""Observers of magnitudes: all variants fitted at once, and the Kalman kernel.

`python benchmarks/magnitude.py`. SciPy minimises the same
log-likelihood, compiled for one participant, with numeric gradients, within the same bounds, from
the prior mean, and the Kalman observers from two more starts, as ours are. The time of all
participants is that of the few which it fits, times their number.
"""

from side_by_side import goal, side_by_side  # before NumPy: it limits BLAS threads

# isort: split
import time
import warnings
from math import erfc, exp, log, pi, sqrt

import numpy as np
from numba import njit
from scipy.optimize import minimize
from tasks import arguments_of_kernel, step_loop

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import make, session_stream
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.magnitudes.observer_fits import OBSERVERS, fit_observers

N, FEW = 1000, 20
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)


def participants(n):
    """Simulate n participants, as many of each of the 14 observers, as it comes out."""
    environment, parts = make("marker_location"), []
    for k, name in enumerate(OBSERVERS):
        count = n // len(OBSERVERS) + (k < n % len(OBSERVERS))
        model = AGENTS[name]
        theta = model.parameters.draw(np.random.default_rng(k), count)
        lived = simulate_sessions(model, theta, environment, 5, address=(k,))
        frame = lived.to_trials([f"{name} {i}" for i in range(count)])
        parts.append(frame)
    return type(parts[0]).concatenate(parts)


@njit(error_model="numpy")
def lost(theta, kind, means, log_scale, fresh, window, x, y, unit, ceiling):
    """Minus the log-likelihood of one participant, trial by trial, compiled: no lanes, no gradient.

    x and y as fractions of the unit; kind 0 linear, 1 static, 2 Kalman. The strongest form that
    one would write for an optimiser that takes one participant at a time.
    """
    last = len(theta) - 1
    sigma, first = theta[last], 2 if kind == 2 else 1
    more = last - first - means
    gain = theta[first + means] if kind > 0 and more > 0 else 1.0
    offset = theta[first + means + 1] if kind > 0 and more > 1 else 0.0
    total, m, p = 0.0, 0.0, 0.0
    for t in range(len(x)):
        a, b = x[t], y[t] / unit
        ends = y[t] <= 0.0 or y[t] >= ceiling
        slope = -log(unit)
        if log_scale:
            a, b = log(a + 1e-3), log(b + 1e-3)
            slope -= b
        mu = theta[first + window[t]] if kind > 0 else 0.0
        if kind == 0:
            mean = theta[0] * a + theta[1]
        elif kind == 1:
            mean = (1.0 - theta[0]) * a + theta[0] * mu
        else:
            if fresh[t]:
                m, p = mu, theta[1]
            p = (p + theta[0]) / (p + theta[0] + 1.0)
            m += p * (a - m)
            mean = m
        off = (b - gain * mean - offset) / sigma
        if ends:
            z = off if y[t] <= 0.0 else -off
            total += log(max(0.5 * erfc(-z / sqrt(2.0)), 1e-300))
        else:
            total += slope - 0.5 * off * off - log(sigma) - HALF_LOG_2_PI
    return -total


def by_scipy(data, rows, several):
    """Fit each of these participants by L-BFGS-B; return the log-likelihoods."""
    model, parameters = data.model, data.model.parameters
    reach = REACH * parameters.sd
    bounds = list(zip(parameters.mean - reach, parameters.mean + reach, strict=True))
    kind = ["linear", "static", "kalman"].index(model.name.split("_")[0])
    kinds = [p.support.kind for p in parameters]

    def natural(z):
        return [
            v if k == "identity" else exp(v) if k == "log" else 1 / (1 + exp(-v))
            for v, k in zip(z.tolist(), kinds, strict=True)
        ]

    best = []
    for i in rows:
        index = np.flatnonzero(np.repeat(np.arange(len(data)), data.n_trials) == i)
        y, window, value, unit, ceiling = (column[index] for column in data.flat)
        fresh = np.diff(window, prepend=-1.0) != 0.0
        given = (kind, 3, model.log_scale, fresh, window.astype(np.int64), value / unit, y)
        given = (*given, unit[0], ceiling[0])

        def negative(z, given=given):
            return lost(np.array(natural(z)), *given)

        ends = []
        for shift in (0.0, -2.0, 2.0) if several and kind == 2 else (0.0,):
            first = parameters.mean.copy()
            first[0] += shift
            ends.append(minimize(negative, first, method="L-BFGS-B", bounds=bounds).fun)
        best.append(-min(ends))
    return np.array(best)


def all_variants():
    """Fit 14 variants to 1,000 participants; times are of the processor, on one thread."""
    trials = participants(N)
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(N, FEW, replace=False))
    data = {name: ModelData.read(AGENTS[name], trials) for name in OBSERVERS}
    fit_observers(trials, workers=1)
    by_scipy(data["kalman_observer"], rows[:1], several=False)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        fits = fit_observers(trials, workers=1)
        seconds.append(time.process_time() - begin)
    ours = min(seconds)
    theirs, single, worse, better = 0.0, 0.0, 0, 0
    print(f"\n14 variants, {N} participants x 99 trials, one thread")
    for name in OBSERVERS:
        begin = time.process_time()
        best = by_scipy(data[name], rows, several=True)
        spent = time.process_time() - begin
        theirs += spent / FEW * N
        single += spent / FEW * N / (3.0 if "kalman" in name else 1.0)
        off = fits[name].log_likelihood[rows] - best
        worse, better = worse + int((off < -0.01).sum()), better + int((off > 0.01).sum())
        print(f"  {name:<34}SciPy {1e3 * spent / FEW:7.1f} ms per participant")
    print(f"  all at once (fit_observers)       {ours:8.2f} s")
    print(f"  SciPy L-BFGS-B, numeric gradients {theirs:8.2f} s ({FEW} participants, scaled)")
    print(
        f"  log-likelihoods: ours is higher by .01 in {better}, lower in {worse} of "
        f"{FEW * len(OBSERVERS)} fits"
    )
    print(f"  SciPy from one start each: about {single:.0f} s, {single / ours:.0f} x")
    goal("SciPy / all at once, from three starts where ours has three", theirs / ours, 50)


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
    all_variants()
    kalman()
