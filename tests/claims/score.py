"""Sentences of `score`.

Facts: a `SimpleNamespace` with `content` (what measures.json holds), `row` (the row of its table
that a line is about) and `trials` (a table of the rows of its sample and experiment).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.optimize import brentq, minimize
from scipy.stats import t as student

from claims import Claim, Explanation, Report
from knownminds.environments import CausalNetwork

READ = ("ok", "repaired")
BOUNDS = {
    "risk": (0, 128), "meta_cognition": (0, 1), "temporal_discounting": (0, 19),
    "learning_rate": (0, 1), "optimism_bias": (-1, 1), "normalised_error": (0, np.inf),
    "explaining_away": (-1, 1), "markov_violation": (-1, 1),
    "perseverative_errors": (0, np.inf), "trials_to_criterion": (1, np.inf),
    "win_stay": (0, 1), "lose_shift": (0, 1), "payoff": (-1150, 100), "net_score_rise": (-40, 40),
    **dict.fromkeys(["net_score", *(f"net_score_block_{k}" for k in range(1, 6))], (-20, 20)),
    "rare_loss_preference": (-20, 20),
    "network_markov_violation": (-1, 1), "network_explaining_away": (-1, 1),
    **dict.fromkeys(["do_versus_see", "power_weight", "frequency_illusion"], (-np.inf, np.inf)),
}  # fmt: skip
SCORED = {"restless_bandit": (0, 1), "instrumental_learning": (0, 1), "two_step": (0, 1),
          "balloon_risk": (0, np.inf), "reversal_learning": (0, 1),
          "causal_inference": (0, 1), "causal_strength": (0, 1)}  # fmt: skip


# Each measure of a subject from its rows, anew.


def _ended(rows):
    """Balloons that ended: the row, and whether by a stop."""
    for row in rows.itertuples():
        if row.action == 0 or (row.action == 1 and row.reward < 1):
            yield row, row.action == 0


def _risk(rows):
    pumps = [row.pump - 1 if stopped else row.pump for row, stopped in _ended(rows)]
    return np.mean(pumps) if pumps else np.nan


def _reward(rows):
    return rows["reward"].dropna().astype(float).mean()


def _points(rows):
    held = [row.pump - 1 if stopped else 0 for row, stopped in _ended(rows)]
    return np.mean(held) if held else np.nan


def _right(rows):
    held = rows[rows["action"].notna()]
    better = held["mean_1"] > held["mean_0"]
    return (held["action"].astype(int) == better.astype(int)).mean() if len(held) else np.nan


def _better(rows):
    held = rows[rows["action"].notna()]
    return (held["action"].astype(int) == held["better"].astype(int)).mean()


def _confident(rows):
    scores = []
    for _, own in rows[rows["action"].notna()].groupby("session"):
        said = own["response"].astype(float)
        span = said.max() - said.min()
        scaled = (said - said.min()) / span if span else said
        right = own["action"].astype(int) == (own["mean_1"] > own["mean_0"]).astype(int)
        scores += (1 - (right.astype(float) - scaled) ** 2).tolist()
    return np.mean(scores) if scores else np.nan


def _learnt(two_rates, rows):
    """The most probable rates under the priors that the specification gives, by simplex search."""
    held = rows[rows["action"].notna()]
    if not len(held):
        return np.nan

    def badness(z):
        rates = 1 / (1 + np.exp(-np.array([z[0], z[-1] if two_rates else z[0]])))
        beta, kappa = np.exp(z[1]), z[2]
        total = 0.0
        for _, own in held.groupby(["session", "context"]):
            value, last = [0.5, 0.5], 0.0
            for action, reward in zip(own["action"].astype(int), own["reward"], strict=True):
                side = 2 * action - 1
                total += np.logaddexp(0, -side * (beta * (value[1] - value[0]) + kappa * last))
                surprise = reward - value[action]
                value[action] += rates[0 if surprise > 0 else 1] * surprise
                last = side
        total += (z[0] + 0.5) ** 2 / 2 + ((z[1] - 1) / 0.7) ** 2 / 2 + (z[2] / 0.5) ** 2 / 2
        return total + ((z[3] + 0.5) ** 2 / 2 if two_rates else 0.0)

    start = [-0.5, 1.0, 0.0, *([-0.5] if two_rates else [])]
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 5000, "maxfev": 5000}
    z = minimize(badness, start, method="Nelder-Mead", options=options).x
    rate = 1 / (1 + np.exp(-z))
    return rate[0] - rate[3] if two_rates else rate[0]


def _mean_of_sessions(one, rows):
    found = [one(own) for _, own in rows.groupby("session", sort=False)]
    held = [value for value in found if value == value]
    return sum(held) / len(held) if held else np.nan


def _after_reversals(count, rows):
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


def _first_right(block):
    return block.index(True) if True in block else len(block)


def _three_on_end(block):
    ends = [k for k in range(3, len(block) + 1) if all(block[k - 3 : k])]
    return ends[0] if ends else len(block)


def _stays_after(win, rows):
    at = {row.trial: row for row in rows.itertuples()}
    stays = [
        at[t + 1].action == row.action
        for t, row in at.items()
        if t + 1 in at and not pd.isna([row.action, row.reward, at[t + 1].action]).any()
        and (row.reward > 0) == win
    ]  # fmt: skip
    return np.mean([stay == win for stay in stays]) if stays else np.nan


def _decks(plus, cards, rows):
    """Cards of the decks in `plus` less the others, for 20 cards; `cards` are those that count."""
    last = rows["trial"].max() + 1
    taken = [r.action for r in rows.itertuples() if cards(r.trial, last) and not pd.isna(r.action)]
    return 20 * np.mean([1 if deck in plus else -1 for deck in taken]) if taken else np.nan


def _rise(rows):
    """Of sessions whose length is a multiple of 20."""
    first = _decks((2, 3), lambda t, n: t < 20, rows)
    last = _decks((2, 3), lambda t, n: t >= n - 20, rows)
    return last - first if rows["trial"].max() >= 39 else np.nan


def _paid(rows):
    return rows["reward"].dropna().astype(float).mean()


def _asked(rows):
    """Mean answer to each question of the only network of a session, as shares of 1."""
    kept = rows[rows["response"].notna()].astype({"response": float})
    names = ["query", "first", "second", "third", "fourth"]
    return (kept.groupby(names)["response"].mean() / 100).to_dict()


def _exactly(rows, asked):
    one = rows.iloc[0]
    edges = {f"{i}{j}": one[f"w{i}{j}"] for i in range(1, 4) for j in range(i + 1, 5)}
    strengths = {("?ABCD"[int(e[0])], "?ABCD"[int(e[1])]): w for e, w in edges.items() if w}
    held = sorted({name for edge in strengths for name in edge})
    network = CausalNetwork(strengths, {n: one[f"b{'?ABCD'.index(n)}"] for n in held})
    query, *told = asked
    given = {n: int(x) for n, x in zip("ABCD", told, strict=True) if x in (0, 1)}
    done = {n: int(x) - 2 for n, x in zip("ABCD", told, strict=True) if x >= 2}
    return network.answer("ABCD"[int(query)], given, done)


def _twins(rows, change, counts):
    """Answers to questions and to their twins, in which one thing that is told is another."""
    asked = _asked(rows)
    for (query, *told), mean in asked.items():
        for v, value in enumerate(told):
            twin = (query, *told[:v], change.get(value), *told[v + 1 :])
            if twin in asked and counts(query, told, v):
                yield (query, *told), twin, mean - asked[twin]


def _done_or_seen(rows):
    found = list(_twins(rows, {0: 2, 1: 3}, lambda *_: True))
    x = [_exactly(rows, seen) - _exactly(rows, made) for seen, made, _ in found]
    return np.dot(x, [y for *_, y in found]) / np.dot(x, x) if any(np.abs(x) > 1e-9) else np.nan


def _other_cause(value, change, rows):
    """Of a common effect A -> C <- B: the other cause, with the effect untold or present."""
    assert (rows[["w12", "w14", "w24", "w34"]] == 0).all().all()
    found = list(_twins(rows, change, lambda q, told, v: {q, v} == {0, 1} and told[2] == value))
    return np.mean([y for *_, y in found]) if found else np.nan


def _powers(rows):
    kept = rows[rows["response"].notna()]
    p, q = (kept[a] / (kept[a] + kept[b]) for a, b in (("both", "cause"), ("effect", "neither")))
    against = kept["kind"] == 1
    contrast = np.where(against, q - p, p - q).clip(0)
    x = contrast / np.where(against, q, 1 - q) - contrast
    y = kept["response"].astype(float) / 100 - contrast
    return sm.OLS(y, x).fit().params.iloc[0] if (x**2).sum() > 1e-12 else np.nan


def _frequent(rows):
    kept = rows[rows["response"].notna()]
    p, q = (kept[a] / (kept[a] + kept[b]) for a, b in (("both", "cause"), ("effect", "neither")))
    flat = kept[p == q].assign(f=np.where(kept["kind"] == 1, 1 - q, q)[p == q])
    x = np.column_stack([flat["f"], flat["kind"] == 0, flat["kind"] == 1]).astype(float)
    return np.linalg.lstsq(x, flat["response"].astype(float) / 100)[0][0]


def _near(right, rows):
    kept = rows[rows["response"].notna()]
    off = [abs(float(r["response"]) / 100 - right(rows, r)) for _, r in kept.iterrows()]
    return 1 - np.mean(off)


def _right_power(rows, row):
    p, q = row["both"] / (row["both"] + row["cause"]), row["effect"] / (
        row["effect"] + row["neither"])  # fmt: skip
    return max((q - p) / q if row["kind"] == 1 else (p - q) / (1 - q), 0)


def _right_answer(rows, row):
    return _exactly(rows, [row[n] for n in ("query", "first", "second", "third", "fourth")])


SESSION = {
    "do_versus_see": _done_or_seen,
    "network_markov_violation": partial(_other_cause, -1, {1: 0}),
    "network_explaining_away": partial(_other_cause, 1, {0: 1, 2: 3}),
    "power_weight": _powers, "frequency_illusion": _frequent,
    "perseverative_errors": partial(_after_reversals, _first_right),
    "trials_to_criterion": partial(_after_reversals, _three_on_end),
    "win_stay": partial(_stays_after, True), "lose_shift": partial(_stays_after, False),
    "net_score": partial(_decks, (2, 3), lambda t, n: True),
    "rare_loss_preference": partial(_decks, (1, 3), lambda t, n: True),
    "net_score_rise": _rise, "payoff": _paid,
    **{f"net_score_block_{k}": partial(_decks, (2, 3), lambda t, n, k=k: t // 20 == k - 1)
       for k in range(1, 6)},
}  # fmt: skip

SUBJECT = {
    **{name: partial(_mean_of_sessions, one) for name, one in SESSION.items()},
    "risk": _risk, "meta_cognition": _confident, "learning_rate": partial(_learnt, False),
    "performance instrumental_learning": _reward, "performance two_step": _reward,
    "performance balloon_risk": _points, "performance restless_bandit": _right,
    "performance reversal_learning": _better,
    "performance causal_strength": partial(_near, _right_power),
    "performance causal_inference": partial(_near, _right_answer),
}  # fmt: skip


def _by_subject(facts):
    measure, place = facts.row["measure"], facts.row["environment"]
    return SUBJECT.get(measure) or SUBJECT.get(f"{measure} {place}")


def _stays(released, rows):
    """Coefficient, error and rows of the regression of staying, from days side by side."""
    x, y, whose = [], [], []
    for k, (_, own) in enumerate(rows.groupby(["subject", "session"], sort=False)):
        at = {r.trial: r for r in own.itertuples()}
        for trial, first in at.items():
            deal, after = at.get(trial + 1), at.get(trial + 2)
            if first.stage != 0 or deal is None or after is None or deal.stage != 1:
                continue
            if any(v is None or v != v for v in (first.action, deal.action, after.action)):
                continue
            paid, common = float(deal.reward > 0.5), float(deal.state == first.action)
            if released:
                paid, common = 2 * paid - 1, 2 * common - 1
            x.append([1.0, paid, common, paid * common])
            y.append(float(after.action == first.action))
            whose.append(k)
    if len(set(y)) < 2:
        return None
    model = sm.OLS(y, x) if released else sm.Logit(y, x)
    groups = {"cov_type": "cluster", "cov_kwds": {"groups": whose}}
    robust = groups if not released and len(set(whose)) > 1 else {}
    fit = model.fit(**robust) if released else model.fit(disp=0, **robust)
    return fit.params[3], fit.bse[3], len(y)


REGRESSED = {
    "model_basedness": partial(_stays, False), "model_basedness_released": partial(_stays, True),
}  # fmt: skip


def _ends(mean, error, freedom, bounds):
    """Where the score test of Wilson's kind stops to reject, by bisection."""
    low, high = bounds
    limit = student.ppf(0.975, freedom)

    def room(mu):
        return (mu - low if np.isfinite(low) else 1) * (high - mu if np.isfinite(high) else 1)

    def excess(mu):
        return (mu - mean) ** 2 * room(mean) - limit**2 * error**2 * room(mu)

    far = 1e6 * max(1, abs(mean), error)
    outer = [low if np.isfinite(low) else -far, high if np.isfinite(high) else far]
    return [brentq(excess, end, mean, xtol=1e-12) for end in outer]


