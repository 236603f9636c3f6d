"""Gambles with stated probabilities, and the sets of problems that ship."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import exp, isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_AMOUNTS = 3
Gamble = tuple[tuple[float, float], ...]  # amounts in ascending order, each with its probability
Problem = tuple[Gamble, Gamble]

CHANCES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
STAKES = (100, 400)
# The log odds of sure amount / stake lie above those of the chance by a step; 0 is a fair offer.
STEPS = (-1.5, -0.75, 0.0, 0.75, 1.5)
LOSSES = (50, 100, 200)
RATIOS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # gain divided by loss


def sure_or_risky() -> list[Problem]:
    """Return a stake with a chance against sure amounts around its mean, as gains and losses."""
    problems = []
    for sign, stake, chance, step in product((1, -1), STAKES, CHANCES, STEPS):
        share = 1 / (1 + exp(-log(chance / (1 - chance)) - step))
        sure = max(round(share * stake), 1)
        risky = gamble([(sign * stake, chance), (0, 1 - chance)])
        problems.append((gamble([(sign * sure, 1)]), risky))
    return problems


def mixed() -> list[Problem]:
    """Return nothing against an even chance of a gain or a loss."""
    even = [
        gamble([(round(ratio * loss, 6), 0.5), (-loss, 0.5)])
        for loss, ratio in product(LOSSES, RATIOS)
    ]
    return [(gamble([(0, 1)]), each) for each in even]


def spread() -> list[Problem]:
    """Return pairs of even chances, one wider than the other, as gains and losses.

    Both gambles have the same probabilities, so that only the curve of utility tells them apart.
    """
    pairs = [
        (stake, middle, inner)
        for stake in STAKES
        for middle in (0.3, 0.4, 0.5, 0.6)
        for inner in (0.1, 0.25)
    ]
    problems = []
    for sign, (stake, middle, inner) in product((1, -1), pairs):
        wide = gamble([(sign * stake, 0.5), (0, 0.5)])
        ends = (round(stake * (middle - inner)), round(stake * (middle + inner)))
        problems.append((gamble([(sign * end, 0.5) for end in ends]), wide))
    return problems


SETS = {
    "prospect": lambda: [*sure_or_risky(), *mixed(), *spread()],
    "fourfold": sure_or_risky,
    "mixed": mixed,
}


def gamble(given: Any, where: str = "A gamble") -> Gamble:
    """Return a gamble with its amounts in ascending order.

    Parameters
    ----------
    given : Pairs of an amount and its probability, up to three.
    where : The name of the gamble in errors.

    Raises
    ------
    ValueError : If amounts are the same or not numbers, or probabilities do not lie in (0, 1] and
        sum to 1.
    """
    try:
        pairs = [(float(amount), float(chance)) for amount, chance in given]
    except (TypeError, ValueError):
        pairs = []
    numbers = [number for pair in pairs for number in pair]
    if not 1 <= len(pairs) <= MOST_AMOUNTS or not all(map(isfinite, numbers)):
        raise ValueError(
            f"A gamble is one to {MOST_AMOUNTS} pairs of an amount and its probability; "
            f"{where} is {given!r}. Write it as [[100, 0.05], [0, 0.95]]."
        )
    total = sum(chance for _, chance in pairs)
    if not all(0 < chance <= 1 for _, chance in pairs) or abs(total - 1) > 1e-9:
        raise ValueError(
            "The probabilities of a gamble lie above 0 and sum to 1; those of "
            f"{where} are {', '.join(f'{chance:g}' for _, chance in pairs)}, with the sum "
            f"{total:g}. Correct them, and leave out what cannot happen."
        )
    if len({amount for amount, _ in pairs}) < len(pairs):
        raise ValueError(
            f"The amounts of a gamble differ; {where} has {[amount for amount, _ in pairs]}. "
            "Add up the probabilities of an amount that comes twice."
        )
    # 1 - 0.95 is not 0.05 in double precision; percentages are shown with ten digits.
    return tuple(sorted((amount, round(chance, 12)) for amount, chance in pairs))


def problems_of(name: str, given: Any) -> Any:
    """Return the problems, given the name of a set or pairs of gambles."""
    if isinstance(given, str):
        if given not in SETS:
            raise ValueError(
                f"{name} are one of {', '.join(SETS)}, or a list of pairs of gambles; got "
                f"{given!r}."
            )
        return given
    pairs = list(given) if isinstance(given, Iterable) else []
    if not pairs:
        raise ValueError(
            f"{name} are pairs of gambles, at least one; got {given!r}. Write a pair as "
            "[[[50, 1]], [[100, 0.5], [0, 0.5]]]."
        )
    taken = []
    for number, pair in enumerate(pairs, 1):
        members = list(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else []
        if len(members) != 2:
            raise ValueError(
                f"A problem is a pair of gambles; problem {number} is {pair!r}. Write it as "
                "[[[50, 1]], [[100, 0.5], [0, 0.5]]]."
            )
        both = tuple(
            gamble(each, f"{which} of problem {number}")
            for which, each in zip(("the first gamble", "the second gamble"), members, strict=True)
        )
        if both[0] == both[1]:
            raise ValueError(
                f"The two gambles of a problem differ; those of problem {number} are both "
                f"{[list(amount) for amount in both[0]]}. Change one of them."
            )
        taken.append(both)
    return tuple(taken)


def columns_of(problems: Iterable[Problem]) -> dict[str, NDArray[np.float64]]:
    """Return the problems as columns of both gambles, [problems].

    A gamble has amounts low <= middle <= high. If it has fewer amounts, the last one is repeated
    with the chance 0.
    """
    places = ("low", "middle", "high")
    rows = []
    for pair in problems:
        row = []
        for one in pair:
            padded = [*one, *[(one[-1][0], 0.0)] * (MOST_AMOUNTS - len(one))]
            row += [amount for amount, _ in padded] + [chance for _, chance in padded]
        rows.append(row)
    names = [f"{side}_{name}{kind}" for side in "ab" for kind in ("", "_chance") for name in places]
    return dict(zip(names, np.array(rows).T, strict=True))
