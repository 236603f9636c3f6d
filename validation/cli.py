"""The `knownminds` command: parses, calls, prints."""

from __future__ import annotations

import datetime
import functools
import inspect
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from .completion import completes

# Nothing of ours, and no library that computes, is imported here but inside the functions that
# need it, so that help and completion answer at once (tests/core/test_command_speed.py).
if TYPE_CHECKING:
    from knownminds.agents import Agent, Contaminants
    from knownminds.environments import Environment
    from knownminds.llm_adapters.runs.admission import Caps
    from knownminds.llm_adapters.runs.runner import Progress as Standing
    from knownminds.validation.engine.engine import Progress as Callback

Dials = TypeVar("Dials")

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulated agents with known parameters, and the tests that inference must pass on them.",
)
# Without emoji, which "openai:m:" would else become.
screen = Console(highlight=False, emoji=False)
notes = Console(stderr=True, highlight=False, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    str,
    typer.Option(help="A model; `knownminds list` shows all.", autocompletion=completes("models")),
]
Method = Annotated[str, typer.Option(help="mle, map or hierarchical.")]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Subjects = Annotated[int, typer.Option(help="How many subjects.")]
Sessions = Annotated[int, typer.Option(help="Sessions per subject.")]
NTrials = Annotated[int | None, typer.Option("--trials", help="Trials per session.")]
DesignName = Annotated[
    str | None,
    typer.Option("--design", help="Of an experiment with several designs: which (--set design=)."),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE: a true parameter or a setting of the experiment."),
]
Fixed = Annotated[
    list[str] | None, typer.Option("--fix", help="NAME=VALUE: held in the fit, not estimated.")
]
Lapse = Annotated[float, typer.Option(help="Lapse rate of the simulated subjects.")]
FitLapse = Annotated[bool, typer.Option("--fit-lapse", help="Estimate a lapse rate.")]
AllTrials = Annotated[
    bool,
    typer.Option("--all-trials", help="Fit all trials, also where a model is fitted to some."),
]
Workers = Annotated[int | None, typer.Option(help="Processes (of studies), threads (of fit).")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results and the report.")]
Contaminate = Annotated[
    list[str] | None,
    typer.Option(help="NAME=RATE of a known mind: refusal, malformed, truncation, verbosity."),
]

Experiment = Annotated[
    str, typer.Argument(help="The experiment.", autocompletion=completes("environments"))
]
ExperimentOption = Annotated[
    str | None,
    typer.Option("--environment", help="The experiment.", autocompletion=completes("environments")),
]
SeveralSessions = Annotated[list[int] | None, typer.Option(help="Sessions per subject.")]
SeveralTrials = Annotated[list[int] | None, typer.Option("--trials", help="Trials per session.")]

# What each kind of result leaves in its folder.
RESULTS = {
    "study": "study.json",
    "fit": "fit.json",
    "budget": "budget.json",
    "score": "measures.json",
    "score of several runs": "magnitude.json",
    "score of beliefs": "beliefs.json",
    "run": "ledger.sqlite",
    "reveal": "revealed.json",
}
NOT_GIVEN: Any = [None]  # the experiment's own number of trials
Ask = Callable[[Any], Any]  # computes a result, given where and how


def study(compute: Callable[..., Ask]) -> Callable[..., Ask]:
    """Make a command of a function that checks its arguments and returns what is to be computed.

    The command has the options that all studies share besides its own.
    """
    shared = inspect.signature(_answer, eval_str=True).parameters.values()
    own = inspect.signature(compute, eval_str=True).parameters.values()
    names = [p.name for p in own]

    @functools.wraps(compute)
    def command(**given: Any) -> None:
        ask = compute(**{name: given.pop(name) for name in names})
        _answer(ask, compute.__name__, **given)

    options = [p for p in shared if p.name not in ("ask", "title")]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *options)}
    app.command()(command)
    return compute


