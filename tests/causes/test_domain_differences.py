import numpy as np
import pytest
from scipy.stats import friedmanchisquare, kruskal, mannwhitneyu, wilcoxon
from statsmodels.stats.multitest import multipletests

from knownminds.agents import NoisyOr, simulate
from knownminds.environments import Collider
from knownminds.inference.causes.causal_answers import causal_answers
from knownminds.inference.causes.domain_differences import (
    AGENTS,
    DOMAINS,
    domain_differences,
    domain_pairs,
)

MINDS = np.array([[0.3, 0.1, 0.8, 0.6, 0.1], [0.6, 0.3, 0.6, 0.6, 0.1], [0.3, 0.1, 0.8, 0.6, 0.1]])
TRIALS = simulate(NoisyOr, MINDS, Collider(), 0)
ANSWERS = causal_answers(TRIALS)


def shifted(answers, by, domain="weather", agent="0"):
    rows = (answers["domain"] == domain) & (answers["subject"] == agent)
    return answers.assign(answer=answers["answer"] + by * rows)


def groups(part, column):
    return {name: own["answer"].to_numpy() for name, own in part.groupby(column)}


def test_each_test_is_scipys_and_families_are_adjusted_as_by_statsmodels():
    found = domain_differences(TRIALS)
    for family, of, across in ((DOMAINS, "subject", "domain"), (AGENTS, "domain", "subject")):
        own = found[found["family"] == family].set_index("of")
        for name, part in ANSWERS.groupby(of):
            expected = kruskal(*groups(part, across).values())
            assert own.loc[name, "statistic"] == pytest.approx(expected.statistic)
            assert own.loc[name, "p_value"] == pytest.approx(expected.pvalue)
            assert (own.loc[name, "groups"], own.loc[name, "freedom"]) == (3, 2)
        adjusted = multipletests(own["p_value"], method="fdr_bh")[1]
        assert np.allclose(own["p_adjusted"], adjusted)
    pairs = domain_pairs(TRIALS)
    pairs = pairs[(pairs["family"] == AGENTS) & (pairs["of"] == "economy")]
    sample = groups(ANSWERS[ANSWERS["domain"] == "economy"], "subject")
    assert len(pairs) == 3
    for row in pairs.to_dict("records"):
        first, second = sample[row["first"]], sample[row["second"]]
        expected = mannwhitneyu(first, second)
        assert row["p_value"] == pytest.approx(expected.pvalue)
        higher = (first[:, None] > second).mean() + (first[:, None] == second).mean() / 2
        assert row["r"] == pytest.approx(2 * higher - 1)
    assert np.allclose(pairs["p_adjusted"], multipletests(pairs["p_value"], method="fdr_bh")[1])


def test_the_matched_tests_are_scipys_on_the_same_questions():
    found = domain_differences(TRIALS, matched=True)
    items = ["sense", "direction", "task"]
    one = ANSWERS[ANSWERS["subject"] == "0"].sort_values(items)
    sample = {d: own["answer"].to_numpy() for d, own in one.groupby("domain")}
    row = found[(found["family"] == DOMAINS) & (found["of"] == "0")].iloc[0]
    assert row["p_value"] == pytest.approx(friedmanchisquare(*sample.values()).pvalue)
    two = ANSWERS[ANSWERS["domain"].isin(["economy", "weather"])]
    found = domain_differences(two, matched=True)
    row = found[(found["family"] == DOMAINS) & (found["of"] == "0")].iloc[0]
    expected = wilcoxon(
        sample["economy"], sample["weather"], zero_method="pratt", method="asymptotic"
    )
    assert row["p_value"] == pytest.approx(expected.pvalue)


def test_the_published_test_sleeps_where_the_matched_one_keeps_its_level():
    theta = NoisyOr.parameters.draw(np.random.default_rng(1), 100)
    answers = causal_answers(simulate(NoisyOr, theta, Collider(), 3))
    rates, shifts = {}, {}
    for matched in (False, True):
        found = domain_differences(answers, matched=matched)
        rates[matched] = (found.loc[found["family"] == DOMAINS, "p_value"] < 0.05).mean()
        moved = answers.assign(answer=answers["answer"] + 0.04 * (answers["domain"] == "weather"))
        found = domain_differences(moved, matched=matched)
        shifts[matched] = (found.loc[found["family"] == DOMAINS, "p_value"] < 0.05).mean()
    assert rates[False] < 0.02  # of 5% promised
    assert rates[True] < 0.115  # three binomial standard deviations above 5%
    assert shifts[True] > shifts[False] + 0.2


def test_a_shifted_domain_is_found_within_its_agent_and_told_with_its_sign():
    found = domain_differences(shifted(ANSWERS, 0.25), matched=True)
    own = found[found["family"] == DOMAINS].set_index("of")
    assert own.loc["0", "p_adjusted"] < 1e-4
    assert own.loc[["1", "2"], "p_adjusted"].min() > 0.05
    pairs = domain_pairs(shifted(ANSWERS, 0.25))
    own = pairs[(pairs["family"] == DOMAINS) & (pairs["of"] == "0")]
    assert own[own["second"] == "weather"]["r"].max() < 0.0
