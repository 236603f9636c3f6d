"""Power from a pilot: groups are draws of its posterior, and what is no pilot is refused."""

import json
import shlex
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from claims import check
from claims.design import REPORT as DESIGN
from claims.power import REPORT

from knownminds.agents import RescorlaWagnerDual, simulate
from knownminds.agents.play import Player, simulate_sessions
from knownminds.environments import InstrumentalLearning, Session, session_stream
from knownminds.inference import MEASURES
from knownminds.validation.cli import main
from knownminds.validation.data.fit import fit
from knownminds.validation.design.best_design import best_design, read_best_design
from knownminds.validation.engine.population import draw_subjects, lost_share
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.power import pilot as pilot_module
from knownminds.validation.power.model_power import model_power
from knownminds.validation.power.pilot import read_pilot
from knownminds.validation.power.power_page import power_page
from knownminds.validation.power.power_study import power, read_power
from knownminds.validation.power.smallest_design import read_smallest_design, smallest_design
from knownminds.validation.report import page_of

PLACE = InstrumentalLearning(n_visits=6)
EFFECT = {"optimism_bias": "pilot"}


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot")
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(4), 12)
    trials = simulate(RescorlaWagnerDual, theta, PLACE, 4)
    found = fit(trials, "rescorla_wagner_dual", method="hierarchical", workers=1)
    assert found.verdict == "converged"
    found.save(folder / "people")
    return folder / "people"


def drawn(folder):
    """Return the posterior's means [S, P] from the file itself."""
    return pooled(folder)[0]


def pooled(folder):
    """Return the posterior's means and spreads, [S, P] each, from the file itself."""
    whole = xr.open_dataset(folder / "posterior.nc", group="posterior", engine="h5netcdf")
    names = list(RescorlaWagnerDual.parameters.names)
    some = whole.sel(parameter=names).stack(all=("chain", "draw"))
    return tuple(
        some[name].transpose("all", "parameter").to_numpy() for name in ("group_mean", "group_sd")
    )


def rows_of(folder):
    """Return a study's data sets, from its files."""
    return pd.concat(map(pd.read_parquet, (folder / "parts").glob("*.parquet")))


def test_an_effect_of_the_pilot_is_that_of_groups_of_its_posterior(pilot):
    found = read_pilot(pilot, "instrumental_learning", RescorlaWagnerDual)
    mean = drawn(pilot)
    # every draw of the pilot is one of the file, and they lie where all lie
    for own in found.mean:
        assert np.isclose(mean, own).all(axis=1).any()
    error = mean.std(axis=0) / len(found.mean) ** 0.5
    assert (np.abs(found.mean.mean(axis=0) - mean.mean(axis=0)) < 4 * error).all()
    # a group's effect, by drawing its people one by one
    rng, sizes = np.random.default_rng(1), found.sizes(MEASURES["optimism_bias"])
    for k in range(0, len(sizes), 40):
        z = rng.normal(found.mean[k], found.sd[k], (40_000, found.mean.shape[1]))
        people = RescorlaWagnerDual.parameters.constrain(z)
        bias = people[:, 0] - people[:, 1]
        assert abs(sizes[k] - bias.mean()) < 4 * bias.std() / 200 + 1e-4


def test_power_is_averaged_over_what_the_pilot_leaves_open(pilot, tmp_path):
    asked = {"model": "rescorla_wagner_dual", "replicates": 150, "seed": 2, "workers": 1}
    found = power(PLACE, EFFECT, pilot=pilot, subjects=[12], **asked, out=tmp_path / "power")
    (design,) = found.designs
    sizes = read_pilot(pilot, "instrumental_learning", RescorlaWagnerDual).sizes(
        MEASURES["optimism_bias"]
    )
    rows = rows_of(tmp_path / "power")
    # 150 draws of 200 with equal chances: their mean and spread within 4 standard errors
    assert abs(rows["effect"].mean() - sizes.mean()) < 4 * sizes.std() / 150**0.5
    assert abs(rows["effect"].std() / sizes.std() - 1) < 4 / (2 * 149) ** 0.5
    assert design.rejected.value == pytest.approx((rows["p_value"] < 0.05).mean())
    # one group that is known takes no part: the truth is the same in every data set
    asked |= {"replicates": 20, "out": tmp_path / "known"}
    power(PLACE, {"optimism_bias": 0.1}, subjects=[12], **asked)
    assert rows_of(tmp_path / "known")["effect"].nunique() == 1


