"""Many files in, one report out."""

from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter import Severity, UsageError, read, validate
from ir_scatter.core.files import Source
from ir_scatter.core.shapes import UNKNOWN_DIM
from ir_scatter.lint import (
    Checked,
    FileResult,
    NodeIgnore,
    Options,
    check_file,
    check_files,
    make_report,
    without_known,
)
from tests.rules.cases import legal, shaped, write_ir
from tests.rules.ir_text import IrText
from tests.rules.rows import ROWS

UPDATE = ROWS[0]
BAD = shaped(UPDATE, (5, 3), (2,), (7, 3))
MANY = shaped(UPDATE, (5, 3), (7,), (7, 3))


@pytest.fixture
def model(tmp_path: Path) -> str:
    """An IR with an error (bad), a note (many) and a clean node."""
    return write_ir(UPDATE, {"bad": BAD, "many": MANY, "clean": legal(UPDATE)}, tmp_path)


def result_of(checked: Checked) -> FileResult:
    assert checked.result is not None
    return checked.result


def codes(path: str, **options: object) -> list[str]:
    result = result_of(check_file(Source(path), Options(**options)))  # type: ignore[arg-type]
    return [found.code for found in result.diagnostics]


def test_one_file(model: str) -> None:
    result = result_of(check_file(Source(model), Options()))
    assert (result.path, result.format, result.is_readable, result.scatter_nodes) == (
        model,
        "openvino-ir",
        True,
        3,
    )
    assert [found.code for found in result.diagnostics] == ["SCT203", "SCT306"]
    lines = Path(model).read_text().splitlines()
    assert result.lines == {
        found.location.line: lines[found.location.line - 1]
        for found in result.diagnostics
        if found.location.line is not None
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"select": ("SCT2",)}, ["SCT203"]),
        ({"select": ("SCT203", "SCT3")}, ["SCT203", "SCT306"]),
        ({"ignore": ("SCT203",)}, ["SCT306"]),
        ({"ignore": ("SCT",)}, []),
        ({"select": ("SCT",), "ignore": ("SCT30",)}, ["SCT203"]),
        ({"min_severity": Severity.ERROR}, ["SCT203"]),
        ({"min_severity": Severity.WARNING}, ["SCT203"]),
        ({"min_severity": Severity.NOTE}, ["SCT203", "SCT306"]),
        ({"node_ignores": (NodeIgnore("*.xml", "bad", ("SCT2",)),)}, ["SCT306"]),
        ({"node_ignores": (NodeIgnore("*.xml", "m*", ("SCT2", "SCT3")),)}, ["SCT203"]),
        ({"node_ignores": (NodeIgnore("*.onnx", "bad", ("SCT2",)),)}, ["SCT203", "SCT306"]),
        ({"node_ignores": (NodeIgnore("*.xml", "bad", ("SCT3",)),)}, ["SCT203", "SCT306"]),
        ({"node_ignores": (NodeIgnore("*", "*", ("SCT",)),)}, []),
    ],
)
def test_what_is_looked_for(options: dict[str, object], expected: list[str], model: str) -> None:
    assert codes(model, **options) == expected


@pytest.mark.parametrize("prefix", ["", "SCT9999", "sct2", "E501", "SCT204 "])
def test_codes_that_are_none(prefix: str, model: str) -> None:
    with pytest.raises(UsageError, match="no rule's code begins with"):
        validate(read(model), select=[prefix])
    with pytest.raises(UsageError, match="expected one of SCT101 to"):
        validate(read(model), ignore=[prefix])


