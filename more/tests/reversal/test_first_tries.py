"""What a newcomer types first: each refusal names what to type next."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def theirs(tmp_path):
    """Two runs of 20 choices of each of 12 people, under heads of their own."""
    rng = np.random.default_rng(1)
    rows = [
        {"ID": f"P{p}", "Group": group, "TrialNo": t + 1, "Choice": "AB"[int(rng.integers(2))],
         "Outcome": int(rng.integers(2)), "RT": float(rng.random())}
        for p in range(12) for group in ("drug", "none") for t in range(20)
    ]  # fmt: skip
    file = tmp_path / "data.csv"
    pd.DataFrame(rows).to_csv(file, index=False)
    return file


def test_each_refusal_of_a_table_names_the_next_word(theirs, knownminds, tmp_path):
    words = ["import", theirs]
    code, _, err = knownminds(*words)
    guess = "subject=ID,trial=TrialNo,action=Choice,reward=Outcome"
    assert code == 2
    assert f"perhaps --map '{guess}'" in err
    words += ["--map", guess, "--environment", "reversal_learning", "--set", "loss=0"]
    code, _, err = knownminds(*words)
    assert code == 2
    assert "perhaps --map 'Choice: A=0,B=1'" in err
    words += ["--map", "Choice: A=0,B=1"]
    code, _, err = knownminds(*words)
    assert code == 2
    assert "'Group' would tell them apart. Map a session column" in err
    words[words.index(guess)] = f"{guess},session=Group"
    code, _, err = knownminds(*words, "--out", tmp_path / "t.csv")
    assert code == 0, err
    code, out, err = knownminds("fit", tmp_path / "t.csv", "--model", "random_responder")
    assert code == 0, err  # a model without parameters has its checks
    assert "Predictive checks" in out


def test_a_table_that_names_no_subject_is_not_guessed(tmp_path, knownminds):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    code, _, err = knownminds("import", tmp_path / "x.csv")
    assert code == 2
    assert "perhaps" not in err
