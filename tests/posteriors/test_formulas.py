"""Formulas within subjects: what they make of a group, what comes back, and what is said of it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.fit import REPORT
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_t, norm

from knownminds import inference
from knownminds.agents import AGENTS, Perseverator, RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import ModelData, Unknowns, hierarchical, leave_one_subject_out
from knownminds.inference.groups.contrasts import contrasts_of, negligible
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.posteriors import left_out_subjects
from knownminds.inference.posteriors.comparison import marginal_log_likelihood
from knownminds.inference.posteriors.left_out_subjects import predict_left_out
from knownminds.validation.data.fit import fit, read_fit
from knownminds.validation.data.fit_page import fit_page

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


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("alpha ~ drog + (drug | subject)", "'drog' in .* Did you mean drug?"),
        (
            "alpha ~ drug",
            r"'drug' changes within subjects.*Write alpha ~ drug \\+ \\(drug \\| subj",
        ),
        ("alpha ~ drug + (age | subject)", "'age' .* does not.*Take it out"),
        ("alpha ~ drug + (drug | place)", "Behind the bar .* subject; got 'place'"),
        ("alpha ~ drug + (0 + drug | subject)", r"Write \\(drug \\| subject\\)"),
        ("alpha ~ drug + (drug | subject) + (age | subject)", "once in a formula"),
        ("alpha ~ drug | subject", "in parentheses of their own"),
        (["alpha ~ age", "alpha ~ drug + (drug | subject)"], "alpha has several. Join"),
        ("alfa ~ drug + (drug | subject)", "Did you mean alpha"),
        ("alpha ~ trial + (trial | subject)", "carries what it learned .* 'trial' changed"),
        ("alpha ~ reward + (reward | subject)", "'reward' in .* is not"),
    ],
)
def test_a_formula_that_cannot_be_is_answered_with_the_rule(formula, message):
    trials, _ = study(4, 4)
    with pytest.raises(ValueError, match=message.replace("\\\\", "\\")):
        design_of(formula, trials)


def test_a_column_lacks_no_value_and_changes_in_several_subjects():
    trials, _ = study(4, 4)
    frame = trials.frame
    gone = Trials.from_frame(frame.assign(drug=frame["drug"].where(frame.index != 2)))
    with pytest.raises(ValueError, match=r"Every trial needs a 'drug'; row 3 .* has none"):
        design_of(FORMULA, gone)
    one = np.where((frame["drug"] == "on") & (frame["subject"] != "0"), "off", frame["drug"])
    with pytest.raises(ValueError, match="changes within fewer than two"):
        design_of("alpha ~ drug + (drug | subject)", Trials.from_frame(frame.assign(drug=one)))


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
    who = np.array([found.owners.index(name.split(" | ")[0]) for name in found.subjects])
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
    loo = leave_one_subject_out(found)
    assert loo.subjects == found.owners
    assert np.isfinite(loo.elpd).all()


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
    contrasts = {one.name: one for one in contrasts_of(found)}
    for name, draws in by_hand(found).items():
        np.testing.assert_allclose(contrasts[name].draws.ravel(), draws, atol=1e-12)
    assert [one.kind for one in contrasts.values()] == ["between", "within"]
    wide = contrasts_of(found, {"alpha": 0.9})
    assert {one.verdict for one in wide} == {"negligible"}
    assert wide[0].inside == 1.0
    own = RescorlaWagner.parameters["alpha"]
    half = 0.05 * (expit(own.mean + own.sd) - expit(own.mean - own.sd))
    assert negligible(RescorlaWagner.parameters)["alpha"] == pytest.approx(half)
    with pytest.raises(ValueError, match="Did you mean alpha"):
        contrasts_of(found, {"alpa": 0.1})
    with pytest.raises(ValueError, match="wider than 0"):
        contrasts_of(found, {"alpha": 0.0})


def test_a_report_quotes_contrasts_and_every_sentence_is_proved(fitted, monkeypatch, tmp_path):
    trials, _, whole = fitted
    monkeypatch.setattr(type(whole), "verdict", property(lambda self: "converged"))
    monkeypatch.setattr(inference, "hierarchical", lambda *_, **__: whole)
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 60)
    result = fit(
        trials, "rescorla_wagner", method="hierarchical", formula=[FORMULA], workers=1,
        against=["random_responder"], correlated=True,
    )  # fmt: skip
    assert result.n_subjects == 2 * N
    draws = {term: values for term, values, _ in whole.terms()}
    facts = SimpleNamespace(
        content=result.to_dict(), trials=trials.frame, draws=draws, contrasts=by_hand(whole)
    )
    ours = (
        "They are of",
        "Units are",
        "alpha",
        "sd(",
        "cor(",
        "Each model is",
        "random_responder has",
    )
    told = [s for s in result.sentences if s.startswith(ours) and " r = " not in s]
    check(REPORT, told, facts)
    assert sum("natural scale): difference" in sentence for sentence in told) == 2
    assert any(
        s.startswith(f"Each model is a group of its own with {FORMULA} and corr") for s in told
    )
    assert any(s.startswith(f"random_responder has no parameter that {FORMULA}") for s in told)
    assert result.rivals.subjects == N  # whole subjects are left out
    page = fit_page(result)
    (table,) = [rows for title, _, rows in page.tables if title.startswith("Contrasts")]
    assert {row[0] for row in table} == set(by_hand(whole))
    check(REPORT, [f"{f.name}: {f.word}. {f.why}" for f in page.findings if " - " in f.name], facts)
    result.save(tmp_path)
    again = read_fit(tmp_path)
    assert again.contrasts == result.contrasts
    assert again.rivals == result.rivals
    assert (again.rivals.without, again.rivals.formulas) == ((), (FORMULA,))
    found = inference.read_posterior(tmp_path / "posterior.nc")
    assert found["log_likelihood"]["subject"].sizes["subject_name"] == N


def test_two_subjects_of_whom_one_says_nothing_are_fitted_and_called_what_they_are():
    trials, _ = study(2, 8)
    frame = trials.frame.copy()
    lost = frame["subject"] == "1"
    frame.loc[lost, ["action", "reward"]] = np.nan
    frame.loc[lost, "outcome"] = "refused"
    silent = Trials.from_frame(frame)
    few = {"draws": 20, "tune": 30, "rounds": 1, "seed": 1, "cores": 1, "chains": 2}
    found = hierarchical(RescorlaWagner, silent, formula="alpha ~ drug + (drug | subject)", **few)
    assert found.verdict == "not converged"
    assert np.isfinite(found.z_draws).all()
    assert found.data.n_trials.tolist()[2:] == [0, 0]


def test_rows_may_change_from_trial_to_trial_where_nothing_is_carried_on():
    trials, _ = study(4, 4)
    made = design_of("b_0 ~ trial + (trial | subject)", trials, AGENTS["weighted_bayes"])
    assert len(made.rows) == 4 * trials.frame["trial"].nunique()


def by_proposals(trials, draws=4000):
    """Return log p(y_i | others) of `kappa ~ age + drug + (drug | subject)`, with no fit at all.

    Groups are proposed from a t, matched in four rounds to what all subjects say, and weighed by
    hyperpriors and by what subjects do under them, which is integrated over their two deviations by
    Gauss and Hermite. Also returns how many draws the others' weights are worth.
    """
    (kappa,) = Perseverator.parameters
    node, weight = np.polynomial.hermite_e.hermegauss(13)
    first, second = (axis.ravel() for axis in np.meshgrid(node, node))
    log_weight = np.log(np.outer(weight, weight).ravel() / (2 * np.pi))
    grid = np.linspace(-30, 30, 3001)
    theta = kappa.support.constrain(grid[:, None])
    known = {}
    for (name, drug), own in trials.frame.groupby(["subject", "drug"]):
        data = ModelData.read(Perseverator, Trials.from_frame(own), 2)
        known[name, drug] = data.repeat(np.zeros(len(grid), dtype=int)).log_likelihood(theta)[0]
    young = trials.frame.groupby("subject")["age"].first() == "young"

    def of_subjects(x):
        mean, age, drug, sd, slope_sd, turn = (column[:, None] for column in x.T)
        base = np.exp(sd) * first
        change = drug + np.exp(slope_sd) * (np.tanh(turn) * first + second / np.cosh(turn))
        found = []
        for name in young.index:
            z = mean + age * young[name] + base
            total = np.interp(z, grid, known[name, "off"])
            total += np.interp(z + change, grid, known[name, "on"])
            found.append(logsumexp(total + log_weight, axis=1))
        return np.column_stack(found)

    def log_prior(x):
        normal = norm.logpdf(x[:, :3], [kappa.mean, 0, 0], kappa.sd).sum(axis=1)
        spreads = (norm.logpdf(np.exp(x[:, 3:5]), scale=kappa.group_sd) + x[:, 3:5]).sum(axis=1)
        return normal + spreads - 4 * np.log(np.cosh(x[:, 5]))  # (1 - r**2) in r, times dr/dx

    centre, spread = np.zeros(6), np.diag([2.0, 2, 2, 1, 1, 1])
    for number in range(4):
        proposal = multivariate_t(centre, spread, df=5, seed=number)
        x = proposal.rvs(draws)
        each = of_subjects(x)
        prior = log_prior(x) - proposal.logpdf(x)
        share = np.exp((whole := prior + each.sum(axis=1)) - logsumexp(whole))
        share = share**0.5 / (share**0.5).sum() if number == 0 else share
        centre = share @ x
        spread = 1.2 * (share[:, None] * (x - centre)).T @ (x - centre)
    rest = whole[:, None] - each
    share = np.exp(rest - logsumexp(rest, axis=0))
    return logsumexp(rest + each, axis=0) - logsumexp(rest, axis=0), 1 / (share**2).sum(axis=0)


@pytest.mark.long
def test_left_out_subjects_are_predicted_with_the_formula(monkeypatch):
    place, formula = InstrumentalLearning(3), "kappa ~ age + drug + (drug | subject)"
    rng = np.random.default_rng(1)
    parts = []
    for on in (0, 1):
        kappa = -1.5 + 3.0 * on + 0.5 * rng.normal(size=(10, 1))
        lived = simulate(Perseverator, kappa, place, 1, address=(on,)).to_frame()
        age = np.where(lived["subject"].astype(int) % 2, "old", "young")
        parts.append(lived.assign(session=str(on), drug=("off", "on")[on], age=age))
    trials = Trials.from_frame(pd.concat(parts, ignore_index=True))
    truth, worth = by_proposals(trials)
    assert worth.min() > 1000
    design = design_of(formula, trials, Perseverator)
    data = ModelData.read(Perseverator, trials, 2, rows=design.of_trial)
    found = predict_left_out(data, design=design, workers=1).left_out
    assert found.subjects == tuple(map(str, range(10)))
    # 400 effective draws at least, 1,000 of the brute ones, of weights with a relative sd below
    # 1.2: errors of .07; 4 of them
    assert np.abs(found.elpd - truth).max() < 0.28
    plain = predict_left_out(ModelData.read(Perseverator, trials, 2), workers=1).left_out
    assert found.total > plain.total + 5  # who plays on under the drug is expected to
    monkeypatch.setattr(left_out_subjects, "LARGEST_PARETO_K", -np.inf)
    monkeypatch.setattr(left_out_subjects, "MOST_REFITS", 2)
    again = predict_left_out(data, design=design, workers=1).left_out
    assert again.refitted.sum() == 2
    anew = again.refitted > 0
    assert np.abs(again.elpd - truth)[anew].max() < 0.28
    np.testing.assert_array_equal(again.elpd[~anew], found.elpd[~anew])
