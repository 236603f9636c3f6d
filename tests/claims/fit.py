"""Sentences of `fit`.

Facts: a `SimpleNamespace` with `content` (what fit.json holds), `trials` (the rows fitted, checked)
and, for the sentences that need them, `draws` (of a hierarchical fit: term -> draws on the
unconstrained scale), `again` (simulated subjects, fitted through the public point fit: see
`Again`) and `likelihood` (the model's log-likelihood in plain Python: (theta, rows) -> number).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from claims import Claim, Explanation, Report, selection
from claims.recovery import widths_there, within
from claims.selection import SELECTIONS
from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS

READ = ("ok", "repaired")


@dataclass(frozen=True)
class Again:
    """True and estimated values of subjects who lived the rows again, and their 90% intervals.

    Each by parameter name, on the natural scale, [n]; low and high are the interval's ends.
    """

    true: dict
    estimate: dict
    low: dict
    high: dict


def _near(told, value):
    """Whether a printed number is this one, up to its last digit."""
    digits = len(told.partition(".")[2])
    assert abs(float(told) - value) <= 0.501 * 10.0**-digits, (told, value)


def _pairs(text):
    """Take "3 ok, 2 flat" apart."""
    return {status: int(n) for n, status in (each.split(" ", 1) for each in text.split(", "))}


def _columns(facts):
    options = facts.content["options"]
    return [*(options["unit"] or ["subject"]), *options.get("within", ())]


def _owners(facts):
    """Name the unit of each row, in plain Python."""
    rows = facts.trials[_columns(facts)].to_dict("records")
    return [" | ".join(str(value) for value in row.values()) for row in rows]


def _one(facts):
    return "subject" if _columns(facts) == ["subject"] else "unit"


def _sessions(facts):
    return facts.content["sessions"]


def _usable(facts):
    return [s for s in _sessions(facts) if s["status"] != "failed"]


def _counted(facts, words):
    assert int(words["n"]) == len(set(_owners(facts))) == len(_sessions(facts))
    _statuses(facts, words)


def _statuses(facts, words):
    assert _pairs(words["counts"]) == dict(Counter(s["status"] for s in _sessions(facts)))


def _counted_units(facts, words):
    assert words["columns"].split(" and ") == _columns(facts) != ["subject"]
    _counted(facts, words)


def _alone(facts, words):
    assert len(set(_owners(facts))) == len(_sessions(facts)) == 1
    _statuses(facts, words)


def _one_mind(facts, words):
    assert facts.content["options"]["pooled"]
    assert len(_sessions(facts)) == 1
    _statuses(facts, words)


def _rank(n):
    """The order statistic below which the median lies in at most 5%, by counting subsets."""
    k = 0
    while sum(math.comb(n, j) for j in range(k + 1)) / 2**n < 0.05:
        k += 1
    return max(k, 1)


def _support(name, content):
    if name == "lapse":
        return "logit", 0.0, 1.0
    support = AGENTS[content["model"]].parameters[name].support
    return support.kind, support.lower, support.upper


def _natural(z, kind, lower, upper):
    if kind == "identity":
        return z
    return np.exp(z) + lower if kind == "log" else lower + (upper - lower) * expit(z)


def _real(x, kind, lower, upper):
    x = np.asarray(x, dtype=float)
    if kind == "identity":
        return x
    with np.errstate(divide="ignore"):
        return np.log(x - lower) if kind == "log" else logit((x - lower) / (upper - lower))


def _median(facts, words):
    assert words["one"] == _one(facts)
    values = sorted(s["estimates"][words["name"]] for s in _usable(facts))
    assert len(values) > 1
    _near(words["estimate"], float(np.median(values)))
    k = _rank(len(values))
    _near(words["low"], values[k - 1])
    _near(words["high"], values[len(values) - k])


def _the_one(facts, words):
    assert words["one"] == _one(facts)
    (session,) = _usable(facts)
    _near(words["estimate"], session["estimates"][words["name"]])
    for end, value in zip(("low", "high"), session["intervals"][words["name"]], strict=True):
        _near(words[end], value)


def _nobody(facts, words):
    assert words["one"] == _one(facts)
    assert not _usable(facts)


def _interval(facts, words, draws):
    _near(words["estimate"], float(np.median(draws)))
    for end, share in (("low", 0.05), ("high", 0.95)):
        _near(words[end], float(np.quantile(draws, share)))


def _group_mean(facts, words):
    where, _, estimate = f"{words['which']} {words['estimate']}".rpartition(" ")
    assert ("at reference" in where) == bool(facts.content["options"]["formula"])
    draws = _natural(facts.draws[words["name"]], *_support(words["name"], facts.content))
    _interval(facts, words | {"estimate": estimate}, draws)


def _effect(facts, words):
    draws = facts.draws[words["name"]]
    _near(words["estimate"], float(draws.mean()))
    low, high = np.quantile(draws, [0.05, 0.95])
    _near(words["low"], low)
    _near(words["high"], high)
    assert words["clear"] == ("includes" if low <= 0 <= high else "excludes")


def _none_differ(facts, words):
    """Of the Bayes factor: how much more frequent draws near 0 are than under the prior."""
    draws = facts.draws[f"sd({words['name']})"]
    bound = float(np.quantile(draws, 0.95))
    assert abs(float(words["bound"]) / bound - 1) < 0.06  # two digits
    moved = words["name"].partition(" ~ ")[0]
    scale = AGENTS[facts.content["model"]].parameters[moved].group_sd
    edge = float(np.quantile(draws, 0.25))
    before = 2 * norm.cdf(edge, scale=scale) - 1
    factor = float(words["factor"].removeprefix("over "))
    assert factor >= 10
    # A kernel and a histogram differ by smoothing.
    if words["factor"].startswith("over"):
        assert 0.25 / before > 0.5 * factor
    else:
        assert 0.5 < factor / (0.25 / before) < 2.0


def _levels(facts, words):
    """Of the Bayes factor: how much rarer draws near 0 are than under the prior."""
    draws = facts.draws[words["name"]]
    _near(words["estimate"], float(draws.mean()))
    _near(words["low"], float(np.quantile(draws, 0.05)))
    _near(words["high"], float(np.quantile(draws, 0.95)))
    name = words["name"].removeprefix("sd(").partition(" | ")[0].partition(" ~ ")[0]
    scale = AGENTS[facts.content["model"]].parameters[name].group_sd
    edge = min(0.15 * scale, float(np.quantile(draws, 0.02)))
    before = 2 * norm.cdf(edge, scale=scale) - 1
    after = (draws <= edge).mean()
    factor = float(words["factor"].removeprefix("over "))
    # A kernel and a histogram differ by smoothing; draws are few where the factor is large.
    if after * len(draws) >= 20:
        assert 0.5 < factor / (before / after) < 2.0
    else:
        assert factor > 0.3 * before / ((after * len(draws) + 3 * 20**0.5) / len(draws))
    who = words["who"]
    assert who == ("levels" if " | " in words["name"] else "subjects")
    word = f"whether the {who} differ stays open"
    if factor >= 10:
        word = f"the {who} differ"
    elif factor <= 0.1:
        word = f"the {who} are alike"
    assert words["verdict"] == word


def _not_converged(facts, words):
    assert facts.content["verdict"] == "not converged"
    table = facts.content["sampling"].values()
    short = [
        row
        for row in table
        if not row["r_hat"] <= 1.01 or row["ess_bulk"] < 400 or row["ess_tail"] < 400
    ]
    assert short or facts.content["divergences"] > 0


def _gaps(facts, words):
    outcomes = Counter(facts.trials["outcome"])
    lost = {name: n for name, n in outcomes.items() if name not in READ}
    n, total = sum(lost.values()), len(facts.trials)
    assert (int(words["n"]), int(words["total"])) == (n, total)
    assert _pairs(words["each"]) == lost
    low, high = proportion_confint(n, total, method="wilson")
    for name, value in (("share", n / total), ("low", low), ("high", high)):
        _near(words[name].removesuffix("%"), 100 * value)


def _bounds(facts, words):
    read = facts.trials["outcome"].isin(READ)
    owners = np.array(_owners(facts))
    lacking = set(owners[~read.to_numpy()])
    rows = {row["subject"]: row for row in facts.content["bounds"]}
    assert set(rows) == lacking
    lacking -= _unheard(facts)
    rows = {name: row for name, row in rows.items() if name in lacking}
    assert int(words["n"]) == len(lacking)
    assert words["whose"] == _one(facts) + "s" * (len(lacking) > 1)
    told = dict(each.split(" ", 1) for each in words["ends"].split(", "))
    assert list(told) == list(facts.content["group"])
    for name, ends in told.items():
        low, high = ends.split(" to ")
        _near(low, float(np.median([row[f"{name}_lowest"] for row in rows.values()])))
        _near(high, float(np.median([row[f"{name}_highest"] for row in rows.values()])))
    for session in _sessions(facts):
        if session["session"] in lacking and session["status"] != "failed":
            for name in told:  # what is estimated without the answers is one of the possible ends
                row = rows[session["session"]]
                ends = row[f"{name}_lowest"], row[f"{name}_highest"]
                assert ends[0] - 1e-6 <= session["estimates"][name] <= ends[1] + 1e-6


def _numbers_given(facts, words):
    assert ENVIRONMENTS[facts.content["environment"]].given != "action"


def _criteria(facts):
    """AIC and BIC of each subject, the model's by a maximum of a plain-Python likelihood."""
    model = facts.content["model"]
    names = list(facts.content["group"])
    owners = _owners(facts)
    found = {model: [], "random_responder": []}
    for owner in dict.fromkeys(owners):
        mine = facts.trials[[o == owner for o in owners]]
        rows = mine[mine["outcome"].isin(READ)].to_dict("records")
        n = len(rows)
        actions = facts.n_actions
        found["random_responder"].append((-n * math.log(actions), 0, n))
        held = facts.content["options"]["fixed"]

        def minus(z, rows=rows, held=held):
            theta = {k: float(_natural(v, *_support(k, facts.content)))
                     for k, v in zip(names, z, strict=True)}  # fmt: skip
            value = facts.likelihood(theta | held, rows)
            return -value if math.isfinite(value) else 1e10

        parameters = AGENTS[model].parameters
        centre = np.array([parameters[name].mean for name in names])
        spread = np.array([parameters[name].sd for name in names])
        rng = np.random.default_rng(0)
        starts = [centre, *(centre + 1.5 * spread * rng.standard_normal((4, len(names))))]
        bounds = list(zip(centre - 10 * spread, centre + 10 * spread, strict=True))
        best = min(minimize(minus, s, method="L-BFGS-B", bounds=bounds).fun for s in starts)
        found[model].append((-best, len(names), n))
    aic = {m: [2 * k - 2 * l for l, k, _ in v] for m, v in found.items()}  # noqa: E741
    bic = {m: [k * math.log(max(n, 1)) - 2 * l for l, k, n in v] for m, v in found.items()}  # noqa: E741
    return aic, bic


