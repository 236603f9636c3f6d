"""Sentences of the tests of coherence between stated beliefs and decisions.

Facts: a `SimpleNamespace` with `content` (what the result's JSON holds), `trials` (the raw rows of
the participants that the sentence is about) and `who` (a participant; of a battery alone).
"""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import digamma

from claims import Claim, Explanation, Report

UNIT = ["subject", "session", "context"]
ELICITATIONS = ("plain", "squared", "absolute", "bayesian")
ACTIONS = ("Yes", "Defer", "No")
PAIRS = {"Yes over No": (0, 2), "Yes over Defer": (0, 1), "Defer over No": (1, 2)}


def near(told, value, digits):
    """Hold a printed number against one that was recomputed."""
    assert abs(float(told) - value) <= 0.51 * 10.0**-digits, (told, value)


def wide(facts):
    """Return a row per context and repetition, with a column for each question, from raw rows."""
    if not hasattr(facts, "wide"):
        facts.wide = _wide(facts)
    return facts.wide.copy()


def _wide(facts):
    rows = facts.trials.assign(session=facts.trials.get("session", "0"))
    names = []
    for row in rows.to_dict("records"):
        part = row["part"]
        kinds = {1: "action", 2: f"part_{part}", 3: f"given_{part}", 4: f"share_{part}"}
        names.append(kinds.get(row["question"]) or ELICITATIONS[row["elicitation"]])
    answer = np.where(rows["question"] == 1, rows["action"].astype(float), rows["response"])
    rows = rows.assign(name=names, answer=answer)
    index = [*UNIT, "repetition", "state"]
    table = rows.pivot_table(index=index, columns="name", values="answer", dropna=False)
    asked = rows[index].drop_duplicates()
    return table.reindex(pd.MultiIndex.from_frame(asked)).reset_index()


def decided(facts):
    """Return plain belief, action, state and number of context of the rows that have all."""
    table = wide(facts)
    table = table[table["plain"].notna() & table["action"].notna()]
    context = table.groupby(UNIT).ngroup().to_numpy()
    return (table["plain"].to_numpy(), table["action"].to_numpy(int), table["state"].to_numpy(int),
            context)  # fmt: skip


def information(p, action, state, k=3):
    """Return the nearest-neighbour estimate by comparing every pair of rows."""
    apart = np.abs(p[:, None] - p)
    of_a = (action[:, None] != action).astype(float)
    of_s = (state[:, None] != state).astype(float)
    whole = np.maximum(np.maximum(apart, of_a), of_s)
    np.fill_diagonal(whole, np.inf)
    radius = np.sort(whole, axis=1)[:, k - 1][:, None] + 1e-9
    counts = [
        (np.maximum.reduce(part) <= radius).sum(axis=1) - 1
        for part in ([apart, of_a, of_s], [apart, of_a], [apart, of_s], [apart])
    ]
    psi = [digamma(np.maximum(n, 1)) for n in counts]
    return float((psi[0] - psi[1] - psi[2] + psi[3]).mean())


# ---------------------------------------------------------------- the battery


def _tests(facts):
    found = {}
    both = {"parts over whole", "parts over whole, asked singly"}
    for row in facts.content["tests"]:
        if row["participant"] != facts.who or row["status"] != "ok" or row["p_value"] is None:
            continue
        if row["test"] == "monotone choice" and row["of"] != "any pair turns":
            continue
        if row["of"] in both:
            _hold_gap(facts, row)
        found.setdefault(row["test"], []).append(row["p_value"])
    return {test: min(p_values) * len(p_values) <= 0.05 for test, p_values in found.items()}


def _gaps(facts, singly):
    table = wide(facts)
    stem = "part_" if singly else "share_"
    parts = sorted(int(c[6:]) for c in table if str(c).startswith("given_"))
    weights = table[[f"{stem}{j}" for j in parts]].to_numpy()
    total = (weights * table[[f"given_{j}" for j in parts]].to_numpy()).sum(axis=1)
    table = table.assign(gap=total - table["plain"], mass=weights.sum(axis=1))
    return table[np.isfinite(table["gap"])]


def _hold_gap(facts, row):
    gap = _gaps(facts, row["of"].endswith("singly")).groupby(UNIT)["gap"].mean()
    assert np.isclose(row["estimate"], gap.mean(), atol=1e-12)
    assert np.isclose(row["p_value"], stats.ttest_1samp(gap, 0.0).pvalue, atol=1e-9)


