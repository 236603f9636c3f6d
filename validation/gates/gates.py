"""Gates: what every model and measure has to pass, computed once at full size and stored."""

from __future__ import annotations

import datetime
import importlib.resources
import json
import os
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.environments import ENVIRONMENTS, Environment, make, unknown
from knownminds.environments.record.folders import check_writable, writable, write_text
from knownminds.environments.record.result import Result, plain
from knownminds.inference import MEASURES
from knownminds.validation.engine.arguments import resolve_environment, resolve_model
from knownminds.validation.engine.question import command_line
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.verdicts import CLEAR, WEAK_R
from knownminds.validation.engine.workers import in_worker

from .sources import sources_of

KINDS = ("recovery", "shuffled", "calibration", "audit")  # the last of measures
# Units by kind and form: subjects of a recovery and of its control, replicates of the others.
LARGE = {"recovery": 300, "shuffled": 100, "calibration": 200, "audit": 400}
SMALL = {"recovery": 30, "shuffled": 30, "calibration": 20, "audit": 20}
SEED = 1
# A shuffle takes something away where Fisher's z falls by so many of its standard errors, and
# nothing where it falls by less than so many; what lies between is open.
CLEAR_FALL, NO_FALL = 3.5, 2.0
# What contradicts that a design gives a parameter back; words in between contradict nothing.
NOT_BACK = ("weak", "not identified", "between weak and not identified")
GONE = ("lost", "less", "between lost and less")
STORED = "stored_results.json"

# What can go wrong with the numbers of one gate; the others go on.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Recommendation:
    """The design that is recommended for a model, as `recommended.toml` has it.

    Parameters
    ----------
    environment, settings, trials, sessions
        The experiment, settings that differ from its own, trials per session (None: its own
        number), sessions per subject.
    open
        Parameters that the design does not give back, each with the reason.
    kept
        Parameters that are not lost when answers are shuffled within a session, with the reason.
    control
        Why the model has no shuffled control; empty if it has one.
    note
        What else is to be known, a sentence or more.
    pending
        Why its recovery at full size is not stored yet; empty if it is.
    """

    model: str
    environment: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    trials: int | None = None
    sessions: int = 1
    open: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    note: str = ""
    pending: str = ""

    @property
    def agent(self) -> type[Agent]:
        """The model."""
        return AGENTS[self.model]

    @property
    def names(self) -> tuple[str, ...]:
        """The model's parameters."""
        return self.agent.parameters.names

    @property
    def given_back(self) -> tuple[str, ...]:
        """Parameters that the design is said to give back."""
        return tuple(name for name in self.names if name not in self.open)

    def make(self) -> Environment:
        """Build the experiment."""
        return resolve_environment(make(self.environment, **self.settings), self.trials)

    def kinds(self) -> tuple[str, ...]:
        """Which gates the model has: none without parameters."""
        if not self.names:
            return ()
        return tuple(kind for kind in KINDS[:3] if kind != "shuffled" or not self.control)

    def command(self, study: str = "recover", **more: Any) -> str:
        """Return the command line of a study at this design."""
        sizes = {"trials": self.trials, "sessions": self.sessions if self.sessions > 1 else None}
        asked = {"model": self.model, "set": self.settings, **sizes, **more}
        return command_line(study, self.environment, **asked)


