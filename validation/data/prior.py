"""What a model's priors say of behaviour: minds drawn from them live an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.environments.panels import Cells, Rows, panels_of
from knownminds.validation.engine.arguments import resolve_environment, resolve_model
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions

from .predictive import MASS, Cell, PanelCheck, Predictive

MINDS = 500
_KEY = 73  # of the stream of minds


@dataclass(frozen=True)
class PriorPredictive(Reported):
    """Behaviour under a model's priors, panel by panel.

    Parameters
    ----------
    minds
        How many were drawn; each lives one session.
    trials
        Rows of all sessions.
    settings
        Of the experiment.
    panels
        Means of single minds: their mean as `data`, and the quantiles over minds.
    ranges
        By panel, the 5%, 50% and 95% quantiles over minds of the mean over all its points.
    """

    file: ClassVar[str] = "prior.json"

    environment: str
    model: str
    minds: int
    trials: int
    seed: int
    settings: Mapping[str, Any]
    panels: tuple[PanelCheck, ...]
    ranges: Mapping[str, tuple[float, float, float]]
    versions: Mapping[str, str]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in words."""
        told = [
            f"{self.minds} minds were drawn from the priors of {self.model}, and each lived a "
            f"session of {self.environment}."
        ]
        units = {panel.title: panel.y for panel in self.panels}
        told += [
            f"{title} ({units[title]}): half of the minds have a mean below {middle:.2f}, and 90% "
            f"one from {low:.2f} to {high:.2f}."
            for title, (low, middle, high) in self.ranges.items()
        ]
        return tuple(told)

    def to_frame(self) -> pd.DataFrame:
        """One row per cell of each panel."""
        parts = [panel.to_frame().assign(panel=panel.title) for panel in self.panels]
        return pd.concat(parts, ignore_index=True)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        own = {name: value for name, value in vars(self).items() if name != "panels"}
        return {**own, "panels": [asdict(panel) for panel in self.panels],
                "sentences": list(self.sentences)}  # fmt: skip

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The means of all panels."""
        return {"behaviour": self.to_frame()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> PriorPredictive:
        """Make it of what `to_dict` gave."""
        kept = {name: value for name, value in found.items() if name != "sentences"}
        read = Predictive.from_dict(
            {"replicates": 0, "drawn_from": "prior", "subjects": 0, "of": 0,
             "panels": kept["panels"]}
        )  # fmt: skip
        ranges = {name: tuple(values) for name, values in kept["ranges"].items()}
        return cls(**kept | {"panels": read.panels, "ranges": ranges})

    def __str__(self) -> str:
        """Return the sentences."""
        return "\n".join(self.sentences)


read_prior = PriorPredictive.read


def prior(
    environment: Environment | str,
    model: type[Agent] | str,
    *,
    minds: int = MINDS,
    truth: Mapping[str, float] | None = None,
    seed: int = 0,
) -> PriorPredictive:
    """Let minds of a model's priors live an experiment, and see what they do.

    Parameters
    ----------
    minds
        How many; each lives a session of its own.
    truth
        Values at which parameters are held, by name.

    Raises
    ------
    ValueError
        If the model cannot play the experiment, or a value lies outside its support.
    """
    if minds < 2:
        raise ValueError(f"What minds differ in needs at least 2 of them; got minds={minds}.")
    agent = resolve_model(model)
    place = resolve_environment(environment)
    agent.check_plays(place)
    theta = agent.parameters.draw(session_stream(seed, _KEY), minds)
    for name, value in (truth or {}).items():
        theta[:, agent.parameters.index(name)] = value
    lived = simulate_sessions(agent, theta, place, seed, address=(_KEY,))
    rows = Rows(place, lived.columns, lived.subject)
    panels, ranges = [], {}
    for panel in panels_of(place):
        cells = panel.cells(rows)
        if cells is None:
            continue
        shown = _shown(cells, rows, minds)
        panels.append(shown)
        seen = panel.look(rows)
        usable = np.isfinite(seen.x) & np.isfinite(seen.y) & (seen.series >= 0)
        own = lived.subject[seen.row[usable]]
        count = np.bincount(own, minlength=minds)
        mean = np.bincount(own, seen.y[usable], minlength=minds)[count > 0] / count[count > 0]
        low, middle, high = np.quantile(mean, _QUANTILES).tolist()
        ranges[panel.title] = (low, middle, high)
    return PriorPredictive(
        environment=place.name,
        model=agent.name,
        minds=minds,
        trials=len(rows),
        seed=seed,
        settings=place.settings,
        panels=tuple(panels),
        ranges=ranges,
        versions=versions(),
    )


_QUANTILES = (0.5 - MASS / 2, 0.5, 0.5 + MASS / 2)


def _shown(cells: Cells, rows: Rows, minds: int) -> PanelCheck:
    means, count = cells.means(rows, rows.session, minds)
    own: Array = np.nanmean(means, axis=0)
    low, middle, high = np.nanquantile(means, _QUANTILES, axis=0)
    panel, series = cells.panel, cells.series
    told = tuple(
        Cell(
            panel.series[series[c]] if panel.series else "",
            cells.places[c],
            float(cells.x[c]),
            int(count[:, c].sum()),
            float(own[c]),
            float(low[c]),
            float(middle[c]),
            float(high[c]),
        )
        for c in range(len(cells.kept))
    )
    return PanelCheck(panel.title, panel.x, panel.y, np.nan, np.nan, np.nan, told)
