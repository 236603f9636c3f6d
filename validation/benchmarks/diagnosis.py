"""The page of the diagnosis benchmark: do decisions follow from stated beliefs?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import (
    Agent,
    ProspectUtility,
    ProspectUtilityTverskyKahneman,
    RandomUtility,
)
from knownminds.environments import Diagnosis, Trials
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import write_text
from knownminds.inference import maximum_a_posteriori
from knownminds.inference.diagnosis.belief_decisions import (
    BELIEF,
    DECISION,
    ELICITATIONS,
    BeliefDecisions,
)
from knownminds.inference.diagnosis.calibration import calibration, reliability
from knownminds.inference.diagnosis.conditional_independence import conditional_independence
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import monotone_choice
from knownminds.validation.data.trials_of_runs import CONDITIONS
from knownminds.validation.diagnosis import belief_battery as battery
from knownminds.validation.diagnosis.belief_battery import probability
from knownminds.validation.pages.page import Column, Section, Table, table

from . import diagnosis_figures as pictures
from .shown import FURTHER, WHO, apart, beside, first_rows, interval, part, readable

if TYPE_CHECKING:
    from .registry import About

SET = "data_set"
BEYOND = ("belief", "belief and evidence")
KINDS = ("belief", "decision", "part", "given", "share")  # of questions, by number
MODELS: tuple[type[Agent], ...] = (
    RandomUtility,
    ProspectUtility,
    ProspectUtilityTverskyKahneman,
)
ROUNDS = 200  # of permutations and of bootstraps
MOST_BOOSTED = 12  # models x data sets, above which a single tree learns in place of a boosted one
PLAIN = ELICITATIONS[0]
WIDE = 2 * 1.959964  # standard errors in a normal interval of 95%
LEARNT = {
    "tree": "So many models and data sets are learnt by a decision tree each, which is quick.",
    "gradient_boosting": "It is learnt by gradient boosting.",
}
# Columns of trials by which nothing on the page is told apart.
UNREAD = tuple(
    name for name in CONDITIONS if name not in ("experiment", "reasoning", "session", *FURTHER)
)
EMPTY = ("test", "of", "estimate", "low", "high", "null", "p_value", "status")


@dataclass(frozen=True)
class DiagnosisResult:
    """Everything that the page of diagnosis tells.

    Parameters
    ----------
    beliefs
        What was stated and decided, by participant and data set.
    tests
        One row per participant, data set and test, as in `BeliefBattery.table`, of conditional
        independence with percentile_low and percentile_high.
    shares
        What was chosen by belief; see `BeliefBattery`.
    calibration, reliability
        See `calibration` and `reliability`.
    forests
        By data set, the ratio of iterated expectation of a random forest.
    learner
        Of the predictive gain.
    cells
        By data set, the cell of the plan.
    """

    beliefs: Mapping[tuple[str, str], BeliefDecisions]
    tests: pd.DataFrame
    shares: pd.DataFrame
    calibration: pd.DataFrame
    reliability: pd.DataFrame
    forests: pd.DataFrame
    learner: str
    cells: Mapping[str, str]


def sections(trials: pd.DataFrame, about: About) -> list[Section]:
    """Return the parts of the page, in the order of the paper.

    Parameters
    ----------
    trials
        Trials of `diagnosis`, with the columns participant and cell; the experiment of a cell, in
        `about.places`, names its network, which is the data set.

    Raises
    ------
    ValueError
        If no trial is about diagnosis.
    """
    own = _with_sets(trials, about)
    found = diagnosis_result(own, about)
    return [
        _answers_section(own),
        _independence_section(found),
        _monotone_section(found),
        _iterated_section(found),
        _elicitation_section(found),
        _calibration_section(found),
        _isotonic_section(found),
        _fits_section(own),
    ]


def scores(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return what participants are compared by; see `registry.Scores`."""
    return _scores(diagnosis_result(_with_sets(trials, about), about))


