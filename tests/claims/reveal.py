"""Sentences of `reveal`, and of the tables of beliefs, distances and biases that it makes.

Facts: a `SimpleNamespace` with `content` (what revealed.json holds), `rows` (beliefs.parquet: one
row per model, context and outcome, probabilities before normalising), `stated` (stated.parquet),
`reworded` (reworded.parquet, the same rows in all wordings; None if there was one),
`sent` (by model, in which form contexts and questions really reached it) and, for what the tables
print, `table` (the one that is printed).
"""

from __future__ import annotations

import json
import re

import numpy as np
from scipy.optimize import minimize
from scipy.stats import t

from claims import Claim, Explanation, Report

MARKS = ("first", "middle", "round", "repeat", "heads", "left")
NAMES = ("temperature", *(f"bias_{mark}" for mark in MARKS))
FORMS = {
    "text": "as plain text, without a chat template",
    "template": "through the model's chat template",
    "messages": "as messages, which the interface puts into a form of its own",
}


def near(told, value, digits=3):
    """A number as it is printed, against what it should be."""
    assert abs(float(told) - value) <= 0.5001 * 10.0**-digits + 1e-9, (told, value)


def model_of(facts, name):
    """The model that a short name stands for."""
    found = [
        m for m in facts.content["models"] if m == name or m.rstrip("/").endswith(f"/{name}")
        or (name.endswith("…") and m.startswith(name[:-1])) or m.partition(":")[2] == name
    ]  # fmt: skip
    assert len(found) == 1, (name, facts.content["models"])
    return found[0]


def contexts_of(facts, model):
    """All contexts of a model: scenario, name and rows."""
    own = facts.rows[facts.rows["model"] == model]
    return [(*key, rows) for key, rows in own.groupby(["scenario", "context"], sort=False)]


def is_flagged(rows):
    """Whether the retained mass is unknown or too little, from the raw probabilities."""
    mass = rows["probability"].sum(skipna=False)
    return bool(np.isnan(mass) or mass < rows["threshold"].iloc[0] or mass <= 0)


def manhattan(facts, model, column="probability"):
    """By context that is not flagged (of the naive reading: by any), sum |p - q|."""
    found = {}
    for scenario, name, rows in contexts_of(facts, model):
        q = rows[column].to_numpy(float)
        if column == "naive" or not is_flagged(rows):
            found[scenario, name] = np.abs(rows["truth"].to_numpy(float) - q / q.sum()).sum()
    return found


def t_interval(values):
    """Mean and its 95% interval by the textbook."""
    values = np.asarray(values, dtype=float)
    mean, n = values.mean(), len(values)
    if n < 2:
        return mean, np.nan, np.nan
    half = t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def whole_number(text):
    """Read "1,234 contexts", with an s behind more or less than one."""
    number, noun = text.split(" ")
    n = int(number.replace(",", ""))
    assert noun.endswith("s") == (n != 1)
    return n


def _mean(facts, words):
    near(
        words["mean"],
        t_interval(list(manhattan(facts, model_of(facts, words["model"])).values()))[0],
    )


def _no_distance(facts, words):
    assert not manhattan(facts, model_of(facts, words["model"]))


def _mean_over(facts, words):
    model = model_of(facts, words["model"])
    assert whole_number(words["contexts"]) == len(manhattan(facts, model))
    own = facts.rows[facts.rows["model"] == model]
    assert words["sources"] == ", ".join(sorted(set(own["source"])))


def _interval(facts, words):
    _, low, high = t_interval(list(manhattan(facts, model_of(facts, words["model"])).values()))
    near(words["low"], low)
    near(words["high"], high)


def _one_context(facts, words):
    assert len(manhattan(facts, model_of(facts, words["model"]))) == 1


def _left_out(facts, words):
    contexts = contexts_of(facts, model_of(facts, words["model"]))
    assert whole_number(words["contexts"]) == len(contexts)
    assert int(words["flagged"].replace(",", "")) == sum(is_flagged(r) for *_, r in contexts) > 0


def errors_by_context(own):
    """Mean stated error of each context."""
    found = {}
    for row in own.dropna(subset="error").to_dict("records"):
        found.setdefault((row["scenario"], row["context"]), []).append(row["error"])
    return [sum(several) / len(several) for several in found.values()]


def _stated_interval(facts, words):
    own = facts.stated[facts.stated["model"] == model_of(facts, words["model"])]
    _, low, high = t_interval(errors_by_context(own))
    near(words["low"], low)
    near(words["high"], high)


