"""Every study as it is typed: one object of JSON, a folder, a report, the same numbers again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES

PLACE = "instrumental_learning"
RULE = 'kind = "alpha_spending"\nlooks = [4, 8]\n'
LLM = ("--llm", "mine:own", "--price", "mine:own=0.5,2", "--date", "2026-11-01")
TRIALS = ("--trials", 24)

# Each kind of study, small: the command, its words, and what its JSON counts.
STUDIES = {
    "recover": ("recover", PLACE, "--subjects", 20, "--intervals", "laplace"),
    "surface": ("recover", PLACE, "--subjects", 20, *TRIALS, "--trials", 48, "--intervals",
                "laplace", "--model", "rescorla_wagner"),
    "confuse": ("confuse", PLACE, "--model", "rescorla_wagner", "--model", "perseverator",
                "--replicates", 20),
    "calibrate": ("calibrate", PLACE, "--model", "rescorla_wagner", "--replicates", 40, *TRIALS),
    "power": ("power", PLACE, "--effect", "optimism_bias=0.2", "--sessions", 5, "--sessions", 9,
              *TRIALS, "--replicates", 20),
    "search": ("power", PLACE, "--effect", "optimism_bias=0.8", "--find", "sessions", "--most", 60,
               "--target", 0.4, *TRIALS, "--replicates", 60),
    "rule": ("power", PLACE, "--effect", "optimism_bias=0.4", *TRIALS, "--replicates", 20,
             "--stop", "rule.toml"),
    "against": ("power", PLACE, "--against", "random_responder", "--subjects", 1, "--subjects", 3,
                *TRIALS, "--replicates", 20),
    "design": ("design", PLACE, "--for", "beta", "--budget", "trials=96", "--model",
               "rescorla_wagner", "--search", "n_visits=6:12", "--designs", 4, "--replicates", 10,
               "--fresh", 10),
    "audit": ("audit", "heads_outcome_bias", "--effect", 0.2, "--subjects", 5,
              "--replicates", 20),
    "shortcuts": ("audit", "shortcuts", "--environment", "marker_location", "--replicates", 3),
    "channel": ("audit", "channel", "--environment", PLACE, "--subjects", 3, *TRIALS, "--set",
                "model=rescorla_wagner", "--set", 'contaminants=["none", "refusal=0.1"]'),
    "check": ("simulate", PLACE, "--model", "rescorla_wagner", "--subjects", 40, "--report"),
    "budget": ("budget", PLACE, *LLM, "--subjects", 3, *TRIALS),
    "fit": ("fit", "trials.csv", "--model", "rescorla_wagner"),
}  # fmt: skip
UNSEEDED = ("budget", "fit")
ALONE = ("budget", "fit", "shortcuts")  # which are no units of work
each = pytest.mark.parametrize("name", STUDIES)
# One study of each make; the others are drawn again with the long tests.
DRAWN_AGAIN = ("recover", "confuse", "power", "design", "audit", "fit")
each_make = pytest.mark.parametrize(
    "name", [n if n in DRAWN_AGAIN else pytest.param(n, marks=pytest.mark.long) for n in STUDIES]
)


SCHEMA = Draft202012Validator(
    json.loads((files("knownminds.validation.engine") / "result_schema.json").read_text())
)


def words_of(name):
    words = STUDIES[name]
    words += () if name in UNSEEDED else ("--seed", 3)
    return words if name in ALONE else (*words, "--workers", 1)


def finite(text):
    """Read JSON in which no number may be none."""

    def never(constant):
        raise AssertionError(f"{constant} is no number")

    return json.loads(text, parse_constant=never)


def without_seconds(content):
    if isinstance(content, dict):
        return {k: without_seconds(v) for k, v in content.items() if k != "seconds"}
    return [without_seconds(v) for v in content] if isinstance(content, list) else content


def titles_in(text):
    """The lines of a text as JSON names tables."""
    return {"_".join(re.findall(r"[a-z0-9]+", line.lower())) for line in text.splitlines()}


class Desk:
    """A folder in which studies are typed, each once."""

    def __init__(self, folder):
        self.folder, self.done = folder, {}

    def type(self, run, *words):
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return run(*words)
        finally:
            os.chdir(before)

    def object(self, run, *words):
        code, out, err = self.type(run, *words, "--json")
        assert code == 0, err
        assert out.count("\n") == 1
        return finite(out)

    def study(self, run, name):
        """What a study says, and its folder."""
        if name not in self.done:
            self.done[name] = self.object(run, *words_of(name), "--out", name)
        return self.done[name], self.folder / name


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    (folder / "rule.toml").write_text(RULE)
    return Desk(folder)


@pytest.fixture
def desk(made, knownminds):
    """The same folder for all tests of this file, with trials to be fitted."""
    if not (made.folder / "trials.csv").exists():
        words = ("simulate", PLACE, "--model", "rescorla_wagner", "--subjects", 8, "--seed", 2)
        code, _, err = made.type(knownminds, *words, "--out", "trials.csv")
        assert code == 0, err
    return made


@each
def test_it_prints_one_object_of_finite_numbers_and_says_its_versions(desk, knownminds, name):
    content, _ = desk.study(knownminds, name)
    SCHEMA.validate(content)
    if name not in ("budget", "shortcuts"):
        assert content["versions"]["knownminds"]
    counts = [content["attempted"]] if name != "budget" and "attempted" in content else []
    assert all(count > 0 for count in counts)


@each_make
def test_its_report_fetches_nothing_and_is_drawn_again_from_the_folder_alone(
    desk, knownminds, name, tmp_path
):
    _, folder = desk.study(knownminds, name)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|url\((?!#)|@import", page)
    assert not re.search(r"<script[^>]+src", page)
    assert "<figcaption>" in page
    text = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(svg|script|style).*?</\1>", "", page))
    assert not {"nan", "inf", "NaN"} & set(text.split())
    if name in ALONE:  # whose page is written once
        return
    other = shutil.copytree(folder, tmp_path / folder.name)
    (other / "report.html").unlink()
    content = finite(desk.type(knownminds, "report", other, "--json")[1])
    assert Path(content["report"]) == other / "report.html"
    again = (other / "report.html").read_text(encoding="utf-8")
    assert again.replace(str(other), name) == page.replace(str(folder), name)


@each
def test_the_run_file_beside_a_result_asks_for_it_again_and_nothing_is_computed(
    desk, knownminds, name
):
    content, folder = desk.study(knownminds, name)
    verb = words_of(name)[0]
    again = desk.object(knownminds, verb, folder / f"{verb}.toml")
    if name in ALONE:
        again, content = without_seconds(again), without_seconds(content)
    assert again == content  # with the seconds that it took at first


@pytest.mark.parametrize(
    "name",
    [n if n in ("power", "budget") else pytest.param(n, marks=pytest.mark.long) for n in STUDIES],
)
def test_a_terminal_holds_what_is_printed_and_is_told_what_is_not(
    desk, knownminds, name, monkeypatch
):
    content, _ = desk.study(knownminds, name)
    words = (*words_of(name), "--out", name)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = desk.type(knownminds, *words)
    assert code == 0, err
    assert len(out.splitlines()) + len(err.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80
    first, *others = content["tables"]
    assert first in titles_in(out)
    assert not titles_in(out) & set(others)
    assert f"{len(others)} table" in out.partition("Not shown: ")[2] or not others
    if name == "recover":
        full = desk.type(knownminds, *words, "--full")[1]
        assert set(content["tables"]) <= titles_in(full)


@pytest.mark.parametrize("name", ["recover", "design"])
def test_another_seed_is_refused(desk, knownminds, name):
    desk.study(knownminds, name)
    code, out, err = desk.type(knownminds, *words_of(name), "--seed", 4, "--out", name)
    assert (code, out) == (2, "")
    assert "seed" in err


@pytest.mark.parametrize("name", ["surface", "confuse", "power", "audit", "design"])
def test_two_workers_give_the_numbers_of_one(desk, knownminds, name):
    """Two threads; two processes begin the study that is killed below, and one ends it."""
    content, _ = desk.study(knownminds, name)
    words = (*words_of(name)[:-1], 2, "--backend", "threads")
    assert without_seconds(desk.object(knownminds, *words)) == without_seconds(content)


def test_shares_computed_apart_are_the_whole(desk, knownminds):
    words = (*words_of("surface"), "--out", "shares")
    code, out, err = desk.type(knownminds, *words, "--share", "1/2")
    assert (code, out) == (0, ""), err
    content, _ = desk.study(knownminds, "surface")
    whole = desk.object(knownminds, *words, "--share", "2/2")
    assert without_seconds(whole) == without_seconds(content)


def files_of(folder):
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}


@pytest.mark.long
def test_a_killed_study_goes_on_and_ends_with_the_very_same_numbers(knownminds, tmp_path):
    """SIGKILL to all its processes at a moment when some of the work is kept and some is not."""
    words = ["power", PLACE, "--effect", "optimism_bias=0.2", "--sessions", "8", "--replicates",
             "640", "--seed", "5"]  # fmt: skip
    folder = tmp_path / "study"
    command = [Path(sys.executable).with_name("knownminds"), *words, "--workers", "2"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, "--out", folder], start_new_session=True, **quiet)
    until = time.monotonic() + 240  # a machine with much else to do
    while len(files_of(folder)) < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = files_of(folder)
    assert len(before) >= 3
    code, out, err = knownminds(*words, "--workers", 1, "--out", folder, "--json")
    assert code == 0, err
    assert before.items() <= files_of(folder).items()  # nothing was computed twice
    assert len(files_of(folder)) > len(before)
    code, whole, err = knownminds(*words, "--workers", 1, "--json")
    assert code == 0, err
    assert without_seconds(finite(out)) == without_seconds(finite(whole))


FRAGILE = '''
import numpy as np
from knownminds.agents import RescorlaWagner


class Fragile(RescorlaWagner):
    """Breaks on whoever only ever picks one action in some context."""

    summary = "breaks on some"

    @staticmethod
    def log_likelihood(theta, lapse, n_actions, row, start, action, reward):
        for block in range(len(row) if len(theta) < 1000 else 0):
            own = np.asarray(action[start[block] : start[block + 1]])
            if ((own == own[:1]) & (own >= 0)).all(axis=0).any():
                raise FloatingPointError("planted")
        return RescorlaWagner.log_likelihood(theta, lapse, n_actions, row, start, action, reward)
'''


def test_a_failed_unit_is_counted_and_the_rest_goes_on(desk, knownminds):
    """A model of a file of one's own, as `--plugin` brings it."""
    (desk.folder / "fragile.py").write_text(FRAGILE)
    words = ("recover", PLACE, "--model", "fragile", "--plugin", "fragile.py", "--subjects", 60)
    words += ("--trials", 40, "--intervals", "laplace", "--workers", 1)
    content = desk.object(knownminds, *words, "--out", "fragile")
    assert content["attempted"] == 60
    assert 0 < content["failed"] < 60
    assert "--plugin fragile.py" in content["command"]
    page = (desk.folder / "fragile" / "report.html").read_text(encoding="utf-8")
    assert "planted" in page


