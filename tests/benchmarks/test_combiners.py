"""Which combiner foretells answers to both: players whose rule is known."""

import numpy as np
import pytest

from knownminds.inference.magnitudes.cue_combination import CuePairs
from knownminds.inference.magnitudes.magnitude_answers import TaskAnswers
from knownminds.validation.magnitudes.combiners import compare_combiners


def pairs(rule, seed, n=33, repeats=3, noise=0.01, blur=1.0):
    rng = np.random.default_rng(seed)
    value = np.tile(np.linspace(0.1, 0.9, n), repeats)
    text, image = (value + blur * s * rng.standard_normal(len(value)) for s in (0.03, 0.06))
    said = rule(value, text, image) + noise * rng.standard_normal(len(value))
    whole = np.arange(len(value))
    zero = np.zeros(len(value))
    answers = TaskAnswers(
        value, said, zero + 0.5, zero.astype(int), zero.astype(int), whole, whole, zero, 1.0, 1.0,
        np.ones((1, len(value))),
    )  # fmt: skip
    return CuePairs(answers, text, image, "items", 0)


def verdicts(rule, seed=0, **how):
    rows = compare_combiners(pairs(rule, seed, **how))
    return {(r["one"], r["other"]): r["verdict"] for r in rows.to_dict("records")}


def test_a_line_is_foretold_better_by_a_line_than_by_a_forest():
    said = verdicts(lambda value, text, image: 0.9 * text + 0.1 * image)
    assert said["forest", "line"] == "line foretells better"
    assert said["line", "Bayes"] == "line foretells better"  # whose weights are others


def test_who_goes_by_the_word_below_and_by_the_picture_above_is_foretold_by_a_forest():
    def by_turns(value, text, image):
        return np.where(value < 0.5, text, image + 0.3)

    assert verdicts(by_turns)["forest", "line"] == "forest foretells better"


def test_repetitions_of_a_stimulus_are_no_knowledge_of_it():
    """A player whose answers hang on the stimulus by chance alone is foretold by nobody.

    A forest that saw two of three repetitions would know the third.
    """
    noise = np.random.default_rng(4).standard_normal(33)
    exact = {"noise": 0.0, "blur": 0.0, "repeats": 6}
    rows = compare_combiners(pairs(lambda v, t, i: np.tile(0.5 + 0.2 * noise, 6), 0, **exact))
    forest = rows.loc[rows["one"] == "forest", "error_one"].iloc[0]
    assert forest > 0.9 * 0.2 * noise.std()  # that of the mean


def test_too_few_stimuli_foretell_nothing():
    assert len(compare_combiners(pairs(lambda v, t, i: t, 0, n=12))) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_difference_is_that_of_two_roots(seed):
    rows = compare_combiners(pairs(lambda v, t, i: 0.5 * t + 0.5 * i, seed))
    by = {(r["one"], r["other"]): r["difference"] for r in rows.to_dict("records")}
    assert by["forest", "line"] + by["line", "Bayes"] == pytest.approx(by["forest", "Bayes"])
