"""How long the report of a study of 1,000 replicates takes to draw.

    python benchmarks/report.py [rounds]

The study, 1,000 replicates of 20 subjects, is made first and not counted. Then `knownminds report`
runs as a command of its own, and, within this process, what it does besides starting: reading,
drawing the page, and writing every figure as SVG, PNG and CSV.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from knownminds.validation.recovery.parameter_recovery import recover
from knownminds.validation.report import read_result, write_report

REPLICATES, SUBJECTS = 1000, 20
LIMIT = 5.0  # seconds for the whole command
COMMAND = "from knownminds.validation.cli import main; main()"


def children() -> float:
    """Return the processor time of the commands that have ended: others do not slow it much."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the medians."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "study"
        recover(
            "instrumental_learning",
            "rescorla_wagner_dual",
            subjects=SUBJECTS,
            replicates=REPLICATES,
            intervals="laplace",
            out=folder,
        )
        words = [sys.executable, "-c", COMMAND, "report", str(folder)]
        whole, reading, drawing, processor, busy_whole = [], [], [], [], []
        for _ in range(rounds):
            began, busy = perf_counter(), children()
            subprocess.run(words, check=True, capture_output=True)
            whole.append(perf_counter() - began)
            busy_whole.append(children() - busy)
            began, busy = perf_counter(), process_time()
            found = read_result(folder)
            read = perf_counter()
            write_report(found, folder)
            drawing.append(perf_counter() - read)
            reading.append(read - began)
            processor.append(process_time() - busy)
        sizes = {name: (folder / name).stat().st_size for name in ("report.html",)}
        figures = sum(file.stat().st_size for file in (folder / "figures").iterdir())
    print(f"{REPLICATES:,} replicates of {SUBJECTS} subjects, medians of {rounds} rounds")
    for name, times in (
        ("the whole command", whole),
        ("its processor time", busy_whole),
        ("reading", reading),
        ("drawing and writing", drawing),
        ("processor time of both", processor),
    ):
        print(f"{name:24s} {statistics.median(times):6.2f} s")
    print(f"page {sizes['report.html'] / 1e3:,.0f} kB, figures {figures / 1e3:,.0f} kB")
    told = "within" if statistics.median(whole) < LIMIT else "above"
    print(f"The command is {told} the limit of {LIMIT:g} s.")


if __name__ == "__main__":
    main()
