"""What is asked is said once: arguments, options, identity and command line agree."""

import inspect
import shlex
from dataclasses import fields

import pytest

import knownminds
from knownminds.validation.cli import app
from knownminds.validation.engine.question import (
    RUNNING,
    ExperimentQuestion,
    StudyQuestion,
    command_line,
    in_one,
)
from knownminds.validation.recovery.questions import Recover, RecoverOverSizes, RecoveryQuestion
from knownminds.validation.studies import STUDIES, load

ASKED = {name: load(kept.question) for name, kept in STUDIES.items() if kept.question}
COMMANDS = {c.name: c.callback for c in app.registered_commands}
PLACE = "instrumental_learning"


def untyped(question, **given):
    """What the command has if nothing more is typed."""
    options = inspect.signature(COMMANDS[question.command]).parameters.values()
    return {o.name: None if o.default is o.empty else o.default for o in options} | given


@pytest.mark.parametrize("name", ASKED)
def test_every_entry_of_the_registry_is_the_question_of_its_command(name):
    question = ASKED[name]
    assert question.command == name
    assert COMMANDS[name].__doc__ == question.help
    options = inspect.signature(COMMANDS[name]).parameters
    typed = {how.name or own for own, how in question.typed().items()}
    more = set(RUNNING) if issubclass(question, StudyQuestion) else {"out"}
    assert set(options) == typed | more | {"as_json"}


@pytest.mark.parametrize("verb", ["recover", "recovery_surface", "confuse", "calibrate", "power",
                                  "smallest_design", "audit", "channel", "fit"])  # fmt: skip
def test_a_function_takes_the_fields_of_its_question_and_nothing_else(verb):
    function = getattr(knownminds, verb)
    names = list(inspect.signature(function).parameters)
    assert function.__name__ == verb
    assert len(function.__doc__.splitlines()) > 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        function(*names[:2], nonsense=1)


def test_what_is_not_typed_is_as_the_function_has_it():
    given = untyped(RecoveryQuestion, environment=PLACE, model="rescorla_wagner")
    typed = RecoveryQuestion.of_typed(given)
    assert isinstance(typed, Recover)
    plain = Recover(typed.environment, "rescorla_wagner", truth={})
    assert typed == plain
    several = RecoveryQuestion.of_typed(given | {"subjects": [5, 10], "sessions": [2]})
    assert isinstance(several, RecoverOverSizes)
    assert (several.subjects, several.sessions, several.trials) == ([5, 10], [2], (None,))


def test_the_identity_has_the_names_of_options_and_no_setting_of_the_experiments_own():
    question = Recover(PLACE, "rescorla_wagner", truth={"beta": 4}, fixed={"kappa": 0.0}, seed=3)
    asked = question.asked()
    assert (asked["subject_matter"], asked["model"]) == (PLACE, "rescorla_wagner")
    assert (asked["set"], asked["fix"], asked["lapse"]) == ({"beta": 4.0}, {"kappa": 0.0}, None)
    assert {"workers", "out", "share"} & set(asked) == set()
    assert {own.name for own in fields(ExperimentQuestion)} == set(question.running)


def test_a_command_line_says_everything_that_differs_from_nothing():
    line = command_line(
        "score", "a b.csv", "", by=None, released=True, chat=False, over=["x", "y"],
        fix={"beta": 2.0, "grid": [1, 2]}, columns=in_one({"subject": "run"}), mass=0.68,
    )  # fmt: skip
    assert shlex.split(line) == [
        "knownminds", "score", "a b.csv", "--released", "--over", "x", "--over", "y",
        "--fix", "beta=2", "--fix", "grid=[1, 2]", "--columns", "subject=run", "--mass", "0.68",
    ]  # fmt: skip
    assert command_line("fit", "t.csv", unit=in_one({})) == "knownminds fit t.csv"
