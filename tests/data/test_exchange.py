"""Trials in and out at the command line: every format there and back, and what is refused."""

import json

import pytest
from played import played

from knownminds.environments import Trials
from knownminds.validation.data.exchange import export_trials, import_trials


@pytest.fixture
def file(tmp_path):
    played("restless_bandit").save(tmp_path / "trials.csv")
    return tmp_path / "trials.csv"


@pytest.mark.parametrize(
    ("format", "out"),
    [
        ("csv", "t.csv"),
        ("parquet", "t.parquet"),
        ("psych-101", "t.jsonl"),
        ("psych-ds", "folder"),
    ],
)
def test_what_is_exported_is_imported(format, out, file, tmp_path, knownminds):
    there, back = tmp_path / "new" / out, tmp_path / "back" / "trials.parquet"
    given = ["--set", "n_blocks=1"] if format == "psych-101" else []
    code, said, err = knownminds("export", file, "--out", there, "--format", format, *given)
    assert code == 0, err
    assert said.startswith("restless_bandit: 1 subjects, 1 sessions, 20 trials (20 ok), written to")
    code, said, err = knownminds("import", there, "--out", back, "--json")
    assert code == 0, err
    told = json.loads(said)
    assert (told["trials"], told["outcomes"]) == (20, {"ok": 20})
    frame = Trials.load(back).frame
    for column in ("subject", "session", "trial", "action", "response", "reward", "first"):
        assert frame[column].tolist() == played("restless_bandit").frame[column].tolist()


def test_a_run_is_told_with_its_own_settings(tmp_path, knownminds):
    words = ["run", "instrumental_learning", "--llm", "synthetic:rescorla_wagner", "--trials", 8]
    words += ["--sessions", 2, "--contaminate", "malformed=0.3", "--out", tmp_path / "run"]
    assert knownminds(*words)[0] == 0
    out = tmp_path / "run.jsonl"
    code, _, err = knownminds("export", tmp_path / "run", "--out", out)
    assert code == 0, err
    record = json.loads(out.read_text().splitlines()[0])
    assert record["knownminds"]["settings"]["n_visits"] == 2
    trials = Trials.load(tmp_path / "run" / "trials.parquet").frame
    back = import_trials([out]).frame
    assert set(trials["outcome"]) == {"ok", "malformed"}
    for column in ("action", "reward", "outcome", "labels", "context"):
        here, there = (f[column].astype("str").tolist() for f in (trials, back))
        assert here == there, column


def test_a_table_of_other_names_is_exported_with_ours(tmp_path, file):
    frame = played("coins").frame.rename(columns={"subject": "run", "action": "choice"})
    frame.drop(columns="environment").to_csv(tmp_path / "theirs.csv", index=False)
    columns = {"subject": "run", "action": "choice"}
    export_trials(
        tmp_path / "theirs.csv", tmp_path / "t.jsonl", environment="coins", columns=columns
    )
    back = import_trials([tmp_path / "t.jsonl"])
    assert back.frame["action"].tolist() == played("coins").frame["action"].tolist()
    # Several files are one record.
    other = Trials.from_frame(played("coins").frame.assign(subject="another"))
    export_trials(other, tmp_path / "u.parquet")
    both = import_trials([tmp_path / "t.jsonl", tmp_path / "u.parquet"])
    assert both.subjects == ("0", "another")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["export", "FILE", "--out", "t.xlsx"], "format"),
        (["export", "FILE", "--out", "t.csv", "--format", "psych101"], "Nearest: psych-101"),
        (["export", "none.csv", "--out", "t.csv"], "there is none at none.csv"),
        (["export", "FILE", "--out", "t.jsonl", "--set", "n_blokcs=1"], "n_blocks"),
        (["export", "FILE", "--out", "t.jsonl", "--environment", "coinz"], "coins"),
        (["export", "FILE", "--out", "t.jsonl", "--environment", "coins"], "coins"),
        (["import", "none", "--out", "t.csv"], "there is none at none"),
        (["import", "FOLDER", "--out", "t.csv"], "has none of these"),
        (["import", "FILE", "--out", "t.txt"], "kept as .parquet or .csv"),
        (["import", "FILE", "--out", "t.csv", "--format", "xml"], "no format named 'xml'"),
        (["import", "FILE", "--out", "t.csv", "--from", "jspsych"], "say it: --map subject=id"),
        (["import", "FILE", "--out", "t.csv", "--from", "cogbench"], "is not a table of cogbench"),
        (["import", "FILE", "--out", "t.csv", "--where", "a=b"], "tables of others"),
        (["import", "FILE", "--out", "t.csv", "--map", "a: b"], "--map takes ours=theirs"),
        (["import", "FILE", "--out", "t.csv", "--map", "none.toml"], "cannot be read as a mapping"),
        (["import", "FILE", "--out", "t.csv", "--map", "subjec=subject"], "needs the column"),
        (["import", "FILE", "--out", "t.csv", "--set", "a=1"], "name it with --environment"),
        (["schema", "coinz"], "coins"),
    ],
)
def test_misuse_is_one_sentence(words, sentence, file, tmp_path, knownminds, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    places = {"FILE": file, "FOLDER": tmp_path / "folder"}
    code, _, err = knownminds(*[places.get(word, word) for word in words])
    assert code == 2
    assert err.startswith("knownminds: ")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "trials.csv"]


def test_the_schema_is_printed(knownminds):
    code, said, _ = knownminds("schema", "horizon")
    assert code == 0
    assert "true_mean_0" in said
    schema = json.loads(knownminds("schema", "--json")[1])
    assert schema["version"] == 1
    assert "outcome" in schema["items"]["properties"]
