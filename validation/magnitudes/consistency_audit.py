"""What the Bayesian consistency score does to minds that adapt, that do not, and that never err."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import Sessions, simulate_sessions
from knownminds.environments import WINDOWS, Environment, make
from knownminds.environments.magnitudes.magnitude import Magnitude
from knownminds.inference.magnitudes.consistency_score import (
    ABLATIONS,
    COMPARISONS,
    KNOWN_OBSERVERS,
    MOST,
    NOISE,
    shift_scores,
)
from knownminds.inference.magnitudes.magnitude_answers import BASE, BOTH, IMAGE, MULTIMODAL
from knownminds.validation.engine.arguments import check_settings
from knownminds.validation.engine.engine import Running, run
from knownminds.validation.engine.monte_carlo import Score, share
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

MODEL = "static_bayes_observer"
EXACT = "perfect, exact"  # without noise
THRESHOLD = 5
AT_ONCE = 250  # participants simulated at a time, which bounds the memory
TRIALS = (33, 99, 297, 990)


@dataclass(frozen=True)
class ConsistencyAudit(Reported):
    """Scores of known minds over trials per condition.

    Parameters
    ----------
    score
        By observer and trials per condition, those of simulated participants, [R].
    prior_weight, shift, sigma
        Of the minds: prior weight in the base condition (0 in the perfect one), by how much it
        grows in each ablation where the mind adapts, and noise in fractions of the unit.
    threshold
        A score that looks like adaptation.
    study
        The minds and numbers of trials, a cell each.
    """

    score: Mapping[tuple[str, int], Array]
    prior_weight: float
    shift: float
    sigma: float
    threshold: int
    study: Study
    versions: Mapping[str, str]

    def expected(self, observer: str, trials: int) -> Score:
        """Mean score with its Monte-Carlo error."""
        values = self.score[observer, trials]
        return Score(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))

    def reaching(self, observer: str, trials: int) -> Score:
        """Share of participants that score at least the threshold, with its error."""
        values = self.score[observer, trials]
        return share(float((values >= self.threshold).sum()), len(values))

    def to_frame(self) -> pd.DataFrame:
        """One row per observer and number of trials."""
        rows = []
        for (observer, trials), values in self.score.items():
            low, high = np.quantile(values, [0.05, 0.95])
            rows.append(
                {
                    "observer": observer,
                    "trials": trials,
                    "expected": self.expected(observer, trials).value,
                    "expected_error": self.expected(observer, trials).error,
                    "sd": float(values.std(ddof=1)),
                    "low": float(low),
                    "high": float(high),
                    "reaching": self.reaching(observer, trials).value,
                    "reaching_error": self.reaching(observer, trials).error,
                    "participants": len(values),
                }
            )
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "prior_weight": self.prior_weight,
            "shift": self.shift,
            "sigma": self.sigma,
            "threshold": self.threshold,
            "seed": self.study.seed,
            "rows": self.to_frame(),
            "versions": self.versions,
        }

    def __str__(self) -> str:
        """The table for a paper."""
        lines = [
            f"consistency score of known minds ({len(COMPARISONS)} comparisons, {-MOST} to {MOST})",
            f"prior weight {self.prior_weight:g}, shift {self.shift:g}, noise {self.sigma:g}",
            f"{'observer':<16}{'trials':>8}{'expected':>18}{'sd':>8}{'5% to 95%':>14}"
            f"{f'score >= {self.threshold}':>18}",
        ]
        for row in self.to_frame().to_dict("records"):
            expected = Score(row["expected"], row["expected_error"])
            reaching = Score(row["reaching"], row["reaching_error"])
            middle = f"{row['low']:+.0f} to {row['high']:+.0f}"
            lines.append(
                f"{row['observer']:<16}{row['trials']:>8}{expected!s:>18}{row['sd']:>8.2f}"
                f"{middle:>14}{reaching!s:>18}"
            )
        return "\n".join([*lines, "(Monte-Carlo errors; trials per task, condition and modality)"])


def consistency_audit(
    *,
    trials: Sequence[int] = TRIALS,
    prior_weight: float = 0.3,
    shift: float = 0.1,
    sigma: float = 0.06,
    threshold: int = THRESHOLD,
    participants: int = 500,
    seed: int = 0,
    **running: Unpack[Running],
) -> ConsistencyAudit:
    """Let known minds play all conditions of the three tasks, and score them.

    The minds are static Bayesian observers: one whose prior weight grows in every ablation, one
    whose weight stays as it is, one with weight 0 and the same noise, and one without any noise.

    Parameters
    ----------
    trials
        Per task, condition and modality; multiples of 33.
    prior_weight, shift, sigma
        Of the minds; noise in fractions of the unit.
    threshold
        Whose share of participants is told.
    participants
        For each kind of mind and number of trials.
    running
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If a number does not fit.
    """
    if not 0 < prior_weight < 1 or not 0 <= shift <= 1 - prior_weight or not sigma > 0:
        raise ValueError(
            "The prior weight lies between 0 and 1, also after the shift, and noise is above 0; "
            f"got {prior_weight:g}, {shift:g} and {sigma:g}."
        )
    if participants < 2:
        raise ValueError(f"An audit needs at least 2 participants; got {participants}.")
    each = len(WINDOWS) * 11
    for n in trials:
        if n < each or n % each:
            raise ValueError(f"Conditions have a multiple of {each} trials; got {n}.")
    minds = {"prior_weight": prior_weight, "shift": shift, "sigma": sigma}
    cells = tuple(
        Cell(
            MULTIMODAL[0],
            {"repeats": n // each},
            MODEL,
            law={"observer": observer, "trials": n, "number": k},
            options={**minds, "threshold": threshold, "tasks": list(MULTIMODAL)},
            batch=AT_ONCE,
        )
        for k, observer in enumerate((*KNOWN_OBSERVERS, EXACT))
        for n in trials
    )
    question = {
        "subject_matter": "consistency",
        "trials": list(trials),
        "set": {**minds, "threshold": threshold},
        "replicates": participants,
        "seed": seed,
    }
    study = Study("audit", cells, participants, seed, "replicate", question)
    return run(study, score_minds, summarise, **running)


def audit(
    settings: Mapping[str, Any], *, replicates: int, seed: int, **running: Unpack[Running]
) -> ConsistencyAudit:
    """Audit with settings by name, as one types them: arguments of `consistency_audit`.

    Raises
    ------
    ValueError
        If a name is none of these (the nearest are named), or a value does not fit.
    """
    numbers = dict.fromkeys(("prior_weight", "shift", "sigma"), 0.0)
    check_settings(settings, {"trials": [1], "threshold": THRESHOLD, **numbers})
    return consistency_audit(**settings, participants=replicates, seed=seed, **running)


def score_minds(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let known minds play all conditions of the tasks, and score them: one row each."""
    cell = study.cells[batch.cell]
    observer, options = cell.law["observer"], cell.options
    aim = 0.0 if observer.startswith("perfect") else options["prior_weight"]
    noise = 0.0 if observer == EXACT else options["sigma"]
    grow = options["shift"] if observer == "adapting" else 0.0
    address = (cell.law["number"], cell.law["trials"])
    weights = {
        (task, condition, modality): _weights(
            make(task, condition=condition, modality=modality, **cell.settings),
            {"w_prior": aim + grow * (condition != BASE), "sigma": noise},
            np.arange(batch.first, batch.last),
            study.seed,
            (*address, i, j, m),
        )
        for i, task in enumerate(MULTIMODAL)
        for j, condition in enumerate((BASE, *ABLATIONS))
        for m, modality in enumerate((BOTH, IMAGE))
        if condition == BASE or (modality == IMAGE) == (condition in NOISE)
    }
    score = np.zeros(len(batch))
    for c in COMPARISONS:
        base = weights[c.task, BASE, c.modality]
        score += shift_scores(base, weights[c.task, c.ablation, c.modality])
    return pd.DataFrame({"score": score, "status": "ok", "message": ""})


