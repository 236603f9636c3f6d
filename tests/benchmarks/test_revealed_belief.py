"""The page of revealed belief: each number by a route of its own, and data with gaps."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import everyone_everywhere
from scipy.stats import spearmanr
from scipy.stats import t as student

from knownminds.agents import BeliefSampler, simulate
from knownminds.environments import Choice, Coins, Dice, Preference, Session, session_stream
from knownminds.environments.conditions import conditions_of
from knownminds.inference.chance.belief_contexts import baseline_of, increases
from knownminds.validation.benchmarks.paper import About
from knownminds.validation.benchmarks.revealed_belief import PAPER

pytestmark = pytest.mark.long

PLACES = {
    f"{one.name}/{form}": one
    for form in ("continuation", "stated")
    for one in (
        Dice(1, 6, form=form),
        Coins(2, form=form, weights=(1, 3)),
        Choice(4, form=form),
        Preference(form=form, weights=(1,)),
    )
}
MINDS = {"even": {}, "leaning": {"bias_first": 1.0, "bias_repeat": 1.5}}
DRAWS = 12


def lived(who, cell, seed):
    place = PLACES[cell]
    if place.form == "stated":
        rows, rng = [], np.random.default_rng(seed)
        session = Session(place, place.draw(session_stream(seed)))
        for seen in session:
            right = who == "even" or rng.random() < 0.4
            action = seen["correct"] if right else (seen["correct"] + 1) % 5
            rows.append({**seen, "action": int(action), "outcome": "ok"})
            session.take(int(action))
        frame = pd.DataFrame(rows).assign(subject=f"{who}/{cell}", session="0")
    else:
        names = BeliefSampler.parameters.names
        theta = {name: 1.0 if name == "temperature" else 0.0 for name in names} | MINDS[who]
        theta = {name: theta[name] for name in names}
        frame = simulate(
            BeliefSampler, np.tile(list(theta.values()), (DRAWS, 1)), place, seed
        ).to_frame()
        frame["subject"] = frame["subject"].astype(str) + f"/{who}/{cell}"
    told = {"participant": who, "cell": cell, "environment": place.name, "experiment": place.name}
    return frame.assign(**conditions_of(place), **told)


@pytest.fixture(scope="module")
def trials():
    return everyone_everywhere(lived, MINDS, PLACES, 7)


@pytest.fixture(scope="module")
def page(trials):
    parts, *_ = PAPER.parts(trials, About(PLACES, tuple(MINDS)))
    for part in parts:
        for drawing in part.figures.values():
            drawing.figure()
    return {part.name: part for part in parts}


def counts_of(trials, who, **where):
    """How often each action was taken in a context, and how many there are."""
    own = trials[(trials["participant"] == who) & (trials["form"] == "continuation")]
    for name, value in where.items():
        own = own[own[name] == value]
    return np.bincount(own["action"].astype(int), minlength=0), len(own)


def test_distances_are_those_of_plain_counts(trials, page):
    rows = page["contexts"].rows
    named = rows[(rows["participant"] == "leaning")].set_index("words")
    counts, n = counts_of(trials, "leaning", environment="dice", kind=0)
    assert n == DRAWS
    share = np.append(counts, np.zeros(6 - len(counts))) / n
    row = named.loc["one die of 6 faces, thrown once"]
    assert row["chebyshev"] == pytest.approx(np.abs(share - 1 / 6).max())
    assert row["manhattan"] == pytest.approx(np.abs(share - 1 / 6).sum())
    p, q = ((x + 1e-6) / (1 + 6e-6) for x in (np.full(6, 1 / 6), share))
    assert row["kl_sum"] == pytest.approx(((p - q) * np.log(p / q)).sum())
    # A mean over the contexts of a part, with Student's interval before it is bounded.
    distances = page["distances"].rows
    part = rows[(rows["participant"] == "leaning") & rows["words"].str.contains("thrown again")]
    found = distances[
        (distances["participant"] == "leaning")
        & (distances["variant"] == "dice, independent")
        & (distances["measure"] == "chebyshev")
        & distances["size"].isna()
    ].iloc[0]
    assert found["n"] == len(part) == 3
    assert found["value"] == pytest.approx(part["chebyshev"].mean())
    assert found["low"] < found["value"] < found["high"]


def test_noise_is_what_draws_of_the_truth_show(page):
    """Two coins, 12 draws: the mean largest difference by enumerating all outcomes."""
    distances = page["distances"].rows
    truth = np.array([0.25, 0.5, 0.25])
    mean = second = 0.0
    for a in range(DRAWS + 1):
        for b in range(DRAWS + 1 - a):
            c = DRAWS - a - b
            ways = comb(DRAWS, a) * comb(DRAWS - a, b)
            weight = ways * np.prod(truth ** np.array([a, b, c]))
            largest = np.abs(np.array([a, b, c]) / DRAWS - truth).max()
            mean, second = mean + weight * largest, second + weight * largest**2
    found = distances[
        (distances["variant"] == "coins, single")
        & (distances["size"] == "2 coins, 1 to 1")
        & (distances["measure"] == "chebyshev")
    ]["noise"]
    error = np.sqrt((second - mean**2) / 400)  # of the samples that are drawn
    assert np.abs(found - mean).max() < 4 * error


def test_increase_is_over_the_context_without_a_past(page):
    contexts = page["contexts"].rows
    named = contexts[contexts["participant"] == "even"].set_index("words")["chebyshev"]
    own = contexts[contexts["participant"] == "even"].set_index("words")
    after, before = (
        "one of four options, picked again; B the first time",
        "one of four options, picked once",
    )
    assert own.loc[after, "increase"] == pytest.approx(named[after] - named[before])
    told = "two coins"
    plain = [name for name in own.index if told in name and name.endswith("tossed once")]
    assert own.loc[plain, "increase"].isna().all()
    name = "coins 2, face 1, weight 3, kind 2, previous 0"
    assert baseline_of("coins", name) == "coins 2, face 1, weight 3, kind 0, previous -1"
    alone = pd.DataFrame({"scenario": ["coins"], "context": [name], "x": [1.0]})
    assert np.isnan(increases(alone, "x")["increase"].iloc[0])


def test_excluded_mass_is_the_share_of_impossible_sums(trials, page):
    rows = page["contexts"].rows
    rows = rows[rows["excluded_outcomes"] > 0]
    row = rows[
        (rows["participant"] == "leaning")
        & (rows["words"] == "one die of 6 faces, the number is even")
    ].iloc[0]
    own = trials[
        (trials["participant"] == "leaning")
        & (trials["environment"] == "dice")
        & (trials["form"] == "continuation")
        & (trials["kind"] == 3)
        & (trials["observation"] == 2)
    ]
    assert row["excluded"] == pytest.approx((own["action"].astype(int) % 2 == 0).mean())
    assert row["excluded_outcomes"] == 3
    assert rows["variant"].str.endswith("known").all()


def test_stated_answers_are_scored_and_set_beside_revealed_ones(trials, page):
    stated = page["stated"].rows.set_index(["participant", "variant"])
    assert (stated.loc["even"]["value"] == 0).all()
    own = trials[(trials["participant"] == "leaning") & (trials["form"] == "stated")]
    dice = own[(own["environment"] == "dice") & (own["kind"] == 4)]
    wrong = (dice["action"].astype(int) != dice["correct"]).to_numpy()
    row = stated.loc[("leaning", "dice, two known")]
    assert row["value"] == pytest.approx(wrong.mean())
    assert row["n"] == len(dice) == 10
    assert 0 <= row["low"] < row["value"] < row["high"] <= 1
    both = page["both_ways"].rows
    mine = both[both["participant"] == "even"]
    # Whoever gives the right letter states the truth to three decimals.
    assert np.abs(mine["stated"] - mine["truth"]).max() <= 5.1e-4
    table = page["both_ways"].tables["Stated against revealed"]
    line = table.loc[("leaning", "continuation", "all")]
    theirs = both[both["participant"] == "leaning"]
    rho = spearmanr(theirs["revealed"].round(9), theirs["stated"].round(9)).statistic
    told = line["rank correlation"]
    assert told.value == pytest.approx(rho)
    assert told.low < told.value < told.high
    error = (theirs["stated"] - theirs["truth"]).abs()
    half = student.ppf(0.975, len(error) - 1) * error.sem()
    found = line["error, stated"]
    assert (found.value, found.low, found.high) == pytest.approx(
        (error.mean(), error.mean() - half, error.mean() + half)
    )


def test_biases_are_found_in_who_has_them(page):
    rows = page["biases"].rows.set_index(["participant", "scenario", "mark"])
    assert rows.loc[("leaning", "dice", "first"), "low"] > 0
    # 12 draws in each of 23 contexts: an even mind's bias is 0 but for 4 standard errors.
    even = rows.loc[("even", "dice", "first")]
    assert abs(even["value"]) < 4 * np.sqrt(0.25 * 0.75 / (12 * 23)) + 0.02


def test_instructed_models_stand_beside_their_base_models(trials, tmp_path):
    features = pd.DataFrame({"participant": ["even", "leaning"], "base_model": ["m", "m"],
                             "instructed": [0, 1]})  # fmt: skip
    features.to_csv(tmp_path / "features.csv", index=False)
    about = About(PLACES, tuple(MINDS), features=tmp_path / "features.csv")
    parts = {part.name: part for part in PAPER.parts(trials, about)[0]}
    rows = parts["instructed"].rows.set_index("variant")
    contexts = parts["contexts"].rows
    contexts = contexts[contexts["variant"] == "dice, independent"]
    wide = contexts.pivot(index="context", columns="participant", values="chebyshev")
    gap = (wide["leaning"] - wide["even"]).dropna()
    row = rows.loc["dice, independent"]
    half = student.ppf(0.975, len(gap) - 1) * gap.std() / np.sqrt(len(gap))
    assert [row["value"], row["high"]] == pytest.approx([gap.mean(), gap.mean() + half])
    assert row["instructed 50%"] == pytest.approx(wide["leaning"].median())
    assert row["contexts"] == len(gap) == 3
