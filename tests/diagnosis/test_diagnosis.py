import re

import numpy as np
import pandas as pd
import pytest
from played import observations

from knownminds.environments import Diagnosis, session_stream
from knownminds.environments.diagnosis.diagnosis import (
    BELIEF,
    DECISION,
    ELICITATIONS,
    SHARE,
    WITHIN,
)
from knownminds.environments.diagnosis.network_files import SHIPPED
from knownminds.environments.streams import session_uniforms

SMALL = {"network": "fever", "n_contexts": 10, "repeats": 2}


def shown(environment, observation):
    (message,) = environment.render((), observation, []).messages
    assert message.role == "user"
    return message.content


def many(environment, n, seed=0):
    """The design tables of n sessions."""
    return environment.tables(session_uniforms(seed, [(i,) for i in range(n)], environment.n_draws))


# ---------------------------------------------------------------- the design


def test_a_session_asks_everything_about_a_context_in_order_before_the_next():
    environment = Diagnosis(**SMALL)
    asked = pd.DataFrame(observations(environment))
    due = [(BELIEF, e, -1) for e in range(4)] + [(DECISION, 0, -1)]
    due += [(SHARE, 0, 0), (SHARE, 0, 1), (WITHIN, 0, 0), (WITHIN, 0, 1)]
    assert environment.n_trials == len(asked) == 10 * 2 * len(due)
    for _, own in asked.groupby(["repetition", "context"], sort=False):
        assert list(zip(own.question, own.elicitation, own.part, strict=True)) == due
        assert np.array_equal(np.diff(own.trial), np.ones(len(due) - 1))
    rounds = [own.context.unique().tolist() for _, own in asked.groupby("repetition")]
    assert sorted(rounds[0]) == sorted(rounds[1]) == list(range(10))
    assert rounds[0] != rounds[1]


def test_every_number_that_is_asked_for_is_that_of_the_network():
    environment = Diagnosis(network="crying", n_contexts=12, repeats=1)
    network = environment.belief_network
    for o in observations(environment):
        told = environment.contexts.evidence[o["evidence"]].copy()
        marginal = network.posterior(["colic"], told)[0, 1]
        exact = conditional = marginal
        if o["part"] >= 0:
            exact = network.posterior(["age"], told)[0, o["part"]]
            told[network.position("age")] = o["part"]
            conditional = network.posterior(["colic"], told)[0, 1]
        exact = conditional if o["question"] == WITHIN else exact
        found = [o[name] for name in ("posterior", "marginal", "conditional")]
        assert found == pytest.approx([exact, marginal, conditional], abs=1e-12)


@pytest.mark.parametrize("network", SHIPPED)
def test_posteriors_spread_evenly_and_states_have_them_as_frequencies(network):
    environment = Diagnosis(network, repeats=1, questions=["decision"])
    tables = many(environment, 60)
    p, state = tables["posterior"], tables["state"]
    bins = np.minimum((p * 20).astype(int), 19)
    counts = np.array([np.bincount(own, minlength=20) for own in bins])
    assert (counts == counts[0]).all()
    reached = counts[0][counts[0] > 0]
    assert len(reached) >= 19
    assert reached.max() - reached.min() <= 1
    distinct = [len(set(own)) for own in tables["evidence"].tolist()]
    assert min(distinct) >= 199  # a bin with few contexts may bring one twice
    for k in range(20):
        own = bins == k
        off, variance = (state - p)[own].sum(), (p * (1 - p))[own].sum()
        assert abs(off) <= 4 * np.sqrt(variance)  # four standard errors, twenty times four
    # The control: with the states of other sessions the bins do not show.
    mixed = session_stream(0).permutation(state.ravel()).reshape(state.shape)
    low = bins < 4
    assert mixed[low].mean() - p[low].mean() > 4 * np.sqrt(0.25 / low.sum())


def test_the_number_of_a_context_says_nothing_of_its_posterior_nor_does_the_idiosyncrasy():
    tables = many(Diagnosis("fever", repeats=1, questions=["decision"]), 100)
    p = tables["posterior"].ravel()
    for name in ("context", "idiosyncrasy"):
        r = np.corrcoef(tables[name].ravel(), p)[0, 1]
        assert abs(r) < 4 / np.sqrt(len(p))
    z = tables["idiosyncrasy"].ravel()
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / len(z))


def test_the_paper_s_design_is_the_default():
    environment = Diagnosis()
    assert (environment.n_contexts, environment.repeats, environment.bins) == (200, 5, 20)
    assert environment.elicitations == ELICITATIONS == ("plain", "squared", "absolute", "bayesian")
    # Four beliefs, a decision, and three parts, in one question, with what is believed within each.
    assert environment.n_trials == 200 * 5 * (4 + 1 + 6)
    assert environment.replies.n_prompts == 200 * 5 * (4 + 1 + 1 + 3)
    assert environment.given == "either"


# ---------------------------------------------------------------- one reply for a distribution


def shares(environment, seed=0):
    """The trials of the first distribution of a session."""
    first = next(o for o in observations(environment, seed) if o["question"] == SHARE)
    return environment.replies.together(environment.draw(session_stream(seed)), first)


@pytest.mark.parametrize("network", SHIPPED)
def test_a_distribution_is_one_question_whose_reply_answers_a_trial_for_each_state(network):
    environment = Diagnosis(network, n_contexts=2, repeats=1)
    asked = shares(environment)
    assert [o["part"] for o in asked] == list(range(environment.n_parts))
    assert sum(o["posterior"] for o in asked) == pytest.approx(1.0, abs=1e-9)
    (text,) = {shown(environment, o) for o in asked}
    states = environment._about.says[environment._about.auxiliary]
    lines = text.splitlines()
    assert [line[3:-1] for line in lines if re.match(r"[A-Z]\. ", line)] == [
        f"This {environment._about.person} {state}" for state in states
    ]
    assert [line for line in lines if line.endswith(": NUMBER")] == [
        f"{'ABCDEF'[k]}: NUMBER" for k in range(len(states))
    ]
    numbers = (0.5, *[0.5 / (len(states) - 1)] * (len(states) - 1))
    said = environment.say((), numbers, asked[0])
    assert [environment.parse((), said, o).response for o in asked] == pytest.approx(numbers)
