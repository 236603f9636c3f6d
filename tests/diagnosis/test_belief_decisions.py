"""From trials to one row per context and repetition, and what is wrong with trials."""

import numpy as np
import pandas as pd
import pytest
from deciders import decided, trials_of

from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions


@pytest.fixture
def trials() -> pd.DataFrame:
    return trials_of(decided(1, contexts=6, repetitions=2))


def with_parts(trials: pd.DataFrame) -> pd.DataFrame:
    whole = trials[trials["question"] == 1]
    parts = [
        whole.assign(question=q, part=j, action=np.nan, response=0.1 * q + 0.2 * j, posterior=0.4)
        for q in (2, 3)
        for j in (0, 1)
    ]
    return pd.concat([trials, *parts], ignore_index=True)


def test_each_context_and_repetition_has_one_row_with_all_that_was_asked(
    trials: pd.DataFrame,
) -> None:
    given = decided(1, contexts=6, repetitions=2).frame
    for frame in (trials, trials.sample(frac=1, random_state=1)):
        found = BeliefDecisions.read(frame).frame.sort_values(["context", "repetition"])
        for name in ("state", "posterior", "action", "plain", "squared"):
            assert found[name].tolist() == given[name].tolist()
    assert found["bayesian"].isna().all()


def test_parts_stand_beside_what_is_exact_of_them(trials: pd.DataFrame) -> None:
    found = BeliefDecisions.read(with_parts(trials))
    assert found.parts == (0, 1)
    assert found.frame["given_1"].tolist() == pytest.approx([0.5] * 12)
    assert found.frame["part_0"].tolist() == pytest.approx([0.2] * 12)
    assert found.frame["exact_part_1"].tolist() == [0.4] * 12


def test_what_is_missing_is_counted_by_question(trials: pd.DataFrame) -> None:
    trials.loc[trials.index[trials["question"] == 1][:3], "action"] = np.nan
    trials.loc[trials.index[trials["question"] == 0][:1], "response"] = np.nan
    found = BeliefDecisions.read(trials)
    assert found.missing == {"action": 3, "plain": 1, "squared": 0}
    assert found.asked == {"action": 12, "plain": 12, "squared": 12}
    assert "3 of 12 action missing" in str(found)
    held, excluded = found.complete("action", "plain")
    assert len(held) == 9
    assert excluded == {"no action": 3}


def test_participants_are_told_apart_and_contexts_belong_to_sessions(trials: pd.DataFrame) -> None:
    two = pd.concat(
        [trials.assign(model="a"), trials.assign(model="b", session="1")], ignore_index=True
    )
    found = BeliefDecisions.read(two, by="model")
    assert found.participants == ("a", "b")
    assert found.context.max() == 11
    assert [(name, len(part)) for name, part in found.each()] == [("a", 12), ("b", 12)]
    two.loc[two["model"] == "b", "response"] = np.nan
    gaps = {name: part.missing for name, part in BeliefDecisions.read(two, by="model").each()}
    assert gaps["a"] == {"action": 0, "plain": 0, "squared": 0}
    assert gaps["b"] == {"action": 0, "plain": 12, "squared": 12}


def test_contexts_are_drawn_whole() -> None:
    data = decided(2, contexts=10, repetitions=3)
    drawn = data.resampled(20, seed=1)
    assert (drawn.sum(axis=1) == 30).all()
    assert (np.diff(drawn.reshape(20, 10, 3), axis=2) == 0).all()
