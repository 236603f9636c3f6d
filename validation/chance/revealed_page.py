"""The page of `knownminds reveal`: beliefs against the truth, against statements, and by model."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments.chance import choice, coins, counts, dice, linked_coins, preference
from knownminds.environments.chance.scenarios import SCENARIOS
from knownminds.inference.chance.belief_sampler_fit import SAMPLER
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Column,
    Finding,
    Page,
    Table,
    counted,
    listed,
    number,
    table,
    written,
)

from .revealed import COMPARED, ERROR, NAIVE, Revealed
from .revealed_further import (
    further_figures,
    further_notes,
    idle_table,
    intervals,
    law_table,
    wording_tables,
)
from .revealed_sentences import EXACT, idle_sentences, wording_sentences
from .stated_answers import shares_of

CASES = ("best", "median", "worst")
MOST_BARS = 4  # models whose beliefs are drawn as bars
MOST_FLAGS = 20  # flagged contexts that are listed
CHANCE = 0.8  # stated error of a guess among five letters
SHOWN = ("chebyshev", "manhattan", "kl_sum", "retained")
WORDS = {
    "chebyshev": "Chebyshev",
    "manhattan": "Manhattan",
    "kl_truth_belief": "KL(truth, belief)",
    "kl_belief_truth": "KL(belief, truth)",
    "kl_sum": "KL, both ways",
    "entropy": "entropy",
    "retained": "retained mass",
    ERROR: "stated error",
    NAIVE: "Manhattan, naive",
}
NAIVE_COLOUR = draw.ORANGE
BIASES_TITLE = (
    "Biases: what marked outcomes are believed to have more than they have, and the same as a "
    "parameter"
)


def revealed_page(revealed: Revealed) -> Page:
    """Return the page of what models reveal and state."""
    models = revealed.models
    named = _short(models)
    told = revealed.options.get("models", {})
    return Page(
        title="Revealed beliefs about chance",
        asked=[
            ("models", ", ".join(models)),
            ("scenarios", ", ".join(revealed.options.get("scenarios", []))),
            *(
                (named[name], listed({k: v for k, v in how.items() if k != "sent"}))
                for name, how in told.items()
                if name in named
            ),
            *([("only", listed(only))] if (only := revealed.options.get("only")) else []),
            ("computing time", f"{revealed.seconds:,.1f} s"),
        ],
        findings=[_finding(revealed, name, named) for name in models] + _read_back(revealed, named),
        sentences=_sentences(revealed, named),
        notes=_notes(revealed),
        tables=_tables(revealed, named),
        figures=[
            *(
                (_bars_caption(revealed, name, named), bars(revealed, name))
                for name in models[:MOST_BARS]
                if not revealed.beliefs[name].flagged.all()
            ),
            (
                "Distances from the truth and retained mass by scenario: quartiles, 5% and 95%, "
                "and each context.",
                spread(revealed, named),
            ),
            *_stated_figures(revealed, named),
            *_comparison_figures(revealed, named),
            *_bias_figures(revealed, named),
            *further_figures(revealed, named),
        ],
        command=revealed_command(revealed),
        versions=revealed.versions,
    )


def revealed_command(revealed: Revealed) -> str:
    """Return the command line that computes the same again."""
    told: Mapping[str, Any] = revealed.options.get("models", {})
    words = ["knownminds", "reveal"]
    scenarios = revealed.options.get("scenarios", [])
    words += scenarios if set(scenarios) != set(SCENARIOS) else []
    for name in told:
        words += ["--llm", name.partition(" (")[0]]
    how = [how for how in told.values()]
    first = how[0] if how else {}
    if any(other != first for other in how):
        return ""  # models that were asked in different ways need a command each
    names = ("source", "form", "draws", "top", "distractors", "asking", "threshold", "tokens")
    for name in (*names, "wordings"):
        if name in first:
            words += [f"--{name}", str(first[name])]
    for name in ("space", "leak"):
        words += [f"--{name}", str(first[name])] if name in first else []
    for name, value in first.get("truth", {}).items():
        words += ["--set", f"{name}={value}"]
    for name, value in revealed.options.get("only", {}).items():
        words += ["--set", f"{name}={value}"]
    words += ["--no-stated"] if first.get("stated") is False else []
    words += ["--even-faces"] if first.get("even_faces") else []
    words += ["--chat"] if first.get("chat") else []
    words += ["--no-signs"] if first.get("signs") is False else []
    seed = revealed.options.get("seed", 0)
    return shlex.join(words + (["--seed", str(seed)] if seed else []))


def _short(models: tuple[str, ...]) -> dict[str, str]:
    """Return names that fit a legend: of folders the last part, all different."""
    found: dict[str, str] = {}
    for name in models:
        provider, _, rest = name.partition(":")
        short = rest.rstrip("/").split("/")[-1] if provider == "transformers" else name
        short = short if len(short) <= 40 else f"{short[:39]}…"
        found[name] = name if short in found.values() else short
    return found


def _finding(revealed: Revealed, model: str, named: Mapping[str, str]) -> Finding:
    beliefs = revealed.beliefs[model]
    flagged, n = int(beliefs.flagged.sum()), len(beliefs)
    whole = _whole(revealed, model)
    sources = ", ".join(sorted(set(beliefs.sources)))
    why = []
    if whole is not None:
        why.append(f"Mean over {counted(n - flagged, 'context')} ({sources}).")
        if np.isfinite(whole["low"]):
            why.append(f"95% interval {number(whole['low'])} to {number(whole['high'])}.")
        else:
            why.append("One context has no interval of a mean.")
    if flagged:
        why.append(f"{flagged:,} of {counted(n, 'context')} left out, since flagged.")
    asked = revealed.stated.loc[revealed.stated["model"] == model, "error"]
    answered = int(asked.notna().sum())
    if answered:
        error = _whole(revealed, model, ERROR)
        why.append(
            f"Stated error, mean over {counted(error['contexts'], 'context')}, {answered:,} of "
            f"{counted(len(asked), 'question')} answered: {error['mean']:.3f} ({CHANCE:g} by "
            "guessing)."
        )
        if np.isfinite(error["low"]):
            why.append(
                f"Of the stated error, 95% interval {error['low']:.3f} to {error['high']:.3f}."
            )
    elif len(asked):
        why.append(f"None of {counted(len(asked), 'question')} has a stated error.")
    word = f"Manhattan {number(whole['mean'])}" if whole is not None else "no distance"
    return Finding(named[model], word, " ".join(why), "fair" if flagged > n / 2 else "")


def _whole(revealed: Revealed, model: str, measure: str = "manhattan") -> Any:
    """Return the summary of a measure over all scenarios of a model; None if there is none."""
    summary = revealed.summary()
    own = summary[(summary["model"] == model) & (summary["measure"] == measure)]
    return own.iloc[-1] if len(own) else None


def _read_back(revealed: Revealed, named: Mapping[str, str]) -> list[Finding]:
    found = []
    for name, (whole, naive) in revealed.read_back().items():
        exact = set(revealed.beliefs[name].sources) == {"exact"}
        good = whole < EXACT or not exact
        found.append(
            Finding(
                f"{named[name]}, read back",
                f"off by {whole:.2g}",
                "Largest deviation of a share from the mind's own belief, over the contexts that "
                f"are not flagged; {naive:.2g} if one takes the tokens of an outcome for the "
                "outcome.",
                "good" if good and exact else "" if good else "bad",
            )
        )
    return found


def _sentences(revealed: Revealed, named: Mapping[str, str]) -> list[str]:
    told = [
        "The revealed belief is the probability of each outcome, as a whole string that nothing "
        "makes longer, behind a text about chance that breaks off there; it is set against the "
        "exact probability."
    ]
    if len(revealed.stated):
        told.append("The stated answer is to a question with five options.")
    told += [f"{named[name]}: {sent}." for name in revealed.models if (sent := revealed.sent(name))]
    compared = revealed.comparison()
    compared = compared[compared["measure"] == "manhattan"]
    for _, own in compared.groupby("model", sort=False):
        told.append(_compared(own.iloc[-1], named))
    return told + idle_sentences(revealed, named) + wording_sentences(revealed, named)


def _compared(row: pd.Series[Any], named: Mapping[str, str]) -> str:
    """Say which of two models is nearer to the truth, and how sure that is."""
    one, other, n = named[row["model"]], named[row["reference"]], row["contexts"]
    contexts = f"Manhattan, {counted(n, 'context')}"
    difference, low, high = row["difference"], row["low"], row["high"]
    if abs(difference) < EXACT:
        return f"{one} is as far from the truth as {other}, on average ({contexts})."
    way = "farther from" if difference > 0 else "nearer to"
    said = f"{one} is {way} the truth than {other} by {abs(difference):.3f}"
    if not np.isfinite(low):
        return f"{said} ({contexts}, too few for an interval)."
    if low > 0 or high < 0:
        return f"{said} ({contexts}, 95% interval of the difference {low:.3f} to {high:.3f})."
    return (
        f"{said} ({contexts}, 95% interval of the difference {low:.3f} to {high:.3f}), which may "
        "be chance."
    )


def _notes(revealed: Revealed) -> list[str]:
    sources = {source for own in revealed.beliefs.values() for source in own.sources}
    notes = [
        "Outcomes are normalised in each context; the retained mass is what they had together. "
        "Contexts with less of it than the threshold are flagged, and have no distances: nothing "
        "is put in their place.",
        "Chebyshev max|p - q|, Manhattan sum|p - q|, Kullback-Leibler divergences in nats with "
        "1e-6 added to each probability. Intervals of means are Student's over contexts; contexts "
        "share dice and words, so that they say how much these contexts differ, and not what "
        "other words would bring.",
        "A bias is the difference between belief and truth, as published: temperature and other "
        "biases count as well. As log-odds it is that of the belief sampler that is nearest in "
        "the scenario, which has a temperature and the other biases beside it.",
    ]
    if sources - {"sampled"}:
        notes.append(
            "The probability of an outcome is that of all its spellings, with a space before it "
            "and without."
        )
    if "sampled" in sources:
        notes.append(
            "Sampled: distances of counts are too large by chance; beliefs.parquet and "
            "distances.parquet tell by how much (noise)."
        )
    if "top-k" in sources:
        notes.append(
            "Top-k: what the tables do not list may lie on any outcome that can still be said. "
            "Intervals of single contexts and of biases hold all that is possible; those of mean "
            "distances do not. A reply that ends behind an outcome is taken to be that outcome."
        )
    if len(revealed.stated):
        notes.append(
            "Stated probability: mean of the five options, each by the probability of its letter. "
            "Stated error: 1 - P(correct letter) among the letters. "
            "Intervals of agreement are bootstrap ones of 95%, over contexts."
        )
    return notes + further_notes(revealed)


def _bars_caption(revealed: Revealed, model: str, named: Mapping[str, str]) -> str:
    """Say what is drawn of a model's beliefs, and nothing that is not."""
    sources = set(revealed.beliefs[model].sources)
    told = [
        f"{named[model]}: contexts whose belief is nearest to the truth, in the middle, and "
        "farthest from it (Manhattan), by scenario."
    ]
    if "sampled" in sources:
        told.append("Lines are 95% intervals of counts.")
    if "top-k" in sources:
        told.append("Lines hold all that the tables allow.")
    if np.isfinite(revealed.naive[model]).any():
        told.append("Crosses: the naive reading, by the tokens of an outcome alone.")
    return " ".join(told)


