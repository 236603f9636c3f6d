"""Measures of a trial file: `knownminds score`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Trials,
    answer_columns,
    environment_of,
    make,
    unknown,
)
from knownminds.environments.conditions import SHARED_DESIGN
from knownminds.environments.record.outcome_rates import Rate
from knownminds.inference import MEASURES, Analysis, Estimate
from knownminds.inference.bandits.released_code import released_performance
from knownminds.inference.causes.causal_answers import as_published, causal_answers
from knownminds.inference.causes.cell_contrast import CellContrast
from knownminds.inference.causes.least_squares_reasoner import Scoring
from knownminds.inference.causes.reasoner_measure import ReasonerMeasure
from knownminds.inference.groups.crossed_levels import units_of
from knownminds.inference.measure import Measure, counts_text, reason_of
from knownminds.inference.performance import performance_of
from knownminds.validation.engine.arguments import one_of, set_to
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.screen import INTERVALS
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import Verdict

from .audited import known_of
from .controls import controls_of_data
from .feature_regression import regress_on_features, with_features
from .questions import AskScore
from .score_figures import (
    CORNERS,
    MOST_LINES,
    MOST_RADARS,
    draw_distributions,
    draw_intervals,
    draw_radar,
    draw_scale,
)
from .score_scale import (
    RELEASED,
    SCALE,
    UNSIGNED,
    metric_of,
    read_csv,
    read_reference,
    scaled,
    with_random,
)
from .trials_of_runs import (
    BY,
    CONDITIONS,
    also_called,
    copied_sessions,
    lacking_trials,
    of_several_servers,
    read_one,
    rows_where,
)

NONE = "none"  # the sample of what has no value in the column
# In what a participant's answers may differ, beside the fields of an experiment.
ASKED_IN = (
    "reasoning", "history", "content", "names", "overload", "control", "form", "asking", "modality",
    "noise", "temperature", "effort", "verbosity", "system", "answer_prefix", "template",
)  # fmt: skip
PERFORMANCE = "performance"
INFLUENCE = "influence"  # column of what each session does to a value, see `Estimate`
COLLIDER = "collider"
TABLE = "Measures"
ON_SCALE = "From random answers (0) to the reference (1)"
SIDE_BY_SIDE = "Normalised, side by side"
SCALED = [
    "participant",
    "metric",
    "value",
    "random",
    "random_error",
    "reference",
    "normalised",
    "normalised_error",
    "normalised_low",
    "normalised_high",
]
REGRESSIONS = "Regressions on features"
OUTCOMES = "Outcomes of the answers"
CAPTION = "Each measure with its 95% interval; a cross is the value that its test rejects."
MANY = "Each measure over participants: median, 10% and 90%; a cross is what its test rejects."
OVER_SCALE = "Each metric on the scale from random answers (grey, 0) to the reference (1)."
RADAR = "The metrics of each participant on one scale, with 95% intervals."
NOTES = (
    "Intervals are of 95%. A scale is where values can lie; what they are, the line of a measure "
    "says. What each rests on stands in the column n: subjects; sessions, where a single "
    "subject has several (one for all wordings of a design); or the rows of a regression "
    "over all of them, with errors that are robust to dependence within subjects or sessions (CR2, "
    "with Satterthwaite's degrees of freedom). "
    "Those of bounded quantities stay within the bounds.",
    "Trials without a readable answer are left out and counted; nothing replaces them. Of "
    "fits that are flat the trials say next to nothing about a parameter, and the prior speaks.",
    "audit: what the test of a measure does at this size to players whose truth is known: in which "
    "share it rejects where there is no effect, how often its interval holds the truth, and how "
    "often it finds an effect (`python docs/conclusions.py`).",
)
ABOUT_FEATURES = (
    "Regressions: value = b_0 + b x features + an intercept per base model + rest, by restricted "
    "maximum likelihood; tests have the degrees of freedom of the level on which a feature varies."
)


class Scored(NamedTuple):
    """The page of measures, and what participants are compared by.

    Parameters
    ----------
    scores : As `table`, with the influences of sessions.
    trials : With the participant of each row.
    """

    result: Result
    scores: pd.DataFrame
    trials: pd.DataFrame


def scores_of(question: AskScore) -> Scored:
    """Read off a trial file every measure that its experiments have, and the performance."""
    names = list(dict.fromkeys(question.measures)) if question.measures else None
    for name in names or ():
        one_of("measure", name, [*MEASURES, PERFORMANCE, PERFORMANCE + RELEASED])
    source, trials = read_one(question.data, question.columns)
    trials, chosen_rows = rows_where(trials, question.where)
    controls = controls_of_data(question.data)
    parts = _experiments(trials, question.environment, question.settings)
    if question.scoring is not None and not any(
        _about_collider(environment) for environment, _ in parts
    ):
        raise ValueError(
            "A scoring is that of noisy-ORs fitted to answers about a collider; the trials are of "
            f"{', '.join(environment.name for environment, _ in parts)}. Leave --scoring out."
        )
    rows, rates, used, answered = [], [], set(), []
    analyses: dict[str, None] = {}
    told_apart: dict[str, str] = {}
    for environment, part in parts:
        chosen = [
            n for n in names or _names_of(environment, question.released) if _is_of(n, environment)
        ]
        used.update(chosen)
        by = question.by or _participants(part)
        told_apart[environment.name] = by
        label, differing = by_condition(_labels(part, by), environment, part, question.released)
        if differing:
            chosen_rows.append(
                f"Answers to {environment.name} that differ in {' and '.join(differing)} have "
                "measures of their own."
            )
        rows += measured(chosen, environment, part, label, question.scoring)
        analyses |= _analyses(chosen, environment, part, label)
        rates.append(_rates(part, label, environment.name))
        answered.append(part.frame.assign(participant=label))
    _check_used(names or (), used, [environment.name for environment, _ in parts])
    if not rows:
        raise ValueError(
            f"No measure is read off {' and '.join(e.name for e, _ in parts)}: `knownminds list` "
            "shows which experiment has which. Fit a model to the trials (`knownminds fit`)."
        )
    scores = pd.DataFrame(rows)
    table = scores.drop(columns=INFLUENCE)
    places = {place.name: place for place, _ in parts}
    table["scale"] = _scales(table, places)
    table["audit"] = _audited(table, places)
    more = _on_scale(question, table, [environment for environment, _ in parts])
    regressions = _regressions(question, more.rows if len(more.rows) else table)
    figures = {}
    if (table["status"] == "ok").any():
        few = table["participant"].nunique() <= MOST_LINES
        figures = {
            CAPTION if few else MANY: Drawing(table, draw_intervals if few else draw_distributions)
        }
    counts = pd.concat(rates, ignore_index=True)
    answers = counts.groupby("outcome", sort=False)["count"].sum()
    doubts = [t for one in parts for t in (*copied_sessions(*one), *lacking_trials(*one))]
    notes = [*NOTES, *chosen_rows]
    notes += [*controls.notes, *more.notes]
    options = _asked(question, source)
    result = Result(
        title=f"The measures of {source}{_by_what(told_apart)}",
        verdicts={**controls.verdicts, **_without_value(table)},
        tables={
            TABLE: _shown(table),
            **controls.tables,
            **more.tables,
            **regressions.tables,
            OUTCOMES: _shown(counts),
        },
        shows=(
            "value",
            "low",
            "high",
            "p_value",
            "n",
            "scale",
            "audit",
            "status",
            "standard_error",
        ),
        counts={"answers": {str(k): int(n) for k, n in answers[answers > 0].items()}},
        figures={**figures, **more.figures},
        warnings=[*doubts, *_without_interval(table), *of_several_servers(question.data)],
        notes=[*notes, *regressions.notes, *_meanings(table)],
        options={**options, "analysis": [*analyses, *controls.options.get("analysis", ())]},
        command=_command(options),
        versions=versions(),
    )
    return Scored(result, scores, pd.concat(answered, ignore_index=True))


def _participants(trials: Trials) -> str:
    """Return the column that says who answered, where several did; "" where one did."""
    columns = ("participant", BY)
    several = (c for c in columns if c in trials.frame and trials.frame[c].nunique() > 1)
    return next(several, "")


def _by_what(told_apart: Mapping[str, str]) -> str:
    """Say by which column participants are separated."""
    names = list(dict.fromkeys(filter(None, told_apart.values())))
    return f", by {' and '.join(names)}" if names else ""


def _asked(question: AskScore, source: str) -> dict[str, Any]:
    """Return the options by name."""
    data = question.data
    options, usual = question.option_values(), AskScore(()).option_values()
    options.pop("subject_matter")
    paths = [source] if isinstance(data, Trials | str | Path) else [str(path) for path in data]
    given = {name: value for name, value in options.items() if value not in (usual[name], None)}
    return {"data": paths, **given}


def _command(given: Mapping[str, Any]) -> str:
    """Return the command line that computes the same again."""
    options = {**given, "columns": in_one(given.get("columns", {}))}
    return command_line("score", *options.pop("data"), **options)


def _analyses(
    names: Sequence[str], environment: Environment, trials: Trials, label: NDArray[np.object_]
) -> dict[str, None]:
    """Say how each measure was estimated and tested, in samples of one subject and of several."""
    several = trials.frame.groupby(label, sort=False)["subject"].nunique() > 1
    return {
        str(Analysis.of(_measure(name, environment, None), 2 if many else 1)): None
        for name in names
        for many in several.unique()
    }


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns in which nothing stands."""
    empty = [name for name in ("fits", "note", "audit")
             if name in table and not table[name].astype(bool).any()]  # fmt: skip
    shown = table.drop(columns=empty).reset_index(drop=True)
    shown.attrs[INTERVALS] = 0.95
    return shown


