"""Commands of language models: runs, benchmarks, budgets, revealed beliefs, served known agents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from knownminds.validation.benchmarks.questions import AskBenchmark
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.costs.questions import AskBudget, AskRun, AskServe, Look

from .application import Command, command, leave, print_result
from .interrupts import Stopped, kept_in
from .output import Form, check_own_folder, note, print_json, progress_bar

if TYPE_CHECKING:
    from knownminds.llm_adapters.runs.run_result import Run

SHOWN = "-"  # the plan that --plan without a file asks to see


def _run(question: AskRun, form: Form) -> None:
    from knownminds.validation.costs.several_runs import Runs
    from knownminds.validation.engine.result import Text

    if not question.dry_run:
        check_own_folder("ledger.sqlite", question.folder)
    with kept_in(question.folder, "ledger.sqlite"), progress_bar("run") as draw:
        answer = replace(question, tell=note, progress=draw).answer()
    if isinstance(answer, Text):
        print_result(answer, form, "")
        return
    if isinstance(answer, Runs):
        for name, run in answer.runs.items():
            # JSON is one object; what controls show stands in one table behind the run.
            silent = form is Form.JSON or (answer.judged is not None and name != "none")
            _left(run, None if silent else form)
        if form is Form.JSON:
            print_json(answer.to_dict())
        elif answer.judged is not None:
            print_result(answer.judged, form, "")
    else:
        _left(answer, form)
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)


def _left(result: Run, form: Form | None) -> None:
    """Leave the report of a run, and print it unless `form` is None."""
    from knownminds.llm_adapters.runs.runner import TRIALS
    from knownminds.validation.costs.run_page import say as page_of_run

    page = page_of_run(result)
    note(f"report: {page.save(result.folder)}")
    if result.trials is not None:
        note(f"trials: {result.folder / TRIALS}")
    if form is Form.JSON:
        print_json(result.to_dict())
    elif form is not None:
        print_result(page.about(parts=()), form, "the report")  # transcripts are there alone
    for sentence in filter(None, (result.nothing_read, result.remedy, result.unanswered)):
        note(sentence)


class _OptionalPlan(Command):
    """Takes --plan with a file, and without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in what --plan without a file means."""
        after = [*args, "--"][1:]
        filled: list[str] = []
        for word, following in zip(args, after, strict=True):
            filled.append(word)
            if word == "--plan" and following.startswith("--"):
                filled.append(SHOWN)
        return super().parse_args(ctx, filled)


def _benchmark(question: AskBenchmark, form: Form) -> None:
    from knownminds.validation.engine.result import Text

    if not question.dry_run and question.plan != SHOWN:
        check_own_folder("benchmark.json", question.folder)
    with kept_in(question.folder, "ledger.sqlite"), progress_bar(question.name) as draw:
        answer = replace(question, tell=note, progress=draw).answer()
    leave(answer, None if isinstance(answer, Text) else question.folder, form)
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)


def _budget(question: AskBudget, form: Form) -> None:
    if question.out is not None:
        check_own_folder("", question.out)
    leave(question.answer(), question.out, form)


def _reveal(question: RevealQuestion, form: Form) -> None:
    from knownminds.llm_adapters import Failed

    if question.out is not None:
        check_own_folder("revealed.json", question.out)
    try:
        with kept_in(question.out, "ledger.sqlite"), progress_bar("reveal") as progress:
            revealed = replace(question, progress=progress).answer()
    except (Failed, ImportError) as error:
        raise ValueError(str(error)) from None
    leave(revealed, question.out, form)


def _look(question: Look, form: Form) -> None:
    out = Path(question.out or f"look-{question.name}")
    check_own_folder("", out)
    result = question.answer()
    note(f"report: {out / 'report.html'}")
    print_result(result, form, "the report")


def _serve(question: AskServe, form: Form) -> None:
    served = question.answer()
    try:
        note(f"{served.agent} at {served.base_url} as {question.name}; Ctrl-C ends it.")
        served.run()
    except KeyboardInterrupt:
        raise Stopped(
            f"{served.calls} calls were answered, of which nothing is kept; the same command "
            "serves again."
        ) from None
    finally:
        served.close()


command(AskRun, _run)
command(AskBenchmark, _benchmark, _OptionalPlan)
command(AskBudget, _budget)
command(RevealQuestion, _reveal)
command(AskServe, _serve)
command(Look, _look)
