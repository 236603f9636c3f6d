"""People in the chair: a page plays what Python plays; what is clicked is read and fitted."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from chromium import PROGRAM, Chromium
from registries import installed

from knownminds import fit, import_trials
from knownminds.environments import (
    ENVIRONMENTS,
    Session,
    Trials,
    answer_columns,
    make,
    session_stream,
)
from knownminds.validation.people.sessions import script_of, session_data
from knownminds.validation.people.site import page

MODULES = Path(__file__).parents[2] / ".psych-ds" / "node_modules"
JSPSYCH = MODULES / "jspsych"
CODE = Path(__file__).parents[2] / "validation" / "people" / "session.js"
NODE = shutil.which("node")

with_jspsych = pytest.mark.skipif(not JSPSYCH.is_dir(), reason="no jsPsych; see .ci/run")
in_a_browser = pytest.mark.skipif(
    PROGRAM is None or not JSPSYCH.is_dir(), reason="no Chromium or no jsPsych; see .ci/run"
)
with_node = pytest.mark.skipif(NODE is None, reason="no Node.js is installed")

# Where the shipped settings make long sessions, shorter ones of the same kind; and other kinds.
SMALL = {
    "instrumental_learning": {"n_visits": 4},
    "collider": {"domains": ["weather"], "senses": ["ppp"]},
    "marker_location": {"n_values": 3, "repeats": 1},
    "line_ratio": {"n_values": 2, "repeats": 1, "modality": "all"},
    "maze_distance": {"n_values": 2, "repeats": 1, "condition": "numeric"},
    "duration": {"n_values": 2, "repeats": 1},
    "balloon_risk": {"n_balloons": 2},
    "horizon": {"n_games": 8},
    "restless_bandit": {"n_blocks": 1},
    "cue_conflict": {"n_values": 2, "repeats": 1},
    "diagnosis": {"n_contexts": 2, "repeats": 1},
    "iowa_gambling": {"n_cards": 45},  # a deck begins anew after 40
}
KINDS = [
    *((name, SMALL.get(name, {})) for name in ENVIRONMENTS),
    ("diagnosis", {"n_contexts": 3, "repeats": 1, "parts": "separate"}),
    *installed(
        ("reversal_learning", {"criterion": each, "n_plays": 60})
        for each in ("correct", "consecutive")
    ),
    ("temporal_discounting", {"design": "grid"}),
    ("preference", {"form": "stated"}),
    ("coins", {"form": "stated", "asking": "gap"}),
]
REFUSED = {
    "coins": ({"form": "continuation"}, "Set form to question or stated"),
    "restless_bandit": ({"confidence": "apart"}, "Set confidence to together"),
}


def lived(environment, seed, subject):
    """A session with random answers, one in ten missing: what was answered, its rows and texts."""
    rng = np.random.default_rng(3)
    session = Session(environment, environment.draw(session_stream(seed, subject)))
    low, high = environment.response_range
    answers, texts = [], []
    for seen in session:
        screen = environment.screen(session.design.labels, seen)
        asked = environment.asks(seen)
        action = int(rng.integers(max(environment.n_actions, 1)))
        response = round(low + float(rng.random()) * (high - low), 3)
        missing = rng.random() < 0.1
        given = [
            None if missing or asked == "response" else action,
            None if missing or asked == "action" else response,
        ]
        choice = {"action": action, "response": response, "both": (action, response)}[asked]
        turn = session.take(None if missing else choice)
        answers.append(given)
        said = environment.feedback_text(session.design.labels, turn)
        order = list(screen.order)
        texts.append([screen.introduction, screen.question, list(screen.options), order, said])
    rows = [{k: None if v is None or v != v else v for k, v in row.items()} for row in session.rows]
    return answers, rows, texts


def played(environment, seed, subject, answers):
    """The same answers in the page's script, without a page."""
    script = script_of(environment)
    code = f"""{CODE.read_text(encoding="utf-8")}
        const PLAY = {script.text}, texts = [];
        const given = JSON.parse(require("fs").readFileSync(0));
        const session = new KnownSession(given.data, PLAY);
        for (const [action, response] of given.answers) {{
          const s = session.screen;
          texts.push([s.introduction, s.question, s.options, s.order,
            session.take(action, response)]);
        }}
        console.log(JSON.stringify({{ rows: session.rows, texts, over: session.over }}));"""
    given = {"data": session_data(environment, seed, subject, script), "answers": answers}
    done = subprocess.run(
        [NODE, "-e", code], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@with_node
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(*kind, marks=[] if number % 3 == 0 else pytest.mark.long)
        for number, kind in enumerate(KINDS)
    ],
)
def test_a_page_plays_what_the_experiment_plays(name, settings):
    environment = make(name, **settings)
    answers, rows, texts = lived(environment, 5, 2)
    found = played(environment, 5, 2, answers)
    assert found["over"]
    assert found["texts"] == texts
    assert len(found["rows"]) == len(rows) > 0
    columns = {name for name in rows[0] if rows[0][name] is not None or environment.feedback}
    for got, row, (action, response) in zip(found["rows"], rows, answers, strict=True):
        outcome = "empty" if action is None and response is None else "ok"
        assert got.pop("outcome") == outcome
        assert got == {column: row[column] for column in got}
        assert columns - {"reward"} <= got.keys() | {"action", "response"}


