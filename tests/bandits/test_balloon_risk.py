import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import BalloonPumper, RandomResponder, simulate
from knownminds.environments import (
    BalloonRisk,
    Message,
    Outcome,
    Trials,
    Turn,
    check_environment,
    session_stream,
)

STOP, INFLATE = 0, 1


def tables(environment, n, seed=0):
    rng = np.random.default_rng(seed)
    return environment.tables(rng.random((n, environment.n_draws)))


def lived(environment, actions, seed=1):
    observation, _ = environment.reset(seed=seed)
    turns = []
    for action in actions:
        text = "?" if action is None else environment.say(action, observation)
        following, reward, *_ = environment.step(action)
        turns.append(Turn(observation, action, reward, text))
        observation = following
    return observation, turns


def frame(rows):
    columns = ("balloon", "type", "pump", "action", "reward")
    table = pd.DataFrame(rows, columns=columns)
    table["outcome"] = np.where(table["action"].isna(), "malformed", "ok")
    table["action"] = table["action"].astype("Int64")
    return table.assign(subject="a", trial=np.arange(len(table)))


GOOD = [(0, 2, 1, 1, 1.0), (0, 2, 2, 0, 0.0), (1, 0, 1, 1, 1.0), (1, 0, 2, 1, -1.0)]


def checked(rows, **settings):
    return Trials.from_frame(frame(rows), environment=BalloonRisk(**settings))


def test_a_session_has_ten_balloons_of_each_type_with_as_many_trials_as_they_take_pumps():
    environment = BalloonRisk()
    assert (environment.n_all, environment.n_trials) == (30, 10 * (128 + 32 + 8))
    table = tables(environment, 5)
    for i in range(5):
        first = table["pump"][i] == 1
        assert np.bincount(table["type"][i][first]).tolist() == [10] * 3
        assert table["balloon"][i][first].tolist() == list(range(30))
        length = np.bincount(table["balloon"][i])
        assert np.array_equal(length, np.array([128, 32, 8])[table["type"][i][first]])
    assert not np.array_equal(table["type"][0], table["type"][1])


def test_a_balloon_bursts_at_a_pump_that_is_drawn_evenly():
    environment = BalloonRisk(n_balloons=40, maxima=(8, 3))
    table = tables(environment, 500)
    for kind, most in enumerate((8, 3)):
        fatal = table["pump"][table["bursts"] & (table["type"] == kind)]
        n = 40 * 500
        count = np.bincount(fatal, minlength=most + 1)[1:]
        assert count.sum() == n
        # Multinomial: 4.5 standard errors in each of 11 cells fail once in 13,000 seeds.
        assert np.all(np.abs(count / n - 1 / most) < 4.5 * np.sqrt((1 - 1 / most) / most / n))
        # The hazard of the spec: pump k bursts with the probability 1 / (M - k + 1).
        left = n - np.concatenate([[0], np.cumsum(count)[:-1]])
        hazard = 1 / (most - np.arange(most))
        error = np.sqrt(hazard * (1 - hazard) / left)
        assert np.all(np.abs(count / left - hazard) <= 4.5 * error)


