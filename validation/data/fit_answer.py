"""What `fit` answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knownminds.validation.engine.result import Result
from knownminds.validation.studies import POSTERIOR

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit


@dataclass(frozen=True, repr=False)
class Fit(Result):
    """A fitted data set: group values, statuses, model comparison and honest limits.

    Parameters
    ----------
    posterior : Of a hierarchical fit, its draws; saved as posterior.nc (see `read_posterior`).
    predicted : Of a hierarchical fit, simulated answers by name, [replicates, rows of the data].
    """

    posterior: HierarchicalFit | None = field(default=None, repr=False, compare=False)
    predicted: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the page and all files, and of a hierarchical fit its draws."""
        from knownminds.validation.pages.result_page import write_page

        return write_page(self, folder, self._write_posterior)

    def _write_posterior(self, folder: Path) -> None:
        if self.posterior is not None:
            from knownminds.inference.posteriors.arviz_objects import (
                save_posterior,  # xarray is slow
            )

            save_posterior(self.posterior, folder / POSTERIOR, predicted=self.predicted)
