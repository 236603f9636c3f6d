"""Measures computed a second time: loops over rows, plain least squares, statsmodels, SciPy.

`OF_SUBJECT` takes the rows of one subject, `OF_SAMPLE` those of all; `ends` solves the equation of
an interval by bisection. Nothing here is taken from the package but exact networks.
"""

from functools import partial

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.optimize import brentq, minimize
from scipy.special import logit
from scipy.stats import t as student

from knownminds.environments import CausalNetwork

# ------------------------------------------------------------------ intervals


def ends(mean, error, freedom, bounds):
    """Both values whose distance from the mean is Student's quantile times their error.

    Between bounds the error goes with the root of (mu - low)(high - mu), as Wilson's does.
    """
    low, high = bounds
    limit = student.ppf(0.975, freedom)

    def room(mu):
        return (mu - low if np.isfinite(low) else 1) * (high - mu if np.isfinite(high) else 1)

    def excess(mu):
        return (mu - mean) ** 2 * room(mean) - limit**2 * error**2 * room(mu)

    far = 1e6 * max(1, abs(mean), error)
    outer = [low if np.isfinite(low) else -far, high if np.isfinite(high) else far]
    return [brentq(excess, end, mean, xtol=1e-13, rtol=1e-13) for end in outer]


# ------------------------------------------------------------------ learning and exploration


def learnt(two_rates, rows):
    """The most probable rates under the priors that the specification gives, by simplex search."""
    given = rows[rows["action"].notna()]

    def badness(z):
        rates = 1 / (1 + np.exp(-np.array([z[0], z[-1] if two_rates else z[0]])))
        beta, kappa = np.exp(z[1]), z[2]
        total = 0.0
        for _, part in given.groupby(["session", "context"]):
            value, last = [0.5, 0.5], 0.0
            for action, reward in zip(part["action"].astype(int), part["reward"], strict=True):
                side = 2 * action - 1
                total += np.logaddexp(0, -side * (beta * (value[1] - value[0]) + kappa * last))
                surprise = reward - value[action]
                value[action] += rates[0 if surprise > 0 else 1] * surprise
                last = side
        total += (z[0] + 0.5) ** 2 / 2 + ((z[1] - 1) / 0.7) ** 2 / 2 + (z[2] / 0.5) ** 2 / 2
        return total + ((z[3] + 0.5) ** 2 / 2 if two_rates else 0.0)

    start = [-0.5, 1.0, 0.0, *([-0.5] if two_rates else [])]
    z = minimize(badness, start, method="Powell", options={"xtol": 1e-6, "ftol": 1e-12}).x
    rate = 1 / (1 + np.exp(-z))
    return rate[0] - rate[3] if two_rates else rate[0]


def explored(kind, released, frame):
    """First free choices on the lead; by observed means in tens, or as published by true ones."""
    first = frame[(frame["play"] == 0) & frame["action"].notna()]
    long = (first["horizon"] > 1).to_numpy()
    horizon = np.where(long, 1.0, -1.0) if released else long.astype(float)
    lead = (
        (first["true_mean_1"] - first["true_mean_0"])
        if released
        else (first["mean_1"] - first["mean_0"]) / 10
    ).to_numpy(dtype=float)
    choice = first["action"].to_numpy(dtype=float)
    count = first["count_1"].to_numpy() - first["count_0"].to_numpy()
    mine = (count == 0) == (kind == "random")
    side = np.where((count > 0) & (kind == "directed"), -1.0, 1.0)
    x, y = (side * lead)[mine], np.where(side > 0, choice, 1 - choice)[mine]
    h = horizon[mine]
    fit = sm.Logit(y, np.column_stack([np.ones(len(x)), x, h, x * h])).fit(disp=0)
    return fit.params[2] if kind == "directed" else -fit.params[3]


