"""What models reveal of beliefs about chance, and what they state; after Mondal and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure

from knownminds.environments import ENVIRONMENTS, Choice, Coins, Dice
from knownminds.environments.chance.context_grid import LETTERS, NONE, ContextGrid
from knownminds.environments.chance.scenarios import SCENARIOS, further
from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.belief_contexts import (
    DISTANCES,
    context_means,
    context_table,
    increases,
    kind_of,
    scenario_of,
    values_of_context,
)
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, fit_belief_sampler
from knownminds.inference.chance.distribution_distance import (
    MEASURES_OF_DISTANCE,
    distribution_distances,
    manhattan,
)
from knownminds.inference.chance.idle_evidence import belief_shifts, mean_shifts
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, context_name
from knownminds.inference.chance.wording_variance import (
    split_models,
    split_wordings,
    wording_effects,
)
from knownminds.inference.measure import t_tests
from knownminds.validation.chance.agreement import agreement_of
from knownminds.validation.chance.context_words import in_words, observation_words
from knownminds.validation.chance.revealed import Revealed
from knownminds.validation.chance.stated_answers import shares_of
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.views import (
    WHO,
    Cell,
    Curves,
    Dots,
    Draw,
    Grid,
    Rows,
    View,
    ends,
    entitle,
    key,
    looks_of,
    quantiles,
)

from .paper import About, Answers, Paper, Shown, counted_answers, joined, readable, trials_of

FORM, VARIANT, STATED = "form", "variant", "stated"
EVERY = ("scenario", "context")
GUESS = 1.0 - 1.0 / len(LETTERS)
MARKS = {
    "first": "first outcome",
    "middle": "middle",
    "round": "multiple of ten",
    "repeat": "outcome before",
    "heads": "heads",
    "left": "left",
}
WORDS = {
    "chebyshev": "Chebyshev",
    "manhattan": "Manhattan",
    "kl_sum": "KL, both ways",
    "kl_truth_belief": "KL(truth, belief)",
    "kl_belief_truth": "KL(belief, truth)",
    "entropy": "entropy",
    "naive": "Manhattan, naive",
    "likeliest": "likeliest outcome, too much",
    "retained": "retained mass",
}
WORST = 20  # contexts that are written with their distances
MOST_BARS = 6  # participants whose intervals stand beside each other
MOST_DRAWN = 4  # participants whose best, middle and worst contexts are drawn
BIAS = (-1.0, 1.0)  # between which differences of shares lie

PAPER = Paper(
    "revealed_belief",
    "Revealed belief: what continuations say of chances",
    "Mondal and others 2024, on revealed beliefs and stated answers",
)


@PAPER.prepare
def prepare(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return the trials about chance with their scenario, and whether they state or reveal."""
    answers = trials_of("revealed belief", trials, SCENARIOS)
    form = answers.get(FORM, pd.Series(np.nan, index=answers.index)).astype(object)
    form = form.where(form.notna(), "question")  # trials from elsewhere do not say it
    form = form.where(answers["correct"].fillna(-1) < 0, STATED)
    return answers.assign(scenario=answers["environment"].astype(str), **{FORM: form})


# What all parts are made of: beliefs by participant and form, and stated answers ----------------


def material(data: Answers) -> Revealed:
    """Read beliefs and stated answers off trials; `reveal` asks for them itself."""
    beliefs: dict[tuple[str, str], RevealedBeliefs] = {}
    stated = []
    for (who, form), answers in data.trials.groupby([WHO, FORM], sort=False):
        parts = [
            (_place(data.about, cell, rows), rows)
            for cell, rows in answers.groupby("cell", sort=False)
        ]
        if form == STATED:
            stated += [
                _stated(rows, environment).assign(**{WHO: str(who)}) for environment, rows in parts
            ]
            continue
        read = [RevealedBeliefs.of_trials(_whole(rows), environment) for environment, rows in parts]
        read = [rows for rows in read if len(rows)]
        if read:
            beliefs[str(who), str(form)] = RevealedBeliefs.join(*read)
    first = data.trials.drop_duplicates(["scenario", FORM])[["scenario", FORM, "cell"]]
    cells = {(scenario, form): str(cell) for scenario, form, cell in first.to_numpy()}
    columns = [*EVERY, "outcome", "truth", STATED, "error", WHO]
    some = joined(stated)
    return Revealed(beliefs, some if len(some) else pd.DataFrame(columns=columns), cells)


def _place(about: About, cell: Any, answers: pd.DataFrame) -> ContextGrid:
    """Return the experiment of a cell, or one that follows from its trials."""
    environment = about.environments.get(str(cell))
    if environment is None:
        environment = ENVIRONMENTS[str(answers["scenario"].iloc[0])].as_played(answers)
    assert isinstance(environment, ContextGrid)
    return environment


def _whole(answers: pd.DataFrame) -> pd.DataFrame:
    """Return trials whose contexts are whole numbers, as they were before tables were joined."""
    names = SCENARIOS[str(answers["scenario"].iloc[0])].factors
    return answers.assign(**{name: answers[name].astype(float).astype(np.int64) for name in names})


