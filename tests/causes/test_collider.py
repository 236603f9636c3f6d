import asyncio
import itertools
import re
import tomllib
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, play
from knownminds.environments import Collider, Message, Outcome, Trials, check_environment
from knownminds.environments.causes.causal_graph import EDGES, GRAPHS, TASKS, direction_of, task_of
from knownminds.environments.causes.collider import CONTENTS, FORMS, OVERLOADS
from knownminds.environments.words.cover_stories import SENSES, filler, load_stories
from knownminds.llm_adapters import Synthetic, run_session

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


def value_of(domain, sense, variable, value):
    """What a variable's value is called in a story."""
    words = STORIES[DOMAINS[domain]]["variable"][variable]
    return words[SENSES[sense][variable]] if value else words["normal"]


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


def test_no_answer_is_right_or_wrong():
    environment = Collider(**CELL)
    frame = pd.DataFrame(session(environment)).assign(subject="a", response=50.0)
    trials = Trials.from_frame(frame, environment=environment)
    assert np.isnan(environment.performance(trials)).all()
    assert environment.truth(ASKED) is None


# ---------------------------------------------------------------- the contract, and reading back

COMBINATIONS = [
    {"graph": graph, "content": content, "overload": overload, "control": control}
    for graph, content, overload, control in itertools.product(
        GRAPHS, CONTENTS, OVERLOADS, (False, True)
    )
    if overload != "none" or not control
]


@pytest.mark.parametrize("answer", FORMS)
def test_every_combination_of_content_keeps_the_contract(answer):
    assert len(COMBINATIONS) == 147
    for k, settings in enumerate(COMBINATIONS):
        if k % 2 == FORMS.index(answer):  # half of them with each form of answer
            check_environment(Collider(**CELL, **settings, answer=answer, repeats=1 + k % 2), k)


def test_every_prompt_of_every_combination_is_read_back():
    for seed, settings in enumerate(COMBINATIONS):
        environment = Collider(
            domains=["economy", "weather"], senses=["pmm", "mmp"], directions="one", **settings
        )
        for observation in session(environment, seed):
            prompt = environment.render(observation, [])
            assert environment.read(prompt.messages) == ([], observation)


def test_a_prompt_of_other_settings_or_another_session_is_not_read():
    environment = Collider(**CELL)
    observation = session(environment)[0]
    words = shown(environment, observation)
    for other in (Collider(domains=["economy"]), Collider(answer="chain_of_thought", **CELL)):
        other.reset(seed=0)
        with pytest.raises(ValueError, match="one message, with a question of its grid; got 1"):
            other.read([Message("user", words)])
    with pytest.raises(ValueError, match="got 0"):
        environment.read([])
    named = Collider(content="letters", **CELL)
    told = named.render(session(named, 0)[3], []).messages
    named.read(told)
    named.reset(seed=1)
    with pytest.raises(ValueError, match="with a question of its grid"):
        named.read(told)
    with pytest.raises(ValueError, match="is no question of"):
        environment.render({**observation, "domain": 0}, [])


@pytest.mark.parametrize(
    "settings",
    [
        {"senses": ["pmm"], "overload": "e", "answer": "chain_of_thought"},
        {"content": "digits_symbols", "repeats": 2, "overload": "de", "control": True, **CELL},
        {"graph": "fork", "content": "letters", "senses": ["mmp"]},
    ],
)
def test_a_known_mind_behind_an_endpoint_lives_the_session_that_play_lives(settings):
    environment = Collider(**settings)
    mind = AGENTS["noisy_or"](p=0.4, b=0.1, m1=0.8, m2=0.5, sigma=0.2, lapse=0.1)
    spoken = asyncio.run(run_session(Synthetic(mind, environment, 11, 3), environment, 11, 3, 5))
    played = play(mind, environment, 11, 3, 5).frame
    pd.testing.assert_frame_equal(spoken.frame[played.columns], played, check_exact=True)
    assert set(spoken.frame["outcome"]) == {"ok"}


