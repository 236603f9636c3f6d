import json
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from knownminds.validation.engine.study import Cell
from knownminds.validation.recovery.parameter_recovery import Recovery, recover
from knownminds.validation.recovery.recovery_surface import (
    RecoverySurface,
    read_recovery_or_surface,
    recovery_surface,
)

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner"
FITS = {"seed": 3, "intervals": "laplace", "workers": 1}


@pytest.fixture(scope="module")
def surface():
    given = {"subjects": [60, 400], "sessions": [1, 2], "trials": [12, 96]}
    return recovery_surface(PLACE, MODEL, **given, **FITS)


# The surface is made of recoveries


def test_designs_stand_in_the_order_of_the_grid(surface):
    sizes = [(n, k, t) for n in (60, 400) for k in (1, 2) for t in (12, 96)]
    assert list(surface.sizes) == sizes
    assert surface.parameters == ("alpha", "beta", "kappa")
    assert [recovery.attempted for recovery in surface.recoveries] == [60] * 4 + [400] * 4


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


def test_more_trials_recover_better(surface):
    # The errors are those of the scores; 3.5 of their difference are exceeded by chance in 2 of
    # 10,000 comparisons of equal designs.
    by_size = dict(zip(surface.sizes, surface.recoveries, strict=True))
    for sessions in (1, 2):
        short, long = by_size[400, sessions, 12], by_size[400, sessions, 96]
        for name in surface.parameters:
            few, many = short[name], long[name]
            assert many.r.value - few.r.value > 3.5 * np.hypot(many.r.error, few.r.error)


def test_more_subjects_do_not_recover_better_but_say_it_more_precisely(surface):
    by_size = dict(zip(surface.sizes, surface.recoveries, strict=True))
    few, many = by_size[60, 1, 96], by_size[400, 1, 96]
    for name in ("alpha", "kappa"):  # beta's tail is long, and its r from 60 subjects wild
        a, b = few[name], many[name]
        assert abs(a.r.value - b.r.value) < 3.5 * a.r.error  # 60 of the 400 are the same
        assert b.rmse.error < a.rmse.error
    # They are the same subjects in the same sessions, and the fits are each their own.
    assert few.rows["alpha"].tolist() == many.rows["alpha"].tolist()[:60]


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


def test_the_answer_is_said_in_words():
    found = made({(20, 2, 24): YES, (20, 2, 48): YES})
    assert found.answers() == [
        "alpha: to be interpreted from 20 subjects x 2 sessions x 24 trials on."
    ]
    none = made({(20, 2, 24): YES, (20, 2, 48): WEAK})
    assert none.answers() == ["alpha: not to be interpreted in any of these designs."]


@pytest.mark.parametrize("open_word", ["between recoverable and weak", "not judged"])
def test_what_is_open_is_told_as_open(open_word):
    """Neither "to be interpreted" nor "not to be" is said where no clear verdict says so."""
    perhaps = made({(20, 2, 24): WEAK, (20, 2, 48): open_word})
    assert (perhaps.smallest("alpha"), perhaps.perhaps("alpha")) == (None, (20, 2, 48))
    assert perhaps.answers() == [
        "alpha: perhaps to be interpreted from 20 subjects x 2 sessions x 48 trials on."
    ]
    partly = made({(20, 2, 24): open_word, (20, 2, 48): YES})
    assert partly.answers() == [
        "alpha: to be interpreted from 20 subjects x 2 sessions x 48 trials on and whether "
        "from 20 subjects x 2 sessions x 24 trials on is open."
    ]
    bad = made({(20, 2, 24): YES, (20, 2, 48): "between weak and not identified"})
    assert bad.answers() == ["alpha: not to be interpreted in any of these designs."]


