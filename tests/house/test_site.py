"""The documentation as a site: whole, without a network, with nothing cut off, and searchable."""

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import PROGRAM, Chromium

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (390, 768, 1280)
# What sticks out of the page, or of a box that does not scroll.
CUT = """(() => {
  const room = document.documentElement.clientWidth;
  const out = document.documentElement.scrollWidth > room + 1 ? ["the page"] : [];
  for (const one of document.querySelectorAll("article pre code, article td, article p"))
    if (one.scrollWidth > one.clientWidth + 2) out.push(one.textContent.trim().slice(0, 60));
  return out;
})()"""
# The search shows its results in a shadow root.
SHOWN = "[...document.querySelectorAll('*')].map(one => one.shadowRoot?.textContent ?? '').join()"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium"),
    pytest.mark.skipif(find_spec("zensical") is None, reason="the extra docs is not installed"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, str(ROOT / "docs" / "build.py"), str(folder)], check=True)
    return folder


def test_nothing_is_cut_off_and_nothing_is_fetched(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 35
    cut = {}
    with Chromium() as browser:
        for width in WIDTHS:
            for page in pages:
                browser.open(page, width=width, height=900)
                found = browser.value(CUT)
                if found:
                    cut[width, page.name] = found
                remote = [url for url in browser.asked_for if url.startswith("http")]
                assert not remote, (page, remote)
    assert not cut


def test_the_search_answers_from_a_folder(site):
    with Chromium() as browser:
        browser.open(site / "index.html", width=1280, height=900)
        time.sleep(1)
        browser.value("document.querySelector('.md-search__button').click()")
        time.sleep(1)
        browser.ask("Input.insertText", text="stopping rule")
        found = ""
        for _ in range(20):
            time.sleep(0.5)
            found = browser.value(SHOWN)
            if "May one stop early?" in found:
                break
        assert "May one stop early?" in found
