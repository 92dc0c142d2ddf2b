"""The columns of the table of scatter operators: `OpSpec` is a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ir_scatter.core.element_types import ELEMENT_TYPES, INTEGERS, NUMERIC, OPENVINO_TYPES, ElementType
from ir_scatter.core.model import OPENVINO, OpKey

NEGATIVE_INDEX = "SCT303"
"""The rule code for a negative index. In rows with this code in `tolerated` it counts from the end."""

_TYPE_GROUPS = {
    "any type": OPENVINO_TYPES,
    "any numeric type": NUMERIC,
    "any numeric type or boolean": NUMERIC | {"boolean"},
    "any integer type": INTEGERS,
}


class Role(StrEnum):
    """The purpose of an input, with the same name for all operators."""

    DATA = "data"
    INDICES = "indices"
    UPDATES = "updates"
    AXIS = "axis"


class Layout(StrEnum):
    """How indices select elements of data: the three kinds of scatter, and a cache."""

    SLICES = "slices"
    """An index selects a slice of data along the axis (ScatterUpdate)."""
    ELEMENTS = "elements"
    """An index selects a position on the axis; its own position supplies the other coordinates
    (ScatterElements).
    """
    TUPLES = "tuples"
    """The last dimension of indices contains coordinates of a slice or element (ScatterND)."""
    SEQUENCE = "sequence"
    """An index selects the first of several successive positions, for each batch (TensorScatter)."""


class IndicesLimit(StrEnum):
    """The dimensions on which the shape of indices must not exceed the shape of data."""

    NOWHERE = "nowhere"
    OFF_AXIS = "off axis"
    EVERYWHERE = "everywhere"


class IndexRange(StrEnum):
    """The legal index values for a dimension of size s."""

    NON_NEGATIVE = "[0, s-1]"
    WRAPPING = "[-s, s-1]"


class Reduction(StrEnum):
    """How an update is combined with the old value; the same names for both dialects."""

    NONE = "none"
    SUM = "sum"
    SUB = "sub"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


_OF_ONNX = {"add": Reduction.SUM, "mul": Reduction.PROD}
"""ONNX's names of reductions that differ from ours."""


class Kind(StrEnum):
    """The type of an attribute's value."""

    INT = "int"
    WORD = "string"
    BOOLEAN = "boolean"


class Port(NamedTuple):
    """An input as specified; `element_types` are the names of its legal types."""

    name: str
    role: Role
    element_types: frozenset[str]
    min_rank: int = 0
    is_optional: bool = False


class Attribute(NamedTuple):
    """An attribute as specified; `undocumented` are values that runtimes support without a specification."""

    name: str
    kind: Kind
    default: int | str | bool
    choices: tuple[str, ...] = ()
    undocumented: frozenset[str] = frozenset()
    meaning: str = ""


class AxisSource(NamedTuple):
    """Source of the axis: an attribute, or the input of role AXIS if `attribute` is None.

    `excluded` are axes that the specification forbids, as numbers of 0 or more.
    """

    attribute: str | None = None
    excluded: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class OpSpec:
    """The facts in the specification of one operator version.

    Attributes:
        output: the specified name of the output, which has the shape and type of data.
        updates_formula: the specified shape of updates, as text.
        opsets: the opsets in which this row is valid: "opset3" in OpenVINO, a number in ONNX.
        reduction_excludes: element types for which a reduction is not defined.
        scalar_updates: whether a single element of any rank may replace 0-D updates.
        tolerated: rule codes that are only warnings: the specification forbids the use, but runtimes accept
            it.
        is_removed: whether this version forbids the use of the deprecated operator.
        drops_attributes: whether the format's reader silently drops unknown attributes.
        errata: contradictions in the specification, and the interpretation used here.
    """

    key: OpKey
    summary: str
    url: str
    ports: tuple[Port, ...]
    layout: Layout
    updates_formula: str
    opsets: tuple[str | int, ...]
    index_range: IndexRange
    output: str = "output"
    attributes: tuple[Attribute, ...] = ()
    axis: AxisSource | None = None
    indices_limit: IndicesLimit = IndicesLimit.NOWHERE
    reduction_excludes: Mapping[Reduction, frozenset[str]] = field(default_factory=dict)
    scalar_updates: bool = False
    tolerated: frozenset[str] = frozenset()
    deprecated_by: OpKey | None = None
    is_removed: bool = False
    drops_attributes: bool = False
    errata: tuple[str, ...] = ()

    def port(self, role: Role) -> Port | None:
        return next((port for port in self.ports if port.role is role), None)

    def port_index(self, role: Role) -> int | None:
        """Return the port number of a role; None if the operator has no such input."""
        return next((index for index, port in enumerate(self.ports) if port.role is role), None)

    def attribute(self, name: str) -> Attribute | None:
        return next((row for row in self.attributes if row.name == name), None)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """The reductions, by their names in this dialect."""
        row = self.attribute("reduction")
        return {word: _OF_ONNX.get(word) or Reduction(word) for word in row.choices} if row else {}

    def input_names(self) -> str:
        """Format the names of the inputs: `data, indices, updates, axis`."""
        return ", ".join(port.name + " (optional)" * port.is_optional for port in self.ports)

    def show_type(self, element_type: ElementType) -> str:
        """Return the name of an element type in this row's dialect."""
        if self.key.domain == OPENVINO:
            return element_type.name
        return element_type.onnx_name or element_type.name

    def show_types(self, port: Port) -> str:
        """Return the names of a port's element types in this row's dialect."""
        for name, group in _TYPE_GROUPS.items():
            if self.key.domain == OPENVINO and port.element_types == group & OPENVINO_TYPES:
                return name
        allowed = [row for name, row in ELEMENT_TYPES.items() if name in port.element_types]
        return ", ".join(map(self.show_type, allowed))
