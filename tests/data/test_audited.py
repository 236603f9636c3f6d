"""What `score` says of its tests, from a table of the standing audit that is made up here."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from knownminds import score, simulate
from knownminds.environments import make
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
         ("c", "with", 0.80, 0.02, 0.85, 0.015), ("d", "with", 0.80, 0.02, 0.88, 0.015),
         ("e", "without", 0.12, 0.016, 0.95, 0.01)],
        columns=["conclusion", "players", "rejected", "rejected_error", "coverage",
                 "coverage_error"],
    )  # fmt: skip
    monkeypatch.setitem(conclusions.DECLARED, "e", "It errs often.")
    assert list(conclusions.failing(rows)["conclusion"]) == ["a", "c"]