# What the studies hand to each other


def test_a_search_is_turned_into_money(desk, knownminds):
    result, folder = desk.study(knownminds, "search")
    content = desk.object(knownminds, "budget", PLACE, "--power", folder, *LLM)
    sessions = result["tables"]["smallest_design"][0]["sessions"]
    assert content["options"]["sessions"] == sessions
    usage = {row["of"]: row["amount"] for row in content["tables"]["usage"]}
    assert usage["calls"] == sessions * 24
    assert len(content["tables"]["designs_and_their_power"]) == len(
        result["tables"]["designs_that_were_tried"]
    )
    dear = desk.object(
        knownminds, "budget", PLACE, "--power", folder, "--llm", "mine:own", "--price",
        "mine:own=1000,0", "--date", "2026-11-01",
    )  # fmt: skip
    # A token has at most some bytes, and more than a third of one.
    highest = {row["of"]: row["amount"] for row in dear["tables"]["usage"]}["input bytes high"]
    assert dear["tables"]["cost"][0]["dollars_high"] > 0.3 * highest / 1000


def test_simulated_trials_are_read_back_and_fitted(desk, knownminds):
    simulate = ("simulate", PLACE, "--seed", 3)
    content = desk.object(knownminds, *simulate, "--subjects", 6, "--out", "t.csv")
    frame = pd.read_csv(desk.folder / "t.csv")
    assert len(frame) == 6 * 96
    assert frame["true_beta"].iloc[0] == pytest.approx(content["truth"][0]["beta"])
    result = desk.object(knownminds, "fit", "t.csv")
    rows = result["tables"]["subjects"]
    assert len(rows) == 6
    for row in rows:
        for name in content["truth"][0].keys() - {"subject"}:
            assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
    more = desk.object(knownminds, *simulate, "--subjects", 9)
    assert more["truth"][:6] == content["truth"]