def stays(released, frame):
    """Reward by common transition in the regression of staying, from days side by side."""
    x, y = [], []
    for _, part in frame.groupby(["subject", "session"], sort=False):
        at = {row.trial: row for row in part.itertuples()}
        for trial, first in at.items():
            deal, after = at.get(trial + 1), at.get(trial + 2)
            if first.stage != 0 or deal is None or after is None or deal.stage != 1:
                continue
            if pd.isna([first.action, deal.action, after.action]).any():
                continue
            paid, common = float(deal.reward > 0.5), float(deal.state == first.action)
            if released:
                paid, common = 2 * paid - 1, 2 * common - 1
            x.append([1.0, paid, common, paid * common])
            y.append(float(after.action == first.action))
    return (sm.OLS(y, x).fit() if released else sm.Logit(y, x).fit(disp=0)).params[3]


def confident(released, rows):
    """One less the squared distance of scaled confidences from being right, session by session.

    As published, a choice is judged by the means of the trial after it, and the last is wrong.
    """
    scores = []
    for _, part in rows.groupby("session"):
        right = part["action"].astype(float) == (part["mean_1"] > part["mean_0"]).astype(float)
        if released:
            right = right ^ (part["block"].shift(-1).fillna(-1) != part["block"])
        given = part["action"].notna()
        said = part.loc[given, "response"].astype(float)
        span = said.max() - said.min()
        scaled = (said - said.min()) / span if span else said
        scores += (1 - (right[given].astype(float) - scaled) ** 2).tolist()
    return np.mean(scores)


def weighed(prior, released, frame):
    """Least squares of log odds on those of prior and ball; as published without an intercept."""
    given = frame[frame["response"].notna()]
    side = np.where(given["ball"] == 1, 1.0, -1.0)
    x = [logit(given["prior"].astype(float)), side * logit(given["likelihood"].astype(float))]
    x = np.column_stack(x if released else [*x, np.ones(len(given))])
    y = logit(np.clip(given["response"].astype(float), 1e-5, 1 - 1e-5))
    return np.linalg.lstsq(x, y, rcond=None)[0][0 if prior else 1]


POINTS = {(1, 1, 1): 0, (1, 1, 0): 1, (1, 0): 2, (0, 1): 3, (0, 0, 1): 4, (0, 0, 0): 5}


def discounted(released, rows):
    """Points of three ladders by their course, and one for each later item that is not waited for.

    As published the last item counts the other way, and none does after a first ladder of 5.
    """
    at = dict(zip(rows["trial"], rows["action"], strict=True))
    ladders = [tuple(at[t] for t in range(3 * k, 3 * k + 3) if t in at) for k in range(3)]
    points = [POINTS[ladder] for ladder in ladders]
    items = [at[t] == 0 for t in range(9, 13)]
    if released:
        items[3] = not items[3]
        items = [] if points[0] == 5 else items
    return sum(points) + sum(items)


def pumped(rows):
    """Pumps attempted, over balloons that ended by a stop or a burst."""
    pumps = []
    for row in rows.itertuples():
        if row.action == 0:
            pumps.append(row.pump - 1)
        elif row.action == 1 and row.reward < 1:
            pumps.append(row.pump)
    return np.mean(pumps)


# ------------------------------------------------------------------ reversals and decks


def after_reversals(count, rows):
    """Mean over reversals of what is counted in the right and wrong choices that follow."""
    blocks, better = [], None
    for row in rows.itertuples():
        if row.better != better:
            blocks.append([])
        better = row.better
        if not pd.isna(row.action):
            blocks[-1].append(row.action == better)
    counted = [count(block) for block in blocks[1:] if block]
    return sum(counted) / len(counted) if counted else np.nan


def first_right(block):
    return block.index(True) if True in block else len(block)


def three_on_end(block):
    streaks = [k for k in range(3, len(block) + 1) if all(block[k - 3 : k])]
    return streaks[0] if streaks else len(block)


def stays_after(win, rows):
    at = {row.trial: row for row in rows.itertuples()}
    same = [
        at[t + 1].action == row.action
        for t, row in at.items()
        if t + 1 in at
        and not pd.isna([row.action, row.reward, at[t + 1].action]).any()
        and (row.reward > 0) == win
    ]
    return np.mean([stay == win for stay in same]) if same else np.nan


