"""Sentences of `channel`.

Facts: a `SimpleNamespace` with `content` (what to_json gives), `rows` (by contaminants in words,
the raw rows of the study: per subject the counts of each outcome, true values, ends of intervals)
and `study` (place, model, method, subjects, sessions).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy.stats import binom

from claims import Claim, Explanation, Report, check, verdicts
from claims.recovery import share_error

OUTCOMES = ("ok", "repaired", "malformed", "refused", "truncated", "empty", "error")
READ = ("ok", "repaired")


def entry_of(facts, words):
    """What the JSON holds of one set of contaminants, and its usable and all rows."""
    label = words["set"]
    told = {
        ",".join(f"{k}={v!r}" for k, v in one["contaminants"].items() if v) or "none": one
        for one in facts.content["entries"]
    }
    rows = facts.rows[label]
    return told[label], rows[rows["status"] != "failed"], rows


def counts_of(rows):
    """Trials by outcome."""
    return {o: int(rows[f"n_{o}"].sum()) if f"n_{o}" in rows else 0 for o in OUTCOMES}


def trials_of(rows):
    """How many were lived."""
    return int(rows["trials"].sum()) if "trials" in rows else 0


def number(text):
    """A number with commas."""
    return int(text.replace(",", ""))


def _missing(facts, words):
    _, _, rows = entry_of(facts, words)
    counts = counts_of(rows)
    assert int(words["missing"]) == sum(n for o, n in counts.items() if o not in READ)
    assert int(words["trials"]) == trials_of(rows)


def _failed(facts, words):
    _, _, rows = entry_of(facts, words)
    own = rows[rows["message"] == words["why"]]
    assert int(words["n"]) == len(own[own["status"] == "failed"]) > 0
    assert int(words["of"]) == len(rows)


def _failed_printed(facts, words):
    n = sum(
        int(((rows["status"] == "failed") & (rows["message"] == words["why"])).sum())
        for rows in facts.rows.values()
    )
    assert 0 < int(words["n"]) <= n


def _header(facts, words):
    study = facts.study
    assert [words[k] for k in ("model", "place", "method")] == [
        study["model"], study["environment"], study["method"]
    ]  # fmt: skip
    assert [int(words[k]) for k in ("subjects", "sessions")] == [
        study["subjects"], study["sessions"]
    ]  # fmt: skip


def _title(facts, words):
    assert [words[k] for k in ("model", "place")] == [
        facts.study[k] for k in ("model", "environment")
    ]


def _subjects(facts, words):
    assert int(words["subjects"]) == facts.study["subjects"]
    first, *others = (rows.filter(regex="^true_") for rows in facts.rows.values())
    for other in others:
        np.testing.assert_array_equal(first.dropna(), other.dropna())


def same(rows, usable):
    """Trials that differ, and the largest difference of estimates with nothing missing."""
    if "trials" not in rows:
        return 0, np.nan, 0
    read = usable[usable["trials"] == sum(usable[f"n_{o}"] for o in READ)]
    names = [c.removeprefix("true_") for c in usable if c.startswith("true_")]
    apart = max(
        (float((read[n] - read[f"direct_{n}"]).abs().max()) for n in names if len(read)),
        default=np.nan,
    )
    return int(rows["differing"].sum()), apart, len(read)


def _trials_differ(facts, words):
    _, _, rows = entry_of(facts, words)
    assert number(words["n"]) == int(rows["differing"].sum())
    assert number(words["trials"]) == trials_of(rows)


def _all_lack(facts, words):
    assert same(*entry_of(facts, words)[:0:-1])[2] == 0


def _identical(facts, words):
    _, apart, n = same(*entry_of(facts, words)[:0:-1])
    assert n > 0
    assert apart == 0.0


def _apart(facts, words):
    _, apart, n = same(*entry_of(facts, words)[:0:-1])
    assert n > 0
    assert apart > 0.0  # on the natural scale; the printed one is on the line
    assert float(words["by"]) > 0.0


def _same_verdict(facts, words):
    _, usable, rows = entry_of(facts, words)
    differing, apart, _ = same(rows, usable)
    good = differing == 0 and not apart > 0
    assert words["word"] == (
        "not judged" if trials_of(rows) == 0 else "confirmed" if good else "not confirmed"
    )


def _nothing_lived(facts, words):
    assert trials_of(entry_of(facts, words)[2]) == 0


def strange(facts, words):
    """Outcomes whose exact two-sided test says that they are not as probable as the dials say."""
    told, _, rows = entry_of(facts, words)
    dials, counts = told["contaminants"], counts_of(rows)
    lost = dials["malformed"] + dials["refusal"] + dials["truncation"]
    fixed = 0.0 if facts.study["marked"] else dials["verbosity"] * (1 - lost)
    expected = {
        "ok": 1 - lost - fixed, "repaired": fixed, "malformed": dials["malformed"],
        "refused": dials["refusal"], "truncated": dials["truncation"], "empty": 0.0, "error": 0.0,
    }  # fmt: skip
    total = sum(counts.values())
    level = facts.level / (len(OUTCOMES) * len(facts.content["entries"]))
    found = []
    for outcome, n in counts.items():
        law = binom.pmf(np.arange(total + 1), total, min(max(expected[outcome], 0.0), 1.0))
        if law[law <= law[n] * (1 + 1e-7)].sum() < level:
            found.append(f"{outcome} {n / total:.1%} instead of {expected[outcome]:.1%}")
    return found, total


def _have_outcome(facts, words):
    _, _, rows = entry_of(facts, words)
    assert number(words["n"]) == sum(counts_of(rows).values())
    assert number(words["trials"]) == trials_of(rows)


def _rates(facts, words):
    assert strange(facts, words)[0] == []


def _other_rates(facts, words):
    assert words["which"] == ", ".join(strange(facts, words)[0]) != ""


def _outcome_verdict(facts, words):
    _, _, rows = entry_of(facts, words)
    found, total = strange(facts, words) if trials_of(rows) else ([], 0)
    good = total == trials_of(rows) and not found
    assert words["word"] == (
        "not judged" if trials_of(rows) == 0 else "confirmed" if good else "not confirmed"
    )


def coverage(usable, which):
    """By parameter, how often the 90% intervals of one kind hold the truth."""
    names = [c.removeprefix("true_") for c in usable if c.startswith("true_")]
    return {
        n: sum(
            low <= true <= high
            for low, true, high in zip(
                usable[f"{which}low_{n}"], usable[f"true_{n}"], usable[f"{which}high_{n}"],
                strict=True,
            )
        ) / len(usable)
        for n in names
    }  # fmt: skip


def _held(facts, words):
    _, usable, _ = entry_of(facts, words)
    for which, share, name in (("bounds_", "share", "name"), ("", "plain", "other")):
        found = coverage(usable, which)
        assert words[share] == f"{min(found.values()):.0%}"
        assert found[words[name]] == min(found.values())


def missing_of(rows):
    """How many answers were not read."""
    return sum(n for o, n in counts_of(rows).items() if o not in READ)


def _none_missing(facts, words):
    assert missing_of(entry_of(facts, words)[2]) == 0


def _few_usable(facts, words):
    assert int(words["n"]) == len(entry_of(facts, words)[1]) < int(words["least"]) == facts.least


def _too_many_failed(facts, words):
    _, usable, rows = entry_of(facts, words)
    assert words["share"] == f"{1 - len(usable) / len(rows):.0%}"
    assert 1 - len(usable) / len(rows) > facts.most_failures


def _bounds_verdict(facts, words):
    _, usable, rows = entry_of(facts, words)
    n = len(usable)
    judged = missing_of(rows) > 0 and n >= facts.least and 1 - n / len(rows) <= facts.most_failures
    if not judged:
        assert words["word"] == "not judged"
        return
    short = [(0.9 - s) / share_error(s, n) for s in coverage(usable, "bounds_").values()]
    worst = max(short)  # in errors below the 90% that are promised
    if worst > facts.errors:
        assert words["word"] == "not confirmed"
    else:
        assert words["word"] == (
            "between confirmed and not confirmed" if worst > 0 else "confirmed"
        )


def _open_as(reason):
    """The reasons that a word between two gives are those of `claims.verdicts`."""

    def proof(facts, words):
        _, usable, _ = entry_of(facts, words)
        n = len(usable)
        held = {name: (s, share_error(s, n)) for name, s in coverage(usable, "bounds_").items()}
        word = "between confirmed and not confirmed"
        about = SimpleNamespace(bounds=held, n=n, word=word, unit="subject", size=1)
        check(verdicts.REPORT, [reason.format(**words)], about)

    return proof


RAW = "sums over the rows of the study"
REPORT = Report(
    "channel",
    sources=("validation/channel/channel_study.py", "validation/channel/channel_page.py"),
    sentences=(
        Claim(
            "channel of {model} in {place}, {method}, {subjects} subjects x {sessions} sessions",
            "the settings asked for",
            _header,
        ),
        Explanation("share of {mass} intervals that hold the truth"),
        Claim("{set}: {missing} of {trials} answers missing", RAW, _missing),
        Claim("{n} failed: {why}", RAW, _failed_printed),
        Explanation("(Monte-Carlo errors)"),
        Explanation(
            "Estimate from the words against that of the same mind directly. Bars: the bounds, "
            "from the lowest to the highest estimate over all that the missing answers could have "
            "been."
        ),
        Claim(
            "Does {model} come through the words of {place} as it is?",
            "the settings asked for",
            _title,
        ),
        Claim(
            "{subjects}, the same with each set of contaminants",
            "true parameters compared across the sets",
            _subjects,
        ),
        Claim("{set}: {n} of {of} without an estimate: {why}.", RAW, _failed),
        Explanation(
            "Both paths are lived with the same random numbers, so that no trial may differ: "
            "before the first answer that is not read, from the compiled simulation; after it, "
            "from the step interface with the same answers withheld."
        ),
        Explanation(
            "A trial without a readable answer adds nothing to the likelihood. That is right if "
            "answers are missing at random, as these are; the bounds make no such claim. With "
            "sampling error they reach from the lower end of the {mass} interval at the lowest "
            "estimate to the upper end of that at the highest, and should hold the truth at least "
            "that often."
        ),
        Explanation(
            "Intervals of the rates (Wilson 1927) take trials as independent. Rates are those of "
            "the dials unless an exact test says otherwise, at {level} over all of them."
        ),
        Explanation(
            "Monte-Carlo standard errors in parentheses. Subjects without an estimate are left out "
            "of coverage and counted."
        ),
        Explanation("Intervals at {mass} that hold the truth"),
        Claim("{set}, trials = {word}", "the rule, over the rows", _same_verdict),
        Claim(
            "{set}, trials: {n} of {trials} trials differ from those of the direct path.",
            RAW,
            _trials_differ,
        ),
        Claim("{set}, trials: No trial was lived.", RAW, _nothing_lived),
        Claim(
            "{set}, trials: No subject has all answers and both estimates, so none are compared.",
            RAW,
            _all_lack,
        ),
        Claim(
            "{set}, trials: Where every answer was read, the estimates are identical.",
            "both estimates in the rows",
            _identical,
        ),
        Claim(
            "{set}, trials: Where every answer was read, estimates differ by up to {by}.",
            "both estimates in the rows",
            _apart,
        ),
        Claim("{set}, outcomes = {word}", "SciPy's binomial law, over the rows", _outcome_verdict),
        Claim("{set}, outcomes: {n} of {trials} trials have an outcome.", RAW, _have_outcome),
        Claim("{set}, outcomes: No trial was lived.", RAW, _nothing_lived),
        Claim(
            "{set}, outcomes: No rate differs from that of the dials by more than chance.",
            "SciPy's binomial law and the dials",
            _rates,
        ),
        Claim(
            "{set}, outcomes: Rates are not those of the dials: {which}.",
            "SciPy's binomial law and the dials",
            _other_rates,
        ),
        Claim("{set}, bounds = {word}", "coverage counted over the rows", _bounds_verdict),
        Claim("{set}, bounds: No answer is missing.", RAW, _none_missing),
        Claim("{set}, bounds: Usable fits: {n}; {least} are needed.", RAW, _few_usable),
        Claim("{set}, bounds: {share} of the fits failed.", RAW, _too_many_failed),
        Claim(
            "{set}, bounds: Bounds at 90% hold the truth in {share} ({name}) or more; intervals "
            "that take answers to be missing at random in {plain} ({other}) or more.",
            "coverage counted over the rows",
            _held,
        ),
        *(
            Claim(f"{{set}}, bounds: {open_}", "that of the verdict's reason", _open_as(open_))
            for open_ in (
                "Whether that is less than the 90% promised is open.",
                "About {n} more {unit}s decide (with a chance of 80% if the true number is the "
                "estimated one).",
                "One more {unit} decides (with a chance of 80% if the true number is the "
                "estimated one).",
                "So near the limit, no feasible number of {unit}s decides.",
            )
        ),
    ),
)
