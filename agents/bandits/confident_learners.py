"""Learners that say of each choice how sure they are, and a guesser who only seems to."""

from __future__ import annotations

from math import erfc, exp, log, log1p, pi, sqrt

import numpy as np
from numba import njit
from scipy.special import ndtri

from knownminds.agents.agent import Agent
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Environment, Observation

LANES = 32  # as in sequences.py

# What the observer knows of the machines: the rewards of restless_bandit.
HIGH, LOW, SPREAD = 60.0, 40.0, 8.0
MIDDLE = (HIGH + LOW) / 2
GAIN = (HIGH - LOW) / SPREAD**2  # log-odds per point above the middle
# The Rescorla-Wagner learner takes 20 points for a value of 0 and 80 for 1.
LEAST, WIDTH = 20.0, 60.0

# Confidences closer than this to 0 or 1 are taken as equally likely among each other: nobody
# tells them apart, and a stated 1 has a finite log-odds only in theory.
EDGE = 0.005
LIMIT = log((1.0 - EDGE) / EDGE)
LOG_EDGE = log(EDGE)
HALF_LOG_TWO_PI = 0.5 * log(2.0 * pi)
SQRT_HALF = sqrt(0.5)


@njit(inline="always", error_model="numpy")
def log_upper_tail(z):  # type: ignore[no-untyped-def]
    """Logarithm of the probability that a standard normal number exceeds z."""
    if z < 25.0:
        return log(0.5 * erfc(z * SQRT_HALF))
    r = 1.0 / (z * z)  # Abramowitz and Stegun 1964, 26.2.12
    series = log1p(-r * (1.0 - 3.0 * r * (1.0 - 5.0 * r)))
    return -0.5 * z * z - log(z) - HALF_LOG_TWO_PI + series


@njit(inline="always", error_model="numpy")
def log_density_of(confidence, mean, spread, log_spread):  # type: ignore[no-untyped-def]
    """Log density of a confidence, and its derivatives for mean and spread.

    Its log-odds are Normal(mean, spread); within EDGE of 0 and 1 the density is flat.
    """
    if confidence >= 1.0 - EDGE or confidence <= EDGE:
        side = 1.0 if confidence > 0.5 else -1.0
        z = (LIMIT - side * mean) / spread
        tail = log_upper_tail(z)
        hazard = exp(-0.5 * z * z - HALF_LOG_TWO_PI - tail)
        return tail - LOG_EDGE, side * hazard / spread, hazard * z / spread
    yes, no = log(confidence), log(1.0 - confidence)
    z = (yes - no - mean) / spread
    own = -0.5 * z * z - log_spread - HALF_LOG_TWO_PI - yes - no
    return own, z / spread, (z * z - 1.0) / spread


@njit(inline="always", error_model="numpy")
def stated(mean, spread, uniform, normal):  # type: ignore[no-untyped-def]
    """Return the confidence at a quantile, given as a uniform and as a normal number."""
    latent = mean + spread * normal
    if latent >= LIMIT:
        tail = 0.5 * erfc((LIMIT - mean) / spread * SQRT_HALF)
        return 1.0 - EDGE * min((1.0 - uniform) / tail, 1.0)
    if latent <= -LIMIT:
        tail = 0.5 * erfc((LIMIT + mean) / spread * SQRT_HALF)
        return EDGE * min(uniform / tail, 1.0)
    return 1.0 / (1.0 + exp(-latent))


