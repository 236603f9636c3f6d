import json

import numpy as np
import pytest

from knownminds.agents import HorizonExplorer, simulate
from knownminds.environments import Horizon, Trials, Turn, check_environment, session_stream
from knownminds.environments.bandits.horizon import ARMS, POINTS


def drawn(environment, n, seed=0):
    return environment.tables(np.random.default_rng(seed).random((n, environment.n_draws)))


def begun(history="prompt", reasoning="none", n_games=6, templates=None):
    environment = Horizon(n_games, history=history, reasoning=reasoning, templates=templates)
    environment.reset(seed=3)
    return environment


def lived(environment, actions):
    """Play machine after machine until the actions are used up; return what comes next."""
    observation, _ = environment.reset(seed=3)
    turns = []
    for action in actions:
        text = "" if action is None else environment.say(action, observation)
        following, reward, *_ = environment.step(action)
        turns.append(Turn(observation, action, reward, text))
        observation = following
    return observation, turns


def long_game(environment, actions):
    """Play 0 until a long game begins, then the actions."""
    observation, _ = environment.reset(seed=3)
    before = []
    while observation["horizon"] == 1:
        before.append(0)
        observation, *_ = environment.step(0)
    return lived(environment, [*before, *actions])


def played(n=5, seed=0, **settings):
    environment = Horizon(**{"n_games": 8, **settings})
    theta = HorizonExplorer.parameters.draw(np.random.default_rng(seed), n)
    return environment, simulate(HorizonExplorer, theta, environment, seed)


def test_games_have_the_design_that_was_published():
    environment = Horizon()
    assert environment.n_trials == 600
    table = drawn(environment, 200)
    first = {
        name: values[:, ::6].reshape(20_000, *values.shape[2:]) for name, values in table.items()
    }
    n = 20_000
    half = 4 * 0.5 / np.sqrt(n)  # four standard errors of a share of one half
    assert set(first["horizon"]) == {1, 6}
    assert abs((first["horizon"] == 6).mean() - 0.5) < half
    shown = first["forced_count"][:, 1]
    assert abs((shown == 2).mean() - 0.5) < half
    assert abs((shown == 1).mean() - 0.25) < half
    assert set(shown) == {1, 2, 3}
    means = np.stack([first["true_mean_0"], first["true_mean_1"]], axis=1)
    assert np.isin(means, (40, 60)).any(axis=1).all()
    gaps, counts = np.unique(means[:, 1] - means[:, 0], return_counts=True)
    assert gaps.tolist() == [-30, -20, -12, -8, -4, 4, 8, 12, 20, 30]
    assert np.all(np.abs(counts / n - 0.1) < 4 * np.sqrt(0.09 / n))
    # Each of the four positions holds machine 1 as often as the others: the order is shuffled.
    arms = np.stack([first[name] for name in ARMS], axis=1)
    assert np.all(np.abs(arms.mean(axis=0) - 0.5) < half)
    assert np.array_equal(arms.sum(axis=1), shown)


def test_points_are_whole_numbers_around_the_means_and_are_not_clipped():
    table = drawn(Horizon(), 200)
    mean = np.stack([table["true_mean_0"], table["true_mean_1"]], axis=2)
    points = table["points"]
    noise = (points - mean).ravel()
    assert np.array_equal(points, np.round(points))
    assert points.min() < 0
    assert not np.signbit(points[points == 0]).any()
    assert abs(noise.mean()) < 4 * 8 / np.sqrt(noise.size)
    # Rounding adds the variance of a uniform number; 4 standard errors of a variance.
    variance = 64 + 1 / 12
    assert abs(noise.var() - variance) < 4 * variance * np.sqrt(2 / noise.size)
    assert abs(np.corrcoef((points - mean).reshape(-1, 2).T)[0, 1]) < 4 / np.sqrt(noise.size / 2)
    forced = np.stack([table[name] for name in POINTS], axis=2)[:, ::6]
    arms = np.stack([table[name] for name in ARMS], axis=2)[:, ::6]
    off = (forced - np.take_along_axis(mean[:, ::6], arms, axis=2)).ravel()
    assert abs(off.mean()) < 4 * 8 / np.sqrt(off.size)


