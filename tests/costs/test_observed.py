"""Sessions are priced by what those of a run took."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from claims import check
from claims.design import REPORT as DESIGN
from claims.power import REPORT
from scripted import Scripted

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Reply, Usage
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import run_sessions_in
from knownminds.validation.costs.dry_runs import dry_runs_of
from knownminds.validation.costs.observed import Observed
from knownminds.validation.design import candidates
from knownminds.validation.design.best_design import best_design
from knownminds.validation.power.power_page import power_page
from knownminds.validation.power.power_study import power
from knownminds.validation.report import page_of

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
    asked = run_sessions_in(folder, Scripted(*script), PLACE, 3, 1, concurrency=1, price=PRICE)
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
    costs = found.to_frame()[["dollars_low", "dollars_high"]].mean(axis=1)
    per_session = PLACE.n_trials * (np.mean(TOKENS) * 2 + SAID * 8) / 1e6
    assert costs.tolist() == pytest.approx([4 * per_session, 8 * per_session], rel=0.03)
    page = power_page(found)
    told = [line for line in page.sentences if line.startswith("Dollars")]
    assert len(told) == 1
    check(REPORT, told, SimpleNamespace())
    both = power(PLACE, {"optimism_bias": 0.3}, sessions=4, comparison="between", **asked)
    assert both.to_frame()["dollars_high"][0] == found.to_frame()["dollars_high"][1]


def test_a_search_spends_what_sessions_of_the_run_cost(run):
    asked = {"model": "rescorla_wagner_dual", "designs": 3, "replicates": 4, "fresh": 4}
    found = best_design(PLACE, "beta", budget={"dollars": 0.2}, run=run, workers=1, **asked)
    shipped = found.of_role("shipped")
    cost = Observed.read(run, 0).dollars_of(PLACE, RescorlaWagnerDual, shipped.sessions)
    assert shipped.cost == float(cost.high) <= 0.2
    more = Observed.read(run, 0).dollars_of(PLACE, RescorlaWagnerDual, shipped.sessions + 1)
    assert float(more.high) > 0.2
    (told,) = [line for line in page_of(found).sentences if line.startswith("Dollars")]
    check(DESIGN, [told], SimpleNamespace())
    for budget, more, said in (
        ({"dollars": 1}, {"llm": "openai:gpt-4o-mini"}, "Leave one of them out"),
        ({"trials": 100}, {}, "no prices; got --run"),
    ):
        with pytest.raises(ValueError, match=said):
            best_design(PLACE, "beta", budget=budget, run=run, **more, **asked)


def test_a_hopeless_budget_is_refused_before_designs_are_priced(run, monkeypatch):
    calls = []

    def counted(*given, **more):
        calls.append(given)
        return dry_runs_of(*given, **more)

    monkeypatch.setattr(candidates, "dry_runs_of", counted)
    asked = {"model": "rescorla_wagner_dual", "llm": "openai:gpt-4o-mini", "designs": 100}
    with pytest.raises(ValueError, match=r"the smallest costs \$0\.0\d+; got dollars=1e-06"):
        best_design(PLACE, "beta", budget={"dollars": 1e-6}, **asked)
    assert len(calls) == 1  # it priced 2,000 designs here


def test_a_run_that_cannot_price_is_refused(run, tmp_path):
    free = tmp_path / "free"
    asyncio.run(run_sessions_in(free, Scripted(), PLACE, 1, 1))
    asked = {"sessions": 4, "replicates": 2, "model": "rescorla_wagner_dual"}
    with pytest.raises(ValueError, match="nothing was charged"):
        power(PLACE, {"optimism_bias": 0.3}, run=free, **asked)
    with pytest.raises(ValueError, match="ledger"):
        power(PLACE, {"optimism_bias": 0.3}, run=tmp_path / "none", **asked)
    with pytest.raises(ValueError, match="run of the same experiment"):
        power("reversal_learning", {"beta": 1.0}, run=run, comparison="between", **asked)