def test_option_numbers_are_fair_coins_thrown_for_each_query():
    table = tables(BalloonRisk(n_balloons=3), 200)
    first = table["first"].astype(float)
    n = first.size
    assert abs(first.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(n)
    # Neighbours, and trials whose coins come from the same bit of the next number.
    for lag in (1, 2, 8, 31, 32, 64):
        r = np.corrcoef(first[:, :-lag].ravel(), first[:, lag:].ravel())[0, 1]
        assert abs(r) < 4.5 / np.sqrt(n)


def test_letters_are_shuffled_over_sessions():
    environment = BalloonRisk()
    told = {tuple(environment.draw(session_stream(i)).labels["types"]) for i in range(60)}
    assert told == {
        ("A", "B", "C"), ("A", "C", "B"), ("B", "A", "C"),
        ("B", "C", "A"), ("C", "A", "B"), ("C", "B", "A"),
    }  # fmt: skip


def test_the_released_design_has_fifteen_and_draws_types_evenly_while_any_are_left():
    assert BalloonRisk(released=True).n_balloons == 15
    assert BalloonRisk(7, released=True).n_balloons == 7
    environments = [BalloonRisk(2, (1, 1), released=released) for released in (False, True)]
    share = []
    for environment in environments:
        kind = tables(environment, 20_000)["type"]
        assert np.all(kind.sum(axis=1) == 2)
        share.append(np.mean(kind[:, 0] == kind[:, 1]))
    # Two of two types: a shuffle puts equal ones first in 1/3, even draws in 1/2 of sessions.
    for value, expected in zip(share, (1 / 3, 1 / 2), strict=True):
        assert abs(value - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)


def test_points_are_the_pumps_made_or_nothing():
    environment = BalloonRisk(20, (6, 3))
    trials = simulate(RandomResponder, np.zeros((50, 0)), environment, 4)
    rows = trials.frame
    by = ["subject", "balloon"]
    points = rows.groupby(by)["reward"].sum()
    pumps = rows.groupby(by)["action"].sum()
    last = rows.groupby(by)["action"].last()
    assert set(points[last == STOP] - pumps[last == STOP]) == {0}
    assert set(points[last == INFLATE]) == {0.0}
    done = environment.performance(trials)
    assert np.isfinite(done).sum() == len(points) == 50 * 40
    assert np.nansum(done) == points.sum()


def test_mean_points_of_a_fixed_plan_are_those_of_the_formula():
    most, plan, n = 8, 4, 4000
    environment = BalloonRisk(n, (most,))
    design = environment.draw(session_stream(3))
    actions = np.where(design.table["pump"] <= plan, INFLATE, STOP)
    brought = environment.follow(design, actions)
    points = brought["reward"][brought["present"]].sum() / n
    # The plan works out with probability (M - k) / M.
    p = (most - plan) / most
    assert abs(points - plan * p) < 4 * plan * np.sqrt(p * (1 - p) / n)


def test_a_prompt_has_one_line_for_each_balloon_that_is_over():
    environment = BalloonRisk(maxima=(128, 32, 90))
    observation, turns = lived(environment, [INFLATE, INFLATE, STOP, STOP, INFLATE, None, INFLATE])
    lines = environment.render(observation, turns).messages[0].content.split("\n")
    told = [line for line in lines if line.startswith("Balloon ") and "is of type" not in line]
    letters = environment.design.labels["types"]
    kinds = [letters[t.observation["type"]] for t in (turns[0], turns[3], turns[4], turns[6])]
    assert told == [
        f"Balloon 1 (type {kinds[0]}): inflated 2 times, then you stopped; points from it: 2.",
        f"Balloon 2 (type {kinds[1]}): inflated 0 times, then you stopped; points from it: 0.",
        f"Balloon 3 (type {kinds[2]}): inflated 1 times, then no option could be read from your "
        "reply; it was taken away and does not count.",
    ]
    asked = f"Balloon 4 is of type {kinds[3]}. Pumps so far: 1; points at stake: 1. Option 1 is to"
    assert any(line.startswith(asked) for line in lines)


def test_a_burst_is_told():
    environment = BalloonRisk(maxima=(1, 1))
    observation, turns = lived(environment, [INFLATE])
    assert turns[0].reward == 0.0
    assert "inflated 1 times, then it burst; points from it: 0." in (
        environment.render(observation, turns).text
    )


@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_whole_sessions_can_be_read_back(history):
    environment = BalloonRisk(4, (9, 5, 2), history=history)
    rng = np.random.default_rng(0)
    for seed in range(15):
        observation, _ = environment.reset(seed=seed)
        turns = []
        while observation is not None:
            past, seen = environment.read(environment.render(observation, turns).messages)
            assert seen == observation
            assert [(t.action, t.reward) for t in past] == [(t.action, t.reward) for t in turns]
            for a, b in zip(past, turns, strict=True):
                assert dict(a.observation).items() <= dict(b.observation).items()
            action = [STOP, INFLATE, INFLATE, None][rng.integers(4)]
            text = "?" if action is None else environment.say(action, observation)
            following, reward, *_ = environment.step(action)
            turns.append(Turn(observation, action, reward, text))
            observation = following


def test_answers_are_option_numbers_and_nothing_else():
    environment = BalloonRisk()
    seen = {"trial": 0, "balloon": 0, "type": 0, "pump": 1, "first": INFLATE}
    assert environment.parse("1", seen).action == INFLATE
    assert environment.parse("2", seen).action == STOP
    assert environment.parse("2", {**seen, "first": STOP}).action == INFLATE
    assert environment.parse("Option 2.", seen).outcome is Outcome.REPAIRED
    for text in ("inflate", "3", "0", "1 or 2", "12", "Option"):
        answer = environment.parse(text, seen)
        assert (answer.outcome, answer.action) == (Outcome.MALFORMED, None)


def test_after_an_unreadable_answer_the_balloon_is_gone_and_counts_for_nothing():
    environment = BalloonRisk(maxima=(60, 70))
    _, turns = lived(environment, [INFLATE, None, STOP])
    assert [t.observation["balloon"] for t in turns] == [0, 0, 1]
    rows = [
        {**t.observation, "action": t.action, "reward": t.reward, "subject": "a",
         "outcome": "malformed" if t.action is None else "ok"}
        for t in turns
    ]  # fmt: skip
    trials = Trials.from_frame(pd.DataFrame(rows), environment=environment)
    assert np.array_equal(environment.performance(trials), [np.nan, np.nan, 0.0], equal_nan=True)


def test_a_session_that_is_not_known_is_read_with_types_in_order_of_their_letters():
    environment = BalloonRisk(3, (5, 4), history="chat")
    observation, turns = lived(environment, [STOP, STOP, STOP])
    messages = environment.render(observation, turns).messages
    other = BalloonRisk(3, (5, 4), history="chat")
    design = other.draw(session_stream(9))
    object.__setattr__(design, "labels", other.names_told(messages))
    other.reset(options={"design": design})
    past, seen = other.read(messages)
    letters = environment.design.labels["types"]
    told = [*past, Turn(seen, None, None)]
    for a, b in zip(told, [*turns, Turn(observation, None, None)], strict=True):
        assert "AB"[int(a.observation["type"])] == letters[int(b.observation["type"])]
        assert a.action == b.action


def test_odd_designs_keep_the_contract():
    for settings in (
        {"n_balloons": 12, "maxima": (1,)},
        {"n_balloons": 2, "maxima": (1, 1, 2)},
        {"n_balloons": 1, "maxima": (200, 3), "history": "chat"},
        {"n_balloons": 1, "maxima": tuple(range(1, 27))},
    ):
        for seed in range(3):
            check_environment(BalloonRisk(**settings), seed)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"n_balloons": 0}, "n_balloons is a whole number from 1 on; got 0"),
        ({"n_balloons": 2.5}, r"whole number from 1 on; got 2\.5"),
        ({"n_balloons": True}, "got True"),
        ({"maxima": ()}, "of 1 to 26 types; got"),
        ({"maxima": 8}, "of 1 to 26 types; got 8"),
        ({"maxima": (8, 0)}, "Each of maxima is a whole number from 1 on; got 0"),
        ({"released": "yes"}, "released is True or False; got 'yes'"),
        ({"history": "letter"}, "history is one of prompt, chat; got 'letter'"),
        ({"reasoning": "much"}, "reasoning is one of none"),
    ],
)
def test_settings_out_of_range_are_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        BalloonRisk(**settings)


