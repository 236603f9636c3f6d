"""Whether stated beliefs drive decisions: all tests of coherence for a set of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from knownminds.environments import Diagnosis, Rate, Trials, answer_columns, make, outcome_rates
from knownminds.inference.diagnosis.belief_decisions import ELICITATIONS, BeliefDecisions
from knownminds.inference.diagnosis.conditional_independence import conditional_independence
from knownminds.inference.diagnosis.elicitation_consistency import elicitation_consistency
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import monotone_choice
from knownminds.inference.diagnosis.predictive_gain import Learner, predictive_gain
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.data.trials_of_runs import ALONE, experiments_of, read_all, runs_in
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.page import number

FILE = "beliefs.json"
PLACE = "diagnosis"
BY = "model"
LEVEL = 0.05
FALLS = " falls"  # ends the names of rows that test single pairs of actions
TESTS = (
    "conditional independence",
    "predictive gain",
    "monotone choice",
    "elicitation consistency",
    "iterated expectation",
)
NUMBERS = ("estimate", "low", "high", "null", "p_value", "published", "published_low",
           "published_high", "n")  # fmt: skip
SHARES = ("participant", "first", "second", "bin", "belief", "chose_first", "chose_second", "share")
LEARNER: Learner = "gradient_boosting"
PERMUTATIONS, BOOTSTRAPS = 1000, 500


@dataclass(frozen=True, eq=False)
class BeliefBattery(Reported):
    """What all tests of coherence say of each participant.

    Parameters
    ----------
    sources
        The files and folders.
    by
        The column whose values are participants; "" if there is one.
    table
        One row per participant and test: participant, test, of (which variant), estimate, low and
        high (95%), null (value under the hypothesis), p_value, n, unit, excluded (by reason),
        the published variant with its interval and finding (what it says, or ""), and status:
        "ok", or why there is no estimate.
    shares
        One row per participant, pair of actions and bin of belief: what each chose.
    answers
        One row per participant: contexts, rows, and what was asked and is missing, in words.
    outcomes
        How often each outcome of an answer occurred.
    """

    file: ClassVar[str] = FILE

    sources: tuple[str, ...]
    by: str
    table: pd.DataFrame
    shares: pd.DataFrame
    answers: pd.DataFrame
    outcomes: tuple[Rate, ...]
    options: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def participants(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.answers["participant"])

    def to_frame(self) -> pd.DataFrame:
        """One row per participant and test."""
        return self.table.copy()

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "sources": list(self.sources),
            "by": self.by,
            "tests": self.table.to_dict("records"),
            "shares": self.shares.to_dict("records"),
            "answers": self.answers.to_dict("records"),
            "outcomes": {rate.outcome: rate.count for rate in self.outcomes},
            "options": dict(self.options),
            "versions": dict(self.versions),
        }

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The tests, and what was chosen by belief."""
        return {"beliefs": self.table, "monotone_odds": self.shares}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> BeliefBattery:
        """Make a battery of what `to_dict` gave."""
        return cls(
            tuple(found["sources"]),
            found["by"],
            pd.DataFrame(found["tests"]).astype(dict.fromkeys(NUMBERS, float)),
            pd.DataFrame(found["shares"], columns=list(SHARES)).astype({"share": float}),
            pd.DataFrame(found["answers"]),
            outcome_rates(found["outcomes"]),
            found["options"],
            found["versions"],
        )

    def __str__(self) -> str:
        """A table per participant: each test, and the published variant beside it."""
        names = [named(test) for test in self.table.to_dict("records")]
        wide = max(map(len, names), default=0) + 2
        lines: list[str] = []
        for row in self.answers.to_dict("records"):
            who = row["participant"]
            told = f"{who}: rows {row['rows']:,}, contexts {row['contexts']:,}"
            lines += [*([""] if lines else []), "; ".join([told, *row["missing"]])]
            lines.append(
                f"{'test':<{wide}}{'estimate':>9}{'95%':>18}{'null':>8}{'p':>8}{'n':>6}  published"
            )
            own = self.table[self.table["participant"] == who]
            for test in own.to_dict("records"):
                if test["status"] != "ok":
                    lines.append(f"{named(test):<{wide}} none: {test['status']}")
                    continue
                ends = f"{test['low']:.3f} to {test['high']:.3f}"
                lines.append(
                    f"{named(test):<{wide}}{test['estimate']:>9.3f}{ends:>18}"
                    f"{number(test['null']):>8}{probability(test['p_value']):>8}{test['n']:>6.0f}  "
                    f"{published(test)}"
                )
                left = [f"{n} {why}" for why, n in test["excluded"].items() if n]
                lines += [f"{'':<{wide}}  left out: {', '.join(left)}"] if left else []
        return "\n".join(lines)


