"""What every experiment provides: a design, a step interface, and words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .answer import CUT_OFF, Answer, Outcome
from .design import Design, session_stream
from .prompt import Message, Prompt

if TYPE_CHECKING:
    from .trials import Trials

Observation = Mapping[str, int | float]


@dataclass(frozen=True)
class Turn:
    """One past trial as its player knows it.

    Action and reward are None if nothing was chosen, the reward also where none is paid.
    """

    observation: Observation
    action: int | None
    reward: float | None
    text: str = ""


class Environment(ABC):
    """An experiment for one participant, a deterministic function of (design, actions).

    `reset` and `step` have the shape of Gymnasium's. An observation is a mapping with
    "trial" (from 0) and the stimulus fields. What a player sees in words is `render`, what their
    words mean is `parse`; neither touches the session's state.

    Attributes
    ----------
    stimulus
        Fields of the observation that are recorded as columns, and that trials must have.
    wording
        Further fields that matter only for the words, such as the order of mention; recorded,
        but not demanded of trials that come from elsewhere.
    n_actions
        Actions are whole numbers from 0 to n_actions - 1.
    feedback
        Whether an action brings a reward. Where it does not, that of every trial is None.
    retold
        Whether a player is told of earlier trials. Where not, each trial stands alone: a prompt
        is that of its trial, and `read` finds no turns in it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    stimulus: ClassVar[tuple[str, ...]] = ()
    wording: ClassVar[tuple[str, ...]] = ()
    n_actions: int
    feedback: ClassVar[bool] = True
    retold: ClassVar[bool] = True

    _design: Design | None = None
    _trial: int = 0

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, JSON-able: `make(name, **settings)` rebuilds it."""

    @property
    @abstractmethod
    def n_trials(self) -> int:
        """How many trials a session has."""

    @property
    def bounds(self) -> dict[str, tuple[int, int] | tuple[float, float]]:
        """Lowest and highest value of each field of the observation but "trial"."""
        return dict.fromkeys((*self.stimulus, *self.wording), (-np.inf, np.inf))

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

    def draw(self, rng: np.random.Generator) -> Design:
        """Draw all that is random about a session."""
        uniforms = rng.random(self.n_draws)
        tables = self.tables(uniforms[None])
        return Design({name: table[0] for name, table in tables.items()}, self.labels(uniforms))

    def rewards(self, design: Design, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the actions of a whole session pay, [n_trials]; NaN without feedback.

        The design's tables and the actions may have a leading axis of sessions.
        """
        return np.full(np.shape(actions), np.nan)

    @abstractmethod
    def render(self, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""

    @abstractmethod
    def parse(self, text: str, observation: Observation) -> Answer:
        """Read an answer; what cannot be read has an outcome and no action."""

    def parse_cut(self, text: str, observation: Observation) -> Answer:
        """Read an answer that was cut off at the limit of tokens: by default, nothing."""
        return Answer(Outcome.TRUNCATED, text=text, note=CUT_OFF)

    @abstractmethod
    def say(self, action: int, observation: Observation) -> str:
        """Answer as asked: the text of a cooperative participant."""

    @abstractmethod
    def read(self, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation: the inverse of `render`."""

    def truth(self, observation: Observation) -> NDArray[np.float64] | None:
        """Return the true probability of each action's outcome, [n_actions]; None if none has."""
        return None

    def names_told(self, messages: Sequence[Message]) -> Any:
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

    def check(self, trials: Trials) -> None:
        """Raise ValueError at the first trial this experiment cannot have produced."""
        frame = trials.frame
        for column in (*self.stimulus, "action"):
            if column not in frame:
                raise ValueError(
                    f"Trials of {self.name} have a column {column!r}; got only "
                    f"{', '.join(frame.columns)}. Map one with --columns {column}=YOUR_NAME."
                )
        action = frame["action"]
        wrong = np.flatnonzero(((action < 0) | (action >= self.n_actions)).fillna(False))
        if len(wrong):
            allowed = ", ".join(map(str, range(self.n_actions)))
            raise ValueError(
                f"Actions of {self.name} are {allowed}; {trials.place(wrong[0])} has "
                f"{action[wrong[0]]}. Recode the actions to whole numbers from 0."
            )
        if not self.feedback and "reward" in frame and frame["reward"].notna().any():
            row = int(np.flatnonzero(frame["reward"].notna())[0])
            raise ValueError(
                f"{self.name} pays no rewards; {trials.place(row)} has {frame['reward'][row]:g}. "
                "Leave the column 'reward' out."
            )

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
        self._design, self._trial = design, 0
        # Plain lists: a step loop spends most of its time on NumPy scalars otherwise.
        self._fields = (*self.stimulus, *self.wording)
        self._stimuli = [design.table[name].tolist() for name in self._fields]
        self._begin(design)
        return self._observation(), {}

    def step(
        self, action: int | None
    ) -> tuple[Observation | None, float | None, bool, bool, dict[str, Any]]:
        """Take an action (None if no readable one was given) and go to the next trial.

        Returns observation, reward, terminated, truncated, info. The observation is None after
        the last trial. The reward is None without feedback, and for a missing action, which
        also has info["missing"].
        """
        if self._design is None:
            raise RuntimeError("A session begins with reset(); step() was called before it.")
        if self._trial >= self.n_trials:
            raise RuntimeError(
                f"The session ended after {self.n_trials} trials; call reset() for a new one."
            )
        if action is None:
            reward = None
        elif 0 <= action < self.n_actions and action == int(action):
            reward = self._reward(self._trial, int(action))
        else:
            raise ValueError(
                f"Actions of {self.name} are whole numbers from 0 to {self.n_actions - 1} "
                f"(or None for a missing answer); got {action!r}."
            )
        self._trial += 1
        over = self._trial >= self.n_trials
        info = {"missing": True} if action is None else {}
        return None if over else self._observation(), reward, over, False, info

    def _observation(self) -> Observation:
        t = self._trial
        shown: dict[str, int | float] = {"trial": t}
        for name, column in zip(self._fields, self._stimuli, strict=True):
            shown[name] = column[t]
        return shown

    def _begin(self, design: Design) -> None:  # noqa: B027
        """Prepare whatever the session needs."""

    def _reward(self, trial: int, action: int) -> float | None:
        """Return what the action pays on this trial; None without feedback."""
        return None

    def __repr__(self) -> str:
        """Show the settings."""
        inside = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"{type(self).__name__}({inside})"
