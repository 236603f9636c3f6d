"""The appendix of a hierarchical fit: how its chains went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from knownminds.environments.record.plots import symbol
from knownminds.validation.pages.page import Section

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

KEPT = 100  # draws of each chain that are drawn
BINS = 20
TRACES = "Traces: every so-many-th draw of each chain, on the unconstrained scale."
RANKS = (
    "Ranks: how often draws of each chain have which rank among those of all chains. Chains that "
    "sample the same law have the same count everywhere, the dashed line."
)

Traces = Mapping[str, Mapping[str, Any]]


def traces_of(fit: HierarchicalFit) -> dict[str, dict[str, Any]]:
    """Return what is drawn of each group term: some draws, and counts of ranks, by chain."""
    found = {}
    for variable, pattern in (("group_mean", "{}"), ("group_sd", "sd({})")):
        for name in fit.names:
            draws = fit.posterior[variable].sel(parameter=name).transpose("chain", "draw")
            values = draws.to_numpy()
            some = np.linspace(0, values.shape[1] - 1, min(KEPT, values.shape[1])).astype(int)
            order = np.argsort(values, axis=None, kind="stable")
            share = np.empty(values.size)
            share[order] = (np.arange(values.size) + 0.5) / values.size
            rank = share.reshape(values.shape)
            counts = [np.histogram(own, BINS, (0, 1))[0].tolist() for own in rank]
            found[pattern.format(name)] = {
                "draws": np.round(values[:, some], 4).tolist(),
                "ranks": counts,
            }
    return found


def sampling_section(traces: Traces) -> list[Section]:
    """Return the appendix with traces and ranks; none without them."""
    if not traces:
        return []
    figures = [(TRACES, _traces_figure(traces)), (RANKS, _ranks_figure(traces))]
    return [Section("sampling", "Appendix: how it was sampled", figures=figures)]


def _traces_figure(traces: Traces) -> str:
    from knownminds.validation.pages import figures as draw  # Matplotlib

    figure, axes = draw.panels(len(traces), height=1.9)
    for axis, (name, found) in zip(axes, traces.items(), strict=True):
        for k, own in enumerate(found["draws"]):
            colour = draw.PALETTE[k % len(draw.PALETTE)]
            axis.plot(own, color=colour, linewidth=0.7, alpha=0.8, label=f"chain {k + 1}")
        draw.entitle(axis, _title(name))
        axis.set_xticks([])
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _ranks_figure(traces: Traces) -> str:
    from knownminds.validation.pages import figures as draw  # Matplotlib

    figure, axes = draw.panels(len(traces), height=1.9)
    for axis, (name, found) in zip(axes, traces.items(), strict=True):
        for k, own in enumerate(found["ranks"]):
            colour = draw.PALETTE[k % len(draw.PALETTE)]
            axis.step(np.arange(len(own)), own, where="mid", color=colour, linewidth=1,
                      label=f"chain {k + 1}")  # fmt: skip
        draw.limit(axis, float(np.mean(found["ranks"])))
        axis.set_ylim(bottom=0)
        draw.entitle(axis, _title(name))
        axis.set_xticks([])
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _title(name: str) -> str:
    inner = name.removeprefix("sd(").removesuffix(")")
    return f"sd({symbol(inner)})" if name.startswith("sd(") else symbol(name)
