"""The appendix of a hierarchical fit, and how its contrasts are quoted."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from knownminds.inference.posteriors.apa import apa_sentence, digits_of
from knownminds.validation.data.predictive import Cell, PanelCheck
from knownminds.validation.data.predictive_page import panels_figure
from knownminds.validation.data.sampling_page import sampling_section, traces_of


def fitted(draws):
    """A fit of one parameter whose group mean and spread have these draws [chains, draws]."""
    dims = ("chain", "draw", "parameter")
    values = xr.Dataset(
        {name: (dims, draws[..., None]) for name in ("group_mean", "group_sd")},
        coords={"parameter": ["alpha"]},
    )
    return SimpleNamespace(names=("alpha",), posterior=values)


def test_ranks_count_the_draws_of_each_chain_among_all():
    draws = np.random.default_rng(1).normal(size=(4, 250))
    draws[3] += 5.0  # a chain of its own
    found = traces_of(fitted(draws))
    assert set(found) == {"alpha", "sd(alpha)"}
    ranks = np.array(found["alpha"]["ranks"])
    assert ranks.shape == (4, 20)
    assert (ranks.sum(axis=1) == 250).all()
    assert (ranks.sum(axis=0) == 50).all()  # every rank is that of one draw
    assert ranks[3, 15:].sum() > 240
    kept = np.array(found["alpha"]["draws"])
    assert kept.shape == (4, 100)
    assert kept[:, 0] == pytest.approx(draws[:, 0], abs=1e-4)
    (section,) = sampling_section(found)
    assert len(section.figures) == 2
    assert "sd(α)" in section.figures[0][1]
    assert not sampling_section({})


def test_a_contrast_is_quoted_with_the_digits_it_has():
    draws = np.random.default_rng(2).normal(1.234567, 1.0, size=(4, 1000))
    told = apa_sentence("alpha ~ drug", draws)
    # 4,000 independent draws: an error of .016 of the mean, some .03 of the interval's ends
    low, high = np.quantile(draws, [0.05, 0.95])
    direction = f"{(draws > 0).mean():.2f}".lstrip("0")  # which errs by .005
    assert told == (
        f"alpha ~ drug (unconstrained scale): b = 1.2, 90% CrI [{low:.1f}, {high:.1f}], "
        f"pd = {direction}."
    )
    assert "> .999" in apa_sentence("x", np.abs(draws) + 1)
    assert [digits_of(error) for error in (0.6, 0.04, 0.004, 1e-6, np.nan)] == [0, 1, 2, 3, 0]


def test_keys_and_labels_of_panels_have_room_of_their_own():
    """A key lay on the points of four series, and a long label ended beyond the picture's edge."""
    long = "trials since it was tried (5: or more)"
    cells = tuple(
        Cell(f"casino {k}", "", x, 9, 0.2 * k, 0.2 * k - 0.05, 0.2 * k, 0.2 * k + 0.05)
        for k in range(1, 5)
        for x in (1.0, 2.0, 3.0)
    )
    panel = PanelCheck("choices", long, "machine 1 chosen", 1.0, 1.0, 0.5, cells)
    figure = panels_figure([panel] * 4).figure
    paper = FigureCanvasAgg(figure).get_renderer()
    for axis in figure.axes:
        key = axis.get_legend().get_window_extent(paper).transformed(axis.transData.inverted())
        assert key.y1 < min(cell.low for cell in cells)
        label = axis.xaxis.label.get_window_extent(paper)
        assert 0 <= label.x0 < label.x1 <= figure.bbox.width
