import re
import tomllib
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from knownminds.environments import Collider, Outcome, Trials
from knownminds.environments.causes.causal_graph import EDGES, GRAPHS, TASKS, direction_of, task_of
from knownminds.environments.causes.collider import FORMS
from knownminds.environments.words.cover_stories import SENSES

SHIPPED = {
    "collider.toml": files("knownminds.environments.causes") / "collider.toml",
    "cover_stories.toml": files("knownminds.environments.words") / "cover_stories.toml",
}
STORIES = tomllib.loads(SHIPPED["cover_stories.toml"].read_text(encoding="utf-8"))
WORDS = tomllib.loads(SHIPPED["collider.toml"].read_text(encoding="utf-8"))
DOMAINS = ("economy", "sociology", "weather")
CELL = {"domains": ["weather"], "senses": ["mpm"]}
ASKED = {"trial": 0, "graph": 0, "query": 0, "first": -1, "second": 1, "third": 1}
ASKED |= {"domain": 2, "sense": 2, "round": 0}


def session(environment, seed=0):
    """All observations of a session."""
    environment.reset(seed=seed)
    table = environment.design.table
    return [
        {"trial": t, **{name: int(column[t]) for name, column in table.items()}}
        for t in range(environment.n_trials)
    ]


def shown(environment, observation):
    """The one message of a prompt."""
    (message,) = environment.render(observation, []).messages
    assert message.role == "user"
    return message.content


# ---------------------------------------------------------------- the questions


def test_a_session_asks_each_question_once_per_domain_and_sense_in_an_order_of_its_own():
    environment = Collider()
    one, other = session(environment, 0), session(environment, 1)
    keys = [[tuple(o.values())[1:] for o in s] for s in (one, other)]
    assert len(keys[0]) == len(set(keys[0])) == 240
    assert sorted(keys[0]) == sorted(keys[1])
    assert keys[0] != keys[1]
    cells = pd.DataFrame(one).groupby(["domain", "sense"]).size()
    assert cells.tolist() == [20] * 12


@pytest.mark.parametrize(
    ("settings", "n"),
    [
        ({"directions": "one"}, 132),
        ({"graph": "chain", **CELL}, 24),
        ({"graph": "fork", **CELL}, 24),
        ({"graph": "fork", "directions": "one", **CELL}, 13),
        ({"repeats": 3, **CELL}, 60),
        ({"domains": ["weather", "economy"], "senses": ["mmp"]}, 40),
        ({"domains": "sociology"}, 80),
    ],
)
def test_the_settings_choose_the_questions(settings, n):
    environment = Collider(**settings)
    asked = session(environment)
    assert environment.n_trials == len({tuple(o.values())[1:] for o in asked}) == n
    if environment.directions == "one":
        q = [[o[name] for o in asked] for name in ("query", "first", "second", "third", "graph")]
        assert set(direction_of(*q).tolist()) == {0}


def test_rounds_follow_one_another_and_are_told_only_where_there_are_several():
    environment = Collider(repeats=3, **CELL)
    asked = session(environment)
    assert [o["round"] for o in asked] == [0] * 20 + [1] * 20 + [2] * 20
    orders = [[tuple(o.values())[1:-1] for o in asked[k : k + 20]] for k in (0, 20, 40)]
    assert orders[0] != orders[1]
    prompts = [shown(environment, o) for o in asked]
    assert len(set(prompts)) == 60
    assert prompts[25].startswith("Round 2 of 3.\n")
    once = Collider(**CELL)
    alone = {shown(once, o) for o in session(once)}
    assert {prompt.split("\n\n", 1)[1] for prompt in prompts} == alone


# ---------------------------------------------------------------- the contract, and reading back


# ---------------------------------------------------------------- what prompts say


def lines(environment, observation):
    """The lines about variables, and those about links."""
    said = shown(environment, observation).split("\n")
    links = [line for line in said if line.startswith("- ")]
    return [line for line in said if line.startswith("Some ") or ". Some " in line], links


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("content", ["meaningful", "letters_digits"])
def test_an_overload_appends_the_texts_of_another_domain_where_it_says(graph, content):
    source = {"economy": "sociology", "sociology": "economy", "weather": "economy"}
    settings = {"graph": graph, "content": content}
    plain = Collider(**settings)
    loaded = {overload: Collider(overload=overload, **settings) for overload in ("d", "e", "de")}
    asked = session(plain, 4)[:40]
    for environment in loaded.values():
        environment.reset(seed=4)
    for o in asked:
        story, sense = STORIES[source[DOMAINS[o["domain"]]]], SENSES[o["sense"]]
        variables, links = lines(plain, o)
        more = [variable["description"] for variable in story["variable"]]
        longer = [f"{line} {text}" for line, text in zip(variables, more, strict=True)]
        mechanisms = [
            story["mechanism"][f"{cause + 1}_to_{effect + 1}"][sense[cause] + sense[effect]]
            for cause, effect in EDGES[graph]
        ]
        stretched = [f"{line} {text}" for line, text in zip(links, mechanisms, strict=True)]
        assert lines(loaded["d"], o) == (longer, links)
        assert lines(loaded["e"], o) == (variables, stretched)
        assert lines(loaded["de"], o) == (longer, stretched)


