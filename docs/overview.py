"""Draw the picture of the start page, `docs/pictures/overview.png`: `python docs/overview.py`.

Everything in it is computed here: 200 learners with known rates, what one of them does on the slot
machines, and what fits make of 96 and of 384 choices of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import maximum_a_posteriori
from knownminds.validation.pages.figures import BLUE, GREY, ORANGE

matplotlib.use("agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "pictures" / "overview.png"
SUBJECTS, SHOWN, SEED = 200, 20, 7
SIZES = (24, 96)  # visits to each of four casinos


def _agents(axes: Any, theta: NDArray[np.float64]) -> None:
    axes.scatter(theta[:, 0], theta[:, 1], s=9, color=GREY, alpha=0.6, lw=0)
    axes.scatter(theta[SHOWN, 0], theta[SHOWN, 1], s=60, color=ORANGE)
    axes.set(xlabel="learning rate α", ylabel="inverse temperature β", ylim=(0, 14))
    axes.set_title("1  Known agents", loc="left", fontweight="bold")


def _session(axes: Any, frame: Any) -> None:
    for context, rows in frame.groupby("context"):
        paid = rows.reward > 0
        visits = np.arange(len(rows))
        height = context + 0.35 * rows.action.to_numpy()
        axes.scatter(visits[paid], height[paid], s=16, color=ORANGE, lw=0)
        axes.scatter(visits[~paid], height[~paid], s=16, facecolors="none", edgecolors=ORANGE)
    axes.set(
        xlabel="visit (filled: the machine paid)", ylim=(3.7, -0.4), yticks=np.arange(4) + 0.17
    )
    axes.set_yticklabels([f"casino {1 + k}" for k in range(4)])
    axes.set_title("2  play an experiment", loc="left", fontweight="bold")
    axes.text(
        0.5, -0.42, "or a language model\nin the same chair", color=BLUE,
        ha="center", va="top", transform=axes.transAxes, fontweight="bold",
    )  # fmt: skip


def _recovered(axes: Any, truth: NDArray[np.float64], estimate: NDArray[np.float64]) -> None:
    r = np.corrcoef(truth, estimate)[0, 1]
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    axes.scatter(truth, estimate, s=9, color=BLUE, alpha=0.6, lw=0)
    axes.scatter(truth[SHOWN], estimate[SHOWN], s=60, color=ORANGE)
    axes.set(xlabel="true learning rate", xlim=(0, 1), ylim=(0, 1))
    axes.text(0.05, 0.93, f"r = {r:.2f}", transform=axes.transAxes, va="top")


def main() -> None:
    """Simulate, fit and draw."""
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(SEED), SUBJECTS)
    plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    figure, panels = plt.subplots(1, 4, figsize=(11, 3.3), width_ratios=(1, 1.25, 1, 1))
    _agents(panels[0], theta)
    for visits, axes in zip(SIZES, panels[2:], strict=True):
        trials = simulate(RescorlaWagner, theta, InstrumentalLearning(n_visits=visits), seed=SEED)
        if visits == SIZES[0]:
            _session(panels[1], trials.frame.iloc[SHOWN * 4 * visits : (SHOWN + 1) * 4 * visits])
        fit = maximum_a_posteriori(RescorlaWagner, trials)
        _recovered(axes, theta[:, 0], fit.estimate[:, 0])
    panels[2].set_ylabel("estimate")
    panels[2].set_title("3  Back from 96 choices?\n    Weakly", loc="left", fontweight="bold")
    panels[3].set_title("From 384 choices?\nWell", loc="left", fontweight="bold")
    figure.tight_layout(w_pad=1.5)
    figure.savefig(PICTURE, dpi=150, bbox_inches="tight")
    print(f"{PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
