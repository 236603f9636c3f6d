"""Each sentence of the gates and of the gallery is true of what is stored."""

import html
import inspect
import json
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from claims import check
from claims.contradictions import REPORT as CONTRADICTIONS
from claims.contradictions import expected
from claims.gallery import REPORT
from claims.gates import REPORT as GATES
from claims.gates import fall

from knownminds.agents import AGENTS
from knownminds.environments import make
from knownminds.inference import MEASURES
from knownminds.validation.gates.gallery import (
    drawing_of,
    shown_environment,
    shown_measure,
    shown_model,
)
from knownminds.validation.gates.gates import Gates, gates, stored_gates
from knownminds.validation.gates.sources import sources_of

VALIDATION = Path(inspect.getfile(Gates)).parent
STORED = json.loads((VALIDATION / "stored_results.json").read_text())
DESIGNS = tomllib.loads((VALIDATION / "recommended.toml").read_text())


def facts_of(name, stored=STORED, **more):
    known = {"retold": None, "trials": None, "hashes": {}}
    if name in AGENTS and name in DESIGNS:
        place = DESIGNS[name]["environment"]
        # That these go by what members do is seen on edited files in tests/gates/test_sources.py.
        known["hashes"] = sources_of("recovery", name, place)
        known["trials"] = make(place, **DESIGNS[name].get("settings", {})).n_trials
    return SimpleNamespace(name=name, gates=stored, designs=DESIGNS, **(known | more))


def said_of(name, stored):
    shown = shown_model(name, stored)
    told = [shown.verdict, *shown.provenance, *shown.warnings]
    told += re.findall(r"Shuffling keeps it: .*", "\n".join(p.why for p in shown.parameters))
    label = re.search(r'aria-label="(.*?)"', str(shown.drawing))
    return [*told, *([html.unescape(label[1])] if label else [])]


@pytest.mark.parametrize("name", AGENTS)
def test_what_the_gallery_says_of_a_model_is_so(name):
    facts = facts_of(name)
    told = said_of(name, stored_gates())
    check(REPORT, told, facts)
    # and it says what there is to say
    old = [
        gate["kind"]
        for gate in STORED
        if gate["name"] == name and gate["sources"] != dict(facts.hashes)
    ]
    assert sorted(old) == sorted(t.split()[2] for t in told if "is older than" in t)


def test_what_the_gallery_says_of_odd_results_is_so():
    name = "perseverator"
    kept = stored_gates()
    gate = kept["recovery", name]
    odd = {
        "settings": replace(gate, settings={"n_visits": 12}),
        "environment": replace(gate, environment="two_step"),
        "split": replace(gate, trials=gate.trials // 2, sessions=2),
        "weak": replace(gate, quantities={"kappa": dict(gate.quantities["kappa"], verdict="weak")}),
        "some failed": replace(gate, failed=3),
        "unknown": replace(gate, quantities={"kappa": dict(gate.quantities["kappa"], r=None)}),
    }
    for what, changed in odd.items():
        stored = kept | {("recovery", name): changed}
        facts = facts_of(name, [asdict(one) for one in stored.values()])
        told = said_of(name, stored)
        if what in ("settings", "environment", "split"):
            assert any("another design" in text for text in told), what
            told = [text for text in told if "older" not in text]  # of another experiment's code
        check(REPORT, told, facts)
    check(REPORT, said_of(name, {}), facts_of(name, []))


@pytest.mark.parametrize("name", ["instrumental_learning", "collider", "dice", "balloon_risk"])
def test_what_the_gallery_says_of_an_experiment_is_so(name):
    check(REPORT, [shown_environment(name).asked], facts_of(name))


def test_what_the_gallery_says_of_an_audit_is_so():
    found = gates(["optimism_bias"], small=True, workers=1)
    (gate,) = found.gates
    shown = shown_measure("optimism_bias", {("audit", "optimism_bias"): gate})
    stored = [asdict(gate)]
    check(REPORT, shown.audit, facts_of("optimism_bias", stored))
    facts = facts_of("optimism_bias", stored, computed=1, problems={})
    check(GATES, [str(found).splitlines()[-1]], facts)
    for name in MEASURES:
        assert shown_measure(name, {}).audit == []


def test_what_is_said_of_gates_is_so():
    kept = tuple(stored_gates().values())
    wrong = [
        replace(g, quantities={k: v | {"verdict": word} for k, v in g.quantities.items()})
        for g in kept
        if g.name in ("perseverator", "rescorla_wagner_dual")
        for word in ("weak", "recoverable", "kept", "lost", "biased low")
    ]
    for some in (kept, tuple(wrong), ()):
        found = Gates(some, len(some), {"recovery of nobody": "it failed"})
        facts = facts_of("", json.loads(found.to_json())["gates"], computed=len(some),
                         problems={"recovery of nobody": "it failed"})  # fmt: skip
        assert list(found.contradictions()) == expected(facts)
        lines = str(found).splitlines()
        told = [t for t in lines if t.startswith(("contradicts", "no result")) or " gates, " in t]
        assert len(lines) == len(told) + len(some)
        check(GATES, told, facts)
        check(CONTRADICTIONS, found.contradictions(), facts)


@pytest.mark.parametrize("gate", [g for g in STORED if g["kind"] == "shuffled"],
                         ids=lambda gate: gate["name"])  # fmt: skip
def test_what_shuffling_takes_is_judged_as_it_is_said_to_be(gate):
    """The stored numbers have four digits: a verdict may only be on the edge by that much."""
    n = gate["units"] - gate["failed"]
    for name, values in gate["quantities"].items():
        near = {fall(values["r"] + e, values["r_shuffled"] - e, n) for e in (-1e-4, 0, 1e-4)}
        assert values["verdict"] in near, name


def test_a_result_without_numbers_is_not_drawn():
    assert str(drawing_of(None)) == ""
