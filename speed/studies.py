"""What a study costs beside its fits, and its memory; `python speed/studies.py` (ten minutes)."""

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from side_by_side import goal

ROUNDS, HERE = 5, Path(__file__).parent
PLACE, MODEL = "instrumental_learning", "rescorla_wagner_dual"


def timed(way, clock=time.perf_counter):
    """Seconds of a call, by a clock."""
    begin = clock()
    way()
    return clock() - begin


def whole_against_fits():
    """Simulate, fit and write 10,000 learners, against the same fits alone, in the same process."""
    from knownminds.agents import AGENTS
    from knownminds.inference import maximum_a_posteriori, posterior
    from knownminds.validation.engine.population import draw_subjects, live
    from knownminds.validation.engine.study import Batch, read_study
    from knownminds.validation.recovery.parameter_recovery import recover

    model = AGENTS[MODEL]
    for intervals, rounds in (("laplace", ROUNDS), ("posterior", 1)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            recover(PLACE, MODEL, subjects=10_000, intervals="laplace", out=path / "data")
            study, _ = read_study(path / "data")
            everyone = Batch(0, 0, 10_000)
            data = live(study, everyone, draw_subjects(study, everyone)).data(model)
            fit = maximum_a_posteriori if intervals == "laplace" else posterior

            for of, clock in (("CPU", time.process_time), ("seconds", time.perf_counter)):
                ratios = []
                for k in range(rounds):
                    alone = timed(partial(fit, model, data), clock)
                    study_of = partial(recover, PLACE, MODEL, subjects=10_000, intervals=intervals)
                    whole = timed(partial(study_of, out=path / f"{intervals}{of}{k}"), clock)
                    ratios.append(whole / alone)
                    print(f"  {intervals}, {of}: fits alone {alone:.2f}, study {whole:.2f}")
                name = f"study of 10,000 learners over fits alone ({intervals}, {of})"
                goal(name, median(ratios), 1.3, True)


def two_workers_against_one():
    """The same study by one worker on one core and by two."""
    from knownminds.validation.recovery.parameter_recovery import recover

    seconds = {}
    for workers in (1, 2):
        seconds[workers] = timed(partial(recover, PLACE, MODEL, subjects=10_000, workers=workers))
        print(f"  {workers} workers: {seconds[workers]:.1f} s")
    goal("one worker over two", seconds[1] / seconds[2], 1.7)


def memory():
    """Peak memory of studies of 10,000 and 100,000 replicates, each in a separate process."""
    peaks = {}
    for replicates in (10_000, 100_000):
        words = [sys.executable, "-c", f"import studies; studies.one_study({replicates})"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=HERE)
        peaks[replicates] = float(done.stdout)
        print(f"  {replicates:>7} replicates: {peaks[replicates] / 1e6:.3f} GB")
    goal("memory of 100,000 replicates over 10,000", peaks[100_000] / peaks[10_000], 1.2, True)


def one_study(replicates):
    """Run a study of single learners and print the peak memory in kB."""
    from knownminds.validation.recovery.parameter_recovery import recover

    how = {"subjects": 1, "replicates": replicates, "intervals": "laplace", "workers": 1}
    with tempfile.TemporaryDirectory() as folder:
        recover(PLACE, MODEL, out=Path(folder) / "s", **how)
    # The peak of getrusage is also that of the process that began this one.
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    for measure in (whole_against_fits, two_workers_against_one, memory):
        print(f"\n{measure.__doc__}")
        measure()
