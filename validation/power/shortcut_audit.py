"""What an experiment's shortcuts reach: how well somebody does who does another task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from knownminds.agents import AGENTS
from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Observation,
    Session,
    Trials,
    make,
    session_stream,
    unknown,
)
from knownminds.environments.design import Design
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score, mean
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.pages.views import Dots
from knownminds.validation.referee.truth import leaks_of

if TYPE_CHECKING:
    from .questions import Audit

Rule = Callable[[Observation, int | None], int]  # of what is seen and the last action

TRIAL, WORDS, CHARACTERS = "trial", "words of the question", "characters of the question"
LAST = "right answer of the trial before"
CHANCE, RANDOM = "at random", "random_responder"
MARGIN = 0.01  # of the squared error, that looks take away at a correlation of .1
LEVEL = 0.05  # of all shortcuts of an experiment together
TIED = 1e-9  # actions whose probabilities differ by less are equally good
FOUND, NOTHING = "tells", "nothing"
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
OPTIONS = ("environment",)  # of `audit` that this one takes besides settings, replicates and seed
MOST_DRAWN = 24  # of the figure
FEW = 2  # experiments that are named in the title
LOOKS = "Numbers: what is looked at instead of the question"
HABITS = "Actions: rules that look at nothing"
PROMPTS = "Prompts: what they tell that nobody is to know"
NOTES = (
    "Standard errors over sessions in parentheses. Looks: r, correlation with the right answer; "
    "gain, 1 - squared error of the line through what is looked at, by a slope from the other "
    "sessions, over that of the mean of a window; NRMSE, the root of 1 minus it. Habits: mean "
    "score of a trial, see `score_of`, and its gain over that of picking at random.",
    f"A shortcut tells something if its gain is above 0 (of looks {MARGIN:g}, a correlation of .1) "
    f"at {LEVEL:g} for all of an experiment together: one-sided t tests over sessions with "
    "Bonferroni's correction.",
    "A prompt leaks if its words tell a reward to come, a hidden field or the right answer; such "
    "prompts have a table, and experiments without one have none.",
)


def study(question: Audit) -> Study:
    """Ask what a participant reaches by each shortcut of an experiment alone.

    A trial needs a number: the right answer is regressed on one thing that can be counted (the
    trial's number, the length of the question, the right answer of the trial before, and what the
    experiment names), within windows if there are any; the slope comes from the other sessions.
    A trial needs an action: rules that do not look at what is shown play the sessions, and so does
    somebody who picks at random. Where nothing is right or wrong, the score is how probable the
    outcome was that was picked, or else how often the rule agrees with the first of the
    experiment's models, at the means of its priors, in what that model finds most probable.

    Parameters
    ----------
    question : Its environment, or several as the setting `environment`; all of them, and decoupled
        stimuli beside the published ones, if none. The other settings are those of the experiments;
        its replicates are sessions of each.

    Raises
    ------
    ValueError : If an experiment is unknown, a setting does not fit, or there are less than 3
        sessions.
    """
    if question.replicates < 3:
        raise ValueError(
            f"Errors over sessions need at least 3 of them; got {question.replicates}."
        )
    given = dict(question.settings or {})
    several = given.pop("environment", [])
    one = question.environment
    names = [one if isinstance(one, str) else one.name] if one else np.atleast_1d(several).tolist()
    names = names or list(ENVIRONMENTS)
    cells = []
    for name in names:
        if name not in ENVIRONMENTS:
            raise ValueError(unknown("environment", name, ENVIRONMENTS))
        both = "stimuli" in ENVIRONMENTS[name].setting_table and "stimuli" not in given
        for stimuli in ({"stimuli": s} for s in ("published", "decoupled")) if both else ({},):
            settings = {**SIZES.get(name, {}), **given, **stimuli}
            _check_audited(make(name, **settings))
            population = Population(number=list(ENVIRONMENTS).index(name))
            cells.append(Cell(name, settings, RANDOM, population=population, batch=10))
    options = question.option_values() | {"environment": one and names[0]}
    return Study("audit", tuple(cells), question.replicates, question.seed, "replicate", options)


def work(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let every shortcut be taken in each session: one row each."""
    cell = study.cells[batch.cell]
    environment = cell.make()
    rows = []
    for session in range(batch.first, batch.last):
        address = (cell.population.number, session)
        design = environment.draw(session_stream(study.seed, *address))
        row: dict[str, Any] = {"status": "ok", "message": ""}
        if _right(environment, design) is not None:
            row |= _looked(environment, design)
        else:
            row |= _played(environment, design, session_stream(study.seed, *address, _RANDOM))
        if session == 0:
            row["leaks"] = "; ".join(leaks_of(environment, study.seed))
        rows.append(row)
    return pd.DataFrame(rows)


