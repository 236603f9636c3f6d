"""The generated parts of the pages: from docstrings, the command line, and stored results.

Before the site is built (`docs/build.py`), a line `<!-- names of PACKAGE -->` becomes the public
names of a package,
`<!-- the commands -->` all commands with their arguments and options,
`<!-- stored runs of NAME NAME ... -->` what the stored runs say of models and measures,
`<!-- the gallery -->` all experiments, models and measures,
`<!-- parameters of NAME -->` the parameters of a model with their priors, and
`<!-- columns of NAME NAME ... -->` the columns of experiments, a row of each and its JSON Schema.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

from gallery import gallery, stored_gates, told_prior, with_error
from typer.models import ArgumentInfo, Context

from knownminds.members import packages

ROOT = Path(__file__).resolve().parent.parent
REGISTRIES = {"ENVIRONMENTS": "Experiments", "AGENTS": "Models", "MEASURES": "Measures"}
NAMES = re.compile(r"<!-- names of (\w+) -->")
COMMANDS = "<!-- the commands -->"
STORED = re.compile(r"<!-- stored runs of ([\w ]+) -->")
PARAMETERS = re.compile(r"<!-- parameters of (\w+) -->")
COLUMNS = re.compile(r"<!-- columns of ([\w ]+) -->")
GALLERY = "<!-- the gallery -->"


def filled(markdown: str) -> str:
    """Return a page with its generated parts."""
    markdown = NAMES.sub(lambda match: "\n".join(_names(match[1])), markdown)
    markdown = PARAMETERS.sub(lambda match: "\n".join(_parameters(match[1])), markdown)
    markdown = COLUMNS.sub(lambda match: "\n".join(_columns(match[1].split())), markdown)
    markdown = STORED.sub(lambda match: "\n".join(_runs(match[1].split())), markdown)
    for mark, write in ((COMMANDS, _commands), (GALLERY, gallery)):
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(write()))
    return markdown


def _names(floor: str) -> Iterator[str]:
    """Write an entry for each public name of a package, those of its registries last."""
    package = import_module(f"knownminds.{floor}")
    listed = {r: getattr(package, r) for r in REGISTRIES if hasattr(package, r)}
    members = {id(value) for values in listed.values() for value in values.values()}
    for name in sorted(package.__all__, key=str.casefold):
        if name not in listed and id(getattr(package, name)) not in members:
            yield f"\n::: {_path(floor, name, getattr(package, name))}\n"
    for registry, values in listed.items():
        yield f"\n## {REGISTRIES[registry]}\n\nListed in `{registry}`.\n"
        public = {id(getattr(package, name)): name for name in package.__all__}
        for value in values.values():
            name = public.get(id(value))
            one = value if name or isinstance(value, type) else type(value)
            name = name or one.__name__
            if isinstance(one, type) and not _has_source(one):
                yield f"\n### `{name}`\n\n{inspect.getdoc(one)}\n"
            else:
                yield f"\n::: {_path(floor, name, one)}\n    options:\n      members: false\n"


def _has_source(kind: type) -> bool:
    """Tell whether a class statement makes this class, so that the site generator finds it."""
    try:
        inspect.getsource(kind)
    except OSError:
        return False
    return True


def _path(floor: str, name: str, value: Any) -> str:
    """Return where a name is defined; an alias of a type is found where it is public."""
    module = getattr(value, "__module__", None) or ""
    ours = module.partition(".")[0] in packages()
    return f"{module if ours else f'knownminds.{floor}'}.{name}"


def _tables(name: str) -> Iterator[str]:
    """Write the columns and the settings of an experiment, which its tables hold."""
    import knownminds.environments

    kind = getattr(knownminds.environments, name)
    yield f"\n{kind.fields}\n\n| setting | default | may be | what it does |\n|---|---|---|---|"
    for attribute, entry in kind.setting_table.items():
        default = json.dumps(entry.default, default=str)
        row = entry.called or attribute, f"`{default}`", str(entry.rule), entry.help
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def _runs(names: list[str]) -> Iterator[str]:
    """Write a table of the stored runs of models and measures, and who has none."""
    stored = stored_gates()
    runs = stored[stored["name"].isin(names) & stored["gate"].isin(_SHOWN)]
    runs = runs.assign(order=runs["name"].map(names.index)).sort_values("order", kind="stable")
    if len(runs):
        yield "| command | result |\n|---|---|"
    for (command, _), rows in runs.groupby(["command", "name"], sort=False):
        result = "<br>".join(_result(row) for row in rows.to_dict("records"))
        attempted, failed = rows[["attempted", "failed"]].iloc[0]
        yield f"| `{command}` | {result}{f'<br>{failed} of {attempted} failed' * (failed > 0)} |"
    absent = [f"`{name}`" for name in names if name not in set(runs["name"])]
    if absent:
        yield f"\nNo run is stored yet of {', '.join(absent)}."


# What is shown of each gate: its numbers by name.
_SHOWN = {
    "recovery": ("r", "coverage"),
    "calibration": ("p",),
    "audit": ("rejected", "bias", "coverage"),
}


def _result(row: dict[str, Any]) -> str:
    scores = [f"{name} {with_error(row, name)}" for name in _SHOWN[row["gate"]]]
    return f"{row['quantity']}: {', '.join(filter(None, [row['verdict'], *scores]))}"


def _columns(names: list[str]) -> Iterator[str]:
    """Write the columns of experiments in words, a row of each, and its JSON Schema."""

    from knownminds.environments import COLUMNS as COMMON
    from knownminds.environments import make, trial_schema

    common = {column.name for column in COMMON} - {"action", "response", "reward"}
    for name in names:
        schema = trial_schema(make(name))
        yield f"\n### `{name}`\n\n| column | from | to | what it is |\n|---|---|---|---|"
        for column in schema.columns:
            if column.name not in common:
                ends = ["" if end is None else f"{end:g}" for end in (column.least, column.most)]
                yield f"| `{column.name}` | {ends[0]} | {ends[1]} | {_plain(column.description)} |"
        row = ", ".join(f"{key}={value}" for key, value in schema.example.items() if value != "")
        yield f"\nA row: `{row}`\n"
        text = json.dumps(schema.to_dict(), indent=1).replace("\n", "\n    ")
        yield f'??? note "JSON Schema (`knownminds show {name} --schema --json`)"\n'
        yield f"    ```json\n    {text}\n    ```\n"


def _parameters(model: str) -> Iterator[str]:
    """Write a table of a model's parameters: range, prior, what each is."""
    from knownminds.agents import AGENTS

    yield "| parameter | range | prior: median (central 95%); law | what it is |\n|---|---|---|---|"
    for one in AGENTS[model].parameters:
        yield f"| `{one.name}` | {one.support} | {told_prior(one)} | {_plain(one.description)} |"


