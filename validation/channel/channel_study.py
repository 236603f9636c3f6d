"""The channel round trip: known agents that answer in words, beside the same agents directly."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest

from knownminds.agents import AGENTS, Contaminants, Model
from knownminds.agents.play import AgentInSession
from knownminds.environments import (
    ANSWERED,
    Environment,
    Outcome,
    Session,
    Trials,
    outcome_rates,
    session_stream,
)
from knownminds.environments.words.final_answers import MARKER
from knownminds.inference.fits.missing_answers import METHODS, missing_answer_bounds
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_a_posteriori, maximum_likelihood
from knownminds.llm_adapters import Adapter, Synthetic, run_session
from knownminds.validation.engine.arguments import (
    changed_settings,
    check_lapse,
    check_truth,
    one_of,
    resolve_environment,
    resolve_model,
    set_to,
    several,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis
from knownminds.validation.engine.population import (
    PlayedSessions,
    Subjects,
    check_step_loop,
    draw_subjects,
    live,
)
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import coverage
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.usual_models import usual_model
from knownminds.validation.engine.verdicts import (
    CONFIRMED,
    LEAST_FITS,
    MOST_FAILURES,
    JudgedNumber,
    Verdict,
    judge,
    not_judged,
    reason,
    too_few,
)
from knownminds.validation.pages.views import Curves
from knownminds.validation.reading import read_contaminants

if TYPE_CHECKING:
    from knownminds.validation.power.questions import Audit

OPTIONS = ("environment", "subjects", "sessions", "trials")
CONTAMINANTS = (
    Contaminants(),
    Contaminants(malformed=0.05, refusal=0.05),
    Contaminants(malformed=0.1, refusal=0.05, truncation=0.05, verbosity=0.2),
)
MASS = 0.9
RATES_LEVEL = 0.05  # of the test that outcome rates are those of the dials, over a whole study
SESSIONS_PER_BATCH = 20  # two seconds
NOTES = (
    "Both paths have the same random numbers, so that no trial may differ: before the first answer "
    "that is not read, from the compiled simulation; after it, from the step loop with the "
    "same answers withheld. Estimates differ: the largest difference between both paths on the "
    "unconstrained scale, over subjects of whom every answer was read.",
    "A trial without a readable answer adds nothing to the likelihood. That is right if answers "
    "are missing at random, as these are; the bounds make no such claim. With sampling error they "
    f"reach from the lower end of the {MASS:.0%} interval at the lowest estimate to the upper end "
    "of that at the highest, and should hold the truth at least that often.",
    "Intervals of the rates (Wilson 1927) take trials as independent. Rates are those of the dials "
    f"unless an exact test says otherwise, at {RATES_LEVEL:g} over all of them.",
    "Monte-Carlo standard errors in parentheses. Subjects without an estimate are left out of "
    "coverage and counted.",
)
CAPTION = (
    "Estimate from the words against that of the same agent directly. Bars: the bounds, from the "
    "lowest to the highest estimate over all that the missing answers could have been."
)
_WHERE = ["subject", "session", "trial"]
PATHS = ("direct_", "", "bounds_")  # prefixes of intervals: directly, in words, and the bounds


def contaminants_text(contaminants: Contaminants) -> str:
    """Write down contaminants as `parse_contaminants` reads them."""
    rates = {name: float(rate) for name, rate in asdict(contaminants).items() if rate}
    return ",".join(f"{name}={rate!r}" for name, rate in rates.items()) or "none"


def parse_contaminants(text: str) -> Contaminants:
    """Read "malformed=0.05,refusal=0.05", or "none"; ValueError at what is no rate of any."""
    pairs = [] if text.strip() == "none" else text.split(",")
    return read_contaminants("--contaminate", pairs)


def study(question: Audit) -> Study:
    """Ask whether known agents come through words as they are, and bounds hold what is lost.

    Each subject takes its sessions twice: directly, and in words, from the prompt through a text
    that may be contaminated to the parser. Both must be the same, trial by trial, but for what was
    not read. Each trial must say what became of its answer, as often as the dials do, and the
    bounds over what the missing answers could have been must hold the true parameters. The same
    subjects with the same random numbers answer with each set of contaminants.

    Parameters
    ----------
    question : Its settings are those of the experiment, true values of the model, and `model`,
        `method` ("map" or "mle"), `lapse` (a rate), `contaminants` (texts,
        "refusal=0.05,malformed=0.05" or "none"; those of `CONTAMINANTS` if none).

    Raises
    ------
    ValueError : At the first setting that does not fit; nothing is written then.
    """
    given: dict[str, Any] = {
        "model": "",
        "method": "map",
        "lapse": 0.0,
        "contaminants": CONTAMINANTS,
    }
    given |= dict(question.settings or {})
    environment = resolve_environment(question.environment or "instrumental_learning")
    agent = resolve_model(given.pop("model") or usual_model(environment.name))
    method, lapse, wanted = given.pop("method"), given.pop("lapse"), given.pop("contaminants")
    named = {name: given.pop(name) for name in agent.parameters.names if name in given}
    (trials,) = several(question.trials)
    environment = resolve_environment(set_to(environment, given), trials)
    agent.check_plays(environment)
    if agent.given != "action":
        raise ValueError(
            f"A channel round trip bounds what missing actions could have named; {agent.name} "
            "gives numbers. Choose a model of actions alone."
        )
    one_of("method", method, METHODS)
    if len(agent.parameters) == 0:
        raise ValueError(f"Estimates are compared; {agent.name} has no parameter to estimate.")
    sets = [parse_contaminants(one) if isinstance(one, str) else one for one in several(wanted)]
    if not sets:
        raise ValueError('A channel needs a set of contaminants, "none" for instance; got none.')
    if any(one.lapse for one in sets):
        raise ValueError(
            "A lapse is part of the decision, in words or not; got it among the contaminants. "
            "Give it as a setting (--set lapse=)."
        )
    cells = tuple(
        Cell(
            environment.name,
            environment.settings,
            agent.name,
            check_truth(agent.parameters, named),
            check_lapse(lapse),
            sessions=question.sessions,
            subjects=question.subjects,
            method=method,
            analysis=CellAnalysis(contaminants=asdict(one)),
            batch=max(1, SESSIONS_PER_BATCH // max(question.sessions, 1)),
        )
        for one in sets
    )
    options = question.option_values() | {
        "environment": environment.name,
        "trials": environment.n_trials,
        "set": {
            **changed_settings(environment),
            **named,
            "model": agent.name,
            "method": method,
            **({"lapse": lapse} if lapse else {}),
            "contaminants": [contaminants_text(one) for one in sets],
        },
    }
    made = Study("audit", cells, 1, question.seed, "subject", options)
    check_step_loop(made)
    return made


def work(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let the subjects of a batch live both ways, and fit both: the work of a round trip."""
    cell = study.cells[batch.cell]
    model = AGENTS[cell.model]
    subjects = draw_subjects(study, batch)
    direct = live(study, batch, subjects)
    words = in_words(study, batch, subjects)
    environment = direct.environment

    fitter = maximum_likelihood if cell.method == "mle" else maximum_a_posteriori
    data = ModelData.read(model, direct.trials(), environment.n_actions)
    straight = fitter(model, data, workers=threads)
    bounds = missing_answer_bounds(
        model,
        words,
        method="mle" if cell.method == "mle" else "map",
        n_actions=environment.n_actions,
        workers=threads,
    )
    plain = bounds.fit
    true = subjects.theta
    columns: dict[str, Any] = _compared(study, batch, subjects, direct, words)
    apart = np.abs(plain.z - straight.z).max(axis=1)
    columns["apart"] = np.where(bounds.n_missing == 0, apart, np.nan)
    lost = np.array([s == "failed" for s in straight.status], dtype=bool)
    columns["status"] = np.where(lost, "failed", plain.status)
    columns["message"] = np.where(lost, straight.message, plain.message)
    intervals = [estimates.interval(MASS) for estimates in (straight, plain, bounds)]
    for k, name in enumerate(model.parameters.names):
        columns |= {f"true_{name}": true[:, k], f"direct_{name}": straight.estimate[:, k]}
        columns |= {name: plain.estimate[:, k]}
        columns |= {f"lowest_{name}": bounds.low[:, k], f"highest_{name}": bounds.high[:, k]}
        for path, (low, high) in zip(PATHS, intervals, strict=True):
            columns |= {f"{path}low_{name}": low[:, k], f"{path}high_{name}": high[:, k]}
    return pd.DataFrame(columns)


