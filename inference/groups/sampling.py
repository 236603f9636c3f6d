"""The common parts of all ways of sampling: settings, inputs of kernels, runs of PyMC models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

Tell = Callable[[str], None]
FIRST_WORD, HEARTBEAT = 2.0, 30.0  # seconds until the first line of progress; between later ones
LEAST_STOPPED = 20  # draws of a sampler out of time are kept from so many draws per chain on
# The names that samplers use, and those that ArviZ looks for.
STATISTICS = {
    "diverging": "diverging",
    "energy": "energy",
    "logp": "lp",
    "depth": "tree_depth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "mean_tree_accept": "acceptance_rate",
    "energy_error": "energy_error",
    "maxdepth_reached": "reached_max_treedepth",
}


@dataclass(frozen=True)
class Settings:
    """How long and how carefully to sample; `cores` None is one chain per core.

    `related` says whether steps follow the correlations of numbers, at some cost.
    """

    chains: int = 4
    draws: int = 1000
    tune: int = 1000
    target_accept: float = 0.8
    seed: int = 0
    cores: int | None = None
    related: bool = False

    def __post_init__(self) -> None:
        for name in ("chains", "draws", "tune"):
            if getattr(self, name) < 1:
                raise ValueError(f"Sampling needs {name} of at least 1; got {getattr(self, name)}.")
        if not 0.0 < self.target_accept < 1.0:
            raise ValueError(f"target_accept lies in (0, 1); got {self.target_accept:g}.")

    def after(self, short: bool, divergent: bool, slow: bool) -> Settings:
        """Return the settings for another round.

        If draws fell short, it has twice the draws and tuning; if they are worth few independent
        ones, steps first follow correlations instead of a longer tuning. After divergences the
        acceptance rate goes half the way to 1, which takes smaller steps; more draws would only
        find more divergences.
        """
        longer = 2 if short else 1
        turns = slow and not self.related
        accept = (1.0 + self.target_accept) / 2 if divergent else self.target_accept
        return replace(
            self,
            draws=longer * self.draws,
            tune=self.tune if turns else longer * self.tune,
            target_accept=accept,
            related=self.related or slow,
        )

    def __str__(self) -> str:
        return (
            f"{self.chains} chains of {self.draws} draws after {self.tune} of tuning, "
            f"target_accept {self.target_accept:g}" + ", along correlations" * self.related
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """Options of samplers, without the seed; `cores` is how many chains run at a time."""
        options = {
            name: getattr(self, name) for name in ("chains", "draws", "tune", "target_accept")
        }
        return options | {"cores": min(self.chains, self.cores or os.cpu_count() or 1)}


def compile_for_nutpie(model: pm.Model) -> Any:
    """Compile a PyMC model through numba; 10 to 30 seconds, once per structure."""
    import nutpie  # nutpie imports ArviZ and PyMC, which takes seconds

    with warnings.catch_warnings():
        # Numba warns that it cannot cache nutpie's wrapper; nothing is lost by that.
        warnings.simplefilter("ignore")
        return nutpie.compile_pymc_model(model, backend="numba")


class OutOfTimeError(Exception):
    """Sampling was broken off; `trace` holds the draws so far, None if there are too few."""

    def __init__(self, trace: Mapping[str, xr.Dataset] | None = None):
        super().__init__("broken off at the limit of time")
        self.trace = trace


def run_nutpie(
    compiled: Any, settings: Settings, seconds: float | None = None, tell: Tell | None = None
) -> Any:
    """Sample a compiled model; no Python runs between draws.

    After `seconds` the sampler is broken off with `OutOfTimeError`, which holds the draws so far.
    After an interrupt the draws are lost: nobody could tell them from a whole posterior. `tell`
    gets a line after 2 seconds, and then at growing intervals, up to half a minute.
    """
    import nutpie

    with _quiet():
        running = nutpie.sample(
            compiled,
            **settings.arguments,
            seed=settings.seed,
            progress_bar=False,
            save_warmup=False,
            blocking=False,
            low_rank_modified_mass_matrix=settings.related,
        )
        try:
            return _wait(running, seconds, tell)
        except KeyboardInterrupt:  # it may come while waiting or while telling
            running.abort()
            raise
        except OutOfTimeError:
            raise OutOfTimeError(so_far(running.abort())) from None


def _wait(running: Any, seconds: float | None, tell: Tell | None) -> Any:
    """Wait for a sampler, and now and then tell that it goes on."""
    begun, pause = perf_counter(), FIRST_WORD
    while True:
        left = pause if seconds is None else seconds - (perf_counter() - begun)
        try:
            return running.wait(timeout=max(min(pause, left), 0.0))
        except TimeoutError:
            if left <= pause and seconds is not None:
                raise OutOfTimeError from None
        pause = min(2 * pause, HEARTBEAT)
        if tell is not None:
            tell(f"still sampling after {perf_counter() - begun:.0f} s")


def so_far(trace: Any) -> dict[str, xr.Dataset] | None:
    """Return the draws of a stopped sampler, equally many of each chain; None if too few.

    Chains that had hardly begun are left out.
    """
    try:
        posterior, statistics = (dataset_of(trace, name) for name in ("posterior", "sample_stats"))
    except (KeyError, AttributeError):
        return None
    if "draw" not in posterior.sizes or not posterior.sizes["draw"]:
        return None
    there = np.ones((posterior.sizes["chain"], posterior.sizes["draw"]), dtype=bool)
    for values in posterior.data_vars.values():
        array = values.transpose("chain", "draw", ...).to_numpy()
        there &= np.isfinite(array.reshape(*array.shape[:2], -1)).all(axis=2)
    count = there.cumprod(axis=1).sum(axis=1)
    begun = np.flatnonzero(count >= LEAST_STOPPED)
    if not len(begun):
        return None
    some: dict[str, Any] = {"chain": begun, "draw": slice(0, int(count[begun].min()))}
    return {"posterior": posterior.isel(some), "sample_stats": statistics.isel(some)}


def kernel_inputs(data: ModelData, lapse: bool = False) -> dict[str, NDArray[Any]]:
    """Return the arrays that a kernel reads after theta, by name, in its order."""
    sequences, packed = data.laid_out(lapse)
    columns = {f"column_{k}": column for k, column in enumerate(packed)}
    return {"row": sequences.row, "start": sequences.start, **columns}


def dataset_of(trace: Any, name: str) -> xr.Dataset:
    """Return a group of an InferenceData (ArviZ 0) or a DataTree (ArviZ 1) as a Dataset."""
    result = trace[name]
    dataset: xr.Dataset = result.to_dataset() if hasattr(result, "to_dataset") else result
    return dataset


def statistics_of(dataset: xr.Dataset) -> xr.Dataset:
    """Return a sampler's statistics of each draw, under the names that ArviZ looks for."""
    import xarray as xr  # which is slow to import

    kept: dict[str, Any] = {}
    for name, statistic in STATISTICS.items():
        if (
            name in dataset
            and set(dataset[name].dims) == {"chain", "draw"}
            and statistic not in kept
        ):
            kept[statistic] = dataset[name]
    return xr.Dataset(kept)


def stacked(posterior: xr.Dataset, name: str, *dims: str) -> Array:
    """Return the draws of a variable, chain after chain, [draws, *dims]."""
    values = posterior[name].transpose("chain", "draw", *dims).to_numpy()
    draws: Array = values.reshape(-1, *values.shape[2:])
    return draws


def unstacked(posterior: xr.Dataset, draws: Array, *dims: str) -> tuple[tuple[str, ...], Array]:
    """Return draws in the form of `stacked`, chain after chain, as a variable of the posterior."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    return ("chain", "draw", *dims), draws.reshape(*shape, *draws.shape[1:])


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings of samplers: the verdict of each fit reports the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield
