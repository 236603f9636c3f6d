"""How often predictive checks call a panel not reproduced: for the true model and for a wrong one.

    python benchmarks/predictive_checks.py [--fits 100] [--people 40]

People of `forgetting_learner` (whose phi comes from its prior) and of `rescorla_wagner` live two
experiments; both are fitted (`map`), and a check is drawn as in a report of `fit`.
"""

import argparse

import numpy as np

from knownminds.agents import ForgettingLearner, RescorlaWagner, simulate
from knownminds.environments import make
from knownminds.inference import ModelData, Unknowns, posterior
from knownminds.validation.data.predictive import LEVEL, check_fit, replicated_from
from knownminds.validation.data.support import Relived

PAIRS = (
    (RescorlaWagner, RescorlaWagner),
    (ForgettingLearner, ForgettingLearner),
    (ForgettingLearner, RescorlaWagner),
)


def checked(true, fitted, place, people, seed):
    """Return the check of one data set."""
    theta = true.parameters.draw(np.random.default_rng([seed, 5]), people)
    trials = simulate(true, theta, place, seed)
    data = ModelData.read(fitted, trials, place.n_actions)
    own = posterior(fitted, data, workers=1, nuts=False)
    relived = Relived.of(trials.frame, place, trials.frame["subject"])
    usable = np.array([status != "failed" for status in own.status])
    made = replicated_from(relived, place, Unknowns.of(fitted), fitted, own.draws, usable, seed)
    return check_fit(trials.frame, made, "posterior")


def main():
    """Print a row per experiment and pair of models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--people", type=int, default=40)
    asked = parser.parse_args()
    head = f"{'experiment':<24}{'true':<20}{'fitted':<20}"
    print(f"{head}{'panels p<=.05':>14}{'p<=.25':>8}{'p<=.5':>7}{'mean p':>8}{'reports':>9}")
    for name in ("instrumental_learning", "reversal_learning"):
        for true, fitted in PAIRS:
            found = [
                checked(true, fitted, make(name), asked.people, seed) for seed in range(asked.fits)
            ]
            p = np.array([[panel.p for panel in one.panels] for one in found])
            shares = [(p <= limit).mean() for limit in (LEVEL, 0.25, 0.5)]
            called = np.mean([bool(one.missed) for one in found])
            print(
                f"{name:<24}{true.name:<20}{fitted.name:<20}{shares[0]:>14.3f}{shares[1]:>8.3f}"
                f"{shares[2]:>7.3f}{p.mean():>8.3f}{called:>9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
