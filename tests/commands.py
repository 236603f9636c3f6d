"""Commands of `knownminds` in processes that can be killed, and wait shortly.

A process that has imported the package once begins each command as a child. In these processes
the clock goes `FASTER` times as fast, so that pauses of seconds take hundredths; a server that
tells the time to such a command reads `quick_time`.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FASTER = 50
BEGINNING = time.time()

PARENT = """
import asyncio, contextlib, io, json, os, runpy, selectors, signal, sys, tempfile, threading, time

from matplotlib.figure import Figure

from knownminds.llm_adapters import load

for name in ("openai", "anthropic", "google"):
    try:
        load(name)
    except ImportError:
        pass

FASTER, BEGINNING, real = int(sys.argv[1]), float(sys.argv[2]), time.time


class Selector(selectors.DefaultSelector):
    def select(self, timeout=None):
        return super().select(timeout and timeout / FASTER)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        super().__init__(Selector())

    def time(self):
        return super().time() * FASTER


class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        return Loop()


def not_drawn(self, file, **how):  # to draw and embed fonts takes longer than the rest
    if hasattr(file, "write"):
        empty = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
        file.write(empty if isinstance(file, io.TextIOBase) else empty.encode())


Figure.savefig = not_drawn


def run(words):
    sys.argv = ["knownminds", *words]
    try:
        runpy.run_module("knownminds", run_name="__main__")
    except SystemExit as end:
        return end.code or 0
    except KeyboardInterrupt:
        return 130
    return 0


def warm_up():  # loads what a command loads; in a thread, whose event loop ends with it
    words = ["run", "instrumental_learning", "--trials", "8", "--json"]
    words += ["--llm", "synthetic:rescorla_wagner_dual", "--out"]
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        run([*words, folder])


def begin(words, folder, variables):
    os.environ.update(variables)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    # A shell that begins the tests in the background has interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    time.time = lambda: BEGINNING + FASTER * (real() - BEGINNING)
    asyncio.set_event_loop_policy(Policy())
    code = run(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


thread = threading.Thread(target=warm_up)
thread.start()
thread.join()
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        begin(*json.loads(line))
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def quick_time():
    """Return the time that commands see."""
    return BEGINNING + FASTER * (time.time() - BEGINNING)


@dataclass
class Ended:
    """What became of a command; `code` is negative if it was killed."""

    code: int
    out: str
    err: str

    @property
    def result(self):
        """What it printed as JSON."""
        return json.loads(self.out)


class Commands:
    """Begins commands; the last one is `process` from the moment on that `began` is set."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.began = threading.Event()
        self.process = 0
        self.parent = subprocess.Popen(
            [sys.executable, "-P", "-c", PARENT, str(FASTER), str(BEGINNING)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.parent.stdout.readline() == "ready\n"

    def __call__(self, *words, variables=()):
        """Run a command to its end, with these variables of the environment as well."""
        self.began.clear()
        line = json.dumps([[str(word) for word in words], str(self.folder), dict(variables)])
        self.parent.stdin.write(line + "\n")
        self.parent.stdin.flush()
        self.process = int(self.parent.stdout.readline())
        self.began.set()
        status = int(self.parent.stdout.readline())
        said = [(self.folder / name).read_text() for name in ("out", "err")]
        return Ended(os.waitstatus_to_exitcode(status), *said)

    def send(self, number=signal.SIGKILL):
        """Send a signal to the command under way."""
        assert self.began.wait(20)
        os.kill(self.process, number)

    def close(self):
        """End the process that begins them."""
        self.parent.stdin.close()
        self.parent.wait(20)
        self.parent.stdout.close()


@cache
def commands():
    """Return what begins the commands of all tests of this process; no figure is drawn."""
    folder = tempfile.TemporaryDirectory()
    begun = Commands(folder.name)
    atexit.register(folder.cleanup)
    atexit.register(begun.close)
    return begun
