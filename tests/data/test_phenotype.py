import json

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import BalloonPumper, RandomResponder, RescorlaWagnerDual, simulate
from knownminds.environments import BalloonRisk, InstrumentalLearning, Trials
from knownminds.inference import MEASURES
from knownminds.validation.data.phenotype import CHARACTERS, METRICS, gallery, phenotype
from knownminds.validation.pages.figures import svg

REFERENCE = {"risk": 20.0, "optimism_bias": 0.2, "learning_rate": 0.4}
RANDOM = {"risk": 1.0, "optimism_bias": 0.0, "learning_rate": 0.25}


@pytest.fixture(scope="module")
def characters():
    return gallery(sessions=60)


def pumps(gamma, n=30, n_balloons=10, seed=1):
    theta = np.tile([0.95, 0.05, gamma, 0.4], (n, 1))
    return simulate(BalloonPumper, theta, BalloonRisk(n_balloons), seed)


def learns(positive, negative, n=30):
    theta = np.tile([positive, negative, 4.0, 0.0], (n, 1))
    return simulate(RescorlaWagnerDual, theta, InstrumentalLearning(), 1)


def test_scores_are_shares_of_the_way_from_random_answers_to_the_reference():
    found = phenotype(
        {"a": {"risk": 20.0}, "b": {"risk": 1.0, "optimism_bias": -0.1}, "c": {"risk": 39.0}},
        reference=REFERENCE,
        random=RANDOM,
        metrics=["risk", "optimism_bias"],
    )
    assert np.allclose(found.normalised[:, 0], [1.0, 0.0, 2.0])
    assert found.normalised[1, 1] == pytest.approx(-0.5)  # the sign is kept


def test_the_released_scale_has_no_sign():
    given = {"a": {"optimism_bias": -0.1}}
    found = phenotype(given, reference=REFERENCE, random=RANDOM, released=True)
    at = found.metrics.index("optimism_bias")
    assert found.normalised[0, at] == pytest.approx(0.5)
    theirs = [name for name in METRICS if f"{name}_released" in MEASURES]
    assert {f"{name}_released" for name in theirs} <= set(found.metrics)
    assert "learning_rate" in found.metrics  # it has no released definition


def test_what_is_missing_is_missing_for_a_reason_and_never_a_zero():
    found = phenotype(
        {"a": {"risk": 3.0, "learning_rate": 0.3, "optimism_bias": 0.1}, "b": {}},
        reference={"risk": 1.0, "optimism_bias": 0.1},
        random={"risk": 1.0, "learning_rate": 0.2},
        metrics=["risk", "learning_rate", "optimism_bias"],
    )
    assert np.isnan(found.normalised).all()
    assert found.reason[0] == ("reference is random", "no reference", "no random score")
    assert found.reason[1] == ("not measured",) * 3
    assert "0.00" not in str(found)
    assert "(-: no random score; no reference; not measured; reference is random)" in str(found)
    content = json.loads(found.to_json())
    assert [row["normalised"] for row in content["scores"]] == [None] * 6
    assert set(found.to_frame()["missing"]) == set(found.reason[0]) | {"not measured"}


def test_scores_are_read_off_trials_by_the_measures_themselves():
    optimist, pumper = learns(0.6, 0.1), pumps(2.0)
    found = phenotype(
        {"a": [optimist, pumper], "b": pumper},
        reference=REFERENCE,
        random=RANDOM,
        metrics=list(RANDOM),
    )
    for metric, trials in (("risk", pumper), ("optimism_bias", optimist)):
        estimate = MEASURES[metric].estimate(trials)
        at = found.metrics.index(metric)
        assert found.score[0, at] == estimate.value
        assert found.standard_error[0, at] == estimate.standard_error
    assert found.reason[1][found.metrics.index("optimism_bias")] == "not measured"


def test_a_single_session_has_a_score_and_no_error():
    found = phenotype({"a": pumps(1.0, n=1)}, reference=REFERENCE, metrics=["risk"])
    assert np.isfinite(found.score[0, 0])
    assert np.isnan(found.standard_error[0, 0])


def test_random_answers_are_played_in_the_same_design():
    settings = {"reference": REFERENCE, "metrics": ["risk"]}
    played = simulate(BalloonPumper, [[0.95, 0.05, 1.0, 0.4]], BalloonRisk(2, (2, 1)), 0)
    small = phenotype({"a": played}, environments=[BalloonRisk(2, (2, 1))], **settings)
    usual = phenotype({"a": played}, **settings)
    # Pump 1 is made in half of the balloons, and pump 2, if the first held, in half of these.
    exact = (0.5 + 0.5 * 0.5 * 0.5 + 0.5) / 2
    assert abs(small.random[0] - exact) < 4 * 0.6 / np.sqrt(400 * 4)
    assert usual.random[0] > small.random[0] + 0.2
    nobody = simulate(RandomResponder, np.zeros((300, 0)), BalloonRisk(), 77)
    zero = phenotype({"a": nobody}, **settings)
    # Both sides are estimated: the null agent of the design scores 0 on the scale.
    assert abs(zero.normalised[0, 0]) < 4 * np.sqrt(2) * zero.normalised_error[0, 0]


