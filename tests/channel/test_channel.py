import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import Contaminants
from knownminds.environments import Outcome, make, session_stream
from knownminds.llm_adapters import Synthetic
from knownminds.validation.channel import channel_study as channels
from knownminds.validation.channel.channel_study import (
    channel,
    expected_rates,
    parse_contaminants,
    read_channel,
    told,
)
from knownminds.validation.engine import engine as running
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.engine.verdicts import judge_bounds, judge_outcomes, judge_trials
from knownminds.validation.report import page_of, read_result, render, report, write_report

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


def test_also_around_unread_answers_no_trial_differs(spoken):
    entry = spoken[0].entries[2]
    assert entry.missing > 50
    assert entry.differing == 0
    assert entry.same.word == "confirmed"


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


def test_several_sessions_in_chat_with_thoughts_lapses_and_most_likely_parameters():
    place = make(PLACE, n_visits=4, history="chat", reasoning="chain_of_thought")
    found = channel(
        place,
        "rescorla_wagner",
        contaminants=["verbosity=0.5", DIRTY],
        subjects=3,
        sessions=2,
        lapse=0.1,
        truth={"kappa": 0.2},
        fixed={"kappa": 0.2},
        fit_lapse=True,
        method="mle",
        seed=4,
        workers=1,
    )
    for entry in found.entries:
        assert entry.trials == 3 * 2 * 16
        assert entry.same.word == entry.agreed.word == "confirmed"
        assert [held.name for held in entry.parameters] == ["alpha", "beta", "lapse"]
        assert entry.rates["count"].tolist()[1] == 0  # behind thoughts nothing is taken off


# Negative controls


def test_a_speaker_that_says_something_else_once_is_found_out(monkeypatch):
    speak_as(Dull, monkeypatch)
    found = channel(PLACE, contaminants=["none"], subjects=3, trials=48, workers=1)
    entry = found.entries[0]
    assert entry.differing >= 3  # what follows the odd choice may differ as well
    assert entry.apart > 0
    assert entry.same.word == "not confirmed"
    assert entry.agreed.word == "confirmed"


def test_rates_that_are_not_those_of_the_dials_are_found_out(monkeypatch):
    def seated(mind, environment, seed, address, contaminants):
        more = replace(contaminants, malformed=0.15)
        return Synthetic(mind, environment, seed, *address, contaminants=more)

    monkeypatch.setattr(channels, "participant", seated)
    found = channel(
        PLACE, contaminants=["malformed=0.05"], subjects=6, trials=48, truth={"beta": 3}, workers=1
    )
    assert found.entries[0].agreed.word == "not confirmed"
    assert "malformed" in str(found.entries[0].agreed)
    assert found.entries[0].same.word == "confirmed"


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


def test_the_page_is_drawn_from_the_folder_alone(spoken, monkeypatch):
    found, folder = spoken

    def nothing(*_, **__):
        raise AssertionError("a report computes nothing")

    monkeypatch.setattr(running, "_finish", nothing)
    page = write_report(found, folder).read_text(encoding="utf-8")
    assert report(folder).read_text(encoding="utf-8") == page
    assert read_result(folder).to_json() == read_channel(folder).to_json() == found.to_json()
    assert page.count("<figcaption>") == 1
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    for entry in found.entries:
        for name, verdict in entry.verdicts.items():
            assert f"{entry.label}, {name} {verdict.word}. {' '.join(verdict.reasons)}" in text
    for _, head, rows in page_of(found).tables:
        assert rows
        assert all(len(row) == len(head) for row in rows)
        assert not {"nan", "None", "inf"} & {word for row in rows for word in row}
    again = channel(PLACE, contaminants=SETS, subjects=12, trials=48, out=folder)
    assert again.to_json() == found.to_json()


def test_a_study_in_which_everything_failed_still_has_a_page(spoken, tmp_path):
    study, identity = Study.read(spoken[1])
    (tmp_path / "parts").mkdir()
    (tmp_path / "study.json").write_text(json.dumps(identity))
    for batch in study.batches():
        rows = spoken_rows(spoken[1], study, batch)
        kept = rows[["cell", "replicate", "subject", "seconds"]]
        kept.assign(status="failed", message="planted").to_parquet(
            tmp_path / "parts" / study.part_name(batch), index=False
        )
    found = read_channel(tmp_path)
    assert all(v.word == "not judged" for e in found.entries for v in e.verdicts.values())
    page = render(page_of(found))
    assert "12 of 12 without an estimate: planted" in page
    assert 'class="good"' not in page