def say(rows: Rows) -> Result:
    """Say what each shortcut of each experiment reaches."""
    scored: dict[str, list[dict[str, Any]]] = {LOOKS: [], HABITS: [], PROMPTS: []}
    for number, cell in enumerate(rows.study.cells):
        frame = rows.of(number).dropna(axis="columns", how="all")
        frame = frame[frame["status"] == "ok"]
        if len(frame) < 3:
            continue
        looking = any(str(column).endswith("|xx") for column in frame)
        scored[LOOKS if looking else HABITS] += _shortcuts_of(frame, cell, looking)
        if told := ", ".join(frame["leaks"].dropna()):
            about = {"experiment": cell.environment, "stimuli": cell.settings.get("stimuli") or ""}
            scored[PROMPTS].append({**about, "shortcut": told, "verdict": "leaks"})
    names = ["experiment", "stimuli", "shortcut"]
    tables = {title: pd.DataFrame(scores) for title, scores in scored.items() if scores}
    dots = Dots(
        "Gain of the looks that reach most, with 2 standard errors.",
        "share of squared error taken away", series="verdict", along="name", null=0.0,
    )  # fmt: skip
    of = dict.fromkeys(row["score_of"] for row in scored[HABITS])
    told = f" (score: {', '.join(of)})" if len(of) == 1 and not scored[LOOKS] else ""
    places = dict.fromkeys(cell.environment for cell in rows.study.cells)
    return rows.result(
        f"What does each shortcut of {' and '.join(places)} reach?{told}"
        if len(places) <= FEW
        else "What does each shortcut reach?",
        of="sessions",
        tables={title: table.set_index(names) for title, table in tables.items()},
        shows=("gain", "verdict", "score", "at_random", "score_of", "r", "NRMSE"),
        figures=dots.drawings(_most(scored[LOOKS])) if scored[LOOKS] else {},
        notes=NOTES,
    )