@pytest.mark.parametrize("name", [name for name in REFUSED])
def test_what_a_page_cannot_show_is_refused_with_what_it_can(name):
    settings, remedy = REFUSED[name]
    with pytest.raises(ValueError, match=remedy):
        script_of(make(name, **settings))


# In a browser


@pytest.fixture(scope="module")
def browser():
    with Chromium() as opened:
        yield opened


def until(browser, script):
    ends = time.monotonic() + 30
    while not browser.value(script):
        assert time.monotonic() < ends, (script, browser.value("document.body.innerText"))
        time.sleep(0.01)


def begin(browser, site, query="", clean=True, **screen):
    if clean:
        browser.open(site / "index.html")
        browser.value("localStorage.clear()")
    browser.open(site / "index.html", query=query, **screen)
    until(browser, "document.querySelector('#start button') !== null")


def go(browser):
    browser.value("document.querySelector('#start button').click()")
    until(browser, "document.querySelector('form') !== null")


def click(browser, action=None, response=None):
    """Answer the question, and go on from what is told."""
    script = ["const form = document.querySelector('section form');"]
    if action is not None:
        script.append(f"form.querySelector('[data-action=\"{action}\"]').click();")
    if response is not None:
        script.append(f"form.querySelector('input').value = '{response}'; form.requestSubmit();")
    script.append("document.querySelector('[role=status] + button')?.click();")
    browser.value(f"(() => {{ {' '.join(script)} }})()")


def saved(browser, kind="json"):
    """What the link of the last screen would save, and under which name."""
    until(browser, "!document.getElementById('saving').hidden")
    told = browser.ask(
        "Runtime.evaluate",
        expression=f"""(async () => {{
            const link = [...document.querySelectorAll('a[download]')]
              .find(one => one.download.endsWith('.{kind}'));
            return [link.download, await (await fetch(link.href)).text()];
        }})()""",
        awaitPromise=True,
        returnByValue=True,
    )
    return told["result"]["value"]


def keep(browser, folder, kind="json"):
    name, text = saved(browser, kind)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


# Experiments that are clicked through whole, each with settings that make it short.
PLAYED = {
    "two_step": {"n_days": 8},
    "adjusting_amount": {"delays": [1, 12], "questions": 3},
    "risky_choice": {"problems": [[[[30, 1]], [[80, 0.5], [0, 0.5]]], [[[-9, 1]], [[-20, 1]]]]},
    "ambiguity": {"middles": [0.5], "widths": [1.0]},
    "ultimatum": {"offers": [20, 50], "proposals": [[[10, 0.3], [50, 0.9]]]},
    "public_goods": {"endowment": 3},
    "causal_strength": {"cases": 4, "levels": 3},
}


