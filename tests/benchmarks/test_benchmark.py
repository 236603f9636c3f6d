"""A benchmark from its plan to its page: prices, caps, what goes on, the fate of every cell."""

import itertools
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import laid_out, typed
from benchmark_server import REFUSING, serving, with_models
from claims import check
from claims.benchmark_cogbench import REPORT as COGBENCH
from claims.benchmark_known import REPORT as MINDS
from claims.benchmark_shared import REPORT as SHARED
from scipy.stats import norm, ttest_ind_from_stats
from scipy.stats import t as student
from statsmodels.stats.meta_analysis import combine_effects

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.measure import reason_of
from knownminds.validation.benchmarks import cogbench, running
from knownminds.validation.benchmarks.benchmark import folder_of_cell, read_benchmark
from knownminds.validation.benchmarks.cogbench import (
    PLACES,
    distances,
    flat_map,
    pooled,
    recovered,
    scores_of,
    unlike,
)
from knownminds.validation.benchmarks.comparison import ALIKE, differences, unequal
from knownminds.validation.benchmarks.page import benchmark_page
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import BENCHMARKS, About
from knownminds.validation.benchmarks.running import players_of, run_benchmark
from knownminds.validation.benchmarks.stability import stability
from knownminds.validation.data.phenotype import METRICS, NULL_AGENTS, Phenotype

PLAN = """
benchmark = "cogbench"
seed = 3
[sampling]
temperature = 1.0
[experiments]
probabilistic_reasoning = { sessions = 8, variants = ["base", "chain_of_thought"] }
instrumental_learning = { sessions = 3, settings = { n_visits = 2 } }
[experiments.pictures]
environment = "line_ratio"
sessions = 1
settings = { modality = "image", n_values = 2, repeats = 1, windows = ["short"] }
[variants.chain_of_thought]
settings = { reasoning = "chain_of_thought" }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
instrumental_learning = { model = "rescorla_wagner_dual", beta = 8.0 }
pictures = { model = "static_bayes_observer" }
[known.random]
probabilistic_reasoning = { model = "random_rater" }
instrumental_learning = { model = "random_responder" }
"""
MODELS = {
    "steady": ("rational", None, False),
    "refuser": ("rational", REFUSING, False),
    "repeater": ("rational", None, True),
}


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """The folder of a benchmark that a cap stopped first, and what the servers were asked."""
    place = tmp_path_factory.mktemp("benchmark")
    (place / "bare.toml").write_text(PLAN, encoding="utf-8")
    plan = read_plan("cogbench", place / "bare.toml")
    folder, file = place / "F", place / "plan.toml"
    with serving(plan, **MODELS) as servers:
        file.write_text(with_models(PLAN, servers, images=["steady"]), encoding="utf-8")
        command = ["benchmark", "cogbench", "--plan", file, "--out", folder]
        capped = typed(*command, "--cap", "calls=50")
        early = sum(server.calls for server in servers.values())
        half = read_benchmark(folder)
        over = typed(*command)
        asked = {name: server.calls for name, server in servers.items()}
        own = read_plan("cogbench", file)
        again = run_benchmark(own, players_of(own, []), folder)
        assert asked == {name: server.calls for name, server in servers.items()}
    return {
        "place": place,
        "folder": folder,
        "capped": capped,
        "early": early,
        "half": half,
        "over": over,
        "again": again,
        "asked": asked,
        "found": read_benchmark(folder),
    }


def test_one_cap_holds_for_all_runs_and_the_same_command_goes_on(lived):
    assert lived["capped"] == 1
    assert 45 <= lived["early"] <= 50  # some wait for what others may leave
    half = lived["half"]
    assert not half.complete
    assert half.cells["calls"].sum() == lived["early"]
    assert half.cells["reason"].str.contains("the cap of 50 calls").any()
    found = lived["found"]
    done = found.cells[found.cells["cell"] != "pictures"]
    assert done["ended"].equals(done["sessions"])
    assert lived["again"].cells.equals(found.cells)
    # Nothing was asked twice: what the servers answered is what the ledgers hold.
    for name, calls in lived["asked"].items():
        own = found.cells[found.cells["model"] == f"openai:{name}"]
        assert own["calls"].sum() == calls
    trials = 8 * 2 + 8 * 2 + 3 * 8
    assert lived["asked"]["steady"] == trials + 2
    assert lived["asked"]["refuser"] == trials


