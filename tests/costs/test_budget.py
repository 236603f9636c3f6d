import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise, takewhile

import numpy as np
import pytest

from knownminds.agents import AGENTS, RescorlaWagnerDual, play
from knownminds.environments import (
    InstrumentalLearning,
    Message,
    Prompt,
    Turn,
    session_stream,
)
from knownminds.llm_adapters.runs.prices import Range, price_of, tokens_of, tokens_of_answer
from knownminds.validation.costs.budget import budget, read_budget
from knownminds.validation.costs.dry_runs import dry_run, repeated
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


def test_a_prefix_ends_where_roles_letters_or_messages_do():
    def prompt(*pairs):
        return Prompt(tuple(Message(*pair) for pair in pairs))

    one = prompt(("user", "äb"), ("assistant", "A"))
    assert repeated(one, one) == (4, 0)
    assert repeated(one, prompt(("user", "äb"))) == (3, 0)
    assert repeated(one, prompt(("system", "äb"))) == (0, 0)
    assert repeated(one, prompt(("user", "äc"), ("assistant", "A"))) == (2, 0)
    assert repeated(one, prompt(("user", "ö"))) == (1, 0)  # both begin with the byte C3
    assert repeated(one, prompt(("user", "äbc"), ("assistant", "A"))) == (3, 0)


def test_a_dry_run_leaves_the_session_of_the_caller_alone():
    environment = InstrumentalLearning(n_visits=2)
    observation, _ = environment.reset(seed=3)
    before = environment.render(observation, [])
    dry_run(LEARNER, environment, 5, 0)
    assert environment.render(observation, []) == before


def test_later_prompts_are_longer_and_the_whole_grows_faster_than_the_number_of_trials():
    short, long = small(trials=24), small(trials=96)
    sizes = [size.prompt_bytes for size in long.sizes]
    assert all(now > before for before, now in pairwise(sizes))
    sent = [each.usage.input_bytes.high for each in (short, long)]
    assert sent[1] > 1.5 * 4 * sent[0]
    assert long.costs[0].dollars.low > 1.5 * 4 * float(short.costs[0].dollars.low)


@pytest.mark.parametrize(
    "model", [name for name, model in AGENTS.items() if model.plays(InstrumentalLearning())]
)
def test_every_model_can_be_sent_ahead(model):
    assert small(model=model).usage.calls == 12


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


def test_doubling_the_sessions_doubles_calls_and_money():
    once, twice = small(subjects=7), small(subjects=7, sessions=2)
    assert twice.usage.calls == 2 * once.usage.calls == 2 * 7 * 12
    assert twice.usage.input_bytes == Range(
        2 * once.usage.input_bytes.low, 2 * once.usage.input_bytes.high
    )
    for end in ("low", "high"):
        for what in ("dollars", "dollars_cached"):
            one, two = (getattr(getattr(b[LLM], what), end) for b in (once, twice))
            assert two == 2 * one > 0


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


def test_one_dry_run_says_that_it_cannot_show_how_sessions_differ():
    found = small(environment=Talkative(n_visits=3, history="chat"), dry_runs=1)
    assert found.usage.input_bytes.low == found.usage.input_bytes.high
    assert found.usage.bytes_error is None
    assert any("One dry run" in note for note in found.notes)
    assert not any("One dry run" in note for note in small().notes)


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


def test_a_cache_saves_on_what_prompts_repeat():
    found = small(trials=96)[LLM]
    assert found.dollars_cached.high < 0.7 * float(found.dollars.high)
    free = {LLM: {"input": 2, "output": 3, "cached_input": 2}}
    same = small(trials=96, prices=free)[LLM]
    assert same.dollars_cached == same.dollars
    unknown = small(prices={LLM: {"input": 2, "output": 3}})[LLM]
    assert unknown.dollars_cached is None


def test_prices_of_the_users_win_and_are_dated():
    own = {
        "lab:own": {"input": 0, "output": 0, "date": "2026-10-02"},
        LLM: {"input": 5, "output": 20},
    }
    found = small(llms=["lab:own", LLM], prices=own)
    assert found["lab:own"].dollars.high == 0
    assert found["lab:own"].price.since == date(2026, 10, 2)
    assert found[LLM].dollars.low == 2 * small()[LLM].dollars.low  # of 2.5 and 10 in the table
    assert found.to_frame()["price_date"].tolist() == ["2026-11-01"] * 2


def test_the_same_seed_gives_the_same_budget():
    environment = Talkative(n_visits=3, history="chat")
    one, again, other = (small(environment=environment, seed=s) for s in (4, 4, 5))
    assert one == again
    assert one.to_json() == again.to_json()
    assert one.usage != other.usage
    model, sent = RescorlaWagnerDual, []
    for i in range(2):  # the addresses that the documentation names
        theta = model.parameters.draw(session_stream(4, i, 0), 1)[0]
        sent.append(dry_run(model.from_theta(theta), environment, 4, i).prompt_bytes)
    assert [size.prompt_bytes for size in one.sizes] == np.mean(sent, axis=0).tolist()
    assert [size.prompt_bytes_high for size in one.sizes] == np.max(sent, axis=0).tolist()


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


