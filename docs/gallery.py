"""The gallery: all experiments, models and measures, from the registries and the stored gates.

`docs/build.py` puts it where a page has the line `<!-- the gallery -->`. The gates are those of
`docs/data/gates.csv`, which `python docs/gates.py` writes before a release.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy
from gates import STORED, contradictions, environment_of

from knownminds.agents import AGENTS, Model, Parameter
from knownminds.environments import ENVIRONMENTS, Environment, Session, make, session_stream
from knownminds.inference import MEASURES
from knownminds.validation.data.audited import audits

SEED = 1  # of the session whose first trial is shown
ANSWERS = {
    "action": "one of {n} actions",
    "response": "a number from {low:g} to {high:g}",
    "both": "one of {n} actions and a number",
    "either": "one of {n} actions on some trials, a number on the others",
}


@cache
def stored_gates() -> pd.DataFrame:
    """Read the stored gates, a row per gate and quantity; texts that are missing are ""."""
    table = pd.read_csv(STORED)
    texts = list(table.select_dtypes(exclude="number"))
    return table.fillna(dict.fromkeys(texts, ""))


def gallery() -> Iterator[str]:
    """Write all experiments, models and measures as Markdown."""
    for title, names, write in (
        ("Experiments", ENVIRONMENTS, _experiment),
        ("Models", AGENTS, _model),
        ("Measures", MEASURES, _measure),
    ):
        yield f"\n## {title}\n"
        for name in names:
            yield from write(name)


def described(member: type) -> str:
    """Return the description in a class's docstring, or in that of the first base with one."""
    texts = (inspect.cleandoc(base.__dict__.get("__doc__") or "") for base in member.__mro__)
    sections = r"\n(?:Parameters|Attributes|Raises|Notes|See Also)\n-"
    descriptions = (re.split(sections, text)[0].strip() for text in texts)
    text = next(filter(None, descriptions), "")
    return "\n\n".join(map(_equations, text.split("\n\n")))


def _equations(block: str) -> str:
    """Let a block of a docstring whose lines are equations keep its lines."""
    lines = block.splitlines()
    equations = len(lines) > 1 and all(re.search(r"=|<-", line) for line in lines)
    return "\n".join(f"    {line.strip()}" for line in lines) if equations else block


def told_prior(parameter: Parameter) -> str:
    """Say what is expected of a parameter: median and central 95%, on the natural scale."""
    ends = parameter.mean + parameter.sd * scipy.stats.norm.ppf([0.5, 0.025, 0.975])
    middle, low, high = parameter.support.constrain(np.asarray(ends))
    scale = "" if parameter.support.kind == "identity" else f" of the {parameter.support.kind}"
    law = f"Normal({parameter.mean:g}, {parameter.sd:g}){scale}"
    return f"{middle:.3g} ({low:.2g} to {high:.3g}); {law}"


def with_error(row: Mapping[str, Any], name: str) -> str:
    """Write a number of a gate with its standard error, "-" where there is none."""
    value, error = row.get(name, np.nan), row.get(f"{name}_error", np.nan)
    if np.isnan(value):
        return "-"
    return f"{value:.3f}" if np.isnan(error) else f"{value:.3f} ({error:.3f})"


