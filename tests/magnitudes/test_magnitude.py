import io
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from knownminds.environments import CONDITIONS, MODALITIES, Trials, make, session_stream

VISUAL = ("marker_location", "line_ratio", "maze_distance")
TASKS = (*VISUAL, "duration")
NOISE = ("constant_noise", "gradual_noise")


def drawn(place, n=1, seed=0):
    return place.tables(np.random.default_rng(seed).random((n, place.n_draws)))


@pytest.mark.parametrize("task", TASKS)
def test_a_window_shows_11_equally_spaced_values_three_times(task):
    place = make(task)
    assert (place.n_trials, place.n_items) == (99, 33)
    table = drawn(place, 20)
    grid = {"marker_location": 0.005, "line_ratio": 0.005, "maze_distance": 0.3, "duration": 0.25}
    for window, (low, high) in enumerate(place.default_ranges.values()):
        rows = table["value"][:, 33 * window : 33 * (window + 1)]
        assert (table["window"][:, 33 * window : 33 * (window + 1)] == window).all()
        for row in rows:
            wanted = np.repeat(np.linspace(low, high, 11), 3)
            assert np.abs(np.sort(row) - wanted).max() < grid[task]
    assert len(np.unique(table["value"].argsort(axis=1), axis=0)) == 20  # each in its own order


def test_windows_overlap_by_half_and_the_unit_is_what_the_outer_ones_add_up_to():
    units = {"marker_location": 1, "line_ratio": 1, "maze_distance": 18, "duration": 80}
    ceilings = {"marker_location": 1, "line_ratio": 1, "maze_distance": 60, "duration": 600}
    for task in TASKS:
        place = make(task)
        ranges = list(place.ranges.values())
        for (low, high), (next_low, _) in pairwise(ranges):
            assert next_low == pytest.approx((low + high) / 2)
        table = drawn(place)
        assert set(table["unit"].ravel()) == {units[task]}
        assert set(table["ceiling"].ravel()) == {ceilings[task]}
        assert place.response_range == (0.0, ceilings[task])


@pytest.mark.parametrize("task", VISUAL)
def test_the_same_seed_shows_the_same_stimuli_in_every_modality_and_condition(task):
    base = drawn(make(task, modality="text"), 3)
    fields = ("window", "value", "item", *make(task).fields.wording)
    for modality in MODALITIES:
        for condition in CONDITIONS:
            if modality == "text" and condition in NOISE:
                continue
            table = drawn(make(task, modality=modality, condition=condition), 3)
            back = slice(None, None, -1) if condition == "reversed" else slice(None)
            for name in fields:
                windows = table[name].reshape(3, 3, 33)[..., back]
                assert np.array_equal(windows.reshape(3, 99), base[name]), (condition, name)
            assert (table["condition"] == CONDITIONS.index(condition)).all()
    every = drawn(make(task, modality="all"), 3)
    assert every["value"].shape == (3, 297)
    for name in fields:
        passes = every[name].reshape(3, 3, 3, 33)
        for k in range(3):
            assert np.array_equal(passes[:, :, k].reshape(3, 99), base[name])
    assert (every["modality"].reshape(3, 3, 3, 33) == np.arange(3)[:, None]).all()


def test_a_picture_shows_what_words_tell():
    for task in VISUAL:
        place = make(task, modality="text+image", continuous=True)
        table = place.draw(session_stream(2)).table
        for t in range(0, 99, 9):
            shown = {name: column[t].item() for name, column in table.items()}
            image = Image.open(io.BytesIO(place.picture(shown)))
            assert image.size == (512, 512)
            assert place._value_in(place._text(shown)) == shown["value"]


def test_performance_is_one_minus_the_squared_error_over_that_of_the_middle():
    place = make("line_ratio", modality="image")
    table = {name: column[0] for name, column in drawn(place).items()}
    middle = np.array([0.3, 0.5, 0.7])[table["window"]]
    for answer, score in ((table["value"], 1.0), (middle, 0.0), (table["value"] + 0.02, None)):
        frame = pd.DataFrame({**table, "subject": "a", "trial": range(99), "response": answer})
        trials = Trials.from_frame(frame, environment=place)
        found = place.performance(trials).mean()
        baseline = np.mean((table["value"] - middle) ** 2)
        assert found == pytest.approx(1 - 0.02**2 / baseline if score is None else score)
