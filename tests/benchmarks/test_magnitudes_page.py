"""The page of magnitudes: each number by a route of its own, and data with gaps."""

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import about, laid_out
from magnitude_sets import answers_of

from knownminds.environments.magnitudes.magnitude import CONDITIONS
from knownminds.validation.benchmarks import magnitudes
from knownminds.validation.benchmarks.magnitudes import sections
from knownminds.validation.data.model_features import feature_importance

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
