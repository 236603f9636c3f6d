"""How much more probable marked outcomes, such as the first, are believed to be than they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.chance.context_grid import MARKS, Context, ContextGrid
from knownminds.environments.chance.scenarios import context_of
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, t_tests, with_columns
from knownminds.inference.session_measure import DeclaredMeasure

from .belief_sampler_fit import BeliefTable
from .open_beliefs import set_bounds
from .revealed_belief import Belief, RevealedBeliefs

Ends = tuple[float, float, float]  # a value and the ends of its interval

EVEN = 1e-9  # probabilities that differ by less count as the same
FEWEST = 2  # an interval over contexts needs so many
COLUMNS = [
    "scenario", "mark", "value", "low", "high", "least", "most", "log_odds", "log_odds_low",
    "log_odds_high", "contexts", "reason", "freedom",
]  # fmt: skip


def belief_biases(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Compute how much more probable marked outcomes are believed to be than they are.

    There are two readings. As a difference: in each context in which some of the possible outcomes
    have the mark and some do not, their share in the belief minus their true share. As a parameter:
    the bias of the belief sampler that is nearest to all beliefs of the scenario.

    Intervals of differences are Student's over contexts. Those of parameters use the scatter
    between contexts (White 1982) and Student's t. Its degrees of freedom are C - K for C contexts
    and K parameters, or one less than the number of contexts with the mark if that is smaller. For
    top-k tables the ends are those of the least and of the largest possible values, so that they
    include both kinds of ignorance. Flagged contexts are left out.

    Returns
    -------
    pandas.DataFrame
        One row per scenario and mark that some of its contexts have. value is the published
        reading: the mean over contexts of the believed less the true share of marked outcomes
        (temperature and other biases count as well), with low and high. least and most are its ends
        over all possible beliefs, which differ only for top-k tables. log_odds is the bias as a
        parameter, with log_odds_low and log_odds_high; reason says why it is missing, or is "".
        contexts counts those that have outcomes with and without the mark. freedom is the degrees
        of freedom of the interval of value.
    """
    if any(np.isnan(belief.truth).any() for belief in beliefs):
        raise ValueError(
            "A bias is a difference from the truth, which some contexts lack. Give set_ups when "
            "reading the beliefs."
        )
    used: dict[str, list[Belief]] = {}
    for belief in beliefs:
        if not belief.flag and belief.probability[belief.truth > 0].sum() > 0:
            used.setdefault(belief.scenario, []).append(belief)
    biases = []
    for scenario, some in used.items():
        differences = {
            mark: values for m, mark in enumerate(MARKS) if (values := _differences(some, m)).size
        }
        if not differences:
            continue
        table = BeliefTable.of(some)
        nearest = table.nearest(table.sampler(table.fit().z)[0])
        for mark, values in differences.items():
            low, high = _ends(values)
            contexts = values.shape[1]
            odds, reason = _log_odds(table, nearest, mark, contexts)
            mean, least, most = values.mean(axis=1).tolist()
            row = (scenario, mark, mean, low, high, least, most, *odds, contexts, reason)
            biases.append((*row, contexts - 1))
    return pd.DataFrame(biases, columns=COLUMNS)


def _differences(beliefs: Sequence[Belief], mark: int) -> Array:
    """Return belief minus truth of the marked outcomes, and its least and most, [3, contexts]."""
    columns = []
    for belief in beliefs:
        q, p, marked = belief.probability, belief.truth, belief.marks[:, mark]
        if not _splits(marked, p):
            continue
        believed = marked @ q / q.sum()
        least = most = believed
        if not belief.draws:
            (least,), (most,) = set_bounds(q, belief.unplaced, marked[None].astype(float))
        columns.append(np.array([believed, least, most]) - marked @ p)
    return np.array(columns).T


def _log_odds(table: BeliefTable, belief: Array, mark: str, contexts: int) -> tuple[Ends, str]:
    """Return the bias of the nearest sampler with its interval, or the reason why it has none.

    Parameters
    ----------
    belief : The normalised belief over the possible outcomes, [R].
    contexts : How many contexts have outcomes with the mark and without.
    """
    at = 1 + MARKS.index(mark)
    rest = np.delete(np.arange(len(table.gram)), at)
    parts = (table.gram, table.gram[np.ix_(rest, rest)])
    # A bias is identified if it does more than temperature and the other biases.
    if not np.subtract(*(np.linalg.matrix_rank(part, tol=1e-8) for part in parts)) > 0:
        nothing = float("nan")
        reason = "in these contexts it cannot be distinguished from temperature and other biases"
        return (nothing, nothing, nothing), reason
    position = int(np.flatnonzero(table.free == at)[0])
    freedom = min(len(table.edges) - 1 - len(table.free), contexts - 1)
    beliefs = [belief]
    if table.units:
        beliefs += [table.extreme(position, belief, sign)[0] for sign in (-1.0, 1.0)]
    ends = []
    for each in beliefs:
        value, variance, _ = table.fit_of(each, position)
        half = np.nan
        if freedom >= 1:
            half = float(scipy.stats.t.ppf(0.975, freedom)) * float(np.sqrt(variance))
            half = 0.0 if half <= EVEN else half
        ends.append((value, value - half, value + half))
    return (ends[0][0], min(low for _, low, _ in ends), max(high for _, _, high in ends)), ""


