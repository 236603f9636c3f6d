"""Sentences on studies that are not finished.

Facts: a `SimpleNamespace` with `folder` (what is there on the disk) and `judged` (whether the page
below the finding is that of a result).
"""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from claims import Claim, Explanation, Report, check


def whole(text):
    return int(text.split()[0].replace(",", ""))


def there(folder):
    """Rows on the disk."""
    return sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("parts/*.parquet"))


def asked(folder):
    """Rows of the whole study, from what was asked."""
    study = json.loads((folder / "study.json").read_text())
    each = [cell["subjects"] if study["unit"] == "subject" else 1 for cell in study["cells"]]
    return study["replicates"] * sum(each)


def _not_finished(facts, words):
    steps = [file.parent for file in facts.folder.glob("*/study.json")]
    assert there(facts.folder) < asked(facts.folder) or steps


def _rows(facts, words):
    assert (whole(words["done"]), whole(words["of"])) == (there(facts.folder), asked(facts.folder))
    unit = json.loads((facts.folder / "study.json").read_text())["unit"]
    noun = {"subject": "fit", "replicate": "data set"}[unit]
    assert words["of"].split(maxsplit=1)[1] == noun + "s" * (whole(words["of"]) != 1)


def _steps(facts, words):
    steps = [file.parent for file in facts.folder.glob("*/study.json")]
    n = sum(there(step) == asked(step) for step in steps)
    assert (whole(words["n"]), words["are"]) == (n, "is" if n == 1 else "are")
    assert words["n"].endswith("step" if n == 1 else "steps")


def _title(facts, words):
    study = json.loads((facts.folder / "study.json").read_text())
    told = (study["command"], study["cells"][0]["environment"])
    assert (words["command"], words["environment"]) == told


def _folder(facts, words):
    assert words["folder"] == str(facts.folder)
    rest = f"{words['there']} {words['advice']}".split(". ")
    check(REPORT, [f"{rest[0]}.", *rest[1:]], facts)


def _judged(facts, words):
    assert facts.judged


def _not_judged(facts, words):
    assert not facts.judged


DISK = "the rows that lie on the disk, and what study.json asks for"
REPORT = Report(
    "unfinished study",
    sources=("validation/unfinished_page.py",),
    sentences=(
        Claim("This study is not finished.", DISK, _not_finished),
        Claim("{done} of {of} are there.", DISK, _rows),
        Claim("{n} of the search {are} finished.", DISK, _steps),
        Explanation("Run the same command again; it goes on from here."),
        Claim("All below is of what is there, and may still change.", "the page's result", _judged),
        Claim(
            "Nothing is judged yet: what is there does not say enough.",
            "the page's result",
            _not_judged,
        ),
        Claim("{command} of {environment}, not finished", "study.json", _title),
        Claim("The study in {folder} is not finished. {there} {advice}", DISK, _folder),
        Explanation("What is there, in {unit}"),
    ),
)
