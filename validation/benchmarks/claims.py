"""Claims of papers and the numbers that they print, each held against what is computed here.

A claim is a line of a plan. It names scores, a direction, and the smallest effect that counts. Its
effect is a mean over participants, a difference or a correlation over them, or a coefficient of a
regression on features. Of one participant alone it is the score with its own error. The verdict
follows from the 95% interval:

==============  ================================================================================
holds           above, below: the interval lies on the claimed side of 0; none: it lies within the
                smallest effect that counts, to both sides of 0
does not hold   above, below: the interval holds no effect as large as the smallest that counts;
                none: it does not hold 0, and reaches beyond the smallest that counts
cannot be told  else
==============  ================================================================================

So where there is no effect, "holds" is said in at most 2.5%; and where it is as large as counts,
"does not hold" in at most 2.5%. `docs/conclusions.py claims` has both, and how often neither is
said. Intervals by the smallest effect that counts are equivalence tests (Schuirmann 1987, Journal
of Pharmacokinetics and Biopharmaceutics 15, 657-680).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from fnmatch import fnmatchcase
from math import atanh, inf, isfinite, nan, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.environments import unknown
from knownminds.inference.differences import Side, difference
from knownminds.validation.data.feature_regression import regress_on_features
from knownminds.validation.data.score_scale import read_csv
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.engine.parts import Part
from knownminds.validation.pages.views import WHO, Cell, Rows, ends

from .comparison import side_of
from .paper import part_of

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"
VERIFIED, DIFFERS, NOT_FOUND = "verified", "differs", "not found"
NOT_CHECKED, NOT_OFFERED = "not checked", "not offered"
ENDS = (VERIFIED, DIFFERS, NOT_FOUND, NOT_CHECKED, NOT_OFFERED)
ABOVE, BELOW, NONE = "above", "below", "none"
PUBLISHED, RUN_NOW = "published data", "models run now"
PEOPLE = "people"  # in `minus`: the same score of people
LEAST_MODELS = 2  # over which there is a spread
POWER = 0.8  # with which an effect is said to be seen
CLAIMS_TITLE, NUMBERS_TITLE = "Published claims", "Published numbers"
CLAIMS_TEXT = (
    "Each claim of the paper, and what comes of it here. It holds where the 95% interval of its "
    "effect lies on the claimed side of 0. It does not hold where the interval has no effect as "
    "large as the smallest that counts, which the plan says. Else it cannot be told, and the table "
    "says which effect this size sees in 80%. Participants are the unit; of one participant alone "
    "the error is that of its own sessions, of estimates that of its answers. A claim ends as "
    "verified (the published verdict came "
    "out), differs (the opposite one), not found (neither), not checked (what it needs is not "
    "there) or not offered. It ends by the published data where there are any, else by the models "
    "that run now."
)
NUMBERS_TEXT = (
    "Numbers that the paper prints, beside those computed here. One is verified if ours rounds to "
    "it, and differs if not."
)


@dataclass(frozen=True)
class Effect:
    """What a claim is about, as a number.

    Parameters
    ----------
    value, low, high, p_value : With its 95% interval, and the two-sided p-value against 0.
    sees : The effect that a test of this size finds in 80%.
    n, unit : How many of what were sampled.
    reason : Why there is none.
    """

    value: float = nan
    low: float = nan
    high: float = nan
    p_value: float = nan
    sees: float = nan
    n: int = 0
    unit: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, as its plan has it.

    Parameters
    ----------
    name : As the paper counts it.
    compared : What is compared, in words.
    of : The score; several by a pattern with *, or joined by |, are averaged in each participant.
    minus : A score that is subtracted within participants, or "people", of whom it is the same
        score.
    along : A score with which that is correlated over participants.
    on : A feature of models on which the score is regressed, with all others, or `alone`.
    than : A number that is subtracted.
    direction : above, below or none.
    least : The smallest effect that counts, above 0.
    test : In words.
    published : What the paper says of it: holds, or does not hold.
    place : Where it says so.
    offered : If it is not computed, why.
    """

    name: str
    compared: str
    published: str
    place: str
    of: str = ""
    direction: str = ABOVE
    least: float = nan
    test: str = "mean, t"
    minus: str = ""
    along: str = ""
    on: str = ""
    alone: bool = False
    than: float = 0.0
    offered: str = ""


