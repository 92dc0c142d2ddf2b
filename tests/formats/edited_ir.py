"""Fragments made by hand, and a naive reader that says what an edit of an IR has changed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml import etree

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import OPENVINO, Model, Node, Value
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.base import Written
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.writer import write_ir
from tests.formats.ir_files import for_lxml, meant
from tests.formats.test_xml_index import number

SCATTER = frozenset({"ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate"})
Make = Callable[[Node], Fragment]
Place = tuple[str, str]
"""A layer: the path of the body that holds it, and its id."""


def value(type: str | None, shape: Shape) -> Value:
    return Value("", ELEMENT_TYPES[type] if type else None, shape)


def constant(label: str, type: str, values: Any) -> Value:
    array: npt.NDArray[Any] = np.asarray(values)
    found = value(type, array.shape)
    found.constant = NewConstant(label, ELEMENT_TYPES[type], array)
    return found


def new(
    label: str, type: str, opset: str, inputs: Sequence[Value | None], output: Value, **attributes: str
) -> NewNode:
    return NewNode(label, OPENVINO, type, opset, tuple(inputs), attributes, output)


def given(node: Node) -> list[Value]:
    """Return values that stand for the inputs of a node, and of those that look like it."""
    found = [one.value for one in node.inputs]
    assert None not in found
    return [Value("", one.element_type, one.shape) for one in found if one is not None]


def as_tuples(node: Node) -> Fragment:
    """Turn ScatterUpdate on axis 0 into a ScatterNDUpdate-3 with indices [..., 1]."""
    data, indices, updates, axis = given(node)
    shape = None if indices.shape is None else (*indices.shape, 1)
    tuples = Value("", indices.element_type, shape)
    unsqueezed = new(
        "indices_unsqueezed", "Unsqueeze", "opset1", (indices, constant("axes", "i64", [-1])), tuples
    )
    result = new("scattered", "ScatterNDUpdate", "opset4", (data, tuples, updates), node.outputs[0])
    return Fragment((data, indices, updates, axis), [unsqueezed, result])


def with_sum(node: Node) -> Fragment:
    """Add 0 to the indices and leave the rest: the same for every scatter node."""
    inputs = given(node)
    indices = inputs[1]
    assert indices.element_type is not None
    zero = constant("zero", indices.element_type.name, 0)
    total = Value("", indices.element_type, indices.shape)
    adding = new("indices_again", "Add", "opset1", (indices, zero), total, auto_broadcast="numpy")
    attributes = dict(node.attributes)
    again = new(
        "same", node.type, str(node.opset), (inputs[0], total, *inputs[2:]), node.outputs[0], **attributes
    )
    return Fragment(inputs, [adding, again])


def load(raw: bytes, appended: bytes = b"") -> Model:
    """Read an IR whose weights are a few zeros, and bytes behind them."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "m.xml")
        path.with_suffix(".bin").write_bytes(bytes(64) + appended)
        return read(str(path), raw)


def convert(raw: bytes, make: Make, types: frozenset[str] = SCATTER) -> tuple[Model, Written]:
    """Replace all nodes of some types."""
    model = load(raw)
    patches = [Patch(node, make(node)) for node in model.walk(types)]
    assert patches
    return model, write_ir(model, patches)


def places(model: Model, types: frozenset[str] = SCATTER) -> set[Place]:
    """Return where nodes of some types stand."""
    return {(node.scope.removesuffix(node.name), node.handle.decode()) for node in model.walk(types)}


def demand_nothing_else(before: bytes, after: bytes, replaced: set[Place]) -> None:
    """Demand that two IRs are the same but for some layers, new layers, and the edges into either."""
    parser = etree.XMLParser(remove_blank_text=True, recover=True)
    old, now = (etree.fromstring(for_lxml(text.decode()).encode(), parser) for text in (before, after))
    names = [layer.get("name", "") for layer in now.iter("layer")]
    taken = Counter(layer.get("name", "") for layer in old.iter("layer"))
    added = Counter(names) - taken
    assert all(count == 1 and name not in taken for name, count in added.items())
    _demand_same_body(old, now, replaced, "")


def _demand_same_body(old: etree._Element, now: etree._Element, replaced: set[Place], scope: str) -> None:
    assert _tag(old) == _tag(now)
    assert [child.tag for child in old] == [child.tag for child in now]
    for before, after in zip(old, now, strict=True):
        if before is old.find("layers"):
            _demand_same_layers(before, after, replaced, scope)
        elif before is old.find("edges"):
            _demand_same_edges(old, now, replaced, scope)
        else:
            assert _text(before) == _text(after)