def _without_value(table: pd.DataFrame) -> dict[str, Verdict]:
    """Name the participants of whom no measure has a value, and say why."""
    verdicts = {}
    for name, some in table.groupby("participant", sort=False):
        if name and not (some["status"] == "ok").any():
            rows = zip(some["measure"], some["left_out"], some["status"], strict=True)
            reasons = [f"{measure}: {left or status}" for measure, left, status in rows]
            verdicts[str(name)] = Verdict("has no value", tuple(reasons))
    return verdicts


def _without_interval(table: pd.DataFrame) -> list[str]:
    """Say which measures have a value and no interval, and why."""
    why = table["note"].astype(str).where(table["status"] == "ok", "")
    some = table[why.str.startswith("no interval")]
    return [
        f"{', '.join(dict.fromkeys(rows['measure']))}: {note}."
        for note, rows in some.groupby("note", sort=False)
    ]


def _scales(table: pd.DataFrame, places: Mapping[str, Environment]) -> list[str]:
    """Say between which ends each measure lies."""
    performed = (PERFORMANCE, PERFORMANCE + RELEASED)
    ends = [
        places[row["experiment"]].performance_bounds
        if row["measure"] in performed
        else MEASURES[row["measure"]].bounds
        for row in table.to_dict("records")
    ]
    return ["" if pair is None else f"({pair[0]:g}, {pair[1]:g})" for pair in ends]