def read_claims(table: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the claims of a plan.

    Raises
    ------
    ValueError : If a line has another entry, lacks one, or has a value that cannot be.
    """
    known = [field.name for field in fields(Claim) if field.name != "name"]
    needed = [f.name for f in fields(Claim) if f.default is MISSING and f.name != "name"]
    claims = []
    for name, line in table.items():
        if not isinstance(line, dict):
            raise ValueError(f"A claim is a table of entries; {name} is {line!r}.")
        for entry in line:
            if entry not in known:
                raise ValueError(unknown("entry", entry, known, f" of the claim {name}"))
        needs = needed if line.get("offered") else [*needed, "of", "least"]
        if lacking := [entry for entry in needs if entry not in line]:
            raise ValueError(f"A claim says {', '.join(needs)}; {name} lacks {lacking[0]}.")
        claim = Claim(name, **line)
        for entry, said, allowed in (
            ("direction", claim.direction, (ABOVE, BELOW, NONE)),
            ("published", claim.published, (HOLDS, FAILS)),
        ):
            if said not in allowed:
                raise ValueError(unknown(entry, str(said), allowed, f" of the claim {name}"))
        if not claim.offered and not claim.least > 0:
            raise ValueError(
                f"The smallest effect that counts is above 0; the claim {name} has {claim.least}."
            )
        claims.append(claim)
    return tuple(claims)


# Effects ----------------------------------------------------------------------------------------


def _estimated(value: float, error: float, freedom: float, n: int, unit: str) -> Effect:
    """Return an effect with Student's interval; without an error there is none."""
    if not isfinite(value) or not error > 0:
        return Effect(
            value=value, n=n, unit=unit, reason="no standard error, or too few answers for one"
        )
    law = scipy.stats.t(freedom) if isfinite(freedom) else scipy.stats.norm()
    half, seen = float(law.ppf(0.975)), float(law.ppf(0.975) + law.ppf(POWER))
    p_value = float(2.0 * law.sf(abs(value) / error))
    return Effect(value, value - half * error, value + half * error, p_value, seen * error, n, unit)


def chosen(scores: pd.DataFrame, pattern: str) -> pd.DataFrame:
    """Return the rows of the scores that a pattern names, those with a value."""
    some = pattern.split("|")
    names = [n for n in scores["score"].unique() if any(fnmatchcase(str(n), p) for p in some)]
    return scores[scores["score"].isin(names) & scores["value"].notna()]


def _of_each(scores: pd.DataFrame, pattern: str, who: Collection[str]) -> dict[str, Side]:
    """Return the score of each participant; several are averaged.

    Errors of several are averaged too, as if they went together, which makes none too small.
    """
    sides: dict[str, Side] = {}
    rows = chosen(scores, pattern)
    for name, some in rows[rows[WHO].isin(list(who))].groupby(WHO, sort=False):
        if len(some) == 1:
            row = some.iloc[0]
            sides[str(name)] = side_of(
                row["value"], row["standard_error"], row["freedom"], row[INFLUENCE]
            )
        else:
            freedom = float(some["freedom"].astype(float).fillna(inf).min())
            sides[str(name)] = side_of(
                some["value"].mean(), some["standard_error"].mean(skipna=False), freedom, {}
            )
    return sides


def effect_of(
    claim: Claim,
    scores: pd.DataFrame,
    who: Sequence[str],
    people: Sequence[str] = (),
    features: pd.DataFrame | None = None,
) -> Effect:
    """Return the effect that a claim is about, over some participants.

    Parameters
    ----------
    scores : Rows of participants and people: participant, score, value, standard_error, freedom and
        influence.
    who : The participants over whom it is.
    people : Who among the rows are people.
    features : A table with a row per participant, for regressions.
    """
    held = _of_each(scores, claim.of, who)
    if not held:
        return Effect(reason=f"no score {claim.of!r}")
    if claim.on:
        return _regressed(claim, held, features)
    if claim.along:
        return _correlated(claim, held, _of_each(scores, claim.along, who))
    if claim.minus and claim.minus != PEOPLE:
        others = _of_each(scores, claim.minus, who)
        held = {name: _gap(side, others[name]) for name, side in held.items() if name in others}
        if not held:
            return Effect(reason=f"no score {claim.minus!r} of the same participants")
    mean = _mean({name: side for name, side in held.items() if isfinite(side.value)})
    if claim.minus != PEOPLE:
        value, error, freedom, n, unit = mean
        return _estimated(value - claim.than, error, freedom, n, unit)
    theirs = _of_each(scores, claim.of, people)
    if not theirs:
        return Effect(reason="no people with this score")
    first, second = Side(*mean[:3], {}), Side(*_mean(theirs)[:3], {})
    gap = difference(first, second)
    return _estimated(gap.value, gap.standard_error, gap.freedom, mean[3], mean[4])


def _gap(one: Side, other: Side) -> Side:
    """Return the difference of two scores of one participant, of pairs where there are any."""
    gap = difference(one, other)
    return Side(gap.value, gap.standard_error, gap.freedom, {})


def _mean(held: Mapping[str, Side]) -> tuple[float, float, float, int, str]:
    """Return mean, error, degrees of freedom, n and unit; of one participant those of its own."""
    sides, n = list(held.values()), len(held)
    if n < LEAST_MODELS:
        one = sides[0] if sides else Side(nan, nan, inf, {})
        return one.value, one.standard_error, one.freedom, n, "participant alone"
    values = np.array([side.value for side in sides])
    error = float(values.std(ddof=1)) / sqrt(n)
    return float(values.mean()), error, n - 1.0, n, "participants"


def _correlated(claim: Claim, held: Mapping[str, Side], others: Mapping[str, Side]) -> Effect:
    """Return Spearman's correlation over participants with Fisher's interval."""
    shared = [name for name in held if name in others]
    n = len(shared)
    if n < 5:
        why = f"a correlation over participants: {n} of 5 at least have both"
        return Effect(n=n, unit="participants", reason=why)
    pair = [np.array([of[name].value for name in shared]) for of in (held, others)]
    r = float(scipy.stats.spearmanr(*pair).statistic)
    if not isfinite(r):
        return Effect(n=n, unit="participants", reason="one of both scores does not vary")
    # The error of Spearman's coefficient on Fisher's scale is that of Bonett and Wright (2000).
    r = max(-1 + 1e-9, min(1 - 1e-9, r))
    z, error = atanh(r), sqrt((1.0 + r * r / 2.0) / (n - 3.0))
    wide = 1.959964 * error
    p_value = float(2.0 * scipy.stats.norm.sf(abs(z) / error))
    sees = tanh((1.959964 + 0.841621) / sqrt(n - 3.0))
    return Effect(r, tanh(z - wide), tanh(z + wide), p_value, sees, n, "participants")


def _regressed(claim: Claim, held: Mapping[str, Side], features: pd.DataFrame | None) -> Effect:
    """Return the coefficient of a feature; score and features are standardised."""
    unit = "participants"
    if features is None or claim.on not in features:
        return Effect(
            n=len(held), unit=unit, reason=f"no feature {claim.on!r} of these (--features)"
        )
    known = set(features[WHO].astype(str))
    rows = [(name, side.value) for name, side in held.items() if name in known]
    scores = pd.DataFrame(rows, columns=[WHO, "score"]).assign(metric=claim.of)
    if not len(scores):
        return Effect(reason="none of these has features (--features)")
    table = regress_on_features(
        scores, features, feature=[claim.on] if claim.alone else None, standardise=True
    )
    status = str(table["status"].iloc[0])
    if "coefficient" not in table or status != "ok":
        return Effect(n=len(scores), unit=unit, reason=status)
    row = table[table["feature"] == claim.on].iloc[0]
    return _estimated(
        float(row["coefficient"]), float(row["standard_error"]),
        float(row["degrees_of_freedom"]), int(row["participants"]), unit,
    )  # fmt: skip


# Verdicts ---------------------------------------------------------------------------------------


def verdict_of(claim: Claim, effect: Effect) -> str:
    """Return what the interval of an effect says of a claim; "" where there is none."""
    if effect.reason or not isfinite(effect.low + effect.high):
        return ""
    low, high = effect.low, effect.high
    if claim.direction == NONE:
        if -claim.least < low and high < claim.least:
            return HOLDS
        return FAILS if low > 0 or high < 0 else UNTOLD
    if claim.direction == BELOW:
        low, high = -high, -low
    if low > 0:
        return HOLDS
    return FAILS if high < claim.least else UNTOLD


def end_of(claim: Claim, verdict: str) -> str:
    """Return how the line of a claim ends."""
    if claim.offered:
        return NOT_OFFERED
    if not verdict:
        return NOT_CHECKED
    if verdict == UNTOLD:
        return NOT_FOUND
    return VERIFIED if verdict == claim.published else DIFFERS


@dataclass(frozen=True, eq=False)
class ClaimGroup:
    """Participants over whom claims are judged together.

    Parameters
    ----------
    name : As the page calls them.
    who : Who they are.
    scores : Their scores, and those of people.
    people : Who among the rows are people.
    """

    name: str
    who: tuple[str, ...]
    scores: pd.DataFrame
    people: tuple[str, ...] = ()


def judged(
    claims: Iterable[Claim], groups: Sequence[ClaimGroup], features: pd.DataFrame | None
) -> pd.DataFrame:
    """Return one row per claim and group: effect, verdict, how it ends, and the reason.

    A claim ends by the first group that has a verdict on it, published data before the models that
    run now; known agents are references and end no claim.
    """
    rows = []
    for claim in claims:
        effects = {} if claim.offered else {
            group.name: effect_of(claim, group.scores, group.who, group.people, features)
            for group in groups
        }  # fmt: skip
        words = {name: verdict_of(claim, effect) for name, effect in effects.items()}
        deciding = next((n for n in (PUBLISHED, RUN_NOW) if words.get(n)), "")
        end = end_of(claim, words.get(deciding, ""))
        shared = {
            "claim": claim.name, "compared": claim.compared, "direction": claim.direction,
            "test": claim.test, "least": claim.least, "place": claim.place,
            "published": claim.published, "end": end,
        }  # fmt: skip
        if not effects:
            why = claim.offered or "no answers"
            rows.append({**shared, "group": "", "verdict": "", "decides": True, "reason": why})
        for k, (name, effect) in enumerate(effects.items()):
            decides = name == deciding or (not deciding and k == 0)
            rows.append({
                **shared, "group": name, **vars(effect), "verdict": words[name],
                "decides": decides, "reason": effect.reason or _said(effect),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _said(effect: Effect) -> str:
    return f"p {effect.p_value:.2g}; {effect.n} {effect.unit}, which see {effect.sees:.2g}"


def _looked_up(said: pd.Series[str]) -> Cell:
    return lambda row: said.get(row["claim"]) or "-"


def _ended(row: Mapping[Any, Any]) -> str:
    """Say how a line ends, and by what it differs if it does."""
    if row["end"] != DIFFERS:
        return str(row["end"])
    return (
        f"{DIFFERS}: {row['verdict']}"
        if "verdict" in row
        else f"{DIFFERS} by {row['difference']:.3g}"
    )


def claims_part(rows: pd.DataFrame) -> Part:
    """Return the part of claims that are judged, see `judged`."""
    if not len(rows):
        return Part("claims", CLAIMS_TITLE, "The plan has no claims.")
    numbers = ["value", "low", "high", "sees"]
    whole = rows.reindex(columns=[*rows, *(n for n in numbers if n not in rows)])
    deciding = whole[whole["decides"]]
    others = {
        str(name): part.set_index("claim")["verdict"]
        for name, part in rows[rows["group"] != ""].groupby("group", sort=False)
    }
    columns: dict[str, Cell] = {"published": "published", "ends": _ended, "effect": ends()}
    columns |= {name: _looked_up(said) for name, said in others.items()}
    counts = deciding["end"].value_counts().reindex(list(ENDS), fill_value=0)
    reasons: dict[str, Cell] = {
        "compared": "compared", "direction": "direction", "counts from": "least", "test": "test",
        "place": "place", "reason": "reason",
    }  # fmt: skip
    return part_of(
        "claims", CLAIMS_TITLE, CLAIMS_TEXT,
        (
            whole,
            Rows("Claims", columns, ("claim",), of=deciding),
            Rows("How the claims end", {name: name for name in ENDS}, (),
                 of=pd.DataFrame([counts.to_dict()])),
            Rows("How each was judged", reasons, ("claim",), of=deciding),
        ),
    )  # fmt: skip


# Printed numbers --------------------------------------------------------------------------------


def read_numbers(plan: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the numbers of a paper that have a line, and how many each of its places prints.

    The first table has the columns place, row, participant, of, printed (as text, with its digits)
    and, where they are needed, minus, along, on, alone, than, scale, offered (why it is not
    computed) and why (why ours is known to differ); the second has place and numbers. Both are
    empty where a paper has no file.
    """
    lines = plan.with_name(f"{name}_values.csv")
    places = plan.with_name(f"{name}_places.csv")
    columns = ["place", "row", "participant", "of", "printed"]
    values = pd.DataFrame(columns=columns)
    if lines.is_file():
        read_csv("A table of published numbers", lines, columns)
        values = pd.read_csv(lines, dtype=str, keep_default_na=False)
    counts = pd.DataFrame(columns=["place", "numbers"])
    if places.is_file():
        counts = read_csv("A table of places", places, ["place", "numbers"])
    return values, counts


def beside_printed(
    values: pd.DataFrame, groups: Sequence[ClaimGroup], features: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the printed numbers with ours, the difference, and how each line ends."""
    held = {group.name: group for group in groups}
    group = held.get(PUBLISHED)
    rows = []
    for line in values.to_dict("records"):
        row = {name: line[name] for name in ("place", "row", "participant", "printed")}
        effect = Effect(reason="no published data was read (--from FOLDER)")
        if group is not None:
            claim = Claim(
                line["row"], "", HOLDS, line["place"], line["of"], least=1.0,
                minus=line.get("minus", ""), along=line.get("along", ""), on=line.get("on", ""),
                alone=bool(line.get("alone")), than=float(line.get("than") or 0.0),
            )  # fmt: skip
            who = [line["participant"]] if line["participant"] else list(group.who)
            there = (*group.who, *group.people)
            if line["participant"] and line["participant"] not in there:
                effect = Effect(reason=f"no answers of {line['participant']} in the folder")
            else:
                effect = effect_of(claim, group.scores, who, group.people, features)
        if line.get("offered"):
            row |= {"ours": nan, "low": nan, "high": nan, "difference": nan, "end": NOT_OFFERED,
                    "reason": line["offered"]}  # fmt: skip
            rows.append(row)
            continue
        scale, printed = float(line.get("scale") or 1.0), float(line["printed"])
        value = effect.value * scale
        if isfinite(value):
            digits = len(line["printed"].partition(".")[2])
            same = abs(value - printed) <= 0.5 * 10.0**-digits + 1e-9
            why = "" if same else line.get("why") or "ours does not round to it"
            row |= {"ours": value, "low": effect.low * scale, "high": effect.high * scale,
                    "difference": value - printed, "end": VERIFIED if same else DIFFERS,
                    "reason": why}  # fmt: skip
        else:
            row |= {"ours": nan, "low": nan, "high": nan, "difference": nan, "end": NOT_CHECKED,
                    "reason": effect.reason}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def covered(values: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """Return of each place how many numbers it prints, and how many of these no line covers."""
    lines = values.groupby("place").size() if len(values) else pd.Series(dtype=int)
    rows = places.assign(lines=places["place"].map(lines).fillna(0).astype(int))
    return rows.assign(uncovered=(rows["numbers"] - rows["lines"]).clip(lower=0))


def numbers_part(rows: pd.DataFrame, places: pd.DataFrame) -> Part:
    """Return the part of printed numbers beside ours."""
    columns: dict[str, Cell] = {
        "printed": "printed", "ours": ends("ours"), "ends": _ended,
        "reason": lambda row: row["reason"] or "-",
    }  # fmt: skip
    counts = {name: name for name in ("numbers", "lines", "uncovered")}
    views = [Rows("Printed numbers, and ours", columns, ("place", "row", "participant"))]
    if len(places):
        views.append(Rows("Printed numbers that no line covers", counts, ("place",), of=places))
    return part_of("numbers", NUMBERS_TITLE, NUMBERS_TEXT, (rows, *views))
