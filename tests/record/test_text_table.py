"""Tables of plain text: 80 columns, and names whole."""

from knownminds.environments.record.text_table import text_table


def test_columns_that_do_not_fit_follow_below_beside_the_names():
    names = ["alpha_positive_of_a_long_name", "b"]
    head = ("parameter", *(f"column {k}" for k in range(7)), "verdict")
    rows = [(name, *(f"{k}.123 (0.004)" for k in range(7)), "weak or not") for name in names]
    lines = text_table(head, rows, words=True)
    assert max(map(len, lines)) <= 80
    assert len(lines) % 3 == 0
    assert [line.split("  ")[0].strip() for line in lines] == ["parameter", *names] * (
        len(lines) // 3
    )
    cells = [cell for line in lines for cell in line.split("  ") if "(" in cell]
    assert sorted(cells) == sorted(row[k] for row in rows for k in range(1, 8))
    assert sum("weak or not" in line for line in lines) == 2


def test_a_cell_wider_than_a_screen_is_whole_and_a_table_of_names_alone_is_one():
    lines = text_table(("name", "settings"), [("best", "x" * 90)], words=True)
    assert lines == ["name  settings", "best  " + "x" * 90]
    assert text_table(("name",), [("a",), ("b",)]) == ["name", "a", "b"]
