"""One file in forty ways: each is read right, or refused with the line that helps."""

import gzip
import io
import json
import re
import zipfile

import pandas as pd
import pytest

from knownminds import import_trials

# Two people, twelve trials each; the casinos turn.
ROWS = [(p, k, k % 4, (k + (p == "p2")) % 2, k % 3 % 2) for p in ("p1", "p2") for k in range(12)]
HEAD = ("subject", "trial", "context", "action", "reward")
TRUTH = pd.DataFrame(ROWS, columns=HEAD)
THEIRS = ("id", "t", "casino", "machine", "won")
MAP = [",".join(f"{ours}={theirs}" for ours, theirs in zip(HEAD, THEIRS, strict=True))]
PLACE = {"environment": "instrumental_learning"}
MAPPED = {**PLACE, "mapping": MAP}


def text(rows=ROWS, head=HEAD, cell=",", end="\n", last=True):
    lines = [cell.join(map(str, row)) for row in (head, *rows)]
    return (end.join(lines) + (end if last else "")).encode()


def changed(column, change, head=HEAD, **how):
    """The table with another form of one column."""
    k = HEAD.index(column)
    rows = [(*row[:k], change(row[k]), *row[k + 1 :]) for row in ROWS]
    return text(rows, head, **how)


def packed(*names, inside=None):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, text() if inside is None else inside)
    return stream.getvalue()


def parquet(head):
    stream = io.BytesIO()
    TRUTH.set_axis(head, axis=1).to_parquet(stream)
    return stream.getvalue()


def as_json(lines):
    records = [dict(zip(THEIRS, row, strict=True)) for row in ROWS]
    return ("\n".join(map(json.dumps, records)) if lines else json.dumps(records)).encode()


EXCEL = [[str(cell) for cell in row] for row in ROWS]
COGBENCH = ("run", "trial", "task", "choice", "reward")
RUNS = [(row[0][1], row[1], row[2] + 1, *row[3:]) for row in ROWS]

# name of the file, its bytes, options; a sentence of the error where it is refused
RIGHT = {
    "plain": ("f.csv", text(), {}),
    "capital ending": ("f.CSV", text(), {}),
    "ending of others": ("f.dat", text(cell="\t"), {}),
    "no ending": ("people", text(), {}),
    "tabs": ("f.tsv", text(cell="\t"), {}),
    "semicolons": ("f.csv", text(cell=";"), {}),
    "bars": ("f.txt", text(cell="|"), {}),
    "blanks": ("f.txt", text(cell=" "), {}),
    "several blanks": ("f.dat", text(cell="   "), {}),
    "named delimiter": ("f.csv", b"sep=;\n" + text(cell=";"), {}),
    "lines of Windows": ("f.csv", text(end="\r\n"), {}),
    "lines of old Macs": ("f.csv", text(end="\r"), {}),
    "no last line break": ("f.csv", text(last=False), {}),
    "mark of UTF-8": ("f.csv", b"\xef\xbb\xbf" + text(), {}),
    "UTF-16": ("f.csv", text().decode().encode("utf-16"), {}),
    "capital names": ("f.csv", text(head=[name.upper() for name in HEAD]), {}),
    "quoted cells": ("f.csv", text([[f'"{c}"' for c in row] for row in EXCEL]), {}),
    "gzip": ("f.csv.gz", gzip.compress(text()), {}),
    "zip": ("f.zip", packed("inside.csv"), {}),
    "parquet of others": ("f.parquet", parquet(THEIRS), MAPPED),
    "parquet of ours": ("f.parquet", parquet(HEAD), {}),
    "lines of JSON": ("f.jsonl", as_json(True), MAPPED),
    "JSON": ("f.json", as_json(False), MAPPED),
    "packed JSON": ("f.json.gz", gzip.compress(as_json(False)), MAPPED),
    "a map": ("f.csv", text(head=THEIRS), MAPPED),
    "a map and capitals": ("f.CSV", text(head=[n.upper() for n in THEIRS]), MAPPED),
    "a blank behind ids": ("f.csv", changed("subject", lambda p: f"{p} " if p == "p1" else p,
                                            THEIRS), MAPPED),
    "blanks around all cells": ("f.txt", text(head=THEIRS, cell=" ; "), MAPPED),
    "whole numbers with a point": ("f.csv", changed("action", lambda a: f"{a}.0", THEIRS), MAPPED),
    "decimal commas": ("f.csv", changed("reward", lambda r: f"{r},0", THEIRS, cell=";"), MAPPED),
    "CogBench's head in capitals": ("f.csv", text(RUNS, [n.upper() for n in COGBENCH]), {}),
    "CogBench's with bars, packed": ("f.txt.gz", gzip.compress(text(RUNS, COGBENCH, "|")), {}),
    "codes of a known head": ("f.csv", text([(*r[:3], "LR"[r[3]], r[4]) for r in RUNS], COGBENCH),
                              {"mapping": ["choice: L=0,R=1"]}),
}  # fmt: skip
REFUSED = {
    "wide": ("f.csv", text([(1, *range(7))], ["id", *(f"c{k}" for k in range(7))]), {},
             "pandas.wide_to_long"),
    "a workbook": ("f.XLSX", packed("xl/workbook.xml"), {}, "Save its sheet as CSV"),
    "two files in one package": ("f.zip", packed("a.csv", "b.csv"), {}, "Unpack it"),
    "a damaged package": ("f.csv.gz", gzip.compress(text())[:-9], {}, "Fetch it again"),
    "a column twice": ("f.csv", text(head=("id", "t", "casino", "won", "won")), MAPPED,
                       "Rename one"),
    "no head": ("f.csv", text()[len(",".join(HEAD)) + 1 :], {}, "--map"),
    "another encoding": ("f.csv", changed("subject", lambda p: f"{p}é").decode().encode("cp1252"),
                         {}, "--encoding cp1252"),
    "words for choices": ("f.csv", changed("action", lambda a: "LR"[a], THEIRS), MAPPED,
                          r"--map 'machine: L=0,R=1'"),
    "choices from 1": ("f.csv", text([(*r[:3], r[3] + 1, r[4]) for r in RUNS], COGBENCH), {},
                       r"--map 'choice: 1=0,2=1'"),
    "points for wins": ("f.csv", text([(*r[:4], 25 * r[4]) for r in RUNS], COGBENCH), {},
                        r"--map 'reward: 0=0,25=1'"),
    "a head alone": ("f.csv", text([]), {}, "at least one row"),
}  # fmt: skip


def test_there_are_forty_of_them():
    assert len({**RIGHT, **REFUSED}) >= 40


@pytest.mark.parametrize("way", RIGHT)
def test_a_file_is_read_right_in_whatever_way_it_is_written(tmp_path, way):
    name, content, options = RIGHT[way]
    (tmp_path / name).write_bytes(content)
    trials = import_trials([tmp_path / name], **options).frame
    read = trials[list(HEAD)].astype({"subject": object})
    if len(set(read["subject"])) < len(set(TRUTH["subject"])):
        # An engine's file is one subject, whose sessions are its runs.
        read["subject"] = "p" + trials["session"].astype(str)
    assert read.values.tolist() == TRUTH.values.tolist()


@pytest.mark.parametrize("way", REFUSED)
def test_a_file_that_cannot_be_read_is_refused_with_the_line_that_helps(tmp_path, way):
    name, content, options, remedy = REFUSED[way]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(remedy)) as caught:
        import_trials([tmp_path / name], out=tmp_path / "out.csv", **options)
    assert name in str(caught.value) or "column" in str(caught.value)
    assert not (tmp_path / "out.csv").exists()
