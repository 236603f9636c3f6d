"""Values of several units in one column: each row says on what scale it is."""

import json

import pytest

import knownminds as package


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    file = tmp_path_factory.mktemp("played") / "trials.csv"
    package.simulate("instrumental_learning", subjects=6, trials=24, seed=1, out=file)
    return file


@pytest.mark.long
def test_each_measure_says_where_it_can_lie(trials, knownminds):
    code, said, err = knownminds("score", trials, "--json")
    assert code == 0, err
    scales = {row["measure"]: row["scale"] for row in json.loads(said)["tables"]["measures"]}
    wanted = {"optimism_bias": "(-1, 1)", "learning_rate": "(0, 1)", "performance": "(0, 1)"}
    assert scales == wanted
    code, said, err = knownminds("score", trials)
    assert "(-1, 1)" in said


@pytest.mark.parametrize("method", ["map", "mle"])
def test_each_group_value_says_its_scale(method, trials, knownminds):
    words = ("fit", trials, "--model", "rescorla_wagner", "--method", method)
    code, said, err = knownminds(*words, "--json")
    assert code == 0, err
    scales = {row["parameter"]: row["scale"] for row in json.loads(said)["tables"]["parameters"]}
    wanted = {"alpha": "(0, 1)", "beta": "(0, inf)", "kappa": "(-inf, inf)"}
    wanted |= {"sd(alpha)": "logit", "sd(beta)": "log", "sd(kappa)": "identity"}
    assert scales == {name: wanted[name] for name in scales}
    code, said, err = knownminds(*words)
    assert "(0, inf)" in said


def test_weights_and_correlations_of_groups_have_scales():
    import pandas as pd

    from knownminds.agents import RescorlaWagner
    from knownminds.validation.data.fit import with_scales

    names = ["alpha", "alpha ~ drug[T.on]", "sd(beta | item)", "cor(alpha, beta)"]
    values = pd.DataFrame({"parameter": names, "estimate": 0.0, "low": 0.0, "high": 0.0})
    quantity = ["group_mean", "weight", "spread", "correlation"]
    told = with_scales(values.assign(quantity=quantity), RescorlaWagner.parameters)
    assert list(told["scale"]) == ["(0, 1)", "logit", "log", "(-1, 1)"]
