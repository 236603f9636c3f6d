import subprocess
import sys

import pytest

from knownminds.llm_adapters.adapter import UnknownModel
from knownminds.llm_adapters.local_model import find_model


def test_a_folder_with_a_configuration_is_a_model(tmp_path):
    (tmp_path / "config.json").touch()
    (tmp_path / "some.gguf").touch()
    assert find_model(tmp_path) == (tmp_path, None)
    assert find_model(str(tmp_path), "some.gguf") == (tmp_path, "some.gguf")


def test_a_gguf_file_is_a_model_alone_or_in_its_folder(tmp_path):
    file = tmp_path / "some.gguf"
    file.touch()
    assert find_model(file) == (tmp_path, "some.gguf")
    assert find_model(tmp_path) == (tmp_path, "some.gguf")
    (tmp_path / "other.gguf").touch()
    with pytest.raises(UnknownModel, match=r"has 2 GGUF files: other.gguf, some.gguf"):
        find_model(tmp_path)
    assert find_model(tmp_path, "other.gguf") == (tmp_path, "other.gguf")


def test_an_installed_package_is_found_without_importing_it(tmp_path, monkeypatch):
    package = tmp_path / "carries_a_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "small.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert find_model("carries_a_model") == (package, "small.gguf")
    assert "carries_a_model" not in sys.modules


@pytest.mark.parametrize("name", ["no/such/folder", "no_such_package", "json", "gpt-4o", ""])
def test_what_is_not_here_is_not_downloaded(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownModel, match="Models are not downloaded: give the folder"):
        find_model(name or "nothing")


def test_folders_without_a_model_are_told(tmp_path):
    with pytest.raises(UnknownModel, match=r"a config.json or one GGUF file; .* has neither"):
        find_model(tmp_path)
    with pytest.raises(UnknownModel, match=r"has no file 'a.gguf'"):
        find_model(tmp_path, "a.gguf")


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_missing_package_is_answered_with_the_line_that_installs_it(missing):
    # In a process of its own, where nothing has been imported yet.
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try: import knownminds.llm_adapters.transformers\n"
        "except ImportError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == (
        'Local models need torch and transformers: pip install "knownminds[transformers]"'
    ), found.stderr
