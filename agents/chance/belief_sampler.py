"""A sampler whose beliefs about chance are bent: by a temperature, and towards some outcomes.

Its kernel is written by hand: the likelihood is that of a context, a softmax over as many outcomes
as it has, and not of a trial.
"""

from __future__ import annotations

from functools import partial
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.agent import Agent, Integers, merging
from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.chance.outcome_grid import LETTERS, MARKS
from knownminds.environments.chance.scenarios import context_of
from knownminds.environments.environment import Environment, Observation

__all__ = ["BeliefSampler", "BeliefSamplerStated"]

LANES = 32  # as in sequences.py
TINY = 1e-300  # whose logarithm is finite
N_MARKS = 6  # of `MARKS`; the outcome of a text is bent by 1 + N_MARKS parameters
LEAK = 1 + N_MARKS  # position of the share of outcomes that cannot come
STATED = 2 + N_MARKS  # position of the share of probabilities that are known
N_LETTERS = 5
# What a merged row holds: an outcome, the last outcome of its context, or a stated answer.
OUTCOME, LAST, LETTER = 0.0, 1.0, 2.0


@compiled(fastmath={"contract"})
def log_likelihood(theta, lapse, n_actions, row, start, *places):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient.

    The places of a context follow each other, one for each kind of outcomes that can come: how
    many there are, how many answers they got, their log probability and their marks as the bits
    of a number. The last holds how many outcomes cannot come, how many answers these got, and how
    many outcomes there are. A stated answer has a row with its letter (`marks`), the right one
    (`share`) and their number.
    """
    what, many, count, share, marks, out, gone, every = places
    n, columns = theta.shape
    stated = columns > STATED
    total = np.zeros(n)
    gradient = np.zeros((n, columns if lapse is None else columns + 1))
    longest = 0
    for block in range(len(row)):
        longest = max(longest, start[block + 1] - start[block])
    weights = np.empty(longest)
    lean, pull = np.empty(1 << N_MARKS), np.empty(1 << N_MARKS)  # by the bits of marks
    letters = np.ones(N_LETTERS)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            sharpness = 1.0 / theta[q, 0]
            kept, lost = max(1.0 - theta[q, LEAK], TINY), max(theta[q, LEAK], TINY)
            for bits in range(1 << N_MARKS):
                lean[bits] = pull[bits] = 0.0
                for k in range(N_MARKS):
                    if bits >> k & 1:
                        lean[bits] += theta[q, 1 + k]
            if stated:
                top = 0.0
                for k in range(1, N_LETTERS):
                    top = max(top, theta[q, STATED + k])
                letters[0], bottom = exp(-top), exp(-top)
                for k in range(1, N_LETTERS):
                    letters[k] = exp(theta[q, STATED + k] - top)
                    bottom += letters[k]
                for k in range(N_LETTERS):
                    letters[k] /= bottom
            begin = start[block]
            for t in range(start[block], start[block + 1]):
                if many[t, i] < 0.5 or what[t, i] == OUTCOME:
                    continue
                if what[t, i] == LETTER:
                    letter, right = int(marks[t, i]), share[t, i] == marks[t, i]
                    known, other = theta[q, STATED], letters[int(marks[t, i])]
                    p = max((1.0 - known) * other + (known if right else 0.0), TINY)
                    height_sum = count[t, i] * log(p)
                else:
                    top = -1e308
                    for s in range(begin, t + 1):
                        height = share[s, i] * sharpness + lean[int(marks[s, i])]
                        weights[s - begin] = height
                        top = max(top, height)
                    bottom, answers, expected, pulled, height_sum = 0.0, 0.0, 0.0, 0.0, 0.0
                    for s in range(begin, t + 1):
                        height = weights[s - begin] - top
                        weight = many[s, i] * exp(height)
                        weights[s - begin] = weight
                        bottom += weight
                        expected += weight * share[s, i]
                        answers += count[s, i]
                        pulled += count[s, i] * share[s, i]
                        height_sum += count[s, i] * height
                    height_sum -= answers * log(bottom)
                    if out[t, i] > 0.5:
                        height_sum += answers * log(kept) + gone[t, i] * log(lost / out[t, i])
                scale = 1.0
                if lapse is not None:
                    density, anywhere = exp(height_sum), 1.0 / every[t, i]
                    mixed = max((1.0 - lapse[q]) * density + lapse[q] * anywhere, TINY)
                    gradient[q, columns] += (anywhere - density) / mixed
                    scale = (1.0 - lapse[q]) * density / mixed
                    height_sum = log(mixed)
                total[q] += height_sum
                if what[t, i] == LETTER:
                    rate = scale * count[t, i] / p
                    gradient[q, STATED] += rate * ((1.0 if right else 0.0) - other)
                    rate *= (1.0 - known) * other
                    for k in range(1, N_LETTERS):
                        chosen = 1.0 if k == letter else 0.0
                        gradient[q, STATED + k] += rate * (chosen - letters[k])
                else:
                    slope = pulled - answers * expected / bottom
                    gradient[q, 0] -= scale * slope * sharpness * sharpness
                    for s in range(begin, t + 1):
                        due = answers * weights[s - begin] / bottom
                        pull[int(marks[s, i])] += scale * (count[s, i] - due)
                    if out[t, i] > 0.5:
                        gradient[q, LEAK] += scale * (gone[t, i] / lost - answers / kept)
                begin = t + 1
            for bits in range(1, 1 << N_MARKS):
                for k in range(N_MARKS):
                    if bits >> k & 1:
                        gradient[q, 1 + k] += pull[bits]
    return total, gradient


@compiled()
def simulate_places(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, number, correct, shares, marks, sizes
):
    """Turn each uniform into an action; `number` says which row of the tables has the context."""
    action = np.empty((start[-1], LANES))
    p = np.empty(max(shares.shape[1], N_LETTERS))
    for block in range(len(row)):
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                q = row[block, i]
                c, right = int(number[t, i]), int(correct[t, i])
                if right >= 0:
                    n = N_LETTERS
                    top = 0.0
                    for k in range(1, n):
                        top = max(top, theta[q, STATED + k])
                    for k in range(n):
                        p[k] = exp((theta[q, STATED + k] if k else 0.0) - top)
                else:
                    n = sizes[c]
                    top = -1e308
                    for k in range(n):
                        if shares[c, k] > -np.inf:
                            p[k] = shares[c, k] / theta[q, 0]
                            for m in range(N_MARKS):
                                if marks[c, k] >> m & 1:
                                    p[k] += theta[q, 1 + m]
                            top = max(top, p[k])
                    for k in range(n):
                        p[k] = exp(p[k] - top) if shares[c, k] > -np.inf else 0.0
                bottom, out = 0.0, 0
                for k in range(n):
                    bottom += p[k]
                    if right < 0 and shares[c, k] == -np.inf:
                        out += 1
                below, chosen = 0.0, n - 1
                for k in range(n - 1):
                    share = p[k] / bottom
                    if right >= 0:
                        share *= 1.0 - theta[q, STATED]
                        if k == right:
                            share += theta[q, STATED]
                    elif out > 0:
                        if shares[c, k] == -np.inf:
                            share = theta[q, LEAK] / out
                        else:
                            share *= 1.0 - theta[q, LEAK]
                    if lapse is not None:
                        share = (1.0 - lapse[q]) * share + lapse[q] / n
                    below += share
                    if uniforms[t, i] < below:
                        chosen = k
                        break
                action[t, i] = chosen
    return action


def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, cell, correct
):
    """Look the contexts up and turn each uniform into an action."""
    cells, number = np.unique(cell, return_inverse=True)
    tables = [table_of(int(c)) if c > 0 else None for c in cells]
    most = max((len(table[0]) for table in tables if table), default=1)
    shares = np.full((len(cells), most), -np.inf)
    marks, sizes = np.zeros((len(cells), most), dtype=np.int64), np.ones(len(cells), np.int64)
    for k, table in enumerate(tables):
        if table is not None:
            sizes[k] = len(table[0])
            shares[k, : sizes[k]], marks[k, : sizes[k]] = table
    number = number.reshape(cell.shape)
    return simulate_places(
        theta, lapse, n_actions, row, start, uniforms, number, correct, shares, marks, sizes
    )


def table_of(cell: int) -> tuple[Array, NDArray[np.int64]]:
    """Return log probability and marks, as the bits of a number, of each outcome of a context."""
    context = context_of(cell)
    with np.errstate(divide="ignore"):
        shares = np.log(context.chance.probabilities)
    return shares, context.marks @ (1 << np.arange(len(MARKS)))


def merge(
    subject: Integers, columns: tuple[Array, ...], states: bool
) -> tuple[Integers, tuple[Array, ...]]:
    """Merge the answers of a subject to a context into counts of its outcomes.

    Outcomes with the same probability and the same marks share a row. `states` says whether
    stated probabilities may be among the answers.

    Raises
    ------
    ValueError
        If an answer is no outcome of its context, or a stated probability where none may be.
    """
    cell, correct, action = columns
    given = action >= 0
    cells, right, chosen = (column[given] for column in (cell, correct, action))
    who, stated = subject[given], right >= 0
    if stated.any() and not states:
        raise ValueError(
            f"belief_sampler states no probabilities; {int(stated.sum())} answers do. "
            "Leave them out, or fit belief_sampler_stated."
        )
    parts = [outcome_places(who[~stated], cells[~stated].astype(np.int64), chosen[~stated])]
    if stated.any():
        rows = np.stack([who[stated], right[stated], chosen[stated]])
        unique, counts = np.unique(rows, axis=1, return_counts=True)
        ones = np.ones(unique.shape[1])
        zeros = 0.0 * ones
        # what, many, count, share (the right letter), marks (the letter), out, gone, every
        merged = (LETTER * ones, ones, counts, unique[1], unique[2], zeros, zeros, N_LETTERS * ones)
        parts.append((unique[0].astype(np.int64), np.stack(merged)))
    whose = np.concatenate([part[0] for part in parts])
    places = np.concatenate([part[1] for part in parts], axis=1)
    # A lane plays all places of a subject; those of a context have to stay together.
    order = np.argsort(whose, kind="stable")
    return whose[order], tuple(np.ascontiguousarray(column) for column in places[:, order])


def outcome_places(
    subject: NDArray[np.int64],
    cell: NDArray[np.int64],
    action: Array,
    weight: Array | None = None,
) -> tuple[NDArray[np.int64], Array]:
    """Return the places of revealed answers: whose they are, and their columns, [8, places].

    Parameters
    ----------
    subject, cell, action
        Who gave which answer in which context, [answers].
    weight
        How often, which need not be a whole number: with the probabilities of all outcomes as
        weights the likelihood is minus the cross-entropy. Once each if None.

    Raises
    ------
    ValueError
        If an action is no outcome of its context.
    """
    cells, number = np.unique(cell, return_inverse=True)
    kinds = [_kinds_of(int(c)) for c in cells]
    if not kinds:
        return np.zeros(0, dtype=np.int64), np.zeros((8, 0))
    # One group of places per subject and context.
    groups, group = np.unique(subject * len(cells) + number, return_inverse=True)
    whose, which = np.divmod(groups, len(cells))
    sizes = np.array([len(table) for table, _ in kinds])
    length = sizes[which]
    end = np.cumsum(length)
    begin = end - length
    rows = np.concatenate([table for table, _ in kinds])  # [kinds, 3]: many, share, marks
    first = np.cumsum(sizes) - sizes
    within = np.arange(end[-1]) - np.repeat(begin, length)
    taken = rows[np.repeat(first[which], length) + within]
    most = max(len(position) for _, position in kinds)
    place_of = np.full((len(cells), most), -2)
    for k, (_, position) in enumerate(kinds):
        place_of[k, : len(position)] = position
    chosen = action.astype(np.int64)
    wrong = (chosen >= most) | (place_of[number, np.minimum(chosen, most - 1)] == -2)
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"The context {cells[number[k]]} has {len(kinds[number[k]][1])} outcomes; got the "
            f"action {chosen[k]}. Actions are the positions of outcomes, from 0."
        )
    position = place_of[number, chosen]
    count, gone = np.zeros(end[-1]), np.zeros(end[-1])
    possible = position >= 0
    each = np.ones(len(position)) if weight is None else weight
    np.add.at(count, begin[group[possible]] + position[possible], each[possible])
    np.add.at(gone, end[group[~possible]] - 1, each[~possible])
    what, out, every = np.zeros((3, end[-1]))
    what[end - 1] = LAST
    out[end - 1] = np.array([np.sum(position == -1) for _, position in kinds])[which]
    every[end - 1] = np.array([len(position) for _, position in kinds])[which]
    many, share, marks = taken.T
    return np.repeat(whose, length), np.stack([what, many, count, share, marks, out, gone, every])


def _kinds_of(cell: int) -> tuple[Array, NDArray[np.int64]]:
    """Return the kinds of outcomes, [kinds, 3]: how many, log probability, marks; and which of
    them each outcome is, -1 for those that cannot come.
    """
    shares, marks = table_of(cell)
    position = np.full(len(shares), -1)
    possible = np.isfinite(shares)
    kinds, which, many = np.unique(
        np.stack([shares[possible], marks[possible].astype(float)]),
        axis=1,
        return_inverse=True,
        return_counts=True,
    )
    position[possible] = np.ravel(which)
    return np.column_stack([many, kinds[0], kinds[1]]), position


def _bias(name: str, whither: str) -> Parameter:
    return Parameter(name, IDENTITY, 0.0, 0.7, f"what is added to the log probability of {whither}")


_OWN = (
    Parameter("temperature", POSITIVE, 0.0, 0.5, "above 1 flattens, below 1 sharpens"),
    _bias("bias_first", "the first outcome that can come, or the option named first"),
    _bias("bias_middle", "the outcome in the middle"),
    _bias("bias_round", "multiples of ten"),
    _bias("bias_repeat", "the outcome that came before"),
    _bias("bias_heads", "heads, where it can be chosen or tails"),
    _bias("bias_left", "left, where it can be chosen or right"),
    Parameter("leak", UNIT, -3.0, 1.0, "share of outcomes that cannot come, where there are any"),
)
_STATED = (
    Parameter("known", UNIT, 0.0, 1.0, "share of probabilities stated right, not by position"),
    *(_bias(f"bias_{letter.lower()}", f"option {letter}, against A") for letter in LETTERS[1:]),
)


class BeliefSampler(Agent):
    """Draws outcomes from the truth bent by a temperature and by biases.

    log q(o) = (1/T) log p(o) + sum of the biases of o - const over the outcomes that can come,
    of which those that are known not to be (an odd number where it is even) get the share `leak`
    together, all alike; where there are none, nothing leaks. A bias is added to the first outcome
    that can come (of two named options, the one named first), the middle one (of at least three),
    multiples of ten, the same as before, heads, and left.

    T = 1 and no biases is a sampler that knows the truth.

    A fit needs the columns cell, correct and action alone, so trials of several scenarios can be
    fitted together: as those of the same agents, whose parameters then rest on all scenarios; or
    with `inference.hierarchical(BeliefSampler, trials, unit=("model", "environment"),
    crossed=("model", "environment"))`, where each model in each scenario has separate
    parameters: the sum of what the model deviates everywhere, what the scenario does to all, and a
    rest.
    """

    name = "belief_sampler"
    summary = "draws outcomes by the true probabilities, bent by temperature and six biases"
    source = "Mondal and others 2024 tell of the biases; the model is ours"
    parameters = Parameters(*_OWN)
    columns = ("cell", "correct", "action")
    design = ("cell", "correct")
    separate = ()
    remembers = False
    prepare = staticmethod(merging(partial(merge, states=False)))
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this model cannot play the environment."""
        super().check_plays(environment)
        if len(cls.parameters) == len(_OWN) and getattr(environment, "form", "") == "stated":
            raise ValueError(
                f"{cls.name} states no probabilities; {environment.name} asks for them. "
                "Choose a model that does, such as belief_sampler_stated."
            )

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        if int(observation["correct"]) >= 0:
            return self.letter_probabilities(int(observation["correct"]))
        return self.outcome_probabilities(int(observation["cell"]))

    def outcome_probabilities(self, cell: int) -> Array:
        """Return the share of each outcome of a context: what the sampler reveals."""
        context = context_of(cell)
        true = context.chance.probabilities
        possible = true > 0
        height = np.log(true[possible]) / self.theta[0]
        height += context.marks[possible] @ self.theta[1:LEAK]
        weight = np.exp(height - height.max())
        leak = float(self.theta[LEAK]) if not possible.all() else 0.0
        shares = np.full(len(true), leak / max(int((~possible).sum()), 1))
        shares[possible] = (1.0 - leak) * weight / weight.sum()
        return shares

    def letter_probabilities(self, correct: int) -> Array:
        """Return the share of each letter where that of the right probability is known."""
        if len(self.theta) <= STATED:
            raise ValueError(f"{self.name} states no probabilities. Choose belief_sampler_stated.")
        bias = np.append(0.0, self.theta[STATED + 1 :])
        weight = np.exp(bias - bias.max())
        known = float(self.theta[STATED])
        shares: Array = (1.0 - known) * weight / weight.sum()
        shares[correct] += known
        return shares

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn."""


class BeliefSamplerStated(BeliefSampler):
    """A belief sampler that also states probabilities, with five options to choose from.

    With probability `known` it picks the right letter, else any, by biases for their positions.
    What it states has nothing to do with what it reveals.
    """

    name = "belief_sampler_stated"
    summary = "a belief sampler that also states probabilities, right or by the letter's position"
    parameters = Parameters(*_OWN, *_STATED)
    prepare = staticmethod(merging(partial(merge, states=True)))
