"""`knownminds simulate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.cli.study import command
from knownminds.validation.engine.question import (
    Question,
    argument,
    frozen_question,
    named,
    positional,
)
from knownminds.validation.reading import resolve_experiment

if TYPE_CHECKING:
    from knownminds.agents import Agent


def _truth_of(frame: Any, model: type[Agent]) -> list[dict[str, Any]]:
    names = [f"true_{name}" for name in model.parameters.names]
    first = frame.drop_duplicates("subject")[["subject", *names]]
    rows: list[dict[str, Any]] = first.rename(columns=lambda c: c.removeprefix("true_")).to_dict(
        "records"
    )
    return rows


@frozen_question
class AskSimulate(Question[Any]):
    """Let subjects with known parameters play; their true values stand beside the choices.

    Parameters
    ----------
    environment
        The experiment.
    model
        A model; the experiment's usual one if none. `knownminds list` shows all.
    subjects
        How many subjects.
    sessions
        Sessions per subject.
    trials
        Trials per session.
    design
        Of an experiment with several designs: which (--set design=).
    seed
        Everything random follows from it.
    values
        NAME=VALUE: a true parameter or a setting of the experiment.
    lapse
        Lapse rate of the simulated subjects.
    questions
        How many questions of a session are asked; all if not given.
    adaptive
        MODEL: ask next what tells most about its parameters, up to --questions.
    out
        A .csv or .parquet file.
    """

    command: ClassVar[str] = "simulate"

    environment: str = argument(kw_only=False)
    model: str = positional(kw_only=False)
    subjects: int = 20
    sessions: int = 1
    trials: int | None = None
    design: str | None = None
    seed: int = 0
    values: Sequence[str] | None = named("--set", default=None)
    lapse: float = 0.0
    questions: int | None = None
    adaptive: str | None = None
    out: Path | None = None


def _simulate(given: dict[str, Any]) -> None:
    asked, as_json = AskSimulate(**AskSimulate.read(given)), given["as_json"]
    out, questions = asked.out, asked.questions
    from knownminds.environments.record.folders import check_writable, writable
    from knownminds.environments.record.result import plain
    from knownminds.validation.engine.arguments import resolve_chosen, resolve_model
    from knownminds.validation.engine.simulated_data import simulated_data

    agent = resolve_model(asked.model)
    place, truth = resolve_experiment(
        asked.environment, agent, asked.trials, asked.values, asked.design
    )
    if out is not None:
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"Trials are kept as .parquet or .csv; got {out.name!r}.")
        check_writable(out)
    chosen = resolve_chosen(place, questions, asked.adaptive)
    lived = simulated_data(
        agent,
        place,
        subjects=asked.subjects,
        sessions=asked.sessions,
        seed=asked.seed,
        truth=truth,
        lapse=asked.lapse,
        chosen=chosen,
    )
    if out is not None:
        with writable(out.parent):
            lived.save(out)
        notes.print(f"{lived}, written to {out}", markup=False)
    if as_json:
        told = {"environment": place.name, "model": agent.name, "seed": asked.seed}
        told |= {
            "subjects": asked.subjects,
            "sessions": asked.sessions,
            "trials_per_session": questions or place.n_trials,
        }
        told["truth"] = _truth_of(lived.frame, agent)
        if out is None:
            told["trials"] = json.loads(lived.to_json())
        else:
            told["out"] = str(out)
        print_json(plain(told))
    elif out is None:
        from knownminds.environments.record.csv_cells import csv_text

        sys.stdout.write(csv_text(lived.frame))


command(AskSimulate, {}, _simulate)
