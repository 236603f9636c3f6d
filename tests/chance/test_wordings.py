"""Variance of beliefs split into questions, wordings and sampling; shifts by idle evidence."""

import numpy as np
import pytest
from scipy.stats import t

from knownminds.agents import CorrelationWeigher, EvidenceWeigher, simulate
from knownminds.environments import Counts, LinkedCoins
from knownminds.inference.chance.idle_evidence import IdlePull, belief_shifts
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.inference.chance.wording_variance import (
    joined_wordings,
    question_of,
    split_variance,
    split_wordings,
)
from knownminds.validation.chance.revealed import reveal

KNOWN = {"questions": 0.02, "wordings": 0.005}
N_QUESTIONS, N_WORDINGS, DRAWS, WORLDS = 40, 3, 25, 400


def worlds(wordings, seed):
    """Shares counted in worlds with known components: uniform effects, binomial sampling."""
    rng = np.random.default_rng(seed)
    n, q, w = WORLDS, N_QUESTIONS, N_WORDINGS
    means = 0.5 + rng.uniform(-1, 1, (n, q, 1)) * np.sqrt(3 * KNOWN["questions"])
    true = means + rng.uniform(-1, 1, (n, q, w)) * np.sqrt(3 * wordings)
    counted = rng.binomial(DRAWS, true)
    share = counted / DRAWS
    return share, share * (1 - share) / (DRAWS - 1), (true * (1 - true) / DRAWS).mean()


@pytest.mark.parametrize("wordings", [0.005, 0.0])
def test_components_and_their_intervals_hold_the_known_ones(wordings):
    share, error, sampling = worlds(wordings, 7)
    found = [split_variance(y, e, replicates=400) for y, e in zip(share, error, strict=True)]
    known = {"questions": KNOWN["questions"], "wordings": wordings, "sampling": sampling}
    for name, truth in known.items():
        parts = np.array([getattr(split, name) for split in found])
        standard = parts[:, 0].std() / np.sqrt(WORLDS)
        assert abs(parts[:, 0].mean() - truth) < 4 * standard  # unbiased
        covered = ((parts[:, 1] <= truth) & (truth <= parts[:, 2])).mean()
        # 95%, to four standard errors of a share of 400 and one point for what the bootstrap of
        # 40 questions misses.
        assert 0.95 - 0.01 - 4 * np.sqrt(0.95 * 0.05 / WORLDS) < covered <= 1
    if not wordings:
        assert min(split.wordings.variance for split in found) < 0  # nothing is cut off


def test_the_components_are_those_of_the_analysis_of_variance_by_hand():
    y = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    split = split_variance(y, np.full(y.shape, 0.5))
    # Mean squares: within, ((1 + 0 + 1) + (4 + 0 + 4)) / 4; between, 3 * ((2 - 3)^2 + (4 - 3)^2).
    within, between = 10 / 4, 6.0
    assert split.wordings.variance == pytest.approx(within - 0.5)
    assert split.questions.variance == pytest.approx((between - within) / 3)
    assert split.sampling.variance == 0.5
    assert np.isnan(split.wordings.low)  # two questions are too few


