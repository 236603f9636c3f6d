"""Sessions are priced by what those of a run took."""

import asyncio

import numpy as np
import pytest
from scripted import Scripted

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Reply, Usage
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in
from knownminds.validation.costs.observed import Observed
from knownminds.validation.power.power import power

PLACE = InstrumentalLearning(n_visits=3)
PRICE = price_of("test:scripted", overrides={"test:scripted": {"input": 2, "output": 8}})
TOKENS = (300, 260, 340)  # sent with each question of a session
SAID = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    script = [
        Reply("", usage=Usage(sent, SAID), model_served="m")
        for sent in TOKENS
        for _ in range(PLACE.n_trials)
    ]
    how = RunOptions(concurrency=1, price=PRICE)
    asked = run_sessions_in(folder, Scripted(*script), PLACE, 3, 1, how=how)
    asyncio.run(asked)
    return folder


def test_sessions_like_those_of_the_run_cost_what_these_have(run):
    found = Observed.read(run, 0)
    per_session = PLACE.n_trials * (np.mean(TOKENS) * 2 + SAID * 8) / 1e6
    assert float(found.dollars) == pytest.approx(3 * per_session)
    for n in (30, 300):
        cost = found.dollars_of(PLACE, RescorlaWagnerDual, n)
        middle = (float(cost.low) + float(cost.high)) / 2
        assert middle == pytest.approx(n * per_session, rel=0.02)
        # of what is sent, the mean of three sessions: Student's 95% interval, and dry runs vary
        half = 4.303 * np.std(TOKENS, ddof=1) / 3**0.5 * PLACE.n_trials * 2 / 1e6 * n
        assert half <= (float(cost.high) - float(cost.low)) / 2 < 1.6 * half
    # Prompts repeat the history: what is sent grows faster than the trials, what is said does not.
    longer = found.planned(InstrumentalLearning(n_visits=6), RescorlaWagnerDual, 2)
    assert longer.usage(1).output_tokens.high == 2 * PLACE.n_trials * SAID
    as_run = found.planned(PLACE, RescorlaWagnerDual, 2)
    assert longer.usage(1).input_tokens.high > 2.2 * as_run.usage(1).input_tokens.high


def test_power_tells_what_its_designs_cost(run, tmp_path):
    asked = {"run": run, "replicates": 20, "workers": 1, "model": "rescorla_wagner_dual"}
    found = power(PLACE, {"optimism_bias": 0.3}, sessions=[4, 8], **asked)
    designs = found["Designs"]
    costs = designs[["dollars low", "dollars high"]].mean(axis=1)
    per_session = PLACE.n_trials * (np.mean(TOKENS) * 2 + SAID * 8) / 1e6
    assert costs.tolist() == pytest.approx([4 * per_session, 8 * per_session], rel=0.03)
    both = power(PLACE, {"optimism_bias": 0.3}, sessions=4, comparison="between", **asked)
    assert both["Designs"]["dollars high"].iloc[0] == designs["dollars high"].iloc[1]
