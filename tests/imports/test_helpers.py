"""What experts would otherwise write: blocks from means, questionnaires from answers."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import RestlessBandit, TemporalDiscounting, Trials, blocks_of_means
from knownminds.inference import MEASURES
from knownminds.validation.data.exchange import run_import
from knownminds.validation.data.questions import AskImport
from knownminds.validation.imports.discounting_answers import questions_of_answers
from knownminds.validation.imports.mapping import read_map

PLACE = TemporalDiscounting()


@pytest.fixture(scope="module")
def answered():
    model = AGENTS["hyperbolic_discounter"]
    theta = model.parameters.draw(np.random.default_rng(4), 25)
    return simulate(model, theta, PLACE, 4).frame


def test_answers_to_items_tell_which_sums_were_on_offer(answered):
    told = questions_of_answers(answered[["subject", "session", "item", "action"]], PLACE)
    columns = ["trial", "item", "sooner_amount", "sooner_delay", "later_amount", "later_delay"]
    for column in columns:
        assert told[column].tolist() == answered[column].tolist()


def test_a_questionnaire_is_imported_from_its_items_and_scored(answered, tmp_path):
    file = tmp_path / "q.csv"
    words = answered["action"].map({0: "now", 1: "wait"})
    pd.DataFrame({"who": answered["subject"], "q": answered["item"] + 1, "said": words}).to_csv(
        file, index=False
    )
    told = read_map(["subject=who,item=q,action=said", "q: from 1", "said: now=0,wait=1"])
    found = run_import(AskImport([file], environment="temporal_discounting", mapping=told))
    derived = [one.what for one in found.account.entries if one.kind == "derived"]
    assert "sums and delays, from the answers before" in derived
    measure = MEASURES["temporal_discounting"]
    there = measure.values(Trials.from_frame(answered, environment=PLACE)).value
    np.testing.assert_array_equal(measure.values(found.answered).value, there)


def test_blocks_are_found_where_the_means_change_places(tmp_path):
    place = RestlessBandit()
    model = AGENTS["change_point_observer"]
    played = simulate(model, model.parameters.draw(np.random.default_rng(0), 3), place, 2).frame
    found = blocks_of_means(played["mean_0"], played["mean_1"], played["subject"].to_numpy())
    assert found.tolist() == played["block"].tolist()
    file = tmp_path / "r.csv"
    kept = ["subject", "trial", "action", "response", "reward", "mean_0", "mean_1"]
    played[kept].rename(columns={"response": "sure"}).to_csv(file, index=False)
    told = read_map(["subject=subject,response=sure"])
    back = run_import(AskImport([file], environment="restless_bandit", mapping=told))
    assert back.answered.frame["block"].tolist() == played["block"].tolist()


def test_a_map_that_is_saved_keeps_the_experiment_and_its_settings(tmp_path, knownminds):
    file, kept = tmp_path / "casino.csv", tmp_path / "map.toml"
    file.write_text("who,n,ctx,ch,win\na,0,0,0,1\na,1,0,1,0\nb,0,0,1,1\nb,1,0,0,0\n")
    code, out, err = knownminds(
        "import", file, "--environment", "instrumental_learning", "--set", "n_visits=2",
        "--set", "win_probability=[[0.25,0.75]]", "--save-map", kept,
        "--map", "subject=who,trial=n,context=ctx,action=ch,reward=win",
    )  # fmt: skip
    assert code == 0, err
    assert "2 subjects, 2 sessions, 4 trials (4 ok)" in out  # also where nothing is written
    code, out, err = knownminds("import", file, "--map", kept)
    assert code == 0, err
    assert "instrumental_learning: 2 subjects" in out


def test_a_file_with_our_names_is_checked_and_may_have_codes_for_no_answer(tmp_path, knownminds):
    file, whose = tmp_path / "ours.csv", ("--environment", "instrumental_learning")
    head = "subject,environment,trial,context,action,reward\n"
    file.write_text(head + "a,instrumental_learning,0,0,1,7\na,instrumental_learning,1,0,1,1\n")
    code, _, err = knownminds("import", file)
    assert code == 2
    assert "Rewards are 0 or 1" in err
    file.write_text("subject,trial,context,action,reward\na,0,0,1,1\na,1,0,-1,\n")
    code, out, err = knownminds("import", file, "--missing", "-1", *whose)
    assert code == 0, err
    assert "1 ok, 1 empty" in out
