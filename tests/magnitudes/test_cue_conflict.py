"""Cue conflict: what words and pictures show, minds with known weights, and what tells them."""

import io

import numpy as np
import pytest
from PIL import Image
from scipy.stats import norm

from knownminds.agents import AGENTS, simulate
from knownminds.environments import CueConflict, Trials, make
from knownminds.inference import MEASURES, ModelData
from knownminds.inference.magnitudes import equal_blur as equal
from knownminds.inference.magnitudes.equal_blur import equal_blur

SMALL = {"n_values": 3, "repeats": 3}


def red_and_black(png):
    """Return where the marker's middle is, as a share of the line: of 400 px, from 56."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    red = np.flatnonzero(((pixels[..., 0] > 200) & (pixels[..., 1] < 60)).any(axis=0))
    return (red.mean() - 56) / 400


def both(place, seed=4):
    """Return observations of trials with two cues."""
    table = place.draw(np.random.default_rng(seed)).table
    place.reset(seed=seed)
    observations = []
    for trial in range(place.n_trials):
        seen = {name: table[name][trial].item() for name in place.fields.shown}
        observations.append({"trial": trial, **seen})
    return [o for o in observations if o["modality"] == 2]


def test_words_and_picture_disagree_by_the_conflict_and_their_middle_is_the_value():
    place = CueConflict(**SMALL)
    pairs = both(place)
    assert {o["conflict"] for o in pairs} == {-0.08, 0.0, 0.08}
    for seen in pairs:
        (line,) = place._text(seen)
        told = line.index("0") / (len(line) - 1)
        shown = red_and_black(place.picture(seen))
        assert told - shown == pytest.approx(seen["conflict"], abs=0.003)
        assert (told + shown) / 2 == pytest.approx(seen["value"], abs=0.003)


def test_each_conflict_comes_equally_often_with_each_value_and_single_cues_have_none():
    place = CueConflict()
    table = place.draw(np.random.default_rng(1)).table
    pairs = table["modality"] == 2
    assert not table["conflict"][~pairs].any()
    met = np.unique(np.column_stack([table["value"], table["conflict"]])[pairs], axis=0,
                    return_counts=True)  # fmt: skip
    assert len(met[0]) == 33
    assert (met[1] == 1).all()


def test_reports_have_errors_of_the_size_that_is_set():
    """RMS error of 3 x 198 independent reports: within 4 of its standard errors, sd / sqrt(2n)."""
    place = make("cue_conflict", report="sources", report_error=0.04, repeats=18)
    off = []
    for seen in both(place):
        words = place._text(seen)[0].replace(",", "").split()
        said = [float(w) for w in words if w[0].isdigit()]
        assert len(said) == 3
        off += [x - seen["value"] - seen["conflict"] / 2 for x in said]
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(
        0.04, abs=4 * 0.04 / np.sqrt(2 * len(off)) + 0.0002  # said to hundredths
    )  # fmt: skip
    rounded = CueConflict(report="rounded", **SMALL)
    seen = both(rounded)[0] | {"value": 0.5, "conflict": 0.08}
    assert "about 0.5" in rounded._text(seen)[0]


def test_an_answer_at_the_end_of_the_line_is_a_probability():
    model = AGENTS["cue_weigher_text"]
    theta = np.array([[0.05, 0.05, 0.4, 0.0]])
    trials = simulate(model, theta, make("cue_conflict", **SMALL), 5)
    ends = (trials.frame["response"] == 1.0) & (trials.frame["modality"] == 0)
    assert ends.any()
    frame = trials.frame[ends].iloc[:2]
    found = ModelData.read(model, Trials.from_frame(frame)).log_likelihood(theta)[0][0]
    expected = norm.logsf(1.0, frame["value"].to_numpy(float) + 0.4, 0.05).sum()
    assert found == pytest.approx(expected, rel=1e-9)


MIND = {"sigma_text": 0.03, "sigma_image": 0.06, "bias_text": 0.02, "bias_image": -0.03}
SESSIONS = 4  # what `power` asks for to tell .8 from .5, and to tell .5 from .8


def lived(name, sessions=SESSIONS, seed=1, minds=1, **more):
    """Return sessions of minds of one kind."""
    model = AGENTS[name]
    theta = [[{**MIND, **more}[p] for p in model.parameters.names]] * (sessions * minds)
    frame = simulate(model, theta, make("cue_conflict"), seed).to_frame()
    number = frame["subject"].astype(int)
    frame["session"] = (number % sessions).astype(str)
    frame["subject"] = "s" + (number // sessions).astype(str)
    return Trials.from_frame(frame)


@pytest.mark.long
def test_cue_conflict_tells_an_optimal_from_an_averaging_mind():
    """With the 4 sessions that `power` asked for, 40 times; the optimal weight is .8.

    Power is .999 and .913 by its fresh runs, so that fewer than 38 and 31 of 40 have a chance of
    .00001 and .002; more than 7 false alarms at .05 have one of .0007.
    """
    weight, excess = MEASURES["conflict_weight"], MEASURES["conflict_weight_excess"]
    found = {
        (name, measure.name): [
            measure.estimate(Trials.from_frame(own)).p_value < 0.05
            for _, own in lived(name, minds=40).frame.groupby("subject")
        ]
        for name in ("cue_weigher_optimal", "cue_weigher_equal")
        for measure in (weight, excess)
    }
    assert sum(found["cue_weigher_optimal", "conflict_weight"]) >= 38
    assert sum(found["cue_weigher_equal", "conflict_weight_excess"]) >= 31
    assert sum(found["cue_weigher_equal", "conflict_weight"]) <= 7
    assert sum(found["cue_weigher_optimal", "conflict_weight_excess"]) <= 7
    told = excess.estimate(lived("cue_weigher_equal", minds=40))
    assert told.low < -0.3 < told.high
    told = weight.estimate(lived("cue_weigher_optimal", minds=40))
    assert told.low < 0.8 < told.high


def test_measures_are_those_of_regressions_by_hand():
    """With numpy's polynomial fit and partial correlation instead of the code's least squares."""
    frame = lived("cue_weigher", sessions=1, alpha=0.7).to_frame()
    pairs = frame[frame["modality"] == 2]
    x = np.column_stack([np.ones(len(pairs)), pairs["value"], pairs["conflict"]]).astype(float)
    _, slope, push = np.linalg.solve(x.T @ x, x.T @ pairs["response"].to_numpy(float))
    weight = 0.5 + push / slope
    trials = Trials.from_frame(frame)
    assert MEASURES["conflict_weight"].estimate(trials).value == pytest.approx(weight, rel=1e-9)
    variance = []
    for cue in (0, 1):
        own = frame[frame["modality"] == cue].astype({"value": float, "response": float})
        line, rest, *_ = np.polyfit(own["value"], own["response"], 1, full=True)
        variance.append(rest[0] / (len(own) - 2) / line[0] ** 2)
    best = variance[1] / sum(variance)
    best -= best * (1 - best) * (1 - 2 * best) * 2 / 31
    found = MEASURES["conflict_weight_excess"].estimate(trials).value
    assert found == pytest.approx(weight - best, rel=1e-9)


PILOT = {"sigma_text": 0.05, "sigma_image": 0.03, "per_pixel": 0.005, "bias_text": 0.02,
         "bias_image": -0.03}  # fmt: skip


def pilots(n, seed=3, **more):
    """Return pilot sessions of n blurred weighers, each a mind of its own."""
    model = AGENTS["cue_weigher_blurred"]
    place = make("cue_conflict", condition="gradual_noise", repeats=6)
    theta = [[{**PILOT, **more}[p] for p in model.parameters.names]] * n
    frame = simulate(model, theta, place, seed).frame
    return [Trials.from_frame(own) for _, own in frame.groupby("subject", sort=False)]


def test_the_blur_of_equal_reliability_is_found(monkeypatch):
    """sqrt(.05**2 - .03**2) / .005 = 8 px: 30 intervals of 95% hold it 25 times but for p < .01."""
    monkeypatch.setattr(equal, "ROUNDS", 100)
    found = [equal_blur(trials) for trials in pilots(30)]
    assert not any(one.reason for one in found)
    blur = np.array([one.blur for one in found])
    assert blur.mean() == pytest.approx(8.0, abs=4 * blur.std() / np.sqrt(30))
    assert sum(one.low <= 8.0 <= one.high for one in found) >= 25
    for name in ("sigma_text", "sigma_image", "per_pixel"):
        own = np.array([getattr(one, name) for one in found])
        assert own.mean() == pytest.approx(PILOT[name], abs=4 * own.std() / np.sqrt(30))


def test_where_no_blur_makes_cues_equal_it_says_which_is_better(monkeypatch):
    monkeypatch.setattr(equal, "ROUNDS", 5)
    worse = equal_blur(pilots(1, sigma_text=0.02, sigma_image=0.06)[0])
    assert np.isnan([worse.blur, worse.low, worse.high]).all()
    assert "sharp pictures are no more reliable" in str(worse)
    better = equal_blur(pilots(1, sigma_text=0.2, per_pixel=0.002)[0])
    assert "with 20 px, the most, they are more reliable" in str(better)
