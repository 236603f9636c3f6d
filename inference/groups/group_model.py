"""The group model: subjects' parameters and the law they come from, sampled together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import scipy
import xarray as xr
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters, Support
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.convergence import Convergence, check_convergence, group_terms
from knownminds.inference.posteriors.posterior import SubjectDraws
from knownminds.inference.subject_table import subject_table

from .crossed_levels import Levels, in_units, units_of
from .formulas import GroupDesign, Regressors
from .group_density import GroupDensity
from .sampling import OutOfTimeError, Settings, Tell, dataset_of, stacked, statistics_of, unstacked
from .subject_coordinates import SubjectCoordinates

if TYPE_CHECKING:
    import pymc as pm

ROUNDS = 5
TUNE = 500
# In prior sds; coordinates take the estimated spread of the group within these limits.
LEAST_SPREAD, MOST_SPREAD = 0.2, 5.0


@dataclass(frozen=True)
class HierarchicalFit(SubjectDraws):
    """Posterior of a group of subjects, with the verdict on its sampling.

    Parameters
    ----------
    model : Name of the model.
    subjects, parameters : Names of the units with parameters: the N subjects or, if a formula names
        a column within subjects, a row for each of its values, "p1 | on"; and the K estimated
        parameters.
    posterior : Draws of group_mean, group_sd, z, effect (if there are regressors), correlation (if
        requested), level_sd and deviation (if there are crossed factors), with the dimensions
        chain, draw, parameter, subject, term, pair, factor, level; all on the unconstrained scale.
        With columns within subjects there are also slope_sd, the spreads of subjects' effects
        (slope), and own, each subject's deviations (owner, own_deviation).
    convergence : R-hat, effective sample sizes, divergences and the verdict.
    settings : The settings of the last round of sampling.
    data, unknowns, design, levels : The fitted data and the group's parts, for everything that is
        computed from the draws.
    sample_stats : The sampler's statistics of each draw, with ArviZ's names.
    tried : A line per round of sampling: how it was sampled, and its result, or why it was broken
        off.
    """

    model: str
    subjects: tuple[str, ...]
    parameters: Parameters
    posterior: xr.Dataset
    convergence: Convergence
    settings: Settings
    data: ModelData = field(repr=False)
    unknowns: Unknowns = field(repr=False)
    design: GroupDesign = field(repr=False)
    levels: Levels | None = field(default=None, repr=False)
    sample_stats: xr.Dataset | None = field(default=None, repr=False)
    tried: tuple[str, ...] = ()
    method: str = "hierarchical"

    def broken_off(self) -> HierarchicalFit:
        """Return the fit with the reason that its draws are a part of what was to be drawn.

        Chains that got nowhere are not among them, so that it does not count as converged.
        """
        there = self.posterior.sizes
        reason = (
            f"broken off at the limit of time: {there['draw']} of {self.settings.draws} draws of "
            f"{there['chain']} of {self.settings.chains} chains"
        )
        reasons = (*self.convergence.reasons, reason)
        return replace(self, convergence=replace(self.convergence, reasons=reasons))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.parameters.names

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of the regression weights, "parameter ~ regressor"."""
        return self.design.regressors.names

    @property
    def slopes(self) -> tuple[str, ...]:
        """Names of the effects that differ between subjects: "alpha ~ drug[T.on]"."""
        return self.design.deviations.slopes

    @cached_property
    def z_draws(self) -> Array:
        """Draws on the unconstrained scale, [draws, N, K]."""
        return stacked(self.posterior, "z", "subject", "parameter")

    @cached_property
    def expected_z(self) -> Array:
        """The group's expectation of each subject, [draws, N or 1, K].

        It is the mean plus the effects of regressors and the deviations of crossed levels.
        """
        return expected_of(self.posterior, self.parameters, self.design.regressors, self.levels)

    @property
    def pairs(self) -> tuple[str, ...]:
        """Pairs of parameters, "alpha, beta", whose deviations are correlated; empty if none."""
        return tuple(map(str, self.posterior["pair"].to_numpy())) if self.correlated else ()

    @property
    def correlated(self) -> bool:
        """Whether subjects' deviations from the group are correlated."""
        return "correlation" in self.posterior

    @cached_property
    def spreads(self) -> Array:
        """Spreads of subjects' deviations, [draws, Q]: of each parameter, and of their slopes."""
        spread = stacked(self.posterior, "group_sd", "parameter")
        if not self.slopes:
            return spread
        return np.concatenate([spread, stacked(self.posterior, "slope_sd", "slope")], axis=1)

    @cached_property
    def covariance_roots(self) -> Array:
        """Cholesky roots of the covariance of subjects' deviations, [draws, Q, Q]."""
        spread = self.spreads
        k = spread.shape[1]
        whole = np.broadcast_to(np.eye(k), (len(spread), k, k)).copy()
        if self.correlated:
            later, earlier = self.design.deviations.pairs.T
            result = stacked(self.posterior, "correlation", "pair")
            whole[:, later, earlier] = whole[:, earlier, later] = result
        return spread[:, :, None] * np.linalg.cholesky(whole + 1e-12 * np.eye(k))

    @property
    def verdict(self) -> str:
        """ "converged" or "not converged"."""
        return self.convergence.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not "converged"; empty if it is."""
        return self.convergence.reasons

    @property
    def status(self) -> tuple[str, ...]:
        """Status of each subject: the group's verdict holds for all."""
        return ("ok" if self.verdict == "converged" else "failed",) * len(self.subjects)

    @cached_property
    def group(self) -> pd.DataFrame:
        """One row per group mean, spread (also that over crossed levels) and regression weight.

        Columns: mean, sd and 90% interval (low, high) on the unconstrained scale; for means the
        same mapped to the natural scale (natural, natural_low, natural_high); r_hat, ess_bulk,
        ess_tail.
        """
        rows = {}
        for term, draws, support in self.terms():
            low, high = np.quantile(draws, [0.05, 0.95])
            row = {"mean": draws.mean(), "sd": draws.std(ddof=1), "low": low, "high": high}
            if support is not None:
                natural = support.constrain(np.array([np.median(draws), low, high]))
                row |= dict(zip(("natural", "natural_low", "natural_high"), natural, strict=True))
            rows[term] = row
        frame = pd.DataFrame.from_dict(rows, orient="index")
        return frame.join(self.convergence.table)

    def terms(self) -> list[tuple[str, Array, Support | None]]:
        """Return the terms that describe the group: name, draws [S], and their scale."""
        supports = {name: self.parameters[name].support for name in self.names}
        terms = group_terms(self.posterior, self.effects)
        return [(name, draws.ravel(), supports.get(name)) for name, draws in terms.items()]

    def spread_differs(self, term: str) -> float:
        """Return the Bayes factor for a spread above 0: "sd(NAME)" or "sd(NAME | FACTOR)".

        It is the density of the spread at 0 under the prior over that under the posterior (Savage
        and Dickey). The latter comes from a kernel estimate of the draws on both sides of 0: a
        spread of either sign gives the same group, so that the density is smooth and even there.
        """
        draws = group_terms(self.posterior, ())[term].ravel()
        name = term.removeprefix("sd(").removesuffix(")").partition(" | ")[0]
        deviations = self.design.deviations
        scale = deviations.prior_scale(self.parameters)[deviations.names.index(name)]
        prior = scipy.stats.norm.pdf(0.0, scale=scale)
        after = float(scipy.stats.gaussian_kde(np.concatenate([draws, -draws]))(0.0)[0])
        return float(prior / max(after, np.finfo(float).tiny))

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per subject: posterior means and interval ends on the natural scale."""
        more = {"n_trials": self.data.n_trials, "status": self.status}
        return subject_table(self.subjects, self.names, self.estimate, self.interval(mass), more)


class SamplingOptions(TypedDict, total=False):
    """How a group is sampled: chains (4), draws (1,000) and tune (500) of each, seed, and these.

    Parameters
    ----------
    target_accept : Acceptance rate aimed at in the first round; a higher rate takes smaller steps,
        against divergences.
    cores : Chains run side by side; None for one per core.
    rounds : How often to sample at most. As long as the verdict is "not converged", the group is
        sampled again, in coordinates that go by its estimate. If draws were too few, the next round
        has twice the tuning and draws; if they are worth few independent ones, its steps follow
        correlations; after divergences it has smaller steps. The last round counts. `settings` of
        the fit says how it was sampled, and `tried` lists all rounds.
    related : Whether steps follow the correlations of numbers from the first round on.
    group_alone : Whether the verdict is on the law of the group, whatever subjects' own parameters
        are.
    seconds : A round that lasts longer is broken off, and the round before it counts. None for no
        limit. Results that converge in time do not depend on it.
    tell : Called with a line about the progress: at each round, and every half a minute.
    """

    chains: int
    draws: int
    tune: int
    target_accept: float
    seed: int
    cores: int | None
    related: bool
    rounds: int
    group_alone: bool
    seconds: float | None
    tell: Tell | None


class GroupOptions(TypedDict, total=False):
    """The parts of a group, as arguments of `hierarchical`."""

    formula: str | Sequence[str] | None
    unit: Sequence[str] | None
    crossed: Sequence[str] | None
    fixed: Mapping[str, float] | None
    lapse: bool
    all_trials: bool
    correlated: bool


class GroupAndSampling(GroupOptions, SamplingOptions, total=False):
    """The arguments of `hierarchical` besides model and trials."""


def hierarchical(
    model: type[Model], trials: Trials | ModelData, **options: Unpack[GroupAndSampling]
) -> HierarchicalFit:
    """Sample the posterior of a group: each subject's parameters and the law they come from.

    On the unconstrained scale z_i ~ Normal(mean + X_i effect, sd), sampled in the coordinates of
    `SubjectCoordinates`. mean has the model's prior, sd a half-normal one of scale `group_sd`, and
    effects have Normal(0, prior sd). Columns within subjects make a row of parameters for each of
    their values: z_ir ~ mean + X_ir effect + W_ir b_i, with the deviations b_i ~ Normal(0, D R D)
    of Bates, Mächler, Bolker and Walker (2015). With crossed factors, z_i ~ Normal(mean + X_i
    effect + sum_f level_f[i], sd), where level_f ~ Normal(0, level_sd_f), and level_sd has the same
    law as sd.

    Parameters
    ----------
    formula : Regressors of the group means, one formula or several: "alpha_positive ~ condition".
        For a column that changes within subjects, the formula also says how subjects differ in it,
        in the notation of lme4: "alpha ~ drug + (drug | subject)". With || deviations are not
        correlated, and with (1 | subject) the column moves all subjects alike. See `GroupDesign`.
    unit : Columns whose values together name the units that have parameters of their own, such as
        ("subject", "condition"); the subject alone by default.
    crossed : Columns that are constant within units, whose levels have deviations of their own.
        With the unit ("subject", "condition"), a unit is the sum of both and of what is left.
    fixed, lapse : Arguments as in `maximum_likelihood`.
    all_trials : Whether all trials are fitted by a model that has a `selection`.
    correlated : Whether the parameters of a subject may be correlated: z_i ~ Normal(mean + X_i
        effect, D R D) with the spreads D. The correlations R have the law of Lewandowski, Kurowicka
        and Joe (2009) with the shape 2, which mildly prefers small ones.
    sampling : See `SamplingOptions`; 4 chains of 1,000 draws after 500 of tuning by default.

    Raises
    ------
    ValueError : If arguments do not fit the data, or the first round does not end in time.
    """
    of_sampling = SamplingOptions.__annotations__
    sampling: Any = {name: value for name, value in options.items() if name in of_sampling}
    rest: Any = {name: value for name, value in options.items() if name not in of_sampling}
    group = GroupModel.of(model, trials, **rest)
    return group.sample(group.data, **sampling)


def pymc_model(
    model: type[Model], trials: Trials | ModelData, **group: Unpack[GroupOptions]
) -> pm.Model:
    """Return the group that `hierarchical` samples as a PyMC model, to be read and extended.

    `group` has the arguments of `hierarchical` except those of `SamplingOptions`. Samplers of PyMC
    and nutpie accept the model; compiling it takes some tens of seconds.
    """
    return GroupModel.of(model, trials, **group).pymc_model


@dataclass
class GroupModel:
    """The model of a group, sampled for any data of the same shape.

    Attributes
    ----------
    pymc_model : The same density as a PyMC model, built at its first use: to read, to extend, and
        to compare with.
    """

    unknowns: Unknowns
    design: GroupDesign
    levels: Levels | None
    data: ModelData = field(repr=False)

    @classmethod
    def of(
        cls, model: type[Model], trials: Trials | ModelData, **group: Unpack[GroupOptions]
    ) -> GroupModel:
        """Return the model of the group of these trials; see `hierarchical`."""
        if strange := set(group) - set(GroupOptions.__annotations__):
            raise TypeError(f"A group has no {', '.join(strange)}; see `hierarchical`.")
        formula, unit, crossed = group.get("formula"), group.get("unit"), group.get("crossed")
        fixed, lapse = group.get("fixed"), group.get("lapse", False)
        correlated = group.get("correlated", False)
        design, levels = None, None
        if isinstance(trials, ModelData):
            if formula is not None or unit is not None or crossed is not None:
                raise ValueError(
                    "Formula, unit and crossed need the trials themselves, not ModelData."
                )
            data = trials
        else:
            name = units_of(trials, unit or ("subject",))
            levels = Levels.of(crossed, trials, name) if crossed else None
            if unit:
                trials = Trials.from_frame(trials.frame.assign(subject=name))
            if formula is not None:
                design = GroupDesign.of(
                    formula,
                    trials.frame,
                    model,
                    Unknowns.of(model, fixed, lapse).parameters,
                    unit=tuple(unit or ("subject",)),
                    correlated=correlated,
                )
            rows = design.of_trial if design is not None and design.within else None
            every = group.get("all_trials", False)
            data = ModelData.read(model, trials, all_trials=every, rows=rows)
        return cls.build(
            data, levels=levels, fixed=fixed, lapse=lapse, correlated=correlated, design=design
        )

    @classmethod
    def build(
        cls,
        data: ModelData,
        *,
        levels: Levels | None = None,
        fixed: Mapping[str, float] | None = None,
        lapse: bool = False,
        correlated: bool = False,
        design: GroupDesign | None = None,
    ) -> GroupModel:
        """Return the model, given its parts; `levels` are those of subjects."""
        unknowns = Unknowns.of(data.model, fixed, lapse)
        parameters = unknowns.parameters
        if len(parameters) == 0:
            raise ValueError(
                f"A hierarchical fit needs a free parameter; {data.model.name} has none left. "
                "Compare its log-likelihood instead (method map)."
            )
        design = design or GroupDesign.plain(parameters, data.subjects, correlated)
        if levels is not None:
            levels = replace(levels, of_subject=levels.of_subject[design.deviations.subject])
        if correlated and len(design.deviations.names) < 2:
            raise ValueError(
                "Correlations are between two parameters or more; only "
                f"{parameters.names[0]} is free. Leave correlated out (--correlated)."
            )
        return cls(unknowns, design, levels, data)

    def only(self, subjects: NDArray[np.int64]) -> GroupModel:
        """Return the model of some of its subjects, by position; there are no crossed levels."""
        rows = np.flatnonzero(np.isin(self.design.deviations.subject, subjects))
        design = self.design.only(subjects)
        return GroupModel(self.unknowns, design, None, self.data.repeat(rows))

    @cached_property
    def pymc_model(self) -> pm.Model:
        """The density as a PyMC model."""
        from .group_graph import group_graph

        chosen = self.coordinates(self.data)
        return group_graph(self.data, self.unknowns, chosen, self.design, self.levels)

    def density(self, data: ModelData, chosen: SubjectCoordinates | None = None) -> GroupDensity:
        """Return the density of these data in the form that compiled code evaluates."""
        chosen = chosen or self.coordinates(data)
        return GroupDensity.of(data, self.unknowns, chosen, self.design, self.levels)

    def sample(self, data: ModelData, **sampling: Unpack[SamplingOptions]) -> HierarchicalFit:
        """Sample the posterior for data of the model's shape; see `SamplingOptions`."""
        if len(data) != len(self.data) or data.model is not self.data.model:
            raise ValueError(
                f"The model was built for {len(self.data)} subjects of {self.data.model.name}; got "
                f"{len(data)} of {data.model.name}. Build another GroupModel."
            )
        options: Any = {"tune": TUNE, **sampling}
        rounds, seconds = options.pop("rounds", ROUNDS), options.pop("seconds", None)
        tell, alone = options.pop("tell", None), options.pop("group_alone", False)
        settings = Settings(**options)
        if rounds < 1:
            raise ValueError(f"Sampling needs at least one round; got rounds={rounds}.")
        fit: HierarchicalFit | None = None
        tried: list[str] = []
        begun = perf_counter()
        for number in range(1, rounds + 1):
            chosen = self.coordinates(data, fit)
            if fit is not None:
                last = fit.convergence
                settings = settings.after(last.short, last.divergences > 0, last.slow)
            if tell is not None:
                tell(f"round {number} of {rounds} at most: {settings}")
            left = None if seconds is None else seconds - (perf_counter() - begun)
            try:
                trace = self.density(data, chosen).sample(settings, left, tell)
            except OutOfTimeError as broken:
                tried.append(f"{settings}: {broken}")
                if fit is None and broken.trace is None:
                    raise ValueError(
                        f"Sampling had {seconds:g} s, in which the first round ({settings}) did "
                        "not end, nor tuning. Give it more time (--sampling minutes=60), "
                        "or fit fewer subjects."
                    ) from None
                fit = fit or self._finish(data, broken.trace, settings, chosen, alone).broken_off()
                break
            fit = self._finish(data, trace, settings, chosen, alone)
            tried.append(f"{settings}: {'; '.join(fit.reasons) or 'converged'}")
            if tell is not None:
                tell(tried[-1])
            if fit.verdict == "converged":
                break
        assert fit is not None
        return replace(fit, tried=tuple(tried))

    def coordinates(
        self, data: ModelData, fit: HierarchicalFit | None = None
    ) -> SubjectCoordinates:
        """Return the coordinates for sampling, from the priors or from the estimated group.

        Only the expansion of a subject's likelihood depends on this choice, not the posterior.
        Subjects that are far apart, or close together, lie elsewhere than the priors assume.
        """
        unknowns, parameters = self.unknowns, self.unknowns.parameters
        if fit is not None:
            every = fit.z_draws.reshape(-1, len(parameters))
            least, most = LEAST_SPREAD * parameters.sd, MOST_SPREAD * parameters.sd
            spread = np.clip(every.std(axis=0), least, most)
            unknowns = unknowns.around(every.mean(axis=0), spread)
        return SubjectCoordinates.of(data, unknowns, self.levels)

    def _finish(
        self,
        data: ModelData,
        trace: Any,
        settings: Settings,
        chosen: SubjectCoordinates,
        group_alone: bool = False,
    ) -> HierarchicalFit:
        posterior = dataset_of(trace, "posterior")
        rows, subject_rows = self.density(data, chosen).rows(posterior)
        deviations, effects = self.design.deviations, self.design.regressors.names
        if self.levels is not None:
            posterior = _with_deviations(
                posterior, self.levels, self.unknowns.parameters, chosen, settings.seed
            )
        spread = abs(stacked(posterior, "signed_sd", "deviation"))
        kept = posterior.drop_vars(["eta", "signed_sd"]).drop_dims(
            ["owner", "deviation"], errors="ignore"
        )
        k = len(self.unknowns.parameters)
        kept = kept.assign(
            z=unstacked(kept, rows, "subject", "parameter"),
            group_sd=unstacked(kept, spread[:, :k], "parameter"),
        )
        names = {"parameter": list(self.unknowns.parameters.names), "subject": list(data.subjects)}
        if len(deviations.pairs):
            turn = stacked(posterior, "turn", "pair")
            signed = stacked(posterior, "signed_sd", "deviation")
            result = deviations.correlations(turn, signed)
            kept = kept.drop_vars(["turn", "pair"], errors="ignore")
            kept = kept.assign(correlation=unstacked(kept, result, "pair"))
            names["pair"] = list(deviations.pair_names)
        if effects:
            names["term"] = list(effects)
        if not deviations.simple:
            kept = kept.assign(
                slope_sd=unstacked(kept, spread[:, k:], "slope"),
                own=unstacked(kept, subject_rows, "owner", "own_deviation"),
            )
            names["slope"] = list(deviations.slopes)
            names["owner"] = list(self.design.subjects)
            names["own_deviation"] = list(deviations.names)
        if self.levels is not None:
            names["factor"] = list(self.levels.factors)
        kept = kept.assign_coords(names)
        sample_stats = statistics_of(dataset_of(trace, "sample_stats"))
        divergences = int(sample_stats["diverging"].sum())
        return HierarchicalFit(
            model=data.model.name,
            subjects=data.subjects,
            parameters=self.unknowns.parameters,
            posterior=kept,
            settings=settings,
            convergence=check_convergence(kept, effects, divergences, group_alone=group_alone),
            data=data,
            unknowns=self.unknowns,
            design=self.design,
            levels=self.levels,
            sample_stats=sample_stats,
        )


