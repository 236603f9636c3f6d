"""A Llama of a few thousand random weights and tokenizers of a few signs, for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def tiny_tokenizer(signs: Sequence[str], merges: Sequence[tuple[str, str]] = ()) -> Any:
    """Return a tokenizer that cuts text into these signs and the pairs that are merged."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    names = ["<end>", *signs, *(a + b for a, b in merges)]
    vocabulary = {name: i for i, name in enumerate(names)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=list(merges)))
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")


def tiny_llama(size: int, seed: int = 0, **settings: Any) -> Any:
    """Return a Llama with a vocabulary of this size whose random weights make it decided."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    options = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.7,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "bos_token_id": None,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(vocab_size=size, **options | settings)).eval()
