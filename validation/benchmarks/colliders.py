"""The page of the collider benchmark: causal judgements of models beside people's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import NoisyOr
from knownminds.environments import Trials
from knownminds.inference import MEASURES
from knownminds.inference.causes.alignment import POOLED
from knownminds.inference.causes.causal_answers import causal_answers
from knownminds.inference.causes.cell_contrast import CellContrast
from knownminds.inference.causes.domain_differences import DOMAINS
from knownminds.inference.causes.least_squares_reasoner import leave_one_task_out
from knownminds.inference.causes.markov_violation import COMPLIANT
from knownminds.inference.causes.reasoner_intervals import ReasonerIntervals, reasoner_intervals
from knownminds.inference.causes.robustness import robustness
from knownminds.inference.measure import t_tests
from knownminds.validation.causes.causal_page import MOST_DRAWN, four_panels
from knownminds.validation.causes.causal_profile import (
    CHOSEN_FROM,
    CONTRASTS,
    QUANTITIES,
    UNIT,
    CausalProfile,
    _read,
    causal_profile,
    complying,
)
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Column, Section, Table, between, table

from . import collider_figures as pictures
from .shown import WHO, apart, beside, first_rows, interval, part, readable

if TYPE_CHECKING:
    from .registry import About

SETTING, PROMPT, PEOPLE = "setting", "prompt", "people"
STORIES, ABSTRACT = "stories", "abstract"
NUMBER, THOUGHT = "number", "chain of thought"
PARAMETERS = ("b", "m1", "m2", "p")
NEVER = ("", "none", "nan", "None", "False", "false", "0", "no")
# What models are compared by, two at a time.
COMPARED = {
    "p": "p(C)",
    "b": "leak b",
    "m1": "strength m1",
    "m2": "strength m2",
    "rmse": "RMSE of the fit",
    "reasoning_consistency": "consistency",
    "determinacy": "determinacy",
    "explaining_away_released": "explaining away, VIII - VI",
    "explaining_away": "explaining away, VII - VI",
    "markov_violation": "Markov violation, IV - V",
}
RANKED = 3  # agents named at either end
LARGE = 0.3  # the stricter published threshold of explaining away
OVER_STORIES = "Intervals are of 95%, by leaving out each story (domain and sense) in turn."
OVER_CELLS = "Intervals are Student's of 95%, over cells (domain, sense, direction)."


@dataclass(frozen=True)
class ColliderResult:
    """Everything that the page of the collider benchmark tells.

    Parameters
    ----------
    answers
        Answers of models, and of people where there are any, with setting and prompt.
    profile
        Fits, measures, alignment, tests and changes; see `CausalProfile`.
    units
        One row per model, setting and prompt: those of the profile, with NAME_low and NAME_high of
        each quantity that has an interval.
    intervals
        What units have without each story.
    people
        Whether there are answers of people.
    """

    answers: pd.DataFrame
    profile: CausalProfile
    units: pd.DataFrame
    intervals: ReasonerIntervals
    people: bool

    @property
    def purple(self) -> str:
        """Say that people are drawn, if they are."""
        return " People are in purple." if self.people else ""

    def of_people(self, quantity: str) -> dict[str, float] | None:
        """Return value, low and high of people; None where there is none."""
        own = self.units[self.units[WHO] == PEOPLE]
        if not len(own):
            return None
        ends = {end: float(own[f"{quantity}_{end}"].iloc[0]) for end in ("low", "high")}
        return {"value": float(own[quantity].iloc[0]), **ends}


def sections(trials: pd.DataFrame, about: About) -> list[Section]:
    """Return the parts of the page, in the order of the paper.

    Parameters
    ----------
    trials
        Trials of `collider`, with the columns participant, content, overload and reasoning.
    about
        Its `people` are judgements of people about the same stories: a file of trials or of means,
        see `reference_means`; without them nobody is compared with people, and the page says so.
        Its `features` may have the column release_date.

    Raises
    ------
    ValueError
        If no trial is about a collider, or a column is missing.
    """
    found = collider_result(trials, reference=about.people, seed=about.seed)
    features = None if about.features is None else pd.read_csv(about.features)
    return [
        _answers_section(found),
        _domains_section(found),
        _alignment_section(found),
        _predictions_section(found),
        _errors_section(found),
        _consistency_section(found),
        _signatures_section(found),
        _robustness_section(found),
        _distribution_section(found),
        _dates_section(found, features),
        _contrasts_section(found),
        _ranks_section(found),
        _parameters_section(found, about),
    ]


def collider_result(
    trials: pd.DataFrame,
    *,
    reference: Trials | pd.DataFrame | str | Path | None = None,
    released: bool = False,
    seed: int = 0,
) -> ColliderResult:
    """Compute everything that the page tells; see `sections`."""
    answers = _with_conditions(trials)
    people = None
    if reference is not None:
        people = _people(reference)
        answers = pd.concat([answers, people], ignore_index=True)
    profile = causal_profile(
        answers,
        agent=WHO,
        conditions=[SETTING, PROMPT],
        reference=None if people is None else people.assign(subject=people["person"]),
        seed=seed,
        released=released,
    )
    profile = replace(profile, reference="people" if people is not None else "")
    units, intervals = _with_intervals(answers, profile)
    return ColliderResult(answers, profile, units, intervals, people is not None)


def _with_conditions(trials: pd.DataFrame) -> pd.DataFrame:
    """Return answers with setting and prompt; of names without meaning their kind is the domain."""
    frame = trials[trials["experiment"] == "collider"] if "experiment" in trials else trials
    missing = [name for name in (WHO, "content", "overload", "reasoning") if name not in frame]
    if missing:
        raise ValueError(
            "The page of colliders reads the columns participant, content, overload and reasoning; "
            f"{missing[0]!r} is missing. Join the runs with `knownminds benchmark`."
        )
    if not len(frame):
        raise ValueError("The page of colliders reads trials of collider; there are none.")
    answers = causal_answers(frame).copy()
    content = answers["content"].astype(str)
    meaningful = content.isin(("meaningful", *NEVER)).to_numpy()
    overload = answers["overload"].astype(str)
    plain = overload.isin(NEVER).to_numpy()
    control = (
        answers["control"].astype(str).isin(("True", "1", "true", "1.0"))
        if "control" in answers
        else False
    )
    kind = np.where(control, ", filler ", ", overload ")
    kinds: pd.Series[Any] = pd.Series(kind, index=answers.index, dtype="str")
    more = np.where(plain, "", kinds + overload)
    answers[SETTING] = np.where(meaningful, STORIES, ABSTRACT) + more.astype(object)
    reasoning = answers["reasoning"].astype(str)
    numeric = reasoning.isin((*NEVER, "numeric", "number")).to_numpy()
    thought = reasoning.str.replace("_", " ").to_numpy()
    answers[PROMPT] = np.where(numeric, NUMBER, thought).astype(object)
    for name in apart(answers, (SETTING, PROMPT)):
        answers[SETTING] = answers[SETTING] + f", {name} " + answers[name].astype(str)
    answers["domain"] = np.where(meaningful, answers["domain"].astype(str), content).astype(object)
    answers[WHO] = answers[WHO].astype(str)
    # Plain before overloaded, stories before abstract, numbers before thoughts.
    order = pd.DataFrame(
        {"overloaded": ~plain, "abstract": ~meaningful, "thought": ~numeric},
        index=answers.index,
    )
    ranked = order.sort_values(list(map(str, order.columns)), kind="stable").index
    sorted_answers: pd.DataFrame = answers.loc[ranked].reset_index(drop=True)
    return sorted_answers


def _people(reference: Trials | pd.DataFrame | str | Path) -> pd.DataFrame:
    """Return answers of people as one more agent, who answered with numbers about stories."""
    read = _read(reference) if isinstance(reference, str | Path) else reference
    if isinstance(read, pd.DataFrame) and "mean" in read and "response" not in read:
        read = read.rename(columns={"mean": "response"})
    own = causal_answers(read).copy()
    own["person"] = own["subject"].astype(str) if "subject" in own else "people"
    told = {WHO: PEOPLE, SETTING: STORIES, PROMPT: NUMBER}
    return own.assign(**told)


def _with_intervals(
    answers: pd.DataFrame, profile: CausalProfile
) -> tuple[pd.DataFrame, ReasonerIntervals]:
    """Return the units of a profile with the ends of the interval of each quantity."""
    unit = answers[WHO] + ", " + answers[SETTING] + ", " + answers[PROMPT]
    read = answers.assign(**{UNIT: unit, "subject": unit})
    fitted = leave_one_task_out(read, parameters=CHOSEN_FROM, scoring=profile.scoring)
    intervals = reasoner_intervals(read, fitted)
    units = profile.units.copy()
    order = [intervals.subjects.index(name) for name in units[UNIT]]
    for name in intervals.value:
        units[name] = intervals.value[name][order]
        units[f"{name}_low"] = intervals.low[name][order]
        units[f"{name}_high"] = intervals.high[name][order]
        units[f"{name}_error"] = intervals.error[name][order]
        units[f"{name}_freedom"] = [len(intervals.blocks[k]) - 1.0 for k in order]
    for name in CONTRASTS:
        measure = MEASURES[name]
        assert isinstance(measure, CellContrast)
        measure = copy(measure)
        measure.pooled = profile.released
        for end in ("low", "high", "error", "freedom"):
            units[f"{name}_{end}"] = np.nan
        if not read["task"].isin([measure.plus, measure.minus]).any():
            continue
        cells = measure.by_cell(read)
        tests = t_tests(cells.value, bounds=measure.bounds)
        at = units[UNIT].map({s: k for k, s in enumerate(cells.subjects)}).to_numpy()
        units[f"{name}_low"], units[f"{name}_high"] = tests.low[at], tests.high[at]
        units[f"{name}_error"] = tests.standard_error[at]
        units[f"{name}_freedom"] = tests.n[at] - 1.0
    units["cell"] = _first_cells(read, units)
    return units, intervals


def _first_cells(read: pd.DataFrame, units: pd.DataFrame) -> list[str]:
    """Return a cell of each unit, which may have several."""
    if "cell" not in read:
        return [""] * len(units)
    first = read.drop_duplicates(UNIT).set_index(UNIT)["cell"]
    return [str(first[name]) for name in units[UNIT]]


def scores(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return what participants are compared by; see `registry.Scores`."""
    return _scores(collider_result(trials, reference=about.people, seed=about.seed))