@in_a_browser
@pytest.mark.parametrize("name", installed(PLAYED))
@pytest.mark.long
def test_what_is_clicked_is_what_is_lived_and_is_read_back(name, browser, tmp_path):
    site, environment = tmp_path / "site", make(name, **PLAYED[name])
    page(name, site, subjects=2, seed=4, settings=PLAYED[name], jspsych=JSPSYCH)
    low, high = environment.response_range
    files, expected = [], []
    for subject in (1, 2):
        begin(browser, site, f"?subject={subject}", width=1200, height=800)
        go(browser)
        session = Session(environment, environment.draw(session_stream(4, subject)))
        for seen in session:
            number, asked = int(seen["trial"]) // 3 + subject, environment.asks(seen)
            question = browser.value("document.querySelector('section').innerText")
            screen = environment.screen(session.design.labels, seen)
            assert screen.question.strip() in question
            if asked == "response":
                answer = low + number % 8 / 8 * (high - low)
                session.take(answer)
                click(browser, response=answer)
            else:
                action = number % environment.n_actions
                session.take(action)
                click(browser, action)
        files.append(keep(browser, tmp_path))
        expected += [(str(subject), row) for row in session.rows]
    local = {address for address in browser.asked_for if not address.startswith("blob:")}
    assert all(address.startswith(site.resolve().as_uri()) for address in local)
    assert browser.complaints == []
    trials = import_trials(files)
    assert len(trials) == len(expected) > 0
    for row, (subject, lived_row) in zip(trials.frame.to_dict("records"), expected, strict=True):
        assert row["subject"] == subject
        for column, value in lived_row.items():
            assert row[column] == value or (value is None and row[column] != row[column]), column
    assert make(name, **trials.settings[name]).settings == environment.settings
    by_table = Trials.load(keep(browser, tmp_path, "csv"), environment=name)
    own = trials.frame[trials.frame["subject"] == "2"]
    for column in answer_columns(environment):
        assert by_table.frame[column].tolist() == own[column].tolist()
    assert make(name, **by_table.settings[name]).settings == environment.settings
    if name == "two_step":
        fitted = fit(trials, "two_step_reduced")
        assert sorted(fitted["Subjects"]["subject"].unique()) == ["1", "2"]


# What is refused


@with_jspsych
def test_files_that_were_changed_or_do_not_belong_are_refused(tmp_path, knownminds):
    environment = make("two_step", n_days=3)
    _, rows, _ = lived(environment, 0, 1)
    data = session_data(environment, 0, 1)
    own = {
        name: data[name]
        for name in ("knownminds_page", "environment", "settings", "seed", "subject", "design")
    }
    whole = {**own, "participant": "", "ended": True, "closed": 0, "rows": rows}

    def refused(name, content, *others):
        file = tmp_path / f"{name}.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        code, _, err = knownminds("import", file, *others)
        assert code == 2
        assert err.count("\n") == 1
        return err

    (tmp_path / "whole.json").write_text(json.dumps(whole))
    code, said, _ = knownminds("import", tmp_path / "whole.json", "--out", tmp_path / "x.csv")
    assert code == 0
    assert "two_step from whole.json (page)" in said
    paid = next(k for k, row in enumerate(rows) if row["reward"] is not None)
    changed = [dict(row) for row in rows]
    changed[paid]["reward"] = 1.0 - changed[paid]["reward"]
    assert "follow from its answers" in refused("changed", {**whole, "rows": changed})
    assert "another design" in refused("seed", {**whole, "seed": 1})
    assert "'rows' is missing" in refused("rows", {**own, "participant": "", "ended": True,
                                                   "closed": 0})  # fmt: skip
    assert "damaged" in refused("cut", json.dumps(whole)[:-20])
    assert "version 7" in refused("version", {**whole, "knownminds_page": 7})
    odd = [{**rows[0], "action": 5}, *rows[1:]]
    assert "an answer that is none" in refused("odd", {**whole, "rows": odd})
    other = [{**rows[0], "action": 1 - (rows[0]["action"] or 0)}]
    assert "tell different things" in refused(
        "other", {**whole, "rows": other}, tmp_path / "whole.json"
    )
    # A file that another one goes on with is passed over, and counted.
    (tmp_path / "early.json").write_text(json.dumps({**whole, "rows": rows[:2]}))
    code, said, _ = knownminds("import", tmp_path / "early.json", tmp_path / "whole.json")
    assert code == 0
    assert "1 earlier files" in said