def decks(plus, block, rows):
    """Cards of the decks in `plus` less the others, for 20 cards; all cards, or a block of 20."""
    taken = [
        row.action
        for row in rows.itertuples()
        if not pd.isna(row.action) and (block is None or row.trial // 20 == block)
    ]
    return 20 * np.mean([1 if deck in plus else -1 for deck in taken]) if taken else np.nan


# ------------------------------------------------------------------ offers


def gambles(loss, likely, rows):
    """Share of gambles over a sure amount that is their mean, in one cell of chance and sign."""
    taken = []
    for row in rows[rows["action"].notna()].to_dict("records"):
        sides = [
            [(row[f"{s}_{p}"], row[f"{s}_{p}_chance"]) for p in ("low", "middle", "high")]
            for s in "ab"
        ]
        sides = [[(x, p) for x, p in side if p > 0] for side in sides]
        sure = [k for k, side in enumerate(sides) if len(side) == 1]
        if len(sure) != 1:
            continue
        risky = [(x, p) for x, p in sides[1 - sure[0]] if x]
        if len(risky) != 1 or len(sides[1 - sure[0]]) != 2:
            continue
        [(stake, chance)], [(amount, _)] = risky, sides[sure[0]]
        fair = abs(amount - stake * chance) < 1e-6 * abs(stake)
        if fair and (stake < 0) == loss and (chance >= 0.75 if likely else chance <= 0.25):
            taken.append(row["action"] != sure[0])
    return np.mean(taken)


def low_rejected(rows):
    answers = rows[
        (rows["role"] == 0) & (rows["more"] < 0.3 * rows["stake"]) & rows["action"].notna()
    ]
    return (answers["action"] == 0).mean()


def generous(rows):
    gain = {n: rows[f"{n}_chance"] * (rows["stake"] - rows[n]) for n in ("less", "more")}
    answers = rows[
        (rows["role"] == 1) & (gain["less"] > gain["more"] + 1e-9) & rows["action"].notna()
    ]
    return (answers["action"] == 1).mean()


def gives_as_others_do(rows):
    answers = rows[rows["action"].notna()]
    return np.polyfit(answers["others"].astype(float), answers["action"].astype(float), 1)[0]


# ------------------------------------------------------------------ causes


def told_of(rows):
    """The other cause and the effect as each question about a cause tells them; -1 is untold."""
    known = rows[["first", "second", "third"]].to_numpy(dtype=int)
    query = rows["query"].to_numpy(dtype=int)
    other = np.where(query == 0, known[:, 1], known[:, 0])
    return rows.assign(cause=query < 2, other=other, effect=known[:, 2], direction=query)


def contrast(plus, minus, pooled, rows):
    """Difference of two tasks, each (other cause, effect), averaged over cells that have both."""
    stated = told_of(rows[rows["response"].notna()])
    cells = (
        ["session", "domain", "sense"] if pooled else ["session", "domain", "sense", "direction"]
    )
    cells = [c for c in cells if c in stated and c != "session"]
    means = [
        stated[stated["cause"] & (stated["other"] == other) & (stated["effect"] == effect)]
        .groupby(cells)["response"]
        .mean()
        for other, effect in (plus, minus)
    ]
    return ((means[0] - means[1]) / 100).dropna().mean()


def mean_answers(rows):
    """Mean answer to each question of the only network of a session, as shares of 1."""
    given = rows[rows["response"].notna()].astype({"response": float})
    names = ["query", "first", "second", "third", "fourth"]
    return (given.groupby(names)["response"].mean() / 100).to_dict()


def exactly(rows, question):
    one = rows.iloc[0]
    edges = {f"{i}{j}": one[f"w{i}{j}"] for i in range(1, 4) for j in range(i + 1, 5)}
    strengths = {("?ABCD"[int(e[0])], "?ABCD"[int(e[1])]): w for e, w in edges.items() if w}
    names = sorted({name for edge in strengths for name in edge})
    network = CausalNetwork(strengths, {n: one[f"b{'?ABCD'.index(n)}"] for n in names})
    query, *known = question
    seen = {n: int(x) for n, x in zip("ABCD", known, strict=True) if x in (0, 1)}
    done = {n: int(x) - 2 for n, x in zip("ABCD", known, strict=True) if x >= 2}
    return network.answer("ABCD"[int(query)], seen, done)


def twins(rows, change, counts):
    """Answers to questions and to their twins, in which one stated fact is another."""
    means = mean_answers(rows)
    for (query, *known), mean in means.items():
        for v, value in enumerate(known):
            twin = (query, *known[:v], change.get(value), *known[v + 1 :])
            if twin in means and counts(query, known, v):
                yield (query, *known), twin, mean - means[twin]


def done_or_seen(rows):
    pairs = list(twins(rows, {0: 2, 1: 3}, lambda *_: True))
    x = [exactly(rows, seen) - exactly(rows, made) for seen, made, _ in pairs]
    return np.dot(x, [y for *_, y in pairs]) / np.dot(x, x) if any(np.abs(x) > 1e-9) else np.nan


def other_cause(value, change, rows):
    """Of a common effect A -> C <- B: the other cause, with the effect untold or present."""
    assert (rows[["w12", "w14", "w24", "w34"]] == 0).all().all()
    pairs = list(twins(rows, change, lambda q, known, v: {q, v} == {0, 1} and known[2] == value))
    return np.mean([y for *_, y in pairs]) if pairs else np.nan


def shares_of(rows):
    return [rows[a] / (rows[a] + rows[b]) for a, b in (("both", "cause"), ("effect", "neither"))]


def powers(rows):
    given = rows[rows["response"].notna()]
    p, q = shares_of(given)
    against = given["kind"] == 1
    difference = np.where(against, q - p, p - q).clip(0)
    x = difference / np.where(against, q, 1 - q) - difference
    y = given["response"].astype(float) / 100 - difference
    return sm.OLS(y, x).fit().params.iloc[0] if (x**2).sum() > 1e-12 else np.nan


def frequent(rows):
    given = rows[rows["response"].notna()]
    p, q = shares_of(given)
    flat = given[p == q].assign(f=np.where(given["kind"] == 1, 1 - q, q)[p == q])
    x = np.column_stack([flat["f"], flat["kind"] == 0, flat["kind"] == 1]).astype(float)
    return np.linalg.lstsq(x, flat["response"].astype(float) / 100)[0][0]


# ------------------------------------------------------------------ magnitudes


def middles(rows):
    return rows["window"].map(rows.groupby("window")["value"].agg(["min", "max"]).mean(axis=1))


def relative_error(rows):
    """Root of summed squared errors over those of the middle of each window's values."""
    off = (rows["response"].astype(float) - rows["value"]) ** 2
    constant = (middles(rows) - rows["value"])[rows["response"].notna()] ** 2
    return np.sqrt(off.sum() / constant.sum())


def prior_weight(rows):
    """1 less the least-squares slope with an intercept in each window."""
    given = rows.dropna(subset="response")
    columns = [given["value"].to_numpy(dtype=float)]
    columns += [(given["window"] == w).to_numpy(dtype=float) for w in given["window"].unique()]
    y = given["response"].to_numpy(dtype=float)
    return 1 - np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0][0]


