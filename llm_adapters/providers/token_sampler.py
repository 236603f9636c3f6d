"""Known beliefs as a language model has them: a distribution of the next token."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.llm_adapters.adapter import Reply, TokenLogProbability, Usage
from knownminds.llm_adapters.continuations.continuation_probabilities import (
    ContinuationProbabilities,
)
from knownminds.llm_adapters.continuations.continuation_tree import (
    Array,
    ContinuationTree,
    TokenTexts,
    spellings_of,
)

Tokenisation = Literal["single", "digits", "pairs"]
TOKENISATIONS: tuple[str, ...] = get_args(Tokenisation)
STOP = 0  # the special token that ends a text
STOP_NAME = "<|end|>"
ELSEWHERE = ("nobody", " nothing")  # what else is said
CLOSING = (("", 0.4), (".", 0.4), (" ", 0.2))  # how texts end, with their shares; "" ends at once


@dataclass(frozen=True)
class TokenSampler:
    """An agent with a known probability of each continuation, seen token by token.

    It says one of them, with or without a space before it, or something else. Then it ends the
    text, or goes on after a full stop or a blank. What it says is cut into tokens in a fixed way,
    or, for a given share of the texts, sign by sign. The probability of the next token is a ratio:
    that of all texts that begin with the tokens so far and this one, over that of all texts that
    begin with the tokens so far. This is exact, since the texts are few.

    Parameters
    ----------
    continuations : What it may say, different strings without blanks around them.
    probabilities : Of the continuations when it says one, [continuations]; they sum to 1.
    tokenisation : "single": each continuation is one token, with its space. "digits": each sign is
        a token. "pairs": signs, and pairs of signs that are merged from the left, so that 12 is one
        token and 123 two; a space goes with the sign behind it.
    space : Share of the continuations with a space before them.
    leak : Share of texts that say something else; it is spread over `elsewhere` alike.
    elsewhere : What else it says, without blanks at the end; a number that begins with a
        continuation is allowed.
    regular : Share of texts that are cut in the fixed way; the others are cut sign by sign.
    """

    continuations: tuple[str, ...]
    probabilities: Array
    tokenisation: Tokenisation = "digits"
    space: float = 0.5
    leak: float = 0.0
    elsewhere: tuple[str, ...] = ELSEWHERE
    regular: float = 1.0

    def __post_init__(self) -> None:
        """Check that this is a distribution over continuations that can be distinguished."""
        spellings_of(self.continuations)
        if self.tokenisation not in TOKENISATIONS:
            raise ValueError(
                f"tokenisation is one of {', '.join(TOKENISATIONS)}; got {self.tokenisation!r}."
            )
        p = np.asarray(self.probabilities, dtype=float)
        if p.shape != (len(self.continuations),) or not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
            raise ValueError(
                "An agent has a probability for each continuation, together 1; got "
                f"{p.size} of {len(self.continuations)} with a sum of {p.sum():g}."
            )
        for name in ("space", "leak", "regular"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share from 0 to 1; got {getattr(self, name)!r}.")
        shared = {text.strip() for text in self.elsewhere} & set(self.continuations)
        if self.leak and (shared or not self.elsewhere):
            raise ValueError(
                f"What else is said is none of the continuations; got {self.elsewhere!r}."
            )

    @cached_property
    def texts(self) -> TokenTexts:
        """The vocabulary; token 0 is special."""
        said = [text for text, _ in self._said]
        pieces = {sign for text in said for sign in text} | {c for c, _ in CLOSING if c}
        for text in said:
            pieces |= set(self._cut(text))
        return TokenTexts((None, *(piece.encode() for piece in sorted(pieces))))

    @cached_property
    def paths(self) -> dict[tuple[int, ...], float]:
        """All texts as tokens with their probabilities, which sum to 1."""
        by_path: dict[tuple[int, ...], float] = defaultdict(float)
        number = {text: k for k, text in enumerate(self.texts.texts)}
        for text, p in self._said:
            for cut, share in ((self._cut(text), self.regular), (list(text), 1 - self.regular)):
                for close, closing in CLOSING:
                    pieces = [*cut, close] if close else cut
                    path = (*(number[piece.encode()] for piece in pieces), STOP)
                    if p * share * closing > 0:
                        by_path[path] += p * share * closing
        return dict(by_path)

    def next_token(self, path: Sequence[int]) -> Array:
        """Return the probability of each token behind the tokens so far, [tokens].

        Behind what is never said the text ends.
        """
        known = self._next.get(tuple(path))
        if known is None:
            known = np.zeros(len(self.texts.texts))
            known[STOP] = 1.0
        return known

    def continuation_probabilities(self) -> ContinuationProbabilities:
        """Read them off the next-token distributions, as from a local model."""
        spellings = spellings_of(self.continuations)
        tree = ContinuationTree.grow(self.texts, self.continuations, spellings)
        paths = map(tree.path, range(len(tree.tokens)))
        with np.errstate(divide="ignore"):
            values = tree.probabilities(np.log(self.next_token(path)) for path in paths)
        exact, begun = (array[None] for array in values)
        return ContinuationProbabilities(self.continuations, exact, (self.hash,), begun)

    def reply(self, rng: np.random.Generator, *, top: int = 20, max_tokens: int = 16) -> Reply:
        """Say something, with the most probable alternatives to each token, as an interface does.

        Parameters
        ----------
        top : How many alternatives are shown.
        max_tokens : Where the text is cut off. The token that ends a text is among the
            alternatives, but has no entry.
        """
        path: tuple[int, ...] = ()
        tokens: list[TokenLogProbability] = []
        finish = "length"
        while len(path) < max_tokens:
            p = self.next_token(path)
            token = int(np.searchsorted(np.cumsum(p), rng.random() * p.sum(), side="right"))
            token = min(token, len(p) - 1)
            if token == STOP:
                finish = "stop"
                break
            order = [k for k in np.argsort(-p, kind="stable")[:top].tolist() if p[k] > 0]
            alternatives = tuple((self.name_of(k), log(p[k])) for k in order)
            tokens.append(TokenLogProbability(self.name_of(token), log(p[token]), alternatives))
            path = (*path, token)
        text = self._text(path)
        usage = Usage(input_tokens=1, output_tokens=len(path))
        return Reply(text, finish, usage, "token-sampler", text, log_probabilities=tuple(tokens))

    def name_of(self, token: int) -> str:
        """Return a token as an interface writes it."""
        text = self.texts.texts[token]
        return STOP_NAME if text is None else text.decode()

    def counts(self, rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], int]:
        """Let it speak n times: how often each continuation comes, and how often something else."""
        said = self.spoken
        drawn = rng.multinomial(n, np.append(said, max(0.0, 1.0 - said.sum())))
        return drawn[:-1].astype(np.int64), int(drawn[-1])

    @property
    def spoken(self) -> Array:
        """Probability that it says exactly each, before normalising, [continuations]."""
        share = 1.0 - self.leak
        spoken: Array = share * np.asarray(self.probabilities, dtype=float)
        return spoken

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what it may say."""
        content = sorted((list(path), round(p, 12)) for path, p in self.paths.items())
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @cached_property
    def _said(self) -> list[tuple[str, float]]:
        """What may be said, each with its probability."""
        said = []
        for one, p in zip(self.continuations, self.spoken.tolist(), strict=True):
            said += [(f" {one}", p * self.space), (one, p * (1 - self.space))]
        if self.leak:
            said += [(text, self.leak / len(self.elsewhere)) for text in self.elsewhere]
        return said

    def _cut(self, text: str) -> list[str]:
        if self.tokenisation == "digits":
            return list(text)
        if self.tokenisation == "single":
            return [text]
        if text.startswith(" "):
            # As byte-pair tokenizers do, which put the space to the word behind it.
            rest = text[2:]
            return [text[:2], *(rest[k : k + 2] for k in range(0, len(rest), 2))]
        return [text[k : k + 2] for k in range(0, len(text), 2)]

    def _text(self, path: Sequence[int]) -> str:
        return "".join(t.decode() for t in map(self.texts.texts.__getitem__, path) if t is not None)

    @cached_property
    def _next(self) -> dict[tuple[int, ...], Array]:
        """The next-token distribution behind everything that may have been said."""
        begun: dict[tuple[int, ...], Array] = {}
        for path, p in self.paths.items():
            for n, token in enumerate(path):
                if path[:n] not in begun:
                    begun[path[:n]] = np.zeros(len(self.texts.texts))
                begun[path[:n]][token] += p
        return {path: weight / weight.sum() for path, weight in begun.items()}