@dataclass(frozen=True)
class Gate:
    """One gate of one model or measure: what was computed, when, from what, and what came out.

    Parameters
    ----------
    kind
        "recovery" (parameters given back), "shuffled" (the same from shuffled sessions: its
        negative control), "calibration" (single posteriors) or "audit" (of a measure).
    name
        Of the model, of an audit the measure.
    units
        Subjects; replicates of a calibration, data sets for each kind of mind of an audit.
    sources
        Hashes of what model (or measure) and experiment did, as they were.
    quantities
        By parameter (of a calibration also the log-likelihood; of an audit by true effect):
        numbers, and a "verdict".
    attempted, failed
        Units; those without a result.
    sentences
        Of a recovery: what a single session cannot tell, by its expected Fisher information.
    """

    kind: str
    name: str
    environment: str
    settings: Mapping[str, Any]
    trials: int
    sessions: int
    units: int
    seed: int
    date: str
    command: str
    versions: Mapping[str, str]
    sources: Mapping[str, str]
    quantities: Mapping[str, Mapping[str, Any]]
    attempted: int
    failed: int
    seconds: float
    sentences: Sequence[str] = ()

    @property
    def design(self) -> dict[str, Any]:
        """What the numbers belong to."""
        names = ("kind", "name", "environment", "settings", "trials", "sessions", "units", "seed")
        return {name: getattr(self, name) for name in names}

    @property
    def older_than(self) -> tuple[str, ...]:
        """Which of "the model's code", "the experiment's code" ... have changed since."""
        if self.name not in {**AGENTS, **MEASURES} or self.environment not in ENVIRONMENTS:
            return ()
        now = sources_of(self.kind, self.name, self.environment)
        return tuple(f"the {k}'s code" for k, v in now.items() if self.sources.get(k) != v)

    def verdicts(self) -> dict[str, str]:
        """Return the verdict on each quantity."""
        return {name: str(found["verdict"]) for name, found in self.quantities.items()}


@dataclass(frozen=True)
class Gates(Result):
    """Gates that were computed or found in a store.

    Parameters
    ----------
    gates
        All that were asked for and came out.
    computed
        How many of them were computed now; the others were in the store.
    problems
        By "kind of model": why it gave no result.
    """

    gates: tuple[Gate, ...]
    computed: int
    problems: Mapping[str, str]

    def of(self, name: str, kind: str) -> Gate | None:
        """Return a gate, or None if there is none."""
        return next((g for g in self.gates if (g.name, g.kind) == (name, kind)), None)

    def contradictions(self) -> tuple[str, ...]:
        """Say where results contradict what is claimed of the recommended designs."""
        return tuple(sentence for gate in self.gates for sentence in contradictions(gate))

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity of each gate."""
        rows = [
            {"name": gate.name, "gate": gate.kind, "quantity": name, **found}
            for gate in self.gates
            for name, found in gate.quantities.items()
        ]
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        told: dict[str, Any] = super().content()
        return told | {"contradictions": self.contradictions()}

    def __str__(self) -> str:
        """One line per gate, then what contradicts the recommendations."""
        lines = []
        for gate in self.gates:
            words: dict[str, list[str]] = {}
            for name, word in gate.verdicts().items():
                words.setdefault(word, []).append(name)
            told = "; ".join(f"{word}: {', '.join(names)}" for word, names in words.items())
            old = f" [older than {' and '.join(gate.older_than)}]" if gate.older_than else ""
            lines.append(f"{gate.kind:<12}{gate.name:<38}{told}{old}")
        lines += [f"no result: {name}: {why}" for name, why in self.problems.items()]
        found = self.contradictions()
        lines += [f"contradicts the recommendation: {sentence}" for sentence in found]
        stored = len(self.gates) - self.computed
        lines.append(f"{len(self.gates)} gates, {self.computed} computed now, {stored} from store")
        return "\n".join(lines)


@cache
def recommendations() -> Mapping[str, Recommendation]:
    """Read the recommended designs, by model."""
    file = importlib.resources.files("knownminds.validation.gates") / "recommended.toml"
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return {name: Recommendation(name, **entry) for name, entry in content.items()}


def recommendation(model: type[Agent] | str) -> Recommendation:
    """Return the recommended design of a model; ValueError if it has none."""
    name = resolve_model(model).name
    if name not in recommendations():
        raise ValueError(f"{name} has no recommended design; add one to recommended.toml.")
    return recommendations()[name]


def gates(
    names: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    small: bool = False,
    seed: int = SEED,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Gates:
    """Put models through their gates at the recommended designs, and measures through audits.

    Parameters
    ----------
    names
        Of models and measures; all if None.
    kinds
        Any of recovery, shuffled, calibration and audit; all if None.
    small
        A tenth of the size (30 instead of 300 subjects): to see that it works.
    store
        A JSON file that keeps each gate as soon as it is computed. What it has already of the same
        design, size, seed and files is not computed again.
    workers
        Processes; as many as there are cores if None.
    progress
        Called with (gates done, gates in all).

    Raises
    ------
    ValueError
        For unknown names or kinds, or a store that is no store.
    """
    for kind in kinds or ():
        if kind not in KINDS:
            raise ValueError(unknown("gate", kind, KINDS))
    if workers is not None and workers < 1:
        raise ValueError(f"The number of workers is at least 1; got {workers}.")
    if seed < 0:
        raise ValueError(f"Seeds are whole numbers from 0 on; got {seed}.")
    known = [*recommendations(), *MEASURES]
    for name in names or ():
        if name not in known:
            raise ValueError(unknown("model or measure", name, known))
    asked = [
        (kind, name, (SMALL if small else LARGE)[kind], seed)
        for kind, name in _in_order(names or known)
        if kinds is None or kind in kinds
    ]
    stored = {} if store is None else read_gates(store)
    if store is not None:
        check_writable(Path(store))
        larger = [k for k in stored if small and stored[k].units > SMALL[k[0]]]
        if larger:
            raise ValueError(
                f"Small gates do not replace large ones; {store} holds the large {larger[0][0]} of "
                f"{larger[0][1]}. Name another file with --store."
            )
    fresh = {(*key, gate.units, gate.seed) for key, gate in stored.items() if _holds(gate)}
    todo = [task for task in asked if task not in fresh]
    problems: dict[str, str] = {}
    done = {task[:2]: stored[task[:2]] for task in asked if task in fresh}
    n_done = len(done)
    if progress is not None:
        progress(n_done, len(asked))
    for (kind, name, *_), found in _compute(todo, workers):
        n_done += 1
        if isinstance(found, str):
            problems[f"{kind} of {name}"] = found
        else:
            done[kind, name] = found
            if store is not None:
                _keep(store, found)
        if progress is not None:
            progress(n_done, len(asked))
    order = [task[:2] for task in asked if task[:2] in done]
    return Gates(tuple(done[key] for key in order), len(todo) - len(problems), problems)


def _in_order(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return kind and name of all gates, kind by kind and those of short sessions first."""
    designs = [recommendations()[name] for name in names if name in recommendations()]
    designs.sort(key=lambda one: one.make().n_trials * one.sessions)
    found = [(kind, one.model) for kind in KINDS for one in designs if kind in one.kinds()]
    return [*found, *(("audit", name) for name in names if name in MEASURES)]


