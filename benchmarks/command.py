"""How long `knownminds --help`, completion and `list` take, beside importing NumPy.

    python benchmarks/command.py [rounds]

Each round starts every command once in a process of its own, one after the other, so that all
of them meet the same machine; the medians are compared.
"""

import os
import statistics
import subprocess
import sys
from time import perf_counter

KNOWNMINDS = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'knownminds'; from knownminds.validation.cli import main; main()",
]
COMPLETION = {
    "_KNOWNMINDS_COMPLETE": "complete_bash",
    "COMP_WORDS": "knownminds recover hor",
    "COMP_CWORD": "2",
}
COMMANDS = {
    "import numpy": ([sys.executable, "-c", "import numpy"], {}),
    "knownminds --help": ([*KNOWNMINDS, "--help"], {}),
    "completion of a name": (KNOWNMINDS, COMPLETION),
    "knownminds list": ([*KNOWNMINDS, "list"], {}),
}
LIMIT = 3.0  # imports of NumPy that --help may take


def seconds(words: list[str], variables: dict[str, str]) -> float:
    """Run a command once."""
    began = perf_counter()
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **variables})
    return perf_counter() - began


def main() -> None:
    """Print the medians, and the ratio to an import of NumPy."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    for words, variables in COMMANDS.values():  # files and bytecode warm
        seconds(words, variables)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, (words, variables) in COMMANDS.items():
            taken[name].append(seconds(words, variables))
    median = {name: statistics.median(times) for name, times in taken.items()}
    for name, time in median.items():
        print(f"{name:22s} {time:6.3f} s  {time / median['import numpy']:5.2f} x NumPy")
    ratio = median["knownminds --help"] / median["import numpy"]
    print(f"--help: {ratio:.2f} imports of NumPy, at most {LIMIT:g} are allowed")


if __name__ == "__main__":
    main()
