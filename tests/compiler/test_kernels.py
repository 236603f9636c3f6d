"""Kernels from definitions: what they do is what the definition does, and a mistake is found."""

import pickle
import re
import subprocess
import sys

import hand_written_learner
import numpy as np
import pytest
from compiler.definitions import (
    Edged,
    Falling,
    Follower,
    Forgetful,
    Kalman,
    KalmanOnce,
    KalmanOnceGain,
    KalmanOnceLog,
    Odd,
    Opener,
    Staged,
    StatedTeller,
    Stayer,
    Teller,
    Tied,
    Walker,
    Weigher,
    world_of,
)
from scipy.special import expit

from knownminds.agents import (
    AGENTS,
    Model,
    Perseverator,
    Probabilities,
    RescorlaWagner,
    RescorlaWagnerDual,
    TwoStepHybrid,
    World,
    play,
    simulate,
)
from knownminds.agents.compiler import expressions as ex
from knownminds.agents.compiler.cache import loaded, simulation_source
from knownminds.agents.compiler.checking import check_kernels, check_simulation
from knownminds.agents.compiler.program import trace
from knownminds.agents.magnitudes.kalman_observer import (
    KalmanObserver,
    KalmanObserverGain,
    KalmanObserverLog,
)
from knownminds.environments import (
    BalloonRisk,
    Horizon,
    InstrumentalLearning,
    MarkerLocation,
    TwoStep,
)
from knownminds.inference import ModelData

CASES = [
    *((Forgetful, n) for n in (2, 3, 4, 6)),
    (Odd, 2),
    (Odd, 3),
    (Staged, 2),
    (Tied, 2),
    (Kalman, 2),
    (Stayer, 2),
    (Stayer, 3),
    (Teller, 2),
    (Teller, 3),
    (StatedTeller, 3),
    (Follower, 2),
    (KalmanOnceLog, 2),
    (Opener, 2),
    (Weigher, 3),
    (Edged, 2),
    (Walker, 2),
    (RescorlaWagnerDual, 2),
    (RescorlaWagner, 2),
]


def played(model, actions):
    with ex.new_graph():
        return trace(model, actions, *world_of(model, actions))


def simulation_of(model, actions):
    with ex.new_graph():
        return simulation_source(trace(model, actions, *world_of(model, actions)))


@pytest.mark.parametrize(("model", "actions"), CASES, ids=[f"{m.name}-{n}" for m, n in CASES])
def test_draws_likelihood_and_slopes_are_those_of_the_definition(model, actions):
    check_kernels(model, model.kernel_source(actions), actions)
    world, shapes = world_of(model, actions)
    check_simulation(model, simulation_of(model, actions), actions, world, shapes)


@pytest.mark.parametrize("name", ["RescorlaWagnerDual", "RescorlaWagner"])
def test_a_generated_kernel_does_what_the_one_written_by_hand_does(name):
    ours = {"RescorlaWagnerDual": RescorlaWagnerDual, "RescorlaWagner": RescorlaWagner}[name]
    theirs = getattr(hand_written_learner, name)
    assert ours.parameters.table() == theirs.parameters.table()
    n, rng = 50, np.random.default_rng(0)
    theta, place = theirs.parameters.draw(rng, n), InstrumentalLearning()
    assert (ours.columns, ours.simulation(place)[1]) == (theirs.columns, theirs.design)
    for lapse in (None, 0.1):
        left, right = (simulate(m, theta, place, 3, lapse=lapse) for m in (ours, theirs))
        assert left.frame.equals(right.frame)
        rates = None if lapse is None else rng.uniform(0.01, 0.3, n)
        a, b = (ModelData.read(m, left).log_likelihood(theta, rates) for m in (ours, theirs))
        for x, y in zip(a, b, strict=True):
            assert (np.abs(x - y) <= 1e-13 * (1 + np.abs(y))).all()


