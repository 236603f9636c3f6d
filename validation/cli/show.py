"""`knownminds show`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, tell_table
from knownminds.validation.completion import completes
from knownminds.validation.options import Json


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, a model or a measure.",
            autocompletion=completes("environments", "models", "measures"),
        ),
    ],
    kernel: Annotated[
        bool, typer.Option("--kernel", help="Print the compiled functions of a model as source.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Hold a model or an experiment against its contract; exit code 2 if it is broken.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show an experiment's settings, a model's parameters, or what a measure is audited with."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, make, unknown
    from knownminds.environments.record.result import plain
    from knownminds.inference import MEASURES

    if name in ENVIRONMENTS:
        place = make(name)
        told: dict[str, Any] = {
            "environment": name,
            "summary": place.summary,
            "source": place.source,
            "settings": place.settings,
            "trials": place.n_trials,
            "actions": place.n_actions,
            "stimulus": list(place.fields.stimulus),
        }
        rows = [
            {"setting": k, "default": json.dumps(place.settings[k]), "may be": str(found.rule),
             "what it does": found.help}
            for k, found in ((f.called or n, f) for n, f in place.setting_table.items())
        ]  # fmt: skip
    elif name in AGENTS:
        model = AGENTS[name]
        rows = model.parameters.table()
        told = {"model": name, "summary": model.summary, "source": model.source}
        told["parameters"] = rows
    elif name in MEASURES:
        measure = MEASURES[name]
        told = {"measure": name, "summary": measure.summary, "source": measure.source}
        told |= {"environments": list(measure.environments), "null": plain(measure.null)}
        told |= {"rational": measure.rational, "violator": measure.violator}
        rows = [{"moves": k, "by": f"{v:g}"} for k, v in measure.dial.direction.items()]
    else:
        known = [*ENVIRONMENTS, *AGENTS, *MEASURES]
        raise ValueError(unknown("environment, model or measure", name, known))
    if kernel:
        print(kernels_of(name))
        return
    if check:
        if not keeps_contract(name):
            raise typer.Exit(2)
        return
    if as_json:
        print_json(told)
        return
    print(f"{name}: {told['summary']}\nSource: {told['source']}")
    if name in AGENTS:
        print(inspect.cleandoc(AGENTS[name].__doc__ or ""))
    if rows:
        shown = [column for column in rows[0] if column != "source"]
        print()
        head = [column.replace("_", " ") for column in shown]
        tell_table(head, [[str(row[column]) for column in shown] for row in rows])


def keeps_contract(name: str) -> bool:
    """Print what holding a model or an experiment against its contract gave; say if it is kept."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, check_environment, make
    from knownminds.inference import check_agent

    if name in AGENTS:
        found = check_agent(AGENTS[name])
        print(found)
        return found.ok
    if name not in ENVIRONMENTS:
        raise ValueError(
            f"A contract is that of a model or an experiment; {name} is none. Leave --check out."
        )
    try:
        check_environment(make(name))
    except AssertionError as broken:
        print(f"{name}: {broken}")
        return False
    print(f"{name}: kept")
    return True


def kernels_of(name: str) -> str:
    """Return the source of a model's kernels: as generated, or the file they are written in."""
    from knownminds.agents import AGENTS, Model
    from knownminds.environments import ENVIRONMENTS, make

    if name not in AGENTS:
        raise ValueError(f"Kernels are those of a model; {name} is none. Leave --kernel out.")
    model = AGENTS[name]
    if issubclass(model, Model):
        place = next((p for e in ENVIRONMENTS if model.plays(p := make(e))), None)
        texts = [model.kernel_source(place.n_actions or None if place else None)]
        return "\n".join([*texts, *([model.simulation_source(place)] if place else [])])
    kernel: Any = inspect.unwrap(model.log_likelihood)
    return Path(inspect.getfile(getattr(kernel, "py_func", kernel))).read_text(encoding="utf-8")