def _scores(found: ColliderResult) -> pd.DataFrame:
    """Return what models are compared by, two at a time."""
    units = found.units[found.units[WHO] != PEOPLE]
    parts = [
        pd.DataFrame(
            {
                WHO: units[WHO],
                "score": f"{told}: " + units[SETTING] + ", " + units[PROMPT],
                "cell": units["cell"],
                "value": units[name].astype(float),
                "standard_error": units[f"{name}_error"].astype(float),
                "freedom": units[f"{name}_freedom"].astype(float),
            }
        )
        for name, told in COMPARED.items()
    ]
    return pd.concat(parts, ignore_index=True)


# What stands on the page, in the order of the paper.


def _whose(*more: Column) -> list[Column]:
    return [("model", "{participant}"), ("setting", "{setting}"), ("prompt", "{prompt}"), *more]


def _answers_section(found: ColliderResult) -> Section:
    held = found.answers.assign(read=readable(found.answers).to_numpy())
    keys = [WHO, SETTING, PROMPT]
    rows = held.groupby(keys, sort=False)["read"].agg(asked="size", read="sum").reset_index()
    rows["read"] = rows["read"].astype(int)
    rows["share"] = rows["read"] / rows["asked"]
    told = _side_by_side(
        "Answers that could be read, of all questions",
        rows,
        lambda row: f"{row['read']:,} of {row['asked']:,}" if row["read"] else "no readable answer",
    )
    return part(
        "What was asked, and what came back",
        "A setting is what the questions are about (stories, or names that mean nothing) and what "
        "was added to them; a prompt asks for a number alone, or for thoughts before it. Answers "
        "that could not be read are counted and left out; nothing is put in their place.",
        "answers",
        rows,
        told,
    )