def test_what_hangs_on_columns_alone_is_reckoned_once_and_what_is_rare_in_a_pass():
    text = Weigher.kernel_source()
    kernel = text[text.index("def log_likelihood") : text.index("def begin")]
    assert re.search(r"TABLE_\w+\[int\(", kernel)  # by the streak, which only the trial knows
    assert "np.exp(cost_t)" in text[text.index("def prepared") :]
    assert "cost_" not in kernel
    assert kernel.index("if any_rare_0 > 0:") < kernel.index("log_of(") < kernel.index("top =")
    once = Weigher.prepare(
        np.zeros(2), np.zeros(2), tuple(np.ones((len(Weigher.columns), 2))), False
    )
    assert len(once[2]) == len(re.search(r"start, (.*)\):", kernel).group(1).split(", "))
    assert Forgetful.prepare is None  # the number of actions is only known with the data
    assert RescorlaWagnerDual.prepare is None


def test_sequences_of_unequal_length_and_gaps_are_read_where_they_begin():
    """What is the same in all of a sequence is read off its first answered trial."""
    n, rng = 40, np.random.default_rng(0)
    subject = np.repeat(np.arange(n), rng.integers(2, 30, n))
    m = len(subject)
    window = rng.integers(0, 2, n)[subject]
    given = rng.random(m) < 0.8
    columns = {"window": window, "value": rng.uniform(0.5, 3, m), "unit": rng.uniform(1, 2, m),
               "ceiling": rng.uniform(1, 3, m), "response": rng.uniform(-0.1, 2, m)}  # fmt: skip
    flat = {name: np.where(given, c, -np.inf if name == "response" else 0.0)
            for name, c in columns.items()}  # fmt: skip
    theta = Follower.parameters.draw(rng, n)

    def total(keep, lapse):
        data = ModelData.of_columns(
            Follower, [str(k) for k in range(n)], subject[keep], [window[keep]],
            {name: c[keep] for name, c in flat.items()}, 0,
        )  # fmt: skip
        return data.log_likelihood(theta, lapse)

    for lapse in (None, np.full(n, 0.1)):
        whole, answered = (total(keep, lapse) for keep in (np.full(m, True), given))
        assert np.isfinite(whole[0]).all()
        assert np.allclose(whole[0], answered[0], rtol=1e-13)
        assert np.allclose(whole[1], answered[1], rtol=1e-12)


@pytest.mark.parametrize(
    ("by_hand", "once"),
    [
        (KalmanObserver, KalmanOnce),
        (KalmanObserverGain, KalmanOnceGain),
        (KalmanObserverLog, KalmanOnceLog),
    ],
)
def test_what_begins_by_its_window_is_the_observer_written_by_hand(by_hand, once):
    n, rng = 6, np.random.default_rng(0)
    theta = by_hand.parameters.draw(rng, n)
    trials = simulate(by_hand, theta, MarkerLocation(), 3)
    hand, data = (ModelData.read(m, trials) for m in (by_hand, once))
    text, names = once.kernel_source(), {}
    exec(text.replace("from numba import njit", "njit = lambda **_: lambda f: f"), names)
    sequences = data.sequences
    packed = [sequences.pack(column) for column in names["prepared"](*data.flat)]
    for lapse in (None, np.full(n, 0.1)):
        with np.errstate(all="ignore"):
            found = names["log_likelihood"](
                theta, lapse, 0, sequences.row, sequences.start, *packed
            )
        for x, y in zip(found, hand.log_likelihood(theta, lapse), strict=True):
            assert (np.abs(x - y) <= 1e-12 * (1 + np.abs(y))).all()
    # One slope is carried for the three means of which the first belief is made.
    assert "_by_mu" not in text
    assert "mean_by_at_first_mean" in text.lower()


def test_a_step_agent_begins_by_the_columns_of_its_first_trial():
    values = {"q_over_r": 1.0, "p0_over_r": 0.5, "mu_short": 0.1, "mu_long": 0.9, "sigma": 0.05}
    agent = Opener(**values, mu_medium=0.5)
    for window, mu in ((0, 0.1), (2, 0.9)):
        seen = {"trial": 0, "window": window, "value": 0.4, "unit": 1.0, "ceiling": 1.0}
        mean = mu + 0.6 * (0.4 - mu)  # the gain is 1.5 / 2.5
        off = (0.45 - mean) / 0.05
        density = -0.5 * off**2 - np.log(0.05) - 0.5 * np.log(2 * np.pi)
        assert agent.log_density(seen, 0.45) == pytest.approx(density, rel=1e-12)


