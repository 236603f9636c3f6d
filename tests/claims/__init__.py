"""Every sentence that a report can print, and how it is proved.

A module of this package per kind of report lists its sentences as templates. A `Claim` says
something that could be false: its proof recomputes each number, count, verdict and adjective by a
route that shares no code with the report (a plain-Python count over the rows, a simulation of its
own from the printed design, another library). An `Explanation` says what a thing means, and holds
for every result; it is listed so that nobody mistakes it for a finding.

`check` is what tests call: each sentence must be a listed one, and its proof must hold.
`tests/house/test_claims.py` reads the sources of every report and fails for a text not listed.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PLACE = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Claim:
    """A sentence whose truth hangs on the result.

    Parameters
    ----------
    template
        The whole sentence with a name in braces where a result's text stands.
    route
        In a few words, from what the proof recomputes it: the table in the documentation.
    proof
        Takes the facts (whatever the module's tests hand to `check`) and the texts by name; raises
        AssertionError where the sentence is false.
    """

    template: str
    route: str
    proof: Callable[[Any, Mapping[str, str]], None]

    def read(self, sentence: str) -> dict[str, str] | None:
        """Return the texts that stand where the template has names; None if it does not fit."""
        found = re.fullmatch(_pattern(self.template), sentence, re.DOTALL)
        return None if found is None else found.groupdict()


@dataclass(frozen=True)
class Explanation:
    """A sentence that says what something means or how it was made; true of every result."""

    template: str

    def read(self, sentence: str) -> dict[str, str] | None:
        """Return the texts that stand where the template has names; None if it does not fit."""
        found = re.fullmatch(_pattern(self.template), sentence, re.DOTALL)
        return None if found is None else found.groupdict()


@dataclass(frozen=True)
class Report:
    """The sentences of one kind of report, and the files of source they are written in."""

    name: str
    sources: tuple[str, ...]
    sentences: tuple[Claim | Explanation, ...]


def check(report: Report, sentences: Iterable[str], facts: Any) -> None:
    """Prove every sentence; one that is not listed, or fits two templates, fails."""
    for sentence in sentences:
        fitting = [(s, words) for s in report.sentences if (words := s.read(sentence)) is not None]
        assert fitting, f"the {report.name} report says what no claim lists: {sentence!r}"
        listed = [s.template for s, _ in fitting]
        assert len(fitting) == 1, f"{sentence!r} fits several templates: {listed}"
        claim, words = fitting[0]
        if isinstance(claim, Claim):
            claim.proof(facts, words)


def reports() -> list[Report]:
    """Return all that are listed: each module of this package has one, REPORT."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}").REPORT for name in names]


def blank(template: str) -> str:
    """Return a template with its names left out."""
    return PLACE.sub("{}", template)


def table() -> str:
    """Return the table of the documentation, in Markdown."""
    lines = ["| report | sentence | recomputed from |", "|---|---|---|"]
    for report in reports():
        for sentence in report.sentences:
            route = sentence.route if isinstance(sentence, Claim) else "(explains)"
            told = PLACE.sub(r"*\1*", sentence.template).replace("|", r"\|")
            lines.append(f"| {report.name} | {told} | {route} |")
    return "\n".join(lines)


def _pattern(template: str) -> str:
    pieces = PLACE.split(template)
    return "".join(
        re.escape(piece) if k % 2 == 0 else f"(?P<{piece}>.*?)" for k, piece in enumerate(pieces)
    )