def test_who_cannot_see_is_told_before_the_first_call_and_plays_the_rest(lived, capsys):
    assert lived["over"] == 1  # a cell is left out
    cells = lived["found"].cells.set_index(["model", "cell"])
    assert cells.loc[("openai:steady", "pictures"), "status"] == "finished"
    row = cells.loc[("openai:refuser", "pictures")]
    assert (row["status"], row["calls"]) == ("not begun", 0)
    assert "is to be shown pictures, which its adapter cannot" in row["reason"]
    code = typed("benchmark", "cogbench", "--plan", lived["place"] / "plan.toml", "--dry-run")
    told = capsys.readouterr().out
    assert code == 0
    assert "openai:refuser is not asked in pictures:" in told
    calls = 3 * (2 * 8 + 2 * 8 + 3 * 8) + 2
    assert f"{calls} calls," in told.splitlines()[0]


def test_every_trial_says_who_answered_in_which_cell(lived):
    found = lived["found"]
    trials = found.trials
    assert set(trials["participant"]) == {*found.models, "rational", "random"}
    assert set(trials[trials["known_mind"]]["participant"]) == {"rational", "random"}
    thought = trials["cell"] == "probabilistic_reasoning/chain_of_thought"
    assert set(trials[thought]["reasoning"]) == {"chain_of_thought"}
    assert set(trials[thought]["variant"]) == {"chain_of_thought"}
    address = ["participant", "cell", "subject", "session", "trial"]
    assert not trials[address].duplicated().any()
    # A served mind and the same mind as a reference live the same sessions.
    own = trials[trials["cell"] == "instrumental_learning"].sort_values(["subject", "trial"])
    by = {who: part["action"].tolist() for who, part in own.groupby("participant")}
    assert by["openai:steady"] == by["rational"] != by["random"]


def test_scores_are_those_of_the_runs_and_the_page_shows_them(lived):
    found = lived["found"]
    scores = scores_of(found.trials, found.about).set_index(["participant", "cell", "score"])
    place = next(c for c in found.plan.cells if c.name == "instrumental_learning")
    for model in found.models:
        run = folder_of_cell(lived["folder"], model, place)
        trials = Trials.load(run / "trials.parquet")
        value = scores.loc[(model, place.name, "instrumental_learning_performance"), "value"]
        mean = trials.frame.groupby("subject")["reward"].mean().mean()
        assert value == pytest.approx(mean, nan_ok=True)
        rate = scores.loc[(model, place.name, "learning_rate"), "value"]
        own = MEASURES["learning_rate"].estimate(trials).value
        assert rate == pytest.approx(own, nan_ok=True)
    page = (lived["folder"] / "report.html").read_text(encoding="utf-8")
    for text in ("Performances", "Ten behavioural metrics", "Distance to people", "A map of"):
        assert text in page
    kept = pd.read_csv(lived["folder"] / "tables" / "performances.csv")
    shown = kept.set_index(["participant", "score"])["value"]
    for model in found.models:
        name = "probabilistic_reasoning_performance"
        value = scores.loc[(model, "probabilistic_reasoning", name), "value"]
        assert shown[model, name] == pytest.approx(value)


def _matched(pattern):
    """Files of a shell's pattern."""
    return sorted(Path("/").glob(pattern.lstrip("/")))


