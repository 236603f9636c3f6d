"""Rival models on the page of a fit: which predicts better, and what these rows can tell apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knownminds.validation.pages.page import Table, counted, table

from .rivals import Comparison, Told

COMPARED = (
    "Differences in elpd to the best model, with 2 standard errors; and what 100 simulated minds "
    "of each model (rows), who lived these rows again, are taken for by BIC, one by one and as "
    "data sets of this size."
)
WITHOUT = {
    "formula": "the formula",
    "crossed": "crossed factors",
    "correlated": "correlations",
}
ABOUT_ELPD = (
    "elpd: sum over subjects of the log probability of a subject's answers given the other "
    "subjects, with its parameters integrated out. Weight: in the mixture of models that predicts "
    "best (stacking). Exceedance: protected probability of being the most frequent model among "
    "subjects. Of few subjects, and of differences below 4, standard errors say too little."
)


def rival_tables(found: Comparison | None) -> list[Table]:
    """Return the tables of a comparison; none without one."""
    if found is None:
        return []
    return [
        table(
            "Models by how they predict left-out subjects",
            found.rivals,
            ("model", "{name}"),
            ("parameters", "{parameters}"),
            ("elpd", "{elpd:.1f} ({error:.1f})"),
            ("difference", "{difference:.1f} ({difference_error:.1f})"),
            ("weight", "{weight:.2f}"),
            ("exceedance", "{exceedance:.3f}"),
            ("refitted", "{refitted}"),
            ("k above .7", "{unreliable}"),
            ("AIC", "{aic:.1f}"),
            ("BIC", "{bic:.1f}"),
            ("best for (BIC)", "{best_for}"),
        ),
        table(
            "What these rows can tell apart",
            found.apart,
            ("simulated", "{name}"),
            ("one mind is taken for", lambda told: _shares(told.single)),
            ("data of this size are taken for", lambda told: _shares(told.together)),
        ),
        table("Left out", found.left_out.items(), ("model", "{0}"), ("why", "{1}")),
    ]


def _shares(shares: Mapping[str, float]) -> str:
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share:.0%}" for name, share in ordered if share >= 0.005)


def rivals_figure(found: Comparison) -> str:
    """Draw the differences in elpd, and two confusion matrices."""
    from knownminds.validation.pages import figures as draw  # Matplotlib

    names = [rival.name for rival in found.rivals]
    figure, axes = draw.panels(3, height=max(2.4, 0.45 * len(names) + 1.6), columns=3)
    place = np.arange(len(names))[::-1]
    value = np.array([rival.difference for rival in found.rivals])
    error = np.nan_to_num([rival.difference_error for rival in found.rivals])
    axes[0].hlines(place, value - draw.ERRORS * error, value + draw.ERRORS * error,
                   color=draw.BLUE, linewidth=1.4)  # fmt: skip
    axes[0].plot(value, place, "o", color=draw.BLUE, markersize=4)
    axes[0].axvline(0, color=draw.GREY, linewidth=1, linestyle="--")
    axes[0].set_yticks(place, names)
    axes[0].set_xlabel("difference in elpd")
    by_name = {told.name: told for told in found.apart}
    for axis, title, which in ((axes[1], "one mind", "single"), (axes[2], "all minds", "together")):
        shares = np.array(
            [[_of(by_name.get(a), which).get(b, np.nan) for b in names] for a in names]
        )
        draw.heat_map(axis, shares, names if which == "single" else [""] * len(names), names)
        draw.entitle(axis, f"{title} taken for")
    return draw.svg(figure)


def _of(told: Told | None, which: str) -> dict[str, float]:
    return {} if told is None else dict(getattr(told, which))


def about_rivals(found: Comparison | None, one: str) -> list[str]:
    """Say which model predicts better, and whether these rows could tell."""
    if found is None:
        return []
    told = [f"Left out of the comparison: {name}. {why}" for name, why in found.left_out.items()]
    if found.without:
        told.append(
            f"The comparison is without {' and '.join(WITHOUT[name] for name in found.without)}: "
            "each model is a group of its own whose parameters differ over subjects, and nothing "
            "else."
        )
    told += _about_groups(found, one)
    if len(found.rivals) < 2:
        return [*told, "Nothing was left to compare with."]
    best, second = found.rivals[:2]
    ahead = -second.difference
    verdict = "a clear difference" if found.clear else "no clear difference"
    told.append(
        f"{best.name} predicts {counted(found.subjects, f'left-out {one}')} best, {second.name} "
        f"next: elpd higher by {ahead:.1f} (standard error {second.difference_error:.1f}), "
        f"{verdict}."
    )
    weights = ", ".join(f"{rival.name} {rival.weight:.2f}" for rival in found.rivals)
    most = ", ".join(f"{rival.name} {rival.exceedance:.2f}" for rival in found.rivals)
    told.append(
        f"Weights of the best mixture: {weights}; protected exceedance probabilities: {most}."
    )
    again = sum(rival.refitted for rival in found.rivals)
    poor = sum(rival.unreliable for rival in found.rivals)
    if again:
        told.append(
            f"{counted(again, 'prediction')} had a Pareto k above .7 and came anew from a group "
            f"without the {one}; {poor} stay unreliable."
        )
    named = {each.name: each for each in found.apart}
    own = [f"{name} {named[name].together[name]:.0%}" for name in named]
    told.append(
        f"What this design can tell apart: of {counted(found.subjects, 'simulated mind')} each, "
        f"put together from {found.minds}, BIC names the true model in {', '.join(own)}."
    )
    return told


def _about_groups(found: Comparison, one: str) -> list[str]:
    """Say what the groups compared have besides parameters that differ over subjects."""
    what = ["; ".join(found.formulas)] if found.formulas else []
    what += ["correlated parameters"] if found.correlated else []
    if not what:
        return []
    told = [
        f"Each model is a group of its own with {' and '.join(what)}. AIC, BIC and what this "
        f"design can tell apart are of single {one}s, with one set of parameters each."
    ]
    return told + [
        f"{name} has no parameter that {'; '.join(formulas)} could move, and is a group without."
        for name, formulas in found.lacking.items()
    ]
