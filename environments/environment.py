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
# A player gives an action, a number, both, or nothing that could be read.
Choice = int | float | tuple[int, float] | None
# One reply holds a choice, or the numbers of all trials that the reply answers.
Said = Choice | tuple[float, ...]
Given = Literal["action", "response", "both", "either"]
Past = Literal["none", "part", "all"]

_NUMBERS = (int, float, np.number)  # a tuple, since a union would be made anew at each step

MOST_NUMBERED = 10_000  # trials may number so many games, balloons and the like in a session
_WORDS = ("render", "parse", "say", "read")


class Turn(NamedTuple):
    """One past trial as its player knows it.

    Action, response and reward are None if nothing was given; the reward is also None where nothing
    is paid. `brought` has the feedback fields by name, if an answer was given.
    """

    observation: Observation
    action: int | None
    reward: float | None
    text: str = ""
    response: float | None = None
    brought: Mapping[str, float] = MappingProxyType({})

    def __hash__(self) -> int:
        """Return a hash; turns that are equal have the same one."""
        given = self.action, self.response, self.reward
        return hash((*self.observation.values(), *given, *self.brought.values()))

    @property
    def known(self) -> Observation:
        """The observation and what the answer brought."""
        return {**self.observation, **self.brought} if self.brought else self.observation


