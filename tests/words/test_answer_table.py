"""Answers in the shapes that models give them, read by hand, by the parser and by an oracle."""

import re
import time
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest

from knownminds.environments import InstrumentalLearning, Outcome, parse_label, parse_number
from knownminds.environments.words.final_answers import marker_of

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


def test_the_marker_is_that_of_the_template(tmp_path):
    assert marker_of('Close with a line that reads "Answer: " and the letter.') == "Answer:"
    assert marker_of("Schließen Sie mit „Antwort: “ und dem Buchstaben.") == "Antwort:"
    assert marker_of("Think, then answer.") is None
    assert marker_of('End with ": " and the letter.') is None
    shipped = InstrumentalLearning.shipped.read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(shipped.replace('"Answer: "', '"My pick: "'), encoding="utf-8")
    place = InstrumentalLearning(reasoning="chain_of_thought", templates=str(own))
    seen, _ = place.reset(seed=1)
    said = place.say(1, seen)
    assert said.splitlines()[-1].startswith("My pick: ")
    assert (place.parse(said, seen).outcome, place.parse(said, seen).action) == ("ok", 1)


def test_a_template_whose_marker_would_not_be_found_is_refused(tmp_path):
    shipped = InstrumentalLearning.shipped.read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(shipped.replace('"Answer: "', "your answer"), encoding="utf-8")
    with pytest.raises(ValueError, match="says in quotes what opens the line with the answer"):
        InstrumentalLearning(reasoning="step_back", templates=str(own))
    assert InstrumentalLearning(templates=str(own)).reasoning == "none"  # needs none


LONG = (
    "\n",
    "<think>",
    "<answer>",
    "$",
    "**",
    "answer\n",
    "answer: ",
    "\\boxed{",
    "# ",
    "```\n",
    ". ",
)


@pytest.mark.parametrize("part", LONG)
def test_no_text_takes_long_to_read(part):
    text = "so\n" + part * (100_000 // len(part)) + "x"
    begin = time.process_time()
    for marked in (False, True):
        assert parse_label(text, ("J", "F"), marked).action is None
        assert parse_number(text, 0, 1, marked).response is None
    assert time.process_time() - begin < 3.0  # some .1 s; what is quadratic takes minutes
