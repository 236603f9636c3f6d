import asyncio

import numpy as np
import pytest

from knownminds.agents import AGENTS, Contaminants, RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Message, Prompt, Turn, session_stream
from knownminds.llm_adapters import NotCapable, Rejected, Sampling, Synthetic, run_session

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)


def ask(adapter, prompt, seed=0):
    return asyncio.run(adapter.complete(prompt, settings=Sampling(seed=seed)))


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "factors",
    [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"reasoning": "step_back"}],
)
def test_a_session_through_words_is_the_session_that_play_lives(name, factors):
    environment = InstrumentalLearning(n_visits=6, **factors)
    model = AGENTS[name]
    agent = model.from_theta(model.parameters.draw(np.random.default_rng(2), 1)[0])
    spoken = asyncio.run(run_session(Synthetic(agent, environment, 11, 3), environment, 11, 3, 5))
    played = play(agent, environment, 11, 3, 5)
    for column in ("action", "reward", "context", "first", "trial"):
        assert spoken.frame[column].tolist() == played.frame[column].tolist()
    assert set(spoken.frame["outcome"]) == {"ok"}


def test_another_seed_is_another_session():
    environment = InstrumentalLearning()
    one = asyncio.run(run_session(Synthetic(LEARNER, environment, 11), environment, 11, 5))
    assert (
        one.frame["action"].tolist() != play(LEARNER, environment, 12, 5).frame["action"].tolist()
    )


def test_asking_again_gives_the_same_reply():
    environment = InstrumentalLearning(n_visits=2)
    speaker = Synthetic(LEARNER, environment, 1, contaminants=Contaminants(refusal=0.3))
    environment.reset(options={"design": environment.draw(session_stream(1, 0))})
    observation = {"trial": 0, "context": 2, "first": 0}
    first = environment.render(observation, [])
    later = environment.render(
        {**observation, "trial": 1}, [Turn(observation, 1, 1.0, environment.say(1, observation))]
    )
    replies = [ask(speaker, first), ask(speaker, later), ask(speaker, first), ask(speaker, later)]
    assert replies[:2] == replies[2:]


def test_lapses_are_those_of_the_agent():
    environment = InstrumentalLearning()
    lapsing = Synthetic(LEARNER, environment, 7, contaminants=Contaminants(lapse=0.4))
    spoken = asyncio.run(run_session(lapsing, environment, 7, 0))
    agent = RescorlaWagnerDual.from_theta(LEARNER.theta, lapse=0.4)
    assert (
        spoken.frame["action"].tolist() == play(agent, environment, 7, 0).frame["action"].tolist()
    )


def test_contaminants_strike_at_their_rates_and_leave_the_first_choices_alone():
    environment = InstrumentalLearning(n_visits=1)
    rates = {"refusal": 0.1, "malformed": 0.2, "truncation": 0.05}
    speaker = Synthetic(LEARNER, environment, 3, contaminants=Contaminants(**rates))
    plain = Synthetic(LEARNER, environment, 3)
    n, outcomes = 1500, []
    for i in range(n):
        observation, _ = environment.reset(
            options={"design": environment.draw(session_stream(3, i))}
        )
        prompt = environment.render(observation, [])
        reply, said = ask(speaker, prompt, i), ask(plain, prompt, i).text
        cut = reply.finish_reason == "length"
        outcomes.append("truncated" if cut else environment.parse(reply.text, observation).outcome)
        if outcomes[-1] == "ok":
            assert reply.text == said
    for outcome, rate in zip(("refused", "malformed", "truncated"), rates.values(), strict=True):
        share = np.mean([seen == outcome for seen in outcomes])
        assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / n)


def test_a_prompt_of_another_session_or_of_no_session_is_rejected():
    environment = InstrumentalLearning()
    speaker = Synthetic(LEARNER, environment, 1)
    environment.reset(options={"design": environment.draw(session_stream(1, 0))})
    prompt = environment.render({"trial": 0, "context": 0, "first": 0}, [])
    assert ask(speaker, prompt, seed=0).text in environment.design.labels["machines"][0]
    with pytest.raises(Rejected, match="Use the seed, settings and templates"):
        ask(speaker, prompt, seed=1)
    with pytest.raises(Rejected, match="Use the settings and templates"):
        ask(speaker, Prompt((Message("user", "Hello?"),)))
    with pytest.raises(NotCapable, match="sampling seed; got none"):
        ask(speaker, prompt, seed=None)
