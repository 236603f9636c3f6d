from dataclasses import replace

import numpy as np
import pytest

from knownminds.environments import (
    ENVIRONMENTS,
    Field,
    Fields,
    Questions,
    Session,
    Whole,
    make,
    session_stream,
    setting,
)
from knownminds.environments.words.history import HISTORIES, Retelling

RETOLD = [name for name, kind in ENVIRONMENTS.items() if issubclass(kind, Retelling)]
TRIALS = 12


def played(environment):
    """Go through the first trials of a session; every fifth has no answer."""
    session = Session(environment, environment.draw(session_stream(1, 2)))
    for trial, seen in zip(range(TRIALS), session, strict=False):
        yield session, seen
        given = environment.asks(seen)
        low, high = environment.response_range
        action, number = trial % max(environment.n_actions, 1), low + (high - low) * trial / TRIALS
        choice = {"action": action, "response": number, "both": (action, number)}[given]
        session.take(*((None,) if trial % 5 == 3 else (choice, session.say(choice))))


@pytest.mark.parametrize("form", HISTORIES)
@pytest.mark.parametrize("name", RETOLD)
def test_a_session_that_tells_its_new_turns_says_what_it_would_say_of_all(name, form):
    environment = make(name, history=form)
    for session, seen in played(environment):
        anew = environment.render(session.design.labels, seen, list(session.turns))
        assert session.render() == anew
        assert session.render() == anew  # and it says the same again


@pytest.mark.parametrize("form", HISTORIES)
@pytest.mark.parametrize("name", RETOLD)
def test_a_prompt_is_read_as_if_it_were_the_first_of_its_session(name, form):
    """Whatever was read before: a shorter prompt, a longer one, or one of other answers."""
    environment = make(name, history=form)
    prompts = [session.render() for session, _ in played(environment)]
    design = environment.draw(session_stream(1, 2))
    other = Session(environment, design)
    for trial, seen in zip(range(TRIALS), other, strict=False):
        prompts.append(other.render())
        given = environment.asks(seen)
        low, high = environment.response_range
        action, number = (trial + 1) % max(environment.n_actions, 1), (low + high) / 2
        choice = {"action": action, "response": number, "both": (action, number)}[given]
        other.take(choice, other.say(choice))
    for k in [*range(len(prompts)), *np.random.default_rng(0).integers(0, len(prompts), 40)]:
        fresh = environment.read(replace(design), prompts[k].messages)
        assert environment.read(design, prompts[k].messages) == fresh


def test_a_turn_is_told_once_in_a_session(monkeypatch):
    replies = []
    tell = Retelling._reply
    monkeypatch.setattr(Retelling, "_reply", lambda *its: replies.append(its) or tell(*its))
    sessions = [played(make("instrumental_learning", history="chat")) for _ in range(2)]
    for (session, _), (other, _) in zip(*sessions, strict=True):  # two sessions share nothing
        session.render()
        other.render()
    assert len(replies) == 2 * (TRIALS - 1)


class Numbered(Questions):
    """An experiment whose only setting of its own is how many questions there are."""

    name, summary, source = "numbered", "a number", "this test"
    fields = Fields(Field("number", (0, 9), "what is shown"))
    n_actions = 2
    n_questions: int = setting(3, Whole(1), "Questions in a session.", size=True)

    @property
    def n_draws(self):
        return self.n_questions

    def tables(self, uniforms):
        return {"number": np.floor(10 * uniforms).astype(np.int64)}


def test_a_session_has_as_many_trials_as_its_size_unless_the_experiment_says_otherwise():
    assert [Numbered().n_trials, Numbered(n_questions=7).n_trials] == [3, 7]
    methods = {"n_draws": 1, "tables": Numbered.tables, "name": "unsized"}
    with pytest.raises(TypeError, match="size=True"):
        type("Unsized", (Questions,), methods)().n_trials  # noqa: B018


class Worded(Numbered):
    """The same with words that are tables: a field says which of two texts is shown."""

    name = "worded"
    fields = Fields(
        Field("digit", (0, 9), "what is shown"), Field("odd", (0, 1), "if it is odd", "wording")
    )
    wordings = ("{number}: {digit} comes first", "{number}: last {digit}")
    letters = "PQ"

    def tables(self, uniforms):
        digit = np.floor(10 * uniforms).astype(np.int64)
        return {"digit": digit, "odd": digit % 2}


def test_a_field_chooses_the_wording_and_letters_are_the_answers():
    place = Worded(n_questions=40)
    session = Session(place, place.draw(session_stream(2)))
    for trial, seen in enumerate(session, 1):
        digit = int(seen["digit"])
        words = f"last {digit}" if digit % 2 else f"{digit} comes first"
        assert session.render().messages[0].content == f"{trial}: {words}"
        assert session.say(1) == "Q"
        assert session.parse("P").action == 0
        session.take(1, "Q")
    with pytest.raises(ValueError, match="Write its `wordings` and `letters`"):
        Session(Numbered(), Numbered().draw(session_stream(1))).render()
