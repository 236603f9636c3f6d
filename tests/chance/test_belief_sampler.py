from itertools import product

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, play, simulate
from knownminds.agents.chance.belief_sampler import (
    LEAK,
    MARKS,
    N_LETTERS,
    N_MARKS,
    STATED,
    outcome_places,
    table_of,
)
from knownminds.agents.sequences import Sequences
from knownminds.environments import (
    ENVIRONMENTS,
    Choice,
    Coins,
    Dice,
    Preference,
    Trials,
    context_of,
    make,
)
from knownminds.environments.chance.outcome_grid import LETTERS
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.inference.posteriors.crossed_levels import Levels, units_of

PLAIN, STATES = AGENTS["belief_sampler"], AGENTS["belief_sampler_stated"]
HONEST = dict.fromkeys(PLAIN.parameters.names, 0.0) | {"temperature": 1.0}


def mind(**changes):
    return PLAIN(**(HONEST | changes))


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def together(model, theta, environments, seed=1):
    """The same subjects in several experiments, one session each."""
    frames = [
        simulate(model, theta, environment, seed, address=(k,)).to_frame().assign(session=str(k))
        for k, environment in enumerate(environments)
    ]
    frame = pd.concat([f[["subject", "session", "trial", "cell", "correct", "action"]]
                       for f in frames])  # fmt: skip
    frame = frame.assign(outcome="ok", reward=None).sort_values(["subject", "session", "trial"])
    return Trials.from_frame(frame.reset_index(drop=True))


ALL_FOUR = (Dice(1, 6), Dice(2, 4), Coins(3), Choice(6), Preference())


# ---------------------------------------------------------------- what it reveals


def test_without_biases_the_sampler_knows_the_truth():
    for environment in ALL_FOUR:
        environment.reset(seed=0)
        for context in environment.contexts:
            cell = int(environment.cells(np.array([context.values]))[0])
            shares = mind().outcome_probabilities(cell)
            assert shares == pytest.approx(context.chance.probabilities, abs=1e-15)


def test_a_bias_multiplies_the_odds_of_the_outcomes_that_have_the_mark():
    for k, mark in enumerate(MARKS):
        found = 0
        for environment in ALL_FOUR:
            for context in environment.contexts:
                cell = int(environment.cells(np.array([context.values]))[0])
                true = context.chance.probabilities
                bent = mind(**{f"bias_{mark}": 0.7}).outcome_probabilities(cell)
                marked = context.marks[:, k] & (true > 0)
                found += marked.any()
                weight = true * np.where(marked, np.exp(0.7), 1.0)
                assert bent == pytest.approx(weight / weight.sum(), abs=1e-14)
        assert found, mark


def test_temperature_is_the_exponent_of_the_odds():
    cell = int(Coins(2).cells(np.array([[2, 0, 3, 0, -1]]))[0])
    true = np.array([1, 6, 9]) / 16
    for temperature in (0.25, 1.0, 2.0):
        weight = true ** (1 / temperature)
        shares = mind(temperature=temperature).outcome_probabilities(cell)
        assert shares == pytest.approx(weight / weight.sum(), abs=1e-14)
    # All alike at a very high temperature; only the most probable one at a very low one.
    assert mind(temperature=1e9).outcome_probabilities(cell) == pytest.approx([1 / 3] * 3)
    assert mind(temperature=1e-5).outcome_probabilities(cell).tolist() == [0, 0, 1]


def test_what_leaks_goes_to_outcomes_that_cannot_come_and_nothing_where_all_can():
    even = int(Dice.cells(np.array([[1, 6, 3, -1, 2, -1]]))[0])
    assert mind(leak=0.3).outcome_probabilities(even) == pytest.approx([0.1, 0.7 / 3] * 3)
    single = int(Dice.cells(np.array([[1, 6, 0, -1, -1, -1]]))[0])
    assert mind(leak=0.3).outcome_probabilities(single) == pytest.approx([1 / 6] * 6)


