"""What a benchmark answers first: who is above whom, and how much of it could be read."""

import json

import pytest

from knownminds import run, score, serve
from knownminds.agents import Contaminants
from knownminds.validation.benchmarks.benchmark import read_benchmark
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import plan_of

PLAN = """
benchmark = "cogbench"
[sampling]
temperature = 0.5
[experiments]
probabilistic_reasoning = { sessions = 8 }
temporal_discounting = { sessions = 2 }
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "plan.toml"
    file.write_text(PLAN, encoding="utf-8")
    return file


def served(plan, **options):
    return serve("cogbench", plan=str(plan), **options)


def test_a_served_agent_answers_every_cell_as_in_process(plan, tmp_path, knownminds):
    """Also where the plan has a temperature, which numbers are not drawn with."""
    names = {"probabilistic_reasoning": "weighted_bayes",
             "temporal_discounting": "hyperbolic_discounter"}  # fmt: skip
    words = ("benchmark", "cogbench", "--plan", plan, "--out", tmp_path)
    with served(plan) as server:
        code, _, err = knownminds(*words, "--llm", "openai:known-agent", "--base-url",
                                  server.base_url, "--fail-under", 1)  # fmt: skip
    assert code == 0, err
    inside = [word for name in names.values() for word in ("--llm", f"synthetic:{name}")]
    assert knownminds(*words, *inside)[0] == 1  # none of them takes both
    by = read_benchmark(tmp_path).trials.groupby(["participant", "cell"])
    for cell, name in names.items():
        theirs, ours = by.get_group(("openai:known-agent", cell)), by.get_group(
            (f"synthetic:{name}", cell)
        )  # fmt: skip
        answer = "response" if cell == "probabilistic_reasoning" else "action"
        keys = ["session", "trial"]
        assert theirs.sort_values(keys)[answer].tolist() == ours.sort_values(keys)[answer].tolist()


def test_cells_are_counted_by_what_can_be_read_and_too_few_have_an_exit_code(
    plan, tmp_path, knownminds
):
    words = ("benchmark", "cogbench", "--plan", plan, "--out", tmp_path, "--json")
    with served(plan, contaminants=Contaminants(malformed=0.5)) as server:
        llm = ("--llm", "openai:known-agent", "--base-url", server.base_url)
        assert knownminds(*words, *llm)[0] == 0
        code, out, _ = knownminds(*words, *llm, "--fail-under", 0.9)
    told = json.loads(out)
    assert code == 4
    assert told["counts"]["cells"]["partly readable"] == 2
    reasons = told["verdicts"]["openai:known-agent"]["reasons"]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "probabilistic_reasoning", "temporal_discounting"
    ]  # fmt: skip
    assert all(reason.endswith("readable, under 90.0%") for reason in reasons)
    assert knownminds(*words, *llm, "--fail-under", 90)[0] == 2


def test_two_models_are_answered_with_the_difference_first(plan, tmp_path, knownminds):
    inside = ("--llm", "synthetic:weighted_bayes", "--llm", "synthetic:random_rater")
    words = ("benchmark", "cogbench", "--plan", plan, "--out", tmp_path)
    code, out, err = knownminds(*words, *inside, "--json")
    assert code == 1, err  # neither discounts
    told = json.loads(out)
    first, second, *_ = told["tables"]
    assert (first, second) == ("which_differs_weighted_bayes_random_rater", "models")
    rows = {row["score"]: row for row in told["parts"]["differences"]}
    for row in told["tables"][first]:
        whole = rows[row["score"]]
        assert row["difference"] == whole["difference"]
        assert (row["difference_low"], row["difference_high"]) == (whole["low"], whole["high"])
        assert (row["who_is_above"] in whole["verdict"]) or whole["corrected"] is None
    shown = sum(row["verdict"].endswith("is above") for row in rows.values())
    assert told["counts"]["differences"]["shown"] == shown > 0
    quiet, loud = (knownminds(*words, *inside, word) for word in ("-q", "-v"))
    assert quiet[1] == loud[1]
    assert quiet[2] == ""
    assert "report:" in loud[2]


def test_measures_of_two_runs_are_answered_with_the_difference_first(tmp_path):
    for name, rate in (("a", 0.9), ("b", 0.1)):
        llm = f"synthetic:rescorla_wagner_dual?name={name}"
        run("instrumental_learning", llm, sessions=6, truth={"alpha_positive": rate, "beta": 8.0},
            out=tmp_path / name)  # fmt: skip
    answer = score([tmp_path / "a", tmp_path / "b"])
    title = next(iter(answer.tables))
    assert title.startswith("Which differs: ")
    table = answer.tables[title]
    values = answer["Measures"].set_index(["measure", "participant"])["value"]
    first = list(dict.fromkeys(values.index.get_level_values("participant")))
    for name, row in table.iterrows():
        gap = values[name, first[0]] - values[name, first[1]]
        assert row["difference"].value == pytest.approx(gap)
    assert f"\n\n{title}\n" in str(answer)
    single = score(tmp_path / "a")
    assert next(iter(single.tables)) == "Measures"


def test_why_there_is_no_interval_and_no_comparison_stands_beside(tmp_path, knownminds):
    for seed, name in enumerate(("", "?name=other")):
        run("two_step", f"synthetic:two_step_reduced{name}", truth={"beta": 3.66929669},
            sessions=1, trials=4, seed=seed, out=tmp_path / f"r{seed}")  # fmt: skip
    code, said, err = knownminds("score", tmp_path / "r0")
    assert code == 0, err
    assert "performance: no interval: a single session." in said
    code, said, err = knownminds("score", tmp_path / "r0", tmp_path / "r1")
    assert code == 0, err
    assert "beta=3.67," in said
    assert "not compared: a single session" in said
    assert "not compared: no value of the " in said


def test_a_plan_of_models_alone_is_the_one_that_ships_with_them(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text('[models."openai:m"]\nprice = "0.5,0.8"\n', encoding="utf-8")
    plan, ships = read_plan("cogbench", file), read_plan("cogbench")
    assert dict(plan.models) == {"openai:m": {"price": "0.5,0.8"}}
    assert [cell.key for cell in plan.cells] == [cell.key for cell in ships.cells]
    assert (plan.seed, plan.known) == (ships.seed, ships.known)
    file.write_text(plan.text, encoding="utf-8")  # as a folder keeps it
    assert read_plan("cogbench", file).text == plan.text
    assert plan.text.startswith(plan_of("cogbench").read_text(encoding="utf-8"))


def test_a_single_participant_is_answered_with_estimates_and_not_with_counts(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(
        PLAN.replace("[sampling]\ntemperature = 0.5\n", ""), encoding="utf-8"
    )
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    _, out, err = knownminds(*words, "--llm", "synthetic:weighted_bayes", "-q")
    first = out.partition("\n\n")[2]
    assert first.startswith("Estimates\n"), out + err
    assert "Performances, with 95% intervals" in first
    code, out, err = knownminds("reveal", "coins", "--llm", "synthetic:belief_sampler", "-q")
    assert code == 0, err
    assert " to " in out.partition("\n\n")[2]  # of an interval