def test_a_table_with_names_of_its_own_gives_the_same_fit(desk, knownminds):
    ours = pd.read_csv(desk.folder / "trials.csv")
    theirs = ours[["subject", "trial", "context", "action", "reward"]]
    theirs.columns = ["run", "trial", "task", "choice", "reward"]
    theirs.to_csv(desk.folder / "theirs.csv", index=False)
    columns = ("--columns", "subject=run,context=task,action=choice")
    content = desk.object(knownminds, "fit", "theirs.csv", *columns, "--model", "rescorla_wagner")
    own, _ = desk.study(knownminds, "fit")
    assert content["options"]["environment"] == PLACE
    assert not [title for title in content["tables"] if "missing" in title]
    assert content["tables"]["subjects"] == own["tables"]["subjects"]


@pytest.mark.long
def test_a_hierarchical_fit_takes_a_formula(desk, knownminds):
    frame = pd.read_csv(desk.folder / "trials.csv")
    frame["condition"] = (frame["subject"] % 2).map({0: "a", 1: "b"})
    frame.to_csv(desk.folder / "two.csv", index=False)
    words = ("fit", "two.csv", "--model", "rescorla_wagner", "--method", "hierarchical")
    result = desk.object(knownminds, *words, "--formula", "alpha ~ condition")
    rows = result["tables"]["parameters"]
    names = [row["parameter"] for row in rows]
    assert {"alpha", "beta", "kappa", "sd(alpha)"} < set(names)
    assert len([name for name in names if "~" in name]) == 1
    assert result["verdicts"]["sampling"]["verdict"] in ("converged", "not converged")


