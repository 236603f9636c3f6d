"""A sampler whose beliefs about chance are bent, by a temperature and towards some outcomes.

All answers to a context enter its likelihood together. The likelihood is a softmax over the
outcomes of the context, and its definition goes through the kinds of outcomes, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from knownminds.agents.compiler.definition import Law, positive, real, unit
from knownminds.agents.model import Integers, Model, Prepared
from knownminds.agents.parameters import Array
from knownminds.environments.chance.context_grid import LETTERS, MARKS
from knownminds.environments.chance.scenarios import context_of
from knownminds.environments.environment import Environment
from knownminds.environments.turn import Observation

__all__ = ["BeliefSampler", "BeliefSamplerStated"]

TINY = 1e-300  # the logarithm of this is finite
LOWEST = -1e300  # below every log weight
BIASES = tuple(f"bias_{mark}" for mark in MARKS)
LETTER_BIASES = tuple(f"bias_{letter.lower()}" for letter in LETTERS[1:])
# A row holds a kind of possible outcomes: their number, their answers, their log probability and
# their marks. The last row of a context also holds the number of answers to the context, of its
# outcomes, of its impossible outcomes, and of the answers to these. A stated answer is a row with
# its letter and the right letter.
ENDING = ("answers", "every", "out", "gone")
STATED = ("letter", "right")


@dataclass(frozen=True)
class AnswerProbabilities(Law):
    """All answers to a context, with their log probability; lapses are part of each answer's."""

    log_probability: Any
    of_lapse: Any
    span: ClassVar[None] = None

    def log_density(self, y: Any) -> Any:
        return self.log_probability

    def at(self, normal: Any) -> Any:
        return normal

    def lapse_density(self, y: Any) -> Any:
        return self.of_lapse


def _rows(
    code: Integers, cell: Integers, action: Array
) -> tuple[Integers, Integers, dict[str, Array]]:
    """Return the subject of each row, the number of its context, and its columns.

    Outcomes of a context with the same probability and the same marks share a row. Raises
    ValueError if an action is not an outcome of its context.
    """
    cells, number = np.unique(cell, return_inverse=True)
    kinds = [_kinds_of(int(c)) for c in cells]
    sizes = np.array([len(table) for table, _ in kinds], dtype=np.int64)
    n_outcomes = np.array([len(position) for _, position in kinds])
    chosen = action.astype(np.int64)
    wrong = np.flatnonzero(chosen >= n_outcomes[number] if len(kinds) else chosen < 0)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(
            f"The context {cells[number[k]]} has {n_outcomes[number[k]]} outcomes; got the "
            f"action {chosen[k]}. Actions are the positions of outcomes, from 0."
        )
    groups, group = np.unique(code * len(cells) + number, return_inverse=True)
    whose, which = np.divmod(groups, max(len(cells), 1))
    end = np.cumsum(sizes[which])
    begin = end - sizes[which]
    context = np.repeat(np.arange(len(groups)), sizes[which])
    tables = [kinds[k][0] for k in which]
    columns = dict(zip(("many", "share", *MARKS), np.concatenate([EMPTY, *tables]).T, strict=True))
    columns |= {name: np.zeros(len(context)) for name in ("count", *ENDING)}
    columns |= {name: np.full(len(context), -1.0) for name in STATED}
    position = np.array([kinds[k][1][c] for k, c in zip(number, chosen, strict=True)], dtype=int)
    possible = position >= 0
    np.add.at(columns["count"], begin[group[possible]] + position[possible], 1.0)
    for name, answers in (("answers", possible), ("gone", ~possible)):
        np.add.at(columns[name], end[group[answers]] - 1, 1.0)
    columns["every"][end - 1] = n_outcomes[which]
    columns["out"][end - 1] = np.array([np.sum(position < 0) for _, position in kinds])[which]
    return whose[context], context, columns


EMPTY = np.zeros((0, 2 + len(MARKS)))


