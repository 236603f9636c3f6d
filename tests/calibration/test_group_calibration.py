"""Calibration of groups whose parameters go together or change within subjects, and its controls.

The full runs are stored with their commands in tests/long/group_calibration.json.
"""

import numpy as np
import pandas as pd
import pytest
from stored_runs import keep

from knownminds.agents import AGENTS
from knownminds.environments import InstrumentalLearning
from knownminds.inference.fits.model_data import Unknowns
from knownminds.validation.calibration.calibration import calibrate, compute
from knownminds.validation.calibration.questions import Calibrate
from knownminds.validation.engine.population import HYPERPRIOR, design_of, draw_subjects
from knownminds.validation.engine.study import Batch, Cell, Study

NAME, SEED = "group_calibration", 1
FORMULA = "alpha ~ session + (session | subject)"
WITHIN = {"formula": [FORMULA], "sessions": 2}
KINDS = {
    "correlated": {"correlated": True},
    "correlated, control": {"correlated": True, "control": True},
    "within": WITHIN,
    "within, control": {**WITHIN, "control": True},
}


COMMAND = (
    "knownminds calibrate instrumental_learning --set n_visits=12 --model rescorla_wagner "
    "--method hierarchical --subjects 20"
)
ASKED = {
    "correlated": "--correlated",
    "correlated, control": "--correlated --control",
    "within": f'--sessions 2 --formula "{FORMULA}"',
    "within, control": f'--sessions 2 --formula "{FORMULA}" --control',
}
REPLICATES = 80


def run(kind, replicates, out=None, workers=1):
    return calibrate(
        InstrumentalLearning(12), "rescorla_wagner", method="hierarchical", subjects=20, seed=SEED,
        replicates=replicates, workers=workers, out=out, **KINDS[kind],
    )  # fmt: skip


def ranks_of(folder):
    parts = [pd.read_parquet(file) for file in (folder / "parts").glob("*.parquet")]
    table = pd.concat(parts).sort_values("replicate")
    return {c.removeprefix("rank "): table[c].to_numpy() for c in table if c.startswith("rank ")}


def told(kind, found, folder):
    """What is stored of a study: its command, the verdicts, and the ranks of its beginning."""
    ranks = ranks_of(folder)
    return {
        "command": f"{COMMAND} {ASKED[kind]} --replicates {REPLICATES} --seed {SEED}",
        "replicates": found.attempted,
        "statuses": dict(found.statuses),
        "quantities": {
            name: {"verdict": q.word, "p": q.p_value, "mean": q.mean, "spread": q.spread}
            for name, q in found.quantities.items()
        },
        "first": {name: ranks[name][:2].tolist() for name in ranks},
    }


@pytest.mark.long
def test_groups_are_calibrated_and_controls_are_not_anew(tmp_path):
    numbers = {}
    for kind in KINDS:
        folder = tmp_path / kind.replace(", ", "_")
        numbers[kind] = told(kind, run(kind, REPLICATES, folder, workers=2), folder)
    kept = keep(NAME, numbers, SEED, __file__)
    for kind, anew in numbers.items():
        verdicts = {name: q["verdict"] for name, q in anew["quantities"].items()}
        before = {name: q["verdict"] for name, q in kept[kind]["quantities"].items()}
        assert verdicts == before, kind


def law(**more):
    cell = Cell(
        "instrumental_learning", {}, "rescorla_wagner", law={**HYPERPRIOR, **more}, sessions=2,
        subjects=400,
    )  # fmt: skip
    return cell, Study("calibrate", (cell,), 1, SEED, "replicate")


def test_a_group_within_subjects_is_drawn_by_its_law():
    cell, study = law(formula=[FORMULA])
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
        ({"control": True}, "nothing does. Add --correlated"),
        ({"formula": [FORMULA]}, "Ask for more .--sessions 2"),
        ({"formula": ["alpha ~ drug + (drug | subject)"], "sessions": 2}, "'drug' .* is not"),
        ({"correlated": True, "fixed": {"alpha": 0.3, "beta": 2.0}}, "kappa alone is free"),
    ],
)
def test_what_cannot_be_calibrated_is_answered_with_the_rule(given, message):
    asked = {"method": "hierarchical"} | given
    with pytest.raises(ValueError, match=message):
        compute(Calibrate(InstrumentalLearning(8), "rescorla_wagner", **asked))
