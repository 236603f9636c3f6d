import json

import numpy as np
import pytest

from knownminds.agents import ChangePointObserver, simulate
from knownminds.environments import RestlessBandit, Trials, Turn, check_environment, correctness
from knownminds.environments.words.told_history import HISTORIES, REASONINGS

SHOWN = {"trial": 0, "first": 0}


def drawn(environment, n, seed=0):
    return environment.tables(np.random.default_rng(seed).random((n, environment.n_draws)))


def begun(history="prompt", reasoning="none"):
    environment = RestlessBandit(history=history, reasoning=reasoning)
    environment.reset(seed=3)
    return environment


def lived(environment, choices):
    observation, _ = environment.reset(seed=3)
    turns = []
    for choice in choices:
        text = "" if choice is None else environment.say(choice, observation)
        following, reward, *_ = environment.step(choice)
        action, response = environment.split(choice)
        turns.append(Turn(observation, action, reward, text, response))
        observation = following
    return observation, turns


def played(n=4, seed=0):
    theta = ChangePointObserver.parameters.draw(np.random.default_rng(seed), n)
    return simulate(ChangePointObserver, theta, RestlessBandit(), seed)


def lengths(block):
    return np.stack([(block == k).sum(axis=1) for k in range(block.max() + 1)], axis=1)


def test_sessions_have_eighty_trials_in_four_blocks_of_any_length_from_18_to_22():
    environment = RestlessBandit()
    assert environment.n_trials == 80
    n = 20_000
    found = lengths(drawn(environment, n)["block"])
    assert set(np.unique(found)) == {18, 19, 20, 21, 22}
    assert (found.sum(axis=1) == 80).all()
    # All 85 sequences that add up to 80 are equally likely.
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 85
    chi_square = ((counts - n / 85) ** 2 / (n / 85)).sum()
    assert chi_square < 84 + 5 * np.sqrt(2 * 84)


@pytest.mark.parametrize(
    ("n_blocks", "ends"), [(1, (18, 22)), (2, (1, 5)), (30, (3, 3)), (7, (5, 9))]
)
def test_any_number_of_blocks_fills_the_session(n_blocks, ends):
    environment = RestlessBandit(n_blocks, ends)
    found = lengths(drawn(environment, 300)["block"])
    assert found.shape == (300, n_blocks)
    assert (found.sum(axis=1) == environment.n_trials).all()
    assert found.min() >= ends[0]
    assert found.max() <= ends[1]


def test_machines_pay_around_their_means_and_change_places_at_every_block():
    table = drawn(RestlessBandit(), 500)
    mean = np.stack([table["mean_0"], table["mean_1"]], axis=2)
    assert (np.sort(mean, axis=2) == (40, 60)).all()
    changed = np.diff(table["mean_0"], axis=1) != 0
    assert np.array_equal(changed, np.diff(table["block"], axis=1) == 1)
    share = (table["mean_0"][:, 0] == 60).mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(500)
    noise = (table["points"] - mean).reshape(-1, 2)
    n, variance = len(noise), 64 + 1 / 12  # rounding adds the variance of a uniform number
    assert np.array_equal(table["points"], np.round(table["points"]))
    assert np.all(np.abs(noise.mean(axis=0)) < 4 * 8 / np.sqrt(n))
    assert np.all(np.abs(noise.var(axis=0) - variance) < 4 * variance * np.sqrt(2 / n))
    assert abs(np.corrcoef(noise.T)[0, 1]) < 4 / np.sqrt(n)
    assert abs(table["first"].mean() - 0.5) < 4 * 0.5 / np.sqrt(n)


@pytest.mark.parametrize(
    ("text", "outcome", "choice"),
    [
        ("{0}, 0.8", "ok", (0, 0.8)),
        ("{1}, 1", "ok", (1, 1.0)),
        ("  {1}, .25\n", "ok", (1, 0.25)),
        ("{0},0.8", "repaired", (0, 0.8)),
        ("{0} 0.8", "repaired", (0, 0.8)),
        ("{0}: 0.8.", "repaired", (0, 0.8)),
        ("**{1}**, 0.5", "repaired", (1, 0.5)),
        ('"{1}, 0.5"', "repaired", (1, 0.5)),
        ("machine {1}, confidence 0.75", "repaired", (1, 0.75)),
        ("Machine {1} with confidence 0.75", "repaired", (1, 0.75)),
        ("Answer: {0}, 0.3", "repaired", (0, 0.3)),
        ("{0}", "malformed", None),
        ("0.8", "malformed", None),
        ("{0} or {1}, 0.8", "malformed", None),
        ("I take {0}, 0.8", "malformed", None),
        ("{0}, 80%", "malformed", None),
        ("{0}, 80", "malformed", None),
        ("{0}, 0,8", "malformed", None),
        ("{0}, 1.01", "malformed", None),
        ("{0}, -0.1", "malformed", None),
        ("{0}, 0.8, 0.9", "malformed", None),
        ("{0}, high", "malformed", None),
        ("?, 0.8", "malformed", None),
        ("X, 0.8", "malformed", None),
        ("", "empty", None),
        ("I can't choose a machine.", "refused", None),
    ],
)
def test_an_answer_is_a_letter_and_a_confidence(text, outcome, choice):
    environment = begun()
    said = text.format(*environment.design.labels["machines"])
    answer = environment.parse(said, SHOWN)
    assert (answer.outcome, answer.choice) == (outcome, choice)
    assert bool(answer.note) == (outcome != "ok")