def spoken_rows(folder, study, batch):
    return pd.read_parquet(folder / "parts" / study.part_name(batch))


def test_the_command_names_the_whole_question(spoken):
    line = spoken[0].study.command_line()
    assert line.startswith("knownminds channel instrumental_learning --model rescorla_wagner_dual")
    for one in SETS:
        assert f"--contaminate {told(parse_contaminants(one))}" in line


def test_results_print_and_have_frame_and_json(spoken):
    found, _ = spoken
    text = str(found)
    assert "share of 90% intervals that hold the truth" in text
    assert text.count("trials: confirmed") == 3
    assert len(found.to_frame()) == 3 * 4
    content = json.loads(found.to_json())
    assert content["entries"][2]["contaminants"]["refusal"] == 0.05
    assert content["entries"][0]["verdicts"]["trials"]["verdict"] == "confirmed"
    assert content["entries"][0]["outcomes"][0]["expected"] == 1.0


def test_contaminants_are_read_as_they_are_written():
    for rates in (Contaminants(), Contaminants(malformed=1e-05, verbosity=0.3)):
        assert parse_contaminants(told(rates)) == rates
    for text, sentence in (
        ("refusals=0.1", "Nearest: refusal"),
        ("lapse=0.1", "no contaminant of answers named 'lapse'"),
        ("refusal", "Contaminants read malformed=0.05"),
        ("refusal=0.1,refusal=0.2", "each name once"),
        ("refusal=often", "The rate of refusal is a number; got 'often'"),
        ("refusal=2", "Contaminant rates lie in"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            parse_contaminants(text)


def test_misuse_is_answered_with_one_sentence(tmp_path):
    for given, sentence in (
        ({"contaminants": []}, "needs a set of contaminants"),
        ({"contaminants": [Contaminants(lapse=0.1)]}, "Give it as lapse"),
        ({"method": "hierarchical"}, "no method named 'hierarchical'"),
        ({"model": "random_responder"}, "no parameter left to estimate"),
        ({"subjects": 0}, "at least 1; got 0"),
        ({"truth": {"beta": -1}}, "beta lies in"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            channel(PLACE, **given, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_dials_say_what_to_expect():
    rates = Contaminants(malformed=0.1, refusal=0.2, truncation=0.3, verbosity=0.5)
    bare = expected_rates(rates, make(PLACE))
    assert bare["repaired"] == bare["ok"] == pytest.approx(0.2)
    assert (bare["malformed"], bare["refused"], bare["truncated"]) == (0.1, 0.2, 0.3)
    assert sum(bare.values()) == pytest.approx(1.0)
    thought = expected_rates(rates, make(PLACE, reasoning="step_back"))
    assert thought["repaired"] == 0.0
    assert thought["ok"] == pytest.approx(0.4)


def test_the_table_of_verdicts_on_the_channel():
    assert judge_trials(0, 100, 0.0).word == "confirmed"
    assert judge_trials(0, 100, np.nan).word == "confirmed"
    assert judge_trials(1, 100, 0.0).word == "not confirmed"
    assert judge_trials(0, 100, 1e-9).word == "not confirmed"
    assert judge_trials(0, 0, np.nan).word == "not judged"
    half = {"ok": 0.5, "refused": 0.5}
    assert judge_outcomes({"ok": 50, "refused": 50}, half, 100, 0.01).word == "confirmed"
    assert judge_outcomes({"ok": 50, "refused": 50}, half, 101, 0.01).word == "not confirmed"
    assert judge_outcomes({"ok": 80, "refused": 20}, half, 100, 0.01).word == "not confirmed"
    never = {"ok": 1.0, "refused": 0.0}
    assert judge_outcomes({"ok": 99, "refused": 1}, never, 100, 0.01).word == "not confirmed"
    assert judge_outcomes({"ok": 0, "refused": 0}, never, 0, 0.01).word == "not judged"
    plain = {"beta": 0.5}
    for share, word in (
        (0.95, "confirmed"),
        (0.87, "between confirmed and not confirmed"),
        (0.85, "not confirmed"),
    ):
        held = judge_bounds({"beta": (share, 0.02)}, plain, n=100, missing=9)
        assert held.word == word
        assert "50% (beta)" in str(held)
    for given in ({"missing": 0}, {"n": 9}, {"failed": 0.06}):
        least = {"n": 100, "missing": 9} | given
        assert judge_bounds({"beta": (0.5, 0.02)}, plain, **least).word == "not judged"
