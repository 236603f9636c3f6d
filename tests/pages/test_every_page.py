"""One page of every kind of report in a browser: boxes, keyboard, screen readers, print, script."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from chromium import PROGRAM, Chromium
from kept_pages import KINDS, unpacked
from page_faults import WIDTHS, empty_panels, faults_of, solid_blocks

from knownminds.validation.gates.gallery import gallery as write_gallery
from knownminds.validation.pages.figures import COLUMN_WIDTH, PAGE_WIDTH
from knownminds.validation.pages.html import places
from knownminds.validation.report import page_of, read_what_is_there, render
from knownminds.validation.studies import STUDIES, kept_as, load
from knownminds.validation.unfinished_page import Unfinished

AXE = Path(__file__).parents[2] / ".psych-ds" / "node_modules" / "axe-core" / "axe.min.js"
SCRIPT = Path(__file__).parents[2] / "validation" / "pages" / "explore.js"
MOST_OF_SCRIPT = 9_500  # bytes
in_a_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed; see .ci/run")
BESIDE = {"line_ratio": "magnitude"}  # a further page, and of which kind
ALL = [*KINDS, *BESIDE]
each = pytest.mark.parametrize("kind", ALL)
IN_DARK = "run_with_gaps"  # has findings, tables, folded parts and transcripts
# Of WCAG 2.1, levels A and AA, and what axe calls best practice.
CHECKED = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="module")
def results():
    with tempfile.TemporaryDirectory() as folder:
        yield {kind: read_what_is_there(unpacked(kind, folder)) for kind in KINDS}


@pytest.fixture(scope="module")
def pages(results):
    found = {kind: page_of(result) for kind, result in results.items()}
    for name, kind in BESIDE.items():
        found[name] = load(kept_as(results[kind]).more)(results[kind])[name]
    return found


@pytest.fixture(scope="module")
def files(pages, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for kind, page in pages.items():
        found[kind] = folder / f"{kind}.html"
        found[kind].write_text(render(page), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser():
    with Chromium() as opened:
        yield opened


def test_every_kind_of_result_that_has_a_page_is_looked_at(results):
    looked_at = {type(result).__name__ for result in results.values()}
    known = {name for kept in STUDIES.values() for name in kept.pages}
    assert known <= looked_at
    assert looked_at - known == {Unfinished.__name__}


@in_a_browser
@each
def test_no_box_of_a_page_leaves_its_place(browser, files, kind):
    for width in WIDTHS:
        assert faults_of(browser, files[kind], width) == [], width


@each
def test_no_panel_is_empty_and_none_is_a_solid_block(pages, kind):
    for caption, svg in pages[kind].drawn:
        assert empty_panels(svg.figure) == [], caption
        assert solid_blocks(svg.figure) == [], caption


@each
def test_figures_fit_the_columns_of_a_journal_and_their_letters_can_be_read(pages, kind):
    for caption, svg in pages[kind].drawn:
        wide, _ = svg.figure.get_size_inches()
        assert COLUMN_WIDTH - 1e-9 <= wide <= PAGE_WIDTH + 1e-9, caption
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: ([0-9.]+)px", svg)]
        assert min(sizes) >= 6, caption  # points, the least that journals print


@in_a_browser
@each
def test_a_page_can_be_used_by_keyboard_and_screen_reader(browser, files, kind):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed in .psych-ds; see .ci/run")
    open_all_and_check(browser, files[kind], "light")


@in_a_browser
@pytest.mark.parametrize(
    "kind", [IN_DARK, *(pytest.param(k, marks=pytest.mark.long) for k in ALL if k != IN_DARK)]
)
def test_a_page_can_be_read_in_the_dark(browser, files, kind):
    """Colours alone differ from the light, and all pages have one style sheet."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed in .psych-ds; see .ci/run")
    open_all_and_check(browser, files[kind], "dark")


@in_a_browser
def test_no_box_of_the_gallery_leaves_its_place(browser, tmp_path):
    """A page that no study writes, with a part for every member."""
    file = write_gallery(tmp_path)
    for width in WIDTHS:
        assert faults_of(browser, file, width) == [], width


