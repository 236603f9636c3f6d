import asyncio
from math import exp, inf, log

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, Contaminants, RescorlaWagnerDual, play
from knownminds.environments import (
    ENVIRONMENTS,
    InstrumentalLearning,
    Message,
    Prompt,
    Session,
    make,
    session_stream,
)
from knownminds.llm_adapters import Failed, Sampling, Synthetic, run_session
from knownminds.llm_adapters.known_agents import synthetic as module

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)


def ask(adapter, prompt, seed=0, **settings):
    return asyncio.run(adapter.complete(prompt, settings=Sampling(seed=seed, **settings)))


def lived(environment, seed, i, missing=0.1):
    """Prompts of session i of a study, with what its player knows: random choices, some missing."""
    session = Session(environment, environment.draw(session_stream(seed, i)))
    numbers, prompts = np.random.default_rng((seed, i)), []
    for seen in session:
        labels = session.design.labels["machines"][seen["context"]]
        prompts.append((session.render(), list(session.turns), seen, labels))
        action = None if numbers.random() < missing else int(numbers.integers(2))
        session.take(action, "Hm." if action is None else session.say(action))
    return prompts


def policy(agent, turns, observation):
    """The probabilities of the agent itself, from its past."""
    fresh = type(agent).from_theta(agent.theta, lapse=agent.lapse)
    for turn in turns:
        if turn.action is not None:
            fresh.learn(turn.observation, turn.action, turn.reward)
    return fresh.probabilities(observation)


RETOLD = [name for name in ENVIRONMENTS if make(name).past != "none"]
FACTORS = [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"reasoning": "step_back"}]


@pytest.mark.parametrize(
    ("place", "factors"),
    # Each experiment with one of them; with the others in the long tests.
    [
        pytest.param(place, factors, marks=() if i == k % 3 else pytest.mark.long)
        for k, place in enumerate(RETOLD)
        for i, factors in enumerate(FACTORS)
    ],
)
def test_a_session_through_words_is_the_session_that_play_lives(place, factors):
    units = make(place).size
    environment = make(place, **({units: 4} if units else {}), **factors)
    model = next(model for model in reversed([*AGENTS.values()]) if model.plays(environment))
    agent = model.from_theta(
        model.parameters.draw(np.random.default_rng(2), 1)[0],
        lapse=0.05,
        actions=environment.n_actions,
    )
    spoken = asyncio.run(run_session(Synthetic(agent, environment, 11, 3), environment, 11, 3, 5))
    played = play(agent, environment, 11, 3, 5).frame
    played = played.assign(session=played["subject"], subject=spoken.frame["model"])
    pd.testing.assert_frame_equal(spoken.frame[played.columns], played, check_exact=True)
    assert set(spoken.frame["outcome"]) == {"ok"}


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_a_reply_depends_on_the_prompt_and_on_nothing_that_was_asked_before(
    monkeypatch, history, seeded
):
    environment = InstrumentalLearning(n_visits=3, history=history)
    dials = Contaminants(refusal=0.1, malformed=0.1, truncation=0.1, verbosity=0.3)
    settings = Sampling(top_log_probabilities=2)
    calls = []
    for i in range(4):
        # Two pasts of the same session, so that what is remembered of one is wrong of the other.
        for missing in (0.0, 0.5):
            for prompt, *_ in lived(environment, 1, i, missing):
                calls.append((prompt, Sampling(seed=i if seeded else None, top_p=0.9)))
                calls.append((prompt, Sampling(**{**settings.__dict__, "seed": calls[-1][1].seed})))
    order = np.random.default_rng(4).permutation(2 * len(calls)) % len(calls)

    def first_asked(prompt, sampling):
        speaker = Synthetic(LEARNER, environment, 1, contaminants=dials)
        speaker._fair = True  # whatever it is, it is not what is tested here
        return speaker.answer(prompt, sampling)

    alone = [first_asked(*call) for call in calls]
    assert len({reply.text for reply in alone}) > 10
    for remembered in (1, 3, 256):
        monkeypatch.setattr(module, "_REMEMBERED", remembered)
        speaker = Synthetic(LEARNER, environment, 1, contaminants=dials)
        for k in order:
            assert speaker.answer(*calls[k]) == alone[k]
        assert len(speaker._sessions) <= remembered