def _stated_error(facts, words):
    own = facts.stated[facts.stated["model"] == model_of(facts, words["model"])]
    errors = own.dropna(subset="error")
    assert int(words["n"].replace(",", "")) == len(errors) > 0
    assert whole_number(words["questions"]) == len(own)
    values = errors_by_context(own)
    assert whole_number(words["contexts"]) == len(values)
    near(words["mean"], sum(values) / len(values))
    assert float(words["guess"]) == 1 - 1 / 5  # of five letters one is right


def _no_error(facts, words):
    own = facts.stated[facts.stated["model"] == model_of(facts, words["model"])]
    assert whole_number(words["questions"]) == len(own) > 0
    assert own["error"].isna().all()


def deviations(facts, model):
    """Largest deviation of shares from what the mind believes, whole outcomes and naively."""
    whole, naive = [], []
    for _, _, rows in contexts_of(facts, model):
        if not is_flagged(rows):
            q, known = rows["probability"].to_numpy(float), rows["known"].to_numpy(float)
            whole.append(np.abs(q / q.sum() - known).max())
            naive.append(np.abs(rows["naive"].to_numpy(float) - known).max())
    assert whole, "nothing was compared"
    return max(whole), max(naive)


def near_two(told, value):
    """Two significant digits; of what is rounding alone, that it is."""
    assert abs(float(told) - value) <= 0.06 * value or max(float(told), value) < 1e-14


def _off(facts, words):
    near_two(words["whole"], deviations(facts, model_of(facts, words["model"]))[0])


def _naive_off(facts, words):
    near_two(words["naive"], deviations(facts, model_of(facts, words["model"]))[1])


def _read_back(facts, words):
    _off(facts, words)
    _naive_off(facts, words)


def _sent(facts, words):
    told = dict(
        part.split(" were sent ") for part in
        f"{words['what']} were sent {words['how'].removesuffix('.')}".split("; ")
    )  # fmt: skip
    sent = facts.sent[model_of(facts, words["model"])]
    assert told == {what: FORMS[how] for what, how in sent.items()}


def differences(facts, words):
    """Differences of two models in the contexts that neither has flagged."""
    one, other = (manhattan(facts, model_of(facts, words[k])) for k in ("one", "other"))
    return np.array([one[key] - other[key] for key in one if key in other])


def _same(facts, words):
    found = differences(facts, words)
    assert words["contexts"] == _told_contexts(found)
    assert abs(found.mean()) < 1e-6


def _told_contexts(found):
    return f"Manhattan, {len(found):,} context" + ("" if len(found) == 1 else "s")


def _farther(facts, words):
    found = differences(facts, words)
    assert words["contexts"] == _told_contexts(found)
    assert words["way"] == ("farther from" if found.mean() > 0 else "nearer to")
    near(words["by"], abs(found.mean()))
    return t_interval(found)


def _too_few(facts, words):
    _farther(facts, words)
    assert len(differences(facts, words)) == 1


def _sure(facts, words):
    _, low, high = _farther(facts, words)
    near(words["low"], low)
    near(words["high"], high)
    assert low > 0 or high < 0


def _unsure(facts, words):
    _, low, high = _farther(facts, words)
    near(words["low"], low)
    near(words["high"], high)
    assert low <= 0 <= high


def _sampled(facts, words):
    assert (facts.rows["source"] == "sampled").any()


def _listed(facts, words):
    assert (facts.rows["source"] == "top-k").any()


def _not_sampled(facts, words):
    assert (facts.rows["source"] != "sampled").any()


def _crossed(facts, words):
    assert facts.rows["naive"].notna().any()


def _more_flags(facts, words):
    flagged = {
        m: sum(is_flagged(r) for *_, r in contexts_of(facts, m)) for m in facts.content["models"]
    }
    assert int(words["n"].replace(",", "")) == sum(max(0, n - 20) for n in flagged.values())


def _counted(facts, words):
    contexts = contexts_of(facts, model_of(facts, words["model"]))
    assert int(words["n"]) == len(contexts)
    assert int(words["flagged"]) == sum(is_flagged(rows) for *_, rows in contexts)
    assert words["sources"] == ", ".join(sorted({s for *_, r in contexts for s in r["source"]}))


def _asked(facts, words):
    own = facts.stated[facts.stated["model"] == model_of(facts, words["model"])]
    without = own[own["error"].isna()]
    assert int(words["n"]) == len(own)
    assert int(words["known"]) == len(own) - len(without)
    assert words["others"] == ("; the others are flagged" if len(without) else "")
    assert (without["flag"] != "").all()


