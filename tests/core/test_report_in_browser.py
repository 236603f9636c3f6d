import io
import re

import numpy as np
import pytest
from chromium import PROGRAM, Chromium
from PIL import Image

from knownminds.validation.recovery.parameter_recovery import recover
from knownminds.validation.recovery.recovery_surface import recovery_surface
from knownminds.validation.report import report, write_report

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
PHONE = 360  # CSS pixels, narrower than nearly all phones
PAGES = ("recovery", "unfinished")
READABLE = 4.5  # contrast of small letters, WCAG 2 AA

# Luminance of WCAG of what a colour gives on the page, and the contrast of two.
CONTRAST = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const against = (ink) => {
    const [high, low] = [light(ink), paper].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const texts = [...document.querySelectorAll('p, li, td, th, figcaption, h1, h2')];
  const ink = texts.map(one => against(getComputedStyle(one).color));
  const drawn = [...document.querySelectorAll('.drawing text')]
    .filter(one => !one.closest('[id*="shades-"]')).map(one => against(getComputedStyle(one).fill));
  return [Math.min(...ink), Math.min(...drawn), drawn.length];
})()"""
OVERFLOWS = """[...document.querySelectorAll('body > *')]
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
  .map(one => one.outerHTML.slice(0, 80))"""
NAMES = """[...document.querySelectorAll('svg, img')].map(
  one => one.getAttribute('aria-label') || one.getAttribute('alt') || '')"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    whole, begun = folder / "recovery", folder / "unfinished"
    given = {"intervals": "laplace", "workers": 1}
    found = recover(PLACE, MODEL, subjects=30, out=whole, **given)
    sizes = {"subjects": (30,), "sessions": (1, 2, 3), "trials": (24,)}
    recovery_surface(PLACE, MODEL, **sizes, out=begun, **given)
    next((begun / "parts").iterdir()).unlink()
    return {"recovery": write_report(found, whole), "unfinished": report(begun)}


@pytest.fixture(scope="module")
def browser():
    with Chromium() as opened:
        yield opened


def pixels(browser):
    with Image.open(io.BytesIO(browser.screenshot())) as picture:
        return np.asarray(picture.convert("L"), dtype=float)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_and_nobody_complains(browser, files, name):
    browser.open(files[name])
    assert [url[:200] for url in browser.asked_for if not url.startswith("data:")] == [
        files[name].resolve().as_uri()
    ]
    assert browser.complaints == []
    assert browser.value("document.compatMode") == "CSS1Compat"


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_drawn_and_has_a_text_instead(browser, files, name):
    browser.open(files[name])
    names = browser.value(NAMES)
    captions = browser.value("[...document.querySelectorAll('figcaption')].map(f => f.textContent)")
    assert names == captions
    assert len(names) == 3
    sizes = browser.value(
        "[...document.querySelectorAll('svg')].map(s => s.getBBox()).map(b => [b.width, b.height])"
    )
    assert min(min(size) for size in sizes) > 100
    ids = browser.value("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_in_both_colour_schemes(browser, files, name, scheme):
    browser.open(files[name], scheme=scheme)
    text, figure, letters = browser.value(CONTRAST)
    assert letters > 20
    assert min(text, figure) >= READABLE
    shades = pixels(browser)
    paper = shades[0, 0]
    assert (paper > 200) if scheme == "light" else (paper < 60)
    marked = np.abs(shades - paper) > 60
    assert 0.01 < marked.mean() < 0.6  # neither blank nor covered
    assert marked[len(marked) // 2 :].any()


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_tables_and_figures_scroll_and_the_page_does_not(browser, files, name):
    browser.open(files[name], width=PHONE, height=800)
    assert browser.value("innerWidth") == PHONE
    assert browser.value("document.documentElement.scrollWidth") <= PHONE
    assert browser.value(OVERFLOWS) == []
    within = (
        "[...document.querySelectorAll('.wide')].filter(w => w.scrollWidth > w.clientWidth).length"
    )
    assert browser.value(within) > 0  # what is wider than the phone is still whole
    shrunk = "[...document.querySelectorAll('svg')]"
    shrunk += ".map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    assert min(browser.value(shrunk)) > 1.3  # pixels per point: letters keep their size


def test_a_table_that_does_not_scroll_by_itself_would_be_seen(browser, files, tmp_path):
    loose = tmp_path / "loose.html"
    page = files["recovery"].read_text(encoding="utf-8")
    loose.write_text(page.replace("overflow-x: auto", "overflow-x: visible"), encoding="utf-8")
    browser.open(loose, width=PHONE, height=800)
    assert browser.value("document.documentElement.scrollWidth") > PHONE


def test_complaints_and_requests_would_be_seen(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='missing.png'><script>console.error('no'); nothing()</script>")
    browser.open(bad)
    assert len(browser.complaints) >= 2
    assert any(url.endswith("missing.png") for url in browser.asked_for)


def test_paper_is_white_whatever_the_screen_and_takes_all_of_a_table(browser, files):
    browser.open(files["unfinished"], scheme="dark", media="print")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value(CONTRAST)[0] >= READABLE
    browser.open(files["unfinished"])
    printed = browser.printed()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2
