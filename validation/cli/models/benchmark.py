"""`knownminds benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from knownminds.validation.cli.output import check_own_folder, notes
from knownminds.validation.cli.study import command, leave
from knownminds.validation.engine.question import Question, asks, frozen_question, option
from knownminds.validation.reading import read_caps

if TYPE_CHECKING:
    from knownminds.validation.benchmarks.plan import Plan

SHOWN = "-"  # the plan that --plan without a file asks to see


class _OptionalPlan(TyperCommand):
    """Takes --plan with a file, and without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in what --plan without a file means."""
        after = [*args[1:], "--"]
        filled: list[str] = []
        for word, following in zip(args, after, strict=True):
            filled.append(word)
            if word == "--plan" and following.startswith("--"):
                filled.append(SHOWN)
        return super().parse_args(ctx, filled)


@frozen_question
class AskBenchmark(Question[Any]):
    """What `benchmark` is asked: which plan, with whom, and what it may cost."""

    command: ClassVar[str] = "benchmark"
    help: ClassVar[
        str
    ] = """Let models live a paper's experiments, and make its tables and figures of them.

There are cogbench, colliders, magnitudes, diagnosis and revealed_belief. The same command goes on
where it stopped. The exit code is 0 once all cells are lived to their end, 1 if some are not, 3
if not one answer could be read, 2 for bad input."""

    name: str = asks(Annotated[str, typer.Argument(help="The benchmark.")])
    llm: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL, once for each model.", default=None
    )
    plan: str | None = option(
        str | None, "A plan of your own; without a file, print the plan.", default=None
    )
    small: bool = option(bool, "A tenth of the sessions.", default=False, flag="--small")
    seed: int | None = option(
        int | None, "Everything random follows from it; the plan's, if left out.", default=None
    )
    paraphrases: int = option(
        int, "In how many wordings everything is asked; the page then says what wording moves.",
        default=1,
    )  # fmt: skip
    base_url: str | None = option(str | None, "A server of your own.", default=None)
    key_variable: str | None = option(
        str | None, "The environment variable that holds the key.", default=None
    )
    timeout: float | None = option(float | None, "Seconds until a call is given up.", default=None)
    images: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL that sees pictures; for one not known.", default=None
    )
    concurrency: int = option(int, "Sessions of each model under way at a time.", default=8)
    attempts: int = option(int, "Calls per question, if the provider fails.", default=5)
    re_ask: int = option(int, "How often to ask again if malformed.", default=0)
    retry_errors: bool = option(
        bool, "Ask trials again that had no answer.", default=False, flag="--retry-errors"
    )
    cap: list[str] | None = option(
        list[str] | None, "NAME=MOST of all runs together: calls, tokens, dollars, ...; "
        "answer_tokens.", default=None,
    )  # fmt: skip
    price: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL=IN,OUT dollars per million tokens.", default=None
    )
    features: Path | None = option(
        Path | None, "A CSV file of what is known of the models.", default=None
    )
    people: Path | None = option(
        Path | None, "A CSV file of people's values: metric, value.", default=None
    )
    context: str | None = option(
        str | None, "Of revealed_belief: the context that is drawn, by its name or in words.",
        default=None,
    )  # fmt: skip
    inspect: list[Path] | None = option(
        list[Path] | None, "Logs of Inspect's, or folders of them, to be taken in.", default=None
    )
    dry_run: bool = option(bool, "Only estimate calls, tokens and money.", default=False)
    out: Path | None = option(Path | None, "Folder of the benchmark.", default=None)


def _benchmark(given: dict[str, Any]) -> None:
    asked = AskBenchmark(**AskBenchmark.read(given))
    from knownminds.llm_adapters.runs.runner import Retries
    from knownminds.validation.benchmarks.page import benchmark_result
    from knownminds.validation.benchmarks.plan import read_plan
    from knownminds.validation.benchmarks.registry import plan_of
    from knownminds.validation.benchmarks.running import (
        Asking,
        blocked_of,
        display,
        estimate,
        players_of,
        run_benchmark,
    )

    if asked.plan == SHOWN:
        print(plan_of(asked.name).read_text(encoding="utf-8"), end="")
        return
    how = {name: getattr(asked, name) for name in ("small", "seed", "paraphrases")}
    plan = read_plan(asked.name, asked.plan, **how)
    if asked.context:
        _check_context(asked, plan)
    reach = {name: getattr(asked, name) for name in ("base_url", "key_variable", "timeout")}
    if asked.inspect:
        _take_in(asked, plan)
        return
    players = players_of(
        plan, asked.llm or (), prices=asked.price or (), images=asked.images or (), **reach
    )
    blocked = blocked_of(plan, players)
    about = str(estimate(plan, players, blocked))
    if asked.dry_run:
        print(about)
        return
    options = _options(asked)
    out = asked.out or Path(f"{asked.name}-benchmark")
    check_own_folder("benchmark", out)
    notes.print(about, markup=False, soft_wrap=True)
    asking = Asking(
        caps=read_caps(asked.cap),
        concurrency=asked.concurrency,
        retries=Retries(attempts=asked.attempts),
        re_ask=asked.re_ask,
        retry_errors=asked.retry_errors,
    )
    with display(notes, plan, players) as (tell, watch):
        played = run_benchmark(
            plan, players, out, asking=asking, options=options, blocked=blocked,
            tell=tell, watch=watch,
        )  # fmt: skip
    leave(benchmark_result(played), {**given, "out": out})
    if played.cells["trials"].sum() and not played.cells["readable"].sum():
        raise typer.Exit(3)
    if not played.complete:
        raise typer.Exit(1)


def _options(asked: AskBenchmark) -> dict[str, Any]:
    """Return what the page is made of besides the trials."""
    for name, file in (("--features", asked.features), ("--people", asked.people)):
        if file is not None and not file.is_file():
            raise ValueError(f"{name} is a CSV file; there is none at {file}.")
    return {
        "small": asked.small or None,
        "seed": asked.seed,
        "paraphrases": asked.paraphrases if asked.paraphrases > 1 else None,
        "features": None if asked.features is None else str(asked.features),
        "people": None if asked.people is None else str(asked.people),
        "context": asked.context,
    }


def _check_context(asked: AskBenchmark, plan: Plan) -> None:
    """Check that the page will draw a context, and that the plan asks about this one."""
    if asked.name != "revealed_belief":
        raise ValueError(
            f"--context is for revealed_belief, whose page draws one; {asked.name} has none. "
            "Leave it out."
        )
    from knownminds.validation.benchmarks.revealed_belief import check_context

    check_context(plan.places.values(), asked.context or "")


def _take_in(asked: AskBenchmark, plan: Plan) -> None:
    """Take logs of Inspect's into the folder, and draw the page."""
    from knownminds.validation.benchmarks.benchmark import take_inspect_logs
    from knownminds.validation.benchmarks.page import read_result

    out = asked.out or Path(f"{asked.name}-benchmark")
    check_own_folder("benchmark", out)
    for line in take_inspect_logs(out, plan, asked.inspect or (), _options(asked)):
        notes.print(line, markup=False, soft_wrap=True)
    leave(read_result(out), {"out": out, "as_json": False})


command(AskBenchmark, {}, _benchmark, _OptionalPlan)
