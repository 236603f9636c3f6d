import asyncio
import io
from itertools import pairwise
from pathlib import Path

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
    check_environment,
    make,
    session_stream,
)
from knownminds.environments.magnitudes import drawing, line_ratio, maze
from knownminds.environments.words.told_history import HISTORIES, REASONINGS
from knownminds.llm_adapters import NotCapable, Sampling, check_capable
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


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("task", TASKS)
def test_every_condition_keeps_the_contract(task, condition):
    if task == "duration" and condition in NOISE:
        return
    i = CONDITIONS.index(condition) + TASKS.index(task)
    place = make(
        task,
        modality="text" if task == "duration" else ("text+image", "image")[i % 2],
        condition=condition,
        windows=("short", "long"),
        n_values=4,
        repeats=1,
        history=HISTORIES[i // 2 % 2],
        reasoning=REASONINGS[i % 3],
    )
    check_environment(place, 10 + i)


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


def test_a_trial_without_an_answer_is_retold_as_one():
    place = make("maze_distance", modality="text+image")
    turns, observation = lived(place, until=5)
    turns[2] = Turn(turns[2].observation, None, None, "no idea")
    prompt = place.render(observation, turns)
    assert len(prompt.images) == 6
    assert "No number could be read" in prompt.text
    past, _ = place.read(prompt.messages)
    assert [turn.response is None for turn in past] == [False, False, True, False, False]
    assert past[2].observation["value"] == turns[2].observation["value"]


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


def test_words_and_picture_that_contradict_each_other_are_told():
    place = make("marker_location", modality="text+image")
    observation, _ = place.reset(seed=1)
    (message,) = place.render(observation, []).messages
    wrong = Message("user", message.content, (drawing.png(drawing.marker(0.05)),))
    with pytest.raises(ValueError, match=r"on trial 1 they tell 0\.\d+ and 0\.05"):
        place.read([wrong])
    for images in ((), message.images * 2):
        with pytest.raises(ValueError, match=f"got {len(images)} for 1"):
            place.read([Message("user", message.content, images)])


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


def test_what_steers_is_said_at_the_beginning():
    words = {}
    for condition in CONDITIONS:
        if condition not in NOISE:
            place = make("maze_distance", condition=condition)
            observation, _ = place.reset(seed=0)
            words[condition] = place.render(observation, []).text
    assert "Bayesian observer" in words["verbal"]
    assert "between 3 and 9 cells" in words["numeric"]
    assert "between 3 and 6 cells" in words["numeric_biased"]
    plain = {c: w for c, w in words.items() if c not in ("verbal", "numeric", "numeric_biased")}
    assert not any("noisy" in text for text in plain.values())
    assert plain["base"] == plain["short_context"] == plain["long_context"]
    place = make("duration", condition="numeric_biased", biased_range=(0.5, 1.5))
    turns, observation = lived(place, until=40)
    assert "between 40 and 70 seconds" in place.render(observation, turns).text
    assert "between 40 and 70 seconds" not in place.render(turns[0].observation, []).text


def test_continuous_values_fill_the_window():
    for task in TASKS:
        place = make(task, continuous=True, n_values=50, repeats=20)
        value = drawn(place)["value"][0]
        for k, (low, high) in enumerate(place.ranges.values()):
            own = (value[1000 * k : 1000 * (k + 1)] - low) / (high - low)
            # A quartile of 1000 uniform numbers has a standard error of .014; values are rounded.
            assert np.quantile(own, (0.25, 0.5, 0.75)) == pytest.approx((0.25, 0.5, 0.75), abs=0.06)
            assert len(np.unique(own)) > 25


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


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("marker_location", {"modality": "sound"}, "text, image, text.image or all; got 'sound'"),
        ("duration", {"modality": "image"}, "modality of duration is text; got 'image'"),
        ("duration", {"condition": "constant_noise"}, "has none. Take another condition"),
        ("maze_distance", {"condition": "gradual_noise"}, 'Take the modality "image"'),
        ("line_ratio", {"condition": "verbl"}, "Nearest: verbal"),
        ("line_ratio", {"modality": "image", "blur": 4}, "blur belongs to the conditions"),
        (
            "line_ratio",
            {"modality": "image", "condition": "constant_noise", "blur": 40},
            "from 0 to 20; got 40",
        ),
        ("duration", {"windows": ("short", "huge")}, "short, medium or long, each once"),
        ("duration", {"windows": ()}, "one or more of"),
        ("duration", {"n_values": 1}, "n_values is a whole number from 2 on; got 1"),
        ("duration", {"repeats": 0.5}, "repeats is a whole number from 1 on"),
        ("duration", {"context": -1}, "context is a whole number from 0 on"),
        ("duration", {"biased_range": (1, 0)}, "biased_range is a lower and a higher number"),
        ("duration", {"ranges": {"short": (1, 2)}}, "short, medium and long"),
        (
            "maze_distance",
            {"ranges": {"short": (1, 5), "medium": (5, 9), "long": (9, 40)}},
            "lie between 1 and 19; the range of long is 9 to 40",
        ),
        ("maze_distance", {"history": "email"}, "history is one of prompt, chat"),
        ("maze_distance", {"templates": "no_such.toml"}, "no_such.toml is not"),
    ],
)
def test_settings_that_make_no_sense_are_told(task, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(task, **settings)


def table_of(place, **changes):
    columns = {name: column[0] for name, column in drawn(place).items()}
    frame = pd.DataFrame({**columns, "subject": "a", "trial": range(place.n_trials)})
    return frame.assign(response=frame["value"]).assign(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"response": 1.2}, "Responses of marker_location go from 0 to 1; row 1"),
        ({"response": "long"}, "response"),
        ({"value": 0.05}, "Values of the window 'short' of marker_location go from 0.1 to 0.5"),
        ({"window": 3}, "'window' of marker_location with these settings is 0 or 1 or 2; row 1"),
        ({"condition": 1}, "'condition' of .* is 0; row 1"),
        ({"modality": 1}, "'modality' of .* is 0"),
        ({"blur": 8.0}, "'blur' of .* is 0 without a picture"),
        ({"item": 33}, "'item' of .* is a whole number from 0 to 32"),
        ({"unit": 18.0}, "'unit' of .* is 1"),
        ({"reward": 1.0}, "pays no rewards"),
    ],
)
def test_trials_that_the_task_cannot_have_produced_are_told(changes, sentence):
    place = make("marker_location")
    Trials.from_frame(table_of(place), environment=place)
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(table_of(place, **changes), environment=place)


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


