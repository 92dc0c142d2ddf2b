import pytest

from ir_scatter.report.findings_text import excerpt


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("<layer/>", 1, "<layer/>", "^"),
        ("\t\t<layer/>\r\n", 3, "        <layer/>", "        ^"),
        ("  <layer/>", None, "  <layer/>", ""),
        ("层é<layer/>", 3, "层é<layer/>", "   ^"),
        ("e\u0301<layer/>", 3, "e\u0301<layer/>", " ^"),
        ("\x1b[1m<layer/>", 5, "\\x1b[1m<layer/>", "       ^"),
        ("short", 99, "short", "     ^"),
        ("short", 0, "short", "^"),
        ("", 1, "", "^"),
    ],
)
def test_the_caret_stands_below_the_column(line: str, column: int | None, shown: str, caret: str) -> None:
    assert excerpt(line, column) == (shown, caret)


@pytest.mark.parametrize("column", [1, 2, 49, 50, 51, 101, 5000, 99_951, 99_999, 100_000])
def test_a_long_line_is_cut_around_the_column(column: int) -> None:
    line = "a" * (column - 1) + "<" + "b" * (100_000 - column)
    shown, caret = excerpt(line, column)
    assert len(shown) <= 106
    assert shown[len(caret) - 1] == "<"
    assert shown.startswith("...") == (column > 51)
    assert shown.endswith("...") == (column < 99_951)


def test_a_line_that_fits_is_not_cut() -> None:
    assert excerpt("x" * 100, 100) == ("x" * 100, " " * 99 + "^")
