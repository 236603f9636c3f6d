"""A known mind in the chair, through the commands that a person types."""

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import Contaminants, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Outcome, Trials
from knownminds.inference import ModelData, posterior
from knownminds.llm_adapters import Sampling, Synthetic
from knownminds.llm_adapters.known_minds.faulty import Faults
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, read_run
from knownminds.validation.costs.connect import (
    connect,
    estimate,
    folder_of,
    known_agent,
    price_for,
    run,
)
from knownminds.validation.data.fit import fit
from knownminds.validation.report import page_of, read_result

PLACE = "instrumental_learning"
TRUTH = {"alpha_positive": 0.6, "alpha_negative": 0.2, "beta": 5.0, "kappa": 0.0}
SHORT = InstrumentalLearning(n_visits=2)
MIND = "synthetic:rescorla_wagner_dual"
PLAYED = ["subject", "trial", "context", "action", "reward"]


@contextmanager
def served(*words):
    """Run `knownminds serve` as a process and give its address."""
    code = "import sys; from knownminds.validation.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", PLACE, *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline()
            yield re.search(r"http://127\.0\.0\.1:\d+/v1", said)[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def direct(n, seed):
    """The sessions as simulated, without a word."""
    theta = np.tile(list(TRUTH.values()), (n, 1))
    return simulate(RescorlaWagnerDual, theta, InstrumentalLearning(), seed, address=RUN)


def test_a_known_mind_behind_an_endpoint_lives_the_direct_path_and_comes_back(knownminds, tmp_path):
    pytest.importorskip("openai")
    out = tmp_path / "run"
    values = [word for name, value in TRUTH.items() for word in ("--set", f"{name}={value}")]
    with served(*values, "--seed", 3) as url:
        code, said, err = knownminds(
            "run", PLACE, "--llm", "openai:known-mind", "--base-url", url, "--sessions", 16,
            "--seed", 3, "--concurrency", 16, "--out", out, "--json",
        )  # fmt: skip
    assert code == 0, err
    told = json.loads(said)
    assert told["complete"]
    assert told["outcomes"]["ok"]["count"] == told["trials"] == 16 * 96
    heard = Trials.load(out / TRIALS)
    lived = direct(16, 3)
    pd.testing.assert_frame_equal(
        heard.frame[PLAYED].reset_index(drop=True),
        lived.frame[PLAYED].reset_index(drop=True),
        check_dtype=False,
    )
    fits = [fit(trials, pooled=True) for trials in (heard, lived)]
    estimates = [f.subjects[list(TRUTH)].to_numpy() for f in fits]
    assert np.array_equal(*estimates)
    one = heard.frame.assign(session=heard.frame["subject"], subject="all")
    low, high = posterior(RescorlaWagnerDual, ModelData.read(
        RescorlaWagnerDual, Trials.from_frame(one, environment=InstrumentalLearning())
    )).interval(0.95)  # fmt: skip
    # Four intervals of 95% hold the truth all at once in 81% to 86% of data sets; seed 3 was the
    # first tried for this test, and a mind with another beta is outside.
    truth = np.array(list(TRUTH.values()))
    assert ((low[0] <= truth) & (truth <= high[0])).all()
    assert not low[0, 2] <= 3.0 <= high[0, 2]


def test_a_bad_day_is_accounted_for_and_the_cap_is_kept(tmp_path):
    contaminated = connect(
        MIND,
        SHORT,
        seed=5,
        truth=TRUTH,
        contaminants=Contaminants(malformed=0.05, refusal=0.05),
        faults=Faults(rate_limited=0.05, failed=0.05, timed_out=0.05),
    )
    options = {"sessions": 60, "seed": 5, "out": tmp_path, "retries": Retries(pause=0.0)}
    price = price_for("a:b", {"a:b": {"input": 1, "output": 4}})
    cap, settings = Caps(dollars="0.05"), Sampling(max_tokens=50)
    given = {**options, "price": price, "settings": settings}
    stopped = run(SHORT, contaminated, caps=cap, **given)
    assert "cap" in stopped.stopped
    assert 0.04 < stopped.dollars <= 0.05
    done = run(SHORT, contaminated, **given)
    assert done.complete
    frame = done.trials.frame
    assert len(frame) == 60 * SHORT.n_trials
    assert set(frame["outcome"]) <= {outcome.value for outcome in Outcome}
    rates = {rate.outcome: rate for rate in done.outcomes}
    # 480 trials: a rate of 5% lies within 3.5 standard errors, 1.5% to 8.5%.
    for name in ("malformed", "refused"):
        assert 0.015 < rates[name].share < 0.085
    assert frame["action"].isna().sum() == sum(
        rate.count for name, rate in rates.items() if name not in ("ok", "repaired")
    )
    assert done.account.calls["error_unpaid"] > 0
    assert done.account.calls["error_maybe_paid"] > 0


def test_a_stopped_run_goes_on_with_the_same_command_and_ends_as_an_unbroken_one(
    knownminds, tmp_path
):
    words = ["run", PLACE, "--llm", MIND, "--trials", 8, "--sessions", 3, "--seed", 2]
    code, _, err = knownminds(*words, "--out", tmp_path / "a", "--cap", "calls=10")
    assert code == 1
    assert "goes on" in err
    assert len(pd.read_parquet(tmp_path / "a" / TRIALS)) == 10
    assert knownminds(*words, "--out", tmp_path / "a")[0] == 0
    assert knownminds(*words, "--out", tmp_path / "b")[0] == 0
    frames = [pd.read_parquet(tmp_path / name / TRIALS) for name in "ab"]
    pd.testing.assert_frame_equal(*frames)


def test_the_page_is_drawn_from_the_ledger_and_its_command_asks_nothing_new(knownminds, tmp_path):
    words = ["--trials", "8", "--sessions", "4", "--seed", "2", "--temperature", "0.5"]
    dials = ["--contaminate", "malformed=0.2", "--contaminate", "verbosity=0.3"]
    code, _, err = knownminds("run", PLACE, "--llm", MIND, *words, *dials, "--out", tmp_path)
    assert code == 0, err
    page = tmp_path / "report.html"
    before = page.read_text()
    page.unlink()
    assert knownminds("report", tmp_path)[0] == 0
    assert page.read_text() == before
    result = read_result(tmp_path)
    command = page_of(result).command
    for word in words:
        assert word in shlex.split(command)
    lost = sum(r.count for r in result.outcomes if r.outcome not in ("ok", "repaired"))
    assert lost > 0
    assert f"{lost:,} of 32 trials" in before
    assert "have no readable answer" in before


def test_a_dry_run_tells_the_estimate_and_leaves_nothing(knownminds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("run", PLACE, "--llm", "openai:gpt-4o-mini", "--sessions", 5, "--dry-run")
    code, said, _ = knownminds(*words)
    assert code == 0
    assert "480 calls" in said
    assert "$0." in said
    assert not list(tmp_path.iterdir())


def test_the_estimate_holds_what_a_run_sends(tmp_path):
    told = estimate(SHORT, MIND, 3, None)
    low, high = re.search(r"([\d,]+) to ([\d,]+) tokens sent", told).groups()
    lived = run(SHORT, MIND, sessions=3, out=tmp_path, truth=TRUTH)
    with_bytes = lived.account.input_tokens  # four characters to a token, below any range
    assert with_bytes < int(high.replace(",", ""))
    assert with_bytes > 0.7 * int(low.replace(",", ""))
    assert "no price is known" in told


def test_a_replayed_run_is_the_run_and_a_loop_may_be_running(tmp_path):
    first = run(SHORT, MIND, sessions=2, seed=4, out=tmp_path / "a")

    async def within():
        return run(SHORT, f"replay:{tmp_path / 'a'}", sessions=2, seed=4, out=tmp_path / "b")

    again = asyncio.run(within())
    columns = [c for c in first.trials.frame if c != "attempt"]
    pd.testing.assert_frame_equal(first.trials.frame[columns], again.trials.frame[columns])


def test_a_folder_of_a_run_can_be_fitted(knownminds, tmp_path):
    run(SHORT, MIND, sessions=4, seed=4, out=tmp_path)
    code, said, err = knownminds("fit", tmp_path, "--pooled", "--json")
    assert code == 0, err
    sessions = json.loads(said)["sessions"]
    assert [one["trials"] for one in sessions] == [4 * SHORT.n_trials]


def test_minds_are_at_the_centre_of_their_priors_unless_told():
    mind = known_agent("rescorla_wagner_dual", SHORT, {"beta": 5.0})
    parameters = RescorlaWagnerDual.parameters
    centre = parameters.constrain(parameters.mean)
    centre[parameters.index("beta")] = 5.0
    assert np.allclose(mind.theta, centre)


def test_prices_are_those_of_the_server_that_is_called():
    assert price_for("openai:gpt-4o-mini", {}).input > 0
    assert price_for("openai:gpt-4o-mini", {}, elsewhere=True) is None
    assert price_for(MIND, {}) is None
    assert price_for("openai:no-such-model", {}) is None
    own = {"openai:x": {"input": 1, "output": 2}}
    assert price_for("openai:x", own, elsewhere=True).output == 2


def test_a_run_without_a_folder_gets_one_that_bears_its_name():
    assert str(folder_of(SHORT, "openai:org/model 1")) == f"runs/{PLACE}-openai-org-model-1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--llm", "opnai:x"], "no provider named 'opnai'. Nearest: openai"),
        (["--llm", "openai"], "provider:model"),
        (["--llm", "openai:gpt-4o-mini"], "variable OPENAI_API_KEY, which is empty. Set it"),
        (["--llm", "openai:x", "--base-url", "nowhere"], "base_url begins with http"),
        (["--llm", MIND, "--base-url", "http://127.0.0.1:9"], "base_url is for"),
        (["--llm", "synthetic:rescorla"], "no model named 'rescorla'"),
        (["--llm", MIND, "--contaminate", "refsal=0.1"], "Nearest: refusal"),
        (["--llm", MIND, "--contaminate", "refusal=2"], "lie in [0, 1]"),
        (["--llm", MIND, "--fault", "failed=2"], "probabilit"),
        (["--llm", MIND, "--cap", "dollar=1"], "Nearest: dollars"),
        (["--llm", MIND, "--cap", "calls=some"], "whole number"),
        (["--llm", MIND, "--cap", "dollars=1", "--max-tokens", "9"], "price"),
        (["--llm", MIND, "--price", "1"], "IN"),
        (["--llm", MIND, "--temperature", "9"], "temperature goes from 0 to 2"),
        (["--llm", MIND, "--reasoning", "low"], "reasoning, which its adapter cannot heed"),
        (["--llm", MIND, "--sessions", "0"], "from 1 on"),
        (["--llm", MIND, "--set", "alpha=1"], "alpha"),
        (["--llm", "replay:nowhere"], "ledger"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    knownminds, tmp_path, monkeypatch, words, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = knownminds("run", PLACE, *words, "--out", "r")
    assert code == 2
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err
    assert out == ""
    assert not (tmp_path / "r").exists()


def test_a_server_that_is_down_stops_the_run_before_a_trial_is_lost(tmp_path):
    pytest.importorskip("openai")
    quick = Retries(pause=0.0)
    lived = run(
        SHORT, "openai:x", base_url="http://127.0.0.1:9/v1", sessions=2, out=tmp_path, retries=quick
    )
    assert "cannot be reached" in lived.stopped
    assert lived.trials is None
    assert read_run(tmp_path).account.calls == {"error_unpaid": lived.calls}


def test_a_folder_holds_one_kind_of_result_and_one_run(knownminds, tmp_path):
    run(SHORT, MIND, sessions=1, seed=4, out=tmp_path)
    for words in (["fit", tmp_path, "--out", tmp_path], ["budget", PLACE, "--out", tmp_path]):
        code, _, err = knownminds(*words)
        assert code == 2
        assert "folder of its own" in err
    with pytest.raises(ValueError, match=r"goes on as it began.*seed"):
        run(SHORT, MIND, sessions=1, seed=5, out=tmp_path)
    assert len(read_run(tmp_path).trials) == SHORT.n_trials


def test_a_synthetic_participant_is_named_by_all_that_makes_it():
    names = {
        Synthetic(
            known_agent("rescorla_wagner_dual", SHORT, truth), SHORT, 1, contaminants=dials
        ).model
        for truth in ({}, {"beta": 5.0}, {"beta": 5.0000001})
        for dials in (None, Contaminants(refusal=0.1))
    }
    assert len(names) == 6
