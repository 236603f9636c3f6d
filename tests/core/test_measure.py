import dataclasses
import json

import numpy as np
import pytest
from scipy import stats
from stored_runs import keep, stored

from knownminds.agents import AGENTS, simulate
from knownminds.environments import ENVIRONMENTS, Trials, make, session_stream
from knownminds.inference import (
    MEASURES,
    Estimate,
    FittedMeasure,
    ModelData,
    OptimismBias,
    ParameterMeasure,
    SubjectMeasure,
    maximum_a_posteriori,
)
from knownminds.inference import measure as measures
from knownminds.inference.causes.reasoner_measure import ReasonerMeasure
from knownminds.inference.measure import Values, t_tests, welch_tests
from knownminds.validation.engine.arguments import resolve_environment
from knownminds.validation.power import dials as effects
from knownminds.validation.power.dials import GroupDial

PLACE = "instrumental_learning"
DUAL = AGENTS["rescorla_wagner_dual"]

# Estimates of one seed are compared with the truth up to 4 standard errors: with 40 subjects such
# a t value is exceeded by chance in 3 of 10,000 comparisons.
ROUNDING = 1e-12  # of sums of probabilities
ERRORS = 4.0


def minds(model, n, dial=None, turn=0.0):
    """N minds in the middle of the priors, the dial turned."""
    parameters = model.parameters
    direction = np.array([(dial or {}).get(name, 0.0) for name in parameters.names])
    return np.tile(parameters.constrain(parameters.mean + turn * direction), (n, 1))


KEPT = {}  # the last few groups: many measures are read off the same minds in the same sessions


def lived(model, theta, place):
    """Let minds live sessions, or return those that the same minds have lived there before."""
    settings = repr(sorted(place.settings.items()))
    key = model.name, place.name, settings, theta.shape, theta.tobytes()
    KEPT[key] = KEPT.pop(key, None) or simulate(model, theta, place, 1)
    if len(KEPT) > 4:
        del KEPT[next(iter(KEPT))]
    return KEPT[key]


# Measures whose rational minds have the null value to the last digit. In caching minds reward and
# transition interact a little all the same (Akam, Costa and Dayan 2015), and noise in reports does
# not cancel in full between a belief and its parts.
NEARLY = ("model_basedness", "iterated_expectation")
TESTING = sorted(n for n, m in MEASURES.items() if m.rational and not n.startswith(NEARLY))


# Contract of every measure


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_what_a_measure_names_exists(name):
    measure = MEASURES[name]
    assert measure.name == name
    assert measure.summary
    assert measure.source
    assert measure.environments
    assert measure.dial.direction
    for environment in measure.environments:
        place = ENVIRONMENTS[environment]()
        for model in filter(None, (measure.rational, measure.violator)):
            AGENTS[model].check_plays(place)
    # A dial may move other models besides: the violator by some of its names, each by at least one.
    named = [set(AGENTS[model].parameters.names) for model in AGENTS]
    assert set(measure.dial.direction) <= set().union(*named)
    assert set(measure.dial.direction) & set(AGENTS[measure.violator].parameters.names)
    assert np.isfinite(measure.null) == bool(measure.rational)


@pytest.mark.parametrize("name", TESTING)
def test_a_rational_mind_has_the_null_value_whatever_its_parameters(name):
    measure = MEASURES[name]
    model = AGENTS[measure.rational]
    theta = model.parameters.draw(session_stream(1), 200)
    assert np.array_equal(measure.truth(model, theta), np.full(200, measure.null))


@pytest.fixture
def few_points(monkeypatch):
    """32 points of a group in place of 1,024, which no other test of this process shall meet."""
    kept = (effects._points, effects._level, effects._curve)
    for one in kept:
        one.cache_clear()
    monkeypatch.setattr(effects, "POINTS", 32)
    yield
    for one in kept:
        one.cache_clear()


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("name", sorted(MEASURES))
def test_turning_the_dial_raises_the_truth_of_a_group_of_violators(name):
    measure = MEASURES[name]
    parameters = AGENTS[measure.violator].parameters
    turns, values = GroupDial(
        measure, AGENTS[measure.violator], parameters.mean, 0.5 * parameters.sd
    ).curve
    # The released score of those who never wait is that of those who wait a little: it falls again.
    assert np.all(np.diff(values) >= -ROUNDING) == (name != "temporal_discounting_released")
    middle = np.abs(turns) <= measure.dial.reach / 4
    assert np.all(np.diff(values[middle]) > 0)


