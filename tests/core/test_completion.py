import os
import subprocess
import sys

import pytest

from knownminds import agents, environments
from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.members import listed
from knownminds.validation.completion import completes

CODE = "import sys; sys.argv[0] = 'knownminds'; from knownminds.validation.cli import main; main()"


REGISTRIES = {"environments": ENVIRONMENTS, "models": AGENTS, "measures": MEASURES}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_members_are_where_their_lists_say(kind):
    registry = REGISTRIES[kind]
    assert [registry[name].name for name in registry] == list(listed(kind))
    some = list(registry)[3]
    assert some in completes(kind)(some[:4])
    assert completes(kind)("no_such") == []


def test_what_a_floor_makes_public_is_listed():
    """Of models and experiments; a line that was forgotten leaves one that no command knows."""
    for floor, base, registry in (
        (agents, agents.Model, AGENTS),
        (environments, environments.Environment, ENVIRONMENTS),
    ):
        public = [getattr(floor, name) for name in floor.__all__]
        members = [one for one in public if isinstance(one, type) and issubclass(one, base)]
        named = {one.name for one in members if isinstance(getattr(one, "name", None), str)}
        assert named <= {*registry}


def test_the_shell_is_offered_what_begins_so():
    asked = {"_KNOWNMINDS_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    asked["COMP_WORDS"] = "knownminds recover hor"
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["horizon"]


def test_a_command_is_built_alone_and_the_help_of_all_has_no_options():
    from knownminds.validation.cli import VERBS, command

    alone, help_of_all = command("list"), command(with_options=False)
    assert [*alone.commands] == ["list"]
    assert [*help_of_all.commands] == [*command().commands] == [*VERBS]
    named = {name: {p.name for p in one.params} for name, one in command().commands.items()}
    assert {p.name for p in alone.commands["list"].params} == named["list"]
    assert not any(one.params for one in help_of_all.commands.values())
    told = {name: (one.help, one.rich_help_panel) for name, one in command().commands.items()}
    assert {n: (c.help, c.rich_help_panel) for n, c in help_of_all.commands.items()} == told