def _both(facts, words):
    _preferred(facts, words | {"aic": words["best"], "bic": words["best"]})


def _preferred(facts, words):
    aic, bic = _criteria(facts)
    assert set(words["names"].split(", ")) == set(aic)
    for name, table in (("aic", aic), ("bic", bic)):
        total = {model: sum(values) for model, values in table.items()}
        assert words[name] == min(total, key=lambda m: total[m])


def _chance(facts, words):
    _, bic = _criteria(facts)
    rows = list(zip(bic[facts.content["model"]], bic["random_responder"], strict=True))
    assert int(words["of"]) == len(rows)
    assert words["one"] == _one(facts)
    # Optimisers agree to about a thousandth.
    surely = sum(chance < own - 0.01 for own, chance in rows)
    perhaps = sum(chance < own + 0.01 for own, chance in rows)
    assert surely <= int(words["n"]) <= perhaps


def _correlated(facts, words):
    one = words["one"]
    assert one == _one(facts)
    read = facts.trials["outcome"].isin(READ).to_numpy()
    counts = Counter(np.array(_owners(facts))[read])
    per = [counts[owner] for owner in dict.fromkeys(_owners(facts))]
    told = words["trials"].split(" to ")
    assert [int(n) for n in told] == sorted({min(per), max(per)})
    assert int(words["minds"]) == facts.content["simulated"]["minds"]
    each = [part.rsplit(" (", 1) for part in words["each"].removesuffix(")").split("), ")]
    assert [text.split(" r = ")[0] for text, _ in each] == list(facts.content["support"])
    for text, word in each:
        name, r = text.split(" r = ")
        assert facts.content["support"][name]["verdict"] == word
        _recovered(facts, name, r, word)


