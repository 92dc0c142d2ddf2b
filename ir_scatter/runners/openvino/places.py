"""Finds nodes of a model that OpenVINO has read by the names that we have for them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import Bounds, Shape
from ir_scatter.ops.lookup import scatter_types

_RESULT = "Result"
_BODIES_OF = {
    "If": {"then_body": "get_then_body", "else_body": "get_else_body"},
    "Loop": {"body": "get_function"},
    "TensorIterator": {"body": "get_body"},
}
_OF_ONNX = {"then_branch": "then_body", "else_branch": "else_body", "body": "body"}
"""What OpenVINO calls the bodies of ONNX."""

_BODY_IN_SCOPE = re.compile(rf":({'|'.join((*_OF_ONNX, *_OF_ONNX.values()))})/")


class Owner(NamedTuple):
    """An If, Loop or TensorIterator, and the one of its bodies that is meant: "then_body" ..."""

    node: Any
    kind: str
    body: Any


class Place(NamedTuple):
    """A node and what is around it, the outermost first."""

    node: Any
    owners: tuple[Owner, ...]


class Places:
    """The nodes of a model by scope, and by the names of their first outputs."""

    def __init__(self, model: Any) -> None:
        self._by_scope: dict[str, Place] = {}
        self._by_output: dict[str, list[Place]] = {}
        for scope, place in walk(model):
            self._by_scope.setdefault(scope, place)
            if place.node.get_type_name() != _RESULT and place.node.get_output_size():
                for name in place.node.output(0).get_names():
                    self._by_output.setdefault(name, []).append(place)

    def find(self, scope: str, output: str) -> "Place | str":
        """Return where a scatter node is, or why it is not there, by what a `Tap` says."""
        if not output:
            found = [self._by_scope[scope]] if scope in self._by_scope else []
            wanted = "of this name"
        else:
            kinds = [_OF_ONNX.get(kind, kind) for kind in _BODY_IN_SCOPE.findall(scope)]
            same = self._by_output.get(output, ())
            found = [place for place in same if [owner.kind for owner in place.owners] == kinds]
            wanted = f"for the output {output!r}"
        if len(found) != 1:
            return f"OpenVINO has {f'{len(found)} nodes' if found else 'no node'} {wanted}"
        type = found[0].node.get_type_name()
        return found[0] if type in scatter_types(OPENVINO) else f"OpenVINO makes {type} of it"


def walk(model: Any, scope: str = "", owners: tuple[Owner, ...] = ()) -> Iterator[tuple[str, Place]]:
    """Yield every node by scope, those of bodies too."""
    for node in model.get_ops():
        name = scope + node.get_friendly_name()
        yield name, Place(node, owners)
        for kind, body in bodies_of(node):
            yield from walk(body, f"{name}:{kind}/", (*owners, Owner(node, kind, body)))


def bodies_of(node: Any) -> "list[tuple[str, Any]]":
    """Return the names and the models of the bodies of a node."""
    methods = _BODIES_OF.get(node.get_type_name(), {})
    return [(kind, getattr(node, method)()) for kind, method in methods.items()]


def partial_shape(shape: Any) -> Shape:
    """Return a shape of OpenVINO as ours."""
    if shape.rank.is_dynamic:
        return None
    bounds = [(dim.get_min_length(), dim.get_max_length()) for dim in shape]
    return tuple(low if low == high else Bounds(low, high if high >= 0 else None) for low, high in bounds)