@pytest.mark.parametrize("overload", ["d", "e", "de"])
def test_a_control_is_as_long_as_the_overload_and_says_nothing(overload):
    full, control = (Collider(overload=overload, control=c) for c in (False, True))
    plain = Collider()
    plain.reset(seed=0)
    control.reset(seed=0)
    nonsense = set(WORDS["filler"].split())
    for o in session(full):
        a, b, bare = (shown(e, o) for e in (full, control, plain))
        assert len(a) == len(b) > len(bare) + 100
        assert a != b
        assert len(a.split()) == len(b.split())
        added = set(re.findall(r"[a-z]+", b.lower())) - set(re.findall(r"[a-z]+", bare.lower()))
        assert added <= nonsense
        assert added


@pytest.mark.parametrize(
    ("content", "one", "other"),
    [
        ("letters", r"[A-Za-z]", r"[A-Za-z]"),
        ("letters_digits", r"[A-Za-z]", r"\d"),
        ("digits_symbols", r"\d", r"[!#$+=?@^~]"),
        ("all", r"[A-Za-z]", r"[0-9!#$+=?@^~]"),
        ("alnum", r"[A-Za-z]", r"\d"),
        ("num_symb", r"\d", r"[!#$+=?@^~]"),
    ],
)
def test_abstract_variables_have_random_names_of_ten_characters_and_no_meaning(content, one, other):
    environment = Collider(content=content)
    seen = set()
    for seed in range(20):
        environment.reset(seed=seed)
        named = environment.design.labels["names"]
        seen |= {name for triple in named for name in triple}
    assert len(seen) == 20 * 9  # new ones in each session, no two alike
    assert all(re.fullmatch(f"(?:{one}|{other}){{10}}", name) for name in seen)
    if content in ("all", "alnum", "num_symb"):
        size = {r"[A-Za-z]": 52, r"\d": 10, r"[!#$+=?@^~]": 9, r"[0-9!#$+=?@^~]": 19}
        share = size[other] / (size[one] + size[other])
        written = "".join(sorted(seen))
        # Every character comes from the whole alphabet: 1,800 of them, four standard errors.
        error = np.sqrt(share * (1 - share) / len(written))
        assert abs(len(re.findall(other, written)) / len(written) - share) < 4 * error
        assert len({len(re.findall(other, name)) for name in seen}) > 3
    elif one != other:
        assert all(len(re.findall(other, name)) == 4 for name in seen)
        assert len({tuple(bool(re.match(other, c)) for c in name) for name in seen}) > 50
    values = [("high", "low"), ("strong", "weak"), ("powerful", "weak")]
    for o in session(environment, 5):
        words = shown(environment, o)
        names = environment.design.labels["names"][o["domain"]]
        meant = [
            (f"{p} {name}", f"{m} {name}") if letter == "p" else (f"{m} {name}", f"{p} {name}")
            for name, (p, m), letter in zip(names, values, SENSES[o["sense"]], strict=True)
        ]
        told = [(o["first"], 0), (o["second"], 1), (o["third"], 2)]
        facts = [meant[v][0] if value else meant[v][1] for value, v in told if value >= 0]
        assert f"You learn that it has {' and '.join(facts)}.\n" in words
        assert f"has {meant[o['query']][0]}?" in words
        for present, absent in meant:
            assert f"Some systems have {present}, others have {absent}." in words
        opening = [present[0].upper() + present[1:] for present, _ in meant]
        assert f"- {opening[0]} causes {meant[2][0]}.\n" in words
        assert f"- {opening[1]} causes {meant[2][0]}.\n" in words
        assert not re.search("normal|econom|societ|weather", words)
        assert not any(name in words for triple in named[:1] for name in triple if triple != names)


# ---------------------------------------------------------------- parsers


@pytest.mark.parametrize("answer", FORMS)
def test_what_a_cooperative_participant_says_is_read_to_the_last_digit(answer):
    environment = Collider(answer=answer, **CELL)
    for number in (0.0, 100.0, 1e-7, 33.3, 100 / 3, np.nextafter(100.0, 0.0)):
        read = environment.parse(environment.say(number, ASKED), ASKED)
        assert (read.outcome, read.response) == (Outcome.OK, number)


# ---------------------------------------------------------------- tables of trials


def by_task(environment=None, roman=True):
    """A session as a file names it: by task, queried variable and, in task II, present cause."""
    asked = pd.DataFrame(session(environment or Collider(**CELL)))
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


# ---------------------------------------------------------------- settings, wording, stories
