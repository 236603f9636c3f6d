"""The base of experiments on the estimation of magnitudes: windows, conditions, modalities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from knownminds.environments.design import Design
from knownminds.environments.fields import (
    ENDS,
    YES_OR_NO,
    CheckedBy,
    Field,
    Fields,
    Number,
    OneOf,
    OrNone,
    Whole,
    as_given,
    coded,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, decimal, parse_number
from knownminds.environments.words.history import Filled, Retelling
from knownminds.environments.words.prompt import Message, Prompt, Template
from knownminds.environments.words.screen import Screen
from knownminds.environments.words.slots import Slot

from . import drawing

Modality = Literal["text", "image", "text+image", "all"]
Condition = Literal[
    "base",
    "verbal",
    "numeric",
    "numeric_biased",
    "constant_noise",
    "gradual_noise",
    "short_context",
    "long_context",
    "reversed",
]
Stimuli = Literal["published", "decoupled"]
Range = Sequence[float]

WINDOWS = ("short", "medium", "long")
MODALITIES = ("text", "image", "text+image")
CONDITIONS: tuple[str, ...] = get_args(Condition)
STIMULI: tuple[str, ...] = get_args(Stimuli)
CONTEXT = {"short_context": 3, "long_context": 20}  # earlier trials retold; 10 elsewhere
BLUR = {"constant_noise": 8.0, "gradual_noise": 16.0}  # px; gradual noise grows to this
MOST_BLUR = 20.0  # px; with more blur a picture could not be shown exactly
_KINDS = ("text", "image", "both")  # the modalities, as templates name them
_BETWEEN = " / "  # between the lines of a stimulus that is shown in one line


def windows_of(name: str, given: Any) -> tuple[str, ...]:
    """Return the chosen windows; ValueError if a name is unknown or stands twice."""
    chosen = [given] if isinstance(given, str) else list(given)
    if not chosen or set(chosen) - set(WINDOWS) or len(set(chosen)) < len(chosen):
        raise ValueError(f"{name} are one or more of {_among(WINDOWS)}, each once; got {given!r}.")
    return tuple(chosen)


def _stimuli(name: str, given: Any) -> str | None:
    """Return the kind of stimuli; the settings hold "published", which came first, as None."""
    kind = OneOf(STIMULI)(name, STIMULI[0] if given is None else given)
    return None if kind == STIMULI[0] else str(kind)


def _to_ceiling(environment: Magnitude) -> tuple[float, float]:
    return 0.0, environment.ceiling


class Magnitude(Retelling):
    """Estimate a magnitude that is shown in words, shown in a picture, or both.

    A session has up to three windows: ranges of stimuli that overlap by half. Nothing is carried
    over from one window to the next. A window shows `n_values` equally spaced values, each
    `repeats` times, in mixed order. A prompt retells the last few trials of the window, with the
    stimulus (and its picture) and the participant's answer. The truth is never shown.

    With the modality "all" a window is passed through three times: first in words, then in
    pictures, then in both. The stimuli and their order stay the same, and earlier passes are not
    retold. Sessions with the same seed have the same stimuli in every modality and condition.

    Each condition changes one thing. "verbal" says that the material is noisy and should be weighed
    as a Bayesian observer would. "numeric" says that too, and gives the range of the window;
    "numeric_biased" gives a wrong range. "constant_noise" and "gradual_noise" blur the pictures,
    evenly or more and more along a window. "short_context" and "long_context" retell 3 and 20
    trials instead of 10. "reversed" shows the stimuli of each window in reversed order. Words are
    never blurred, so noise needs pictures.

    In published stimuli something besides the magnitude gives much of it away: the pixels before a
    marker, the length of one line, the steps of a path, the words of a dialogue. Decoupled stimuli
    have the same magnitudes, and are made so that these things reveal little or nothing of them
    (`knownminds audit shortcuts` says how much).

    An item has the same number in every pass and order. Models divide values and answers by the
    unit. The response is the estimate.

    Attributes
    ----------
    default_ranges : Lowest and highest value of each window.
    limits : Lowest and highest value that any range may have.
    ceiling : Highest answer.
    modalities : The ways in which the stimulus can be shown.
    n_wording : Uniform numbers per stimulus that decide what is shown besides the value.
    decoupled : Further fields of decoupled stimuli, and how many uniform numbers decide on them.
    """

    usual_model = "static_bayes_observer"
    searched: ClassVar = {
        "n_values": Span(3, 33),
        "repeats": Span(1, 12),
        "continuous": Among((False, True)),
    }

    fields = Fields(
        Field("window", (0, len(WINDOWS) - 1), "0 short, 1 medium, 2 long"),
        Field("value", _to_ceiling, "the true magnitude", unit="as the answer"),
        Field("modality", (0, len(MODALITIES) - 1), "0 text, 1 image, 2 both"),
        Field("blur", (0.0, MOST_BLUR), "standard deviation of the Gaussian blur", unit="px"),
        Field("condition", (0, len(CONDITIONS) - 1), coded(CONDITIONS)),
        Field("item", "n_items", "stimulus of its window, from 0"),
        Field(
            "unit",
            lambda environment: (0.0, 2 * environment.ceiling),
            "lowest plus highest of all",
            unit="as the answer",
        ),
        Field("ceiling", _to_ceiling, "highest answer", unit="as the answer"),
    )
    sequence = ("window",)
    given = "response"
    n_actions = 0
    feedback = False
    performance_bounds = (-np.inf, 1.0)
    past = "part"

    kinds: ClassVar[tuple[str, ...]] = _KINDS
    slots: ClassVar = {"response": Slot("response")}

    default_ranges: ClassVar[Mapping[str, tuple[float, float]]]
    limits: ClassVar[tuple[float, float]]
    ceiling: ClassVar[float]
    modalities: ClassVar[tuple[str, ...]] = MODALITIES
    n_wording: int = 0
    _words_tell: bool = True  # whether words alone show the value
    decoupled: ClassVar[tuple[Fields, int]] = (Fields(), 0)

    @abstractmethod
    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        """Return the values that can be shown, nearest to targets[N, windows, items].

        The result has "value" and the columns of `wording`, all of the same shape. uniforms has
        n_wording numbers per target, [N, windows, n_wording, items].
        """

    @abstractmethod
    def _text(self, observation: Observation) -> Sequence[str]:
        """Return the stimulus in words, line by line."""

    @abstractmethod
    def _value_in(self, lines: Sequence[str]) -> float:
        """Return the value that these words show; ValueError if they are not a stimulus."""

    def _drawn(self, observation: Observation) -> Image:
        """Return the stimulus as a picture."""
        raise NotImplementedError

    modality: Modality = setting(
        "text",
        CheckedBy(as_given, f"one of {', '.join(MODALITIES)}, all"),
        "How stimuli are shown: text, image, text+image, or all for one after the other.",
    )
    condition: Condition = setting(
        "base", OneOf(CONDITIONS), "What is changed; one of `CONDITIONS`."
    )
    windows: tuple[str, ...] = setting(
        WINDOWS,
        CheckedBy(windows_of, "one or more of short, medium and long, each once"),
        'Which of "short", "medium" and "long" are shown, in this order.',
    )
    n_values: int = setting(11, Whole(2), "Values of a window.")
    repeats: int = setting(3, Whole(1), "How often each value is shown.", size=True)
    continuous: bool = setting(
        False, YES_OR_NO, "If True, the n_values x repeats values are drawn evenly from the window."
    )
    ranges: dict[str, tuple[float, float]] = setting(
        None,
        CheckedBy(as_given, "lowest and highest value of each window, or None"),
        'Lowest and highest value of each window, {"short": (low, high), ...}; None for ours.',
    )
    context: int = setting(
        None,
        OrNone(Whole(0)),
        "How many earlier trials are retold; None for 10, or 3 and 20 in the conditions on it.",
    )
    blur: float = setting(
        None,
        OrNone(Number(0.0, MOST_BLUR, unit="px")),
        "Standard deviation of the Gaussian blur in px: throughout (constant_noise; None for 8) "
        "or at the end (gradual_noise; None for 16).",
    )
    biased_range: tuple[float, float] = setting(
        (0.0, 0.5), ENDS, "The range that numeric_biased names, as shares of the window."
    )
    stimuli: Stimuli = setting(
        None,
        CheckedBy(_stimuli, f"one of {', '.join(STIMULI)}"),
        "published, as others have shown them (None too); or decoupled, in which no shortcut "
        "reveals the value.",
        last=True,
    )

    def prepare(self) -> None:
        self.stimuli = self._settings["stimuli"] or "published"
        if self.stimuli == "decoupled":
            more, n_more = self.decoupled
            self.fields = Fields(*self.fields, *more)
            self.n_wording += n_more
        self._check_noise()
        self.ranges = self._checked_ranges(self._settings["ranges"])
        context, blur = self._settings["context"], self._settings.get("blur")
        self.context = CONTEXT.get(self.condition, 10) if context is None else int(context)
        self.blur = BLUR.get(self.condition, 0.0) if blur is None else float(blur)
        self.unit = min(low for low, _ in self.ranges.values())
        self.unit += max(high for _, high in self.ranges.values())
        self.response_range = (0.0, self.ceiling)
        self._slack = 0.02 * self.unit  # a value is the nearest that can be shown
        self._introduce(self._choose_words())

    def _check_noise(self) -> None:
        """Check the modality, and that only a modality with pictures is blurred."""
        known = (*self.modalities, *(("all",) if len(self.modalities) > 1 else ()))
        modality, condition, blur = self.modality, self.condition, self._settings.get("blur")
        if modality not in known:
            raise ValueError(f"modality of {self.name} is {_among(known)}; got {modality!r}.")
        if condition in BLUR and modality == "text":
            raise ValueError(
                f"Noise blurs pictures; {self.name} with modality 'text' and condition "
                f"{condition!r} has none. Take another of both; modalities are {_among(known)}."
            )
        if blur is not None and condition not in BLUR:
            raise ValueError(
                f"blur belongs to the conditions {' and '.join(BLUR)}; got blur={blur!r} with "
                f"condition {condition!r}. Leave it out."
            )

    @property
    def pictures(self) -> bool:
        """Whether prompts show pictures, so that the participant must be able to see."""
        return self.modality != "text"

    @property
    def n_items(self) -> int:
        """How many stimuli a window has."""
        return self.n_values * self.repeats

    @property
    def passes(self) -> tuple[int, ...]:
        """The modalities in which each window is shown, in order."""
        return (0, 1, 2) if self.modality == "all" else (MODALITIES.index(self.modality),)

    @property
    def n_trials(self) -> int:
        return len(self.windows) * len(self.passes) * self.n_items

    @property
    def n_draws(self) -> int:
        """The position and the value of each stimulus, and what else is shown of it."""
        return len(self.windows) * (2 + self.n_wording) * self.n_items

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the stimuli in the order in which they are shown."""
        n, n_windows, n_items = len(uniforms), len(self.windows), self.n_items
        drawn = uniforms.reshape(n, n_windows, 2 + self.n_wording, n_items)
        order = np.argsort(drawn[:, :, 0], axis=2, kind="stable")
        if self.condition == "reversed":
            order = order[..., ::-1]
        ranges = np.array([self.ranges[window] for window in self.windows])
        if self.continuous:
            position = drawn[:, :, 1]
        else:
            steps = np.repeat(np.linspace(0.0, 1.0, self.n_values), self.repeats)
            position = np.broadcast_to(steps, order.shape)
        targets = ranges[:, :1] + position * (ranges[:, 1:] - ranges[:, :1])
        shown = self._make(targets, drawn[:, :, 2:])
        passes = np.array(self.passes)
        pictured = passes[:, None] > 0  # [passes, 1]
        blurred = np.full(n_items, self.blur)
        if self.condition == "gradual_noise":
            blurred = np.linspace(0.0, self.blur, n_items)
        positions = np.array([WINDOWS.index(window) for window in self.windows])
        columns: dict[str, NDArray[Any]] = {
            "window": positions[:, None, None],
            "modality": passes[:, None],
            "blur": np.where(pictured, blurred, 0.0),
            "condition": np.array(CONDITIONS.index(self.condition)),
            "item": order[:, :, None],
            "unit": np.array(float(self.unit)),
            "ceiling": np.array(float(self.ceiling)),
        }
        for name, values in shown.items():
            columns[name] = np.take_along_axis(values, order, axis=2)[:, :, None]
        whole = (n, n_windows, len(passes), n_items)
        return {
            name: np.broadcast_to(columns[name], whole).reshape(n, self.n_trials)
            for name in self.fields.shown
        }

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return 1 less the squared error, relative to answering the middle of the window, [rows].

        The reference is the mean squared error of that constant answer over the values of the
        window. So the mean performance of a whole session is 1 - NRMSE squared. NaN where there is
        no answer.
        """
        window, value, response = map(trials.numbers, ("window", "value", "response"))
        score = np.full(len(trials), np.nan)
        for name in self.windows:
            low, high = self.ranges[name]
            span = high - low
            n = self.n_values
            spread = span**2 / 12 * (1 if self.continuous else (n + 1) / (n - 1))
            rows = window == WINDOWS.index(name)
            score[rows] = 1 - (response[rows] - value[rows]) ** 2 / spread
        return score

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the magnitudes."""
        return np.asarray(columns["value"], dtype=float)

    def recalled(self, turns: Sequence[Turn], observation: Observation) -> Sequence[Turn]:
        same_pass = [turn for turn in turns if _pass_of(turn.observation) == _pass_of(observation)]
        return same_pass[max(len(same_pass) - self.context, 0) :]

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        every = [*self.recalled(turns, observation), Turn(observation, None, None)]
        n = 0
        for i, turn in enumerate(every):
            if turn.observation["modality"]:
                n += 1
                every[i] = turn._replace(observation={**turn.observation, "picture": n})
        prompt = super().render(labels, every[-1].observation, every[:-1])
        if not n:
            return prompt
        pictures = [self.picture(turn.observation) for turn in every]
        if self.history == "prompt":
            (message,) = prompt.messages
            return Prompt((Message(message.role, message.content, tuple(pictures)),))
        messages = list(prompt.messages)
        for k, picture in enumerate(pictures):
            question = messages[2 * k]
            messages[2 * k] = Message(question.role, question.content, (picture,))
        return Prompt(tuple(messages))

    def screen(self, labels: Any, observation: Observation) -> Screen:
        if not observation["modality"]:
            return super().screen(labels, observation)
        shown = super().screen(labels, {**observation, "picture": 1})
        return replace(shown, images=(self.picture(observation),))

    def picture(self, observation: Observation) -> bytes:
        """Return the picture of a stimulus as PNG, whether or not its trial shows it."""
        names = ("value", "blur", *self.fields.wording)
        return _picture(self, tuple((name, observation[name]) for name in names))

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation.

        The trial's number gives its window, pass and stimulus, by the session's design; the words
        give the value. Raises ValueError if the messages are not a prompt of this environment with
        these settings, or if a picture is not that of the design.
        """
        turns, observation = super().read(design, messages)
        pictures = [picture for message in messages for picture in message.images]
        every = (*(turn.observation for turn in turns), observation)
        shown = [seen for seen in every if seen["modality"]]
        if len(pictures) != len(shown):
            raise ValueError(
                f"A prompt of {self.name} with modality {self.modality!r} has a picture for each "
                f"trial that it shows; got {len(pictures)} for {len(shown)}. Use the settings it "
                "was rendered with."
            )
        for seen, picture in zip(shown, pictures, strict=True):
            if not drawing.same(picture, self.picture(seen)):
                raise self._another(seen, "picture")
        return turns, observation

    def _another(self, seen: Observation, what: str) -> ValueError:
        return ValueError(
            f"The {what} of trial {int(seen['trial']) + 1} is not the one of this session of "
            f"{self.name}. Use the seed, settings and templates it was rendered with."
        )

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        marked = self.reasoning != "none"
        return parse_number(text, *self.response_range, marked, self.marker)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        return self._aloud(decimal(choice))

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        remedy = "Use the settings that the trials were made with, or recode them."
        allowed: dict[str, list[float]] = {
            "condition": [CONDITIONS.index(self.condition)],
            "window": [WINDOWS.index(window) for window in self.windows],
            "modality": list(self.passes),
            "unit": [self.unit],
            "ceiling": [self.ceiling],
        }
        for name, values in allowed.items():
            near = np.isclose(trials.numbers(name)[:, None], values, rtol=1e-9, atol=0.0)
            known = " or ".join(f"{value:g}" for value in values)
            yield f"The {name} with these settings is {known}", near.any(axis=1), (name,), remedy
        blur, pictured = trials.numbers("blur"), trials.numbers("modality") > 0
        least = 0.0 if self.condition == "gradual_noise" else self.blur
        yield (
            f"The blur is 0 without a picture, {least:g} to {self.blur:g} with one",
            np.where(pictured, (blur >= least) & (blur <= self.blur), blur == 0.0),
            ("modality", "blur"),
            remedy,
        )
        value, at = trials.numbers("value"), trials.numbers("window")
        low, high = np.array([self.ranges[window] for window in WINDOWS])[at.astype(np.int64)].T
        yield (
            f"Values lie in the range of their window, of {self.ranges}",
            (value >= low - self._slack) & (value <= high + self._slack),
            ("window", "value"),
            "Set ranges to those that were shown.",
        )

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the task with the condition, modality and repeats that its trials show."""
        if not {"condition", "modality", "item"} <= set(frame.columns):
            return cls()
        values = {}
        for column, names in (("condition", CONDITIONS), ("modality", MODALITIES)):
            codes = frame[column].to_numpy(dtype=float, na_value=np.nan)
            if not np.isin(codes, np.arange(len(names))).all():
                return cls()
            values[column] = [names[int(code)] for code in dict.fromkeys(codes.tolist())]
        settings: dict[str, Any] = {"condition": values["condition"][0]}
        if cls.decoupled[0] and set(cls.decoupled[0].wording) <= set(frame.columns):
            settings["stimuli"] = "decoupled"
        settings["modality"] = values["modality"][0] if len(values["modality"]) == 1 else "all"
        plain = cls(**settings)
        repeats = -(-(int(frame["item"].max()) + 1) // plain.n_values)
        settings["repeats"] = max(repeats, plain.repeats)
        return cls(**settings)

    def complete(self, trials: Trials) -> pd.DataFrame:
        """Return the table of trials with the columns that follow from the settings.

        These are condition, unit and ceiling; the modality, if there is one; the blur, unless it
        grows; and the item, which is the trial's number in its window, unless the window was passed
        through again.
        """
        frame = trials.frame
        follow: dict[str, Any] = {
            "condition": CONDITIONS.index(self.condition),
            "unit": float(self.unit),
            "ceiling": float(self.ceiling),
        }
        if len(self.passes) == 1:
            follow["modality"] = self.passes[0]
            if self.condition != "gradual_noise":
                follow["blur"] = self.blur
            if "window" in frame:
                groups = frame.groupby(["subject", "session", "window"], sort=False, dropna=False)
                follow["item"] = groups.cumcount()
        lacking = {name: column for name, column in follow.items() if name not in frame}
        return frame.assign(**lacking) if lacking else frame

    def _kind(self, observation: Observation) -> str:
        return _KINDS[int(observation["modality"])]

    def _words(self, labels: Any, observation: Observation) -> dict[str, object]:
        words: dict[str, object] = {"trial": int(observation["trial"]) + 1}
        if "picture" in observation:
            words["picture"] = observation["picture"]
        if observation["modality"] != 1:
            lines = self._text(observation)
            words |= {"stimulus": "\n".join(lines), "stimulus_in_line": _BETWEEN.join(lines)}
        if self.condition in ("numeric", "numeric_biased"):
            low, high = self.ranges[WINDOWS[int(observation["window"])]]
            below, above = self.biased_range if self.condition == "numeric_biased" else (0.0, 1.0)
            words["low"] = decimal(round(low + below * (high - low), 4))
            words["high"] = decimal(round(low + above * (high - low), 4))
        return words

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        trial = int(filled["trial"]) - 1 if filled["trial"].isdecimal() else -1
        table = design.table
        if not 0 <= trial < self.n_trials or _KINDS[int(table["modality"][trial])] != kind:
            raise ValueError(
                f"The prompt tells of trial {filled['trial']}, which this session does not have "
                "in that modality. Use the settings it was rendered with."
            )
        seen: dict[str, int | float] = {"trial": trial}
        seen |= {name: table[name][trial].item() for name in self.fields.shown}
        for name, between in (("stimulus", "\n"), ("stimulus_in_line", _BETWEEN)):
            lines = filled[name].split(between) if name in filled else None
            if lines and self._words_tell and not seen["modality"]:
                seen["value"] = self._value_in(lines)
            elif lines and lines != self._text(seen):
                raise self._another(seen, "stimulus in words")
        return seen

    def _must_read(self, forms: Mapping[Any, Template], text: str) -> tuple[Any, dict[str, str]]:
        """Return the form of a sentence and its words; trial and picture must be numbers."""
        for key, form in forms.items():
            filled = form.read(text)
            if filled and all(filled.get(name, "0").isdecimal() for name in ("trial", "picture")):
                return key, filled
        return super()._must_read({}, text)

    def _introduce(self, words: Mapping[str, Template]) -> None:
        """Add to the introduction how stimuli are given, and what the condition adds."""
        steering = {"verbal": "verbal", "numeric": "numeric", "numeric_biased": "numeric"}
        added = steering.get(self.condition)
        begun = words["introduction"].text
        for kind in self.kinds:
            said = f"{begun} {words[f'stimulus_{kind}'].text}"
            said += f"\n\n{words[added].text}" if added else ""
            self._begun[kind] = Template(said)
            for forms in (self._opening, self._retold):
                forms[kind] = Template(said + forms[kind].text[len(begun) :])

    def _checked_ranges(self, given: Mapping[str, Range] | None) -> dict[str, tuple[float, float]]:
        if given is None:
            return dict(self.default_ranges)
        if not isinstance(given, Mapping) or set(given) != set(WINDOWS):
            raise ValueError(
                f"ranges has lowest and highest value of {_among(WINDOWS, 'and')}; got {given!r}."
            )
        least, most = self.limits
        ranges = {window: ENDS(f"ranges of {window}", given[window]) for window in WINDOWS}
        for window, (low, high) in ranges.items():
            if low < least or high > most:
                raise ValueError(
                    f"Values of {self.name} lie between {least:g} and {most:g}; the range of "
                    f"{window} is {low:g} to {high:g}."
                )
        return ranges


@lru_cache(maxsize=512)  # prompts repeat the pictures of earlier ones
def _picture(environment: Magnitude, shown: tuple[tuple[str, float], ...]) -> bytes:
    return drawing.png(environment._drawn(dict(shown)))


def _pass_of(observation: Observation) -> tuple[float, float]:
    return observation["window"], observation["modality"]


def _among(names: Sequence[str], last: str = "or") -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]