def test_the_command_below_a_part_reads_the_same_scores_off_the_runs(lived, capsys):
    found = lived["found"]
    [line] = [
        line
        for part in benchmark_page(found).sections
        if part.name == "metrics"
        for line in part.command.splitlines()
        if "instrumental_learning" in line
    ]
    words = [
        again
        for word in shlex.split(line)[1:]
        for again in (_matched(word) if "*" in word else [word])
    ]
    assert typed(*words, "--measure", "learning_rate", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    theirs = {f"openai:{one['sample']}": one["value"] for one in told["measures"]}
    scores = scores_of(found.trials, found.about).set_index(["participant", "score"])["value"]
    assert set(theirs) == set(found.models)
    for who, value in theirs.items():
        ours = scores[who, "learning_rate"]
        assert (value is None and np.isnan(ours)) or value == pytest.approx(ours)


def test_a_model_without_a_readable_answer_is_a_row_that_says_so(lived):
    cells = lived["found"].cells.set_index(["model", "cell"])
    # What it repeats is the number of its first answer, and no letter of a machine.
    row = cells.loc[("openai:repeater", "instrumental_learning")]
    assert row["readable"] == 0
    assert row["status"] == "no readable answer"
    refused = cells.loc["openai:refuser"]
    share = refused["refused"].sum() / refused["trials"].sum()
    # 56 answers of which a fifth are refused: three standard errors are 0.16.
    assert share == pytest.approx(0.2, abs=0.16)
    page = (lived["folder"] / "report.html").read_text(encoding="utf-8")
    why = re.search(r"openai:repeater</strong> has lived.*?</li>", page, re.DOTALL)[0]
    assert re.search(r"instrumental_learning[^;:]*: no readable answer", why)


def test_the_page_of_half_a_benchmark_says_what_is_missing(lived, tmp_path):
    folder = tmp_path / "begun"
    plan = tmp_path / "plan.toml"
    text = PLAN.replace("[known.rational]", '[models."synthetic:weighted_bayes"]\n[known.rational]')
    plan.write_text(text, encoding="utf-8")
    assert typed("benchmark", "cogbench", "--plan", plan, "--out", folder, "--cap", "calls=9") == 1
    found = read_benchmark(folder)
    assert found.cells["calls"].sum() == 9
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "has lived 0 of 4 cells" in page
    other = tmp_path / "other.toml"
    other.write_text(text.replace("seed = 3", "seed = 4"), encoding="utf-8")
    assert typed("benchmark", "cogbench", "--plan", other, "--out", folder) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("sessions = 1\n", "sessions = 0\n"), "a whole number from 1"),
        (('"base", "chain_of_thought"', '"base", "chain"'), "no variant named 'chain'"),
        (("[known.random]\n", "[known.random]\nhorizons = { model = 'x' }\n"), "no cell named"),
        (("n_visits = 2", "visits = 2"), "The cell instrumental_learning cannot be played"),
        (("seed = 3", "seeds = 3"), "no entry named 'seeds'"),
        (("seed = 3", "seed = -1"), "whole number from 0 on"),
        (("temperature = 1.0", "heat = 1.0"), "no setting of sampling named 'heat'"),
        (("temperature = 1.0", "temperature = 3"), "temperature goes from 0 to 2"),
        (('"line_ratio"', '"lines"'), "no environment named 'lines'"),
        (('"random_rater"', '"random_responder"'), "random_responder gives an action"),
        (('"cogbench"', '"colliders"'), "The plan is of the benchmark 'colliders'"),
        (("[known.rational]", "[known.rational"), "readable TOML"),
    ],
)
def test_what_is_wrong_in_a_plan_is_said_in_a_sentence(tmp_path, capsys, change, told):
    file = tmp_path / "mine.toml"
    assert change[0] in PLAN
    file.write_text(PLAN.replace(*change), encoding="utf-8")
    code = typed("benchmark", "cogbench", "--plan", file, "--llm", "openai:x", "--dry-run")
    error = capsys.readouterr().err.strip()
    assert code == 2
    assert told in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", [b.name for b in BENCHMARKS.values() if b.plan.is_file()])
def test_plans_that_ship_are_read_printed_and_have_a_tenth(name, capsys):
    plan, small = read_plan(name), read_plan(name, small=True)
    assert "rational" in plan.known
    assert len(plan.known) > 1
    assert [cell.name for cell in plan.cells] == [cell.name for cell in small.cells]
    assert sum(c.sessions for c in small.cells) <= max(
        len(plan.cells) * 2, 0.2 * sum(c.sessions for c in plan.cells)
    )
    # All that is asked: a tenth, but for stories, of which there are four of each domain.
    n, few = (sum(c.sessions * c.environment.n_trials for c in p.cells) for p in (plan, small))
    assert few <= (0.25 if name == "colliders" else 0.17) * n
    assert typed("benchmark", name, "--plan") == 0
    assert capsys.readouterr().out == plan.text