def typed(*words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code


def test_what_it_says_is_proved_and_the_command_asks_the_same(pilot, tmp_path):
    outcomes = {"outcomes": {"ok": 250, "repaired": 8, "malformed": 30}}
    other = altered(pilot, tmp_path, **outcomes)
    out = ["--out", str(tmp_path / "power")]
    asked = [
        *(
            "power",
            "instrumental_learning",
            "--effect",
            "optimism_bias=pilot",
            "--from",
            str(other),
        ),
        *("--set", "n_visits=6", "--model", "rescorla_wagner_dual", "--subjects", "12"),
        *("--replicates", "20", "--seed", "2", "--workers", "1"),
    ]
    typed(*asked, *out)
    found = read_power(tmp_path / "power")
    (cell,) = found.study.cells
    assert lost_share(cell) == 30 / 288
    page = power_page(found)
    told = [line for line in str(found).splitlines() if "  " not in line][:-1]
    facts = SimpleNamespace(
        content=found.to_dict(), rows=[rows_of(tmp_path / "power")], pilot=outcomes
    )
    check(REPORT, [*told, page.title, *page.sentences, *page.notes], facts)
    # what the page repeats is the command, and going on with the folder computes nothing anew
    again = shlex.split(page.command)[1:]
    assert again[again.index("--from") + 1] == str(other)
    assert "--pilot" not in again
    parts = {p: p.stat().st_mtime_ns for p in (tmp_path / "power" / "parts").iterdir()}
    typed(*again, "--workers", "1", *out)
    assert parts == {p: p.stat().st_mtime_ns for p in (tmp_path / "power" / "parts").iterdir()}
    # a report needs the pilot no more
    shutil.rmtree(other)
    typed("report", str(tmp_path / "power"))


def test_a_lost_answer_brings_nothing_and_teaches_nothing():
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), 40)
    some = simulate_sessions(RescorlaWagnerDual, theta, PLACE, 9, lost=0.3)
    n = 40 * PLACE.n_trials
    assert abs(len(some.trial) - 0.7 * n) < 4 * (0.21 * n) ** 0.5
    for who in range(3):  # step by step, nothing being given on these trials
        rng = session_stream(9, who)
        session = Session(PLACE, PLACE.draw(rng))
        player = Player(RescorlaWagnerDual.from_theta(theta[who], actions=2), rng)
        mine = some.subject == who
        given = {}
        for seen in session:
            if seen["trial"] not in some.trial[mine]:
                session.take(None)
                continue
            turn = session.take(player.choose(seen))
            player.learn(turn)
            given[seen["trial"]] = (turn.action, turn.reward)
        columns = zip(some.columns["action"][mine], some.columns["reward"][mine], strict=True)
        assert list(given.values()) == list(columns)


def test_the_smallest_design_is_sought_for_a_pilots_groups(pilot, tmp_path):
    asked = {"model": "rescorla_wagner_dual", "pilot": pilot, "find": "subjects", "most": 60}
    asked |= {"width": 0.25, "replicates": 60, "workers": 1, "seed": 4}
    found = smallest_design(PLACE, {"optimism_bias": 0.1}, **asked, out=tmp_path / "sought")
    shutil.copytree(tmp_path / "sought", tmp_path / "moved")
    assert read_smallest_design(tmp_path / "moved").to_dict() == found.to_dict()
    assert found.steps[0].cell.law["pilot"] == {"folder": str(pilot), "subjects": 12}


