"""Sentences of `identifiability`: what a session of a design cannot tell.

Facts: a `SimpleNamespace` with `content` (what the JSON holds), `theta` (where the information was
taken), `model`, `place`, `sd` (of the priors) and `scores`, [M, S, K]: slopes of log-likelihoods of
other sessions in z, by central differences.
"""

from __future__ import annotations

import re
from math import floor

import numpy as np

from claims import Claim, Report

SMALL = 1e-4  # of central differences, relative to the largest score


def names_in(text):
    return re.split(r", | and ", text)


def scores_of(f, names):
    """Return the scores of some parameters, [M S, k]; 0 is 0 up to rounding."""
    columns = [f.names.index(name) for name in names]
    return f.scores.reshape(-1, len(f.names))[:, columns]


def rank(scores):
    values = np.linalg.svd(scores, compute_uv=False)
    return int((values > SMALL * max(values.max(), 1.0)).sum())


def _not_at_all(f, words):
    assert np.abs(scores_of(f, names_in(words["names"]))).max() < SMALL


def weights_of(text, names):
    """Return the weights of z in "0.5 logit(a / 2) + b" or, of logarithms, "a * c / b"."""
    weights = dict.fromkeys(names, 0.0)
    if "(" not in text and ("*" in text or "/" in text):
        above, *below = text.split(" / ")
        for name in above.split(" * "):
            weights[name] = 1.0
        for name in below:
            weights[name] = -1.0
        return [weights[name] for name in names]
    term = r"(^|[+-] )([\d.]+ )?(?:logit|log)?\(?\(?(\w+)[^+]*?\)?(?= [+-] |$)"
    for sign, size, name in re.findall(term, text):
        weights[name] = (-1.0 if sign == "- " else 1.0) * float(size or 1)
    return [weights[name] for name in names]


TOGETHER = {"product": (1, 1), "sum": (1, 1), "ratio": (1, -1), "difference": (1, -1)}


def _only_through(f, words):
    names, what = names_in(words["names"]), words["what"]
    scores = scores_of(f, names)
    if " combinations: " in what:
        number, _, each = what.partition(" combinations: ")
        told = np.array([weights_of(one, names) for one in re.split(r", | and ", each)])
        assert len(told) == int(number)
    elif what.startswith("their "):
        first, other = TOGETHER[what.removeprefix("their ")]
        told = np.array([[first] + [other] * (len(names) - 1)], dtype=float)
    else:
        told = np.array([weights_of(what, names)])
    assert rank(scores) == len(told) < len(names)
    # Every score is a sum of the combinations: nothing is left outside of what they span.
    inside = scores @ np.linalg.pinv(told) @ told
    assert np.abs(scores - inside).max() < 0.01 * np.abs(scores).max()


def ranks(f):
    return np.array([rank(each) for each in f.scores])


def _cannot_all(f, words):
    names = names_in(words["names"])
    assert words["all"] == ("both" if len(names) == 2 else "all")
    left = 1 if words["what"] == "a combination" else int(words["what"].partition(" ")[0])
    assert words["depend"] == ("depends" if left == 1 else "depend")
    columns = [f.names.index(name) for name in names]
    each = [rank(scores[:, columns]) for scores in f.scores]
    assert round(np.mean(each)) == left < len(names)
    assert rank(scores_of(f, names)) > left  # the direction turns


def _at_some(f, words):
    fewer = int((ranks(f) < ranks(f).max()).sum())
    assert (int(words["n"]), int(words["all"])) == (fewer, len(f.scores))


def share_left(f, weights):
    """Return what a session leaves of the prior sd of a combination of z, weights in prior sds."""
    w = np.array(weights) / np.linalg.norm(weights)
    scores = f.scores * f.sd
    information = scores.transpose(0, 2, 1) @ scores / scores.shape[1]
    variance = [w @ np.linalg.inv(one + np.eye(len(w))) @ w for one in information]
    return float(np.mean(np.sqrt(variance))), float(np.sqrt(np.mean(variance)))


def _hardly(f, words):
    weights = np.array(weights_of(words["what"], f.names)) * f.sd
    own = share_left(f, weights)
    told = float(words["left"]) / 100
    assert words["left"] == f"{floor(1000 * told + 1e-6) / 10:.1f}"
    # Nearly all is left, so that information is small and its Monte-Carlo error smaller.
    assert min(abs(told - one) for one in own) < 0.02
    assert told > 0.9


def _tells(f, words):
    assert rank(f.scores.reshape(-1, len(f.names))) == len(f.names)
    assert f.content["sentences"] == []


def _one_theta(f, words):
    assert len(np.unique(f.theta, axis=0)) == 1
    assert f.content["sentences"]


def _none(f, words):
    assert f.content["parameters"] == []


def _headed(f, words):
    content = f.content
    assert (words["model"], words["place"]) == (content["model"], content["environment"])
    assert int(words["n"]) == content["n_trials"] == f.place.n_trials
    assert (int(words["m"]), int(words["s"])) == (len(f.theta), content["n_sessions"])
    assert words["failed"] == (f", {content['failed']} failed" if content["failed"] else "")


SCORES = "central differences of log-likelihoods of other sessions"

REPORT = Report(
    "identifiability",
    sources=("inference/fits/identifiability.py",),
    sentences=(
        Claim("{names}: not at all", f"{SCORES}: all are 0", _not_at_all),
        Claim("{names} only through {what}", f"{SCORES}: they span these alone", _only_through),
        Claim(
            "{names} cannot {all} be told from a session (only {what} that {depend} on their "
            "values)",
            f"{SCORES}: their rank at each theta",
            _cannot_all,
        ),
        Claim(
            "at {n} of {all} theta a session says nothing along one more direction or several",
            f"{SCORES}: their rank at each theta",
            _at_some,
        ),
        Claim(
            "{what}: hardly at all; a session leaves {left}% of its prior sd",
            f"{SCORES}: their mean square and the prior's precision, inverted",
            _hardly,
        ),
        Claim("A session tells every parameter apart from the others.", f"{SCORES}: rank", _tells),
        Claim(
            "This holds at the one theta looked at; other values may differ.",
            "the values of theta",
            _one_theta,
        ),
        Claim("There is no parameter to estimate.", "the JSON", _none),
        Claim(
            "expected information of one session of {n} trials: {model} in {place} ({m} theta x "
            "{s} sessions{failed})",
            "the design",
            _headed,
        ),
    ),
)
