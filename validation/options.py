"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.completion import completes, named, named_or_usual

UNNAMED: Any = None  # of a model: the experiment's usual one
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    str,
    typer.Option(
        help="A model; the experiment's usual one if none. `knownminds list` shows all.",
        autocompletion=completes("models"),
        callback=named_or_usual,
    ),
]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Subjects = Annotated[int, typer.Option(help="How many subjects.", max=10_000_000)]
Sessions = Annotated[int, typer.Option(help="Sessions per subject.", max=1_000_000)]
NTrials = Annotated[int | None, typer.Option("--trials", help="Trials per session.")]
DesignName = Annotated[
    str | None,
    typer.Option("--design", help="Of an experiment with several designs: which (--set design=)."),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE: a true parameter or a setting of the experiment."),
]
Fixed = Annotated[
    list[str] | None, typer.Option("--fix", help="NAME=VALUE: held in the fit, not estimated.")
]
Lapse = Annotated[float, typer.Option(help="Lapse rate of the simulated subjects.")]
Workers = Annotated[int | None, typer.Option(help="Processes (of studies), threads (of fit).")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results and the report.")]
Contaminate = Annotated[
    list[str] | None,
    typer.Option(help="NAME=RATE of a known mind: refusal, malformed, truncation, verbosity."),
]
Experiment = Annotated[
    str,
    typer.Argument(
        help="The experiment.",
        autocompletion=completes("environments"),
        callback=named("environment"),
    ),
]
Questions = Annotated[
    int | None,
    typer.Option(help="How many questions of a session are asked; all if not given."),
]
Adaptive = Annotated[
    str | None,
    typer.Option(
        help="MODEL: ask next what tells most about its parameters, up to --questions.",
        autocompletion=completes("models"),
    ),
]
