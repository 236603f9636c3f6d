"""A confidence that is asked in a second question, as in CogBench: two calls and one trial."""

import asyncio

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.agents import ChangePointObserver, play
from knownminds.environments import (
    Answer,
    Message,
    Outcome,
    RestlessBandit,
    Trials,
    check_environment,
    session_stream,
)
from knownminds.environments.formats.psych_101 import psych_101_records, trials_of_psych_101
from knownminds.environments.words.told_history import REASONINGS
from knownminds.llm_adapters import (
    Capabilities,
    Reply,
    Synthetic,
    Usage,
    load,
    run_session,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.runner import Caps, Retries, read_run, run_sessions_in
from knownminds.validation.costs.budget import budget
from knownminds.validation.costs.dry_runs import dry_run

MIDDLE = ChangePointObserver.parameters.constrain(ChangePointObserver.parameters.mean)
PLACE = RestlessBandit(2, (3, 5), confidence="apart")  # 8 plays


def mind():
    return ChangePointObserver.from_theta(MIDDLE, actions=2)


class Heard:
    """A participant whose replies are scripted or those of another; keeps what it was asked."""

    model, provider, base_url = "heard", "test", ""
    capabilities = Capabilities()

    def __init__(self, other=None, script=()):
        self.other, self.script, self.prompts = other, list(script), []
        if other is not None:
            self.model, self.capabilities = other.model, other.capabilities

    async def complete(self, prompt, *, settings):
        self.prompts.append(prompt)
        if self.other is not None:
            return await self.other.complete(prompt, settings=settings)
        return Reply(self.script.pop(0), usage=Usage(7, 2), model_served="m")

    async def close(self):
        pass


@pytest.mark.parametrize("reasoning", REASONINGS)
def test_it_keeps_the_contract(reasoning):
    check_environment(RestlessBandit(2, (3, 5), confidence="apart", reasoning=reasoning))


def test_a_known_mind_lives_the_session_that_play_lives_with_two_calls_a_trial():
    heard = Heard(Synthetic(mind(), PLACE, 11, 3))
    spoken = asyncio.run(run_session(heard, PLACE, 11, 3, 5))
    played = play(mind(), PLACE, 11, 3, 5).frame
    pd.testing.assert_frame_equal(spoken.frame[played.columns], played, check_exact=True)
    assert len(heard.prompts) == 2 * len(spoken) == 16
    for row, first, second in zip(
        spoken.frame.to_dict("records"), heard.prompts[::2], heard.prompts[1::2], strict=True
    ):
        # The second question shows the reply to the first and tells nothing of the reward.
        assert second.messages[0] == first.messages[0]
        named, sure = PLACE.replies.spoken(row["raw_text"])
        assert second.messages[1] == Message("assistant", named)
        assert float(sure) == row["response"]
        assert "confident" in second.messages[2].content
        assert "confident are you" not in first.messages[0].content.split("\n\n")[-1]
        asked = [sum(map(len, (m.content for m in p.messages))) for p in (first, second)]
        assert row["input_tokens"] == sum(-(-n // 4) for n in asked)  # four characters a token


def test_an_answer_is_whole_or_there_is_none():
    # The address of a session names its letters.
    letters = PLACE.draw(session_stream(1)).labels["machines"]
    a, b = letters
    script = [a, "0.7", "no", b, "very sure", b, "1.2", a, "0", f"**{b}**", "0.25"]
    script += [a, "", b, "1"]
    rows = asyncio.run(run_session(Heard(script=script), PLACE, 1)).frame
    assert rows["outcome"].tolist() == [
        "ok", "malformed", "malformed", "malformed", "ok", "repaired", "empty", "ok"
    ]  # fmt: skip
    assert rows["response"].dropna().tolist() == [0.7, 0.0, 0.25, 1.0]
    assert rows["action"].dropna().tolist() == [0, 0, 1, 1]
    answered = rows["action"].notna()
    assert (answered == rows["reward"].notna()).all()
    # A question that was not asked costs nothing: 7 tokens each.
    assert rows["input_tokens"].tolist() == [14, 7, 14, 14, 14, 14, 14, 14]
    assert rows["raw_text"][2] == PLACE.replies.joined(b, "very sure")
    Trials.from_frame(rows, environment=PLACE)


def test_replies_are_read_by_the_rules_of_letters_and_numbers():
    observation, _ = PLACE.reset(seed=1)
    a, b = PLACE.design.labels["machines"]
    half = PLACE.parse(a, observation)
    assert (half.outcome, half.action, half.response) == (Outcome.OK, 0, None)
    prompt = PLACE.render(observation, [])
    more = PLACE.replies.further(prompt, half)
    assert PLACE.replies.told(more.messages) == 1
    assert PLACE.read(more.messages) == PLACE.read(prompt.messages)
    for first, second, outcome, choice in (
        (b, "0.25", Outcome.OK, (1, 0.25)),
        (f"Machine {b.lower()}.", "**0.25**", Outcome.REPAIRED, (1, 0.25)),
        (b, "very", Outcome.MALFORMED, None),
        (b, "25%", Outcome.REPAIRED, (1, 0.25)),  # on this scale it can only be .25
        (b, "0.25%", Outcome.MALFORMED, None),
        (b, "1.5", Outcome.MALFORMED, None),
        (b, "", Outcome.EMPTY, None),
    ):
        answer = PLACE.parse(PLACE.replies.joined(first, second), observation)
        assert (answer.outcome, answer.choice) == (outcome, choice)
        assert answer.text == PLACE.replies.joined(first, second)
        assert PLACE.replies.further(prompt, answer) is None
    for first in ("", "either", f"{a} or {b}"):
        answer = PLACE.parse(first, observation)
        assert answer.choice is None
        assert PLACE.replies.further(prompt, answer) is None
    assert PLACE.replies.further(prompt, Answer(Outcome.ERROR)) is None


@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_is_said_is_an_answer_or_the_reason_that_it_is_none(first, second):
    observation, _ = PLACE.reset(seed=1)
    half = PLACE.parse(first, observation)
    assert (half.action is None) == (half.outcome not in (Outcome.OK, Outcome.REPAIRED))
    whole = PLACE.parse(PLACE.replies.joined(first, second), observation)
    assert (whole.action is None) == (whole.response is None)
    assert (whole.action is None) == (whole.outcome not in (Outcome.OK, Outcome.REPAIRED))
    assert whole.action is None or half.action == whole.action
    assert PLACE.replies.further(PLACE.render(observation, []), whole) is None


def test_a_budget_counts_both_calls():
    n = PLACE.n_trials
    together = RestlessBandit(2, (3, 5))
    assert len(dry_run(mind(), PLACE, 0, 1).prompt_bytes) == 2 * n
    assert len(dry_run(mind(), together, 0, 1).prompt_bytes) == n
    heard = Heard(Synthetic(mind(), PLACE, 0))
    asyncio.run(run_session(heard, PLACE, 0, 1))
    sent = [sum(len(m.content.encode()) for m in p.messages) for p in heard.prompts]
    assert dry_run(mind(), PLACE, 0, 1).prompt_bytes.tolist() == sent
    found = budget(PLACE, "openai:gpt-4o-mini", model="change_point_observer", subjects=10)
    assert found.usage.calls == 10 * 2 * n


def test_a_run_that_is_stopped_between_the_two_questions_goes_on_there(tmp_path):
    whole = asyncio.run(run_session(Synthetic(mind(), PLACE, 9), PLACE, 9, 0))
    options = {"retries": Retries(pause=0.0)}
    calls = 0
    for cap in (3, 8, None):
        heard = Heard(Synthetic(mind(), PLACE, 9))
        caps = Caps() if cap is None else Caps(calls=cap)
        run = asyncio.run(run_sessions_in(tmp_path, heard, PLACE, 1, 9, caps=caps, **options))
        calls += len(heard.prompts)
        # Three calls are a trial and a half, of which the half is no row.
        assert run.trials is None or len(run.trials) == calls // 2
        assert run.complete == (cap is None)
    assert calls == 16
    frame = read_run(tmp_path).trials.frame
    pd.testing.assert_frame_equal(frame[whole.frame.columns], whole.frame)


def test_a_session_is_told_as_a_text_in_the_words_of_one_question():
    trials = play(mind(), PLACE, 4, 1)
    (record,) = psych_101_records(trials, PLACE)
    back = trials_of_psych_101([record])
    assert back.frame["response"].to_numpy() == pytest.approx(trials.frame["response"].to_numpy())


def test_it_goes_with_a_history_that_is_retold():
    with pytest.raises(ValueError, match="goes with history='prompt'"):
        RestlessBandit(confidence="apart", history="chat")
    with pytest.raises(ValueError, match="confidence is one of together, apart; got 'after'"):
        RestlessBandit(confidence="after")


def check_same_sessions(trials, seed):
    """Hold sessions that came through a server against those of `play`."""
    assert trials.n_subjects == 2
    for i, (_, session) in enumerate(trials.frame.groupby("subject", sort=False)):
        direct = play(mind(), PLACE, seed, i).frame
        assert session["action"].tolist() == direct["action"].tolist()
        assert session["reward"].tolist() == direct["reward"].tolist()
        assert session["response"].to_numpy() == pytest.approx(direct["response"].to_numpy())
    other = play(mind(), PLACE, seed + 1, 0).frame
    assert other["action"].tolist() != trials.frame["action"].tolist()[: len(other)]


@pytest.mark.parametrize("way", ["openai", "inspect"])
def test_through_a_server_it_takes_two_calls_a_trial_and_gives_the_sessions_of_play(way):
    pytest.importorskip("inspect_ai" if way == "inspect" else "openai")

    async def spoken(served):
        name = {"openai": "known-mind", "inspect": "openai-api/ours/known-mind"}[way]
        adapter = load(way)(name, base_url=served.base_url, key_variable=None)
        try:
            return await run_sessions(adapter, PLACE, 2, 9)
        finally:
            await adapter.close()

    with Served(PLACE, mind(), seed=9) as served:
        trials = asyncio.run(spoken(served))
        assert served.calls == 2 * len(trials) == 2 * 2 * PLACE.n_trials
    check_same_sessions(trials, 9)


def test_as_a_task_of_inspect_it_is_recorded_as_in_a_run_of_our_own(tmp_path):
    pytest.importorskip("inspect_ai")
    from inspect_tasks import evaluate

    from knownminds.llm_adapters.runs.inspect_tasks import read_inspect_log, session_task

    with Served(PLACE, mind(), seed=9, address=RUN) as served:
        log = evaluate(session_task(PLACE, 2, 9, address=RUN), served.base_url, tmp_path)
        assert served.calls == 2 * 2 * PLACE.n_trials
    trials = read_inspect_log(log.location)
    ours = asyncio.run(
        run_sessions(Synthetic(mind(), PLACE, 9, *RUN), PLACE, 2, 9, address=RUN)
    ).frame
    for column in ours.columns.drop(["model", "model_served"]):
        assert trials.frame[column].equals(ours[column]), column
