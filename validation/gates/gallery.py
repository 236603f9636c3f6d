"""The gallery: one page of all experiments, models and measures, made from the registries."""

from __future__ import annotations

import base64
import importlib.metadata
import inspect
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from markupsafe import Markup

from knownminds.agents import AGENTS, Agent, Parameter
from knownminds.environments import ENVIRONMENTS, Environment, make
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.words.told_history import Retelling
from knownminds.inference import MEASURES, Measure
from knownminds.validation.engine.verdicts import OPEN, RECOVERABLE_R, WEAK_R
from knownminds.validation.pages.html import fill
from knownminds.validation.pages.page import tone

from .gates import Gate, Recommendation, contradictions, recommendations, stored_gates

SEED = 1  # of the session whose first trial is shown
LONGEST_SETTING = 60  # characters of a default that are shown
ROW, LEFT, AXIS = 22, 110, 300  # of the drawing of correlations, in px


@dataclass(frozen=True)
class Link:
    """A member that has a place on the page."""

    kind: str
    name: str

    @property
    def anchor(self) -> str:
        """Where it is."""
        return f"{self.kind}-{self.name}"


@dataclass(frozen=True)
class Setting:
    """A setting of an experiment: its default, and what it means."""

    name: str
    default: str
    told: Markup


@dataclass(frozen=True)
class ShownEnvironment:
    """What the page says of an experiment.

    Parameters
    ----------
    shared
        What it has in common with its family.
    prompt
        Role and text of the messages of the first trial of a session.
    pictures
        Data URI and alternative text of each picture that a first trial can have.
    """

    link: Link
    summary: str
    source: str
    text: Sequence[Markup]
    shared: Sequence[Markup]
    asked: str
    settings: Sequence[Setting]
    prompt: Sequence[tuple[str, str]]
    pictures: Sequence[tuple[str, str]]
    players: Sequence[Link]
    measures: Sequence[Link]


@dataclass(frozen=True)
class ShownParameter:
    """What the page says of a parameter: values as they are read, "-" where there are none."""

    name: str
    told: str
    support: str
    prior: str
    verdict: str
    tone: str
    r: str
    bias: str
    coverage: str
    shuffled: str
    calibration: str
    calibration_tone: str
    why: str


@dataclass(frozen=True)
class ShownModel:
    """What the page says of a model.

    Parameters
    ----------
    extends, inherited
        The model that it is a member or variant of, and what that says, where its own words give
        no equation.
    design
        The recommended design in words; empty if it has none.
    provenance
        A line for each stored result: what was computed, when, with which command.
    """

    link: Link
    summary: str
    source: str
    text: Sequence[Markup]
    extends: Link | None
    inherited: Sequence[Markup]
    plays: Sequence[Link]
    parameters: Sequence[ShownParameter]
    design: str
    place: Link | None
    verdict: str
    tone: str
    note: str
    identified: Sequence[str]
    drawing: Markup
    command: str
    provenance: Sequence[str]
    warnings: Sequence[str]


@dataclass(frozen=True)
class ShownMeasure:
    """What the page says of a measure."""

    link: Link
    summary: str
    source: str
    text: Sequence[Markup]
    environments: Sequence[Link]
    settings: str
    null: str
    rational: Link | None
    violator: Link | None
    dial: str
    audit: Sequence[str]
    command: str


def gallery(out: str | os.PathLike[str]) -> Path:
    """Write the page of all experiments, models and measures into a folder; return the file.

    Nothing is computed: designs are those of `recommended.toml`, results those that are shipped.
    """
    with writable(out) as folder:
        page = folder / "gallery.html"
        write_text(page, gallery_page())
    return page


def gallery_page() -> str:
    """Return the page."""
    stored = stored_gates()
    return fill(
        "gallery.html",
        version=importlib.metadata.version("knownminds"),
        environments=[shown_environment(name) for name in ENVIRONMENTS],
        models=[shown_model(name, stored) for name in AGENTS],
        measures=[shown_measure(name, stored) for name in MEASURES],
        limits={"recoverable": RECOVERABLE_R, "weak": WEAK_R},
    )


def shown_environment(name: str) -> ShownEnvironment:
    """Gather what the page says of an experiment."""
    environment = _shipped(name)
    told = {found.called or k: found.help for k, found in environment.setting_table.items()}
    settings = [
        Setting(setting, _default(value), inline(told[setting]))
        for setting, value in environment.settings.items()
    ]
    return ShownEnvironment(
        link=Link("environment", name),
        summary=environment.summary,
        source=environment.source,
        text=paragraphs(description_of(type(environment))),
        shared=paragraphs(_family(environment)),
        asked=_asked(environment),
        settings=settings,
        prompt=[(message.role, message.content) for message in _first_prompt(environment)],
        pictures=_pictures(environment),
        players=[
            Link("model", other) for other, model in AGENTS.items() if model.plays(environment)
        ],
        measures=[Link("measure", m) for m, one in MEASURES.items() if name in one.environments],
    )


