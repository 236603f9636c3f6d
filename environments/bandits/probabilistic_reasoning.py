"""Probabilistic reasoning: which of two urns a ball comes from, given a wheel and the ball."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from knownminds.environments.design import Design
from knownminds.environments.fields import (
    CheckedBy,
    Field,
    Fields,
    Numbers,
    Whole,
    as_given,
    setting,
)
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, decimal, parse_number
from knownminds.environments.words.history import LETTERS, Filled, Retelling
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.slots import Slot, number_in, position_of

_COLOURS = ("blue", "red")
_SHARES = "multiples of 1 / n_parts between 0 and 1"


class ProbabilisticReasoning(Retelling):
    """A wheel picks one of two urns, a ball is drawn from it: how probable is the queried urn?

    The sections of the wheel give the prior. The urns hold red and blue balls in mirror-image
    shares, so that the colour of the ball gives a likelihood. Half of the problems (rounded up)
    have an informative likelihood and a prior near one half. The others have an informative prior
    and a likelihood near one half. Both kinds come in mixed order. Nothing is paid, and the right
    answer is never shown.

    The share of red balls is `likelihood` in the queried urn and 1 - likelihood in the other. The
    response is the probability of the queried urn after the draw.
    """

    name = "probabilistic_reasoning"
    summary = "which urn a ball comes from, as a probability; a wheel gives the prior"
    source = "Dasgupta, Schulz, Tenenbaum and Gershman 2020, as in CogBench"
    usual_model = "weighted_bayes"
    searched: ClassVar = {
        "n_problems": Span(1, 60),
        "informative": Among(
            ([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0.1, 0.9], [0.3, 0.7], [0.1, 0.3, 0.7, 0.9])
        ),
        "uninformative": Among(([0.4, 0.5, 0.5, 0.6], [0.5], [0.2, 0.8], [0.1, 0.4, 0.6, 0.9])),
    }
    fields = Fields(
        Field("prior", (0.0, 1.0), "of the queried urn before the draw", unit="probability"),
        Field("likelihood", (0.0, 1.0), "of a red ball from the queried urn", unit="probability"),
        Field("ball", (0, 1), "0 blue, 1 red"),
        Field("asked", (0, 1), "urn that is asked about, in the order of mention", "wording"),
        Field("urn", (0, 1), "whether the ball came from the queried urn", "hidden"),
    )
    shipped = Path(__file__).with_suffix(".toml")
    given = "response"
    n_actions = 0
    response_range = (0.0, 1.0)
    feedback = False
    performance_bounds = (0.0, 1.0)

    slots: ClassVar = {"response": Slot("response")}
    thought = "I weigh what the wheel says against what the ball says."

    n_problems: int = setting(2, Whole(1), "Problems in a session.", size=True)
    informative: NDArray[np.float64] = setting(
        (0.1, 0.2, 0.3, 0.7, 0.8, 0.9),
        CheckedBy(as_given, _SHARES),
        help="The values from which the informative quantity is drawn, evenly; a value that stands "
        "twice is drawn twice as often.",
    )
    uninformative: NDArray[np.float64] = setting(
        (0.4, 0.5, 0.5, 0.6), CheckedBy(as_given, _SHARES), "The same for the other quantity."
    )
    n_parts: int = setting(10, Whole(2), "Sections of the wheel, and balls in an urn.")

    def prepare(self) -> None:
        n = self.n_parts
        rule = Numbers(
            f"holds multiples of 1/{n} between 0 and 1 (n_parts is {n})",
            lambda v: (v > 0) & (v < 1) & np.isclose(np.round(v * n), v * n, rtol=0.0, atol=1e-6),
        )
        for name in ("informative", "uninformative"):
            shares = np.round(np.array(rule(name, self._settings[name])) * n) / n
            self._settings[name] = shares
            setattr(self, name, shares)
        self._choose_words(n_problems=self.n_problems, n_parts=self.n_parts)
        self._likelihood_informs = np.arange(self.n_problems) % 2 == 0

    @property
    def n_draws(self) -> int:
        """Six numbers per problem, and those that draw the letters."""
        return 6 * self.n_trials + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return wheels, urns and balls, which urn is queried, and whether it was drawn."""
        n, n_trials = len(uniforms), self.n_trials
        thrown = uniforms[:, : 6 * n_trials].reshape(n, 6, n_trials)
        order = np.argsort(thrown[:, 0], axis=1)
        informs = self._likelihood_informs[order]
        strong = self.informative[(thrown[:, 1] * len(self.informative)).astype(np.int64)]
        weak = self.uninformative[(thrown[:, 2] * len(self.uninformative)).astype(np.int64)]
        prior, likelihood = np.where(informs, weak, strong), np.where(informs, strong, weak)
        asked_urn = thrown[:, 3] < prior
        red = thrown[:, 4] < np.where(asked_urn, likelihood, 1.0 - likelihood)
        return {
            "prior": prior,
            "likelihood": likelihood,
            "ball": red.astype(np.int64),
            "asked": (thrown[:, 5] < 0.5).astype(np.int64),
            "urn": asked_urn.astype(np.int64),
        }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        return {"urns": LETTERS[np.argsort(uniforms[6 * self.n_trials :])[:2]].tolist()}

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the exact posterior."""
        return posterior(columns["prior"], columns["likelihood"], columns["ball"])

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return each number that is shown, by itself."""
        return {name: observation[name] for name in ("prior", "likelihood", "ball")}

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        shown = trials.numbers("prior"), trials.numbers("likelihood")
        strong = [_among(values, self.informative) for values in shown]
        weak = [_among(values, self.uninformative) for values in shown]
        yield (
            f"One of prior and likelihood is among {_told(self.informative)} and the other among "
            f"{_told(self.uninformative)}",
            (strong[0] & weak[1]) | (weak[0] & strong[1]),
            ("prior", "likelihood"),
            "Set informative and uninformative to the values that were shown.",
        )

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        marked = self.reasoning != "none"
        return parse_number(text, *self.response_range, marked, self.marker)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        return self._aloud(decimal(choice))

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        filled = self._in_question(messages)
        return {"urns": [filled["first"], filled["second"]]}

    def _words(self, labels: Any, observation: Observation) -> dict[str, object]:
        words: dict[str, object] = {"problem": int(observation["trial"]) + 1}
        if "asked" not in observation:
            return words
        letters, urn = labels["urns"], int(observation["asked"])
        n = self.n_parts
        sections, red = (round(float(observation[name]) * n) for name in ("prior", "likelihood"))
        if urn:
            sections, red = n - sections, n - red
        return words | {
            "asked": letters[urn],
            "first": letters[0],
            "second": letters[1],
            "first_sections": sections,
            "second_sections": n - sections,
            "first_red": red,
            "first_blue": n - red,
            "second_red": n - red,
            "second_blue": red,
            "colour": _COLOURS[int(observation["ball"])],
        }

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        seen: dict[str, int | float] = {"trial": len(turns)}
        if not {"asked", "first_sections", "first_red", "colour"} <= filled.keys():
            return seen
        urn = position_of(filled["asked"], design.labels["urns"])
        for name, word in (("prior", "first_sections"), ("likelihood", "first_red")):
            parts = round(number_in(filled[word]))
            seen[name] = ((self.n_parts - parts) if urn else parts) / self.n_parts
        return seen | {"ball": position_of(filled["colour"], _COLOURS), "asked": urn}


def posterior(
    prior: NDArray[np.float64], likelihood: NDArray[np.float64], ball: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the probability of the queried urn after the ball was seen, by Bayes' rule."""
    exact: NDArray[np.float64] = np.asarray(
        expit(logit(prior) + np.where(ball == 1, 1.0, -1.0) * logit(likelihood))
    )
    return exact


def _told(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:g}" for value in dict.fromkeys(values.tolist()))


def _among(given: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    near = np.isclose(given[:, None], values, rtol=0.0, atol=1e-9)
    return np.asarray(near.any(axis=1))