@njit(inline="always", error_model="numpy")
def with_lapses(own, lapse):  # type: ignore[no-untyped-def]
    """Mix a log density with lapses: the logarithm, the weight of `own`, and d / d lapse."""
    uniform = log(0.5 * lapse)
    deliberate = own + log(1.0 - lapse)
    top = max(uniform, deliberate)
    total = top + log(exp(uniform - top) + exp(deliberate - top))
    return total, exp(deliberate - total), 0.5 * exp(-total) - exp(own - total)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood_change_point(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, response, reward
):
    """Log-likelihood and gradient; the belief and its derivative for the hazard run along."""
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 5 if lapse is None else 6))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            hazard, beta, c_0, c_1, spread = theta[q]
            # Log-odds that machine 1 is the better one, their derivative for the hazard, and the
            # probabilities that the machine that seems the better one is it, and is not.
            belief, slope, more, less = 0.0, 0.0, 0.5, 0.5
            log_spread = log(spread)
            for t in range(start[block], start[block + 1]):
                a = action[t, i]
                if a < 0.0:
                    continue
                side = 2.0 * a - 1.0
                lead = more - less if belief > 0.0 else less - more
                x = side * beta * lead
                e = exp(-abs(x))
                missed = (e if x > 0.0 else 1.0) / (1.0 + e)
                value, by_mean, by_spread = log_density_of(
                    response[t, i], c_0 + c_1 * side * belief, spread, log_spread
                )
                value += min(x, 0.0) - log1p(e)
                weight = 1.0
                if lapse is not None:
                    value, weight, by_lapse = with_lapses(value, lapse[q])
                    gradient[q, 5] += by_lapse
                total[q] += value
                push = weight * side * missed
                by_mean *= weight
                by_belief = push * beta * 2.0 * less * more + by_mean * c_1 * side
                gradient[q, 0] += by_belief * slope
                gradient[q, 1] += push * lead
                gradient[q, 2] += by_mean
                gradient[q, 3] += by_mean * side * belief
                gradient[q, 4] += weight * by_spread

                belief += side * GAIN * (reward[t, i] - MIDDLE)
                e = exp(-abs(belief))
                less, more = e / (1.0 + e), 1.0 / (1.0 + e)
                # Of the machine that seems the better one, before and after they may have swapped.
                kept = more * (1.0 - hazard) + less * hazard
                lost = less * (1.0 - hazard) + more * hazard
                sign = 1.0 if belief > 0.0 else -1.0
                change = (1.0 - 2.0 * hazard) * less * more * slope - sign * (more - less)
                slope = change / (kept * lost)
                belief = sign * log(kept / lost)
                more, less = max(kept, lost), min(kept, lost)
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _simulate_change_point(theta, lapse, row, start, uniforms, normals, points):  # type: ignore[no-untyped-def]
    action = np.empty((start[-1], LANES))
    response = np.empty((start[-1], LANES))
    own, lapsed, belief = np.empty((5, LANES)), np.zeros(LANES), np.empty(LANES)
    latent, odds = np.empty(LANES), np.empty(LANES)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            for k in range(5):
                own[k, i] = theta[q, k]
            if lapse is not None:
                lapsed[i] = lapse[q]
            belief[i] = 0.0
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                hazard, before, u = own[0, i], belief[i], uniforms[t, 0, i]
                e = exp_of_negative(-abs(before))
                lead = (1.0 - e) / (1.0 + e)
                x = own[1, i] * (lead if before > 0.0 else -lead)
                e = exp_of_negative(-abs(x))
                p_0 = (e if x > 0.0 else 1.0) / (1.0 + e)
                split = lapsed[i] + (1.0 - lapsed[i]) * p_0 if u >= lapsed[i] else 0.5 * lapsed[i]
                one = 0.0 if u < split else 1.0
                side = 2.0 * one - 1.0
                action[t, i] = one
                latent[i] = own[2, i] + own[3, i] * side * before + own[4, i] * normals[t, i]
                e = exp_of_negative(-abs(latent[i]))
                response[t, i] = (1.0 if latent[i] > 0.0 else e) / (1.0 + e)

                paid = one * points[t, 1, i] + (1.0 - one) * points[t, 0, i]
                after = before + side * GAIN * (paid - MIDDLE)
                e = exp_of_negative(-abs(after))
                kept = 1.0 - hazard + e * hazard
                lost = e * (1.0 - hazard) + hazard
                odds[i] = kept / lost if after > 0.0 else lost / kept
            for i in range(LANES):
                belief[i] = log(odds[i])
                if uniforms[t, 0, i] < lapsed[i]:
                    response[t, i] = uniforms[t, 1, i]
                elif abs(latent[i]) >= LIMIT:
                    mean = latent[i] - own[4, i] * normals[t, i]
                    response[t, i] = stated(mean, own[4, i], uniforms[t, 1, i], normals[t, i])
    return action, response


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood_rescorla_wagner(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, response, reward
):
    """Log-likelihood and gradient; values and their derivatives for the rate run along."""
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 6 if lapse is None else 7))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            alpha, beta, kappa, c_0, c_1, spread = theta[q]
            value_0, value_1, slope_0, slope_1, last = 0.5, 0.5, 0.0, 0.0, 0.0
            log_spread = log(spread)
            for t in range(start[block], start[block + 1]):
                a = action[t, i]
                if a < 0.0:
                    continue
                side = 2.0 * a - 1.0
                lead, slope = value_1 - value_0, slope_1 - slope_0
                x = side * (beta * lead + kappa * last)
                e = exp(-abs(x))
                missed = (e if x > 0.0 else 1.0) / (1.0 + e)
                value, by_mean, by_spread = log_density_of(
                    response[t, i], c_0 + c_1 * side * beta * lead, spread, log_spread
                )
                value += min(x, 0.0) - log1p(e)
                weight = 1.0
                if lapse is not None:
                    value, weight, by_lapse = with_lapses(value, lapse[q])
                    gradient[q, 6] += by_lapse
                total[q] += value
                push = weight * side * missed
                by_mean *= weight
                by_value = push + by_mean * c_1 * side
                gradient[q, 0] += by_value * beta * slope
                gradient[q, 1] += by_value * lead
                gradient[q, 2] += push * last
                gradient[q, 3] += by_mean
                gradient[q, 4] += by_mean * side * beta * lead
                gradient[q, 5] += weight * by_spread

                paid = (reward[t, i] - LEAST) / WIDTH
                if a == 1.0:
                    slope_1 += paid - value_1 - alpha * slope_1
                    value_1 += alpha * (paid - value_1)
                else:
                    slope_0 += paid - value_0 - alpha * slope_0
                    value_0 += alpha * (paid - value_0)
                last = side
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _simulate_rescorla_wagner(theta, lapse, row, start, uniforms, normals, points):  # type: ignore[no-untyped-def]
    action = np.empty((start[-1], LANES))
    response = np.empty((start[-1], LANES))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            alpha, beta, kappa, c_0, c_1, spread = theta[q]
            lapsed = 0.0 if lapse is None else lapse[q]
            value_0, value_1, last = 0.5, 0.5, 0.0
            for t in range(start[block], start[block + 1]):
                u = uniforms[t, 0, i]
                if u < lapsed:
                    one = 0.0 if u < 0.5 * lapsed else 1.0
                    response[t, i] = uniforms[t, 1, i]
                else:
                    lead = beta * (value_1 - value_0)
                    p_0 = 1.0 / (1.0 + exp(lead + kappa * last))
                    one = 0.0 if u - lapsed < (1.0 - lapsed) * p_0 else 1.0
                    mean = c_0 + c_1 * (2.0 * one - 1.0) * lead
                    response[t, i] = stated(mean, spread, uniforms[t, 1, i], normals[t, i])
                action[t, i] = one
                last = 2.0 * one - 1.0
                if one == 1.0:
                    value_1 += alpha * ((points[t, 1, i] - LEAST) / WIDTH - value_1)
                else:
                    value_0 += alpha * ((points[t, 0, i] - LEAST) / WIDTH - value_0)
    return action, response


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_guesser(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, response
):
    """Count the choices; each has probability 1 / n_actions, and each confidence density 1."""
    total = np.zeros(len(theta))
    for block in range(len(row)):
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                if action[t, i] >= 0.0:
                    total[row[block, i]] -= log(n_actions)
    return total, np.zeros((len(theta), 0 if lapse is None else 1))


