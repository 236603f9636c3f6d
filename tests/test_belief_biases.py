import json

import numpy as np
import pytest

from knownminds.agents import AGENTS, BeliefSampler, simulate
from knownminds.environments import ENVIRONMENTS, Choice, Coins, Dice, Preference
from knownminds.environments.broken_off import MARKS
from knownminds.inference import MEASURES
from knownminds.inference.belief_biases import BeliefBias, belief_biases
from knownminds.inference.revealed_belief import RevealedBeliefs, SetUp, set_ups_of
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.outcome_probabilities import OutcomeProbabilities

PLACES = (Dice(1, 12), Coins(3), Choice(4), Preference())


def believed(set_up, temperature=1.0, **biases):
    """What a belief sampler has for each outcome."""
    with np.errstate(divide="ignore"):
        height = np.log(np.asarray(set_up.truth)) / temperature
    for mark, bias in biases.items():
        height = height + bias * set_up.marks[:, MARKS.index(mark)]
    weight = np.exp(height - height.max())
    return weight / weight.sum()


def exact(temperature=1.0, places=PLACES, **biases):
    parts = []
    for set_up in (s for place in places for s in set_ups_of(place)):
        with np.errstate(divide="ignore"):
            logs = np.log(0.9 * believed(set_up, temperature, **biases))[None]
        local = OutcomeProbabilities(set_up.outcomes, logs, np.full(logs.shape, -np.inf), ("",))
        parts.append(RevealedBeliefs.exact(local, set_ups=[set_up]))
    return RevealedBeliefs.join(*parts)


def of(found, scenario, mark):
    return next(b for b in found.biases if (b.scenario, b.mark) == (scenario, mark))


def test_who_believes_the_truth_has_no_bias():
    for bias in belief_biases(exact()).biases:
        assert bias.value == pytest.approx(0.0, abs=1e-12)
        assert bias.log_odds == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("mark", "scenarios"),
    [
        ("first", ("dice", "coins", "choice", "preference")),
        ("middle", ("dice", "coins", "choice")),
        ("round", ("dice",)),
        ("repeat", ("dice", "coins", "choice", "preference")),
        ("heads", ("preference",)),
        ("left", ("preference",)),
    ],
)
def test_a_single_bias_of_a_sampler_is_its_difference_of_log_odds(mark, scenarios):
    found = belief_biases(exact(**{mark: 0.6}))
    assert {b.scenario for b in found.biases if b.mark == mark} == set(scenarios)
    for scenario in scenarios:
        bias = of(found, scenario, mark)
        assert bias.log_odds == pytest.approx(0.6, abs=1e-9)
        assert bias.value > 0.02
        assert bias.log_odds_low <= 0.6 + 1e-9
    away = belief_biases(exact(**{mark: -0.6}))
    assert of(away, scenarios[0], mark).value < 0


def test_temperature_is_no_bias_where_all_outcomes_are_as_probable():
    warm = exact(temperature=2.0)
    assert abs(of(belief_biases(warm), "coins", "first").value) > 0.01
    for bias in belief_biases(warm, even=True).biases:
        assert bias.value == pytest.approx(0.0, abs=1e-12)


def test_top_k_bounds_hold_the_bias_of_the_whole_table():
    set_up = SetUp("six", tuple("ABCDEF"), [1 / 6] * 6, "choice")
    p = np.array([0.3, 0.2, 0.15, 0.15, 0.06, 0.04])
    tables = [tuple((n + ".", float(np.log(x))) for n, x in zip("ABCD", p, strict=False))] * 2
    beliefs = RevealedBeliefs.top_k(
        [[[TokenLogProbability(*table[0], table)]] for table in tables],
        set_up.outcomes,
        set_ups=[set_up] * 2,
    )
    bias = of(belief_biases(beliefs), "choice", "first")
    # 0.2 was not listed: A has 0.3 to 0.5 of at most 1.
    assert bias.least == pytest.approx(0.3 / 1.0 - 1 / 6)
    assert bias.most == pytest.approx(0.5 / 1.0 - 1 / 6)
    assert bias.least < 0.3 / 0.9 - 1 / 6 < bias.most
    assert (bias.low, bias.high) == pytest.approx((bias.least, bias.most))


