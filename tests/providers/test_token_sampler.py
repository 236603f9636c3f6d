import re

import numpy as np
import pytest

from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS, TokenSampler

NUMBERS = tuple(str(n) for n in range(1, 13))
UNIFORM = np.full(12, 1 / 12)


def sampler(tokenisation="digits", probabilities=UNIFORM, **options):
    return TokenSampler(NUMBERS, probabilities, tokenisation, **options)


@pytest.mark.parametrize("space", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_a_uniform_sampler_comes_out_uniform_whatever_its_tokens(tokenisation, space):
    found = sampler(tokenisation, space=space).continuation_probabilities()
    np.testing.assert_allclose(found.probabilities[0], 1 / 12, rtol=1e-12)
    np.testing.assert_allclose(found.mass, 1.0, rtol=1e-12)


@pytest.mark.parametrize("regular", [1.0, 0.6])
@pytest.mark.parametrize("tokenisation", TOKENISATIONS)
def test_any_belief_is_read_back_through_leaks_and_irregular_cuts(tokenisation, regular):
    belief = np.random.default_rng(1).dirichlet(np.ones(12))
    leaking = sampler(
        tokenisation,
        belief,
        leak=0.3,
        regular=regular,
        # Numbers that continuations begin are no continuations.
        elsewhere=("13", " 120", "nobody", " 1x"),
    )
    found = leaking.continuation_probabilities()
    np.testing.assert_allclose(np.exp(found.log_probabilities[0]), 0.7 * belief, rtol=1e-9)
    assert found.mass[0] == pytest.approx(0.7)
    # The naive reading takes 13 and 120 for continuations, unless each of these is a token.
    of_one_token = tokenisation == "single" and regular == 1
    assert of_one_token or abs(found.naive[0] - belief).max() > 0.05


def test_counts_come_as_often_as_they_should():
    belief = np.random.default_rng(3).dirichlet(np.ones(12))
    counts, other = sampler(probabilities=belief, leak=0.2).counts(np.random.default_rng(4), 40000)
    assert counts.sum() + other == 40000
    expected = 0.8 * belief
    error = np.sqrt(expected * (1 - expected) / 40000)
    # 13 shares: |z| < 4 in all but 1 of 1,000 seeds
    assert (np.abs(counts / 40000 - expected) < 4 * error + 1e-12).all()
    assert abs(other / 40000 - 0.2) < 4 * np.sqrt(0.16 / 40000)


def test_replies_say_continuations_and_tell_their_most_probable_tokens():
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
