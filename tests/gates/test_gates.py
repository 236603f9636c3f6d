from dataclasses import replace

import pytest

from knownminds.agents import AGENTS
from knownminds.validation.gates import gates as module
from knownminds.validation.gates.gates import (
    LARGE,
    Gate,
    contradictions,
    gates,
    judge_fall,
    recommendation,
    sources_of,
    stored_gates,
)

FEW = ["perseverator", "weighted_bayes"]  # cheap


@pytest.fixture(scope="module")
def stored():
    return stored_gates()


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    store = tmp_path_factory.mktemp("gates") / "store.json"
    return store, gates(FEW, small=True, store=store, workers=1)


def with_parameters():
    return [name for name, model in AGENTS.items() if len(model.parameters)]


@pytest.mark.parametrize("name", AGENTS)
def test_every_model_has_a_recommended_design_that_builds_and_that_it_plays(name):
    design = recommendation(name)
    design.agent.check_plays(design.make())
    for named in (design.open, design.kept):
        assert set(named) <= set(design.names)
        assert all(reason for reason in named.values())
    assert design.sessions >= 1


@pytest.mark.parametrize("name", with_parameters())
def test_every_model_has_stored_results_of_full_size_for_a_design_that_still_builds(name, stored):
    design = recommendation(name)
    kinds = [kind for kind in design.kinds() if kind != "calibration"]  # as far as time allowed
    assert (("recovery", name) in stored) != bool(design.pending)
    for kind in kinds:
        if kind == "recovery" and design.pending:
            continue  # the page says so
        gate = stored[kind, name]
        assert gate.units >= LARGE[kind]
        assert set(gate.quantities) == set(design.names)
        place = replace(design, environment=gate.environment, settings=gate.settings).make()
        assert (place.n_trials, gate.sessions) == (gate.trials, design.sessions)
        assert gate.command.startswith("knownminds ")
        assert str(gate.seed) in gate.command
        assert {"knownminds", "numpy", "python"} <= set(gate.versions)


def test_stored_results_bear_out_what_is_claimed_of_the_designs(stored):
    now = [gate for gate in stored.values() if gate.kind != "calibration" and not gate.older_than]
    assert not [sentence for gate in now for sentence in contradictions(gate)]


def test_what_is_in_the_store_is_not_computed_again(computed, monkeypatch):
    store, found = computed
    monkeypatch.setattr(module, "_gate", None)  # whoever computes, fails
    again = gates(FEW, small=True, store=store, workers=1)
    assert again.computed == 0
    assert [gate.design for gate in again.gates] == [gate.design for gate in found.gates]
    assert again.gates[0].quantities == found.gates[0].quantities


def test_a_fall_counts_when_it_is_clear_and_goes_below_what_is_weak():
    assert judge_fall(0.9, 0.1, n=100) == "lost"
    assert judge_fall(0.97, 0.7, n=100) == "less"
    assert judge_fall(0.9, 0.88, n=100) == "kept"
    assert judge_fall(0.3, 0.1, n=30) == "kept"  # within the error of so few
    assert judge_fall(0.9, 0.1, n=9) == "not judged"
    assert judge_fall(1.0, 0.0, n=100) == "lost"
    # Two errors of 100 subjects around .5 reach from .34 to .63.
    assert judge_fall(0.9, 0.45, n=100) == "between lost and less"
    # The fall is 2.3 or 2.6 of its errors: neither clear nor none.
    assert judge_fall(0.6, 0.35, n=100) == "between lost and kept"
    assert judge_fall(0.9, 0.8, n=100) == "between less and kept"


def gate_of(kind, verdicts, model="perseverator", **changed):
    design = recommendation(model)
    return Gate(
        kind=kind,
        name=model,
        environment=design.environment,
        settings=dict(design.settings),
        trials=design.make().n_trials,
        sessions=design.sessions,
        units=changed.pop("units", LARGE[kind]),
        seed=1,
        date="2026-01-01",
        command="",
        versions={},
        sources=sources_of(kind, model, design.environment),
        quantities={name: {"verdict": word} for name, word in verdicts.items()},
        attempted=LARGE[kind],
        failed=0,
        seconds=1.0,
    )


def test_results_that_contradict_a_claim_are_told():
    assert not contradictions(gate_of("recovery", {"kappa": "recoverable"}))
    assert not contradictions(gate_of("shuffled", {"kappa": "lost"}))
    assert contradictions(gate_of("recovery", {"kappa": "weak"})) == (
        "recovery of perseverator: kappa is 'weak', and said to be given back.",
    )
    assert contradictions(gate_of("shuffled", {"kappa": "kept"})) == (
        "shuffled of perseverator: kappa is 'kept', and said to be lost.",
    )
    assert contradictions(gate_of("calibration", {"kappa": "biased low"}))
    # What is open contradicts nothing.
    assert not contradictions(gate_of("recovery", {"kappa": "between recoverable and weak"}))
    assert not contradictions(gate_of("shuffled", {"kappa": "between lost and kept"}))
    assert contradictions(gate_of("recovery", {"kappa": "between weak and not identified"}))
    # The small form is there to see that it works.
    assert not contradictions(gate_of("recovery", {"kappa": "weak"}, units=30))
