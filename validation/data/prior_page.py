"""The page of `knownminds prior`."""

from __future__ import annotations

from knownminds.validation.engine.question import command_line
from knownminds.validation.pages.page import Page, counted, listed, table

from .predictive_page import panels_figure
from .prior import PriorPredictive

LIVED = (
    "What single minds of the prior do: lines are medians over minds, shaded is what 90% of "
    "them do."
)


def prior_page(found: PriorPredictive) -> Page:
    """Return the page of behaviour under a model's priors."""
    return Page(
        title=f"The priors of {found.model} in {found.environment}",
        asked=[
            ("experiment", found.environment),
            ("settings", listed(found.settings)),
            ("model", found.model),
            ("size", f"{counted(found.minds, 'mind')}, {counted(found.trials, 'trial')}"),
        ],
        findings=[],
        sentences=found.sentences,
        notes=[],
        tables=[
            table(
                "Means over all trials",
                found.ranges.items(),
                ("panel", "{0}"),
                ("median mind", "{1[1]:.3f}"),
                ("90% of minds", lambda row: f"{row[1][0]:.3f} to {row[1][2]:.3f}"),
            )
        ],
        figures=[(LIVED, panels_figure(found.panels, data=False))] if found.panels else [],
        command=command_line(
            "prior",
            found.environment,
            model=found.model,
            minds=found.minds,
            seed=found.seed,
        ),
        versions=found.versions,
    )
