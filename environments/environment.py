"""What every experiment provides: designs of sessions, and words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.words.answer import Answer
from knownminds.environments.words.prompt import Message, Prompt
from knownminds.environments.words.screen import Screen

from .design import Design, session_stream
from .fields import Fields, Setting, documented, jsonable, settings_of, signature_of
from .later import pandas as pd
from .replies import Replies
from .world import Payoffs, World

if TYPE_CHECKING:
    from knownminds.environments.record.trials import TrialRule, Trials

Observation = Mapping[str, int | float]
# What a player gives: an action, a number, both, or nothing that could be read.
Choice = int | float | tuple[int, float] | None
# What is said in one reply: a choice, or the numbers of all trials that the reply answers.
Said = Choice | tuple[float, ...]
Given = Literal["action", "response", "both", "either"]
Past = Literal["none", "part", "all"]

_NUMBERS = (int, float, np.number)  # a tuple: a union would be made anew at each step

MOST_NUMBERED = 10_000  # games, balloons and the like of a session that trials may tell
_WORDS = ("render", "parse", "say", "read")


class Turn(NamedTuple):
    """One past trial as its player knows it.

    Action, response and reward are None if nothing was given, the reward also where none is paid.
    `brought` are the feedback fields, by name, where something was given.
    """

    observation: Observation
    action: int | None
    reward: float | None
    text: str = ""
    response: float | None = None
    brought: Mapping[str, float] = MappingProxyType({})

    def __hash__(self) -> int:
        """Turns that are equal have the same."""
        given = self.action, self.response, self.reward
        return hash((*self.observation.values(), *given, *self.brought.values()))

    @property
    def known(self) -> Observation:
        """What was seen and what it brought."""
        return {**self.observation, **self.brought} if self.brought else self.observation


class Environment(ABC):
    """An experiment for one participant, a deterministic function of (design, actions).

    It holds nothing of a session: `Session` goes through one, trial by trial. An observation is a
    mapping with "trial" (from 0) and the stimulus fields.

    What a player sees in words is `render`, what their words mean is `parse`. Words take the
    `labels` of the session's design first, since nothing else of a design may show in them; `read`
    takes the whole design, in which it looks up what no words tell. An experiment for numbers
    alone has no `render`, `parse`, `say` and `read`.

    What can be set are class attributes that `setting` makes; `prepare` then makes the rest.

    Attributes
    ----------
    fields
        What is recorded with each trial, shown or hidden; a table of `Field`s.
    sequence
        Fields within whose values trials follow each other; () where a session is one sequence.
    setting_table
        What can be set, by attribute; made of the class's `setting`s.
    size
        The setting to which the number of trials is proportional; None if it is fixed.
    given
        What a trial asks for: an "action", a "response" (a number), or "both"; "either" where
        some trials ask for the one and some for the other, as `asks` says.
    n_actions
        Actions are whole numbers from 0 to n_actions - 1; 0 if a trial asks for none.
    response_range
        Lowest and highest response.
    ends_early
        Whether actions can make later trials fall away.
    performance_bounds
        Between which values the performance of a trial lies; None where trials cannot be done
        well or badly.
    feedback
        Whether an action brings a reward. Where it does not, that of every trial is None.
    world
        What happens between trials: what dependent fields show, which trials fall away, what an
        action pays. By default what the table "payoffs" holds, or nothing without feedback.
    depletes
        Whether what an action pays hangs on earlier actions that no field shows, as cards that
        are taken from a deck.
    changed_by
        Which control changes it, see `controls`; "" if none does.
    past
        What a prompt tells of earlier trials: "all", a "part" such as the last ten (a model that
        remembers more has to live through the rest by itself), or "none": each trial then stands
        alone, and `read` finds no turns in its prompt.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    fields: Fields = Fields()
    sequence: ClassVar[tuple[str, ...]] = ()
    setting_table: ClassVar[dict[str, Setting]] = {}
    size: str | None = None
    given: ClassVar[Given] = "action"
    n_actions: int
    response_range: tuple[float, float] = (0.0, 1.0)
    performance_bounds: tuple[float, float] | None = (-np.inf, np.inf)
    ends_early: bool = False
    feedback: ClassVar[bool] = True
    depletes: bool = False
    past: ClassVar[Past] = "all"
    world: type[World] = Payoffs
    changed_by: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Gather the settings of a class."""
        super().__init_subclass__(**kwargs)
        if not cls.feedback and cls.world is Payoffs:
            cls.world = World
        cls.setting_table = settings_of(cls, cls.setting_table)
        for name in [name for name, declared in vars(cls).items() if isinstance(declared, Setting)]:
            delattr(cls, name)  # an attribute is read faster where its class has none of that name
        sizes = [
            declared.called or name for name, declared in cls.setting_table.items() if declared.size
        ]
        if sizes:
            cls.size = sizes[0]
        # A class with a constructor of its own keeps that constructor's signature.
        has_constructor = "__init__" in vars(cls)
        cls.__signature__ = None if has_constructor else signature_of(cls.setting_table)  # type: ignore[attr-defined]
        if cls.__doc__ and "__doc__" in vars(cls):
            cls.__doc__ = documented(cls.__doc__, cls.fields, cls.setting_table)

    def __init__(self, *values: Any, **settings: Any):
        given = signature_of(self.setting_table).bind(*values, **settings)
        given.apply_defaults()
        self._settings: dict[str, Any] = {}
        for name, declared in self.setting_table.items():
            called = declared.called or name
            self._settings[called] = declared.rule(called, given.arguments[called])
            setattr(self, name, self._settings[called])
        self.prepare()

    def prepare(self) -> None:  # noqa: B027
        """Check settings against each other, and make what follows from them; once, at first."""

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment with the settings that trials tell; as shipped where they do not.

        By default its size, where a field is numbered beyond what ships.

        Raises
        ------
        ValueError
            If a column tells what no setting is.
        """
        plain = cls()
        for field in plain.fields:
            sized = plain.size in (field.setting, field.range) and field.name in frame
            if isinstance(field.range, str) and plain.size and sized:
                count, size = getattr(plain, field.range), plain.settings[plain.size]
                most = pd.to_numeric(frame[field.name], errors="coerce").max()
                if count <= most < MOST_NUMBERED:
                    return cls(**{plain.size: -(-size * (int(most) + 1) // count)})
        return plain

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, JSON-able: `make(name, **settings)` rebuilds it."""
        return {name: jsonable(value) for name, value in self._settings.items()}

    @property
    def pictures(self) -> bool:
        """Whether prompts show pictures, so that who answers must be able to see."""
        return False

    @property
    @abstractmethod
    def n_trials(self) -> int:
        """How many trials a session has at most.

        Some may fall away: those that the design leaves out (a table "present" says which), and
        those that earlier actions make pointless. The others keep their numbers.
        """

    def asks(self, columns: Mapping[str, Any]) -> Any:
        """Return what a trial asks for: "action", "response" or "both".

        `columns` is an observation. Where `given` is "either" an experiment says what trials ask
        for, and `columns` may hold those of many trials: an array of words is then returned.
        """
        return self.given

    @property
    def replies(self) -> Replies:
        """How replies make up answers; by default each trial has one."""
        return Replies(self)

    @property
    @abstractmethod
    def n_draws(self) -> int:
        """How many uniform numbers make a session."""

    @abstractmethod
    def tables(self, uniforms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        """Make the tables of N sessions from uniforms[N, n_draws], each [N, n_trials, ...].

        All that is random about a session comes from its row. Permutations are its argsort,
        normal numbers its quantiles (`scipy.special.ndtri`).
        """

    def labels(self, uniforms: NDArray[np.float64]) -> Any:
        """Name what one session, uniforms[n_draws], calls by names; JSON-able."""
        return ()

    @cached_property
    def drawn(self) -> dict[str, tuple[int, ...]]:
        """The design's tables: the shape of what each holds for a trial, () for one number."""
        tables = self.tables(np.full((1, self.n_draws), 0.5))
        return {name: table.shape[2:] for name, table in tables.items()}

    def draw(self, rng: np.random.Generator) -> Design:
        """Draw all that is random about a session."""
        uniforms = rng.random(self.n_draws)
        tables = self.tables(uniforms[None])
        return Design({name: table[0] for name, table in tables.items()}, self.labels(uniforms))

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return how well each trial was done, [rows]: the reward; NaN where a row has none.

        Of numbers of which one is `right`, 1 less the distance from it as a share of the scale.
        """
        frame = trials.frame
        if self.given != "action" and self.performance_bounds is not None:
            columns = [name for name in self.fields.stimulus if name in frame]
            right = self.right({name: trials.numbers(name) for name in columns})
            if right is not None:
                low, high = self.response_range
                return 1.0 - np.abs(trials.numbers("response") - right) / (high - low)
        if not self.feedback or "reward" not in frame:
            return np.full(len(frame), np.nan)
        return frame["reward"].to_numpy(dtype=float, na_value=np.nan)

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64] | None:
        """Return the right number for each trial of these columns, NaN where none is wanted.

        None of an experiment that knows none.
        """
        return None

    def recalled(self, turns: Sequence[Turn], observation: Observation) -> Sequence[Turn]:
        """Return those of the earlier turns that the prompt of a trial tells of."""
        return () if self.past == "none" else turns

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        raise self._without_words()

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read an answer; what cannot be read has an outcome and no action.

        Of a reply that answers several trials it is the answer to this one.
        """
        raise self._without_words()

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        """Return an answer in the required form: the text of a cooperative participant.

        Where one reply answers several trials, `choice` is a tuple with the number of each.
        """
        raise self._without_words()

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation: the inverse of `render`.

        Of trials that share a prompt, the observation is the first.
        """
        raise self._without_words()

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return what a person is shown who sits in this trial and answers by hand.

        Raises
        ------
        ValueError
            If the experiment, or these settings of it, cannot be shown to people.
        """
        raise ValueError(
            f"{self.name} says nowhere what people are shown, so that no page can be made of it. "
            "Write its screen, or make it a Retelling, which has one."
        )

    def outcome_text(self, labels: Any, turn: Turn) -> str:
        """Return what a person is shown after an answer; empty where that is nothing."""
        return ""

    @classmethod
    def has_words(cls) -> bool:
        """Say whether it can be put into words; one without is for numbers alone."""
        return any(getattr(cls, name) is not getattr(Environment, name) for name in _WORDS)

    def _without_words(self) -> ValueError:
        return ValueError(
            f"{self.name} has no words, so that models which read and answer cannot sit in it, and "
            f"no text can be made of it. Write its {', '.join(_WORDS)}."
        )

    def truth(self, observation: Observation) -> NDArray[np.float64] | None:
        """Return the true probability of each action's outcome, [n_actions]; None if none has."""
        return None

    def labels_in(self, messages: Sequence[Message]) -> Any:
        """Return labels by which `read` understands a prompt of a session that is not known.

        Raises
        ------
        NotImplementedError
            If the names of this experiment cannot be read from its prompts.
        ValueError
            If no session has the names that the prompt tells.
        """
        labels = self.draw(session_stream(0)).labels
        if labels:
            raise NotImplementedError(
                f"The names that a session of {self.name} uses cannot be read from its prompts."
            )
        return labels

    def complete(self, trials: Trials) -> pd.DataFrame:
        """Return the table of trials, with columns that follow from others; by default, as it is.

        Tables are completed before they are checked.
        """
        return trials.frame

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        """Yield what its trials keep beside the ranges of fields, one rule after the other.

        Each is what `Trials.require` takes: the rule as a sentence, whether each row keeps it,
        [rows], the columns whose values an error shows, and the remedy.
        """
        yield from ()

    def split(self, choice: Choice, given: Given | None = None) -> tuple[int | None, float | None]:
        """Return action and response of what a player gives, each None if there is none.

        `given` is what the trial asks for, needed where that differs between trials.

        Raises
        ------
        ValueError
            If it is not what a trial of this experiment asks for, or out of range.
        """
        given = given or self.given
        if type(choice) is int and given == "action" and 0 <= choice < self.n_actions:
            return choice, None  # what nearly all trials are given
        if choice is None:
            return None, None
        action: Any = None
        response: Any = None
        if given == "response":
            response = choice
        elif given == "both" and isinstance(choice, tuple):
            action, response = choice
        else:
            action = choice
        if given != "response" and not (
            isinstance(action, _NUMBERS) and 0 <= action < self.n_actions and action == int(action)
        ):
            raise ValueError(
                f"Actions of {self.name} are whole numbers from 0 to {self.n_actions - 1} "
                f"(or None for a missing answer); got {choice!r}."
            )
        low, high = self.response_range
        if given != "action" and not (isinstance(response, _NUMBERS) and low <= response <= high):
            pair = " beside the action, (action, response)" if given == "both" else ""
            raise ValueError(
                f"Responses of {self.name} are numbers from {low:g} to {high:g}{pair} "
                f"(or None for a missing answer); got {choice!r}."
            )
        return (
            None if action is None else int(action),
            None if response is None else float(response),
        )

    def __repr__(self) -> str:
        """Show the settings."""
        inside = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"{type(self).__name__}({inside})"


def answer_columns(environment: Environment) -> tuple[str, ...]:
    """Return the columns of trials in which answers stand."""
    given = environment.given
    return ("action", "response") if given in ("both", "either") else (given,)
