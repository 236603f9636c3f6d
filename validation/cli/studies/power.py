"""`knownminds power`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from knownminds.validation.cli.study import Ask, study
from knownminds.validation.options import (
    DesignName,
    Experiment,
    Model,
    Seed,
    SeveralSessions,
    SeveralTrials,
    Values,
)
from knownminds.validation.reading import NOT_GIVEN, read_numbers, resolve_experiment


@study
def power(
    environment: Experiment,
    effect: Annotated[
        str, typer.Option(help="NAME=SIZE: a measure or a parameter, on the natural scale.")
    ],
    model: Model = "rescorla_wagner_dual",
    comparison: Annotated[
        str, typer.Option(help="one (against the null value), between or paired conditions.")
    ] = "one",
    estimator: Annotated[str, typer.Option(help="two_stage or hierarchical.")] = "two_stage",
    subjects: Annotated[
        list[int] | None, typer.Option(help="Participants; 1 (one mind) if not given.")
    ] = None,
    sessions: SeveralSessions = None,
    trials: SeveralTrials = None,
    design: DesignName = None,
    replicates: Annotated[
        int | None, typer.Option(help="Data sets per design; 400, or 1000 to confirm --find.")
    ] = None,
    effect_sd: Annotated[float, typer.Option(help="Spread of the effect: assurance.")] = 0.0,
    values: Values = None,
    spread: Annotated[
        list[str] | None, typer.Option(help="NAME=SD between participants, unconstrained scale.")
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="sessions, subjects or trials: find the smallest number.")
    ] = None,
    target: Annotated[float, typer.Option(help="The power to reach, with --find.")] = 0.8,
    most: Annotated[int, typer.Option(help="The largest number to consider.")] = 1000,
    seed: Seed = 0,
) -> Ask:
    """Ask how often a design detects an effect, or which is the smallest that does."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.power.power_study import power as run_power
    from knownminds.validation.power.smallest_design import smallest_design

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, None, values, design)
    sizes: dict[str, Any] = {
        "subjects": subjects or [1],
        "sessions": sessions or [1],
        "trials": list(trials or NOT_GIVEN),
    }
    given: dict[str, Any] = {
        "model": agent,
        "comparison": comparison,
        "estimator": estimator,
        "effect_sd": effect_sd,
        "truth": truth,
        "spread": read_numbers("--spread", spread),
        "seed": seed,
    }
    sought = read_numbers("--effect", [effect])
    if find is None:
        given["replicates"] = 400 if replicates is None else replicates
        return lambda running: run_power(place, sought, **sizes, **given, **running)
    for name, several in sizes.items():
        if len(several) > 1:
            raise ValueError(f"With --find the other sizes are single numbers; got {name} twice.")
    given |= {name: several[0] for name, several in sizes.items()}
    given |= {"replicates": replicates or 1000, "find": find, "target": target, "most": most}
    return lambda running: smallest_design(place, sought, **given, **running)
