"""Data of people and of runs through the command line: numbers held against plain pandas."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds import fit, run, score
from knownminds import simulate as simulate_verb
from knownminds.agents import (
    AGENTS,
    BalloonPumper,
    RandomResponder,
    RescorlaWagnerDual,
    WeightedBayes,
    simulate,
)
from knownminds.environments import (
    BalloonRisk,
    InstrumentalLearning,
    ProbabilisticReasoning,
    Trials,
    make,
)
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori

SAMPLES = {
    "instrumental_learning": "rescorla_wagner_dual",
    "two_step": "two_step_reduced",
    "line_ratio": "static_bayes_observer",
    "balloon_risk": "balloon_pumper",
    "coins": "belief_sampler",
}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A file of four people, of whom one has given no answer and one has left two out."""
    file = tmp_path_factory.mktemp("people") / "people.csv"
    trials = simulate_verb("instrumental_learning", "rescorla_wagner_dual", subjects=4, seed=1)
    frame = trials.to_frame()[[c for c in trials.frame if not str(c).startswith("true_")]]
    gone = (frame["subject"].astype(str) == "3") | (
        (frame["subject"].astype(str) == "2") & frame["trial"].isin([5, 40])
    )
    frame.loc[gone, ["action", "reward"]] = None
    frame.loc[gone, "outcome"] = "refused"
    Trials.from_frame(frame, environment=InstrumentalLearning()).save(file)
    return file, frame


def test_the_order_of_subjects_in_a_file_does_not_matter():
    trials = simulate_verb("instrumental_learning", "rescorla_wagner_dual", subjects=6, seed=2)
    frame = trials.to_frame()
    turned = pd.concat([frame[frame["subject"] == name] for name in "531420"], ignore_index=True)
    whole, other = (
        score(one, measures=["optimism_bias"])["Measures"]
        for one in (trials, Trials.from_frame(turned))
    )
    pd.testing.assert_frame_equal(whole, other)  # exactly, not up to the points of the estimator


@pytest.mark.parametrize("name", SAMPLES)
def test_a_simulated_file_is_read_again_and_is_what_its_truth_does(name, tmp_path, knownminds):
    file, model = tmp_path / "s.csv", AGENTS[SAMPLES[name]]
    words = ("simulate", name, "--out", file, "--subjects", 2, "--seed", 3, "--json")
    code, said, err = knownminds(*words)
    assert code == 0, err
    back = Trials.load(file)
    truth = back.frame.drop_duplicates("subject")[[f"true_{n}" for n in model.parameters.names]]
    told = pd.DataFrame(json.loads(said)["truth"]).drop(columns="subject")
    np.testing.assert_allclose(told.to_numpy(), truth.to_numpy(), rtol=1e-14)
    # Whoever has the parameters in the file gives these very answers.
    again = simulate(model, truth.to_numpy(), make(name), 3, address=(0,)).frame
    for column in {"action", "response"} & set(again):
        here, there = (f[column].astype(float) for f in (back.frame, again))
        np.testing.assert_allclose(here, there, rtol=1e-14)


def test_a_score_is_the_mean_of_what_people_earned(people, knownminds, tmp_path):
    file, frame = people
    code, said, err = knownminds("score", file, "--json", "--out", tmp_path / "s")
    assert code == 0, err
    rows = {row["measure"]: row for row in json.loads(said)["tables"]["measures"]}
    by = frame.groupby("subject")["reward"].mean().dropna().astype(float)
    assert rows["performance"]["value"] == pytest.approx(by.mean())
    assert rows["performance"]["standard_error"] == pytest.approx(by.sem())
    own = MEASURES["learning_rate"].estimate(Trials.load(file))
    assert rows["learning_rate"]["value"] == pytest.approx(own.value)


def test_a_fit_uses_the_answers_there_are_and_says_who_gave_none(people, knownminds, tmp_path):
    file, frame = people
    words = ("fit", file, "--model", "rescorla_wagner_dual", "--out", tmp_path / "f", "--json")
    code, said, err = knownminds(*words)
    assert code == 0, err
    told = json.loads(said)
    rows = told["tables"]["subjects"]
    trials = {str(row["subject"]): row["n_trials"] for row in rows}
    answered = frame[frame["action"].notna()].groupby("subject").size()
    assert {who: n for who, n in trials.items() if n} == {
        str(who): n for who, n in answered.items()
    }
    some = Trials.from_frame(frame[frame["action"].notna()], environment=InstrumentalLearning())
    own = maximum_a_posteriori(RescorlaWagnerDual, ModelData.read(RescorlaWagnerDual, some))
    table = fit(file, "rescorla_wagner_dual")["Subjects"].set_index("subject")
    for who, estimate in zip(("0", "1", "2"), own.estimate, strict=True):
        assert table.loc[who, list(RescorlaWagnerDual.parameters.names)].astype(
            float
        ).to_numpy() == pytest.approx(estimate, abs=1e-4)
    assert (tmp_path / "f" / "report.html").exists()
    code, out, err = knownminds("fit", file, "--model", "rescorla_wagner_dul")
    assert (code, out) == (2, "")
    assert "rescorla_wagner_dual" in err


