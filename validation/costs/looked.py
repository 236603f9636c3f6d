"""`look`: prompts, pictures and a played session of an experiment, before anything is paid."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents import AGENTS
from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    Environment,
    Prompt,
    Session,
    make,
    session_stream,
    unknown,
)
from knownminds.environments.conditions import SHARED_DESIGN
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import PAPERS
from knownminds.validation.engine.parts import Drawing, Part
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.usual_models import usual_model
from knownminds.validation.pages import figures as draw

from .dry_runs import exchanges
from .questions import Look
from .transcripts import new_messages, shown_message
from .wordings import SHIPPED, wordings_of

PICTURES = 6  # of a part
UNFOLDED = 3  # parts that a page shows open
STRANGE = ("I cannot choose.", "42 or so, I think", "")  # texts that are tried besides a good one
NOTES = (
    "The first prompt of each part is the very one that `run` with this seed sends first; later "
    "ones may tell of earlier answers, here those of the agent. Of a conversation, only what is "
    "new is shown.",
)

look = verb(Look, __name__)


def compute(question: Look) -> Result:
    """Answer `look`."""
    shown = [
        (title, told, environment)
        for name, place in _places(question)
        for title, told, environment in (*_wordings(name, place), *_conditions(question, place))
    ]
    parts = [
        _part(*one, question.trials, question.seed, folded=number >= UNFOLDED)
        for number, one in enumerate(shown)
    ]
    rows = [{"experiment": part.title, "trials shown": len(part.rows)} for part in parts]
    return Result(
        f"{question.name}: what is shown, and how answers are read",
        tables={"Parts": pd.DataFrame(rows).set_index("experiment")},
        parts=parts,
        notes=NOTES,
        options=question.option_values(),
        command=question.command_line(),
    )


def _places(question: Look) -> list[tuple[str, Environment]]:
    """Return the experiment, or those of a paper in all of its variants."""
    if question.name in ENVIRONMENTS:
        return [(question.name, make(question.name, **(question.settings or {})))]
    if question.name not in PAPERS:
        known = [*ENVIRONMENTS, *PAPERS]
        raise ValueError(unknown("experiment or paper", question.name, known))
    if question.settings:
        raise ValueError("The experiments of a paper have its settings; leave --set out.")
    return [(cell.name, cell.environment) for cell in read_plan(question.name).cells]


def _wordings(name: str, place: Environment) -> Iterator[tuple[str, str, Environment]]:
    """Yield an experiment in all of its words: a title, which words, and the experiment."""
    wordings = wordings_of(place)
    for wording, worded in wordings.items():
        other = f"in the words {wording}" if len(wordings) > 1 and wording != SHIPPED else ""
        yield f"{name}, {wording}" if len(wordings) > 1 else name, other, worded


def _conditions(question: Look, place: Environment) -> Iterator[tuple[str, str, Environment]]:
    """Yield an experiment under each other condition alone; those of a paper stand in its plan."""
    if question.name in PAPERS:
        return
    for setting, declared in place.setting_table.items():
        called = declared.called or setting
        _, one_of, values = str(declared.rule).partition("one of ")
        if called not in SHARED_DESIGN or not one_of:
            continue
        for value in values.split(", "):
            if value != place.settings[called]:
                try:
                    changed = make(place.name, **{**place.settings, called: value})
                except ValueError:  # it does not go with the other settings
                    continue
                yield f"{place.name}, {called} {value}", f"with {called}={value}", changed


def _part(title: str, other: str, place: Environment, n: int, seed: int, *, folded: bool) -> Part:
    """Return what is said in an experiment, how it is read, and pictures of those words that ship.

    Parameters
    ----------
    other : What is another than in the experiment as it is.
    """
    agent = AGENTS[usual_model(place)]
    if not agent.plays(place):
        agent = next(one for one in AGENTS.values() if one.plays(place))
    told = exchanges(place, agent, n, seed)
    table = _table(told)
    images = [image for prompt, _ in told for image in prompt.images][:PICTURES]
    if other.startswith("in the words"):  # which show the pictures of those that ship
        images = []
    about = f"Played by {agent.name} with parameters at the centre of its priors"
    return Part(
        re.sub(r"[^\w.=-]+", "-", title),
        title,
        f"{about}, {other}." if other else f"{about}.",
        table,
        {
            f"{title}: the first trials": table,
            f"{title}: how texts are read": _readings(place, told, seed),
        },
        {f"{title}: the first pictures.": Drawing(_pixels(images), draw_pictures)}
        if images
        else {},
        folded=folded,
    )


def _table(told: Sequence[tuple[Prompt, Answer]]) -> pd.DataFrame:
    """Return a row for each trial: what is new in its prompt, the answer, and how it is read."""
    rows, before = [], None
    for number, (prompt, answer) in enumerate(told, start=1):
        shown = "\n".join(map(shown_message, new_messages(prompt, before)))
        rows.append({"trial": number, "shown": shown, "answer": answer.text, "read": _read(answer)})
        before = prompt
    return pd.DataFrame(rows)


def _read(answer: Answer) -> str:
    parts = [str(answer.outcome)]
    parts += [answer.note] if answer.note else []
    parts += [] if answer.action is None else [f"action {answer.action}"]
    parts += [] if answer.response is None else [f"response {answer.response:g}"]
    return ", ".join(parts)


def _readings(
    environment: Environment, told: Sequence[tuple[Prompt, Answer]], seed: int
) -> pd.DataFrame:
    """Return how the parser reads a good answer to the first trial, and others."""
    session = Session(environment, environment.draw(session_stream(seed, *RUN, 0)))
    session.render()
    good = told[0][1].text
    texts = [good, f"My answer is {good}.", f"**{good}**", *STRANGE]
    read = [_read(session.parse(text)) for text in texts]
    return pd.DataFrame({"text": texts, "read": read})


def _pixels(images: Sequence[bytes]) -> pd.DataFrame:
    """Return the pictures as PNG, in hexadecimal digits."""
    return pd.DataFrame({"png": [image.hex() for image in images]})


def draw_pictures(pictures: pd.DataFrame) -> Figure:
    """Draw the stimuli side by side, as a model sees them."""
    figure, axes = draw.panels(len(pictures))
    for axis, digits in zip(axes, pictures["png"], strict=True):
        image = np.asarray(mpl.image.imread(io.BytesIO(bytes.fromhex(digits)), format="png"))
        axis.imshow(image, cmap="gray")
        axis.set_axis_off()
    return figure
