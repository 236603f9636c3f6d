"""Risky choice: problems, the equations of its agents, and the fourfold pattern in known ones."""

import numpy as np
import pytest
from plain_equations import gambles_of

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori
from knownminds_more.decisions.risky_choice import RiskyChoice


def test_the_shipped_problems_are_fair_in_the_middle_and_differ():
    place = RiskyChoice()
    frame = simulate(AGENTS["expected_value"], [[0.1]], place, 1).frame
    assert len(frame) == 193 == len({str(sorted(map(str, gambles_of(r)))) for _, r in
                                     frame.iterrows()})  # fmt: skip
    mean = {s: sum(frame[f"{s}_{p}"] * frame[f"{s}_{p}_chance"] for p in ("low", "middle", "high"))
            for s in "ab"}  # fmt: skip
    fair = np.isclose(mean["a"], mean["b"])
    assert fair.sum() == 28 + 3 + 8  # of each chance and stake; of even chances; of spreads
    assert np.isnan(place.performance(Trials.from_frame(frame))[fair]).all()


def test_known_agents_show_the_fourfold_pattern_and_who_goes_by_values_none_of_it():
    """60 subjects x 6 fair offers a cell: a share's error is at most .5 / sqrt(360) = .026."""
    place = RiskyChoice()
    human = np.tile([0.88, 0.88, 2.25, 0.61, 0.69, 0.1], (60, 1))
    seen = simulate(AGENTS["prospect_theory"], human, place, 1)
    plain = simulate(AGENTS["expected_value"], np.full((60, 1), 0.05), place, 2)
    for cell, sign in {"rare_gains": 1, "likely_gains": -1, "rare_losses": -1,
                       "likely_losses": 1}.items():  # fmt: skip
        measure = MEASURES[f"risk_seeking_{cell}"]
        found = measure.estimate(seen)
        assert sign * (found.value - 0.5) > 4 * 0.026
        assert found.low < found.value < found.high
        assert found.p_value < 0.001
        assert abs(measure.estimate(plain).value - 0.5) < 4 * 0.026


@pytest.mark.long
def test_the_exponents_come_back_from_one_session():
    """80 subjects; recovery of 300 has r = .92 to .97, so that .8 is far below for each."""
    model = AGENTS["prospect_theory"]
    theta = model.parameters.draw(np.random.default_rng(2), 80)
    trials = simulate(model, theta, RiskyChoice(), 3)
    found = maximum_a_posteriori(model, ModelData.read(model, trials))
    r = [np.corrcoef(theta[:, k], found.estimate[:, k])[0, 1] for k in range(theta.shape[1])]
    assert min(r) > 0.8
    assert r[model.parameters.index("alpha")] > 0.9
