"""`knownminds list`."""

from __future__ import annotations

from typing import Any

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, tell_table
from knownminds.validation.options import Json


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List experiments, models and measures."""
    from knownminds.agents import AGENTS
    from knownminds.environments import ENVIRONMENTS
    from knownminds.inference import MEASURES

    kinds: dict[str, Any] = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}
    if as_json:
        print_json({f"{kind}s": list(members) for kind, members in kinds.items()})
        return
    for kind, members in kinds.items():
        tell_table([kind, ""], [[name, member.summary] for name, member in members.items()])
        print()
