"""Text tables as they come: any delimiter, byte-order marks, damaged rows counted."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pyarrow import ArrowException, parquet
from pyarrow import csv as arrow_csv
from pyarrow import string as arrow_string

from knownminds.environments.record.text_table import counted

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, CellTable, Tally

NEARLY = 0.9  # share of the places of a unit
MANY, SEVERAL = 0.03, 3  # share and number of rows beyond which a code is no slip
MOST_CODES = 6  # that an error names
GAPS = ("", "NA", "NaN", "nan", "<NA>")  # how R and Python write that nothing is there
NUMBER = r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
COMMA = r"\s*[+-]?\d+,\d+\s*"
DELIMITERS = (",", ";", "\t", "|")
_NAMED_DELIMITER = re.compile(r"sep=([,;\t|])\n")
PACKED = (".gz", ".zip")
PARQUET = b"PAR1"  # how such a file begins
_PROSE = 40  # characters beyond which a cell is a text, whose blanks are its own
_VERSION = re.compile(r"data(?:V(\d+))?")
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_CUT = "the file ends within its last line"


def read_table(path: Path, tally: Tally, *, encoding: str | None = None) -> CellTable:
    """Read a text table; every cell is text, and what breaks its shape is left out and counted.

    Parameters
    ----------
    path : A text file with a head, cells apart by comma, semicolon, tab, | or blanks; also one
        packed by gzip, the only one of a .zip, or a .parquet.
    tally : Counts the rows.
    encoding : None for UTF-8, or UTF-16 with a byte-order mark.

    Raises
    ------
    ValueError : If the file is no text, has no rows, or names a column twice.
    """
    raw = unpacked(path)
    if raw.startswith(PARQUET):
        return _of_parquet(path, raw, tally)
    text = _text(path, raw, encoding)
    named = _NAMED_DELIMITER.match(text)  # as spreadsheets write it before the head
    text = text[named.end() :] if named else text
    head = text.split("\n", 1)[0].rstrip("\r")
    if not head.strip():
        raise ValueError(f"A table has a head and rows; {path.name} begins with an empty line.")
    delimiter = named[1] if named else max(DELIMITERS, key=head.count)
    if not head.count(delimiter) and len(head.split()) > 1:
        delimiter, lines_of = (
            ",",
            csv.reader(text.split("\n"), delimiter=" ", skipinitialspace=True),
        )
        text = "\n".join(_line([c for c in cells if c]) for cells in lines_of)
        head = text.split("\n", 1)[0]
    names = next(csv.reader([head], delimiter=delimiter))
    names = [name.strip() or f"column {k + 1}" for k, name in enumerate(names)]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled and re.fullmatch(NUMBER, doubled[0]):
        raise ValueError(
            f"A table begins with the names of its columns; {path.name} begins with "
            f"{head[:_PROSE]!r}. Write a line of names above, and say what they are with --map."
        )
    if doubled:
        raise ValueError(
            f"Column names must differ; {path.name} has {doubled[0]!r} "
            f"{names.count(doubled[0])} times. Rename one."
        )
    wrong: list[tuple[int, int]] = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        wrong.append((row.number, row.actual_columns))
        return "skip"

    body = text[len(text.split("\n", 1)[0]) + 1 :]
    if not body.strip():
        raise ValueError(f"A table has at least one row; {path.name} has a head alone.")
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(body.encode()),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, arrow_string()),
                null_values=list(GAPS),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except ArrowException as error:
        raise ValueError(f"{path.name} cannot be read as a table: {error}") from None
    cells = _without_blanks(table.to_pandas(), path.name, tally)
    bad = {number for number, _ in wrong}
    total = len(cells) + len(bad)
    tally.rows += total
    lines = np.array([n for n in range(1, total + 1) if n not in bad], dtype=np.int64)
    cut = total in bad and not body.endswith("\n")
    if cut:
        tally.add(LEFT_OUT, _CUT, 1, f"row {total} of {path.name}")
    uneven = wrong[:-1] if cut else wrong
    for number, columns in uneven[:1]:
        what = f"another number of cells than the head ({len(names)})"
        tally.add(LEFT_OUT, what, len(uneven), f"row {number} of {path.name} has {columns}")
    if not len(cells):
        raise ValueError(
            f"Rows have as many cells as the head; in {path.name} none has {len(names)} "
            f"(row {wrong[0][0]} has {wrong[0][1]}). Correct the head."
        )
    if len(wrong) > len(cells):
        raise ValueError(
            f"Rows have as many cells as the head ({len(names)}); {len(wrong)} of {total} rows of "
            f"{path.name} have not (row {wrong[0][0]} has {wrong[0][1]}). Correct the head."
        )
    folder = path.absolute().parent.name
    return CellTable(
        stem_of(path), path.name, cells, lines, delimiter, _version(folder), folder, cut
    )


def stem_of(path: Path) -> str:
    """Return the name of a file without its ending and that of its packing: "gpt-3.5" has none."""
    name = path.stem if path.suffix.lower() in PACKED else path.name
    return Path(name).stem if ending_of(path) else name


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in small letters, or of what is packed in it."""
    name = Path(path.stem) if path.suffix.lower() in PACKED else path
    ending = name.suffix.lower()
    return "" if re.match(r"\.\d", ending) else ending


