"""All tests of coherence for a file: `knownminds score` of answers to diagnosis."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.validation.benchmarks.scored import score_of_paper
from knownminds.validation.data.questions import AskScore
from knownminds.validation.diagnosis.coherence_tests import TESTS

MIND = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0, "d": 1.0,
        "s_between": 0.2, "s_report": 0.05}  # fmt: skip
PEOPLE = {
    "random_utility": {},
    "outcome_peeker": {"delta": 0.5},
    "incoherent_believer": {"kappa": 0.5},
}
FEW = {"learner": "tree", "permutations": 99, "bootstraps": 40}  # quick


def answered(model, place, **dial):
    values = {**MIND, **dial}
    theta = np.array([[values[name] for name in AGENTS[model].parameters.names]])
    return simulate(AGENTS[model], theta, place, 5).to_frame().assign(model=model, session=model)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    place = make("diagnosis", n_contexts=100, repeats=3)
    frames = [answered(model, place, **dial) for model, dial in PEOPLE.items()]
    table = pd.concat(frames, ignore_index=True)
    lost = table.index[table["question"] == 1][:2]
    table.loc[lost, "action"] = np.nan
    table.loc[lost, "outcome"] = "malformed"
    path = tmp_path_factory.mktemp("answers") / "models.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def question(file):
    return AskScore([file], **FEW)


@pytest.fixture(scope="module")
def result(question):
    return score_of_paper(question)


@pytest.fixture(scope="module")
def battery(result):
    parts = ("independence", "monotone", "elicitation", "iterated")
    return pd.concat([result.part(name).rows for name in parts], ignore_index=True)


def row(battery, who, test, of=""):
    table = battery
    own = table[(table["participant"] == who) & (table["test"] == test) & (table["of"] == of)]
    assert len(own) == 1
    return own.iloc[0]


@pytest.mark.long
def test_every_participant_has_every_test_with_its_published_variant(battery) -> None:
    for who in PEOPLE:
        own = battery[battery["participant"] == who]
        assert set(own["test"]) == set(TESTS)
        tested = own[own["p_value"].notna()]
        assert len(tested) == 11
        numbers = tested[["value", "low", "high", "null", "published", "n"]]
        assert np.isfinite(numbers.to_numpy()).all()
        assert (tested["low"] <= tested["high"]).all()


def test_violators_are_found_out_by_their_test_alone(battery) -> None:
    rejected = {
        who: {
            str(test["test"])
            for test in battery[battery["participant"] == who].to_dict("records")
            if test["p_value"] <= 0.01
        }
        for who in PEOPLE
    }
    assert rejected["random_utility"] == set()
    assert rejected["outcome_peeker"] == {"conditional independence", "predictive gain"}
    assert rejected["incoherent_believer"] == {"iterated expectation"}


def test_what_is_missing_is_left_out_and_counted_where_it_belongs(battery, result) -> None:
    asked = result.part("answers").rows
    asked = asked[asked["kind"] == "decision"].set_index("participant")
    assert (asked["questions"] - asked["read"]).tolist() == [2, 0, 0]
    first = row(battery, "random_utility", "conditional independence")
    assert (first["n"], first["excluded"]) == (298, "2 no action")
    gap = row(battery, "random_utility", "iterated expectation", "parts over whole")
    assert gap["excluded"] == ""
    assert result["Outcomes"].loc["random_utility", "malformed"] == 2
