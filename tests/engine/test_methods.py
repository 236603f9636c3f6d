"""The methods paragraph of a report: what was asked in sentences, and nothing that was not."""

from string import Formatter

import numpy as np
import pytest

from knownminds import fit, simulate
from knownminds.environments import ANSWERED
from knownminds.validation.cli import command
from knownminds.validation.cli.run_file import name_of
from knownminds.validation.engine.methods import _sentences, methods_text

ASKED = {"experiment": "two_step", "model": "two_step_hybrid", "subjects": [20, 40], "sessions": 1,
         "trials": [200], "method": "hierarchical", "population": "group", "seed": 0,
         "lapse": None, "fix": None, "set": {"w": 0.5}}  # fmt: skip

# What results say beside the options of their verb.
SAID_BESIDES = {"experiment", "model", "version", "measure", "benchmark", "models", "known",
                "cells", "language_model", "trials_of_a_session", "sampling", "analysis",
                "stopping_rule", "fitted_subjects", "fitted_trials", "priors", "group_priors",
                "chains", "draws", "far", "wordings_from", "taken"}  # fmt: skip


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


def test_a_fit_says_how_many_answered_and_what_was_assumed():
    trials = simulate("two_step", subjects=5, seed=2)
    told = fit(trials, "two_step_reduced").methods
    left = trials.frame["outcome"].isin(ANSWERED).sum()
    assert f"5 subjects with {left} answered trials in all" in told
    assert "logit(w) normal(0, 1)" in told
    assert "normal" not in fit(trials, "two_step_reduced", method="mle").methods


def test_a_group_says_its_formula_chains_and_priors():
    trials = simulate("two_step", subjects=6, seed=2).frame
    trials["drug"] = np.where(trials["subject"].astype(str) < "3", "a", "b")
    fixed = {"alpha": 0.5, "beta": 4.0, "pi": 0.0}
    told = fit(trials, "two_step_reduced", method="hierarchical", formula=["w ~ drug"],
               fixed=fixed, sampling={"minutes": 0.2}).methods  # fmt: skip
    assert "followed the formula w ~ drug" in told
    assert "mean of logit(w) normal(0, 1), its spread half-normal(0.5)" in told
    assert "4 chains of 1,000 draws each" in told
