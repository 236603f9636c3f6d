"""A group's density as compiled code reads it, and its sampling."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import CO_VARARGS
from time import perf_counter
from typing import Any

import numpy as np
import xarray as xr
from numba import carray, njit, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from knownminds.agents.compiled import read_only
from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.crossed_levels import Levels
from knownminds.inference.posteriors.sampling import (
    FIRST_WORD,
    HEARTBEAT,
    ChainProgress,
    OutOfTimeError,
    Settings,
    StoppedError,
    Tell,
    so_far,
    stacked,
)
from knownminds.inference.posteriors.subject_coordinates import SubjectCoordinates

from .deviations import Deviations
from .formulas import Regressors
from .group_kernels import LANES, Group, density, rows_of, run_chain

DIMENSIONS = {
    "group_mean": ("parameter",),
    "group_centre": ("parameter",),
    "signed_level_sd": ("factor", "parameter"),
    "level_eta": ("contrast", "parameter"),
    "signed_sd": ("deviation",),
    "effect": ("term",),
    "turn": ("pair",),
    "eta": ("owner", "deviation"),
}
# What is told of each draw, and in which columns of what a chain tells.
STATISTICS = ("lp", "energy", "acceptance_rate", "n_steps", "tree_depth", "step_size", "diverging")
WHOLE = {"n_steps": np.int64, "tree_depth": np.int64, "diverging": np.bool_}

KINDS = {"identity": 0, "log": 1, "logit": 2}
Columns = tuple[NDArray[Any], ...]


class Address(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function that others call without being compiled for it."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], kinds: tuple[Any, ...] = ()):
        found = (*map(typeof, arguments), *kinds)
        function.compile(found)
        made = function.overloads[found]
        self.owner = made  # which keeps the code in memory
        self.own = made.signature
        self.address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        """Return where it lies."""
        return int(self.address)

    def signature(self) -> Any:
        """Return what it takes and gives."""
        return self.own


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(typing: Any, address: Any) -> Any:
    """Take a number for the place in memory that it is."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate


@cache
def of_one_kind(kernel: Any, n_actions: int, lapse: bool, kinds: tuple[Any, ...]) -> Address:
    """Return a model's likelihood as one that all models share the signature of.

    It takes parameters, lapses (none: an empty array), the number of actions, and where the arrays
    of the trials, of these kinds, lie and how long they are (`places_of`). What calls it is then
    compiled once for all models.
    """
    theta, rates = np.zeros((1, 1)), np.zeros(1)
    lapses = read_only(rates) if lapse else None
    known: dict[str, Any] = {"kernel": kernel, "carray": carray, "pointer": _pointer}
    if not kernel.py_func.__code__.co_flags & CO_VARARGS:  # where it lies; it is not linked in
        known["kernel"] = Address(kernel, (read_only(theta), lapses, n_actions), kinds)
    arrays, at = [], 0
    for number, kind in enumerate(kinds):
        known[f"kind_{number}"] = kind.dtype
        sizes = "".join(f"places[{at + 1 + axis}], " for axis in range(kind.ndim))
        arrays.append(f"carray(pointer(places[{at}]), ({sizes}), kind_{number})")
        at += 1 + kind.ndim
    exec(
        f"def call(theta, lapse, n_actions, places):\n"
        f"    return kernel(theta, {'lapse' if lapse else None}, n_actions, {', '.join(arrays)})",
        known,
    )
    call = njit(nogil=True, error_model="numpy")(known["call"])
    return Address(call, (theta, rates, n_actions, np.zeros(at, dtype=np.int64)))


def places_of(trials: Columns) -> NDArray[np.int64]:
    """Return where each array lies, and its shape; the arrays have to be kept."""
    return np.array([n for each in trials for n in (each.ctypes.data, *each.shape)], dtype=np.int64)


