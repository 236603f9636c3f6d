"""Claims of papers, each with a verdict, and a paper's own public files on its page."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds.validation.benchmarks.claims import (
    FAILS,
    HOLDS,
    NONE,
    Claim,
    covered,
    effect_of,
    judged,
    read_claims,
    read_numbers,
    verdict_of,
)
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import PAPERS, plan_of

PLAN = """
benchmark = "cogbench"
[experiments]
balloon_risk = { sessions = 4, settings = { n_balloons = 6 } }
[known.random]
balloon_risk = { model = "random_responder" }
[claims.tuned]
compared = "risk by tuning"
of = "risk"
on = "rlhf"
least = 0.2
published = "holds"
place = "p. 1"
[claims.bold]
compared = "pumps above 3"
of = "risk"
than = 3.0
direction = "below"
least = 0.1
published = "holds"
place = "p. 2"
[claims]
map = { compared = "a map", published = "holds", place = "p. 3", offered = "no maps" }
"""
FEATURES = "participant,base_model,rlhf\n"


def of_models(values):
    """Return scores of several models, whose own errors are not known."""
    return pd.DataFrame({
        "participant": [f"m{k}" for k in range(len(values))], "score": "s", "value": values,
        "standard_error": np.nan, "freedom": np.nan, "influence": None,
    })  # fmt: skip


def said(claim, values):
    scores = of_models(values)
    return verdict_of(claim, effect_of(claim, scores, list(scores["participant"])))


@pytest.mark.long  # the standing audit has it too
def test_wrong_verdicts_are_as_rare_as_the_page_says():
    """Without an effect "holds" comes in 2.5%, with the smallest that counts "does not hold".

    Of 2,000 data sets 2.5% have a standard error of .0035; the bound lies 4 of them above.
    """
    rng, n, sets = np.random.default_rng(5), 6, 2000
    above = Claim("c", "", HOLDS, "", "s", least=0.8)
    none = Claim("c", "", HOLDS, "", "s", NONE, least=0.8)
    zero = [said(above, rng.normal(0.0, 1.0, n)) for _ in range(sets)]
    counts = [said(above, rng.normal(0.8, 1.0, n)) for _ in range(sets)]
    assert zero.count(HOLDS) / sets < 0.039
    assert counts.count(FAILS) / sets < 0.039
    assert zero.count(HOLDS) / sets > 0.01  # no test that never speaks
    counts = [said(none, rng.normal(0.8, 0.3, n)) for _ in range(sets)]
    assert counts.count(HOLDS) / sets < 0.039
    zero = [said(none, rng.normal(0.0, 0.3, n)) for _ in range(sets)]
    assert zero.count(FAILS) / sets < 0.05 + 4 * 0.0049
    assert zero.count(HOLDS) / sets > 0.9


def test_the_unit_is_the_participant_and_pairs_are_pairs():
    rng = np.random.default_rng(2)
    level, gap = rng.normal(0.0, 5.0, 12), rng.normal(0.5, 0.1, 12)
    both = pd.concat([of_models(level + gap), of_models(level).assign(score="t")])
    who = [f"m{k}" for k in range(12)]
    paired = effect_of(Claim("c", "", HOLDS, "", "s", minus="t"), both, who)
    assert paired.n == 12
    half = 2.2010 * gap.std(ddof=1) / np.sqrt(12)  # Student's, 11 degrees of freedom
    assert [paired.value, paired.high] == pytest.approx([gap.mean(), gap.mean() + half], rel=1e-4)
    sees = (2.2010 + 0.8755) * gap.std(ddof=1) / np.sqrt(12)
    assert paired.sees == pytest.approx(sees, rel=1e-3)
    people = of_models([1.0]).assign(participant="people", standard_error=0.5)
    beside = effect_of(
        Claim("c", "", HOLDS, "", "s", minus="people"), pd.concat([both, people]), who, ("people",)
    )
    assert beside.value == pytest.approx((level + gap).mean() - 1.0)
    spread = np.hypot((level + gap).std(ddof=1) / np.sqrt(12), 0.5)
    assert (beside.high - beside.low) / spread > 2 * 1.96


def test_known_agents_end_no_claim():
    from knownminds.validation.benchmarks.claims import ClaimGroup

    claim = Claim("c", "", HOLDS, "", "s", least=0.1)
    alone = of_models([1.0]).assign(standard_error=0.01)
    rows = judged([claim], [ClaimGroup("rational", ("m0",), alone)], None)
    assert rows["verdict"].tolist() == [HOLDS]
    assert rows["end"].tolist() == ["not checked"]


@pytest.mark.parametrize("paper", list(PAPERS))
def test_the_claims_that_ship_are_lines_that_can_be_read(paper):
    claims = read_plan(paper).claims
    assert len({claim.name for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.offered or claim.least > 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"published": "maybe"}, "published"), ({"least": 0}, "above 0"), ({"off": "x"}, "entry"),
     ({"direction": "up"}, "direction")],
)  # fmt: skip
def test_a_line_that_is_none_is_refused(change, problem):
    line = {"compared": "a", "of": "s", "least": 0.1, "published": HOLDS, "place": "p"}
    with pytest.raises(ValueError, match=problem):
        read_claims({"c": {**line, **change}})


def checkout(folder, n=14, tuned=2.0):
    """Write public files in CogBench's layout, with invented numbers; odd engines pump more."""
    rng, task = np.random.default_rng(3), folder / "Experiments" / "BART"
    (task / "data").mkdir(parents=True)
    scores, features = [], [FEATURES]
    for k in range(n):
        odd = k % 2
        mean = 2.0 + tuned * odd + 0.2 * rng.standard_normal()
        scores += [f"e{k},{run},1.0,Average rewards,{mean + 0.1 * run},Risk" for run in range(3)]
        features.append(f"e{k},b{k // 2},{odd}\n")
    head = "engine,run,performance_score1,performance_score1_name,behaviour_score1,"
    (task / "scores_data.csv").write_text(
        "\n".join([head + "behaviour_score1_name", *scores, "human,0,5.0,Average rewards,5,Risk"])
    )
    rows = ["trial,pumps,reward,run,max_pumps,exploded"]
    rows += [f"{t},2,2,{run},{m},False" for run in range(4) for t, m in enumerate([128, 32, 8] * 2)]
    (task / "data" / "e0.csv").write_text("\n".join(rows))
    (task / "notes.csv").write_text("a,b\n1,2\n")
    (folder.parent / "features.csv").write_text("".join(features))
    (folder.parent / "plan.toml").write_text(PLAN)


