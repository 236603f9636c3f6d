"""A figure that was drawn in this process is not drawn again for another test that shows the same.

Drawing is most of what a study's report costs: 2.4 of 2.8 CPU seconds of `knownminds recover` with
20 subjects. What is looked at is the figure's own content, so a figure that differs in a number,
a word or a limit is drawn; files in which drawing itself is tested draw all of theirs (`ANEW`).
Others leave one and the same PDF and PNG beside what is drawn as SVG: embedding letters in a PDF
takes as long as all that a small study computes.
"""

import io

from matplotlib.figure import Figure

from knownminds.validation.pages.figure_data import figure_data

ANEW = ("test_report", "test_report_in_browser", "test_figure_data")

_draw, _drawn = Figure.savefig, {}
FILES = ("pdf", "png")


def shown(figure):
    """All that a figure says: its numbers, words, limits and sizes."""
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes)]
    texts = [*figure.texts, *(text for axis in figure.axes for text in axis.texts)]
    texts += [text for legend in filter(None, legends) for text in legend.get_texts()]
    axes = [
        (axis.get_xlim(), axis.get_ylim(), axis.get_xscale(), axis.get_yscale(), axis.get_gid())
        for axis in figure.axes
    ]
    labels = [(axis.get_xlabel(), axis.get_ylabel()) for axis in figure.axes]
    numbers = figure_data(figure).to_csv(index=False)
    words = [(text.get_text(), text.get_position(), text.get_color()) for text in texts]
    return repr((figure.get_size_inches().tolist(), axes, labels, words)), numbers


def savefig(figure, stream, **how):
    """Draw a figure into a stream, or write what was drawn before."""
    form = how.get("format")
    key = form if form in FILES else (type(stream), form, how.get("dpi"), shown(figure))
    if key not in _drawn:
        fresh = type(stream)()
        _draw(figure, fresh, **how)
        _drawn[key] = fresh.getvalue(), [axis.get_position() for axis in figure.axes]
    content, places = _drawn[key]
    stream.write(content)
    if form not in FILES:  # drawing has put the panels where a page looks for their numbers
        for axis, place in zip(figure.axes, places, strict=True):
            axis.set_position(place, which="active")


def choose(module):
    """Let figures of a test file be drawn once or each time."""
    Figure.savefig = _draw if module in ANEW else _to_stream


def _to_stream(figure, stream, **how):
    known = type(stream) in (io.StringIO, io.BytesIO)
    return (savefig if known else _draw)(figure, stream, **how)