read_battery = BeliefBattery.read


def named(test: Mapping[Any, Any]) -> str:
    """Write down which test and variant a row is."""
    return f"{test['test']}, {test['of']}" if test["of"] else str(test["test"])


def probability(p: float) -> str:
    """Write down a p-value; "-" if there is none."""
    return "-" if np.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}"


def published(test: Mapping[Any, Any]) -> str:
    """Write down what the published variant of a test gives and is taken to say."""
    if np.isnan(test["published"]):
        return "-"
    told = f"{test['published']:.3f}"
    if np.isfinite(test["published_low"]):
        told += f" ({test['published_low']:.3f} to {test['published_high']:.3f})"
    return f"{told}: {test['finding']}" if test["finding"] else told


def belief_battery(
    data: Sequence[str | Path] | Trials | pd.DataFrame,
    *,
    by: str | None = None,
    columns: Mapping[str, str] | None = None,
    network: str | None = None,
    learner: Learner = LEARNER,
    permutations: int = PERMUTATIONS,
    bootstraps: int = BOOTSTRAPS,
    seed: int = 0,
) -> BeliefBattery:
    """Test answers to `diagnosis` for coherence, participant by participant.

    Each test has the null value that a rational decider with truthful reports has, with a test of
    that, and beside it the published variant, which may accuse such deciders. A noisy report makes
    decisions depend on the state given what was *stated*: the first two tests then accuse the
    report. A test that the answers do not allow is a row that says why.

    Parameters
    ----------
    data
        Trial files, folders of runs, folders that hold these; or trials.
    by
        The column whose values are participants; if None "model", or else the subject.
    columns
        Our column names -> the files'.
    network
        What the contexts were drawn from, for tests that use the evidence; None for none of these.
    learner
        Of the predictive gain, see `predictive_gain`.
    permutations, bootstraps, seed
        Of the tests, of the intervals, and of both.

    Raises
    ------
    ValueError
        If trials or columns are missing, or there is no such network.
    """
    table = data.frame if isinstance(data, Trials) else data
    sources: tuple[str, ...] = ("trials",)
    if not isinstance(table, pd.DataFrame):
        sources = tuple(str(path) for path in data)  # type: ignore[union-attr]
        table = read_all(table, columns)
    table = table.assign(environment=PLACE).dropna(axis="columns", how="all")
    environment = Diagnosis.as_played(table)
    for column in answer_columns(environment):
        table[column] = table.get(column)
    trials = Trials.from_frame(table.reset_index(drop=True), environment=environment)
    frame = trials.frame
    if by is None:
        subjects = frame["subject"].nunique() > 1 if "subject" in frame else False
        by = BY if BY in frame else "subject" if subjects else None
    read = BeliefDecisions.read(trials, by=by)
    if network is not None:
        evidence = make(PLACE, network=network)
        assert isinstance(evidence, Diagnosis)
        read = read.with_evidence(evidence)
    rows: list[dict[str, Any]] = []
    shares: list[pd.DataFrame] = []
    answers = []
    for name, own in read.each():
        who = name or ALONE
        answers.append(
            {
                "participant": who,
                "contexts": int(own.context.max()) + 1,
                "rows": len(own),
                "missing": [
                    f"{n} of {own.asked[q]} {q} missing" for q, n in own.missing.items() if n
                ],
            }
        )
        rows += [
            {"participant": who, **row}
            for test in (_independence, partial(_gain, learner), _monotone, _elicitation, _iterated)
            for row in test(own, permutations, bootstraps, seed)
        ]
        if "action" in own.frame and "plain" in own.frame:
            try:
                found = monotone_choice(own, bootstraps=0).shares()
            except ValueError:  # which its row says
                continue
            shares.append(found.assign(participant=who)[list(SHARES)])
    return BeliefBattery(
        sources=sources,
        by=by or "",
        table=pd.DataFrame(rows).astype(dict.fromkeys(NUMBERS, float)),
        shares=pd.concat(shares, ignore_index=True) if shares else pd.DataFrame(columns=SHARES),
        answers=pd.DataFrame(answers),
        outcomes=outcome_rates(trials),
        options={
            "columns": dict(columns or {}),
            "network": network,
            "learner": learner,
            "permutations": permutations,
            "bootstraps": bootstraps,
            "seed": seed,
        },
        versions=versions(),
    )