def test_pictures_that_are_sent_again_are_not_drawn_again_nor_all_kept():
    place = make("marker_location", modality="image", repeats=1)
    times = []
    draw = place._drawn
    place._drawn = lambda observation: times.append(1) or draw(observation)
    observation, _ = place.reset(seed=0)
    turns = []
    shown = 0
    for _ in range(22):
        shown += len(place.render(observation, turns).images)
        turns.append(Turn(observation, None, None, "", 0.5))
        observation, *_ = place.step(0.5)
    assert len(times) <= 22 < shown == 2 * sum(range(1, 12))
    assert len(place._pictures) <= place.context + 2
    maze.path.cache_clear()
    assert maze.path.cache_info().maxsize is not None
    assert drawing.marker_in.cache_info().maxsize is not None


def test_an_own_template_must_let_the_stimulus_be_found(tmp_path):
    ours = Path(line_ratio.__file__).with_suffix(".toml").read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(ours.replace("You estimate how long", "Judge how long"), encoding="utf-8")
    place = make("line_ratio", templates=str(own), modality="all", n_values=2, repeats=1)
    check_environment(place)
    observation, _ = place.reset(seed=0)
    assert place.render(observation, []).text.startswith("[user]\nJudge how long")
    for old, new, sentence in (
        ("The lines:\n{stimulus}\n", "The lines.\n", r"'question_text' must use \{stimulus\}"),
        ("({stimulus_in_line})", "({stimulus})", r"may use .*\{stimulus\}"),
        ("between {low} and {high}", "somewhere", "'numeric' must use"),
        ("Trial {trial}, picture {picture}. Your", "Trial {trial}. Your", "must use {picture}"),
    ):
        own.write_text(ours.replace(old, new), encoding="utf-8")
        assert own.read_text(encoding="utf-8") != ours
        with pytest.raises(ValueError, match=sentence):
            make("line_ratio", templates=str(own))


def test_who_cannot_see_is_not_shown_pictures():
    class Blind:
        model = "blind-1"
        capabilities = Synthetic.capabilities.__class__()

    assert make("marker_location", modality="all").pictures
    assert not make("duration").pictures
    with pytest.raises(NotCapable, match="blind-1 is to be shown pictures"):
        check_capable(Blind(), Sampling(), images=True)


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


def test_a_known_mind_remembers_more_than_the_prompts_tell():
    model = AGENTS["kalman_observer"]
    theta = model.parameters.draw(np.random.default_rng(3), 1)[0]
    mind = model.from_theta(theta)
    place = make("maze_distance", condition="short_context", windows=("medium", "long"))
    speaker = Synthetic(mind, place, 5)
    alone = play(mind, make("maze_distance", **place.settings), 5, 0).frame
    for trial in (20, 32, 33, 34, 65):
        turns, observation = lived_as(place, alone, trial)
        prompt = place.render(observation, turns)
        said = asyncio.run(speaker.complete(prompt, settings=Sampling(seed=0))).text
        assert float(said) == alone["response"][trial]


def lived_as(place, frame, until):
    observation, _ = place.reset(options={"design": place.draw(session_stream(5, 0))})
    turns = []
    for response in frame["response"][:until]:
        turns.append(Turn(observation, None, None, place.say(response, observation), response))
        observation, *_ = place.step(float(response))
    return turns, observation


def _last_replaced(images, location):
    return (*images[:-1], drawing.png(drawing.marker(location)))