def _domains_section(found: ColliderResult) -> Section:
    omnibus, pairs = found.profile.omnibus, found.profile.pairs
    rows = omnibus
    if len(rows):
        rows = rows.assign(matched_p_adjusted=found.profile.matched["p_adjusted"].to_numpy())
    tables: list[Table] = []
    for family, own in rows.groupby("family", sort=False) if len(rows) else ():
        tables.append(beside(f"Kruskal-Wallis: {family}", own, "condition", _omnibus, ["of"]))
    if len(pairs):
        within = pairs[(pairs["family"] == DOMAINS) & (pairs["p_adjusted"] < 0.05)]
        tables.append(
            first_rows(
                "Pairs of domains that differ (Mann-Whitney)",
                within,
                ("condition", lambda row: row["condition"] or "-"),
                ("of", "{of}"),
                ("first", "{first}"),
                ("second", "{second}"),
                ("rank-biserial r", "{r:.2f}"),
                ("p adjusted", "{p_adjusted:.3g}"),
            )
        )
    drawn = part(
        "Domains: do judgements depend on what the story is about?",
        "Tests of Kruskal and Wallis over all answers, as published, adjusted by Benjamini and "
        "Hochberg within a condition. They take the spread between tasks for noise, and so reject "
        "too seldom; the matched p compares the same questions (Friedman; of two groups "
        "Wilcoxon). Of abstract settings the kind of names is the domain. Pairs of models are in "
        "domain_pairs.csv.",
        "domains",
        rows,
        tables,
    )
    return replace(drawn, frames={**drawn.frames, "domain_pairs": pairs})


