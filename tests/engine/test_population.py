import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import InstrumentalLearning, make
from knownminds.inference import ModelData
from knownminds.validation.engine.population import HYPERPRIOR, check_step_loop, draw_subjects, live
from knownminds.validation.engine.study import Batch, Cell, Study

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner_dual"
PARAMETERS = AGENTS[MODEL].parameters
NAMED = {
    "group_mean": {"alpha_positive": -0.5, "alpha_negative": -1.5, "beta": 1.0, "kappa": 0.2},
    "group_sd": {"alpha_positive": 0.3, "alpha_negative": 0.6, "beta": 0.2, "kappa": 0.1},
}
LAWS = [{}, HYPERPRIOR, NAMED]


def a_study(subjects=4, replicates=3, seed=0, unit="subject", model=MODEL, **fields):
    cell = Cell(PLACE, {"n_visits": 2}, model, subjects=subjects, **fields)
    return Study("t", (cell,), replicates, seed, unit)


def everyone(study):
    return draw_subjects(study, Batch(0, 0, study.units(0)))


def moments_agree(z, mean, sd):
    """Mean and standard deviation of normal numbers z, [n, P], within 4 standard errors."""
    n = len(z)
    assert (abs(z.mean(axis=0) - mean) < 4 * sd / np.sqrt(n)).all()
    assert (abs(z.std(axis=0, ddof=1) - sd) < 4 * sd / np.sqrt(2 * n)).all()


# The law of the subjects


def test_subjects_of_no_group_come_from_the_priors():
    drawn = everyone(a_study(50, 80))
    moments_agree(PARAMETERS.unconstrain(drawn.theta), PARAMETERS.mean, PARAMETERS.sd)
    assert np.array_equal(drawn.group_mean, np.tile(PARAMETERS.mean, (80, 1)))
    assert np.array_equal(drawn.group_sd, np.tile(PARAMETERS.sd, (80, 1)))
    # Independent between subjects: nothing is shared within a replicate. The mean of 50 varies
    # between 80 replicates with variance 1 / 50, known to sqrt(2 / 80) = 16%; bound 4 times this.
    z = (PARAMETERS.unconstrain(drawn.theta) - PARAMETERS.mean) / PARAMETERS.sd
    between = z.reshape(80, 50, -1).mean(axis=1).var(axis=0, ddof=1) * 50
    assert (abs(between - 1) < 0.64).all()


def test_groups_are_drawn_from_the_hyperpriors_and_subjects_from_their_group():
    drawn = everyone(a_study(4, 2000, law=HYPERPRIOR))
    moments_agree(drawn.group_mean, PARAMETERS.mean, PARAMETERS.sd)
    scale = np.array([p.group_sd for p in PARAMETERS])
    assert (drawn.group_sd > 0).all()
    # Half-normal: mean square scale**2, whose relative standard error is sqrt(2 / 2000).
    square = (drawn.group_sd**2).mean(axis=0) / scale**2
    assert (abs(square - 1) < 4 * np.sqrt(2 / 2000)).all()
    z = PARAMETERS.unconstrain(drawn.theta)
    standard = (z - drawn.group_mean[drawn.replicate]) / drawn.group_sd[drawn.replicate]
    moments_agree(standard, np.zeros(4), np.ones(4))
    # What subjects add is unrelated to their group, and the group's spread to its mean.
    mean = (drawn.group_mean - PARAMETERS.mean) / PARAMETERS.sd
    others = [standard[drawn.number == i] for i in range(4)]
    for group, unrelated in [(mean, [drawn.group_sd, *others]), (drawn.group_sd, others)]:
        for other in unrelated:
            for a in (group, abs(group)):
                for b in (other, abs(other)):
                    r = np.corrcoef(a.T, b.T)[:4, 4:]
                    assert abs(r).max() < 4.5 / np.sqrt(2000)  # some 600 pairs: 0.4% a false alarm


def test_named_groups_are_as_named():
    drawn = everyone(a_study(50, 80, law=NAMED))
    mean, sd = (np.array([NAMED[k][n] for n in PARAMETERS.names]) for k in NAMED)
    moments_agree(PARAMETERS.unconstrain(drawn.theta), mean, sd)
    assert np.array_equal(drawn.group_mean, np.tile(mean, (80, 1)))
    assert np.array_equal(drawn.group_sd, np.tile(sd, (80, 1)))


