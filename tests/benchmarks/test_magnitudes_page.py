"""The page of magnitudes: each number by a route of its own, and data with gaps."""

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import about, laid_out
from claims import check
from claims.benchmark_magnitudes import REPORT
from magnitude_sets import answers_of

from knownminds.environments.magnitudes.magnitude import CONDITIONS
from knownminds.validation.benchmarks import magnitudes
from knownminds.validation.benchmarks.comparison import SEVERAL, differences
from knownminds.validation.benchmarks.magnitudes import sections
from knownminds.validation.data.model_features import feature_importance
from knownminds.validation.magnitudes import magnitude_page, magnitude_task_page

NOISY = [CONDITIONS.index(name) for name in ("constant_noise", "gradual_noise")]


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Figures are laid out, but not written; few known minds."""
    with laid_out(magnitudes, REPLICATES=10):
        yield


@pytest.fixture(scope="module")
def trials():
    sharp = answers_of("sharp", prior=0.1, repeats=1, seed=1)
    blind = answers_of("blind", prior=0.5, repeats=1, seed=2)
    # As the plan has it: under noise texts are not asked for again; one model sees no pictures.
    sharp = sharp[~(sharp["condition"].isin(NOISY) & (sharp["modality"] == 0))]
    blind = blind[(blind["modality"] == 0) & ~blind["condition"].isin(NOISY)]
    frame = pd.concat([sharp, blind], ignore_index=True)
    return frame.assign(participant=frame["model"], cell=frame["environment"])


@pytest.fixture(scope="module")
def page(trials):
    return {one.name: one for one in sections(trials, about({}))}


def base_of(trials, who, task, modality):
    own = trials[
        (trials["participant"] == who)
        & (trials["environment"] == task)
        & (trials["condition"] == CONDITIONS.index("base"))
        & (trials["modality"] == modality)
    ]
    return own


def test_errors_and_slopes_are_those_of_plain_arithmetic(trials, page):
    cells = page["errors"].frames["errors"]
    slopes = page["regression"].frames["regression"]
    for who, task, name, code in (
        ("sharp", "maze_distance", "text+image", 2),
        ("blind", "duration", "text", 0),
    ):
        own = base_of(trials, who, task, code)
        by = own.groupby("window")["value"]
        middle = (by.transform("min") + by.transform("max")) / 2
        nrmse = np.sqrt(((own["response"] - own["value"]) ** 2).mean()) / np.sqrt(
            ((middle - own["value"]) ** 2).mean()
        )
        row = cells[
            (cells["participant"] == who)
            & (cells["task"] == task)
            & (cells["modality"] == name)
            & (cells["condition"] == "base")
        ].iloc[0]
        assert row["error"] == pytest.approx(nrmse)
        x = own["value"] - by.transform("mean")
        y = own["response"] - own.groupby("window")["response"].transform("mean")
        told = slopes[
            (slopes["participant"] == who) & (slopes["task"] == task) & (slopes["modality"] == name)
        ].iloc[0]
        assert told["value"] == pytest.approx(1 - (x * y).sum() / (x * x).sum())
        assert told["low"] <= told["high"]


def test_text_of_the_base_condition_serves_beside_blurred_pictures(page):
    cues = page["cues"].frames["cues"]
    noisy = cues[(cues["condition"] == "constant_noise") & (cues["reference"] == "linear")]
    assert set(noisy["participant"]) == {"sharp"}
    assert len(noisy) == 3  # tasks
    assert noisy["text_weight"].between(0, 1).all()
    assert (noisy["n"] == 33).all()
    assert (noisy["matched"] == "values").all()
    (table,) = page["noise"].tables
    weights = {(row[0], row[1]): row[2:] for row in table[2]}
    told = weights["sharp", "marker location"][table[1][2:].index("constant noise")]
    row = noisy[noisy["task"] == "marker_location"].iloc[0]
    assert float(told.split(" ")[0]) == pytest.approx(1 - row["text_weight"], abs=5.1e-3)


def test_who_sees_no_pictures_has_a_row_and_no_composite(page):
    rows = page["composite"].tables[0][2]
    told = {row[0]: row[1:] for row in rows}
    assert told["blind"][0] == "-"
    assert told["sharp"][1] != "-"
    lacking = {row[0] for row in page["composite"].tables[1][2]}
    assert "blind" in lacking
    (maze,) = (t for t in page["errors"].tables if t[0] == "NRMSE: maze distance")
    by = {row[0]: dict(zip(maze[1][1:], row[1:], strict=True)) for row in maze[2]}
    assert by["blind"]["text+image"] == "-"
    assert by["blind"]["text"] != "-"


def test_the_composite_is_the_mean_of_its_parts(page):
    rows = page["composite"].frames["composite"]
    own = rows[rows["participant"] == "sharp"].set_index("part")["value"]
    cells = page["errors"].frames["errors"]
    base = cells[(cells["participant"] == "sharp") & (cells["condition"] == "base")]
    whole = base[(base["modality"] == "text+image") | (base["task"] == "duration")]
    assert own["A"] == pytest.approx((1 - whole["error"].clip(upper=2) / 2).mean())
    score = page["consistency"].frames["consistency"]
    total = score[score["participant"] == "sharp"]["score"]
    if total.notna().all():
        assert own["C"] == pytest.approx((total.sum() + 15) / 30)
        assert own["S"] == pytest.approx(own[["A", "E", "C"]].mean())


def test_variants_are_counted_from_the_best(page):
    rows = page["variants"].frames["variants"]
    best = rows.groupby(["participant", "task", "modality"])["above_best"].min()
    assert (best == 0).all()


def test_features_that_matter_are_found():
    rng = np.random.default_rng(0)
    names = [f"m{k}" for k in range(16)]
    size = np.arange(16.0)
    features = pd.DataFrame(
        {"participant": names, "size": size, "noise": rng.random(16), "kind": ["a", "b"] * 8}
    )
    score = pd.Series(size / 15 + 0.05 * rng.standard_normal(16), index=names)
    found = feature_importance(features, score).set_index("feature")
    assert found.index[0] == "size"
    assert found.loc["size", "low"] > 0
    assert abs(found.loc["noise", "importance"]) < 0.2 * found.loc["size", "importance"]
    assert found.loc["size", "rho"] > 0.9
    assert len(feature_importance(features[:5], score)) == 0


def test_every_sentence_is_listed_and_bad_input_is_told(page, trials):
    for one in page.values():
        check(REPORT, [*one.sentences, *(caption for caption, _ in one.figures)], one)
    with pytest.raises(ValueError, match="there are none"):
        sections(trials.assign(environment="dice"), about({}))
    assert magnitude_page.composites is not None
    assert magnitude_task_page.blur_weights is not None


def test_models_are_compared_on_every_score_in_all_the_cells_it_hangs_on(page, trials):
    told = magnitudes.scores(trials, about({})).set_index(["participant", "score"])
    assert {name.split(":")[0].split(",")[0] for _, name in told.index} == {
        "NRMSE", "prior weight", "regression to the mean", "weight of the text", "RRE",
        "composite", "consistency score",
    }  # fmt: skip
    cues = page["cues"].frames["cues"]
    rows = cues[(cues["task"] == "line_ratio") & (cues["condition"] == "base")]
    for row in rows[rows["reference"].isin(["bayes_oracle", "bayes_responses"])].to_dict("records"):
        name = f"RRE, {row['reference'].replace('_', ' ')}: line ratio, base"
        one = told.loc[("sharp", name)]
        assert one["value"] == row["efficiency"]
        assert one["standard_error"] == pytest.approx((row["high"] - row["low"]) / 2)
    whole = told.loc[("sharp", "composite: composite")]
    assert set(whole["cell"].split(SEVERAL)) == set(trials["cell"])
    conditions = {
        (who, cell): {"temperature": ("0",)}
        for who, cell in trials[["participant", "cell"]].drop_duplicates().to_numpy().tolist()
        if (who, cell) != ("blind", "line_ratio")
    }
    found = differences(told.reset_index(), ["sharp", "blind"], conditions).set_index("score")
    assert found.loc["composite: composite", "verdict"] == (
        "not compared: blind has not played line_ratio"
    )
    row = found.loc["NRMSE: marker location, text"]
    gap = told.loc[("sharp", "NRMSE: marker location, text")]
    other = told.loc[("blind", "NRMSE: marker location, text")]
    assert row["difference"] == pytest.approx(gap["value"] - other["value"])
    error = np.hypot(gap["standard_error"], other["standard_error"])
    assert row["high"] - row["low"] == pytest.approx(2 * 1.959964 * error, rel=1e-6)
