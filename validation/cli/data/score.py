"""`knownminds score`."""

from __future__ import annotations

from typing import Any

from knownminds.validation.cli.output import check_own_folder
from knownminds.validation.cli.study import command, leave
from knownminds.validation.data.questions import AskScore
from knownminds.validation.engine.question import RUNNING


def _score(given: dict[str, Any]) -> None:
    """Read the tests of coherence off answers to diagnosis, a set of runs, or a single file."""
    from knownminds.validation.diagnosis.belief_battery import of_diagnosis
    from knownminds.validation.magnitudes.magnitude_table import of_one_measured_file

    asked = AskScore(**AskScore.read(given))
    plain = not (asked.measure or asked.released or asked.over or asked.reference or asked.scoring)
    beliefs = plain and of_diagnosis(asked.data, asked.environment, asked.columns)
    if not beliefs:
        for name in ("network", "learner", "permutations"):
            if getattr(asked, name) is not None:
                raise ValueError(
                    f"--{name} is that of diagnosis, whose tests of coherence take no --measure, "
                    "--released, --over, --reference or --scoring; leave it or them out."
                )
    single = not beliefs and of_one_measured_file(asked.data, asked.measure, asked.columns)
    if not (single or plain):
        raise ValueError(
            "Several runs are scored by one table, which takes no --measure, --released, "
            "--over, --reference or --scoring. Name a single run or file with those."
        )
    if asked.settings and not single:
        raise ValueError("Settings are those of one file of one experiment; leave --set out.")
    if given["out"] is not None:
        kind = "score" if single else "score of beliefs" if beliefs else "score of several runs"
        check_own_folder(kind, given["out"])
    result = _beliefs(asked) if beliefs else _measures(asked) if single else _table(asked)
    if given["out"] is not None:
        result.save(given["out"])
    leave(result, given)


def _beliefs(asked: AskScore) -> Any:
    from knownminds.validation.diagnosis.belief_battery import belief_battery

    names = ("learner", "permutations", "bootstraps")
    how = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
    return belief_battery(
        asked.data,
        by=asked.by,
        columns=asked.columns,
        network=asked.network,
        seed=asked.seed,
        **how,
    )


def _measures(asked: AskScore) -> Any:
    from knownminds.validation.data.scores_of_trials import score

    return score(
        asked.data,
        asked.measure,
        environment=asked.environment,
        columns=asked.columns,
        settings=asked.settings,
        by=asked.by,
        released=asked.released,
        over=asked.over,
        reference=asked.reference,
        seed=asked.seed,
        scoring=asked.scoring,
    )


def _table(asked: AskScore) -> Any:
    from knownminds.validation.magnitudes.magnitude_table import magnitude_table

    return magnitude_table(
        asked.data,
        by=asked.by,
        environment=asked.environment,
        columns=asked.columns,
        rounds=30 if asked.bootstraps is None else asked.bootstraps,
        mass=asked.mass,
        seed=asked.seed,
    )


command(AskScore, {"out": RUNNING["out"]}, _score)
