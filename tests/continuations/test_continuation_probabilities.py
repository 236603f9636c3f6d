import itertools
import re

import numpy as np
import pytest
from tiny_llama import tiny_llama, tiny_tokenizer

from knownminds.llm_adapters.continuations import continuation_probabilities as module
from knownminds.llm_adapters.continuations.continuation_probabilities import TokenPrompt
from knownminds.llm_adapters.continuations.continuation_tree import (
    ContinuationTree,
    TokenTexts,
    spellings_of,
)
from knownminds.llm_adapters.continuations.tree_pass import Job, logits_behind

# What follows needs torch.

SIGNS = ["0", "1", "2", " ", ".", "x", ":"]


@pytest.fixture(scope="module")
def torch():
    module = pytest.importorskip("torch", reason="torch is not installed: extra transformers")
    pytest.importorskip("transformers", reason="transformers is not installed: its extra")
    return module


@pytest.fixture(scope="module")
def tokenizer(torch):
    return tiny_tokenizer(SIGNS, [(" ", "1"), ("1", "2"), ("1", "0"), ("2", ".")])


@pytest.fixture(scope="module")
def model(tokenizer):
    return tiny_llama(len(tokenizer))


def prompts(tokenizer, *texts):
    return [TokenPrompt.of(tokenizer, text) for text in texts]


def log_probabilities(model, tokenizer, prompts, continuations, **how):
    each = [continuations] * len(prompts)
    found = module.continuation_probabilities(model, tokenizer, prompts, each, **how)
    return np.concatenate([one.log_probabilities for one in found])


def plain(model, tokens):
    """Log-probabilities of the token after each, by an ordinary pass."""
    import torch

    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0].log_softmax(-1).double().numpy()


_LONGER = re.compile(r"(?<=\d)[\dx]|(?<=\d)[.:](?=\d)|(?<=\d[.:])\d|(?<=x)[\dx]")


def by_brute_force(model, tokenizer, prompt, continuations, length):
    """Say everything of a length, by ordinary passes, and look at whole texts."""
    import torch

    texts = ["", *(tokenizer.decode([i]) for i in range(1, len(tokenizer)))]
    totals = dict.fromkeys(continuations, 0.0)
    everything = np.array(list(itertools.product(range(len(tokenizer)), repeat=length)))
    for part in np.array_split(everything, 1 + len(everything) // 4000):
        whole = torch.tensor(np.hstack([np.tile(prompt.tokens, (len(part), 1)), part]))
        with torch.inference_mode():
            each = model(whole).logits.log_softmax(-1)[:, len(prompt.tokens) - 1 : -1]
        chosen = each.gather(-1, torch.tensor(part)[..., None])[..., 0]
        for tokens, p in zip(part.tolist(), chosen.double().sum(-1).exp().tolist(), strict=True):
            tokens = tokens[: tokens.index(0)] if 0 in tokens else tokens
            said = "".join(texts[token] for token in tokens)
            for continuation, text in itertools.product(continuations, ("", " ")):
                text += continuation
                if said.startswith(text) and not _LONGER.match(said, len(text)):
                    totals[continuation] += p
    return np.array(list(totals.values()))


def test_probabilities_are_those_of_brute_force(torch):
    tokenizer = tiny_tokenizer(["0", "1", " ", "."], [(" ", "1"), ("1", "0")])
    model = tiny_llama(len(tokenizer))
    (prompt,) = prompts(tokenizer, ".")
    continuations = ["0", "1", "10"]
    length = 5  # " ", "1", "0", ".", and a digit or none
    found = log_probabilities(model, tokenizer, [prompt], continuations)
    model.double()
    exact = log_probabilities(model, tokenizer, [prompt], continuations)
    brute = by_brute_force(model, tokenizer, prompt, continuations, length)
    np.testing.assert_allclose(np.exp(found[0]), brute, atol=1e-6)
    # In double precision nothing is left of the difference.
    np.testing.assert_allclose(np.exp(exact[0]), brute, rtol=1e-9)


@pytest.mark.parametrize("positions", [1, 40, 1000])
def test_a_tree_gives_every_path_what_a_plain_pass_gives_it(model, tokenizer, positions):
    texts = TokenTexts.of(tokenizer)
    continuations = ["1", "12", "1.2", "x2"]
    tree = ContinuationTree.grow(texts, continuations, spellings_of(continuations))
    other = ContinuationTree.grow(texts, ["0"], spellings_of(["0"]))
    beginnings = prompts(tokenizer, "x :", "x0 0:", "x0 0:", "x0 0 x. 1 2 :", "x0 0 x. 1 :", "x0")
    jobs = [Job(p.tokens, other if k == 4 else tree) for k, p in enumerate(beginnings)]
    for number, logits in logits_behind(model, jobs, positions):
        job, rows = jobs[number], logits.log_softmax(-1).double().numpy()
        for node in range(len(job.tree.tokens)):
            expected = plain(model, [*job.prompt, *job.tree.path(node)])[-1]
            next_tokens = job.tree.next_tokens[node]
            followed = list(next_tokens.further)
            assert rows[node][followed] == pytest.approx(expected[followed], abs=6e-5)
            for k in set(next_tokens.continuations.tolist()):
                said = next_tokens.continuations == k
                sums = [np.log(np.exp(row)[said].sum()) for row in (rows[node], expected)]
                assert sums[0] == pytest.approx(sums[1], abs=6e-5)


def byte_level(torch):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {sign: i for i, sign in enumerate(["<end>", *signs, "\u0120a"])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[("\u0120", "a")]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")


def sentence_pieces(torch):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<end>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "\u2581a"]
    inner = Tokenizer(
        models.BPE(
            vocab={piece: i for i, piece in enumerate(pieces)},
            merges=[("\u2581", "a")],
            byte_fallback=True,
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")


@pytest.mark.parametrize("make", [byte_level, sentence_pieces])
def test_tokens_have_the_bytes_that_they_add_to_a_text(torch, make):
    tokenizer = make(torch)
    texts = TokenTexts.of(tokenizer)
    assert texts.texts[tokenizer.convert_tokens_to_ids("<end>")] is None
    assert len(texts.tokens[b" a"]) == 1
    sentence = "a a\u00df\u20ac"
    tokens = tokenizer(sentence, add_special_tokens=False).input_ids
    said = b"".join(texts.texts[token] for token in tokens)
    assert said.removeprefix(b" ") == sentence.encode()
    assert {bytes([byte]) for byte in "\u00df".encode()} <= set(texts.tokens)
