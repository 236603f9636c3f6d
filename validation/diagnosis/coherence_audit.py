"""What the tests of coherence, and their published variants, do to known deciders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Diagnosis, session_stream
from knownminds.environments.diagnosis.diagnosis import Parts
from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.coherence import answers_of
from knownminds.inference.diagnosis.conditional_independence import conditional_independence
from knownminds.inference.diagnosis.elicitation_consistency import elicitation_consistency
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import monotone_choice
from knownminds.inference.diagnosis.predictive_gain import predictive_gain
from knownminds.validation.engine.arguments import check_settings, one_of
from knownminds.validation.engine.engine import Running, run
from knownminds.validation.engine.monte_carlo import Score, share
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

LEVEL = 0.05
RATIONAL = "random_utility"
TRUTHFUL = 0.01  # standard deviation of reports in log odds, which rounding to .01 hides

# Deciders for whom Yes pays where the state is present, No where it is not, and Defer in between:
# mean and standard deviation of each parameter, by name; the second on the natural scale.
MINDS: Mapping[str, tuple[float, float]] = {
    "u_yes_1": (4.0, 1.0),
    "u_yes_0": (-4.0, 1.0),
    "u_defer_1": (1.0, 0.5),
    "u_defer_0": (0.5, 0.5),
    "c": (0.0, 0.3),
    "d": (1.0, 0.1),
    "s_between": (0.2, 0.05),
    "s_report": (TRUTHFUL, 0.0),
    "gamma": (1.0, 0.0),
}
DIALS: Mapping[str, tuple[str, tuple[float, ...]]] = {
    RATIONAL: ("", (0.0,)),
    "outcome_peeker": ("delta", (0.05, 0.1, 0.2, 0.4)),
    "misreporter": ("kappa", (0.1, 0.3, 1.0)),
    "incoherent_believer": ("kappa", (0.02, 0.05, 0.1, 0.2)),
    "frame_dependent": ("kappa", (0.02, 0.05, 0.1, 0.2)),
    "non_monotone_decider": ("kappa", (1.0, 2.0, 4.0, 8.0)),
    "noisy_reporter": ("s_report", (0.1, 0.2, 0.4, 0.7, 1.0, 1.5)),
}


class Verdict(NamedTuple):
    """What a test says of a data set; None where it has no such finding.

    Parameters
    ----------
    rejected : whether our test rejects at `LEVEL`
    published : whether the published reading finds a violation
    percentile : whether the percentile interval of the published bootstraps lies above zero, which
        is nobody's reading
    """

    rejected: bool
    published: bool | None = None
    percentile: bool | None = None


Verdicts = Mapping[str, Verdict]


@dataclass(frozen=True)
class CoherenceAudit(Reported):
    """How often each test rejects, by kind of mind and its dial.

    Parameters
    ----------
    rows
        One row per mind, value of the dial and test: rejected, published and percentile (shares of
        data sets, see `Verdict`; NaN where there is no such finding) and replicates.
    study
        The design, the tests and the kinds of minds, a cell each.
    """

    study: Study
    rows: pd.DataFrame
    versions: Mapping[str, str]

    @property
    def contexts(self) -> int:
        """Contexts of each session."""
        return int(self.study.cells[0].settings["n_contexts"])

    @property
    def repeats(self) -> int:
        """How often each context is asked about."""
        return int(self.study.cells[0].settings["repeats"])

    def to_frame(self) -> pd.DataFrame:
        """One row per mind, value of the dial and test."""
        return self.rows.copy()

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        return {
            "contexts": self.contexts,
            "repeats": self.repeats,
            "permutations": cell.options["permutations"],
            "bootstraps": cell.options["bootstraps"],
            "parts": cell.settings["parts"],
            "seed": self.study.seed,
            "rows": self.rows,
            "versions": self.versions,
        }

    def rejected(self, mind: str, dial: float, test: str) -> Score:
        """Return the share of data sets in which our test rejects, with its error."""
        row = self._row(mind, dial, test)
        return share(row["rejected"] * row["replicates"], int(row["replicates"]))

    def published(self, mind: str, dial: float, test: str) -> Score:
        """Return the share in which the published variant finds a violation, with its error."""
        return self._share(mind, dial, test, "published")

    def percentile(self, mind: str, dial: float, test: str) -> Score:
        """Return the share in which the percentile interval lies above zero, with its error."""
        return self._share(mind, dial, test, "percentile")

    def _share(self, mind: str, dial: float, test: str, name: str) -> Score:
        row = self._row(mind, dial, test)
        if np.isnan(row[name]):
            return Score(float("nan"), float("nan"))
        return share(row[name] * row["replicates"], int(row["replicates"]))

    def _row(self, mind: str, dial: float, test: str) -> Any:
        rows = self.rows
        own = rows[(rows["mind"] == mind) & (rows["dial"] == dial) & (rows["test"] == test)]
        return own.iloc[0]

    def __str__(self) -> str:
        """The table for a paper: a line per mind and dial, ours and published by test.

        Then how often percentile intervals of the published bootstraps lie above zero.
        """
        told = [test for test in TESTS if (self.rows["test"] == test).any()]
        lines = [
            f"tests of coherence on known deciders, {self.contexts} contexts x {self.repeats}: "
            f"share rejected at {LEVEL:g} / published finding",
            f"{'mind':<22}{'dial':>7}{'n':>6}"
            + "".join(f"{test.replace('conditional ', ''):>26}" for test in told),
        ]
        for (mind, dial), own in self.rows.groupby(["mind", "dial"], sort=False):
            cells = []
            for test in told:
                ours = self.rejected(str(mind), float(dial), test)  # type: ignore[arg-type]
                theirs = self.published(str(mind), float(dial), test)  # type: ignore[arg-type]
                found = "-" if np.isnan(theirs.value) else f"{theirs.value:.3f}"
                cells.append(f"{f'{ours} / {found}':>26}")
            n = int(own["replicates"].iloc[0])
            lines.append(f"{mind:<22}{dial:>7g}{n:>6}" + "".join(cells))
        lines.append("(Monte-Carlo errors; -: the paper calls nothing a violation)")
        apart = self.rows[self.rows["percentile"].notna()]
        if len(apart):
            lines.append("percentile intervals of the published bootstraps above zero, no reading:")
        for row in apart.to_dict("records"):
            told_apart = self.percentile(row["mind"], row["dial"], row["test"])
            lines.append(f"{row['mind']:<22}{row['dial']:>7g}  {row['test']:<26}{told_apart!s:>14}")
        return "\n".join(lines)


def coherence_audit(
    dials: Mapping[str, Sequence[float]] | None = None,
    *,
    tests: Sequence[str] | None = None,
    replicates: int = 200,
    network: str = "heart",
    contexts: int = 200,
    repeats: int = 5,
    permutations: int = 199,
    bootstraps: int = 200,
    parts: Parts = "distribution",
    seed: int = 0,
    **running: Unpack[Running],
) -> CoherenceAudit:
    """Let known deciders answer as in the paper's design, and test each one.

    The rational ones report truthfully: they state what they act on, rounded to .01. Their
    utilities, calibration and misreadings vary from mind to mind (`MINDS`). Violators have the
    same minds and one dial; a noisy reporter's is the standard deviation of its reports in log
    odds. Predictive gain is by decision trees.

    Parameters
    ----------
    dials
        By model, the values of its dial; None for `DIALS`.
    tests
        Which; None for all of `TESTS`.
    replicates
        Deciders for each value of a dial.
    parts
        How P(z | x) is asked for, see `Diagnosis`.
    running
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If a model has no dial here, there is no such test, or there are no replicates.
    """
    wanted = {k: v for k, (_, v) in DIALS.items()} if dials is None else dict(dials)
    strange = [model for model in wanted if model not in DIALS]
    if strange:
        raise ValueError(f"Dials are those of {', '.join(DIALS)}; got {strange[0]!r}.")
    asked = list(TESTS) if tests is None else list(tests)
    for test in asked:
        one_of("test", test, TESTS)
    environment = Diagnosis(network=network, n_contexts=contexts, repeats=repeats, parts=parts)
    options = {"tests": asked, "permutations": permutations, "bootstraps": bootstraps}
    cells = tuple(
        Cell(
            environment.name,
            environment.settings,
            model,
            law={"dial": float(v)},
            options=options,
            batch=25,
        )
        for model, values in wanted.items()
        for v in values
    )
    question = {
        "subject_matter": "coherence",
        "set": {
            **{model: list(map(float, values)) for model, values in wanted.items()},
            **options,
            "network": network,
            "contexts": contexts,
            "repeats": repeats,
            "parts": parts,
        },
        "replicates": replicates,
        "seed": seed,
    }
    study = Study("audit", cells, replicates, seed, "replicate", question)
    return run(study, test_deciders, summarise, **running)


def test_deciders(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Test some deciders, each at its own address, the same for every dial: one row each."""
    cell = study.cells[batch.cell]
    environment, model = cell.make(), AGENTS[cell.model]
    assert isinstance(environment, Diagnosis)
    theta = minds(cell.model, cell.law["dial"], batch.first, batch.last, study.seed)
    options = cell.options
    rows = []
    for i, answers in enumerate(answers_of(model, theta, environment, study.seed, 41, batch.first)):
        data = answers.decisions()
        row: dict[str, Any] = {"status": "ok", "message": ""}
        for test in options["tests"]:
            found = TESTS[test](
                data, options["permutations"], options["bootstraps"], study.seed + batch.first + i
            )
            for name, value in found._asdict().items():
                row[f"{name}, {test}"] = np.nan if value is None else float(value)
        rows.append(row)
    return pd.DataFrame(rows)