def _stated(answers: pd.DataFrame, environment: ContextGrid) -> pd.DataFrame:
    """Return what was chosen in answer to questions about probabilities."""
    rows = []
    columns = [*environment.factors, "asked", "correct", "arrangement"]
    given = answers[readable(answers).to_numpy()]
    values = given[columns].to_numpy(dtype=float).astype(np.int64)
    action = given["action"].to_numpy(dtype=float, na_value=np.nan)
    known: dict[tuple[int, ...], tuple[Any, ...]] = {}
    for row, chosen in zip(map(tuple, values.tolist()), action.tolist(), strict=True):
        if not np.isfinite(chosen):
            continue
        if row not in known:
            observation = dict(zip(columns, row, strict=True))
            shown, outcome_shown = row[: len(environment.factors)], observation["asked"]
            about = (
                context_name(environment.factors, shown),
                environment._names(shown)[outcome_shown],
            )
            truth = float(environment.context_at(shown).chance.probabilities[outcome_shown])
            known[row] = (*about, truth, environment.options(observation), observation["correct"])
        context, outcome, truth, options, correct = known[row]
        error = float(int(chosen) != correct)
        rows.append((environment.name, context, outcome, truth, float(options[int(chosen)]), error))
    return pd.DataFrame(rows, columns=[*EVERY, "outcome", "truth", STATED, "error"])


def contexts_of(data: Answers) -> pd.DataFrame:
    """Return one row per participant, form and context: distances, retained mass, and words."""
    revealed: Revealed = data.once(material)
    parts = []
    for (who, form), read in revealed.beliefs.items():
        rows = context_table(read, seed=data.about.seed)
        if data.about.option("every_measure", False):
            rows = _every_measure(rows, read, revealed.naive.get((who, form)), data.about.seed)
        parts.append(rows.assign(**{WHO: who, FORM: form}))
    return _named(joined(parts))


def _every_measure(
    rows: pd.DataFrame, read: RevealedBeliefs, naive: Any, seed: int
) -> pd.DataFrame:
    """Return contexts with every distance and its interval, the naive reading, and laws' peaks."""
    distances = distribution_distances(read, seed=seed)
    for name in MEASURES_OF_DISTANCE:
        one = distances[distances["measure"] == name]
        rows[name] = one["value"].to_numpy()
        for column in ("low", "high", "noise"):
            rows[f"{name}_{column}"] = one[column].to_numpy()
    rows["naive"] = np.nan
    if naive is not None:
        each = [naive[read.context == k] for k in range(len(read))]
        rows["naive"] = [float(manhattan(b.truth, q)) for b, q in zip(read, each, strict=True)]
    rows["likeliest"] = np.nan
    for k, belief in enumerate(read):
        if belief.scenario not in SCENARIOS and not belief.flag:
            peak = int(np.argmax(belief.truth))
            rows.loc[k, "likeliest"] = float(belief.normalised[peak] - belief.truth[peak])
    return rows


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows about contexts in the order of the grid, with variant, size and words."""
    if not len(rows):
        return rows
    names = rows[list(EVERY)].drop_duplicates()
    order = [*SCENARIOS, *further()]

    def order_of(pair: tuple[str, str]) -> tuple[int, ...]:
        values = values_of_context(pair[1])
        return order.index(pair[0]), values["kind"], *values.values()

    pairs = sorted(zip(names["scenario"], names["context"], strict=True), key=order_of)
    names_of = pd.DataFrame(
        [(*pair, variant_of(*pair), size_of(*pair), in_words(*pair)) for pair in pairs],
        columns=[*EVERY, VARIANT, "size", "words"],
    )
    at = pd.MultiIndex.from_tuples(pairs).get_indexer(pd.MultiIndex.from_frame(rows[list(EVERY)]))
    ordered = rows.iloc[np.argsort(at, kind="stable")].reset_index(drop=True)
    return ordered.merge(names_of, on=list(EVERY), how="left")


def variant_of(scenario: str, context: str) -> str:
    """Return the part of a scenario to which a context belongs."""
    kind = kind_of(scenario, context)
    if kind in ("observation", "two_observations"):
        return f"{scenario}, {'one' if kind == 'observation' else 'two'} known"
    return f"{scenario}, {kind}"


def size_of(scenario: str, context: str) -> str:
    """Return by what the rows of the paper's tables differ within a variant."""
    values = values_of_context(context)
    if scenario == "dice":
        known = observation_words(values)
        size = f"{values['dice']} {'die' if values['dice'] == 1 else 'dice'}"
        return f"{size}, {known}" if known else size
    if scenario == "coins":
        return f"{values['coins']} coins, {values['weight']} to 1"
    if scenario == "choice":
        return f"{values['options']} options"
    if scenario != "preference":
        return scenario_of(scenario).size_of(values)
    return f"{('heads and tails', 'left and right')[values['pair']]}, {values['weight']} to 1"


def shares(data: Answers) -> pd.DataFrame:
    """Return the share of each outcome, a row per participant, form, context and outcome.

    With truth, count, share, low and high: of counts Wilson's interval of 95%, of others the ends
    of what is possible.
    """
    parts = []
    for (who, form), beliefs_of in data.once(material).beliefs.items():
        read = map(shares_of, beliefs_of)
        share, low, high = (np.concatenate(ends) for ends in zip(*read, strict=True))
        known = np.isfinite(share)
        frame = beliefs_of.to_frame()[["scenario", "context", "outcome", "truth", "count"]].assign(
            share=share, low=np.where(known, low, np.nan), high=np.where(known, high, np.nan)
        )
        frame["count"] = frame["count"].clip(lower=0)
        parts.append(frame.assign(**{WHO: who, FORM: form}))
    return _named(joined(parts))


