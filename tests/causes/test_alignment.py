import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from knownminds.agents import NoisyOr, simulate
from knownminds.environments import Collider
from knownminds.inference.causes.alignment import POOLED, alignment, spearman
from knownminds.inference.causes.causal_answers import CELL, causal_answers

MIND = np.array([0.3, 0.1, 0.8, 0.6, 0.1])


@pytest.fixture(scope="module")
def trials():
    return simulate(NoisyOr, np.tile(MIND, (2, 1)), Collider(), 0)


@pytest.fixture(scope="module")
def people():
    return simulate(NoisyOr, np.tile([0.4, 0.2, 0.7, 0.7, 0.15], (20, 1)), Collider(), 1)


def test_correlations_of_resampled_items_are_those_of_scipy():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 40).astype(float)  # with ties
    y = x + rng.integers(0, 9, 40)
    chosen = rng.integers(0, 40, (50, 40))
    found = spearman(x[chosen], y[chosen])
    assert np.allclose(found, [spearmanr(x[row], y[row]).statistic for row in chosen])


def test_rho_is_spearmans_of_the_cells_that_both_answered(trials, people):
    found = alignment(trials, people, resamples=200)
    own = causal_answers(trials)
    own = own[own["subject"] == "1"].set_index(list(CELL))["answer"]
    theirs = causal_answers(people).groupby(list(CELL))["answer"].mean()
    both = own.to_frame("own").join(theirs.rename("people"))
    row = found[(found["agent"] == "1") & (found["domain"] == POOLED)].iloc[0]
    assert row["rho"] == pytest.approx(spearmanr(both["own"], both["people"]).statistic)
    assert (row["items"], row["unmatched"]) == (240, 0)
    weather = both.loc["weather"]
    row = found[(found["agent"] == "1") & (found["domain"] == "weather")].iloc[0]
    assert row["rho"] == pytest.approx(spearmanr(weather["own"], weather["people"]).statistic)
    assert row["items"] == 80


@pytest.mark.long
def test_intervals_hold_the_correlation_of_the_population_of_items():
    # 120 agents and as many references: cells of a pair have the normal correlation .6.
    rng = np.random.default_rng(2)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    cells = [(f"domain {d}", "", "C1", f"item {i}") for d in range(120) for i in range(80)]
    table = pd.DataFrame(cells, columns=list(CELL)).assign(subject="one")
    x, z = rng.standard_normal((2, len(table)))
    mine, theirs = table.assign(answer=x), table.assign(answer=0.6 * x + 0.8 * z)
    found = alignment(mine, theirs, resamples=300)
    found = found[found["domain"] != POOLED]
    held = ((found["low"] < truth) & (truth < found["high"])).mean()
    assert 0.88 < held < 1.0  # binomial sd .02 at 95%


def test_items_without_an_answer_or_a_reference_are_counted(trials, people):
    frame = trials.to_frame()
    frame = frame[frame["subject"] == "0"]
    frame["response"] = frame["response"].where(np.arange(240) % 24 > 0)
    theirs = causal_answers(people)
    found = alignment(frame, theirs[theirs["sense"] != "ppp"], resamples=50).iloc[0]
    lost = (np.arange(240) % 24 == 0) | (frame["sense"] == 0).to_numpy()
    assert (found["items"], found["unmatched"]) == (240 - lost.sum(), lost.sum())


def test_flat_answers_and_too_few_items_have_a_reason_instead_of_a_number(trials, people):
    flat = trials.frame.assign(response=50.0)
    found = alignment(flat, people, resamples=20)
    assert set(found["status"]) == {"all answers are the same"}
    assert found["rho"].isna().all()
    few = trials.frame[:2]
    assert alignment(few, people)["status"].str.startswith("fewer than 3 items").all()
