"""Finds rows in the tables of scatter operators, `scatter_openvino` and `scatter_onnx`."""

from dataclasses import dataclass
from functools import lru_cache

from ir_scatter.core.model import OPENVINO, Node, OpKey
from ir_scatter.ops import scatter_onnx as onnx_ops
from ir_scatter.ops import scatter_openvino as openvino_ops
from ir_scatter.ops.spec import OpSpec

SPECS: dict[OpKey, OpSpec] = {spec.key: spec for spec in (*openvino_ops.ROWS, *onnx_ops.ROWS)}

_FAMILIES: dict[tuple[str, str], tuple[OpSpec, ...]] = {}
for _spec in SPECS.values():
    _type = (_spec.key.domain, _spec.key.type.lower())
    _FAMILIES[_type] = (*_FAMILIES.get(_type, ()), _spec)

_LARGEST_OPSET = (1 << 31) - 1
"""Opset numbers above this count as unknown."""


_TYPES = frozenset(type for _, type in _FAMILIES)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of a scatter operator: the valid one in an opset, and all others.

    Attributes:
        spec: the valid row; None if the opset does not contain the operator.
        is_known_opset: whether the opset exists.
        checked_up_to: None, or for an opset newer than the table the newest opset of the table.
    """

    type: str
    spec: OpSpec | None
    family: tuple[OpSpec, ...]
    is_known_opset: bool
    checked_up_to: int | None = None

    def show_opsets(self) -> str:
        """Format the opsets that contain the operator: `opset4 to opset16`, `opset 11 or above`."""
        first, last = self.family[0].opsets[0], self.family[-1].opsets[-1]
        if isinstance(first, str):
            return f"{first} to {last}"
        if all(spec.is_removed for spec in self.family if spec.opsets[-1] == last):
            legal = [spec.opsets for spec in self.family if not spec.is_removed]
            return f"opset {first} to {legal[-1][-1]}"
        return f"opset {first} or above"


def scatter_types(domain: str) -> frozenset[str]:
    """Return the types of the scatter operators of a domain, spelled as in the specification."""
    return frozenset(key.type for key in SPECS if key.domain == domain)


def is_scatter(type: str) -> bool:
    """Return whether a type, in any case, is a scatter operator of any domain."""
    return type.lower() in _TYPES


@lru_cache(maxsize=1024)
def find(domain: str, type: str, opset: str | int | None) -> Lookup | None:
    """Find the rows of an operator type in an opset; None if the type is not a scatter operator.

    OpenVINO ignores case in types; ONNX does not. An ONNX opset newer than the table gets the newest row.
    """
    family = _FAMILIES.get((domain, type.lower()))
    if family is None or (domain != OPENVINO and type != family[0].key.type):
        return None
    is_known = isinstance(opset, int) and 1 <= opset <= _LARGEST_OPSET
    is_newer = isinstance(opset, int) and is_known and opset > onnx_ops.LATEST_OPSET
    if isinstance(opset, int):
        opset = min(opset, onnx_ops.LATEST_OPSET) if is_known else None
    if domain == OPENVINO:
        is_known = opset in openvino_ops.OPSET_WORDS
    spec = next((row for row in family if opset in row.opsets), None)
    checked = onnx_ops.LATEST_OPSET if is_newer else None
    return Lookup(family[0].key.type, spec, family, is_known, checked)


def by_text(text: str) -> OpSpec | None:
    """Find the row of `Type-version`, in any case: "scatterndupdate-15"."""
    return next((spec for key, spec in SPECS.items() if str(key).lower() == text.lower()), None)


def newest(type: str) -> OpSpec | None:
    """Find the newest row of a type, in any case; None if there is no such scatter operator."""
    rows = [spec for key, spec in SPECS.items() if key.type.lower() == type.lower()]
    return max(rows, key=lambda spec: spec.key.version, default=None)


def opset_number(node: Node) -> int | None:
    if isinstance(node.opset, str):
        digits = node.opset.removeprefix("opset")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 5 else None
    return node.opset
