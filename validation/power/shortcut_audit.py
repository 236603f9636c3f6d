"""What an experiment's shortcuts reach: how well somebody does who does not do what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from knownminds.agents import AGENTS
from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Session,
    Trials,
    make,
    session_stream,
    unknown,
)
from knownminds.environments.design import Design
from knownminds.environments.shortcuts import LAST, Right, Rule, habits, looks
from knownminds.validation.engine.engine import Running, run
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

CHANCE, RANDOM = "at random", "random_responder"
MARGIN = 0.01  # of the squared error, that looks take away at a correlation of .1
LEVEL = 0.05  # of all shortcuts of an experiment together
TIED = 1e-9  # actions whose probabilities differ by less are equally good
FOUND, NOTHING = "tells", "nothing found"
# Of experiments whose sessions are long as shipped, shorter ones; of one with two trials, more.
SIZES: Mapping[str, Mapping[str, Any]] = {
    "diagnosis": {"n_contexts": 40, "repeats": 1},
    "probabilistic_reasoning": {"n_problems": 20},
    "balloon_risk": {"n_balloons": 3},
    "horizon": {"n_games": 20},
}
_SUMS = ("xx", "xy", "yy")
_GROUP = "window"  # ranges that everybody notices: a shortcut has to tell values apart within them
_RANDOM = 2  # of the stream by which a random player chooses


@dataclass(frozen=True)
class ShortcutAudit(Reported):
    """What each shortcut reaches, by experiment.

    Parameters
    ----------
    table
        A row per experiment and shortcut: environment, stimuli, shortcut, kind ("look" or "habit"),
        r (correlation with the right answer; NaN of habits), score, chance, gain, gain_error,
        verdict. Of looks the score is 1 - the squared error of the best line through what is
        looked at, fitted to the other sessions, over that of the mean: NRMSE is the root of 1
        minus it, and chance 0. Of habits it is the mean performance of a trial.
    trials
        How many trials all sessions had, by experiment.
    study
        The experiments, a cell each.
    """

    table: pd.DataFrame
    study: Study
    versions: Mapping[str, str]

    def to_frame(self) -> pd.DataFrame:
        """One row per experiment and shortcut."""
        return self.table.copy()

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "seed": self.study.seed,
            "sessions": self.study.replicates,
            "level": LEVEL,
            "rows": self.table,
            "versions": self.versions,
        }

    def __str__(self) -> str:
        """The table, a line per shortcut."""
        lines = [
            f"shortcuts of {len(self.study.cells)} experiments, "
            f"{self.study.replicates} sessions each",
            f"{'experiment':<36}{'shortcut':<42}{'r':>7}{'score':>9}{'chance':>9}{'gain':>18}"
            "  verdict",
        ]
        for row in self.table.to_dict("records"):
            place = row["environment"] + (f", {row['stimuli']}" if row["stimuli"] else "")
            r = "-" if np.isnan(row["r"]) else f"{row['r']:.2f}"
            gain = f"{row['gain']:+.3f} ({row['gain_error']:.3f})"
            lines.append(
                f"{place:<36}{row['shortcut']:<42}{r:>7}{row['score']:>9.3f}{row['chance']:>9.3f}"
                f"{gain:>18}  {row['verdict']}"
            )
        return "\n".join([*lines, "(standard errors over sessions)"])


def shortcut_audit(
    environments: Sequence[str] | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    sessions: int = 40,
    seed: int = 0,
    **running: Unpack[Running],
) -> ShortcutAudit:
    """Ask what a participant reaches by each shortcut of an experiment alone.

    A number is asked for: the right answer is regressed on one thing that can be counted (the
    trial's number, the length of the question, the right answer of the trial before, and what the
    experiment names), within windows if there are any; the slope comes from the other sessions.
    An action is asked for: rules that do not look at what is told play the sessions, and so does
    somebody who picks at random. Where nothing is right or wrong, the score is how probable the
    outcome was that was picked, or else how often the rule agrees with the first of the
    experiment's models, at the means of its priors, in what that model finds most probable.

    A shortcut tells something if its gain is above 0, of numbers above .01 (which is what a
    correlation of .1 brings), at a level of .05 for all shortcuts of an experiment together
    (one-sided t tests over sessions, Bonferroni's correction).

    Parameters
    ----------
    environments
        One or several; all, and decoupled stimuli beside the published ones, if None.
    settings
        Of the experiments.
    sessions
        Of each experiment.
    running
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If an experiment is unknown, a setting does not fit, or there are less than 3 sessions.
    """
    if sessions < 3:
        raise ValueError(f"Errors over sessions need at least 3 of them; got {sessions}.")
    given = dict(settings or {})
    named = [environments] if isinstance(environments, str) else environments
    names = list(named or ENVIRONMENTS)
    for name in names:
        if name not in ENVIRONMENTS:
            raise ValueError(unknown("environment", name, ENVIRONMENTS))
    places = []
    for name in names:
        both = ("stimuli" in ENVIRONMENTS[name].setting_table) and "stimuli" not in given
        for stimuli in ("published", "decoupled") if both else (None,):
            told = {**SIZES.get(name, {}), **given}
            places.append((name, told | ({"stimuli": stimuli} if stimuli else {})))
    for name, own in places:
        _check_audited(make(name, **own))
    cells = tuple(
        Cell(name, own, RANDOM, law={"number": list(ENVIRONMENTS).index(name)}, batch=10)
        for name, own in places
    )
    question = {
        "subject_matter": "shortcuts",
        "set": {**({"environment": names} if named else {}), **given},
        "replicates": sessions,
        "seed": seed,
    }
    study = Study("audit", cells, sessions, seed, "replicate", question)
    return run(study, take_shortcuts, summarise, **running)


def audit(
    settings: Mapping[str, Any], *, replicates: int, seed: int, **running: Unpack[Running]
) -> ShortcutAudit:
    """Audit with settings as one types them: `environment`, and those of the experiments."""
    own = dict(settings)
    named = own.pop("environment", None)
    return shortcut_audit(named, settings=own, sessions=replicates, seed=seed, **running)


def take_shortcuts(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let every shortcut be taken in each session: one row each."""
    cell = study.cells[batch.cell]
    environment = cell.make()
    rows = []
    for session in range(batch.first, batch.last):
        address = (cell.law["number"], session)
        design = environment.draw(session_stream(study.seed, *address))
        row: dict[str, Any] = {"status": "ok", "message": ""}
        if _right(environment, design) is not None:
            row |= _looked(environment, design)
        else:
            row |= _played(environment, design, session_stream(study.seed, *address, _RANDOM))
        rows.append(row)
    return pd.DataFrame(rows)


def summarise(rows: Rows) -> ShortcutAudit:
    """Gather the shortcuts of a finished audit."""
    found = [
        row for c, cell in enumerate(rows.study.cells) for row in _summed(rows.frame(None, c), cell)
    ]
    return ShortcutAudit(pd.DataFrame(found), rows.study, rows.versions)


def _check_audited(environment: Environment) -> None:
    if (
        environment.n_actions == 0
        and _right(environment, environment.draw(session_stream(0))) is None
    ):
        raise ValueError(
            f"Shortcuts to a number are held against the right one, and {environment.name} does "
            "not say which one is right. Write its method `right`."
        )


def _right(environment: Environment, design: Design) -> NDArray[np.float64] | None:
    return environment.right(design.table) if isinstance(environment, Right) else None


def _looked(environment: Environment, design: Design) -> dict[str, float]:
    """Return sums of squares and products of what is looked at and what is right, within windows.

    Each is taken from its mean within the window of the session.
    """
    right = _right(environment, design)
    assert right is not None
    lived = Session(environment, design).environment
    shown = environment.fields.shown
    trials = np.flatnonzero(np.isfinite(right))
    seen = [
        {"trial": int(t), **{name: design.table[name][t].item() for name in shown}} for t in trials
    ]
    counted = [looks(lived, observation) for observation in seen]
    target = right[trials]
    group = np.asarray(design.table.get(_GROUP, np.zeros(len(right))))[trials]
    columns = {name: np.array([one[name] for one in counted]) for name in counted[0]}
    before = np.concatenate([[np.nan], target[:-1]])
    columns[LAST] = np.where(np.concatenate([[True], group[1:] != group[:-1]]), np.nan, before)
    found: dict[str, Any] = {}
    for name, column in columns.items():
        sums = np.zeros(3)
        for one in np.unique(group):
            own = (group == one) & np.isfinite(column)
            if own.sum() > 1:
                x, y = column[own] - column[own].mean(), target[own] - target[own].mean()
                sums += (x @ x, x @ y, y @ y)
        found |= {f"{name}|{what}": float(v) for what, v in zip(_SUMS, sums, strict=True)}
    return found


def _played(environment: Environment, design: Design, rng: np.random.Generator) -> dict[str, float]:
    """Return the mean score of every habit, and of picking at random."""
    rules: dict[str, Rule] = dict(habits(environment))
    rules[CHANCE] = lambda seen, last: int(rng.integers(environment.n_actions))
    return {f"{name}|score": _score(environment, design, rule) for name, rule in rules.items()}


def _score(environment: Environment, design: Design, rule: Rule) -> float:
    session = Session(environment, design)
    last, scores = None, []
    middle = sum(environment.response_range) / 2
    for seen in session:
        last = rule(seen, last)
        if not environment.feedback:
            chances = session.environment.truth(seen)
            if chances is None:
                p = np.asarray(_reference(environment).action_probabilities(seen))
                best = p >= p.max() - TIED
                scores.append(float(best[last]) / float(best.sum()))
            else:
                scores.append(float(chances[last]))
        session.take((last, middle) if environment.given == "both" else last)
    if not environment.feedback:
        return float(np.nanmean(scores))
    frame = pd.DataFrame(session.rows).assign(subject="0")
    trials = Trials.from_frame(frame, environment=environment)
    return float(np.nanmean(environment.performance(trials)))


def _reference(environment: Environment) -> Any:
    for model in AGENTS.values():
        if model.plays(environment) and len(model.parameters):
            theta = model.parameters.constrain(model.parameters.mean)
            mind = model.from_theta(theta, actions=environment.n_actions)
            mind.reset()
            return mind
    raise ValueError(
        f"Habits in {environment.name} are held against rewards, chances or a model; there are "
        "none. Write its method `truth`."
    )


def _summed(frame: pd.DataFrame, cell: Cell) -> list[dict[str, Any]]:
    """Return what each shortcut of an experiment reaches."""
    names = list(
        dict.fromkeys(column.partition("|")[0] for column in map(str, frame) if "|" in column)
    )
    stimuli = cell.settings.get("stimuli") or ""
    told = {"environment": cell.environment, "stimuli": stimuli}
    looking = f"{names[0]}|xx" in frame
    found = []
    for name in names:
        if looking:
            found.append({**told, **_of_look(frame, name)})
        elif name != CHANCE:
            found.append({**told, **_of_habit(frame, name)})
    level = LEVEL / len(found)
    for row in found:
        above = row["gain"] - (MARGIN if looking else 0.0)
        error = max(row["gain_error"], 1e-12)  # the same in every session
        reached = stats.t.sf(above / error, len(frame) - 1) < level
        row["verdict"] = FOUND if reached else NOTHING
    return found


def _of_look(frame: pd.DataFrame, name: str) -> dict[str, Any]:
    xx, xy, yy = (frame[f"{name}|{what}"].to_numpy(dtype=float) for what in _SUMS)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = float(xy.sum() / np.sqrt(xx.sum() * yy.sum())) if xx.sum() > 0 else 0.0
        slope = np.nan_to_num((xy.sum() - xy) / (xx.sum() - xx), posinf=0.0, neginf=0.0)
    saved = 2 * slope * xy - slope**2 * xx  # of the squared error, by a slope from other sessions
    gain = saved.sum() / yy.sum()
    error = float(np.std(saved - gain * yy, ddof=1) * np.sqrt(len(yy)) / yy.sum())
    return {
        "shortcut": name, "kind": "look", "r": r, "score": float(gain), "chance": 0.0,
        "gain": float(gain), "gain_error": error,
    }  # fmt: skip


def _of_habit(frame: pd.DataFrame, name: str) -> dict[str, Any]:
    score, chance = (frame[f"{one}|score"].to_numpy(dtype=float) for one in (name, CHANCE))
    difference = score - chance
    return {
        "shortcut": name, "kind": "habit", "r": np.nan, "score": float(score.mean()),
        "chance": float(chance.mean()), "gain": float(difference.mean()),
        "gain_error": float(difference.std(ddof=1) / np.sqrt(len(score))),
    }  # fmt: skip
