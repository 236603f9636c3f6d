"""What the tests of the benchmarks' pages share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from knownminds.validation.cli import main
from knownminds.validation.pages import figures as draw


@contextmanager
def laid_out(module: ModuleType | None = None, **less: int) -> Iterator[None]:
    """Lay figures out, but do not write them; `less` lowers what a page's module counts up to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "svg", lambda figure: figure)
        for name, value in less.items():
            patch.setattr(module, name, value)
        yield


def everyone_everywhere(
    lived: Callable[[str, str, int], pd.DataFrame],
    minds: Iterable[str],
    cells: Iterable[str],
    step: int,
) -> pd.DataFrame:
    """Join what each mind did in each cell, with seeds `step` apart from cell to cell."""
    who = tuple(minds)
    parts = [lived(one, cell, step * k + j) for k, cell in enumerate(cells)
             for j, one in enumerate(who)]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def about(places: Mapping[str, Any], **more: Any) -> SimpleNamespace:
    """Return what a page is told beside the trials."""
    kept = {"people": None, "features": None, "context": "", "seed": 0, "known": (), "truth": {},
            "kept": None}  # fmt: skip
    return SimpleNamespace(places=places, **(kept | more))


def typed(*words: object) -> object:
    """Run a command as if it were typed, and return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(list(map(str, words)))
    return end.value.code
