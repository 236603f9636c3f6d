"""A known mind that answers in words: the stand-in for a language model whose truth is known."""

from __future__ import annotations

from copy import copy

from knownminds.agents import Agent, Contaminants
from knownminds.environments import Environment, Prompt, session_stream

from .adapter import Capabilities, NotCapable, Rejected, Reply, Sampling, Usage

_SPEECH = 2**32 - 1  # last part of the address of the contaminants' own stream


class Synthetic:
    """An agent of the library that reads prompts and replies as a provider would.

    It remembers nothing between calls. The sampling seed i names the session at
    ``session_stream(seed, *address, i)``: its design, and with it the names of the actions, is
    drawn anew, the past is read from the prompt and learned from, and the choice on trial t takes
    the t-th number of the stream. So a session through words is the session that
    ``play(agent, environment, seed, *address, i)`` lives, and asking again gives the same reply.

    Parameters
    ----------
    agent
        The mind; its lapse rate is its own unless the contaminants have one.
    environment
        The experiment, with the settings and wording of the prompts it will get.
    contaminants
        How often answers go wrong; they take numbers from a stream of their own.
    """

    capabilities = Capabilities(temperature=False, top_p=False, max_tokens=False)

    def __init__(
        self,
        agent: Agent,
        environment: Environment,
        seed: int,
        *address: int,
        contaminants: Contaminants | None = None,
    ):
        agent.check_plays(environment)
        self.agent = agent
        self.environment = environment
        self.seed = seed
        self.address = address
        self.contaminants = contaminants or Contaminants()
        self.model = f"synthetic:{agent.name}"

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer the prompt; Rejected if it is not one of the session that the seed names."""
        if settings.seed is None:
            raise NotCapable(
                "A synthetic participant knows its session by the sampling seed; got none. "
                "Send the number of the session as the seed."
            )
        rng = session_stream(self.seed, *self.address, settings.seed)
        environment = copy(self.environment)
        environment.reset(options={"design": environment.draw(rng)})
        try:
            turns, observation = environment.read(prompt.messages)
        except ValueError as error:
            raise Rejected(str(error)) from None
        agent = type(self.agent).from_theta(
            self.agent.theta,
            lapse=self.contaminants.lapse or self.agent.lapse,
            actions=environment.n_actions,
        )
        for turn in turns:
            if turn.action is not None and turn.reward is not None:
                agent.learn(turn.observation, turn.action, turn.reward)
        rng.random(len(turns))  # the numbers of the choices already made
        said = environment.say(agent.choose(observation, rng), observation)

        speech = session_stream(self.seed, *self.address, settings.seed, _SPEECH)
        speech.random(len(turns))
        text, finish_reason = self.contaminants.speak(said, speech)
        sent = sum(len(message.content.split()) for message in prompt.messages)
        return Reply(text, finish_reason, Usage(sent, len(text.split())), self.model, text)

    async def close(self) -> None:
        """Do nothing: there are no connections."""
