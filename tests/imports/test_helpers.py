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
