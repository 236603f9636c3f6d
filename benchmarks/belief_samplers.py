"""Belief samplers: what comes back of known ones.

`python benchmarks/belief_samplers.py` reveals the complete grid of 768 contexts of 40
samplers in five ways (exactly; by 50, 200 and 1,000 draws; by the 20 most probable tokens of an
interface) and prints how temperature and biases come back: correlation, bias, root mean square
error, and how often 90% intervals hold the truth, where there are any.

`python benchmarks/belief_samplers.py --crossed` fits the group model to 6 models in 4 scenarios,
whose bias towards the first outcome varies over models and over scenarios, and prints what it finds
of each model and each scenario beside what they have.
"""

import sys
import time

from side_by_side import goal  # isort: skip  # before NumPy: it limits the threads

import numpy as np
import pandas as pd

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
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, fit_belief_samplers
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, set_ups_of
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.outcomes.outcome_probabilities import OutcomeProbabilities
from knownminds.llm_adapters.outcomes.outcome_tree import extends

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
    ways = {"--crossed": crossed}
    asked = [ways[name] for name in sys.argv[1:]] or [recovery]
    sys.exit(not all([all(way()) for way in asked]))