Task = tuple[str, str, int, int]


def _compute(
    todo: Sequence[Task], workers: int | None
) -> Generator[tuple[Task, Gate | str], None, None]:
    processes = min(workers or os.cpu_count() or 1, max(len(todo), 1))
    if processes == 1:
        yield from (_attempt(task) for task in todo)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(in_worker)(os.getpid(), _attempt, task) for task in todo)


def _attempt(task: Task) -> tuple[Task, Gate | str]:
    try:
        return task, _gate(*task)
    except FAILURES as error:
        return task, " ".join(str(error).split())


def _gate(kind: str, name: str, units: int, seed: int) -> Gate:
    design = _design_of(kind, name)
    environment, began = design.make(), perf_counter()
    written = sources_of(kind, name, design.environment)
    quantities, command, attempted, failed, sentences = {
        "recovery": _recovery,
        "shuffled": _shuffled,
        "calibration": _calibration,
        "audit": _audit,
    }[kind](design, environment, units, seed)
    return Gate(
        kind=kind,
        name=name,
        environment=design.environment,
        settings=dict(design.settings),
        trials=environment.n_trials,
        sessions=design.sessions,
        units=units,
        seed=seed,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=command,
        versions=versions(),
        sources=written,
        quantities=_rounded(quantities),
        attempted=attempted,
        failed=failed,
        seconds=round(perf_counter() - began, 1),
        sentences=sentences,
    )


def _design_of(kind: str, name: str) -> Recommendation:
    """Return the recommended design of a model, or that in which a measure is audited."""
    if kind != "audit":
        return recommendations()[name]
    measure = MEASURES[name]
    return Recommendation(name, measure.environments[0], dict(measure.settings))


Computed = tuple[dict[str, dict[str, Any]], str, int, int, tuple[str, ...]]