def _with_deviations(
    posterior: xr.Dataset,
    levels: Levels,
    parameters: Parameters,
    chosen: SubjectCoordinates,
    seed: int,
) -> xr.Dataset:
    """Replace the sampled variables of levels by group_mean, level and level_sd."""
    sd = stacked(posterior, "signed_level_sd", "factor", "parameter")
    spread = sd[:, levels.of_contrast]
    eta = stacked(posterior, "level_eta", "contrast", "parameter")
    contrast = spread * in_units(spread, eta, chosen.level, chosen.level_error)
    centre = stacked(posterior, "group_centre", "parameter")
    group, level = levels.spread_out(centre, sd, contrast, parameters.mean, parameters.sd, seed)
    kept = posterior.drop_vars(["group_centre", "level_eta", "contrast"], errors="ignore")
    kept = kept.assign_coords(level=list(levels.names))
    return kept.assign(
        group_mean=unstacked(kept, group, "parameter"),
        deviation=unstacked(kept, level, "level", "parameter"),
        level_sd=abs(kept["signed_level_sd"]),
    ).drop_vars("signed_level_sd")


def expected_of(
    posterior: xr.Dataset,
    parameters: Parameters,
    regressors: Regressors,
    levels: Levels | None = None,
) -> Array:
    """Return the unconstrained group mean of each subject, [draws, N (1 if all alike), K]."""
    expected: Array = stacked(posterior, "group_mean", "parameter")[:, None]
    if regressors.names:
        weighted = stacked(posterior, "effect", "term")[:, None] * regressors.by_subject
        expected = expected + weighted @ np.eye(len(parameters))[regressors.parameter]
    if levels is not None:
        offsets = stacked(posterior, "deviation", "level", "parameter")[:, levels.of_subject]
        expected = expected + offsets.sum(axis=2)
    return expected
