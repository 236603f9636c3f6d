"""Registries and lists of files brought from outside, as they were before."""

from contextlib import contextmanager

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.llm_adapters import ADAPTERS
from knownminds.validation.cli.application import ADDED
from knownminds.validation.engine import members

TABLES = (AGENTS, ENVIRONMENTS, MEASURES, ADAPTERS, ADDED)


def installed(rows):
    """Leave out rows that begin with the name of a member of a package that is not installed."""
    here = {*AGENTS, *ENVIRONMENTS, *MEASURES}
    return [row for row in rows if (row if isinstance(row, str) else row[0]) in here]


@contextmanager
def as_they_were():
    """Forget afterwards what was registered and which files were loaded for it.

    A file that stays listed would be loaded again by the next study that starts its workers.
    """
    before, files = [dict(table) for table in TABLES], list(members._files)
    yield
    members._files[:] = files
    for table, content in zip(TABLES, before, strict=True):
        table.clear()
        table.update(content)
