"""A further kind of study is one file: a question, its work, and what is made of the rows."""

import json

import pandas as pd
import pytest

from knownminds.validation import cli
from knownminds.validation.engine.members import load_file

FILE = '''
"""How often do subjects repeat their last choice?"""

from typing import ClassVar

import pandas as pd

from knownminds.agents import AGENTS
from knownminds.validation.cli.application import add
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.population import check_step_loop, draw_subjects, live
from knownminds.validation.engine.question import StudyQuestion, frozen_question, option
from knownminds.validation.engine.scores import mean
from knownminds.validation.engine.study import Study
from knownminds.validation.engine.cells import Cell


@frozen_question
class Repeat(StudyQuestion):
    """Ask how often subjects of a model repeat their last choice.

    Parameters
    ----------
    model
        Whose subjects.
    subjects
        How many.
    """

    command: ClassVar[str] = "repeat"
    computed_in: ClassVar[str] = "repeat_study"

    model: str = option(argument=True, kw_only=False)
    subjects: int = 20


def compute(question):
    cell = Cell("instrumental_learning", {}, question.model, subjects=question.subjects, batch=8)
    study = Study("repeat", (cell,), question=question.option_values())
    check_step_loop(study)
    return run(study, work, say, question)


def work(study, batch, threads):
    lived = live(study, batch, draw_subjects(study, batch))
    action = pd.Series(lived.columns["action"])
    same = (action == action.groupby(lived.subject).shift()).groupby(lived.subject).mean()
    return pd.DataFrame({"status": "ok", "message": "", "repeats": same})


def say(rows):
    table = pd.DataFrame({"repeats": [mean(rows.frame["repeats"])]})
    return rows.result("How often are choices repeated?", tables={"Repeats": table})


add(Repeat)
'''


def test_one_file_brings_a_command_a_study_and_its_report(tmp_path, capsys):
    file = tmp_path / "repeat_study.py"
    file.write_text(FILE)
    load_file(file)
    words = ["repeat", "perseverator", "--subjects", "12", "--out", str(tmp_path / "s"), "--json"]
    with pytest.raises(SystemExit):
        cli.main(words)
    first = json.loads(capsys.readouterr().out)
    (repeats,) = first["tables"]["repeats"]
    assert first["attempted"] == 12
    assert 0 < repeats["repeats"] < 1
    assert len(pd.read_parquet(next((tmp_path / "s" / "parts").iterdir()))) == 8
    with pytest.raises(SystemExit):
        cli.main(["report", str(tmp_path / "s"), "--json"])
    assert json.loads((tmp_path / "s" / "result.json").read_text())["tables"] == first["tables"]
