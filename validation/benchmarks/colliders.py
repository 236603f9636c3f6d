"""Causal judgements of models beside people's, after Dettki (2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from knownminds.inference.causes.alignment import POOLED
from knownminds.inference.causes.causal_answers import causal_answers
from knownminds.inference.causes.cell_contrast import COMPLIANT
from knownminds.inference.causes.domain_differences import DOMAINS
from knownminds.inference.causes.least_squares_reasoner import ALL_PARAMETERS
from knownminds.inference.causes.reasoner_intervals import BOUNDS
from knownminds.inference.causes.robustness import robustness
from knownminds.validation.causes.causal_profile import (
    PARAMETERS,
    QUANTITIES,
    UNIT,
    CausalProfile,
    causal_profile,
    read_reference,
)
from knownminds.validation.pages.views import WHO, Cell, Curves, Dots, Grid, Rows, ends, quantiles

from .paper import CELL, About, Answers, Paper, Shown, counted_answers, joined, told_apart

SETTING, PROMPT, PEOPLE = "setting", "prompt", "people"
WHERE = (SETTING, PROMPT)
WHOSE = (WHO, *WHERE)
STORIES, ABSTRACT = "stories", "abstract"
NUMBER = "number"
NEVER = ("", "none", "nan", "None", "False", "false", "0", "no")
LABELS = {
    "p": "p(C)",
    "b": "leak b",
    "m1": "strength m1",
    "m2": "strength m2",
    "loss": "Huber loss",
    "rmse": "RMSE of the fit",
    "mae": "MAE",
    "r2": "R2",
    "reasoning_consistency": "consistency",
    "determinacy": "determinacy",
    "explaining_away_released": "explaining away, VIII - VI",
    "explaining_away": "explaining away, VII - VI",
    "markov_violation": "Markov violation, IV - V",
}
# Beside the parameters, without intervals.
ALONGSIDE = {
    "LOOCV RMSE": "consistency_rmse",
    **{LABELS[n]: n for n in ("loss", "mae", "rmse", "r2")},
}
# What models are not compared by, two at a time.
UNCOMPARED = ("loss", "mae", "r2")
RANKED = 3  # agents named at either end
# Groups of tasks whose answers are joined by a line.
JOINED = {task: k for k, tasks in enumerate((("I", "II", "III"), ("IV", "V"),
                                             ("VI", "VII", "VIII"), ("IX", "X", "XI")))
          for task in tasks}  # fmt: skip
LARGE = 0.3  # the stricter published threshold of explaining away

PAPER = Paper(
    "colliders",
    "Colliders: causal judgements, and the networks behind them",
    "Dettki 2025; tasks of Rehder and Waldmann 2017",
    people=True,
)


@PAPER.prepare
def prepare(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return answers with setting and prompt, people's among them where there are any.

    A setting is what the questions are about, and what was added to them; of names without meaning
    their kind is the domain. The option `over` names columns of conditions instead.
    """
    column = "environment" if "environment" in trials else "experiment"
    frame = trials[trials[column] == "collider"] if column in trials else trials
    if not len(frame):
        raise ValueError("The page of colliders reads trials of collider; there are none.")
    answers = causal_answers(frame).copy()
    answers[WHO] = answers[WHO].astype(str)
    over = about.option("over", ["condition"] if "condition" in answers else [])
    answers = _over(answers, over) if over else _with_conditions(answers, about)
    if about.people is None:
        if PEOPLE in about.crowd:  # their trials are among the answers
            answers["person"] = answers["subject"].astype(str).where(answers[WHO] == PEOPLE)
        return answers
    if (answers[WHO] == PEOPLE).any():
        raise ValueError(
            f"The participant of {about.people.name} is {PEOPLE!r}, and the trials have one of "
            "that name. Name theirs otherwise, or leave the file out."
        )
    return pd.concat([answers, _people(about.people)], ignore_index=True)