def _rejected(facts, words):
    tests = _tests(facts)
    assert facts.who == words["who"]
    assert (int(words["k"]), int(words["n"])) == (sum(tests.values()), len(tests))


def _not_tested(facts, words):
    assert (facts.who, _tests(facts)) == (words["who"], {})


def _none_tested(facts, words):
    assert not _tests(facts)


def _which(facts, words):
    assert words["tests"].split(", ") == [t for t, found in _tests(facts).items() if found]


def _none(facts, words):
    tests = _tests(facts)
    assert tests
    assert not any(tests.values())


def _besides(facts, words):
    rejected = {test for test, found in _tests(facts).items() if found}
    accused = []
    for row in facts.content["tests"]:
        if row["participant"] != facts.who or row["status"] != "ok" or not row["finding"]:
            continue
        # An interval accuses if it lies above zero, a fraction of falls if it is above zero.
        falls = row["test"] == "monotone choice"
        least = row["published"] if falls else row["published_low"]
        assert (row["finding"] == "violation") == (least > 0)
        if least > 0 and row["test"] not in rejected:
            accused.append(row["test"])
        if row["test"] == "conditional independence":
            assert np.isclose(row["published"], row["estimate"])
            middle = (row["published_low"] + row["published_high"]) / 2
            assert np.isclose(middle, row["estimate"])
            if not row["of"]:
                assert np.isclose(row["estimate"], information(*decided(facts)[:3]), atol=1e-9)
    assert words["tests"].split(", ") == list(dict.fromkeys(accused))


def _answers(facts, words):
    table = wide(facts)
    assert int(words["rows"].replace(",", "")) == len(table)
    contexts, *missing = words["contexts"].split("; ")
    assert int(contexts.replace(",", "")) == len(table[UNIT].drop_duplicates())
    due = []
    for row in facts.trials.to_dict("records"):
        part = row["part"]
        kinds = {1: "action", 2: f"part_{part}", 3: f"given_{part}", 4: f"share_{part}"}
        name = kinds.get(row["question"]) or ELICITATIONS[row["elicitation"]]
        given = row["action"] if row["question"] == 1 else row["response"]
        due.append((name, pd.isna(given)))
    counts = pd.DataFrame(due, columns=["name", "missing"]).groupby("name")["missing"]
    told = {f"{m} of {n} {name} missing" for name, m, n in
            zip(counts.sum().index, counts.sum(), counts.size(), strict=True) if m}  # fmt: skip
    assert set(missing) == told


def _first(facts, words):
    assert int(words["n"]) == 12 < len({row["participant"] for row in facts.content["tests"]})


def _status(facts, words):
    own = [r for r in facts.content["tests"] if r["participant"] == facts.who]
    names = {", ".join(filter(None, [r["test"], r["of"]])): r["status"] for r in own}
    assert names[words["test"].strip()] == words["why"] != "ok"


def _left_out(facts, words):
    table = wide(facts)
    lacks = {f"no {name}": int(table[name].isna().sum()) for name in table.columns[5:]}
    for each in words["what"].split(", "):
        n, why = each.split(" ", 1)
        if why == "no ratio to a belief of 0":
            assert int(n) == int((table["plain"] == 0).sum())
        else:  # a row that lacks several is counted with the first
            assert 0 < int(n) <= lacks[why]


# ---------------------------------------------------------------- single tests


