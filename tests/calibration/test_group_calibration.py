"""Calibration of groups whose parameters go together or change within subjects, and its controls.

The full runs are stored with their commands in tests/long/group_calibration.json.
"""

from dataclasses import replace

import numpy as np
import pytest
from stored_runs import keep

from knownminds.agents import AGENTS
from knownminds.environments import InstrumentalLearning
from knownminds.inference.fits.model_data import Unknowns
from knownminds.validation.calibration import calibration
from knownminds.validation.calibration.calibration import calibrate, compute
from knownminds.validation.calibration.questions import Calibrate
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.drawn_groups import design_of_sessions
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.population import HYPERPRIOR, design_of, draw_subjects
from knownminds.validation.engine.study import Batch, Study

NAME, SEED = "group_calibration", 1
FORMULA = "alpha ~ session + (session | subject)"
WITHIN = {"formula": [FORMULA], "sessions": 2}
MODEL, SUBJECTS = AGENTS["rescorla_wagner"], 20
# Studies, and whether what goes together is left out of the fit on purpose.
KINDS = {
    "correlated": ({"correlated": True}, False),
    "correlated, control": ({"correlated": True}, True),
    "within": (WITHIN, False),
    "within, control": (WITHIN, True),
}
COMMAND = (
    "knownminds calibrate instrumental_learning --set n_visits=12 --model rescorla_wagner "
    "--method hierarchical --subjects 20"
)
OPTIONS = {"correlated": "--correlated", "within": f'--sessions 2 --formula "{FORMULA}"'}
REPLICATES = 80


def sample_apart(data, *address, correlated, design, **running):
    """Fit a group as if nothing went together and all subjects were moved alike."""
    if design is not None:
        alike = [f"{term.parameter} ~ {term.fixed} + (1 | subject)" for term in design.terms]
        design = design_of_sessions(alike, MODEL, MODEL.parameters, SUBJECTS, 2, False)
    return sample_group(data, *address, correlated=False, design=design, **running)


def run(kind, replicates):
    options, control = KINDS[kind]
    with pytest.MonkeyPatch.context() as patch:
        if control:
            patch.setattr(calibration, "sample_group", sample_apart)
        return calibrate(
            InstrumentalLearning(12), MODEL, method="hierarchical", subjects=SUBJECTS, seed=SEED,
            replicates=replicates, workers=1, **options,
        )  # fmt: skip


def numbers_of(kind, result):
    """What is stored of a study: its command, the verdicts, and the ranks of its beginning."""
    ranks = result.rows.filter(like="rank ").rename(columns=lambda c: c.removeprefix("rank "))
    table = result["Ranks"]
    return {
        "command": f"{COMMAND} {OPTIONS[kind.partition(',')[0]]} --replicates {REPLICATES} "
        f"--seed {SEED}",
        "replicates": result.attempted,
        "statuses": result["Status of the replicates"]["replicates"].to_dict(),
        "quantities": {
            name: {"verdict": row["verdict"], "p": row["p"], "mean": row["mean"].value,
                   "spread": row["spread"].value}
            for name, row in table.iterrows()
        },
        "first": {name: ranks[name][:2].tolist() for name in ranks},
    }  # fmt: skip


@pytest.mark.long
def test_groups_are_calibrated_and_controls_are_not_anew():
    numbers = {kind: numbers_of(kind, run(kind, REPLICATES)) for kind in KINDS}
    kept = keep(NAME, numbers, SEED, __file__)
    for kind, anew in numbers.items():
        verdicts = {name: q["verdict"] for name, q in anew["quantities"].items()}
        before = {name: q["verdict"] for name, q in kept[kind]["quantities"].items()}
        assert verdicts == before, kind


def drawn_with(**more):
    cell = Cell(
        "instrumental_learning", {}, "rescorla_wagner", population=replace(HYPERPRIOR, **more),
        sessions=2, subjects=400,
    )  # fmt: skip
    return cell, Study("calibrate", (cell,), 1, SEED, "replicate")


def test_a_group_within_subjects_is_drawn_by_its_formula():
    cell, study = drawn_with(formula=[FORMULA])
    found = draw_subjects(study, Batch(0, 0, 1))
    parameters = AGENTS["rescorla_wagner"].parameters
    z = parameters.unconstrain(found.of_session)
    np.testing.assert_allclose(z[0, :, 1:], z[1, :, 1:])
    change, spread = z[1, :, 0] - z[0, :, 0], found.terms["sd(alpha ~ session[T.1])"][0]
    effect = found.terms["alpha ~ session[T.1]"][0]
    # 4 standard errors of a mean, of a log sd, and of Fisher's z, of 400.
    assert abs(change.mean() - effect) < 4 * spread / 20
    assert abs(np.log(change.std() / spread)) < 4 / np.sqrt(800)
    r = found.terms["cor(alpha, alpha ~ session[T.1])"][0]
    assert abs(np.arctanh(np.corrcoef(z[0, :, 0], change)[0, 1]) - np.arctanh(r)) < 4 / 20
    assert design_of(cell, parameters, 400).rows[:2] == ("0 | 0", "1 | 0")
    assert Unknowns.of(AGENTS["rescorla_wagner"]).parameters.names == parameters.names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "map", "correlated": True}, "--method hierarchical; got map"),
        ({"formula": [FORMULA]}, "Ask for more .--sessions 2"),
        ({"formula": ["alpha ~ drug + (drug | subject)"], "sessions": 2}, "'drug' .* is not"),
        ({"correlated": True, "fixed": {"alpha": 0.3, "beta": 2.0}}, "kappa alone is free"),
    ],
)
def test_what_cannot_be_calibrated_is_answered_with_the_rule(given, message):
    asked = {"method": "hierarchical"} | given
    with pytest.raises(ValueError, match=message):
        compute(Calibrate(InstrumentalLearning(8), "rescorla_wagner", **asked))
