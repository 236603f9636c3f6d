"""Shifts of beliefs by evidence that should not matter, in agents whose pull is known."""

import numpy as np
import pytest

from knownminds.agents import simulate
from knownminds.inference import MEASURES
from knownminds.inference.chance.idle_evidence import belief_shifts, mean_shifts
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds_more.counts.counts import Counts
from knownminds_more.counts.linked_coins import LinkedCoins
from knownminds_more.counts.weighers import CorrelationWeigher, EvidenceWeigher


def lived(model, place, pull, n, seed=1):
    """Trials of n agents without any other bias, who are pulled by idle facts."""
    told = {"temperature": 1.0, "evidence": 1.0, "heed": 0.999, "bias_fact": pull}
    theta = [[told.get(name, 0.0) for name in model.parameters.names]] * n
    return theta, simulate(model, np.array(theta), place, seed)


@pytest.mark.parametrize(
    ("model", "place"), [(EvidenceWeigher, Counts()), (CorrelationWeigher, LinkedCoins())]
)
def test_the_pull_of_idle_facts_is_read_and_known(model, place):
    measure = MEASURES["idle_fact_pull"].in_place(place)
    theta, trials = lived(model, place, 1.0, 300)
    # By hand: e^b p / (1 + (e^b - 1) p) - p at each fact, the agent being right but for its bias.
    shifts = []
    for context in place.contexts:
        if context.values[-1] >= 0:
            p = context.chance.probabilities[context.values[-1]]
            shifts.append(np.e * p / (1 + (np.e - 1) * p) - p)
    truth = np.mean(shifts)  # but for 3e-4, heed being .999
    found = measure.estimate(trials)
    assert abs(found.value - truth) < 4 * found.standard_error
    # The truth is simulated with seven times as many sessions.
    simulated = measure.truth(model, np.array(theta[:1]))[0]
    assert abs(simulated - truth) < 4 * found.standard_error / np.sqrt(2048 / 300) + 3e-4
    read = mean_shifts(belief_shifts(RevealedBeliefs.of_trials(trials, place))).set_index(
        "evidence"
    )
    own = read.loc["idle fact"]
    # Groups of contexts weigh as contexts do here: the same number of facts each.
    assert own["value"] == pytest.approx(found.value, abs=1e-9)
    assert own["low"] < truth < own["high"]


@pytest.mark.long
def test_intervals_of_shifts_hold_the_truth_as_often_as_they_say():
    place = Counts(kinds=("single", "aside"), laws="poisson")
    covered = []
    for seed in range(150):
        trials = lived(EvidenceWeigher, place, 0.0, 40, seed)[1]
        own = belief_shifts(RevealedBeliefs.of_trials(trials, place))
        covered += ((own["low"] <= 0) & (own["high"] >= 0)).tolist()
    # 600 intervals in groups of two that share a baseline: four standard errors of 300.
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)
