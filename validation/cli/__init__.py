"""The `knownminds` command: each verb is a question, and what is done with it.

Nothing that computes is imported here but inside the functions that need it, so that help and
completion answer at once.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import typer

from knownminds.members import listed

from .application import ADDED, Misuse, application, sentence_of
from .interrupts import CODE, NOTHING_KEPT, Stopped, come_again
from .output import complain, print_json, speak
from .plugins import failed_in, load_all, taken_from
from .run_file import expanded

COMPLETING = "_KNOWNMINDS_COMPLETE"  # set by shells that ask for completions

# What people do, and the commands for it, in the order of the help.
GROUPS = {
    "Look around": ("list", "show", "look", "doctor"),
    "Plan a study": ("recover", "confuse", "calibrate", "power", "design", "budget", "audit",
                     "referee"),
    "Let agents, models and people answer": ("simulate", "run", "benchmark", "reveal", "serve",
                                             "page"),
    "Understand answers": ("import", "fit", "score", "export"),
    "Look after studies": ("report",),
}  # fmt: skip
PANELS = {verb: group for group, verbs in GROUPS.items() for verb in verbs}
_PLACES = listed("commands")
OTHERS = "Of other packages"
PANELS |= dict.fromkeys(_PLACES.keys() - PANELS.keys(), OTHERS)
VERBS = tuple(PANELS)
__all__ = ["application_of", "command", "main"]

YOUNG = 100_000  # objects made since the last search for garbage, at which there is another


def application_of(*verbs: str, with_options: bool = True) -> typer.Typer:
    """Return the application with these commands, or with all."""
    questions = {}
    for verb in verbs or (*VERBS, *ADDED):
        if verb in ADDED:
            questions[ADDED[verb]] = OTHERS
            continue
        known = vars(import_module(_PLACES[verb].module)).values()
        kinds = (one for one in known if isinstance(one, type))
        questions[next(one for one in kinds if vars(one).get("command") == verb)] = PANELS[verb]
    return application(questions, with_options)


@cache
def command(*verbs: str, with_options: bool = True) -> Any:
    """Return the command with these commands, or all; it is built once per process."""
    return typer.main.get_command(application_of(*verbs, with_options=with_options))


def _refuse(sentence: str, typed: Sequence[str]) -> NoReturn:
    """End with exit code 2 and a sentence on stderr; who asks for JSON gets it as an object."""
    complain(sentence)
    if "--json" in typed:
        print_json({"error": sentence, "exit_code": 2})
    raise SystemExit(2) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; misuse is one sentence on stderr and exit code 2."""
    gc.set_threshold(YOUNG, 20, 50)  # imports make many objects, none of which is garbage
    # ArviZ 0.23 tells every user once a day that ArviZ 1 is coming.
    warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing", FutureWarning)
    come_again()
    typed = sys.argv[1:] if arguments is None else list(arguments)
    try:
        words, plugins = taken_from(expanded(speak(typed), VERBS, lambda v: command(v).commands[v]))
        if not {"--help", "-h"} & set(words) and COMPLETING not in os.environ:
            load_all(plugins)
        # Only what is asked for is built; without words Typer prints the help and ends.
        verbs = [verb for verb in words[:1] if verb in (*VERBS, *ADDED)]
        completing = COMPLETING in os.environ
        whole = command(*verbs, with_options=bool(verbs) or completing)
        raise SystemExit(whole(args=words, obj=plugins, standalone_mode=not words) or 0)
    except Misuse as error:
        _refuse(sentence_of(error, words), typed)
    except (ValueError, ImportError) as error:  # the latter say what to install
        _refuse(failed_in(error) or str(error), typed)
    except RecursionError:
        _refuse(
            "A file that is read holds lists within lists, at most a few; one that was given goes "
            "deeper. Mend it, or leave it out.",
            typed,
        )
    except (Stopped, KeyboardInterrupt) as stopped:
        complain(f"stopped. {stopped if isinstance(stopped, Stopped) else NOTHING_KEPT}")
        raise SystemExit(CODE) from None
    except Exception as error:  # an author's code may raise anything
        if said := failed_in(error):
            _refuse(said, typed)
        raise
    except SystemExit as end:
        if end.code == CODE:  # so Typer ends if the interrupt comes while it reads words
            complain(f"stopped. {NOTHING_KEPT}")
        raise
