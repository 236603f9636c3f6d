"""What controls say of a player: does it heed its instruction, rewards, and nothing else?

A run with `--controls` leaves each control in a folder of its own, as a run of the same sessions:
RUN/controls/NAME. What each number means, and from where on a control is passed:

============  ============================================================  ===================
instruction   share of trials with the answer that the sentence names       above .8
shuffled      how much more the choices of the run earn than those of the   above .05
reversed      control, both by what the options pay in the run, in          above .1
              standard deviations of what an option pays
relabelled    how much further answers of the control are from those of     below .1
paraphrase    the run than those of "repeat" are: share of other choices,
              or share of the range of numbers
============  ============================================================  ===================

Numbers are means over sessions, which are compared one by one with the same session of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import ANSWERED, Environment, Trials, session_stream
from knownminds.environments.controls import CONTROLS, REPEAT, VARYING, instructed, payoffs_of
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.runner import TRIALS, called, environment_of_run
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import ControlTest

from .trials_of_runs import named_runs, runs_in

FOLDER = "controls"
SESSIONS = 20  # of a control at most: the first ones of the run
EXACT = 0.01  # of the range: numbers this close are the same
TABLE = "Controls"
ABOUT = (
    "Controls: sessions of the run, changed in one way. instruction: share of trials with the "
    "answer that a sentence behind the question names. shuffled, reversed: what the run's choices "
    "earn above the control's, both by the run's payoffs, in standard deviations of a payoff. "
    "relabelled, paraphrase: how much further answers are from the run's than those of a mere "
    "repetition, as a share of choices or of the range. Where a control failed, parameters of a "
    "fit do not mean what the model calls them."
)
_WHERE = ["session", "trial"]


def controls_of_runs(runs: Sequence[Path]) -> Result:
    """Return a table of all controls that lie beside runs, and a verdict on each.

    Rows have run, participant, control, value, sessions, unread (trials without a readable answer)
    and verdict. Of several runs the verdicts name the run.
    """
    rows = [
        {"run": name, **row} for name, run in named_runs(runs).items() for row in _controls_of(run)
    ]
    if not rows:
        return Result("")
    table = pd.DataFrame(rows)
    several = table["run"].nunique() > 1
    names = ["run", "control"] if several else ["control"]
    labels = table[names].agg(", ".join, axis=1)
    verdicts = dict(zip("control " + labels, table["verdict"], strict=True))
    analyses = list(dict.fromkeys(table.pop("analysis")))
    words = table.assign(verdict=[verdict.word for verdict in table["verdict"]])
    shown = words.set_index(names).drop(
        columns=["participant"] if several else ["run", "participant"]
    )
    return Result(
        "", verdicts=verdicts, tables={TABLE: shown}, notes=[ABOUT], rows=words,
        options={"analysis": analyses},
    )  # fmt: skip


def controls_of_data(data: Any) -> Result:
    """Return the controls that lie beside the runs among files and folders; see `read_one`."""
    if isinstance(data, Trials):
        return Result("")
    paths = [data] if isinstance(data, str | Path) else list(data)
    return controls_of_runs(runs_in(paths))


def _controls_of(run: Path) -> list[dict[str, Any]]:
    folders = {name: run / FOLDER / name for name in (*CONTROLS, REPEAT)}
    there = {name: path for name, path in folders.items() if (path / TRIALS).is_file()}
    if not (there and (run / TRIALS).is_file()):
        return []
    with Ledger.read(run) as ledger:
        configuration = ledger.configuration
    environment = environment_of_run(configuration)
    frames = {name: _answers(path) for name, path in {"": run, **there}.items()}
    rows = []
    for name in there:
        if name == REPEAT or (name in VARYING and REPEAT not in frames):
            continue
        values = control_values(name, frames, environment, configuration)
        test = ControlTest(name)
        score, verdict = test.judge(values)
        rows.append(
            {
                "participant": f"{configuration['provider']}:{called(configuration)}",
                "control": name,
                "value": score,
                "sessions": len(values),
                "unread": int((~frames[name]["outcome"].isin(ANSWERED)).sum()),
                "verdict": verdict,
                "analysis": str(test),
            }
        )
    return rows


def _answers(folder: Path) -> pd.DataFrame:
    """Return outcome, and action and response as numbers, by session and trial."""
    frame = Trials.load(folder / TRIALS).frame
    answers = {
        name: frame[name].to_numpy(dtype=float, na_value=np.nan)
        for name in ("action", "response")
        if name in frame
    }
    return frame[[*_WHERE, "outcome"]].assign(**answers).set_index(_WHERE)


def control_values(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    environment: Environment,
    configuration: Mapping[str, Any],
) -> pd.Series[float]:
    """Return the number of a control for each of its sessions.

    Parameters
    ----------
    frames : By control, "" for the run: columns outcome, action and response, indexed by session
        and trial.
    configuration : Of the run: seed and address.
    """
    if name == "instruction":
        frame = frames[name][frames[name]["outcome"] != "error"]  # nobody has read the others
        trials = frame.index.get_level_values("trial")
        named = [instructed(environment, trial) for trial in trials]
        right = _distances(frame, _named(named, environment, frame), environment) < EXACT
        values: pd.Series[float] = right.astype(float).groupby("session").mean()
    elif name in VARYING:
        run = frames[""]
        further = _distances(run, frames[name], environment)
        further -= _distances(run, frames[REPEAT], environment)
        values = further.groupby("session").mean()
    else:
        earned = [_earned(frames[which], environment, configuration) for which in ("", name)]
        values = earned[0] - earned[1]
    return values.dropna()


def _named(named: Sequence[Any], environment: Environment, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the answers that the instruction names, by session and trial."""
    column = "response" if environment.given == "response" else "action"
    first = [one[0] if isinstance(one, tuple) else one for one in named]
    return pd.DataFrame({column: np.asarray(first, dtype=float)}, index=frame.index)


def _distances(
    one: pd.DataFrame, other: pd.DataFrame, environment: Environment
) -> pd.Series[float]:
    """Return how far answers are from each other on each trial; NaN where one is missing.

    1 and 0 for other and the same choices; numbers as a share of their range.
    """
    low, high = environment.response_range
    both = one.merge(other, left_index=True, right_index=True, suffixes=("_one", "_other"))
    distances = pd.Series(np.nan, both.index)
    for name, width in (("response", high - low), ("action", 0.0)):
        if f"{name}_one" in both and f"{name}_other" in both:
            difference = (both[f"{name}_one"] - both[f"{name}_other"]).abs()
            scaled = difference / width if width else (difference > 0).where(difference.notna())
            distances = scaled.astype(float).fillna(distances)
    return distances


def _earned(
    answers: pd.DataFrame, environment: Environment, configuration: Mapping[str, Any]
) -> pd.Series[float]:
    """Return what the choices of each session earn in the run above what options pay on average.

    In standard deviations of what an option of the session pays.
    """
    earned = {}
    for name, session in answers["action"].dropna().groupby("session"):
        stream = session_stream(configuration["seed"], *configuration["address"], int(str(name)))
        paid = payoffs_of(environment, environment.draw(stream))
        trials = session.index.get_level_values("trial")
        above = paid[trials, session.to_numpy(dtype=int)] - paid[trials].mean(axis=1)
        earned[name] = above.mean() / paid.std()
    return pd.Series(earned, dtype=float)
