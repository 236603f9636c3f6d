"""A referee for models: questions that a good fit does not answer, on one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.agents import Model
from knownminds.environments import Environment, make
from knownminds.environments.record.folders import writable, write_text
from knownminds.inference import check_agent
from knownminds.inference.fits.identifiability import identifiability
from knownminds.validation.engine.arguments import (
    changed_settings,
    resolve_environment,
    resolve_model,
    set_to,
)
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.members import code_of, load_listed, loaded_files
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.question import Running, command_line, verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Rows, check_code, versions
from knownminds.validation.engine.usual_models import usual_model
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.recovery.model_recovery import check_rivals

from .judged import model_of, worst_of
from .predictions import predict_batch, predicted, prediction_study
from .questions import Referee
from .several import judge_folder
from .truth import PEEKS, leaks_of, peeks_of

FILE = "referee.json"  # in the folder of a referee: question, contract and null directions
# The parts, in their order: what each asks, and what its paragraph says.
PARTS = {
    "recovery": "Are the parameters recovered?",
    "calibration": "Are the posteriors calibrated?",
    "simulator": "Does the model say what its author's simulator does?",
    "rivals": "Is the model distinguished from its rivals?",
    "smallest": "From which size on is it distinguished from them?",
    "predictions": "What does it predict that they do not?",
}
ABOUT = ("experiment", "model", "against", "settings", "options", "contract", "null",
         "peeks", "leaks")  # fmt: skip
NOTES = (
    "Each verdict is the worst of its part. truth: a model peeks if an answer's probability "
    "changes with what nobody is told (rewards to come, hidden fields), and prompts leak if their "
    "words tell it. contract: `check_agent`. null directions: combinations "
    "of parameters that change no session's likelihood. predictions: means of panels of subjects, "
    "against a rival that takes the same sessions with a draw of its posterior; paired t tests, by "
    "Holm over all panels of a rival.",
)

referee = verb(Referee, __name__)


def compute(question: Referee) -> Result:
    """Answer the referee: of one model, or of a folder of them."""
    if isinstance(question.candidate, str) and Path(question.candidate).is_dir():
        return judge_folder(question)
    model = model_of(question.candidate)
    environment = set_to(resolve_environment(question.environment, question.trials),
                         question.settings)  # fmt: skip
    checked = check_agent(model, environment, question.seed)
    about: dict[str, Any] = {
        "experiment": environment.name,
        "model": model.name,
        "against": _rivals(question, model, environment) if checked.ok else [],
        "settings": environment.settings,
        "options": _options(question, model, environment),
        "contract": [[rule.name, rule.off, rule.broken] for rule in checked.rules],
        "null": [],
        "peeks": peeks_of(model, environment, question.seed),
        "leaks": leaks_of(environment, question.seed),
    }
    if checked.ok and len(model.parameters):
        identified = identifiability(model, environment, seed=question.seed)
        about["null"] = list(identified.sentences) if identified.null.shape[1] else []
    if question.out is not None:
        with writable(question.out) as folder:
            _claim(about, folder)
    parts = {}
    if checked.ok:
        for name, ask in _parts(question, model, environment, about["against"]).items():
            out = None if question.out is None else Path(question.out) / name
            parts[name] = ask(replace(question.running, out=out, progress=None))
            if question.progress is not None:
                question.progress(len(parts), len(PARTS))
    return _say(about, parts)


def _rivals(question: Referee, model: type[Model], environment: Environment) -> list[str]:
    """Return the names of the rivals: those that are named, or the experiment's usual model."""
    if not question.against:
        usual = usual_model(environment.name)
        return [usual if usual != model.name else "random_responder"]
    rivals = [resolve_model(name) for name in question.against]
    check_rivals([model, *rivals], environment)
    return [rival.name for rival in rivals]


def _options(question: Referee, model: type[Model], environment: Environment) -> dict[str, Any]:
    options = question.option_values() | {"subject_matter": str(question.candidate)}
    if not isinstance(question.candidate, str):
        options["subject_matter"] = model.name
    return options | {"environment": environment.name, "set": changed_settings(environment)}


def _claim(about: Mapping[str, Any], folder: Path) -> None:
    """Write down the options; ValueError if the folder holds something else."""
    file, content = folder / FILE, json.loads(json.dumps(about, default=str))
    if file.is_file():
        there = json.loads(file.read_text(encoding="utf-8"))
        if there["options"] != content["options"]:
            raise ValueError(
                f"The folder {folder} holds another referee's answer. Name another one."
            )
        check_code([there["model"], there["experiment"], there["against"]], there["code"], folder)
    if not file.is_file() and any(not f.name.startswith(".") for f in folder.iterdir()):
        raise ValueError(f"A referee needs an empty folder; {folder} is not. Name another one.")
    code = code_of([about["model"], about["experiment"], about["against"]])
    more = {"plugins": loaded_files(), "code": code}
    write_text(file, json.dumps({**content, **more}, indent=2))


