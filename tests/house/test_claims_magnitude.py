"""Every sentence of magnitude tables and their pages, of small results of all shapes."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.magnitude import REPORT
from magnitude_sets import answers_of

from knownminds.environments import CONDITIONS, make
from knownminds.inference.magnitudes.consistency_score import ABLATIONS
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL
from knownminds.validation.magnitudes import magnitude_page as page_module
from knownminds.validation.magnitudes import magnitude_table as table_module
from knownminds.validation.magnitudes import magnitude_task_page as task_page_module
from knownminds.validation.magnitudes.magnitude_page import magnitude_page
from knownminds.validation.magnitudes.magnitude_table import magnitude_table, read_magnitude
from knownminds.validation.magnitudes.magnitude_task_page import _examples, task_pages

SOME = ("base", *ABLATIONS)
DRAWN = ("composites", "against_error", "consistency", "stimuli", "responses", "prior_weights",
         "trajectories", "cue_weights")  # fmt: skip


def prompts_of(task):
    """By condition: the experiment, and the words of a first trial as it is and in the base."""
    found, plain = {}, ""
    for condition in CONDITIONS:
        if condition in ("constant_noise", "gradual_noise") and task not in MULTIMODAL:
            continue
        modality = "text+image" if task in MULTIMODAL else "text"
        place = make(task, condition=condition, modality=modality)
        seen, _ = place.reset(seed=1)
        words = "\n".join(m.content for m in place.render(seen, []).messages)
        plain = plain or words
        found[condition] = (place, plain, words)
    return found


def prove(monkeypatch, tmp_path, frame, pages=False, fits=False, **options):
    """Check all that a table says, as it is and as it is read back."""
    if not fits:  # of which no sentence speaks, and which take long
        none = pd.DataFrame(columns=table_module.MAYBE["fits"])
        monkeypatch.setattr(table_module, "_fits", lambda *args: none)
    for name in DRAWN:
        module = page_module if hasattr(page_module, name) else task_page_module
        monkeypatch.setattr(module, name, lambda *args: "")
    table = magnitude_table(frame, workers=1, **{"lines": 0} | options)
    table.save(tmp_path)
    said = []
    for one in (table, read_magnitude(tmp_path)):
        page = magnitude_page(one)
        lines = [line for line in str(one).split("\n") if line and not re.search(r"\S  +\S", line)]
        lines = [line for line in lines if not re.match(r"^ ", line)]
        lines += [f"{f.name} {f.word}. {f.why}" for f in page.findings]
        lines += [caption for caption, _ in page.figures] + list(page.notes)
        lines += list(page.sentences)
        said.append(lines)
    assert said[0] == said[1]
    content = json.loads(table.to_json())
    facts = SimpleNamespace(content=content, rows=frame, conditions=list(CONDITIONS))
    check(REPORT, said[0], facts)
    for task, page in task_pages(table).items() if pages else ():
        facts.task, facts.prompts = task, prompts_of(task)
        lines = [*page.sentences, *page.notes, *(caption for caption, _ in page.figures)]
        lines += [text for name, text in page.asked if name == "trials"]
        check(REPORT, lines, facts)
        for title, *_ in _examples(task):
            for part in re.findall(r"trial \d+, blur \d+ px", title):
                facts.condition = title.partition(",")[0].replace(" ", "_")
                check(REPORT, [part], facts)
    return "\n".join(said[0])


@pytest.fixture(scope="module")
def whole():
    adapting = {name: 0.45 for name in CONDITIONS} | {"base": 0.15}
    return pd.concat(
        [
            answers_of("steady", conditions=SOME, prior=0.2, repeats=1, seed=2),
            answers_of("turner", conditions=SOME, prior=adapting, repeats=1),
        ],
        ignore_index=True,
    )


def test_two_participants_in_all_tasks(whole, monkeypatch, tmp_path):
    text = prove(monkeypatch, tmp_path, whole, pages=True, rounds=4, replicates=200)
    assert "score at least this consistency" in text
    assert "68% intervals of 4 bootstraps" in text


def test_straight_lines_beside_the_evidence(whole, monkeypatch, tmp_path):
    base = whole[whole["condition"] == 0]
    text = prove(monkeypatch, tmp_path, base, rounds=0, replicates=0, lines=19)
    assert "steady: more evidence for a Bayesian observer than straight lines" in text
    assert "of 4 tasks; by chance it is 0.2." in text
    one = base[(base["model"] == "turner") & (base["environment"] == "duration")]
    text = prove(monkeypatch, tmp_path, one, rounds=0, replicates=0, lines=39)
    assert "of 1 task; by chance it is 0.05." in text


def test_without_bootstraps_or_known_minds_nothing_is_said_of_them(whole, monkeypatch, tmp_path):
    one = whole[whole["model"] == "turner"]
    text = prove(monkeypatch, tmp_path, one, rounds=0, replicates=0)
    assert "intervals of" not in text
    assert "ootstrap" not in text
    assert "simulated observers" not in text
    text = prove(monkeypatch, tmp_path, one, rounds=0, replicates=100)
    assert "without an interval" in text
    assert "simulated observers" in text
    assert "no known minds beside it" in prove(monkeypatch, tmp_path, one, rounds=2, replicates=0)


def test_missing_answers_and_a_modality_without_any(whole, monkeypatch, tmp_path):
    some = whole["condition"].isin([CONDITIONS.index(c) for c in ("base", "verbal")])
    frame = whole[(whole["model"] == "steady") & some].copy()
    gone = np.random.default_rng(0).random(len(frame)) < 0.1
    gone |= ((frame["environment"] == "line_ratio") & (frame["modality"] == 2)).to_numpy()
    frame = frame.assign(outcome=np.where(gone, "malformed", "ok"))
    frame.loc[gone, "response"] = np.nan
    frame.loc[frame.index[~gone][:3], "response"] = 0.0
    text = prove(monkeypatch, tmp_path, frame, rounds=2, replicates=50)
    assert "no composite. It lacks A: no answers in line_ratio with text+image" in text


def test_a_part_of_the_data_and_nothing_of_it(whole, monkeypatch, tmp_path):
    ratio = whole[(whole["model"] == "steady") & (whole["environment"] == "line_ratio")]
    verbal = ratio[(ratio["condition"] == CONDITIONS.index("verbal")) & (ratio["modality"] == 0)]
    text = prove(monkeypatch, tmp_path / "a", verbal, pages=True, fits=True, rounds=2)
    assert "condition base: not played" in text
    assert "none, no task was played in all modalities" in text
    silent = verbal.assign(response=np.nan, outcome="refused")
    text = prove(monkeypatch, tmp_path / "b", silent, rounds=2)
    assert "left out and counted: 33." in text
    alone = verbal.iloc[:1]
    assert "magnitude estimation, 1 trial\n" in prove(monkeypatch, tmp_path / "c", alone, rounds=2)
