"""A file of a model is tried in a process of its own: it cannot stop, nor change, what judges it.

The process is given no input, nothing that it prints is shown, it works in a folder that is thrown
away, and it is ended after a limit of time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numba.core.errors import NumbaError

from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, make, session_stream
from knownminds.inference import check_agent, maximum_likelihood
from knownminds.inference.fits.identifiability import identifiability
from knownminds.validation.engine.members import load_listed, loaded_files
from knownminds.validation.recovery.parameter_recovery import recover

from .judged import model_of, worst_of
from .truth import peeks_of

MEMORY = 4 * 2**30  # bytes of a process
STREAM = 75  # of the true parameters of each file
# What code of others raises when it is run; the file is broken, and the others go on.
FAULTS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError,
    NameError, OSError, RuntimeError, TypeError, ValueError, NumbaError,
)  # fmt: skip
_BEGIN = "from knownminds.validation.referee.alone import answer; answer()"


@dataclass(frozen=True)
class Tried:
    """What was seen of a file in a process of its own.

    Parameters
    ----------
    problem : Why its model cannot be judged; "" where it can.
    ended : Whether the process came to its end within the limit.
    null : Combinations of parameters about which sessions say nothing.
    recovery : The worst verdict on its parameters: the word, and the reasons.
    peeks : What its answers go by that nobody is told; then it is asked nothing else.
    """

    problem: str = ""
    ended: bool = True
    null: Sequence[str] = ()
    recovery: tuple[str, Sequence[str]] = ("", ())
    peeks: Sequence[str] = ()


def try_alone(file: Path, environment: Environment, limit: float, how: Mapping[str, int]) -> Tried:
    """Load the model of a file, hold it against the contract, simulate, fit and recover it.

    Parameters
    ----------
    limit : Seconds after which the process is ended.
    how : subjects and sessions of the recovery, data sets that are fitted, and the seed.
    """
    asked = {
        "file": str(file.resolve()), "experiment": environment.name, "plugins": loaded_files(),
        "settings": environment.settings, "path": sys.path, "how": dict(how),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        said = Path(place) / "said.json"
        process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(said)], cwd=place, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        try:
            _, errors = process.communicate(json.dumps(asked, default=str), timeout=limit)
        except subprocess.TimeoutExpired:
            return Tried(f"in {limit:g} s", ended=False)
        finally:
            _end(process)
        if not said.is_file():
            last = [line for line in errors.splitlines() if line.strip()][-1:]
            why = f": {last[0][:100]}" if last and process.returncode else ""
            return Tried(f"it ended its process with code {process.returncode}{why}")
        told = json.loads(said.read_text(encoding="utf-8"))
    return Tried(**told)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process with all that it began."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def answer() -> None:
    """Try the file that standard input names; in the process that is its own."""
    asked = json.loads(sys.stdin.read())
    with suppress(ImportError, ValueError, OSError):  # where a system has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    load_listed(asked["plugins"], "this referee's question")
    environment = make(asked["experiment"], **asked["settings"])
    try:
        tried = _tried(asked["file"], environment, asked["how"])
    except FAULTS as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        tried = Tried(" ".join(text.split()))
    said = Path(sys.argv[1])
    part = said.with_suffix(".part")
    part.write_text(json.dumps(vars(tried)), encoding="utf-8")
    part.replace(said)


def _tried(file: str, environment: Environment, how: Mapping[str, int]) -> Tried:
    model = model_of(file)
    if peeks := peeks_of(model, environment, how["seed"]):
        return Tried(", ".join(peeks), peeks=peeks)
    model.check_plays(environment)
    checked = check_agent(model, environment, how["seed"])
    broken = [rule.broken for rule in checked.rules if rule.broken]
    if broken:
        return Tried(f"contract: {broken[0]}")
    theta = model.parameters.draw(session_stream(how["seed"], STREAM), how["fits"])
    played = simulate_sessions(model, theta, environment, how["seed"])
    maximum_likelihood(model, played.to_trials(), workers=1)
    if not len(model.parameters):
        return Tried(recovery=("no parameters", ()))
    identified = identifiability(model, environment, seed=how["seed"])
    null = list(identified.sentences) if identified.null.shape[1] else []
    result = recover(environment, model, subjects=how["subjects"], sessions=how["sessions"],
                     seed=how["seed"], workers=1)  # fmt: skip
    worst = worst_of("recovery", result, model.name)
    return Tried(null=null, recovery=(worst.word, list(worst.reasons)))
