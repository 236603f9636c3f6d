import base64
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import MEASURES
from knownminds.validation.gates import gallery as module
from knownminds.validation.gates.gallery import (
    description_of,
    gallery,
    gallery_page,
    inline,
    paragraphs,
    shown_measure,
    shown_model,
    told_prior,
)
from knownminds.validation.gates.gates import recommendation, sources_of, stored_gates

MEMBERS = [
    *(("environment", name) for name in ENVIRONMENTS),
    *(("model", name) for name in AGENTS),
    *(("measure", name) for name in MEASURES),
]


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


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_every_registered_member_has_its_place_and_a_line_in_the_contents(kind, name, read):
    anchor = f"{kind}-{name}"
    assert anchor in read.sections
    assert ("a", {"href": f"#{anchor}"}) in read.tags
    registry = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}[kind]
    section = " ".join(read.sections[anchor].split())
    assert " ".join(registry[name].summary.split()) in section
    assert " ".join(registry[name].source.split()) in section


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_experiment_shows_its_settings_and_the_very_words_of_a_first_trial(name, read):
    place = make(name)
    section = read.sections[f"environment-{name}"]
    observation, _ = place.reset(seed=1)
    for message in place.render(observation, []).messages:
        assert message.content in section
    for setting in place.settings:
        assert setting in section


@pytest.mark.parametrize("name", AGENTS)
def test_a_model_shows_parameters_design_verdicts_and_the_command_behind_them(name, read):
    section = read.sections[f"model-{name}"]
    design = recommendation(name)
    for parameter in AGENTS[name].parameters:
        assert parameter.name in section
        assert parameter.description in section
        assert told_prior(parameter) in section
    stored = stored_gates().get(("recovery", name))
    if design.names:
        assert design.command() in section
        assert ("no stored result yet" if stored is None else stored.command) in section
    for reason in (*design.open.values(), *design.kept.values()):
        assert " ".join(reason.split()) in " ".join(section.split())


def test_models_have_an_equation_of_their_own_or_of_their_family():
    marks = ("=", "~", "softmax", "probability", "density", " + ")  # null models say it in words
    for name in AGENTS:
        shown = shown_model(name, {})
        assert any(mark in " ".join([*shown.text, *shown.inherited]) for mark in marks), name


def test_members_of_a_family_repeat_what_they_refer_to():
    hyperbolic, peeker = (shown_model(n, {}) for n in ("hyperbolic_discounter", "outcome_peeker"))
    assert hyperbolic.extends.name == "exponential_discounter"
    assert "weight eta" in " ".join(hyperbolic.inherited)
    assert peeker.extends is None  # the family is no model of its own
    assert "c + d logit p*" in " ".join(peeker.inherited)
    assert not shown_model("balloon_pumper", {}).inherited


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


def test_pictures_and_drawings_say_what_they_show(read):
    pictures = [given for tag, given in read.tags if tag == "img"]
    drawings = [given for tag, given in read.tags if tag == "svg"]
    assert len(pictures) >= 3  # marker, lines, maze
    assert all(len(given["alt"]) > 20 for given in pictures)
    with_results = [key for key in stored_gates() if key[0] == "recovery" and key[1] in AGENTS]
    assert len(drawings) == len(with_results)
    assert all(" (" in given["aria-label"] for given in drawings)
    for given in pictures:
        png = base64.b64decode(given["src"].partition(",")[2])
        assert png.startswith(b"\x89PNG")


@pytest.mark.parametrize(("registry", "kind"), [(MEASURES, "measures"), (AGENTS, "models")])
def test_the_page_is_made_from_the_registries(registry, kind, monkeypatch):
    first = next(iter(registry))
    monkeypatch.setitem(registry, first + "_twin", registry[first])
    seen = {}
    monkeypatch.setattr(module, "fill", lambda template, **content: seen.update(content) or "")
    monkeypatch.setattr(module, "ENVIRONMENTS", {})  # they take the longest
    gallery_page()
    assert [one.link.name for one in seen[kind]] == list(registry)


def test_results_that_are_older_than_a_file_and_those_of_another_design_are_marked():
    name = "perseverator"
    gate = stored_gates()["recovery", name]
    now = replace(gate, sources=module_sources(name))
    assert not shown_model(name, {("recovery", name): now}).warnings
    old = replace(gate, sources={**module_sources(name), "model": "0"})
    (told,) = shown_model(name, {("recovery", name): old}).warnings
    assert told == "The stored recovery is older than the model's code."
    other = replace(now, trials=now.trials + 1)
    (told,) = shown_model(name, {("recovery", name): other}).warnings
    assert "another design" in told


def module_sources(name):
    return sources_of("recovery", name, recommendation(name).environment)


def test_a_model_without_a_result_says_so():
    assert shown_model("perseverator", {}).verdict == "no stored result yet"
    assert shown_model("random_responder", {}).verdict == "no parameters, nothing to recover"


def test_a_parameter_that_does_not_come_back_is_named():
    name = "perseverator"
    gate = stored_gates()["recovery", name]
    weak = replace(gate, quantities={"kappa": dict(gate.quantities["kappa"], verdict="weak")})
    shown = shown_model(name, {("recovery", name): weak})
    assert shown.verdict == "no design found that gives a parameter back"
    assert any("Claim not confirmed" in text for text in shown.warnings)


def test_priors_are_told_on_the_natural_scale():
    alpha = AGENTS["rescorla_wagner"].parameters["alpha"]
    # Normal(-0.5, 1) of the logit: logistic(-.5) and logistic(-.5 -+ 1.96).
    assert told_prior(alpha) == "0.378 (0.079 to 0.812); Normal(-0.5, 1) of the logit"
    b = AGENTS["horizon_explorer"].parameters["B"]
    assert told_prior(b).endswith(f"Normal({b.mean:g}, {b.sd:g})")


def test_docstrings_come_as_paragraphs_equations_and_settings():
    class Told:
        """A summary.

        Words with `code`, *stress*, a < b and 2 * x * y.

        d = a + b
        e = d - c

        Parameters
        ----------
        one, other
            What both
            mean.
        """

    description = description_of(Told)
    summary, words, equations = paragraphs(description)
    assert summary == "<p>A summary.</p>"
    assert '<span class="mono">code</span>' in words
    assert "<em>stress</em>" in words
    assert "a &lt; b and 2 * x * y" in words
    assert equations == '<p class="equation">d = a + b<br>e = d - c</p>'
    assert inline("<b>") == "&lt;b&gt;"


def test_a_measure_tells_null_violator_and_dial():
    shown = shown_measure("optimism_bias", {})
    assert shown.null == "0"
    assert (shown.rational.name, shown.violator.name) == ("rescorla_wagner", "rescorla_wagner_dual")
    assert shown.dial == "alpha_positive up, alpha_negative down"
    assert shown_measure("risk", {}).null.startswith("none")


def test_the_page_is_written_into_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "gallery_page", lambda: "<p>")
    assert gallery(tmp_path / "new").read_text(encoding="utf-8") == "<p>"
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="Results cannot be written to"):
        gallery(tmp_path / "file")
