"""No report prints a sentence that is not listed, and the documentation shows the list."""

import ast
from pathlib import Path

import pytest
from claims import Claim, Explanation, Report, blank, check, reports, table

ROOT = Path(__file__).resolve().parents[2]
LISTED = reports()


def sentences_in(file):
    """Return the texts in a file's code that are sentences or have something filled in.

    With {} where something is filled in; of at least three words; without docstrings, errors and
    the command line's help.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    passed_over = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Raise)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.keyword) and node.arg == "help")
            or (isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "help")
            or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option")
        ):
            passed_over |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.JoinedStr):
            passed_over |= {id(value) for value in node.values if isinstance(value, ast.Constant)}
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(value.value) if isinstance(value, ast.Constant) else "{}"
                for value in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        words = [word for word in text.replace("{}", " ").split() if word.strip(".,;:()").isalpha()]
        ends = text.rstrip().endswith((".", "?")) or ". " in text
        if len(words) >= 3 and (ends or "{}" in text):
            yield node.lineno, text.strip()


@pytest.mark.parametrize("report", LISTED, ids=lambda report: report.name)
def test_every_sentence_in_the_source_of_a_report_is_listed(report):
    """A text counts as listed if it stands in a template, whole, or as a part that is joined."""
    everywhere = [blank(s.template) for other in LISTED for s in other.sentences]
    for source in report.sources:
        missing = [
            f"{source}:{line}: {text}"
            for line, text in sentences_in(ROOT / source)
            if not any(text in template for template in everywhere)
        ]
        assert not missing, "\n".join(missing)


def test_the_documentation_shows_the_list():
    """`python -c "import claims; print(claims.table())"` in tests/ prints the new one."""
    assert table() in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")


def test_a_false_sentence_and_one_that_is_not_listed_fail():
    def proof(facts, words):
        assert int(words["n"]) == len(facts)

    some = Report("some", (), (Claim("{n} rows.", "the rows", proof), Explanation("That is all.")))
    check(some, ["3 rows.", "That is all."], [1, 2, 3])
    with pytest.raises(AssertionError):
        check(some, ["4 rows."], [1, 2, 3])
    with pytest.raises(AssertionError, match="no claim lists"):
        check(some, ["3 rows were read."], [1, 2, 3])
