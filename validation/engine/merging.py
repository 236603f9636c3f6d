"""Folders of one study, computed in pieces on several machines, joined into one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from knownminds.environments.record.folders import writable, write_text

from .study import Batch, Rows, Study, difference, finished_parts, note_digest


def merge(folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Join the folders of one study, computed in pieces on several machines, into a new one.

    Raises
    ------
    ValueError
        If they are not of the same study, code and versions, if a part is damaged, if a batch
        that two of them hold differs, or if `out` holds something; nothing is written then.
    """
    if len(folders) < 2:
        raise ValueError(f"A merge joins at least 2 folders; got {len(folders)}.")
    read = [(Path(folder), *Study.read(folder)) for folder in folders]
    first, study, identity = read[0]
    if any("part_of_search" in cell.law for cell in study.cells):
        raise ValueError(
            f"{first} holds a search, which goes step by step and has no shares to be merged. "
            "Use the folder of one search."
        )
    for folder, _, other in read[1:]:
        for key in identity:
            if other.get(key) != identity[key]:
                told = difference(key, other.get(key), identity[key], "there")
                raise ValueError(
                    f"Merged folders are of one study. Unlike {first}, the folder {folder} holds "
                    f"{told}. Repeat one of them with the command, code and versions of the other."
                )
    target = Path(out)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(f"A merged study goes to a new or empty folder; {target} is neither.")
    rows = [Rows(study, folder, identity["versions"]) for folder, _, _ in read]
    finished = [finished_parts(one.folder / "parts") for one in rows]
    kept = []
    for batch in study.batches():
        name = study.part_name(batch)
        holders = [one for one, names in zip(rows, finished, strict=True) if name in names]
        _check_same(holders, batch)
        kept += [one.folder / "parts" / name for one in holders[:1]]
    with writable(target.absolute().parent) as beside:
        # Made beside and put in place whole: a merge that is killed leaves nothing at the target.
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=beside))
        (made / "parts").mkdir()
        for file in kept:
            content = file.read_bytes()
            note_digest(made, file.name, content)
            (made / "parts" / file.name).write_bytes(content)
        write_text(made / "study.json", json.dumps(identity, indent=2))
        made.chmod(0o755)
        made.replace(target)
    return target


def _check_same(holders: Sequence[Rows], batch: Batch) -> None:
    """Raise ValueError if a folder's rows of the batch are damaged or not those of the others."""
    tables = [rows.part(batch).drop(columns="seconds", errors="ignore") for rows in holders]
    for rows, table in zip(holders[1:], tables[1:], strict=True):
        if not table.equals(tables[0]):
            name = rows.study.part_name(batch)
            raise ValueError(
                f"Part {name} has different numbers in {holders[0].folder} and {rows.folder}. "
                "One of them is damaged or was changed; delete that part and compute it anew."
            )