@cache
def _kinds_of(cell: int) -> tuple[Array, Integers]:
    """Return the kinds of outcomes of a context, and the kind of each outcome.

    A kind is a row, [kinds, 2 + marks]: number of outcomes, log probability, marks. The kind of an
    impossible outcome is -1.
    """
    context = context_of(cell)
    possible = context.chance.probabilities > 0
    shares = np.log(context.chance.probabilities[possible])
    kinds, which, many = np.unique(
        np.column_stack([shares, context.marks[possible]]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    position = np.full(len(possible), -1)
    position[possible] = np.ravel(which)
    return np.column_stack([many, kinds]), position


def _bias(whither: str) -> Any:
    return real(f"what is added to the log probability of {whither}", 0.0, 0.7)


class BeliefSampler(Model):
    """Draws outcomes from the truth bent by a temperature and by biases.

    log q(o) = (1/T) log p(o) + sum of the biases of o - const, over the possible outcomes.
    Impossible outcomes share `leak` equally. A bias is added to each of these: the first possible
    outcome (of two named options, the one named first), the middle one (of at least three),
    multiples of ten, the outcome that came before, heads, and left. With T = 1 and no biases the
    agent knows the truth.

    Trials of several scenarios can be fitted together, or with
    `inference.hierarchical(BeliefSampler, trials, unit=("model", "environment"), crossed=("model",
    "environment"))`.
    """

    name = "belief_sampler"
    summary = "draws outcomes by the true probabilities, bent by temperature and six biases"
    source = "Mondal and others 2024 tell of the biases; the model is ours"
    columns = ("cell", "correct", "action")
    design = ("cell", "correct")
    separate = ()
    given = "action"
    span = None
    n_uniforms = 1
    n_actions = None
    remembers = False
    kinds = ("kind", (0,))  # tells rows from the padding of lanes
    states: ClassVar[bool] = False  # whether stated probabilities may be among the answers

    temperature = positive("above 1 flattens, below 1 sharpens", 0.0, 0.5)
    bias_first = _bias("the first outcome that can come, or the option named first")
    bias_middle = _bias("the outcome in the middle")
    bias_round = _bias("multiples of ten")
    bias_repeat = _bias("the outcome that came before")
    bias_heads = _bias("heads, where it can be chosen or tails")
    bias_left = _bias("left, where it can be chosen or right")
    leak = unit("share of outcomes that cannot come, where there are any", -3.0, 1.0)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this model cannot play the environment."""
        super().check_plays(environment)
        if not cls.states and getattr(environment, "form", "") == "stated":
            raise ValueError(
                f"{cls.name} states no probabilities; {environment.name} asks for them. "
                "Choose a model that does, such as belief_sampler_stated."
            )

    # The following methods return what the sampler reveals.

    @classmethod
    def shares(cls, theta: Array, cell: int, correct: int) -> Array:
        """Return the probability of each action by theta[N, P], [N, actions]."""
        named = dict(zip(cls.parameters.names, theta.T[..., None], strict=True))
        if correct >= 0:
            known = named["known"]
            biases = [np.zeros_like(known), *(named[name] for name in LETTER_BIASES)]
            right = np.arange(len(LETTERS)) == correct
            letters: Array = (1.0 - known) * softmax(np.hstack(biases), axis=1) + known * right
            return letters
        context = context_of(cell)
        true = context.chance.probabilities
        possible = true > 0
        height = np.log(true[possible]) / named["temperature"]
        height = height + np.hstack([named[name] for name in BIASES]) @ context.marks[possible].T
        leak = named["leak"] if not possible.all() else np.zeros_like(named["leak"])
        shares: Array = np.repeat(leak / max(int((~possible).sum()), 1), len(true), axis=1)
        shares[:, possible] = (1.0 - leak) * softmax(height, axis=1)
        return shares

    def outcome_probabilities(self, cell: int) -> Array:
        """Return the probability of each outcome of a context, as the sampler reveals it."""
        shares: Array = self.shares(self.theta[None], cell, -1)[0]
        return shares

    def letter_probabilities(self, correct: int) -> Array:
        """Return the probability of each letter, given the letter of the right probability."""
        if not self.states:
            raise ValueError(f"{self.name} states no probabilities. Choose belief_sampler_stated.")
        shares: Array = self.shares(self.theta[None], 0, correct)[0]
        return shares

    def action_probabilities(self, observation: Observation) -> Array:
        if int(observation["correct"]) >= 0:
            return self.letter_probabilities(int(observation["correct"]))
        return self.outcome_probabilities(int(observation["cell"]))

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Do nothing: there is nothing to learn."""

    @classmethod
    def simulate(
        cls,
        theta: Array,
        lapse: Array | None,
        n_actions: int,
        row: Integers,
        start: Integers,
        uniforms: Array,
        cell: Array,
        correct: Array,
    ) -> Array:
        """Turn each uniform into an action, context by context."""
        lane = np.repeat(row, np.diff(start), axis=0)
        rates = np.zeros(len(theta)) if lapse is None else lapse
        action = np.zeros(cell.shape)
        asked = np.stack([cell, correct])
        for context, right in np.unique(asked[:, cell > 0], axis=1).T:
            here = (cell == context) & (correct == right)
            shares = cls.shares(theta[lane[here]], int(context), int(right))
            rate = rates[lane[here]][:, None]
            shares = (1.0 - rate) * shares + rate / shares.shape[1]
            below = np.cumsum(shares, axis=1)[:, :-1]
            action[here] = (uniforms[here][:, None] >= below).sum(axis=1)
        return action

    # The following methods make the likelihood of the answers to a context.

    @classmethod
    def prepare(
        cls, subject: Integers, sequence: Integers, columns: Mapping[str, Array], lapse: bool
    ) -> Prepared:
        """Count a subject's answers to each context; with lapses each answer is a row by itself.

        Raises
        ------
        ValueError : If an answer is not an outcome of its context, or is a stated probability
            without being allowed.
        """
        cell, correct, action = (columns[name] for name in cls.columns)
        code = np.arange(len(subject)) if lapse else subject
        stated, revealed = (action >= 0) & (correct >= 0), (action >= 0) & (correct < 0)
        if stated.any() and not cls.states:
            raise ValueError(
                f"belief_sampler states no probabilities; {int(stated.sum())} answers do. "
                "Leave them out, or fit belief_sampler_stated."
            )
        whose, run, rows = _rows(code[revealed], cell[revealed].astype(np.int64), action[revealed])
        answers = np.stack([code[stated], correct[stated], action[stated]])
        (who, right, letter), counts = np.unique(answers, axis=1, return_counts=True)
        more = {name: np.zeros(len(who)) for name in rows}
        more |= {"right": right, "letter": letter, "answers": counts.astype(float)}
        more["every"] = np.full(len(who), float(len(LETTERS)))
        rows = {name: np.concatenate([column, more[name]]) for name, column in rows.items()}
        rows["response"] = np.ones(len(whose) + len(who))
        rows["kind"] = np.zeros(len(whose) + len(who))
        whose = np.concatenate([whose, who.astype(np.int64)])
        run = np.concatenate([run, len(run) + np.arange(len(who))])
        return subject[whose] if lapse else whose, run, rows

    def begin(self) -> None:
        self.top, self.whole, self.chosen = LOWEST, 0.0, 0.0

    def weighed(self, trial: Any) -> tuple[Any, Any, Any]:
        """Return the largest log weight so far, the weights over it, and the answers' sum."""
        lean = sum(getattr(self, f"bias_{mark}") * getattr(trial, mark) for mark in MARKS)
        height = trial.share / self.temperature + lean
        top = np.maximum(self.top, height)
        weight = np.maximum(trial.many, 0.0) * np.exp(height - top)
        whole = self.whole * np.exp(self.top - top) + weight
        return top, whole, self.chosen + trial.count * height

    def respond(self, trial: Any) -> Any:
        top, whole, chosen = self.weighed(trial)
        kept, lost = (np.log(np.maximum(share, TINY)) for share in (1.0 - self.leak, self.leak))
        leaks = trial.answers * kept + trial.gone * (lost - np.log(np.maximum(trial.out, 1.0)))
        log_probability = chosen - trial.answers * (top + np.log(whole))
        log_probability = log_probability + np.where(trial.out > 0, leaks, 0.0)
        ends = trial.every > 0
        of_lapse = np.where(ends, 1.0 / np.maximum(trial.every, 1.0), 1.0)
        return AnswerProbabilities(np.where(ends, log_probability, 0.0), of_lapse)

    def update(self, trial: Any) -> None:
        self.top, self.whole, self.chosen = self.weighed(trial)


class BeliefSamplerStated(BeliefSampler):
    """A belief sampler that also states probabilities, with five options to choose from.

    With probability `known` it picks the right letter, otherwise any letter, by biases for the
    positions. The probabilities that it states do not depend on those that it reveals.
    """

    name = "belief_sampler_stated"
    summary = "a belief sampler that also states probabilities, right or by the letter's position"
    states = True

    known = unit("share of probabilities stated right, not by position", 0.0, 1.0)
    bias_b, bias_c, bias_d, bias_e = (
        _bias(f"option {letter}, against A") for letter in LETTERS[1:]
    )

    def respond(self, trial: Any) -> Any:
        of_outcomes = super().respond(trial)
        weights = [1.0, *(np.exp(getattr(self, name)) for name in LETTER_BIASES)]
        chosen = sum(np.where(trial.letter == k, w, 0.0) for k, w in enumerate(weights))
        known = np.where(trial.letter == trial.right, self.known, 0.0)
        p = (1.0 - self.known) * chosen / sum(weights) + known
        stated = trial.answers * np.log(np.maximum(p, TINY))
        is_stated = trial.letter >= 0
        log_probability = np.where(is_stated, stated, of_outcomes.log_probability)
        return AnswerProbabilities(log_probability, of_outcomes.of_lapse)
