"""Exact probabilities of whole outcomes, as strings, under a local language model."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from .outcome_tree import Array, OutcomeTree, TokenTexts, extends, spellings_of

LITTLE_MASS = 0.5  # below it, a distribution over the outcomes speaks for the smaller part only
LARGEST_DIFFERENCE = 1e-3  # of log-probabilities between the tree and a plain pass, in float32


@dataclass(frozen=True)
class TokenPrompt:
    """A prompt as the model gets it.

    Parameters
    ----------
    text : with all that a chat template adds
    tokens : as the tokenizer cuts it
    special_tokens : whether the tokenizer adds its own, such as one for the beginning
    """

    text: str
    tokens: tuple[int, ...]
    special_tokens: bool

    @classmethod
    def of(cls, tokenizer: Any, text: str, *, special_tokens: bool = True) -> TokenPrompt:
        """Cut a text into tokens."""
        tokens = tokenizer(text, add_special_tokens=special_tokens).input_ids
        if not tokens:
            raise ValueError(f"A prompt has at least one token; {text!r} has none.")
        return cls(text, tuple(tokens), special_tokens)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the tokens."""
        return hashlib.sha256(json.dumps(self.tokens).encode()).hexdigest()


@dataclass(frozen=True)
class OutcomeProbabilities:
    """How probable each outcome is as continuation of each prompt.

    Parameters
    ----------
    outcomes : their names
    log_probabilities : natural logarithm of the probability of exactly this outcome, and then
        something that does not make its last word or number longer, [prompts, outcomes]
    left_out : logarithm of the most that token paths not followed can add, [prompts, outcomes];
        minus infinity where all were followed
    prompt_hashes : SHA-256 of the tokens of each prompt
    """

    outcomes: tuple[str, ...]
    log_probabilities: Array
    left_out: Array
    prompt_hashes: tuple[str, ...]

    @property
    def probabilities(self) -> Array:
        """Normalised over the outcomes, [prompts, outcomes]."""
        total = logsumexp(self.log_probabilities, axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # NaN where no outcome is possible
            normalised: Array = np.exp(self.log_probabilities - total)
        return normalised

    @property
    def mass(self) -> Array:
        """Probability of all outcomes together, before normalising, [prompts]."""
        mass: Array = np.exp(logsumexp(self.log_probabilities, axis=1))
        return mass

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Prompts after which the outcomes together are less probable than anything else."""
        return self.mass < LITTLE_MASS

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt and outcome."""
        n, k = self.log_probabilities.shape
        return pd.DataFrame(
            {
                "prompt": np.repeat(np.arange(n), k),
                "prompt_hash": [name for name in self.prompt_hashes for _ in range(k)],
                "outcome": self.outcomes * n,
                "probability": self.probabilities.ravel(),
                "log_probability": self.log_probabilities.ravel(),
                "left_out": self.left_out.ravel(),
                "mass": np.repeat(self.mass, k),
                "flagged": np.repeat(self.flagged, k),
            }
        )

    def to_json(self) -> str:
        """Return one record per prompt and outcome; logarithms of zero are null."""
        records: str = self.to_frame().to_json(orient="records", double_precision=15)
        return records

    def __str__(self) -> str:
        """Table of normalised probabilities, with the mass of each prompt."""
        table = pd.DataFrame(self.probabilities, columns=list(self.outcomes))
        table["mass"] = self.mass
        table.insert(0, "prompt", [name[:8] for name in self.prompt_hashes])
        lines = [table.to_string(index=False, float_format=lambda value: f"{value:.4f}")]
        if self.flagged.any():
            lines.append(
                f"{self.flagged.sum()} of {len(table)} prompts have a mass below {LITTLE_MASS}: "
                "something else is more probable there than all outcomes together."
            )
        if np.isfinite(self.left_out).any():
            most = float(np.exp(self.left_out).max())
            lines.append(f"Token paths not followed add at most {most:.1e} before normalising.")
        return "\n".join(lines)


def outcome_probabilities(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[TokenPrompt],
    outcomes: Sequence[str],
    *,
    spellings: Mapping[str, Sequence[str]] | None = None,
    extra_tokens: int | None = None,
    positions: int = 1024,
    texts: TokenTexts | None = None,
    check: bool = True,
) -> OutcomeProbabilities:
    """Compute the probability of each outcome as a whole string behind each prompt.

    Under a tokenizer that cuts numbers into digits the token "1" begins 10, 11 and 12 as well, so
    that its probability is not that of the outcome 1. Here it is P(string) x P(stop | string),
    summed over all ways to cut the string into tokens and over its spellings; a stop is a special
    token, or text that does not make the last word or number longer (`outcome_tree.extends`).

    All paths stand as a tree behind their prompt and go through the model together, each token
    seeing its own ancestors only, as do the prompts of a batch, whose common beginning is
    computed once.

    Parameters
    ----------
    model
        A causal language model of the transformers package, in float32 or better.
    tokenizer
        Its tokenizer.
    prompts
        They end right before the outcome; a space before the outcome belongs to the outcome.
    spellings
        For each outcome all that counts as saying it; None for the outcome with a space before
        it and without one, where the latter counts only if it does not run on from the last word
        of the prompt.
    extra_tokens
        Follow paths with at most so many tokens more than the shortest; None for all.
    positions
        How many tokens go through the model at once, if one prompt and the tree are not more.
    texts
        `TokenTexts.of(tokenizer)`, if it is at hand.
    check
        Whether one path is compared with a plain pass, since some models do not heed the mask
        that makes a tree.

    Raises
    ------
    ValueError
        If behind a prompt the tokens of the prompt change, if the model has not the precision,
        or a prompt is longer than the model can read.
    """
    texts = texts or TokenTexts.of(tokenizer)
    written = spellings_of(outcomes, spellings)
    exact, left_out = np.full((2, len(prompts), len(outcomes)), -np.inf)
    alike: dict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        # A word right behind a word would be another word.
        counted = [s for s in written if spellings is not None or not extends(prompt.text, s[0])]
        _check_boundary(tokenizer, prompt, [text for text, _ in counted])
        alike[tuple(counted)].append(i)
    for group, places in alike.items():
        tree = OutcomeTree.grow(texts, outcomes, spellings=group, extra_tokens=extra_tokens)
        chosen = [prompts[i] for i in places]
        _check_model(model, chosen, tree.depth)
        edges, stops = _pass(model, texts, tree, [p.tokens for p in chosen], positions)
        if check:
            _check_tree(model, chosen[0].tokens, tree, edges[0])
        exact[places], left_out[places] = tree.probabilities(edges, stops)
    hashes = tuple(prompt.hash for prompt in prompts)
    return OutcomeProbabilities(tuple(outcomes), exact, left_out, hashes)


def _pass(
    model: Any,
    texts: TokenTexts,
    tree: OutcomeTree,
    prompts: Sequence[tuple[int, ...]],
    positions: int,
) -> tuple[Array, Array]:
    """Return the edges and stops of `OutcomeTree.probabilities`."""
    import torch

    edges = np.zeros((len(prompts), len(tree.tokens)))
    stops = np.full(edges.shape, -np.inf)
    tails = {tail: np.flatnonzero([t == tail for t in tree.tails]) for tail in set(tree.tails)}
    for pack in _packs(prompts, tree, positions):
        logits = _logits(model, pack)
        total = logits.logsumexp(-1)
        rows = torch.as_tensor(pack.rows, device=logits.device)
        before = rows[:, tree.parents[1:]]
        tokens = torch.as_tensor(tree.tokens[1:], device=logits.device)
        edges[pack.prompts, 1:] = _numbers(logits[before, tokens] - total[before])
        for tail, nodes in tails.items():
            if tail is not None:
                ending = torch.as_tensor(_ending(texts, tail, logits.shape[-1])).to(logits.device)
                stops[np.ix_(pack.prompts, nodes)] = _numbers(
                    _sums(logits, rows[:, nodes], ending) - total[rows[:, nodes]]
                )
    return edges, stops


def next_token_log_probabilities(
    model: Any, prompts: Sequence[TokenPrompt], *, positions: int = 1024
) -> Array:
    """Return the logarithm of the probability of every token after each prompt, [prompts, V]."""
    _check_model(model, prompts, 0)
    found: list[tuple[NDArray[np.int64], Array]] = []
    for pack in _packs([prompt.tokens for prompt in prompts], None, positions):
        logits = _logits(model, pack)
        found.append((pack.prompts, _numbers(logits.log_softmax(-1)[pack.rows[:, 0]])))
    if not found:
        return np.zeros((0, 0))
    result = np.empty((len(prompts), found[0][1].shape[1]))
    for places, rows in found:
        result[places] = rows
    return result


def _check_boundary(tokenizer: Any, prompt: TokenPrompt, following: Sequence[str]) -> None:
    whole = tokenizer(
        [prompt.text + text for text in following], add_special_tokens=prompt.special_tokens
    ).input_ids
    for text, tokens in zip(following, whole, strict=True):
        if tuple(tokens[: len(prompt.tokens)]) != prompt.tokens:
            raise ValueError(
                "The tokens of a prompt stay the same when an outcome follows; "
                f"{prompt.text[-20:]!r} and {text!r} are cut anew together. End the prompt before "
                "its last blank or sign, which belongs to the outcome, or declare other spellings."
            )


def _check_model(model: Any, prompts: Sequence[TokenPrompt], depth: int) -> None:
    import torch

    if model.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"Probabilities are computed in float32 or float64; the model is in {model.dtype}, "
            "whose logarithms come in coarse steps. Load it with dtype float32."
        )
    config = model.config.get_text_config()
    limit, why = getattr(config, "max_position_embeddings", None), "reads"
    window = getattr(config, "sliding_window", None)
    layers = getattr(config, "layer_types", None)
    if window and (layers is None or "sliding_attention" in layers):
        limit, why = min(window, limit or window), "sees at once"
    longest = max((len(prompt.tokens) for prompt in prompts), default=0) + depth
    if limit is not None and longest > limit:
        raise ValueError(
            f"This model {why} {limit} tokens; the longest prompt with an outcome has {longest}. "
            "Shorten the prompt."
        )


