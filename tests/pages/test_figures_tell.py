"""What figures tell apart: models and known agents, cut intervals, names; and narrow windows."""

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from knownminds.validation.data.score_figures import SPAN, draw_radar, draw_scale
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.result import Result
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.result_page import page_text
from knownminds.validation.pages.views import KNOWN, WHO, Curves, Dots

LONG = "openai:gpt-4o-mini-2024-07-18(temperature=0.7, reasoning=chain_of_thought)"
ROWS = pd.DataFrame(
    {
        WHO: [LONG, "b", "rational"],
        "value": [0.2, 0.3, 0.5],
        "low": [0.1, 0.2, 0.4],
        "high": [0.3, 0.4, 0.6],
        "x": [1.0, 1.0, 1.0],
        KNOWN: [False, False, True],
    }
)
DOTS = Dots("Values.", "value")


def marks(axis):
    """Colours by the places of dots, without lines."""
    return {
        (round(float(x), 3), to_hex(line.get_color()))
        for line in axis.lines
        for x in line.get_xdata()
        if line.get_marker() in draw.MARKERS
    }


def test_models_and_known_agents_have_different_colours():
    [drawing] = DOTS.drawings(ROWS).values()
    figure = drawing.figure()
    found = dict(marks(figure.axes[0]))
    assert found[0.2] == found[0.3] != found[0.5]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["models", "known agents"]
    styles = [label.get_style() for label in figure.axes[0].get_yticklabels()]
    assert styles == ["normal", "normal", "italic"]
    [curves] = Curves("Lines.", ("x", "y"), "x", "value").drawings(ROWS).values()
    of = {line.get_label(): to_hex(line.get_color()) for line in curves.figure().axes[0].lines}
    assert of["rational"] == draw.GREY
    assert draw.GREY not in (of[LONG], of["b"])
    # A line of models that known agents have, too, is no line of known agents.
    shared = ROWS.assign(asked="number")
    view = Curves("Lines.", ("x", "y"), "x", "value", (WHO,), ("asked",))
    [curves] = view.drawings(shared).values()
    drawn = [line for axis in curves.figure().axes for line in axis.lines]
    assert draw.GREY not in {to_hex(line.get_color()) for line in drawn}


def test_without_known_agents_there_is_no_key():
    [drawing] = DOTS.drawings(ROWS.assign(**{KNOWN: False})).values()
    assert not drawing.figure().legends


def test_an_interval_that_is_cut_has_an_arrow_at_that_end():
    rng = np.random.default_rng(1)
    many = pd.DataFrame({WHO: [f"m{k}" for k in range(400)], "value": rng.random(400)})
    many = many.assign(low=many["value"] - 0.1, high=many["value"] + 0.1)
    many.loc[7, "high"] = 1e6
    many.loc[9, ["value", "low"]] = -1e6
    [drawing] = DOTS.drawings(many).values()
    axis = drawing.figure().axes[0]
    left, right = axis.get_xlim()
    assert right < 1e5
    at = {marker: [(x, y) for line in axis.lines if line.get_marker() == marker
                   for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
          for marker in "<>"}  # fmt: skip
    assert (right, 7.0) in at[">"]
    assert (left, 9.0) in at["<"]
    assert len(at["<"]) < 10


def test_no_name_is_broken_within_a_word():
    [drawing] = DOTS.drawings(ROWS).values()
    shown = drawing.figure().axes[0].get_yticklabels()[0].get_text()
    assert "\n" in shown
    assert shown.replace("\n", " ") == LONG


def test_a_narrow_window_has_each_figure_in_a_layout_of_its_own():
    panels = pd.concat([ROWS.assign(task=task) for task in "abc"])
    drawings = Dots("Values.", "value", "task").drawings(panels)
    page = page_text(Result("A page", parts=[Part("p", "P", figures=drawings)]))
    wide, narrow = page.split('<div class="on-phones">')
    assert 'class="wide on-desks"' in wide
    width = float(narrow.split('width="')[1].split("pt")[0])
    assert width <= 72 * draw.PHONE_WIDTH < 420 * 0.75
    assert DOTS.drawings(ROWS)  # which is a single panel, and as narrow


def test_intervals_that_leave_the_scale_have_an_arrow_in_both_figures():
    rows = pd.DataFrame(
        {
            "participant": "a", "metric": list("xyz"), "normalised": [0.5, 0.6, 0.7],
            "normalised_low": [-14.0, 0.1, 0.2], "normalised_high": [16.0, 0.9, 1.1],
        }
    )  # fmt: skip
    for drawn, arrows in ((draw_scale, {"<": 1, ">": 1}), (draw_radar, {"^": 2})):
        axis = drawn(rows).axes[0]
        assert not set(axis.get_xlim() if drawn is draw_scale else ()) - set(SPAN)
        found = dict.fromkeys(arrows, 0)
        for line in axis.lines:
            if line.get_marker() in arrows:
                found[line.get_marker()] += len(line.get_xdata())
        assert found == arrows