def _commands() -> Iterator[str]:
    """Write each command with its arguments and options, as its function declares them."""
    from knownminds.validation.cli import application_of

    commands = application_of().registered_commands
    functions = {c.name or c.callback.__name__: c.callback for c in commands if c.callback}
    for name, function in sorted(functions.items()):
        parameters = [
            parameter
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if parameter.annotation is not Context
        ]
        arguments = [p for p in parameters if isinstance(_info(p), ArgumentInfo)]
        options = [p for p in parameters if p not in arguments]
        words = " ".join(_placeholder(p) for p in arguments)
        summary = _plain((function.__doc__ or "").partition("\n")[0])
        yield f"\n## {name}\n\n{summary}\n\n```text\nknownminds {name} {words}".rstrip()
        yield "```\n"
        for p in arguments:
            yield f"`{_word(p)}`\n:   {_plain(_info(p).help)}\n"
        yield "\n| option | takes | default | |\n|---|---|---|---|"
        for p in options:
            kind, several = _kind(p)
            default = any(p.default is none for none in (None, False, inspect.Parameter.empty))
            default_text = "" if default else f"`{p.default}`"
            names = " ".join(f"`{given}`" for given in _flags(p, kind))
            takes = "" if kind is bool else kind.__name__.lower() + ", several" * several
            yield f"| {names} | {takes} | {default_text} | {_plain(_info(p).help)} |"


def _info(parameter: inspect.Parameter) -> Any:
    """Return what Typer knows of a parameter."""
    return get_args(parameter.annotation)[1]


def _kind(parameter: inspect.Parameter) -> tuple[type, bool]:
    """Return the type of a value, and whether several may be given."""
    kind = get_args(parameter.annotation)[0]
    inside = [one for one in get_args(kind) if one is not type(None)]
    if get_origin(kind) is list:
        return inside[0], True
    if not inside:
        return kind, False
    if get_origin(inside[0]) is list:
        return get_args(inside[0])[0], True
    return inside[0], False


def _flags(parameter: inspect.Parameter, kind: type) -> list[str]:
    info = _info(parameter)  # in an Annotated the first name stands where a default would
    given = [name for name in (info.default, *(info.param_decls or ())) if _is_flag(name)]
    if given:
        return given
    name = parameter.name.replace("_", "-")
    return [f"--{name}", f"--no-{name}"] if kind is bool else [f"--{name}"]


def _is_flag(name: object) -> bool:
    return isinstance(name, str) and name.startswith("-")


def _word(argument: inspect.Parameter) -> str:
    return argument.name.upper() + "..." * _kind(argument)[1]


def _placeholder(argument: inspect.Parameter) -> str:
    required = argument.default is inspect.Parameter.empty
    return _word(argument) if required else f"[{_word(argument)}]"


def _plain(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
