"""What a pilot says of the group that a study will meet: draws of its hierarchical fit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.environments import ANSWERED, ENVIRONMENTS, make
from knownminds.inference import Measure
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.data.trials_of_runs import read_one
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.parts import identifier
from knownminds.validation.studies import POSTERIOR, RESULT

from .dials import GroupDial

WORDS = "templates"  # the setting that names an experiment's wording
DRAWS = 200  # of the pilot's posterior, spaced evenly, that stand in a study's population
CONTRASTS = "Contrasts on the natural scale"  # a table of a fit with a formula
_GROUP = re.compile(r"(\w+) ~ (\w+)\[T\.(.+)\]")  # what a formula's effect of two groups is called
LEAST_SUBJECTS = 2  # below, a spread between subjects is the prior's


@dataclass(frozen=True)
class Pilot:
    """Draws of a group's means and spreads from the posterior of a pilot.

    Parameters
    ----------
    folder : In which the fit is.
    environment, model : Names.
    mean, sd : Unconstrained scale, [draws, P], in the order of the model's parameters.
    subjects : Of the pilot.
    lost : How many of its answers could not be read, of how many trials.
    second : Means of the second of two groups that a formula tells apart, [draws, P]; `mean` is the
        first one's. None without a formula.
    formula, groups : The formulas, and the names of both groups: "group control", "group patient".
    """

    folder: str
    environment: str
    model: str
    mean: Array
    sd: Array
    subjects: int
    lost: tuple[int, int]
    second: Array | None = None
    formula: str = ""
    groups: tuple[str, ...] = ()

    @property
    def population(self) -> Population:
        """The population of a cell: the group's draws, and their means."""
        names = AGENTS[self.model].parameters.names
        middle, spread = self.mean.mean(axis=0).tolist(), self.sd.mean(axis=0).tolist()
        draws = {"mean": self.mean.tolist(), "sd": self.sd.tolist()}
        pilot: dict[str, Any] = {"folder": self.folder, "subjects": self.subjects}
        if self.second is not None:
            draws["second"] = self.second.tolist()
            pilot |= {"formula": self.formula, "groups": list(self.groups)}
        return Population(
            group_mean=dict(zip(names, middle, strict=True)),
            group_sd=dict(zip(names, spread, strict=True)),
            group_draws=draws,
            pilot=pilot,
            lost=list(self.lost) if self.lost[0] else (),
        )

    @classmethod
    def of(cls, cell: Cell) -> Pilot | None:
        """Return the pilot that a cell's population is drawn from, if there is one."""
        if not cell.population.pilot:
            return None
        draws, origin = cell.population.group_draws, cell.population.pilot
        lost = cell.population.lost or (0, 0)
        return cls(
            origin["folder"],
            cell.environment,
            cell.model,
            np.array(draws["mean"], dtype=float),
            np.array(draws["sd"], dtype=float),
            origin["subjects"],
            (lost[0], lost[1]),
            np.array(draws["second"], dtype=float) if "second" in draws else None,
            origin.get("formula", ""),
            tuple(origin.get("groups", ())),
        )

    def sizes(self, measure: Measure) -> Array:
        """Return the group's mean of a measure in each draw, of two groups the difference."""
        model, means = AGENTS[self.model], [self.mean]
        means += [] if self.second is None else [self.second]
        rest = [
            [GroupDial(measure, model, *group).rest for group in zip(mean, self.sd, strict=True)]
            for mean in means
        ]
        return np.array(rest[-1]) - (np.array(rest[0]) if len(rest) == 2 else 0.0)

    def check_reaches(self, measure: Measure, size: float, difference: bool) -> None:
        """Raise ValueError, with how often, if groups that the pilot holds possible lack a size."""
        model, beyond, why = AGENTS[self.model], 0, ""
        for group in zip(self.mean, self.sd, strict=True):
            dial = GroupDial(measure, model, *group)
            try:
                dial.turn_to(np.array([size + (dial.rest if difference else 0.0)]))
            except ValueError as error:
                beyond, why = beyond + 1, why or str(error)
        if beyond:
            raise ValueError(
                f"An effect is one that groups can have; {beyond} of {len(self.mean)} draws of "
                f"the pilot in {self.folder} cannot. {why}"
            )


