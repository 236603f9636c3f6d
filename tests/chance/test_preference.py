from fractions import Fraction
from importlib.resources import files
from itertools import product

import numpy as np
import pytest

from knownminds.environments import Preference, check_environment, context_of
from knownminds.environments.chance.outcome_grid import FORMS, MARKS
from knownminds.environments.chance.preference import KINDS, PAIRS

WORDS = (("Heads", "Tails"), ("Left", "Right"))


def observations(environment, seed=0):
    """All observations of a session."""
    environment.reset(seed=seed)
    table = environment.design.table
    return [
        {"trial": t, **{name: int(column[t]) for name, column in table.items()}}
        for t in range(environment.n_trials)
    ]


def test_the_grid_has_both_orders_of_both_pairs():
    environment = Preference()
    assert environment.n_trials == 36
    seen = {tuple(s[name] for name in Preference.own) for s in observations(environment)}
    assert seen == {
        (*rest, kind, previous)
        for rest in product((0, 1), (0, 1), (1, 2, 3))
        for kind, previous in ((0, -1), (1, 0), (1, 1))
    }
    part = Preference(pairs="left_right", weights=(4,), kinds="single")
    assert part.n_trials == 2
    check_environment(part)


def test_what_is_named_first_has_the_larger_probability():
    environment = Preference()
    for seen in observations(environment):
        # One lot in k + 1 bears the word that is named last.
        lots = [seen["first"]] * seen["weight"] + [1 - seen["first"]]
        counted = [Fraction(lots.count(action), len(lots)) for action in (0, 1)]
        assert list(context_of(seen["cell"]).chance.shares) == counted
        assert environment.truth(seen).tolist() == [float(share) for share in counted]


def test_marks_are_of_the_order_the_name_and_the_draw_before():
    for seen in observations(Preference()):
        marks = dict(zip(MARKS, context_of(seen["cell"]).marks.T.tolist(), strict=True))
        assert marks["first"] == [seen["first"] == 0, seen["first"] == 1]
        assert marks["repeat"] == [seen["previous"] == 0, seen["previous"] == 1]
        assert marks["heads"] == [seen["pair"] == 0, False]
        assert marks["left"] == [seen["pair"] == 1, False]
        assert not any(marks["middle"] + marks["round"])


def test_a_prompt_tells_its_context_and_nothing_else():
    environment = Preference(form="continuation")
    for seen in observations(environment):
        text = environment.render(seen, []).messages[0].content
        first, other = WORDS[seen["pair"]][:: -1 if seen["first"] else 1]
        assert f"{first} or {other}" in text
        if seen["weight"] == 1:
            assert f"{first} and {other} equally often" in text
        else:
            assert f"{first} {seen['weight']} times as often as {other}" in text
        told = [word.strip(".,") for word in text.split()]
        draws = [word for word in told if word in (first, other)]
        before = [WORDS[seen["pair"]][seen["previous"]]] if seen["kind"] else []
        assert draws == [first, other, first, other, *before]
        assert ("no influence" in text) == (KINDS[seen["kind"]] == "independent")
        strange = WORDS[1 - seen["pair"]]
        assert not any(word in told for word in strange)


@pytest.mark.parametrize("form", FORMS)
def test_reading_takes_every_prompt_back_to_its_context(form):
    environment = Preference(form=form)
    for seen in observations(environment, seed=5):
        assert environment.read(environment.render(seen, []).messages) == ([], seen)


def test_an_action_is_a_word_whichever_is_named_first():
    environment = Preference()
    for seen in observations(environment):
        assert [environment.say(k, seen) for k in (0, 1)] == list(WORDS[seen["pair"]])
        assert environment.parse(WORDS[seen["pair"]][1].lower(), seen).action == 1
        assert environment.parse(WORDS[1 - seen["pair"]][0], seen).outcome == "malformed"


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"pairs": "up_down"}, "pairs are one or more of heads_tails, left_right"),
        ({"weights": (0,)}, "whole numbers from 1 on"),
        ({"weights": 10**4}, "weights go up to 9998"),
        ({"kinds": ()}, "kinds are one or more"),
    ],
)
def test_settings_outside_the_scenario_are_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        Preference(**settings)


def test_the_wording_can_be_replaced_and_has_to_tell_the_options_apart(tmp_path):
    shipped = files("knownminds.environments.chance").joinpath("preference.toml")
    text, file = shipped.read_text(encoding="utf-8"), tmp_path / "my.toml"
    file.write_text(text.replace('"Left"', '"Links"'), encoding="utf-8")
    check_environment(Preference(templates=str(file)))
    file.write_text(text.replace('"Tails"', '"Heads"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"Outcomes have different names|both read"):
        Preference(templates=str(file))


def test_pairs_are_numbered_as_they_are_listed():
    assert PAIRS == ("heads_tails", "left_right")
    assert np.array_equal(KINDS, ("single", "independent"))
