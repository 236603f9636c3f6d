"""Imports against their bars: `NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python speed/imports.py`.

A million rows of casinos from one CSV file (10 s of CPU and 1.5 GB at most). Files are made up
with a seed before anything is timed; seconds are of CPU, memory is the highest of the process
that runs one import.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import goal

ROWS, SECONDS, GIGABYTES = 1_000_000, 10.0, 1.5


def casinos(file):
    """Write a million choices of 10,416 runs in CogBench's layout."""
    draw = random.Random(1)
    with file.open("w") as stream:
        stream.write("run,trial,task,choice,reward\n")
        for row in range(ROWS):
            run, trial = divmod(row, 96)
            choice = draw.getrandbits(1)
            stream.write(f"{run},{trial},{row % 4 + 1},{choice},{draw.getrandbits(1)}.0\n")


def imported(files):
    """Import files; print how long it took, how much memory, and how many trials came of it."""
    from knownminds.validation.data.questions import AskImport
    from knownminds.validation.imports.importing import import_tables

    start = time.process_time()
    result = import_tables(list(map(Path, files)), AskImport(files))
    taken = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([taken, peak, len(result.trials), result.account.rows]))


def measured(files):
    """Return what `imported` finds in a separate process."""
    words = [sys.executable, __file__, "--import", *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    """Make the files, import them, and say whether the bars are kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        casinos(path / "engine.csv")
        taken, peak, trials, rows = measured([path / "engine.csv"])
        print(f"{rows:,} rows of casinos, {trials:,} trials: {taken:.1f} s of CPU, {peak:.2f} GB")
        goal("a million rows, s of CPU", taken, SECONDS, at_most=True)
        goal("a million rows, GB", peak, GIGABYTES, at_most=True)


if __name__ == "__main__":
    if "--import" in sys.argv:
        imported(sys.argv[sys.argv.index("--import") + 1 :])
    else:
        main()
