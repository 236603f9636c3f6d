"""A fit over cells: one participant in several experiments and conditions, through files."""

import itertools

import numpy as np
import pytest

import knownminds
from knownminds.agents import AGENTS, HorizonExplorer, simulate
from knownminds.environments import Trials, make
from knownminds.inference import ModelData, maximum_likelihood

MODEL = AGENTS["bayesian_observer"]
CELLS = {
    "words": ("marker_location", {"modality": "text"}),
    "blurred": ("marker_location", {"modality": "image", "condition": "gradual_noise"}),
    "told": ("maze_distance", {"modality": "text+image", "condition": "numeric_biased"}),
    "talk": ("duration", {}),
}
N = 8


@pytest.fixture(scope="module")
def theta():
    return MODEL.parameters.draw(np.random.default_rng(4), N)


@pytest.fixture(scope="module")
def files(theta, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    made = []
    for k, (name, (task, settings)) in enumerate(CELLS.items()):
        trials = simulate(MODEL, theta, make(task, **settings), 2, address=(k,))
        made.append(folder / f"{name}.csv")
        trials.save(made[-1])
    return made


def test_the_estimates_are_where_the_sum_of_all_cells_is_highest(files, theta):
    fit = knownminds.fit(files, MODEL, over="cells", method="mle", workers=1)
    subjects = fit["Subjects"]
    assert list(subjects["subject"]) == [str(i) for i in range(N)]
    assert (subjects["n_trials"] == 4 * 99).all()
    parts = [ModelData.read(MODEL, Trials.load(file)) for file in files]
    best = subjects[list(MODEL.parameters.names)].to_numpy(dtype=float)
    at_best, at_truth = (sum(p.log_likelihood(t)[0] for p in parts) for t in (best, theta))
    assert at_best == pytest.approx(subjects["log_likelihood"].to_numpy(dtype=float), rel=1e-9)
    assert (at_best > at_truth).all()
    # One cell alone says less: its own maximum is above that of all cells.
    alone = maximum_likelihood(MODEL, parts[1], workers=1).log_likelihood
    assert (alone >= parts[1].log_likelihood(best)[0] - 1e-6).all()


def test_a_fit_says_whether_one_observer_describes_the_cells(files, tmp_path):
    """The third participant is ten times as noisy with words where these are called noisy."""
    few = knownminds.fit(files[:1], MODEL, over="cells", method="mle", workers=1)
    assert any("was not tested" in note for note in few.notes)
    fixed = {"adaptation": 0.1}
    held = knownminds.fit(files[:1], MODEL, over="cells", method="mle", fixed=fixed, workers=1)
    assert any("was not tested: the test is that of" in note for note in held.notes)
    values = dict(
        noise_text=0.02, noise_image=0.06, blur_slope=0.01, prior_precision=100.0, adaptation=0.1,
        steering_gain=2.0, told_weight=0.5, cue_optimality=0.9, report_noise=0.01,
    )  # fmt: skip
    theta = np.array([list(values.values())] * 4)
    made = []
    for task, modality, condition in itertools.product(
        ("marker_location", "maze_distance"), ("text", "image"), ("base", "verbal")
    ):
        place, played = make(task, modality=modality, condition=condition), theta.copy()
        if (modality, condition) == ("text", "verbal"):
            played[2, 0] *= 10.0
        made.append(tmp_path / f"{len(made)}.csv")
        simulate(MODEL, played, place, 2, address=(len(made),)).save(made[-1])
    fit = knownminds.fit(made, MODEL, over="cells", method="mle", workers=1)
    tests = fit["p of misfit, and of what the observer could do without"].set_index("subject")
    misfit = tests["misfit"]
    assert misfit["2"] < 1e-6
    assert tests.loc["2"].drop("misfit").isna().all()
    below = (misfit < 0.05).sum()
    assert any(f"the cells of {below} of 4 tested participants" in w for w in fit.warnings)
    # Three that are described: one p below .01 comes in 3% of such tables.
    assert (misfit.drop("2") > 0.01).all()
    assert (tests.drop("2")[misfit.drop("2") > 0.05]["flat"] < 1e-6).all()  # has a prior


def test_participants_are_named_by_a_column_and_sessions_stay_apart(files):
    """Two halves of the subjects as two participants: each has all sessions of its half."""
    frames = [Trials.load(file).frame for file in files]
    halves = [
        f.assign(model=np.where(f["subject"].astype(int) < 4, "a", "b"), session=str(k))
        for k, f in enumerate(frames)
    ]
    trials = Trials.concatenate([Trials.from_frame(one) for one in halves])
    fit = knownminds.fit(trials, MODEL, over="cells", method="mle", workers=1)
    assert list(fit["Subjects"]["subject"]) == ["a", "b"]
    assert (fit["Subjects"]["n_trials"] == 4 * 4 * 99).all()
    best = fit["Subjects"][list(MODEL.parameters.names)].to_numpy(dtype=float)
    expected = [
        sum(
            ModelData.read(MODEL, Trials.from_frame(f[f["model"] == who])).log_likelihood(
                np.tile(best[k], (4, 1))
            )[0].sum()
            for f in halves
        )
        for k, who in enumerate("ab")
    ]  # fmt: skip
    assert expected == pytest.approx(fit["Subjects"]["log_likelihood"].tolist(), rel=1e-9)
    by_unit = knownminds.fit(trials, MODEL, over="cells", unit=["subject"], workers=1)
    assert len(by_unit["Subjects"]) == N


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separate": True}, "--separate belongs to the fit of one experiment"),
        ({"settings": {"repeats": 2}}, "--set belongs to the fit of one experiment"),
        ({"unit": ["who"]}, "no 'who' among"),
        ({"unit": ["reward"]}, "'reward' is empty in 3168 of 3168 trials"),
        ({"model": None}, "needs a model that plays all"),
        ({"model": "rescorla_wagner"}, "pays none"),
        ({"over": "subjects"}, "no over named 'subjects'"),
    ],
)
def test_what_does_not_go_together_is_said(files, options, said):
    with pytest.raises(ValueError, match=said):
        knownminds.fit(files, **{"model": MODEL, "over": "cells", **options})