def unpacked(path: Path) -> bytes:
    """Return what a file holds, which may be packed by gzip or alone in a .zip.

    Raises
    ------
    ValueError : If it cannot be read, is damaged, or holds several files.
    """
    try:
        raw = path.read_bytes()
        if raw.startswith(b"\x1f\x8b"):
            return gzip.decompress(raw)
        if raw.startswith(b"PK\x03\x04") and path.suffix.lower() == ".zip":
            with zipfile.ZipFile(io.BytesIO(raw)) as packed:
                names = [name for name in packed.namelist() if not name.endswith("/")]
                if len(names) != 1:
                    raise ValueError(
                        f"A packed table is one file; {path.name} holds {', '.join(names[:4])}. "
                        "Unpack it, and import the files."
                    )
                return packed.read(names[0])
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} is a damaged package ({error}). Fetch it again.") from None
    return raw


def _line(cells: Sequence[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(cells)
    return stream.getvalue()


def _without_blanks(cells: pd.DataFrame, file: str, tally: Tally) -> pd.DataFrame:
    """Return cells without blanks around them, but for columns of prose; a minus is a hyphen."""
    short = {}
    for name in cells:
        column = cells[name]
        if column.str.len().max() > _PROSE:
            continue
        cells[name] = column = column.str.replace(r"^(\s*)\u2212(?=[\d.])", r"\1-", regex=True)
        bare = column.str.strip()
        other = (bare != column) & column.notna()
        if other.any():
            short[name] = bare.where(bare != "")
            row = int(np.flatnonzero(other)[0]) + 1
            tally.add(TOLD, f"blanks around cells of {name!r} are left out", int(other.sum()),
                      f"row {row} of {file}")  # fmt: skip
    for name, bare in short.items():
        cells[name] = bare
    return cells


def _of_parquet(path: Path, raw: bytes, tally: Tally) -> CellTable:
    try:
        frame = pd.read_parquet(io.BytesIO(raw))
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read as parquet: {error}") from None
    if not len(frame):
        raise ValueError(f"A table has at least one row; {path.name} has none.")
    tally.rows += len(frame)
    frame = frame.reset_index(drop=True).convert_dtypes()
    cells = frame.astype("string").astype("str").where(frame.notna())
    cells = cells.where(~cells.isin(GAPS))
    cells.columns = [str(name) for name in cells.columns]
    lines = np.arange(1, len(cells) + 1, dtype=np.int64)
    folder = path.absolute().parent.name
    cells = _without_blanks(cells, path.name, tally)
    return CellTable(stem_of(path), path.name, cells, lines, "", _version(folder), folder)


def _text(path: Path, raw: bytes, encoding: str | None) -> str:
    if not raw.strip():
        raise ValueError(f"A table has a head and rows; {path.name} is empty.")
    kind = encoding or next((k for mark, k in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(kind)
    except (UnicodeDecodeError, LookupError):
        raise ValueError(
            f"A table is text in UTF-8; {path.name} cannot be read as {kind}. "
            "Name its encoding (--encoding cp1252), or save it anew."
        ) from None
    if "\x00" in text:
        raise ValueError(f"A table is text; {path.name} holds binary data.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def head_of(path: Path, encoding: str | None) -> list[str]:
    """Return the names of a table's columns."""
    if ending_of(path) == ".parquet" and path.suffix.lower() not in PACKED:
        try:
            return list(parquet.read_schema(path.absolute()).names)
        except (ArrowException, OSError) as error:
            raise ValueError(f"{path.name} cannot be read as parquet: {error}") from None
    return list(map(str, read_table(path, Tally(), encoding=encoding).cells.columns))


def own_trials(table: CellTable) -> pd.DataFrame:
    """Return the cells of a table in our columns, under our names, with decimal points."""
    cells = table.cells.rename(columns=str.lower)
    if table.delimiter == ",":
        return cells
    for name in cells:
        given = cells[name].dropna()
        commas = given.str.fullmatch(COMMA)
        if commas.any() and (commas | given.str.fullmatch(r"\s*[+-]?\d+\s*")).all():
            cells[name] = cells[name].str.replace(",", ".", regex=False)
    return cells


def named_after_file(table: CellTable) -> CellTable:
    """Return the table with its file's name as the subject of all rows."""
    return replace(table, cells=table.cells.assign(subject=table.name))


def _version(folder: str) -> str:
    match = _VERSION.fullmatch(folder)
    return f"V{match[1] or 1}" if match else ""


def identified(table: CellTable, column: str, tally: Tally) -> CellTable:
    """Leave out rows without a usable name in a column.

    Where most names are whole numbers, one that is none is damaged.
    """
    names, given = whole_numbers(table.cells[column]), table.cells[column].notna()
    whole = names.str.fullmatch(r"\d{1,12}") & given
    usable = whole if whole.sum() > given.sum() / 2 else given
    tally.mark(LEFT_OUT, f"no usable {column!r}", table, ~usable)
    cells = table.cells.assign(**{column: names.where(given)})
    return replace(table, cells=cells).keep(usable)


def whole_numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return cells as text, whole numbers without the `.0` that a column with gaps gives them."""
    return cells.astype("str").str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True)


def check_known(
    table: CellTable,
    column: str,
    wrong: ArrayLike,
    known: Mapping[str, float],
    *,
    map_by: str,
    answers: bool = False,
    continued: bool = False,
) -> None:
    """Raise ValueError if codes that are not known are a category of their own, and no slips.

    That is a code in more than 3% of the rows, and in 3 at least; answers of which a single one is
    left; and, where asked, a whole number right below or above the known ones.

    Parameters
    ----------
    wrong : Which cells are none of the codes, [rows].
    known : The codes, and what they mean.
    map_by : The option that maps the column, up to the codes.
    answers : Whether one code alone is suspicious.
    continued : Whether a code that continues the known ones is.
    """
    cells = whole_numbers(table.cells[column]).where(table.cells[column].notna())
    strange = cells[np.asarray(wrong, dtype=bool)].dropna().value_counts()
    if not len(strange):
        return
    given = cells.dropna().value_counts()
    whole = {int(code) for code in known if re.fullmatch(r"-?\d+", code)}
    beyond = {str(min(whole) - 1), str(max(whole) + 1)} if len(whole) == len(known) else set()
    many = (strange >= SEVERAL) & (strange > MANY * given.sum())
    alone = answers and len(known) > 1 and len(given) - len(strange) < 2
    if not (many.any() or alone or (continued and set(strange.index) & beyond)):
        return
    codes = sorted(map(str, given.index[:MOST_CODES]), key=_by_number)
    shown = ", ".join(f"{code} ({counted(int(given[code]), 'row')})" for code in codes)
    more = f" and {len(given) - MOST_CODES} more" if len(given) > MOST_CODES else ""
    means = [known[code] for code in sorted(known, key=_by_number)]
    if len(codes) == len(given) == len(known):
        pairs = ",".join(f"{c}={m:g}" for c, m in zip(codes, means, strict=True))
        remedy = f"If they mean that, say it: {map_by}: {pairs}'."
        remedy += f" If {strange.index[0]} stands for no answer: --missing {strange.index[0]}."
    else:
        least = ",".join(f"{code}={known.get(code, k):g}" for k, code in enumerate(codes))
        remedy = (
            f"Say what each means ({map_by}: {least}'), and name what stands for no answer: "
            f"--missing {strange.index[0]}."
        )
    raise ValueError(
        f"{column!r} is {' or '.join(known)} in this format; {table.file} has {shown}{more}. "
        + remedy
    )


def _by_number(code: str) -> tuple[float, str]:
    return (float(code) if re.fullmatch(NUMBER, code) else np.inf, code)


def numbers(
    table: CellTable, column: str, tally: Tally
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as numbers, NaN where there is none, and where a cell is no number.

    A decimal comma is understood in a column where no cell has a decimal point. The file must not
    itself be separated by commas. The account names it.
    """
    cells = table.cells[column]
    given = cells.notna().to_numpy()
    text = cells.astype("str")
    if table.delimiter != ",":
        commas = text.str.fullmatch(COMMA).to_numpy(dtype=bool) & given
        points = text.str.contains(".", regex=False).to_numpy(dtype=bool) & given
        if commas.any() and not points.any():
            text = text.str.replace(",", ".", regex=False)
            tally.add(TOLD, f"decimal commas in {column!r}")
    right = text.str.fullmatch(NUMBER).to_numpy(dtype=bool) & given
    values = pd.to_numeric(text.where(right), errors="coerce").to_numpy(
        dtype=float, na_value=np.nan
    )
    right &= np.isfinite(values)
    return np.where(right, values, np.nan), given & ~right


def within(
    table: CellTable,
    column: str,
    tally: Tally,
    *,
    least: float = -np.inf,
    most: float = np.inf,
    whole: bool = False,
    allowed: Sequence[float] = (),
    coded: Literal["", "answer", "reward"] = "",
) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where none stands that can be there; those are marked.

    What marks them is left to the caller, who knows whether the cell is an answer or a stimulus.
    Of answers and rewards, `coded`, codes of another scheme are refused (`check_known`); so are
    answers of which nine in ten lie out of their range.
    """
    if coded == "reward":
        table = truths(table, column, tally)
    values, _ = numbers(table, column, tally)
    right = (values >= least) & (values <= most)
    if whole:
        right &= values % 1 == 0
    if allowed:
        right &= np.isin(values, allowed)
    given = table.cells[column].notna().to_numpy()
    if coded and allowed:
        known = {f"{value:g}": float(value) for value in allowed}
        answers = coded == "answer"
        check_known(table, column, given & ~right, known, map_by=f"--map '{column}",
                    answers=answers)  # fmt: skip
    elif coded and given.any() and (right & given).sum() < given.sum() / 10:
        unit = "percent" if most == 1 else "as is"
        raise ValueError(
            f"{column!r} is {_rule({'least': least, 'most': most})} in this format; "
            f"{(given & ~right).sum()} of {given.sum()} rows of {table.file} have another, as "
            f"{table.row_name(int(np.flatnonzero(given & ~right)[0]))}. Say what they are: "
            f"--map '{column}: {unit}'."
        )
    return np.where(right, values, np.nan)


def truths(table: CellTable, column: str, tally: Tally) -> CellTable:
    """Return the table with 1 and 0 where true and false stand in a column, in any case."""
    cells = table.cells[column]
    truth = cells.str.lower().map({"true": "1", "false": "0"})
    tally.mark(DERIVED, f"{column!r}: true is 1, and false is 0", table, truth.notna())
    return replace(table, cells=table.cells.assign(**{column: truth.fillna(cells)}))


def stimuli(
    table: CellTable, tally: Tally, **columns: dict[str, Any]
) -> tuple[CellTable, dict[str, NDArray[np.float64]]]:
    """Return columns that a trial needs as numbers; rows without one of them are left out.

    Parameters
    ----------
    columns : By name, how each is checked; see `within`.
    """
    columns_of = {name: within(table, name, tally, **how) for name, how in columns.items()}
    right = np.ones(len(table), dtype=bool)
    for name, values in columns_of.items():
        lost = right & np.isnan(values)
        tally.mark(LEFT_OUT, f"no usable {name!r}: {_rule(columns[name])}", table, lost)
        right &= ~lost
    return table.keep(right), {name: values[right] for name, values in columns_of.items()}


def without_copies(
    table: CellTable,
    unit: pd.Series[Any],
    place: pd.Series[Any],
    tally: Tally,
    *,
    begun_anew: bool = False,
    repeated: bool = False,
) -> CellTable:
    """Leave out rows that are exact copies of an earlier row of their unit, and count them.

    Parameters
    ----------
    unit, place : Of each row: what its place is counted in (a run, a person), and the place (its
        trial).
    begun_anew : Whether a unit may hold several runs, of which each begins at the first place
        again. Rows of a further run are no copies: it has other cells, or is nearly as long as the
        first one.
    repeated : Whether nearly all rows of a unit may have another one of their place right behind
        them, or anywhere.
    """
    copy = table.cells.duplicated().to_numpy()
    if not copy.any():
        return table
    if begun_anew or repeated:
        same = table.cells.eq(table.cells.shift()) | (
            table.cells.isna() & table.cells.shift().isna()
        )
        behind = copy & same.all(axis=1).to_numpy()
        number = pd.to_numeric(place, errors="coerce").astype(float)
        run = _runs(number.where(~behind), unit)
        each = pd.DataFrame({"copy": copy, "number": number, "first": number}).groupby(
            [unit, run], sort=False, dropna=False
        )
        least = number.groupby(unit, sort=False, dropna=False).transform("min")
        size = each["number"].transform("nunique")
        length = size.where(run == 0).groupby(unit, sort=False, dropna=False).transform("max")
        further = (run > 0) & (each["first"].transform("first") == least)
        further &= ~each["copy"].transform("all") | (size >= NEARLY * length)
        kept = further.to_numpy() & ~behind
        if repeated:  # passes one by one, or question by question
            steps = number.groupby(unit, sort=False, dropna=False).diff() == 0
            by_question = steps.groupby(unit, sort=False, dropna=False).transform("mean") > 0.4
            mixed = run.groupby(unit, sort=False, dropna=False).transform("max") > len(number) / 4
            kept = kept | ((by_question | mixed) & mostly_twice(unit, place)).to_numpy()
        copy = copy & ~kept
    tally.mark(LEFT_OUT, "an exact copy of a row before it", table, copy)
    return table.keep(~copy)


def _runs(number: pd.Series[Any], unit: pd.Series[Any]) -> pd.Series[int]:
    """Return the run of each row in its unit, from 0: one begins where the number falls."""
    filled = number.groupby(unit, sort=False, dropna=False).ffill()
    falls = (filled.groupby(unit, sort=False, dropna=False).diff() <= 0) & number.notna()
    return falls.astype(np.int64).groupby(unit, sort=False, dropna=False).cumsum()


def mostly_twice(unit: pd.Series[Any], place: pd.Series[Any]) -> pd.Series[bool]:
    """Return of each row whether nearly all places of its unit are there more than once."""
    keys = pd.DataFrame({"unit": unit.to_numpy(), "place": place.to_numpy()})
    several = keys.duplicated(keep=False)[~keys.duplicated()]
    share = several.groupby(keys["unit"][several.index], dropna=False).mean()
    return keys["unit"].map(share) >= NEARLY


def answers(
    table: CellTable, column: str, tally: Tally, **how: Any
) -> tuple[NDArray[np.float64], NDArray[np.str_], pd.Series[Any]]:
    """Return answers as numbers, what became of each, and the text of those that are no answer.

    An empty cell has the outcome "empty", one that cannot be the answer "malformed".
    """
    values = within(table, column, tally, coded="answer", **how)
    given = table.cells[column].notna().to_numpy()
    wrong = given & np.isnan(values)
    tally.mark(UNREADABLE, f"{column!r} is no answer: {_rule(how)}", table, wrong)
    tally.mark(UNREADABLE, f"{column!r} is empty", table, ~given)
    outcome = np.where(wrong, "malformed", np.where(given, "ok", "empty"))
    return values, outcome, table.cells[column].where(wrong)


def _rule(how: dict[str, Any]) -> str:
    if how.get("allowed"):
        return "one of " + ", ".join(f"{value:g}" for value in how["allowed"])
    low, high = how.get("least", -np.inf), how.get("most", np.inf)
    kind = "a whole number" if how.get("whole") else "a number"
    if np.isfinite(low) and np.isfinite(high):
        return f"{kind} from {low:g} to {high:g}"
    if np.isfinite(low):
        return f"{kind} from {low:g} on"
    return kind
