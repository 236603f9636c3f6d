"""What drawing a stimulus costs, beside encoding it as PNG; and what a session's pictures cost.

    python benchmarks/drawing.py [pictures]

All parts are timed in turn on the same stimuli, in CPU seconds, the best of five rounds, so that
the ratios hold whatever else the machine does.
"""

import sys
import time

import numpy as np

from knownminds.environments import Turn, make
from knownminds.environments.magnitudes import drawing, maze

TASKS = ("marker_location", "line_ratio", "maze_distance")
BLURS = (0.0, 8.0, 16.0)


def stimuli(task, n):
    place = make(task, modality="image")
    place.reset(seed=0)
    table = place.design.table
    rows = np.arange(n) % place.n_trials
    return place, [{k: table[k][row].item() for k in table} for row in rows]


def side_by_side(runs, rounds=5):
    """Return the least CPU seconds of each run, the runs taken in turn."""
    seconds = [[] for _ in runs]
    for _ in range(rounds):
        for spent, run in zip(seconds, runs, strict=True):
            start = time.process_time()
            run()
            spent.append(time.process_time() - start)
    return [min(spent) for spent in seconds]


def each(function, arguments):
    def run():
        maze.path.cache_clear()  # making a path is a part of drawing it
        for argument in arguments:
            function(argument)

    return run


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    look = {"marker_location": drawing.marker_in, "line_ratio": drawing.ratio_in}
    print(f"{'stimulus':18}{'blur':>6}{'draw':>9}{'encode':>9}{'read':>9}  encode / draw")
    for task in TASKS:
        place, shown = stimuli(task, n)
        for blur in BLURS:
            seen = [{**observation, "blur": blur} for observation in shown]
            images = [place._drawn(observation) for observation in seen]
            pngs = [drawing.png(image) for image in images]
            see = look.get(task, drawing.ends_in).__wrapped__
            runs = each(place._drawn, seen), each(drawing.png, images), each(see, pngs)
            drawn, encoded, read = side_by_side(runs)
            ms = "".join(f"{1e3 * s / n:6.2f} ms" for s in (drawn, encoded, read))
            print(f"{task:18}{blur:4.0f}px{ms}  {encoded / drawn:8.1f}x")
    for task in TASKS:
        place = make(task, modality="image", condition="gradual_noise")
        pictures = []
        for keep in (True, False):
            observation, _ = place.reset(seed=0)
            turns, over, spent = [], False, 0.0
            while not over:
                start = time.process_time()
                if not keep:
                    place._pictures.clear()
                place.render(observation, turns)
                spent += time.process_time() - start
                value = observation["value"]
                turns.append(Turn(observation, None, None, "", value))
                following, _, over, *_ = place.step(value)
                observation = following or observation
            pictures.append(spent)
        print(
            f"{task:18} {place.n_trials} prompts with up to 11 pictures: {pictures[0]:.2f} s; "
            f"drawn anew each time {pictures[1]:.2f} s, {pictures[1] / pictures[0]:.1f}x"
        )


if __name__ == "__main__":
    main()
