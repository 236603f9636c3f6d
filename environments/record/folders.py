"""Results folders: made when needed, files written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writable(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make the folder if needed; ValueError says in one sentence why that is not possible."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield path
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"Results cannot be written to {path}: {reason}. Name another folder with --out."
        ) from error


def check_writable(folder: Path) -> None:
    """Raise ValueError, before any work, if a file or folder cannot be made there."""
    existing = next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))
    whole = existing == folder or existing.is_dir()
    if not (whole and os.access(existing, os.W_OK)):
        raise ValueError(
            f"Results cannot be written to {folder}: {existing} does not allow it. "
            "Name another folder with --out."
        )


def write_text(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(file, text.encode("utf-8"))


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)
