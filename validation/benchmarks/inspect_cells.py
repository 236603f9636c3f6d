"""Every cell of every benchmark as a task of Inspect's, beside the tasks of all experiments.

``inspect eval knownminds/cogbench_two_step_step_back --model ...`` evaluates one with the plan that
ships (``-T small=true`` a tenth of it, ``-T plan=mine.toml`` a plan of the user, as long as it
has the cell); ``knownminds benchmark cogbench --from LOGS --out F`` makes the page of the logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from knownminds.environments import unknown
from knownminds.llm_adapters.runs.inspect_model import knownminds
from knownminds.llm_adapters.runs.inspect_tasks import TASKS, session_task
from knownminds.llm_adapters.runs.participant import RUN

from .plan import Cell, cell_names, read_plan
from .registry import PAPERS

try:
    from inspect_ai import task
    from inspect_ai.model import GenerateConfig
except ImportError:
    raise ImportError(
        'Inspect\'s tasks and logs need the inspect-ai package: pip install "knownminds[inspect]"'
    ) from None

__all__ = ["CELLS", "TASKS", "cell_task", "knownminds"]


def cell_task(
    benchmark: str,
    cell: str,
    plan: str | None = None,
    small: bool = False,
    session_seed: bool = True,
) -> Any:
    """Make a task of a cell: its sessions, with the sampling that the plan says.

    Raises
    ------
    ValueError : If there is no such benchmark or cell, or the plan cannot be read.
    """
    read = read_plan(benchmark, plan, small=small)
    cells = {one.name: one for one in read.cells}
    if cell not in cells:
        raise ValueError(unknown("cell", cell, cells))
    the_cell = cells[cell]
    made = session_task(
        the_cell.environment, the_cell.sessions, read.seed, session_seed, address=RUN
    )
    made.config = _config(the_cell)
    return made


def _config(cell: Cell) -> GenerateConfig:
    sampling = cell.sampling
    return GenerateConfig(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        reasoning_effort=sampling.reasoning_effort,
    )


def task_name(benchmark: str, cell: str) -> str:
    """Return how Inspect calls the task of a cell."""
    return f"{benchmark}_{re.sub('[^0-9A-Za-z]+', '_', cell)}"


def _task_of(benchmark: str, cell: str) -> Callable[..., Any]:
    def build(plan: str | None = None, small: bool = False, session_seed: bool = True) -> Any:
        return cell_task(benchmark, cell, plan, small, session_seed)

    name = task_name(benchmark, cell)
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The cell {cell} of the benchmark {benchmark}."
    registered: Callable[..., Any] = task(name=name)(build)
    return registered


CELLS: dict[str, Callable[..., Any]] = {
    task_name(name, cell): _task_of(name, cell) for name in PAPERS for cell in cell_names(name)
}
