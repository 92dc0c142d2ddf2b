"""Which nodes the GPU plugin gets wrong by their shapes; what is expected was measured."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from ir_scatter import read, runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Probe, Result
from ir_scatter.doctor import probe_defects
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import Role
from tests.defects.test_defects import node_of
from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import result
from tests.scale import generator

ELEMENTS: Final = "ScatterElementsUpdate-12"
SLICES: Final = "ScatterUpdate-3"
TUPLES: Final = "ScatterNDUpdate-3"
AXIS, DATA, INDICES, UPDATES = (
    frozenset({role}) for role in (Role.AXIS, Role.DATA, Role.INDICES, Role.UPDATES)
)


def met(code: str, probe: Probe, folder: Path) -> str | None:
    """Return when a node meets a defect, "" for always and None for never."""
    affects = by_code()[code].affects
    assert affects is not None
    found = affects(node_of(probe, folder))
    return None if found is None else found.when


@pytest.mark.parametrize(
    ("shape", "axis", "is_wrong"),
    [
        ((2,), -1, True), ((1,), -1, False), ((2, 1), -2, True), ((2, 1), -1, False), ((1, 3), -2, False),
        ((1, 3), -1, True), ((2, 3, 4), -3, True), ((1, 3, 4), -3, True), ((2, 1, 4), -2, True),
        ((2, 3, 1), -1, False), ((1, 1, 4), -3, False), ((1, 1, 4), -2, True), ((2, 3, 4, 5), -1, False),
        ((2, 3), 1, False), ((0, 3), -1, False),
    ],
)  # fmt: skip
def test_a_negative_axis_of_slices(shape: tuple[int, ...], axis: int, is_wrong: bool, tmp_path: Path) -> None:
    updates = list(shape)
    updates[axis] = 1
    probe = Probe("p", SLICES, shape, (1,), tuple(updates), axis)
    assert met("DEV308", probe, tmp_path) == ("" if is_wrong else None)


def test_a_negative_axis_of_open_sizes(tmp_path: Path) -> None:
    open_ = Probe("p", SLICES, (2, 3), [1], (1, 3), -2, shapes="dynamic")
    assert met("DEV308", open_, tmp_path) == "a size on the axis is not 1"


@pytest.mark.parametrize(
    ("probe", "is_wrong"),
    [
        (Probe("p", ELEMENTS, (4,), [1, 0], (2,), 0, constants=AXIS | UPDATES | INDICES), True),
        (Probe("p", ELEMENTS, (1,), [0, 0], (2,), 0, constants=AXIS | UPDATES | INDICES), False),
        (Probe("p", ELEMENTS, (1,), [0, 0], (2,), 0, constants=AXIS | INDICES), True),
        (Probe("p", ELEMENTS, (4,), [2], (1,), 0, constants=AXIS | UPDATES), False),
        (Probe("p", ELEMENTS, (4, 1), [[1], [0]], (2, 1), 0, constants=AXIS | UPDATES), False),
        (Probe("p", ELEMENTS, (4,), [0], (1,), 0, constants=AXIS | DATA | INDICES), False),
        (Probe("p", ELEMENTS, (4,), [1], (1,), 0, constants=AXIS | DATA | INDICES), True),
        (Probe("p", SLICES, (4,), [0], (1,), 0, constants=AXIS | DATA | INDICES), True),
        (Probe("p", SLICES, (4,), 1, (), 0, constants=AXIS | DATA), True),
        (Probe("p", SLICES, (2, 3), 1, (3,), 0, constants=AXIS | UPDATES), False),
        (Probe("p", TUPLES, (4,), [[1], [0]], (2,), None, constants=INDICES), False),
        (Probe("p", TUPLES, (2, 3), [1], (3,), None, constants=UPDATES), False),
        (Probe("p", TUPLES, (2, 3, 4), [1, 2], (4,), None, constants=INDICES), True),
    ],
)
def test_a_constant_of_one_dimension(probe: Probe, is_wrong: bool, tmp_path: Path) -> None:
    assert met("DEV309", probe, tmp_path) == ("" if is_wrong else None)


@pytest.mark.parametrize(
    ("operator", "data", "indices", "updates", "axis", "is_refused"),
    [
        (SLICES, (2, 2, 2, 2, 2, 1), (1, 1), (1, 1, 2, 2, 2, 2, 1), 0, False),
        (SLICES, (2, 2, 2, 2, 2, 2), (2, 1, 1), (2, 1, 1, 2, 2, 2, 2, 2), 0, False),
        (SLICES, (3, 2, 2, 1, 2, 1, 2), (2,), (2, 2, 2, 1, 2, 1, 2), 0, True),
        (TUPLES, (3, 2, 2), (1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 2, 2), None, True),
    ],
)
def test_updates_of_slices_may_have_eight_dimensions(
    operator: OperatorName,
    data: tuple[int, ...],
    indices: tuple[int, ...],
    updates: tuple[int, ...],
    axis: int | None,
    is_refused: bool,
    tmp_path: Path,
) -> None:
    """Measured: seven and eight dimensions of updates are right, seven of data are refused."""
    probe = Probe("p", operator, data, indices, updates, axis)
    assert met("DEV302", probe, tmp_path) == ("" if is_refused else None)


def test_constant_rows_of_elements_are_written_in_order(tmp_path: Path) -> None:
    """Measured: indices [0, 1, 2] are right, [2, 0] is wrong, and [2, 0, 1] too unless updates are equal."""
    for indices, updates in (([2, 0, 1], (3,)), ([2, 0], (2,))):
        fed = Probe("p", ELEMENTS, (3,), indices, updates, 0, constants=AXIS | DATA | UPDATES)
        assert met("DEV309", fed, tmp_path) == "indices are not in order"


@pytest.mark.parametrize(
    ("probe", "when"),
    [
        (Probe("p", TUPLES, (4,), [0], (), None, constants=INDICES), None),
        (Probe("p", TUPLES, (4,), [2], (), None), "the index is not 0"),
        (Probe("p", TUPLES, (1,), [0], (), None), None),
        (Probe("p", TUPLES, (2, 3), [0], (3,), None), ""),
        (Probe("p", TUPLES, (2, 3), [1], (3,), None, constants=UPDATES), None),
        (Probe("p", TUPLES, (2, 3), [1, 2], (), None), None),
        (Probe("p", TUPLES, (0, 3), (1,), (3,), None), None),
    ],
)
def test_one_coordinate(probe: Probe, when: str | None, tmp_path: Path) -> None:
    assert met("DEV310", probe, tmp_path) == when


@pytest.mark.parametrize(("code", "word", "is_met"), [("DEV305", "sum", True), ("DEV307", "none", False)])
def test_no_tuples(code: str, word: str, is_met: bool, tmp_path: Path) -> None:
    """A reduction is refused though there is nothing to reduce."""
    for data, updates in (((3, 4), (0, 4)), ((0, 4), (0, 4))):
        written = {"reduction": word}
        probe = Probe("p", "ScatterNDUpdate-15", data, (0, 1), updates, None, attributes=written)
        assert met(code, probe, tmp_path) == ("" if is_met else None)


@pytest.mark.parametrize("code", ["DEV301", "DEV303", "DEV304", "DEV305", "DEV307"])
def test_nothing_written_into_constant_data_is_folded(code: str, tmp_path: Path) -> None:
    """Measured: slices and tuples of it are computed in any type; elements are not folded."""
    for constants, is_met in ((DATA, False), (frozenset[Role](), True)):
        probe = Probe("p", SLICES, (3, 4), (0,), (0, 4), 0, "u2", "u2", constants=constants)
        if code == "DEV305":
            written = {"reduction": "sum"}
            probe = Probe(
                "p", "ScatterNDUpdate-15", (3, 4), (0, 2), (0,), attributes=written, constants=constants
            )
        assert met(code, probe, tmp_path) == ("" if is_met else None)
    if code == "DEV307":
        elements = Probe("p", ELEMENTS, (2, 3), (0, 3), (0, 3), 0, constants=AXIS | DATA)
        assert met(code, elements, tmp_path) == ""
        assert met(code, Probe("p", SLICES, (3, 4), (0,), (0, 4), 0, shapes="bounded"), tmp_path) is None


@pytest.mark.parametrize(
    ("operator", "before", "type", "when"),
    [
        (SLICES, (), "u2", ""),
        (SLICES, ("Abs",), "u2", None),
        (SLICES, ("Unsqueeze", "Squeeze"), "u2", "OpenVINO keeps a node that writes nothing"),
        ("ScatterElementsUpdate-3", ("Abs",), "u2", None),
        (ELEMENTS, ("Abs",), "u2", ""),
    ],
)
def test_nodes_that_write_nothing_are_left_out(
    operator: OperatorName, before: tuple[str, ...], type: str, when: str | None, tmp_path: Path
) -> None:
    """Measured: unless data is an input and the output an output; and never ScatterElementsUpdate-12."""
    shape = (0,) if operator == SLICES else (0, 4)
    probe = Probe("p", operator, (3, 4), shape, (0, 4), 0, type, before=before)
    assert met("DEV303", probe, tmp_path) == when
    assert met("DEV307", probe, tmp_path) == when


@pytest.mark.parametrize(
    ("type", "is_certain"), [("f16", False), ("f64", False), ("f32", True), ("i64", True)]
)
def test_data_that_is_converted_is_no_input(type: str, is_certain: bool, tmp_path: Path) -> None:
    """Measured in twelve types: of f16 and f64 a node that writes nothing is left out, though data is an input."""
    constants = frozenset[Role]()
    for shape, indices, updates in (((3, 4), (0,), (0, 4)), ((2, 2, 0, 1, 1), [[0]], (1, 1, 2, 0, 1, 1))):
        probe = Probe("p", SLICES, shape, indices, updates, 0, type, constants=constants)
        when = "" if is_certain else "OpenVINO keeps a node that writes nothing"
        assert met("DEV301", probe, tmp_path) == when


@pytest.mark.parametrize(
    ("data", "index", "is_met"),
    [
        ((2, 1), [1, 0], False),
        ((2, 1, 1, 1, 2, 2), [1, 0], False),
        ((3, 1, 1, 2), [2, 0, 0], False),
        ((3, 1, 2, 2), [2, 0, 1], True),
        ((2, 2, 2, 2), [1, 0], True),
        ((1, 2, 2), [0, 1], True),
    ],
)
def test_a_constant_tuple_of_one_coordinate(
    data: tuple[int, ...], index: list[int], is_met: bool, tmp_path: Path
) -> None:
    """Measured in 19 shapes: right if all dimensions that the tuple counts on are 1, but the first."""
    probe = Probe(
        "p", "ScatterNDUpdate-3", data, index, data[len(index) :], None, constants=frozenset({Role.INDICES})
    )
    assert met("DEV309", probe, tmp_path) == ("" if is_met else None)


@pytest.mark.parametrize(("constants", "when"), [(DATA, None), (frozenset[Role](), "")])
def test_a_reduction_of_empty_data_is_left_out(
    constants: frozenset[Role], when: str | None, tmp_path: Path
) -> None:
    written = {"reduction": "max"}
    probe = Probe("p", "ScatterNDUpdate-15", (2, 0), [[0]], (1, 0), attributes=written, constants=constants)
    assert met("DEV305", probe, tmp_path) == when


def met_by(code: str, shapes: tuple[str, str, str], folder: Path) -> str | None:
    """Return when a node of tuples meets a defect whose inputs have some shapes, as an IR says them."""
    sizes = [shape.split(",") for shape in shapes]
    inputs = "".join(
        f'<layer id="{n}" name="{name}" type="Parameter" version="opset1">'
        f'<data shape="{",".join(size)}" element_type="{type}"/><output><port id="0" precision="{type.upper()}">'
        + "".join(f"<dim>{-1 if one == '?' else one}</dim>" for one in size)
        + "</port></output></layer>"
        for n, (name, type, size) in enumerate(
            zip(("data", "indices", "updates"), ("f32", "i64", "f32"), sizes, strict=True)
        )
    )
    ports = "".join(f'<port id="{n}"/>' for n in range(3))
    edges = "".join(f'<edge from-layer="{n}" from-port="0" to-layer="3" to-port="{n}"/>' for n in range(3))
    (folder / "m.xml").write_text(
        f'<net name="m" version="11"><layers>{inputs}<layer id="3" name="node" type="ScatterNDUpdate" '
        f'version="opset4"><input>{ports}</input><output><port id="3" precision="FP32"/></output></layer>'
        f'<layer id="4" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>'
        f'<edges>{edges}<edge from-layer="3" from-port="3" to-layer="4" to-port="0"/></edges></net>'
    )
    affects = by_code()[code].affects
    assert affects is not None
    model = read(folder / "m.xml")
    (node,) = scatter_nodes(model.graph, Facts(model=model))
    found = affects(node)
    return None if found is None else found.when


@pytest.mark.parametrize(
    ("shapes", "when"),
    [
        (("2,2,3", "1", "?,?"), None),
        (("2,2,3", "?", "2,3"), None),
        (("?,?,?", "?", "2,3"), None),
        (("2,2,3", "?", "?,?"), "indices are one coordinate and the sizes of a slice differ"),
        (("?,?,?", "1", "?,?"), "the sizes of a slice differ"),
        (("?,?", "1", "?"), None),
        (("?,?,?", "2", "?"), None),
        (("?,?,?", "1,1", "?,?,?"), None),
    ],
)
def test_a_slice_that_one_coordinate_names(
    shapes: tuple[str, str, str], when: str | None, tmp_path: Path
) -> None:
    """Measured: open updates alone are right, and so are known ones."""
    assert met_by("DEV312", shapes, tmp_path) == when


@pytest.mark.parametrize(
    ("shapes", "when"),
    [
        (("3,4,2", "?,?,?", "?,?,?"), ""),
        (("3,4,2", "?,?,?", "2,1,2"), ""),
        (("?,?,?", "?,?,?", "?,?,?"), "a coordinate after the first is not 0"),
        (("3,4", "?,?,?", "?,?"), "a coordinate after the first is not 0"),
        (("3,4", "?,?,?", "?,?,?"), None),
        (("3,4,2", "?,1,2", "?,1,2"), None),
        (("?,4,2", "2,1,2", "2,1,2"), None),
        (("3,4", "?,?", "?"), None),
        (("3,4", "?,?,?,?", "?,?,?"), None),
    ],
)
def test_a_table_of_tuples_of_unknown_length(
    shapes: tuple[str, str, str], when: str | None, tmp_path: Path
) -> None:
    assert met_by("DEV313", shapes, tmp_path) == when


@pytest.mark.parametrize(
    ("data", "indices", "updates", "constants", "is_wrong"),
    [
        ((2, 2, 2, 2, 2), (2, 1, 2), (2, 1, 2, 2, 2), "", True),
        ((2, 2, 2, 2, 2), (2, 1, 2), (2, 1, 2, 2, 2), "indices", False),
        ((2, 2, 2, 2, 2), (2, 1, 2), (2, 1, 2, 2, 2), "data", True),
        ((2, 2, 2, 2, 2), (2, 1, 2), (2, 1, 2, 2, 2), "data updates", False),
        ((2, 2, 2, 2, 2), (2, 1, 4), (2, 1, 2), "data", False),
        ((2, 2, 2, 2, 2), (2, 1, 4), (2, 1, 2), "updates", True),
        ((2, 2, 2, 2, 2), (2, 5), (2,), "", False),
        ((2, 2, 2, 2, 2), (2, 1, 1), (2, 1, 2, 2, 2, 2), "", False),
        ((2, 2, 2, 2, 2), (1, 1, 2, 2, 5), (1, 1, 2, 2), "", True),
        ((2, 2, 2, 2, 2), (1, 3, 2, 1, 3), (1, 3, 2, 1, 2, 2), "", False),
        ((2, 2, 2, 2, 2, 2), (2, 1), (2, 2, 2, 2, 2, 2), "", False),
        ((3, 3, 3), (1, 1, 3, 1), (1, 1, 3, 3, 3), "", True),
        ((3, 3, 3), (1, 1, 3, 1), (1, 1, 3, 3, 3), "indices", True),
        ((3, 3, 3), (1, 1, 3, 1), (1, 1, 3, 3, 3), "updates", False),
        ((3, 1, 3), (1, 1, 3, 1), (1, 1, 3, 1, 3), "", False),
        ((3, 3), (1, 2, 1, 1), (1, 2, 1, 3), "", False),
        ((3,), (1, 3, 1, 1, 1), (1, 3, 1, 1), "", True),
        ((3, 3), (0, 1, 1, 2, 2), (0, 1, 1, 2), "", False),
    ],
)  # fmt: skip
def test_tuples_of_mixed_ranks(
    data: tuple[int, ...],
    indices: tuple[int, ...],
    updates: tuple[int, ...],
    constants: str,
    is_wrong: bool,
    tmp_path: Path,
) -> None:
    """Measured: an input that is constant is stored as it is, and does not count."""
    roles = frozenset(Role(word) for word in constants.split())
    for shapes in ("static", "dynamic"):
        probe = Probe("p", TUPLES, data, indices, updates, constants=roles, shapes=shapes)
        assert met("DEV314", probe, tmp_path) == ("" if is_wrong and shapes == "static" else None)


def test_indices_of_more_dimensions_whose_ranks_do_not_mix(tmp_path: Path) -> None:
    probe = Probe("p", TUPLES, (3,), (1, 3, 1, 1, 1), (1, 3, 1, 1), constants=INDICES)
    assert met("DEV314", probe, tmp_path) == "coordinates are read out of bounds"


@pytest.mark.long
@pytest.mark.openvino
def test_reading_out_of_bounds_may_be_right(tmp_path: Path) -> None:
    """Neither an error nor silence would be true of such nodes: the plugin gives some right and some wrong."""
    pytest.importorskip("openvino")
    runner, results = runners.find("GPU@cpu"), Counter[Result]()
    if not runner.availability().is_available:
        pytest.skip("the GPU plugin does not run here")
    kept = [INDICES, INDICES | {Role.DATA}, INDICES | {Role.UPDATES}, frozenset({Role.DATA, Role.UPDATES})]
    chance, probes = generator("read out of bounds", 0), list[Probe]()
    while len(probes) < 60:
        data = [chance.randint(1, 3) for _ in range(chance.randint(1, 4))]
        leading = [chance.randint(1, 2) for _ in range(chance.randint(4, 5))]
        depth, count = chance.randint(1, len(data)), int(np.prod(leading))
        places, updates = int(np.prod(data[:depth])), (*leading, *data[depth:])
        if count > places or len(updates) > 6:
            continue
        tuples = np.unravel_index(chance.sample(range(places), count), data[:depth])
        indices = np.stack(tuples, -1).reshape(*leading, depth).tolist()
        probe = Probe(str(len(probes)), TUPLES, tuple(data), indices, updates, constants=chance.choice(kept))
        if met("DEV314", probe, tmp_path) == "coordinates are read out of bounds":
            probes.append(probe)
    defect = replace(by_code()["DEV314"], probes=tuple(probes), near=())
    results.update(probe_defects(runner, [defect]).values())
    runner.close()
    assert sum(results.values()) == len(probes)
    assert results[Result.RIGHT] > 10
    assert results[Result.WRONG] + results[Result.CRASHED] > 3


def test_one_coordinate_into_data_of_more_dimensions(tmp_path: Path) -> None:
    probe = Probe("p", TUPLES, (2, 1, 2, 1, 2), [1], (1, 2, 1, 2))
    assert met("DEV310", probe, tmp_path) is None


def met_beside(code: str, operator: str, other: str, tmp_path: Path) -> str | None:
    """Return when a node meets a defect whose updates come from an operator without stored shapes.

    The model has another input of some shape, which nothing of the node depends on.
    """
    content = [0] if code == "DEV307" else [1, 0]
    count = 0 if code == "DEV307" else len(content)
    numbers = np.array(content, np.int64).tobytes()
    (tmp_path / "m.bin").write_bytes(numbers + np.array([0], np.int64).tobytes())
    size = count * 8 or 1
    place = len(numbers)

    def port(number: int, shape: str | None, type: str = "FP32") -> str:
        dims = "".join(f"<dim>{-1 if one == '?' else one}</dim>" for one in (shape or "").split(",") if one)
        return f'<port id="{number}" precision="{type}">{dims}</port>'

    def parameter(number: int, name: str, shape: str) -> str:
        return (
            f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">'
            f'<data shape="{shape}" element_type="f32"/><output>{port(0, shape)}</output></layer>'
        )

    def constant(number: int, shape: str, offset: int, size: int) -> str:
        return (
            f'<layer id="{number}" name="c{number}" type="Const" version="opset1"><data element_type="i64" '
            f'shape="{shape}" offset="{offset}" size="{size}"/><output>{port(0, shape, "I64")}</output></layer>'
        )

    made = (
        f'<layer id="4" name="made" type="{operator}" version="opset15"><input><port id="0"/><port id="1"/>'
        f"</input><output>{port(2, None)}</output></layer>"
    )
    node = (
        '<layer id="5" name="node" type="ScatterElementsUpdate" version="opset12"><input>'
        f"{''.join(port(number, None) for number in range(4))}</input>"
        f"<output>{port(4, None)}</output></layer>"
    )
    layers = [
        parameter(0, "data", "4"), parameter(1, "long", f"1,{count}"), constant(2, str(count), 0, size),
        constant(3, "", place, 8), made, node, parameter(6, "other", other),
        '<layer id="7" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>',
        '<layer id="8" name="q" type="Result" version="opset1"><input><port id="0"/></input></layer>',
    ]  # fmt: skip
    pairs = [(1, 0, 4, 0), (3, 0, 4, 1), (0, 0, 5, 0), (2, 0, 5, 1), (4, 2, 5, 2), (3, 0, 5, 3), (5, 4, 7, 0),
             (6, 0, 8, 0)]  # fmt: skip
    edges = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in pairs
    )
    (tmp_path / "m.xml").write_text(
        f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'
    )
    affects = by_code()[code].affects
    assert affects is not None
    model = read(tmp_path / "m.xml")
    (found,) = scatter_nodes(model.graph, Facts(model=model))
    meeting = affects(found)
    return None if meeting is None else meeting.when


@pytest.mark.parametrize(
    ("code", "operator", "other", "when"),
    [
        ("DEV309", "Squeeze", "2,3", ""),
        ("DEV309", "NoSuchOperator", "2,3", "no shape of the model is dynamic"),
        ("DEV309", "Squeeze", "?,3", None),
        ("DEV309", "NoSuchOperator", "?,3", None),
        ("DEV307", "Squeeze", "2,3", ""),
        ("DEV307", "Squeeze", "?,3", ""),
        ("DEV307", "NoSuchOperator", "?,3", "its shapes are static"),
    ],
)
def test_a_shape_that_is_unknown_is_not_taken_for_an_open_one(
    code: str, operator: str, other: str, when: str | None, tmp_path: Path
) -> None:
    """Measured: an open input of the model keeps rows in shape, but no output where nothing is written."""
    assert met_beside(code, operator, other, tmp_path) == when


@pytest.mark.parametrize(("number", "when"), [(-1, ""), (1, None)])
def test_a_known_negative_index_beside_others_of_an_open_count(
    number: int, when: str | None, tmp_path: Path
) -> None:
    ir = IrText()
    known, least, most = ir.const("known", "i64", [[number]]), 0, 4
    others = ir.parameter("others", "i64", ("?", 1))
    clamped = ir.add(
        "clamp", "Clamp", "opset1", [others], [("i64", (-1, 1))], {"min": str(least), "max": str(most)}
    )
    indices = ir.add("all", "Concat", "opset1", [known, clamped], [("i64", (-1, 1))], {"axis": "0"})
    data, updates = ir.parameter("data", "f32", (5, 3)), ir.parameter("updates", "f32", ("?", 3))
    result(ir, ir.add("node", "ScatterNDUpdate", "opset15", [data, indices, updates], [("f32", (5, 3))]))
    affects = by_code()["DEV306"].affects
    assert affects is not None
    model = read(ir.write(tmp_path))
    (node,) = scatter_nodes(model.graph, Facts(model=model))
    meeting = affects(node)
    assert (None if meeting is None else meeting.when) == when


def met_behind(code: str, operator: str, count: int | str, tmp_path: Path) -> str | None:
    """Return when tuples meet a defect, an input of which comes from an operator without stored shapes."""
    ir = IrText()
    type = "i4" if code == "DEV311" else "f32"
    data = ir.parameter("data", type, (4, 5) if code == "DEV313" else (4, 5, 6))
    sizes: dict[str, tuple[str, tuple[int | str, ...]]] = {
        "DEV311": (type, (4, 5, 6)), "DEV312": ("f32", (5, 6)), "DEV313": ("i64", (3, 1, 2))
    }  # fmt: skip
    word, dims = sizes[code]
    dims = (*dims[:-1], count)
    long = ir.parameter("long", word, (1, *dims))
    made = ir.add("made", operator, "opset15", [long, ir.const("axis", "i64", [0])], [(word, ())])
    updates: Output | None = None
    if code == "DEV311":
        indices, updates = ir.const("indices", "i64", [[1]]), ir.parameter("updates", type, (1, 5, 6))
        data = made
    elif code == "DEV312":
        indices, updates = ir.parameter("indices", "i64", ("?",)), made
    else:
        indices, updates = made, ir.parameter("updates", "f32", (3, 1))
    node = ir.add("node", "ScatterNDUpdate", "opset4", [data, indices, updates], [(type, ())])
    result(ir, node)
    model = read(ir.write(tmp_path))
    (found,) = scatter_nodes(model.graph, Facts(model=model))
    affects = by_code()[code].affects
    assert affects is not None
    meeting = affects(found)
    return None if meeting is None else meeting.when


_OPEN_TUPLES = {
    "DEV311": ("data is not empty", 6),
    "DEV312": ("indices are one coordinate and the sizes of a slice differ", 6),
    "DEV313": ("a coordinate after the first is not 0", 2),
}
_UNKNOWN = {
    "DEV311": "the shape of data is dynamic and data is not empty",
    "DEV312": "the shape of updates is dynamic and indices are one coordinate and the sizes of a slice differ",
    "DEV313": "the shape of indices is dynamic and indices have three dimensions and "
    "a tuple has more than one coordinate and a coordinate after the first is not 0",
}


@pytest.mark.parametrize("code", _OPEN_TUPLES)
def test_tuples_behind_what_is_unknown_or_open(code: str, tmp_path: Path) -> None:
    """Unknown is not open: behind Squeeze a static shape is inferred, behind an unknown operator none is."""
    when, size = _OPEN_TUPLES[code]
    assert met_behind(code, "Squeeze", size, tmp_path) is None
    assert met_behind(code, "NoSuchOperator", size, tmp_path) == _UNKNOWN[code]
    assert (met_behind(code, "Squeeze", "?", tmp_path) or "").endswith(when)
