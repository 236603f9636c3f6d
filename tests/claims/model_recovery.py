"""Sentences of `confuse`.

Facts: a `SimpleNamespace` with `content` (what the JSON holds), `rows` (a row for each subject, of
all cells, with the scores of every rival) and, for sentences of one criterion or model,
`criterion` and `model`. Winners are named anew from the rows, intervals are those of statsmodels
and of a posterior drawn anew.
"""

from __future__ import annotations

from collections import Counter
from math import isnan
from types import SimpleNamespace

import numpy as np
from scipy.stats import binom
from stated import agrees
from statsmodels.stats.proportion import proportion_confint

from claims import Claim, Explanation, Report

TITLES = {"aic": "AIC", "bic": "BIC", "cv": "cross-validation", "loo": "PSIS-LOO"}
WORDS = ("recoverable", "weak", "not identified")


def winners(f, criterion):
    """Return the winner of every data set by model: its name, "undecided" or "failed"."""
    rivals, found = f.content["models"], {}
    for c, simulated in enumerate(rivals):
        rows = f.rows[f.rows["cell"] == c]
        found[simulated] = []
        for _, data_set in rows.groupby("replicate"):
            scores = [data_set.get(f"{criterion}_{rival}") for rival in rivals]
            totals = [np.nan if s is None else s.sum(skipna=False) for s in scores]
            if any(map(isnan, totals)):
                found[simulated].append("failed")
                continue
            best = max(totals) if criterion in ("cv", "loo") else min(totals)
            near = [r for r, t in zip(rivals, totals, strict=True) if abs(t - best) <= 1e-5]
            found[simulated].append(near[0] if len(near) == 1 else "undecided")
    return found


def shares(f, criterion):
    """Return both matrices of shares, each with its 95% intervals, [2, 3, M, M]."""
    rivals, won = f.content["models"], winners(f, criterion)
    counts = np.array([[won[i].count(j) for j in rivals] for i in rivals])
    n = np.array([len(won[i]) for i in rivals])[:, None]
    value = counts / n
    low, high = proportion_confint(counts, n, method="wilson")
    draws = np.random.default_rng(9).beta(counts + 0.5, n - counts + 0.5, (40_000, *counts.shape))
    draws /= draws.sum(axis=1, keepdims=True)
    ends = np.quantile(draws, [0.025, 0.975], axis=0)
    with np.errstate(invalid="ignore"):
        back = value / value.sum(axis=0)
    ends = np.fmin(ends[0], back), np.fmax(ends[1], back)
    return np.array([[value, low, high], [back, *ends]])


def judged(f):
    """Return the facts behind a verdict, for `claims.verdicts`; intervals are the JSON's."""
    i = f.content["models"].index(f.model)
    own = []
    for name, drawn in zip(("confusion", "inversion"), shares(f, f.criterion), strict=True):
        told = f.content[name][f.criterion][f.model][f.model]
        share = tuple(told[key] for key in ("share", "low", "high"))
        if told["share"] is not None:
            np.testing.assert_allclose(share, drawn[:, i, i], atol=0.02)
            own.append(share)
    n = len(winners(f, f.criterion)[f.model])
    word = f.content["verdicts"][f.criterion][f.model]["verdict"]
    rivals = len(f.content["models"])
    return SimpleNamespace(shares=own, n=n, word=word, rivals=rivals, unit="data set", size=1)


def _verdict(f, words):
    j, least = judged(f), 1 / len(f.content["models"]) + 0.1
    assert words["word"] == j.word
    if j.n < 20:
        assert j.word == "not judged"
        return
    best = [sum(high < limit for limit in (0.75, least)) for _, _, high in j.shares]
    worst = [sum(low < limit for limit in (0.75, least)) for _, low, _ in j.shares]
    if len(j.shares) < 2:  # it was never the best
        best, worst = [2], [2]
    first, last = max(best), max(worst)
    between = f"between {WORDS[first]} and {WORDS[last]}"
    assert j.word == (WORDS[first] if first == last else between)


