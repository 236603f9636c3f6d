"""Sentences of `reveal`, and of the tables of beliefs, distances and biases that it makes.

Facts: a `SimpleNamespace` with `content` (what revealed.json holds), `rows` (beliefs.parquet: one
row per model, context and outcome, probabilities before normalising), `stated` (stated.parquet),
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


def _stated_error(facts, words):
    own = facts.stated[facts.stated["model"] == model_of(facts, words["model"])]
    errors = own["error"].dropna()
    assert int(words["n"].replace(",", "")) == len(errors) > 0
    assert whole_number(words["questions"]) == len(own)
    near(words["mean"], float(errors.mean()))
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
    near(words["mean"], np.mean(list(found.values())))


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


def _sampler(facts, words):
    model = model_of(facts, words["model"])
    told = re.findall(
        r"(\w+) (beyond )?(-?[\d.]+)(?: \((90% interval|tables allow) (\S+) to (\S+?)\))?",
        words["told"],
    )
    assert told
    z, curvature = fitted(facts, model, [name for name, *_ in told])
    errors = dict(zip(z, np.sqrt(np.diag(np.linalg.pinv(curvature))), strict=True))
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
        else:
            assert "sampled" not in set(facts.rows.loc[facts.rows["model"] == model, "source"])


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
            "{model}: Stated error, mean over {n} of {questions}: {mean} ({guess} by guessing).",
            "the rows of stated.parquet",
            _stated_error,
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
            "Stated error: 1 - P(correct letter) among the letters."
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
            "{mean} (the naive reading)",
            "the naive reading in the rows",
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
