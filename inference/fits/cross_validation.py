"""Cross-validation: how well a model, fitted to the other sequences, predicts the one left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters
from knownminds.agents.sequences import Sequences, numbered
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd

from .model_data import ModelData, Unknowns, separating
from .point import maximum_a_posteriori

Integers = NDArray[np.int64]

ROWS = 1024  # so many pairs of subject and sequence are fitted at once
MEMORY_PROBES = (0.15, 0.5, 0.85)  # prior quantiles at which a likelihood is tried for memory


@dataclass(frozen=True)
class Folds:
    """The trials that are left out together: sequences of each subject, the same for all rivals.

    Given its parameters, no model carries anything from one sequence into another. So a sequence
    can be predicted from what the others say about the parameters.

    Parameters
    ----------
    by : The names of what separates sequences: "session", and stimulus columns such as "context".
    number : Sequence of each trial, counted from 0 within its subject, [trials].
    count : How many sequences each subject has, [N].
    """

    by: tuple[str, ...]
    number: Integers
    count: Integers

    @classmethod
    def read(cls, models: Sequence[type[Model]], trials: Trials) -> Folds:
        """Find the sequences that are independent in all models.

        Raises
        ------
        ValueError : If a subject has only one sequence.
        """
        frame = trials.frame
        subject, names = pd.factorize(frame["subject"])
        stimuli = {
            name: np.asarray(pd.factorize(frame[name])[0], dtype=np.int64)
            for name in dict.fromkeys(n for model in models for n in separating(model, trials))
        }
        by = kept_apart([ModelData.read(model, trials) for model in models], stimuli)
        session = np.asarray(pd.factorize(frame["session"])[0], dtype=np.int64)
        columns = {"session": session} | {name: stimuli[name] for name in by}
        return cls.of_columns(np.asarray(subject, dtype=np.int64), columns, list(map(str, names)))

    @classmethod
    def of_columns(
        cls, subject: Integers, columns: Mapping[str, Integers], names: Sequence[str]
    ) -> Folds:
        """Separate sequences by integer columns, [trials] each; `names` are the subjects'.

        Raises
        ------
        ValueError : If a subject has a single sequence.
        """
        code = subject
        for column in columns.values():
            code = code * (int(column.max(initial=0)) + 1) + column
        _, first, sequence = np.unique(code, return_index=True, return_inverse=True)
        owner = subject[first]  # sorted, because the subject leads the code
        count = np.bincount(owner, minlength=len(names))
        begin = np.cumsum(count) - count
        few = np.flatnonzero(count < 2)
        if len(few):
            text = " and ".join(columns)
            raise ValueError(
                "Cross-validation leaves out one sequence at a time and needs at least 2 of each "
                f'subject; subject "{names[few[0]]}" has {count[few[0]]}, separated by {text}. '
                "Take 2 or more sessions (--sessions 2), or rivals that keep the same columns "
                "separate."
            )
        return cls(tuple(columns), sequence - begin[subject], count)

    def of_subjects(self, subjects: Integers) -> Folds:
        """Return the folds for data that `ModelData.repeat` made of these subjects."""
        return Folds(self.by, self.number, self.count[subjects])


def kept_apart(data: Sequence[ModelData], stimuli: Mapping[str, Integers]) -> tuple[str, ...]:
    """Name the columns across which none of the models carries anything over.

    A model names such columns in `separate`. A model without memory carries nothing over either:
    its likelihood does not change if the trials are cut there.

    Parameters
    ----------
    data : The same trials as each of the models reads them.
    stimuli : Integer codes of the stimulus columns, [trials] each.
    """

    def parted(one: ModelData, name: str) -> bool:
        return name in one.model.separate or _same_likelihood(one, _cut(one, stimuli[name])[0])

    candidates = dict.fromkeys(name for one in data for name in one.model.separate)
    return tuple(
        name for name in candidates if name in stimuli and all(parted(d, name) for d in data)
    )


@dataclass(frozen=True)
class SequenceData:
    """A model's data cut into the folds, from which single ones can be taken or left out.

    Parameters
    ----------
    data : The model's data, whose sequences never reach over two folds.
    number : Fold of each of the flat trials of `data`.
    folds : The folds.
    """

    data: ModelData
    number: Integers
    folds: Folds

    @classmethod
    def cut(cls, data: ModelData, folds: Folds) -> SequenceData:
        """Cut a model's data.

        Raises
        ------
        ValueError : If the model carries something from one fold into another.
        """
        cut, number = _cut(data, folds.number)
        if not _same_likelihood(data, cut):
            raise ValueError(
                f"Sequences that are left out must be independent given the parameters; "
                f"{data.model.name} carries something over between those separated by "
                f"{' and '.join(folds.by)}. Give its class to Folds.read as well."
            )
        return cls(cut, number, folds)

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """Subject and fold of everything that can be left out, subject after subject."""
        return numbered(self.folds.count)

    def chunks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the positions of the pairs in chunks; the pairs of a subject stay together."""
        subject, _ = self.pairs
        per_subject = max(1, int(self.folds.count.max()))
        size = max(1, ROWS // per_subject)
        for first in range(0, len(self.folds.count), size):
            yield np.flatnonzero((first <= subject) & (subject < first + size))

    def without(self, chosen: Integers) -> ModelData:
        """Return data in which row k has all of a subject except its fold, for pair chosen[k]."""
        return self._take(chosen, left_out=True)

    def only(self, chosen: Integers) -> ModelData:
        """Return data in which row k has only the trials of a fold, for pair chosen[k]."""
        return self._take(chosen, left_out=False)

    def _take(self, chosen: Integers, left_out: bool) -> ModelData:
        subject, fold = (each[chosen] for each in self.pairs)
        data = self.data.repeat(subject)
        parts = data.sequences
        held_out = self.number[parts.order[parts.begin]] == fold[parts.subject]
        keep = ~held_out if left_out else held_out
        kept = Sequences(
            parts.order, parts.begin[keep], parts.length[keep], parts.subject[keep], len(chosen)
        )
        answered = self._answered[kept.begin + kept.length] - self._answered[kept.begin]
        n_trials = np.bincount(kept.subject, answered, minlength=len(chosen)).astype(np.int64)
        return ModelData(data.model, data.subjects, kept, data.flat, data.n_actions, n_trials)

    @cached_property
    def _answered(self) -> Integers:
        """Number of responses before each position of the order, [trials + 1]."""
        given = self.data.answered[self.data.sequences.order]
        return np.concatenate([[0], np.cumsum(given)])


def _cut(data: ModelData, number: Integers) -> tuple[ModelData, Integers]:
    """Cut a model's sequences where `number` [trials] changes; return it for the new trials."""
    sequences = data.sequences
    sequence, _, position = sequences.in_order()
    flat = {
        name: column[position] for name, column in zip(data.model.columns, data.flat, strict=True)
    }
    cut = ModelData.of_columns(
        data.model,
        data.subjects,
        sequences.subject[sequence],
        [sequence, number[position]],
        flat,
        data.n_actions,
        data.answered[position],
    )
    return cut, number[position]


def _same_likelihood(whole: ModelData, cut: ModelData) -> bool:
    parameters = whole.model.parameters
    for z in probes(parameters):
        theta = np.broadcast_to(parameters.constrain(z), (len(whole), len(parameters)))
        together, apart = (data.log_likelihood(theta)[0] for data in (whole, cut))
        if not np.allclose(together, apart, rtol=1e-9, atol=1e-9):
            return False
    return True


def probes(parameters: Parameters) -> list[Array]:
    """Return a few different points z[P] of the prior, to try a likelihood for memory."""
    return [parameters.mean + parameters.sd * scipy.stats.norm.ppf(q) for q in MEMORY_PROBES]


def cross_validate(
    data: ModelData, folds: Folds, *, lapse: bool = False, workers: int | None = None
) -> pd.DataFrame:
    """Leave out each sequence in turn, fit the others, and compute how probable the left-out one
    is.

    The sum over sequences k of log p(y_k | MAP(y without y_k)) is comparable between models of
    any size: parameters that fit noise predict badly (Stone 1974; Browne 2000).

    Parameters
    ----------
    data : Data of the model that is judged.
    folds : The sequences, from `Folds.read` with all rivals, so that all models leave out the same
        ones.
    lapse, workers : Arguments as in `maximum_a_posteriori`.

    Returns
    -------
    DataFrame : One row per subject: subject, log_score (the sum; larger is better, NaN where a fit
        failed), status ("ok" or "failed") and message (why).

    Raises
    ------
    ValueError : If the model carries something from one of the sequences into another.
    """
    cut = SequenceData.cut(data, folds)
    unknowns = Unknowns.of(data.model, lapse=lapse)
    subject, fold = cut.pairs
    log_score = np.zeros(len(data))
    message = [""] * len(data)
    for chosen in cut.chunks():
        fit = maximum_a_posteriori(data.model, cut.without(chosen), lapse=lapse, workers=workers)
        score, _ = unknowns.log_likelihood(cut.only(chosen), fit.estimate)
        for row in np.flatnonzero(np.array(fit.status) == "failed"):
            score[row] = np.nan
            message[subject[chosen[row]]] = (
                f"without sequence {fold[chosen[row]]}: {fit.message[row]}"
            )
        log_score += np.bincount(subject[chosen], score, minlength=len(data))
    status = ["failed" if why else "ok" for why in message]
    columns = {"log_score": log_score, "status": status, "message": message}
    return pd.DataFrame({"subject": data.subjects, **columns})
