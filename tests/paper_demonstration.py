"""A paper's benchmark against local servers: killed in the middle, and gone on with.

It is played by four "models", which are known minds of the plan behind OpenAI-compatible addresses
of this machine: one that sees pictures, one that sees none, one that refuses a fifth, and one that
says for ever what it said first.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmark_server import REFUSING, serving, with_models

from knownminds.llm_adapters.runs.ledger import FILE, Ledger
from knownminds.validation.benchmarks.benchmark import RUNS, read_benchmark
from knownminds.validation.benchmarks.plan import read_plan

MODELS = {
    "sharp": ("rational", None, False),
    "blind": ("biased", None, False),
    "refuser": ("rational", REFUSING, False),
    "repeater": ("rational", None, True),
}
SEEING = ("sharp", "refuser", "repeater")
WITHIN = 1200.0  # seconds for anything


@dataclass
class Demonstration:
    """What came of it; counts are by model.

    Parameters
    ----------
    killed, code
        Exit codes of the command that was killed, and of the one that went on.
    held
        Questions whose answers were on disk when it went on.
    answered
        How many requests the server answered, over both commands.
    later
        How many of these in the second command.
    asked
        Questions that have an answer in the end, by the ledgers.
    unknown
        Those in flight when the command was killed, which are asked again.
    said
        What the second command printed.
    """

    folder: Path
    killed: int
    code: int
    held: Counter
    answered: Counter
    later: Counter
    asked: Counter
    unknown: Counter
    said: str

    @property
    def found(self):
        """The benchmark."""
        return read_benchmark(self.folder)


def demonstrate(name, folder, *, text=None, small=True, kill_at=200):
    """Let the models play a benchmark, killed after so many answers; return what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    bare = folder / "bare.toml"
    if text is not None:
        bare.write_text(text, encoding="utf-8")
    plan = read_plan(name, None if text is None else bare, small=small)
    file, out = folder / "plan.toml", folder / "F"
    with serving(plan, **MODELS) as servers:
        file.write_text(with_models(plan.text, servers, images=SEEING), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "knownminds", "benchmark", name, "--plan", str(file)]
        command += ["--out", str(out), *(["--small"] if small else [])]
        with (folder / "first.txt").open("w") as told:
            first = subprocess.Popen(command, stdout=told, stderr=told)
            until = time.monotonic() + WITHIN
            while sum(one.calls for one in servers.values()) < kill_at and first.poll() is None:
                assert time.monotonic() < until, (folder / "first.txt").read_text()
                time.sleep(0.01)
            os.kill(first.pid, signal.SIGKILL)
            killed = first.wait()
        before = Counter({model: server.calls for model, server in servers.items()})
        held, _ = questions(out)
        second = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN)
        answered = Counter({model: server.calls for model, server in servers.items()})
    (folder / "second.txt").write_text(second.stdout + second.stderr, encoding="utf-8")
    asked, unknown = questions(out)
    return Demonstration(
        folder=out,
        killed=killed,
        code=second.returncode,
        held=held,
        answered=answered,
        later=answered - before,
        asked=asked,
        unknown=unknown,
        said=second.stdout + second.stderr,
    )


def questions(folder):
    """How many questions of each model have an answer, and how many were in flight at a kill."""
    answered, unknown = Counter(), Counter()
    for model in MODELS:
        for file in (folder / RUNS).glob(f"openai-{model}-*/*/{FILE}"):
            with Ledger.read(file.parent) as ledger:
                rows = ledger.rows("SELECT state, COUNT(DISTINCT call) FROM attempt GROUP BY state")
            states = Counter(dict(rows))
            answered[model] += states["ok"]
            unknown[model] += states["unknown"]
    return answered, unknown
