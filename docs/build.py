"""Build the documentation: `python docs/build.py [FOLDER]` (`site` by default).

Zensical reads the settings of `mkdocs.yml` and runs no code of ours. The generated parts of the
pages (`docs/reference.py`) are therefore filled in first, in a separate folder beside the package.
The site needs no server and no network: pages, pictures and the search open from the folder. Any
warning ends the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from reference import ROOT, filled

DOCS = ROOT / "docs"
KEPT = (".png", ".svg", ".css", ".js")
# What the theme asks a content delivery network for where a browser opens pages from a folder.
FETCHED = "https://unpkg.com/iframe-worker/shim"
REMOTE = re.compile(
    r'<(?:script|img|iframe)[^>]* src="https?:[^"]*"|<link[^>]*stylesheet[^>]*https?:'
)

BARE = re.compile(r'doc-md-description">\s*</div>')  # an entry whose text was taken for its type


def lay_out(folder: Path) -> None:
    """Write the filled pages, what they show, the package and the settings into a folder."""
    for file in DOCS.rglob("*"):
        copy = folder / "docs" / file.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            copy.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
        elif file.suffix in KEPT:
            shutil.copy(file, copy)
    (folder / "package").mkdir()
    for package in (ROOT / "knownminds", ROOT / "more" / "knownminds_more"):
        (folder / "package" / package.name).symlink_to(package, target_is_directory=True)
    for file in (ROOT / "mkdocs.yml", DOCS / "entries.py"):
        shutil.copy(file, folder)


def stand_alone(site: Path) -> None:
    """Let pages take our stand-in for what they would fetch; refuse any that still fetch."""
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text(encoding="utf-8").replace(FETCHED, f"{up}offline.js")
        address = REMOTE.search(text)
        if address:
            raise SystemExit(f"{page.name} would fetch from the network: {address[0]}")
        if BARE.search(text):
            raise SystemExit(f"{page.name} has an entry without a text.")
        page.write_text(text, encoding="utf-8")


def main() -> None:
    """Build into the folder that was named."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    with tempfile.TemporaryDirectory(prefix="knownminds-docs-") as temporary:
        folder = Path(temporary)
        lay_out(folder)
        words = [sys.executable, "-m", "zensical", "build", "--strict"]
        plain = {**os.environ, "NO_COLOR": "1"}
        if subprocess.run(words, cwd=folder, env=plain).returncode:
            raise SystemExit("The documentation has warnings, see above.")
        stand_alone(folder / "site")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "site", out)
    print(f"{out}/index.html")


if __name__ == "__main__":
    main()
