from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from knownminds.validation.engine.study import Cell
from knownminds.validation.recovery.parameter_recovery import recover
from knownminds.validation.recovery.recovery_surface import (
    RecoverySurface,
    recovery_surface,
)

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner"
FITS = {"seed": 3, "intervals": "laplace", "workers": 1}


@pytest.fixture(scope="module")
def surface():
    given = {"subjects": [20, 30], "sessions": [1, 2], "trials": [24]}
    return recovery_surface(PLACE, MODEL, **given, **FITS)


# The surface is made of recoveries


def test_every_cell_is_the_recovery_of_that_design_alone(surface):
    for (subjects, sessions, trials), cell in zip(surface.sizes, surface.recoveries, strict=True):
        given = {"subjects": subjects, "sessions": sessions, "trials": trials}
        alone = recover(PLACE, MODEL, **given, **FITS)
        one, other = cell.to_dict(), alone.to_dict()
        for content in (one, other):
            content.pop("seconds")
            # In a surface it is replicates that are asked for, where a verdict is open, and that
            # find smaller errors.
            for told in content["parameters"].values():
                for name in ("unit", "half"):
                    told["would_have_found"].pop(name)
                for verdict in (told, *told["regions"]):
                    if verdict.pop("more") is not None:
                        verdict["reasons"].pop()
        assert one == other
        assert cell.rows.drop(columns=["seconds", "cell"]).equals(
            alone.rows.drop(columns=["seconds", "cell"])
        )


# From which size on


@dataclass
class Made:
    """A recovery of a design, of which only the verdict on `alpha` is known."""

    size: tuple
    word: str

    @property
    def cell(self):
        subjects, sessions, trials = self.size
        settings = {"n_visits": trials // 4}
        return Cell(PLACE, settings, MODEL, subjects=subjects, sessions=sessions)

    @property
    def parameters(self):
        return (SimpleNamespace(name="alpha"),)

    def __getitem__(self, name):
        assert name == "alpha"
        return SimpleNamespace(verdict=SimpleNamespace(word=self.word))


def made(words):
    return RecoverySurface(None, tuple(Made(*item) for item in words.items()), {})


YES, WEAK, NO = "recoverable", "weak", "not identified"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ({(20, 1, 24): YES, (20, 1, 48): YES}, (20, 1, 24)),
        ({(20, 1, 24): WEAK, (20, 1, 48): YES}, (20, 1, 48)),
        ({(20, 1, 24): WEAK, (20, 1, 48): NO}, None),
        ({(20, 1, 24): YES, (20, 1, 48): "not judged"}, None),
        # A size at which it works by luck, and above which it does not, is none.
        ({(20, 1, 24): YES, (20, 1, 48): WEAK, (20, 1, 96): YES}, (20, 1, 96)),
        # Only designs that are at least as large in all sizes count against one.
        ({(20, 1, 24): NO, (40, 1, 24): NO, (20, 2, 48): YES, (40, 2, 48): YES}, (20, 2, 48)),
        ({(20, 1, 96): YES, (40, 1, 24): NO, (40, 1, 96): YES}, (20, 1, 96)),
        ({(20, 1, 96): YES, (40, 1, 24): YES, (40, 1, 96): NO}, None),
        # Of several, the fewest trials in all; the fewest subjects if they are equal.
        ({(10, 1, 96): YES, (20, 1, 24): YES, (20, 1, 96): YES}, (20, 1, 24)),
        ({(10, 2, 48): YES, (20, 1, 48): YES, (20, 2, 48): YES}, (10, 2, 48)),
    ],
)
def test_the_smallest_design_from_which_on_a_parameter_is_recoverable(words, answer):
    backwards = dict(reversed(words.items()))
    assert made(words).smallest("alpha") == made(backwards).smallest("alpha") == answer
