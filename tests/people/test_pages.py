"""People in the chair: a page plays what Python plays; what is clicked is read and fitted."""

import base64
import json
import shutil
import subprocess
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from chromium import PROGRAM, Chromium

from knownminds import fit, import_trials
from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Session,
    Trials,
    World,
    answer_columns,
    make,
    session_stream,
)
from knownminds.environments.decisions.stated import StatedQuestions
from knownminds.validation.data.exchange import import_sources
from knownminds.validation.people.sessions import script_of, session_data
from knownminds.validation.people.site import Site, page

MODULES = Path(__file__).parents[2] / ".psych-ds" / "node_modules"
JSPSYCH = MODULES / "jspsych"
AXE = MODULES / "axe-core" / "axe.min.js"
CODE = Path(__file__).parents[2] / "validation" / "people" / "session.js"
NODE = shutil.which("node")
CHECKED = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]

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
    ("reversal_learning", {"criterion": "correct", "n_plays": 60}),
    ("reversal_learning", {"criterion": "consecutive", "n_plays": 60}),
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
        screen, asked = session.environment.screen(seen), environment.asks(seen)
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
        said = session.environment.told_after(turn)
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
@pytest.mark.parametrize(("name", "settings"), KINDS)
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


@pytest.mark.parametrize(
    "name", [n for n, e in ENVIRONMENTS.items() if issubclass(e, StatedQuestions)]
)
def test_a_button_bears_what_is_read_as_its_action(name):
    environment = make(name)
    session = Session(environment, environment.draw(session_stream(5, 2)))
    for seen in session:
        options = session.environment.screen(seen).options
        read = [session.environment.parse(option, seen).action for option in options]
        assert read == list(range(environment.n_actions))
        session.take(0)


class Unseen(type(make("dice"))):
    """Dice of which is said nowhere what people are shown."""

    screen = Environment.screen


def test_an_experiment_without_a_screen_is_refused_with_what_to_write():
    with pytest.raises(ValueError, match="Write its screen"):
        script_of(Unseen())


class Forgetful(World):
    """Counts outside of itself, which no page could know."""

    calls = 0

    def pay(self, drawn, action):
        Forgetful.calls += 1
        return drawn.payoffs[action] + Forgetful.calls


def test_a_world_that_a_page_would_play_otherwise_is_refused():
    environment = make("instrumental_learning", n_visits=2)
    environment.world = Forgetful
    with pytest.raises(ValueError, match="run on symbols is not what it is on numbers"):
        script_of(environment)


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


def violations(browser):
    browser.value(AXE.read_text(encoding="utf-8") + "; 0")
    told = browser.ask(
        "Runtime.evaluate",
        expression=f"""axe.run({{runOnly: {CHECKED}}}).then(found => found.violations.map(
            one => `${{one.id}}: ${{one.nodes[0].html.slice(0, 120)}}`))""",
        awaitPromise=True,
        returnByValue=True,
    )
    return told["result"]["value"]


def press(browser, key, code, text=""):
    more = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **more)
    browser.ask("Input.dispatchKeyEvent", type="keyUp", **more)


def tab(browser):
    press(browser, "Tab", 9)


def enter(browser):
    press(browser, "Enter", 13, "\r")


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
@pytest.mark.parametrize("name", PLAYED)
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
            assert session.environment.screen(seen).question.strip() in question
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
        assert sorted(fitted.summary()["subject"].unique()) == ["1", "2"]


@in_a_browser
def test_one_may_stop_be_too_slow_close_the_page_and_come_back(browser, tmp_path):
    site = tmp_path / "site"
    page("instrumental_learning", site, seed=1, settings={"n_visits": 3}, jspsych=JSPSYCH)
    begin(browser, site, "?participant=Ann%20O", width=390, height=844)
    go(browser)
    for action in (0, 1, 0):
        click(browser, action)
    until(browser, "knownminds.session.rows.length === 3")
    begin(browser, site, "?participant=Ann%20O", clean=False)
    assert "closed after 3 questions" in browser.value("document.body.innerText")
    go(browser)
    assert "Question 4 of 12" in browser.value("document.body.innerText")
    click(browser, 1)
    browser.value("window.confirm = () => true; document.getElementById('stop').click()")
    name, text = saved(browser)
    assert name == "instrumental_learning-Ann_O.json"
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    found = import_sources([file])
    frame = found.trials.frame
    assert frame["subject"].unique().tolist() == ["Ann O"]
    assert frame["action"].tolist()[:4] == [0, 1, 0, 1]
    assert frame["action"].isna().sum() == 8
    assert dict(found.account.outcomes) == {"ok": 4, "error": 8}
    assert "left after 4 questions: the 8 further trials count as missing" in str(found.account)
    assert "closed the page 1 times" in str(found.account)

    page("coins", site, seconds=0.05, jspsych=JSPSYCH)
    begin(browser, site)
    go(browser)
    until(browser, "knownminds.session.rows.length > 1")
    browser.value("window.confirm = () => true; document.getElementById('stop').click()")
    told = json.loads(saved(browser)[1])
    assert {row["outcome"] for row in told["rows"]} == {"empty"}
    assert {row["action"] for row in told["rows"]} == {None}


