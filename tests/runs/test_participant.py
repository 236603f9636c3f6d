import asyncio

import pandas as pd
from scripted import Scripted, often, rejected, server_failed

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.llm_adapters import Reply, Synthetic, Usage, run_session
from knownminds.llm_adapters.runs.runner import Retries, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)


class Noting(Scripted):
    """Notes what it was asked."""

    def __init__(self, *script):
        super().__init__(*script)
        self.prompts, self.settings = [], []

    async def complete(self, prompt, *, settings):
        self.prompts.append(prompt)
        self.settings.append(settings)
        return await super().complete(prompt, settings=settings)


def run(adapter, **options):
    patient = Retries(attempts=3, pause=0.0)
    return asyncio.run(run_session(adapter, ENVIRONMENT, 0, 4, retries=patient, **options))


def test_every_kind_of_answer_keeps_its_outcome_and_nothing_is_filled_in():
    trials = run(
        Scripted(
            "no idea",
            "I can't help with that.",
            "",
            Reply("A", finish_reason="length", model_served="m"),
            Reply("No.", finish_reason="refusal", model_served="m"),
            Reply("", finish_reason="content_filter", model_served="m"),
            rejected("too long"),
        )
    )
    frame = trials.frame
    assert frame["outcome"].tolist() == [
        "malformed", "refused", "empty", "truncated", "refused", "refused", "error", "empty",
    ]  # fmt: skip
    assert frame["action"].isna().all()
    assert frame["reward"].isna().all()
    assert frame["raw_text"].tolist()[:2] == ["no idea", "I can't help with that."]
    assert frame["note"][6] == "too long"
    assert trials.subjects == ("4",)


def test_a_repaired_answer_is_a_choice_and_says_what_was_repaired():
    environment = InstrumentalLearning(n_visits=1)
    letters = [f"**{letter}**" for letter in "ABCDEFGHJKLMNPQRSTVW"]
    outcomes = []
    for letter in letters:
        trials = asyncio.run(run_session(Scripted(letter), environment, 0, 4))
        outcomes.append((trials.frame["outcome"][0], trials.frame["note"][0]))
    assert sum(outcome == "repaired" for outcome, _ in outcomes) == 2
    assert all("signs" in note for outcome, note in outcomes if outcome == "repaired")


def test_what_may_pass_is_tried_again_and_counted():
    adapter = Noting(often("wait", 0.0), server_failed("down"), "x", *[server_failed("!")] * 3)
    frame = run(adapter).frame
    assert frame["attempt"].tolist()[:3] == [3, 3, 1]
    assert frame["outcome"].tolist()[:2] == ["malformed", "error"]
    assert adapter.prompts[0] == adapter.prompts[2]
    assert adapter.settings[0] == adapter.settings[2]


def test_tokens_models_and_prompts_are_recorded(tmp_path):
    adapter = Noting(Reply("x", usage=Usage(7, 2), model_served="m"))
    trials = run(adapter)
    row = trials.frame.iloc[0]
    assert (row["input_tokens"], row["output_tokens"]) == (7, 2)
    assert (row["model"], row["model_served"]) == ("scripted", "m")
    assert trials.frame["prompt_hash"].tolist() == [p.hash for p in adapter.prompts]
    for name in ("trials.csv", "trials.parquet"):
        trials.save(tmp_path / name)
        pd.testing.assert_frame_equal(Trials.load(tmp_path / name).frame, trials.frame)


def test_histories_in_chat_only_grow():
    adapter = Noting()
    asyncio.run(run_session(adapter, InstrumentalLearning(2, history="chat"), 0, 0))
    for shorter, longer in zip(adapter.prompts, adapter.prompts[1:], strict=False):
        assert longer.messages[: len(shorter.messages)] == shorter.messages
        assert len(longer.messages) == len(shorter.messages) + 2
        assert all(message.content.strip() for message in longer.messages)


def test_many_sessions_are_those_lived_one_by_one_whatever_the_concurrency():
    def together(concurrency):
        speaker = Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(malformed=0.2))
        lived = run_sessions_in(None, speaker, ENVIRONMENT, 5, 9, concurrency=concurrency)
        return asyncio.run(lived).trials.frame

    pd.testing.assert_frame_equal(together(1), together(4))
    speaker = Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(malformed=0.2))
    alone = [asyncio.run(run_session(speaker, ENVIRONMENT, 9, i)) for i in range(5)]
    pd.testing.assert_frame_equal(Trials.concatenate(alone).frame, together(4))