def of_diagnosis(
    paths: Sequence[str | Path], environment: str | None, columns: Mapping[str, str] | None = None
) -> bool:
    """Say whether all trials of some files are answers to `diagnosis`."""
    if environment is not None:
        return environment == PLACE
    for path in runs_in(paths):
        file = path / TRIALS if path.is_dir() else path
        if not file.is_file() or experiments_of(path, columns) != {PLACE}:
            return False
    return True


Rows = list[dict[str, Any]]
# How a row is named by the elicitation of p(z | x): the published one goes without saying.
_PARTS = {"distribution": "", "separate": ", asked singly"}
_NOTHING = dict.fromkeys(NUMBERS, float("nan")) | {
    "of": "", "unit": "row", "excluded": {}, "finding": "", "status": "ok",
}  # fmt: skip


def _row(test: str, **values: Any) -> dict[str, Any]:
    return {"test": test, **_NOTHING, **values}


def _told(test: str, of: str, find: Callable[[], Rows]) -> Rows:
    """Return the rows of a test; one that cannot be had is a row with the reason."""
    try:
        return find()
    except (ValueError, ImportError) as error:
        return [_row(test, of=of, status=str(error))]


def _independence(data: BeliefDecisions, permutations: int, bootstraps: int, seed: int) -> Rows:
    def find(calibrated: bool) -> Rows:
        found = conditional_independence(
            data, calibrated=calibrated, replicates=permutations, bootstraps=bootstraps, seed=seed
        )
        own = _row(
            TESTS[0], of="calibrated" if calibrated else "", estimate=found.estimate,
            low=found.low, high=found.high, null=found.null_mean, p_value=found.p_value,
            n=found.rows, excluded=found.excluded,
        )  # fmt: skip
        if found.published is not None:
            own |= {
                "published": found.estimate,
                "published_low": found.published.low,
                "published_high": found.published.high,
                "finding": "violation" if found.published.above_zero else "none",
            }
        return [own]

    plain = _told(TESTS[0], "", partial(find, False))
    return plain + _told(TESTS[0], "calibrated", partial(find, True))


def _gain(
    learner: Learner, data: BeliefDecisions, permutations: int, bootstraps: int, seed: int
) -> Rows:
    def find() -> Rows:
        found = predictive_gain(
            data,
            features=data.evidence,
            learner=learner,
            replicates=permutations,
            bootstraps=bootstraps,
            seed=seed,
        )
        rows = []
        for of, gain in (("beyond belief, %", found.belief), ("and evidence, %", found.evidence)):
            if gain is None or gain.excess is None:
                continue
            rows.append(
                _row(
                    TESTS[1], of=of, estimate=gain.excess.percent, low=gain.excess.low,
                    high=gain.excess.high, null=0.0, p_value=gain.p_value, n=found.rows,
                    excluded=dict(found.excluded), published=gain.percent,
                    published_low=gain.low, published_high=gain.high,
                    finding="violation" if gain.above_zero else "none",
                )
            )  # fmt: skip
        return rows

    return _told(TESTS[1], "beyond belief, %", find)


