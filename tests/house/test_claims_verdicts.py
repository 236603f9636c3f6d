"""Every reason of a verdict is true of the numbers that it was given."""

from itertools import product
from math import nan
from types import SimpleNamespace

import pytest
from claims import Claim, check, verdicts

from knownminds.validation.engine.verdicts import (
    judge_bounds,
    judge_outcomes,
    judge_recovery,
    judge_region,
    judge_size,
    judge_trials,
)


def prove(verdict, **facts):
    given = {"word": verdict.word, "unit": "subject", "size": 1} | facts
    check(verdicts.REPORT, verdict.reasons, SimpleNamespace(**given))
    assert (verdict.more is not None) == verdict.word.startswith("between ")
    claims = verdicts.REPORT.sentences
    return {c.template for c in claims if any(c.read(r) is not None for r in verdict.reasons)}


def recoveries():
    numbers = (0.99, 0.8, 0.7996, 0.85, 0.65, 0.5, 0.4996, 0.55, 0.3, -0.9, 1.0)
    coverages = ((0.9, 0.01), (0.8496, 0.01), (0.7, 0.02), (0.99, 0.004), (0.955, 0.01))
    for r, (coverage, error), n in product(numbers, coverages, (12, 100, 40_000)):
        for failed, r_error in ((0.0, None), (0.06, (1 - r * r) / n**0.5), (0.3, None)):
            yield {
                "r": r,
                "coverage": coverage,
                "coverage_error": error,
                "n": n,
                "failed": failed,
                "r_error": r_error,
                "attempted": n,
            }


def test_every_reason_of_every_judge_is_proved():
    told = set()
    for given in recoveries():
        told |= prove(judge_recovery(**given), **given)
        group = judge_recovery(**given, unit="replicate", size=50)
        told |= prove(group, **given | {"unit": "replicate", "size": 50})
    # Ten of a group's fifty fits failed, so that one more replicate more than doubles the others.
    given |= {"r": 0.7, "n": 40, "failed": 0.0, "attempted": 50, "r_error": None, "coverage": 0.9}
    group = judge_recovery(**given, unit="replicate", size=50)
    told |= prove(group, **given | {"unit": "replicate", "size": 50})
    plain = {"r": 0.9, "coverage": 0.9, "coverage_error": 0.01, "n": 100}
    for odd in (
        {"n": 9},
        {"n": 1},
        {"n": 0},
        {"r": nan, "varies": False},
        {"r": nan, "finite": False},
        {"r": nan},
        {"r_error": nan},
        {"coverage": nan, "coverage_error": nan},
    ):
        given = plain | odd
        rest = {"failed": 0.0, "attempted": 100, "varies": True, "finite": True, "r_error": None}
        told |= prove(judge_recovery(**given), **rest | given)
    widths, errors = (0.3, 0.604, 0.6, 0.7, 0.866, 0.95), (0, 0.01, 0.2, nan)
    for width, error, n in product(widths, errors, (9, 99)):
        given = {"width": width, "error": error, "n": n}
        told |= prove(judge_region(**given), **given)
    for hits, n, failed in product((0, 5, 9, 20), (99, 100, 400, 10_000), (0.0, 0.06)):
        verdict = judge_size(hits / 100, n, failed=failed)
        told |= prove(verdict, rejected=hits / 100, n=n, failed=failed, unit="data set")
    for differing, trials, apart in ((0, 9, 0.0), (0, 9, nan), (1, 1200, 0.02), (0, 0, nan)):
        facts = {"differing": differing, "trials": trials, "apart": apart}
        told |= prove(judge_trials(**facts), **facts)
    dials = {"ok": 0.5, "refused": 0.5}
    for counts, trials in (((50, 50), 100), ((80, 20), 100), ((5, 4), 10), ((0, 0), 0)):
        counts = dict(zip(dials, counts, strict=True))
        verdict = judge_outcomes(counts, dials, trials, 0.01)
        told |= prove(verdict, counts=counts, dials=dials, trials=trials, level=0.01)
    for bounds, n, missing, failed in (
        ((0.95, 0.02), 99, 9, 0.0),
        ((0.87, 0.02), 99, 9, 0.0),
        ((0.8, 0.02), 99, 9, 0.0),
        ((0.95, 0.02), 99, 0, 0.0),
        ((0.95, 0.02), 9, 9, 0.0),
        ((0.95, 0.02), 99, 9, 0.3),
    ):
        facts = {"n": n, "missing": missing, "failed": failed}
        held, own = {"a": (0.97, 0.02), "b": bounds}, {"a": 0.7, "b": 0.6}
        told |= prove(judge_bounds(held, own, **facts), bounds=held, plain=own, **facts)
    claims = {c.template for c in verdicts.REPORT.sentences if isinstance(c, Claim)}
    assert claims == told


def test_a_sentence_about_another_number_fails():
    verdict = judge_recovery(0.55, 0.9, 0.01, n=100)
    facts = {"coverage": 0.9, "coverage_error": 0.01, "n": 100, "r_error": None, "failed": 0.0}
    prove(verdict, r=0.55, attempted=100, **facts)
    with pytest.raises(AssertionError):
        prove(verdict, r=0.7, attempted=100, **facts)
