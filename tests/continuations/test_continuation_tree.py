import re

import numpy as np
import pytest

from knownminds.llm_adapters.continuations.continuation_tree import (
    ContinuationTree,
    TokenTexts,
    spellings_of,
)

STOP = 0  # the special token


def texts(*signs):
    return TokenTexts(
        (None, *(sign if isinstance(sign, bytes) else sign.encode() for sign in signs))
    )


def grow(known, continuations):
    return ContinuationTree.grow(known, continuations, spellings_of(continuations))


def probabilities(tree, known, next_token):
    """Put together what `next_token(tokens so far)` says; it returns [tokens]."""
    paths = map(tree.path, range(len(tree.tokens)))
    with np.errstate(divide="ignore"):
        exact, _ = tree.probabilities(np.log(next_token(path)) for path in paths)
    return np.exp(exact)


def random_participant(size, seed):
    """Next-token probabilities that differ after every path."""

    def next_token(path):
        weights = np.random.default_rng((seed, *path)).exponential(size=size) ** 3
        return weights / weights.sum()

    return next_token


_LONGER = re.compile(
    r"(?<=[0-9a-z])[0-9a-z]|(?<=[0-9])[.,:/](?=[0-9])|(?<=[0-9][.,:/])[0-9]"
    r"|(?<=[a-z])'(?=[a-z])|(?<=[a-z]')[a-z]|(?<=[0-9a-z])-(?=[0-9a-z])|(?<=[0-9a-z]-)[0-9a-z]"
)


def by_brute_force(known, continuations, next_token, length):
    """Say everything of a length and look at whole texts: the longest continuation said gets it."""
    totals = dict.fromkeys(continuations, 0.0)

    def say(path, probability):
        if len(path) < length and STOP not in path:
            for token, p in enumerate(next_token(path)):
                say((*path, token), probability * p)
            return
        said = b"".join(known.texts[token] for token in path if token != STOP).decode()
        hits = [
            continuation
            for continuation in continuations
            for text in (continuation, f" {continuation}")
            if said.startswith(text) and not _LONGER.match(said, len(text))
        ]
        if hits:
            totals[max(hits, key=len)] += probability

    say((), 1.0)
    return np.array(list(totals.values()))


def test_a_uniform_participant_does_not_seem_to_favour_the_digit_that_begins_other_numbers():
    continuations = [str(n) for n in range(1, 13)]
    known = texts(*"0123456789", " ")

    def next_token(path):
        """Say every number from 1 to 12 alike, behind a space, digit by digit."""
        p = np.zeros(len(known.texts))
        if not path:
            p[-1] = 1.0
            return p
        number = "".join(str(token - 1) for token in path[1:])
        begun = [said for said in continuations if said.startswith(number)]
        for said in begun:
            p[1 + int(said[len(number)]) if said != number else STOP] += 1 / len(begun)
        return p

    found = probabilities(grow(known, continuations), known, next_token)
    np.testing.assert_allclose(found, 1 / 12, rtol=1e-12)
    first_digit = next_token((11,))[2:11]  # the trap: what one token seems to say
    np.testing.assert_allclose(first_digit, [4 / 12] + [1 / 12] * 8)


@pytest.mark.parametrize(
    ("signs", "continuations", "length"),
    [
        (["0", "1", " ", ".", "x"], ["0", "1", "10", "11"], 5),
        (["1", " ", "-", " 1", "11", "1-"], ["1", "11"], 5),
        (["a", "b", " ", "'", "ab", "a'"], ["a", "ab", "b"], 5),
        (["a", " ", "b", "a ", "b "], ["a", "b", "a b"], 6),
        (["1", ".", " ", "1.", ".1"], ["1", "1.", "1.1"], 6),
    ],
    ids=["digits", "merged", "mixed", "nested", "points"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_all_paths_together_are_what_brute_force_finds_in_whole_texts(
    signs, continuations, length, seed
):
    known = texts(*signs)
    next_token = random_participant(len(known.texts), seed)
    found = probabilities(grow(known, continuations), known, next_token)
    brute = by_brute_force(known, continuations, next_token, length)
    np.testing.assert_allclose(found, brute, rtol=1e-9)
    assert (brute > 0).all()


def test_without_the_stop_the_shorter_continuation_would_take_the_longer_ones_part():
    known = texts("0", "1", " ", ".", "x")
    next_token = random_participant(len(known.texts), 0)
    tree = grow(known, ["1", "10"])
    right = probabilities(tree, known, next_token)
    begun = next_token(())[2] + next_token(())[3] * next_token((3,))[2]
    assert begun > 1.05 * right[0]
