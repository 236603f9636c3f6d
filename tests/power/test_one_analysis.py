"""A plan is about what will be done: all verbs carry out the same analysis of the same trials."""

import numpy as np
import pytest

from knownminds import fit, run, score
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES, Analysis, StoppingRule
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.power.operating_characteristics import conditions_lived, test_batch
from knownminds.validation.power.power_study import effect_search
from knownminds.validation.power.questions import Power

MEASURE, PLACE = MEASURES["optimism_bias"], make("instrumental_learning", n_visits=6)
NAMES = ("value", "low", "high", "p_value")


def numbers_of(estimate):
    return [getattr(estimate, name) for name in NAMES]


def test_score_fit_and_a_stopping_rule_tell_the_same_of_a_run(tmp_path):
    # The interval of a look has the mass 1 - level of that look, so a rule is named that has .05.
    rule = StoppingRule("interval_width", (3, 6), "optimism_bias", width=1e-9)
    analysis = Analysis.of(MEASURE, 1, stop=rule)
    llm = "synthetic:rescorla_wagner_dual"
    played = run(PLACE, llm, sessions=6, seed=2, out=tmp_path, stop=analysis)
    look = played.looks[-1]
    trials = Trials.load(tmp_path / "trials.parquet")
    estimate = Analysis.of(MEASURE, 1).estimate(trials)
    assert (estimate.n, estimate.unit) == (look["units"], "session")
    assert numbers_of(estimate)[1:] == pytest.approx([look["low"], look["high"], look["p_value"]])
    result = score(tmp_path, measures=["optimism_bias"])
    row = result["Measures"].iloc[0]
    assert [row[name] for name in NAMES] == pytest.approx(numbers_of(estimate))
    assert str(Analysis.of(MEASURE, 1)) in result.methods
    (subject,) = fit(tmp_path, "rescorla_wagner_dual")["Subjects"].to_dict("records")
    bias = subject["alpha_positive"] - subject["alpha_negative"]
    assert bias == pytest.approx(estimate.value, abs=1e-3)


@pytest.mark.parametrize(("subjects", "sessions"), [(1, 6), (24, 2)])
def test_power_plans_what_score_does(subjects, sessions):
    question = Power(
        PLACE, effect={"optimism_bias": 0.2}, replicates=2, seed=5,
        subjects=(subjects,), sessions=(sessions,), trials=(None,),
    )  # fmt: skip
    cells = effect_search(question).cells((subjects,), (sessions,), (None,))
    study = Study("power", cells, 2, question.seed, "replicate", {})
    batch = Batch(0, 0, 2)
    planned = test_batch(study, batch, 1)
    _, (lived,) = conditions_lived(study, batch, MEASURE)
    for replicate, row in planned.iterrows():
        own = lived.of(np.arange(replicate * subjects, (replicate + 1) * subjects)).trials()
        done = Analysis.of(MEASURE, subjects).estimate(own)
        assert [row["estimate"], row["low"], row["high"], row["p_value"]] == pytest.approx(
            numbers_of(done), abs=1e-3
        )
        assert row["n"] == done.n
