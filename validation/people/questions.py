"""Questions of `page`: arguments and options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knownminds.validation.engine.question import Question, asked_by, option

if TYPE_CHECKING:
    from knownminds.environments import Environment

    from .written_site import Site  # noqa: F401 - named in a string


@asked_by("page", "people.site", screened=False)
class Page(Question["Site"]):
    """Write a static page on which people take the sessions that agents and models take.

    `knownminds import` reads the files of people's answers.

    Parameters
    ----------
    out : A folder; its index.html is opened, with ?subject=3 where the number is known.
    subjects : How many sessions, one for each person. Subject k has the design at address k of the
        seed, `session_stream(seed, k)`.
    jspsych : The folder of jsPsych from npm (npm install jspsych@8), whose script becomes part of
        the page.
    title : Of the page; else the experiment.
    seconds : How long a question stands; else without a limit. One that nobody answered is missing.
    post : An address that answers are sent to as JSON, in the end, with "filename" and "data".
    post_fields : NAME=TEXT: sent with them.
    """

    environment: Environment | str = option(argument=True, kw_only=False)
    out: str | Path = option("--out", kw_only=False)
    subjects: int = 1
    seed: int = 0
    settings: Mapping[str, Any] | None = None
    jspsych: str | Path = Path("node_modules") / "jspsych"
    title: str | None = None
    seconds: float | None = None
    post: str | None = None
    post_fields: Mapping[str, str] | None = option("--post-field", default=None)