def _recovery(design: Recommendation, environment: Environment, units: int, seed: int) -> Computed:
    from knownminds.validation.recovery.parameter_recovery import recover

    found = recover(
        environment, design.agent, subjects=units, sessions=design.sessions, seed=seed, workers=1
    )
    quantities = {}
    for scores in found.parameters:
        numbers = {"r": scores.r, "bias": scores.bias, "rmse": scores.rmse}
        numbers["coverage"] = scores.coverage["90"]
        values: dict[str, Any] = {name: score.value for name, score in numbers.items()}
        values |= {f"{name}_error": score.error for name, score in numbers.items()}
        quantities[scores.name] = values | {"verdict": scores.verdict.word}
    command = design.command(subjects=units, seed=seed)
    return quantities, command, found.attempted, found.failed, found.identifiability


def _calibration(
    design: Recommendation, environment: Environment, units: int, seed: int
) -> Computed:
    from knownminds.validation.calibration.calibration import calibrate

    found = calibrate(
        environment, design.agent, replicates=units, sessions=design.sessions, seed=seed, workers=1
    )
    quantities = {
        name: {
            "mean_rank": one.mean,
            "spread": one.spread,
            "p": one.p_value,
            "verdict": one.word,
        }
        for name, one in found.quantities.items()
    }
    command = design.command("calibrate", replicates=units, seed=seed)
    return quantities, command, found.attempted, found.failed, ()


def _shuffled(design: Recommendation, environment: Environment, units: int, seed: int) -> Computed:
    """Correlate truth and most probable parameters, of sessions as they are and shuffled."""
    from knownminds.inference import maximum_a_posteriori
    from knownminds.validation.engine.simulated_data import simulated_data
    from knownminds.validation.recovery.parameter_recovery import shuffled

    model = design.agent
    trials = simulated_data(model, environment, subjects=units, sessions=design.sessions, seed=seed)
    frame = trials.frame
    truth = frame.drop_duplicates("subject").set_index("subject")[
        [f"true_{name}" for name in design.names]
    ]
    quantities: dict[str, dict[str, Any]] = {name: {} for name in design.names}
    failed = 0
    for key, record in (("r", trials), ("r_shuffled", shuffled(trials, seed))):
        fit = maximum_a_posteriori(model, record, workers=1)
        usable = np.array([status != "failed" for status in fit.status])
        failed = max(failed, int((~usable).sum()))
        own = model.parameters.unconstrain(truth.loc[list(fit.subjects)].to_numpy(dtype=float))
        for k, name in enumerate(design.names):
            quantities[name][key] = _correlation(own[usable, k], fit.z[usable, k])
    for values in quantities.values():
        values["verdict"] = judge_fall(values["r"], values["r_shuffled"], n=units - failed)
    command = f"knownminds gates {design.model} --gate shuffled --seed {seed}"
    if units == SMALL["shuffled"]:
        command += " --small"
    return quantities, command, units, failed, ()


def _audit(design: Recommendation, environment: Environment, units: int, seed: int) -> Computed:
    from knownminds.validation.power.audit import audit

    found = audit(design.model, environment=environment, replicates=units, seed=seed, workers=1)
    quantities = {}
    for entry in found.entries:
        numbers = {"rejected": entry.rejected, "bias": entry.bias, "coverage": entry.coverage}
        values: dict[str, Any] = {name: score.value for name, score in numbers.items()}
        values |= {f"{name}_error": score.error for name, score in numbers.items()}
        null = entry in found.null
        values["verdict"] = found.verdicts[entry.trials].word if null else "-"
        quantities["no effect" if null else f"effect {entry.effect:.3g}"] = values
    attempted, failed = (sum(getattr(e, n) for e in found.entries) for n in ("attempted", "failed"))
    command = f"knownminds audit {design.model} --replicates {units} --seed {seed}"
    return quantities, command, attempted, failed, ()


