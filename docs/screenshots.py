"""Draw the pictures of the documentation: a report and the gallery, as a browser shows them.

Run in a checkout with knownminds installed and Chromium at hand: `python docs/screenshots.py`.
The pictures have small palettes, so that they stay small.
"""

from __future__ import annotations

import io
import re
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
# name, page within the folder, width and height of the window in px, and the heading of the part
# that is shown alone, if not the whole page is
SHOTS = (
    ("report", "first/report.html", 1100, 1500, ""),
    ("report_on_a_phone", "first/report.html", 390, 1300, ""),
    ("gallery", "gallery/gallery.html", 1100, 900, ""),
    (
        "gallery_of_an_experiment",
        "gallery/gallery.html",
        1100,
        850,
        "environment-instrumental_learning",
    ),
    ("gallery_of_a_model", "gallery/gallery.html", 1100, 1000, "model-weighted_bayes"),
)


def knownminds(words: str, out: Path) -> None:
    """Call the command."""
    code = "from knownminds.validation.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *words.split(), str(out)], check=True)


def part_of(page: Path, heading: str) -> Path:
    """Write a page that has the part under one heading only."""
    whole = page.read_text(encoding="utf-8")
    begin = whole.index(f'<h3 id="{heading}"')
    end = re.compile(r"<h[23] id=").search(whole, begin + 1)
    part = whole[begin : end.start() if end else None]
    alone = page.with_name(f"{heading}.html")
    alone.write_text(f"{whole[: whole.index('<h1')]}{part}", encoding="utf-8")
    return alone


def draw(folder: Path) -> None:
    """Draw the top of each page of a folder with a study and a gallery."""
    with Chromium() as browser:
        for name, page, width, height, heading in SHOTS:
            shown = part_of(folder / page, heading) if heading else folder / page
            browser.open(shown, width=width, height=height)
            with Image.open(io.BytesIO(browser.screenshot())) as image:
                small = image.convert("RGB").quantize(96, dither=Image.Dither.NONE)
            picture = PICTURES / f"{name}.png"
            small.save(picture, optimize=True)
            size = picture.stat().st_size
            print(f"{picture.name}: {size / 1000:.0f} kB")
            assert size < MOST_BYTES, f"{picture.name} has {size} bytes; make its window smaller."


def main() -> None:
    """Compute a study and the gallery, and draw them."""
    if PROGRAM is None:
        raise SystemExit("Chromium draws the pictures, and none is installed.")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        knownminds(RECOVER, folder / "first")
        knownminds("gallery --out", folder / "gallery")
        draw(folder)


if __name__ == "__main__":
    main()