# ---------------------------------------------------------------- what prompts say


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_prompt_says_what_the_columns_say(graph):
    environment = Collider(graph=graph)
    for o in session(environment):
        words = shown(environment, o)
        at = (o["domain"], o["sense"])
        told = [(v, o[name]) for v, name in enumerate(("first", "second", "third"))]
        facts = [value_of(*at, v, value) for v, value in told if value >= 0]
        (learned,) = re.findall(r"You learn that it has (.*)\.\n", words)
        assert learned == " and ".join(facts)
        (asked,) = re.findall(r"How likely is it that this [a-z ]+ has (.*)\? Say", words)
        assert asked == value_of(*at, o["query"], 1)
        assert o[("first", "second", "third")[o["query"]]] == -1
        links = re.findall(r"^- (.*?) causes? (.*?)\. (.*)$", words, re.MULTILINE)
        story, sense = STORIES[DOMAINS[o["domain"]]], SENSES[o["sense"]]
        assert [(c.lower(), e, m) for c, e, m in links] == [
            (
                value_of(*at, cause, 1).lower(),
                value_of(*at, effect, 1),
                story["mechanism"][f"{cause + 1}_to_{effect + 1}"][sense[cause] + sense[effect]],
            )
            for cause, effect in EDGES[graph]
        ]
        assert words.startswith(story["introduction"])
        for v in range(3):
            assert f"have {value_of(*at, v, 1)}, others have {value_of(*at, v, 0)}." in words
        assert "{" not in words
        assert "  " not in words
        assert not re.search(r"\s\n", words.replace("\n\n", "\n"))


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


def test_filler_keeps_sentences_words_and_capitals():
    words = "a et sed quis ut"
    assert filler("An ox, in Rome: X.", words) == "Et ut, et Quis: A."
    with pytest.raises(ValueError, match="none of 5 letters, as 'seven' has"):
        filler("of seven", words)


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


def test_the_two_forms_of_answers_differ_in_the_last_paragraph_alone():
    plain, thinking = (Collider(answer=answer, **CELL) for answer in FORMS)
    observation = session(plain)[7]
    thinking.reset(seed=0)
    one, other = (shown(e, observation).rpartition("\n\n") for e in (plain, thinking))
    assert one[0] == other[0]
    assert one[2] == WORDS["answer_numeric"].strip()
    assert other[2] == WORDS["answer_chain_of_thought"].strip()


def test_each_shipped_mechanism_is_one_sentence_of_its_own():
    stories = load_stories(SHIPPED["cover_stories.toml"])
    assert tuple(stories) == DOMAINS
    told = [
        text
        for story in stories.values()
        for sentences in story.mechanisms.values()
        for text in sentences.values()
    ]
    assert len(told) == len(set(told)) == 36
    assert all(re.fullmatch(r"[A-Z][^.!?]*\.", text) for text in told)
    assert {story.words["distraction"] for story in stories.values()} == {"sociology", "economy"}


# ---------------------------------------------------------------- parsers

NUMBERS = [
    ("75", 75.0, Outcome.OK),
    (" 75\n", 75.0, Outcome.OK),
    ("0", 0.0, Outcome.OK),
    ("100", 100.0, Outcome.OK),
    ("100.0", 100.0, Outcome.OK),
    ("72.5", 72.5, Outcome.OK),
    ("33.333333", 33.333333, Outcome.OK),  # decimals are kept
    ("0.75", 0.75, Outcome.OK),  # and never taken for a share of 1
    ("75%", 75.0, Outcome.REPAIRED),
    ("75 %", 75.0, Outcome.REPAIRED),
    ("72.5%.", 72.5, Outcome.REPAIRED),
    ("**75%**", 75.0, Outcome.REPAIRED),
    ("0.75%", 0.75, Outcome.REPAIRED),
    ("75.", 75.0, Outcome.REPAIRED),
    ("Answer: 75", 75.0, Outcome.REPAIRED),
    ("100.5", None, Outcome.MALFORMED),
    ("101%", None, Outcome.MALFORMED),
    ("-1", None, Outcome.MALFORMED),
    ("5%0", None, Outcome.MALFORMED),
    ("5%.5", None, Outcome.MALFORMED),
    ("%75", None, Outcome.MALFORMED),
    ("75%%", None, Outcome.MALFORMED),
    ("75% 80%", None, Outcome.MALFORMED),
    ("75  %", None, Outcome.MALFORMED),
    ("75,5", None, Outcome.MALFORMED),
    ("75 percent", None, Outcome.MALFORMED),
    ("75/100", None, Outcome.MALFORMED),
    ("70-80", None, Outcome.MALFORMED),
    ("~75~", 75.0, Outcome.REPAIRED),  # marked up
    ("7e1", None, Outcome.MALFORMED),
    ("seventy", None, Outcome.MALFORMED),
    ("It is 75.", None, Outcome.MALFORMED),
    ("I cannot answer this.", None, Outcome.REFUSED),
    ("  ", None, Outcome.EMPTY),
]


