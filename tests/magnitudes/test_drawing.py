import numpy as np
from PIL import ImageFilter

from knownminds.environments.magnitudes import drawing


def pixels(image):
    return np.asarray(image, dtype=int)


def test_a_picture_is_white_with_a_line_of_400_px_and_a_red_marker_of_radius_4():
    image = drawing.marker(0.25)
    assert (image.size, image.mode) == ((512, 512), "RGB")
    seen = pixels(image)
    assert (seen[0, 0] == 255).all()
    black = (seen == 0).all(axis=2)
    columns = np.flatnonzero(black.any(axis=0))
    assert columns.max() - columns.min() == drawing.LINE == 400  # between the ends' centres
    red = (seen == (255, 0, 0)).all(axis=2)
    for axis in (0, 1):
        place = np.flatnonzero(red.any(axis=axis))
        assert place.max() - place.min() == 2 * drawing.RADIUS == 8
    centre = np.flatnonzero(red.any(axis=0)).mean()
    assert (centre - columns.min()) / 400 == 0.25


def test_the_picture_is_blurred_as_pillow_blurs_the_whole_of_it():
    cells = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3)]
    for draw, stimulus in (
        (drawing.marker, (0.9,)),
        (drawing.two_lines, (0.4, True)),
        (drawing.maze, (cells,)),
    ):
        for blur in (0.7, 8.0, 16.0):
            whole = draw(*stimulus).filter(ImageFilter.GaussianBlur(blur))
            assert np.array_equal(pixels(draw(*stimulus, blur)), pixels(whole))
