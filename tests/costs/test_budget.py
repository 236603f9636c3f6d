from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise, takewhile

import numpy as np
import pytest

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import (
    InstrumentalLearning,
    Prompt,
    Turn,
    session_stream,
)
from knownminds.llm_adapters.runs.prices import Range, price_of, tokens_of, tokens_of_answer
from knownminds.validation.costs.budget import budget
from knownminds.validation.costs.dry_runs import dry_run
from knownminds.validation.costs.priced_designs import DesignPower, on_frontier

DAY = date(2026, 11, 1)
LLM = "openai:gpt-4o"
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
FACTORS = [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"reasoning": "step_back"}]


def small(**changed):
    return budget(
        **{
            "environment": InstrumentalLearning(n_visits=3),
            "llms": [LLM],
            "date": DAY,
            "dry_runs": 2,
        }
        | changed
    )


def prompts_of(environment, trials, i):
    """The prompts and answers of a recorded session, made anew from the record alone."""
    environment.reset(options={"design": environment.draw(session_stream(5, i))})
    turns, found = [], []
    for row in trials.frame.itertuples():
        seen = {"trial": int(row.trial), "context": int(row.context), "first": int(row.first)}
        said = environment.say(int(row.action), seen)
        found.append((environment.render(seen, turns), said))
        turns.append(Turn(seen, int(row.action), float(row.reward), said))
    return found


@pytest.mark.parametrize("factors", FACTORS)
def test_a_dry_run_counts_the_bytes_of_the_session_that_play_lives(factors):
    environment = InstrumentalLearning(n_visits=5, **factors)
    counted = dry_run(LEARNER, environment, 5, 2)
    session = prompts_of(environment, play(LEARNER, environment, 5, 2), 2)
    sent = [sum(len(m.content.encode()) for m in prompt.messages) for prompt, _ in session]
    assert counted.prompt_bytes.tolist() == sent
    assert counted.messages.tolist() == [len(prompt.messages) for prompt, _ in session]
    assert counted.answer_bytes.tolist() == [len(said.encode()) for _, said in session]


@pytest.mark.parametrize("factors", FACTORS)
def test_the_part_that_a_cache_can_serve_is_exact(factors):
    environment = InstrumentalLearning(n_visits=5, **factors)
    counted = dry_run(LEARNER, environment, 5, 2)
    prompts = [p for p, _ in prompts_of(environment, play(LEARNER, environment, 5, 2), 2)]
    # Independently: one list of bytes per prompt, with a mark where each message begins.
    lists = [
        [x for m in prompt.messages for x in (m.role, *m.content.encode())] for prompt in prompts
    ]
    shared = [0] + [
        sum(
            not isinstance(a, str)
            for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
        )
        for before, now in pairwise(lists)
    ]
    assert counted.repeated_bytes.tolist() == shared
    assert shared[-1] > shared[2] > 0


def test_a_budget_is_the_sum_of_its_calls():
    found = small(reasoning_tokens=(10, 20), subjects=3)
    environment = InstrumentalLearning(n_visits=3)
    model, price = RescorlaWagnerDual, price_of(LLM, DAY)
    dollars, tokens = {"low": [], "high": []}, {"low": [], "high": []}
    for i in range(2):
        theta = model.parameters.draw(session_stream(0, i, 0), 1)[0]
        run = dry_run(model.from_theta(theta), environment, 0, i)
        for end, thinking in (("low", 10), ("high", 20)):
            sent = [getattr(tokens_of(int(b), 1), end) for b in run.prompt_bytes]
            said = [getattr(tokens_of_answer(int(b)), end) for b in run.answer_bytes]
            tokens[end].append(sum(sent))
            dollars[end].append(
                sum(price.cost(a, b + thinking) for a, b in zip(sent, said, strict=True))
            )
    # Prompts of this environment have one length per trial, whatever was chosen.
    assert len(set(tokens["low"])) == 1
    assert found.usage.input_tokens == Range(3 * tokens["low"][0], 3 * tokens["high"][0])
    assert found.usage.output_tokens == Range(3 * 12 * (1 + 10), 3 * 12 * (5 + 20))
    assert found[LLM].dollars.low == 3 * dollars["low"][0]
    assert found[LLM].dollars.high == 3 * dollars["high"][0]
    assert found.usage.bytes_error == 0


class Talkative(InstrumentalLearning):
    """Says more about some machines than about others, so that sessions differ in length."""

    def say(self, action, observation):
        label = super().say(action, observation)
        return f" {label}" if action else f" {label}" + " " * 400


