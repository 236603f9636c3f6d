"""What sampling tells while it goes on, and what is left of it when it is stopped."""

import numpy as np
import nutpie
import pytest
import xarray as xr

from knownminds.inference.groups import group_density
from knownminds.inference.posteriors import group_model, sampling
from knownminds.inference.posteriors.sampling import Settings, StoppedError, run_nutpie

SETTINGS = Settings(chains=3, draws=100, tune=50)


class Compiled:
    """A model that was compiled; its sampler tells what nutpie's would."""

    def _make_sampler(self, settings, mean, cores, told, *more):
        return told


class Running:
    """A sampler of which two chains have 60 and 45 draws, and the third none."""

    def __init__(self, listening, ends):
        self.listening, self.ends, self.waits = listening, ends, 0

    def wait(self, timeout):
        self.waits += 1
        if self.listening is not None and hasattr(self.listening, "_hear"):
            self.listening._hear("110 150 2;95 150 0;0 150 0;")
        if self.waits <= 2:
            raise TimeoutError
        if self.ends is not None:
            raise self.ends
        return "trace"

    def abort(self):
        values = np.full((3, 100), np.nan)
        values[0, :60], values[1, :45] = 1.0, 2.0
        dims = ("chain", "draw")
        return {
            "posterior": xr.Dataset({"x": (dims, values)}),
            "sample_stats": xr.Dataset({"diverging": (dims, np.zeros((3, 100), dtype=bool))}),
        }


@pytest.fixture
def sampler(monkeypatch):
    def make(ends):
        made = lambda compiled, **more: Running(compiled, ends)  # noqa: E731
        monkeypatch.setattr(nutpie, "sample", made)

    monkeypatch.setattr(sampling, "perf_counter", iter(np.arange(0.0, 1000.0, 5.0)).__next__)
    return make


def test_a_line_per_chain_says_draws_divergences_and_the_time_left(sampler):
    sampler(None)
    heard = []
    assert run_nutpie(Compiled(), SETTINGS, None, heard.append) == "trace"
    # 5 s for 110 of 150 draws leave 5 * 40 / 110 = 1.8 s
    assert heard[0] == "chain 1: 110 of 150 draws, 2 divergences, about 2 s left"
    assert heard[1].startswith("chain 2: 95 of 150 draws, 0 divergences")
    assert heard[2] == "chain 3: 0 of 150 draws, 0 divergences"
    assert len(heard) == 6


def interrupted(line):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ends", "tell"), [(KeyboardInterrupt, lambda line: None), (None, interrupted)]
)
def test_an_interrupt_leaves_the_draws_of_the_chains_that_had_begun(sampler, ends, tell):
    sampler(ends)
    with pytest.raises(StoppedError) as stopped:
        run_nutpie(Compiled(), SETTINGS, None, tell)
    kept = stopped.value.trace["posterior"]
    assert dict(kept.sizes) == {"chain": 2, "draw": 45}
    assert kept["x"].to_numpy()[:, 0].tolist() == [1.0, 2.0]
    assert stopped.value.trace["sample_stats"].sizes["draw"] == 45


def test_this_nutpie_fills_the_template(sampler):
    """The template's names are nutpie's own; with other names nothing would be told."""
    told = sampling._Listening(Compiled())._make_sampler(None, None, 1, "silent")
    assert told != "silent"
    assert "finished_draws" in nutpie.sample.__globals__["_progress_template"]
    for name in ("chain.finished_draws", "chain.total_draws", "chain.divergences"):
        assert name in nutpie.sample.__globals__["_progress_template"]
        assert name in sampling.CHAINS
    assert group_model.StoppedError is StoppedError


def test_a_chain_that_waited_for_a_core_counts_from_its_own_begin(monkeypatch):
    """Its time left was told as if it had run from the start: 380 s where 15 were left."""
    waits = iter([(set(), {1}), ({1}, set())])
    monkeypatch.setattr(group_density, "wait", lambda running, timeout: next(waits))
    monkeypatch.setattr(group_density, "perf_counter", lambda: 100.0)
    progress = np.array([[100, 0, 0, 0], [100, 1, 0, 0], [0, 0, 0, 0]])
    heard = []
    begun = np.array([0.0, 90.0, np.inf])
    group_density._wait([], progress, begun, SETTINGS, None, heard.append)
    assert heard == [
        "chain 1: 100 of 150 draws, 0 divergences, about 50 s left",
        "chain 2: 100 of 150 draws, 1 divergences, about 5 s left",
        "chain 3: 0 of 150 draws, 0 divergences",
    ]
