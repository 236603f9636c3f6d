"""The observer of all magnitudes: its equations by hand, what it knows, and what one cell hides."""

from math import log, log1p, pi, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, truncnorm

from knownminds.agents import AGENTS, simulate
from knownminds.environments import CONDITIONS, Trials, make
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.inference.magnitudes.observer_misfit import cell_misfit
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.magnitudes.observer_audit import over_cells, participants, played

MODEL = AGENTS["bayesian_observer"]
RANGES = {  # of the windows, in the task's unit
    "marker_location": ([(0.1, 0.5), (0.3, 0.7), (0.5, 0.9)], 1.0),
    "maze_distance": ([(3, 9), (6, 12), (9, 15)], 18.0),
    "duration": ([(10, 40), (25, 55), (40, 70)], 80.0),
}
TRUTH = {
    "noise_text": 0.04, "noise_image": 0.06, "blur_slope": 0.01, "prior_precision": 90.0,
    "adaptation": 0.3, "steering_gain": 1.8, "told_weight": 0.7, "cue_optimality": 0.6,
    "report_noise": 0.02,
}  # fmt: skip


def laws(frame, told, **p):
    """Answer, mean, spread and unit of each trial; `told` is the middle of a told range or None."""
    windows, unit = RANGES[frame["environment"].iloc[0]]
    condition = CONDITIONS[int(frame["condition"].iloc[0])]
    steered = condition in ("verbal", "numeric", "numeric_biased")
    precision = p["prior_precision"] * (p["steering_gain"] if steered else 1.0)
    for (window, _), trials in frame.groupby(["window", "modality"]):
        low, high = windows[int(window)]
        m = (low + high) / 2 / unit
        for row in trials.itertuples():
            text, image = p["noise_text"] ** 2, p["noise_image"] ** 2
            image += (p["blur_slope"] * row.blur) ** 2
            optimal = image / (text + image)
            a = p["cue_optimality"] * optimal + (1 - p["cue_optimality"]) / 2
            v = (text, image, a**2 * text + (1 - a) ** 2 * image)[int(row.modality)]
            w = v * precision / (1 + v * precision)
            mean, x, y = m, row.value / unit, row.response / unit
            if told is not None:
                middle = (low + told * (high - low)) / unit
                mean = (1 - p["told_weight"]) * m + p["told_weight"] * middle
            sd = sqrt((1 - w) ** 2 * v + p["report_noise"] ** 2)
            yield row, y, (1 - w) * x + w * mean, sd, unit
            m += p["adaptation"] * (y - m)


def by_hand(frame, told, **p):
    """Log-likelihood of a session, trial by trial."""
    return sum(
        -(((y - mean) / sd) ** 2) / 2 - log(sd * unit * sqrt(2 * pi))
        for _, y, mean, sd, unit in laws(frame, told, **p)
    )


@pytest.mark.parametrize(
    ("task", "settings", "told"),
    [
        ("marker_location", {"modality": "all", "condition": "gradual_noise"}, None),
        ("maze_distance", {"modality": "text+image", "condition": "numeric_biased"}, 0.25),
        ("maze_distance", {"modality": "image", "condition": "numeric"}, 0.5),
        ("marker_location", {"modality": "text", "condition": "verbal"}, None),
        ("duration", {}, None),
    ],
)
def test_the_likelihood_is_that_of_the_equations(task, settings, told):
    theta = np.array([list(TRUTH.values())])
    trials = simulate(MODEL, theta, make(task, **settings), 3)
    ceiling = trials.frame["ceiling"].iloc[0]
    assert trials.frame["response"].between(0, ceiling, inclusive="neither").all()
    found = ModelData.read(MODEL, trials).log_likelihood(theta)[0]
    assert found[0] == pytest.approx(by_hand(trials.frame, told, **TRUTH), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("bayesian_observer_static", {"adaptation": 0.0}),
        ("bayesian_observer_equal", {"cue_optimality": 0.0}),
        ("bayesian_observer_unsteered", {"steering_gain": 1.0, "told_weight": 0.0}),
        ("bayesian_observer_flat", {"prior_precision": 0.0, "adaptation": 0.0,
                                    "steering_gain": 1.0, "told_weight": 0.0}),
    ],
)  # fmt: skip
def test_a_nested_observer_is_the_whole_one_with_parameters_held(name, held):
    inner = AGENTS[name]
    theta = np.array([[TRUTH[n] for n in inner.parameters.names]])
    assert {*TRUTH} - {*inner.parameters.names} == {*held}
    place = make("marker_location", modality="all", condition="numeric_biased")
    trials = simulate(inner, theta, place, 5)
    expected = by_hand(trials.frame, 0.25, **{**TRUTH, **held})
    found = ModelData.read(inner, trials).log_likelihood(theta)[0]
    assert found[0] == pytest.approx(expected, rel=1e-9)


