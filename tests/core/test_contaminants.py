import numpy as np
import pytest

from knownminds.agents import Contaminants
from knownminds.agents.contaminants import AROUND, MALFORMED, REFUSALS, THOUGHTS
from knownminds.environments import parse_label, parse_number

BARE = "K"
MARKED = "I go by what they paid.\nAnswer: K"


def outcomes_of(text, answer="K"):
    """Read a text as each parser would; `answer` is what it may hold."""
    if answer.isdigit():
        return parse_number(text, 0, 100).outcome
    return parse_label(text, ["K", "M"], marked="\n" in answer).outcome


def said(contaminants, text, n, seed=0):
    pairs = np.random.default_rng(seed).random((n, 2)).tolist()
    return [contaminants.speak(text, fault, chatter) for fault, chatter in pairs]


@pytest.mark.parametrize("answer", [BARE, MARKED, "40"])
def test_every_wording_is_read_as_what_it_is_meant_to_be(answer):
    for text in REFUSALS:
        assert outcomes_of(text, answer) == "refused"
    for text in MALFORMED:
        assert outcomes_of(text.replace("{}", answer), answer) == "malformed"
    if answer == MARKED:
        for text in THOUGHTS:
            assert outcomes_of(f"{text}\n{answer}", answer) == "ok"
    else:
        for text in AROUND:
            assert outcomes_of(text.replace("{}", answer), answer) == "repaired"


@pytest.mark.parametrize("answer", [BARE, MARKED])
def test_each_dial_strikes_at_its_rate(answer):
    rates = {"refusal": 0.05, "malformed": 0.1, "truncation": 0.15}
    verbosity, n = 0.4, 8000
    seen = {"refusal": 0, "malformed": 0, "truncation": 0, "wordy": 0, "plain": 0}
    for text, reason in said(Contaminants(**rates, verbosity=verbosity), answer, n):
        outcome = outcomes_of(text, answer)
        if reason == "length":
            seen["truncation"] += 1
        elif outcome in ("refused", "malformed"):
            seen["refusal" if outcome == "refused" else "malformed"] += 1
        else:
            assert outcome in ("ok", "repaired")
            seen["plain" if text == answer else "wordy"] += 1
    left = 1 - sum(rates.values())
    expected = {**rates, "wordy": left * verbosity, "plain": left * (1 - verbosity)}
    for name, share in expected.items():  # four standard errors of a share of n
        assert abs(seen[name] / n - share) < 4 * np.sqrt(share * (1 - share) / n), name
