"""Which models lie within which: an outer one is at its best no less likely than an inner one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from knownminds.agents.bandits.curved_discounters import (
    ConstantSensitivityDiscounter,
    FixedCostDiscounter,
    GeneralisedHyperbolicDiscounter,
    RachlinDiscounter,
)
from knownminds.agents.bandits.discounters import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
)
from knownminds.agents.bandits.horizon_explorer import HorizonBlind, HorizonExplorer
from knownminds.agents.bandits.learners import (
    ForgettingLearner,
    OutcomeSensitivity,
    PearceHall,
    RescorlaWagnerChoiceKernel,
)
from knownminds.agents.bandits.reasoners import ConservativeBayes
from knownminds.agents.bandits.rescorla_wagner import RescorlaWagner, RescorlaWagnerDual
from knownminds.agents.bandits.two_step_hybrid import (
    TwoStepHybrid,
    TwoStepModelBased,
    TwoStepModelFree,
    TwoStepReduced,
)
from knownminds.agents.bandits.uncertainty_explorers import (
    ThompsonExplorer,
    UncertaintyExplorer,
    UpperConfidenceExplorer,
)
from knownminds.agents.bandits.weighted_bayes import WeightedBayes
from knownminds.agents.baselines.choice_kernel import ChoiceKernel
from knownminds.agents.baselines.perseverator import Perseverator
from knownminds.agents.baselines.random_responder import RandomResponder
from knownminds.agents.causes.associative_reasoner import AssociativeReasoner
from knownminds.agents.causes.mutation_sampler import MutationSampler
from knownminds.agents.causes.noisy_or import NoisyOr, NoisyOrFive, NoisyOrThree
from knownminds.agents.chance.weighers import CorrelationNeglecter, CorrelationWeigher
from knownminds.agents.decisions.ambiguity_takers import (
    AlphaMaxmin,
    AmbiguityInsensitive,
    AmbiguityNeutral,
)
from knownminds.agents.decisions.risk_takers import (
    ExpectedUtility,
    ExpectedValue,
    Minimax,
    ProspectTheory,
    ProspectTheoryTverskyKahneman,
)
from knownminds.agents.decisions.sharers import (
    InequityAverse,
    InequityAverseContributor,
    Selfish,
    SelfishContributor,
)
from knownminds.agents.diagnosis.belief_violators import (
    FrameDependent,
    IncoherentBeliever,
    Misreporter,
    NoisyReporter,
    NonMonotoneDecider,
    OutcomePeeker,
)
from knownminds.agents.diagnosis.prospect_utility import (
    ProspectUtility,
    ProspectUtilityTverskyKahneman,
)
from knownminds.agents.diagnosis.random_utility import RandomUtility
from knownminds.agents.magnitudes.cue_combiner import (
    CueCombiner,
    CueCombinerEqual,
    CueCombinerOptimal,
)
from knownminds.agents.magnitudes.cue_weighers import (
    CueWeigher,
    CueWeigherBlurred,
    CueWeigherEqual,
    CueWeigherImage,
    CueWeigherOptimal,
    CueWeigherText,
)
from knownminds.agents.magnitudes.kalman_observer import (
    KalmanObserver,
    KalmanObserverAffine,
    KalmanObserverAffineLog,
    KalmanObserverGain,
    KalmanObserverGainLog,
    KalmanObserverLog,
    KalmanObserverShared,
    KalmanObserverSharedLog,
)
from knownminds.agents.magnitudes.linear_observers import (
    StaticBayesObserver,
    StaticBayesObserverAffine,
    StaticBayesObserverAffineLog,
    StaticBayesObserverGain,
    StaticBayesObserverGainLog,
    StaticBayesObserverLog,
    StaticBayesObserverShared,
    StaticBayesObserverSharedLog,
)

from .agent import Agent
from .parameters import Array


@dataclass(frozen=True)
class Nesting:
    """A model whose likelihood another one takes on at some of its parameters, or nears.

    Parameters
    ----------
    inner, outer
        The two models.
    embed
        Parameters of the inner model [N, P] -> those of the outer one that stand for them; what
        the inner model leaves open is anywhere, and a limit is at 0, 1 or infinity.
    """

    inner: type[Agent]
    outer: type[Agent]
    embed: Callable[[Array], Array]


def _laid_out(*places: int | float) -> Callable[[Array], Array]:
    """Take a column for each whole number, and for each other number (a float) that value."""

    def embed(theta: Array) -> Array:
        n = len(theta)
        return np.column_stack(
            [theta[:, p] if isinstance(p, int) else np.full(n, p) for p in places]
        )

    return embed


def _quasi_hyperbolic(theta: Array) -> Array:
    """Discount the first delay by nothing, and each by delta = exp(-k)."""
    return np.column_stack([np.ones(len(theta)), np.exp(-theta[:, 0]), theta[:, 1:]])


def _outcomes_alike(theta: Array) -> Array:
    """Let wins and their absence count half of beta each."""
    half = theta[:, 1] / 2
    return np.column_stack([theta[:, 0], half, half, theta[:, 2]])


def _cues_at_best(theta: Array) -> Array:
    """Weight the text by the variance of the picture's answers."""
    text, image = theta[:, 0] ** 2, theta[:, 1] ** 2
    return np.column_stack([image / (text + image), theta])