def _recovered(facts, name, r, word):
    """Compare with the simulation of the test's own: 4 standard errors of both, by resampling."""
    true, estimate = facts.again.true[name], facts.again.estimate[name]
    rng = np.random.default_rng(0)
    n = len(true)
    resampled = [np.corrcoef(true[i], estimate[i])[0, 1] for i in rng.integers(0, n, (300, n))]
    minds = facts.content["simulated"]["minds"]
    error = np.std(resampled) * math.sqrt(1 + n / minds)
    assert abs(float(r) - np.corrcoef(true, estimate)[0, 1]) < 4 * error + 0.005
    if word == "recoverable":
        assert float(r) >= 0.795
    elif word == "not identified":
        assert float(r) < 0.505
    elif word == "weak":
        assert float(r) >= 0.495
    elif word == "not judged":
        assert minds < 10
    else:
        assert word.startswith("between")


def _finding(facts, words):
    found = facts.content["support"][words["name"]]
    assert words["verdict"] == found["verdict"]
    _recovered(facts, words["name"], words["r"], words["verdict"])
    low, high = facts.again.low[words["name"]], facts.again.high[words["name"]]
    true = facts.again.true[words["name"]]
    held, n = ((low <= true) & (true <= high)).mean(), len(true)
    minds = facts.content["simulated"]["minds"]
    error = math.sqrt(max(held * (1 - held), 0.05) * (1 / n + 1 / minds))
    assert abs(float(words["share"].removesuffix("%")) / 100 - held) < 4 * error + 0.005


def _unread(facts, words):
    parameters = AGENTS[facts.content["model"]].parameters
    name = words["told"].partition(" ")[0]
    sessions = facts.content["sessions"]
    estimates = np.array([one["estimates"][name] for one in sessions], dtype=float)
    _, there = within(words["told"], estimates)
    assert (int(words["n"]), int(words["of"])) == (there.sum(), len(estimates))
    named = words["names"].split(" and ")[0].split(", ")
    assert named == [str(s["session"]) for s, here in zip(sessions, there, strict=True) if here][:5]
    again = [getattr(facts.again, part)[name] for part in ("true", "low", "high")]
    width = widths_there(words["told"], parameters, *again)
    told = float(words["width"].removesuffix("%")) / 100
    minds = facts.content["simulated"]["minds"] * max(len(width), 1) / len(again[0])
    error = 0.15 * math.sqrt(1 / max(len(width), 1) + 1 / max(minds, 1))
    assert len(width) < 5 or abs(told - width.mean()) < 4 * error + 0.005


def _of_the_group(facts, words):
    """Minds of that law, fitted, have estimates of the same mean and spread as the data's."""
    content = facts.content
    assert content["simulated"]["law"] == "fitted"
    assert len(_usable(facts)) >= 5
    if content["method"] == "hierarchical":
        for name, found in content["support"].items():
            assert abs(found["mean"] - facts.draws[name].mean()) < 3 * facts.draws[name].std()
        return
    if content["method"] != "map":
        return  # estimates of maximum likelihood run away, and have no moments to compare
    for name in content["support"]:
        kind = _support(name, content)
        z = _real([s["estimates"][name] for s in _usable(facts)], *kind)
        again = _real(facts.again.estimate[name], *kind)
        share = 1 / len(z) + 1 / len(again)
        assert abs(again.mean() - z.mean()) < 4 * math.sqrt(share) * max(z.std(), again.std())
        # The error of a normal sample's log sd is 1 / sqrt(2 n).
        assert abs(math.log(again.std() / z.std())) < 4 * math.sqrt(share / 2)


def _of_the_prior(facts, words):
    assert words["least"] == "5"
    assert len(_usable(facts)) < 5
    assert words["one"] == _one(facts)
    for name, found in facts.content["support"].items():
        parameter = AGENTS[facts.content["model"]].parameters[name]
        assert (found["mean"], found["sd"]) == (parameter.mean, parameter.sd)


def _same_rows(facts, words):
    """That their rows are those is what `again` is made of: `_correlated` compares."""
    assert not ENVIRONMENTS[facts.content["environment"]].ends_early


def _same_sessions(facts, words):
    assert ENVIRONMENTS[facts.content["environment"]]().ends_early


