"""Deciders: the kernel, and fits of 1,000 deciders against SciPy with numeric gradients.

`python benchmarks/deciders.py`. Fits are maximum a posteriori from 5 starts, of 200 contexts asked
about 5 times: a plain belief and a decision (10 trials a context), and all that the experiment asks
by default (55 trials a context). SciPy's L-BFGS-B minimises the same negative log posterior from
the same starts with numeric gradients, for a few of the deciders. Its objective is NumPy's, over
all contexts of a decider at once, trial by trial within them. Both run on one core; counted is
time of CPU.
"""

import time
import warnings
from statistics import mean, median

from side_by_side import goal

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from scipy.special import expit, log_ndtr, logit  # noqa: E402
from scipy.stats import norm  # noqa: E402

from knownminds.agents import ProspectUtility, RandomUtility, simulate  # noqa: E402
from knownminds.agents.diagnosis.belief_places import EDGE, HIGH, LOG_WIDTH, LOW  # noqa: E402
from knownminds.environments import Diagnosis  # noqa: E402
from knownminds.inference import ModelData, maximum_a_posteriori  # noqa: E402
from knownminds.inference.fits.point import _starting_points  # noqa: E402

AGENTS, STARTS = 1000, 5
DESIGNS = {
    "plain belief and decision": {"elicitations": ["plain"], "questions": ["belief", "decision"]},
    "all questions": {"parts": "separate"},  # of which the NumPy likelihood below knows
}
BELIEF, DECISION, PART, CONDITIONAL = range(4)


def log_odds(p):
    """Return log odds of probabilities held off 0 and 1."""
    return logit(np.clip(p, EDGE, 1 - EDGE))


def between(a, b):
    """Return the log share of a standard normal law between a and b."""
    up = a + b > 0
    low, high = np.where(up, -b, a), np.where(up, -a, b)
    below = log_ndtr(high)
    return below + np.log1p(-np.exp(np.minimum(log_ndtr(low) - below, -1e-15)))


class Objective:
    """The negative log posterior of one decider, [contexts, trials] at a time in NumPy."""

    def __init__(self, model, own):
        self.parameters, self.weighs = model.parameters, "gamma" in model.parameters.names
        own = own.sort_values(["context", "trial"])
        count = own.groupby("context").size().iloc[0]

        def table(name):
            return own[name].to_numpy(dtype=float, na_value=np.nan).reshape(-1, count)

        asked = table("question")[0].astype(int)
        response, m = table("response"), table("marginal")
        self.odds = log_odds(m[:, 0])
        self.steps = []
        for t in np.flatnonzero(asked != DECISION):
            cell = np.clip(np.floor(100 * response[:, t] + 0.5), 0, 100).astype(int)
            posterior = table("posterior")[:, t]
            edge = np.clip(m[:, t], EDGE, 1 - EDGE)
            q = np.clip(table("conditional")[:, t], EDGE, 1 - EDGE)
            more = log_odds(posterior) - self.odds if asked[t] == CONDITIONAL else 0.0
            present, absent = posterior * q / edge, posterior * (1 - q) / (1 - edge)
            self.steps.append((asked[t], LOW[cell], HIGH[cell], more, present, absent))
            self.constant = getattr(self, "constant", 0.0) + LOG_WIDTH[cell].sum()
        decided = np.flatnonzero(asked == DECISION)
        plain = np.flatnonzero((asked == BELIEF) & (table("elicitation")[0] == 0))
        self.p = response[:, plain].ravel()
        self.action = table("action")[:, decided].ravel().astype(int)
        self.rows = np.arange(len(self.p))

    def __call__(self, z):
        theta = self.parameters.constrain(z[None])[0]
        yes_1, yes_0, defer_1, defer_0, *gamma, c, d, s_between, s_report = theta
        w = self.p
        if self.weighs:
            with np.errstate(divide="ignore"):
                w = np.exp(-((-np.log(w)) ** gamma[0]))
        value = np.stack([yes_0 + (yes_1 - yes_0) * w, defer_0 + (defer_1 - defer_0) * w, 0 * w])
        top = value.max(axis=0)
        total = (value[self.action, self.rows] - top).sum()
        total -= np.log(np.exp(value - top).sum(axis=0)).sum() + self.constant
        base = c + d * self.odds
        off, left = np.zeros(len(base)), np.full(len(base), s_between**2)
        for asked, low, high, more, present, absent in self.steps:
            if asked == PART:
                f = expit(base + off)
                mean, v = log_odds(f * present + (1 - f) * absent), s_report**2
            else:
                mean, v = base + more + off, left + s_report**2
            sd = np.maximum(np.sqrt(v), 1e-9)
            a, b = (low - mean) / sd, (high - mean) / sd
            own = between(a, b)
            total += own.sum()
            if asked != PART:
                at_a, at_b = np.exp(norm._logpdf(a) - own), np.exp(norm._logpdf(b) - own)
                g = at_a - at_b
                shrunk = np.clip(a * at_a - b * at_b - g * g, -1, 0)
                off = off + left / sd * g
                left = np.maximum(left + (left / sd) ** 2 * shrunk, 0)
        return -(total + self.parameters.log_prior(z[None])[0][0])