test_deciders.__test__ = False  # type: ignore[attr-defined]  # no test of ours for pytest


def summarise(rows: Rows) -> CoherenceAudit:
    """Count in how many data sets each test rejects; those that failed are no data sets."""
    told = []
    for c, cell in enumerate(rows.study.cells):
        found = rows.frame(cell=c)
        found = found[found["status"] == "ok"]
        for test in (test for test in TESTS if test in cell.options["tests"]):
            shares = {
                name: float(found[f"{name}, {test}"].mean()) if len(found) else np.nan
                for name in Verdict._fields
            }
            row = {"mind": cell.model, "dial": cell.law["dial"], "test": test, **shares}
            told.append(row | {"replicates": len(found)})
    return CoherenceAudit(rows.study, pd.DataFrame(told), rows.versions)


def audit(
    settings: Mapping[str, Any], *, replicates: int, seed: int, **running: Unpack[Running]
) -> CoherenceAudit:
    """Audit with settings by name, as one types them: arguments of `coherence_audit`, and dials.

    Raises
    ------
    ValueError
        If a name is none of these (the nearest are named), or a value does not fit.
    """
    known: dict[str, Any] = {"tests": (), "network": "heart", "parts": "distribution"}
    known |= dict.fromkeys(("contexts", "repeats", "permutations", "bootstraps"), 1)
    check_settings(settings, known | {name: [0.0] for name in DIALS})
    dials = {name: np.atleast_1d(settings[name]).tolist() for name in DIALS if name in settings}
    given = {name: settings[name] for name in known if name in settings}
    if isinstance(given.get("tests"), str):
        given["tests"] = [given["tests"]]
    return coherence_audit(dials or None, **given, replicates=replicates, seed=seed, **running)