def _tables(revealed: Revealed, named: Mapping[str, str]) -> list[Table]:
    def model(row: Mapping[Any, Any]) -> str:
        return named[row["model"]]

    fits = revealed.samplers.fillna(np.nan)
    parameters = [name for name in SAMPLER.names if name in fits]
    flags, more = _flags(revealed)
    return [
        _summary_table(revealed, model),
        *_comparison_tables(revealed, named),
        table(
            "Revealed and stated probability of the same outcome",
            revealed.agreement(),
            ("model", model),
            ("scenario", "{scenario}"),
            ("questions", "{questions}"),
            *(
                (head, f"{{{name}:.3f}} ({{{name}_low:.3f}} to {{{name}_high:.3f}})")
                for head, name in (
                    ("rank correlation", "probabilities"),
                    ("of their errors", "errors"),
                    ("mean error, revealed", "revealed_error"),
                    ("mean error, stated", "stated_error"),
                )
            ),
        ),
        table(
            BIASES_TITLE,
            revealed.biases,
            ("model", model),
            ("scenario", "{scenario}"),
            ("towards", "{mark}"),
            ("bias", "{value:.3f} ({low:.3f} to {high:.3f})"),
            ("as log-odds", "{log_odds:.3f} ({log_odds_low:.3f} to {log_odds_high:.3f})"),
            ("contexts", "{contexts}"),
        ),
        idle_table(revealed, model),
        *law_table(revealed, model),
        *wording_tables(revealed, named),
        table(
            "The nearest belief sampler, by Kullback-Leibler divergence",
            fits,
            ("model", model),
            *(
                (name.replace("_", " "), partial(revealed.estimate_of, name=name))
                for name in parameters
            ),
            ("status of the fit", "{status}"),
        ),
        table(
            "Flagged contexts" + (f", and {more:,} more in by_context.csv" if more else ""),
            flags,
            ("model", model),
            ("scenario", "{scenario}"),
            ("context", lambda row: label_of(row["scenario"], row["context"])),
            ("retained mass", "{value:.3f} ({low:.3f} to {high:.3f})"),
            ("why", "{flag}"),
        ),
    ]