def _over(answers: pd.DataFrame, over: Sequence[str]) -> pd.DataFrame:
    """Return answers whose setting and prompt are values of columns that were named."""
    first, *others = over
    for name in (first, *others):
        if name not in answers:
            raise ValueError(
                f"Conditions are separated by columns of the trials; there is no {name!r} among "
                f"{', '.join(map(str, answers.columns))}."
            )
    said = answers[[first, *others]].astype(object).fillna("none").astype(str)
    prompt = said[others].agg(", ".join, axis=1) if others else "answers"
    return answers.assign(**{SETTING: said[first], PROMPT: prompt})


def _with_conditions(answers: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return answers with setting and prompt, plain ones first."""
    for name in ("content", "overload", "reasoning"):
        has = name in answers  # of files that are joined some may have it
        answers[name] = answers[name].astype(object).fillna("none") if has else "none"
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
    numeric = reasoning.isin((*NEVER, "numeric", NUMBER)).to_numpy()
    answers[PROMPT] = np.where(numeric, NUMBER, reasoning.str.replace("_", " ")).astype(object)
    # As released, an agent is all its answers, whatever their temperature.
    together = {"temperature"} if about.options.get("released") else set()
    for name in (n for n in told_apart(answers, about, WHERE) if n not in together):
        said = answers[name].map("{:g}".format if answers[name].dtype.kind in "if" else str)
        answers[SETTING] += (f", {name} " + said).where(answers[name].notna(), "")
    answers["domain"] = np.where(meaningful, answers["domain"].astype(str), content).astype(object)
    order = pd.DataFrame(
        {"overloaded": ~plain, "abstract": ~meaningful, "thought": ~numeric}, index=answers.index
    )
    ranked = order.sort_values(list(map(str, order.columns)), kind="stable").index
    sorted_answers: pd.DataFrame = answers.loc[ranked].reset_index(drop=True)
    return sorted_answers


def _people(file: Path) -> pd.DataFrame:
    """Return answers of people as one more participant, who answered with numbers."""
    answers = causal_answers(read_reference(file)).copy()
    answers["person"] = answers["subject"].astype(str) if "subject" in answers else PEOPLE
    return answers.assign(**{WHO: PEOPLE, SETTING: STORIES, PROMPT: NUMBER})


class Profiles(NamedTuple):
    """All that is computed once: the profile, and its quantities, one row each."""

    profile: CausalProfile
    quantities: pd.DataFrame


def profiles(data: Answers) -> Profiles:
    """Return fits, measures and tests, and the quantities with their intervals, one row each."""
    people = data.trials[data.trials[WHO] == PEOPLE]
    has_people = len(people) and "person" in people  # they come with the option of people alone
    reference = people.assign(subject=people["person"]) if has_people else None
    options = data.about.options
    profile = causal_profile(
        data.trials,
        WHO,
        WHERE,
        reference=reference,
        seed=data.about.seed,
        scoring=options.get("scoring"),
        released=bool(options.get("released")),
        apart=data.about.known,
    )
    units = profile.units
    cells = data.trials.get(CELL, pd.Series("", data.trials.index))
    first = data.trials.assign(**{CELL: cells}).drop_duplicates(list(WHOSE))
    cell = units[list(WHOSE)].merge(first, how="left", on=list(WHOSE))[CELL]
    parts = []
    for name, label in LABELS.items():
        moved: list[Any] = [
            dict(profile.intervals.side(name, unit).influence) if name in BOUNDS else {}
            for unit in units[UNIT]
        ]
        rows = units[[*WHOSE, "complies"]].assign(
            quantity=name,
            label=label,
            cell=cell.astype(object).to_numpy(),
            value=units[name].astype(float),
            low=units[f"{name}_low"].astype(float),
            high=units[f"{name}_high"].astype(float),
            standard_error=units[f"{name}_error"].astype(float),
            freedom=units[f"{name}_freedom"].astype(float),
            influence=pd.Series(moved, units.index),
        )
        score = f"{label}: " + rows[SETTING] + ", " + rows[PROMPT]
        parts.append(rows.assign(score=score if name not in UNCOMPARED else None))
    return Profiles(profile, pd.concat(parts, ignore_index=True))


def quantities(data: Answers, *names: str) -> pd.DataFrame:
    """Return value, low and high of some quantities, one row per participant and condition."""
    rows: pd.DataFrame = data.once(profiles).quantities
    return rows[rows["quantity"].isin(names)].reset_index(drop=True)


@PAPER.also
def claimed(data: Answers) -> pd.DataFrame:
    """Return what claims and printed numbers need besides the scores by which models are compared.

    Errors of the fits, the alignment with people, and how far domains differ: the epsilon squared
    of Kruskal and Wallis' test, (H - k + 1) / (n - k), which is 0 on average where they do not.
    """
    every: Profiles = data.once(profiles)
    rows = every.quantities[every.quantities["quantity"].isin(UNCOMPARED)]
    parts = [_scored(rows, "value", rows["label"])]
    units = every.profile.units
    parts.append(_scored(units, "consistency_rmse", "LOOCV RMSE"))
    if len(aligned := every.profile.alignment):
        rho = units[[UNIT, *WHOSE]].merge(aligned.rename(columns={"agent": UNIT}), on=UNIT)
        pooled = rho[(rho["domain"] == POOLED) & (rho["items"] > 0)]
        parts.append(_scored(pooled, "rho", "alignment"))
    if len(tests := every.profile.omnibus):
        tests = tests[tests["family"] == DOMAINS].assign(**{WHO: tests["of"]})
        spread = (tests["statistic"] - tests["freedom"]) / (tests["n"] - tests["freedom"] - 1)
        for name, values in (("domains, H", tests["statistic"]), ("domains, epsilon^2", spread)):
            scored = tests.assign(value=values, score=f"{name}: " + tests["condition"])
            parts.append(scored[[WHO, "score", "value"]])
    return joined(parts).dropna(subset="value")


def _scored(rows: pd.DataFrame, value: str, label: Any) -> pd.DataFrame:
    """Return rows as scores: the label with the setting and the prompt."""
    score = label + ": " + rows[SETTING] + ", " + rows[PROMPT]
    return pd.DataFrame({WHO: rows[WHO], "score": score, "value": rows[value].astype(float)})


def of_models(data: Answers, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models: over people and known agents no statistic of models is made."""
    return rows[~rows[WHO].isin([PEOPLE, *data.about.known])]


def of_people(rows: pd.DataFrame, name: str) -> Mapping[str, float] | None:
    """Return value, low and high of people; None where there is none."""
    theirs = rows[(rows[WHO] == PEOPLE) & (rows["quantity"] == name)]
    if not len(theirs):
        return None
    return {end: float(theirs[end].iloc[0]) for end in ("value", "low", "high")}


def beside(rows: pd.DataFrame, cell: Cell | None = None) -> Grid:
    """Return the tables of quantities: models down, settings across."""
    return Grid("{by}", SETTING, (WHO, PROMPT), cell or ends(), by="label", of=rows)


def dots(rows: pd.DataFrame, name: str) -> Dots:
    """Return the figure of a quantity of each model, a panel per setting, a colour per prompt."""
    null = 0.0 if name.startswith(("explaining", "markov")) else None
    zone = (-COMPLIANT, COMPLIANT) if name == "markov_violation" else None
    label = LABELS[name]
    people = of_people(rows, name)
    caption = f"{label[0].upper()}{label[1:]} of each model, with 95% intervals."
    if people is not None:
        caption += " People are in purple."
    shown = rows[(rows["quantity"] == name) & (rows[WHO] != PEOPLE)]
    return Dots(caption, label, SETTING, PROMPT, null=null, zone=zone, people=people, of=shown)


@PAPER.part("Questions and answers", compared=False)
def answers(data: Answers) -> Shown:
    """A setting is what the questions are about (stories, or names that mean nothing) and what was
    added to them. A prompt asks for a number alone, or for thoughts before it. Answers that could
    not be read are counted and left out; nothing replaces them.
    """
    return counted_answers(data.trials, PROMPT, SETTING)


@PAPER.part("Domains: do judgements depend on what the story is about?", compared=False)
def domains(data: Answers) -> Shown:
    """Tests of Kruskal and Wallis over all answers, as published, adjusted by Benjamini and
    Hochberg within a condition. They take the spread between tasks for noise, and so reject too
    seldom. The matched p compares the same questions (Friedman; of two groups Wilcoxon). Of
    abstract settings the kind of names is the domain.
    """

    def cell(row: Mapping[Any, Any]) -> str:
        if row["status"] != "ok":
            return str(row["status"])
        text = f"H({row['freedom']}) = {row['statistic']:.2f}, p {row['p_adjusted']:.2g}"
        matched = row["matched_p_adjusted"]
        return text + (f", matched {matched:.2g}" if np.isfinite(matched) else "")

    title = "Kruskal-Wallis: {by}"
    return data.once(profiles).profile.omnibus, Grid(title, "condition", ("of",), cell, by="family")


@PAPER.part("Pairs of domains, and of models, that differ", compared=False)
def domain_pairs(data: Answers) -> Shown:
    """Tests of Mann and Whitney, adjusted among the pairs of the same model or domain. The table
    has pairs of domains that differ at .05, the file all.
    """
    rows = data.once(profiles).profile.pairs
    if not len(rows):
        return (rows,)
    shown = rows[(rows["family"] == DOMAINS) & (rows["p_adjusted"] < 0.05)]
    columns: Mapping[str, Cell] = {"rank-biserial r": "r", "p adjusted": "p_adjusted"}
    lines = ("condition", "of", "first", "second")
    return rows, Rows("Pairs of domains that differ", columns, lines, of=shown)


@PAPER.part("Alignment with people", compared=False)
def aligned(data: Answers) -> Shown:
    """Spearman's rank correlation of a model's answers with the mean answers of people to the same
    questions, pooled and by domain, with 95% percentile intervals of 2000 bootstrap resamples over
    items. Only stories are shared with people.
    """
    profile = data.once(profiles).profile
    if not len(profile.alignment):
        return (
            pd.DataFrame(),
            "No judgements of people were given, and none ship: give them as a table of trials or "
            "of means.",
        )
    rows = profile.alignment.rename(columns={"agent": UNIT, "rho": "value"})
    rows = profile.units[[UNIT, *WHOSE]].merge(rows, on=UNIT).drop(columns=UNIT)
    # People and themselves need no correlation; what has other questions has none.
    rows = rows[(rows[WHO] != PEOPLE) & (rows["items"] > 0)].reset_index(drop=True)
    pooled = rows[rows["domain"] == POOLED].sort_values("value", ascending=False, kind="stable")
    rank = {key: k for k, key in enumerate(map(tuple, pooled[list(WHOSE)].to_numpy()))}
    order = [rank.get(key, len(rank)) for key in map(tuple, rows[list(WHOSE)].to_numpy())]
    rows = rows.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    drawn = rows[rows[SETTING].str.startswith(STORIES)]
    drawn = drawn.assign(condition=drawn[SETTING] + ", " + drawn[PROMPT])
    label = "Spearman's rho with people"
    return (
        rows,
        Grid("Rank correlation with people, highest first", "domain", WHOSE),
        Dots("Rank correlation with people.", label, "domain", "condition", of=drawn),
    )


@PAPER.part("Answers and predictions, task by task", compared=False)
def tasks(data: Answers) -> Shown:
    """Both directions of a task are averaged and written as that about C1. A slope from IV to V is
    a Markov violation; a rise from VI to VIII is explaining away.
    """
    profile = data.once(profiles).profile
    rows = profile.units[[UNIT, *WHOSE]].merge(profile.tasks, on=UNIT).drop(columns=UNIT)
    first = rows[rows[SETTING] == rows[SETTING].iloc[0]]
    caption = (
        f"Answers to the eleven tasks ({first[SETTING].iloc[0]}): means with 95% intervals; tasks "
        "that differ in one thing are joined. Hollow: the noisy-OR fitted to them. In each "
        "panel are the answers of people, where there are any, too."
    )
    curves = Curves(
        caption, ("task", "answer"), "task", "mean", (WHO,), (PROMPT,), hollow="fitted",
        of=_in_groups(_over_each(first)),
    )  # fmt: skip
    return rows, curves


def _over_each(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows by participant, with those of people once more under the name of each other."""
    people = rows[rows[WHO] == PEOPLE].assign(fitted=np.nan)
    others = [str(name) for name in rows.loc[rows[WHO] != PEOPLE, WHO].unique()]
    again = [people.assign(**{WHO: name, PROMPT: PEOPLE}) for name in others]
    return pd.concat([rows, *again], ignore_index=True) if len(people) else rows


def _in_groups(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows by task, with a gap in the answers where another group of tasks begins."""
    group = rows["task"].map(JOINED)
    keys = [*WHOSE, "group"]
    gaps = rows.assign(group=group).drop_duplicates(keys, keep="last")
    gaps = gaps.assign(mean=np.nan, low=np.nan, high=np.nan, fitted=np.nan)
    return pd.concat([rows.assign(group=group), gaps]).sort_index(kind="stable")


@PAPER.part("Are answers normative? Errors of the fitted noisy-OR")
def errors(data: Answers) -> Shown:
    """How far the answers are from the leaky noisy-OR that is nearest to them, on a scale from 0 to
    1 (loss: half the squared error; the published column of losses is another quantity, which its
    own squared errors exclude). Intervals are of 95%, by leaving out each story (domain and
    sense) in turn.
    """
    rows = quantities(data, "loss", "rmse", "mae", "r2")
    return rows, beside(rows), dots(rows, "loss"), dots(rows, "rmse")


@PAPER.part("Reasoning consistency: tasks foretold from the others")
def consistency(data: Answers) -> Shown:
    """R2 of the mean answers to the eleven tasks, each foretold by the noisy-OR that is fitted to
    the other ten. It has 3 parameters or 4, whichever foretells better. It falls with noise as well
    as with inconsistency, and rises with the number of answers. Intervals are of 95%, by leaving
    out each story in turn.
    """
    rows = quantities(data, "reasoning_consistency")
    models = of_models(data, rows)
    named = models.assign(condition=models[SETTING] + ", " + models[PROMPT])
    spread = models.groupby(list(WHERE), sort=False)["value"].describe().reset_index()
    columns: Mapping[str, Cell] = {
        "models": lambda row: int(row["count"]),
        **{name: name for name in ("min", "25%", "50%", "75%", "max")},
    }
    return (
        rows,
        Rows("Consistency over models: quartiles", columns, WHERE, of=spread),
        beside(rows),
        Dots(
            "Consistency of models by setting and prompt: median, 10% and 90%.", "R2, left out",
            along="condition", people=of_people(rows, "reasoning_consistency"),
            of=quantiles(named, ["condition"], "value"),
        ),
        dots(rows, "reasoning_consistency"),
    )  # fmt: skip


@PAPER.part("Explaining away and Markov violations")
def signatures(data: Answers) -> Shown:
    """The text of the paper defines explaining away as VII - VI, its numbers are VIII - VI: both
    are here. The Markov violation is IV - V with its sign; up to .05 to either side it passes for
    none. All from raw answers as shares of 1, averaged over cells of equal weight. Intervals are
    Student's of 95%, over cells (domain, sense, direction).
    """
    names = ("explaining_away_released", "explaining_away", "markov_violation")
    rows = quantities(data, *names)
    counted = passing(of_models(data, rows), of_people(rows, "explaining_away_released"))
    columns: Mapping[str, Cell] = {str(n): str(n) for n in counted if n not in WHERE}
    return (
        rows,
        beside(rows[rows["quantity"] != "markov_violation"]),
        beside(rows[rows["quantity"] == "markov_violation"], _violation),
        Rows("Models that pass", columns, WHERE, of=counted),
        Curves(
            "Explaining away (VIII - VI) against Markov violations, with 95% intervals. Grey: "
            "violations that pass for none.",
            ("explaining away, VIII - VI", "Markov violation, IV - V"), "x", "value", (SETTING,),
            (PROMPT,), joined=False, named=WHO, zone=(-COMPLIANT, COMPLIANT),
            people={"x": of_people(rows, names[0]), "y": of_people(rows, names[2])},
            of=against(rows, names[0], names[2]),
        ),
        dots(rows, "explaining_away_released"),
        dots(rows, "markov_violation"),
    )  # fmt: skip


def against(rows: pd.DataFrame, name: str, *others: str) -> pd.DataFrame:
    """Return rows of other quantities of models, each with x: another one, and its interval."""
    models = rows[rows[WHO] != PEOPLE]
    ends_of_x = {"value": "x", "low": "x_low", "high": "x_high"}
    first = models[models["quantity"] == name].rename(columns=ends_of_x)
    second = models[models["quantity"].isin(others)]
    return second.merge(first[[*WHOSE, *ends_of_x.values()]], on=list(WHOSE))


def _violation(row: Mapping[Any, Any]) -> str:
    """Write down a Markov violation, and whether it passes for none."""
    word = {True: "complies", False: "violates"}.get(row["complies"], "not known")
    written: Any = ends()
    return f"{written(row)}, {word}"


def passing(rows: pd.DataFrame, people: Mapping[str, float] | None) -> pd.DataFrame:
    """Count the models that show explaining away, or no Markov violation."""
    wide = rows.set_index([*WHOSE, "quantity"])["value"].unstack("quantity")
    counts = []
    for key, values in wide.groupby(list(WHERE), sort=False):
        away, violation = values["explaining_away_released"], values["markov_violation"]
        counts.append(
            dict(zip(WHERE, key, strict=True))
            | {
                "models": int(away.notna().sum()),
                "VIII - VI above 0": int((away > 0).sum()),
                f"above {LARGE:g}": int((away > LARGE).sum()),
                "above people": None if people is None else int((away > people["value"]).sum()),
                f"|IV - V| up to {COMPLIANT:g}": int((violation.abs() <= COMPLIANT).sum()),
            }
        )
    return pd.DataFrame(counts)


@PAPER.part("Probabilistic or deterministic: leak-adjusted determinacy")
def determinacy(data: Answers) -> Shown:
    """Mean causal strength minus leak of the fitted noisy-OR, from -1 to 1, against consistency,
    explaining away and Markov violations in all settings. Intervals are of 95%, by leaving out each
    story in turn.
    """
    rows = quantities(data, "determinacy")
    others = ("reasoning_consistency", "explaining_away_released", "markov_violation")
    drawn = quantities(data, "determinacy", *others)
    return (
        rows,
        beside(rows),
        Curves(
            "Consistency, explaining away (VIII - VI) and Markov violations against determinacy; "
            "points of one model are joined, so that a small figure is a robust model.",
            ("determinacy", "value"), "x", "value", ("label",), (WHO,),
            of=against(drawn, "determinacy", *others).drop(columns=["low", "high", "x_low",
                                                                    "x_high"]),
        ),
        dots(rows, "determinacy"),
    )  # fmt: skip


@PAPER.part("Distribution of the answers", compared=False)
def distribution(data: Answers) -> Shown:
    """Shares of answers at or below each point of the scale, by domain. Answers heap at the ends
    and in the middle, for which the loss is Huber's.
    """
    answers = data.trials[data.trials["answer"].notna()]
    keys = [*WHOSE, "domain"]
    counted = answers.assign(answer=100.0 * answers["answer"]).sort_values("answer", kind="stable")
    rows = counted.groupby([*keys, "answer"], sort=False).size().rename("answers").reset_index()
    order = pd.MultiIndex.from_frame(answers[keys].drop_duplicates())
    position = order.get_indexer(pd.MultiIndex.from_frame(rows[keys]))
    rows = rows.iloc[np.argsort(position, kind="stable")].reset_index(drop=True)
    groups = rows.groupby(keys, sort=False)["answers"]
    rows["at_most"] = groups.cumsum() / groups.transform("sum")
    total = rows.groupby(list(WHOSE), sort=False)["answers"].sum()
    at = {mark: (rows["answer"] - mark).abs() < 0.5 for mark in (0, 50, 100)}
    heaps = pd.concat(
        [
            (rows[here].groupby(list(WHOSE))["answers"].sum() / total).fillna(0.0).rename(f"{mark}")
            for mark, here in at.items()
        ],
        axis=1,
    ).reset_index()
    settings = dict.fromkeys(rows[SETTING])
    drawn = [name for name in settings if name in (STORIES, ABSTRACT)] or list(settings)[:1]
    columns = ("share of answers up to it", "answer")
    return (
        rows,
        Rows("Share of answers at 0, 50 and 100, to the nearest whole",
             {name: name for name in ("0", "50", "100")}, WHOSE, of=heaps),
        Curves("Distribution functions of the answers ({by}), a panel per domain and prompt.",
               columns[::-1], "answer", "at_most", ("domain", PROMPT), (WHO,), steps=True,
               where={SETTING: drawn}, by=SETTING),
    )  # fmt: skip


@PAPER.part("Scores against release dates", compared=False)
def dates(data: Answers) -> Shown:
    """Each score against the date on which the model was released; models without a date are left
    out.
    """
    names = ("determinacy", "explaining_away_released", "markov_violation", "reasoning_consistency")
    rows = quantities(data, *names)
    known = None if data.about.features is None else pd.read_csv(data.about.features)
    if known is None or not {WHO, "release_date"} <= set(known):
        return (
            rows.iloc[:0],
            "No release date of these models was given: give a table of features with the columns "
            "participant and release_date, and their scores are drawn against it.",
        )
    date = pd.to_datetime(known["release_date"], errors="coerce")
    known = pd.DataFrame({WHO: known[WHO].astype(str), "release_date": date}).dropna()
    dated = rows[rows[WHO] != PEOPLE].merge(known.drop_duplicates(WHO), on=WHO)
    return dated, Curves(
        "Scores against release dates.", ("date", "score"), "release_date", "value", ("label",),
        WHERE, joined=False, of=dated,
    )  # fmt: skip


@PAPER.part("Contrasts: abstract names, overload, chain of thought", compared=False)
def contrasts(data: Answers) -> Shown:
    """Differences between settings (averaged over prompts) and between prompts (averaged over
    settings), within models; known agents are none. Intervals are Student's over models, p adjusted
    by Benjamini and Hochberg over all rows. Size: mean absolute difference in standard deviations
    of the quantity over all units, so that quantities can be compared.
    """
    models = of_models(data, data.once(profiles).profile.units)
    varied = [name for name in WHERE if models[name].nunique() > 1]
    if not varied:
        return (pd.DataFrame(),)
    rows = robustness(models, QUANTITIES, varied, WHO)
    columns: Mapping[str, Cell] = {
        "quantity": lambda row: row["quantity"].replace("_", " "), "mean": ends("mean"),
        "p adjusted": "p_adjusted", "models": "n", "left out": "missing", "size": "size",
    }  # fmt: skip
    lines = ("factor", "second", "first")
    levels = models.melt([WHO, *WHERE], list(QUANTITIES), "quantity")
    figures = [
        Dots(
            f"Parameters and measures by {factor}, averaged over the other condition.", "value",
            "quantity", factor, low="value", high="value",
            of=levels.groupby([WHO, factor, "quantity"], sort=False)["value"].mean().reset_index(),
        )
        for factor in varied
    ]  # fmt: skip
    return rows, Rows("Mean changes, paired over models", columns, lines), *figures


@PAPER.part("Who changes most, parameter by parameter", compared=False)
def changes(data: Answers) -> Shown:
    """First condition minus second, for each parameter of the fits; the models that change most and
    least. The file has 95% intervals, for which stories that both conditions share are left out of
    both together.
    """
    profile = data.once(profiles).profile
    rows = _changes(profile, of_models(data, profile.units))
    ranked = []
    keys = ["first", "second", "parameter"]
    for key, group in rows.groupby(keys, sort=False) if len(rows) else ():
        by = group.dropna(subset="difference")
        order = by.reindex(by["difference"].abs().sort_values(kind="stable").index)
        named = {
            end: "; ".join(f"{r[WHO]} {r['difference']:+.3f}" for r in some.to_dict("records"))
            for end, some in (("most", order[::-1].head(RANKED)), ("least", order.head(RANKED)))
        }
        ranked.append(dict(zip(keys, key, strict=True)) | {"models": len(by)} | named)
    columns: Mapping[str, Cell] = {name: name for name in ("models", "most", "least")}
    return rows, Rows("Most and least changing models", columns, keys, of=pd.DataFrame(ranked))


def _changes(profile: CausalProfile, units: pd.DataFrame) -> pd.DataFrame:
    """Return the change of each parameter of each model between two conditions."""
    at = {(r[WHO], (r[SETTING], r[PROMPT])): r[UNIT] for r in units.to_dict("records")}
    places = list(dict.fromkeys(position for _, position in at))
    models = list(dict.fromkeys(units[WHO]))
    rows = []
    for one, other in combinations(places, 2):
        if one[0] != other[0] and one[1] != other[1]:
            continue  # conditions that differ in one thing alone are compared
        for parameter in PARAMETERS:
            for model in models:
                if (model, one) not in at or (model, other) not in at:
                    continue
                pair = at[model, one], at[model, other]
                value, low, high = profile.intervals.difference(parameter, *pair)
                rows.append(
                    {
                        "first": ", ".join(one), "second": ", ".join(other), WHO: model,
                        "parameter": parameter, "difference": value, "low": low, "high": high,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


@PAPER.part("Parameters of each model")
def parameters(data: Answers) -> Shown:
    """The noisy-OR with 3 parameters (m1 = m2) or 4, whichever foretells left-out tasks better,
    best fit first. The second table has all, and that with 5. LOOCV RMSE: of the mean answers to
    the eleven tasks, each foretold from the other ten, as a share of the scale. Strengths m1 and m2
    are those of the causes C1 and C2. With pooled scoring, as published, questions about C2 are
    answered by the formula of C1. Strengths that differ then tell that effects and causes are
    judged differently.
    Intervals are of 95%, by leaving out each story in turn.
    """
    profile = data.once(profiles).profile
    units = profile.units.sort_values("loss", kind="stable", na_position="last")
    names = (*PARAMETERS, "determinacy", "reasoning_consistency")
    columns: dict[str, Cell] = {"parameters": "parameters"}
    columns |= {LABELS[name]: ends(name, f"{name}_low", f"{name}_high") for name in names}
    columns |= {**ALONGSIDE}
    columns |= {name: name for name in ("answers", "missing", "incomplete")}
    columns |= {"note": lambda row: row["note"] or "-"}
    keys = profile.units[[UNIT, *WHOSE]]
    fits = keys.merge(profile.fits, on=UNIT).drop(columns=UNIT)
    every: dict[str, Cell] = {name: name for name in ("parameters", *ALL_PARAMETERS)}
    every |= {**ALONGSIDE, "reasoning_consistency": "reasoning_consistency"}
    every |= {name: name for name in ("chosen", "status")}
    return (
        joined([quantities(data, *PARAMETERS)]),
        Rows("Noisy-ORs, best fit first", columns, WHOSE, of=units),
        Rows("Noisy-ORs by number of parameters", every, WHOSE, of=fits),
    )