def means(
    data: Answers,
    rows: pd.DataFrame,
    value: str,
    keys: Iterable[str] = (),
    score: str = "",
    shared: str = "",
) -> pd.DataFrame:
    """Return means over contexts by participant, form, variant and further keys, with a score."""
    whole = [WHO, FORM, VARIANT, *keys]
    rows = rows.assign(**{FORM: rows.get(FORM, STATED)})
    table = context_means(rows, value, whole, shared)
    each = rows.groupby([*whole, shared or "context"], sort=False)[value].mean().dropna()
    of_whole = each.groupby(level=whole, sort=False)
    n = of_whole.transform("size")
    moved: Any = (each - of_whole.transform("mean")) / np.sqrt(n * (n - 1.0))
    influence: dict[Any, dict[str, float]] = {
        key: dict(zip(part.index.get_level_values(-1), part, strict=True))
        for key, part in moved.groupby(level=whole, sort=False)
    }
    keys_of = table[whole].itertuples(index=False, name=None)
    found = [influence.get(key, {}) for key in keys_of]
    table[INFLUENCE] = pd.Series(found, index=table.index, dtype=object)
    return scored(data, table, score) if score else table


def scored(data: Answers, rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return rows with the score by which participants are compared, and the cell it is of."""
    cells = data.once(material).cells
    scenario = rows[VARIANT].str.partition(", ")[0]
    cell = [cells.get(pair, "") for pair in zip(scenario, rows[FORM], strict=True)]
    return rows.assign(score=f"{score}: " + rows[VARIANT] + ", " + rows[FORM], cell=cell)


def by_who(title: str, rows: pd.DataFrame, *lines: str, **view: Any) -> Grid:
    """Return the table of a column per participant, and form where there are several."""
    several = rows[FORM].nunique() > 1 if FORM in rows else False
    who: Any = rows[WHO] + (", " + rows[FORM] if several else "") if len(rows) else []
    return Grid(title, "who", lines, of=rows.assign(who=who), **view)


# The parts, in the order of the paper -----------------------------------------------------------


@PAPER.part("Questions and answers", compared=False)
def answers(data: Answers) -> Shown:
    """A revealed belief is how often each outcome was said behind a text that breaks off before it,
    or in reply to a question for it. It is over all sessions. Where an interface tells the
    probability, it is that. A stated answer is the choice among five probabilities. What names no
    outcome counts against the retained mass. A context with too little of it is flagged and has no
    distance: nothing replaces them. Intervals of the retained mass are Student's 95% over contexts.
    """
    contexts = data.once(contexts_of)
    keys = [WHO, FORM, "scenario"]
    frame, views = pd.DataFrame(), list[View]()
    if len(data.trials):
        frame, grid = counted_answers(data.trials, FORM, "scenario")
        views.append(grid)
    if len(contexts):
        flags = contexts.assign(flagged=contexts["flag"].astype(str) != "")
        counted = flags.groupby(keys, sort=False)["flagged"].agg(contexts="size", flagged="sum")
        retained = context_means(contexts, "retained", keys)
        kept = retained.merge(counted.reset_index(), on=keys)
        columns: Mapping[str, Cell] = {
            "contexts": "contexts", "flagged": "flagged", "retained mass": ends(),
        }  # fmt: skip
        views.append(Rows("Contexts, and what they retain", columns, keys, of=kept))
        frame = frame.merge(kept, on=keys, how="outer", sort=False) if len(frame) else kept
    return frame, *views


@PAPER.part("Flagged contexts", compared=False, optional=True)
def flagged(data: Answers) -> Shown:
    """Contexts with too little retained mass; the file has all, the table the first."""
    rows = data.once(contexts_of)
    rows = rows[rows["flag"].astype(str) != ""] if len(rows) else rows
    kept = [name for name in (WHO, FORM, "words", *EVERY, "retained", "flag") if name in rows]
    columns: Mapping[str, Cell] = {"retained": "retained", "why": "flag"}
    view = Rows("Flagged contexts", columns, (WHO, FORM, "words"), of=rows.head(WORST))
    return rows[kept].reset_index(drop=True), view


@PAPER.part("Distances from the truth, by scenario and form")
def distances(data: Answers) -> Shown:
    """Largest difference from the true probability (Chebyshev), sum of differences (Manhattan), and
    Kullback-Leibler divergences in both directions (nats, 1e-6 added to each share). Shares of few
    draws are away from the truth by chance alone: the last table says how far. The naive reading is
    by the tokens of an outcome alone, whatever follows them. Means over contexts, with Student's
    95% intervals over them. Contexts share dice and words. So intervals say how much these contexts
    differ, and not what other words would bring.
    """
    contexts = data.once(contexts_of)
    if not len(contexts):
        return (pd.DataFrame(),)
    parts = []
    for name in [name for name in WORDS if name in contexts and name != "retained"]:
        for keys in ((), ("size",)):
            rows = means(data, contexts, name, keys)
            if f"{name}_noise" in contexts:
                noise = means(data, contexts, f"{name}_noise", keys)
                shown = {"noise": "value", "noise_low": "low", "noise_high": "high"}
                rows = rows.assign(**{new: noise[old].to_numpy() for new, old in shown.items()})
            if name in DISTANCES and not keys:
                rows = scored(data, rows, WORDS[name])
            rows = rows[rows["n"] > 0]
            parts.append(rows.assign(measure=name, word=WORDS[name]))
    frame = joined(parts)
    if frame.empty:  # nobody has a readable answer
        return (frame,)
    frame = frame.assign(size=lambda r: r.get("size"))
    whole, finer = frame[frame["size"].isna()], frame[frame["size"].notna()]
    floor = whole[whole["measure"] == "chebyshev"]
    drawn = contexts.assign(who=contexts[WHO] + ", " + contexts[FORM])
    return (
        frame,
        by_who("{by}: mean over contexts", whole, VARIANT, by="word"),
        by_who("Chebyshev distance, row by row", finer[finer["measure"] == "chebyshev"],
               VARIANT, "size"),
        by_who("Excess of the likeliest outcome, law by law",
               finer[finer["measure"] == "likeliest"], VARIANT, "size"),
        by_who("Chebyshev distance that as many draws of the truth show", floor, VARIANT,
               cell=ends("noise", "noise_low", "noise_high")),
        Dots("Chebyshev distance of the contexts of each part: median, 10% and 90%. Crosses: what "
             "as many draws of the truth show on average.", "Chebyshev", VARIANT, along="who",
             null="mean", of=quantiles(drawn, ["who", VARIANT], "chebyshev",
                                       mean_of="chebyshev_noise")),
    )  # fmt: skip


@PAPER.part("Stated answers beside revealed beliefs")
def stated(data: Answers) -> Shown:
    """The stated error is the share of questions about a context that were answered by another
    letter than the right one. Guessing among five letters has .8. Means over contexts, with
    Student's 95% intervals over them.
    """
    errors = data.once(stated_errors)
    if not len(errors):
        return pd.DataFrame(), "No question about a probability was answered."
    rows = means(data, errors, "error", score="stated error")
    revealed = means(data, data.once(contexts_of), "chebyshev")
    both = [rows.assign(what="stated error"), revealed.assign(what="revealed (Chebyshev)")]
    caption = (
        "Stated error and revealed distance by scenario, with 95% intervals over contexts; grey "
        "line: stated error by guessing."
    )
    return (
        rows,
        by_who("Stated error by scenario", rows, VARIANT),
        by_who(
            "Stated error, row by row", means(data, errors, "error", ("size",)), VARIANT, "size"
        ),
        Dots(caption, "error", VARIANT, "what", null=GUESS, of=joined(both)),
    )


@PAPER.part("Base models and those instructed from them", compared=False, optional=True)
def instructed(data: Answers) -> Shown:
    """Chebyshev distances of the contexts of each part: quartiles, and the mean difference of an
    instructed model less its base model, context by context, with Student's 95% intervals over
    contexts. A table of features says which are pairs (participant, base_model, instructed).
    """
    contexts = data.once(contexts_of)
    known = None if data.about.features is None else pd.read_csv(data.about.features)
    if known is None or not len(contexts) or not {WHO, "base_model", "instructed"} <= set(known):
        return (pd.DataFrame(),)
    kinds = contexts.merge(known[[WHO, "base_model", "instructed"]], on=WHO)
    rows = []
    for (name, variant), some in kinds.groupby(["base_model", VARIANT], sort=False):
        sides = [some[some["instructed"] == kind] for kind in (0, 1)]
        for who, one in sides[1].groupby(WHO, sort=False):
            for base, other in sides[0].groupby(WHO, sort=False):
                both = one.merge(other, on=[*EVERY, FORM], suffixes=("", "_base"))
                gap = (both["chebyshev"] - both["chebyshev_base"]).to_numpy(dtype=float)
                test = t_tests(gap[None, np.isfinite(gap)], 0.0)
                row = {"base_model": name, VARIANT: variant, WHO: who, "base": base,
                       "contexts": int(test.n[0]), "value": test.mean[0], "low": test.low[0],
                       "high": test.high[0], "p_value": test.p_value[0]}  # fmt: skip
                for kind, values in (("base", other), ("instructed", one)):
                    parts = values["chebyshev"].quantile([0.25, 0.5, 0.75]).to_list()
                    row |= dict(zip((f"{kind} 25%", f"{kind} 50%", f"{kind} 75%"), parts,
                                    strict=True))  # fmt: skip
                rows.append(row)
    frame = pd.DataFrame(rows)
    quartiles = [f"{kind} {q}%" for kind in ("base", "instructed") for q in (25, 50, 75)]
    columns: dict[str, Cell] = {"difference": ends(), "p": "p_value", "contexts": "contexts"}
    columns |= {name: name for name in quartiles}
    return frame, Rows("Instructed less base", columns, (VARIANT, "base", WHO))


def stated_errors(data: Answers) -> pd.DataFrame:
    """Return the stated error of each participant and context: the share of wrong letters."""
    rows = data.once(material).stated
    rows = rows[rows["error"].notna()]
    keys = [WHO, *EVERY]
    if not len(rows):
        return rows
    return _named(rows.groupby(keys, sort=False)["error"].mean().reset_index())


@PAPER.part("Six biases")
def biases(data: Answers) -> Shown:
    """What marked outcomes are believed to have more than they have, as published: temperature and
    other biases count as well. As log-odds: the bias of the belief sampler that is nearest, which
    has a temperature and the other biases beside it. Intervals are of 95%, over contexts.
    """
    parts = [
        belief_biases(read).assign(**{WHO: who, FORM: form})
        for (who, form), read in data.once(material).beliefs.items()
        if not read.flagged.all()
    ]
    rows = joined(parts)
    if not len(rows):
        return (rows,)
    towards = rows["mark"].map(MARKS).fillna(rows["mark"])
    half = (rows["high"] - rows["low"]) / 2.0
    quantile = scipy.stats.t.ppf(0.975, rows["freedom"].where(rows["freedom"] > 0))
    rows = rows.assign(
        **{VARIANT: rows["scenario"] + ", " + towards}, standard_error=half / quantile,
        towards=towards,
    )  # fmt: skip
    shown = rows.assign(low=rows["low"].clip(*BIAS), high=rows["high"].clip(*BIAS))
    log_odds = ends("log_odds", "log_odds_low", "log_odds_high")
    caption = (
        "Biases: what marked outcomes are believed to have more than they have, with 95% intervals "
        "over contexts; 0 is none."
    )
    without = rows[rows["reason"].astype(str) != ""]
    lines = (WHO, FORM, "scenario", "towards")
    return (
        scored(data, rows, "bias"),
        by_who("Biases by scenario", shown, "scenario", "towards"),
        by_who("Biases as log-odds, of the belief sampler that is nearest", rows, "scenario",
               "towards", cell=log_odds),
        Rows("Biases without log-odds", {"why": "reason"}, lines, of=without),
        Dots(caption, "bias", VARIANT, FORM, null=0.0, of=shown),
    )  # fmt: skip


@PAPER.part("The nearest belief sampler", compared=False, optional=True)
def samplers(data: Answers) -> Shown:
    """Temperature and biases of the belief sampler that is nearest to all beliefs, with 90%
    intervals. These are of counts for sampled beliefs, and over contexts for exact ones. Of top-k
    tables they are the ends of what the tables allow.
    """
    if not data.about.option("every_measure", False):
        return (pd.DataFrame(),)
    rows = []
    for (who, form), read in data.once(material).beliefs.items():
        try:
            fit = fit_belief_sampler(read, who).to_frame()
        except ValueError as error:  # too little is left to be fitted
            fit = pd.DataFrame({"status": [str(error)]})
        rows.append(fit.assign(**{WHO: who, FORM: form}))
    frame = joined(rows).drop(columns="model", errors="ignore")
    names = [name for name in SAMPLER.names if name in frame and frame[name].notna().any()]
    columns: dict[str, Cell] = {}
    for name in names:
        pair = next((p for p in (("low", "high"), ("least", "most")) if f"{name}_{p[0]}" in frame),
                    None)  # fmt: skip
        columns[name] = name if pair is None else ends(name, *(f"{name}_{end}" for end in pair))
    columns["status"] = "status"
    return frame, Rows("Nearest belief samplers", columns, (WHO, FORM))


@PAPER.part("Increase of the error over the baseline")
def increase(data: Answers) -> Shown:
    """The error of each context (Chebyshev of revealed beliefs, wrong letters of stated answers)
    minus that of the same dice, coins or options when nothing went before and nothing is known.
    From both the distance is subtracted that as many draws of the truth show. An independent
    earlier result should change nothing. Contexts with one baseline share its error: means and
    Student's 95% intervals are over baselines. It tells whether there is an increase, and how large
    only with many draws: one of .14 comes out as .03 to .05 with 10 draws, as .09 with 100.
    """
    parts = []
    contexts, errors = data.once(contexts_of), data.once(stated_errors)
    if len(contexts):
        rows = increases(contexts, "chebyshev", [WHO, FORM]).assign(what="revealed")
        parts.append(rows.rename(columns={"chebyshev": "error"}))
    if len(errors):
        kinds = [kind_of(*pair) for pair in zip(errors["scenario"], errors["context"], strict=True)]
        rows = increases(errors.assign(kind=kinds), "error", [WHO])
        parts.append(rows.assign(what=STATED, **{FORM: STATED}))
    kept = [WHO, FORM, "what", *EVERY, "kind", VARIANT, "words", "error", "baseline",
            "baseline_value"]  # fmt: skip
    rows = joined([part[[*kept, "increase"]] for part in parts])
    if not len(rows):
        return (rows,)
    rows_of = means(data, rows, "increase", score="increase", shared="baseline")
    rows_of = rows_of[rows_of["n"] > 0].reset_index(drop=True)
    caption = (
        "Increase over the baseline, {by} errors: median, 10% and 90% of the contexts; 0 is none."
    )
    drawn = rows.assign(who=rows[WHO] + ", " + rows[FORM])
    return (
        rows_of,
        by_who("Mean increase over the baseline", rows_of, VARIANT),
        Dots(
            caption,
            "increase",
            VARIANT,
            along="who",
            null=0.0,
            by="what",
            of=quantiles(drawn, ["what", "who", VARIANT], "increase"),
        ),
    )


@PAPER.part("Mass on outcomes that were excluded")
def excluded(data: Answers) -> Shown:
    """Where something is known of the sum of the dice, some outcomes cannot come: the share of the
    belief that is on them nevertheless. Means over contexts, with Student's 95% intervals.
    """
    contexts = data.once(contexts_of)
    rows = contexts[contexts["excluded_outcomes"] > 0] if len(contexts) else contexts
    if not len(rows):
        return (pd.DataFrame(),)
    finer = means(data, rows, "excluded", ("size",))
    caption = "Share of the belief on outcomes that cannot come, with 95% intervals over contexts."
    return (
        means(data, rows, "excluded", score="excluded mass"),
        by_who("Mass on outcomes that were excluded", finer, VARIANT, "size"),
        Dots(caption, "mass", VARIANT, FORM, null=0.0),
    )


@PAPER.part("Evidence that should not matter", compared=False, optional=True)
def idle(data: Answers) -> Shown:
    """What an outcome is believed to have more, once evidence that should not matter names it, than
    without. Such evidence is an earlier outcome without influence, or a fact with a number. 0 is an
    agent that is not moved, whatever else it believes. Intervals are Student's 95% over the
    contexts that the evidence is added to.
    """
    rows = joined(
        mean_shifts(belief_shifts(read)).assign(**{WHO: who, FORM: form})
        for (who, form), read in data.once(material).beliefs.items()
    )
    columns: Mapping[str, Cell] = {
        "shift": ends(), "contexts": "contexts", "without it": "baselines",
    }  # fmt: skip
    caption = "What an outcome is believed to have more once it is named, with 95% intervals."
    return (
        rows,
        Rows("Shifts by evidence that should not matter", columns, (WHO, FORM, "scenario",
                                                                    "evidence")),
        Dots(caption, "shift", "scenario", "evidence", null=0.0),
    )  # fmt: skip


@PAPER.part("Names and their order", compared=False, optional=True)
def orders(data: Answers) -> Shown:
    """Two options that are equally probable, named in either order. A preference for a name stays
    when the order is turned. A preference for what is named first turns with it. Intervals are
    Wilson's 95% of the draws.
    """
    rows = data.once(shares)
    rows = rows[rows["scenario"] == "preference"] if len(rows) else rows
    if not len(rows):
        return (rows,)
    values = [values_of_context(name) for name in rows["context"]]
    first = [("heads", "tails", "left", "right")[2 * t["pair"] + t["first"]] for t in values]
    plain = [t["kind"] == 0 and t["weight"] == 1 for t in values]
    rows = rows.assign(named_first=first, value=rows["share"])[plain].reset_index(drop=True)
    said = rows["outcome"].astype(str).str.casefold()
    drawn = rows.assign(order=rows["named_first"] + " named first", what="share of " + said)
    drawn = drawn[said.isin(("heads", "left"))]
    caption = (
        "Share of heads and of left among equally probable options, by which is named first; grey "
        "line: one half."
    )
    return (
        rows,
        by_who("Shares of equally probable options", rows, "named_first", "outcome"),
        Dots(caption, "share", "what", "order", null=0.5, of=drawn),
    )


@PAPER.part("The same outcome, stated and revealed", compared=False)
def both_ways(data: Answers) -> Shown:
    """The probability of an outcome as it was stated (mean of the options chosen) and as it was
    revealed (share of the draws), against the truth. Rank correlations (Spearman) are over the
    outcomes that the questions are about, with 95% bootstrap intervals over contexts, and mean
    absolute errors with Student's 95% intervals.
    """
    rows = data.once(same_outcomes)
    agreed = pd.DataFrame(_agreements(rows))
    names = {
        "probabilities": "rank correlation", "errors": "of their errors",
        "revealed_error": "error, revealed", "stated_error": "error, stated",
    }  # fmt: skip
    columns: dict[str, Cell] = {"outcomes": "n"}
    columns |= {name: ends(n, f"{n}_low", f"{n}_high") for n, name in names.items()}
    lines = (WHO, FORM, "scenario")
    kept = rows if len(rows) else pd.DataFrame(columns=[WHO, FORM, "truth", "revealed", STATED])
    drawn = kept.melt([WHO, FORM, "truth"], ["revealed", STATED], "asked")
    caption = (
        "The same outcome in both ways: revealed and stated probability against the true one; "
        "on the dashed line they are right."
    )
    return (
        rows,
        Rows("Stated against revealed", columns, lines, of=agreed),
        Curves(caption, ("true probability", "probability"), "truth", "value", (WHO, FORM),
               ("asked",), joined=False, diagonal=True, unit=True, of=drawn),
    )  # fmt: skip


def same_outcomes(data: Answers) -> pd.DataFrame:
    """Return stated and revealed probability of each outcome that the question is about."""
    said, revealed = data.once(material).stated, data.once(shares)
    if not len(said) or not len(revealed):
        return pd.DataFrame()
    keys = [WHO, *EVERY, "outcome"]
    # The outcome is named by what is said, which a stated question may write with a capital.
    said = said.assign(outcome=said["outcome"].astype(str).str.casefold())
    mean = said.groupby(keys, sort=False)[STATED].agg(stated="mean", questions="size")
    contexts = data.once(contexts_of)
    usable = contexts.loc[contexts["flag"].astype(str) == "", [WHO, FORM, *EVERY]]
    revealed = revealed.merge(usable, on=[WHO, FORM, *EVERY])
    revealed = revealed.assign(outcome=revealed["outcome"].astype(str).str.casefold())
    rows = revealed.merge(mean.reset_index(), on=keys).rename(columns={"share": "revealed"})
    rows = rows.drop(columns=["count"]).dropna(subset=["revealed", STATED])
    return rows.reset_index(drop=True)


def _agreements(rows: pd.DataFrame) -> list[dict[str, Any]]:
    rows_of = []
    for (who, form), part in rows.groupby([WHO, FORM], sort=False) if len(rows) else ():
        parts = list(part.groupby("scenario", sort=False))
        for scenario, some in [*parts, *([("all", part)] if len(parts) > 1 else [])]:
            row = {WHO: who, FORM: form, "scenario": scenario, "n": len(some)}
            row |= agreement_of(some)
            for name in ("revealed", STATED):
                off = (some[name] - some["truth"]).abs().to_numpy(dtype=float)
                tests = t_tests(off[None])
                values = (tests.mean, tests.low, tests.high)
                for end, value in zip(("", "_low", "_high"), values, strict=True):
                    row[f"{name}_error{end}"] = float(value[0])
            rows_of.append(row)
    return rows_of


@PAPER.part("What wordings move", compared=False, optional=True)
def wordings(data: Answers) -> Shown:
    """All else on this page is of the first wording. The variance of what differs between contexts
    and wordings is split as that of a score between models and wordings (crossed design, expected
    mean squares, generalised 95% intervals that begin at 0). With few wordings the intervals are
    wide. Shares count what is estimated below 0 as 0. Contexts without a belief in every wording
    are left out, and counted. Top-k tables are not split, since what they leave open is no sampling
    error.
    """
    reworded = data.once(material).reworded
    rows, effects = (
        joined(of(beliefs).assign(**{WHO: who}) for who, beliefs in reworded.items())
        for of in (split_wordings, wording_effects)
    )
    models = split_models(reworded) if len(rows) else pd.DataFrame()

    def cell(row: Mapping[Any, Any]) -> str:
        written: Any = ends("variance")
        return f"{written(row)}, {row['share']:.1%}"

    numbers = {"contexts": "n_contexts", "wordings": "n_wordings"}
    counts_ = ("n_contexts", "n_wordings", "left_out")
    effect = ends("effect")
    caption = "Each wording against the mean of all, with 95% intervals; 0 is none."
    return (
        rows,
        Grid("What moves beliefs: variances, and their shares", "part",
             (WHO, "scenario", "value", *counts_), cell, of=rows.rename(columns=numbers)),
        Rows("Each wording against the mean of all", {"more than the mean": effect},
             (WHO, "scenario", "value", "wording"), of=effects),
        Grid("What moves the mean belief, the model or the wording", "part",
             ("scenario", "value", "models", "n_contexts"), cell,
             of=models.rename(columns=numbers)),
        Dots(caption, "more than the mean", "value", "wording", WHO, "effect", null=0.0,
             of=effects),
    )  # fmt: skip


@PAPER.part("Known beliefs, read back", compared=False, optional=True)
def read_back(data: Answers) -> Shown:
    """Largest deviation of a share from the agent's belief, over the contexts that are not flagged.
    It is by the reading of whole strings, and if one takes the tokens of an outcome for it.
    """
    revealed: Revealed = data.once(material)
    rows = []
    for pair, beliefs_of in revealed.beliefs.items():
        known, usable = revealed.known.get(pair), ~beliefs_of.flagged[beliefs_of.context]
        if known is not None and np.isfinite(known).all() and usable.any():
            row: dict[str, Any] = {WHO: pair[0], FORM: pair[1]}
            for name, read in (("whole", beliefs_of.normalised), ("naive", revealed.naive[pair])):
                row[name] = float(np.abs(read - known)[usable].max(initial=0.0))
            rows.append(row)
    columns: Mapping[str, Cell] = {"whole outcomes": "whole", "naive reading": "naive"}
    return pd.DataFrame(rows), Rows("Largest deviation", columns, (WHO, FORM))


@PAPER.part("Every context, in words", compared=False)
def contexts(data: Answers) -> Shown:
    """The contexts whose beliefs are farthest from the truth, with 95% intervals of their draws.
    The file has all, with the increase of Chebyshev's distance over the baseline beyond chance.
    """
    rows = data.once(contexts_of)
    if not len(rows):
        return rows, "No answer named an outcome."
    keys = [WHO, FORM, *EVERY]
    over = increases(rows, "chebyshev", [WHO, FORM])
    rows = rows.merge(over[[*keys, "increase"]], on=keys, how="left")
    worst = rows.sort_values("manhattan", ascending=False, kind="stable", na_position="last")
    worst = _with_ends(worst.head(WORST), data.once(material))
    columns: dict[str, Cell] = {
        WORDS[name]: ends(name, f"{name}_low", f"{name}_high") for name in DISTANCES
    }
    columns["draws"] = "draws"
    return rows, Rows("Farthest from the truth", columns, (WHO, FORM, "words"), of=worst)


def _with_ends(rows: pd.DataFrame, revealed: Revealed) -> pd.DataFrame:
    """Return contexts with the ends of the intervals of their distances (NAME_low, NAME_high)."""
    if f"{DISTANCES[0]}_low" in rows:
        return rows
    keys = [WHO, FORM, *EVERY]
    wanted = set(rows[keys].itertuples(index=False, name=None))
    parts = []
    for (who, form), read in revealed.beliefs.items():
        kept = tuple(b for b in read if (who, form, b.scenario, b.name) in wanted)
        if kept:
            rows_of = distribution_distances(RevealedBeliefs(kept))
            rows_of = rows_of[rows_of["measure"].isin(DISTANCES)]
            parts.append(rows_of.assign(**{WHO: who, FORM: form}))
    ends_ = pd.concat(parts).pivot(index=keys, columns="measure", values=["low", "high"])
    pairs: list[Any] = ends_.columns.to_list()
    ends_.columns = pd.Index([f"{name}_{end}" for end, name in pairs])
    return rows.merge(ends_.reset_index(), on=keys, how="left")


@PAPER.part("Beliefs, outcome by outcome", compared=False)
def belief_shares(data: Answers) -> Shown:
    """Shares of the outcomes beside the truth. Contexts are those that the paper draws, as far as
    the data have them. Of the first participants there are those of each scenario that are nearest
    to the truth, in the middle, and farthest from it (Manhattan).
    """
    rows = data.once(shares)
    if not len(rows):
        return (rows,)
    caption = "{by}: shares of the outcomes."
    die = [(1, 10, 0, NONE, NONE, NONE), *((1, 10, 1, k, NONE, NONE) for k in (1, 5, 10))]
    drawn = []
    for label, names in (
        ("Four options, picked once", [context_name(Choice.factors, (4, 0, NONE))]),
        ("Heads among three coins, tossed once", [context_name(Coins.factors, (3, 0, 1, 0, NONE))]),
        ("A die of 10 faces, after nothing, a 1, a 5 and a 10",
         [context_name(Dice.factors, values) for values in die]),
    ):  # fmt: skip
        drawn.append(rows[rows["context"].isin(names)].assign(drawn=label))
    first = list(dict.fromkeys(rows[WHO]))[:MOST_DRAWN]
    cases = joined(_cases(data.once(contexts_of), who) for who in first)
    if cases.empty:  # nobody has a readable answer
        return (rows,)
    some = rows.merge(cases, on=[WHO, FORM, *EVERY]).assign(words=lambda r: r["case"])
    return (
        rows,
        Draw(caption, draw_context, by="drawn", of=joined(drawn)),
        Draw("{by}: nearest, middle and farthest contexts.", draw_context, by=WHO, of=some),
    )


def _cases(contexts: pd.DataFrame, who: str) -> pd.DataFrame:
    """Return the contexts of a participant that are drawn: best, median and worst by scenario."""
    rows = []
    for scenario, part in contexts[contexts[WHO] == who].groupby("scenario", sort=False):
        ranked = part.dropna(subset=["manhattan"]).sort_values("manhattan", kind="stable")
        if not len(ranked):
            continue
        places = (0, (len(ranked) - 1) // 2, len(ranked) - 1)
        for case, index in zip(("best", "median", "worst"), places, strict=True):
            row = ranked.iloc[index]
            caption = f"{scenario}, {case}: {row['manhattan']:.2f}\n{row['words']}"
            rows.append({**{key: row[key] for key in (WHO, FORM, *EVERY)}, "case": caption})
    return pd.DataFrame(rows)


def draw_context(rows: pd.DataFrame) -> Figure:
    """Draw the shares of the outcomes, a panel per context, the truth and each participant."""
    several = rows[FORM].nunique() > 1
    rows = rows.assign(named=rows[WHO] + (", " + rows[FORM] if several else ""))
    panels = list(rows.groupby("words", sort=False))
    figure, axes = draw.panels(len(panels), height=2.6, columns=3 if len(panels) > 4 else 2)
    names = list(dict.fromkeys(rows["named"]))
    looks = looks_of(names)
    few = len(names) <= MOST_BARS
    for axis, (words, values) in zip(axes, panels, strict=True):
        first = values[values["named"] == values["named"].iloc[0]]
        x = np.arange(len(first))
        axis.bar(x, first["truth"], 0.9, color=draw.GREY, alpha=0.35, label="truth", zorder=1)
        for k, name in enumerate(names):
            some = values[values["named"] == name]
            if len(some) != len(first):
                continue
            at = x + 0.8 * ((k + 0.5) / len(names) - 0.5)
            colour, marker, _ = looks[name]
            if few:
                axis.vlines(at, some["low"], some["high"], color=colour, linewidth=1.0)
            axis.plot(
                at, some["share"], marker, color=colour, linestyle="none",
                markersize=4 if few else 3, label=name,
            )  # fmt: skip
        every = max(1, -(-len(x) // 12))
        labels = [str(o) if i % every == 0 else "" for i, o in enumerate(first["outcome"])]
        axis.set_xticks(x, labels, fontsize=draw.SMALL)
        axis.set_ylim(0, None)
        entitle(axis, str(words))
    key(figure, axes[0])
    return figure
