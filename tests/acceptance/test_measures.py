"""All registered measures: one contract, one truth, and each computed a second time."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from measure_oracles import OF_SAMPLE, OF_SUBJECT, ends
from plain_colliders import fitted, left_out, plainly
from registries import installed
from scipy import stats

from knownminds import score
from knownminds.agents import AGENTS, simulate
from knownminds.environments import ENVIRONMENTS, Trials, make, session_stream
from knownminds.inference import (
    MEASURES,
    BeliefDecisions,
    Coherence,
    Estimate,
    FittedMeasure,
    SubjectMeasure,
    conditional_independence,
    elicitation_consistency,
    iterated_expectation,
    maximum_a_posteriori,
    monotone_choice,
    parameter_measure,
    predictive_gain,
)

SMALL = {
    "diagnosis": {"n_contexts": 40, "repeats": 2},
    "probabilistic_reasoning": {"n_problems": 8},
}
SHAPES = {"one x one": (1, 1), "one x several": (1, 3), "several x one": (3, 1)}
UNANSWERED = "trials without an answer"
RELEASED = sorted(name for name in MEASURES if name.endswith("_released"))
DUAL = AGENTS["rescorla_wagner_dual"]
# One of each kind, by class and function that reads it, for what is simulated at length; the others
# come with the long tests.
FIRST = {
    (type(measure), getattr(getattr(measure, "read", None), "__qualname__", "")): name
    for name, measure in reversed([*MEASURES.items()])
}
# Its fits take the largest kernel of all, which nothing else here needs.
LARGE = ("loss_aversion",)
REASONED = ("determinacy", "reasoning_consistency")  # read off noisy-ORs that are fitted
SOME = [
    pytest.param(name, marks=() if name in FIRST.values() else pytest.mark.long)
    for name in sorted(MEASURES)
]
ALL = [
    pytest.param(name, marks=pytest.mark.long if name in LARGE else ()) for name in sorted(MEASURES)
]


@cache
def sessions_of_minds(place, settings, model, subjects, sessions, spread=True):
    """Sessions of minds from the prior, or in its middle; several sessions of one are its own."""
    agent = AGENTS[model]
    environment = make(place, **{**SMALL.get(place, {}), **dict(settings)})
    parameters = agent.parameters
    theta = (
        parameters.draw(np.random.default_rng(5), subjects)
        if spread
        else np.tile(parameters.constrain(parameters.mean), (subjects, 1))
    )
    frame = simulate(agent, np.repeat(theta, sessions, axis=0), environment, 3).to_frame()
    number = frame["subject"].astype(int)
    frame["session"] = (number % sessions).astype(str)
    frame["subject"] = "s" + (number // sessions).astype(str)
    return Trials.from_frame(frame)


def data_of(name, subjects, sessions):
    measure = MEASURES[name]
    settings = tuple(measure.settings.items())
    return sessions_of_minds(
        measure.environments[0], settings, measure.violator, subjects, sessions
    )


def marked(trials, share, seed=0):
    """Take a share of the answers away, as a reader does that cannot read them."""
    frame = trials.to_frame()
    gone = np.random.default_rng(seed).random(len(frame)) < share
    for column in {"action", "response", "reward"} & set(frame):
        frame.loc[gone, column] = None
    frame.loc[gone, "outcome"] = "malformed"
    return Trials.from_frame(frame)


def keeps_the_contract(measure, estimate):
    low, high = measure.bounds
    if not np.isfinite(estimate.value):
        assert np.isnan([estimate.low, estimate.high, estimate.p_value]).all()
        assert any(estimate.excluded.values()), "no value, and no reason"
        return
    assert low <= estimate.value <= high
    assert estimate.n > 0
    if np.isfinite(estimate.low):
        assert estimate.low <= estimate.high
        assert (
            estimate.unit != "subject"
            or low <= estimate.low <= estimate.value <= estimate.high <= high
        )
    else:
        assert np.isnan(estimate.p_value) or estimate.p_value <= 1
        assert estimate.note.startswith("no interval: ")


# ------------------------------------------------------------------ what a measure is


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_what_a_measure_names_exists(name):
    measure = MEASURES[name]
    assert measure.name == name
    assert measure.summary
    assert measure.source
    for environment in measure.environments:
        place = ENVIRONMENTS[environment]()
        for model in filter(None, (measure.rational, measure.violator)):
            AGENTS[model].check_plays(place)
    named = [set(AGENTS[model].parameters.names) for model in AGENTS]
    assert set(measure.dial.direction) <= set().union(*named)
    assert set(measure.dial.direction) & set(AGENTS[measure.violator].parameters.names)
    assert np.isfinite(measure.null) == bool(measure.rational)
    low, high = measure.bounds
    assert low < high
    assert np.isnan(measure.null) or low <= measure.null <= high
    if isinstance(measure, FittedMeasure):
        assert set(measure.contrast) <= set(measure.model.parameters.names)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param(
            name,
            shape,
            marks=()
            if name not in LARGE and (shape == "several x one" or name in FIRST.values())
            else pytest.mark.long,
        )
        for name in sorted(MEASURES)
        for shape in SHAPES
    ],
)
def test_it_has_a_value_or_a_reason_in_every_shape_of_data(name, shape):
    measure = MEASURES[name]
    subjects, sessions = SHAPES[shape]
    estimate = measure.estimate(data_of(name, subjects, sessions))
    keeps_the_contract(measure, estimate)
    assert not estimate.excluded.get(UNANSWERED)
    if isinstance(measure, SubjectMeasure):
        assert np.isfinite(estimate.value)
    if shape == "one x one":
        assert estimate.unit != "subject"
    if shape == "one x several" and estimate.unit == "session":
        assert estimate.n == sessions
        assert np.isfinite(estimate.low)
    if shape == "several x one" and isinstance(measure, SubjectMeasure):
        assert (estimate.n, estimate.unit) == (subjects, "subject")


@pytest.mark.parametrize("name", ALL)
def test_lost_answers_are_counted_and_a_file_without_answers_has_a_reason(name):
    measure = MEASURES[name]
    whole = data_of(name, 3, 1)
    some = measure.estimate(marked(whole, 0.2))
    assert any(some.excluded.values())
    keeps_the_contract(measure, some)
    try:
        nothing = measure.estimate(marked(whole, 1.1))
    except ValueError:  # which `score` tells as the status
        return
    assert np.isnan([nothing.value, nothing.low, nothing.p_value]).all()
    keeps_the_contract(measure, nothing)


ROWS_OF = {  # what goes by the trial before or after, and rows after which it may
    "model_basedness": (6, 7, 20),
    "learning_rate": (3, 40),
    "optimism_bias": (3, 40),
    "meta_cognition": (3, 11),
    "directed_exploration": (7, 100),
    "risk": (4, 50),
    "temporal_discounting": (0, 5),
    "perseverative_errors": (13, 40),
    "trials_to_criterion": (13, 40),
    "win_stay": (3, 40),
    "net_score_rise": (3, 40),
}


@pytest.mark.parametrize("name", installed(ROWS_OF))
def test_a_row_that_was_dropped_and_one_marked_malformed_give_the_same_estimate(name):
    # Three subjects show no group whose law could be told without sampling.
    trials = data_of(name, 12 if isinstance(MEASURES[name], FittedMeasure) else 3, 1)
    for row in ROWS_OF[name]:
        frame = trials.to_frame()
        dropped = frame.drop(index=row)
        for column in {"action", "response", "reward"} & set(frame):
            frame.loc[row, column] = None
        frame.loc[row, "outcome"] = "malformed"
        a, b = (MEASURES[name].estimate(Trials.from_frame(f)) for f in (dropped, frame))
        numbers = pd.DataFrame([a, b])[["value", "low", "high", "p_value"]].to_numpy(dtype=float)
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-7, nan_ok=True)
        assert a.n == b.n


def test_one_subject_has_the_value_that_it_has_among_others():
    for name in ("risk", "meta_cognition", "temporal_discounting", "learning_rate"):
        several = data_of(name, 3, 1)
        among = MEASURES[name].values(several).value
        for subject, value in zip(several.subjects, among, strict=True):
            own = Trials.from_frame(several.frame[several.frame["subject"] == subject])
            assert MEASURES[name].estimate(own).value == pytest.approx(value, rel=1e-9), name


# ------------------------------------------------------------------ null, dial and truth

# In caching minds reward and transition interact a little all the same (Akam, Costa and Dayan
# 2015), and noise in reports does not cancel in full between a belief and its parts.
NEARLY = ("model_basedness", "iterated_expectation")
TESTING = sorted(n for n, m in MEASURES.items() if m.rational and not n.startswith(NEARLY))
ERRORS = 4.0  # standard errors; with 40 subjects a t value beyond comes up in 3 of 10,000


@pytest.mark.parametrize("name", TESTING)
def test_a_rational_mind_has_the_null_value_whatever_its_parameters(name):
    measure = MEASURES[name]
    model = AGENTS[measure.rational]
    theta = model.parameters.draw(session_stream(1), 50)
    assert np.array_equal(measure.truth(model, theta), np.full(50, measure.null))


@pytest.mark.parametrize("name", SOME)
def test_turning_the_dial_raises_the_truth_of_a_group_of_violators(name):
    measure = MEASURES[name]
    model, dial = AGENTS[measure.violator], measure.dial
    parameters = model.parameters
    size = len(parameters)
    points = stats.norm.ppf(stats.qmc.Sobol(size, scramble=False).random(32)[16:])
    group = parameters.mean + 0.5 * parameters.sd * points
    along = dial.along(parameters.names)
    first = 0.0 if dial.lowest == 0.0 else -dial.reach / 4
    turns = [first, dial.reach / 4]
    if not isinstance(measure, Coherence):  # whose truths are simulated, 128 minds at a time
        turns.insert(1, sum(turns) / 2)
    truths = [
        measure.group_truth(model, parameters.constrain(group + turn * along)) for turn in turns
    ]
    assert np.all(np.diff(truths) > 0)


def estimated(name, turn, part):
    """Return the estimate of a measure and the truth, of a part of the minds if none is fitted."""
    measure = MEASURES[name]
    model = AGENTS[measure.rational if turn is None else measure.violator]
    place = make(measure.environments[0], **measure.settings)
    if isinstance(measure, FittedMeasure) or name.startswith(REASONED):
        # Long sessions: what a prior pulls away, or noise takes from a share of variance, goes
        # with one over the number of trials.
        n, size = 40, place.size or "repeats"
        longer = -(-4000 // place.n_trials) * place.settings[size]
        place = make(place.name, **{**place.settings, size: longer})
    else:
        # Regressions and scores are those of the standard session; long ones need fewer minds.
        # Few minds break monotone choice at all: a dozen tell too little of their spread.
        least = 30 if name.startswith("monotone_choice") else 12
        n = max(min(400, max(30, 500_000 // place.n_trials)) // part, least)
    parameters = model.parameters
    direction = measure.dial.along(parameters.names)
    theta = np.tile(parameters.constrain(parameters.mean + (turn or 0.0) * direction), (n, 1))
    return measure.estimate(simulate(model, theta, place, 1)), measure.group_truth(model, theta)


def lies_at_its_truth(name, turn, part):
    estimate, truth = estimated(name, turn, part)
    # Equal where both are exactly 0, as the share of violated pairs may be.
    assert abs(estimate.value - truth) <= ERRORS * estimate.standard_error


@pytest.mark.parametrize("name", sorted({*FIRST.values()} - {*LARGE}))
def test_much_data_brings_the_estimate_to_the_truth(name):
    lies_at_its_truth(name, 0.5, part=4)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MEASURES))
def test_more_data_of_rational_and_turned_minds_bring_it_nearer(name):
    # A rational mind, and a violator with its dial at rest and turned.
    for turn in (None, 0.0, 0.5):
        if turn is not None or MEASURES[name].rational:
            lies_at_its_truth(name, turn, part=1)


def test_short_sessions_bring_the_group_to_its_truth_and_no_mean_of_single_fits():
    """Negative control: 96 trials, where the prior of each fit pulls."""
    measure, parameters = MEASURES["optimism_bias"], DUAL.parameters
    z = parameters.mean + measure.dial.along(parameters.names)
    theta = np.tile(parameters.constrain(z), (40, 1))
    trials = simulate(DUAL, theta, make("instrumental_learning"), 1)
    truth = measure.truth(DUAL, theta)[0]
    single = measure.over_subjects(measure.values(trials))
    assert single.value < truth - ERRORS * single.standard_error
    assert single.value > measure.null + ERRORS * single.standard_error
    group = measure.estimate(trials)
    assert group.low < truth < group.high


# ------------------------------------------------------------------ computed a second time

# A row without an answer ends a ladder or moves which trial comes next; those are tested apart.
WHOLE = ("temporal_discounting", "meta_cognition_released", "risk")


def rows_for(name):
    measure = MEASURES[name]
    settings = tuple(measure.settings.items())
    subjects, sessions = (1, 1) if isinstance(measure, FittedMeasure) else (3, 2)
    many = (40, 1) if name in OF_SAMPLE else (subjects, sessions)
    middle = name in OF_SAMPLE  # regressions of choices that are all alike have no value
    trials = sessions_of_minds(
        measure.environments[0], settings, measure.violator, *many, not middle
    )
    return trials if name.startswith(WHOLE) else marked(trials, 0.1)


@pytest.mark.parametrize("name", installed(sorted(OF_SUBJECT)))
def test_the_value_of_a_subject_is_that_of_another_computation(name):
    trials = rows_for(name)
    expected = [OF_SUBJECT[name](own) for _, own in trials.frame.groupby("subject", sort=False)]
    assert np.isfinite(np.array(expected, dtype=float)).any()
    # A search ends where the density is flat, up to the root of its rounding.
    close = {"abs": 2e-4} if isinstance(MEASURES[name], FittedMeasure) else {"rel": 1e-8}
    estimate = MEASURES[name].values(trials).value
    assert estimate == pytest.approx(np.array(expected, dtype=float), nan_ok=True, **close)


@pytest.mark.parametrize("name", installed(sorted(OF_SAMPLE)))
def test_the_value_of_a_sample_is_that_of_another_computation(name):
    trials = rows_for(name)
    expected = OF_SAMPLE[name](trials.frame)
    assert MEASURES[name].estimate(trials).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "name", installed(sorted({*OF_SUBJECT} - {"risk", "optimism_bias", "learning_rate"}))
)
def test_the_interval_of_several_subjects_solves_its_equation(name):
    """An interval that is a tenth too narrow does not."""
    measure, trials = MEASURES[name], data_of(name, 6, 1)
    value = measure.values(trials).value
    value = value[np.isfinite(value)]
    estimate = measure.estimate(trials)
    if np.ptp(value) < 1e-12:
        assert np.isnan([estimate.low, estimate.high]).all()
        return
    error = value.std(ddof=1) / np.sqrt(len(value))
    expected = ends(value.mean(), error, len(value) - 1, measure.bounds)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(expected), rel=1e-6, abs=1e-9)
    inside = measure.bounds[0] < measure.null < measure.bounds[1]
    if inside and np.isfinite(estimate.p_value):
        assert (estimate.p_value < 0.05) == (not estimate.low < measure.null < estimate.high)


def sessions_of_one(n):
    """Questionnaires of one mind, eight to a sample; also the exact mean of its score."""
    measure, model = MEASURES["temporal_discounting"], AGENTS["hyperbolic_discounter"]
    theta = np.array([[0.001, 0.005, 1.0]])
    many = np.repeat(theta, 8 * n, axis=0)
    frame = simulate(model, many, make("temporal_discounting"), 9).to_frame()
    number = frame["subject"].astype(int)
    frame["session"], sample = (number % 8).astype(str), (number // 8).to_numpy()
    frame["subject"] = "one"
    parts = [Trials.from_frame(frame[sample == k]) for k in range(n)]
    return measure, parts, measure.truth(model, theta)[0]


def test_the_interval_of_one_subject_is_that_of_the_jackknife_over_its_sessions():
    measure, [trials], _ = sessions_of_one(1)
    each = measure.values(Trials.from_frame(trials.frame.assign(subject=trials.frame["session"])))
    mean, error = each.value.mean(), each.value.std(ddof=1) / np.sqrt(8)
    estimate = measure.estimate(trials)
    assert (estimate.value, estimate.standard_error) == (pytest.approx(mean), pytest.approx(error))
    expected = ends(mean, error, 7, measure.bounds)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(expected), rel=1e-6)


@pytest.mark.long
def test_intervals_over_sessions_cover_as_often_as_they_say():
    measure, samples, truth = sessions_of_one(1000)
    inside = [(e := measure.estimate(trials)).low <= truth <= e.high for trials in samples]
    # Three Monte-Carlo errors of a share of .95 in 1000 are .021; a tenth too narrow is .93.
    assert abs(np.mean(inside) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 1000)


# ------------------------------------------------------------------ released and corrected forms


def coherent(name, data):
    """Both forms of a test of coherence, from the function that says all of it."""
    if name.startswith("conditional_independence"):
        test = conditional_independence(data, calibrated="calibrated" in name)
        return test["value"] - test["null"], test["published"]
    if name == "predictive_gain":
        test = predictive_gain(data, learner="tree")
        return test["value"] / 100, test["published"] / 100
    if name == "monotone_choice":
        test = monotone_choice(data)
    elif name == "elicitation_consistency":
        return tuple(elicitation_consistency(data).frames["summary"]["value"])
    else:
        test = iterated_expectation(data)
    return test["value"], test["published"]


def reasoned(pooled, trials):
    """Determinacy and consistency of the noisy-OR that foretells left-out tasks better."""
    own = plainly(trials).dropna(subset="answer")
    tasks, answers = own["task"].to_numpy(), own["answer"].to_numpy()
    second = None if pooled else own["c2"].to_numpy(dtype=float)
    size = max((3, 4), key=lambda k: left_out(tasks, answers, k, second, 4)[0])
    _, leak, *strengths = fitted(tasks, answers, size, second, 4).x
    consistency, _ = left_out(tasks, answers, size, second, 4)
    return {"determinacy": np.mean(strengths) - leak, "reasoning_consistency": consistency}


def deviating(measure):
    """One session of a mind whose dial is far out, so that no form of the measure is zero."""
    model = AGENTS[measure.violator]
    z = model.parameters.mean + 3 * measure.dial.along(model.parameters.names)
    place = make("diagnosis", n_contexts=60, repeats=3)
    return simulate(model, model.parameters.constrain(z)[None], place, 2)


@pytest.mark.parametrize("released", RELEASED)
def test_the_released_form_of_a_measure_is_not_the_corrected_one(released):
    """Each is that of its own definition, and on the same trials the two differ."""
    name = released.removesuffix("_released")
    corrected, published = MEASURES[name], MEASURES[released]
    if isinstance(corrected, Coherence):
        trials = deviating(corrected)
        forms = coherent(name, BeliefDecisions.read(trials, by="subject"))
        values = [measure.estimate(trials).value for measure in (corrected, published)]
        assert values == pytest.approx(forms, rel=1e-9)
    elif name.startswith(REASONED):
        unequal = np.array([[0.3, 0.1, 0.9, 0.4, 0.1]])  # causes of different strength
        trials = simulate(AGENTS["noisy_or"], unequal, make("collider"), 1)
        forms = [reasoned(pooled, trials)[name] for pooled in (False, True)]
        values = [measure.values(trials).value[0] for measure in (corrected, published)]
        assert values == pytest.approx(forms, abs=1e-4)
    elif name in OF_SAMPLE:
        trials = rows_for(name)
        forms = [OF_SAMPLE[form](trials.frame) for form in (name, released)]
        values = [measure.estimate(trials).value for measure in (corrected, published)]
        assert values == pytest.approx(forms, rel=1e-6)
    else:  # markov_violation is the same where no answer is missing
        trials = data_of(name, 3, 1)
        trials = marked(trials, 0.2) if name == "markov_violation" else trials
        values = [measure.values(trials).value for measure in (corrected, published)]
        own = [part for _, part in trials.frame.groupby("subject", sort=False)]
        forms = [[OF_SUBJECT[form](part) for part in own] for form in (name, released)]
        assert np.allclose(values, forms, rtol=1e-8)
    assert not np.allclose(values[0], values[1], rtol=1e-4, atol=1e-6)


# ------------------------------------------------------------------ estimates


def test_the_optimism_bias_of_a_subject_is_read_off_its_fit():
    trials = simulate(
        DUAL, DUAL.parameters.draw(session_stream(3), 6), make("instrumental_learning"), 3
    )
    fit = maximum_a_posteriori(DUAL, trials)
    values = MEASURES["optimism_bias"].values(trials)
    assert np.array_equal(values.value, fit.estimate[:, 0] - fit.estimate[:, 1])
    parameter = parameter_measure(DUAL, "beta")
    assert np.array_equal(parameter.values(trials).value, fit.estimate[:, 2])
    assert np.isnan(parameter.estimate(trials).p_value)
    with pytest.raises(ValueError, match="beta"):
        parameter_measure(DUAL, "bet")


def test_subjects_who_never_answered_are_counted_and_not_replaced():
    theta = DUAL.parameters.draw(session_stream(4), 10)
    whole = simulate(DUAL, theta, make("instrumental_learning"), 4)
    frame = whole.to_frame()
    silent = frame["subject"].isin(["3", "7"])
    frame["action"] = frame["action"].astype("Int64").mask(silent)
    frame["reward"] = frame["reward"].mask(silent)
    frame.loc[silent, "outcome"] = "refused"
    measure = MEASURES["optimism_bias"]
    estimate = measure.estimate(Trials.from_frame(frame))
    assert estimate.n == 8
    assert estimate.excluded == {"failed fit": 2, UNANSWERED: 192}
    others = measure.estimate(Trials.from_frame(whole.frame[~silent.to_numpy()]))
    assert (estimate.value, estimate.p_value) == (others.value, others.p_value)


def test_sessions_without_a_value_are_counted_and_do_not_pass_for_data():
    trials = data_of("temporal_discounting", 1, 12)
    frame = trials.to_frame()
    gone = frame["session"].isin(["0", "1"]) & (frame["trial"] == 0)
    frame.loc[gone, "action"] = None
    frame.loc[gone, "outcome"] = "refused"
    measure = MEASURES["temporal_discounting"]
    estimate = measure.estimate(Trials.from_frame(frame))
    left = measure.estimate(Trials.from_frame(frame[~frame["session"].isin(["0", "1"])]))
    assert estimate.n == 10
    assert estimate.excluded == {"unanswered items": 2, UNANSWERED: 2}
    assert (estimate.value, estimate.low, estimate.high) == (left.value, left.low, left.high)


def test_an_estimate_without_a_test_is_null_in_json_and_no_number():
    estimate = Estimate("m", 0.25, 0.1, float("nan"), float("nan"), 1, "session", float("nan"), {})
    text = estimate.to_json()
    assert '"low": null' in text
    assert '"p_value": null' in text
    assert "NaN" not in text


# ------------------------------------------------------------------ score

TOGETHER = installed(
    ["two_step", "balloon_risk", "restless_bandit", "reversal_learning", "ultimatum"]
)


def test_score_reads_every_measure_off_one_file_of_several_experiments(knownminds, tmp_path):
    trials, wanted = {}, set()
    for place in TOGETHER:
        own = {name for name, measure in MEASURES.items() if place in measure.environments}
        wanted |= {(place, name) for name in own if not name.endswith("_released")}
        wanted.add((place, "performance"))
        model = MEASURES[min(own)].violator
        trials[place] = sessions_of_minds(place, (), model, 30, 1)
    pd.concat([t.to_frame() for t in trials.values()]).to_csv(tmp_path / "all.csv", index=False)
    code, out, err = knownminds("score", tmp_path / "all.csv", "--json", "--out", tmp_path / "s")
    assert code == 0, err
    rows = json.loads(out)["tables"]["measures"]
    assert {(row["experiment"], row["measure"]) for row in rows} == wanted
    for row in rows:
        assert row["status"] == "ok"
        if row["measure"] == "performance":
            continue
        estimate = MEASURES[row["measure"]].estimate(trials[row["experiment"]])
        for name in ("value", "low", "high", "n"):
            assert row[name] == pytest.approx(getattr(estimate, name), rel=1e-9)
    assert (tmp_path / "s" / "report.html").exists()


def test_released_measures_take_the_place_of_those_that_depart():
    trials = sessions_of_minds("two_step", (), "two_step_hybrid", 20, 1)
    table = score(trials, released=True)["Measures"].set_index("measure")["value"]
    assert set(table.index) == {"model_basedness_released", "performance"}
    expected = OF_SAMPLE["model_basedness_released"](trials.frame)
    assert table["model_basedness_released"] == pytest.approx(expected)


def test_samples_are_told_apart_by_a_column():
    first, second = (
        sessions_of_minds("horizon", (), m, 10, 1) for m in ("horizon_explorer", "horizon_blind")
    )
    other = second.to_frame().assign(who="other")
    other["subject"] += "b"
    both = pd.concat([first.to_frame().assign(who="one"), other])
    table = score(Trials.from_frame(both), ["performance"], by="who")["Measures"]
    alone = [score(trials, ["performance"])["Measures"]["value"][0] for trials in (first, second)]
    assert table["participant"].tolist() == ["one", "other"]
    assert table["value"].tolist() == pytest.approx(alone)