def minds(model: str, value: float, first: int, last: int, seed: int) -> Array:
    """Return the parameters of deciders first to last - 1, [n, P]: the same at each dial."""
    names = AGENTS[model].parameters.names
    dial = DIALS[model][0]
    theta = np.empty((last - first, len(names)))
    for i in range(first, last):
        normal = dict(
            zip(MINDS, session_stream(seed, 40, i).standard_normal(len(MINDS)), strict=True)
        )
        for j, name in enumerate(names):
            mean, spread = MINDS.get(name, (0.0, 0.0))
            theta[i - first, j] = value if name == dial else mean + spread * normal[name]
    return theta


def _independence(calibrated: bool) -> Callable[..., Verdict]:
    def test(data: BeliefDecisions, replicates: int, bootstraps: int, seed: int) -> Verdict:
        found = conditional_independence(
            data, calibrated=calibrated, replicates=replicates, bootstraps=bootstraps, seed=seed
        )
        read = found.published
        assert read is not None
        return Verdict(found.p_value <= LEVEL, read.above_zero, read.percentile_above_zero)

    return test


def _gain(data: BeliefDecisions, replicates: int, bootstraps: int, seed: int) -> Verdict:
    found = predictive_gain(
        data, learner="tree", replicates=replicates, bootstraps=bootstraps, seed=seed
    ).belief
    return Verdict(found.p_value <= LEVEL, found.above_zero)


def _monotone(data: BeliefDecisions, replicates: int, bootstraps: int, seed: int) -> Verdict:
    found = monotone_choice(data, bootstraps=0)
    return Verdict(found.p_turning <= LEVEL, found.fraction > 0)


def _elicitation(data: BeliefDecisions, replicates: int, bootstraps: int, seed: int) -> Verdict:
    found = elicitation_consistency(data, replicates=replicates, bootstraps=0, seed=seed)
    least = min(d.p_value for d in found.distances)
    return Verdict(min(1.0, len(found.distances) * least) <= LEVEL)


def _iterated(data: BeliefDecisions, replicates: int, bootstraps: int, seed: int) -> Verdict:
    # The paper sets the ratio beside that of a random forest and calls none a violation.
    return Verdict(iterated_expectation(data, bootstraps=0, seed=seed).gap.p_value <= LEVEL)


TESTS: Mapping[str, Callable[..., Verdict]] = {
    "conditional independence": _independence(False),
    "calibrated": _independence(True),
    "predictive gain": _gain,
    "monotone choice": _monotone,
    "elicitation consistency": _elicitation,
    "iterated expectation": _iterated,
}