@cache
def _shipped(name: str) -> Environment:
    """Build an experiment as it is shipped, once: every model is asked whether it plays it."""
    return make(name)


def _family(environment: Environment) -> str:
    """Return what the family of an experiment has in common."""
    for base in type(environment).__mro__[1:]:
        if base in (Environment, Retelling):
            break
        if text := description_of(base):
            return text
    return ""


def _first_prompt(environment: Environment) -> Sequence[Any]:
    observation, _ = environment.reset(seed=SEED)
    return environment.render(observation, []).messages


def _pictures(environment: Environment) -> list[tuple[str, str]]:
    """Draw the first trial, where the experiment can show pictures."""
    if not environment.pictures:
        if "modality" not in environment.settings:
            return []
        try:
            environment = make(environment.name, **environment.settings | {"modality": "image"})
        except ValueError:  # it has words only
            return []
    images = [image for message in _first_prompt(environment) for image in message.images]
    observation, _ = environment.reset(seed=SEED)
    told = ", ".join(f"{name} {observation[name]:.4g}" for name in environment.fields.stimulus[:4])
    return [
        (
            f"data:image/png;base64,{base64.b64encode(image).decode()}",
            f"Picture shown on the first trial of {environment.name} ({told})",
        )
        for image in images
    ]


def _asked(environment: Environment) -> str:
    words = {
        "action": f"one of {environment.n_actions} actions",
        "response": "a number from {:g} to {:g}".format(*environment.response_range),
        "both": f"one of {environment.n_actions} actions and a number",
        "either": f"one of {environment.n_actions} actions on some trials, a number on the others",
    }
    paid = "rewards are paid" if environment.feedback else "nothing is paid"
    told = "earlier trials are retold" if environment.past != "none" else "each trial stands alone"
    given = words[environment.given]
    return f"At most {environment.n_trials:,} trials; asks for {given}; {paid}; {told}"


def _default(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 4] + " ..."


def shown_model(name: str, stored: Mapping[tuple[str, str], Gate]) -> ShownModel:
    """Gather what the page says of a model."""
    model = AGENTS[name]
    description = description_of(model)
    base = _told_by(model, description)
    design = recommendations().get(name)
    found = {kind: gate for (kind, whose), gate in stored.items() if whose == name}
    recovery = found.get("recovery")
    rows = [_shown_parameter(one, design, found) for one in model.parameters]
    verdict, colour = _overall(model, design, recovery)
    names = {other: key for key, other in AGENTS.items()}
    return ShownModel(
        link=Link("model", name),
        summary=model.summary,
        source=model.source,
        text=paragraphs(description),
        extends=Link("model", names[base]) if base in names else None,
        inherited=paragraphs(description_of(base)) if base else [],
        plays=[Link("environment", e) for e in ENVIRONMENTS if model.plays(_shipped(e))],
        parameters=rows,
        design=_design(design),
        place=None if design is None else Link("environment", design.environment),
        verdict=verdict,
        tone=colour,
        note="" if design is None else " ".join(filter(None, (design.note, design.control))),
        identified=() if recovery is None else tuple(recovery.sentences),
        drawing=drawing_of(recovery),
        command="" if design is None or not rows else design.command(),
        provenance=[_provenance(found[kind]) for kind in found],
        warnings=[text for gate in found.values() for text in _warnings(gate, design)],
    )


def _design(design: Recommendation | None) -> str:
    if design is None:
        return ""
    environment = design.make()
    told = [f"{environment.n_trials:,} trials"]
    told += [f"{k} = {json.dumps(v)}" for k, v in design.settings.items()]
    if design.sessions > 1:
        told.append(f"{design.sessions} sessions of each subject")
    if design.trials is None and not design.settings:
        told.append("as shipped")
    return ", ".join(told)


def _overall(
    model: type[Agent], design: Recommendation | None, recovery: Gate | None
) -> tuple[str, str]:
    """Say in a few words what the recommended design gives back."""
    if not len(model.parameters):
        return "no parameters, nothing to recover", ""
    if design is None:
        return "no design is recommended yet", "bad"
    if recovery is None:
        why = f" ({design.pending})" if design.pending else ""
        return f"no stored result yet{why}", "bad"
    words = recovery.verdicts()
    good = [name for name, word in words.items() if word == "recoverable"]
    if len(good) == len(words):
        return "gives every parameter back", "good"
    if not good and not any(word in OPEN for word in words.values()):
        return "no design found that gives a parameter back", "bad"
    told = f"gives back {', '.join(good) or 'none for certain'}"
    unsure = [name for name, word in words.items() if word in OPEN]
    lost = [name for name in words if name not in (*good, *unsure)]
    told += f"; open whether {', '.join(unsure)}" if unsure else ""
    told += f"; no design found for {', '.join(lost)}" if lost else ""
    return told, "fair"