def test_the_order_in_which_a_named_law_is_written_does_not_matter():
    turned = {k: dict(reversed(v.items())) for k, v in NAMED.items()}
    assert np.array_equal(everyone(a_study(law=NAMED)).theta, everyone(a_study(law=turned)).theta)


def test_parameters_correlate_with_nothing():
    z = PARAMETERS.unconstrain(everyone(a_study(50, 80)).theta)
    r = np.corrcoef(z.T)[np.triu_indices(4, 1)]
    assert (abs(r) < 4 / np.sqrt(4000)).all()


@pytest.mark.parametrize("law", LAWS)
def test_a_held_parameter_is_held_and_shifts_no_other(law):
    free = a_study(law=law)
    held = a_study(law=law, truth={"beta": 3.5})
    k = PARAMETERS.index("beta")
    assert (everyone(held).theta[:, k] == 3.5).all()
    assert len(np.unique(everyone(free).theta[:, k])) == 12
    # Another truth is another design with draws of its own.
    assert not np.isin(everyone(held).theta, everyone(free).theta).any()


# Addresses


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("unit", ["subject", "replicate"])
def test_batches_hold_the_subjects_of_the_whole_study(law, unit):
    study = a_study(5, 4, unit=unit, law=law)
    whole = everyone(study)
    assert whole.replicate.tolist() == np.repeat(range(4), 5).tolist()
    assert whole.number.tolist() == list(range(5)) * 4
    span = 3 if unit == "subject" else 1
    at = 0
    for first in range(0, study.units(0), span):
        part = draw_subjects(study, Batch(0, first, min(first + span, study.units(0))))
        here = slice(at, at + len(part.theta))
        assert np.array_equal(part.theta, whole.theta[here])
        rows = np.unique(part.replicate)
        assert np.array_equal(part.group_mean, whole.group_mean[rows])
        assert np.array_equal(part.group_sd, whole.group_sd[rows])
        at += len(part.theta)
    assert at == 20


@pytest.mark.parametrize("law", LAWS)
def test_a_larger_study_begins_with_the_same_subjects_and_sessions(law):
    small, large = a_study(4, 3, law=law), a_study(6, 5, law=law, sessions=3)
    few, many = everyone(small), everyone(large)
    first = (many.replicate < 3) & (many.number < 4)
    assert np.array_equal(many.theta[first], few.theta)
    short = live(small, Batch(0, 0, 12), few)
    long = live(large, Batch(0, 0, 30), many)
    kept = first[long.subject] & (long.session == 0)
    for name, column in short.columns.items():
        assert np.array_equal(long.columns[name][kept], column), name


def test_seeds_and_replicates_draw_different_subjects():
    theta = everyone(a_study(4, 3)).theta
    assert len(np.unique(theta)) == theta.size
    assert not np.isin(everyone(a_study(4, 3, seed=1)).theta, theta).any()


def test_methods_see_the_same_minds_in_the_same_sessions():
    a, b = a_study(4, 3), a_study(4, 3, method="hierarchical", options={"fixed": {}}, batch=4)
    one, other = (live(s, Batch(0, 0, 12), everyone(s)) for s in (a, b))
    assert np.array_equal(everyone(a).theta, everyone(b).theta)
    assert all(np.array_equal(one.columns[k], other.columns[k]) for k in one.columns)


# Their sessions


def test_every_subject_lives_all_its_sessions_and_no_two_are_alike():
    study = a_study(3, 2, sessions=4)
    lived = live(study, Batch(0, 0, 6), everyone(study))
    n_trials = lived.environment.n_trials
    pairs, counts = np.unique([lived.subject, lived.session], axis=1, return_counts=True)
    assert pairs.shape == (2, 24)
    assert set(counts) == {n_trials}
    assert lived.n_subjects == 6
    sessions = {
        tuple(np.r_[lived.columns["context"], lived.columns["reward"]].reshape(2, -1)[:, k].ravel())
        for k in np.arange(24 * n_trials).reshape(24, n_trials)
    }
    assert len(sessions) == 24


