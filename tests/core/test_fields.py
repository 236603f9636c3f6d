"""The tables in which an experiment says what its trials hold and what can be set."""

import inspect

import numpy as np
import pytest

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Field,
    Fields,
    InstrumentalLearning,
    Number,
    Numbers,
    OneOf,
    SomeOf,
    Whole,
    make,
    setting,
    trial_schema,
)
from knownminds.environments.environment import _MOVED


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_said_of_a_setting_follows_from_one_table(name):
    kind, place = ENVIRONMENTS[name], make(name)
    called = [found.called or k for k, found in kind.setting_table.items()]
    assert called == list(place.settings) == list(inspect.signature(kind).parameters)
    for word, found in zip(called, kind.setting_table.values(), strict=True):
        assert found.help.endswith(".")
        assert found.help in inspect.getdoc(kind)
        if str(found.rule) not in ("True or False", "a text") and "None" not in str(found.rule):
            with pytest.raises((ValueError, TypeError)):
                kind(**{word: object()})


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_said_of_a_column_follows_from_one_table(name):
    place = make(name)
    columns = {c.name: c for c in trial_schema(place).columns}
    for field in place.fields:
        assert field.help
        assert field.name == "block" or field.help in columns[field.name].description
        assert field.unit in (columns[field.name].unit, "")
    assert set(place.fields.bounds(place)) == set(place.fields.shown)
    assert set(place.fields.dependent) <= set(place.fields.stimulus)


def test_the_contract_has_48_names_at_most():
    names = {*vars(Environment), *Environment.__annotations__} - _MOVED.keys()
    assert len([name for name in names if not name.startswith("_")]) <= 48


@pytest.mark.parametrize(
    ("rule", "good", "wrong", "sentence"),
    [
        (Whole(2), 5, 1, "n is a whole number from 2 on; got 1."),
        (Whole(1, 3), np.int64(3), True, "n is a whole number from 1 to 3; got True."),
        (Number(0.0, 1.0), 0.5, 1.5, "n is a number from 0 to 1; got 1.5."),
        (Number(above=0.0), 0.5, 0, "n is a number above 0; got 0."),
        (Number(), -3.0, np.inf, "n is a number; got inf."),
        (OneOf(("a", "b")), "b", "c", "n is one of a, b; got 'c'."),
        (SomeOf(("a", "b")), ("a", "b"), ["a", "a"], "n are one or more of a, b, each once; got"),
        (Numbers("are numbers"), [1.0], [[1.0]], r"n are numbers; got \[\[1.0\]\]."),
    ],
)
def test_rules_take_what_is_right_and_name_what_is_wrong(rule, good, wrong, sentence):
    assert rule("n", good) == good
    with pytest.raises(ValueError, match=sentence):
        rule("n", wrong)


class Guess(InstrumentalLearning):
    """Guesses."""

    name = "guess"
    fields = Fields(*InstrumentalLearning.fields, Field("luck", (0, 1), "never shown", "hidden"))
    n_visits: int = setting(3, Whole(1), "Fewer visits.", size=True)
    loud: int = setting(1, Whole(1), "How loud.", last=True)


def test_a_subclass_adds_settings_and_changes_them():
    assert list(Guess().settings) == [
        *(
            "n_visits",
            "win_probability",
            "history",
            "reasoning",
            "templates",
            "thought_words",
            "loud",
        )
    ]
    assert (Guess().n_visits, Guess(5).n_visits, Guess.size) == (3, 5, "n_visits")
    with pytest.raises(TypeError, match="unexpected keyword argument 'quiet'"):
        Guess(quiet=1)


OLD = {
    "stimulus": ("context",),
    "wording": ("first",),
    "dependent": (),
    "hidden": (),
    "bounds": {"context": (0, 3), "first": (0, 1)},
    "answer_columns": ("action",),
    "retold": True,
    "forgets": False,
    "scored": True,
    "n_prompts": 96,
}


@pytest.mark.parametrize("name", OLD)
def test_a_name_of_an_earlier_version_works_and_says_what_to_use(name):
    place = InstrumentalLearning()
    with pytest.warns(DeprecationWarning, match=f"Environment.{name} is now "):
        assert getattr(place, name) == OLD[name]


def test_a_class_written_for_an_earlier_version_is_refused_with_the_new_place():
    with pytest.raises(TypeError, match=r"Old has stimulus; fields\.stimulus took its place"):
        type("Old", (Environment,), {"stimulus": ("prize",)})