def _same_way(facts, words):
    assert words["method"] == facts.content["method"]
    assert words["one"] == _one(facts)


def _alone_in_group(facts, words):
    assert facts.content["method"] == "hierarchical"


def _sd_of_points(facts, words):
    place = ENVIRONMENTS[facts.content["environment"]]()
    assert float(words["sd"]) == place.settings["sd"]
    told = "stand in the rows" in words["means"]
    columns = {"horizon": "true_mean_0", "restless_bandit": "mean_0"}
    assert told == (columns[place.name] in facts.trials)


def _better_wins(facts, words):
    place = ENVIRONMENTS[facts.content["environment"]]()
    assert (float(words["high"]), float(words["low"])) == place.win_probability
    assert (words["told"] == "as the rows tell them apart") == ("better" in facts.trials)


def _walks(facts, words):
    settings = ENVIRONMENTS["two_step"]().settings
    assert [float(words["low"]), float(words["high"])] == settings["rates"]
    assert float(words["drift"]) == settings["drift"]


def _maxima(facts, words):
    told = [int(n) for n in words["most"].split(", ")]
    assert told == ENVIRONMENTS["balloon_risk"]().settings["maxima"]


def _verdicts(facts, wanted):
    return [name for name, s in facts.content["support"].items() if wanted(s["verdict"])]


def _sure(word):
    return word == "recoverable"


def _open(word):
    return "recoverable" in word and not _sure(word)


def _not_to_read(facts, words):
    assert words["one"] == _one(facts)
    unfit = _verdicts(facts, lambda w: not (_sure(w) or _open(w) or w == "not judged"))
    assert words["names"].split(", ") == unfit


def _unsettled(facts, words):
    assert words["one"] == _one(facts)
    assert int(words["minds"]) == facts.content["simulated"]["minds"]
    assert words["names"].split(", ") == _verdicts(facts, _open)


def _unjudged(facts, words):
    assert words["names"].split(", ") == _verdicts(facts, lambda w: w == "not judged")


def _to_read(facts, words):
    assert words["one"] == _one(facts)
    assert _verdicts(facts, _sure) == list(facts.content["support"])


def _by_map(facts, words):
    assert facts.content["method"] == "map"


def _reliable(facts, words):
    assert words["one"] == _one(facts)
    told = [part.rsplit(" (", 1) for part in words["each"].removesuffix(")").split("), ")]
    for text, word in told:
        name, share = text.split(" ")
        kind = _support(name, facts.content)
        sessions = _usable(facts)
        z = _real([s["estimates"][name] for s in sessions], *kind)
        ends = _real([s["intervals"][name] for s in sessions], *kind)
        error = (ends[:, 1] - ends[:, 0]) / 3.289707253902945
        known = np.isfinite(z) & np.isfinite(error)
        if known.sum() < 3:
            assert share == "nan"
            assert word == "cannot be computed"
            continue
        spread, noise = np.var(z[known], ddof=1), np.mean(error[known] ** 2)
        value = max(1 - noise / spread, 0.0) if spread > 0 else 0.0
        if facts.content["method"] != "mle" and spread > 0:
            value = spread / (spread + noise)
        _near(share, value)
        if abs(value - 0.8) > 0.005 and abs(value - 0.5) > 0.005:
            assert word == (
                "fit to compare individuals"
                if value > 0.8
                else "fit to compare groups, not individuals"
                if value > 0.5
                else "mostly noise: not fit for individual differences"
            )


COUNT = "a count over the rows and over the sessions of the JSON"
RANKS = "order statistics of the JSON's estimates, their ranks from counted subsets"
DRAWS = "quantiles of the posterior draws, mapped by SciPy"
CRITERIA = "a plain-Python likelihood, maximised by SciPy"
AGAIN = "step loop over the same rows, public point fit, NumPy's correlation, within 4 errors"
WORDS = "the verdicts of the JSON"
SETTINGS = "the experiment's settings and the columns of the rows"
COMPARED = (
    "Differences in elpd to the best model, with 2 standard errors; and what 100 simulated minds "
    "of each model (rows), who lived these rows again, are taken for by BIC, one by one and as "
    "data sets of this size."
)
ABOUT_ELPD = (
    "elpd: sum over subjects of the log probability of a subject's answers given the other "
    "subjects, with its parameters integrated out. Weight: in the mixture of models that predicts "
    "best (stacking). Exceedance: protected probability of being the most frequent model among "
    "subjects. Of few subjects, and of differences below 4, standard errors say too little."
)
BY_SUBJECT = "the JSON's elpd of each subject: sums, paired errors, mixtures by iteration"
PANELS = "the panels of the JSON, whose means are counted anew in tests/data/test_predictive.py"
DIFFERENCES = "Contrasts with 90% intervals; shaded, what counts as no difference."
ABOUT_CONTRASTS = (
    "A contrast is of the group's typical member, one without deviations of its own, averaged over "
    "the subjects as they are in all other columns. Direction: share of the posterior on its side "
    "of 0. No difference: a tenth of the spread of the model's prior, or as told by --rope."
)
CHECKED = (
    "Predictive checks: lines and points are means of the data; shaded are the middle 90% of "
    "sessions simulated from the fit, with the same trials and subjects."
)
ABOUT_P = (
    "The discrepancy of a panel is the squared Mahalanobis distance of its means from those of the "
    "replicates; p is the share of replicates at least as far off "
    "as the data. It is no share of false alarms: the fit has seen the data, so that true models "
    "come out below .05 less often than 5% of the time."
)
STATUSES = (
    "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data ask for "
    "an infinite value; failed, no trustworthy estimate."
)


