from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.environments import (
    InstrumentalLearning,
    Message,
    Prompt,
    Template,
    load_templates,
)

WANTED = InstrumentalLearning()._wanted()

words = st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=8)


@given(words, words)
def test_reading_inverts_rendering(casino, machine):
    template = Template("In casino {casino}: {machine} (again, {machine}).\nWell? [{casino}] *")
    text = template.render(casino=casino, machine=machine, unused=1)
    assert template.read(text) == {"casino": casino, "machine": machine}


def test_another_text_reads_as_none():
    template = Template("Machine {label} gave {reward}.")
    assert template.read("Machine K gave 1") is None
    assert template.read("Machine K gave 1. And more") is None
    assert Template("{a} and {a}").read("1 and 2") is None


def test_a_value_that_looks_like_a_placeholder_is_left_alone():
    assert Template("{a}, {b}").render(a="{b}", b="x") == "{b}, x"


def test_a_missing_value_and_touching_placeholders_are_told():
    with pytest.raises(ValueError, match=r"\{label\} in .* has none"):
        Template("Machine {label}").render(casino=1)
    with pytest.raises(ValueError, match=r"need text between them; got \{a\}\{b\}"):
        Template("{a}{b}")


def test_the_hash_knows_roles_words_and_pictures():
    def prompt(role="user", content="a", images=()):
        return Prompt((Message(role, content, images),))

    hashes = {
        prompt().hash,
        prompt(role="assistant").hash,
        prompt(content="b").hash,
        prompt(images=(b"png",)).hash,
    }
    assert len(hashes) == 4
    assert prompt().hash == prompt().hash
    assert prompt().text == "[user]\na"
    twice = [Message("user", "a", (b"png",)), Message("user", "a")]
    assert Prompt(tuple(twice)).hash != Prompt(tuple(twice[::-1])).hash
    assert Prompt(tuple(twice)).images == (b"png",)
    with pytest.raises(ValueError, match="Images belong to messages of the user"):
        prompt(role="assistant", images=(b"png",))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("question =", "query ="), "lacks 'question'"),
        (lambda text: text + '\nmore = "x"', "unknown 'more'"),
        (lambda text: text.replace("question = ", "question = 3 #"), "not"),
        (lambda text: text.replace("{label}", "{letter}"), r"has \{letter\}"),
        (lambda text: text.replace("{label}", "it"), r"must use \{label\}"),
        (lambda text: "a = = b", "readable TOML file"),
        (lambda text: text.replace('silence = """\n(no reply)\n"""', "silence = 3"), "is a string"),
    ],
)
def test_what_is_wrong_with_a_template_file_is_told(tmp_path, change, sentence):
    shipped = files("knownminds.environments.bandits").joinpath("instrumental_learning.toml")
    file = tmp_path / "my.toml"
    file.write_text(change(shipped.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        load_templates(file, WANTED, InstrumentalLearning.required)


def test_a_template_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"my\.toml is not"):
        load_templates(tmp_path / "my.toml", WANTED)