def test_a_design_is_sought_for_minds_of_the_pilot(pilot, tmp_path):
    asked = {"model": "rescorla_wagner_dual", "budget": {"trials": 96}, "designs": 4, "seed": 3}
    asked |= {"replicates": 40, "fresh": 60, "workers": 1}
    found = best_design(PLACE, "beta", pilot=pilot, **asked, out=tmp_path / "design")
    study, _ = Study.read(tmp_path / "design" / "fresh")
    minds = draw_subjects(study, Batch(0, 0, 60))
    known, sd = pooled(pilot)
    for own in minds.group_mean:  # each mind has a group of the pilot's
        assert np.isclose(known, own).all(axis=1).any()
    # Far from the priors, whose own spread of log beta is 1: 4 errors of a mean of 60.
    z = RescorlaWagnerDual.parameters.unconstrain(minds.theta)
    error = ((known.var(axis=0) + (sd**2).mean(axis=0)) / 60) ** 0.5
    assert (np.abs(z.mean(axis=0) - known.mean(axis=0)) < 4 * error).all()
    rows = [rows_of(tmp_path / "design" / "fresh")]
    told = [one for one in page_of(found).sentences if "pilot" in one]
    assert len(told) == 1
    check(DESIGN, told, SimpleNamespace(rows=rows))
    # read from its folder elsewhere, without the pilot; its command says --from
    shutil.copytree(tmp_path / "design", tmp_path / "moved")
    assert read_best_design(tmp_path / "moved").to_dict() == found.to_dict()
    assert f"--from {pilot}" in page_of(found).command
    # for the pilot's own effect, and for rivals of which one was fitted
    effect = best_design(
        PLACE, "optimism_bias=pilot", pilot=pilot, sessions=1, **asked | {"budget": {"trials": 400}}
    )
    assert effect.fresh[0].score.value < 1
    rivals = "rescorla_wagner,rescorla_wagner_dual"
    told_apart = best_design(PLACE, rivals, pilot=pilot, **asked)
    assert told_apart.cell.model == "rescorla_wagner_dual"
    assert "group_draws" in told_apart.cell.law
    with pytest.raises(ValueError, match="the group is the pilot's"):
        best_design(PLACE, "beta", pilot=pilot, truth={"kappa": 0.0}, **asked)
    with pytest.raises(ValueError, match="same model"):
        best_design(PLACE, "alpha", pilot=pilot, **asked | {"model": "rescorla_wagner"})


def test_models_are_told_apart_on_minds_of_the_pilot(pilot, tmp_path):
    asked = {"model": "random_responder", "pilot": pilot, "replicates": 20, "workers": 1}
    found = model_power(PLACE, ["rescorla_wagner_dual"], subjects=6, **asked, out=tmp_path / "m")
    laws = {one.cell.model: "group_draws" in one.cell.law for one in found.found}
    assert laws == {"random_responder": False, "rescorla_wagner_dual": True}
    (told,) = [one for one in page_of(found).sentences if one.startswith("The group")]
    check(REPORT, [told], SimpleNamespace(rows=[]))
    with pytest.raises(ValueError, match="same model"):
        model_power(PLACE, ["rescorla_wagner"], subjects=6, **asked)


def altered(pilot, tmp_path, **changes):
    shutil.copytree(pilot, tmp_path / "other")
    file = tmp_path / "other" / "fit.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return tmp_path / "other"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"environment": "two_step"}, "same experiment"),
        ({"model": "rescorla_wagner"}, "same model"),
        ({"method": "map"}, "--method hierarchical"),
    ],
)
def test_what_is_no_pilot_is_refused(pilot, tmp_path, changes, said):
    with pytest.raises(ValueError, match=said):
        read_pilot(altered(pilot, tmp_path, **changes), "instrumental_learning", RescorlaWagnerDual)


def test_a_pilot_that_did_not_converge_is_refused_until_that_is_wished(pilot, tmp_path):
    other = altered(pilot, tmp_path, verdict="not converged", divergences=7)
    with pytest.raises(ValueError, match=r"R-hat of 1\.\d+, .*7 divergent draws.*--unconverged"):
        power(PLACE, EFFECT, pilot=other, subjects=[12], replicates=2)
    found = power(
        PLACE, EFFECT, pilot=other, unconverged=True, subjects=[12], replicates=2, workers=1
    )
    assert len(found.designs) == 1


def test_a_spread_between_subjects_takes_some(pilot, monkeypatch):
    monkeypatch.setattr(pilot_module, "LEAST_SUBJECTS", 13)
    with pytest.raises(ValueError, match=r"from 13 on; .* has 12. Ask more"):
        read_pilot(pilot, "instrumental_learning", RescorlaWagnerDual)


def test_what_contradicts_a_pilot_is_refused(pilot):
    with pytest.raises(ValueError, match="one mind is none"):
        power(PLACE, EFFECT, pilot=pilot, subjects=[1], sessions=[3], replicates=2)
    with pytest.raises(ValueError, match="add --from FIT"):
        power(PLACE, EFFECT, subjects=[12], replicates=2)
    with pytest.raises(ValueError, match="the group is the pilot's"):
        power(PLACE, EFFECT, pilot=pilot, truth={"beta": 3.0}, subjects=[12], replicates=2)
    with pytest.raises(ValueError, match="knows no difference"):
        power(PLACE, EFFECT, pilot=pilot, comparison="between", subjects=[12], replicates=2)