def _scores(found: DiagnosisResult) -> pd.DataFrame:
    """Return all by which models are compared: distances from the truth, and what tests estimate.

    Standard errors of tests are those of a normal with their 95% interval.
    """
    parts = []
    for value, error, name in (("rmse", "error", "RMSE"), ("bias", "", "bias")):
        rows = found.calibration
        if not len(rows):
            continue
        width = (rows["bias_high"] - rows["bias_low"]) / WIDE
        told = name + " of " + rows["elicitation"] + " beliefs: " + rows[SET]
        parts.append(rows.assign(score=told, value=rows[value],
                                 standard_error=rows[error] if error else width))  # fmt: skip
    rows = found.tests[found.tests["status"] == "ok"]
    rows = rows[~rows["of"].str.contains("ratio")]
    if len(rows):
        of = rows["of"].where(rows["of"] == "", ", " + rows["of"])
        parts.append(
            rows.assign(
                score=rows["test"] + of + ": " + rows[SET],
                cell=rows[SET].map(found.cells),
                value=rows["estimate"],
                standard_error=(rows["high"] - rows["low"]) / WIDE,
            )
        )
    kept = [WHO, "score", "cell", "value", "standard_error", "freedom"]
    return _together(parts).reindex(columns=kept)


def _with_sets(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return the trials of diagnosis with their data set, and a subject for each."""
    place = trials["environment"] if "environment" in trials else trials["experiment"]
    own = trials.drop(columns=[name for name in UNREAD if name in trials])[place == "diagnosis"]
    if not len(own):
        raise ValueError("The page of diagnosis reads trials of diagnosis; there are none.")
    own = own.dropna(axis="columns", how="all").assign(**{WHO: own[WHO].astype(str)})
    sets = {}
    for cell in own["cell"].astype(str).unique():
        environment = about.places.get(cell)
        sets[cell] = environment.network if isinstance(environment, Diagnosis) else cell
    own[SET] = own["cell"].astype(str).map(sets)
    for name in ("reasoning", *apart(own, (SET,))):
        if name in own and own[name].nunique() > 1:
            own[SET] = own[SET] + ", " + own[name].astype(str).str.replace("_", " ")
    return own


def _beliefs(
    own: pd.DataFrame, about: About
) -> tuple[dict[tuple[str, str], BeliefDecisions], dict[str, str]]:
    """Return what was stated and decided by participant and data set, and the cell of each set."""
    beliefs: dict[tuple[str, str], BeliefDecisions] = {}
    cells: dict[str, str] = {}
    for (data_set, cell), rows in own.groupby([SET, "cell"], sort=False):
        for name in ("action", "response"):
            if name not in rows:
                rows = rows.assign(**{name: np.nan})
        read = BeliefDecisions.read(rows, by=WHO)
        environment = about.places.get(str(cell))
        if isinstance(environment, Diagnosis):
            read = read.with_evidence(environment)
        beliefs |= {(who, str(data_set)): one for who, one in read.each()}
        cells[str(data_set)] = str(cell)
    return beliefs, cells


def diagnosis_result(own: pd.DataFrame, about: About) -> DiagnosisResult:
    """Compute all that does not take fits; `own` are trials with their data set."""
    beliefs, cells = _beliefs(own, about)
    learner = "gradient_boosting" if len(beliefs) <= MOST_BOOSTED else "tree"
    tests, shares, calibrated, reliable = [], [], [], []
    for (who, data_set), one in beliefs.items():
        here = {WHO: who, SET: data_set}
        tests += [{**here, **row} for row in _tests(one, learner, about.seed)]
        calibrated.append(calibration(one).assign(**here, cell=cells[data_set]))
        if PLAIN in one.frame:
            reliable.append(reliability(one).assign(**here))
        try:
            found = monotone_choice(one, bootstraps=0).shares()
        except (ValueError, KeyError):  # which its row says
            continue
        shares.append(found.drop(columns=WHO, errors="ignore").assign(**here))
    return DiagnosisResult(
        beliefs,
        pd.DataFrame(tests),
        _together(shares),
        _together(calibrated),
        _together(reliable),
        forests(beliefs, about),
        learner,
        cells,
    )


def _together(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    kept = [one for one in parts if len(one)]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()


def _bare(data: BeliefDecisions) -> BeliefDecisions:
    """Return the same without evidence."""
    told = [name for name in data.frame if str(name).startswith("told_")]
    return BeliefDecisions(data.frame.drop(columns=told), data.counts)


def _tests(data: BeliefDecisions, learner: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of all five tests."""
    for calibrated in (False, True):
        find = partial(_independence, data, calibrated, seed)
        yield from battery._told(battery.TESTS[0], "calibrated" if calibrated else "", find)
    yield from battery._gain(learner, data, ROUNDS, ROUNDS, seed)  # type: ignore[arg-type]
    bare = _bare(data)
    for test in (battery._monotone, battery._elicitation, battery._iterated):
        yield from test(bare, ROUNDS, ROUNDS, seed)


def _independence(data: BeliefDecisions, calibrated: bool, seed: int) -> list[dict[str, Any]]:
    found = conditional_independence(
        data, calibrated=calibrated, replicates=ROUNDS, bootstraps=ROUNDS, seed=seed
    )
    row = battery._row(
        battery.TESTS[0],
        of="calibrated" if calibrated else "",
        estimate=found.estimate,
        low=found.low,
        high=found.high,
        null=found.null_mean,
        p_value=found.p_value,
        n=found.rows,
        excluded=found.excluded,
    )
    if found.published is not None:
        row |= {
            "published": found.estimate,
            "published_low": found.published.low,
            "published_high": found.published.high,
            "percentile_low": found.published.percentile_low,
            "percentile_high": found.published.percentile_high,
        }
    return [row]


def ahead(trials: pd.DataFrame, about: About) -> None:
    """Learn the forests from known minds' trials, which are complete, before a page needs them."""
    forests(_beliefs(_with_sets(trials, about), about)[0], about)


def forests(beliefs: Mapping[tuple[str, str], BeliefDecisions], about: About) -> pd.DataFrame:
    """Return the baseline of each data set; kept beside the known minds, for it takes a while."""
    places = {cell: repr(place) for cell, place in sorted(about.places.items())}
    # What known minds answered is complete; a baseline should not hang on who refused what.
    known = {(who, name): one for (who, name), one in beliefs.items() if who in about.known}
    beliefs = known or beliefs
    sets = sorted({f"{name}: {len(one)}" for (_, name), one in beliefs.items()})
    asked = sha256(json.dumps([about.seed, ROUNDS, places, sets]).encode()).hexdigest()
    file = None if about.kept is None else about.kept / f"forests-{asked[:12]}.csv"
    if file is not None and file.is_file():
        return pd.read_csv(file)
    found = pd.DataFrame(list(_forests(beliefs, about.seed)), columns=[SET, "value", "low", "high"])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, csv_text(found))
    return found


