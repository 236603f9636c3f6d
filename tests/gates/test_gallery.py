from html.parser import HTMLParser

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.validation.gates.gallery import (
    gallery_page,
)

REGISTRIES = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}


class Read(HTMLParser):
    """What a page is made of: texts, and tags with their attributes, by section."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.sections, self._inside = [], [], {}, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "h3":
            self._inside = given.get("id")
        elif tag == "h2":
            self._inside = None

    def handle_data(self, data):
        self.texts.append(data)
        if self._inside:
            self.sections[self._inside] = self.sections.get(self._inside, "") + data


@pytest.fixture(scope="module")
def read():
    return Read(gallery_page())


@pytest.mark.long
@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_registered_member_has_its_place_and_a_line_in_the_contents(kind, read):
    for name, member in REGISTRIES[kind].items():
        anchor = f"{kind}-{name}"
        assert ("a", {"href": f"#{anchor}"}) in read.tags
        section = " ".join(read.sections[anchor].split())
        assert " ".join(member.summary.split()) in section
        assert " ".join(member.source.split()) in section


def test_every_link_leads_somewhere_on_the_page_and_nothing_is_fetched(read):
    ids = [given["id"] for _, given in read.tags if "id" in given]
    assert len(ids) == len(set(ids))
    for tag, given in read.tags:
        assert tag != "script" or not given  # one of its own, within the page
        if "href" in given:
            target = given["href"]
            assert target.startswith("data:") or target[1:] in ids, target
        if "src" in given:
            assert given["src"].startswith("data:")
