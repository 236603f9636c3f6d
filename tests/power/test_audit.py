import dataclasses
import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from knownminds.environments import make, session_stream
from knownminds.inference import MEASURES, Measure, OptimismBias, SubjectMeasure
from knownminds.inference.measure import Dial, Values
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.power import operating_characteristics
from knownminds.validation.power.audit import audit, read_audit

PLACE = "instrumental_learning"
SD = 0.5  # of kappa's prior: what differs between violators

# Shares and means of one seed are compared with what is expected up to 3.5 standard errors, which
# chance exceeds in 5 of 10,000 comparisons.
ERRORS = 3.5


class Shift(SubjectMeasure):
    """kappa, seen through normal noise of sd 1: the test is exactly the t test."""

    name, null = "shift", 0.0
    summary, source, environments = "kappa with noise", "none", (PLACE,)
    rational, violator = "random_responder", "rescorla_wagner_dual"
    dial = Dial({"kappa": 1.0})
    push = 0.0

    def truth(self, model, theta):
        return theta[:, 3] if model.name == self.violator else np.full(len(theta), self.null)

    def values(self, trials):
        return Values(trials.value + self.push, ("",) * len(trials.value))


class Pushed(Shift):
    """The same, a little too high: biased on purpose."""

    name, push = "pushed", 0.3


class Clipped(Shift):
    """A measure whose own test hardly dares to reject."""

    name = "clipped"

    def values(self, trials):
        value = trials.value.copy()
        value[0] += 30.0  # one wild subject in the first data set of each batch, ...
        value[20::20] += 30.0  # ... and of every other data set
        return Values(value, ("",) * len(value))


class OwnTest(Measure):
    """The optimism bias, as a measure that brings its own test."""

    name = "own_test"
    summary, source, environments = OptimismBias.summary, OptimismBias.source, (PLACE,)
    rational, violator, dial = OptimismBias.rational, OptimismBias.violator, OptimismBias.dial

    def truth(self, model, theta):
        return OptimismBias().truth(model, theta)

    def estimate(self, trials):
        return dataclasses.replace(OptimismBias().estimate(trials), measure=self.name)


@dataclass
class Known:
    """What stands in for the sessions of a batch: a value for each subject."""

    value: np.ndarray

    def trials(self, apart):
        return self


@pytest.fixture
def normal(monkeypatch):
    """Let nobody play: what is true of each mind, and normal noise."""

    def seen(study, batch, subjects, first_session=0):
        cell = study.cells[batch.cell]
        noise = session_stream(study.seed, cell.data_key, batch.first, 0).standard_normal
        kappa = subjects.theta[:, 3] if cell.model == Shift.violator else 0.0
        return Known(kappa + noise(len(subjects.theta)))

    monkeypatch.setattr(operating_characteristics, "live", seen)
    for measure in (Shift(), Pushed(), Clipped()):
        monkeypatch.setitem(MEASURES, measure.name, measure)


def rejects(d, n):
    """Power of the two-sided 5% t test of n normal numbers with mean d and sd 1."""
    critical, noncentrality = stats.t.ppf(0.975, n - 1), d * np.sqrt(n)
    beyond = stats.nct.sf(critical, n - 1, noncentrality)
    return beyond + stats.nct.cdf(-critical, n - 1, noncentrality)


def within(score, expected, n):
    return abs(score.value - expected) < ERRORS * np.sqrt(expected * (1 - expected) / n)


def rows_of(folder, cell):
    study, identity = Study.read(folder)
    return Rows(study, folder, identity["versions"]).frame(cell=cell)


@pytest.fixture(scope="module")
def learners(tmp_path_factory):
    """An audit of the optimism bias, and where its rows are."""
    folder = tmp_path_factory.mktemp("audit") / "out"
    given = {"effects": [0.4], "trials": [24, 96], "replicates": 150, "workers": 1}
    return audit("optimism_bias", **given, out=folder), folder


# What is reported


