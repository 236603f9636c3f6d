"""Prompts with a tree of outcomes behind each go through a model once, each token a single time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .outcome_tree import Array, OutcomeTree, TokenTexts

ROWS = 64  # of the vocabulary's size that are exponentiated at a time, to spare memory


class Job(NamedTuple):
    """A prompt and what is asked behind it.

    Parameters
    ----------
    prompt : its tokens
    tree : the outcomes
    """

    prompt: tuple[int, ...]
    tree: OutcomeTree


class Read(NamedTuple):
    """What the model said of a job, as `OutcomeTree.probabilities` takes it.

    Parameters
    ----------
    edges : log-probability of each node's token given its parent, [nodes]
    stops : log-probability that the next token is special or ends the outcome, [nodes]
    """

    edges: Array
    stops: Array


def edges_and_stops(
    model: Any,
    texts: TokenTexts,
    jobs: Sequence[Job],
    *,
    positions: int = 512,
    progress: Callable[[int, int], None] | None = None,
) -> list[Read]:
    """Read the trees of all jobs.

    Jobs are sorted by their prompts and go through the model in portions, one behind the other;
    what a prompt has in common with the one before it is not computed again, within a portion
    or, where the model keeps keys and values, across portions.

    Parameters
    ----------
    positions
        Tokens per portion, if one job has not more.
    progress
        Called with the number of jobs that are done, and of all.
    """
    tails = sorted({tail for job in jobs for tail in job.tree.tails if tail is not None})
    kind = {tail: k for k, tail in enumerate(tails)}
    reader = _Reader(model)
    reads: list[Read | None] = [None] * len(jobs)
    ending: Any = None
    done = 0
    for chosen in _portions(jobs, positions, keeps=reader.keeps):
        reader.begin(jobs[chosen[0]].prompt)
        slots = {i: reader.append(jobs[i]) for i in chosen}
        logits = reader.read()
        if ending is None:
            ending = _ending(texts, tails, logits)
        total, over = _sums(logits, ending)
        for i in chosen:
            tree, rows = jobs[i].tree, reader.rows(slots[i])
            before = rows[tree.parents[1:]]
            edges = np.zeros(len(tree.tokens))
            edges[1:] = _numbers(logits[before, tree.tokens[1:]]) - total[before]
            stops = np.full(len(tree.tokens), -np.inf)
            ends = [(n, kind[tail]) for n, tail in enumerate(tree.tails) if tail is not None]
            if ends:
                nodes, kinds = np.array(ends).T
                stops[nodes] = over[rows[nodes], kinds]
            reads[i] = Read(edges, stops)
        done += len(chosen)
        if progress is not None:
            progress(done, len(jobs))
    assert all(read is not None for read in reads)
    return [read for read in reads if read is not None]


class _Reader:
    """A model that reads tokens, each of which sees its ancestors and nothing else.

    A slot is a token with its ancestors; slots of the path that is common with the next portion
    are kept, with what the model has computed for them.
    """

    def __init__(self, model: Any):
        parameters = inspect.signature(model.forward).parameters
        self.model = model
        # Most models can leave out the costly last layer where nobody asks for it.
        self.spares = "logits_to_keep" in parameters
        # Keys and values that are kept, by the argument's name from transformers 5.24 on or before.
        names = [name for name in ("cache", "past_key_values") if name in parameters]
        self.cache_name = names[0] if names else ""
        self.keeps = bool(names)
        self.cache: Any = None
        self.path: list[int] = []  # slots of the latest prompt
        self.prompt: tuple[int, ...] = ()
        self.seen: list[NDArray[np.bool_]] = []  # what each slot sees
        self.positions: list[int] = []
        self.done = 0  # slots that the model has read
        self.tokens: list[int] = []
        self.wanted: dict[int, int] = {}

    def begin(self, prompt: tuple[int, ...]) -> None:
        """Forget all but what the next prompt begins with."""
        # The last token is read again, since what follows it is asked.
        shared = min(_alike(self.prompt, prompt), len(prompt) - 1) if self.keeps else 0
        kept = self.path[:shared]
        if self.cache is not None:
            import torch

            at = torch.as_tensor(kept, device=self.model.device, dtype=torch.long)
            for layer in self.cache.layers:
                layer.keys, layer.values = layer.keys[:, :, at], layer.values[:, :, at]
        if not kept:
            self.cache = None
        self.path, self.prompt = list(range(shared)), prompt[:shared]
        self.positions = list(range(shared))
        self.seen = [np.ones(k + 1, dtype=bool) for k in range(shared)]
        self.done, self.tokens = shared, []

    def append(self, job: Job) -> NDArray[np.int64]:
        """Add a prompt and its tree; return the slot of each node, -1 where none is entered."""
        shared = _alike(self.prompt, job.prompt)
        if shared == len(job.prompt) and self.path[shared - 1] < self.done:
            shared -= 1
        self.path = self.path[:shared]
        for token in job.prompt[shared:]:
            self.path.append(self._slot(token, self.path[-1] if self.path else -1))
        self.prompt = job.prompt
        tree = job.tree
        slots = np.full(len(tree.tokens), -1)
        slots[0] = self.path[-1]
        for node in range(1, tree.entered):
            slots[node] = self._slot(int(tree.tokens[node]), int(slots[tree.parents[node]]))
        self._want(slots)
        return slots

    def read(self) -> Any:
        """Send what was added through the model; logits after the wanted tokens, [wanted, V]."""
        import torch

        device, n = self.model.device, len(self.seen)
        visible = np.zeros((n - self.done, n), dtype=bool)
        for row, seen in zip(visible, self.seen[self.done :], strict=True):
            row[: len(seen)] = seen
        mask = torch.full(visible.shape, torch.finfo(self.model.dtype).min, dtype=self.model.dtype)
        mask[torch.as_tensor(visible)] = 0.0
        wanted = torch.as_tensor([slot - self.done for slot in self.wanted], device=device)
        more: dict[str, Any] = {}
        if self.spares:
            more["logits_to_keep"] = wanted
        if self.keeps:
            if self.cache is None:
                from transformers import DynamicCache

                self.cache = DynamicCache()
            more[self.cache_name] = self.cache
        with torch.inference_mode():
            logits = self.model(
                input_ids=torch.as_tensor(self.tokens, device=device)[None],
                attention_mask=mask.to(device)[None, None],
                position_ids=torch.as_tensor(self.positions[self.done :], device=device)[None],
                use_cache=self.keeps,
                **more,
            ).logits[0]
        self._places = {slot: row for row, slot in enumerate(self.wanted)}
        self.done, self.tokens, self.wanted = n, [], {}
        return logits if self.spares else logits[wanted]

    def rows(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the logits after these slots stand; -1 for none."""
        return np.array([self._places.get(slot, -1) for slot in slots.tolist()], dtype=np.int64)

    def _slot(self, token: int, parent: int) -> int:
        slot = len(self.seen)
        seen = np.zeros(slot + 1, dtype=bool)
        if parent >= 0:
            seen[: parent + 1] = self.seen[parent]
        seen[slot] = True
        self.seen.append(seen)
        self.positions.append(self.positions[parent] + 1 if parent >= 0 else 0)
        self.tokens.append(token)
        return slot

    def _want(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist():
            if slot >= self.done:
                self.wanted.setdefault(slot, slot)


def _portions(jobs: Sequence[Job], positions: int, *, keeps: bool) -> Iterator[list[int]]:
    """Put jobs in the order of their prompts, and cut where a portion would be too long."""
    chosen: list[int] = []
    size = 0
    before: tuple[int, ...] = ()
    for i in sorted(range(len(jobs)), key=lambda i: jobs[i].prompt):
        prompt, tree = jobs[i]
        added = len(prompt) - _alike(before, prompt) + tree.entered
        if chosen and size + added > positions:
            yield chosen
            chosen, size = [], 0
            added = added if keeps else len(prompt) + tree.entered
        chosen.append(i)
        size += added
        before = prompt
    if chosen:
        yield chosen


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts have in common from the beginning on."""
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return n
    return min(len(one), len(other))


def _ending(texts: TokenTexts, tails: Sequence[str], logits: Any) -> Any:
    """Return which tokens end a text with each tail, [V, tails], as numbers.

    A model may have more tokens than its tokenizer; these end an outcome.
    """
    import torch

    ending = np.ones((logits.shape[-1], len(tails)))
    for k, tail in enumerate(tails):
        behind = texts.behind(b"", tail)
        ending[behind.longer, k] = 0.0
        ending[behind.undecided, k] = 0.0
    return torch.as_tensor(ending, dtype=logits.dtype, device=logits.device)


def _sums(logits: Any, ending: Any) -> tuple[Array, Array]:
    """Return logarithms: of each row's sum, [R], and of the share that ends a text, [R, tails]."""
    totals, overs = [], []
    for rows in logits.split(ROWS):
        total = rows.logsumexp(-1)
        totals.append(_numbers(total))
        overs.append(_numbers(((rows - total[:, None]).exp() @ ending).log()))
    return np.concatenate(totals), np.concatenate(overs)


def _numbers(values: Any) -> Array:
    numbers: Array = values.cpu().double().numpy()
    return numbers