def read_pilot(
    fit: str | os.PathLike[str],
    environment: str,
    model: type[Model],
    unconverged: bool = False,
    draws: int = DRAWS,
    two_groups: bool = False,
) -> Pilot:
    """Read the group's posterior that a hierarchical `fit --out FOLDER` has left.

    Parameters
    ----------
    fit : The folder, or one of its files result.json and posterior.nc.
    environment, model : What the study is of.
    unconverged : Whether to go on with a posterior that did not converge.
    draws : How many are kept.
    two_groups : Whether two groups of a formula are compared in the study.

    Raises
    ------
    ValueError : If there is none, it is of something else or of one subject, has terms that a group
        of a power study lacks, or did not converge.
    """
    folder, result = _read(fit)
    options = result["options"]
    if options["environment"] != environment:
        raise ValueError(
            f"A pilot and its study are of the same experiment; {folder} is of "
            f"{options['environment']}, and the study of {environment}."
        )
    if options["model"] != model.name:
        raise ValueError(
            f"A pilot and its study have the same model; {folder} was fitted with "
            f"{options['model']}, and the study has {model.name}. Add --model {options['model']}, "
            "or fit the pilot again."
        )
    if options["method"] != "hierarchical":
        raise ValueError(
            f"A pilot's uncertainty about its group is that of a hierarchical fit; {folder} holds "
            f"one by {options['method']}. Fit it again with --method hierarchical."
        )
    _check_plain(folder, options, two_groups)
    if result["attempted"] < LEAST_SUBJECTS:
        raise ValueError(
            f"A pilot shows how subjects differ from {LEAST_SUBJECTS} on; {folder} has "
            f"{result['attempted']}. Ask more, or state the group with --set and --spread."
        )
    if result["verdicts"]["sampling"]["verdict"] != "converged" and not unconverged:
        raise ValueError(
            f"A pilot's posterior is drawn from once it has converged; {folder} has "
            f"{_state(result)}. Fit it again with --sampling target_accept=... or minutes=..., "
            "or go on all the same with --unconverged."
        )
    return _drawn(folder, model, result, draws)