def _selected(facts):
    """Name the subject of each row that the model is fitted to, in plain Python."""
    column, value, _ = SELECTIONS[facts.content["model"]]
    everything = facts.content["options"]["all_trials"]
    rows = facts.whole[["subject", column]].to_dict("records")
    return [row["subject"] for row in rows if everything or row[column] == value]


def _trials_fitted(facts, words):
    assert int(words["n"]) == len(_selected(facts))
    assert int(words["of"]) == len(facts.whole)
    assert sum(session["trials"] for session in _sessions(facts)) == len(_selected(facts))


def _without(facts, words):
    there = {str(subject) for subject in _selected(facts)}
    everybody = {str(subject) for subject in facts.whole["subject"]}
    assert set(words["names"].split(", ")) == everybody - there != set()
    assert {session["session"] for session in _sessions(facts)} == there


def _tried(facts, words):
    """Each round is told as it begins; what came of the last is what the fit ended in."""
    rounds = words["tried"].split(" | ")
    begun = [line.partition(": ")[2] for line in facts.lines if " at most: " in line]
    assert [one.partition(": ")[0] for one in rounds] == begun
    assert rounds[-1].partition(": ")[2] == "; ".join(facts.reasons)


def _smaller_steps(facts, words):
    assert facts.content["divergences"] > 0
    begun = [line for line in facts.lines if " at most: " in line]
    assert float(words["rate"]) == max(float(line.split()[-1]) for line in begun)


def _quoted(facts, words):
    """The draws' quantiles, to the last digit quoted, which is worth two errors of the mean."""
    draws = facts.draws[words["name"]]
    low, high = words["interval"].strip("[]").split(", ")
    _near(words["mean"], float(draws.mean()))
    _near(low, float(np.quantile(draws, 0.05)))
    _near(high, float(np.quantile(draws, 0.95)))
    digits = len(words["mean"].partition(".")[2])
    independent = float(draws.std()) / len(draws) ** 0.5  # draws that follow each other have more
    assert digits == 0 or 10.0**-digits >= 2 * independent
    _direction(words["pd"], draws)


def _contrast(facts, words):
    """Of the group's typical member, by hand: a column of two values, formulas of one column."""
    name = words["name"]
    parameter, _, rest = name.partition(": ")
    draws = facts.contrasts[name]
    low, high = words["interval"].strip("[]").split(", ")
    _near(words["mean"], float(draws.mean()))
    _near(low, float(np.quantile(draws, 0.05)))
    _near(high, float(np.quantile(draws, 0.95)))
    _direction(words["pd"], draws)
    column = rest.split(" ")[0]
    within = column in facts.content["options"]["within"]
    assert words["kind"] == ("within" if within else "between")
    own = AGENTS[facts.content["model"]].parameters[parameter]
    kind = _support(parameter, facts.content)
    ends = [_natural(own.mean + sign * own.sd, *kind) for sign in (-1, 1)]
    half = facts.content["options"].get("rope", {}).get(parameter, 0.05 * (ends[1] - ends[0]))
    _near(words["rope"], half)
    share = (np.abs(draws) <= half).mean()
    assert abs(float(words["share"].removesuffix("%")) / 100 - share) < 0.0051


def _contrast_judged(facts, words):
    whole = f"{words['name']}: {words['verdict']}"  # a contrast's name has a colon itself
    row = next(r for r in facts.content["contrasts"] if whole.startswith(r["name"] + ": "))
    verdict = whole.removeprefix(row["name"] + ": ")
    draws = facts.contrasts[row["name"]]
    low, high = np.quantile(draws, [0.05, 0.95])
    outside = low > row["rope"] or high < -row["rope"]
    inside = low >= -row["rope"] and high <= row["rope"]
    told = {
        "differs": ("outside of", outside),
        "no difference": ("within", inside),
        "open": ("partly within", not (outside or inside)),
    }
    where, holds = told[verdict]
    assert holds
    assert words["where"] == where


def _rows_of_subjects(facts, words):
    within = facts.content["options"]["within"]
    assert words["columns"].split(" and ") == within
    whose = facts.content["options"]["unit"] or ["subject"]
    assert int(words["n"]) == len(facts.trials[whose].drop_duplicates())


def _crossed_factor(facts, words):
    assert words["factor"] in facts.content["options"]["crossed"]
    assert int(words["n"]) == facts.trials[words["factor"]].nunique()


def _compared_without(facts, words):
    assert words["what"] == "crossed factors"
    assert facts.content["options"]["crossed"]


def _compared_with(facts, words):
    options = facts.content["options"]
    more = ["correlated parameters"] if options["correlated"] else []
    assert words["what"] == " and ".join(["; ".join(options["formula"]), *more])


def _lacks(facts, words):
    moved = [text.split("~")[0].strip() for text in words["formulas"].split("; ")]
    assert not set(moved) & set(AGENTS[words["name"]].parameters.names)
    assert set(words["formulas"].split("; ")) <= set(facts.content["options"]["formula"])


def _direction(told, draws):
    """The share of draws on one side of 0, with no digit that so many draws do not have."""
    direction = max((draws > 0).mean(), (draws <= 0).mean())
    sign, number = told.split(" ")
    digits = len(number) - 1
    if sign == ">":
        assert direction > float(number) == 1 - 10.0**-digits
    else:
        assert abs(float(number) - direction) <= 0.501 * 10.0**-digits
    independent = (direction * (1 - direction) / len(draws)) ** 0.5
    assert digits == 1 or 10.0**-digits >= 2 * independent


def _panels(facts):
    return facts.content["predictive"]["panels"]


def _missed(facts):
    return [panel for panel in _panels(facts) if panel["p"] <= 0.05]


