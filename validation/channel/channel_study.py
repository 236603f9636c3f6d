"""The channel round trip: known minds that answer in words, beside the same minds directly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Agent, Contaminants
from knownminds.agents.parameters import Array
from knownminds.agents.play import Player
from knownminds.environments import (
    ANSWERED,
    Environment,
    Outcome,
    Session,
    Trials,
    outcome_rates,
    session_stream,
    unknown,
)
from knownminds.environments.record.text_table import text_table
from knownminds.environments.words.final_answers import MARKER
from knownminds.inference.fits.missing_answers import METHODS, missing_answer_bounds
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_a_posteriori, maximum_likelihood
from knownminds.llm_adapters import Adapter, Synthetic, run_session
from knownminds.validation.engine.arguments import (
    check_lapse,
    check_truth,
    one_of,
    resolve_environment,
    resolve_model,
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.monte_carlo import Coverage, Score
from knownminds.validation.engine.population import (
    Lived,
    Subjects,
    check_step_loop,
    draw_subjects,
    live,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study, Thinned
from knownminds.validation.engine.verdicts import (
    RATES_LEVEL,
    Verdict,
    judge_bounds,
    judge_outcomes,
    judge_trials,
)

from .questions import AskChannel

CONTAMINANTS = (
    Contaminants(),
    Contaminants(malformed=0.05, refusal=0.05),
    Contaminants(malformed=0.1, refusal=0.05, truncation=0.05, verbosity=0.2),
)
MASS = 0.9
SESSIONS_PER_BATCH = 20  # two seconds
ROWS_KEPT = 1500  # of each cell, for the figure
_WHERE = ["subject", "session", "trial"]


@dataclass(frozen=True)
class Held:
    """How often 90% intervals of one parameter held the truth, and how wide they were.

    Parameters
    ----------
    direct, plain, bounds
        Shares that hold the truth: intervals of the direct path; of the words, missing answers
        left out; bounds over what these could have been.
    plain_width, bounds_width
        Mean widths of the latter two on the natural scale.
    """

    name: str
    direct: Score
    plain: Score
    bounds: Score
    plain_width: Score
    bounds_width: Score


@dataclass(frozen=True)
class Spoken:
    """What became of minds that answered in words with given contaminants.

    Parameters
    ----------
    attempted, failed
        Subjects; those without an estimate.
    trials, missing
        Trials that were lived, and those of them without a readable answer.
    differing
        Trials that differ from those of the direct path with the same answers withheld.
    apart
        Largest difference between the estimates of both paths, on the unconstrained scale, where
        every answer was read; NaN if there is no such subject.
    rates
        As in `outcome_rates`, with the probability that the dials give as `expected`.
    same, agreed, held
        Verdicts on trials, outcomes and bounds.
    messages
        How often which fit failed, by reason.
    """

    cell: Cell
    contaminants: Contaminants
    attempted: int
    failed: int
    trials: int
    missing: int
    differing: int
    apart: float
    rates: pd.DataFrame = field(repr=False)
    parameters: tuple[Held, ...]
    same: Verdict
    agreed: Verdict
    held: Verdict
    messages: Mapping[str, int]
    seconds: float
    rows: pd.DataFrame = field(repr=False)

    @property
    def label(self) -> str:
        """The contaminants in words."""
        return told(self.contaminants)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts by what they are about."""
        return {"trials": self.same, "outcomes": self.agreed, "bounds": self.held}

    def to_dict(self) -> dict[str, Any]:
        """All but the rows."""
        return {
            "contaminants": asdict(self.contaminants),
            "attempted": self.attempted,
            "failed": self.failed,
            "trials": self.trials,
            "missing": self.missing,
            "differing": self.differing,
            "apart": self.apart,
            "outcomes": self.rates.to_dict("records"),
            "parameters": {
                held.name: {
                    name: asdict(score)
                    for name in ("direct", "plain", "bounds", "plain_width", "bounds_width")
                    if isinstance(score := getattr(held, name), Score)
                }
                for held in self.parameters
            },
            "verdicts": {name: verdict.to_dict() for name, verdict in self.verdicts.items()},
            "messages": dict(self.messages),
        }