MISTAKES = {
    "a slope with the wrong sign": (r"push = side \* missed", "push = -side * missed", "slope in"),
    "a slope that lapses leave out": (r"\* taken \* missed / mixed", "* taken / mixed", "slope in"),
    "the other action": (r"side \* \(", "-side * (", "log-likelihood"),
    "missing trials that teach": (
        r"pick\(given > 0.0, (new_last_0), last_0\)", r"\1", "log-likelihood"
    ),
    "a lapse rate that counts twice": (r"0.5 \* share", "share", "log-likelihood, with lapses"),
    "a rate for another": (
        r"pick\((t\d+ > 0.0), alpha_positive", r"pick(\1, alpha_negative", "log-likelihood"
    ),
    "a step that changes another number": (r"state\[0\] = ", "state[1] = ", "log-likelihood, step"),
}  # fmt: skip


def test_printed_kernels_select_without_branches():
    """Of the nine seconds that numba took for the longest kernel, six were for its branches."""
    printed = [
        m for m in AGENTS.values() if issubclass(m, Model) and "log_likelihood" not in vars(m)
    ]
    for model in printed:
        text = model.kernel_source()
        lines = text[text.index("def log_likelihood(") : text.index("def exp_or_inf(")].splitlines()
        for line in lines:
            kept = "lapse is None" in line or line.strip().startswith("any_")  # counts of trials
            assert kept or " else " not in line, f"{model.name}: {line}"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_compiler_is_found_and_the_model_refused_by_name(mistake):
    pattern, wrong, told = MISTAKES[mistake]
    text = RescorlaWagnerDual.kernel_source()
    changed = re.sub(pattern, wrong, text)
    assert changed != text
    with pytest.raises(ValueError, match=f"kernel of RescorlaWagnerDual gives another {told}"):
        check_kernels(RescorlaWagnerDual, changed, 2)


class Guarded(Forgetful):
    """Reckons what Python's own functions refuse, where it is not asked for."""

    def respond(self, trial):
        low = np.where(self.values > 0, np.log(self.values), -3.0)
        return np.where(self.values > 1, np.sqrt(self.values - 1) / (1 - self.values), low)


def test_a_step_agent_is_plain_python_that_takes_what_numpy_takes():
    agent = pickle.loads(pickle.dumps(RescorlaWagnerDual(
        alpha_positive=0.3, alpha_negative=0.2, beta=2.0, kappa=0.1
    )))  # fmt: skip
    agent.learn({"trial": 0, "context": 0}, 1, 1.0)
    assert isinstance(agent.choose({"trial": 1, "context": 0}, np.random.default_rng(0)), int)
    lead = 2.0 * 0.3 * 0.5 + 0.1
    assert agent.action_probabilities({"context": 0})[1] == pytest.approx(expit(lead), rel=1e-14)
    assert agent.action_probabilities({"context": 1}).tolist() == [0.5, 0.5]
    names = {}
    exec(Guarded.kernel_source().replace("from numba import njit", "njit = lambda **_: id"), names)
    found = names["respond"]([0.3, 0.2, 1.0], [0.0, 1.0], {})
    assert found == (-3.0, 0.0)
    assert names["respond"]([0.3, 0.2, 1.0], [2.0, 0.5], {})[0] == -1.0


def test_a_mistake_in_the_simulation_is_found_too():
    text = simulation_of(RescorlaWagnerDual, 2)
    wrong = text.replace("u < bound", "u >= bound")
    assert wrong != text
    with pytest.raises(ValueError, match="kernel of RescorlaWagnerDual gives another draws"):
        check_simulation(RescorlaWagnerDual, wrong, 2, *world_of(RescorlaWagnerDual, 2))


