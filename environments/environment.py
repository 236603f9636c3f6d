"""What every experiment provides: a design, a step interface, and words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.words.answer import Answer
from knownminds.environments.words.prompt import Message, Prompt
from knownminds.environments.words.screen import Screen

from .design import Design, session_stream
from .fields import Fields, Setting, documented, jsonable, settings_of, signature_of
from .replies import Replies
from .world import Drawn, Payoffs, World, plain

if TYPE_CHECKING:
    import pandas as pd

    from knownminds.environments.record.trials import TrialRule, Trials

Observation = Mapping[str, int | float]
# What a player gives: an action, a number, both, or nothing that could be read.
Choice = int | float | tuple[int, float] | None
# What is said in one reply: a choice, or the numbers of all trials that the reply answers.
Said = Choice | tuple[float, ...]
Given = Literal["action", "response", "both", "either"]
Past = Literal["none", "part", "all"]

_NUMBERS = (int, float, np.number)  # a tuple: a union would be made anew at each step

_WORDS = ("render", "parse", "say", "read")


@dataclass(frozen=True)
class Turn:
    """One past trial as its player knows it.

    Action, response and reward are None if nothing was given, the reward also where none is paid.
    `brought` are the feedback fields, by name, where something was given.
    """

    observation: Observation
    action: int | None
    reward: float | None
    text: str = ""
    response: float | None = None
    brought: Mapping[str, float] = field(default_factory=dict)

    @property
    def known(self) -> Observation:
        """What was seen and what it brought."""
        return {**self.observation, **self.brought} if self.brought else self.observation


class Environment(ABC):
    """An experiment for one participant, a deterministic function of (design, actions).

    `reset` and `step` have the shape of Gymnasium's. An observation is a mapping with
    "trial" (from 0) and the stimulus fields. What a player sees in words is `render`, what their
    words mean is `parse`; neither touches the session's state. An experiment for numbers alone
    needs neither, nor `say` and `read`.

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

    _design: Design | None = None
    _trial: int = 0
    _end: int = 0

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
        # Of a class with a separate constructor the signature is that one's.
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

        Raises
        ------
        ValueError
            If a column tells what no setting is.
        """
        return cls()

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

    def render(self, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        raise self._without_words()

    def parse(self, text: str, observation: Observation) -> Answer:
        """Read an answer; what cannot be read has an outcome and no action.

        Of a reply that answers several trials it is the answer to this one.
        """
        raise self._without_words()

    def say(self, choice: Any, observation: Observation) -> str:
        """Return an answer in the required form: the text of a cooperative participant.

        Where one reply answers several trials, `choice` is a tuple with the number of each.
        """
        raise self._without_words()

    def read(self, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation: the inverse of `render`.

        Of trials that share a prompt, the observation is the first.
        """
        raise self._without_words()

    def screen(self, observation: Observation) -> Screen:
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

    def outcome_text(self, turn: Turn) -> str:
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

    @property
    def design(self) -> Design:
        """The design of the present session."""
        if self._design is None:
            raise RuntimeError("A session begins with reset(); it has not been called yet.")
        return self._design

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a session: draw its design from the seed, or take `options["design"]`."""
        design = (options or {}).get("design")
        if design is None:
            entropy = np.random.SeedSequence().entropy if seed is None else seed
            design = self.draw(session_stream(int(entropy)))  # type: ignore[arg-type]
        self._design = design
        # Plain lists: a step loop spends most of its time on NumPy scalars otherwise.
        self._stimuli = [
            (name, None if name in self.fields.dependent else design.table[name].tolist())
            for name in self.fields.shown
        ]
        present = design.table.get("present")
        self._absent = [] if present is None else np.logical_not(present).tolist()
        self._end = self.n_trials
        self._world, self._cursor = self.world(), Drawn(design.table)
        self._world.begin()
        span = self.world.span
        self._spans = [] if span is None else design.table[span].tolist()
        self._span: Any = None
        self._gone = self.world.falls_for_good and span is not None
        # One that shows nothing and remembers nothing gives rewards alone.
        self._goes_on = self.world.show is not World.show or bool(vars(self._world))
        self._pays = self._goes_on or self.world.pay is not World.pay
        self._trial = self._next(0)
        return self._observation(), {}

    def step(
        self, choice: Choice
    ) -> tuple[Observation | None, float | None, bool, bool, dict[str, Any]]:
        """Take what a player gives (None if it could not be read) and go to the next trial.

        Returns observation, reward, terminated, truncated, info. The observation is None after
        the last trial. The reward is None where none is paid, and for a missing answer, which
        also has info["missing"]. Where there are feedback fields, info["brought"] has them.
        """
        t = self._trial
        if t >= self._end:
            if self._design is None:
                raise RuntimeError("A session begins with reset(); step() was called before it.")
            raise RuntimeError(
                f"The session ended after {self.n_trials} trials; call reset() for a new one."
            )
        action: int | None
        if type(choice) is int and self.given == "action" and 0 <= choice < self.n_actions:
            action = choice  # what nearly all steps are
        else:
            given = self.given if self.given != "either" else self.asks(self._observation())
            action, _ = self.split(choice, given)
        reward = None
        brought: dict[str, float] = {}
        if self._pays:
            if not self._goes_on:
                self._cursor.at(t)
            paid = self._world.pay(self._cursor, -1 if action is None else action)
            if type(paid) is dict:
                brought = {name: plain(paid[name]) for name in self.fields.feedback}
                paid = paid["reward"]
            reward = None if choice is None else plain(paid)
        self._trial = t = self._next(t + 1)
        over = t >= self._end
        info: dict[str, Any] = {"missing": True} if choice is None else {}
        if brought and choice is not None:
            info["brought"] = brought
        return None if over else self._observation(), reward, over, False, info

    def split(self, choice: Choice, given: Given | None = None) -> tuple[int | None, float | None]:
        """Return action and response of what a player gives, each None if there is none.

        `asked` is what the trial asks for, needed where that differs between trials.

        Raises
        ------
        ValueError
            If it is not what a trial of this experiment asks for, or out of range.
        """
        if choice is None:
            return None, None
        action: Any = None
        response: Any = None
        given = given or self.given
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

    def _next(self, trial: int) -> int:
        """Return the first trial from this one on that happens; n_trials if none does."""
        absent, spans, end = self._absent, self._spans, self._end
        while trial < end and absent and absent[trial]:
            trial += 1
        while self._goes_on and trial < end:
            if not (absent and absent[trial]):
                if spans and spans[trial] != self._span:
                    self._span = spans[trial]
                    self._world.begin()
                self._cursor.at(trial)
                self._showing = self._world.show(self._cursor)
                if self._showing.get("present", True):
                    break
                while self._gone and trial + 1 < end and spans[trial + 1] == self._span:
                    trial += 1
            trial += 1
        return trial

    def _turn_to(self, trial: int) -> Observation:
        """Show a trial of the present session out of its turn.

        For experiments in which none hangs on those before it: see `check_questions`.
        """
        self._trial = trial
        if self._goes_on:
            self._cursor.at(trial)
            self._showing = self._world.show(self._cursor)
        return self._observation()

    def concealed_at(self, trial: int) -> dict[str, int | float]:
        """Return the hidden fields of the present trial."""
        depends = [name for name in self.fields.hidden if name in self.fields.dependent]
        drawn = [name for name in self.fields.hidden if name not in depends]
        left = {name: plain(self._showing[name]) for name in depends}
        return {**self.design.at(trial, drawn), **left}

    def _observation(self) -> Observation:
        t = self._trial
        shown: dict[str, int | float] = {"trial": t}
        for name, column in self._stimuli:
            shown[name] = plain(self._showing[name]) if column is None else column[t]
        return shown

    def __repr__(self) -> str:
        """Show the settings."""
        inside = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"{type(self).__name__}({inside})"


def answer_columns(environment: Environment) -> tuple[str, ...]:
    """Return the columns of trials in which answers stand."""
    given = environment.given
    return ("action", "response") if given in ("both", "either") else (given,)