def _value(facts, words):
    row, rows = facts.row, facts.trials
    who = f"{row['measure']} of {row['sample']}" if row["sample"] else row["measure"]
    assert (words["about"], words["place"]) == (who, row["environment"])
    told = re.fullmatch(
        r"(?P<v>-?[\d.]+)(?: \(95% (?P<low>-?[\d.]+) to (?P<high>-?[\d.]+)\))?"
        r"(?:, p = (?P<p>[\d.e-]+))?, (?P<n>\d+) (?P<unit>[a-z]+?)",
        words["told"].removesuffix("s"),
    )
    name = row["measure"]
    by_subject = _by_subject(facts)
    parts = [own for _, own in rows.groupby("subject", sort=False)]
    values = np.array([by_subject(own) for own in parts]) if by_subject else None
    if told is None:
        assert words["told"] == f"none, {row['status']}"
        assert row["value"] is None
        assert values is None or np.isnan(values.astype(float)).all()
        flat = row["status"] in ("no variation", "all outcomes are the same")
        assert not flat or name not in REGRESSED or REGRESSED[name](rows) is None
        return
    assert words["told"].endswith("s") == (told["n"] != "1")
    assert told["v"] != "-0.000"
    close = dict(rel=2e-4, abs=6e-4)  # three digits are printed
    pairs = [("v", "value"), ("low", "low"), ("high", "high"), ("p", "p_value"), ("n", "n")]
    for short, key in pairs:
        assert (told[short] is None) == (row[key] is None)
        assert told[short] is None or abs(float(told[short]) - row[key]) <= 5.1e-4 + (
            5e-3 * row[key] if short == "p" else 0
        )
    if name in REGRESSED:
        value, error, n = REGRESSED[name](rows)
        assert int(told["n"]) == n
        assert abs(value - row["value"]) < 1e-6 * max(1, abs(value))
        assert told["low"] is None or abs(error - row["standard_error"]) < 1e-6 * max(1, error)
    if values is None:
        return
    held = values[np.isfinite(values)]
    bounds = BOUNDS.get(name) or SCORED.get(row["environment"]) or (-np.inf, np.inf)
    near = 2e-3 if name == "learning_rate" else close["abs"]
    assert abs(held.mean() - float(told["v"])) < near
    if told["unit"] == "subject":
        assert int(told["n"]) == len(held)
        error, freedom = held.std(ddof=1) / np.sqrt(len(held)), len(held) - 1
    else:
        assert len(parts) == 1
        error, freedom, n = _jackknife(by_subject, parts[0])
        assert int(told["n"]) == n
    if told["low"] is not None:
        low, high = _ends(held.mean(), error, freedom, bounds)
        assert abs(low - float(told["low"])) < 4 * near
        assert abs(high - float(told["high"])) < 4 * near
        assert bounds[0] <= float(told["low"]) <= float(told["high"]) <= bounds[1]