def combined(what, rows):
    """The weight of the text by least squares, its excess over precision, or the error's ratio."""
    wide = rows.pivot_table(index=["session", "window", "item", "value"], columns="modality",
                            values="response").dropna().astype(float)  # fmt: skip
    text, image, both = (wide[k].to_numpy() for k in (0, 1, 2))
    value = wide.index.get_level_values("value").to_numpy()
    difference = text - image
    weight = np.clip((both - image) @ difference / (difference @ difference), 0, 1)
    precision = [1 / (said - value).var(ddof=1) for said in (text, image)]
    best = precision[0] / sum(precision)
    ratio = [((said - value) ** 2).sum() for said in (best * text + (1 - best) * image, both)]
    return {"weight": weight, "excess": weight - best,
            "efficiency": np.sqrt(ratio[0] / ratio[1])}[what]  # fmt: skip


def conflicting(excess, rows):
    """1/2 plus what a conflict moves answers by; less the weight that single cues deserve."""
    given = rows[rows["response"].notna()].astype({"response": float, "value": float})
    pairs = given[given["modality"] == 2]
    x = np.column_stack([np.ones(len(pairs)), pairs["value"], pairs["conflict"]]).astype(float)
    _, slope, push = np.linalg.solve(x.T @ x, x.T @ pairs["response"].to_numpy())
    weight = 0.5 + push / slope
    if not excess:
        return weight
    variance, free = [], []
    for cue in (0, 1):
        part = given[given["modality"] == cue]
        line, rest, *_ = np.polyfit(part["value"], part["response"], 1, full=True)
        free.append(len(part) - 2)
        variance.append(rest[0] / free[-1] / line[0] ** 2)
    best = variance[1] / sum(variance)
    # A ratio of variances is biased by the order of one over their degrees of freedom.
    best -= best * (1 - best) * (1 - 2 * best) * sum(1 / n for n in free)
    return weight - best