def test_a_letter_is_right_with_a_probability_or_chosen_by_its_position():
    agent = STATES(**HONEST, known=0.6, bias_b=0.0, bias_c=np.log(3), bias_d=0.0, bias_e=0.0)
    other = 0.4 * np.array([1, 1, 3, 1, 1]) / 7
    for correct in range(5):
        right = other + 0.6 * (np.arange(5) == correct)
        assert agent.letter_probabilities(correct) == pytest.approx(right)


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize(("model", "lapse"), [(PLAIN, 0.0), (STATES, 0.2)])
def test_kernel_and_step_loop_play_the_same_session_in_all_scenarios(model, lapse):
    places = list(ALL_FOUR)
    if model is STATES:
        places += [Dice(2, 6, form="stated"), Coins(form="stated", distractors="plausible")]
    for environment in places:
        theta = drawn(model, 3)
        fused = simulate(model, theta, environment, 11, address=(3,), lapse=lapse).frame
        loop = [
            play(
                model.from_theta(theta[i], lapse=lapse, actions=environment.n_actions),
                environment, 11, 3, i,
            )
            for i in range(3)
        ]  # fmt: skip
        pd.testing.assert_frame_equal(fused, Trials.concatenate(loop).frame)


@pytest.mark.parametrize("lapse", [None, 0.2])
def test_likelihood_and_gradient_over_different_numbers_of_outcomes(lapse):
    places = (*ALL_FOUR, Dice(3, 12), Dice(1, 6, form="stated"))
    theta = drawn(STATES, 4)
    trials = together(STATES, theta, places)
    data = ModelData.read(STATES, trials)
    at = drawn(STATES, 4, seed=2)
    rates = None if lapse is None else np.full(4, lapse)
    total, gradient = data.log_likelihood(at, rates)
    frame = trials.frame
    for i, name in enumerate(data.subjects):
        agent, plain = STATES.from_theta(at[i]), 0.0
        for row in frame[frame.subject == name].to_dict("records"):
            p = agent.action_probabilities(row)
            # A lapse is any of the outcomes of this context.
            p = p if lapse is None else (1 - lapse) * p + lapse / len(p)
            plain += np.log(p[row["action"]])
        assert total[i] == pytest.approx(plain, rel=1e-12)
    wide = at if lapse is None else np.column_stack([at, rates])
    for k in range(wide.shape[1]):
        h = np.zeros_like(wide)
        h[:, k] = 1e-3 * np.minimum(1.0, np.abs(wide[:, k]))

        def value(w):
            return data.log_likelihood(*((w,) if lapse is None else (w[:, :-1], w[:, -1])))[0]

        # Fourth-order differences, whose error is about h**4 of the size of the value.
        difference = 8 * (value(wide + h) - value(wide - h)) - (
            value(wide + 2 * h) - value(wide - 2 * h)
        )
        numeric = difference / (12 * h[:, k])
        assert np.allclose(gradient[:, k], numeric, rtol=1e-6, atol=1e-6)
        assert (gradient[:, k] != 0).all()


def test_probabilities_of_all_answers_to_a_context_sum_to_one():
    environment, theta = Dice(1, 6), drawn(PLAIN, 1)
    for context in environment.contexts[::3]:
        cell = int(environment.cells(np.array([context.values]))[0])
        pairs = list(product(range(6), repeat=2))  # a fit wants two trials
        rows = [
            {"subject": str(k), "trial": t, "cell": cell, "correct": -1, "action": pair[t]}
            for k, pair in enumerate(pairs)
            for t in (0, 1)
        ]
        frame = pd.DataFrame(rows).assign(outcome="ok", reward=None)
        data = ModelData.read(PLAIN, Trials.from_frame(frame))
        total = data.log_likelihood(np.repeat(theta, len(pairs), axis=0))[0]
        assert np.exp(total).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("lapse", [None, 0.1])
def test_extreme_parameters_give_finite_values(lapse):
    trials = together(STATES, drawn(STATES, 1), (Dice(2, 4), Choice(4), Coins(form="stated")))
    data = ModelData.read(STATES, trials)
    z = np.random.default_rng(0).choice([-12.0, 0.0, 12.0], (200, len(STATES.parameters)))
    theta = STATES.parameters.constrain(z)
    rows = data.repeat(np.zeros(200, dtype=int))
    total, gradient = rows.log_likelihood(theta, None if lapse is None else np.full(200, lapse))
    assert np.isfinite(total).all()
    assert np.isfinite(gradient).all()