def _unlike(facts, words):
    assert int(words["n"]) == facts.content["predictive"]["replicates"]
    assert int(words["k"]) == len(_panels(facts))
    assert float(words["limit"]) == 0.05
    told = [f"{panel['title']} (p {panel['p']:.3f})" for panel in _missed(facts)]
    assert told
    assert words["each"] == ", ".join(told)


def _alike(facts, words):
    assert int(words["n"]) == facts.content["predictive"]["replicates"]
    assert int(words["k"]) == len(_panels(facts))
    assert not _missed(facts)
    _near(words["p"], min(panel["p"] for panel in _panels(facts)))


def _from_estimates(facts, words):
    assert facts.content["method"] == "mle"


def _looked_at(facts, words):
    assert words["one"] == _one(facts)
    rows = Counter(
        owner
        for owner, outcome in zip(_owners(facts), facts.trials["outcome"], strict=True)
        if outcome in READ
    )
    usable = {s["session"] for s in _usable(facts)} & set(rows)
    assert int(words["of"]) == len(_sessions(facts))
    assert int(words["n"]) <= len(usable)


def _unheard(facts):
    """Return who has rows and no answer."""
    read = facts.trials["outcome"].isin(READ).to_numpy()
    owners = np.array(_owners(facts))
    return set(owners) - set(owners[read])


def _passed_over(facts, words):
    assert int(words["n"]) == len(_unheard(facts)) > 0


def _passed_over_unfit(facts, words):
    failed = {s["session"] for s in facts.content["sessions"] if s["status"] == "failed"}
    assert int(words["n"]) == len(failed - _unheard(facts)) > 0


def _passed_over_many(facts, words):
    found = facts.content["predictive"]
    read = int(facts.trials["outcome"].isin(READ).sum())
    assert read > int(words["n"].replace(",", ""))
    assert found["subjects"] < found["of"] - len(_unheard(facts))


def _said_nothing(facts, words):
    silent = _unheard(facts)
    some = words["some"].split(" and ")[0].split(", ")
    assert set(some) <= silent
    assert words["n"].split()[0] == str(len(silent))


def _far_off(facts, words):
    (panel,) = [panel for panel in _missed(facts) if panel["title"] == words["name"]]
    _near(words["own"], panel["discrepancy"])
    _near(words["usual"], panel["usual"])
    _near(words["p"], panel["p"])
    assert panel["discrepancy"] > panel["usual"]


def _elpd(facts):
    """Elpd of the subjects by model, the best model first."""
    rows = facts.content["rivals"]["by_subject"]
    names = [rival["name"] for rival in facts.content["rivals"]["rivals"]]
    found = {name: np.array([row[name] for row in rows]) for name in names}
    assert names == sorted(names, key=lambda name: -found[name].sum())
    return found


def _left_out(facts, words):
    assert facts.content["rivals"]["left_out"][words["name"]] == words["why"]
    assert words["name"] not in _elpd(facts)


def _nothing_left(facts, words):
    assert len(_elpd(facts)) == 1


def _best_predicts(facts, words):
    elpd = _elpd(facts)
    (best, own), (second, other) = list(elpd.items())[:2]
    assert (words["best"], words["second"]) == (best, second)
    away = own - other
    assert words["n"].split()[0].replace(",", "") == str(len(away))
    error = float(np.std(away, ddof=1)) * len(away) ** 0.5
    _near(words["ahead"], float(away.sum()))
    _near(words["error"], error)
    clear = away.sum() > max(2 * error, 4)
    assert words["verdict"] == ("a clear difference" if clear else "no clear difference")


def _mixture(facts, words):
    elpd = np.column_stack(list(_elpd(facts).values()))
    density = np.exp(elpd - elpd.max(axis=1, keepdims=True))
    weights = np.full(density.shape[1], 1 / density.shape[1])
    for _ in range(50_000):  # expectation and maximisation of the mixture's shares
        own = density * weights
        weights = (own / own.sum(axis=1, keepdims=True)).mean(axis=0)
    told = [each.rsplit(" ", 1) for each in words["weights"].split(", ")]
    assert [name for name, _ in told] == list(_elpd(facts))
    for (_, share), weight in zip(told, weights, strict=True):
        assert abs(float(share) - weight) < 0.011
    rivals = facts.content["rivals"]["rivals"]
    most = [f"{r['name']} {r['exceedance']:.2f}" for r in rivals]
    assert words["most"] == ", ".join(most)
    assert abs(sum(r["exceedance"] for r in rivals) - 1) < 1e-6


def _made_anew(facts, words):
    rivals = facts.content["rivals"]["rivals"]
    n = sum(r["refitted"] for r in rivals)
    assert words["n"] == f"{n} prediction{'s' * (n > 1)}"
    assert n > 0
    assert int(words["poor"]) == sum(r["unreliable"] for r in rivals)


def _told_apart(facts, words):
    found = facts.content["rivals"]
    own = [f"{each['name']} {each['together'][each['name']]:.0%}" for each in found["apart"]]
    assert words["own"] == ", ".join(own)
    assert words["n"].split()[0].replace(",", "") == str(len(found["by_subject"]))
    assert int(words["minds"]) == found["minds"]
    for each in found["apart"]:
        assert abs(sum(each["single"].values()) - 1) < 1e-6


