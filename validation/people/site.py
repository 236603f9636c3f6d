"""An experiment for people: a static page that runs its sessions, with jsPsych, from a folder."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from knownminds.environments import ENVIRONMENTS, make
from knownminds.environments.record.folders import check_writable, writable, write_text
from knownminds.validation.engine.arguments import one_of, set_to
from knownminds.validation.engine.question import verb

from .questions import Page
from .sessions import script_of, session_data
from .written_site import Site

HERE = Path(__file__).parent
SCRIPT = Path("dist") / "index.browser.min.js"
MOST_SUBJECTS = 1_000
_TRIED = 8  # the major version that pages are tested with


page = verb(Page, __name__)


def compute(question: Page) -> Site:
    """Answer `page`."""
    environment = question.environment
    if isinstance(environment, str):
        one_of("environment", environment, ENVIRONMENTS)
        environment = make(environment)
    environment = set_to(environment, question.settings)
    subjects, seconds, post = question.subjects, question.seconds, question.post
    if not 1 <= subjects <= MOST_SUBJECTS:
        raise ValueError(f"A page has 1 to {MOST_SUBJECTS:,} subjects; got {subjects}.")
    if seconds is not None and not 0.0 < seconds <= 86_400.0:
        raise ValueError(f"A question stands for more than 0 seconds; got {seconds:g}.")
    if post is not None and urlsplit(post).scheme not in ("http", "https"):
        raise ValueError(f"Files are sent to an address with http or https; got {post!r}.")
    folder = Path(question.out)
    check_writable(folder)
    library, version = read_jspsych(question.jspsych)
    script = script_of(environment)
    more = {
        "seconds": seconds,
        "post": None if post is None else {"url": post, "fields": dict(question.post_fields or {})},
    }
    name = question.title or environment.name.replace("_", " ").capitalize()
    files = {"index.html": _page(name), "jspsych.js": library}
    files["page.js"] = "\n".join(
        [
            f"const PLAY = {script.text};",
            f"const SUBJECTS = {subjects};",
            *((HERE / part).read_text(encoding="utf-8") for part in ("session.js", "app.js")),
        ]
    ).replace('"use strict";\n', "")
    files["page.js"] = '"use strict";\n' + files["page.js"]
    for subject in range(1, subjects + 1):
        data = session_data(environment, question.seed, subject, script) | more
        files[f"sessions/{subject}.js"] = f"knownmindsSession({_in_script(data)});\n"
    size = sum(len(text.encode("utf-8")) for text in files.values())
    site = Site(
        environment.name,
        environment.settings,
        question.seed,
        subjects,
        environment.n_trials,
        version,
        size,
        str(question.out),
    )
    with writable(folder / "sessions"):
        for file, text in files.items():
            write_text(folder / file, text)
        about = {name: value for name, value in site.to_dict().items() if name != "out"}
        write_text(folder / "page.json", json.dumps(about))
    return site


def read_jspsych(folder: str | Path) -> tuple[str, str]:
    """Return the script of jsPsych and its version.

    Raises
    ------
    ValueError : If it is not there, or too old.
    """
    path = Path(folder)
    try:
        about = json.loads((path / "package.json").read_text(encoding="utf-8"))
        name, version, licence = (str(about[key]) for key in ("name", "version", "license"))
        text = (path / SCRIPT).read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"A page runs with jsPsych from npm; there is none in {path}. Type npm install "
            f"jspsych@{_TRIED} here, or name its folder with --jspsych."
        ) from None
    if name != "jspsych" or int(version.partition(".")[0] or 0) < _TRIED:
        raise ValueError(
            f"A page runs with jsPsych {_TRIED} or later; {path} has {name} {version}. Type npm "
            f"install jspsych@{_TRIED}."
        )
    text = re.sub(r"\n//# sourceMappingURL=.*", "", text)  # which browsers would fetch
    note = f"/* {name} {version}, {licence} licence, https://www.jspsych.org */"
    return f"{note}\n{text}", version


def _page(title: str) -> str:
    text = (HERE / "page.html").read_text(encoding="utf-8")
    return text.replace("{title}", escape(title))


def _in_script(data: Any) -> str:
    """Write JSON so that it is one within a script, whatever its texts hold."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")
