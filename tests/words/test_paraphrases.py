"""Further wordings of every experiment: the same facts in other words, and answers to them read."""

import pytest

from knownminds.environments import ENVIRONMENTS, Session, make, session_stream
from knownminds.environments.conditions import conditions_of, shipped_words
from knownminds.environments.words.prompt import paraphrases_of

WORDED = sorted(name for name in ENVIRONMENTS if shipped_words(make(name)).is_file())
SMALL = {"balloon_risk": {"n_balloons": 2}}
NAMES = ("paraphrase_2", "paraphrase_3")


def lived(name, **settings):
    """Prompts, what is read from them, and answers of a session that always takes what is first."""
    place = make(name, **settings)
    found = []
    session = Session(place, place.draw(session_stream(3)))
    for k, seen in enumerate(session):
        prompt = session.render()
        told, observed = place.read(session.design, prompt.messages)
        number = sum(place.response_range) / 2
        asked = place.asks(seen)
        choice = {"action": 0, "response": number, "both": (0, number)}[asked]
        together = place.replies.together(session.design, seen)
        if len(together) > 1:
            choice = (1.0, *(0.0 for _ in together[1:]))
        said = session.say(choice)
        read = session.parse(said)
        found.append((prompt, told, observed, said, read.outcome.value, read.choice))
        if k == 5:
            break
        session.take(read.choice, read.text)
    return found


@pytest.mark.parametrize("name", WORDED)
def test_every_wording_tells_the_same_and_its_answers_are_read(name):
    shipped = shipped_words(make(name))
    assert set(paraphrases_of(shipped)) == set(NAMES)
    for reasoning in ("none", "chain_of_thought"):
        settings = dict(SMALL.get(name, {}))
        if "reasoning" in make(name).settings:
            settings["reasoning"] = reasoning
        first = lived(name, **settings)
        for other in NAMES:
            again = lived(name, templates=other, **settings)
            assert len(again) == len(first)
            for one, two in zip(first, again, strict=True):
                assert one[0].text != two[0].text
                assert one[1:] == two[1:]
                assert two[4] == "ok"


@pytest.mark.parametrize("name", WORDED)
def test_a_paraphrase_has_a_name_and_a_hash_of_its_own(name):
    told = [conditions_of(make(name, templates=other)) for other in (None, *NAMES)]
    assert [row["template"] for row in told] == ["shipped", *NAMES]
    assert len({row["template_hash"] for row in told}) == 3
    assert all(len(row["template_hash"]) == 12 for row in told)


def test_thoughts_have_the_limit_that_is_set():
    for reasoning, words in (("chain_of_thought", 100), ("step_back", 60)):
        for name in ("horizon", "restless_bandit", "two_step"):
            settings = {"reasoning": reasoning, "thought_words": words}
            for prompt, _, _, _, outcome, _ in lived(name, **settings):
                assert f"at most {words} words" in prompt.text
                assert outcome == "ok"
            assert conditions_of(make(name, **settings))["thought_words"] == words
    assert "at most" not in lived("horizon", reasoning="step_back")[0][0].text
    assert "thought_words" not in conditions_of(make("horizon"))
    with pytest.raises(ValueError, match="goes with reasoning=chain_of_thought or step_back"):
        make("horizon", thought_words=100)
    with pytest.raises(ValueError, match="a whole number from 1 on"):
        make("horizon", reasoning="step_back", thought_words=0)
