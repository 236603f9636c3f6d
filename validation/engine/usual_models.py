"""The usual model of an experiment, where none is named."""

from __future__ import annotations

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make

FIRST = "rescorla_wagner_dual"  # wherever it plays
USUAL: dict[str, str] = {
    "instrumental_learning": "rescorla_wagner_dual",
    "coins": "belief_sampler",
    "dice": "belief_sampler",
    "choice": "belief_sampler",
    "preference": "belief_sampler",
    "collider": "noisy_or",
    "marker_location": "static_bayes_observer",
    "line_ratio": "static_bayes_observer",
    "maze_distance": "static_bayes_observer",
    "duration": "static_bayes_observer",
    "balloon_risk": "balloon_pumper",
    "horizon": "horizon_explorer",
    "probabilistic_reasoning": "weighted_bayes",
    "temporal_discounting": "hyperbolic_discounter",
    "diagnosis": "random_utility",
    "two_step": "two_step_reduced",
    "restless_bandit": "change_point_observer",
    "reversal_learning": "rescorla_wagner",
    "iowa_gambling": "prospect_valence_delta",
    "cue_conflict": "cue_weigher",
    "causal_inference": "network_reasoner",
    "causal_strength": "strength_judge",
    "risky_choice": "prospect_theory",
    "ambiguity": "alpha_maxmin",
    "counts": "evidence_weigher",
    "linked_coins": "correlation_weigher",
    "ultimatum": "inequity_averse",
    "public_goods": "conditional_cooperator",
    "adjusting_amount": "hyperbolic_discounter",
}


def usual_model(environment: str | None) -> str:
    """Return the name of the usual model of an experiment, also of one that a plugin brings."""
    if environment not in ENVIRONMENTS or AGENTS[FIRST].plays(make(environment)):
        return FIRST
    if environment in USUAL:
        return USUAL[environment]
    playing = (
        name
        for name, model in AGENTS.items()
        if model.plays(make(environment)) and len(model.parameters)
    )
    return next(playing, "random_responder")
