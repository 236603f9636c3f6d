"""A command and the function of its name are one question: arguments, defaults, answers."""

import html
import inspect
import json
import re
import shlex
from dataclasses import fields

import pytest
import typer

import knownminds as package
from knownminds import calling
from knownminds.environments import Environment, make
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in
from knownminds.validation.benchmarks.running import players_of, run_benchmark
from knownminds.validation.cli import command
from knownminds.validation.costs.connect import connect, run_sessions

PLACE = "two_step"  # whose usual model is not the first of all
# What each question cannot do without, and what its command then takes.
NEEDED = {
    "audit": ({"measure": "optimism_bias"}, ("optimism_bias",)),
    "benchmark": ({"name": "cogbench"}, ("cogbench",)),
    "best_design": ({"environment": PLACE, "budget": {"trials": 200.0}},
                    (PLACE, "--budget", "trials=200")),
    "budget": ({"environment": PLACE}, (PLACE,)),
    "calibrate": ({"environment": PLACE}, (PLACE,)),
    "confuse": ({"environment": PLACE, "models": ["random_responder", "perseverator"]},
                (PLACE, "--model", "random_responder", "--model", "perseverator")),
    "export_trials": ({"data": "a.csv", "out": "b.csv"}, ("a.csv", "--out", "b.csv")),
    "fit": ({"data": ["a.csv"]}, ("a.csv",)),
    "import_trials": ({"sources": ["a.csv"]}, ("a.csv",)),
    "look": ({"name": PLACE}, (PLACE,)),
    "page": ({"environment": PLACE, "out": "site"}, (PLACE, "--out", "site")),
    "power": ({"environment": PLACE, "effect": {"w": 0.2}}, (PLACE, "--effect", "w=0.2")),
    "recover": ({"environment": PLACE}, (PLACE,)),
    "referee": ({"candidate": "two_step_reduced", "environment": PLACE},
                ("two_step_reduced", "--environment", PLACE)),
    "report": ({"folder": "study"}, ("study",)),
    "reveal": ({"scenarios": ["coins"], "llm": ["synthetic:belief_sampler"]},
               ("coins", "--llm", "synthetic:belief_sampler")),
    "run": ({"environment": PLACE, "llm": "synthetic:two_step_reduced"},
            (PLACE, "--llm", "synthetic:two_step_reduced")),
    "score": ({"data": ["a.csv"]}, ("a.csv",)),
    "serve": ({"environment": PLACE}, (PLACE,)),
    "simulate": ({"environment": PLACE}, (PLACE,)),
}  # fmt: skip
OF_COMMANDS = {"as_json", "full", "help"}
OF_FUNCTIONS = {"progress", "tell"}  # which are called on the way
NO_QUESTIONS = {"feature_regression"}
each = pytest.mark.parametrize("verb", sorted(set(package.VERBS) - NO_QUESTIONS))


def question_of(verb):
    return getattr(package, verb).question


def plain(value):
    """A value as it is compared: an experiment by name and settings."""
    if isinstance(value, Environment) and value.settings == make(value.name).settings:
        return value.name
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value) if hasattr(value, "__fspath__") else value or None


def asked(question):
    return {one.name: plain(getattr(question, one.name)) for one in fields(question)}


@pytest.fixture
def typed(knownminds, monkeypatch):
    """What question a command asks, which is not answered."""

    def ask(kind, *words):
        asks, read = [], kind.of_typed

        def kept(given):
            asks.append(read(given))
            raise typer.Exit

        with monkeypatch.context() as patch:
            patch.setattr(kind, "of_typed", staticmethod(kept))
            code, _, err = knownminds(kind.command, *words)
        assert code == 0, err
        return asks[0]

    return ask