def _naive_distance(facts, words):
    found = manhattan(facts, model_of(facts, words["model"]), "naive")
    mean, low, high = t_interval(list(found.values()))
    near(words["mean"], mean)
    if len(found) > 1:
        near(words["low"], low)
        near(words["high"], high)


# Columns that a context has in common with the one that lacks the evidence, and by scenario the
# number of the kind whose earlier outcome has no influence, and of the one with an idle fact.
COMMON = {
    "dice": ("dice", "faces"),
    "coins": ("coins", "face", "weight"),
    "choice": ("options",),
    "preference": ("pair", "first", "weight"),
    "counts": ("law", "mean"),
    "linked_coins": ("coins", "face", "weight", "correlation"),
}
IDLE = {name: {1: "earlier outcomes"} for name in ("dice", "coins", "choice", "preference")} | {
    "counts": {1: "earlier outcomes", 3: "idle facts"},
    "linked_coins": {2: "idle facts"},
}


def shifts(facts, model):
    """By scenario and evidence, the shifts of each context without it, and how many have it."""
    told, plain = [], {}
    for scenario, name, rows in contexts_of(facts, model):
        if is_flagged(rows):
            continue
        columns = {k: int(v) for k, v in (part.rsplit(" ", 1) for part in name.split(", "))}
        common = (scenario, *(columns[k] for k in COMMON[scenario]))
        q = rows["probability"].to_numpy(float)
        share = dict(zip(rows["outcome"], q / q.sum(), strict=True))
        if columns["kind"] == 0:
            plain[common] = share
        elif columns["kind"] in IDLE[scenario]:
            fact = columns.get("fact", -1)
            named = str(fact) if fact >= 0 else rows["previous"].iloc[0]
            told.append((IDLE[scenario][columns["kind"]], common, named, share))
    found = {}
    for evidence, common, named, share in told:
        if common in plain and named in share:
            by_plain = found.setdefault((common[0], evidence), {})
            by_plain.setdefault(common, []).append(share[named] - plain[common][named])
    return found


def shift_interval(by_plain):
    """Mean shift over what the evidence is added to, and its interval by the textbook."""
    return t_interval([np.mean(several) for several in by_plain.values()])


def _shift(facts, words):
    by_plain = shifts(facts, model_of(facts, words["model"]))[words["scenario"], words["evidence"]]
    assert whole_number(words["contexts"]) == sum(map(len, by_plain.values()))
    for told, value in zip(
        (words["shift"], words["low"], words["high"]), shift_interval(by_plain), strict=True
    ):
        assert (told.strip("+-") == "nan") == bool(np.isnan(value))
        if not np.isnan(value):
            near(told, value)


def _moved_kinds(facts, words):
    """Those whose interval lies on one side of 0, and of how many, by name with the shift."""
    kinds, moved = 0, {}
    for key, by_plain in shifts(facts, model_of(facts, words["model"])).items():
        mean, low, high = shift_interval(by_plain)
        if len(by_plain) > 1:
            kinds += 1
            if (low > 0 or high < 0) and abs(mean) > 1e-6:
                moved[key] = mean
    assert whole_number(words["kinds"]) == kinds
    return moved


def _moved(facts, words):
    moved = _moved_kinds(facts, words)
    assert int(words["n"]) == len(moved) > 0
    told = re.findall(r"([a-z ]+) in (\w+) \(([+-]\d\.\d{3})\)", words["told"])
    assert {(scenario, evidence.strip()) for evidence, scenario, _ in told} == set(moved)
    for evidence, scenario, shift in told:
        near(shift, moved[scenario, evidence.strip()])


def _unmoved(facts, words):
    assert not _moved_kinds(facts, words)


def wordings_of(facts, model):
    """By context, y and its sampling variance in each wording: the outcome likeliest in truth."""
    own = facts.reworded[facts.reworded["model"] == model]
    found, numbers = {}, set()
    for (scenario, name), rows in own.groupby(["scenario", "context"], sort=False):
        name, _, number = name.partition(", wording ")
        numbers.add(number)
        if is_flagged(rows) or rows["source"].iloc[0] == "top-k":
            continue
        q, p = rows["probability"].to_numpy(float), rows["truth"].to_numpy(float)
        place, n = int(p.argmax()), rows["count"].clip(lower=0).sum()
        share = q[place] / q.sum()
        error = share * (1 - share) / (n - 1) if rows["draws"].iloc[0] else 0.0
        if np.isfinite(error):
            found.setdefault((scenario, name), {})[number] = share - p[place], error
    complete = [own for own in found.values() if len(own) == len(numbers)]
    whole = [[own[k] for k in sorted(numbers)] for own in complete]
    return np.array(whole), len(numbers)


