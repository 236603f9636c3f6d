"""Risky choice: problems, the equations of its minds, and the fourfold pattern in known ones."""

import math

import numpy as np
import pytest
from scipy.special import expit

from knownminds.agents import AGENTS, simulate
from knownminds.environments import RiskyChoice, Trials, check_environment, make
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori

MINDS = ("expected_value", "expected_utility", "prospect_theory",
         "prospect_theory_tversky_kahneman")  # fmt: skip
THREE = [[[-80, 0.2], [0, 0.3], [150, 0.5]], [[20, 0.6], [60, 0.4]]]
SURE = [[[40, 1]], [[100, 0.5], [0, 0.5]]]


def prelec(p, gamma):
    return 0.0 if p <= 0 else 1.0 if p >= 1 else math.exp(-((-math.log(p)) ** gamma))


def tversky(p, gamma):
    return p**gamma / (p**gamma + (1 - p) ** gamma) ** (1 / gamma)


def worth(outcomes, alpha, alpha_loss, loss, gamma, gamma_loss, weigh):
    """Cumulative prospect theory by its definition: gains from the best down, losses up."""
    total, before = 0.0, 0.0
    for x, p in sorted((o for o in outcomes if o[0] >= 0), reverse=True):
        total += (weigh(before + p, gamma) - weigh(before, gamma)) * (x / 100) ** alpha
        before += p
    before = 0.0
    for x, p in sorted(o for o in outcomes if o[0] < 0):
        share = weigh(before + p, gamma_loss) - weigh(before, gamma_loss)
        total -= loss * share * (-x / 100) ** alpha_loss
        before += p
    return total


def gambles_of(row):
    return [
        [(row[f"{s}_{p}"], row[f"{s}_{p}_chance"]) for p in ("low", "middle", "high")
         if row[f"{s}_{p}_chance"] > 0]
        for s in "ab"
    ]  # fmt: skip


@pytest.mark.parametrize("name", MINDS)
def test_likelihoods_are_those_of_the_equations(name):
    values = {"alpha": 0.7, "alpha_loss": 0.9, "loss_aversion": 1.8, "gamma": 0.6,
              "gamma_loss": 0.8, "tau": 0.2}  # fmt: skip
    model, place = AGENTS[name], RiskyChoice(problems=[THREE, THREE[::-1], SURE], repeats=8)
    theta = np.array([[values[p] for p in model.parameters.names]])
    trials = simulate(model, theta, place, 5)
    own = dict(values) if "gamma" in model.parameters.names else {
        "alpha": 0.7 if name == "expected_utility" else 1.0, "gamma": 1.0, "gamma_loss": 1.0,
        "loss_aversion": 1.0, "tau": 0.2}  # fmt: skip
    own.setdefault("alpha_loss", own["alpha"])
    weigh = tversky if name.endswith("kahneman") else prelec
    total = 0.0
    for _, row in trials.frame.iterrows():
        a, b = (worth(g, own["alpha"], own["alpha_loss"], own["loss_aversion"], own["gamma"],
                      own["gamma_loss"], weigh) for g in gambles_of(row))  # fmt: skip
        p = expit((b - a) / own["tau"])
        total += math.log(p if row["action"] == 1 else 1 - p)
    found = ModelData.read(model, trials).log_likelihood(theta)[0][0]
    assert found == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "pair", "taken"),
    [
        ("minimax", SURE, 0),
        ("priority_heuristic", [[[3000, 1]], [[4000, 0.8], [0, 0.2]]], 0),  # minima, 3000 > 400
        ("priority_heuristic", [[[3000, 0.25], [0, 0.75]], [[4000, 0.2], [0, 0.8]]], 1),  # maxima
        ("priority_heuristic", [[[-3000, 1]], [[-4000, 0.8], [0, 0.2]]], 1),  # smaller least loss
        ("priority_heuristic", [[[6000, 0.45], [0, 0.55]], [[3000, 0.9], [0, 0.1]]], 1),  # chances
        ("priority_heuristic", [[[6000, 0.001], [0, 0.999]], [[3000, 0.002], [0, 0.998]]], 0),
    ],
)
def test_rules_choose_what_their_authors_say(model, pair, taken):
    """Problems of Kahneman and Tversky (1979) as the heuristic's authors work them out."""
    place = RiskyChoice(problems=[pair], repeats=20)
    frame = simulate(AGENTS[model], [[1e-6]], place, 1).frame
    first = np.array([gambles_of(row)[0] == sorted(map(tuple, pair[0])) for _, row in
                      frame.iterrows()])  # fmt: skip
    assert 0 < first.sum() < 20  # sides are drawn
    assert (np.where(first, frame["action"], 1 - frame["action"]) == taken).all()