def test_contaminants_strike_at_their_rates_and_leave_the_first_choices_alone():
    environment = InstrumentalLearning(n_visits=1)
    rates = {"refusal": 0.1, "malformed": 0.2, "truncation": 0.05}
    speaker = Synthetic(LEARNER, environment, 3, contaminants=Contaminants(**rates))
    plain = Synthetic(LEARNER, environment, 3)
    n, outcomes = 1500, []
    for i in range(n):
        session = Session(environment, environment.draw(session_stream(3, i)))
        prompt = session.render()
        reply, said = ask(speaker, prompt, i), ask(plain, prompt, i).text
        cut = reply.finish_reason == "length"
        outcomes.append("truncated" if cut else session.parse(reply.text).outcome)
        if outcomes[-1] == "ok":
            assert reply.text == said
    for outcome, rate in zip(("refused", "malformed", "truncated"), rates.values(), strict=True):
        share = np.mean([seen == outcome for seen in outcomes])
        assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / n)


@pytest.mark.parametrize("history", ["prompt", "chat"])
@pytest.mark.parametrize(("reasoning", "outcome"), [("none", "repaired"), ("step_back", "ok")])
def test_words_around_the_answers_change_no_choice(history, reasoning, outcome):
    environment = InstrumentalLearning(history=history, reasoning=reasoning)
    wordy = Synthetic(LEARNER, environment, 7, contaminants=Contaminants(verbosity=0.5))
    spoken = asyncio.run(run_session(wordy, environment, 7, 0)).frame
    played = play(LEARNER, environment, 7, 0).frame
    assert spoken["action"].tolist() == played["action"].tolist()
    plain = asyncio.run(run_session(Synthetic(LEARNER, environment, 7), environment, 7, 0)).frame
    around = spoken["raw_text"] != plain["raw_text"]
    assert abs(around.mean() - 0.5) < 4 * 0.5 / np.sqrt(96)
    assert set(spoken["outcome"][around]) == {outcome}
    assert (spoken["output_tokens"][around] > plain["output_tokens"][around]).all()


def test_a_prompt_of_another_session_or_of_no_session_is_rejected():
    environment = InstrumentalLearning()
    speaker = Synthetic(LEARNER, environment, 1)
    labels = environment.draw(session_stream(1, 0)).labels
    prompt = environment.render(labels, {"trial": 0, "context": 0, "first": 0}, [])
    assert ask(speaker, prompt, seed=0).text in labels["machines"][0]
    with pytest.raises(Failed, match="Use the seed, settings and templates"):
        ask(speaker, prompt, seed=1)
    for seed in (0, None):
        with pytest.raises(Failed, match="Use the settings and templates"):
            ask(speaker, Prompt((Message("user", "Hello?"),)), seed=seed)
    with pytest.raises(Failed, match="Use the settings and templates"):
        ask(speaker, Prompt((Message("system", "Hello?"),)), seed=None)
    with pytest.raises(Failed, match="reasoning_effort='high'"):
        ask(speaker, prompt, reasoning_effort="high")


# ---------------------------------------------------------------- without a seed


@pytest.mark.parametrize("factors", [{}, {"history": "chat", "reasoning": "chain_of_thought"}])
@pytest.mark.parametrize("seed_is_session", [True, False])
@pytest.mark.long
def test_without_a_session_choices_follow_the_same_policy(factors, seed_is_session):
    environment = InstrumentalLearning(6, **factors)
    agent = RescorlaWagnerDual.from_theta(LEARNER.theta, lapse=0.1)
    speaker = Synthetic(agent, environment, 1, seed_is_session=seed_is_session)
    rival = RescorlaWagnerDual(alpha_positive=0.1, alpha_negative=0.4, beta=3.0, kappa=-1.0)
    seed = None if seed_is_session else 42
    chosen, shares, others = [], [], []
    for i in range(40):
        # The sessions are those of a study that the speaker does not know.
        for prompt, turns, observation, labels in lived(environment, 99, i):
            reply = ask(speaker, prompt, seed)
            assert reply == ask(speaker, prompt, seed)
            chosen.append(labels.index(reply.text.split()[-1]))
            shares.append(policy(agent, turns, observation)[1])
            others.append(policy(rival, turns, observation)[1])
    chosen, shares, others = map(np.array, (chosen, shares, others))

    def deviation(p, weight):
        """Standard deviations that the weighted choices are away from what p expects."""
        return (weight * (chosen - p)).sum() / np.sqrt((weight**2 * p * (1 - p)).sum())

    # The weights ask for bias, for slope, and for the direction in which the rival differs.
    for weight in (np.ones(len(chosen)), shares - 0.5, others - shares):
        assert abs(deviation(shares, weight)) < 4
    assert abs(deviation(others, others - shares)) > 6


