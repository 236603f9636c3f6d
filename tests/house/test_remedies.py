"""Every remedy that an error names exists, on the command that prints the error.

The texts of all errors are collected from the sources: options (`--columns`), settings
(`--set loss`, "Set ranges to ..."), and verbs (`knownminds schema`). What a floor's room is read by
stands in `PRINTED_BY`; an option must be one of each of these commands.
"""

import ast
import re
from functools import cache
from pathlib import Path

import typer

import knownminds.environments as environments
from knownminds.environments import ENVIRONMENTS
from knownminds.validation.cli import app
from knownminds.validation.cli.plugins import taken_from

ROOT = Path(environments.__file__).parents[1]
FLOORS = ("environments", "agents", "inference", "llm_adapters", "validation")
# Which commands print the errors of a folder or file; the longest that fits counts. Where it is
# empty, one command at least must have the option.
PRINTED_BY = {
    "environments": ("import", "fit", "score", "phenotype", "export"),
    "environments/formats": ("import", "export"),
    "environments/diagnosis": (),
    "validation/imports": ("import",),
    "validation/imports/exports.py": ("export",),
    "validation/data/scores_of_trials.py": ("score",),
    "validation/data/trials_of_runs.py": ("score", "fit"),
    "validation/data/fit.py": ("fit",),
    "validation/data/rivals.py": ("fit",),
    "validation/causes": ("score",),
    "validation/cli/data/phenotype.py": ("phenotype",),
    "validation/cli/data/score.py": ("score",),
}
EVERYWHERE = {"--plugin"}  # taken from the words before any command sees them
OTHERS = {"--upgrade", "--no-deps", "--model-args"}  # of programs of others, in texts of ours
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SET = re.compile(r"--set (\w+)=|(?<=[.;,] )[Ss]et (\w+) (?:to|and (\w+))\b")


def commands():
    group = typer.main.get_command(app)
    found = {}
    for name, command in group.commands.items():
        flags = {flag for param in command.params for flag in param.opts}
        found[name] = flags | EVERYWHERE
    return found


def texts(node):
    """Yield the texts in a node, f-strings as one text with {} where something is filled in."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}"
                      for part in node.values)  # fmt: skip
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from texts(child)


def called(node):
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


@cache
def errors():
    """Return file, line and text of every error."""
    found = []
    for floor in FLOORS:
        for file in sorted((ROOT / floor).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                raised = isinstance(node, ast.Raise) and node.exc is not None
                if raised or (isinstance(node, ast.Call) and called(node) == "require"):
                    said = " ".join(texts(node.exc if raised else node))
                    found.append((file.relative_to(ROOT).as_posix(), node.lineno, said))
    return found


def test_an_option_of_every_command_is_taken_before_any_sees_it():
    words, plugins = taken_from(["fit", "--plugin", "mine.py", "t.csv"])
    assert (words, [str(file) for file in plugins]) == (["fit", "t.csv"], ["mine.py"])


def printers(file):
    fitting = [place for place in PRINTED_BY if file == place or file.startswith(place + "/")]
    return PRINTED_BY[max(fitting, key=len)] if fitting else ()


def test_options_that_errors_name_exist_where_the_errors_are_printed():
    known, wrong, seen = commands(), [], 0
    anywhere = set().union(*known.values())
    for file, line, said in errors():
        for option in OPTION.findall(said):
            if option in OTHERS:
                continue
            seen += 1
            lacking = [name for name in printers(file) if option not in known[name]]
            if lacking or option not in anywhere:
                wrong.append(f"{file}:{line} names {option}, which {lacking or 'nothing'} lacks")
    assert not wrong, "\n".join(wrong)
    assert seen > 60  # the texts are found at all


def settings_named():
    for file, line, said in errors():
        for match in SET.finditer(said):
            yield from ((file, line, name) for name in match.groups() if name)


def test_settings_that_errors_name_are_settings():
    kinds = [kind for kind in ENVIRONMENTS.values() if kind.__module__.startswith("knownminds")]
    settings, wrong, seen = {kind: set(kind().settings) for kind in kinds}, [], 0
    for file, line, name in settings_named():
        seen += 1
        own = [kind for kind in kinds
               if any(file == "/".join(base.__module__.split(".")[1:]) + ".py"
                      for base in kind.__mro__)]  # fmt: skip
        if own:
            known = all(name in settings[kind] for kind in own)
        else:
            known = any(name in some for some in settings.values()) or name == "base_url"
        if not known:
            wrong.append(f"{file}:{line} names {name}")
    assert not wrong, "\n".join(wrong)
    assert seen > 10  # the texts are found at all
