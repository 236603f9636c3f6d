"""`knownminds list`, `show` and `doctor`."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import typer

from knownminds.validation.engine.question import Question, frozen_question, option

from .application import command
from .output import print_json, print_table, prompt_text


@frozen_question
class ListAll(Question[None]):
    """List experiments, models and measures: what is installed, or what belongs to an experiment.

    Parameters
    ----------
    environment
        List the models that play this experiment and the measures that it has.
    """

    command: ClassVar[str] = "list"

    environment: str | None = option(default=None, of=("environment",))


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


def _list(question: ListAll, as_json: bool) -> None:
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, make
    from knownminds.inference import MEASURES
    from knownminds.members import elsewhere

    kinds: dict[str, Any] = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}
    name = question.environment
    if name is not None:
        place = make(name)
        kinds = {
            "environment": {name: place},
            "model": {n: model for n, model in AGENTS.items() if model.plays(place)},
            "measure": {n: one for n, one in MEASURES.items() if name in one.environments},
        }
    if as_json:
        print_json({f"{kind}s": list(members) for kind, members in kinds.items()})
        return
    for kind, members in kinds.items():
        print_table([kind, ""], [[name, member.summary] for name, member in members.items()])
        print()
    lacking = Counter(elsewhere().values()) if question.environment is None else {}
    for package, count in lacking.items():
        print(f"{count} more are in {package}, which is not installed: pip install {package}")


def _show(question: Show, as_json: bool) -> None:
    if question.schema:
        from knownminds.environments import make, trial_schema

        schema = trial_schema(None if question.name is None else make(question.name))
        if as_json:
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
        if not keeps_contract(question.name):
            raise typer.Exit(2)
    elif as_json:
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
    from knownminds.environments.record.result import plain
    from knownminds.inference import MEASURES

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


def keeps_contract(name: str) -> bool:
    """Print what holding a model or an experiment against its contract gave; say if it is kept."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS, check_environment, make
    from knownminds.inference import check_agent

    if name in AGENTS:
        checked = check_agent(AGENTS[name])
        print(checked)
        return checked.ok
    if name not in ENVIRONMENTS:
        raise ValueError(
            f"A contract is that of a model or an experiment; {name} is none. Leave --check out."
        )
    try:
        check_environment(make(name))
    except AssertionError as broken:
        print(f"{name}: {broken}")
        return False
    print(f"{name}: kept")
    return True


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


def _doctor(question: Doctor, as_json: bool) -> None:
    from knownminds.validation.doctor import COMPLETE, doctor

    result = doctor()
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
    (verdict,) = result.verdicts.values()
    if verdict.word != COMPLETE:
        raise typer.Exit(1)


command(ListAll, _list)
command(Show, _show)
command(Doctor, _doctor)
