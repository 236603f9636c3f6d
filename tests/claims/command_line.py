"""What the command line prints beside results.

Facts: a `SimpleNamespace` with what each proof names.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from claims import Claim, Explanation, Report
from claims.budget import ends, near, numbers, prove_range, tokens


def _estimate(facts, words):
    """`content`, `sessions` and `aloud` as for a budget; `price` of a token sent and received."""
    each = [len(session) for session in facts.sessions]
    near(numbers(words["calls"])[0], facts.content["sessions"] * sum(each) / len(each), 1)
    prove_range(facts, ends(words["sent"]), lambda call, high: tokens(call, high)[0])
    prove_range(facts, ends(words["received"]), lambda call, high: tokens(call, high)[1])
    if facts.price is None:
        assert words["money"] == "no price is known"
        return
    low, high = ends(words["money"].split(" (")[0])
    for told, end in ((low, False), (high, True)):
        pairs = [tokens(call, end) for session in facts.sessions for call in session]
        true = sum(a * facts.price[0] + b * facts.price[1] for a, b in pairs)
        true *= facts.content["sessions"] / len(facts.sessions) / 1e6
        near(told, true, max(0.0051 * (true > 0.09), 0.06 * true))


def _kept_price(facts, words):
    """`kept` and `given`: rates of a million tokens, sent and received."""
    assert f"${facts.kept[0]:g} input, ${facts.kept[1]:g} output" in words["price"]
    assert facts.kept != facts.given


def _standing(facts, words):
    """`rows`, `attempts`, `progress` of the last call, and `sessions` asked for."""
    rows = facts.rows
    ended = sum(len(some) == facts.trials for _, some in rows.groupby("subject"))
    assert (int(words["ended"]), int(words["n"])) == (ended, facts.sessions)
    assert int(words["unread"]) == (~rows["outcome"].isin(["ok", "repaired"])).sum()
    assert int(words["calls"]) == len(facts.attempts)
    cost = facts.attempts["cost"]
    if cost.isna().all():
        assert words["money"] == "no price"
    else:
        assert abs(float(words["money"].lstrip("$")) - cost.sum() / 1e9) <= 5e-5
    assert int(words["under_way"]) == 0
    assert 1 <= int(words["allowed"]) <= facts.concurrency


def _written(facts, words):
    file = Path(words["out"])
    frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    told = numbers(words["trials"])
    assert len(frame) in told
    assert frame["subject"].nunique() in told


def _answered(facts, words):
    assert int(words["n"]) == facts.answered


def _most_calls(facts, words):
    assert int(words["calls"].replace(",", "")) == facts.rows


def _serves(facts, words):
    assert words["url"] == facts.url
    assert words["name"] == facts.served


def _nothing_left(facts, words):
    """`before` and `after`: what the folder of temporary files held."""
    assert facts.before == facts.after


def _experiment(facts, words):
    assert words["name"] == facts.environment


def _model(facts, words):
    assert words["name"] == facts.model


def _stays(facts, words):
    assert (Path(words["folder"]) / "ledger.sqlite").stat().st_size > 0


def _subjects_of_hbayesdm(facts, words):
    """`file` that was written, `rows` of the trials."""
    told = pd.read_csv(facts.file, sep="\t")["subjID"]
    assert words["name"].strip("'") == told.iloc[0]
    assert told.nunique() == len(facts.rows.groupby(["subject", "session", "context"]))


def _file(facts, words):
    assert Path(words["file"]).is_file()


REPORT = Report(
    "command line",
    sources=(
        "validation/costs/connect.py",
        "validation/cli/__init__.py",
        "validation/cli/application.py",
        "validation/cli/data/export.py",
        "validation/cli/data/fit.py",
        "validation/cli/data/import_trials.py",
        "validation/cli/data/phenotype.py",
        "validation/cli/data/schema.py",
        "validation/cli/data/score.py",
        "validation/cli/data/simulate.py",
        "validation/cli/list_all.py",
        "validation/cli/models/budget.py",
        "validation/cli/models/doctor.py",
        "validation/cli/models/reveal.py",
        "validation/cli/models/run.py",
        "validation/cli/models/serve.py",
        "validation/options.py",
        "validation/cli/output.py",
        "validation/reading.py",
        "validation/cli/show.py",
        "validation/cli/studies/audit.py",
        "validation/cli/studies/calibrate.py",
        "validation/cli/studies/channel.py",
        "validation/cli/studies/confuse.py",
        "validation/cli/studies/design.py",
        "validation/cli/studies/gallery.py",
        "validation/cli/studies/gates.py",
        "validation/cli/studies/merge.py",
        "validation/cli/studies/power.py",
        "validation/cli/studies/recover.py",
        "validation/cli/studies/report.py",
        "validation/cli/study.py",
    ),
    sentences=(
        Claim(
            "estimate of the whole run: {calls} calls, {sent} tokens sent, {received} received; "
            "{money}",
            "sessions that the test lives and counts",
            _estimate,
        ),
        Claim(
            "--price is not used: the run keeps the price it has, {price}",
            "the two prices that the test has given",
            _kept_price,
        ),
        Claim(
            "{ended}/{n} sessions, {unread} unread, {calls} calls, {money}, {under_way} of "
            "{allowed} under way",
            "the rows, and the attempts in the ledger",
            _standing,
        ),
        Claim(
            "{calls} calls at most; which questions they ask hangs on the answers, so tokens are "
            "not estimated (--cap bounds them)",
            "the rows of the run",
            _most_calls,
        ),
        Claim("{trials}, written to {out}", "the file", _written),
        Claim(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            "as in {name}.",
            "the subjIDs in the file, and the trials",
            _subjects_of_hbayesdm,
        ),
        Claim("{n} calls were answered.", "the calls that the test has made", _answered),
        Claim("{mind} at {url} as {name}; Ctrl-C ends it.", "the address that answers", _serves),
        Claim(
            "Computed in a temporary folder, now removed; --out FOLDER keeps rows and report.",
            "the folder of temporary files",
            _nothing_left,
        ),
        Explanation("--out FOLDER keeps the beliefs and their report."),
        Claim(
            "experiment: {name} (name another with --environment)", "what was simulated",
            _experiment,
        ),
        Claim(
            "model: {name} (name another with --model)", "who made the sample", _model
        ),
        Claim("report: {file}", "the file", _file),
        Claim("The first is kept in {file}.", "the file", _file),
        Claim(
            "Nothing was written; --out trials.parquet writes it.",
            "the folder before and after",
            _nothing_left,
        ),
        Claim("trials: {file}", "the file", _file),
        Explanation(
            "knownminds: stopped. A run, and a study with --out, go on with the same command."
        ),
        Explanation(
            "knownminds: A file that is read holds lists within lists, at most a few; one that was "
            "given goes deeper. Mend it, or leave it out."
        ),
        Claim("{error} What was paid for stays in {folder}.", "the ledger", _stays),
        Explanation(
            "Anywhere: --plugin FILE brings the models, experiments, measures and adapters of a "
            "Python file of your own (repeatable; or listed in knownminds.toml)."
        ),
        Explanation("parameter of {model} or setting"),
    ),
)  # fmt: skip
