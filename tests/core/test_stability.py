"""The split of a score's variance, held against planted components and an analysis of variance."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from knownminds.inference.stability import SOURCES, split_scores, split_variance

PLANTED = {"model": 4.0, "paraphrase": 1.0, "interaction": 0.5, "session": 2.0, "residual": 3.0}


def scores(rng, planted=PLANTED, models=8, templates=5, sessions=4, units=3):
    """A table with these components, all effects normal."""
    size = {name: np.sqrt(planted[name]) for name in SOURCES}
    m, t, s, u = np.meshgrid(*map(np.arange, (models, templates, sessions, units)), indexing="ij")
    effects = (
        size["model"] * rng.normal(size=models)[m]
        + size["paraphrase"] * rng.normal(size=templates)[t]
        + size["interaction"] * rng.normal(size=(models, templates))[m, t]
        + size["session"] * rng.normal(size=(models, templates, sessions))[m, t, s]
        + size["residual"] * rng.normal(size=m.shape)
    )
    columns = {"model": m, "template": t, "session": s, "unit": u, "score": 7.0 + effects}
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


def test_components_are_those_of_an_analysis_of_variance():
    frame = scores(np.random.default_rng(1), models=4, templates=3, sessions=3)
    split = split_variance(frame, "score")
    cells = frame.assign(block=(frame["model"] * 3 + frame["template"]) * 3 + frame["session"])
    residual = anova_lm(ols("score ~ C(block)", data=cells).fit())["mean_sq"]["Residual"]
    means = cells.groupby("block", as_index=False).mean()
    square = anova_lm(ols("score ~ C(model) * C(template)", data=means).fit())["mean_sq"]
    both = square["C(model):C(template)"]
    expected = {  # from the expected mean squares of a balanced design of session means
        "residual": residual,
        "session": square["Residual"] - residual / 3,
        "interaction": (both - square["Residual"]) / 3,
        "paraphrase": (square["C(template)"] - both) / (4 * 3),
        "model": (square["C(model)"] - both) / (3 * 3),
    }
    for name, value in expected.items():
        assert split.parts[name].value == pytest.approx(value, rel=1e-6), name
    assert (split.models, split.templates, split.sessions, split.units) == (4, 3, 36, 108)
    assert sum(split.shares.values()) == pytest.approx(1.0)


def estimated(frame):
    """What a table of sessions gives as scores: means, and errors from all sessions together."""
    by = frame.groupby(["model", "template", "session"], as_index=False)["score"].mean()
    cells = by.groupby(["model", "template"])["score"]
    n = cells.size().iloc[0]
    error = np.sqrt(cells.var(ddof=1).mean() / n)
    told = cells.mean().reset_index().rename(columns={"score": "value"})
    return told.assign(error=error, freedom=n - 1.0)


def test_scores_with_errors_are_split_as_their_sessions_are():
    frame = scores(np.random.default_rng(3), models=5, templates=3, sessions=4, units=1)
    theirs = split_variance(frame, "score")
    ours = split_scores(estimated(frame), "value", "error", freedom="freedom")
    for name in ("model", "paraphrase", "interaction"):
        assert ours.parts[name].value == pytest.approx(theirs.parts[name].value), name
        # The errors have as many degrees of freedom here as there: ends differ by draws alone.
        assert ours.parts[name].high == pytest.approx(theirs.parts[name].high, rel=0.15)
    assert ours.parts["session"].value == pytest.approx(
        theirs.parts["session"].value / 4  # of a mean of four sessions
    )
    assert ours.merged == {"residual": "session"}
    assert (ours.models, ours.templates) == (5, 3)


def test_planted_components_come_back_and_lie_in_their_intervals():
    rounds = 120
    splits = [split_variance(scores(np.random.default_rng(k)), "score") for k in range(rounds)]
    for name, truth in PLANTED.items():
        found = np.array([split.parts[name].value for split in splits])
        # Unbiased: the mean is within four of its own standard errors.
        assert abs(found.mean() - truth) < 4 * found.std() / np.sqrt(rounds), name
        inside = np.mean([s.parts[name].low <= truth <= s.parts[name].high for s in splits])
        # 95% are due; of 120, 107 or fewer come with a chance of .5%.
        assert inside > 0.89, name
    wording = PLANTED["paraphrase"] + PLANTED["interaction"]
    retest = (4.0 + 0.5) / (4.0 + 0.5 + 2.0 + 3.0 / 3)
    reworded = 4.0 / (4.0 + wording + 2.0 + 3.0 / 3)
    for name, truth in (("wording", wording), ("retest", retest), ("reworded", reworded)):
        inside = np.mean([s.parts[name].low <= truth <= s.parts[name].high for s in splits])
        assert inside > 0.89, name


def test_wording_without_effect_is_not_said_to_move_a_score_more_than_the_model():
    silent = PLANTED | {"paraphrase": 0.0, "interaction": 0.0, "model": 0.0}
    splits = [split_variance(scores(np.random.default_rng(k), silent), "score") for k in range(60)]
    # A wrong word in at most 5% of cases; 9 or more of 60 come with a chance of .2%.
    assert sum(split.moved_more_by != "open" for split in splits) < 9
    mean = np.mean([split.parts["paraphrase"].value for split in splits])
    assert abs(mean) < 0.15  # negative ones are kept, so they balance
    loud = PLANTED | {"paraphrase": 40.0, "model": 0.05, "interaction": 0.0}
    splits = [split_variance(scores(np.random.default_rng(k), loud), "score") for k in range(20)]
    assert sum(split.moved_more_by == "wording" for split in splits) >= 18
    assert not any(split.moved_more_by == "model" for split in splits)


def test_shuffled_models_have_no_variance_and_no_reliability():
    rng = np.random.default_rng(3)
    found = []
    for k in range(20):
        frame = scores(np.random.default_rng(k), models=6, templates=3)
        session = frame.groupby(["model", "template", "session"], sort=False).ngroup()
        labels = rng.permutation(session.max() + 1)[session]
        frame["model"] = labels % 6
        frame["session"] = labels
        found.append(split_variance(frame, "score").parts["model"].value)
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(len(found)) + 0.05
