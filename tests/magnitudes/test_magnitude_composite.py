"""The composite against its parts, and what it says where something is missing."""

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.environments import CONDITIONS
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL, TASKS, MagnitudeAnswers
from knownminds.inference.magnitudes.magnitude_composite import magnitude_composite


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return answers_of("a", prior=0.3)


def composite(frame: pd.DataFrame, rounds: int = 0, **options: object):  # type: ignore[no-untyped-def]
    answers = MagnitudeAnswers.read(frame, "model", rounds)
    return magnitude_composite(answers, "a", **{"replicates": 0} | options)  # type: ignore[arg-type]


def test_parts_and_composite_are_the_published_formulas(frame: pd.DataFrame) -> None:
    found = composite(frame)
    error = [found.errors[t, "text+image" if t in MULTIMODAL else "text"][0] for t in TASKS]
    assert found["A"].value == pytest.approx(np.mean([1 - e / 2 for e in error]))
    names = ("bayes_oracle", "bayes_responses")
    efficiency = [found.cues[t].efficiency[name][0] for t in MULTIMODAL for name in names]
    assert found["E"].value == pytest.approx(np.mean(efficiency))
    assert found["C"].value == pytest.approx((found.consistency.total[0] + 15) / 30)
    parts = [found[letter].value for letter in "AEC"]
    assert found["S"].value == pytest.approx(np.mean(parts))
    assert np.isnan(found["S"].low)
    assert list(found.to_frame()["part"]) == ["A", "E", "C", "S"]


def test_what_is_missing_is_named_and_nothing_is_put_in_its_place(frame: pd.DataFrame) -> None:
    found = composite(frame[frame["environment"] != "duration"])
    assert found["A"].missing == "no base trials of duration with text"
    assert np.isnan([found["A"].value, found["S"].value]).all()
    assert np.isfinite([found["E"].value, found["C"].value]).all()
    assert found["S"].missing == "A is missing"
    assert "no base trials of duration" in str(found)

    pictures = frame[(frame["modality"] != 0) | (frame["environment"] != "maze_distance")]
    found = composite(pictures)
    told = "no base trials of maze_distance with text, with image and with both"
    assert found["E"].missing == told
    assert np.isfinite(found["A"].value)

    noise = frame["condition"] != CONDITIONS.index("gradual_noise")
    found = composite(frame[noise])
    assert len(found["C"].missing.split("; ")) == 3
    assert np.isnan(found["C"].value)
