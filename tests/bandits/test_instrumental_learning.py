import json
import timeit
from importlib.resources import files

import numpy as np
import pytest

from knownminds.environments import InstrumentalLearning, Turn, check_environment, session_stream


def designs(environment, n, seed=0):
    return [environment.draw(session_stream(seed, i)) for i in range(n)]


def begun(history="prompt", reasoning="none", n_visits=2, templates=None):
    environment = InstrumentalLearning(
        n_visits, history=history, reasoning=reasoning, templates=templates
    )
    environment.reset(seed=3)
    return environment


def lived(environment, actions):
    observation, _ = environment.reset(seed=3)
    turns = []
    for action in actions:
        text = "" if action is None else environment.say(action, observation)
        following, reward, *_ = environment.step(action)
        turns.append(Turn(observation, action, reward, text))
        observation = following
    return observation, turns


def test_a_session_has_its_visits_in_mixed_order():
    environment = InstrumentalLearning()
    assert environment.n_trials == 96
    orders = [design.table["context"] for design in designs(environment, 2)]
    for order in orders:
        assert np.bincount(order).tolist() == [24] * 4
    assert not np.array_equal(*orders)


def test_machines_pay_at_their_rates_independently_of_each_other():
    rates = ((0.0, 1.0), (0.2, 0.7), (0.5, 0.5))
    environment = InstrumentalLearning(200, rates)
    tables = [design.table for design in designs(environment, 50)]
    context = np.concatenate([table["context"] for table in tables])
    payoffs = np.concatenate([table["payoffs"] for table in tables])
    first = np.concatenate([table["first"] for table in tables])
    n = 200 * 50
    for c, pair in enumerate(rates):
        for a, rate in enumerate(pair):
            share = payoffs[context == c, a].mean()
            assert abs(share - rate) <= 4 * np.sqrt(rate * (1 - rate) / n)
        if min(pair) > 0:
            assert abs(np.corrcoef(payoffs[context == c].T)[0, 1]) < 4 / np.sqrt(n)
    assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(3 * n)
    assert abs(np.corrcoef(first, payoffs[:, 0])[0, 1]) < 4 / np.sqrt(3 * n)


def test_names_are_drawn_by_lot_and_tell_nothing():
    environment = InstrumentalLearning(1)
    drawn = [design.labels for design in designs(environment, 4000)]
    for labels in drawn[:20]:
        letters = [letter for pair in labels["machines"] for letter in pair]
        assert len(set(letters)) == 8
        assert sorted(labels["casinos"]) == [1, 2, 3, 4]
        assert json.loads(json.dumps(labels)) == labels
    letter = [labels["machines"][0][0] for labels in drawn]
    casino = [labels["casinos"][2] for labels in drawn]
    for shown, kinds in ((letter, 20), (casino, 4)):
        counts = np.unique(shown, return_counts=True)[1]
        assert len(counts) == kinds
        expected = len(drawn) / kinds
        chi_square = ((counts - expected) ** 2 / expected).sum()
        assert chi_square < kinds - 1 + 5 * np.sqrt(2 * (kinds - 1))


@pytest.mark.parametrize("n_contexts", [1, 10, 11, 25])
def test_letters_suffice_for_any_number_of_casinos(n_contexts):
    environment = InstrumentalLearning(1, [(0.5, 0.5)] * n_contexts)
    for design in designs(environment, 20):
        pairs = design.labels["machines"]
        assert len(pairs) == n_contexts
        assert all(one != two for one, two in pairs)
        used = {letter for pair in pairs for letter in pair}
        assert len(used) == 2 * n_contexts or n_contexts > 10
    check_environment(environment)


def test_what_is_mentioned_first_is_the_action_that_the_design_says():
    for history in ("prompt", "chat"):
        environment = begun(history)
        for first in (0, 1):
            letters = environment.design.labels["machines"][1]
            prompt = environment.render({"trial": 0, "context": 1, "first": first}, [])
            text = prompt.messages[-1].content
            assert f"machine {letters[first]} and machine {letters[1 - first]}" in text


def test_a_missing_answer_is_told_and_read_back():
    for history in ("prompt", "chat"):
        environment = begun(history)
        observation, turns = lived(environment, [1, None, 0])
        prompt = environment.render(observation, turns)
        assert "could be read from your reply" in prompt.text
        past, seen = environment.read(prompt.messages)
        assert seen == observation
        assert [(t.action, t.reward) for t in past] == [(t.action, t.reward) for t in turns]


def test_a_chat_only_grows():
    environment = begun("chat", "chain_of_thought")
    observation, turns = lived(environment, [1, None, 0, 1])
    longest = environment.render(observation, turns).messages
    for t, turn in enumerate(turns):
        assert longest[: 2 * t + 1] == environment.render(turn.observation, turns[:t]).messages
    assert [m.role for m in longest] == ["user", "assistant"] * 4 + ["user"]
    assert longest[3].content == "(no reply)"


