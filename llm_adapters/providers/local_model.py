"""A language model on this machine: a folder, a GGUF file, or one in an installed package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from knownminds.environments import unknown
from knownminds.llm_adapters.adapter import Failed

DTYPES = ("float32", "float64", "bfloat16", "float16")
INSTALL = 'pip install "knownminds[transformers]"'


def find_model(name: str | Path, gguf_file: str | None = None) -> tuple[Path, str | None]:
    """Return the folder of a model, and the GGUF file in it if it is one.

    Parameters
    ----------
    name : A folder, a GGUF file, or the name of an installed package that carries one; the package
        is not imported.
    gguf_file : Which file, if the folder has several.

    Raises
    ------
    Failed : If there is none, or more than one.
    """
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return path.parent, path.name
    folder = path if path.is_dir() else _package_folder(str(name))
    if folder is None:
        raise _unknown(
            "A local model is a folder, a GGUF file or an installed package with one; "
            f"{str(name)!r} is none of them. Models are not downloaded: give the folder."
        )
    if gguf_file is not None:
        if not (folder / gguf_file).is_file():
            raise _unknown(f"{folder} has no file {gguf_file!r}.")
        return folder, gguf_file
    if (folder / "config.json").is_file():
        return folder, None
    files = sorted(file.name for file in folder.glob("*.gguf"))
    if len(files) != 1:
        got = f"{len(files)} GGUF files: {', '.join(files)}" if files else "neither"
        raise _unknown(
            f"The folder of a model has a config.json or one GGUF file; {folder} has {got}."
        )
    return folder, files[0]


def _package_folder(name: str) -> Path | None:
    if not name.isidentifier():
        return None
    package = importlib.util.find_spec(name)
    if package is None or not package.origin:
        return None
    folder = Path(package.origin).parent
    return folder if any(folder.glob("*.gguf")) else None


def load_model(
    folder: Path, gguf_file: str | None = None, *, dtype: str = "float32"
) -> tuple[Any, Any]:
    """Load a model and its tokenizer, without asking the network.

    Parameters
    ----------
    gguf_file : The file to unpack; that takes half a minute for 135 million parameters.
    dtype : Precision of the weights, one of `DTYPES`.

    Raises
    ------
    Failed : If what is there cannot be read as a language model.
    """
    if dtype not in DTYPES:
        raise ValueError(unknown("dtype", dtype, DTYPES))
    if gguf_file is not None and importlib.util.find_spec("gguf") is None:
        raise ImportError(f"GGUF files need the gguf package: {INSTALL}")
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    bars: Any = logging  # its functions have no types
    bars.disable_progress_bar()
    file = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **file)
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=getattr(torch, dtype), **file
        )
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise _unknown(
            f"A language model has weights, a configuration and a tokenizer; in {folder} they "
            f"cannot be read: {reason}"
        ) from None
    return model, tokenizer


def _unknown(message: str) -> Failed:
    return Failed(message, "stop", "model", charged=False)