def test_merged_places_hold_what_the_answers_say():
    trials = together(PLAIN, np.repeat(drawn(PLAIN, 1), 2, axis=0), [Dice(1, 6)] * 5)
    data = ModelData.read(PLAIN, trials)
    _, (what, many, count, *_rest, gone, every) = data.prepared()
    assert count.sum() + gone.sum() == len(trials)
    assert (what == 1).sum() == 2 * 23
    assert set(every[what == 1]) == {6.0}
    # All outcomes of all contexts that can come stand for themselves or for others like them.
    possible = sum(np.isfinite(table_of(int(c))[0]).sum() for c in set(trials.frame["cell"]))
    assert many.sum() == 2 * possible
    assert len(what) < many.sum()


def test_probabilities_as_weights_give_the_cross_entropy():
    environment, theta = Dice(2, 4), drawn(PLAIN, 2)
    cells = environment.cells(np.array([context.values for context in environment.contexts]))
    beliefs = [PLAIN.from_theta(theta[0]).outcome_probabilities(int(cell)) for cell in cells]
    n = environment.n_actions
    whose, columns = outcome_places(
        np.zeros(n * len(cells), dtype=np.int64),
        np.repeat(cells, n),
        np.tile(np.arange(n), len(cells)).astype(float),
        np.concatenate(beliefs),
    )
    parts = Sequences.group(whose, (), 1)
    packed = [parts.pack(column) for column in columns]

    def value(at):
        return PLAIN.log_likelihood(at[None], None, n, parts.row, parts.start, *packed)

    # Of all samplers the one whose beliefs these are is the nearest, and nothing is left to gain.
    entropy = sum((q[q > 0] * np.log(q[q > 0])).sum() for q in beliefs)
    best, gradient = value(theta[0])
    assert best[0] == pytest.approx(entropy, rel=1e-12)
    assert np.allclose(gradient, 0.0, atol=1e-10)
    assert value(theta[1])[0][0] < best[0] - 0.1


def test_answers_that_no_context_has_are_refused():
    frame = together(PLAIN, drawn(PLAIN, 1), [Coins(2)]).to_frame()
    theta = drawn(PLAIN, 1)
    wrong = frame.copy()
    wrong.loc[0, "action"] = 3
    with pytest.raises(ValueError, match="has 3 outcomes; got the action 3"):
        ModelData.read(PLAIN, Trials.from_frame(wrong)).log_likelihood(theta)
    wrong = frame.assign(cell=5)
    with pytest.raises(ValueError, match="numbers of contexts"):
        ModelData.read(PLAIN, Trials.from_frame(wrong)).log_likelihood(theta)
    stated = together(STATES, drawn(STATES, 1), [Coins(2, form="stated")])
    with pytest.raises(ValueError, match="states no probabilities; 42 answers do"):
        ModelData.read(PLAIN, stated).log_likelihood(theta)
    with pytest.raises(ValueError, match="Choose a model that does, such as belief_sampler_stated"):
        PLAIN.check_plays(Coins(form="stated"))
    with pytest.raises(ValueError, match="states no probabilities"):
        mind().letter_probabilities(0)


def test_sampled_outcomes_have_the_probabilities_the_sampler_states():
    theta, n = drawn(STATES, 1, seed=5), 300
    for environment in (Dice(1, 5), Dice(1, 5, form="stated")):
        frame = simulate(STATES, np.repeat(theta, n, axis=0), environment, 2).frame
        agent, fit, degrees = STATES.from_theta(theta[0]), 0.0, 0
        for _, asked in frame.groupby(["cell", "correct"]):
            p = agent.action_probabilities(asked.iloc[0])
            counts = np.bincount(asked["action"].astype(int), minlength=len(p))
            assert not counts[p == 0].any()
            p, counts = p[p > 0], counts[p > 0]
            expected = p * len(asked)
            # Centred by its mean, with its exact variance given the expected counts.
            fit += ((counts - expected) ** 2 / expected).sum() - (len(p) - 1)
            k = len(p)
            degrees += 2 * (k - 1) + ((1 / p).sum() - k * k - 2 * k + 2) / len(asked)
        assert abs(fit) < 4 * np.sqrt(degrees)