def test_small_letters_are_repaired_and_letters_not_on_offer_are_not():
    environment = begun()
    one, two = environment.design.labels["machines"]
    answer = environment.parse(f"{one.lower()}, 0.5", SHOWN)
    assert (answer.outcome, answer.choice, answer.note) == ("repaired", (0, 0.5), "letter case")
    other = next(letter for letter in "ABC" if letter not in (one, two))
    answer = environment.parse(f"{other}, 0.5", SHOWN)
    assert (answer.outcome, answer.choice) == ("malformed", None)
    assert answer.note == f"expected one of {one}, {two}"


@pytest.mark.parametrize("reasoning", ["chain_of_thought", "step_back"])
def test_reasons_may_precede_the_marked_answer(reasoning):
    environment = begun(reasoning=reasoning)
    one, two = environment.design.labels["machines"]
    answer = environment.parse(f"{one}, 0.9 was poor.\nAnswer: {two}, 0.65", SHOWN)
    assert (answer.outcome, answer.choice) == ("ok", (1, 0.65))
    bold = environment.parse(f"So.\n**Answer:** {two}, 0.65\nGood luck!", SHOWN)
    assert (bold.outcome, bold.choice) == ("repaired", (1, 0.65))
    assert environment.parse(f"{two}, 0.65", SHOWN).outcome == "malformed"
    assert environment.parse(f"Answer: {two}", SHOWN).outcome == "malformed"


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("reasoning", REASONINGS)
def test_confidences_are_told_and_read_back_to_the_last_digit(history, reasoning):
    environment = begun(history, reasoning)
    observation, turns = lived(environment, [(1, 0.1 + 0.2), None, (0, 1e-7), (1, 1.0)])
    prompt = environment.render(observation, turns)
    past, seen = environment.read(prompt.messages)
    assert seen == observation
    assert [(t.action, t.response, t.reward) for t in past] == [
        (t.action, t.response, t.reward) for t in turns
    ]
    assert "could be read from your reply" in prompt.text
    stranger = RestlessBandit(history=history, reasoning=reasoning)
    assert stranger.names_told(prompt.messages)["machines"] == sorted(
        environment.design.labels["machines"]
    )


def test_what_lies_between_the_machines_is_not_told():
    environment = begun()
    observation, turns = lived(environment, [(0, 0.5)] * 30)
    text = environment.render(observation, turns).text
    assert set(observation) == {"trial", "first"}
    assert "60" not in text.split("\n\n")[0].replace("80", "")
    assert json.loads(json.dumps(environment.design.labels)) == environment.design.labels
    with pytest.raises(ValueError, match=r"not one of restless_bandit"):
        environment.names_told([])


def test_a_choice_is_judged_by_the_means_in_force_when_it_was_made():
    trials = played()
    frame, right = trials.frame, correctness(trials)
    paid = np.where(frame["action"] == 0, frame["mean_0"], frame["mean_1"])
    assert np.array_equal(right, paid == 60)
    assert np.array_equal(right, RestlessBandit().performance(trials))
    swapped = correctness(trials, after=True)
    following = frame.groupby("subject")["block"].shift(-1).fillna(-1)
    changes = (following != frame["block"]).to_numpy()
    assert changes.sum() == 4 * 4  # the last trial of a session ends a block too
    assert np.array_equal(swapped != right, changes)
    frame = trials.to_frame()
    frame.loc[0, ["action", "response", "reward"]] = None
    frame.loc[0, "outcome"] = "refused"
    assert np.isnan(correctness(Trials.from_frame(frame))[0])
    with pytest.raises(ValueError, match=r"no 'mean_1'\. Map one"):
        correctness(Trials.from_frame(frame.drop(columns="mean_1")))


def test_other_designs_keep_the_contract():
    check_environment(RestlessBandit(3, (2, 4), high=5, low=-5, sd=2))
    check_environment(RestlessBandit(1, (1, 1)))


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("response", 1.2, "Responses of restless_bandit go from 0 to 1; row 1 .* has 1.2"),
        ("action", 2, "Actions of restless_bandit are 0, 1; row 1 .* has 2"),
        ("response", None, "row 1 .* has an action but no response"),
        ("reward", None, "row 1 .* has an action but no reward"),
        ("action", None, "row 1 .* has a response but no action"),
    ],
)
def test_a_trial_that_no_session_has_is_named(column, value, sentence):
    frame = played().to_frame()
    frame.loc[0, column] = value
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(frame, environment=RestlessBandit())


def test_a_missing_column_is_named():
    for column in ("response", "reward"):
        with pytest.raises(ValueError, match=f"have a column '{column}'"):
            Trials.from_frame(played().frame.drop(columns=column), environment=RestlessBandit())


def test_what_is_not_a_choice_with_a_confidence_raises():
    environment = begun()
    for choice in (0, (0, 1.5), (2, 0.5), (0, -0.1), (0, "high")):
        with pytest.raises(ValueError, match="restless_bandit"):
            environment.step(choice)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_blocks": 0}, "n_blocks is a whole number from 1 on; got 0"),
        ({"block_length": 20}, "block_length holds the shortest and the longest block"),
        ({"block_length": (18, 21)}, "whole number as their mean; got .* Add 1"),
        ({"block_length": (22, 18)}, "block_length holds"),
        ({"block_length": (0, 2)}, "from 1 on; got"),
        ({"high": 40.0}, "high is above low; got 40 and 40"),
        ({"sd": 0}, "sd is a number above 0; got 0"),
        ({"low": "x"}, "low is a number; got 'x'"),
    ],
)
def test_bad_settings_are_told(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        RestlessBandit(**settings)
