"""Formulas for group means: which columns of the subjects move which parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pandas as pd
from formulaic import Formula, model_matrix
from formulaic.errors import FormulaicError
from numpy.typing import NDArray

from knownminds.agents.parameters import Array, Parameters


@dataclass(frozen=True)
class Regressors:
    """Regression weights on group means, and each subject's values.

    Parameters
    ----------
    names : "parameter ~ regressor" for each of E weights
    parameter : position of the parameter each weight moves, [E]
    by_subject : the regressors' values, [N, E]
    """

    names: tuple[str, ...]
    parameter: NDArray[np.int64]
    by_subject: Array

    @classmethod
    def of(
        cls, formula: str | Sequence[str], subjects: pd.DataFrame, parameters: Parameters
    ) -> Regressors:
        """Build from formulas such as "alpha_positive ~ condition".

        Categories enter as differences from the first level (in sorted order). The intercept
        is the group mean itself.

        Raises
        ------
        ValueError
            Naming the parameter or column that does not exist, varies within subjects, or has
            a single value.
        """
        names: list[str] = []
        positions: list[int] = []
        columns: list[Array] = []
        for text in [formula] if isinstance(formula, str) else formula:
            left, tilde, right = text.partition("~")
            if not tilde or not left.strip() or not right.strip():
                raise ValueError(
                    f'A formula reads "parameter ~ regressors"; got {text!r}, for instance '
                    f'"{parameters.names[0]} ~ condition" is one.'
                )
            position = parameters.index(left.strip())
            wanted = sorted(map(str, Formula(right).required_variables))
            for column in wanted:
                if column not in subjects:
                    known = ", ".join(map(str, subjects.columns)) or "none"
                    near = get_close_matches(column, list(map(str, subjects.columns)), n=1)
                    hint = f" Did you mean {near[0]}?" if near else ""
                    raise ValueError(
                        f"A regressor is a column that is constant within subjects; {column!r} in "
                        f"{text!r} is not. There are: {known}.{hint}"
                    )
                if subjects[column].isna().any():
                    who = subjects.index[subjects[column].isna()][0]
                    raise ValueError(f'Every subject needs a {column!r}; "{who}" has none.')
            try:
                matrix = model_matrix(right, subjects)
            except FormulaicError as error:
                raise ValueError(f"The formula {text!r} cannot be read: {error}") from None
            for column in matrix.columns:
                if column == "Intercept":
                    continue
                values = matrix[column].to_numpy(dtype=float)
                if np.ptp(values) == 0:
                    raise ValueError(
                        f"A regressor must differ between subjects; {column!r} in {text!r} is "
                        f"{values[0]:g} for all. Its weight could not be told from the mean."
                    )
                names.append(f"{left.strip()} ~ {column}")
                positions.append(position)
                columns.append(values)
        if not names:
            raise ValueError(f"A formula needs a regressor besides the intercept; got {formula!r}.")
        full = np.column_stack([np.ones(len(subjects)), *columns])
        for k in set(positions):
            own = full[:, [0, *(j + 1 for j, p in enumerate(positions) if p == k)]]
            if np.linalg.matrix_rank(own) < own.shape[1]:
                raise ValueError(
                    f"The regressors of {parameters.names[k]} depend on each other, so their "
                    "weights cannot be told apart. Drop one."
                )
        return cls(tuple(names), np.array(positions), np.column_stack(columns))
