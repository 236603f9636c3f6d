"""The contract of experiments: ours keep it in all their forms, and broken ones are caught."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from registries import installed

from knownminds.agents import AGENTS, play, simulate
from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    Coins,
    Environment,
    InstrumentalLearning,
    Message,
    Outcome,
    Prompt,
    Replies,
    Session,
    Trials,
    Turn,
    World,
    answer_columns,
    check_environment,
    make,
    session_stream,
)

HISTORIES = ("prompt", "chat")
REASONINGS = ("none", "chain_of_thought", "step_back")
FORMS = ("question", "continuation", "stated")
DISTRACTORS = ("published", "plausible")

FACTORS = {
    "two_step": {"history": HISTORIES, "reasoning": REASONINGS, "released": (False, True)},
    "instrumental_learning": {"history": HISTORIES, "reasoning": REASONINGS},
    "restless_bandit": {"history": HISTORIES, "reasoning": REASONINGS},
    "iowa_gambling": {"n_cards": (25,), "history": HISTORIES, "reasoning": REASONINGS},
    "reversal_learning": {
        "n_plays": (25,),
        "block_length": ((2, 4),),
        "criterion": ("plays", "correct", "consecutive"),
        "history": HISTORIES,
        "reasoning": REASONINGS,
    },
    "horizon": {"history": HISTORIES, "reasoning": REASONINGS},
    "coins": {"n_coins": (2, 3), "form": FORMS, "distractors": DISTRACTORS},
    "dice": {"n_dice": (1, 3), "n_faces": (4, 12), "form": FORMS, "distractors": DISTRACTORS},
    "choice": {"n_options": (2, 4, 6), "form": FORMS, "distractors": DISTRACTORS},
    "preference": {"form": FORMS, "distractors": DISTRACTORS},
    "counts": {"form": FORMS, "distractors": DISTRACTORS},
    "linked_coins": {"n_coins": (2, 4), "form": FORMS},
    "collider": {"graph": ("collider", "chain", "fork"), "content": ("meaningful", "letters")},
    "causal_inference": {
        "graph": ("triangle", "diamond"),
        "strengths": (-0.4,),
        "told": (1,),
        "content": ("meaningful", "letters"),
    },
    "causal_strength": {
        "shown": ("table", "list"),
        "asked": ("strength", "counterfactual"),
        "cases": (4,),
    },
    **{
        task: {
            "modality": ("text", "image", "text+image", "all"),
            "history": HISTORIES,
            "n_values": (2,),
            "repeats": (1,),
        }
        for task in ("marker_location", "line_ratio", "maze_distance")
    },
    "ambiguity": {"middles": ([0.5],), "reasoning": REASONINGS},
    "ultimatum": {"reasoning": REASONINGS},
    "adjusting_amount": {"questions": (2,), "reasoning": REASONINGS},
    "public_goods": {"multipliers": ([1.6],), "reasoning": REASONINGS},
    "risky_choice": {"problems": ("mixed",), "repeats": (2,), "reasoning": REASONINGS},
    "cue_conflict": {
        "report": ("dashes", "rounded", "hedged", "sources"),
        "history": HISTORIES,
        "n_values": (2,),
        "repeats": (1,),
    },
    "duration": {"history": HISTORIES, "reasoning": REASONINGS, "n_values": (3,), "repeats": (1,)},
    "balloon_risk": {
        "n_balloons": (1, 3),
        "released": (False, True),
        "history": HISTORIES,
        "reasoning": REASONINGS,
    },
    "probabilistic_reasoning": {
        "n_problems": (2, 5),
        "history": HISTORIES,
        "reasoning": REASONINGS,
    },
    "diagnosis": {
        "network": ("heart", "fever"),
        "reasoning": REASONINGS,
        "n_contexts": (4,),
        "repeats": (1, 2),
    },
    "temporal_discounting": {
        "design": ("adaptive", "grid"),
        "history": HISTORIES,
        "reasoning": REASONINGS,
    },
}
CASES = [
    (name, dict(zip(FACTORS[name], values, strict=True)))
    for name in ENVIRONMENTS
    for values in itertools.product(*FACTORS[name].values())
]


# Designs that only users set: a single trial, many types, answers in several parts.
ODD = [
    ("balloon_risk", {"n_balloons": 12, "maxima": (1,)}),
    ("balloon_risk", {"n_balloons": 1, "maxima": tuple(range(1, 27))}),
    ("restless_bandit", {"n_blocks": 2, "block_length": (3, 5), "confidence": "apart"}),
    ("restless_bandit", {"n_blocks": 1, "block_length": (1, 1)}),
    ("horizon", {"n_games": 9, "long_horizon": 3, "long_share": 0.9, "unequal_share": 1.0}),
    ("instrumental_learning", {"n_visits": 1}),
    ("iowa_gambling", {"n_cards": 1}),
    (
        "temporal_discounting",
        {"design": "grid", "amount": 37, "delays": (2,), "shares": (0.1, 0.9)},
    ),
    ("two_step", {"n_days": 5, "transition": 1.0}),
    ("coins", {"faces": "heads", "weights": (1, 2), "kinds": "independent"}),
    ("diagnosis", {"n_contexts": 1, "repeats": 1}),
    ("diagnosis", {"n_contexts": 3, "questions": ["expectation"], "parts": "separate"}),
    ("adjusting_amount", {"amounts": [100, 1000], "questions": 3, "repeats": 2}),
    ("risky_choice", {"problems": [[[[40, 1]], [[100, 0.5], [0, 0.5]]]], "repeats": 2}),
    ("ultimatum", {"stake": 10, "offers": [2, 7.5], "proposals": [[[1, 0.5], [4, 0.8]]]}),
    ("public_goods", {"endowment": 3, "group": 2, "multipliers": [1.5, 4], "repeats": 2}),
    (
        "marker_location",
        {"n_values": 3, "repeats": 1, "windows": ("short", "long"), "stimuli": "decoupled"},
    ),
]


@pytest.mark.parametrize(("name", "settings"), installed(ODD))
def test_unusual_designs_keep_the_contract_too(name, settings):
    check_environment(make(name, **settings), 3)


@pytest.mark.parametrize(("name", "factors"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_experiment_keeps_the_contract_with_every_combination_of_factors(name, factors, seed):
    check_environment(make(name, **factors), seed)


class Anew(World):
    def pay(self, drawn, action):
        return float(np.random.default_rng().random() < 0.5)


class PaysAnew(InstrumentalLearning):
    """Draws the payoff when the machine is played."""

    world = Anew


class ByHistory(World):
    def begin(self):
        self.played = 0

    def pay(self, drawn, action):
        self.played += action
        return self.played % 2


class PaysByHistory(InstrumentalLearning):
    """Pays by what was chosen before: the same action on the same trial pays differently."""

    world = ByHistory


class SwapsLabels(InstrumentalLearning):
    """Understands the other machine."""

    def parse(self, labels, text, observation):
        answer = super().parse(labels, text, observation)
        other = None if answer.action is None else 1 - answer.action
        return dataclasses.replace(answer, action=other)


class Guesses(InstrumentalLearning):
    """Takes silence for the first machine."""

    def parse(self, labels, text, observation):
        answer = super().parse(labels, text, observation)
        return answer if answer.action is not None else Answer(Outcome.OK, 0)


class TellsBoth(InstrumentalLearning):
    """Lets slip in the prompt what a machine pays in the session that was drawn last."""

    def draw(self, rng):
        self.drawn_last = super().draw(rng)
        return self.drawn_last

    def render(self, labels, observation, turns):
        prompt = super().render(labels, observation, turns)
        unseen = self.drawn_last.table["payoffs"][: len(turns)].tolist()
        words = f"{prompt.messages[0].content}\n(It would have been {unseen}.)"
        return Prompt((Message("user", words),))

    def read(self, design, messages):
        bare = messages[0].content.split("\n(It would")[0]
        return super().read(design, [Message("user", bare)])


class ForgetsTheSeed(InstrumentalLearning):
    """Draws from nowhere."""

    def draw(self, rng):
        return super().draw(np.random.default_rng())


class ForgetsASetting(InstrumentalLearning):
    """Is rebuilt as another experiment."""

    @property
    def settings(self):
        return {**super().settings, "n_visits": self.n_visits + 1}


class FillsIn(InstrumentalLearning):
    """Tells a missing answer as a play."""

    def render(self, labels, observation, turns):
        filled = [Turn(t.observation, t.action or 0, t.reward or 0.0, "") for t in turns]
        return super().render(labels, observation, filled)


@pytest.mark.parametrize(
    "broken",
    [
        PaysAnew,
        PaysByHistory,
        SwapsLabels,
        Guesses,
        TellsBoth,
        ForgetsTheSeed,
        ForgetsASetting,
        FillsIn,
    ],
)
def test_an_experiment_that_breaks_the_contract_is_caught(broken):
    with pytest.raises((AssertionError, RuntimeError)):
        check_environment(broken(n_visits=6))


class ReadsNothingIntoSilence(InstrumentalLearning):
    """Takes an answer that was cut off before it began for the first machine."""

    @property
    def replies(self):
        return Guessing(self)


class Guessing(Replies):
    def cut(self, text, observation):
        return Answer(Outcome.OK, 0, text=text)


class Generous(World):
    def pay(self, drawn, action):
        return 1.0


class PaysForCoins(Coins):
    """Pays although there is no feedback."""

    world = Generous


class Retells(Coins):
    """Tells how often there was an answer before."""

    def render(self, labels, observation, turns):
        words = f"{super().render(labels, observation, turns).messages[0].content} [{len(turns)}]"
        return Prompt((Message("user", words),))

    def read(self, design, messages):
        first = messages[0].content.rpartition(" [")[0] + " [0]"
        return super().read(design, [Message("user", first)])


class Remembers(Coins):
    """Reads turns out of a prompt that tells of none."""

    def read(self, design, messages):
        _, observation = super().read(design, messages)
        return [Turn({"trial": 0}, None, None)] * observation["trial"], observation


class AsksInOrder(Coins):
    """Asks the contexts of every session in the same order."""

    def tables(self, uniforms):
        return super().tables(np.tile(np.arange(self.n_draws), (len(uniforms), 1)))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (ReadsNothingIntoSilence, "cut off before its first word"),
        (PaysForCoins, "Without feedback, there is no reward"),
        (Retells, "does not depend on them"),
        (Remembers, "gives back the actions"),
        (AsksInOrder, "Another seed draws another design"),
    ],
)
def test_the_rule_that_is_broken_is_named(broken, rule):
    with pytest.raises(AssertionError, match=rule):
        check_environment(broken())


def test_a_choice_that_no_trial_asks_for_is_told_and_leaves_the_trial():
    environment = InstrumentalLearning(n_visits=1)
    session = Session(environment, environment.draw(session_stream(0)))
    first = session.seen
    for action in (2, -1, 0.5):
        with pytest.raises(ValueError, match=r"whole numbers from 0 to 1 .* got"):
            session.take(action)
    assert session.seen is first


def test_a_missing_answer_uses_up_the_trial():
    environment = InstrumentalLearning(n_visits=1)
    session = Session(environment, environment.draw(session_stream(0)))
    turn = session.take(None)
    assert (turn.observation["trial"], session.seen["trial"], turn.reward) == (0, 1, None)


def test_an_unknown_experiment_is_answered_with_the_nearest_name():
    with pytest.raises(ValueError, match="Nearest: instrumental_learning"):
        make("instrumental_lerning")


class Wordless(Environment):
    """Two levers, for numbers alone."""

    name = "wordless"
    n_actions, n_trials, n_draws = 2, 5, 10

    def tables(self, uniforms):
        return {"payoffs": np.floor(3 * uniforms).reshape(len(uniforms), 5, 2)}


class HalfWordless(Wordless):
    """It is put into words that nobody can take back."""

    def render(self, labels, observation, turns):
        return Prompt((Message("user", "Which one?"),))


def test_an_experiment_for_numbers_alone_needs_no_words_and_says_so():
    check_environment(Wordless())
    for method in ("render", "parse", "say", "read"):
        given = [None] * (2 if method == "read" else 3)
        with pytest.raises(ValueError, match=r"wordless has no words.*render, parse, say, read"):
            getattr(Wordless(), method)(*given)
    with pytest.raises(AssertionError, match="it has render, and no parse and no say and no read"):
        check_environment(HalfWordless())


def test_an_experiment_for_numbers_alone_is_shown_without_a_prompt(monkeypatch, knownminds):
    for name in ("summary", "source"):
        monkeypatch.setattr(Wordless, name, "ours", raising=False)
    monkeypatch.setitem(ENVIRONMENTS, "wordless", Wordless)
    code, shown = knownminds("show", "wordless")[:2]
    assert code == 0
    assert "first prompt" not in shown


# Sessions


@pytest.mark.parametrize("name", ["balloon_risk", "horizon", "diagnosis"])
def test_rows_of_a_session_are_what_was_shown_concealed_given_and_paid(name):
    """Trials fall away, hidden columns, trials that ask for either."""
    environment = make(name)
    session = Session(environment, environment.draw(session_stream(0)))
    rng, (low, _) = np.random.default_rng(0), environment.response_range
    for seen in session:
        answer = environment.asks(seen)
        choice = int(rng.integers(environment.n_actions)) if answer == "action" else low
        choice = None if rng.random() < 0.2 else choice
        hidden = session.design.at(int(seen["trial"]), environment.fields.hidden)
        turn = session.take(choice, "so it was")
        assert turn.observation == seen
        assert (turn.action, turn.response) == environment.split(choice, answer)
        assert turn.text == "so it was"
        given = {column: getattr(turn, column) for column in answer_columns(environment)}
        assert session.rows[-1] == {**seen, **hidden, **given, "reward": turn.reward}
    assert session.over
    assert len(session.turns) == len(session.rows)
    with pytest.raises(RuntimeError, match=f"The session of {name} is over. Begin another"):
        session.take(0)


def test_sessions_share_an_environment_and_not_its_state():
    environment = make("instrumental_learning")
    one, other = (Session(environment, environment.draw(session_stream(k))) for k in (0, 1))
    first = next(iter(other))
    one.take(0)
    assert next(iter(other)) == first
    model = AGENTS["rescorla_wagner"].from_theta(np.array([0.3, 2.0, 0.0]))
    play(model, environment, 0)
    assert next(iter(other)) == first


@pytest.mark.parametrize("name", ["two_step", "coins", "marker_location", "temporal_discounting"])
def test_the_address_of_a_session_says_what_is_drawn_in_it(name):
    """Of one participant with `play`, of many with `simulate`, and of a design that is drawn."""
    environment = make(name)
    model = AGENTS["random_rater" if environment.given == "response" else "random_responder"]
    theta = np.empty((3, 0))
    many = simulate(model, theta, environment, 11, address=(4,)).frame
    for i, row in enumerate(theta):
        agent = model.from_theta(row, actions=environment.n_actions)
        one = play(agent, environment, 11, 4, i).frame
        own = many[many["subject"] == str(i)].reset_index(drop=True)
        pd.testing.assert_frame_equal(one, own, check_dtype=False, rtol=1e-9)
        table = environment.draw(session_stream(11, 4, i)).table
        shown = set(environment.fields.shown) & set(table) - set(environment.fields.dependent)
        assert shown
        for column in shown:
            drawn = np.asarray(table[column])[one["trial"].to_numpy(dtype=int)]
            assert np.array_equal(one[column].to_numpy(dtype=float), drawn.astype(float)), column


def test_a_session_stream_is_that_of_numpy_and_neighbours_are_unrelated():
    sequence = np.random.SeedSequence(entropy=11, spawn_key=(3, 17))
    expected = np.random.Generator(np.random.PCG64(sequence)).random(5)
    assert np.array_equal(session_stream(11, 3, 17).random(5), expected)
    places = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (2**40, 2**40)]
    draws = np.array([session_stream(*place).random(2000) for place in places])
    correlation = np.corrcoef(draws)[np.triu_indices(len(places), 1)]
    # 21 correlations of nothing, each with the standard error 1 / sqrt(2000).
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)
    with pytest.raises(ValueError, match="-1"):
        session_stream(0, -1)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_trials_pass_their_own_check_and_an_answer_that_cannot_be_is_refused_by_trial(name):
    small = {"network": "fever", "n_contexts": 5} if name == "diagnosis" else {}
    environment = make(name, **small)
    session, rng = Session(environment, environment.draw(session_stream(1))), session_stream(2)
    low, high = environment.response_range
    for shown in session:
        action, response = int(rng.integers(max(environment.n_actions, 1))), (low + high) / 2
        answer = environment.asks(shown)
        choices = {"action": action, "response": response}
        session.take(choices.get(answer, (action, response)))
    frame = pd.DataFrame(session.rows).assign(subject="0")
    Trials.from_frame(frame, environment=environment)
    for column in answer_columns(environment):
        wrong = frame.astype({column: float})
        row = wrong.index[wrong[column].notna()][-1]
        wrong.loc[row, column] = 1e6
        with pytest.raises(ValueError, match=f"trial {wrong.loc[row, 'trial']}\\b"):
            Trials.from_frame(wrong, environment=environment)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_setting_outside_its_rule_is_refused_by_name(name):
    kind = ENVIRONMENTS[name]
    for word, field in kind.setting_table.items():
        if str(field.rule) in ("True or False", "a text") or "None" in str(field.rule):
            continue
        called = field.called or word
        with pytest.raises(ValueError, match=called.removesuffix("s")):
            kind(**{called: "no such value"})


def spoken(*sessions, trials=30):
    """What is shown, and read of it, in sessions that go on by a trial each in turn."""
    rng, shown = np.random.default_rng(0), [[] for _ in sessions]
    for trial in range(trials):
        u = rng.random()
        for session, prompts in zip(sessions, shown, strict=True):
            environment, seen = session.environment, session.seen
            if environment.replies.continues(seen):
                session.take(None)
                continue
            prompt = session.render()
            read = environment.read(session.design, prompt.messages)
            prompts.append((prompt.hash, read))
            low, high = environment.response_range
            action, number = int(u * max(environment.n_actions, 1)), low + u * (high - low)
            choice = {"action": action, "response": number}[environment.asks(seen)]
            together = environment.replies.together(session.design, seen)
            said = session.say(
                choice if len(together) == 1 else (1.0,) + (0.0,) * (len(together) - 1)
            )
            session.take(None if trial % 7 == 3 else session.parse(said).choice, said)
    return shown


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("instrumental_learning", {}),
        ("instrumental_learning", {"history": "chat"}),
        ("collider", {"content": "letters"}),
        ("marker_location", {"modality": "text+image"}),
        ("diagnosis", {"network": "fever"}),
        ("balloon_risk", {}),
    ],
)
def test_an_environment_holds_nothing_of_the_sessions_that_share_it(name, settings):
    shared = make(name, **settings)
    designs = [shared.draw(session_stream(k)) for k in (0, 1)]
    before = dict(vars(shared))
    in_turn = spoken(*(Session(shared, design) for design in designs))
    alone = [spoken(Session(make(name, **settings), design))[0] for design in designs]
    assert in_turn == alone
    assert in_turn[0] != in_turn[1]
    assert vars(shared).keys() == before.keys()
    assert all(value is before[attribute] for attribute, value in vars(shared).items())