def _audited(table: pd.DataFrame, places: Mapping[str, Environment]) -> list[str]:
    """Say of each test what the standing audit knows of it at this size."""
    return [
        known_of(row["measure"], places[row["experiment"]], row["unit"], row["n"])
        if np.isfinite(row["p_value"]) and row["measure"] in MEASURES
        else ""
        for row in table.to_dict("records")
    ]


def _meanings(table: pd.DataFrame) -> list[str]:
    names = table.loc[table["status"] == "ok", "measure"].unique()
    each = [(name, MEASURES[name]) for name in names if name in MEASURES]
    return [f"{name}: {measure.summary} ({measure.source})." for name, measure in each]


def _on_scale(question: AskScore, table: pd.DataFrame, places: Sequence[Environment]) -> Result:
    """Return the measures on the scale from random answers to the reference, if there is one."""
    if question.reference is None:
        return Result("")
    named = with_metric(table)
    designs = {environment.name: environment for environment in places}
    reference, of_people = reference_of(
        question.reference, named, designs, question.environment, question.scoring
    )
    known = named["metric"].isin(list(reference))
    named = named.assign(reference=named["metric"].map(reference).astype(float))
    placed = with_random(named[known], designs, question.seed)
    whole = scaled(named.join(placed[["random", "random_error"]]), question.released)
    drawn = whole[whole["reference"].notna()]
    wide = drawn.pivot_table("normalised", "participant", "metric", sort=False)
    figures = {}
    if drawn["normalised"].notna().any():
        figures[OVER_SCALE] = Drawing(drawn, draw_scale)
        if drawn["metric"].nunique() >= CORNERS and len(wide) <= MOST_RADARS:
            figures[RADAR] = Drawing(drawn, draw_radar)
    notes = [SCALE, *([UNSIGNED] if question.released else []), *of_people]
    tables = {SIDE_BY_SIDE: wide.rename_axis(columns=None), ON_SCALE: drawn[SCALED]}
    return Result("", tables=tables, figures=figures, notes=notes, rows=whole)