@dataclass(frozen=True)
class Channel(Reported):
    """The outcome of a channel round trip, one entry for each set of contaminants."""

    study: Study
    entries: tuple[Spoken, ...]
    versions: Mapping[str, str]

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return sum(entry.seconds for entry in self.entries)

    def to_frame(self) -> pd.DataFrame:
        """One row per set of contaminants and parameter."""
        rows = []
        for entry in self.entries:
            for held in entry.parameters:
                row: dict[str, Any] = {"contaminants": entry.label, "parameter": held.name}
                for name in ("direct", "plain", "bounds", "plain_width", "bounds_width"):
                    score = getattr(held, name)
                    row[name], row[f"{name}_error"] = score.value, score.error
                rows.append(row)
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        return {
            "environment": cell.environment,
            "settings": dict(cell.settings),
            "model": cell.model,
            "method": cell.method,
            "options": {k: v for k, v in cell.options.items() if k != "contaminants"},
            "truth": dict(cell.truth),
            "lapse": cell.lapse,
            "subjects": cell.subjects,
            "sessions": cell.sessions,
            "seed": self.study.seed,
            "mass": MASS,
            "entries": [entry.to_dict() for entry in self.entries],
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """Coverage by contaminants and parameter, then the verdicts."""
        cell = self.study.cells[0]
        lines = [
            f"channel of {cell.model} in {cell.environment}, {cell.method}, {cell.subjects} "
            f"subjects x {cell.sessions} sessions",
            f"share of {MASS:.0%} intervals that hold the truth",
        ]
        for entry in self.entries:
            lines.append(f"{entry.label}: {entry.missing} of {entry.trials} answers missing")
            rows = [(held.name, held.direct, held.plain, held.bounds) for held in entry.parameters]
            lines += text_table(("parameter", "direct", "in words", "with bounds"), rows)
            lines += [f"{name}: {verdict}" for name, verdict in entry.verdicts.items()]
            lines += [f"{n} failed: {message}" for message, n in entry.messages.items()]
        return "\n".join([*lines, "(Monte-Carlo errors)"])


def told(contaminants: Contaminants) -> str:
    """Write down contaminants as `parse_contaminants` reads them."""
    rates = {name: float(rate) for name, rate in asdict(contaminants).items() if rate}
    return ",".join(f"{name}={rate!r}" for name, rate in rates.items()) or "none"


def parse_contaminants(text: str) -> Contaminants:
    """Read "malformed=0.05,refusal=0.05", or "none".

    Raises
    ------
    ValueError
        At a name that is no contaminant of answers, or what is no rate.
    """
    dials = [dial.name for dial in fields(Contaminants) if dial.name != "lapse"]
    rates: dict[str, float] = {}
    for pair in [] if text.strip() == "none" else text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or name in rates:
            raise ValueError(
                f'Contaminants read malformed=0.05,refusal=0.05 or "none", each name once; '
                f"got {text!r}."
            )
        if name not in dials:
            raise ValueError(unknown("contaminant of answers", name, dials))
        try:
            rates[name] = float(value)
        except ValueError:
            raise ValueError(f"The rate of {name} is a number; got {value!r}.") from None
    return Contaminants(**rates)


channel = verb(AskChannel, __name__)


def compute(question: AskChannel) -> Channel:
    """Answer what `channel` is asked."""
    environment = resolve_environment(question.environment, question.trials)
    agent, method, fixed = resolve_model(question.model), question.method, question.fixed
    agent.check_plays(environment)
    if agent.given != "action":
        raise ValueError(
            f"A channel round trip bounds what missing actions could have named; {agent.name} "
            "gives numbers. Choose a model of actions alone."
        )
    one_of("method", method, METHODS)
    held = check_truth(agent.parameters, question.truth)
    if len(Unknowns.of(agent, fixed, question.fit_lapse).parameters) == 0:
        raise ValueError(f"Estimates are compared; {agent.name} has no parameter left to estimate.")
    wanted = CONTAMINANTS if question.contaminants is None else question.contaminants
    sets = [parse_contaminants(c) if isinstance(c, str) else c for c in wanted]
    if not sets:
        raise ValueError('A channel needs a set of contaminants, "none" for instance; got none.')
    if any(one.lapse for one in sets):
        raise ValueError(
            "A lapse is part of the decision, in words or not; got it among the contaminants. "
            "Give it as lapse (--lapse)."
        )
    cells = tuple(
        Cell(
            environment.name,
            environment.settings,
            agent.name,
            held,
            check_lapse(question.lapse),
            sessions=question.sessions,
            subjects=question.subjects,
            method=method,
            options={
                "contaminants": asdict(one),
                "fixed": dict(fixed or {}),
                "fit_lapse": question.fit_lapse,
            },
            batch=max(1, SESSIONS_PER_BATCH // max(question.sessions, 1)),
        )
        for one in sets
    )
    asked = question.asked() | {
        "contaminate": [told(one) for one in sets],
        "trials": environment.n_trials,
        "lapse": cells[0].lapse or None,
        "fix": dict(fixed or {}),
    }
    study = Study("channel", cells, 1, question.seed, "subject", asked)
    check_step_loop(study)
    return run(study, speak_batch, summarise, **question.running)


def read_channel(folder: str | os.PathLike[str]) -> Channel:
    """Read a finished channel round trip from its folder; nothing is computed anew."""
    return read(folder, "channel", summarise)


def speak_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let the subjects of a batch live both ways, and fit both: the work of a round trip."""
    cell = study.cells[batch.cell]
    model, fixed, lapse = AGENTS[cell.model], cell.options["fixed"], cell.options["fit_lapse"]
    subjects = draw_subjects(study, batch)
    direct = live(study, batch, subjects)
    words = in_words(study, batch, subjects)
    environment = direct.environment

    fitter = maximum_likelihood if cell.method == "mle" else maximum_a_posteriori
    data = ModelData.read(model, direct.trials(), environment.n_actions)
    straight = fitter(model, data, fixed=fixed, lapse=lapse, workers=threads)
    bounds = missing_answer_bounds(
        model,
        words,
        method="mle" if cell.method == "mle" else "map",
        fixed=fixed,
        lapse=lapse,
        n_actions=environment.n_actions,
        workers=threads,
    )
    plain = bounds.fit
    unknowns = Unknowns.of(model, fixed, lapse)
    true = subjects.theta[:, unknowns.columns]
    if lapse:
        true = np.column_stack([true, np.full(len(true), cell.lapse)])

    columns: dict[str, Any] = _compared(study, batch, subjects, direct, words)
    apart = np.abs(plain.z - straight.z).max(axis=1)
    columns["apart"] = np.where(bounds.n_missing == 0, apart, np.nan)
    lost = np.array([s == "failed" for s in straight.status], dtype=bool)
    columns["status"] = np.where(lost, "failed", plain.status)
    columns["message"] = np.where(lost, straight.message, plain.message)
    ends = {
        "direct_": straight.interval(MASS),
        "": plain.interval(MASS),
        "bounds_": bounds.interval(MASS),
    }
    for k, name in enumerate(unknowns.parameters.names):
        columns |= {f"true_{name}": true[:, k], f"direct_{name}": straight.estimate[:, k]}
        columns |= {name: plain.estimate[:, k]}
        columns |= {f"lowest_{name}": bounds.low[:, k], f"highest_{name}": bounds.high[:, k]}
        for which, (low, high) in ends.items():
            columns |= {f"{which}low_{name}": low[:, k], f"{which}high_{name}": high[:, k]}
    return pd.DataFrame(columns)


def in_words(study: Study, batch: Batch, subjects: Subjects) -> Trials:
    """Let the subjects of a batch answer in words; they are named by their position in it."""
    cell = study.cells[batch.cell]
    environment, contaminants = cell.make(), Contaminants(**cell.options["contaminants"])
    frames = []

    async def all_sessions() -> None:
        for i, theta in enumerate(subjects.theta):
            agent = AGENTS[cell.model].from_theta(
                theta, lapse=cell.lapse, actions=environment.n_actions
            )
            for k in range(cell.sessions):
                address = (cell.data_key, int(subjects.replicate[i]), k)
                speaker = participant(agent, environment, study.seed, address, contaminants)
                number = int(subjects.number[i])
                spoken = await run_session(speaker, environment, study.seed, *address, number)
                frames.append(spoken.frame.assign(subject=str(i), session=str(k)))

    with ThreadPoolExecutor(1) as thread:  # an event loop may be running here, in a notebook
        thread.submit(asyncio.run, all_sessions()).result()
    return Trials.from_frame(pd.concat(frames, ignore_index=True), environment=environment)


def participant(
    agent: Agent,
    environment: Environment,
    seed: int,
    address: Sequence[int],
    contaminants: Contaminants,
) -> Adapter:
    """Return the speaker of the sessions at (*address, i); tests put others in its place."""
    return Synthetic(agent, environment, seed, *address, contaminants=contaminants)


def _compared(
    study: Study, batch: Batch, subjects: Subjects, direct: Lived, words: Trials
) -> dict[str, Any]:
    """Count each subject's outcomes, and the trials that differ from those of the direct path.

    Before the first unread answer of a session that is the compiled simulation; then the step
    interface takes over, with the same answers withheld.
    """
    there, n = words.frame, len(subjects.theta)
    subject, session = (there[name].to_numpy(dtype=np.int64) for name in ("subject", "session"))
    unread = ~there["outcome"].isin(ANSWERED).to_numpy()
    environment = direct.environment
    silent = np.zeros((n, study.cells[batch.cell].sessions, environment.n_trials), dtype=bool)
    silent[subject, session, there["trial"].to_numpy(dtype=np.int64)] = unread
    differs = np.zeros(len(there), dtype=bool)
    # A trial that one path has and the other has not differs, too: its columns are empty there.
    stepped = _beside(there, _withheld(study, batch, subjects, silent))
    for name in (*environment.fields.shown, "trial_beside", "action", "reward"):
        differs |= _unlike(there[name.removesuffix("_beside")], stepped[name])
    untouched = ~there.assign(unread=unread).groupby(_WHERE[:2])["unread"].cummax().to_numpy()
    compiled = _beside(there, direct.trials().frame)
    for name in (*environment.fields.stimulus, "action", "reward"):
        differs |= untouched & _unlike(there[name], compiled[name])

    def count(which: Any) -> Any:
        return np.bincount(subject[which], minlength=n)

    outcomes = {
        f"n_{one.value}": count((there["outcome"] == one.value).to_numpy()) for one in Outcome
    }
    return outcomes | {"trials": np.bincount(subject, minlength=n), "differing": count(differs)}


def _beside(there: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of other trials that stand for these ones, row by row."""
    keys, others = there[_WHERE].astype("int64"), others.astype(dict.fromkeys(_WHERE, "int64"))
    found = keys.merge(others.assign(trial_beside=others["trial"]), how="left", on=_WHERE)
    assert len(found) == len(there)
    return found


def _unlike(column: pd.Series[Any], other: pd.Series[Any]) -> NDArray[np.bool_]:
    """Say where two columns differ; that both lack a number is no difference."""
    a, b = (each.to_numpy(dtype=float, na_value=np.nan) for each in (column, other))
    different: NDArray[np.bool_] = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    return different


def _withheld(
    study: Study, batch: Batch, subjects: Subjects, unread: NDArray[np.bool_]
) -> pd.DataFrame:
    """Live the sessions step by step, the answers `unread` [subjects, sessions, trials] withheld.

    Returns the trials in the order subject, session, trial.
    """
    cell = study.cells[batch.cell]
    environment = cell.make()
    rows: list[dict[str, Any]] = []
    for i, theta in enumerate(subjects.theta):
        agent = AGENTS[cell.model].from_theta(
            theta, lapse=cell.lapse, actions=environment.n_actions
        )
        for k in range(cell.sessions):
            address = (cell.data_key, int(subjects.replicate[i]), k, int(subjects.number[i]))
            rng = session_stream(study.seed, *address)
            session = Session(environment, environment.draw(rng))
            player = Player(agent, rng)
            for seen in session:
                choice = player.choose(seen)
                if unread[i, k, int(seen["trial"])]:
                    session.take(None)
                else:
                    player.learn(session.take(choice))
            rows += [{"subject": i, "session": k, **row} for row in session.rows]
    return pd.DataFrame(rows)


def expected_rates(contaminants: Contaminants, environment: Environment) -> dict[str, float]:
    """Return the probability of each outcome that the dials give."""
    lost = contaminants.refusal + contaminants.malformed + contaminants.truncation
    seen, _ = environment.reset(options={"design": environment.draw(session_stream(0))})
    last_line = environment.say(0, seen).rpartition("\n")[2]
    # Behind thoughts the answer stands as asked; around a bare one words must be taken off.
    repaired = 0.0 if last_line.startswith(MARKER) else contaminants.verbosity * (1.0 - lost)
    known = {
        Outcome.OK: 1.0 - lost - repaired,
        Outcome.REPAIRED: repaired,
        Outcome.MALFORMED: contaminants.malformed,
        Outcome.REFUSED: contaminants.refusal,
        Outcome.TRUNCATED: contaminants.truncation,
    }
    return {one.value: min(max(known.get(one, 0.0), 0.0), 1.0) for one in Outcome}


def summarise(rows: Rows) -> Channel:
    """Gather the sets of contaminants of a finished study."""
    entries = tuple(_spoken(rows, c) for c in range(len(rows.study.cells)))
    return Channel(rows.study, entries, rows.versions)


def _spoken(rows: Rows, c: int) -> Spoken:
    study, cell = rows.study, rows.study.cells[c]
    contaminants = Contaminants(**cell.options["contaminants"])
    options = cell.options
    names = Unknowns.of(AGENTS[cell.model], options["fixed"], options["fit_lapse"]).parameters.names
    held = {
        name: {which: Coverage((MASS,)) for which in ("direct_", "", "bounds_")} for name in names
    }
    counts = dict.fromkeys([one.value for one in Outcome], 0)
    sums = {"trials": 0, "differing": 0}
    messages: dict[str, int] = {}
    kept, apart, seconds, failed = Thinned(study.units(c), ROWS_KEPT), np.nan, 0.0, 0
    for table in rows.tables(cell=c):
        kept.add(table)
        seconds += float(table["seconds"].sum())
        broken = table["status"] == "failed"
        failed += int(broken.sum())
        for message, n in table.loc[broken, "message"].value_counts().items():
            messages[str(message)] = messages.get(str(message), 0) + int(n)
        if "trials" not in table:
            continue  # the whole batch failed before it was lived
        for outcome in counts:
            counts[outcome] += int(table[f"n_{outcome}"].sum())
        for name in sums:
            sums[name] += int(table[name].sum())
        usable = table[~broken]
        apart = float(np.fmax(apart, usable["apart"].max()))
        for name, each in held.items():
            for which, coverage in each.items():
                low = _column(usable, f"{which}low_{name}")[:, None]
                high = _column(usable, f"{which}high_{name}")[:, None]
                coverage.add(_column(usable, f"true_{name}"), low, high)
    attempted = study.units(c)
    rates = pd.DataFrame([asdict(rate) for rate in outcome_rates(counts)])
    expected = expected_rates(contaminants, cell.make())
    rates["expected"] = [expected[name] for name in rates["outcome"]]
    parameters = tuple(_held(name, each) for name, each in held.items())
    missing = sum(n for name, n in counts.items() if name not in ANSWERED)
    return Spoken(
        cell=cell,
        contaminants=contaminants,
        attempted=attempted,
        failed=failed,
        trials=sums["trials"],
        missing=missing,
        differing=sums["differing"],
        apart=apart,
        rates=rates,
        parameters=parameters,
        same=judge_trials(sums["differing"], sums["trials"], apart),
        agreed=judge_outcomes(
            counts, expected, sums["trials"], RATES_LEVEL / (len(counts) * len(study.cells))
        ),
        held=judge_bounds(
            {one.name: (one.bounds.value, one.bounds.error) for one in parameters},
            {one.name: one.plain.value for one in parameters},
            n=attempted - failed,
            missing=missing,
            failed=failed / attempted,
        ),
        messages=messages,
        seconds=seconds,
        rows=kept.frame,
    )


def _column(table: pd.DataFrame, name: str) -> Array:
    return table[name].to_numpy(dtype=float)


def _held(name: str, each: Mapping[str, Coverage]) -> Held:
    mass = f"{MASS * 100:g}"
    return Held(
        name=name,
        direct=each["direct_"].shares[mass],
        plain=each[""].shares[mass],
        bounds=each["bounds_"].shares[mass],
        plain_width=each[""].widths[mass],
        bounds_width=each["bounds_"].widths[mass],
    )
