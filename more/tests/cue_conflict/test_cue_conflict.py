"""Cue conflict: what words and pictures show, agents with known weights, and what tells them."""

import io

import numpy as np
import pytest
from PIL import Image

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.magnitudes import equal_blur as equal
from knownminds.inference.magnitudes.equal_blur import equal_blur
from knownminds_more.cue_conflict.cue_conflict import CueConflict

SMALL = {"n_values": 3, "repeats": 3}


def red_and_black(png):
    """Return where the marker's middle is, as a share of the line: of 400 px, from 56."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    red = np.flatnonzero(((pixels[..., 0] > 200) & (pixels[..., 1] < 60)).any(axis=0))
    return (red.mean() - 56) / 400


def both(place, seed=4):
    """Return observations of trials with two cues."""
    table = place.draw(np.random.default_rng(seed)).table
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


PILOT = {"sigma_text": 0.05, "sigma_image": 0.03, "per_pixel": 0.005, "bias_text": 0.02,
         "bias_image": -0.03}  # fmt: skip


def pilots(n, seed=3, **more):
    """Return pilot sessions of n blurred weighers, each a mind of its own."""
    model = AGENTS["cue_weigher_blurred"]
    place = make("cue_conflict", condition="gradual_noise", repeats=6)
    theta = [[{**PILOT, **more}[p] for p in model.parameters.names]] * n
    frame = simulate(model, theta, place, seed).frame
    return [Trials.from_frame(own) for _, own in frame.groupby("subject", sort=False)]


@pytest.mark.long
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
