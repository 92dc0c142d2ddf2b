"""Every known defect: its probes, what it reads, and that the release here behaves as its probes say."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ir_scatter import runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.cases.from_probe import case_of
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.instructions import instruction_set
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Defect, Probe, Result
from ir_scatter.defects.evidence import HISTORY, Row, Target, key_of, read_rows, text_of
from ir_scatter.doctor import probe_defects
from ir_scatter.formats import FORMATS
from ir_scatter.ops.spec import Role
from ir_scatter.portability import Portability
from ir_scatter.reading import read
from ir_scatter.runners.base import plain_name
from ir_scatter.validate import validate
from tests.analysis.declared import enforced

DEFECTS = [pytest.param(one, id=one.code) for one in all_defects()]


def node_of(one: Probe, folder: Path) -> ScatterNode:
    case = case_of(one)
    files = FORMATS[case.format].nodes([case.node()])
    for suffix, data in files.items():
        (folder / f"model{suffix}").write_bytes(data)
    model = read(folder / f"model{next(iter(files))}")
    broken = {found.rule for found in validate(model) if found.severity is Severity.ERROR}
    assert broken <= {one.breaks}, broken
    graphs = [model.graph, *(graph for function in model.functions for graph in function.instances)]
    facts = Facts(model=model)
    return next(scatter for graph in graphs for scatter in scatter_nodes(graph, facts))


def test_codes_and_names_are_unique() -> None:
    assert len(by_code()) == len(all_defects()) == len({one.name for one in all_defects()})
    for one in all_defects():
        assert re.fullmatch(r"DEV\d{3}", one.code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.name)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_says_what_it_is_and_has_probes(defect: Defect) -> None:
    assert len(defect.text) > 40
    assert defect.avoid
    assert not defect.avoid.endswith(".")
    assert defect.probes
    keys = [key_of(defect, one) for one in (*defect.probes, *defect.near)]
    assert len(set(keys)) == len(keys)
    known = runners.known()
    assert all(runner in known for runner in defect.runners)


@pytest.mark.parametrize("defect", DEFECTS)
def test_probes_meet_it_and_near_misses_do_not_for_sure(defect: Defect, tmp_path: Path) -> None:
    """What it reads of them is what it declares."""
    assert defect.affects is not None
    with enforced() as reader:
        for one in (*defect.probes, *defect.near):
            scatter = node_of(one, tmp_path)
            with reader.held_to(defect.reads):
                met = defect.affects(scatter)
            if one in defect.probes:
                assert met is not None, one.name
                assert not met.probes or one.name in met.probes
            elif met is not None:
                assert met.when, one.name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("openvino:GPU.1", "openvino:GPU"),
        ("openvino@2025.4.1:CPU", "openvino:CPU"),
        ("openvino:GPU@cpu", "openvino:GPU@cpu"),
        ("onnxruntime@1.17.3", "onnxruntime"),
        ("openvino:fold", "openvino:fold"),
    ],
)
def test_a_runner_without_release_and_number(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_data_without_elements_is_taken_in_any_type(tmp_path: Path) -> None:
    affects = by_code()["DEV103"].affects
    assert affects is not None
    empty = Probe("empty", "ScatterElementsUpdate-12", (0,), (0,), (0,), 0, "u2")
    assert affects(node_of(empty, tmp_path)) is None
    full = Probe("full", "ScatterElementsUpdate-12", (1,), (1,), (1,), 0, "u2")
    assert affects(node_of(full, tmp_path)) is not None
    open_ = Probe("open", "ScatterElementsUpdate-12", (1,), (1,), (1,), 0, "u2", shapes="dynamic")
    met = affects(node_of(open_, tmp_path))
    assert met is not None
    assert met.when == "data is not empty"


@pytest.mark.parametrize(
    ("number", "is_certain"), [(5e-324, False), (2.0**-1022, False), (3e-308, True), (1e300, True)]
)
def test_what_no_device_keeps_is_no_error(number: float, is_certain: bool, tmp_path: Path) -> None:
    """Up to the least normal number of f64 a device may say 0; what is above it, f32 does not hold."""
    affects, held = by_code()["DEV121"].affects, frozenset({Role.DATA, Role.AXIS})
    assert affects is not None
    probe = Probe("p", "ScatterElementsUpdate-12", [number] * 2, [1], [3.0], 0, "f64", constants=held)
    met = affects(node_of(probe, tmp_path))
    assert met is not None
    assert (met.when == "") == is_certain


def test_what_is_folded_is_still_read(tmp_path: Path) -> None:
    """A model of complex constants is refused before anything is folded; 0-D indices are folded away."""
    row = Row("openvino", "9", "CPU", {"DEV132/complex64": Result.REFUSED, "DEV101/0-d": Result.REFUSED})
    portability = Portability([Target("openvino:CPU", "9")], [row], [])
    everything = frozenset(Role)
    constant = Probe("c", "ScatterElements-18", [1, 2], [1], [5], 0, "complex64", constants=everything)
    assert portability.surely_met(node_of(constant, tmp_path)) == ["DEV132"]
    scalar = Probe("s", "ScatterUpdate-3", (2, 3), 1, (3,), 0, constants=everything)
    (met,) = portability.met(node_of(scalar, tmp_path))
    assert (met.defect.code, met.meeting.when) == ("DEV101", "it is not folded")


def test_the_history_is_written_as_it_is_read(tmp_path: Path) -> None:
    rows = read_rows(HISTORY)
    assert rows, "nothing is recorded"
    path = tmp_path / "again.json"
    path.write_text(text_of(rows), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == HISTORY.read_text(encoding="utf-8")


def test_the_history_knows_no_other_probes() -> None:
    known = {key_of(defect, one) for defect in all_defects() for one in (*defect.probes, *defect.near)}
    for row in read_rows(HISTORY):
        assert row.results.keys() <= known, f"{row.runner} {row.release}"


def _is_in(defect: Defect, rows: Sequence[Row]) -> bool:
    keys = {key_of(defect, probe) for probe in (*defect.probes, *defect.near)}
    return keys <= {key for row in rows for key in row.results}


@pytest.mark.parametrize(
    ("code", "result", "other", "is_possible"),
    [
        ("DEV313", Result.CRASHED, Result.WRONG, True),  # it may write outside of memory
        ("DEV313", Result.WRONG, Result.CRASHED, True),
        ("DEV313", Result.RIGHT, Result.WRONG, False),
        ("DEV308", Result.CRASHED, Result.WRONG, False),
        ("DEV140", Result.CRASHED, Result.ACCEPTED, True),
    ],
)
def test_what_a_repetition_may_give(code: str, result: Result, other: Result, is_possible: bool) -> None:
    assert by_code()[code].may_repeat(result, other) is is_possible


@pytest.mark.long
@pytest.mark.parametrize("name", ["openvino:CPU", "openvino:fold", "openvino:GPU@cpu", "onnxruntime"])
def test_the_release_here_does_what_is_recorded(name: str) -> None:
    """A defect that is gone is as good a reason to look as a new one."""
    runner = runners.find(name)
    release = next(iter(runner.versions.values()), "")
    recorded = [row for row in read_rows(HISTORY) if (row.runner, row.release) == (name, release)]
    if not recorded:
        pytest.skip(f"{name} {release} is not recorded")
    here = instruction_set()
    alike = [row for row in recorded if row.instructions in {"", here}]
    concerned = [
        defect
        for defect in all_defects()
        if runners.original(name) in defect.runners
        and (not defect.depends_on_instructions or _is_in(defect, alike))
    ]
    found = probe_defects(runner, concerned)
    known = {key: result for row in [*recorded, *alike] for key, result in row.results.items()}
    assert found.keys() <= known.keys()
    probed = {
        key_of(defect, probe): defect for defect in concerned for probe in (*defect.probes, *defect.near)
    }
    unlike = {key for key, one in found.items() if not probed[key].may_repeat(one, known[key])}
    assert {key: (known[key], found[key]) for key in unlike} == {}
