"""All ways in which continuations can be said in tokens, as one tree behind a prompt."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGEST_TREE = 4096  # nodes; each is a position that the model has to go through
NONE = -1  # the position of no continuation

# What joins two parts of a number, of a word, or of both: 1.5 1,000 3:1 1/6, day's, 6-sided.
_IN_NUMBERS, _IN_WORDS, _IN_BOTH = ".,:/", "'’", "-"


def extends(said: str, more: str) -> bool | None:
    """Tell whether text makes the last word or number of the text before it longer.

    A letter or digit does so directly after a letter or digit, or with a joining sign between
    them: . , : or / between digits, an apostrophe between letters, a hyphen between any. None if
    that hangs on what follows, since `more` is a joining sign and no more.
    """
    last, first = _kind(said[-1:]), _kind(more[:1])
    joined = _kind(said[-2:-1]) if len(said) > 1 else " "
    if last in "0a":
        if first in "0a":
            return True
        if not _joins(first, last):
            return False
        return _joins(first, _kind(more[1:2])) if len(more) > 1 else None
    return _joins(last, joined) and _joins(last, first)


def _kind(sign: str) -> str:
    """Return 0 for a digit, a for what else words are made of, a joining sign, or a blank."""
    if sign and sign in _IN_NUMBERS + _IN_WORDS + _IN_BOTH:
        return sign
    if sign.isdigit():
        return "0"
    if sign.isalnum() or sign == "_" or (sign and unicodedata.category(sign)[0] == "M"):
        return "a"
    return " "


def _joins(sign: str, part: str) -> bool:
    """Tell whether the sign can stand beside a digit or a letter within a number or word."""
    return part in _JOINING and sign in _JOINING[part]


_JOINING = {"0": _IN_NUMBERS + _IN_BOTH, "a": _IN_WORDS + _IN_BOTH}


@dataclass(frozen=True)
class TokenTexts:
    """What each token adds to a text, as UTF-8.

    Parameters
    ----------
    texts : by token; None for special tokens, which end a text, and for those without any
    """

    texts: tuple[bytes | None, ...]

    @classmethod
    def of(cls, tokenizer: Any) -> TokenTexts:
        """Read them from a tokenizer of the transformers package."""
        names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        added = tokenizer.added_tokens_decoder
        special = set(tokenizer.all_special_ids) | {i for i, t in added.items() if t.special}
        backend = getattr(tokenizer, "backend_tokenizer", None)
        decoder = json.dumps(json.loads(backend.to_str())["decoder"]) if backend else ""
        if '"ByteLevel"' in decoder:
            texts = [
                name.encode() if i in added else bytes(_BYTES[sign] for sign in name or "")
                for i, name in enumerate(names)
            ]
        else:
            # Behind other text, since the blank before a first word is dropped by some.
            anchor = tokenizer("a", add_special_tokens=False).input_ids
            said = tokenizer.batch_decode(
                [anchor, *([*anchor, i] for i in range(len(names)))],
                skip_special_tokens=False,
                clean_up_tokenization_spaces=False,
            )
            texts = [text[len(said[0]) :].encode() for text in said[1:]]
            if '"ByteFallback"' in decoder:
                for i, name in enumerate(names):
                    byte = re.fullmatch("<0x([0-9A-F]{2})>", name)
                    texts[i] = bytes([int(byte[1], 16)]) if byte else texts[i]
        return cls(tuple(None if i in special or not t else t for i, t in enumerate(texts)))

    @cached_property
    def tokens(self) -> dict[bytes, list[int]]:
        """The tokens with each text."""
        by_text: dict[bytes, list[int]] = defaultdict(list)
        for token, text in enumerate(self.texts):
            if text is not None:
                by_text[text].append(token)
        return dict(by_text)

    @cached_property
    def longest(self) -> int:
        """Length of the longest text in bytes."""
        return max(map(len, self.tokens), default=0)

    def behind(self, rest: bytes, tail: str) -> Extending:
        """Sort the tokens that finish a text and say more.

        Parameters
        ----------
        rest : What is left of the text to say; nothing if it has been said.
        tail : How the text ends, see `_tail`.
        """
        extending = self._known.get((rest, tail))
        if extending is None:
            sorted_out: dict[bool | None, list[int]] = {False: [], True: [], None: []}
            begin = bisect_left(self._alphabetic, (rest,))
            for text, token in islice(self._alphabetic, begin, None):
                if not text.startswith(rest):
                    break
                if len(text) > len(rest):
                    sorted_out[_judge(tail, text[len(rest) :])].append(token)
            extending = Extending(*(np.array(v, dtype=np.int64) for v in sorted_out.values()))
            self._known[rest, tail] = extending
        return extending

    @cached_property
    def _alphabetic(self) -> list[tuple[bytes, int]]:
        return sorted((text, i) for i, text in enumerate(self.texts) if text is not None)

    @cached_property
    def _known(self) -> dict[tuple[bytes, str], Extending]:
        return {}


class Extending(NamedTuple):
    """Tokens by what they do to the last word or number of the text before them.

    Parameters
    ----------
    ending : they do not make it longer
    longer : they do, or they begin with a part of a character, of which one cannot tell
    undecided : they may, with what follows them
    """

    ending: NDArray[np.int64]
    longer: NDArray[np.int64]
    undecided: NDArray[np.int64]


def _tail(said: str) -> str:
    """Return the shortest text that is made longer by the same as the text."""
    last = _kind(said[-1:])
    if last in "0a ":
        return {"0": "0", "a": "a"}.get(last, " ")
    before = _kind(said[-2:-1]) if len(said) > 1 else " "
    return before + last if _joins(last, before) else " "


def _judge(tail: str, text: bytes) -> bool | None:
    if tail == " ":
        return False
    try:
        return extends(tail, text.decode())
    except UnicodeDecodeError as error:
        begin = text[: error.start].decode()
        longer = extends(tail, begin) if begin else True
        return True if longer is None else longer


# The printable stand-ins for bytes in the vocabularies of byte-level tokenizers: visible Latin-1
# signs stand for themselves, the other bytes in turn for the signs from 256 on (Radford et al.
# 2019, GPT-2).
_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in set(_VISIBLE)]
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(256 + k): byte for k, byte in enumerate(_HIDDEN)
}


class NextTokens(NamedTuple):
    """What becomes of a text with each token behind it.

    Parameters
    ----------
    continuations : position of the one that has then been said and is over, [tokens]; `NONE` if
        none has, and where the token is one of `further`
    default : the same of special tokens, and of those that the tokenizer does not know
    further : tokens behind which it is not decided
    """

    continuations: NDArray[np.int64]
    default: int
    further: tuple[int, ...]


@dataclass(frozen=True)
class ContinuationTree:
    """All token paths of all spellings of continuations; node 0 is the end of the prompt.

    Every text that a model may say is one continuation or none. It is the longest one that it
    begins with and that nothing makes longer ("New York" is not "New"). So the tokens behind a
    node are sorted by continuation, and only those behind which it is not decided have nodes.

    Parameters
    ----------
    continuations : the texts
    tokens : token of each node; of node 0 it means nothing
    parents : node before each, -1 for node 0; parents stand before their children
    next_tokens : what may follow the text of each node
    said : pairs of a node where a spelling has just been said in full, and its continuation
    """

    continuations: tuple[str, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    next_tokens: tuple[NextTokens, ...]
    said: tuple[tuple[int, int], ...]

    @classmethod
    def grow(
        cls, texts: TokenTexts, continuations: Sequence[str], spellings: Sequence[tuple[str, int]]
    ) -> ContinuationTree:
        """Follow every path.

        Parameters
        ----------
        spellings : All that counts as saying a continuation, each with the continuation's position.

        Raises
        ------
        ValueError : If a spelling cannot be said in these tokens, or the tree is too large.
        """
        encoded = ((text.encode(), k) for text, k in spellings)
        spelled = sorted(encoded, key=lambda pair: len(pair[0]))
        open_ends = [_open_ends(texts, text) for text, _ in spelled]
        known: dict[bytes, NextTokens] = {}
        tokens, parents, said = [-1], [-1], [b""]
        next_tokens: list[NextTokens] = []
        for node, text in enumerate(said):  # which grows meanwhile
            if text not in known:
                known[text] = _next_tokens(texts, spelled, open_ends, text)
            next_tokens.append(known[text])
            for token in next_tokens[node].further:
                tokens.append(token)
                parents.append(node)
                said.append(text + (texts.texts[token] or b""))
            if len(tokens) > LARGEST_TREE:
                raise ValueError(
                    f"Continuations are short enough for a tree of {LARGEST_TREE} tokens; these "
                    "have more ways to be cut into tokens. Shorten them."
                )
        position = dict(spelled)
        whole = tuple((n, position[text]) for n, text in enumerate(said) if text in position)
        return cls(tuple(continuations), tuple(tokens), tuple(parents), tuple(next_tokens), whole)

    def path(self, node: int) -> tuple[int, ...]:
        """Return the tokens from the prompt to a node."""
        return (*self.path(self.parents[node]), self.tokens[node]) if node else ()

    def probabilities(self, rows: Iterable[Array]) -> tuple[Array, Array]:
        """Put together the log-probabilities of the continuations.

        The probability of one is that of saying exactly this, and then something that does not
        make its last word or number longer. It is the sum over nodes of P(path) x P(a token that
        ends it).

        Parameters
        ----------
        rows : Log-probability of each token behind each node, [tokens], by node.

        Returns
        -------
        Log-probabilities of the continuations, [continuations]; and those that each is said,
        whatever follows, which is no probability of it where another one begins with it.
        """
        n = len(self.continuations)
        exact, begun = np.full(n, -np.inf), np.full(n, -np.inf)
        children: dict[int, list[int]] = defaultdict(list)
        for node, parent in enumerate(self.parents):
            children[parent].append(node)
        reached = np.zeros(len(self.tokens))
        for node, row in enumerate(rows):
            next_tokens = self.next_tokens[node]
            more = len(row) - len(next_tokens.continuations)
            position = np.pad(
                next_tokens.continuations, (0, more), constant_values=next_tokens.default
            )
            shares = np.bincount(position + 1, weights=np.exp(row), minlength=n + 1)[1:]
            with np.errstate(divide="ignore"):
                exact = np.logaddexp(exact, reached[node] + np.log(shares))
            for child in children[node]:
                reached[child] = reached[node] + row[self.tokens[child]]
        for node, k in self.said:
            begun[k] = np.logaddexp(begun[k], reached[node])
        return exact, begun


def _next_tokens(
    texts: TokenTexts,
    spelled: Sequence[tuple[bytes, int]],
    open_ends: Sequence[set[int]],
    said: bytes,
) -> NextTokens:
    """Sort the tokens behind a text; spellings come from the shortest to the longest."""
    continuations = np.full(len(texts.texts), NONE)
    default = NONE
    further: dict[int, None] = {}
    for k, (text, continuation) in enumerate(spelled):
        tail = _tail(text.decode())
        if said.startswith(text):
            more = said[len(text) :]
            longer = _judge(tail, more) if more else None
            if longer is False:
                continuations[:] = default = continuation
            elif longer is None:
                behind = texts.behind(b"", _tail(said.decode()))
                others = np.concatenate([behind.longer, behind.undecided])
                before = continuations[others]
                continuations[:] = default = continuation
                continuations[others] = before
                further |= dict.fromkeys(behind.undecided.tolist())
        elif text.startswith(said):
            rest = text[len(said) :]
            for end in range(1, min(len(rest), texts.longest) + 1):
                if len(said) + end in open_ends[k]:
                    further |= dict.fromkeys(texts.tokens.get(rest[:end], ()))
            behind = texts.behind(rest, tail)
            continuations[behind.ending] = continuation
            further |= dict.fromkeys(behind.undecided.tolist())
    continuations[list(further)] = NONE
    return NextTokens(continuations, default, tuple(further))


def _open_ends(texts: TokenTexts, text: bytes) -> set[int]:
    """Return from which bytes of a spelling tokens lead to its end.

    Raises
    ------
    ValueError : If the spelling cannot be said.
    """
    ends = {len(text)}
    for begin in reversed(range(len(text))):
        pieces = (end for end in ends if end - begin <= texts.longest)
        if any(text[begin:end] in texts.tokens for end in pieces):
            ends.add(begin)
    if 0 not in ends:
        raise ValueError(
            f"Continuations can be said in the model's tokens; {text.decode()!r} cannot. Word "
            "them otherwise."
        )
    return ends


def spellings_of(continuations: Sequence[str]) -> list[tuple[str, int]]:
    """List all that counts as saying a continuation, each with the continuation's position.

    It is the continuation with a space before it, and without.
    """
    n = len(continuations)
    if isinstance(continuations, str) or not n or len(set(continuations)) < n:
        raise ValueError(f"Continuations are a list of different strings; got {continuations!r}.")
    for one in continuations:
        if not one or one != one.strip():
            raise ValueError(
                f"A continuation has letters, digits or signs, and no blanks around it; got "
                f"{one!r}. The space before it is part of one of its spellings."
            )
    return [(text, k) for k, one in enumerate(continuations) for text in (f" {one}", one)]
