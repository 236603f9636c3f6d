"""Cue conflict: words and a picture of one line that disagree by a known amount."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream
from knownminds.environments.fields import CheckedBy, Field, Fields, Number, Numbers, OneOf, setting
from knownminds.environments.later import pandas as pd
from knownminds.environments.magnitudes.decoupling import HUNDREDTHS
from knownminds.environments.magnitudes.magnitude import WINDOWS, Magnitude, Modality, windows_of
from knownminds.environments.magnitudes.marker_location import MarkerLocation
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.prompt import Template

Report = Literal["dashes", "rounded", "hedged", "sources"]
REPORTS: tuple[str, ...] = get_args(Report)
BOTH = 2  # the modality
NUMBERS = 2**31  # errors of reports are drawn from one of so many streams
_SOURCES = 3  # so many reports on a line contradict each other
_TENTHS = 10


def _paired(values: NDArray[np.float64]) -> bool:
    halves = values * HUNDREDTHS / 2
    once = len(set(np.round(halves).tolist())) == len(values)
    return bool(np.allclose(halves, np.round(halves)) and once)


class CueConflict(MarkerLocation):
    """Where on a line a marker sits, by words and a picture that disagree by a known amount.

    A session shows lines first in words alone, then in pictures alone, then in both. With both, the
    words put the marker half a conflict to the right of `value`, and the picture half a conflict to
    the left of it (the sides are exchanged for a negative conflict). Each conflict comes equally
    often with each value if `repeats` is a multiple of the number of conflicts. Participants are
    not told of conflicts; prompts say that neither words nor picture need be exact.

    Words are one of these: a row of dashes with the marker among them; a location rounded to
    tenths; a hedged location, with an error and the usual size of such errors; or three sources,
    each with an error of its own. Errors are normal, with standard deviation `report_error`, and
    what is shown stays within the line.

    Everything else is as in `MarkerLocation`: pictures, their blur, windows, items. All lines have
    the same length. Decoupled lines differ in length, and the same blur hides more of a short one,
    so that no single reliability would hold for all.
    """

    name = "cue_conflict"
    summary = "where a marker sits, by words and a picture that disagree by a known amount"
    source = "Ernst and Banks 2002; Ernst and Buelthoff 2004"
    usual_model = "cue_weigher"
    shipped = Path(__file__).with_suffix(".toml")
    fields = Fields(
        *Magnitude.fields,
        Field(
            "conflict",
            (-1.0, 1.0),
            "location in words less that in the picture",
            unit="as the answer",
        ),
        Field("errors", (0, np.inf), "number from which errors of reports are drawn", "wording"),
    )
    n_wording = 1

    modality: Modality = setting(
        "all",
        CheckedBy(lambda name, given: given, "one of text, image, text+image, all"),
        "How lines are shown: all for text, image and both one after the other, or one of these.",
    )
    windows: tuple[str, ...] = setting(
        ("medium",),
        CheckedBy(windows_of, "one or more of short, medium and long, each once"),
        'Which of "short", "medium" and "long" are shown, in this order.',
    )
    conflicts: Sequence[float] = setting(
        (-0.08, 0.0, 0.08),
        Numbers("are different multiples of 0.02, shares of the line", _paired),
        "By how much words lie to the right of the picture, in turn.",
    )
    report: Report = setting(
        "dashes", OneOf(REPORTS), "How words tell the location: dashes, rounded, hedged, sources."
    )
    report_error: float = setting(
        0.05,
        Number(0.0, 0.5),
        "Standard deviation of the errors of hedged reports and of sources, share of the line.",
    )

    def prepare(self) -> None:
        self._words_tell = self.report == "dashes"
        super().prepare()
        most = max(abs(c) for c in self.conflicts)
        low = min(self.ranges[window][0] for window in self.windows)
        high = max(self.ranges[window][1] for window in self.windows)
        free = min(low - self.limits[0], self.limits[1] - high)
        if most / 2 > free + 1e-9:
            raise ValueError(
                "Each cue is moved by half a conflict, and locations go from "
                f"{self.limits[0]:g} to {self.limits[1]:g}; with a conflict of {most:g} some "
                f"of those from {low:g} to {high:g} would be moved beyond an end. Take "
                f"conflicts up to {2 * free:.2g}, or ranges that are farther from the ends."
            )

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        made = super()._make(targets, uniforms[:, :, 1:])
        items = np.arange(self.n_items)
        which = (items % self.repeats + items // self.repeats) % len(self.conflicts)
        conflict = np.array(self.conflicts)[which]
        return made | {
            "conflict": np.broadcast_to(conflict, targets.shape),
            "errors": (uniforms[:, :, 0] * NUMBERS).astype(np.int64),
        }

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the lines in the order in which they are shown; single cues have no conflict."""
        tables = super().tables(uniforms)
        return {**tables, "conflict": np.where(tables["modality"] == BOTH, tables["conflict"], 0.0)}

    def _text(self, observation: Observation) -> list[str]:
        value = _moved(observation, 0.5)
        if self.report == "dashes":
            return super()._text({**observation, "value": value})
        if self.report == "rounded":
            return [
                self._reports["rounded"].render(first=decimal(round(value * _TENTHS) / _TENTHS))
            ]
        rng = session_stream(int(observation["errors"]))
        number = 1 if self.report == "hedged" else _SOURCES
        said = np.clip(value + self.report_error * rng.standard_normal(number), 0.0, 1.0)
        names = ("first", "second", "third")
        words = {name: decimal(round(float(x), 2)) for name, x in zip(names, said, strict=False)}
        if self.report == "hedged":
            words["error"] = decimal(self.report_error)
        return [self._reports[self.report].render(**words)]

    def picture(self, observation: Observation) -> bytes:
        """Return the picture of a line, with its share of the conflict, as PNG."""
        return super().picture({**observation, "value": _moved(observation, -0.5), "conflict": 0.0})

    def shortcuts(self, observation: Observation) -> dict[str, float]:
        """Return what words and picture show besides the location."""
        if self.report == "dashes":
            shown = {**observation, "value": _moved(observation, 0.5), "conflict": 0.0}
            return super().shortcuts(shown)
        return {}

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield from super().rules(trials)
        conflict, both = trials.numbers("conflict"), trials.numbers("modality") == BOTH
        near = np.isclose(conflict[:, None], self.conflicts, atol=1e-9).any(axis=1)
        known = " or ".join(f"{c:g}" for c in self.conflicts)
        yield (
            f"The conflict is {known} where words and picture are shown, 0 elsewhere",
            np.where(both, near, conflict == 0.0),
            ("modality", "conflict"),
            "Use the settings that the trials were made with, or recode them.",
        )

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        settings = super().as_played(frame).settings
        if {"modality", "conflict", "window"} <= set(frame.columns):
            both = frame["modality"].to_numpy(dtype=float) == BOTH
            conflicts = np.unique(frame["conflict"].to_numpy(dtype=float)[both]).tolist()
            shown = sorted(set(frame["window"].to_numpy(dtype=float)) & set(range(len(WINDOWS))))
            settings |= {"conflicts": conflicts or settings["conflicts"]}
            settings |= {"windows": tuple(WINDOWS[int(k)] for k in shown)}
        return cls(**settings)

    def _introduce(self, words: Mapping[str, Template]) -> None:
        self._reports = {name: words[name] for name in REPORTS[1:]}
        if self.report != "dashes":
            said = {f"stimulus_{kind}": words[f"report_{kind}"] for kind in ("text", "both")}
            words = {**words, **said}
        super()._introduce(words)


def _moved(observation: Observation, share: float) -> float:
    """Return the location moved by a share of the conflict."""
    moved = float(observation["value"]) + share * float(observation.get("conflict", 0.0))
    return round(moved * HUNDREDTHS) / HUNDREDTHS
