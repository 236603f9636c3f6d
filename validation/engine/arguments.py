"""What the studies' arguments may be, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from knownminds.agents import AGENTS, LAPSE, Model, Parameters, Selection
from knownminds.environments import Environment, make, unknown
from knownminds.inference import MEASURES, Analysis, ChosenQuestions, StoppingRule, SubjectMeasure

from .members import register

MOST_TRIALS = 1_000_000  # of a session


def resolve_environment(
    environment: Environment | str, trials: int | None = None, *, listed: bool = True
) -> Environment:
    """Return the experiment, with the given number of trials per session if that can be set.

    One that is on no list is put there, unless nothing will rebuild it by its name (not `listed`),
    or a control changes it.
    """
    experiment = make(environment) if isinstance(environment, str) else environment
    if listed and not experiment.changed_by:
        register(type(experiment))
    if trials is None:
        return experiment
    if experiment.size is None:
        raise ValueError(
            f"The number of trials of {experiment.name} is fixed at {experiment.n_trials}."
        )
    per_unit = experiment.n_trials // experiment.settings[experiment.size]
    if trials < per_unit or trials % per_unit:
        raise ValueError(
            f"Sessions of {experiment.name} have a multiple of {per_unit} trials; got {trials}."
        )
    if trials > MOST_TRIALS:
        raise ValueError(f"A session has at most {MOST_TRIALS:,} trials; got {trials:,}.")
    return type(experiment)(**experiment.settings | {experiment.size: trials // per_unit})


def changed_settings(environment: Environment) -> dict[str, Any]:
    """Return the settings that differ from the experiment's, but for the number of trials."""
    shipped = make(environment.name).settings
    return {
        name: value
        for name, value in environment.settings.items()
        if value != shipped[name] and name != environment.size
    }


def settings_but_size(environment: Environment) -> dict[str, Any]:
    """Return all settings but the one that says how long a session is."""
    return {k: v for k, v in environment.settings.items() if k != environment.size}


def set_to(environment: Environment, settings: Mapping[str, Any] | None) -> Environment:
    """Return an experiment with some settings changed; ValueError names an unknown."""
    if not settings:
        return environment
    for name in settings:
        if name not in environment.settings:
            raise ValueError(unknown(f"setting of {environment.name}", name, environment.settings))
    return make(environment.name, **{**environment.settings, **settings})


def played_as(
    environment: Environment | str, models: Sequence[type[Model] | str], given: Mapping[str, Any]
) -> tuple[Environment | str, dict[str, float]]:
    """Sort what is set into an experiment's settings, which it then has, and true parameters."""
    experiment = resolve_environment(environment)
    agents = [resolve_model(model) for model in models]
    parameters = {name for model in agents for name in model.parameters.names}
    truth = {name: value for name, value in given.items() if name in parameters}
    settings = {name: value for name, value in given.items() if name not in parameters}
    for name in settings:
        if name == "design" and name not in experiment.settings:
            raise ValueError(f"{experiment.name} has a single design; got {settings[name]!r}.")
        if name not in experiment.settings:
            whose = " or ".join(model.name for model in agents)
            kind = f"parameter of {whose} or setting" if agents else "setting"
            known = [*sorted(parameters), *experiment.settings]
            raise ValueError(unknown(f"{kind} of {experiment.name}", name, known))
    for name, value in truth.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ValueError(f"The parameter {name} is a number; got {value!r}.")
    return (set_to(experiment, settings) if settings else environment), truth


def resolve_model(model: type[Model] | str) -> type[Model]:
    """Return the model class of this name; ValueError names the nearest ones.

    A class that is on no list is put there.
    """
    if not isinstance(model, str):
        register(model)
        return model
    if model not in AGENTS:
        raise ValueError(
            f"{unknown('model', model, AGENTS)} A model of your own comes with --plugin FILE."
        )
    return AGENTS[model]


def several(values: Any) -> list[Any]:
    """Return one value or several as a list."""
    whole = isinstance(values, str) or not isinstance(values, Sequence)
    return [values] if whole else list(values)


def one_of(kind: str, value: str, names: Iterable[str]) -> None:
    """Raise ValueError, with the nearest names, if the value is none of them."""
    if value not in (known := list(names)):
        raise ValueError(unknown(kind, value, known))