def _omnibus(row: Mapping[Any, Any]) -> str:
    """Write down a test of Kruskal and Wallis, and the matched one."""
    if row["status"] != "ok":
        return str(row["status"])
    told = f"H({row['freedom']}) = {row['statistic']:.2f}, p {row['p_adjusted']:.2g}"
    matched = row["matched_p_adjusted"]
    return told + (f", matched {matched:.2g}" if np.isfinite(matched) else "")


def _alignment_section(found: ColliderResult) -> Section:
    heading = "Alignment with people"
    if not found.people:
        return part(
            heading,
            "No judgements of people were given, and none ship: give them as a table of trials or "
            "of means, and each model's rank correlation with them stands here, by domain.",
            "alignment",
            pd.DataFrame(columns=[WHO, SETTING, PROMPT, "domain", "rho", "low", "high"]),
        )
    rows = found.profile.alignment.rename(columns={"agent": UNIT})
    keys = found.profile.units[[UNIT, WHO, SETTING, PROMPT]]
    rows = keys.merge(rows, on=UNIT).drop(columns=UNIT)
    # People and themselves need no correlation; what has other questions has none.
    rows = rows[(rows[WHO] != PEOPLE) & (rows["items"] > 0)].reset_index(drop=True)
    pooled = rows[rows["domain"] == POOLED].sort_values("rho", ascending=False, kind="stable")
    rank = {tuple(key): k for k, key in enumerate(pooled[[WHO, SETTING, PROMPT]].to_numpy())}
    wide = rows.pivot_table(
        index=[WHO, SETTING, PROMPT], columns="domain",
        values=["rho", "low", "high"], sort=False, observed=True,
    )  # fmt: skip
    domains = [d for d in dict.fromkeys(rows["domain"]) if d in wide["rho"]] if len(wide) else []

    def cell(domain: str) -> Any:
        def write(row: Mapping[str, Any]) -> str:
            values = [
                float(row["wide"].get((end, domain), np.nan)) for end in ("rho", "low", "high")
            ]
            return interval(values[0], values[1], values[2])

        return write

    whose: list[tuple[Any, Any]] = list(wide.iterrows())
    told = [
        dict(zip((WHO, SETTING, PROMPT), key, strict=True)) | {"wide": own.to_dict()}
        for key, own in sorted(whose, key=lambda item: rank.get(tuple(item[0]), 10**9))
    ]
    drawn = rows.rename(columns={"rho": "value"})
    drawn = drawn[drawn[SETTING].str.startswith(STORIES)]
    return part(
        heading,
        "Spearman's rank correlation of a model's answers with the mean answers of people to the "
        "same questions, pooled and by domain, with 95% percentile intervals of 2000 bootstrap "
        "resamples over items. Only stories are shared with people.",
        "alignment",
        rows,
        [
            table(
                "Rank correlation with people, highest first",
                told,
                *_whose(*((domain, cell(domain)) for domain in domains)),
            )
        ],
        pictures.alignment_figures(drawn),
    )


def _predictions_section(found: ColliderResult) -> Section:
    profile = found.profile
    plain = profile.units[profile.units[SETTING] == profile.units[SETTING].iloc[0]]
    shown = replace(profile, units=plain, conditions=(PROMPT,))
    keys = profile.units[[UNIT, WHO, SETTING, PROMPT]]
    rows = keys.merge(profile.tasks, on=UNIT).drop(columns=UNIT)
    models = plain[WHO].nunique()
    more = f" The first {MOST_DRAWN} of {models} models." if models > MOST_DRAWN else ""
    told = (
        f"Answers to the eleven tasks ({plain[SETTING].iloc[0]}): means with 95% intervals, "
        "joined; dashed, the noisy-OR fitted to them." + more
    )
    return part(
        "Answers and predictions, task by task",
        "Both directions of a task are averaged and written as that about C1. A slope from IV to V "
        "is a Markov violation; a rise from VI to VIII is explaining away.",
        "tasks",
        rows,
        (),
        [(told, draw.svg(four_panels(shown)))],
    )