def kernels():
    """Time the likelihood with its gradient."""
    print("\nLog-likelihood with gradient")
    for name, settings in DESIGNS.items():
        environment = Diagnosis(**settings)
        theta = RandomUtility.parameters.draw(np.random.default_rng(0), 64)
        data = ModelData.read(RandomUtility, simulate(RandomUtility, theta, environment, 1))
        data.log_likelihood(theta)
        seconds = []
        for _ in range(10):
            begin = time.process_time()
            data.log_likelihood(theta)
            seconds.append(time.process_time() - begin)
        each = median(seconds) / 64
        per_trial = each / environment.n_trials * 1e9
        print(f"  {name:<28}{each * 1e6:9.1f} us per decider, {per_trial:6.1f} ns per trial")


def fits(model, design, agents, subset):
    """Fit everybody our way, and a few by SciPy."""
    environment = Diagnosis(**DESIGNS[design])
    theta = model.parameters.draw(np.random.default_rng(2), agents)
    trials = simulate(model, theta, environment, 2)
    data = ModelData.read(model, trials)
    maximum_a_posteriori(model, data.repeat([0]), starts=1)
    begin = time.process_time()
    ours = maximum_a_posteriori(model, data, starts=STARTS, workers=1)
    each = (time.process_time() - begin) / agents
    print(f"\n{agents} deciders, {model.name}, {design} ({environment.n_trials} trials)")
    print(f"  {'knownminds':<50}{each * 1e3:10.2f} ms per decider, {ours.counts()}")
    frame, seconds, worst = trials.frame, [], -np.inf
    for k in range(subset):
        objective = Objective(model, frame[frame["subject"] == str(k)])
        begin = time.process_time()
        ends = [
            minimize(objective, start, method="L-BFGS-B").fun
            for start in _starting_points(model.parameters, STARTS)
        ]
        seconds.append(time.process_time() - begin)
        worst = max(worst, -ours.log_posterior[k] - min(ends))
    way = "SciPy L-BFGS-B, numeric gradients"
    print(
        f"  {way:<50}{mean(seconds) * 1e3:10.2f} ms per decider, "
        f"mean of {subset}, median {median(seconds) * 1e3:.2f}"
    )
    print(f"  our negative log posterior is at most {worst:.1e} larger")
    goal("SciPy / ours", mean(seconds) / each, 100)


if __name__ == "__main__":
    kernels()
    for model in (RandomUtility, ProspectUtility):
        fits(model, "plain belief and decision", AGENTS, 12)
    fits(RandomUtility, "all questions", 100, 2)
