"""`knownminds sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.completion import completes
from knownminds.validation.options import Experiment, Json, Seed, Subjects


@app.command()
def sample(
    environment: Experiment,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file; ENVIRONMENT.csv by default.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Who lives it; else a usual one.", autocompletion=completes("models")),
    ] = None,
    subjects: Subjects = 30,
    seed: Seed = 0,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a file to begin with: known minds in an experiment, and who they were beside it."""
    from knownminds.environments import ENVIRONMENTS, make
    from knownminds.validation.engine.arguments import one_of, set_to
    from knownminds.validation.engine.sample import MINDS
    from knownminds.validation.engine.sample import sample as draw
    from knownminds.validation.reading import read_settings

    one_of("environment", environment, ENVIRONMENTS)
    place = make(environment, **MINDS.get(environment, ("", {}))[1])
    found = draw(set_to(place, read_settings(values)), model, subjects=subjects, seed=seed)
    file = out or Path(f"{environment}.csv")
    beside = found.save(file)
    if as_json:
        told = {"environment": environment, "model": found.model, "seed": seed}
        print_json(told | {"subjects": subjects, "out": str(file), "truth": str(beside)})
        return
    print(found.trials)
    print(f"who they were ({found.model}): {beside}")
    notes.print(f"written to {file}; next: knownminds fit {file} --model {found.model}",
                markup=False, soft_wrap=True)  # fmt: skip
