"""A guard beside a conversion to another operator: one for each node, also where sizes are open."""

from pathlib import Path
from typing import Any

import pytest
from onnx import load, numpy_helper, save

from ir_scatter import convert
from ir_scatter.rewrites.guard import NAMES
from tests.models.onnx_graph import OnnxGraph
from tests.rewrites.ir_models import one_onnx

SHARED = ("data", "indices", "updates")
CASES = {
    "list of elements": ("ScatterElements", 18, (None,), (None,), (None,)),
    "table of elements": ("ScatterElements", 13, (None, None), (None, 3), (None, 3)),
    "one coordinate": ("ScatterND", 13, (None, None), (None, 1), (None, None)),
    "one coordinate with a reduction": ("ScatterND", 18, (None,), (None, 1), (None,)),
}


@pytest.mark.parametrize("guard", ["clamp", "drop"])
@pytest.mark.parametrize("title", CASES)
def test_guarded_once(title: str, guard: str, tmp_path: Path) -> None:
    operator, opset, *shapes = CASES[title]
    target = "ScatterND" if operator == "ScatterElements" else "ScatterElements"
    graph = OnnxGraph(opset)
    for name, shape in zip(SHARED, shapes, strict=True):
        graph.input(name, "i64" if name == "indices" else "f32", shape)
    attributes = {"reduction": "add"} if "reduction" in title else {}
    graph.output(graph.add(operator, SHARED, "y", "node", **attributes), shape=shapes[0])
    path, after = graph.write(tmp_path / "before.onnx"), tmp_path / "after.onnx"
    found = convert(path, target, guard=guard, verify=4)
    assert not found.refused
    (converted,) = found.converted
    guards = [name for name in converted.rewrites if name in {"indices-clamped", "updates-dropped"}]
    assert len(guards) == 1
    assert not converted.assumptions
    found.write(after)
    assert convert(after, target, guard=guard, verify=0).is_empty


ORIGINS = {
    "tuples": ("ScatterND", 18, ("a", "b", "c"), ("n", 2), ("n", "c")),
    "runs": ("TensorScatter", 24, ("a", "b", "c"), ("a",), ("a", "n", "c")),
}


@pytest.mark.parametrize("guard", ["clamp", "drop"])
@pytest.mark.parametrize("title", ORIGINS)
def test_only_a_whole_guard_is_found(title: str, guard: str, tmp_path: Path) -> None:
    """Tuples and runs that became an index for each element; any other number in a guard is no guard."""
    operator, opset, *shapes = ORIGINS[title]
    path, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    attributes: dict[str, Any] = {"axis": 1} if operator == "TensorScatter" else {}
    data, indices, updates = shapes
    path.write_bytes(one_onnx(operator, opset, data, indices, updates, **attributes))
    conversion = convert(path, "ScatterElements", guard=guard, verify=0)
    (converted,) = conversion.converted
    assert len([name for name in converted.rewrites if name in NAMES.values()]) == 1
    conversion.write(after)
    assert convert(after, guard=guard, verify=0).is_empty
    model = load(after)
    for number, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        if not tensor.name.endswith(tuple(MATTERS)):
            continue
        changed = load(after)
        content = ~array if array.dtype == bool else array + array.dtype.type(1)
        changed.graph.initializer[number].CopyFrom(numpy_helper.from_array(content, tensor.name))
        save(changed, tmp_path / "changed.onnx")
        assert not convert(tmp_path / "changed.onnx", guard=guard, verify=0).is_empty, tensor.name


MATTERS = ("is_behind", "list_0_1", "axis", "place", "depth")
"""Ends of the names of constants on which an index depends, and whose change leaves the model valid."""


@pytest.mark.parametrize(
    ("target", "guard", "data"),
    [
        ("ScatterNDUpdate", "clamp", (None,)),
        ("ScatterNDUpdate", "drop", (None,)),
        ("ScatterNDUpdate", "clamp", (None, None)),
        ("ScatterNDUpdate", "drop", (None, None)),
        ("ScatterUpdate", "clamp", (None,)),
        ("ScatterUpdate", "drop", (None,)),
        ("ScatterUpdate", "clamp", (None, None)),
    ],
)
def test_versions_that_forbid_negative_indices(
    target: str, guard: str, data: tuple[None, ...], tmp_path: Path
) -> None:
    """Negative indices are out of range of both versions: the guard comes first or last, and once."""
    dims = "".join("<dim>-1</dim>" for _ in data)
    shape = ",".join("?" for _ in data)
    layers = [
        f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">'
        f'<data shape="{shape}" element_type="{type}"/>'
        f'<output><port id="0" precision="{type.upper()}">{dims}</port></output></layer>'
        for number, (name, type) in enumerate(zip(SHARED, ("f32", "i64", "f32"), strict=True))
    ]
    layers += [
        '<layer id="3" name="axis" type="Const" version="opset1">'
        '<data element_type="i64" shape="" offset="0" size="8"/>'
        '<output><port id="0" precision="I64"/></output></layer>',
        '<layer id="4" name="node" type="ScatterElementsUpdate" version="opset3"><input>'
        + "".join(f'<port id="{port}">{dims if port < 3 else ""}</port>' for port in range(4))
        + f'</input><output><port id="4" precision="FP32">{dims}</port></output></layer>',
        '<layer id="5" name="y" type="Result" version="opset1">'
        f'<input><port id="0">{dims}</port></input></layer>',
    ]
    edges = "".join(
        f'<edge from-layer="{port}" from-port="0" to-layer="4" to-port="{port}"/>' for port in range(4)
    )
    edges += '<edge from-layer="4" from-port="4" to-layer="5" to-port="0"/>'
    path = tmp_path / "before.xml"
    path.write_text(
        f'<net name="g" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'
    )
    path.with_suffix(".bin").write_bytes(bytes(8))
    assume = ["equal-indices", "full-indices"] if target == "ScatterUpdate" else []
    found = convert(path, target, guard=guard, verify=4, assume=assume)
    assert not found.refused, [one.message for one in found.refused]
    (converted,) = found.converted
    guards = [name for name in converted.rewrites if name in {"indices-clamped", "updates-dropped"}]
    assert len(guards) == 1
    found.write(tmp_path / "after.xml")
    assert convert(tmp_path / "after.xml", target, guard=guard, verify=0).is_empty
