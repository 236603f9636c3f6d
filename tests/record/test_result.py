import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from knownminds.environments.record.result import Result, plain, records


@dataclass(frozen=True)
class Score:
    value: float
    error: float


@dataclass(frozen=True)
class Found(Result):
    file: ClassVar[str] = "found.json"

    name: str
    score: Score
    table: pd.DataFrame

    def tables(self):
        return {"rows": self.table}

    @classmethod
    def from_dict(cls, found):
        table = pd.DataFrame(found["table"])
        return cls(found["name"], Score(**found["score"]), table.astype({"x": float}))

    def __str__(self):
        return f"{self.name} <{self.score.value:g}>"


def found():
    table = pd.DataFrame({"x": [1.0, np.nan], "why": [{"no answer": 2}, {}]})
    return Found("m", Score(0.5, np.inf), table)


def test_json_files_and_view_follow_from_the_fields(tmp_path):
    one = found()
    told = {
        "name": "m",
        "score": {"value": 0.5, "error": None},
        "table": [{"x": 1.0, "why": {"no answer": 2}}, {"x": None, "why": {}}],
    }
    assert json.loads(one.to_json()) == one.to_dict() == told
    one.save(tmp_path / "new")
    text = (tmp_path / "new" / "found.json").read_text()
    assert json.loads(text) == told
    assert "NaN" not in text
    assert (tmp_path / "new" / "rows.csv").read_text().splitlines()[1] == '1.0,"{""no answer"": 2}"'
    again = Found.read(tmp_path / "new")
    assert again.name == "m"
    pd.testing.assert_frame_equal(again.table, one.table)
    assert one._repr_html_() == "<pre>m &lt;0.5&gt;</pre>"


@pytest.mark.parametrize("content", [None, "{", "[]", '{"name": "m"}'])
def test_a_file_that_is_missing_damaged_or_of_something_else_is_one_sentence(tmp_path, content):
    if content is not None:
        (tmp_path / "found.json").write_text(content)
    with pytest.raises(ValueError, match=r"found\.json is damaged or not of knownminds \("):
        Found.read(tmp_path)


def test_values_of_numpy_and_tables_become_plain_ones():
    given = {1: (np.float64("nan"), np.int64(2), np.arange(2)), "b": np.bool_(True)}
    assert plain(given) == {"1": [None, 2, [0, 1]], "b": True}
    assert records(pd.DataFrame({"x": [1 / 3, np.nan]})) == [{"x": 0.3333333333}, {"x": None}]


ROOT = Path(__file__).resolve().parents[2]
ARE_DATA = {"RevealedBeliefs", "BeliefDecisions"}  # read from files, and measured by others


def test_what_gives_a_table_is_a_result_with_all_that_results_have():
    """A short line, a summary, a drawing and a view in notebooks come with the base."""
    bases = {"Result", "SubjectResult", "Reported", "SessionMeasure"}
    for floor in ("inference", "validation"):
        for file in sorted((ROOT / floor).rglob("*.py")):
            for found in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(found, ast.ClassDef) or found.name in ARE_DATA:
                    continue
                own = {one.name for one in found.body if isinstance(one, ast.FunctionDef)}
                above = {ast.unparse(base) for base in found.bases}
                told = f"{file.relative_to(ROOT)}: {found.name} gives a table and is no Result"
                assert "to_frame" not in own or above & bases, told


def test_a_comparison_is_a_line_a_table_and_a_drawing():
    from knownminds.inference.posteriors.comparison import LeaveOneOut

    one = LeaveOneOut("m", ("a", "b"), np.array([-3.0, -5.0]), np.array([0.1, 0.9]))
    assert repr(one).startswith("<LeaveOneOut: m: elpd -8.0 (se 2.0) over 2 subjects")
    assert one.summary()["elpd"].tolist() == [-3.0, -5.0]
    assert one.plot().axes[0].get_xlabel() == "elpd"
    assert one._repr_html_().startswith("<pre>m: elpd -8.0")
