"""A confidence that is asked in a second question, as in CogBench: two calls and one trial."""

import asyncio

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from knownminds.agents import ChangePointObserver, play
from knownminds.environments import Message, Outcome, RestlessBandit, Session, session_stream
from knownminds.llm_adapters import InProcess, Reply, Synthetic, Usage, run_session

MIDDLE = ChangePointObserver.parameters.constrain(ChangePointObserver.parameters.mean)
PLACE = RestlessBandit(2, (3, 5), confidence="apart")  # 8 plays


def mind():
    return ChangePointObserver.from_theta(MIDDLE, actions=2)


class Heard(InProcess):
    """A participant whose replies are scripted or those of another; keeps what it was asked."""

    model, provider = "heard", "test"

    def __init__(self, other=None, script=()):
        self.other, self.script, self.prompts = other, list(script), []
        if other is not None:
            self.model, self.heeds = other.model, other.heeds

    async def complete(self, prompt, *, settings):
        self.prompts.append(prompt)
        if self.other is not None:
            return await self.other.complete(prompt, settings=settings)
        return Reply(self.script.pop(0), usage=Usage(7, 2), model_served="m")


def test_a_known_agent_lives_the_session_that_play_lives_with_two_calls_a_trial():
    heard = Heard(Synthetic(mind(), PLACE, 11, 3))
    spoken = asyncio.run(run_session(heard, PLACE, 11, 3, 5))
    played = play(mind(), PLACE, 11, 3, 5).frame
    played = played.assign(session=played["subject"], subject=spoken.frame["model"])
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


@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_is_said_is_an_answer_or_the_reason_that_it_is_none(first, second):
    session = Session(PLACE, PLACE.draw(session_stream(1)))
    half = session.parse(first)
    assert (half.action is None) == (half.outcome not in (Outcome.OK, Outcome.REPAIRED))
    whole = session.parse(PLACE.replies.joined(first, second))
    assert (whole.action is None) == (whole.response is None)
    assert (whole.action is None) == (whole.outcome not in (Outcome.OK, Outcome.REPAIRED))
    assert whole.action is None or half.action == whole.action
    assert PLACE.replies.further(session.render(), whole) is None