@each
def test_function_and_command_have_the_same_arguments_and_defaults(verb, typed):
    function, kind = getattr(package, verb), question_of(verb)
    given, words = NEEDED[verb]
    arguments = inspect.signature(function).parameters
    assert set(arguments) == {one.name for one in fields(kind)}
    options = {parameter.name for parameter in command().commands[kind.command].params}
    in_another = {one.name for one in fields(kind) if not one.metadata.get("typed", True)}
    assert options - OF_COMMANDS == set(arguments) - OF_FUNCTIONS - in_another
    assert asked(typed(kind, *words)) == asked(kind(**given))


def test_names_of_the_command_line_lead_to_those_of_functions():
    with pytest.raises(TypeError, match="takes as --set is the argument truth of recover"):
        package.recover(PLACE, set={"w": 0.5})
    with pytest.raises(AttributeError, match="Nearest: best_design"):
        package.design  # noqa: B018 - what it raises


@each
def test_an_argument_that_is_none_is_refused_by_both(verb, knownminds):
    _, words = NEEDED[verb]
    with pytest.raises(TypeError, match="subjetcs"):
        getattr(package, verb)(**NEEDED[verb][0], subjetcs=3)
    code, out, err = knownminds(question_of(verb).command, *words, "--subjetcs", 3)
    assert (code, out) == (2, "")
    assert "subjetcs" in err


def refused(run, *words):
    """The sentence that a command refuses words with, which JSON and stderr both have."""
    code, out, err = run(*words, "--json")
    envelope = json.loads(out)
    assert (code, {*envelope}, envelope["exit_code"]) == (2, {"error", "exit_code"}, 2)
    assert err == f"knownminds: {envelope['error']}\n"
    return envelope["error"]


@each
def test_words_that_no_command_takes_are_one_sentence_in_the_one_envelope(verb, knownminds):
    kind, (_, words) = question_of(verb), NEEDED[verb]
    assert "'--subjetcs'" in refused(knownminds, kind.command, *words, "--subjetcs", 3)
    options = kind.options()
    if not any("list" in str(one.kind) and not one.flag for one in options.values()):
        assert "MORE" in refused(knownminds, kind.command, *words, "MORE")
    if any(option.default is inspect.Parameter.empty for option in options.values()):
        assert "argument" in refused(knownminds, kind.command)
    numbers = [one for one in options.values() if str(one.kind).startswith("typing.Annotated[int")]
    if numbers:
        flag = numbers[0].flag.split(",")[0]
        said = refused(knownminds, kind.command, *words, flag, "many")
        assert flag in said
        assert "many" in said


def test_who_names_an_experiment_or_a_wrong_command_is_told_what_there_is(knownminds):
    said = refused(knownminds, "list", PLACE)
    assert "list --environment NAME" in said
    assert "show NAME" in said
    assert "recover" in refused(knownminds, "recovr")


@each
def test_a_docstring_does_not_say_how_an_option_is_typed(verb):
    text = getattr(package, verb).__doc__
    assert not re.search(r"^    ([A-Z]+=[A-Z]+|ours=yours|LOW-HIGH|YYYY)", text, re.M)


# How a model is called, by option; and where else an option of the name stands, which is another
# one: the seed of a study, the key of a server, what a budget reckons with.
DECLARED = {
    one.name: one
    for kind in (calling.Sampling, calling.Reach, calling.Calling, calling.InBatches)
    for one in fields(kind)
}
OTHERS = {
    "reveal": {"temperature", "max_tokens"},
    "serve": {"key_variable", "tell"},
    "budget": {"batch", "system"},
}
CALLERS = {
    "run": (*DECLARED.keys() - {"seed"},),
    "benchmark": (*vars(calling.Reach()), *vars(calling.Calling())),
    "reveal": (*vars(calling.Reach()), *vars(calling.Calling())),
}


def declared_by(kind):
    """Options of how a model is called that a class declares or describes itself."""
    own = {name for base in kind.__mro__ if base.__module__ != calling.__name__
           for name in (*vars(base).get("__annotations__", ()), *field_texts_of(base))}  # fmt: skip
    return own & DECLARED.keys() - {"seed"}


