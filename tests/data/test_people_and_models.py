"""People and models in one table: whoever is in it scores what it scores alone."""

import numpy as np
import pandas as pd
import pytest

from knownminds import score
from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.validation.data.trials_of_runs import read_all

# Of each experiment a player, the sizes of a model's session and of people's, what people's files
# lack, and measures.
CASES = {
    "horizon": ("horizon_explorer", {"n_games": 90}, {"n_games": 120}, ["first", "forced_1"],
                ("directed_exploration", "performance")),
    "balloon_risk": ("balloon_pumper", {"n_balloons": 12}, {"n_balloons": 40}, [],
                     ("risk", "performance")),
    "line_ratio": ("linear_observer", {"repeats": 1}, {"repeats": 4}, ["condition", "unit"],
                   ("normalised_error", "regression_to_the_mean")),
}  # fmt: skip


def written(folder, name, bare):
    """Write a model's file and one of people, whose sessions are longer and who are not named."""
    who, *settings, without, _ = CASES[name]
    files = []
    for file, subjects, setting in zip(("engine", "people"), (1, 3), settings, strict=True):
        theta = AGENTS[who].parameters.draw(np.random.default_rng(len(file)), subjects)
        place = make(name, **setting)
        frame = simulate(AGENTS[who], theta, place, seed=subjects).frame
        named = frame.assign(model="gpt-9")
        frame = named if file == "engine" else frame.drop(columns=without)
        trials = Trials.from_frame(frame, environment=place if file == "engine" else None)
        if file == "people" and not bare:
            trials.frame.attrs["environment_settings"] = {name: place.settings}
        files.append(str(folder / f"{file}.csv"))
        trials.save(files[-1])
    return files


def values(files, measures):
    table = score(files, measures=list(measures)).tables["Measures"]
    return {(row["participant"], row["measure"]): row["value"] for _, row in table.iterrows()}


@pytest.mark.parametrize("bare", [False, True], ids=["with settings", "without settings"])
@pytest.mark.parametrize("name", CASES)
def test_people_are_a_participant_beside_a_model_whatever_their_length(name, bare, tmp_path):
    files, measures = written(tmp_path, name, bare), CASES[name][-1]
    together = values(files, measures)
    for file, who in zip(files, ("gpt-9", "people"), strict=True):
        alone = values([file], measures)
        for measure in measures:
            [value] = [v for (_, m), v in alone.items() if m == measure]
            # 1e-6: fits in one batch end within the optimiser's tolerance of those alone.
            assert together[who, measure] == pytest.approx(value, abs=1e-6)
    if name == "balloon_risk":
        assert together == values(files[::-1], measures)


def test_columns_that_follow_from_others_are_filled_in_file_by_file(tmp_path):
    frame = read_all(written(tmp_path, "line_ratio", bare=False), None)
    assert frame.groupby("model").size().to_dict() == {"gpt-9": 33, "people": 396}
    assert (frame["condition"] == 0).all()


def test_designs_that_differ_in_more_than_their_length_are_refused(tmp_path):
    files = written(tmp_path, "horizon", bare=False)
    people = pd.read_csv(files[1])
    people["environment_settings"] = people["environment_settings"].str.replace(
        '"long_horizon": 6', '"long_horizon": 7'
    )
    people.to_csv(files[1], index=False)
    with pytest.raises(ValueError, match="engine has long_horizon=6 and people has 7"):
        score(files)


def test_an_experiment_without_measures_is_named(tmp_path):
    place = make("coins")
    theta = AGENTS["belief_sampler"].parameters.draw(np.random.default_rng(0), 1)
    simulate(AGENTS["belief_sampler"], theta, place, seed=0).save(file := tmp_path / "coins.csv")
    with pytest.raises(ValueError, match="No measure is read off coins"):
        score([str(file)])


def test_answers_under_several_conditions_are_rows_of_their_own(tmp_path):
    [engine, _] = written(tmp_path, "line_ratio", bare=False)
    parts = {}
    for reasoning, shift in (("none", 0.0), ("chain_of_thought", 0.1)):
        frame = pd.read_csv(engine, dtype={"session": str})
        shifted = (frame["response"] + shift).clip(upper=1.0)
        parts[reasoning] = frame.assign(reasoning=reasoning, session=reasoning, response=shifted)
        parts[reasoning].to_csv(tmp_path / f"{reasoning}.csv", index=False)
    pd.concat(parts.values()).to_csv(tmp_path / "whole.csv", index=False)
    measures = ["performance"]
    together = values([str(tmp_path / "whole.csv")], measures)
    for reasoning in parts:
        [alone] = values([str(tmp_path / f"{reasoning}.csv")], measures).values()
        assert together[f"reasoning={reasoning}", "performance"] == pytest.approx(alone)
    assert len(together) == 2
