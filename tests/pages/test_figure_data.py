import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from knownminds.validation.pages.figure_data import figure_data


@pytest.fixture
def axis():
    return Figure().add_subplot()


def rows_of(axis, mark):
    found = figure_data(axis.figure)
    return found[found["mark"] == mark].reset_index(drop=True)


def test_lines_and_points_are_told_apart_and_named(axis):
    axis.set_title("one\npanel")
    axis.plot([1, 2], [3.5, np.nan], label="a curve")
    axis.plot([4], [5], "o", linestyle="none", label="_hidden")
    axis.plot([6], [7], "o", linestyle="none")
    found = figure_data(axis.figure)
    assert list(found.columns) == ["panel", "mark", "series", "x", "y"]
    assert set(found["panel"]) == {"one panel"}
    assert found["mark"].tolist() == ["line", "line", "points", "points"]
    assert found["series"].tolist() == ["a curve", "a curve", "hidden", ""]
    assert found["x"].tolist() == [1, 2, 4, 6]
    assert found["y"].tolist() == pytest.approx([3.5, np.nan, 5, 7], nan_ok=True)


def test_what_goes_across_a_panel_has_no_place_along_it(axis):
    axis.axhline(0.8)
    axis.axvline(3)
    axis.axhspan(1, 2)
    limits, bands = rows_of(axis, "limit"), rows_of(axis, "band")
    assert limits["y"].tolist() == pytest.approx([0.8, np.nan], nan_ok=True)
    assert limits["x"].tolist() == pytest.approx([np.nan, 3], nan_ok=True)
    assert bands[["y", "y_to"]].to_numpy().tolist() == [[1, 2]]
    assert bands["x"].isna().all()


def test_error_bars_bear_the_name_of_their_series(axis):
    axis.errorbar([1, 2], [5, 6], [0.5, 1.0], fmt="o", label="estimate")
    found = rows_of(axis, "interval")
    assert found["series"].tolist() == ["estimate", "estimate"]
    assert found[["x", "y", "x_to", "y_to"]].to_numpy().tolist() == [[1, 4.5, 1, 5.5], [2, 5, 2, 7]]
    assert rows_of(axis, "points")["series"].tolist() == ["estimate", "estimate"]


def test_bars_have_both_ends_and_the_words_below_them(axis):
    axis.bar([0, 1], [3, 4], 0.8, label="share")
    axis.set_xticks([0, 1], ["left arm", "right arm"])
    found = rows_of(axis, "bar")
    assert found["x_name"].tolist() == ["left arm", "right arm"]
    assert found["y_to"].tolist() == [3, 4]
    assert found["x_to"].tolist() == pytest.approx([0.4, 1.4])
    assert set(found["series"]) == {"share"}


def test_numbers_at_ticks_are_no_words(axis):
    axis.plot([10, 20], [1, 2])
    axis.set_xticks([10, 20], ["$10", "20%"])
    assert "x_name" not in figure_data(axis.figure)


def test_cells_areas_and_clouds_are_there(axis):
    axis.imshow(np.ma.masked_invalid([[0.1, np.nan], [0.3, 0.4]]))
    axis.fill_between([0, 1], [0, 0], [1, 1], label="band")
    axis.scatter([5, 6], [7, 8])
    cells = rows_of(axis, "cell").pivot(index="y", columns="x", values="value").to_numpy()
    assert np.array_equal(cells, [[0.1, np.nan], [0.3, 0.4]], equal_nan=True)
    area = rows_of(axis, "area")
    assert (area["x"].min(), area["x"].max(), area["y"].max()) == (0, 1, 1)
    assert set(area["series"]) == {"band"}
    assert rows_of(axis, "points")[["x", "y"]].to_numpy().tolist() == [[5, 7], [6, 8]]


def test_pictures_in_colours_are_no_data(axis):
    axis.imshow(np.zeros((4, 4, 3)))
    assert len(figure_data(axis.figure)) == 0


def test_an_empty_figure_gives_an_empty_table():
    found = figure_data(Figure())
    assert isinstance(found, pd.DataFrame)
    assert len(found) == 0