def _shown_parameter(
    parameter: Parameter, design: Recommendation | None, found: Mapping[str, Gate]
) -> ShownParameter:
    name = parameter.name

    def of(kind: str) -> Mapping[str, Any]:
        return found[kind].quantities.get(name, {}) if kind in found else {}

    recovered, shuffled, ranks = of("recovery"), of("shuffled"), of("calibration")
    verdict = str(recovered.get("verdict", "-"))
    calibrated = str(ranks.get("verdict", "-"))
    fall = str(shuffled.get("verdict", ""))
    why = [] if design is None else [design.open.get(name, "")]
    if design is not None and name in design.kept:
        why.append(f"Shuffling keeps it: {design.kept[name]}")
    return ShownParameter(
        name=name,
        told=parameter.description,
        support=str(parameter.support),
        prior=told_prior(parameter),
        verdict=verdict,
        tone=tone(verdict),
        r=_with_error(recovered, "r", 3),
        bias=_with_error(recovered, "bias", 3),
        coverage=_with_error(recovered, "coverage", 2),
        shuffled=f"{_number(shuffled.get('r_shuffled'), 2)}, {fall}" if fall else "-",
        calibration=calibrated,
        calibration_tone=tone(calibrated),
        why=" ".join(filter(None, why)),
    )


def told_prior(parameter: Parameter) -> str:
    """Say what is expected of a parameter: median and central 95%, on the natural scale."""
    ends = parameter.mean + parameter.sd * scipy.stats.norm.ppf([0.5, 0.025, 0.975])
    middle, low, high = parameter.support.constrain(np.asarray(ends))
    scale = "" if parameter.support.kind == "identity" else f" of the {parameter.support.kind}"
    law = f"Normal({parameter.mean:g}, {parameter.sd:g}){scale}"
    return f"{middle:.3g} ({low:.2g} to {high:.3g}); {law}"


def _with_error(values: Mapping[str, Any], name: str, digits: int) -> str:
    if values.get(name) is None:
        return "-"
    error = values.get(f"{name}_error")
    shown = _number(values[name], digits)
    return shown if error is None else f"{shown} ({_number(error, digits)})"


def _number(value: Any, digits: int) -> str:
    return "-" if value is None or isnan(value) else f"{value:.{digits}f}"


def _provenance(gate: Gate) -> str:
    """Say in a line where a stored result comes from."""
    what = {
        "recovery": f"Recovery of {gate.units} subjects",
        "shuffled": f"Negative control, {gate.units} subjects with shuffled sessions",
        "calibration": f"Calibration of {gate.units} single posteriors",
        "audit": f"Audit with {gate.units} data sets per design",
    }[gate.kind]
    version = gate.versions["knownminds"]
    where = f"knownminds {version}, {gate.date}, {gate.seconds:,.0f} s"
    return f"{what}, {gate.failed} failed: {gate.command} ({where})"


def _warnings(gate: Gate, design: Recommendation | None) -> list[str]:
    said = []
    if gate.older_than:
        said.append(f"The stored {gate.kind} is older than {' and '.join(gate.older_than)}.")
    if design is not None and _shape(design) != (
        gate.environment,
        dict(gate.settings),
        gate.trials,
        gate.sessions,
    ):
        said.append(f"The stored {gate.kind} is that of another design than the recommended one.")
    return [*said, *(f"Claim not confirmed: {sentence}" for sentence in contradictions(gate))]


def _shape(design: Recommendation) -> tuple[str, dict[str, Any], int, int]:
    trials = design.make().n_trials
    return design.environment, dict(design.settings), trials, design.sessions


