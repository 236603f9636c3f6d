"""The tables in which an experiment says what its trials hold and what can be set."""

import numpy as np
import pytest

from knownminds.environments import (
    Field,
    Fields,
    InstrumentalLearning,
    Number,
    Numbers,
    OneOf,
    SomeOf,
    Whole,
    setting,
)


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
        (Numbers("are numbers"), (1.0,), [[1.0]], r"n are numbers; got \[\[1.0\]\]."),
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


def test_a_setting_needs_no_annotation():
    class Untyped(Guess):
        n_visits = setting(2, Whole(1), "Fewer visits.", size=True)

    assert Untyped().settings["n_visits"] == 2