def test_settings_are_json_and_rebuild_it():
    environment = BalloonRisk(3, np.array([4, 2]), released=True)
    again = BalloonRisk(**json.loads(json.dumps(environment.settings)))
    assert again.settings == environment.settings


def test_good_trials_pass_and_an_interrupted_balloon_too():
    checked(GOOD)
    checked(GOOD[:3])
    checked([*GOOD, (2, 1, 1, None, None), (3, 1, 1, 0, 0.0)])


@pytest.mark.parametrize(
    ("row", "change", "rule"),
    [
        (0, {"action": 2}, r"Actions of balloon_risk are 0, 1; .*trial 0.* has 2"),
        (1, {"reward": 1.0}, r"0 for a stop; .*trial 1.* has 1"),
        (0, {"reward": 2.0}, r"1 if the pump holds, or 0 if not; .*trial 0.* has 2"),
        (3, {"reward": -2.0}, r"or -1 if not; .*trial 3.* has -2"),
        (2, {"type": 3}, r"Types are numbered from 0 to 2; .*trial 2.* has 3"),
        (2, {"pump": 0}, r"pump of a trial is a whole number from 1 on; .*trial 2.* has 0"),
        (1, {"balloon": 0.5}, r"balloon of a trial is a whole number from 0 on; .*trial 1"),
        (1, {"pump": 3}, r"trial 1.* pump 3 of balloon 0, where pump 2 was due"),
        (1, {"balloon": 5}, r"the next one of the same balloon is due.*trial 1"),
        (2, {"balloon": 0, "type": 2}, r"another balloon; .*trial 2.* pump 1 of balloon 0"),
        (3, {"pump": 1, "reward": 0.0}, r"trial 3.* where pump 2 was due"),
    ],
)
def test_trials_of_another_design_are_refused_by_name(row, change, rule):
    rows = [
        dict(zip(("balloon", "type", "pump", "action", "reward"), r, strict=True)) for r in GOOD
    ]
    rows[row] |= change
    with pytest.raises(ValueError, match=rule):
        checked([tuple(r.values()) for r in rows])