def test_sessions_are_those_of_the_public_simulation():
    study = a_study(5, 2, sessions=3, lapse=0.2)
    subjects = everyone(study)
    lived = live(study, Batch(0, 0, 10), subjects)
    key = study.cells[0].data_key
    for replicate in range(2):
        for session in range(3):
            mine = subjects.replicate == replicate
            trials = simulate(
                AGENTS[MODEL],
                subjects.theta[mine],
                study.cells[0].make(),
                study.seed,
                address=(key, replicate, session),
                lapse=0.2,
            ).frame
            here = mine[lived.subject] & (lived.session == session)
            for name in ("context", "action", "reward"):
                assert np.array_equal(lived.columns[name][here], trials[name]), name


def test_the_record_reads_as_the_arrays_do():
    study = a_study(3, 2, sessions=2)
    subjects = everyone(study)
    lived = live(study, Batch(0, 0, 6), subjects)
    trials = lived.trials()
    assert trials.frame["subject"].nunique() == 6
    assert trials.frame["session"].nunique() == 2
    model = AGENTS[MODEL]
    fast, slow = lived.data(model), ModelData.read(model, trials)
    assert len(fast) == len(slow) == 6
    np.testing.assert_allclose(
        fast.log_likelihood(subjects.theta)[0], slow.log_likelihood(subjects.theta)[0], rtol=1e-12
    )
    # Sessions apart: learning begins anew in each as well when they are one subject's.
    apart = lived.data(model, apart=True)
    assert len(apart) == 12
    each = apart.log_likelihood(np.tile(subjects.theta, (2, 1)))[0].reshape(2, 6)
    np.testing.assert_allclose(each.sum(axis=0), fast.log_likelihood(subjects.theta)[0], rtol=1e-12)


# The step loop as a check of the compiled one


@pytest.mark.parametrize(
    "name", sorted(name for name, model in AGENTS.items() if model.plays(InstrumentalLearning()))
)
@pytest.mark.parametrize("lapse", [0.0, 0.3])
@pytest.mark.parametrize("law", [{}, HYPERPRIOR])
def test_the_step_loop_lives_the_same_session(name, lapse, law):
    for unit in ("subject", "replicate"):
        study = a_study(3, 2, unit=unit, model=name, lapse=lapse, law=law, sessions=2)
        check_step_loop(study)


def test_a_broken_reward_is_found(monkeypatch):
    step = InstrumentalLearning.step

    def wrong(self, choice):
        observation, reward, *rest = step(self, choice)
        return observation, 1.0 - reward, *rest

    study = a_study()
    check_step_loop(study)
    monkeypatch.setattr(InstrumentalLearning, "step", wrong)
    with pytest.raises(RuntimeError, match=f"{MODEL} plays differently in {PLACE} step by step"):
        check_step_loop(study)


def test_a_broken_design_is_found(monkeypatch):
    honest = InstrumentalLearning.follow
    monkeypatch.setattr(InstrumentalLearning, "follow", lambda self, d, a: honest(self, d, 1 - a))
    with pytest.raises(RuntimeError, match=r"column reward"):
        check_step_loop(a_study())


@pytest.mark.parametrize("method", ["learn", "choose"])
def test_a_broken_agent_is_found(monkeypatch, method):
    broken = {
        "learn": lambda self, observation, action, reward: None,
        "choose": lambda self, observation, rng: int(rng.random() < 0.5),
    }
    # A mind that learns much and chooses by it: chance hardly plays the same 96 trials.
    cell = Cell(PLACE, {}, MODEL, {"alpha_positive": 0.5, "alpha_negative": 0.5, "beta": 8.0})
    study = Study("t", (cell,))
    check_step_loop(study)
    monkeypatch.setattr(AGENTS[MODEL], method, broken[method])
    with pytest.raises(RuntimeError, match="column action"):
        check_step_loop(study)


def test_every_cell_is_checked(monkeypatch):
    cells = (
        Cell(PLACE, {"n_visits": 2}, "random_responder"),
        Cell(PLACE, {}, MODEL, {"alpha_positive": 0.5, "alpha_negative": 0.5, "beta": 8.0}),
    )
    monkeypatch.setattr(AGENTS[MODEL], "learn", lambda *_: None)
    check_step_loop(Study("t", cells[:1]))
    with pytest.raises(RuntimeError, match=f"{MODEL} plays differently"):
        check_step_loop(Study("t", cells))


def test_an_environment_makes_itself_from_the_cell():
    assert Cell(PLACE, {"n_visits": 5}, MODEL).make().settings == make(PLACE, n_visits=5).settings