def played_in(fit: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the model of a pilot, and the settings of its experiment that are not the shipped."""
    options = _read(fit)[1]["options"]
    return str(options["model"]), dict(options.get("played", {}))


def settings_of_run(folder: str | os.PathLike[str], experiment: str) -> dict[str, Any]:
    """Return the settings of an experiment in a run that are not the shipped ones, but its words.

    None are known of trials in a file that does not say them.
    """
    if experiment not in ENVIRONMENTS:
        return {}
    shipped = make(experiment).settings
    of_run = read_one(str(folder), None)[1].settings.get(experiment, {})
    return {k: v for k, v in of_run.items() if k in shipped and v != shipped[k] and k != WORDS}


def is_of_wordings(pilot: Any) -> bool:
    """Whether a pilot is a run or its trials, and not the folder of a fit."""
    if not isinstance(pilot, str | os.PathLike):
        return False
    path = Path(pilot)
    if path.is_file():
        return path.name not in (RESULT, POSTERIOR)
    return not (path / POSTERIOR).is_file() and any(path.rglob(TRIALS))


def pilot_of(
    fit: str | os.PathLike[str] | None,
    unconverged: bool,
    environment: str,
    models: Sequence[type[Model]],
    stated: Mapping[str, Mapping[str, float] | None],
    draws: int = DRAWS,
    two_groups: bool = False,
) -> Pilot | None:
    """Return the pilot of a study, a fit of one of its models; None without one.

    Raises
    ------
    ValueError : If a group is stated beside the pilot's; see also `read_pilot`.
    """
    if fit is None:
        if unconverged:
            raise ValueError("--unconverged is said of a pilot; add --from FIT.")
        return None
    for name, value in stated.items():
        if value:
            raise ValueError(
                f"With --from the group is the pilot's; got {name} for {', '.join(value)}. "
                "Leave one of them out."
            )
    fitted = str(_read(fit)[1]["options"]["model"])
    model = next((one for one in models if one.name == fitted), models[0])
    return read_pilot(fit, environment, model, unconverged, draws, two_groups)


def _read(fit: str | os.PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a fit, and the result in it."""
    folder = Path(fit)
    folder = folder.parent if folder.name in (RESULT, POSTERIOR) else folder
    try:
        content: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        of_fit = content["command"].startswith("knownminds fit ")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        of_fit = False
    if not of_fit:
        raise ValueError(
            "A pilot is what `knownminds fit DATA --method hierarchical --out FOLDER` leaves, or "
            f"(of wordings) a run with --paraphrases; {folder} has no {RESULT} of a fit and no "
            "trials. Name the folder of one."
        )
    return folder, content


def _check_plain(folder: Path, options: Mapping[str, Any], two_groups: bool) -> None:
    """Raise ValueError if the fitted group is not of independent, free, constant parameters."""
    names = ("fix", "fit_lapse", "crossed", "correlated", "separate", "unit")
    if options.get("formula") and not two_groups:
        raise ValueError(
            f"A pilot with a formula knows how two groups differ; {folder} has "
            f"{', '.join(options['formula'])}. Compare them with `power --comparison between` and "
            "two subjects or more, or fit it again without."
        )
    more = [name.replace("_", "-") for name in names if options.get(name)]
    if more:
        raise ValueError(
            "The group of a pilot has a mean and a spread of each parameter and nothing else; "
            f"{folder} was fitted with {', '.join(more)}. Fit it again without."
        )


def _state(result: Mapping[str, Any]) -> str:
    """Say how far a posterior is from converged."""
    terms = pd.DataFrame(result["tables"]["sampling"])
    counts = {row["of"]: row["number"] for row in result["tables"]["counts"]}
    return (
        f"an R-hat of {terms['r_hat'].max():.3f}, an effective sample size of "
        f"{terms[['ess_bulk', 'ess_tail']].min().min():.0f} and {counts['divergent draws']} "
        "divergent draws"
    )


def _drawn(folder: Path, model: type[Model], result: Mapping[str, Any], most: int) -> Pilot:
    from knownminds.inference import read_posterior

    posterior = read_posterior(folder / POSTERIOR)["posterior"]
    names = list(model.parameters.names)
    known = [str(name) for name in posterior["group_mean"]["parameter"].to_numpy()]
    if sorted(known) != sorted(names):
        raise ValueError(
            f"A pilot has every parameter of {model.name} ({', '.join(names)}); {folder} has "
            f"{', '.join(known)}."
        )
    groups = []
    for name in ("group_mean", "group_sd"):
        draws = posterior[name].sel(parameter=names).transpose("chain", "draw", "parameter")
        groups.append(draws.to_numpy().reshape(-1, len(names)))
    formula = list(result["options"].get("formula") or ())
    labels = _two_groups(folder, result, posterior) if formula else ()
    if formula:
        moved = posterior["effect"].transpose("chain", "draw", "term").to_numpy()
        second = groups[0].copy()
        for k, text in enumerate(posterior["term"].to_numpy()):
            second[:, names.index(str(text).partition(" ~ ")[0])] += moved[..., k].ravel()
        groups.append(second)
    n = len(groups[0])
    chosen = ((np.arange(min(most, n)) + 0.5) * n / min(most, n)).astype(int)
    mean, sd, *others = (np.asarray(group[chosen], dtype=float) for group in groups)
    lost = (0, 0)
    if outcomes := result["tables"].get("outcomes_of_the_answers"):
        unread = [row["count"] for row in outcomes if row["outcome"] not in ANSWERED]
        lost = (sum(unread), outcomes[0]["of"])
    environment = result["options"]["environment"]
    whole = Pilot(str(folder), environment, model.name, mean, sd, result["attempted"], lost)
    if not formula:
        return whole
    return replace(whole, second=others[0], formula="; ".join(formula), groups=labels)


def _two_groups(folder: Path, result: Mapping[str, Any], posterior: Any) -> tuple[str, str]:
    """Return the names of the two groups that all effects of a fit are between.

    Raises
    ------
    ValueError : If they are between more groups, of several columns, of numbers or within subjects.
    """
    terms = [str(term) for term in posterior["term"].to_numpy()]
    found = [_GROUP.fullmatch(term) for term in terms]
    pairs = {one.group(2, 3) for one in found if one is not None}
    contrasts = result["tables"].get(identifier(CONTRASTS), ())
    between = [row for row in contrasts if row["kind"] == "between"]
    if None in found or len(pairs) != 1 or len(between) != len(terms) or "|" in str(terms):
        raise ValueError(
            "A pilot with a formula tells two groups of subjects apart by one column, as "
            f"'alpha ~ group' does; {folder} has {', '.join(terms)}. Fit it again with such a "
            "formula, and of several groups with the rows of two (--where)."
        )
    ((column, last),) = pairs
    first = next(row["low_value"] for row in between if row["high_value"] == last)
    return f"{column} {first}", f"{column} {last}"
