"""The page of revealed belief: what models reveal about chance, and what they state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from knownminds.environments import ENVIRONMENTS, Choice, Coins, Dice, Environment
from knownminds.environments.chance.outcome_grid import LETTERS, NONE, BrokenOff
from knownminds.environments.chance.scenarios import SCENARIOS
from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.belief_contexts import (
    DISTANCES,
    context_table,
    increases,
    kind_of,
    values_of_context,
)
from knownminds.inference.chance.distribution_distance import distribution_distances
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, context_name, wilson
from knownminds.inference.measure import t_tests
from knownminds.validation.chance.agreement import agreement_of
from knownminds.validation.chance.context_words import in_words, observation_words
from knownminds.validation.pages.page import Column, Section, Table, table

from . import revealed_figures as pictures
from .shown import WHO, beside, first_rows, interval, part, readable

if TYPE_CHECKING:
    from .paper import About

FORM, VARIANT, STATED = "form", "variant", "stated"
GUESS = 1.0 - 1.0 / len(LETTERS)
MARK_WORDS = {
    "first": "first outcome",
    "middle": "middle",
    "round": "multiple of ten",
    "repeat": "outcome before",
    "heads": "heads",
    "left": "left",
}
BIAS_WORDS = {
    "value": "Biases by scenario",
    "log_odds": "Biases as log-odds, of the belief sampler that is nearest",
}
DISTANCE_WORDS = {"chebyshev": "Chebyshev", "manhattan": "Manhattan", "kl_sum": "KL, both ways"}
WORST = 20  # contexts that are told with their distances
OVER_CONTEXTS = (
    "Means over contexts, with Student's 95% intervals over them. Contexts in which too few "
    "answers named an outcome are flagged and left out."
)


@dataclass(frozen=True)
class RevealedResult:
    """Everything that the page of revealed belief tells.

    Parameters
    ----------
    beliefs
        By participant and form ("question" or "continuation").
    contexts
        One row per participant, form and context, see `context_table`, with variant and words.
    shares
        One row per participant, form, context and outcome: truth, count, share, low and high
        (Wilson's 95% interval among answers that named an outcome).
    stated
        One row per participant and question that was answered: truth of the outcome asked about,
        the chosen option as a probability, and whether it is the right one.
    cells
        By scenario and form, a cell of the plan.
    """

    beliefs: Mapping[tuple[str, str], RevealedBeliefs]
    contexts: pd.DataFrame
    shares: pd.DataFrame
    stated: pd.DataFrame
    cells: Mapping[tuple[str, str], str]


def sections(trials: pd.DataFrame, about: About, context: str = "") -> list[Section]:
    """Return the parts of the page, in the order of the paper.

    Parameters
    ----------
    trials
        Trials of dice, coins, choice and preference, with the columns participant, cell and form.
    context
        In words or by its name, a context that is drawn for everybody; "" for that of `about`, or
        one throw of a die of 10 faces, or the first there is.

    Raises
    ------
    ValueError
        If no trial is about chance, or there is no such context.
    """
    found = revealed_result(trials, about)
    return [
        _answers_section(trials, found),
        *_compared_sections(found),
        _orders_section(found),
        _both_ways_section(found),
        _contexts_section(found, context or str(about.options.get("context") or "")),
    ]


def revealed_result(trials: pd.DataFrame, about: About) -> RevealedResult:
    """Compute everything that the page tells."""
    place = trials["environment"] if "environment" in trials else trials["experiment"]
    own = trials[place.isin(SCENARIOS)].copy()
    if not len(own):
        raise ValueError(
            f"The page of revealed belief reads trials of {', '.join(SCENARIOS)}; there are none."
        )
    own["place"] = place[own.index]
    form = own[FORM].astype(object) if FORM in own else pd.Series("question", index=own.index)
    own[FORM] = form.where(own["correct"].fillna(-1) < 0, STATED)
    beliefs: dict[tuple[str, str], RevealedBeliefs] = {}
    stated = []
    for (who, form_), answers in own.groupby([WHO, FORM], sort=False):
        parts = [
            (_place(about, name, one), one)
            for name, one in answers.groupby("cell" if "cell" in answers else "place", sort=False)
        ]
        if form_ == STATED:
            stated += [_stated(one, place_).assign(**{WHO: str(who)}) for place_, one in parts]
            continue
        joined = [RevealedBeliefs.of_trials(_whole(one), place_) for place_, one in parts]
        joined = [one for one in joined if len(one)]
        if joined:
            beliefs[str(who), str(form_)] = RevealedBeliefs.join(*joined)
    contexts, shares = [], []
    for (who, form_), one in beliefs.items():
        about_it = {WHO: who, FORM: form_}
        contexts.append(context_table(one, seed=about.seed).assign(**about_it))
        shares.append(_shares(one).assign(**about_it))
    table_ = _ordered(pd.concat(contexts, ignore_index=True)) if contexts else _no_contexts()
    told = _told(table_, ["scenario", "context"])
    stated = [one for one in stated if len(one)]
    answered = _ordered(pd.concat(stated)) if stated else pd.DataFrame(columns=_STATED)
    return RevealedResult(
        beliefs,
        table_.merge(told, on=["scenario", "context"], how="left"),
        _ordered(pd.concat(shares)) if shares else pd.DataFrame(columns=_SHARES),
        answered.merge(_told(answered, ["scenario", "context"]), on=["scenario", "context"]),
        {
            (str(scenario), str(form_)): str(cell)
            for scenario, form_, cell in own.drop_duplicates(["place", FORM])[
                ["place", FORM, "cell" if "cell" in own else "place"]
            ].to_numpy()
        },
    )


def scores(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return what participants are compared by; see `registry.Scores`."""
    found = revealed_result(trials, about)
    parts = [part.scores for part in _compared_sections(found) if part.scores is not None]
    return pd.concat(parts, ignore_index=True)


def _compared_sections(found: RevealedResult) -> list[Section]:
    """Return the sections by whose scores participants are compared."""
    return [
        _distances_section(found),
        _stated_section(found),
        _biases_section(found),
        _baseline_section(found),
        _excluded_section(found),
    ]


def _scores(rows: pd.DataFrame, told: str, cells: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Return what models are compared by, two at a time."""
    scenario = [str(name).partition(", ")[0] for name in rows[VARIANT]]
    return pd.DataFrame(
        {
            WHO: rows[WHO],
            "score": f"{told}: " + rows[VARIANT] + ", " + rows[FORM],
            "cell": [cells.get(pair, "") for pair in zip(scenario, rows[FORM], strict=True)],
            "value": rows["value"],
            "standard_error": rows["standard_error"],
            "freedom": rows["n"] - 1.0,
        }
    )


_STATED = ["scenario", "context", "outcome", "truth", "told", "correct", WHO]
_SHARES = ["scenario", "context", "outcome", "truth", "count", "share", "low", "high", WHO, FORM]


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in the order of the grid: by scenario, kind, and what else tells contexts."""
    names = rows[["scenario", "context"]].drop_duplicates()
    scenarios = list(SCENARIOS)

    def place(scenario: str, context: str) -> tuple[int, ...]:
        told = values_of_context(context)
        return scenarios.index(scenario), told["kind"], *told.values()

    pairs = sorted(zip(names["scenario"], names["context"], strict=True), key=lambda k: place(*k))
    at = pd.MultiIndex.from_tuples(pairs).get_indexer(
        pd.MultiIndex.from_frame(rows[["scenario", "context"]])
    )
    return rows.iloc[np.argsort(at, kind="stable")].reset_index(drop=True)


def _no_contexts() -> pd.DataFrame:
    columns = ["scenario", "context", "kind", "draws", "retained", "flag", "excluded", WHO, FORM]
    more = [name for one in DISTANCES for name in (one, f"{one}_noise")]
    return pd.DataFrame(columns=[*columns, *more, "excluded_outcomes"])


def _place(about: About, name: Any, answers: pd.DataFrame) -> BrokenOff:
    """Return the experiment of a cell, or one that follows from its trials."""
    found = about.places.get(str(name))
    if found is None:
        found = ENVIRONMENTS[str(answers["place"].iloc[0])].as_played(answers)
    assert isinstance(found, BrokenOff)
    return found


def _whole(answers: pd.DataFrame) -> pd.DataFrame:
    """Return trials whose contexts are whole numbers, as they were before tables were joined."""
    kept = answers.copy()
    for name in SCENARIOS[str(answers["place"].iloc[0])].own:
        kept[name] = kept[name].astype(float).astype(np.int64)
    return kept


def _told(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return scenario and context with variant and words."""
    known = rows[list(keys)].drop_duplicates().reset_index(drop=True)
    pairs = list(zip(known["scenario"], known["context"], strict=True))
    return known.assign(
        **{
            VARIANT: [variant_of(*pair) for pair in pairs],
            "size": [size_of(*pair) for pair in pairs],
            "words": [in_words(*pair) for pair in pairs],
        }
    )


def variant_of(scenario: str, context: str) -> str:
    """Return the part of a scenario to which a context belongs."""
    kind = kind_of(scenario, context)
    if kind in ("observation", "two_observations"):
        return f"{scenario}, {'one' if kind == 'observation' else 'two'} known"
    return f"{scenario}, {kind}"


def size_of(scenario: str, context: str) -> str:
    """Return by what the rows of the paper's tables differ within a variant."""
    told = values_of_context(context)
    if scenario == "dice":
        known = observation_words(told)
        size = f"{told['dice']} {'die' if told['dice'] == 1 else 'dice'}"
        return f"{size}, {known}" if known else size
    if scenario == "coins":
        return f"{told['coins']} coins, {told['weight']} to 1"
    if scenario == "choice":
        return f"{told['options']} options"
    return f"{('heads and tails', 'left and right')[told['pair']]}, {told['weight']} to 1"


def _stated(answers: pd.DataFrame, place: BrokenOff) -> pd.DataFrame:
    """Return what was chosen in answer to questions about probabilities."""
    rows, known = [], {}
    columns = [*place.own, "asked", "correct", "arrangement"]
    given = answers[readable(answers).to_numpy()]
    values = given[columns].to_numpy(dtype=float).astype(np.int64)
    action = given["action"].to_numpy(dtype=float, na_value=np.nan)
    for row, chosen in zip(map(tuple, values.tolist()), action.tolist(), strict=True):
        if not np.isfinite(chosen):
            continue
        if row not in known:
            observation = dict(zip(columns, row, strict=True))
            own = row[: len(place.own)]
            chance = place.context_at(own).chance
            known[row] = (
                context_name(place.own, own),
                place._names(own)[observation["asked"]],
                float(chance.probabilities[observation["asked"]]),
                tuple(map(float, place.options(observation))),
                observation["correct"],
            )
        context, outcome, truth, options, correct = known[row]
        told = options[int(chosen)]
        rows.append((place.name, context, outcome, truth, told, int(chosen) == correct))
    return pd.DataFrame(rows, columns=_STATED[:-1])


def _shares(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Return the share of each outcome among the answers that named one."""
    counts = np.maximum(beliefs.count, 0).astype(float)
    n = np.bincount(beliefs.context, counts)[beliefs.context].astype(float)
    low, high = wilson(counts, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / n
    at = beliefs.context
    return pd.DataFrame(
        {
            "scenario": np.array(beliefs.scenarios, dtype=object)[at],
            "context": np.array(beliefs.contexts, dtype=object)[at],
            "outcome": beliefs.outcome,
            "truth": beliefs.truth,
            "count": counts.astype(np.int64),
            "share": share,
            "low": np.where(n > 0, low, np.nan),
            "high": np.where(n > 0, high, np.nan),
        }
    )


# Between which bounds a mean lies, for intervals that stay within them.
BOUNDS = {
    "chebyshev": (0.0, 1.0),
    "manhattan": (0.0, 2.0),
    "kl_sum": (0.0, np.inf),
    "error": (0.0, 1.0),
    "excluded": (0.0, 1.0),
    "retained": (0.0, 1.0),
    "increase": (-1.0, 1.0),
}


def mean_rows(rows: pd.DataFrame, value: str, keys: Sequence[str]) -> pd.DataFrame:
    """Return the mean of a column over the rows of each group, with its t interval.

    Columns: the keys, value, low, high, n (rows with a value), lower and upper (quartiles),
    median, tenth and ninetieth (percentiles).
    """
    found = []
    for key, own in rows.groupby(list(keys), sort=False):
        values = own[value].to_numpy(dtype=float)
        known = values[np.isfinite(values)]
        bounds = BOUNDS.get(value, (-np.inf, np.inf))
        with np.errstate(invalid="ignore", divide="ignore"):
            tests = t_tests(values[None], bounds=bounds)
        mean, low, high = (float(c[0]) for c in (tests.mean, tests.low, tests.high))
        if len(known) > 1 and not np.isfinite(low):  # all the same
            low = high = mean
        ends = np.quantile(known, [0.1, 0.25, 0.5, 0.75, 0.9]) if len(known) else [np.nan] * 5
        names = ("tenth", "lower", "median", "upper", "ninetieth")
        found.append(
            dict(zip(keys, key, strict=True))
            | {"value": mean if len(known) else np.nan, "low": low, "high": high, "n": len(known)}
            | {"standard_error": float(tests.standard_error[0])}
            | dict(zip(names, map(float, ends), strict=True))
        )
    columns = [
        *keys,
        "value",
        "low",
        "high",
        "n",
        "standard_error",
        "tenth",
        "lower",
        "median",
        "upper",
        "ninetieth",
    ]
    return pd.DataFrame(found, columns=columns)


BIAS = (-1.0, 1.0)  # between which differences of shares lie


# What stands on the page, in the order of the paper.


def _by_who(rows: pd.DataFrame, keys: Sequence[str], who: Sequence[str], title: str) -> Any:
    """Return a table with a row per key and a column per participant (and form)."""
    several = rows[FORM].nunique() > 1 if FORM in rows else False
    named = rows[WHO] + (", " + rows[FORM] if several else "")
    wide = rows.assign(named=named)
    order = [name for w in who for name in dict.fromkeys(wide.loc[wide[WHO] == w, "named"])]
    held = {
        (tuple(r[k] for k in keys), r["named"]): interval(r["value"], r["low"], r["high"])
        for r in wide.to_dict("records")
    }
    lines = list(dict.fromkeys(key for key, _ in held))
    rows_ = [dict(zip(keys, key, strict=True)) | {"key": key} for key in lines]

    def cell(name: str) -> Any:
        return lambda row: held.get((row["key"], name), "-")

    heads: list[Column] = [(key, f"{{{key}}}") for key in keys]
    return table(title, rows_, *heads, *((name, cell(name)) for name in order))


def _answers_section(trials: pd.DataFrame, found: RevealedResult) -> Section:
    place = trials["environment"] if "environment" in trials else trials["experiment"]
    own = trials[place.isin(SCENARIOS)].assign(scenario=place)
    own = own.assign(read=readable(own).to_numpy())
    own[FORM] = own[FORM].astype(object) if FORM in own else "question"
    own[FORM] = own[FORM].where(own["correct"].fillna(-1) < 0, STATED)
    keys = [WHO, FORM, "scenario"]
    rows = own.groupby(keys, sort=False)["read"].agg(asked="size", read="sum").reset_index()
    rows["read"] = rows["read"].astype(int)
    rows["share"] = rows["read"] / rows["asked"]
    flagged = found.contexts.assign(flagged=found.contexts["flag"].astype(str) != "")
    flags = flagged.groupby(keys, sort=False)["flagged"].agg(contexts="size", flagged="sum")
    rows = rows.merge(flags.reset_index(), on=keys, how="left")

    retained = mean_rows(found.contexts, "retained", [WHO, FORM, "scenario"])
    who = list(dict.fromkeys(found.contexts[WHO]))

    def cell(row: Mapping[Any, Any]) -> str:
        told = f"{row['read']:,} of {row['asked']:,}" if row["read"] else "no readable answer"
        return told + (f", {int(row['flagged'])} contexts flagged" if row["flagged"] > 0 else "")

    return part(
        "What was asked, and what came back",
        "A revealed belief is how often each outcome was said behind a text that breaks off before "
        "it, or in reply to a question for it, over all sessions; a stated answer is the choice "
        "among five probabilities. What names no outcome counts against the retained mass, and a "
        "context with too little of it is flagged. Intervals of the retained mass are Student's "
        "95% over contexts.",
        "answers",
        rows,
        [
            beside(
                "Answers that could be read, of all questions", rows, "scenario", cell, [WHO, FORM]
            ),
            _by_who(retained, ["scenario"], who, "Retained mass, mean over contexts"),
        ],
    )


def _distances_section(found: RevealedResult) -> Section:
    who = list(dict.fromkeys(found.contexts[WHO]))
    parts = []
    for name in DISTANCES:
        for keys in ([VARIANT], [VARIANT, "size"]):
            rows = mean_rows(found.contexts, name, [WHO, FORM, *keys])
            noise = mean_rows(found.contexts, f"{name}_noise", [WHO, FORM, *keys])
            shown = {"noise": "value", "noise_low": "low", "noise_high": "high"}
            columns = {told: noise[column].to_numpy() for told, column in shown.items()}
            parts.append(rows.assign(measure=name, **columns))
    rows = pd.concat(parts, ignore_index=True)
    whole = rows[rows["size"].isna()] if "size" in rows else rows
    tables = [
        _by_who(whole[whole["measure"] == name], [VARIANT], who, word + " distance by scenario")
        for name, word in DISTANCE_WORDS.items()
    ]
    finer = rows[(rows["measure"] == "chebyshev") & rows["size"].notna()]
    tables.append(_by_who(finer, [VARIANT, "size"], who, "Chebyshev distance, row by row"))
    floor = whole[whole["measure"] == "chebyshev"].assign(
        value=lambda r: r["noise"], low=lambda r: r["noise_low"], high=lambda r: r["noise_high"]
    )
    tables.append(
        _by_who(floor, [VARIANT], who, "Chebyshev distance that as many draws of the truth show")
    )
    return part(
        "Distances from the truth, by scenario and form",
        "Largest difference from the true probability (Chebyshev), sum of differences (Manhattan), "
        "and Kullback-Leibler divergences in both directions (nats, 1e-6 added to each share). "
        "Shares of few draws are away from the truth by chance alone: the last table says how far. "
        + OVER_CONTEXTS,
        "distances",
        rows,
        tables,
        pictures.distance_figures(found.contexts),
        pd.concat(
            [
                _scores(whole[whole["measure"] == name], word, found.cells)
                for name, word in DISTANCE_WORDS.items()
            ]
        ),
    )


def _stated_section(found: RevealedResult) -> Section:
    heading = "Stated answers beside revealed beliefs"
    if not len(found.stated):
        return part(
            heading,
            "No question about a probability was answered, so that nothing is stated.",
            "stated",
            pd.DataFrame(columns=[WHO, VARIANT, "value", "low", "high", "n"]),
        )
    errors = stated_errors(found.stated)
    who = list(dict.fromkeys(errors[WHO]))
    rows = mean_rows(errors, "error", [WHO, VARIANT])
    revealed = mean_rows(found.contexts, "chebyshev", [WHO, FORM, VARIANT])
    return part(
        heading,
        "The stated error is the share of questions about a context that were answered by another "
        f"letter than the right one; guessing among five letters has {GUESS:g}. " + OVER_CONTEXTS,
        "stated",
        rows,
        [_by_who(rows, [VARIANT], who, "Stated error by scenario")],
        pictures.stated_figures(rows, revealed, GUESS),
        _scores(rows.assign(**{FORM: STATED}), "stated error", found.cells),
    )


def stated_errors(stated: pd.DataFrame) -> pd.DataFrame:
    """Return the stated error of each participant and context: the share of wrong letters."""
    keys = [WHO, "scenario", "context", VARIANT, "size", "words"]
    rows = stated.assign(error=1.0 - stated["correct"].astype(float))
    return rows.groupby(keys, sort=False)["error"].mean().reset_index()


def _biases_section(found: RevealedResult) -> Section:
    parts = [
        belief_biases(revealed).to_frame().assign(**{WHO: who, FORM: form})
        for (who, form), revealed in found.beliefs.items()
        if not revealed.flagged.all()
    ]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    tables: list[Table] = []
    everyone = list(dict.fromkeys(found.contexts[WHO]))
    for name, title in BIAS_WORDS.items() if len(rows) else ():
        ends = {f"{name}_{end}" if name != "value" else end: end for end in ("low", "high")}
        kept = [WHO, FORM, "scenario", "mark", name, *ends]
        own = rows[kept].rename(columns={name: "value", **ends})
        if name != "log_odds":
            own = own.assign(low=own["low"].clip(*BIAS), high=own["high"].clip(*BIAS))
        own = own.assign(towards=own["mark"].map(MARK_WORDS))
        tables.append(_by_who(own, ["scenario", "towards"], everyone, title))
    without = rows[rows["reason"].astype(str) != ""] if len(rows) else rows
    if len(without):
        tables.append(
            first_rows(
                "Biases without log-odds",
                without,
                ("model", "{participant}"),
                ("form", "{form}"),
                ("scenario", "{scenario}"),
                ("towards", lambda row: MARK_WORDS[row["mark"]]),
                ("why", "{reason}"),
            )
        )
    return part(
        "Six biases",
        "What marked outcomes are believed to have more than they have, as published: temperature "
        "and other biases count as well. As log-odds: the bias of the belief sampler that is "
        "nearest, which has a temperature and the other biases beside it. Intervals are of 95%, "
        "over contexts.",
        "biases",
        rows,
        tables,
        pictures.bias_figures(
            rows.assign(low=rows["low"].clip(*BIAS), high=rows["high"].clip(*BIAS))
            if len(rows)
            else rows,
            MARK_WORDS,
        ),
        _bias_scores(rows, found.cells) if len(rows) else None,
    )


def _bias_scores(rows: pd.DataFrame, cells: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Return biases as scores, with the errors of which their intervals are made."""
    half = (rows["high"] - rows["low"]) / 2.0
    quantile = scipy.stats.t.ppf(0.975, rows["freedom"].where(rows["freedom"] > 0))
    told = rows.assign(
        **{VARIANT: rows["scenario"] + ", " + rows["mark"].map(MARK_WORDS)},
        standard_error=half / quantile,
        n=rows["freedom"] + 1,
    )
    return _scores(told, "bias", cells)


def _baseline_section(found: RevealedResult) -> Section:
    revealed = increases(found.contexts, "chebyshev", [WHO, FORM]).assign(what="revealed")
    revealed = revealed.rename(columns={"chebyshev": "error"})
    kept = [WHO, FORM, "what", "scenario", "kind", VARIANT, "context", "words", "error"]
    kept += ["baseline_value", "increase"]
    parts = [revealed[kept]]
    if len(found.stated):
        errors = stated_errors(found.stated)
        kinds = [kind_of(s, c) for s, c in zip(errors["scenario"], errors["context"], strict=True)]
        stated = increases(errors.assign(kind=kinds), "error", [WHO])
        parts.append(stated.assign(what=STATED, **{FORM: STATED})[kept])
    rows = pd.concat(parts, ignore_index=True)
    means = mean_rows(rows, "increase", [WHO, FORM, VARIANT])
    who = list(dict.fromkeys(means[WHO]))
    return part(
        "Increase of the error over the baseline",
        "The error of each context (Chebyshev of revealed beliefs, wrong letters of stated "
        "answers) minus that of the same dice, coins or options when nothing went before and "
        "nothing is known. An independent earlier result should change nothing. " + OVER_CONTEXTS,
        "increase",
        rows,
        [_by_who(means[means["n"] > 0], [VARIANT], who, "Mean increase over the baseline")],
        pictures.increase_figures(rows),
        _scores(means[means["n"] > 0], "increase", found.cells),
    )


def _excluded_section(found: RevealedResult) -> Section:
    rows = found.contexts[found.contexts["excluded_outcomes"] > 0]
    means = mean_rows(rows, "excluded", [WHO, FORM, VARIANT, "size"])
    parts = mean_rows(rows, "excluded", [WHO, FORM, VARIANT])
    who = list(dict.fromkeys(means[WHO]))
    keep = [WHO, FORM, "scenario", "context", "words", "excluded", "excluded_outcomes", "draws"]
    tables = [_by_who(means, [VARIANT, "size"], who, "Mass on outcomes that were excluded")]
    return part(
        "Mass on outcomes that were excluded",
        "Where something is known of the sum of the dice, some outcomes cannot come: the share of "
        "the belief that is on them nevertheless. " + OVER_CONTEXTS,
        "excluded",
        rows[keep].reset_index(drop=True),
        tables if len(means) else [],
        pictures.excluded_figures(parts),
        _scores(parts, "excluded mass", found.cells),
    )


def _orders_section(found: RevealedResult) -> Section:
    rows = found.shares[found.shares["scenario"] == "preference"]
    told = [values_of_context(name) for name in rows["context"]]
    rows = rows.assign(
        first=[("heads", "tails", "left", "right")[2 * t["pair"] + t["first"]] for t in told],
        pair=[("heads and tails", "left and right")[t["pair"]] for t in told],
        weight=[t["weight"] for t in told],
        kind=[t["kind"] for t in told],
    )
    plain = rows[(rows["kind"] == 0) & (rows["weight"] == 1)].drop(columns=["kind", "weight"])
    return part(
        "Names and their order",
        "Two options that are equally probable, named in either order: a preference for a name "
        "stays when the order is turned, a preference for what is named first turns with it. "
        "Intervals are Wilson's 95% of the draws.",
        "orders",
        plain.reset_index(drop=True),
        [
            _by_who(
                plain.rename(columns={"first": "named first", "share": "value"}),
                ["named first", "outcome"],
                list(dict.fromkeys(plain[WHO])),
                "Shares of equally probable options",
            )
        ]
        if len(plain)
        else [],
        pictures.order_figures(plain),
    )


def _both_ways_section(found: RevealedResult) -> Section:
    rows = both_ways(found)
    agreed = pd.DataFrame(list(_agreements(rows)))
    return part(
        "The same outcome, stated and revealed",
        "The probability of an outcome as it was stated (mean of the options chosen) and as it was "
        "revealed (share of the draws), against the truth; rank correlations (Spearman) over the "
        "outcomes that were asked about, with 95% bootstrap intervals over contexts, and mean "
        "absolute errors with Student's 95% intervals.",
        "both_ways",
        rows,
        [
            table(
                "Stated against revealed",
                agreed,
                ("model", "{participant}"),
                ("form", "{form}"),
                ("scenario", "{scenario}"),
                ("outcomes", "{n}"),
                ("rank correlation", lambda r: interval(*r["probabilities"])),
                ("of their errors", lambda r: interval(*r["errors"])),
                ("error, revealed", lambda r: interval(*r["revealed_error"])),
                ("error, stated", lambda r: interval(*r["stated_error"])),
            )
        ]
        if len(agreed)
        else [],
        pictures.both_ways_figures(rows),
    )


def both_ways(found: RevealedResult) -> pd.DataFrame:
    """Return stated and revealed probability of each outcome that was asked about."""
    if not len(found.stated) or not len(found.shares):
        return pd.DataFrame(columns=[WHO, FORM, "scenario", "context", "outcome", "truth", STATED])
    keys = [WHO, "scenario", "context", "outcome"]
    means = found.stated.groupby(keys, sort=False)["told"].agg(stated="mean", questions="size")
    shares = found.shares.copy()
    usable = found.contexts.loc[found.contexts["flag"].astype(str) == "", [WHO, FORM, "context"]]
    shares = shares.merge(usable, on=[WHO, FORM, "context"])
    # The outcome is named by what is said, which a stated question may write with a capital.
    shares["outcome"] = shares["outcome"].astype(str).str.casefold()
    stated = means.reset_index()
    stated["outcome"] = stated["outcome"].astype(str).str.casefold()
    rows = shares.merge(stated, on=keys).rename(columns={"share": "revealed"})
    return rows.drop(columns=["count"]).dropna(subset=["revealed"]).reset_index(drop=True)


def _agreements(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (who, form), own in rows.groupby([WHO, FORM], sort=False) if len(rows) else ():
        parts = list(own.groupby("scenario", sort=False))
        for scenario, some in [*parts, *([("all", own)] if len(parts) > 1 else [])]:
            errors = some[["revealed", STATED]].sub(some["truth"], axis=0).abs()
            told = agreement_of(some.rename(columns={STATED: "stated"}))
            yield {
                WHO: who,
                FORM: form,
                "scenario": scenario,
                "n": len(some),
                **{
                    name: (told[name], told[f"{name}_low"], told[f"{name}_high"])
                    for name in ("probabilities", "errors")
                },
                **{f"{name}_error": _mean(errors[name]) for name in ("revealed", STATED)},
            }


def _mean(values: pd.Series[float]) -> tuple[float, float, float]:
    numbers: Any = values.to_numpy(dtype=float)[None]
    tests = t_tests(numbers)
    return float(tests.mean[0]), float(tests.low[0]), float(tests.high[0])


def _contexts_section(found: RevealedResult, context: str) -> Section:
    heading = "Every context, in words"
    wide = found.shares.merge(
        found.contexts[["scenario", "context", "words"]].drop_duplicates(),
        on=["scenario", "context"],
        how="left",
    )
    rows = found.contexts[
        [WHO, FORM, "words", "scenario", "context", "draws", "retained", "flag", *DISTANCES]
    ]
    if not len(rows):
        return part(heading, "No answer named an outcome.", "contexts", rows)
    chosen = _chosen(found.contexts, context)
    own = wide[wide["context"] == chosen]
    words = str(own["words"].iloc[0])
    worst = rows.sort_values("manhattan", ascending=False, kind="stable", na_position="last")
    drawn = part(
        heading,
        f"Below, {words}: what each model reveals, beside the truth. The table has the contexts "
        "whose beliefs are farthest from the truth, with 95% intervals of their draws; the file "
        "has all, and belief_shares.csv every outcome of each.",
        "contexts",
        rows.reset_index(drop=True),
        [
            table(
                "Farthest from the truth",
                _with_ends(worst.head(WORST), found),
                ("model", "{participant}"),
                ("form", "{form}"),
                ("context", "{words}"),
                ("Chebyshev", "{chebyshev:.3f} ({chebyshev_low:.3f} to {chebyshev_high:.3f})"),
                ("Manhattan", "{manhattan:.3f} ({manhattan_low:.3f} to {manhattan_high:.3f})"),
                ("KL, both ways", "{kl_sum:.3f} ({kl_sum_low:.3f} to {kl_sum_high:.3f})"),
                ("draws", "{draws}"),
            )
        ],
        [
            *_paper_contexts(wide),
            (f"{words}: shares of the outcomes.", pictures.context_figure(own)),
        ],
    )
    return Section(
        drawn.name,
        drawn.title,
        drawn.sentences,
        drawn.tables,
        drawn.figures,
        frames={**drawn.frames, "belief_shares": wide},
    )


def _with_ends(rows: pd.DataFrame, found: RevealedResult) -> pd.DataFrame:
    """Return contexts with the ends of the intervals of their distances (NAME_low, NAME_high)."""
    keys = [WHO, FORM, "scenario", "context"]
    wanted = set(rows[keys].itertuples(index=False, name=None))
    parts = []
    for (who, form), own in found.beliefs.items():
        names = zip(own.scenarios, own.contexts, strict=True)
        kept = np.array([(who, form, *name) in wanted for name in names])
        if kept.any():
            told = distribution_distances(own.part(kept)).to_frame()
            parts.append(told[told["measure"].isin(DISTANCES)].assign(**{WHO: who, FORM: form}))
    ends = pd.concat(parts).pivot(index=keys, columns="measure", values=["low", "high"])
    pairs: list[Any] = ends.columns.to_list()
    ends.columns = pd.Index([f"{name}_{end}" for end, name in pairs])
    return rows.merge(ends.reset_index(), on=keys, how="left")


def _paper_contexts(shares: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figures of the contexts that the paper draws, as far as they were asked."""
    found = []
    die = [(1, 10, 0, NONE, NONE, NONE), *((1, 10, 1, k, NONE, NONE) for k in (1, 5, 10))]
    for told, scenario, several in (
        ("Four options, picked once", Choice, [(4, 0, NONE)]),
        ("Heads among three coins, tossed once", Coins, [(3, 0, 1, 0, NONE)]),
        ("A die of 10 faces, after nothing, a 1, a 5 and a 10", Dice, die),
    ):
        names = [context_name(scenario.own, values) for values in several]
        own = shares[shares["context"].isin(names)]
        if len(own):
            found.append((f"{told}: shares of the outcomes.", pictures.context_figure(own)))
    return found


def _chosen(contexts: pd.DataFrame, context: str) -> str:
    """Return the name of the context that is drawn."""
    if not context:
        usual = context_name(Dice.own, (1, 10, 0, NONE, NONE, NONE))
        names = set(contexts["context"])
        return usual if usual in names else str(contexts["context"].iloc[0])
    for column in ("context", "words"):
        hit = contexts[contexts[column] == context]
        if len(hit):
            return str(hit["context"].iloc[0])
    known = list(dict.fromkeys(contexts["words"]))
    raise ValueError(
        f"A context is drawn that was asked about, in words or by its name; got {context!r}. "
        f"Choose one such as {known[0]!r}: contexts.csv has all."
    )


def check_context(places: Iterable[Environment], context: str) -> None:
    """Check before the first call that a context that is to be drawn is asked about.

    Parameters
    ----------
    places
        The experiments of a plan.
    context
        In words, or by its name.

    Raises
    ------
    ValueError
        If none of them asks about it.
    """
    known: dict[str, str] = {}
    for place in places:
        if isinstance(place, BrokenOff):
            for one in place.contexts:
                name = context_name(place.own, one.values)
                known[name] = in_words(place.name, name)
    words = list(dict.fromkeys(known.values()))
    if context not in known and context not in words:
        near = get_close_matches(context, words, n=1, cutoff=0.0)
        raise ValueError(
            f"A context is drawn that the plan asks about; got {context!r}. Nearest: {near[0]!r}."
        )
