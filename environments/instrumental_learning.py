"""Instrumental learning: four casinos, two slot machines each, and no word on which is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .answer import MARKER, Answer, parse_label
from .design import Design
from .environment import Environment, Observation, Turn
from .prompt import Message, Prompt, Template, load_templates

if TYPE_CHECKING:
    from .trials import Trials

History = Literal["prompt", "chat"]
Reasoning = Literal["none", "chain_of_thought", "step_back"]
HISTORIES: tuple[str, ...] = get_args(History)
REASONINGS: tuple[str, ...] = get_args(Reasoning)

_SIZES = frozenset({"n_contexts", "n_visits", "n_trials"})
_PLACE = frozenset({"visit", "casino"})
WANTED = {
    "introduction": _SIZES,
    "history_begins": frozenset[str](),
    "history_line": _PLACE | {"label", "reward"},
    "missing_line": _PLACE,
    "question": _PLACE | {"first", "second"},
    "feedback": frozenset({"visit", "reward"}),
    "missing_feedback": frozenset({"visit"}),
    "silence": frozenset[str](),
    **{f"answer_{reasoning}": frozenset[str]() for reasoning in REASONINGS},
}

REQUIRED = {
    "history_line": ("casino", "label", "reward"),
    "missing_line": ("casino",),
    "question": ("casino", "first", "second"),
    "feedback": ("reward",),
}

_UNSEEN = "?"  # stands for a name that no prompt has told so far
_LETTERS = np.array(list("ABCDEFGHJKLMNPQRSTVW"))  # without I, O, U, X, Y, Z, easily mistaken


class InstrumentalLearning(Environment):
    """Two-armed bandits met in mixed order; each arm pays 1 or 0 at a rate of its own.

    Parameters
    ----------
    n_visits
        Visits to each casino, at least 1; 24 in the original.
    win_probability
        For each casino (context) the win probabilities of its two machines (actions 0 and 1).
    history
        "prompt" retells the past in one message; "chat" sends it as past turns.
    reasoning
        "none" asks for the letter alone; "chain_of_thought" and "step_back" for thoughts first
        and the answer in a marked last line.
    templates
        A TOML file with wording of your own; None for ours, `instrumental_learning.toml`.
    """

    name = "instrumental_learning"
    summary = "four two-armed bandits in mixed order, wins of 1 or 0"
    source = "Lefebvre, Lebreton, Meyniel, Bourgeois-Gironde and Palminteri 2017, experiment 1"
    stimulus = ("context",)
    wording = ("first",)
    n_actions = 2

    def __init__(
        self,
        n_visits: int = 24,
        win_probability: Sequence[Sequence[float]] = (
            (0.25, 0.25),
            (0.25, 0.75),
            (0.75, 0.25),
            (0.75, 0.75),
        ),
        history: History = "prompt",
        reasoning: Reasoning = "none",
        templates: str | None = None,
    ):
        if isinstance(n_visits, bool) or not isinstance(n_visits, int | np.integer) or n_visits < 1:
            raise ValueError(f"n_visits is a whole number from 1 on; got {n_visits!r}.")
        for factor, chosen, known in (
            ("history", history, HISTORIES),
            ("reasoning", reasoning, REASONINGS),
        ):
            if chosen not in known:
                raise ValueError(f"{factor} is one of {', '.join(known)}; got {chosen!r}.")
        self.n_visits = int(n_visits)
        self.win_probability = _rates(win_probability)
        self.history = history
        self.reasoning = reasoning
        self.templates = templates
        self.n_contexts = len(self.win_probability)

        self._load_words(templates)
        self._heard: dict[tuple[int | str, ...], Any] = {}
        self._told: dict[tuple[float | None, ...], str] = {}
        self._contexts = np.repeat(np.arange(self.n_contexts), self.n_visits)
        self._sheets = -(-2 * self.n_contexts // len(_LETTERS))
        # A uniform number below the threshold: machine 0 wins, machine 1 wins, 1 is named first.
        half = np.full((self.n_contexts, 1), 0.5)
        self._thresholds = np.hstack([self.win_probability, half])

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "n_visits": self.n_visits,
            "win_probability": self.win_probability.tolist(),
            "history": self.history,
            "reasoning": self.reasoning,
            "templates": self.templates,
        }

    @property
    def n_trials(self) -> int:
        """Visits to all casinos together."""
        return self.n_contexts * self.n_visits

    @property
    def bounds(self) -> dict[str, tuple[int, int] | tuple[float, float]]:
        """Contexts are numbered from 0; machine 0 or 1 is mentioned first."""
        return {"context": (0, self.n_contexts - 1), "first": (0, 1)}

    @property
    def n_draws(self) -> int:
        """Four numbers per trial, then those that shuffle the names."""
        return 4 * self.n_trials + self._sheets * len(_LETTERS) + self.n_contexts

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the order of visits, what both machines would pay, and the order of mention."""
        n, n_trials = len(uniforms), self.n_trials
        context = self._contexts[np.argsort(uniforms[:, :n_trials], axis=1)]
        thrown = uniforms[:, n_trials : 4 * n_trials].reshape(n, n_trials, 3)
        below = thrown < self._thresholds[context]
        return {
            "context": context,
            "payoffs": below[..., :2].astype(np.float64),
            "first": below[..., 2].astype(np.int64),
        }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        """Return each context's casino number and the letters of its two machines."""
        rest = uniforms[4 * self.n_trials :]
        sheets = np.argsort(rest[: -self.n_contexts].reshape(self._sheets, -1), axis=1)
        letters = _LETTERS[sheets.ravel()]
        return {
            "casinos": (np.argsort(rest[-self.n_contexts :]) + 1).tolist(),
            "machines": letters[: 2 * self.n_contexts].reshape(-1, 2).tolist(),
        }

    def rewards(self, design: Design, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the actions of whole sessions pay."""
        payoffs: NDArray[np.float64] = design.table["payoffs"]
        return np.take_along_axis(payoffs, actions[..., None], axis=-1)[..., 0]

    def check(self, trials: Trials) -> None:
        """Raise ValueError at the first trial this experiment cannot have produced."""
        super().check(trials)
        if "reward" not in trials.frame:
            raise ValueError(
                f"Trials of {self.name} have a column 'reward'; got only "
                f"{', '.join(trials.frame.columns)}. Map one with --columns reward=YOUR_NAME."
            )
        reward = trials.frame["reward"].to_numpy()
        wrong = np.flatnonzero(~(np.isnan(reward) | (reward == 0) | (reward == 1)))
        if len(wrong):
            raise ValueError(
                f"Rewards of {self.name} are 0 or 1; {trials.place(wrong[0])} has "
                f"{reward[wrong[0]]:g}. Recode them, for example 1 for a win and 0 for none."
            )
        gap = np.flatnonzero(np.isnan(reward) != trials.frame["action"].isna().to_numpy())
        if len(gap):
            has = (
                "an action but no reward" if np.isnan(reward[gap[0]]) else "a reward but no action"
            )
            raise ValueError(
                f"A reward is there exactly where an action is; {trials.place(gap[0])} has {has}. "
                "Fill it in, or drop the row."
            )

    def render(self, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the visit, and the visits before it, into words."""
        if self.history == "prompt":
            past = "\n".join(self._line(turn) for turn in turns)
            whole = self._retold if turns else self._opening
            return Prompt((Message("user", self._fill(whole, observation, past=past)),))
        messages: list[Message] = []
        for before, now in pairwise([None, *turns, Turn(observation, None, None)]):
            assert now is not None
            form = self._opening if before is None else self._following[before.action is None]
            told = {} if before is None else {"reward": _points(before.reward)}
            messages.append(Message("user", self._fill(form, now.observation, **told)))
            messages.append(Message("assistant", self._reply(now)))
        return Prompt(tuple(messages[:-1]))

    def parse(self, text: str, observation: Observation) -> Answer:
        """Read which machine the answer names."""
        labels = self._machines(observation)
        return parse_label(text, labels, marked=self.reasoning != "none", noun="machine")

    def say(self, action: int, observation: Observation) -> str:
        """Answer as asked."""
        label: str = self._machines(observation)[action]
        if self.reasoning == "none":
            return label
        return f"I go by what these two machines have paid so far.\n{MARKER} {label}"

    def read(self, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation.

        Past turns told in one prompt carry no order of mention, so theirs is left out. What was
        read before in this session is remembered, since each prompt repeats the one before. Raises
        ValueError if the messages are not a prompt of this environment with these settings.
        """
        if len(messages) % 2 == 0 or (self.history == "prompt" and len(messages) > 1):
            raise ValueError(
                f'A prompt of {self.name} with history "{self.history}" has '
                f"{'one message' if self.history == 'prompt' else 'an odd number of messages'}; "
                f"got {len(messages)}. Use the settings it was rendered with."
            )
        turns: list[Turn] = []
        opening = messages[0].content
        if self.history == "prompt" and (found := self._retold.read(opening)) is not None:
            turns = [self._read_line(line, t) for t, line in enumerate(found["past"].split("\n"))]
            return turns, self._seen(found, len(turns))
        observation = self._seen(_must_read(self._opening, opening), 0)
        asked = opening
        for answer, message in zip(messages[1::2], messages[2::2], strict=True):
            told = (len(turns), asked, answer.content, message.content)
            if told not in self._heard:
                self._heard[told] = self._read_exchange(
                    observation, answer.content, message.content
                )
            turn, observation = self._heard[told]
            turns.append(turn)
            asked = message.content
        return turns, observation

    def names_told(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return labels by which `read` understands a prompt of a session that is not known.

        Casinos are numbered as they are called, the machines of each in the order of their
        letters; letters that the prompt does not tell are filled with a sign that is none.

        Raises
        ------
        ValueError
            If the prompt tells of more machines than a casino has.
        """
        letters: list[set[str]] = [set() for _ in range(self.n_contexts)]
        casinos = list(range(1, self.n_contexts + 1))
        known = {str(number): heard for number, heard in zip(casinos, letters, strict=True)}
        for casino, named in self._named(messages):
            known.get(casino, set()).update(named)
        for number, heard in known.items():
            if len(heard) > self.n_actions:
                raise ValueError(
                    f"A casino has {self.n_actions} machines; the prompt names "
                    f"{', '.join(sorted(heard))} in casino {number}. "
                    "Use the settings and templates it was rendered with."
                )
        machines = [(sorted(heard) + [_UNSEEN] * 2)[: self.n_actions] for heard in letters]
        return {"casinos": casinos, "machines": machines}

    def _begin(self, design: Design) -> None:
        self._payoffs = design.table["payoffs"].tolist()
        self._heard, self._told = {}, {}  # their names are those of the session

    def _reward(self, trial: int, action: int) -> float:
        payoff: float = self._payoffs[trial][action]
        return payoff

    def _load_words(self, templates: str | None) -> None:
        words = load_templates(templates or Path(__file__).with_suffix(".toml"), WANTED, REQUIRED)
        for name in ("history_line", "missing_line"):
            if "\n" in words[name].text:
                raise ValueError(f"The template {name!r} is one line; {templates} has several.")
        asked = f"{words['question'].text}\n{words['answer_' + self.reasoning].text}"
        begun = words["introduction"].render(
            n_contexts=self.n_contexts, n_visits=self.n_visits, n_trials=self.n_trials
        )
        self._opening = Template(f"{begun}\n\n{asked}")
        self._retold = Template(f"{begun}\n\n{words['history_begins'].text}\n{{past}}\n\n{asked}")
        self._following = [
            Template(f"{words[name].text.replace('{visit}', '{visit_before}')}\n\n{asked}")
            for name in ("feedback", "missing_feedback")
        ]
        self._lines = [words["history_line"], words["missing_line"]]
        self._silence = words["silence"].text

    def _fill(self, form: Template, observation: Observation, **told: object) -> str:
        labels = self._machines(observation)
        first = int(observation["first"])
        return form.render(
            visit=int(observation["trial"]) + 1,
            visit_before=int(observation["trial"]),
            casino=self._casino(observation),
            first=labels[first],
            second=labels[1 - first],
            **told,
        )

    def _line(self, turn: Turn) -> str:
        """Return a line of the history; each prompt repeats those of the one before."""
        seen = turn.observation
        play = (seen["trial"], seen["context"], turn.action, turn.reward)
        line = self._told.get(play)
        if line is None:
            line = self._told[play] = self._line_anew(turn)
        return line

    def _line_anew(self, turn: Turn) -> str:
        seen = turn.observation
        place = {"visit": int(seen["trial"]) + 1, "casino": self._casino(seen)}
        if turn.action is None:
            return self._lines[True].render(**place)
        label = self._machines(seen)[turn.action]
        return self._lines[False].render(**place, label=label, reward=_points(turn.reward))

    def _reply(self, turn: Turn) -> str:
        """Return a past reply as it came; no provider takes an empty one."""
        if turn.text.strip():
            return turn.text
        return self._silence if turn.action is None else self.say(turn.action, turn.observation)

    def _read_exchange(
        self, observation: Observation, answer: str, message: str
    ) -> tuple[Turn, Observation]:
        """Read a reply and the message that followed it."""
        action, reward = None, None
        found = self._following[False].read(message)
        if found is None:
            found = _must_read(self._following[True], message)
        else:
            action = self.parse(answer, observation).action
            reward = _number(found["reward"])
            if action is None:
                raise ValueError(
                    f"A reply that was rewarded names a machine; got {answer[:60]!r}. "
                    "Use the seed, settings and templates it was rendered with."
                )
        turn = Turn(observation, action, reward, "" if answer == self._silence else answer)
        return turn, self._seen(found, int(observation["trial"]) + 1)

    def _read_line(self, line: str, trial: int) -> Turn:
        turn: Turn | None = self._heard.get((trial, line))
        if turn is None:
            turn = self._heard[trial, line] = self._read_line_anew(line, trial)
        return turn

    def _read_line_anew(self, line: str, trial: int) -> Turn:
        action, reward = None, None
        found = self._lines[False].read(line) or _must_read(self._lines[True], line)
        seen = self._place(found, trial)
        if "label" in found:
            action = _find(found["label"], self._machines(seen))
            reward = _number(found["reward"])
        return Turn(seen, action, reward)

    def _named(self, messages: Sequence[Message]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the casinos that the messages tell of, each with the machines named in it."""
        first, *later = [m.content for m in messages if m.role == "user"] or [""]
        found = self._retold.read(first) or self._opening.read(first)
        if found is None:
            return []  # `read` will say what is wrong
        lines = [_names_in(tuple(self._lines), line) for line in found.get("past", "").split("\n")]
        asked = [_names_in(tuple(self._following), message) for message in later]
        return [(found["casino"], (found["first"], found["second"])), *lines, *asked]

    def _seen(self, found: Mapping[str, str], trial: int) -> Observation:
        seen = self._place(found, trial)
        return {**seen, "first": _find(found["first"], self._machines(seen))}

    def _place(self, found: Mapping[str, str], trial: int) -> Observation:
        casinos = [str(number) for number in self.design.labels["casinos"]]
        return {"trial": trial, "context": _find(found["casino"], casinos)}

    def _machines(self, observation: Observation) -> list[str]:
        letters: list[str] = self.design.labels["machines"][observation["context"]]
        return letters

    def _casino(self, observation: Observation) -> int:
        number: int = self.design.labels["casinos"][observation["context"]]
        return number


def _rates(win_probability: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    rule = "win_probability holds two probabilities, from 0 to 1, for each casino"
    try:
        rates = np.array(win_probability, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{rule}; got {win_probability!r}.") from None
    if rates.ndim != 2 or rates.shape[1] != 2 or not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"{rule}; got {rates.tolist()}.")
    return rates


@lru_cache(maxsize=2**14)  # prompts of one session repeat what the earlier ones told
def _names_in(forms: tuple[Template, ...], text: str) -> tuple[str, tuple[str, ...]]:
    """Return the casino, and the machines named in it, of one line or message."""
    for form in forms:
        found = form.read(text)
        if found is not None:
            names = (found[name] for name in ("label", "first", "second") if name in found)
            return found["casino"], tuple(names)
    return "", ()


def _points(reward: float | None) -> str:
    return "nothing" if reward is None else f"{reward:g}"


def _find(label: str, labels: Sequence[str]) -> int:
    if label not in labels:
        raise ValueError(
            f"The prompt names {label!r} where the session has {', '.join(labels)}. "
            "Use the seed, settings and templates it was rendered with."
        )
    return labels.index(label)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"A reward in a prompt is a number; got {text!r}.") from None


def _must_read(form: Template, text: str) -> dict[str, str]:
    found = form.read(text)
    if found is None:
        raise ValueError(
            "The prompt is not one of instrumental_learning with these settings; it begins "
            f"{text[:60]!r}. Use the settings and templates it was rendered with."
        )
    return found
