"""Noisy-ORs on a collider written anew in NumPy and SciPy, and trials as plain rows.

Shares nothing with the library but the columns of its trials.
"""

import numpy as np
from scipy.optimize import least_squares as minimise

# What each task asks: the variable, and what is known of C1, C2 and E (None: nothing).
ASKED = {
    "I": (2, (0, 0, None)),
    "II": (2, (0, 1, None)),
    "III": (2, (1, 1, None)),
    "IV": (0, (None, 1, None)),
    "V": (0, (None, 0, None)),
    "VI": (0, (None, 1, 1)),
    "VII": (0, (None, None, 1)),
    "VIII": (0, (None, 0, 1)),
    "IX": (0, (None, 1, 0)),
    "X": (0, (None, None, 0)),
    "XI": (0, (None, 0, 0)),
}
TYING = {3: "pbm", 4: "pbmn", 5: "pqbmn"}  # p and q priors, m and n strengths
SWAPPED = {3: (0, 1, 2), 4: (0, 1, 3, 2), 5: (1, 0, 2, 4, 3)}


STATES = [(c1, c2, e) for c1 in (0, 1) for c2 in (0, 1) for e in (0, 1)]
HERE = np.array(
    [
        [all(k is None or k == s for k, s in zip(known, state, strict=True)) for state in STATES]
        for _, known in ASKED.values()
    ]
)
THERE = HERE & np.array([[state[query] == 1 for state in STATES] for query, _ in ASKED.values()])
C1, C2, E = np.array(STATES).T


def predicted(theta, size):
    """Answers to the tasks, by adding up the eight states of the graph."""
    named = dict(zip(TYING[size], theta, strict=True))
    p, b, m = named["p"], named["b"], named["m"]
    q, n = named.get("q", p), named.get("n", m)
    works = 1 - (1 - b) * (1 - m) ** C1 * (1 - n) ** C2
    chance = np.where(C1, p, 1 - p) * np.where(C2, q, 1 - q) * np.where(E, works, 1 - works)
    return dict(zip(ASKED, (THERE @ chance) / (HERE @ chance), strict=True))


def _off(theta, tasks, answers, second):
    """Predicted less given; of questions about C2 (second), with the causes' parts exchanged."""
    size = len(theta)
    given = [predicted(theta, size), predicted(theta[list(SWAPPED[size])], size)]
    return np.array([given[int(s)][t] for t, s in zip(tasks, second, strict=True)]) - answers


def fitted(tasks, answers, size, second=None, starts=12):
    """Least squares over answers in [1e-6, 1 - 1e-6], best of some starts.

    Without `second`, questions about C2 are answered by the formula of C1. Answers to the same
    question are taken as their mean, as often as there are, which moves no minimum.
    """
    second = np.zeros(len(tasks)) if second is None else second
    cells = sorted({(t, bool(s)) for t, s in zip(tasks, second, strict=True)})
    groups = [answers[(tasks == t) & (second == s)] for t, s in cells]
    mean, weight = np.array([a.mean() for a in groups]), np.sqrt([len(a) for a in groups])
    task, side = zip(*cells, strict=True)

    def off(theta):
        return weight * _off(theta, task, mean, side)

    rng = np.random.default_rng(1)
    ends = [
        minimise(off, rng.uniform(0.1, 0.9, size), bounds=(1e-6, 1 - 1e-6), xtol=1e-12, ftol=1e-12)
        for _ in range(starts)
    ]
    best = min(ends, key=lambda end: end.cost)
    best.fun = _off(best.x, tasks, answers, second)
    return best


def left_out(tasks, answers, size, second=None, starts=12):
    """R2 and RMSE of the task means, each foretold from the other tasks."""
    second = np.zeros(len(tasks)) if second is None else second
    mean, off = [], []
    for task in [task for task in ASKED if task in tasks]:
        chosen = tasks == task
        best = fitted(tasks[~chosen], answers[~chosen], size, second[~chosen], starts)
        off.append(_off(best.x, tasks[chosen], answers[chosen], second[chosen]).mean())
        mean.append(answers[chosen].mean())
    off, around = np.array(off), np.subtract(mean, np.mean(mean))
    return 1 - (off**2).sum() / (around**2).sum(), np.sqrt((off**2).mean())


ROMAN = {(2, 0, 0): "I", (2, 0, 1): "II", (2, 1, 0): "II", (2, 1, 1): "III"}


def plainly(trials):
    """Rows with task, answer, and whether the question is about C2 (in II: present alone is C1)."""
    frame = trials.to_frame().reset_index(drop=True)
    tasks = []
    c2 = (frame["query"] == 1) | ((frame["query"] == 2) & (frame["first"] > frame["second"]))
    for row in frame.to_dict("records"):
        states = [row["first"], row["second"], row["third"]]
        if row["query"] == 2:
            tasks.append(ROMAN[2, states[0], states[1]])
            continue
        other = states[1 - row["query"]]
        groups = {1: ("VIII", "VI", "VII"), 0: ("XI", "IX", "X"), -1: ("V", "IV", None)}
        tasks.append(groups[states[2]][other if other >= 0 else 2])
    return frame.assign(task=tasks, answer=frame["response"].astype(float) / 100, c2=c2.to_numpy())
