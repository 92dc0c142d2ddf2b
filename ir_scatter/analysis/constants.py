"""What can be proven of a value: its shape, and its numbers if it is constant in effect."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import Shape, agree, element_count, is_static, narrow, static
from ir_scatter.core.tensors import FEW, Constant, few_numbers
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.general_bounds import Interval
from ir_scatter.ops.lookup import find, is_scatter, opset_number
from ir_scatter.ops.spec import Role

if TYPE_CHECKING:
    from ir_scatter.analysis.propagation import Bodies, Propagation
    from ir_scatter.core.arrays import Array

T = TypeVar("T")

MAX_CONSTANT_ELEMENTS = 1 << 26
MAX_COMPUTED = 1 << 23
"""Elements that may be computed in all: what stands in front of indices is small."""

MAX_NODES = 10_000
"""How many values are looked at in front of one; exporters put a dozen there."""


class Facts:
    """Proves things about the values of one model, each thing once.

    What the file stores counts unless it contradicts itself; if it is not trusted, what follows from the
    inputs of the model counts only.

    Attributes:
        max_elements: constants with more elements are not read.
        skipped: constants that were not read because of it.
        given_up: values that are not known because too much stands in front of them, or because
            too many elements would have to be computed.
        bounds: those that `ranges.bounds_of` computed of values, each once however many nodes ask for it:
            without the premise that indices are legal, and with it.
    """

    def __init__(
        self,
        max_elements: int = MAX_CONSTANT_ELEMENTS,
        model: Model | None = None,
        *,
        trusts_stored: bool = True,
        propagates: bool = False,
        bodies: "Bodies" = "always",
    ) -> None:
        self.max_elements = max_elements
        self.model = model
        self._followed: Facts | None = None
        self._propagation: Propagation | None = None
        if model is not None and (propagates or not trusts_stored or model.contradictions):
            from ir_scatter.analysis import propagation  # which few models need

            self._propagation = propagation.Propagation(
                model, self.array, trusts_stored=trusts_stored, bodies=bodies
            )
        self.skipped: set[Constant] = set()
        self.given_up: set[Value] = set()
        self._derived: dict[Callable[[Facts], object], object] = {}
        self._budget = MAX_COMPUTED
        self._shapes: dict[Value, Shape] = {}
        self._arrays: dict[Value, Array | None] = {}
        self.bounds: dict[bool, dict[Value, tuple[Interval, ...] | None]] = {False: {}, True: {}}

    def shape(self, value: Value) -> Shape:
        """Return the shape that a value has, whatever the file stores for it.

        The output of an operator that keeps the shape of an input has that input's shape.
        """
        if self._propagation is not None and value not in self._shapes:
            return self._propagation.known(value).shape
        path: list[Value] = []
        while value not in self._shapes:
            source = shape_source(value)
            self._shapes[value] = value.shape  # where a circle ends
            if source is None:
                break
            path.append(value)
            value = source
        shape = self._shapes[value]
        for value in reversed(path):
            shape = narrow(shape, value.shape) if agree(shape, value.shape) else shape
            self._shapes[value] = shape
        return shape

    def element_type(self, value: Value) -> ElementType | None:
        if self._propagation is None or value in self._shapes:
            return value.element_type
        return self._propagation.known(value).element_type

    def is_vague(self, value: Value) -> bool:
        """Tell whether a runtime may find out more of a shape than what was propagated."""
        known = None if self._propagation is None else self._propagation.known(value)
        return known is not None and (known.vague or known.shape is None)

    def is_open(self, value: Value) -> bool | None:
        """Tell whether a shape depends on the run: False if it is known, None if it could not be inferred.

        What a file stores as unknown may follow from constants all the same, or be beyond the shape rules.
        """
        if is_static(self.shape(value)):
            return False
        facts = self.propagating()
        if not facts.propagates or is_static(facts.shape(value)):
            return False if facts.propagates else None
        return None if facts.is_vague(value) else True

    @property
    def propagates(self) -> bool:
        """Whether more than what the file stores for a value decides about it."""
        return self._propagation is not None

    def propagating(self) -> "Facts":
        """Return what can be proven where all that follows counts, whether the file contradicts it or not."""
        if self.propagates:
            return self
        self._followed = self._followed or Facts(self.max_elements, self.model, propagates=True)
        return self._followed

    def derived(self, analysis: "Callable[[Facts], T]") -> T:
        """Return the result of an analysis of this model, which is computed once."""
        if analysis not in self._derived:
            self._derived[analysis] = analysis(self)
        return cast("T", self._derived[analysis])

    def trust(self, value: Value) -> None:
        """Take what a value says of itself as all that can be known of it."""
        self._shapes[value] = value.shape
        if self._propagation is not None:
            self._propagation.trust(value)

    def array(self, value: Value) -> "Array | None":
        """Return the numbers of a value that is constant in effect, None if it is not.

        Small graphs of general operators on constants (Convert, Unsqueeze, Concat, ShapeOf of a known
        shape, ...) are evaluated. The array is not to be changed.
        """
        if value not in self._arrays and not follow(
            value, self._arrays, self._sources, self._made, MAX_NODES
        ):
            self.given_up.add(value)
        return self._arrays[value]

    def forget(self, value: Value) -> None:
        """Look again whether a value is constant, as more is known of where it comes from."""
        self._arrays.pop(value, None)
        for known in self.bounds.values():
            known.pop(value, None)

    def whole_numbers(self, value: Value) -> "Array | None":
        """Return the array of a value that is constant in effect, None if it holds other numbers."""
        array = self.array(value)
        if array is None:
            return None
        from ir_scatter.core.arrays import whole_numbers

        return whole_numbers(array)

    def _sources(self, value: Value) -> list[Value]:
        """Return what must be known first; nothing if the value is a constant, or not to be told."""
        node = None if value.constant is not None else value.producer
        op = None if node is None else find_computed(node.domain, node.type)
        if node is None or op is None or op.reads_shapes_only or node.bodies:
            return []
        sources = [port.value for port in node.inputs if port.value is not None]
        is_open = any(one.is_input or (one.constant is None and one.producer is None) for one in sources)
        return [] if is_open else sources

    def _made(self, value: Value) -> "Array | None":
        """Return the numbers of a value whose sources are known."""
        constant = value.constant
        if constant is None:
            return self._computed(value)
        if (element_count(constant.shape) or 0) > self.max_elements:
            self.skipped.add(constant)
            return None
        return constant.load()

    def _computed(self, value: Value) -> "Array | None":
        """Return what the producer of a value makes of constants, None if it cannot be told."""
        node = value.producer
        op = None if node is None else find_computed(node.domain, node.type)
        if node is None or op is None or node.bodies:
            return None
        known = self._stand_in if op.reads_shapes_only else self._arrays.get
        inputs = [None if port.value is None else known(port.value) for port in node.inputs]
        if any(found is None and port.is_present for found, port in zip(inputs, node.inputs, strict=True)):
            return None
        from ir_scatter.ops import general_kernels

        limit = min(self.max_elements, self._budget)
        try:
            outputs = general_kernels.compute(
                op,
                node.domain,
                inputs,
                node.attributes,
                opset=opset_number(node),
                output_count=len(node.outputs),
                element_limit=limit,
            )
        except general_kernels.OutputTooLarge:
            self.given_up.add(value)
            return None
        except general_kernels.UnsupportedCase:
            return None
        self._budget -= sum(array.size for array in outputs)
        return outputs[value.output] if value.output < len(outputs) else None

    def _stand_in(self, source: Value) -> "Array | None":
        """Return an array of a value's shape that takes no memory."""
        import numpy

        shape = static(self.shape(source))
        try:
            return None if shape is None else numpy.broadcast_to(numpy.zeros((), numpy.bool_), shape)
        except ValueError:  # a shape that NumPy cannot represent
            return None

    def numbers(self, value: Value) -> list[int] | None:
        """Return few whole numbers that the file itself stores, without importing NumPy.

        None where there are many, or where they are computed or stored in another way; `array`
        may know them then.
        """
        constant = value.constant
        if constant is None or constant.element_type is None or self.max_elements < FEW:
            return None
        return few_numbers(constant.element_type, constant.shape, constant.view)

    def origin(self, value: Value) -> Constant | None:
        """Return the one constant that a value comes from through general operators, if it is one."""
        for _ in range(MAX_NODES):
            sources = self._sources(value)
            if not sources:
                break
            value = sources[0]
        return value.constant


def shape_source(value: Value) -> Value | None:
    """Return the input of a value's producer that has the shape of the value, if one has.

    A shape that is stored whole is believed, but not that of a scatter node, whose documents say what it is.
    """
    type = value.producer_type
    if value.constant is not None or (type and not is_scatter(type) and is_static(value.shape)):
        return None
    node = value.producer
    if node is None:
        return None
    lookup = find(node.domain, node.type, node.opset)
    if lookup is not None:
        index = lookup.spec.port_index(Role.DATA) if lookup.spec else None
    else:
        op = None if is_static(value.shape) else find_computed(node.domain, node.type)
        index = 0 if op is not None and op.keeps_shape else None
    return None if index is None or index >= len(node.inputs) else node.inputs[index].value
