"""The conditions under which an experiment is played: its words, as opposed to its design."""

from __future__ import annotations

import inspect
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from .environment import Environment
from .fields import WORDS
from .words.prompt import paraphrases_of

# These settings are conditions: two runs that differ in them alone share a design.
AS_SET = ("reasoning", "history", "content", "overload", "control", "form", "asking")
SHARED_DESIGN = frozenset(
    {*AS_SET, "thought_words", "answer", "condition", "modality", "blur", "context"}
)
_NOISE = {"constant_noise": "constant", "gradual_noise": "gradual"}


def conditions_of(environment: Environment) -> dict[str, Any]:
    """Return a value for each condition of an experiment, to be recorded with each trial.

    The conditions are "reasoning" (the instruction: none, chain_of_thought, step_back), "history",
    "content", "names" (meaningful or random), "overload", "control", "form", "asking", "modality",
    "noise" (none, constant, gradual), "template" (the name of the words: "shipped", or the name of
    the file) and "template_hash" (the first digits of the SHA-256 of the files of words). A
    condition that the experiment records as a column of its trials is left out here.
    """
    settings = environment.settings
    columns = {name: settings[name] for name in AS_SET if name in settings}
    if "answer" in settings:
        columns["reasoning"] = "none" if settings["answer"] == "numeric" else settings["answer"]
    if settings.get("thought_words") is not None:
        columns["thought_words"] = settings["thought_words"]
    if "content" in settings:
        columns["names"] = "meaningful" if settings["content"] == "meaningful" else "random"
    if "modality" in settings:
        columns["modality"] = settings["modality"]
    if "condition" in settings:
        columns["noise"] = _NOISE.get(settings["condition"], "none")
    changed = [name for name in words_of(environment) if settings[name] is not None]
    columns["template"] = " ".join(Path(settings[name]).stem for name in changed) or "shipped"
    columns["template_hash"] = words_hash(environment)
    recorded = {field.name for field in environment.fields}
    return {name: value for name, value in columns.items() if name not in recorded}


def words_of(environment: Environment) -> list[str]:
    """Return the names of the settings that hold files of words; these change no trial."""
    table = environment.setting_table.items()
    return [declared.called or name for name, declared in table if declared.rule is WORDS]


def shipped_words(environment: Environment) -> Path:
    """Return the file of an experiment's shipped templates, whether or not there is one.

    It has the experiment's name and lies beside the file of its class; if there is none, it is that
    of the class from which it derives.
    """
    files = [
        Path(inspect.getfile(kind)).with_name(f"{kind.name}.toml")
        for kind in type(environment).__mro__
        if issubclass(kind, Environment) and hasattr(kind, "name")
    ]
    return next((file for file in files if file.is_file()), files[0])


def words_hash(environment: Environment) -> str:
    """Return the first 12 digits of the SHA-256 of an experiment's files of words; "" if gone."""
    settings = environment.settings
    shipped = shipped_words(environment)
    changed = {name: settings[name] for name in words_of(environment) if settings[name] is not None}
    files = [Path(changed.get("templates", shipped))]
    if changed.get("templates") in paraphrases_of(shipped):
        files = [shipped]
    files += [Path(file) for name, file in changed.items() if name != "templates"]
    texts = [file.read_bytes() for file in files if file.is_file()]
    if changed.get("templates") in paraphrases_of(shipped):
        texts.append(json.dumps(paraphrases_of(shipped)[changed["templates"]]).encode())
    return sha256(b"\0".join(texts)).hexdigest()[:12] if texts else ""
