"""The page of a run, fine and with gaps: numbers, figures, links, script."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from chromium import PROGRAM, Chromium
from page_faults import WIDTHS, empty_panels, faults_of

from knownminds.validation.cli import main
from knownminds.validation.pages.html import places
from knownminds.validation.report import page_of, read_result, render
from knownminds.validation.studies import STUDIES

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
def pages(results):
    return Made(lambda kind: page_of(results[kind]))


@pytest.fixture(scope="module")
def files(pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def file(kind):
        written = folder / f"{kind}.html"
        written.write_text(render(pages[kind]), encoding="utf-8")
        return written

    return Made(file)


def test_every_kind_of_result_that_has_a_page_is_looked_at(results):
    looked_at = {type(result).__name__ for result in results.values()}
    known = {name for kept in STUDIES.values() for name in kept.pages}
    assert known == looked_at


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_a_line_a_summary_and_an_object_of_finite_numbers(results, kind):
    result = results[kind]
    assert len(repr(result)) < 160
    assert "\n" not in repr(result)
    assert len(result.summary()) >= 1

    def never(constant):
        raise AssertionError(f"{constant} is no number")

    assert isinstance(json.loads(result.to_json(), parse_constant=never), dict)


@each
def test_a_page_fetches_nothing_and_shows_no_number_that_is_none(pages, files, kind):
    text = files[kind].read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|url\((?!#)|@import", text)
    scripts = set(re.findall(r"<script([^>]*)>", text))
    assert scripts <= {"", ' type="application/json" class="spots"'}
    assert text.count("<figcaption>") == len(re.findall(r"<svg", text))
    for title, head, rows in pages[kind].tables:
        assert rows, title
        for row in rows:
            assert len(row) == len(head), title
            assert not {"nan", "None", "inf"} & set(" ".join(row).split()), (title, row)


@each
def test_no_panel_is_empty_and_each_value_lies_within_its_figure(pages, kind):
    for caption, svg in pages[kind].drawn:
        assert empty_panels(svg.figure) == [], caption
        if svg.spots:
            spots = np.array([spot[:2] for spot in svg.spots["spots"]])
            assert ((spots >= 0) & (spots <= 72 * svg.figure.get_size_inches())).all(), caption


@each
def test_a_finding_leads_to_its_figure_or_table(pages, files, kind):
    page, text = pages[kind], files[kind].read_text(encoding="utf-8")
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    for found in page.findings:
        for _, anchor in places(page, found):
            assert anchor in ids
            assert f'href="#{anchor}"' in text


def test_an_unread_answer_leads_to_its_transcript_which_tells_how_it_was_read(results, pages):
    run, page = results["run_with_gaps"], pages["run_with_gaps"]
    frame = run.trials.frame
    assert len(page.transcripts) == len(frame)
    for turn, row in zip(page.transcripts, frame.to_dict("records"), strict=True):
        assert turn.answers == [row["raw_text"]]
        assert turn.read.startswith(row["outcome"])
        read = row["outcome"] in ("ok", "repaired")
        assert read == (turn.tone == "") == ("action" in turn.read)
        assert not read or f"action {row['action']}" in turn.read
    [(_, anchor)] = page.findings[1].anchors
    first = frame.index[~frame["outcome"].isin(["ok", "repaired"])][0]
    assert anchor == page.transcripts[first].anchor


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
