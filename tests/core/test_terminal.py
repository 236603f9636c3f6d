"""The terminal: help in groups, tables and bars of 80 columns, colours, usual models, the tour."""

import json

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.validation.cli import main
from knownminds.validation.cli.studies import tour
from knownminds.validation.engine.sample import usual_model


def said(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_usual_model_plays_its_experiment():
    for name in ENVIRONMENTS:
        AGENTS[usual_model(name)].check_plays(make(name))
    assert usual_model("instrumental_learning") == "rescorla_wagner_dual"


@pytest.mark.long
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
