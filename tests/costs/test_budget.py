from datetime import date
from decimal import Decimal
from itertools import pairwise, takewhile

import numpy as np
import pytest

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Turn, session_stream
from knownminds.llm_adapters.runs.prices import Range, price_of, tokens_of, tokens_of_answer
from knownminds.validation.costs.dry_runs import dry_run, dry_runs_of
from knownminds.validation.costs.priced_designs import on_frontier
from knownminds.validation.costs.questions import IMAGE_TOKENS

DAY = date(2026, 11, 1)
LLM = "openai:gpt-4o"
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
FACTORS = [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"reasoning": "step_back"}]


def small(environment=None, reasoning=(0, 0), dry_runs=2, seed=0):
    place = environment or InstrumentalLearning(n_visits=3)
    thinking, looking = Range(*reasoning), Range(*IMAGE_TOKENS)
    return dry_runs_of(place, RescorlaWagnerDual, dry_runs, seed, thinking, looking)


def prompts_of(environment, trials, i):
    """The prompts and answers of a recorded session, made anew from the record alone."""
    labels = environment.draw(session_stream(5, i)).labels
    turns, found = [], []
    for row in trials.frame.itertuples():
        seen = {"trial": int(row.trial), "context": int(row.context), "first": int(row.first)}
        said = environment.say(labels, int(row.action), seen)
        found.append((environment.render(labels, seen, turns), said))
        turns.append(Turn(seen, int(row.action), float(row.reward), said))
    return found


@pytest.mark.parametrize("factors", FACTORS)
def test_a_dry_run_counts_the_bytes_of_the_session_that_play_lives(factors):
    environment = InstrumentalLearning(n_visits=5, **factors)
    counted = dry_run(LEARNER, environment, 5, 2)
    session = prompts_of(environment, play(LEARNER, environment, 5, 2), 2)
    sent = [sum(len(m.content.encode()) for m in prompt.messages) for prompt, _ in session]
    assert counted["prompt_bytes"].tolist() == sent
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
    runs = small(reasoning=(10, 20))
    usage = runs.usage(3)
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
    assert usage.input_tokens == Range(3 * tokens["low"][0], 3 * tokens["high"][0])
    assert usage.output_tokens == Range(3 * 12 * (1 + 10), 3 * 12 * (5 + 20))
    assert runs.dollars(price, 3).low == 3 * dollars["low"][0]
    assert runs.dollars(price, 3).high == 3 * dollars["high"][0]
    assert usage.bytes_error == 0


class Talkative(InstrumentalLearning):
    """Says more about some machines than about others, so that sessions differ in length."""

    def say(self, labels, action, observation):
        label = super().say(labels, action, observation)
        return f" {label}" if action else f" {label}" + " " * 400


@pytest.mark.long
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
        usage = small(environment=environment, dry_runs=5, seed=seed).usage(10)
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
    none, some = small().usage(1), small(reasoning=(100, 200)).usage(1)
    assert some.input_tokens == none.input_tokens
    assert some.output_tokens.low == none.output_tokens.low + 12 * 100
    assert some.output_tokens.high == none.output_tokens.high + 12 * 200


def test_thoughts_within_answers_are_sent_again_where_the_history_repeats_answers():
    spoken = {"reasoning": "chain_of_thought"}
    chat = InstrumentalLearning(n_visits=3, history="chat", **spoken)
    none = small(environment=chat)
    some = small(environment=chat, reasoning=(100, 200))
    again = 200 * sum(range(12))  # prompt t repeats t answers
    extra = some.usage(1).input_tokens.high - none.usage(1).input_tokens.high
    # 200 tokens are 444 bytes, counted with less than a token of rounding in each of 66 answers.
    assert again - 66 <= extra <= again
    assert (
        some.usage(1).input_tokens.low == none.usage(1).input_tokens.low
    )  # hidden ones are dropped
    assert any("within the answers" in note for note in some.notes())
    assert any("--reasoning LOW-HIGH" in text for text in none.warnings())

    retold = InstrumentalLearning(n_visits=3, **spoken)  # its history tells only what was chosen
    assert (
        small(environment=retold, reasoning=(100, 200)).usage(1).input_tokens
        == small(environment=retold).usage(1).input_tokens
    )


def test_the_frontier_leaves_out_what_is_beaten():
    dollars = [Decimal(d) for d in (10, 20, 20, 30, 40, 40, 5)]
    power = [0.5, 0.8, 0.7, 0.8, 0.9, 0.9, 0.1]
    #        kept kept less dearer kept kept kept
    assert on_frontier(dollars, power) == [True, True, False, False, True, True, True]


@pytest.mark.parametrize("option", ["--sessions", "--subjects"])
def test_a_budget_that_dollars_split_takes_no_number_of_sessions(option, knownminds, tmp_path):
    run = tmp_path / "run"
    place = ("coins", "--set", "n_coins=2")
    words = ("--llm", "synthetic:belief_sampler", "--paraphrases", 2, "--out", run)
    code, _, err = knownminds("run", *place, *words)
    assert code == 0, err
    code, out, err = knownminds(
        "budget", *place, "--llm", "openai:gpt-4o-mini", "--from", run, "--effect", "x=0.3",
        "--dollars", 1, option, 4, "--out", tmp_path / "budget",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert f"the dollars say how many sessions there are; got {option}. Leave it out." in err
    assert not (tmp_path / "budget").exists()


def test_the_help_shows_ranges_as_they_are_typed(knownminds):
    _, out, _ = knownminds("budget", "--help")
    words = " ".join(out.replace("│", " ").split())
    assert "Default: 0-0." in words
    assert "Default: 85-8500." in words
