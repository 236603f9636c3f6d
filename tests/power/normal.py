"""A measure whose estimates are exactly normal, so that power is known in closed form."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from knownminds.environments import session_stream
from knownminds.inference import SubjectMeasure
from knownminds.inference.measure import Dial, Values, t_tests

PLACE = "instrumental_learning"
SPREAD = 0.6  # standard deviation of the measure between participants

# A share of R data sets misses its expectation p by sqrt(p (1 - p) / R). 3.5 of these are exceeded
# by chance in 5 of 10,000 comparisons; there are some 30 in this folder.
ERRORS = 3.5


class Shift(SubjectMeasure):
    """kappa, seen through normal noise of sd 1."""

    def __init__(self, null=0.0, name="shift"):
        super().__init__(
            name=name,
            summary="kappa with noise",
            source="none",
            environments=(PLACE,),
            rational="random_responder",
            violator="rescorla_wagner_dual",
            dial=Dial({"kappa": 1.0}),
            null=null,
        )

    def truth(self, model, theta):
        return theta[:, 3] if theta.shape[1] == 4 else np.full(len(theta), self.null)

    def values(self, known):
        value = known.value.mean(axis=0)
        return Values(value, ("",) * len(value))

    def over_blocks(self, known):
        return self.values(known), t_tests(known.value.T), [], []


@dataclass
class Known:
    """What stands in for the sessions of a batch: values [sessions, subjects]."""

    value: np.ndarray

    def trials(self):
        return self

    def of(self, subjects):
        return Known(self.value[:, subjects])

    def first_sessions(self, n):
        return Known(self.value[:n])


def seen(study, batch, subjects, first_session=0, noise=1.0):
    """Let nobody play: what is true of each agent, and normal noise for each session."""
    cell = study.cells[batch.cell]
    rng = session_stream(study.seed, cell.data_key, batch.first, first_session)
    drawn = noise * rng.standard_normal((cell.sessions, len(subjects.theta)))
    return Known(Shift().truth(None, subjects.theta) + drawn)


def rejects(d, n):
    """Power of the two-sided 5% t test of n normal numbers with mean d and sd 1."""
    critical, noncentrality = stats.t.ppf(0.975, n - 1), d * np.sqrt(n)
    beyond = stats.nct.sf(critical, n - 1, noncentrality)
    return beyond + stats.nct.cdf(-critical, n - 1, noncentrality)


def within(score, expected, n):
    """Whether a share of n is as near its expectation as chance has it."""
    return abs(score.value - expected) < ERRORS * np.sqrt(expected * (1 - expected) / n)


def designs(result):
    """The designs of a power study, a dictionary each."""
    return result["Designs"].reset_index().to_dict("records")
