"""What a row of the table of operators can say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ir_scatter.core.element_types import ELEMENT_TYPES, INTEGERS, NUMERIC, OPENVINO_TYPES, ElementType
from ir_scatter.core.model import OPENVINO, OpKey

NEGATIVE_INDEX = "SCT303"
"""The code of a negative index, which some rows tolerate: then it counts from the end."""

_TYPE_GROUPS = {
    "any type": OPENVINO_TYPES,
    "any numeric type": NUMERIC,
    "any numeric type or boolean": NUMERIC | {"boolean"},
    "any integer type": INTEGERS,
}


class Role(StrEnum):
    """What an input is for, whatever the document calls it."""

    DATA = "data"
    INDICES = "indices"
    UPDATES = "updates"
    AXIS = "axis"


class Layout(StrEnum):
    """How indices, updates and data belong together: the three shapes of scatter, and a cache."""

    SLICES = "slices"
    """One index names a slice of data on the axis (ScatterUpdate)."""
    ELEMENTS = "elements"
    """One index names an element on the axis; its own position gives the rest."""
    TUPLES = "tuples"
    """The last dimension of indices holds k coordinates (the ND operators)."""
    SEQUENCE = "sequence"
    """One index per batch names where a run of updates starts (TensorScatter)."""


class IndicesLimit(StrEnum):
    """Where indices may not be longer than data."""

    NOWHERE = "nowhere"
    OFF_AXIS = "off axis"
    EVERYWHERE = "everywhere"


class IndexRange(StrEnum):
    """Which index values mean something on a dimension of size s."""

    NON_NEGATIVE = "[0, s-1]"
    WRAPPING = "[-s, s-1]"


class Reduction(StrEnum):
    """How an update meets the old value, under one name for all dialects."""

    NONE = "none"
    SUM = "sum"
    SUB = "sub"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


_OF_ONNX = {"add": Reduction.SUM, "mul": Reduction.PROD}
"""What words mean that are not the names of reductions."""


class Kind(StrEnum):
    """What an attribute holds."""

    INT = "int"
    WORD = "string"
    BOOLEAN = "boolean"


class Port(NamedTuple):
    """An input as documented: `element_types` are the names of those that it may have."""

    name: str
    role: Role
    element_types: frozenset[str]
    min_rank: int = 0
    is_optional: bool = False


class Attribute(NamedTuple):
    """An attribute as documented; `undocumented` are words that runtimes take as meant all the same."""

    name: str
    kind: Kind
    default: int | str | bool
    choices: tuple[str, ...] = ()
    undocumented: frozenset[str] = frozenset()
    meaning: str = ""


class AxisSource(NamedTuple):
    """Where the axis comes from: an attribute, or the input of role AXIS if `attribute` is None.

    Axes that are `excluded` by the document are counted from 0.
    """

    attribute: str | None = None
    excluded: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class OpSpec:
    """What the documentation says of one operator version. Facts only.

    Attributes:
        output: the documented name of the output; it has the shape and type of data.
        updates_formula: the documented shape of updates, printed.
        opsets: the IR's words or ONNX's numbers where this row is valid.
        reduction_excludes: element types that a reduction is not defined for.
        scalar_updates: whether one element of any rank may stand for 0-D updates.
        tolerated: codes that are warnings here: the text forbids it, runtimes take it as meant.
        is_removed: whether a deprecated operator may no longer be used in this version.
        drops_attributes: whether the format's reader drops attributes it does not know in silence.
        errata: where the document contradicts itself, and what is meant.
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
        """Return the number of the port of a role, None if the operator has none."""
        return next((index for index, port in enumerate(self.ports) if port.role is role), None)

    def attribute(self, name: str) -> Attribute | None:
        return next((row for row in self.attributes if row.name == name), None)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """The words of this dialect for reductions, and what they mean."""
        row = self.attribute("reduction")
        return {word: _OF_ONNX.get(word) or Reduction(word) for word in row.choices} if row else {}

    def input_names(self) -> str:
        """Print the inputs: `data, indices, updates, axis`."""
        return ", ".join(port.name + " (optional)" * port.is_optional for port in self.ports)

    def show_type(self, element_type: ElementType) -> str:
        """Print an element type in the words of this row's dialect."""
        if self.key.domain == OPENVINO:
            return element_type.name
        return element_type.onnx_name or element_type.name

    def show_types(self, port: Port) -> str:
        """Print the element types of a port in the words of this row's dialect."""
        for name, group in _TYPE_GROUPS.items():
            if self.key.domain == OPENVINO and port.element_types == group & OPENVINO_TYPES:
                return name
        allowed = [row for name, row in ELEMENT_TYPES.items() if name in port.element_types]
        return ", ".join(map(self.show_type, allowed))
