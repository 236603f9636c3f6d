"""Whole folders of files that others published, with known traps in known numbers."""

import gzip
import io
import json
import random
import zipfile
from collections import Counter

import pandas as pd
import pytest
import their_files

FOLDERS = (("two_step", their_files.days, 74), ("horizon", their_files.games, 69),
           ("collider", their_files.model_causes, 29))  # fmt: skip


def with_points(line):
    """The cells of a line as pandas writes them where a column has a gap: 3 becomes 3.0."""
    return ",".join(f"{cell}.0" if cell.isdigit() else cell for cell in line.split(","))


def with_another_mean(lines, trials):
    """Change the true mean in the middle of game 1; it has no trials any more."""
    at = [number for number, line in enumerate(lines) if line.startswith("1,")]
    cells = lines[at[3]].split(",")
    lines[at[3]] = ",".join([*cells[:2], "99.0", *cells[3:]])
    return [trial for trial in trials if trial["game"] != 1], len(at)


def without_last_cells(lines, trials):
    """Cut the last line in the middle, as a full disk does; its trials are gone."""
    lines[-1] = lines[-1][: len(lines[-1]) // 2]
    last = [trials[-1]["subject"], trials[-1]["session"], trials[-1]["trial"] // 2]
    return [t for t in trials if [t["subject"], t["session"], t["trial"] // 2] != last], 1


def trapped(experiment, make_file, number):
    """A file with its traps: its name, its text, its trials and how many rows are left out."""
    made = make_file(seed=number)
    lines, trials, lost = made.text.splitlines(), made.trials, 0
    if experiment == "collider":  # an effort that is not available, beside each answer
        text = made.text.replace("some-model", f"engine{number}").replace(";temp", ";effort;temp")
        text = text.replace("effort", "reasoning_effort").replace(";0.7\n", ";N/A;0.7\n")
        return f"1_v_numeric_{number}.csv", text, trials, 0
    if experiment == "two_step" and number % 5 == 0:
        trials, lost = without_last_cells(lines, trials)
    if experiment == "horizon" and number % 5 == 0:
        trials, lost = with_another_mean(lines, trials)
    if number % 3 == 0:
        lines = [lines[0], *map(with_points, lines[1:])]
    end = "" if number % 4 == 0 or number % 5 == 0 else "\n"
    return f"engine{number}.csv", "\n".join(lines) + end, trials, lost


@pytest.mark.long
def test_folders_of_files_give_every_trial_that_is_in_them(knownminds, tmp_path):
    for experiment, make_file, n_files in FOLDERS:
        folder, outcomes, sums, trials, lost = tmp_path / experiment, Counter(), [], 0, 0
        answer = "response" if experiment == "collider" else "action"
        folder.mkdir()
        for number in range(n_files):
            name, text, inside, left_out = trapped(experiment, make_file, number)
            (folder / name).write_text(text, encoding="utf-8")
            outcomes += Counter(trial.get("outcome", "ok") for trial in inside)
            sums.append(sum(trial[answer] or 0 for trial in inside))
            trials, lost = trials + len(inside), lost + left_out
        out = tmp_path / f"{experiment}.csv"
        code, said, errors = knownminds("import", *sorted(folder.iterdir()), "--out", out, "--json")
        assert code == 0, errors
        account = json.loads(said)["account"]
        assert account["outcomes"] == outcomes
        assert account["trials"] == trials
        left_out = [e["rows"] for e in account["entries"] if e["kind"] == "left out"]
        assert sum(left_out) == lost
        read = pd.read_csv(out, usecols=["subject", answer])
        engine = read["subject"].str.split("/").str[0].str.removeprefix("engine").astype(int)
        assert read.groupby(engine)[answer].sum().tolist() == sums


NUMBERED = [make_file for make_file in their_files.MADE if make_file not in (
    their_files.hb_two_step, their_files.hb_balloons)]  # fmt: skip
PER_FORMAT = 6  # files of a format, each with other traps


def written_oddly(made, number):
    """A file's name and bytes: its ending, packing and delimiter are not the usual ones."""
    head, _, body = made.text.lstrip("\ufeff").partition("\n")
    head = head.upper() if number % 2 else head
    text = f"{head}\n{body}"
    stem, _, ending = made.name.rpartition(".")
    name = (f"{stem}.{ending}", f"{stem}.CSV", f"{stem}.dat", f"{stem}.csv.gz", f"{stem}.txt",
            f"{stem}.zip")[number]  # fmt: skip
    if number == 3:
        return name, gzip.compress(text.encode())
    if number == 5:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("inside.csv", text)
        return name, stream.getvalue()
    return name, text.encode()


def with_copies(made, number):
    """Write some rows of a file that numbers its rows twice; return how many."""
    rows = made.text.rstrip("\n").split("\n")
    cell = next(one for one in "\t;," if one in rows[0])
    whole = [k for k, row in enumerate(rows) if k and row.count(cell) == rows[0].count(cell)]
    for k in sorted(random.Random(number).sample(whole, number), reverse=True):
        rows.insert(k + 1 if k % 2 else len(rows), rows[k])
    made.text = "\n".join(rows) + "\n"
    return number


@pytest.mark.parametrize("make_file", NUMBERED)
def test_a_folder_with_traps_gives_the_trials_that_are_in_it(knownminds, tmp_path, make_file):
    """Odd endings, packages, capitals, doubled rows; sums and counts are those of the truth."""
    counts, trials, sums, copies = Counter(), 0, 0.0, 0
    files = []
    for number in range(PER_FORMAT):
        made = make_file(seed=number)
        answer = "response" if "response" in made.trials[0] else "action"
        if not made.name.endswith(".txt") and made.environment != "instrumental_learning":
            copies += with_copies(made, number % 3)
        name, content = written_oddly(made, number)
        folder = tmp_path / str(number)
        folder.mkdir()
        files.append(folder / name)
        files[-1].write_bytes(content)
        counts += Counter(made.counted)
        trials += len(made.trials)
        sums += sum(trial[answer] or 0 for trial in made.trials)
    named = made.options.get("environment")
    words = ("--environment", named) if named else ()
    out = tmp_path / "out.csv"
    code, said, errors = knownminds("import", *files, *words, "--out", out, "--json")
    assert code == 0, errors
    account = json.loads(said)["account"]
    assert account["outcomes"] == counts
    assert account["trials"] == trials
    assert pd.read_csv(out)[answer].sum() == pytest.approx(sums)
    left_out = [e["rows"] for e in account["entries"] if "exact copy" in e["what"]]
    assert sum(left_out) == copies
