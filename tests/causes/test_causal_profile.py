import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AssociativeReasoner, NoisyOr, simulate
from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import noisy_or_table
from knownminds.inference import MEASURES
from knownminds.inference.causes.alignment import POOLED
from knownminds.inference.causes.causal_answers import ROMAN, causal_answers
from knownminds.inference.causes.least_squares_reasoner import leave_one_task_out
from knownminds.validation.causes.causal_page import (
    causal_tables,
    four_panels,
)
from knownminds.validation.causes.causal_profile import causal_profile
from knownminds.validation.data.measured_page import measured_command, measured_page
from knownminds.validation.data.scores_of_trials import read_measured, score

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


def test_fits_are_those_that_predict_left_out_tasks_better():
    found = leave_one_task_out(TRIALS)
    for i, row in enumerate(PROFILE.units.to_dict("records")):
        fit = found.fits[found.chosen[i]]
        assert row["parameters"] == len(fit.names)
        assert row["p"] == fit.estimate[i, 0]
        assert (row["r2"], row["rmse"], row["mae"]) == (fit.r2[i], fit.rmse[i], fit.mae[i])
        assert row["determinacy"] == pytest.approx((row["m1"] + row["m2"]) / 2 - row["b"])


def test_tasks_have_the_answers_and_what_the_noisy_or_makes_of_them():
    own = PROFILE.tasks[PROFILE.tasks["unit"] == "sharp, numeric"].set_index("task")
    assert list(own.index) == list(ROMAN)
    p, b, m1, m2, _ = SHARP
    table = noisy_or_table(p, p, b, m1, m2).mean(axis=1)
    assert np.abs(own["fitted"] - table).max() < 0.03
    assert np.abs(own["foretold"] - table).max() < 0.05
    answers = causal_answers(TRIALS)
    six = answers[(answers["subject"] == "sharp numeric") & (answers["task"] == "VI")]["answer"]
    assert own.loc["VI", "mean"] == pytest.approx(six.mean())
    assert own.loc["VI", "low"] < six.mean() < own.loc["VI", "high"]
    assert own.loc["VI", "question"] == "P(C1 | C2=1, E=1)"


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


def test_score_tells_measures_of_each_agent_and_condition_and_keeps_the_profile(
    tmp_path, monkeypatch
):
    # Drawing takes seconds; the pictures have tests of their own.
    monkeypatch.setattr("knownminds.validation.pages.figures.svg", lambda figure: "<svg/>")
    PEOPLE.save(tmp_path / "people.csv")
    found = score(TRIALS, by="agent", over=["prompt"], reference=tmp_path / "people.csv")
    row = found.table.set_index(["sample", "measure"]).loc[("dull, numeric", "markov_violation")]
    assert (row["unit"], row["n"]) == ("cell", 24)
    assert row["value"] == pytest.approx(unit(PROFILE, "dull, numeric")["markov_violation"])
    found.save(tmp_path / "out")
    again = read_measured(tmp_path / "out")
    assert again.to_dict() == found.to_dict()
    pd.testing.assert_frame_equal(again.causal.units, found.causal.units, check_dtype=False)
    assert str(again) == str(found)
    assert (tmp_path / "out" / "causal_units.csv").is_file()
    command = measured_command(again)
    assert command.endswith("--by agent --over prompt --reference people.csv")
    page = measured_page(again)
    titles = [title for title, _, _ in page.tables]
    assert "Alignment with people.csv" in titles
    assert "Who changes most" in titles
    assert len(page.figures) == 4
    everything = [POOLED in cell for t, _, rows in page.tables for row in rows for cell in row]
    assert any(everything)