@pytest.mark.long  # axe looks at ten thousand elements
@in_a_browser
def test_the_gallery_can_be_used_by_keyboard_and_screen_reader_and_in_the_dark(browser, tmp_path):
    file = write_gallery(tmp_path)
    if not AXE.is_file():
        pytest.skip("axe-core is not installed in .psych-ds; see .ci/run")
    for scheme in ("light", "dark"):
        open_all_and_check(browser, file, scheme)


def open_all_and_check(browser, file, scheme):
    browser.open(file, width=1280, height=900, scheme=scheme)
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert violations(browser) == []


def violations(browser):
    """What axe finds: the rule, and where it is broken first."""
    browser.value(AXE.read_text(encoding="utf-8") + "; 0")
    told = browser.ask(
        "Runtime.evaluate",
        expression=f"""axe.run({{runOnly: {CHECKED}}}).then(found => found.violations.map(
            one => `${{one.id}}: ${{one.nodes.length}}, ${{one.nodes[0].html.slice(0, 120)}}`))""",
        awaitPromise=True,
        returnByValue=True,
    )
    return told["result"]["value"]


PAPER = 700  # pixels between the margins of a page of A4


@in_a_browser
def test_columns_beyond_the_edge_of_the_paper_go_on_below(browser, files, tmp_path):
    """They were cut: of a table of 20 models, print had the first six."""
    head = "".join(f'<th scope="col">model {k}</th>' for k in range(30)) + "<th>remark</th>"
    rows = "".join(
        f"<tr><td>row {i}</td>"
        + "".join(f"<td>{i}.{k:03}</td>" for k in range(30))
        + f"<td>{'a remark as long as a page is wide, ' * 5}</td></tr>"
        for i in range(4)
    )
    wide = f"<table><thead><tr><th>name</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
    whole = files["recovery"].read_text(encoding="utf-8")
    broad = tmp_path / "broad.html"
    broad.write_text(re.sub(r"<table>.*?</table>", wide, whole, flags=re.S), encoding="utf-8")
    beyond = f"""[...document.querySelectorAll("table")].filter(
        one => one.getBoundingClientRect().right > {PAPER}).length"""
    cells = """[...document.querySelectorAll(".table:not([hidden]) tr")].map(
        row => [...row.cells].map(cell => cell.textContent.trim()))"""
    browser.open(broad)
    before = browser.value(cells)
    browser.value("dispatchEvent(new Event('beforeprint'))")
    size = {"width": PAPER, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.value(beyond) == 0
    pieces = browser.value(cells)
    names = {row[0] for row in before}
    assert {row[0] for row in pieces} == names
    for name in names:
        told = [cell for row in before if row[0] == name for cell in row[1:]]
        assert [cell for row in pieces if row[0] == name for cell in row[1:]] == told
    assert len(pieces) > 3 * len(before) / len(names)
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert browser.value(cells) == before


@in_a_browser
def test_axe_would_find_what_is_wrong(browser, files, tmp_path):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed in .psych-ds; see .ci/run")
    bad = tmp_path / "bad.html"
    whole = files["recovery"].read_text(encoding="utf-8")
    bad.write_text(whole.replace('<html lang="en">', "<html>"), encoding="utf-8")
    browser.open(bad)
    assert [one.partition(":")[0] for one in violations(browser)] == ["html-has-lang"]


@in_a_browser
def test_boxes_out_of_place_would_be_seen(browser, files, tmp_path):
    bad = tmp_path / "bad.html"
    whole = files["recovery"].read_text(encoding="utf-8")
    bad.write_text(whole.replace("overflow-x: auto", "overflow-x: visible"), encoding="utf-8")
    assert any("wide" in fault for fault in faults_of(browser, bad, 390))
    bad.write_text(whole.replace("<text ", '<text dx="9000" ', 1), encoding="utf-8")
    assert any("clipped" in fault for fault in faults_of(browser, bad, 1280))
    bad.write_text(whole.replace("</td>", "<br>" + "long" * 400 + "</td>"), encoding="utf-8")
    assert any("out of its box" in fault for fault in faults_of(browser, bad, 1280))


# What the script does, and that nothing needs it


def shown_rows(browser, table):
    return browser.value(
        f"""[...document.querySelectorAll('.table')[{table}].querySelectorAll('tbody tr')]
        .filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.textContent))"""
    )


def press(browser, what):
    browser.value(f"document.querySelector({what!r}).click()")


def table_of(page, title):
    return next(k for k, one in enumerate(page.listed) if one[0].startswith(title))


@in_a_browser
def test_a_head_sorts_by_number_and_back(browser, files, pages):
    browser.open(files["recovery"])
    k = table_of(pages["recovery"], "Regions")
    _, head, rows = pages["recovery"].listed[k]
    column = list(head).index("bias")
    button = f"document.querySelectorAll('.table')[{k}].querySelectorAll('thead button')[{column}]"
    wanted = sorted(float(row[column].split()[0]) for row in rows)
    for order in (wanted, wanted[::-1]):
        browser.value(f"{button}.click()")
        assert [float(row[column].split()[0]) for row in shown_rows(browser, k)] == order
    assert browser.value(f"{button}.parentElement.getAttribute('aria-sort')") == "descending"
    browser.value(f"{button}.click()")
    assert shown_rows(browser, k) == [list(row) for row in rows]


@in_a_browser
def test_a_field_keeps_the_rows_with_its_words(browser, files, pages):
    browser.open(files["recovery"])
    k = table_of(pages["recovery"], "Regions")
    rows = [list(row) for row in pages["recovery"].listed[k][2]]
    browser.value(
        "(() => { const field = document.querySelector('.filter input'); field.value = 'KAPPA';"
        "field.dispatchEvent(new Event('input')); })()"
    )
    assert shown_rows(browser, k) == [row for row in rows if "kappa" in row]
    told = browser.value("document.querySelector('.filter output').textContent")
    assert told == f"{sum('kappa' in row for row in rows)} of {len(rows)} rows"


@in_a_browser
def test_the_pointer_tells_the_value_that_the_csv_has(browser, files, pages):
    """Where a coverage is drawn, the pointer tells what the figure's numbers say."""
    caption, svg = next(one for one in pages["recovery"].drawn if one[0].startswith("Coverage"))
    number = [one for one, _ in pages["recovery"].drawn].index(caption) + 1
    numbers = svg.data()
    spot = next(s for s in svg.spots["spots"] if svg.spots["series"][s[3]] == "kappa")
    browser.open(files["recovery"], width=1280, height=3000)
    x, y = browser.value(
        f"""(() => {{ const svg = document.querySelector('#figure-{number} svg');
        const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
        return [box.left + {spot[0]} * scale, box.top + {spot[1]} * scale]; }})()"""
    )
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    told = browser.value("document.querySelector('.tip').innerText").split("\n")
    assert told[0] == "kappa"
    mine = numbers[(numbers["series"] == "kappa") & (numbers["mark"] == "points")]
    value, low, high = (float(v) for v in re.findall(r"-?[0-9.]+(?:e-?\d+)?", told[-1]))
    at = (mine["y"] - value).abs().idxmin()
    assert value == pytest.approx(mine["y"][at], rel=1e-3)
    ends = numbers[(numbers["mark"] == "interval") & (numbers["x"] == mine["x"][at])]
    assert [low, high] == pytest.approx([ends["y"].min(), ends["y_to"].max()], rel=1e-3, abs=1e-4)


@each
def test_values_lie_where_their_marks_are_drawn(pages, kind):
    """Each place is within the figure, and each number of a line is one of its CSV."""
    for caption, svg in pages[kind].drawn:
        if not svg.spots:
            continue
        wide, high = 72 * svg.figure.get_size_inches()
        places_of = np.array([spot[:2] for spot in svg.spots["spots"]])
        assert ((places_of >= 0) & (places_of <= [wide, high])).all(), caption
        assert {spot[2] for spot in svg.spots["spots"]} <= set(range(len(svg.spots["panels"])))


@in_a_browser
def test_a_participant_can_be_left_out_of_figures_and_tables(browser, files, pages):
    browser.open(files["recovery"])
    k = table_of(pages["recovery"], "Estimates")
    press(browser, ".switches button")
    name = browser.value("document.querySelector('.switches button').textContent")
    pressed = "document.querySelector('.switches button').getAttribute('aria-pressed')"
    assert browser.value(pressed) == "false"
    rows = [list(row) for row in pages["recovery"].listed[k][2]]
    assert shown_rows(browser, k) == [row for row in rows if row[0] != name]
    hidden = "[...document.querySelectorAll('svg [id*=\"series-\"]')]"
    hidden += ".filter(one => one.style.display === 'none').length"
    assert browser.value(hidden) > 0
    press(browser, ".switches button")
    assert shown_rows(browser, k) == rows
    assert browser.value(hidden) == 0


@in_a_browser
def test_long_parts_are_folded_on_screen_and_whole_in_print_and_without_the_script(
    browser, files, tmp_path
):
    folded = "[...document.querySelectorAll('details.fold')].map(one => one.open)"
    browser.open(files["run_with_gaps"])
    assert not any(browser.value(folded))
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    assert all(browser.value(folded))
    browser.value("window.dispatchEvent(new Event('afterprint'))")
    assert not any(browser.value(folded))
    bare = tmp_path / "bare.html"
    text = files["run_with_gaps"].read_text(encoding="utf-8")
    bare.write_text(re.sub(r"(?s)<script>.*?</script>", "", text), encoding="utf-8")
    browser.open(bare)
    assert all(browser.value(folded))
    assert "button" not in browser.value("document.querySelector('main').innerHTML")


@each
def test_a_finding_leads_to_its_figure_or_table(pages, files, kind):
    page, text = pages[kind], files[kind].read_text(encoding="utf-8")
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    for found in page.findings:
        for _, anchor in places(page, found):
            assert anchor in ids
            assert f'href="#{anchor}"' in text
    assert not page.drawn or kind == "unfinished" or not page.findings or any(
        places(page, found) for found in page.findings
    )  # fmt: skip


def test_a_verdict_of_a_recovery_leads_to_estimate_against_truth(pages):
    page = pages["recovery"]
    assert page.drawn[0][0].startswith("Estimate against truth")
    for found in page.findings:
        assert places(page, found)[0] == ("figure 1", "figure-1"), found.name


def test_an_unread_answer_leads_to_its_transcript_which_tells_how_it_was_read(results, pages):
    run, page = results["run_with_gaps"], pages["run_with_gaps"]
    frame = run.trials.frame
    assert len(page.transcripts) == len(frame)
    for turn, row in zip(page.transcripts, frame.to_dict("records"), strict=True):
        assert turn.title == f"Session {row['subject']}, trial {row['trial'] + 1}"
        assert turn.answers == [row["raw_text"]]
        assert turn.read.startswith(row["outcome"])
        read = row["outcome"] in ("ok", "repaired")
        assert read == (turn.tone == "") == ("action" in turn.read)
        assert turn.messages[-1][0] == "user"
        assert not read or f"action {row['action']}" in turn.read
    [(_, anchor)] = page.findings[1].anchors
    first = frame.index[~frame["outcome"].isin(["ok", "repaired"])][0]
    assert anchor == page.transcripts[first].anchor


def test_a_run_in_which_all_is_fine_says_so_in_a_line(pages):
    told = pages["run_all_fine"].sentences
    assert "Each of 72 answers was read as it stands." in told
    assert not any("What became" in caption for caption, _ in pages["run_all_fine"].drawn)


def test_the_script_is_small_and_the_only_one(files):
    assert SCRIPT.stat().st_size < MOST_OF_SCRIPT
    for file in files.values():
        text = file.read_text(encoding="utf-8")
        scripts = re.findall(r"<script([^>]*)>", text)
        assert scripts.count("") == 1
        assert set(scripts) <= {"", ' type="application/json" class="spots"'}


@each
def test_a_row_says_so_where_nobody_could_be_read(pages, kind):
    if kind not in ("score", "phenotype"):
        return
    page = pages[kind]
    assert [(one.name, one.tone) for one in page.findings] == [("nobody-could-read", "bad")]
    told = [" ".join(row) for _, _, rows in page.listed for row in rows]
    assert any("nobody-could-read" in row and "no balloon ended" in row for row in told)
