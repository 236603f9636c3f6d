"""Prompts with a tree of continuations behind each go through a model, each token a single time."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from .continuation_tree import ContinuationTree


class Job(NamedTuple):
    """A prompt, as tokens, and its continuations."""

    prompt: tuple[int, ...]
    tree: ContinuationTree


def logits_behind(model: Any, jobs: Sequence[Job], positions: int) -> Iterator[tuple[int, Any]]:
    """Yield the number of each job, and the logits behind the nodes of its tree, [nodes, tokens].

    Jobs are sorted by their prompts and go through the model in portions, each as one tree. What
    prompts have in common from the beginning on is computed once in a portion.

    Parameters
    ----------
    positions : Tokens per portion, if one job has not more.
    """
    for chosen in _portions(jobs, positions):
        slots: dict[tuple[int, int], int] = {}  # by the slot before, and the token
        nodes: dict[int, list[int]] = {}
        for i in chosen:
            prompt, tree = jobs[i]
            slot = -1
            for token in prompt:
                slot = slots.setdefault((slot, token), len(slots))
            nodes[i] = [slot]
            for token, parent in zip(tree.tokens[1:], tree.parents[1:], strict=True):
                nodes[i].append(slots.setdefault((nodes[i][parent], token), len(slots)))
        wanted = sorted({slot for of_job in nodes.values() for slot in of_job})
        row = {slot: k for k, slot in enumerate(wanted)}
        logits = _read(model, list(slots), wanted)
        for i, of_job in nodes.items():
            yield i, logits[[row[slot] for slot in of_job]]


def _read(model: Any, slots: Sequence[tuple[int, int]], wanted: Sequence[int]) -> Any:
    """Send tokens through the model, each of which sees its ancestors; [wanted, tokens]."""
    import torch

    visible = np.eye(len(slots), dtype=bool)
    depths = np.zeros(len(slots), dtype=int)
    for slot, (parent, _) in enumerate(slots):
        if parent >= 0:
            visible[slot] |= visible[parent]
            depths[slot] = depths[parent] + 1
    mask = torch.full(visible.shape, torch.finfo(model.dtype).min, dtype=model.dtype)
    mask[torch.as_tensor(visible)] = 0.0
    rows = torch.as_tensor(list(wanted), device=model.device)
    # Most models can leave out the costly last layer where nobody looks at it.
    spares = "logits_to_keep" in inspect.signature(model.forward).parameters
    with torch.inference_mode():
        logits = model(
            input_ids=torch.as_tensor([token for _, token in slots], device=model.device)[None],
            attention_mask=mask.to(model.device)[None, None],
            position_ids=torch.as_tensor(depths, device=model.device)[None],
            use_cache=False,
            **({"logits_to_keep": rows} if spares else {}),
        ).logits[0]
    return logits if spares else logits[rows]


def _portions(jobs: Sequence[Job], positions: int) -> Iterator[list[int]]:
    """Put jobs in the order of their prompts, and cut where a portion would be too long."""
    chosen: list[int] = []
    size = 0
    for i in sorted(range(len(jobs)), key=lambda i: jobs[i].prompt):
        prompt, tree = jobs[i]
        pairs = zip(prompt, jobs[chosen[-1]].prompt if chosen else (), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if chosen and size + len(prompt) - shared + len(tree.tokens) > positions:
            yield chosen
            chosen, size, shared = [], 0, 0
        chosen.append(i)
        size += len(prompt) - shared + len(tree.tokens)
    if chosen:
        yield chosen