# ---------------------------------------------------------------- settings and log-probabilities


@pytest.mark.parametrize(("temperature", "top_p"), [(0.5, None), (2.0, None), (None, 0.55), (0, 1)])
def test_temperature_and_top_p_change_the_probabilities_as_they_say(temperature, top_p):
    environment = InstrumentalLearning(12)
    speaker = Synthetic(LEARNER, environment, 1)
    n, chosen, expected, spread = 0, 0.0, 0.0, 0.0
    for i in range(12):
        for prompt, turns, observation, labels in lived(environment, 1, i):
            p = policy(LEARNER, turns, observation)
            if temperature == 0:
                p = (p == p.max()) / (p == p.max()).sum()
            elif temperature:
                p = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
            elif max(p) >= top_p:
                p = (p == p.max()).astype(float)
            reply = ask(speaker, prompt, i, temperature=temperature, top_p=top_p)
            action = labels.index(reply.text)
            assert p[action] > 0
            best = int(p.argmax())
            n, chosen, expected = n + 1, chosen + (action == best), expected + p[best]
            spread += p[best] * (1 - p[best])
    assert abs(chosen - expected) <= 4 * np.sqrt(spread)


@pytest.mark.parametrize("reasoning", ["none", "chain_of_thought"])
@pytest.mark.parametrize("seed", [0, None])
def test_log_probabilities_are_those_of_the_policy(reasoning, seed):
    environment = InstrumentalLearning(6, reasoning=reasoning)
    agent = RescorlaWagnerDual.from_theta(LEARNER.theta, lapse=0.1)
    speaker = Synthetic(agent, environment, 1, contaminants=Contaminants(verbosity=0.5))
    for prompt, turns, observation, labels in lived(environment, 1, 0):
        p = policy(agent, turns, observation)
        for temperature in (None, 0.5):  # the policy's own, whatever is drawn from
            reply = ask(speaker, prompt, seed, top_log_probabilities=5, temperature=temperature)
            told = reply.log_probabilities
            assert "".join(entry.token for entry in told) == reply.text
            assert len(told) == reply.usage.output_tokens
            letter, *others = [entry for entry in told if len(entry.alternatives) > 1]
            assert not others
            assert all(entry.log_probability == 0.0 for entry in told if entry is not letter)
            named = {token.strip(): value for token, value in letter.alternatives}
            assert set(named) == set(labels)
            assert sum(map(exp, named.values())) == pytest.approx(1.0, abs=1e-12)
            for label, share in zip(labels, p, strict=True):
                assert named[label] == pytest.approx(log(share), abs=1e-12)
            assert letter.log_probability == named[letter.token.strip()]
            values = [value for _, value in letter.alternatives]
            assert values == sorted(values, reverse=True)
    alone = ask(speaker, prompt, seed, top_log_probabilities=0).log_probabilities
    assert all(entry.alternatives == () for entry in alone)
    assert ask(speaker, prompt, seed).log_probabilities is None


def test_labels_of_several_tokens_share_the_probability_of_their_beginnings():
    might = [["12", " months"], ["12", " days"], ["5", " days"]]
    told = module._log_probabilities(might[1], might, [0.5, 0.3, 0.2], 3)
    assert told[0].log_probability == pytest.approx(log(0.8))
    assert told[1].log_probability == pytest.approx(log(0.3 / 0.8))
    assert dict(told[1].alternatives) == pytest.approx(
        {" months": log(0.5 / 0.8), " days": log(0.3 / 0.8)}
    )
    told = module._log_probabilities(["a"], [["a"], ["b"]], [1.0, 0.0], 2)
    assert told[0].alternatives == (("a", 0.0), ("b", -inf))