def test_the_answers_of_a_real_surface_agree_with_its_verdicts(surface):
    for name in surface.parameters:
        answer = surface.smallest(name)
        good = [
            size
            for size, recovery in zip(surface.sizes, surface.recoveries, strict=True)
            if recovery[name].verdict.word == YES
        ]
        assert answer is None or answer in good
        largest = surface.recoveries[-1][name].verdict.word == YES
        assert (answer is not None) == largest  # the largest design is above every other
    assert surface.smallest("kappa") is not None
    with pytest.raises(ValueError, match=r"no parameter named 'kapa'\. Nearest: kappa"):
        surface.smallest("kapa")


def test_the_surface_is_a_table_and_json(surface):
    frame = surface.to_frame()
    whole = frame[frame["region"] == "all"]
    assert len(whole) == 8 * 3
    assert len(frame) == 8 * 3 * (1 + 3)
    for (subjects, sessions, trials), recovery in zip(
        surface.sizes, surface.recoveries, strict=True
    ):
        here = (
            (whole["subjects"] == subjects)
            & (whole["sessions"] == sessions)
            & (whole["trials"] == trials)
        )
        assert whole.loc[here, "r"].tolist() == [s.r.value for s in recovery.parameters]
    counts = frame[frame["region"] != "all"].groupby(["subjects", "sessions", "trials"])["n"].sum()
    assert counts.loc[400, 2, 96] == 3 * 400  # each subject is in one region of each parameter
    told = json.loads(surface.to_json())
    assert told["attempted"] == 4 * 60 + 4 * 400
    size = surface.smallest("kappa")
    assert told["smallest"]["kappa"] == dict(
        zip(("subjects", "sessions", "trials"), size, strict=True)
    )
    assert len(told["surface"]) == 8
    assert str(surface).count("\n") == 2 + 8 + 3 - 1  # title, head, designs, answers


# Refusals and folders


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"subjects": []}, "A surface needs at least one number of subjects; got none"),
        ({"trials": []}, "A surface needs at least one number of trials; got none"),
        ({"trials": [24, 25]}, "have a multiple of 4 trials; got 25"),
        ({"subjects": [20, 0]}, "The number of subjects is at least 1; got 0"),
        ({"sessions": [1, 0]}, "The number of sessions is at least 1; got 0"),
        ({"method": "map2"}, "There is no method named 'map2'. Nearest: map"),
        ({"model": "rescorla"}, "There is no model named 'rescorla'. Nearest: rescorla_wagner"),
        ({"model": "random_responder"}, "random_responder has none left"),
        ({"truth": {"alpha": 1.2}}, "alpha lies in (0, 1); got 1.2"),
        ({"method": "hierarchical", "subjects": [20, 1]}, "needs at least 2 subjects; got 1"),
        ({"workers": 0}, "The number of workers is at least 1; got 0"),
    ],
)
def test_misuse_is_refused_in_a_sentence_and_leaves_no_folder(tmp_path, wrong, sentence):
    asked = {"environment": PLACE, "model": MODEL, "subjects": [20], "workers": 1}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        recovery_surface(**asked | wrong, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_surface_is_read_back_and_resumed_exactly(tmp_path):
    given = {"subjects": [12], "trials": [12, 24, 48], "intervals": "laplace", "workers": 1}
    found = recovery_surface(PLACE, MODEL, **given, out=tmp_path)
    again = read_recovery_or_surface(tmp_path)
    assert isinstance(again, RecoverySurface)
    assert again.to_json() == found.to_json()
    parts = sorted((tmp_path / "parts").iterdir())
    ages = [part.stat().st_mtime_ns for part in parts]
    parts[1].unlink()
    with pytest.raises(ValueError, match="is not finished"):
        read_recovery_or_surface(tmp_path)
    recovery_surface(PLACE, MODEL, **given, out=tmp_path)
    assert [part.stat().st_mtime_ns == age for part, age in zip(parts, ages, strict=True)] == [
        True,
        False,
        True,
    ]
    assert read_recovery_or_surface(tmp_path).to_frame().equals(found.to_frame())


def test_a_folder_of_one_design_is_a_recovery(tmp_path):
    recover(PLACE, MODEL, subjects=12, trials=12, intervals="laplace", workers=1, out=tmp_path)
    assert isinstance(read_recovery_or_surface(tmp_path), Recovery)