def test_intervals_of_sampled_biases_hold_the_true_one():
    set_up = set_ups_of(Choice(4))[0]
    q, held, replicates = believed(set_up, first=0.8), 0, 120
    rng = np.random.default_rng(3)
    for counts in rng.multinomial(50, q, size=(replicates, 8)):
        beliefs = RevealedBeliefs.sampled(counts, [0] * 8, set_up.outcomes, set_ups=[set_up] * 8)
        bias = of(belief_biases(beliefs), "choice", "first")
        held += bias.low <= q[0] - 0.25 <= bias.high
    # 95% of 120 are 114, 4 standard errors 9.5
    assert held >= 104
    assert held < replicates


def test_flagged_contexts_are_left_out_and_counted():
    beliefs = exact(places=(Choice(4),))
    strict = RevealedBeliefs.join(
        RevealedBeliefs.exact(
            OutcomeProbabilities(
                tuple("ABCD"), np.log([[0.4, 0.01, 0.01, 0.01]]), np.full((1, 4), -np.inf), ("",)
            ),
            set_ups=[SetUp("x", tuple("ABCD"), [0.25] * 4, "choice")],
        ),
        beliefs,
    )
    found = belief_biases(strict)
    assert found.flagged == 1
    assert of(found, "choice", "first").value == pytest.approx(0.0, abs=1e-12)
    assert "1 of 6 contexts are flagged" in str(found)
    assert json.loads(found.to_json())["flagged"] == 1
    assert of(belief_biases(strict, keep_flagged=True), "choice", "first").value > 0.05
    with pytest.raises(ValueError, match="which some contexts lack"):
        belief_biases(RevealedBeliefs.sampled([[1, 2]], [0], ("A", "B")))


@pytest.mark.parametrize(
    ("mark", "place"),
    [
        ("first", Dice(1, 6)),
        ("first", Choice(2)),
        ("middle", Choice(6)),
        ("round", Dice(1, 12)),
        ("repeat", Preference()),
        ("heads", Preference()),
        ("left", Preference(weights=1)),
    ],
)
def test_measures_of_bias_estimate_their_truth_of_the_place_and_are_0_in_the_null_model(
    mark, place
):
    measure = MEASURES[f"{mark}_outcome_bias"].in_place(place)
    theta = np.tile(BeliefSampler.parameters.constrain(np.zeros(8)), (600, 1))
    theta[:, 0] = 1.7
    theta[:, 1 + MARKS.index(mark)] = 0.8
    found = measure.estimate(simulate(BeliefSampler, theta, place, 4))
    assert abs(found.value - measure.truth(BeliefSampler, theta)[0]) < 4 * found.standard_error
    assert found.p_value < 1e-6
    null = AGENTS[measure.rational]
    none = measure.estimate(simulate(null, np.zeros((600, 0)), place, 4))
    assert abs(none.value) < 4 * none.standard_error
    assert none.p_value > 1e-4


def test_the_truth_of_a_bias_is_that_of_the_experiment():
    measure = MEASURES["first_outcome_bias"]
    theta = BeliefSampler.parameters.constrain(np.zeros((1, 8)))
    theta[0, 1] = 1.0

    def of_one_among(n):
        return np.e / (np.e + n - 1) - 1 / n

    for n in (4, 12):
        assert measure.in_place(Dice(1, n)).truth(BeliefSampler, theta)[0] == pytest.approx(
            of_one_among(n)
        )
    assert measure.in_place(Choice(2)).truth(BeliefSampler, theta)[0] == pytest.approx(
        of_one_among(2)
    )
    # Without a place it is that of dice with six faces.
    assert measure.truth(BeliefSampler, theta)[0] == pytest.approx(of_one_among(6))
    assert measure.in_place(Dice(1, 4)) is measure.in_place(Dice(1, 4))  # curves are kept


def test_measures_say_what_they_cannot_do():
    with pytest.raises(ValueError, match="mark"):
        BeliefBias("last")
    with pytest.raises(ValueError, match="is known of belief samplers"):
        BeliefBias("first").truth(AGENTS["noisy_or"], np.zeros((1, 5)))
    for place in (Dice(2, 6), Coins(2), Preference(weights=3)):
        with pytest.raises(ValueError, match="all outcomes are equally probable and some"):
            BeliefBias("first").in_place(place)
    with pytest.raises(ValueError, match="knows nothing of stated probabilities"):
        BeliefBias("first").in_place(Dice(form="stated"))
    with pytest.raises(ValueError, match="is read off what is said in dice, choice"):
        BeliefBias("middle").in_place(ENVIRONMENTS["collider"]())
