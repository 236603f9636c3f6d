"""`run`: sessions of a language model, in several wordings or with controls where that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from knownminds.calling import SETTINGS, Calling, InBatches, Reach, Sampling, part_of
from knownminds.environments import Environment, check_controls, controlled
from knownminds.environments.controls import CONTROLS, REPEAT
from knownminds.environments.record.folders import writable, write_text
from knownminds.inference import Analysis, ChosenQuestions
from knownminds.llm_adapters import Failed
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.ledger import price_in, stays_in
from knownminds.llm_adapters.runs.prices import in_batches, parse_price
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import Progress, RunOptions
from knownminds.validation.data.controls import FOLDER, SESSIONS, controls_of_runs
from knownminds.validation.engine.arguments import (
    resolve_chosen,
    resolve_environment,
    resolve_stop,
    set_to,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Text
from knownminds.validation.engine.screen import width_of_screen

from .connect import estimate, price_for, rehearse, run_sessions
from .dry_runs import first_prompts, prompt_text
from .questions import AskRun
from .several_runs import Runs
from .wordings import wordings

run = verb(AskRun, __name__)


@dataclass(frozen=True)
class _Part:
    """One of several runs that a command makes.

    Parameters
    ----------
    name : Of the wording or control; "" of the run itself.
    question : Its options, with its folder.
    control : By which its experiment is changed; "" for none.
    within : Folder with the ledger of all of them; None if there is one run.
    """

    name: str
    question: AskRun
    control: str = ""
    within: Path | None = None


def compute(question: AskRun) -> Any:
    """Answer `run`, and leave the page of each run in its folder."""
    from .run_page import leave  # Matplotlib is slow

    return leave(question, _runs(question))


def _runs(question: AskRun) -> Run | Runs | Text:
    _check_show(question)
    environment = resolve_environment(question.environment, question.trials)
    if question.paraphrases is None and not (question.controls or question.control):
        return _run_part(_Part("", question), question)
    kind, parts = "wording", _in_wordings(question, environment)
    if question.controls or question.control:
        kind, parts = "control", _with_controls(question, environment)
    runs: dict[str, Run] = {}
    texts = []
    for k, part in enumerate(parts, start=1):
        name = part.name or "none"
        question.say(f"{kind} {name} ({k} of {len(parts)}):")
        made = _run_part(part, question)
        if isinstance(made, Text):
            texts.append(f"{kind} {name}: {made}")
        else:
            runs[name] = made
    if texts:
        return Text("\n".join(texts))
    judged = None
    if kind == "control":
        judged = controls_of_runs([question.folder]).about(title="Controls")
    return Runs(kind, runs, judged)


def _check_show(question: AskRun) -> None:
    """Raise ValueError if no prompts can be shown."""
    if question.show is None:
        return
    if not question.dry_run or question.show < 1:
        raise ValueError(
            f"--show goes with --dry-run and is at least 1; got --show {question.show}"
            f"{'' if question.dry_run else ' without --dry-run'}."
        )
    if question.adaptive:
        raise ValueError(
            "Prompts are shown in their order, and with --adaptive the answers choose them. Leave "
            "--show out."
        )


def _in_wordings(question: AskRun, environment: Environment) -> list[_Part]:
    """Return a run for each wording, below one folder."""
    whole, parts = question.folder, []
    for k, name in enumerate(wordings(environment, question.paraphrases or 1)):
        worded = set_to(environment, {"templates": name} if k else {})
        of_wording = replace(question, environment=worded, trials=None, out=whole / name)
        parts.append(_Part(name, of_wording, within=whole))
    return parts


def _with_controls(question: AskRun, environment: Environment) -> list[_Part]:
    """Return the run, and its controls in a folder inside its own."""
    for name in ("stop", "questions", "adaptive", "paraphrases"):
        if getattr(question, name) is not None:
            raise ValueError(
                f"Controls take the sessions of a run again, whole and in order; --{name} is "
                "given. Leave it out, or the controls."
            )
    sessions, whole = 1 if question.sessions is None else question.sessions, question.folder
    few = replace(question, sessions=min(sessions, SESSIONS))
    parts = [_Part("", replace(question, out=whole), within=whole)]
    for name in check_controls(environment, tuple(question.control)):
        parts.append(_Part(name, replace(few, out=whole / FOLDER / name), name, whole))
    return parts


def _run_part(part: _Part, asked: AskRun) -> Run | Text:
    """Make one run.

    Parameters
    ----------
    asked : What was asked for all runs, with the caps of all together.
    """
    question = part.question
    environment = resolve_environment(question.environment, question.trials)
    if part.control:
        environment = controlled(environment, part.control)
    stop = question.stop
    analysis = stop if isinstance(stop, Analysis) else resolve_stop(environment, stop)
    sessions = question.sessions
    if sessions is None:
        sessions = analysis.stop.looks[-1] if analysis is not None and analysis.stop else 1
    folder = question.folder
    how = _options(question, asked, environment, folder, analysis, part.control)
    reach = _reach(question, part.control)
    if question.dry_run:
        return _rehearsed(question, environment, sessions, how, reach)
    if isinstance(question.llm, str):
        question.say(str(_about(question, environment, sessions, how)))
    try:
        return run_sessions(
            environment,
            question.llm,
            sessions=sessions,
            seed=question.seed,
            out=folder,
            within=part.within,
            how=replace(how, progress=_shown(question, sessions)),
            **reach,
        )
    except (Failed, ImportError) as error:
        raise ValueError(f"{error}{stays_in(folder)}") from None


def _options(
    question: AskRun,
    asked: AskRun,
    environment: Environment,
    folder: Path,
    stop: Analysis | None,
    control: str,
) -> RunOptions:
    """Return how the sessions are run."""
    known = isinstance(question.llm, str) and question.llm.startswith("synthetic:")
    if control == REPEAT and not known:
        question = replace(question, no_seed=True)
    return RunOptions(
        **part_of(Calling, question),
        **part_of(InBatches, question),
        settings=Sampling(**{name: getattr(question, name) for name in SETTINGS}),
        price=_price(question, folder),
        chosen=resolve_chosen(environment, question.questions, question.adaptive),
        stop=stop,
        command=asked.command_line() if isinstance(asked.llm, str) else "",
    )


def _price(question: AskRun, folder: Path) -> Any:
    """Return the price that the run has; ValueError if two are said."""
    if not isinstance(question.llm, str):
        return None
    who, overrides = Participant.read(question.llm), {}
    if who.price and question.price and who.price != question.price:
        raise ValueError(
            f"price is {who.price} in {who.llm}, and {question.price} beside it. Say it once."
        )
    if question.price:
        overrides = dict([parse_price(f"{who}={question.price}")])
    price = price_for(question.llm, overrides, elsewhere=question.base_url is not None)
    kept = price_in(folder)
    if question.price and price and kept and price.rates != kept.rates and not question.dry_run:
        question.say(f"--price is not used: the run keeps the price it has, {kept}")
    return kept or price


def _reach(question: AskRun, control: str) -> dict[str, Any]:
    """Return how the model is reached; ValueError if that is said of an adapter, which knows it."""
    where = part_of(Reach, question)
    reach = {name: getattr(question, name) for name in ("images", "truth", "contaminants")}
    if not isinstance(question.llm, str):
        for name, value in (where | reach).items():
            if value:
                raise ValueError(f"An adapter is connected already; got {name}. Leave it out.")
        return {}
    known = question.llm.startswith("synthetic:")
    stream = (*CONTROLS, REPEAT).index(control) if control and known else None
    return {**reach, "reach": Reach(**where), "stream": stream}


def _about(question: AskRun, environment: Environment, sessions: int, how: RunOptions) -> Text:
    """Say what a run will send; of one whose questions are chosen, how many calls at most."""
    chosen: ChosenQuestions | None = how.chosen  # type: ignore[assignment]
    if chosen is not None:
        return Text(
            f"{sessions * chosen.questions:,} calls at most; which questions they ask hangs on the "
            "answers, so tokens are not estimated (--cap bounds them)",
            {"calls": sessions * chosen.questions},
        )
    price = how.price
    if price is not None and how.batched:
        price = in_batches(price)
    who = Participant.read(str(question.llm))
    return estimate(environment, who.text, sessions, price, who.settings(how.settings).system)


def _rehearsed(
    question: AskRun,
    environment: Environment,
    sessions: int,
    how: RunOptions,
    reach: Mapping[str, Any],
) -> Text:
    """Return the estimate and the first prompts; ValueError if the run would stop at once."""
    if not isinstance(question.llm, str):
        raise ValueError("A dry run is of a model that is named; got an adapter.")
    try:
        rehearse(question.llm, environment, sessions, how, **reach)
    except Failed as error:
        raise ValueError(str(error)) from None
    about = _about(question, environment, sessions, how)
    system = Participant.read(question.llm).settings(how.settings).system
    prompts = _first_prompts(question, environment, system)
    shown = [f"\nPrompt {k}:\n\n{text}" for k, text in enumerate(prompts, start=1)]
    words = fill(about.words, width_of_screen(), break_on_hyphens=False)
    text = "\n".join([about.words, *shown])
    return Text(
        "\n".join([words, *shown]), {"text": text, **about.content, "prompts": list(prompts)}
    )


def _first_prompts(question: AskRun, environment: Environment, system: str | None) -> Sequence[str]:
    """Return the first prompts that a run would send, and keep them in its folder."""
    if question.show is None:
        return []
    texts = []
    prompts = first_prompts(environment, question.show, question.seed, system)
    for k, prompt in enumerate(prompts, start=1):
        names = [f"prompt-{k}-{i}.png" for i in range(1, len(prompt.images) + 1)]
        texts.append(prompt_text(prompt, names if question.out else ()))
        if question.out is not None:
            with writable(question.out) as folder:
                write_text(folder / f"prompt-{k}.txt", texts[-1] + "\n")
                for name, image in zip(names, prompt.images, strict=True):
                    (folder / name).write_bytes(image)
    return texts


def _shown(question: AskRun, sessions: int) -> Any:
    """Return what is called after every call, with the money spent; None if nobody looks."""
    draw = question.progress
    if draw is None:
        return None

    def show(now: Progress) -> None:
        text = _standing(now, sessions).replace(" unread, ", " unread\n")  # for 80 columns
        draw(now.trials, now.n_trials, text)

    return show


def _standing(now: Progress, sessions: int) -> str:
    """Say where a run stands, in a line."""
    money = "no price" if now.dollars is None else f"${now.dollars:.4f}"
    return (
        f"{now.sessions}/{sessions} sessions, {now.missing} unread, {now.calls} calls, {money}, "
        + (
            f"in batches {now.done}/{now.submitted}"
            if now.submitted
            else f"{now.under_way} of {now.allowed} under way"
        )
    )
