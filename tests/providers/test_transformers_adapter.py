import asyncio
import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.stats import chisquare

pytest.importorskip("torch", reason="torch is not installed: extra transformers")
pytest.importorskip("transformers", reason="transformers is not installed: its extra")
import torch
from tiny_llama import tiny_llama, tiny_tokenizer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import NotCapable, Rejected, Sampling
from knownminds.llm_adapters.providers.transformers import Transformers
from knownminds.validation.chance.revealed import reveal
from knownminds.validation.report import page_of

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


def seeds(n, **settings):
    return [Sampling(seed=i, **settings) for i in range(n)]


def test_answers_are_drawn_with_the_models_own_probabilities():
    adapter = tiny(batch=50)
    prompt = ask("x 1")
    settings = seeds(600, max_tokens=1, top_log_probabilities=0)
    replies = run(adapter, [prompt] * 600, settings)
    p = np.exp(adapter.next_token_log_probabilities([prompt])[0])
    tokens = [json.loads(reply.raw)["tokens"][0] for reply in replies]
    observed, expected = np.bincount(tokens, minlength=len(p)), 600 * p / p.sum()
    rare = expected < 5
    observed = [*observed[~rare], observed[rare].sum()]
    expected = [*expected[~rare], expected[rare].sum()]
    assert len(expected) > 3
    assert chisquare(observed, expected).pvalue > 1e-3


def test_temperature_and_top_p_change_what_is_drawn():
    adapter = tiny(batch=50)
    p = np.exp(adapter.next_token_log_probabilities([ask("x 1")])[0])
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


def test_one_seed_for_all_trials_of_a_session_does_not_repeat_one_draw():
    """The seed of a session is sent on every turn; equal noise would look like perseveration."""
    adapter = tiny(batch=50)
    with torch.no_grad():
        for weights in adapter._model.parameters():
            weights.zero_()  # now every token is as probable as any other
    replies = run(adapter, [ask(f"x {n}") for n in range(200)], Sampling(seed=3, max_tokens=1))
    tokens = [json.loads(reply.raw)["tokens"][0] for reply in replies]
    counts = np.bincount(tokens, minlength=len(SIGNS) + 1)
    assert chisquare(counts).pvalue > 1e-3


def test_without_a_seed_answers_differ():
    replies = run(tiny(batch=20), [ask("x 1")] * 20, Sampling(max_tokens=8))
    assert len({reply.text for reply in replies}) > 1


def test_habits_of_the_models_folder_are_left_aside():
    adapter = tiny()
    settings = seeds(4, max_tokens=12)
    before = run(adapter, [ask("x 1")] * 4, settings)
    habits = adapter._model.generation_config
    habits.repetition_penalty = 5.0
    habits.top_k = 1
    assert run(adapter, [ask("x 1")] * 4, settings) == before
    assert adapter._model.generation_config is habits


def test_a_reply_says_what_was_said_counted_and_how_it_ended():
    adapter = tiny()
    replies = run(adapter, [ask("x 1")] * 12, seeds(12, max_tokens=6, top_log_probabilities=3))
    assert {reply.finish_reason for reply in replies} == {"stop", "length"}
    for reply in replies:
        body = json.loads(reply.raw)
        tokens = body["tokens"]
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (4, len(tokens))
        assert reply.model_served == adapter.model
        assert (tokens[-1] == 0) == (reply.finish_reason == "stop")
        assert reply.finish_reason == "stop" or len(tokens) == 6
        assert reply.text == adapter._tokenizer.decode([t for t in tokens if t])
        assert body["text"] == reply.text
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


def test_a_failure_reaches_every_call_that_waits_for_it_and_no_other(monkeypatch):
    adapter = tiny()
    generate = adapter._model.generate

    def broken(tokens, **options):
        raise RuntimeError("broken")

    async def both():
        calls = [adapter.complete(ask("x"), settings=Sampling(max_tokens=1)) for _ in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    monkeypatch.setattr(adapter._model, "generate", broken)
    assert [str(error) for error in asyncio.run(both())] == ["broken"] * 3
    monkeypatch.setattr(adapter._model, "generate", generate)
    assert run(adapter, [ask("x")], Sampling(max_tokens=1))


@contextmanager
def held_up(adapter, monkeypatch):
    """Let the model answer only when the context is left."""
    begun, over = threading.Event(), threading.Event()
    generate = adapter._model.generate

    def slow(tokens, **options):
        begun.set()
        assert over.wait(30)
        return generate(tokens, **options)

    monkeypatch.setattr(adapter._model, "generate", slow)
    try:
        yield begun
    finally:
        over.set()


def test_a_call_that_is_given_up_holds_up_no_other(monkeypatch):
    adapter = tiny()

    async def one_gives_up():
        with held_up(adapter, monkeypatch) as begun:
            calls = [
                asyncio.create_task(
                    adapter.complete(ask(f"x {n}"), settings=Sampling(max_tokens=2))
                )
                for n in range(3)
            ]
            await asyncio.to_thread(begun.wait, 30)
            calls[1].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(one_gives_up())
    assert isinstance(second, asyncio.CancelledError)
    assert first.usage.output_tokens > 0
    assert third.usage.output_tokens > 0


def test_nobody_waits_for_a_model_that_is_closed(monkeypatch):
    adapter = tiny(batch=1)

    async def closed():
        with held_up(adapter, monkeypatch) as begun:
            calls = [
                asyncio.create_task(adapter.complete(ask("x"), settings=Sampling(max_tokens=2)))
                for _ in range(3)
            ]
            await asyncio.to_thread(begun.wait, 30)
            await adapter.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(e, asyncio.CancelledError) for e in asyncio.run(closed()))


