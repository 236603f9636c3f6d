"""`knownminds regress`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.options import Json, Out


@app.command()
def regress(
    scores: Annotated[
        Path,
        typer.Argument(help="A CSV file with participant, metric and score: phenotype.csv."),
    ],
    features: Annotated[
        Path, typer.Option(help="A CSV file with participant, the base model and features.")
    ],
    feature: Annotated[
        list[str], typer.Option(help="A column of the features that enters; numbers.")
    ],
    base_model: Annotated[
        str, typer.Option(help="The column that says from which model a participant was made.")
    ] = "base_model",
    score: Annotated[str, typer.Option(help="The column of scores, or normalised.")] = "score",
    standardise: Annotated[
        bool, typer.Option("--standardise", help="In standard deviations of scores and features.")
    ] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Regress participants' scores on what is known of them, with an intercept per base model."""
    from knownminds.environments.record.folders import check_writable
    from knownminds.validation.data.feature_regression import feature_regression

    if out is not None:
        check_writable(out)
    found = feature_regression(
        scores,
        features,
        regressors=feature,
        base_model=base_model,
        score=score,
        standardise=standardise,
    )
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
