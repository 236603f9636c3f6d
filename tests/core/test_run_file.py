import pytest

from knownminds.validation.cli import VERBS, command
from knownminds.validation.cli.run_file import expanded, write_run_file


@pytest.mark.parametrize("on", [True, False])
def test_every_switch_is_in_the_file_that_is_left_as_it_was_set(tmp_path, on):
    file, commands = tmp_path / "left.toml", command().commands
    for name, one in commands.items():
        set_to = {p.name: on for p in one.params if getattr(p, "is_flag", False)}
        write_run_file(file, one, set_to, ())
        words = expanded([name, str(file)], VERBS, commands.__getitem__)
        read = one.make_context(name, list(words[1:]), resilient_parsing=True).params
        assert {switch: bool(read[switch]) for switch in set_to} == set_to, name
