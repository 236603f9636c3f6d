"""An experiment of the user's own that breaks its contract: `show --check` says what and where."""

import re

import pytest
from walked import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-an-environment.md"
# The page's experiment leaves these to `Questions`; here it has them itself.
WORDS = '''
    feedback = False
    past = "none"

    def render(self, labels, observation, turns):
        """Put a question into words."""
        shown = {"number": int(observation["trial"]) + 1, **observation}
        text = Template(self.wordings[int(observation["first"])]).render(**shown)
        return Prompt((Message("user", text),))

    def parse(self, labels, text, observation):
        """Read which letter the answer names."""
        return parse_label(text, "KM")

    def say(self, labels, choice, observation):
        """Answer as a cooperative participant would."""
        return "KM"[choice]

    def read(self, design, messages):
        """Take a prompt back to what it shows: the inverse of `render`."""
        for first, words in enumerate(self.wordings):
            found = Template(words).read(messages[0].content) if len(messages) == 1 else None
            if found is not None:
                seen = {"trial": int(found["number"]) - 1, "prize": int(found["prize"])}
                return [], seen | {"percent": int(found["percent"]), "first": first}
        raise ValueError("The prompt is not one of sure_or_gamble. Use the one it was made with.")
'''
FAULTS = {
    "    def read(": ("    def reed(", "it has render, parse, say, and no read"),
    "    def say(": ("    def sai(", "and no say"),
    "    def tables(": ("    def tabels(", "SureOrGamble is not whole: it has no tables"),
    '"percent": 10': ('"per_cent": 10', "makes a table for each field that no action decides; got"),
    'int(found["prize"])': ('int(found["percent"])', "`read` inverts `render`; prize was"),
    "return [], seen |": ("return seen |", "`read` returns two things: a list"),
    "messages[0].content)": ("messages[0].text)", "`read` fails (broken.py, line 67: `found ="),
    'return "KM"[choice]': ('return "MK"[choice]', "What `say` says, `parse` reads"),
}


@pytest.mark.parametrize("right", FAULTS, ids=str.strip)
def test_what_is_broken_is_one_sentence(right, tmp_path, knownminds):
    wrong, sentence = FAULTS[right]
    page = PAGE.read_text(encoding="utf-8")
    whole = re.search(r'```python title="sure_or_gamble.py"\n(.*?)```', page, re.S)[1]
    names = "import Environment, Message, Prompt, Template, parse_label, Field,"
    whole = whole.replace("(Questions)", "(Environment)").replace("import Field,", names) + WORDS
    file = tmp_path / "broken.py"
    file.write_text(whole.replace(right, wrong), encoding="utf-8")
    code, out, err = knownminds("show", "sure_or_gamble", "--check", "--plugin", file)
    assert code == 2
    assert sentence in out + err
    assert len((out + err).splitlines()) == 1
