"""What features of models go with their scores: the part that several papers have."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from knownminds.validation.data.feature_regression import regress_on_features, with_features
from knownminds.validation.data.score_scale import read_csv
from knownminds.validation.pages.views import WHO, Cell, Dots, Rows, ends

from .paper import About, Shown

NONE_GIVEN = (
    "Scores are regressed on features of models where a table of these is given: --features FILE, "
    "a CSV file with the columns participant, base_model, and numbers (0 and 1 for no and yes). "
    "The file features.csv beside the shipped plans is an example."
)


def features_part(scores: pd.DataFrame, about: About) -> Shown:
    """Return the regressions of scores on features, and views of them.

    Parameters
    ----------
    scores
        One row per participant and metric: participant, metric, score.
    """
    if about.features is None:
        return pd.DataFrame(), NONE_GIVEN
    known = read_csv("A table of features", about.features, (WHO, "base_model"))
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
