"""The page of a run, fine and with gaps: numbers, figures, links, script."""

import json
import re
import shlex
from pathlib import Path

import pytest
from chromium import PROGRAM, Chromium
from page_faults import WIDTHS, empty_panels, faults_of

from knownminds.validation.cli import main
from knownminds.validation.pages.result_page import page_text
from knownminds.validation.report import read_result

AXE = Path(__file__).parents[2] / ".psych-ds" / "node_modules" / "axe-core" / "axe.min.js"
RUN = (
    "run instrumental_learning --llm synthetic:rescorla_wagner --set alpha=0.4 --set beta=4 "
    "--sessions 3 --trials 24 --seed 2"
)
KINDS = {
    "run_all_fine": RUN,
    "run_with_gaps": f"{RUN} --contaminate refusal=0.1 --contaminate malformed=0.1 "
    "--contaminate verbosity=0.2",
}
# Pages of each make; the others are drawn with the long tests.
QUICK = ("run_with_gaps",)
each = pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS],
)
in_a_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed; see .ci/run")
# Of WCAG 2.1, levels A and AA, and what axe calls best practice.
CHECKED = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for kind, command in KINDS.items():
        with pytest.raises(SystemExit) as end:
            main([*shlex.split(command), "--out", str(folder / kind)])
        assert end.value.code == 0
    return {kind: read_result(folder / kind) for kind in KINDS}


class Made(dict):
    """What a function makes of each kind, made when it is first looked at."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, kind):
        self[kind] = self.make(kind)
        return self[kind]


@pytest.fixture(scope="module")
def files(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def file(kind):
        written = folder / f"{kind}.html"
        written.write_text(page_text(results[kind]), encoding="utf-8")
        return written

    return Made(file)


@each
def test_a_page_fetches_nothing_and_shows_no_number_that_is_none(results, files, kind):
    text = files[kind].read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|url\((?!#)|@import", text)
    assert text.count("<figcaption>") == len(re.findall(r"<svg", text))
    words = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(svg|script|style).*?</\1>", "", text)).split()
    assert not {"nan", "inf", "NaN", "None"} & set(words)

    def never(constant):
        raise AssertionError(f"{constant} is no number")

    assert isinstance(json.loads(results[kind].to_json(), parse_constant=never), dict)


@each
def test_no_panel_is_empty(results, kind):
    for caption, drawing in results[kind].every_figure:
        assert empty_panels(drawing.figure()) == [], caption


def test_a_transcript_has_all_unread_answers_and_tells_how_each_was_read(results):
    frame, page = results["run_with_gaps"].rows, results["run_with_gaps"]
    told = page["The first sessions"]
    assert len(told) == len(frame)
    for turn, row in zip(told.to_dict("records"), frame.to_dict("records"), strict=True):
        assert turn["answer"] == row["raw_text"]
        assert turn["outcome"] == row["outcome"]
        assert turn["read"].startswith(row["outcome"])
        read = row["outcome"] in ("ok", "repaired")
        assert read == ("action" in turn["read"])
        assert not read or f"action {row['action']}" in turn["read"]
    unread = page["Answers that were repaired or not read"]
    assert unread["outcome"].tolist() == [name for name in frame["outcome"] if name != "ok"]
    assert len(unread) > 0


# In a browser


@pytest.fixture(scope="module")
def browser():
    with Chromium() as opened:
        yield opened


@pytest.mark.long
@in_a_browser
@each
def test_no_box_of_a_page_leaves_its_place(browser, files, kind):
    for width in WIDTHS:
        assert faults_of(browser, files[kind], width) == [], width


@pytest.mark.long
@in_a_browser
def test_boxes_out_of_place_would_be_seen(browser, files, tmp_path):
    bad = tmp_path / "bad.html"
    whole = files["run_with_gaps"].read_text(encoding="utf-8")
    bad.write_text(whole.replace("overflow-x: auto", "overflow-x: visible"), encoding="utf-8")
    assert any("wide" in fault for fault in faults_of(browser, bad, 390))
    bad.write_text(whole.replace("<text ", '<text dx="9000" ', 1), encoding="utf-8")
    assert any("clipped" in fault for fault in faults_of(browser, bad, 1280))


@pytest.mark.long
@in_a_browser
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed in .psych-ds; see .ci/run")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_can_be_used_by_keyboard_and_screen_reader(browser, files, kind, scheme):
    assert violations(browser, files[kind], scheme) == []


@pytest.mark.long
@in_a_browser
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed in .psych-ds; see .ci/run")
def test_axe_would_find_what_is_wrong(browser, files, tmp_path):
    bad = tmp_path / "bad.html"
    whole = files["run_with_gaps"].read_text(encoding="utf-8")
    bad.write_text(whole.replace('<html lang="en">', "<html>"), encoding="utf-8")
    told = violations(browser, bad, "light")
    assert [one.partition(":")[0] for one in told] == ["html-has-lang"]


def violations(browser, file, scheme):
    """What axe finds: the rule, and where it is broken first."""
    browser.open(file, width=1280, height=900, scheme=scheme)
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.value(AXE.read_text(encoding="utf-8") + "; 0")
    told = browser.ask(
        "Runtime.evaluate",
        expression=f"""axe.run({{runOnly: {CHECKED}}}).then(found => found.violations.map(
            one => `${{one.id}}: ${{one.nodes.length}}, ${{one.nodes[0].html.slice(0, 120)}}`))""",
        awaitPromise=True,
        returnByValue=True,
    )
    return told["result"]["value"]
