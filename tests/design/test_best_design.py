"""Designs are searched: information by quadrature, a search recomputed from its rows, bad input."""

import json
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.design import REPORT

import knownminds
from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.evidence import evidence, evidence_given
from knownminds.validation.cli import main
from knownminds.validation.costs.budget import budget
from knownminds.validation.design.best_design import best_design
from knownminds.validation.design.candidates import Shares, Space, declared_in, published_in
from knownminds.validation.design.measured import difference, gather
from knownminds.validation.engine.population import draw_subjects
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.report import page_of, read_result

PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
SMALL = {"model": MODEL, "designs": 6, "replicates": 64, "fresh": 60, "seed": 4}


@pytest.fixture(scope="module")
def lived():
    """Twelve learners with two sessions each, and their true values."""
    model, place, n = AGENTS[MODEL], make(PLACE), 12
    theta = model.parameters.draw(np.random.default_rng(3), n)
    run = simulate_sessions(model, np.repeat(theta, 2, axis=0), place, 8)
    separate = [run.subject % 2, run.columns["context"].astype(np.int64)]
    names = [str(i) for i in range(n)]
    return theta, ModelData.of_columns(model, names, run.subject // 2, separate, run.columns, 2)


def on_a_grid(data, unknowns, mean, sd, held=None):
    """Evidence, mean and sd of the last free parameter by sums over a grid, [N] each."""
    axes = [np.linspace(m - 6 * s, m + 6 * s, 121) for m, s in zip(mean, sd, strict=True)]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    step = np.prod([axis[1] - axis[0] for axis in axes])
    prior = -0.5 * (((mesh - mean) / sd) ** 2).sum(axis=1) - np.log(sd * (2 * np.pi) ** 0.5).sum()
    found = []
    for i in range(len(data)):
        z = mesh if held is None else np.column_stack([np.full(len(mesh), held[i]), mesh])
        rows = data.repeat(np.full(len(z), i))
        log = unknowns.log_likelihood(rows, unknowns.parameters.constrain(z))[0] + prior
        top = log.max()
        weight = np.exp(log - top)
        total = weight.sum()
        centre = (weight @ mesh[:, -1]) / total
        spread = ((weight @ (mesh[:, -1] - centre) ** 2) / total) ** 0.5
        found.append((top + np.log(total * step), centre, spread))
    return np.array(found).T


def test_evidence_and_moments_are_those_of_sums_over_a_grid(lived):
    _, data = lived
    unknowns = Unknowns.of(AGENTS[MODEL], {"kappa": 0.0})
    parameters = unknowns.parameters
    log, mean, sd = on_a_grid(data, unknowns, parameters.mean, parameters.sd)
    found = evidence(data, unknowns)
    # 256 points, worth 100 or more: the evidence is off by less than 4 / 100 ** .5 / 10.
    assert np.abs(found.log_evidence - log).max() < 0.1
    assert np.abs(found.log_evidence - log).mean() < 0.03
    assert np.abs(found.z[:, 1] - mean).max() < 0.15 * parameters.sd[1]
    assert np.allclose(found.z_sd[:, 1], sd, rtol=0.2)
    assert found.usable.all()


def test_information_about_one_parameter_integrates_over_the_others(lived):
    theta, data = lived
    unknowns = Unknowns.of(AGENTS[MODEL], {"kappa": 0.0})
    parameters = unknowns.parameters
    z = parameters.unconstrain(theta[:, :2])
    about = evidence(data, unknowns)
    log, _, _ = on_a_grid(data, unknowns, parameters.mean[1:], parameters.sd[1:], z[:, 0])
    found = evidence_given(data, unknowns, [0], z[:, [0]], about)
    assert np.abs(found - log).max() < 0.1
    everything = evidence_given(data, unknowns, [0, 1], z, about)
    assert np.allclose(everything, unknowns.log_likelihood(data, parameters.constrain(z))[0])


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    folder = tmp_path_factory.mktemp("design") / "search"
    return folder, best_design(PLACE, budget={"trials": 192}, workers=1, out=folder, **SMALL)


def rows_of(folder, name, cell):
    """All rows of a cell of a step, read from its files."""
    study, _ = Study.read(folder / name)
    parts = [study.part_name(b) for b in study.batches() if b.cell == cell]
    return pd.concat([pd.read_parquet(folder / name / "parts" / part) for part in parts])


def test_the_best_design_is_the_one_whose_rows_have_the_smallest_mean(search):
    folder, found = search
    last, _ = Study.read(folder / "round-0")
    means = [rows_of(folder, "round-0", c)["score"].mean() for c in range(len(last.cells))]
    rounds = [(design["designs"], design["data_sets"]) for design in found.to_dict()["rounds"]]
    assert rounds == [(6, 64)]  # as few designs as there are finalists: no halving
    assert last.cells[int(np.argmin(means))].settings == found.winner.settings
    assert found.winner.score.value == pytest.approx(min(means))
    for k, name in enumerate(("alpha", "beta", "kappa")):
        one = rows_of(folder, "round-0", 0)
        assert found.tried[0].measured[f"spread_{name}"].value == pytest.approx(
            one[f"spread_{name}"].mean()
        ), k


def facts_of(folder, found):
    study, _ = Study.read(folder / "fresh")
    cells = range(len(study.cells))
    costs = [c.make().n_trials * c.sessions * c.subjects for c in study.cells]
    return SimpleNamespace(
        content=found.to_dict(),
        rows=[rows_of(folder, "fresh", c) for c in cells],
        costs=costs,
        winner=found.winner.role,
    )


def told_by(found):
    page = page_of(found)
    answers = [f"{f.name}: {f.word}. {f.why}" for f in page.findings]
    captions = [caption for caption, _ in page.figures]
    return [*answers, *page.sentences, *page.notes, *captions, page.title]


def test_each_sentence_of_the_page_is_true_of_the_rows(search):
    folder, found = search
    check(REPORT, told_by(found), facts_of(folder, found))


def test_a_search_is_read_as_it_was_and_is_the_same_for_any_number_of_workers(search, tmp_path):
    folder, found = search
    again = read_result(folder)
    other = best_design(
        PLACE, budget={"trials": 192}, workers=2, backend="threads", out=tmp_path / "b", **SMALL
    )
    for one in (again, other):
        mine, theirs = found.to_dict(), one.to_dict()
        assert mine.pop("seconds") >= 0
        theirs.pop("seconds")
        assert mine == theirs
    with pytest.raises(ValueError, match="read as a whole"):
        read_result(folder / "fresh")


def test_designs_share_their_minds_within_a_step_and_not_between_steps(search):
    folder, _ = search
    first, fresh = (Study.read(folder / name)[0] for name in ("round-0", "fresh"))
    minds = [draw_subjects(first, Batch(c, 0, 20)).theta for c in (0, 1, 5)]
    assert all(np.array_equal(minds[0], other) for other in minds)
    assert not np.isin(minds[0], draw_subjects(fresh, Batch(0, 0, 20)).theta).any()


def test_halving_leaves_the_better_half_and_the_shipped_design():
    found = best_design(
        PLACE, "rescorla_wagner,rescorla_wagner_dual", budget={"trials": 96}, workers=1,
        designs=16, replicates=32, fresh=32, seed=1,
    )  # fmt: skip
    sizes = [(d["designs"], d["data_sets"]) for d in found.to_dict()["rounds"]]
    assert sizes[0] == (16, 16)
    assert sizes[1][0] in (8, 9)
    assert found.of_role("shipped").measured.attempted == 32
    early = [d.score.value for d in found.tried if d.measured.attempted == 16]
    assert len(early) == 16 - sizes[1][0]
    assert 0.5 <= found.confirmed.score.value <= 1.0
    assert found.confirmed.cost <= 96
    assert all(one.cost <= 96 for one in found.tried)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_all_that_an_experiment_declares_searchable_can_be_set(name):
    grid = {"design": "grid"} if name == "temporal_discounting" else {}
    place = make(name, **grid)
    for setting, how in declared_in(place).items():
        for share in (0.0, 0.37, 0.999):
            value = how.at([share] * len(how.parts))
            repeats = {"n_repeats": 1} if setting == "design" else {}
            made = make(name, **{**place.settings, **repeats, setting: value})
            assert made.settings[setting] is not None
            json.dumps(value)
    paper = make(name, **{**place.settings, **published_in(place)})
    assert paper.name == name


def test_shares_of_a_budget():
    assert Shares(1, None).of(7) == (1, 7)
    assert Shares(3, None).of(7) == (3, 2)
    assert Shares(3, None).of(2) is None
    assert Shares(1, None, 2, 2).of(7) == (1, 3)
    assert Shares(None, 2, 2, 2).of(13) == (3, 2)
    assert Shares(None, 2, 2, 2).of(7) is None
    assert (Shares(None, 2, 2, 2).fewest, Shares(3, None).fewest) == (8, 3)


def test_money_is_what_budget_reckons_with(tmp_path):
    found = best_design(
        PLACE, "beta", budget={"dollars": 0.012}, llm="openai:gpt-4o-mini", date="2026-11-21",
        search=["n_visits=4:6"], model=MODEL, designs=3, replicates=4, fresh=4, workers=1,
    )  # fmt: skip
    best = next(one for one in found.tried if one.role == "searched")
    place = make(PLACE, **best.settings)
    costs = [
        budget(place, "openai:gpt-4o-mini", model=MODEL, sessions=best.sessions + more,
               date=pd.Timestamp("2026-11-21").date())["openai:gpt-4o-mini"].dollars.high
        for more in (0, 1)
    ]  # fmt: skip
    assert float(costs[0]) == pytest.approx(best.cost)
    assert float(costs[0]) <= 0.012 < float(costs[1])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--budget", "trials=3"], "smallest costs 8 trials; got trials=3"),
        (["--budget", "trials=96", "--search", "bonus"], "n_visits, win_probability; got 'bonus'"),
        (["--budget", "trials=96", "--search", "n_visits=9:3"], "NAME=LOW:HIGH"),
        (["--budget", "trials=960", "--for", "optimism_bias=3"], "Choose a smaller effect"),
        (["--budget", "trials=96", "--for", "gamma"], "parameter of rescorla_wagner_dual named"),
        (["--budget", "trials=96", "--for", "rescorla_wagner"], "name two or more"),
        (["--budget", "trials=96", "--for", "optimism_bias"], "An effect has a size"),
        (["--budget", "dollars=1"], "needs a language model"),
        (["--budget", "euros=1"], "a number of trials or of dollars"),
        (["--budget", "trials=-4"], "a number above 0"),
        (["--budget", "trials=96", "--sessions", "2"], "given for an effect"),
        (["--budget", "trials=96", "--designs", "1"], "at least 2; got 1"),
    ],
)
def test_bad_input_is_a_sentence(words, told, capsys, tmp_path):
    out = tmp_path / "never"
    with pytest.raises(SystemExit) as stopped:
        main(["design", PLACE, *words, "--out", str(out)])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert told in message
    assert message.count("\n") == 1
    assert not out.exists()