def field_texts_of(kind):
    """Names that the docstring of a class alone has."""
    lines = inspect.cleandoc(vars(kind).get("__doc__") or "").splitlines()
    return {line.partition(" : ")[0] for line in lines if not line.startswith(" ")}


@each
def test_how_a_model_is_called_is_declared_once(verb):
    kind = question_of(verb)
    own = declared_by(kind) - {"tell"} if verb not in CALLERS else declared_by(kind)
    assert own <= OTHERS.get(verb, set())
    defaults = {one.name: one.default for one in fields(kind)}
    for name in CALLERS.get(verb, ()):
        assert name in defaults, name
    for name in defaults.keys() & DECLARED.keys() - {"seed", "tell"}:
        assert defaults[name] == DECLARED[name].default, name


def test_runs_and_benchmarks_take_the_same_declaration():
    assert declared_by(RunOptions) == declared_by(Participant) == set()
    for function in (run_sessions_in, run_sessions, run_benchmark, players_of, connect):
        arguments = inspect.signature(function).parameters.keys() - {"seed", "tell"}
        assert not arguments & DECLARED.keys(), function


@pytest.mark.parametrize(
    ("verb", "wrong", "typed", "rule"),
    [
        ("run", {"concurrency": 0}, ("--concurrency", 0), "concurrency is at least 1; got 0"),
        ("benchmark", {"attempts": 0}, ("--attempts", 0), "attempts is at least 1; got 0"),
        ("reveal", {"re_ask": -1}, ("--re-ask", -1), "re_ask is at least 0; got -1"),
        ("run", {"batch_size": 0}, ("--batch-size", 0), "batch_size is at least 1; got 0"),
        ("run", {"top_p": 2.0}, ("--top-p", 2), "top_p goes from 0 to 1; got 2.0"),
        ("run", {"system": " "}, ("--system", " "), "A system message says something"),
        ("run", {"verbosity": "hihg"}, ("--verbosity", "hihg"), "Nearest: high"),
        ("run", {"reasoning_effort": "lo"}, ("--reasoning-effort", "lo"), "Nearest: low"),
    ],
)  # fmt: skip
def test_how_a_model_is_called_is_checked_alike_by_both(verb, wrong, typed, rule, knownminds):
    given, words = NEEDED[verb]
    with pytest.raises(ValueError, match=re.escape(rule)):
        getattr(package, verb)(**given, **wrong)
    code, out, err = knownminds(question_of(verb).command, *words, *typed)
    assert (code, out) == (2, "")
    assert rule in err


def without_seconds(content):
    if isinstance(content, dict):
        return {k: without_seconds(v) for k, v in content.items() if k != "seconds"}
    return [without_seconds(v) for v in content] if isinstance(content, list) else content


ANSWERED = {
    "budget": ({"llm": ["mine:m"], "price": ["mine:m=1,2"], "trials": 20},
               ("--llm", "mine:m", "--price", "mine:m=1,2", "--trials", 20)),
    "recover": ({"subjects": 10, "intervals": "laplace", "workers": 1},
                ("--subjects", 10, "--intervals", "laplace", "--workers", 1)),
    "power": ({"comparison": "between", "sessions": [2, 3], "replicates": 4, "workers": 1},
              ("--comparison", "between", "--sessions", 2, "--sessions", 3, "--replicates", 4,
               "--workers", 1)),
}  # fmt: skip


@pytest.mark.parametrize("verb", ANSWERED)
def test_both_give_the_same_answer_about_the_usual_model(verb, knownminds):
    given, words = NEEDED[verb]
    more, typed = ANSWERED[verb]
    answer = getattr(package, verb)(**given, **more).to_dict()
    code, out, err = knownminds(question_of(verb).command, *words, *typed, "--json")
    assert code == 0, err
    assert without_seconds(json.loads(out)) == without_seconds(answer)
    assert "two_step_reduced" in str(answer["options"]["model"])


