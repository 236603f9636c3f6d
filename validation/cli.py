"""The `knownminds` command: parses, calls, prints."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from knownminds.agents import AGENTS, Agent
from knownminds.environments import ENVIRONMENTS, Environment, make, unknown

if TYPE_CHECKING:
    from .study import Progress as Callback

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Simulated agents with known parameters, and the tests that inference must pass on them.",
)
screen, notes = Console(highlight=False), Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[str, typer.Option(help="A model; `knownminds list` shows all.")]
Method = Annotated[str, typer.Option(help="mle, map or hierarchical.")]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Subjects = Annotated[int, typer.Option(help="How many subjects.")]
Sessions = Annotated[int, typer.Option(help="Sessions per subject.")]
NTrials = Annotated[int | None, typer.Option("--trials", help="Trials per session.")]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE: a true parameter or a setting of the experiment."),
]
Fixed = Annotated[
    list[str] | None, typer.Option("--fix", help="NAME=VALUE: held in the fit, not estimated.")
]
Lapse = Annotated[float, typer.Option(help="Lapse rate of the simulated subjects.")]
FitLapse = Annotated[bool, typer.Option("--fit-lapse", help="Estimate a lapse rate.")]
Workers = Annotated[int | None, typer.Option(help="Processes (recover), threads (fit).")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results and the report.")]


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
        print("knownminds: stopped; the same command with --out goes on.", file=sys.stderr)
        raise SystemExit(130) from None


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List experiments, models and measures."""
    if as_json:
        _print_json({"environments": list(ENVIRONMENTS), "models": list(AGENTS), "measures": []})
        return
    for kind, members in (("environment", ENVIRONMENTS), ("model", AGENTS)):
        table = Table(kind, "", box=None, header_style="bold", pad_edge=False)
        for name, member in members.items():
            table.add_row(name, member.summary)
        screen.print(table, "")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="An experiment or a model.")], as_json: Json = False
) -> None:
    """Show an experiment's settings or a model's parameters."""
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
    else:
        raise ValueError(unknown("environment or model", name, [*ENVIRONMENTS, *AGENTS]))
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
    environment: Annotated[str, typer.Argument(help="The experiment.")],
    model: Model = "rescorla_wagner_dual",
    subjects: Subjects = 20,
    sessions: Sessions = 1,
    trials: NTrials = None,
    seed: Seed = 0,
    values: Values = None,
    lapse: Lapse = 0.0,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """Let subjects with known parameters play; their true values stand beside the choices."""
    from .parameter_recovery import resolve_model
    from .simulated_data import simulated_data
    from .study import check_writable, finite, writable

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values)
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


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file of trials.")],
    model: Model = "rescorla_wagner_dual",
    environment: Annotated[str | None, typer.Option(help="The experiment.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
    ] = None,
    method: Method = "map",
    formula: Annotated[
        list[str] | None, typer.Option(help='"alpha_positive ~ condition" (hierarchical).')
    ] = None,
    fixed: Fixed = None,
    fit_lapse: FitLapse = False,
    seed: Seed = 0,
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Fit people's or models' choices, and say what so many trials support."""
    from .fit import fit as run_fit
    from .report import write_report
    from .study import check_writable

    if out is not None:
        check_writable(out)
        if (out / "study.json").exists():
            raise ValueError(f"A fit needs a folder of its own; {out} holds a study.")
    result = run_fit(
        data,
        model,
        environment=environment,
        columns=_mapping(columns),
        method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
        formula=formula,
        fixed=_numbers("--fix", fixed),
        fit_lapse=fit_lapse,
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
def recover(
    environment: Annotated[str, typer.Argument(help="The experiment.")],
    model: Model = "rescorla_wagner_dual",
    subjects: Subjects = 100,
    replicates: Annotated[int, typer.Option(help="Independent repetitions.")] = 1,
    sessions: Sessions = 1,
    trials: NTrials = None,
    method: Method = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
    intervals: Annotated[str, typer.Option(help="Of map: posterior, or laplace.")] = "posterior",
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Ask whether a design gives a model's parameters back."""
    from .parameter_recovery import recover as run_recover
    from .parameter_recovery import resolve_model

    agent = resolve_model(model)
    place, truth = _resolve(environment, agent, trials, values)
    with _bar("recover") as progress:
        result = run_recover(
            place,
            agent,
            subjects=subjects,
            replicates=replicates,
            sessions=sessions,
            method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
            seed=seed,
            truth=truth,
            lapse=lapse,
            fixed=_numbers("--fix", fixed),
            fit_lapse=fit_lapse,
            intervals=intervals,  # type: ignore[arg-type]
            workers=workers,
            out=out,
            progress=progress,
        )
    if out is None:
        notes.print(
            "Computed in a temporary folder, now removed; --out FOLDER keeps rows and report."
        )
    else:
        from .report import write_report

        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
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
    from .report import report as draw

    page = draw(folder)
    if as_json:
        _print_json({"report": str(page)})
    else:
        print(page)


def _print_json(content: Any) -> None:
    print(json.dumps(content, allow_nan=False))


@contextmanager
def _bar(title: str) -> Iterator[Callback | None]:
    """Give a progress callback that draws on a terminal; None where stderr is not one."""
    if not notes.is_terminal:
        yield None
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(title)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
    environment: str, model: type[Agent], trials: int | None, texts: Sequence[str] | None
) -> tuple[Environment, dict[str, float]]:
    """Build the experiment, and sort --set into its settings and true parameters."""
    from .parameter_recovery import resolve_environment

    place = make(environment)
    truth: dict[str, float] = {}
    settings: dict[str, Any] = {}
    for name, value in _pairs("--set", texts):
        if name in model.parameters.names:
            truth[name] = _number("--set", name, value)
        elif name in place.settings:
            try:
                settings[name] = json.loads(value)
            except json.JSONDecodeError:
                settings[name] = value
        else:
            known = [*model.parameters.names, *place.settings]
            kind = f"parameter of {model.name} or setting of {place.name}"
            raise ValueError(unknown(kind, name, known))
    return resolve_environment(make(environment, **place.settings | settings), trials), truth


def _truth_of(frame: Any, model: type[Agent]) -> list[dict[str, Any]]:
    names = [f"true_{name}" for name in model.parameters.names]
    first = frame.drop_duplicates("subject")[["subject", *names]]
    rows: list[dict[str, Any]] = first.rename(columns=lambda c: c.removeprefix("true_")).to_dict(
        "records"
    )
    return rows