def mean_of_sessions(one, rows):
    values = np.array([one(part) for _, part in rows.groupby("session", sort=False)], dtype=float)
    return np.nanmean(values) if np.isfinite(values).any() else np.nan


BY_SESSION = {
    "perseverative_errors": partial(after_reversals, first_right),
    "trials_to_criterion": partial(after_reversals, three_on_end),
    "win_stay": partial(stays_after, True),
    "lose_shift": partial(stays_after, False),
    "net_score": partial(decks, (2, 3), None),
    **{f"net_score_block_{k}": partial(decks, (2, 3), k - 1) for k in range(1, 6)},
    "net_score_rise": lambda rows: decks((2, 3), 4, rows) - decks((2, 3), 0, rows),
    "rare_loss_preference": partial(decks, (1, 3), None),
    "payoff": lambda rows: rows["reward"].dropna().astype(float).mean(),
    "risk_seeking_rare_gains": partial(gambles, False, False),
    "risk_seeking_likely_gains": partial(gambles, False, True),
    "risk_seeking_rare_losses": partial(gambles, True, False),
    "risk_seeking_likely_losses": partial(gambles, True, True),
    "low_offers_rejected": low_rejected,
    "generous_offers": generous,
    "conditional_cooperation": gives_as_others_do,
    "do_versus_see": done_or_seen,
    "network_markov_violation": partial(other_cause, -1, {1: 0}),
    "network_explaining_away": partial(other_cause, 1, {0: 1, 2: 3}),
    "power_weight": powers,
    "frequency_illusion": frequent,
}
OF_SUBJECT = {
    **{name: partial(mean_of_sessions, one) for name, one in BY_SESSION.items()},
    "optimism_bias": partial(learnt, True),
    "learning_rate": partial(learnt, False),
    "risk": pumped,
    "meta_cognition": partial(confident, False),
    "meta_cognition_released": partial(confident, True),
    "temporal_discounting": partial(mean_of_sessions, partial(discounted, False)),
    "temporal_discounting_released": partial(mean_of_sessions, partial(discounted, True)),
    "explaining_away": partial(contrast, (-1, 1), (1, 1), False),
    "explaining_away_released": partial(contrast, (0, 1), (1, 1), True),
    "markov_violation": partial(contrast, (1, -1), (0, -1), False),
    "markov_violation_released": partial(contrast, (1, -1), (0, -1), True),
    "normalised_error": relative_error,
    "regression_to_the_mean": prior_weight,
    "cue_weight": partial(combined, "weight"),
    "cue_weight_excess": partial(combined, "excess"),
    "cue_efficiency": partial(combined, "efficiency"),
    "conflict_weight": partial(conflicting, False),
    "conflict_weight_excess": partial(conflicting, True),
}
OF_SAMPLE = {
    "model_basedness": partial(stays, False),
    "model_basedness_released": partial(stays, True),
    "directed_exploration": partial(explored, "directed", False),
    "directed_exploration_released": partial(explored, "directed", True),
    "random_exploration": partial(explored, "random", False),
    "random_exploration_released": partial(explored, "random", True),
    "prior_weighting": partial(weighed, True, False),
    "prior_weighting_released": partial(weighed, True, True),
    "likelihood_weighting": partial(weighed, False, False),
    "likelihood_weighting_released": partial(weighed, False, True),
}
