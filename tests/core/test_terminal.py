"""The terminal: help in groups, tables and bars of 80 columns, colours, usual models."""

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.validation.cli import main
from knownminds.validation.engine.usual_models import usual_model


def said(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_usual_model_plays_its_experiment():
    for name in ENVIRONMENTS:
        AGENTS[usual_model(name)].check_plays(make(name))
    assert usual_model("instrumental_learning") == "rescorla_wagner_dual"


def test_each_step_is_said_with_v_alone(tmp_path, capsys):
    words = ["run", "two_step", "--llm", "synthetic:two_step_reduced", "--trials", "4"]
    words += ["--set", "beta=3.66929669", "--out"]
    for more, wanted in (([], False), (["-v"], True)):
        with pytest.raises(SystemExit) as end:
            main([*words, str(tmp_path / f"run{len(more)}"), *more])
        said = capsys.readouterr()
        assert not end.value.code, said.err
        steps = ("run: 4 of 4", "run: answered in", "run file:")
        assert [step in said.err for step in steps] == [wanted] * 3
        assert "beta=3.67," in said.out


def test_the_help_of_audit_names_every_audit(capsys):
    from knownminds.members import listed

    text = said(capsys, "audit", "--help")
    assert [name for name in listed("audits") if name not in text] == []


@pytest.mark.parametrize("words", [("two_step",), ()], ids=["an experiment", "any"])
def test_the_schema_fits_the_screen_with_ranges_and_units(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = said(capsys, "show", *words, "--schema")
    assert max(map(len, text.splitlines())) <= 80
    head = text.splitlines()[1].split()
    assert head == ["column", "type", "required", "range", "unit", "meaning"]
    assert "US dollars" in text


def test_the_estimate_of_a_run_fits_the_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ("run", "two_step", "--llm", "openai:gpt-4o-mini", "--trials", "4", "--dry-run")
    text = said(capsys, *words)
    assert text.startswith("estimate of the whole run: 4 calls, ")
    assert max(map(len, text.splitlines())) <= 80


def test_an_export_whose_name_tells_no_format_says_what_tells_it(tmp_path, capsys):
    from knownminds import simulate

    simulate("two_step", subjects=2, trials=4, out=tmp_path / "t.csv")
    with pytest.raises(SystemExit) as end:
        main(["export", str(tmp_path / "t.csv"), "--out", str(tmp_path / "t.tsv")])
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert "'t.tsv' has none of these" in err
    assert "--format" in err
    assert not (tmp_path / "t.tsv").exists()