def test_settings_and_true_values_are_set_alike(desk, knownminds):
    words = ("recover", PLACE, "--subjects", 15, "--set", "alpha_positive=0.4", "--fix", "kappa=0")
    content = desk.object(
        knownminds, *words, "--set", "n_visits=6", "--intervals", "laplace", "--workers", 1
    )
    assert content["options"]["set"] == {"alpha_positive": 0.4}
    assert content["options"]["trials"] == [24]
    names = [row["parameter"] for row in content["tables"]["estimates"]]
    assert names == ["alpha_positive", "alpha_negative", "beta"]


def test_designs_of_an_unfinished_study_are_priced_with_a_warning(desk, knownminds):
    words = ("power", PLACE, "--effect", "optimism_bias=0.1", "--sessions", 2, "--sessions", 3)
    words += ("--replicates", 4, "--workers", 1, "--out", "begun")
    desk.type(knownminds, *words, "--share", "1/2")
    price = ("budget", PLACE, "--power", "begun", "--llm", "openai:gpt-4o-mini")
    code, out, err = desk.type(knownminds, *price)
    assert code == 0, err
    assert "begun is not finished" in out
    assert "What do " in out  # the title has the number of sessions
    desk.object(knownminds, *words)
    assert "not finished" not in desk.type(knownminds, *price)[1]


def test_a_run_stops_where_its_rule_says_and_asks_nothing_more(desk, knownminds):
    """So strong an optimist is found at a look before the last, after as many whole sessions."""
    (desk.folder / "stop.toml").write_text(
        'kind = "alpha_spending"\nlooks = [3, 6, 9]\nmeasure = "optimism_bias"\n'
        'spending = "pocock"\n'
    )
    words = ("run", PLACE, "--llm", "synthetic:rescorla_wagner_dual", "--trials", 24, "--seed", 6)
    for value in ("alpha_positive=.7", "alpha_negative=+.1", "beta=8", "kappa=0"):
        words += ("--set", value)
    words += ("--sessions", 9, "--stop", "stop.toml", "--out", "stopped")
    content = desk.object(knownminds, *words)
    last = content["looks"][-1]
    assert last["stop"]
    assert last["units"] < 9
    assert content["sessions"] == last["units"]
    assert desk.object(knownminds, *words)["looks"] == content["looks"]
    code, _, err = desk.type(knownminds, "report", "stopped")
    assert code == 0, err


# Looking around


def test_list_names_what_is_registered(knownminds):
    registered = {"experiment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}
    for kind, members in registered.items():
        words = () if kind == "experiment" else (f"--{kind}s",)
        (rows,) = finite(knownminds("list", *words, "--json")[1])["tables"].values()
        assert sorted(row[kind] for row in rows) == sorted(members)
    code, out, _ = knownminds("list", "--environment", PLACE)
    assert code == 0
    assert all(f"\n{name} " in out for name in ("rescorla_wagner", "optimism_bias"))
    assert "hyperbolic_discounter" not in out
    # 3 lines before the table, and at most 7 after it: of a package that is not installed too
    assert len(knownminds("list")[1].splitlines()) < len(ENVIRONMENTS) + 11


@pytest.mark.parametrize("name", [PLACE, "rescorla_wagner_dual", "optimism_bias"])
def test_show_describes_a_member(knownminds, name):
    content = finite(knownminds("show", name, "--json")[1])
    assert name in (content.get("environment"), content.get("model"), content.get("measure"))
    said = knownminds("show", name)[1]
    assert content["source"] in said
    if name == PLACE:
        assert said.endswith(content["first_prompt"] + "\n")
        assert content["first_prompt"].startswith("user:\n")


def test_help_and_version_are_said(knownminds):
    assert re.fullmatch(r"knownminds \d+\.\d+\.\d+\S*\n", knownminds("--version")[1])
    code, out, _ = knownminds("--help")
    assert code == 0
    commands = {STUDIES[name][0] for name in STUDIES} | {"simulate", "report", "run"}
    assert commands <= set(re.findall(r"^│ (\w+) ", out, re.MULTILINE))
