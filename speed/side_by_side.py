"""Time several ways of doing one thing in turn, and print them as ratios with their spread."""

import os
import time
from statistics import quantiles

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy: small problems lose to thread start-up


def side_by_side(
    title, ways, rounds=25, least_seconds=0.02, unit=1.0, per="call", clock=time.process_time
):
    """Time `ways` {name: function} round by round; the first is ours, the others are divided by it.

    Each function is called once to warm up and then as often as fills `least_seconds`. Rounds
    interleave the ways, so that a slow minute of the machine hits all, and the least of all rounds
    counts: other processes only ever add. The clock counts seconds of CPU, which several threads
    add up; `time.perf_counter` counts seconds. Returns {name: ratio}.
    """
    counts, seconds = {}, {name: [] for name in ways}
    for name, way in ways.items():
        way()
        begin = clock()
        way()
        once = clock() - begin
        counts[name] = max(1, int(least_seconds / max(once, 1e-9)))
    for _ in range(rounds):
        for name, way in ways.items():
            begin = clock()
            for _ in range(counts[name]):
                way()
            seconds[name].append((clock() - begin) / counts[name])
    ours = next(iter(ways))
    print(f"\n{title}")
    ratios = {}
    for name in ways:
        each = [s / o for s, o in zip(seconds[name], seconds[ours], strict=True)]
        low, _, high = quantiles(each, n=4) if rounds > 1 else (each[0],) * 3
        ratios[name] = min(seconds[name]) / min(seconds[ours])
        spread = f"   {ratios[name]:9.1f} x  (rounds: quartiles {low:.1f} to {high:.1f})"
        tell = "" if name == ours else spread
        print(f"  {name:<58}{_told(min(seconds[name]) / unit)} per {per}{tell}")
    return ratios


def _told(seconds):
    for scale, name in ((1.0, "s "), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if seconds >= scale:
            return f"{seconds / scale:8.2f} {name}"
    return f"{seconds / 1e-9:8.2f} ns"


def goal(text, value, bound, at_most=False):
    """Print whether a ratio reaches the goal."""
    reached = value <= bound if at_most else value >= bound
    sign = "at most" if at_most else "at least"
    print(f"  -> {text}: {value:.2f}, goal {sign} {bound:g}: {'reached' if reached else 'MISSED'}")
    return reached
