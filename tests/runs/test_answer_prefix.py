"""What an answer begins with: it ends the prompt, stands with the run, and is refused elsewhere."""

import asyncio

import pytest
from scripted import Scripted

from knownminds.environments import make
from knownminds.llm_adapters import Failed, Sampling
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in

ENVIRONMENT = make("balloon_risk", n_balloons=1)
SAYS = Sampling(answer_prefix="Machine ")


class Begun(Scripted):
    """Notes the last message of each prompt."""

    def __init__(self, *script, rest=""):
        super().__init__(*script, rest=rest)
        self.last = []

    async def complete(self, prompt, *, settings):
        assert settings.answer_prefix is None  # it is in the prompt
        self.last.append((prompt.messages[-2].role, prompt.messages[-1]))
        return await super().complete(prompt, settings=settings)


def go(folder, adapter, environment=ENVIRONMENT, settings=SAYS):
    return asyncio.run(
        run_sessions_in(folder, adapter, environment, 1, 1, how=RunOptions(settings=settings))
    )


def test_each_prompt_ends_with_it_and_the_run_keeps_it(tmp_path):
    adapter = Begun(rest="2")
    run = go(tmp_path / "run", adapter)
    assert {(role, m.role, m.content) for role, m in adapter.last} == {
        ("user", "assistant", "Machine ")
    }
    frame = run.trials.frame
    assert len(adapter.last) == len(frame)
    assert (frame["answer_prefix"] == "Machine ").all()
    assert (frame["outcome"] == "ok").all()
    with Ledger.read(tmp_path / "run") as ledger:
        assert ledger.configuration["sampling"]["answer_prefix"] == "Machine "
    with pytest.raises(ValueError, match="answer_prefix"):
        go(tmp_path / "run", Begun(rest="2"), settings=Sampling(answer_prefix="Casino "))


def test_it_is_refused_where_no_answer_begins_with_it(tmp_path):
    thoughts = make("balloon_risk", reasoning="chain_of_thought")
    with pytest.raises(Failed, match="chain_of_thought"):
        go(tmp_path / "a", Begun(), thoughts)
    adapter = Begun()
    adapter.heeds = adapter.heeds - {"answer_prefix"}
    with pytest.raises(Failed, match="answer_prefix"):
        go(tmp_path / "b", adapter)
    assert not adapter.last
    assert not (tmp_path / "b").exists()
    with pytest.raises(ValueError, match="empty"):
        Sampling(answer_prefix=" ")


PLAN = """
benchmark = "cogbench"
[experiments]
balloon_risk = { sessions = 1 }
[models.told]
model = "synthetic:balloon_pumper"
sampling = { system = "You pump balloons." }
"""


def test_a_participant_with_a_system_message_plays_a_benchmark(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(PLAN)
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    code, out, err = knownminds(*words)
    assert code == 0, out + err
    assert "does not take" not in err
