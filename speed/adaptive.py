"""Chosen questions beside ADOpy's, on its delay-discounting task; `python speed/adaptive.py`.

Both choose 20 of the same 1,134 questions for the same hyperbolic model under the same prior, for
the same agents, which answer with the same random numbers. Reported are what the answers tell, by a
dense grid that neither uses (the Kullback-Leibler divergence of posterior from prior, in nats, and
the posterior's standard deviation of log k), and the CPU that choosing and learning take. Needs
ADOpy (tried with 0.4.1) beside this.
"""

import argparse
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy

import numpy as np  # noqa: E402
from scipy.special import expit  # noqa: E402
from scipy.stats import norm  # noqa: E402

from knownminds.agents import HyperbolicDiscounter  # noqa: E402
from knownminds.environments import TemporalDiscounting, session_stream  # noqa: E402
from knownminds.inference import Inquiry  # noqa: E402

AMOUNT, QUESTIONS = 800, 20
SUMS = np.arange(12.5, 800, 12.5)  # ADOpy's example of sooner sums
WEEKS = (1, 2, 3, 4, 5, 6, 9, 11, 13, 17, 22, 26, 39, 52, 104, 156, 260, 520)
PRIOR = HyperbolicDiscounter.parameters
GRID = (25, 20)  # of ADOpy's parameters: 500 points, as in its example
FIXED = {"eta": 1.0}


def questionnaire():
    """Return the experiment; what it calls months are weeks here."""
    # Half dollars: sums are whole numbers.
    shares = tuple((SUMS / AMOUNT).tolist())
    return TemporalDiscounting(
        design="grid", amount=2 * AMOUNT, shares=shares, delays=WEEKS, losses=False
    )


def chance_of_later(k, tau, sooner, later, delay):
    """Return P(later) where tau is in shares of the larger sum."""
    return expit((later / (1 + k * delay) - sooner) / later / tau)


def dense():
    """Return points of (k, tau) and their prior weights."""
    z = np.linspace(-4.5, 4.5, 181)
    k, tau = (np.exp(PRIOR[name].mean + PRIOR[name].sd * z) for name in ("k", "tau"))
    weights = np.outer(norm.pdf(z), norm.pdf(z))
    return k[:, None], tau[None, :], weights / weights.sum()


def information(questions, answers):
    """Return the information of answers in nats, and the posterior sd of log k."""
    k, tau, prior = dense()
    log = np.log(prior)
    for (sooner, delay), answer in zip(questions, answers, strict=True):
        p = np.clip(chance_of_later(k, tau, sooner, 2 * AMOUNT, delay), 1e-300, 1 - 1e-16)
        log = log + np.log(p if answer else 1 - p)
    post = np.exp(log - log.max())
    post /= post.sum()
    inside = post > 0
    gain = float((post[inside] * np.log(post[inside] / prior[inside])).sum())
    share, value = post.sum(axis=1), np.log(k[:, 0])
    mean = share @ value
    return gain, float(np.sqrt(share @ (value - mean) ** 2))


class Ours:
    """Questions by `Inquiry`."""

    def __init__(self, environment):
        self.environment = environment
        self.design = environment.draw(session_stream(1))

    def begin(self):
        self.rows = []
        self.inquiry = Inquiry(HyperbolicDiscounter, self.environment, self.design, FIXED)

    def ask(self):
        self.position = self.inquiry(self.rows).position
        table = self.design.table
        return float(table["sooner_amount"][self.position]), float(
            table["later_delay"][self.position]
        )

    def learn(self, answer):
        self.rows.append({"picked": self.position, "action": answer})


class Adopy:
    """Questions by ADOpy's engine, its grid at the quantiles of the prior."""

    def __init__(self):
        for alias, kind in (("int", int), ("float", float), ("bool", bool)):
            if alias not in vars(np):  # names that NumPy took away and ADOpy 0.4.1 uses
                setattr(np, alias, kind)
        from adopy.tasks.dd import EngineDD, ModelHyp

        levels = [norm.ppf((np.arange(n) + 0.5) / n) for n in GRID]
        k, tau = (
            np.exp(PRIOR[name].mean + PRIOR[name].sd * z)
            for name, z in zip(("k", "tau"), levels, strict=True)
        )
        designs = {
            "t_ss": [0.0],
            "t_ll": list(map(float, WEEKS)),
            "r_ss": (2 * SUMS).tolist(),
            "r_ll": [2.0 * AMOUNT],
        }
        points = {"k": k, "tau": 1 / (2 * AMOUNT * tau)}
        self.engine = EngineDD(ModelHyp(), designs, points)

    def begin(self):
        self.engine.reset()

    def ask(self):
        self.design = self.engine.get_design("optimal")
        return self.design["r_ss"], self.design["t_ll"]

    def learn(self, answer):
        self.engine.update(self.design, answer)


def played(way, agents, uniforms):
    """Ask every agent; return information, sd of log k, and seconds of CPU per question."""
    results, seconds = [], []
    for (k, tau), draws in zip(agents, uniforms, strict=True):
        questions, answers = [], []
        begin = time.process_time()
        way.begin()
        spent = time.process_time() - begin
        for u in draws:
            begin = time.process_time()
            sooner, delay = way.ask()
            spent += time.process_time() - begin
            answer = int(u < chance_of_later(k, tau, sooner, 2 * AMOUNT, delay))
            begin = time.process_time()
            way.learn(answer)
            spent += time.process_time() - begin
            questions.append((sooner, delay))
            answers.append(answer)
        results.append(information(questions, answers))
        seconds.append(spent / len(draws))
    return np.array(results), np.array(seconds)


def interval(values):
    """Return a mean with its 95% interval, as text."""
    error = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} [{values.mean() - error:.3f}, {values.mean() + error:.3f}]"


if __name__ == "__main__":
    reader = argparse.ArgumentParser()
    reader.add_argument("--agents", type=int, default=100)
    reader.add_argument("--seed", type=int, default=1)
    arguments = reader.parse_args()
    rng = np.random.default_rng(arguments.seed)
    z = rng.normal(size=(arguments.agents, 2))
    agents = np.exp(PRIOR.mean[:2] + PRIOR.sd[:2] * z)
    uniforms = rng.random((arguments.agents, QUESTIONS))
    environment = questionnaire()
    ways = {"chosen": Ours(environment), "ADOpy": Adopy()}
    results = {}
    for name, way in ways.items():
        played(way, agents[:1], uniforms[:1])  # compiled and cached
        results[name] = played(way, agents, uniforms)
    print(
        f"{arguments.agents} agents, {QUESTIONS} of {environment.n_trials} questions, "
        f"seed {arguments.seed}"
    )
    print(f"{'':<16}{'nats':>24}{'sd of log k':>24}{'CPU per question':>20}")
    for name, (values, seconds) in results.items():
        cpu = f"{1e3 * np.median(seconds):.2f} ms"
        print(f"{name:<16}{interval(values[:, 0]):>24}{interval(values[:, 1]):>24}{cpu:>20}")
    for other in ("ADOpy",):
        more = results["chosen"][0][:, 0] - results[other][0][:, 0]
        ratio = np.median(results[other][1]) / np.median(results["chosen"][1])
        print(f"chosen - {other}: {interval(more)} nats; CPU {ratio:.1f} times")