def _errors_section(found: ColliderResult) -> Section:
    names = ("loss", "rmse", "mae", "r2")
    rows = _quantity_rows(found, names)
    labels = {"loss": "Huber loss", "rmse": "RMSE", "mae": "MAE", "r2": "R2"}
    return part(
        "Are answers normative? Errors of the fitted noisy-OR",
        "How far the answers are from the leaky noisy-OR that is nearest to them, on a scale from "
        "0 to 1 (loss: half the squared error). " + OVER_STORIES,
        "errors",
        rows,
        _wide_tables(found, labels),
        [
            (
                told + found.purple,
                draw.svg(pictures.by_setting(rows, name, labels[name], found.of_people(name))),
            )
            for name, told in (
                ("loss", "Huber loss of the fits by setting."),
                ("rmse", "RMSE of the fits by setting."),
            )
        ],
    )


def _consistency_section(found: ColliderResult) -> Section:
    name = "reasoning_consistency"
    rows = _quantity_rows(found, (name,))
    groups = rows[rows[WHO] != PEOPLE].groupby([SETTING, PROMPT], sort=False)["value"]
    spread = groups.describe(percentiles=[0.25, 0.5, 0.75]).reset_index()
    people = found.of_people("reasoning_consistency")
    return part(
        "Reasoning consistency: tasks foretold from the others",
        "R2 of the mean answers to the eleven tasks, each foretold by the noisy-OR that is fitted "
        "to the other ten; with 3 parameters or 4, whichever foretells better. It falls with noise "
        "as well as with inconsistency. " + OVER_STORIES,
        "consistency",
        rows,
        [
            table(
                "Consistency over models",
                spread,
                ("setting", "{setting}"),
                ("prompt", "{prompt}"),
                ("models", "{count:.0f}"),
                ("lower quartile", "{25%:.3f}"),
                ("median", "{50%:.3f}"),
                ("upper quartile", "{75%:.3f}"),
                ("lowest", "{min:.3f}"),
                ("highest", "{max:.3f}"),
            ),
            *_wide_tables(found, {name: "R2, left out"}),
        ],
        [
            (
                "Consistency of models by setting and prompt: quartiles and whiskers to 1.5 times "
                "their distance, and each model." + found.purple,
                draw.svg(pictures.consistency_boxes(rows, PEOPLE, people)),
            ),
            (
                "Consistency of each model." + found.purple,
                draw.svg(
                    pictures.by_setting(rows, "reasoning_consistency", "R2, left out", people)
                ),
            ),
        ],
    )


def _signatures_section(found: ColliderResult) -> Section:
    names = ("explaining_away_released", "explaining_away", "markov_violation")
    rows = _quantity_rows(found, names)
    wide = found.units
    counted = _passing(found)
    scatter = pictures.signature_scatter(wide[wide[WHO] != PEOPLE], found.of_people)
    labels = {
        "explaining_away_released": "Explaining away, VIII - VI",
        "explaining_away": "Explaining away, VII - VI",
        "markov_violation": "Markov violation, IV - V",
    }
    figures = [
        (
            "Explaining away (VIII - VI) against Markov violations, a panel per setting, a number "
            "per model as in the table; bars are 95% intervals. Grey: violations of up to "
            f"{COMPLIANT:g} to either side, which pass for none." + found.purple,
            draw.svg(scatter),
        )
    ]
    for name, label, zone, told in (
        (
            "explaining_away_released",
            "explaining away, VIII - VI",
            None,
            "Explaining away, VIII - VI, of each model.",
        ),
        (
            "markov_violation",
            "Markov violation, IV - V",
            (-COMPLIANT, COMPLIANT),
            "Markov violation, IV - V, of each model.",
        ),
    ):
        own = found.of_people(name)
        figures.append(
            (
                told + found.purple,
                draw.svg(pictures.by_setting(rows, name, label, own, zone)),
            )
        )
    numbers = found.units[[WHO]].drop_duplicates().assign(place=lambda r: pictures.numbered(r[WHO]))
    tables = [
        table("Numbers of the figure", numbers, ("number", "{place}"), ("model", "{participant}")),
        *_wide_tables(found, dict(list(labels.items())[:2])),
        *_side_by_side(labels["markov_violation"], found.units, _violation),
        table(
            "Models that pass",
            counted,
            ("setting", "{setting}"),
            ("prompt", "{prompt}"),
            ("models", "{models}"),
            ("VIII - VI above 0", "{above_zero}"),
            (f"above {LARGE:g}", "{above_large}"),
            (
                "above people",
                lambda row: "-" if row["above_people"] < 0 else str(row["above_people"]),
            ),
            (f"|IV - V| up to {COMPLIANT:g}", "{compliant}"),
        ),
    ]
    return part(
        "Explaining away and Markov violations",
        "The text of the paper defines explaining away as VII - VI, its numbers are VIII - VI: "
        "both are here. The Markov violation is IV - V with its sign. All from raw answers as "
        "shares of 1, averaged over cells of equal weight. " + OVER_CELLS,
        "signatures",
        rows,
        tables,
        figures,
        _scores(found),
    )