@pytest.mark.parametrize(("text", "response", "outcome"), NUMBERS)
def test_a_number_is_read_by_the_declared_rules(text, response, outcome):
    answer = Collider(**CELL).parse(text, ASKED)
    assert (answer.response, answer.outcome, answer.text) == (response, outcome, text)
    assert answer.action is None
    assert (answer.note == "") == (outcome is Outcome.OK)
    assert ("percent" in answer.note) == ("%" in text and response is not None)


FRAME = "<answer><reasoning>{}</reasoning><likelihood>{}</likelihood></answer>"
FRAMES = [
    (FRAME.format("so: p < .5 & <b>rising</b>", "72.5"), 72.5, Outcome.OK),
    ("\n" + FRAME.format("a\nb", " 72 ").replace("><", ">\n  <") + "\n", 72.0, Outcome.OK),
    (FRAME.format("", "72%"), 72.0, Outcome.REPAIRED),
    (f"```xml\n{FRAME.format('', '72')}\n```", 72.0, Outcome.REPAIRED),
    ("Sure, 12! " + FRAME.format("I first said 99.", "72") + " Or 13.", 72.0, Outcome.REPAIRED),
    ("<likelihood>72</likelihood>", 72.0, Outcome.REPAIRED),
    (FRAME.format("", "72").replace("answer", "response"), 72.0, Outcome.REPAIRED),
    (FRAME.format("", "72").upper(), 72.0, Outcome.REPAIRED),
    ("72", None, Outcome.MALFORMED),
    ("Answer: 72", None, Outcome.MALFORMED),
    ("<answer><reasoning>72</reasoning></answer>", None, Outcome.MALFORMED),
    ("<answer><reasoning>It breaks off", None, Outcome.MALFORMED),
    ("<answer><reasoning>x</reasoning><likelihood>72", None, Outcome.MALFORMED),
    ("</likelihood>72<likelihood>", None, Outcome.MALFORMED),
    (FRAME.format("", "72") * 2, None, Outcome.MALFORMED),
    (FRAME.format("<likelihood>72</likelihood>", "72"), None, Outcome.MALFORMED),
    (FRAME.format("I put <likelihood> last", "72"), None, Outcome.MALFORMED),
    (FRAME.format("", "101"), None, Outcome.MALFORMED),
    (FRAME.format("", "-3"), None, Outcome.MALFORMED),
    (FRAME.format("", "60-70"), None, Outcome.MALFORMED),
    (FRAME.format("", ""), None, Outcome.MALFORMED),
    (FRAME.format("", "high"), None, Outcome.MALFORMED),
    (FRAME.format("", "I cannot answer"), None, Outcome.REFUSED),
    ("I refuse to take part.", None, Outcome.REFUSED),
    (" \n", None, Outcome.EMPTY),
]


@pytest.mark.parametrize(("text", "response", "outcome"), FRAMES)
def test_of_an_xml_frame_the_likelihood_is_read_and_nothing_else(text, response, outcome):
    answer = Collider(answer="chain_of_thought", **CELL).parse(text, ASKED)
    assert (answer.response, answer.outcome, answer.text) == (response, outcome, text)
    assert (answer.note == "") == (outcome is Outcome.OK)


@pytest.mark.parametrize("answer", FORMS)
def test_what_was_cut_off_is_truncated(answer):
    environment = Collider(answer=answer, **CELL)
    for text in ("7", "<answer><reasoning>I think", FRAME.format("", "72")):
        cut = environment.replies.cut(text, ASKED)
        assert (cut.outcome, cut.response) == (Outcome.TRUNCATED, None)


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


def spoil(column, value, task="VI"):
    table = by_task()[1]
    row = int(np.flatnonzero(table["task"] == task)[0])
    table[column] = table[column].astype(object)
    table.loc[row, column] = value
    return table, f'row {row + 1} (subject "a", trial {table["trial"][row]})'


