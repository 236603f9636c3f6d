"""Draw the pictures of the documentation: reports, as a browser shows them.

Run in a checkout with knownminds installed and Chromium at hand: `python docs/screenshots.py`.
The pictures have small palettes, so that they stay small.
"""

from __future__ import annotations

import io
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
SHOTS = (("report", "first/report.html", 1100, 1500),)


def knownminds(words: str, out: Path) -> None:
    """Call the command."""
    program = [sys.executable, "-m", "knownminds", *shlex.split(words), str(out)]
    subprocess.run(program, check=True)


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


def main() -> None:
    """Compute a study, and draw it."""
    if PROGRAM is None:
        raise SystemExit("Chromium draws the pictures, and none is installed.")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        knownminds(RECOVER, folder / "first")
        draw(folder)


if __name__ == "__main__":
    main()
