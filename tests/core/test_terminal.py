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
