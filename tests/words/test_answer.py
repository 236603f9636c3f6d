from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.environments import Outcome, parse_beginning, parse_label, parse_number
from knownminds.llm_adapters.outcomes.outcome_tree import extends

LABELS = ("K", "B")


@pytest.mark.parametrize("text", ["K", " K\n"])
def test_the_asked_format_is_ok(text):
    answer = parse_label(text, LABELS)
    assert (answer.outcome, answer.action, answer.text, answer.note) == ("ok", 0, text, "")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('"K"', "signs"),
        ("**K**", "signs"),
        ("K.", "signs"),
        ("<<<K>>>", "signs"),
        ("Machine K", '"machine" before'),
        ("machine: **K**", '"machine" before'),
        ("Answer: K", '"Answer" before'),
        ("Answer: Machine k.", "letter case"),
        ("k", "letter case"),
    ],
)
def test_a_documented_repair_is_made_and_noted(text, note):
    answer = parse_label(text, LABELS, noun="machine")
    assert (answer.outcome, answer.action) == ("repaired", 0)
    assert note in answer.note


@pytest.mark.parametrize(
    "text",
    [
        "K or B",
        "K B",
        "KB",
        "I choose K",
        "K, because B paid less",
        "Machine C",
        "machine",
        "Answer:",
        "Not K",
        "0",
        "Hard to say, they all look much the same to me.",
    ],
)
def test_nothing_is_guessed(text):
    answer = parse_label(text, LABELS, noun="machine")
    assert (answer.outcome, answer.action) == ("malformed", None)
    assert answer.note == "expected one of K, B"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot choose a machine.",
        "As an AI, I do not gamble.",
        "I must decline.",
        "I won't take part in this",
    ],
)
@pytest.mark.parametrize("marked", [False, True])
def test_a_refusal_is_told_apart(text, marked):
    assert parse_label(text, LABELS, marked).outcome is Outcome.REFUSED
    assert parse_number(text, 0, 1, marked).outcome is Outcome.REFUSED


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_no_text_is_empty(text):
    assert parse_label(text, LABELS).outcome is Outcome.EMPTY
    assert parse_number(text, 0, 1).outcome is Outcome.EMPTY


@pytest.mark.parametrize(
    ("text", "outcome", "action"),
    [
        ("I think.\nAnswer: K", "ok", 0),
        ("I cannot choose lightly.\nAnswer: B", "ok", 1),
        ("Answer: K\nOn second thought:\nAnswer: B", "ok", 1),
        ("I think.\n**Answer:** K", "repaired", 0),
        ("I think.\nanswer: k.", "repaired", 0),
        ("Answer: K\nI hope this helps.", "repaired", 0),
        ("Answer: Machine K", "repaired", 0),
        ("K", "malformed", None),
        ("Answer: K or B", "malformed", None),
        ("Answer: K\nAnswer:", "malformed", None),
        ("So I go with K, my answer: K", "malformed", None),
    ],
)
def test_only_the_last_marked_line_is_read(text, outcome, action):
    answer = parse_label(text, LABELS, marked=True, noun="machine")
    assert (answer.outcome, answer.action) == (outcome, action)


def test_labels_that_differ_in_case_alone_are_not_mixed_up():
    assert parse_label("k", ("K", "k")).action == 1
    assert parse_label("Ä", ("ä", "Ä")).action == 1
    assert parse_label("B", ("b", "K")).outcome is Outcome.REPAIRED


@given(st.text(max_size=40))
def test_any_text_has_an_outcome_and_an_action_only_with_it(text):
    for marked in (False, True):
        answer = parse_label(text, LABELS, marked)
        assert (answer.action is not None) == (answer.outcome in ("ok", "repaired"))
        assert answer.text == text
        number = parse_number(text, 0, 1, marked)
        assert (number.response is not None) == (number.outcome in ("ok", "repaired"))


@pytest.mark.parametrize(
    ("text", "outcome", "response"),
    [
        ("0.25", "ok", 0.25),
        (".5", "ok", 0.5),
        ("-1", "ok", -1.0),
        ("+1.0", "ok", 1.0),
        ('"0.25".', "repaired", 0.25),
        ("**.5**", "repaired", 0.5),
        ("Answer: 0.5", "repaired", 0.5),
        ("50%", "malformed", None),
        ("1,000", "malformed", None),
        ("0.2 or 0.3", "malformed", None),
        ("about 0.2", "malformed", None),
        ("2", "malformed", None),
        ("nan", "malformed", None),
        ("1e-1", "malformed", None),
    ],
)
def test_numbers_are_read_strictly(text, outcome, response):
    answer = parse_number(text, -1, 1)
    assert (answer.outcome, answer.response) == (outcome, response)


