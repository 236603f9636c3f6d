"""What the tests of coherence, and their published variants, do to known deciders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Diagnosis, session_stream
from knownminds.inference.diagnosis.coherence import answers_of
from knownminds.validation.engine.arguments import check_settings, one_of
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import NOTHING, share_of
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.pages.views import Curves

from .coherence_tests import (
    CALIBRATED,
    ELICITATION,
    GAIN,
    INDEPENDENCE,
    ITERATED,
    LEVEL,
    MONOTONE,
    coherence_tests,
    findings,
)

if TYPE_CHECKING:
    from knownminds.validation.power.questions import Audit

TESTS = (INDEPENDENCE, CALIBRATED, GAIN, MONOTONE, ELICITATION, ITERATED)
# Of the findings of a data set, by head of the table: see `findings`.
FINDINGS = {"rejected": "rejects", "published": "published", "percentile": "percentile"}
RATIONAL = "random_utility"
TRUTHFUL = 0.01  # standard deviation of reports in log odds, which rounding to .01 hides

# Deciders for whom Yes pays where the state is present, No where it is not, and Defer in between:
# mean and standard deviation of each parameter, by name; the second on the natural scale.
DECIDERS: Mapping[str, tuple[float, float]] = {
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


# Settings besides the dials, with their defaults.
SETTINGS: Mapping[str, Any] = {
    "network": "heart",
    "contexts": 200,
    "repeats": 5,
    "permutations": 199,
    "bootstraps": 200,
    "parts": "distribution",
}
OPTIONS = ()  # of `audit` that this one takes besides settings, replicates and seed
NOTES = (
    f"Shares of data sets, with Monte-Carlo errors, in which a test rejects at {LEVEL:g}, in which "
    "the published reading finds a violation, and in which the percentile interval of the "
    f"published bootstraps lies above zero, which is nobody's reading. {RATIONAL} is rational and "
    "reports what it acts on: of it, every rejection is a false alarm. -: no such finding.",
)


def study(question: Audit) -> Study:
    """Let known deciders answer as in the paper's design, and test each one.

    The rational ones report truthfully: they state what they act on, rounded to .01. Their
    utilities, calibration and misreadings vary between agents (`DECIDERS`). Violators have the
    same parameters and one dial; a noisy reporter's is the standard deviation of its reports in log
    odds. Predictive gain is by decision trees.

    Parameters
    ----------
    question : Its settings: `tests` (all of `TESTS` if none), by model the values of its dial
        (`DIALS` if none), how P(z | x) is elicited (`parts`, see `Diagnosis`), and the others of
        `SETTINGS`. Its replicates are deciders for each value of a dial.

    Raises
    ------
    ValueError : If a setting is unknown (the nearest are named), or does not fit.
    """
    given = dict(question.settings or {})
    check_settings(given, {"tests": (), **SETTINGS, **{name: [0.0] for name in DIALS}})
    dials = {name: np.atleast_1d(given[name]).tolist() for name in DIALS if name in given}
    dials = dials or {name: list(values) for name, (_, values) in DIALS.items()}
    settings = {name: given.get(name, usual) for name, usual in SETTINGS.items()}
    tests = given.get("tests", list(TESTS))
    tests = [tests] if isinstance(tests, str) else list(tests)
    for test in tests:
        one_of("test", test, TESTS)
    analysis = CellAnalysis(
        tests=tests, permutations=settings["permutations"], bootstraps=settings["bootstraps"]
    )
    environment = Diagnosis(
        network=settings["network"],
        n_contexts=settings["contexts"],
        repeats=settings["repeats"],
        parts=settings["parts"],
    )
    cells = tuple(
        Cell(
            environment.name,
            environment.settings,
            model,
            population=Population(dial=float(value)),
            analysis=analysis,
            batch=25,
        )
        for model, values in dials.items()
        for value in values
    )
    content = question.option_values() | {"set": {**dials, "tests": tests, **settings}}
    return Study("audit", cells, question.replicates, question.seed, "replicate", content)


def work(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Test some deciders, each at its address, the same for every dial: one row each."""
    cell = study.cells[batch.cell]
    environment, model = cell.make(), AGENTS[cell.model]
    assert isinstance(environment, Diagnosis)
    theta = deciders(cell.model, cell.population.dial, batch.first, batch.last, study.seed)
    how = cell.analysis
    rows = []
    for i, data in enumerate(answers_of(model, theta, environment, study.seed, 41, batch.first)):
        tests = coherence_tests(
            data, "tree", how.permutations, how.bootstraps,
            study.seed + batch.first + i, how.tests,
        )  # fmt: skip
        calibrated = tests["of"] == CALIBRATED
        said = findings(tests.assign(test=tests["test"].where(~calibrated, CALIBRATED)), ())
        row: dict[str, Any] = {"status": "ok", "message": ""}
        for test in said.to_dict("records"):
            for name, column in FINDINGS.items():
                value = test[column]
                row[f"{name}, {test['test']}"] = np.nan if value is None else float(value)
        rows.append(row)
    return pd.DataFrame(rows)


def say(rows: Rows) -> Result:
    """Count in how many data sets each test rejects; those that failed are no data sets."""
    table = []
    for number, cell in enumerate(rows.study.cells):
        cell_rows = rows.of(number)
        cell_rows = cell_rows[cell_rows["status"] == "ok"]
        if len(cell_rows) == 0:
            continue
        for test in (test for test in TESTS if test in cell.analysis.tests):
            shares = {
                name: NOTHING if column.isna().any() else share_of(column.to_numpy(dtype=bool))
                for name, column in ((n, cell_rows[f"{n}, {test}"]) for n in FINDINGS)
            }
            row = {"decider": cell.model, "dial": cell.population.dial, "test": test, **shares}
            table.append(row | {"data sets": len(cell_rows)})
    frame = pd.DataFrame(table)
    curves = Curves(
        f"Share rejected, by dial. Dashed: {LEVEL}.", ("dial", "share rejected"), "dial",
        "rejected", ("test",), ("decider",), limits=(LEVEL,),
    )  # fmt: skip
    return rows.result(
        "What do the tests of coherence do to known deciders?",
        tables={"Findings": frame.set_index(["decider", "dial", "test"])} if table else {},
        figures=curves.drawings(frame.sort_values("dial")) if table else {},
        notes=NOTES,
    )


def deciders(model: str, value: float, first: int, last: int, seed: int) -> Array:
    """Return the parameters of deciders first to last - 1, [n, P]: the same at each dial."""
    names = AGENTS[model].parameters.names
    dial = DIALS[model][0]
    theta = np.empty((last - first, len(names)))
    for i in range(first, last):
        normal = dict(
            zip(DECIDERS, session_stream(seed, 40, i).standard_normal(len(DECIDERS)), strict=True)
        )
        for j, name in enumerate(names):
            mean, spread = DECIDERS.get(name, (0.0, 0.0))
            theta[i - first, j] = value if name == dial else mean + spread * normal[name]
    return theta
