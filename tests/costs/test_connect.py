"""A known agent in the chair, through the commands that a person types."""

import re

import pytest

from knownminds import run
from knownminds.agents import Contaminants
from knownminds.calling import Reach
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Synthetic
from knownminds.llm_adapters.runs.runner import Retries, RunOptions, read_run
from knownminds.validation.costs.connect import estimate, known_agent, price_for, run_sessions

PLACE = "instrumental_learning"
TRUTH = {"alpha_positive": 0.6, "alpha_negative": 0.2, "beta": 5.0, "kappa": 0.0}
SHORT = InstrumentalLearning(n_visits=2)
MIND = "synthetic:rescorla_wagner_dual"


def test_the_estimate_holds_what_a_run_sends(tmp_path):
    told = estimate(SHORT, MIND, 3, None).words
    low, high = re.search(r"([\d,]+) to ([\d,]+) tokens sent", told).groups()
    lived = run(SHORT, MIND, sessions=3, out=tmp_path, truth=TRUTH)
    with_bytes = lived.account.input_tokens  # four characters to a token, below any range
    assert with_bytes < int(high.replace(",", ""))
    assert with_bytes > 0.7 * int(low.replace(",", ""))
    assert "no price is known" in told


def test_prices_are_those_of_the_server_that_is_called():
    assert price_for("openai:gpt-4o-mini", {}).input > 0
    assert price_for("openai:gpt-4o-mini", {}, elsewhere=True) is None
    assert price_for(MIND, {}) is None
    assert price_for("openai:no-such-model", {}) is None
    own = {"openai:x": {"input": 1, "output": 2}}
    assert price_for("openai:x", own, elsewhere=True).output == 2


def test_a_server_that_is_down_stops_the_run_before_a_trial_is_lost(tmp_path):
    pytest.importorskip("openai")
    quick = RunOptions(retries=Retries(pause=0.0))
    lived = run_sessions(
        SHORT, "openai:x", reach=Reach(base_url="http://127.0.0.1:9/v1"), sessions=2, seed=0,
        out=tmp_path, how=quick,
    )  # fmt: skip
    assert "cannot be reached" in lived.stopped
    assert lived.trials is None
    assert read_run(tmp_path).account.calls == {"error_unpaid": lived.calls}


def test_a_synthetic_participant_is_named_by_all_that_makes_it():
    names = {
        Synthetic(
            known_agent("rescorla_wagner_dual", SHORT, truth), SHORT, 1, contaminants=dials
        ).model
        for truth in ({}, {"beta": 5.0}, {"beta": 5.0000001})
        for dials in (None, Contaminants(refusal=0.1))
    }
    assert len(names) == 6
