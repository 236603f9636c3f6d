import asyncio
import io
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from knownminds.agents import AGENTS, play
from knownminds.environments import (
    CONDITIONS,
    MODALITIES,
    Message,
    Outcome,
    Trials,
    Turn,
    make,
    session_stream,
)
from knownminds.environments.magnitudes import drawing
from knownminds.environments.words.told_history import HISTORIES
from knownminds.llm_adapters import Sampling
from knownminds.llm_adapters.known_minds.synthetic import Synthetic

VISUAL = ("marker_location", "line_ratio", "maze_distance")
TASKS = (*VISUAL, "duration")
NOISE = ("constant_noise", "gradual_noise")


def drawn(place, n=1, seed=0):
    return place.tables(np.random.default_rng(seed).random((n, place.n_draws)))


def lived(place, seed=0, until=None):
    """Live a session, answering the truth, up to a trial; return its turns and that trial."""
    observation, _ = place.reset(seed=seed)
    turns = []
    while observation["trial"] < (place.n_trials - 1 if until is None else until):
        value = min(float(observation["value"]), place.ceiling)
        turns.append(Turn(observation, None, None, "", value))
        observation, *_ = place.step(value)
    return turns, observation


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


def test_pictures_are_blurred_evenly_or_more_and_more_and_words_never():
    table = drawn(make("marker_location", modality="all", condition="constant_noise"))
    assert set(table["blur"][table["modality"] > 0]) == {8.0}
    assert set(table["blur"][table["modality"] == 0]) == {0.0}
    table = drawn(make("marker_location", modality="all", condition="gradual_noise"))
    blur = table["blur"].reshape(3, 3, 33)
    assert (blur[:, 0] == 0).all()
    assert (blur[:, 1:] == np.linspace(0, 16, 33)).all()
    table = drawn(make("maze_distance", modality="image", condition="constant_noise", blur=3))
    assert set(table["blur"].ravel()) == {3.0}
    assert set(drawn(make("line_ratio", modality="all"))["blur"].ravel()) == {0.0}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, 10),
        ({"condition": "short_context"}, 3),
        ({"condition": "long_context"}, 20),
        ({"context": 0}, 0),
        ({"condition": "long_context", "context": 5}, 5),
    ],
)
@pytest.mark.parametrize("history", HISTORIES)
def test_the_last_trials_of_the_window_are_retold_with_their_pictures(settings, told, history):
    place = make("line_ratio", modality="all", history=history, **settings)
    turns, observation = lived(place, until=33 + 25)
    prompt = place.render(observation, turns)
    assert len(prompt.images) == told + 1
    if history == "prompt":
        assert len(prompt.messages) == 1
    else:
        assert [len(m.images) for m in prompt.messages] == [1, 0] * told + [1]
    shown = [drawing.ratio_in(png) for png in prompt.images]
    values = [turn.observation["value"] for turn in turns[len(turns) - told :]]
    assert shown == pytest.approx([*values, observation["value"]])
    for k in range(1, told + 2):
        assert f"picture {k}" in prompt.text
    past, seen = place.read(prompt.messages)
    assert seen == observation
    assert past == [
        Turn(dict(turn.observation), None, None, past[i].text, turn.response)
        for i, turn in enumerate(turns[len(turns) - told :])
    ]


@pytest.mark.parametrize("first", [33, 66, 99, 198])
def test_nothing_is_carried_over_to_another_window_or_pass(first):
    place = make("marker_location", modality="all")
    turns, observation = lived(place, until=first)
    assert not place.recalled(turns, observation)
    assert place.render(observation, turns).hash == place.render(observation, []).hash
    turns, observation = lived(place, until=first + 1)
    assert place.recalled(turns, observation) == turns[-1:]


def test_who_reads_a_picture_looks_at_it():
    """What is drawn counts, not what the session would have shown."""
    pictures = {
        "marker_location": (drawing.marker(0.77), 0.77),
        "line_ratio": (drawing.two_lines(0.41, True, 12.0), 0.41),
        "maze_distance": (drawing.maze([(2, 2), (3, 2), (4, 2), (4, 3)]), np.sqrt(5.0)),
    }
    for task, (image, value) in pictures.items():
        place = make(task, modality="image")
        observation, _ = place.reset(seed=1)
        (message,) = place.render(observation, []).messages
        other = Message("user", message.content, (drawing.png(image),))
        _, seen = place.read([other])
        assert seen == {**observation, "value": value}
        assert observation["value"] != value


