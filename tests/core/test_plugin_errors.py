"""What fails in a file of the user's is a sentence with its function, file and line."""

import pytest
from registries import as_they_were

from knownminds.validation.engine import members

FILE = """
import numpy as np

from knownminds.environments import Field, Fields, Questions, Whole, setting


class Planned(Questions):
    name = "planned"
    summary = "a file that is wrong somewhere"
    source = "this test"
    fields = Fields(Field("prize", (0, 9), "what there is"))
    n_actions = 2
    wordings = ("Question {number}. K or M for {prize}?",)
    letters = "KM"
    n_questions: int = setting(4, Whole(1), "Questions in a session.", size=True)

    @property
    def n_draws(self):
        return self.n_questions

    def tables(self, uniforms):
        return {"prize": np.floor(10 * uniforms).astype(np.int64)}
"""
LETTERS = 'letters = "KM"'
WRONG = {
    "n_draws": ("return self.n_questions", "return self.n_question", "AttributeError"),
    "tables": ("np.floor(10", "np.flor(10", "AttributeError"),
    "render": (LETTERS, f"{LETTERS}\n    def render(self, *all):\n        return 1 / 0",
               "ZeroDivisionError"),
}  # fmt: skip
VERBS = (
    ("show", "planned", "--check"),
    ("look", "planned", "--out", "page"),
    ("run", "planned", "--llm", "synthetic:random_responder", "--out", "ran"),
)


@pytest.mark.parametrize("words", VERBS, ids=[words[0] for words in VERBS])
@pytest.mark.parametrize("name", WRONG)
def test_an_error_in_a_plugin_names_function_file_and_line(
    name, words, tmp_path, monkeypatch, knownminds
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(members, "_files", [])
    monkeypatch.setattr(members, "_as_loaded", {})
    right, wrong, kind = WRONG[name]
    text = FILE.replace(right, wrong)
    file = tmp_path / f"{name}_{words[0]}.py"
    file.write_text(text, encoding="utf-8")
    line = next(k for k, one in enumerate(text.splitlines(), 1) if wrong.split("\n")[-1] in one)
    with as_they_were():
        code, _, err = knownminds(*words, "--plugin", file)
    assert code == 2
    assert f"`{name}` fails ({file.name}, line {line}: " in err
    assert kind in err
    assert "Traceback" not in err
