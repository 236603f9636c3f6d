"""Stimuli of which no shortcut tells the value: the same values, told exactly, and decoupled."""

import re
from itertools import groupby

import numpy as np
import pytest

from knownminds.environments import ENVIRONMENTS, check_environment, make
from knownminds.environments.words.transcripts import load_recordings
from knownminds.validation.engine.study import Cell

VISUAL = ("marker_location", "line_ratio", "maze_distance")
TASKS = (*VISUAL, "duration")
SESSIONS = 24


def drawn(place, n=1, seed=0):
    return place.tables(np.random.default_rng(seed).random((n, place.n_draws)))


def told(place, table, session, trial):
    seen = {name: column[session, trial].item() for name, column in table.items()}
    return seen, place._text(seen)


def windows_of(place, n=SESSIONS, seed=0):
    """Values and words of each window, session by session."""
    table = drawn(place, n, seed)
    for window in range(3):
        for session in range(n):
            pairs = [told(place, table, session, 33 * window + k) for k in range(33)]
            yield window, [seen["value"] for seen, _ in pairs], [text for _, text in pairs]


@pytest.mark.parametrize("task", TASKS)
def test_published_stimuli_are_what_they_were_and_decoupled_ones_have_the_same_values(task):
    published, decoupled = make(task), make(task, stimuli="decoupled")
    assert published.settings["stimuli"] is None
    now = Cell(task, published.settings, "linear_observer")
    before = {k: v for k, v in published.settings.items() if k != "stimuli"}
    assert Cell(task, before, "linear_observer").data_key == now.data_key  # the same draws
    assert make(task, stimuli="published").settings == published.settings
    assert decoupled.settings["stimuli"] == "decoupled"
    assert published.fields == ENVIRONMENTS[task].fields
    slack = 0.06 if task == "duration" else 0.0  # pauses are told to .1 s, words as they come
    for one, other in zip(drawn(published)["value"], drawn(decoupled)["value"], strict=True):
        ends = [np.sort(values.reshape(3, 33), axis=1) for values in (one, other)]
        wanted = (
            ends[0]
            if task != "duration"
            else [np.repeat(np.linspace(*published.ranges[w], 11), 3) for w in published.windows]
        )
        assert np.abs(ends[1] - wanted).max() <= slack
    assert drawn(make(task, stimuli="published"), 2)["item"].tolist() == (
        drawn(published, 2)["item"].tolist()
    )


def test_no_line_tells_the_ratio_and_no_part_of_a_line_the_location():
    """In dashes. Published: the shorter line is the ratio, the part before is the location.

    The bound is what lengths can hide at all: with part = value * whole, and log(whole) even over
    log(L) - log(s / value), part and whole hang on the value equally little (r of logarithms .29
    in the window .1 to .5, .17 and .12), whatever is drawn; twice that for a marker, whose two
    parts and the whole must all hide it.
    """
    plain = make("line_ratio")
    table = drawn(plain, 1)
    lengths = [min(map(len, told(plain, table, 0, k)[1])) for k in range(33)]
    assert np.corrcoef(lengths, table["value"][0, :33])[0, 1] > 0.999
    most = {0: 0.4, 1: 0.27, 2: 0.2}
    # Four standard errors of a correlation over 24 x 33 stimuli are .14.
    error = 4 / np.sqrt(SESSIONS * 33)
    values, parts = {w: [] for w in most}, {w: [] for w in most}
    for window, own, words in windows_of(make("line_ratio", stimuli="decoupled")):
        values[window] += own
        parts[window] += [sorted(len(line.strip()) for line in pair) for pair in words]
    for window, bound in most.items():
        for column in np.log(np.array(parts[window])).T:
            r = np.corrcoef(column, np.log(values[window]))[0, 1]
            assert abs(r) < bound + error, (window, r)
    values, parts = {w: [] for w in most}, {w: [] for w in most}
    for window, own, words in windows_of(make("marker_location", stimuli="decoupled")):
        values[window] += own
        for (line,) in words:
            before, after = line.strip().split("0")
            parts[window].append((len(before), len(after), len(before) + len(after)))
    for window in most:
        for column in np.array(parts[window]).T:
            r = np.corrcoef(column, values[window])[0, 1]
            assert abs(r) < 0.48 + error, (window, r)