def test_a_model_is_connected_once_before_the_first_call(tmp_path, monkeypatch):
    """One that is loaded from a disk takes a minute."""
    file, made, connect = tmp_path / "plan.toml", [], running.connect
    file.write_text(PLAN, encoding="utf-8")

    def counted(llm, *given, **more):
        made.append(llm)
        return connect(llm, *given, **more)

    monkeypatch.setattr(running, "connect", counted)
    plan = read_plan("cogbench", file)
    players = players_of(plan, ["openai:a", "openai:b"], base_url="http://127.0.0.1:9/v1")
    blocked = running.blocked_of(plan, players)
    assert made == ["openai:a", "openai:b"]
    assert {cell for name, cell in blocked if name == "openai:a"} == {"pictures"}


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
    own = found.trials[~found.trials["known_mind"].astype(bool)]
    assert own.groupby(["participant", "template"]).size().tolist() == [40] * 4
    assert own["template_hash"].nunique() == 2
    part = stability(found.trials, found.about, found.benchmark.scores)
    [row] = part.frames["stability_of_trials"].to_dict("records")
    assert (row["models"], row["wordings"]) == (2, 2)
    # Minds to whom words are nothing live the same sessions again, number for number.
    assert row["paraphrase"] + row["interaction"] < 0.01 < row["model"]
    assert row["moved_more_by"] != "wording"
    scores = part.frames["stability"].set_index("score")
    assert set(scores.index) == {
        "probabilistic_reasoning_performance", "prior_weighting", "likelihood_weighting",
    }  # fmt: skip
    assert scores["paraphrase"].max() < 1e-9
    assert "No score is moved more by the wording" in part.sentences[-1]


def test_a_score_that_wording_moves_more_says_so(tmp_path):
    del tmp_path
    names, words = [f"m{k}" for k in range(6)], [f"w{k}" for k in range(5)]
    of_word = dict(zip(words, 3.0 * np.random.default_rng(0).normal(size=5), strict=True))

    def scores(trials, about):
        [word] = trials["template"].unique()
        value = [of_word[word] + 0.1 * k * (-1) ** len(word) for k in range(len(about.models))]
        told = {"participant": about.models, "score": "s", "cell": "x", "value": value}
        return pd.DataFrame(told).assign(standard_error=0.1, freedom=9.0)

    rows = [{"participant": n, "template": w, "cell": "x"} for n in names for w in words]
    place = make("dice", n_dice=1, n_faces=4)
    found = stability(pd.DataFrame(rows), About({"x": place}, (*names, "k"), ("k",)), scores)
    assert any(s.startswith("The wording moves s more than the choice") for s in found.sentences)
    [row] = found.tables[0][2]
    assert row[-1] == "wording"
    assert found.frames["stability"]["paraphrase"].iloc[0] > 0.9
    one = pd.DataFrame(rows)[lambda r: r["template"] == "w0"]
    told = stability(one, About({"x": place}, tuple(names)), scores)
    assert told.sentences[0].startswith("No cell was played in several wordings")


WORDED = """
benchmark = "cogbench"
[experiments]
probabilistic_reasoning = { sessions = 20 }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
"""


# Numbers of the page, by other routes -----------------------------------------------------------


def test_pooled_differences_are_those_of_a_meta_analysis():
    gap, error = np.array([0.1, 0.4, -0.2, 0.3]), np.array([0.1, 0.2, 0.15, 0.3])
    ours, theirs = pooled(gap, error), combine_effects(gap, error**2, method_re="dl")
    assert ours["value"] == pytest.approx(theirs.mean_effect_fe)
    assert ours["standard_error"] == pytest.approx(theirs.sd_eff_w_fe)
    assert ours["random"] == pytest.approx(theirs.mean_effect_re)
    assert ours["random_error"] == pytest.approx(theirs.sd_eff_w_re)
    assert ours["heterogeneity"] == pytest.approx(theirs.test_homogeneity().pvalue)


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
    other = same | {("b", "x"): {"temperature": ("1",), "reasoning": ("none",)}}
    told = differences(scores, ["a", "b"], other)["verdict"].iloc[0]
    assert told == "not compared: temperature differs (0 and 1)"
    assert unequal(same, "a", "e", "x") == "e has not played x"


