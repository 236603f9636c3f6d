"""Any table comes in by a mapping: columns, values, units, gaps, shapes; what is open is asked."""

import pandas as pd
import pytest
import their_files

from knownminds.environments import Trials
from knownminds.members import listed
from knownminds.validation.data.exchange import run_import
from knownminds.validation.data.questions import AskImport
from knownminds.validation.imports.mapping import ColumnMap, read_map

CASINO = """person;casino;side;won;speed
ann;1;left;1;0,52
ann;2;right;0;1,5
ann;1;timeout;0;9,0
ben;4;right;1;0,7
"""
EXPLAINED = ("subject=person,context=casino,action=side,reward=won", "context: from 1",
             "side: left=0,right=1", "speed: seconds to ms")  # fmt: skip


def write(folder, text, name="t.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_columns_values_units_and_gaps_are_understood(tmp_path, knownminds):
    file = write(tmp_path, CASINO)
    maps = [word for text in EXPLAINED for word in ("--map", text)]
    code, said, err = knownminds(
        "import", file, *maps, "--missing", "timeout", "--environment", "instrumental_learning",
        "--out", tmp_path / "t.parquet", "--save-map", tmp_path / "mine.toml",
    )  # fmt: skip
    assert code == 0, err
    frame = Trials.load(tmp_path / "t.parquet").frame
    assert frame["subject"].tolist() == ["ann", "ann", "ann", "ben"]
    assert frame["trial"].tolist() == [0, 1, 2, 0]
    assert frame["context"].tolist() == [0, 1, 0, 3]
    assert frame["action"].tolist() == [0, 1, pd.NA, 1]
    assert frame["outcome"].tolist() == ["ok", "ok", "empty", "ok"]
    assert frame["reward"].isna().tolist() == [False, False, True, False]
    assert frame["speed"].tolist() == [520.0, 1500.0, 9000.0, 700.0]
    assert "decimal commas in 'speed'" in said
    assert "outcomes    3 ok, 1 empty" in said
    # The mapping that was kept does the same again.
    code, _, err = knownminds("import", file, "--map", tmp_path / "mine.toml",
                              "--environment", "instrumental_learning",
                              "--out", tmp_path / "u.parquet")  # fmt: skip
    assert code == 0, err
    assert Trials.load(tmp_path / "u.parquet").frame.equals(frame)


def test_rows_of_a_day_a_balloon_or_a_play_are_understood(tmp_path):
    made = their_files.days(seed=4, runs=1)
    text = made.text.replace("run,trial,action1,state,action2", "who,day,one,where,two")
    values = [f"{c}: X=0,Y=1" for c in ("one", "where")] + ["two: D=0,F=1,J=0,K=1"]
    told = read_map(["subject=who,trial=day,action1=one,state=where,action2=two", *values])
    text = text.replace("Xis", "none")
    gaps = told.merged(ColumnMap(missing=("none",)))
    found = run_import(AskImport([write(tmp_path, text)], environment="two_step", mapping=gaps))
    frame = found.answered.frame
    for truth in made.trials:
        row = frame[frame["trial"] == truth["trial"]].iloc[0]
        assert (row["stage"], row["state"]) == (truth["stage"], truth["state"])
        assert (
            pd.isna(row["action"]) if truth["action"] is None else row["action"] == truth["action"]
        )
    made = their_files.hb_balloons(seed=4)
    told = read_map(["subject=subjID,exploded=explosion"])
    file = write(tmp_path, made.text, "b.txt")
    asked = AskImport([file], environment="balloon_risk", settings={"maxima": [12]}, mapping=told)
    found = run_import(asked)
    assert found.answered.frame["action"].tolist() == [one["action"] for one in made.trials]
    made = their_files.games(seed=4)
    told = read_map(["subject=kind,game=run,play=trial,action=choice"])
    text = made.text.lstrip("\ufeff").replace("\n", ",me\n").replace("reward,me", "reward,kind", 1)
    found = run_import(
        AskImport([write(tmp_path, text, "g.csv")], environment="horizon", mapping=told)
    )
    assert found.answered.frame["mean_0"].tolist() == pytest.approx(
        [t["mean_0"] for t in made.trials]
    )


def test_screens_of_a_browser_are_trials_where_a_mapping_says_so(tmp_path):
    made = their_files.screens(seed=5)
    told = read_map([
        "subject=id,trial=trial_index,action=response.Q0,context=casino,reward=points",
        "response.Q0: left=0,right=1", "casino: from 1",
    ])  # fmt: skip
    where = {"trial_type": "html-button-response"}
    file = write(tmp_path, made.text, "study.txt")
    asked = AskImport([file], environment="instrumental_learning", mapping=told, where=where)
    found = run_import(asked)
    rows = found.answered.frame.to_dict("records")
    assert len(rows) == len(made.trials)
    for row, truth in zip(rows, made.trials, strict=True):
        for name, value in truth.items():
            assert pd.isna(row[name]) if value is None else row[name] == value
    assert found.account.outcomes == made.counted
    assert any("trial_type is not html" in entry.what for entry in found.account.entries)


@pytest.mark.parametrize("file", [place.file for place in listed("maps").values()], ids=str)
def test_a_map_that_is_shipped_can_be_copied(file, tmp_path):
    shipped = ColumnMap.read(file)
    shipped.save(tmp_path / "mine.toml")
    assert ColumnMap.read(tmp_path / "mine.toml") == shipped == read_map([file.stem])


def test_settings_that_no_column_tells_are_listed_and_those_that_rows_contradict_asked_for(
    tmp_path, knownminds, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "300")
    rows = [f"{s}\t{t}\t{1 + t % 2}\t1" for s in range(2) for t in range(1, 61)]
    file = write(tmp_path, "\n".join(["subjID\ttrial\tchoice\toutcome", *rows]), "b.txt")
    code, said, err = knownminds("import", file)
    assert code == 0, err
    assert "n_visits=24, win_probability=[[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75" in said
    asked = "please say  sessions have 60 trials, not 96, and 1 of 4 values of context "
    assert f"{asked}(win_probability); if so planned, give these settings and n_visits" in said
    code, said, err = knownminds("import", file, "--set", "n_visits=15")
    assert (code, "n_visits" in said, "please say" in said) == (0, False, False)
    # A size that the mapping tells, even the shipped one, is not assumed.
    names = {"subject": "subjID", "trial": "trial", "action": "choice", "reward": "outcome"}
    lines = [f"{ours} = '{theirs}'" for ours, theirs in (names | {"context": "casino"}).items()]
    told = "\n".join(["[settings]", "n_visits = 24", "[columns]", *lines])
    cells = ["subjID\ttrial\tcasino\tchoice\toutcome"]
    cells += [f"1\t{t}\t{t % 4}\t{t % 2}\t1" for t in range(1, 61)]
    mapped = (write(tmp_path, "\n".join(cells), "e.txt"), "--map", write(tmp_path, told, "m.toml"))
    code, said, err = knownminds("import", *mapped, "--environment", "instrumental_learning")
    assert (code, "assumed" in said, "n_visits=24" in said) == (0, True, False), err
    # Nothing is asked for if sessions differ.
    for kept, asks in ((rows[:-1], False), ([row for row in rows if "\t60\t" not in row], True)):
        short = write(tmp_path, "\n".join(["subjID\ttrial\tchoice\toutcome", *kept]), "c.txt")
        code, said, err = knownminds("import", short)
        assert (code, "assumed" in said, "please say" in said) == (0, True, asks)
    # A list of all questions leaves nothing to be assumed.
    head = "subjID\tdelay_later\tamount_later\tdelay_sooner\tamount_sooner\tchoice"
    asked = write(tmp_path, f"{head}\n1\t1\t15\t0\t10\t1\n1\t6\t20\t0\t10\t0\n", "d.txt")
    code, said, err = knownminds("import", asked)
    assert (code, "assumed" in said) == (0, False), err
    code, said, err = knownminds("import", file, "--set", "n_plays=60")
    assert code == 2
    assert "n_visits" in err
