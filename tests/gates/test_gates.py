import json
from dataclasses import asdict, replace
from typing import get_args

import numpy as np
import pytest

from knownminds.agents import AGENTS
from knownminds.validation.cli import main
from knownminds.validation.engine.verdicts import Word
from knownminds.validation.gates import gates as module
from knownminds.validation.gates.gates import (
    LARGE,
    Gate,
    contradictions,
    gates,
    judge_fall,
    read_gates,
    recommendation,
    recommendations,
    sources_of,
    stored_gates,
)

FEW = ["perseverator", "linear_observer_log", "weighted_bayes"]  # cheap; three families


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


def test_nothing_is_recommended_for_models_that_do_not_exist():
    assert set(recommendations()) == set(AGENTS)


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


def test_the_small_form_passes_over_recovery_control_and_calibration(computed):
    _, found = computed
    assert found.computed == len(found.gates) == 3 * len(FEW)
    assert not found.problems
    for name in FEW:
        recovery, control = found.of(name, "recovery"), found.of(name, "shuffled")
        for parameter, values in recovery.quantities.items():
            # The error of a correlation of .5 from 30 subjects is .14, of higher ones less.
            assert values["r"] > 0.5, (name, parameter)
            assert control.quantities[parameter]["r"] > 0.5, (name, parameter)
        fallen = [v["r_shuffled"] < v["r"] - 0.2 for v in control.quantities.values()]
        assert any(fallen), name
        calibration = found.of(name, "calibration")
        assert set(calibration.quantities) == {*AGENTS[name].parameters.names, "log_likelihood"}
        assert calibration.attempted == 20


def test_what_is_in_the_store_is_not_computed_again(computed, monkeypatch):
    store, found = computed
    monkeypatch.setattr(module, "_gate", None)  # whoever computes, fails
    again = gates(FEW, small=True, store=store, workers=1)
    assert again.computed == 0
    assert [gate.design for gate in again.gates] == [gate.design for gate in found.gates]
    assert again.gates[0].quantities == found.gates[0].quantities


def test_a_gate_is_computed_anew_when_the_file_of_its_model_has_changed(computed, monkeypatch):
    store, found = computed
    written = sources_of("shuffled", FEW[0], found.of(FEW[0], "shuffled").environment)
    monkeypatch.setattr(module, "sources_of", lambda *of: written | {"model": "another"})
    assert found.of(FEW[0], "shuffled").older_than == ("the model's code",)
    copy = store.with_name("copy.json")
    copy.write_text(store.read_text(encoding="utf-8"), encoding="utf-8")
    again = gates(FEW[:1], kinds=["shuffled"], small=True, store=copy, workers=1)
    assert again.computed == 1
    assert again.gates[0].sources["model"] == "another"
    kept = read_gates(copy)
    assert len(kept) == 3 * len(FEW)  # the others are still there
    assert kept["shuffled", FEW[0]].sources["model"] == "another"


def test_a_gate_that_fails_is_told_and_not_stored_and_the_others_go_on(tmp_path, monkeypatch):
    own = module._shuffled

    def failing(design, *rest):
        if design.model == "perseverator":
            raise ValueError("the sky fell")
        return own(design, *rest)

    monkeypatch.setattr(module, "_shuffled", failing)
    store = tmp_path / "store.json"
    found = gates(
        ["perseverator", "linear_observer_log"],
        kinds=["shuffled"],
        small=True,
        store=store,
        workers=1,
    )
    assert found.problems == {"shuffled of perseverator": "the sky fell"}
    assert "no result: shuffled of perseverator: the sky fell" in str(found)
    assert set(read_gates(store)) == {("shuffled", "linear_observer_log")}


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


def test_an_audit_is_told_by_effect_and_judged_by_the_size_of_its_test(monkeypatch):
    monkeypatch.setitem(module.SMALL, "audit", 100)  # the fewest by which a size is judged
    found = gates(["regression_to_the_mean", "optimism_bias"], small=True, workers=1)
    assert not found.problems
    score, bias = (found.of(name, "audit") for name in ("regression_to_the_mean", "optimism_bias"))
    assert "no effect" not in score.quantities  # a score has no null value
    assert len(score.quantities) == 3
    # The share of false alarms is .066 of 5%; its error with 100 data sets is .025.
    assert bias.quantities["no effect"]["rejected"] < 0.15
    words = ["size holds", *(word for word in get_args(Word) if "alarms" in word)]
    assert bias.quantities["no effect"]["verdict"] in words
    assert set(bias.sources) == {"measure", "experiment"}
    assert bias.command == "knownminds audit optimism_bias --replicates 100 --seed 1"


def test_commands_repeat_the_recommended_design_at_a_prompt():
    design = recommendation("random_utility")
    told = design.command(seed=3)
    assert told.startswith("knownminds recover diagnosis --model random_utility --set ")
    assert "'elicitations=[\"plain\"]'" in told
    assert told.endswith("--seed 3")


def test_misuse_is_answered_with_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="There is no gate named 'recovry'"):
        gates(["perseverator"], kinds=["recovry"])
    with pytest.raises(ValueError, match="no model or measure named 'perseverater'"):
        gates(["perseverater"])
    with pytest.raises(ValueError, match="number of workers is at least 1; got 0"):
        gates(["perseverator"], workers=0)
    large = tmp_path / "large.json"
    large.write_text(json.dumps([asdict(gate_of("recovery", {"kappa": "weak"}))]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"do not replace large ones; .*recovery of perseverator"):
        gates(["perseverator"], small=True, store=large)
    wrong = tmp_path / "wrong.json"
    for text in ('{"a": 1}', "[1", '[{"kind": "recovery"}]'):
        wrong.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"wrong\.json holds no gates .*--store"):
            gates(["perseverator"], small=True, store=wrong)


def test_the_command_prints_one_object(capsys):
    asked = ["gates", "perseverator", "--gate", "shuffled", "--small", "--workers", "1", "--json"]
    with pytest.raises(SystemExit) as end:
        main(asked)
    assert not end.value.code
    told = json.loads(capsys.readouterr().out)
    assert told["computed"] == 1
    (gate,) = told["gates"]
    assert gate["name"] == "perseverator"
    assert np.isfinite(gate["quantities"]["kappa"]["r_shuffled"])