_INFINITE = float("inf")
_SAME_MEANS = (0, 1, 1, 1, 2)
_EACH_SAME_MEANS = (0, 1, 2, 2, 2, 3)
_GAIN, _EACH_GAIN = (0, 1, 2, 3, 1.0, 4), (0, 1, 2, 3, 4, 1.0, 5)
_OFFSET, _EACH_OFFSET = (0, 1, 2, 3, 4, 0.0, 5), (0, 1, 2, 3, 4, 5, 0.0, 6)
_DECIDER = tuple(range(8))

NESTED: tuple[Nesting, ...] = (
    Nesting(RescorlaWagner, RescorlaWagnerDual, _laid_out(0, 0, 1, 2)),
    Nesting(Perseverator, RescorlaWagner, _laid_out(0.5, 0.0, 0)),
    Nesting(RescorlaWagner, RescorlaWagnerChoiceKernel, _laid_out(0, 1, 1.0, 2)),
    Nesting(RescorlaWagner, ForgettingLearner, _laid_out(0, 0.0, 1, 2)),
    Nesting(RescorlaWagner, PearceHall, _laid_out(0, 0.0, 1, 2)),
    Nesting(RescorlaWagner, OutcomeSensitivity, _outcomes_alike),
    Nesting(Perseverator, ChoiceKernel, _laid_out(1.0, 0)),
    Nesting(ChoiceKernel, RescorlaWagnerChoiceKernel, _laid_out(0.5, 0.0, 0, 1)),
    Nesting(RandomResponder, Perseverator, _laid_out(0.0)),
    Nesting(RandomResponder, HorizonBlind, _laid_out(0.0, 0.0, _INFINITE)),
    Nesting(HorizonBlind, HorizonExplorer, _laid_out(0, 0, 1, 2, 2)),
    Nesting(UpperConfidenceExplorer, UncertaintyExplorer, _laid_out(0, 1, 0.0)),
    Nesting(ThompsonExplorer, UncertaintyExplorer, _laid_out(0.0, 0.0, 0)),
    Nesting(RandomResponder, ThompsonExplorer, _laid_out(0.0)),
    Nesting(TwoStepModelFree, TwoStepHybrid, _laid_out(0, 1, 2, 3, 4, 0.0, 5)),
    Nesting(TwoStepModelBased, TwoStepHybrid, _laid_out(0.5, 0, 0.5, 1, 2, 1.0, 3)),
    Nesting(TwoStepReduced, TwoStepHybrid, _laid_out(0, 0, 1.0, 1, 1, 2, 3)),
    Nesting(ExponentialDiscounter, QuasiHyperbolicDiscounter, _quasi_hyperbolic),
    Nesting(ExponentialDiscounter, ConstantSensitivityDiscounter, _laid_out(0, 1.0, 1, 2)),
    Nesting(HyperbolicDiscounter, GeneralisedHyperbolicDiscounter, _laid_out(0, 1.0, 1, 2)),
    Nesting(HyperbolicDiscounter, RachlinDiscounter, _laid_out(0, 1.0, 1, 2)),
    Nesting(HyperbolicDiscounter, FixedCostDiscounter, _laid_out(0, 0.0, 1, 2)),
    Nesting(ConservativeBayes, WeightedBayes, _laid_out(0, 1, 1, 2)),
    Nesting(NoisyOrThree, NoisyOr, _laid_out(0, 1, 2, 2, 3)),
    Nesting(NoisyOr, NoisyOrFive, _laid_out(0, 0, 1, 2, 3, 4)),
    Nesting(NoisyOr, MutationSampler, _laid_out(0, 1, 2, 3, _INFINITE, 4)),
    Nesting(NoisyOr, AssociativeReasoner, _laid_out(0, 1, 2, 3, 0.0, 4)),
    Nesting(StaticBayesObserverShared, StaticBayesObserver, _laid_out(*_SAME_MEANS)),
    Nesting(StaticBayesObserverSharedLog, StaticBayesObserverLog, _laid_out(*_SAME_MEANS)),
    Nesting(StaticBayesObserver, StaticBayesObserverGain, _laid_out(*_GAIN)),
    Nesting(StaticBayesObserverLog, StaticBayesObserverGainLog, _laid_out(*_GAIN)),
    Nesting(StaticBayesObserverGain, StaticBayesObserverAffine, _laid_out(*_OFFSET)),
    Nesting(StaticBayesObserverGainLog, StaticBayesObserverAffineLog, _laid_out(*_OFFSET)),
    Nesting(KalmanObserverShared, KalmanObserver, _laid_out(*_EACH_SAME_MEANS)),
    Nesting(KalmanObserverSharedLog, KalmanObserverLog, _laid_out(*_EACH_SAME_MEANS)),
    Nesting(KalmanObserver, KalmanObserverGain, _laid_out(*_EACH_GAIN)),
    Nesting(KalmanObserverLog, KalmanObserverGainLog, _laid_out(*_EACH_GAIN)),
    Nesting(KalmanObserverGain, KalmanObserverAffine, _laid_out(*_EACH_OFFSET)),
    Nesting(KalmanObserverGainLog, KalmanObserverAffineLog, _laid_out(*_EACH_OFFSET)),
    Nesting(CueCombinerEqual, CueCombiner, _laid_out(0.5, 0, 1, 2)),
    Nesting(CueCombinerOptimal, CueCombiner, _cues_at_best),
    Nesting(CueWeigherEqual, CueWeigher, _laid_out(0.5, 0, 1, 2, 3)),
    Nesting(CueWeigherText, CueWeigher, _laid_out(1.0, 0, 1, 2, 3)),
    Nesting(CueWeigherImage, CueWeigher, _laid_out(0.0, 0, 1, 2, 3)),
    Nesting(CueWeigherOptimal, CueWeigher, _cues_at_best),
    Nesting(ExpectedValue, ExpectedUtility, _laid_out(1.0, 0)),
    Nesting(ExpectedUtility, ProspectTheory, _laid_out(0, 0, 1.0, 1.0, 1.0, 1)),
    Nesting(ExpectedUtility, ProspectTheoryTverskyKahneman, _laid_out(0, 0, 1.0, 1, 1.0, 1.0)),
    Nesting(CorrelationNeglecter, CorrelationWeigher, _laid_out(0, 0.0, 1)),
    Nesting(AmbiguityNeutral, AlphaMaxmin, _laid_out(0.5, 0)),
    Nesting(AmbiguityNeutral, AmbiguityInsensitive, _laid_out(0.0, 0.0, 0)),
    Nesting(RandomResponder, Minimax, _laid_out(1.0)),
    Nesting(Selfish, InequityAverse, _laid_out(0.0, 0.0, 0)),
    Nesting(SelfishContributor, InequityAverseContributor, _laid_out(0.0, 0.0, 0)),
    Nesting(CueWeigherOptimal, CueWeigherBlurred, _laid_out(0, 1, 2, 3, 0.0)),
    Nesting(RandomUtility, ProspectUtility, _laid_out(*_DECIDER[:4], 1.0, *_DECIDER[4:])),
    Nesting(
        RandomUtility,
        ProspectUtilityTverskyKahneman,
        _laid_out(*_DECIDER[:4], 1.0, *_DECIDER[4:]),
    ),
    Nesting(RandomUtility, NoisyReporter, _laid_out(*_DECIDER)),
    Nesting(RandomUtility, OutcomePeeker, _laid_out(*_DECIDER, 0.0)),
    Nesting(RandomUtility, Misreporter, _laid_out(*_DECIDER, 0.0)),
    Nesting(RandomUtility, IncoherentBeliever, _laid_out(*_DECIDER, 0.0)),
    Nesting(RandomUtility, FrameDependent, _laid_out(*_DECIDER, 0.0)),
    Nesting(RandomUtility, NonMonotoneDecider, _laid_out(*_DECIDER, 0.0)),
)