def drawing_of(recovery: Gate | None) -> Markup:
    """Draw the correlation of each parameter with its truth, with two standard errors."""
    if recovery is None or not recovery.quantities:
        return Markup("")
    rows = [(n, recovery.quantities[n]) for n in AGENTS[recovery.name].parameters.names]
    high, right = ROW * len(rows) + 30, LEFT + AXIS

    def x(r: float) -> float:
        return LEFT + AXIS * min(max(r, 0.0), 1.0)

    said = "; ".join(f"{name} {_number(v['r'], 2)} ({v['verdict']})" for name, v in rows)
    label = f"Correlation of estimate and truth by parameter of {recovery.name}: {said}"
    parts = [
        f'<svg class="drawing r" role="img" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 0 {right + 12} {high}" width="{right + 12}" height="{high}">'
    ]
    for r in (0.0, WEAK_R, RECOVERABLE_R, 1.0):
        dashed = ' stroke-dasharray="3 3"' if r in (WEAK_R, RECOVERABLE_R) else ""
        parts.append(
            f'<line class="tick" x1="{x(r):.1f}" x2="{x(r):.1f}" y1="4" y2="{high - 24}"{dashed}/>'
            f'<text x="{x(r):.1f}" y="{high - 8}" text-anchor="middle">{r:g}</text>'
        )
    for k, (name, values) in enumerate(rows):
        y = 4 + ROW * (k + 0.5)
        parts.append(f'<text x="0" y="{y + 4:.1f}">{escape(name)}</text>')
        if values["r"] is None:
            continue
        reach = 2 * (values["r_error"] or 0.0)
        low, top = x(values["r"] - reach), x(values["r"] + reach)
        shade = tone(str(values["verdict"]))
        parts.append(
            f'<line class="{shade}" x1="{low:.1f}" x2="{top:.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="{shade}" cx="{x(values["r"]):.1f}" cy="{y}" r="4"/>'
        )
    return Markup("".join([*parts, "</svg>"]))


def shown_measure(name: str, stored: Mapping[tuple[str, str], Gate]) -> ShownMeasure:
    """Gather what the page says of a measure."""
    measure = MEASURES[name]
    description = description_of(type(measure))
    null = "none: it is a score without a test" if isnan(measure.null) else f"{measure.null:g}"
    return ShownMeasure(
        link=Link("measure", name),
        summary=measure.summary,
        source=measure.source,
        text=paragraphs(description),
        environments=[Link("environment", place) for place in measure.environments],
        settings=", ".join(f"{k} = {json.dumps(v)}" for k, v in measure.settings.items()),
        null=null,
        rational=Link("model", measure.rational) if measure.rational in AGENTS else None,
        violator=Link("model", measure.violator) if measure.violator in AGENTS else None,
        dial=_dial(measure),
        audit=_audited(stored.get(("audit", name))),
        command=f"knownminds audit {name}",
    )


def _audited(gate: Gate | None) -> list[str]:
    """Say what an audit found: size and power of the test, bias, and coverage of intervals."""
    if gate is None:
        return []
    said = []
    for name, values in gate.quantities.items():
        told = [f"bias {_with_error(values, 'bias', 3)}"]
        told.append(f"95% intervals hold the truth in {_with_error(values, 'coverage', 2)}")
        if values.get("rejected") is not None:
            told.insert(0, f"the test rejects in {_with_error(values, 'rejected', 2)}")
        word = "" if values["verdict"] == "-" else f" ({values['verdict']})"
        said.append(f"Audited with {name}: {'; '.join(told)}{word}.")
    return [*said, _provenance(gate), *_warnings(gate, None)]


def _dial(measure: Measure) -> str:
    return ", ".join(
        f"{name} {'up' if by > 0 else 'down'}" for name, by in measure.dial.direction.items()
    )


def description_of(member: type) -> str:
    """Return the description in a class's own docstring, without the sections behind it."""
    text = inspect.cleandoc(member.__dict__.get("__doc__") or "")
    return re.split(r"\n(?:Parameters|Attributes|Raises|Notes|See Also)\n-", text)[0].strip()


def _has_equation(text: str) -> bool:
    return bool(re.search(r"\S (?:=|\+=|~|<-) \S", text.partition("\n\n")[2] or text))


def _told_by(model: type[Agent], text: str) -> type[Agent] | None:
    """Return the class that a model extends and refers to, or that has the equation it lacks."""
    bases = [base for base in model.__mro__[1:] if issubclass(base, Agent) and base is not Agent]
    told = {base: description_of(base) for base in bases}
    named = [base for base in bases if f"`{base.__name__}`" in text]
    if named or _has_equation(text):
        return next(iter(named), None)
    worded = [base for base in bases if told[base]]
    return next((base for base in worded if _has_equation(told[base])), next(iter(worded), None))


def paragraphs(text: str) -> list[Markup]:
    """Return the paragraphs of a docstring; lines that are equations stay lines."""
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        equations = all(re.search(r"=|<-", line) for line in lines) and len(lines) > 1
        if block.startswith("    ") or equations:
            lines = [line.strip() for line in lines]
            body = Markup("<br>").join(inline(line) for line in lines)
            found.append(Markup('<p class="equation">{}</p>').format(body))
        elif block.strip():
            found.append(Markup("<p>{}</p>").format(inline(" ".join(block.split()))))
    return found


def inline(text: str) -> Markup:
    """Return a line of a docstring: what stands in backticks as code, emphasis as emphasis."""
    safe = str(escape(text, quote=False))
    safe = re.sub(r"``?([^`]+)``?", r'<span class="mono">\1</span>', safe)
    return Markup(re.sub(r"(?<![*\w])\*(\w[^*]*?)\*(?![*\w])", r"<em>\1</em>", safe))
