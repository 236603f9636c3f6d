import numpy as np
import pandas as pd
import pytest
from played import observations

from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import TASKS, task_of
from knownminds.environments.words.cover_stories import SENSES

DOMAINS = ("economy", "sociology", "weather")
CELL = {"domains": ["weather"], "senses": ["mpm"]}


# ---------------------------------------------------------------- the questions


def test_a_session_asks_each_question_once_per_domain_and_sense_in_an_order_of_its_own():
    environment = Collider()
    one, other = observations(environment, 0), observations(environment, 1)
    keys = [[tuple(o.values())[1:] for o in s] for s in (one, other)]
    assert len(keys[0]) == len(set(keys[0])) == 240
    assert sorted(keys[0]) == sorted(keys[1])
    assert keys[0] != keys[1]
    cells = pd.DataFrame(one).groupby(["domain", "sense"]).size()
    assert cells.tolist() == [20] * 12


# ---------------------------------------------------------------- tables of trials


def by_task(environment=None, roman=True):
    """A session as a file names it: by task, queried variable and, in task II, present cause."""
    asked = pd.DataFrame(observations(environment or Collider(**CELL)))
    number = task_of(*(asked[name] for name in ("query", "first", "second", "third")))
    names = [TASKS[i].roman if roman else TASKS[i].letter for i in number]
    return asked, pd.DataFrame(
        {
            "subject": "a",
            "trial": asked["trial"],
            "task": names,
            "queried": [("C1", "C2", "E")[q] for q in asked["query"]],
            "present": [
                ("C1" if first else "C2") if i == 1 else None
                for first, i in zip(asked["first"], number, strict=True)
            ],
            "domain": [DOMAINS[d] for d in asked["domain"]],
            "sense": [SENSES[s] for s in asked["sense"]],
            "response": np.arange(len(asked)) / len(asked) * 100,
        }
    )


@pytest.mark.parametrize("roman", [True, False])
def test_a_file_that_names_tasks_is_completed(tmp_path, roman):
    environment = Collider()
    asked, table = by_task(environment, roman)
    if not roman:
        table["task"] = table["task"].str.upper()  # letter case does not matter
    table.to_csv(tmp_path / "answers.csv", index=False)
    trials = Trials.load(tmp_path / "answers.csv", environment=environment)
    wanted = asked[list(environment.fields.stimulus)].astype("int64")
    pd.testing.assert_frame_equal(trials.frame[list(environment.fields.stimulus)], wanted)
    assert trials.frame["task"].tolist() == table["task"].tolist()
    columns = list(trials.frame.columns)
    assert columns.index("trial") < columns.index("query") < columns.index("response")
    trials.save(tmp_path / "again.csv")
    again = Trials.load(tmp_path / "again.csv", environment=environment)
    pd.testing.assert_frame_equal(again.frame, trials.frame)


def test_eleven_answers_to_tasks_are_a_session_in_one_direction():
    environment = Collider(directions="one", **CELL)
    table = pd.DataFrame({"subject": "a", "trial": range(11), "response": 50.0})
    table["task"] = [task.roman for task in TASKS]
    trials = Trials.from_frame(table, environment=environment)
    asked = trials.frame[["query", "first", "second", "third"]].itertuples(index=False)
    assert [tuple(row) for row in asked] == [task.question for task in TASKS]
    assert set(trials.frame["domain"]) == {2}
    assert set(trials.frame["sense"]) == {SENSES.index("mpm")}


def test_nothing_is_made_up_for_a_file_that_lacks_a_column():
    environment, table = Collider(**CELL), by_task()[1]
    with pytest.raises(ValueError, match=r"says which variable is asked about .* no such column"):
        Trials.from_frame(table.drop(columns="queried"), environment=environment)
    with pytest.raises(ValueError, match=r"says which cause is present .* no such column"):
        Trials.from_frame(table.drop(columns="present"), environment=environment)
    with pytest.raises(ValueError, match="have a column 'query'"):
        Trials.from_frame(table.drop(columns="task"), environment=environment)
    with pytest.raises(ValueError, match="have a column 'domain'"):
        Trials.from_frame(table.drop(columns="domain"), environment=Collider())
    with pytest.raises(ValueError, match="have a column 'query'"):  # tasks are the collider's
        Trials.from_frame(table, environment=Collider(graph="fork"))