def _violation(row: Mapping[str, Any]) -> str:
    """Write down a Markov violation, and whether it passes for none."""
    ends = (row[f"markov_violation{end}"] for end in ("", "_low", "_high"))
    return f"{interval(*ends)}, {complying(row['complies'])}"


def _passing(found: ColliderResult) -> pd.DataFrame:
    """Count the models that show explaining away, or no Markov violation."""
    people = found.of_people("explaining_away_released")
    rows = []
    models = found.units[found.units[WHO] != PEOPLE]
    for (setting, prompt), own in models.groupby([SETTING, PROMPT], sort=False):
        away = own["explaining_away_released"].dropna()
        violation = own["markov_violation"].dropna()
        rows.append(
            {
                SETTING: setting,
                PROMPT: prompt,
                "models": len(away),
                "above_zero": int((away > 0).sum()),
                "above_large": int((away > LARGE).sum()),
                "above_people": -1 if people is None else int((away > people["value"]).sum()),
                "compliant": int((violation.abs() <= COMPLIANT).sum()),
            }
        )
    return pd.DataFrame(rows)


def _robustness_section(found: ColliderResult) -> Section:
    names = ("determinacy", "reasoning_consistency", "explaining_away_released", "markov_violation")
    rows = _quantity_rows(found, names)
    people = found.of_people("determinacy")
    return part(
        "Probabilistic or deterministic: leak-adjusted determinacy",
        "Mean causal strength minus leak of the fitted noisy-OR, from -1 to 1, against "
        "consistency, explaining away and Markov violations in all settings. " + OVER_STORIES,
        "determinacy",
        rows,
        _wide_tables(found, {"determinacy": "Mean strength - leak"}),
        [
            (
                "Determinacy against consistency, explaining away (VIII - VI) and Markov "
                "violations: a mark per setting, a colour per prompt; points of one model are "
                "joined, so that a small figure is a robust model.",
                draw.svg(pictures.determinacy_scatter(found.units, PEOPLE)),
            ),
            (
                "Determinacy of each model." + found.purple,
                draw.svg(pictures.by_setting(rows, "determinacy", "determinacy", people)),
            ),
        ],
    )


def _distribution_section(found: ColliderResult) -> Section:
    answers = found.answers[found.answers["answer"].notna()]
    keys = [WHO, SETTING, PROMPT, "domain"]
    counted = answers.assign(answer=100.0 * answers["answer"]).sort_values("answer", kind="stable")
    rows = counted.groupby([*keys, "answer"], sort=False).size().rename("answers").reset_index()
    order = pd.MultiIndex.from_frame(answers[keys].drop_duplicates())
    place = order.get_indexer(pd.MultiIndex.from_frame(rows[keys]))
    rows = rows.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)
    groups = rows.groupby([WHO, SETTING, PROMPT, "domain"], sort=False)["answers"]
    rows["at_most"] = groups.cumsum() / groups.transform("sum")
    heaps = [
        dict(zip((WHO, SETTING, PROMPT), key, strict=True))
        | {
            f"at_{mark}": float(
                own.loc[(own["answer"] - mark).abs() < 0.5, "answers"].sum() / own["answers"].sum()
            )
            for mark in (0, 50, 100)
        }
        for key, own in rows.groupby([WHO, SETTING, PROMPT], sort=False)
    ]
    return part(
        "Distribution of the answers",
        "Shares of answers at or below each point of the scale, by domain; answers heap at the "
        "ends and in the middle, for which the loss is Huber's.",
        "distribution",
        rows,
        [
            *_side_by_side(
                "Answers at 0, 50 and 100, to the nearest whole",
                pd.DataFrame(heaps),
                lambda r: f"{r['at_0']:.1%}, {r['at_50']:.1%}, {r['at_100']:.1%}",
            )
        ],
        [
            (
                f"Distribution functions of the answers ({setting}), a panel per domain and "
                "prompt, a line per model.",
                draw.svg(pictures.distribution_functions(own)),
            )
            for setting, own in rows.groupby(SETTING, sort=False)
            if setting in (STORIES, ABSTRACT) or rows[SETTING].nunique() == 1
        ],
    )


