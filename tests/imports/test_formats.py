"""Every format is read to the trials that were written, and what is wrong in a file is counted."""

import math
import random

import pytest
import their_files
from their_files import MADE

from knownminds.environments import Trials
from knownminds.validation.imports.importing import import_tables
from knownminds.validation.imports.mapping import ColumnMap


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


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_what_was_written_is_read(make, tmp_path):
    made = make(seed=1)
    trials, account = import_tables([written(made, tmp_path)], **made.options)
    found = rows_of(trials)
    assert len(found) == len(made.trials)
    for truth in made.trials:
        row = found[truth["subject"], truth["session"], truth["trial"]]
        for name, value in truth.items():
            assert same(row.get(name), value), (name, value, row)
    assert account.outcomes == made.counted
    assert trials.frame["outcome"].value_counts().to_dict() == made.counted
    assert account.environment == made.environment
    assert account.rows == made.text.count("\n") - 1 - made.text.count("lines\n")
    again = type(account).from_dict(account.to_dict())
    assert str(again) == str(account)
    # It is a record like any other: what was read is kept, and read again.
    trials.save(tmp_path / "t.parquet")
    assert len(Trials.load(tmp_path / "t.parquet")) == len(trials)


def test_the_account_says_what_became_of_every_row(tmp_path):
    made = their_files.days(seed=2)
    _, account = import_tables([written(made, tmp_path)])
    told = {entry.what: entry.rows for entry in account.entries}
    assert told["'action1' is no shuttle"] == 1
    assert told["'action2' is no alien of that planet"] == 1
    assert told["runs under one id told apart by their order"] == 10
    assert told["two stages of each day"] == 39
    assert "40 rows read, 79 trials of 3 subjects in 4 sessions" in str(account)
    assert "outcomes    77 ok, 2 malformed" in str(account)


def test_files_of_several_engines_are_several_subjects_and_empty_ones_are_counted(tmp_path):
    for name in ("one", "two"):
        made = their_files.casinos(seed=3)
        (tmp_path / f"{name}.csv").write_text(made.text)
    (tmp_path / "none.csv").write_text("")
    files = [tmp_path / f"{name}.csv" for name in ("one", "two", "none")]
    trials, account = import_tables(files)
    assert trials.subjects == ("one/0", "one/1", "two/0", "two/1")
    assert any("none.csv is empty" in entry.what for entry in account.entries)


def test_a_later_version_is_never_pooled_with_the_first(tmp_path):
    made = their_files.blocks(seed=3)
    for version in ("data", "dataV2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "engine.csv").write_text(made.text)
    trials, _ = import_tables(
        [tmp_path / "data" / "engine.csv", tmp_path / "dataV2" / "engine.csv"]
    )
    assert set(trials.subjects) == {f"engine{v}/{run}" for v in ("", " V2") for run in (0, 1)}
    second = trials.frame[trials.frame["version"] == "V2"]
    assert set(second["mean_0"].dropna()) == {10.0, -10.0}


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ("present bias,subaddictivity,score,run", "a score does not determine the answers"),
        ("engine,run,performance_score1", "holds scores"),
    ],
)
def test_scores_are_no_trials(head, sentence, tmp_path):
    (tmp_path / "s.csv").write_text(head + "\n" + ",".join("1" * (head.count(",") + 1)) + "\n")
    with pytest.raises(ValueError, match=sentence):
        import_tables([tmp_path / "s.csv"])


DAMAGES = (
    "drop",
    "insert",
    "text",
    "huge",
    "cut",
    "binary",
    "encoding",
    "rotate",
    "blank",
    "double",
)


def damage(text, kind, draw):
    """Return the bytes of a file with one kind of damage in some of its rows."""
    if kind == "cut":
        return text.encode()[: draw.randint(len(text) // 3, len(text) - 2)]
    if kind == "binary":
        at = draw.randint(0, len(text))
        return (
            text[:at].encode() + bytes(draw.randrange(256) for _ in range(60)) + text[at:].encode()
        )
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
        elif kind == "insert":
            cells.insert(at, "7")
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


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_files_end_in_a_sentence_or_in_counted_rows_and_in_no_wrong_number(kind, tmp_path):
    """300 files in all: each of 15 formats, ten kinds of damage, two seeds."""
    read, said = 0, []
    for number, make in enumerate(MADE * 2):
        draw = random.Random(f"{kind} {number}")
        made = make(seed=number)
        file = tmp_path / made.name
        file.write_bytes(damage(made.text, kind, draw))
        try:
            trials, account = import_tables([file], **made.options)
        except ValueError as refused:
            said.append(str(refused))
            continue
        read += 1
        assert sum(account.outcomes.values()) == len(trials)
        # Without their number, which follows the order in the file in some formats.
        by_order = {"trial", "balloon", "session", "item"}
        shapes = {tuple(k for k in one if k not in by_order) for one in made.trials}
        truths = {normal({k: one[k] for k in one if k not in by_order}) for one in made.trials}
        for row in rows_of(trials).values():
            if row["outcome"] != "ok":
                continue
            renamed = {**row, "subject": row["subject"].replace("Gerät", "engine")}
            told = (normal({name: renamed.get(name) for name in names}) for names in shapes)
            assert any(one in truths for one in told), (make.__name__, number, renamed)
    assert all(len(told) > 30 and "\n" not in told for told in said)
    assert kind == "binary" or read >= 8, "so many files were refused that little was tried"


def test_a_mapping_is_kept_and_read_again(tmp_path):
    mapping = ColumnMap(
        "instrumental_learning", {"subject": "id"}, {"action": {"left": 0.0, "right": 1.0}},
        {"context": "from 1"}, ("-1",), {"trial_type": "choice"}, {"n_visits": 3},
    )  # fmt: skip
    mapping.save(tmp_path / "m.toml")
    assert ColumnMap.read(tmp_path / "m.toml") == mapping