def in_words(study: Study, batch: Batch, subjects: Subjects) -> Trials:
    """Let the subjects of a batch answer in words; they are named by their position in it."""
    cell = study.cells[batch.cell]
    environment, contaminants = cell.make(), Contaminants(**cell.analysis.contaminants)
    frames = []

    async def all_sessions() -> None:
        for i, agent, address in _sessions(study, batch, subjects):
            speaker = participant(agent, environment, study.seed, address[:-1], contaminants)
            trials = await run_session(speaker, environment, study.seed, *address)
            frames.append(trials.frame.assign(subject=str(i), session=str(address[2])))

    with ThreadPoolExecutor(1) as thread:  # an event loop may be running here, in a notebook
        thread.submit(asyncio.run, all_sessions()).result()
    return Trials.from_frame(pd.concat(frames, ignore_index=True), environment=environment)


def _sessions(
    study: Study, batch: Batch, subjects: Subjects
) -> Iterator[tuple[int, Model, tuple[int, int, int, int]]]:
    """Go through the sessions of a batch: position of the subject, its agent, and the address."""
    cell = study.cells[batch.cell]
    actions = cell.make().n_actions
    for i, theta in enumerate(subjects.theta):
        agent = AGENTS[cell.model].from_theta(theta, lapse=cell.lapse, actions=actions)
        replicate, number = int(subjects.replicate[i]), int(subjects.number[i])
        for k in range(cell.sessions):
            yield i, agent, (cell.data_key, replicate, k, number)