def test_public_files_make_the_page_and_a_new_model_joins_it(tmp_path, knownminds):
    checkout(tmp_path / "public")
    out = tmp_path / "b"
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", out,
             "--features", tmp_path / "features.csv")  # fmt: skip
    code, text, err = knownminds(
        *words, "--from", tmp_path / "public", "--llm", "synthetic:balloon_pumper"
    )
    assert code == 0, err
    assert "e0 in balloon_risk, 72 trials" in err + text
    assert "passed over" in err + text
    table = pd.read_csv(out / "tables" / "claims.csv").set_index(["claim", "group"])
    line = table.loc["tuned", "published data"]
    assert (line["verdict"], line["end"], line["n"]) == ("holds", "verified", 14)
    assert table.loc[("tuned", "models run now"), "reason"].startswith("none of these has features")
    assert table.loc[("bold", "published data"), "end"] == "not found"  # half of them pump more
    assert table.loc[("bold", "models run now"), "n"] == 1
    assert table.loc["map"]["end"].tolist() == ["not offered"]
    kept = json.loads((out / "benchmark.json").read_text())
    assert kept["published"] == ["e0"]
    assert set(kept["models"]) == {"e0", "synthetic:balloon_pumper"}
    page = (out / "report.html").read_text()
    assert "The language models synthetic:balloon_pumper took them. Answers of e0 were" in page
    assert "--llm e0" not in page  # who is of files is no model to be asked
    code, text, _ = knownminds("benchmark", "cogbench", "--claims", "--plan",
                               tmp_path / "plan.toml", "--out", out)  # fmt: skip
    assert code == 0
    assert "tuned" in text
    assert "verified" in text
    assert (out / "report.html").read_text() == page  # it prints, and writes nothing


def test_what_cannot_be_read_in_public_files_is_counted_and_the_rest_is_taken(tmp_path, knownminds):
    checkout(tmp_path / "public")
    data = tmp_path / "public" / "Experiments" / "BART" / "data"
    (data / "nothing.csv").write_text("")
    (data / "bytes.csv").write_bytes(b"\xff\xfe\xe9")
    whole = (data / "e0.csv").read_text().rstrip("\n")
    for name in ("e0.csv", "e0 (copy).csv"):
        (data / name).write_text(whole + "\n12,3")
    code, _, err = knownminds("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--from",
                              tmp_path / "public", "--out", tmp_path / "b")  # fmt: skip
    assert code == 0, err
    assert "e0 in balloon_risk, 72 trials" in err
    assert "1 row left out, the file ends within its last line: 1 (e0.csv)" in err
    assert "passed over, a file is empty: 1 (nothing.csv)" in err
    assert "passed over, a file is a copy of another one: 1 (e0 (copy).csv)" in err
    assert "(bytes.csv)" in err


