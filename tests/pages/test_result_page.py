"""The page of a result in a browser: what it asks for, its tables, its width, who can use it."""

import pytest
from chromium import PROGRAM, Chromium
from page_faults import WIDTHS, faults_of
from pages.test_every_page import AXE, violations

import knownminds
from knownminds.validation.engine.screen import shown
from knownminds.validation.pages.result_page import page_text

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed; see .ci/run")


@pytest.fixture(scope="module")
def result():
    given = {"subjects": 30, "trials": [24, 48], "intervals": "laplace", "workers": 1}
    return knownminds.recover("instrumental_learning", "rescorla_wagner", **given)


@pytest.fixture(scope="module")
def file(result, tmp_path_factory):
    written = tmp_path_factory.mktemp("page") / "report.html"
    written.write_text(page_text(result), encoding="utf-8")
    return written


@pytest.fixture(scope="module")
def browser():
    with Chromium() as opened:
        yield opened


def rows_of(browser, table):
    return browser.value(
        f"""[...document.querySelectorAll('.table')[{table}].querySelectorAll('tbody tr')]
        .filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.textContent))"""
    )


def test_it_asks_for_nothing_and_its_tables_are_sorted_and_searched(browser, file, result):
    browser.open(file, width=1280, height=900)
    asked = [url for url in browser.asked_for if not url.startswith("data:")]
    assert asked == [file.resolve().as_uri()]
    assert browser.complaints == []
    k = list(result.tables).index("Regions of true values")
    head, rows = shown(result["Regions of true values"])
    column = head.index("bias")
    button = f"document.querySelectorAll('.table')[{k}].querySelectorAll('thead button')[{column}]"
    wanted = sorted(float(row[column].split()[0]) for row in rows)
    for order in (wanted, wanted[::-1]):
        browser.value(f"{button}.click()")
        assert [float(row[column].split()[0]) for row in rows_of(browser, k)] == order
    browser.value(f"{button}.click()")
    assert rows_of(browser, k) == rows
    browser.value(
        "(() => { const field = document.querySelector('.filter input'); field.value = 'KAPPA';"
        "field.dispatchEvent(new Event('input')); })()"
    )
    assert rows_of(browser, k) == [row for row in rows if "kappa" in row]


@pytest.mark.long
def test_no_box_leaves_its_place(browser, file):
    for width in WIDTHS:
        assert faults_of(browser, file, width) == [], width


@pytest.mark.long
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed in .psych-ds; see .ci/run")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_used_by_keyboard_and_screen_reader(browser, file, scheme):
    assert violations(browser, file, scheme) == []
