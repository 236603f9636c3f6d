"""Files of others and of ours: what was written is read, every row is accounted for."""

import json
import math
import random
from collections import Counter

import pandas as pd
import pytest
import their_files
from played import played, short
from registries import installed
from their_files import MADE

import knownminds
from knownminds.environments import ENVIRONMENTS, Trials, make, trial_schema


def written(made, folder):
    file = folder / made.name
    file.write_text(made.text, encoding="utf-8")
    return file


def same(left, right):
    if right is None:
        return left is None or left != left
    if isinstance(right, str):
        return left == right
    return left == left and math.isclose(float(left), float(right), rel_tol=1e-9, abs_tol=1e-9)


def normal(values):
    """Return what can be compared, of a row or of what is true of one."""
    return frozenset(
        (name, None if v is None or v != v else v if isinstance(v, str) else f"{float(v):.9g}")
        for name, v in values.items()
    )


def rows_of(trials):
    keys = ["subject", "session", "trial"]
    frame = trials.frame.astype("object").where(trials.frame.notna(), None)
    return {tuple(row[k] for k in keys): row for row in frame.to_dict("records")}


# Files of others --------------------------------------------------------------------------------


@pytest.mark.parametrize("make_file", MADE, ids=lambda one: one.__name__)
def test_what_was_written_is_read_trial_by_trial(make_file, tmp_path):
    made = make_file(seed=1)
    trials = knownminds.import_trials([written(made, tmp_path)], **made.options)
    rows = rows_of(trials)
    assert len(rows) == len(trials) == len(made.trials)
    for truth in made.trials:
        row = rows[truth["subject"], truth["session"], truth["trial"]]
        for name, value in truth.items():
            assert same(row.get(name), value), (name, value, row)
    assert Counter(trials.frame["outcome"]) == made.counted
    unread = ~trials.frame["outcome"].isin(["ok", "repaired"])
    for name in {"action", "response"} & set(trials.frame):
        assert trials.frame.loc[unread, name].isna().all()


def test_the_account_says_what_became_of_every_row(tmp_path, knownminds):
    made = their_files.days(seed=2)
    out = tmp_path / "trials.csv"
    code, said, err = knownminds("import", written(made, tmp_path), "--out", out, "--json")
    assert code == 0, err
    account = json.loads(said)["account"]
    # Each row is a day of two stages; one has no first stage, and one a second that is none.
    assert account["rows"] == made.text.count("\n") - 1 == 40
    assert account["trials"] == 2 * 40 - 1 == len(made.trials) == len(pd.read_csv(out))
    assert account["outcomes"] == made.counted
    rows = Counter()
    for entry in account["entries"]:
        rows[entry["kind"]] += entry["rows"]
    assert rows["unreadable"] == made.counted["malformed"] == 2
    assert all("engine.csv" in entry["example"] for entry in account["entries"] if entry["rows"])


