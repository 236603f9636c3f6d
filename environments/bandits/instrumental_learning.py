"""Instrumental learning: four casinos, two slot machines each, and no word on which is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import Field, Fields, Numbers, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Searched, Span
from knownminds.environments.turn import Observation
from knownminds.environments.words.history import FIRST, LETTERS, Retelling, two_names
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.slots import Count, Label, Option, Slot

# Of a low rate (0) and a high one (1) which pairs are offered, a casino each.
_CASINOS = (
    ((0, 0), (0, 1), (1, 0), (1, 1)),
    ((0, 1), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
    ((0, 1), (1, 0), (1, 1)),
    ((0, 0), (1, 1)),
)


class InstrumentalLearning(Retelling):
    """Two-armed bandits met in mixed order; each arm pays 1 or 0, with a probability of its own."""

    name = "instrumental_learning"
    summary = "four two-armed bandits in mixed order, wins of 1 or 0"
    source = "Lefebvre, Lebreton, Meyniel, Bourgeois-Gironde and Palminteri 2017, experiment 1"
    usual_model = "rescorla_wagner_dual"
    searched: ClassVar = {
        "n_visits": Span(4, 96),
        "win_probability": Searched(
            (Span(0.0, 0.45, 0.05), Span(0.5, 1.0, 0.05), Among(_CASINOS)),
            lambda low, high, casinos: [[(low, high)[k] for k in pair] for pair in casinos],
        ),
    }
    fields = Fields(
        Field("context", "n_contexts", "which casino, from 0", setting="win_probability"), FIRST
    )
    sequence = ("context",)
    shipped = Path(__file__).with_suffix(".toml")
    n_actions = 2
    performance_bounds = (0.0, 1.0)

    slots: ClassVar = {
        "visit": Count("trial"),
        "casino": Label("context", "casinos"),
        "first": Option("first"),
        "second": Option("first", 1),
        "label": Option("action"),
        "reward": Slot("reward"),
    }
    noun = "machine"
    thought = "I go by what these two machines have paid so far."

    n_visits: int = setting(24, Whole(1), "Visits to each casino.", size=True)
    win_probability: tuple[tuple[float, float], ...] = setting(
        ((0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)),
        Numbers(
            "holds two probabilities, from 0 to 1, for each casino",
            lambda rates: (rates >= 0) & (rates <= 1),
            (0, 2),
        ),
        "For each casino (context) the win probabilities of its two machines (actions 0 and 1).",
    )

    def prepare(self) -> None:
        self.n_contexts = len(self.win_probability)
        self._choose_words(
            n_contexts=self.n_contexts, n_visits=self.n_visits, n_trials=self.n_trials
        )
        self._contexts = np.repeat(np.arange(self.n_contexts), self.n_visits)
        self._sheets = -(-2 * self.n_contexts // len(LETTERS))
        # If the uniform number is below the threshold: machine 0 wins, machine 1 wins, 1 is named
        # first.
        half = np.full((self.n_contexts, 1), 0.5)
        self._thresholds = np.hstack([self.win_probability, half])

    @property
    def n_trials(self) -> int:
        return self.n_contexts * self.n_visits

    @property
    def n_draws(self) -> int:
        """Four numbers per trial, and those that shuffle the names."""
        return 4 * self.n_trials + self._sheets * len(LETTERS) + self.n_contexts

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the order of visits, what both machines would pay, and the order of mention."""
        n, n_trials = len(uniforms), self.n_trials
        context = np.take(self._contexts, np.argsort(uniforms[:, :n_trials], axis=1))
        thrown = uniforms[:, n_trials : 4 * n_trials].reshape(n, n_trials, 3)
        below = thrown < np.take(self._thresholds, context, axis=0)
        return {
            "context": context,
            "payoffs": below[..., :2].astype(np.float64),
            "first": below[..., 2].astype(np.int64),
        }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        rest = uniforms[4 * self.n_trials :]
        sheets = np.argsort(rest[: -self.n_contexts].reshape(self._sheets, -1), axis=1)
        letters = LETTERS[sheets.ravel()]
        return {
            "casinos": (np.argsort(rest[-self.n_contexts :]) + 1).tolist(),
            "machines": letters[: 2 * self.n_contexts].reshape(-1, 2).tolist(),
        }

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield (
            "Rewards are 0 or 1",
            trials.one_of("reward", 0, 1),
            ("reward",),
            "Recode them, for example 1 for a win and 0 for none.",
        )
        yield trials.paired("reward")

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return casinos, and machines by their letters; a sign stands for those not yet named."""
        casinos = list(range(1, self.n_contexts + 1))
        named = self._names_by("casino", messages)
        known = {number: named.get(str(number), set()) for number in casinos}
        for number, heard in known.items():
            if len(heard) > self.n_actions:
                raise ValueError(
                    f"A casino has {self.n_actions} machines; the prompt names "
                    f"{', '.join(sorted(heard))} in casino {number}. "
                    "Use the settings and templates it was rendered with."
                )
        return {"casinos": casinos, "machines": [two_names(heard) for heard in known.values()]}

    def options(self, labels: Any, observation: Observation) -> list[str]:
        letters: list[str] = labels["machines"][observation["context"]]
        return letters
