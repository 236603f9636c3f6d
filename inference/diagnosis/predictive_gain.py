"""How much better decisions are predicted if the state is known besides the stated belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import Resampled, resampled

from .belief_decisions import ACTIONS, ELICITATIONS, BeliefDecisions
from .coherence_test import NONE, CoherenceTest, reading
from .conditional_independence import exchanged_states

FOLDS = 5
FLOOR = 1e-3  # this share of every prediction is spread over all actions
LEAF = 25  # least number of rows in a leaf of a tree

Learner = Literal["gradient_boosting", "catboost", "tree"]


class Classifier(Protocol):
    """A learner that predicts actions: fit and predict_proba as in scikit-learn."""

    classes_: Any

    def fit(self, x: Array, y: NDArray[np.int64]) -> Any:
        """Learn from features x[n, F] and actions y[n]."""

    def predict_proba(self, x: Array) -> Any:
        """Return the probability of each class, [n, K]."""


def predictive_gain(
    data: BeliefDecisions,
    *,
    belief: str = ELICITATIONS[0],
    features: Sequence[str] = (),
    learner: Learner | Callable[[int], Classifier] = "gradient_boosting",
    bootstraps: int = 500,
    replicates: int = 1000,
    seed: int = 0,
) -> CoherenceTest:
    """Predict actions of new contexts from the belief, with and without the state.

    Contexts stay together in one of five folds, so that nothing is learnt from repetitions of a
    tested context. A state that has no information still costs something: the model with the state
    learns noise. So the expected gain of a rational decider is below zero, and an interval above
    zero, the published reading, is no test of known size. The test keeps the learnt models and
    exchanges the states of the predicted contexts, among those of the same fold with nearly the
    same belief (holdout randomization, Tansey et al. 2022; neighbourhoods as in
    `conditional_independence`).

    The value is the percentage by which the log-loss is smaller than with exchanged states.
    Published is the same against the loss without the state. `without` is that loss, per row in
    nats, and `null_mean` is the mean percentage of the exchanges. The first row compares A ~ (p,
    state) with A ~ p; with features, the second row compares A ~ (p, x, state) with A ~ (p, x).

    Parameters
    ----------
    belief : The elicitation whose belief is held constant.
    features : Columns of evidence for the second comparison; text counts as categories.
    learner : "gradient_boosting" (scikit-learn's HistGradientBoosting), "catboost", "tree" (one
        decision tree, quick), or a function that takes a seed and returns a classifier.
    bootstraps, replicates, seed : How many bootstraps make the intervals, how many exchanges make
        the test (0 for none), and the seed.

    Raises
    ------
    ValueError : If no row has belief and action, or there are fewer contexts than folds.
    ImportError : If the learner's package is missing.
    """
    complete, excluded = data.complete("action", belief)
    context = complete.context
    n_contexts = int(context.max()) + 1
    if n_contexts < FOLDS:
        raise ValueError(
            f"Predictive gain needs {FOLDS} contexts, one for each fold; got {n_contexts}. Give "
            "more of them."
        )
    make = _learner(learner)
    p = complete.numbers(belief)
    action, state = (complete.numbers(name).astype(np.int64) for name in ("action", "state"))
    fold, draws = folds_of(context, FOLDS, seed), complete.resampled(bootstraps, seed)
    rng = session_stream(seed, 36)
    others = exchanged_states(p, state, context, replicates, rng, fold) if replicates else None
    known = {"beyond belief, %": p[:, None]}
    if features:
        evidence = features_of(complete.frame, features)
        known["and evidence, %"] = np.column_stack([p[:, None], evidence])
    rows = []
    for of, x in known.items():
        without = _losses(make, x, [x], action, fold, seed)[:, 0]
        losses = _losses(make, *_with_state(x, state), action, fold, seed)
        loss = losses[np.arange(len(state)), state]
        value, p_value, null_mean = NONE, np.nan, np.nan
        if others is not None:
            null = losses[np.arange(len(state)), others]
            totals = null.sum(axis=1)
            p_value = (1 + int((totals <= loss.sum() + 1e-9).sum())) / (len(others) + 1)
            null_mean = 100 * float(1 - totals.mean() / without.sum())
            value = _percent(loss, null.mean(axis=0), draws)
        rows.append(
            reading(
                of,
                value,
                null=0.0,
                p_value=p_value,
                n=len(p),
                published=_percent(loss, without, draws),
                excluded=excluded,
                without=float(without.mean()),
                null_mean=null_mean,
            )
        )
    return CoherenceTest.of(rows, n_contexts)


def _percent(values: Array, other: Array, draws: NDArray[np.int64]) -> Resampled:
    """Return by how many percent a loss is smaller than another."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rounds = 100 * (1 - (draws @ values) / (draws @ other))
    return resampled(np.concatenate([[100 * (1 - values.sum() / other.sum())], rounds]))