@pytest.mark.long
def test_the_model_that_people_are_predicts_them_best(tmp_path):
    from knownminds.agents import ForgettingLearner

    theta = ForgettingLearner.parameters.draw(np.random.default_rng(3), 30)
    for name, value in {"phi": 0.6, "beta": 8.0}.items():
        theta[:, ForgettingLearner.parameters.index(name)] = value
    trials = simulate(ForgettingLearner, theta, InstrumentalLearning(n_visits=12), 3)
    against = ["forgetting_learner", "noisy_or", "random_responder"]
    found = fit(trials, "rescorla_wagner", workers=1, against=against)
    models = found["Models by how they predict left-out subjects"]
    assert models["model"][0] == "forgetting_learner"
    assert found["Left out of the comparison"]["model"].tolist() == ["noisy_or"]
    total = found["elpd of each subject"][models["model"]].sum()
    assert total.tolist() == pytest.approx(models["elpd"].tolist())
    assert models["weight"].sum() == pytest.approx(1)


# On the scale from random answers to a reference --------------------------------------------------

ON_SCALE = "From random answers (0) to the reference (1)"


def pumps(gamma, n=30):
    return simulate(BalloonPumper, np.tile([0.95, 0.05, gamma, 0.4], (n, 1)), BalloonRisk(10), 1)


def test_scores_are_put_on_the_scale_by_the_measures_themselves(tmp_path):
    (tmp_path / "r.csv").write_text("metric,value\nrisk,20\noptimism_bias,0.2\n")
    found = score(pumps(2.0), reference=tmp_path / "r.csv")
    (row,) = found[ON_SCALE].to_dict("records")
    estimate = MEASURES["risk"].estimate(pumps(2.0))
    assert row["value"] == estimate.value
    distance = 20 - row["random"]
    assert row["normalised"] == pytest.approx((estimate.value - row["random"]) / distance)
    share = (estimate.value - 20) / distance**2 * row["random_error"]
    error = np.hypot(estimate.standard_error / distance, share)
    assert row["normalised_error"] == pytest.approx(error)


def test_a_reference_is_named_as_the_scores_are_and_used(tmp_path, knownminds):
    theta = [[0.0, 0.8, 0.8, 0.4]] * 6
    simulate(WeightedBayes, theta, ProbabilisticReasoning(6), 0).save(tmp_path / "t.parquet")
    words = ("score", tmp_path / "t.parquet", "--released", "--json", "--reference")
    _, printed, _ = knownminds(*words[:-1])
    names = [row["measure"] for row in json.loads(printed)["tables"]["measures"]]
    rows = "".join(f"{name},0.5\n" for name in names)
    (tmp_path / "r.csv").write_text("measure,value\n" + rows)  # the very names that are printed
    code, printed, err = knownminds(*words, tmp_path / "r.csv")
    assert code == 0, err
    scale = json.loads(printed)["tables"]["from_random_answers_0_to_the_reference_1"]
    assert len(scale) == len(names) == 3
    assert {row["reference"] for row in scale} == {0.5}
    slopes = [row["random"] for row in scale if "weighting" in row["metric"]]
    assert slopes == [0.0, 0.0]  # exactly, for random answers as released too
    (tmp_path / "o.csv").write_text("metric,value\nprior_weighting,0.5\n")  # the other definition
    code, _, err = knownminds(*words, tmp_path / "o.csv")
    assert code == 2
    assert "prior_weighting_released" in err
    bare = [word for word in words if word != "--released"]
    (tmp_path / "p.csv").write_text("metric,value\nprior_weighting_released,0.5\n")
    code, _, err = knownminds(*bare, tmp_path / "p.csv")
    assert code == 2
    assert "Add --released" in err
    (tmp_path / "n.csv").write_text("metric,value\nrisk,20\n")  # of another experiment
    code, _, err = knownminds(*words, tmp_path / "n.csv")
    assert code == 2
    assert "risk" in err


