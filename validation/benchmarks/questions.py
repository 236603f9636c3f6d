"""Question of `benchmark`: arguments and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knownminds.validation.costs.questions import CallingQuestion
from knownminds.validation.engine.question import asked_by, option
from knownminds.validation.studies import BENCHMARK

if TYPE_CHECKING:
    from knownminds.validation.engine.result import Result, Text  # noqa: F401 - in a string

SHOWN = "-"  # the plan that --plan without a file asks to see


@asked_by(
    "benchmark", "benchmarks.asked", holds=BENCHMARK, rare="images price features people templates"
)
class AskBenchmark(CallingQuestion["Result | Text"]):
    """Let models take a paper's experiments, and make its tables and figures of them.

    There are cogbench, colliders, magnitudes, diagnosis and revealed_belief. The same command goes
    on where it stopped. The exit code is 0 once all cells are taken to their end, 1 if some are
    not, 3 if not one answer could be read, 4 with --fail-under, 2 for bad input.

    Parameters
    ----------
    name : The benchmark.
    llm : PROVIDER:MODEL, once for each participant; PROVIDER:MODEL?reasoning_effort=low with
        settings of its own.
    plan : A plan of your own, or the models' tables of one; without a file, print the plan.
    small : A tenth of the sessions.
    seed : Everything random follows from it; the plan's, if left out.
    paraphrases : Number of wordings of every question; the page then says how much wording matters.
    templates : EXPERIMENT.toml, or a folder of such files: your words, asked beside the shipped
        ones.
    images : PROVIDER:MODEL to be treated as able to read images.
    features : A CSV file of what is known of the models.
    people : Trials of people, who are a participant; of cogbench also a CSV file of values: metric,
        value.
    from_ : Answers that there are: files of trials, folders of runs, logs of Inspect's, the folder
        of the paper's own public files. With --llm they stand beside models that run now.
    claims : Print the paper's claims alone, each with its verdict.
    numbers : Print the paper's numbers alone, each beside ours.
    fail_under : Exit code 4 if in some cell a smaller share of trials is readable, 0 to 1.
    out : Folder of the benchmark.
    progress : Called with how much is over, of how much, and where it stands in words.
    """

    name: str = option(argument=True, kw_only=False)
    llm: Sequence[str] = ()
    plan: str | None = option(default=None, alone=SHOWN)
    small: bool = False
    seed: int | None = None
    paraphrases: int = 1
    templates: str | Path | None = None
    images: Sequence[str] = ()
    price: Sequence[str] = ()
    features: str | Path | None = None
    people: str | Path | None = None
    from_: Sequence[str | Path] = ()
    claims: bool = False
    numbers: bool = False
    dry_run: bool = False
    fail_under: float | None = None
    out: str | Path | None = None
    progress: Callable[[int, int | None, str], None] | None = None

    @property
    def left_in(self) -> Path | None:
        """The folder of the benchmark, unless only its plan or its price is asked for."""
        return None if self.plan == SHOWN else super().left_in

    @property
    def folder(self) -> Path:
        """Where the benchmark is kept."""
        return Path(self.out or f"{self.name}-benchmark")