def _wording_variances(facts, words):
    """Components of the crossed design from sums of squares in plain NumPy."""
    table, k = wordings_of(facts, model_of(facts, words["model"]))
    y, error = table[..., 0], table[..., 1]
    n = len(y)
    assert words["size"] == f"{n:,} contexts in {k} wordings"
    down, across, mean = y.mean(axis=1), y.mean(axis=0), y.mean()
    both = ((y - down[:, None] - across[None] + mean) ** 2).sum() / ((n - 1) * (k - 1))
    return [
        max(part, 0.0)
        for part in (
            ((down - mean) ** 2).sum() / (n - 1) - both / k,
            ((across - mean) ** 2).sum() / (k - 1) - both / n,
            both - error.mean(),
            error.mean(),
        )
    ]


def _wordings(facts, words):
    parts = _wording_variances(facts, words)
    for name, part in zip(("context", "wording", "both", "sampling"), parts, strict=True):
        assert abs(float(words[name].removesuffix("%")) - 100 * part / sum(parts)) < 0.06


def _no_variance(facts, words):
    assert max(_wording_variances(facts, words)) < 1e-20


def _few_wordings(facts, words):
    table, _ = wordings_of(facts, model_of(facts, words["model"]))
    assert len(table) < 2


def _only_tables(facts, words):
    own = facts.reworded[facts.reworded["model"] == model_of(facts, words["model"])]
    assert set(own["source"]) == {"top-k"}


def fitted(facts, model, names, rng=None):
    """These parameters by a search of its own for the largest likelihood, and its curvature.

    What was not placed lies on no outcome, or where a random number puts it.
    """
    data = []
    for _, _, rows in contexts_of(facts, model):
        possible = rows["truth"].to_numpy(float) > 0
        own = rows[possible]
        if not is_flagged(rows):
            marks = np.array([[sign == "1" for sign in row] for row in own["marks"]], dtype=float)
            weight = own["count"].to_numpy(float)
            if rows["source"].iloc[0] != "sampled":
                p = rows["probability"].to_numpy(float).copy()
                told = rows["unplaced"].iloc[0]
                for mass, where in json.loads(told) if told and rng is not None else ():
                    k = int(rng.integers(-1, len(where)))
                    p[where[k]] += mass if k >= 0 else 0.0
                p = p[possible]
                weight = p / p.sum()
            data.append((np.log(own["truth"].to_numpy(float)), marks, weight))

    def against(z):
        total = 0.0
        for log_truth, marks, weight in data:
            height = log_truth * np.exp(-z[0]) + marks @ z[1:]
            total -= weight @ (height - np.logaddexp.reduce(height))
        return total

    free = [NAMES.index(name) for name in names]

    def of_free(part):
        z = np.zeros(7)
        z[free] = part
        return against(z)

    found = minimize(of_free, np.zeros(len(free)), method="BFGS", options={"gtol": 1e-6})
    h = 1e-3 * np.eye(len(free))
    curves = [
        [
            (of_free(found.x + a + b) - of_free(found.x + a - b) - of_free(found.x - a + b)
             + of_free(found.x - a - b)) / 4e-6
            for b in h
        ]
        for a in h
    ]  # fmt: skip
    return dict(zip(names, found.x, strict=True)), np.array(curves)


def scatter(facts, model, z):
    """Sum of squared slopes of the divergence by context, for as many contexts as are spare."""
    names, slopes = list(z), []
    for _, _, rows in contexts_of(facts, model):
        if is_flagged(rows):
            continue
        own = rows[rows["truth"] > 0]
        if len(own) < 2:
            continue
        marks = np.array([[sign == "1" for sign in row] for row in own["marks"]], dtype=float)
        log_truth, q = np.log(own["truth"].to_numpy(float)), own["probability"].to_numpy(float)
        full = np.array([z.get(name, 0.0) for name in NAMES])
        height = log_truth * np.exp(-full[0]) + marks @ full[1:]
        p = np.exp(height - np.logaddexp.reduce(height))
        by = np.column_stack([-log_truth * np.exp(-full[0]), marks])
        slopes.append(((q / q.sum() - p) @ by)[[NAMES.index(name) for name in names]])
    slopes, spare = np.array(slopes), len(slopes) - len(names)
    if spare < 1:  # as many parameters as contexts: nothing says how these differ
        return np.full((len(names), len(names)), np.nan)
    return slopes.T @ slopes * len(slopes) / spare


