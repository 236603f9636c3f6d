"""Do decisions follow from stated beliefs? After Yamin and others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import Model, ProspectUtility, ProspectUtilityTverskyKahneman, RandomUtility
from knownminds.environments import Diagnosis, Trials
from knownminds.environments.diagnosis.diagnosis import ELICITATIONS
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import write_text
from knownminds.inference import maximum_a_posteriori
from knownminds.inference.diagnosis.belief_decisions import BELIEF, DECISION, BeliefDecisions
from knownminds.inference.diagnosis.calibration import calibration, reliability
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import FALLS, monotone_choice
from knownminds.inference.posteriors.evidence import laplace_evidence
from knownminds.validation.data.audited import smallest_found
from knownminds.validation.data.trials_of_runs import CONDITIONS
from knownminds.validation.diagnosis.coherence_tests import (
    ELICITATION,
    GAIN,
    INDEPENDENCE,
    ITERATED,
    MONOTONE,
    coherence_tests,
    findings,
)
from knownminds.validation.pages.views import WHO, Cell, Curves, Dots, Grid, Rows, ends

from .paper import (
    CELL,
    FURTHER,
    About,
    Answers,
    Paper,
    Shown,
    counted_answers,
    joined,
    readable,
    told_apart,
    trials_of,
)

KINDS = ("belief", "decision", "part", "given", "share")  # of questions, by number
MODELS: tuple[type[Model], ...] = (RandomUtility, ProspectUtility, ProspectUtilityTverskyKahneman)
ROUNDS = 200  # of permutations and of bootstraps
MOST_BOOSTED = 12  # models x data sets, above which a single tree learns instead of a boosted one
AUDITED = "heart"  # the network in which the tests were put before known deciders
SET = "data_set"
WHOSE = (SET, WHO)
# These columns of trials do not separate participants.
UNREAD = tuple(
    name for name in CONDITIONS if name not in ("experiment", "reasoning", "session", *FURTHER)
)

PAPER = Paper("diagnosis", "Diagnosis: do decisions follow from beliefs?", "Yamin et al.")


@PAPER.prepare
def prepare(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return the trials of diagnosis with their data set, which is the network, and question."""
    few = trials.drop(columns=[name for name in UNREAD if name in trials])
    answers = trials_of("diagnosis", few, ["diagnosis"])
    answers = answers.dropna(axis="columns", how="all").assign(**{WHO: answers[WHO].astype(str)})
    sets = {}
    for cell in answers[CELL].astype(str).unique():
        environment = about.environments.get(cell)
        sets[cell] = environment.network if isinstance(environment, Diagnosis) else cell
    answers[SET] = answers[CELL].astype(str).map(sets)
    for name in ("reasoning", *told_apart(answers, about, (SET,))):
        if name in answers and answers[name].nunique() > 1:
            answers[SET] = answers[SET] + ", " + answers[name].astype(str).str.replace("_", " ")
    return answers.assign(
        kind=np.array(KINDS)[answers["question"].to_numpy(dtype=float).astype(int)]
    )


Beliefs = dict[tuple[str, str, str], BeliefDecisions]


def beliefs(data: Answers) -> Beliefs:
    """Return what was stated and decided, by participant, data set and cell."""
    by_cell: Beliefs = {}
    for (data_set, cell), rows in data.trials.groupby([SET, CELL], sort=False):
        for name in ("action", "response"):
            if name not in rows:
                rows = rows.assign(**{name: np.nan})
        read = BeliefDecisions.read(rows, by=WHO)
        environment = data.about.environments.get(str(cell))
        if isinstance(environment, Diagnosis):
            read = read.with_evidence(environment)
        by_cell |= {(who, str(data_set), str(cell)): answers for who, answers in read.each()}
    return by_cell


def each(data: Answers, compute: Callable[[BeliefDecisions], pd.DataFrame]) -> pd.DataFrame:
    """Put together what is computed of each participant and data set, where it can be."""
    parts = []
    for (who, data_set, cell), cell_beliefs in data.once(beliefs).items():
        try:
            rows = compute(cell_beliefs)
        except (ValueError, KeyError):  # the row of its test says why
            continue
        parts.append(rows.assign(**{WHO: who, SET: data_set, CELL: cell}))
    return joined(parts)