CASES = [  # a rational mind, and a violator with its dial at rest and turned
    (name, turn)
    for name in sorted(MEASURES)
    for turn in (None, 0.0, 0.5)
    if turn is not None or MEASURES[name].rational
]


def estimated(name, turn, part=1):
    """Return the estimate of a measure and the truth, of a part of the minds if none is fitted."""
    measure = MEASURES[name]
    model = AGENTS[measure.rational if turn is None else measure.violator]
    place = make(measure.environments[0], **measure.settings)
    if isinstance(measure, FittedMeasure | ReasonerMeasure):
        # Forty-fold sessions: what a prior pulls away, or noise takes from a share of variance,
        # goes with one over the number of trials.
        n, place = 40, resolve_environment(place, 40 * place.n_trials)
    else:
        # Regressions and scores are those of the standard session; long ones need fewer minds.
        # Few minds break monotone choice at all: a dozen tell too little of their spread.
        least = 30 if name.startswith("monotone_choice") else 12
        n = max(min(400, max(30, 500_000 // place.n_trials)) // part, least)
    theta = minds(model, n, measure.dial.direction, turn or 0.0)
    found = measure.estimate(lived(model, theta, place))
    return found, measure.group_truth(model, theta)


@pytest.mark.parametrize(("name", "turn"), CASES)
def test_much_data_brings_the_estimate_to_the_truth(name, turn):
    """A quarter of the minds; what four times as many say is stored."""
    found, truth = estimated(name, turn, part=4)
    # Equal where both are exactly 0, as the share of violated pairs may be.
    assert abs(found.value - truth) <= ERRORS * found.standard_error
    whole = stored("estimates")[f"{name} {turn}"]
    error = np.hypot(found.standard_error, whole["standard_error"])
    assert abs(found.value - whole["value"]) <= ERRORS * error
    assert abs(whole["value"] - whole["truth"]) <= ERRORS * whole["standard_error"]


@pytest.mark.long
def test_more_data_brings_the_estimate_nearer():
    numbers = {}
    for name, turn in CASES:
        found, truth = estimated(name, turn)
        assert abs(found.value - truth) <= ERRORS * found.standard_error, (name, turn)
        numbers[f"{name} {turn}"] = {
            "value": found.value,
            "standard_error": found.standard_error,
            "truth": float(truth),
        }
    for case, whole in keep("estimates", numbers, 1, __file__).items():
        assert numbers[case] == pytest.approx(whole, rel=1e-6, abs=1e-9), case


def test_short_sessions_do_not():
    # Negative control of the test above, and what the prior of a fit does: 96 trials.
    measure = MEASURES["optimism_bias"]
    theta = minds(DUAL, 40, measure.dial.direction, 1.0)
    found = measure.estimate(simulate(DUAL, theta, make(PLACE), 1))
    assert found.value < measure.truth(DUAL, theta)[0] - ERRORS * found.standard_error
    assert found.value > measure.null + ERRORS * found.standard_error


# Optimism bias


def test_the_optimism_bias_is_a_difference_of_learning_rates():
    theta = np.array([[0.4, 0.1, 3.0, 0.2], [0.1, 0.3, 1.0, 0.0]])
    assert OptimismBias().truth(DUAL, theta) == pytest.approx([0.3, -0.2])


def test_the_optimism_bias_of_a_subject_is_read_off_its_fit():
    trials = simulate(DUAL, DUAL.parameters.draw(session_stream(3), 6), make(PLACE), 3)
    fit = maximum_a_posteriori(DUAL, trials)
    expected = fit.estimate[:, 0] - fit.estimate[:, 1]
    values = OptimismBias().values(trials)
    assert np.array_equal(values.value, expected)
    assert values.reason == ("",) * 6
    assert OptimismBias().estimate(trials).value == pytest.approx(expected.mean())


def test_a_parameter_is_a_measure_without_a_null_value():
    measure = ParameterMeasure(DUAL, "beta")
    theta = DUAL.parameters.draw(session_stream(3), 6)
    assert np.array_equal(measure.truth(DUAL, theta), theta[:, 2])
    trials = simulate(DUAL, theta, make(PLACE), 3)
    fit = maximum_a_posteriori(DUAL, trials)
    found = measure.estimate(trials)
    assert found.value == pytest.approx(fit.estimate[:, 2].mean())
    assert np.isnan(found.p_value)
    assert found.low < found.value < found.high
    with pytest.raises(ValueError, match=r"got 'bet'\. Did you mean beta"):
        ParameterMeasure(DUAL, "bet")


# Subjects without a value


def test_subjects_who_never_answered_are_counted_and_not_replaced():
    theta = DUAL.parameters.draw(session_stream(4), 10)
    whole = simulate(DUAL, theta, make(PLACE), 4)
    frame = whole.to_frame()
    silent = frame["subject"].isin(["3", "7"])
    frame["action"] = frame["action"].astype("Int64").mask(silent)
    frame["reward"] = frame["reward"].mask(silent)
    frame.loc[silent, "outcome"] = "refused"
    measure = OptimismBias()
    found = measure.estimate(Trials.from_frame(frame))
    others = np.delete(measure.values(whole).value, [3, 7])
    assert found.n == 8
    assert found.excluded == {"failed fit": 2, "trials without an answer": 192}
    assert found.value == pytest.approx(others.mean())
    # The error is larger at 0, in the middle of -1 to 1, than at the mean: see interval_tests.
    t = stats.ttest_1samp(others, 0.0).statistic * np.sqrt(1 - others.mean() ** 2)
    assert found.p_value == pytest.approx(2 * stats.t(7).sf(abs(t)))
    assert "8 subjects; 2 excluded (failed fit), 192 excluded (trials" in str(found)


def test_a_failed_fit_is_no_value_and_any_other_status_is(monkeypatch):
    trials = simulate(DUAL, DUAL.parameters.draw(session_stream(4), 5), make(PLACE), 4)
    statuses = ("ok", "failed", "boundary", "flat", "failed")

    def planted(*args, **kwargs):
        return dataclasses.replace(maximum_a_posteriori(*args, **kwargs), status=statuses)

    whole = OptimismBias().values(trials).value
    monkeypatch.setattr(measures, "maximum_a_posteriori", planted)
    values = OptimismBias().values(trials)
    assert np.array_equal(np.isnan(values.value), [s == "failed" for s in statuses])
    assert np.array_equal(values.value[[0, 2, 3]], whole[[0, 2, 3]])
    assert values.reason == ("", "failed fit", "", "", "failed fit")


def test_data_that_are_laid_out_already_give_the_same_values():
    trials = simulate(DUAL, DUAL.parameters.draw(session_stream(5), 5), make(PLACE), 5)
    measure = OptimismBias()
    a, b = measure.values(trials), measure.values_of(ModelData.read(DUAL, trials), workers=1)
    assert np.array_equal(a.value, b.value)
    assert a.reason == b.reason


def test_one_subject_has_the_value_of_its_fit_and_no_interval_from_one_session():
    trials = simulate(DUAL, minds(DUAL, 1), make(PLACE), 6)
    found = OptimismBias().estimate(trials)
    fit = maximum_a_posteriori(DUAL, ModelData.read(DUAL, trials)).estimate[0]
    assert found.value == pytest.approx(fit[0] - fit[1])
    assert np.isnan([found.standard_error, found.low, found.high, found.p_value]).all()
    assert (found.n, found.unit, found.note) == (1, "session", "no interval: a single session")
    assert sum(found.fits.values()) == 1


class Given(SubjectMeasure):
    """A measure whose values are given."""

    name, null = "given", 0.5

    def __init__(self, value, reason=()):
        self.value, self.reason = np.array(value), reason

    def truth(self, model, theta):
        return theta[:, 0]

    def values(self, trials):
        return Values(self.value, self.reason)


def test_an_estimate_is_the_t_test_against_the_null_value():
    sample = session_stream(7).normal(0.7, 0.3, 12)
    found = Given(sample).over_subjects(Values(sample, ("",) * 12))
    expected = stats.ttest_1samp(sample, 0.5)
    low, high = expected.confidence_interval(0.95)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.standard_error == pytest.approx(stats.sem(sample))
    assert (found.n, found.unit, found.measure) == (12, "subject", "given")


def test_reasons_are_counted_one_by_one():
    value = np.array([0.1, np.nan, 0.4, np.nan, np.nan])
    reason = ("", "failed fit", "", "too few trials", "failed fit")
    found = Given(value).over_subjects(Values(value, reason))
    assert found.excluded == {"failed fit": 2, "too few trials": 1}
    assert found.n == 2


@pytest.mark.parametrize("left", [[], [0.3]])
def test_too_few_values_give_an_estimate_without_a_test(left):
    value = np.array([*left, np.nan, np.nan])
    found = Given(value).over_subjects(Values(value, ("",) * len(left) + ("failed fit",) * 2))
    assert found.n == len(left)
    assert np.isnan([found.standard_error, found.low, found.high, found.p_value]).all()
    told = json.loads(found.to_json())
    assert told["p_value"] is None
    assert told["excluded"] == {"failed fit": 2}
    assert (told["value"] is None) == (not left)


def test_an_estimate_tells_itself_as_json():
    found = Estimate("m", 0.25, 0.1, 0.05, 0.45, 9, "subject", 0.02, {"failed fit": 1})
    assert json.loads(found.to_json()) == dataclasses.asdict(found)
    line = "m 0.250 (95% 0.050 to 0.450), p = 0.02, 9 subjects; 1 excluded (failed fit)"
    assert str(found) == line


# Tests of many samples at once


def with_gaps(rng, rows, n, mean=0.0, sd=1.0):
    samples = rng.normal(mean, sd, (rows, n))
    samples[rng.random(samples.shape) < 0.2] = np.nan
    samples[:, :2] = rng.normal(mean, sd, (rows, 2))  # two values at least
    return samples


@pytest.mark.parametrize("mass", [0.9, 0.95])
def test_t_tests_are_those_of_scipy_row_by_row(mass):
    samples = with_gaps(session_stream(8), 30, 9, 0.4)
    found = t_tests(samples, 0.3, mass)
    for row, sample in enumerate(samples):
        expected = stats.ttest_1samp(sample, 0.3, nan_policy="omit")
        low, high = expected.confidence_interval(mass)
        held = sample[np.isfinite(sample)]
        assert found.n[row] == len(held)
        assert found.mean[row] == pytest.approx(held.mean())
        assert found.standard_error[row] == pytest.approx(stats.sem(held))
        assert found.p_value[row] == pytest.approx(expected.pvalue)
        assert (found.low[row], found.high[row]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("mass", [0.9, 0.95])
def test_welch_tests_are_those_of_scipy_row_by_row(mass):
    rng = session_stream(9)
    samples, others = with_gaps(rng, 30, 9), with_gaps(rng, 30, 14, 0.5, 2.0)
    found = welch_tests(samples, others, mass)
    for row, (a, b) in enumerate(zip(samples, others, strict=True)):
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        expected = stats.ttest_ind(b, a, equal_var=False)
        low, high = expected.confidence_interval(mass)
        assert found.n[row] == len(a) + len(b)
        assert found.mean[row] == pytest.approx(b.mean() - a.mean())
        assert found.p_value[row] == pytest.approx(expected.pvalue)
        assert (found.low[row], found.high[row]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("n", [2, 3, 5, 6, 10])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3])
def test_a_sample_without_spread_has_no_test(value, n):
    # The mean of three times .1 is not .1 in floating point, and must not pass for a spread.
    level = np.full((1, n), value)
    gaps = np.array([[np.nan, *level[0]]])
    varied = np.arange(5.0)[None, :]
    for found in (
        t_tests(level, -1.0),
        t_tests(gaps, -1.0),
        welch_tests(level, level),
        welch_tests(level, varied),
        welch_tests(varied, level),
    ):
        assert np.isnan([found.standard_error, found.low, found.high, found.p_value]).all()
        assert np.isfinite(found.mean).all()


def test_every_registered_measure_of_a_fit_fits_a_model_that_has_its_contrast():
    for measure in MEASURES.values():
        if isinstance(measure, FittedMeasure):
            assert set(measure.contrast) <= set(measure.model.parameters.names)


def test_a_dial_in_the_old_form_is_refused_with_the_new_one():
    with pytest.raises(TypeError, match=r"Write dial = Dial\(\{parameter: 1.0\}\)"):
        type("Old", (SubjectMeasure,), {"dial": {"kappa": 1.0}})
