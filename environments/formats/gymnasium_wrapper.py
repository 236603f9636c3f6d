"""Any experiment as a Gymnasium environment, for users who bring reinforcement learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.environments.design import session_stream
from knownminds.environments.environment import Environment
from knownminds.environments.session import Session
from knownminds.environments.turn import Choice, Observation

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise ImportError(
        'GymnasiumEnvironment needs Gymnasium: pip install "knownminds[gymnasium]"'
    ) from None


class GymnasiumEnvironment(gymnasium.Env[dict[str, Any], Any]):
    """An experiment with Gymnasium's spaces; one episode is one session.

    ``reset(seed=s)`` begins the session that ``session_stream(s)`` draws; a reset without a seed
    goes on in the same stream. An action is what a trial asks for: the number of an action, a
    response as an array of shape (), or a pair of both. The observation after the last trial
    repeats the last stimulus, with "trial" equal to `n_trials`. A trial that pays nothing has a
    reward of 0, since Gymnasium needs a number.

    Parameters
    ----------
    environment : The experiment to wrap.
    """

    def __init__(self, environment: Environment):
        self.environment = environment
        self._bounds = environment.fields.bounds(environment)
        fields: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(low, high, (), np.int64 if isinstance(low, int) else np.float64)
            for name, (low, high) in self._bounds.items()
        }
        self.observation_space = spaces.Dict(
            {"trial": spaces.Discrete(environment.n_trials + 1), **fields}
        )
        spaces_by_answer: dict[str, spaces.Space[Any]] = {
            "action": spaces.Discrete(max(environment.n_actions, 1)),
            "response": spaces.Box(*environment.response_range, (), np.float64),
        }
        self.action_space = spaces_by_answer.get(environment.given) or spaces.Tuple(
            tuple(spaces_by_answer.values())
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a session, from the seed or from `options["design"]`."""
        super().reset(seed=seed)
        design = (options or {}).get("design")
        if design is None:
            rng = self.np_random if seed is None else session_stream(seed)
            design = self.environment.draw(rng)
        self.session = Session(self.environment, design)
        return self._typed(self.session.seen), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take an action and go to the next trial."""
        seen, given = self.session.seen, self.environment.given
        kind = self.environment.asks(seen)
        if given == "either":  # only the part that the trial asks for counts
            action = action[0] if kind == "action" else action[1]
        if kind == "both":
            choice: Choice = (int(action[0]), float(action[1]))
        else:
            choice = int(action) if kind == "action" else float(action)
        turn, over = self.session.take(choice), self.session.over
        shown = self._typed(seen if over else self.session.seen)
        if over:
            shown["trial"] = np.int64(self.environment.n_trials)
        info = {"brought": turn.brought} if turn.brought else {}
        return shown, turn.reward or 0.0, over, False, info

    def _typed(self, observation: Observation) -> dict[str, Any]:
        shown: dict[str, Any] = {"trial": np.int64(observation["trial"])}
        for name, (low, _) in self._bounds.items():
            kind = np.int64 if isinstance(low, int) else np.float64
            shown[name] = np.array(observation[name], dtype=kind)
        return shown
