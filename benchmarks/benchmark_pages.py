"""How long the page of a benchmark of 20 models takes, from finished runs.

    python benchmarks/benchmark_pages.py [NAME ...] [--models 20] [--profile]

The models' runs are made first and not counted: known minds of the plan that ships, each with a
seed of its own, in all of its cells. Then `knownminds report` draws the page as a command of its
own, and its processor time is told (user and system together).
"""

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from knownminds.validation.benchmarks.benchmark import begin, folder_of_cell
from knownminds.validation.benchmarks.known import live
from knownminds.validation.benchmarks.page import read_result
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.report import write_report

LIMIT = 30.0  # seconds
MINDS = ("rational", "biased")
COMMAND = "from knownminds.validation.cli import main; main()"


def finished(name: str, folder: Path, n: int) -> None:
    """Leave the finished runs of n models in a folder."""
    plan = read_plan(name)
    models = [f"openai:model-{k + 1}" for k in range(n)]
    begin(folder, plan, models, {}, {})
    for k, model in enumerate(models):
        own = replace(plan, seed=plan.seed + 1 + k)
        for cell in plan.cells:
            trials = live(own, MINDS[k % len(MINDS)], cell)
            run = folder_of_cell(folder, model, cell)
            run.mkdir(parents=True)
            if trials is not None:
                trials.save(run / "trials.parquet")


def children() -> float:
    """Return the processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a line per benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["magnitudes", "diagnosis"])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    for name in asked.names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (asked.keep or Path(temporary)) / name
            if not folder.exists():
                finished(name, folder, asked.models)
            if asked.profile:
                profile = cProfile.Profile()
                profile.enable()
                write_report(read_result(folder), folder)
                profile.disable()
                pstats.Stats(profile).sort_stats("cumulative").print_stats(70)
                continue
            before = children()
            subprocess.run([sys.executable, "-c", COMMAND, "report", str(folder)], check=True,
                           capture_output=True)  # fmt: skip
            used = children() - before
            word = "within" if used <= LIMIT else "above"
            print(f"{name}: {asked.models} models, {used:.1f} s of CPU ({word} {LIMIT:g})")


if __name__ == "__main__":
    main()
