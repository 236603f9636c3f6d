import dataclasses

import numpy as np
import pytest
from power.normal import ERRORS, Known, Shift, rejects, seen, within
from scipy import stats

from knownminds.environments import session_stream
from knownminds.inference import MEASURES, Measure
from knownminds.inference.measure import Values, t_tests
from knownminds.validation.power import operating_characteristics
from knownminds.validation.power.audit import audit

SD = 0.5  # of kappa's prior: what differs between violators


class Pushed(Shift):
    """The same, a little too high: biased on purpose."""

    def values(self, known):
        value = super().values(known).value + 0.3
        return Values(value, ("",) * len(value))


class Clipped(Shift):
    """A measure whose own test hardly dares to reject."""

    def values(self, known):
        value = super().values(known).value.copy()
        value[0] += 30.0  # one wild subject in the first data set of each batch, ...
        value[20::20] += 30.0  # ... and of every other data set
        return Values(value, ("",) * len(value))


class Pooled(Measure):
    """A measure whose test takes all sessions as independent, whoever played them."""

    truth = Shift.truth

    def estimate(self, known):
        tests = t_tests(known.value.reshape(1, -1), 0.0)
        return self.estimate_of(tests, Values(np.zeros(1), ("",)), "session")


@pytest.fixture
def normal(monkeypatch):
    monkeypatch.setattr(operating_characteristics, "live", seen)
    pooled = Pooled(**{**vars(Shift()), "name": "pooled"})
    for measure in (pooled, Shift(), Pushed(name="pushed"), Clipped(name="clipped")):
        monkeypatch.setitem(MEASURES, measure.name, measure)


# Verdicts


CHARACTERISTICS = "Operating characteristics"


def test_an_exact_test_has_the_size_and_the_power_of_the_t_test(normal):
    found = audit("shift", effects=[0.7], trials=24, replicates=1000, workers=1)
    null, around, violators = (row for _, row in found[CHARACTERISTICS].iterrows())
    assert within(null["rejected"], 0.05, 1000)
    assert within(violators["rejected"], rejects(0.7 / np.hypot(SD, 1.0), 20), 1000)
    assert within(around["rejected"], 0.05, 1000)
    for row in (null, around, violators):
        assert within(row["95% covers"], 0.95, 1000)
        assert abs(row["bias"].value) < ERRORS * row["bias"].error
    holds = abs(null["rejected"].value - 0.05) < 1.96 * np.sqrt(0.05 * 0.95 / 1000)
    assert (found.verdicts["24 trials"].word == "size holds") == holds
    assert not within(null["rejected"], 0.09, 1000)  # a size of .09 would show


def test_a_measure_that_is_biased_on_purpose_raises_false_alarms(normal):
    found = audit("pushed", effects=[0.5], trials=24, replicates=200, workers=1)
    assert found.verdicts["24 trials"].word == "too many false alarms"
    alike, around = found["Size of the test"]["rejected"]
    assert within(alike, rejects(0.3, 20), 200)
    assert within(around, rejects(0.3 / np.hypot(SD, 1.0), 20), 200)
    for bias in found[CHARACTERISTICS]["bias"]:
        assert abs(bias.value - 0.3) < ERRORS * bias.error


def test_a_measure_that_never_dares_raises_too_few(normal):
    # A single wild value in a sample keeps the t statistic near 1, whatever the rest.
    found = audit("clipped", effects=[], trials=24, replicates=200, workers=1)
    assert found.verdicts["24 trials"].word == "too few false alarms"
    for size in found["Size of the test"]["rejected"]:
        assert size.value == 0.0
        assert size.error > 0.0


def test_a_test_that_takes_rows_as_independent_is_found_where_subjects_differ(normal):
    found = audit("pooled", effects=[], sessions=8, trials=24, replicates=400, workers=1)
    words = [verdict.word for verdict in found.verdicts.values()]
    assert words[1] == "too many false alarms"
    alike, around = found["Size of the test"]["rejected"]
    assert within(alike, 0.05, 400)
    # The mean has the variance (sd^2 + 1/8) / 20, and the test takes it for (sd^2 + 1) / 160.
    ratio = np.sqrt((SD**2 + 1) / 160 / ((SD**2 + 1 / 8) / 20))
    assert within(around, 2 * stats.norm.sf(1.96 * ratio), 400)
    assert not within(around, 0.05, 400)


def test_planted_failures_are_counted_and_stay_in_the_denominator(normal, monkeypatch):
    real = operating_characteristics.live
    planted = np.sort(session_stream(3).choice(200, 10, replace=False))  # 5%

    def failing(study, batch, subjects, first_session=0):
        # One data set at a time fails apart: the batch before it is computed again one by one.
        if np.isin(np.arange(batch.first, batch.last), planted).any():
            raise FloatingPointError("planted")
        known = real(study, dataclasses.replace(batch, first=0), subjects)
        return Known(np.arange(known.value.size)[None] % 20 + 1.0)  # every other test rejects

    monkeypatch.setattr(operating_characteristics, "live", failing)
    found = audit("shift", effects=[], trials=24, replicates=200, workers=1)
    row = found[CHARACTERISTICS].iloc[0]
    assert (row["data sets"], row["failed"], found.failed) == (200, 10, 20)  # of both kinds
    assert found["Messages"]["data sets"].to_dict() == {"planted": 20}
    assert row["rejected"].value == 190 / 200
    assert row["bias"].value == pytest.approx(10.5)