def test_unreadable_files_are_results(tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text("<net")
    result = result_of(check_file(Source(str(tmp_path / "bad.xml")), Options()))
    assert (result.is_readable, result.scatter_nodes, result.format) == (False, 0, None)
    assert [found.code for found in result.diagnostics] == ["SCT903"]


def test_no_option_hides_an_unreadable_file(tmp_path: Path) -> None:
    """It has `at least one diagnostic`, whatever is selected."""
    (tmp_path / "bad.xml").write_text("<net")
    path = str(tmp_path / "bad.xml")
    for options in ({"select": ("SCT2",)}, {"ignore": ("SCT9",)}, {"min_severity": Severity.ERROR}):
        assert codes(path, **options) == ["SCT903"]


@pytest.mark.parametrize("is_named", [True, False])
def test_an_xml_that_is_no_model_is_passed_over_in_a_folder(is_named: bool, tmp_path: Path) -> None:
    path = tmp_path / "project.xml"
    path.write_text("<project/>")
    checked = check_file(Source(str(path), is_named), Options())
    if is_named:
        assert [found.code for found in result_of(checked).diagnostics] == ["SCT905"]
    else:
        assert checked.result is None
        assert checked.remark.startswith(f"{path}: passed over: the root element is <project>")


def test_a_broken_model_in_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text('<net version="11"><layers>')
    assert result_of(check_file(Source(str(tmp_path / "m.xml"), False), Options())).is_readable is False


def test_files_keep_their_order(tmp_path: Path) -> None:
    sources = []
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = BAD if number % 2 else legal(UPDATE)
        sources.append(Source(write_ir(UPDATE, {"scatter": case}, folder)))
    seen: list[Checked] = []
    alone = check_files(sources, Options(), seen=seen.append)
    assert [result_of(one).path for one in alone] == [source.path for source in sources]
    assert seen == alone
    assert check_files(sources, Options(), jobs=2) == alone
    assert check_files([], Options(), jobs=2) == []


def test_given_shapes_replace_those_of_the_file(model: str) -> None:
    """Nothing is known of the updates any more, and stored shapes are not held against ours."""
    pytest.importorskip("openvino")
    result = result_of(
        check_file(Source(model), Options(input_shapes={"bad.updates": (UNKNOWN_DIM, 3)}, select=("SCT",)))
    )
    assert [found.code for found in result.diagnostics] == ["SCT306"]


@pytest.mark.parametrize(("size", "expected"), [(3, ["SCT940"]), (2, [])])
def test_shapes_that_cannot_be_propagated(size: int, expected: list[str], tmp_path: Path) -> None:
    """A node that is no scatter operator refuses the shape that is given."""
    pytest.importorskip("openvino")
    ir = IrText()
    free, two = ir.parameter("free", "i64", ("?",)), ir.const("two", "i64", [7, 5])
    total = ir.add("total", "Add", "opset1", [free, two], [("i64", (2,))], {"auto_broadcast": "numpy"})
    ir.add("result", "Result", "opset1", [total], [])
    path = ir.write(tmp_path)
    result = result_of(check_file(Source(path), Options(input_shapes={"free": (size,)})))
    assert [found.code for found in result.diagnostics] == expected
    for found in result.diagnostics:
        assert found.severity == "warning"
        assert found.message.startswith("OpenVINO cannot propagate the shapes")
        assert "\n" not in found.message


def test_a_scatter_node_that_refuses_shapes_is_judged_by_the_rules(model: str) -> None:
    pytest.importorskip("openvino")
    given = Options(input_shapes={"clean.data": (5, 3, 2)})
    found = [one.code for one in result_of(check_file(Source(model), given)).diagnostics]
    assert found == ["SCT203", "SCT306", "SCT203"]


def test_the_names_of_inputs_are_told(model: str) -> None:
    checked = check_file(Source(model), Options())
    assert {"bad.data", "many.updates", "clean.indices"} <= checked.inputs


def test_a_report_without_what_is_known(model: str, tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text("<net")
    checked = check_files([Source(model), Source(str(tmp_path / "bad.xml"))], Options())
    report = make_report(checked)
    assert report.count(Severity.ERROR) == 2
    left = without_known(report, lambda found: True)
    assert [[found.code for found in file.diagnostics] for file in left.files] == [[], ["SCT903"]]


def test_what_was_passed_over_is_not_in_the_report() -> None:
    assert make_report([Checked(None, "a: passed over")]).files == ()


def test_an_error_may_only_become_a_warning(tmp_path: Path) -> None:
    """A note stays a note, whatever a row tolerates."""
    many = write_ir(UPDATE, {"many": replace(MANY)}, tmp_path)
    assert [found.severity for found in validate(read(many))] == ["note"]
