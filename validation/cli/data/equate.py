"""`knownminds equate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.options import Json, Seed


@app.command()
def equate(
    trials: Annotated[
        Path,
        typer.Argument(
            help="Trials of one mind, taken together: a .csv or .parquet file, or the folder of a "
            "run, of cue_conflict with condition=gradual_noise."
        ),
    ],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find the blur with which pictures are as reliable as words for one mind."""
    from knownminds.inference.magnitudes.equal_blur import equal_blur
    from knownminds.validation.data.trials_of_runs import with_conditions

    found = equal_blur(with_conditions(trials), seed=seed)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
