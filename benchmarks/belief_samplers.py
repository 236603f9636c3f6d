"""Belief samplers: 1,000 fits against SciPy, and what comes back of known ones.

`python benchmarks/belief_samplers.py` fits 1,000 samplers with 7 parameters to 200 draws from each
of 183 contexts of dice, coins, choice and preference. SciPy's L-BFGS-B maximises the same
likelihood, vectorised over the outcomes of all contexts, with numeric gradients, for a few of the
samplers; both run on one core.

`python benchmarks/belief_samplers.py --recovery` reveals the complete grid of 768 contexts of 40
samplers in five ways (exactly; by 50, 200 and 1,000 draws; by the 20 most probable tokens of an
interface) and prints how temperature and biases come back: correlation, bias, root mean square
error, and how often 90% intervals hold the truth, where there are any.

`python benchmarks/belief_samplers.py --crossed` fits the group model to 6 models in 4 scenarios,
whose bias towards the first outcome varies over models and over scenarios, and prints what it finds
of each model and each scenario beside what they have.
"""

import sys
import time

from side_by_side import goal, side_by_side  # isort: skip  # before NumPy: it limits the threads

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from knownminds.agents import BeliefSampler, simulate
from knownminds.environments import (
    Choice,
    Coins,
    Dice,
    Preference,
    Trials,
    complete_grid,
)
from knownminds.inference import hierarchical
from knownminds.inference.chance.belief_sampler_fit import (
    SAMPLER,
    BeliefTable,
    fit_belief_samplers,
    fit_table,
)
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, set_ups_of
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.outcomes.outcome_probabilities import OutcomeProbabilities
from knownminds.llm_adapters.outcomes.outcome_tree import extends

SAMPLERS, SUBSET, DRAWS = 1000, 4, 200
RETAINED = 0.9  # of the probability lies on outcomes
MINDS = 40
TOP = 20
OTHERS = 40  # tokens that say no outcome, on which the rest lies


