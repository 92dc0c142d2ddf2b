"""Finds nodes of a model that OpenVINO has read by the names that we have for them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True, eq=False)
class Owner:
    """A node with bodies, and the one that is meant.

    Attributes:
        node: an If, Loop or TensorIterator.
        kind: "then_body", "else_body" or "body".
        body: the model inside it.
    """

    node: Any
    kind: str
    body: Any


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node and what is around it.

    Attributes:
        node: of OpenVINO.
        owners: the outermost first; none in the main graph.
    """

    node: Any
    owners: tuple[Owner, ...]


class Places:
    """The nodes of a model by scope, and by the names of their first outputs."""

    def __init__(self, model: Any) -> None:
        self._by_scope: dict[str, Place] = {}
        self._by_output: dict[str, list[Place]] = {}
        for scope, place in _walk(model, "", ()):
            self._by_scope.setdefault(scope, place)
            if place.node.get_type_name() != _RESULT and place.node.get_output_size():
                for name in place.node.output(0).get_names():
                    self._by_output.setdefault(name, []).append(place)

    def find(self, scope: str, output: str) -> "Place | str":
        """Return where a scatter node is, or why it is not there.

        Args:
            scope: the path to it, as `validate` prints it.
            output: the name of its first output's tensor; "" in an IR.
        """
        if not output:
            found = self._by_scope.get(scope)
            return "OpenVINO has no node of this name" if found is None else _scatter(found)
        kinds = [_OF_ONNX.get(kind, kind) for kind in _BODY_IN_SCOPE.findall(scope)]
        candidates = [
            place
            for place in self._by_output.get(output, ())
            if [owner.kind for owner in place.owners] == kinds
        ]
        if len(candidates) > 1:
            return f"OpenVINO has {len(candidates)} nodes for the output {output!r}"
        return _scatter(candidates[0]) if candidates else f"OpenVINO has no node for the output {output!r}"


def _scatter(place: Place) -> "Place | str":
    type = place.node.get_type_name()
    return place if type in scatter_types(OPENVINO) else f"OpenVINO makes {type} of it"


def _walk(model: Any, scope: str, owners: tuple[Owner, ...]) -> Iterator[tuple[str, Place]]:
    for node in model.get_ops():
        name = scope + node.get_friendly_name()
        yield name, Place(node, owners)
        for kind, body in bodies(node):
            yield from _walk(body, f"{name}:{kind}/", (*owners, Owner(node, kind, body)))


def bodies(node: Any) -> "list[tuple[str, Any]]":
    """Return the names and the models of the bodies of a node."""
    methods = _BODIES_OF.get(node.get_type_name(), {})
    return [(kind, getattr(node, method)()) for kind, method in methods.items()]


def partial_shape(shape: Any) -> Shape:
    """Return a shape of OpenVINO as ours."""
    if shape.rank.is_dynamic:
        return None
    bounds = [(dim.get_min_length(), dim.get_max_length()) for dim in shape]
    return tuple(low if low == high else Bounds(low, high if high >= 0 else None) for low, high in bounds)
