import asyncio

import pandas as pd
import pytest

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning, Message, Prompt
from knownminds.llm_adapters import (
    Capabilities,
    NotCapable,
    Rejected,
    Reply,
    Sampling,
    Synthetic,
    run_session,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.replay import Replay
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.runner import Retries, run_sessions_in

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
HELLO = Prompt((Message("user", "Hello?"),))


@pytest.fixture
def replay_of():
    """Make recorded participants, and close them in the end."""
    made = []

    def make(folder):
        made.append(Replay(folder))
        return made[-1]

    yield make
    for replay in made:
        asyncio.run(replay.close())


def recorded(folder, environment, n=3, rates=None, **options):
    mind = Synthetic(LEARNER, environment, 9, contaminants=Contaminants(**(rates or {})))
    return asyncio.run(run_sessions_in(folder, mind, environment, n, 9, **options))


@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_a_replayed_run_is_the_recorded_one_in_any_order(tmp_path, replay_of, history):
    environment = InstrumentalLearning(n_visits=2, history=history)
    rates = {"malformed": 0.2, "refusal": 0.1, "truncation": 0.1}
    run = recorded(tmp_path, environment, rates=rates, settings=Sampling(temperature=0.7))
    for concurrency in (1, 3):
        again = asyncio.run(
            run_sessions(replay_of(tmp_path), environment, 3, 9, concurrency=concurrency)
        )
        # With which temperature it was asked is known of the run alone.
        there, back = (f.drop(columns="temperature") for f in (run.trials.frame, again.frame))
        pd.testing.assert_frame_equal(back, there)
    alone = asyncio.run(run_session(replay_of(tmp_path), environment, 9, 2))
    assert alone.frame["action"].tolist() == run.trials.frame["action"].tolist()[-8:]


def test_answers_of_a_provider_that_takes_no_seed_are_told_apart_by_session(tmp_path, replay_of):
    class Counting:
        """The n-th call gets the n-th text, whoever asks."""

        model, provider, base_url = "counting", "test", ""
        capabilities = Capabilities(seed=False)
        calls = 0

        async def complete(self, prompt, *, settings):
            assert settings.seed is None
            self.calls += 1
            return Reply(f"text {self.calls}")

    environment = InstrumentalLearning(n_visits=1)
    run = asyncio.run(run_sessions_in(tmp_path, Counting(), environment, 3, 9))
    again = asyncio.run(run_sessions(replay_of(tmp_path), environment, 3, 9, concurrency=2))
    assert again.frame["raw_text"].tolist() == run.trials.frame["raw_text"].tolist()


def test_what_was_not_asked_or_not_answered_is_rejected_and_others_answered(tmp_path, replay_of):
    environment = InstrumentalLearning(n_visits=1)
    run = recorded(tmp_path, environment, 1, caps=Caps(calls=2))
    replay = replay_of(tmp_path)
    for prompt, settings, kind, said in (
        (HELLO, Sampling(seed=0), Rejected, "was not asked in the recorded session"),
        (HELLO, Sampling(), NotCapable, "knows its session by the sampling seed; got none"),
        (HELLO, Sampling(seed=0, temperature=0.5), NotCapable, r"temperature=None; got 0\.5"),
    ):
        with pytest.raises(kind, match=said):
            asyncio.run(replay.complete(prompt, settings=settings))
    retries = Retries(identical=99)
    there = asyncio.run(
        run_sessions_in(tmp_path / "again", replay, environment, 1, 9, retries=retries)
    )
    frame = there.trials.frame
    assert frame["outcome"].tolist()[:2] == run.trials.frame["outcome"].tolist()
    assert frame["outcome"].tolist()[2:] == ["error", "error"]