def _summary_table(revealed: Revealed, model: Callable[[Any], str]) -> Table:
    summary = revealed.summary()
    measures = [name for name in (*COMPARED, NAIVE) if name in set(summary["measure"])]
    rows = [
        {
            "model": name,
            "scenario": scenario,
            "contexts": own["contexts"].max(),
            "flagged": own["flagged"].iloc[0],
            "by": own.set_index("measure").to_dict("index"),
        }
        for (name, scenario), own in summary.groupby(["model", "scenario"], sort=False)
    ]
    return table(
        "Means over contexts, with 95% intervals",
        rows,
        ("model", model),
        ("scenario", "{scenario}"),
        ("contexts", "{contexts}"),
        ("flagged", "{flagged}"),
        *_by_measure(measures, "{mean:.3f} ({low:.3f} to {high:.3f})"),
    )


def _comparison_tables(revealed: Revealed, named: Mapping[str, str]) -> list[Table]:
    tables = []
    for model, here in revealed.comparison().groupby("model", sort=False):
        rows = [
            {"scenario": scenario, "by": own.set_index("measure").to_dict("index")}
            for scenario, own in here.groupby("scenario", sort=False)
        ]
        tables.append(
            table(
                f"{named[str(model)]} minus {named[revealed.models[0]]}, context by context",
                rows,
                ("scenario", "{scenario}"),
                ("pairs", lambda row: str(row["by"].get("manhattan", {"contexts": 0})["contexts"])),
                *_by_measure(
                    here["measure"].unique(), "{difference:+.3f} ({low:+.3f} to {high:+.3f})"
                ),
            )
        )
    return tables