def _answer(
    ask: Ask,
    title: str,
    workers: Workers = None,
    backend: Annotated[
        str | None, typer.Option(help="processes, threads, or dask with --scheduler.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="tcp://HOST:PORT of a dask cluster.")
    ] = None,
    share: Annotated[
        str | None, typer.Option(help="2/3: only the second third, to be merged later.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Compute a study, show its result, and leave its report."""
    from knownminds.validation.engine.engine import ShareDone

    from .report import write_report

    with _bar(title) as progress:
        try:
            result = ask(
                {
                    "out": out,
                    "workers": workers,
                    "backend": backend,
                    "scheduler": scheduler,
                    "share": share,
                    "progress": progress,
                }
            )
        except ShareDone as done:
            notes.print(str(done), markup=False, soft_wrap=True)
            return
    if out is None:
        notes.print(
            "Computed in a temporary folder, now removed; --out FOLDER keeps rows and report."
        )
    else:
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; misuse is one sentence on stderr and exit code 2."""
    # ArviZ 0.23 tells every user once a day that ArviZ 1 is coming.
    warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing", FutureWarning)
    try:
        app(args=list(arguments) if arguments is not None else None)
    except ValueError as error:
        print(f"knownminds: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print(
            "knownminds: stopped. A run, and a study with --out, go on with the same command.",
            file=sys.stderr,
        )
        raise SystemExit(130) from None


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List experiments, models and measures."""
    from rich.table import Table

    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS
    from knownminds.inference import MEASURES

    kinds: dict[str, Any] = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}
    if as_json:
        _print_json({f"{kind}s": list(members) for kind, members in kinds.items()})
        return
    for kind, members in kinds.items():
        table = Table(kind, "", box=None, header_style="bold", pad_edge=False)
        for name, member in members.items():
            table.add_row(name, member.summary)
        screen.print(table, "")


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, a model or a measure.",
            autocompletion=completes("environments", "models", "measures"),
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show an experiment's settings, a model's parameters, or what a measure is audited with."""
    from rich.table import Table

    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, make, unknown
    from knownminds.inference import MEASURES
    from knownminds.validation.engine.folders import finite

    if name in ENVIRONMENTS:
        place = make(name)
        told: dict[str, Any] = {
            "environment": name,
            "summary": place.summary,
            "source": place.source,
            "settings": place.settings,
            "trials": place.n_trials,
            "actions": place.n_actions,
            "stimulus": list(place.stimulus),
        }
        rows = [{"setting": k, "default": json.dumps(v)} for k, v in place.settings.items()]
    elif name in AGENTS:
        model = AGENTS[name]
        rows = model.parameters.table()
        told = {"model": name, "summary": model.summary, "source": model.source}
        told["parameters"] = rows
    elif name in MEASURES:
        measure = MEASURES[name]
        told = {"measure": name, "summary": measure.summary, "source": measure.source}
        told |= {"environments": list(measure.environments), "null": finite(measure.null)}
        told |= {"rational": measure.rational, "violator": measure.violator}
        rows = [{"moves": k, "by": f"{v:g}"} for k, v in measure.dial.items()]
    else:
        known = [*ENVIRONMENTS, *AGENTS, *MEASURES]
        raise ValueError(unknown("environment, model or measure", name, known))
    if as_json:
        _print_json(told)
        return
    print(f"{name}: {told['summary']}\nSource: {told['source']}")
    if name in AGENTS:
        print(inspect.cleandoc(AGENTS[name].__doc__ or ""))
    if rows:
        shown = [column for column in rows[0] if column != "source"]
        table = Table(*(c.replace("_", " ") for c in shown), box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(str(row[column]) for column in shown))
        screen.print("", table)


@app.command()
def simulate(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    subjects: Subjects = 20,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    lapse: Lapse = 0.0,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """Let subjects with known parameters play; their true values stand beside the choices."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.engine.folders import check_writable, finite, writable
    from knownminds.validation.engine.simulated_data import simulated_data

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values, design)
    if out is not None:
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"Trials are kept as .parquet or .csv; got {out.name!r}.")
        check_writable(out)
    lived = simulated_data(
        agent, place, subjects=subjects, sessions=sessions, seed=seed, truth=truth, lapse=lapse
    )
    if out is not None:
        with writable(out.parent):
            lived.save(out)
        notes.print(f"{lived}, written to {out}", markup=False)
    if as_json:
        told = {"environment": place.name, "model": agent.name, "seed": seed}
        told |= {"subjects": subjects, "sessions": sessions, "trials_per_session": place.n_trials}
        told["truth"] = _truth_of(lived.frame, agent)
        if out is None:
            told["trials"] = json.loads(lived.to_json())
        else:
            told["out"] = str(out)
        _print_json(finite(told))
    elif out is None:
        sys.stdout.write(lived.frame.to_csv(index=False))


def _tell(line: str) -> None:
    notes.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file, or the folder of a run.")],
    model: Model = "rescorla_wagner_dual",
    environment: ExperimentOption = None,
    columns: Annotated[
        str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
    ] = None,
    method: Method = "map",
    formula: Annotated[
        list[str] | None, typer.Option(help='"alpha_positive ~ condition" (hierarchical).')
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Columns that name what has its own parameters: subject,domain"),
    ] = None,
    crossed: Annotated[
        str | None, typer.Option(help="Columns whose levels deviate as well (hierarchical).")
    ] = None,
    fixed: Fixed = None,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
    target_accept: Annotated[
        float, typer.Option(help="Acceptance rate at which sampling begins (hierarchical).")
    ] = 0.8,
    most_minutes: Annotated[
        float, typer.Option(help="For how long to sample at most (hierarchical).")
    ] = 15.0,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="Take all sessions for those of one mind.")
    ] = False,
    seed: Seed = 0,
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Fit people's or models' choices, and say what so many trials support."""
    from knownminds.validation.data.fit import fit as run_fit

    from .report import write_report

    if out is not None:
        _check_own_folder("fit", out)
    result = run_fit(
        data,
        model,
        environment=environment,
        columns=_mapping(columns),
        method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
        formula=formula,
        unit=unit.split(",") if unit else None,
        crossed=crossed.split(",") if crossed else None,
        fixed=_numbers("--fix", fixed),
        fit_lapse=fit_lapse,
        all_trials=all_trials,
        target_accept=target_accept,
        most_minutes=most_minutes,
        tell=_tell,
        pooled=pooled,
        seed=seed,
        workers=workers,
    )
    if environment is None:
        notes.print(f"experiment: {result.environment} (name another with --environment)")
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


@app.command()
def score(
    data: Annotated[
        list[Path],
        typer.Argument(help=".csv or .parquet files, folders of runs, or a folder that has them."),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Which; all that the experiments have by default.",
            autocompletion=completes("measures"),
        ),
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[
        str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A column whose values are samples of their own.")
    ] = None,
    released: Annotated[
        bool, typer.Option("--released", help="Define measures as their published code does.")
    ] = False,
    over: Annotated[
        list[str] | None,
        typer.Option(help="Of a collider: a column of conditions that are compared."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Of a collider: judgements to align with, trials or a table of means."),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="Of a collider: by_cause, the default, fits m1 and m2 to the causes they belong "
            "to; pooled, the default with --released, answers for C2 by the formula of C1."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="Of diagnosis: the network, for tests that use the evidence."),
    ] = None,
    bootstraps: Annotated[
        int, typer.Option(help="Of a set of runs: rounds that its intervals rest on.")
    ] = 30,
    mass: Annotated[float, typer.Option(help="Of a set of runs: mass of its intervals.")] = 0.68,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Read every measure off a trial file, or the whole table off a set of runs, with intervals."""
    from knownminds.validation.data.scores_of_trials import score as run_score
    from knownminds.validation.diagnosis.belief_battery import belief_battery, of_diagnosis
    from knownminds.validation.magnitudes.magnitude_table import (
        magnitude_table,
        of_one_measured_file,
    )

    from .report import write_report

    plain = not (measure or released or over or reference or scoring)
    beliefs = plain and of_diagnosis(data, environment, _mapping(columns))
    if network is not None and not beliefs:
        raise ValueError(
            "--network is that of diagnosis, whose tests of coherence take no --measure, "
            "--released, --over, --reference or --scoring; leave it or them out."
        )
    single = not beliefs and of_one_measured_file(data, measure, _mapping(columns))
    if out is not None:
        kind = "score" if single else "score of beliefs" if beliefs else "score of several runs"
        _check_own_folder(kind, out)
    result: Any
    if beliefs:
        result = belief_battery(data, by=by, columns=_mapping(columns), network=network, seed=seed)
    elif single:
        result = run_score(
            data[0],
            measure,
            environment=environment,
            columns=_mapping(columns),
            by=by,
            released=released,
            over=over,
            reference=reference,
            seed=seed,
            scoring=scoring,  # type: ignore[arg-type]  # checked there, with the nearest name
        )
    else:
        if not plain:
            raise ValueError(
                "Several runs are scored by one table, which takes no --measure, --released, "
                "--over, --reference or --scoring. Name a single run or file with those."
            )
        result = magnitude_table(
            data,
            by=by,
            environment=environment,
            columns=_mapping(columns),
            rounds=bootstraps,
            mass=mass,
            seed=seed,
        )
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


