"""A benchmark from its plan to its page: prices, caps, what goes on, the fate of every cell."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, ttest_ind_from_stats
from scipy.stats import t as student

from knownminds.agents import WeightedBayes, simulate
from knownminds.environments import make
from knownminds.validation.benchmarks.cogbench import PAPER, distances, pooled, unlike_random
from knownminds.validation.benchmarks.comparison import ALIKE, differences, unequal
from knownminds.validation.benchmarks.known import live
from knownminds.validation.benchmarks.paper import About, Answers, scores_in
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import paper_of
from knownminds.validation.benchmarks.running import players_of, run_benchmark
from knownminds.validation.benchmarks.stability import stability


def test_several_wordings_are_the_same_cell_and_say_what_wording_moves(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(WORDED, encoding="utf-8")
    plan = read_plan("cogbench", file, paraphrases=2)
    names = ["probabilistic_reasoning", "probabilistic_reasoning@paraphrase_2"]
    assert [cell.key for cell in plan.cells] == names
    llms = ["synthetic:weighted_bayes", "synthetic:random_rater"]
    options = {"paraphrases": 2}
    found = run_benchmark(plan, players_of(plan, llms), tmp_path / "F", options=options)
    assert set(found.trials["cell"]) == {"probabilistic_reasoning"}
    own = found.trials[~found.trials["known_agent"].astype(bool)]
    assert own.groupby(["participant", "template"]).size().tolist() == [40] * 4
    assert own["template_hash"].nunique() == 2
    of_scores, of_trials, _ = stability(found.trials, found.about, paper_of("cogbench"))
    [row] = of_trials.rows.to_dict("records")
    assert (row["models"], row["wordings"]) == (2, 2)
    # Agents to whom words are nothing live the same sessions again, number for number.
    assert row["paraphrase"] + row["interaction"] < 0.01 < row["model"]
    assert row["moved_more_by"] != "wording"
    scores = of_scores.rows.set_index("score")
    assert set(scores.index) == {
        "probabilistic_reasoning_performance", "prior_weighting", "likelihood_weighting",
    }  # fmt: skip
    assert scores["paraphrase"].max() < 1e-9
    assert "wording" not in set(scores["moved_more_by"])


WORDED = """
benchmark = "cogbench"
[experiments]
probabilistic_reasoning = { sessions = 20 }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
"""


# Numbers of the page, by other routes -----------------------------------------------------------


def test_known_agents_of_a_page_answer_by_draws_of_their_own():
    plan = read_plan("magnitudes", small=True)
    kinds = {"line_ratio": {"model": "linear_observer"}, "*": {"model": "cue_combiner"}}
    twice = replace(plan, known={"a": kinds, "b": kinds})
    for name in ("line_ratio", "marker_location"):
        cell = next(one for one in plan.cells if one.experiment == name)
        one, other = (live(twice, who, cell).frame["response"].astype(float) for who in "ab")
        assert (one.to_numpy() != other.to_numpy()).all()


def test_effects_that_are_alike_are_pooled_as_one():
    one, several = pooled(np.array([0.1, 0.11, 0.1]), np.full(3, 0.1))
    assert several["value"] == pytest.approx(one["value"])
    assert several["standard_error"] == pytest.approx(one["standard_error"])


@pytest.mark.parametrize("models", [1, 2])
def test_thoughts_are_set_beside_the_plain_question_session_by_session(models):
    place = make("probabilistic_reasoning")
    cells = {"probabilistic_reasoning": place, "probabilistic_reasoning/step_back": place}
    parts = []
    for k in range(models):
        for j, cell in enumerate(cells):
            theta = np.tile([0.3, 0.6, 0.8, 0.3], (8, 1))  # b_0, b_prior, b_likelihood, sigma
            lived = simulate(WeightedBayes, theta, place, 3 + 10 * k).to_frame()
            lived["response"] = (lived["response"] + 0.01 * j * (lived["trial"] % 2)).clip(0, 1)
            own = {"session": lived["subject"], "subject": "m", "participant": f"m{k}"}
            variant = cell.partition("/")[2] or "base"
            parts.append(lived.assign(**own, cell=cell, variant=variant, environment=place.name))
    about = About(cells, tuple(f"m{k}" for k in range(models)))
    answers = Answers(pd.concat(parts, ignore_index=True), about)
    (part,) = (one for one in PAPER.parts_of(answers) if one.name == "thoughts")
    rows = part.rows[part.rows["participant"] == "m0"]
    assert rows["shared"].tolist() == [8]
    assert rows["correlation"].iloc[0] > 0.9  # nearly the same answers to the same questions
    assert rows["swaps"].between(1 / 256, 1).all()
    assert "p by swaps" in next(iter(part.tables.values()))
    assert len(part.rows) == (1 if models == 1 else 4)


def test_differences_have_intervals_and_corrected_verdicts():
    values = {"a": (1.0, 0.1), "b": (0.6, 0.1), "c": (0.95, 0.1), "d": (np.nan, np.nan)}
    scores = pd.DataFrame(
        [
            {"participant": who, "score": "s", "cell": "x", "value": v, "standard_error": e}
            for who, (v, e) in values.items()
        ]
    )
    same = {(who, "x"): {"temperature": ("0",), "reasoning": ("none",)} for who in values}
    found = differences(scores, list(values), same).set_index(["one", "other"])
    p = {}
    for one, other in itertools.combinations("abc", 2):
        (x, s), (y, t) = values[one], values[other]
        z = (x - y) / (s * s + t * t) ** 0.5
        p[one, other] = 2 * (1 - norm.cdf(abs(z)))
        row = found.loc[one, other]
        assert row["p_value"] == pytest.approx(p[one, other])
        assert row["low"] == pytest.approx(x - y - 1.959964 * (s * s + t * t) ** 0.5, abs=1e-6)
    least = 0.0  # Holm's steps, by hand
    for k, pair in enumerate(sorted(p, key=p.get)):
        least = max(least, min(1.0, (3 - k) * p[pair]))
        assert found.loc[pair, "corrected"] == pytest.approx(least)
        word = f"{pair[0] if values[pair[0]][0] > values[pair[1]][0] else pair[1]} is above"
        assert found.loc[pair, "verdict"] == (word if least < 0.05 else ALIKE)
    assert found.loc[("a", "d"), "verdict"] == "not compared: no value of d"
    few = scores.assign(freedom=[2.0, 4.0, np.nan, np.nan])
    row = differences(few, ["a", "b"], same).iloc[0]
    # Estimated from 3 and 5 sessions: Welch's test, by SciPy from means and deviations.
    theirs = ttest_ind_from_stats(1.0, 0.1 * 3**0.5, 3, 0.6, 0.1 * 5**0.5, 5, equal_var=False)
    assert row["p_value"] == pytest.approx(theirs.pvalue)
    half = student.ppf(0.975, row["freedom"]) * 0.02**0.5
    assert (row["low"], row["high"]) == pytest.approx((0.4 - half, 0.4 + half))
    known = differences(few, ["b", "c"], same).iloc[0]
    assert known["freedom"] == pytest.approx(4 * 4)  # of b's alone, half of the variance
    pairs = [{"1": 0.1, "2": 0.0}, {"1": 0.06, "2": 0.08}, {}, {}]  # what both sessions do to each
    row = differences(scores.assign(influence=pairs), ["a", "b"], same).iloc[0]
    assert row["standard_error"] ** 2 == pytest.approx(0.04**2 + 0.08**2)
    assert (row["shared"], row["correlation"]) == (2, pytest.approx(0.6))
    other = same | {("b", "x"): {"temperature": ("1",), "reasoning": ("none",)}}
    told = differences(scores, ["a", "b"], other)["verdict"].iloc[0]
    assert told == "not compared: temperature differs (0 and 1)"
    assert unequal(same, "a", "e", "x") == "e has not played x"


def test_an_error_that_a_row_lacks_is_that_of_its_interval():
    rows = pd.DataFrame({
        "participant": ["a", "b"], "score": "s", "cell": "x", "value": [1.0, 2.0],
        "standard_error": [0.3, np.nan], "low": [0.0, 2.0 - norm.ppf(0.975) * 0.5],
        "high": [9.0, 2.0 + norm.ppf(0.975) * 0.5],
    })  # fmt: skip
    assert scores_in([rows])["standard_error"].tolist() == pytest.approx([0.3, 0.5], rel=1e-6)
    assert scores_in([rows.drop(columns=["low", "high"])])["standard_error"].isna().tolist() == [
        False, True,
    ]  # fmt: skip


def test_distances_keep_the_sign_that_the_published_scale_drops():
    base = pd.DataFrame({
        "participant": [*"aaabbbc"], "metric": [*"xyzxyzx"], "normalised_error": 0.0,
        "normalised": [-1.0, 1.0, 5.0, 1.0, 1.0, np.nan, np.nan],
    })  # fmt: skip
    found = distances(base, seed=0).set_index("participant")
    assert found.loc["a", "distance"] == pytest.approx(np.sqrt(2.0))
    assert found.loc["a", "without_sign"] == 0.0
    assert found["metrics"].tolist() == [2, 2, 0]  # those that both have who have any
    assert found.loc["b", "distance"] == 0.0


def test_a_reference_that_is_like_random_answers_makes_no_scale():
    errors = [0.011, 0.009, np.nan]  # nothing is known of the last one's
    rows = pd.DataFrame({"value": 0.52, "random": 0.50, "standard_error": errors})
    assert unlike_random(rows).isna().tolist() == [True, False, False]


ONE = """
benchmark = "cogbench"
[experiments]
probabilistic_reasoning = { sessions = 4 }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
"""


def test_the_page_of_one_experiment_counts_no_others_and_has_no_circle(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(ONE, encoding="utf-8")
    out = tmp_path / "b"
    code, _, err = knownminds(
        "benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", out, "--llm",
        "synthetic:weighted_bayes",
    )  # fmt: skip
    assert code == 0, err
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "seven" not in page
    assert "so no circle is drawn of them" in page
    assert not list((out / "figures").glob("*the-metrics-of-each*"))