def _cell(which, simulated=lambda f, words: f.model, fitted=lambda f, words: f.model):
    """Prove "0.85 [0.76, 0.91]": a share of a matrix and its interval."""

    def proof(f, words):
        rivals = f.content["models"]
        i, j = rivals.index(simulated(f, words)), rivals.index(fitted(f, words))
        value, low, high = shares(f, f.criterion)[which][:, i, j]
        told, _, ends = words["share"].rstrip("]").partition(" [")
        assert agrees(told, value)
        for end, own in zip(ends.split(", "), (low, high), strict=True):
            # Quantiles of 4,000 draws have errors of some thousandths.
            assert abs(float(end) - own) < (0.0051 if which == 0 else 0.02)

    return proof


def _taken(f, words):
    assert words["model"] == f.model != words["other"]
    _cell(0, fitted=lambda f, words: words["other"])(f, words)
    i, j = (f.content["models"].index(words[k]) for k in ("model", "other"))
    assert shares(f, f.criterion)[0][1, i, j] > 0.05


def _never(f, words):
    assert not any(f.model in won for won in winners(f, f.criterion).values())


def _counted(what):
    def proof(f, words):
        won = winners(f, f.criterion)[f.model]
        assert (int(words["n"]), int(words["all"])) == (won.count(what), len(won))

    return proof


def _open(f, words):
    least = 1 / len(f.content["models"]) + 0.1
    assert (words["good"], words["weak"]) == ("0.75", f"{least:.2f}")
    inside = [low <= limit <= high for _, low, high in judged(f).shares for limit in (0.75, least)]
    assert any(inside)


def _none_lost(f, words):
    for won in winners(f, f.criterion).values():
        assert len(won) == int(words["n"])
        assert not {"undecided", "failed"} & set(won)


def _rest_on(f, words):
    rivals = f.content["models"]
    poor = ~(f.rows[[f"pareto_k_{r}" for r in rivals]] <= 0.7).all(axis=1)
    sets = poor.groupby([f.rows["cell"], f.rows["replicate"]]).any()
    decided = [w in rivals for won in winners(f, "loo").values() for w in won]
    assert int(words["n"]) == (sets.to_numpy() & np.array(decided)).sum()
    assert (int(words["all"]), words["k"]) == (len(sets), "0.7")


def _title(f, words):
    names = words["models"].replace(" and ", ", ").split(", ")
    assert names == f.content["models"]
    assert words["place"] == f.content["environment"]


def _headed(f, words):
    assert words["place"] == f.content["environment"]
    per_model = {len(won) for won in winners(f, f.content["criteria"][0]).values()}
    assert per_model == {int(words["n"])}
    size = f.rows.groupby(["cell", "replicate"]).size().unique().tolist()
    assert [int(words["subjects"].split(" ")[0])] == size
    assert words["subjects"].endswith("subject" if size == [1] else "subjects")


def _each(f, words):
    _headed(f, {"place": f.content["environment"], **words})


def _attempted(f, words):
    by_criterion = [winners(f, c) for c in f.content["criteria"]]
    lost = sum(
        any(each[model][k] == "failed" for each in by_criterion)
        for model, won in by_criterion[0].items()
        for k in range(len(won))
    )
    total = sum(len(won) for won in by_criterion[0].values())
    assert (int(words["n"]), int(words["failed"])) == (total, lost)


def _note(f, words):
    failed = f.rows[f.rows["status"] == "failed"]
    assert Counter(failed["message"])[words["message"]] == int(words["n"])
    assert int(words["all"]) == len(f.rows)


def _refitted(f, words):
    columns = [name for name in f.rows if name.startswith("refitted_")]
    assert int(words["n"]) == f.rows[columns].sum().sum()
    assert words["k"] == "0.7"


def _told(f, words):
    held = {k: v for own in f.content["truth"].values() for k, v in own.items()}
    told, lapse = words["held"] + words["lapse"], f.content["lapse"]
    assert ("but" in told) == bool(held)
    assert all(f"{k}={v:g}" in told for k, v in held.items())
    assert told.endswith(f"; lapse rate {lapse:g}") if lapse else "lapse" not in told


def _rules(f, words):
    assert tuple(words.values()) == ("0.75", "0.1", "0.05", "20")


WON = "winners named anew from the scores of the rows"


