"""How much more probable marked outcomes, such as the first, are believed to be than they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.chance.outcome_grid import MARKS, BrokenOff, Context
from knownminds.environments.chance.scenarios import context_of
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, t_tests, with_columns
from knownminds.inference.session_measure import PlacedMeasure, SimulatedMeasure

from .belief_sampler_fit import BeliefTable
from .open_beliefs import set_bounds
from .revealed_belief import Belief, RevealedBeliefs

Ends = tuple[float, float, float]  # a value and the ends of its interval

EVEN = 1e-9  # by which probabilities may differ that count as the same
FEWEST = 2  # contexts that an interval over contexts needs
COLUMNS = [
    "scenario", "mark", "value", "low", "high", "least", "most", "log_odds", "log_odds_low",
    "log_odds_high", "contexts", "reason", "freedom",
]  # fmt: skip


def belief_biases(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Compute how much more the marked outcomes are believed to have than they have.

    As a difference: in each context in which some of the outcomes that can come have the mark and
    some have not, their share in the belief minus their true share. As a parameter: the bias of
    the belief sampler that is nearest to all beliefs of the scenario.

    Intervals of differences are Student's over contexts; those of parameters are of the scatter
    between contexts (White 1982), with Student's t for C - K degrees of freedom, C contexts and K
    parameters, or one less than there are contexts with the mark if these are fewer. For top-k
    tables their ends are those of the least and of the largest values that are possible, so that
    they hold both kinds of ignorance. Flagged contexts are left out.

    Returns
    -------
    pandas.DataFrame
        One row per scenario and mark that some of its contexts have: value, the mean over contexts
        of what the marked outcomes are believed to have more than they have in truth, the published
        reading (temperature and other biases count as well), with low and high; least and most,
        its ends over all beliefs that are possible, which differ for top-k tables alone; log_odds,
        the bias as a parameter, with log_odds_low and log_odds_high, and reason, why there is none
        ("" where there is); contexts, how many have outcomes with the mark and without; and
        freedom, the degrees of freedom of the interval of value.
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
    """Return the bias of the nearest sampler with its interval, or why there is none.

    Parameters
    ----------
    belief
        What is taken to be believed, normalised over what can come, [R].
    contexts
        How many have outcomes with the mark and without.
    """
    at = 1 + MARKS.index(mark)
    rest = np.delete(np.arange(len(table.gram)), at)
    parts = (table.gram, table.gram[np.ix_(rest, rest)])
    # A bias shows if it is more than what temperature and the other biases make.
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
    """Tell whether some outcomes that can come have the mark and some have not."""
    possible = truth > 0
    return bool(marked[possible].any() and not marked[possible].all())


def _ends(samples: Array) -> tuple[float, float]:
    """Return the lower end for the least and the upper end for the largest values."""
    tests = t_tests(samples)
    if samples.shape[1] < FEWEST:
        return float("nan"), float("nan")
    # Values that do not differ have an interval without width.
    flat = np.nanmax(samples, axis=1) - np.nanmin(samples, axis=1) <= EVEN
    low = tests.mean[1] if flat[1] else tests.low[1]
    high = tests.mean[2] if flat[2] else tests.high[2]
    return float(low), float(high)


@dataclass(eq=False, kw_only=True)
class BeliefBias(SimulatedMeasure):
    """How much more often the outcomes with a mark are said than they come, as a share.

    Over the trials in which all outcomes are equally probable and some have the mark, the share of
    those in which a marked one was said minus the share they should have. Who says each outcome
    as often as it comes has none, and temperature makes none.

    How large it is in a sampler with a given bias hangs on how many outcomes there are, so its
    truth is that of an experiment: by default the first of `environments`, with `settings`.

    Its t test counts on some answers per subject: of 20 subjects with 7 answers each of which 1 in
    12 should be marked, it rejects 6.8% without a bias; with 28 answers each, 5.2%.

    Parameters
    ----------
    mark, called
        One of `MARKS`, and what it marks.
    """

    mark: str
    called: str

    def in_place(self, environment: Environment) -> PlacedMeasure:
        """Return the measure whose truth is that over the contexts of the experiment.

        Raises
        ------
        ValueError
            If it has no context that tells the outcomes with the mark from others.
        """
        if not isinstance(environment, BrokenOff) or environment.form == "stated":
            raise ValueError(
                f"{self.name} is read off what is said in {', '.join(self.environments)}; got "
                f"{environment!r}. It knows nothing of stated probabilities."
            )
        if all(self._marked(context) is None for context in environment.contexts):
            raise ValueError(
                f"{self.name} needs contexts in which all outcomes are equally probable and some, "
                f"but not all, are {self.called}; {environment!r} has none. Change its settings, "
                f"or use one of {', '.join(self.environments)}."
            )
        return super().in_place(environment)

    def values(self, trials: Trials) -> Values:
        """Return each subject's share of marked outcomes minus the share they should have."""
        frame = with_columns(trials, self.name, ("cell", "action"))
        subject, names = pd.factorize(frame["subject"])
        action = trials.numbers("action")
        said = np.full(len(frame), np.nan)
        answered = self.reads(trials) & (action >= 0)
        for cell in frame["cell"][answered].unique():
            marked = self._marked(context_of(int(cell)))
            assert marked is not None
            rows = answered & (frame["cell"] == cell).to_numpy()
            said[rows] = marked[action[rows].astype(np.int64)] - marked.mean()
        reason = f"no answer where {self.mark} could be separated"
        return Values.means(subject, said, len(names), reason)

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials are in contexts where the mark could be separated, [rows]."""
        frame = trials.frame
        cell = frame["cell"].to_numpy(dtype=np.int64)
        counting = [c for c in np.unique(cell) if self._marked(context_of(int(c))) is not None]
        stated = "correct" in frame and frame["correct"].to_numpy(dtype=float) >= 0
        return np.asarray(np.isin(cell, counting) & ~np.asarray(stated), dtype=bool)

    def _marked(self, context: Context) -> Array | None:
        """Return which outcomes have the mark; None where the context does not count."""
        p = context.chance.probabilities
        marked = context.marks[:, MARKS.index(self.mark)]
        if np.ptp(p) > EVEN or not _splits(marked, p):
            return None
        return np.asarray(marked, dtype=float)


OUTCOME_BIASES = tuple(
    BeliefBias(
        mark=mark,
        called=called,
        name=f"{mark}_outcome_bias",
        summary=f"how much more often {called} is said than it comes",
        source="Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, results 2 and 3",
        # Where all outcomes can be equally probable and some of them have the mark.
        environments=tuple(places.split()),
        settings={"n_faces": 12} if mark == "round" else {},
        bounds=(-1.0, 1.0),
        rational="random_responder",
        violator="belief_sampler",
        dial=Dial({f"bias_{mark}": 1.0}, reach=2.0, steps=9),
    )
    for mark, called, places in (
        ("first", "the first outcome", "dice choice preference"),
        ("middle", "the outcome in the middle", "dice choice"),
        ("round", "a multiple of ten", "dice"),
        ("repeat", "the outcome that came before", "dice choice preference"),
        ("heads", "heads", "preference"),
        ("left", "left", "preference"),
    )
)
