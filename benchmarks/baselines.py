"""What we measure ourselves against: the same dual-rate learner, written the usual ways."""

from math import exp, log, log1p

import numpy as np
from numba import njit

from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.sequences import LANES


def plain_log_likelihood(theta, context, action, reward):
    """Plain Python over lists, one learner."""
    alpha_positive, alpha_negative, beta, kappa = theta
    values = [[0.5, 0.5] for _ in range(4)]
    last = [None] * 4
    total = 0.0
    for c, a, r in zip(context, action, reward, strict=True):
        value = values[c]
        x = beta * (value[a] - value[1 - a])
        if last[c] is not None:
            x += kappa if last[c] == a else -kappa
        total += min(x, 0.0) - log1p(exp(-abs(x)))
        surprise = r - value[a]
        value[a] += (alpha_positive if surprise > 0 else alpha_negative) * surprise
        last[c] = a
    return total


def numpy_log_likelihood(theta, context, action, reward):
    """NumPy arrays in a trial loop, the style of most published scripts."""
    alpha_positive, alpha_negative, beta, kappa = theta
    values = np.full((4, 2), 0.5)
    last = np.zeros((4, 2))
    total = 0.0
    for c, a, r in zip(context, action, reward, strict=True):
        logits = beta * values[c] + kappa * last[c]
        logits -= logits.max()
        p = np.exp(logits) / np.sum(np.exp(logits))
        total += np.log(p[a])
        surprise = r - values[c, a]
        rate = np.where(surprise > 0, alpha_positive, alpha_negative)
        values[c, a] += rate * surprise
        last[c] = np.eye(2)[a]
    return total


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def scalar_log_likelihood(theta, context, action, reward, offsets):
    """Numba, one learner after another, log-likelihood alone."""
    out = np.zeros(len(theta))
    for i in range(len(theta)):
        alpha_positive, alpha_negative, beta, kappa = theta[i]
        value = np.full((4, 2), 0.5)
        last = np.full(4, -1)
        for t in range(offsets[i], offsets[i + 1]):
            c, a = context[t], action[t]
            x = beta * (value[c, a] - value[c, 1 - a])
            if last[c] >= 0:
                x += kappa if last[c] == a else -kappa
            out[i] += min(x, 0.0) - log1p(exp(-abs(x)))
            surprise = reward[t] - value[c, a]
            value[c, a] += (alpha_positive if surprise > 0 else alpha_negative) * surprise
            last[c] = a
    return out


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def lanes_log_likelihood(theta, row, start, action, reward):
    """Our own kernel without its gradient: the same lanes, the same exponential."""
    total = np.zeros(len(theta))
    z = np.empty(9 * LANES)
    for block in range(len(row)):
        for i in range(LANES):
            for k in range(4):
                z[k * LANES + i] = theta[row[block, i], k]
            z[4 * LANES + i] = 0.5
            z[5 * LANES + i] = 0.5
            z[6 * LANES + i] = 0.0
            z[7 * LANES + i] = 0.0
            z[8 * LANES + i] = 1.0
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                a = action[t, i]
                given = 1.0 if a >= 0.0 else 0.0
                one = a * given
                zero = given - one
                side = one - zero
                value_0, value_1 = z[4 * LANES + i], z[5 * LANES + i]
                last = z[6 * LANES + i]
                x = side * (z[2 * LANES + i] * (value_1 - value_0) + z[3 * LANES + i] * last)
                z[7 * LANES + i] += min(x, 0.0)
                z[8 * LANES + i] *= 1.0 + exp_of_negative(-abs(x)) * given
                surprise = reward[t, i] - (value_1 if a == 1.0 else value_0)
                positive, negative = z[i], z[LANES + i]
                rate = positive if surprise > 0.0 else negative
                z[4 * LANES + i] = value_0 + rate * surprise if a == 0.0 else value_0
                z[5 * LANES + i] = value_1 + rate * surprise if a == 1.0 else value_1
                z[6 * LANES + i] = last + (side - last) * given
        for i in range(LANES):
            total[row[block, i]] += z[7 * LANES + i] - log(z[8 * LANES + i])
    return total


