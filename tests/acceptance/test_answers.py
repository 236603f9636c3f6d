"""Answers in the shapes that models give them, read by hand, by the parser and by an oracle."""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.environments import Outcome, parse_beginning, parse_label, parse_number

OPTIONS = {
    "letter": ("J", "F"),
    "antwort": ("J", "F"),
    "five": tuple("ABCDE"),
    "word": ("Heads", "Tails"),
}
RANGES = {"share": (0.0, 1.0), "percent": (0.0, 100.0), "points": (-100.0, 100.0)}
MARKERS = {"antwort": "Antwort:"}
BLOCKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
)
BEFORE = {*"so thus hence therefore then the my your our final correct right best".split()}  # noqa: SIM905
NONE = {outcome.value for outcome in Outcome} - {"ok", "repaired"}


def table():
    for line in (Path(__file__).parent / "answers.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            task, meant, text = line.split(" |", 2)
            yield task.strip(), meant.strip(), text.removeprefix(" ").replace("⏎", "\n")


ROWS = list(table())


def parsed(task, text):
    """What the parser reads: an option, a number, or the outcome."""
    kind, marked = task.rstrip("+"), task.endswith("+")
    marker = MARKERS.get(kind, "Answer:")
    if kind in OPTIONS:
        answer = parse_label(text, OPTIONS[kind], marked, noun="machine", marker=marker)
        found = None if answer.action is None else OPTIONS[kind][answer.action]
    else:
        answer = parse_number(text, *RANGES[kind], marked, marker)
        found = answer.response
    return answer.outcome.value if found is None else found


def oracle(task, text):
    """Read an answer by going through it from its end; shares no code with the parser.

    None where it holds no answer.
    """
    kind, marked = task.rstrip("+"), task.endswith("+")
    for begin, end in BLOCKS:
        text = text.rpartition(end)[2].partition(begin)[0]
    text = text.strip()
    whole = value(kind, text)
    if whole is not None and not marked:
        return whole
    words = ["answer", MARKERS.get(kind, "Answer:")[:-1].lower()]
    lines = [line.strip() for line in text.replace("```json", "").replace("```", "").split("\n")]
    lines = [
        line
        for line in lines
        if line and line not in ("\\[", "\\]", "$$", "<answer>", "</answer>", "{", "}")
    ]
    for i in reversed(range(len(lines))):
        said = opened(lines[i], words)
        if said is None and "\\boxed" not in lines[i] and "\\fbox" not in lines[i]:
            continue
        if said == "":  # it stands on the line below
            return value(kind, lines[i + 1]) if i + 1 < len(lines) else None
        found = {value(kind, one) for one in (boxes(lines[i]) or said)}
        return found.pop() if len(found) == 1 else None
    last = lines[-1] if lines else ""
    off = any(
        last.rstrip(".").startswith(s) and last.rstrip(".").endswith(s) for s in ("**", "`", "$")
    )
    below = text.endswith("</answer>")
    return value(kind, last.replace("</answer>", "")) if off or below else None


def boxes(line):
    """What stands in boxes; with something between two of them, both and that."""
    parts = re.split(r"\\(?:boxed|fbox)", line)[1:]
    return [part[1 : part.rindex("}")] for part in parts if "}" in part]


def opened(line, words):
    """The parts of a line that announcements open; "" if one has nothing behind it."""
    plain = re.sub(r"[*_`#>]", "", line).strip(" -\"'")
    for tag in ("<answer>", "<final_answer>"):
        if tag in plain + line:
            return [line.partition(tag)[2].partition("</")[0]]
    field = (
        re.search(r"answer\W\s*:\s*([^,}]+)", plain)
        if "{" in line or line.startswith('"')
        else None
    )
    if field:
        return [field[1]]
    parts = []
    for sentence in re.split(r"(?<=[.!?;])\s+(?=[A-Z])", plain):
        lower = sentence.lower()
        for word in words:
            before, there, _ = lower.partition(word)
            if not there or set(before.replace(",", " ").split()) - BEFORE:
                continue
            rest = sentence[len(before) + len(word) :].strip()
            if not rest or rest == ":":
                return ""
            if rest.startswith((":", "is ", "is:")):
                parts.append(rest.removeprefix("is").lstrip(": "))
                break
    return parts or None


def value(kind, said):
    """The option or the number that a few words say."""
    for what in (r"\\(?:text|boxed|fbox|mathrm)\s*", r"</?(?:b|strong|answer)>", r"\\[()\[\]]"):
        said = re.sub(what, "", said)
    said = re.sub(r"(?i)^\W*(?:final )?answer\W*:", "", said.strip())
    said = said.replace("```", "").replace("\\%", "%").strip()
    if said.startswith("$") and said.rstrip(".").endswith("$"):
        said = said.rstrip(".").strip("$")
    if kind in OPTIONS:
        said = re.sub(r"(?i)^\W*(machine|option)\b", "", said).strip(" .,;:!*_`\"'“”«»()[]{}<>")
        alike = [o for o in OPTIONS[kind] if o.lower() == said.lower()]
        return alike[0] if alike else None
    said = said.strip(" *_`\"'()[]{}").removesuffix(".")
    if said.startswith("<") and said.endswith(">"):
        said = said[1:-1]
    share = said.endswith("%")
    try:
        if re.search(r"[^0-9.+\-% ]", said):
            return None
        number = Decimal(said.removesuffix("%").strip())
    except InvalidOperation:
        return None
    low, high = RANGES[kind]
    if share and (high, low) == (1.0, 0.0):
        if 0 < number < 1:
            return None
        number /= 100
    elif share and low < 0:
        return None
    return float(number) if low <= number <= high else None


def test_the_table_has_three_hundred_rows_of_every_sort():
    assert len(ROWS) >= 300
    assert len(set(ROWS)) == len(ROWS)
    assert {task.rstrip("+") for task, _, _ in ROWS} == {*OPTIONS, *RANGES}
    assert {meant for _, meant, _ in ROWS} >= {"malformed", "refused", "empty"}


def test_the_parser_reads_the_table_as_it_is_meant():
    wrong = []
    for task, meant, text in ROWS:
        found = parsed(task, text)
        right = found == (meant if meant in NONE or task.rstrip("+") in OPTIONS else float(meant))
        wrong += [] if right else [(task, text, meant, found)]
    assert not wrong


def test_an_oracle_of_its_own_reads_the_table_as_it_is_meant():
    wrong = []
    for task, meant, text in ROWS:
        found = oracle(task, text)
        if meant in NONE:
            right = found is None
        else:
            right = found == (meant if task.rstrip("+") in OPTIONS else float(meant))
        wrong += [] if right else [(task, text, meant, found)]
    assert not wrong


@pytest.mark.parametrize("around", ["{}\n", "\n\n  {}", "I have thought about it.\n\n{}"])
def test_parser_and_oracle_agree_on_what_stands_below_other_lines(around):
    for task, _, text in ROWS:
        if task.endswith("+") and "think" not in text.lower():
            other = around.format(text)
            found = parsed(task, other)
            assert oracle(task, other) == (None if found in NONE else found), (task, other)


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


@given(st.text(max_size=12), st.booleans())
def test_a_beginning_has_an_action_only_with_its_outcome(text, cut):
    answer = parse_beginning(text, ("1", "10", "Heads"), cut=cut)
    assert (answer.action is not None) == (answer.outcome in ("ok", "repaired"))
    assert answer.text == text
    if not cut:
        assert answer.outcome != "truncated"