def test_what_is_refused_leaves_no_file_that_the_next_process_would_take(tmp_path):
    def refuse():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loaded("x = 1\n", "nobody", tmp_path, refuse)
    assert not list(tmp_path.iterdir())
    assert loaded("x = 1\n", "nobody", tmp_path, lambda: None).x == 1
    assert loaded("x = 1\n", "nobody", tmp_path, refuse).x == 1  # checked once


def test_the_text_hangs_on_the_definition_alone():
    """Traced alone in a new process, and here after others: the same file is found again."""
    code = "from knownminds.agents import WinStayLoseShift as m; print(m.kernel_source(3), end='')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    from knownminds.agents import WinStayLoseShift

    assert WinStayLoseShift.kernel_source(3) == run.stdout


def test_columns_and_tables_are_what_is_read():
    assert RescorlaWagnerDual.columns == ("action", "reward")
    assert Staged.columns == ("action", "stage", "state", "reward") or Staged.columns == (
        "action", "stage", "reward", "state",
    )  # fmt: skip
    assert set(played(Staged, 2).design) == {"day", "stage", "arrives", "gems"}
    assert Kalman.columns == ("response", "value")
    assert played(Kalman, 2).design == ("value",)
    assert (Kalman.given, Kalman.n_uniforms, Kalman.n_actions) == ("response", 2, None)
    assert played(Stayer, 2).design == ()
    assert Tied.parameters.names == ("A_1",)


def test_no_slope_of_what_is_held_is_carried():
    assert "BY_X" in Staged.kernel_source()
    assert "BY_" not in Tied.kernel_source()


def test_what_no_answer_hangs_on_is_left_out_of_the_simulation():
    """A world whose numbers a model does not read costs nothing, and needs no tables."""
    with ex.new_graph():
        program = trace(Stayer, 2, Falling, {"walk": (), "payoffs": (2,)})
    assert program.world_goes_on  # trials fall away
    for model, place in ((Perseverator, TwoStep()), (Perseverator, Horizon())):
        _, design = model.simulation(place)
        assert design == ()
    # A shuttle is taken on every first stage: that a second one is there needs no question.
    assert "present" not in TwoStepHybrid.simulation_source(TwoStep())


def test_a_model_is_played_in_the_world_of_the_experiment():
    """One experiment pays nothing for what another one pays for; the kernel knows."""

    class Reversed(World):
        def pay(self, drawn, action):
            return drawn.payoffs[1 - action]

    place, other = InstrumentalLearning(), InstrumentalLearning()
    other.world = Reversed
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(0), 20)
    for environment in (place, other):
        fused = simulate(RescorlaWagner, theta, environment, 3).frame
        alone = play(RescorlaWagner.from_theta(theta[4]), environment, 3, 4).frame
        assert (fused[fused["subject"] == "4"].action.to_numpy() == alone.action.to_numpy()).all()
        assert (fused[fused["subject"] == "4"].reward.to_numpy() == alone.reward.to_numpy()).all()


class ByStage(Stayer):
    separate = ("stage",)

    def respond(self, trial):
        return Probabilities(np.where(trial.state > 0, 0.9, 0.1) * np.array([1, -1]) + [0, 1])


def test_what_a_world_holds_together_must_not_be_told_apart():
    with pytest.raises(ValueError, match=r"tells trials apart by 'stage'.*Leave it out"):
        ByStage.simulation(TwoStep())


def test_who_goes_by_rewards_alone_does_not_play_where_they_hang_on_more():
    for place in (TwoStep(), Horizon(), BalloonRisk()):
        with pytest.raises(ValueError, match=r"goes by rewards alone; those of .* as well"):
            RescorlaWagner.check_plays(place)


def test_what_is_said_in_the_old_way_is_told_the_new_one():
    with pytest.raises(TypeError, match=r"Old has a world; .*Environment\.world.* Leave it out"):
        type("Old", (Stayer,), {"world": World})
    with pytest.raises(TypeError, match=r"Old has arrays; .*Leave it out"):
        type("Old", (World,), {"arrays": {"payoffs": None}})
