"""What was asked, as the command line that asks it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command_line(command: str, *about: str, **options: Any) -> str:
    """Return a command line.

    Parameters
    ----------
    about
        Arguments; empty ones are left out.
    options
        By their names, with _ for -. What is None, False or empty is left out, True is a flag,
        and of a mapping (NAME=VALUE) or list each entry is an option of its own.
    """
    words = ["knownminds", command, *about]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for key, one in value.items():
                words += [flag, f"{key}={_told(one)}"]
        elif isinstance(value, list | tuple):
            for one in value:
                words += [flag, _told(one)]
        else:
            words += [flag, _told(value)] if value != "" else []
    return shlex.join(word for word in words if word)


def in_one(values: Mapping[str, str]) -> str:
    """Write pairs as options that hold several have them: ours=yours,..."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def _told(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")  # repr: all digits, or the study is another
    return value if isinstance(value, str) else json.dumps(value)
