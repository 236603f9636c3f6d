"""All ways in which outcomes can be said in tokens, as one tree behind a prompt."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

LARGEST_TREE = 4096  # nodes; each is a position that the model has to go through

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
    signs : whether what follows a joining sign decides if a word or number goes on (1.5); if not,
        the sign has ended it
    """

    texts: tuple[bytes | None, ...]
    signs: bool = True

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

    def behind(self, rest: bytes, tail: str) -> Continuing:
        """Sort the tokens that finish a text and say more.

        Parameters
        ----------
        rest
            What is left of the text to say; nothing if it has been said.
        tail
            How the text ends, as `OutcomeTree.tails` has it.
        """
        continuing = self._known.get((rest, tail))
        if continuing is None:
            sorted_out: dict[bool | None, list[int]] = {False: [], True: [], None: []}
            begin = bisect_left(self._alphabetic, (rest,))
            for text, token in islice(self._alphabetic, begin, None):
                if not text.startswith(rest):
                    break
                if len(text) > len(rest):
                    longer = _judge(tail, text[len(rest) :])
                    sorted_out[longer if self.signs else bool(longer)].append(token)
            continuing = Continuing(*(np.array(v, dtype=np.int64) for v in sorted_out.values()))
            self._known[rest, tail] = continuing
        return continuing

    @cached_property
    def _alphabetic(self) -> list[tuple[bytes, int]]:
        return sorted((text, i) for i, text in enumerate(self.texts) if text is not None)

    @cached_property
    def _known(self) -> dict[tuple[bytes, str], Continuing]:
        return {}


class Continuing(NamedTuple):
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


class End(NamedTuple):
    """A way in which a spelling is over.

    Parameters
    ----------
    node : the last token
    whole : whether that token has ended the word or number itself; if not, the next one must
    spelling : which
    """

    node: int
    whole: bool
    spelling: int


@dataclass(frozen=True)
class OutcomeTree:
    """All token paths of all spellings of outcomes; node 0 is the end of the prompt.

    Parents stand before their children. The first `entered` nodes are positions that a model
    goes through; of those after them only the probability is asked, given their parent.

    Parameters
    ----------
    outcomes : their names
    spellings : how each is written behind a prompt, with its position in `outcomes`
    tokens : token of each node; of node 0 it means nothing
    parents : node before each; -1 for node 0
    depths : tokens behind the prompt
    entered : how many nodes a model goes through
    tails : for nodes where a spelling may be over, how the text there ends, as
        `TokenTexts.behind` takes it; None elsewhere
    ends : all ways in which spellings are over
    pruned : pairs of a node and a spelling that is not followed further from there
    contained : for each end those that are a part of it, since their spelling goes on behind it
    said : pairs of a node where a spelling has just been said in full, and that spelling
    """

    outcomes: tuple[str, ...]
    spellings: tuple[tuple[str, int], ...]
    tokens: NDArray[np.int64]
    parents: NDArray[np.int64]
    depths: NDArray[np.int64]
    entered: int
    tails: tuple[str | None, ...]
    ends: tuple[End, ...]
    pruned: tuple[tuple[int, int], ...]
    contained: tuple[tuple[int, ...], ...]
    said: tuple[tuple[int, int], ...]

    @classmethod
    def grow(
        cls,
        texts: TokenTexts,
        outcomes: Sequence[str],
        *,
        spellings: Sequence[tuple[str, int]],
        extra_tokens: int | None = None,
    ) -> OutcomeTree:
        """Find every path.

        Parameters
        ----------
        spellings
            All that counts as saying an outcome, each with the outcome's position.
        extra_tokens
            Paths with at most so many tokens more than the shortest of their spelling; None for
            all paths.
        """
        if extra_tokens is not None and extra_tokens < 0:
            raise ValueError(f"extra_tokens is at least 0, or None; got {extra_tokens}.")
        growing = _Growing(texts, extra_tokens)
        for k, (text, _) in enumerate(spellings):
            growing.add(text, k)
        return growing.tree(tuple(outcomes), tuple(spellings))

    @property
    def depth(self) -> int:
        """Tokens of the longest path."""
        return int(self.depths[: self.entered].max())

    def probabilities(self, edges: Array, stops: Array) -> tuple[Array, Array, Array]:
        """Put together the log-probabilities of the outcomes.

        The probability of an outcome is that of saying exactly this, and then something that does
        not make its last word or number longer: the sum over its ends of P(path) x P(stop). An
        outcome that another one continues ("New", "New York") is without that other one.

        Parameters
        ----------
        edges
            Log-probability of each node's token given its parent, [prompts, nodes]; column 0 is 0.
        stops
            Log-probability that the next token is special or is `ending`, [prompts, nodes]; only
            nodes with a tail are read.

        Returns
        -------
        Log-probabilities of the outcomes; the log of the most that paths not followed can add to
        each; and the log-probabilities that the outcome is said, whatever follows, which is no
        probability of the outcome where another one begins with it. All are [prompts, outcomes].
        """
        reached = np.zeros_like(edges)
        for node in range(1, len(self.tokens)):
            reached[:, node] = reached[:, self.parents[node]] + edges[:, node]
        shape = (len(edges), len(self.outcomes))
        exact, missed, begun = (np.full(shape, -np.inf) for _ in range(3))
        alone: dict[int, Array] = {}
        for k in self._innermost_first:
            node, whole, spelling = self.ends[k]
            event = reached[:, node] + (0.0 if whole else stops[:, node])
            if self.contained[k]:
                taken = logsumexp([alone[other] for other in self.contained[k]], axis=0)
                with np.errstate(divide="ignore", invalid="ignore"):
                    rest = np.log1p(-np.minimum(np.exp(taken - event), 1.0))
                event = np.where(taken > -np.inf, event + rest, event)
            alone[k] = event
            _add(exact, self.spellings[spelling][1], event)
        for node, spelling in self.pruned:
            _add(missed, self.spellings[spelling][1], reached[:, node])
        for node, spelling in self.said:
            _add(begun, self.spellings[spelling][1], reached[:, node])
        return exact, missed, begun

    @cached_property
    def _innermost_first(self) -> list[int]:
        def key(k: int) -> tuple[int, int]:
            node, _, spelling = self.ends[k]
            return -int(self.depths[node]), -len(self.spellings[spelling][0])

        return sorted(range(len(self.ends)), key=key)


