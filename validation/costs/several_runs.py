"""Runs of one question that belong together: wordings, or a run and its controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knownminds.llm_adapters.runs.run_result import Run
from knownminds.validation.engine.result import Result


@dataclass(frozen=True)
class Runs:
    """Several runs of one question: its wordings, or it and its controls.

    Parameters
    ----------
    kind : "wording" or "control".
    runs : By the wording or control; "none" is the run itself.
    judged : What the controls show; None of wordings.
    """

    kind: str
    runs: Mapping[str, Run]
    judged: Result | None = None

    @property
    def exit_code(self) -> int:
        """The largest of the runs."""
        return max((one.exit_code for one in self.runs.values()), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return all runs by name, and what the controls show."""
        judged = {} if self.judged is None else {"judged": self.judged.to_dict()}
        return {f"{self.kind}s": {k: one.to_dict() for k, one in self.runs.items()}, **judged}
