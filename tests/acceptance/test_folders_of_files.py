"""Whole folders of files that others published, with known traps in known numbers."""

import json
from collections import Counter

import pandas as pd
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