def _most(looks: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the looks that reach most, as they are drawn."""
    rows = [
        {
            "name": f"{', '.join(filter(None, (look['experiment'], look['stimuli'])))}: "
            f"{look['shortcut']}",
            "verdict": look["verdict"],
            "value": look["gain"].value,
            "low": look["gain"].value - 2 * look["gain"].error,
            "high": look["gain"].value + 2 * look["gain"].error,
        }
        for look in looks
    ]
    return pd.DataFrame(rows).nlargest(MOST_DRAWN, "value")


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
    return environment.right(design.table)


def _looked(environment: Environment, design: Design) -> dict[str, float]:
    """Return sums of squares and products of what is looked at and what is right, within windows.

    Each is taken from its mean within the window of the session.
    """
    right = _right(environment, design)
    assert right is not None
    shown = environment.fields.shown
    trials = np.flatnonzero(np.isfinite(right))
    counted = [
        _looks(environment, design.labels, {"trial": t, **design.at(t, shown)})
        for t in trials.tolist()
    ]
    target = right[trials]
    group = np.asarray(design.table.get(_GROUP, np.zeros(len(right))))[trials]
    columns = {name: np.array([one[name] for one in counted]) for name in counted[0]}
    before = np.concatenate([[np.nan], target[:-1]])
    columns[LAST] = np.where(np.concatenate([[True], group[1:] != group[:-1]]), np.nan, before)
    row_of: dict[str, Any] = {}
    for name, column in columns.items():
        sums = np.zeros(3)
        for one in np.unique(group):
            group_rows = (group == one) & np.isfinite(column)
            if group_rows.sum() > 1:
                x, y = (
                    column[group_rows] - column[group_rows].mean(),
                    target[group_rows] - target[group_rows].mean(),
                )
                sums += (x @ x, x @ y, y @ y)
        row_of |= {f"{name}|{what}": float(v) for what, v in zip(_SUMS, sums, strict=True)}
    return row_of


def _played(environment: Environment, design: Design, rng: np.random.Generator) -> dict[str, float]:
    """Return the mean score of every habit, and of picking at random."""
    rules: dict[str, Rule] = dict(_habits(environment))
    rules[CHANCE] = lambda seen, last: int(rng.integers(environment.n_actions))
    return {f"{name}|score": _score(environment, design, rule) for name, rule in rules.items()}


def _score(environment: Environment, design: Design, rule: Rule) -> float:
    session = Session(environment, design)
    last, scores = None, []
    middle = sum(environment.response_range) / 2
    for seen in session:
        last = rule(seen, last)
        if not environment.feedback:
            chances = environment.truth(seen)
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


def _scored_by(environment: Environment) -> str:
    """Say what the score of a habit is."""
    if environment.feedback:
        return "performance of a trial"
    seen = next(iter(Session(environment, environment.draw(session_stream(0)))))
    if environment.truth(seen) is not None:
        return "how probable the picked outcome is"
    return f"agreement with {_reference(environment).name}"


def _reference(environment: Environment) -> Any:
    for model in AGENTS.values():
        if model.plays(environment) and len(model.parameters):
            theta = model.parameters.constrain(model.parameters.mean)
            agent = model.from_theta(theta, actions=environment.n_actions)
            agent.reset()
            return agent
    raise ValueError(
        f"Habits in {environment.name} are held against rewards, chances or a model; there are "
        "none. Write its method `truth`."
    )


def _shortcuts_of(rows: pd.DataFrame, cell: Cell, looking: bool) -> list[dict[str, Any]]:
    """Return what each shortcut of an experiment reaches."""
    columns = [str(column) for column in rows if "|" in str(column)]
    shortcuts = dict.fromkeys(column.partition("|")[0] for column in columns)
    about = {"experiment": cell.environment, "stimuli": cell.settings.get("stimuli") or ""}
    of = {} if looking else {"score_of": _scored_by(cell.make())}
    names = [
        {**about, "shortcut": name, **(_look if looking else _habit)(rows, name), **of}
        for name in shortcuts
        if name != CHANCE
    ]
    level = LEVEL / len(names)
    for row in names:
        above = row["gain"].value - (MARGIN if looking else 0.0)
        error = max(row["gain"].error, 1e-12)  # the same in every session
        reached = stats.t.sf(above / error, len(rows) - 1) < level
        row["verdict"] = FOUND if reached else NOTHING
    return names


def _look(rows: pd.DataFrame, name: str) -> dict[str, Any]:
    xx, xy, yy = (rows[f"{name}|{what}"].to_numpy(dtype=float) for what in _SUMS)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = float(xy.sum() / np.sqrt(xx.sum() * yy.sum())) if xx.sum() > 0 else 0.0
        slope = np.nan_to_num((xy.sum() - xy) / (xx.sum() - xx), posinf=0.0, neginf=0.0)
    saved = 2 * slope * xy - slope**2 * xx  # of the squared error, by a slope from other sessions
    gain = float(saved.sum() / yy.sum())
    error = float(np.std(saved - gain * yy, ddof=1) * np.sqrt(len(yy)) / yy.sum())
    return {"r": r, "gain": Score(gain, error), "NRMSE": float(np.sqrt(max(1 - gain, 0)))}


def _habit(rows: pd.DataFrame, name: str) -> dict[str, Any]:
    score, chance = (rows[f"{one}|score"].to_numpy(dtype=float) for one in (name, CHANCE))
    means = {"score": float(score.mean()), "at random": float(chance.mean())}
    return {**means, "gain": mean(score - chance)}


@runtime_checkable
class _Named(Protocol):
    """An experiment that names what can be counted instead of the question."""

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return it for one trial, by name."""


def _looks(environment: Environment, labels: Any, observation: Observation) -> dict[str, float]:
    """Return what can be looked at on a trial: its number, length of the question, others."""
    numbers = {TRIAL: float(observation["trial"])}
    if environment.has_words():
        text = environment.render(labels, observation, ()).text
        numbers |= {WORDS: float(len(text.split())), CHARACTERS: float(len(text))}
    further = environment.shortcuts(observation) if isinstance(environment, _Named) else {}
    return numbers | {name: float(v) for name, v in further.items()}


def _habits(environment: Environment) -> Mapping[str, Rule]:
    """Return rules by which actions can be chosen without a look at what is given.

    Always the same action; another one each time; with two options of which one is named first
    (a column "first"), always that one or always the other.
    """
    n = environment.n_actions
    rules: dict[str, Rule] = {f"always action {k}": _always(k) for k in range(n)}
    rules["the action after the last one"] = lambda seen, last: (
        0 if last is None else (last + 1) % n
    )
    if n == 2 and "first" in environment.fields.shown:
        rules["named first"] = lambda seen, last: int(seen["first"])
        rules["named second"] = lambda seen, last: 1 - int(seen["first"])
    return rules


def _always(action: int) -> Rule:
    return lambda seen, last: action
