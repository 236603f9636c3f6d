"""A model at its best is no less likely than the models that lie within it."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.agents.nesting import nestings_of
from knownminds.environments import ENVIRONMENTS, Collider, Trials, make
from knownminds.inference import ModelData, Unknowns, leave_one_task_out, maximum_likelihood
from knownminds.inference.fits.nested_starts import embedded

EXACT = 1e-6  # log units: rounding
# Where the inner model lies at infinity it is neared to what a search can reach: 16 prior sds.
NEARED = 0.02
SMALL = {"diagnosis": {"network": "fever", "n_contexts": 12, "repeats": 2}}
LIMITS = {
    ("perseverator", "rescorla_wagner"),
    ("choice_kernel", "rescorla_wagner_choice_kernel"),
    ("rescorla_wagner", "forgetting_learner"),
    ("hyperbolic_discounter", "fixed_cost_discounter"),
    ("random_responder", "horizon_blind"),
    ("cue_weigher_text", "cue_weigher"),
    ("cue_weigher_image", "cue_weigher"),
    ("selfish", "inequity_averse"),
    ("selfish_contributor", "inequity_averse_contributor"),
    ("bayesian_observer_flat", "bayesian_observer"),  # a precision of 0
}


def by_names(nesting):
    return f"{nesting.inner.name}-{nesting.outer.name}"


def at_home(*models):
    places = (make(name, **SMALL.get(name, {})) for name in ENVIRONMENTS)
    return next(place for place in places if all(model.plays(place) for model in models))


def real_like(inner, outer, place):
    """Agents of both models, ordinary and extreme; few trials; ties; answers at the ends alone."""
    rng, frames = np.random.default_rng(0), []
    for model in (inner, outer):
        for scale in (1.0, 3.0):
            own = rng.normal(size=(2, len(model.parameters)))
            z = model.parameters.mean + scale * model.parameters.sd * own
            lived = simulate(model, model.parameters.constrain(z), place, 0).frame
            for _, rows in lived.groupby("subject", sort=False):
                frames.append(rows)
    frames += [rows.head(6) for rows in frames[:4:3]]
    if "response" in frames[0] and frames[0]["response"].notna().any():
        for rows in frames[:2]:
            low, high = place.response_range
            top = rows["ceiling"] if "ceiling" in rows else pd.Series(high, index=rows.index)
            told, middle = rows["response"], (low + top) / 2
            step = (top - low) / 10
            frames.append(rows.assign(response=low + step * ((told - low) / step).round()))
            frames.append(rows.assign(response=top.where(told > middle, low).where(told.notna())))
            frames.append(rows.assign(response=middle.where(told.notna())))
    every = [rows.assign(subject=str(k)) for k, rows in enumerate(frames)]
    return Trials.from_frame(pd.concat(every, ignore_index=True), environment=place)


# A value held, an end of a support, two values that are equal, another way to answer.
QUICK = {
    "random_responder-perseverator", "perseverator-rescorla_wagner",
    "rescorla_wagner-rescorla_wagner_dual", "conservative_bayes-weighted_bayes",
}  # fmt: skip


def quick(nesting):
    return () if by_names(nesting) in QUICK else pytest.mark.long


NESTINGS = [nesting for outer in AGENTS.values() for nesting in nestings_of(outer)]


@pytest.mark.parametrize(
    "nesting", [pytest.param(one, id=by_names(one), marks=quick(one)) for one in NESTINGS]
)
def test_no_model_loses_to_one_within_it(nesting):
    inner, outer = nesting.inner, nesting.outer
    place = at_home(inner, outer)
    trials = real_like(inner, outer, place)
    data = [ModelData.read(m, trials, place.n_actions, all_trials=True) for m in (inner, outer)]
    found = [maximum_likelihood(d.model, d, workers=1) for d in data]
    slack = NEARED if (inner.name, outer.name) in LIMITS else EXACT
    assert (found[1].log_likelihood >= found[0].log_likelihood - slack).all()
    # The embedding itself says the same of the same trials.
    z = embedded(nesting, Unknowns.of(outer), found[0].estimate)
    there = data[1].log_likelihood(outer.parameters.constrain(z))[0]
    ordinary = np.array([s == "ok" for s in found[0].status])
    near = 0.5 if slack == NEARED else NEARED  # so far away, the slope is small and not 0
    assert np.allclose(there[ordinary], found[0].log_likelihood[ordinary], atol=near)


@pytest.mark.long
def test_least_squares_with_more_parameters_never_lose_to_fewer():
    noisy_or = AGENTS["noisy_or"]
    z = noisy_or.parameters.mean + 2 * noisy_or.parameters.sd * np.random.default_rng(3).normal(
        size=(10, 5)
    )
    raw = simulate(noisy_or, noisy_or.parameters.constrain(z), Collider(), 3).to_frame()
    ends = raw.assign(
        response=np.where(raw["response"] > 50, 100.0, 0.0), subject="e" + raw.subject
    )
    few = raw.groupby("subject").head(6).assign(subject=lambda f: "f" + f.subject)
    frame = pd.concat([raw, ends, few], ignore_index=True)
    answers = frame.groupby("subject").size().max()
    for scoring in ("by_cause", "pooled"):
        fits = leave_one_task_out(frame, parameters=(3, 4, 5), scoring=scoring, workers=1)
        for fewer, more in pairwise(fits.residuals["loss"].T):
            # The likelihood of the least squares, in log units, is searched to EXACT as all are.
            assert (answers / 2 * np.log(more / fewer) <= EXACT).all()
