"""What the tests of coherence do to known deciders."""

import json
import shlex

import numpy as np
import pytest

from knownminds.validation.diagnosis.coherence_audit import DIALS, MINDS, coherence_audit, minds
from knownminds.validation.engine.study import Study


@pytest.fixture(scope="module")
def audited():
    return coherence_audit(
        {"random_utility": (0.0,), "outcome_peeker": (0.5,)},
        replicates=12, contexts=80, repeats=3, permutations=99, bootstraps=60,
    )  # fmt: skip


def test_the_peeker_is_found_out_and_the_rational_decider_is_not(audited) -> None:
    for test in ("conditional independence", "calibrated", "predictive gain"):
        assert audited.rejected("outcome_peeker", 0.5, test).value > 0.7
        # Of 12 true nulls more than 3 are rejected at .05 in 2 of 1,000 seeds.
        assert audited.rejected("random_utility", 0.0, test).value <= 3 / 12
    assert audited.rejected("outcome_peeker", 0.5, "monotone choice").value <= 3 / 12


def test_the_paper_calls_no_ratio_and_no_distance_a_violation(audited) -> None:
    for test in ("iterated expectation", "elicitation consistency"):
        assert np.isnan(audited.published("random_utility", 0.0, test).value)
    assert np.isnan(audited.percentile("random_utility", 0.0, "predictive gain").value)


def test_rational_deciders_are_accused_by_percentiles_and_not_by_the_published_reading(
    audited,
) -> None:
    told = audited.published("random_utility", 0.0, "conditional independence")
    # Of 12 intervals that lie above zero in 2.5% each, more than 2 do so in 3 of 1,000 seeds.
    assert told.value <= 2 / 12
    apart = audited.percentile("random_utility", 0.0, "conditional independence")
    assert apart.value >= told.value
    assert f"{'conditional independence':<26}{apart!s:>14}" in str(audited)


def test_the_same_minds_are_turned() -> None:
    rational = minds("random_utility", 0.0, 3, 7, 1)
    peeker = minds("outcome_peeker", 0.2, 3, 7, 1)
    assert np.array_equal(peeker[:, :-1], rational)
    assert (peeker[:, -1] == 0.2).all()
    assert np.array_equal(minds("random_utility", 0.0, 0, 7, 1)[3:], rational)
    noisy = minds("noisy_reporter", 0.7, 0, 2, 1)
    assert (noisy[:, -1] == 0.7).all()
    assert set(MINDS) >= {"u_yes_1", "s_report"}


def test_the_table_prints_and_goes_to_json(audited) -> None:
    assert "share rejected at 0.05 / published finding" in str(audited)
    rows = json.loads(audited.to_json())["rows"]
    assert len(rows) == 12
    assert {row["replicates"] for row in rows} == {12}


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="got 'discounter'"):
        coherence_audit({"discounter": (1.0,)})
    with pytest.raises(ValueError, match="got 0"):
        coherence_audit(replicates=0)
    assert DIALS["noisy_reporter"][0] == "s_report"


SMALL = [
    "audit", "coherence", "--replicates", "3", "--set", "tests=monotone choice",
    "--set", "network=fever", "--set", "contexts=20", "--set", "repeats=2",
    "--set", "outcome_peeker=[0.1,0.4]", "--workers", "1", "--json",
]  # fmt: skip


def test_the_command_keeps_a_study_that_goes_on_and_repeats_itself(knownminds, tmp_path) -> None:
    folder = tmp_path / "a"
    told = json.loads(knownminds(*SMALL, "--out", folder)[1])
    assert [row["dial"] for row in told["rows"]] == [0.1, 0.4]
    same = coherence_audit(
        {"outcome_peeker": (0.1, 0.4)}, tests=["monotone choice"], replicates=3, network="fever",
        contexts=20, repeats=2,
    )  # fmt: skip
    assert json.loads(same.to_json()) == told
    first = (folder / "report.html").read_text()
    assert knownminds("report", folder)[0] == 0
    assert (folder / "report.html").read_text() == first
    assert "outcome_peeker" in first
    repeated = shlex.split(Study.read(folder)[0].command_line())[1:]
    assert json.loads(knownminds(*repeated, "--workers", 1, "--json")[1]) == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--effect", "0.2"], "has a design of its own; got --effect"),
        (["--sessions", "3"], "has a design of its own; got --sessions"),
        (["--set", "context=20"], "context"),
        (["--set", "repeats=two"], "repeats is a whole number; got 'two'"),
        (["--set", "outcome_peeker=much"], "outcome_peeker is numbers; got 'much'"),
    ],
)
def test_the_command_refuses_what_the_audit_does_not_have(knownminds, words, told) -> None:
    code, _, err = knownminds("audit", "coherence", *words)
    assert code == 2
    assert told in err