def _sampler(facts, words):
    model = model_of(facts, words["model"])
    told = re.findall(
        r"(\w+) (beyond )?(-?[\d.]+)"
        r"(?: \((90% interval over contexts|90% interval|tables allow) (\S+) to (\S+?)\))?",
        words["told"],
    )
    assert told
    z, curvature = fitted(facts, model, [name for name, *_ in told])
    sources = set(facts.rows.loc[facts.rows["model"] == model, "source"])
    covariance = np.linalg.pinv(curvature)
    if sources == {"exact"}:  # contexts differ, and nothing was drawn
        covariance = covariance @ scatter(facts, model, z) @ covariance
    errors = dict(zip(z, np.sqrt(np.diag(covariance)), strict=True))
    names, rng = list(z), np.random.default_rng(0)
    placed = []
    if any(each[3] == "tables allow" for each in told):
        placed = [fitted(facts, model, names, rng)[0] for _ in range(8)]
    for name, beyond, estimate, kind, low, high in told:
        if beyond:  # a search without bounds goes farther than the printed end
            assert abs(z[name]) > abs(float(estimate)) - 0.01 if name != "temperature" else True
            continue
        if any(each[1] for each in told):
            continue  # the others hang on it
        natural = np.exp if name == "temperature" else float
        if kind == "tables allow":
            assert float(low) <= float(estimate) <= float(high)
            natural_truth = facts.truth.get(name, float(low))
            for value in (natural_truth, *(natural(other[name]) for other in placed)):
                assert float(low) - 2e-3 <= value <= float(high) + 2e-3
            continue
        assert abs(float(estimate) - natural(z[name])) < 2e-3
        if kind:
            half = 1.6449 * errors[name]
            assert abs(float(low) - natural(z[name] - half)) < 5e-3
            assert abs(float(high) - natural(z[name] + half)) < 5e-3
            assert (kind == "90% interval over contexts") == (sources == {"exact"})
        else:
            assert "sampled" not in sources
            if sources == {"exact"} and np.isfinite(
                errors[name]
            ):  # no wider than three decimals tell
                assert 2 * 1.6449 * errors[name] * max(1.0, natural(z[name])) < 2e-3


def _fit_is(facts, words):
    """A search of its own goes as far as it is let, or stops where nothing curves."""
    model = model_of(facts, words["model"])
    assert [row["status"] for row in facts.content["samplers"] if row["model"] == model] == [
        words["status"]
    ]
    row = next(row for row in facts.content["samplers"] if row["model"] == model)
    z, curvature = fitted(facts, model, [n for n in NAMES if row.get(n) is not None])
    assert words["status"] in ("boundary", "flat")
    assert any(abs(value) > 3 for value in z.values()) or (np.diag(curvature) < 1).any()


def _no_sampler(facts, words):
    usable = [
        rows
        for *_, rows in contexts_of(facts, model_of(facts, words["model"]))
        if not is_flagged(rows)
    ]
    assert not usable
    assert "Look at the flags" in words["why"]


def _row(facts, words):
    """The comparison that is printed by scenario."""
    one, other = (model_of(facts, words[k]) for k in ("model", "reference"))
    if words["measure"] == "manhattan":
        tables = [manhattan(facts, model) for model in (one, other)]
    else:
        tables = [
            dict(own.groupby(["scenario", "context"])["error"].mean())
            for own in (facts.stated[facts.stated["model"] == m] for m in (one, other))
        ]
    keys = [k for k in tables[0] if k in tables[1] and words["scenario"] in ("all", k[0])]
    found = np.array([tables[0][k] - tables[1][k] for k in keys])
    found = found[np.isfinite(found)]
    assert int(words["n"]) == len(found)
    mean, low, high = t_interval(found)
    near(words["d"], mean, 4)
    for told, value in ((words["low"], low), (words["high"], high)):
        assert (told.strip("+-") == "nan") == np.isnan(value)
        if not np.isnan(value):
            near(told, value, 4)


# What the tables of the library print.


def _table_left_out(facts, words):
    told = [
        is_flagged(rows) for _, rows in facts.table.groupby(["scenario", "context"], sort=False)
    ]
    assert int(words["n"]) == sum(told)
    assert int(words["total"]) == len(told)


def _table_flagged(facts, words):
    _table_left_out(facts, words)
    flags = facts.table["flag"]
    assert words["flag"] == flags[flags != ""].iloc[0]