def _dates_section(found: ColliderResult, features: pd.DataFrame | None) -> Section:
    heading = "Scores against release dates"
    names = ("determinacy", "explaining_away_released", "markov_violation", "reasoning_consistency")
    rows = _quantity_rows(found, names)
    rows = rows[rows[WHO] != PEOPLE]
    dated = pd.DataFrame(columns=[*rows, "release_date"])
    if features is not None and {WHO, "release_date"} <= set(features):
        dates = pd.to_datetime(features["release_date"], errors="coerce")
        known = pd.DataFrame({WHO: features[WHO].astype(str), "release_date": dates})
        dated = rows.merge(known.dropna().drop_duplicates(WHO), on=WHO)
    if not len(dated):
        return part(
            heading,
            "No release date of these models was given: give a table of features with the columns "
            "participant and release_date, and their scores are drawn against it.",
            "dates",
            dated,
        )
    undated = rows[WHO].nunique() - dated[WHO].nunique()
    left = f" {undated} without a date are left out." if undated else ""
    return part(
        heading,
        "Each score against the date on which the model was released." + left,
        "dates",
        dated,
        (),
        [
            (
                "Scores against release dates: a mark per setting, a colour per prompt."
                + found.purple,
                draw.svg(pictures.over_dates(dated, names, found.of_people)),
            )
        ],
    )


def _contrasts_section(found: ColliderResult) -> Section:
    profile = found.profile
    models = profile.units[profile.units[WHO] != PEOPLE]
    varied = [name for name in (SETTING, PROMPT) if models[name].nunique() > 1]
    differences = pd.DataFrame()
    if varied:
        differences = robustness(models, QUANTITIES, varied, WHO).differences
    told = first_rows(
        "Mean changes, paired over models",
        differences,
        ("change", "{factor}: {second} - {first}"),
        ("quantity", lambda row: row["quantity"].replace("_", " ")),
        ("mean", "{mean:.3f}"),
        ("95%", between),
        ("p adjusted", "{p_adjusted:.3g}"),
        ("models", lambda r: f"{r['n']}" + (f", {m} left out" if (m := r["missing"]) else "")),
        ("size", "{size:.2f}"),
    )
    return part(
        "Contrasts: abstract names, overload, chain of thought",
        "Differences between settings (averaged over prompts) and between prompts (averaged over "
        "settings), within models; intervals are Student's over models, p adjusted by Benjamini "
        "and Hochberg over all rows. Size: mean absolute difference in standard deviations.",
        "contrasts",
        differences,
        [told] if varied else [],
        pictures.changes(replace(profile, units=models), varied),
    )


def _ranks_section(found: ColliderResult) -> Section:
    rows = pd.DataFrame(list(_changes(found)))
    ranked = []
    keys = ["first", "second", "parameter"]
    for key, own in rows.groupby(keys, sort=False) if len(rows) else ():
        by = own.dropna(subset="difference")
        order = by.reindex(by["difference"].abs().sort_values(kind="stable").index)
        ends = {"least": order.head(RANKED), "most": order[::-1].head(RANKED)}
        ranked.append(
            dict(zip(keys, key, strict=True))
            | {"models": len(by)}
            | {
                end: "; ".join(f"{r[WHO]} {r['difference']:+.3f}" for r in some.to_dict("records"))
                for end, some in ends.items()
            }
        )
    return part(
        "Who changes most, parameter by parameter",
        "First condition minus second, for each parameter of the fits; the models that change most "
        "and least. The file has 95% intervals, for which stories that both conditions share are "
        "left out of both together.",
        "changes",
        rows,
        [
            first_rows(
                "Most and least changing models",
                pd.DataFrame(ranked),
                ("first", "{first}"),
                ("second", "{second}"),
                ("parameter", "{parameter}"),
                ("models", "{models}"),
                ("most", "{most}"),
                ("least", "{least}"),
            )
        ]
        if ranked
        else [],
    )


def _changes(found: ColliderResult) -> Iterator[dict[str, Any]]:
    """Yield the change of each parameter of each model between two conditions."""
    units = found.units[found.units[WHO] != PEOPLE]
    at = {(r[WHO], r[SETTING], r[PROMPT]): r[UNIT] for r in units.to_dict("records")}
    places = list(dict.fromkeys((s, p) for _, s, p in at))
    models = list(dict.fromkeys(units[WHO]))
    for one, other in combinations(places, 2):
        if one[0] != other[0] and one[1] != other[1]:
            continue  # conditions that differ in one thing alone are compared
        for parameter in PARAMETERS:
            for model in models:
                pair = [at.get((model, *place)) for place in (one, other)]
                if pair[0] is None or pair[1] is None:
                    continue
                value, low, high = found.intervals.difference(parameter, pair[0], pair[1])
                yield {
                    "first": ", ".join(one), "second": ", ".join(other), "parameter": parameter,
                    WHO: model, "difference": value, "low": low, "high": high,
                }  # fmt: skip


