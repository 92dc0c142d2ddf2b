"""Many files in, one report out, without what a team knows."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter import BadFeed, Diagnostic, Location, NodeRef, Severity, UsageError, read, validate
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.files import Source
from ir_scatter.core.model import Graph
from ir_scatter.lint import (
    Baseline,
    FileResult,
    NodeIgnore,
    Options,
    Report,
    baseline_of,
    check_file,
    check_files,
    make_report,
    place_of,
    read_baseline,
)
from ir_scatter.validate import Check
from tests.models.ir_text import IrText
from tests.rules.cases import legal, shaped, write_ir
from tests.rules.rows import ROWS

BROKEN = str(Path(__file__).resolve().parent.parent / "samples" / "broken" / "scatter_update.xml")
UPDATE = ROWS[0]
BAD = shaped(UPDATE, (5, 3), (2,), (7, 3))
MANY = shaped(UPDATE, (5, 3), (7,), (7, 3))


@pytest.fixture
def model(tmp_path: Path) -> str:
    """An IR with an error (bad), a note (many) and a clean node."""
    return write_ir(UPDATE, {"bad": BAD, "many": MANY, "clean": legal(UPDATE)}, tmp_path)


def codes(path: str, **options: object) -> list[str]:
    result = check_file(Source(path), Options(**options))  # type: ignore[arg-type]
    return [found.code for found in result.diagnostics]


def test_one_file(model: str) -> None:
    result = check_file(Source(model), Options())
    assert (result.path, result.format) == (model, "openvino-ir")
    assert (result.is_readable, result.scatter_nodes) == (True, 3)
    assert {"bad.data", "many.updates", "clean.indices"} <= result.inputs
    lines = Path(model).read_text().splitlines()
    assert [found.code for found in result.diagnostics] == ["SCT203", "SCT306"]
    places = {place_of(found) for found in result.diagnostics}
    places.update(place_of(related) for found in result.diagnostics for related in found.related)
    assert len(places) == 4
    assert result.excerpts == {place: (lines[place[0] - 1], 1, False) for place in places if place}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"select": ("SCT2",)}, ["SCT203"]),
        ({"select": ("SCT203", "SCT3")}, ["SCT203", "SCT306"]),
        ({"ignore": ("SCT203",)}, ["SCT306"]),
        ({"ignore": ("SCT",)}, []),
        ({"select": ("SCT",), "ignore": ("SCT30",)}, ["SCT203"]),
        ({"min_severity": Severity.ERROR}, ["SCT203"]),
        ({"min_severity": Severity.WARNING}, ["SCT203", "SCT306"]),
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


@pytest.mark.parametrize("prefix", ["", " , ", "SCT9999", "E501", "index-out-of-rage"])
def test_codes_that_are_none(prefix: str, model: str) -> None:
    with pytest.raises(UsageError, match=f"there is no rule {prefix.strip(' ,')!r}"):
        validate(read(model), select=[prefix])
    with pytest.raises(UsageError, match="expected the beginning of SCT101 to"):
        validate(read(model), ignore=[prefix])


def test_rules_go_by_their_names_too(model: str) -> None:
    for select in (["updates-shape-mismatch"], "Updates_Shape_Mismatch,SCT4", ["sct2", "SCT4 "]):
        assert [found.code for found in validate(read(model), select=select)] == ["SCT203"], select
    assert codes(model, select=("updates-shape-mismatch",), ignore=("SCT203",)) == []


def test_no_option_hides_an_unreadable_file(tmp_path: Path) -> None:
    """It has `at least one diagnostic`, whatever is selected."""
    (tmp_path / "bad.xml").write_text("<net")
    path = str(tmp_path / "bad.xml")
    for options in ({"select": ("SCT2",)}, {"ignore": ("SCT9",)}, {"min_severity": Severity.ERROR}):
        assert codes(path, **options) == ["SCT903"]
    result = check_file(Source(path), Options())
    assert (result.is_readable, result.scatter_nodes, result.format) == (False, 0, None)


@pytest.mark.parametrize("is_named", [True, False])
def test_an_xml_that_is_no_model_is_passed_over_in_a_folder(is_named: bool, tmp_path: Path) -> None:
    path = tmp_path / "project.xml"
    path.write_text("<project/>")
    checked = check_file(Source(str(path), is_named), Options())
    if is_named:
        assert [found.code for found in checked.diagnostics] == ["SCT905"]
    else:
        assert checked.passed_over.startswith("the root element is <project>")
        assert make_report([checked]).files == ()


def test_a_broken_model_in_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text('<net version="11"><layers>')
    assert check_file(Source(str(tmp_path / "m.xml"), False), Options()).is_readable is False


def test_files_keep_their_order(tmp_path: Path) -> None:
    sources = []
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = BAD if number % 2 else legal(UPDATE)
        sources.append(Source(write_ir(UPDATE, {"scatter": case}, folder)))
    seen: list[FileResult] = []
    alone = check_files(sources, Options(), seen=seen.append)
    assert [one.path for one in alone] == [source.path for source in sources]
    assert seen == alone
    assert check_files(sources, Options(), jobs=2) == alone
    assert check_files([], Options(), jobs=2) == []


@pytest.mark.parametrize(("size", "expected"), [(3, ["SCT940"]), (2, [])])
def test_shapes_that_cannot_be_propagated(size: int, expected: list[str], tmp_path: Path) -> None:
    """A node that is no scatter operator refuses the shape that is given."""
    pytest.importorskip("openvino")
    ir = IrText()
    free, two = ir.parameter("free", "i64", ("?",)), ir.const("two", "i64", [7, 5])
    total = ir.add("total", "Add", "opset1", [free, two], [("i64", (2,))], {"auto_broadcast": "numpy"})
    ir.add("result", "Result", "opset1", [total], [])
    path = ir.write(tmp_path)
    result = check_file(Source(path), Options(input_shapes={"free": (size,)}))
    assert [found.code for found in result.diagnostics] == expected
    for found in result.diagnostics:
        assert found.severity == "warning"
        assert found.message.startswith("OpenVINO cannot propagate the shapes")
        assert "\n" not in found.message


def test_a_scatter_node_that_refuses_shapes_is_judged_by_the_rules(model: str) -> None:
    pytest.importorskip("openvino")
    given = Options(input_shapes={"clean.data": (5, 4)})
    found = check_file(Source(model), given).diagnostics
    assert [one.code for one in found] == ["SCT203", "SCT306", "SCT203"]


def test_a_shape_of_another_rank_is_wrong_usage(model: str) -> None:
    for jobs in (1, 2):
        with pytest.raises(
            BadFeed, match=r"clean.data has shape \[\d, \d\] of rank 2, which \[5\] of rank 1 does"
        ):
            check_files([Source(model)] * 2, Options(input_shapes={"clean.data": (5,)}), jobs=jobs)


def test_too_many_indices_are_a_note(tmp_path: Path) -> None:
    """SCT307: what was not looked at is said."""
    case = legal(UPDATE)
    case = replace(case, indices=replace(case.indices, values=[0, 7]))
    model = read(write_ir(UPDATE, {"scatter": case}, tmp_path))
    (found,) = validate(model, max_index_elements=1)
    assert (found.code, found.severity) == ("SCT307", "note")
    assert found.message == "the values of indices were not checked: more than 1 element"
    assert [one.code for one in validate(model, max_index_elements=2)] == ["SCT302"]


def test_an_error_may_only_become_a_warning(tmp_path: Path) -> None:
    """A note stays a note, whatever a row tolerates."""
    case = legal(UPDATE)
    empty = replace(case.indices, shape=(0,)), replace(case.updates, shape=(0, 3))
    path = write_ir(UPDATE, {"empty": replace(case, indices=empty[0], updates=empty[1])}, tmp_path)
    assert [(found.code, found.severity) for found in validate(read(path))] == [("SCT305", "note")]


def finding(
    path: Path | str, *, code: str = "SCT203", line: int = 7, scope: str = "s", node: str = "s"
) -> Diagnostic:
    where = Location(str(path), line, 3, scope)
    return Diagnostic(code, "rule", Severity.ERROR, "m", where, NodeRef(node, "ScatterUpdate", 3))


def report(*found: Diagnostic, readable: bool = True) -> Report:
    return Report((FileResult("m.xml", "openvino-ir", readable, 1, found),))


def new_in(known: Baseline, *found: Diagnostic, readable: bool = True) -> list[Diagnostic]:
    return known.new_in(report(*found, readable=readable)).diagnostics()


def written(folder: Path, found: Report) -> Baseline:
    path = folder / "known.json"
    path.write_text(baseline_of(found, str(path)).text())
    return read_baseline(str(path))


def test_a_known_finding_is_excused_once_wherever_it_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models" / "m.xml"
    path.parent.mkdir()
    known = written(tmp_path, report(finding(path, line=7)))
    (entry,) = json.loads((tmp_path / "known.json").read_text())["findings"]
    assert entry == {"code": "SCT203", "path": "models/m.xml", "scope": "s", "node": "s", "count": 1}
    moved = replace(finding(path, line=99), message="other words", severity=Severity.WARNING)
    assert new_in(known, moved, moved) == [moved]
    for change in ({"code": "SCT204"}, {"scope": "t"}, {"node": "t"}):
        assert new_in(known, finding(path, **change))  # type: ignore[arg-type]
    assert new_in(known, finding(tmp_path / "n.xml"))
    monkeypatch.chdir(path.parent)
    assert new_in(read_baseline("../known.json"), finding("m.xml")) == []
    of_file = replace(finding(path, scope=""), node=None)
    assert new_in(written(tmp_path, report(of_file)), of_file) == []
    assert new_in(Baseline(str(tmp_path / "b.json")), of_file) == [of_file]


def test_unreadable_files_cannot_be_excused(tmp_path: Path) -> None:
    found = finding(tmp_path / "m.xml")
    written(tmp_path, report(found, readable=False))
    assert json.loads((tmp_path / "known.json").read_text()) == {"schema": 1, "findings": []}
    assert new_in(written(tmp_path, report(found)), found, readable=False) == [found]


def test_the_text_is_the_same_whatever_the_order(tmp_path: Path) -> None:
    one, two = (finding(tmp_path / "m.xml", code=code, scope="é") for code in ("SCT302", "SCT203"))
    texts = {
        baseline_of(report(*order), str(tmp_path / "b.json")).text() for order in ([one, two], [two, one])
    }
    (text,) = texts
    assert text.isascii()
    assert text.endswith("}\n")


DEEP = "[" * 100_000
NO_BASELINES = [
    "", "no json", "[]", "{}", "null", '{"schema": 1}', '{"schema": true, "findings": []}', "\ufeff{}",
    '{"schema": 2, "findings": []}', '{"schema": NaN}', f'{{"schema": {"9" * 5000}}}', "\0" * 1000, "\udcff",
    DEEP, '{"a":' * 100_000, f'{{"schema": 1, "findings": {DEEP}{DEEP.replace("[", "]")}}}',
    *(
        f'{{"schema": 1, "findings": {findings}}}'
        for findings in ("3", "null", '"none"', '{"a": 1}', "[1]", "[{}]", '[{"code": "SCT203"}]')
    ),
    *(
        f'{{"schema": 1, "findings": [{{"code": "a", "path": "p", "scope": "", "node": "", {changed}}}]}}'
        for changed in (
            '"code": 1', '"code": ["SCT203"]', '"path": []', '"node": 1', '"count": "1"', '"count": 1.5',
            '"count": -1', '"count": null', '"count": true', '"count": NaN', '"count": 1e999',
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("text", NO_BASELINES, ids=range(len(NO_BASELINES)))
def test_a_file_that_is_no_baseline(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=r"known\.json"):
        read_baseline(str(path))
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        read_baseline(str(tmp_path / "missing.json"))


def test_a_large_count_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    entry = {"code": "SCT203", "path": "m.xml", "scope": "s", "node": "s", "count": 1_000_000}
    path.write_text(json.dumps({"schema": 1, "findings": [entry]}))
    tracemalloc.start()
    known = read_baseline(str(path))
    assert new_in(known, finding(tmp_path / "m.xml")) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_each_node_is_judged_once_with_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nodes meet on devices is found with the judgements of `validate`, unless that left rules out."""
    judged, judge = list[str](), Check.node

    def count(check: Check, scatter: ScatterNode, graph: Graph) -> Iterator[Diagnostic]:
        judged.append(scatter.node.scope)
        return judge(check, scatter, graph)

    monkeypatch.setattr(Check, "node", count)
    source = Source(BROKEN)
    with_all = check_file(source, Options(targets=("CPU@2026.4.1",)))
    assert len(judged) == len(set(judged)) == with_all.scatter_nodes > 1
    judged.clear()
    selected = check_file(source, Options(targets=("CPU@2026.4.1",), select=("DEV",)))
    assert len(judged) > with_all.scatter_nodes
    of_devices = [diagnostic for diagnostic in with_all.diagnostics if diagnostic.code.startswith("DEV")]
    assert of_devices == [*selected.diagnostics] != []