def _add(sums: Array, outcome: int, event: Array) -> None:
    sums[:, outcome] = np.logaddexp(sums[:, outcome], event)


def spellings_of(
    outcomes: Sequence[str], declared: Mapping[str, Sequence[str]] | None = None
) -> list[tuple[str, int]]:
    """List all that counts as saying an outcome, each with the outcome's position.

    Parameters
    ----------
    declared
        The spellings of each outcome; None for the outcome with a space before it and without.
    """
    if isinstance(outcomes, str) or len(outcomes) < 1 or len(set(outcomes)) < len(outcomes):
        raise ValueError(f"Outcomes are a list of different strings; got {outcomes!r}.")
    if declared is not None and set(declared) != set(outcomes):
        differing = sorted(set(declared) ^ set(outcomes))
        raise ValueError(
            "Spellings are declared for each outcome and nothing else; "
            f"{differing[0]!r} is in only one of the two."
        )
    written: dict[str, int] = {}
    for k, outcome in enumerate(outcomes):
        if declared is None and outcome != outcome.strip():
            raise ValueError(
                f"An outcome stands without blanks around it; got {outcome!r}. The space before "
                "it is one of its spellings by default; declare others as spellings."
            )
        given = (f" {outcome}", outcome) if declared is None else declared[outcome]
        if isinstance(given, str) or not given:
            raise ValueError(
                f"An outcome has a list of spellings; {outcome!r} has {given!r} instead."
            )
        for text in given:
            if not text.strip():
                raise ValueError(f"A spelling has letters, digits or signs; {outcome!r} has none.")
            if text in written:
                raise ValueError(
                    f"A spelling belongs to one outcome; {text!r} is one of "
                    f"{outcomes[written[text]]!r} and of {outcome!r}. Leave it out of one."
                )
            written[text] = k
    return list(written.items())