def table_lines(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Write a table as Markdown."""
    for cells in (head, ["---"] * len(list(head)), *rows):
        texts = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
        yield f"| {' | '.join(texts)} |"


def _head(kind: str, name: str, member: Any, text: str) -> Iterator[str]:
    yield f"\n### `{name}` {{#{kind}-{name}}}\n\n{member.summary} ({member.source}).\n\n{text}\n"


def _links(kind: str, names: Iterable[str]) -> str:
    return ", ".join(f"[`{name}`](#{kind}-{name})" for name in names) or "none"


@cache
def _shipped(name: str) -> Environment:
    """Build an experiment as it is shipped, once: every model says whether it plays it."""
    return make(name)


def _experiment(name: str) -> Iterator[str]:
    environment = _shipped(name)
    yield from _head("environment", name, environment, described(type(environment)))
    low, high = environment.response_range
    answer = ANSWERS[environment.given].format(n=environment.n_actions, low=low, high=high)
    paid = "rewards are paid" if environment.feedback else "nothing is paid"
    past = "earlier trials are retold" if environment.past != "none" else "each trial stands alone"
    yield f"At most {environment.n_trials:,} trials; asks for {answer}; {paid}; {past}.\n"
    yield "What a participant reads on the first trial:\n"
    for message in _first_prompt(environment):
        yield f'```text title="{message.role}"\n{message.content}\n```\n'
    for image in _pictures(environment):
        uri = f"data:image/png;base64,{base64.b64encode(image).decode()}"
        yield f"![Picture shown on the first trial of {name}]({uri})\n"
    players = [other for other, model in AGENTS.items() if model.plays(environment)]
    measures = [other for other, one in MEASURES.items() if name in one.environments]
    yield f"Models that play it: {_links('model', players)}. "
    yield f"Measures: {_links('measure', measures)}. [Settings](reference/environments.md).\n"


def _first_prompt(environment: Environment) -> list[Any]:
    session = Session(environment, environment.draw(session_stream(SEED)))
    return list(session.render().messages)


def _pictures(environment: Environment) -> list[bytes]:
    """Draw the first trial, where the experiment can show pictures."""
    if not environment.pictures and "modality" in environment.settings:
        try:
            environment = make(environment.name, **environment.settings | {"modality": "image"})
        except ValueError:  # it has words only
            return []
    return [image for message in _first_prompt(environment) for image in message.images]


def _model(name: str) -> Iterator[str]:
    model: type[Model] = AGENTS[name]
    yield from _head("model", name, model, described(model))
    plays = [other for other in ENVIRONMENTS if model.plays(_shipped(other))]
    yield f"Plays {_links('environment', plays)}.\n"
    design, gates = model.recommended, stored_gates()
    gates = gates[gates["name"] == name]
    if design is not None:
        settings = [f"{key} = {json.dumps(value)}" for key, value in design.settings.items()]
        sessions = [f"{design.sessions} sessions"] if design.sessions > 1 else []
        sizes = [f"{environment_of(design).n_trials:,} trials", *sessions, *settings]
        where = _links("environment", [design.environment])
        notes = " ".join(filter(None, (design.note, design.uncalibrated, design.control)))
        yield f"**Recommended design:** {where}, {', '.join(sizes)}. {notes}\n"
    for row in contradictions(gates).to_dict("records"):
        verdict, claimed = row["verdict"], row["claimed"]
        yield f"**Not confirmed:** {row['quantity']} is {verdict}, claimed: {claimed}.\n"
    if not len(model.parameters):
        return
    head = ["parameter", "range", "prior: median (95%); law", "given back", "r", "bias",
            "90% coverage", "r, shuffled", "posterior"]  # fmt: skip
    rows = []
    for parameter in model.parameters:
        of = gates[gates["quantity"] == parameter.name].set_index("gate").to_dict("index")
        recovery, shuffled, ranks = (of.get(k, {}) for k in ("recovery", "shuffled", "calibration"))
        reasons = [] if design is None else [design.open, design.kept]
        why = " ".join(reason[parameter.name] for reason in reasons if parameter.name in reason)
        about = f"`{parameter.name}`: {parameter.description}{f' *{why}*' if why else ''}"
        scores = [with_error(recovery, key) for key in ("r", "bias", "coverage")]
        control = f"{with_error(shuffled, 'r_shuffled')} {shuffled.get('verdict', '')}"
        rows.append([about, parameter.support, told_prior(parameter), recovery.get("verdict", "-"),
                     *scores, control, ranks.get("verdict", "-")])  # fmt: skip
    yield from table_lines(head, rows)
    yield from _runs(gates)


def _runs(gates: pd.DataFrame) -> Iterator[str]:
    for row in gates.drop_duplicates("gate").to_dict("records"):
        counts = f"{row['failed']} of {row['attempted']} failed"
        made = f"knownminds {row['version']}, {row['date']}, {row['seconds']:,.0f} s"
        yield f"\n{row['gate']}: `{row['command']}` ({counts}; {made})\n"


def _measure(name: str) -> Iterator[str]:
    measure, audited = MEASURES[name], audits()
    yield from _head("measure", name, measure, described(type(measure)))
    settings = ", ".join(f"{key} = {json.dumps(value)}" for key, value in measure.settings.items())
    null = "none, it is a score without a test" if np.isnan(measure.null) else f"{measure.null:g}"
    dial = measure.dial.direction.items()
    turned = ", ".join(f"{one} {'up' if by > 0 else 'down'}" for one, by in dial)
    models = [_links("model", filter(None, [one])) for one in (measure.rational, measure.violator)]
    where = (
        f"{_links('environment', measure.environments)}{f' with {settings}' if settings else ''}"
    )
    yield f"Experiments: {where}. Null value: {null}; of {models[0]}.\n"
    yield f"Violator: {models[1]}; the measure grows with {turned or 'nothing'}.\n"
    rows = audited[(audited["conclusion"] == name) & (audited["players"] != "none")]
    if not len(rows):
        yield f"`knownminds audit {name}` audits it.\n"
        return
    head = ["of", "true value", "rejected", "bias", "95% coverage"]
    shown = [
        [f"{row['units']} {row['unit']}s", f"{row['effect']:.3g}"]
        + [with_error(row, key) for key in ("rejected", "bias", "coverage")]
        for row in rows.to_dict("records")
    ]
    yield from table_lines(head, shown)
    last = rows.iloc[-1]
    yield f"\n`{last['command']}` (knownminds {last['version']}, {last['date']})\n"