def test_what_is_known_before_a_play_is_what_was_seen_in_this_game():
    environment = Horizon(5)
    observation, _ = environment.reset(seed=2)
    seen = {}
    while observation is not None:
        if observation["play"] == 0:
            seen = {0: [], 1: []}
            for arm, points in zip(ARMS, POINTS, strict=True):
                seen[observation[arm]].append(observation[points])
        for a in (0, 1):
            assert observation[f"mean_{a}"] == pytest.approx(np.mean(seen[a]))
            assert observation[f"count_{a}"] == len(seen[a])
        action = None if observation["play"] == 2 else int(observation["trial"]) % 2
        game = observation["game"]
        observation, reward, *_ = environment.step(action)
        if action is not None:
            seen[action].append(reward)
    assert game == 4


def test_true_means_are_recorded_and_never_shown():
    environment, trials = played()
    assert {"true_mean_0", "true_mean_1"} <= set(trials.frame)
    observation, _ = environment.reset(seed=1)
    assert not {"true_mean_0", "true_mean_1"} & set(observation)


@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_a_prompt_tells_of_its_own_game_alone(history):
    environment = begun(history)
    observation, turns = long_game(environment, [1, None, 0])
    prompt = environment.render(observation, turns)
    assert prompt.text.count("Four plays have been made") == 1
    assert f"Game {observation['game'] + 1} of 6" in prompt.text
    assert f"this one included: {observation['horizon'] - observation['play']}." in prompt.text
    assert "could be read from your reply" in prompt.text
    past, seen = environment.read(prompt.messages)
    assert seen == observation
    assert [(t.action, t.reward) for t in past] == [(t.action, t.reward) for t in turns[-3:]]
    anew = environment.render(observation, turns[-3:])
    assert anew.hash == prompt.hash


def test_games_that_share_a_message_are_read_apart():
    environment = begun("chat")
    one, turns = long_game(environment, [0, 1])
    begun_otherwise = turns[-2]
    other = Turn(begun_otherwise.observation, 1, begun_otherwise.reward, "")
    first, second = (environment.render(one, game) for game in (turns, [other, turns[-1]]))
    # The last message and reply are the same; only the first reply names another machine.
    assert first.messages[-2:] == second.messages[-2:]
    assert environment.read(first.messages)[1] == one
    seen = environment.read(second.messages)[1]
    assert (seen["count_0"], seen["count_1"]) == (one["count_0"] - 1, one["count_1"] + 1)


@pytest.mark.parametrize("reasoning", ["chain_of_thought", "step_back"])
def test_reasons_may_precede_the_marked_answer(reasoning):
    environment = begun(reasoning=reasoning)
    one, two = environment.design.labels["machines"]
    answer = environment.parse(f"{one} is known.\nAnswer: {two}", {"trial": 0})
    assert (answer.outcome, answer.action) == ("ok", 1)
    assert environment.parse(two, {"trial": 0}).outcome == "malformed"
    assert environment.parse(f"Answer: {one} or {two}", {"trial": 0}).outcome == "malformed"


def test_letters_tell_nothing():
    environment = Horizon(1)
    labels = [environment.draw(session_stream(0, i)).labels for i in range(2000)]
    assert json.loads(json.dumps(labels[0])) == labels[0]
    pairs = [tuple(label["machines"]) for label in labels]
    assert all(a != b for a, b in pairs)
    counts = np.unique([a for a, _ in pairs], return_counts=True)[1]
    assert len(counts) == 20
    chi_square = ((counts - 100) ** 2 / 100).sum()
    assert chi_square < 19 + 5 * np.sqrt(2 * 19)


def test_a_stranger_reads_a_prompt_by_the_letters_it_tells():
    environment = begun("chat")
    observation, turns = long_game(environment, [1, 0])
    messages = environment.render(observation, turns).messages
    labels = environment.names_told(messages)
    assert labels["machines"] == sorted(environment.design.labels["machines"])
    with pytest.raises(ValueError, match="not one of horizon"):
        environment.names_told([])