def test_an_experiment_that_the_model_does_not_play_is_named(files, tmp_path):
    """Its trials have no column modality, so that this is empty in the joined table."""
    theta = HorizonExplorer.parameters.draw(np.random.default_rng(1), 2)
    horizon = simulate(HorizonExplorer, theta, make("horizon", n_games=4), 1)
    horizon.save(tmp_path / "horizon.csv")
    with pytest.raises(ValueError, match=r"bayesian_observer .*horizon"):
        knownminds.fit([files[0], tmp_path / "horizon.csv"], MODEL, over="cells")


def test_a_file_that_is_given_twice_is_told_of(files, tmp_path):
    copy = tmp_path / "again.csv"
    copy.write_bytes(files[0].read_bytes())
    fit = knownminds.fit([files[0], copy], MODEL, over="cells", method="mle", workers=1)
    assert any(f"{N} of {2 * N} sessions of marker_location" in said for said in fit.warnings)


def test_fits_that_all_failed_are_counted(files):
    """No likelihood is known of a unit that no task has."""
    trials = Trials.from_frame(Trials.load(files[0]).frame.assign(unit=2.0, ceiling=2.0))
    fit = knownminds.fit(trials, MODEL, over="cells", method="mle", workers=1)
    assert (fit.attempted, fit.failed) == (N, N)


def test_an_experiment_with_other_ranges_is_refused_by_what_its_file_tells(files, tmp_path):
    narrow = {"short": (0.2, 0.4), "medium": (0.4, 0.6), "long": (0.6, 0.8)}  # of the same unit
    place = make("line_ratio", ranges=narrow)
    observer = AGENTS["static_bayes_observer"]
    simulate(observer, [[0.3, 0.3, 0.5, 0.7, 0.05]] * N, place, 1).save(tmp_path / "narrow.csv")
    with pytest.raises(ValueError, match="shipped ranges of line_ratio"):
        knownminds.fit([*files, tmp_path / "narrow.csv"], MODEL, over="cells")
