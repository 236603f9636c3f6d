import asyncio
import json

import numpy as np
import pytest
from scipy.stats import chisquare

pytest.importorskip("torch", reason="torch is not installed: extra transformers")
pytest.importorskip("transformers", reason="transformers is not installed: its extra")
import torch
from tiny_llama import tiny_llama, tiny_tokenizer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Sampling
from knownminds.llm_adapters.providers.transformers import Transformers

SIGNS = [*"0123456789", " ", ".", ":", "x"]
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}{{ m.content }}{% if not loop.last %} . {% endif %}{% endfor %}"
    "{% if add_generation_prompt %}:{% endif %}"
)


def ask(text, role="user"):
    return Prompt((Message(role, text),))


def tiny(seed=0, template=TEMPLATE, **options):
    tokenizer = tiny_tokenizer(SIGNS)
    tokenizer.chat_template = template
    return Transformers((tiny_llama(len(tokenizer), seed), tokenizer), device="cpu", **options)


def run(adapter, prompts, settings):
    """Ask all at once."""
    each = settings if isinstance(settings, list) else [settings] * len(prompts)

    async def all_of_them():
        calls = [adapter.complete(p, settings=s) for p, s in zip(prompts, each, strict=True)]
        return await asyncio.gather(*calls)

    return asyncio.run(all_of_them())


def next_token(adapter, prompt):
    """Probabilities of the token after a prompt, by an ordinary pass."""
    whole = torch.tensor([adapter._cut(prompt).tokens])
    with torch.no_grad():
        return adapter._model(whole).logits[0, -1].softmax(-1).double().numpy()


def seeds(n, **settings):
    return [Sampling(seed=i, **settings) for i in range(n)]


def test_answers_are_drawn_with_the_models_own_probabilities():
    adapter = tiny(batch=50)
    prompt = ask("x 1")
    settings = seeds(600, max_tokens=1, top_log_probabilities=0)
    replies = run(adapter, [prompt] * 600, settings)
    p = next_token(adapter, prompt)
    tokens = [json.loads(reply.raw)["tokens"][0] for reply in replies]
    observed, expected = np.bincount(tokens, minlength=len(p)), 600 * p / p.sum()
    rare = expected < 5
    observed = [*observed[~rare], observed[rare].sum()]
    expected = [*expected[~rare], expected[rare].sum()]
    assert len(expected) > 3
    assert chisquare(observed, expected).pvalue > 1e-3


def test_temperature_and_top_p_change_what_is_drawn():
    adapter = tiny(batch=50)
    p = next_token(adapter, ask("x 1"))
    ranked = np.argsort(-p)

    def drawn(n, **settings):
        replies = run(adapter, [ask("x 1")] * n, seeds(n, max_tokens=1, **settings))
        return [json.loads(reply.raw)["tokens"][0] for reply in replies]

    assert set(drawn(5, temperature=0.0)) == {ranked[0]}
    nucleus = ranked[: 1 + np.searchsorted(np.cumsum(p[ranked]), 0.6)]
    assert set(drawn(200, top_p=0.6)) == set(nucleus)
    assert set(drawn(50, top_p=0.0)) == {ranked[0]}
    assert len(set(drawn(200, temperature=2.0))) > len(set(drawn(200, temperature=0.2)))


def test_the_same_seed_gives_the_same_answer_alone_and_among_others():
    prompts = [ask(f"x {n} " * (n % 4 + 1)) for n in range(12)]
    settings = seeds(12, max_tokens=9, temperature=1.3)
    together = run(tiny(batch=5), prompts, settings)
    alone = [run(tiny(batch=1), [p], [s])[0] for p, s in zip(prompts, settings, strict=True)]
    assert together == alone
    assert len({reply.text for reply in together}) > 6


def test_a_reply_says_what_was_said_counted_and_how_it_ended():
    adapter = tiny()
    replies = run(adapter, [ask("x 1")] * 12, seeds(12, max_tokens=6, top_log_probabilities=3))
    assert {reply.finish_reason for reply in replies} == {"stop", "length"}
    for reply in replies:
        tokens = json.loads(reply.raw)["tokens"]
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (4, len(tokens))
        assert reply.model_served == adapter.model
        assert (tokens[-1] == 0) == (reply.finish_reason == "stop")
        assert reply.finish_reason == "stop" or len(tokens) == 6
        assert reply.text == adapter._tokenizer.decode([t for t in tokens if t])
        whole = torch.tensor([[*adapter._cut(ask("x 1")).tokens, *tokens]])
        with torch.no_grad():
            plain = adapter._model(whole).logits[0, 3:-1].log_softmax(-1).numpy()
        for row, token, found in zip(plain, tokens, reply.log_probabilities, strict=True):
            assert found.log_probability == pytest.approx(row[token], abs=2e-5)
            top = [value for _, value in found.alternatives]
            assert top == pytest.approx(np.sort(row)[::-1][:3], abs=2e-5)
    assert run(adapter, [ask("x")], Sampling(max_tokens=1))[0].log_probabilities is None


def test_calls_that_wait_go_through_the_model_together(monkeypatch):
    adapter = tiny(batch=4)
    sizes = []
    generate = adapter._model.generate

    def counted(tokens, **options):
        sizes.append(len(tokens))
        return generate(tokens, **options)

    monkeypatch.setattr(adapter._model, "generate", counted)
    run(adapter, [ask("x")] * 10, seeds(10, max_tokens=2))
    assert sizes == [4, 4, 2]
    sizes.clear()
    two_limits = [Sampling(seed=i, max_tokens=1 + i % 2) for i in range(6)]
    run(adapter, [ask("x")] * 6, two_limits)
    assert sizes == [3, 3]