@pytest.mark.parametrize("reasoning", ["chain_of_thought", "step_back"])
def test_reasons_may_precede_the_marked_answer(reasoning):
    environment = begun(reasoning=reasoning)
    observation = {"trial": 0, "context": 2, "first": 1}
    one, two = environment.design.labels["machines"][2]
    answer = environment.parse(f"{one} paid before.\nAnswer: {two}", observation)
    assert (answer.outcome, answer.action) == ("ok", 1)
    assert environment.parse(two, observation).outcome == "malformed"
    other = environment.design.labels["machines"][0][0]
    assert environment.parse(f"Answer: {other}", observation).outcome == "malformed"


@pytest.mark.parametrize("history", ["prompt", "chat"])
@pytest.mark.parametrize("reasoning", ["none", "step_back"])
def test_wording_of_ones_own_is_read_back_too(tmp_path, history, reasoning):
    file = tmp_path / "mine.toml"
    file.write_text(
        'introduction = "Win!"\n'
        'history_begins = "Before:"\n'
        'history_line = "{casino} {label} -> {reward}"\n'
        'missing_line = "{casino} -> nothing read"\n'
        'question = "[{casino}] {first}|{second}|{first}?"\n'
        'answer_none = "?"\nanswer_chain_of_thought = "??"\n'
        "answer_step_back = '??? \"Answer: \"'\n"
        'feedback = "{reward}!"\nmissing_feedback = "-"\nsilence = "..."\n'
    )
    environment = InstrumentalLearning(3, history=history, reasoning=reasoning, templates=str(file))
    check_environment(environment)


def test_a_prompt_that_is_not_of_this_session_is_told():
    environment = begun()
    observation, turns = lived(environment, [1, 0, 1])
    prompt = environment.render(observation, turns)
    environment.reset(seed=4)
    with pytest.raises(ValueError, match=r"Use the (seed|settings)"):
        environment.read(prompt.messages)
    with pytest.raises(ValueError, match="settings and templates it was rendered with"):
        begun(n_visits=3).read(prompt.messages)
    with pytest.raises(ValueError, match="has one message; got 2"):
        begun().read(prompt.messages * 2)
    with pytest.raises(ValueError, match="an odd number of messages; got 2"):
        begun("chat").read(prompt.messages * 2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_visits": 0}, "whole number from 1 on; got 0"),
        ({"n_visits": 2.5}, "whole number from 1 on; got 2.5"),
        ({"n_visits": "many"}, "whole number from 1 on; got 'many'"),
        ({"n_visits": True}, "whole number from 1 on; got True"),
        ({"win_probability": [(0.5, 1.5)]}, "from 0 to 1, for each casino; got"),
        ({"win_probability": [(0.5, float("nan"))]}, "from 0 to 1, for each casino; got"),
        ({"win_probability": [(0.5,)]}, "two probabilities"),
        ({"win_probability": [(0.5, 0.5), (0.1,)]}, "two probabilities"),
        ({"win_probability": []}, "two probabilities"),
        ({"win_probability": "high"}, "two probabilities"),
        ({"history": "diary"}, "history is one of prompt, chat; got 'diary'"),
        ({"reasoning": "some"}, "reasoning is one of none, chain_of_thought, step_back; got"),
        ({"templates": "nowhere.toml"}, r"nowhere\.toml is not"),
    ],
)
def test_settings_that_make_no_sense_are_told(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        InstrumentalLearning(**settings)


def test_a_history_line_of_several_lines_is_told(tmp_path):
    shipped = files("knownminds.environments.bandits").joinpath("instrumental_learning.toml")
    text = shipped.read_text(encoding="utf-8").replace("machine {label} gave", "{label}\ngave")
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match="'history_line' is one line"):
        InstrumentalLearning(templates=str(tmp_path / "mine.toml"))


def test_drawing_a_session_takes_little_time():
    environment, rng = InstrumentalLearning(), session_stream(0)
    seconds = min(timeit.repeat(lambda: environment.draw(rng), number=200, repeat=5)) / 200
    assert seconds < 200e-6  # 15 microseconds on an idle core


def test_lines_that_are_remembered_are_those_of_the_session_and_of_the_play():
    environment = InstrumentalLearning(2)
    for session in range(3):
        design = environment.draw(session_stream(0, session))
        # Two pasts of one session, so that what is remembered of the one is wrong of the other.
        for actions in ([0, 1, None, 1], [1, 1, 0, None]):
            shown, _ = environment.reset(options={"design": design})
            turns, fresh = [], InstrumentalLearning(2)
            for action in actions:
                following, reward, *_ = environment.step(action)
                turns.append(Turn(shown, action, reward))
                shown = following
                fresh.reset(options={"design": design})  # which forgets all lines
                prompt = fresh.render(shown, turns)
                assert environment.render(shown, turns) == prompt
                paid = [Turn(t.observation, t.action, 0.5) for t in turns if t.action is not None]
                fresh.reset(options={"design": design})
                assert environment.render(shown, paid) == fresh.render(shown, paid) != prompt
