"""A file to begin with: known minds in an experiment, their true parameters in a file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.environments import ENVIRONMENTS, Environment, Trials, make
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import check_writable, writable, write_text

from .arguments import one_of, resolve_model
from .simulated_data import simulated_data

SUBJECTS = 30
FIRST = "rescorla_wagner_dual"  # the usual model wherever it plays
# Who lives each experiment, and in which design where the shipped one is longer than a sample.
MINDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "instrumental_learning": ("rescorla_wagner_dual", {}),
    "coins": ("belief_sampler", {}),
    "dice": ("belief_sampler", {}),
    "choice": ("belief_sampler", {}),
    "preference": ("belief_sampler", {}),
    "collider": ("noisy_or", {}),
    "marker_location": ("static_bayes_observer", {}),
    "line_ratio": ("static_bayes_observer", {}),
    "maze_distance": ("static_bayes_observer", {}),
    "duration": ("static_bayes_observer", {}),
    "balloon_risk": ("balloon_pumper", {}),
    "horizon": ("horizon_explorer", {}),
    "probabilistic_reasoning": ("weighted_bayes", {"n_problems": 40}),
    "temporal_discounting": ("hyperbolic_discounter", {"design": "grid"}),
    "diagnosis": ("random_utility", {"n_contexts": 40}),
    "two_step": ("two_step_reduced", {"n_days": 200}),
    "restless_bandit": ("change_point_observer", {}),
    "reversal_learning": ("rescorla_wagner", {}),
    "iowa_gambling": ("prospect_valence_delta", {}),
    "cue_conflict": ("cue_weigher", {}),
    "causal_inference": ("network_reasoner", {}),
    "causal_strength": ("strength_judge", {}),
    "risky_choice": ("prospect_theory", {}),
    "ambiguity": ("alpha_maxmin", {}),
    "counts": ("evidence_weigher", {}),
    "linked_coins": ("correlation_weigher", {}),
    "ultimatum": ("inequity_averse", {}),
    "public_goods": ("conditional_cooperator", {}),
    "adjusting_amount": ("hyperbolic_discounter", {}),
}


def usual_model(environment: str | None) -> str:
    """Return the name of the model that an experiment is asked about if none is named."""
    if environment not in ENVIRONMENTS or AGENTS[FIRST].plays(place := make(environment)):
        return FIRST
    return _usual_in(place)


def _usual_in(environment: Environment) -> str:
    """Return who lives an experiment in a sample, also one that a plugin brings."""
    if environment.name in MINDS:
        return MINDS[environment.name][0]
    playing = (
        n for n, model in AGENTS.items() if model.plays(environment) and len(model.parameters)
    )
    return next(playing, "random_responder")


@dataclass(frozen=True)
class Sample:
    """Trials of known minds, and who they were.

    Parameters
    ----------
    trials
        As a participant's data come: without what was true.
    truth
        One row per subject: `subject`, and the model's parameters by name.
    model
        By whose equations they answered.
    environment
        The experiment with its settings.
    """

    trials: Trials
    truth: pd.DataFrame
    model: str
    environment: Environment

    def save(self, file: str | Path) -> Path:
        """Write the trials, and beside them FILE_truth.csv, whose path is returned."""
        path = Path(file)
        if path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"A sample is kept as .csv or .parquet; got {path.name!r}.")
        beside = path.with_name(f"{path.stem}_truth.csv")
        for each in (path, beside):
            check_writable(each)
        with writable(path.parent):
            self.trials.save(path)
            write_text(beside, csv_text(self.truth))
        return beside


def sample(
    environment: Environment | str,
    model: type[Agent] | str | None = None,
    *,
    subjects: int = SUBJECTS,
    seed: int = 0,
) -> Sample:
    """Let minds whose parameters are drawn from the priors live an experiment once each.

    Parameters
    ----------
    environment
        By name, in a design of the length of a study; or with settings of its own.
    model
        None for one that is usual in the experiment (`MINDS`).
    subjects
        How many.

    Raises
    ------
    ValueError
        If the experiment or the model is unknown, or the one does not play the other.
    """
    name = environment if isinstance(environment, str) else environment.name
    one_of("environment", name, ENVIRONMENTS)
    settings = MINDS[name][1] if name in MINDS else {}
    place = make(name, **settings) if isinstance(environment, str) else environment
    agent = resolve_model(model or _usual_in(place))
    agent.check_plays(place)
    lived = simulated_data(agent, place, subjects=subjects, seed=seed).frame
    true = [f"true_{parameter}" for parameter in agent.parameters.names]
    truth = lived.drop_duplicates("subject")[["subject", *true]].reset_index(drop=True)
    truth = truth.rename(columns=lambda column: str(column).removeprefix("true_"))
    trials = Trials.from_frame(lived.drop(columns=true), environment=place)
    return Sample(trials, truth, agent.name, place)