def test_a_look_has_every_wording_and_condition_and_what_is_read(knownminds, tmp_path):
    code, out, err = knownminds("look", PLACE, "--trials", 2, "--out", tmp_path, "--json")
    assert code == 0, err
    parts = json.loads(out)["parts"]
    assert {*parts} == {
        "two_step_shipped", "two_step_paraphrase_2", "two_step_paraphrase_3",
        "two_step_history_chat", "two_step_reasoning_chain_of_thought",
        "two_step_reasoning_step_back",
    }  # fmt: skip
    for rows in parts.values():
        assert [row["trial"] for row in rows] == [1, 2]
        assert all(row["read"].startswith("ok, action") for row in rows)
    first = {name: rows[0]["shown"] for name, rows in parts.items()}
    alike = {"two_step_shipped", "two_step_history_chat"}  # a chat differs from its second trial on
    assert len({first[name] for name in first if name not in alike}) == 4
    assert len({rows[1]["shown"] for rows in parts.values()}) == 6
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "how texts are read" in page
    assert "refused" in page  # of "I cannot choose."
    assert page.count('<details class="fold long">') == 3  # the first three are open


def test_a_look_at_a_members_file_and_at_one_with_pictures(knownminds, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from knownminds.environments import TwoStep\n\n\nclass Mine(TwoStep):\n"
        '    """Mine."""\n\n    name = "my_two_step"\n',
        encoding="utf-8",
    )
    words = ("look", "my_two_step", "--plugin", file, "--trials", 1, "--out", tmp_path / "a")
    code, _, err = knownminds(*words)
    assert code == 0, err
    told = json.loads((tmp_path / "a" / "result.json").read_text(encoding="utf-8"))["command"]
    assert f"--plugin {file}" in told  # which is what the page says, too
    assert told in html.unescape((tmp_path / "a" / "report.html").read_text(encoding="utf-8"))
    code, _, err = knownminds(*shlex.split(told)[1:])  # as typed again, into the same folder
    assert code == 0, err
    code, out, err = knownminds("look", "marker_location", "--set", "modality=image", "--trials", 1,
                                "--out", tmp_path / "b", "--json")  # fmt: skip
    assert code == 0, err
    assert "marker_location_modality_text" in json.loads(out)["parts"]
    page = (tmp_path / "b" / "report.html").read_text(encoding="utf-8")
    assert "marker_location, shipped: the first pictures." in page
    assert "paraphrase_2: the first pictures." not in page  # which are the same


def test_scores_of_a_paper_are_those_of_the_command(knownminds, tmp_path):
    trials = package.simulate("collider", subjects=2, seed=1)
    trials.save(tmp_path / "trials.csv")
    answer = package.score(tmp_path / "trials.csv")
    assert list(answer.parts)  # the paper's
    code, out, err = knownminds("score", tmp_path / "trials.csv", "--json")
    assert code == 0, err
    assert json.loads(out) == json.loads(answer.to_json())
    assert package.score(trials).title == answer.title
    for wrong, rule in (({"network": "nonsense"}, "network"), ({"mass": 7.0}, "mass")):
        with pytest.raises(ValueError, match=rule):
            package.score(trials, **wrong)


