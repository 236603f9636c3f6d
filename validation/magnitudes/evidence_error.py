"""How far evidence for kinds of observers would vary if the same participant answered again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import ANSWERED, Outcome, Trials, make, session_stream
from knownminds.inference.magnitudes.factor_evidence import FACTORS, factor_evidence
from knownminds.inference.magnitudes.observer_fits import aic_of, fit_observers
from knownminds.validation.data.support import Relived

REPLAYS = 20
_STREAM = 79


def evidence_errors(frame: pd.DataFrame, replays: int = REPLAYS, seed: int = 0) -> pd.DataFrame:
    """Return the standard error of each subject's evidence, a row per subject, a column per factor.

    The variant with the least AIC, as fitted, answers the same stimuli again and again, and all
    variants are fitted to each set of answers: a parametric bootstrap (Efron and Tibshirani 1993,
    6.5). It needs 50 answers a subject or so: with 12 the intervals of differences held 0 in .81 to
    .93 instead of .95, with 99 in .88 to 1 (`docs/conclusions.py`). The order of the stimuli is
    kept, on which sequential observers hang. NaN where the fits failed.

    Parameters
    ----------
    frame
        Trials of magnitude experiments; each subject is a participant in one task, condition and
        modality.
    replays
        How often each is played again.
    """
    if "outcome" not in frame:
        read = np.where(frame["response"].notna(), ANSWERED[0], Outcome.MALFORMED.value)
        frame = frame.assign(outcome=read)
    fits = fit_observers(Trials.from_frame(frame), workers=1)
    names = next(iter(fits.values())).subjects
    table = pd.DataFrame(aic_of(fits), index=names)
    best = table.dropna(how="all").idxmin(axis=1)
    parts = []
    for number, (task, rows) in enumerate(frame.groupby("environment", sort=False)):
        environment = make(str(task))
        relived = Relived.of(rows, environment, rows["subject"])
        whose = pd.Series(rows["subject"].unique())
        for name, mine in best[best.index.isin(whose)].groupby(best):
            variant = str(name)
            units = np.flatnonzero(whose.isin(mine.index))
            sessions = np.flatnonzero(np.isin(relived.unit, units))
            at = fits[variant].subjects
            theta = fits[variant].estimate[[at.index(whose[u]) for u in relived.unit[sessions]]]
            rng = session_stream(seed, _STREAM, number, list(fits).index(variant))
            again = relived.rows(AGENTS[variant], environment, np.tile(theta, (replays, 1)), None,
                                 np.tile(sessions, replays), rng)  # fmt: skip
            turn, session = np.divmod(again.pop("session"), len(sessions))
            subject = whose.to_numpy()[relived.unit[sessions]][session]
            told: dict[str, Any] = {
                "subject": pd.Series(subject) + "/" + pd.Series(turn).astype(str),
                "session": session,
                "trial": again.pop("slot"),
                "environment": task,
            }
            parts.append(pd.DataFrame(again | told))
    if not parts:
        return pd.DataFrame(columns=list(FACTORS))
    refits = fit_observers(Trials.from_frame(pd.concat(parts, ignore_index=True)), workers=1)
    names = next(iter(refits.values())).subjects
    evidence = factor_evidence(aic_of(refits), names)
    return evidence[list(FACTORS)].groupby([n.rpartition("/")[0] for n in names]).std()