def judge_fall(r: float, r_shuffled: float, *, n: int) -> str:
    """Judge whether what a parameter says is gone when answers are shuffled within sessions.

    "lost" where the correlation with the truth falls clearly and is clearly below 0.5; "less" where
    it falls clearly and is clearly above; "kept" where it does not fall by 2 standard errors;
    "between" two of them elsewhere.

    Parameters
    ----------
    r, r_shuffled
        Correlation of truth and estimate as sessions were, and shuffled.
    n
        Subjects.
    """
    if n < 10:
        return "not judged"
    most = 1 - 1e-9  # Fisher's z of a perfect correlation is infinite
    here, there = (np.arctanh(np.clip(x, -most, most)) for x in (r, r_shuffled))
    fall = (here - there) / np.sqrt(2 / (n - 3))
    above = (abs(there) - np.arctanh(WEAK_R)) * np.sqrt(n - 3)
    if fall < NO_FALL:
        return "kept"
    if abs(above) < CLEAR:
        return "between lost and less" if fall >= CLEAR_FALL else "between lost and kept"
    word = "lost" if above < 0 else "less"
    return word if fall >= CLEAR_FALL else f"between {word} and kept"


def _correlation(truth: np.ndarray[Any, Any], z: np.ndarray[Any, Any]) -> float:
    """Pearson's r; 0 where the estimates do not vary, which tells nothing of the truth."""
    if len(z) < 3 or np.ptp(z) < 1e-9:
        return 0.0
    return float(np.corrcoef(truth, z)[0, 1])


def contradictions(gate: Gate) -> tuple[str, ...]:
    """Say where a gate contradicts what is claimed of its recommended design."""
    if gate.units < LARGE[gate.kind] or gate.name not in recommendations():
        return ()
    design, found = recommendations()[gate.name], []
    for name, word in gate.verdicts().items():
        claim = ""
        if gate.kind == "recovery" and word in NOT_BACK and name not in design.open:
            claim = "given back"
        if gate.kind == "recovery" and word == "recoverable" and name in design.open:
            claim = "not given back"
        if gate.kind == "shuffled" and name not in design.open:
            if word in GONE and name in design.kept:
                claim = "kept"
            if word == "kept" and name not in design.kept:
                claim = "lost"
        if gate.kind == "calibration" and word not in ("calibrated", "not judged"):
            claim = "calibrated"
        if claim:
            found.append(f"{gate.kind} of {gate.name}: {name} is {word!r}, and said to be {claim}.")
    return tuple(found)


def read_gates(store: str | os.PathLike[str]) -> dict[tuple[str, str], Gate]:
    """Read a store, by (kind, model); empty if the file does not exist yet."""
    file = Path(store)
    if not file.exists():
        return {}
    return _parsed(file.read_text(encoding="utf-8"), str(file))


def stored_gates() -> dict[tuple[str, str], Gate]:
    """Read the results that are shipped, by (kind, model)."""
    file = importlib.resources.files("knownminds.validation.gates") / STORED
    return _parsed(file.read_text(encoding="utf-8"), STORED)


def _parsed(text: str, where: str) -> dict[tuple[str, str], Gate]:
    try:
        entries = [Gate(**entry) for entry in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{where} holds no gates ({error}). Name another file with --store."
        ) from None
    return {(gate.kind, gate.name): gate for gate in entries}


def _keep(store: str | os.PathLike[str], gate: Gate) -> None:
    kept = read_gates(store) | {(gate.kind, gate.name): gate}
    places = {name: place for place, name in enumerate([*AGENTS, *MEASURES])}
    order = sorted(kept, key=lambda key: (KINDS.index(key[0]), places.get(key[1], len(places))))
    lines = [json.dumps(plain(asdict(kept[key]))) for key in order]
    with writable(Path(store).parent):
        write_text(Path(store), "[\n" + ",\n".join(lines) + "\n]\n")  # one line per gate: diffs


def _holds(gate: Gate) -> bool:
    """Say whether a stored gate is that of the design as it is now, and of the files."""
    if gate.name not in (MEASURES if gate.kind == "audit" else recommendations()):
        return False
    design = _design_of(gate.kind, gate.name)
    now = (design.environment, dict(design.settings), design.sessions)
    same = now == (gate.environment, dict(gate.settings), gate.sessions)
    return same and design.make().n_trials == gate.trials and not gate.older_than


def _rounded(quantities: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Keep four digits: the Monte-Carlo error is in the second."""

    def short(value: Any) -> Any:
        return float(f"{value:.4g}") if isinstance(value, float | np.floating) else value

    return {
        name: {key: short(value) for key, value in found.items()}
        for name, found in quantities.items()
    }
