from dataclasses import replace

import numpy as np
import pytest

from knownminds.environments import Outcome, session_stream
from knownminds.llm_adapters import Synthetic
from knownminds.validation.channel import channel_study as channels
from knownminds.validation.engine.study import Rows
from knownminds.validation.power.audit import audit, say

PLACE, MODEL = "instrumental_learning", "rescorla_wagner_dual"
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
    """Says the same again where the agent would have changed its choice, once in a session."""

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
    def seated(agent, environment, seed, address, contaminants):
        return kind(agent, environment, seed, *address, contaminants=contaminants)

    monkeypatch.setattr(channels, "participant", seated)


def channel(contaminants, *, subjects, seed=0, out=None, **settings):
    return audit(
        "channel", environment=PLACE, subjects=subjects, trials=48, seed=seed, out=out, workers=1,
        settings={"model": MODEL, "contaminants": list(contaminants), **settings},
    )  # fmt: skip


def rows_of(result, cell):
    return result.rows[result.rows["cell"] == cell].reset_index()


def verdict(result, contaminants, name):
    return result.verdicts[f"{contaminants}, {name}"].word


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("channel") / "out"


@pytest.fixture(scope="module")
def spoken(folder):
    return channel(SETS, subjects=12, out=folder)


# What comes through


def test_where_every_answer_is_read_words_and_direct_path_are_identical(spoken):
    for c, label in enumerate(SETS[:2]):
        trials = spoken["Trials"].loc[label]
        assert trials["trials"] == 12 * 48
        assert trials["not read"] == trials["differ"] == trials["failed"] == 0
        assert trials["estimates differ"] == 0.0
        assert verdict(spoken, label, "trials") == "confirmed"
        assert verdict(spoken, label, "bounds") == "not judged"
        rows = rows_of(spoken, c)
        for name in NAMES:
            np.testing.assert_array_equal(rows[name], rows[f"direct_{name}"])
            np.testing.assert_array_equal(rows[f"low_{name}"], rows[f"direct_low_{name}"])
            np.testing.assert_array_equal(rows[name], rows[f"highest_{name}"])


def test_with_contaminants_every_trial_is_accounted_for_at_the_rates_of_the_dials(spoken):
    rows, label = rows_of(spoken, 2), spoken["Trials"].index[2]
    counts = {o.value: int(rows[f"n_{o.value}"].sum()) for o in Outcome}
    assert sum(counts.values()) == spoken["Trials"].loc[label, "trials"] == 12 * 48
    table = spoken["Outcomes"].loc[label]
    assert dict(table["trials"]) == {name: counts[name] for name in table.index}
    assert set(table.index) == {"ok", "repaired", "malformed", "refused", "truncated"}
    assert (table["trials"] > 0).all()
    assert counts["empty"] == counts["error"] == 0
    assert table["expected"].sum() == pytest.approx(1)
    assert ((table["low"] < table["share"]) & (table["share"] < table["high"])).all()
    assert verdict(spoken, label, "outcomes") == "confirmed"
    assert spoken["Trials"].loc[label, "not read"] == 576 - counts["ok"] - counts["repaired"]


def test_the_bounds_lie_around_the_estimates_and_cover_at_least_as_often(spoken):
    rows, label = rows_of(spoken, 2), spoken["Trials"].index[2]
    for name in NAMES:
        assert (rows[f"lowest_{name}"] <= rows[name]).all()
        assert (rows[name] <= rows[f"highest_{name}"]).all()
        assert (rows[f"bounds_low_{name}"] < rows[f"low_{name}"]).mean() > 0.9
    for name, scores in spoken["Intervals at 90%"].loc[label].iterrows():
        for path, column in (("", "in words covers"), ("bounds_", "bounds cover")):
            low, high = rows[f"{path}low_{name}"], rows[f"{path}high_{name}"]
            assert scores[column].value == pytest.approx(
                rows[f"true_{name}"].between(low, high).mean()
            )
        assert scores["width of bounds"].value == pytest.approx((high - low).mean())
        assert scores["bounds cover"].value >= scores["in words covers"].value
    # Twelve subjects confirm or leave open, as chance has it; they cannot refute.
    words = ("confirmed", "between confirmed and not confirmed")
    assert verdict(spoken, label, "bounds") in words


def test_the_same_agents_speak_with_each_set_of_contaminants(spoken):
    clean, dirty = (rows_of(spoken, c) for c in (0, 2))
    for name in NAMES:
        np.testing.assert_array_equal(clean[f"true_{name}"], dirty[f"true_{name}"])
        np.testing.assert_array_equal(clean[f"direct_{name}"], dirty[f"direct_{name}"])


def test_where_every_subject_failed_nothing_is_confirmed(folder, spoken):
    rows = Rows.read(folder)
    address = ["cell", "replicate", "subject", "seconds"]
    failed = rows.frame[address].assign(status="failed", message="planted")
    result = say(Rows(rows.study, failed, rows.versions))
    assert (result.attempted, result.failed) == (36, 36)
    assert result["Messages"].loc["planted", "subjects"] == 36
    assert {one.word for one in result.verdicts.values()} == {"not judged"}
    assert not result.figures


# Negative controls


def test_a_speaker_that_says_something_else_once_is_found_out(monkeypatch):
    speak_as(Dull, monkeypatch)
    result = channel(["none"], subjects=3)
    trials = result["Trials"].loc["none"]
    assert trials["differ"] >= 3  # what follows the odd choice may differ as well
    assert trials["estimates differ"] > 0
    assert verdict(result, "none", "trials") == "not confirmed"
    assert verdict(result, "none", "outcomes") == "confirmed"


@pytest.mark.long
def test_answers_missing_not_at_random_mislead_the_plain_interval_and_not_the_bounds(monkeypatch):
    speak_as(Shy, monkeypatch)
    result = channel(["none"], subjects=40, seed=2, beta=2.0)
    trials = result["Trials"].loc["none"]
    assert 0.1 < trials["not read"] / trials["trials"] < 0.4
    covers = result["Intervals at 90%"].loc["none"]
    # Of 40 intervals at 90%, 36 hold the truth with standard deviation 1.9: 0.9 - 3.5 * 0.047.
    limit = 0.9 - 3.5 * np.sqrt(0.9 * 0.1 / 40)
    assert covers.loc["beta", "direct covers"].value > limit
    assert covers.loc["beta", "in words covers"].value < limit
    assert all(score.value > limit for score in covers["bounds cover"])
    assert verdict(result, "none", "bounds") == "confirmed"
    assert verdict(result, "none", "trials") == "confirmed"  # with the same answers withheld