def test_all_that_is_reported_is_what_the_rows_say(learners):
    found, folder = learners
    assert len(found.entries) == 4
    for c, entry in enumerate(found.entries):
        rows = rows_of(folder, c)
        assert len(rows) == entry.attempted == 150
        error = rows["estimate"] - rows["effect"]
        n = len(rows)
        expected = {
            "rejected": (rows["p_value"] < 0.05).mean(),
            "bias": error.mean(),
            "spread": error.std(ddof=1),
            "standard_error": rows["standard_error"].mean(),
            "coverage": ((rows["low"] <= rows["effect"]) & (rows["effect"] <= rows["high"])).mean(),
            "width": (rows["high"] - rows["low"]).mean(),
        }
        for name, value in expected.items():
            assert getattr(entry, name).value == pytest.approx(value)
        assert entry.bias.error == pytest.approx(error.std(ddof=1) / np.sqrt(n))
        assert entry.standard_error.error == pytest.approx(
            rows["standard_error"].std(ddof=1) / np.sqrt(n)
        )
        # Shares have the error of Agresti and Coull (1998).
        share = (expected["rejected"] * n + 2) / (n + 4)
        assert entry.rejected.error == pytest.approx(np.sqrt(share * (1 - share) / (n + 4)))
        assert (rows["n"] == 20).all()


def test_the_rows_of_symmetric_learners_have_no_effect(learners):
    found, folder = learners
    assert [entry.cell.model for entry in found.null] == ["rescorla_wagner"] * 2
    assert [entry.trials for entry in found.null] == [24, 96]
    for c, entry in enumerate(found.null):
        assert (rows_of(folder, c)["effect"] == 0.0).all()
        assert entry.effect == 0.0
        assert np.isnan(entry.sign_error.value)
        assert np.isnan(entry.exaggeration.value)


def test_symmetric_learners_are_told_from_optimists_better_in_longer_sessions(learners):
    found, _ = learners
    assert [entry.effect for entry in found.violators] == pytest.approx([0.4, 0.4])
    short, long = found.violators
    # 150 data sets: an error of .04 at most, .06 of the difference.
    assert long.rejected.value - short.rejected.value > ERRORS * 0.06
    assert abs(long.bias.value) + ERRORS * (long.bias.error + short.bias.error) < abs(
        short.bias.value
    )
    for violator, symmetric in zip(found.violators, found.null, strict=True):
        assert violator.rejected.value > symmetric.rejected.value + ERRORS * 0.06
        # The prior of the fits pulls both rates to the middle: too small, never too large.
        assert violator.bias.value < -ERRORS * violator.bias.error


def test_what_the_test_promises_itself_is_close_to_what_it_does(learners):
    # Over 150 data sets the spread of the estimates has an error of 6%.
    found, _ = learners
    for entry in found.null:
        ratio = entry.standard_error.value / entry.spread.value
        assert abs(ratio - 1) < ERRORS * 0.06


# Verdicts


def test_an_exact_test_has_the_size_and_the_power_of_the_t_test(normal):
    found = audit("shift", effects=[0.3, 0.7], trials=24, replicates=2000, workers=1)
    (null,) = found.null
    assert within(null.rejected, 0.05, 2000)
    assert abs(null.bias.value) < ERRORS * null.bias.error
    assert within(null.coverage, 0.95, 2000)
    for entry, effect in zip(found.violators, (0.3, 0.7), strict=True):
        assert within(entry.rejected, rejects(effect / np.hypot(SD, 1.0), 20), 2000)
        assert within(entry.coverage, 0.95, 2000)
        assert abs(entry.bias.value) < ERRORS * entry.bias.error
    holds = abs(null.rejected.value - 0.05) < 1.96 * np.sqrt(0.05 * 0.95 / 2000)
    assert (found.verdicts[24].word == "size holds") == holds
    assert not within(null.rejected, 0.08, 2000)  # a size of .08 would show


def test_a_measure_that_is_biased_on_purpose_raises_false_alarms(normal):
    found = audit("pushed", effects=[0.5], trials=24, replicates=400, workers=1)
    assert found.verdicts[24].word == "too many false alarms"
    assert within(found.null[0].rejected, rejects(0.3, 20), 400)
    for entry in found.entries:
        assert abs(entry.bias.value - 0.3) < ERRORS * entry.bias.error
    assert "24 trials: too many false alarms: The test rejects in" in str(found)


def test_a_measure_that_never_dares_raises_too_few(normal):
    # A single wild value in a sample keeps the t statistic near 1, whatever the rest.
    found = audit("clipped", effects=[], trials=24, replicates=400, workers=1)
    assert found.verdicts[24].word == "too few false alarms"
    assert found.null[0].rejected.value == 0.0
    assert found.null[0].rejected.error > 0.0


def test_few_data_sets_are_not_judged(normal):
    found = audit("pushed", effects=[], trials=24, replicates=99, workers=1)
    assert found.verdicts[24].word == "not judged"


