import asyncio
from importlib.resources import files
from itertools import product

import numpy as np
import pytest

from knownminds.agents import AGENTS, Contaminants, play, simulate
from knownminds.environments import Coins, Message, Trials, check_environment, session_stream
from knownminds.environments.chance.coins import FACES, KINDS, SIZES
from knownminds.environments.chance.outcome_grid import FORMS
from knownminds.environments.formats.gymnasium_wrapper import GymnasiumEnvironment
from knownminds.llm_adapters import (
    Capabilities,
    Rejected,
    Reply,
    Sampling,
    Synthetic,
    run_session,
    run_sessions,
)

TEXTS = ("question", "continuation")  # the forms that ask for an outcome
NO_QUESTION = {"asked": -1, "correct": -1, "arrangement": -1}
SINGLE = {"trial": 0, "coins": 2, "face": 0, "weight": 3, "kind": 0, "previous": -1, **NO_QUESTION}
DEPENDENT = {**SINGLE, "kind": 2, "previous": 2}


def contexts(environment, seed=0):
    """All observations of a session."""
    environment.reset(seed=seed)
    table = environment.design.table
    return [
        {"trial": t, **{name: int(column[t]) for name, column in table.items()}}
        for t in range(environment.n_trials)
    ]


def key(seen):
    """The context of an observation."""
    return tuple(seen[name] for name in Coins.own)


def responder(environment):
    return AGENTS["random_responder"](actions=environment.n_actions)


# ---------------------------------------------------------------- the grid


def test_the_grid_has_the_contexts_of_the_scenario():
    sizes = {n: Coins(n).n_trials for n in SIZES}
    assert sizes == {2: 42, 3: 54}
    assert sum(sizes.values()) == 96
    for n in SIZES:
        seen = {key(c) for c in contexts(Coins(n))}
        whole = set()
        for face, weight in product((0, 1), (1, 3, 5)):
            whole.add((n, face, weight, 0, -1))
            for kind, previous in product((1, 2), range(n + 1)):
                whole.add((n, face, weight, kind, previous))
        assert seen == whole


def test_every_session_has_every_context_once_in_an_order_of_its_own():
    environment = Coins()
    sessions = [contexts(environment, seed) for seed in range(2)]
    keys = [[key(c) for c in session] for session in sessions]
    assert sorted(keys[0]) == sorted(keys[1])
    assert len(set(keys[0])) == 42
    assert keys[0] != keys[1]
    # Where a context stands is uniform: its mean over n sessions has a known error.
    n = 400
    table = environment.tables(np.random.default_rng(0).random((n, environment.n_draws)))
    first = (table["kind"] == 0) & (table["face"] == 0) & (table["weight"] == 1)
    place = first.argmax(axis=1)
    assert abs(place.mean() - 20.5) < 4 * np.sqrt((42**2 - 1) / 12 / n)


def test_a_part_of_the_grid_can_be_asked():
    part = Coins(3, faces=("tails",), weights=(5, 1), kinds=["dependent", "single"])
    assert part.n_trials == 2 * (1 + 4)
    assert part.settings["weights"] == [1, 5]
    assert part.settings["kinds"] == ["single", "dependent"]
    assert {c["face"] for c in contexts(part)} == {1}
    one = Coins(faces="heads", weights=7, kinds="single")
    assert one.n_trials == 1
    assert one.truth({**SINGLE, "weight": 7}).tolist() == [1 / 64, 14 / 64, 49 / 64]
    check_environment(Coins(faces="heads", weights=(1, 2), kinds="independent"))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"n_coins": 4}, "n_coins is one of 2, 3; got 4"),
        ({"n_coins": True}, "n_coins is one of"),
        ({"n_coins": "2"}, "n_coins is one of"),
        ({"form": "chat"}, "form is one of question, continuation, stated; got 'chat'"),
        ({"faces": ()}, "faces are one or more of heads, tails"),
        ({"faces": "edge"}, "got 'edge'"),
        ({"faces": 3}, "got 3"),
        ({"kinds": ("single", "single")}, "each once"),
        ({"weights": (1, 0)}, "whole numbers from 1 on"),
        ({"weights": 2.5}, "got 2.5"),
        ({"weights": "13"}, "got '13'"),
        ({"weights": (True,)}, "whole numbers"),
        ({"weights": []}, "one or more"),
        ({"weights": 9999}, "weights go up to 9998; got 9999"),
        ({"distractors": "odd"}, "distractors are one of published, plausible; got 'odd'"),
    ],
)
def test_settings_outside_the_scenario_are_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        Coins(**settings)


# ---------------------------------------------------------------- the truth