def _jackknife(measure, rows):
    """Error, degrees of freedom and sessions, each session that has a value left out in turn."""
    names = [s for s, own in rows.groupby("session", sort=False) if np.isfinite(measure(own))]
    if len(names) < 2:
        return np.nan, np.nan, len(names)
    left = np.array([measure(rows[rows["session"] != s]) for s in names])
    n = len(names)
    error = np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())
    return error, n - 1, n


TASKS_OF = {"explaining_away": ("VII", "VI"), "markov_violation": ("IV", "V")}


def _lost(facts, words):
    rows, name = facts.trials, facts.row["measure"]
    gone = rows[~rows["outcome"].isin(READ)]
    assert name not in TASKS_OF
    assert int(words["n"]) == len(gone) == facts.row["excluded"]["trials without an answer"] > 0


def _no_answer(facts, words):
    assert int(words["n"]) == facts.row["excluded"]["no answer"] > 0
    rows = facts.trials
    if facts.row["environment"] == "two_step":  # days followed by one, less those that count
        days = rows[rows["stage"] == 0].groupby(["subject", "session"]).size()
        assert int(words["n"]) == (days - 1).sum() - facts.row["n"]
    else:
        assert int(words["n"]) <= (~rows["outcome"].isin(READ)).sum()


def _left_out(why, facts, words):
    n = int(words["n"])
    assert n == facts.row["excluded"][why] > 0
    by_subject = _by_subject(facts)
    if by_subject and facts.row["unit"] == "subject":
        none = [not np.isfinite(by_subject(own)) for _, own in facts.trials.groupby("subject")]
        assert n == sum(none)