@pytest.mark.parametrize(
    ("column", "value", "task", "sentence"),
    [
        ("task", "q", "VI", "Tasks of collider are I to XI or the letters a to k; {} has 'q'"),
        ("task", "XII", "VI", "{} has 'XII'. Correct it"),
        ("task", None, "VI", "{} has nan"),
        ("queried", "E", "VI", "which variable is asked about (C1 or C2); in {} it has 'E'"),
        ("queried", None, "VI", "which variable is asked about (C1 or C2); in {} it has nan"),
        ("queried", "C1", "I", "task I of collider the column 'queried' says"),
        ("present", "E", "II", "'present' says which cause is present (C2 or C1); in {} it has"),
        ("domain", "history", "VI", "'domain' names one of economy, sociology, weather"),
        ("sense", "pmp", "VI", "'sense' names one of ppp, pmm, mpm, mmp"),
        ("response", 100.1, "VI", "Responses of collider go from 0 to 100; {} has 100.1"),
        ("response", -1.0, "VI", "{} has -1. Rescale"),
        ("domain", "economy", "VI", "ask questions of its grid; {} has graph 0, query"),
    ],
)
def test_what_a_file_has_wrong_is_told_with_its_trial(column, value, task, sentence):
    table, place = spoil(column, value, task)
    with pytest.raises(ValueError, match=re.escape(sentence.format(place))):
        Trials.from_frame(table, environment=Collider(**CELL))


def test_a_percentage_in_a_file_is_no_number():
    table = by_task()[1]
    table["response"] = [f"{value:g}%" for value in table["response"]]
    with pytest.raises(ValueError, match=r"'response' holds numbers; row 1 has '0%'"):
        Trials.from_frame(table, environment=Collider(**CELL))


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


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"graph": "loop"}, "graph is one of collider, chain, fork; got 'loop'"),
        ({"content": "random"}, "content is one of meaningful, all, alnum, num_symb, letters,"),
        ({"overload": "ed"}, "overload is one of none, d, e, de; got 'ed'"),
        ({"directions": "two"}, "directions is one of both, one"),
        ({"answer": "words"}, "answer is one of numeric, chain_of_thought"),
        ({"control": True}, "A control is one of an overload"),
        ({"control": "yes", "overload": "d"}, "control is True or False; got 'yes'"),
        ({"repeats": 0}, "repeats is a whole number from 1 on; got 0"),
        ({"repeats": True}, "repeats is a whole number"),
        ({"domains": ["biology"]}, "domains are one or more of economy, sociology, weather"),
        ({"senses": []}, "senses are one or more of ppp, pmm, mpm, mmp"),
        ({"senses": ["ppp", "ppp"]}, "each once"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told(settings, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Collider(**settings)


def edited(tmp_path, name, *changes):
    text = SHIPPED[name].read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_wording_and_stories_of_ones_own_are_used_and_read_back(tmp_path):
    wording = edited(tmp_path, "collider.toml", ("You learn that", "It turns out that"))
    stories = edited(tmp_path, "cover_stories.toml", ("economy", "market"), ("ozone", "smoke"))
    environment = Collider(templates=wording, stories=stories, senses=["mpm"])
    assert environment.domains == ("market", "sociology", "weather")
    check_environment(environment)
    prompts = [shown(environment, o) for o in session(environment)]
    assert all("It turns out that it has" in prompt for prompt in prompts)
    assert any("this market has" in prompt for prompt in prompts)
    assert sum("low smoke levels" in prompt for prompt in prompts) == 20


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("collider.toml", "{observed}", "this", "'prompt' must use {observed}"),
        ("collider.toml", "<likelihood>", "<number>", "asks for <likelihood>"),
        (
            "cover_stories.toml",
            'normal = "normal humidity"',
            'normal = "high humidity"',
            "Each question has words of its own",
        ),
        ("cover_stories.toml", 'pm = "Ozone re', 'px = "Ozone re', "lacks 'pm'"),
        ("cover_stories.toml", "one = ", 'two = "x"\none = ', "unknown 'two'"),
        ("cover_stories.toml", 'distraction = "sociology"', 'distraction = "art"', "is 'art'"),
        ("cover_stories.toml", 'one = "economy"', "one = 1", "'one' in the domain 'economy'"),
        ("cover_stories.toml", "[economy]", "[economy", "are a readable TOML file"),
    ],
)
def test_a_file_of_words_that_cannot_serve_is_told(tmp_path, name, old, new, sentence):
    file = edited(tmp_path, name, (old, new))
    option = {"templates" if name == "collider.toml" else "stories": file}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Collider(**option)
