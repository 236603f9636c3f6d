"""What `score` says is true of the rows, also of odd ones."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.score import REPORT

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.validation.data.measured_page import intervals, measured_page
from knownminds.validation.data.scores_of_trials import read_measured, score, told_row

MODEL = {
    "instrumental_learning": "rescorla_wagner",
    "two_step": "two_step_hybrid",
    "balloon_risk": "balloon_pumper",
    "restless_bandit": "change_point_observer",
    "temporal_discounting": "hyperbolic_discounter",
    "marker_location": "static_bayes_observer",
    "causal_inference": "network_reasoner",
    "causal_strength": "strength_judge",
}


def lived(place, subjects, sessions=1, seed=0, theta=None):
    agent = AGENTS[MODEL[place]]
    if theta is None:
        theta = agent.parameters.draw(np.random.default_rng(seed), subjects)
    frame = simulate(agent, np.repeat(theta, sessions, axis=0), place_of(place), seed).to_frame()
    number = frame["subject"].astype(int)
    frame["session"] = (number % sessions).astype(str)
    frame["subject"] = "s" + (number // sessions).astype(str)
    return frame


def place_of(place):
    if place == "instrumental_learning":
        return make(place, n_visits=6)
    return make(place, **({"n_balloons": 3} if place == "balloon_risk" else {}))


def without_answers(frame, rows):
    frame = frame.copy()
    for column in {"action", "response", "reward"} & set(frame):
        frame.loc[rows, column] = pd.NA if column == "action" else np.nan
    frame.loc[rows, "outcome"] = "malformed"
    return frame


def proved(frame, tmp_path, **options):
    """Score a table, save and read it, and prove every sentence of its text and page."""
    trials = Trials.from_frame(frame)
    measured = score(trials, **options)
    measured.save(tmp_path / "out")
    assert str(read_measured(tmp_path / "out")) == str(measured)
    content, table = measured.to_dict(), trials.frame
    numbers = {c: float for c in ("action", "response", "reward") if c in table}
    table = table.astype(numbers)
    by = options.get("by")
    sample = table[by] if by else pd.Series("", index=table.index)
    groups = table.groupby([table["environment"], sample], sort=False)
    outcomes = {}
    for (place, name), own in groups:
        outcomes.setdefault(place, {})[name] = own["outcome"].tolist()
    facts = SimpleNamespace(
        content=content,
        outcomes=outcomes,
        subjects={name: own["subject"].nunique() for name, own in table.groupby(sample)},
    )
    told = []
    for row in content["measures"]:
        own = (table["environment"] == row["environment"]) & (sample == row["sample"])
        facts.row, facts.trials = row, table[own]
        raw = {k: np.nan if v is None else v for k, v in row.items()}
        line = told_row(raw)
        told.append(line)
        check(REPORT, line.split("; ") if ". " not in line else [line.split("; ")[0]], facts)
    lines = str(measured).split("\n")
    assert lines[: len(told)] == told
    check(REPORT, lines[len(told) :], facts)
    page = measured_page(measured)
    check(REPORT, [page.title, *page.sentences, *page.notes], facts)
    check(REPORT, [caption for caption, _ in page.figures], facts)
    return measured, page


@pytest.mark.parametrize("place", ["causal_inference", "causal_strength"])
def test_judgements_of_causes_with_gaps(place, tmp_path):
    frame = lived(place, 6, seed=3)
    proved(without_answers(frame, frame.index[::9]), tmp_path)


@pytest.mark.parametrize("place", MODEL)
@pytest.mark.parametrize(("subjects", "sessions"), [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_of_any_shape(place, subjects, sessions, tmp_path):
    proved(lived(place, subjects, sessions, seed=3), tmp_path)


@pytest.mark.parametrize("place", ["instrumental_learning", "restless_bandit"])
def test_of_lost_answers_samples_and_failed_fits(place, tmp_path):
    frame = lived(place, 7, seed=4)
    frame["model"] = frame["subject"].map(lambda name: "abbcccc"[int(name[1:])])
    rng = np.random.default_rng(0)
    gone = (frame["model"] == "b") | ((frame["model"] == "c") & (rng.random(len(frame)) < 0.3))
    measured, page = proved(without_answers(frame, gone), tmp_path, by="model")
    # The sample whose fits failed stays in the list of the figure, in each panel.
    shown = [text for _, text in page.figures][-1]
    assert shown.count("no value") >= len(measured.table["measure"].unique())
    titles = [title for title, _, _ in page.tables]
    assert f"Outcomes by model: {place}" in titles
    [rows] = [rows for title, _, rows in page.tables if title.startswith("Outcomes by")]
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert intervals(measured)


def test_2807_of_3200_lost_trials_are_told(tmp_path):
    frame = lived("restless_bandit", 40, seed=5)
    gone = np.random.default_rng(1).permutation(len(frame)) < 2807
    assert len(frame) == 3200
    measured, _ = proved(without_answers(frame, gone), tmp_path)
    for excluded in measured.table["excluded"]:
        assert excluded["trials without an answer"] == 2807


def test_a_file_without_any_answer_is_told_and_not_refused(tmp_path):
    frame = lived("instrumental_learning", 2, seed=6)
    measured, page = proved(without_answers(frame, slice(None)), tmp_path)
    assert (measured.table["status"] != "ok").all()
    assert not page.figures


def test_of_sessions_that_say_next_to_nothing(tmp_path):
    theta = np.array([[0.3, 0.01, 6.0]] * 8)  # always the same again, whatever it brings
    frame = lived("instrumental_learning", 8, seed=7, theta=theta)
    measured, page = proved(frame, tmp_path)
    row = measured.table.set_index("measure").loc["learning_rate"]
    assert row["fits"]["flat"] >= 1
    assert page.sentences
    assert f"{row['fits']['flat']} of 8 fits flat" in str(measured)
    assert any(
        "flat" in cell for _, head, rows in page.tables[:1] for line in rows for cell in line
    )


@pytest.mark.parametrize("released", [False, True])
def test_of_somebody_who_always_does_the_same(released, tmp_path):
    theta = np.array([[0.5, 0.5, 0.5, 0.0, 5.0, 0.5, 50.0]] * 3)
    frame = lived("two_step", 3, seed=8, theta=theta)
    measured, _ = proved(frame, tmp_path, released=released)
    row = measured.table.iloc[0]
    assert row["status"] == ("no variation" if released else "all outcomes are the same")


def test_of_subjects_who_are_all_alike(tmp_path):
    frame = lived("balloon_risk", 2, seed=9)
    one = frame[frame["subject"] == "s0"]
    measured, _ = proved(pd.concat([one, one.assign(subject="twin")]), tmp_path, measures=["risk"])
    assert measured.table["note"][0] == "no interval: all subjects are alike"


def test_a_false_count_fails(tmp_path):
    frame = lived("balloon_risk", 2, seed=9)
    facts = SimpleNamespace(
        row={"measure": "risk", "excluded": {"trials without an answer": 3}}, trials=frame
    )
    with pytest.raises(AssertionError):
        check(REPORT, ["3 left out (trials without an answer)"], facts)