def test_a_saved_budget_is_read_back_the_same(tmp_path):
    designs = [DesignPower(np.int64(4), 1, 12, np.float64(0.8), 0.01)]
    found = small(
        environment=Talkative(n_visits=3, history="chat", reasoning="chain_of_thought"),
        llms=[LLM, "google:gemini-2.5-pro", "perplexity:sonar"],
        subjects=np.int64(3),
        reasoning_tokens=(5, 50),
        designs=(replace(design, trials=12) for design in designs),
        dry_runs=3,
    )
    assert found.usage.bytes_error > 0
    file = found.save(tmp_path / "new" / "folder")
    back = read_budget(tmp_path / "new" / "folder")
    assert back == found
    assert str(back) == str(found)
    assert back.to_frame().equals(found.to_frame())
    assert [f.name for f in file.parent.iterdir()] == ["budget.json"]
    small().save(file.parent)
    assert read_budget(file.parent) == small()


def test_money_survives_as_a_number_to_the_last_digit(tmp_path):
    dear = {LLM: {"input": "98765.4321", "output": "0.0000007"}}
    found = small(prices=dear, subjects=12345)
    assert found[LLM].dollars.high > 10**6
    found.save(tmp_path)
    assert read_budget(tmp_path) == found
    assert isinstance(json.loads(found.to_json())["costs"][0]["dollars"]["high"], float)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"subjects": 1', '"subjects": 2'),
        lambda text: text.replace('"format": 2', '"format": 9'),
        lambda text: text.replace('"knownminds": "budget"', '"knownminds": "recovery"'),
        lambda text: "\udcff",
    ],
)
def test_a_damaged_or_foreign_file_is_refused(tmp_path, spoil):
    file = small().save(tmp_path)
    spoilt = spoil(file.read_text(encoding="utf-8"))
    assert spoilt != file.read_text(encoding="utf-8")
    file.write_text(spoilt, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=r"budget\.json is not a budget of format 2, or damaged"):
        read_budget(tmp_path)


def test_a_folder_without_a_budget_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds budget\.json"):
        read_budget(tmp_path)


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


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"llms": []}, "at least one language model"),
        ({"llms": ["openai:gtp-4o"]}, "Nearest: .*openai:gpt-4o"),
        ({"subjects": 0}, "subjects is a whole number from 1 on; got 0"),
        ({"sessions": 1.5}, "sessions is a whole number"),
        ({"dry_runs": 0}, "dry_runs is a whole number"),
        ({"subjects": True}, "subjects is a whole number"),
        ({"reasoning_tokens": (20, 10)}, "Give the lower one first"),
        ({"reasoning_tokens": (-1, 10)}, "from 0 on"),
        ({"reasoning_tokens": (1, 2, 3)}, "lowest and the highest"),
        ({"reasoning_tokens": 3}, "lowest and the highest"),
        ({"reasoning_tokens": (0.5, 3)}, "from 0 on"),
        ({"model": "rescorla_wagnr"}, "Nearest: rescorla_wagner"),
        ({"environment": "instrumental_lerning"}, "Nearest: instrumental_learning"),
        ({"trials": 7}, "multiple of 4"),
        ({"image_tokens": (20, 10)}, "image_tokens are the lowest and the highest number per pic"),
        ({"seed": -1}, "whole numbers from 0 on"),
    ],
)
def test_misuse_is_answered_with_the_rule(changed, said):
    with pytest.raises(ValueError, match=said):
        small(**changed)


@pytest.mark.parametrize(
    ("design", "said"),
    [
        ((0, 1, 12, 0.5, 0.1), "subjects is a whole number"),
        ((1, 1, 12, 1.5, 0.1), "from 0 to 1"),
        ((1, 1, 12, float("nan"), 0.1), "from 0 to 1"),
        ((1, 1, 12, 0.5, -0.1), "Monte-Carlo error"),
    ],
)
def test_a_design_without_a_power_is_refused(design, said):
    with pytest.raises(ValueError, match=said):
        DesignPower(*design)


def test_one_language_model_need_not_be_a_list_and_none_is_counted_twice():
    assert small(llms=LLM) == small(llms=[LLM, LLM])
    with pytest.raises(ValueError, match="Nearest: openai:gpt-4o"):
        small()["openai:gpt-4"]


def test_a_budget_prints_itself():
    text = str(small(subjects=2, reasoning_tokens=(3, 4)))
    for said in ("2 subjects x 12 trials = 24 calls", "$", LLM, "genai-prices", "2026-11-01"):
        assert said in text