def test_the_range_of_the_bytes_holds_the_true_sum_in_most_studies():
    """A 95% interval misses in 5% of 60 studies: 3, and by the binomial law hardly ever > 8."""
    environment = Talkative(n_visits=3, history="chat")
    model, missed, widths = RescorlaWagnerDual, 0, []
    pool = []
    for i in range(400):
        theta = model.parameters.draw(session_stream(999, i, 0), 1)[0]
        pool.append(dry_run(model.from_theta(theta), environment, 999, i).prompt_bytes.sum())
    rng = np.random.default_rng(1)
    for seed in range(60):
        usage = small(environment=environment, subjects=10, dry_runs=5, seed=seed).usage
        total = rng.choice(pool, 10).sum()
        missed += not usage.input_bytes.low <= total <= usage.input_bytes.high
        widths.append(usage.input_bytes.high - usage.input_bytes.low)
        assert usage.bytes_error > 0
    assert missed <= 8  # P(X > 8) = 0.002 for X ~ Binomial(60, 0.05)
    # An interval that never misses would be worth nothing: compare with the true spread of a sum
    # and of the mean of 5 runs, 2 * 2.78 * sd * sqrt(10 + 100 / 5).
    fair = 2 * 2.78 * np.std(pool) * np.sqrt(10 + 100 / 5)
    assert 0.6 < np.mean(widths) / fair < 1.4


def test_hidden_reasoning_is_paid_as_output_and_not_sent_again():
    none, some = small(), small(reasoning_tokens=(100, 200))
    assert some.usage.input_tokens == none.usage.input_tokens
    assert some.usage.output_tokens.low == none.usage.output_tokens.low + 12 * 100
    assert some.usage.output_tokens.high == none.usage.output_tokens.high + 12 * 200


def test_thoughts_within_answers_are_sent_again_where_the_history_repeats_answers():
    spoken = {"reasoning": "chain_of_thought"}
    chat = InstrumentalLearning(n_visits=3, history="chat", **spoken)
    none = small(environment=chat)
    some = small(environment=chat, reasoning_tokens=(100, 200))
    again = 200 * sum(range(12))  # prompt t repeats t answers
    extra = some.usage.input_tokens.high - none.usage.input_tokens.high
    # 200 tokens are 444 bytes, counted with less than a token of rounding in each of 66 answers.
    assert again - 66 <= extra <= again
    assert some.usage.input_tokens.low == none.usage.input_tokens.low  # hidden ones are dropped
    assert any("within the answers" in note for note in some.notes)
    assert any("give reasoning_tokens" in note for note in none.notes)

    retold = InstrumentalLearning(n_visits=3, **spoken)  # its history tells only what was chosen
    assert (
        small(environment=retold, reasoning_tokens=(100, 200)).usage.input_tokens
        == small(environment=retold).usage.input_tokens
    )


def test_the_frontier_leaves_out_what_is_beaten():
    dollars = [Decimal(d) for d in (10, 20, 20, 30, 40, 40, 5)]
    power = [0.5, 0.8, 0.7, 0.8, 0.9, 0.9, 0.1]
    #        kept kept less dearer kept kept kept
    assert on_frontier(dollars, power) == [True, True, False, False, True, True, True]


def test_designs_are_priced_by_their_own_prompts_and_set_against_their_power():
    designs = [
        DesignPower(40, 1, 24, 0.85, 0.01),  # long sessions cost more for each trial
        DesignPower(80, 1, 12, 0.80, 0.01),
        DesignPower(80, 2, 12, 0.84, 0.01),  # dearer than the first and weaker
    ]
    found = small(llms=[LLM, "anthropic:claude-sonnet-4-5"], designs=designs)
    frame = found.designs_to_frame()
    assert len(frame) == 6
    mine = frame[frame["llm"] == LLM]
    assert mine["power"].tolist() == [0.80, 0.85, 0.84]
    assert mine["on_frontier"].tolist() == [True, True, False]
    assert mine["calls"].tolist() == [960, 960, 1920]
    for row in found.designs[:3]:
        design = row.design
        alone = small(subjects=design.subjects, sessions=design.sessions, trials=design.trials)
        assert row.dollars == alone[LLM].dollars
        assert row.power_per_dollar == design.power / float(alone[LLM].dollars.high)
    assert str(found).count("frontier") == 4
    nothing = {LLM: {"input": 0, "output": 0}}
    assert small(prices=nothing, designs=designs[:1]).designs[0].power_per_dollar == float("inf")


class Pictured(InstrumentalLearning):
    def render(self, observation, turns):
        first, *others = super().render(observation, turns).messages
        return Prompt((replace(first, images=(b"PNG", b"PNG")), *others))


def test_pictures_count_as_many_tokens_as_is_said_and_are_repeated_with_their_message():
    place = Pictured(n_visits=2, history="chat")
    free = {"openai:mine": {"input": 1, "output": 1}}
    blind, wide, narrow = (
        budget(p, ["openai:mine"], prices=free, image_tokens=tokens)
        for p, tokens in ((InstrumentalLearning(2, history="chat"), (0, 0)), (place, (100, 400)),
                          (place, (0, 0)))
    )  # fmt: skip
    calls = wide.usage.calls
    assert narrow.usage.input_tokens == blind.usage.input_tokens
    assert wide.usage.input_tokens.low - blind.usage.input_tokens.low == 100 * 2 * calls
    assert wide.usage.input_tokens.high - blind.usage.input_tokens.high == 400 * 2 * calls
    assert "A picture counts 100 to 400 tokens" in " ".join(wide.notes)
    run = dry_run(LEARNER, place, 1, 0)
    assert run.images.tolist() == [2] * calls
    assert run.repeated_images.tolist() == [0] + [2] * (calls - 1)