def test_a_picture_shows_what_words_tell():
    for task in VISUAL:
        place = make(task, modality="text+image", continuous=True)
        place.reset(seed=2)
        table = place.design.table
        for t in range(0, 99, 9):
            shown = {name: column[t].item() for name, column in table.items()}
            image = Image.open(io.BytesIO(place.picture(shown)))
            assert image.size == (512, 512)
            assert place._value_told(place._text(shown)) == shown["value"]


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


def test_answers_are_parsed_strictly():
    place = make("marker_location")
    observation, _ = place.reset(seed=0)
    for said in ("1.01", "-0.1", "0.37%", "about 0.4", "a third", "0.4 or 0.5"):
        answer = place.parse(said, observation)
        assert (answer.outcome, answer.response) == (Outcome.MALFORMED, None), said
    assert place.parse("1.01", observation).note == "expected a number from 0 to 1"
    assert place.parse("0.37", observation).response == 0.37
    assert place.parse("37%", observation).response == 0.37
    assert make("duration").parse("601", {}).outcome is Outcome.MALFORMED
    assert make("duration").parse("12 seconds", {}).outcome is Outcome.MALFORMED
    with pytest.raises(ValueError, match=r"Responses of marker_location are numbers from 0 to 1"):
        place.step(1.2)


def table_of(place, **changes):
    columns = {name: column[0] for name, column in drawn(place).items()}
    frame = pd.DataFrame({**columns, "subject": "a", "trial": range(place.n_trials)})
    return frame.assign(response=frame["value"]).assign(**changes)


def test_a_file_needs_window_value_and_response_alone():
    place = make("maze_distance", modality="image", condition="constant_noise")
    whole = table_of(place)
    bare = whole[["subject", "trial", "window", "value", "response"]]
    trials = Trials.from_frame(bare, environment=place).frame
    for name in ("modality", "blur", "condition", "unit", "ceiling"):
        assert (trials[name] == whole[name]).all(), name
    assert trials["item"].tolist() == [*range(33)] * 3
    with pytest.raises(ValueError, match="have a column 'window'"):
        Trials.from_frame(bare.drop(columns="window"), environment=place)
    every = make("maze_distance", modality="all")
    with pytest.raises(ValueError, match="have a column 'modality'"):
        Trials.from_frame(table_of(every).drop(columns="modality"), environment=every)


def test_a_known_mind_sees_the_pictures_it_is_shown():
    model = AGENTS["linear_observer"]
    theta = [{"w": 1.0, "b": 0.0}.get(name, 1e-6) for name in model.parameters.names]
    mind = model.from_theta(np.array(theta))
    place = make("marker_location", modality="image", repeats=1, condition="gradual_noise")
    speaker = Synthetic(mind, place, 5)
    alone = play(mind, make("marker_location", **place.settings), 5, 0).frame
    for trial in (0, 7, 32):
        turns, observation = lived_as(place, alone, trial)
        prompt = place.render(observation, turns)
        said = asyncio.run(speaker.complete(prompt, settings=Sampling(seed=0))).text
        assert float(said) == alone["response"][trial]
        shown = Message("user", prompt.messages[0].content, _last_replaced(prompt.images, 0.05))
        other = type(prompt)((shown,))
        said = asyncio.run(speaker.complete(other, settings=Sampling(seed=0))).text
        assert float(said) == pytest.approx(0.05, abs=1e-4)


def lived_as(place, frame, until):
    observation, _ = place.reset(options={"design": place.draw(session_stream(5, 0))})
    turns = []
    for response in frame["response"][:until]:
        turns.append(Turn(observation, None, None, place.say(response, observation), response))
        observation, *_ = place.step(float(response))
    return turns, observation


def _last_replaced(images, location):
    return (*images[:-1], drawing.png(drawing.marker(location)))
