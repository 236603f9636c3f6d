"""Formulas within subjects: what they make of a group, what comes back, and what is said of it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import ModelData, Unknowns, hierarchical
from knownminds.inference.groups.contrasts import (
    contrasts_of,
    drawn_contrasts,
    negligible,
    values_of_levels,
)
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import marginal
from knownminds.inference.groups.population_draws import marginal_log_likelihood

MEAN = np.array([-0.6, 1.1, 0.2])
FORMULA = "alpha ~ age + drug + (drug | subject)"
N, DRUG, AGE = 16, 1.2, 0.8


def study(n=N, visits=24, seed=3, slope_sd=0.6):
    """People with and without a drug, in a session each; their learning rates move with it."""
    rng = np.random.default_rng(seed)
    z = MEAN + np.array([0.6, 0.4, 0.4]) * rng.normal(size=(n, 3))
    age = np.arange(n) % 2
    z[:, 0] += AGE * age
    slope = DRUG + slope_sd * rng.normal(size=n)
    parts = []
    for session, on in enumerate(("off", "on")):
        own = z.copy()
        own[:, 0] += slope * session
        theta = RescorlaWagner.parameters.constrain(own)
        lived = simulate(
            RescorlaWagner, theta, InstrumentalLearning(visits), seed, address=(session,)
        ).to_frame()
        who = lived["subject"].astype(int).to_numpy()
        old = np.where(age, "old", "young")[who]
        parts.append(lived.assign(session=str(session), drug=on, age=old))
    return Trials.from_frame(pd.concat(parts, ignore_index=True)), slope


def design_of(formula, trials, model=RescorlaWagner, **more):
    return GroupDesign.of(formula, trials.frame, model, Unknowns.of(model).parameters, **more)


@pytest.fixture(scope="module")
def fitted():
    trials, slope = study()
    settings = {"draws": 300, "tune": 300, "rounds": 1, "seed": 1, "cores": 1}
    return trials, slope, hierarchical(RescorlaWagner, trials, formula=FORMULA, **settings)


def test_a_formula_makes_rows_regressors_and_deviations():
    trials, _ = study(4, 4)
    made = design_of([FORMULA, "beta ~ age * drug + (drug || subject)"], trials)
    assert made.within == ("drug",)
    assert made.subjects == ("0", "1", "2", "3")
    assert made.rows == tuple(f"{s} | {d}" for s in "0123" for d in ("off", "on"))
    assert made.regressors.names == (
        "alpha ~ age[T.young]",
        "alpha ~ drug[T.on]",
        "beta ~ age[T.young]",
        "beta ~ drug[T.on]",
        "beta ~ age[T.young]:drug[T.on]",
    )
    young, on = np.repeat([1.0, 0.0, 1.0, 0.0], 2), np.tile([0.0, 1.0], 4)
    by_hand = np.column_stack([young, on, young, on, young * on])
    np.testing.assert_array_equal(made.regressors.by_subject, by_hand)
    own = made.deviations
    assert own.names == ("alpha", "beta", "kappa", "alpha ~ drug[T.on]", "beta ~ drug[T.on]")
    np.testing.assert_array_equal(own.weight, np.column_stack([np.ones((8, 3)), on, on]))
    assert own.pair_names == ("alpha, alpha ~ drug[T.on]",)
    together = design_of(FORMULA, trials, correlated=True).deviations
    assert len(together.pair_names) == 6
    # All are moved alike where subjects deviate in nothing but the parameter itself.
    alike = design_of("alpha ~ drug + (1 | subject)", trials).deviations
    assert (alike.names, len(alike.pairs)) == (("alpha", "beta", "kappa"), 0)
    data = ModelData.read(RescorlaWagner, trials, rows=made.of_trial)
    assert data.subjects == made.rows


def with_ages(trials):
    """Ages of the same people in four units and origins, and codes of three groups."""
    frame = trials.frame
    age = 20.0 + 3 * frame["subject"].astype(int)
    other = {"years": age, "since": age - 40, "born": 2026 - age, "seconds": 3e7 * age}
    return Trials.from_frame(frame.assign(**other, code=frame["subject"].astype(int) % 3 + 1))


@pytest.mark.parametrize("formula", ["alpha ~ {}", "alpha ~ {} * drug + (drug | subject)"])
def test_no_unit_and_no_origin_of_a_column_changes_what_is_found(formula):
    trials = with_ages(study(8, 12)[0])
    made = {c: design_of(formula.format(c), trials) for c in ("years", "since", "born", "seconds")}
    unknowns = Unknowns.of(RescorlaWagner)
    found = {}
    for name, design in made.items():
        rows = design.of_trial if design.within else None
        data = ModelData.read(RescorlaWagner, trials, rows=rows)
        found[name] = marginal(data, unknowns, design)
    first, per = found["years"].values, {"since": 1.0, "born": -1.0, "seconds": 1 / 3e7}
    for name, factor in per.items():
        expected = first.copy()
        for e, term in enumerate(made["years"].regressors.names):
            expected[3 + e] *= factor if "years" in term else 1.0
        assert found[name].values == pytest.approx(expected, abs=1e-5, rel=1e-4), name
        design, same = made[name].regressors, made["years"].regressors
        # In units of their priors weights are the same for the sampler as well.
        ours, theirs = (r.by_subject * r.prior_sd(unknowns.parameters) for r in (design, same))
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-12)
    assert made["born"].reference("alpha").startswith("born = ")
    assert made["born"].reference("beta") == ""
    middle = made["years"].frame["years"]
    assert abs(middle.mean()) < 1e-9


def test_codes_that_are_taken_for_numbers_are_named():
    trials = with_ages(study(8, 12)[0])
    assert design_of("alpha ~ code", trials).codes == ("code",)
    assert design_of("alpha ~ years", trials).codes == ()
    by_level = design_of("alpha ~ C(code)", trials)
    assert by_level.codes == ()
    assert by_level.reference("alpha") == "code = 1"


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("alpha ~ drog + (drug | subject)", "'drog' in .* Did you mean drug?"),
        (
            "alpha ~ drug",
            r"'drug' changes within subjects.*Write alpha ~ drug \\+ \\(drug \\| subj",
        ),
        ("alpha ~ drug + (age | subject)", "'age' .* does not.*Take it out"),
        ("alfa ~ drug + (drug | subject)", "Did you mean alpha"),
        ("alpha ~ trial + (trial | subject)", "carries what it learned .* 'trial' changed"),
    ],
)
def test_a_formula_that_cannot_be_is_answered_with_the_rule(formula, message):
    trials, _ = study(4, 4)
    with pytest.raises(ValueError, match=message.replace("\\\\", "\\")):
        design_of(formula, trials)


def test_what_moved_the_parameters_comes_back(fitted):
    _, slope, found = fitted
    for term, truth in (
        ("alpha ~ drug[T.on]", slope.mean()),
        ("alpha ~ age[T.young]", -AGE),
        ("sd(alpha ~ drug[T.on])", slope.std(ddof=1)),
    ):
        row = found.group.loc[term]
        # Within 3.5 posterior sds: one of 2,000 such comparisons fails.
        assert abs(row["mean"] - truth) < 3.5 * row["sd"], term
    assert found.group.loc["alpha ~ drug[T.on]", "low"] > 0
    assert found.pairs == ("alpha, alpha ~ drug[T.on]",)
    # Each subject's own effect is mean effect and deviation; 16 errors of which most are small.
    own = found.posterior["own"].sel(own_deviation="alpha ~ drug[T.on]").mean(("chain", "draw"))
    effect = found.group.loc["alpha ~ drug[T.on]", "mean"] + own.to_numpy()
    assert np.corrcoef(effect, slope)[0, 1] > 0.5


def test_rows_of_parameters_are_what_is_expected_and_what_subjects_deviate_in(fitted):
    """The compiled density gives the rows, NumPy the deviations from the same coordinates."""
    _, _, found = fitted
    posterior = found.posterior.stack(s=("chain", "draw")).transpose("s", ...)
    mean, effect = posterior["group_mean"].to_numpy(), posterior["effect"].to_numpy()
    own, z = posterior["own"].to_numpy(), posterior["z"].to_numpy()
    on = np.array([name.endswith("on") for name in found.subjects])
    young = np.array([int(name.split(" | ")[0]) % 2 == 0 for name in found.subjects])
    who = np.array([found.design.subjects.index(name.split(" | ")[0]) for name in found.subjects])
    by_hand = mean[:, None] + own[:, who, :3]
    by_hand[:, :, 0] += effect[:, [0]] * young + effect[:, [1]] * on + own[:, who, 3] * on
    np.testing.assert_allclose(z, by_hand, atol=1e-9)


def test_leaving_a_subject_out_takes_its_rows_together(fitted):
    """The likelihood of a subject under a draw of the group, by plain Monte Carlo."""
    _, _, found = fitted
    s, rng = 700, np.random.default_rng(0)
    got = marginal_log_likelihood(found, np.array([s]))[0]
    assert got.shape == (N,)
    posterior = found.posterior.stack(s=("chain", "draw")).transpose("s", ...)
    sd, slope_sd = posterior["group_sd"][s].to_numpy(), float(posterior["slope_sd"][s, 0])
    r = float(posterior["correlation"][s, 0])
    size = 4000
    normal = rng.normal(size=(size, 4))
    normal[:, 3] = r * normal[:, 0] + np.sqrt(1 - r * r) * normal[:, 3]
    for who in (0, 5):
        rows = [k for k, name in enumerate(found.subjects) if name.split(" | ")[0] == str(who)]
        total = np.zeros(size)
        for k in rows:
            z = found.expected_z[s, k] + normal[:, :3] * sd
            z[:, 0] += normal[:, 3] * slope_sd * found.subjects[k].endswith("on")
            several = found.data.repeat(np.full(size, k))
            theta = found.parameters.constrain(z)
            total += found.unknowns.log_likelihood(several, theta)[0]
        own = np.exp(total - total.max())
        error = own.std() / own.mean() / np.sqrt(size)
        # Monte-Carlo errors of both, ours being of 256 points of a better proposal.
        assert abs(logsumexp(total) - np.log(size) - got[who]) < 4 * error + 0.3


def by_hand(found):
    """Draws of both contrasts from those of mean and weights."""
    posterior = found.posterior.stack(s=("chain", "draw")).transpose("s", ...)
    mean = posterior["group_mean"][:, 0].to_numpy()
    young, drug = posterior["effect"].to_numpy().T
    drawn = 0.5 * (expit(mean + drug) - expit(mean))
    drawn += 0.5 * (expit(mean + young + drug) - expit(mean + young))
    grown = 0.5 * (expit(mean + young) - expit(mean))
    grown += 0.5 * (expit(mean + young + drug) - expit(mean + drug))
    return {"alpha: drug on - off": drawn, "alpha: age young - old": grown}


def test_contrasts_are_differences_between_medians(fitted):
    _, _, found = fitted
    contrasts = {about["contrast"]: draws for about, draws in drawn_contrasts(found)}
    for name, draws in by_hand(found).items():
        np.testing.assert_allclose(contrasts[name], draws, atol=1e-12)
    assert contrasts_of(found)["kind"].tolist() == ["between", "within"]
    wide = contrasts_of(found, {"alpha": 0.9})
    assert set(wide["verdict"]) == {"no difference"}
    assert wide["inside"][0] == 1.0
    own = RescorlaWagner.parameters["alpha"]
    half = 0.05 * (expit(own.mean + own.sd) - expit(own.mean - own.sd))
    assert negligible(RescorlaWagner.parameters)["alpha"] == pytest.approx(half)
    with pytest.raises(ValueError, match="Did you mean alpha"):
        contrasts_of(found, {"alpa": 0.1})
    with pytest.raises(ValueError, match="wider than 0"):
        contrasts_of(found, {"alpha": 0.0})


def test_each_group_has_its_value_and_their_difference_is_the_contrast(fitted):
    _, _, found = fitted
    table = values_of_levels(found).set_index(["column", "level"])
    posterior = found.posterior.stack(s=("chain", "draw")).transpose("s", ...)
    mean, effect = posterior["group_mean"].to_numpy()[:, 0], posterior["effect"].to_numpy()
    # Half of the rows are with the drug, half without; the other column stays as it is.
    for level, young in (("old", 0), ("young", 1)):
        z = mean + effect[:, 0] * young
        value = (expit(z) + expit(z + effect[:, 1])) / 2
        row = table.loc[("age", level)]
        assert row["estimate"] == pytest.approx(value.mean(), abs=1e-9)
        assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(value, [0.05, 0.95])))
        assert row["subjects"] == N / 2
    assert table.loc[("drug", "on"), "subjects"] == N
    contrast = contrasts_of(found).set_index("column").loc["age", "estimate"]
    difference = table.loc[("age", "young"), "estimate"] - table.loc[("age", "old"), "estimate"]
    assert contrast == pytest.approx(difference)
