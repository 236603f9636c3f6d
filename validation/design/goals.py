"""For what a design is searched, and what one of its data sets says about that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents import AGENTS, Model
from knownminds.environments import unknown
from knownminds.inference import MEASURES
from knownminds.inference.analysis import LEVEL
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K
from knownminds.inference.posteriors.evidence import evidence_given
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.engine.population import draw_subjects, live
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.power.operating_characteristics import test_batch
from knownminds.validation.power.questions import PILOT
from knownminds.validation.reading import read_numbers

Kind = Literal["parameters", "models", "effect"]
DRAWS = 256  # of a posterior
UNUSABLE = "the posterior could not be integrated: its weights are worth too few points"
# What a design is judged by, in a word, and whether more of it is better.
JUDGED_BY = {"parameters": "spread", "models": "chance", "effect": "power"}
MORE_IS_BETTER = {"parameters": False, "models": True, "effect": True}


@dataclass(frozen=True)
class Goal:
    """For what a design is searched.

    Parameters
    ----------
    kind : What `names` are.
    names : Parameters, rival models, or the one measure.
    size : Of the effect, or `PILOT`.
    """

    kind: Kind
    names: tuple[str, ...]
    size: float | str = 0.0

    @classmethod
    def of(cls, text: str, model: type[Model]) -> Goal:
        """Read what `--for` says; ValueError names what it may be."""
        if "=" in text:
            name, _, size = text.partition("=")
            if size == PILOT:
                return cls("effect", (name,), PILOT)
            ((name, number),) = read_numbers("--for", [text]).items()
            return cls("effect", (name,), number)
        if text == "parameters":
            return cls("parameters", model.parameters.names)
        rivals = rivals_in(text)
        if len(rivals) > 1:
            return cls("models", tuple(rivals))
        names = list(dict.fromkeys(text.split(",")))
        known = [name for name in names if name in AGENTS]
        for name in names:
            if name in model.parameters.names:
                continue
            if name in MEASURES:
                raise ValueError(f"An effect has a size: --for {name}=SIZE; got {text!r}.")
            if known and name not in AGENTS:
                raise ValueError(unknown("model", name, AGENTS))
            if known:
                raise ValueError(f"Models are compared: name two or more; got {text!r}.")
            allowed = ["parameters", *model.parameters.names]
            raise ValueError(unknown(f"parameter of {model.name}", name, allowed))
        return cls("parameters", tuple(names))

    def __str__(self) -> str:
        names = " and ".join(self.names)
        if self.size == PILOT:
            return f"the pilot's {names}"
        if self.kind == "effect":
            return f"{names} = {self.size:g}"
        return names


def rivals_in(text: str) -> list[str]:
    """Return the models that are named, if all names are models'."""
    names = list(dict.fromkeys(text.split(",")))
    return names if all(name in AGENTS for name in names) else []


def judge_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate the data sets of a batch and say what each is worth: one row per data set.

    `score` is what designs are judged by, `information` what the data say in bits.
    """
    cell = study.cells[batch.cell]
    if cell.analysis.goal == "effect":
        rows = test_batch(study, batch, threads)
        hit = rows["p_value"].to_numpy(dtype=float) < LEVEL
        return rows.assign(score=hit.astype(float), information=np.nan)
    if cell.analysis.goal == "models":
        return _told_apart(study, batch, threads)
    return _parameters(study, batch, threads)


def _parameters(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Posterior spread of the named parameters, and the information about them.

    I(named; y) = E[log p(y | named) - log p(y)], both integrals by importance sampling around the
    mode of each data set's posterior: nested Monte Carlo (Ryan, Drovandi, McGree and Pettitt
    2016; Beck, Dia, Espath, Long and Tempone 2018).
    """
    cell = study.cells[batch.cell]
    model = AGENTS[cell.model]
    subjects = draw_subjects(study, batch)
    data = live(study, batch, subjects).data(model)
    parameters, unknowns = model.parameters, Unknowns.of(model)
    sample = posterior(model, data, draws=DRAWS, nuts=False, workers=threads)
    true = parameters.unconstrain(subjects.theta)
    held = [parameters.index(name) for name in cell.analysis.named]
    given = evidence_given(data, unknowns, held, true[:, held], sample)
    relative = np.sqrt(np.diagonal(sample.z_covariance, axis1=1, axis2=2)) / parameters.sd
    low, high = np.quantile(sample.z_draws, [0.05, 0.95], axis=0)
    usable = _usable(sample) & np.isfinite(given)
    columns: dict[str, Any] = {
        "status": np.where(usable, "ok", "failed"),
        "message": np.where(usable, "", UNUSABLE),
        "score": relative[:, held].mean(axis=1),
        "information": (given - sample.log_evidence) / np.log(2.0),
    }
    for k, name in enumerate(parameters.names):
        columns[f"spread_{name}"] = relative[:, k]
        columns[f"squared_error_{name}"] = (
            (sample.z_mean[:, k] - true[:, k]) / parameters.sd[k]
        ) ** 2
        inside = (low[:, k] <= true[:, k]) & (true[:, k] <= high[:, k])
        columns[f"covered_{name}"] = inside.astype(float)
    return pd.DataFrame(columns)


def _told_apart(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Posterior probabilities of the rivals, each equally probable beforehand.

    The mean of the largest probability is the chance that the most probable rival is the true one;
    it varies less than whether it is.
    """
    cell = study.cells[batch.cell]
    rivals = list(cell.analysis.rivals)
    sessions = live(study, batch, draw_subjects(study, batch))
    logs = []
    for name in rivals:
        model = AGENTS[name]
        data = sessions.data(model)
        sample = posterior(model, data, draws=DRAWS, nuts=False, workers=threads)
        logs.append(np.where(_usable(sample), sample.log_evidence, np.nan))
    log_evidence = np.stack(logs, axis=1)
    log_share = log_evidence - logsumexp(log_evidence, axis=1, keepdims=True)
    usable = np.isfinite(log_share).all(axis=1)
    true_rival = rivals.index(cell.model)
    return pd.DataFrame(
        {
            "status": np.where(usable, "ok", "failed"),
            "message": np.where(usable, "", UNUSABLE),
            "score": np.exp(log_share.max(axis=1)),
            "information": np.log2(len(rivals)) + log_share[:, true_rival] / np.log(2.0),
            "right": (log_share.argmax(axis=1) == true_rival).astype(float),
        }
    )


def _usable(sample: Posterior) -> NDArray[np.bool_]:
    """Say which posteriors could be integrated, [N]."""
    return sample.pareto_k <= LARGEST_PARETO_K