def learner_in_jax(theta, contexts, actions, rewards):
    """Log-likelihood of one dual-rate learner in JAX: a scan over its trials."""
    import jax
    import jax.numpy as jnp

    alpha_positive, alpha_negative, beta, kappa = theta

    def step(carry, trial):
        values, last = carry
        c, a, r = trial
        x = beta * (values[c, 1] - values[c, 0]) + kappa * last[c]
        side = 2.0 * a - 1.0
        surprise = r - values[c, a]
        rate = jnp.where(surprise > 0, alpha_positive, alpha_negative)
        values = values.at[c, a].add(rate * surprise)
        last = last.at[c].set(side)
        return (values, last), jax.nn.log_sigmoid(side * x)

    start = (jnp.full((4, 2), 0.5), jnp.zeros(4))
    return jax.lax.scan(step, start, (contexts, actions, rewards))[1].sum()


def hybrid_in_jax(theta, shuttles, planets, aliens, rewards):
    """Log-likelihood of one subject of the two-step hybrid in JAX: a scan over its days."""
    import jax
    import jax.numpy as jnp

    alpha_1, alpha_2, trace, beta_1, beta_2, w, pi = theta

    def step(carry, day):
        values, cached, last = carry
        a, s, b, r = day
        best = values.max(axis=1)
        plan = 0.4 * (best[1] - best[0])
        x = beta_1 * (w * plan + (1 - w) * (cached[1] - cached[0])) + pi * last
        first = jax.nn.log_sigmoid((2.0 * a - 1.0) * x)
        y = beta_2 * (values[s, 1] - values[s, 0])
        second = jax.nn.log_sigmoid((2.0 * b - 1.0) * y)
        surprise = r - values[s, b]
        cached = cached.at[a].add(alpha_1 * (values[s, b] - cached[a] + trace * surprise))
        values = values.at[s, b].add(alpha_2 * surprise)
        return (values, cached, 2.0 * a - 1.0), first + second

    start = (jnp.full((2, 2), 0.5), jnp.full(2, 0.5), 0.0)
    return jax.lax.scan(step, start, (shuttles, planets, aliens, rewards))[1].sum()


def days_of(trials, n, days):
    """Return shuttles, planets, aliens and rewards of two-step sessions, each [n, days]."""
    frame = trials.frame
    action = frame["action"].to_numpy(dtype=int).reshape(n, days, 2)
    state = frame["state"].to_numpy(dtype=int).reshape(n, days, 2)[..., 1]
    reward = frame["reward"].to_numpy(dtype=float).reshape(n, days, 2)[..., 1]
    return action[..., 0], state, action[..., 1], reward


def numpyro_model(n_subjects, prior_mean, prior_sd, group_sd, context, action, reward):
    """The group model in NumPyro: scan over trials, vmap over subjects, the same priors.

    context, action and reward are [subjects, trials].
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def model():
        mean = numpyro.sample("group_mean", dist.Normal(prior_mean, prior_sd).to_event(1))
        sd = numpyro.sample("group_sd", dist.HalfNormal(group_sd).to_event(1))
        with numpyro.plate("subjects", n_subjects):
            eta = numpyro.sample("eta", dist.Normal(jnp.zeros(4), 1.0).to_event(1))
        z = mean + sd * eta
        theta = jnp.stack(
            [jax.nn.sigmoid(z[:, 0]), jax.nn.sigmoid(z[:, 1]), jnp.exp(z[:, 2]), z[:, 3]], axis=1
        )
        log_likelihood = jax.vmap(learner_in_jax)(theta, context, action, reward)
        numpyro.factor("log_likelihood", log_likelihood.sum())

    return model
