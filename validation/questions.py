"""Questions about what there is: `list`, `show`, `doctor` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knownminds.validation.engine.question import Question, asked_by, option


@asked_by("list", "listed", screened=False)
class ListAll(Question[Any]):
    """List experiments by paper, or the models and measures of one, or all models, or measures.

    Parameters
    ----------
    environment : List the models that play this experiment, and its measures.
    models : List all models.
    measures : List all measures.
    """

    environment: str | None = option(default=None, of=("environment",))
    models: bool = False
    measures: bool = False


@asked_by("show", "shown", screened=False)
class Show(Question[Any]):
    """Show an experiment's settings and first prompt, a model's parameters, or a measure's audit.

    Parameters
    ----------
    name : An experiment, a model or a measure.
    kernel : Print the compiled functions of a model as source.
    check : Hold a model or an experiment against its contract; exit code 2 if it is broken.
    schema : Print the columns of the trial record, of an experiment with its stimuli and ranges;
        with --json as JSON Schema.
    """

    name: str | None = option(
        argument=True, default=None, of=("environment", "model", "measure"), kw_only=False
    )
    kernel: bool = False
    check: bool = False
    schema: bool = False


@asked_by("doctor", "doctor", screened=False)
class Doctor(Question[Any]):
    """Say what is installed, and which language models can be reached."""


@asked_by("report", "report", screened=False)
class Report(Question[Path]):
    """Draw the report of a folder again, without computing anything anew.

    Of a study that is not finished, the page shows what there is, and counts what is missing. A fit
    or a score was written whole, and keeps its page.

    Parameters
    ----------
    folder : The folder of a study, a fit, a score or a run.
    """

    folder: str | Path = option(argument=True, kw_only=False)
