import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    AssociativeReasoner,
    MutationSampler,
    NoisyOr,
    NoisyOrFive,
    RandomResponder,
    simulate,
)
from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import noisy_or_table, questions
from knownminds.inference import MEASURES
from knownminds.inference.causes.causal_answers import ROMAN, causal_answers, judgements
from knownminds.inference.causes.markov_violation import complies
from knownminds.validation.power.dials import GroupDial

NAMES = (
    "explaining_away",
    "explaining_away_released",
    "markov_violation",
    "markov_violation_released",
)
MIND = np.array([0.3, 0.1, 0.8, 0.6, 0.01])  # p, b, m1, m2, sigma


def lived(theta, model=NoisyOr, seed=0, **settings):
    return simulate(model, np.atleast_2d(theta), Collider(**settings), seed)


def changed(trials, rows, **columns):
    frame = trials.to_frame()
    for name, value in columns.items():
        frame.loc[rows, name] = value
    return Trials.from_frame(frame)


def asked(trials, task, direction=None, domain=None):
    answers = causal_answers(trials)
    rows = answers["task"] == task
    rows &= True if direction is None else answers["direction"] == direction
    return (rows & (True if domain is None else answers["domain"] == domain)).to_numpy()


def test_judgements_are_the_closed_form_of_the_eleven_tasks():
    theta = NoisyOr.parameters.draw(np.random.default_rng(0), 20)
    p, b, m1, m2, _ = theta.T
    table = noisy_or_table(p, p, b, m1, m2)  # [20, 11, 2]
    answers = causal_answers(lived(MIND, domains=["weather"], senses=["mpm"]))
    answers = answers.drop_duplicates(["task", "direction"])
    assert len(answers) == 20
    question = answers[["query", "first", "second", "third"]].to_numpy()
    found = judgements(NoisyOr, theta, question)
    for q, (task, direction) in enumerate(zip(answers["task"], answers["direction"], strict=True)):
        expected = table[:, ROMAN.index(task), {"C1": 0, "C2": 1}[direction]]
        assert np.allclose(found[:, q], expected, atol=1e-7)


def test_judgements_of_minds_without_a_graph_are_refused():
    with pytest.raises(ValueError, match=r"noisy_or.* are known; got random_responder"):
        judgements(RandomResponder, np.zeros((1, 0)), questions("collider"))


def test_explaining_away_is_the_difference_of_the_printed_formulas():
    p, b, m1, m2, _ = MIND
    table = noisy_or_table(p, p, b, m1, m2).mean(axis=1)
    six, seven, eight = (table[ROMAN.index(task)] for task in ("VI", "VII", "VIII"))
    text, numbers = (MEASURES[name].truth(NoisyOr, MIND[None])[0] for name in NAMES[:2])
    assert text == pytest.approx(seven - six, abs=1e-7)
    assert numbers == pytest.approx(eight - six, abs=1e-7)
    assert numbers > 1.5 * text > 0.1


def test_no_noisy_or_violates_the_markov_condition_and_association_does_by_its_share():
    measure = MEASURES["markov_violation"]
    for model in (NoisyOr, NoisyOrFive):
        theta = model.parameters.draw(np.random.default_rng(1), 100)
        assert np.abs(measure.truth(model, theta)).max() < 1e-9
    theta = AssociativeReasoner.parameters.draw(np.random.default_rng(1), 100)
    k = theta[:, AssociativeReasoner.parameters.index("k")]
    assert np.allclose(measure.truth(AssociativeReasoner, theta), k, atol=1e-9)


