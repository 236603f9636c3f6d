import numpy as np
import pandas as pd
import pytest

from knownminds.validation.data.feature_regression import feature_regression

B = {"rlhf": 0.5, "size": -0.3}
BETWEEN, WITHIN = 0.6, 0.5


def tables(seed, b=B, groups=8, each=4, between=BETWEEN):
    """Participants of several base models; rlhf varies within them, size between them."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    n = len(group)
    rlhf, size = (rng.random(n) < 0.5).astype(float), rng.normal(2, 1, groups)[group]
    intercept = between * rng.normal(size=groups)[group]
    score = 1 + b["rlhf"] * rlhf + b["size"] * size + intercept + WITHIN * rng.normal(size=n)
    name = [f"model {i}" for i in range(n)]
    base = [f"base {g}" for g in group]
    scores = pd.DataFrame({"participant": name, "metric": "risk", "score": score})
    features = {"participant": name, "base_model": base, "rlhf": rlhf, "size": size}
    return scores, pd.DataFrame(features)


def run(scores, features, regressors=("rlhf", "size"), **settings):
    return feature_regression(scores, features, regressors=regressors, **settings)


@pytest.mark.long
def test_known_coefficients_are_recovered_within_their_errors():
    n = 60
    effects = [run(*tables(seed)).set_index("feature") for seed in range(n)]
    for name, truth in B.items():
        b = np.array([own.loc[name, "coefficient"] for own in effects])
        errors = np.array([own.loc[name, "standard_error"] for own in effects])
        held = np.mean([own.loc[name, "low"] <= truth <= own.loc[name, "high"] for own in effects])
        assert abs(b.mean() - truth) < 3.5 * b.std() / np.sqrt(n), name
        # A standard deviation of n has the relative error 1 / sqrt(2 n); 4 of them, and 10% for
        # variances that are estimated from 8 base models.
        assert abs(errors.mean() / b.std() - 1) < 4 / np.sqrt(2 * n) + 0.1, name
        # Binomial: 95% of 60 is 57; 50 or fewer happen once in 280 seeds.
        assert held >= 51 / n, name


@pytest.mark.long
def test_without_an_effect_five_in_a_hundred_tests_reject():
    n, nothing = 80, {"rlhf": 0.0, "size": 0.0}
    p = np.array([run(*tables(s, nothing))["p_value"] for s in range(n)])
    assert np.isfinite(p).all()
    # Binomial with .05: more than 11 of 80 happen once in 1,200 seeds. A normal test of `size`,
    # whose degrees of freedom are 6, is too bold; that is the next test.
    assert np.all((p < 0.05).sum(axis=0) <= 11)
    assert (p < 0.5).mean() > 0.3  # and it is not that nothing ever looks like an effect


def test_degrees_of_freedom_are_those_of_the_level_on_which_a_feature_varies():
    effects = run(*tables(0))
    assert effects["degrees_of_freedom"].tolist() == [32 - 8 - 1, 8 - 1 - 1]


def test_it_is_what_statsmodels_finds():
    import statsmodels.formula.api as smf

    scores, features = tables(2)
    fit = run(scores, features)
    both = scores.merge(features, on="participant")
    other = smf.mixedlm("score ~ rlhf + size", both, groups="base_model").fit(method="powell")
    for effect in fit.itertuples():
        assert effect.coefficient == pytest.approx(other.params[effect.feature], rel=1e-3)
        assert effect.standard_error == pytest.approx(other.bse[effect.feature], rel=1e-2)
    assert fit["between_sd"][0] == pytest.approx(np.sqrt(other.cov_re.iloc[0, 0]), rel=1e-2)
    assert fit["residual_sd"][0] == pytest.approx(np.sqrt(other.scale), rel=1e-3)


def test_units_do_not_matter():
    scores, features = tables(3)
    plain = run(scores, features)
    large = run(
        scores.assign(score=scores.score * 1e6), features.assign(size=features["size"] * 1e9)
    )
    units = np.array([1e6, 1e-3])
    assert (large["coefficient"] / units).tolist() == pytest.approx(
        plain["coefficient"].tolist(), rel=1e-3
    )
    assert large["p_value"][1] == pytest.approx(plain["p_value"][1], rel=1e-2)
    standard = run(scores, features, standardise=True)["coefficient"]
    ratio = features["size"].std() / scores["score"].std()
    assert standard[1] == pytest.approx(plain["coefficient"][1] * ratio, rel=1e-3)


def test_participants_without_a_score_are_counted_and_constant_scores_said():
    scores, features = tables(4)
    scores.loc[[0, 7], "score"] = np.nan
    flat = scores.assign(metric="flat", score=2.0)
    fit = run(pd.concat([scores, flat]), features)
    fits = fit.drop_duplicates("metric")
    assert fits[["participants", "excluded", "status"]].values.tolist() == [
        [30, 2, "ok"], [32, 0, "all scores are the same"],
    ]  # fmt: skip
    assert len(fit) == 4
    assert fit.loc[fit["metric"] == "flat", ["coefficient", "p_value"]].isna().all(axis=None)


def collinear(features):
    return features.assign(double=2 * features["rlhf"] + features["size"])


def test_only_the_features_that_depend_on_each_other_are_named():
    scores, features = tables(0)
    table = collinear(features).assign(innocent=np.arange(32) % 3)
    with pytest.raises(ValueError, match="size, double do") as told:
        run(scores, table, ["innocent", "rlhf", "size", "double"])
    assert "innocent" not in str(told.value)
