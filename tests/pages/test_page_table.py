from types import SimpleNamespace

import numpy as np
import pandas as pd

from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages.page import Page, table

INTERVAL = ("interval", "{low:.1f} to {high:.1f}")


def test_columns_write_records_values_and_tuples_alike():
    rows = [{"name": "a", "low": 1.0, "high": 2.0}, {"name": "b", "low": 0.25, "high": np.inf}]
    expected = ("T", ["who", "interval"], [["a", "1.0 to 2.0"], ["b", "0.2 to -"]])
    who = ("who", "{name}")
    assert table("T", rows, who, INTERVAL) == expected
    assert table("T", pd.DataFrame(rows), who, INTERVAL) == expected
    assert table("T", [SimpleNamespace(**row) for row in rows], who, INTERVAL) == expected
    pairs = [(row["name"], row) for row in rows]
    inner = ("interval", "{1[low]:.1f} to {1[high]:.1f}")
    assert table("T", pairs, ("who", "{0}"), inner) == expected


def test_scores_bring_their_errors_and_a_function_of_the_row_may_write_a_cell():
    rows = [(Score(0.5, 0.1), 1200), (Score(np.nan, np.nan), 0)]
    columns = [("score", "{0}"), ("n", "{1:,}"), ("any", lambda row: "some" if row[1] else "none")]
    _, head, cells = table("T", rows, *columns)
    assert head == ["score", "n", "any"]
    assert cells == [[str(Score(0.5, 0.1)), "1,200", "some"], ["-", "0", "none"]]


def test_a_page_leaves_tables_without_rows_out():
    full, empty = table("full", [{"x": 1}], ("x", "{x}")), table("empty", [], ("x", "{x}"))
    page = Page("title", [], [], [], [], [empty, full], [], "", {})
    assert page.tables == [full]
