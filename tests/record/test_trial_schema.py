"""The published schema says what the code does, and every file that is saved keeps to it."""

import json

import numpy as np
import pandas as pd
import pytest
from played import played, short
from pyarrow import parquet

from knownminds.environments import (
    COLUMNS,
    ENVIRONMENTS,
    SCHEMA_VERSION,
    Outcome,
    Trials,
    make,
    trial_schema,
)

jsonschema = pytest.importorskip("jsonschema", reason="JSON Schemas are checked by jsonschema")


def validator(environment=None):
    schema = trial_schema(environment).to_dict()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def rows_of(trials):
    return json.loads(trials.to_json())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_saved_file_keeps_to_the_schema_of_its_experiment(name, tmp_path):
    trials = Trials.from_frame(played(name).frame.head(60))
    for suffix in (".csv", ".parquet"):
        trials.save(tmp_path / f"t{suffix}")
        rows = rows_of(Trials.load(tmp_path / f"t{suffix}"))
        for check in (validator(), validator(short(name))):
            assert [e.message for e in check.iter_errors(rows)] == []


@pytest.mark.parametrize(
    "change",
    [
        {"action": 2},
        {"action": None},
        {"outcome": "refused"},
        {"outcome": "fine"},
        {"subject": None},
        {"trial": "first"},
        {"input_tokens": -1},
        {"colour": ["red"]},
    ],
    ids=str,
)
def test_a_row_that_breaks_a_rule_is_found_by_schema_and_by_code_alike(change):
    place = short("instrumental_learning")
    rows = rows_of(played("instrumental_learning"))
    assert validator(place).is_valid(rows)
    wrong = [rows[0] | change, *rows[1:]]
    assert not validator(place).is_valid(wrong)
    if "colour" not in change:  # a list in a cell is no table
        with pytest.raises(ValueError, match=r"."):
            Trials.from_frame(pd.DataFrame(wrong), environment=place)


def test_a_column_that_must_be_there_is_demanded():
    place = short("instrumental_learning")
    rows = rows_of(played("instrumental_learning"))
    for name in ("subject", "trial", "outcome", "action", "context"):
        without = [{k: v for k, v in row.items() if k != name} for row in rows]
        assert not validator(place).is_valid(without), name
    assert not validator().is_valid([])


def test_a_trial_without_an_answer_has_no_action_and_says_why():
    frame = pd.DataFrame({"subject": ["a", "a"], "trial": [0, 1], "action": [1, None]})
    trials = Trials.from_frame(frame.assign(outcome=["ok", "refused"]))
    assert validator().is_valid(rows_of(trials))
    wrong = [rows_of(trials)[0], rows_of(trials)[1] | {"outcome": "ok"}]
    assert not validator().is_valid(wrong)


def test_the_table_and_the_json_schema_are_made_of_the_same_columns():
    schema = trial_schema()
    properties = schema.to_dict()["items"]["properties"]
    assert list(properties) == list(schema.to_frame()["name"]) == [c.name for c in COLUMNS]
    assert properties["outcome"]["enum"] == [outcome.value for outcome in Outcome]
    assert all(properties[c.name]["description"] == c.description for c in COLUMNS)
    assert properties["money"]["unit"] == "US dollars"
    assert json.loads(schema.to_json()) == schema.to_dict()
    for column in COLUMNS:
        assert column.name in str(schema)
        assert column.description in str(schema)


def test_the_schema_of_an_experiment_has_its_stimuli_and_ranges():
    place = make("horizon")
    properties = trial_schema(place).to_dict()["items"]["properties"]
    assert {*place.fields.shown, *place.fields.hidden} <= set(properties)
    assert (properties["action"]["minimum"], properties["action"]["maximum"]) == (0, 1)
    assert properties["horizon"] | {"description": ""} == {
        "type": ["integer", "null"],
        "minimum": 1.0,
        "maximum": 6.0,
        "description": "",
    }
    required = trial_schema(place).to_dict()["items"]["required"]
    assert {*place.fields.stimulus, "action", "subject", "trial"} <= set(required)
    rows = rows_of(played("instrumental_learning"))
    wrong = [rows[0] | {"context": 9}, *rows[1:]]
    assert validator().is_valid(wrong)
    assert not validator(short("instrumental_learning")).is_valid(wrong)
    low, high = make("collider").response_range
    asked = trial_schema(make("collider")).to_dict()["items"]["properties"]["response"]
    assert (asked["minimum"], asked["maximum"]) == (low, high)


def test_a_parquet_file_carries_the_version_of_its_schema(tmp_path):
    file = tmp_path / "t.parquet"
    played("instrumental_learning").save(file)
    metadata = parquet.read_schema(file).metadata
    assert metadata[b"knownminds_trials_schema"] == str(SCHEMA_VERSION).encode()
    table = parquet.read_table(file)
    newer = {**metadata, b"knownminds_trials_schema": str(SCHEMA_VERSION + 1).encode()}
    parquet.write_table(table.replace_schema_metadata(newer), file)
    with pytest.raises(ValueError, match=r"has version 2\. Install a newer knownminds"):
        Trials.load(file)
    parquet.write_table(table.replace_schema_metadata({}), file)  # of elsewhere
    assert len(Trials.load(file)) == len(played("instrumental_learning"))


def test_a_number_below_its_range_is_named():
    frame = pd.DataFrame({"subject": ["a", "b"], "trial": [0, 0], "action": [0, 1]})
    with pytest.raises(ValueError, match=r"'money' holds numbers from 0 on; row 2.*has -0.5"):
        Trials.from_frame(frame.assign(money=[0.1, -0.5]))
    with pytest.raises(ValueError, match=r"'action' holds numbers from 0 on; row 1.*has -1"):
        Trials.from_frame(frame.assign(action=[-1, 1]))
    assert np.isnan(Trials.from_frame(frame.assign(money=[np.nan, 0.0])).frame["money"][0])