def _forests(
    beliefs: Mapping[tuple[str, str], BeliefDecisions], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the baseline of each data set: it hangs on exact beliefs, and not on who answered."""
    done: set[str] = set()
    for (_, data_set), one in beliefs.items():
        if data_set in done or not one.evidence or not one.parts:
            continue
        try:
            found = iterated_expectation(
                one, features=one.evidence, forest=True, bootstraps=ROUNDS, seed=seed
            )
        except (ValueError, ImportError):
            continue
        if found.baseline is not None:
            done.add(data_set)
            ends = {"value": found.baseline.value, "low": found.baseline.low}
            yield {SET: data_set, **ends, "high": found.baseline.high}


# What stands on the page, in the order of the paper.


def _answers_section(own: pd.DataFrame) -> Section:
    kind = np.array(KINDS)[own["question"].to_numpy(dtype=float).astype(int)]
    held = own.assign(kind=kind, read=readable(own).to_numpy())
    keys = [WHO, SET, "kind"]
    rows = held.groupby(keys, sort=False)["read"].agg(asked="size", read="sum").reset_index()
    rows["read"] = rows["read"].astype(int)

    def cell(row: Mapping[Any, Any]) -> str:
        return f"{row['read']:,} of {row['asked']:,}" if row["read"] else "no readable answer"

    return part(
        "What was asked, and what came back",
        "Contexts are drawn from networks that are known, so that the exact probability of the "
        "state is known too. Beliefs, decisions and the parts of an iterated expectation are asked "
        "for apart from each other. Answers that could not be read are left out and counted.",
        "answers",
        rows,
        [beside("Answers that could be read, of all questions", rows, "kind", cell, [WHO, SET])],
    )


def _independence_section(found: DiagnosisResult) -> Section:
    rows = _of(found.tests, battery.TESTS[0], "")
    gains = found.tests[found.tests["test"] == battery.TESTS[1]]
    whose: list[Column] = [("data set", "{data_set}"), ("model", "{participant}")]
    return part(
        "Conditional independence: do decisions tell of the state what beliefs do not?",
        "I(action; state | belief) in nats by nearest neighbours; null and p from states exchanged "
        "between contexts of nearly the same belief, which is a valid test. The published interval "
        "is symmetric about the estimate (Wald), and the percentile interval of the same row "
        "bootstrap lies above zero for many rational deciders: neither is a test. The gain is the "
        "percentage by which the log-loss of decisions is smaller when the state is known, with "
        "and without the evidence, above what exchanged states give. " + LEARNT[found.learner],
        "independence",
        found.tests[found.tests["test"].isin(battery.TESTS[:2])].reset_index(drop=True),
        [
            first_rows(
                "Conditional mutual information",
                rows,
                *whose,
                ("estimate", "{estimate:.4f}"),
                ("ours, 95%", lambda r: _ends(r, "low", "high", 4)),
                ("null", "{null:.4f}"),
                ("p", lambda r: probability(r["p_value"])),
                ("Wald, published", lambda r: _ends(r, "published_low", "published_high", 4)),
                ("percentile", lambda r: _ends(r, "percentile_low", "percentile_high", 4)),
                ("remark", _remark),
            ),
            first_rows(
                "Predictive gain of the state, in percent",
                gains,
                *whose,
                ("beyond", lambda r: BEYOND["evid" in r["of"]]),
                ("gain", lambda r: interval(r["estimate"], r["low"], r["high"], 2)),
                ("p", lambda r: probability(r["p_value"])),
                ("published", lambda r: interval(r["published"], r["published_low"],
                                                 r["published_high"], 2)),
                ("remark", _remark),
            ),
        ],
        pictures.bars(
            rows,
            "estimate",
            "nats",
            "Conditional mutual information by data set and model, with our 95% intervals; "
            "crosses: the value under the hypothesis.",
            null="null",
        )
        + pictures.bars(
            gains[gains["status"] == "ok"].assign(
                beyond=lambda r: np.where(r["of"].str.contains("evid"), BEYOND[1], BEYOND[0])
            ),
            "estimate",
            "percent",
            "Predictive gain of the state by data set and model, beyond the belief and beyond "
            "belief and evidence, with 95% intervals over contexts.",
            series="beyond",
        ),
    )  # fmt: skip


def _monotone_section(found: DiagnosisResult) -> Section:
    rows = found.tests[found.tests["test"] == battery.TESTS[2]]
    pairs = rows[rows["of"].str.endswith(battery.FALLS)]
    turned = rows[~rows["of"].str.endswith(battery.FALLS)]

    def cell(row: Mapping[Any, Any]) -> str:
        if row["status"] != "ok":
            return "not testable"
        return f"{row['published']:.1%}, Holm {row['estimate']:.1%}"

    tables: list[Table] = []
    if len(pairs):
        named = pairs.assign(pair=pairs["of"].str.removesuffix(battery.FALLS))
        title = "Pairs of belief bins that fall"
        tables.append(beside(title, named, "pair", cell, [SET, WHO]))
    tables.append(
        first_rows(
            "Falls against the direction of the actions",
            turned,
            ("data set", "{data_set}"),
            ("model", "{participant}"),
            ("share", lambda r: interval(r["estimate"], r["low"], r["high"])),
            ("p", lambda r: probability(r["p_value"])),
            ("remark", _remark),
        )
    )
    return part(
        "Monotone choice",
        "Of all pairs of five bins of belief, the share in which the first action becomes rarer "
        "against the second although the belief rises, by Fisher's one-sided test at .05 as "
        "published, and corrected by Holm. Pairs of bins in which neither was chosen are dropped.",
        "monotone",
        rows.reset_index(drop=True),
        tables,
        pictures.odds(found.shares)
        + pictures.bars(
            pairs[pairs["status"] == "ok"].assign(
                pair=lambda r: r["of"].str.removesuffix(battery.FALLS)
            ),
            "estimate",
            "share",
            "Share of pairs of belief bins that fall, corrected by Holm, by data set and model, "
            "with 95% intervals over contexts.",
            series="pair",
        ),
    )


def _iterated_section(found: DiagnosisResult) -> Section:
    rows = found.tests[found.tests["test"] == battery.TESTS[4]]
    rows = rows[rows["of"].str.startswith("parts over whole")]
    ratio = rows.assign(
        value=rows["published"], low=rows["published_low"], high=rows["published_high"]
    )
    return part(
        "Iterated expectation",
        "How far p(x) is from the sum of p(x, z) p(z | x): the median of the distance over p(x), "
        "as published, with its bootstrap interval over contexts, beside that of a random forest "
        "that was trained on exact beliefs; and the mean of the signed difference with its t test.",
        "iterated",
        rows.reset_index(drop=True),
        [
            first_rows(
                "Median ratio of the distance, and mean difference",
                rows,
                ("data set", "{data_set}"),
                ("model", "{participant}"),
                ("asked", lambda r: "singly" if "singly" in r["of"] else "as a distribution"),
                ("ratio", lambda r: interval(r["published"], r["published_low"],
                                             r["published_high"])),
                ("difference", lambda r: interval(r["estimate"], r["low"], r["high"])),
                ("p", lambda r: probability(r["p_value"])),
                ("contexts", "{n:.0f}"),
                ("remark", _remark),
            ),
            table(
                "Ratio of a random forest trained on exact beliefs",
                found.forests,
                ("data set", "{data_set}"),
                ("ratio", lambda r: interval(r["value"], r["low"], r["high"])),
            ),
        ],
        pictures.bars(
            ratio[ratio["status"] == "ok"],
            "value",
            "ratio",
            "Median ratio of the distance by data set and model, with 95% bootstrap intervals; "
            "grey line: a random forest trained on exact beliefs.",
            lines={r[SET]: r["value"] for r in found.forests.to_dict("records")},
        ),
    )  # fmt: skip


def _elicitation_section(found: DiagnosisResult) -> Section:
    rows = found.tests[found.tests["test"] == battery.TESTS[3]]

    def cell(row: Mapping[Any, Any]) -> str:
        if row["status"] != "ok":
            return str(row["status"])
        told = interval(row["estimate"], row["low"], row["high"])
        return told if np.isnan(row["p_value"]) else f"{told}, p {probability(row['p_value'])}"

    return part(
        "Consistency across elicitations",
        "Standard deviation of plain beliefs within contexts, and root mean square distances of "
        "means over repetitions from the plain ones when a squared or an absolute loss is told, or "
        "to reason by Bayes' rule; intervals are bootstrapped over contexts, p from answers "
        "exchanged within contexts.",
        "elicitation",
        rows.reset_index(drop=True),
        [beside("Spread and distances", rows, "of", cell, [SET, WHO])] if len(rows) else [],
        pictures.bars(
            rows[(rows["status"] == "ok") & (rows["of"] != "sd of plain")],
            "estimate",
            "distance",
            "Distance from plain beliefs by data set and model, with 95% intervals over contexts; "
            "a colour per elicitation.",
            series="of",
        ),
    )


def _calibration_section(found: DiagnosisResult) -> Section:
    rows = found.calibration

    def cell(row: Mapping[Any, Any]) -> str:
        return interval(row["rmse"], row["low"], row["high"])

    def bias(row: Mapping[Any, Any]) -> str:
        return interval(row["bias"], row["bias_low"], row["bias_high"])

    tables: list[Table] = []
    if len(rows):
        means = rows.groupby([WHO, "elicitation"], sort=False)["rmse"].agg(rmse="mean", sets="size")
        mean = means.reset_index().assign(low=np.nan, high=np.nan)
        sets = rows[SET].nunique()

        def averaged(row: Mapping[Any, Any]) -> str:
            less = f" ({row['sets']} of {sets})" if row["sets"] < sets else ""
            return f"{row['rmse']:.3f}{less}" if np.isfinite(row["rmse"]) else "-"

        tables = [
            beside("RMSE, averaged over data sets (of how many)", mean, "elicitation", averaged),
            beside("RMSE by data set", rows, "elicitation", cell, [SET, WHO]),
            beside("Bias (mean of stated less exact)", rows, "elicitation", bias, [SET, WHO]),
        ]
    return part(
        "Calibration: stated beliefs against the exact posterior",
        "Root mean square of stated less exact probability, over contexts of equal weight; "
        "intervals are Student's of the mean square, over contexts.",
        "calibration",
        rows,
        tables,
        pictures.reliability_figures(found.reliability),
        _scores(found),
    )


def _isotonic_section(found: DiagnosisResult) -> Section:
    rows = _of(found.tests, battery.TESTS[0], "calibrated")
    return part(
        "Conditional independence of calibrated beliefs",
        "The same estimate after stated beliefs were calibrated by isotonic regression of the "
        "state, as in the paper's appendix.",
        "isotonic",
        rows.reset_index(drop=True),
        [
            first_rows(
                "Conditional mutual information, calibrated",
                rows,
                ("data set", "{data_set}"),
                ("model", "{participant}"),
                ("estimate", "{estimate:.4f}"),
                ("ours, 95%", lambda r: _ends(r, "low", "high", 4)),
                ("null", "{null:.4f}"),
                ("p", lambda r: probability(r["p_value"])),
                ("Wald, published", lambda r: _ends(r, "published_low", "published_high", 4)),
                ("remark", _remark),
            )
        ],
    )


def _fits_section(own: pd.DataFrame) -> Section:
    rows = utility_fits(own)
    columns: list[Column] = [
        ("data set", "{data_set}"),
        ("model", "{participant}"),
        ("fitted", lambda r: r["fitted"].replace("_", " ")),
        *(
            (name.replace("_", " "), partial(_estimate, name))
            for name in ("u_yes_1", "u_yes_0", "u_defer_1", "u_defer_0", "gamma")
        ),
        ("log evidence", "{log_evidence:.1f}"),
        ("over random utility", lambda r: _over(r)),
        ("status", "{status}"),
    ]
    return part(
        "Random utility and prospect theory",
        "Utilities (over that of No, in units of choice noise) and the exponent of the weight of "
        "probabilities, fitted to plain beliefs and decisions under the models' own priors, with "
        "90% intervals. The evidence is Laplace's; above 0 the last but one column speaks for "
        "prospect theory, and beyond 3 strongly. Even 200 contexts x 5 tell the exponent weakly.",
        "fits",
        rows,
        [first_rows("Fits to beliefs and decisions", rows, *columns)] if len(rows) else [],
    )


def utility_fits(own: pd.DataFrame) -> pd.DataFrame:
    """Fit random utility and both forms of prospect theory to plain beliefs and decisions.

    Returns
    -------
    DataFrame
        One row per participant, data set and model: each parameter with NAME_low and NAME_high
        (90%), log_likelihood, log_evidence (Laplace's approximation), over_rum (its difference
        from that of random utility) and status.
    """
    question = own["question"].astype(float)
    plain = (question == BELIEF) & (own["elicitation"].astype(float) == 0)
    kept = own[plain | (question == DECISION)].copy()
    kept = kept[readable(kept).to_numpy()]
    kept["subject"] = kept[SET] + " | " + kept[WHO]
    both = kept.groupby("subject")["question"].nunique()
    kept = kept[kept["subject"].isin(both[both == 2].index)]
    if not len(kept):
        return pd.DataFrame(columns=[SET, WHO, "fitted", "log_evidence", "over_rum", "status"])
    kept["session"] = kept.groupby("subject").ngroup().astype(str)
    order = ["subject", "session", "trial"]
    kept = kept.sort_values(order, kind="stable").assign(
        trial=lambda r: r.groupby("subject").cumcount()
    )
    trials = Trials.from_frame(kept.dropna(axis="columns", how="all").reset_index(drop=True))
    parts = []
    for model in MODELS:
        fit = maximum_a_posteriori(model, trials, starts=2)
        table_ = fit.to_frame()
        k = fit.z.shape[1]
        sign, size = np.linalg.slogdet(fit.covariance)
        evidence = fit.log_posterior + 0.5 * (
            k * np.log(2 * np.pi) + np.where(sign > 0, size, np.nan)
        )
        told = table_["subject"].str.rsplit(" | ", n=1, expand=True)
        parts.append(
            table_.assign(
                **{SET: told[0], WHO: told[1], "fitted": model.name, "log_evidence": evidence}
            )
        )
    rows = pd.concat(parts, ignore_index=True)
    first = rows[rows["fitted"] == MODELS[0].name].set_index("subject")["log_evidence"]
    rows["over_rum"] = rows["log_evidence"] - rows["subject"].map(first)
    place = rows.groupby("subject", sort=False).ngroup()
    return rows.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def _estimate(name: str, row: Mapping[str, Any]) -> str:
    value = row.get(name, np.nan)
    if value is None or not np.isfinite(value):
        return "-"
    return interval(value, row[f"{name}_low"], row[f"{name}_high"], 2)


def _over(row: Mapping[str, Any]) -> str:
    return "-" if row["fitted"] == MODELS[0].name else f"{row['over_rum']:+.1f}"


def _of(tests: pd.DataFrame, test: str, of: str) -> pd.DataFrame:
    rows = tests[(tests["test"] == test) & (tests["of"] == of)]
    more = [name for name in ("percentile_low", "percentile_high") if name not in rows]
    return rows.assign(**dict.fromkeys(more, np.nan)).reset_index(drop=True)


def _ends(row: Mapping[str, Any], low: str, high: str, digits: int) -> str:
    if not np.isfinite(row[low]):
        return "-"
    return f"{row[low]:.{digits}f} to {row[high]:.{digits}f}"


def _remark(row: Mapping[str, Any]) -> str:
    """Say why there is no estimate, or count what was left out."""
    if row["status"] != "ok":
        return str(row["status"])
    left = [f"{n} {why}" for why, n in row["excluded"].items() if n]
    return ", ".join(left)