def test_the_reference_may_be_the_trials_of_people(tmp_path):
    pumps(3.0).save(tmp_path / "people.csv")
    found = score(pumps(2.0), ["risk"], reference=tmp_path / "people.csv")
    (row,) = found[ON_SCALE].to_dict("records")
    assert row["reference"] == MEASURES["risk"].estimate(pumps(3.0)).value
    assert "30 in people.csv" in " ".join(found.notes)
    itself = score(pumps(3.0), ["risk"], reference=tmp_path / "people.csv")[ON_SCALE]
    assert itself["normalised"].tolist() == [1.0]


@pytest.mark.long
def test_score_and_fit_take_the_rows_that_where_names(tmp_path, knownminds):
    frame = pumps(2.0).frame
    frame = frame.assign(dose=np.where(frame["subject"].astype(int) < 12, "0.50", ""))
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("score", tmp_path / "t.csv", "--environment", "balloon_risk", "--set", "n_balloons=10")
    code, printed, err = knownminds(*words, "--measure", "risk", "--where", "dose=.5", "--json")
    assert code == 0, err
    (row,) = json.loads(printed)["tables"]["measures"]
    assert row["n"] == 12
    kept = fit(tmp_path / "t.csv", environment="balloon_risk", method="mle", where={"dose": ""})
    assert len(kept["Subjects"]) == 18
    assert "--where dose=" in kept.command
    for where, said in (("dose=2", "0.5"), ("doses=2", "dose")):
        code, _, err = knownminds(*words, "--where", where)
        assert code == 2
        assert said in err


def test_random_answers_have_a_slope_of_exactly_0(tmp_path):
    (tmp_path / "r.csv").write_text("metric,value\nlikelihood_weighting,1\n")
    theta = [[0.0, 0.8, 0.8, 0.4]] * 20
    trials = simulate(WeightedBayes, theta, ProbabilisticReasoning(6), 0)
    found = score(trials, reference=tmp_path / "r.csv")[ON_SCALE].iloc[0]
    assert (found["random"], found["random_error"]) == (0.0, 0.0)
    assert found["normalised"] == found["value"]


def test_each_of_several_participants_is_a_row_without_being_asked(knownminds, tmp_path):
    trials = simulate(WeightedBayes, [[0.0, 0.8, 0.8, 0.4]] * 6, ProbabilisticReasoning(6), 0)
    frame = trials.frame
    frame = frame.assign(model=np.where(frame["subject"].astype(int) < 3, "one", "other"))
    Trials(frame).save(tmp_path / "two.csv")
    code, printed, errors = knownminds("score", tmp_path / "two.csv", "--json")
    assert code == 0, errors
    result = json.loads(printed)
    assert {row["participant"] for row in result["tables"]["measures"]} == {"one", "other"}
    assert "by model" in result["title"]


def test_random_answers_are_played_in_the_same_design(tmp_path):
    (tmp_path / "r.csv").write_text("metric,value\nrisk,20\n")
    trials = simulate(BalloonPumper, [[0.95, 0.05, 1.0, 0.4]], BalloonRisk(2, (2, 1)), 0)
    (small,) = score(trials, reference=tmp_path / "r.csv")[ON_SCALE]["random"]
    # Pump 1 is made in half of the balloons, and pump 2, if the first held, in half of these.
    exact = (0.5 + 0.5 * 0.5 * 0.5 + 0.5) / 2
    assert abs(small - exact) < 4 * 0.6 / np.sqrt(400 * 4)
    nobody = simulate(RandomResponder, np.zeros((300, 0)), BalloonRisk(), 77)
    zero = score(nobody, reference=tmp_path / "r.csv")[ON_SCALE].iloc[0]
    # Both sides are estimated: the null agent of the design scores 0 on the scale.
    assert abs(zero["normalised"]) < 4 * np.sqrt(2) * zero["normalised_error"]


