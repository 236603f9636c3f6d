"""`knownminds show`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, screen
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
    as_json: Json = False,
) -> None:
    """Show an experiment's settings, a model's parameters, or what a measure is audited with."""
    from rich.table import Table

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
    if as_json:
        print_json(told)
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
