"""Run all scripts of this folder, one after the other; `python speed/everything.py` (an hour).

What they print, with the date and the machine's load before each, is what docs/speed.md tells.
"""

import os
import subprocess
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
# The words of each command; variables of its environment; a package that it needs beside ours.
COMMANDS = (
    (["check.py"], {}, ""),
    (["point_and_kernel.py"], {}, ""),
    (["group.py"], {}, ""),
    (["imports.py"], {"NUMBA_NUM_THREADS": "1"}, ""),
    (["studies.py"], {}, ""),
    (["runner.py"], {}, ""),
    (["runner.py", "memory"], {}, ""),
    (["adaptive.py", "--agents", "200"], {}, "adopy"),
)


def main():
    failed = []
    for words, variables, needs in COMMANDS:
        command = " ".join(["python", f"speed/{words[0]}", *words[1:]])
        print(f"\n=== {command}  ({date.today()}, load {os.getloadavg()[0]:.1f})", flush=True)
        if needs and find_spec(needs) is None:
            print(f"left out: it needs {needs}")
            continue
        arguments = [sys.executable, str(HERE / words[0]), *words[1:]]
        done = subprocess.run(arguments, env={**os.environ, **variables}, check=False)
        if done.returncode:
            failed.append(command)
    if failed:
        sys.exit(f"These ended in an error: {'; '.join(failed)}.")


if __name__ == "__main__":
    main()