def test_a_map_keeps_the_distances_of_two_metrics():
    place = {"a": (0.1, 2.0), "b": (0.5, 5.0), "c": (0.9, 1.0), "d": (0.3, 3.0)}
    rows = [
        {"participant": who, "score": name, "value": value}
        for who, both in place.items()
        for name, value in zip(("risk", "learning_rate"), both, strict=True)
    ]
    found, share = flat_map(pd.DataFrame(rows), list(place))
    assert share == pytest.approx(1.0)
    z = np.array(list(place.values()))
    z = (z - z.mean(axis=0)) / z.std(axis=0, ddof=1)
    xy = found.set_index("participant").loc[list(place)].to_numpy()
    for i, j in itertools.combinations(range(4), 2):
        due = np.sqrt(np.mean((z[i] - z[j]) ** 2))
        assert np.linalg.norm(xy[i] - xy[j]) == pytest.approx(due)


def test_distances_keep_the_sign_that_the_published_scale_drops():
    found = distances(_phenotype([[-1.0, 1.0], [1.0, np.nan]]), seed=0).set_index("participant")
    assert found.loc["p0", "distance"] == pytest.approx(np.sqrt(2.0))
    assert found.loc["p0", "without_sign"] == 0.0
    assert found.loc["p1", "metrics"] == 1
    assert found.loc["p1", "distance"] == 0.0


@pytest.mark.parametrize("place", PLACES)
def test_every_experiment_has_its_scores_from_what_is_kept_of_its_trials(place):
    environment = make(place)
    null = next(name for name in NULL_AGENTS if AGENTS[name].plays(environment))
    centre = AGENTS[null].parameters
    every = np.tile(centre.constrain(centre.mean), (2, 1))
    record = simulate_sessions(AGENTS[null], every, environment, 0).to_trials()
    whole = record.frame.assign(participant="a", cell=place, template="shipped")
    found = scores_of(whole, About({place: environment}, ("a",))).set_index("score")
    own = [name for name in METRICS if place in MEASURES[name].environments]
    assert own
    for name in own:
        alone = MEASURES[name].estimate(record)
        assert found.loc[name, "value"] == pytest.approx(alone.value, nan_ok=True)
        assert found.loc[name, "reason"] == ("" if np.isfinite(alone.value) else reason_of(alone))
    if place != "temporal_discounting":
        score = environment.performance(record)
        mean = pd.Series(score).groupby(record.frame["subject"]).mean().mean()
        assert found.loc[f"{place}_performance", "value"] == pytest.approx(mean)


@pytest.fixture
def known_features(tmp_path):
    """A file of features of eight models of four base models, and their scores."""
    rng = np.random.default_rng(5)
    names = [f"m{k}" for k in range(8)]
    size, tuned = rng.normal(size=8), np.tile([0, 1], 4)
    features = pd.DataFrame(
        {
            "participant": names,
            "base_model": np.repeat(list("abcd"), 2),
            "size": size,
            "tuned": tuned,
            "release_date": "2024-05-13",
        }
    )
    features.to_csv(tmp_path / "known.csv", index=False)
    values = {
        "two_step_performance": 2.0 * size + 0.1 * rng.normal(size=8),
        "risk": tuned + 0.1 * rng.normal(size=8),
        "learning_rate": rng.normal(size=8),
    }
    rows = [
        {
            "participant": name, "score": score, "cell": "x", "value": value[k],
            "standard_error": 0.1, "low": value[k] - 0.2, "high": value[k] + 0.2, "reason": "",
        }
        for score, value in values.items()
        for k, name in enumerate(names)
    ]  # fmt: skip
    about = About({}, (*names, "stranger"), features=tmp_path / "known.csv")
    return pd.DataFrame(rows), about