REPORT = Report(
    "fit",
    sources=(
        "validation/data/fit.py",
        "validation/data/fit_page.py",
        "validation/data/group_fit.py",
        "inference/groups/contrasts.py",
        "validation/data/support.py",
        "validation/data/predictive.py",
        "validation/data/predictive_page.py",
        "validation/data/rivals.py",
        "validation/data/rivals_page.py",
        "validation/data/sampling_page.py",
        "inference/posteriors/apa.py",
    ),
    sentences=(
        Claim("{n} subjects were fitted: {counts}.", COUNT, _counted),
        Claim(
            "Units are told apart by {columns}; {n} were fitted: {counts}.", COUNT, _counted_units
        ),
        Claim("One subject was fitted: {counts}.", COUNT, _alone),
        Claim("All sessions were fitted as those of one mind: {counts}.", COUNT, _one_mind),
        Claim("{n} of {of} trials were fitted.", "the rows handed in, counted", _trials_fitted),
        *selection.REPORT.sentences,
        Claim(
            "Left out for want of such trials: {names}.",
            "subjects without a row of the kind",
            _without,
        ),
        Claim("What was tried: {tried}.", "the lines told while it was sampled; the JSON", _tried),
        Claim(
            "Smaller steps still are to be had by a --target-accept above {rate}; fewer free "
            "parameters (--fix) or more trials leave less to stumble over.",
            "the lines told while it was sampled; the JSON",
            _smaller_steps,
        ),
        Claim("{name}: median {one} {estimate} (90% interval {low} to {high}).", RANKS, _median),
        Claim(
            "{name}: the one {one} {estimate} (90% interval {low} to {high}).",
            "the only session of the JSON",
            _the_one,
        ),
        Claim("{name}: no usable {one}.", COUNT, _nobody),
        Claim(
            "{name}: group mean{which} {estimate} (90% interval {low} to {high}).",
            DRAWS,
            _group_mean,
        ),
        Claim(
            "{name}: no difference between subjects can be seen. Their spread on the unconstrained "
            "scale is below {bound} (95%), and the Bayes factor for subjects alike against "
            "subjects that differ is {factor}.",
            "posterior draws: how many lie near 0, against the half-normal prior",
            _none_differ,
        ),
        Claim(
            "{name}: {estimate} (90% interval {low} to {high}, which {clear} 0).", DRAWS, _effect
        ),
        Claim(
            "{name}: {estimate} (90% interval {low} to {high}; a spread is never below 0). Bayes "
            "factor for {who} that differ against {alike} alike {factor}: {verdict}.",
            "posterior draws: how many lie near 0, against the half-normal prior",
            _levels,
        ),
        Claim(
            "The sampling did not converge; do not use these numbers: {reasons}.",
            "R-hat, effective sample sizes and divergences of the JSON",
            _not_converged,
        ),
        Claim(
            "sampling: not converged. Do not use these numbers: {reasons}.",
            "R-hat, effective sample sizes and divergences of the JSON",
            _not_converged,
        ),
        Claim(
            "{n} of {total} trials have no readable answer ({share}, 95% interval {low} to "
            "{high}; {each}). They are left out, which is right if what is missing does not "
            "depend on what would have been said.",
            "a count over the rows; Wilson's interval by statsmodels",
            _gaps,
        ),
        Claim(
            "How far the missing numbers could move an estimate is not computed.",
            "what the experiment asks for",
            _numbers_given,
        ),
        Claim(
            "Whatever the missing answers of {n} {whose} would have been, the median estimate of "
            "these lies in: {ends}.",
            "medians of the JSON's bounds, which hold the estimates; a count over the rows",
            _bounds,
        ),
        Claim("Of {names}, AIC and BIC both prefer {best}.", CRITERIA, _both),
        Claim(
            "Of {names}, AIC prefers {aic} and BIC, which charges more for parameters, {bic}.",
            CRITERIA,
            _preferred,
        ),
        Claim("For {n} of {of} {one}s pure chance is best by BIC.", CRITERIA, _chance),
        Claim(
            "What {trials} trials per {one} support: {minds} simulated minds came back with "
            "{each}.",
            AGAIN,
            _correlated,
        ),
        Claim(
            "They were drawn from the group that these estimates show.",
            "mean and spread of the JSON's estimates, beside those of the test's own minds",
            _of_the_group,
        ),
        Claim(
            "They were drawn from the model's priors, as fewer than {least} usable {one}s show no "
            "group.",
            COUNT,
            _of_the_prior,
        ),
        Claim("They lived exactly these rows again.", AGAIN, _same_rows),
        Claim(
            "They lived these sessions again, as far as their own choices led.",
            AGAIN,
            _same_sessions,
        ),
        Claim(
            "Each was fitted alone with that group as its prior, not all hierarchically.",
            "the method of the JSON",
            _alone_in_group,
        ),
        Claim(
            "Each was fitted as these {one}s were ({method}).", "the method of the JSON", _same_way
        ),
        Explanation("Rewards were drawn anew, at the rates at which they came in these rows."),
        Claim(
            "Points were drawn anew, with an sd of {sd} around {means}.", SETTINGS, _sd_of_points
        ),
        Claim(
            "Wins were drawn anew, with a chance of {high} for the better machine and {low} for "
            "the other, {told}.",
            SETTINGS,
            _better_wins,
        ),
        Explanation("Decks began anew, with the published cards in their order."),
        Claim(
            "Which planet was reached and what the aliens paid was drawn anew, their chances "
            "between {low} and {high} with daily steps of sd {drift}.",
            SETTINGS,
            _walks,
        ),
        Claim(
            "The pump at which a balloon bursts was drawn anew, each from the first to the last as "
            "likely ({most} by type).",
            SETTINGS,
            _maxima,
        ),
        Claim(
            "So differences between single {one}s in {names} should not be read off these "
            "estimates.",
            WORDS,
            _not_to_read,
        ),
        Claim(
            "{minds} minds do not settle whether differences between single {one}s in {names} can "
            "be read.",
            WORDS,
            _unsettled,
        ),
        Claim("Nothing is judged of {names}.", WORDS, _unjudged),
        Claim(
            "So differences between single {one}s can be read in all parameters.", WORDS, _to_read
        ),
        Claim(
            "Estimates from few or uninformative trials lie near the prior, so do their medians: "
            "take group values from --method hierarchical.",
            "the method of the JSON",
            _by_map,
        ),
        Claim(
            "{told} cannot be read from these rows: 90% intervals of simulated minds are {width} "
            "as wide there as the prior's. Of the estimates, {n} of {of} lie there: {names}.",
            "the JSON's estimates, counted; " + AGAIN,
            _unread,
        ),
        Claim(
            "Reliability of these {one}s' estimates, from their standard errors: {each}.",
            "variances of the JSON's estimates and intervals, mapped by SciPy",
            _reliable,
        ),
        Claim(
            "{name}: {verdict}. Simulated minds who lived these rows again come back with r = {r}, "
            "and {share} of their 90% intervals hold the truth.",
            AGAIN,
            _finding,
        ),
        Claim(
            "Simulated {n} times from this fit, the sessions do not look like the data in {each}; "
            "{k} panels were looked at, each with a limit of {limit}.",
            PANELS,
            _unlike,
        ),
        Claim(
            "Simulated {n} times from this fit, the sessions look like the data in what was looked "
            "at, {k} panels (least predictive p {p}).",
            PANELS,
            _alike,
        ),
        Claim(
            "They were simulated from the estimates alone, as if these had no errors.",
            "the method of the JSON",
            _from_estimates,
        ),
        Claim("Passed over were {n} without an answer.", COUNT, _passed_over),
        Claim("Passed over were {n} without a fit.", COUNT, _passed_over_unfit),
        Claim(
            "Passed over, evenly from all, were those beyond {n} rows.", COUNT, _passed_over_many
        ),
        Claim("Looked at were {n} of {of} {one}s.", COUNT, _looked_at),
        Claim(
            "Without a single readable answer: {some}. What stands for {n} is what others tell of "
            "the group, and has no bounds.",
            COUNT,
            _said_nothing,
        ),
        Claim(
            "Without a single readable answer: {some}. Nothing is estimated of {n}.",
            COUNT,
            _said_nothing,
        ),
        Claim(
            "{name}: not reproduced. The data's discrepancy is {own}; half of the sessions "
            "simulated from the fit have less than {usual} (p {p}).",
            PANELS,
            _far_off,
        ),
        Claim(
            "Left out of the comparison: {name}. {why}",
            "the JSON's reasons and its elpd of each subject",
            _left_out,
        ),
        Claim("Nothing was left to compare with.", BY_SUBJECT, _nothing_left),
        Claim(
            "{best} predicts {n} best, {second} next: elpd higher by {ahead} (standard error "
            "{error}), {verdict}.",
            BY_SUBJECT,
            _best_predicts,
        ),
        Claim(
            "Weights of the best mixture: {weights}; protected exceedance probabilities: {most}.",
            BY_SUBJECT,
            _mixture,
        ),
        Claim(
            "{n} had a Pareto k above .7 and came anew from a group without the {one}; {poor} stay "
            "unreliable.",
            "the JSON's counts",
            _made_anew,
        ),
        Claim(
            "What this design can tell apart: of {n} each, put together from {minds}, BIC names "
            "the true model in {own}.",
            "the JSON's shares, which are counted anew in tests/data/test_rivals.py",
            _told_apart,
        ),
        Explanation(COMPARED),
        Explanation(ABOUT_ELPD),
        Claim(
            "{name} (unconstrained scale): b = {mean}, 90% CrI {interval}, pd {pd}.",
            DRAWS,
            _quoted,
        ),
        Claim(
            "{name} ({kind} subjects, natural scale): difference = {mean}, 90% CrI "
            "{interval}, pd {pd}, {share} within {rope} of 0.",
            "the two medians by hand from draws of mean and weight, mapped by SciPy",
            _contrast,
        ),
        Claim(
            "{name}: {verdict}. The 90% interval lies {where} the region that counts as no "
            "difference.",
            "the two medians by hand from draws of mean and weight, mapped by SciPy",
            _contrast_judged,
        ),
        Claim(
            "They are of {n} subjects, each with parameters for every value of {columns} that it "
            "had; a subject's own lie together.",
            COUNT,
            _rows_of_subjects,
        ),
        Claim(
            "{factor} is a crossed factor: its {n} levels are taken for a sample of many, with "
            "deviations from one law. What is told is how far they spread, and no contrast between "
            "two of them.",
            COUNT,
            _crossed_factor,
        ),
        Claim(
            "The comparison is without {what}: each model is a group of its own whose parameters "
            "differ over subjects, and nothing else.",
            "the options of the JSON",
            _compared_without,
        ),
        Claim(
            "Each model is a group of its own with {what}. AIC, BIC and what this design can tell "
            "apart are of single {one}s, with one set of parameters each.",
            "the options of the JSON",
            _compared_with,
        ),
        Claim(
            "{name} has no parameter that {formulas} could move, and is a group without.",
            "the parameters of the registered model",
            _lacks,
        ),
        Explanation(ABOUT_CONTRASTS),
        Explanation(DIFFERENCES),
        Explanation("Contrasts on the natural scale"),
        Explanation("Traces: every so-many-th draw of each chain, on the unconstrained scale."),
        Explanation(
            "Ranks: how often draws of each chain have which rank among those of all chains. "
            "Chains that sample the same law have the same count everywhere, the dashed line."
        ),
        Explanation(CHECKED),
        Explanation(ABOUT_P),
        Explanation(
            "Each {one}'s estimate and 90% interval; the group value and its interval behind."
        ),
        Explanation("Estimates on the natural scale; 90% intervals in parentheses."),
        Explanation(STATUSES),
        Explanation("Models (maximum likelihood, summed over {one}s)"),
    ),
)