def _fits(status, facts, words):
    fits = facts.row["fits"]
    assert int(words["n"]) == fits[status] > 0
    assert int(words["total"]) == sum(fits.values()) == facts.trials["subject"].nunique()


def _flat(facts, words):
    rows = [r for r in facts.content["measures"]
            if words["who"] in (r["measure"], f"{r['measure']} of {r['sample']}")]  # fmt: skip
    [row] = [r for r in rows if r["fits"].get("flat")]
    assert int(words["n"]) == row["fits"]["flat"]
    assert int(words["total"]) == sum(row["fits"].values())
    assert words["share"] == f"{int(words['n']) / int(words['total']):.0%}"
    assert int(words["total"]) == facts.subjects[row["sample"]]


def _single(facts, words):
    count = {"subject": facts.trials["subject"].nunique(),
             "session": len(facts.trials[["subject", "session"]].drop_duplicates())}  # fmt: skip
    unit = words["unit"]
    others = sum(facts.row["excluded"].get(k, 0) for k in facts.row["excluded"] if k in REASONS)
    assert count[unit] - others == 1 == facts.row["n"]
    assert facts.row["low"] is facts.row["p_value"] is None


def _alike(facts, words):
    by_subject = _by_subject(facts)
    column = "subject" if words["unit"] == "subject" else "session"
    values = [by_subject(own) for _, own in facts.trials.groupby(column)]
    held = [v for v in values if np.isfinite(v)]
    assert len(held) == facts.row["n"] > 1
    assert max(held) - min(held) < 1e-12
    assert facts.row["low"] is None


