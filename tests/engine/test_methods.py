"""The methods paragraph of a report: what was asked in sentences, and nothing that was not."""

from string import Formatter

import pytest

from knownminds.validation.cli import command
from knownminds.validation.cli.run_file import name_of
from knownminds.validation.engine.methods import _sentences, methods_text

ASKED = {"experiment": "two_step", "model": "two_step_hybrid", "subjects": [20, 40], "sessions": 1,
         "trials": [200], "method": "hierarchical", "population": "group", "seed": 0,
         "lapse": None, "fix": None, "set": {"w": 0.5}}  # fmt: skip

# What results say beside the options of their verb.
SAID_BESIDES = {"experiment", "model", "version", "measure", "benchmark", "models", "known",
                "cells", "language_model", "trials_of_a_session", "sampling", "analysis",
                "stopping_rule"}  # fmt: skip


def test_values_stand_in_sentences_with_their_nouns_counted():
    text = methods_text("recover", ASKED, "1.0")
    assert "20 or 40 subjects" in text
    assert "1 session each" in text
    assert "200 trials" in text
    assert "a hierarchical model" in text
    assert "w = 0.5" in text
    assert "seed 0" in text
    assert "1.0" in text


def test_what_was_not_asked_is_not_said():
    text = methods_text("recover", ASKED, "1.0")
    assert "lapse" not in text
    assert "held" not in text
    assert "repetitions" not in text
    assert methods_text("show", ASKED, "1.0") == ""


@pytest.mark.parametrize("verb", sorted(set(_sentences()) - {"always", "words"}))
def test_the_values_in_its_sentences_are_options_of_the_verb(verb):
    options = {name_of(parameter) for parameter in command().commands[verb].params}
    options |= SAID_BESIDES
    for sentence in [*_sentences()[verb], *_sentences()["always"]]:
        fields = {name for _, name, _, _ in Formatter().parse(sentence) if name}
        assert fields - {"set"} <= options, sentence