def learner(data: Answers) -> Any:
    """Return what learns in the predictive gain."""
    usual = "gradient_boosting" if len(data.once(beliefs)) <= MOST_BOOSTED else "tree"
    return data.about.option("learner", usual)


def every_test(data: Answers) -> pd.DataFrame:
    """Return the rows of all five tests."""
    about, learns = data.about, learner(data)
    rounds = [about.option(name, ROUNDS) for name in ("permutations", "bootstraps")]
    rows = each(
        data,
        lambda cell_beliefs: coherence_tests(
            cell_beliefs, learns, rounds[0], rounds[1], about.seed
        ),
    )
    compared = (rows["status"] == "ok") & ~rows["of"].str.contains("ratio")
    of = rows["of"].where(rows["of"] == "", ", " + rows["of"])
    return rows.assign(score=(rows["test"] + of + ": " + rows[SET]).where(compared))


def tests(data: Answers, *names: str) -> pd.DataFrame:
    """Return the rows of some tests."""
    rows: pd.DataFrame = data.once(every_test)
    return rows[rows["test"].isin(names)].reset_index(drop=True)


@PAPER.also
def claimed(data: Answers) -> pd.DataFrame:
    """Return by how much information and distances exceed what they are without a violation.

    Both are above 0 where there is none: information of nearest neighbours by its bias, distances
    by the spread of answers. The null of each test is subtracted, whose own error is left out.
    """
    rows = tests(data, INDEPENDENCE, ELICITATION)
    rows = rows[(rows["status"] == "ok") & rows["of"].isin(["", *ELICITATIONS[1:]])]
    excess = rows["value"] - rows["null"]
    of = rows["of"].where(rows["of"] == "", ", " + rows["of"])
    return rows.assign(value=excess, score=rows["test"] + of + ", above its null: " + rows[SET])


PUBLISHED = ends("published", "published_low", "published_high")
LEFT: Mapping[str, Cell] = {
    "remark": lambda row: row["excluded"] if row["status"] == "ok" else row["status"]
}
INFORMATION: Mapping[str, Cell] = {
    "estimate": ends(),
    "null": "null",
    "p": "p_value",
    "Wald, published": PUBLISHED,
    "percentile": ends("published", "percentile_low", "percentile_high"),
    **LEFT,
}


@PAPER.part("Questions and answers", compared=False)
def answers(data: Answers) -> Shown:
    """Contexts are drawn from networks that are known, so that the exact probability of the state
    is known too. Beliefs, decisions and the parts of an iterated expectation are each asked for
    in prompts of their own. Answers that could not be read are left out and counted.
    """
    return counted_answers(data.trials, SET, "kind")


@PAPER.part("What the tests say", compared=False)
def verdicts(data: Answers) -> Shown:
    """Each test holds its estimate against the value that a rational decider with truthful reports
    would have (null). A test with several rows rejects if the smallest of their p-values times
    their number is at most .05. Tests are not corrected for their number. Falls of single pairs of
    actions are no violation: who waits least where the state is probable has them. A rational
    decider whose reports are noisy makes the first two tests reject: decisions then tell what the
    report lost. Published: what the published variant of the test is taken to say.
    """
    rows = findings(data.once(every_test), WHOSE)

    def cell(row: Mapping[Any, Any]) -> str:
        word = f"p {row['p_value']:.3f}" + (", rejects" if row["rejects"] else "")
        return word + (", published: violation" if row["published"] else "")

    return rows, Grid("Tests at .05, and violations by the published ones", "test", WHOSE, cell)


@PAPER.part("What tests of this size see", compared=False, optional=True)
def seen_at_this_size(data: Answers) -> Shown:
    """The two tests of conditional independence were put before deciders who peek at the state by a
    known delta, in the network heart (python docs/conclusions.py diagnosis). The table has the
    smallest delta that each finds in 80% of data sets with so many contexts. A test that does not
    reject excludes no smaller one. Other networks were not audited.
    """
    rows = []
    for (who, data_set, cell), read in data.once(beliefs).items():
        place = data.about.environments.get(cell)
        if not isinstance(place, Diagnosis) or place.network != AUDITED:
            continue
        contexts = read.frame.groupby(["subject", "session", "context"]).ngroups
        for test in (INDEPENDENCE, GAIN):
            smallest = smallest_found("diagnosis", test, "context", contexts)
            rows.append({SET: data_set, WHO: who, "contexts": contexts, "test": test,
                         "smallest": smallest})  # fmt: skip

    def said(row: Mapping[Any, Any]) -> str:
        return f"{row['smallest']:.2g}" if np.isfinite(row["smallest"]) else "none up to 0.8"

    title = "Smallest delta that is found in 80% of data sets"
    return pd.DataFrame(rows), Grid(title, "test", [*WHOSE, "contexts"], said)