def test_settings_that_are_given_are_not_searched():
    place = make(PLACE, n_visits=10)
    assert list(Space.of(place, [], ["n_visits"], False).searched) == ["win_probability"]
    assert list(Space.of(place, ["trials=4:9"], [], False).searched) == ["n_visits"]
    drawn = list(Space.of(place, ["trials=4:9"], [], False).draws(50, 0))
    assert {d["n_visits"] for d in drawn} == set(range(4, 10))


def test_an_effect_is_searched_over_participants_and_their_sessions():
    found = best_design(
        PLACE, "optimism_bias=0.5", budget={"trials": 480}, search=["sessions=1:3"],
        designs=3, replicates=8, fresh=8, workers=1,
    )  # fmt: skip
    for one in found.tried:
        assert one.cost == one.subjects * one.sessions * one.trials <= 480
        assert one.subjects == 480 // (one.sessions * one.trials)
    assert {one.sessions for one in found.tried} == {1, 2}  # of three sessions only 1 subject
    assert knownminds.best_design is best_design


def test_memory_does_not_grow_with_data_sets():
    """Peak of what is allocated while 8,000 and 80,000 data sets of each design are gathered."""

    def peak(batches):
        cell = SimpleNamespace(options={"goal": "parameters"})

        def tables(cell):
            for b in range(batches):
                rng = np.random.default_rng(b)
                yield pd.DataFrame(
                    {"status": "ok", "message": "", "seconds": 0.1, "score": rng.random(2000)}
                )

        study = SimpleNamespace(cells=[cell] * 2, units=lambda cell: 2000 * batches)
        rows = SimpleNamespace(study=study, tables=tables)
        tracemalloc.start()
        found = gather(rows, [1, 1])
        apart = difference(rows, [0], [1], "score")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found[0].attempted == 2000 * batches
        assert apart.value == apart.error == 0.0
        return most

    peak(1)  # what is loaded once
    # 72,000 more scores are 576 kB in each design.
    assert peak(40) - peak(4) < 100_000