def test_scores_are_regressed_on_features_of_participants(tmp_path, knownminds):
    frames = []
    for k, gamma in enumerate((1.0, 1.4, 2.0, 2.3, 3.0, 3.5)):
        own = pumps(gamma).frame
        frames.append(own.assign(model=f"m{k}", subject=own["subject"] + f" of m{k}"))
    pd.concat(frames).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "f.csv").write_text(
        "participant,base_model,large,words\nm0,a,0,x\nm1,a,1,x\nm2,b,0,x\nm3,b,1,x\nm4,c,0,x\n"
        "m5,c,1,x\n"
    )
    words = ("score", tmp_path / "t.parquet", "--by", "model", "--measure", "risk")
    code, said, err = knownminds(*words, "--features", tmp_path / "f.csv", "--json")
    assert code == 0, err
    tables = json.loads(said)["tables"]
    (row,) = tables["regressions_on_features"]
    assert (row["feature"], row["participants"], row["base_models"]) == ("large", 6, 3)
    value = {one["participant"]: one["value"] for one in tables["measures"]}
    pairs = [value[f"m{k + 1}"] - value[f"m{k}"] for k in (0, 2, 4)]
    assert row["coefficient"] == pytest.approx(np.mean(pairs))  # all are balanced
    lines = (tmp_path / "f.csv").read_text().splitlines(keepends=True)
    (tmp_path / "f.csv").write_text("".join(lines[:-1]))
    code, said, err = knownminds(*words, "--features", tmp_path / "f.csv", "--json")
    assert code == 0, err
    (row,) = json.loads(said)["tables"]["regressions_on_features"]
    assert row["participants"] == 5
    assert "Without features, and left out: m5." in json.loads(said)["notes"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("metric,mean\nrisk,2\n", "value"),
        ("metric,value\nrisk,2\nrisk,3\n", "risk"),
        ("metric,value\nrisk,two\n", "two"),
        ("metric,value\nrisks,2\n", "risks"),
        ("", "r.csv"),
    ],
)
def test_a_reference_that_cannot_be_read_is_refused(tmp_path, knownminds, text, name):
    (tmp_path / "r.csv").write_text(text)
    pumps(1.0, n=2).save(tmp_path / "t.csv")
    words = ("score", tmp_path / "t.csv", "--by", "environment", "--out", tmp_path / "p")
    code, _, err = knownminds(*words, "--reference", tmp_path / "r.csv")
    assert code == 2
    assert name in err
    assert not (tmp_path / "p").exists()


# Runs together ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of one agent in two conditions, three and two sessions."""
    folder = tmp_path_factory.mktemp("runs")
    for name, reasoning, sessions in (("plain", "none", 3), ("aloud", "chain_of_thought", 2)):
        place = InstrumentalLearning(n_visits=2, reasoning=reasoning)
        llm = "synthetic:rescorla_wagner_dual"
        run(place, llm, sessions=sessions, out=folder / name)
    return folder


def test_scores_of_several_runs_are_told_apart_by_a_condition(runs, knownminds, tmp_path):
    words = ("score", runs / "plain", runs / "aloud", "--by", "reasoning", "--json")
    code, said, err = knownminds(*words, "--out", tmp_path / "s")
    assert code == 0, err
    rows = {
        (row["measure"], row["participant"]): row["value"]
        for row in json.loads(said)["tables"]["measures"]
    }
    for condition, name in (("none", "plain"), ("chain_of_thought", "aloud")):
        frame = pd.read_parquet(runs / name / "trials.parquet")
        assert set(frame["reasoning"]) == {condition}
        assert rows["performance", condition] == pytest.approx(frame["reward"].mean())


@pytest.mark.long
def test_several_runs_are_fitted_together_and_subjects_stay_apart(runs):
    names = ["plain", "aloud"]
    both, apart = (
        fit([runs / name for name in names], "rescorla_wagner_dual", separate=separate)
        for separate in (False, True)
    )
    # One player is a subject in each run, whose sessions are fitted together.
    player = pd.read_parquet(runs / "plain" / "trials.parquet")["model"].iloc[0]
    assert list(both["Subjects"]["subject"]) == [f"{player}/{name}" for name in names]
    assert len(apart["Subjects"]) == 5
    assert any("5 sessions" in note and "--separate" in note for note in both.notes)
    for name in names:
        own = fit(runs / name, "rescorla_wagner_dual", separate=True)["Subjects"]
        for whole, one in (
            (both, fit(runs / name, "rescorla_wagner_dual")["Subjects"]),
            (apart, own),
        ):
            here = whole["Subjects"]
            mine = here[here["subject"].str.startswith(f"{player}/{name}")]
            assert mine["beta"].to_numpy() == pytest.approx(one["beta"].to_numpy(), abs=1e-3)


def test_runs_of_different_designs_share_no_table(runs, tmp_path, knownminds):
    richer = tuple((low, 0.9) for low, _ in InstrumentalLearning().win_probability)
    place = InstrumentalLearning(n_visits=3, win_probability=richer)
    run(place, "synthetic:rescorla_wagner_dual", out=tmp_path / "richer")
    code, _, err = knownminds("score", runs / "plain", tmp_path / "richer", "--by", "model")
    assert code == 2
    assert "win_probability" in err