def _parts(
    question: Referee, model: type[Model], environment: Environment, rivals: list[str]
) -> dict[str, Callable[[Running], Result]]:
    """Return what computes each part, given where and how."""
    from knownminds.validation.calibration.calibration import calibrate
    from knownminds.validation.calibration.simulator import simulator_options
    from knownminds.validation.recovery.confusion import confuse
    from knownminds.validation.recovery.parameter_recovery import recover

    models, seed, sessions = [model.name, *rivals], question.seed, question.sessions
    rivalry: dict[str, Any] = {"criteria": ["bic"], "replicates": question.replicates, "seed": seed}
    search: dict[str, Any] = {"find": "sessions", "target": question.target, "most": question.most}
    guesses = prediction_study(environment, model.name, rivals, question.subjects, seed)
    parts: dict[str, Callable[[Running], Result]] = {
        "recovery": lambda how: recover(
            environment, model, subjects=question.subjects, sessions=sessions, seed=seed,
            **vars(how),
        ),
        "calibration": lambda how: calibrate(
            environment, model, replicates=question.replicates, sessions=sessions, seed=seed,
            **vars(how),
        ),
        "rivals": lambda how: confuse(
            environment, models, sessions=sessions, **rivalry, **vars(how)
        ),
        "smallest": lambda how: confuse(environment, models, **search, **rivalry, **vars(how)),
        "predictions": lambda how: run(guesses, predict_batch, predicted, how),
    }  # fmt: skip
    if question.simulator is not None:
        simulator_options(question.simulator, environment, model)
        parts["simulator"] = lambda how: calibrate(
            environment, model, replicates=question.replicates, sessions=sessions, seed=seed,
            simulator=question.simulator, **vars(how),
        )  # fmt: skip
    if len(model.parameters):
        return {name: parts[name] for name in PARTS if name in parts}
    if question.simulator is not None:
        raise ValueError(
            f"A simulator is tried by the ranks of parameters; {model.name} has none. Leave it out."
        )
    return {name: parts[name] for name in parts if name not in ("recovery", "calibration")}


def read_referee(folder: str | Path) -> Result:
    """Return what the referee in a folder says, as far as it went."""
    from knownminds.validation.report import read_result

    file = Path(folder) / FILE
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        plugins, about = about["plugins"], {name: about[name] for name in ABOUT}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{file} is damaged or was not written by a referee ({error!r}). Use another folder."
        ) from None
    load_listed(plugins, folder)
    parts = {}
    for name in PARTS:
        inner = Path(folder) / name
        if (inner / "study.json").is_file():
            rows = name == "predictions"
            parts[name] = predicted(Rows.read(inner)) if rows else read_result(inner)
    return _say(about, parts)


def _say(about: Mapping[str, Any], parts: Mapping[str, Result]) -> Result:
    """Put the verdicts of all parts above their tables and figures."""
    rules = pd.DataFrame(about["contract"], columns=["rule", "off by", "broken"])
    broken = [text for text in rules["broken"] if text]
    peeks, leaks = about["peeks"], about["leaks"]
    told = ([f"answers go by {', '.join(peeks)}, which nobody is told"] if peeks else []) + leaks
    verdicts = {
        "truth": Verdict(PEEKS if peeks else "leaks" if leaks else "not told", tuple(told)),
        "contract": Verdict("broken" if broken else "kept", tuple(broken[:1])),
    }
    if not broken:
        null = about["null"]
        verdicts["null directions"] = Verdict("not identified" if null else "none", tuple(null))
    for name, result in parts.items():
        verdicts[name] = worst_of(name, result, about["model"])
    options = dict(about["options"])
    environment = make(about["experiment"], **about["settings"])
    return Result(
        f"What does {about['model']} stand up to in {about['experiment']}?",
        verdicts=verdicts,
        tables={"Contract": rules.drop(columns="broken").set_index("rule")},
        parts=[
            Part(name, PARTS[name], tables=one.tables, figures=one.figures, command=one.command)
            for name, one in parts.items()
        ],
        notes=NOTES,
        attempted=sum(one.attempted for one in parts.values()),
        failed=sum(one.failed for one in parts.values()),
        missing=sum(one.missing for one in parts.values()),
        options={**options, "experiment": about["experiment"], "model": about["model"],
               "against": about["against"], "trials": environment.n_trials},
        command=command_line("referee", options.pop("subject_matter"), **options),
        seconds=sum(one.seconds for one in parts.values()),
        versions=versions(),
    )  # fmt: skip
