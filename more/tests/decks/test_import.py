"""Tables of the Iowa gambling task as hBayesDM has them."""

import pytest
import their_files

from knownminds.validation.data.exchange import run_import
from knownminds.validation.data.questions import AskImport
from knownminds.validation.imports.mapping import ColumnMap, read_map


def write(folder, text, name):
    file = folder / name
    file.write_text(text)
    return file


def test_a_cell_without_a_meaning_ends_a_strict_import_and_is_counted_by_others(tmp_path):
    made = their_files.hb_cards(seed=6)
    lines = made.text.splitlines()
    lines[3] = lines[3].replace("\t", "\tx", 1)  # a deck that is none
    lines[5] = "\t".join([*lines[5].split("\t")[:2], "1e9", "0"])  # a gain beyond the range
    file = write(tmp_path, "\n".join(lines) + "\n", "igt.txt")
    shipped = read_map(["hbayesdm_igt"])
    strict = ColumnMap(**{**vars(shipped), "strict": True})
    with pytest.raises(ValueError, match=r"row 3 of igt.txt has 'x\d'"):
        run_import(AskImport([file], mapping=strict))
    account = run_import(AskImport([file], mapping=shipped)).account
    assert account.outcomes == {"ok": 38, "malformed": 2}
    unreadable = {e.what: e.example for e in account.entries if e.kind == "unreadable"}
    assert unreadable["'action' has no meaning"] == "row 3 of igt.txt"
    assert unreadable["'gain' has no meaning"] == "row 5 of igt.txt"