def test_the_power_law_bends_stimuli_alone():
    outer = AGENTS["bayesian_observer_power"]
    trials = simulate(MODEL, [list(TRUTH.values())], make("marker_location"), 5)
    bent = trials.frame.assign(value=trials.frame["value"] ** 1.4)
    theta = np.array([[*TRUTH.values(), 1.4]])
    found = ModelData.read(outer, trials).log_likelihood(theta)[0]
    assert found[0] == pytest.approx(by_hand(bent, None, **TRUTH), rel=1e-9)


def test_one_cell_shows_neither_noise_nor_prior_apart():
    """With twice the noise's variance and half the precision, less report noise gives the same."""
    other = dict(TRUTH)
    v, p = TRUTH["noise_text"] ** 2, TRUTH["prior_precision"]
    other["noise_text"], other["prior_precision"] = sqrt(1.2 * v), p / 1.2
    kept = 1 / (1 + v * p)
    other["report_noise"] = sqrt(TRUTH["report_noise"] ** 2 - kept**2 * 0.2 * v)
    theta = np.array([list(TRUTH.values()), list(other.values())])
    for settings, same in (
        ({"modality": "text"}, True),
        ({"modality": "all", "condition": "constant_noise"}, False),
    ):
        trials = simulate(MODEL, theta[:1], make("marker_location", **settings), 7)
        one, two = (ModelData.read(MODEL, trials).log_likelihood(t[None])[0][0] for t in theta)
        assert (abs(one - two) < 1e-9 * abs(one)) == same


def test_it_knows_the_shipped_ranges_alone_and_says_so():
    narrow = {"short": (0.1, 0.3), "medium": (0.2, 0.4), "long": (0.3, 0.5)}
    place = make("marker_location", ranges=narrow)
    with pytest.raises(ValueError, match=r"shipped ranges of marker_location; got .*Leave"):
        MODEL.check_plays(place)
    with pytest.raises(ValueError, match="shipped biased_range"):
        MODEL.check_plays(make("line_ratio", biased_range=(0.5, 1.0)))
    # Trials of such ranges that are fitted all the same have no likelihood: the fit says failed.
    trials = simulate(AGENTS["static_bayes_observer"], [[0.3, 0.2, 0.3, 0.4, 0.05]], place, 1)
    fit = maximum_a_posteriori(MODEL, Trials.from_frame(trials.frame))
    assert fit.status == ("failed",)


def test_lapses_are_uniform_up_to_the_ceiling():
    theta = np.array([list(TRUTH.values())])
    trials = simulate(MODEL, theta, make("duration"), 3)
    data = ModelData.read(MODEL, trials)
    whole = data.log_likelihood(theta, np.array([0.999999]))[0][0]
    assert whole == pytest.approx(-99 * log(600.0) + 99 * log1p(-1e-6), abs=0.02)


def test_misfit_is_the_sum_of_squares_of_slope_and_spread_in_each_cell():
    theta = np.array([list(TRUTH.values())])
    places = [
        ("marker_location", {"modality": "all", "condition": "gradual_noise"}, None),
        ("maze_distance", {"modality": "text+image", "condition": "numeric_biased"}, 0.25),
    ]
    frames = [
        simulate(MODEL, theta, make(task, **settings), 11).frame.assign(session=str(k))
        for k, (task, settings, _) in enumerate(places)
    ]
    data = ModelData.read(MODEL, Trials.concatenate([Trials.from_frame(one) for one in frames]))
    fitted = maximum_a_posteriori(MODEL, data, workers=1).estimate[0]
    own, expected = dict(zip(MODEL.parameters.names, fitted, strict=True)), 0.0
    for frame, (_, _, told) in zip(frames, places, strict=True):
        top = frame["ceiling"].iloc[0] / frame["unit"].iloc[0]
        share = [truncnorm(-m / sd, (top - m) / sd, m, sd).cdf(y) for _, y, m, sd, _ in
                 laws(frame, told, **own)]  # fmt: skip
        rows = pd.DataFrame(
            [(r.modality, r.window, r.value) for r, *_ in laws(frame, told, **own)],
            columns=["modality", "window", "x"],
        ).assign(z=norm.ppf(share))
        x = rows["x"] - rows.groupby(["modality", "window"])["x"].transform("mean")
        for _, cell in rows.assign(x=x).groupby("modality"):
            n = len(cell)
            slope = (cell["z"] * cell["x"]).sum() / sqrt((cell["x"] ** 2).sum())
            root = ((cell["z"] ** 2).mean()) ** (1 / 3)
            expected += slope**2 + (root - 1 + 2 / (9 * n)) ** 2 / (2 / (9 * n))
    found = cell_misfit(MODEL, data, workers=1).iloc[0]
    assert found["misfit"] == pytest.approx(expected, rel=1e-6)
    assert found["freedom"] < 8  # eight numbers, which the estimates follow
    assert np.isnan(found["misfit_p"])