def _truths(found: ColliderResult, about: About) -> pd.DataFrame:
    """Return the true and the estimated parameters of known minds that are noisy-ORs."""
    rows = []
    known = found.units[found.units[WHO].isin(about.known)]
    for row in known.to_dict("records"):
        truth = about.truth.get(row[WHO], {}).get(row["cell"], {})
        if truth.get("model") != NoisyOr.name:
            continue
        for name in PARAMETERS:
            if name in truth:
                kept = {key: row[key] for key in (WHO, SETTING, PROMPT)}
                ends = {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                rows.append(kept | {"parameter": name, "truth": float(truth[name])} | ends)
    return pd.DataFrame(rows)


def _parameters_section(found: ColliderResult, about: About) -> Section:
    labels = {"p": "p(C)", "b": "b", "m1": "m1", "m2": "m2"}
    units, fits = found.units, found.profile.fits
    keys = units[[UNIT, WHO, SETTING, PROMPT]]
    rows = keys.merge(fits, on=UNIT).drop(columns=UNIT)
    strengths = (
        "Questions about C2 are answered by the formula of C1, as published: strengths that differ "
        "tell that effects and causes are judged differently."
        if found.profile.scoring == "pooled"
        else "The strengths m1 and m2 are those of the causes C1 and C2."
    )
    tables: list[Table] = []
    truths = _truths(found, about)
    if len(truths):
        tables.append(
            table(
                "Known minds: their parameters, and what is found",
                truths,
                *_whose(
                    ("parameter", "{parameter}"),
                    ("true", "{truth:.3f}"),
                    ("found", lambda r: interval(r["value"], r["low"], r["high"])),
                ),
            )
        )
    for (setting, prompt), own in units.groupby([SETTING, PROMPT], sort=False):
        ordered = own.sort_values("loss", kind="stable", na_position="last")
        tables.append(
            table(
                f"Noisy-OR parameters: {setting}, {prompt}",
                ordered,
                ("model", "{participant}"),
                ("parameters", lambda row: str(row["parameters"] or "-")),
                *(_ends_column(name, head) for name, head in labels.items()),
                _ends_column("determinacy", "strength - leak"),
                ("loss", "{loss:.4f}"),
                ("MAE", "{mae:.3f}"),
                ("RMSE", "{rmse:.3f}"),
                ("R2", "{r2:.3f}"),
                _ends_column("reasoning_consistency", "R2, left out"),
                ("note", lambda row: row["note"] or "-"),
            )
        )
    return part(
        "Parameters of each model",
        "The noisy-OR with 3 parameters (m1 = m2) or 4, whichever foretells left-out tasks better, "
        "best fit first. " + strengths + " The file also has the one with 5. " + OVER_STORIES,
        "parameters",
        rows,
        tables,
    )


def _quantity_rows(found: ColliderResult, names: Sequence[str]) -> pd.DataFrame:
    """Return value, low and high of quantities, one row per model, setting, prompt and quantity."""
    units = found.units
    parts = [
        units[[WHO, SETTING, PROMPT]].assign(
            quantity=name,
            value=units[name].astype(float),
            low=units[f"{name}_low"].astype(float),
            high=units[f"{name}_high"].astype(float),
        )
        for name in names
    ]
    return pd.concat(parts, ignore_index=True)


def _ends_column(name: str, head: str) -> Column:
    """Return a column with a quantity and its interval."""

    def write(row: Mapping[str, Any]) -> str:
        digits = 4 if name == "loss" else 3
        return interval(row[name], row[f"{name}_low"], row[f"{name}_high"], digits)

    return head, write


def _wide_tables(found: ColliderResult, labels: Mapping[str, str]) -> list[Table]:
    """Return tables of quantities with their intervals: models down, settings across."""
    return [
        one
        for name, head in labels.items()
        for one in _side_by_side(head, found.units, _ends_column(name, head)[1])
    ]


def _side_by_side(title: str, rows: pd.DataFrame, cell: Any) -> list[Table]:
    """Return a table per prompt: models down, settings across."""
    parts = rows.groupby(PROMPT, sort=False) if len(rows) else ()
    return [beside(f"{title}: {prompt}", own, SETTING, cell) for prompt, own in parts]