def _by_measure(measures: Iterable[str], how: str) -> list[Column]:
    """Return a column for each measure, of rows that hold theirs in `by`."""

    def write(measure: str, row: Mapping[str, Any]) -> str:
        return written(how, row["by"][measure]) if measure in row["by"] else "-"

    return [(WORDS[measure], partial(write, measure)) for measure in measures]


def _flags(revealed: Revealed) -> tuple[list[dict[str, Any]], int]:
    """Return the flagged contexts that are listed, and how many there are more."""
    rows: list[dict[str, Any]] = []
    more = 0
    kept = revealed.distances[revealed.distances["measure"] == "retained"]
    about, numbers = ["model", "scenario", "context"], ["value", "low", "high"]
    ends = kept[numbers].to_dict("records")
    masses = dict(zip(kept[about].itertuples(index=False, name=None), ends, strict=True))
    for name, own in revealed.beliefs.items():
        flagged = [k for k, flag in enumerate(own.flags) if flag]
        more += max(0, len(flagged) - MOST_FLAGS)
        rows += [
            {
                "model": name,
                "scenario": own.scenarios[k],
                "context": own.contexts[k],
                "flag": own.flags[k],
                **{str(n): v for n, v in masses[name, own.scenarios[k], own.contexts[k]].items()},
            }
            for k in flagged[:MOST_FLAGS]
        ]
    return rows, more