def test_p_of_misfit_is_uniform_in_observers_of_this_kind_with_few_trials():
    cells = read_plan("magnitudes", small=True).cells
    _, theta = participants("any", range(200), 2)
    data = over_cells(MODEL, played(MODEL, theta, cells, 2, np.arange(200)[:, None]), 200)
    p = cell_misfit(MODEL, data, workers=1)["misfit_p"]
    # The mean of 200 uniform numbers has an error of .020. With a degree of freedom less for each
    # parameter it is .37, with none less .63.
    assert p.mean() == pytest.approx(0.5, abs=3 * 0.0204)


def test_answers_at_the_ends_of_the_range_are_no_misfit():
    """A fifth of the answers are 0 or the ceiling; what is left is no normal law."""
    cells = read_plan("magnitudes", small=True).cells
    theta = np.tile(list({**TRUTH, "report_noise": 0.4}.values()), (100, 1))
    data = over_cells(MODEL, played(MODEL, theta, cells, 3, np.arange(100)[:, None]), 100)
    answer = data.flat[MODEL.columns.index("response")]
    at_end = (answer <= 0) | (answer >= data.flat[MODEL.columns.index("ceiling")])
    assert 0.15 < at_end.mean() < 0.3
    p = cell_misfit(MODEL, data, workers=1)["misfit_p"]
    # The mean of 100 uniform numbers has an error of .029. Without truncation it was .01.
    assert p.mean() == pytest.approx(0.5, abs=3 * 0.0289)


def test_a_cell_with_one_answer_has_no_slope_and_is_no_failure():
    """The second of two participants has a single answer in a cell of mazes."""
    _, theta = participants("any", range(2), 2)
    cells = sorted(
        read_plan("magnitudes", small=True).cells,
        key=lambda c: c.environment.name != "maze_distance",
    )
    frames = [
        simulate(MODEL, theta, cell.environment, 2, address=(k,)).frame.assign(session=str(k))
        for k, cell in enumerate(cells)
    ]
    one = frames[0][(frames[0]["subject"].astype(int) == 0) | (frames[0]["trial"] == 0)]
    records = ([Trials.from_frame(f) for f in some] for some in (frames, [one, *frames[1:]]))
    whole, cut = (
        cell_misfit(MODEL, ModelData.read(MODEL, Trials.concatenate(one))) for one in records
    )
    assert cut["misfit_p"][0] == pytest.approx(whole["misfit_p"][0], rel=1e-6)
    assert whole["freedom"][1] - 1.5 < cut["freedom"][1] < whole["freedom"][1]
    assert 0 < cut["misfit_p"][1] < 1


def test_missing_answers_are_no_misfit():
    """A fifth of the answers is missing, among them first ones; the past does not count."""
    theta = np.tile(list({**TRUTH, "adaptation": 0.001}.values()), (60, 1))
    rng, parts = np.random.default_rng(1), []
    for k, cell in enumerate(read_plan("magnitudes").cells[:12]):
        frame = simulate(MODEL, theta, cell.environment, 2, address=(k,)).frame
        gone = rng.random(len(frame)) < 0.2
        frame["response"] = frame["response"].mask(gone)
        frame["outcome"] = frame["outcome"].mask(gone, "malformed")
        parts.append(Trials.from_frame(frame.assign(session=str(k))))
    data = ModelData.read(MODEL, Trials.concatenate(parts))
    p = cell_misfit(MODEL, data, workers=1)["misfit_p"]
    # The mean of 60 uniform numbers has an error of .037. With a sequence's begin read off a trial
    # without an answer it was .01.
    assert p.mean() == pytest.approx(0.5, abs=3 * 0.0373)


@pytest.mark.long
def test_misfit_tells_an_observer_of_another_kind_and_seldom_one_of_this():
    cells = read_plan("magnitudes").cells
    shares = []
    for kind in ("any", "never adapts"):
        model, theta = participants(kind, range(40), 1)
        sessions = played(model, theta, cells, 1, np.arange(40)[:, None])
        data = over_cells(MODEL, sessions, 40)
        shares.append((cell_misfit(MODEL, data, workers=1)["misfit_p"] < 0.05).mean())
    # Of 200 participants the shares were .055 and .985; three errors of 40 are .11 and .06.
    assert shares[0] < 0.17
    assert shares[1] > 0.92
