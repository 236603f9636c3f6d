import re

import numpy as np
import pytest

from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.llm_adapters.outcomes.outcome_tree import extends
from knownminds.llm_adapters.providers.token_sampler import STOP, TOKENISATIONS, TokenSampler

NUMBERS = tuple(str(n) for n in range(1, 13))
UNIFORM = np.full(12, 1 / 12)


def sampler(tokenisation="digits", probabilities=UNIFORM, **options):
    return TokenSampler(NUMBERS, probabilities, tokenisation, **options)


@pytest.mark.parametrize("space", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_a_uniform_sampler_comes_out_uniform_whatever_its_tokens(tokenisation, space):
    found = sampler(tokenisation, space=space).outcome_probabilities()
    np.testing.assert_allclose(found.probabilities[0], 1 / 12, rtol=1e-12)
    np.testing.assert_allclose(found.mass, 1.0, rtol=1e-12)


def test_the_naive_methods_beside_it_favour_what_begins_other_numbers():
    digits = sampler("digits")
    # Text that begins with 1 is 1, 10, 11 or 12.
    np.testing.assert_allclose(digits.prefix_probabilities(), [4 / 15, *[1 / 15] * 11])
    # One token as cut: the digit 1 stands for all four.
    first = digits.first_token_probabilities()
    assert first[0] == pytest.approx(4 * first[1])
    # Where each outcome is a token of its own the naive method is right, but for prefixes.
    np.testing.assert_allclose(sampler("single").first_token_probabilities(), 1 / 12)


@pytest.mark.parametrize("regular", [1.0, 0.6])
@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_any_belief_is_read_back_through_leaks_and_irregular_cuts(tokenisation, regular):
    belief = np.random.default_rng(1).dirichlet(np.ones(12))
    leaking = sampler(
        tokenisation,
        belief,
        leak=0.3,
        regular=regular,
        # Numbers that outcomes begin are no outcomes.
        elsewhere=("13", " 120", "nobody", " 1x"),
    )
    found = leaking.outcome_probabilities()
    np.testing.assert_allclose(np.exp(found.log_probabilities[0]), 0.7 * belief, rtol=1e-9)
    assert found.mass[0] == pytest.approx(0.7)
    # The prefix method takes 13 and 120 for outcomes.
    assert abs(leaking.prefix_probabilities() - belief).max() > 0.05


def test_next_token_probabilities_are_a_distribution_behind_everything_that_is_said():
    speaking = sampler("pairs", leak=0.1, regular=0.5)
    assert sum(speaking.paths.values()) == pytest.approx(1.0)
    for path in speaking.paths:
        for n in range(len(path)):
            assert speaking.next_token(path[:n]).sum() == pytest.approx(1.0)
    never = (len(speaking.texts.texts) - 1,) * 5
    assert speaking.next_token(never)[STOP] == 1.0


def test_paths_left_out_are_bounded():
    belief = np.random.default_rng(2).dirichlet(np.ones(12))
    speaking = sampler("pairs", belief, regular=0.7)
    found = speaking.outcome_probabilities(extra_tokens=0)
    exact = np.exp(found.log_probabilities[0])
    assert (exact <= belief + 1e-12).all()
    assert (belief <= exact + np.exp(found.left_out[0]) + 1e-12).all()
    assert (exact < belief - 1e-3).any()


def test_counts_come_as_often_as_they_should():
    belief = np.random.default_rng(3).dirichlet(np.ones(12))
    counts, other = sampler(probabilities=belief, leak=0.2).counts(np.random.default_rng(4), 40000)
    assert counts.sum() + other == 40000
    expected = 0.8 * belief
    error = np.sqrt(expected * (1 - expected) / 40000)
    # 13 shares: |z| < 4 in all but 1 of 1,000 seeds
    assert (np.abs(counts / 40000 - expected) < 4 * error + 1e-12).all()
    assert abs(other / 40000 - 0.2) < 4 * np.sqrt(0.16 / 40000)


def test_replies_say_outcomes_and_tell_their_most_probable_tokens():
    speaking = sampler("digits", leak=0.0)
    rng = np.random.default_rng(5)
    replies = [speaking.reply(rng, top=20) for _ in range(200)]
    for reply in replies:
        assert re.fullmatch(r" ?(1[0-2]?|[2-9])[. ]?", reply.text)
        assert reply.finish_reason == "stop"
        told = reply.log_probabilities
        assert "".join(entry.token for entry in told) == reply.text
        assert told[0].alternatives == replies[0].log_probabilities[0].alternatives
        for entry in told:
            assert sum(np.exp(value) for _, value in entry.alternatives) <= 1 + 1e-9
    assert len(sampler("single").reply(rng, top=3).log_probabilities[0].alternatives) == 3
    assert speaking.reply(rng, max_tokens=1).finish_reason in ("length", "stop")


@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_many_replies_with_all_their_alternatives_tell_everything(tokenisation):
    belief = np.random.default_rng(6).dirichlet(np.ones(12))
    speaking = sampler(
        tokenisation, belief, leak=0.1, elsewhere=("13", "nobody"), closing=(("", 0.5), (" ", 0.5))
    )
    rng = np.random.default_rng(7)
    replies = [speaking.reply(rng, top=50).log_probabilities for _ in range(1500)]
    found = RevealedBeliefs.top_k([replies], NUMBERS, extends=extends)
    # What is still open are texts that no reply happened to say.
    assert (found.low <= 0.9 * belief + 1e-9).all()
    assert (found.high >= 0.9 * belief - 1e-9).all()
    assert (found.high - found.low).max() < 0.02
    assert found.retained[0] == pytest.approx(0.9, abs=0.02)
    few = RevealedBeliefs.top_k([replies[:3]], NUMBERS, extends=extends)
    assert (few.low <= 0.9 * belief + 1e-9).all()
    assert (few.high >= 0.9 * belief - 1e-9).all()
    assert (few.high - few.low).max() > 0.02


def test_replies_that_end_leave_open_what_they_might_have_gone_on_with_unless_nothing_is_longer():
    belief = np.random.default_rng(8).dirichlet(np.ones(12))
    speaking = sampler("pairs", belief, closing=(("", 1.0),))
    reply = speaking.reply(np.random.default_rng(9), top=50).log_probabilities
    strict = RevealedBeliefs.top_k([[reply]], NUMBERS, extends=extends)
    assert strict.low.sum() == 0
    assert (strict.high >= belief - 1e-9).all()
    assumed = RevealedBeliefs.top_k([[reply]], NUMBERS, extends=extends, nothing_longer=True)
    # Without a space a pair is the whole number; behind " 1" there may be more.
    begun = np.array([name[0] == "1" for name in NUMBERS])
    np.testing.assert_allclose(assumed.low[~begun], belief[~begun])
    assert (assumed.low[begun] < belief[begun]).all()
    assert (assumed.high[begun] >= belief[begun] - 1e-9).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"probabilities": np.full(12, 0.1)}, "together 1; got 12 of 12 with a sum of 1.2"),
        ({"probabilities": np.full(3, 1 / 3)}, "got 3 of 12"),
        ({"tokenisation": "words"}, "tokenisation is one of single, digits, pairs"),
        ({"leak": 1.2}, "leak is a share from 0 to 1; got 1.2"),
        ({"leak": 0.1, "elsewhere": (" 7",)}, "is none itself"),
        ({"leak": 0.1, "elsewhere": ()}, "is none itself"),
        ({"closing": (("", 0.5),)}, "Shares of the ways to close a text sum to 1"),
    ],
)
def test_a_mind_that_cannot_be_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        TokenSampler(**{"outcomes": NUMBERS, "probabilities": UNIFORM} | changes)
