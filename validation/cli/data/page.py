"""`knownminds page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.options import Experiment, Json, Seed


@app.command()
def page(
    environment: Experiment,
    out: Annotated[Path, typer.Option(help="A folder; its index.html is opened.")],
    subjects: Annotated[int, typer.Option(help="How many sessions, one for each person.")] = 1,
    seed: Seed = 0,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    jspsych: Annotated[
        Path, typer.Option(help="The folder of jsPsych from npm (npm install jspsych@8).")
    ] = Path("node_modules/jspsych"),
    title: Annotated[str | None, typer.Option(help="Of the page; else the experiment.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long a question stands; else without a limit.")
    ] = None,
    post: Annotated[
        str | None, typer.Option(help="An address that answers are sent to as JSON, in the end.")
    ] = None,
    post_field: Annotated[list[str] | None, typer.Option(help="NAME=TEXT: sent with them.")] = None,
    as_json: Json = False,
) -> None:
    """Write a static page on which people live the same sessions; import reads their files."""
    from knownminds.validation.people.site import page as write
    from knownminds.validation.reading import read_settings, read_texts

    found = write(
        environment,
        out,
        subjects=subjects,
        seed=seed,
        settings=read_settings(values),
        jspsych=jspsych,
        title=title,
        seconds=seconds,
        post=post,
        post_fields=read_texts("--post-field", post_field),
    )
    if as_json:
        print_json(found.to_dict() | {"out": str(out)})
        return
    print(found)
    notes.print(
        f"written to {out}; open {out / 'index.html'}, then knownminds import FILE.json --out "
        "trials.csv",
        markup=False,
        soft_wrap=True,
    )
