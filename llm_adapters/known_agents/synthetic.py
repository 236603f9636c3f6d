"""A known agent that answers in words: the stand-in for a language model whose truth is known."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, inf, log, nan
from threading import Lock
from typing import Any, cast

import numpy as np

from knownminds.agents import Contaminants, Model
from knownminds.agents.parameters import Array
from knownminds.calling import Sampling
from knownminds.environments import (
    Design,
    Environment,
    Message,
    Observation,
    Prompt,
    Session,
    Turn,
    session_stream,
)
from knownminds.llm_adapters.adapter import (
    Failed,
    InProcess,
    Reply,
    TokenLogProbability,
    Usage,
    refused,
)

_SPEECH = 2**32 - 1  # last part of the address of the contaminants' stream
_REMEMBERED = 256  # sessions under way; one that is forgotten is read again
_HEX_DIGITS = 15  # of a prompt's hash that make an address: 60 bits
_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")  # a word or a sign, with the blanks before it
_CHARACTERS = 4  # of a prompt that count as one token


class Synthetic(InProcess):
    """An agent of the library that reads prompts and replies as a provider would.

    A reply is a function of the prompt and the settings: asking again, in any order, gives the
    same one. (Sessions under way are remembered, but only to read faster.)

    With a sampling seed i the reply belongs to the session at ``session_stream(seed, *address,
    i)``. Its design, and with it the names of the actions, is drawn anew. The past is read from the
    prompt and learned from. The choice on trial t takes the t-th number of the stream. So a session
    through words is the session that ``play(agent, environment, seed, *address, i)`` lives, draw
    for draw. Where prompts tell of the last trials only, what came before is played again: the same
    stimuli, answered with the same numbers.

    Without one, the names are read from the prompt, and the choice takes a number from a stream
    addressed by the prompt's hash. The same prompt has the same answer; other prompts have
    independent ones. The probabilities of the choices are those of the same agent, which is checked
    on a few sessions. An agent to which the numbers of actions or contexts mean something is
    refused.

    At a temperature T the probabilities are p^(1/T), normalised. So a softmax agent has its beta
    and kappa divided by T. `top_p` keeps the most probable actions. Log-probabilities are those of
    the agent itself, lapses included, whatever the two, and given the words around the answer,
    which count as certain. A token is a word or a sign; of the prompt, four characters.

    Parameters
    ----------
    agent : Who answers; its lapse rate holds unless the contaminants have one.
    environment : The experiment, with the settings and wording of the prompts it will get.
    contaminants : How often answers go wrong; they take numbers from a stream of their own.
    seed_is_session : If False, a sampling seed does not name a session but only enters the hash of
        the prompt. This serves clients that send a seed of their own.
    stream : A number from 0 on. Choices then come from the stream at (*address, session, stream),
        instead of those of the session. So an agent answers the same session again with other
        numbers, and its answers go wrong in other trials.
    """

    provider = "synthetic"
    heeds = frozenset(
        {"temperature", "top_p", "max_tokens", "seed", "top_log_probabilities", "images"}
    )

    def __init__(
        self,
        agent: Model,
        environment: Environment,
        seed: int,
        *address: int,
        contaminants: Contaminants | None = None,
        seed_is_session: bool = True,
        stream: int | None = None,
    ):
        agent.check_plays(environment)
        session_stream(seed, *address)  # which checks both
        self.agent = agent
        self.environment = environment
        self.seed = seed
        self.address = address
        self.contaminants = contaminants or Contaminants()
        self.seed_is_session = seed_is_session
        self.stream = stream
        self.model = _name_of(agent, self.contaminants)
        self._sessions: OrderedDict[int | str, _Session] = OrderedDict()
        self._lock = Lock()
        self._fair: bool | None = None

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer the prompt; `Failed` if it is not one of the session that the seed names."""
        return self.answer(prompt, settings)

    def answer(self, prompt: Prompt, settings: Sampling) -> Reply:
        """Answer the prompt, as `complete` does, without waiting for anything."""
        if self.agent.given != "action":
            for name, plain in (("temperature", 1.0), ("top_p", 1.0), ("top_log_probabilities", 0)):
                if getattr(settings, name) not in (None, plain):
                    raise refused(
                        "A synthetic participant that answers with a number draws it from its "
                        f"distribution; got {name}={getattr(settings, name)!r}. Leave it out."
                    )
        if settings.reasoning_effort not in (None, "none"):
            raise refused(
                "A synthetic participant does not reason before it answers; got "
                f"reasoning_effort={settings.reasoning_effort!r}. Leave it out."
            )
        seed = settings.seed if self.seed_is_session else None
        try:
            if seed is not None:
                thought = self._in_session(prompt, seed)
            else:
                thought = self._anywhere(prompt, settings.seed)
        except ValueError as error:
            why = f"The agent has seed {self.seed}; the prompt may have another. "
            said = f"{'' if seed is None else why}{error}"
            raise Failed(said, "skip", "prompt", charged=False) from None
        return self._say(thought, prompt, settings)

    def _in_session(self, prompt: Prompt, number: int) -> _Thought:
        """Think about a prompt of the session with this number."""
        with self._lock:
            session = self._sessions.pop(number, None)  # nobody else's while it is in use
        session = session or self._begin(number)
        turns, observation = _read(session.environment, session.design, prompt.messages)
        trial = int(observation["trial"])
        if session.environment.past == "part":
            turns = session.remembered(turns, trial, self.contaminants)
        session.take_in(turns)
        numbers, (fault, chatter) = session.numbers[trial], session.speech[trial]
        if self.agent.given == "action":
            probabilities = session.probabilities(observation)
            said = session.sayings(observation)
            thought = _Thought(probabilities, said, numbers[0], fault, chatter)
        else:
            choices = [
                session.agent.choose(
                    seen, cast(np.random.Generator, _Next(session.numbers[int(seen["trial"])]))
                )
                for seen in session.environment.replies.together(session.design, observation)
            ]
            choice = choices[0] if len(choices) == 1 else tuple(choices)
            whole = session.environment.say(session.design.labels, choice, observation)
            part = session.environment.replies.n_given(prompt.messages)
            said = [session.environment.replies.spoken(whole)[part]]
            thought = _Thought([1.0], said, 0.0, fault, chatter)
        self._remember(number, session)
        return thought

    def _anywhere(self, prompt: Prompt, number: int | None) -> _Thought:
        """Think about a prompt of a session that nobody names."""
        if self._fair is None:
            self._fair = self.agent.given == "action" and self._is_fair()
        if not self._fair:
            raise refused(
                f"What {self.agent.name} answers depends on the session, which no prompt tells. "
                "Send the number of the session as the seed."
            )
        probabilities, said = self._overhear(prompt)
        parts = [int(prompt.hash[:_HEX_DIGITS], 16), *([] if number is None else [number])]
        choice, fault, chatter = session_stream(self.seed, *self.address, *parts).random(3).tolist()
        return _Thought(probabilities, said, choice, fault, chatter)

    def _overhear(self, prompt: Prompt) -> tuple[list[float], list[str]]:
        """Return the policy, and how actions are said, by the names that the prompt tells."""
        labels = labels_in(self.environment, prompt.messages)
        names = repr(labels)
        with self._lock:
            session = self._sessions.pop(names, None)
        if session is None:
            drawn = self.environment.draw(session_stream(self.seed, *self.address))
            design = replace(drawn, labels=labels)
            session = _Session(self.environment, design, self._fresh_agent())
        turns, observation = _read(session.environment, session.design, prompt.messages)
        session.take_in(turns)
        probabilities = session.probabilities(observation)
        said = session.sayings(observation)
        self._remember(names, session)
        return probabilities, said

    def _remember(self, key: int | str, session: _Session) -> None:
        with self._lock:
            self._sessions[key] = session
            while len(self._sessions) > _REMEMBERED:
                self._sessions.popitem(last=False)

    def _begin(self, number: int) -> _Session:
        rng = session_stream(self.seed, *self.address, number)
        design, n = self.environment.draw(rng), self.environment.n_trials
        address = (*self.address, number)
        if self.stream is not None:
            address = (*address, self.stream)
            rng = session_stream(self.seed, *address)
        numbers = rng.random((n, self.agent.n_uniforms)).tolist()
        speech = session_stream(self.seed, *address, _SPEECH).random((n, 2)).tolist()
        return _Session(self.environment, design, self._fresh_agent(), numbers, speech)

    def _fresh_agent(self) -> Model:
        """Return the agent as it is before any session."""
        return type(self.agent).from_theta(
            self.agent.theta,
            lapse=self.contaminants.lapse or self.agent.lapse,
            actions=self.environment.n_actions,
        )

    def _is_fair(self) -> bool:
        """Say whether the names that prompts tell give the probabilities of the session's names."""
        n = self.environment.n_trials
        for number in range(3):
            session = self._begin(number)
            environment = self.environment
            heard = Session(environment, session.design)
            for seen in heard:
                t = int(seen["trial"])
                if t in (1, 2, n // 4, n // 2, n - 1):
                    session.take_in(environment.recalled(heard.turns, seen))
                    exact = session.probabilities(seen)
                    overheard, said = self._overhear(heard.render())
                    by_name = dict(zip(said, overheard, strict=True))
                    named = [by_name[name] for name in session.sayings(seen)]
                    if not np.allclose(exact, named, rtol=1e-9, atol=1e-12):
                        return False
                action = int(session.numbers[t][0] * environment.n_actions)
                heard.take(action, heard.say(action))
        return True

    def _say(self, thought: _Thought, prompt: Prompt, settings: Sampling) -> Reply:
        shares = _tempered(thought.probabilities, settings.temperature, settings.top_p)
        action = _pick(shares, thought.choice)
        speak = self.contaminants.speak
        text, finish_reason = speak(thought.said[action], thought.fault, thought.chatter)
        tokens = tokens_of(text)
        limit = settings.max_tokens
        if limit is not None and len(tokens) > limit:
            tokens = tokens[:limit]
            text, finish_reason = "".join(tokens), "length"
        log_probabilities = None
        if settings.top_log_probabilities is not None:
            might = [
                tokens_of(speak(said, thought.fault, thought.chatter)[0]) for said in thought.said
            ]
            log_probabilities = _log_probabilities(
                tokens, might, thought.probabilities, settings.top_log_probabilities
            )
        characters = sum(len(message.content) for message in prompt.messages)
        usage = Usage(-(-characters // _CHARACTERS), len(tokens))
        return Reply(
            text, finish_reason, usage, self.model, text, log_probabilities=log_probabilities
        )


@dataclass(frozen=True)
class _Thought:
    """A policy on one trial, how each choice would be said, and the uniform numbers that decide.

    Of a participant who gives numbers it holds a single choice, drawn already.
    """

    probabilities: list[float]
    said: list[str]
    choice: float
    fault: float
    chatter: float


@dataclass
class _Session:
    """A session that is being read: its design, its numbers, and what its agent has learned.

    `learned` are the turns that the agent has taken in so far.
    """

    environment: Environment
    design: Design
    agent: Model
    numbers: list[list[float]] = field(default_factory=list)
    speech: list[list[float]] = field(default_factory=list)
    learned: list[Turn] = field(default_factory=list)

    def take_in(self, turns: Sequence[Turn]) -> None:
        """Learn from these turns, which are all there were, those not yet taken in."""
        n = len(self.learned)
        if list(turns[:n]) != self.learned:
            self.agent.reset()
            n = 0
        for turn in turns[n:]:
            if turn.action is not None or turn.response is not None:
                action = -1 if turn.action is None else turn.action
                reward = nan if turn.reward is None else turn.reward
                seen = {**turn.known}
                if turn.response is not None:
                    seen["response"] = turn.response
                self.agent.learn(seen, action, reward)
        self.learned = list(turns)

    def remembered(
        self, past: Sequence[Turn], until: int, contaminants: Contaminants
    ) -> list[Turn]:
        """Return all turns before a trial: those a prompt tells of, and the forgotten ones."""
        known = {int(turn.observation["trial"]): turn for turn in past}
        turns: list[Turn] = []
        as_learned = True
        for trial in range(until):
            as_learned = as_learned and trial < len(self.learned)
            if trial in known:
                turns.append(known[trial])
            elif as_learned:
                turns.append(self.learned[trial])
            else:
                turns.append(self._lived(turns, trial, contaminants))
            as_learned = as_learned and turns[trial] == self.learned[trial]
        return turns

    def _lived(self, turns: Sequence[Turn], trial: int, contaminants: Contaminants) -> Turn:
        """Answer a trial as it was answered then, faults of speech included."""
        environment, labels = self.environment, self.design.labels
        seen = {"trial": trial, **self.design.at(trial, environment.fields.shown)}
        self.take_in(turns)
        numbers = cast(np.random.Generator, _Next(self.numbers[trial]))
        said = environment.say(labels, self.agent.choose(seen, numbers), seen)
        text, finish_reason = contaminants.speak(said, *self.speech[trial])
        if finish_reason == "length":
            answer = environment.replies.cut(text, seen)
        else:
            answer = environment.parse(labels, text, seen)
        return Turn(seen, answer.action, None, text, answer.response)

    def probabilities(self, observation: Observation) -> list[float]:
        """Return the policy of the agent as it is."""
        shares: list[float] = self.agent.probabilities(observation).tolist()
        return shares

    def sayings(self, observation: Observation) -> list[str]:
        """Return how each action would be said."""
        environment, labels = self.environment, self.design.labels
        return [environment.say(labels, k, observation) for k in range(environment.n_actions)]


class _Next:
    """Numbers that were drawn before, handed out like those of a generator."""

    def __init__(self, numbers: list[float]):
        self.numbers = iter(numbers)

    def random(self, size: int | None = None) -> float | Array:
        """Return the next number, or the next few."""
        if size is None:
            return next(self.numbers)
        return np.array([next(self.numbers) for _ in range(size)])


def labels_in(environment: Environment, messages: Sequence[Message]) -> Any:
    """Return labels by which `environment.read` understands a prompt of an unknown session.

    Raises
    ------
    ValueError : If no session has the names that the prompt tells.
    Failed : If the names of this environment cannot be read from its prompts.
    """
    try:
        return environment.labels_in(messages)
    except NotImplementedError as error:
        raise refused(f"{error} Send the number of the session as the seed.") from None


def _name_of(agent: Model, contaminants: Contaminants) -> str:
    """Return the agent's name, exact to the last digit: runs with another are not to be mixed."""
    values = dict(zip(agent.parameters.names, agent.theta.tolist(), strict=True))
    values |= {"lapse": agent.lapse} if agent.lapse else {}
    values |= {name: rate for name, rate in asdict(contaminants).items() if rate}
    return f"{agent.name}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def _read(
    environment: Environment, design: Design, messages: Sequence[Message]
) -> tuple[list[Turn], Observation]:
    """Read a prompt, if need be without the system messages that a client has put before it."""
    try:
        turns, observation = environment.read(design, messages)
    except ValueError:
        rest = [message for message in messages if message.role != "system"]
        if len(rest) in (0, len(messages)):
            raise
        turns, observation = environment.read(design, rest)
    if len(turns) >= environment.n_trials:
        raise ValueError(
            f"A session of {environment.name} has {environment.n_trials} trials; the prompt tells "
            f"of {len(turns)} and asks for one more. Use the settings it was rendered with."
        )
    return turns, observation


def _pick(shares: list[float], u: float) -> int:
    """Return the action that `Model.choose` takes with this uniform number."""
    below = 0.0
    for action, share in enumerate(shares[:-1]):
        below += share
        if u < below:
            return action
    return len(shares) - 1


def _tempered(shares: list[float], temperature: float | None, top_p: float | None) -> list[float]:
    """Return the probabilities that are drawn from, given what the client asks for."""
    if temperature is not None and temperature != 1.0:
        top = max(shares)
        if temperature == 0.0:
            raised = [float(share == top) for share in shares]
        else:
            raised = [exp(log(s / top) / temperature) if s > 0.0 else 0.0 for s in shares]
        total = sum(raised)
        shares = [share / total for share in raised]
    if top_p is not None and top_p < 1.0:
        kept, held = [0.0] * len(shares), 0.0
        for action in sorted(range(len(shares)), key=lambda a: -shares[a]):
            if held >= top_p and held > 0.0:
                break
            kept[action] = shares[action]
            held += shares[action]
        shares = [share / held for share in kept]
    return shares


def tokens_of(text: str) -> list[str]:
    """Cut a text into words and signs; joined, they are the text."""
    return _TOKEN.findall(text)


def _log_probabilities(
    tokens: list[str], might: list[list[str]], shares: list[float], n_alternatives: int
) -> tuple[TokenLogProbability, ...]:
    """Return the log-probability of each token given those before it.

    Parameters
    ----------
    tokens : Those that were said.
    might : Those of each action, were it chosen.
    shares : Probability of each action.
    """
    alike = list(range(len(shares)))  # actions whose words are those said so far
    every = []
    for i, token in enumerate(tokens):
        mass: dict[str, float] = {}
        for action in alike:
            next_token = might[action][i] if i < len(might[action]) else ""
            mass[next_token] = mass.get(next_token, 0.0) + shares[action]
        total = sum(mass.values())
        ranked = sorted(mass.items(), key=lambda pair: -pair[1])
        logs = {name: log(share / total) if share > 0.0 else -inf for name, share in ranked}
        every.append(
            TokenLogProbability(token, logs[token], tuple(list(logs.items())[:n_alternatives]))
        )
        alike = [a for a in alike if i < len(might[a]) and might[a][i] == token]
    return tuple(every)