def _splits(marked: Array | np.ndarray, truth: Array) -> bool:
    """Say whether some possible outcomes have the mark and some do not."""
    possible = truth > 0
    return bool(marked[possible].any() and not marked[possible].all())


def _ends(samples: Array) -> tuple[float, float]:
    """Return the lower end for the least and the upper end for the largest values."""
    tests = t_tests(samples)
    if samples.shape[1] < FEWEST:
        return float("nan"), float("nan")
    # Equal values have an interval without width.
    flat = np.nanmax(samples, axis=1) - np.nanmin(samples, axis=1) <= EVEN
    low = tests.mean[1] if flat[1] else tests.low[1]
    high = tests.mean[2] if flat[2] else tests.high[2]
    return float(low), float(high)


def outcome_bias(mark: str, called: str, places: str) -> DeclaredMeasure:
    """How much more often the outcomes with a mark are said than they come, as a share.

    It counts trials in which all outcomes are equally probable and some have the mark. It is the
    share of these in which a marked outcome was said, minus the share that there should be. An
    agent that says each outcome as often as it comes has 0, and temperature does not change that.

    Its size in a sampler with a given bias depends on the number of outcomes, so its truth is that
    of an experiment: by default the first of `environments`, with `settings`.

    Its t test needs some answers per subject. With 20 subjects, 7 answers each, and 1 in 12 to be
    marked, it rejects 6.8% without a bias; with 28 answers each, 5.2%.

    Parameters
    ----------
    mark, called : One of `MARKS`, and a name for the outcomes with that mark.
    places : Names of the experiments in which all outcomes can be equally probable and some of them
        have the mark.
    """

    def marked_of(context: Context) -> Array | None:
        """Return which outcomes have the mark; None if the context does not count."""
        p = context.chance.probabilities
        marked = context.marks[:, MARKS.index(mark)]
        if np.ptp(p) > EVEN or not _splits(marked, p):
            return None
        return np.asarray(marked, dtype=float)

    def counts(measure: DeclaredMeasure, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials are in contexts where only some outcomes have the mark, [rows]."""
        frame = trials.frame
        cell = frame["cell"].to_numpy(dtype=np.int64)
        counting = [c for c in np.unique(cell) if marked_of(context_of(int(c))) is not None]
        stated = "correct" in frame and frame["correct"].to_numpy(dtype=float) >= 0
        return np.asarray(np.isin(cell, counting) & ~np.asarray(stated), dtype=bool)

    def read(measure: DeclaredMeasure, trials: Trials) -> Values:
        """Return each subject's share of marked outcomes minus the share they should have."""
        frame = with_columns(trials, measure.name, ("cell", "action"))
        subject, names = pd.factorize(frame["subject"])
        action = trials.numbers("action")
        said = np.full(len(frame), np.nan)
        answered = measure.reads(trials) & (action >= 0)
        for cell in frame["cell"][answered].unique():
            marked = marked_of(context_of(int(cell)))
            assert marked is not None
            rows = answered & (frame["cell"] == cell).to_numpy()
            said[rows] = marked[action[rows].astype(np.int64)] - marked.mean()
        return Values.means(subject, said, len(names), f"no answer where {mark} could be separated")

    def at(measure: DeclaredMeasure, environment: Environment) -> DeclaredMeasure:
        if not isinstance(environment, ContextGrid) or environment.form == "stated":
            raise ValueError(
                f"{measure.name} is read off what is said in {', '.join(measure.environments)}; "
                f"got {environment!r}. It knows nothing of stated probabilities."
            )
        if all(marked_of(context) is None for context in environment.contexts):
            raise ValueError(
                f"{measure.name} needs contexts in which all outcomes are equally probable and "
                f"some, but not all, are {called}; {environment!r} has none. Change its settings, "
                f"or use one of {', '.join(measure.environments)}."
            )
        return measure

    return DeclaredMeasure(
        read=read,
        counts=counts,
        at=at,
        name=f"{mark}_outcome_bias",
        summary=f"how much more often {called} is said than it comes",
        source="Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, results 2 and 3",
        environments=tuple(places.split()),
        settings={"n_faces": 12} if mark == "round" else {},
        bounds=(-1.0, 1.0),
        rational="random_responder",
        violator="belief_sampler",
        dial=Dial({f"bias_{mark}": 1.0}, reach=2.0, steps=9),
    )


OUTCOME_BIASES = tuple(
    outcome_bias(*about)
    for about in (
        ("first", "the first outcome", "dice choice preference"),
        ("middle", "the outcome in the middle", "dice choice"),
        ("round", "a multiple of ten", "dice"),
        ("repeat", "the outcome that came before", "dice choice preference"),
        ("heads", "heads", "preference"),
        ("left", "left", "preference"),
    )
)