def check_settings(settings: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ValueError at a setting of an audit that is unknown, or unlike its default.

    Parameters
    ----------
    known : Each setting with its default, or a value like it; a list is of numbers.
    """
    names = {int: "a whole number", float: "a number", str: "text", list: "numbers"}
    for name, value in settings.items():
        one_of("setting of the audit", name, known)
        kind = type(known[name])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        good = {
            int: number and value == int(value),
            float: number,
            str: isinstance(value, str),
            list: all(isinstance(one, int | float) for one in np.ravel(value).tolist()),
        }
        if not good.get(kind, True):
            raise ValueError(f"The setting {name} is {names[kind]}; got {value!r}.")


def resolve_chosen(
    environment: Environment,
    questions: int | None,
    adaptive: type[Model] | str | None,
    fixed: Mapping[str, float] | None = None,
) -> ChosenQuestions | None:
    """Return how the questions of a session are chosen; None if all are asked in order.

    Parameters
    ----------
    questions : How many there are.
    adaptive : The model for whose parameters they are chosen; None for those that come first.
    fixed : Parameters of the model that are known.

    Raises
    ------
    ValueError : If a number is lacking, or the experiment or the model does not allow it.
    """
    if questions is None:
        if adaptive is not None:
            raise ValueError(
                "Questions are chosen up to a number of them; got none. Say how many there are "
                "(--questions)."
            )
        return None
    if adaptive is None:
        chosen = ChosenQuestions(None, questions, "order")
    else:
        chosen = ChosenQuestions(resolve_model(adaptive), questions, fixed=fixed)
    chosen.check(environment)
    return chosen


def chosen_options(
    environment: Environment, questions: int | None, adaptive: type[Model] | str | None
) -> dict[str, Any]:
    """Return how questions are chosen as options of a cell, checked; {} if all are asked."""
    if resolve_chosen(environment, questions, adaptive) is None:
        return {}
    return {
        "questions": questions,
        "adaptive": None if adaptive is None else resolve_model(adaptive).name,
    }


def resolve_stop(environment: Environment, file: str | os.PathLike[str] | None) -> Analysis | None:
    """Return the analysis that a rule of a TOML file stops; None without a file."""
    if file is None:
        return None
    rule = StoppingRule.read(file)
    if not rule.measure:
        raise ValueError(f"A rule that stops a run says its measure; {file} does not. Name one.")
    one_of("measure", rule.measure, MEASURES)
    measure = MEASURES[rule.measure].in_place(environment)
    if environment.name not in measure.environments:
        raise ValueError(
            f"{rule.measure} is read off {', '.join(measure.environments)}; got "
            f"{environment.name}. Name a measure of it."
        )
    if not isinstance(measure, SubjectMeasure) or not np.isfinite(measure.null):
        raise ValueError(
            f"A stopping rule looks at a value of each session and tests a null value; "
            f"{rule.measure} has another test or none. Name another measure."
        )
    return Analysis.of(measure, 1, stop=rule)


def check_truth(parameters: Parameters, truth: Mapping[str, float] | None) -> dict[str, float]:
    """Return true values as plain numbers; ValueError at one outside its support."""
    for name, value in (truth or {}).items():
        support = parameters[name].support
        if not support.contains(np.asarray(value, dtype=float)):
            raise ValueError(
                f"{name} lies in {support}; got {value:g}. Choose a value inside its support."
            )
    return {name: float(value) for name, value in (truth or {}).items()}


def selection_of(model: type[Model], all_trials: bool) -> Selection | None:
    """Return the trials to which a model is fitted; ValueError if all are fitted anyway."""
    if all_trials and model.selection is None:
        raise ValueError(
            f"--all-trials is for models that are fitted to some trials; {model.name} is "
            "fitted to all as it is. Leave it out (--all-trials)."
        )
    return None if all_trials else model.selection


def check_lapse(lapse: float) -> float:
    """Return the lapse rate; ValueError if it is no probability."""
    if not LAPSE.support.contains(np.asarray(lapse, dtype=float)):
        raise ValueError(f"lapse lies in {LAPSE.support}; got {lapse:g}.")
    return float(lapse)


def check_dollars(dollars: float) -> None:
    """Raise ValueError if this is no amount of money that can be spent."""
    if not 0 < dollars < np.inf:
        raise ValueError(f"--dollars is an amount above 0; got {dollars:g}.")


def check_seed(seed: int) -> None:
    """Raise ValueError if random numbers cannot begin there."""
    if seed < 0:
        raise ValueError(f"Seeds are whole numbers from 0 on; got {seed}.")


def check_count(name: str, count: object) -> None:
    """Raise ValueError if this is no number of things, from 1 on."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on; got {count!r}.")
