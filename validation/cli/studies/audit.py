"""`knownminds audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from knownminds.validation.cli.study import Ask, study
from knownminds.validation.completion import completes
from knownminds.validation.options import (
    ExperimentOption,
    Seed,
    Sessions,
    SeveralTrials,
    Subjects,
)
from knownminds.validation.reading import NOT_GIVEN, read_settings, resolve_experiment


@study
def audit(
    measure: Annotated[
        str,
        typer.Argument(
            help="The measure, coherence or consistency; `knownminds list` shows all.",
            autocompletion=completes("measures"),
        ),
    ],
    environment: ExperimentOption = None,
    effect: Annotated[
        list[float] | None, typer.Option(help="True values in the violators.")
    ] = None,
    subjects: Subjects = 20,
    sessions: Sessions = 1,
    trials: SeveralTrials = None,
    replicates: Annotated[int, typer.Option(help="Data sets per design.")] = 400,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    seed: Seed = 0,
) -> Ask:
    """Ask what a metric and its test do to minds whose true value is known."""
    from knownminds.environments import unknown
    from knownminds.inference import MEASURES
    from knownminds.validation.power.audit import audit as run_audit
    from knownminds.validation.studies import AUDITS, load

    if measure in AUDITS:
        given = {"effect": effect, "environment": environment}
        given |= {"subjects": subjects != 20, "sessions": sessions != 1}
        for option in (name for name, value in given.items() if value):
            raise ValueError(f"The audit of {measure} has a design of its own; got --{option}.")
        settings = read_settings(values) | ({"trials": trials} if trials else {})
        run_named = load(f"{AUDITS[measure]}:audit")
        return lambda running: run_named(settings, replicates=replicates, seed=seed, **running)
    if measure not in MEASURES:
        raise ValueError(unknown("measure", measure, [*MEASURES, *AUDITS]))
    found = MEASURES[measure]
    given = {text.partition("=")[0] for text in values or []}
    needed = [f"{k}={v}" for k, v in found.settings.items() if k not in given]
    values = [*needed, *(values or [])]
    place, _ = resolve_experiment(environment or found.environments[0], [], None, values)
    return lambda running: run_audit(
        measure,
        environment=place,
        effects=effect,
        subjects=subjects,
        sessions=sessions,
        trials=trials or NOT_GIVEN,
        replicates=replicates,
        seed=seed,
        **running,
    )