class Environment(ABC):
    """An experiment for one participant, a deterministic function of (design, actions).

    It holds no state of a session; a `Session` goes through the experiment trial by trial. An
    observation is a mapping with "trial" (from 0) and the stimulus fields.

    `render` makes what a player sees in words, and `parse` reads the player's words. Methods for
    words take the `labels` of the session's design first, since nothing else of a design may show
    in words. `read` takes the whole design, where it looks up what the words do not say. An
    experiment for numbers alone has no `render`, `parse`, `say` and `read`.

    Settings are class attributes that `setting` makes; `prepare` then makes everything else.

    Attributes
    ----------
    fields
        The fields that are recorded with each trial, shown or hidden; a table of `Field`s.
    sequence
        Fields within whose values trials follow each other; () if a session is one sequence.
    setting_table
        All settings, by attribute; made from the `setting`s of the class.
    size
        The setting to which the number of trials is proportional; None if it is fixed.
    given
        What a trial asks for: an "action", a "response" (a number), or "both"; "either" if some
        trials ask for an action and some for a number, as `asks` says.
    n_actions
        Actions are whole numbers from 0 to n_actions - 1; 0 if no trial asks for an action.
    response_range
        Lowest and highest response.
    ends_early
        Whether actions can make later trials fall away.
    performance_bounds
        Lowest and highest performance of a trial; None if a trial cannot be done well or badly.
    feedback
        Whether an action brings a reward. If not, the reward of every trial is None.
    world
        What happens between trials: the values of dependent fields, which trials fall away, what an
        action pays. By default an action pays what the table "payoffs" holds, or nothing without
        feedback.
    depletes
        Whether the payoff of an action depends on earlier actions in a way that no field shows, as
        with cards that are taken from a deck.
    changed_by
        The control that changes it, see `controls`; "" if none does.
    usual_model
        The name of the model that is taken where none is named; "" for one that plays it.
    searched
        What a search for a design tries for settings: a `Span`, some `Among`, what is `Searched` in
        parts, or None for all that the rule of the setting allows.
    published
        The paper's values of settings of which others are shipped.
    past
        What a prompt shows of earlier trials: "all"; a "part", such as the last ten (a model that
        remembers more has to keep the rest itself); or "none". With "none" each trial stands alone,
        and `read` finds no turns in its prompt.
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
    usual_model: ClassVar[str] = ""
    searched: ClassVar[Mapping[str, Any]] = {}
    published: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Gather the settings of a class."""
        super().__init_subclass__(**kwargs)
        if not cls.feedback and cls.world is Payoffs:
            cls.world = World
        cls.setting_table = settings_of(cls, cls.setting_table)
        for name in [name for name, declared in vars(cls).items() if isinstance(declared, Setting)]:
            delattr(cls, name)  # an attribute is read faster if its class has none of that name
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
        """Check settings against each other, and make what follows from them; this runs once."""

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment with the settings that the trials show; all others are as shipped.

        By default only the size is set, see `long_enough`.

        Raises
        ------
        ValueError
            If a column has a value that no setting allows.
        """
        return cls().long_enough(frame)

    def long_enough(self, frame: pd.DataFrame) -> Self:
        """Return the experiment with a larger size if a field of the trials is numbered higher."""
        for field in self.fields:
            sized = self.size in (field.setting, field.range) and field.name in frame
            if isinstance(field.range, str) and self.size and sized:
                count, size = getattr(self, field.range), self.settings[self.size]
                most = pd.to_numeric(frame[field.name], errors="coerce").max()
                if count <= most < MOST_NUMBERED:
                    larger = -(-size * (int(most) + 1) // count)
                    return type(self)(**{**self.settings, self.size: larger})
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, JSON-able: `make(name, **settings)` rebuilds it."""
        return {name: jsonable(value) for name, value in self._settings.items()}

    @property
    def pictures(self) -> bool:
        """Whether prompts show pictures, so that the participant must be able to see."""
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

        `columns` is an observation. If `given` is "either", the experiment says what each trial
        asks for. `columns` may then hold many trials, and an array of words is returned.
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

        All randomness of a session comes from its row. Permutations are the row's argsort, normal
        numbers its quantiles (`scipy.special.ndtri`).
        """

    def labels(self, uniforms: NDArray[np.float64]) -> Any:
        """Return the names that one session uses, given uniforms[n_draws]; JSON-able."""
        return ()

    @cached_property
    def drawn(self) -> dict[str, tuple[int, ...]]:
        """The design's tables: the shape of an entry for one trial, () for a single number."""
        tables = self.tables(np.full((1, self.n_draws), 0.5))
        return {name: table.shape[2:] for name, table in tables.items()}

    def draw(self, rng: np.random.Generator) -> Design:
        """Draw all that is random about a session."""
        uniforms = rng.random(self.n_draws)
        tables = self.tables(uniforms[None])
        return Design({name: table[0] for name, table in tables.items()}, self.labels(uniforms))

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return how well each trial was done, [rows]: the reward; NaN where a row has none.

        If the answer is a number and one number is `right`, it is 1 less the distance between the
        two, as a share of the scale.
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
        """Return the right number for each trial of these columns, NaN where a trial asks for none.

        None if the experiment knows no right numbers.
        """
        return None

    def recalled(self, turns: Sequence[Turn], observation: Observation) -> Sequence[Turn]:
        """Return the earlier turns that the prompt of a trial shows."""
        return () if self.past == "none" else turns

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        raise self._without_words()

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read an answer; an answer that cannot be read has an outcome and no action.

        If a reply answers several trials, the answer to this trial is returned.
        """
        raise self._without_words()

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        """Return an answer in the required form: the text of a cooperative participant.

        If one reply answers several trials, `choice` is a tuple with the number of each.
        """
        raise self._without_words()

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation: the inverse of `render`.

        If trials share a prompt, the observation is that of the first one.
        """
        raise self._without_words()

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return what is shown to a person who answers this trial by hand.

        Raises
        ------
        ValueError
            If the experiment, or the experiment with these settings, cannot be shown to people.
        """
        raise ValueError(
            f"{self.name} does not say what people are shown, so no page can be made of it. "
            "Write its screen, or make it a Retelling, which has one."
        )

    def outcome_text(self, labels: Any, turn: Turn) -> str:
        """Return what a person is shown after an answer; "" if nothing is shown."""
        return ""

    @classmethod
    def has_words(cls) -> bool:
        """Say whether the experiment has words; one without words is for numbers alone."""
        return any(getattr(cls, name) is not getattr(Environment, name) for name in _WORDS)

    def _without_words(self) -> ValueError:
        return ValueError(
            f"{self.name} has no words, so language models cannot take part in it, and no text "
            f"can be made of it. Write its {', '.join(_WORDS)}."
        )

    def truth(self, observation: Observation) -> NDArray[np.float64] | None:
        """Return the true probability of each action's outcome, [n_actions]; None if unknown."""
        return None

    def labels_in(self, messages: Sequence[Message]) -> Any:
        """Return the labels by which `read` understands a prompt from an unknown session.

        Raises
        ------
        NotImplementedError
            If the names of this experiment cannot be read from its prompts.
        ValueError
            If no session has the names that the prompt shows.
        """
        labels = self.draw(session_stream(0)).labels
        if labels:
            raise NotImplementedError(
                f"The names that a session of {self.name} uses cannot be read from its prompts."
            )
        return labels

    def complete(self, trials: Trials) -> pd.DataFrame:
        """Return the table of trials with the columns that follow from others; by default
        unchanged.

        Tables are completed before they are checked.
        """
        return trials.frame

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        """Yield the rules that trials keep besides the ranges of fields, one after the other.

        Each has the arguments of `Trials.require`: the rule as a sentence, whether each row keeps
        it, [rows], the columns whose values an error shows, and the remedy.
        """
        yield from ()

    def split(self, choice: Choice, given: Given | None = None) -> tuple[int | None, float | None]:
        """Return action and response of a player's choice; either is None if there is none.

        `given` is what the trial asks for; it is needed if trials differ in that.

        Raises
        ------
        ValueError
            If the choice is not what a trial of this experiment asks for, or is out of range.
        """
        given = given or self.given
        if type(choice) is int and given == "action" and 0 <= choice < self.n_actions:
            return choice, None  # the case of nearly all trials
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
    """Return the names of the columns that hold the answers."""
    given = environment.given
    return ("action", "response") if given in ("both", "either") else (given,)
