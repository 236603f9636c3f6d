import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AssociativeReasoner, NoisyOr, simulate
from knownminds.environments import Collider, Trials
from knownminds.inference import MEASURES
from knownminds.inference.causes.causal_answers import causal_answers
from knownminds.validation.causes.causal_page import (
    causal_tables,
    four_panels,
)
from knownminds.validation.causes.causal_profile import causal_profile

SHARP, DULL = [0.45, 0.05, 0.9, 0.85, 0.05], [0.5, 0.25, 0.6, 0.6, 0.3, 0.1]
MINDS = {
    ("sharp", "numeric"): (NoisyOr, SHARP),
    ("sharp", "thought"): (NoisyOr, [0.5, 0.03, 0.95, 0.9, 0.05]),
    ("dull", "numeric"): (AssociativeReasoner, DULL),
    ("dull", "thought"): (AssociativeReasoner, [0.5, 0.15, 0.7, 0.7, 0.1, 0.1]),
}


def played():
    parts = []
    for i, ((agent, prompt), (model, theta)) in enumerate(MINDS.items()):
        own = simulate(model, np.array([theta]), Collider(), 7, address=(i,)).to_frame()
        parts.append(own.assign(subject=f"{agent} {prompt}", agent=agent, prompt=prompt))
    return Trials.from_frame(pd.concat(parts, ignore_index=True), environment=Collider())


TRIALS = played()
PEOPLE = simulate(NoisyOr, np.tile([0.4, 0.2, 0.7, 0.7, 0.15], (10, 1)), Collider(), 1)
PROFILE = causal_profile(TRIALS, conditions=["prompt"], reference=PEOPLE)


def unit(profile, name):
    return profile.units.set_index("unit").loc[name]


def test_units_are_agents_in_conditions_with_the_values_of_the_measures():
    assert list(PROFILE.units["unit"]) == [
        "sharp, numeric",
        "sharp, thought",
        "dull, numeric",
        "dull, thought",
    ]
    for name, own in TRIALS.frame.groupby("subject"):
        trials, row = Trials.from_frame(own), unit(PROFILE, name.replace(" ", ", "))
        for measure in (
            "explaining_away",
            "explaining_away_released",
            "markov_violation",
            "determinacy",
            "reasoning_consistency",
        ):
            assert row[measure] == pytest.approx(MEASURES[measure].values(trials).value[0])
        assert row["complies"] == (abs(row["markov_violation"]) <= 0.05)
        assert (row["answers"], row["missing"], row["incomplete"]) == (240, 0, 0)
    assert not unit(PROFILE, "dull, numeric")["complies"]


def test_what_changes_between_conditions_is_paired_over_agents():
    row = PROFILE.differences.set_index("quantity").loc["markov_violation"]
    units = PROFILE.units.set_index(["agent", "prompt"])["markov_violation"].unstack()
    assert row["mean"] == pytest.approx((units["thought"] - units["numeric"]).mean())
    assert row["most"] == "dull"
    ranked = PROFILE.changes.sort_values("change")["agent"]
    assert list(ranked) == ["sharp", "dull"]
    text = str(PROFILE)
    assert "prompt: dull changes most, sharp least" in text
    assert "alignment with the reference (sharp, numeric): rho 0." in text
    assert "(violates)" in text


def test_missing_answers_leave_gaps_that_are_named_and_tasks_that_are_not_foretold():
    answers = causal_answers(TRIALS)
    frame = TRIALS.to_frame()
    sharp = (answers["subject"] == "sharp numeric").to_numpy()
    gone = sharp & answers["task"].isin(["VIII", "III"]).to_numpy()
    silent = (answers["subject"] == "dull thought").to_numpy()
    frame.loc[gone | silent, "response"] = np.nan
    frame.loc[gone | silent, "outcome"] = "refused"
    profile = causal_profile(Trials.from_frame(frame), conditions=["prompt"], reference=PEOPLE)
    row = unit(profile, "sharp, numeric")
    assert np.isnan(row["explaining_away_released"])
    assert np.isfinite([row["explaining_away"], row["reasoning_consistency"]]).all()
    assert (row["missing"], row["incomplete"]) == (gone.sum(), 24)
    assert "no answers to III, VIII" in row["note"]
    assert "no answer to VIII in" in row["note"]
    nobody = unit(profile, "dull, thought")
    assert (nobody["answers"], nobody["parameters"]) == (0, 0)
    assert np.isnan(nobody[["p", "b", "determinacy", "markov_violation"]].astype(float)).all()
    assert nobody["complies"] is None
    assert "dull, thought: no noisy-OR is told, answers to 0 tasks" in str(profile)
    differences = profile.differences.set_index("quantity")
    assert (differences.loc["determinacy", "n"], differences.loc["determinacy", "missing"]) == (
        1,
        1,
    )
    # It is drawn and told all the same.
    assert len(four_panels(profile).axes) == 8
    assert any("no answers" in cell for _, _, rows in causal_tables(profile) for cell in rows[0])