def _nobody(facts, words):
    assert facts.row["n"] == 0
    assert facts.row["low"] is None


def _jackknifed(facts, words):
    assert words["units"] in ("sessions", "settings")
    assert facts.trials["subject"].nunique() == 1
    if words["units"] == "sessions":
        assert facts.trials["session"].nunique() >= facts.row["n"] > 1
    assert facts.row["low"] is not None


def _independent(facts, words):
    sessions = facts.trials[["subject", "session"]].drop_duplicates()
    assert len(sessions) == 1 or facts.row["measure"] == "model_basedness_released"
    assert facts.row["unit"] == words["unit"]


def _nothing_left(facts, words):
    assert facts.row["value"] is not None
    assert facts.row["low"] is None


def _outcomes(facts, words):
    counts = Counter(facts.outcomes[words["place"]][words["sample"]])
    told = dict(reversed(each.split(" ", 1)) for each in words["counts"].split(", "))
    assert {name: int(n) for name, n in told.items()} == dict(counts)
    assert int(words["total"]) == sum(counts.values())


REASONS = (
    "failed fit", "no trial with a score", "no balloon ended", "unanswered items",
    "too few answers", "no weight", "no answer in the session", "separation", "no variation",
    "all outcomes are the same", "too few rows", "regressors that depend on each other",
    "no convergence", "no play after a reversal", "no win before a play", "no loss before a play",
    "no card was taken", "no card in the block", "no two blocks of cards", "no card with a reward",
    "no two questions that differ in seeing and doing",
    "no two questions that differ in a variable that is screened off",
    "no two questions about a cause of a present effect that differ in another cause",
    "no table in which power and contrast differ", "no tables without a contrast that differ",
)  # fmt: skip
NAMED_REASONS = (
    "no answer where {mark} could be told apart",
    "no cell with answers to both {plus} and {minus}",
    "no answer to {task} in {cells}{more}",
    "fewer than {least} items answered as text, as image and as both",
    "fewer than {least} answers to both cues, or without conflicts",
    "fewer than {least} answers to one of the cues alone",
    "answers do not grow with values",
)


def _named(facts, words):
    assert int(words["n"]) in facts.row["excluded"].values()


def _departs(facts, words):
    told = [one for one in facts.content["released"] if one["measure"] == words["measure"]]
    assert [one["followed"] for one in told] == [words["followed"]]
    rows = re.search(r" \(([\d,]+) rows\)$", words["differs"] + words["rows"])
    unread = int((~facts.trials["outcome"].isin(READ)).sum())
    if rows and words["measure"] in ("performance", "model_basedness_released"):
        assert int(rows[1].replace(",", "")) == unread