@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_wording_of_ones_own_is_read_back_too(tmp_path, history):
    file = tmp_path / "mine.toml"
    pairs = " ".join(f"{{forced_{k}}}={{points_{k}}}," for k in ("one", "two", "three", "four"))
    file.write_text(
        f'introduction = "Win! {{horizon}} plays. {pairs}"\n'
        'history_begins = "Before:"\n'
        'history_line = "{game}.{play}: {label} -> {reward}"\n'
        'missing_line = "{game}.{play}: -"\n'
        'question = "[{game}.{play}] {first}|{second}?"\n'
        'answer_none = "?"\nanswer_chain_of_thought = "??"\nanswer_step_back = "???"\n'
        'feedback = "{reward}!"\nmissing_feedback = "-"\nsilence = "..."\n'
    )
    check_environment(Horizon(6, history=history, templates=str(file)))
    file.write_text(file.read_text().replace("{horizon}", "some"))
    with pytest.raises(ValueError, match=r"must use \{horizon\}"):
        Horizon(6, history=history, templates=str(file))


def test_other_designs_keep_the_contract():
    check_environment(Horizon(9, long_horizon=3, long_share=0.9, unequal_share=1.0))
    check_environment(Horizon(9, base_means=[0.0], differences=[1.0], sd=1.0))
    assert (drawn(Horizon(50, long_share=0.0), 2)["present"].sum(axis=1) == 50).all()
    assert (drawn(Horizon(50, unequal_share=1.0), 2)["forced_count"] != 2).all()


def test_a_session_that_was_played_passes_its_check_with_holes_too():
    environment, trials = played()
    environment.check(trials)
    frame = trials.to_frame()
    last = frame["play"] == frame["horizon"] - 1  # of which nothing follows
    frame.loc[last, ["action", "reward"]] = None
    frame.loc[last, "outcome"] = "refused"
    Trials.from_frame(frame, environment=environment)
    Trials.from_frame(trials.frame[trials.frame["play"] == 0], environment=environment)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("horizon", 3, "1 or 6 free plays; row 1 .* has horizon 3"),
        ("play", 9, "numbered from 0 to horizon - 1; row 1 .* has play 9"),
        ("count_0", 0, "at least once before, which count_0 counts; row 1"),
        ("count_0", 4, "begins with 4 forced plays; row 1"),
        ("mean_0", np.nan, "Means are numbers; row 1"),
        ("action", 2, "Actions of horizon are 0, 1; row 1 .* has 2"),
        ("reward", np.nan, "row 1 .* has an action but no reward"),
    ],
)
def test_a_trial_that_no_game_has_is_named(column, value, sentence):
    environment, trials = played()
    frame = trials.to_frame()
    frame.loc[0, column] = value
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(frame, environment=environment)


def test_means_that_do_not_follow_from_the_plays_before_are_named():
    environment, trials = played(long_share=1.0)
    frame = trials.to_frame()
    frame.loc[3, "mean_1"] += 1.0
    with pytest.raises(ValueError, match="do not follow from the trial before") as told:
        environment.check(Trials.from_frame(frame))
    assert "row 4" in str(told.value)
    for column in ("game", "mean_0", "reward"):
        with pytest.raises(ValueError, match=f"have a column '{column}'"):
            Trials.from_frame(trials.to_frame().drop(columns=column), environment=environment)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_games": 0}, "n_games is a whole number from 1 on; got 0"),
        ({"n_games": True}, "n_games is a whole number from 1 on; got True"),
        ({"long_horizon": 1}, "long_horizon is a whole number from 2 on; got 1"),
        ({"long_share": 1.5}, "long_share is a number from 0 to 1; got 1.5"),
        ({"unequal_share": "half"}, "unequal_share is a number from 0 to 1"),
        ({"differences": [0.0]}, "differences are numbers above 0; got"),
        ({"base_means": []}, "base_means are numbers; got"),
        ({"base_means": ["a"]}, "base_means are numbers; got"),
        ({"sd": -1.0}, "sd is a number above 0; got"),
        ({"history": "letter"}, "history is one of prompt, chat; got 'letter'"),
    ],
)
def test_bad_settings_are_told(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Horizon(**settings)