def test_an_answer_is_printed_by_the_command_line_alone(knownminds, tmp_path, capsys):
    """What is written, simulated, imported or exported is a value with a text and JSON."""
    file, out = tmp_path / "trials.csv", tmp_path / "moved.csv"
    trials = package.simulate(PLACE, subjects=2, trials=6, truth={"w": 0.4}, out=file)
    assert package.import_trials([file], out=out).n_subjects == 2
    assert package.export_trials(file, tmp_path / "texts.jsonl").n_subjects == 2
    assert capsys.readouterr() == ("", "")
    played = ("simulate", PLACE, "--subjects", 2, "--trials", 6, "--set", "w=0.4")
    for words, said in (
        ((*played, "--out", file), f"{trials}, written to {file}"),
        (("import", file, "--out", out), f"{trials}, written to {out}"),
        (("export", file, "--out", out), f"{trials}, written to {out}"),
    ):  # fmt: skip
        code, printed, _ = knownminds(*words)
        assert (code, " ".join(printed.split())) == (0, said)  # it fits the screen
        code, printed, _ = knownminds(*words, "--json")
        assert json.loads(printed)["out"] in (str(out), str(file))
    code, printed, _ = knownminds(*played)
    assert printed.splitlines()[0] == ",".join(trials.frame)
    assert len(printed.splitlines()) == 1 + len(trials)


def test_settings_of_an_experiment_are_set_alike_by_both(knownminds):
    code, out, _ = knownminds("simulate", PLACE, "--subjects", 1, "--set", "n_days=7", "--json")
    assert code == 0
    assert (
        json.loads(out)["trials_per_session"]
        == len(package.simulate(PLACE, subjects=1, truth={"n_days": 7}))
        == 14
    )
    with pytest.raises(ValueError, match="Nearest: n_days"):
        package.simulate(PLACE, truth={"n_dys": 7})


@pytest.mark.parametrize(
    ("verb", "wrong", "sentence"),
    [
        ("recover", {"subjects": "20"}, "subjects is a whole number; got '20'"),
        ("recover", {"subjects": [4, 2.5]}, "subjects is a whole number; got 2.5"),
        ("recover", {"truth": "w=1"}, "truth is a dictionary"),
        ("recover", {"lapse": "a"}, "lapse is a number"),
        ("score", {"columns": "subject=who"}, "columns is a dictionary"),
        ("budget", {"date": "2026-11-21"}, "date is a date of datetime; got '2026-11-21'"),
        ("best_design", {"date": "2026-11-21"}, "date is a date of datetime"),
        ("run", {"caps": 5}, "caps is Caps of knownminds.calling, or a dictionary; got 5"),
    ],
)
def test_an_argument_of_another_type_is_a_sentence(verb, wrong, sentence):
    with pytest.raises(TypeError, match=re.escape(sentence)):
        getattr(package, verb)(**NEEDED[verb][0] | wrong)


def test_one_text_is_a_list_of_one_and_what_is_missing_is_named():
    trials = package.simulate("instrumental_learning", subjects=3)
    one = package.score(trials, measures="optimism_bias")
    assert list(one["measures"]["measure"]) == ["optimism_bias"]
    with pytest.raises(TypeError, match="recover: missing a required argument: 'environment'"):
        package.recover()
    with pytest.raises(ValueError, match=r"Trials\.from_frame"):
        package.import_trials(trials.frame)


def test_a_dry_run_says_its_numbers_in_json(knownminds):
    words = ("run", PLACE, "--llm", "openai:gpt-4o-mini", "--sessions", 2, "--trials", 6)
    code, out, err = knownminds(*words, "--dry-run", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["calls"] == 12
    assert 0 < told["input_tokens_low"] <= told["input_tokens_high"]
    assert 0 < told["dollars_low"] <= told["dollars_high"]


def test_a_design_is_an_argument_of_function_and_command(knownminds, typed):
    words = ("temporal_discounting", "--design", "grid")
    kind = question_of("simulate")
    for question in (typed(kind, *words), kind("temporal_discounting", design="grid")):
        assert question.environment.settings["design"] == "grid"
        assert "--set design=grid" in question.command_line()
    for place, more, rule in (
        ("simulate", (*words, "--set", "design=grid"), "got 'design' twice"),
        ("simulate", (PLACE, *words[1:]), "two_step has a single design; got 'grid'"),
        ("serve", ("cogbench", *words[1:]), "The plan of a benchmark has designs and trials"),
    ):
        code, out, err = knownminds(place, *more)
        assert (code, out) == (2, "")
        assert rule in err
