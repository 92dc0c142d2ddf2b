"""Every case file: what its comments expect is found, where they expect it, with help; and nothing else."""

import re
from pathlib import Path

import pytest

from ir_scatter import Diagnostic, read, validate
from ir_scatter.rules import by_code
from tests.formats.test_places import cut
from tests.rules.expectations import (
    Expectation,
    case_files,
    givens_of,
    ir_expectations,
    onnx_expectations,
    without_comments,
    write_case,
)

IR_FILES = case_files(".xml")
ONNX_FILES = case_files(".onnxtxt")

_ATTRIBUTE = r"""[\w-]+="[^"]*\""""
_PORT = r"<port [^>]*(/>|>(<dim>[^<]*</dim>)*(</port>)?)"
_DIM = r"<dim>[^<]*</dim>"
_LAYER = r"<layer [^>]*>"
_EDGE = r"<edge [^>]*/>"
_STANDS = {
    "SCT101": "<input>",
    **dict.fromkeys(("SCT103", "SCT104", "SCT105", "SCT106", "SCT108", "SCT213"), _ATTRIBUTE),
    **dict.fromkeys(
        ("SCT201", "SCT202", "SCT204", "SCT205", "SCT214", "SCT502", "SCT504"), 'precision="[^"]*"'
    ),
    **dict.fromkeys(("SCT402", "SCT403"), 'version="[^"]*"'),
    "SCT501": _DIM,
    "SCT503": _DIM,
    "SCT505": f'{_DIM}|precision="[^"]*"|shape="[^"]*"|<data [^>]*>',
    "SCT920": 'id="[^"]*"',
    **dict.fromkeys(("SCT921", "SCT924", "SCT925", "SCT926"), f"{_EDGE}|{_ATTRIBUTE}"),
    "SCT922": f"{_PORT}|{_LAYER}",
    "SCT923": f"{_EDGE}|{_PORT}",
    "SCT928": f"{_ATTRIBUTE}|{_DIM}|<data [^>]*>|{_PORT}",
    "SCT929": f"{_ATTRIBUTE}|{_LAYER}",
    "SCT931": 'offset="[^"]*"',
    "SCT932": 'size="[^"]*"',
    "SCT935": _LAYER,
    "SCT936": _ATTRIBUTE,
    "SCT937": f"{_ATTRIBUTE}|{_LAYER}",
    "SCT938": 'version="[^"]*"',
}
"""What the caret stands under in the case files; a port, or one of its dimensions, for other codes."""


def check(found: list[tuple[str, Diagnostic]], expected: list[Expectation]) -> None:
    pairs = sorted((place, one.code) for place, one in found)
    shown = [f"{place}: {one.code} {one.severity} {one.message}" for place, one in found]
    assert pairs == sorted((one.place, one.code) for one in expected), shown
    left = list(found)
    for wanted in expected:
        met = [
            (place, one)
            for place, one in left
            if (place, one.code) == (wanted.place, wanted.code) and wanted.is_met_by(one)
        ]
        assert met, f"expected {wanted} in {shown}"
        left.remove(met[0])


def demand_help(found: Diagnostic) -> None:
    assert found.help
    assert not found.help.endswith(".")
    assert "\n" not in found.help
    assert len(found.help) < 150


def demand_place(found: Diagnostic, text: str) -> None:
    """Demand that the caret stands under what is wrong, and those of notes under what they speak of."""
    if found.location.line is None:
        assert found.span is None
        return
    if found.location.column is not None:
        line = text.splitlines()[found.location.line - 1]
        assert found.location.column == len(line) - len(line.lstrip()) + 1
    assert found.span is not None
    expected = _STANDS.get(found.code, f"{_PORT}|{_DIM}")
    assert re.fullmatch(expected, cut(text, found.span)), (found.code, cut(text, found.span))
    for related in found.related:
        if related.span is not None:
            stands = f'{_LAYER}|{_PORT}|{_DIM}|(shape|element_type|precision|id)="[^"]*"'
            assert re.fullmatch(stands, cut(text, related.span))


@pytest.mark.parametrize("path", IR_FILES, ids=lambda path: path.stem)
def test_ir(path: Path, tmp_path: Path) -> None:
    """With comments the exact index is taken, without them the quick one: what they find is the same."""
    text, copy = path.read_text(), write_case(path, tmp_path)
    given = givens_of(text)
    found = validate(read(copy), given=given)
    check([(str(one.location.line), one) for one in found], ir_expectations(text))
    for one in found:
        demand_help(one)
        demand_place(one, text)
    copy.write_text(without_comments(text))
    assert validate(read(copy), given=given) == found


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.stem)
def test_onnx(path: Path, tmp_path: Path) -> None:
    found = validate(read(write_case(path, tmp_path)), given=givens_of(path.read_text()))
    check([(one.location.scope, one) for one in found], onnx_expectations(path.read_text()))
    for one in found:
        demand_help(one)


def test_files_are_named_for_a_rule() -> None:
    assert IR_FILES
    assert ONNX_FILES
    for path in (*IR_FILES, *ONNX_FILES):
        code, _, name = path.stem.partition("_")
        assert code in by_code()
        assert name
