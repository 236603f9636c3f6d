"""What is special to the pumper: its target, its beliefs, and what a session can tell of them."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import BalloonPumper, simulate
from knownminds.environments import BalloonRisk, Trials
from knownminds.inference import ModelData


def rows(played, subject="a"):
    """Lay out balloons as (type, pumps that hold, how it ends: "stop", "burst" or "gone")."""
    out = []
    for balloon, (kind, held, end) in enumerate(played):
        at = {"subject": subject, "balloon": balloon, "type": kind}
        out += [{**at, "pump": k, "action": 1, "reward": 1.0} for k in range(1, held + 1)]
        ends = {"stop": (0, 0.0), "burst": (1, float(-held)), "gone": (None, None)}
        action, reward = ends[end]
        out.append({**at, "pump": held + 1, "action": action, "reward": reward})
    table = pd.DataFrame(out)
    table["action"] = table["action"].astype("Int64")
    table["outcome"] = np.where(table["action"].isna(), "malformed", "ok")
    return table.assign(trial=np.arange(len(table)))


def data_of(played):
    return ModelData.read(BalloonPumper, Trials.from_frame(rows(played)))


def closed_form(theta, played):
    """Follow the definition, with the beliefs of each type kept apart."""
    phi, eta, gamma, tau = theta
    pumps, bursts, total = {}, {}, 0.0
    for kind, held, end in played:
        seen, burst = pumps.get(kind, 0), bursts.get(kind, 0)
        p = (phi + eta * (seen - burst)) / (1 + eta * seen)
        target = -gamma / np.log(p)
        made = held + (end == "burst")
        x = tau * (target - np.arange(1, made + 1))
        total -= np.log1p(np.exp(-x)).sum()
        if end == "stop":
            total -= np.log1p(np.exp(tau * (target - held - 1)))
        pumps[kind] = seen + made
        bursts[kind] = burst + (end == "burst")
    return total


def test_a_balloon_longer_than_a_thousand_pumps_is_summed_right():
    theta = np.array([[0.999, 0.01, 1.0, 0.004]])
    played = [(0, 3000, "stop"), (0, 900, "stop")]
    total, _ = data_of(played).log_likelihood(theta)
    assert total[0] == pytest.approx(closed_form(theta[0], played), rel=1e-11)


def test_whoever_takes_more_risk_pumps_more():
    environment = BalloonRisk()
    means = []
    for gamma in (0.3, 1.0, 3.0):
        theta = np.tile([0.95, 0.05, gamma, 0.4], (200, 1))
        frame = simulate(BalloonPumper, theta, environment, 2).frame
        means.append(frame["action"].sum() / 200 / environment.n_all)
    assert means[0] < means[1] - 5 < means[2] - 10


def test_balloons_are_told_apart_by_type():
    """Who has seen big balloons only does not know small ones."""
    theta = np.array([[0.9, 1.0, 1.0, 0.5]])
    seen = data_of([(0, 60, "stop"), (1, 3, "stop")]).log_likelihood(theta)[0][0]
    alone = data_of([(1, 3, "stop")]).log_likelihood(theta)[0][0]
    big = data_of([(0, 60, "stop")]).log_likelihood(theta)[0][0]
    assert seen == pytest.approx(alone + big, rel=1e-12)
