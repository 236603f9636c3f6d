"""Exact probabilities of continuations, as whole strings, under a local language model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult

from .continuation_tree import Array, ContinuationTree, TokenTexts, extends, spellings_of
from .tree_pass import Job, logits_behind

POSITIONS = 512  # tokens that go through a model at once
LARGEST_DIFFERENCE = 1e-3  # of log-probabilities between the tree and a plain pass, in float32


@dataclass(frozen=True)
class TokenPrompt:
    """A prompt as the model gets it.

    Parameters
    ----------
    text : with all that a chat template adds
    tokens : as the tokenizer cuts it
    special_tokens : whether the tokenizer adds its, such as one for the beginning
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
class ContinuationProbabilities(TabledResult):
    """How probable each continuation of each prompt is.

    Parameters
    ----------
    continuations : the texts
    log_probabilities : natural logarithm of the probability of exactly this text, and then
        something that does not make its last word or number longer, [prompts, continuations]
    prompt_hashes : SHA-256 of the tokens of each prompt
    begun : logarithm of the probability that the text is said, whatever follows, [prompts,
        continuations]: the naive reading, in which 1 has what 10, 11 and 12 have; None if not known
    """

    continuations: tuple[str, ...]
    log_probabilities: Array
    prompt_hashes: tuple[str, ...]
    begun: Array | None = None

    @property
    def probabilities(self) -> Array:
        """Normalised over the continuations, [prompts, continuations]."""
        total = logsumexp(self.log_probabilities, axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # NaN where none is possible
            normalised: Array = np.exp(self.log_probabilities - total)
        return normalised

    @property
    def naive(self) -> Array:
        """What the probability of their tokens alone says, [prompts, continuations].

        Normalised over the continuations; wrong where one begins another one, or a word or
        number that is none. For comparison only.
        """
        if self.begun is None:
            return np.full(self.log_probabilities.shape, np.nan)
        normalised: Array = softmax(self.begun, axis=1)
        return normalised

    @property
    def mass(self) -> Array:
        """Probability of all continuations together, before normalising, [prompts]."""
        mass: Array = np.exp(logsumexp(self.log_probabilities, axis=1))
        return mass

    def to_frame(self) -> pd.DataFrame:
        """One row per prompt and continuation."""
        n, k = self.log_probabilities.shape
        return pd.DataFrame(
            {
                "prompt": np.repeat(np.arange(n), k),
                "prompt_hash": [name for name in self.prompt_hashes for _ in range(k)],
                "continuation": self.continuations * n,
                "probability": self.probabilities.ravel(),
                "log_probability": self.log_probabilities.ravel(),
                "mass": np.repeat(self.mass, k),
            }
        )


def continuation_probabilities(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[TokenPrompt],
    continuations: Sequence[Sequence[str]],
    *,
    positions: int = POSITIONS,
    texts: TokenTexts | None = None,
    check: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> list[ContinuationProbabilities]:
    """Compute the probability of each continuation of each prompt, as a whole string.

    Under a tokenizer that cuts numbers into digits the token "1" begins 10, 11 and 12 as well. So
    its probability is not that of the string 1. Here it is P(string) x P(stop | string), summed
    over all ways to cut the string into tokens and over its spellings. A stop is a special token,
    or text that does not make the last word or number longer (`continuation_tree.extends`).

    All paths stand as a tree behind their prompt and go through the model together, each token
    seeing its ancestors only. So do the prompts of a portion, whose common beginning is computed
    once.

    Parameters
    ----------
    model : A causal language model of the transformers package, in float32 or better.
    tokenizer : Its tokenizer.
    prompts : They end right before the continuation; a space before it belongs to it.
    continuations : Those of each prompt. One is said with a space before it or without one. The
        latter counts only if it does not run on from the last word of the prompt.
    positions : How many tokens go through the model at once, if one prompt and the tree are not
        more.
    texts : `TokenTexts.of(tokenizer)`, if it is at hand.
    check : Whether one path is compared with a plain pass, since some models do not heed the mask
        that makes a tree.
    progress : Called with the number of prompts that are done, and of all.

    Raises
    ------
    ValueError : If behind a prompt the tokens of the prompt change, if the model has not the
        precision, or a prompt is longer than the model can read.
    """
    texts = texts or TokenTexts.of(tokenizer)
    trees: dict[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], ContinuationTree] = {}
    jobs: list[Job] = []
    for prompt, names in zip(prompts, continuations, strict=True):
        # A word right behind a word would be another word.
        counted = tuple(s for s in spellings_of(names) if not extends(prompt.text, s[0]))
        _check_boundary(tokenizer, prompt, [text for text, _ in counted])
        key = (tuple(names), counted)
        if key not in trees:
            trees[key] = ContinuationTree.grow(texts, names, counted)
        jobs.append(Job(prompt.tokens, trees[key]))
    _check_model(model, jobs)
    longest = max(range(len(jobs)), key=lambda i: len(jobs[i].prompt), default=0)
    results: dict[int, ContinuationProbabilities] = {}
    for i, logits in logits_behind(model, jobs, positions):
        rows = logits.log_softmax(-1)
        if check and i == longest:
            _check_tree(model, jobs[i], rows)
        values = jobs[i].tree.probabilities(row.cpu().double().numpy() for row in rows)
        exact, begun = (array[None] for array in values)
        names = jobs[i].tree.continuations
        results[i] = ContinuationProbabilities(names, exact, (prompts[i].hash,), begun)
        if progress is not None:
            progress(len(results), len(jobs))
    return [results[i] for i in range(len(jobs))]


def _check_boundary(tokenizer: Any, prompt: TokenPrompt, following: Sequence[str]) -> None:
    whole = tokenizer(
        [prompt.text + text for text in following], add_special_tokens=prompt.special_tokens
    ).input_ids
    for text, tokens in zip(following, whole, strict=True):
        if tuple(tokens[: len(prompt.tokens)]) != prompt.tokens:
            raise ValueError(
                "The tokens of a prompt stay the same when a continuation follows; "
                f"{prompt.text[-20:]!r} and {text!r} are cut anew together. End the prompt before "
                "its last blank or sign, which belongs to the continuation."
            )


def _check_model(model: Any, jobs: Sequence[Job]) -> None:
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
    deepest = (max(len(job.tree.path(n)) for n in range(len(job.tree.tokens))) for job in jobs)
    lengths = (len(job.prompt) + depth for job, depth in zip(jobs, deepest, strict=True))
    longest = max(lengths, default=0)
    if limit is not None and longest > limit:
        raise ValueError(
            f"This model {why} {limit} tokens; the longest prompt with a continuation has "
            f"{longest}. Shorten the prompt."
        )


def _check_tree(model: Any, job: Job, rows: Any) -> None:
    """Compare the longest path with a plain pass."""
    import torch

    prompt, tree = job
    nodes = [max(range(len(tree.tokens)), key=lambda node: len(tree.path(node)))]
    while nodes[0]:
        nodes.insert(0, tree.parents[nodes[0]])
    tokens = [*prompt, *tree.path(nodes[-1])]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.as_tensor([tokens], device=model.device), use_cache=False
        ).logits[0, len(prompt) - 1 :]
    difference = float((logits.log_softmax(-1) - rows[nodes]).abs().max())
    if not difference <= LARGEST_DIFFERENCE:
        raise ValueError(
            "Continuations are computed together by models that heed a mask of four dimensions; "
            f"{type(model).__name__} gives log-probabilities that differ by {difference:.1g} from "
            "those of a plain pass. Load it with attn_implementation='eager', or use another."
        )