def test_files_of_several_engines_are_several_subjects(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(their_files.casinos(seed=3).text)
    (tmp_path / "none.csv").write_text("")
    files = [tmp_path / f"{name}.csv" for name in ("one", "two", "none")]
    trials = knownminds.import_trials(files)
    assert trials.subjects == ("one", "two")
    assert trials.n_sessions == 4


def test_a_file_of_scores_is_no_file_of_trials(tmp_path, knownminds):
    file, out = tmp_path / "s.csv", tmp_path / "t.csv"
    file.write_text("engine,run,performance_score1\na,1,2\n")
    code, _, err = knownminds("import", file, "--out", out)
    assert code == 2
    assert "Traceback" not in err
    assert not out.exists()


def damage(text, kind, draw):
    """Return the bytes of a file with one kind of damage in some of its rows."""
    if kind == "cut":
        return text.encode()[: draw.randint(len(text) // 3, len(text) - 2)]
    if kind == "encoding":
        text = text.lstrip("\ufeff").replace("engine", "Gerät")
        return text.encode(draw.choice(("utf-16", "cp1252", "utf-8")))
    body = text.split("\n")
    delimiter = max(",;\t", key=body[0].count)
    for _ in range(draw.randint(1, 4)):
        row = draw.randrange(1, len(body) - 1)
        cells = body[row].split(delimiter)
        at = draw.randrange(len(cells))
        if kind == "drop":
            del cells[at]
        elif kind == "text":
            cells[at] = draw.choice(("abc", "null", "--", "[]", "1e", "0x1F", "inf"))
        elif kind == "huge":
            cells[at] = draw.choice(("1e308", "9" * 40, "-1e30", "1e400"))
        elif kind == "rotate":
            cells = cells[1:] + cells[:1]
        elif kind == "blank":
            cells[at] = ""
        body[row] = delimiter.join(cells)
        if kind == "double":
            body.insert(row, body[row])
    return "\n".join(body).encode()


@pytest.mark.parametrize("kind", ["drop", "text", "huge", "cut", "encoding", "rotate", "double"])
def test_a_damaged_file_is_refused_or_read_without_a_wrong_number(kind, tmp_path):
    read = 0
    for number, make_file in enumerate(MADE):
        draw = random.Random(f"{kind} {number}")
        made = make_file(seed=number)
        file = tmp_path / made.name
        file.write_bytes(damage(made.text, kind, draw))
        try:
            trials = knownminds.import_trials([file], **made.options)
        except ValueError:
            continue
        read += 1
        # Without their number, which follows the order in the file in some formats.
        by_order = {"trial", "balloon", "session", "item"}
        shapes = {tuple(k for k in one if k not in by_order) for one in made.trials}
        truths = {normal({k: one[k] for k in one if k not in by_order}) for one in made.trials}
        for row in rows_of(trials).values():
            if row["outcome"] != "ok":
                continue
            renamed = {**row, "subject": row["subject"].replace("Gerät", "engine")}
            parts = (normal({name: renamed.get(name) for name in names}) for names in shapes)
            assert any(one in truths for one in parts), (make_file.__name__, number, renamed)
    assert read >= 4, "so many files were refused that little was tried"


HBAYESDM = (their_files.hb_bandit, their_files.hb_two_step, their_files.hb_balloons,
            their_files.hb_sums, *(one for _, one in their_files.CARDS))  # fmt: skip


@pytest.mark.parametrize("make_file", HBAYESDM, ids=lambda one: one.__name__)
def test_a_table_of_hbayesdm_goes_out_as_it_came_in(make_file, tmp_path):
    made = make_file(seed=7)
    trials = knownminds.import_trials([written(made, tmp_path)], **made.options)
    knownminds.export_trials(trials, tmp_path / "again.txt", "hbayesdm")
    there, again = (pd.read_csv(tmp_path / name, sep="\t") for name in (made.name, "again.txt"))
    # Without a choice there is no outcome of it.
    if "choice" in there and "outcome" in there:
        there.loc[there["choice"].isna(), "outcome"] = float("nan")
    pd.testing.assert_frame_equal(there, again[there.columns], check_dtype=False)


def test_casinos_are_not_joined_to_one_course_of_learning(tmp_path):
    played = make("instrumental_learning", n_visits=3)
    trials = knownminds.simulate(played, "rescorla_wagner_dual", subjects=2, seed=1)
    knownminds.export_trials(trials, tmp_path / "b.txt", "hbayesdm")
    table = pd.read_csv(tmp_path / "b.txt", sep="\t")
    assert table["subjID"].nunique() == 2 * 4
    frame = trials.frame
    own = frame[frame["subject"].astype(str) == "1"].query("context == 2")
    assert (table.loc[table["subjID"] == "1 | 2", "choice"] - 1).tolist() == own["action"].tolist()


@pytest.mark.parametrize(
    ("name", "model"),
    installed(
        [
            ("instrumental_learning", "rescorla_wagner_dual"),
            ("two_step", "two_step_reduced"),
            ("reversal_learning", "rescorla_wagner"),
        ]
    ),
)
def test_reaction_times_go_out_for_hssm_and_come_back(name, model, tmp_path):
    simulated = knownminds.simulate(name, model, subjects=2, seed=5).frame
    columns = [column for column in simulated if not str(column).startswith("true_")]
    trials = Trials.from_frame(simulated[columns], environment=make(name))
    with pytest.raises(ValueError, match="rt_s"):
        knownminds.export_trials(trials, tmp_path / "h.csv", "hssm")
    timed = Trials.from_frame(trials.frame.assign(rt_s=0.25), environment=make(name))
    knownminds.export_trials(timed, tmp_path / "h.csv", "hssm")
    back = knownminds.import_trials([tmp_path / "h.csv"])
    for column in timed.frame:
        there, here = timed.frame[column], back.frame[column]
        assert there.isna().equals(here.isna()), column
        assert there.dropna().tolist() == here.dropna().tolist(), column


# Our own formats --------------------------------------------------------------------------------

ANSWERS = ("subject", "session", "trial", "action", "response", "reward", "outcome", "first")
# Not in texts: distributions, pictures, and questions that only their own session can find again.
NO_TEXT = {"diagnosis", "cue_conflict", "causal_strength"}
FORMATS = {"csv": "t.csv", "parquet": "t.parquet", "psych-101": "t.jsonl", "psych-ds": "set"}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_session_goes_out_and_comes_back(format, name, tmp_path):
    trials, out = played(name), tmp_path / FORMATS[format]
    if format == "psych-101" and name in NO_TEXT:
        with pytest.raises(ValueError, match=r"text|distributions"):
            knownminds.export_trials(trials, out, format, environment=short(name))
        assert not out.exists()
        return
    knownminds.export_trials(trials, out, format, environment=short(name))
    back = knownminds.import_trials([out], environment=short(name))
    assert len(back) == len(trials)
    for column in set(ANSWERS) & set(trials.frame):
        there, here = trials.frame[column], back.frame[column]
        assert there.isna().tolist() == here.isna().tolist(), column
        assert there.dropna().tolist() == here.dropna().tolist(), column


@pytest.mark.parametrize("format", FORMATS)
def test_what_could_not_be_read_stays_so_in_every_format(format, tmp_path, knownminds):
    frame = played("instrumental_learning").frame.copy()
    frame["raw_text"] = None
    answers = {2: ("refused", "I cannot answer that."), 5: ("malformed", 'both,\n"really"'),
               8: ("error", None)}  # fmt: skip
    for row, (outcome, text) in answers.items():
        frame.loc[row, ["action", "reward"]] = None
        frame.loc[row, "outcome"], frame.loc[row, "raw_text"] = outcome, text
    Trials.from_frame(frame).save(tmp_path / "in.parquet")
    there, back = tmp_path / FORMATS[format], tmp_path / "back.parquet"
    words = ("export", tmp_path / "in.parquet", "--out", there, "--format", format)
    more = ("--set", "n_visits=4") if format == "psych-101" else ()
    code, _, err = knownminds(*words, *more)
    assert code == 0, err
    code, said, err = knownminds("import", there, "--out", back, "--json")
    assert code == 0, err
    counts = Counter(frame["outcome"])
    assert json.loads(said)["outcomes"] == counts
    assert json.loads(said)["trials"] == len(frame)
    again = Trials.load(back).frame
    assert again["outcome"].tolist() == frame["outcome"].tolist()
    assert again["action"].isna().tolist() == frame["action"].isna().tolist()
    assert again["action"].dropna().tolist() == frame["action"].dropna().tolist()
    assert again["raw_text"].dropna().tolist() == frame["raw_text"].dropna().tolist()


def test_a_psych_ds_folder_describes_every_column(tmp_path):
    knownminds.export_trials(played("coins"), tmp_path / "set", "psych-ds")
    about = json.loads((tmp_path / "set" / "dataset_description.json").read_text())
    assert about["@type"] == "Dataset"
    described = {one["name"] for one in about["variableMeasured"]}
    files = list((tmp_path / "set" / "data").rglob("*_data.csv"))
    assert files
    for file in files:
        assert set(pd.read_csv(file).columns) <= described


def test_every_choice_is_marked_in_a_text_and_nothing_else(tmp_path):
    trials = played("two_step")
    knownminds.export_trials(trials, tmp_path / "t.jsonl", environment=short("two_step"))
    (line,) = (tmp_path / "t.jsonl").read_text().splitlines()
    text = json.loads(line)["text"]
    assert text.count("<<") == text.count(">>") == len(trials)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_row_that_a_schema_shows_is_a_trial_of_the_experiment(name):
    place = make(name)
    example = trial_schema(place).example
    assert len(Trials.from_frame(pd.DataFrame([example]), environment=place)) == 1


def test_a_table_of_other_names_is_read_by_a_map(tmp_path, knownminds):
    frame = played("coins").frame.rename(columns={"subject": "run", "action": "choice"})
    frame.drop(columns="environment").to_csv(tmp_path / "theirs.csv", index=False)
    words = ("import", tmp_path / "theirs.csv", "--out", tmp_path / "t.csv", "--environment")
    code, _, err = knownminds(*words, "coins", "--columns", "subject=run,action=choice")
    assert code == 0, err
    back = Trials.load(tmp_path / "t.csv").frame
    assert back["action"].tolist() == frame["choice"].tolist()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["export", "FILE", "--out", "t.xlsx"], "format"),
        (["export", "FILE", "--out", "t.csv", "--format", "psych101"], "psych-101"),
        (["export", "none.csv", "--out", "t.csv"], "none.csv"),
        (["export", "FILE", "--out", "t.jsonl", "--set", "n_blokcs=1"], "n_blocks"),
        (["export", "FILE", "--out", "t.jsonl", "--environment", "coinz"], "coins"),
        (["import", "none", "--out", "t.csv"], "none"),
        (["import", "FOLDER", "--out", "t.csv"], "folder"),
        (["import", "FILE", "--out", "t.txt"], "t.txt"),
        (["import", "FILE", "--out", "t.csv", "--format", "xml"], "xml"),
        (["import", "FILE", "--out", "t.csv", "--from", "cogbench"], "cogbench"),
        (["import", "FILE", "--out", "t.csv", "--map", "none.toml"], "none.toml"),
        (["import", "FILE", "--out", "t.csv", "--map", "subjec=subject"], "subjec"),
        (["show", "--schema", "coinz"], "coins"),
    ],
)
def test_bad_input_ends_with_two_and_leaves_nothing(words, name, tmp_path, knownminds, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    played("restless_bandit").save(tmp_path / "trials.csv")
    places = {"FILE": tmp_path / "trials.csv", "FOLDER": tmp_path / "folder"}
    code, _, err = knownminds(*[places.get(word, word) for word in words])
    assert code == 2
    assert name in err
    assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "trials.csv"]