def test_the_chat_template_is_used_if_there_is_one():
    prompt = Prompt((Message("user", "x 1"), Message("assistant", "2"), Message("user", "3")))
    assert tiny()._cut(prompt).text == "x 1 . 2 . 3:"
    assert tiny(template=None)._cut(prompt).text == "x 1\n\n2\n\n3"
    begun = Prompt((Message("user", "x 1"), Message("assistant", "2 :")))
    assert tiny()._cut(begun).text == "x 1 . 2 :"
    with pytest.raises(Rejected, match="refuses: no system"):
        run(tiny(), [ask("x", "system")], Sampling())


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("template", [None, "<{{ messages[-1].content }}"])
def test_revealed_beliefs_tell_in_which_form_a_model_got_what_it_was_asked(
    template, chat, monkeypatch
):
    """Against what was really cut into tokens: of a base model plain text, whatever is asked."""
    tokenizer = tiny_tokenizer([chr(k) for k in range(32, 127)] + ["\n"])
    tokenizer.chat_template = template
    weights = tiny_llama(len(tokenizer), max_position_embeddings=2048)
    adapter, cut = Transformers((weights, tokenizer), device="cpu"), []
    real = Transformers._cut

    def watched(self, prompt):
        cut.append(real(self, prompt).text)
        return real(self, prompt)

    monkeypatch.setattr(Transformers, "_cut", watched)
    found = reveal(adapter, scenarios=["choice"], only={"n_options": 2}, chat=chat, threshold=0.0)
    texts, questions = cut[:3], cut[3:]
    assert len(questions) == 3
    as_text = [not any(text.startswith("<") for text in part) for part in (texts, questions)]
    assert as_text == [not (template and chat), not template]
    forms = [
        "as plain text, without a chat template" if plain else "through the model's chat template"
        for plain in as_text
    ]
    told = f"contexts were sent {forms[0]}; questions were sent {forms[1]}"
    (name,) = found.models
    assert f"{name}: {told}" in str(found).splitlines()
    assert any(sentence.endswith(f": {told}.") for sentence in page_of(found).sentences)
    sent = json.loads(found.to_json())["options"]["models"][name]["sent"]
    assert [how == "text" for how in sent.values()] == as_text


def test_what_it_cannot_do_is_told():
    adapter = tiny()
    with pytest.raises(NotCapable, match="to be shown pictures"):
        run(adapter, [Prompt((Message("user", "x", (b"png",)),))], Sampling())
    with pytest.raises(NotCapable, match="reasoning"):
        run(adapter, [ask("x")], Sampling(reasoning="low"))
    with pytest.raises(Rejected, match="reads and writes 256 tokens; the prompt has 3 and"):
        run(adapter, [ask("x ")], Sampling(max_tokens=254))
    with pytest.raises(ValueError, match="at least 1; got 0 and 512"):
        tiny(batch=0)


def test_outcomes_behind_texts_and_prompts(capsys):
    adapter = tiny()
    found = adapter.log_probabilities(["x 1:", ask("x 1")], ["1", "10", "12"])
    # The template adds the colon: the same tokens, the same hash, the same probabilities.
    assert found.prompt_hashes[0] == found.prompt_hashes[1]
    np.testing.assert_allclose(*found.log_probabilities, atol=2e-5)
    assert found.probabilities.sum(1) == pytest.approx(1.0)
    assert capsys.readouterr() == ("", "")


def test_a_saved_folder_is_loaded_without_a_word(tmp_path, capsys):
    adapter = tiny()
    adapter._model.save_pretrained(tmp_path / "kept")
    adapter._tokenizer.save_pretrained(tmp_path / "kept")
    capsys.readouterr()
    again = Transformers(tmp_path / "kept", device="cpu")
    assert capsys.readouterr() == ("", "")
    assert again.model == str(tmp_path / "kept")
    assert repr(again) == f"Transformers({again.model!r}, device='cpu')"
    np.testing.assert_allclose(
        again.next_token_log_probabilities(["x 1:"]),
        adapter.next_token_log_probabilities(["x 1:"]),
        atol=1e-6,
    )
