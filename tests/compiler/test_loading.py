"""Printed kernels are loaded whole, whoever asks at the same time and whatever failed before."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from knownminds.agents.compiler.cache import loaded


def test_whoever_asks_while_another_thread_loads_gets_the_whole_module(tmp_path):
    text = "import time\ntime.sleep(0.2)\nVALUE = 3\n"
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(loaded, text, "slow", tmp_path) for _ in range(2)]
        assert [one.result().VALUE for one in asked] == [3, 3]


def test_a_module_that_failed_is_not_found_half_made_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "fails_once", True, raising=False)
    text = (
        "import sys\nif sys.fails_once:\n    sys.fails_once = False\n    raise OSError('full')\n"
        "VALUE = 4\n"
    )
    with pytest.raises(OSError, match="full"):
        loaded(text, "failing", tmp_path)
    assert loaded(text, "failing", tmp_path).VALUE == 4
