"""Sets of magnitude estimates by hand: agents with prior weights and noise that the tests know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from knownminds.environments import session_stream
from knownminds.environments.magnitudes.magnitude import CONDITIONS, MODALITIES
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL, TASKS

LOWEST = {"marker_location": 0.1, "line_ratio": 0.1, "maze_distance": 3.0, "duration": 10.0}
HIGHEST = {"marker_location": 0.9, "line_ratio": 0.9, "maze_distance": 15.0, "duration": 70.0}
CEILING = {"marker_location": 1.0, "line_ratio": 1.0, "maze_distance": 60.0, "duration": 600.0}
NOISE = {"text": 0.03, "image": 0.06, "text+image": 0.04}


def answers_of(
    participant: str,
    *,
    tasks: Sequence[str] = TASKS,
    conditions: Sequence[str] = CONDITIONS,
    prior: Mapping[str, float] | float = 0.2,
    noise: Mapping[str, float] = NOISE,
    text_weight: float | None = 0.7,
    repeats: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Let a static observer answer; prior weight by condition, noise by modality (of the unit).

    With a weight of the text, answers to both are made of the two answers to one modality, and
    noise is added; without one they are those of the observer.
    """
    rng = session_stream(seed, 3)
    rows = []
    for task in tasks:
        unit = LOWEST[task] + HIGHEST[task]
        width = (HIGHEST[task] - LOWEST[task]) / 2
        for condition in conditions:
            w = prior if isinstance(prior, float) else prior.get(condition, 0.2)
            for window in range(3):
                low = LOWEST[task] + window * width / 2
                value = rng.permutation(np.repeat(np.linspace(low, low + width, 11), repeats))
                said: dict[str, np.ndarray] = {}
                for modality in MODALITIES if task in MULTIMODAL else ("text",):
                    mean = (1 - w) * value + w * (low + width / 2)
                    if modality == "text+image" and text_weight is not None:
                        mean = text_weight * said["text"] + (1 - text_weight) * said["image"]
                    answer = mean + noise[modality] * unit * rng.standard_normal(len(value))
                    said[modality] = np.clip(answer, 0.0, CEILING[task])
                    rows.append(
                        pd.DataFrame(
                            {
                                "model": participant,
                                "environment": task,
                                "subject": f"{participant} {task} {condition}",
                                "session": "0",
                                "trial": np.arange(len(value))
                                + len(value) * (3 * window + MODALITIES.index(modality)),
                                "window": window,
                                "value": value,
                                "modality": MODALITIES.index(modality),
                                "blur": {"constant_noise": 8.0}.get(condition, 0.0),
                                "condition": CONDITIONS.index(condition),
                                "item": np.arange(len(value)),
                                "unit": unit,
                                "ceiling": CEILING[task],
                                "response": said[modality],
                            }
                        )
                    )
    return pd.concat(rows, ignore_index=True)
