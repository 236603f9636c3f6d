"""What features of models go with their scores: the part that several papers have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from knownminds.validation.data.feature_regression import (
    check_features,
    regress_on_features,
    with_features,
)
from knownminds.validation.data.score_scale import read_csv
from knownminds.validation.pages.views import WHO, Cell, Dots, Rows, ends

from .paper import About, Shown

NONE_GIVEN = (
    "Scores are regressed on features of models where a table of these is given: --features FILE, "
    "a CSV file with the columns participant, base_model, and numbers (0 and 1 for no and yes). "
    "The file features.csv beside the shipped plans is an example."
)


def read_features(file: Path) -> pd.DataFrame:
    """Read a table of features: a row per participant, a feature a number in all rows or in none.

    Raises
    ------
    ValueError : If a column is missing, a participant has several rows, or a row lacks a number.
    """
    table = read_csv("A table of features", file, (WHO, "base_model"))
    numbers = table.drop(columns=[WHO, "base_model"]).apply(pd.to_numeric, errors="coerce")
    check_features(table, [str(name) for name in numbers if numbers[name].notna().any()])
    return table


def features_part(scores: pd.DataFrame, about: About) -> Shown:
    """Return the regressions of scores on features, and views of them.

    Parameters
    ----------
    scores : One row per participant and metric: participant, metric, score.
    """
    if about.features is None:
        return pd.DataFrame(), NONE_GIVEN
    known = read_features(about.features)
    there, texts = with_features(scores, known)
    if not len(there):
        return pd.DataFrame(), *texts
    rows = regress_on_features(there, known, standardise=True)
    rows = rows.rename(columns={"coefficient": "value"})
    if "value" not in rows:
        return rows, *texts, Rows("Regressions on features", {"status": "status"}, ("metric",))
    columns: Mapping[str, Cell] = {
        "coefficient": ends(), "p": "p_value", "participants": "participants",
        "base models": "base_models", "status": "status",
    }  # fmt: skip
    caption = "Coefficients of the features, both sides standardised, with 95% intervals."
    return (
        rows,
        *texts,
        Rows("Regressions on features", columns, ("metric", "feature")),
        Dots(caption, "coefficient", "metric", along="feature", null=0.0),
    )