@PAPER.part("Conditional independence: do decisions tell of the state what beliefs do not?")
def independence(data: Answers) -> Shown:
    """I(action; state | belief) in nats by nearest neighbours. Null and p come from states
    exchanged between contexts of nearly the same belief, which is a valid test. The published
    interval is symmetric about the estimate (Wald). The percentile interval of the same row
    bootstrap lies above zero for many rational deciders. Neither is a test. The gain is the
    percentage by which the log-loss of decisions is smaller when the state is known. It stands with
    and without the evidence, above what exchanged states give.
    """
    plain, gain = {"test": INDEPENDENCE, "of": ""}, {"test": GAIN}
    gains: dict[str, Cell] = {"gain": ends(), "p": "p_value", "published": PUBLISHED, **LEFT}
    beyond = (*WHOSE, "of")
    return (
        tests(data, INDEPENDENCE, GAIN),
        f"The gain is learnt by {str(learner(data)).replace('_', ' ')}.",
        Rows("Conditional mutual information", INFORMATION, WHOSE, where=plain),
        Rows("Predictive gain of the state, in percent", gains, beyond, where=gain),
        Dots(
            "Conditional mutual information with 95% intervals; crosses: the value under the "
            "hypothesis.", "nats", SET, null="null", where=plain,
        ),
        Dots(
            "Predictive gain of the state, beyond the belief and beyond belief and evidence, with "
            "95% intervals over contexts.", "percent", SET, "of", null=0.0, where=gain,
        ),
    )  # fmt: skip


@PAPER.part("Monotone choice")
def monotone(data: Answers) -> Shown:
    """The share of all pairs of five bins of belief in which the first action becomes rarer against
    the second although the belief rises. By Fisher's one-sided test at .05 as published, and
    corrected by Holm. Pairs of bins in which neither was chosen are dropped. Turns are falls that
    go against the direction of their actions.
    """
    rows = tests(data, MONOTONE)
    falls = rows[rows["of"].str.endswith(FALLS)]
    columns: dict[str, Cell] = {"Holm": ends(), "published": PUBLISHED, "p": "p_value", **LEFT}
    caption = "Share of pairs of belief bins that fall, corrected by Holm, with 95% intervals."
    return (
        rows,
        Rows("Pairs of belief bins that fall or turn", columns, (*WHOSE, "of")),
        Dots(caption, "share", SET, "of", of=falls),
    )


@PAPER.part("Choices by belief", compared=False)
def shares(data: Answers) -> Shown:
    """Share of the bolder action among two by stated belief, in five bins of it. Lines of whoever
    maximises expected utility with noise only rise or only fall.
    """
    rows = each(
        data, lambda cell_beliefs: monotone_choice(cell_beliefs, bootstraps=0).frames["shares"]
    )
    if not len(rows):
        return (rows,)
    both = rows["chose_first"] + rows["chose_second"]
    rows = rows.assign(chosen=rows["chose_first"] / both.where(both > 0))
    labels = ("stated belief", "share of the first")
    shown = rows[both > 0].reset_index(drop=True)
    caption = "Choices among two actions by stated belief."
    return rows, Curves(caption, labels, "belief", "chosen", WHOSE, ("first", "second"), of=shown)


