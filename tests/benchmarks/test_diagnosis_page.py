"""The page of diagnosis: each number by a route of its own, and data with gaps."""

import numpy as np
import pytest
from benchmark_pages import everyone_everywhere
from scipy.stats import t as student

from knownminds.agents import RandomUtility, simulate
from knownminds.environments import Diagnosis
from knownminds.environments.conditions import conditions_of
from knownminds.validation.benchmarks.diagnosis import PAPER
from knownminds.validation.benchmarks.paper import About

pytestmark = pytest.mark.long

PLACES = {
    f"diagnosis/{name}": Diagnosis(network=name, n_contexts=60, repeats=3)
    for name in ("crying", "fever")
}
MIND = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0, "d": 1.0,
        "s_between": 0.2, "s_report": 0.05}  # fmt: skip
MINDS = {"sound": {}, "noisy": {"s_report": 0.6, "c": 0.5}}


def lived(who, cell, seed):
    values = {**MIND, **MINDS[who]}
    theta = np.array([[values[name] for name in RandomUtility.parameters.names]])
    frame = simulate(RandomUtility, theta, PLACES[cell], seed).to_frame()
    told = {"participant": who, "cell": cell, "environment": "diagnosis"}
    return frame.assign(**conditions_of(PLACES[cell]), **told, subject=f"{who}/{cell}")


@pytest.fixture(scope="module")
def trials():
    return everyone_everywhere(lived, MINDS, PLACES, 5)


@pytest.fixture(scope="module")
def page(trials):
    options = {"learner": "tree", "permutations": 40, "bootstraps": 40}
    parts, *_ = PAPER.parts(trials, About(PLACES, tuple(MINDS), options=options))
    for part in parts:
        for drawing in part.figures.values():
            drawing.figure()
    return {part.name: part for part in parts}


def answers(trials, who, cell, question, elicitation=0):
    own = trials[
        (trials["participant"] == who)
        & (trials["cell"] == cell)
        & (trials["question"] == question)
        & (trials["elicitation"] == elicitation)
    ]
    return own.assign(response=own["response"].astype(float))


def test_calibration_is_the_distance_from_the_exact_posterior(trials, page):
    both = page["calibrated"].rows
    rows = both[both["what"] == "RMSE"]
    bias = both[both["what"] == "bias"]["value"].to_list()
    assert len(rows) == 2 * 2 * 4
    for row, mean_off in zip(rows.to_dict("records"), bias, strict=True):
        code = ("plain", "squared", "absolute", "bayesian").index(row["elicitation"])
        own = answers(trials, row["participant"], row["cell"], 0, code)
        off = own["response"] - own["posterior"]
        square = (off**2).groupby(own["context"]).mean()
        assert row["value"] == pytest.approx(np.sqrt(square.mean()))
        half = student.ppf(0.975, len(square) - 1) * square.sem()
        for end in (row["low"] ** 2, row["high"] ** 2):  # between 0 and 1, as Wilson's
            room = end * (1 - end) / (square.mean() * (1 - square.mean()))
            assert abs(end - square.mean()) == pytest.approx(half * np.sqrt(room), rel=1e-6)
        assert mean_off == pytest.approx(off.groupby(own["context"]).mean().mean())
        assert (row["contexts"], row["answers"]) == (60, 180)
    told = page["calibrated"].tables["RMSE, averaged over data sets"]["plain"]
    plain = rows[rows["elicitation"] == "plain"].groupby("participant")["value"].mean()
    for who in MINDS:
        assert told.loc[who].item() == pytest.approx(plain[who])
    assert plain["noisy"] > plain["sound"] + 0.05


def test_elicitations_and_parts_are_those_of_plain_arithmetic(trials, page):
    rows = page["elicitation"].rows
    own = answers(trials, "noisy", "diagnosis/fever", 0)
    by = own.groupby("context")["response"]
    row = rows[(rows["participant"] == "noisy") & (rows["data_set"] == "fever")]
    row = row.set_index("of")
    assert row.loc["sd of plain", "value"] == pytest.approx(by.std(ddof=1).mean(), rel=0.2)
    other = answers(trials, "noisy", "diagnosis/fever", 0, 1).groupby("context")["response"]
    apart = np.sqrt(((other.mean() - by.mean()) ** 2).mean())
    assert row.loc["squared", "value"] == pytest.approx(apart)
    parts = trials[(trials["participant"] == "noisy") & (trials["cell"] == "diagnosis/fever")]
    key = ["context", "repetition", "part"]
    given, share = (
        parts[parts["question"] == q].set_index(key)["response"].astype(float) for q in (3, 4)
    )
    whole = own.set_index(["context", "repetition"])["response"]
    # Shares are told of each part; the last one's is what they leave to 1, if it is not asked.
    total = (given * share).groupby(level=[0, 1]).sum()
    ratio = ((whole - total).abs() / whole.where(whole > 0)).dropna()
    told = page["iterated"].rows
    found = told[(told["participant"] == "noisy") & (told["data_set"] == "fever")].iloc[0]
    assert found["published"] == pytest.approx(ratio.median(), rel=0.1)
    assert found["published_low"] <= found["published"] <= found["published_high"]


def test_independence_has_three_intervals_and_one_test(page):
    rows = page["independence"].rows
    own = rows[(rows["test"] == "conditional independence") & (rows["of"] == "")]
    assert len(own) == 4
    middle = (own["published_low"] + own["published_high"]) / 2
    assert np.allclose(middle, own["value"])  # Wald
    assert not np.allclose((own["percentile_low"] + own["percentile_high"]) / 2, own["value"])
    assert own["p_value"].between(0, 1).all()
    table = page["independence"].tables["Conditional mutual information"]
    assert {"estimate", "Wald, published", "percentile", "p"} <= set(table)
    assert "learnt by tree" in page["independence"].text


def test_utilities_of_known_agents_are_found(page):
    rows = page["fits"].rows
    assert len(rows) == 2 * 2 * 3
    sound = rows[(rows["participant"] == "sound") & (rows["fitted"] == "random_utility")]
    for name in ("u_yes_1", "u_yes_0", "u_defer_1", "u_defer_0"):
        error = (sound[f"{name}_high"] - sound[f"{name}_low"]) / 3.29  # of 90%
        assert ((sound[name] - MIND[name]).abs() < 4 * error).all(), name
    first = rows.set_index(["participant", "data_set", "fitted"])["log_evidence"]
    for row in rows.to_dict("records"):
        key = (row["participant"], row["data_set"])
        apart = first[(*key, row["fitted"])] - first[(*key, "random_utility")]
        assert row["over_rum"] == pytest.approx(apart)
