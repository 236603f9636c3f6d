"""What `score` says of its tests, from a table of the standing audit that is made up here."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from knownminds import score, simulate
from knownminds.environments import make
from knownminds.inference import analysis, measure
from knownminds.validation.data import audited

sys.path.append(str(Path(__file__).parents[2] / "docs"))
import conclusions

BIAS = "optimism_bias"
ROWS = [  # players, effect, units, rejected, coverage
    ("without", 0.0, 10, 0.04, 0.95),
    ("without", 0.0, 40, 0.06, 0.93),
    ("with", 0.1, 10, 0.20, 0.95),
    ("with", 0.1, 40, 0.60, 0.95),
    ("with", 0.4, 10, 0.90, 0.95),
    ("with", 0.4, 40, 1.00, 0.95),
]


@pytest.fixture(autouse=True)
def table(monkeypatch):
    columns = ["players", "effect", "units", "rejected", "coverage"]
    frame = pd.DataFrame(ROWS, columns=columns).assign(conclusion=BIAS, unit="subject", kind="t")
    monkeypatch.setattr(audited, "audits", lambda: frame)


@pytest.mark.parametrize(
    ("n", "settings", "said"),
    [
        (10, {}, "errs in 4%; covers 95%; finds 0.1 in 20%"),
        (20, {}, "errs in 5%; covers 94%; finds 0.1 in 40%"),  # halfway, by the logarithm
        (9, {}, audited.NOT_AUDITED),
        (41, {}, audited.NOT_AUDITED),
        (20, {"n_visits": 6}, audited.NOT_AUDITED),
        (20, {"history": "chat"}, "errs in 5%; covers 94%; finds 0.1 in 40%"),
    ],
)
def test_a_test_is_described_at_sizes_that_were_run(n, settings, said):
    place = make("instrumental_learning", **settings)
    assert audited.known_of(BIAS, place, "subject", n) == said
    assert audited.known_of(BIAS, place, "session", n) == audited.NOT_AUDITED


@pytest.mark.parametrize(
    ("n", "power", "smallest"),
    [
        (10, 0.9, 0.4),
        (10, 0.55, 0.25),  # halfway between .20 and .90
        (20, 0.4, 0.1),
        (10, 0.95, np.nan),  # no audited effect is found so often
        (41, 0.5, np.nan),
    ],
)
def test_the_smallest_effect_that_is_found_lies_between_audited_ones(n, power, smallest):
    found = audited.smallest_found(BIAS, "t", "subject", n, power)
    assert found == pytest.approx(smallest, nan_ok=True)
    assert np.isnan(audited.smallest_found(BIAS, "another", "subject", n, power))


def test_score_says_it_beside_the_p_value():
    trials = simulate("instrumental_learning", "rescorla_wagner_dual", subjects=20, seed=1)
    (row,) = score(trials, measures=[BIAS])["Measures"].to_dict("records")
    assert row["audit"] == "errs in 5%; covers 94%; finds 0.1 in 40%"


def test_a_row_fails_beyond_three_errors_unless_its_page_declares_it(monkeypatch):
    """400 data sets: .12 - 3 x .016 is above .07, .10 - 3 x .015 is not."""
    rows = pd.DataFrame(
        [("a", "without", 0.12, 0.016, 0.95, 0.01), ("b", "without", 0.10, 0.015, 0.95, 0.01),
         ("c", "with", 0.80, 0.02, 0.85, 0.015), ("d", "with", 0.80, 0.02, 0.90, 0.015),
         ("e", "without", 0.12, 0.016, 0.95, 0.01)],
        columns=["conclusion", "players", "rejected", "rejected_error", "coverage",
                 "coverage_error"],
    ).assign(unit="session", units=5)  # fmt: skip
    monkeypatch.setitem(conclusions.DECLARED, "e", "It errs often.")
    found = conclusions.failing(rows)
    assert list(found["conclusion"][found["kind"].isna()]) == ["a", "c"]
    # Sixteen rows that cover .904 do not fail one by one, but together: their error is .004.
    narrow = pd.DataFrame([rows.iloc[3]] * 16).assign(conclusion="f", coverage=0.904)
    found = conclusions.failing(narrow)
    assert list(found["kind"]) == ["all"]
    # Seven tests of the same data, which err in .085, say no more than one; of seven sizes they do.
    alike = pd.DataFrame([rows.iloc[1]] * 7).assign(
        conclusion="g", rejected=0.085, rejected_error=0.014
    )
    assert len(conclusions.failing(alike)) == 0
    assert list(conclusions.failing(alike.assign(units=range(7)))["kind"]) == ["all"]


def planted(name, unit, units, replicates=300):
    rows = conclusions.computed((name, unit, units), replicates, 3)
    assert "none" not in set(rows["players"]), rows["reason"]
    return conclusions.failing(rows)


def rows_as_participants(monkeypatch):
    """Rows are taken as independent: each of ten rows of a participant counts as one."""
    whole = analysis.t_tests

    def by_row(values, *more, **options):
        return whole(np.repeat(values, 10, axis=1), *more, **options)

    monkeypatch.setattr(analysis, "t_tests", by_row)
    return "first_outcome_bias", "subject", 10


def known_agents_among_the_participants(monkeypatch):
    """Six known agents with the effect are among the participants that a claim is about."""
    whole = conclusions.effect_of

    def with_agents(claim, scores, who, *more):
        one = scores[scores["participant"] == who[0]]
        away = np.where(one["score"] == "prior_weighting", 0.4, 0.0)
        names = [f"agent {k}" for k in range(6)]
        agents = [one.assign(participant=name, value=one["value"] + away) for name in names]
        return whole(claim, pd.concat([scores, *agents]), [*who, *names], *more)

    monkeypatch.setattr(conclusions, "effect_of", with_agents)
    return "claims", "participant", 3, 60


def a_clipped_statistic(monkeypatch):
    """Estimates below the null value count as the null value."""
    whole = analysis.t_tests

    def clipped(values, *more, **options):
        return whole(np.maximum(values, 0.0), *more, **options)

    monkeypatch.setattr(analysis, "t_tests", clipped)
    return "stopping rule: obrien_fleming", "subject", 30


def a_narrow_interval(monkeypatch):
    """Intervals are 15% too narrow."""
    whole = measure.interval_tests

    def narrow(*more, **options):
        tests = whole(*more, **options)
        for end in ("low", "high"):
            object.__setattr__(tests, end, tests.mean + 0.85 * (getattr(tests, end) - tests.mean))
        return tests

    for module in (measure, analysis):
        monkeypatch.setattr(module, "interval_tests", narrow)
    return "net_score", "session", 20, 400


def a_look_at_the_future(monkeypatch):
    """A rule takes at each look the smallest p-value of all units that are still to come."""
    whole = conclusions.stopped

    def later(analysis, tests_of, truth):
        looks = analysis.stop.looks

        def smallest(n):
            later_on = [tests_of(k) for k in range(n, looks[-1] + 1)]
            which = np.argmin([one.p_value for one in later_on], axis=0)
            every = {
                name: np.take_along_axis(
                    np.stack([getattr(one, name) for one in later_on]),
                    which.reshape(1, *[1] * (column.ndim - 1), -1), axis=0,
                )[0]
                for name, column in vars(later_on[0]).items()
            }  # fmt: skip
            return type(later_on[0])(**every)

        return whole(analysis, smallest, truth)

    monkeypatch.setattr(conclusions, "stopped", later)
    return "stopping rule: pocock", "subject", 30


FAULTS = [
    rows_as_participants,
    known_agents_among_the_participants,
    a_clipped_statistic,
    a_narrow_interval,
    a_look_at_the_future,
]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__)
def test_the_audit_finds_a_planted_fault_and_nothing_without_it(fault):
    with pytest.MonkeyPatch.context() as patched:
        task = fault(patched)
        assert len(planted(*task)), fault.__doc__
    assert not len(planted(*task))
