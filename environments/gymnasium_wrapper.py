"""Any experiment as a Gymnasium environment, for those who bring reinforcement learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from .environment import Environment, Observation

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise ImportError(
        'GymnasiumEnvironment needs Gymnasium: pip install "knownminds[gymnasium]"'
    ) from None


class GymnasiumEnvironment(gymnasium.Env[dict[str, Any], np.int64]):
    """An experiment with Gymnasium's spaces; one episode is one session.

    ``reset(seed=s)`` begins the same session as the experiment's own; a reset without a seed goes
    on in the same stream. The observation after the last trial repeats the last stimulus, with
    "trial" equal to `n_trials`. An experiment that pays nothing has rewards of 0, since Gymnasium
    wants a number.

    Parameters
    ----------
    environment
        The experiment to wrap; it is used, not copied.
    """

    def __init__(self, environment: Environment):
        self.environment = environment
        fields: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(low, high, (), np.int64 if isinstance(low, int) else np.float64)
            for name, (low, high) in environment.bounds.items()
        }
        self.observation_space = spaces.Dict(
            {"trial": spaces.Discrete(environment.n_trials + 1), **fields}
        )
        self.action_space = spaces.Discrete(environment.n_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a session, from the seed or from `options["design"]`."""
        super().reset(seed=seed)
        if seed is None and "design" not in (options or {}):
            options = {"design": self.environment.draw(self.np_random)}
        observation, info = self.environment.reset(seed=seed, options=options)
        self._last = self._typed(observation)
        return self._last, info

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take an action and go to the next trial."""
        observation, reward, terminated, truncated, info = self.environment.step(int(action))
        if observation is None:
            self._last = {**self._last, "trial": np.int64(self.environment.n_trials)}
        else:
            self._last = self._typed(observation)
        assert reward is not None or not self.environment.feedback
        return self._last, reward or 0.0, terminated, truncated, info

    def _typed(self, observation: Observation) -> dict[str, Any]:
        shown: dict[str, Any] = {"trial": np.int64(observation["trial"])}
        for name, (low, _) in self.environment.bounds.items():
            kind = np.int64 if isinstance(low, int) else np.float64
            shown[name] = np.array(observation[name], dtype=kind)
        return shown