@app.command()
def phenotype(
    data: Annotated[
        Path | None, typer.Argument(help="A trial file; without one, our own named characters.")
    ] = None,
    by: Annotated[str, typer.Option(help="The column that tells participants apart.")] = "model",
    reference: Annotated[
        Path | None, typer.Option(help="A CSV file with the columns metric and value.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    released: Annotated[
        bool, typer.Option("--released", help="Without signs, as the published code has it.")
    ] = False,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Set participants side by side: 0 is random answers, 1 the reference, for each metric."""
    from knownminds.validation.data.phenotype import gallery
    from knownminds.validation.data.phenotype import phenotype as run_phenotype
    from knownminds.validation.data.scores_of_trials import records_of
    from knownminds.validation.engine.folders import writable, write_text

    if data is None:
        found = gallery(seed=seed)
    elif reference is None:
        raise ValueError(
            "A phenotype is scaled by a reference, and none is shipped; got no --reference. "
            "Give a CSV file with the columns metric and value."
        )
    else:
        people = records_of(data, by, columns=_mapping(columns))
        found = run_phenotype(people, reference=reference, released=released, seed=seed)
    if out is not None:
        with writable(out) as folder:
            write_text(folder / "phenotype.csv", found.to_frame().to_csv(index=False))
            for name, figure in (("bars", found.bars()), ("radar", found.radar())):
                figure.savefig(folder / f"{name}.png", dpi=150)
                notes.print(f"picture: {folder / name}.png", markup=False, soft_wrap=True)
    if as_json:
        _print_json(json.loads(found.to_json()))
    else:
        print(found)


@study
def recover(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    subjects: Annotated[
        list[int] | None, typer.Option(help="How many; several give a surface.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Independent repetitions.")] = 1,
    sessions: SeveralSessions = None,
    trials: SeveralTrials = None,
    design: DesignName = None,
    method: Method = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
    intervals: Annotated[str, typer.Option(help="Of map: posterior, or laplace.")] = "posterior",
    population: Annotated[
        str, typer.Option(help="Subjects from the model's prior, or each replicate a group.")
    ] = "prior",
) -> Ask:
    """Ask whether a design gives a model's parameters back; several sizes give a surface."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.recovery.parameter_recovery import recover as run_recover
    from knownminds.validation.recovery.recovery_surface import recovery_surface

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, None, values, design)
    grid: list[list[Any]] = [subjects or [100], sessions or [1], list(trials or NOT_GIVEN)]
    given: dict[str, Any] = {
        "replicates": replicates,
        "method": method,
        "seed": seed,
        "truth": truth,
        "lapse": lapse,
        "fixed": _numbers("--fix", fixed),
        "fit_lapse": fit_lapse,
        "all_trials": all_trials,
        "intervals": intervals,
        "population": population,
    }
    if all(len(sizes) == 1 for sizes in grid):
        one: dict[str, Any] = {"subjects": grid[0][0], "sessions": grid[1][0], "trials": grid[2][0]}
        return lambda running: run_recover(place, agent, **one, **given, **running)
    several: dict[str, Any] = dict(zip(("subjects", "sessions", "trials"), grid, strict=True))
    return lambda running: recovery_surface(place, agent, **several, **given, **running)


@study
def confuse(
    environment: Experiment,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A rival; at least two. All that can play if none.",
            autocompletion=completes("models"),
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None, typer.Option(help="aic, bic, cv or loo; several are compared.")
    ] = None,
    subjects: Annotated[int, typer.Option(help="Subjects per data set.")] = 1,
    replicates: Annotated[int, typer.Option(help="Data sets per model.")] = 200,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
) -> Ask:
    """Ask whether a design tells rival models apart: confusion and inversion matrices."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.recovery.model_recovery import confuse as run_confuse

    rivals = [resolve_model(name) for name in model or _players(environment)]
    place, truth = _resolve(environment, rivals, trials, values, design)
    given: dict[str, Any] = {"criteria": criterion} if criterion else {}
    return lambda running: run_confuse(
        place,
        rivals,
        subjects=subjects,
        replicates=replicates,
        sessions=sessions,
        seed=seed,
        truth=truth,
        lapse=lapse,
        fit_lapse=fit_lapse,
        all_trials=all_trials,
        **given,
        **running,
    )


@study
def calibrate(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    replicates: Annotated[
        int, typer.Option(help="Posteriors; fewer than some 25 to 45 are not judged.")
    ] = 200,
    subjects: Annotated[
        int | None, typer.Option(help="Subjects of a group (hierarchical); 20 if not given.")
    ] = None,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    method: Annotated[str, typer.Option(help="map (single posteriors) or hierarchical.")] = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
) -> Ask:
    """Ask whether posteriors are right: simulation-based calibration."""
    from knownminds.validation.calibration.calibration import calibrate as run_calibrate
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values, design)
    if truth:
        raise ValueError(
            f"Calibration draws the truth from the prior; got --set {next(iter(truth))}. "
            "Hold a parameter in truth and fit with --fix."
        )
    return lambda running: run_calibrate(
        place,
        agent,
        replicates=replicates,
        subjects=subjects,
        sessions=sessions,
        method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
        seed=seed,
        fixed=_numbers("--fix", fixed),
        **running,
    )


@study
def power(
    environment: Experiment,
    effect: Annotated[
        str, typer.Option(help="NAME=SIZE: a measure or a parameter, on the natural scale.")
    ],
    model: Model = "rescorla_wagner_dual",
    comparison: Annotated[
        str, typer.Option(help="one (against the null value), between or paired conditions.")
    ] = "one",
    estimator: Annotated[str, typer.Option(help="two_stage or hierarchical.")] = "two_stage",
    subjects: Annotated[
        list[int] | None, typer.Option(help="Participants; 1 (one mind) if not given.")
    ] = None,
    sessions: SeveralSessions = None,
    trials: SeveralTrials = None,
    design: DesignName = None,
    replicates: Annotated[
        int | None, typer.Option(help="Data sets per design; 400, or 1000 to confirm --find.")
    ] = None,
    effect_sd: Annotated[float, typer.Option(help="Spread of the effect: assurance.")] = 0.0,
    values: Values = None,
    spread: Annotated[
        list[str] | None, typer.Option(help="NAME=SD between participants, unconstrained scale.")
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="sessions, subjects or trials: find the smallest number.")
    ] = None,
    target: Annotated[float, typer.Option(help="The power to reach, with --find.")] = 0.8,
    most: Annotated[int, typer.Option(help="The largest number to consider.")] = 1000,
    seed: Seed = 0,
) -> Ask:
    """Ask how often a design detects an effect, or which is the smallest that does."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.power.power_study import power as run_power
    from knownminds.validation.power.smallest_design import smallest_design

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, None, values, design)
    sizes: dict[str, Any] = {
        "subjects": subjects or [1],
        "sessions": sessions or [1],
        "trials": list(trials or NOT_GIVEN),
    }
    given: dict[str, Any] = {
        "model": agent,
        "comparison": comparison,
        "estimator": estimator,
        "effect_sd": effect_sd,
        "truth": truth,
        "spread": _numbers("--spread", spread),
        "seed": seed,
    }
    sought = _numbers("--effect", [effect])
    if find is None:
        given["replicates"] = 400 if replicates is None else replicates
        return lambda running: run_power(place, sought, **sizes, **given, **running)
    for name, several in sizes.items():
        if len(several) > 1:
            raise ValueError(f"With --find the other sizes are single numbers; got {name} twice.")
    given |= {name: several[0] for name, several in sizes.items()}
    given |= {"replicates": replicates or 1000, "find": find, "target": target, "most": most}
    return lambda running: smallest_design(place, sought, **given, **running)


