"""The page of magnitudes: each number by a route of its own, and data with gaps."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.agents import AGENTS
from knownminds.environments import Trials
from knownminds.environments.magnitudes.magnitude import CONDITIONS
from knownminds.inference.magnitudes.factor_evidence import VARIANTS
from knownminds.inference.magnitudes.magnitude_answers import MagnitudeAnswers
from knownminds.inference.magnitudes.normalised_error import normalised_error
from knownminds.inference.magnitudes.observer_fits import fit_observers
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.benchmarks import magnitude_frames
from knownminds.validation.benchmarks.claims import effect_of, verdict_of
from knownminds.validation.benchmarks.magnitude_frames import means
from knownminds.validation.benchmarks.magnitudes import PAPER, prepare
from knownminds.validation.benchmarks.paper import About, Answers, scores_in
from knownminds.validation.benchmarks.plan import read_plan

MODEL = AGENTS["bayesian_observer"]
NOISY = [CONDITIONS.index(name) for name in ("constant_noise", "gradual_noise")]


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
    """The page with observers that have no output map: half of the kernels are compiled."""
    about = About({}, ("sharp", "blind"), options={"replicates": 10})
    plain = tuple(name for name, what in VARIANTS.items() if what["output"] == "none")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(magnitude_frames, "fit_observers", partial(fit_observers, models=plain))
        parts, *_ = PAPER.parts(trials, about)
    for part in parts:
        for drawing in part.figures.values():
            drawing.figure()
    return {part.name: part for part in parts}


def base_of(trials, who, task, modality):
    own = trials[
        (trials["participant"] == who)
        & (trials["environment"] == task)
        & (trials["condition"] == CONDITIONS.index("base"))
        & (trials["modality"] == modality)
    ]
    return own


@pytest.mark.long
def test_claims_of_one_participant_have_errors_of_its_answers():
    """Evidence of the same static observer varies by about .2, as new answers to new stimuli do."""
    plan = read_plan("magnitudes")
    frame = pd.concat(
        [answers_of(f"m{k}", prior=0.2, conditions=("base",), seed=k) for k in (1, 2)]
    )
    frame = frame.assign(participant=frame["model"], cell=frame["environment"])
    about = About({}, ("m1", "m2"), options={"replays": 8})
    scores = scores_in([means(Answers(prepare(frame, about), about))]).assign(influence=None)
    claims = {claim.name: claim for claim in plan.claims}
    for name in ("pictures", "both"):
        one = effect_of(claims[name], scores, ["m1"])
        assert (one.unit, one.n) == ("participant alone", 1)
        assert one.low < one.value < one.high
        assert verdict_of(claims[name], one)
        of_tasks = scores[(scores["participant"] == "m1") & (scores["score"] == claims[name].of)]
        assert of_tasks["standard_error"].between(0.002, 0.3).all()
    # Words are compared with pictures in the three tasks that have both; duration is no part.
    text = frame[(frame["participant"] == "m1") & (frame["modality"] == 0)]
    errors = [
        normalised_error(MagnitudeAnswers.read(some).cells["", task, "base", "text"])[0]
        for task, some in text.groupby("environment") if task != "duration"
    ]  # fmt: skip
    told = scores[(scores["participant"] == "m1") & (scores["score"] == "mean error: base, text")]
    assert told["value"].item() == pytest.approx(np.mean(errors))
    ranks = effect_of(claims["accuracy-evidence"], scores, ["m1"])
    assert ranks.reason == "a correlation over participants: 1 of 5 at least have both"
    few = frame[frame["trial"] < 20]
    scores = scores_in([means(Answers(prepare(few, about), about))])
    assert not verdict_of(claims["pictures"], effect_of(claims["pictures"], scores, ["m1"]))


def test_errors_and_slopes_are_those_of_plain_arithmetic(trials, page):
    cells = page["conditions"].rows
    slopes = page["regression"].rows
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
    rows = page["composite"].rows
    own = rows[rows["participant"] == "sharp"].set_index("part")["value"]
    cells = page["conditions"].rows
    base = cells[(cells["participant"] == "sharp") & (cells["condition"] == "base")]
    whole = base[(base["modality"] == "text+image") | (base["task"] == "duration")]
    assert own["A"] == pytest.approx((1 - whole["error"].clip(upper=2) / 2).mean())
    shifts = page["consistency"].tables["Prior weights"].reset_index()
    total = shifts[shifts["participant"] == "sharp"]["score"]
    if total.notna().all():
        assert own["C"] == pytest.approx((total.sum() + 15) / 30)
        assert own["S"] == pytest.approx(own[["A", "E", "C"]].mean())


def test_answers_are_drawn_in_the_order_in_which_they_were_given(page):
    figures = page["pictured"].figures
    rows = next(one.data for caption, one in figures.items() if "order of the trials" in caption)
    seen = rows[(rows["what"] == "stimulus") & (rows["participant"] == rows["participant"].iloc[0])]
    seen = seen[seen["task"] == seen["task"].iloc[0]].sort_values("position")
    assert list(dict.fromkeys(seen["window"])) == ["short", "medium", "long"]


def test_variants_are_counted_from_the_best(page):
    rows = page["variants"].rows
    best = rows.groupby(["participant", "task", "modality"])["above_best"].min()
    assert (best == 0).all()


def test_one_observer_is_fitted_to_the_answers_of_all_cells_of_a_participant(trials, page):
    rows = page["observer"].rows
    whole = rows[rows["over"] == "all cells"].drop_duplicates("participant")
    answered = trials.groupby("participant")["response"].count()
    assert whole.set_index("participant")["trials"].to_dict() == answered.to_dict()
    fit = posterior(MODEL, one_subject_each(trials), nuts=False, workers=1)
    k = list(fit.subjects).index("sharp")
    mine = rows[(rows["over"] == "all cells") & (rows["participant"] == "sharp")]
    assert mine["value"].to_numpy() == pytest.approx(fit.estimate[k])
    assert mine["high"].to_numpy() == pytest.approx(fit.interval(0.95)[1][k])
    # Who answers to words alone has no rows of pictures, and it is said what nothing is known of.
    blind = rows[(rows["participant"] == "blind") & (rows["over"] == "all cells")]
    assert (blind["status"] == "flat").all()
    tables = page["observer"].tables
    assert "composite S" in str(tables["Parameters of one observer over all cells"])
    table = tables["p of misfit, and of what the observer could do without"]
    assert list(table.columns) == ["sharp", "blind"]
    # Its noise for words and pictures does not go with its prior: seen to be, and not tested.
    assert float(table["sharp"].iloc[0]) < 0.05
    assert table["sharp"].iloc[1:].isna().all()
    assert table["blind"].notna().all()


def one_subject_each(trials):
    """The trials as `fit --over cells` takes them: sessions by task, condition and modality."""
    names = ["environment", "condition", "modality", "session"]
    session = trials[names].astype(str).agg("/".join, axis=1)
    return Trials.from_frame(trials.assign(subject=trials["participant"], session=session))
