"""The one session loop shows what the step interface shows, and keeps the past."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, play
from knownminds.environments import Session, answer_columns, make, session_stream


@pytest.mark.parametrize("name", ["balloon_risk", "horizon", "diagnosis"])
def test_a_session_is_what_the_step_interface_gives(name):
    """Trials fall away, hidden columns, trials that ask for either: all kept as shown."""
    environment = make(name)
    design = environment.draw(session_stream(0))
    session, rng = Session(environment, design), np.random.default_rng(0)
    seen, _ = environment.reset(options={"design": design})
    low, _ = environment.response_range
    for shown in session:
        assert shown == seen
        asked = environment.asks(shown)
        choice = int(rng.integers(environment.n_actions)) if asked == "action" else low
        choice = None if rng.random() < 0.2 else choice
        hidden = environment.design.at(int(seen["trial"]), environment.fields.hidden)
        turn = session.take(choice, "so it was")
        seen, reward, over, *_ = environment.step(choice)
        assert (turn.action, turn.response) == environment.split(choice, asked)
        assert (turn.reward, turn.text) == (reward, "so it was")
        given = {column: getattr(turn, column) for column in answer_columns(environment)}
        assert session.rows[-1] == {**shown, **hidden, **given, "reward": reward}
        assert session.over == over
    assert len(session.turns) == len(session.rows)
    with pytest.raises(RuntimeError, match=f"The session of {name} is over. Begin another"):
        session.take(0)


def test_sessions_share_an_environment_and_not_its_state():
    environment = make("instrumental_learning")
    one, other = (Session(environment, environment.draw(session_stream(k))) for k in (0, 1))
    first = next(iter(other))
    one.take(0)
    assert next(iter(other)) == first
    model = AGENTS["rescorla_wagner"].from_theta(np.array([0.3, 2.0, 0.0]))
    play(model, environment, 0)
    assert next(iter(other)) == first
