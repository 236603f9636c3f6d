"""Trials of known agents, with their true parameters beside the choices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from knownminds.agents import Model, simulate
from knownminds.environments import Environment, Trials, session_stream
from knownminds.inference import ChosenQuestions, play_chosen

MOST_TRIALS = 50_000_000  # some 10 GB as a table


def simulated_data(
    model: type[Model],
    environment: Environment,
    *,
    subjects: int = 20,
    sessions: int = 1,
    seed: int = 0,
    truth: Mapping[str, float] | None = None,
    lapse: float = 0.0,
    chosen: ChosenQuestions | None = None,
) -> Trials:
    """Draw subjects from the priors and let each take its sessions.

    Subject i is drawn at the address (i,) and takes session k at (k, i). The columns `true_NAME`
    (and `true_lapse`, if there are lapses) hold what it was.

    Parameters
    ----------
    truth : Parameters that are the same for all; the others are drawn.
    chosen : How the questions of a session are chosen; None to ask all.
    """
    for name, count in (("subjects", subjects), ("sessions", sessions)):
        if count < 1:
            raise ValueError(f"The number of {name} is at least 1; got {count}.")
    n = subjects * sessions * (chosen.questions if chosen else environment.n_trials)
    if n > MOST_TRIALS:
        raise ValueError(
            f"At most {MOST_TRIALS:,} trials are simulated at once; {subjects:,} subjects with "
            f"{sessions:,} sessions of {environment.n_trials:,} trials have {n:,}. Ask for fewer, "
            "or simulate in parts, each with a seed of its own."
        )
    parameters = model.parameters
    theta = np.empty((subjects, len(parameters)))
    for i in range(subjects):
        theta[i] = parameters.draw(session_stream(seed, i), 1)[0]
    for name, value in (truth or {}).items():
        theta[:, parameters.index(name)] = value
    parts = []
    for session in range(sessions):
        if chosen is None:
            whole = simulate(
                model, theta, environment, seed, address=(session,), lapse=lapse or None
            )
            parts.append(whole.to_frame().assign(session=str(session)))
            continue
        for i, values in enumerate(theta):
            agent = model.from_theta(values, lapse=lapse, actions=environment.n_actions)
            played = play_chosen(agent, environment, chosen, seed, session, i)
            parts.append(played.to_frame().assign(session=str(session)))
    frame = pd.concat(parts, ignore_index=True)
    number = frame["subject"].astype(int).to_numpy()
    for k, name in enumerate(parameters.names):
        frame[f"true_{name}"] = theta[number, k]
    if lapse:
        frame["true_lapse"] = lapse
    return Trials.from_frame(frame, environment=environment)