@PAPER.part("Iterated expectation")
def iterated(data: Answers) -> Shown:
    """How far p(x) is from the sum of p(x, z) p(z | x). One number is the median of the distance
    over p(x), as published, with its bootstrap interval over contexts. Beside it are that of a
    random forest trained on exact beliefs, and that of exact beliefs rounded to .01. The other
    number is the mean of the signed difference with its t test.
    """
    rows = tests(data, ITERATED)
    whole = rows[rows["of"].str.startswith("parts over whole")]
    columns: dict[str, Cell] = {
        "ratio": PUBLISHED, "difference": ends(), "p": "p_value", "contexts": "n", **LEFT,
    }  # fmt: skip
    caption = "Median ratio of the distance, with 95% bootstrap intervals."
    names = ("published", "published_low", "published_high")
    return (
        rows,
        Rows("Median ratio of the distance, and mean difference", columns, (*WHOSE, "of"),
             of=whole),
        Dots(caption, "ratio", SET, WHO, WHO, *names, null=0.0, of=whole),
    )  # fmt: skip


@PAPER.part("Iterated expectation of a random forest", compared=False)
def forests(data: Answers) -> Shown:
    """The median ratio of a random forest that was trained on exact beliefs: it follows from the
    contexts, and not from who answered.
    """
    view = Rows("Ratio of a random forest trained on exact beliefs", {"ratio": ends()}, (SET,))
    return baselines(data.once(beliefs), data.about), view


def baselines(read: Beliefs, about: About) -> pd.DataFrame:
    """Return the baseline of each data set; kept beside the known agents, for it takes a while."""
    designs = {cell: repr(environment) for cell, environment in sorted(about.environments.items())}
    # What known agents answered is complete; a baseline should not depend on who refused what.
    read = {key: environment for key, environment in read.items() if key[0] in about.known} or read
    sets = sorted(
        {f"{data_set}: {len(environment)}" for (_, data_set, _), environment in read.items()}
    )
    digest = sha256(json.dumps([about.seed, ROUNDS, designs, sets]).encode()).hexdigest()
    file = None if about.kept is None else about.kept / f"forests-{digest[:12]}.csv"
    if file is not None and file.is_file():
        return pd.read_csv(file)
    rows: dict[str, dict[str, Any]] = {}
    for (_, data_set, _), environment in read.items():
        if data_set in rows or not environment.evidence or not environment.parts:
            continue
        try:
            test = iterated_expectation(
                environment,
                features=environment.evidence,
                forest=True,
                bootstraps=ROUNDS,
                seed=about.seed,
            )
        except (ValueError, ImportError):
            continue
        table = test.table
        ratio = table[table["of"].str.startswith("ratio of forests")].iloc[0]
        rows[data_set] = {SET: data_set, **{end: ratio[end] for end in ("value", "low", "high")}}
    frame = pd.DataFrame(list(rows.values()), columns=[SET, "value", "low", "high"])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, csv_text(frame))
    return frame


@PAPER.part("Consistency across elicitations")
def elicitation(data: Answers) -> Shown:
    """Standard deviation of plain beliefs within contexts. Beside it are root mean square distances
    of means over repetitions from the plain ones, when a squared or an absolute loss is stated, or
    to reason by Bayes' rule. Intervals are bootstrapped over contexts; p comes from answers
    exchanged within contexts. Published: distances of single answers, as in the formula of the
    paper's text.
    """
    rows = tests(data, ELICITATION)
    distances = rows[rows["of"] != "sd of plain"]
    columns: dict[str, Cell] = {
        "distance": ends(), "null": "null", "p": "p_value", "published": PUBLISHED, **LEFT,
    }  # fmt: skip
    caption = "Distance from plain beliefs, with 95% intervals over contexts."
    return (
        rows,
        Rows("Spread and distances", columns, (*WHOSE, "of")),
        Dots(caption, "distance", SET, "of", of=distances),
    )


@PAPER.part("Calibration: stated beliefs against the exact posterior")
def calibrated(data: Answers) -> Shown:
    """Root mean square, and mean (bias), of stated less exact probability, over contexts of equal
    weight; intervals are Student's, over contexts.
    """
    rows = each(data, calibration)
    if not len(rows):
        return (rows,)
    rmse = rows.assign(value=rows["rmse"], standard_error=rows["error"], what="RMSE")
    bias = {"value": rows["bias"], "low": rows["bias_low"], "high": rows["bias_high"]}
    both = joined([rmse, rows.assign(**bias, what="bias")])
    both["score"] = both["what"] + " of " + both["elicitation"] + " beliefs: " + both[SET]
    both = both.drop(columns=["rmse", "error", "bias", "bias_low", "bias_high"])
    means = rows.groupby([WHO, "elicitation"], sort=False)["rmse"]
    mean = means.agg(value="mean", sets="count").reset_index()
    return (
        both,
        Grid("RMSE, averaged over data sets", "elicitation", cell="value", of=mean),
        Grid("RMSE by data set", "elicitation", WHOSE, where={"what": "RMSE"}),
        Grid("Bias (mean of stated less exact)", "elicitation", WHOSE, where={"what": "bias"}),
    )


