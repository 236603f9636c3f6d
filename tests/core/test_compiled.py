"""Each function is compiled once: by one process, for one kind of array, until its text changes."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference import ModelData

HELPER = """
from knownminds.agents.compiled import compiled
@compiled()
def doubled(x):
    return 2.0 * x
"""
CALLER = """
import sys
from helper import doubled
from knownminds.agents.compiled import compiled
@compiled()
def total(values):
    whole = 0.0
    for value in values:
        whole += doubled(value)
    return whole
if __name__ == "__main__":
    import numpy as np
    import caller
    assert caller.total(np.arange(3.0)) == 6.0
    print(sum(caller.total.stats.cache_misses.values()))
"""


def compilations(folder, processes=1):
    """Start processes that call the same function at the same time; count who compiles it."""
    world = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    command = [sys.executable, str(folder / "caller.py")]
    started = [
        subprocess.Popen(command, cwd=folder, env=world, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    return sum(int(process.communicate()[0]) for process in started)


@pytest.mark.long
def test_of_several_processes_one_compiles_and_only_a_new_text_is_compiled_again(tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "caller.py").write_text(CALLER)
    assert compilations(tmp_path, processes=2) == 1
    os.utime(tmp_path / "caller.py", (0, 0))
    os.utime(tmp_path / "helper.py", (0, 0))
    assert compilations(tmp_path) == 0
    (tmp_path / "helper.py").write_text(HELPER + "# what a caller uses has changed\n")
    assert compilations(tmp_path) == 1


def test_a_module_that_is_edited_and_loaded_again_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_kernel.py"
    file.write_text(HELPER)
    module = importlib.import_module("edited_kernel")
    assert module.doubled(1.0) == 2.0
    file.write_text(HELPER.replace("2.0", "3.00"))  # of another size, or Python keeps its own
    assert importlib.reload(module).doubled(1.0) == 3.0


def test_a_likelihood_is_compiled_for_one_kind_of_array():
    model, environment = AGENTS["rescorla_wagner_dual"], make("instrumental_learning")
    theta = model.parameters.draw(np.random.default_rng(0), 4)
    data = ModelData.read(model, simulate(model, theta, environment, 1), all_trials=True)
    fixed = theta.copy()
    fixed.flags.writeable = False
    for values in (theta, fixed, np.asfortranarray(theta), theta[::2], theta.astype(np.float32)):
        chosen = data.repeat(np.arange(len(values), dtype=np.int32))
        for lapse in (None, np.full(len(values), 0.1)):
            chosen.log_likelihood(values, lapse)
    for lapses in (False, True):
        assert len(model.kernel(environment.n_actions, lapses).signatures) == 1