def test_the_shipped_problems_are_fair_in_the_middle_and_differ():
    place = RiskyChoice()
    frame = simulate(AGENTS["expected_value"], [[0.1]], place, 1).frame
    assert len(frame) == 193 == len({str(sorted(map(str, gambles_of(r)))) for _, r in
                                     frame.iterrows()})  # fmt: skip
    mean = {s: sum(frame[f"{s}_{p}"] * frame[f"{s}_{p}_chance"] for p in ("low", "middle", "high"))
            for s in "ab"}  # fmt: skip
    fair = np.isclose(mean["a"], mean["b"])
    assert fair.sum() == 28 + 3 + 8  # of each chance and stake; of even chances; of spreads
    assert np.isnan(place.performance(Trials.from_frame(frame))[fair]).all()


def test_a_set_of_ones_own_keeps_the_contract():
    check_environment(make("risky_choice", problems=[THREE, SURE], repeats=2))


def test_known_minds_show_the_fourfold_pattern_and_who_goes_by_values_none_of_it():
    """60 subjects x 6 fair offers a cell: a share's error is at most .5 / sqrt(360) = .026."""
    place = RiskyChoice()
    human = np.tile([0.88, 0.88, 2.25, 0.61, 0.69, 0.1], (60, 1))
    seen = simulate(AGENTS["prospect_theory"], human, place, 1)
    plain = simulate(AGENTS["expected_value"], np.full((60, 1), 0.05), place, 2)
    for cell, sign in {"rare_gains": 1, "likely_gains": -1, "rare_losses": -1,
                       "likely_losses": 1}.items():  # fmt: skip
        measure = MEASURES[f"risk_seeking_{cell}"]
        found = measure.estimate(seen)
        assert sign * (found.value - 0.5) > 4 * 0.026
        assert found.low < found.value < found.high
        assert found.p_value < 0.001
        assert abs(measure.estimate(plain).value - 0.5) < 4 * 0.026


def test_the_exponents_come_back_from_one_session():
    """80 subjects; recovery of 300 has r = .92 to .97, so that .8 is far below for each."""
    model = AGENTS["prospect_theory"]
    theta = model.parameters.draw(np.random.default_rng(2), 80)
    trials = simulate(model, theta, RiskyChoice(), 3)
    found = maximum_a_posteriori(model, ModelData.read(model, trials))
    r = [np.corrcoef(theta[:, k], found.estimate[:, k])[0, 1] for k in range(theta.shape[1])]
    assert min(r) > 0.8
    assert r[model.parameters.index("alpha")] > 0.9


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        ("[]", "at least one; got"),
        ("[[[[50,1]],[[100,0.5],[0,0.4]]]]", "sum to 1.*second gamble of problem 1.*sum 0.9"),
        ("[[[[50,1]],[[100,1.5],[0,-0.5]]]]", "lie above 0 and sum to 1"),
        ("[[[[50,1]],[]]]", "one to 3 pairs"),
        ("[[[[50,1]],[[50,1]]]]", "differ"),
        ("[[[[50,1]]]]", "a pair of gambles"),
        ("[[[[50,0.5],[50,0.5]],[[1,1]]]]", "amounts of a gamble differ"),
        ("everything", "one of prospect, fourfold, mixed"),
    ],
)
def test_bad_problems_are_refused_with_a_sentence(problems, told, knownminds, tmp_path):
    words = ("simulate", "risky_choice", "--model", "expected_value")
    code, _, err = knownminds(*words, "--set", f"problems={problems}", "--out", tmp_path / "x.csv")
    assert code == 2
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=told):
        raise ValueError(" ".join(err.split()))