ROUGH = ("<0.5", "> 0.5", "~0.5", "0.5>", "~~0.5~", ",5", ", 5", "<~0.5>", "Answer: <0.5", "'>0.5'")


@pytest.mark.parametrize("text", ROUGH)
def test_a_bound_a_rough_number_and_a_decimal_comma_are_no_answer(text):
    assert parse_number(text, -9, 9).outcome is Outcome.MALFORMED
    assert parse_number(f"Answer: {text}", -9, 9, marked=True).outcome is Outcome.MALFORMED


def test_a_number_in_a_pair_of_signs_is_that_number():
    for text in ("<0.5>", "~~0.5~~", "`<0.5>`.", "(0.5),"):
        assert parse_number(text, 0, 1).response == 0.5


SIGN = st.text("<>~,.:;*_`\"'()[]{} ", max_size=4)


@given(SIGN, st.decimals(-99, 99, places=2), SIGN)
def test_what_is_read_is_what_an_oracle_of_its_own_reads(before, number, after):
    text = f"{before}{number}{after}"
    # The oracle: the one number in the text, if its signs are pairs or ornaments.
    rough = sum(map(text.count, "<>~")) and not (
        before.count("<") == after.count(">")
        and before.count("~") == after.count("~")
        and ">" not in before
        and "<" not in after
    )
    answer = parse_number(text, -100, 100)
    if answer.response is not None:
        assert not rough
        assert "," not in before
        shown = f".{abs(number)}" if before.endswith(".") and number >= 0 else f"{number}"
        assert answer.response == float(shown)
    elif not (rough or "," in before or "." in before):
        assert answer.outcome is not Outcome.MALFORMED


def test_a_marked_number_is_the_last_one():
    assert parse_number("0.1 and 0.2\nAnswer: 0.3", 0, 1, marked=True).response == 0.3
    assert parse_number("0.3", 0, 1, marked=True).outcome is Outcome.MALFORMED


@pytest.mark.parametrize(
    ("text", "outcome", "action"),
    [
        ("1", "ok", 0),
        (" 1 and so on", "ok", 0),
        ("1, 2, 3", "ok", 0),
        ("1.", "ok", 0),
        ("10", "ok", 1),
        ("10:", "ok", 1),
        ("100", "malformed", None),
        ("1.5", "malformed", None),
        ("1,000", "malformed", None),
        ("1st", "malformed", None),
        ("1-sided", "malformed", None),
        ("Heads.", "ok", 2),
        ("Heads'", "ok", 2),
        ("Heads's", "malformed", None),
        ("Headstrong", "malformed", None),
        ("heads", "malformed", None),
        ("\n1", "repaired", 0),
        ("  10 ", "repaired", 1),
        ("**1**", "malformed", None),
        ("not 1", "malformed", None),
        ("I won't answer", "refused", None),
        (" ", "empty", None),
    ],
)
def test_what_completes_a_text_is_what_the_answer_begins_with(text, outcome, action):
    answer = parse_beginning(text, ("1", "10", "Heads"))
    assert (answer.outcome, answer.action, answer.text) == (outcome, action, text)
    assert bool(answer.note) == (outcome != "ok")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", "truncated"),
        (" ", "truncated"),
        ("1", "truncated"),
        ("1.", "truncated"),
        ("1, ", "ok"),
        ("Hea", "truncated"),
        ("Heads and", "ok"),
        ("10 or", "ok"),
        ("Tails", "malformed"),
    ],
)
def test_a_text_that_was_cut_off_is_read_where_its_beginning_is_certain(text, outcome):
    assert parse_beginning(text, ("1", "10", "Heads"), cut=True).outcome == outcome


def test_an_answer_begins_with_a_label_where_its_exact_probability_counts_it():
    labels, signs = ("1", "10", "Heads"), "01.,:/'’-sx_ \n(é"
    for label, *following in product(labels, ["", *signs], ["", *signs], ["", *signs]):
        text = "".join([label, *following])
        counted = [
            action
            for action, said in enumerate(labels)
            if text.startswith(said) and not extends(said, text[len(said) :])
        ]
        answer = parse_beginning(text, labels)
        assert counted == ([] if answer.action is None else [answer.action]), text


@given(st.text(max_size=12), st.booleans())
def test_a_beginning_has_an_action_only_with_its_outcome(text, cut):
    answer = parse_beginning(text, ("1", "10", "Heads"), cut=cut)
    assert (answer.action is not None) == (answer.outcome in ("ok", "repaired"))
    assert answer.text == text
    if not cut:
        assert answer.outcome != "truncated"