COUNTED = "a count over the rows of the sample"
REPORT = Report(
    "score",
    sources=(
        "validation/data/scores_of_trials.py",
        "validation/data/measured_page.py",
        "inference/measure.py",
        "inference/performance.py",
        "inference/regression.py",
        "inference/bandits/optimism_bias.py",
        "inference/bandits/learning_rate.py",
        "inference/bandits/risk.py",
        "inference/bandits/weighting.py",
        "inference/bandits/temporal_discounting_score.py",
        "inference/bandits/model_basedness.py",
        "inference/bandits/exploration.py",
        "inference/bandits/meta_cognition.py",
        "inference/causes/explaining_away.py",
        "inference/causes/markov_violation.py",
        "inference/causes/determinacy.py",
        "inference/causes/reasoning_consistency.py",
        "inference/causes/reasoner_measure.py",
        "inference/causes/cell_contrast.py",
        "inference/magnitudes/normalised_error.py",
        "inference/magnitudes/regression_to_the_mean.py",
        "inference/magnitudes/conflict_weight.py",
        "inference/magnitudes/cue_weight.py",
    ),
    sentences=(
        Claim(
            "{about} ({place}): {told}",
            "loops over the rows, a simplex search of the posterior, or statsmodels on the raw "
            "columns; ends of intervals by bisection of the score equation",
            _value,
        ),
        Claim(
            "{measure} ({place}) against the script's number: followed: {followed}; differs: "
            "{differs}{rows}",
            "the JSON, and a count over the rows",
            _departs,
        ),
        Explanation("Against the numbers of the published script"),
        Claim("{n} left out (trials without an answer)", COUNTED, _lost),
        Claim("{n} left out (no answer)", COUNTED, _no_answer),
        *(
            Claim(
                f"{{n}} left out ({why})",
                "subjects without a value, from their rows",
                partial(_left_out, why),
            )
            for why in REASONS
        ),
        *(
            Claim(f"{{n}} left out ({why})", "the counts of the JSON", _named)
            for why in NAMED_REASONS
        ),
        *(
            Claim(
                f"{{n}} of {{total}} fits {status}", "subjects in the rows", partial(_fits, status)
            )
            for status in ("flat", "boundary", "failed")
        ),
        Claim(
            "{n} of {total} fits behind {who} ({share}) are flat: their trials say next to nothing "
            "about a parameter, and the prior speaks in their place.",
            "subjects in the rows, and the JSON",
            _flat,
        ),
        Claim("no interval: a single {unit}", COUNTED, _single),
        Claim("no interval: no {unit} has a value of its own", "the JSON", _nobody),
        Claim("no interval: all {unit}s are alike", "values anew, from the rows", _alike),
        Claim("no interval: the value lies at its bound", "the JSON", _nothing_left),
        Claim("no interval: nothing is left unexplained", "the JSON", _nothing_left),
        Claim("interval by the jackknife over {units}", COUNTED, _jackknifed),
        Claim("{unit}s taken as independent", COUNTED, _independent),
        Claim(
            "{counts} of {total} answers of {sample} in {place}",
            "a plain count of the outcomes",
            _outcomes,
        ),
        Explanation(
            "Each measure with its 95% interval, where it has one; a dashed line is the value that "
            "its test rejects. Samples without a value stand in grey."
        ),
        Explanation(
            "Intervals are of 95%. What each rests on stands in the column n: subjects; sessions, "
            "where a single subject has several; or the rows of a regression over all of them, "
            "with errors that are robust to dependence within subjects or sessions. Those of "
            "bounded quantities stay within the bounds."
        ),
        Explanation(
            "Trials without a readable answer are left out and counted; nothing is put in their "
            "place."
        ),
        Explanation(
            "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data "
            "ask for an infinite value; failed, no trustworthy estimate."
        ),
        Explanation("The measures of {source}"),
        Explanation("how much the presence of one cause raises the judgement of the other{of}"),
        Explanation("{name}: {summary} ({source})."),
        # What stands in the one above: summaries with something filled in, and sources.
        Explanation("reward x common transition in repeating the first choice{ending}"),
        Explanation("weight {what} in stated probabilities{ending}"),
        Explanation("adjusted quadratic score of the confidences{ending}"),
        Explanation("judgement of a cause that the other cause takes away{ending}"),
        Explanation("Lefebvre et al. 2017"),
        Explanation("Carpenter et al. 2019; Coda-Forno, Binz, Wang and Schulz 2024"),
        Explanation("Lejuez et al. 2002; Coda-Forno, Binz, Wang and Schulz 2024"),
        Explanation("Ruggeri et al. 2022; CogBench"),
    ),
)
