"""Tables as text: nothing is cut in a pipe, and nothing is wider than a terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.explain import explain
from ir_scatter.report import characters
from ir_scatter.report.characters import Table, TableCell, reflow, table_text, without_middle

LONG = [f"model.layers.{number}.self_attn/aten::index_put_/ScatterNDUpdate" for number in (3, 5)]
TABLE = Table(
    ("node", TableCell("openvino:CPU", narrow="CPU"), "onnxruntime"),
    [(TableCell(f"{name} (ScatterNDUpdate-15)", narrow=name), TableCell("mismatch (2 of 3)", "red", "mismatch 2/3"), "equal")
     for name in LONG],
)  # fmt: skip


def rows(width: int | None, table: Table = TABLE, *, color: bool = False) -> list[str]:
    return table_text(table, color=color, width=width).splitlines()


def test_a_pipe_gets_every_letter() -> None:
    assert rows(None) == [
        f"{'node':<80}openvino:CPU       onnxruntime",
        *(f"{name} (ScatterNDUpdate-15)  mismatch (2 of 3)  equal" for name in LONG),
    ]


def test_narrow_cells_come_before_names_without_middle() -> None:
    short = [f"{name}  mismatch 2/3  equal" for name in LONG]
    assert rows(100)[1:] == short
    assert rows(80)[1:] == [
        f"model.layers.{number}.self_…aten::index_put_/ScatterNDUpdate  mismatch 2/3  equal"
        for number in (3, 5)
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, color: bool) -> None:
    lines = rows(width, color=color)
    bare = [line.replace("\x1b[1m", "").replace("\x1b[31m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, bare)) <= width
    assert rows(1000, color=color) == rows(None, color=color)


def test_names_that_only_their_middle_tells_apart_are_folded() -> None:
    table = Table(("node",), [(f"{'a' * 30}{number}{'b' * 30}",) for number in range(3)])
    assert [line[0] for line in rows(40, table)] == ["n", "a", "b", "a", "b", "a", "b"]
    assert "…" not in "".join(rows(40, table))


def test_without_middle() -> None:
    assert without_middle("abcdefghij", 6) == "ab…hij"
    assert without_middle("abcdef", 6) == "abcdef"
    assert without_middle("abcdefghij", None) == "abcdefghij"


@pytest.mark.parametrize("topic", ["SCT203", "ScatterND-18", "gpu-differs", "index", "architecture"])
def test_pages_fit_the_terminal_and_say_what_they_say_in_a_pipe(topic: str) -> None:
    page = explain(topic)
    assert reflow(page, None) == page
    shown = reflow(page, 60)
    assert shown.split() == page.split()
    prose = re.sub(r"(?s:```.*?```)|^\|.*$|^#.*$", "", shown, flags=re.MULTILINE)
    assert max(map(len, prose.splitlines())) <= 60
    if "```" in page:
        assert re.findall(r"```.*?```", shown, re.DOTALL) == re.findall(r"```.*?```", page, re.DOTALL)


WORDS = st.text("ab X[]漢é\u0301🙂", max_size=8)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), st.booleans(), st.booleans())
def test_plain_tables_are_those_of_rich(
    lines: list[tuple[str, str, str]], color: bool, keeps_empty: bool
) -> None:
    """What is drawn without rich, as large tables must be, is what rich draws."""
    table = Table(("node", "x", "漢字"), lines, keeps_empty)
    quick = table_text(table, color=color, width=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters, "draw_plain_table", lambda *_, **__: None)
        assert table_text(table, color=color, width=None) == quick


def test_plain_tables_are_not_left_to_rich() -> None:
    texts = [("node", "operator"), ("a", "ScatterND-18")]
    assert characters.draw_plain_table(texts, 100, color=False) == "node  operator\na     ScatterND-18\n"
    assert characters.draw_plain_table(texts, 17, color=False) is None
    assert characters.draw_plain_table([("node",), (" a",)], 100, color=False) is None
