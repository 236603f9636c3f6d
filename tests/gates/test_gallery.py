"""The gallery of the documentation has all members, and its links lead somewhere."""

import re
import sys
from pathlib import Path

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES

DOCS = Path(__file__).resolve().parents[2] / "docs"
REGISTRIES = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}


@pytest.mark.long
def test_every_member_has_its_place_and_every_link_leads_to_one(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from gallery import gallery

    text = "\n".join(gallery())
    for kind, members in REGISTRIES.items():
        for name, member in members.items():
            assert text.count(f"{{#{kind}-{name}}}") == 1
            assert member.summary in text
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links <= set(re.findall(r"\{#([^}]+)\}", text))
    sys.modules.pop("gallery")