def _demand_same_layers(old: etree._Element, now: etree._Element, replaced: set[Place], scope: str) -> None:
    known = {layer.get("id") for layer in old.iterchildren("layer")}
    kept = [layer for layer in now if layer.get("id") in known or layer.tag != "layer"]
    assert len(kept) == len(old)
    numbers = [int(id) for id in map(_id, old.iterchildren("layer")) if id.isdecimal()]
    assert all(int(layer.get("id", "")) > max(numbers) for layer in now if layer not in kept)
    for before, after in zip(old, kept, strict=True):
        if before.tag == "layer" and (scope, _id(before)) in replaced:
            _demand_same_frame(before, after)
        elif any("body" in str(child.tag) for child in before):
            assert _tag(before) == _tag(after)
            for one, other in zip(before, after, strict=True):
                if "body" in str(one.tag) and one is before.find(str(one.tag)):
                    name = meant(before.get("name") or f"layer_{_id(before)}")
                    inner = f"{scope}{name}:{one.tag}/"
                    _demand_same_body(one, other, replaced, inner)
                else:
                    assert _text(one) == _text(other)
        else:
            assert _text(before) == _text(after)


def _demand_same_frame(before: etree._Element, after: etree._Element) -> None:
    """Demand that a replaced layer keeps all that is not about its inputs."""
    changing = {"type", "version"}
    old, now = ({k: v for k, v in one.items() if k not in changing} for one in (before, after))
    assert old == now
    assert list(before.keys()) == [key for key in after.keys() if key in before.keys()]  # noqa: SIM118
    others = [[_text(x)[:-1] for x in one if x.tag not in {"data", "input"}] for one in (before, after)]
    assert others[0] == others[1]
    assert _own_text(before) == _own_text(after)


def _demand_same_edges(old: etree._Element, now: etree._Element, replaced: set[Place], scope: str) -> None:
    known = {_id(layer) for layer in old.iterfind("layers[1]/layer")}
    open_ids = {id for place, id in replaced if place == scope}
    before, after = ([_ends(edge) for edge in one.iterfind("edges[1]/edge")] for one in (old, now))

    def closed(edges: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [edge for edge in edges if edge[2] in known and edge[2] not in open_ids]

    assert closed(before) == closed(after)
    texts = [[_text(edge)[:-1] for edge in one.iterfind("edges[1]/edge")] for one in (old, now)]
    assert _own_text(old.find("edges")) == _own_text(now.find("edges"))
    for edge, text in zip(before, texts[0], strict=True):
        if edge in after:
            assert text in texts[1]
    ports = {_id(layer): layer for layer in now.iterfind("layers[1]/layer")}
    fed = Counter(edge[2:] for edge in after)
    for id in {*ports} - known | open_ids:
        inputs = [_id(port) for port in ports[id].iterfind("input/port")]
        assert [fed.pop((id, port), 0) for port in inputs] == [1] * len(inputs)
        assert not [edge for edge in fed if edge[0] == id]
    outputs = {(id, _id(p)) for id, layer in ports.items() for p in layer.iterfind("output/port")}
    assert {edge[:2] for edge in after if edge not in before} <= outputs


def _own_text(element: etree._Element | None) -> str:
    """Return the text of an element without that of those in it, and without white space."""
    assert element is not None
    return "".join("".join([element.text or "", *(child.tail or "" for child in element)]).split())


def _ends(edge: etree._Element) -> tuple[str, ...]:
    names = ("from-layer", "from-port", "to-layer", "to-port")
    return tuple(number(edge.get(name)).decode() for name in names)


def _id(element: etree._Element) -> str:
    return number(element.get("id")).decode()


def _tag(element: etree._Element) -> tuple[str, list[tuple[str, str]]]:
    return str(element.tag), [(str(key), str(text)) for key, text in element.items()]


def _text(element: etree._Element) -> tuple[Any, ...]:
    """Return all that an element says, white space between elements apart."""
    attributes = [] if callable(element.tag) else list(element.items())
    inner = [_text(child) for child in element]
    return str(element.tag), attributes, (element.text or "").strip(), inner, (element.tail or "").strip()


def outside_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines of a diff without its frame."""
    import difflib

    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield line
