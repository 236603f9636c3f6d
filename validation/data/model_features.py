"""Which features of models foretell a score of models that were not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy

from knownminds.environments import session_stream
from knownminds.inference.measure import t_tests
from knownminds.inference.ties import tied

LEAST = 8  # models, below which nothing is told
EXCHANGES = 20


def feature_importance(
    features: pd.DataFrame, score: pd.Series[float], *, key: str = "participant", seed: int = 0
) -> pd.DataFrame:
    """Return how much worse a random forest foretells a score without knowing a feature.

    Each model is left out in turn, a forest (Breiman 2001) learns from the others, and foretells it
    with its own features and with one of them exchanged for those of other models. The importance
    is the mean growth of the squared error, as a share of the variance of the score.

    Parameters
    ----------
    features
        A column `key` and columns of features; text is taken as categories.
    score
        By model.

    Returns
    -------
    DataFrame
        Columns feature, importance, low, high (Student's 95% interval over models), rho (rank
        correlation with the score, of numbers) and models; empty below 8 models.
    """
    columns = ["feature", "importance", "low", "high", "rho", "models"]
    told = features.assign(**{key: features[key].astype(str)}).drop_duplicates(key).set_index(key)
    names = [name for name in told.index if name in score.index and np.isfinite(score[name])]
    if len(names) < LEAST:
        return pd.DataFrame(columns=columns)
    from sklearn.ensemble import RandomForestRegressor

    told = told.loc[names]
    y = np.array([float(score[name]) for name in names])
    numbers = told.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else pd.factorize(c)[0])
    x = numbers.astype(float).to_numpy()
    x = np.where(np.isfinite(x), x, -1.0)
    varied = [k for k in range(x.shape[1]) if np.ptp(x[:, k]) > 0]
    grown = np.zeros((len(y), len(varied)))
    rng = session_stream(seed, 29)
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        forest = RandomForestRegressor(n_estimators=60, min_samples_leaf=2, random_state=seed)
        forest.fit(x[others], y[others])
        drawn = rng.choice(others, EXCHANGES)
        rows = [x[i : i + 1]]
        for k in varied:
            exchanged = np.repeat(x[i : i + 1], EXCHANGES, axis=0)
            exchanged[:, k] = x[drawn, k]
            rows.append(exchanged)
        off = (forest.predict(np.concatenate(rows)) - y[i]) ** 2
        grown[i] = off[1:].reshape(len(varied), EXCHANGES).mean(axis=1) - off[0]
    tests = t_tests(grown.T / y.var())
    kept = []
    for j, k in enumerate(varied):
        column = told.iloc[:, k]
        numeric = pd.api.types.is_numeric_dtype(column)
        rho = scipy.stats.spearmanr(tied(x[:, k])[0], tied(y)[0]).statistic if numeric else np.nan
        kept.append((told.columns[k], tests.mean[j], tests.low[j], tests.high[j], rho, len(y)))
    found = pd.DataFrame(kept, columns=columns)
    return found.sort_values("importance", ascending=False, kind="stable").reset_index(drop=True)