def test_performance_is_a_metric_too():
    trials = pumps(1.0)
    found = phenotype(
        {"a": trials},
        reference={"balloon_risk_performance": 8.0},
        metrics=["balloon_risk_performance"],
    )
    rows = trials.frame.groupby(["subject", "balloon"])["reward"].sum()
    assert found.score[0, 0] == pytest.approx(rows.mean())
    assert 0 < found.random[0] < 1
    assert found.standard_error[0, 0] == pytest.approx(rows.groupby("subject").mean().sem())


def test_the_reference_may_stand_in_a_file(tmp_path):
    file = tmp_path / "people.csv"
    pd.DataFrame({"metric": list(REFERENCE), "value": REFERENCE.values(), "n": 9}).to_csv(file)
    given = {"participants": {"a": {"risk": 5.0}}, "random": RANDOM, "metrics": ["risk"]}
    assert phenotype(**given, reference=file).normalised[0, 0] == pytest.approx(4 / 19)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("metric,mean\nrisk,2\n", r"columns metric and value; r.csv has metric, mean.*'value'"),
        ("metric,value\nrisk,2\nrisk,3\n", "several of 'risk'"),
        ("metric,value\nrisk,two\n", "risk has 'two' in r.csv"),
        ("metric,value\nrisks,2\n", r"Nearest: risk.* It stands in the reference\."),
        ("", r"r\.csv cannot be read"),
    ],
)
def test_a_reference_that_cannot_be_read_is_refused(tmp_path, text, rule):
    file = tmp_path / "r.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=rule):
        phenotype({"a": {"risk": 5.0}}, reference=file, random=RANDOM, metrics=["risk"])


def test_misuse_is_told():
    trials = pumps(1.0, n=2)
    bare = Trials.from_frame(trials.to_frame().drop(columns="environment"))
    for given, rule in (
        ({"participants": {}}, "one participant at least"),
        ({"participants": {"a": {"riks": 1.0}}}, "Nearest: risk.* the scores of a"),
        ({"metrics": ["riks"]}, "Nearest: risk"),
        ({"metrics": ["risk", "risk"]}, "each once"),
        ({"random": {"riks": 1.0}}, "It stands in random"),
        ({"participants": {"a": [trials, trials]}}, "a has several of balloon_risk"),
        ({"participants": {"a": bare}}, "names none"),
    ):
        with pytest.raises(ValueError, match=rule):
            phenotype(
                **{"participants": {"a": {"risk": 1.0}}, "reference": REFERENCE, "random": RANDOM,
                   "metrics": ["risk"], **given}
            )  # fmt: skip


# What must leap to the eye: the metric, and on which side of everybody else.
KNOWN_BY = {
    "optimist": ("optimism_bias", 1),
    "symmetric learner": ("optimism_bias", -1),
    "model-based planner": ("model_basedness", 1),
    "model-free creature of habit": ("model_basedness", -1),
    "explorer": ("directed_exploration", 1),
    "exploiter": ("directed_exploration", -1),
    "risk-seeker": ("risk", 1),
    "cautious pumper": ("risk", -1),
    "patient": ("temporal_discounting", 1),
    "impatient": ("temporal_discounting", -1),
    "base-rate neglecter": ("prior_weighting", -1),
    "blind to own errors": ("meta_cognition", -1),
}


def test_every_character_is_known_by_what_sets_it_apart(characters):
    assert set(KNOWN_BY) == set(CHARACTERS)
    assert characters.metrics == METRICS
    for name, (metric, side) in KNOWN_BY.items():
        column = side * characters.normalised[:, METRICS.index(metric)]
        others = [k for k, other in enumerate(characters.participants) if other != name]
        at = characters.participants.index(name)
        assert column[at] > np.max(column[others]), name


def test_what_is_ordinary_about_a_character_lies_at_the_reference(characters):
    ordinary = np.ones(characters.score.shape, dtype=bool)
    for i, name in enumerate(characters.participants):
        for place in CHARACTERS[name]:
            for j, metric in enumerate(characters.metrics):
                ordinary[i, j] &= place not in MEASURES[metric].environments
    distance = np.abs(characters.normalised - 1) / characters.normalised_error
    # 100 or so comparisons with a reference that has an error itself, from 4 times the sessions.
    assert np.all(distance[ordinary] < 4 * np.sqrt(1.25))


def test_figures_name_everybody_and_show_what_is_missing(characters):
    found = phenotype(
        {
            "a long name of a model": {"risk": 99.0, "optimism_bias": -9.0},
            "b": {"learning_rate": 0.3},
        },
        reference=REFERENCE,
        random=RANDOM,
        metrics=list(REFERENCE),
    )
    for figure in (found.bars(), found.radar(), characters.bars(), characters.radar()):
        drawn = svg(figure)
        assert "reference" in drawn
    bars, radar = svg(found.bars()), svg(found.radar())
    for text in ("a long name of a model", "risk", "optimism", "0 = random answers, 1 = reference"):
        assert text in bars
    assert bars.count("not measured") == 3
    assert "5.2" in bars  # 99 pumps: beyond the panel, and told in figures
    assert "a long name of a model" in radar
    assert "missing" in radar