def test_questions_with_a_single_wording_are_left_out():
    y = np.array([[0.1, np.nan], [0.2, 0.4], [0.3, 0.3], [0.5, 0.1]])
    split = split_variance(y, np.zeros(y.shape))
    assert (split.n_questions, split.n_values) == (3, 6)
    assert split.to_frame()["questions"].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((np.zeros(3), np.zeros(3)), "by question and wording"),
        ((np.zeros((2, 2)), np.zeros((2, 3))), "by question and wording"),
        ((np.zeros((2, 2)), -np.ones((2, 2))), "Sampling variances are 0 or more"),
    ],
)
def test_what_cannot_be_split_is_told(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        split_variance(*given)


def test_names_of_wordings():
    assert question_of("options 4, kind 0, wording 3") == ("options 4, kind 0", 3)
    assert question_of("options 4, kind 0") == ("options 4, kind 0", 1)


def lived(model, place, pull, n, seed=1):
    """Trials of n minds without any other bias, who are pulled by idle facts."""
    told = {"temperature": 1.0, "evidence": 1.0, "heed": 0.999, "bias_fact": pull}
    theta = [[told.get(name, 0.0) for name in model.parameters.names]] * n
    return theta, simulate(model, np.array(theta), place, seed)


def test_wordings_of_a_mind_that_does_not_read_them_differ_by_sampling_alone():
    several = []
    for seed, words in enumerate((None, "paraphrase_2", "paraphrase_3")):
        place = Counts(templates=words)
        trials = lived(EvidenceWeigher, place, 0.0, 40, seed)[1]
        several.append(RevealedBeliefs.of_trials(trials, place))
    found = split_wordings(joined_wordings(several))
    parts = found.parts.set_index(["value", "part"])
    own = parts.loc[("likeliest outcome", "wordings")]
    assert own["low"] < 0 < own["high"]
    # Shares of about .2 to .3 in 40 draws: p (1 - p) / 40.
    assert 0.003 < parts.loc[("likeliest outcome", "sampling"), "variance"] < 0.006
    effects = found.effects[found.effects["value"] == "likeliest outcome"]
    # 3 intervals at 95%: that two of them miss 0 has p = .007.
    assert ((effects["low"] < 0) & (effects["high"] > 0)).sum() >= 2
    with pytest.raises(ValueError, match="two or more; got 1"):
        joined_wordings(several[:1])


@pytest.mark.parametrize(
    ("model", "place"), [(EvidenceWeigher, Counts()), (CorrelationWeigher, LinkedCoins())]
)
def test_the_pull_of_idle_facts_is_read_and_known(model, place):
    measure = IdlePull("aside").in_place(place)
    theta, trials = lived(model, place, 1.0, 300)
    # By hand: e^b p / (1 + (e^b - 1) p) - p at each fact, the mind being right but for its bias.
    shifts = []
    for context in place.contexts:
        if context.values[-1] >= 0:
            p = context.chance.probabilities[context.values[-1]]
            shifts.append(np.e * p / (1 + (np.e - 1) * p) - p)
    truth = measure.truth(model, np.array(theta[:1]))[0]
    assert truth == pytest.approx(np.mean(shifts), abs=3e-4)  # heed is .999
    found = measure.estimate(trials)
    assert abs(found.value - truth) < 4 * found.standard_error
    read = belief_shifts(RevealedBeliefs.of_trials(trials, place)).shifts.set_index("evidence")
    own = read.loc["idle fact"]
    # Groups of contexts weigh as contexts do here: the same number of facts each.
    assert own["value"] == pytest.approx(found.value, abs=1e-9)
    assert own["low"] < truth < own["high"]


def test_intervals_of_shifts_hold_the_truth_as_often_as_they_say():
    place = Counts(kinds=("single", "aside"), laws="poisson")
    covered = []
    for seed in range(150):
        trials = lived(EvidenceWeigher, place, 0.0, 40, seed)[1]
        own = belief_shifts(RevealedBeliefs.of_trials(trials, place)).by_context
        covered += ((own["low"] <= 0) & (own["high"] >= 0)).tolist()
    # 600 intervals in groups of two that share a baseline: four standard errors of 300.
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


def test_the_retained_mass_is_printed_with_its_interval():
    found = reveal(
        "synthetic:belief_sampler", scenarios=["choice"], stated=False, source="sampled",
        draws=30, leak=0.3, seed=2,
    )  # fmt: skip
    mass = found.by_context()["retained"].to_numpy(dtype=float)
    half = t.ppf(0.975, len(mass) - 1) * mass.std(ddof=1) / np.sqrt(len(mass))
    told = f"{mass.mean():.3f} ({mass.mean() - half:.3f} to {mass.mean() + half:.3f})"
    assert told in str(found)
