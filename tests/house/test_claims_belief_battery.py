"""Every sentence of the tests of coherence holds, of whole data and of odd ones."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.belief_battery import REPORT

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference import (
    conditional_independence,
    elicitation_consistency,
    iterated_expectation,
    monotone_choice,
    predictive_gain,
)
from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.validation.diagnosis.belief_battery import belief_battery
from knownminds.validation.diagnosis.belief_battery_page import battery_page

MIND = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0, "d": 1.0,
        "s_between": 0.2, "s_report": 0.15}  # fmt: skip
FEW = {"learner": "tree", "permutations": 99, "bootstraps": 60}
NETWORK = {"network": "fever"}


def answered(model, seed=5, contexts=40, repeats=2, dial=None, **settings):
    place = make("diagnosis", **NETWORK, n_contexts=contexts, repeats=repeats, **settings)
    names = AGENTS[model].parameters.names
    theta = [[({**MIND, **(dial or {})})[name] for name in names]]
    return (
        simulate(AGENTS[model], np.array(theta), place, seed)
        .to_frame()
        .assign(model=model, session=model)
    )


def lost(frame, share=0.2, seed=0):
    """Some answers go missing; of a distribution all states together."""
    frame = frame.copy()
    gone = np.random.default_rng(seed).random(len(frame)) < share
    gone[(frame["question"] == 4) & (frame["part"] > 0)] = False
    for _ in range(4):
        gone |= np.roll(gone, 1) & ((frame["question"] == 4) & (frame["part"] > 0)).to_numpy()
    frame.loc[gone, ["action", "response"]] = np.nan
    frame.loc[gone, "outcome"] = "malformed"
    return frame


def sentences_of(page):
    for finding in page.findings:
        yield finding.name, f"{finding.name}: {finding.word}."
        for sentence in re.split(r"(?<=\.) (?=[A-Z])", finding.why):
            yield finding.name, sentence
    for title, *_ in page.tables[:-1]:
        yield title.split(":")[0], title
    for sentence in (page.title, *page.notes, *(title for title, _ in page.figures)):
        yield "", sentence


def prove(frame, network=None):
    """Prove all that a battery's page and text say."""
    battery = belief_battery(frame, by="model", network=network, **FEW)
    content = json.loads(battery.to_json())
    told = list(sentences_of(battery_page(battery)))
    who = ""
    for line in str(battery).splitlines():
        who = line.split(":")[0] if ": rows " in line else who
        if ": rows " in line or " none: " in line or "left out: " in line:
            told.append((who, line.strip()))
    for who, sentence in told:
        own = frame[frame["model"] == who] if who else frame
        check(REPORT, [sentence], SimpleNamespace(content=content, trials=own, who=who))
    return battery


@pytest.fixture(scope="module")
def models():
    frames = [
        answered("random_utility"),
        answered("outcome_peeker", dial={"delta": 0.6}, contexts=60),
        answered("incoherent_believer", dial={"kappa": 0.6}, parts="separate"),
        lost(answered("noisy_reporter", dial={"s_report": 1.0})),
    ]
    return pd.concat(frames, ignore_index=True)


def test_what_a_battery_says_of_several_models_holds(models):
    battery = prove(models)
    own = battery.table[battery.table["status"] == "ok"]
    told = own[own["test"] == "iterated expectation"].groupby("participant")["of"].agg(list)
    assert told["incoherent_believer"][0] == "parts over whole, asked singly"
    assert told["random_utility"][0] == "parts over whole"


def test_what_a_battery_says_with_evidence_holds():
    battery = prove(answered("random_utility", elicitations="plain"), network="fever")
    assert "ratio of forest" in battery.table["of"].tolist()


@pytest.mark.parametrize("settings", [
    {"contexts": 1, "repeats": 1},
    {"contexts": 3, "repeats": 1},
    {"contexts": 12, "questions": "belief"},
    {"contexts": 12, "questions": "decision"},
    {"contexts": 12, "questions": ["belief", "expectation"], "elicitations": "plain"},
])  # fmt: skip
def test_what_a_battery_says_of_little_or_of_a_part_holds(settings):
    prove(answered("random_utility", **settings))


def test_where_nothing_was_answered_nothing_is_said_to_hold():
    frame = answered("random_utility", contexts=6)
    frame[["action", "response"]] = np.nan
    battery = prove(frame.assign(outcome="malformed"))
    (finding,) = battery_page(battery).findings
    assert (finding.word, finding.tone) == ("not tested", "")


def test_pictures_are_of_the_first_participants():
    some = answered("random_utility", contexts=5, repeats=1)
    frames = [some.assign(model=f"model {k}", session=str(k)) for k in range(13)]
    prove(pd.concat(frames, ignore_index=True))