def _estimate(facts, words):
    p, action, state, context = decided(facts)
    content = facts.content
    if words["belief"] == "belief":
        near(words["estimate"], information(p, action, state), 4)
    else:
        assert words["belief"] == "calibrated belief"
        assert content["calibrated"]
    error = content["standard_error"]
    near(words["low"], content["estimate"] - 1.959964 * error, 4)
    near(words["high"], content["estimate"] + 1.959964 * error, 4)
    if words["belief"] == "belief":
        # Halves of the contexts, drawn anew: an sd of 60 is known to 9%, that of 200 to 5%.
        rng, found = np.random.default_rng(0), []
        for _ in range(60):
            half = rng.permutation(context.max() + 1)[: (context.max() + 1) // 2]
            rows = np.isin(context, half)
            found.append(information(p[rows], action[rows], state[rows]))
        assert abs(np.std(found) / error - 1) < 4 * np.hypot(0.09, 0.05)


def _permuted(facts, words):
    content = facts.content
    share = float(words["p"]) * (content["replicates"] + 1)
    assert abs(share - round(share)) < 0.005 * share + 1e-6
    low, high, mean = (float(words[name]) for name in ("low", "high", "mean"))
    assert low <= mean <= high
    # p is the share of permutations as large as the estimate: small only if that is beyond them.
    estimate = content["estimate"]
    assert (float(words["p"]) <= 0.02) <= (estimate >= high - 1e-4)
    assert (float(words["p"]) >= 0.99) <= (estimate <= low + 1e-4)
    p, action, state, context = decided(facts)
    if content["calibrated"]:
        return
    blocks = _blocks(p, context)
    of_context = pd.Series(state).groupby(context).first().to_numpy()
    rng, found = np.random.default_rng(1), []
    for _ in range(40):
        drawn = of_context.copy()
        for block in blocks:
            drawn[block] = rng.permutation(of_context[block])
        found.append(information(p, action, drawn[context]))
    assert abs(np.mean(found) - mean) < 4 * np.std(found) / np.sqrt(40) + 1e-4


def _blocks(p, context):
    """Cut contexts into runs of 5 in the order of their mean beliefs, of at most .05 width."""
    mean = pd.Series(p).groupby(context).mean()
    ranked = mean.sort_values(kind="stable")
    runs = [[]]
    for number, value in ranked.items():
        run = runs[-1]
        same = run and abs(value - mean[run[-1]]) < 1e-9
        if run and not same and (len(run) >= 5 or value - mean[run[0]] > 0.05 + 1e-9):
            runs.append([])
        runs[-1].append(number)
    joined = [runs[0]]
    for run in runs[1:]:
        wide_ = mean[run[-1]] - mean[joined[-1][0]] > 0.05 + 1e-9
        if len(run) < 5 and not wide_:
            joined[-1] = joined[-1] + run
        else:
            joined.append(run)
    return [np.array(run) for run in joined]


def _above(low, told):
    # What prints as zero may be on either side of it.
    if abs(float(low)) > 5e-5:
        assert told == ("above zero" if float(low) > 0 else "not above zero")


def _published(facts, words):
    p, action, state, _ = decided(facts)
    if not facts.content["calibrated"]:
        near(words["estimate"], information(p, action, state), 4)
        rng, found = np.random.default_rng(2), []
        for _ in range(60):
            rows = rng.integers(0, len(p), len(p))
            found.append(information(p[rows], action[rows], state[rows]))
        half = float(words["high"]) - float(words["estimate"])
        # An sd of 60 is known to 9%, that of the result by its number of bootstraps.
        error = np.hypot(0.09, np.sqrt(0.5 / facts.content["published"]["replicates"]))
        assert abs(half / (1.96 * np.std(found, ddof=1)) - 1) < 4 * error
    assert abs(float(words["low"]) + float(words["high"]) - 2 * float(words["estimate"])) < 3e-4
    _above(words["low"], words["above"])


def _percentiles(facts, words):
    low, high = float(words["low"]), float(words["high"])
    assert low <= facts.content["published"]["mean"] <= high
    _above(low, words["above"])


def _rows(facts, words):
    p, _, state, context = decided(facts)
    assert (int(words["rows"]), int(words["contexts"])) == (len(p), context.max() + 1)
    of_context = pd.Series(state).groupby(context).first().to_numpy()
    mixed = sum(len(b) for b in _blocks(p, context) if 0 < of_context[b].mean() < 1)
    assert int(words["n"]) == mixed


def _excluded(facts, words):
    table = wide(facts)
    for n, why in re.findall(
        r"(\d+) excluded \((.*?)\)", f"{words['n']} excluded ({words['why']})"
    ):
        if why.startswith("no ratio"):
            assert int(n) == int((table["plain"] == 0).sum())
        else:
            assert 0 < int(n) <= int(table[why.removeprefix("no ")].isna().sum())


def _design(facts, words):
    p, *_, context = decided(facts)
    assert (int(words["rows"]), int(words["contexts"])) == (len(p), context.max() + 1)
    assert words["learner"] == facts.content["learner"]
    assert int(words["folds"]) == facts.content["folds"]


def _gain_in_numbers(facts, words):
    """The percentage is that of the two losses, and lies in its interval."""
    number = r"([+-]?[\d.]+)"
    found = re.fullmatch(
        rf"{number}% \(95% {number} to {number}\)(?:, exchanged {number}%, p = (\S+))?; "
        rf"log-loss {number} to {number}",
        words["gain"],
    )
    percent, low, high, exchanged, p_value, without, with_state = found.groups()
    assert float(low) <= float(percent) <= float(high)
    # Losses have four decimals, so that the percentage follows to about .02.
    assert abs(100 * (1 - float(with_state) / float(without)) - float(percent)) < 0.03
    if p_value is not None and float(p_value) <= 0.04:  # more than nearly all exchanges bring
        assert float(percent) > float(exchanged)
    return without, with_state


def _gain(facts, words):
    """Arithmetic of the sentence, and the loss of trees learnt with folds of its own."""
    from sklearn.model_selection import GroupKFold
    from sklearn.tree import DecisionTreeClassifier

    without, with_state = _gain_in_numbers(facts, words)
    p, action, state, context = decided(facts)
    if facts.content["learner"] != "tree":
        return
    for told, x in ((without, p[:, None]), (with_state, np.column_stack([p, state]))):
        loss = []
        for learn, tell in GroupKFold(facts.content["folds"]).split(x, groups=context):
            tree = DecisionTreeClassifier(min_samples_leaf=25, random_state=0)
            tree.fit(x[learn], action[learn])
            chances = tree.predict_proba(x[tell])
            place = np.searchsorted(tree.classes_, action[tell])
            loss += (-np.log(0.999 * chances[np.arange(len(tell)), place] + 0.001 / 3)).tolist()
        # Other folds, other losses: by less than rows differ among themselves, contexts apart.
        assert abs(np.mean(loss) - float(told)) < 4 * np.std(loss) / np.sqrt(context.max() + 1)


def _bins(facts):
    p, action, *_ = decided(facts)
    edges = np.unique(np.quantile(p, [0.2, 0.4, 0.6, 0.8]))
    edges = [edge for edge in edges if edge > p.min()]
    place = np.array([sum(value >= edge for edge in edges) for value in p])
    return [[int((action[place == k] == a).sum()) for a in range(3)] for k in sorted(set(place))]


def _fisher(facts, pair):
    counts = [[own[a] for a in PAIRS[pair]] for own in _bins(facts)]
    falls, rises = [], []
    for low, high in combinations(range(len(counts)), 2):
        one, other = counts[low], counts[high]
        if not sum(one) or not sum(other):
            continue
        sides = one[0] * sum(other) - other[0] * sum(one)
        for found, wanted, table in ((falls, 1, [one, other]), (rises, -1, [other, one])):
            p_value = stats.fisher_exact(table, alternative="greater").pvalue
            found.append(p_value if sides * wanted > 0 else 1.0)
    return np.array(falls), np.array(rises)


def _holm(p_values):
    """Adjust one after the other (statsmodels collects garbage at every call)."""
    adjusted, least = np.empty(len(p_values)), 0.0
    for rank, k in enumerate(np.argsort(p_values)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = least
    return adjusted


def _monotone(facts, words):
    assert int(words["n"]) == len(_bins(facts))


def _falls(facts, words):
    falls, _ = _fisher(facts, f"{words['first']} over {words['second'].strip()}")
    assert int(words["testable"]) == len(falls)
    assert int(words["violated"]) == int((falls <= 0.05).sum())
    assert words["fraction"] == f"{(falls <= 0.05).mean():.0%}"
    assert int(words["holm"]) == int((_holm(falls) <= 0.05).sum())
    assert np.isclose(float(words["p"]), _holm(falls).min(), rtol=6e-3)
    low, high = (float(words[name].rstrip("%")) for name in ("low", "high"))
    assert 0 <= low <= high <= 100


def _untestable(facts, words):
    falls, _ = _fisher(facts, f"{words['first']} over {words['second'].strip()}")
    assert len(falls) == 0


def _turned(facts, words):
    against = testable = 0
    p_values = []
    for pair in PAIRS:
        falls, rises = _fisher(facts, pair)
        if not len(falls):
            continue
        falls, rises = _holm(falls), _holm(rises)
        against += min((falls <= 0.05).sum(), (rises <= 0.05).sum())
        testable += len(falls)
        p_values.append(max(falls.min(), rises.min()))
    assert words["share"] == f"{against / testable:.1%}"
    assert np.isclose(float(words["p"]), min(1.0, len(p_values) * min(p_values)), rtol=6e-3)


def _spread(facts, words):
    table = wide(facts)
    plain = table[table["plain"].notna()].groupby(UNIT)["plain"]
    n = plain.size()
    squares = (plain.var() * (n - 1))[n > 1].sum()
    near(words["sd"], np.sqrt(squares / (n[n > 1] - 1).sum()), 4)
    assert int(words["n"]) == int((n > 1).sum())
    assert float(words["low"]) <= float(words["sd"]) <= float(words["high"])


def _means(facts, words):
    table = wide(facts)
    means = table.groupby(UNIT)[["plain", words["name"].strip()]].mean().dropna()
    apart = means.iloc[:, 1] - means.iloc[:, 0]
    rmse = float(np.sqrt((apart**2).mean()))
    near(words["rmse"], rmse, 4)
    assert float(words["low"]) <= rmse + 1e-4
    # Answers exchanged within contexts, drawn anew.
    rng, both = np.random.default_rng(0), []
    for _, own in table.groupby(UNIT):
        one, other = (own[c].dropna().to_numpy() for c in ("plain", words["name"].strip()))
        if len(one) and len(other):
            both.append((np.concatenate([one, other]), len(one)))
    found = []
    for _ in range(60):
        mixed = [(rng.permutation(answers), n) for answers, n in both]
        squares = [(answers[:n].mean() - answers[n:].mean()) ** 2 for answers, n in mixed]
        found.append(np.sqrt(np.mean(squares)))
    error = np.std(found) * np.sqrt(1 / 60 + 1 / 99)
    assert abs(np.mean(found) - float(words["null"])) < 4 * error + 1e-4
    p = float(words["p"])
    assert abs(np.mean(np.array(found) >= rmse - 1e-12) - p) < 4 * np.sqrt(0.25 / 60) + 0.02
    facts.elicitation = words["name"].strip()


def _single(facts, words):
    table = wide(facts)
    name = facts.elicitation
    centre = table.groupby(UNIT)["plain"].transform("mean")
    squares = ((table[name] - centre) ** 2).dropna()
    near(words["rmse"], float(np.sqrt(squares.mean())), 4)
    means = table.groupby(UNIT)[["plain", name]].mean().dropna()
    near(words["shift"], float((means[name] - means["plain"]).mean()), 4)
    assert float(words["low"]) <= float(words["rmse"]) <= float(words["high"])


def _missing_answers(facts, words):
    table = wide(facts)
    told = f"{words['n']} {words['name']} answers missing"
    for each in told.split(", "):
        n, name, *_ = each.split()
        assert int(n) == int(table[name].isna().sum())


def _parts(facts, words):
    table = wide(facts)
    how = {"in one distribution": "share_", "asked one by one": "part_"}[words["how"]]
    asked = [c for c in table if str(c).startswith(how)]
    assert int(words["n"]) == len(asked) > 0
    # Where both were asked, the distribution is what is read.
    assert how == "share_" or not any(str(c).startswith("share_") for c in table)


def _singly(facts):
    return facts.content["elicitation"] == "separate"


def _ratio(facts, words):
    table = _gaps(facts, _singly(facts))
    table = table[table["plain"] > 0]
    gap = table["gap"].abs().where(table["gap"].abs() >= 1e-12, 0.0)
    told = f"{words['ratio']}, {words['rows']}"
    found = re.fullmatch(r"(\S+) \(95% (\S+) to (\S+)\), error (\S+), (\d+)", told)
    value, low, high, error, rows = map(float, found.groups())
    near(value, float((gap / table["plain"]).median()), 4)
    near(error, float(gap.median()), 4)
    assert low <= value <= high
    assert rows == len(table)
    assert int(words["contexts"]) == len(table[UNIT].drop_duplicates())


def _mean_gap(facts, words):
    gap = _gaps(facts, _singly(facts)).groupby(UNIT)["gap"].mean()
    found = re.fullmatch(r"(\S+) \(95% (\S+) to (\S+)\), p = (\S+)", words["gap"])
    value, low, high, p_value = map(float, found.groups())
    test = stats.ttest_1samp(gap, 0.0)
    near(value, gap.mean(), 4)
    ends = test.confidence_interval(0.95)
    near(low, ends.low, 4)
    near(high, ends.high, 4)
    assert np.isclose(p_value, test.pvalue, rtol=6e-3)


def _mass(facts, words):
    near(words["mass"], float(_gaps(facts, _singly(facts))["mass"].median()), 3)


def _if_exact(facts, words):
    """The ratio of the exact probabilities in the raw rows, rounded to .01."""
    exact = SimpleRows(
        facts.trials.assign(response=(facts.trials["posterior"] * 100).round() / 100)
    )
    held = _gaps(facts, _singly(facts)).set_index([*UNIT, "repetition"]).index
    table = _gaps(exact, _singly(facts)).set_index([*UNIT, "repetition"])
    table = table[table.index.isin(held) & (table["plain"] > 0)]
    gap = table["gap"].abs().where(table["gap"].abs() >= 1e-12, 0.0)
    near(words["ratio"].split(" ")[0], float((gap / table["plain"]).median()), 4)


class SimpleRows:
    """Facts that are rows alone."""

    def __init__(self, trials):
        self.trials = trials


def _forest(facts, words):
    assert float(words["ratio"].split(" ")[0]) >= 0


def _above_forest(facts, words):
    content = facts.content
    apart = content["stated"]["value"] - content["baseline"]["value"]
    near(words["value"], apart, 4)
    assert float(words["low"]) <= float(words["high"])


ROWS = "the raw rows, in pandas"
REPORT = Report(
    "belief battery",
    sources=(
        "validation/diagnosis/belief_battery.py",
        "validation/diagnosis/belief_battery_page.py",
        "inference/diagnosis/conditional_independence.py",
        "inference/diagnosis/predictive_gain.py",
        "inference/diagnosis/monotone_choice.py",
        "inference/diagnosis/elicitation_consistency.py",
        "inference/diagnosis/iterated_expectation.py",
    ),
    sentences=(
        Claim("{who}: {k} of {n} rejected.", "the p-values of the JSON, counted", _rejected),
        Claim("{who}: not tested.", "the p-values of the JSON, counted", _not_tested),
        Claim("These answers allow none of the tests.", "the p-values of the JSON", _none_tested),
        Claim("Rejected at .05: {tests}.", "the p-values of the JSON; a t test by SciPy", _which),
        Claim("No test rejects at .05.", "the p-values of the JSON; a t test by SciPy", _none),
        Claim(
            "Published variants would accuse it of {tests} besides.",
            "the published intervals of the JSON; the estimate from all pairs of rows",
            _besides,
        ),
        Claim("{who}: rows {rows}, contexts {contexts}", "a count over the rows", _answers),
        Claim("Pictures are of the first {n} participants.", "a count over the JSON", _first),
        Claim("{test} none: {why}", "the status in the JSON", _status),
        Claim("left out: {what}", "a count over the rows", _left_out),
        Explanation("Do stated beliefs drive decisions?"),
        Explanation("parts over whole{apart}"),
        Explanation(
            "Estimates with 95% intervals (filled) and their values under the hypothesis "
            "(crosses); hollow and grey: the published variant. Orange: p at most .05."
        ),
        Explanation(
            "Odds of the bolder action over the other by belief: mean belief of each bin and log "
            "odds with 2 standard errors. Lines of those who maximise expected utility with noise "
            "only rise or only fall. Hollow: one of the two was never chosen there; half a choice "
            "is added to both."
        ),
        Explanation(
            "Each test holds its estimate against the value that a rational decider with truthful "
            "reports would have (null). A test with several rows rejects if the smallest of their "
            "p-values times their number is at most .05; tests are not corrected for their number."
        ),
        Explanation(
            "Conditional independence: I(action; state | belief) in nats by nearest neighbours; "
            "null and p from states exchanged between contexts of nearly the same belief. "
            "Published: the same estimate, a violation if it less 1.96 standard errors, rows being "
            "resampled, is above zero."
        ),
        Explanation(
            "Predictive gain: percent by which the log-loss of decisions about contexts not learnt "
            "from is smaller with the state, against exchanged states. Published: against the "
            "belief alone, a violation if the interval lies above zero."
        ),
        Explanation(
            "Monotone choice: share of pairs of belief bins with significant falls (Holm), and of "
            "those that go against the direction of their actions. Published: falls at .05, "
            "uncorrected, for each pair of actions; beside the first line they are taken together. "
            "Falls alone are no irrationality: who waits least where the state is probable has "
            "them."
        ),
        Explanation(
            "Elicitation consistency: root mean square distance of means over repetitions from the "
            "plain ones, as in the paper's table; null and p by exchanging answers within "
            "contexts. Published: of single answers, as in the formula of its text. First line: "
            "spread of the plain answers between repetitions."
        ),
        Explanation(
            "Iterated expectation: mean of sum p(x, z) p(z | x) - p(x) over contexts, t test. "
            "Published: median ratio of the distance to p(x), which the paper sets beside that of "
            "a random forest trained on exact beliefs; here also beside that of exact beliefs "
            "rounded to .01. The parts p(z | x) are asked for in one distribution, as published; "
            "asked singly, with yes or no, their sum need not be 1, and what is over is counted."
        ),
        Explanation(
            "A rational decider whose reports are noisy makes the first two tests reject: "
            "decisions then tell what the report lost. They accuse the report, not the decision."
        ),
        Explanation("Answers that are missing or unreadable are left out and counted."),
        Claim(
            "I(action; state | {belief}) {estimate} nats (95% {low} to {high})",
            "all pairs of rows; random halves of the contexts",
            _estimate,
        ),
        Claim(
            "under permutation   {mean} ({low} to {high}), p = {p}",
            "permutations of its own within runs of contexts",
            _permuted,
        ),
        Claim(
            "published interval  {estimate} ({low} to {high}), {above}",
            "all pairs of rows; a bootstrap of rows of its own",
            _published,
        ),
        Claim(
            "its percentiles     ({low} to {high}), {above}: no test",
            "the ends themselves",
            _percentiles,
        ),
        Claim(
            "{rows} rows of {contexts} contexts, {n} of which can exchange their state",
            "a count over the rows, and over runs of contexts",
            _rows,
        ),
        Claim("{n} excluded ({why})", "a count over the rows", _excluded),
        Claim(
            "gain from the state, {learner}, {folds} folds of {contexts} contexts ({rows} rows)",
            "a count over the rows",
            _design,
        ),
        Claim("beyond the belief               {gain}", "trees with folds of its own", _gain),
        Claim(
            "beyond the belief and evidence  {gain}", "the losses in the sentence", _gain_in_numbers
        ),
        Claim("monotone pairwise choice, {n} bins of belief", "quantiles by NumPy", _monotone),
        Claim(
            "{first} over {second} {violated} of {testable} fall ({fraction}; 95% {low} to "
            "{high}), {holm} after Holm, p = {p}",
            "Fisher's test by SciPy, Holm's correction by statsmodels",
            _falls,
        ),
        Claim(
            "{first} over {second} no pair of bins with both: not testable",
            "a count over the rows",
            _untestable,
        ),
        Claim(
            "against the direction of their actions {share} of the pairs of bins, p = {p}",
            "Fisher's test by SciPy, Holm's correction by statsmodels",
            _turned,
        ),
        Claim(
            "plain, between repetitions    sd   {sd} (95% {low} to {high}), {n} contexts",
            ROWS,
            _spread,
        ),
        Claim(
            "{name} means              rmse {rmse} (95% {low} to {high}), if exchanged {null}, "
            "p = {p}",
            f"{ROWS}; exchanges of its own",
            _means,
        ),
        Claim(
            "{name} single answers     rmse {rmse} (95% {low} to {high}), if exchanged {null}; "
            "shift {shift}",
            ROWS,
            _single,
        ),
        Claim("{n} {name} answers missing", "a count over the rows", _missing_answers),
        Claim("iterated expectation, {n} parts {how}", "the columns of the rows", _parts),
        Claim("median ratio            {ratio}, {rows} rows of {contexts} contexts", ROWS, _ratio),
        Claim("signed, mean            {gap}", f"{ROWS}; a t test by SciPy", _mean_gap),
        Claim("probabilities of the parts sum to {mass}", ROWS, _mass),
        Claim("exact beliefs, rounded  {ratio}", "the exact numbers of the raw rows", _if_exact),
        Claim("random forest           {ratio}", "none is below 0", _forest),
        Claim(
            "above the forest        {value} (95% {low} to {high})",
            "the difference of two numbers of the JSON",
            _above_forest,
        ),
    ),
)