def summarise(rows: Rows) -> ConsistencyAudit:
    """Gather the scores of a finished audit."""
    cells = rows.study.cells
    score = {
        (cell.law["observer"], cell.law["trials"]): rows.frame(["score"], c)["score"].to_numpy()
        for c, cell in enumerate(cells)
    }
    told = {name: cells[0].options[name] for name in ("prior_weight", "shift", "sigma")}
    return ConsistencyAudit(
        score, **told, threshold=cells[0].options["threshold"], study=rows.study,
        versions=rows.versions,
    )  # fmt: skip


def _weights(
    place: Environment,
    weight: Mapping[str, float],
    participants: NDArray[np.int64],
    seed: int,
    address: tuple[int, ...],
) -> Array:
    """Let static observers play one condition; return the prior weights fitted to them, [R]."""
    assert isinstance(place, Magnitude)
    middles = {f"mu_{k}": sum(place.ranges[k]) / 2 / place.unit for k in WINDOWS}
    mind = {**weight, **middles}
    theta = [mind[name] for name in AGENTS[MODEL].parameters.names]
    addresses = np.column_stack([np.tile(address, (len(participants), 1)), participants])
    minds = np.tile(theta, (len(participants), 1))
    lived = simulate_sessions(AGENTS[MODEL], minds, place, seed, addresses=addresses)
    return _regressed(lived, len(participants))


def _regressed(lived: Sessions, n: int) -> Array:
    """Return 1 - slope of answers on stimuli within windows, held in [0, 1], of each session."""
    x, y = (lived.columns[name].astype(float) for name in ("value", "response"))
    group = lived.subject * len(WINDOWS) + lived.columns["window"].astype(np.int64)
    count = np.bincount(group)
    dx, dy = (z - (np.bincount(group, z) / count)[group] for z in (x, y))
    slope = np.bincount(lived.subject, dx * dy, n) / np.bincount(lived.subject, dx * dx, n)
    return np.clip(1.0 - slope, 0.0, 1.0)
