"""The published schema says what the code does, and every file that is saved keeps to it."""

import json

import pandas as pd
import pytest
from played import played, short

from knownminds.environments import ENVIRONMENTS, Trials, make, trial_schema

jsonschema = pytest.importorskip("jsonschema", reason="JSON Schemas are checked by jsonschema")


def validator(environment=None):
    schema = trial_schema(environment).to_dict()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def rows_of(trials):
    return json.loads(trials.to_json())


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.long
def test_every_saved_file_keeps_to_the_schema_of_its_experiment(name, tmp_path):
    trials = Trials.from_frame(played(name).frame.head(60))
    for suffix in (".csv", ".parquet"):
        trials.save(tmp_path / f"t{suffix}")
        rows = rows_of(Trials.load(tmp_path / f"t{suffix}"))
        for check in (validator(), validator(short(name))):
            assert [e.message for e in check.iter_errors(rows)] == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_column_has_a_meaning_and_every_measured_number_a_unit(name):
    """Whole numbers are codes, counts or positions, as their meaning says; so is wording."""
    schema = trial_schema(make(name))
    wording = make(name).fields.wording
    assert [column.name for column in schema.columns if not column.description] == []
    assert [own.name for own in make(name).fields if not own.help] == []
    measured = [one for one in schema.columns if one.kind == "float" and one.name not in wording]
    assert [column.name for column in measured if not column.unit] == []


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
