"""Sessions that others told in words: a pattern finds trials, each text tells its letters."""

import json
import random

import pandas as pd

from knownminds.environments import Trials

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
    file.write_text(text)
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
    assert "actions, from the order of the options' names in each text (24 rows)" in said
    assert (
        "an answer that names no option (1 row, the first: line 2 of corpus.jsonl has 'Q')" in said
    )
    assert "outcomes    23 ok, 1 empty" in said or "1 malformed" in said
    # The patterns are kept with the mapping.
    code, _, err = knownminds("import", file, *WORDS, "--map", tmp_path / "m.toml",
                              "--out", tmp_path / "u.parquet")  # fmt: skip
    assert code == 0, err
    again = Trials.load(tmp_path / "u.parquet").frame
    assert again["action"].equals(Trials.load(tmp_path / "t.parquet").frame["action"])