@PAPER.part("Stated beliefs by exact probability", compared=False)
def reliable(data: Answers) -> Shown:
    """Mean plain belief in ten bins of the exact probability; on the dashed line beliefs are
    right.
    """
    labels = ("exact probability", "stated belief")
    caption = "Mean plain belief by exact probability, with 95% intervals over contexts."
    return each(data, reliability), Curves(
        caption, labels, "exact", "stated", (SET,), (WHO,), diagonal=True, unit=True
    )


@PAPER.part("Conditional independence of calibrated beliefs", compared=False)
def isotonic(data: Answers) -> Shown:
    """The same estimate after stated beliefs were calibrated by isotonic regression of the state,
    as in the paper's appendix.
    """
    title = "Conditional mutual information, calibrated"
    labels = {"of": "calibrated"}
    return tests(data, INDEPENDENCE), Rows(title, INFORMATION, WHOSE, where=labels)


@PAPER.part("Random utility and prospect theory", compared=False)
def fits(data: Answers) -> Shown:
    """Utilities (over that of No, in units of choice noise) and the exponent of the weight of
    probabilities. They are fitted to plain beliefs and decisions under the models' priors, with 90%
    intervals. The evidence is Laplace's; above 0 the last column but one speaks for prospect
    theory, and beyond 3 strongly. Even 200 contexts x 5 tell the exponent weakly.
    """
    rows = utility_fits(data.trials)
    names = ("u_yes_1", "u_yes_0", "u_defer_1", "u_defer_0", "gamma")
    columns: dict[str, Cell] = {
        name: ends(name, f"{name}_low", f"{name}_high") for name in names if name in rows
    }
    columns |= {"log evidence": "log_evidence", "over random utility": "over_rum"}
    columns |= {"status": "status"}
    return rows, Rows("Fits to beliefs and decisions", columns, (*WHOSE, "fitted"))


def utility_fits(trials: pd.DataFrame) -> pd.DataFrame:
    """Fit random utility and both forms of prospect theory to plain beliefs and decisions.

    Returns
    -------
    DataFrame : One row per participant, data set and model: each parameter with NAME_low and
        NAME_high (90%), log_likelihood, log_evidence (Laplace's approximation), over_rum (its
        difference from that of random utility) and status.
    """
    question = trials["question"].astype(float)
    plain = (question == BELIEF) & (trials["elicitation"].astype(float) == 0)
    decisions = trials[(plain | (question == DECISION)) & readable(trials).to_numpy()]
    decisions = decisions.assign(subject=decisions[SET] + " | " + decisions[WHO])
    decisions = decisions[decisions.groupby("subject")["question"].transform("nunique") == 2]
    if not len(decisions):
        return pd.DataFrame()
    decisions = decisions.assign(session=decisions.groupby("subject").ngroup().astype(str))
    decisions = decisions.sort_values(["subject", "session", "trial"], kind="stable")
    decisions = decisions.assign(trial=decisions.groupby("subject").cumcount())
    record = Trials.from_frame(decisions.dropna(axis="columns", how="all").reset_index(drop=True))
    parts = []
    for model in MODELS:
        fit = maximum_a_posteriori(model, record, starts=2)
        rows = fit.to_frame().assign(fitted=model.name, log_evidence=laplace_evidence(fit))
        names = rows["subject"].str.rsplit(" | ", n=1, expand=True)
        parts.append(rows.assign(**{SET: names[0], WHO: names[1]}))
    rows = pd.concat(parts, ignore_index=True)
    first = rows[rows["fitted"] == MODELS[0].name].set_index("subject")["log_evidence"]
    rows["over_rum"] = rows["log_evidence"] - rows["subject"].map(first)
    position = rows.groupby("subject", sort=False).ngroup()
    return rows.iloc[np.argsort(position, kind="stable")].reset_index(drop=True)