def simulate_change_point(theta, lapse, n_actions, row, start, uniforms, points):  # type: ignore[no-untyped-def]
    """Play the sequences; points[t, a, i] is what machine a would pay in place (t, i)."""
    normals = _normals(uniforms)
    return _simulate_change_point(theta, lapse, row, start, uniforms, normals, points)


def simulate_rescorla_wagner(theta, lapse, n_actions, row, start, uniforms, points):  # type: ignore[no-untyped-def]
    """Play the sequences; points[t, a, i] is what machine a would pay in place (t, i)."""
    normals = _normals(uniforms)
    return _simulate_rescorla_wagner(theta, lapse, row, start, uniforms, normals, points)


def simulate_guesser(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
    """Turn the first uniform of each place into an action, the second into a confidence."""
    action = np.minimum(np.floor(uniforms[:, 0] * n_actions), n_actions - 1.0)
    return action, uniforms[:, 1].copy()


def _normals(uniforms: Array) -> Array:
    """Return the normal numbers of the confidences, as finite ones."""
    normals: Array = ndtri(np.maximum(uniforms[:, 1], 2.0**-54))
    return normals


def _read_out(evidence: str) -> tuple[Parameter, ...]:
    """Parameters of the confidence, which several learners share."""
    return (
        Parameter(
            "c_0",
            IDENTITY,
            mean=0.0,
            sd=0.7,
            description="metacognitive bias: log-odds of the confidence where nothing is known",
        ),
        Parameter(
            "c_1",
            IDENTITY,
            mean=0.5,
            sd=0.3,
            description=f"metacognitive sensitivity: log-odds per unit of {evidence}",
        ),
        Parameter(
            "s",
            POSITIVE,
            mean=-0.7,
            sd=0.5,
            description="metacognitive noise: spread of the log-odds of the confidence",
        ),
    )


class ConfidentLearner(Agent):
    """A learner whose confidence is a noisy read-out of how far its choice is ahead.

    The log-odds of the confidence are Normal(c_0 + c_1 e, s), where e is the evidence that the
    chosen machine is the better one. Confidences within 0.005 of 0 and 1 are equally likely among
    each other.
    """

    columns = ("action", "response", "reward")
    design = ("points",)
    separate = ()
    given = "both"
    n_actions = 2
    n_uniforms = 2

    def _choice(self) -> float:
        """Return the log-odds of choosing machine 1."""
        raise NotImplementedError

    def _evidence(self) -> float:
        """Return the log-odds, as the learner takes them, that machine 1 is the better one."""
        raise NotImplementedError

    def action_probabilities(self, observation: Observation) -> Array:
        """Logistic of the log-odds of choosing machine 1."""
        x = self._choice()
        e = exp(-abs(x))
        p_0 = (e if x > 0 else 1.0) / (1.0 + e)
        return np.array([p_0, 1.0 - p_0])

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a confidence in the action."""
        assert action is not None
        mean, spread = self._stated(action)
        value: float = log_density_of(float(response), mean, spread, log(spread))[0]
        return value

    def choose(self, observation: Observation, rng: np.random.Generator) -> tuple[int, float]:
        """Draw an action and a confidence with a number each."""
        u, second = rng.random(), rng.random()
        if u < self.lapse:
            return int(u >= 0.5 * self.lapse), second
        p_0 = float(self.action_probabilities(observation)[0])
        action = int(u - self.lapse >= (1.0 - self.lapse) * p_0)
        mean, spread = self._stated(action)
        normal = float(ndtri(max(second, 2.0**-54)))
        return action, float(stated(mean, spread, second, normal))

    def _stated(self, action: int) -> tuple[float, float]:
        """Return mean and spread of the log-odds of the confidence in an action."""
        c_0, c_1, spread = self.theta[-3:].tolist()
        return c_0 + c_1 * (1.0 if action == 1 else -1.0) * self._evidence(), spread


class ChangePointObserver(ConfidentLearner):
    """Keeps, by Bayes' rule, a belief in which machine is the better one, as they may swap.

    With b the probability that machine 1 is the better one, 1/2 at first, each reward r of a
    machine adds (60 - 40) / 8**2 (r - 50) to the log-odds that this machine is the better one:
    the observer knows what the better and the other machine pay, Normal(60, 8) and Normal(40, 8).
    Then b becomes b (1 - h) + (1 - b) h. Choices are softmax(beta b): P(machine 1) =
    logistic(beta (2 b - 1)). The confidence has log-odds Normal(c_0 + c_1 logit P(chosen machine
    is the better one), s).
    """

    name = "change_point_observer"
    summary = "Bayesian belief in which machine is the better one; says how sure it is"
    source = "Behrens, Woolrich, Walton and Rushworth 2007, with two states; Fleming and Lau 2014"
    parameters = Parameters(
        Parameter(
            "h",
            UNIT,
            mean=-3.0,
            sd=1.0,
            description="hazard: probability, as believed, that the machines swap after a trial",
        ),
        Parameter(
            "beta",
            POSITIVE,
            mean=1.2,
            sd=0.6,
            description="inverse temperature: how strictly choices follow the belief",
        ),
        *_read_out("log-odds that the chosen machine is the better one"),
    )
    log_likelihood = staticmethod(log_likelihood_change_point)
    simulate = staticmethod(simulate_change_point)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also where the machines pay otherwise than the observer knows."""
        super().check_plays(environment)
        settings = environment.settings
        pays = tuple(settings.get(name) for name in ("high", "low", "sd"))
        if pays != (HIGH, LOW, SPREAD):
            raise ValueError(
                f"{cls.name} knows machines that pay Normal({HIGH:g}, {SPREAD:g}) and "
                f"Normal({LOW:g}, {SPREAD:g}); those of {environment!r} pay otherwise. "
                "Choose another model."
            )

    def reset(self) -> None:
        """Believe in both machines alike."""
        self.belief = 0.0  # log-odds that machine 1 is the better one

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Take in a reward, then expect that the machines may have swapped."""
        if action < 0:
            return
        hazard = self.theta[0]
        belief = self.belief + (1.0 if action == 1 else -1.0) * GAIN * (reward - MIDDLE)
        e = exp(-abs(belief))
        kept, lost = 1.0 - hazard + e * hazard, e * (1.0 - hazard) + hazard
        self.belief = log(kept / lost) if belief > 0 else log(lost / kept)

    def _choice(self) -> float:
        beta: float = self.theta[1]
        return beta * (2.0 / (1.0 + exp(-self.belief)) - 1.0)

    def _evidence(self) -> float:
        return self.belief


class RescorlaWagnerConfidence(ConfidentLearner):
    """Values step toward rewards; the confidence follows the lead of the chosen value.

    V = 0.5 for both machines at first, and V[a] += alpha (v - V[a]) after a reward of r points,
    with v = (r - 20) / 60: 20 points are worth 0, 80 points 1. P(a) is softmax(beta V + kappa [a
    was the last choice]). The confidence has log-odds Normal(c_0 + c_1 beta (V[chosen] -
    V[other]), s).
    """

    name = "rescorla_wagner_confidence"
    summary = "Rescorla-Wagner learner that says how sure it is of each choice"
    source = "Rescorla and Wagner 1972, with the confidence of Fleming and Lau 2014"
    parameters = Parameters(
        Parameter(
            "alpha",
            UNIT,
            mean=0.0,
            sd=1.0,
            description="learning rate: share of the surprise that enters the value",
        ),
        Parameter(
            "beta",
            POSITIVE,
            mean=2.0,
            sd=0.6,
            description="inverse temperature: how strictly choices follow the learned values",
        ),
        Parameter(
            "kappa",
            IDENTITY,
            mean=0.0,
            sd=0.5,
            description="perseveration: log-odds added to the last choice",
            source="Lau and Glimcher 2005; Katahira 2018",
        ),
        *_read_out("beta times the lead of the chosen value"),
    )
    log_likelihood = staticmethod(log_likelihood_rescorla_wagner)
    simulate = staticmethod(simulate_rescorla_wagner)

    def reset(self) -> None:
        """Forget everything."""
        self.values = [0.5, 0.5]
        self.last = 0.0

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Step the chosen machine's value toward the reward."""
        if action < 0:
            return
        value = self.values[action]
        self.values[action] += self.theta[0] * ((reward - LEAST) / WIDTH - value)
        self.last = 1.0 if action == 1 else -1.0

    def _choice(self) -> float:
        kappa: float = self.theta[2]
        return self._evidence() + kappa * self.last

    def _evidence(self) -> float:
        beta: float = self.theta[1]
        return beta * (self.values[1] - self.values[0])


class RandomResponderConfidence(Agent):
    """Every action has probability 1 / n, and every confidence the density 1."""

    name = "random_responder_confidence"
    summary = "picks uniformly among actions and confidences; no parameters"
    source = "the null model of choices with a confidence"
    parameters = Parameters()
    columns = ("action", "response")
    design = ()
    separate = ()
    given = "both"
    n_uniforms = 2
    remembers = False
    log_likelihood = staticmethod(log_likelihood_guesser)
    simulate = staticmethod(simulate_guesser)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also where responses do not go from 0 to 1."""
        super().check_plays(environment)
        if tuple(environment.response_range) != (0.0, 1.0):
            low, high = environment.response_range
            raise ValueError(
                f"{cls.name} gives numbers from 0 to 1; {environment.name} asks for numbers from "
                f"{low:g} to {high:g}. Choose another model."
            )

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the same share for all."""
        return np.full(self.actions, 1.0 / self.actions)

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn."""

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return 0, the logarithm of 1."""
        return 0.0

    def choose(self, observation: Observation, rng: np.random.Generator) -> tuple[int, float]:
        """Draw an action and a confidence with a number each."""
        u = rng.random()
        return min(int(u * self.actions), self.actions - 1), float(rng.random())
