"""Error rates of the controls of players: known players that should pass or fail each.

    python docs/controls.py                # 200 replicates: some CPU minutes
    python docs/controls.py --replicates 10

Players take sessions on numbers, without words: a learner at the centre of its prior that heeds an
instruction, and the same with one fault each. The table is written as CSV with date and version.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import knownminds
from knownminds.agents.play import AgentInSession
from knownminds.environments import Session, controlled, make, session_stream
from knownminds.environments.controls import CONTROLS, REPEAT, instructed
from knownminds.validation.costs.connect import known_agent
from knownminds.validation.data.controls import SESSIONS, control_values
from knownminds.validation.engine.scores import share
from knownminds.validation.engine.usual_models import usual_model
from knownminds.validation.engine.verdicts import ControlTest

STORED = Path(__file__).resolve().parent / "data" / "controls.csv"
EXPERIMENTS = ("instrumental_learning", "reversal_learning", "restless_bandit")
OFTEN = 0.98  # how often a fault shows

Choose = Callable[[AgentInSession, Session, np.random.Generator], Any]


def learner(player: AgentInSession, session: Session, rng: Any) -> Any:
    """Choose as the model does; do as the instruction says where there is one."""
    choice = player.choose(session.seen)
    if session.environment.changed_by == "instruction":
        return instructed(session.environment, int(session.seen["trial"]))
    return choice


def deaf(player: AgentInSession, session: Session, rng: Any) -> Any:
    """Choose as the model does, whatever is said."""
    return player.choose(session.seen)


def by_position(player: AgentInSession, session: Session, rng: Any) -> Any:
    """Choose the first option."""
    choice = learner(player, session, rng)
    heeds = session.environment.changed_by == "instruction" or rng.random() > OFTEN
    return choice if heeds else _option(choice, 0)


def by_name(player: AgentInSession, session: Session, rng: Any) -> Any:
    """Choose the option whose name comes first in the alphabet."""
    choice = learner(player, session, rng)
    heeds = session.environment.changed_by == "instruction" or rng.random() > OFTEN
    names = [session.say(_option(choice, a)) for a in range(session.environment.n_actions)]
    return choice if heeds else _option(choice, names.index(min(names)))


def by_wording(player: AgentInSession, session: Session, rng: Any) -> Any:
    """Choose the other option in another wording."""
    choice = learner(player, session, rng)
    if session.environment.settings["templates"] is None or rng.random() > OFTEN:
        return choice
    return _option(choice, 1 - (choice[0] if isinstance(choice, tuple) else choice))


# Each player with the controls that it should fail.
PLAYERS: dict[Choose, tuple[str, ...]] = {
    learner: (),
    deaf: ("instruction",),
    by_position: ("shuffled", "reversed"),
    by_name: ("shuffled", "reversed", "relabelled"),
    by_wording: ("paraphrase",),
}


def _option(choice: Any, action: int) -> Any:
    return (action, choice[1]) if isinstance(choice, tuple) else action


def played(choose: Choose, name: str, control: str, seed: int) -> pd.DataFrame:
    """Return the answers of a player to the sessions of a run, or of a control of it."""
    environment = make(name)
    agent = known_agent(usual_model(name), environment)
    if control:
        environment = controlled(environment, control)
    every = (*CONTROLS, REPEAT, "")
    address = every.index(control)
    rows = []
    for i in range(SESSIONS):
        session = Session(environment, environment.draw(session_stream(seed, 0, i)))
        numbers = session_stream(seed, 1, i, address)
        player = AgentInSession(agent, session_stream(seed, 2, i, address))
        for _ in session:
            player.learn(session.take(choose(player, session, numbers)))
        rows += [{"session": str(i), **row} for row in session.rows]
    frame = pd.DataFrame(rows).assign(outcome="ok").set_index(["session", "trial"])
    return frame[["outcome", "action"]].astype({"action": float})


def replicate(choose: Choose, name: str, seed: int) -> dict[str, str]:
    """Return the verdict of each control on a player."""
    frames = {control: played(choose, name, control, seed) for control in ("", *CONTROLS, REPEAT)}
    about = {"seed": seed, "address": [0]}
    verdicts = {}
    for control in CONTROLS:
        values = control_values(control, frames, make(name), about)
        verdicts[control] = ControlTest(control).judge(values)[1].word
    return verdicts


def rates(replicates: int) -> pd.DataFrame:
    """Return how often each player passes and fails each control, with Monte-Carlo errors."""
    rows = []
    for name in EXPERIMENTS:
        for choose, faults in PLAYERS.items():
            runs = Parallel(n_jobs=-1)(
                delayed(replicate)(choose, name, seed) for seed in range(replicates)
            )
            for control, words in pd.DataFrame(runs).items():
                should = "failed" if control in faults else "passed"
                wrong = "passed" if control in faults else "failed"
                row: dict[str, Any] = {
                    "experiment": name, "player": choose.__name__, "control": control,
                    "should be": should,
                }  # fmt: skip
                for column, word in (("right", should), ("wrong", wrong)):
                    score = share(int((words == word).sum()), replicates)
                    row |= {column: score.value, f"{column}_error": score.error}
                rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--out", type=Path, default=STORED)
    given = parser.parse_args()
    table = rates(given.replicates)
    table = table.assign(
        replicates=given.replicates,
        sessions=SESSIONS,
        date=datetime.date.today().isoformat(),
        version=knownminds.__version__,
    )
    table.to_csv(given.out, index=False, float_format="%.4g")
    print(table.iloc[:, :8].to_string(index=False))


if __name__ == "__main__":
    main()