def test_the_steps_of_a_path_do_not_tell_its_distance_in_any_window_of_any_session():
    plain = [
        np.corrcoef(own, [sum(map(int, re.findall(r"\d+", line))) for (line,) in words])[0, 1]
        for _, own, words in windows_of(make("maze_distance"), 8)
    ]
    assert np.mean(plain) > 0.6
    worst = [
        abs(np.corrcoef(own, [sum(map(int, re.findall(r"\d+", line))) for (line,) in words])[0, 1])
        for _, own, words in windows_of(make("maze_distance", stimuli="decoupled"))
    ]
    assert max(worst) < 0.1


def seconds_of(lines):
    """Reckon a told dialogue by hand: words over rates, and pauses."""
    rates = {name: int(n) / 60 for name, n in re.findall(r"(\w+): (\d+) words a minute", lines[0])}
    total = 0.0
    for line in lines[1:]:
        name, said = line.split(": ", 1)
        total += sum(map(float, re.findall(r"\[([\d.]+)\]", said)))
        total += len(re.sub(r"\[[\d.]+\]", "", said).split()) / rates[name]
    return total


def test_words_do_not_tell_how_long_a_dialogue_took_and_words_rates_and_pauses_do():
    place = make("duration", stimuli="decoupled")
    rates, registers = [], set()
    for _, own, words in windows_of(place, 12):
        assert [seconds_of(lines) for lines in words] == pytest.approx(own, abs=0.006)
        counts = [len(re.sub(r"\[[\d.]+\]", "", " ".join(x[1:])).split()) for x in words]
        counts = [n - len(x) + 1 for n, x in zip(counts, words, strict=True)]  # without names
        assert abs(np.corrcoef(own, counts)[0, 1]) < 0.1
        rates += [int(n) for x in words for n in re.findall(r"(\d+) words a minute", x[0])]
    registers = set(drawn(place, 3)["register"].ravel().tolist())
    assert registers == {0, 1, 2}
    assert len(set(rates)) > 100
    assert 30 < min(rates) < 90 < 200 < max(rates) < 400
    plain = [
        np.corrcoef(own, [len(" ".join(x).split()) for x in words])[0, 1]
        for _, own, words in windows_of(make("duration"), 4)
    ]
    assert np.mean(plain) > 0.9


HEAD = '<?xml version="1.0"?><nite:root nite:id="x" xmlns:nite="http://nite.sourceforge.net/">'


def meeting(folder, speaker, words, name="ES9001a"):
    elements = [
        f'<w nite:id="{speaker}{i}" starttime="{start:.2f}" endtime="{end:.2f}">{word}</w>'
        for i, (start, end, word) in enumerate(words)
    ]
    elements.insert(1, '<w nite:id="p" starttime="9" endtime="9" punc="true">,</w>')
    elements.append('<vocalsound nite:id="v" starttime="1" endtime="2" type="laugh"/>')
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.{speaker}.words.xml"
    file.write_text(HEAD + "".join(elements) + "</nite:root>", encoding="utf-8")


def test_the_meeting_corpus_is_read_as_it_is_laid_out(tmp_path):
    """Words every .4 s of two speakers who take turns; .3 s long, silent between turns."""
    rng = np.random.default_rng(0)
    spoken = {"A": [], "B": []}
    for turn in range(60):
        who = "AB"[turn % 2]
        spoken[who] += [
            (4 * turn + 0.4 * i, 4 * turn + 0.4 * i + 0.3, f"w{rng.integers(10**6)}")
            for i in range(1 + turn % 5)
        ]
    for who, words in spoken.items():
        meeting(tmp_path / "words", who, words)
    found = load_recordings(str(tmp_path), 9.0, 20.0)
    (utterances,) = found.files
    assert [u.speaker for u in utterances] == ["A", "B"] * 30
    assert [u.start for u in utterances] == pytest.approx([4.0 * k for k in range(60)])
    assert [u.end - u.start for u in utterances] == pytest.approx(
        [0.4 * (k % 5) + 0.3 for k in range(60)]
    )
    texts = [[w for _, _, w in spoken[who]] for who in "AB"]
    for who, words in zip("AB", texts, strict=True):
        said = " ".join(u.words for u in utterances if u.speaker == who).replace(",", "")
        assert said.split() == words
    assert utterances[0].words.endswith(",")  # a mark stands behind its word
    place = make("duration", transcripts=str(tmp_path / "words"), n_values=3, repeats=1)
    check_environment(place)
    assert [k for k, _ in groupby(place.design.table["window"].tolist())] == [0, 1, 2]