def folds_of(context: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row; all rows of a context are in one, contexts spread evenly."""
    n = int(context.max()) + 1
    order = session_stream(seed, 37).permutation(n)
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % folds
    return np.asarray(fold[context])


def features_of(frame: pd.DataFrame, names: Sequence[str]) -> Array:
    """Return columns of evidence as numbers, [n, F]; text becomes one column per category.

    Raises
    ------
    ValueError : If no column is named, or a column is missing.
    """
    lost = [name for name in names if name not in frame]
    if lost or not names:
        raise ValueError(
            "Evidence is columns of the trials that are constant within contexts; "
            + (f"{lost[0]!r} is none. " if lost else "none were named. ")
            + f"There are {', '.join(map(str, frame.columns))}."
        )
    columns = []
    for name in names:
        if pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name]):
            columns.append(frame[name].to_numpy(dtype=float, na_value=np.nan)[:, None])
        else:
            code, levels = pd.factorize(frame[name])
            columns.append((code[:, None] == np.arange(len(levels))).astype(float))
    return np.concatenate(columns, axis=1)


def scikit_learn(what: str) -> None:
    """Raise ImportError with the line that installs scikit-learn if it is missing."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError(
            f'{what} needs scikit-learn: pip install "knownminds[learning]"'
        ) from None


# Each learner has its module, its class, the name of its seed, and its options.
LEARNERS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    # Learning is slow and shallow: beliefs are one number, and a thousand rows are few.
    "gradient_boosting": (
        "sklearn.ensemble", "HistGradientBoostingClassifier", "random_state",
        {"learning_rate": 0.05, "max_iter": 60, "max_leaf_nodes": 8, "early_stopping": False},
    ),
    # Depth and iterations are as published.
    "catboost": (
        "catboost", "CatBoostClassifier", "random_seed",
        {"depth": 6, "iterations": 1000, "verbose": False, "allow_writing_files": False},
    ),
    "tree": ("sklearn.tree", "DecisionTreeClassifier", "random_state", {"min_samples_leaf": LEAF}),
}  # fmt: skip


def _learner(name: Learner | Callable[[int], Classifier]) -> Callable[[int], Classifier]:
    if callable(name):
        return name
    if name not in LEARNERS:
        raise ValueError(
            f"Learners are {', '.join(LEARNERS)}, or a function of a seed; got {name!r}."
        )
    module, kind, seeded, options = LEARNERS[name]
    if name != "catboost":
        scikit_learn(f"Predictive gain by {kind}")
    try:
        learner = getattr(import_module(module), kind)
    except ModuleNotFoundError:
        raise ImportError(
            f"Predictive gain by {kind} needs the {module} package: pip install {module}"
        ) from None
    return lambda seed: learner(**options, **{seeded: seed})


def _with_state(known: Array, state: NDArray[np.int64]) -> tuple[Array, list[Array]]:
    """Return features with the state added, and the same features in either state."""
    either = [np.full(len(known), theta) for theta in (0, 1)]
    x, *designs = (np.column_stack([known, theta]) for theta in (state, *either))
    return x, designs


def _losses(
    make: Callable[[int], Classifier],
    x: Array,
    designs: Sequence[Array],
    action: NDArray[np.int64],
    fold: NDArray[np.int64],
    seed: int,
) -> Array:
    """Learn from x[n, F] in the other folds; return each row's log-loss under each of D designs."""
    loss = np.empty((len(action), len(designs)))
    n = len(ACTIONS)
    with threadpool_limits(1):  # data are small
        for f in range(int(fold.max()) + 1):
            learn, tell = fold != f, np.flatnonzero(fold == f)
            seen = np.unique(action[learn])
            predicted = np.zeros((len(designs), len(tell), n))
            if len(seen) == 1:
                predicted[..., seen[0]] = 1.0
            else:
                model: Any = make(seed)
                model.fit(x[learn], action[learn])
                classes = np.asarray(model.classes_, dtype=np.int64)
                rows = np.concatenate([one[tell] for one in designs])
                chances = np.asarray(model.predict_proba(rows))
                predicted[..., classes] = chances.reshape(len(designs), len(tell), -1)
            # An action that was never seen before must not cost infinitely much.
            mixed = (1 - FLOOR) * predicted + FLOOR / n
            loss[tell] = -np.log(mixed[:, np.arange(len(tell)), action[tell]]).T
    return loss