@study
def audit(
    measure: Annotated[
        str,
        typer.Argument(
            help="The measure; `knownminds list` shows all.", autocompletion=completes("measures")
        ),
    ],
    environment: ExperimentOption = None,
    effect: Annotated[
        list[float] | None, typer.Option(help="True values in the violators.")
    ] = None,
    subjects: Subjects = 20,
    sessions: Sessions = 1,
    trials: SeveralTrials = None,
    replicates: Annotated[int, typer.Option(help="Data sets per design.")] = 400,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    seed: Seed = 0,
) -> Ask:
    """Ask what a metric and its test do to minds whose true value is known."""
    from knownminds.environments import unknown
    from knownminds.inference import MEASURES
    from knownminds.validation.power.audit import audit as run_audit

    if measure not in MEASURES:
        raise ValueError(unknown("measure", measure, MEASURES))
    found = MEASURES[measure]
    given = {text.partition("=")[0] for text in values or []}
    needed = [f"{k}={v}" for k, v in found.settings.items() if k not in given]
    values = [*needed, *(values or [])]
    place, _ = _resolve(environment or found.environments[0], [], None, values)
    return lambda running: run_audit(
        measure,
        environment=place,
        effects=effect,
        subjects=subjects,
        sessions=sessions,
        trials=trials or NOT_GIVEN,
        replicates=replicates,
        seed=seed,
        **running,
    )


@study
def channel(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    contaminate: Annotated[
        list[str] | None,
        typer.Option(help='Rates of one set, "refusal=0.05,malformed=0.05"; or "none".'),
    ] = None,
    subjects: Subjects = 40,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    method: Annotated[str, typer.Option(help="map or mle.")] = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
) -> Ask:
    """Ask whether known minds come through words as they are, and bounds hold what is lost."""
    from knownminds.validation.channel.channel_study import channel as run_channel
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values, design)
    given: dict[str, Any] = {"contaminants": contaminate} if contaminate else {}
    return lambda running: run_channel(
        place,
        agent,
        subjects=subjects,
        sessions=sessions,
        method=method,
        seed=seed,
        truth=truth,
        lapse=lapse,
        fixed=_numbers("--fix", fixed),
        fit_lapse=fit_lapse,
        **given,
        **running,
    )


