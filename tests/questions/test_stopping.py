"""Stopping rules: boundaries, Bayes factors, measured errors, and runs that obey them."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import check
from claims.run import REPORT
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import cauchy, nct, ttest_1samp
from scipy.stats import t as student

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.inference import MEASURES, StopBy, StoppingRule
from knownminds.inference.questions.stopping import bayes_factor, spent_levels
from knownminds.llm_adapters import Synthetic
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.desk import Batching
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in
from knownminds.validation.costs.run_page import run_page
from knownminds.validation.power.sequential import stopped
from knownminds.validation.power.smallest_design import read_power_or_search

BIAS = MEASURES["optimism_bias"]


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [  # five looks, alpha .05 on two sides: Lan and DeMets' boundaries as published
        ("obrien_fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_levels_are_those_of_the_published_boundaries(spending, bounds):
    levels = spent_levels((20, 40, 60, 80, 100), 0.05, spending)
    np.testing.assert_allclose(-ndtri(np.array(levels) / 2), bounds, atol=2e-4)


def test_one_look_spends_all():
    assert spent_levels((30,), 0.05, "pocock") == pytest.approx((0.05,))
    assert spent_levels((30,), 0.01, "obrien_fleming") == pytest.approx((0.01,))


@pytest.mark.parametrize(("t", "n"), [(3.5, 20), (0.0, 50), (-2.1, 30), (6.0, 100)])
def test_bayes_factor_is_the_mean_of_noncentral_t_over_the_prior(t, n):
    def weighed(size):
        return nct.pdf(t, n - 1, size * np.sqrt(n)) * cauchy.pdf(size, scale=np.sqrt(0.5))

    own = sum(quad(weighed, a, b, limit=200)[0] for a, b in ((-6, 0), (0, 6)))
    assert bayes_factor(t, n) == pytest.approx(own / student.pdf(t, n - 1), rel=1e-4)


def samples(n, most, effect, seed):
    return effect + 0.2 * np.random.default_rng(seed).standard_normal((n, most))


def test_what_stops_is_what_a_plain_loop_over_looks_stops():
    """Values well within the measure's bounds, where its test is nearly Student's."""
    rule = StoppingRule("alpha_spending", (10, 20, 30), spending="pocock")
    drawn = samples(60, 30, 0.1, 1)
    rows = stopped(rule, [np.zeros_like(drawn), drawn], "paired", BIAS, np.full(60, 0.1))
    for row, values in zip(rows.itertuples(), drawn, strict=True):
        for look, units in enumerate(rule.looks):
            p = ttest_1samp(values[:units], 0.0).pvalue
            if p <= rule.levels[look] or units == 30:
                break
        assert (row.look, row.units) == (look, units)
        assert row.found == int(p <= rule.levels[look])
        assert row.estimate == pytest.approx(values[:units].mean())
        assert row.at_the_end == (ttest_1samp(values, 0.0).pvalue < 0.05)


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_false_alarms_are_as_many_as_promised_and_without_spending_more(spending):
    n = 6000  # an error of .0028 at .05; four looks at 5% each would give about .13
    looks = (15, 30, 45, 60)
    drawn = samples(n, 60, 0.0, 2)
    pair = [np.zeros_like(drawn), drawn]
    rule = StoppingRule("alpha_spending", looks, spending=spending)
    rows = stopped(rule, pair, "paired", BIAS, np.zeros(n))
    # t tests at a normal test's levels: with 15 values and more the difference is below .004
    assert abs((rows["found"] == 1).mean() - 0.05) < 3 * 0.0028 + 0.004
    naive = np.zeros(n, dtype=bool)
    for units in looks:
        naive |= ttest_1samp(drawn[:, :units], 0.0, axis=1).pvalue < 0.05
    assert naive.mean() > 0.10


def test_bayes_factors_find_none_and_widths_stop_when_narrow():
    none = samples(400, 60, 0.0, 3)
    rule = StoppingRule("bayes_factor", (15, 30, 60), evidence=3.0)
    rows = stopped(rule, [np.zeros_like(none), none], "paired", BIAS, np.zeros(400))
    assert (rows["found"] == -1).mean() > 0.5  # BF01 of a null effect in 60 values is some 7
    rule = StoppingRule("interval_width", (10, 20, 40, 60), width=0.15)
    rows = stopped(rule, [np.zeros_like(none), none], "paired", BIAS, np.zeros(400))
    early = rows[rows["look"] < 3]
    assert ((early["high"] - early["low"]) <= 0.15).all()
    assert 0 < len(early) < 400


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"kind": "pocock", "looks": [2]}, "kind of stopping rule"),
        ({"looks": [2, 4]}, "says its kind"),
        ({"kind": "bayes_factor", "looks": [4, 2]}, "rising order"),
        ({"kind": "bayes_factor", "looks": 4}, "rising order"),
        ({"kind": "bayes_factor", "looks": [2, 4], "alpha": 0.05}, "goes by evidence, scale"),
        ({"kind": "bayes_factor", "looks": [2, 4], "evidence": 0.5}, "lies between 1"),
        ({"kind": "interval_width", "looks": [2, 4]}, "how narrow"),
        ({"kind": "alpha_spending", "looks": [2, 4], "spending": "even"}, "spending"),
        ({"kind": "alpha_spending", "looks": [2, 4], "alpha": "5%"}, "is a number"),
        ({"kind": "alpha_spending", "looks": [2, 4], "aplha": 0.05}, "alpha"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(told, rule):
    with pytest.raises(ValueError, match=rule):
        StoppingRule.of(told)


PLACE = InstrumentalLearning(n_visits=6)
MIND = RescorlaWagnerDual(alpha_positive=0.7, alpha_negative=0.1, beta=8.0, kappa=0.0)
RULE = StoppingRule("alpha_spending", (3, 6, 9), measure="optimism_bias", spending="pocock")


def run(folder, rule=RULE, **options):
    stop = StopBy(rule, BIAS.in_place(PLACE))
    adapter = Synthetic(MIND, PLACE, 6, 0)
    return asyncio.run(
        run_sessions_in(folder, adapter, PLACE, rule.most, 6, address=(0,), stop=stop, **options)
    )


def test_a_run_stops_where_its_rule_says_and_again_after_it_was_interrupted(tmp_path):
    whole = run(tmp_path / "whole")
    last = whole.looks[-1]
    assert last["stop"]
    assert last["units"] < 9  # so strong an optimist is found early
    assert whole.complete
    assert whole.n_sessions == last["units"]
    facts = SimpleNamespace(looks={look["units"]: look for look in whole.looks}, most=9)
    check(REPORT, whole.looked, facts)
    page = run_page(whole)
    assert set(whole.looked) < set(page.sentences)
    assert "--stop" in page.command
    # The look, by scipy, from the rates that are fitted to each session alone.
    values = BIAS.in_place(PLACE).values(whole.trials).value
    assert len(values) == last["units"]
    assert last["estimate"] == pytest.approx(values.mean())
    # Stopped by a cap in the second block, the run goes on to the same stop.
    part = run(tmp_path / "part", caps=Caps(calls=PLACE.n_trials * 2 + 5), concurrency=2)
    assert part.unfinished
    assert not part.looks
    again = run(tmp_path / "part")
    assert again.looks == whole.looks
    assert again.account.calls == whole.account.calls
    assert read_run(tmp_path / "part").looks == whole.looks
    assert json.loads(again.to_json())["looks"] == list(map(dict, whole.looks))

    # What was found is read, not reckoned anew.
    class Never(StopBy):
        def __call__(self, trials, look):
            raise AssertionError("looked twice")

    stop = Never(RULE, BIAS)
    adapter = Synthetic(MIND, PLACE, 6, 0)
    third = asyncio.run(
        run_sessions_in(tmp_path / "part", adapter, PLACE, 9, 6, address=(0,), stop=stop)
    )
    assert third.looks == whole.looks


def test_a_run_refuses_a_rule_that_does_not_end_with_it_or_could_not_stop_it(tmp_path):
    from knownminds.llm_adapters.runs.runner import check_looks

    stop = StopBy(RULE, BIAS)
    with pytest.raises(ValueError, match="after 9 sessions; got 10"):
        check_looks(stop, 10, None)
    with pytest.raises(ValueError, match="Leave --batch out"):
        check_looks(stop, 9, Batching(turns=True))


def test_the_command_studies_a_rule_and_a_folder_of_it_is_read_again(knownminds, tmp_path):
    file = tmp_path / "rule.toml"
    file.write_text('kind = "alpha_spending"\nlooks = [4, 8]\n')
    words = ["power", "instrumental_learning", "--effect", "optimism_bias=0.4", "--trials", 24]
    words += ["--replicates", 20, "--seed", 1, "--workers", 1]
    code, out, err = knownminds(*words, "--stop", file, "--out", tmp_path / "s", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["rule"]["looks"] == [4, 8]
    assert told["null"]["attempted"] == told["effect"]["attempted"] == 20
    for one in (told["null"], told["effect"]):
        units = 4 * one["stops"][0] + 8 * one["stops"][1]
        assert one["units"] == pytest.approx(units)
    code, _, err = knownminds("report", tmp_path / "s")
    assert code == 0, err
    assert json.loads(read_power_or_search(tmp_path / "s").to_json()) == told
    for more, rule in (
        (["--sessions", 4, "--stop", file], "are its looks"),
        (["--stop", tmp_path / "none.toml"], "No such file"),
        (["--stop", file, "--find", "sessions"], "got --find and --stop"),
    ):
        code, _, err = knownminds(*words, *more)
        assert code == 2
        assert rule in " ".join(err.split()), err
