"""Sessions that others told in words: a pattern finds trials, each text tells its letters."""

import json
import random
import re

import pandas as pd
import pytest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import Trials
from knownminds.environments.formats.psych_101 import psych_101_records
from knownminds_more.reversal.reversal_learning import ReversalLearning

PATTERN = r"You press <<(?P<action>\w+)>> and get (?P<reward>\d+) points"
NAMES = r"machines, (\w) and (\w)"


def told(seed=0, people=3, trials=8):
    """A file as the corpus has it, and its trials; each participant has letters of its own."""
    draw = random.Random(seed)
    lines, truth = [], []
    for person in range(people):
        letters = draw.sample("ABCDEFGHJK", 2)
        words = [f"There are two machines, {letters[0]} and {letters[1]}."]
        for trial in range(trials):
            arm, points = draw.randint(0, 1), draw.randint(0, 1)
            odd = (person, trial) == (1, 3)
            said = "Q" if odd else letters[arm]
            words.append(f"You press <<{said}>> and get {points} points.")
            truth.append({"subject": str(person), "trial": trial, "action": None if odd else arm,
                          "reward": None if odd else points})  # fmt: skip
        lines.append(json.dumps({"text": "\n".join(words), "participant": person,
                                 "experiment": "invented2030bandit/exp1.csv"}))  # fmt: skip
    return "\n".join(lines) + "\n", truth


WORDS = ("--from", "psych-101", "--environment", "reversal_learning", "--set", "loss=0")


def test_texts_of_others_become_trials_with_an_account(knownminds, tmp_path):
    text, truth = told()
    file = tmp_path / "corpus.jsonl"
    file.write_text(text + text.splitlines()[0] + "\n")
    code, said, err = knownminds(
        "import", file, *WORDS,
        "--map", f"trial text: {PATTERN}", "--map", f"option names: {NAMES}",
        "--out", tmp_path / "t.parquet", "--save-map", tmp_path / "m.toml",
    )  # fmt: skip
    assert code == 0, err
    rows = Trials.load(tmp_path / "t.parquet").frame.to_dict("records")
    assert len(rows) == len(truth) == 24
    for row, true in zip(rows, truth, strict=True):
        for name, value in true.items():
            assert pd.isna(row[name]) if value is None else row[name] == value
    assert "an exact copy (8 rows, the first: line 4 is line 1)" in (said := " ".join(said.split()))
    assert "actions, from the order of the options' names in each text (24 rows)" in said
    assert (
        "an answer that names no option (1 row, the first: line 2 of corpus.jsonl has 'Q')" in said
    )
    assert "outcomes 23 ok, 1 empty" in said or "1 malformed" in said
    # The patterns are kept with the mapping.
    code, _, err = knownminds("import", file, *WORDS, "--map", tmp_path / "m.toml",
                              "--out", tmp_path / "u.parquet")  # fmt: skip
    assert code == 0, err
    again = Trials.load(tmp_path / "u.parquet").frame
    assert again["action"].equals(Trials.load(tmp_path / "t.parquet").frame["action"])


SLOW = "You press <<T but you were too slow."


@pytest.mark.parametrize("odd", [SLOW, "You press T>> too early.", "You <<press <<T>>.", "<<"])
@pytest.mark.parametrize("ours", [False, True])
def test_marks_that_do_not_take_turns_are_refused_by_their_line(knownminds, tmp_path, odd, ours):
    """In the middle and at the end, in texts of others and in words of ours."""
    record = {"experiment": "reversal_learning", "participant": "1"}
    if ours:
        trials = simulate(RescorlaWagner, [[0.3, 3.0, 0.0]], ReversalLearning(), seed=1)
        (record,) = psych_101_records(trials)
        lines = record["text"].split("\n")
    else:
        points = [f"You press <<{'BT'[k % 2]}>> and get 1 points." for k in range(6)]
        lines = ["There are two machines, B and T.", *points]
    told_as = ("--map", f"trial text: {PATTERN}", "--map", f"option names: {NAMES}")
    words = WORDS[:2] if ours else (*WORDS, *told_as)
    for place in (len(lines) // 2, len(lines)):
        text = "\n".join([*lines[:place], odd, *lines[place:]])
        file = tmp_path / "odd.jsonl"
        whole = json.dumps({**record, "text": "\n".join(lines)})
        file.write_text("\n".join([whole, json.dumps({**record, "text": text})]))
        code, _, err = knownminds("import", file, *words, "--out", tmp_path / "o.csv")
        assert code == 2
        assert re.search(r"[Ll]ine 2 .*Every << has a >>", err)
        assert not (tmp_path / "o.csv").exists()