def _monotone(data: BeliefDecisions, permutations: int, bootstraps: int, seed: int) -> Rows:
    def find() -> Rows:
        found = monotone_choice(data, bootstraps=bootstraps, seed=seed)
        rows = [
            _row(
                TESTS[2], of="any pair turns", estimate=found.turned, low=found.turned_low,
                high=found.turned_high, null=0.0, p_value=found.p_turning, n=int(found.n.sum()),
                excluded=dict(found.excluded), published=found.fraction, published_low=found.low,
                published_high=found.high,
                finding="violation" if found.fraction > 0 else "none",
            )
        ]  # fmt: skip
        for pair in found.pairs:
            of = f"{pair.first} over {pair.second}{FALLS}"
            if not pair.testable:
                rows.append(_row(TESTS[2], of=of, status="no pair of bins with both actions"))
                continue
            rows.append(
                _row(
                    TESTS[2], of=of, estimate=pair.violated_holm / pair.testable,
                    low=pair.holm_low, high=pair.holm_high, null=0.0, p_value=pair.p_falling,
                    n=pair.testable, unit="pair of bins", published=pair.fraction,
                    published_low=pair.fraction_low, published_high=pair.fraction_high,
                    finding="violation" if pair.violated else "none",
                )
            )  # fmt: skip
        return rows

    return _told(TESTS[2], "any pair turns", find)


def _elicitation(data: BeliefDecisions, permutations: int, bootstraps: int, seed: int) -> Rows:
    def find() -> Rows:
        found = elicitation_consistency(
            data, replicates=permutations, bootstraps=bootstraps, seed=seed
        )
        rows = [
            _row(
                TESTS[3], of="sd of plain", estimate=found.spread,
                low=found.spread_low, high=found.spread_high, n=found.contexts, unit="context",
                status="ok" if np.isfinite(found.spread) else "no context was asked about twice",
            )
        ]  # fmt: skip
        rows += [
            _row(
                TESTS[3], of=d.elicitation, estimate=d.rmse_means, low=d.means_low,
                high=d.means_high, null=d.null_means, p_value=d.p_value, n=d.contexts,
                unit="context", published=d.rmse_answers, published_low=d.answers_low,
                published_high=d.answers_high,
                excluded={
                    f"no {e}": found.missing[e]
                    for e in (ELICITATIONS[0], d.elicitation)
                    if found.missing.get(e)
                },
            )
            for d in found.distances
        ]  # fmt: skip
        return rows

    return _told(TESTS[3], "", find)


def _iterated(data: BeliefDecisions, permutations: int, bootstraps: int, seed: int) -> Rows:
    def find(how: str | None) -> Rows:
        learnt = bool(data.evidence) and bool(data.parts)
        found = iterated_expectation(
            data,
            features=data.evidence,
            forest=learnt,
            elicitation=how,
            bootstraps=bootstraps,
            seed=seed,
        )
        gap, stated, apart = found.gap, found.stated, _PARTS[how or found.elicitation]
        rows = [
            _row(
                TESTS[4], of=f"parts over whole{apart}", estimate=gap.value, low=gap.low,
                high=gap.high,
                null=0.0, p_value=gap.p_value, n=gap.contexts, unit="context",
                excluded=dict(found.excluded), published=stated.value, published_low=stated.low,
                published_high=stated.high,
            )
        ]  # fmt: skip
        for of, other in (("ratio if exact", found.rounding), ("ratio of forest", found.baseline)):
            if other is not None:
                rows.append(
                    _row(
                        TESTS[4], of=f"{of}{apart}", estimate=other.value, low=other.low,
                        high=other.high, n=other.rows,
                    )
                )  # fmt: skip
        return rows

    rows: Rows = []
    for how in data.part_elicitations or (None,):
        apart = _PARTS[how or "distribution"]
        rows += _told(TESTS[4], f"parts over whole{apart}", partial(find, how))
    return rows
