"""`knownminds list`, `show` and `doctor`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from textwrap import fill
from typing import Any, ClassVar

import typer

from knownminds.validation.engine.question import Question, frozen_question, option

from .application import command, print_result
from .output import Form, print_json, print_table


@frozen_question
class ListAll(Question[Any]):
    """List experiments by paper, or the models and measures of one, or all models, or measures.

    Parameters
    ----------
    environment
        List the models that play this experiment, and its measures.
    models
        List all models.
    measures
        List all measures.
    """

    command: ClassVar[str] = "list"
    computed_in: ClassVar[str] = "listed"
    screened: ClassVar[bool] = False

    environment: str | None = option(default=None, of=("environment",))
    models: bool = False
    measures: bool = False


@frozen_question
class Show(Question[None]):
    """Show an experiment's settings and first prompt, a model's parameters, or a measure's audit.

    Parameters
    ----------
    name
        An experiment, a model or a measure.
    kernel
        Print the compiled functions of a model as source.
    check
        Hold a model or an experiment against its contract; exit code 2 if it is broken.
    schema
        Print the columns of the trial record, of an experiment with its stimuli and ranges; with
        --json as JSON Schema.
    """

    command: ClassVar[str] = "show"
    screened: ClassVar[bool] = False

    name: str | None = option(
        argument=True, default=None, of=("environment", "model", "measure"), kw_only=False
    )
    kernel: bool = False
    check: bool = False
    schema: bool = False


@frozen_question
class Doctor(Question[None]):
    """Say what is installed, and which language models can be reached."""

    command: ClassVar[str] = "doctor"
    screened: ClassVar[bool] = False


def _list(question: ListAll, form: Form) -> None:
    from knownminds.validation.engine.screen import shown, width_of_screen

    result = question.answer()
    if form is Form.JSON:
        print_json(result.to_dict())
        return
    print(result.title)
    for table in result.tables.values():
        print()
        print_table(*shown(table))
    for text in result.notes:
        print("\n" + fill(text, width_of_screen(), break_on_hyphens=False))


def _show(question: Show, form: Form) -> None:
    if question.schema:
        from knownminds.environments import make, trial_schema

        schema = trial_schema(None if question.name is None else make(question.name))
        if form is Form.JSON:
            print_json(schema.to_dict())
        else:
            print(schema)
        return
    if question.name is None:
        raise ValueError("An experiment, a model or a measure is shown; got none. Name one.")
    member, rows = described(question.name)
    if question.kernel:
        print(kernels_of(question.name))
    elif question.check:
        kept, found = contract_of(question.name)
        if form is Form.JSON:
            print_json({"name": question.name, "kept": kept, "found": found})
        else:
            print(found)
        if not kept:
            raise typer.Exit(2)
    elif form is Form.JSON:
        print_json(member)
    else:
        print(f"{question.name}: {member['summary']}\nSource: {member['source']}")
        if "model" in member:
            from knownminds.agents import AGENTS

            print(inspect.cleandoc(AGENTS[question.name].__doc__ or ""))
        if rows:
            columns = [column for column in rows[0] if column != "source"]
            print()
            head = [column.replace("_", " ") for column in columns]
            print_table(head, [[str(row[column]) for column in columns] for row in rows])
        if "first_prompt" in member:
            print("\nIts first prompt:\n")
            print(member["first_prompt"])


def described(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an experiment, a model or a measure as JSON has it, and the rows of its table."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, Session, make, session_stream, unknown
    from knownminds.environments.record.tabled_result import plain
    from knownminds.inference import MEASURES
    from knownminds.validation.costs.dry_runs import prompt_text

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
        raise ValueError(unknown("environment, model or measure", name, known_names))
    return {kind: name, "summary": member.summary, "source": member.source, **more}, rows


def contract_of(name: str) -> tuple[bool, str]:
    """Hold a model or an experiment against its contract; say whether it is kept, and why."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, check_environment, make
    from knownminds.inference import check_agent

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
    from knownminds.agents import AGENTS
    from knownminds.agents.compiler.kernels import likelihood_text, simulation_text
    from knownminds.environments import ENVIRONMENTS, make

    if name not in AGENTS:
        raise ValueError(f"Kernels are those of a model; {name} is none. Leave --kernel out.")
    model = AGENTS[name]
    if model.by_hand():
        kernel: Any = inspect.unwrap(model.log_likelihood)
        return Path(inspect.getfile(getattr(kernel, "py_func", kernel))).read_text(encoding="utf-8")
    played = next((e for e in map(make, ENVIRONMENTS) if model.plays(e)), None)
    texts = [likelihood_text(model, played.n_actions or None if played else None)]
    return "\n".join([*texts, *([simulation_text(model, played)] if played else [])])


def _doctor(question: Doctor, form: Form) -> None:
    from knownminds.validation.doctor import COMPLETE, doctor

    result = doctor()
    print_result(result, Form.FULL if form is Form.SCREEN else form, "")
    (verdict,) = result.verdicts.values()
    if verdict.word != COMPLETE:
        raise typer.Exit(1)


command(ListAll, _list)
command(Show, _show)
command(Doctor, _doctor)
