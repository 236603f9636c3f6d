"""Results folders: made when needed, files written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

LOCK = ".lock"  # the file in a folder whose lock a process has while it changes the folder


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


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process changes a folder that is there, and let none do so meanwhile."""
    with FileLock(folder / LOCK):
        yield


@contextmanager
def replaced(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Give an empty folder for files that replace those of the same names all at once.

    If what writes them breaks off, nothing is replaced. Several processes may do so at the same
    time: the last one stays.

    Parameters
    ----------
    names : What is replaced, files and folders; what the new ones lack is removed. The last one is
        gone while the others are replaced, so that whoever finds it finds all of them.
    """
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        yield new
        with one_at_a_time(folder):
            (folder / names[-1]).unlink(missing_ok=True)
            for name in names:
                if (folder / name).is_dir():
                    (folder / name).rename(new / f".old-{name}")
                elif not (new / name).exists():
                    (folder / name).unlink(missing_ok=True)
                if (new / name).exists():
                    (new / name).replace(folder / name)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_text(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(file, text.encode("utf-8"))


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)
