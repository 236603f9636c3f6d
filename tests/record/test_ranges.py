"""Numbers of a trial lie within what their column can have; what that hangs on is named."""

import pandas as pd
import pytest

from knownminds.environments import ENVIRONMENTS, Trials, environment_of, make, trial_schema

BUILT_IN = [name for name, kind in ENVIRONMENTS.items() if kind.__module__.startswith("knownminds")]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_number_beyond_either_end_of_its_column_is_refused(name):
    place = make(name)
    schema = trial_schema(place)
    Trials.from_frame(pd.DataFrame([schema.example]), environment=place)
    tried = 0
    for column in schema.columns:
        if column.kind == "string" or column.name not in schema.example or column.name == "trial":
            continue
        for end, step in ((column.least, -1000), (column.most, 1000)):
            if end is None:
                continue
            tried += 1
            row = {**schema.example, column.name: end + step}
            with pytest.raises(ValueError, match=r"[.;] "):
                Trials.from_frame(pd.DataFrame([row]), environment=place)
    assert tried >= 2


@pytest.mark.parametrize(
    ("name", "column", "value", "setting", "told"),
    [
        ("instrumental_learning", "context", 4, "win_probability", [[0.2, 0.8]] * 5),
        ("horizon", "game", 100, "n_games", 101),
        ("balloon_risk", "balloon", 30, "n_balloons", 11),
        ("diagnosis", "context", 200, "n_contexts", 201),
    ],
)
def test_the_setting_that_a_refusal_names_lets_the_trial_in(name, column, value, setting, told):
    row = pd.DataFrame([{**trial_schema(make(name)).example, column: value}])
    rule = f"The column '{column}' of {name} holds a whole number from 0 to {value - 1}; .*--set "
    with pytest.raises(ValueError, match=rule + setting):
        Trials.from_frame(row, environment=make(name))
    wider = make(name, **{setting: told})
    assert Trials.from_frame(row, environment=wider).frame[column].tolist() == [value]
    if name != "instrumental_learning":  # casinos tell of no machines that were never there
        played = environment_of(Trials.from_frame(row), name)
        assert Trials.from_frame(row, environment=played).frame[column].tolist() == [value]