def test_who_waits_least_where_the_state_is_probable_is_not_accused():
    """Its share of Defer over No falls with belief, which expected utility allows."""
    dial = {"u_yes_1": 8.0, "u_defer_1": -3.0, "u_defer_0": 2.0}
    battery = prove(answered("random_utility", dial=dial, contexts=150, repeats=4))
    table = battery.table
    falls = table[table["of"] == "Defer over No falls"].iloc[0]
    assert falls["p_value"] < 0.01
    (finding,) = battery_page(battery).findings
    assert "Rejected" not in finding.why.split(" Published")[0] or (
        "monotone choice" not in finding.why.split(" Published")[0]
    )


# ---------------------------------------------------------------- single tests


def lines_of(result, raw=False):
    return [line if raw else line.strip() for line in str(result).splitlines()]


@pytest.mark.parametrize("dial", [0.0, 0.6])
@pytest.mark.parametrize("missing", [False, True])
def test_what_the_tests_of_a_participant_print_holds(dial, missing):
    frame = answered("outcome_peeker", dial={"delta": dial}, contexts=60, seed=3)
    frame = lost(frame) if missing else frame
    data = BeliefDecisions.read(frame)
    results = [
        conditional_independence(data, replicates=99, bootstraps=100),
        conditional_independence(data, calibrated=True, replicates=99, bootstraps=100),
        predictive_gain(data, learner="tree", replicates=99, bootstraps=60),
        monotone_choice(data, bootstraps=60),
        iterated_expectation(data, bootstraps=60),
    ]
    for result in results:
        facts = SimpleNamespace(content=json.loads(result.to_json()), trials=frame)
        check(REPORT, lines_of(result), facts)
    consistency = elicitation_consistency(data, replicates=99, bootstraps=60)
    facts = SimpleNamespace(content=json.loads(consistency.to_json()), trials=frame)
    check(REPORT, lines_of(consistency, raw=True), facts)


def test_what_the_law_of_iterated_expectation_prints_holds_of_either_elicitation():
    one, other = (
        answered("noisy_reporter", parts=parts, dial={"s_report": 0.5})
        for parts in ("distribution", "separate")
    )
    asked = other[other["question"] == 2]
    both = pd.concat([one, asked.assign(trial=asked["trial"] + 10_000)], ignore_index=True)
    for frame, hows in (
        (one, ["distribution"]),
        (other, ["separate"]),
        (both, ["distribution", "separate"]),
    ):
        data = BeliefDecisions.read(frame)
        assert list(data.part_elicitations) == hows
        result = iterated_expectation(data, bootstraps=60)
        assert result.elicitation == hows[0]
        facts = SimpleNamespace(content=json.loads(result.to_json()), trials=frame)
        check(REPORT, lines_of(result), facts)
    # Of the one, sums are 1; of the other noise lifts them off it.
    sums = [
        frame[frame["question"] == code].groupby(["context", "repetition"])["response"].sum()
        for frame, code in ((one, 4), (other, 2))
    ]
    assert np.allclose(sums[0], 1.0)
    assert sums[1].std() > 0.02
    battery = belief_battery(both, by="model", **FEW)
    rows = battery.table[battery.table["test"] == "iterated expectation"]["of"].tolist()
    assert "parts over whole" in rows
    assert "parts over whole, asked singly" in rows
    with pytest.raises(ValueError, match="asked for as distribution; got 'separate'"):
        iterated_expectation(BeliefDecisions.read(one), elicitation="separate")


def test_what_a_forest_is_held_against_holds():
    frame = answered("random_utility", contexts=30)
    data = BeliefDecisions.read(frame).with_evidence(make("diagnosis", **NETWORK))
    result = iterated_expectation(data, features=data.evidence, forest=True, bootstraps=60)
    facts = SimpleNamespace(content=json.loads(result.to_json()), trials=frame)
    check(REPORT, lines_of(result), facts)
    gain = predictive_gain(
        data, features=data.evidence, learner="tree", replicates=99, bootstraps=60
    )
    facts = SimpleNamespace(content=json.loads(gain.to_json()), trials=frame)
    check(REPORT, lines_of(gain), facts)


def test_pairs_of_actions_that_were_never_taken_are_said_to_be_untestable():
    dial = {"u_defer_1": -40.0, "u_defer_0": -40.0, "u_yes_1": 40.0, "u_yes_0": 40.0}
    frame = answered("random_utility", dial=dial, contexts=20)
    result = monotone_choice(BeliefDecisions.read(frame), bootstraps=20)
    facts = SimpleNamespace(content=json.loads(result.to_json()), trials=frame)
    check(REPORT, lines_of(result), facts)
    assert "not testable" in str(result)