def lanes_of(values: Array) -> Array:
    """Lay [N, ...] out as [blocks, ..., LANES], empty lanes filled with 0."""
    blocks = -(-len(values) // LANES)
    whole = np.zeros((blocks * LANES, *values.shape[1:]))
    whole[: len(values)] = values
    return np.ascontiguousarray(np.moveaxis(whole.reshape(blocks, LANES, *values.shape[1:]), 1, -1))


@dataclass(frozen=True)
class GroupDensity:
    """The density of one group and its trials: see `density`.

    Parameters
    ----------
    shape : sizes of the parts of a point: K, Q, F, C, E, P and N
    group : everything but the trials
    kernel, lapses, n_actions, trials, places : the model's likelihood, see `of_one_kind`, and what
        it reads; `lapses` says whether the last parameter is a rate of lapses
    centre, spread : where the group probably lies, [K], for sampling to start
    """

    shape: tuple[int, int, int, int, int, int, int]
    group: Group
    kernel: Address
    lapses: bool
    n_actions: int
    trials: Columns
    places: NDArray[np.int64]
    centre: Array
    spread: Array

    @classmethod
    def of(
        cls,
        data: ModelData,
        unknowns: Unknowns,
        chosen: SubjectCoordinates,
        deviations: Deviations,
        regressors: Regressors | None = None,
        levels: Levels | None = None,
    ) -> GroupDensity:
        """Lay out data and coordinates for compiled code."""
        parameters = unknowns.parameters
        k, q, n_rows = len(parameters), len(deviations.names), len(data)
        sequences, columns = data.laid_out(unknowns.lapse)
        blocks = (read_only(x, np.int64) for x in (sequences.row, sequences.start))
        trials = (*blocks, *map(read_only, columns))
        n = data.n_actions
        kinds = tuple(map(typeof, trials))
        kernel = of_one_kind(data.model.kernel(n), n, unknowns.lapse, kinds)
        none = np.zeros(0, dtype=np.int64)
        group_sd = np.array([p.group_sd for p in parameters])
        information, score, onto = deviations.gathered(chosen.information, chosen.score)
        group = Group(
            mean=parameters.mean,
            sd=parameters.sd,
            spread=group_sd[deviations.moved],
            kind=np.array([KINDS[p.support.kind] for p in parameters]),
            lower=np.array([p.support.lower for p in parameters]),
            upper=np.array([p.support.upper for p in parameters]),
            full=np.nan_to_num(unknowns.full),
            places=np.append(unknowns.columns, len(unknowns.full))
            if unknowns.lapse
            else unknowns.columns,
            moved=deviations.moved,
            subject=deviations.subject,
            weight=deviations.weight,
            onto=onto,
            information=lanes_of(information),
            score=lanes_of(score),
            effect=none if regressors is None else regressors.parameter,
            design=np.zeros((n_rows, 0)) if regressors is None else regressors.by_subject,
            effect_sd=np.zeros(0) if regressors is None else parameters.sd[regressors.parameter],
            level=np.zeros((n_rows, 0), dtype=np.int64) if levels is None else levels.of_subject,
            count=none if levels is None else levels.count,
            factor=none if levels is None else levels.of_contrast,
            contrasts=np.zeros((0, 0)) if levels is None else levels.contrasts,
            estimate=np.zeros((0, k)) if chosen.level is None else chosen.level,
            error=np.zeros((0, k)) if chosen.level_error is None else chosen.level_error,
            pair=deviations.pairs,
            shape=deviations.exponents,
        )
        arrays: list[Any] = list(map(_plain, group))
        group = Group(*arrays)
        shape = (
            k,
            q,
            len(group.count),
            len(group.factor),
            len(group.effect),
            len(group.pair),
            deviations.n_subjects,
        )
        # The normal approximation of each row under the prior, as a first guess of the group.
        prior = np.diag(parameters.sd**-2)
        own = np.linalg.solve(
            chosen.information + prior, (chosen.score + parameters.mean @ prior)[..., None]
        )[..., 0]
        spread = np.clip(own.std(axis=0), 0.1 * group_sd, 2.0 * group_sd)
        read = kernel, unknowns.lapse, data.n_actions, trials, places_of(trials)
        return cls(shape, group, *read, own.mean(axis=0), spread)

    @property
    def problem(self) -> tuple[Any, ...]:
        """What the compiled functions read."""
        return self.group, self.shape, self.kernel, self.lapses, self.n_actions, self.places

    @cached_property
    def parts(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Where each variable stands in a point, and its shape."""
        k, q, f, c, e, p, n = self.shape
        shapes: dict[str, tuple[int, ...]] = {
            "group_centre" if f else "group_mean": (k,),
            "signed_level_sd": (f, k),
            "level_eta": (c, k),
            "signed_sd": (q,),
            "effect": (e,),
            "turn": (p,),
            "eta": (n, q),
        }
        found, begin = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            found[name] = slice(begin, begin + size), shape
            begin += size
        return found

    @cached_property
    def signed(self) -> NDArray[np.bool_]:
        """Which numbers of a point are spreads, that may have either sign, [D]."""
        found = np.zeros(self.size, dtype=bool)
        for name in ("signed_level_sd", "signed_sd"):
            found[self.parts[name][0]] = True
        return found

    @property
    def size(self) -> int:
        """How many numbers a point has."""
        return int(self.parts["eta"][0].stop)

    def at(self, point: Array) -> tuple[float, Array]:
        """Return the log density of a point [D], up to a constant, and its slope [D]."""
        slope, rows = np.empty(self.size), np.empty((len(self.group.subject), self.shape[0]))
        point = np.ascontiguousarray(point, dtype=float)
        return float(density(point, slope, rows, *self.problem)), slope

    @cached_property
    def law(self) -> Address:
        """Where the compiled density lies, for the sampler to call."""
        point, rows = np.empty(self.size), np.empty((len(self.group.subject), self.shape[0]))
        return Address(density, (point, point, rows, *self.problem))

    def rows(self, posterior: xr.Dataset) -> Array:
        """Return the parameters of all rows at draws, [S, M, K], on the unconstrained scale."""
        points = np.concatenate(
            [
                stacked(posterior, name, *DIMENSIONS[name]).reshape(-1, int(np.prod(shape)))
                for name, (_, shape) in self.parts.items()
                if np.prod(shape)
            ],
            axis=1,
        )
        z: Array = rows_of(self.law, self.problem, points)
        return z

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw a point to begin a chain at, and the scale of each coordinate there, [D] each.

        Spreads and means lie apart by twice what the group's size lets one know of them.
        """
        n = self.shape[-1]
        scale = np.ones(self.size)
        point = rng.standard_normal(self.size)
        where = {name: place for name, (place, _) in self.parts.items()}
        mean = where["group_centre" if "group_centre" in where else "group_mean"]
        scale[mean] = self.spread / np.sqrt(n)
        point[mean] = self.centre + 2.0 * scale[mean] * point[mean]
        moved = self.group.moved
        scale[where["signed_sd"]] = self.spread[moved] / np.sqrt(2 * n)
        levels = where["signed_level_sd"]
        scale[levels] = np.tile(self.group.spread[: self.shape[0]], self.shape[2]) / 2.0
        for place, guess in (
            (where["signed_sd"], self.spread[moved]),
            (levels, scale[levels]),
        ):
            size = guess + scale[place] * point[place]
            point[place] = np.where(rng.random(len(size)) < 0.5, -1.0, 1.0) * size
        scale[where["effect"]] = self.spread[self.group.effect] * 2.0 / np.sqrt(n)
        scale[where["turn"]] = 1.0 / np.sqrt(n)
        for name in ("effect", "turn"):
            point[where[name]] *= 2.0 * scale[where[name]]
        return point, scale

    def sample(
        self, settings: Settings, seconds: float | None = None, tell: Tell | None = None
    ) -> dict[str, xr.Dataset]:
        """Sample by NUTS; returns "posterior", parts of points by name, and "sample_stats".

        Chains run in threads of their own. After `seconds` they are broken off, which raises
        `OutOfTimeError`, and by an interrupt `StoppedError`; both hold the draws so far. `tell`
        hears a line per chain after 2 seconds, and then ever more seldom, up to every half a
        minute.
        """
        chains, draws = settings.chains, settings.draws
        kept = np.full((chains, draws, self.size), np.nan)
        told = np.full((chains, draws, len(STATISTICS)), np.nan)
        progress = np.zeros((chains, 4), dtype=np.int64)
        begun = np.full(chains, np.inf)  # when; some wait for a core
        words = np.random.SeedSequence(settings.seed).spawn(chains)

        def run(chain: int) -> None:
            rng = np.random.default_rng(words[chain])
            start, scale = self.start(rng)
            number = int(rng.integers(2**31))
            how = settings.tune, settings.target_accept
            out = kept[chain], told[chain], progress[chain]
            begun[chain] = perf_counter()
            run_chain(self.law, self.problem, start, scale, self.signed, how, number, *out)

        law = self.law  # compiled before threads ask for it
        assert law.address
        with ThreadPoolExecutor(settings.arguments["cores"]) as pool:
            running = [pool.submit(run, chain) for chain in range(chains)]
            try:
                _wait(running, progress, begun, settings, seconds, tell)
            except (KeyboardInterrupt, OutOfTimeError) as end:
                progress[:, 3] = 1
                wait(running)
                kind = OutOfTimeError if isinstance(end, OutOfTimeError) else StoppedError
                raise kind(so_far(self._traced(kept, told))) from None
            finally:
                progress[:, 3] = 1  # whatever still runs ends
        for one in running:
            one.result()
        return self._traced(kept, told)

    def _traced(self, kept: Array, told: Array) -> dict[str, xr.Dataset]:
        """Name what chains gave."""
        columns: dict[str, Any] = {}
        for k, name in enumerate(STATISTICS):
            kind = WHOLE.get(name, float)
            columns[name] = ("chain", "draw"), np.nan_to_num(told[..., k]).astype(kind)
        posterior = self.named(kept)
        return {
            "posterior": posterior,
            "sample_stats": xr.Dataset(columns, coords=posterior.coords),
        }

    def named(self, points: Array) -> xr.Dataset:
        """Return points [chains, draws, D] as variables with the names of `parts`."""
        found = {}
        for name, (place, shape) in self.parts.items():
            if np.prod(shape):
                values = points[..., place].reshape(*points.shape[:2], *shape)
                found[name] = ("chain", "draw", *DIMENSIONS[name]), values
        at = {"chain": np.arange(points.shape[0]), "draw": np.arange(points.shape[1])}
        return xr.Dataset(found, coords=at)


def _wait(
    running: list[Future[None]],
    progress: NDArray[np.int64],
    own: Array,
    settings: Settings,
    seconds: float | None,
    tell: Tell | None,
) -> None:
    """Wait for chains, and tell how far each is; `own` are the times at which they began."""
    begun, pause = perf_counter(), FIRST_WORD
    whole = settings.tune + settings.draws
    while True:
        left = np.inf if seconds is None else seconds - (perf_counter() - begun)
        _, going = wait(running, timeout=max(min(pause, left), 0.0))
        if not going:
            return
        if left <= pause:
            raise OutOfTimeError
        pause = min(2 * pause, HEARTBEAT)
        if tell is None:
            continue
        for number, row in enumerate(progress, start=1):
            chain = ChainProgress(int(row[0]), whole, int(row[1]))
            tell(chain.told(number, perf_counter() - own[number - 1]))


def _plain(values: Any) -> Any:
    """Return an array as compiled code knows it: contiguous, and not for reading alone."""
    return np.require(values, requirements=["C", "W"])
