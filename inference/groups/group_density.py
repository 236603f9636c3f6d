"""A group's density in the form of compiled code, and its sampling by nutpie."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import xarray as xr
from numba import cfunc, typeof, types
from numpy.typing import NDArray

from knownminds.agents.compiled import read_only
from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns

from .addresses import Address, Columns, addresses_of, likelihood_address, views
from .crossed_levels import Levels
from .formulas import GroupDesign
from .group_kernels import KINDS, Group, density, rows_at
from .sampling import Settings, Tell, dataset_of, run_nutpie, stacked
from .subject_coordinates import SubjectCoordinates

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
Shape = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True)
class GroupDensity:
    """The density of one group and its trials: see `density`.

    Parameters
    ----------
    shape : sizes of the parts of a point: K, Q, F, C, E, P and N
    group : everything except the trials
    kernel, lapses, n_actions, trials : the model's likelihood, see `likelihood_address`, and its
        data; `lapses` says whether the last parameter is a lapse rate
    centre, spread : where the group probably lies, [K], as a start for sampling
    """

    shape: Shape
    group: Group
    kernel: Address
    lapses: bool
    n_actions: int
    trials: Columns
    centre: Array
    spread: Array

    @classmethod
    def of(
        cls,
        data: ModelData,
        unknowns: Unknowns,
        chosen: SubjectCoordinates,
        design: GroupDesign,
        levels: Levels | None = None,
    ) -> GroupDensity:
        """Lay out data and coordinates for compiled code."""
        parameters, n_actions = unknowns.parameters, data.n_actions
        deviations, regressors = design.deviations, design.regressors
        k, n_rows = len(parameters), len(data)
        sequences, columns = data.laid_out(unknowns.lapse)
        blocks = (read_only(x, np.int64) for x in (sequences.row, sequences.start))
        trials = (*blocks, *map(read_only, columns))
        kernel = likelihood_address(
            data.model.kernel(n_actions, unknowns.lapse),
            n_actions,
            unknowns.lapse,
            tuple(map(typeof, trials)),
        )
        none = np.zeros(0, dtype=np.int64)
        group_sd = np.array([p.group_sd for p in parameters])
        spread = deviations.prior_scale(parameters)
        information, score, onto = deviations.gathered(chosen.information, chosen.score, spread)
        group = Group(
            mean=parameters.mean,
            sd=parameters.sd,
            spread=spread,
            kind=np.array([KINDS[p.support.kind] for p in parameters]),
            lower=np.array([p.support.lower for p in parameters]),
            upper=np.array([p.support.upper for p in parameters]),
            full=np.nan_to_num(unknowns.full),
            places=unknowns.places,
            moved=deviations.moved,
            subject=deviations.subject,
            weight=deviations.weight,
            onto=onto,
            information=information,
            score=score,
            effect=regressors.parameter,
            design=regressors.by_subject,
            effect_sd=regressors.prior_sd(parameters),
            level=np.zeros((n_rows, 0), dtype=np.int64) if levels is None else levels.of_subject,
            count=none if levels is None else levels.count,
            factor=none if levels is None else levels.of_contrast,
            contrasts=np.zeros((0, 0)) if levels is None else levels.contrasts,
            estimate=np.zeros((0, k)) if chosen.level is None else chosen.level,
            error=np.zeros((0, k)) if chosen.level_error is None else chosen.level_error,
            pair=deviations.pairs,
            shape=deviations.exponents,
        )
        arrays: list[Any] = [np.require(x, requirements=["C", "W"]) for x in group]
        group = Group(*arrays)
        n_counts, n_factors = len(group.count), len(group.factor)
        n_effects, n_pairs = len(group.effect), len(group.pair)
        sizes = n_counts, n_factors, n_effects, n_pairs
        shape = k, len(deviations.names), *sizes, deviations.n_subjects
        # The normal approximation of each row under the prior is a first guess of the group.
        estimate = chosen.estimate(parameters.mean, parameters.sd)
        guess = np.clip(estimate.std(axis=0), 0.1 * group_sd, 2.0 * group_sd)
        read = kernel, unknowns.lapse, n_actions, trials
        return cls(shape, group, *read, estimate.mean(axis=0), guess)

    @cached_property
    def addresses(self) -> NDArray[np.int64]:
        """The addresses of the trials' arrays."""
        return addresses_of(self.trials)

    @property
    def problem(self) -> tuple[Any, ...]:
        """The data that the compiled functions read."""
        return self.group, self.shape, self.kernel, self.lapses, self.n_actions, self.addresses

    @cached_property
    def parts(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """The position of each variable in a point, and its shape; empty variables are left out."""
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
        result, begin = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            if size:
                result[name] = slice(begin, begin + size), shape
            begin += size
        return result

    @property
    def size(self) -> int:
        """How many numbers a point has."""
        return int(self.parts["eta"][0].stop)

    def at(self, point: Array) -> tuple[float, Array]:
        """Return the log density at a point [D], up to a constant, and its slope [D]."""
        slope, rows = np.empty(self.size), np.empty((len(self.group.subject), self.shape[0]))
        point = np.ascontiguousarray(point, dtype=float)
        subject_rows = np.empty((self.shape[6], self.shape[1]))
        return float(density(point, slope, rows, subject_rows, *self.problem)), slope

    def rows(self, posterior: xr.Dataset) -> tuple[Array, Array]:
        """Return parameters of rows [S, M, K], unconstrained, and deviations [S, N, Q] at draws."""
        points = np.concatenate(
            [
                stacked(posterior, name, *DIMENSIONS[name]).reshape(-1, int(np.prod(shape)))
                for name, (_, shape) in self.parts.items()
            ],
            axis=1,
        )
        z, rows = rows_at(points, *self.problem)
        return z, rows

    def start(self, seed: int) -> Array:
        """Draw a point [D] at which a chain begins.

        Spreads and means are scattered by twice the precision that the group's size allows.
        """
        rng = np.random.default_rng(seed)
        error = 2.0 / np.sqrt(self.shape[-1])
        point = rng.standard_normal(self.size)
        moved = self.spread[self.group.moved]
        levels = np.tile(self.group.spread[: self.shape[0]], self.shape[2]) / 2.0
        for name, (position, _) in self.parts.items():
            if name in ("group_mean", "group_centre"):
                point[position] = self.centre + error * self.spread * point[position]
            elif name == "signed_sd":
                point[position] = moved * (1.0 + error / np.sqrt(2.0) * point[position])
            elif name == "signed_level_sd":
                point[position] = levels * (1.0 + point[position])
            elif name == "effect":
                point[position] *= error * self.group.effect_sd
            elif name == "turn":
                point[position] *= error
            if name.startswith("signed"):
                point[position] *= rng.choice([-1.0, 1.0], position.stop - position.start)
        return point

    def sample(
        self, settings: Settings, seconds: float | None = None, tell: Tell | None = None
    ) -> dict[str, xr.Dataset]:
        """Sample by NUTS; return "posterior", the parts of points by name, and "sample_stats".

        `run_nutpie` explains `seconds` and `tell`.
        """
        # Effects and means are correlated, which a mass for each single number cannot express.
        settings = replace(settings, related=settings.related or len(self.group.effect) > 0)
        trace = run_nutpie(self._for_nutpie(), settings, seconds, tell)
        return {name: dataset_of(trace, name) for name in ("posterior", "sample_stats")}

    def _for_nutpie(self) -> Any:
        from nutpie.compile_pymc import CompiledPyMCModel

        arrays = (*self.group, self.addresses)
        log_density, expand = callbacks(self.kernel, tuple(map(typeof, arrays)))
        shapes = {name: shape for name, (_, shape) in self.parts.items()}
        dims = {name: DIMENSIONS[name] for name in shapes}
        coords = {
            dim: np.arange(length)
            for name, shape in shapes.items()
            for dim, length in zip(dims[name], shape, strict=True)
        }
        shared = {f"array_{number}": x for number, x in enumerate((*arrays, *self.trials))}
        # Newer versions of nutpie ask for the names of shared variables; there are none.
        asks_names = "shared_var_keys" in {field.name for field in fields(CompiledPyMCModel)}
        names: dict[str, Any] = {"shared_var_keys": {}} if asks_names else {}
        return CompiledPyMCModel(
            **names,
            dims=dims,
            _n_dim=self.size,
            _coords=coords,
            _shapes=shapes,
            compiled_logp_func=log_density,
            compiled_expand_func=expand,
            initial_point_func=self.start,
            shared_data=shared,
            user_data=np.array(
                [*self.shape, self.lapses, self.n_actions, *addresses_of(arrays)], dtype=np.int64
            ),
            n_expanded=self.size,
            shape_info=(list(shapes), None, list(shapes.values())),
            logp_func=None,
            expand_func=None,
        )


@cache
def callbacks(kernel: Address, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
    """Compile the two functions that nutpie calls: the density, and a point as it is.

    Their last argument holds the sizes of a point's parts, whether the last parameter is a lapse
    rate, the number of actions, and the addresses of arrays of these `kinds`: those of a `Group`,
    and the addresses of the trials. All these are data, so that the density is compiled only once.
    """
    parts = len(Shape.__args__)  # type: ignore[attr-defined]
    arrays, known, length = views(kinds, "numbers", parts + 2)
    known |= {"density": density, "Group": Group, "kernel": kernel, "np": np}
    sizes = "".join(f"numbers[{part}], " for part in range(parts))
    exec(
        f"def log_density(dim, x, slope, value, user):\n"
        f"    numbers = carray(user, ({length},), np.int64)\n"
        f"    shape = ({sizes})\n"
        f"    group = Group({', '.join(arrays[:-1])})\n"
        f"    rows = np.empty((len(group.subject), shape[0]))\n"
        f"    own = np.empty((shape[6], shape[1]))\n"
        f"    found = density(carray(x, (dim,)), carray(slope, (dim,)), rows, own, group, shape,\n"
        f"                    kernel, numbers[{parts}] != 0, numbers[{parts + 1}], {arrays[-1]})\n"
        f"    carray(value, (1,))[0] = found\n"
        f"    return 0 if np.isfinite(found) else 4\n"
        f"def expand(dim, size, x, out, user):\n"
        f"    point, copy = carray(x, (dim,)), carray(out, (dim,))\n"
        f"    for d in range(dim):\n"
        f"        copy[d] = point[d]\n"
        f"    return 0\n",
        known,
    )
    number, size = types.CPointer(types.double), types.uint64
    log_density = cfunc(types.int64(size, number, number, number, types.voidptr))
    expand = cfunc(types.int64(size, size, number, number, types.voidptr))
    return log_density(known["log_density"]), expand(known["expand"])
