"""Stimuli of which no shortcut tells the value: the same values, told exactly, and decoupled."""

import re

import numpy as np
import pytest

from knownminds.environments import make

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
