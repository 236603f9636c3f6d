"""What one thing is: an experiment, a model or a measure, and whether it keeps its contract."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from textwrap import wrap
from typing import Any

from knownminds.agents import AGENTS
from knownminds.agents.compiler.kernels import likelihood_text, simulation_text
from knownminds.environments import (
    ENVIRONMENTS,
    Session,
    check_environment,
    make,
    session_stream,
    trial_schema,
    unknown,
)
from knownminds.environments.record.tabled_result import plain
from knownminds.inference import MEASURES, check_agent
from knownminds.validation.costs.dry_runs import prompt_text
from knownminds.validation.engine.result import Text
from knownminds.validation.engine.screen import folded_table, width_of_screen
from knownminds.validation.questions import Show


def compute(question: Show) -> Any:
    """Answer `show`."""
    name = question.name
    if question.schema:
        schema = trial_schema(None if name is None else make(name))
        top, *below = schema.cells
        example = ["", *wrap(schema.row, width_of_screen())] if schema.row else []
        words = "\n".join([schema.title, folded_table(top, below), *example])
        return Text(words, schema.to_dict())
    if name is None:
        raise ValueError("An experiment, a model or a measure is shown; got none. Name one.")
    member, rows = described(name)
    if question.kernel:
        return Text(kernels_of(name))
    if question.check:
        kept, found = contract_of(name)
        return Text(found, {"name": name, "kept": kept, "found": found}, exit_code=0 if kept else 2)
    lines = [f"{name}: {member['summary']}", f"Source: {member['source']}"]
    if "model" in member:
        lines.append(inspect.cleandoc(AGENTS[name].__doc__ or ""))
    if rows:
        columns = [column for column in rows[0] if column != "source"]
        cells = [[str(row[column]) for column in columns] for row in rows]
        lines += ["", folded_table([column.replace("_", " ") for column in columns], cells)]
    if "first_prompt" in member:
        lines += ["", "Its first prompt:", "", member["first_prompt"]]
    return Text("\n".join(lines), member)


def described(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an experiment, a model or a measure as JSON has it, and the rows of its table."""
    rows: list[Any]
    member: Any
    if name in ENVIRONMENTS:
        kind, member = "environment", make(name)
        more = {"settings": member.settings, "trials": member.n_trials}
        more |= {"actions": member.n_actions, "stimulus": list(member.fields.stimulus)}
        if member.has_words():
            first = Session(member, member.draw(session_stream(0, 0, 0))).render()
            more |= {"first_prompt": prompt_text(first)}
        called = {s.called or n: s for n, s in member.setting_table.items()}
        rows = [
            {"setting": k, "default": json.dumps(member.settings[k]), "may be": str(s.rule),
             "what it does": s.help}
            for k, s in called.items()
        ]  # fmt: skip
    elif name in AGENTS:
        kind, member = "model", AGENTS[name]
        rows = member.parameters.table()
        more = {"parameters": rows}
    elif name in MEASURES:
        kind, member = "measure", MEASURES[name]
        rows = [{"moves": k, "by": f"{v:g}"} for k, v in member.dial.direction.items()]
        more = {"environments": list(member.environments), "null": plain(member.null)}
        more |= {"rational": member.rational, "violator": member.violator}
    else:
        known_names = [*ENVIRONMENTS, *AGENTS, *MEASURES]
        rule = unknown("environment, model or measure", name, known_names)
        raise ValueError(f"{rule} One of your own comes with --plugin FILE.")
    return {kind: name, "summary": member.summary, "source": member.source, **more}, rows


def contract_of(name: str) -> tuple[bool, str]:
    """Hold a model or an experiment against its contract; say whether it is kept, and why."""
    if name in AGENTS:
        checked = check_agent(AGENTS[name])
        return checked.ok, str(checked)
    if name not in ENVIRONMENTS:
        raise ValueError(
            f"A contract is that of a model or an experiment; {name} is none. Leave --check out."
        )
    try:
        check_environment(make(name))
    except AssertionError as broken:
        return False, f"{name}: {broken}"
    return True, f"{name}: kept"


def kernels_of(name: str) -> str:
    """Return the source of a model's kernels: as generated, or the file they are written in."""
    if name not in AGENTS:
        raise ValueError(f"Kernels are those of a model; {name} is none. Leave --kernel out.")
    model = AGENTS[name]
    if model.by_hand():
        kernel: Any = inspect.unwrap(model.log_likelihood)
        return Path(inspect.getfile(getattr(kernel, "py_func", kernel))).read_text(encoding="utf-8")
    played = next((e for e in map(make, ENVIRONMENTS) if model.plays(e)), None)
    texts = [likelihood_text(model, played.n_actions or None if played else None)]
    return "\n".join([*texts, *([simulation_text(model, played)] if played else [])])