def _table_source(facts, words):
    source, n = (words["source"] + words["n"]).split()
    own = facts.table[facts.table["source"] == source]
    masses = own.groupby(["scenario", "context"])["probability"].sum()
    assert int(n) == len(masses)
    median, low, high = re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", words["told"]).groups()
    for told, value in ((median, masses.median()), (low, masses.min()), (high, masses.max())):
        near(told, value)


def _table_size(facts, words):
    assert int(words["n"]) == facts.table.groupby(["scenario", "context"]).ngroups
    assert int(words["outcomes"]) == len(facts.table)


def _flag_little(facts, words):
    masses = facts.table.groupby(["scenario", "context"])["probability"].sum()
    assert any(f"{mass:.3g}" == words["mass"] for mass in masses)
    assert float(words["mass"]) < float(words["threshold"]) == facts.table["threshold"].iloc[0]


def _flag_unknown(facts, words):
    lacking = facts.table.loc[facts.table["probability"].isna(), "outcome"]
    assert set(words["outcomes"].split(", ")) <= set(lacking)


def _stated_table(facts, words):
    values = np.array(facts.errors, dtype=float)
    known = values[np.isfinite(values)]
    assert (int(words["n"]), int(words["total"])) == (len(known), len(values))
    near(words["mean"], known.mean())


