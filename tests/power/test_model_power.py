"""Power of a comparison of models: recomputed from its rows, from priors and from a pilot."""

import numpy as np
import pytest

from knownminds.validation.cli import main
from knownminds.validation.power import model_power as module
from knownminds.validation.power.model_power import model_power
from knownminds.validation.recovery.model_recovery import confuse

PLACE, MODELS = "instrumental_learning", ["rescorla_wagner_dual", "random_responder"]
ASKED = {"model": MODELS[0], "replicates": 30, "seed": 3, "workers": 1}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "study"
    given = {"subjects": [1, 3], "trials": [8, 24], "out": out}
    return out, model_power(PLACE, MODELS[1:], **given, **ASKED)


def test_one_subject_is_found_as_often_as_by_model_recovery(found):
    _, result = found
    whole = confuse(PLACE, MODELS, trials=24, replicates=150, criteria=["bic"], seed=8, workers=1)
    for name, share in zip(MODELS, np.diag(whole["bic"].confusion.value), strict=True):
        (own,) = (one for one in result.found if one.cell.model == name and one.size == (1, 1, 24))
        # two shares of 150 and 30 data sets: 3.5 errors of their difference
        error = (share * (1 - share) * (1 / 150 + 1 / 30) + 1e-4) ** 0.5
        assert abs(own.won.value - share) < 3.5 * error


def test_failed_data_sets_are_misses(monkeypatch):
    own = module.choose_batch

    def broken(study, batch, threads):
        rows = own(study, batch, threads)
        rows.loc[0, ["status", "message", "best"]] = ["failed", "no fit", -1]
        rows.loc[1, "best"] = -1
        return rows

    monkeypatch.setattr(module, "choose_batch", broken)
    found = model_power(PLACE, MODELS[1:], trials=24, backend="threads", **ASKED)
    assert [(one.failed, one.undecided) for one in found.found] == [(1, 1), (1, 1)]
    assert all(one.won.value <= 28 / 30 for one in found.found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--against", "random_responder", "--effect", "optimism_bias=1"], "got --effect"),
        (["--against", "random_responder", "--find", "sessions"], "got --find"),
        (["--against", "random_responder", "--criterion", "loo"], "aic"),
        (["--against", "rescorla_wagner_dual"], "twice"),
        (["--criterion", "aic", "--effect", "optimism_bias=1"], "add --against"),
        ([], "--against MODEL; got neither"),
    ],
)
def test_what_is_no_comparison_is_refused(given, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["power", PLACE, "--model", MODELS[0], *given])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.replace("\n", " ")
