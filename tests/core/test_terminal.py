"""The terminal: help in groups, tables and bars of 80 columns, colours, usual models, the tour."""

import io
import json
import re

import pytest
from rich.console import Console

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import MEASURES
from knownminds.validation.cli import GROUPS, app, main, output
from knownminds.validation.cli.studies import tour
from knownminds.validation.engine.sample import usual_model

PLAIN = {"highlight": False, "emoji": False, "markup": False}


@pytest.fixture
def narrow(monkeypatch):
    """Screens of 80 columns: what goes to stdout, and a terminal for stderr."""
    monkeypatch.setattr(output, "screen", Console(width=80, **PLAIN))
    notes = Console(file=io.StringIO(), force_terminal=True, width=80, **PLAIN)
    monkeypatch.setattr(output, "notes", notes)
    return notes.file


def said(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_version_is_said(capsys):
    assert re.fullmatch(r"knownminds \d+\.\d+\.\d+\S*\n", said(capsys, "--version"))


def test_help_has_every_command_in_one_group(capsys):
    told = said(capsys, "--help")
    heads = [told.index(f"─ {group} ─") for group in GROUPS]
    assert heads == sorted(heads)
    for command in app.registered_commands:
        assert command.rich_help_panel in GROUPS
        name = command.name or command.callback.__name__
        assert len(re.findall(rf"^│ {name} ", told, re.MULTILINE)) == 1, name
    assert len(app.registered_commands) == sum(map(len, GROUPS.values()))


@pytest.mark.parametrize("words", [["list"], *(["show", n] for n in ("two_step", "horizon"))])
def test_tables_fit_80_columns_and_cut_no_name(words, narrow, capsys):
    told = said(capsys, *words)
    lines = told[told.find("setting ") :].splitlines() if words[0] == "show" else told.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in told
    names = [*ENVIRONMENTS, *AGENTS, *MEASURES] if words == ["list"] else make(words[1]).settings
    for name in names:
        assert any(line.split()[:1] == [name] for line in lines), name


def test_parameters_of_long_names_are_whole(narrow, capsys):
    told = said(capsys, "show", "rescorla_wagner_dual")
    table = told[told.index("parameter ") :].splitlines()
    assert max(map(len, table)) <= 80
    for parameter in AGENTS["rescorla_wagner_dual"].parameters:
        (line,) = [k for k, line in enumerate(table) if line.split()[:1] == [parameter.name]]
        assert " ".join(table[line + 1].split()) == parameter.description


def test_a_bar_of_80_columns_shows_what_is_done_and_what_is_left(narrow):
    told = "12/200 sessions, 0 unread\n13,021 calls, $0.1234, 20 of 32 under way"
    with output.drawn_bar("calibrate") as draw:
        draw(1234, 20000, told)
    frames = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", narrow.getvalue())
    line = next(line for line in re.split(r"[\r\n]", frames) if "/20000" in line)
    assert len(line.rstrip()) <= 80
    assert line.startswith("calibrate ")
    assert re.search(r"━{8,}", line)
    assert " 1234/20000 " in line
    assert re.search(r"(-:--:--|\d+:\d\d:\d\d)\s*$", line)
    with output.progress_bar("recover") as show:
        show(3, 40)
    assert "3/40" in narrow.getvalue()


def test_verdicts_have_colours_on_a_terminal_and_none_in_a_pipe(monkeypatch, capsys):
    text = "alpha  not identified\nbeta  recoverable\ngamma  between weak and not identified"
    monkeypatch.setattr(output, "screen", Console(force_terminal=True, color_system="standard"))
    output.tell(text)
    told = capsys.readouterr().out
    codes = {"red": "31", "green": "32", "yellow": "33"}
    for colour, words in (
        ("red", "not identified"), ("green", "recoverable"),
        ("yellow", "between weak and not identified"),
    ):  # fmt: skip
        assert f"\x1b[{codes[colour]}m{words}\x1b[0m" in told
    monkeypatch.setattr(output, "screen", Console(force_terminal=False))
    output.tell(text)
    assert capsys.readouterr().out == text + "\n"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_usual_model_plays_its_experiment(name):
    AGENTS[usual_model(name)].check_plays(make(name))
    assert usual_model("instrumental_learning") == "rescorla_wagner_dual"


def test_commands_take_the_usual_model_where_none_is_named(capsys):
    told = json.loads(said(capsys, "simulate", "two_step", "--subjects", "2", "--json"))
    assert told["model"] == usual_model("two_step") == "two_step_reduced"
    llm = ("--llm", "openai:gpt-4o-mini", "--date", "2026-11-21")
    told = json.loads(said(capsys, "budget", "two_step", "--trials", "4", *llm, "--json"))
    assert told["model"] == "two_step_reduced"


def test_the_tour_runs_the_main_job_and_opens_its_report(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tour, "SMALL", {"subjects": 20, "trials": 24, "seed": 1})
    seen = []
    monkeypatch.setattr(tour.webbrowser, "open", lambda address: seen.append(address) or True)
    folder = tmp_path / "tour"
    told = json.loads(said(capsys, "tour", "--out", str(folder), "--no-open", "--json"))
    assert seen == []
    assert told["attempted"] == 20
    said(capsys, "tour", "--out", str(folder))
    assert seen == [(folder / "report.html").resolve().as_uri()]
    assert told["command"].startswith("knownminds recover instrumental_learning ")
