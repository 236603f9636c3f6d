from dataclasses import replace

import numpy as np
import pytest

from knownminds.environments import Outcome, session_stream
from knownminds.llm_adapters import Synthetic
from knownminds.validation.channel import channel_study as channels
from knownminds.validation.channel.channel_study import (
    channel,
)
from knownminds.validation.engine.study import Rows, Study

PLACE = "instrumental_learning"
DIRTY = "refusal=0.05,malformed=0.05,truncation=0.05,verbosity=0.2"
SETS = ("none", "verbosity=0.5", DIRTY)
NAMES = ("alpha_positive", "alpha_negative", "beta", "kappa")


class Shy(Synthetic):
    """Refuses whenever it would have named the machine that pays less."""

    async def complete(self, prompt, *, settings):
        reply = await super().complete(prompt, settings=settings)
        names = self.environment.draw(
            session_stream(self.seed, *self.address, settings.seed)
        ).labels["machines"]
        context, action = next(
            (c, pair.index(reply.text)) for c, pair in enumerate(names) if reply.text in pair
        )
        rates = self.environment.win_probability[context]
        if rates[action] < rates[1 - action]:
            return replace(reply, text="I'm sorry, but I can't help with that.")
        return reply


class Dull(Synthetic):
    """Says the same again where the mind would have changed its choice, once in a session."""

    async def complete(self, prompt, *, settings):
        reply = await super().complete(prompt, settings=settings)
        if len(prompt.messages[0].content.splitlines()) == 30:
            names = self.environment.draw(
                session_stream(self.seed, *self.address, settings.seed)
            ).labels["machines"]
            pair = next(pair for pair in names if reply.text in pair)
            return replace(reply, text=pair[1 - pair.index(reply.text)])
        return reply


def speak_as(kind, monkeypatch):
    def seated(mind, environment, seed, address, contaminants):
        return kind(mind, environment, seed, *address, contaminants=contaminants)

    monkeypatch.setattr(channels, "participant", seated)


def rows_of(folder, cell):
    study, identity = Study.read(folder)
    return Rows(study, folder, identity["versions"]).frame(cell=cell)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("channel") / "out"
    found = channel(PLACE, contaminants=SETS, subjects=12, trials=48, out=folder, workers=1)
    return found, folder


# What comes through


def test_where_every_answer_is_read_words_and_direct_path_are_identical(spoken):
    found, folder = spoken
    for c, entry in enumerate(found.entries[:2]):
        assert entry.trials == 12 * 48
        assert entry.missing == entry.differing == entry.failed == 0
        assert entry.apart == 0.0
        assert entry.same.word == "confirmed"
        assert entry.held.word == "not judged"
        rows = rows_of(folder, c)
        for name in NAMES:
            np.testing.assert_array_equal(rows[name], rows[f"direct_{name}"])
            np.testing.assert_array_equal(rows[f"low_{name}"], rows[f"direct_low_{name}"])
            np.testing.assert_array_equal(rows[name], rows[f"highest_{name}"])


def test_with_contaminants_every_trial_is_accounted_for_at_the_rates_of_the_dials(spoken):
    found, folder = spoken
    entry = found.entries[2]
    rows = rows_of(folder, 2)
    counts = {o.value: int(rows[f"n_{o.value}"].sum()) for o in Outcome}
    assert sum(counts.values()) == entry.trials == 12 * 48
    assert dict(zip(entry.rates["outcome"], entry.rates["count"], strict=True)) == counts
    assert counts["repaired"] > 0
    assert all(counts[name] > 0 for name in ("malformed", "refused", "truncated"))
    assert counts["empty"] == counts["error"] == 0
    assert entry.agreed.word == "confirmed"
    assert entry.missing == 12 * 48 - counts["ok"] - counts["repaired"]


def test_the_bounds_lie_around_the_estimates_and_cover_at_least_as_often(spoken):
    found, folder = spoken
    rows = rows_of(folder, 2)
    for name in NAMES:
        assert (rows[f"lowest_{name}"] <= rows[name]).all()
        assert (rows[name] <= rows[f"highest_{name}"]).all()
        assert (rows[f"bounds_low_{name}"] < rows[f"low_{name}"]).mean() > 0.9
    for held in found.entries[2].parameters:
        inside = (rows[f"bounds_low_{held.name}"] <= rows[f"true_{held.name}"]) & (
            rows[f"true_{held.name}"] <= rows[f"bounds_high_{held.name}"]
        )
        assert held.bounds.value == pytest.approx(inside.mean())
        assert held.bounds.value >= held.plain.value
    # Twelve subjects confirm or leave open, as chance has it; they cannot refute.
    assert found.entries[2].held.word in ("confirmed", "between confirmed and not confirmed")


def test_the_same_minds_speak_with_each_set_of_contaminants(spoken):
    clean, dirty = (rows_of(spoken[1], c) for c in (0, 2))
    for name in NAMES:
        np.testing.assert_array_equal(clean[f"true_{name}"], dirty[f"true_{name}"])
        np.testing.assert_array_equal(clean[f"direct_{name}"], dirty[f"direct_{name}"])


# Negative controls


def test_a_speaker_that_says_something_else_once_is_found_out(monkeypatch):
    speak_as(Dull, monkeypatch)
    found = channel(PLACE, contaminants=["none"], subjects=3, trials=48, workers=1)
    entry = found.entries[0]
    assert entry.differing >= 3  # what follows the odd choice may differ as well
    assert entry.apart > 0
    assert entry.same.word == "not confirmed"
    assert entry.agreed.word == "confirmed"


@pytest.mark.long
def test_answers_missing_not_at_random_mislead_the_plain_interval_and_not_the_bounds(monkeypatch):
    speak_as(Shy, monkeypatch)
    truth = {"beta": 2.0}
    found = channel(
        PLACE, contaminants=["none"], subjects=40, trials=48, truth=truth, seed=2, workers=1
    )
    entry = found.entries[0]
    assert 0.1 < entry.missing / entry.trials < 0.4
    held = {one.name: one for one in entry.parameters}
    # Of 40 intervals at 90%, 36 hold the truth with standard deviation 1.9: 0.9 - 3.5 * 0.047.
    limit = 0.9 - 3.5 * np.sqrt(0.9 * 0.1 / 40)
    assert held["beta"].direct.value > limit
    assert held["beta"].plain.value < limit
    assert all(one.bounds.value > limit for one in entry.parameters)
    assert entry.held.word == "confirmed"
    assert entry.same.word == "confirmed"  # with the same answers withheld


# What is kept, shown and asked
