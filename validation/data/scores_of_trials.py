"""All measures of a trial file at once: `knownminds score`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

import numpy as np
import pandas as pd

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Rate,
    Trials,
    answer_columns,
    environment_of,
    make,
    outcome_rates,
    unknown,
)
from knownminds.inference import MEASURES, Estimate, Measure
from knownminds.inference.bandits.released_code import departures_of, released_performance
from knownminds.inference.causes.causal_answers import as_published, causal_answers
from knownminds.inference.causes.cell_contrast import CellContrast
from knownminds.inference.causes.least_squares_reasoner import Scoring
from knownminds.inference.causes.reasoner_measure import ReasonerMeasure
from knownminds.inference.measure import reason_of, told_value
from knownminds.inference.performance import performance
from knownminds.validation.engine.arguments import one_of, set_to
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions

from .trials_of_runs import BY, CONDITIONS, Data, also_called, read_one, several_of

RELEASED = "_released"
FILE = "measures.json"
NONE = "none"  # the sample of what has no value in the column

PERFORMANCE = "performance"
COLLIDER = "collider"


@dataclass(frozen=True)
class Measured(Reported):
    """What the measures say of a trial file.

    Parameters
    ----------
    source
        The file, or "trials".
    by
        The column whose values are told apart; "" if all trials are one sample.
    table
        One row per experiment, sample and measure: value, standard_error, low, high (95%),
        p_value, n, unit, excluded (what was left out, by reason), fits (how many fits ended in
        which status; empty where nothing is fitted), note (what else is to be said of the
        interval), and status: "ok", or why there is no value.
    outcomes
        By experiment, how often each outcome of an answer occurred.
    outcomes_by_sample
        The same by experiment and sample; empty if all trials are one sample.
    released
        Of measures as a published script computes them: what of the script is followed, what must
        differ from its numbers, and how many rows of trials that concerns.
    """

    file: ClassVar[str] = FILE

    source: str
    by: str
    table: pd.DataFrame
    outcomes: Mapping[str, tuple[Rate, ...]]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    outcomes_by_sample: Mapping[str, Mapping[str, tuple[Rate, ...]]] = field(default_factory=dict)
    released: tuple[Mapping[str, Any], ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per experiment, sample and measure."""
        return self.table.copy()

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "source": self.source,
            "by": self.by,
            "measures": self.table.to_dict("records"),
            "outcomes": {place: _counts(rates) for place, rates in self.outcomes.items()},
            "outcomes_by_sample": {
                place: {sample: _counts(rates) for sample, rates in samples.items()}
                for place, samples in self.outcomes_by_sample.items()
            },
            "options": dict(self.options),
            "versions": dict(self.versions),
            **({"released": [dict(one) for one in self.released]} if self.released else {}),
        }

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The measures."""
        return {"measures": self.table}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Measured:
        """Make a table of measures of what `to_dict` gave."""
        table = pd.DataFrame(found["measures"])
        numbers = ["value", "standard_error", "low", "high", "p_value"]
        table[numbers] = table[numbers].astype(float)
        if "fits" not in table:  # written before these were told
            none: list[Any] = [{} for _ in range(len(table))]
            table = table.assign(fits=none, note="")
        return cls(
            found["source"],
            found["by"],
            table,
            {place: outcome_rates(counts) for place, counts in found["outcomes"].items()},
            found["options"],
            found["versions"],
            {
                place: {sample: outcome_rates(counts) for sample, counts in samples.items()}
                for place, samples in found.get("outcomes_by_sample", {}).items()
            },
            tuple(found.get("released", ())),
        )

    def __str__(self) -> str:
        """One line per measure."""
        rows: list[dict[Any, Any]] = self.table.to_dict("records")
        lines = [told_row(row) for row in rows]
        lines += [
            f"{told_outcomes(rates)} answers of {sample} in {place}"
            for place, samples in self.outcomes_by_sample.items()
            for sample, rates in samples.items()
        ]
        lines += [told_departure(one) for one in self.released]
        return "\n".join(lines)


read_measured = Measured.read


def told_row(row: Mapping[str, Any]) -> str:
    """Write down what a measure says of a sample in a line."""
    who = f" of {row['sample']}" if row["sample"] else ""
    about = f"{row['measure']}{who} ({row['environment']})"
    left = [f"{n} left out ({why})" for why, n in row["excluded"].items() if n]
    if row["status"] != "ok":
        return "; ".join([f"{about}: none, {row['status']}", *left])
    value = told_value(row["value"], row["low"], row["high"], row["p_value"])
    told = f"{about}: {value}, {row['n']} {row['unit']}{'' if row['n'] == 1 else 's'}"
    note = [row["note"]] if row["note"] else []
    return "; ".join([told, *left, *told_fits(row["fits"]), *note])


def told_departure(told: Mapping[str, Any]) -> str:
    """Write down what is followed of a published script, and what must differ."""
    rows = f" ({told['rows']:,} rows)" if told["rows"] else ""
    return (
        f"{told['measure']} ({told['environment']}) against the script's number: "
        f"followed: {told['followed']}; differs: {told['differs']}{rows}"
    )


def told_fits(fits: Mapping[str, int]) -> list[str]:
    """Write down how many fits are flat, at a boundary or failed; nothing if none is."""
    total = sum(fits.values())
    return [f"{n} of {total} fits {status}" for status, n in fits.items() if status != "ok"]


def told_outcomes(rates: Sequence[Rate]) -> str:
    """Write down how often each outcome occurred."""
    found = [f"{rate.count} {rate.outcome}" for rate in rates if rate.count]
    return f"{', '.join(found)} of {rates[0].of}"


def _counts(rates: Sequence[Rate]) -> dict[str, int]:
    return {rate.outcome: rate.count for rate in rates}


def score(
    data: Data,
    measures: Sequence[str] | None = None,
    *,
    environment: str | None = None,
    columns: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    by: str | None = None,
    released: bool = False,
    scoring: Scoring | None = None,
) -> Measured:
    """Read off a trial file every measure that its experiments have, and the performance.

    Parameters
    ----------
    data
        A .csv or .parquet file, a run's folder, several of these (see `joined`), or trials. They
        may be of several experiments, told apart by the column "environment".
    measures
        Which; all that fit by default.
    environment
        The experiment, of data that do not name it.
    columns
        Our column names -> the file's.
    settings
        Of the experiment, where the data do not tell them; there is one then.
    by
        A column whose values are samples of their own, such as "model".
    released
        Whether measures whose published code departs from the definition follow the code. Of
        answers about a collider each sample is then one agent, as in Dettki (2025).
    scoring
        Of answers about a collider: whether both directions of a question are answered by one
        formula, see `causal_profile`.

    Raises
    ------
    ValueError
        If a measure or experiment is unknown, or a measure fits none of the experiments.
    """
    names = list(dict.fromkeys(measures)) if measures else None
    for name in names or ():
        one_of("measure", name, [*MEASURES, PERFORMANCE, PERFORMANCE + RELEASED])
    if scoring is not None:
        one_of("scoring", scoring, get_args(Scoring))
    source, trials = read_one(data, columns)
    rows: list[dict[str, Any]] = []
    outcomes: dict[str, tuple[Rate, ...]] = {}
    by_sample: dict[str, dict[str, tuple[Rate, ...]]] = {}
    used: set[str] = set()
    places: list[Environment] = []
    departures: list[Mapping[str, Any]] = []
    for place, part in _experiments(trials, environment, settings):
        places.append(place)
        outcomes[place.name] = outcome_rates(part)
        wanted = names or _names_of(place, released)
        own = [name for name in wanted if _is_of(name, place)]
        used.update(own)
        told = [departures_of(place.name, name, part) for name in own] if released else []
        departures += [one for one in told if one is not None]
        apart = [by] if by else []
        samples = _samples(part, apart)
        for sample, some in samples:
            rows += [_row(name, place, sample, some, scoring) for name in own]
        if apart:
            by_sample[place.name] = {sample: outcome_rates(some) for sample, some in samples}
    _check_used(names or (), used, outcomes)
    options: dict[str, Any] = {"measures": names, "environment": environment, "released": released}
    options |= {"columns": dict(columns or {}), **several_of(data)}
    options |= {"settings": dict(settings)} if settings else {}
    _check_scoring(scoring, places)
    if any(map(_about_collider, places)):
        options |= {"scoring": scoring or ("pooled" if released else "by_cause")}
    table = pd.DataFrame(rows)
    told_too = tuple(departures)
    return Measured(source, by or "", table, outcomes, options, versions(), by_sample, told_too)


def _check_scoring(scoring: Scoring | None, places: Sequence[Environment]) -> None:
    """Raise ValueError at a scoring of noisy-ORs where no answers are about a collider."""
    if scoring is not None and not any(map(_about_collider, places)):
        raise ValueError(
            "A scoring is that of noisy-ORs fitted to answers about a collider; the trials are of "
            f"{', '.join(place.name for place in places)}. Leave --scoring out."
        )


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


def records_of(
    data: Data,
    by: str,
    *,
    environment: str | None = None,
    columns: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, list[Trials]]:
    """Return the trials of each value of a column, one record per experiment."""
    _, trials = read_one(data, columns)
    found: dict[str, list[Trials]] = {}
    for _, part in _experiments(trials, environment, settings):
        for sample, some in _samples(part, [by]):
            found.setdefault(sample, []).append(some)
    return found


def played_in(
    people: Mapping[str, Sequence[Trials]], settings: Mapping[str, Any] | None = None
) -> list[Environment]:
    """Return the experiments of several participants' records, with the settings that they tell.

    What is given in `settings` counts more.
    """
    found: dict[str, Environment] = {}
    for records in people.values():
        for trials in records:
            name = str(trials.frame["environment"].iloc[0])
            if name not in found:
                found[name] = set_to(environment_of(trials, name), settings)
    return list(found.values())


def _experiments(
    trials: Trials, name: str | None, settings: Mapping[str, Any] | None = None
) -> list[tuple[Environment, Trials]]:
    """Return the experiments of the trials, each with its own."""
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
    found = []
    for place, part in frame.groupby("environment", sort=False):
        if place not in ENVIRONMENTS:
            raise ValueError(unknown("environment", str(place), ENVIRONMENTS))
        environment = set_to(environment_of(Trials(part), str(place)), settings)
        # Columns that only other experiments have are empty here, and no columns of these trials.
        own = part.dropna(axis="columns", how="all").reset_index(drop=True)
        reward = ["reward"] if environment.feedback and "reward" in part else []
        for column in [*answer_columns(environment), *reward]:  # empty where nothing was answered
            own[column] = part[column].to_numpy() if column in part else None
        found.append((environment, Trials.from_frame(own, environment=environment)))
    return found


def _about_collider(environment: Environment) -> bool:
    return environment.name == COLLIDER and environment.settings["graph"] == "collider"


def _names_of(environment: Environment, released: bool) -> list[str]:
    """Return the measures of an experiment and its performance, in the form that is asked for."""
    names = []
    for name, measure in MEASURES.items():
        if environment.name not in measure.environments or name.endswith(RELEASED):
            continue
        names.append(name + RELEASED if released and name + RELEASED in MEASURES else name)
    if environment.performance_bounds is not None:
        departs = released and released_performance(environment) is not None
        names.append(PERFORMANCE + RELEASED if departs else PERFORMANCE)
    return names


def _samples(trials: Trials, by: Sequence[str]) -> list[tuple[str, Trials]]:
    """Return the trials of each combination of values of some columns, under its name."""
    if not by:
        return [("", trials)]
    frame = trials.frame
    by = [also_called(name, frame) for name in by]
    # An experiment without a condition has one value of it, as have trials that do not tell it.
    absent = [name for name in by if name in CONDITIONS and name != BY and name not in frame]
    frame = frame.assign(**dict.fromkeys(absent, NONE))
    for name in by:
        if name not in frame:
            raise ValueError(
                f"Samples are told apart by a column of the trials; there is no {name!r} among "
                f"{', '.join(frame.columns)}."
            )
    told = [frame[name].astype(object).where(frame[name].notna(), NONE) for name in by]
    groups = frame.groupby(told, sort=False)
    return [(", ".join(map(str, k)), Trials.from_frame(part)) for k, part in groups]


def _row(
    name: str, environment: Environment, sample: str, trials: Trials, scoring: Scoring | None
) -> dict[str, Any]:
    """Estimate one measure; one that cannot be had is a row with the reason."""
    status = "ok"
    try:
        as_released = released_performance(environment) if name == PERFORMANCE + RELEASED else None
        if as_released is not None:
            found = as_released.estimate(trials)
        elif name == PERFORMANCE:
            found = performance(trials, environment)
        else:
            found = _estimate(name, trials, scoring)
    except ValueError as error:
        found, status = _nothing(name), str(error)
    if status == "ok" and not np.isfinite(found.value):
        status = reason_of(found)
    return {
        "environment": environment.name,
        "sample": sample,
        "measure": name,
        "value": found.value,
        "standard_error": found.standard_error,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "n": found.n,
        "unit": found.unit,
        "excluded": dict(found.excluded),
        "fits": dict(found.fits),
        "note": found.note,
        "status": status,
    }


def _estimate(name: str, trials: Trials, scoring: Scoring | None) -> Estimate:
    """Estimate a measure; of a collider with the scoring, and released ones as of one agent."""
    measure = MEASURES[name]
    if isinstance(measure, ReasonerMeasure) and scoring is not None:
        measure = measure.scored(scoring)
    if isinstance(measure, CellContrast | ReasonerMeasure) and name.endswith(RELEASED):
        answers = causal_answers(trials)
        found = measure.estimate(as_published(answers, pd.Series("all", index=answers.index)))
        return replace(found, excluded={**found.excluded, **measure.unanswered(trials)})
    return measure.estimate(trials)


def _nothing(name: str) -> Estimate:
    return Estimate(name, np.nan, np.nan, np.nan, np.nan, 0, "subject", np.nan, {})


def null_of(name: str) -> float:
    """Return the value that a measure's test rejects; NaN if it has none."""
    measure: Measure | None = MEASURES.get(name)
    return measure.null if measure is not None else np.nan