def cases_of(revealed: Revealed, model: str) -> pd.DataFrame:
    """Return the contexts of a model that are drawn: best, median and worst by scenario."""
    beliefs = revealed.beliefs[model]
    own = revealed.distances
    own = own[(own["model"] == model) & (own["measure"] == "manhattan")].reset_index(drop=True)
    number_of = {pair: k for k, pair in enumerate(zip(beliefs.scenarios, beliefs.contexts,
                                                      strict=True))}  # fmt: skip
    rows = []
    for scenario in own["scenario"].unique().tolist():
        ranked = (
            own[own["scenario"] == scenario]
            .dropna(subset=["value"])
            .sort_values("value", kind="stable")
        )
        if not len(ranked):
            continue
        for case, place in zip(CASES, (0, (len(ranked) - 1) // 2, len(ranked) - 1), strict=True):
            row = ranked.iloc[place]
            k = number_of[scenario, row["context"]]
            rows.append((scenario, case, row["context"], k, float(row["value"])))
    return pd.DataFrame(rows, columns=["scenario", "case", "context", "number", "manhattan"])


def bars(revealed: Revealed, model: str) -> str:
    """Draw revealed against true distributions, three cases of each scenario."""
    beliefs = revealed.beliefs[model]
    cases = cases_of(revealed, model)
    figure, axes = draw.panels(len(cases), height=2.1, columns=len(CASES))
    figure.set_size_inches(10, 2.25 * (len(cases) / len(CASES)) + 0.4)
    for axis, row in zip(axes, cases.to_dict("records"), strict=True):
        k = int(row["number"])
        own = beliefs.rows(k)
        shares, low, high = shares_of(beliefs, k)
        x = np.arange(len(shares))
        axis.bar(x - 0.2, beliefs.truth[own], 0.4, color=draw.GREY, label="truth")
        axis.bar(x + 0.2, shares, 0.4, color=draw.BLUE, label="revealed")
        wide = high - low > 1e-9
        axis.vlines((x + 0.2)[wide], low[wide], high[wide], color="black", linewidth=1)
        naive = revealed.naive[model][own]
        if np.isfinite(naive).all():
            axis.plot(x + 0.2, naive, "x", color=NAIVE_COLOUR, markersize=4, label="naive")
        every = max(1, -(-len(x) // 12))
        labels = [name if i % every == 0 else "" for i, name in enumerate(beliefs.outcomes_of(k))]
        axis.set_xticks(x, labels)
        axis.set_ylim(0, None)
        draw.entitle(axis, f"{row['scenario']}, {row['case']}: {row['manhattan']:.2f}")
        axis.set_xlabel(label_of(row["scenario"], row["context"]), fontsize=draw.SMALL - 1)
    draw.key(figure, axes[0])
    return draw.svg(figure)


def label_of(scenario: str, context: str) -> str:
    """Say in a few words what a context is about; of other scenarios, its name."""
    try:
        told = {part.rsplit(" ", 1)[0]: int(part.rsplit(" ", 1)[1]) for part in context.split(", ")}
        return _LABELS[scenario](told) if scenario in _LABELS else context
    except (KeyError, ValueError, IndexError):
        return context


def _dice(told: Mapping[str, int]) -> str:
    n, kind = told["dice"], dice.KINDS[told["kind"]]
    label = f"{n} {'die' if n == 1 else 'dice'} of {told['faces']}"
    names = [dice.OBSERVATIONS[told[k]] for k in ("observation", "second") if told[k] >= 0]
    return label + _before(kind, told["previous"]) + "".join(f", {_words(n)}" for n in names)


def _coins(told: Mapping[str, int]) -> str:
    label = f"{told['coins']} coins, {coins.FACES[told['face']]} {told['weight']} to 1"
    return label + _before(coins.KINDS[told["kind"]], told["previous"])


def _choice(told: Mapping[str, int]) -> str:
    previous = choice.OPTIONS[told["previous"]] if told["previous"] >= 0 else ""
    return f"{told['options']} options" + _before(choice.KINDS[told["kind"]], previous)


def _preference(told: Mapping[str, int]) -> str:
    names = preference.NAMES[told["pair"]]
    previous = names[told["previous"]] if told["previous"] >= 0 else ""
    label = f"{names[told['first']]} named first, {told['weight']} to 1"
    return label + _before(preference.KINDS[told["kind"]], previous)


def _counts(told: Mapping[str, int]) -> str:
    means = [told[name] / counts.TENTHS for name in ("mean", "other") if told[name] >= 0]
    label = f"{counts.LAWS[told['law']]}, {' or '.join(f'{mean:g}' for mean in means)}"
    earlier = ", ".join(str(told[name]) for name in counts.EARLIER if told[name] >= 0)
    return label + (f", after {earlier}" if earlier else "") + _fact(told)


def _linked(told: Mapping[str, int]) -> str:
    label = f"{told['coins']} coins, {coins.FACES[told['face']]} {told['weight']} to 1"
    label += f", r = {told['correlation'] / linked_coins.PERCENT:g}"
    names = (coins.FACES[1 - told["face"]], coins.FACES[told["face"]])
    return label + (f", {names[told['seen']]} first" if told["seen"] >= 0 else "") + _fact(told)


def _fact(told: Mapping[str, int]) -> str:
    return f", idle {told['fact']}" if told["fact"] >= 0 else ""


def _before(kind: str, previous: int | str) -> str:
    return f", {kind}, {previous} before" if kind in ("independent", "dependent") else ""


def _words(name: str) -> str:
    return name.replace("_", " the ")


_LABELS: Mapping[str, Callable[[Mapping[str, int]], str]] = {
    "dice": _dice,
    "coins": _coins,
    "choice": _choice,
    "preference": _preference,
    "counts": _counts,
    "linked_coins": _linked,
}


def spread(revealed: Revealed, named: Mapping[str, str]) -> str:
    """Draw the distribution of distances and retained mass by scenario and model."""
    wide = revealed.by_context()
    scenarios = list(dict.fromkeys(wide["scenario"]))
    figure, axes = draw.panels(len(SHOWN), height=3.2, columns=2)
    figure.set_size_inches(10, 6.6)
    models = revealed.models
    width = 0.8 / len(models)
    rng = np.random.default_rng(0)  # of the places of points within a box alone
    for axis, measure in zip(axes, SHOWN, strict=True):
        for m, model in enumerate(models):
            colour = draw.PALETTE[m % len(draw.PALETTE)]
            for s, scenario in enumerate(scenarios):
                here = (wide["model"] == model) & (wide["scenario"] == scenario)
                values = wide.loc[here, measure].to_numpy(dtype=float)
                values = values[np.isfinite(values)]
                if not len(values):
                    continue
                at = s + (m - (len(models) - 1) / 2) * width
                x = at + (rng.random(len(values)) - 0.5) * 0.7 * width
                axis.plot(
                    x, values, ".", color=colour, markersize=2.5, alpha=0.5, zorder=1,
                    rasterized=True,
                )  # fmt: skip
                axis.boxplot(
                    values, positions=[at], widths=0.8 * width, whis=(5, 95), showfliers=False,
                    patch_artist=True, medianprops={"color": "black", "linewidth": 1.5},
                    boxprops={"facecolor": "none", "edgecolor": colour, "linewidth": 1.2},
                    whiskerprops={"color": colour}, capprops={"color": colour}, zorder=2,
                )  # fmt: skip
            axis.plot([], [], "s", color=colour, label=named[model])
        if measure == "retained":
            axis.set_ylim(-0.02, 1.02)
            for own in list(revealed.beliefs.values())[:1]:
                draw.limit(axis, own.threshold)
        axis.set_xticks(range(len(scenarios)), scenarios)
        axis.set_xlim(-0.6, len(scenarios) - 0.4)
        draw.entitle(axis, WORDS[measure])
    if len(models) > 1:
        draw.key(figure, axes[0])
    return draw.svg(figure)


def _stated_figures(revealed: Revealed, named: Mapping[str, str]) -> list[tuple[str, str]]:
    usable = revealed.stated[revealed.stated["flag"] == ""]
    usable = usable.dropna(subset=["revealed", "stated"])
    if usable.empty:
        return []
    return [
        (
            "The same outcome asked both ways: true probability against the revealed one and the "
            "stated one; on the dashed line the model is right.",
            both_ways(usable, named),
        ),
        (
            "Stated error against the revealed distance (Manhattan) of the same context, by "
            f"scenario; the dashed line is guessing ({CHANCE:g}).",
            stated_against_revealed(revealed, named),
        ),
    ]


def both_ways(usable: pd.DataFrame, named: Mapping[str, str]) -> str:
    """Draw revealed and stated probability against the truth, one panel per model."""
    models = list(dict.fromkeys(usable["model"]))
    figure, axes = draw.panels(len(models), height=3.4, columns=3)
    for axis, model in zip(axes, models, strict=True):
        own = usable[usable["model"] == model]
        axis.plot([0, 1], [0, 1], "--", color=draw.GREY, linewidth=1)
        for name, (colour, marker, _) in zip(("revealed", "stated"), draw.styles(2), strict=True):
            axis.plot(
                own["truth"], own[name], marker, color=colour, markersize=3, alpha=0.5, label=name
            )
        axis.set_xlabel("true probability")
        axis.set_ylabel("told probability")
        draw.entitle(axis, named[model])
    draw.key(figure, axes[0])
    return draw.svg(figure)


def stated_against_revealed(revealed: Revealed, named: Mapping[str, str]) -> str:
    """Draw the stated error of each context against its revealed distance."""
    wide = revealed.by_context().dropna(subset=["manhattan", ERROR])
    models = [name for name in revealed.models if (wide["model"] == name).any()]
    scenarios = list(dict.fromkeys(wide["scenario"]))
    figure, axes = draw.panels(max(len(models), 1), height=3.4, columns=3)
    for axis, model in zip(axes, models, strict=False):
        own = wide[wide["model"] == model]
        for scenario, (colour, marker, _) in zip(
            scenarios, draw.styles(len(scenarios)), strict=True
        ):
            some = own[own["scenario"] == scenario]
            axis.plot(
                some["manhattan"], some[ERROR], marker, color=colour, markersize=3, alpha=0.6,
                label=scenario,
            )  # fmt: skip
        draw.limit(axis, CHANCE)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel("revealed: Manhattan distance")
        axis.set_ylabel("stated error")
        draw.entitle(axis, named[model])
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _comparison_figures(revealed: Revealed, named: Mapping[str, str]) -> list[tuple[str, str]]:
    compared = revealed.comparison()
    if compared.empty:
        return []
    caption = (
        f"Differences from {named[revealed.models[0]]}, paired by context, with 95% intervals; left"
        " of the dashed line the other model has less (of distances: is nearer to the truth)."
    )
    return [(caption, differences(compared, named))]


def differences(compared: pd.DataFrame, named: Mapping[str, str]) -> str:
    """Draw paired differences by measure and scenario."""
    measures = [m for m in (*SHOWN, ERROR) if (compared["measure"] == m).any()]
    scenarios = list(dict.fromkeys(compared["scenario"]))
    models = list(dict.fromkeys(compared["model"]))
    height = 1.4 + 0.3 * len(scenarios) * len(models)
    figure, axes = draw.panels(len(measures), height=height, columns=5)
    for k, (axis, measure) in enumerate(zip(axes, measures, strict=True)):
        here = compared[compared["measure"] == measure].set_index("scenario")
        intervals(axis, here, scenarios, "difference", {name: named[name] for name in models})
        if k:
            axis.set_yticklabels([""] * len(scenarios))
        draw.entitle(axis, WORDS[measure])
    if len(models) > 1:
        draw.key(figure, axes[0])
    return draw.svg(figure)


def _bias_figures(revealed: Revealed, named: Mapping[str, str]) -> list[tuple[str, str]]:
    if revealed.biases.empty:
        return []
    caption = (
        "Biases: what marked outcomes are believed to have more than they have, with 95% intervals "
        "over contexts; 0 is none."
    )
    return [(caption, biases(revealed, named))]


def biases(revealed: Revealed, named: Mapping[str, str]) -> str:
    """Draw the biases by scenario and mark, a colour per model."""
    groups = list(revealed.biases.groupby("scenario", sort=False))
    figure, axes = draw.panels(len(groups), height=3.0, columns=4)
    for axis, (scenario, here) in zip(axes, groups, strict=True):
        marks = list(dict.fromkeys(here["mark"]))
        intervals(axis, here.set_index("mark"), marks, "value", named)
        draw.entitle(axis, str(scenario))
    if len(named) > 1:
        draw.key(figure, axes[0])
    return draw.svg(figure)
