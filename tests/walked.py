"""Walk the documentation as a reader does: `python tests/walked.py BIN [PAGE ...]`.

BIN holds `knownminds` and `python` of an environment in which the package is installed. Each page
begins in an empty folder outside the checkout; its files are written, each command is a
separate process, and its Python blocks are typed into one session, which no command sees. What a
block shows as output has to have been printed. Without PAGE
(`docs/tutorial.md`, ...), all pages are walked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)[ ]*(?:title=\"([^\"]*)\")?[ ]*\n(.*?)^```", re.M | re.S)
# Titles of blocks that are not run, and of those that show what was printed.
NOT_RUN = (
    "installs",
    "needs a key",
    "needs the public files",
    "needs a cluster",
    "takes minutes",
    "until Ctrl-C",
    "in another terminal",
    "tests",
    "in the repository",
)
OUTPUT = "output"
LONGEST = 1200  # seconds of a block
SESSION = """
import sys, traceback
for line in sys.stdin:
    with open(line.strip(), encoding="utf-8") as file:
        block = file.read()
    try:
        exec(compile(block, "page", "exec"), globals())
        print(chr(0) + "done", flush=True)
    except BaseException:
        print(traceback.format_exc() + chr(0) + "failed", flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line on which it begins."""

    language: str
    title: str
    text: str
    line: int

    @property
    def is_file(self) -> bool:
        """Whether the title is the name of a file with this text."""
        return bool(re.fullmatch(r"\w+\.\w+", self.title))


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2] or "", match[3], text[: match.start()].count("\n") + 2)
        for match in BLOCK.finditer(text)
    ]


class Reader:
    """Someone with an empty folder, a shell and a Python session."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        (folder / "home").mkdir()
        kept = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
        path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        self.world = {**kept, "PATH": path, "HOME": str(folder / "home"), "MPLBACKEND": "agg"}
        self._typed = folder / "typed.py"
        self._python = binaries / "python"
        self._session: subprocess.Popen[str] | None = None

    def shell(self, text: str) -> tuple[bool, str]:
        """Type lines into a shell that stops at the first that fails."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder, env=self.world, capture_output=True, text=True, timeout=LONGEST,
        )  # fmt: skip
        return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")

    def python(self, text: str) -> tuple[bool, str]:
        """Type a block into the session."""
        if self._session is None:
            self._session = subprocess.Popen(
                [self._python, "-c", SESSION], cwd=self.folder, env=self.world, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        self._typed.write_text(text, encoding="utf-8")
        print(self._typed, file=self._session.stdin, flush=True)
        printed = ""
        for line in self._session.stdout:
            text, mark, word = line.partition("\0")
            printed += text
            if mark:
                return word.strip() == "done", printed
        return False, printed + "the session ended"

    def leave(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.communicate()


def walk(page: Path, binaries: Path) -> list[str]:
    """Follow a page; return what failed, up to the first block that did."""
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(binaries, Path(folder))
        try:
            for block in blocks_of(page):
                position = f"{page.relative_to(ROOT)}, line {block.line}"
                went = True
                if block.is_file:
                    (reader.folder / block.title).write_text(block.text, encoding="utf-8")
                elif block.title == OUTPUT:
                    if " ".join(block.text.split()) not in " ".join(printed.split()):
                        return [f"{position} shows what was not printed. Printed:\n{printed}"]
                elif block.title not in NOT_RUN and block.language in ("bash", "python"):
                    do = reader.shell if block.language == "bash" else reader.python
                    went, printed = do(block.text)
                if not went:
                    return [f"{position}:\n{printed}"]
        finally:
            reader.leave()
    return []


def main(binaries: Path, pages: list[Path]) -> int:
    """Walk pages; print each with its seconds, then what failed."""
    failed = []
    for page in pages:
        begun = time.monotonic()
        wrong = walk(page, binaries)
        word = "FAILED" if wrong else "walked"
        print(f"{word} {page.relative_to(ROOT)} {time.monotonic() - begun:.0f} s", flush=True)
        failed += wrong
    print(f"{len(pages)} pages, {len(failed)} failed", *failed, sep="\n\n")
    return 1 if failed else 0


if __name__ == "__main__":
    named = [Path(word).resolve() for word in sys.argv[2:]]
    sys.exit(main(Path(sys.argv[1]).absolute(), named or PAGES))