@pytest.mark.parametrize("n", SIZES)
def test_the_truth_is_what_counting_all_cases_gives(n):
    environment = Coins(n)
    for seen in contexts(environment):
        coin = [seen["face"]] * seen["weight"] + [1 - seen["face"]]
        counted = {}
        for throw in product(coin, repeat=n):
            number = sum(side == seen["face"] for side in throw)
            said = str(number + (seen["previous"] if seen["kind"] == 2 else 0))
            counted[said] = counted.get(said, 0) + 1
        told = [environment.say(action, seen) for action in range(environment.n_actions)]
        truth = dict(zip(told, environment.truth(seen).tolist(), strict=True))
        assert truth == {said: count / len(coin) ** n for said, count in counted.items()}


def test_the_truth_cannot_be_changed_by_who_asks_for_it():
    environment = Coins()
    environment.truth(SINGLE)[:] = 0.0
    assert environment.truth(SINGLE).sum() == 1.0


@pytest.mark.parametrize("change", [{"coins": 3}, {"weight": 2}, {"previous": 1}, {"kind": 1}])
def test_a_context_outside_the_grid_is_refused(change):
    environment = Coins()
    for ask in (environment.truth, lambda seen: environment.render(seen, [])):
        with pytest.raises(ValueError, match="is no context of Coins"):
            ask({**SINGLE, **change})


# ---------------------------------------------------------------- the words


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("form", TEXTS)
def test_a_prompt_tells_its_context_and_nothing_else(n, form):
    environment = Coins(n, form=form)
    for seen in contexts(environment):
        text = environment.render(seen, []).messages[0].content
        face, other = FACES[seen["face"]], FACES[1 - seen["face"]]
        assert f"{n} coins" in text
        if seen["weight"] == 1:
            assert f"{face} and {other} equally often" in text
        else:
            assert f"{face} {seen['weight']} times as often as {other}" in text
        assert text.count(other) == 1
        assert ("once more" in text) == (seen["kind"] > 0)
        assert ("no influence" in text) == (seen["kind"] == 1)
        assert ("both rounds together" in text) == (seen["kind"] == 2)
        if seen["kind"]:
            assert f"The number of {face} among them is {seen['previous']}." in text
        # No number is told but these.
        numbers = [int(word.strip(".")) for word in text.split() if word.strip(".").isdigit()]
        told = [n, n]
        told += [seen["weight"]] * (seen["weight"] > 1) + [seen["previous"]] * (seen["kind"] > 0)
        assert sorted(numbers) == sorted(told)


def test_a_continuation_breaks_off_right_before_the_number():
    question, continuation = Coins(form="question"), Coins(form="continuation")
    for seen in contexts(continuation):
        text = continuation.render(seen, []).messages[0].content
        assert text.endswith((" is", " is now"))
        asked = question.render(seen, []).messages[0].content
        assert asked.startswith(text)
        assert "Reply with a single digit and nothing else." in asked
    # A message that the participant has begun is one to go on with.
    roles = [c.render(SINGLE, []).messages[0].role for c in (question, continuation)]
    assert roles == ["user", "assistant"]


@pytest.mark.parametrize("form", FORMS)
def test_reading_takes_every_prompt_back_to_its_context(form):
    environment = Coins(3, form=form)
    for seen in contexts(environment, seed=5):
        assert environment.read(environment.render(seen, []).messages) == ([], seen)


def test_a_prompt_of_other_settings_is_refused():
    environment, other = Coins(), Coins(3)
    environment.reset(seed=0)
    told = other.render(contexts(other)[0], []).messages
    for messages in (told, [], [*told, *told], [Message("user", "Hello?")]):
        with pytest.raises(ValueError, match="Use the settings and templates"):
            environment.read(messages)
    with pytest.raises(RuntimeError, match="begins with reset"):
        Coins().read(Coins().render(SINGLE, []).messages)


@pytest.mark.parametrize(
    ("text", "outcome", "action"),
    [
        ("1", "ok", 1),
        (" 2\n", "ok", 2),
        ("**0**", "repaired", 0),
        ("Answer: 2.", "repaired", 2),
        ("3", "malformed", None),
        ("-1", "malformed", None),
        ("1.0", "malformed", None),
        ("01", "malformed", None),
        ("one", "malformed", None),
        ("1 head", "malformed", None),
        ("1 or 2", "malformed", None),
        ("I can't help with that.", "refused", None),
        (" ", "empty", None),
    ],
)
def test_a_reply_is_a_number_that_can_come_out_and_no_more(text, outcome, action):
    answer = Coins().parse(text, SINGLE)
    assert (answer.outcome, answer.action) == (outcome, action)
    assert Coins().replies.cut(text, SINGLE).outcome == "truncated"