def participant(
    agent: Model,
    environment: Environment,
    seed: int,
    address: Sequence[int],
    contaminants: Contaminants,
) -> Adapter:
    """Return the speaker of the sessions at (*address, i); tests replace it."""
    return Synthetic(agent, environment, seed, *address, contaminants=contaminants)


def _compared(
    study: Study, batch: Batch, subjects: Subjects, direct: PlayedSessions, words: Trials
) -> dict[str, Any]:
    """Count each subject's outcomes, and the trials that differ from those of the direct path.

    Before the first unread answer of a session that is the compiled simulation; then the step
    interface takes over, with the same answers withheld.
    """
    trials, fields, n = words.frame, direct.environment.fields, len(subjects.theta)
    trials = trials.assign(unread=~trials["outcome"].isin(ANSWERED))
    unread = trials.loc[trials["unread"], _WHERE].astype(int).itertuples(index=False, name=None)
    differs = np.zeros(len(trials), dtype=bool)
    # A trial that one path has and the other has not differs, too: its columns are empty there.
    stepped = _beside(trials, _withheld(study, batch, subjects, set(unread)))
    for name in (*fields.shown, "trial_beside", "action", "reward"):
        differs |= _unlike(trials[name.removesuffix("_beside")], stepped[name])
    untouched = ~trials.groupby(_WHERE[:2])["unread"].cummax().to_numpy()
    compiled = _beside(trials, direct.trials().frame)
    for name in (*fields.stimulus, "action", "reward"):
        differs |= untouched & _unlike(trials[name], compiled[name])
    subject = trials["subject"].to_numpy(dtype=np.int64)

    def count(which: Any) -> NDArray[np.int64]:
        return np.bincount(subject[which], minlength=n)

    outcomes = {f"n_{one.value}": count(trials["outcome"] == one.value) for one in Outcome}
    return outcomes | {"trials": np.bincount(subject, minlength=n), "differing": count(differs)}


