"""Draw the pictures of the documentation: reports, as a browser shows them.

Run in a checkout with knownminds installed and Chromium at hand: `python docs/screenshots.py`.
The pictures have small palettes, so that they stay small.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from chromium import PROGRAM, Chromium  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 400_000
RECOVER = (
    "recover instrumental_learning --model rescorla_wagner_dual --subjects 200 --seed 11 --out"
)
# name, page within the folder, width and height of the window in px
SHOTS = (
    ("report", "first/report.html", 1100, 1500),
    ("report_on_a_phone", "first/report.html", 390, 1300),
)

# name, page of `docs/start` whose blocks make the folder, figure or page in that folder
WALKS = (
    ("fit_of_a_wrong_model", "hbayesdm", "fits/first/figures/2-predictive-checks.png"),
    ("page_of_a_benchmark", "inspect", "page/report.html"),
    ("page_of_colliders", "papers", "page/figures/1-answers-to-the-eleven-tasks.png"),
    (
        "recovery_of_an_own_model",
        "own-model",
        "studies/slowing/figures/1-correlation-of-estimate-and-truth.png",
    ),
)
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```", re.M | re.S)


def knownminds(words: str, out: Path | None, where: str | None = None) -> None:
    """Call the command."""
    more = [] if out is None else [str(out)]
    program = [sys.executable, "-m", "knownminds", *shlex.split(words), *more]
    subprocess.run(program, check=True, cwd=where)


def keep(name: str, image: Image.Image) -> None:
    """Store a picture with a small palette."""
    small = image.convert("RGB").quantize(96, dither=Image.Dither.NONE)
    picture = PICTURES / f"{name}.png"
    small.save(picture, optimize=True)
    size = picture.stat().st_size
    print(f"{picture.name}: {size / 1000:.0f} kB")
    assert size < MOST_BYTES, f"{picture.name} has {size} bytes; make its window smaller."


def draw(folder: Path) -> None:
    """Draw the top of each page of a folder with a study."""
    with Chromium() as browser:
        for name, page, width, height in SHOTS:
            browser.open(folder / page, width=width, height=height)
            keep(name, Image.open(io.BytesIO(browser.screenshot())))


def walk(name: str, page: str, shown: str) -> None:
    """Do what a page says, in an empty folder, and draw what it comes to."""
    text = (ROOT / "docs" / "start" / f"{page}.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        for language, title, block in BLOCK.findall(text):
            if "." in title:
                Path(place, title).write_text(block, encoding="utf-8")
            elif language == "bash" and not title:
                for line in block.replace("\\\n", " ").splitlines():
                    knownminds(line.removeprefix("knownminds "), None, place)
        file = Path(place, shown)
        if file.suffix == ".png":
            image = Image.open(file)
            image.thumbnail((1100, 1100))
            keep(name, image)
            return
        with Chromium() as browser:
            browser.open(file, width=1100, height=1060)
            keep(name, Image.open(io.BytesIO(browser.screenshot())))


def main() -> None:
    """Compute a study, and draw it."""
    if PROGRAM is None:
        raise SystemExit("Chromium draws the pictures, and none is installed.")
    PICTURES.mkdir(exist_ok=True)
    for one in WALKS:
        walk(*one)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        knownminds(RECOVER, folder / "first")
        draw(folder)


if __name__ == "__main__":
    main()