RAW = "the probabilities of beliefs.parquet, normalised anew"
REPORT = Report(
    "reveal",
    sources=(
        "validation/chance/revealed.py",
        "validation/chance/revealed_page.py",
        "validation/chance/revealed_further.py",
        "validation/chance/revealed_sentences.py",
        "validation/chance/agreement.py",
        "validation/chance/asked_beliefs.py",
        "validation/chance/chance_items.py",
        "validation/chance/interview.py",
        "validation/chance/stated_answers.py",
        "inference/chance/belief_biases.py",
        "inference/chance/open_beliefs.py",
        "inference/chance/distribution_distance.py",
        "inference/chance/revealed_belief.py",
    ),
    sentences=(
        Explanation(
            "The revealed belief is the probability of each outcome, as a whole string that "
            "nothing makes longer, behind a text about chance that breaks off there; it is set "
            "against the exact probability."
        ),
        Explanation("The stated answer is to a question with five options."),
        Claim("{model}: {what} were sent {how}", "a watch on what was cut into tokens", _sent),
        Claim(
            "{one} is as far from the truth as {other}, on average ({contexts}).",
            f"{RAW}, by context",
            _same,
        ),
        Claim(
            "{one} is {way} the truth than {other} by {by} ({contexts}, too few for an interval).",
            f"{RAW}, by context",
            _too_few,
        ),
        Claim(
            "{one} is {way} the truth than {other} by {by} ({contexts}, 95% interval of the "
            "difference {low} to {high}).",
            f"{RAW}, and Student's interval by the textbook",
            _sure,
        ),
        Claim(
            "{one} is {way} the truth than {other} by {by} ({contexts}, 95% interval of the "
            "difference {low} to {high}), which may be chance.",
            f"{RAW}, and Student's interval by the textbook",
            _unsure,
        ),
        Claim("{model}: Manhattan {mean}.", RAW, _mean),
        Claim("{model}: no distance.", "a count of contexts with enough mass", _no_distance),
        Claim("{model}: Mean over {contexts} ({sources}).", "the same count", _mean_over),
        Claim("{model}: 95% interval {low} to {high}.", "Student's interval by hand", _interval),
        Claim("{model}: One context has no interval of a mean.", "the same count", _one_context),
        Claim(
            "{model}: {flagged} of {contexts} left out, since flagged.",
            "retained mass summed over the rows, against the threshold",
            _left_out,
        ),
        Claim(
            "{model}: Stated error, mean over {contexts}, {n} of {questions} answered: "
            "{mean} ({guess} by guessing).",
            "the rows of stated.parquet",
            _stated_error,
        ),
        Claim(
            "{model}: Of the stated error, 95% interval {low} to {high}.",
            "the rows of stated.parquet, and Student's interval by hand",
            _stated_interval,
        ),
        Claim(
            "{model}: None of {questions} has a stated error.",
            "the rows of stated.parquet",
            _no_error,
        ),
        Claim("{model}, read back: off by {whole}.", "the rows, against what was known", _off),
        Claim(
            "{model}, read back: Largest deviation of a share from the mind's own belief, over the "
            "contexts that are not flagged; {naive} if one takes the tokens of an outcome for the "
            "outcome.",
            "the rows, against what was known",
            _naive_off,
        ),
        Explanation(
            "Outcomes are normalised in each context; the retained mass is what they had together. "
            "Contexts with less of it than the threshold are flagged, and have no distances: "
            "nothing is put in their place."
        ),
        Explanation(
            "Chebyshev max|p - q|, Manhattan sum|p - q|, Kullback-Leibler divergences in nats with "
            "1e-6 added to each probability. Intervals of means are Student's over contexts; "
            "contexts share dice and words, so that they say how much these contexts differ, and "
            "not what other words would bring."
        ),
        Explanation(
            "An unbiased mind has the temperature and the other biases of the belief sampler that "
            "is nearest in the scenario, and not the bias in question; as log-odds a bias is that "
            "of this sampler. The marginal reading, which is the published one, is against the "
            "truth: temperature and other biases count as well."
        ),
        Claim(
            "The probability of an outcome is that of all its spellings, with a space before it "
            "and without.",
            "the sources of the rows",
            _not_sampled,
        ),
        Claim(
            "Sampled: distances of counts are too large by chance; beliefs.parquet and "
            "distances.parquet tell by how much (noise).",
            "the sources of the rows",
            _sampled,
        ),
        Claim(
            "Top-k: what the tables do not list may lie on any outcome that can still be said. "
            "Intervals of single contexts and of biases hold all that is possible; those of mean "
            "distances do not. A reply that ends behind an outcome is taken to be that outcome.",
            "the sources of the rows",
            _listed,
        ),
        Explanation(
            "Stated probability: mean of the five options, each by the probability of its letter. "
            "Stated error: 1 - P(correct letter) among the letters. Intervals of agreement are "
            "bootstrap ones of 95%, over contexts."
        ),
        Claim(
            "{model}: once {evidence} in {scenario} name an outcome, it is believed in {shift} "
            "more ({low} to {high}, {contexts})",
            f"{RAW}, pairs of contexts by their names, and Student's interval by hand",
            _shift,
        ),
        Claim(
            "{model} is moved beyond the 95% interval by {n} of {kinds} of evidence that should "
            "not matter: {told}.",
            f"{RAW}, pairs of contexts by their names, and Student's interval by hand",
            _moved,
        ),
        Claim(
            "{model} is not moved beyond the 95% interval by any of {kinds} of evidence that "
            "should not matter.",
            f"{RAW}, pairs of contexts by their names, and Student's interval by hand",
            _unmoved,
        ),
        Explanation(
            "Evidence that should not matter is an earlier outcome that has no influence, or a "
            "fact that names a number. The shift is the share of the named outcome with it minus "
            "that in the same context without it: above 0 towards what is named, 0 for a mind that "
            "is not moved, whatever else it believes. Intervals are Student's 95% over the "
            "contexts without it, each with all that is added to it."
        ),
        Explanation(
            "Evidence that should not matter: what an outcome is believed to have more once it is "
            "named, with 95% intervals; 0 is none."
        ),
        Explanation(
            "Likeliest outcome: the share of the outcome that is likeliest in truth minus its "
            "truth; above 0 it is believed in too much. Intervals of means in its table stay "
            "between the least and the largest value that there can be."
        ),
        Claim(
            "{model}: of the variance of the belief in the likeliest outcome, {context} is between "
            "contexts, {wording} between wordings in all contexts alike, {both} what a wording "
            "does in one context and not in another, and {sampling} sampling ({size}).",
            "reworded.parquet, sums of squares in plain NumPy",
            _wordings,
        ),
        Claim(
            "{model}: the belief in the likeliest outcome is off by as much in every context and "
            "wording ({size}).",
            "reworded.parquet, sums of squares in plain NumPy",
            _no_variance,
        ),
        Claim(
            "{model}: fewer than two contexts have a belief in every wording, so that nothing is "
            "split.",
            "reworded.parquet, a count of contexts with enough mass in each",
            _few_wordings,
        ),
        Claim(
            "{model}: what wordings move is not split for top-k tables, since what they leave open "
            "is no sampling error.",
            "the sources of the rows",
            _only_tables,
        ),
        Explanation(
            "Wordings: all else on this page is of the first one. The variance of what differs "
            "between contexts and wordings is split as that of a score between models and "
            "wordings (crossed design, expected mean squares, generalised 95% intervals that begin "
            "at 0); with few wordings the intervals are wide. Shares count what is estimated below "
            "0 as 0. Contexts without a belief in every wording are left out, and counted."
        ),
        Explanation(
            "Each wording against the mean of all, over all contexts, with 95% intervals; 0 is "
            "none."
        ),
        Explanation(
            "{model}: contexts whose belief is nearest to the truth, in the middle, and farthest "
            "from it (Manhattan), by scenario."
        ),
        Claim("Lines are 95% intervals of counts.", "the sources of the rows", _sampled),
        Claim("Lines hold all that the tables allow.", "the sources of the rows", _listed),
        Claim(
            "Crosses: the naive reading, by the tokens of an outcome alone.",
            "whether any row has one",
            _crossed,
        ),
        Explanation(
            "Distances from the truth and retained mass by scenario: quartiles, 5% and 95%, and "
            "each context."
        ),
        Explanation(
            "The same outcome asked both ways: true probability against the revealed one and the "
            "stated one; on the dashed line the model is right."
        ),
        Explanation(
            "Stated error against the revealed distance (Manhattan) of the same context, by "
            "scenario; the dashed line is guessing ({guess})."
        ),
        Explanation(
            "Differences from {reference}, paired by context, with 95% intervals; left of the "
            "dashed line the other model has less (of distances: is nearer to the truth)."
        ),
        Explanation(
            "Biases: what marked outcomes are believed to have more than an unbiased mind gives "
            "them, with 95% intervals over contexts; 0 is none. Crosses: the marginal reading, "
            "against the truth."
        ),
        Explanation("{model} minus {reference}, context by context"),
        Claim(
            "Flagged contexts, and {n} more in by_context.csv",
            "retained mass summed over the rows, against the threshold",
            _more_flags,
        ),
        Explanation("{first} named first, {weight} to 1"),
        Claim(
            "{model}: {n} contexts ({sources}), {flagged} flagged",
            "retained mass summed over the rows, against the threshold",
            _counted,
        ),
        Claim(
            "{model}: {known} of {n} questions have a stated error{others}",
            "the rows of stated.parquet",
            _asked,
        ),
        Claim(
            "{model}: by the tokens of outcomes alone, whatever follows them, manhattan would be "
            "{mean} ({low} to {high}), the naive reading",
            "the naive reading in the rows, and Student's interval by hand",
            _naive_distance,
        ),
        Claim(
            "{model}: its own beliefs, read back: off by {whole} at most; by the naive reading, by "
            "{naive}",
            "the rows, against what was known",
            _read_back,
        ),
        Claim(
            "{model}: nearest belief sampler: {told}",
            "a search of its own (SciPy's BFGS) over the rows; the planted parameters for bounds",
            _sampler,
        ),
        Claim(
            "{model}: the fit of the belief sampler is {status}",
            "where a search of its own ends up",
            _fit_is,
        ),
        Claim(
            "{model}: no belief sampler was fitted: {why}",
            "a count of contexts with enough mass",
            _no_sampler,
        ),
        Claim(
            "{model} - {reference}, {scenario}, {measure}: {d} ({low} to {high}, {n} contexts)",
            "rows of beliefs.parquet and stated.parquet, and Student's interval by hand",
            _row,
        ),
        Explanation(
            "Means over contexts with 95% t intervals; flagged contexts have no distances. Natural "
            "logarithms."
        ),
        Claim(
            "{n} of {total} contexts are flagged and left out.",
            "retained mass summed over the rows, against the threshold",
            _table_left_out,
        ),
        Explanation(
            "Bias: against a mind with the same temperature and other biases, but without this "
            "one. Marginal: against the truth, as published."
        ),
        Explanation("Means over contexts with {mass} t intervals over contexts."),
        Explanation(
            "Natural logarithms; {floor} is added to each probability in Kullback-Leibler "
            "divergences."
        ),
        Claim(
            "stated error {mean} over {n} of {total} questions",
            "the errors themselves",
            _stated_table,
        ),
        Claim(
            "{n} of {total} contexts are flagged, the first one: {flag}.",
            "retained mass summed over the rows, against the threshold",
            _table_flagged,
        ),
        Claim("{source}{n} contexts, retained mass {told}", "the rows summed", _table_source),
        Claim("{n} contexts, {outcomes} outcomes", "a count of the rows", _table_size),
        Claim("retained mass {mass} below {threshold}", "the rows summed", _flag_little),
        Claim("no probability of {outcomes}", "the rows without a number", _flag_unknown),
        Explanation("how much more often {what} is said than it comes"),
        Explanation("no answer where {mark} could be told apart"),
    ),
)
