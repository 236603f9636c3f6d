"""The page of the tests of coherence: tables, estimates beside their nulls, monotone odds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Finding, Page, Table, between, outcome_table, table

from .belief_battery import (
    BOOTSTRAPS,
    FALLS,
    LEARNER,
    LEVEL,
    PERMUTATIONS,
    TESTS,
    BeliefBattery,
    named,
    probability,
    published,
)

PAIRS = 3  # of actions
MOST_SHOWN = 12  # participants with a picture of their own
RAW = -0.18  # by how much published values are drawn lower


def battery_page(battery: BeliefBattery) -> Page:
    """Return the page of a battery."""
    options = battery.options
    figures = []
    if battery.table["p_value"].notna().any():
        figures.append(
            (
                "Estimates with 95% intervals (filled) and their values under the hypothesis "
                "(crosses); hollow and grey: the published variant. Orange: p at most .05.",
                estimates(battery),
            )
        )
    if len(battery.shares):
        figures.append(
            (
                "Odds of the bolder action over the other by belief: mean belief of each bin and "
                "log odds with 2 standard errors. Lines of those who maximise expected utility "
                "with noise only rise or only fall. Hollow: one of the two was never chosen there; "
                "half a choice is added to both.",
                monotone_odds(battery),
            )
        )
    left = len(battery.participants) - MOST_SHOWN
    return Page(
        title="Do stated beliefs drive decisions?",
        asked=[
            ("data", ", ".join(battery.sources)),
            ("participants", ", ".join(battery.participants)),
            *([("network", options["network"])] if options["network"] else []),
            ("learner of the predictive gain", options["learner"].replace("_", " ")),
            ("permutations", f"{options['permutations']}"),
            ("bootstraps", f"{options['bootstraps']}"),
        ],
        findings=[_finding(battery, who) for who in battery.participants],
        sentences=[],
        notes=[
            "Each test holds its estimate against the value that a rational decider with truthful "
            "reports would have (null). A test with several rows rejects if the smallest of their "
            "p-values times their number is at most .05; tests are not corrected for their number.",
            "Conditional independence: I(action; state | belief) in nats by nearest neighbours; "
            "null and p from states exchanged between contexts of nearly the same belief. "
            "Published: the same estimate, a violation if it less 1.96 standard errors, rows being "
            "resampled, is above zero.",
            "Predictive gain: percent by which the log-loss of decisions about contexts not learnt "
            "from is smaller with the state, against exchanged states. Published: against the "
            "belief alone, a violation if the interval lies above zero.",
            "Monotone choice: share of pairs of belief bins with significant falls (Holm), and of "
            "those that go against the direction of their actions. Published: falls at .05, "
            "uncorrected, for each pair of actions; beside the first line they are taken together. "
            "Falls alone are no irrationality: who waits least where the state is probable has "
            "them.",
            "Elicitation consistency: root mean square distance of means over repetitions from the "
            "plain ones, as in the paper's table; null and p by exchanging answers within "
            "contexts. Published: of single answers, as in the formula of its text. First line: "
            "spread of the plain answers between repetitions.",
            "Iterated expectation: mean of sum p(x, z) p(z | x) - p(x) over contexts, t test. "
            "Published: median ratio of the distance to p(x), which the paper sets beside that of "
            "a random forest trained on exact beliefs; here also beside that of exact beliefs "
            "rounded to .01. The parts p(z | x) are asked for in one distribution, as published; "
            "asked singly, with yes or no, their sum need not be 1, and what is over is counted.",
            "A rational decider whose reports are noisy makes the first two tests reject: "
            "decisions then tell what the report lost. They accuse the report, not the decision.",
            "Answers that are missing or unreadable are left out and counted.",
            *([f"Pictures are of the first {MOST_SHOWN} participants."] if left > 0 else []),
        ],
        tables=_tables(battery),
        figures=figures,
        command=battery_command(battery),
        versions=battery.versions,
    )


def battery_command(battery: BeliefBattery) -> str:
    """Return the command line that computes the same again."""
    usual = {"learner": LEARNER, "permutations": PERMUTATIONS, "bootstraps": BOOTSTRAPS, "seed": 0}
    asked = {name: battery.options[name] for name in usual}
    return command_line(
        "score",
        *battery.sources,
        environment="diagnosis",
        columns=in_one(battery.options["columns"]),
        by=battery.by if battery.by != "model" else None,
        network=battery.options["network"],
        **{name: value for name, value in asked.items() if value != usual[name]},
    )


def _finding(battery: BeliefBattery, who: str) -> Finding:
    """Say which tests reject, and which the published variants would have told instead.

    Falls of a pair of actions are no violation of their own: only turns are.
    """
    own = battery.table[(battery.table["participant"] == who) & (battery.table["status"] == "ok")]
    tells = own[own["p_value"].notna() & ~own["of"].str.endswith(FALLS)]
    p_values = tells.groupby("test")["p_value"]
    smallest = p_values.min() * p_values.size()  # Bonferroni over the rows of a test
    rejected = [t for t in TESTS if t in smallest and smallest[t] <= LEVEL]
    claimed = [t for t in TESTS if ((own["test"] == t) & (own["finding"] == "violation")).any()]
    tested = tells["test"].nunique()
    if not tested:
        return Finding(who, "not tested", "These answers allow none of the tests.", "")
    word = f"{len(rejected)} of {tested} rejected"
    why = f"Rejected at .05: {', '.join(rejected)}." if rejected else "No test rejects at .05."
    only = [test for test in claimed if test not in rejected]
    why += f" Published variants would accuse it of {', '.join(only)} besides." if only else ""
    return Finding(who, word, why, "bad" if rejected else "good")


def _tables(battery: BeliefBattery) -> list[Table]:
    tables = []
    for row in battery.answers.to_dict("records"):
        who = row["participant"]
        told = f"{who}: rows {row['rows']:,}, contexts {row['contexts']:,}"
        tables.append(
            table(
                "; ".join([told, *row["missing"]]),
                battery.table[battery.table["participant"] == who],
                ("test", named),
                ("estimate", "{estimate:.3f}"),
                ("95%", between),
                ("null", "{null:.3f}"),
                ("p", lambda test: probability(test["p_value"])),
                ("n", _units),
                ("published", published),
                ("left out", _left_out),
            )
        )
    return [*tables, outcome_table(battery.outcomes)]


def _left_out(test: Mapping[Any, Any]) -> str:
    """Count what a test leaves out, or say why it could not be made."""
    left = [f"{n} {why}" for why, n in test["excluded"].items() if n]
    return (", ".join(left) or "nothing") if test["status"] == "ok" else str(test["status"])


def _units(test: Mapping[Any, Any]) -> str:
    """Write down how many rows, contexts or pairs of bins a test has."""
    if test["status"] != "ok":
        return "-"
    n = int(test["n"])
    first, *rest = str(test["unit"]).split(" ", 1)
    return " ".join([f"{n:,}", first if n == 1 else f"{first}s", *rest])


def estimates(battery: BeliefBattery) -> str:
    """Draw each test in a panel, one line per participant."""
    shown = battery.table[battery.table["status"] == "ok"]
    shown = shown[shown["p_value"].notna()]
    people = list(battery.participants[:MOST_SHOWN])
    groups = list(shown.groupby(["test", "of"], sort=False))
    figure, axes = draw.panels(len(groups), height=1.2 + 0.26 * len(people))
    for axis, ((test, of), some) in zip(axes, groups, strict=True):
        for row in some.to_dict("records"):
            if row["participant"] not in people:
                continue
            y = len(people) - 1 - people.index(row["participant"])
            colour = draw.ORANGE if row["p_value"] <= LEVEL else draw.BLUE
            axis.hlines(y, row["low"], row["high"], color=colour, linewidth=2)
            axis.plot(row["estimate"], y, "o", color=colour, markersize=5)
            axis.plot(row["null"], y, "x", color="black", markersize=5)
            low, high = row["published_low"], row["published_high"]
            axis.hlines(y + RAW, low, high, color=draw.GREY, linewidth=1)
            axis.plot(
                row["published"], y + RAW, "o", color=draw.GREY, markersize=4,
                markerfacecolor="white",
            )  # fmt: skip
        axis.set_yticks(
            range(len(people)), people[::-1] if draw.leftmost(axis) else [""] * len(people)
        )
        axis.set_ylim(-0.7, len(people) - 0.3)
        axis.axvline(0.0, color="#dddddd", linewidth=1, zorder=0)
        draw.entitle(axis, f"{test}\n{of}" if of else f"{test}\n")
    return draw.svg(figure)


def monotone_odds(battery: BeliefBattery) -> str:
    """Draw the log odds of each pair of actions by belief, a panel per participant."""
    shown = battery.shares
    people = [who for who in battery.participants if (shown["participant"] == who).any()]
    people = people[:MOST_SHOWN]
    figure, axes = draw.panels(len(people), columns=3)
    looks = draw.styles(PAIRS)
    for k, (axis, who) in enumerate(zip(axes, people, strict=True)):
        own = shown[shown["participant"] == who]
        pairs = own.groupby(["first", "second"], sort=False)
        for ((first, second), some), (colour, marker, dash) in zip(pairs, looks, strict=False):
            some = some[some["chose_first"] + some["chose_second"] > 0]
            a, b = (some[c].to_numpy(float) for c in ("chose_first", "chose_second"))
            x = some["belief"].to_numpy(float)
            odds = np.log((a + 0.5) / (b + 0.5))
            error = np.sqrt(1 / (a + 0.5) + 1 / (b + 0.5))
            axis.plot(
                x, odds, color=colour, linestyle=dash, linewidth=1.2, label=f"{first} over {second}"
            )
            axis.vlines(x, odds - 2 * error, odds + 2 * error, color=colour, linewidth=0.8)
            for bare in (True, False):
                mine = ((a == 0) | (b == 0)) == bare
                axis.plot(
                    x[mine], odds[mine], marker, color=colour, markersize=5,
                    markerfacecolor="white" if bare else colour,
                )  # fmt: skip
        axis.axhline(0.0, color="#dddddd", linewidth=1, zorder=0)
        axis.set_xlim(-0.02, 1.02)
        axis.set_xlabel("stated belief", fontsize=draw.SMALL)
        if k % 3 == 0:
            axis.set_ylabel("log odds", fontsize=draw.SMALL)
        draw.entitle(axis, str(who))
    draw.key(figure, axes[0])
    return draw.svg(figure)
