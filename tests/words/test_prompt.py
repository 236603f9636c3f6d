import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.environments import Message, Prompt, Template

words = st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=8)


@given(words, words)
def test_reading_inverts_rendering(casino, machine):
    template = Template("In casino {casino}: {machine} (again, {machine}).\nWell? [{casino}] *")
    text = template.render(casino=casino, machine=machine, unused=1)
    assert template.read(text) == {"casino": casino, "machine": machine}


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
