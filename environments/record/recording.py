"""What an experiment records: fields and answers, their checks, and how well trials were done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.configured import Configured
from knownminds.environments.later import pandas as pd
from knownminds.environments.turn import Choice, Given

if TYPE_CHECKING:
    from .trials import TrialRule, Trials

_NUMBERS = (int, float, np.number)  # a tuple, since a union would be made anew at each step


class Recording(Configured):
    """The trials of an experiment as a record has them.

    Attributes
    ----------
    fields : The fields that are recorded with each trial, shown or hidden; a table of `Field`s.
    given : What a trial asks for: an "action", a "response" (a number), or "both"; "either" if some
        trials ask for an action and some for a number, as `asks` says.
    n_actions : Actions are whole numbers from 0 to n_actions - 1; 0 if no trial asks for an action.
    response_range : Lowest and highest response.
    performance_bounds : Lowest and highest performance of a trial; None if a trial cannot be done
        well or badly.
    feedback : Whether an action brings a reward. If not, the reward of every trial is None.
    """

    given: ClassVar[Given] = "action"
    n_actions: int
    response_range: tuple[float, float] = (0.0, 1.0)
    performance_bounds: tuple[float, float] | None = (-np.inf, np.inf)
    feedback: ClassVar[bool] = True

    def asks(self, columns: Mapping[str, Any]) -> Any:
        """Return what a trial asks for: "action", "response" or "both".

        `columns` is an observation. If `given` is "either", the experiment says what each trial
        asks for. `columns` may then hold many trials, and an array of words is returned.
        """
        return self.given

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

    def check(self, trials: Trials) -> None:
        """Raise ValueError at the first column or trial that an experiment cannot have produced."""
        self._check_columns(trials)
        for rule in self._answer_rules(trials):
            trials.require(*rule)
        self._check_fields(trials)
        for rule in self.rules(trials):
            trials.require(*rule)

    def _check_columns(self, trials: Trials) -> None:
        """Raise ValueError if a column is missing that the experiment's trials must have."""
        fields, columns = self.fields, list(trials.frame.columns)
        rewards = ("reward",) if self.feedback else ()
        needed = (*fields.stimulus, *answer_columns(self), *rewards, *fields.feedback)
        missing = [column for column in needed if column not in columns]
        if missing:
            near = {name: get_close_matches(name, columns, 1) for name in missing}
            named = [f"{n!r} (nearest: {near[n][0]})" if near[n] else repr(n) for n in missing]
            raise ValueError(
                f"Trials of {self.name} have a column {', '.join(named)}; got only "
                f"{', '.join(columns)}. Map one with --columns {missing[0]}=YOUR_NAME."
            )

    def _answer_rules(self, trials: Trials) -> Iterator[TrialRule]:
        """Yield the rules for actions, responses and rewards."""
        name, answers = self.name, answer_columns(self)
        if "action" in answers:
            allowed = range(self.n_actions)
            yield (
                f"Actions of {name} are {', '.join(map(str, allowed))}",
                trials.one_of("action", *allowed),
                ("action",),
                "Recode the actions to whole numbers from 0.",
            )
        if "response" in answers:
            low, high = self.response_range
            yield (
                f"Responses of {name} go from {low:g} to {high:g}",
                _within(trials.numbers("response"), low, high),
                ("response",),
                "Rescale them.",
            )
        if self.given == "both":
            yield trials.paired("response")
        if self.given == "either":
            shown = {name: trials.frame[name].to_numpy() for name in self.fields.stimulus}
            given = np.asarray(self.asks(shown))
            for column in answers:
                yield (
                    f"Trials of {name} ask for an action or for a response, by what is shown",
                    np.isnan(trials.numbers(column)) | (given == column),
                    (column,),
                    f"Leave the column {column!r} empty where none is required.",
                )
        if not self.feedback and "reward" in trials.frame:
            yield (
                f"{name} pays no rewards",
                np.isnan(trials.numbers("reward")),
                ("reward",),
                "Leave the column 'reward' out.",
            )
        yield from (trials.paired(column) for column in self.fields.feedback)

    def _check_fields(self, trials: Trials) -> None:
        """Raise ValueError at the first trial with a number that a field cannot have.

        Columns with two whole ends hold whole numbers. Stimuli must be there in every row, unless
        the field has gaps.
        """
        for field in self.fields:
            if field.name not in trials.frame:
                continue
            least, most = field.bounds(self)
            whole = isinstance(least, int) and isinstance(most, int)
            counted = trials.frame[field.name].dtype.kind in "iub"
            low, high = trials.ends(field.name)
            if low >= least and high <= most and (counted or not whole):
                continue  # this is usual, unless a row has no value
            values = trials.numbers(field.name)
            right = _within(values, least, most)
            if whole:
                right &= np.isnan(values) | (values % 1 == 0)
            if field.role == "stimulus" and not field.gaps:
                right &= ~np.isnan(values)
            kind = "a whole number" if whole else "a number"
            ends = f" from {least:g} to {most:g}" if np.isfinite(most) else f" from {least:g} on"
            remedy = "Recode it."
            setting = field.setting or field.range
            if isinstance(setting, str) and setting in self.settings:
                remedy = f"Recode it, or say how it was played (--set {setting}=VALUE)."
            rule = f"The column {field.name!r} of {self.name} holds {kind}"
            rule += ends if np.isfinite([least, most]).any() else ""
            trials.require(rule, right, (field.name,), remedy)

    def split(self, choice: Choice, given: Given | None = None) -> tuple[int | None, float | None]:
        """Return action and response of a player's choice; either is None if there is none.

        `given` is what the trial asks for; it is needed if trials differ in that.

        Raises
        ------
        ValueError : If the choice is not what a trial of this experiment asks for, or is out of
            range.
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


def answer_columns(environment: Recording) -> tuple[str, ...]:
    """Return the names of the columns that hold the answers."""
    given = environment.given
    return ("action", "response") if given in ("both", "either") else (given,)


def _within(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    return np.isnan(values) | ((values >= low) & (values <= high))