def test_planted_failures_are_counted_and_stay_in_the_denominator(normal, monkeypatch):
    real = operating_characteristics.live
    planted = np.sort(session_stream(3).choice(400, 20, replace=False))  # 5%

    def failing(study, batch, subjects, first_session=0):
        # One data set at a time fails apart: the batch before it is computed again one by one.
        if np.isin(np.arange(batch.first, batch.last), planted).any():
            raise FloatingPointError("planted")
        known = real(study, dataclasses.replace(batch, first=0), subjects)
        return Known(np.arange(len(known.value)) % 20 + 1.0)  # every other test rejects

    monkeypatch.setattr(operating_characteristics, "live", failing)
    found = audit("shift", effects=[], trials=24, replicates=400, workers=1)
    (entry,) = found.null
    assert (entry.attempted, entry.failed) == (400, 20)
    assert entry.messages == {"planted": 20}
    assert entry.rejected.value == 380 / 400
    assert entry.bias.value == pytest.approx(10.5)
    assert found.to_dict()["failed"] == 20


def test_a_measure_with_its_own_test_is_audited_as_one_whose_subjects_are_tested(monkeypatch):
    monkeypatch.setitem(MEASURES, "own_test", OwnTest())
    given = {"effects": [0.4], "trials": 24, "replicates": 6, "subjects": 5, "workers": 1}
    ours, own = audit("optimism_bias", **given), audit("own_test", **given)
    for one, other in zip(ours.entries, own.entries, strict=True):
        a, b = one.to_dict(), other.to_dict()
        assert list(a) == list(b)
        numbers = [k for k in a if k not in ("model", "unit")]
        assert [a[k] for k in numbers] == pytest.approx([b[k] for k in numbers], nan_ok=True)


# Refusals and folders


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "optimism"}, "There is no measure named 'optimism'. Nearest: optimism_bias"),
        ({"environment": "instrumental"}, "There is no environment named 'instrumental'"),
        ({"subjects": 1}, "The test is over subjects and needs at least 2; got 1"),
        ({"effects": [1.5]}, "lies between -1 and 1; got 1.5. Choose a smaller effect"),
        ({"effects": [np.nan]}, "The size of an effect is a number; got nan"),
        ({"trials": 7}, "have a multiple of 4 trials; got 7"),
        ({"trials": []}, "An audit needs a number of trials; got none"),
        ({"sessions": 0}, "The number of sessions is at least 1; got 0"),
        ({"replicates": 0}, "The number of replicates is at least 1; got 0"),
        ({"seed": -1}, "Seeds are whole numbers from 0 on; got -1"),
        ({"workers": 0}, "The number of workers is at least 1; got 0"),
    ],
)
def test_misuse_is_refused_in_a_sentence_and_leaves_no_folder(tmp_path, wrong, sentence):
    asked = {"measure": "optimism_bias", "workers": 1, "replicates": 2}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        audit(**asked | wrong, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_audit_is_read_back_and_resumed_exactly(tmp_path):
    given = {"effects": [0.2], "trials": [24, 48], "replicates": 60, "workers": 1}
    found = audit("optimism_bias", **given, out=tmp_path)
    assert read_audit(tmp_path).to_json() == found.to_json()
    assert str(read_audit(tmp_path)) == str(found)
    for part in sorted((tmp_path / "parts").iterdir())[::2]:
        part.unlink()
    with pytest.raises(ValueError, match="is not finished"):
        read_audit(tmp_path)
    assert (
        audit("optimism_bias", **given, out=tmp_path).to_dict()["entries"]
        == (found.to_dict()["entries"])
    )


def test_the_outcome_is_a_table_and_json(learners):
    found, _ = learners
    told = json.loads(found.to_json())
    assert told["measure"] == "optimism_bias"
    assert [size["trials"] for size in told["size"]] == [24, 96]
    for size, entry in zip(told["size"], found.null, strict=True):
        assert size["size"] == entry.rejected.value
        assert size["size_error"] == entry.rejected.error
        assert size["verdict"] == found.verdicts[entry.trials].word
    frame = found.to_frame()
    assert frame["model"].tolist() == ["rescorla_wagner"] * 2 + ["rescorla_wagner_dual"] * 2
    assert frame["trials"].tolist() == [24, 96, 24, 96]


def test_an_audit_in_an_environment_of_ones_own():
    place = make(PLACE, win_probability=[[0.1, 0.9]])
    given = {"effects": [], "trials": 12, "replicates": 3, "subjects": 4, "workers": 1}
    found = audit("optimism_bias", environment=place, **given)
    assert found.null[0].cell.settings["win_probability"] == [[0.1, 0.9]]
    assert found.to_dict()["level"] == 0.05
