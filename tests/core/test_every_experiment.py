"""What works for one experiment works for all: the chair, its report, the budget, the measures."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import ENVIRONMENTS, Environment, Trials, answer_columns, make
from knownminds.inference import MEASURES
from knownminds.validation.costs.dry_runs import dry_run
from knownminds.validation.data.scores_of_trials import read_measured, score
from knownminds.validation.report import page_of, read_result

# Sessions short enough to be asked question by question.
SHORT = {"instrumental_learning": 4, "horizon": 4, "two_step": 6, "restless_bandit": 1}
FEWER = {"diagnosis": {"n_contexts": 40, "repeats": 2}}  # whose whole session has 11,000 trials
SHORT |= {"reversal_learning": 20, "iowa_gambling": 20}
SHORT |= dict.fromkeys(
    ["diagnosis", "marker_location", "line_ratio", "maze_distance", "duration", "cue_conflict"], 1
)


def players(place):
    environment = make(place)
    return [name for name, model in AGENTS.items() if model.plays(environment)]


def short(name):
    place = make(name)
    return make(name, **({place.size: SHORT[name]} if name in SHORT else {}))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_known_mind_sits_in_its_chair_and_the_report_is_drawn(name, knownminds, tmp_path):
    mind, place = players(name)[-1], short(name)
    words = ["run", name, "--llm", f"synthetic:{mind}", "--sessions", 2, "--seed", 1]
    if place.size and name in SHORT:
        words += ["--trials", place.n_trials]
    code, _, err = knownminds(*words, "--contaminate", "malformed=0.2", "--out", tmp_path / "r")
    assert code == 0, err
    trials = Trials.load(tmp_path / "r" / "trials.parquet")
    lost = ~trials.frame["outcome"].isin(["ok", "repaired"])
    given = trials.frame[list(answer_columns(place))].notna()
    asked = 1 if place.given == "either" else len(answer_columns(place))
    assert (given.sum(axis=1) == np.where(lost, 0, asked)).all()
    assert "sessions" in dict(page_of(read_result(tmp_path / "r")).asked)
    code, _, err = knownminds(*words, "--contaminate", "malformed=0.2", "--out", tmp_path / "r")
    assert code == 0, err  # resumed when all is answered: the same trials, nothing asked again
    assert Trials.load(tmp_path / "r" / "trials.parquet").frame.equals(trials.frame)


@pytest.mark.parametrize("history", ["prompt", "chat"])
@pytest.mark.parametrize("name", [name for name in ENVIRONMENTS if make(name).past != "none"])
def test_a_dry_run_lives_the_session_that_is_simulated(name, history):
    place = make(name, **{**short(name).settings, "history": history})
    model = AGENTS[players(name)[-1]]
    theta = model.parameters.draw(np.random.default_rng(0), 1)
    calls = dry_run(model.from_theta(theta[0], actions=place.n_actions), place, 3, 0)
    lived = simulate(model, theta, place, 3)
    assert len(calls.prompt_bytes) == len(lived.frame)


def test_every_measure_is_read_off_one_file_of_all_experiments(knownminds, tmp_path):
    frames, wanted = [], set()
    for name, kind in ENVIRONMENTS.items():
        own = {m for m, measure in MEASURES.items() if name in measure.environments}
        if not own:
            continue
        wanted |= {(name, m) for m in own if not m.endswith("_released")}
        # Nobody says that preferences are right or wrong, what is true of a cover story, or which
        # number dice or counts show.
        chances = ("dice", "coins", "counts", "choice", "preference")
        if name not in ("temporal_discounting", "adjusting_amount", "collider", *chances):
            wanted |= {(name, "performance")}
        own_settings = {k: v for m in own for k, v in MEASURES[m].settings.items()}
        place = make(name, **own_settings, **FEWER.get(name, {}))
        able = [n for n, m in AGENTS.items() if m.plays(place) and len(m.parameters)]
        theta = AGENTS[able[-1]].parameters.draw(np.random.default_rng(0), 30)
        frames.append(simulate(AGENTS[able[-1]], theta, place, 1).to_frame())
        assert issubclass(kind, Environment)
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    code, out, err = knownminds("score", tmp_path / "all.csv", "--json", "--out", tmp_path / "s")
    assert code == 0, err
    rows = json.loads(out)["measures"]
    assert {(row["environment"], row["measure"]) for row in rows} == wanted
    assert {row["status"] for row in rows} == {"ok"}
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    # What is kept is what was printed; that the function gives what the command gives is seen of
    # one experiment's rows, which hang on no other's.
    again = read_measured(tmp_path / "s").table
    for name in ("environment", "measure", "value", "low", "high"):
        assert again[name].tolist() == [row[name] for row in rows]
    alone = again["environment"] == frames[0]["environment"].iloc[0]
    frames[0].to_csv(tmp_path / "one.csv", index=False)
    pd.testing.assert_frame_equal(
        again[alone].reset_index(drop=True), score(tmp_path / "one.csv").table
    )


def test_released_measures_take_the_place_of_those_that_depart(knownminds):
    model = AGENTS["two_step_hybrid"]
    trials = simulate(
        model, model.parameters.draw(np.random.default_rng(0), 20), make("two_step"), 1
    )
    assert set(score(trials, released=True).table["measure"]) == {
        "model_basedness_released",
        "performance",
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--measure", "risk"], "risk is a measure of balloon_risk; the trials are of two_step"),
        (["--measure", "rsik"], "risk"),
        (["--by", "colour"], "there is no 'colour'"),
        (["--environment", "two_stp"], "two_step"),
    ],
)
def test_what_cannot_be_scored_is_told(knownminds, tmp_path, words, sentence):
    model = AGENTS["two_step_hybrid"]
    trials = simulate(
        model, model.parameters.draw(np.random.default_rng(0), 3), make("two_step"), 1
    )
    trials.save(tmp_path / "t.csv")
    code, out, err = knownminds("score", tmp_path / "t.csv", *words, "--out", tmp_path / "s")
    assert (code, out) == (2, "")
    assert sentence in err
    assert not (tmp_path / "s").exists()


def test_participants_of_a_file_are_set_side_by_side(knownminds, tmp_path):
    frames = []
    for who, gamma in (("bold", 2.0), ("meek", 0.3)):
        theta = np.tile([0.95, 0.05, gamma, 0.4], (20, 1))
        frame = simulate(AGENTS["balloon_pumper"], theta, make("balloon_risk"), 1).to_frame()
        frames.append(frame.assign(subject=frame["subject"] + who, who=who))
    pd.concat(frames).to_csv(tmp_path / "t.csv", index=False)
    words = ["phenotype", tmp_path / "t.csv", "--by", "who"]
    code, _, err = knownminds(*words)
    assert (code, "scaled by a reference" in err) == (2, True)
    names = [name for name in MEASURES if not name.endswith("_released")]
    people = pd.DataFrame({"metric": names, "value": 12.0})
    people.to_csv(tmp_path / "people.csv", index=False)
    reference = ["--reference", tmp_path / "people.csv", "--out", tmp_path / "p"]
    code, _, err = knownminds(*words, *reference)
    assert code == 0, err
    table = pd.read_csv(tmp_path / "p" / "phenotype.csv")
    risk = table[table["metric"] == "risk"].set_index("participant")["normalised"]
    assert risk["bold"] > risk["meek"]
    assert {file.name for file in (tmp_path / "p").iterdir()} >= {"bars.png", "radar.png"}


def test_samples_are_told_apart_by_a_column():
    model = AGENTS["horizon_explorer"]
    theta = model.parameters.draw(np.random.default_rng(0), 10)
    first, second = (simulate(model, theta, make("horizon"), seed).to_frame() for seed in (1, 2))
    second["subject"] += "b"
    both = pd.concat([first.assign(who="one"), second.assign(who="other")])
    table = score(Trials.from_frame(both), ["performance"], by="who").table
    alone = score(Trials.from_frame(second), ["performance"]).table
    assert table["sample"].tolist() == ["one", "other"]
    assert table["value"][1] == pytest.approx(alone["value"][0])