def test_a_folder_of_another_paper_is_refused_by_the_name_of_its_own(tmp_path, knownminds):
    checkout(tmp_path / "public")
    (tmp_path / "public" / "Experiments" / "BART" / "scores_data.csv").unlink(missing_ok=True)
    code, _, err = knownminds("benchmark", "magnitudes", "--from", tmp_path / "public",
                              "--out", tmp_path / "b")  # fmt: skip
    assert code == 2
    assert "are of balloon_risk" in err
    assert "Ask for the benchmark cogbench" in err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda text: text.replace("base_model", "base"), "base_model"),
        (lambda text: text + "late,b", "'late' has nan"),
        (lambda text: text + text.splitlines()[1] + "\n", "several"),
    ],
)
def test_a_table_of_features_that_cannot_be_used_is_refused_before_anything_is_written(
    spoil, problem, tmp_path, knownminds
):
    checkout(tmp_path / "public")
    features = tmp_path / "features.csv"
    features.write_text(spoil(features.read_text()))
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    for more in (("--from", tmp_path / "public"), ("--claims",)):
        code, _, err = knownminds(*words, *more, "--features", features)
        assert code == 2
        assert problem in err
    assert not (tmp_path / "b").exists()


def test_features_that_come_later_are_used_by_the_claims(tmp_path, knownminds):
    checkout(tmp_path / "public")
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    assert knownminds(*words, "--from", tmp_path / "public")[0] == 0
    assert "verified" not in knownminds(*words, "--claims")[1].split("How the claims end")[0]
    late = knownminds(*words, "--claims", "--features", tmp_path / "features.csv")[1]
    assert "verified" in late.split("How the claims end")[0]


def test_claims_without_answers_are_not_checked(tmp_path, knownminds):
    code, text, _ = knownminds("benchmark", "cogbench", "--claims", "--out", tmp_path / "none")
    assert code == 0
    assert "not checked" in text
    assert "not offered" in text
    assert not (tmp_path / "none").exists()


def test_a_folder_without_tables_of_trials_is_refused(tmp_path, knownminds):
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "a.csv").write_text("x,y\n1,2\n")
    code, _, err = knownminds("benchmark", "cogbench", "--from", tmp_path / "public",
                              "--out", tmp_path / "b")  # fmt: skip
    assert code == 2
    assert "public files" in err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", PAPERS)
def test_printed_numbers_are_of_places_that_print_as_many_and_each_stands_once(name):
    values, places = read_numbers(plan_of(name), name)
    assert set(values["place"]) <= set(places["place"])
    counted = covered(values, places)
    assert (counted["lines"] <= counted["numbers"]).all()
    assert not values.duplicated(["place", "row", "participant"]).any()
    assert pd.to_numeric(values["printed"]).notna().all()


@pytest.mark.long
def test_claims_of_a_benchmark_that_is_not_finished_end_as_its_page_does(tmp_path, knownminds):
    words = ("benchmark", "cogbench", "--llm", "synthetic:rescorla_wagner_dual", "--small",
             "--out", tmp_path / "b")  # fmt: skip
    code, text, _ = knownminds(*words, "--claims")
    assert (code, "Claims" in text) == (1, True)  # it does not take six of the experiments
    assert knownminds(*words)[0] == 1


def test_one_table_alone_is_printed(tmp_path, knownminds):
    words = ("benchmark", "cogbench", "--claims", "--numbers", "--out", tmp_path / "none")
    code, out, err = knownminds(*words)
    assert (code, out) == (2, "")
    assert "one table alone" in err


def test_people_without_any_answers_are_not_passed_over_in_silence(tmp_path, knownminds):
    (tmp_path / "people.csv").write_text("metric,value\nrisk,3\n")
    code, _, err = knownminds("benchmark", "cogbench", "--claims", "--out", tmp_path / "none",
                              "--people", tmp_path / "people.csv")  # fmt: skip
    assert (code, "Give --from or --llm" in err) == (2, True)