def drawn(n, seed):
    """Parameters of n samplers, spread as in the priors, biases a little less."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.exp(rng.normal(0.0, 0.4, n)), rng.normal(0.0, 0.5, (n, 6))])


def believed(set_up, theta):
    """What samplers have for each outcome, [N, outcomes]."""
    p = np.asarray(set_up.truth)
    with np.errstate(divide="ignore"):
        height = np.log(p) / theta[:, :1] + theta[:, 1:] @ np.asarray(set_up.marks, float).T
    weight = np.exp(height - height.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def contexts(places):
    """What the contexts are about."""
    return [set_up for place in places for set_up in set_ups_of(place)]


# ---------------------------------------------------------------- speed


def table_of(set_ups, theta, seed):
    """Counts of all samplers, laid out for the fit."""
    rng = np.random.default_rng(seed)
    parts = []
    for s in set_ups:
        possible = np.asarray(s.truth) > 0
        counts = rng.multinomial(DRAWS, believed(s, theta)[:, possible])
        parts.append((np.asarray(s.truth)[possible], np.asarray(s.marks)[possible], counts))
    truth, marks, counts = zip(*parts, strict=True)
    weight = np.concatenate(counts, axis=1).astype(float)
    return BeliefTable(
        log_truth=np.log(np.concatenate(truth)),
        marks=np.concatenate(marks).astype(float),
        edges=np.cumsum([0, *map(len, truth)]).astype(np.int64),
        weight=weight,
        high=weight,
        missing=np.zeros((len(theta), len(set_ups))),
        counted=np.ones((len(theta), len(set_ups)), dtype=bool),
    )


def by_scipy(table, subset):
    """Maximise the same likelihood with numeric gradients; the values and places found."""
    begin = table.edges[:-1]
    context = np.repeat(np.arange(len(begin)), np.diff(table.edges))
    found = []
    for weight in table.weight[subset]:
        each = np.add.reduceat(weight, begin)

        def against(z, weight=weight, each=each):
            height = table.log_truth * np.exp(-z[0]) + table.marks @ z[1:]
            top = np.maximum.reduceat(height, begin)
            bottom = np.log(np.add.reduceat(np.exp(height - top[context]), begin)) + top
            return -(weight @ height - each @ bottom)

        found.append(minimize(against, np.zeros(len(SAMPLER)), method="L-BFGS-B"))
    return found


def speed():
    """Time 1,000 fits, and those of SciPy for a few of them."""
    set_ups = contexts((Dice(1, 12), Dice(2, 6), Coins(2), Coins(3), Choice(4), Preference()))
    table = table_of(set_ups, drawn(SAMPLERS, 1), 2)
    free = np.arange(len(SAMPLER))
    z, value, *_ = fit_table(table, free, workers=1)
    found = by_scipy(table, slice(SUBSET))
    short = max(-f.fun - value[i] for i, f in enumerate(found))
    apart = max(np.abs(f.x - z[i]).max() for i, f in enumerate(found))
    print(
        f"{len(set_ups)} contexts, {len(table.log_truth)} outcomes; ours lacks at most {short:.2g} "
        f"of SciPy's log-likelihood, estimates differ by {apart:.2g} at most"
    )
    ratios = side_by_side(
        f"Fit of a belief sampler with {len(SAMPLER)} parameters, one core",
        {
            "ours, 1,000 at once": lambda: fit_table(table, free, workers=1),
            "SciPy, L-BFGS-B, numeric gradients": lambda: by_scipy(table, slice(SUBSET)),
        },
        rounds=5,
        unit=1.0,
    )
    ratio = ratios["SciPy, L-BFGS-B, numeric gradients"] * SAMPLERS / SUBSET
    return [
        goal("SciPy's seconds per sampler over ours", ratio, 50),
        goal("log-likelihood that ours lacks at most", short, 1e-6, at_most=True),
    ]


# ---------------------------------------------------------------- recovery


def reveal(groups, theta, how, seed):
    """What one sampler reveals of all contexts: exactly, by draws, or by its top tokens."""
    rng, parts = np.random.default_rng(seed), []
    for outcomes, set_ups in groups.items():
        q = RETAINED * np.concatenate([believed(s, theta[None]) for s in set_ups])
        if how == "exact":
            with np.errstate(divide="ignore"):
                logs = np.log(q)
            told = OutcomeProbabilities(outcomes, logs, np.full(logs.shape, -np.inf), ("",))
            parts.append(RevealedBeliefs.exact(told, set_ups=set_ups))
        elif how == "top":
            replies = [[[top_tokens(outcomes, row)]] for row in q]
            parts.append(RevealedBeliefs.top_k(replies, outcomes, extends=extends, set_ups=set_ups))
        else:
            counts = rng.multinomial(how, np.column_stack([q, np.full(len(q), 1.0 - RETAINED)]))
            parts.append(
                RevealedBeliefs.sampled(counts[:, :-1], counts[:, -1], outcomes, set_ups=set_ups)
            )
    return RevealedBeliefs.join(*parts)


def top_tokens(outcomes, q):
    """The most probable tokens: outcomes, and others that say none."""
    texts = [*(f"{outcome}\n" for outcome in outcomes), *(f"word{k}" for k in range(OTHERS))]
    p = np.concatenate([q, np.full(OTHERS, (1.0 - RETAINED) / OTHERS)])
    order = [k for k in np.argsort(-p, kind="stable")[:TOP] if p[k] > 0]
    table = tuple((texts[k], float(np.log(p[k]))) for k in order)
    return TokenLogProbability(*table[0], table)


def recovery():
    """Print how the parameters of known samplers come back from each kind of data."""
    groups = {}
    for set_up in contexts(complete_grid()):
        groups.setdefault(set_up.outcomes, []).append(set_up)
    theta = drawn(MINDS, 3)
    columns = ["data", "parameter", "r", "bias", "rmse", "covered", "seconds"]
    rows = []
    for how in ("exact", 50, 200, 1000, "top"):
        told = f"{how} draws" if isinstance(how, int) else {"top": f"top {TOP}"}.get(how, how)
        beliefs = {str(k): reveal(groups, own, how, k) for k, own in enumerate(theta)}
        begin = time.perf_counter()
        found = fit_belief_samplers(beliefs, ends=False)
        seconds = time.perf_counter() - begin
        low, high = found.fit.interval(0.9)
        for k, name in enumerate(SAMPLER.names):
            error = found.fit.estimate[:, k] - theta[:, k]
            held = (low[:, k] <= theta[:, k]) & (theta[:, k] <= high[:, k])
            r = np.corrcoef(found.fit.estimate[:, k], theta[:, k])[0, 1]
            covered = held.mean() if isinstance(how, int) else np.nan
            rms = np.sqrt((error**2).mean())
            rows.append((told, name, r, error.mean(), rms, covered, seconds))
    table = pd.DataFrame(rows, columns=columns)
    print(
        f"{MINDS} belief samplers, complete grid of {sum(map(len, groups.values()))} contexts, "
        f"{RETAINED:.0%} of the probability on outcomes"
    )
    print(
        table.round({"r": 4, "bias": 4, "rmse": 4, "covered": 2, "seconds": 1}).to_string(
            index=False
        )
    )
    return []


# ---------------------------------------------------------------- models and scenarios


def crossed():
    """Print how the deviations of models and scenarios come back from one group model."""
    places = (Dice(1, 6), Coins(2), Choice(6), Preference())
    models, sessions, rng = 6, 20, np.random.default_rng(2)
    truth = {f"m{k}": own for k, own in enumerate(rng.normal(0.0, 0.6, models))}
    truth |= {place.name: own for place, own in zip(places, rng.normal(0.0, 0.6, 4), strict=True)}
    rest = BeliefSampler.parameters.constrain(np.zeros(len(BeliefSampler.parameters)))
    frames = []
    for k, place in enumerate(places):
        theta = np.tile(rest, (models, 1))
        theta[:, 1] = [truth[f"m{m}"] + truth[place.name] for m in range(models)]
        theta[:, 1] += rng.normal(0.0, 0.1, models)
        many = np.repeat(theta, sessions, axis=0)
        frame = simulate(BeliefSampler, many, place, 1, address=(k,)).to_frame()
        own, session = np.divmod(frame["subject"].astype(int).to_numpy(), sessions)
        named = np.char.add("m", own.astype(str))
        frames.append(frame.assign(model=named, subject=named, session=session))
    table = pd.concat(frames, ignore_index=True)
    table["session"] = table["environment"] + " " + table["session"].astype(str)
    names, held = ("model", "environment"), BeliefSampler.parameters.names[2:]
    fit = hierarchical(
        BeliefSampler,
        Trials.from_frame(table),
        unit=names,
        crossed=names,
        fixed=dict(zip(held, rest[2:].tolist(), strict=True)),
        seed=1,
        rounds=1,
    )
    found = fit.level_frame().query("parameter == 'bias_first'")
    own = found["level"].str.split("=").str[-1].map(truth)
    own -= own.groupby(found["factor"]).transform("mean")
    print(fit)
    print(found.assign(truth=own).round(3).to_string(index=False))
    reached = []
    for name, part in found.assign(truth=own).groupby("factor"):
        r = np.corrcoef(part["mean"], part["truth"])[0, 1]
        reached.append(goal(f"correlation over the levels of {name}", r, 0.9))
    return reached


if __name__ == "__main__":
    ways = {"--recovery": recovery, "--crossed": crossed}
    asked = [ways[name] for name in sys.argv[1:]] or [speed]
    sys.exit(not all([all(way()) for way in asked]))