@app.command()
def budget(
    environment: Experiment,
    llm: Annotated[
        list[str] | None, typer.Option(help="PROVIDER:MODEL, openai:gpt-4o-mini for instance.")
    ] = None,
    model: Model = "rescorla_wagner_dual",
    subjects: Annotated[int | None, typer.Option(help="How many subjects.")] = None,
    sessions: Annotated[int | None, typer.Option(help="Sessions per subject.")] = None,
    trials: NTrials = None,
    power_study: Annotated[
        Path | None, typer.Option("--power", help="Folder of a power study: price its designs.")
    ] = None,
    reasoning: Annotated[
        str, typer.Option(help="LOW-HIGH: tokens of thought before each answer.")
    ] = "0-0",
    image_tokens: Annotated[
        str, typer.Option(help="LOW-HIGH: tokens that a picture counts.")
    ] = "85-8500",
    price: Annotated[
        list[str] | None, typer.Option(help="PROVIDER:MODEL=IN,OUT dollars per million tokens.")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help="A .toml or .json file of prices.")] = None,
    date: Annotated[str | None, typer.Option(help="YYYY-MM-DD: the day of the prices.")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Reckon calls, tokens and money of a design from its real prompts."""
    from knownminds.llm_adapters.runs.prices import parse_price, read_prices
    from knownminds.validation.costs.budget import budget as run_budget
    from knownminds.validation.costs.budget import designs_of
    from knownminds.validation.engine.arguments import resolve_model

    from .report import read_result, write_report

    if out is not None:
        _check_own_folder("budget", out)
    place, _ = _resolve(environment, [], None, values)
    designs = [] if power_study is None else designs_of(read_result(power_study), place)
    chosen = designs[-1] if designs else None
    overrides = {} if prices is None else dict(read_prices(prices))
    overrides |= dict(parse_price(text) for text in price or ())
    result = run_budget(
        place,
        llm or [],
        model=resolve_model(model),
        subjects=subjects or (chosen.subjects if chosen else 1),
        sessions=sessions or (chosen.sessions if chosen else 1),
        trials=trials or (chosen.trials if chosen else None),
        reasoning_tokens=_between("--reasoning", reasoning),
        image_tokens=_between("--image-tokens", image_tokens),
        prices=overrides,
        date=_day(date),
        seed=seed,
        designs=designs,
    )
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


@app.command()
def run(
    environment: Experiment,
    llm: Annotated[str, typer.Option(help="PROVIDER:MODEL, openai:gpt-4o-mini for instance.")],
    sessions: Annotated[int, typer.Option(help="How many sessions.")] = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    base_url: Annotated[str | None, typer.Option(help="A server of your own.")] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until a call is given up.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 to 2.")] = None,
    top_p: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Where an answer is cut off.")] = None,
    reasoning: Annotated[str | None, typer.Option(help="none, low, medium or high.")] = None,
    top_log_probabilities: Annotated[
        int | None, typer.Option(help="Alternatives kept with each token.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Sessions under way at a time.")] = 8,
    attempts: Annotated[int, typer.Option(help="Calls per question, if the provider fails.")] = 5,
    re_ask: Annotated[int, typer.Option(help="How often to ask again if malformed.")] = 0,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MOST: calls, tokens, dollars, session_calls, ..., answer_tokens."),
    ] = None,
    price: Annotated[
        str | None, typer.Option(help="IN,OUT or IN,OUT,CACHED dollars per million tokens.")
    ] = None,
    contaminate: Contaminate = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="NAME=RATE: rate_limited, failed, timed_out, ...: a rehearsal."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only estimate calls, tokens and money.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    as_json: Json = False,
) -> None:
    """Let a language model live sessions; the same command goes on where it stopped.

    The exit code is 0 once all sessions are lived to their end, 1 if some are not, 3 if not one
    answer could be read, 2 for bad input or a run in vain.
    """
    from knownminds.agents import AGENTS
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.known_minds.faulty import Faults
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.llm_adapters.runs.prices import parse_price
    from knownminds.llm_adapters.runs.runner import TRIALS, Retries, price_in, read_run
    from knownminds.validation.costs.connect import estimate, folder_of, price_for
    from knownminds.validation.costs.connect import run as run_sessions

    from .report import write_report

    provider, _, model = llm.partition(":")
    minds = [AGENTS[model]] if provider == "synthetic" and model in AGENTS else []
    place, truth = _resolve(environment, minds, trials, values, design)
    overrides = dict([parse_price(f"{llm}={price}")]) if price else {}
    folder = out or folder_of(place, llm)
    found = price_for(llm, overrides, elsewhere=base_url is not None)
    rates = price_in(folder) or found
    caps = _caps(cap)
    settings = Sampling(
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        reasoning=reasoning,  # type: ignore[arg-type]  # checked there, with the nearest name
        top_log_probabilities=top_log_probabilities,
    )
    about = estimate(place, llm, sessions, rates)
    if dry_run:
        print(about)
        return
    notes.print(about, markup=False, soft_wrap=True)
    if price and found and rates and (found.rates, found.per_call) != (rates.rates, rates.per_call):
        notes.print(
            f"--price is not used: the run keeps the price it has, {rates}",
            markup=False,
            soft_wrap=True,
        )
    _check_own_folder("run", folder)
    try:
        with _money(sessions) as progress:
            lived = run_sessions(
                place,
                llm,
                sessions=sessions,
                seed=seed,
                out=folder,
                settings=settings,
                concurrency=concurrency,
                retries=Retries(attempts=attempts),
                caps=caps,
                price=rates,
                re_ask=re_ask,
                progress=progress,
                base_url=base_url,
                key_variable=key_variable,
                timeout=timeout,
                truth=truth,
                contaminants=_contaminants(contaminate),
                faults=_dials("--fault", fault, Faults) if fault else None,
            )
    except (ImportError, LedgerFailed, Unusable) as error:
        kept = (
            f" What was paid for stays in {folder}." if (folder / "ledger.sqlite").exists() else ""
        )
        raise ValueError(f"{error}{kept}") from None
    except KeyboardInterrupt:
        if (folder / RESULTS["run"]).exists():
            notes.print(str(read_run(folder, place)), markup=False, soft_wrap=True)
        raise
    notes.print(f"report: {write_report(lived, folder)}", markup=False, soft_wrap=True)
    if lived.trials is not None:
        notes.print(f"trials: {folder / TRIALS}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(lived.to_dict())
    else:
        print(lived)
    for sentence in filter(None, (lived.nothing_read, lived.remedy)):
        notes.print(sentence, markup=False, soft_wrap=True)
    if lived.nothing_read:
        raise typer.Exit(3)
    if lived.unfinished:
        raise typer.Exit(1)


@app.command()
def reveal(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="dice, coins, choice, preference; all of them if none is named."),
    ] = None,
    llm: Annotated[
        list[str] | None,
        typer.Option(help="PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler."),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option("--from", help="A folder of an earlier result, to compare with."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="exact, top-k or sampled; the best one there is.")
    ] = None,
    form: Annotated[str | None, typer.Option(help="continuation or question.")] = None,
    draws: Annotated[int, typer.Option(help="Answers to each context, if sampled.")] = 50,
    top: Annotated[int, typer.Option(help="Alternatives told with each token, if top-k.")] = 20,
    stated: Annotated[bool, typer.Option(help="Ask for probabilities as well.")] = True,
    distractors: Annotated[
        str, typer.Option(help="published or plausible: the wrong probabilities on offer.")
    ] = "published",
    asking: Annotated[
        str, typer.Option(help="whole or gap: how probabilities are asked for.")
    ] = "whole",
    even_faces: Annotated[bool, typer.Option("--even-faces", help="Leave odd dice out.")] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Put texts that go on into the chat template.")
    ] = False,
    signs: Annotated[
        bool, typer.Option(help="Look at what follows a sign behind an outcome (7.5).")
    ] = True,
    threshold: Annotated[float, typer.Option(help="Least retained mass without a flag.")] = 0.5,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: a parameter of a known mind, or n_dice, ..."),
    ] = None,
    tokens: Annotated[
        str, typer.Option(help="single, digits or pairs: how a known mind is cut.")
    ] = "digits",
    space: Annotated[float, typer.Option(help="Of a known mind: share with a space before.")] = 0.5,
    leak: Annotated[float, typer.Option(help="Of a known mind: share that is no outcome.")] = 0.0,
    seed: Seed = 0,
    base_url: Annotated[str | None, typer.Option(help="A server of your own.")] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="0 to 2.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Where an answer is cut off.")] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MOST of each experiment: calls, tokens, dollars, ..."),
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Read how probable each outcome of chance is to a model, beside what it states."""
    from knownminds.environments.chance.scenarios import SCENARIOS
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.validation.chance.asked_beliefs import GRID
    from knownminds.validation.chance.revealed import reveal as ask

    from .report import write_report

    given = _numbers("--set", values)
    if out is not None:
        _check_own_folder("reveal", out)
    try:
        with _bar("reveal") as progress:
            result = ask(
                llm or (),
                scenarios=scenarios or tuple(SCENARIOS),
                form=form,  # type: ignore[arg-type]  # checked there, as the next ones
                source=source,  # type: ignore[arg-type]
                draws=draws,
                top=top,
                stated=stated,
                distractors=distractors,  # type: ignore[arg-type]
                asking=asking,  # type: ignore[arg-type]
                even_faces=even_faces,
                chat=chat,
                signs=signs,
                threshold=threshold,
                only={name: int(value) for name, value in given.items() if name in GRID},
                truth={name: value for name, value in given.items() if name not in GRID},
                tokens=tokens,  # type: ignore[arg-type]
                space=space,
                leak=leak,
                earlier=earlier or (),
                seed=seed,
                settings=Sampling(temperature=temperature, max_tokens=max_tokens),
                out=out,
                progress=progress,
                base_url=base_url,
                key_variable=key_variable,
                caps=_caps(cap),
            )
    except (ImportError, LedgerFailed, Unusable) as error:
        raise ValueError(str(error)) from None
    if out is not None:
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    else:
        notes.print("--out FOLDER keeps the beliefs and their report.")
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


@app.command()
def serve(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    values: Values = None,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for a free one.")] = 0,
    name: Annotated[str, typer.Option(help="The model that requests must ask for.")] = "known-mind",
    contaminate: Contaminate = None,
    seed_is_session: Annotated[
        bool,
        typer.Option(help="Whether a request's seed is the session's number, as `run` sends it."),
    ] = True,
    key_variable: Annotated[
        str | None, typer.Option(help="Variable with a key that requests must bear.")
    ] = None,
) -> None:
    """Put a known mind behind an OpenAI-compatible address, until Ctrl-C."""
    from knownminds.llm_adapters.known_minds.serve import Served
    from knownminds.llm_adapters.known_minds.serve import serve as run_server
    from knownminds.llm_adapters.runs.participant import RUN
    from knownminds.validation.costs.connect import mind_of
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values, design)
    mind = mind_of(agent, place, truth)

    def ready(served: Served) -> None:
        notes.print(f"{mind} at {served.base_url} as {name}; Ctrl-C ends it.", soft_wrap=True)

    calls = run_server(
        place,
        mind,
        seed=seed,
        address=RUN,
        host=host,
        port=port,
        contaminants=_contaminants(contaminate),
        model=name,
        api_key=_key(key_variable),
        seed_is_session=seed_is_session,
        ready=ready,
    )
    notes.print(f"{calls} calls were answered.")


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of one study.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    as_json: Json = False,
) -> None:
    """Join the folders of a study that was computed in shares, on several machines."""
    from knownminds.validation.engine.merging import merge as run_merge

    from .report import read_result, write_report

    place = run_merge(folders, out)
    result = read_result(place)
    notes.print(f"report: {write_report(result, place)}", markup=False, soft_wrap=True)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a study or a fit.")],
    as_json: Json = False,
) -> None:
    """Draw the report of a folder again, without computing anything anew."""
    from .report import read_what_is_there, write_report
    from .unfinished_page import Unfinished

    found = read_what_is_there(folder)
    page = write_report(found, folder)
    if isinstance(found, Unfinished):
        notes.print(str(found), markup=False, soft_wrap=True)
    if as_json:
        _print_json({"report": str(page)})
    else:
        print(page)


