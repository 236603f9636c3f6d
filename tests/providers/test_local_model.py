import subprocess
import sys

import pytest

from knownminds.llm_adapters.adapter import UnknownModel
from knownminds.llm_adapters.providers.local_model import find_model, load_model


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
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {missing!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "try: import knownminds.llm_adapters.providers.transformers\n"
        "except ImportError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == (
        'Local models need torch and transformers: pip install "knownminds[transformers]"'
    ), found.stderr


def test_what_cannot_be_read_as_a_model_is_told_with_the_reason(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: extra transformers")
    pytest.importorskip("transformers", reason="transformers is not installed: its extra")
    with pytest.raises(ValueError, match=r"no dtype named 'float23'\. Nearest: float32"):
        load_model(tmp_path, dtype="float23")
    (tmp_path / "config.json").write_text("not JSON")
    with pytest.raises(UnknownModel, match=r"they cannot be read: .*config.json.* JSON"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UnknownModel, match=r"weights, a configuration and a tokenizer; in "):
        load_model(tmp_path)
    (tmp_path / "some.gguf").write_text("not weights")
    pytest.importorskip("gguf", reason="gguf is not installed: extra transformers")
    with pytest.raises(UnknownModel, match="GGUF"):
        load_model(tmp_path, "some.gguf")