@pytest.mark.parametrize(
    ("text", "outcome", "action", "when_cut"),
    [
        ("1", "ok", 1, "truncated"),
        (" 2", "ok", 2, "truncated"),
        (" 1.", "ok", 1, "truncated"),
        (" 1. The cup", "ok", 1, "ok"),
        (" 0, as nobody", "ok", 0, "ok"),
        (" 2\n\nA cup", "ok", 2, "ok"),
        ("\n\n2 of", "repaired", 2, "repaired"),
        (" 12", "malformed", None, "malformed"),
        (" 1.5 on", "malformed", None, "malformed"),
        (" 1st", "malformed", None, "malformed"),
        (" 3.", "malformed", None, "malformed"),
        (" not 1", "malformed", None, "malformed"),
        ("", "empty", None, "truncated"),
    ],
)
def test_a_continuation_is_read_from_its_beginning(text, outcome, action, when_cut):
    environment = Coins(form="continuation")
    answer, cut = environment.parse(text, SINGLE), environment.replies.cut(text, SINGLE)
    assert (answer.outcome, answer.action) == (outcome, action)
    assert (cut.outcome, cut.action) == (when_cut, action if when_cut == outcome else None)


@pytest.mark.parametrize("form", TEXTS)
def test_after_a_dependent_toss_both_numbers_are_said_and_the_last_is_the_action(form):
    environment = Coins(form=form)
    assert [environment.say(action, DEPENDENT) for action in range(3)] == ["2", "3", "4"]
    assert environment.parse("3", DEPENDENT).action == 1
    for outside in ("0", "1", "5"):
        assert environment.parse(outside, DEPENDENT).outcome == "malformed"


# ---------------------------------------------------------------- wording of one's own


def own_wording(tmp_path, change):
    shipped = (
        files("knownminds.environments.chance").joinpath("coins.toml").read_text(encoding="utf-8")
    )
    file = tmp_path / "my.toml"
    file.write_text(change(shipped), encoding="utf-8")
    return str(file)


def test_the_wording_can_be_replaced(tmp_path):
    file = own_wording(
        tmp_path, lambda text: text.replace('"heads"', '"Kopf"').replace("A cup", "Ein Becher")
    )
    environment = Coins(templates=file)
    text = environment.render(SINGLE, []).messages[0].content
    assert text.startswith("Ein Becher holds 2 coins.")
    assert "The number of Kopf among them is" in text
    check_environment(environment)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("{previous}", "some"), r"must use \{previous\}"),
        (lambda text: text.replace("{weight}", "many"), r"must use \{weight\}"),
        (lambda text: text.replace("{context}", "Well?"), r"must use \{context\}"),
        (lambda text: text.replace('"tails"', '"heads"'), "face 0, .* face 1, .* both read"),
        (lambda text: text.replace("setup =", "begin ="), "lacks 'setup'"),
    ],
)
def test_wording_that_does_not_tell_the_contexts_apart_is_refused(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        Coins(templates=own_wording(tmp_path, change))


# ---------------------------------------------------------------- trials


def test_trials_come_back_from_a_file_without_a_reward(tmp_path):
    environment = Coins(3)
    trials = simulate(AGENTS["random_responder"], np.empty((3, 0)), environment, 1)
    assert len(trials) == 3 * 54
    assert trials.frame["reward"].isna().all()
    for name in ("coins.csv", "coins.parquet"):
        trials.save(tmp_path / name)
        again = Trials.load(tmp_path / name, environment=environment)
        assert again.frame.equals(trials.frame)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("previous", 3, "row 8 .* previous 3, which is none of Coins"),
        ("weight", 2, "weight 2"),
        ("face", None, "contexts of its grid"),
        ("kind", "single", "kind single"),
        ("action", 3, "Actions of coins are 0, 1, 2"),
        ("reward", 1.0, "pays no rewards; row 8 .* has 1. Leave the column"),
    ],
)
def test_trials_that_cannot_be_of_these_coins_are_refused(column, value, sentence):
    frame = simulate(AGENTS["random_responder"], np.empty((1, 0)), Coins(), 1).to_frame()
    frame[column] = frame[column].astype(object)
    frame.loc[7, column] = value
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(frame, environment=Coins())


def test_trials_of_another_number_of_coins_are_told_as_that():
    trials = simulate(AGENTS["random_responder"], np.empty((1, 0)), Coins(3), 1)
    with pytest.raises(ValueError, match=r"coins 3, .*n_coins=2, .* Use the settings"):
        Trials.from_frame(trials.to_frame(), environment=Coins())


