"""`knownminds simulate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.options import (
    Adaptive,
    DesignName,
    Experiment,
    Json,
    Lapse,
    Model,
    NTrials,
    Questions,
    Seed,
    Sessions,
    Subjects,
    Values,
)
from knownminds.validation.reading import resolve_experiment

if TYPE_CHECKING:
    from knownminds.agents import Agent


def _truth_of(frame: Any, model: type[Agent]) -> list[dict[str, Any]]:
    names = [f"true_{name}" for name in model.parameters.names]
    first = frame.drop_duplicates("subject")[["subject", *names]]
    rows: list[dict[str, Any]] = first.rename(columns=lambda c: c.removeprefix("true_")).to_dict(
        "records"
    )
    return rows


@app.command()
def simulate(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    subjects: Subjects = 20,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    lapse: Lapse = 0.0,
    questions: Questions = None,
    adaptive: Adaptive = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """Let subjects with known parameters play; their true values stand beside the choices."""
    from knownminds.environments.record.folders import check_writable, writable
    from knownminds.environments.record.result import plain
    from knownminds.validation.engine.arguments import resolve_chosen, resolve_model
    from knownminds.validation.engine.simulated_data import simulated_data

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, trials, values, design)
    if out is not None:
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"Trials are kept as .parquet or .csv; got {out.name!r}.")
        check_writable(out)
    chosen = resolve_chosen(place, questions, adaptive)
    lived = simulated_data(
        agent,
        place,
        subjects=subjects,
        sessions=sessions,
        seed=seed,
        truth=truth,
        lapse=lapse,
        chosen=chosen,
    )
    if out is not None:
        with writable(out.parent):
            lived.save(out)
        notes.print(f"{lived}, written to {out}", markup=False)
    if as_json:
        told = {"environment": place.name, "model": agent.name, "seed": seed}
        told |= {
            "subjects": subjects,
            "sessions": sessions,
            "trials_per_session": questions or place.n_trials,
        }
        told["truth"] = _truth_of(lived.frame, agent)
        if out is None:
            told["trials"] = json.loads(lived.to_json())
        else:
            told["out"] = str(out)
        print_json(plain(told))
    elif out is None:
        from knownminds.environments.record.csv_cells import csv_text

        sys.stdout.write(csv_text(lived.frame))