@dataclass(frozen=True)
class _Pack:
    """Prompts, and the tree behind each, as one sequence in which tokens see their ancestors.

    Parameters
    ----------
    prompts : which, [P]
    tokens, positions : of the sequence, [S]
    visible : what each token sees, [S, S]
    wanted : after which tokens the next one is asked, [R]
    rows : for each prompt and node its place in `wanted`, [P, nodes]
    """

    prompts: NDArray[np.int64]
    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    visible: NDArray[np.bool_]
    wanted: NDArray[np.int64]
    rows: NDArray[np.int64]


def _packs(
    prompts: Sequence[tuple[int, ...]], tree: OutcomeTree | None, positions: int
) -> Iterator[_Pack]:
    """Put prompts that begin alike side by side, and cut where a pack would be too long."""
    behind = tree.entered - 1 if tree else 0
    order = sorted(range(len(prompts)), key=lambda i: prompts[i])
    chosen: list[int] = []
    size = 0
    for i in order:
        alike = _alike(prompts[chosen[-1]], prompts[i]) if chosen else 0
        added = len(prompts[i]) - alike + behind
        if chosen and size + added > positions:
            yield _pack(prompts, chosen, tree)
            chosen, size, added = [], 0, len(prompts[i]) + behind
        chosen.append(i)
        size += added
    if chosen:
        yield _pack(prompts, chosen, tree)


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts have in common from the beginning on."""
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return n
    return min(len(one), len(other))


def _pack(
    prompts: Sequence[tuple[int, ...]], chosen: Sequence[int], tree: OutcomeTree | None
) -> _Pack:
    tokens: list[int] = []
    positions: list[int] = []
    parents: list[int] = []

    def append(token: int, parent: int) -> int:
        tokens.append(token)
        parents.append(parent)
        positions.append(positions[parent] + 1 if parent >= 0 else 0)
        return len(tokens) - 1

    places = np.zeros((len(chosen), tree.entered if tree else 1), dtype=np.int64)
    path: list[int] = []  # places of the present prompt's tokens
    for row, i in enumerate(chosen):
        alike = _alike(prompts[chosen[row - 1]], prompts[i]) if row else 0
        path = path[:alike]
        for token in prompts[i][alike:]:
            path.append(append(token, path[-1] if path else -1))
        places[row, 0] = path[-1]
        for node in range(1, places.shape[1]):
            assert tree is not None
            places[row, node] = append(int(tree.tokens[node]), int(places[row, tree.parents[node]]))
    visible = np.zeros((len(tokens), len(tokens)), dtype=bool)
    for place, parent in enumerate(parents):
        if parent >= 0:
            visible[place] = visible[parent]
        visible[place, place] = True
    wanted, rows = np.unique(places, return_inverse=True)
    return _Pack(
        prompts=np.array(chosen, dtype=np.int64),
        tokens=np.array(tokens, dtype=np.int64),
        positions=np.array(positions, dtype=np.int64),
        visible=visible,
        wanted=wanted,
        rows=rows.reshape(places.shape),
    )


def _logits(model: Any, pack: _Pack) -> Any:
    """Send a pack through the model; logits after the wanted tokens, [R, V]."""
    import torch

    device = model.device
    mask = torch.full(pack.visible.shape, torch.finfo(model.dtype).min, dtype=model.dtype)
    mask[torch.as_tensor(pack.visible)] = 0.0
    wanted = torch.as_tensor(pack.wanted, device=device)
    # Most models can leave out the costly last layer where nobody asks for it.
    spares = "logits_to_keep" in inspect.signature(model.forward).parameters
    with torch.inference_mode():
        logits = model(
            input_ids=torch.as_tensor(pack.tokens, device=device)[None],
            attention_mask=mask.to(device)[None, None],
            position_ids=torch.as_tensor(pack.positions, device=device)[None],
            use_cache=False,
            **({"logits_to_keep": wanted} if spares else {}),
        ).logits[0]
    return logits if spares else logits[wanted]


def _numbers(values: Any) -> Array:
    numbers: Array = values.cpu().double().numpy()
    return numbers


def _ending(texts: TokenTexts, tail: str, size: int) -> NDArray[np.bool_]:
    """Return which tokens end an outcome; a model may have more tokens than its tokenizer."""
    ending = np.ones(size, dtype=bool)
    behind = texts.behind(b"", tail)
    ending[behind.longer] = False
    ending[behind.undecided] = False
    return ending


def _sums(logits: Any, rows: Any, among: Any) -> Any:
    """Return the logarithms of sums over some tokens; not all rows at once, to spare memory."""
    import torch

    flat = rows.flatten()
    parts = [logits[part].masked_fill(~among, -torch.inf).logsumexp(-1) for part in flat.split(128)]
    return torch.cat(parts).reshape(rows.shape)


def _check_tree(model: Any, prompt: tuple[int, ...], tree: OutcomeTree, edges: Array) -> None:
    """Compare the longest path with a plain pass."""
    import torch

    node = int(tree.depths[: tree.entered].argmax())
    path: list[int] = []
    while node:
        path.insert(0, node)
        node = int(tree.parents[node])
    tokens = [*prompt, *tree.tokens[path].tolist()]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.as_tensor([tokens], device=model.device), use_cache=False
        ).logits[0, len(prompt) - 1 : -1]
    plain = logits.log_softmax(-1)[torch.arange(len(path)), torch.as_tensor(tokens[-len(path) :])]
    difference = float(np.abs(_numbers(plain) - edges[path]).max())
    if not difference <= LARGEST_DIFFERENCE:
        raise ValueError(
            "Outcomes are computed together with models that heed a mask of four dimensions; "
            f"{type(model).__name__} gives log-probabilities that differ by {difference:.1g} from "
            "those of a plain pass. Load it with attn_implementation='eager', or use another."
        )