def test_gymnasium_gets_a_reward_of_nothing():
    wrapped = GymnasiumEnvironment(Coins())
    wrapped.reset(seed=0)
    assert wrapped.step(1)[1] == 0.0


# ---------------------------------------------------------------- through words


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_a_session_through_words_is_the_session_that_play_lives(n, form):
    environment = Coins(n, form=form)
    agent = responder(environment)
    spoken = asyncio.run(run_session(Synthetic(agent, environment, 11, 3), environment, 11, 3, 5))
    played = play(agent, environment, 11, 3, 5)
    for column in ("trial", *environment.fields.stimulus, "action"):
        assert spoken.frame[column].tolist() == played.frame[column].tolist()
    assert set(spoken.frame["outcome"]) == {"ok"}
    assert spoken.frame["reward"].isna().all()
    # Numbers of their own for every trial, although no prompt tells how many went before.
    assert len(set(spoken.frame["action"])) == environment.n_actions


def test_without_a_session_the_answers_follow_the_same_policy():
    environment = Coins()
    speaker = Synthetic(responder(environment), environment, 1)
    counts, n = np.zeros(3), 0
    for seed in range(8):
        for seen in contexts(environment, seed):
            reply = asyncio.run(
                speaker.complete(environment.render(seen, []), settings=Sampling(seed=None))
            )
            counts[environment.parse(reply.text, seen).action] += 1
    # The same prompt has the same answer, so that there are 42 draws and not 8 * 42.
    assert (counts % 8 == 0).all()
    n = counts.sum() / 8
    assert n == 42
    assert (abs(counts / 8 - n / 3) < 4 * np.sqrt(n * (1 / 3) * (2 / 3))).all()


def test_a_prompt_of_other_coins_is_rejected():
    environment, other = Coins(), Coins(3)
    speaker = Synthetic(responder(environment), environment, 1)
    prompt = other.render(contexts(other)[0], [])
    for seed in (0, None):
        with pytest.raises(Rejected, match="Use the settings and templates"):
            asyncio.run(speaker.complete(prompt, settings=Sampling(seed=seed)))


def test_contaminants_leave_their_outcomes():
    environment = Coins()
    dials = Contaminants(refusal=0.2, malformed=0.2, truncation=0.2)
    speaker = Synthetic(responder(environment), environment, 1, contaminants=dials)
    frame = asyncio.run(run_sessions(speaker, environment, 12, 1)).frame
    n = len(frame)
    for outcome in ("refused", "malformed", "truncated"):
        share = (frame["outcome"] == outcome).mean()
        assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / n)
    assert (frame["action"].isna() == ~frame["outcome"].isin(["ok", "repaired"])).all()


class Continues:
    """Goes on from a text as a sampler that knows the truth would, up to a limit of tokens."""

    model, provider, base_url = "continues", "test", ""
    capabilities = Capabilities(seed=True)

    def __init__(self, environment):
        self.environment = environment
        self.environment.reset(seed=0)

    async def complete(self, prompt, *, settings):
        _, seen = self.environment.read(prompt.messages)
        place = int(prompt.hash[:12], 16)
        rng = session_stream(settings.seed, place)
        action = rng.choice(self.environment.n_actions, p=self.environment.truth(seen))
        text = f" {self.environment.say(int(action), seen)}. The cup is"
        return Reply(text, finish_reason="length", model_served="m")

    async def close(self):
        pass


def test_sampled_answers_of_many_sessions_have_the_frequencies_of_the_truth():
    part = {"weights": (1, 3), "faces": "tails", "form": "continuation"}
    environment, n = Coins(**part), 50
    frame = asyncio.run(run_sessions(Continues(Coins(**part)), environment, n, 3)).frame
    # Continuations are cut off by the limit of tokens; what they begin with is certain.
    assert set(frame["outcome"]) == {"ok"}
    fit = 0.0
    for values, asked in frame.groupby(list(environment.own)):
        assert len(asked) == n
        seen = dict(zip(environment.own, map(int, values), strict=True))
        expected = n * environment.truth(seen)
        counts = np.bincount(asked["action"].astype(int), minlength=3)
        fit += ((counts - expected) ** 2 / expected).sum()
    # Pearson's statistic: two degrees of freedom each, mean 2 and variance at most
    # 4 + (sum of 1/p) / n < 4 + 26 / 50; four standard errors of the sum over the contexts.
    degrees = 2 * environment.n_trials
    assert abs(fit - degrees) < 4 * np.sqrt(environment.n_trials * 4.6)


def test_kinds_are_numbered_as_they_are_listed():
    assert KINDS == ("single", "independent", "dependent")
    assert FACES == ("heads", "tails")