def _missed(f, words):
    """Planted confusions are counted by Wilson's interval of statsmodels."""
    n = int(words["n"])
    assert n == f.content["replicates"]
    counts = np.arange(n + 1)
    low, _ = proportion_confint(counts, n, 0.05, method="wilson")
    if "share" not in words:
        assert not (low > 0.05).any() or binom.pmf(counts, n, 1.0)[low > 0.05].sum() < 0.8
        return
    share, half = (float(words[k].rstrip("%")) / 100 for k in ("share", "half"))
    assert binom.pmf(counts, n, min(share + 0.0006, 1.0))[low > 0.05].sum() >= 0.8
    assert binom.pmf(counts, n, share - 0.0011)[low > 0.05].sum() < 0.8
    more = int(words["more"].replace(",", ""))
    upper, _ = proportion_confint(np.arange(more + 1), more, 0.05, method="wilson")
    assert 0.7 < binom.pmf(np.arange(more + 1), more, half)[upper > 0.05].sum() < 0.92
    assert words["chance"] == "80%"


REPORT = Report(
    "model recovery",
    sources=("validation/recovery/model_recovery.py", "validation/recovery/model_recovery_page.py"),
    sentences=(
        Claim(
            "With {n} data sets of each model, a rival that truly takes at least {share} of them "
            "is named with a chance of {chance}; for one that takes {half} about {more} are "
            "needed.",
            "exact binomial chances; Wilson's interval of statsmodels",
            _missed,
        ),
        Claim(
            "With {n} data sets of each model no confusion, however common, is named.",
            "exact binomial chances; Wilson's interval of statsmodels",
            _missed,
        ),
        Claim("Verdict: {word}.", f"{WON}; the table's limits", _verdict),
        Claim(
            "Its data are best fitted by itself in {share}.",
            f"{WON}; Wilson's interval of statsmodels",
            _cell(0),
        ),
        Claim("It was never the best.", WON, _never),
        Claim(
            "Where it is the best, it is the truth in {share}.",
            f"{WON}; 40,000 draws of the posterior",
            _cell(1),
        ),
        Claim("Data of {model} are taken for {other} in {share}.", WON, _taken),
        Claim(
            "{n} of {all} data sets are explained equally well by the best.",
            WON,
            _counted("undecided"),
        ),
        Claim(
            "One model or several could not be fitted to {n} of {all} data sets.",
            WON,
            _counted("failed"),
        ),
        Claim(
            "Intervals that hold {good} (recoverable) or {weak} (weak) leave the word open.",
            f"{WON}; the intervals",
            _open,
        ),
        Claim("{n} data sets of each model, none undecided, none failed", WON, _none_lost),
        Claim(
            "{n} of {all} data sets rest on a Pareto k above {k}.",
            "the Pareto k of the rows",
            _rest_on,
        ),
        Claim("Does {place} tell {models} apart?", "the design", _title),
        Claim(
            "model recovery in {place}, {n} data sets of {subjects} per model (95% intervals in "
            "brackets)",
            "a count over the rows",
            _headed,
        ),
        Claim("{n} of each model, each of {subjects}", "a count over the rows", _each),
        Claim("{n} data sets attempted, {failed} failed", WON, _attempted),
        Claim("Note: {n} of {all} subjects: {message}", "a count of the messages", _note),
        Claim(
            "{n} sequences with a Pareto k above {k} were predicted by a posterior drawn without "
            "them.",
            "a sum over the rows",
            _refitted,
        ),
        Claim("drawn from the priors{held}{lapse}", "the design", _told),
        Claim(
            "Recoverable: both shares on the diagonals are {share} or more; weak: at least {above} "
            "above chance; where the interval of one holds a limit, the verdict is between two "
            "words. Taken for another: the interval of that share begins above {confused}. At "
            "least {n} data sets are needed.",
            "the limits that the proofs use",
            _rules,
        ),
        Explanation(
            "{mass} intervals in brackets. Data sets without a winner and data sets that one of "
            "the models could not be fitted to stay in the denominators; models are equally "
            "probable beforehand."
        ),
        Explanation(
            "{criterion}: confusion matrix (left, rows sum to 1 but for undecided and failed data "
            "sets) and inversion matrix (right, columns sum to 1). Rows: simulated; columns: best "
            "fit."
        ),
    ),
)