class Pipe(BaseHTTPRequestHandler):
    """Takes files as a data service does, from pages of any place."""

    def do_OPTIONS(self):
        self.answer()

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.got.append(json.loads(self.rfile.read(length)))
        self.answer()

    def answer(self):
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@in_a_browser
def test_files_are_sent_in_the_end_and_when_the_page_is_left(browser, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pipe)
    server.got = []
    Thread(target=server.serve_forever, daemon=True).start()
    site = tmp_path / "site"
    page(
        "two_step",
        site,
        settings={"n_days": 2},
        jspsych=JSPSYCH,
        post=f"http://127.0.0.1:{server.server_port}/data",
        post_fields={"experimentID": "abc"},
    )
    begin(browser, site)
    go(browser)
    click(browser, 1)
    begin(browser, site, clean=False)  # left after one answer
    go(browser)  # and gone on with
    for action in (0, 1, 1):
        click(browser, action)
    until(browser, "document.body.innerText.includes('Your answers were sent.')")
    server.shutdown()
    server.server_close()
    assert [one["experimentID"] for one in server.got] == ["abc", "abc"]
    files = []
    for k, one in enumerate(server.got):
        assert one["filename"] == "two_step-1.json"
        files.append(tmp_path / f"{k}.json")
        files[-1].write_text(one["data"], encoding="utf-8")
    found = import_sources(files)
    assert found.trials.frame["action"].tolist() == [1, 0, 1, 1]
    assert "1 earlier files" in str(found.account)
    alone = import_sources(files[:1])  # had the person not come back
    assert alone.trials.frame["outcome"].tolist() == ["ok", "error", "error"]


@in_a_browser
def test_pictures_numbers_and_both_at_once_by_keyboard_alone(browser, tmp_path):
    settings = {"modality": "text+image", "windows": ["short"], "n_values": 2, "repeats": 1}
    for name, own in (("line_ratio", settings), ("restless_bandit", {"n_blocks": 1})):
        site = tmp_path / name
        page(name, site, settings=own, jspsych=JSPSYCH)
        for scheme, width in (("light", 1200), ("dark", 390)):
            begin(browser, site, width=width, height=844, scheme=scheme)
            assert not AXE.is_file() or violations(browser) == []
            enter(browser)  # on Begin, which has the focus
            until(browser, "document.querySelector('form input') !== null")
            assert not AXE.is_file() or violations(browser) == []
            assert browser.value("document.documentElement.scrollWidth") <= width
            tab(browser)
            if name == "restless_bandit":
                enter(browser)
                assert browser.value("document.activeElement.ariaPressed") == "true"
                tab(browser)
                tab(browser)
            assert browser.value("document.activeElement.id") == "response"
            browser.ask("Input.insertText", text="1.5")
            enter(browser)
            assert "from 0 to 1" in browser.value("document.getElementById('wrong').innerText")
            browser.value("document.getElementById('response').value = ''")
            browser.ask("Input.insertText", text="0.25")
            enter(browser)
            until(browser, "knownminds.session.rows.length === 1")
            assert browser.value("knownminds.session.rows[0].response") == 0.25
    begin(browser, tmp_path / "line_ratio", width=390, height=844)
    go(browser)
    environment = make("line_ratio", **settings)
    design = environment.draw(session_stream(0, 1))
    session = Session(environment, design)
    shown = session.environment.picture(next(iter(session)))
    address = browser.value("document.querySelector('img').src")
    assert base64.b64decode(address.partition(",")[2]) == shown
    sizes = browser.value(
        "[...document.querySelectorAll('.row')].map(one => getComputedStyle(one).fontSize)"
    )
    assert len(sizes) == 2  # a short row and a long one, drawn at one scale
    assert len(set(sizes)) == 1


@in_a_browser
def test_a_distribution_is_one_answer_of_several_trials(browser, tmp_path):
    settings = {"n_contexts": 1, "repeats": 1, "questions": ["expectation"]}
    page("diagnosis", tmp_path / "site", settings=settings, jspsych=JSPSYCH)
    begin(browser, tmp_path / "site", width=390, height=844)
    go(browser)
    assert not AXE.is_file() or violations(browser) == []
    n = make("diagnosis", **settings).n_parts
    assert browser.value("document.querySelectorAll('form input').length") == n
    fill = """[...document.querySelectorAll('form input')].forEach((one, k) => {{
        one.value = {}[k]; }}); document.querySelector('form').requestSubmit()"""
    shares = [0.5, 0.5, *([0.0] * (n - 2))]
    browser.value(fill.format([0.9, 0.9, *shares[2:]]))
    assert "these sum to 1.8" in browser.value("document.getElementById('wrong').innerText")
    browser.value(fill.format(shares))
    for _ in range(n):
        click(browser, response=0.25)
    found = import_trials([keep(browser, tmp_path)])
    assert found.frame["response"].tolist() == [*shares, *([0.25] * n)]


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


@with_jspsych
def test_a_page_is_written_by_a_command(tmp_path, knownminds):
    out = tmp_path / "site"
    code, said, err = knownminds(
        "page", "coins", "--out", out, "--subjects", 2, "--jspsych", JSPSYCH
    )
    assert (code, err.count("written to")) == (0, 1)
    assert "coins: 2 sessions of at most 42 trials" in said
    names = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())
    assert names == ["index.html", "jspsych.js", "page.js", "page.json", "sessions/1.js",
                     "sessions/2.js"]  # fmt: skip
    assert Site.read(out).subjects == 2
    assert "sourceMappingURL" not in (out / "jspsych.js").read_text(encoding="utf-8")
    for words, what in (
        (["coin", "--out", out], "coins"),
        (["coins", "--out", tmp_path / "n", "--jspsych", tmp_path], "npm install jspsych@8"),
        (["coins", "--out", tmp_path / "n", "--subjects", 0, "--jspsych", JSPSYCH], "got 0"),
        (["coins", "--out", tmp_path / "n", "--post", "ftp://x", "--jspsych", JSPSYCH], "http"),
        (
            ["coins", "--out", tmp_path / "n", "--set", "form=continuation", "--jspsych", JSPSYCH],
            "Set form to question",
        ),
    ):
        code, _, err = knownminds("page", *words)
        assert (code, what in err) == (2, True), err
    assert not (tmp_path / "n").exists()
