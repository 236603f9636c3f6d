"""What a person gets who installs it: metadata, types, data files, citation, licence, changes."""

import fnmatch
import re
import tomllib
from importlib.metadata import metadata, requires, version
from pathlib import Path

import pytest
from house.test_layout import FLOORS, ROOT, rooms

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_installed_metadata_are_those_of_the_project():
    found = metadata("knownminds")
    assert version("knownminds") == PROJECT["version"]
    assert found["Name"] == "knownminds"
    assert found["License-Expression"] == PROJECT["license"] == "BSD-3-Clause"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in found.get_all("Classifier")
    assert set(PROJECT["optional-dependencies"]) >= {
        "anthropic", "dask", "google", "inspect", "openai", "transformers",
    }  # fmt: skip
    assert {"numpy", "pymc", "nutpie", "pyarrow"} <= {
        re.match(r"[\w-]+", line)[0] for line in requires("knownminds") if "extra ==" not in line
    }


def test_every_file_beside_the_code_reaches_the_wheel():
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["*"]
    for floor in FLOORS:
        assert (ROOT / floor / "py.typed").read_bytes() == b""
    for room in rooms():
        for file in room.iterdir():
            if file.is_dir() or file.suffix == ".py":
                continue
            assert any(fnmatch.fnmatch(file.name, p) for p in patterns), (
                f"{room.name}/{file.name} matches none of {patterns}; the wheel would lack it"
            )


def test_the_source_distribution_holds_what_its_tests_need():
    lines = text_of("MANIFEST.in").splitlines()
    grafted = {line.split()[1] for line in lines if line.startswith("graft ")}
    included = {name for line in lines if line.startswith("include ") for name in line.split()[1:]}
    assert {"tests", "benchmarks", "docs", "examples"} <= grafted
    assert {"CITATION.cff", "CHANGELOG.md", "constraints.txt"} <= included
    missing = [name for name in included if not (ROOT / name).exists() and name != "mkdocs.yml"]
    assert not missing
    # setuptools itself takes pyproject.toml, README.md, LICENSE and the packages.
    assert PROJECT["readme"] == "README.md"
    assert PROJECT["license-files"] == ["LICENSE"]


def test_the_citation_says_what_the_project_says():
    yaml = pytest.importorskip("yaml", reason="the citation is YAML")
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what CFF demands
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]
    known = {
        "abstract", "authors", "cff-version", "date-released", "doi", "identifiers", "keywords",
        "license", "message", "references", "title", "type", "url", "version",
    }  # fmt: skip
    assert set(citation) <= known, "a key that is none of CFF 1.2.0's"


def test_the_licence_is_the_one_that_is_named():
    licence = text_of("LICENSE")
    assert licence.startswith("BSD 3-Clause License")
    for clause in ("Redistributions of source code", "Redistributions in binary form", "Neither"):
        assert clause in licence


def test_the_changes_tell_of_this_version():
    headings = re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == PROJECT["version"]


def test_the_command_is_installed():
    [(name, target)] = PROJECT["scripts"].items()
    assert (name, target) == ("knownminds", "knownminds.validation.cli:main")
    assert Path(ROOT / "validation" / "cli" / "__init__.py").is_file()
