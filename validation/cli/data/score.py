"""`knownminds score`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knownminds.validation.cli.output import check_own_folder
from knownminds.validation.cli.study import command, leave
from knownminds.validation.data.questions import AskScore
from knownminds.validation.engine.question import RUNNING


def _score(given: dict[str, Any]) -> None:
    """Read the parts of a paper off answers to its experiment, or measures."""
    from knownminds.validation.benchmarks.scored import OPTIONS, paper_for
    from knownminds.validation.data.scores_of_trials import FILE
    from knownminds.validation.engine.kept_result import keep

    asked = AskScore(**AskScore.read(given))
    chosen = asked.measures or asked.settings or asked.features
    paper = None if chosen else paper_for(given["data"], asked.environment, asked.columns)
    own = (
        ("released", "scoring", "mass", "reference") if paper is None else (*OPTIONS[paper], "mass")
    )
    for name in dict.fromkeys(one for options in OPTIONS.values() for one in options):
        if getattr(asked, name) and name not in own:
            papers = [other for other, options in OPTIONS.items() if name in options]
            raise ValueError(
                f"--{name} is an option of {' and '.join(papers)}; it has no meaning for "
                f"{'measures' if paper is None else paper}. Leave it out."
            )
    if paper is not None:
        leave(_paper(paper, asked, given["data"], given["out"]), given)
        return
    if given["out"] is not None:
        check_own_folder("score", given["out"])
    result = asked.answer()
    if given["out"] is not None:
        keep(result, given["out"] / FILE)
    leave(result, given)


def _paper(paper: str, asked: AskScore, data: Sequence[str], out: Path | None) -> Any:
    from knownminds.validation.benchmarks.scored import OPTIONS, Scored

    if out is not None:
        check_own_folder("score of a paper", out)
    scored = Scored.read_data(
        paper,
        data,
        environment=asked.environment,
        columns=asked.columns,
        by=asked.by,
        seed=asked.seed,
        **{name: getattr(asked, name) for name in OPTIONS[paper]},
    )
    result = scored.result()
    if out is not None:
        scored.save(out)
    return result


command(AskScore, {"out": RUNNING["out"]}, _score)
