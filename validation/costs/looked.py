"""`look`: prompts, pictures and a played session of an experiment, before anything is paid."""

from __future__ import annotations

import io
from collections.abc import Sequence

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
from .wordings import wordings_of

PICTURES = 6  # of a part
STRANGE = ("I cannot choose.", "42 or so, I think", "")  # texts that are tried besides a good one
NOTES = (
    "The first prompt of each part is the very one that `run` with this seed sends first; later "
    "ones may tell of earlier answers, here those of the agent. Of a conversation, only what is "
    "new is shown.",
)

look = verb(Look, __name__)


def compute(question: Look) -> Result:
    """Answer `look`."""
    places = _places(question)
    parts = [
        part
        for name, environment in places
        for part in _parts(name, environment, question.trials, question.seed)
    ]
    rows = [{"experiment": part.title, "trials shown": len(part.rows)} for part in parts]
    result = Result(
        f"{question.name}: what is shown, and how answers are read",
        tables={"Parts": pd.DataFrame(rows).set_index("experiment")},
        parts=parts,
        notes=NOTES,
        options=question.option_values(),
        command=question.command_line(),
    )
    result.save(question.out or f"look-{question.name}")
    return result


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


def _parts(name: str, environment: Environment, n: int, seed: int) -> list[Part]:
    """Return a part for each wording: a table of what is said, and the pictures."""
    parts = []
    for wording, worded in wordings_of(environment).items():
        agent = AGENTS[usual_model(worded)]
        if not agent.plays(worded):
            agent = next(one for one in AGENTS.values() if one.plays(worded))
        told = exchanges(worded, agent, n, seed)
        table = _table(told)
        title = f"{name}, {wording}" if len(wordings_of(environment)) > 1 else name
        images = [image for prompt, _ in told for image in prompt.images][:PICTURES]
        captions = f"{title}: the first pictures."
        parts.append(
            Part(
                f"{name}-{wording}".replace("/", "-"),
                title,
                f"Played by {agent.name} with parameters at the centre of its priors.",
                table,
                {
                    f"{title}: the first trials": table,
                    f"{title}: how texts are read": _readings(worded, told, seed),
                },
                {captions: Drawing(_pixels(images), draw_pictures)} if images else {},
            )
        )
    return parts


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