# ---------------------------------------------------------------- where it plays, what it recovers


def test_it_plays_the_six_scenarios_and_no_other():
    found = {name for name in ENVIRONMENTS if PLAIN.plays(make(name))}
    assert found == {"dice", "coins", "choice", "preference", "counts", "linked_coins"}


def test_models_in_scenarios_are_units_of_one_group():
    n, places = 3, (Dice(1, 6), Coins(2), Choice(6), Preference())
    frame = together(PLAIN, drawn(PLAIN, n), places).to_frame()
    scenario = frame["session"].astype(int).map(lambda k: places[k].name)
    trials = Trials.from_frame(frame.assign(scenario=scenario, model="m" + frame["subject"]))
    # As `hierarchical` does with unit and crossed.
    name = units_of(trials, ("model", "scenario"))
    levels = Levels.of(("model", "scenario"), trials, name)
    data = ModelData.read(PLAIN, Trials.from_frame(trials.frame.assign(subject=name)))
    assert len(data.subjects) == n * len(places)
    assert set(levels.names) == {f"model=m{k}" for k in range(n)} | {
        f"scenario={place.name}" for place in places
    }
    # A unit has the answers of its model in its scenario and no others.
    theta = drawn(PLAIN, 1, seed=3)
    total = data.log_likelihood(np.repeat(theta, len(data.subjects), axis=0))[0]
    for unit, value in zip(data.subjects, total, strict=True):
        model, where = unit.split(" | ")
        own = trials.frame[(trials.frame["model"] == model) & (scenario == where)]
        alone = ModelData.read(PLAIN, Trials.from_frame(own))
        assert alone.log_likelihood(theta)[0][0] == pytest.approx(value, rel=1e-12)
    # Together they are the model, whose parameters then rest on all scenarios.
    whole = ModelData.read(PLAIN, trials).log_likelihood(np.repeat(theta, n, axis=0))[0]
    assert whole.sum() == pytest.approx(total.sum(), rel=1e-12)


def test_parameters_are_recovered_and_shuffled_answers_do_not_recover():
    n = 60
    theta = drawn(STATES, n)
    places = [*[Dice(1, 6), Dice(2, 6), Coins(3), Choice(4)] * 3, *[Preference()] * 2]
    places += [Dice(2, 6, form="stated"), Coins(3, form="stated")]
    trials = together(STATES, theta, places)
    frame = trials.to_frame()
    # Answers of another subject to the same trial of the same design would do; here each
    # subject's answers are those of the next one, whose design is another.
    lost = frame.assign(subject=((frame["subject"].astype(int) + 1) % n).astype(str))
    truth = STATES.parameters.unconstrain(theta)
    for record, whose in ((frame, "own"), (lost, "another")):
        fit = maximum_a_posteriori(STATES, Trials.from_frame(record))
        order = np.array([int(name) for name in fit.subjects])
        for k, name in enumerate(STATES.parameters.names):
            r = np.corrcoef(truth[order, k], fit.z[:, k])[0, 1]
            # The standard error of a correlation of nothing is 1 / sqrt(60) = .13.
            if whose == "own":
                assert r > 0.5, (name, r)
            else:
                assert abs(r) < 0.5, (name, r)


def test_positions_in_the_kernel_are_those_of_the_parameters():
    names = STATES.parameters.names
    assert names[0] == "temperature"
    assert names[1 : 1 + N_MARKS] == tuple(f"bias_{mark}" for mark in MARKS)
    assert names[LEAK] == "leak"
    assert names[STATED] == "known"
    assert names[STATED + 1 :] == tuple(f"bias_{letter.lower()}" for letter in LETTERS[1:])
    assert len(LETTERS) == N_LETTERS
    assert context_of(int(Coins.cells(np.array([[2, 0, 1, 0, -1]]))[0])).scenario == "coins"