def test_short_walks_violate_the_markov_condition_and_explain_less_away():
    steps = np.array([0.01, 1.0, 4.0, 20.0, 3000.0])
    theta = np.column_stack([np.tile(MIND[:4], (5, 1)), steps, np.full(5, 0.1)])
    text, numbers, violation, _ = (MEASURES[name].truth(MutationSampler, theta) for name in NAMES)
    assert np.all(np.diff(violation) < 0)
    assert violation[0] > 0.98
    assert violation[-1] < 1e-3
    assert np.all(np.diff(numbers) > 0)
    assert numbers[0] < -0.05
    for found, name in ((text, NAMES[0]), (numbers, NAMES[1])):
        assert found[-1] == pytest.approx(MEASURES[name].truth(NoisyOr, MIND[None])[0], abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_many_answers_of_a_quiet_mind_give_its_truth(name):
    theta = np.array([[0.3, 0.1, 0.8, 0.6, 0.3, 0.02]])
    found = MEASURES[name].estimate(lived(theta, AssociativeReasoner))
    truth = MEASURES[name].truth(AssociativeReasoner, theta)[0]
    assert found.unit == "cell"
    assert found.n == (12 if name.endswith("_released") else 24)  # both causes in a cell, or one
    # Two means of 24 answers with sd .02, four standard errors.
    assert abs(found.value - truth) < 4 * 0.02 * np.sqrt(2 / 24)


def test_every_cell_weighs_the_same_whatever_its_number_of_answers():
    trials = lived(MIND, senses=["ppp"])
    economy = asked(trials, "IV", domain="economy")
    trials = changed(trials, asked(trials, "IV"), response=50.0)
    trials = changed(trials, asked(trials, "V"), response=50.0)
    trials = changed(trials, economy, response=80.0)
    once = MEASURES["markov_violation"].values(trials).value[0]
    assert once == pytest.approx(0.1)
    frame = trials.to_frame()
    again = frame[economy].assign(session="again")
    more = Trials.from_frame(pd.concat([frame, again, again.assign(session="third")]))
    assert MEASURES["markov_violation"].values(more).value[0] == pytest.approx(once)
    # Without cells the mean would be another one.
    answers = causal_answers(more).groupby("task")["answer"].mean()
    assert answers["IV"] - answers["V"] == pytest.approx(0.18)


def test_a_cell_without_an_answer_is_named_and_nothing_is_put_in_its_place():
    trials = lived(np.tile(MIND, (3, 1)))
    gone = asked(trials, "VII", "C1", "weather") & (trials.frame["subject"] == "1").to_numpy()
    gone &= (causal_answers(trials)["sense"] == "mmp").to_numpy()
    assert gone.sum() == 1
    whole = MEASURES["explaining_away"].by_cell(trials)
    trials = changed(trials, gone, response=np.nan, outcome="refused")
    found = MEASURES["explaining_away"].estimate(trials)
    named = "no answer to VII in weather mmp C1"
    assert found.excluded == {named: 1, "trials without an answer": 1}
    assert found.n == 3
    cell = whole.cells.index("weather mmp C1")
    others = np.delete(whole.value[1], cell)
    values = MEASURES["explaining_away"].values(trials).value
    assert values[1] == pytest.approx(others.mean())
    assert values[0] == pytest.approx(whole.value[0].mean())
    # The other measures do not read that task.
    assert MEASURES["markov_violation"].estimate(trials).excluded == {}


def test_subjects_without_a_task_have_no_value_and_the_reason():
    trials = lived(np.tile(MIND, (3, 1)))
    gone = asked(trials, "V") & (trials.frame["subject"] == "2").to_numpy()
    trials = changed(trials, gone, response=np.nan, outcome="refused")
    found = MEASURES["markov_violation"].estimate(trials)
    assert found.n == 2
    assert found.excluded["no cell with answers to both IV and V"] == 1
    listed = next(reason for reason in found.excluded if reason.startswith("no answer"))
    assert "and 21 more" in listed
    assert found.excluded[listed] == 24


def test_cells_that_a_subject_was_never_asked_in_are_no_gaps():
    one = lived(MIND, domains=["economy"]).to_frame().assign(subject="a")
    other = lived(MIND, domains=["weather"], seed=1).to_frame().assign(subject="b")
    found = MEASURES["explaining_away"].estimate(Trials.from_frame(pd.concat([one, other])))
    assert (found.n, dict(found.excluded)) == (2, {})


def test_trials_without_the_tasks_or_about_other_graphs_are_refused():
    trials = lived(MIND)
    kept = Trials.from_frame(trials.frame[~asked(trials, "VI") & ~asked(trials, "VII")])
    with pytest.raises(ValueError, match="compares the tasks VII and VI; the trials have none"):
        MEASURES["explaining_away"].estimate(kept)
    with pytest.raises(ValueError, match="are of colliders; the trials are about chains"):
        MEASURES["explaining_away"].estimate(lived(MIND, graph="chain"))
    with pytest.raises(ValueError, match="'query' is missing"):
        MEASURES["explaining_away"].estimate(
            Trials.from_frame(trials.frame.drop(columns=["query"]))
        )
    with pytest.raises(ValueError, match=r"holds positions among economy.*has 7"):
        causal_answers(trials.frame.assign(domain=7))


def test_a_violation_complies_up_to_a_twentieth_to_either_side():
    assert complies(0.05)
    assert complies(-0.05)
    assert not complies(0.051)
    assert not complies(-0.2)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("markov_violation", AssociativeReasoner),
        ("markov_violation", MutationSampler),
        ("explaining_away", MutationSampler),
        ("explaining_away", NoisyOr),
    ],
)
def test_the_dial_moves_the_measure_steadily(name, model):
    parameters = model.parameters
    dial = GroupDial(MEASURES[name], model, parameters.mean, parameters.sd)
    middle = float(np.mean(dial.curve[1][[0, -1]]))
    turn = dial.turn_to(np.array([middle]))
    assert np.isfinite(turn).all()