@app.command()
def gates(
    name: Annotated[
        list[str] | None, typer.Argument(help="Models and measures; all if none.")
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(help="recovery, shuffled, calibration or audit; all if none."),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A tenth of the size, to see that it works.")
    ] = False,
    seed: Seed = 1,
    store: Annotated[
        Path | None, typer.Option(help="A .json file that keeps each gate; it goes on from there.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Put models through recovery, its control and calibration, measures through audits."""
    from knownminds.validation.gates.gates import gates as run_gates

    with _bar("gates") as progress:
        found = run_gates(
            name,
            kinds=gate,
            small=small,
            seed=seed,
            store=store,
            workers=workers,
            progress=progress,
        )
    if as_json:
        _print_json(found.to_dict())
    else:
        print(found)


@app.command()
def gallery(
    out: Annotated[Path, typer.Option(help="Folder for the page.")],
    as_json: Json = False,
) -> None:
    """Write one page of all experiments, models and measures, with what is stored of them."""
    from knownminds.validation.gates.gallery import gallery as write_gallery

    page = write_gallery(out)
    if as_json:
        _print_json({"gallery": str(page)})
    else:
        print(page)


@app.command()
def schema(
    environment: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, for its stimuli and ranges.",
            autocompletion=completes("environments"),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the columns of the trial record, or with --json its JSON Schema."""
    from knownminds.environments import make, trial_schema

    found = trial_schema(None if environment is None else make(environment))
    if as_json:
        _print_json(found.to_dict())
    else:
        print(found)


@app.command()
def export(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file, or the folder of a run.")],
    out: Annotated[Path, typer.Option(help="The file, or for psych-ds the folder.")],
    format: Annotated[
        str | None,
        typer.Option(help="csv, parquet, psych-101 or psych-ds; else as the file's name ends."),
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of a psych-ds data set.")] = None,
    description: Annotated[str, typer.Option(help="Of a psych-ds data set.")] = "",
    author: Annotated[list[str] | None, typer.Option(help="Of a psych-ds data set.")] = None,
    licence: Annotated[
        str, typer.Option("--licence", "--license", help="Of a psych-ds data set.")
    ] = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write trials as a table, as Psych-101 texts, or as a Psych-DS folder."""
    from knownminds.validation.data.exchange import export_trials

    written = export_trials(
        data,
        out,
        format,
        environment=environment,
        columns=_mapping(columns),
        settings=_settings(values),
        name=name,
        description=description,
        authors=author or (),
        licence=licence,
        seed=seed,
    )
    _tell_trials(written, out, as_json)


@app.command("import")
def import_(
    sources: Annotated[
        list[Path], typer.Argument(help="Files, or folders of psych-ds or of Inspect's logs.")
    ],
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
    format: Annotated[
        str | None, typer.Option(help="psych-101, psych-ds, inspect, csv or parquet; else found.")
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read trials from Psych-101 texts, Psych-DS folders or Inspect's logs into a table."""
    from knownminds.validation.data.exchange import import_trials, save_table

    found = import_trials(
        sources,
        format,
        environment=environment,
        columns=_mapping(columns),
        settings=_settings(values),
    )
    save_table(found, out)
    _tell_trials(found, out, as_json)


def _tell_trials(trials: Any, out: Path, as_json: bool) -> None:
    if as_json:
        counts = trials.frame["outcome"].value_counts().to_dict()
        told = {"subjects": trials.n_subjects, "sessions": trials.n_sessions}
        _print_json({"out": str(out), **told, "trials": len(trials), "outcomes": counts})
    else:
        print(f"{trials}, written to {out}")


def _settings(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return what --set says; what is no JSON is text."""
    settings: dict[str, Any] = {}
    for name, value in _pairs("--set", texts):
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


@app.command()
def doctor(
    speed: Annotated[bool, typer.Option(help="Whether to measure how fast it is.")] = True,
    as_json: Json = False,
) -> None:
    """Say what is installed, which language models can be asked, and how fast this machine is."""
    from knownminds.validation.gates.doctor import doctor as examine

    found = examine(measure=speed)
    if as_json:
        _print_json(found.to_dict())
    else:
        print(found)
    if not found.sound:
        raise typer.Exit(1)


def _print_json(content: Any) -> None:
    print(json.dumps(content, allow_nan=False))


@contextmanager
def _bar(title: str) -> Iterator[Callback | None]:
    """Give a progress callback that draws on a terminal; None where stderr is not one."""
    if not notes.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(title, rate="")

        def show(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:.1f} batches/s"
            bar.update(task, completed=done, total=total, rate=rate)

        yield show


@contextmanager
def _money(sessions: int) -> Iterator[Callable[[Standing], None] | None]:
    """Give a progress callback of a run, with the money spent; None where stderr is no terminal."""
    if not notes.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("run"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task("run", total=None, told="")

        def show(now: Standing) -> None:
            told = _standing(now, sessions)
            bar.update(task, completed=now.trials, total=now.n_trials, told=told)

        yield show


def _standing(now: Standing, sessions: int) -> str:
    """Say where a run stands, in a line."""
    money = "no price" if now.dollars is None else f"${now.dollars:.4f}"
    return (
        f"{now.sessions}/{sessions} sessions, {now.missing} unread, {now.calls} calls, {money}, "
        f"{now.under_way} of {now.allowed} under way"
    )


def _check_own_folder(kind: str, out: Path) -> None:
    """Raise ValueError, before any work, if the folder cannot be written or holds another kind."""
    from knownminds.validation.engine.folders import check_writable

    check_writable(out)
    for other, file in RESULTS.items():
        if other != kind and (out / file).exists():
            raise ValueError(f"A {kind} needs a folder of its own; {out} holds a {other}.")


def _between(option: str, text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal()):
        raise ValueError(f"{option} takes LOW-HIGH, 0-500 for instance; got {text!r}.")
    return int(low), int(high)


def _day(text: str | None) -> datetime.date | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"--date takes YYYY-MM-DD; got {text!r}.") from None


def _dials(option: str, texts: Sequence[str] | None, kind: Callable[..., Dials]) -> Dials:
    """Make a table of rates from NAME=RATE."""
    from knownminds.environments import unknown

    given = _numbers(option, texts)
    known = list(inspect.signature(kind).parameters)
    for name in given:
        if name not in known:
            raise ValueError(unknown(f"rate of {option}", name, known))
    return kind(**given)


def _contaminants(texts: Sequence[str] | None) -> Contaminants:
    from knownminds.agents import Contaminants

    return _dials("--contaminate", texts, Contaminants)


def _caps(texts: Sequence[str] | None) -> Caps:
    from knownminds.environments import unknown
    from knownminds.llm_adapters.runs.admission import Caps

    given: dict[str, Any] = {}
    known = list(inspect.signature(Caps).parameters)
    for name, value in _pairs("--cap", texts):
        if name not in known:
            raise ValueError(unknown("cap", name, known))
        given[name] = value if "dollars" in name else _whole("--cap", name, value)
    return Caps(**given)


def _whole(option: str, name: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{option} {name} takes a whole number from 0 on; got {value!r}.")
    return int(value)


def _key(variable: str | None) -> str | None:
    """Read a key that requests must bear; None if they need none."""
    key = None if variable is None else os.environ.get(variable, "").strip()
    if key == "":
        raise ValueError(f"The key is read from the variable {variable}, which is empty. Set it.")
    return key


def _players(environment: str) -> list[str]:
    """Names of all models that can play an experiment."""
    from knownminds.agents import AGENTS
    from knownminds.environments import make

    place = make(environment)
    return [name for name, model in AGENTS.items() if model.plays(place)]


def _pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ValueError(f"{option} takes NAME=VALUE; got {text!r}.")
        pairs.append((name.strip(), value.strip()))
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option} names each thing once; got {name!r} twice.")
    return pairs


def _number(option: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} {name} takes a number; got {value!r}.") from None


def _numbers(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    return {name: _number(option, name, value) for name, value in _pairs(option, texts)}


def _mapping(columns: str | None) -> dict[str, str]:
    texts = [] if columns is None else columns.split(",")
    return dict(_pairs("--columns", texts))


def _resolve(
    environment: str,
    models: type[Agent] | Sequence[type[Agent]],
    trials: int | None,
    texts: Sequence[str] | None,
    design: str | None = None,
) -> tuple[Environment, dict[str, float]]:
    """Build the experiment, and sort --set into its settings and true parameters."""
    from knownminds.environments import make, unknown
    from knownminds.validation.engine.arguments import resolve_environment

    place = make(environment)
    minds = list(models) if isinstance(models, Sequence) else [models]
    parameters = list(dict.fromkeys(name for mind in minds for name in mind.parameters.names))
    truth: dict[str, float] = {}
    settings: dict[str, Any] = {}
    if design is not None:
        if "design" not in place.settings:
            raise ValueError(f"{place.name} has a single design; got --design {design}.")
        settings["design"] = design
    for name, value in _pairs("--set", texts):
        if name in parameters:
            truth[name] = _number("--set", name, value)
        elif name in place.settings:
            try:
                settings[name] = json.loads(value)
            except json.JSONDecodeError:
                settings[name] = value
        else:
            known = [*parameters, *place.settings]
            whose = " or ".join(mind.name for mind in minds)
            kind = f"parameter of {whose} or setting" if minds else "setting"
            kind += f" of {place.name}"
            raise ValueError(unknown(kind, name, known))
    return resolve_environment(make(environment, **place.settings | settings), trials), truth


def _truth_of(frame: Any, model: type[Agent]) -> list[dict[str, Any]]:
    names = [f"true_{name}" for name in model.parameters.names]
    first = frame.drop_duplicates("subject")[["subject", *names]]
    rows: list[dict[str, Any]] = first.rename(columns=lambda c: c.removeprefix("true_")).to_dict(
        "records"
    )
    return rows
