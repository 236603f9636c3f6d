"""Run files: a command's arguments and options in TOML.

`knownminds recover study.toml --subjects 20` reads `environment`, `model` and all other options
from the file. What is typed after the file replaces what the file says. A command with `--out`
writes such a file beside its result, with all arguments and options. A language model with settings
of its own may be a table, `[llm.NAME]`, with `model = "PROVIDER:MODEL"`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Words = list[str]  # commands and parameters are those of the click that Typer brings


def expanded(words: Sequence[str], verbs: Sequence[str], command: Callable[[str], Any]) -> Words:
    """Replace a run file behind the verb by the arguments and options that it holds.

    Parameters
    ----------
    words : What was typed: a verb, perhaps a file that ends with .toml, and options.
    verbs : The names of all commands.
    command : Returns that of a verb; called only for a run file.

    Raises
    ------
    ValueError : If the file cannot be read, or holds a name that the command does not know.
    """
    if len(words) < 2 or words[0] not in verbs or not words[1].endswith(".toml"):
        return list(words)
    verb, file, *typed = words
    arguments, options = _words_in(Path(file), command(verb), typed)
    return [verb, *arguments, *options, *typed]


def _words_in(file: Path, command: Any, typed: Sequence[str]) -> tuple[Words, Words]:
    """Return the arguments and the options of a run file; typed ones replace them."""
    from knownminds.environments import unknown

    content = _content(file)
    parameters = {name_of(parameter): parameter for parameter in command.params}
    arguments: Words = []
    options: Words = []
    for key, value in content.items():
        name = key.replace("-", "_")
        if name == "plugin":
            options += [word for one in _listed(value) for word in ("--plugin", _text(one))]
            continue
        if name not in parameters:
            known = [*parameters, "plugin"]
            raise ValueError(f"{file}: {unknown(f'option of {command.name}', key, known)}")
        parameter = parameters[name]
        if parameter.param_type_name == "argument":
            arguments += [_text(one) for one in _listed(value)]
        else:
            options += _option_words(file, key, parameter, value, typed)
    return arguments, options


def _content(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError(f"{file} is no file. A run file is TOML with a command's options.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no TOML: {error}.") from None


def name_of(parameter: Any) -> str:
    """Return an option's name without dashes, with _ for -; an argument's is that of its field."""
    if parameter.param_type_name == "argument":
        return str(parameter.name)
    long = next(flag for flag in parameter.opts if flag.startswith("--"))
    return str(long[2:]).replace("-", "_")


def _option_words(file: Path, key: str, parameter: Any, value: Any, typed: Sequence[str]) -> Words:
    """Return an option as it is typed; of NAME=VALUE what is typed replaces that name alone."""
    flag, replaced = parameter.opts[0], typed_values(parameter, typed)
    if isinstance(value, Mapping) and any(isinstance(one, Mapping) for one in value.values()):
        value = _participants(file, key, value)
    if isinstance(value, Mapping):
        value = [f"{name}={_text(one)}" for name, one in value.items()]
    if isinstance(value, list) and all("=" in _text(one) for one in value):
        names = {text.partition("=")[0] for text in replaced}
        value = [one for one in value if one.partition("=")[0] not in names]
    elif replaced:
        return []
    if isinstance(value, bool):
        return [flag] if value else list(parameter.secondary_opts[:1])
    if getattr(parameter, "is_flag", False):
        raise ValueError(f"{file}: {key} is true or false; got {value!r}.")
    return [word for one in _listed(value) for word in (flag, _text(one))]


def _participants(file: Path, key: str, tables: Mapping[str, Any]) -> Words:
    """Return the participants of tables as they are typed; the tables' names are theirs."""
    from knownminds.llm_adapters.configuration import Participant

    if key != "llm":
        raise ValueError(f"{file}: tables with names are those of llm; got some for {key}.")
    return [Participant.of_table(name, table).text for name, table in tables.items()]


def typed_values(parameter: Any, typed: Sequence[str]) -> Words:
    """Return what is typed behind an option; "" behind a flag at the end."""
    flags = {*parameter.opts, *parameter.secondary_opts}
    values = []
    for word, following in zip(typed, [*typed[1:], ""], strict=False):
        flag, equals, value = word.partition("=")
        if flag in flags:
            values.append(value if equals else following)
    return values


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def write_run_file(
    file: Path, command: Any, values: Mapping[str, Any], plugins: Sequence[str]
) -> None:
    """Write what a command was called with; `expanded` makes the same call of it.

    Parameters
    ----------
    values : The values of the command's parameters, as typed or by default. None, False, "" and
        empty lists are left out.
    plugins : Files of `--plugin`.
    """
    from knownminds.environments.record.folders import write_text

    lines = [f"# knownminds {command.name} {file.name}"]
    if plugins:
        lines.append(f"plugin = {_toml([str(Path(name).resolve()) for name in plugins])}")
    for parameter in command.params:
        value = values.get(str(parameter.name))
        on_by_default = isinstance(value, bool) and bool(parameter.secondary_opts)
        if value in (None, "", (), []) or (value is False and not on_by_default):
            continue
        lines.append(f"{name_of(parameter)} = {_toml(value)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    """Write a value of an option as TOML, which is JSON for these kinds."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(value if isinstance(value, bool | int | float) else str(value))