def test_scores_are_regressed_on_features_by_the_command_that_is_printed(
    known_features, tmp_path, monkeypatch, capsys
):
    base, about = known_features
    scale = {"risk": (0.0, 1.0), "learning_rate": (0.0, 1.0)}
    part = cogbench._regression(base, about, scale)
    effects = part.frames["features"].set_index(["metric", "feature"])
    assert set(effects.index.get_level_values("feature")) == {"size", "tuned"}
    own = effects.loc[("average performance", "size")]
    assert own["low"] > 0.5  # a standardised slope near 1
    assert effects.loc[("risk", "tuned"), "low"] > 0.5
    # The distance of both metrics from 1, by hand.
    kept = part.frames["features_scores"].set_index(["metric", "participant"])["score"]
    wide = base.pivot(index="participant", columns="score", values="value")
    for name in wide.index:
        far = np.sqrt(((wide.loc[name, ["risk", "learning_rate"]] - 1) ** 2).mean())
        assert kept["distance to the reference", name] == pytest.approx(far)
    (tmp_path / "tables").mkdir()
    part.frames["features_scores"].to_csv(tmp_path / "tables" / "features_scores.csv", index=False)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(part.command)
    assert words[0] == "knownminds"
    assert typed(*words[1:], "--json") == 0
    told = json.loads(capsys.readouterr().out)["effects"]
    for row in told:
        ours = effects.loc[(row["metric"], row["feature"]), "coefficient"]
        assert row["coefficient"] == pytest.approx(ours, abs=1e-9)


def test_a_map_names_models_by_the_first_feature_that_is_yes_or_no(known_features):
    _, about = known_features
    assert cogbench._yes_or_no(about)["m0"] == "not tuned"
    assert cogbench._yes_or_no(about)["m1"] == "tuned"


def test_a_reference_that_is_like_random_answers_makes_no_scale():
    assert np.isnan(unlike(0.50, 0.52, 0.011))
    assert unlike(0.50, 0.52, 0.009) == 0.52
    assert unlike(0.50, 0.52, np.nan) == 0.52  # nothing is known of its error


def test_known_minds_come_back_with_their_parameters(lived):
    about = lived["found"].about
    scores = scores_of(lived["found"].trials, about)
    found = recovered(scores[scores["variant"] == "base"], about)
    own = found.set_index(["participant", "score"])
    place = make("probabilistic_reasoning")
    centre = AGENTS["weighted_bayes"].parameters
    weights = dict(zip(centre.names, centre.constrain(centre.mean), strict=True))
    assert place.name in about.truth["rational"]
    for score, name in (("prior_weighting", "b_prior"), ("likelihood_weighting", "b_likelihood")):
        row = own.loc[("rational", score)]
        assert row["truth"] == pytest.approx(weights[name])
        # 16 answers with noise .05 about the law: within four standard errors.
        assert abs(row["value"] - row["truth"]) < 4 * row["standard_error"] + 1e-3
    assert np.isnan(own.loc[("random", "learning_rate"), "truth"])


def _phenotype(scores):
    values = np.array(scores)
    none = np.zeros_like(values)
    return Phenotype(
        tuple(f"p{k}" for k in range(len(values))), ("risk", "learning_rate"), values, none,
        values, values, np.zeros(2), np.ones(2), (("", ""),) * len(values),
    )  # fmt: skip


def test_the_result_is_told_as_json(lived, capsys):
    del capsys
    told = lived["found"].to_dict()
    assert told["benchmark"] == "cogbench"
    assert len(told["cells"]) == 3 * 4
    json.dumps(told, allow_nan=False)


def test_every_sentence_of_the_page_is_listed(lived):
    found = lived["found"]
    with laid_out():
        page = benchmark_page(found)
    parts = page.sections
    kinds = {"comparison": SHARED, "stability": SHARED, "cells": SHARED, "known_minds": MINDS}
    told = {one.name: one for one in parts}
    assert {"performances", "known", "map", "comparison", "known_minds", "cells"} <= set(told)
    for name, one in told.items():
        captions = (caption for caption, _ in one.figures)
        check(kinds.get(name, COGBENCH), [*one.sentences, *captions], one)
    words = [finding.word for finding in page.findings]
    check(SHARED, [word for word in words if word != "has lived every cell"], found)
