"""What sessions show, and a short session of every experiment, played by a known agent."""

from functools import cache

import numpy as np

from knownminds.agents import AGENTS, play
from knownminds.environments import Trials, make, session_stream

SHORT = {"instrumental_learning": 4, "horizon": 4, "two_step": 6, "restless_bandit": 1}
SHORT |= {"reversal_learning": 20, "iowa_gambling": 20}
SHORT |= dict.fromkeys(
    ["diagnosis", "marker_location", "line_ratio", "maze_distance", "duration", "cue_conflict"], 1
)


@cache
def short(name):
    environment = make(name)
    return make(name, **({environment.size: SHORT[name]} if name in SHORT else {}))


@cache
def played(name, seed=3):
    """Return the trials of one subject with one session; nobody may change them."""
    environment = short(name)
    model = [model for model in AGENTS.values() if model.plays(environment)][-1]
    [theta] = model.parameters.draw(np.random.default_rng(0), 1)
    trials = play(model.from_theta(theta, actions=environment.n_actions), environment, seed, 0)
    return Trials.from_frame(trials.frame.assign(environment=name))


def observations(environment, seed=0):
    """Return all that a session shows, if this does not hang on the answers."""
    table = environment.draw(session_stream(seed)).table
    return [
        {"trial": t, **{name: column[t].item() for name, column in table.items()}}
        for t in range(environment.n_trials)
    ]
