"""Pictures of lines, markers and paths, blurred if wanted, and comparisons of pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import ceil, cos, floor, hypot, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

SIDE = 512  # px, width and height of a picture
LINE = 400  # px, length of a line
RADIUS = 4  # px, radius of a marker
CELLS = 20  # cells across and up in the grid of a path

LEFT = (SIDE - LINE) // 2
_MIDDLE = SIDE // 2
_ROWS = (SIDE // 3, SIDE - SIDE // 3)  # px from above, the positions of two lines
_WIDTH, _PATH = 5, 3  # px, widths of lines and of paths
_CELL = SIDE / CELLS  # px
_DOT, _DISC = 3, 8  # px, radius of a dot on a cell of a path, and of a disc at its ends
_WHITE, _BLACK, _RED, _BLUE = (255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 0, 255)
_FINE = 4  # turned lines are drawn in so many parts of a pixel

Box = tuple[int, int, int, int]
Place = tuple[float, float]  # px from the left and from above


def marker(location: float, blur: float = 0.0) -> Image.Image:
    """Draw a horizontal black line with a red marker.

    Parameters
    ----------
    location : Where the marker sits, from 0 (left end) to 1.
    blur : Standard deviation of the Gaussian blur, px.
    """
    image, draw = _blank()
    _line(draw, _MIDDLE, LEFT, LEFT + LINE)
    _disc(draw, LEFT + round(LINE * location), _MIDDLE, RADIUS, _RED)
    box = (LEFT - RADIUS, _MIDDLE - RADIUS, LEFT + LINE + RADIUS, _MIDDLE + RADIUS)
    return _blurred(image, [box], blur)


def two_lines(ratio: float, shorter_below: bool, blur: float = 0.0) -> Image.Image:
    """Draw two horizontal black lines that begin one below the other.

    Parameters
    ----------
    ratio : Length of the shorter relative to the longer one, from 0 to 1.
    shorter_below : Whether the longer one stands above.
    blur : Standard deviation of the Gaussian blur, px.
    """
    image, draw = _blank()
    lengths = [round(LINE * ratio), LINE]
    boxes = []
    for row, length in zip(_ROWS, lengths[::-1] if shorter_below else lengths, strict=True):
        _line(draw, row, LEFT, LEFT + length - 1)
        boxes.append((LEFT, row - _WIDTH, LEFT + length, row + _WIDTH))
    return _blurred(image, boxes, blur)


def turned_marker(
    location: float, length: float, turn: float, centre: Place, blur: float = 0.0
) -> Image.Image:
    """Draw a black line anywhere, turned, with a red marker.

    Parameters
    ----------
    location : Where the marker sits, from 0 (the end that is farther left) to 1.
    length : Length of the line, px.
    turn : Turn of the line, radians; 0 is horizontal, a positive turn rises to the right.
    centre : The middle of the line, px from the left and from above.
    blur : Standard deviation of the Gaussian blur, px.
    """
    line = _ends(centre, length, turn)
    (x, y), (end_x, end_y) = line
    spot = x + location * (end_x - x), y + location * (end_y - y)
    return _fine([line], blur, spot)


def turned_lines(
    lengths: Sequence[float], turn: float, centres: Sequence[Place], blur: float = 0.0
) -> Image.Image:
    """Draw black lines anywhere, all turned alike.

    Parameters
    ----------
    lengths : Lengths of the lines, px.
    turn : Turn of all lines, radians; 0 is horizontal, with a positive turn they rise to the right.
    centres : Middles of the lines, px from the left and from above.
    blur : Standard deviation of the Gaussian blur, px.
    """
    return _fine(
        [_ends(centre, length, turn) for centre, length in zip(centres, lengths, strict=True)], blur
    )


def maze(cells: Sequence[tuple[int, int]], blur: float = 0.0) -> Image.Image:
    """Draw a path through a grid of cells that fills the picture.

    It is a black line with a dot on every cell, a blue disc at the start and a red one at the end.

    Parameters
    ----------
    cells : The cells that the path passes, (x to the right, y up), each from 0 to 19.
    blur : Standard deviation of the Gaussian blur, px.
    """
    image, draw = _blank()
    places = [(_across(x), _across(CELLS - 1 - y)) for x, y in cells]
    draw.line(places, fill=_BLACK, width=_PATH)
    for x, y in places[1:-1]:
        _disc(draw, x, y, _DOT, _BLACK)
    for (x, y), colour in ((places[0], _BLUE), (places[-1], _RED)):
        _disc(draw, x, y, _DISC, colour)
    xs, ys = zip(*places, strict=True)
    box = (min(xs) - _DISC, min(ys) - _DISC, max(xs) + _DISC, max(ys) + _DISC)
    return _blurred(image, [box], blur)


def png(image: Image.Image) -> bytes:
    """Encode a picture, without loss; the same bytes for the same picture and build of Pillow."""
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


def same(one: bytes, other: bytes) -> bool:
    """Say whether two PNG pictures agree pixel for pixel; the build of Pillow may differ."""
    return one == other or np.array_equal(_pixels(one), _pixels(other))


def _blank() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (SIDE, SIDE), _WHITE)
    return image, ImageDraw.Draw(image)


def _ends(centre: Place, length: float, turn: float) -> tuple[Place, Place]:
    """Return the ends of a line, the one farther left first."""
    across, up = length / 2 * cos(turn), length / 2 * sin(turn)
    x, y = centre
    return (x - across, y + up), (x + across, y - up)


def _fine(
    lines: Sequence[tuple[Place, Place]], blur: float, spot: Place | None = None
) -> Image.Image:
    """Draw lines, and a marker if a location is given, to a fraction of a pixel."""
    image = Image.new("RGB", (SIDE * _FINE, SIDE * _FINE), _WHITE)
    draw = ImageDraw.Draw(image)
    places: list[Place] = []
    for (x, y), (end_x, end_y) in lines:
        half = _WIDTH / 2 / hypot(end_x - x, end_y - y)
        by_x, by_y = half * (y - end_y), half * (end_x - x)
        corners = [
            (x + by_x, y + by_y),
            (end_x + by_x, end_y + by_y),
            (end_x - by_x, end_y - by_y),
            (x - by_x, y - by_y),
        ]
        draw.polygon([(_FINE * a, _FINE * b) for a, b in corners], fill=_BLACK)
        places += corners
    if spot is not None:
        x, y = (_FINE * coordinate for coordinate in spot)
        reach = _FINE * RADIUS
        draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=_RED)
        places += [(a + r, b + r) for a, b in [spot] for r in (-RADIUS, RADIUS)]
    xs, ys = zip(*places, strict=True)
    box = (floor(min(xs)), floor(min(ys)), ceil(max(xs)), ceil(max(ys)))
    return _blurred(image.reduce(_FINE), [box], blur)


def _line(draw: ImageDraw.ImageDraw, row: int, left: int, right: int) -> None:
    draw.rectangle((left, row - _WIDTH // 2, right, row + _WIDTH // 2), fill=_BLACK)


def _disc(
    draw: ImageDraw.ImageDraw, x: int, y: int, radius: int, colour: tuple[int, int, int]
) -> None:
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _across(cell: int) -> int:
    return round((cell + 0.5) * _CELL)


def _blurred(image: Image.Image, boxes: Sequence[Box], blur: float) -> Image.Image:
    """Blur only the boxes that hold the drawing.

    To blur the white around them would take several times as long and change nothing.
    """
    reach = 3 * ceil(blur) + 4  # px; Pillow blurs by three boxes
    for left, top, right, bottom in boxes if blur else ():
        box = (
            max(left - reach, 0),
            max(top - reach, 0),
            min(right + reach + 1, SIDE),
            min(bottom + reach + 1, SIDE),
        )
        image.paste(image.crop(box).filter(ImageFilter.GaussianBlur(blur)), box)
    return image


def _pixels(encoded: bytes) -> NDArray[np.int64]:
    """Decode a picture, [row, column, red green blue]."""
    try:
        image = Image.open(io.BytesIO(encoded))
        pixels = np.asarray(image.convert("RGB"), dtype=np.int64)
    except OSError as error:
        raise ValueError(f"A stimulus is a picture as PNG; these bytes are none: {error}") from None
    if pixels.shape[:2] != (SIDE, SIDE):
        height, width = pixels.shape[:2]
        raise ValueError(f"A stimulus is {SIDE} x {SIDE} px; got {width} x {height}.")
    return pixels