def test_the_last_pump_never_holds():
    with pytest.raises(ValueError, match="which the last one never does"):
        checked([(0, 0, 1, 1, 1.0), (0, 0, 2, 1, 1.0)], maxima=(2,))
    with pytest.raises(ValueError, match=r"takes at most 2 pumps; .* is about pump 3"):
        checked([(0, 0, 1, 1, 1.0), (0, 0, 2, 1, -1.0), (1, 0, 3, 1, -2.0)], maxima=(2,))


@pytest.mark.parametrize("column", ["balloon", "type", "pump", "reward"])
def test_missing_columns_are_named(column):
    table = frame(GOOD).drop(columns=column)
    with pytest.raises(ValueError, match=f"have a column '{column}'.*--columns {column}=YOUR_NAME"):
        Trials.from_frame(table, environment=BalloonRisk())


def test_what_belongs_to_no_session_is_not_read():
    environment = BalloonRisk()
    observation, turns = lived(environment, [STOP, STOP])
    text = environment.render(observation, turns).messages[0].content
    for old, new, rule in (
        ("Balloon 2 (", "Balloon 7 (", "follow each other"),
        ("(type ", "(type X", "The prompt names"),
        ("inflated 0 times", "inflated many times", "whole numbers; got 'many'"),
        ("inflated 0 times, then you stopped", "inflated 3 times, then it held", "is over was"),
        ("Balloon 3 is", "Ballon 3 is", "not one of balloon_risk"),
    ):
        with pytest.raises(ValueError, match=rule):
            environment.read([Message("user", text.replace(old, new, 1))])


def test_own_words_must_tell_stop_from_inflate(tmp_path):
    shipped = files("knownminds.environments.bandits").joinpath("balloon_risk.toml").read_text()
    own = tmp_path / "own.toml"
    own.write_text(shipped.replace('stop = """\nstop', 'stop = """\ninflate it'))
    with pytest.raises(ValueError, match="differ"):
        BalloonRisk(templates=str(own))
    own.write_text(shipped.replace("it burst", "bang"))
    check_environment(BalloonRisk(2, templates=str(own)))
    own.write_text(shipped.replace("{pumps}", "some"))
    with pytest.raises(ValueError, match=r"must use \{pumps\}"):
        BalloonRisk(templates=str(own))


def test_most_of_a_session_is_not_simulated_pump_by_pump():
    """What lies behind the pump that bursts a balloon costs a kernel nothing."""
    table = tables(BalloonRisk(), 200)
    # Half of the pumps, (M + 1) / 2 of M on average.
    assert table["present"].mean() == pytest.approx(171 / 2 / 168, abs=0.02)
    assert BalloonRisk().n_draws < 120
    trials = simulate(
        BalloonPumper, BalloonPumper.parameters.draw(np.random.default_rng(0), 3), BalloonRisk(), 0
    )
    assert trials.frame["trial"].max() < 1680
