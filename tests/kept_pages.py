"""Small finished folders of every kind of result that has a page, to look at their pages.

`python tests/kept_pages.py FOLDER [KIND ...]` makes them anew. What they hold is kept in
`tests/pages/kept`, one archive each; `pages_of_every_kind` draws their pages.
"""

import shlex
import shutil
import sys
import tarfile
from functools import partial
from pathlib import Path

KEPT = Path(__file__).with_name("pages") / "kept"
PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
DRAWN = {"report.html", "figures", "tables"}
HERE = f"{PLACE} --model {MODEL}"
LIVED = f"run {PLACE} --llm synthetic:{MODEL} --set alpha=0.4 --set beta=4 --sessions 3 --trials 24"

# What is typed for each kind; the others are functions below.
COMMANDS = {
    "run_all_fine": f"{LIVED} --seed 2",
    "run_with_gaps": f"{LIVED} --seed 2 --contaminate refusal=0.1 --contaminate malformed=0.1 "
    "--contaminate verbosity=0.2",
}


def typed(kind, out):
    """Type the command of a kind, with its results in a folder."""
    from knownminds.validation.cli import main

    out.parent.mkdir(parents=True, exist_ok=True)
    words = shlex.split(COMMANDS[kind])
    try:
        main([*words, "--out", str(out)])
    except SystemExit as end:
        if end.code:
            raise


KINDS = {kind: partial(typed, kind) for kind in COMMANDS}


def unpacked(kind, folder):
    """Return the kept folder of a kind, copied to where pages may be drawn."""
    with tarfile.open(KEPT / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Path(folder) / kind


def keep(folder):
    """Pack a folder as it is kept: without what is drawn from it, and always the same."""
    KEPT.mkdir(parents=True, exist_ok=True)

    def plain(entry):
        if set(Path(entry.name).parts) & DRAWN:
            return None
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(KEPT / f"{folder.name}.tar.xz", "w:xz") as archive:
        archive.add(folder, folder.name, filter=plain)


if __name__ == "__main__":
    place, *asked = sys.argv[1:]
    for kind in asked or KINDS:
        made = Path(place) / kind
        shutil.rmtree(made, ignore_errors=True)
        KINDS[kind](made)
        keep(made)
        print(kind, (KEPT / f"{kind}.tar.xz").stat().st_size, flush=True)