def _beside(trials: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of other trials that stand for these ones, row by row."""
    keys, others = trials[_WHERE].astype("int64"), others.astype(dict.fromkeys(_WHERE, "int64"))
    rows = keys.merge(others.assign(trial_beside=others["trial"]), how="left", on=_WHERE)
    assert len(rows) == len(trials)
    return rows


def _unlike(column: pd.Series[Any], other: pd.Series[Any]) -> NDArray[np.bool_]:
    """Say where two columns differ; that both lack a number is no difference."""
    a, b = (each.to_numpy(dtype=float, na_value=np.nan) for each in (column, other))
    same: NDArray[np.bool_] = np.isclose(a, b, rtol=0, atol=0, equal_nan=True)
    return ~same


def _withheld(
    study: Study, batch: Batch, subjects: Subjects, unread: Container[tuple[int, ...]]
) -> pd.DataFrame:
    """Take the sessions step by step, and withhold the unread answers (subject, session, trial)."""
    environment = study.cells[batch.cell].make()
    rows: list[dict[str, Any]] = []
    for i, agent, address in _sessions(study, batch, subjects):
        rng = session_stream(study.seed, *address)
        session = Session(environment, environment.draw(rng))
        player = AgentInSession(agent, rng)
        for stimulus in session:
            choice = player.choose(stimulus)
            if (i, address[2], int(stimulus["trial"])) in unread:
                session.take(None)
            else:
                player.learn(session.take(choice))
        rows += [{"subject": i, "session": address[2], **row} for row in session.rows]
    return pd.DataFrame(rows)


def expected_rates(contaminants: Contaminants, environment: Environment) -> dict[str, float]:
    """Return the probability of each outcome that the dials give."""
    lost = contaminants.refusal + contaminants.malformed + contaminants.truncation
    session = Session(environment, environment.draw(session_stream(0)))
    last_line = session.say(0).rpartition("\n")[2]
    # An answer after thoughts is in the requested form; words around a bare one are removed.
    repaired = 0.0 if last_line.startswith(MARKER) else contaminants.verbosity * (1.0 - lost)
    known = {
        Outcome.OK: 1.0 - lost - repaired,
        Outcome.REPAIRED: repaired,
        Outcome.MALFORMED: contaminants.malformed,
        Outcome.REFUSED: contaminants.refusal,
        Outcome.TRUNCATED: contaminants.truncation,
    }
    return {one.value: min(max(known.get(one, 0.0), 0.0), 1.0) for one in Outcome}


def say(rows: Rows) -> Result:
    """Judge each set of contaminants of a study."""
    study, first = rows.study, rows.study.cells[0]
    level = RATES_LEVEL / (len(Outcome) * len(study.cells))
    verdicts: dict[str, Verdict] = {}
    tables: dict[str, list[pd.DataFrame]] = {}
    for number, cell in enumerate(study.cells):
        frame = rows.of(number)
        if len(frame) == 0:
            continue
        usable = frame[frame["status"] != "failed"]
        outcomes, intervals = _outcome_table(frame, cell), _interval_table(usable, cell)
        trials = _trial_table(frame, outcomes)
        label = contaminants_text(Contaminants(**cell.analysis.contaminants))
        judged = _judged(trials.iloc[0], outcomes, intervals, level)
        verdicts |= {f"{label}, {name}": verdict for name, verdict in judged.items()}
        parts = {
            "Trials": trials,
            "Outcomes": outcomes[(outcomes["trials"] > 0) | (outcomes["expected"] > 0)],
            f"Intervals at {MASS:.0%}": intervals,
            CAPTION: _points(usable, list(intervals["parameter"])),
        }
        for title, part in parts.items():
            tables.setdefault(title, []).append(part.assign(contaminants=label))
    whole = {title: pd.concat(parts, ignore_index=True) for title, parts in tables.items()}
    points = whole.pop(CAPTION, pd.DataFrame())
    curves = Curves(
        CAPTION, ("directly", "in words"), "direct", "in words", ("parameter",), ("contaminants",),
        joined=False, diagonal=True,
    )  # fmt: skip
    names = ("contaminants", "outcome", "parameter")
    return rows.result(
        f"Does {first.model} come through the words of {first.environment} as it is?",
        verdicts=verdicts,
        of="subjects",
        tables={
            title: table.set_index([name for name in names if name in table])
            for title, table in whole.items()
        },
        figures=curves.drawings(points) if len(points) else {},
        notes=NOTES,
    )


def _trial_table(rows: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return a row that counts trials, and those that were not read or differ between the paths."""
    # A batch that failed before its sessions has no counts.
    counts = rows.reindex(columns=["trials", "differing"]).sum().astype(int)
    missing = outcomes.loc[~outcomes["outcome"].isin(ANSWERED), "trials"].sum()
    table = {
        "trials": counts["trials"],
        "not read": missing,
        "differ": counts["differing"],
        "estimates differ": rows["apart"].max() if "apart" in rows else np.nan,
        "subjects": len(rows),
        "failed": (rows["status"] == "failed").sum(),
    }
    return pd.DataFrame([table])


def _outcome_table(rows: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Return of each outcome its probability, its trials, and its share with a 95% interval."""
    counts = rows.reindex(columns=[f"n_{one.value}" for one in Outcome]).sum().astype(int)
    rates = outcome_rates({one.value: int(counts[f"n_{one.value}"]) for one in Outcome})
    expected = expected_rates(Contaminants(**cell.analysis.contaminants), cell.make())
    table = pd.DataFrame([asdict(rate) for rate in rates]).rename(columns={"count": "trials"})
    table.insert(1, "expected", table["outcome"].map(expected))
    return table.drop(columns="of")


def _interval_table(usable: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Return of each parameter how often intervals hold the truth, and how wide they are."""
    table = []
    for name in AGENTS[cell.model].parameters.names:
        columns = [[f"true_{name}", f"{p}low_{name}", f"{p}high_{name}"] for p in PATHS]
        ends = (usable.reindex(columns=c).to_numpy(dtype=float).T for c in columns)
        direct, words, bounds = (coverage(*each) for each in ends)
        row = {"parameter": name, "direct covers": direct[0], "in words covers": words[0]}
        row |= {"bounds cover": bounds[0], "width in words": words[1], "width of bounds": bounds[1]}
        table.append(row)
    return pd.DataFrame(table)


def _judged(
    trials: pd.Series[Any], outcomes: pd.DataFrame, intervals: pd.DataFrame, level: float
) -> dict[str, Verdict]:
    """Return the verdicts on trials, outcomes and bounds of a set of contaminants."""
    count = int(trials["trials"])
    if count == 0:
        empty = not_judged("no trial happened")
        return {"trials": empty, "outcomes": empty, "bounds": not_judged("no answer is missing")}
    apart, differing = trials["estimates differ"], int(trials["differ"])
    text = "no subject to compare" if np.isnan(apart) else f"estimates differ by {apart:.2g}"
    n = int(outcomes["trials"].sum())
    differ = [
        reason(str(row["outcome"]), row["trials"] / n, np.nan, row["expected"])
        for row in outcomes.to_dict("records")
        if n and binomtest(row["trials"], n, row["expected"]).pvalue < level
    ]
    counted = f"{n:,} of {count:,} trials have an outcome"
    return {
        "trials": Verdict(
            CONFIRMED[int(differing > 0 or apart > 0)],
            (f"{differing:,} of {count:,} trials differ", text),
        ),
        "outcomes": Verdict(CONFIRMED[int(n != count or bool(differ))], (counted, *differ)),
        "bounds": _judge_bounds(trials, intervals),
    }


def _judge_bounds(trials: pd.Series[Any], intervals: pd.DataFrame) -> Verdict:
    """Judge whether bounds on estimates that lack answers hold the truth of each parameter."""
    n, failed = int(trials["subjects"] - trials["failed"]), trials["failed"] / trials["subjects"]
    if trials["not read"] == 0:
        return not_judged("no answer is missing")
    if n < LEAST_FITS:
        return too_few(n, LEAST_FITS)
    if failed > MOST_FAILURES:
        return not_judged(reason("failed", failed, np.nan, MOST_FAILURES))
    covers = dict(zip(intervals["parameter"], intervals["bounds cover"], strict=True))
    lowest = min(covers, key=lambda name: covers[name].value)
    text = reason(f"bounds of {lowest} cover", covers[lowest].value, covers[lowest].error, MASS)
    held = [
        JudgedNumber.bar(MASS - score.value, score.error, text if name == lowest else "")
        for name, score in covers.items()
    ]
    return judge(CONFIRMED, held, n)


def _points(usable: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return estimates directly and in words, and bounds, of each parameter and subject."""
    columns = {"direct_{}": "direct", "{}": "in words", "lowest_{}": "low", "highest_{}": "high"}
    parts = [
        pd.DataFrame({new: usable[column.format(name)] for column, new in columns.items()}).assign(
            parameter=name
        )
        for name in (names if len(usable) else ())
    ]
    return pd.concat(parts) if parts else pd.DataFrame()
