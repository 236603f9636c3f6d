"""Four group models, each written for JAX (NumPyro) and for Stan beside ours."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from baselines import days_of, hybrid_in_jax, learner_in_jax
from collider import tasks

from knownminds.agents import (
    HyperbolicDiscounter,
    NoisyOr,
    RescorlaWagnerDual,
    TwoStepHybrid,
    simulate,
)
from knownminds.environments import Collider, InstrumentalLearning, TemporalDiscounting, TwoStep
from knownminds.environments.causes.causal_graph import direction_of, task_of

N, DAYS, TASKS = 50, 200, 11


def _columns(trials, *names):
    """Return columns as whole numbers or floats, each [subjects, trials]."""
    frame = trials.frame
    kinds = {"context": int, "action": int}
    return tuple(frame[n].to_numpy(dtype=kinds.get(n, float)).reshape(N, -1) for n in names)


def _choices(trials):
    return _columns(trials, "action", "sooner_amount", "sooner_delay", "later_amount",
                    "later_delay")  # fmt: skip


def _cells(trials):
    """Answers to each question: count, mean and squares of those inside, how many at 0 and 100."""
    question = [c.astype(int) for c in _columns(trials, "query", "first", "second", "third")]
    cell = task_of(*question) + TASKS * direction_of(*question) + 2 * TASKS * np.arange(N)[:, None]
    y = _columns(trials, "response")[0] / 100

    def added(values):
        return np.bincount(cell.ravel(), values.ravel(), 2 * TASKS * N).reshape(N, 2 * TASKS)

    inside = ((y > 0) & (y < 1)).astype(float)
    count = added(inside)
    mean = added(inside * y) / np.maximum(count, 1)
    spread = added(inside * (y - mean.ravel()[cell]) ** 2)
    return count, mean, spread, added(y <= 0), added(y >= 1)


def discounter_in_jax(theta, action, sooner, soon, later, late):
    """Log-likelihood of one hyperbolic discounter in JAX."""
    import jax
    import jax.numpy as jnp

    k, tau, eta = theta
    near, far = 1 / (1 + k * soon), 1 / (1 + k * late)
    least, most = jnp.abs(sooner), jnp.abs(later)
    gain = (most * far - least * near) / jnp.maximum(least, most)
    x = jnp.where(later < 0, -eta, 1.0) * gain / tau
    return jax.nn.log_sigmoid((2.0 * action - 1.0) * x).sum()


def noisy_or_in_jax(theta, count, mean, spread, at_0, at_100):
    """Log-likelihood of one causal reasoner in JAX, from the sums of its answers."""
    import jax.numpy as jnp
    from jax.scipy.stats import norm

    p, b, m1, m2, sigma = theta
    told = jnp.stack(tasks(p, b, m1, m2) + tasks(p, b, m2, m1))
    total = -0.5 * (count * (mean - told) ** 2 + spread).sum() / sigma**2
    total -= count.sum() * jnp.log(100.0 * sigma * jnp.sqrt(2 * jnp.pi))
    total += jnp.where(at_0 > 0, at_0 * norm.logcdf(-told / sigma), 0.0).sum()
    return total + jnp.where(at_100 > 0, at_100 * norm.logcdf((told - 1) / sigma), 0.0).sum()


# Of each case: what Stan is given of a subject's trials, and a subject's log-likelihood there.
# Column x of subject i on trial t is x1[t, i], x2[t, i], ... for whole numbers y1[t, i], ...
LEARNER = """
    matrix[4, 2] v = rep_matrix(0.5, 4, 2);
    vector[4] last = rep_vector(0, 4);
    for (t in 1:T) {
      int c = y1[t, i] + 1; int a = y2[t, i];
      real side = 2 * a - 1;
      real x = theta[3] * (v[c, 2] - v[c, 1]) + theta[4] * last[c];
      total += log_inv_logit(side * x);
      real surprise = x1[t, i] - v[c, a + 1];
      v[c, a + 1] += (surprise > 0 ? theta[1] : theta[2]) * surprise;
      last[c] = side;
    }"""
HYBRID = """
    matrix[2, 2] v = rep_matrix(0.5, 2, 2);
    vector[2] cached = rep_vector(0.5, 2);
    real last = 0;
    for (t in 1:T) {
      int a = y1[t, i] + 1; int s = y2[t, i] + 1; int b = y3[t, i] + 1;
      real plan = 0.4 * (max(v[2]) - max(v[1]));
      real x = theta[4] * (theta[6] * plan + (1 - theta[6]) * (cached[2] - cached[1]))
        + theta[7] * last;
      real y = theta[5] * (v[s, 2] - v[s, 1]);
      total += log_inv_logit((2 * a - 3) * x) + log_inv_logit((2 * b - 3) * y);
      real surprise = x1[t, i] - v[s, b];
      cached[a] += theta[1] * (v[s, b] - cached[a] + theta[3] * surprise);
      v[s, b] += theta[2] * surprise;
      last = 2 * a - 3;
    }"""
CHOICES = """
    vector[T] soon = abs(x1[, i]) ./ (1 + theta[1] * x2[, i]);
    vector[T] late = abs(x3[, i]) ./ (1 + theta[1] * x4[, i]);
    for (t in 1:T) {
      real gain = (late[t] - soon[t]) / fmax(abs(x1[t, i]), abs(x3[t, i]));
      total += log_inv_logit((2 * y1[t, i] - 1) * (x3[t, i] < 0 ? -theta[3] : 1) * gain / theta[2]);
    }"""
REASONER = """
    vector[22] told;
    for (d in 0:1) {
      real p = theta[1]; real b = theta[2]; real m1 = theta[3 + d]; real m2 = theta[4 - d];
      real one = 1 - (1 - b) * (1 - m1); real other = 1 - (1 - b) * (1 - m2);
      real both = 1 - (1 - b) * (1 - m1) * (1 - m2);
      real yes = p * both + (1 - p) * one; real no = p * other + (1 - p) * b;
      told[(1 + 11 * d):(11 + 11 * d)] = [b, other, both, p, p,
        p * both / (p * both + (1 - p) * other), p * yes / (p * yes + (1 - p) * no),
        p * one / (p * one + (1 - p) * b),
        p * (1 - both) / (p * (1 - both) + (1 - p) * (1 - other)),
        p * (1 - yes) / (p * (1 - yes) + (1 - p) * (1 - no)),
        p * (1 - one) / (p * (1 - one) + (1 - p) * (1 - b))]';
    }
    real sigma = theta[5];
    for (t in 1:T) {
      total += -0.5 * (x1[t, i] * square(x2[t, i] - told[t]) + x3[t, i]) / square(sigma)
        - x1[t, i] * log(sigma);
      if (x4[t, i] > 0) total += x4[t, i] * std_normal_lcdf(-told[t] / sigma);
      if (x5[t, i] > 0) total += x5[t, i] * std_normal_lcdf((told[t] - 1) / sigma);
    }"""


@dataclass(frozen=True)
class Case:
    """A group of 50 whose spreads are moderate.

    Parameters
    ----------
    model, place : whose, and where
    spread : of the subjects around the priors' means, by parameter
    read : arrays of a likelihood from trials, each [subjects, trials]
    in_jax, in_stan : log-likelihood of one subject
    centred : whether others sample subjects as they are, or as deviations: what suits them here
    """

    model: Any
    place: Any
    spread: tuple[float, ...]
    read: Any
    in_jax: Any
    in_stan: str
    centred: bool = False

    def trials(self, seed=3):
        """Let a group play."""
        parameters = self.model.parameters
        z = np.random.default_rng(seed).normal(size=(N, len(parameters)))
        theta = parameters.constrain(parameters.mean + np.array(self.spread) * z)
        return simulate(self.model, theta, self.place, seed)


CASES = {
    "learner": Case(
        RescorlaWagnerDual, InstrumentalLearning(), (0.7, 0.7, 0.4, 0.3),
        lambda t: _columns(t, "context", "action", "reward"), learner_in_jax, LEARNER,
    ),
    "two-step": Case(
        TwoStepHybrid, TwoStep(DAYS), (0.6, 0.6, 0.6, 0.4, 0.4, 0.7, 0.3),
        lambda t: days_of(t, N, DAYS), hybrid_in_jax, HYBRID,
    ),
    "noisy-OR": Case(
        NoisyOr, Collider(), (0.6, 0.6, 0.6, 0.6, 0.4), _cells, noisy_or_in_jax, REASONER,
        centred=True,
    ),
    "discounter": Case(
        HyperbolicDiscounter, TemporalDiscounting(design="grid"), (0.8, 0.4, 0.4), _choices,
        discounter_in_jax, CHOICES, centred=True,
    ),
}  # fmt: skip


def stan_code(case, arrays):
    """Return the group model in Stan, and its data."""
    data, given = ["int N; int T;"], {"N": N, "T": arrays[0].shape[1]}
    for kind, letter in ((True, "y"), (False, "x")):
        for k, column in enumerate(c for c in arrays if (c.dtype.kind == "i") == kind):
            name = f"{letter}{k + 1}"
            data.append(f"array[T, N] int {name};" if kind else f"matrix[T, N] {name};")
            given[name] = column.T.tolist()
    parameters = case.model.parameters
    maps = {"identity": "{}", "log": "exp({})", "logit": "inv_logit({})"}
    theta, prior = [], []
    for j, p in enumerate(parameters, start=1):
        theta.append(maps[p.support.kind].format(f"z[{j}, i]"))
        prior.append(f"mu[{j}] ~ normal({p.mean}, {p.sd}); sd[{j}] ~ normal(0, {p.group_sd});")
    k = len(parameters)
    if case.centred:
        z, law = "e", "for (i in 1:N) e[, i] ~ normal(mu, sd);"
    else:
        z, law = "rep_matrix(mu, N) + diag_pre_multiply(sd, e)", "to_vector(e) ~ std_normal();"
    return (
        f"data {{ {' '.join(data)} }}\n"
        f"parameters {{ vector[{k}] mu; vector<lower=0>[{k}] sd; matrix[{k}, N] e; }}\n"
        f"model {{\n  {' '.join(prior)}\n  {law}\n  matrix[{k}, N] z = {z};\n"
        f"  for (i in 1:N) {{\n    vector[{k}] theta = [{', '.join(theta)}]';\n"
        f"    real total = 0;{case.in_stan}\n    target += total;\n  }}\n}}\n"
    ), given
