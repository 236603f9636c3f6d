import subprocess
import sys
from types import SimpleNamespace

import pytest

from knownminds.llm_adapters import (
    ADAPTERS,
    Capabilities,
    NotCapable,
    Sampling,
    Synthetic,
    check_capable,
    load,
)


def test_what_an_adapter_cannot_heed_is_told_before_the_run():
    adapter = SimpleNamespace(model="m", capabilities=Capabilities(temperature=False))
    check_capable(adapter, Sampling(max_tokens=5, seed=1))
    with pytest.raises(NotCapable, match="m is asked for temperature"):
        check_capable(adapter, Sampling(temperature=0.0))
    with pytest.raises(NotCapable, match="m is asked for images"):
        check_capable(adapter, Sampling(), images=True)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"temperature": -1}, "temperature goes from 0 to 2; got -1"),
        ({"top_p": 1.5}, "top_p goes from 0 to 1; got 1.5"),
        ({"max_tokens": 0}, "max_tokens goes from 1; got 0"),
        ({"seed": -1}, "seed goes from 0; got -1"),
    ],
)
def test_settings_out_of_range_are_told(setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sampling(**setting)


def test_adapters_are_loaded_by_name():
    assert load("synthetic") is Synthetic
    assert set(ADAPTERS) == {"openai", "synthetic"}
    with pytest.raises(ValueError, match="Nearest: openai"):
        load("opnai")


def test_the_package_is_imported_without_openai_and_says_how_to_install_it():
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from knownminds.llm_adapters import load\n"
        "try:\n    load('openai')\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "knownminds[openai]"' in done.stdout