def with_metric(table: pd.DataFrame) -> pd.DataFrame:
    """Return measures with the names that they have in a reference, as `metric`."""
    pairs = zip(table["experiment"], table["measure"], strict=True)
    return table.assign(metric=[metric_of(*pair) for pair in pairs])


def reference_of(
    source: str | Path,
    scores: pd.DataFrame,
    designs: Mapping[str, Environment],
    environment: str | None = None,
    scoring: Scoring | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Return the reference's values by metric, and sentences on what it is.

    Of trials of people, in files of ours or folders of runs, the value is what all of them
    together score. Else see `read_reference`.

    Parameters
    ----------
    scores : Columns experiment, measure and metric, of what is scored.
    designs : The design in which it was scored, by experiment.
    environment : The experiment of trials that do not name theirs.

    Raises
    ------
    ValueError : If nothing that is scored has a value, or see `read_reference`.
    """
    named = scores.drop_duplicates("metric")
    if not _is_of_trials(Path(source)):
        scored = dict(zip(named["metric"], named["experiment"], strict=True))
        values, unused = read_reference(source, scored)
        text = f"Of the reference, {', '.join(unused)} is not scored here and not used."
        return values, [text] if unused else []
    name, trials = read_one(source, None)
    own = None if "environment" in trials.frame else environment
    values, texts = {}, []
    for place, part in _experiments(trials, own):
        of = named[named["experiment"] == place.name]
        if not len(of):
            texts.append(f"Of the reference, {place.name} is not scored here and not used.")
            continue
        nobody = np.full(len(part.frame), "", dtype=object)
        rows = pd.DataFrame(measured(list(of["measure"]), place, part, nobody, scoring))
        values |= dict(zip(with_metric(rows)["metric"], rows["value"], strict=True))
        people = part.frame["subject"].nunique()
        texts.append(f"The reference of {place.name} is what {people} in {name} score together.")
        other = designs[place.name].settings
        differs = [
            f"{key} {value}, not {other.get(key)}"
            for key, value in place.settings.items()
            if key not in SHARED_DESIGN and other.get(key) != value
        ]
        if differs:
            texts.append(f"Their {place.name} has another design: {'; '.join(differs)}.")
        texts += [
            f"The reference has no {row['measure']} of {place.name}: {row['status']}"
            for row in rows.to_dict("records")
            if row["status"] != "ok"
        ]
    if not values:
        raise ValueError(
            f"A reference has trials of what is scored, {', '.join(named['experiment'].unique())}; "
            f"{name} has none of these. Name another file."
        )
    return values, texts


def _is_of_trials(source: Path) -> bool:
    """Whether a reference is people's trials rather than a table of values."""
    if source.is_dir() or source.suffix == ".parquet":
        return True
    return source.is_file() and {"subject", "trial"} <= set(read_csv("A reference", source, ()))


def _regressions(question: AskScore, table: pd.DataFrame) -> Result:
    """Return the regressions of the measures on features of participants, if these are given."""
    if question.features is None:
        return Result("")
    base = question.base_model
    features = read_csv("A table of features", question.features, ("participant", base))
    score = table["normalised" if question.reference else "value"]
    scores = table.assign(metric=table["measure"], score=score)
    known, left = with_features(scores[["participant", "metric", "score"]], features)
    if not len(known):
        raise ValueError(
            f"Features are those of participants, by name; {Path(question.features).name} has "
            f"{', '.join(map(str, features['participant']))}, and the scores are of "
            f"{', '.join(scores['participant'].unique())}. Rename them in the table, or name "
            "participants with --by."
        )
    rows = regress_on_features(
        known, features, feature=question.feature, base_model=base, standardise=question.standardise
    )
    return Result("", tables={REGRESSIONS: rows}, notes=[ABOUT_FEATURES, *left])


def _is_of(name: str, environment: Environment) -> bool:
    """Whether a measure, or the performance, is read off an experiment."""
    if name == PERFORMANCE + RELEASED:
        return released_performance(environment) is not None
    return name == PERFORMANCE or environment.name in MEASURES[name].environments


def _check_used(names: Sequence[str], used: set[str], places: Iterable[str]) -> None:
    """Raise ValueError at a measure that is of none of the trials' experiments."""
    lost = [name for name in names if name not in used]
    if lost:
        measure = MEASURES.get(lost[0])
        where = measure.environments if measure else [n for n in ENVIRONMENTS if _scored(n)]
        raise ValueError(
            f"{lost[0]} is a measure of {', '.join(where)}; the trials "
            f"are of {', '.join(places)}. Leave it out."
        )


def _scored(name: str) -> bool:
    return released_performance(make(name)) is not None


def _experiments(
    trials: Trials, name: str | None, settings: Mapping[str, Any] | None = None
) -> list[tuple[Environment, Trials]]:
    """Return the experiments of the trials, each with its trials."""
    frame = trials.frame
    if name is not None:
        one_of("environment", name, ENVIRONMENTS)
        frame = frame.assign(environment=name)
    if "environment" not in frame or frame["environment"].isna().any():
        raise ValueError(
            "Measures are those of an experiment, and the trials do not name theirs. "
            f"Say which with --environment: one of {', '.join(ENVIRONMENTS)}."
        )
    if settings and frame["environment"].nunique() > 1:
        raise ValueError(
            "Settings are those of one experiment; the trials are of "
            f"{', '.join(frame['environment'].unique())}. Leave --set out, or split the file."
        )
    experiments = []
    for experiment, part in frame.groupby("environment", sort=False):
        if experiment not in ENVIRONMENTS:
            raise ValueError(unknown("environment", str(experiment), ENVIRONMENTS))
        environment = set_to(environment_of(Trials(part), str(experiment)), settings)
        # Columns that only other experiments have are empty here, and no columns of these trials.
        rows = part.dropna(axis="columns", how="all").reset_index(drop=True)
        reward = ["reward"] if environment.feedback and "reward" in part else []
        for column in [*answer_columns(environment), *reward]:  # empty where nothing was answered
            rows[column] = part[column].to_numpy() if column in part else None
        experiments.append((environment, Trials.from_frame(rows, environment=environment)))
    return experiments


def _about_collider(environment: Environment) -> bool:
    return environment.name == COLLIDER and environment.settings["graph"] == "collider"


def _names_of(environment: Environment, released: bool) -> list[str]:
    """Return the measures of an experiment and its performance, in the form that is chosen."""
    names = []
    for name, measure in MEASURES.items():
        if environment.name not in measure.environments or name.endswith(RELEASED):
            continue
        names.append(name + RELEASED if released and name + RELEASED in MEASURES else name)
    if environment.performance_bounds is not None:
        departs = released and released_performance(environment) is not None
        names.append(PERFORMANCE + RELEASED if departs else PERFORMANCE)
    return names


def _labels(trials: Trials, by: str) -> NDArray[np.object_]:
    """Return the sample of each trial: its value in a column, "" of all trials without one."""
    frame = trials.frame
    if not by:
        return np.full(len(frame), "", dtype=object)
    column = also_called(by, frame)
    if column not in frame:
        if column in CONDITIONS and column != BY:  # a condition that this experiment does not have
            return np.full(len(frame), NONE, dtype=object)
        raise ValueError(
            f"Samples are separated by a column of the trials; there is no {column!r} among "
            f"{', '.join(frame.columns)}."
        )
    label = frame[column].astype(object).where(frame[column].notna(), NONE)
    return label.astype(str).to_numpy(dtype=object)


def by_condition(
    label: NDArray[np.object_], environment: Environment, trials: Trials, released: bool
) -> tuple[NDArray[np.object_], list[str]]:
    """Split samples by the conditions that differ within one of them; return also which these are.

    Fields of the experiment are no conditions: measures read them. As released, an agent is all its
    answers, whatever their temperature.
    """
    frame, names = trials.frame, []
    fields = {field.name for field in environment.fields}
    for name in ASKED_IN:
        if name not in frame or name in fields or (released and name == "temperature"):
            continue
        if name == "template" and "design_number" in frame:
            continue  # the same sessions in several wordings, which errors and tests regard
        values = frame[name].astype(object).where(frame[name].notna(), NONE).astype(str)
        if values.groupby(label, sort=False).nunique().max() > 1:
            one = f"{name}=" + values.to_numpy(dtype=object)
            names.append(name)
            label = np.where(label == "", one, label + ", " + one)
    return label, names


def _rates(trials: Trials, label: NDArray[np.object_], experiment: str) -> pd.DataFrame:
    """Return how often each outcome came in each sample, but for outcomes that never did."""
    counts = trials.frame.groupby([label, "outcome"], sort=False, observed=True).size()
    of = counts.groupby(level=0, sort=False).transform("sum")
    rows = [
        {"experiment": experiment, "participant": who, **vars(Rate.count_of(outcome, n, total))}
        for (who, outcome), n, total in zip(counts.index, counts, of, strict=True)
    ]
    return pd.DataFrame(rows)


def measured(
    names: Sequence[str],
    environment: Environment,
    trials: Trials,
    label: NDArray[np.object_],
    scoring: Scoring | None = None,
) -> list[dict[str, Any]]:
    """Estimate measures, and the performance, in each sample: a row each, see `_row`.

    Parameters
    ----------
    label : The sample of each trial.
    """
    samples = list(dict.fromkeys(label))
    columns = [_estimates(name, environment, trials, label, scoring) for name in names]
    return [
        _row(name, environment.name, who, *one)
        for who, *estimates in zip(samples, *columns, strict=True)
        for name, one in zip(names, estimates, strict=True)
    ]


def _estimates(
    name: str,
    environment: Environment,
    trials: Trials,
    label: NDArray[np.object_],
    scoring: Scoring | None,
) -> list[tuple[Estimate, str]]:
    """Estimate a measure in each sample; one that cannot be had has the reason beside it.

    Released forms are means over runs, as their scripts have it: each session is a unit.
    """
    measure = _measure(name, environment, scoring)
    if name.endswith(RELEASED) and not _as_published(measure):
        trials = Trials(trials.frame.assign(subject=units_of(trials, ("subject", "session"))))
    subject = trials.frame["subject"].to_numpy(dtype=object)
    pairs = set(zip(label, subject, strict=True))
    if len(pairs) == len(set(label)) == len(set(subject)) and not _as_published(measure):
        with suppress(ValueError):  # of one of them; each then has its settings
            return [(estimate, "ok") for estimate in measure.of_each(trials)]
    estimates: list[tuple[Estimate, str]] = []
    for _, part in trials.frame.groupby(label, sort=False):
        sample = Trials(part.reset_index(drop=True))
        try:
            estimates.append((_estimate(measure, sample), "ok"))
        except ValueError as error:
            estimates.append((_nothing(name), str(error)))
    return estimates


def _measure(name: str, environment: Environment, scoring: Scoring | None) -> Measure:
    """Return a measure as it is read off an experiment, of a collider with the scoring."""
    if name == PERFORMANCE:
        return performance_of(environment)
    if name == PERFORMANCE + RELEASED:
        return released_performance(environment) or performance_of(environment)
    measure = MEASURES[name]
    if isinstance(measure, ReasonerMeasure) and scoring is not None:
        return replace(measure, scoring=scoring)
    return measure


def _as_published(measure: Measure) -> bool:
    """Whether a measure of a collider is in the form of its paper's script."""
    of_collider = isinstance(measure, CellContrast | ReasonerMeasure)
    return of_collider and measure.name.endswith(RELEASED)


def _row(
    name: str, experiment: str, sample: str, estimate: Estimate, status: str
) -> dict[str, Any]:
    """Return the row of the table that an estimate has; `status` is "ok" or why there is none."""
    if status == "ok" and not np.isfinite(estimate.value):
        status = reason_of(estimate)
    return {
        "experiment": experiment,
        "participant": sample,
        "measure": name,
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "low": estimate.low,
        "high": estimate.high,
        "p_value": estimate.p_value,
        "n": estimate.n,
        "freedom": estimate.freedom,
        "unit": estimate.unit,
        "left_out": ", ".join(f"{n} {why}" for why, n in estimate.excluded.items() if n),
        "fits": counts_text(estimate.fits),
        "note": estimate.note,
        "status": status,
        INFLUENCE: estimate.influence,
    }


def _estimate(measure: Measure, trials: Trials) -> Estimate:
    """Estimate a measure; released ones of a collider as of one agent."""
    if isinstance(measure, CellContrast | ReasonerMeasure) and _as_published(measure):
        answers = causal_answers(trials)
        whole = as_published(answers, pd.Series("all", index=answers.index))
        estimate = measure.estimate(Trials(whole))
        return replace(estimate, excluded={**estimate.excluded, **measure.unanswered(trials)})
    return measure.estimate(trials)


def _nothing(name: str) -> Estimate:
    return Estimate(name, np.nan, np.nan, np.nan, np.nan, 0, "subject", np.nan, {})