class _Growing:
    """A tree while paths are added to it."""

    def __init__(self, texts: TokenTexts, extra_tokens: int | None):
        self.texts = texts
        self.extra_tokens = extra_tokens
        self.children: dict[tuple[int, int], int] = {}
        self.tokens, self.parents, self.depths = [-1], [-1], [0]
        self.tails: dict[int, str] = {}
        self.ends: list[End] = []
        # Nodes that nobody goes through: parent, token, spelling.
        self.closing: list[tuple[int, int, int]] = []
        self.pruned: list[tuple[int, int, int]] = []
        self.said: list[tuple[int, int]] = []

    def add(self, text: str, spelling: int) -> None:
        """Add all paths of a spelling."""
        said = text.encode()
        pieces = [self._pieces(said, begin) for begin in range(len(said))]
        needed = [0] * (len(said) + 1)  # fewest tokens from each byte to the end
        for begin in reversed(range(len(said))):
            needed[begin] = 1 + min((needed[end] for _, end in pieces[begin]), default=len(said))
        if needed[0] > len(said):
            raise ValueError(
                f"Outcomes can be said in the model's tokens; {text!r} cannot. Spell it otherwise."
            )
        most = len(said) if self.extra_tokens is None else needed[0] + self.extra_tokens
        waiting = [(0, 0)]
        while waiting:
            node, begin = waiting.pop()
            self._end(node, text, said[begin:], spelling)
            if begin == len(said):
                continue
            for token, end in pieces[begin]:
                if needed[end] > len(said):
                    continue
                if self.depths[node] + 1 + needed[end] > most:
                    self.pruned.append((node, token, spelling))
                else:
                    child = self._child(node, token)
                    waiting.append((child, end))

    def _pieces(self, said: bytes, begin: int) -> list[tuple[int, int]]:
        """Return the tokens that can come next, each with where it ends."""
        last = min(len(said), begin + self.texts.longest)
        return [
            (token, end)
            for end in range(begin + 1, last + 1)
            for token in self.texts.tokens.get(said[begin:end], ())
        ]

    def _end(self, node: int, text: str, rest: bytes, spelling: int) -> None:
        """Add the ways in which a spelling can be over from here on, if any."""
        tail = _tail(text)
        behind = self.texts.behind(rest, tail)
        if rest:  # a token may finish the spelling and be its stop as well
            self.closing.extend((node, int(token), spelling) for token in behind.ending)
        else:
            self.tails[node] = tail
            self.ends.append(End(node, False, spelling))
            self.said.append((node, spelling))
        for token in behind.undecided:
            child = self._child(node, int(token))
            more = self.texts.texts[token]
            assert more is not None
            self.tails[child] = _tail(text + more[len(rest) :].decode())
            self.ends.append(End(child, False, spelling))

    def _child(self, node: int, token: int) -> int:
        child = self.children.get((node, token))
        if child is None:
            child = self.children[node, token] = self._node(node, token)
            if child >= LARGEST_TREE:
                raise ValueError(
                    f"Outcomes are short enough for a tree of {LARGEST_TREE} tokens; these have "
                    "more ways to be cut into tokens. Give extra_tokens=2 to follow only those "
                    "nearest to the shortest, with a bound on what the others add."
                )
        return child

    def _node(self, parent: int, token: int) -> int:
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        return len(self.tokens) - 1

    def tree(
        self, outcomes: tuple[str, ...], spellings: tuple[tuple[str, int], ...]
    ) -> OutcomeTree:
        """Finish."""
        entered = len(self.tokens)

        def leaf(parent: int, token: int) -> int:  # another spelling may go through it
            if (parent, token) not in self.children:
                self.children[parent, token] = self._node(parent, token)
            return self.children[parent, token]

        for parent, token, spelling in self.closing:
            self.ends.append(End(leaf(parent, token), True, spelling))
        pruned = tuple((leaf(parent, token), k) for parent, token, k in self.pruned)
        return OutcomeTree(
            outcomes=outcomes,
            spellings=spellings,
            tokens=np.array(self.tokens, dtype=np.int64),
            parents=np.array(self.parents, dtype=np.int64),
            depths=np.array(self.depths, dtype=np.int64),
            entered=entered,
            tails=tuple(self.tails.get(node) for node in range(len(self.tokens))),
            ends=tuple(self.ends),
            pruned=pruned,
            contained=self._contained(spellings),
            said=tuple(self.said),
        )

    def _contained(self, spellings: tuple[tuple[str, int], ...]) -> tuple[tuple[int, ...], ...]:
        at: dict[int, list[int]] = defaultdict(list)
        for k, end in enumerate(self.ends):
            at[end.node].append(k)
        contained: list[list[int]] = [[] for _ in self.ends]
        for k, inner in enumerate(self.ends):
            node, after = inner.node, -1
            while node > 0:
                for other in at[node]:
                    outer = self.ends[other]
                    longer = len(spellings[inner.spelling][0]) > len(spellings[outer.spelling][0])
                    if longer and (after < 0 or outer.whole or self._stops(node, after)):
                        contained[other].append(k)
                node, after = self.parents[node], node
        return tuple(map(tuple, contained))

    def _stops(self, node: int, after: int) -> bool:
        behind = self.texts.behind(b"", self.tails[node])
        token = self.tokens[after]
        return token not in behind.longer and token not in behind.undecided
